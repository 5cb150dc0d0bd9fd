"""What can be done with trade-off functions: inverse, symmetrisation, the pair of laws that attains one, composition.

The inverse of a type II error f is f^-1(z) = inf {y : f(y) <= z}; in the power convention level and power are exchanged
and counted from one. Where a definition binds both orders of two neighbours f may be replaced by max(f, f^-1) (Dong,
Roth and Su 2022; Remark 5.10 of Kifer et al. 2022), which in power is the lower of the two curves.

Keep in mind: a composed curve holds for any mechanisms that satisfy the parts, adaptively chosen
from the earlier outputs, and is attained by some: that of Gaussians by Gaussians, that of vertices by the pairs of laws
that attain the parts. Rényi divergences and rho only add; theirs is the curve that follows from the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stirred._calls import says_what_it_takes
from stirred.errors import curves_do_not_compose, nothing_to_compose, too_many_outputs
from stirred.loss.curves import GaussianCurve, PowerCurve
from stirred.loss.divergences import log_ratios, power_curve
from stirred.loss.tradeoffs import RenyiCurve, TradeOff, ZcdpCurve

Array = NDArray[np.float64]

MOST_OUTPUTS = 4_000_000
"""Of a composed pair of laws, before equal likelihood ratios are put together."""

SAME_RATIO = 1e-13
"""Log likelihood ratios that differ by less are rounded forms of one number."""


@says_what_it_takes
def inverted_power_curve(curve: TradeOff) -> TradeOff:
    """The curve of the same laws with hypotheses exchanged: its type II error is the inverse function.

    >>> inverted_power_curve(PowerCurve(((0, 0.25), (0.5, 1), (1, 1)))).points
    ((0.0, 0.5), (0.75, 1.0), (1.0, 1.0))
    """
    if not isinstance(curve, PowerCurve):
        return curve  # a Gaussian's is its own inverse, and so is that of a bound on both directions
    points: dict[float, float] = {}
    for level, power in [*((1 - power, 1 - level) for level, power in reversed(curve.points)), (1.0, 1.0)]:
        points[level] = max(power, points.get(level, 0.0))
    return PowerCurve(tuple(points.items()))


@says_what_it_takes
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
    gap = first - second
    crossed = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    share = gap[crossed] / (gap[crossed] - gap[crossed + 1])
    between = levels[crossed] + share * (levels[crossed + 1] - levels[crossed])
    crossing = first[crossed] + share * (first[crossed + 1] - first[crossed])
    at = np.append(levels, between)
    points = np.column_stack([at, np.append(np.minimum(first, second), crossing)])[np.argsort(at)]
    points = points[np.append(np.diff(points[:, 0]) > 0, True)]
    return PowerCurve(_vertices(points.tolist()))


@says_what_it_takes
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


@says_what_it_takes
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
            raise too_many_outputs(len(first) * len(p), MOST_OUTPUTS)
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
