"""Output premetrics between two distributions on the same finite set of outputs (section 2.4.5; Definition A.6.1).

Distributions are lists of probabilities, the same outputs in the same order. Conventions for zeros, everywhere: an
output that neither distribution can give is ignored; one that only the first or only the second can give makes a
multiplicative or Rényi divergence infinite, where its direction looks at it.

Keep in mind: everything is computed from the log likelihood ratios ln p/q of single outputs, in
forms whose terms have one sign, so that nearly equal distributions keep their small divergences and equal ones have 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._calls import refuses_wrong_arguments
from stirred.loss import renyi_orders
from stirred.loss.argument_checks import Number, distributions, non_negative, probability, renyi_order

Array = NDArray[np.float64]

ROUNDING = 1e-12
"""Sums of rounded numbers: P(S) above delta by a smaller part counts as delta, and P(S) - delta above Q(S) as Q(S)."""

# -- multiplicative ------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def multiplicative(p: ArrayLike, q: ArrayLike) -> float:
    """D_Mult, the largest |ln P(S)/Q(S)|: the output premetric of pure differential privacy (equation 2.9).

    On a finite set it is attained by a single output. It is a metric.

    >>> multiplicative([0.75, 0.25], [0.25, 0.75])  # randomised response: ln 3
    1.0986122886681098
    >>> multiplicative([1, 0], [0.5, 0.5])
    inf
    """
    first, second = distributions(p, q)
    if bool(np.any((first > 0) != (second > 0))):
        return math.inf
    both = first > 0
    return float(np.max(np.abs(log_ratios(first[both], second[both]))))


@refuses_wrong_arguments
def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: Number) -> float:
    """The smallest delta with P(S) <= e^epsilon Q(S) + delta for every S: the sum of max(p - e^epsilon q, 0).

    One direction; at epsilon = 0 it is the total variation distance.

    >>> hockey_stick([0.75, 0.25], [0.25, 0.75], math.log(2))
    0.25
    """
    first, second = distributions(p, q)
    e = non_negative("epsilon", epsilon)
    reached = second > 0
    excess = first[reached] - scaled(second[reached], e)
    return math.fsum(excess[excess > 0]) + math.fsum(first[~reached])


@refuses_wrong_arguments
def approximate(p: ArrayLike, q: ArrayLike, delta: Number) -> float:
    """D_Mult^delta, the smallest epsilon for which (epsilon, delta)-DP holds between P and Q, in both directions.

    The supremum over events S of ln (P(S) - delta)/Q(S), of the same with P and Q exchanged, and of 0. The best S of
    each size is a set of largest likelihood ratios, so outputs are sorted by p/q and the prefixes compared. Events with
    P(S) <= delta and Q(S) = 0 are ignored. At delta = 0 it is :func:`multiplicative`; else it is not a metric.

    >>> approximate([0.75, 0.25], [0.25, 0.75], 0.1)
    0.955511...
    >>> approximate([1, 0], [0.9, 0.1], 0.1), approximate([1, 0], [0.8, 0.2], 0.1)
    (0.0, inf)
    """
    first, second = distributions(p, q)
    d = probability("delta", delta)
    if d == 0:
        return multiplicative(first, second)
    return max(_approximate_one_way(first, second, d), _approximate_one_way(second, first, d))


def _approximate_one_way(p: Array, q: Array, delta: float) -> float:
    """The largest ln (P(S) - delta)/Q(S), at least 0."""
    alone = math.fsum(p[q == 0])
    if alone > delta * (1 + ROUNDING):
        return math.inf
    p, q = p[q > 0], q[q > 0]
    order = np.argsort(-log_ratios(p, q), kind="stable")
    mass = alone + np.cumsum(p[order])
    excess = np.where(mass > delta * (1 + ROUNDING), mass - delta, 0.0)
    largest = float(np.max(excess / np.cumsum(q[order])))
    return math.log(largest) if largest > 1 + ROUNDING else 0.0


@refuses_wrong_arguments
def total_variation(p: ArrayLike, q: ArrayLike) -> float:
    """d_TV, the largest difference P(S) - Q(S): half the sum of |p - q|.

    >>> total_variation([0.75, 0.25], [0.25, 0.75])
    0.5
    """
    first, second = distributions(p, q)
    return min(1.0, math.fsum(np.abs(first - second)) / 2)


# -- Rényi ---------------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def renyi(p: ArrayLike, q: ArrayLike, order: Number) -> float:
    """D_alpha(P||Q) = ln (sum of p^alpha q^(1-alpha)) / (alpha - 1), one direction.

    Order 1 is the limit, the Kullback-Leibler divergence; order infinity the largest ln p/q. Non-decreasing in the
    order.

    >>> renyi([0.75, 0.25], [0.25, 0.75], 1), renyi([0.75, 0.25], [0.25, 0.75], 2)
    (0.549306..., 0.847297...)
    >>> renyi([1, 0], [0.5, 0.5], 2), renyi([0.5, 0.5], [1, 0], 2)
    (0.6931471805599453, inf)
    """
    first, second = distributions(p, q)
    alpha = renyi_order(order)
    return float(renyi_orders.renyi(first, second, alpha - 1))


@refuses_wrong_arguments
def normalised_renyi(p: ArrayLike, q: ArrayLike) -> float:
    """D_NoR, the root of the supremum over alpha > 1 and both directions of D_alpha / alpha: the metric of zCDP.

    P and Q satisfy rho-zCDP in the usual sense (Bun and Steinke 2016) when D_NoR <= sqrt(rho). The limit alpha -> 1,
    the Kullback-Leibler divergence, belongs to the supremum. How it is found, and how well:
    :mod:`stirred.loss.renyi_orders`.

    >>> normalised_renyi([0.75, 0.25], [0.25, 0.75]) ** 2  # here the supremum is the limit at order 1
    0.549306...
    """
    first, second = distributions(p, q)
    if bool(np.any((first > 0) != (second > 0))):
        return math.inf
    return math.sqrt(float(renyi_orders.supremum(first, second, 0.0, renyi_orders.MOST_TERMS // len(first))))


# -- tests of hypotheses -------------------------------------------------------------------------------------


@refuses_wrong_arguments
def power_curve(p: ArrayLike, q: ArrayLike) -> Array:
    """Vertices (level, power) of Tr(P, Q): the largest power of tests of P against Q (Definition A.6.1).

    Power, not type II error: concave, from (0, Q of what P cannot give) to (1, 1), straight between vertices. By Neyman
    and Pearson the best tests reject the outputs of largest q/p first; outputs of equal ratio make one edge.

    >>> power_curve([0.75, 0.25], [0.25, 0.75]).tolist()
    [[0.0, 0.0], [0.25, 0.75], [1.0, 1.0]]
    """
    first, second = distributions(p, q)
    alone = min(1.0, math.fsum(second[first == 0]))
    second, first = second[first > 0], first[first > 0]
    with np.errstate(divide="ignore"):
        ratios = log_ratios(second, first)
    order = np.argsort(-ratios, kind="stable")
    # Of a run of equal ratios only the last is a vertex.
    last = np.append(ratios[order][1:] != ratios[order][:-1], True)
    levels = np.minimum(1.0, np.cumsum(first[order]))[last]
    powers = np.minimum(1.0, alone + np.cumsum(second[order]))[last]
    levels[-1] = powers[-1] = 1.0
    if len(powers) > 1 and ratios[order[-1]] == -math.inf:  # what is left has no power to gain
        powers[-2] = 1.0
    return np.column_stack([np.append(0.0, levels), np.append(alone, powers)])


# -- helpers -------------------------------------------------------------------------------------------------


def log_ratios(p: Array, q: Array) -> Array:
    """ln p/q for q > 0, accurate also where p and q are nearly equal or the ratio leaves the range of floats."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        ratio = p / q
        far = (ratio > 1e300) | (ratio < 1e-300)
        near = np.abs(ratio - 1) < 0.5
        result = np.log(np.where(far | near, 1.0, ratio))
        result = np.where(near, np.log1p(np.where(near, (p - q) / q, 0.0)), result)
        return np.where(far, np.log(p) - np.log(q), result)


def scaled(q: Array, epsilon: float) -> Array:
    """e^epsilon q for q > 0, infinite only where it is too large for a float."""
    with np.errstate(over="ignore"):
        return q * math.exp(epsilon) if epsilon < 700 else np.exp(epsilon + np.log(q))
