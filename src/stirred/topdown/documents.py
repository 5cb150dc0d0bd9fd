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
from stirred._sentences import sentences_of
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

say = sentences_of("topdown")
_LISTED = 60
"""Queries whose noise is listed; a plan may have hundreds."""


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, the noise of each query, and what to type."""
    plan = TopDownPlan.from_published(release.certificate["plan"])
    kept = "; ".join(str(one.margin) for one in plan.invariants)
    yield AnalystNote("exact", f"{kept}." if kept else say("exact_none"))
    yield AnalystNote("corrected", say("corrected", which_values=say("which_values")))
    yield AnalystNote("unusable", say("unusable"))
    if rows := tuple(_noise(release)):
        yield AnalystNote("accuracy", say("noise"), (tuple(say("noise_head").split("|")), *rows[:_LISTED]))
        if len(rows) > _LISTED:
            yield AnalystNote("accuracy", say("more_noise", number=len(rows) - _LISTED))
        yield AnalystNote("accuracy", say("combined"))
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
    which = say("which_values")
    published = [f"tables/{one.name}.csv" for one in plan.publish]
    parts = [
        titled(say("title", units=units), specification),
        origin_section(plan),
        fill(say("measured_by", who=plan.measured_by)) + "\n" if plan.measured_by is not None else "",
        fill(say("measured", levels=listed(plan.spine.all_levels), fitted=_fitted(ways))) + "\n",
        files_section(tables, [*published, say("measurements"), say("invariants")]),
        _kept(plan),
        f"{say('earlier')}\n{fill(say('agrees'))}\n" if plan.earlier else "",
        guarantee_section(specification),
        fill(say("how_to_read", unit=plan.unit)) + "\n",
        fill(say("conclusions", which_values=f"{which[0].lower()}{which[1:]}")) + "\n",
        _biased(plan, biases),
        findings_section(specification),
        context_section(plan.context),
    ]
    return "\n".join(part for part in parts if part)


def _fitted(ways: Mapping[str, str]) -> str:
    """How the tables were fitted, in a sentence without its end."""
    first = [table for table, way in ways.items() if way == LEAST_SQUARES]
    if not first:
        return say("fitted")
    others = [table for table in ways if table not in first]
    return say("fitted_sums") + (say("fitted_apart", tables=listed(others)) if others else "")


def _biased(plan: TopDownPlan, biases: Sequence[ExpectedBias]) -> str:
    """The forecast of bias in a sentence; empty where there is none."""
    told = [one.sentence(plural(plan.table(one.table).unit)) for one in biases]
    told = [f"{one.table}: {words}" if len(plan.released) > 1 else words
            for one, words in zip(biases, told, strict=True) if words]  # fmt: skip
    return fill(say("biased", biases="; ".join(told))) + "\n" if told else ""


def _kept(plan: TopDownPlan) -> str:
    lines = [fill(f"- {one.margin}", "  ") for one in plan.invariants] or [f"  {say('nothing_kept')}"]
    said = "\n".join([say("kept"), *lines]) + "\n"
    rules = [*map(constraint_words, plan.constraints), *map(relation_words, plan.relations)]
    if rules:
        bound = "\n".join(fill(f"- {words}", "  ") for words in rules)
        said += f"\n{say('also_kept')}\n{bound}\n"
    return said
