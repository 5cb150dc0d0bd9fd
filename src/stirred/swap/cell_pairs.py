"""All pairs of held and swapped cells within strata, and keys to find them by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_PAIRS = 50_000_000


def pairs(
    count: int,
    held: tuple[NDArray[np.integer], ...],
    swapped: tuple[NDArray[np.integer], ...],
    most: int = _MOST_PAIRS,
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
    """Every (held cell, swapped cell) of one stratum: the stratum and the positions of both; None if too many."""
    many_h = np.bincount(held[0], minlength=count)
    many_s = np.bincount(swapped[0], minlength=count)
    total = int(np.sum(many_h * many_s))
    if total > most:
        return None, many_h, many_s
    stratum = np.repeat(np.arange(count), many_h * many_s)
    start = np.repeat(np.cumsum(many_h * many_s) - many_h * many_s, many_h * many_s)
    within = np.arange(total) - start
    first_h, first_s = np.cumsum(many_h) - many_h, np.cumsum(many_s) - many_s
    return stratum, first_h[stratum] + within // many_s[stratum], first_s[stratum] + within % many_s[stratum]


def key_of(
    outer: NDArray[np.integer], h: NDArray[np.integer], s: NDArray[np.integer], held: int, swapped: int
) -> NDArray[np.int64]:
    """One number for each triple of an outer group, a held and a swapped one."""
    return (outer.astype(np.int64) * held + h.astype(np.int64)) * swapped + s.astype(np.int64)


def look_up(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each of ``wanted`` stands among ``keys``, which are increasing, and whether it does."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted
