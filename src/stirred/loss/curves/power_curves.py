"""Budgets that are curves: the power of tests, and epsilon as a function of delta (section 2.4.6).

A power curve is an element of F_Tr (Definition A.6.1): concave, non-decreasing, nowhere below the identity; its value
is the *power* that a test at a level may have. The literature on f-DP draws type II errors instead, one minus the
power, and there the order is reversed. Here a smaller curve is always the stronger promise.

Keep in mind: curves are values. They are checked when made, never change, and are equal when their
points are, so that they can be fields of a specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._calls import refuses_wrong_arguments
from stirred._compiled import kernel
from stirred._display import brief
from stirred._lazy import later
from stirred.errors import LossError, not_a_curve
from stirred.loss import divergences
from stirred.loss.argument_checks import Number, finite, non_negative, probabilities, probability

special = later("scipy.special")

Array = NDArray[np.float64]

_LARGEST = 709.0
"""Exponentials of larger numbers leave the range of floats."""

_COMPILED = 256
"""More points than this are worth a compiled kernel."""

ROUNDING = 1e-12
"""Relative difference in power below which curves are not told apart: vertices are rounded numbers."""


@brief
@dataclass(frozen=True)
class PowerCurve:
    """A power curve that is straight between its vertices (false-alarm probability, power).

    >>> curve = pure_power(math.log(3))
    >>> curve.points
    ((0.0, 0.0), (0.25, 0.75), (1.0, 1.0))
    >>> float(curve.power(0.125)), float(curve.type_two_error(0.125))
    (0.375, 0.625)
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        points = _as_points(self.points)
        object.__setattr__(self, "points", points)
        levels, powers = np.array(points).T
        if len(points) < 2 or levels[0] != 0 or levels[-1] != 1 or not bool(np.all(np.diff(levels) > 0)):
            raise not_a_curve("power curve", "levels must increase from 0 to 1")
        if not bool(np.all((powers >= 0) & (powers <= 1) & (np.diff(powers, prepend=0) >= 0))):
            raise not_a_curve("power curve", "powers must not decrease and lie between 0 and 1")
        if powers[-1] != 1:
            raise not_a_curve("power curve", "at level 1 the power is 1")
        # A slope is known as well as the powers at its ends, which are rounded.
        slopes, slack = np.diff(powers) / np.diff(levels), ROUNDING / np.diff(levels)
        if not bool(np.all(slopes[1:] <= slopes[:-1] * (1 + ROUNDING) + slack[:-1] + slack[1:])):
            raise not_a_curve("power curve", "it is not concave")

    def power(self, level: ArrayLike) -> Array:
        """The largest power of a test with false-alarm probability ``level``; an array of the same shape."""
        levels, powers = np.array(self.points).T
        return np.asarray(np.interp(probabilities("level", level), levels, powers))

    def type_two_error(self, level: ArrayLike) -> Array:
        """One minus the power: the trade-off function of f-DP."""
        return 1 - self.power(level)


@dataclass(frozen=True)
class GaussianCurve:
    """The power of telling N(0, 1) from N(mu, 1): Phi(Phi^-1(level) + mu), the curve of mu-Gaussian DP.

    >>> round(float(GaussianCurve(2.293469).power(0.05)), 6)  # the 2020 redistricting data, rho = 2.63
    0.741706
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", finite("mu", self.mu))

    def power(self, level: ArrayLike) -> Array:
        """The largest power of a test with false-alarm probability ``level``; an array of the same shape."""
        return np.asarray(special.ndtr(special.ndtri(probabilities("level", level)) + self.mu))

    def type_two_error(self, level: ArrayLike) -> Array:
        """One minus the power: the trade-off function of f-DP."""
        return np.asarray(special.ndtr(-special.ndtri(probabilities("level", level)) - self.mu))


@brief
@dataclass(frozen=True)
class EpsilonProfile:
    """Epsilon as a function of delta, in steps: each point's epsilon holds at its delta and at every larger one.

    Below the first delta nothing is promised. A single point is the budget of (epsilon, delta)-DP (section 2.4.6).

    >>> profile = EpsilonProfile(((1e-10, 18.2), (1e-6, 13.1)))
    >>> profile.epsilon(1e-8), profile.epsilon(0.5), profile.epsilon(0)
    (18.2, 13.1, inf)
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        points = _as_points(self.points)
        object.__setattr__(self, "points", points)
        deltas, epsilons = np.array(points).T
        if not bool(np.all((deltas >= 0) & (deltas <= 1))) or not bool(np.all(np.diff(deltas) > 0)):
            raise not_a_curve("epsilon profile", "deltas must increase and lie between 0 and 1")
        if not bool(np.all((epsilons >= 0) & (epsilons <= np.append(math.inf, epsilons[:-1])))):
            raise not_a_curve("epsilon profile", "epsilons must be at least 0 and not increase with delta")

    def epsilon(self, delta: Number) -> float:
        """The epsilon that holds at ``delta``."""
        d = probability("delta", delta)
        return min((epsilon for at, epsilon in self.points if at <= d), default=math.inf)


Curve = PowerCurve | GaussianCurve | EpsilonProfile


@refuses_wrong_arguments
def pure_power(epsilon: Number) -> PowerCurve:
    """The curve of pure epsilon-DP: min(e^epsilon level, 1 - e^-epsilon (1 - level)) (Wasserman and Zhou 2010)."""
    return approximate_power(epsilon, 0)


@refuses_wrong_arguments
def approximate_power(epsilon: Number, delta: Number) -> PowerCurve:
    """The curve of (epsilon, delta)-DP (Kairouz, Oh and Viswanath 2015):

        min(1, e^epsilon level + delta, 1 - e^-epsilon (1 - level - delta)).

    Its lines meet at the level (1 - delta) / (1 + e^epsilon), where power and level sum to one.

    >>> approximate_power(0, 0.25).points
    ((0.0, 0.25), (0.375, 0.625), (0.75, 1.0), (1.0, 1.0))
    """
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    meet = (1 - d) * (1 / (1 + math.exp(e)) if e < _LARGEST else 0.0)
    corners = [(0.0, d), (meet, 1 - meet), (1 - d, 1.0), (1.0, 1.0)]
    # At one level the last corner stands: with delta = 1, or an infinite epsilon, all power is at level 0.
    return PowerCurve(tuple(dict(corners).items()))


@refuses_wrong_arguments
def at_most(f: Curve, g: Curve) -> bool:
    """Whether f is nowhere above g: what satisfies f then satisfies g.

    Decided at finitely many places, which suffice. A concave g is above a straight edge of f if it is at its ends. On a
    straight edge of g a Gaussian f comes highest where its slope exp(-z mu - mu^2/2), z = Phi^-1(level), is that of the
    edge. Powers that differ by a part of 1e-12 are taken for equal.

    >>> at_most(GaussianCurve(1), pure_power(5)), at_most(pure_power(0.4), GaussianCurve(1))
    (False, True)
    """
    if isinstance(f, EpsilonProfile) and isinstance(g, EpsilonProfile):
        return all(f.epsilon(delta) <= epsilon for delta, epsilon in g.points)
    if isinstance(f, EpsilonProfile) or isinstance(g, EpsilonProfile):
        raise LossError(
            "curves-not-comparable",
            f"A {_said(f)} and a {_said(g)} have no common order.",
            "Compare power curves with power curves and epsilon profiles with epsilon profiles.",
        )
    if isinstance(f, GaussianCurve) and isinstance(g, GaussianCurve):
        return f.mu <= g.mu
    if isinstance(f, PowerCurve):
        levels = np.array(f.points)[:, 0]
    elif f.mu == 0:  # the identity
        return True
    else:
        assert isinstance(g, PowerCurve)
        if g.points[0][1] == 0:  # at level 0 the slope of f is infinite, that of g is not
            return False
        levels = _highest(f, g)
    return bool(np.all(f.power(levels) <= g.power(levels) * (1 + ROUNDING)))


def curve_between(p: ArrayLike, q: ArrayLike) -> PowerCurve:
    """The power curve of two finite distributions."""
    # Probabilities that vanish beside others make no step.
    return PowerCurve(tuple(dict(map(tuple, divergences.power_curve(p, q).tolist())).items()))


def curve_above(curves: Iterable[PowerCurve]) -> PowerCurve:
    """The smallest power curve above several."""
    levels, powers = np.concatenate([np.array(curve.points) for curve in curves]).T
    return concave_hull(levels, powers)


def concave_hull(levels: Array, powers: Array) -> PowerCurve:
    """The smallest concave curve above some points, and above (1, 1)."""
    x = np.clip(np.append(levels, [0.0, 1.0]), 0.0, 1.0)
    y = np.clip(np.append(powers, [0.0, 1.0]), 0.0, 1.0)
    order = np.lexsort((-y, x))
    x, y = x[order], np.maximum.accumulate(y[order])
    first = np.append(True, np.diff(x) > 0)
    x, y = np.ascontiguousarray(x[first]), np.ascontiguousarray(y[first])
    chosen = np.empty(len(x), dtype=np.int64)
    size = _concave(x, y, chosen) if len(x) > _COMPILED else _concave.py_func(x, y, chosen)  # type: ignore[attr-defined]
    kept = chosen[:size]
    return PowerCurve(tuple(zip(x[kept].tolist(), y[kept].tolist(), strict=True)))


@kernel
def _concave(x, y, chosen):  # type: ignore[no-untyped-def]
    """Fill ``chosen`` with the points of the upper hull of points from left to right; how many."""
    size = 0
    for k in range(len(x)):
        while size > 1:
            a, b = chosen[size - 2], chosen[size - 1]
            if (y[b] - y[a]) * (x[k] - x[a]) > (y[k] - y[a]) * (x[b] - x[a]):
                break
            size -= 1
        chosen[size] = k
        size += 1
    return size


def crossings(gap: Array) -> tuple[NDArray[np.int64], Array]:
    """Where the difference of two curves changes its sign: after which places, and at which share of the way to the
    next ones."""
    crossed = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    return crossed, gap[crossed] / (gap[crossed] - gap[crossed + 1])


def _highest(f: GaussianCurve, g: PowerCurve) -> Array:
    """On each edge of g, the level at which f is highest above it."""
    levels, powers = np.array(g.points).T
    with np.errstate(divide="ignore"):
        steepness = np.log(np.diff(powers)) - np.log(np.diff(levels))
    with np.errstate(over="ignore"):  # a quotient beyond the range of floats is an infinity, whose ndtr is right
        return np.asarray(np.clip(special.ndtr(-steepness / f.mu - f.mu / 2), levels[:-1], levels[1:]))


def _as_points(points: object) -> tuple[tuple[float, float], ...]:
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_a_curve("curve", "give pairs of numbers") from None
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0 or bool(np.any(np.isnan(array))):
        raise not_a_curve("curve", "give pairs of numbers")
    return tuple((float(x), float(y)) for x, y in array)


def _said(curve: Curve) -> str:
    return "profile of epsilon" if isinstance(curve, EpsilonProfile) else "power curve"
