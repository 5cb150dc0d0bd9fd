"""Computes the exact mean and variance of swapped cells, for errors before a release and estimates after it.

The Permutation Swapping Algorithm gives every permutation of a stratum a probability that depends only on how many
records it moves (Appendix B.3). So a handful of constants per stratum size n and swap rate p settles the first two
moments of every cell. With public margins n_h and n_s, true cell x, a = n_h/n, b = n_s/n and delta = x - n_h n_s/n, the
released cell z has

    E z   = n_h n_s/n + shrinkage * delta,      shrinkage = 1 - q n/(n-1)
    Var z = (a4 + n a3) n a(1-a) b(1-b) + a4 (1-2a)(1-2b) delta + (a1 + a2) delta^2.

These are moments of the law, free of approximation, and depend on the confidential x: what ``cell_moments`` returns for
true counts is confidential. Strata of one record or none are never touched.

*How likely a cell is empty after a swap*, before anything is drawn. Of a stratum of n records, n_h in the row of a
cell, n_s in its column and x in both, follow the smaller of the two sides, say the n_s swap values. One that does not
lie in the cell enters it with probability q n_h/(n - 1). One that lies in it leaves it by an exchange with any of the n
- n_h - n_s + x records outside row and column (T for each), or as part of a longer cycle to any of the n - n_h outside
the row (q/(n - 1) - T for each). Each of these is exact for one value alone. Taking values for independent of each
other,

    P(empty) ~ leave^x (1 - enter)^(n_s - x),

and 0 where n_h + n_s > n: the *approximation by independent moves*. It is exact where the smaller side has one record.
Over all tables with up to seven records it is off by at most 0.001 at rates up to 5%, 0.007 at 10% and 0.14 at 50%;
strata are independent of each other, so their logarithms add.

*How records of different rates move*, by classes of equal rates. One stratum has n_c records of rate p_c. With the
others' selection independent and D = P(not exactly one selected),

    D   = 1 - sum_i p_i prod_{j != i} (1 - p_j),
    q_i = P(i moves) = p_i (1 - prod_{j != i} (1 - p_j)) / D,
    P(i receives from j) = p_i p_j E[1/(1 + K)] / D,      K the number selected among the others than i and j,

since a uniform derangement of k records sends each of them to a uniformly random other one. E[1/(1 + K)] is the
integral from 0 to 1 of the generating function prod (1 - p_l + p_l t), here by Gauss-Legendre nodes; with x = 1 - t the
integrand lies below exp(-x sum p_l), so beyond 40/sum p_l nothing is left to a float.

*Cells of strata whose records have different rates.* A released cell z is the number of records that are in h and
receive a value in s. Over the stratum let G(t) = prod (1 - p_l + p_l t), and let f_i = p_i / (1 - p_i + p_i t) and u_i
= (1 - p_i) / (1 - p_i + p_i t). The probability that given records move in a given pattern, and given others stay, is a
product of their f and u times G, summed over the number k of all that are selected with the share of derangements of k
that have the pattern, over D = P(not exactly one selected):

    i to j                     1/(k-1)
    i to j and j to i          1/(k(k-1)) + r_k                                   r_k = (-1)^k / (k d(k))
    i to j to l                1/(k(k-2)) - r_k/(k-2)
    i to l, j to m             1/(k(k-3)) - 1/(k(k-1)(k-2)(k-3)) + r_k/((k-2)(k-3))

Each rational term is an integral of t^K over weights (1/(K+1) = int t^K, K those selected beside the pattern), so it is
taken at Gauss-Legendre nodes; r_k vanishes faster than exponentially, so its terms need the first coefficients of a
polynomial, taken on a circle. Sums over *different* records are sums over all less those where records coincide, and
need only how many records of each rate are in h, in s and in both. No simulation: the variance of a count of hundreds
of thousands keeps eight digits, of smaller ones more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._display import confidential
from stirred._lazy import later
from stirred.loss.curves.swap_laws import derangements
from stirred.swap.data.counting import RatesByStratum
from stirred.swap.law.theorem import log_complement, require_rate

special = later("scipy.special")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEW = 30
"""Beyond so many moved records, d(k-2)/d(k) is 1/(k(k-1)) to all digits of a float."""


WEAKEST = 0.1
"""An association that shrinks to less than this part of itself is not undone: its error would be ten times as large."""


@confidential
class LawConstants:
    """What the moments of strata of these sizes need to know of the law of their permutations sigma."""

    size: Integers
    moved: Floats
    """q = P(sigma(i) != i)"""
    exchanged: Floats
    """T = P(sigma(i) = j and sigma(j) = i)"""
    shrinkage: Floats
    """lambda = 1 - q n/(n-1), by which every association of held with swapped variables shrinks"""
    a1: Floats
    """weight of [uv][u'v'] in Cov(sum u_i v_sigma(i), sum u'_i v'_sigma(i)), scores centred in the stratum"""
    a2: Floats
    """weight of [uv'][u'v]"""
    a3: Floats
    """weight of [uu'][vv']"""
    a4: Floats
    """weight of [uvu'v']"""

    @classmethod
    def of(cls, size: Integers, rate: Fraction) -> LawConstants:
        """Of strata whose records all have one rate."""
        constants = stratum_constants(size, rate)
        return constants.among(constants.rows(size))

    @classmethod
    def by_rate(cls, size: Integers, among: dict[Fraction, NDArray[np.bool_]]) -> LawConstants:
        """Of strata that each have one rate; ``among`` tells which have which. All constants of others are 0."""
        found = np.zeros((len(fields(cls)) - 1, len(size)))
        for rate, here in among.items():
            if here.any():
                own = cls.of(size[here], rate)
                found[:, here] = [getattr(own, one.name) for one in fields(cls)[1:]]
        return cls(size, *found)

    def among(self, which: NDArray[np.integer] | int) -> LawConstants:
        """Those of some entries, in this order."""
        return LawConstants(*(getattr(self, one.name)[which] for one in fields(self)))

    def rows(self, size: ArrayLike) -> NDArray[np.intp]:
        """Where each of these stratum sizes stands among sizes that are increasing and distinct."""
        wanted = np.asarray(size, dtype=np.int64)
        found = np.minimum(np.searchsorted(self.size, wanted), len(self.size) - 1)
        if wanted.size and (len(self.size) == 0 or np.any(self.size[found] != wanted)):
            raise ValueError("a stratum has a size for which no constants were computed")
        return found

    @property
    def invertible(self) -> NDArray[np.bool_]:
        """Whether an association of held with swap values can be undone."""
        return np.abs(self.shrinkage) > WEAKEST + 1e-9


def stratum_constants(sizes: ArrayLike, rate: Fraction) -> LawConstants:
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

    shrinkage = np.where(touched, 1 - q * n / (n - 1), 1.0)
    q, exchanged, a1, a2, a3, a4 = (np.where(touched, one, 0.0) for one in (q, exchanged, a1, a2, a3, a4))
    return LawConstants(size, q, exchanged, shrinkage, a1, a2, a3, a4)


def moved_by_size(sizes: Integers, rate: Fraction) -> Floats:
    """q of a record in each of these strata, whose records all have one rate."""
    constants = stratum_constants(sizes, rate)
    return constants.moved[constants.rows(sizes)]


@lru_cache(maxsize=65_536)
def constants_of(size: int, rate: Fraction) -> LawConstants:
    """The constants of one stratum size, each a number, remembered between calls.

    >>> five = constants_of(5, Fraction(1, 2))
    >>> round(float(five.moved), 6), round(float(five.shrinkage), 6)
    (0.555556, 0.305556)
    """
    return stratum_constants([size], rate).among(0)


def cell_moments(
    constants: LawConstants,
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
    constants: LawConstants,
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


def log_chance_of_empty(
    constants: LawConstants,
    size: ArrayLike,
    held_total: ArrayLike,
    swapped_total: ArrayLike,
    count: ArrayLike,
) -> Floats:
    """The logarithm of the probability that cells of strata are empty after a swap, moves taken for independent.

    >>> table = stratum_constants([100], Fraction("0.05"))
    >>> np.exp(log_chance_of_empty(table, 100, [1, 30], [20, 20], [1, 0])).round(6)
    array([0.041444, 0.731054])
    """
    rows = constants.rows(size)
    moved, exchanged = constants.moved[rows], constants.exchanged[rows]
    n, held, swapped, x = (np.asarray(part, dtype=np.float64) for part in (size, held_total, swapped_total, count))
    smaller, larger = np.minimum(held, swapped), np.maximum(held, swapped)
    others = np.maximum(n - 1, 1)
    enter = np.minimum(moved * larger / others, 1.0)
    leave = exchanged * (n - held - swapped + x) + (moved / others - exchanged) * (n - larger)
    leave = np.clip(leave, 0.0, 1.0)  # rounding may miss 0 from below
    logs: Floats = special.xlogy(x, leave) + special.xlog1py(smaller - x, -enter)
    return np.where(held + swapped > n, -np.inf, logs)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
"""Of Gauss and Legendre, on [-1, 1]."""
_REACH = 40.0
_AT_ONCE = 1 << 14
"""Strata whose integrals are computed together."""


def moved_probabilities(rates: RatesByStratum) -> Floats:
    """q of a record of each rule in each stratum; 0 where the stratum has no such record, or no other."""
    log_stays = np.array([log_complement(p) for p in rates.rates])
    none = rates.counts @ log_stays
    found = -rate_floats(rates) * np.expm1(none[:, None] - log_stays) / kept_shares(rates)[:, None]
    return np.where(rates.counts > 0, found, 0.0)


def received_probabilities(rates: RatesByStratum) -> Floats:
    """P(a record of rule c receives from a given other record of rule d), by stratum: ``[stratum, c, d]``."""
    chance = rate_floats(rates)
    distinct, which = _distinct(rates)
    found = np.empty((len(distinct.counts), len(chance), len(chance)))
    for start in range(0, len(found), _AT_ONCE):
        part = RatesByStratum(rates.rates, distinct.counts[start : start + _AT_ONCE])
        width = reach(part)
        x = width[:, None] * (NODES + 1) / 2  # [stratum, node]
        logs = np.log1p(-chance * x[:, :, None])  # [stratum, node, rule]
        weight = WEIGHTS * width[:, None] / 2 * np.exp(np.einsum("sc,sxc->sx", part.counts, logs))
        share = chance * np.exp(-logs)  # p / (1 - p x): the factor of a record that is taken out
        found[start : start + _AT_ONCE] = np.matmul((weight[:, :, None] * share).transpose(0, 2, 1), share)
    return np.asarray((found / kept_shares(distinct)[:, None, None])[which])


def rate_floats(rates: RatesByStratum) -> Floats:
    """The rates of the rules as floats."""
    return np.array([float(p) for p in rates.rates])


def reach(rates: RatesByStratum) -> Floats:
    """How far from t = 1 the generating function of each stratum is more than nothing to a float."""
    return np.minimum(1.0, _REACH / np.maximum(rates.counts @ rate_floats(rates), 1e-300))


def kept_shares(rates: RatesByStratum) -> Floats:
    """By stratum the probability that a selection is kept, not being of exactly one record: D of the law."""
    odds = np.array([float(p / (1 - p)) for p in rates.rates])
    log_stays = np.array([log_complement(p) for p in rates.rates])
    # Plans whose D may fall below 1/1000 are refused, so the difference keeps its digits.
    return np.asarray(1 - np.exp(rates.counts @ log_stays) * (rates.counts @ odds))


def _distinct(rates: RatesByStratum) -> tuple[RatesByStratum, NDArray[np.intp]]:
    """Strata that differ in their counts, and which of them each stratum is: there are few, even of a million."""
    found, which = np.unique(rates.counts, axis=0, return_inverse=True)
    return RatesByStratum(rates.rates, found), which.reshape(-1)


Numbers = NDArray[Any]

_STRATA_AT_ONCE = 1 << 12
"""Cells that are computed together."""
_ON_CIRCLE, _RADIUS, _COEFFICIENTS = 64, 0.5, 24


def _remainders() -> tuple[Floats, Floats, Floats]:
    """r_k as it enters exchanges, chains and moves apart, for K = 0, 1, ... selected beside the pattern."""
    r = {k: (-1) ** k / (k * derangements(k)) for k in range(2, _COEFFICIENTS + 5)}
    many = range(_COEFFICIENTS)
    return (
        np.array([r[K + 2] for K in many]),
        np.array([-r[K + 3] / (K + 1) for K in many]),
        np.array([r[K + 4] / ((K + 2) * (K + 1)) for K in many]),
    )


_CIRCLE = _RADIUS * np.exp(2j * np.pi * np.arange(_ON_CIRCLE) / _ON_CIRCLE)
_EXTRACT = (_CIRCLE[:, None] ** -np.arange(_COEFFICIENTS)) / _ON_CIRCLE
_AT_CIRCLE = [(_EXTRACT @ remainder) for remainder in _remainders()]
"""Weights on the circle that add up r_k times the coefficients of t^K, for the three patterns."""


@dataclass(frozen=True)
class _Sums:
    """Sums over different records at each node: ``[cell, node]``."""

    stays_and_receives: Numbers
    receives: Numbers
    exchange: Numbers
    chain: Numbers
    apart: Numbers


def unequal_cell_moments(
    strata: RatesByStratum,
    stratum: NDArray[np.int64],
    held: NDArray[np.int64],
    swapped: NDArray[np.int64],
    both: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """Mean and variance of cells: the stratum of each, and its records in h, in s and in both, by rule."""
    mean, variance = np.empty(len(stratum)), np.empty(len(stratum))
    moved, kept = moved_probabilities(strata), kept_shares(strata)
    for start in range(0, len(stratum), _STRATA_AT_ONCE):
        part = slice(start, start + _STRATA_AT_ONCE)
        where = stratum[part]
        mean[part], variance[part] = _moments(
            RatesByStratum(strata.rates, strata.counts[where]),
            moved[where],
            kept[where],
            held[part].astype(np.float64),
            swapped[part].astype(np.float64),
            both[part].astype(np.float64),
        )
    return mean, variance


def _moments(
    cells: RatesByStratum, moved: Floats, kept: Floats, held: Floats, swapped: Floats, both: Floats
) -> tuple[Floats, Floats]:
    chance = rate_floats(cells)
    counts = cells.counts.astype(np.float64)
    width = reach(cells)
    t = 1 - width[:, None] * (NODES + 1) / 2
    weight = _generating(chance, counts, t) * WEIGHTS * width[:, None] / 2
    sums = _sums(chance, t, held, swapped, both)
    received = (weight * sums.receives).sum(axis=1) / kept
    pairs = weight * (
        2 * sums.stays_and_receives
        + sums.exchange * (1 - t)
        + sums.chain * (1 - t**2) / 2
        + sums.apart * ((1 - t**3) / 3 - (1 - t) ** 3 / 6)
    )
    circle = np.broadcast_to(_CIRCLE, (len(counts), _ON_CIRCLE))
    small = _sums(chance, circle, held, swapped, both)
    rest = _generating(chance, counts, circle) * (
        small.exchange * _AT_CIRCLE[0] + small.chain * _AT_CIRCLE[1] + small.apart * _AT_CIRCLE[2]
    )
    both_stay = _both_stay(chance, counts, both)
    mean = (both * (1 - moved)).sum(axis=1) + received
    second = (pairs.sum(axis=1) + rest.sum(axis=1).real + both_stay) / kept + mean
    return mean, np.maximum(second - mean**2, 0.0)


def _both_stay(chance: Floats, counts: Floats, both: Floats) -> Floats:
    """The sum over two different records of the cell of D P(both stay): what else is selected is not exactly one."""
    odds, stays, many = chance / (1 - chance), both @ (1 - chance), both.sum(axis=1)
    none = np.exp(counts @ np.log1p(-chance))
    alone = many * (many - 1) * (counts @ odds) - 2 * (many - 1) * (both @ odds)
    return np.asarray(stays**2 - both @ (1 - chance) ** 2 - none * alone)


def _generating(chance: Floats, counts: Floats, t: Numbers) -> Numbers:
    return np.asarray(np.exp(sum(counts[:, c, None] * np.log1p(p * (t - 1)) for c, p in enumerate(chance))))


def _sums(chance: Floats, t: Numbers, held: Floats, swapped: Floats, both: Floats) -> _Sums:
    factors = [p / (1 - p + p * t) for p in chance]
    stays = [(1 - p) / (1 - p + p * t) for p in chance]

    def total(many: Floats, power: int, stay: int = 0) -> Numbers:
        return np.asarray(sum(many[:, c, None] * f**power * stays[c] ** stay for c, f in enumerate(factors)))

    h1, h2, s1, s2 = total(held, 1), total(held, 2), total(swapped, 1), total(swapped, 2)
    x1, x2, x3, x4 = (total(both, power) for power in (1, 2, 3, 4))
    u0, u1, u2 = (total(both, power, 1) for power in (0, 1, 2))
    return _Sums(
        stays_and_receives=u0 * h1 * s1 - u1 * (s1 + h1) - u0 * x2 + 2 * u2,
        receives=h1 * s1 - x2,
        exchange=x1**2 - x2,
        chain=2 * (h1 * x1 * s1 - x2 * (s1 + h1 + x1) + 2 * x3),
        apart=(s1**2 - s2) * (h1**2 - h2) - 4 * s1 * (x2 * h1 - x3) + 4 * (x3 * h1 - x4) + 2 * (x2**2 - x4),
    )
