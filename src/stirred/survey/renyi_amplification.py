"""What sampling buys in Rényi divergences, and why it buys nothing in zCDP.

A mechanism on the sample is given by its Rényi curve, a function from orders to divergences (order * rho for rho-zCDP).
With the laws m0, m1, m1' of :mod:`stirred.survey.amplification`, four bounds on exp((alpha - 1) D_alpha) are used:

* any sampling with fixed probabilities: 1 - p + p e^((alpha-1) D(alpha)), by joint convexity;
* simple random sampling, and whatever else changes one record: Wang, Balle and Kasiviswanathan 2019, Theorem 9;
* Poisson sampling, record removed: the binomial sum of (1-p)^(alpha-j) p^j e^((j-1) D(j)), which expands
  ((1-p) m0 + p m1)^alpha, and is exact for Gaussian noise (Mironov, Talwar and Zhang 2019, section 3.3);
* Poisson sampling, record added: the same sum with its terms from j = 3 on times 3 (Zhu and Wang 2019, Theorem 5).

The last three are for whole orders; between them (alpha - 1) D_alpha is convex, so that chords bound it (Wang et al.,
Corollary 10). Keep in mind: **zCDP is not amplified**. A record that is in the sample with probability p > 0 leaves, at
high orders, D_alpha >= D_alpha(m1, m0) - alpha/(alpha-1) log(1/p), and of D_alpha / alpha the limit is that without
sampling: rho' = rho. At each single order there is a gain, and the curve is what can be converted to (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred.loss.argument_checks import Number, finite, probability, renyi_order
from stirred.loss.conversions import renyi_to_approximate, zcdp_to_approximate
from stirred.survey.amplification import amplify, unit_epsilon
from stirred.survey.selections import Selection, UnitClass

RenyiCurve = Callable[[float], float]
"""From an order above 1, or infinity, to the divergence that the mechanism has at most on neighbouring samples."""

ORDERS = (*(1 + k / 10 for k in range(1, 10)), *range(2, 64), *range(64, 513, 16))
"""Orders that are tried for a conversion; the best of them counts."""


@says_what_it_takes
def amplify_renyi(selection: Selection, curve: RenyiCurve, order: Number) -> float:
    """The Rényi divergence of an order, for the records of the frame, of a mechanism with this curve on the sample.

    >>> from stirred.survey.selections import simple_random
    >>> amplify_renyi(simple_random(1, 100), lambda order: order * 0.1, 2) < 0.01  # 0.2 on the sample
    True
    """
    alpha = renyi_order(order)
    if selection.reason:
        raise errors.no_amplification(selection.design, selection.reason)
    if selection.draws:
        raise errors.no_amplification(
            selection.design, "bounds in Renyi divergences are known for draws with replacement, but not built here"
        )
    if alpha == 1 or math.isinf(alpha):
        divergence = finite("The divergence", curve(alpha))
        if alpha == 1:
            return float(selection.largest) * divergence  # convexity
        return max(unit_epsilon(one, divergence) for one in selection.classes)
    return max(_of_class(selection, one, curve, alpha) for one in selection.classes)


@says_what_it_takes
def sampled_gaussian(selection: Selection, variance: Number, order: int) -> float:
    """The Rényi divergence of a whole order of Gaussian noise on a count or sum of a Poisson sample: exact.

    ``variance`` is that of the noise where one record changes the answer by at most 1. Mironov, Talwar and Zhang 2019,
    section 3.3: of the two directions, removing a record is the worse.
    """
    v, alpha = finite("The variance", variance), renyi_order(order)
    if selection.neighbours != "add or remove" or v == 0 or alpha != int(alpha) or alpha < 2:
        raise errors.parameter_out_of_range(
            "The question", "about another design, variance 0, or an order that is not whole",
            "about Poisson sampling, a variance above 0 and a whole order from 2 on",
        )  # fmt: skip
    return max(_log_binomial(one, lambda k: k / (2 * v), int(alpha), 1) / (alpha - 1) for one in selection.classes)


@says_what_it_takes
def amplify_zcdp(selection: Selection, rho: Number, delta: Number) -> float:
    """Epsilon at ``delta``, for the records of the frame, of a mechanism that is rho-zCDP on the sample.

    The result is (epsilon, delta) and not a rho: sampling leaves rho as it is. The smaller of two ways: amplified at
    single orders and then converted; or converted at delta/p and then amplified.
    """
    r, d = finite("rho", rho), probability("delta", delta)
    if d == 0:
        raise errors.no_amplification(
            selection.design, "rho-zCDP promises nothing at delta 0, on the sample or the frame"
        )

    def curve(order: float) -> float:
        return r * order

    if selection.reason or selection.draws:
        amplify_renyi(selection, curve, 2)  # refuses
    share = min(1.0, d / float(selection.largest))
    converted = amplify(selection, zcdp_to_approximate(r, share, "tight"), share).epsilon
    orders = (renyi_to_approximate(order, amplify_renyi(selection, curve, order), d) for order in ORDERS)
    return min(converted, *orders)


# -- bounds --------------------------------------------------------------------------------------------------


def _of_class(selection: Selection, units: UnitClass, curve: RenyiCurve, order: float) -> float:
    p = float(units.probability)
    if p == 1:
        return curve(order)
    convex = _log_mixed(p, (order - 1) * curve(order))
    if units.changed > 1:
        return convex / (order - 1)
    whole = _poisson if selection.neighbours == "add or remove" else _without_replacement
    low = math.floor(order)
    if low == order:
        return min(convex, whole(units, curve, low)) / (order - 1)
    share = order - low
    below = min(_log_mixed(p, (low - 1) * curve(low)), whole(units, curve, low)) if low > 1 else 0.0
    above = min(_log_mixed(p, low * curve(low + 1)), whole(units, curve, low + 1))
    return min(convex, (1 - share) * below + share * above) / (order - 1)


def _poisson(units: UnitClass, curve: RenyiCurve, order: int) -> float:
    """(alpha - 1) D_alpha for the worse of a record removed (exact sum) and added (Zhu and Wang, or convexity)."""
    removed = _log_binomial(units, curve, order, 1)
    added = min(_log_binomial(units, curve, order, 3), _log_mixed(float(units.probability), (order - 1) * curve(order)))
    return max(removed, added)


def _log_binomial(units: UnitClass, curve: RenyiCurve, order: int, factor: int) -> float:
    """log of the sum over j of C(alpha, j) (1-p)^(alpha-j) p^j e^((j-1) D(j)), terms from j = 3 on times ``factor``.

    The coefficients sum to 1, so what exceeds 1 is a sum of terms with e^((j-1) D(j)) - 1, which keeps its digits.
    """
    p = float(units.probability)
    if p == 1:
        return (order - 1) * curve(order)
    logs = []
    for j in range(2, order + 1):
        above_one = _log_minus_one((j - 1) * curve(j) + (math.log(factor) if j > 2 else 0.0))
        logs.append(math.log(math.comb(order, j)) + (order - j) * math.log1p(-p) + j * math.log(p) + above_one)
    return _log_one_plus(logs)


def _without_replacement(units: UnitClass, curve: RenyiCurve, order: int) -> float:
    """(alpha - 1) times Theorem 9 of Wang, Balle and Kasiviswanathan 2019."""
    log_p, log_pure = math.log(float(units.probability)), _log_minus_one(curve(math.inf))

    def term(j: int, log_size: float) -> float:
        return j * log_p + math.log(math.comb(order, j)) + log_size

    def capped(j: int) -> float:
        """log of e^((j-1) D(j)) min(2, (e^D(inf) - 1)^j)."""
        return (j - 1) * curve(j) + min(math.log(2), j * log_pure)

    second = min(math.log(4) + _log_minus_one(curve(2)), capped(2))
    return _log_one_plus([term(2, second), *(term(j, capped(j)) for j in range(3, order + 1))])


def _log_mixed(p: float, exponent: float) -> float:
    """log(1 - p + p e^exponent)."""
    if exponent < 30:
        return math.log1p(p * math.expm1(exponent))
    return exponent + math.log(p + (1 - p) * math.exp(-exponent))


def _log_minus_one(exponent: float) -> float:
    """log(e^exponent - 1)."""
    if exponent == 0:
        return -math.inf
    return math.log(math.expm1(exponent)) if exponent < 30 else exponent + math.log1p(-math.exp(-exponent))


def _log_one_plus(logs: list[float]) -> float:
    """log of 1 and the exponentials of ``logs``, accurate where these are small; what is infinite stays so."""
    largest = max(logs)
    if math.isinf(largest):
        return max(0.0, largest)
    total = math.fsum(math.exp(one - largest) for one in logs)
    if largest < 30:
        return math.log1p(math.exp(largest) * total)
    return largest + math.log(total + math.exp(-largest))
