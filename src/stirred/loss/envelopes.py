"""Power curves from (epsilon, delta) pairs: by duality, each pair is a line above the curve, and the lowest counts.

For a test of P with power against Q, at every epsilon >= 0,

    power <= e^epsilon level + delta_QP(epsilon)   and   power <= 1 - e^-epsilon (1 - level - delta_PQ(epsilon)),

and the smallest of these is attained (Dong, Roth and Su 2022, Proposition 2.12). Larger deltas give higher lines, and
where delta is straight in e^epsilon no epsilon between the ends gives a lower line than both of them. So bounds on
delta at the points of a lattice give bounds on the power.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.loss.curves import PowerCurve
from stirred.loss.laws import UNIT, Array
from stirred.loss.one_way import Points

OUTWARDS = 16 * UNIT
LARGEST = 690.0


@dataclass(frozen=True, eq=False)
class Polyline:
    """The lower envelope of lines of descending slope on the unit interval, and where they meet."""

    slopes: Array
    heights: Array
    levels: Array
    above: bool

    def at(self, level: float) -> float:
        """The height at a level, rounded outwards."""
        j = int(np.searchsorted(self.levels, level))
        height = float(self.heights[j] + self.slopes[j] * level)
        return min(1.0, height * (1 + OUTWARDS)) if self.above else max(level, min(1.0, height * (1 - OUTWARDS)))

    def inside(self, most: int) -> PowerCurve:
        """A curve of vertices on the polyline: nowhere above it."""
        return self._curve(self.levels[_some(len(self.levels), most)])

    def outside(self, most: int) -> PowerCurve:
        """A curve made of some of the lines: nowhere below the polyline."""
        chosen = _some(len(self.slopes), most)
        fewer = _lowest(self.slopes[chosen], self.heights[chosen], self.above)
        return fewer._curve(fewer.levels)

    def _curve(self, levels: Array) -> PowerCurve:
        levels = np.unique(np.concatenate([[0.0], levels[(levels > 0) & (levels < 1)], [1.0]]))
        powers = np.maximum.accumulate([self.at(float(level)) for level in levels])
        powers[-1] = 1.0
        return PowerCurve(tuple(zip(levels.tolist(), powers.tolist(), strict=True)))


def envelope(forward: Points, backward: Points, above: bool) -> Polyline:
    """The power curve of a test of P against Q, from deltas of the pair (P, Q), forward, and of (Q, P)."""
    # Slopes too large for floats: a lower line in place of them, or none.
    steep = np.exp(np.minimum(backward.epsilons[::-1], LARGEST))
    finite = (backward.epsilons[::-1] < LARGEST) | (not above)
    gentle = np.exp(-forward.epsilons)
    slopes = np.concatenate([steep[finite], gentle, [0.0]])
    heights = np.concatenate(
        [backward.deltas[::-1][finite], -np.expm1(-forward.epsilons) + gentle * forward.deltas, [1.0]]
    )
    return _lowest(slopes, heights, above)


def _lowest(slopes: Array, heights: Array, above: bool) -> Polyline:
    """The lowest of lines whose slopes do not ascend."""
    chosen, levels = np.empty(len(slopes), dtype=np.int64), np.empty(len(slopes))
    size = _hull(slopes, heights, chosen, levels)
    return Polyline(slopes[chosen[:size]], heights[chosen[:size]], levels[1:size], above)


def _some(size: int, most: int) -> NDArray[np.int64]:
    """Evenly spaced positions, the ends among them."""
    return np.unique(np.linspace(0, size - 1, min(size, max(2, most))).round().astype(np.int64))


@kernel
def _hull(slopes, heights, chosen, levels):  # type: ignore[no-untyped-def]
    """Fill ``chosen`` with the lines of the envelope for levels >= 0, ``levels`` with where they begin; how many."""
    size = 0
    for k in range(len(slopes)):
        begin = 0.0
        while size > 0:
            last = chosen[size - 1]
            if slopes[k] == slopes[last]:
                if heights[k] >= heights[last]:
                    begin = np.inf
                    break
                size -= 1
                continue
            begin = max(0.0, (heights[k] - heights[last]) / (slopes[last] - slopes[k]))
            if begin > levels[size - 1] or (size == 1 and begin > 0.0):
                break
            size -= 1
            begin = 0.0
        if begin < np.inf:
            chosen[size] = k
            levels[size] = begin
            size += 1
    return size
