"""P-values that are never too small: exact bounds where there are some, and safe approximations elsewhere.

A p-value bounds the probability that a program which keeps its promise shows so much or more. Bernstein's and
Chernoff's inequalities hold for every number of draws; the others say what they rest on.

*Of draws from a stated law.* Power is never too large. There are three sorts. Counts are binomial, exactly. Sums over
independent draws are bounded by Chernoff: P(S >= s) is at most E exp(t S) exp(-t s) for every t > 0. Counts in k
cells are bounded in relative entropy D: P(n D >= x) is at most exp(-x) (e x / (k - 1))^(k - 1) for x > k - 1 (Agrawal
2020, Finite-sample concentration of the multinomial in relative entropy), for any number of draws and any
probabilities, so no cell is too small. A chi-square table is a little sharper, and with p-values as small as those of
an audit it is not true.

*Of a segment of draws that occurs twice*, which a seed that is used again leaves behind. Of independent draws two
segments of length L that do not overlap are equal with probability c^L, c the probability that two draws are equal.
Two that overlap, d < L apart, make L + d draws equal in d classes of two or more, which has a probability of at most
c^((L + d) / 2). Summed over all pairs of n draws this is below n^2 c^L / 2 + n c^((L + 1) / 2) / (1 - sqrt c):
:func:`telling_length` gives the L that makes it small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._lazy import later
from stirred.lab.audit.laws import Family, log_normaliser, mean_and_variance_selected, mean_statistic

stats = later("scipy.stats")
optimize = later("scipy.optimize")
special = later("scipy.special")

Array = NDArray[np.float64]

FEWEST_EXPECTED = 100.0
"""Cells of a chi-square test expect at least so many."""
FEWEST_GROUPS = 30
"""Of fewer independent sums nothing is said."""


def smallest_of(p_values: Sequence[float]) -> float:
    """The smallest p-value, times their number: of looking in several ways."""
    return min(1.0, min(p_values) * len(p_values))


def of_bounded_sum(deviation: float, variance: float, largest: float = 1.0) -> float:
    """Of a sum of independent terms that differ from their means by at most ``largest`` (Bernstein), both sides."""
    if variance <= 0:
        return 0.0 if deviation else 1.0
    return min(1.0, 2 * math.exp(-(deviation**2) / (2 * (variance + largest * abs(deviation) / 3))))


def of_rare_coincidences(seen: int, expected: float) -> float:
    """Of the number of independent events that happen, above its mean (Chernoff)."""
    if seen <= expected:
        return 1.0
    if expected == 0:
        return 0.0
    return math.exp(seen - expected - seen * math.log(seen / expected))


def of_number_selected(total: int, sizes: NDArray[np.int64], times: NDArray[np.int64], rate: float) -> float:
    """Of the number of records that moved in all, strata of ``sizes[i]`` being drawn ``times[i]`` times (Chernoff).

    The moments of K are those of a binomial that is not 1: E exp(tK) = [(1-p+pe^t)^n - npe^t(1-p)^(n-1)]/D.
    """
    several = sizes > 1
    size, weight = sizes[several].astype(np.float64), times[several].astype(np.float64)
    mean, variance = mean_and_variance_selected(sizes[several], rate)
    expected = float(np.sum(weight * mean))
    if total == expected or not len(size):
        return 1.0

    def log_moment(t: float) -> Array:
        all_selected = size * math.log1p(rate * math.expm1(t))
        lone = np.log(size * rate) + t + (size - 1) * math.log1p(-rate)
        return np.asarray(all_selected + np.log1p(-np.exp(lone - all_selected)))

    at_zero = log_moment(0.0)
    scale = abs(total - expected) / float(np.sum(weight * variance))
    sign = 1.0 if total > expected else -1.0
    best = optimize.minimize_scalar(
        lambda s: float(np.sum(weight * (log_moment(sign * s) - at_zero))) - sign * s * total,
        bounds=(0.0, min(4 * scale, 50.0)),
        method="bounded",
        options={"xatol": 1e-9 * min(scale, 1.0)},
    )
    return min(1.0, 2 * math.exp(min(0.0, float(best.fun))))


def of_counts(tables: Sequence[tuple[ArrayLike, ArrayLike]]) -> tuple[float, int]:
    """Of several tables of counts beside what they expect (chi-square), and the degrees of freedom.

    Neighbouring cells are put together until each expects :data:`FEWEST_EXPECTED` or more. A table of which one cell
    is left says nothing. The p-value is raised by what the skewness of counts can do to it (:func:`skewed`).
    """
    statistic, degrees = 0.0, 0
    for observed, expected in tables:
        found, wanted = np.asarray(observed, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        if np.any(found[wanted == 0] > 0):
            return 0.0, 1
        starts = cells(wanted)
        if len(starts) > 1:
            found, wanted = np.add.reduceat(found, starts), np.add.reduceat(wanted, starts)
            statistic += float(np.sum((found - wanted) ** 2 / wanted))
            degrees += len(starts) - 1
    if degrees == 0:
        return 1.0, 0
    return skewed(float(stats.chi2.sf(statistic, degrees)), FEWEST_EXPECTED), degrees


def skewed(p_value: float, events: float) -> float:
    """A p-value of normal numbers, raised for counts of so many events.

    z standard deviations above its mean E, a count is as likely as exp(-z^2 / (2 (1 + z / (3 sqrt(E))))), where a
    normal number is as likely as exp(-z^2 / 2).
    """
    if p_value <= 0:
        return 0.0
    z = max(0.0, float(stats.norm.isf(p_value)))
    likelier = z**2 / 2 - z**2 / (2 * (1 + z / (3 * math.sqrt(events))))
    return min(1.0, math.exp(math.log(p_value) + likelier))


def of_independent_sums(sums: Array) -> float:
    """Of independent sums with mean 0, both sides: Student's t with as many degrees as there are sums that count.

    Where some sums are much larger than others, they alone count (:func:`sums_that_count`). With fewer than
    :data:`FEWEST_GROUPS` nothing is said.
    """
    effective = sums_that_count(sums)
    if effective < FEWEST_GROUPS:
        return 1.0
    return 2 * float(stats.t.sf(abs(float(np.sum(sums))) / math.sqrt(float(np.sum(sums**2))), effective - 1))


def sums_that_count(sums: Array) -> float:
    """How many of them count in :func:`of_independent_sums`: (sum S^2)^2 / sum S^4."""
    squares = float(np.sum(sums**2))
    return squares**2 / float(np.sum(sums**4)) if squares else 0.0


def cells(expected: Array) -> list[int]:
    """Where cells begin, once neighbours are put together until each expects enough."""
    starts, inside = [0], 0.0
    for i, one in enumerate(expected):
        if inside >= FEWEST_EXPECTED:
            starts.append(i)
            inside = 0.0
        inside += one
    if inside < FEWEST_EXPECTED and len(starts) > 1:
        starts.pop()
    return starts


POWER = 0.999
"""The power from which on an effect counts as one that would have been caught."""


def least_enough(enough: Callable[[float], bool], most: float) -> float:
    """The number nearest to 0, on the way from there to ``most``, that is enough; by halving, and rounded away from 0.

    >>> round(least_enough(lambda x: x * x >= 2, 5.0), 6)
    1.414214
    """
    low, high = 0.0, most
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


_WIDEST = 45.0
"""Scales are searched for between exp(-45) and exp(45) times the stated one."""
_STEPS = 40


# -- counts --------------------------------------------------------------------------------------------------


def count_p_value(found: int, of: int, chance: float) -> float:
    """Of a number of successes in independent trials, to both sides: twice the smaller tail, exactly."""
    if of == 0:
        return 1.0
    return min(1.0, 2 * min(_at_most(found, of, chance), many_p_value(found, of, chance)))


def many_p_value(found: int, of: int, chance: float) -> float:
    """The probability of at least so many successes."""
    return 1.0 if found <= 0 else float(special.bdtrc(found - 1, of, chance))


def count_power(of: int, chance: float, truly: float, allotted: float) -> float:
    """The probability that :func:`count_p_value` is below ``allotted`` where the true chance is another one."""
    low, high = (int(end(allotted / 2, of, chance)) for end in (stats.binom.ppf, stats.binom.isf))
    while low >= 0 and 2 * _at_most(low, of, chance) >= allotted:
        low -= 1
    while high <= of and 2 * many_p_value(high, of, chance) >= allotted:
        high += 1
    return (_at_most(low, of, truly) if low >= 0 else 0.0) + (many_p_value(high, of, truly) if high <= of else 0.0)


def _at_most(found: int, of: int, chance: float) -> float:
    return float(special.bdtr(found, of, chance))


# -- cells ---------------------------------------------------------------------------------------------------


def fit_p_value(observed: NDArray[np.integer], chances: Array) -> float:
    """Of counts in cells against the probabilities that they should have; a bound, for any number of draws."""
    kept = chances > 0
    if np.any(observed[~kept]):
        return 0.0
    found, total = observed[kept], int(observed.sum())
    expected = total * chances[kept] / chances[kept].sum()
    some = found > 0
    return math.exp(_log_fit(float(np.sum(found[some] * np.log(found[some] / expected[some]))), int(kept.sum())))


def _log_fit(entropy: float, cells: int) -> float:
    """The logarithm of the bound, at n times the relative entropy."""
    free = cells - 1
    if entropy <= free or free == 0:
        return 0.0
    return -entropy + free * (1 + math.log(entropy / free))


# -- scales --------------------------------------------------------------------------------------------------


def log_spread(family: Family, betas: Array, counts: Array, sums: Array) -> tuple[Array, Array, Array]:
    """Logarithms of bounds on how probable so small and so large sums of T are, by row, and the factor that fits best.

    A row has one or more groups of draws, each with its rate, its number of draws and the sum of T over them. Within
    a row all rates are tilted by one factor: above 1 if there is less noise than stated, below 1 if there is more.
    """
    factor = _best_factor(family, betas, counts, sums)[:, None]
    bound = np.minimum(0.0, _log_chernoff(family, betas, factor, counts, sums))
    smaller = factor[:, 0] >= 1
    return np.where(smaller, bound, 0.0), np.where(smaller, 0.0, bound), factor[:, 0]


def unequal_p_values(family: Family, betas: Array, counts: Array, sums: Array) -> Array:
    """By row, p-values for the two columns having the same rate, whatever it is: bounds, by the likelihood ratio.

    For draws of one rate, n times the relative entropy between the law that fits best and the true one is at least x
    with probability at most 2 exp(-x). The ratio compares both columns with the rate that fits them together, which is
    no further from them than the true one; so it is at most two exponential variables plus 2 log 2.
    """
    together = _best_factor(family, betas, counts, sums)[:, None]
    each = _best_factor(family, betas.reshape(-1, 1), counts.reshape(-1, 1), sums.reshape(-1, 1)).reshape(betas.shape)
    ratio = -_log_chernoff(family, betas * together, each / together, counts, sums)
    beyond = np.maximum(0.0, ratio - 2 * math.log(2))
    return np.asarray((1 + beyond) * np.exp(-beyond))


def rate_at_least(family: Family, counts: Array, sums: Array, allotted: float) -> Array:
    """Lower confidence bounds of the rates beta of groups of draws, each false with probability at most ``allotted``.

    A rate this far below the one that fits the draws best would make sums as small as these improbable. A group
    without draws has the bound 0.
    """
    n, s = np.maximum(counts, 1.0)[:, None], sums[:, None]
    ones = np.ones_like(s)
    best = _best_factor(family, ones, n, s)[:, None]
    low, high = np.full(len(s), -2 * _WIDEST), np.zeros(len(s))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        refused = _log_chernoff(family, best * np.exp(middle)[:, None], np.exp(-middle)[:, None], n, s) < math.log(
            allotted
        )
        low, high = np.where(refused, middle, low), np.where(refused, high, middle)
    return np.where(counts > 0, best[:, 0] * np.exp(low), 0.0)


def total_rate_at_least(family: Family, counts: Array, sums: Array, allotted: float) -> float:
    """A lower confidence bound of the sum of the rates of all groups, false with probability at most ``allotted``.

    For a group with n draws and relative entropy D between the law that fits best and the true one, n D is, on the
    side of too little noise, at least x with probability at most exp(-x); so the sum over independent groups is no
    larger than that of as many exponential variables. Among rates that keep the sum within its quantile, those with
    the smallest total are where the expected sum of T exceeds the found one by the same amount in every group.
    """
    n, s = counts[counts > 0], sums[counts > 0]
    if not len(n):
        return 0.0
    radius = float(special.gammainccinv(len(n), allotted))
    best = _best_factor(family, np.ones((len(n), 1)), n[:, None], s[:, None])

    def at(excess: Array) -> tuple[Array, Array]:
        """Rates, a row for each excess, and how far they are from those that fit best."""
        shape = (len(excess), len(n))
        shifted = (s[None] + excess[:, None]).reshape(-1, 1)
        rates = _best_factor(family, np.ones_like(shifted), np.tile(n, len(excess))[:, None], shifted).reshape(shape)
        far = n * (log_normaliser(family, rates) - log_normaliser(family, best)) + (rates - best) * s
        return rates, far.sum(axis=1)

    low, high = math.log(1e-6), math.log(1e9 + 1e3 * float(s.sum()))
    for _ in range(3):
        grid = np.linspace(low, high, 48)
        rates, far = at(np.exp(grid))
        outside = int(np.argmax(far >= radius)) if bool(np.any(far >= radius)) else len(grid) - 1
        low, high = float(grid[max(0, outside - 1)]), float(grid[outside])
    return float(rates[outside].sum())


def spread_power(family: Family, betas: Array, counts: Array, factor: float, allotted: float, tests: int = 1) -> float:
    """At least the probability that noise whose rates are ``factor`` times the stated ones is noticed.

    ``tests`` tests of spread, each to both sides, share ``allotted``. What is just noticed is the mean of some tilted
    law; how probable sums on the wrong side of it are under the true rates is bounded with the same tilt.
    """
    tilt = _noticed(family, betas, counts, math.copysign(1.0, math.log(factor)), allotted / (2 * tests))
    return _power_at(family, betas, counts, factor, tilt)


def smallest_factor(family: Family, betas: Array, counts: Array, allotted: float, tests: int = 1) -> float:
    """The smallest factor above 1 by which rates could be too large and be noticed with power .999."""
    tilt = _noticed(family, betas, counts, 1.0, allotted / (2 * tests))
    seen = least_enough(lambda at: _power_at(family, betas, counts, math.exp(at), tilt) >= POWER, _WIDEST)
    return math.exp(seen)


def _noticed(family: Family, betas: Array, counts: Array, side: float, allotted: float) -> float:
    """The logarithm of the factor that, if it fits the draws best, is just noticed; above 0 or below, by ``side``."""
    unlikely = math.log(allotted)
    return least_enough(lambda at: _log_at(family, betas, counts, 1.0, at) < unlikely, side * _WIDEST)


def _power_at(family: Family, betas: Array, counts: Array, factor: float, tilt: float) -> float:
    if abs(tilt) >= abs(math.log(factor)):
        return 0.0
    return 1 - math.exp(min(0.0, _log_at(family, betas, counts, factor, tilt)))


def _best_factor(family: Family, betas: Array, counts: Array, sums: Array) -> Array:
    """By row, the factor of all rates under which sums of beta T are expected as they are."""
    low, high = np.full(len(betas), -_WIDEST), np.full(len(betas), _WIDEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        tilted = betas * np.exp(middle)[:, None]
        too_wide = np.sum(betas * (counts * mean_statistic(family, tilted) - sums), axis=1) > 0
        low, high = np.where(too_wide, middle, low), np.where(too_wide, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def _log_chernoff(family: Family, betas: Array, factor: Array, counts: Array, sums: Array) -> Array:
    """By row, log E exp(sum of t T) - t s with t = (1 - factor) beta, since E exp(t T) = Z(beta - t) / Z(beta)."""
    change = counts * (log_normaliser(family, betas * factor) - log_normaliser(family, betas))
    return np.asarray(np.sum(change - (1 - factor) * betas * sums, axis=1))


def _log_at(family: Family, betas: Array, counts: Array, truly: float, tilt: float) -> float:
    """The same at the sums that are expected under rates exp(tilt) beta, where the true ones are ``truly`` beta."""
    sums = counts * mean_statistic(family, betas * math.exp(tilt))
    factor = np.array([[math.exp(tilt) / truly]])
    return float(_log_chernoff(family, truly * betas[None], factor, counts[None], sums[None])[0])


# -- means ---------------------------------------------------------------------------------------------------


def mean_p_value(family: Family, beta: float, draws: int, total: float) -> float:
    """Of the sum of draws, to both sides: a discrete Gaussian is at least as concentrated as the normal law (Canonne,
    Kamath and Steinke 2020, Corollary 17); for the discrete Laplace the moment generating function is known."""
    if draws == 0:
        return 1.0
    if family == "gaussian":
        return min(1.0, 2 * math.exp(-(total**2) * beta / draws))

    def log_bound(share: float) -> float:
        tilt = share * beta
        log_moment = 2 * math.log(-math.expm1(-beta)) - math.log(-math.expm1(tilt - beta))
        return draws * (log_moment - math.log(-math.expm1(-tilt - beta))) - tilt * abs(total)

    best = optimize.minimize_scalar(log_bound, bounds=(0.0, 1 - 1e-9), method="bounded")
    return min(1.0, 2 * math.exp(min(0.0, float(best.fun))))


_MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd, hence with an inverse modulo 2^64. Equal segments have equal sums; that sums differ is not relied on."""


def repeat_bound(log_coincidence: float, draws: int, length: int) -> float:
    """At least the probability that any segment of this length occurs twice among independent draws."""
    apart = 2 * math.log(draws) - math.log(2) + length * log_coincidence
    overlapping = math.log(draws) + (length + 1) / 2 * log_coincidence - math.log(-math.expm1(log_coincidence / 2))
    return min(1.0, math.exp(min(apart, 1.0)) + math.exp(min(overlapping, 1.0)))


def telling_length(log_coincidence: float, draws: int, allotted: float) -> int:
    """The shortest segment whose repetition has a probability below ``allotted``."""
    low, high = 0, 1
    while repeat_bound(log_coincidence, draws, high) >= allotted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if repeat_bound(log_coincidence, draws, middle) < allotted else (middle, high)
    return high


def find_repeat(draws: NDArray[np.int64], length: int) -> tuple[int, int] | None:
    """Where a segment of this length begins and begins again; None if there is none.

    >>> find_repeat(np.array([5, 1, 2, 3, 7, 1, 2, 3, 8]), 3)
    (1, 5)
    """
    number = len(draws) - length + 1
    if number < 2:
        return None
    powers = np.cumprod(np.full(len(draws), _MULTIPLIER, dtype=np.uint64))
    prefix = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(draws.astype(np.uint64) * powers)])
    inverses = np.cumprod(np.full(number, pow(_MULTIPLIER, -1, 1 << 64), dtype=np.uint64))
    sums = (prefix[length:] - prefix[:number]) * inverses
    ordered = np.sort(sums)  # much faster than to find the order, which is needed only where sums are equal
    if not np.any(ordered[1:] == ordered[:-1]):
        return None
    order = np.argsort(sums, kind="stable")
    for place in np.flatnonzero(sums[order[1:]] == sums[order[:-1]]):
        first, second = int(order[place]), int(order[place + 1])
        if np.array_equal(draws[first : first + length], draws[second : second + length]):
            return first, second
    return None
