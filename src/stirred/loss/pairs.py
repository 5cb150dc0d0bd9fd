"""The worst pair of a mechanism: the largest D(P_x, P_x') / d(x, x') over the pairs of datasets at a finite distance.

A mechanism is a matrix with one distribution in each row; the distances say how far its datasets are from each other,
infinity where a pair is not constrained. The largest ratio is the smallest budget for which the specification holds
(Definition 2.4.9), as the D is Lipschitz in d with that constant. Which D is a :mod:`measure
<stirred.loss.pair_measures>`, and this module treats all of them alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._shown import brief
from stirred.errors import parameter_out_of_range
from stirred.loss import pair_kernels
from stirred.loss.argument_checks import Number
from stirred.loss.pair_measures import Measure, WorstPair, mechanism, named

__all__ = ["Measure", "WorstPair", "WorstPowers", "worst_pair", "worst_power_curve"]

Array = NDArray[np.float64]


@brief
@dataclass(frozen=True)
class WorstPowers:
    """The largest power of telling neighbours apart, at each false-alarm probability, and the pair (-1: none)."""

    levels: Array
    powers: Array
    first: NDArray[np.int64]
    second: NDArray[np.int64]


def worst_pair(
    rows: ArrayLike, distances: ArrayLike, measure: Measure | str, parameter: Number | None = None
) -> WorstPair:
    """The largest D(row i, row j) / distances[i, j] over pairs i != j of finite distance.

    ``measure`` says which D: an object of :mod:`stirred.loss.pair_measures`, or the name of one with its ``parameter``:
    "multiplicative", "total-variation", "normalised-renyi" (the root, in its Lipschitz units), "approximate"
    (``parameter`` is delta) or "renyi" (``parameter`` is the order). Rényi divergences are those of the ordered pair;
    the others are symmetric, so the smaller of the distances between i and j counts. Two different distributions at
    distance 0 make the ratio infinite, if their divergence is not 0.

    >>> response = [[0.75, 0.25], [0.25, 0.75]]
    >>> worst_pair(response, [[0, 1], [1, 0]], "multiplicative")
    WorstPair(ratio=1.0986..., first=0, second=1, divergence=1.0986..., distance=1.0)
    >>> worst_pair(response, [[0, np.inf], [np.inf, 0]], "multiplicative").first is None
    True
    """
    chosen = named(measure, parameter) if isinstance(measure, str) else measure
    return chosen.worst_pair(rows, distances)


def worst_power_curve(rows: ArrayLike, distances: ArrayLike, levels: ArrayLike) -> WorstPowers:
    """The largest power of a test of one dataset against another at distance 1, at each of ``levels`` (false alarms).

    The supremum of Tr(P_x, P_x') over neighbours, the curve-valued loss of f-DP; it need not be concave. Where there
    are no neighbours it is the identity.

    >>> worst_power_curve([[0.75, 0.25], [0.25, 0.75]], [[0, 1], [1, 0]], [0.05, 0.25]).powers.round(12).tolist()
    [0.15, 0.75]
    """
    matrix, between = mechanism(rows, distances)
    asked = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if asked.ndim != 1 or not bool(np.all((asked >= 0) & (asked <= 1))):
        raise parameter_out_of_range("a level", "below 0, above 1 or not a number", "between 0 and 1")
    order = np.argsort(asked, kind="stable")
    first, second = np.nonzero(between == 1)
    powers, at = asked[order], np.full(len(asked), -1)
    pair_kernels.powers_of_pairs(matrix, first, second, asked[order], powers, at)
    back = np.argsort(order, kind="stable")
    powers, at = powers[back], at[back]
    chosen = [np.where(at >= 0, index[at], -1) if len(index) else at for index in (first, second)]
    return WorstPowers(asked, powers, *chosen)
