"""Writes README.txt of a TopDown release, and what its report tells analysts.

The accuracy of a measurement follows from its variance, which measurements.json states exactly. Keep in mind: released
rows are biased where counts are small, and the measurements are not; all the same the rows are closer there.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from stirred._bounded_reading import Unacceptable, inside, parse_json, read_text
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
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.spec import Specification
from stirred.spec.invariant import plural
from stirred.topdown.checking.fit_bias import ExpectedBias
from stirred.topdown.data.constraints import constraint_words
from stirred.topdown.fitting.relations import relation_words
from stirred.topdown.fitting.table_fit import LEAST_SQUARES
from stirred.topdown.plan.fields import TopDownPlan

WHICH_VALUES = (
    "The released rows add up and have no negative counts. But for what is kept exactly, that makes small counts too "
    "large on average and large ones too small; for a single small place or count they are closer to the truth all the "
    "same, as a rule. stirred estimate gives unbiased estimates from the measurements, with intervals: closer for the "
    "largest places and for means over many small ones, and which is closer in between depends on the plan."
)
"""What is known of the two kinds of numbers (docs/estimates.md); no figure, since those hold for one plan only."""

_LISTED = 60
"""Queries whose noise is listed; a plan may have hundreds."""


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, the noise of each query, and what to type."""
    plan = TopDownPlan.from_published(release.certificate["plan"])
    kept = "; ".join(str(one.margin) for one in plan.invariants)
    yield AnalystNote("exact", f"{kept}." if kept else "no table: nothing is kept exactly.")
    yield AnalystNote("corrected", f"every other table. {WHICH_VALUES}")
    yield AnalystNote(
        "unusable",
        "tables by columns that no query crosses: the rows show some relation between them, which the data did not "
        "determine. Nor do the rows tell about any single record: they are not records of real units.",
    )
    if rows := tuple(_noise(release)):
        words = "The noise of each measured count: two of three are within one standard deviation of the truth."
        head = ("table", "level", "query", "standard deviation of a count")
        yield AnalystNote("accuracy", words, (head, *rows[:_LISTED]))
        if len(rows) > _LISTED:
            yield AnalystNote("accuracy", f"{len(rows) - _LISTED:,} more queries are listed in measurements.json.")
        words = "Estimates combine all measurements of a place, so they are more accurate than any single one of them."
        yield AnalystNote("accuracy", words)
    yield AnalystNote("command", f"stirred estimate FOLDER {_question(plan)}")


def _question(plan: TopDownPlan) -> str:
    """What to ask first: one attribute at the finest level above the leaves, where totals alone may be exact."""
    level = plan.spine.all_levels[-2:][0]
    table = plan.released[0]
    by = next((query.by[0] for query in table.queries if query.by), None)
    by = by or next((one.name for one in table.attributes), None)
    return " ".join(shlex.quote(one) for one in ("--level", level, *(() if by is None else ("--by", by))))


def _noise(release: ReleaseFolder) -> Iterator[tuple[str, ...]]:
    """Table, level, query and standard deviation of each measurement, as measurements.json states them."""
    try:
        stated: Any = parse_json(read_text(inside(release.path, "measurements/measurements.json")))
        for one in stated:
            deviation = math.sqrt(Fraction(str(one["variance"])))
            yield str(one["table"]), str(one["level"]), str(one["query"]), f"{deviation:,.3g}"
    except (OSError, Unacceptable, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return


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
        _paragraph(
            f"Counts of every query were measured with exact discrete Gaussian noise at the levels "
            f"{listed(plan.spine.all_levels)}. {_fitted(ways)}; the released rows are those tables. They are not "
            "records of real units."
        ),
        files_section(tables, [*(f"tables/{one.name}.csv" for one in plan.publish), *folders]),
        _kept(plan),
        _earlier(plan),
        guarantee_section(specification),
        _paragraph(
            "How to read it: it holds for the whole procedure, measurements and fit together, between datasets that "
            "agree on what is kept exactly. The fit reads those values as they are, so without this condition no "
            "finite budget holds: anyone who sees the release knows them. Under it, what anyone learns by a test or "
            f"a change of belief about one {plan.unit} is bounded by rho; stirred explain gives the numbers."
        ),
        _paragraph(f"For conclusions about places and groups: {WHICH_VALUES[0].lower()}{WHICH_VALUES[1:]}"),
        _biased(plan, biases),
        findings_section(specification),
        context_section(plan.context),
    ]
    return "\n".join(part for part in parts if part)


def _paragraph(words: str) -> str:
    return fill(words) + "\n"


def _measured_by(plan: TopDownPlan) -> str:
    if plan.measured_by is None:
        return ""
    return _paragraph(
        f"The measurements were not drawn for this release. They are public, and were drawn by {plan.measured_by}. The "
        "guarantee below is theirs, as the variances that they state imply it; whether it holds for the data that they "
        "had cannot be seen here. This release reads what is public, and spends nothing."
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
    return _paragraph(
        "How much too large or too small, by a forecast from public facts and this plan's noise, right within a factor "
        f"of two: {'; '.join(told)}."
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
    return "Agrees with an earlier release\n" + _paragraph(
        "The rows have exactly the counts of an earlier release, in every place of the finest level that both have "
        "(that level and its checksum are in certificate.json, under agrees_with). The guarantee below covers what "
        "this release adds to it. Both together satisfy the composition of their guarantees: the earlier budget is "
        "added to this one."
    )
