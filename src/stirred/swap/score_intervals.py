"""Score intervals of counts: the true counts from which the estimate is not further than chance explains.

A sum over strata has a variance that depends on every stratum's true count. The test of a total x spreads what x
differs from the estimate over the strata in proportion to their variances, within what the margins allow, and takes the
variance there: for one stratum this is the score interval itself. Half a released unit is added as continuity
correction, since released counts are whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stirred.swap.estimation import CellEstimates

Floats = NDArray[np.float64]

_SCANNED = 64
"""Whole numbers that are tried one by one, for a count that only one stratum leaves open."""
_STEPS = 48


def continuity(found: CellEstimates) -> Floats:
    """Half a released unit as it is in each estimate; a unit is the mean size of what moves together."""
    weight = np.where(found.estimated, found.spread_if_independent + 1e-12, 0.0)
    shrinkage = np.abs(np.where(found.estimated, found.law.shrinkage, 1.0))
    total = np.maximum(found.total(weight), 1e-300)
    return np.asarray(found.total(weight * 0.5 * np.maximum(found.unit_size, 1.0) / shrinkage) / total)


def score_interval(found: CellEstimates, quantile: float, *, whole: bool = True) -> tuple[Floats, Floats]:
    """Lower and upper ends of the estimated part of each answer, within what the margins allow; as whole numbers, or
    as they are where they become part of other intervals."""
    open_cells = np.flatnonzero(found.estimated)
    if not len(open_cells):
        return np.zeros(len(found.answers)), np.zeros(len(found.answers))
    return _Sums(found.among(open_cells), quantile).ends(whole)


class _Sums:
    """The estimated cells of all answers, moved together from their lowest to their highest counts."""

    def __init__(self, found: CellEstimates, quantile: float) -> None:
        self.found, self.quantile = found, quantile
        here = found.estimated
        self.low, self.high = np.where(here, found.low, 0.0), np.where(here, found.cells.high, 0.0)
        self.start = np.where(here, found.clipped, 0.0)
        own = np.where(here, found.variances_at(found.clipped), 0.0)
        widest = np.zeros(len(found.answers))
        np.maximum.at(widest, found.answer, np.maximum(own, found.spread_if_independent))
        self.weight = np.maximum(own, 1e-3 * widest[found.answer]) + 1e-12
        self.half_step = continuity(found)
        self.value = found.total(np.where(here, found.values, 0.0))
        self.least, self.most = found.total(self.low), found.total(self.high)

    def ends(self, whole: bool) -> tuple[Floats, Floats]:
        found, open_cells = self.found, self.found.total(self.found.estimated)
        reach = np.where(found.estimated, (self.high - self.low) / self.weight, 0.0)
        far = np.zeros(len(found.answers))
        np.maximum.at(far, found.answer, reach)
        middle = self._solve(-far, far, lambda shift: self._at(shift)[0] < np.clip(self.value, self.least, self.most))
        low = self._solve(-far, middle, lambda shift: self._outside(shift, 1.0))
        high = -self._solve(-far, -middle, lambda shift: self._outside(-shift, -1.0))
        lower, upper = self._at(low)[0], self._at(high)[0]
        if not whole:
            return lower, upper
        lower, upper = np.ceil(lower - 1e-6), np.floor(upper + 1e-6)
        single = np.flatnonzero((open_cells == 1) & (self.most - self.least <= _SCANNED))
        if len(single):
            lower[single], upper[single] = self._scan(single)
        nearest = np.clip(np.rint(self.value), self.least, self.most)
        return np.minimum(lower, nearest), np.maximum(upper, nearest)

    def _at(self, shift: Floats) -> tuple[Floats, Floats]:
        """Totals and their standard deviations where every cell has moved by ``shift`` times its variance."""
        found = self.found
        values = np.clip(self.start + shift[found.answer] * self.weight, self.low, self.high)
        variances = found.variances_at(np.where(found.estimated, values, found.clipped))
        return found.total(values), np.sqrt(found.total(variances))

    def _outside(self, shift: Floats, sign: float) -> NDArray[np.bool_]:
        total, spread = self._at(shift)
        return np.asarray(sign * (self.value - total) > self.quantile * spread + self.half_step)

    def _solve(self, low: Floats, high: Floats, below: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
        """By halving: where ``below`` ceases to hold."""
        for _ in range(_STEPS):
            middle = (low + high) / 2
            down = below(middle)
            low, high = np.where(down, middle, low), np.where(down, high, middle)
        return high

    def _scan(self, single: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The hull of all whole numbers that are not rejected, of answers with one open cell each."""
        chosen = np.zeros(len(self.found.answers), dtype=np.bool_)
        chosen[single] = True
        cell = np.flatnonzero(self.found.estimated & chosen[self.found.answer])
        cell = cell[np.argsort(self.found.answer[cell])]
        found, value, half = self.found.some(cell), self.value[single], self.half_step[single]
        low, high = self.low[cell], self.high[cell]
        lower, upper = np.full(len(single), np.inf), np.full(len(single), -np.inf)
        for step in range(int((high - low).max()) + 1):
            x = np.minimum(low + step, high)
            inside = np.abs(value - x) <= self.quantile * np.sqrt(found.variances_at(x)) + half
            lower = np.where(inside, np.minimum(lower, x), lower)
            upper = np.where(inside, np.maximum(upper, x), upper)
        nearest = np.clip(np.rint(value), low, high)
        return np.where(np.isinf(lower), nearest, lower), np.where(np.isinf(upper), nearest, upper)
