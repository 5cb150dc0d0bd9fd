"""The law of an estimate's error, and intervals of whole numbers that contain the truth at least as often as they say.

Noise on a cell is a discrete Gaussian with parameter s: P(k) proportional to exp(-k^2 / 2s). What a release states as
its variance is s. The law's own variance is smaller, by less than one part in four million from s = 1 on but noticeably
below (0.215 for s = 1/4), while s bounds its moment generating function like that of a normal law. So we
compute with s: variances of estimates are exact where noise has parameters of 1 and more, and safe below.

Counts are whole numbers, so intervals are too. Where the estimate is a plain sum of values of one query, its error is
an integer whose law is computed, and the interval is the shortest symmetric one (*exact*). Elsewhere it holds all whole
numbers within half a unit of the normal interval (*normal*): the half covers the lattice, whose steps are the weights
of single measurements, as long as none is above one.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later

special = later("scipy.special")

Array = NDArray[np.float64]
_NORMAL = 1 << 20
"""From this variance on, the law of an integer is the normal one to all digits that matter."""
_SAFE = 1e-12
"""More than all rounding errors of a probability here."""


@lru_cache(maxsize=256)
def reach(parameter: float, terms: int, confidence: float) -> int | None:
    """The least m such that a sum of ``terms`` discrete Gaussians is within m of zero with this probability; None where
    the normal law gives the same.

    >>> reach(1.0, 1, 0.9), reach(1e-3, 5, 0.99)
    (2, 0)
    """
    if parameter * terms > _NORMAL:
        return None
    law, power, left = np.ones(1), _single(parameter), terms
    while left:
        if left & 1:
            law = _both(law, power)
        left >>= 1
        if left:
            power = _both(power, power)
    middle = len(law) // 2
    inside = law[middle] + np.concatenate([[0.0], np.cumsum(law[middle + 1 :] + law[:middle][::-1])])
    return int(np.searchsorted(inside, min(confidence + _SAFE, float(inside[-1]))))


def _single(parameter: float) -> Array:
    furthest = 1 + math.ceil(12 * math.sqrt(parameter))
    numbers = np.arange(-furthest, furthest + 1, dtype=np.float64)
    weights = np.exp(-(numbers**2) / (2 * parameter))
    return np.asarray(weights / weights.sum())


def _both(first: Array, second: Array) -> Array:
    """The law of a sum, without tails that weigh nothing."""
    law = np.convolve(first, second)
    extra = max(0, int(np.searchsorted(np.cumsum(law), 1e-16)) - 1)
    return law[extra : len(law) - extra]


def half_widths(errors: Array, parameter: Array, terms: Array, confidence: float) -> Array:
    """How far intervals reach to either side of the estimates.

    ``parameter`` and ``terms`` tell the law where an estimate is a plain sum of measured values; else ``terms`` is 0.
    """
    found = float(special.ndtri((1 + confidence) / 2)) * errors + 0.5
    for single, number in {(float(a), int(b)) for a, b in zip(parameter[terms > 0], terms[terms > 0], strict=True)}:
        if (within := reach(single, number, confidence)) is not None:
            found[(terms == number) & (parameter == single)] = within
    return found
