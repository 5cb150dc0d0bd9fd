"""Estimates after several rounds or with several rates, and their spread by simulating the known law.

The estimates are linear in the release and have a closed form. A round with group sizes n leaves the share lambda of an
association, and the counts of a group are kept by all later rounds. So from the last round to the second, within each
group of a round, the count Z of what is held with swap values s is replaced by

    (Z - (1 - lambda) T n_s/n) / lambda,        T the count of what is held in the group, n_s the records with s,

which is an unbiased estimate of the count before that round, and still linear. The first round is undone by the same
formula, or class by class of rates (:mod:`stirred.swap.estimating.cell_estimates`). What cannot be undone is taken as
under independence; a count with records there has no estimate, and its interval reaches as far as these can move it.

Their variances are found by simulation. The law of the swap is public, so it is drawn again, many times, **from the
released records**: the spread of the estimates in these draws is taken as that of the estimate. It is that of a file
whose associations are as weak as the release's, not those of the true file; hence approximate, and said so.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import confidential
from stirred._lazy import later
from stirred.estimates.answers import Parts
from stirred.noise import SeededSource
from stirred.swap.data.counting import RecordRates
from stirred.swap.estimating.cell_estimates import Block, Tally, key_parts, scores_of
from stirred.swap.law import permutation
from stirred.swap.law.moments import WEAKEST, LawConstants, moved_probabilities, received_probabilities
from stirred.tables.groups import Groups

special = later("scipy.special")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

DRAWS = 200
"""Draws of the swap: the relative error of a standard error is then 5%."""
_FEWEST_DRAWS = 40
_MOST_DRAWN = 2 * 10**8
"""Records that are drawn in all."""
_MOST_CELLS = 2 * 10**7


@confidential
class ReleasedRecords:
    """The released records one by one, as far as a question needs them."""

    strata: Groups
    """Of the first round."""
    held: Integers
    """Of each record its held class, as in the tally,"""
    values: Integers
    """and its combination of all swap values."""
    swap_class: Integers
    """Of each combination its swap class, as in the tally,"""
    coarse: tuple[Integers, ...]
    """and for each later round the number of its values that this round matches on."""
    first: Fraction | RecordRates
    later: tuple[Fraction, ...]
    """The rates of the later rounds."""

    def draw(self, source: SeededSource) -> Integers:
        """The swap values of every record after another swap of these records by all rounds."""
        values = self.values
        groups, sizes = self.strata, self.strata.sizes()
        for number, rate in enumerate([self.first, *self.later]):
            if number:
                coarse = self.coarse[number - 1]
                ids = self.strata.ids * (coarse.max(initial=0) + 1) + coarse[values]
                _, at, sizes = np.unique(ids, return_inverse=True, return_counts=True)
                groups = Groups(at.reshape(-1).astype(np.uint32), len(sizes))
            moves = permutation.draw(groups, sizes.astype(np.int64), rate, source)
            values = values.copy()
            values[moves.receiver] = values[moves.giver]
        return values


@dataclass(frozen=True, eq=False)
class _Level:
    """Rows (group of a round, swap group), sorted by group. A swap group of its own holds all values not asked for."""

    group: Integers
    """Of each row its group, numbered from 0,"""
    records: Floats
    """n_s, its records"""
    shrinkage: Floats
    """and lambda of its group."""

    @cached_property
    def starts(self) -> Integers:
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    @cached_property
    def share(self) -> Floats:
        """n_s/n"""
        return np.asarray(self.records / self.total(self.records))

    @cached_property
    def changes(self) -> Flags:
        """Rows whose counts the round can change."""
        return self.share < 1

    @cached_property
    def usable(self) -> Flags:
        """Rows in which the round can be undone."""
        return ~self.changes | (np.abs(self.shrinkage) > WEAKEST + 1e-9)

    @cached_property
    def left(self) -> Floats:
        """How much of an association is left; 1 where nothing is undone."""
        return np.where(self.usable & self.changes, np.abs(self.shrinkage), 1.0)

    def total(self, part: Floats) -> Floats:
        """Of each row the sum over its group."""
        return np.asarray(np.add.reduceat(part, self.starts, axis=0)[self.group])

    def undo(self, cells: Floats) -> Floats:
        """Counts before the round; as under independence where it cannot be undone."""
        known = self.total(cells) * self.share[:, None]
        safe = np.where(self.usable & self.changes, self.shrinkage, 1.0)[:, None]
        found = known + np.where(self.usable[:, None], (cells - known) / safe, 0.0)
        return np.where(self.changes[:, None], found, cells)


@dataclass(frozen=True, eq=False)
class _Classes:
    """The first round in strata whose records have different rates, undone class by class."""

    rows: Integers
    """Rows of the first level that are in such strata and can be undone between classes,"""
    g: Floats
    """with g_c = 1 - q_c - R_cc, 1 in classes without records,"""
    n: Floats
    """n_c"""
    inverse: Floats
    """and the inverse of diag(g) + n R, for each of these rows."""

    @property
    def open(self) -> Flags:
        """Classes whose records are exchanged among each other so much that this cannot be undone: ``[row, class]``."""
        return np.abs(self.g) <= WEAKEST

    @classmethod
    def of(cls, first: _Level, stratum: Integers, tally: Tally) -> _Classes | None:
        if tally.rates is None or not tally.mixed.any():
            return None
        n = tally.rates.counts.astype(np.float64)
        here = n > 0
        moved = moved_probabilities(tally.rates)
        r = np.where(here[:, :, None] & here[:, None, :], received_probabilities(tally.rates), 0.0)
        g = np.where(here, 1 - moved - np.einsum("mcc->mc", r), 1.0)
        system = g[:, :, None] * np.eye(n.shape[1]) + n[:, :, None] * r
        usable = tally.mixed & (np.linalg.svd(system, compute_uv=False)[:, -1] > WEAKEST)
        rows = np.flatnonzero(usable[stratum] & first.changes)
        inverse = np.linalg.inv(np.where(usable[:, None, None], system, np.eye(n.shape[1])))
        m = stratum[rows]
        return cls(rows, g[m], n[m], inverse[m])

    def undo(self, cells: Floats, totals: Floats) -> Floats:
        """Counts before the round, from those by class ``[row, class, group]``; the last group counts records."""
        z, u = cells[self.rows], totals[self.rows]
        with_s = np.einsum("rcd,rd->rc", self.inverse, z[:, :, -1])
        mean = u / np.maximum(self.n, 1.0)[:, :, None]
        within = np.where(self.open, 0.0, 1 / np.where(self.open, 1.0, self.g))[:, :, None]
        return np.asarray((mean * with_s[:, :, None] + within * (z - mean * z[:, :, -1:])).sum(axis=1))

    def left(self) -> Floats:
        """Of each row the least share of an association that is left where it is undone."""
        return np.asarray(np.where(self.open, 1.0, np.abs(self.g)).min(axis=1))


class LinearEstimates:
    """The estimates of all counts of a question as a linear function of the released records.

    An answer is a count by (area, held group, swap group), as in the tally.
    """

    def __init__(self, tally: Tally, records: ReleasedRecords) -> None:
        self._tally, self._records = tally, records
        shape = tally.shape
        self._asked = tally.area[records.strata.ids] >= 0
        self._stratum = records.strata.ids[self._asked].astype(np.int64)
        rates = records.first if isinstance(records.first, RecordRates) else None
        rule = np.zeros(len(self._asked), dtype=np.int64) if rates is None else rates.rule.astype(np.int64)
        self._classes, self._width = 1 if rates is None else len(rates.rates), shape.held + 1
        self._row, self._group, self._score = _scored(tally, records.held[self._asked])
        self._column = rule[self._asked][self._row] * self._width + self._group
        self._set_levels()
        self._by_class = _Classes.of(self._levels[-1], self._of_row // (shape.swapped + 1), tally)
        self._set_answers()

    def __repr__(self) -> str:
        return f"<LinearEstimates of {self._tally!r}>"

    @property
    def records(self) -> int:
        """How many records are in strata that are asked for."""
        return len(self._stratum)

    def estimates(self, values: Integers) -> Floats:
        """For every answer its estimate from records with these swap values."""
        cells = self._finest(values)
        for level, parent in zip(self._levels, self._parents, strict=False):
            cells = _add_rows(level.undo(cells), parent)
        first = self._levels[-1]
        by_class = cells.reshape(len(cells), self._classes, self._width)
        found = first.undo(by_class.sum(axis=1))
        if self._by_class is not None:
            totals = first.total(by_class)
            found[self._by_class.rows] = self._by_class.undo(by_class, totals)
        return self._added(found[self._where])

    def released(self, values: Integers) -> Floats:
        """For every answer its count among records with these swap values."""
        cells = self._finest(values)
        for parent in self._parents:
            cells = _add_rows(cells, parent)
        return self._added(cells.reshape(len(cells), self._classes, self._width).sum(axis=1)[self._where])

    # -- helpers ---------------------------------------------------------------------------------------------

    def _set_levels(self) -> None:
        """The rows of every round, from the last to the first; which pairs of a stratum and swap values occur, and how
        often, is an invariant, and so are they."""
        tally, records = self._tally, self._records
        many = tally.shape.swapped + 1
        self._values = int(records.values.max(initial=0)) + 1
        self._pairs, counts = np.unique(self._stratum * self._values + records.values[self._asked], return_counts=True)
        stratum, value = self._pairs // self._values, self._pairs % self._values
        group = tally.swap_group[records.swap_class[value]]
        group = np.where(group >= 0, group, many - 1)
        self._levels, self._parents = [], []
        rows: list[Integers] = []
        coarse = [np.zeros(self._values, dtype=np.int64), *records.coarse]
        for number in reversed(range(len(coarse))):
            key = (stratum * (coarse[number].max() + 1) + coarse[number][value]) * many + group
            keys, row = np.unique(key, return_inverse=True)
            own = np.bincount(row := row.reshape(-1), counts).astype(np.float64)
            _, of_group = np.unique(keys // many, return_inverse=True)
            size = np.bincount(of_group, own).astype(np.int64)
            law = LawConstants.of(size, records.later[number - 1]).shrinkage[of_group] if number else np.empty(0)
            if not number:
                law, self._of_row = tally.law.shrinkage[keys // many], keys
            self._levels.append(_Level(of_group.reshape(-1), own, law))
            rows.append(row)
        for finer, coarser, level in zip(rows, rows[1:], self._levels, strict=False):
            parent = np.zeros(len(level.group), dtype=np.int64)
            parent[finer] = coarser
            self._parents.append(parent)
        self._finest_row = rows[0]
        if len(self._levels[0].group) * self._classes * self._width > _MOST_CELLS:
            raise errors.estimate_question("A question about this release", "must have fewer groups")

    def _set_answers(self) -> None:
        """Which rows and held groups each answer adds up, what the margins allow, and what cannot be undone."""
        tally, shape, first = self._tally, self._tally.shape, self._levels[-1]
        m, swapped = self._of_row // (shape.swapped + 1), self._of_row % (shape.swapped + 1)
        at = self._stratum[self._row] * self._width + self._group
        many = (int(self._stratum.max(initial=0)) + 1) * self._width
        total, squares = (np.bincount(at, self._score**power, many).reshape(-1, self._width) for power in (1, 2))
        largest = np.zeros(many)
        np.maximum.at(largest, at, self._score)
        rows, held = np.nonzero((swapped < shape.swapped)[:, None] & (total[m, : shape.held] > 0))
        keys = (tally.area[m[rows]] * shape.held + held) * shape.swapped + swapped[rows]
        self.keys, answer = np.unique(keys, return_inverse=True)
        self._where, self._answer = (rows, held), answer.reshape(-1)
        n, n_s = total[m[rows], -1], first.records[rows]
        u, most = total[m[rows], held], largest.reshape(-1, self._width)[m[rows], held]
        varies = (squares[m[rows], held] * n - u**2 > 0.5) & (n_s < n)
        self.low = self._added(np.maximum(0.0, u - (n - n_s) * most))
        self.high = self._added(np.minimum(u, n_s * most))
        self.varies = self._added(varies) > 0
        stuck, left = self._undone()
        left_open = np.where(varies, np.minimum(stuck[rows] * most, u), 0.0)
        self.left_open = self._added(np.minimum(left_open + self._open_in_classes(m, rows, held, most), u))
        weight = np.where(varies, n_s, 0.0)
        unit = np.maximum(squares[m[rows], held] / u, 1.0) / left[rows]
        self.unit = self._added(weight * unit) / np.maximum(self._added(weight), 1e-300)

    def _open_in_classes(self, m: Integers, rows: Integers, held: Integers, most: Floats) -> Floats:
        """Of each row and held group, how far what is exchanged within classes of rates can move the count where it
        cannot be undone."""
        if self._by_class is None or not self._by_class.open.any():
            return np.zeros(len(rows))
        width = self._classes * self._width
        at, many = self._stratum[self._row] * width + self._column, (int(self._stratum.max(initial=0)) + 1) * width
        total, squares = (
            np.bincount(at, self._score**power, many).reshape(-1, self._classes, self._width)[m[rows]]
            for power in (1, 2)
        )
        u, n = total[np.arange(len(rows)), :, held], total[:, :, -1]
        differ = squares[np.arange(len(rows)), :, held] * n - u**2 > 0.5
        is_open = np.zeros((len(self._of_row), self._classes), dtype=np.bool_)
        is_open[self._by_class.rows] = self._by_class.open
        reach = np.minimum(u, np.minimum(n, self._levels[-1].records[rows][:, None]) * most[:, None])
        return np.asarray(np.where(is_open[rows] & differ, reach, 0.0).sum(axis=1))

    def _undone(self) -> tuple[Floats, Floats]:
        """Of each row of the first round: its records in groups of any round that cannot be undone, and the mean share
        of an association that the rounds leave."""
        stuck, left = np.zeros(len(self._levels[0].group)), np.ones(len(self._levels[0].group))
        for level, parent in zip(self._levels, self._parents, strict=False):
            stuck = np.bincount(parent, np.where(level.usable, stuck, level.records)).astype(np.float64)
            weighted = np.bincount(parent, left * level.left * level.records)
            left = np.asarray(weighted / np.bincount(parent, level.records), dtype=np.float64)
        first = self._levels[-1]
        usable, own = first.usable.copy(), first.left.copy()
        if self._by_class is not None:
            usable[self._by_class.rows] = True
            own[self._by_class.rows] = self._by_class.left()
        return np.where(usable, stuck, first.records), left * own

    def _finest(self, values: Integers) -> Floats:
        """Sums of scores by row of the last round, and by class of rates and held group."""
        pair = np.searchsorted(self._pairs, self._stratum * self._values + values[self._asked])
        width, rows = self._classes * self._width, len(self._levels[0].group)
        at = self._finest_row[pair][self._row] * width + self._column
        return np.bincount(at, self._score, rows * width).reshape(rows, width).astype(np.float64)

    def _added(self, part: Floats | Flags) -> Floats:
        return np.asarray(np.bincount(self._answer, part, len(self.keys)), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedParts:
    """All counts of a question by (area, held group, swap group), with intervals from draws of the swap's own law, from
    the released records."""

    tally: Tally
    records: ReleasedRecords
    key: int
    """Makes the draws repeatable, so that the same question has the same answer."""
    drawn: Floats | None = None
    """The estimates in every draw, where they follow from those of counts that were put together."""

    def __repr__(self) -> str:
        return f"<SimulatedParts of {self.tally!r}>"

    @cached_property
    def linear(self) -> LinearEstimates:
        """The estimates as a function of the released records."""
        return LinearEstimates(self.tally, self.records)

    @cached_property
    def replicates(self) -> Floats:
        """The estimates in every draw: ``[draw, count]``."""
        if self.drawn is not None:
            return self.drawn
        draws = min(DRAWS, _MOST_DRAWN // max(len(self.records.values), 1))
        if draws < _FEWEST_DRAWS:
            raise errors.StirredError(
                "too-large-to-simulate",
                "The error of this estimate is found by drawing the swap again many times, which is offered for at "
                f"most {_MOST_DRAWN // _FEWEST_DRAWS:,} records; the release has {len(self.records.values):,}.",
                "Ask for counts without comparisons, by columns that only the first round swapped.",
            )
        source = SeededSource(self.key)
        return np.stack([self.linear.estimates(self.records.draw(source)) for _ in range(draws)])

    def correlation(self, one: Block, other: Block) -> float:
        """The correlation of the estimates of two blocks."""
        first, second = (self._of_block(block) for block in (one, other))
        spread = float(first.std() * second.std())
        return float(np.mean((first - first.mean()) * (second - second.mean())) / spread) if spread > 0 else 0.0

    def _of_block(self, block: Block) -> Floats:
        area, held, swapped = self.groups
        chosen = block.areas[area] & block.held[held] & block.swapped[swapped]
        return np.asarray(self.replicates[:, chosen].sum(axis=1))

    @property
    def keys(self) -> Integers:
        """Of each count its packed key, increasing."""
        return self.linear.keys

    @property
    def groups(self) -> tuple[Integers, Integers, Integers]:
        """Of each count its area, held group and swap group."""
        return key_parts(self.keys, self.tally.shape)

    @cached_property
    def values(self) -> Floats:
        """The estimates, unclipped; without a meaning where a part cannot be undone."""
        return self.linear.estimates(self.records.values)

    @cached_property
    def naive(self) -> Floats:
        """The released counts."""
        return self.linear.released(self.records.values)

    @cached_property
    def variances(self) -> Floats:
        """The variances of the estimates in the draws."""
        return np.asarray(self.replicates.var(axis=0, ddof=1))

    @cached_property
    def refused(self) -> Flags:
        """Where the margins alone say as much as an estimate."""
        one = self.linear
        reach = np.sqrt(self.variances) + one.left_open
        return np.asarray(one.varies & (reach > (one.high - one.low) / 2))

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """How the interval of each count is found."""
        undone = np.where(self.linear.left_open > 0, "bounded", "simulated")
        return np.where(self.refused, "margins", np.where(self.linear.varies, undone, "known"))

    def parts(self, confidence: float, *, whole: bool = False) -> Parts:
        """Estimates with their intervals; ``whole`` for whole numbers as ends, otherwise as parts of other answers."""
        one, values = self.linear, self.values
        quantile = float(special.stdtrit(len(self.replicates) - 1, (1 + confidence) / 2))
        reach = np.where(one.varies, quantile * np.sqrt(self.variances) + one.unit / 2 + one.left_open, 0.0)
        lower, upper = values - reach, values + reach
        if whole:
            nearest = np.clip(np.rint(values), one.low, one.high)
            lower = np.minimum(np.ceil(np.clip(lower, one.low, one.high) - 1e-6), nearest)
            upper = np.maximum(np.floor(np.clip(upper, one.low, one.high) + 1e-6), nearest)
        lower, upper = np.where(self.refused, one.low, lower), np.where(self.refused, one.high, upper)
        return Parts(values, self.variances, lower, upper)

    def merged(self, areas: Integers, held: Integers, swapped: Integers) -> SimulatedParts:
        """The counts with groups put together: for each group the number of its new one. Estimates are linear, so those
        in the draws add up."""
        tally = self.tally.merged(areas, held, swapped)
        keys = LinearEstimates(tally, self.records).keys
        area, h, s = (of[group] for of, group in zip((areas, held, swapped), self.groups, strict=True))
        at = np.searchsorted(keys, (area * tally.shape.held + h) * tally.shape.swapped + s)
        replicates = np.zeros((len(self.replicates), len(keys)))
        np.add.at(replicates.T, at, self.replicates.T)
        return SimulatedParts(tally, self.records, self.key, replicates)


def _add_rows(cells: Floats, parent: Integers) -> Floats:
    found = np.zeros((int(parent.max()) + 1, cells.shape[1]))
    np.add.at(found, parent, cells)
    return found


def _scored(tally: Tally, held: Integers) -> tuple[Integers, Integers, Floats]:
    """For each positive score of each record its row, group and number; then each record once, in a last group."""
    row, at = scores_of(tally, held)
    every = np.arange(len(held))
    return (
        np.concatenate([row, every]),
        np.concatenate([tally.group_of[at], np.full(len(held), tally.shape.held)]),
        np.concatenate([tally.score[at], np.ones(len(held))]).astype(np.float64),
    )
