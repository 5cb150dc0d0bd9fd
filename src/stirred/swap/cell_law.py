"""The exact law of one released cell of a small stratum, and intervals from it.

Merging values commutes with a swap, so a cell is the first one of the table with two by two categories: its own held
and swap value, and all others. The law of that table is known exactly (:mod:`stirred.swap.two_by_two_laws`).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred.swap.stratum_laws import stratum_law

Floats = NDArray[np.float64]

LARGEST = 20
"""Records up to which laws of cells are listed unasked: one takes a millisecond, and a hundred with 100 records."""


@lru_cache(maxsize=4096)
def cell_law(size: int, held: int, swapped: int, rate: Fraction) -> Floats:
    """P(z | x) as ``[x - L, z - L]`` for a cell with margins ``held`` and ``swapped``, L the least possible count.

    >>> cell_law(4, 2, 2, Fraction(1, 10)).round(6)
    array([[9.49056e-01, 5.08810e-02, 6.30000e-05],
           [1.27200e-02, 9.74559e-01, 1.27200e-02],
           [6.30000e-05, 5.08810e-02, 9.49056e-01]])
    """
    if held in (0, size) or swapped in (0, size):  # the margins say all
        return np.eye(1)
    law = stratum_law((held, size - held), (swapped, size - swapped), rate)
    return np.array([[share / law.total for share in row] for row in law.shares])


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
