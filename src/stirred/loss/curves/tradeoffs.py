"""Trade-off functions: the greatest power of a test at each false-alarm probability, under each definition.

A trade-off function is given in one of two conventions, and every name here says which: the *power* of the best test at
a level, as everywhere in this package, or its *type II error*, one minus the power, the f of f-DP (Dong, Roth and Su
2022). :class:`PowerCurve` holds those with vertices (pure, approximate at one point or at several, finite mechanisms),
:class:`GaussianCurve` those of Gaussian DP; here are those of Rényi differential privacy and zCDP.

Keep in mind: each curve is the smallest that its definition implies. It is attained: some mechanism
that satisfies the definition has a test of that level and power. What is computed by search is rounded the safe way,
powers up and type II errors down.

What can be done with them. The inverse of a type II error f is f^-1(z) = inf {y : f(y) <= z}; in the power convention
level and power are exchanged and counted from one. Where a definition binds both orders of two neighbours f may be
replaced by max(f, f^-1) (Dong, Roth and Su 2022; Remark 5.10 of Kifer et al. 2022), which in power is the lower of the
two curves. A composed curve holds for any mechanisms that satisfy the parts, adaptively chosen from the earlier
outputs, and is attained by some: that of Gaussians by Gaussians, that of vertices by the pairs of laws that attain the
parts. Rényi divergences and rho only add; theirs is the curve that follows from the sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._calls import refuses_wrong_arguments
from stirred._compiled import small
from stirred._display import brief
from stirred._lazy import later
from stirred.errors import (
    LossError,
    curves_do_not_compose,
    not_a_curve,
    nothing_to_compose,
    parameter_out_of_range,
)
from stirred.loss.argument_checks import non_negative, probabilities, renyi_order
from stirred.loss.curves import power_kernels as kernels
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve, crossings
from stirred.loss.divergences import log_ratios, power_curve

special = later("scipy.special")

Array = NDArray[np.float64]

MOST_OUTPUTS = 4_000_000
"""Of a composed pair of laws, before equal likelihood ratios are put together."""

SAME_RATIO = 1e-13
"""Log likelihood ratios that differ by less are rounded forms of one number."""

_STEEPEST = 690.0
"""Of larger epsilons e^epsilon is too large for a float."""


class _BothWays(ABC):
    """Curves of definitions that bound both directions alike: the type II error is its own inverse.

    With *balance* the level at which level and power sum to one, a level below it rises to a power; a level above it
    falls, from what it leaves, to a type II error. Both are told to full relative precision, however small.
    """

    def power(self, level: ArrayLike) -> Array:
        """The largest power of a test with false-alarm probability ``level``, rounded up; of the same shape."""
        levels = probabilities("level", level)
        result, low = np.empty(levels.shape), self._low(levels)
        result[low] = self._rise(levels[low])
        result[~low] = one_minus(self._fall(1 - levels[~low], levels[~low]), up=True)
        return result

    def type_two_error(self, level: ArrayLike) -> Array:
        """The smallest type II error of a test at ``level``: the trade-off function of f-DP, rounded down."""
        levels = probabilities("level", level)
        result, low = np.empty(levels.shape), self._low(levels)
        result[low] = one_minus(self._rise(levels[low]), up=False)
        result[~low] = self._fall(1 - levels[~low], levels[~low])
        return result

    def level_at_power(self, power: ArrayLike) -> Array:
        """The smallest false-alarm probability at which a test can have ``power``, rounded down; of the same shape."""
        powers = probabilities("power", power)
        result, high = np.empty(powers.shape), self._low(1 - powers)
        result[~high] = self._fall(powers[~high], 1 - powers[~high])
        result[high] = one_minus(self._rise(1 - powers[high]), up=False)
        return result

    @property
    @abstractmethod
    def _loss(self) -> float:
        """The number that the definition allows; 0 allows no power beyond the level, infinity all."""

    @abstractmethod
    def _balance(self) -> float:
        """The level at which level and power sum to one."""

    @abstractmethod
    def _other(self, given: Array, rest: Array, falling: bool) -> Array:
        """The powers of levels, or if falling the levels of powers, given what they leave to one too."""

    def _low(self, levels: Array) -> NDArray[np.bool_]:
        if self._loss in (0, math.inf):
            return np.full(levels.shape, self._loss == 0)
        return np.asarray(levels < self._balance())

    def _rise(self, levels: Array) -> Array:
        if self._loss in (0, math.inf):
            return levels if self._loss == 0 else np.ones(len(levels))
        return self._other(levels, levels, False)

    def _fall(self, powers: Array, rests: Array) -> Array:
        if self._loss in (0, math.inf):
            return powers if self._loss == 0 else np.zeros(len(powers))
        return self._other(powers, rests, True)


@dataclass(frozen=True)
class ZcdpCurve(_BothWays):
    """The curve of rho-zCDP: both inequalities of Theorem 6.3 of Kifer et al. (2022) at all orders alpha > 1,

        power^alpha level^(1-alpha) + (1-power)^alpha (1-level)^(1-alpha) <= e^(rho alpha (alpha-1))

    and the same with level and power exchanged. The limit at alpha = 1, a Kullback-Leibler divergence of at most rho,
    belongs to them; near the middle of the curve it is what binds. How it is found:
    :mod:`stirred.loss.curves.power_kernels`.

    >>> curve = ZcdpCurve(2.63)  # the 2020 redistricting data
    >>> curve.power([0.01, 0.1]).round(4).tolist(), float(curve.type_two_error(0.999))
    ([0.6982, 0.9623], 1.43...e-08)
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", non_negative("rho", self.rho))

    def order(self, level: ArrayLike) -> Array:
        """The order alpha whose inequality gives the power at the false-alarm probability ``level``; 1 is the limit."""
        levels = probabilities("level", level)
        if self.rho in (0, math.inf):
            raise parameter_out_of_range("rho", self.rho, "positive and finite for an order to bind")
        low = self._low(levels)
        ends = (levels == 0) | (levels == 1)  # there the bound is that of order infinity
        orders = np.full(levels.shape, math.inf)
        for side, falling in ((low & ~ends, False), (~low & ~ends, True)):
            given = np.maximum(1 - levels[side] if falling else levels[side], kernels.TINY)
            found = np.empty(len(given))
            small(kernels.zcdp, given, levels[side], falling, self.rho, np.empty(len(given)), found)
            orders[side] = 1 + found
        return orders

    @property
    def _loss(self) -> float:
        return self.rho

    def _balance(self) -> float:
        # Here the limit at order 1 binds: the divergences of randomised response grow more slowly.
        return float(small(kernels.balanced, 0.0, self.rho))

    def _other(self, given: Array, rest: Array, falling: bool) -> Array:
        def fill(given: Array, rest: Array, results: Array) -> None:
            small(kernels.zcdp, given, rest, falling, self.rho, results, np.empty(len(given)))

        return _searched(given, rest, falling, fill)


@brief
@dataclass(frozen=True)
class RenyiCurve:
    """The curve of Rényi divergences of at most epsilon at each of some orders, in both directions (Theorem 6.3).

    Points are pairs (order, epsilon); orders are at least 1, and infinity is pure DP.

    >>> one, several = RenyiCurve(((2, 1.0),)), RenyiCurve(((2, 1.0), (8, 1.6)))
    >>> one.power([0.01, 0.1]).round(4).tolist(), several.power([0.01, 0.1]).round(4).tolist()
    ([0.1404, 0.4932], [0.0721, 0.4932])
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        try:
            array = np.asarray(self.points, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise not_a_curve("Rényi curve", "give pairs of an order and an epsilon") from None
        if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0:
            raise not_a_curve("Rényi curve", "give pairs of an order and an epsilon")
        points = tuple((renyi_order(order), non_negative("epsilon", epsilon)) for order, epsilon in array.tolist())
        object.__setattr__(self, "points", points)

    def power(self, level: ArrayLike) -> Array:
        """The largest power of a test with false-alarm probability ``level``, rounded up; of the same shape."""
        return np.asarray(np.min([np.asarray(one.power(level)) for one in self._each()], axis=0))

    def type_two_error(self, level: ArrayLike) -> Array:
        """The smallest type II error of a test at ``level``: the trade-off function of f-DP, rounded down."""
        return np.asarray(np.max([np.asarray(one.type_two_error(level)) for one in self._each()], axis=0))

    def level_at_power(self, power: ArrayLike) -> Array:
        """The smallest false-alarm probability at which a test can have ``power``, rounded down; of the same shape."""
        return np.asarray(np.max([np.asarray(one.level_at_power(power)) for one in self._each()], axis=0))

    def _each(self) -> list[_OneOrder]:
        return [_OneOrder(order, epsilon) for order, epsilon in self.points]


@dataclass(frozen=True)
class _OneOrder(_BothWays):
    """The curve of one Rényi divergence."""

    alpha: float
    epsilon: float

    @property
    def _loss(self) -> float:
        return self.epsilon

    def _balance(self) -> float:
        if math.isinf(self.alpha):
            return float(special.expit(-self.epsilon))
        return float(small(kernels.balanced, self.alpha - 1, self.epsilon))

    def _other(self, given: Array, rest: Array, falling: bool) -> Array:
        if math.isinf(self.alpha):
            return np.minimum(1.0, given * math.exp(-self.epsilon if falling else self.epsilon))

        def fill(given: Array, rest: Array, results: Array) -> None:
            small(kernels.renyi, given, rest, falling, self.alpha - 1, self.epsilon, results)

        return _searched(given, rest, falling, fill)


TradeOff = PowerCurve | GaussianCurve | RenyiCurve | ZcdpCurve


@refuses_wrong_arguments
def level_at_power(curve: TradeOff, power: ArrayLike) -> Array:
    """The smallest false-alarm probability of a test of this ``power``: f^-1(1 - power) in the type II convention.

    >>> float(level_at_power(PowerCurve(((0, 0.1), (0.9, 1), (1, 1))), 0.05))
    0.0
    """
    if isinstance(curve, RenyiCurve | ZcdpCurve):
        return curve.level_at_power(power)
    powers = probabilities("power", power)
    if isinstance(curve, GaussianCurve):
        return np.asarray(special.ndtr(special.ndtri(powers) - curve.mu))
    at, to = np.array(curve.points).T
    first = np.append(True, np.diff(to) > 0)  # of levels with the same power the smallest
    return np.asarray(np.interp(powers, to[first], at[first]))


@refuses_wrong_arguments
def profile_power_curve(profile: EpsilonProfile) -> PowerCurve:
    """The curve of (epsilon, delta)-DP at every point of a profile: the lowest of the curves of its points.

    In power min(1, e^epsilon level + delta, 1 - e^-epsilon (1 - level - delta)) over the points (Theorem 6.2 and
    section 6.2 of Kifer et al. 2022). Points with delta = 1 or an infinite epsilon say nothing.

    >>> curve = profile_power_curve(EpsilonProfile(((0, math.log(3)), (0.25, 0))))
    >>> [(round(level, 6), round(power, 6)) for level, power in curve.points]
    [(0.0, 0.0), (0.125, 0.375), (0.375, 0.625), (0.625, 0.875), (1.0, 1.0)]
    """
    points = [(delta, epsilon) for delta, epsilon in profile.points if delta < 1 and epsilon < _STEEPEST]
    # Lines (slope, power at level 0) through the left half, where level and power sum to less than one.
    lines = [(math.exp(epsilon), delta) for delta, epsilon in points]
    if not lines:
        return PowerCurve(((0, 1), (1, 1)))
    return _below_lines(lines)


def one_minus(values: Array, up: bool) -> Array:
    """1 - values for values between 0 and 1, rounded up or down."""
    result = 1 - values
    back = 1 - result  # exact where the result is at least a half; elsewhere the result is
    wrong = (result >= 0.5) & ((back > values) if up else (back < values))
    return np.where(wrong, np.nextafter(result, 2.0 if up else -1.0), result)


@refuses_wrong_arguments
def inverted_power_curve(curve: TradeOff) -> TradeOff:
    """The curve of the same laws with hypotheses exchanged: its type II error is the inverse function.

    >>> inverted_power_curve(PowerCurve(((0, 0.25), (0.5, 1), (1, 1)))).points
    ((0.0, 0.5), (0.75, 1.0), (1.0, 1.0))
    """
    if not isinstance(curve, PowerCurve):
        return curve  # a Gaussian's is its own inverse, and so is that of a bound on both directions
    return _through([*_mirrored(curve.points), (1.0, 1.0)])


@refuses_wrong_arguments
def symmetric_power_curve(curve: TradeOff) -> TradeOff:
    """The lower of a curve and its inverse; max(f, f^-1) in the type II convention.

    >>> symmetric_power_curve(PowerCurve(((0, 0), (0.25, 1), (1, 1)))).points
    ((0.0, 0.0), (0.2, 0.8), (1.0, 1.0))
    """
    if not isinstance(curve, PowerCurve):
        return curve
    other = inverted_power_curve(curve)
    assert isinstance(other, PowerCurve)
    levels = np.unique([level for one in (curve, other) for level, _ in one.points])
    first, second = curve.power(levels), other.power(levels)
    crossed, share = crossings(first - second)
    between = levels[crossed] + share * (levels[crossed + 1] - levels[crossed])
    crossing = first[crossed] + share * (first[crossed + 1] - first[crossed])
    at = np.append(levels, between)
    points = np.column_stack([at, np.append(np.minimum(first, second), crossing)])[np.argsort(at)]
    points = points[np.append(np.diff(points[:, 0]) > 0, True)]
    return PowerCurve(_vertices(points.tolist()))


@refuses_wrong_arguments
def attaining_pair(curve: PowerCurve) -> tuple[Array, Array]:
    """Two distributions whose power curve this is: one output for each edge, and one that only the second can give.

    >>> p, q = attaining_pair(PowerCurve(((0, 0.1), (0.45, 0.55), (0.9, 1), (1, 1))))
    >>> p.round(6).tolist(), q.round(6).tolist()
    ([0.0, 0.45, 0.45, 0.1], [0.1, 0.45, 0.45, 0.0])
    """
    levels, powers = np.array(curve.points).T
    first, second = np.diff(levels), np.diff(powers)
    if powers[0] > 0:
        first, second = np.append(0.0, first), np.append(powers[0], second)
    return first, second


@refuses_wrong_arguments
def composed_power_curve(curves: Iterable[TradeOff]) -> TradeOff:
    """The curve of what satisfies these, one after the other, each free to depend on earlier outputs.

    Gaussians make a Gaussian, mu^2 adding up. Curves with vertices (pure, approximate, finite) are composed by their
    tensor product: the power curve of the product of the pairs that attain them (Dong, Roth and Su 2022, section 3),
    which for approximate DP is the optimal composition of Kairouz, Oh and Viswanath (2015). Under zCDP rho adds up,
    under Rényi DP the epsilons of each order that all parts have. Other mixtures have no rule here.

    >>> composed_power_curve([GaussianCurve(3), GaussianCurve(4)])
    GaussianCurve(mu=5.0)
    >>> fair = PowerCurve(((0, 0), (0.25, 0.75), (1, 1)))  # ln 3 twice
    >>> composed_power_curve([fair, fair]).points
    ((0.0, 0.0), (0.0625, 0.5625), (0.4375, 0.9375), (1.0, 1.0))
    """
    parts = list(curves)
    if not parts:
        raise nothing_to_compose("curve")
    if all(isinstance(part, GaussianCurve) for part in parts):
        return GaussianCurve(math.hypot(*(part.mu for part in parts)))  # type: ignore[union-attr]
    if all(isinstance(part, ZcdpCurve) for part in parts):
        return ZcdpCurve(math.fsum(part.rho for part in parts))  # type: ignore[union-attr]
    if all(isinstance(part, RenyiCurve) for part in parts):
        return _composed_renyi([part for part in parts if isinstance(part, RenyiCurve)])
    if all(isinstance(part, PowerCurve) for part in parts):
        return _composed_pairs([part for part in parts if isinstance(part, PowerCurve)])
    raise curves_do_not_compose("their kinds differ")


# -- helpers -------------------------------------------------------------------------------------------------


def _searched(given: Array, rest: Array, falling: bool, fill: Callable[[Array, Array, Array], None]) -> Array:
    """The other coins, where a search can find them; nothing has power at level 0, and power 0 needs no level."""
    result = np.zeros(len(given))
    inside = given >= kernels.TINY if falling else given > 0
    found = np.empty(int(inside.sum()))
    fill(np.maximum(given[inside], kernels.TINY), rest[inside], found)
    result[inside] = found
    return result


def _below_lines(lines: list[tuple[float, float]]) -> PowerCurve:
    """The curve below lines (slope, power at level 0), of which the flatter start higher, and below their mirror images
    in the diagonal level + power = 1."""
    hull: list[tuple[float, float]] = []
    for slope, start in sorted(lines, key=lambda line: (-line[0], line[1])):  # steepest first, lowest of the equal
        if hull and hull[-1][0] == slope:
            continue
        while len(hull) > 1 and _meet(hull[-1], (slope, start)) <= _meet(hull[-2], hull[-1]):
            hull.pop()
        hull.append((slope, start))
    corners = [(0.0, hull[0][1])]
    for line, following in zip(hull, [*hull[1:], None], strict=True):
        meet = (1 - line[1]) / (1 + line[0])  # where it reaches the diagonal
        if following is None or meet <= _meet(line, following):
            corners.append((meet, 1 - meet))
            break
        level = _meet(line, following)
        corners.append((level, line[0] * level + line[1]))
    return _through([*corners, *_mirrored(corners[:-1]), (1.0, 1.0)])


def _mirrored(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The mirror images of points in the diagonal level + power = 1."""
    return [(1 - power, 1 - level) for level, power in reversed(points)]


def _through(points: list[tuple[float, float]]) -> PowerCurve:
    """The curve through points by ascending level; of those at one level the highest stands."""
    highest: dict[float, float] = {}
    for level, power in points:
        highest[level] = max(power, highest.get(level, 0.0))
    return PowerCurve(tuple(highest.items()))


def _meet(steep: tuple[float, float], flat: tuple[float, float]) -> float:
    return (flat[1] - steep[1]) / (steep[0] - flat[0])


def _composed_renyi(parts: list[RenyiCurve]) -> RenyiCurve:
    least = [{order: min(e for at, e in part.points if at == order) for order, _ in part.points} for part in parts]
    common = set.intersection(*(set(epsilons) for epsilons in least))
    if not common:
        raise curves_do_not_compose("they have no Rényi order in common")
    return RenyiCurve(tuple((order, math.fsum(epsilons[order] for epsilons in least)) for order in sorted(common)))


def _composed_pairs(parts: list[PowerCurve]) -> PowerCurve:
    first, second = attaining_pair(parts[0])
    for part in parts[1:]:
        p, q = attaining_pair(part)
        if len(first) * len(p) > MOST_OUTPUTS:
            raise LossError(
                "too-many-outputs",
                f"The composed pair of distributions would have {len(first) * len(p)} outputs; {MOST_OUTPUTS} are the "
                "most.",
                "Compose fewer curves or coarser ones, or compose the privacy-loss distributions of the mechanisms.",
            )
        first, second = _merged(np.outer(first, p).ravel(), np.outer(second, q).ravel())
    points = power_curve(first, second)
    # An edge so short that its levels round to one number is none.
    return PowerCurve(tuple(map(tuple, points[np.append(np.diff(points[:, 0]) > 0, True)].tolist())))


def _merged(p: Array, q: Array) -> tuple[Array, Array]:
    """The pair with outputs of one likelihood ratio put together."""
    p, q = p[(p > 0) | (q > 0)], q[(p > 0) | (q > 0)]
    with np.errstate(divide="ignore"):
        ratios = np.where(p > 0, log_ratios(q, np.where(p > 0, p, 1.0)), math.inf)
    order = np.argsort(-ratios, kind="stable")
    upper, lower = ratios[order][:-1], ratios[order][1:]
    with np.errstate(invalid="ignore"):
        close = np.isfinite(upper) & np.isfinite(lower) & (upper - lower <= SAME_RATIO * (1 + np.abs(upper)))
    apart = ~(close | (upper == lower))
    starts = np.append(0, np.flatnonzero(apart) + 1)
    return np.add.reduceat(p[order], starts), np.add.reduceat(q[order], starts)


def _vertices(points: list[list[float]]) -> tuple[tuple[float, float], ...]:
    """The points without those on the line from the one kept before to the one that follows."""
    kept = [points[0]]
    for (x, y), (right, top) in pairwise(points[1:]):
        left, bottom = kept[-1]
        turn = (y - bottom) * (right - x) - (top - y) * (x - left)
        if turn > 1e-15 * math.hypot(right - left, top - bottom):
            kept.append([x, y])
    return tuple((level, power) for level, power in [*kept, points[-1]])
