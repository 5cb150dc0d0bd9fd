"""Which faults of a swapping program an audit of a given size finds, and how surely: computed from the laws.

A fault changes the law of what a question looks at. Its power is the probability that the p-value then falls below what
is allotted to the question; sums of many independent terms are taken as normal, and chi-square statistics as
noncentral. :func:`smallest_rate` and :func:`smallest_bias` turn this round, and give the smallest effects that are
found with a given power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.audit import tails
from stirred.audit.permutations_seen import INTEGERS, contrasts
from stirred.audit.swap_inputs import Integers
from stirred.audit.swap_laws import (
    all_derangements,
    chance_of_the_same,
    mean_and_variance_selected,
    number_of_exchanges,
    number_selected,
)
from stirred.audit.swap_questions import EXCHANGES, EXCHANGING, ORDERS, STRATA_WAYS

stats = later("scipy.stats")

Floats = NDArray[np.float64]

WANTED = 0.999
_LISTED_UP_TO = 7
_NEGLIGIBLE, _UNLIKELY = 1e-6, 1e-12
"""Expected events, and relative probabilities, that make no difference."""


@dataclass(frozen=True, eq=False)
class Effort:
    """How much an audit looks at: the sizes of the strata, the rate, the number of runs."""

    sizes: Integers
    rate: float
    runs: int

    @cached_property
    def by_size(self) -> list[tuple[int, int]]:
        """Sizes of two or more, and how often a stratum of that size is drawn."""
        sizes, number = np.unique(self.sizes[self.sizes > 1], return_counts=True)
        return [(int(size), int(many) * self.runs) for size, many in zip(sizes, number, strict=True)]

    @cached_property
    def integers_seen(self) -> tuple[float, float]:
        """Of the sums :data:`INTEGERS` of all groups: the sum of their variances, and that of the squared variances."""
        total = squares = 0.0
        for size, times in self.by_size:
            law = number_selected(size, self.rate)
            k = np.flatnonzero(law > _UNLIKELY * law.max())
            variances = np.array([variance_of_integers(int(one)) for one in k])
            total += times * float(np.sum(law[k] * variances))
            squares += times * float(np.sum(law[k] * variances**2))
        return total, squares

    def moved(self, rate: float) -> tuple[float, float]:
        """Mean and variance of the number of records that move in all runs at some rate."""
        sizes, times = np.array(self.by_size).T
        mean, variance = mean_and_variance_selected(sizes, rate)
        return float(np.sum(times * mean)), float(np.sum(times * variance))


def power_of_rate(effort: Effort, rate: float, allotted: float) -> float:
    """The power of the question ``rate`` if records are selected with another rate.

    Its p-value is below the allotted one from a deviation of sqrt(2 V ln(2 / allotted)) on, where V is the variance.
    """
    mean, variance = effort.moved(effort.rate)
    other_mean, other_variance = effort.moved(rate)
    needed = math.sqrt(2 * variance * math.log(2 / allotted))
    return float(stats.norm.sf((needed - abs(other_mean - mean)) / math.sqrt(other_variance)))


def power_of_bias(effort: Effort, bias: float, allotted: float) -> float:
    """The power of the question ``integers`` if integers of a shuffle fall this much too often into the lower half.

    A bias of .01 makes each integer of the lower half 1% likelier than it should be, and of the upper half less likely.
    The sum S of a group then has the mean ``bias`` times its variance v, in first order. With S^2 in the mean
    v + bias^2 v^2, and S^4 that of a normal number, so many sums count as :func:`tails.of_independent_sums` finds.
    """
    total, squares = effort.integers_seen
    if total**2 < tails.FEWEST_GROUPS * 3 * squares:
        return 0.0
    needed = float(stats.t.isf(allotted / (2 * len(INTEGERS) * len(ORDERS)), total**2 / (3 * squares) - 1))
    larger = math.sqrt(1 + bias**2 * squares / total)
    return float(stats.norm.sf(needed * larger - bias * math.sqrt(total)))


def power_of_selection(effort: Effort, law: Callable[[int], Floats], allotted: float) -> float:
    """The power of the question ``selected-by-stratum`` if P(K = k) in a stratum of n records is ``law(n)[k]``."""
    tables = []
    for size, times in effort.by_size:
        tables.append((times * law(size), times * number_selected(size, effort.rate)))
    return _power_of_counts(tables, allotted)


def power_of_exchanges(effort: Effort, law: Callable[[int], Sequence[float]], allotted: float) -> float:
    """The power of the question ``exchanges`` if k selected records have 0, 1, 2, 3 or more cycles of two with the
    probabilities ``law(k)``, and are selected as they should be."""
    under_fault = without = np.zeros(EXCHANGES + 1)
    for size, times in effort.by_size:
        number = number_selected(size, effort.rate)
        for k in np.flatnonzero(times * number > _NEGLIGIBLE):
            if k >= EXCHANGING:
                without = without + times * number[k] * np.array(number_of_exchanges(int(k), EXCHANGES))
                under_fault = under_fault + times * number[k] * np.array(law(int(k)))
    return _power_of_counts([(under_fault, without)], allotted)


def power_of_reuse(effort: Effort, allotted: float) -> float:
    """The power of the question ``between-strata`` if in each run all strata of a size move alike.

    All pairs of a size then coincide in every run in which such a stratum moves some; one size is enough.
    """
    pairs = {size: times // effort.runs // 2 for size, times in effort.by_size}
    expected = sum(many * effort.runs * chance_of_the_same(size, effort.rate) for size, many in pairs.items())
    needed = math.ceil(expected) + 1
    while tails.of_rare_coincidences(needed, expected) >= allotted / STRATA_WAYS:
        needed += 1
    return max(
        float(stats.binom.sf(math.ceil(needed / many) - 1, effort.runs, 1 - number_selected(size, effort.rate)[0]))
        for size, many in pairs.items()
        if many
    )


def smallest_rate(effort: Effort, allotted: float, power: float = WANTED) -> float:
    """By how much a rate must be off, at least, to be found with this power."""
    return _bisect(lambda off: power_of_rate(effort, effort.rate + off, allotted), (1 - effort.rate) * 0.999, power)


def smallest_bias(effort: Effort, allotted: float, power: float = WANTED) -> float:
    """The smallest bias of integers that is found with this power; 1 if none is."""
    return _bisect(lambda bias: power_of_bias(effort, bias, allotted), 1.0, power)


@lru_cache(maxsize=65536)
def variance_of_integers(k: int) -> float:
    """The variance of one of the sums :data:`INTEGERS` in a uniform derangement of k records.

    Up to seven records by going through all of them. For more, each integer adds nearly 1: j(i) = i adds nothing, nor
    does the middle of an odd number, which is k - 3/2 ln k - 0.4 in all (compared with draws in the tests).
    """
    if k < 3:
        return 0.0
    if k > _LISTED_UP_TO:
        return k - 1.5 * math.log(k) - 0.4
    every = np.array(all_derangements(k), dtype=np.int64)
    integers, _ = contrasts(every.ravel(), np.arange(len(every) + 1) * k)
    return float(np.mean(integers[0] ** 2))


def _power_of_counts(tables: list[tuple[Floats, Floats]], allotted: float) -> float:
    """Of a chi-square test, from the numbers that are to be expected under a fault and without it."""
    noncentrality, degrees, impossible = 0.0, 0, 0.0
    for under_fault, without in tables:
        impossible += float(np.sum(under_fault[without == 0]))
        starts = tails.cells(without)
        if len(starts) > 1:
            found, wanted = np.add.reduceat(under_fault, starts), np.add.reduceat(without, starts)
            noncentrality += float(np.sum((found - wanted) ** 2 / wanted))
            degrees += len(starts) - 1
    if degrees == 0:
        return -math.expm1(-impossible)
    low, high = 0.0, 1e9  # the statistic from which on the p-value is below the allotted one
    for _ in range(200):
        middle = (low + high) / 2
        p_value = tails.skewed(float(stats.chi2.sf(middle, degrees)), tails.FEWEST_EXPECTED)
        low, high = (middle, high) if p_value >= allotted else (low, middle)
    mean, variance = degrees + noncentrality, 2 * (degrees + 2 * noncentrality)
    missed = float(stats.norm.cdf((high - mean) / math.sqrt(variance)))
    return 1 - missed * math.exp(-impossible)  # something that cannot happen is found as soon as it is seen


def _bisect(power_at: Callable[[float], float], most: float, power: float) -> float:
    """The smallest effect that is found with this power; ``most`` if none is."""
    low, high = 0.0, most
    if power_at(high) < power:
        return most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if power_at(middle) < power else (low, middle)
    return high
