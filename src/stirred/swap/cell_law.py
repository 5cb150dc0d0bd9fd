"""The exact law of one released cell of a small stratum, and intervals from it.

A uniform derangement of K selected records is, with signed weights, a mixture of uniform permutations of random
subsets:

    P(z | x) = sum_m c_m P_m(z | x),    c_m = sum_i (-1)^i P(K = m + i) C(m + i, i) m! / d(m + i)   (K = 1 left out),

where under P_m a uniformly random set of m records is permuted uniformly. Of these, r are in h, t in s and y in both,
by the hypergeometric laws; after the permutation Y' of them are in both, again hypergeometric: z = x - y + Y'. The
weights are computed as fractions, so nothing cancels but at the size of the floats themselves.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from stirred.swap.guarantee import derangements

Floats = NDArray[np.float64]

LARGEST = 20
"""Records up to which laws of cells are listed unasked: the time grows with the fifth power."""


@lru_cache(maxsize=4096)
def cell_law(size: int, held: int, swapped: int, rate: Fraction) -> Floats:
    """P(z | x) as ``[x - L, z - L]`` for a cell with margins ``held`` and ``swapped``, L the least possible count.

    >>> cell_law(4, 2, 2, Fraction(1, 10)).round(6)
    array([[9.49056e-01, 5.08810e-02, 6.30000e-05],
           [1.27200e-02, 9.74559e-01, 1.27200e-02],
           [6.30000e-05, 5.08810e-02, 9.49056e-01]])
    """
    low, high = max(0, held + swapped - size), min(held, swapped)
    law = np.zeros((high - low + 1, high - low + 1))
    if size < 2:
        return np.eye(high - low + 1)
    for m, weight in enumerate(_weights(size, rate)):
        if weight:
            for x in range(low, high + 1):
                law[x - low] += weight * _permuted(size, held, swapped, x, m, low, high)
    return law


def exact_interval(size: int, held: int, swapped: int, released: int, rate: Fraction, miss: float) -> tuple[int, int]:
    """The hull of the true counts that neither tail, of probability ``miss``/2, rejects; the nearest bound if none is.

    >>> exact_interval(20, 8, 5, 3, Fraction(1, 20), 0.05)
    (2, 4)
    """
    low = max(0, held + swapped - size)
    law = cell_law(size, held, swapped, rate)
    at = released - low
    below, above = law[:, : at + 1].sum(axis=1), law[:, at:].sum(axis=1)
    kept = np.flatnonzero((below > miss / 2) & (above > miss / 2))
    if not len(kept):
        nearest = int(np.argmax(np.minimum(below, above))) + low
        return nearest, nearest
    return int(kept[0]) + low, int(kept[-1]) + low


@lru_cache(maxsize=256)
def _weights(size: int, rate: Fraction) -> tuple[float, ...]:
    """c_0 ... c_n"""
    kept = 1 - size * rate * (1 - rate) ** (size - 1)
    chance = [comb(size, k) * rate**k * (1 - rate) ** (size - k) / kept for k in range(size + 1)]
    return tuple(
        float(
            sum(
                (-1) ** (k - m) * chance[k] * Fraction(comb(k, k - m) * factorial(m), derangements(k))
                for k in range(m, size + 1)
                if k != 1
            )
        )
        for m in range(size + 1)
    )


def _permuted(size: int, held: int, swapped: int, x: int, m: int, low: int, high: int) -> Floats:
    """The law of z where m random records are permuted uniformly."""
    found = np.zeros(high - low + 1)
    cells = x, held - x, swapped - x, size - held - swapped + x
    for y in range(min(m, cells[0]) + 1):
        for r in range(min(m - y, cells[1]) + 1):
            for t in range(min(m - y - r, cells[2]) + 1):
                rest = m - y - r - t
                if rest > cells[3]:
                    continue
                chosen = comb(cells[0], y) * comb(cells[1], r) * comb(cells[2], t) * comb(cells[3], rest)
                chance = chosen / comb(size, m)
                in_held, in_swapped = y + r, y + t
                for after in range(max(0, in_held + in_swapped - m), min(in_held, in_swapped) + 1):
                    z = x - y + after - low
                    ways = comb(in_held, after) * comb(m - in_held, in_swapped - after) / comb(m, in_swapped)
                    found[z] += chance * ways
    return found
