"""Errors about plans and files of the survey mechanism."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import DataError, PlanError, listed


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
