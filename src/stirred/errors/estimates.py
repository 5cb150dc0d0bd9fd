"""Errors about estimates: measurements that cannot be read, and questions that they do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors.kinds import DataError, OutputError, StirredError, few, listed


def not_measurements(path: Path, reason: str) -> OutputError:
    return OutputError(
        "not-measurements",
        f"{path} does not hold the measurements of a TopDown release: {reason}.",
        "Name the folder of a release, or the measurements folder in it.",
    )


def measurements_do_not_fit(what: str, reason: str) -> OutputError:
    return OutputError(
        "measurements-do-not-fit",
        f"The measurements do not fit {what}: {reason}.",
        "Use the plan and the list of geounits of the same release.",
    )


def estimate_question(what: str, must: str, page: str = "estimates") -> StirredError:
    return StirredError(
        "estimate-question",
        f"{what} {must}.",
        f"Change that and ask again; docs/{page}.md has examples (stirred docs {page}).",
    )


def share_of_one(column: str) -> StirredError:
    return StirredError(
        "estimate-question",
        f"The share of '{column}' is 1 everywhere, since --where leaves one value of it.",
        f"Leave the condition on '{column}' out: the share of each of its values is then given.",
    )


def unknown_geounit(level: str, name: str) -> StirredError:
    return StirredError(
        "unknown-geounit",
        f"The level '{level}' has no unit '{name}'.",
        "Use a name from the release's list of geounits, as text, leading zeros included.",
    )


def not_estimable(table: str, what: str) -> StirredError:
    return StirredError(
        "not-estimable",
        f"No measurement of '{table}' determines {what}.",
        "Ask for columns, or for a level of the geography, that the plan measures or that sums of its queries give.",
    )


def estimate_too_wide(table: str, size: int, most: int) -> StirredError:
    return StirredError(
        "estimate-too-wide",
        f"The recodes of '{table}' make {size:,} numbers depend on each other; at most {most:,} can be solved for.",
        "Use a plan with fewer or coarser recodes, or measure fewer margins by them.",
    )


def invariants_disagree(level: str, units: int, named: Sequence[str]) -> DataError:
    return DataError(
        "invariants-disagree",
        f"In {units:,} units of level '{level}' ({few(named, units)}) the values given for invariants contradict each "
        "other.",
        "Give the values that were published, in the order of the units.",
    )


def denominators_near_zero(clear: float) -> StirredError:
    return StirredError(
        "denominators-near-zero",
        f"None of the asked shares or ratios can be estimated: the counts to divide by are less than {clear:g} "
        "standard errors above zero.",
        "Ask for larger places or coarser groups, or for differences in place of ratios.",
    )


def swap_mixes_too_much() -> StirredError:
    return StirredError(
        "swap-mixes-too-much",
        "The swap mixed these values so much that none of the asked numbers can be told better than from the counts "
        "that it keeps.",
        "Ask for fewer or coarser groups. stirred tabulate counts exactly by match and swap variables, and by match "
        "and held variables.",
    )


def estimates_of_rounds(columns: Sequence[str]) -> StirredError:
    return StirredError(
        "estimates-of-rounds",
        f"No regression with {listed(columns)} is offered: these values were exchanged in several rounds, and the "
        "formulas for one round would be biased.",
        "Ask for counts, shares or comparisons by these columns, or regress on columns that only the first round "
        "swapped, such as the larger areas.",
    )


def regression_not_valid(what: str, why: str, instead: str) -> StirredError:
    return StirredError("regression-not-valid", f"{what} {why}.", instead)


def regression_not_determined() -> StirredError:
    return StirredError(
        "regression-not-determined",
        "The corrected sums of products do not determine the coefficients: with what the swap mixed, the predictors "
        "could follow from each other.",
        "Leave out swapped or held predictors, or merge categories. Regressions among match and held variables, or "
        "among match and swap variables, need no correction.",
    )
