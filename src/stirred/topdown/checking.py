"""Checks a TopDown plan against its data before any noise: sizes, expected errors, cost, contradictions.

Expected errors, exposures and the budget follow from the plan alone. Numbers of records and the search for
contradictions read the data, so a check as a whole is confidential.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.releases.folder.documents import check_json
from stirred.releases.mechanism import Data
from stirred.releases.progress import Progress, Silent
from stirred.semantics import overview, worst_change
from stirred.semantics.testing import gaussian_curve
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.spec.invariant import plural
from stirred.topdown.drawing import prepare
from stirred.topdown.fit_bias import ExpectedBias, expected_bias
from stirred.topdown.fitting import two_passes, way_of_fit
from stirred.topdown.forecast import Forecast, available_memory, forecast
from stirred.topdown.measuring import entries
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.precision import ExpectedError, errors_with_targets
from stirred.topdown.problems import separates
from stirred.topdown.revealing import TopDownRevealing, reveal_topdown
from stirred.topdown.specifying import specify
from stirred.topdown.target_areas import Target, TargetError

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
    """Least squares first, or level by level; see :data:`stirred.topdown.fitting.WAYS`."""


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

    @property
    def open_stops(self) -> list[errors.StirredError]:
        """All stops: a TopDown plan cannot allow any."""
        return self.stops

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
                {
                    "concern": one.concern,
                    "between": one.between,
                    "change": one.change,
                    "rho": one.rho,
                    "power_at_0.05": one.power,
                }
                for one in self.concerns
            ],
            "published_counts_reveal": self.revealing.to_fields(),
            "forecast": asdict(self.forecast),
        }
        return check_json(self.plan, self.specification, self.stops, self.open_stops, fields, self.code)

    def __str__(self) -> str:
        from stirred.topdown.check_text import describe

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
    progress = progress or Silent()
    counted, exact, _ = prepare(plan, data, progress, with_areas=True)
    progress.stage("working out expected errors")
    spine = counted.spine
    planned = entries(plan, spine)
    values = sum(entry.units * entry.cells for entry in planned)
    at_levels, in_targets = errors_with_targets(plan, spine, [Target.of(spine, areas) for areas in counted.areas])
    biases = [expected_bias(plan, spine, exact, table, sizes) for table in plan.released]
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
        revealing=reveal_topdown(plan, spine, exact),
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
