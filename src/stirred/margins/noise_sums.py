"""The noise of an estimate as a list of weights, where it is short enough for its law to be listed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stirred.estimates import Term
from stirred.estimates.error_laws import Noise
from stirred.margins.margin_blocks import Array

MOST_TERMS = 400
"""Different weights that the noise of an estimate may have for its law to be listed."""

CHEAP = 1 << 22
"""Measured values whose weights are worked out for one question, so that laws of errors can be listed."""


def noise_terms(weights: Iterable[tuple[float, Array]], noise: Noise = "gaussian") -> tuple[Term, ...]:
    """Noise with the same weight and parameter together, from parameters and the weights of values that have them."""
    counts: dict[tuple[float, float], int] = {}
    for parameter, some in weights:
        sizes = np.round(np.abs(some), 12)
        for size, times in zip(*np.unique(sizes[sizes > 0], return_counts=True), strict=True):
            key = float(size), parameter
            counts[key] = counts.get(key, 0) + int(times)
    return tuple(Term(size, parameter, times, noise) for (size, parameter), times in sorted(counts.items()))
