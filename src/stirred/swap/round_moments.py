"""Exact mean and variance of cells after several rounds.

Nested rounds have the same law in any order (docs/guarantee.md), so the finest may be taken as the first. Within a
group of a round a cell has, given its count x before, a mean that is linear and a variance that is quadratic in x. So
the mean and the variance of x are all that is needed of the finer rounds, and groups of one round are independent:
moments are added up from the finest groups to the strata of the first round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._shown import withheld
from stirred.swap.cell_pairs import key_of, look_up, pairs
from stirred.swap.coarsening import stratum_columns
from stirred.swap.dataset import Dataset
from stirred.swap.moments import ConstantsTable, stratum_constants
from stirred.tables.groups import Groups, anonymous, cells, group

Floats = NDArray[np.float64]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class CellsBefore:
    """Mean and variance of cells before a round, by their keys, which are increasing; other cells are empty."""

    keys: NDArray[np.int64]
    mean: Floats
    variance: Floats

    def at(self, wanted: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of these cells."""
        where, found = look_up(self.keys, wanted)
        return np.where(found, self.mean[where], 0.0), np.where(found, self.variance[where], 0.0)


def after_round(
    constants: ConstantsTable,
    size: NDArray[np.integer],
    held_total: NDArray[np.integer],
    swapped_total: NDArray[np.integer],
    mean: Floats,
    variance: Floats,
) -> tuple[Floats, Floats]:
    """Moments of cells after a round, from those of their counts before it.

    With the formulas of :mod:`stirred.swap.moments` for a count x, by the laws of total mean and variance: a term of x
    squared adds its weight times the variance of x, and the mean adds the square of its shrinkage times that.
    """
    rows = constants.rows(size)
    n = np.maximum(size, 1).astype(np.float64)
    held, swapped = held_total.astype(np.float64), swapped_total.astype(np.float64)
    delta = mean - held * swapped / n
    spread = (held * (n - held) / n) * (swapped * (n - swapped) / n) / n
    tilt = ((n - 2 * held) / n) * ((n - 2 * swapped) / n)
    a4, square = constants.a4[rows], constants.a1[rows] + constants.a2[rows]
    own = (a4 + n * constants.a3[rows]) * spread + a4 * tilt * delta + square * delta**2
    after = mean - constants.moved[rows] * delta * (n / np.maximum(n - 1, 1))
    return after, np.maximum(own + (square + constants.shrinkage[rows] ** 2) * variance, 0.0)


def after_finer_rounds(dataset: Dataset, held: Groups, swapped: Groups) -> CellsBefore | None:
    """Moments of the cells of every stratum after all rounds but the first; None where there are too many cells.

    Keys are those of (stratum, held, swapped). Confidential: they start from the true counts.
    """
    plan, rows = dataset.plan, dataset.records
    columns = [anonymous(one.ids, one.count) for one in (held, swapped)]
    matched, levels = stratum_columns(plan), [dataset.strata]
    for later in plan.rounds:
        matched = (*matched, *later.match_also)
        levels.append(group(dataset.counted.pick(matched), rows))
    if max(level.count + 1 for level in levels) * held.count * swapped.count >= 1 << 63:
        return None
    finest = cells([anonymous(levels[-1].ids, levels[-1].count), *columns], rows)
    outer, h_codes, s_codes = finest.codes
    keys = key_of(outer, h_codes, s_codes, held.count, swapped.count)
    before = CellsBefore(keys, finest.counts.astype(np.float64), np.zeros(len(keys)))
    for later, level, parent in zip(reversed(plan.rounds), levels[:0:-1], levels[-2::-1], strict=True):
        groups = anonymous(level.ids, level.count)
        by_held, by_swapped = (cells([groups, column], rows) for column in columns)
        held_codes, swapped_codes = by_held.codes, by_swapped.codes
        which, h, s = pairs(level.count, held_codes, swapped_codes)
        if which is None:
            return None
        codes, sizes = (held_codes[1][h], swapped_codes[1][s]), level.sizes()
        start = before.at(key_of(which, *codes, held.count, swapped.count))
        constants = stratum_constants(sizes, later.rate)
        after = after_round(constants, sizes[which], by_held.counts[h], by_swapped.counts[s], *start)
        parent_of = np.zeros(level.count, dtype=np.int64)
        parent_of[level.ids] = parent.ids
        keys, at = np.unique(key_of(parent_of[which], *codes, held.count, swapped.count), return_inverse=True)
        mean, variance = (np.bincount(at, part, len(keys)).astype(np.float64) for part in after)
        before = CellsBefore(keys, mean, variance)
    return before
