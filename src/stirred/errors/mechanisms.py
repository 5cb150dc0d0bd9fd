"""Errors of single mechanisms: TopDown with its spines and noisy measurement files, and surveys.

Lists of blocks are public, so codes of them may be named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import (
    DataError,
    OutputError,
    PlanError,
    StirredError,
    StoppedByCheck,
    SurveyError,
    few,
    listed,
    one_line,
)


def topdown_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "topdown-plan",
        f"In a TopDown plan this must hold: {what} {must}.",
        "docs/topdown.md explains its fields (stirred docs topdown).",
    )


def topdown_code(code: str, level: str, length: int) -> DataError:
    return DataError(
        "topdown-geography",
        f"The code {one_line(code, 60)} in the list of geounits has no prefix of {length} characters for the level "
        f"'{level}'.",
        "Correct the list of geounits, or the prefixes in the plan's [spine.input].",
    )


def topdown_place(table: str, column: str, rows: int) -> DataError:
    return DataError(
        "topdown-place",
        f"In table '{table}' {rows:,} rows name a place in column '{column}' that the list of geounits does not have.",
        "Correct the list or the rows: every place must be in the list, also where nobody lives.",
    )


def topdown_count(table: str, column: str, problem: str) -> DataError:
    return DataError(
        "topdown-count",
        f"In table '{table}' the counts in column '{column}' {problem}.",
        "Correct them: counts are whole numbers from 0 on.",
    )


def topdown_zero(table: str, rows: int, zero: str) -> DataError:
    return DataError(
        "topdown-zero",
        f"In table '{table}' {rows:,} records have a combination of values that the plan says cannot occur: {zero}.",
        "Correct the records, or the zeros of the plan.",
    )


def topdown_contradiction(first: str, second: str, level: str, units: int, named: Sequence[str]) -> DataError:
    together = f" together with {second}" if second else ""
    return DataError(
        "topdown-contradiction",
        f"At level '{level}', in {units:,} of its units ({few(named, units)}), the data contradict {first}{together}.",
        "No release could keep both. Correct the data, or leave one out of the plan.",
    )


def topdown_infeasible(level: str, parents: int, named: Sequence[str], reasons: Sequence[str]) -> DataError:
    return DataError(
        "topdown-infeasible",
        f"At level '{level}' no table satisfies all invariants and constraints below {parents:,} units "
        f"({few(named, parents)}): {listed(list(reasons))}.",
        "Leave out an invariant or a constraint that binds there.",
    )


def topdown_crossing(table: str, first: str, second: str) -> PlanError:
    return PlanError(
        "topdown-crossing",
        f"In table '{table}' {first} and {second} cross: some of their groups overlap and neither lies "
        "inside the other, so integers that keep both may not exist.",
        "Keep one of them only, or a finer margin that contains both.",
    )


def topdown_earlier(
    folder: object,
    problem: str,
    remedy: str = "docs/topdown.md says what an earlier release must be (stirred docs topdown).",
) -> PlanError:
    return PlanError("topdown-earlier", f"The plan cannot agree with the earlier release {folder}: {problem}.", remedy)


def earlier_levels(folder: object, theirs: Sequence[str], mine: Sequence[str]) -> PlanError:
    return topdown_earlier(
        folder,
        f"its levels ({listed(theirs)}) and those of this plan ({listed(mine)}) have none in common, by name",
        "Call a level that both geographies have by the same name in both plans.",
    )


def earlier_places(folder: object, level: str, units: int, named: Sequence[str], *, earlier: bool) -> PlanError:
    whose, other = ("the earlier release", "this plan") if earlier else ("this plan", "the earlier release")
    return topdown_earlier(
        folder,
        f"at level '{level}', the finest that both have, {whose} lists {units:,} units ({few(named, units)}) that "
        f"{other} does not",
        "Both lists must have the same units at that level; give the level another name where they are not the same.",
    )


def topdown_memory(needed: str, available: str) -> DataError:
    return DataError(
        "topdown-memory",
        f"A release would need about {needed} of memory, and this machine has {available} free.",
        "Use a machine with more memory, or a plan with fewer cells or finest geounits.",
    )


def spine_question(what: str, must: str) -> PlanError:
    return PlanError(
        "spine-question",
        f"For a spine this must hold: {what} {must}.",
        "docs/spines.md explains the choices (stirred docs spines).",
    )


def block_twice(level: str, code: str, blocks: int) -> DataError:
    return DataError(
        "block-twice",
        f"The list has {blocks:,} {level} codes more than once; the first is {one_line(code, 60)}.",
        "List every block once: one that lies in two areas of a sort must be given to one of them, or the sort must be "
        "divided into two columns.",
    )


def relation_unsure(relation: str, problem: str) -> PlanError:
    return PlanError(
        "relation-unsure",
        f"It cannot be guaranteed that every fit can keep {relation}: {problem}.",
        "Nothing was drawn or spent. Leave out one of the two, or relate other groups: docs/relations.md says which "
        "plans are sure (stirred docs relations).",
    )


_PAGE = "docs/noisy-measurements.md describes the form that is read (stirred docs noisy-measurements)."


def noisy_folder(path: object, problem: str, remedy: str = "") -> DataError:
    """A folder of noisy measurement files is not laid out as described."""
    return DataError(
        "noisy-folder",
        f"The noisy measurement files in {path} are not laid out as described: {problem}.",
        f"{remedy} {_PAGE}".strip(),
    )


def noisy_column(file: Path, column: str, found: str, expected: str) -> DataError:
    """A column of a noisy measurement file is missing, or of another type or content than described."""
    return DataError(
        "noisy-column",
        f"{file}: the column '{column}' {one_line(found, 200)}; expected {expected}.",
        f"If the files were published in this form, the description that stirred follows is wrong there. {_PAGE}",
    )


def noisy_file(file: Path) -> DataError:
    """A noisy measurement file cannot be read."""
    return DataError(
        "noisy-file",
        f"{file} cannot be read as Parquet: it is damaged or was not copied whole.",
        f"Get the file again. {_PAGE}",
    )


def noisy_question(what: str, must: str) -> DataError:
    """A question about noisy measurement files that these files cannot answer."""
    return DataError("noisy-question", f"{what} {must}.", _PAGE)


def not_exportable(path: object, problem: str) -> OutputError:
    """Measurements that cannot be written as noisy measurement files."""
    return OutputError(
        "not-exportable",
        f"The measurements of {path} cannot be written as noisy measurement files: {problem}.",
        _PAGE,
    )


def survey_fact(what: str, must: str) -> SurveyError:
    return SurveyError("survey-fact", f"{what} {must}.", "Change that in the plan, or in what is passed.")


def survey_bounds_missing(what: str) -> SurveyError:
    return SurveyError(
        "survey-bounds",
        f"The sensitivity needs {what}.",
        "State it from public knowledge; read from the confidential data it would itself reveal something.",
    )


def weights_unbounded() -> SurveyError:
    return SurveyError(
        "survey-weights",
        "Final weights change with every record, since nonresponse adjustment and calibration look at all of them; how "
        "much is not known (thesis, Table 6.2).",
        'Cut the weights at published limits and say so (outside = "cut" in a plan, weights_cut_by_rule among facts), '
        "or use the design weights.",
    )


def denominator_may_be_zero(what: str) -> SurveyError:
    return SurveyError(
        "survey-denominator",
        f"The sensitivity is not bounded, since {what}.",
        "Publish numerator and denominator each with noise of its own, or state a positive lower bound.",
    )


def no_amplification(design: str, why: str) -> SurveyError:
    return SurveyError(
        "no-amplification",
        f"Sampling does not lower the privacy loss here ({design}): {why}.",
        "Count the full loss of the mechanism on the sample.",
    )


def samples_depend(how: str, why: str) -> SurveyError:
    return SurveyError(
        "samples-depend",
        f"The losses of mechanisms on {how} cannot be added after sampling has lowered them: {why}.",
        "Add the losses on the samples themselves, as if nothing had been sampled: that always holds.",
    )


def not_a_listed_design(problem: str) -> SurveyError:
    return SurveyError(
        "not-a-listed-design",
        f"This list of samples cannot be used: {problem}.",
        "Give every possible sample once, as a tuple of the numbers of its units, with its probability.",
    )


def too_many_samples(found: int, most: int) -> SurveyError:
    return SurveyError(
        "too-many-samples",
        f"Listing everything would take about {found:,} steps; {most:,} are the most.",
        "Ask about a smaller frame or fewer values; the bounds themselves need no list.",
    )


# -- frames, designs and weights ---------------------------------------------------------------------------------


def design_number(what: str, given: object, wanted: str) -> SurveyError:
    return SurveyError("design-number", f"{what} is {given}.", f"Give {wanted}.")


def design_choice(what: str, problem: str, remedy: str) -> SurveyError:
    return SurveyError("design-choice", f"{what} {problem}.", f"{remedy}.")


def frame_column(column: str, problem: str, remedy: str) -> SurveyError:
    return SurveyError("frame-column", f"The frame's {column} {problem}.", f"{remedy}.")


def frame_units(given: object) -> SurveyError:
    return SurveyError(
        "frame-units",
        f"{given} is no unit of the frame.",
        "Units are numbered from 0 in the order of the frame; list each of them once.",
    )


def sample_too_large(sample: int, population: int, of: str) -> SurveyError:
    return SurveyError(
        "sample-too-large",
        f"{sample:,} {of} are to be sampled, and there are {population:,}.",
        "Sample fewer, or with replacement.",
    )


def size_too_large(units: int, sample: object) -> SurveyError:
    return SurveyError(
        "size-too-large",
        f"{units:,} units are so large that they would be sampled with a probability above 1: their share of all sizes "
        f"is more than 1 in {sample}.",
        "Put them into a stratum of their own that is taken as a whole, or sample fewer.",
    )


def sizes_too_fine(product: str, most: str) -> SurveyError:
    return SurveyError(
        "sizes-too-fine",
        f"{product} exceeds {most}, up to which sizes are added up exactly.",
        "Round the sizes, or give them in a larger unit.",
    )


def parts_do_not_fit(failing: int, parts: int, noun: str, first: StirredError) -> SurveyError:
    return SurveyError(
        "parts-do-not-fit",
        f"The design does not fit {failing:,} of {parts:,} {noun}; in the first of them: {first.problem}",
        first.remedy,
    )


def too_many_pairs(units: int, most: int, design: str) -> SurveyError:
    return SurveyError(
        "too-many-pairs",
        f"Exact probabilities of pairs under {design} were asked for {units:,} units; {most:,} are the most.",
        "Ask for fewer units, such as those of a domain (units=), or use a design whose pairs have a short formula.",
    )


def weights_do_not_fit(problem: str, remedy: str) -> SurveyError:
    return SurveyError("weights-do-not-fit", f"{problem}.", f"{remedy}.")


def weight_rule(problem: str, remedy: str) -> SurveyError:
    return SurveyError("weight-rule", f"The rule for weights cannot be used: {problem}.", f"{remedy}.")


def weights_not_whole(problem: str) -> SurveyError:
    return SurveyError(
        "weights-not-whole",
        f"Weights {problem}.",
        "Give an array of whole numbers of a stated unit, such as hundredths (scale=100): a float is not the decimal "
        "that was written.",
    )


def weight_off_lattice(records: int, step: str, shrunk: bool) -> SurveyError:
    after = " after they are drawn to the centre" if shrunk else ""
    return SurveyError(
        "weight-off-lattice",
        f"{records:,} records have a weight that is no whole multiple of {step}{after}.",
        'State a finer step, or round weights to it (rounding = "nearest").',
    )


def weight_facts(problem: str) -> SurveyError:
    return SurveyError(
        "weight-facts",
        f"What is said about the weights does not fit together: {problem}.",
        "Correct the bounds, the numbers of records or the size of the population; state them from public knowledge.",
    )


def imputation_depends(kind: str, why: str) -> SurveyError:
    return SurveyError(
        "imputation-depends",
        f"The losses of parameters and analysis do not add up for {kind}: {why}.",
        "Impute row by row from parameters that are public, or that are estimated under a share of the budget "
        "(stirred.survey.imputing).",
    )


def imputation_number(what: str, wanted: str) -> SurveyError:
    return SurveyError(
        "imputation-number", f"{what} must be {wanted}.", "Change that in the plan, or in what is passed."
    )


def imputation_codes(column: str, problem: str) -> SurveyError:
    return SurveyError(
        "imputation-codes",
        f"The codes of the {column} {problem}.",
        "Give one whole number from 0 on for each record, by the values that the plan lists; -1 in the target only, "
        "where the answer is missing.",
    )


def imputation_share() -> SurveyError:
    return SurveyError(
        "imputation-share",
        "The parameters of an imputation model need one positive share of the budget.",
        "Give either epsilon (discrete Laplace noise) or rho (discrete Gaussian noise), as a number above 0.",
    )


def imputation_too_large(problem: str, remedy: str) -> SurveyError:
    return SurveyError("imputation-too-large", f"{problem}.", f"{remedy}.")


def not_an_imputation_model(problem: str) -> SurveyError:
    return SurveyError(
        "not-an-imputation-model",
        f"This does not describe an imputation model: {problem}.",
        "Give the fields as to_json writes them.",
    )


def survey_column(column: str, problem: str, remedy: str) -> SurveyError:
    return SurveyError("survey-column", f"The {column} {problem}.", f"{remedy}.")


def calibration_totals(problem: str, remedy: str) -> SurveyError:
    return SurveyError("calibration-totals", f"{problem}.", f"{remedy}.")


def survey_plan(what: str, must: str) -> PlanError:
    return PlanError(
        "survey-plan",
        f"In a survey plan this must hold: {what} {must}.",
        "docs/surveys.md explains its fields (stirred docs surveys).",
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


def survey_digits(column: str) -> DataError:
    return DataError(
        "survey-digits",
        f"Sums of column '{column}' times the weights are too large to be added exactly (more than 62 bits).",
        "State a coarser step, or closer bounds.",
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
