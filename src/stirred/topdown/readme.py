"""The text of README.txt of a TopDown release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stirred.errors import listed
from stirred.releases.folder.documents import (
    ReleasedTable,
    context_section,
    files_section,
    fill,
    findings_section,
    guarantee_section,
    origin_section,
    titled,
)
from stirred.spec import Specification
from stirred.spec.invariant import plural
from stirred.topdown.constraints import constraint_words
from stirred.topdown.fit_bias import ExpectedBias
from stirred.topdown.fitting import LEAST_SQUARES
from stirred.topdown.for_analysts import WHICH_VALUES
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.relations import relation_words


def readme(
    specification: Specification,
    plan: TopDownPlan,
    tables: Sequence[ReleasedTable],
    ways: Mapping[str, str],
    biases: Sequence[ExpectedBias] = (),
) -> str:
    """The text of ``README.txt``; ``ways`` is how each table was fitted, empty for releases that do not say it, and
    ``biases`` the forecasts that the certificate has."""
    units = " and ".join(plural(table.unit) for table in plan.released)
    folders = [
        "measurements/: every noisy measurement, with its exact variance in measurements.json",
        "invariants/: what is kept exactly",
    ]
    parts = [
        titled(f"A release of {units} by the TopDown Algorithm", specification),
        origin_section(plan),
        _measured_by(plan),
        fill(
            f"Counts of every query were measured with exact discrete Gaussian noise at the levels "
            f"{listed(plan.spine.all_levels)}. {_fitted(ways)}; the released rows are those tables. They are not "
            "records of real units."
        )
        + "\n",
        files_section(tables, [*(f"tables/{one.name}.csv" for one in plan.publish), *folders]),
        _kept(plan),
        _earlier(plan),
        guarantee_section(specification),
        fill(
            "How to read it: it holds for the whole procedure, measurements and fit together, between datasets that "
            "agree on what is kept exactly. The fit reads those values as they are, so without this condition no "
            "finite budget holds: anyone who sees the release knows them. Under it, what anyone learns by a test or "
            f"a change of belief about one {plan.unit} is bounded by rho; stirred explain gives the numbers."
        )
        + "\n",
        fill(f"For conclusions about places and groups: {WHICH_VALUES[0].lower()}{WHICH_VALUES[1:]}") + "\n",
        _biased(plan, biases),
        findings_section(specification),
        context_section(plan.context),
    ]
    return "\n".join(part for part in parts if part)


def _measured_by(plan: TopDownPlan) -> str:
    if plan.measured_by is None:
        return ""
    return (
        fill(
            f"The measurements were not drawn for this release. They are public, and were drawn by {plan.measured_by}. "
            "The guarantee below is theirs, as the variances that they state imply it; whether it holds for the data "
            "that they had cannot be seen here. This release reads what is public, and spends nothing."
        )
        + "\n"
    )


def _fitted(ways: Mapping[str, str]) -> str:
    """How the tables were fitted, in a sentence without its end."""
    by_level = "From the top down, nonnegative integer tables were fitted to these measurements"
    first = [table for table, way in ways.items() if way == LEAST_SQUARES]
    if not first:
        return by_level
    others = [table for table in ways if table not in first]
    return (
        "From the bottom up, least squares gave the best unbiased values of every place from its own measurements and "
        "all below it; from the top down, nonnegative integer tables were fitted to these values"
        + (f", and those of {listed(others)} to the measurements of each level by themselves" if others else "")
    )


def _biased(plan: TopDownPlan, biases: Sequence[ExpectedBias]) -> str:
    """The forecast of bias in a sentence; empty where there is none."""
    told = [one.sentence(plural(plan.table(one.table).unit)) for one in biases]
    told = [f"{one.table}: {words}" if len(plan.released) > 1 else words
            for one, words in zip(biases, told, strict=True) if words]  # fmt: skip
    if not told:
        return ""
    return (
        fill(
            "How much too large or too small, by a forecast from public facts and this plan's noise, right within a "
            f"factor of two: {'; '.join(told)}."
        )
        + "\n"
    )


def _kept(plan: TopDownPlan) -> str:
    lines = [fill(f"- {one.margin}", "  ") for one in plan.invariants] or ["  nothing"]
    said = "Kept exactly, and so not protected at all\n" + "\n".join(lines) + "\n"
    rules = [*map(constraint_words, plan.constraints), *map(relation_words, plan.relations)]
    if rules:
        bound = "\n".join(fill(f"- {words}", "  ") for words in rules)
        said += f"\nAlso kept; data that break them are outside the domain, and cannot be released\n{bound}\n"
    return said


def _earlier(plan: TopDownPlan) -> str:
    if not plan.earlier:
        return ""
    return (
        "Agrees with an earlier release\n"
        + fill(
            "The rows have exactly the counts of an earlier release, in every place of the finest level that both have "
            "(that level and its checksum are in certificate.json, under agrees_with). The guarantee below covers what "
            "this release adds to it. Both together satisfy the composition of their guarantees: the earlier budget is "
            "added to this one."
        )
        + "\n"
    )
