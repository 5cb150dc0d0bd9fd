"""Fits the measurements of a received release again, forecasts its bias again, and compares both with what it has.

Fit and forecast are functions of what is in the folder: of the measurements, the values of the invariants, the plan and
public facts. Both are sums of floating-point numbers, whose last digits differ between machines, and a tie that is
broken otherwise moves a record. So what is equal holds, what is far apart is contradicted, and between the two nothing
is decided.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np

from stirred.margins.spine import Spine
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.progress import Silent
from stirred.releases.verdicts import LAST_DIGITS, Verdict, not_compared
from stirred.topdown.constraints import Counts
from stirred.topdown.counting import Counted
from stirred.topdown.finishing import fit_tables
from stirred.topdown.fit_bias import ExpectedBias, expected_bias, has_forecast, simulated_records
from stirred.topdown.fitting import BY_LEVEL, FALLBACKS, LEAST_SQUARES, TOO_WIDE, LevelReport
from stirred.topdown.measuring import Measurements
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.problems import Histograms
from stirred.topdown.work_folder import MEASUREMENTS

MOVED = Fraction(1, 20)
"""The share of records that ties may move: noise alone moves far more."""
RECORDS, TIMES = 20_000_000, 4
"""Records that are simulated again for a forecast: so many, or so many times those that were released."""
_FIT = "the released rows are the fit of the measurements, and the certificate reports how it went"
_FORECAST = "the certificate has the forecast of bias of every table whose totals are not kept, as it is computed again"


def fit_verdicts(release: ReleaseFolder, counted: Counted, exact: Sequence[Counts]) -> list[Verdict]:
    """Whether the released rows are what fitting the measurements gives, and the certificate reports it so."""
    plan, spine, stated = counted.plan, counted.spine, release.certificate["fit"]
    if not _is_report(release, plan, spine):
        return [Verdict(False, "the certificate reports the fit of every table and level")]
    if plan.earlier:
        return [not_compared(f"whether {_FIT}", "the earlier releases that it agrees with are not in the folder")]
    found = fit_tables(plan, spine, exact, Measurements(release.path / MEASUREMENTS), Silent())
    rows = [_moved(counted.leaves[table.name], found[table.name][0]) for table in plan.released]
    reports = [report.published() for table in plan.released for report in found[table.name][1]]
    if not any(rows) and json.dumps(stated) == json.dumps(reports):
        return [Verdict(True, _FIT)]
    if not release.by_this_version:
        return [not_compared(f"whether {_FIT}", "another version made the fit")]
    if max(rows) > MOVED or not all(_alike(*pair) for pair in zip(stated, reports, strict=True)):
        return [Verdict(False, _FIT)]
    return [not_compared("the last digits of the fit, and records that ties move", LAST_DIGITS)]


def _moved(one: Histograms, other: Histograms) -> Fraction:
    """The share of records that must be moved, added or removed to make one table of the other."""
    keys = [
        np.repeat(np.arange(each.units, dtype=np.int64), np.diff(each.starts)) * (1 << 31) + each.cells
        for each in (one, other)
    ]
    places, at = np.unique(np.concatenate(keys), return_inverse=True)
    differing = np.bincount(at, np.concatenate([one.counts, -other.counts]), len(places))
    return Fraction(int(np.abs(differing).sum()), max(1, 2 * int(other.counts.sum())))


def _alike(stated: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether two reports of the fit of a level are the same but for what last digits change."""
    exact = [{**one, "most_sweeps": 0, "worst_gap": 0, "kappa": 0, "fallbacks": []} for one in (stated, found)]
    return (
        json.dumps(exact[0]) == json.dumps(exact[1])
        and abs(len(stated["fallbacks"]) - len(found["fallbacks"])) <= MOVED * stated["units"]
        and all(_near(stated[name], found[name], most) for name, most in (("kappa", 1e-6), ("most_sweeps", 0.5)))
        and stated["worst_gap"] <= max(10 * found["worst_gap"], 1e-12)
    )


def _near(stated: float | None, found: float | None, most: float) -> bool:
    if stated is None or found is None:
        return stated == found
    return abs(stated - found) <= most * abs(found)


def _is_report(release: ReleaseFolder, plan: TopDownPlan, spine: Spine) -> bool:
    """Whether the reports of the fit are of the plan's tables and levels, and have no fields or words of their own."""
    fit = release.certificate["fit"]
    expected = [
        (table.name, level, spine.units(at)) for table in plan.released for at, level in enumerate(spine.levels)
    ]
    if not isinstance(fit, list) or [(one["table"], one["level"], one["units"]) for one in fit] != expected:
        return False
    known = {field.name for field in fields(LevelReport)}
    if not release.by_this_version and "way" not in fit[0]:  # before 0.6 there was one way, and it was not stated
        known -= {"way"}
    for one in fit:
        if not isinstance(one["fallbacks"], list) or len(one["fallbacks"]) > 3 * one["units"]:
            return False
        numbers = [one["passes"], one["most_sweeps"], one["worst_gap"], 0 if one["kappa"] is None else one["kappa"]]
        at = spine.levels.index(one["level"])
        above = set(spine.names[max(0, at - 1)].to_pylist()) if one["fallbacks"] else set()
        if set(one) != known or not all(_is_modest(number) for number in numbers):
            return False
        if "way" in one and one["way"] not in ((BY_LEVEL,) if plan.fit == BY_LEVEL else (LEAST_SQUARES, TOO_WIDE)):
            return False
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in one["fallbacks"]):
            return False
        if not all(isinstance(name, str) and name in above and words in FALLBACKS for name, words in one["fallbacks"]):
            return False
    return True


def _is_modest(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < 10**15


def bias_verdict(
    release: ReleaseFolder, counted: Counted, exact: Sequence[Counts]
) -> tuple[list[ExpectedBias], Verdict]:
    """The forecasts of bias that the certificate states, and whether they are those that its plan has."""
    plan, stated = counted.plan, release.certificate.get("expected_bias")
    if stated is None and not release.by_this_version:
        return [], not_compared("the forecast of bias", "another version wrote none")
    tables = [table for table in plan.released if has_forecast(plan, counted.spine, table)]
    try:
        found = [ExpectedBias.from_published(one) for one in stated or []]
    except (TypeError, ValueError, KeyError, AttributeError):
        return [], Verdict(False, _FORECAST)
    if not isinstance(stated, list) or [one.table for one in found] != [table.name for table in tables]:
        return [], Verdict(False, _FORECAST)
    records = {table.name: int(counted.leaves[table.name].counts.sum()) for table in tables}
    for table in tables:
        simulated = simulated_records(plan, counted.spine, table, records[table.name])
        if simulated > max(RECORDS, TIMES * records[table.name]):
            why = f"computing it again would take {simulated:,} simulated records"
            return found, not_compared("the numbers of the forecast of bias", why)
    again = [expected_bias(plan, counted.spine, exact, table, records=records[table.name]) for table in tables]
    made = [one.published() for one in again if one is not None]
    if json.dumps(made) == json.dumps(stated):
        return found, Verdict(True, _FORECAST)
    if not release.by_this_version:
        return found, not_compared("the numbers of the forecast of bias", "another version computed them")
    if not all(_same_forecast(*pair) for pair in zip(stated, made, strict=True)):
        return [], Verdict(False, _FORECAST)
    return found, not_compared("the last digits of the forecast of bias", LAST_DIGITS)


def _same_forecast(stated: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether two forecasts are of the same places, and differ by no more than the simulation leaves open."""
    numbers = {"bias": 0, "standard_error": 0}
    return (
        json.dumps({**stated, "classes": [{**one, **numbers} for one in stated["classes"]]})
        == json.dumps({**made, "classes": [{**one, **numbers} for one in made["classes"]]})
        and all(
            abs(one[name] - other[name]) <= other["standard_error"] + 0.01
            for one, other in zip(stated["classes"], made["classes"], strict=True)
            for name in numbers
        )
    )  # fmt: skip
