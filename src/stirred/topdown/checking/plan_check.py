"""Checks a TopDown plan against its data before any noise: sizes, expected errors, cost, contradictions.

Expected errors, exposures and the budget follow from the plan alone. Numbers of records and the search for
contradictions read the data, so a check as a whole is confidential.

The forecast of time, memory and disk is a rough model, calibrated on benchmarks/topdown.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred import errors
from stirred._progress import Progress, shown_by, stage
from stirred.errors import listed
from stirred.invariants import Beliefs
from stirred.releases.folder.documents import check_json, code_line, fill, findings_and_stops
from stirred.releases.mechanism import Data
from stirred.semantics import overview, worst_change
from stirred.semantics.sentences.formatting import columns
from stirred.semantics.testing import gaussian_curve
from stirred.spec import Specification
from stirred.spec.exact import bound, display
from stirred.spec.invariant import plural
from stirred.topdown.checking.fit_bias import ExpectedBias, expected_bias
from stirred.topdown.checking.revealing import TopDownRevealing, reveal_topdown
from stirred.topdown.data.counting import Counted
from stirred.topdown.drawing import prepare
from stirred.topdown.estimating.precision import ExpectedError, Target, TargetError, errors_with_targets
from stirred.topdown.fitting.level_problem import separates
from stirred.topdown.fitting.subtrees import CHUNK
from stirred.topdown.fitting.table_fit import two_passes, way_of_fit
from stirred.topdown.measuring import Entry, entries
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify

_VALUES_PER_SECOND = 1.2e7
"""Measured values that are counted, drawn and written in a second, on two cores."""
_FITTED_PER_SECOND = 2.0e7
"""Measured values that are read and fitted in a second."""
_RECORDS_PER_SECOND = 5.0e5
"""Records that are read, counted, and written again in a second."""
_BYTES_PER_VALUE = 0.9
_BYTES_PER_RECORD = 2.0
_BASE = 400_000_000
_BYTES_PER_POSITIVE_CELL = 16 * 6
"""Histograms of data and fit, at two levels each, with what is built beside them."""
_BYTES_PER_HELD_VALUE = 8 * 4
"""As they are read, the next part of them, and what the fit makes of them."""


@dataclass(frozen=True)
class Forecast:
    """Rough cost of the release on a machine of two cores."""

    seconds: float
    memory_bytes: int
    disk_bytes: int


def forecast(counted: Counted, planned: Sequence[Entry]) -> Forecast:
    """The forecast from the numbers of measured values, positive cells and records."""
    values = sum(entry.units * entry.cells for entry in planned)
    positive = sum(len(leaves.cells) for leaves in counted.leaves.values())
    records = sum(int(leaves.counts.sum()) for leaves in counted.leaves.values())
    widest = max(entry.cells for entry in planned)
    held = min(values, max(CHUNK, 64 * widest))
    # Least squares keeps a number for each cell of each unit above the leaves, in a file where a level has many.
    above = [counted.spine.units(level) for level in range(len(counted.spine.levels) - 1)]
    cells = max(table.schema_of.cells for table in counted.plan.released)
    kept = sum(min(units * cells, CHUNK) for units in above) if counted.plan.fit != "level by level" else 0
    return Forecast(
        seconds=3 + records / _RECORDS_PER_SECOND + values / _VALUES_PER_SECOND + values / _FITTED_PER_SECOND,
        memory_bytes=int(_BASE + positive * _BYTES_PER_POSITIVE_CELL + held * _BYTES_PER_HELD_VALUE + 8 * kept),
        disk_bytes=int(values * _BYTES_PER_VALUE + records * _BYTES_PER_RECORD),
    )


def available_memory() -> int | None:
    """Free memory in bytes; None where the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


LEVEL = 0.05
"""Of the test whose power a check prints for each concern."""


@dataclass(frozen=True)
class LevelPlan:
    """How a level of a table will be fitted."""

    table: str
    level: str
    units: int
    passes: int
    kappa: float
    """The sum of all precisions over that of the detailed query: sweeps grow with it; infinite without such a query."""
    way: str
    """Least squares first, or level by level; see :mod:`stirred.topdown.fitting.table_fit`."""


@dataclass(frozen=True)
class ConcernPower:
    """The greatest power of a test about one concern, between nearest files that differ in it alone: of all at that
    distance that keep the invariants, the ones that are told apart best."""

    concern: str
    between: str
    """How many records differ."""
    change: str
    """In what the files differ."""
    rho: float | None
    """What the measurements lose between the two files; None where what is held fixed tells all."""
    power: float
    """Of the best test at level 0.05, with Gaussian noise in place of the discrete one."""


@dataclass(frozen=True, eq=False, repr=False)
class TopDownCheck:
    """The result of checking a plan against its data. Confidential."""

    plan: TopDownPlan
    specification: Specification
    records: Mapping[str, int]
    geounits: Mapping[str, int]
    cells: Mapping[str, int]
    measurements: int
    expected: tuple[ExpectedError, ...]
    targets: tuple[TargetError, ...]
    """Expected errors in the target areas of the plan."""
    levels: tuple[LevelPlan, ...]
    concerns: tuple[ConcernPower, ...]
    revealing: TopDownRevealing
    biases: tuple[ExpectedBias, ...]
    """The forecast of the bias of the finest places, from public facts, of each table whose totals are not kept."""
    forecast: Forecast
    available: int | None
    """Bytes of memory that this machine has free, where it tells."""
    code: str | None = None
    """Ties a release to this check; as confidential as the data."""

    def __repr__(self) -> str:
        """A summary; ``print`` shows the whole page."""
        records = ", ".join(f"{number:,} {name}" for name, number in self.records.items())
        return (
            f"<TopDownCheck, confidential: {records}; rho {display(self.specification.budget.number)}, "
            f"{len(self.stops)} stops; print it to read it all>"
        )

    @property
    def stops(self) -> list[errors.StirredError]:
        """Reasons for which a release would end."""
        needed = self.forecast.memory_bytes
        if self.available is None or needed <= self.available:
            return []
        return [errors.topdown_memory(f"{needed / 1e9:.1f} GB", f"{self.available / 1e9:.1f} GB")]

    open_stops = stops
    """All stops: a TopDown plan cannot allow any."""

    def to_json(self) -> str:
        """The check as JSON. Confidential."""
        fields: dict[str, Any] = {
            "records": dict(self.records),
            "geounits": dict(self.geounits),
            "cells": dict(self.cells),
            "measurements": self.measurements,
            "expected_errors": [asdict(one) for one in self.expected],
            "expected_errors_of_targets": [asdict(one) for one in self.targets],
            "expected_bias": [one.published() for one in self.biases],
            "fit": [asdict(one) for one in self.levels],
            "concerns": [
                {name.replace("power", "power_at_0.05"): value for name, value in asdict(one).items()}
                for one in self.concerns
            ],
            "published_counts_reveal": self.revealing.to_fields(),
            "forecast": asdict(self.forecast),
        }
        return check_json(self.plan, self.specification, self.stops, self.open_stops, fields, self.code)

    def __str__(self) -> str:
        return describe(self)


def check(
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    progress: Progress | None = None,
    sizes: Sequence[int] | None = None,
) -> TopDownCheck:
    """Check a plan against its data; draws nothing. Raises the errors that a release would raise.

    ``sizes`` are typical numbers of records in a finest place, public or guessed, for the forecast of bias.
    """
    with shown_by(progress):
        return _checked(plan, data, sizes)


def _checked(plan: TopDownPlan, data: Data | None, sizes: Sequence[int] | None) -> TopDownCheck:
    counted, known = prepare(plan, data, with_areas=True)
    stage("working out expected errors")
    spine = counted.spine
    planned = entries(plan, spine)
    values = sum(entry.units * entry.cells for entry in planned)
    at_levels, in_targets = errors_with_targets(plan, spine, [Target.of(spine, areas) for areas in counted.areas])
    biases = [expected_bias(known, table, sizes) for table in plan.released]
    ways = {table.name: way_of_fit(plan, spine, table) for table in plan.released}
    return TopDownCheck(
        plan=plan,
        specification=specify(plan),
        records={name: int(leaves.counts.sum()) for name, leaves in counted.leaves.items()},
        geounits={level: spine.units(number) for number, level in enumerate(spine.levels)},
        cells={table.name: table.schema_of.cells for table in plan.released},
        measurements=values,
        expected=at_levels,
        targets=in_targets,
        levels=tuple(
            LevelPlan(
                table.name,
                level,
                spine.units(number),
                1 + two_passes(plan, table, level),
                _kappa(plan, table.name, level),
                ways[table.name],
            )
            for table in plan.released
            for number, level in enumerate(spine.levels)
        ),
        concerns=concern_powers(plan),
        revealing=reveal_topdown(known),
        biases=tuple(one for one in biases if one is not None),
        forecast=forecast(counted, planned),
        available=available_memory(),
    )


def concern_powers(plan: TopDownPlan) -> tuple[ConcernPower, ...]:
    """The power of tests about the usual concerns, each for a change that keeps the invariants."""
    specification = specify(plan)
    found = []
    for exposed in overview(plan.allocation(), plan.unit, rounded=False):
        worst = worst_change(specification, exposed)
        between, rho, power = "none: it is held fixed", None, 1.0
        if worst.change.exists:
            between = f"{_count(worst.records)} {plural(plan.unit) if worst.joint else plan.unit} changed"
            rho, power = float(worst.rho), float(gaussian_curve(worst.rho).power(LEVEL))
        found.append(ConcernPower(str(exposed.concern), between, worst.change.words, rho, power))
    return tuple(found)


def _count(records: Fraction) -> str:
    return {Fraction(1): "one", Fraction(2): "two", Fraction(4): "four"}.get(records, f"{float(records):g}")


def _kappa(plan: TopDownPlan, name: str, level: str) -> float:
    table = plan.table(name)
    weights = {}
    for query in table.queries:
        variance = table.variance_of(level, query, plan.one_place(level))
        # Groups that overlap are fitted as several queries.
        many = len(table.schema_of.families(query.by))
        weights[query.by] = 0.0 if variance is None else many / float(variance)
    schema = table.schema_of
    detailed = sum(w for by, w in weights.items() if not schema.overlapping(by) and separates(schema.groups(by)))
    return sum(weights.values()) / detailed if detailed else math.inf


def describe(check: TopDownCheck) -> str:
    """The page of text that ``print`` shows of a check."""
    parts = [
        "CONFIDENTIAL: computed from the data. Do not publish it.",
        _first_to_hear(check),
        _revealing(check),
        _guarantee(check),
        _sizes(check),
        _errors(check),
        _targets(check),
        _biases(check),
        _fit(check),
        _concerns(check),
        _forecast(check),
        *findings_and_stops(check.specification, check.open_stops),
        "No stops: the data keep every constraint of the plan and no two margins to be kept cross, so "
        "a release would not be refused."
        + (" They keep every relation between tables, and every fit can." if check.plan.relations else "")
        if not check.open_stops
        else "A release of this plan would be refused because of what the lines with STOP say.",
        *code_line(check.code),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(title: str, rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A titled table with numbers, and a note below it."""
    return f"{title}\n{columns(rows, numbers_right=True)}" + (f"\n{fill(note)}" if note else "")


def _first_to_hear(check: TopDownCheck) -> str:
    kept = [str(one.margin) for one in check.plan.invariants]
    if not kept:
        return "The plan has no invariants: nothing is published exactly."
    lines = [fill("Not protected at all, since it is published exactly as it is:")]
    lines += [fill(f"- {words}", "  ") for words in kept]
    return "\n".join(lines)


def _revealing(check: TopDownCheck) -> str:
    found = check.revealing
    if not found.margins:
        return ""
    rows = [["published counts of", *found.margins[0].few]]
    rows += [[one.margin, *(f"{many:,}" for many in one.few.values())] for one in found.margins]
    lines = [
        fill(
            "What the published counts alone reveal (anyone can compute it from a release; no noise hides it and it is "
            "no part of rho)"
        ),
        columns(rows, numbers_right=True),
    ]
    lines += [
        fill(f"- {one.margin} fixes all attributes of {one.determined_records:,} of {one.records:,} records.", "  ")
        for one in found.margins
        if one.determined_records
    ]
    lines += [fill(f"- {one.words} (Frechet bounds)." + _believed(one.beliefs), "  ") for one in found.pairs]
    return "\n".join(lines)


def _believed(found: Beliefs) -> str:
    if not found.laws:
        return ""
    shares = {one.law: f"{100 * one.guessed_share:.1f}%" for one in found.laws}
    rough = f" (rough: Markov chains of {found.disagreeing:,} units do not agree)" if found.disagreeing else ""
    return (
        " Who knows these counts alone, and where a record is counted, guesses its group rightly for "
        f"{shares['hypergeometric']} of the records if every assignment is equally likely (hypergeometric law), and "
        f"for {shares['uniform']} if every table is (uniform law){rough}."
    )


def _guarantee(check: TopDownCheck) -> str:
    rho = bound(check.specification.budget.number)
    return fill(
        f"Guarantee: zero-concentrated differential privacy with rho = {rho}, per {check.plan.unit}, between datasets "
        f"that agree on all of the above. {check.specification.budget.conversion}."
    )


def _sizes(check: TopDownCheck) -> str:
    rows = [(level, f"{units:,}") for level, units in check.geounits.items()]
    rows.append(("all levels", f"{sum(check.geounits.values()):,}"))
    tables = [
        f"{name}: {check.records[name]:,} records, {cells:,} cells in each geounit"
        for name, cells in check.cells.items()
    ]
    others = [
        f"{name}: {records:,} records, counted but not released"
        for name, records in check.records.items()
        if name not in check.cells
    ]
    measured = f"{check.measurements:,} noisy measurements in all"
    return "\n".join([_table("Geounits", rows), *tables, *others, measured])


def _errors(check: TopDownCheck) -> str:
    rows = [("table", "level", "query", "cells", "measured", "combined")]
    for one in check.expected:
        together = "-" if one.combined is None else _number(one.combined)
        rows.append((one.table, one.level, one.query, f"{one.cells:,}", _number(one.measured), together))
    return _table(
        "Expected standard error of a cell: as measured, and of the best unbiased estimate from all measurements",
        rows,
        "The last column is the median over the units of a level; stirred estimate gives such estimates. Released "
        "counts are also kept nonnegative, so small counts have smaller errors than this, and are biased upwards.",
    )


def _targets(check: TopDownCheck) -> str:
    if not check.targets:
        return ""
    rows = [
        ("target", "table", "query", "areas", "on spine", "error", "off spine", "units", "most", "error", "largest")
    ]
    for one in check.targets:
        off = one.areas - one.on_spine
        rows.append(
            (
                one.target,
                one.table,
                one.query,
                f"{one.areas:,}",
                f"{one.on_spine:,}",
                _or_none(one.on_median),
                f"{off:,}",
                f"{one.units_median:,.0f}" if off else "-",
                f"{one.units_largest:,}" if off else "-",
                _or_none(one.off_median),
                _or_none(one.off_largest),
            )
        )
    return _table(
        "Expected standard error of a cell in target areas, of the best unbiased estimate from all measurements",
        rows,
        "Errors are medians over areas, and the largest; every area is worked out. An area is on the spine if it is "
        "one unit of it. Else it takes several: the median and the most units that are added or subtracted. stirred "
        "spine proposes a spine for such areas (stirred docs spines).",
    )


def _biases(check: TopDownCheck) -> str:
    """The forecast of bias; empty where no table has one."""
    if not check.biases:
        return ""
    rows = [("table", "records in the place", "bias", "give or take")]
    for bias in check.biases:
        rows += [(bias.table, one.words, f"{one.bias:+.1f}", f"{one.standard_error:.1f}") for one in bias.classes]
    level = check.biases[0].level
    return _table(
        f"Forecast of the bias of released totals of a {level}, by its true size",
        rows,
        f"A forecast that reads no record: {' and '.join(sorted({one.sizes for one in check.biases}))}, with the "
        "plan's noise and fitted as a release is (--sizes 0,5,40,150 gives typical sizes). It is usually right within "
        "a factor of two. Values of stirred estimate have no bias, but for a small place a larger error.",
    )


_WAYS = {
    "least squares first": "least squares first; every level is fitted to the best unbiased values from its own "
    "measurements and all below it",
    "level by level": 'level by level; the plan says fit = "level by level", and each level is fitted to its own '
    "measurements only, which makes the levels above the finest less accurate",
}


def _fit(check: TopDownCheck) -> str:
    rows = [("table", "level", "passes", "kappa")]
    rows += [(one.table, one.level, str(one.passes), _number(one.kappa)) for one in check.levels]
    text = _table("Fit", rows)
    for table, way in {one.table: one.way for one in check.levels}.items():
        text += "\n" + fill(f"{table}: {_WAYS.get(way, way)}.", "  ")
    hard = [one for one in check.levels if one.kappa > 1000]
    if hard:
        text += "\n" + fill(
            f"At {listed([f'{one.level} ({one.table})' for one in hard])} the detailed query has so little of the "
            "budget that the fit is slow and single cells are hardly known: give it a larger share."
        )
    if check.plan.passes != "auto":
        text += "\n" + fill(
            f'The plan asks for passes = "{check.plan.passes}". One pass, where the total is measured well, biases '
            "the totals of small units upwards; two passes, where it is not, make totals less accurate."
        )
    return text


def _concerns(check: TopDownCheck) -> str:
    rows = [("what an attacker asks", "between", "rho", f"power at {LEVEL:g}")]
    rows += [
        (one.concern, one.between, "-" if one.rho is None else _number(one.rho), f"{one.power:.3f}")
        for one in check.concerns
    ]
    alone = f"one {check.plan.unit} changed"
    joint = [f"- {one.concern}: {one.change}." for one in check.concerns if one.between != alone]
    title = (
        f"What the measurements reveal about one {check.plan.unit} if all else is known: power of the best test with "
        f"false-alarm\nprobability {LEVEL:g} (a power of {LEVEL:g} is blind guessing)"
    )
    return "\n".join([_table(title, rows), *_joint(joint), fill("stirred explain says more.")])


def _joint(changes: list[str]) -> list[str]:
    if not changes:
        return []
    why = (
        "Where changing one record alone would break an invariant, several change together. Of all changes that keep "
        "the invariants and that no record could make alone, these are told apart best:"
    )
    return [fill(why), *(fill(one, "  ") for one in changes)]


def _forecast(check: TopDownCheck) -> str:
    cost = check.forecast
    return (
        f"Forecast of the release: about {cost.seconds:.0f} s on two cores, {cost.memory_bytes / 1e9:.1f} GB of "
        f"memory, {cost.disk_bytes / 1e6:,.0f} MB of disk."
    )


def _or_none(value: float | None) -> str:
    return "-" if value is None else _number(value)


def _number(value: float) -> str:
    if math.isinf(value):
        return "unknown"
    return f"{value:,.3f}" if value < 1000 else f"{value:,.0f}"
