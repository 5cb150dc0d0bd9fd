"""Finds a segment of draws that occurs twice: what a seed that is used again leaves behind.

Of independent draws two segments of length L that do not overlap are equal with probability c^L, c the probability
that two draws are equal. Two that overlap, d < L apart, make L + d draws equal in d classes of two or more, which has
a probability of at most c^((L + d) / 2). Summed over all pairs of n draws this is below n^2 c^L / 2 +
n c^((L + 1) / 2) / (1 - sqrt c): :func:`telling_length` gives the L that makes it small.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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
