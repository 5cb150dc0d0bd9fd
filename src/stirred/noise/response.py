"""Randomised response: each value is kept with probability 1 - p, else replaced by *another* one, uniformly.

The law, independently for each value v among k categories: P(v) = 1 - p and P(u) = p / (k - 1) for each u other than v,
exactly. With two categories the value is flipped with probability p. (Some texts replace by any of the k, the value
itself included: that is this law with p (k - 1) / k in place of p.) For p <= 1 - 1/k it satisfies epsilon-differential
privacy for a value with exp(epsilon) = (1 - p)(k - 1) / p.

Whether a value is replaced is a coin of :mod:`stirred.noise.coins`, by which one of the others a uniform integer of
:mod:`stirred.noise.integers`; both are exact. Every value takes both draws, whatever the first one says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.noise.coins import bernoulli
from stirred.noise.integers import LARGEST_BOUND, uniform_integers
from stirred.noise.scales import Number
from stirred.noise.source import RandomSource


def randomised_response(values: NDArray[Any], p: Number, source: RandomSource, *, categories: int = 2) -> NDArray[Any]:
    """``values``, whole numbers below ``categories`` or booleans, each replaced by another one with probability ``p``.

    >>> from stirred.noise import SeededSource
    >>> randomised_response(np.array([0, 1, 2, 2, 1, 0]), "1/2", SeededSource(3), categories=3).tolist()
    [2, 2, 1, 1, 1, 0]
    """
    known = np.asarray(values)
    if isinstance(categories, bool) or not isinstance(categories, int | np.integer):
        raise errors.noise_not_a_number("The number of categories", categories)
    if not 2 <= categories <= LARGEST_BOUND:
        raise errors.noise_out_of_range("The number of categories", int(categories), "from 2 to 2^63")
    if known.ndim != 1 or known.dtype.kind not in "iub" or (known.dtype.kind == "b" and categories != 2):
        raise errors.response_values(int(categories))
    if len(known) and (int(known.min()) < 0 or int(known.max()) >= categories):
        raise errors.response_values(int(categories))
    replaced = bernoulli(p, len(known), source)
    out: NDArray[Any]
    if categories == 2:
        out = known ^ replaced.astype(known.dtype)
        return out
    # Among the others in increasing order: those from the value itself on are one further.
    other = uniform_integers(int(categories) - 1, len(known), source)
    other += other >= known
    out = np.where(replaced, other, known).astype(known.dtype)
    return out
