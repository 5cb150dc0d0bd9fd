"""P-values that are never too small: exact bounds where there are some, and safe approximations elsewhere.

A p-value bounds the probability that a program which keeps its promise shows so much or more. Bernstein's and
Chernoff's inequalities hold for every number of draws; the others say what they rest on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._lazy import later
from stirred.audit.swap_laws import mean_and_variance_selected

stats = later("scipy.stats")
optimize = later("scipy.optimize")

Floats = NDArray[np.float64]

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

    def log_moment(t: float) -> Floats:
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


def of_independent_sums(sums: Floats) -> float:
    """Of independent sums with mean 0, both sides: Student's t with as many degrees as there are sums that count.

    Where some sums are much larger than others, they alone count (:func:`sums_that_count`). With fewer than
    :data:`FEWEST_GROUPS` nothing is said.
    """
    effective = sums_that_count(sums)
    if effective < FEWEST_GROUPS:
        return 1.0
    return 2 * float(stats.t.sf(abs(float(np.sum(sums))) / math.sqrt(float(np.sum(sums**2))), effective - 1))


def sums_that_count(sums: Floats) -> float:
    """How many of them count in :func:`of_independent_sums`: (sum S^2)^2 / sum S^4."""
    squares = float(np.sum(sums**2))
    return squares**2 / float(np.sum(sums**4)) if squares else 0.0


def cells(expected: Floats) -> list[int]:
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
