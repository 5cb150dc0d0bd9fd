"""The laws that a swapping program must have (Algorithm 3.2.1), as the audits of :mod:`stirred.audit` ask for them.

In a stratum of n records each is selected with probability p, afresh while exactly one is, and the k selected are
permuted by a uniform derangement. So K is binomial given that it is not 1; given K, every set of so many records and
every derangement of them is equally likely.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.loss.curves.swap_laws import derangements

stats = later("scipy.stats")

Floats = NDArray[np.float64]


@lru_cache(maxsize=256)
def number_selected(size: int, rate: float) -> Floats:
    """P(K = k) for k = 0 to n; n is at least 2."""
    chances: Floats = stats.binom.pmf(np.arange(size + 1), size, rate)
    chances[1] = 0.0
    found: Floats = chances / chances.sum()
    return found


def mean_and_variance_selected(sizes: NDArray[np.int64], rate: float) -> tuple[Floats, Floats]:
    """Mean and variance of K for strata of these sizes; a stratum of one has none.

    E K = np(1 - r)/D and E K^2 = (np(1-p) + n^2 p^2 - npr)/D with r = (1-p)^(n-1) and D = 1 - npr.
    """
    size = sizes.astype(np.float64)
    lone = np.exp((size - 1) * math.log1p(-rate))
    kept = np.where(size > 1, 1 - size * rate * lone, 1.0)
    mean = np.where(size > 1, size * rate * (1 - lone) / kept, 0.0)
    square = np.where(size > 1, (size * rate * (1 - rate) + (size * rate) ** 2 - size * rate * lone) / kept, 0.0)
    return mean, square - mean**2


@lru_cache(maxsize=256)
def chance_of_the_same(size: int, rate: float) -> float:
    """The probability that two strata of n records have the same outcome, and that it moves some."""
    number = number_selected(size, rate)
    k = np.arange(2, size + 1)
    log_ways = _log_factorial(size) - _log_factorial(size - k)  # C(n, k) d(k), where d(k) is at least k!/3
    return float(np.sum(number[2:] ** 2 * np.exp(np.log(3) - log_ways)))


def log_most_likely(size: int, rate: float) -> float:
    """Log of the probability of the likeliest outcome of a stratum: none moves, or all of a number that moves."""
    if size < 2:
        return 0.0
    number = number_selected(size, rate)
    k = np.arange(2, size + 1)
    with np.errstate(divide="ignore"):
        some = np.log(number[2:]) + np.log(3) - _log_factorial(size) + _log_factorial(size - k)
        return float(min(0.0, max(np.log(number[0]), some.max())))


@lru_cache(maxsize=16)
def all_derangements(k: int) -> tuple[tuple[int, ...], ...]:
    """All derangements of k records, in the order of their digits."""
    return tuple(one for one in permutations(range(k)) if all(one[i] != i for i in range(k)))


@lru_cache(maxsize=4096)
def number_of_exchanges(k: int, most: int = 3) -> tuple[float, ...]:
    """P(a uniform derangement of k records has 0, 1, ..., ``most`` or more cycles of two).

    C(k; 2, ..., 2) derangements of the others without cycles of two, by inclusion and exclusion.
    """
    if k > _MANY:  # the number is Poisson with mean 1/2 to all digits of a float
        law = [math.exp(-0.5) * 0.5**j / math.factorial(j) for j in range(most)]
        return (*law, 1 - sum(law))
    total = derangements(k)
    ways = []
    for j in range(most):
        without = sum((-1) ** i * _pairs(k - 2 * j, i) * derangements(k - 2 * j - 2 * i) for i in range(k // 2 - j + 1))
        ways.append(_pairs(k, j) * without / total if 2 * j <= k else 0.0)
    return (*ways, max(0.0, 1 - sum(ways)))


_MANY = 60


def _pairs(k: int, j: int) -> int:
    """In how many ways j disjoint pairs can be chosen among k records."""
    return math.factorial(k) // (2**j * math.factorial(j) * math.factorial(k - 2 * j)) if 2 * j <= k else 0


def _log_factorial(n: int | NDArray[np.int64]) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(np.asarray(n, dtype=np.float64) + 1.0))
