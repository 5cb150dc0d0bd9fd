"""Estimates as a picture: each with its interval, beside what the released rows give without correction."""

from __future__ import annotations

import math

from stirred import errors
from stirred.estimates import Answers, Estimates
from stirred.semantics.pictures.lines_and_bars import Interval, Intervals

MOST = 60
"""Estimates that one picture shows."""


def interval_picture(found: Answers | Estimates, confidence: float = 0.95, guarantee: str = "") -> Intervals:
    """The first estimates with their intervals; those without an estimate are left out. ``guarantee`` is that of the
    release that they are made from."""
    frame = found.to_frame(confidence)
    names = frame.columns[: frame.columns.index("estimate")]
    shown = []
    for row in frame.rows(named=True):
        beside = row.get("naive", row["estimate"])
        numbers = row["lower"], row["estimate"], row["upper"], beside
        if all(number is not None and math.isfinite(number) for number in numbers):
            shown.append(Interval(", ".join(str(row[name]) for name in names) or "all", *numbers))
    if not shown:
        raise errors.nothing_to_draw("no estimate here has a finite interval", "Leave --figures out.")
    measure = found.measure if isinstance(found, Answers) else "count"
    left = len(frame) - min(len(shown), MOST)
    return Intervals(
        "estimates",
        f"Estimates with {100 * confidence:g}% intervals",
        f"{measure}, table {found.table}",
        measure,
        tuple(shown[:MOST]),
        "estimate",
        "released rows, uncorrected" if "naive" in frame.columns else "estimate again",
        "Each interval by itself contains the true number about as often as it says, or more often."
        + (f" {left:,} more are not shown." if left else "")
        + "".join(f" {remark}" for remark in (found.remarks if isinstance(found, Answers) else ())),
        guarantee,
    )
