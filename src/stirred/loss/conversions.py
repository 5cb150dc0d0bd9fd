"""Conversions between definitions of privacy loss, one function each.

Every result is an upper bound: what satisfies the first guarantee satisfies the second with the number returned. Where
the bound is also attained by some mechanism the docstring says *exact*. Numbers are evaluated in floats: those that
come from randomised response are rounded up by a part of 1e-14, the last digits of others to the nearest; code that
displays a guarantee rounds up. zCDP is in the usual sense (Bun and Steinke
2016), rho being the square of the D_NoR budget of section 2.4.5.

The one function that is not an implication is :func:`approximate_to_zcdp`, and it says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from stirred._calls import refuses_wrong_arguments
from stirred._lazy import later
from stirred.errors import parameter_out_of_range, unknown_choice
from stirred.loss.argument_checks import Number, finite, non_negative, order_above_one, probability, renyi_order
from stirred.loss.curves.power_curves import GaussianCurve, PowerCurve
from stirred.loss.divergences import scaled

special = later("scipy.special")

Method = Literal["classical", "tight"]
METHODS = ("classical", "tight")

# -- from zCDP -----------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def zcdp_to_approximate(rho: Number, delta: Number, method: Method = "classical") -> float:
    """Epsilon at ``delta`` of rho-zCDP.

    *classical*: rho + 2 sqrt(rho ln 1/delta) (Bun and Steinke 2016, Proposition 1.3), the Census Bureau's tables.
    *tight*: the smallest over alpha > 1 of :func:`renyi_to_approximate` at epsilon = alpha rho (Canonne, Kamath and
    Steinke 2020, Proposition 12), never larger. At a fixed epsilon, ln delta is convex in alpha, so at a fixed delta
    epsilon first falls and then rises with alpha, and one search finds the smallest. Neither is exact.

    >>> zcdp_to_approximate(2.63, 1e-10), zcdp_to_approximate(2.56, 1e-10, "tight")
    (18.193..., 17.158...)
    """
    r, d = non_negative("rho", rho), probability("delta", delta)
    if method not in METHODS:
        raise unknown_choice("method", method, METHODS)
    if r == 0:
        return 0.0
    if d == 0 or math.isinf(r):
        return math.inf
    if method == "classical":
        return r + 2 * math.sqrt(-r * math.log(d))
    return max(0.0, _smallest(lambda log_x: _from_renyi(math.exp(log_x), r * (1 + math.exp(log_x)), d)))


@refuses_wrong_arguments
def approximate_to_zcdp(epsilon: Number, delta: Number) -> float:
    """The rho whose classical conversion is ``epsilon`` at ``delta``: (sqrt(L + epsilon) - sqrt(L))^2, L = ln 1/delta.

    The inverse of a formula, *not* an implication: (epsilon, delta)-DP implies no zCDP. A mechanism with this rho has
    the epsilon.

    >>> approximate_to_zcdp(zcdp_to_approximate(2.63, 1e-10), 1e-10)
    2.63...
    """
    e, d = finite("epsilon", epsilon), probability("delta", delta)
    if d == 0:
        return 0.0
    level = -math.log(d)
    return (e / (math.sqrt(level + e) + math.sqrt(level))) ** 2 if e > 0 else 0.0


@refuses_wrong_arguments
def zcdp_to_renyi(rho: Number, order: Number) -> float:
    """The Rényi divergence of ``order`` under rho-zCDP: order * rho, the definition; exact."""
    alpha, r = renyi_order(order), non_negative("rho", rho)
    return alpha * r if r > 0 else 0.0


@refuses_wrong_arguments
def zcdp_to_total_variation(rho: Number) -> float:
    """Total variation under rho-zCDP: tanh(epsilon / 2), where epsilon tanh(epsilon / 2) = rho; exact.

    Take the event that the two laws disagree on most, and exchange the laws and their outcomes in half of the cases:
    what is left are the two laws of randomised response with this total variation, and their divergence of order 1,
    epsilon tanh(epsilon / 2), is at most rho. Randomised response of this epsilon satisfies rho-zCDP
    (:func:`pure_to_zcdp`) and attains it. Pinsker's inequality, sqrt(rho / 2), is never smaller.

    >>> zcdp_to_total_variation(2.63), zcdp_to_total_variation(0.02)
    (0.898..., 0.0998...)
    """
    r = non_negative("rho", rho)
    if r == 0 or math.isinf(r):
        return min(r, 1.0)
    low, high = 0.0, 1.0
    while high * math.tanh(high / 2) < r:
        low, high = high, 2 * high
    _, above = narrowed(low, high, lambda epsilon: epsilon * math.tanh(epsilon / 2) < r)
    return min(1.0, _up(math.tanh(above / 2)))


# -- from pure and approximate differential privacy ----------------------------------------------------------


@refuses_wrong_arguments
def pure_to_zcdp(epsilon: Number) -> float:
    """The rho of pure epsilon-DP: epsilon tanh(epsilon / 2); exact, attained by randomised response.

    Every two laws within epsilon are post-processed from the two laws of randomised response (Kairouz, Oh and
    Viswanath 2015), so these are the worst case of every Rényi divergence. With s = (alpha - 1/2)^2 and
    h(s) = ln cosh(epsilon sqrt(s)), theirs is D_alpha / alpha = (h(s) - h(1/4)) / (s - 1/4). As h is concave this
    falls with alpha, so that its supremum is the limit at order 1, h'(1/4) = epsilon tanh(epsilon / 2). It is at most
    epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4) and at most epsilon.

    >>> pure_to_zcdp(4), pure_to_zcdp(0.1)
    (3.856..., 0.00499...)
    """
    e = non_negative("epsilon", epsilon)
    return min(_up(e * math.tanh(e / 2)), e)


@refuses_wrong_arguments
def pure_to_renyi(epsilon: Number, order: Number) -> float:
    """Rényi divergence of pure epsilon-DP; exact, attained by randomised response (see :func:`pure_to_zcdp`):

        ln(cosh((alpha - 1/2) epsilon) / cosh(epsilon / 2)) / (alpha - 1)

    and epsilon tanh(epsilon / 2) at order 1, epsilon at order infinity.

    >>> pure_to_renyi(1, 2), pure_to_renyi(1, 1)
    (0.735..., 0.462...)
    """
    e, alpha = non_negative("epsilon", epsilon), renyi_order(order)
    if alpha == 1:
        return pure_to_zcdp(e)
    if math.isinf(alpha) or e == 0 or math.isinf(e):
        return e
    if alpha * e < 700:
        # cosh(a) / cosh(b) - 1 as a product keeps the digits where the divergence is small.
        above_one = 2 * math.sinh(alpha * e / 2) * math.sinh((alpha - 1) * e / 2) / math.cosh(e / 2)
        return min(e, _up(math.log1p(above_one) / (alpha - 1)))
    lost = math.log1p(math.exp(-e)) - math.log1p(math.exp(-(2 * alpha - 1) * e))
    return min(e, _up(e - lost / (alpha - 1)))


@refuses_wrong_arguments
def pure_to_total_variation(epsilon: Number) -> float:
    """Total variation under pure epsilon-DP: tanh(epsilon / 2); exact, attained by randomised response.

    >>> round(pure_to_total_variation(math.log(3)), 12)
    0.5
    """
    return min(1.0, _up(math.tanh(non_negative("epsilon", epsilon) / 2)))


@refuses_wrong_arguments
def approximate_to_total_variation(epsilon: Number, delta: Number) -> float:
    """Total variation under (epsilon, delta)-DP: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1). Exact: the height of the
    power curve above the identity where its
    two lines meet (Kairouz, Oh and Viswanath 2015)."""
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    # The same, as a mixture of certainty and randomised response.
    return d + (1 - d) * math.tanh(e / 2)


@refuses_wrong_arguments
def group_approximate(epsilon: Number, delta: Number, size: int) -> tuple[float, float]:
    """(epsilon, delta) for groups of ``size``: (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)).

    Vadhan 2017, Lemma 2.2, with the geometric sum 1 + e^epsilon + ... + e^((k-1) epsilon) in place of its bound. A
    delta above 1 says nothing and is given as 1.

    >>> group_approximate(0, 1e-6, 3)
    (0.0, 3e-06)
    """
    e, d = non_negative("epsilon", epsilon), probability("delta", delta)
    if not isinstance(size, int) or size < 1:
        raise parameter_out_of_range("size", size, "a whole number that is at least 1")
    if d == 0 or size == 1:
        return size * e, d
    if e == 0:
        return 0.0, min(1.0, size * d)
    log_sum = (size - 1) * e + math.log(math.expm1(-size * e) / math.expm1(-e))
    return size * e, math.exp(min(0.0, math.log(d) + log_sum))


# -- from Rényi divergences ----------------------------------------------------------------------------------


@refuses_wrong_arguments
def renyi_to_approximate(order: Number, epsilon: Number, delta: Number) -> float:
    """Epsilon at ``delta`` of a Rényi divergence of at most ``epsilon`` at one order alpha > 1, in both directions:

        epsilon + ln((alpha - 1)/alpha) - (ln delta + ln alpha)/(alpha - 1)

    and at least 0 (Canonne, Kamath and Steinke 2020, Proposition 12).

    >>> renyi_to_approximate(2, 1, 1e-6)  # 1 + ln(1/delta) - 2 ln 2
    13.429...
    """
    alpha, e, d = order_above_one(order), non_negative("epsilon", epsilon), probability("delta", delta)
    if math.isinf(alpha) or e == 0:
        return e
    return math.inf if d == 0 else max(0.0, _from_renyi(alpha - 1, e, d))


def _from_renyi(x: float, epsilon: float, delta: float) -> float:
    """The formula of :func:`renyi_to_approximate` at alpha = x + 1."""
    return epsilon - math.log1p(1 / x) - (math.log(delta) + math.log1p(x)) / x


# -- from Gaussian differential privacy ----------------------------------------------------------------------


@refuses_wrong_arguments
def gaussian_to_approximate(mu: Number, epsilon: Number) -> float:
    """Delta at ``epsilon`` of mu-Gaussian DP; exact (Balle and Wang 2018; Dong, Roth and Su 2022, Corollary 2.13):

        Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

    With t = epsilon/mu - mu/2 and Mills' ratio m it is phi(t) (m(t) - m(t + mu)), which keeps its digits when tiny.

    >>> gaussian_to_approximate(1, 5)
    5.793...e-07
    """
    m, e = finite("mu", mu), finite("epsilon", epsilon)
    if m == 0:
        return 0.0
    t = e / m - m / 2
    if t < 0:
        return max(0.0, float(special.ndtr(-t)) - math.exp(_log_tail(t + m) + e))
    return math.exp(-t * t / 2) / 2 * float(special.erfcx(t / math.sqrt(2)) - special.erfcx((t + m) / math.sqrt(2)))


@refuses_wrong_arguments
def gaussian_epsilon(mu: Number, delta: Number) -> float:
    """The smallest epsilon at ``delta`` of mu-Gaussian DP, the root of :func:`gaussian_to_approximate`, rounded up."""
    m, d = finite("mu", mu), probability("delta", delta)
    if m == 0 or gaussian_to_approximate(m, 0) <= d:
        return 0.0
    if d == 0:
        return math.inf
    high = zcdp_to_approximate(gaussian_to_zcdp(m), d)
    while gaussian_to_approximate(m, high) > d:  # only where the formula is at the end of its digits
        high *= 2
    return narrowed(0.0, high, lambda epsilon: gaussian_to_approximate(m, epsilon) > d)[1]


@refuses_wrong_arguments
def gaussian_to_zcdp(mu: Number) -> float:
    """The rho of mu-Gaussian DP: mu^2 / 2; exact, as D_alpha = alpha mu^2 / 2 between N(0, 1) and N(mu, 1)."""
    m = non_negative("mu", mu)
    return m * m / 2


def _log_tail(t: float) -> float:
    """ln P(N(0, 1) > t) for t > 0."""
    return math.log(special.erfcx(t / math.sqrt(2)) / 2) - t * t / 2


# -- from curves ---------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def power_to_approximate(curve: PowerCurve | GaussianCurve, epsilon: Number) -> float:
    """Delta at ``epsilon`` of a mechanism whose power curve is at most ``curve``: the largest power - e^epsilon level.

    Exact. A curve that is straight between vertices has its largest difference at one of them.

    >>> power_to_approximate(PowerCurve(((0, 0.1), (0.9, 1), (1, 1))), 0)
    0.1
    """
    e = non_negative("epsilon", epsilon)
    if isinstance(curve, GaussianCurve):
        return 0.0 if math.isinf(e) else gaussian_to_approximate(curve.mu, e)
    levels, powers = np.array(curve.points).T
    return max(float(powers[0]), float(np.max(powers[1:] - scaled(levels[1:], e))))


def power_to_epsilon(curve: PowerCurve | GaussianCurve, delta: Number) -> float:
    """The smallest epsilon that a power curve gives at ``delta``, to a part of 1e-12; infinite above about 1,000."""
    if isinstance(curve, GaussianCurve):
        return gaussian_epsilon(curve.mu, float(delta))
    low, high = 0.0, 1.0
    while power_to_approximate(curve, high) > delta:
        if high > 1e3:
            return math.inf
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if power_to_approximate(curve, middle) <= delta else (middle, high)
    return high


# -- helpers -------------------------------------------------------------------------------------------------


def narrowed(low: float, high: float, before: Callable[[float], bool]) -> tuple[float, float]:
    """Two neighbouring floats, found by bisection: ``before`` is true of the first and false of the second."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if before(middle) else (low, middle)
    return low, high


def _up(value: float) -> float:
    """A number above a result of a few roundings: larger by a part of 1e-14, and by the smallest step at least."""
    return math.nextafter(value * (1 + 2.0**-47), math.inf) if value > 0 else value


def _smallest(bound: Callable[[float], float]) -> float:
    """The smallest value of a function that first falls and then rises, between -60 and 60, by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = -60.0, 60.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = bound(left), bound(right)
    best = min(at_left, at_right)
    for _ in range(100):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = bound(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = bound(right)
        best = min(best, at_left, at_right)
    return best
