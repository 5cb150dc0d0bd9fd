"""Intervals of whole numbers that contain the truth at least as often as they say.

Noise on a cell is a discrete Gaussian with parameter s: P(k) proportional to exp(-k^2 / 2s). What a release states as
its variance is s. The law's own variance is smaller, by less than one part in four million from s = 1 on but noticeably
below (0.215 for s = 1/4), while s bounds its moment generating function like that of a normal law. So we
compute with s: variances of estimates are exact where noise has parameters of 1 and more, and safe below.

Counts are whole numbers, so intervals are too. Where the noise in an estimate is a sum of few terms its law is listed,
and the interval holds the whole numbers within the smallest distance that the error keeps often enough, and always the
nearest one (*exact*).
Elsewhere it holds all whole numbers within half a unit of the normal interval (*normal*): the half covers the lattice,
whose steps are the weights of single measurements, as long as none is above one. That makes normal intervals
conservative where noise is small: at a standard error of 1 the one that is asked to contain the truth in 50 of 100
cases does so in about 76, at 10 in about 53.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.estimates.error_laws import LARGEST, ErrorLaw, Term

special = later("scipy.special")

Array = NDArray[np.float64]

WORTHWHILE = 10.0
"""Up to this standard error the law of a weighted sum is worth listing: above it, the half unit adds at most 4 points
of coverage to a normal interval."""

SHORTEST = 0.5
"""An error below it leaves the truth the nearest whole number, and an interval that reaches less far may hold none."""


@lru_cache(maxsize=256)
def plain_law(parameter: float, terms: int) -> ErrorLaw | None:
    """The law of a sum of so many discrete Gaussians; None where the normal law gives the same."""
    return None if parameter * terms > LARGEST else ErrorLaw.of([Term(1, parameter, terms)])


def reach(parameter: float, terms: int, confidence: float) -> int | None:
    """The least m such that a sum of ``terms`` discrete Gaussians is within m of zero with this probability; None where
    the normal law gives the same.

    >>> reach(1.0, 1, 0.9), reach(1e-3, 5, 0.99)
    (2, 0)
    """
    law = plain_law(parameter, terms)
    found = None if law is None else law.reach(confidence)
    return None if found is None else round(found)


def exact_half_width(law: ErrorLaw, confidence: float) -> float | None:
    """How far an interval reaches to either side of an estimate whose error has this law; None where the law cannot
    certify the confidence. At least half a unit: every interval holds the nearest whole number."""
    found = law.reach(confidence)
    return None if found is None else max(found, SHORTEST)


def normal_half_widths(errors: Array, confidence: float) -> Array:
    """How far intervals reach to either side of estimates with nearly normal errors."""
    return np.asarray(float(special.ndtri((1 + confidence) / 2)) * errors + 0.5)


def normal_coverage(errors: Array, half: Array) -> Array:
    """How often, about, a normal error is as near to zero as a normal interval reaches."""
    ratios = np.divide(half, errors, out=np.full_like(errors, math.inf), where=(errors > 0) & np.isfinite(errors))
    return np.asarray(2 * special.ndtr(ratios) - 1)
