"""Composition of privacy-loss distributions: delta, epsilon and power of many mechanisms together, as two bounds each.

Losses of independent mechanisms add up (Kifer et al. 2022, Example 4.6). Where the sum has few values they are listed;
where all parts are on one lattice it is computed there, and nothing is rounded; else on a grid, once with laws below
and once with laws above those of the parts (:mod:`stirred.loss.lattices`). Sums on a lattice are formed by Fourier
transforms of tilted laws (:mod:`stirred.loss.tilting`).

Keep in mind: the truth lies between the bounds. The lower one is a number that no correct analysis
can go below, the upper one a guarantee; what lies between them is the error of rounding to the grid, of the
transforms, of cut tails and of floats, all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.errors import grid_too_fine, parameter_out_of_range
from stirred.loss.argument_checks import Number, finite, non_negative, probability
from stirred.loss.curves import PowerCurve
from stirred.loss.distributions import LossDistribution
from stirred.loss.envelopes import Polyline, envelope
from stirred.loss.grids import Parts, chosen_step, ends, offset, points
from stirred.loss.lattices import common_step, contracted, placed, split
from stirred.loss.laws import UNIT, Atoms, GaussianLaw, Law, gathered, in_place_of
from stirred.loss.listed_distributions import Listed
from stirred.loss.one_way import Curve, Margins, OneWay
from stirred.loss.tilting import MOST_POINTS, Sum

LONGEST_EXACT = 1 << 20
"""Up to so many points a common lattice is preferred to a grid."""

UNDERFLOW = 1e-290
"""More than all the mass that is lost because floats end."""


class Bounds(NamedTuple):
    """A number known to lie between two others."""

    lower: float
    upper: float


_ROUNDING = 1e-9
"""An epsilon below which it is asked whether 0 would do."""


@brief
@dataclass(frozen=True, eq=False)
class ComposedLoss:
    """The loss between products of distributions, P_1 x P_2 x ... and Q_1 x Q_2 x ..., in both directions.

    ``step`` is that of the lattice it was computed on, 0 where all losses could be listed; ``exact`` tells that no loss
    was rounded to it.
    """

    step: float
    exact: bool
    _forward: OneWay | Listed
    _backward: OneWay | Listed

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
    def _ways(self) -> tuple[OneWay | Listed, ...]:
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


@says_what_it_takes
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
    parts = [(distribution, _count(count)) for distribution, count in distributions]
    parts = [(distribution, count) for distribution, count in parts if count > 0]
    step = None if grid is None else finite("grid", grid)
    if step == 0:
        raise parameter_out_of_range("grid", grid, "above 0")
    forward = _one_way([(d.law, d.infinity, n) for d, n in parts], step, exact)
    if all(d.symmetric for d, _ in parts):
        backward = forward
    else:
        backward = _one_way([(d.reverse_law, d.reverse_infinity, n) for d, n in parts], step, exact)
    return ComposedLoss(forward.step, forward.exact and backward.exact, forward, backward)


def _count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise parameter_out_of_range("count", count, "a whole number that is at least 0")
    return int(count)


def _one_way(parts: list[tuple[Law, float, int]], grid: float | None, exact: bool) -> OneWay | Listed:
    """One direction."""
    infinite = _infinite([(infinity, n, getattr(law, "blur", 0.0)) for law, infinity, n in parts if infinity > 0])
    laws = _grouped([(law, n) for law, _, n in parts])
    if infinite[0] == 1 or not laws or any(isinstance(law, Atoms) and len(law.losses) == 0 for law, _ in laws):
        return OneWay.without_loss(infinite)
    greatest = max(0.0, math.fsum(n * law.greatest for law, n in laws))
    slack = math.fsum(n * _loss_error(law) for law, n in laws)

    def margins(parts: list[tuple[Atoms, int]]) -> Margins:
        return Margins(infinite, UNDERFLOW + math.fsum(n * law.cut for law, n in parts), slack, greatest)

    atoms = [(law, n) for law, n in laws if isinstance(law, Atoms)]
    smooth = [(law, n) for law, n in laws if not isinstance(law, Atoms)]
    few = gathered(atoms)
    if exact and grid is None and not smooth:
        if len(few) == 1 and few[0][1] == 1:
            return Listed(few[0][0], margins(few))
        common = common_step(atoms)
        if common is not None and _points_on(atoms, common) <= LONGEST_EXACT:
            pairs = [placed(law, n, common) for law, n in atoms]
            below, above = (Sum(tuple(pair[side] for pair in pairs), float(common)) for side in (0, 1))
            start = sum((n * law.first for law, n in atoms if law.first is not None), Fraction(0))
            return OneWay(below, above, float(start), margins(atoms), True)
    rest: Parts = [*few, *smooth]
    step = grid or chosen_step(rest)
    if (needed := points(rest, step)) > MOST_POINTS:
        raise grid_too_fine(needed, MOST_POINTS)
    lower, upper, begins, cut = [], [], 0.0, []
    for law, n in rest:
        begin = offset(law)
        one, other = (law, law) if isinstance(law, Atoms) else in_place_of(law, step, begin)
        lower.append(contracted(one, n, step, begin))
        upper.append(split(other, n, step, begin))
        begins += n * begin
        cut.append((other, n))
    return OneWay(Sum(tuple(lower), step), Sum(tuple(upper), step), begins, margins(cut), False)


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
