"""Distortion models: all probabilities within a distance of one, for several distances (Appendix C.4).

A *distorting function* d compares two measures (Definition C.4.1); the *distortion model* on a probability P0, the
nucleus, is the closed ball {P : d(P, P0) <= r} (Definition C.4.2). A guarantee is one: pure differential privacy asks
that the law of the output lie in the ball of the multiplicative distance about that of every neighbour (Remark 5.3.6).

The balls here are convex polytopes, and the smallest and largest expectations over them are attained:

=================  ==================================================================================
multiplicative     between e^-r P0 and e^r P0, outcome by outcome
density-ratio      all odds within a factor e^r
odds-ratio         the same with r = -ln(1 - delta): the constant-odds-ratio model
linear-vacuous     at least (1 - delta) P0, outcome by outcome
total-variation    at most r of the mass is moved
approximate        (epsilon, delta) in both directions, delta given and epsilon the radius: a linear programme
=================  ==================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._lazy import later
from stirred.lab.limits.measure_intervals import ROUNDING, Expectations, MeasureInterval, events, functions
from stirred.limits.distances import (
    approximate_distance,
    density_ratio_distance,
    finite_measure,
    linear_vacuous_distance,
    measure,
    multiplicative_distance,
    odds_ratio_distance,
    one_probability,
    total_variation_distance,
)
from stirred.loss.argument_checks import SUM_TOLERANCE, Number, non_negative, probability

optimize = later("scipy.optimize")

Array = NDArray[np.float64]
Attaining = Callable[[Array, float, Array], Array]


@brief
@dataclass(frozen=True)
class DistortingFunction:
    """A distance between measures on the same outcomes, d(P, Q) >= 0 (Definition C.4.1)."""

    name: str
    symbol: str
    between: Callable[[Any, Any], Array]
    metric: bool = False
    """A metric between probabilities: symmetric, with the triangle inequality, 0 only between equal ones."""
    convex: bool = False
    """Convex in its second argument, in the sense of (C.9)."""
    attaining: Attaining | None = field(default=None, repr=False)
    """From the nucleus, the radius and a function of the outcomes, a member of the ball with its largest mean."""

    def __call__(self, p: ArrayLike, q: ArrayLike) -> Array:
        """d(P, Q), for each pair on the last axes."""
        return self.between(p, q)


class Mixture(NamedTuple):
    """What (C.8) and (C.9) compare, for one mixture: the distance to it, and their two bounds."""

    distance: float
    largest: float
    mean: float

    @property
    def quasi_convex(self) -> bool:
        """Whether the distance is at most the larger of the two, as (C.8) asks."""
        return self.distance <= self.largest + ROUNDING

    @property
    def convex(self) -> bool:
        """Whether it is at most their weighted mean, as (C.9) asks."""
        return self.distance <= self.mean + ROUNDING


@brief
@dataclass(frozen=True, eq=False)
class DistortionModel(Expectations):
    """The probabilities P with d(P, P0) <= r: a closed ball about the nucleus P0 (Definition C.4.2).

    >>> ball = DistortionModel([0.5, 0.3, 0.2], 0.1, "total-variation")
    >>> ball.lower_probability([1, 0, 0]).round(6).tolist(), ball.upper_probability([1, 0, 0]).round(6).tolist()
    (0.4, 0.6)
    >>> ball.contains([[0.6, 0.2, 0.2], [0.7, 0.3, 0]]).tolist()
    [True, False]
    """

    nucleus: Array
    radius: float
    function: DistortingFunction | str = "multiplicative"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nucleus", one_probability("The nucleus", self.nucleus))
        object.__setattr__(self, "radius", non_negative("radius", self.radius))
        object.__setattr__(self, "function", distorting_function(self.function))

    @property
    def distance(self) -> DistortingFunction:
        """The distance in which the members are within the radius, as a function of two laws."""
        return distorting_function(self.function)

    def contains(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Whether these are probabilities within the radius."""
        masses = measure("The probability", p)
        total = np.abs(masses.sum(axis=-1) - 1) <= SUM_TOLERANCE
        rows = np.where(total[..., None], masses, self.nucleus)  # some distances are defined between probabilities only
        return np.asarray(total & (self.distance(rows, self.nucleus) <= self.radius + ROUNDING))

    def attaining(self, function: ArrayLike) -> Array:
        """A member with the largest expectation of each function on the last axis."""
        if self.distance.attaining is None:
            raise errors.unknown_choice("distorting function with known extremes", self.distance.name, list(DISTORTING))
        values = functions(function, len(self.nucleus))
        rows = values.reshape(-1, len(self.nucleus))
        found = [self.distance.attaining(self.nucleus, self.radius, row) for row in rows]
        return np.reshape(found, values.shape)

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest expectation over the members."""
        values = functions(function, len(self.nucleus))
        return np.asarray((self.attaining(values) * values).sum(axis=-1))

    def upper_probability(self, event: ArrayLike) -> Array:
        """The largest probability of an event."""
        return np.clip(self.upper_expectation(events(event, len(self.nucleus))), 0.0, 1.0)

    def lower_probability(self, event: ArrayLike) -> Array:
        """The smallest probability of an event."""
        return np.clip(self.lower_expectation(events(event, len(self.nucleus))), 0.0, 1.0)


@refuses_wrong_arguments
def distorting_function(name: DistortingFunction | str) -> DistortingFunction:
    """A distorting function by its name; that of (epsilon, delta) is :func:`approximate_function`.

    >>> distorting_function("odds-ratio").symbol
    'd_COR'
    """
    if isinstance(name, DistortingFunction):
        return name
    if not isinstance(name, str) or name not in DISTORTING:
        raise errors.unknown_choice("distorting function", str(name), list(DISTORTING))
    return DISTORTING[name]


@refuses_wrong_arguments
def mixture(
    function: DistortingFunction | str, p: ArrayLike, q: ArrayLike, r: ArrayLike, weight: float = 0.5
) -> Mixture:
    """d(P, a Q + (1-a) R) beside the bounds of quasi-convexity (C.8) and of convexity (C.9), in the second argument.

    >>> found = mixture("linear-vacuous", [0.5, 0.5], [0.5, 0.5], [0.7, 0.3])
    >>> found.quasi_convex, found.convex
    (True, False)
    """
    d, share = distorting_function(function), probability("weight", weight)
    first, second = (one_probability("A probability", one) for one in (q, r))
    near, far = float(d(p, first)), float(d(p, second))
    both = share * near if share else 0.0
    both += (1 - share) * far if share < 1 else 0.0
    return Mixture(float(d(p, share * first + (1 - share) * second)), max(near, far), both)


@refuses_wrong_arguments
def convexity_counterexample(function: DistortingFunction | str) -> tuple[Array, Array, Array] | None:
    """P, Q and R for which the distance from P to the half-half mixture of Q and R exceeds the mean of both distances,
    against (C.9) (Remark C.4.3); None for a function that is convex."""
    d = distorting_function(function)
    if d.convex:
        return None
    tenths = np.full(10, 0.1), np.array([0.2, *[8 / 90] * 9]), np.array([0.3, *[7 / 90] * 9])
    halves = np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([0.7, 0.3])
    for example in (halves, tenths):
        if not mixture(d, *example).convex:
            return example
    raise errors.unknown_choice("distorting function with a known counterexample", d.name, list(DISTORTING))


@refuses_wrong_arguments
def continuity_radius(mu: ArrayLike, distance: Number) -> float:
    """How little the masses may change, each by less than this, so that the multiplicative distance stays below
    ``distance``: min mu(t) (1 - e^-distance) (Proposition 9). All masses must be positive; there is no such number for
    measures with a zero mass, nor for infinitely many outcomes.

    >>> round(continuity_radius([0.5, 0.3, 0.2], math.log(2)), 12)
    0.1
    """
    masses, reach = finite_measure("The measure", mu), non_negative("distance", distance)
    if not bool(np.all(masses > 0)):
        raise errors.not_a_measure("The measure", "an outcome has no mass, and the distance is not continuous there")
    return float(np.min(masses) * -math.expm1(-reach))


# -- members with the largest expectation --------------------------------------------------------------------


def _multiplicative(nucleus: Array, radius: float, values: Array) -> Array:
    return MeasureInterval.around(nucleus, radius).probabilities().attaining(values)


def _density_ratio(nucleus: Array, radius: float, values: Array) -> Array:
    """The odds of the outcomes of largest value are raised, those of the others lowered; all places to change are
    compared."""
    held = np.flatnonzero(nucleus > 0)
    order = held[np.argsort(-values[held], kind="stable")]
    if math.isinf(radius):
        return np.asarray(np.eye(len(nucleus))[order[0]])
    raised = np.tril(np.ones((len(order), len(order)), dtype=np.bool_))
    points = np.zeros((len(order), len(nucleus)))
    points[:, order] = nucleus[order] * np.where(raised, 1.0, math.exp(-radius))
    points /= points.sum(axis=1, keepdims=True)
    return np.asarray(points[np.argmax(points @ values)])


def _odds_ratio(nucleus: Array, radius: float, values: Array) -> Array:
    if radius >= 1:  # no two probabilities are further apart
        return np.asarray(np.eye(len(nucleus))[np.argmax(values)])
    return _density_ratio(nucleus, -math.log1p(-radius), values)


def _linear_vacuous(nucleus: Array, radius: float, values: Array) -> Array:
    kept = max(0.0, 1 - radius)
    point = kept * nucleus
    point[np.argmax(values)] += 1 - kept
    return np.asarray(point)


def _total_variation(nucleus: Array, radius: float, values: Array) -> Array:
    """What can be moved comes from the outcomes of smallest value and goes to the largest."""
    order = np.argsort(values, kind="stable")
    available = nucleus[order]
    taken = np.clip(min(radius, 1.0) - (np.cumsum(available) - available), 0.0, available)
    point = nucleus.copy()
    point[order] -= taken
    point[order[-1]] += taken.sum()
    return np.asarray(point)


@refuses_wrong_arguments
def approximate_function(delta: Number) -> DistortingFunction:
    """The distorting function of (epsilon, delta) in both directions, D_MULT^delta: delta is taken off first.

    >>> approximate_function(0.1).symbol
    'D_MULT^0.1'
    """
    taken = probability("delta", delta)

    def attaining(nucleus: Array, radius: float, values: Array) -> Array:
        """The masses p, and by how much p exceeds e^r P0, and P0 exceeds e^r p; both add up to at most delta."""
        size, factor = len(nucleus), math.exp(min(radius, 700.0))
        one, zero = np.eye(size), np.zeros((size, size))
        rows = np.block([[one, -one, zero], [-factor * one, zero, -one]])
        sums = np.zeros((2, 3 * size))
        sums[0, size : 2 * size] = sums[1, 2 * size :] = 1.0
        found = optimize.linprog(
            np.concatenate([-values, np.zeros(2 * size)]),
            A_ub=np.vstack([rows, sums]),
            b_ub=np.concatenate([factor * nucleus, -nucleus, [taken, taken]]),
            A_eq=np.concatenate([np.ones(size), np.zeros(2 * size)])[None, :],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        masses = np.clip(found.x[:size], 0.0, None)
        return np.asarray(masses / masses.sum())

    symbol = f"D_MULT^{taken:g}"
    return DistortingFunction(
        "approximate", symbol, lambda p, q: approximate_distance(p, q, taken), attaining=attaining
    )


DISTORTING = {
    one.name: one
    for one in (
        DistortingFunction("multiplicative", "D_MULT", multiplicative_distance, True, attaining=_multiplicative),
        DistortingFunction("density-ratio", "d_DR", density_ratio_distance, True, attaining=_density_ratio),
        DistortingFunction("odds-ratio", "d_COR", odds_ratio_distance, True, attaining=_odds_ratio),
        DistortingFunction("linear-vacuous", "d_LV", linear_vacuous_distance, attaining=_linear_vacuous),
        DistortingFunction("total-variation", "d_TV", total_variation_distance, True, True, _total_variation),
    )
}
"""The distorting functions without a parameter, by name."""
