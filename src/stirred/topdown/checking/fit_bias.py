"""Forecasts the bias that nonnegative fits have at the finest level, from the plan and public facts only.

Tables that are nonnegative and add up to their parents cannot be unbiased: small places come out too large, and large
ones too small by as much. How much follows from the noise of the finest level and from tables like those that are
fitted. So tables are made, noise is drawn for them as the plan says, and they are fitted as a release fits its finest
level; the bias is the mean error of the totals of places of like size.

How tables are made: places that published counts show to be empty are; with others a third of all places has nobody,
and the sizes of the rest are exponential, or sizes are as typed. Attributes are independent, and the r-th value of each
is in proportion to r^-3.5. The parents' tables are taken to be known, and constraints other than those zeros are left
out. So it is a forecast and no more. (Tables of the release itself would be worse: fitted tables have fewer small cells
than true ones, and that halves the bias that is found.)

The invariant a reader must know: nothing here reads confidential data, and nothing here is noise of a release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.spine import Spine
from stirred.noise import SeededSource, discrete_gaussian
from stirred.topdown.data.constraints import Kept, Known
from stirred.topdown.data.histograms import Histograms, added_up, marginal_by
from stirred.topdown.fitting.level_problem import Allowed
from stirred.topdown.fitting.table_fit import children_of
from stirred.topdown.measuring import entries
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TableSection

EDGES = (0, 1, 10, 100)
"""Where the classes of sizes begin."""

EMPTY = 3
"""One in so many made places has nobody."""

COMMON = 3.5
"""The exponent of how common the values of an attribute are, in the order of the plan. Chosen so that forecasts are
near what was measured on the blocks of Rhode Island, with 16 kinds of person, and of a generated state, with 2,016."""

MEAN_SIZE = 40
"""Records in a made place on average, where no invariant tells it: about that of a census block."""

_VALUES = 1_500_000
_MOST_PLACES = 900
_LEAST_PLACES = 60
_TOO_WIDE = 1 << 18
_KEY = 20_200_401

Sizes = Sequence[int]


@dataclass(frozen=True)
class SizeClass:
    """Places of like size, and the mean error of their fitted totals."""

    least: int
    most: int | None
    """None: no most."""
    places: int
    bias: float
    standard_error: float
    """Of the bias as it was simulated."""

    @property
    def words(self) -> str:
        """Which places these are."""
        if self.most == 0:
            return "nobody"
        return f"{self.least:,} and more" if self.most is None else f"{self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class ExpectedBias:
    """The bias of the totals of the finest places of one table, by their size."""

    table: str
    level: str
    sizes: str
    """Which tables it was worked out for."""
    classes: tuple[SizeClass, ...]

    def published(self) -> dict[str, Any]:
        """The forecast as a certificate states it."""
        each = [
            {"least": one.least, "most": one.most, "places": one.places, "bias": round(one.bias, 2),
             "standard_error": round(one.standard_error, 2)}
            for one in self.classes
        ]  # fmt: skip
        return {"table": self.table, "level": self.level, "sizes": self.sizes, "classes": each}

    @classmethod
    def from_published(cls, fields: Mapping[str, Any]) -> ExpectedBias:
        """The forecast that a certificate states; raises ``ValueError`` if it is none."""
        if set(fields) != {"table", "level", "sizes", "classes"} or fields["sizes"] not in SIZES:
            raise ValueError("not a forecast of bias")
        classes = tuple(SizeClass(**one) for one in fields["classes"])
        numbers = [number for one in classes for number in (one.bias, one.standard_error)]
        whole = [number for one in classes for number in (one.least, one.most or 0, one.places)]
        if not all(isinstance(one, float | int) and math.isfinite(one) for one in numbers) or not all(
            isinstance(one, int) for one in whole
        ):
            raise ValueError("not a forecast of bias")
        return cls(str(fields["table"]), str(fields["level"]), str(fields["sizes"]), classes)

    def sentence(self, unit: str) -> str:
        """What to expect of the smallest and of the largest places; empty if there is nothing to say."""
        told = []
        for one in (self._class(1), self._class(100)):
            if one is not None:
                size = f"fewer than 10 {unit}" if one.least == 1 else f"100 {unit} and more"
                error = f"too {'large' if one.bias > 0 else 'small'} by about {abs(one.bias):.1f}"
                told.append(f"a {self.level} of {size} {error}")
        return " and ".join(told)

    def _class(self, least: int) -> SizeClass | None:
        clear = [one for one in self.classes if one.least == least and abs(one.bias) > 2 * one.standard_error]
        return clear[0] if clear else None


MADE, TYPED = "simulated records", "simulated records in places of the sizes given"
SIZES = (MADE, TYPED)


def kept_totals(plan: TopDownPlan, table: TableSection) -> bool:
    """Whether the totals of the finest places are kept exactly, so that they have no bias."""
    agreed = [one.table for one in plan.earlier]
    leaf = plan.spine.levels[-1]
    return table.name in agreed or any(one.table == table.name and one.level == leaf for one in plan.invariants)


def has_forecast(plan: TopDownPlan, spine: Spine, table: TableSection) -> bool:
    """Whether there is a forecast for a table: its totals are not kept exactly, and it can be simulated."""
    return _sample(plan, spine, table) is not None


def simulated_records(plan: TopDownPlan, spine: Spine, table: TableSection, records: int) -> int:
    """About how many records a forecast makes; a geography of a few large places is simulated many times over."""
    sample = _sample(plan, spine, table)
    return 0 if sample is None else records * len(sample.units) // spine.leaves


def expected_bias(
    known: Known, table: TableSection, sizes: Sizes | None = None, records: int | None = None
) -> ExpectedBias | None:
    """The forecast; None where totals are kept exactly, or a table has too many cells to simulate.

    ``sizes`` are numbers of records in finest places that are typical: public ones, or a guess. ``records`` is the
    number of all records, if that is public; without it an invariant tells it, or places have :data:`MEAN_SIZE` on
    average.
    """
    if sizes is not None and (not sizes or min(sizes) < 0 or max(sizes) > 10**7 or not any(sizes)):
        raise errors.parameter_out_of_range("sizes", list(sizes)[:5], "whole numbers from 0 on, and one above 0")
    plan, spine = known.plan, known.spine
    sample = _sample(plan, spine, table)
    if sample is None:
        return None
    source = SeededSource(_KEY)
    closed = np.zeros(len(sample.units), dtype=np.bool_)
    for mask in sample.kept(known, table).allowed:
        closed |= ~mask.allowed.any(axis=1)
    pairs = zip(plan.invariants, known.exact, strict=True)
    told = [int(values.sum()) for one, values in pairs if one.table == table.name]
    told = [records] if records is not None else told
    drawn = _typical(closed, max(1, told[0]) / spine.leaves if told else MEAN_SIZE, sizes, source)
    truth = _made_table(table, drawn, source)
    here = Kept((), (Allowed(np.zeros(table.schema_of.cells, dtype=np.int32), ~closed[:, None]),))
    return _simulated(plan, sample, table, here, truth, source, TYPED if sizes is not None else MADE)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some of the lowest parents with all their leaves, as a geography of its own."""

    spine: Spine
    units: NDArray[np.int64]
    """Which leaf of the whole geography each of its leaves is."""

    def kept(self, known: Known, table: TableSection) -> Kept:
        """What invariants of the finest level say of the leaves."""
        plan, leaf = known.plan, known.plan.spine.levels[-1]
        chosen = [(one, values[self.units]) for one, values in zip(plan.invariants, known.exact, strict=True)
                  if one.level == leaf]  # fmt: skip
        small = plan.model_copy(update={"invariants": tuple(one for one, _ in chosen)})
        here = Known(small, self.spine, tuple(values for _, values in chosen))
        return here.kept(table, len(self.spine.levels) - 1)


def _sample(plan: TopDownPlan, spine: Spine, table: TableSection) -> _Sample | None:
    """Parents at even distances among those of the geography, some of them several times where there are few."""
    groups = sum(one.cells for one in entries(plan, spine) if (one.table, one.level) == (table.name, spine.levels[-1]))
    if kept_totals(plan, table) or groups > _TOO_WIDE or table.schema_of.cells > _TOO_WIDE:
        return None
    wanted = min(max(_VALUES // groups, _LEAST_PLACES), _MOST_PLACES)
    if len(spine.levels) == 1:
        units = _spaced(spine.leaves, wanted)
        return _Sample(Spine(spine.levels, (_numbered(len(units)),), ()), units)
    starts = spine.first_child[-1]
    parents = _spaced(len(starts) - 1, max(1, round(wanted / float(np.diff(starts).mean()))))
    widths = np.diff(starts)[parents]
    if widths.sum() * groups > 20 * _VALUES:
        return None
    units = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in parents])
    one, edges = np.array([0, 1]), np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    above = len(spine.levels) - 2  # levels above the parents have one unit each
    numbers = [*[1] * above, len(parents), len(units)]
    first_child = [*[one] * max(0, above - 1), *([np.array([0, len(parents)])] if above else []), edges]
    return _Sample(Spine(spine.levels, tuple(_numbered(number) for number in numbers), tuple(first_child)), units)


def _numbered(units: int) -> pa.Array:
    return pa.array([str(number) for number in range(units)])


def _spaced(units: int, wanted: int) -> NDArray[np.int64]:
    """Some units of a level, taken at even distances from each other."""
    return np.asarray((np.arange(wanted) * max(units / wanted, 1.0) + 0.5 * units / wanted).astype(np.int64) % units)


def _uniform(source: SeededSource, number: int) -> NDArray[np.float64]:
    return np.asarray((np.frombuffer(source.take(8 * number), dtype="<u8") >> np.uint64(11)) * 2.0**-53)


def _typical(closed: NDArray[np.bool_], mean: float, sizes: Sizes | None, source: SeededSource) -> NDArray[np.int64]:
    """The sizes of made places; closed ones have nobody."""
    found = np.zeros(len(closed), dtype=np.int64)
    order = np.flatnonzero(~closed)
    order = order[np.argsort(_uniform(source, len(order)))]
    if sizes is not None:
        found[order] = np.resize(np.array(sizes, dtype=np.int64), len(order))
        return found
    filled = order[: len(closed) - len(closed) // EMPTY]
    each = -np.log1p(-(np.arange(len(filled)) + 0.5) / max(1, len(filled))) * mean * len(closed) / max(1, len(filled))
    found[filled] = np.maximum(1, np.rint(each))
    return found


def _made_table(table: TableSection, sizes: NDArray[np.int64], source: SeededSource) -> Histograms:
    """A made table: how many records each invented place has in each cell."""
    common = np.ones(1)
    for number in table.schema_of.shape:
        common = np.outer(common, np.arange(1.0, number + 1) ** -COMMON).ravel()
    cells = np.flatnonzero(table.possible)
    edges = np.cumsum(common[cells])
    place = np.searchsorted(edges, _uniform(source, int(sizes.sum())) * edges[-1], side="right")
    leaf = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    keys, counts = np.unique(leaf * table.schema_of.cells + cells[place], return_counts=True)
    units, found = np.divmod(keys, table.schema_of.cells)
    starts = np.concatenate([[0], np.cumsum(np.bincount(units, minlength=len(sizes)))]).astype(np.int64)
    return Histograms(starts, found.astype(np.int32), counts.astype(np.int64))


def _simulated(
    plan: TopDownPlan, sample: _Sample, table: TableSection, here: Kept, truth: Histograms, source: SeededSource,
    sizes: str,
) -> ExpectedBias:  # fmt: skip
    """Draw noise for tables that are taken to be true, fit them, and compare totals by size."""
    level, spine = sample.spine.levels[-1], sample.spine
    measured = [one for one in entries(plan, spine) if (one.table, one.level) == (table.name, level)]
    values = []
    for entry in measured:
        true = marginal_by(truth, table.schema_of, entry.by)
        values.append(true + discrete_gaussian(Fraction(entry.variance), true.size, source).reshape(true.shape))
    above = added_up(truth, spine.first_child[-1]) if len(spine.levels) > 1 else None
    fitted = children_of(plan, spine, table, measured, here, above, values)
    error, size = (fitted.totals() - truth.totals()).astype(np.float64), truth.totals()
    classes = []
    for least, most in zip(EDGES, (*(edge - 1 for edge in EDGES[1:]), None), strict=True):
        inside = error[(size >= least) & (size <= (most if most is not None else size.max()))]
        if len(inside) > 1:
            spread = float(inside.std(ddof=1)) / math.sqrt(len(inside))
            classes.append(SizeClass(least, most, len(inside), float(inside.mean()), spread))
    return ExpectedBias(table.name, level, sizes, tuple(classes))
