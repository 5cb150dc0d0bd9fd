"""Bounds in closed form for two mechanisms: a count with Laplace noise, and randomised response (section 5.4).

Datasets are vectors of n bits at Hamming distance, so d_* = n; this reading reproduces the published
figures. The noise has the law (epsilon/2) e^(-epsilon |t - q|), with a minus sign (it is missing in Example 5.4.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._lazy import later
from stirred.limits.bounds import Band
from stirred.limits.distances import count
from stirred.loss.argument_checks import Number, finite

special = later("scipy.special")

Array = NDArray[np.float64]


@says_what_it_takes
def laplace_count_bounds(outputs: ArrayLike, epsilon: Number, records: int, whole: bool = False) -> Band:
    """The bounds of Theorem 5.4.1 for a count of ``records`` bits: Figure 5.2. With D the distance to the middle n/2,

        upper (epsilon/2) e^(epsilon (n/2 - D)),  lower (epsilon/2) e^(-epsilon n - epsilon max(0, D - n/2)).

    The figure lets sums be any number from 0 to n. With ``whole`` sums only, as bits have, the lower bound is smaller
    between whole numbers.

    >>> band = laplace_count_bounds([0, 5, 15], 0.1, 10)
    >>> band.lower.round(6).tolist(), band.upper.round(6).tolist()
    ([0.018394, 0.018394, 0.011157], [0.05, 0.082436, 0.030327])
    """
    t, e, n = np.asarray(outputs, dtype=np.float64), finite("epsilon", epsilon), count("records", records)
    with np.errstate(over="ignore"):
        upper = e / 2 * np.exp(e * (n / 2 - np.abs(t - n / 2)))
    return Band(e / 2 * np.exp(-e * n - e * _nearest(t, n, whole)), upper)


@says_what_it_takes
def laplace_count_mixture(outputs: ArrayLike, epsilon: Number, records: int, whole: bool = False) -> Band:
    """Bounds for somebody who knows the whole mechanism: its density at the farthest and at the nearest sum."""
    t, e, n = np.asarray(outputs, dtype=np.float64), finite("epsilon", epsilon), count("records", records)
    farthest = np.maximum(np.abs(t), np.abs(t - n))
    return Band(e / 2 * np.exp(-e * farthest), e / 2 * np.exp(-e * _nearest(t, n, whole)))


@says_what_it_takes
def response_bounds(records: ArrayLike, epsilon: Number) -> Band:
    """Randomised response: (1 + e^epsilon)^-n <= p(t) <= e^(n epsilon) (1 + e^epsilon)^-n (equation 5.8, Figure 5.3).

    The trivial band is the same.

    >>> band = response_bounds([1, 10], 1)
    >>> band.lower.round(8).tolist(), band.upper.round(8).tolist()
    ([0.26894142, 1.98e-06], [0.73105858, 0.04360354])
    """
    n, e = np.asarray(records, dtype=np.float64), finite("epsilon", epsilon)
    if not bool(np.all((n >= 1) & (n == np.floor(n)))):
        raise errors.parameter_out_of_range("records", "not a count", "whole numbers that are at least 1")
    return Band(np.exp(n * special.log_expit(-e)), np.exp(n * special.log_expit(e)))


def _nearest(t: Array, n: int, whole: bool) -> Array:
    """How far outputs are from the nearest possible sum."""
    nearest = np.clip(t, 0, n)
    return np.abs(t - (np.round(nearest) if whole else nearest))
