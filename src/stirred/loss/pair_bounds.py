"""Rényi divergences of all ordered pairs of rows at once, by matrix products: enough to rule pairs out.

The sum of p^alpha q^(1-alpha) over outputs is, for all pairs, the product of the matrix of p^alpha with the transpose
of that of q^(1-alpha). Both are divided by powers of the output's usual size first, which cancel, so that they rarely
leave the range of floats; where they do, nothing is known and the bounds are those of order infinity.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stirred.loss import orders

Array = NDArray[np.float64]

GRID = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Orders, less one, at which the supremum of D_NoR is bounded."""


def all_renyi(rows: Array, logs: Array, x: float) -> tuple[Array, float]:
    """D_alpha, alpha = x + 1, of every ordered pair of rows, and how far off it may be; not finite where not known.

    Whether one row can give an output that the other cannot is for the caller to know.
    """
    precision = float(np.finfo(np.float64).eps)
    possible = np.isfinite(logs)
    with np.errstate(all="ignore"):
        if x == 0:
            finite = np.where(possible, logs, 0.0)
            own = np.einsum("ij,ij->i", rows, finite)
            size = max(1.0, float(np.max(np.abs(finite))))
            return own[:, None] - rows @ finite.T, 4 * precision * rows.shape[1] * size
        top = np.max(logs, axis=0)
        middle = (top + np.min(np.where(possible, logs, top), axis=0)) / 2
        middle[~np.isfinite(middle)] = 0.0  # an output that nobody gives
        finite = np.where(possible, logs - middle, 0.0)
        powers = np.where(possible, np.exp((x + 1) * finite), 0.0)
        others = np.where(possible, np.exp(middle - x * finite), 0.0)
        return np.log(powers @ others.T) / x, 4 * precision * (rows.shape[1] + 1500) / x


def impossible_pairs(rows: Array) -> NDArray[np.bool_]:
    """For every ordered pair, whether the first row can give an output that the second cannot."""
    possible = rows > 0
    if bool(np.all(possible)):
        return np.zeros((len(rows), len(rows)), dtype=np.bool_)
    return np.asarray(possible.astype(np.float32) @ (~possible).astype(np.float32).T > 0)


def bound_normalised_renyi(
    rows: Array, logs: Array, first: NDArray[np.int64], second: NDArray[np.int64], largest: Array
) -> tuple[Array, Array]:
    """Bounds of D_NoR from below and above for pairs of rows with equal supports, ``largest`` being their D_Mult."""
    lower, upper = np.zeros(len(first)), np.zeros(len(first))
    forth, back = np.empty((len(first), len(GRID))), np.empty((len(first), len(GRID)))
    errors = np.empty(len(GRID))
    for g, x in enumerate(GRID):
        values, errors[g] = all_renyi(rows, logs, float(x))
        forth[:, g], back[:, g] = values[first, second], values[second, first]
    for values in (forth, back):
        orders.bounds_of_pairs(GRID, values, errors, largest, lower, upper)
    return np.sqrt(np.maximum(lower, 0)), np.minimum(np.sqrt(upper), largest / math.sqrt(2))
