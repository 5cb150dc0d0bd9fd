"""Probabilistically bounded differential privacy, and tails of the privacy loss (Kifer et al. 2022, section 5).

Let L = ln P/Q be the privacy loss of an output drawn from P. *The tail* is P(L > epsilon); a bound on it may fail after
post-processing. A mechanism is (epsilon, delta)-*pbdp* if the bound P(L > epsilon) <= delta holds for it and after
every post-processing (Definition 5.2), or equally if every test of a level of at most e^-epsilon delta has a power of
at most delta (Definition 5.5). So pbdp at every delta is a trade-off function in other coordinates: level e^-epsilon
delta, power delta.

Keep in mind: for each epsilon the deltas are ordered, approximate <= tail <= pbdp <= the bound from zCDP. Each
docstring says *Exact* where the number is the smallest that the definition implies, *Bound* where a smaller one may
hold; the laboratory's ``CONVERSIONS`` (stirred.lab.definitions.conversion_table) lists them. Floats are rounded to the
nearest unless something else is said. A delta of 0 is pure DP; an epsilon that nothing bounds is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._calls import refuses_wrong_arguments
from stirred._lazy import later
from stirred.errors import nothing_to_compose, unknown_choice
from stirred.loss.argument_checks import Number, finite, non_negative, order_above_one, probabilities, probability
from stirred.loss.conversions import narrowed
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve
from stirred.loss.curves.power_kernels import TINY
from stirred.loss.curves.tradeoffs import RenyiCurve, TradeOff, ZcdpCurve, level_at_power

special = later("scipy.special")

Array = NDArray[np.float64]
TailMethod = Literal["classical", "exact"]
TAIL_METHODS = ("classical", "exact")

# -- from zCDP -----------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def zcdp_to_pbdp_delta(rho: Number, epsilon: Number, method: TailMethod = "classical") -> float:
    """Delta at ``epsilon`` of rho-zCDP; it also bounds the tail of the loss.

    *classical*. Bound: e^(-(epsilon - rho)^2 / (4 rho)) for epsilon > rho, else 1 (Bun and Steinke 2016, Lemma 3.5).
    *exact*. Exact: from the trade-off function, :class:`ZcdpCurve`; rounded up. For small deltas they hardly differ.

    >>> zcdp_to_pbdp_delta(2.63, 5), zcdp_to_pbdp_delta(2.63, 5, "exact")
    (0.586298..., 0.540829...)
    """
    r, e = non_negative("rho", rho), non_negative("epsilon", epsilon)
    if _chosen(method) == "exact":
        return min(tradeoff_to_pbdp_delta(ZcdpCurve(r), e), zcdp_to_pbdp_delta(r, e))
    if math.isinf(e) or r == 0:
        return 0.0 if e > 0 else 1.0
    return math.exp(-((e - r) ** 2) / (4 * r)) if e > r else 1.0


@refuses_wrong_arguments
def zcdp_to_pbdp_epsilon(rho: Number, delta: Number, method: TailMethod = "classical") -> float:
    """Epsilon at ``delta`` of rho-zCDP, the inverse of :func:`zcdp_to_pbdp_delta`.

    *classical*. Bound: rho + 2 sqrt(rho ln 1/delta), which is also the classical epsilon of approximate DP. *exact*.
    Exact: from the trade-off function, rounded up.

    >>> zcdp_to_pbdp_epsilon(2.63, 0.5), zcdp_to_pbdp_epsilon(2.63, 0.5, "exact")
    (5.330353..., 5.185314...)
    """
    r, d = non_negative("rho", rho), probability("delta", delta)
    if _chosen(method) == "exact":
        return min(tradeoff_to_pbdp_epsilon(ZcdpCurve(r), d), zcdp_to_pbdp_epsilon(r, d))
    if r == 0 or d == 1:
        return 0.0 if d == 1 or r == 0 else math.inf
    return math.inf if d == 0 or math.isinf(r) else r + 2 * math.sqrt(-r * math.log(d))


def _chosen(method: str) -> str:
    if method not in TAIL_METHODS:
        raise unknown_choice("method", method, TAIL_METHODS)
    return method


# -- from Rényi divergences ----------------------------------------------------------------------------------


@refuses_wrong_arguments
def renyi_to_pbdp_delta(order: Number, divergence: Number, epsilon: Number) -> float:
    """Delta at ``epsilon`` of a Rényi divergence of at most ``divergence`` at one order alpha > 1, in both directions.

    Bound: e^((alpha - 1)(divergence - epsilon)) for epsilon > divergence, else 1: Markov's inequality. It also bounds
    the tail of the loss.

    >>> renyi_to_pbdp_delta(3, 1, 2)
    0.135335...
    """
    alpha, g, e = order_above_one(order), non_negative("divergence", divergence), non_negative("epsilon", epsilon)
    if e == 0 or e < g or math.isinf(g) or (e == g and not math.isinf(alpha)):
        return 1.0
    return 0.0 if g == 0 or math.isinf(alpha) or math.isinf(e) else math.exp((alpha - 1) * (g - e))


@refuses_wrong_arguments
def renyi_to_pbdp_epsilon(order: Number, divergence: Number, delta: Number) -> float:
    """Epsilon at ``delta`` of a Rényi divergence of at most ``divergence`` at one order alpha > 1, in both directions.

    Bound: divergence + ln(1/delta) / (alpha - 1), the inverse of :func:`renyi_to_pbdp_delta`.

    >>> renyi_to_pbdp_epsilon(3, 1, math.exp(-2))
    2.0
    """
    alpha, g, d = order_above_one(order), non_negative("divergence", divergence), probability("delta", delta)
    if d == 1 or g == 0:
        return 0.0
    if math.isinf(alpha) or math.isinf(g):
        return g
    return math.inf if d == 0 else g - math.log(d) / (alpha - 1)


@refuses_wrong_arguments
def renyi_orders_to_pbdp_delta(points: Iterable[tuple[Number, Number]], epsilon: Number) -> float:
    """Delta at ``epsilon`` of Rényi divergences at several orders, pairs (order, divergence).

    Bound: the smallest of :func:`renyi_to_pbdp_delta`. The exact one follows from :class:`RenyiCurve`.
    """
    pairs = list(points)
    if not pairs:
        raise nothing_to_compose("pair of order and divergence")
    return min(renyi_to_pbdp_delta(order, divergence, epsilon) for order, divergence in pairs)


@refuses_wrong_arguments
def renyi_orders_to_pbdp_epsilon(points: Iterable[tuple[Number, Number]], delta: Number) -> float:
    """Epsilon at ``delta`` of Rényi divergences at several orders, pairs (order, divergence).

    Bound: the smallest of :func:`renyi_to_pbdp_epsilon`.
    """
    pairs = list(points)
    if not pairs:
        raise nothing_to_compose("pair of order and divergence")
    return min(renyi_to_pbdp_epsilon(order, divergence, delta) for order, divergence in pairs)


# -- from Gaussian differential privacy ----------------------------------------------------------------------


@refuses_wrong_arguments
def gaussian_to_tail(mu: Number, epsilon: Number) -> float:
    """The tail P(L > epsilon) of mu-Gaussian DP. Exact: L is N(mu^2/2, mu^2), so it is Phi(mu/2 - epsilon/mu).

    Not a guarantee after post-processing; that is :func:`gaussian_to_pbdp_delta`.

    >>> round(gaussian_to_tail(math.sqrt(5.26), 5), 8)
    0.1507156
    """
    m, e = finite("mu", mu), non_negative("epsilon", epsilon)
    return 0.0 if m == 0 or math.isinf(e) else float(special.ndtr(m / 2 - e / m))


@refuses_wrong_arguments
def gaussian_to_pbdp_epsilon(mu: Number, delta: Number) -> float:
    """Epsilon at ``delta`` of mu-Gaussian DP. Exact: ln delta - ln Phi(Phi^-1(delta) - mu).

    >>> round(gaussian_to_pbdp_epsilon(math.sqrt(5.26), 1e-10), 6)
    17.517001
    """
    m, d = finite("mu", mu), probability("delta", delta)
    if m == 0 or d == 1:
        return 0.0
    return math.inf if d == 0 else math.log(d) - float(special.log_ndtr(special.ndtri(d) - m))


@refuses_wrong_arguments
def gaussian_to_pbdp_delta(mu: Number, epsilon: Number) -> float:
    """Delta at ``epsilon`` of mu-Gaussian DP. Exact: the root of :func:`gaussian_to_pbdp_epsilon`.

    With z = -Phi^-1(delta) the log ratio of the tails at z and z + mu increases with z and is at least mu z + mu^2 / 2.

    >>> round(gaussian_to_pbdp_delta(math.sqrt(5.26), 5), 8)
    0.26912615
    """
    m, e = finite("mu", mu), non_negative("epsilon", epsilon)
    if m == 0 or math.isinf(e):
        return 0.0 if e > 0 else 1.0

    def before(z: float) -> bool:
        return float(special.log_ndtr(-z) - special.log_ndtr(-z - m)) < e

    return float(special.ndtr(-narrowed(-38.0, max(-38.0, e / m), before)[0]))


# -- from pure and approximate differential privacy ----------------------------------------------------------


@refuses_wrong_arguments
def pure_to_pbdp_epsilon(epsilon: Number, delta: Number) -> float:
    """Epsilon at ``delta`` of pure epsilon-DP. Exact: epsilon up to delta = e^epsilon / (1 + e^epsilon), from there

        ln (delta / (1 - e^epsilon (1 - delta))).

    >>> pure_to_pbdp_epsilon(1, 0.3), pure_to_pbdp_epsilon(1, 0.9)
    (1.0, 0.211857...)
    """
    return approximate_to_pbdp_epsilon(epsilon, 0, delta)


@refuses_wrong_arguments
def pure_to_pbdp_delta(epsilon: Number, at: Number) -> float:
    """Delta at the epsilon ``at`` of pure epsilon-DP. Exact: e^at (e^epsilon - 1) / (e^(epsilon + at) - 1) below
    epsilon, and 0 from epsilon on.

    >>> pure_to_pbdp_delta(1, 0.5), pure_to_pbdp_delta(1, 1)
    (0.813676..., 0.0)
    """
    return approximate_to_pbdp_delta(epsilon, 0, at)


@refuses_wrong_arguments
def approximate_to_pbdp_epsilon(epsilon: Number, delta: Number, at: Number) -> float:
    """Epsilon at the delta ``at`` of (epsilon, delta)-DP. Exact: ln(at / level) with the smallest level of that power,
    which is e^-epsilon (at - delta) or, beyond where level and power sum to one, 1 - delta - e^epsilon (1 - at).

    Infinite for ``at`` up to delta, unless both are 0. For instance (epsilon, delta)-DP is (epsilon + ln 2, 2
    delta)-pbdp.

    >>> approximate_to_pbdp_epsilon(1, 1e-6, 2e-6) - 1
    0.693147...
    """
    e, d, a = non_negative("epsilon", epsilon), probability("delta", delta), probability("at", at)
    if a == 0 and d == 0:
        return e
    if a <= d or math.isinf(e):
        return 0.0 if a == 1 else math.inf
    rest = 1 - a
    if rest >= (1 - d) * float(special.expit(-e)):
        return max(0.0, e + math.log(a / (a - d)))
    return max(0.0, math.log(a) - math.log(1 - d - math.exp(e) * rest)) if rest > 0 else -math.log1p(-d)


@refuses_wrong_arguments
def approximate_to_pbdp_delta(epsilon: Number, delta: Number, at: Number) -> float:
    """Delta at the epsilon ``at`` of (epsilon, delta)-DP. Exact: the inverse of :func:`approximate_to_pbdp_epsilon`,

        delta / (1 - e^(epsilon - at)), or (e^epsilon - 1 + delta) / (e^epsilon - e^-at) if that is larger.

    >>> approximate_to_pbdp_delta(1, 1e-6, 1 + math.log(2)) / 1e-6
    2.0...
    """
    e, d, a = non_negative("epsilon", epsilon), probability("delta", delta), non_negative("at", at)
    if a == 0 and (e > 0 or d > 0):
        return 1.0
    if math.isinf(e) or d == 1:
        return 1.0
    if a > e:
        low = d / -math.expm1(e - a)
        if low <= float(special.expit(e)) + d * float(special.expit(-e)):  # the power where level and power sum to one
            return low
    elif a == e and d == 0:
        return 0.0
    return min(1.0, (-math.expm1(-e) + d * math.exp(-e)) / -math.expm1(-e - a))


# -- from and to trade-off functions -------------------------------------------------------------------------


@refuses_wrong_arguments
def tradeoff_to_pbdp_epsilon(curve: TradeOff, delta: Number) -> float:
    """Epsilon at ``delta`` of f-DP. Exact: ln(delta / f^-1(1 - delta)), f the type II error; infinite up to 1 - f(0).

    At delta = 0 it is the limit, the epsilon of pure DP. Rounded up for curves found by search.

    >>> tradeoff_to_pbdp_epsilon(PowerCurve(((0, 0.1), (0.9, 1), (1, 1))), 0.05)
    inf
    """
    d = probability("delta", delta)
    if isinstance(curve, GaussianCurve):
        return gaussian_to_pbdp_epsilon(curve.mu, d)
    if d == 0:
        return _pure_epsilon(curve)
    level = float(level_at_power(curve, d))
    if level == 0:
        return math.inf
    epsilon = math.log(d / level) if d / level < 1e300 else math.log(d) - math.log(level)
    searched = isinstance(curve, RenyiCurve | ZcdpCurve) and epsilon > 0
    return epsilon * (1 + 4e-16) + 4e-16 if searched else max(0.0, epsilon)


@refuses_wrong_arguments
def tradeoff_to_pbdp_delta(curve: TradeOff, epsilon: Number) -> float:
    """Delta at ``epsilon`` of f-DP. Exact: where the power is e^epsilon times the level.

    A concave power curve crosses that ray once, or begins below it, and then delta is 0. At an infinite epsilon it is
    the power at level 0. Rounded up for curves found by search.

    >>> tradeoff_to_pbdp_delta(PowerCurve(((0, 0), (0.25, 0.75), (1, 1))), math.log(2))
    0.8
    """
    e = non_negative("epsilon", epsilon)
    if isinstance(curve, GaussianCurve):
        return gaussian_to_pbdp_delta(curve.mu, e)
    if math.isinf(e):
        return float(curve.power(0.0))
    if _pure_epsilon(curve) <= e:
        return 0.0
    if e == 0:
        return 1.0
    if isinstance(curve, PowerCurve):
        return _ray(curve, e)
    low, high = math.log(TINY), 0.0
    while (middle := (low + high) / 2) not in (low, high) and high - low > 1e-14:
        low, high = (middle, high) if tradeoff_to_pbdp_epsilon(curve, math.exp(middle)) > e else (low, middle)
    return min(1.0, math.exp(high))


@refuses_wrong_arguments
def pbdp_to_power(profile: EpsilonProfile, level: ArrayLike) -> Array:
    """The largest power of a test with false-alarm probability ``level`` under pbdp at each point of a profile.

    Bound: the smallest over the points of max(delta, e^epsilon level), and of 1 - e^-epsilon (1 - level) where delta <
    1 - level: a point holds at every larger delta too, and for both orders of neighbours; an infinite epsilon says
    nothing. At finitely many points pbdp is not convex (Example 5.8), so this is not a concave curve.

    >>> pbdp_to_power(EpsilonProfile(((0.1, 1.0),)), [0.01, 0.1]).round(4).tolist()
    [0.1, 0.2718]
    """
    levels = probabilities("level", level)
    powers = np.ones(levels.shape)
    for delta, epsilon in profile.points:
        if math.isinf(epsilon):
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            risen = np.where(levels > 0, np.exp(epsilon) * levels, 0.0)
        powers = np.minimum(powers, np.maximum(delta, risen))
        powers = np.where(delta < 1 - levels, np.minimum(powers, 1 - np.exp(-epsilon) * (1 - levels)), powers)
    return powers


@refuses_wrong_arguments
def pbdp_curve_to_type_two_error(epsilon: Callable[[float], float], level: Number) -> float:
    """The type II error f(level) of a whole pbdp curve, epsilon as a function of delta.

    Exact: f(e^-epsilon(delta) delta) = 1 - delta, solved for delta by bisection, from below.

    >>> pbdp_curve_to_type_two_error(lambda delta: gaussian_to_pbdp_epsilon(1, delta), 0.05)
    0.740488...
    """
    x = probability("level", level)
    return 1 - narrowed(0.0, 1.0, lambda delta: math.exp(-epsilon(delta)) * delta <= x)[1]


@refuses_wrong_arguments
def pbdp_to_pure(profile: EpsilonProfile) -> float:
    """The epsilon of pure DP of what is pbdp at each point of a profile. Exact: the epsilon at delta = 0, which is pure
    DP (Theorem A.1); infinite without it.

    >>> pbdp_to_pure(EpsilonProfile(((0, 3), (1e-6, 2))))
    3.0
    """
    return profile.epsilon(0)


def _pure_epsilon(curve: TradeOff) -> float:
    """The epsilon of pure DP that a curve implies."""
    if isinstance(curve, GaussianCurve):
        return 0.0 if curve.mu == 0 else math.inf
    if isinstance(curve, ZcdpCurve):
        return 0.0 if curve.rho == 0 else math.inf
    if isinstance(curve, RenyiCurve):
        return min((e for order, e in curve.points if math.isinf(order) or e == 0), default=math.inf)
    (_, start), (level, power) = curve.points[:2]
    return math.inf if start > 0 else max(0.0, math.log(power) - math.log(level))


def _ray(curve: PowerCurve, epsilon: float) -> float:
    """The power at which a curve with vertices crosses the ray power = e^epsilon level."""
    slope = math.exp(-epsilon)
    points = curve.points
    last = max(k for k, (level, power) in enumerate(points) if level <= slope * power)
    if last == len(points) - 1:  # epsilon is lost in rounding
        return 1.0
    (x, p), (right, top) = points[last], points[last + 1]
    # On the edge level - slope * power goes from at most 0 to above it.
    here, there = x - slope * p, right - slope * top
    return p + (top - p) * here / (here - there) if here < 0 else p
