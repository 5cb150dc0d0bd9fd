"""Laws to try statements on: spread evenly by a sequence of multiples of the golden ratio, so that nothing is drawn."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_GOLDEN = (math.sqrt(5) - 1) / 2


def spread_laws(count: int, outcomes: int, start: int = 1) -> NDArray[np.float64]:
    """That many laws on so many outcomes, one in each row, all of their probabilities above 0.

    >>> spread_laws(2, 3).sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    places = np.arange(start, start + count * outcomes).reshape(count, outcomes)
    weights = -np.log1p(-0.98 * (places * _GOLDEN % 1) - 0.01)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
