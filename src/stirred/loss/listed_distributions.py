"""One direction of a composed loss whose atoms can all be listed: delta is a sum, and nothing is rounded to a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stirred._compiled import kernel
from stirred.loss.laws import UNIT, Array, Atoms
from stirred.loss.one_way import Curve, Margins, bounded


@dataclass(frozen=True, eq=False)
class Listed:
    """A composed loss as the list of all its finite values with their masses."""

    atoms: Atoms
    margins: Margins
    step = 0.0
    exact = True

    @cached_property
    def _deltas(self) -> Array:
        """The finite part of delta at each loss."""
        deltas = np.zeros(len(self.atoms.losses))
        _fill(self.atoms.losses, self.atoms.masses, deltas)
        return deltas

    @property
    def _error(self) -> float:
        return self.atoms.error + (8 * len(self.atoms.losses) + 64) * UNIT

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Bounds at any epsilon >= 0."""
        margins = self.margins
        if epsilon >= margins.greatest or math.isinf(epsilon):
            return margins.infinite
        low = self._at(epsilon + margins.slack) * (1 - self._error)
        high = self._at(epsilon - margins.slack) * (1 + self._error)
        lower, upper = margins.widened(np.array(low), np.array(high))
        return float(lower), float(upper)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the smallest epsilon >= 0 at any delta."""
        margins = self.margins
        lowest, highest = margins.infinite
        if delta < lowest:
            return math.inf, math.inf
        if delta == 0:
            return margins.greatest, margins.greatest
        low = max(0.0, self._reach((delta - lowest + margins.cut) / (1 - self._error)) - margins.slack)
        high = math.inf if delta < highest else margins.greatest
        if delta > highest + margins.cut:
            reached = self._reach((delta - highest - margins.cut) / (1 + self._error)) + margins.slack
            high = min(high, max(0.0, reached))
        # What rounding took away on the way back is given.
        step = UNIT
        while high < margins.greatest and self.delta(high)[1] > delta:
            high, step = min(margins.greatest, high + max(high, step) * step), 2 * step
        step = UNIT
        while low > 0 and self.delta(low)[0] < delta:
            low, step = max(0.0, low - max(low, step) * step), 2 * step
        return min(low, high), high

    def curve(self) -> Curve:
        """Bounds at 0 and at every loss above it."""
        some = self.atoms.losses > 0
        at = np.append(0.0, self.atoms.losses[some])
        finite = np.append(self._at(0.0), self._deltas[some])
        lower, upper = self.margins.widened(finite * (1 - self._error), finite * (1 + self._error))
        return bounded(at, lower, upper, self.margins)

    def _at(self, epsilon: float) -> float:
        """The finite part of delta: straight in e^epsilon between losses, and down from all mass below them."""
        losses, deltas = self.atoms.losses, self._deltas
        j = int(np.searchsorted(losses, epsilon, side="right")) - 1
        if j + 1 >= len(losses):
            return 0.0
        if j < 0:
            everything = float(np.sum(self.atoms.masses))
            return float(deltas[0]) - (everything - float(deltas[0])) * math.expm1(epsilon - losses[0])
        share = math.expm1(epsilon - losses[j]) / math.expm1(losses[j + 1] - losses[j])
        return float(deltas[j] + share * (deltas[j + 1] - deltas[j]))

    def _reach(self, delta: float) -> float:
        """Where the finite part of delta is ``delta``, or 0 if it is smaller before."""
        losses, deltas = self.atoms.losses, self._deltas
        if delta >= self._at(0.0):
            return 0.0
        j = int(np.searchsorted(-deltas, -delta))  # the first loss at which it is at most that
        if j == 0:
            everything = float(np.sum(self.atoms.masses))
            return float(losses[0]) + math.log1p(float(deltas[0] - delta) / (everything - float(deltas[0])))
        share = (deltas[j - 1] - delta) / (deltas[j - 1] - deltas[j])
        return float(losses[j - 1]) + math.log1p(float(share) * math.expm1(losses[j] - losses[j - 1]))


@kernel
def _fill(losses, masses, deltas):  # type: ignore[no-untyped-def]
    """The sum of masses_i (1 - e^(losses_j - losses_i)) over i > j, for all j, without differences."""
    above = 0.0  # the sum of masses_i e^(losses_j - losses_i) over i > j
    for j in range(len(losses) - 2, -1, -1):
        gap = losses[j + 1] - losses[j]
        above = (above + masses[j + 1]) * math.exp(-gap)
        deltas[j] = deltas[j + 1] + above * math.expm1(gap)
