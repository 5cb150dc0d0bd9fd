"""What analysts of a TopDown release need to know, for its report.

The accuracy of a measurement follows from its variance, which measurements.json states exactly. Keep in mind: released
rows are biased where counts are small, and the measurements are not; all the same the rows are closer there.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from stirred._received import Unacceptable, inside, parse_json, read_text
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.topdown.plan import TopDownPlan

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
    yield AnalystNote(
        "corrected",
        f"every other table. {WHICH_VALUES}",
    )
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
        for one in stated if isinstance(stated, list) else stated["measurements"]:
            deviation = math.sqrt(Fraction(str(one["variance"])))
            yield str(one["table"]), str(one["level"]), str(one["query"]), f"{deviation:,.3g}"
    except (OSError, Unacceptable, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return
