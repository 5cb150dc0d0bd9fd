"""Sets of measures on finitely many outcomes: intervals of measures and of probabilities (section 5.3).

Three sets, each with the smallest and largest value of any expectation, which are attained:

* :class:`MeasureInterval`, I(L, U): measures between two others; expectations are those of its members after
  normalising, mu(f)/mu(1), a linear-fractional programme (DeRobertis and Hartigan 1981);
* :class:`ProbabilityInterval`, I_1(L, U): its members that are probabilities; a linear programme, and given an event
  again a linear-fractional one;
* :class:`DensityRatioNeighbourhood`, N_r(P): the probabilities near one, all odds within a factor e^r (section 5.8). It
  is the normalised interval of measures I(e^-r P, P), so that its expectations are those of :class:`MeasureInterval`,
  and it stays one under conditioning.

Keep in mind: no programme is solved by iteration. Sort the outcomes by the function; a best member is then high on
the first outcomes and low on the others (with one in between where the total is fixed), and only where it changes
must be found.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.limits.distances import density_ratio_distance, finite_measure, measure, one_probability
from stirred.loss import Bounds
from stirred.loss.argument_checks import SUM_TOLERANCE, Number, non_negative

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""A mass beyond a bound by a smaller part counts as within it."""

MOST_LISTED = 16
"""On more outcomes the extreme points, about two to their number, are not listed."""


class Expectations:
    """A set of measures, of which the largest expectation of any function is known."""

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest expectation over the members, for each function on the last axis."""
        raise NotImplementedError

    def lower_expectation(self, function: ArrayLike) -> Array:
        """The smallest expectation over the members."""
        return -self.upper_expectation(-np.asarray(function, dtype=np.float64))


# -- intervals of measures -----------------------------------------------------------------------------------


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class MeasureInterval(Expectations):
    """I(L, U), all measures mu with L <= mu <= U on every event (Definition 5.3.1); upper masses may be infinite.

    >>> around = MeasureInterval.around([0.5, 0.3, 0.2], math.log(2))
    >>> around.contains([[0.4, 0.4, 0.2], [0.8, 0.1, 0.1]]).tolist()
    [True, False]
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        lower, upper = measure("The lower measure", self.lower), measure("The upper measure", self.upper)
        if lower.ndim != 1 or lower.shape != upper.shape:
            raise errors.measures_differ(lower.shape, upper.shape)
        if not bool(np.all(np.isfinite(lower))):
            raise errors.not_a_measure("The lower measure", "a mass is infinite")
        if bool(np.any(lower > upper)):
            raise errors.empty_interval("the lower measure exceeds the upper one")
        for name, values in (("lower", lower.copy()), ("upper", upper.copy())):
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @classmethod
    def around(cls, centre: ArrayLike, radius: Number) -> MeasureInterval:
        """I(e^-r mu, e^r mu), the closed ball of radius r in the multiplicative distance (Lemma 5.3.4, Remark 5.3.6).

        An infinite radius leaves only the support: anything between 0 and infinity.
        """
        mu, r = finite_measure("The centre", centre), non_negative("radius", radius)
        with np.errstate(over="ignore", invalid="ignore"):
            high = np.where(mu > 0, mu * np.exp(r), 0.0)
        return cls(mu * math.exp(-r), high)

    @classmethod
    def of_densities(cls, lower: ArrayLike, upper: ArrayLike, base: ArrayLike) -> MeasureInterval:
        """The density-bounded class: measures with a density between ``lower`` and ``upper`` with respect to ``base``
        (Proposition 14)."""
        weights = finite_measure("The base measure", base)
        low, high = measure("The lower density", lower), measure("The upper density", upper)
        if low.shape != weights.shape or high.shape != weights.shape:
            raise errors.measures_differ(low.shape, weights.shape)
        return cls(low * weights, np.where(weights > 0, high, 0.0) * weights)

    def contains(self, mu: ArrayLike) -> NDArray[np.bool_]:
        """Whether measures lie in the interval: outcome by outcome, which is the same as event by event."""
        masses = measure("The measure", mu)
        if masses.shape[-1] != len(self.lower):
            raise errors.measures_differ(masses.shape[-1], len(self.lower))
        above = masses >= self.lower * (1 - ROUNDING)
        return np.asarray(np.all(above & (masses <= self.upper * (1 + ROUNDING)), axis=-1))

    def odds(self, first: ArrayLike, second: ArrayLike) -> Bounds:
        """Bounds L(A)/U(B) and U(A)/L(B) on mu(A)/mu(B) over the members; attained where A and B are disjoint."""
        a, b = self._event(first), self._event(second)
        low, high = math.fsum(self.lower[a]), math.fsum(self.upper[a])
        most, least = math.fsum(self.upper[b]), math.fsum(self.lower[b])
        if most == 0:
            raise errors.impossible_condition("The second event")
        return Bounds(low / most, high / least if least > 0 else 0.0 if high == 0 else math.inf)

    @property
    def radius(self) -> Bounds:
        """Of I(a mu, b mu) about mu = sqrt(L U): every member is within the larger of the two radii, and all measures
        within the smaller are members (Lemma 5.3.4). Both are equal if U/L is the same at every outcome."""
        held = self.upper > 0
        if not bool(np.any(held)):
            return Bounds(0.0, 0.0)
        with np.errstate(divide="ignore"):
            widths = (np.log(self.upper[held]) - np.log(self.lower[held])) / 2
        return Bounds(float(np.min(widths)), float(np.max(widths)))

    def probabilities(self) -> ProbabilityInterval:
        """Its members that are probabilities, I_1(L, U)."""
        return ProbabilityInterval(self.lower, self.upper)

    def given(self, event: ArrayLike) -> MeasureInterval:
        """Conditioning is restriction: masses outside the event become 0."""
        inside = self._event(event)
        return MeasureInterval(np.where(inside, self.lower, 0.0), np.where(inside, self.upper, 0.0))

    def updated(self, likelihood: ArrayLike) -> MeasureInterval:
        """Bayes' rule for unnormalised measures: every member times a likelihood."""
        factor = finite_measure("The likelihood", likelihood)
        if factor.shape != self.lower.shape:
            raise errors.measures_differ(len(factor), len(self.lower))
        return MeasureInterval(self.lower * factor, np.where(factor > 0, self.upper, 0.0) * factor)

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest mu(f)/mu(1) over the non-zero members, for each function on the last axis.

        It is attained by a member that is U on the outcomes of largest f and L on the others; all such are compared.

        >>> MeasureInterval.around([0.5, 0.5], 0.5).upper_expectation([1, 0]).round(6).tolist()
        0.731059
        """
        values = functions(function, len(self.lower))
        held = self.upper > 0
        if not bool(np.any(held)):
            raise errors.impossible_condition("Everything")
        values, low, high = values[..., held], self.lower[held], self.upper[held]
        order = np.argsort(-values, axis=-1, kind="stable")
        ranked, gain = np.take_along_axis(values, order, axis=-1), (high - low)[order]
        endless = np.isinf(gain)  # a mass without bound outweighs all others: the mean becomes the value there
        gain = np.where(endless, 0.0, gain)
        mass = low.sum() + np.cumsum(gain, axis=-1)
        total = (low * values).sum(axis=-1)[..., None] + np.cumsum(gain * ranked, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(mass > 0, total / mass, -math.inf)
        means = np.where(endless, np.maximum(means, ranked), means)
        return np.asarray(np.clip(np.max(means, axis=-1), np.min(values, axis=-1), np.max(values, axis=-1)))

    def upper_probability(self, event: ArrayLike) -> Array:
        """The largest mu(A)/mu(everything)."""
        return self.upper_expectation(events(event, len(self.lower)))

    def lower_probability(self, event: ArrayLike) -> Array:
        """The smallest mu(A)/mu(everything)."""
        return self.lower_expectation(events(event, len(self.lower)))

    def extreme_points(self) -> Array:
        """All extreme points, one in each row: L or U at every outcome. Where U is infinite only L is one: from there
        members go on without end.

        >>> MeasureInterval([1, 0], [2, math.inf]).extreme_points().tolist()
        [[1.0, 0.0], [2.0, 0.0]]
        """
        moving = np.flatnonzero((self.lower < self.upper) & np.isfinite(self.upper))
        raised = corners(len(moving))
        points = np.tile(self.lower, (len(raised), 1))
        points[:, moving] = np.where(raised, self.upper[moving], self.lower[moving])
        return points

    def _event(self, event: ArrayLike) -> NDArray[np.bool_]:
        inside = events(event, len(self.lower))
        if inside.ndim != 1:
            raise errors.measures_differ("one list of", f"an array of shape {inside.shape} of")
        return inside > 0


# -- probability intervals -----------------------------------------------------------------------------------


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class ProbabilityInterval(Expectations):
    """I_1(L, U), the probabilities between two measures: a credal set; it must not be empty.

    >>> credal = MeasureInterval.around([0.5, 0.3, 0.2], math.log(2)).probabilities()
    >>> credal.lower_probability([1, 0, 0]).round(6).tolist(), credal.upper_probability([1, 0, 0]).round(6).tolist()
    (0.25, 0.75)
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        checked = MeasureInterval(self.lower, self.upper)
        if checked.lower.sum() > 1 + SUM_TOLERANCE or checked.upper.sum() < 1 - SUM_TOLERANCE:
            raise errors.empty_interval("their totals do not enclose 1")
        object.__setattr__(self, "lower", checked.lower)
        object.__setattr__(self, "upper", checked.upper)

    def contains(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Whether these are probabilities between the bounds."""
        masses = measure("The probability", p)
        total = np.abs(masses.sum(axis=-1) - 1) <= SUM_TOLERANCE
        return np.asarray(total & MeasureInterval(self.lower, self.upper).contains(masses))

    def lower_probability(self, event: ArrayLike) -> Array:
        """max(L(A), 1 - U(not A)); between a probability's e^-r and e^r it is the bound of Corollary 5.5.2."""
        inside = events(event, len(self.lower))
        return np.asarray(np.clip(np.maximum(inside @ self.lower, 1 - _mass(1 - inside, self.upper)), 0.0, 1.0))

    def upper_probability(self, event: ArrayLike) -> Array:
        """min(U(A), 1 - L(not A))."""
        return 1 - self.lower_probability(1 - events(event, len(self.lower)))

    def attaining(self, function: ArrayLike) -> Array:
        """A member with the largest expectation of each function: what L leaves goes to the largest values first."""
        values = functions(function, len(self.lower))
        order = np.argsort(-values, axis=-1, kind="stable")
        room = np.minimum((self.upper - self.lower)[order], 1.0)
        filled = np.cumsum(room, axis=-1)
        left = max(0.0, 1 - math.fsum(self.lower))
        added = np.clip(left - (filled - room), 0.0, room)
        result = np.empty(values.shape)
        np.put_along_axis(result, order, added, axis=-1)
        return result + self.lower

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest expectation over the members, for each function on the last axis."""
        values = functions(function, len(self.lower))
        return np.asarray((self.attaining(values) * values).sum(axis=-1))

    def upper_expectation_given(self, function: ArrayLike, event: ArrayLike) -> Array:
        """The largest E(f | B) over the members. The event must have a positive lower probability.

        With the mass m of B held fixed the best member fills the largest values first. Its mean is quasi-concave in m,
        so that only the two ends of m's range and the masses at which an outcome is full need be compared.
        """
        inside = events(event, len(self.lower)) > 0
        if inside.ndim != 1 or float(self.lower_probability(inside)) <= 0:
            raise errors.impossible_condition("The event")
        values = functions(function, len(self.lower))[..., inside]
        low = self.lower[inside]
        least, most = float(self.lower_probability(inside)), float(self.upper_probability(inside))
        order = np.argsort(-values, axis=-1, kind="stable")
        ranked = np.take_along_axis(values, order, axis=-1)
        room = np.minimum((self.upper[inside] - low)[order], 1.0)
        filled = np.cumsum(room, axis=-1)
        base = math.fsum(low)
        full = np.clip(base + filled, least, most)
        ends = np.broadcast_to(np.array([least, most]), (*full.shape[:-1], 2))
        masses = np.concatenate([ends, full], axis=-1)
        # What is added up to mass m, outcome by outcome: (..., masses, outcomes).
        added = np.clip((masses - base)[..., :, None] - (filled - room)[..., None, :], 0.0, room[..., None, :])
        sums = (low * values).sum(axis=-1)[..., None] + (added * ranked[..., None, :]).sum(axis=-1)
        return np.asarray(np.clip(np.max(sums / masses, axis=-1), np.min(values, axis=-1), np.max(values, axis=-1)))

    def lower_expectation_given(self, function: ArrayLike, event: ArrayLike) -> Array:
        """The smallest E(f | B) over the members."""
        return -self.upper_expectation_given(-functions(function, len(self.lower)), event)

    def upper_probability_given(self, event: ArrayLike, condition: ArrayLike) -> Array:
        """The largest P(A | B) over the members, for each event A on the last axis."""
        return self.upper_expectation_given(events(event, len(self.lower)), condition)

    def lower_probability_given(self, event: ArrayLike, condition: ArrayLike) -> Array:
        """The smallest P(A | B) over the members."""
        return self.lower_expectation_given(events(event, len(self.lower)), condition)

    def given(self, condition: ArrayLike) -> Array:
        """The set of all P( . | B), as points, one in each row, whose mixtures it consists of; B must have a positive
        lower probability. It need not be a probability interval, which is why it is not returned as one.

        >>> ProbabilityInterval([0.2, 0.2, 0], [0.6, 0.6, 1]).given([1, 1, 0]).round(2).tolist()
        [[0.4, 0.6, 0.0], [0.6, 0.4, 0.0], [0.5, 0.5, 0.0], [0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]
        """
        inside = events(condition, len(self.lower))
        if inside.ndim != 1 or float(self.lower_probability(inside)) <= 0:
            raise errors.impossible_condition("The event")
        points = self.extreme_points() * inside
        return unlike(points / points.sum(axis=1, keepdims=True))

    def extreme_points(self) -> Array:
        """All extreme points, one in each row: at most one outcome is strictly between its bounds."""
        size = len(self.lower)
        raised = corners(size)
        upper = np.minimum(self.upper, 1.0)
        found = []
        for free in range(size):
            others = np.where(raised, upper, self.lower)
            others[:, free] = 0.0
            rest = 1 - others.sum(axis=1)
            fits = (rest >= self.lower[free] - ROUNDING) & (rest <= upper[free] + ROUNDING) & ~raised[:, free]
            points = others[fits]
            points[:, free] = np.clip(rest[fits], self.lower[free], upper[free])
            found.append(points)
        return unlike(np.concatenate(found))


# -- helpers -------------------------------------------------------------------------------------------------


def functions(values: ArrayLike, size: int) -> Array:
    """Functions of the outcomes on the last axis: finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != size:
        raise errors.measures_differ(size, array.shape[-1] if array.ndim else 1)
    if not bool(np.all(np.isfinite(array))):
        raise errors.parameter_out_of_range("A value of the function", "infinite or not a number", "a finite number")
    return array


def events(values: ArrayLike, size: int) -> Array:
    """Events on the last axis as zeros and ones."""
    array = functions(values, size)
    if not bool(np.all((array == 0) | (array == 1))):
        raise errors.parameter_out_of_range("An event", "not a list of true and false", "one truth value per outcome")
    return array


def _mass(inside: Array, masses: Array) -> Array:
    """Masses of events, where 0 of an infinite mass is 0."""
    return np.asarray(np.where(inside > 0, masses, 0.0).sum(axis=-1))


def corners(size: int) -> NDArray[np.bool_]:
    """All events, one in each row."""
    if size > MOST_LISTED:
        raise errors.LimitsError(
            "too-many-points",
            f"A set on {size} outcomes has too many extreme points to list; {MOST_LISTED} outcomes are the most.",
            "Ask for lower and upper expectations, which need no list, or merge outcomes.",
        )
    return ((np.arange(2**size)[:, None] >> np.arange(size)) & 1).astype(np.bool_)


def unlike(points: Array) -> Array:
    """The same points without repetitions."""
    _, first = np.unique(np.round(points, 12), axis=0, return_index=True)
    return points[np.sort(first)]


LARGEST = 600.0
"""Of a finite radius at which extreme points can be listed."""


@brief
@dataclass(frozen=True, eq=False)
class DensityRatioNeighbourhood(Expectations):
    """N_r(P), the probabilities Q with d_DR(P, Q) <= r: all odds within a factor e^r of those of P (section 5.8).

    An infinite radius leaves only the support, as in :meth:`MeasureInterval.around`: the limit of finite radii.

    >>> near = DensityRatioNeighbourhood([0.1, 0.9], 1)
    >>> near.lower_probability([1, 0]).round(6).tolist(), near.upper_probability([1, 0]).round(6).tolist()
    (0.03927, 0.231969)
    """

    centre: Array
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", one_probability("The centre", self.centre))
        object.__setattr__(self, "radius", non_negative("radius", self.radius))

    @property
    def interval(self) -> MeasureInterval:
        """The interval of measures whose members, normalised, are the members: I(e^-r P, P)."""
        return MeasureInterval(self.centre * math.exp(-self.radius), self.centre)

    def contains(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Whether these are probabilities within the radius."""
        masses = measure("The probability", q)
        total = np.abs(masses.sum(axis=-1) - 1) <= SUM_TOLERANCE
        if math.isinf(self.radius):
            return np.asarray(total & np.all(masses[..., self.centre == 0] == 0, axis=-1))
        return np.asarray(total & (density_ratio_distance(self.centre, masses) <= self.radius + ROUNDING))

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest expectation over the members, for each function on the last axis."""
        return self.interval.upper_expectation(function)

    def upper_probability(self, event: ArrayLike) -> Array:
        """p e^r / (p e^r + 1 - p), p the probability of the event under the centre."""
        return 1 - self.lower_probability(1 - events(event, len(self.centre)))

    def lower_probability(self, event: ArrayLike) -> Array:
        """p / (p + (1 - p) e^r)."""
        inside = events(event, len(self.centre))
        p, rest = inside @ self.centre, (1 - inside) @ self.centre
        least = p * math.exp(-self.radius)
        return np.asarray(np.where(rest == 0, 1.0, least / np.where(rest == 0, 1.0, least + rest)))

    def given(self, event: ArrayLike) -> DensityRatioNeighbourhood:
        """Conditional members are the neighbourhood, of the same radius, of the conditional centre."""
        inside = events(event, len(self.centre)) > 0
        mass = math.fsum(self.centre[inside]) if inside.ndim == 1 else 0.0
        if mass <= 0:
            raise errors.impossible_condition("The event")
        return DensityRatioNeighbourhood(np.where(inside, self.centre, 0.0) / mass, self.radius)

    def extreme_points(self) -> Array:
        """All extreme points, one in each row: P raised by e^r on some of its outcomes, not none and not all; for an
        infinite radius the point masses. For large finite ones what is not raised is too small for a float."""
        held = self.centre > 0
        if math.isinf(self.radius):
            return np.eye(len(self.centre))[held]
        if self.radius > LARGEST:
            raise errors.parameter_out_of_range(
                "radius", self.radius, f"infinite or at most {LARGEST:g} to list points"
            )
        raised = corners(len(self.centre))
        some = np.any(raised[:, held], axis=1) & ~np.all(raised[:, held], axis=1)
        if self.radius == 0 or not bool(np.any(some)):
            return self.centre[None, :].copy()
        points = self.centre * np.where(raised[some], 1.0, math.exp(-self.radius))
        return unlike(points / points.sum(axis=1, keepdims=True))
