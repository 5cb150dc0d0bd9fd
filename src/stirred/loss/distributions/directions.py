"""Bounds on delta at any epsilon, and on epsilon at any delta, of one direction of a composed loss.

A loss with few values is the list of them: delta is a sum, and nothing is rounded to a grid. Any other has laws below
and above on a lattice, and each exponential tilt covers one range of losses.

Between the losses of a list, and between points of the lattice, delta of a law on them is straight as a function of
e^epsilon. So bounds at the points are bounds everywhere: chords are above any convex function that is below their ends,
which delta is, and below the lower law's delta, which is straight there.

Delta falls as epsilon grows, so a bound from above holds at every larger epsilon and one from below at every smaller:
bounds are made monotone, within stretches and from one to the next. ``epsilon`` is read off the same bounds as
``delta``, so that the two are inverse to each other.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stirred._compiled import kernel
from stirred.loss.curves.power_curves import crossings
from stirred.loss.distributions.lattice_sums import Sum, Window, refined, window
from stirred.loss.distributions.loss_distribution import UNIT, Array, Atoms

HALF = 2.0
"""A tilt knows a stretch of losses that reaches so many of its standard deviations to both sides of its mean."""

SHORTEST = 0.1
"""Half of a stretch is at least this part of the way from the mean to it, so that there are not too many of them."""

SMALLEST = 1e-18
"""Power curves are drawn down to deltas of this size."""

NEARLY = 0.98
"""No tilt goes nearer to the largest loss than this part of the way from the mean."""


class Points(NamedTuple):
    """Deltas at epsilons that ascend from 0; straight in e^epsilon between them."""

    epsilons: Array
    deltas: Array


class Curve(NamedTuple):
    """Bounds on delta for all epsilons; the last lower one holds at every larger epsilon."""

    lower: Points
    upper: Points

    def joined(self, other: Curve) -> Curve:
        """Bounds on the larger one of two deltas."""
        return Curve(_larger(self.lower, other.lower), _larger(self.upper, other.upper))


@dataclass(frozen=True)
class Margins:
    """What is known of a loss besides its law.

    ``infinite`` bounds the mass at infinity; ``cut`` is a mass that may be anywhere; ``slack`` how far off finite
    losses may be, which do not exceed ``greatest``.
    """

    infinite: tuple[float, float]
    cut: float
    slack: float
    greatest: float

    def widened(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Bounds on delta from those on what finite losses contribute to it."""
        lowest, highest = self.infinite
        return (
            np.minimum(1, lowest + np.maximum(0, lower - self.cut)),
            np.minimum(1, highest + upper + self.cut),
        )


@dataclass(frozen=True, eq=False)
class Direction(ABC):
    """Bounds on delta and epsilon; ``exact`` tells that no loss was rounded to a lattice."""

    margins: Margins
    exact: bool

    @property
    @abstractmethod
    def step(self) -> float:
        """The distance between lattice points; 0 where losses are listed."""

    @abstractmethod
    def curve(self) -> Curve:
        """Bounds for all epsilons at once."""

    @abstractmethod
    def _at(self, epsilon: float, upper: bool) -> float:
        """A bound on what finite losses contribute to delta, from above or from below."""

    @abstractmethod
    def _reach(self, delta: float, upper: bool) -> float:
        """An epsilon from which on the upper bound is at most delta, or up to which the lower one is at least delta."""

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Bounds on delta at any epsilon >= 0."""
        margins = self.margins
        if epsilon >= margins.greatest or math.isinf(epsilon):
            return margins.infinite
        low, high = self._at(epsilon + margins.slack, False), self._at(epsilon - margins.slack, True)
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
        low = max(0.0, self._reach(delta - lowest + margins.cut, False) - margins.slack)
        high = math.inf if delta < highest else margins.greatest
        if delta > highest + margins.cut:
            high = min(high, max(0.0, self._reach(delta - highest - margins.cut, True) + margins.slack))
        # What rounding took away on the way back is given.
        part = UNIT
        while high < margins.greatest and self.delta(high)[1] > delta:
            high, part = min(margins.greatest, high + max(high, self.step or part) * part), 2 * part
        part = UNIT
        while low > 0 and self.delta(low)[0] < delta:
            low, part = max(0.0, low - max(low, self.step or part) * part), 2 * part
        return min(low, high), high


# -- losses that are listed ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ListedDirection(Direction):
    """A composed loss as the list of all its finite values with their masses."""

    atoms: Atoms
    step = 0.0

    @cached_property
    def _deltas(self) -> Array:
        """The finite part of delta at each loss."""
        deltas = np.zeros(len(self.atoms.losses))
        _fill(self.atoms.losses, self.atoms.masses, deltas)
        return deltas

    def curve(self) -> Curve:
        """Bounds at 0 and at every loss above it."""
        some = self.atoms.losses > 0
        at = np.append(0.0, self.atoms.losses[some])
        finite = np.append(self._finite(0.0), self._deltas[some])
        lower, upper = self.margins.widened(finite * self._rounding(False), finite * self._rounding(True))
        return bounded(at, lower, upper, self.margins)

    def _rounding(self, upper: bool) -> float:
        """What sums of masses are multiplied by to be bounds."""
        error = self.atoms.error + (8 * len(self.atoms.losses) + 64) * UNIT
        return 1 + error if upper else 1 - error

    def _at(self, epsilon: float, upper: bool) -> float:
        return self._finite(epsilon) * self._rounding(upper)

    def _reach(self, delta: float, upper: bool) -> float:
        return self._crossing(delta / self._rounding(upper))

    def _finite(self, epsilon: float) -> float:
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

    def _crossing(self, delta: float) -> float:
        """Where the finite part of delta is ``delta``, or 0 if it is smaller before."""
        losses, deltas = self.atoms.losses, self._deltas
        if delta >= self._finite(0.0):
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


# -- losses on a lattice -------------------------------------------------------------------------------------


class _Stretch(NamedTuple):
    """Losses, from where the lattice begins, for which one tilt is used.

    ``bound`` is Chernoff's on the logarithm of delta at the tilt's mean, ``width`` half of its length.
    """

    low: float
    high: float
    theta: float
    bound: float
    width: float
    last: bool


@dataclass(frozen=True, eq=False)
class LatticeDirection(Direction):
    """Laws below and above that of the loss, as sums on a lattice that begins at ``start``."""

    lower: Sum
    upper: Sum
    start: float

    @classmethod
    def without_loss(cls, infinite: tuple[float, float]) -> LatticeDirection:
        """The composed loss that is 0 or infinite."""
        return cls(Margins(infinite, 0.0, 0.0, 0.0), True, Sum((), 1.0), Sum((), 1.0), 0.0)

    @property
    def step(self) -> float:
        return self.upper.step

    def curve(self) -> Curve:
        """Bounds at every point of the lattice where delta is worth telling."""
        margins = self.margins
        epsilons, lows, highs = [np.zeros(1)], [np.zeros(1)], [np.zeros(1)]
        if self.upper.parts:
            lows[0][0], highs[0][0] = self._at(margins.slack, False), self._at(-margins.slack, True)
            for k in itertools.count(self._stretch_of(0.0)):
                at, low, high = _together(*self._windows(k))
                losses = self.start + self.step * at
                some = losses > epsilons[-1][-1]
                epsilons.append(losses[some])
                lows.append(low[some])
                highs.append(high[some])
                if high[-1] <= SMALLEST or losses[-1] >= margins.greatest or self._stretch(k).last:
                    break
        at = np.concatenate(epsilons)
        falling = np.maximum.accumulate(np.concatenate(lows)[::-1])[::-1]
        lower, upper = margins.widened(falling, np.minimum.accumulate(np.concatenate(highs)))
        return bounded(at, lower, upper, margins)

    # -- stretches -------------------------------------------------------------------------------------------

    @cached_property
    def _stretches(self) -> list[_Stretch]:
        mean, deviation = self.upper.moments(0.0)
        width = HALF * max(deviation, self.step)
        return [_Stretch(mean - 4 * width, mean + width, 0.0, 0.0, width, mean + width >= self._nearest)]

    @cached_property
    def _nearest(self) -> float:
        """The largest mean that a tilt is given."""
        mean, top = self.upper.moments(0.0)[0], self.upper.ends[1] * self.step
        return mean + NEARLY * (top - mean)

    def _stretch(self, k: int) -> _Stretch:
        """The k-th stretch. It begins where the one before ends, and its tilt has its mean in the middle of it."""
        while len(self._stretches) <= k:
            before = self._stretches[-1]
            shortest = SHORTEST * max(self._stretches[0].width, before.high - self.upper.moments(0.0)[0])
            width = 2 * before.width
            for _ in range(4):
                theta = self.upper.tilt_for(min(before.high + width, self._nearest), before.theta)
                mean, deviation = self.upper.moments(theta)
                fits = max(shortest, HALF * deviation, self.step)
                if fits >= width:
                    break
                width = fits
            high = before.high + 2 * width
            bound = float(self.upper.log_generating(np.array([theta]), True)[0]) - theta * mean
            self._stretches.append(_Stretch(before.high, high, theta, bound, width, high >= self._nearest))
        return self._stretches[k]

    def _stretch_of(self, epsilon: float) -> int:
        """Which stretch an epsilon is in; all below the mean are in the first, all above the last in the last."""
        k = 0
        while not (stretch := self._stretch(k)).last and epsilon - self.start > stretch.high:
            k += 1
        return k

    def _windows(self, k: int) -> tuple[Window, Window]:
        """Bounds below and above in the k-th stretch."""
        if k not in self._kept:
            stretch = self._stretch(k)
            high = max(stretch.high, self.upper.ends[1] * self.step) if stretch.last else stretch.high
            self._kept[k] = (
                refined(self.lower, window(self.lower, stretch.theta, stretch.low, high)),
                refined(self.upper, window(self.upper, stretch.theta, stretch.low, high)),
            )
        return self._kept[k]

    @cached_property
    def _kept(self) -> dict[int, tuple[Window, Window]]:
        return {}

    def _at(self, epsilon: float, upper: bool) -> float:
        if not self.upper.parts:
            return 0.0
        k = self._stretch_of(epsilon)
        own = self._chord(k, epsilon, upper)
        if upper:
            return min(own, self._up_to(k - 1)) if k > 0 and own > self._chord(k, self._low(k), False) else own
        last = self._stretch(k).last
        return own if last or own >= self._chord(k, self._high(k), True) else max(own, self._from(k + 1))

    def _low(self, k: int) -> float:
        return self.start + self._stretch(k).low

    def _high(self, k: int) -> float:
        return self.start + self._stretch(k).high

    def _up_to(self, k: int) -> float:
        """The smallest upper bound up to the end of the k-th stretch. Stretches before it are asked only where what
        this one knows from below does not tell that they are larger."""
        own = self._chord(k, self._high(k), True)
        if k == 0 or own <= self._chord(k, self._low(k), False):
            return own
        return min(own, self._up_to(k - 1))

    def _from(self, k: int) -> float:
        """The largest lower bound from the beginning of the k-th stretch on, in the same way."""
        own = self._chord(k, self._low(k), False)
        if self._stretch(k).last or own >= self._chord(k, self._high(k), True):
            return own
        return max(own, self._from(k + 1))

    def _chord(self, k: int, epsilon: float, upper: bool) -> float:
        """The bound that the k-th stretch has."""
        found = self._windows(k)[upper]
        values = found.upper if upper else found.lower
        place = (epsilon - self.start) / self.step - found.first
        j = math.floor(place)
        if j < 0:  # straight down from all mass, if there is none below; a lower bound may stay where it is
            everything = 1 - self.margins.infinite[0] if upper else self.lower.mass * (1 - 64 * UNIT)
            if not upper and found.first > self.lower.ends[0]:
                return float(values[0])
            return float(values[0]) - max(0.0, everything - float(values[0])) * math.expm1(place * self.step)
        if j + 1 >= len(values):
            return float(values[-1]) if upper else 0.0
        share = math.expm1((place - j) * self.step) / math.expm1(self.step)
        between = float(values[j] + share * (values[j + 1] - values[j]))
        return min(max(between, float(values[j + 1])), float(values[j]))

    def _reach(self, delta: float, upper: bool) -> float:
        if not self.upper.parts:
            return 0.0
        k = 0
        while not self._stretch(k).last and self._stretch(k).bound > math.log(delta):
            k += 1
        # Chernoff's bound is too large: it may be some stretches before.
        if upper:
            while k > 0 and self._up_to(k - 1) <= delta:
                k -= 1
            while not self._stretch(k).last and self._up_to(k) > delta:
                k += 1
        else:
            while k > 0 and self._from(k) <= delta:
                k -= 1
            while not self._stretch(k).last and self._from(k + 1) > delta:
                k += 1
        found = self._crossing(k, delta, upper)
        first, last = self._low(k) if k > 0 else -math.inf, math.inf if self._stretch(k).last else self._high(k)
        return found if math.isinf(found) else min(max(found, first), last)

    def _crossing(self, k: int, delta: float, upper: bool) -> float:
        """Where the chords of the k-th stretch come down to delta; infinite or 0 if there are none that do."""
        found = self._windows(k)[upper]
        if upper:
            at_most = np.flatnonzero(found.upper <= delta)
            if len(at_most) == 0:
                return math.inf
            j, values = int(at_most[0]) - 1, found.upper
        else:
            at_least = np.flatnonzero(found.lower > delta)
            if len(at_least) == 0:
                return 0.0
            j, values = int(at_least[-1]), found.lower
        if not 0 <= j < len(values) - 1:
            return self._place(found, max(j, 0))
        share = min(1.0, float((values[j] - delta) / (values[j] - values[j + 1])))
        return self._place(found, j) + math.log1p(share * math.expm1(self.step))

    def _place(self, found: Window, j: int) -> float:
        return self.start + self.step * (found.first + j)


# -- helpers -------------------------------------------------------------------------------------------------


def bounded(epsilons: Array, lower: Array, upper: Array, margins: Margins) -> Curve:
    """Bounds for all epsilons: beyond the last one, and from the greatest loss on, only infinite losses are left."""
    lowest, highest = margins.infinite
    within = epsilons < margins.greatest
    above = Points(epsilons[within], upper[within])
    if not bool(np.all(within)):
        above = Points(np.append(above.epsilons, margins.greatest), np.append(above.deltas, highest))
    below = Points(np.append(epsilons, epsilons[-1]), np.append(lower, lowest))
    return Curve(
        Points(np.maximum(0, below.epsilons - margins.slack), below.deltas),
        Points(above.epsilons + margins.slack, above.deltas),
    )


def _together(below: Window, above: Window) -> tuple[Array, Array, Array]:
    """Both bounds at the lattice points that both windows have; above the lower law's end its delta is 0."""
    last = above.first + len(above.upper)
    first = max(above.first, below.first)
    at = np.arange(first, max(first, last))
    lower = np.zeros(len(at))
    known = below.lower[first - below.first :][: len(at)]
    lower[: len(known)] = known
    return at.astype(np.float64), lower, above.upper[first - above.first :][: len(at)]


def _larger(a: Points, b: Points) -> Points:
    """The larger of two deltas, at the epsilons of both and where they cross."""
    at = np.union1d(a.epsilons, b.epsilons)
    difference = _interpolated(a, at) - _interpolated(b, at)
    crossing, share = crossings(difference)
    more = at[crossing] + np.log1p(share * np.expm1(at[crossing + 1] - at[crossing]))
    at = np.union1d(at, more)
    return Points(at, np.maximum(_interpolated(a, at), _interpolated(b, at)))


def _interpolated(points: Points, at: Array) -> Array:
    j = np.clip(np.searchsorted(points.epsilons, at, side="right") - 1, 0, len(points.epsilons) - 2)
    width = points.epsilons[j + 1] - points.epsilons[j]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        share = np.where(width > 0, np.expm1(at - points.epsilons[j]) / np.expm1(width), 1.0)
    share = np.clip(share, 0, 1)
    return np.asarray(points.deltas[j] + share * (points.deltas[j + 1] - points.deltas[j]))
