"""Exact mean and variance of swapped cells, for expected errors before a release and for estimates after it.

The Permutation Swapping Algorithm gives every permutation of a stratum a probability that depends only on how
many records it moves (Appendix B.3). So a handful of constants per stratum size n and swap rate p settles the
first two moments of every cell. With public margins n_h and n_s, true cell x, a = n_h/n, b = n_s/n and
delta = x - n_h n_s/n, the released cell z has

    E z   = n_h n_s/n + shrinkage * delta,      shrinkage = 1 - q n/(n-1)
    Var z = (a4 + n a3) n a(1-a) b(1-b) + a4 (1-2a)(1-2b) delta + (a1 + a2) delta^2.

These are moments of the law, free of approximation, and depend on the confidential x: what ``cell_moments``
returns for true counts is confidential. Strata of one record or none are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._lazy import later
from stirred._shown import withheld
from stirred.swap.guarantee import derangements, log_complement, require_rate

special = later("scipy.special")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEW = 30
"""Beyond so many moved records, d(k-2)/d(k) is 1/(k(k-1)) to all digits of a float."""


@dataclass(frozen=True)
class StratumConstants:
    """What the moments of a stratum of ``size`` records need to know of the law of its permutation sigma."""

    size: int
    moved: float
    """q = P(sigma(i) != i)"""
    both_moved: float
    """S2 = P(i and j both moved)"""
    exchanged: float
    """T = P(sigma(i) = j and sigma(j) = i)"""
    shrinkage: float
    """lambda = 1 - q n/(n-1), by which every association of held with swapped variables shrinks"""
    a1: float
    """weight of [uv][u'v'] in Cov(sum u_i v_sigma(i), sum u'_i v'_sigma(i)), scores centred in the stratum"""
    a2: float
    """weight of [uv'][u'v]"""
    a3: float
    """weight of [uu'][vv']"""
    a4: float
    """weight of [uvu'v']"""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class ConstantsTable:
    """``StratumConstants`` for many sizes at one rate, an array for each; sizes increasing and distinct."""

    rate: Fraction
    size: Integers
    moved: Floats
    both_moved: Floats
    exchanged: Floats
    shrinkage: Floats
    a1: Floats
    a2: Floats
    a3: Floats
    a4: Floats

    def rows(self, size: ArrayLike) -> NDArray[np.intp]:
        """Where each of these stratum sizes stands in the table."""
        wanted = np.asarray(size, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.size, wanted), len(self.size) - 1)
        if wanted.size and (len(self.size) == 0 or np.any(self.size[found] != wanted)):
            raise ValueError("a stratum has a size for which no constants were computed")
        return found


def stratum_constants(sizes: ArrayLike, rate: Fraction) -> ConstantsTable:
    """The constants for every distinct size among ``sizes``, in one sweep.

    The cost is some thirty vector operations whatever the sizes, so a million strata take as long as their
    distinct sizes do.

    >>> table = stratum_constants([2, 100, 100], Fraction("0.05"))
    >>> table.size, table.shrinkage.round(4)
    (array([  2, 100]), array([0.9945, 0.9482]))
    """
    require_rate(rate)
    size = np.unique(np.asarray(sizes, dtype=np.int64))
    if size.size and size[0] < 0:
        raise ValueError("a stratum cannot have fewer than 0 records")
    touched = size >= 2
    # Untouched strata are computed as if of two records, then overwritten: no division by zero on the way.
    n = np.where(touched, size, 2).astype(np.float64)
    p, unselected = float(rate), float(1 - rate)

    others_stay = _power(rate, n - 1)
    kept = 1 - n * p * others_stay  # D: the probability that not exactly one is selected; never below 1/2
    q = p * _one_minus_power(rate, n - 1) / kept
    both = p**2 / kept
    one = p * unselected * _one_minus_power(rate, n - 2) / kept  # B: i fixed, j moved
    exchanged = _mean_exchanges(rate, n) / (n * (n - 1) * kept)
    chained = q / (n - 1) - exchanged  # C: sigma(i) = j but sigma(j) != i

    # Shares of one further record, or of two: zero by convention where there is none.
    further = np.where(n > 2, 1 / np.maximum(n - 2, 1), 0.0)
    two_further = np.where(n > 3, further / np.maximum(n - 3, 1), 0.0)
    apart = (both - exchanged - 2 * chained) * two_further  # P: both moved, neither to the other's place

    # S2 - q^2, and a1 = A - 2B/(n-2) + P - lambda^2, with what cancels for large n already taken out.
    excess = p**2 * others_stay * (2 - n * p - others_stay) / kept**2
    a1 = 2 * q / (n - 1) + excess - q**2 * (2 * n - 1) / (n - 1) ** 2 - 2 * one * further + apart
    a2 = exchanged - 2 * chained * further + apart
    a3 = q / (n - 1) + apart
    a4 = one - q / (n - 1) + 4 * one * further - exchanged + 4 * chained * further - 6 * apart

    def where_touched(constant: Floats, otherwise: float = 0.0) -> Floats:
        return np.where(touched, constant, otherwise)

    return ConstantsTable(
        rate=rate,
        size=size,
        moved=where_touched(q),
        both_moved=where_touched(both),
        exchanged=where_touched(exchanged),
        shrinkage=where_touched(1 - q * n / (n - 1), otherwise=1.0),
        a1=where_touched(a1),
        a2=where_touched(a2),
        a3=where_touched(a3),
        a4=where_touched(a4),
    )


@lru_cache(maxsize=65_536)
def constants_of(size: int, rate: Fraction) -> StratumConstants:
    """The constants of one stratum size, remembered between calls.

    >>> five = constants_of(5, Fraction(1, 2))
    >>> round(five.moved, 6), round(five.shrinkage, 6)
    (0.555556, 0.305556)
    """
    table = stratum_constants([size], rate)
    values = {field.name: float(getattr(table, field.name)[0]) for field in fields(StratumConstants)[1:]}
    return StratumConstants(size=size, **values)


def cell_moments(
    constants: ConstantsTable,
    size: ArrayLike,
    held_total: ArrayLike,
    swapped_total: ArrayLike,
    count: ArrayLike,
) -> tuple[Floats, Floats]:
    """Mean and variance of released cells, from the stratum size n, margins n_h and n_s, and true count x.

    Arguments broadcast against each other. Cells of one stratum are correlated: to sum cells, merge their
    categories first; cells of different strata are independent, and their means and variances add.

    >>> table = stratum_constants([100], Fraction("0.05"))
    >>> mean, variance = cell_moments(table, 100, 30, 20, [6, 10])
    >>> mean.round(3), variance.round(3)
    (array([6.   , 9.793]), array([0.342, 0.391]))
    """
    rows = constants.rows(size)
    n = np.maximum(np.asarray(size, dtype=np.int64), 1)
    held, swapped, x = (np.asarray(part, dtype=np.int64) for part in (held_total, swapped_total, count))
    # Differences are taken between integers, exactly, up to strata of three thousand million records.
    delta = (x * n - held * swapped) / n
    spread = (held * (n - held) / n) * (swapped * (n - swapped) / n) / n  # n a(1-a) b(1-b)
    tilt = ((n - 2 * held) / n) * ((n - 2 * swapped) / n)  # (1-2a)(1-2b)

    # The true count less what is lost: empty cells keep their digits, determined cells their count.
    mean = x - constants.moved[rows] * delta * (n / np.maximum(n - 1, 1))
    a4 = constants.a4[rows]
    variance = (
        (a4 + n * constants.a3[rows]) * spread
        + a4 * tilt * delta
        + (constants.a1[rows] + constants.a2[rows]) * delta**2
    )
    # Cells that never change have variance 0, which rounding may miss from below.
    variance = np.maximum(variance, 0.0)
    return mean, variance


def score_covariance(
    constants: ConstantsTable,
    size: ArrayLike,
    *,
    uvuv: ArrayLike,
    u1v1: ArrayLike,
    u2v2: ArrayLike,
    u1v2: ArrayLike,
    u2v1: ArrayLike,
    uu: ArrayLike,
    vv: ArrayLike,
) -> Floats:
    """Covariance of two released sums W1 = sum u1_i v1_sigma(i) and W2 = sum u2_i v2_sigma(i) within one stratum.

    ``u`` are scores of held values and linked rows, ``v`` of swap values, all **centred in the stratum**: their sum
    over its records is 0. Arguments are sums over the stratum's true records: ``uvuv`` of u1 v1 u2 v2, ``u1v2`` of
    u1 v2 and so on, ``uu`` of u1 u2, ``vv`` of v1 v2. They broadcast against each other. The mean of W1 is
    ``shrinkage`` times ``u1v1``; sums over different strata are independent.

    >>> table = stratum_constants([4], Fraction("0.1"))  # two records of each kind, all four where they agree
    >>> float(score_covariance(table, 4, uvuv=0.25, u1v1=1, u2v2=1, u1v2=1, u2v1=1, uu=1, vv=1).round(10))
    0.0485307321
    """
    rows = constants.rows(size)
    parts = (uvuv, u1v1, u2v2, u1v2, u2v1, uu, vv)
    four, own1, own2, cross12, cross21, held, swapped = (np.asarray(part, dtype=np.float64) for part in parts)
    found: Floats = (
        constants.a4[rows] * four
        + constants.a1[rows] * own1 * own2
        + constants.a2[rows] * cross12 * cross21
        + constants.a3[rows] * held * swapped
    )
    return found


def expected_absolute_error(mean_error: ArrayLike, variance: ArrayLike) -> Floats:
    """The mean of |N(mean_error, variance)|: how far a released count is off on average, if it were normal.

    The normal law is an approximation, and a poor one for cells that seldom change (variance far below 1).

    >>> expected_absolute_error([0.0, -3.0], [1.0, 0.0]).round(4)
    array([0.7979, 3.    ])
    """
    mean, spread = np.broadcast_arrays(np.abs(np.asarray(mean_error, dtype=np.float64)), np.sqrt(variance))
    # Forty standard deviations are as good as infinitely many: without spread, the mean itself remains.
    standard = np.divide(mean, spread, out=np.full(mean.shape, 40.0), where=spread * 40 > mean)
    density = np.sqrt(2 / np.pi) * np.exp(-(standard**2) / 2)
    folded: Floats = spread * density + mean * special.erf(standard / np.sqrt(2))
    return folded


# -- powers and the sum over moved records -------------------------------------------------------------------


def _log_unselected(rate: Fraction) -> float:
    # At rate 1 any number will do whose exponential is 0; minus infinity would turn (1-p)^0 into nan.
    return log_complement(rate) if rate < 1 else -1e6


def _power(rate: Fraction, exponent: Floats) -> Floats:
    """(1-p)^m, without rounding 1-p first."""
    power: Floats = np.exp(exponent * _log_unselected(rate))
    return power


def _one_minus_power(rate: Fraction, exponent: Floats) -> Floats:
    """1 - (1-p)^m, which for tiny p is about mp and would drown in the subtraction."""
    complement: Floats = -np.expm1(exponent * _log_unselected(rate))
    return complement


def _mean_exchanges(rate: Fraction, n: Floats) -> Floats:
    """E[K(K-1) d(K-2)/d(K); K >= 2] for K ~ Binomial(n, p): twice the mean number of 2-cycles, before D.

    Every term is positive. From K = 30 on the factor is 1, so the rest of the sum is a binomial tail.
    """
    p = float(rate)
    total = np.where(n > _FEW, special.betainc(_FEW + 1, np.maximum(n - _FEW, 1.0), p), 0.0)
    subsets = np.ones_like(n)  # C(n,k) p^k
    for k in range(1, _FEW + 1):
        subsets = subsets * np.maximum(n - k + 1, 0.0) * p / k
        if k >= 2:
            factor = float(Fraction(k * (k - 1) * derangements(k - 2), derangements(k)))
            total = total + factor * subsets * _power(rate, np.maximum(n - k, 0.0))
    return total
