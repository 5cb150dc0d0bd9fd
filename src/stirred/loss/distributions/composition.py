"""Composition of privacy-loss distributions: delta, epsilon and power of many mechanisms together, as two bounds each.

Losses of independent mechanisms add up (Kifer et al. 2022, Example 4.6). Where the sum has few values they are listed;
where all parts are on one lattice it is computed there, and nothing is rounded; else on a grid, once with laws below
and once with laws above those of the parts (:mod:`stirred.loss.distributions.lattice_sums`).

Keep in mind: the truth lies between the bounds. The lower one is a number that no correct analysis
can go below, the upper one a guarantee; what lies between them is the error of rounding to the grid, of the
transforms, of cut tails and of floats, all of it.

The grid, where none is given and the losses share no lattice. Splitting adds about a sixth of the step's square to the
variance of each part, in the bounds from above, and so it is below where atoms are dense. Atoms that stand alone and
off the grid make lower bounds loose in proportion to the step. So the grid of each part begins at an atom of it, and
the step is chosen so that the gaps between atoms of all parts that are lattices themselves come as near as can be to
multiples of it; that of the part with the largest variance is one.

Power curves from (epsilon, delta) pairs. For a test of P with power against Q, at every epsilon >= 0,

    power <= e^epsilon level + delta_QP(epsilon)   and   power <= 1 - e^-epsilon (1 - level - delta_PQ(epsilon)),

and the smallest of these is attained (Dong, Roth and Su 2022, Proposition 2.12): each pair is a line above the curve,
and the lowest counts. Larger deltas give higher lines, and where delta is straight in e^epsilon no epsilon between the
ends gives a lower line than both of them. So bounds on delta at the points of a lattice give bounds on the power.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._calls import refuses_wrong_arguments
from stirred._compiled import kernel
from stirred._display import brief
from stirred.errors import LossError, parameter_out_of_range
from stirred.loss.argument_checks import Number, finite, non_negative, probability, whole
from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.distributions.directions import Curve, Direction, LatticeDirection, ListedDirection, Margins, Points
from stirred.loss.distributions.lattice_sums import MOST_POINTS, Sum, common_step, contracted, placed, split
from stirred.loss.distributions.loss_distribution import (
    UNIT,
    Array,
    Atoms,
    GaussianLaw,
    LaplaceLaw,
    Law,
    LossDistribution,
    gathered,
    in_place_of,
)

Parts = list[tuple[Law, int]]

ACCURACY = 1e-7
"""The part of its variance by which rounding to a grid may change the loss."""

FINEST = 1 << 19
WORK = 1 << 23
"""A grid has at most about so many points, and times the number of parts so many."""

ALONE = 1 << 18
"""Where atoms stand alone, the grid has at least about so many, divided by the number of parts."""

_WIDEST = 18
"""How many standard deviations such points are meant to cover."""

MOST_TRIED = 20_000

LONGEST_EXACT = 1 << 20
"""Up to so many points a common lattice is preferred to a grid."""

UNDERFLOW = 1e-290
"""More than all the mass that is lost because floats end."""

_OUTWARDS = 16 * UNIT
"""The part by which the height of a line is rounded."""

_LARGEST_EXPONENT = 690.0
"""Slopes are e to the power of at most this."""

_ROUNDING = 1e-9
"""An epsilon below which it is asked whether 0 would do."""


class Bounds(NamedTuple):
    """A number known to lie between two others."""

    lower: float
    upper: float


@brief
@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """The loss between products of distributions, P_1 x P_2 x ... and Q_1 x Q_2 x ..., in both directions.

    ``step`` is that of the lattice it was computed on, 0 where all losses could be listed; ``exact`` tells that no loss
    was rounded to it.
    """

    step: float
    exact: bool
    _forward: Direction
    _backward: Direction

    def delta(self, epsilon: Number) -> Bounds:
        """The smallest delta at ``epsilon``, the larger of both directions; at infinity the mass of infinite losses.

        >>> from stirred.loss import randomised_response
        >>> compose([(randomised_response(1), 2)]).delta(1)
        Bounds(lower=0.337834..., upper=0.337834...)
        """
        e = non_negative("epsilon", epsilon)
        found = [way.delta(e) for way in self._ways]
        return Bounds(max(low for low, _ in found), max(high for _, high in found))

    def epsilon(self, delta: Number) -> Bounds:
        """The smallest epsilon at ``delta``, the larger of both directions; infinite where infinite losses have more
        mass than delta. At 0 it is the largest loss.

        >>> from stirred.loss import gaussian
        >>> compose([(gaussian(1), 10)]).epsilon(1e-10)
        Bounds(lower=24.5696..., upper=24.5696...)
        """
        d = probability("delta", delta)
        found = [way.epsilon(d) for way in self._ways]
        low, high = max(low for low, _ in found), max(high for _, high in found)
        if 0 < high < _ROUNDING and self.delta(0).upper <= d:
            return Bounds(0.0, 0.0)  # what is left above 0 is the margin for rounding
        return Bounds(low, high)

    def power(self, level: Number, symmetric: bool = False) -> Bounds:
        """The largest power of a test of P against Q with false-alarm probability ``level``; ``symmetric`` as in
        :meth:`power_curve`."""
        at = probability("level", level)
        lower, upper = self._polylines(symmetric)
        return Bounds(lower.at(at), upper.at(at))

    def type_two_error(self, level: Number, symmetric: bool = False) -> Bounds:
        """One minus the power: the trade-off function of f-DP."""
        lower, upper = self.power(level, symmetric)
        return Bounds(max(0.0, 1 - upper - UNIT), min(1.0, 1 - lower + UNIT))

    def power_curve(self, symmetric: bool = False, vertices: int = 2000) -> tuple[PowerCurve, PowerCurve]:
        """Curves below and above Tr(P, Q), of about as many vertices as told.

        With ``symmetric`` they bound the smallest power curve that is above those of both directions and its own mirror
        image: what a budget must allow if nobody says which of P and Q is the hypothesis.

        >>> from stirred.loss import randomised_response
        >>> lower, upper = compose([(randomised_response(math.log(3)), 1)]).power_curve()
        >>> [(round(level, 12), round(power, 12)) for level, power in upper.points[:2]]
        [(0.0, 0.0), (0.25, 0.75)]
        """
        lower, upper = self._polylines(symmetric)
        return lower.inside(vertices), upper.outside(vertices)

    @property
    def _ways(self) -> tuple[Direction, ...]:
        return (self._forward,) if self._backward is self._forward else (self._forward, self._backward)

    @cached_property
    def _curves(self) -> tuple[Curve, Curve]:
        forward = self._forward.curve()
        return forward, forward if self._backward is self._forward else self._backward.curve()

    @cached_property
    def _kept(self) -> dict[bool, tuple[Polyline, Polyline]]:
        return {}

    def _polylines(self, symmetric: bool) -> tuple[Polyline, Polyline]:
        symmetric = symmetric and self._backward is not self._forward
        if symmetric not in self._kept:
            forward, backward = self._curves
            if symmetric:
                forward = backward = forward.joined(backward)
            self._kept[symmetric] = (
                envelope(forward.lower, backward.lower, False),
                envelope(forward.upper, backward.upper, True),
            )
        return self._kept[symmetric]


# -- composing -----------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def compose(
    distributions: Iterable[tuple[LossDistribution, int]], grid: Number | None = None, exact: bool = True
) -> ComposedLoss:
    """The loss of independent mechanisms together, each as often as its count says.

    If every part is the worst pair of its mechanism whatever came before, the upper bounds also hold where later
    mechanisms are chosen by the answers of earlier ones (Zhu, Dong and Wang 2022, Theorem 10).

    ``grid`` is the step to which losses are rounded; where it is left out, and ``exact``, parts that are on a common
    lattice are composed on it, else a step is chosen for which rounding changes epsilon in about the seventh digit.
    Nothing composed has no loss.

    >>> compose([]).delta(0), compose([]).epsilon(0)
    (Bounds(lower=0.0, upper=0.0), Bounds(lower=0.0, upper=0.0))
    """
    wanted = "a whole number that is at least 0"
    parts = [(distribution, whole("count", count, wanted)) for distribution, count in distributions]
    parts = [(distribution, count) for distribution, count in parts if count > 0]
    step = None if grid is None else finite("grid", grid)
    if step == 0:
        raise parameter_out_of_range("grid", grid, "above 0")
    forward = _direction([(d.law, d.infinity, n) for d, n in parts], step, exact)
    if all(d.symmetric for d, _ in parts):
        backward = forward
    else:
        backward = _direction([(d.reverse_law, d.reverse_infinity, n) for d, n in parts], step, exact)
    return ComposedLoss(forward.step, forward.exact and backward.exact, forward, backward)


def _direction(parts: list[tuple[Law, float, int]], grid: float | None, exact: bool) -> Direction:
    """The loss of one direction, listed, on a common lattice, or between two laws on a grid."""
    infinite = _infinite([(infinity, n, getattr(law, "blur", 0.0)) for law, infinity, n in parts if infinity > 0])
    laws = _grouped([(law, n) for law, _, n in parts])
    if infinite[0] == 1 or not laws or any(isinstance(law, Atoms) and len(law.losses) == 0 for law, _ in laws):
        return LatticeDirection.without_loss(infinite)
    greatest = max(0.0, math.fsum(n * law.greatest for law, n in laws))
    slack = math.fsum(n * _loss_error(law) for law, n in laws)

    def margins(parts: list[tuple[Atoms, int]]) -> Margins:
        return Margins(infinite, UNDERFLOW + math.fsum(n * law.cut for law, n in parts), slack, greatest)

    atoms = [(law, n) for law, n in laws if isinstance(law, Atoms)]
    smooth = [(law, n) for law, n in laws if not isinstance(law, Atoms)]
    few = gathered(atoms)
    if exact and grid is None and not smooth:
        if len(few) == 1 and few[0][1] == 1:
            return ListedDirection(margins(few), True, few[0][0])
        common = common_step(atoms)
        if common is not None and _points_on(atoms, common) <= LONGEST_EXACT:
            pairs = [placed(law, n, common) for law, n in atoms]
            below, above = (Sum(tuple(pair[side] for pair in pairs), float(common)) for side in (0, 1))
            start = sum((n * law.first for law, n in atoms if law.first is not None), Fraction(0))
            return LatticeDirection(margins(atoms), True, below, above, float(start))
    rest: Parts = [*few, *smooth]
    step = grid or chosen_step(rest)
    if (needed := points(rest, step)) > MOST_POINTS:
        raise LossError(
            "grid-too-fine",
            f"A grid of losses this fine has about {needed:.2g} points; {MOST_POINTS} is the most.",
            "Give a larger step, or leave it out to have one chosen.",
        )
    lower, upper, begins, cut = [], [], 0.0, []
    for law, n in rest:
        begin = offset(law)
        one, other = (law, law) if isinstance(law, Atoms) else in_place_of(law, step, begin)
        lower.append(contracted(one, n, step, begin))
        upper.append(split(other, n, step, begin))
        begins += n * begin
        cut.append((other, n))
    return LatticeDirection(margins(cut), False, Sum(tuple(lower), step), Sum(tuple(upper), step), begins)


def _infinite(masses: list[tuple[float, int, float]]) -> tuple[float, float]:
    """Bounds on the mass at infinity of the sum, from masses, counts and relative errors of its parts.

    A single one that was told exactly stays what it was told to be.
    """
    if any(mass == 1 for mass, _, _ in masses):
        return 1.0, 1.0
    mass = -math.expm1(math.fsum(n * math.log1p(-mass) for mass, n, _ in masses))
    error = 16 * UNIT + math.fsum(blur for _, _, blur in masses)
    if sum(n for _, n, _ in masses) <= 1:
        mass, error = (masses[0][0], masses[0][2]) if masses else (0.0, 0.0)
    return mass * (1 - error), min(1.0, mass * (1 + error))


def _grouped(parts: list[tuple[Law, int]]) -> list[tuple[Law, int]]:
    """The parts with equal laws merged, all Gaussians merged into one, and parts without any loss left out."""
    counts: dict[object, tuple[Law, int]] = {}
    square = 0.0
    for law, n in parts:
        if isinstance(law, GaussianLaw):
            square += n * law.mu**2
            continue
        key: object = law
        if isinstance(law, Atoms):
            if len(law.losses) == 1 and law.losses[0] == 0 and law.masses[0] == 1:
                continue
            key = (law.first, law.step, law.losses.tobytes(), law.masses.tobytes())
        counts[key] = (law, n + (counts[key][1] if key in counts else 0))
    found = list(counts.values())
    return [*found, (GaussianLaw(math.sqrt(square)), 1)] if square > 0 else found


def _loss_error(law: Law) -> float:
    """How far off a loss may be, after all roundings on the way to the sum."""
    return 32 * UNIT * max(map(abs, ends(law))) + (law.blur if isinstance(law, Atoms) else 0.0)


def _points_on(parts: list[tuple[Atoms, int]], step: Fraction) -> Fraction:
    """How many points of a lattice that all parts are on the sum can reach."""
    return sum((n * (len(law.masses) - 1) * law.step / step for law, n in parts if law.step is not None), Fraction(1))


# -- the grid -------------------------------------------------------------------------------------------------


def chosen_step(parts: Parts) -> float:
    """A step for which rounding changes epsilon in about the seventh digit, a little more where atoms stand alone."""
    spread = deviation(parts) or 1.0
    step = spread * math.sqrt(6 * ACCURACY / sum(n for _, n in parts))
    if any(_gap(law) > step for law, _ in parts):
        step = min(step, _WIDEST * spread * len(parts) / ALONE)
    step = max(step, _WIDEST * spread / FINEST, _WIDEST * spread * len(parts) / WORK)
    step = max(step, max(span(law) for law, _ in parts) / (2 * FINEST))  # the longest part must fit
    gaps = sorted(((n * law.variance, _gap(law)) for law, n in parts if 2 * step < _gap(law) < math.inf), reverse=True)
    if not gaps:
        return step
    first = math.ceil(gaps[0][1] / step)
    pieces = np.arange(first, min(2 * first, first + MOST_TRIED) + 1, dtype=np.float64)
    off = np.zeros(len(pieces))
    for variance, gap in gaps[1:]:
        places = gap / gaps[0][1] * pieces
        # Atoms some gaps away are off as many times as much, until it does not matter.
        gaps_across = 1 + 2 * math.sqrt(variance) / gap
        off += variance / gap * np.minimum(0.5, gaps_across * np.abs(places - np.round(places)))
    return float(gaps[0][1] / pieces[np.argmin(off / pieces)])


def offset(law: Law) -> float:
    """Where the grid of a part begins: at its last atom if it is a lattice, else at the heaviest one.

    The largest loss of the sum is then on the grid, and delta just below it is not lost in the lower bounds.
    """
    if isinstance(law, LaplaceLaw):
        return law.epsilon
    if not isinstance(law, Atoms):
        return 0.0
    return float(law.losses[-1 if law.step is not None else int(np.argmax(law.masses))])


def points(parts: Parts, step: float) -> float:
    """About how many points of a grid are needed around the mean, and for the longest part."""
    return max(16 * deviation(parts), *(span(law) for law, _ in parts)) / step


def deviation(parts: Parts) -> float:
    """The standard deviation of the sum of independent losses."""
    return math.sqrt(math.fsum(n * law.variance for law, n in parts))


def ends(law: Law) -> tuple[float, float]:
    """The smallest and largest loss that are not cut."""
    return (float(law.losses[0]), float(law.losses[-1])) if isinstance(law, Atoms) else law.interval()


def span(law: Law) -> float:
    """The length of the interval of losses that are not cut."""
    low, high = ends(law)
    return high - low


def _gap(law: Law) -> float:
    """The distance of atoms that stand alone: infinite where it is not one distance, 0 where there are none."""
    if isinstance(law, LaplaceLaw):
        return 2 * law.epsilon
    if not isinstance(law, Atoms) or len(law.losses) == 1:
        return 0.0
    if law.step is not None:
        return float(law.step)
    crowded = len(law.losses) * math.sqrt(law.variance) > 1e3 * span(law)
    return 0.0 if crowded else math.inf


# -- power curves ---------------------------------------------------------------------------------------------


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
        return min(1.0, height * (1 + _OUTWARDS)) if self.above else max(level, min(1.0, height * (1 - _OUTWARDS)))

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
    steep = np.exp(np.minimum(backward.epsilons[::-1], _LARGEST_EXPONENT))
    finite = (backward.epsilons[::-1] < _LARGEST_EXPONENT) | (not above)
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
