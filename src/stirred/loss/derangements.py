"""The number of derangements, which laws of swapping are made of."""

from __future__ import annotations


def derangements(k: int) -> int:
    """d(k), the number of permutations of k records that leave none in place: d(k) = k d(k-1) + (-1)^k (B.4).

    >>> [derangements(k) for k in range(8)]
    [1, 0, 1, 2, 9, 44, 265, 1854]
    """
    if k < 0:
        raise ValueError(f"there is no derangement of {k} records")
    count = 1
    for size in range(1, k + 1):
        count = size * count + (-1 if size % 2 else 1)
    return count
