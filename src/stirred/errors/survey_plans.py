"""Errors about plans and files of the survey mechanism."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import DataError, PlanError, StoppedByCheck, listed


def survey_plan_blank(fields: Sequence[str]) -> PlanError:
    return PlanError(
        "survey-plan",
        f"The plan is a draft: still to be filled in are {listed(fields)}.",
        "State each from public knowledge (the design, the questionnaire, published totals), never from the cells of "
        "the file. stirred docs surveys explains the fields.",
    )


def survey_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "survey-plan",
        f"In a survey plan this must hold: {what} {must}.",
        "docs/surveys.md explains its fields (stirred docs surveys).",
    )


def unit_is_not_the_row(unit: str, row: str) -> PlanError:
    return PlanError(
        "unit-is-not-the-row",
        f"The plan protects one {unit}, and a row of its file is one {row}. The noise is for one row: a unit of nine "
        "rows would lose 9 times the stated epsilon, or 81 times the stated rho.",
        f'Make a file with one row for each {unit}, or protect what a row is (unit = "{row}"). Several rows for one '
        "unit are not supported yet.",
    )


def survey_noise_too_wide() -> PlanError:
    return PlanError(
        "survey-noise",
        "A query or a measured standard error would need noise of more than 2^40 steps of its variable.",
        'State a larger step of its variable, such as 100 for incomes, with rounding = "nearest"; or closer bounds, or '
        "a larger budget.",
    )


def survey_rows(rows: int, fewest: int, most: int | None) -> DataError:
    limits = f"at least {fewest:,}" + (f" and at most {most:,}" if most is not None else "")
    return DataError(
        "survey-rows",
        f"The file has {rows:,} records, and the plan says that there are {limits}.",
        "Correct [sample] of the plan from what the design says, or give the right file.",
    )


def survey_empty(column: str, rows: int) -> DataError:
    return DataError(
        "survey-empty",
        f"{rows:,} records have an empty cell in column '{column}'.",
        "Say in the plan what an empty cell counts as (missing = ...), impute it ([[imputation]]), or fill it in.",
    )


def survey_outside(column: str, rows: int, low: str, high: str) -> DataError:
    return DataError(
        "survey-outside",
        f"{rows:,} records have a number in column '{column}' that is below {low} or above {high}.",
        'State wider bounds from public knowledge, or let such numbers be cut at the bounds (outside = "cut").',
    )


def survey_off_lattice(column: str, rows: int, step: str) -> DataError:
    return DataError(
        "survey-off-lattice",
        f"{rows:,} records have a number in column '{column}' that is no whole multiple of the step {step}.",
        'State a finer step, or let such numbers be rounded (rounding = "nearest").',
    )


def survey_category(column: str, rows: int) -> DataError:
    return DataError(
        "survey-category",
        f"{rows:,} records have no value in column '{column}', or one that the plan does not list.",
        "List every value that can occur, from the code book; for empty cells say what they count as (missing = ...).",
    )


def survey_digits(column: str) -> DataError:
    return DataError(
        "survey-digits",
        f"Sums of column '{column}' times the weights are too large to be added exactly (more than 62 bits).",
        "State a coarser step, or closer bounds.",
    )


def survey_design(problem: str) -> DataError:
    return DataError(
        "survey-design",
        f"The design in the plan does not fit the file: {problem}.",
        "Correct [design] of the plan from the description of the survey, or give the right file.",
    )


# -- stops -------------------------------------------------------------------------------------------------------


def several_rows(column: str, unit: str, rows: int, largest: int, loss: str) -> StoppedByCheck:
    return StoppedByCheck(
        f"several-rows:{column}",
        f"The column '{column}' looks like the id of one {unit}, and its values repeat: {rows:,} rows share theirs, up "
        f"to {largest:,} rows one value. The noise is for one row: one {unit} of {largest:,} rows would lose {loss}.",
        f"Make a file with one row for each {unit}, or protect what a row is (unit and row in the plan). If '{column}' "
        f'is something else, add "several-rows:{column}" to allow.',
    )


def not_everybody_responds(what: str, found: int, selected: int, where: str) -> StoppedByCheck:
    return StoppedByCheck(
        "everybody-responds",
        f"The plan says that everybody responds, and the file has {found:,} of {selected:,} selected {what}{where}. "
        "Noise that relies on it would be too small.",
        "Leave everybody_responds out of [sample], correct the numbers of selected units in [design], or give the "
        "whole file. This stop cannot be allowed.",
    )


def fewer_selected(found: int, selected: int, where: str) -> StoppedByCheck:
    return StoppedByCheck(
        "fewer-selected",
        f"The file has {found:,} of the {selected:,} clusters that the plan says are selected{where}.",
        "Correct the numbers in [design] from the description of the survey, or give the whole file. If nobody "
        'answered in the others, add "fewer-selected" to allow.',
    )


def cluster_too_large(column: str, largest: int, stated: int) -> StoppedByCheck:
    return StoppedByCheck(
        "largest-cluster",
        f"A cluster in column '{column}' has {largest:,} records, and the plan says that none has more than "
        f"{stated:,}: intervals would be too short.",
        "Correct largest_cluster in [design] from what the design says, or the column of clusters. This stop cannot "
        "be allowed.",
    )


def weights_of_another_population(
    column: str, total: float, population: float, unit: str, accepted: str
) -> StoppedByCheck:
    return StoppedByCheck(
        "weights-population",
        f"The weights in column '{column}' add up to {total:,.0f}, and the plan states a population of "
        f"{population:,.0f}. Expected is {accepted}.",
        f"Correct population in [sample], where each {unit} counts once, or the column of weights. If both are right, "
        'add "weights-population" to allow.',
    )


def column_all_empty(column: str) -> StoppedByCheck:
    return StoppedByCheck(
        f"all-empty:{column}",
        f"Every cell of column '{column}' is empty: a release would tell nothing about it, with numbers that look like "
        "answers.",
        f"Give the file in which '{column}' has values, or leave it out of the plan. This stop cannot be allowed.",
    )
