"""The worst pair of a mechanism: the largest D(P_x, P_x') / d(x, x') over the pairs of datasets at a finite distance.

A mechanism is a matrix with one distribution in each row; the distances say how far its datasets are from each other,
infinity where a pair is not constrained. The largest ratio is the smallest budget for which the specification holds
(Definition 2.4.9), as the D is Lipschitz in d with that constant.

The invariant a reader must know: the answer is that of the plain functions of :mod:`stirred.loss.divergences` over all
pairs, up to a relative 1e-10. What is fast is knowing early that a pair is not the worst: cheap bounds for all pairs,
exact values only for those that can still win, the most promising first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._shown import brief
from stirred.errors import (
    distances_do_not_fit,
    not_a_distribution,
    parameter_not_used,
    parameter_out_of_range,
    unknown_choice,
)
from stirred.loss import divergences, orders, pair_kernels
from stirred.loss.checks import Number, probability, renyi_order, require_probabilities
from stirred.loss.pair_bounds import all_renyi, bound_normalised_renyi, impossible_pairs

Array = NDArray[np.float64]
Measure = Literal["multiplicative", "approximate", "renyi", "normalised-renyi", "total-variation"]
MEASURES: tuple[str, ...] = get_args(Measure)

SAME = 1e-12
"""Rows whose probabilities differ by a smaller part are the same distribution, rounded in different ways."""

FEW_PAIRS = 2_000
"""Up to so many pairs are computed one by one; beyond, bounds for all pairs at once pay."""

SETTLED = 1e-10
"""A pair whose bound exceeds the best value found by a smaller part is not looked at again."""

TERMS_AT_ONCE = 50_000_000
LEAST_ORDERS = 100
"""How many terms the search for suprema of one batch of pairs may add up, and how many orders a pair gets at least."""


@brief
@dataclass(frozen=True)
class WorstPair:
    """The pair with the largest ratio of divergence to distance; no pair where nothing is constrained."""

    ratio: float
    first: int | None
    second: int | None
    divergence: float
    distance: float


@brief
@dataclass(frozen=True)
class WorstPowers:
    """At each level the largest power of telling a dataset from a neighbour, and which pair attains it (-1: none)."""

    levels: Array
    powers: Array
    first: NDArray[np.int64]
    second: NDArray[np.int64]


@dataclass(frozen=True)
class _Pairs:
    """Pairs of rows and their distances."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    distances: Array

    def __len__(self) -> int:
        return len(self.first)

    def take(self, at: NDArray[Any]) -> _Pairs:
        return _Pairs(self.first[at], self.second[at], self.distances[at])


# -- the worst pair ------------------------------------------------------------------------------------------


def worst_pair(rows: ArrayLike, distances: ArrayLike, measure: Measure, parameter: Number | None = None) -> WorstPair:
    """The largest D(row i, row j) / distances[i, j] over pairs i != j of finite distance.

    ``measure`` says which D: "multiplicative", "total-variation", "normalised-renyi" (the root, in its Lipschitz
    units), "approximate" (``parameter`` is delta) or "renyi" (``parameter`` is the order). Rényi divergences are those
    of the ordered pair; the others are symmetric, so the smaller of the distances between i and j counts. Two different
    distributions at distance 0 make the ratio infinite, if their divergence is not 0.

    >>> response = [[0.75, 0.25], [0.25, 0.75]]
    >>> worst_pair(response, [[0, 1], [1, 0]], "multiplicative")
    WorstPair(ratio=1.0986..., first=0, second=1, divergence=1.0986..., distance=1.0)
    >>> worst_pair(response, [[0, math.inf], [math.inf, 0]], "multiplicative").first is None
    True
    """
    if measure not in MEASURES:
        raise unknown_choice("measure", measure, MEASURES)
    number = _parameter(measure, parameter)
    matrix, between = _mechanism(rows, distances)
    if measure != "renyi":
        smaller = np.minimum(between, between.T)
        between = np.where(np.triu(np.ones(smaller.shape, dtype=np.bool_)), smaller, math.inf)
    np.fill_diagonal(between, math.inf)
    first, second = np.nonzero(np.isfinite(between))
    pairs = _Pairs(first, second, between[first, second])
    if len(pairs) == 0:
        return WorstPair(0.0, None, None, 0.0, math.inf)
    at = _at_distance_zero(matrix, pairs.take(pairs.distances == 0), measure, number)
    if at is None:
        rest = pairs.take(pairs.distances > 0)
        at = _worst(matrix, rest, measure, number) if len(rest) else (int(first[0]), int(second[0]))
    return _explained(matrix, np.asarray(distances, dtype=np.float64), at, measure, number)


def _parameter(measure: str, parameter: Number | None) -> float:
    if measure == "approximate":
        return probability("delta", math.nan if parameter is None else parameter)
    if measure == "renyi":
        return renyi_order(math.nan if parameter is None else parameter)
    if parameter is not None:
        raise parameter_not_used(measure)
    return math.nan


def _mechanism(rows: ArrayLike, distances: ArrayLike) -> tuple[Array, Array]:
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise not_a_distribution("The mechanism", "it is not a matrix with one distribution in each row")
    require_probabilities("A row of the mechanism", matrix)
    between = np.array(distances, dtype=np.float64)
    if between.shape != (len(matrix), len(matrix)):
        raise distances_do_not_fit(f"their shape is {between.shape} and there are {len(matrix)} distributions")
    np.fill_diagonal(between, 0)
    if not bool(np.all(between >= 0)):
        raise distances_do_not_fit("a distance is negative or not a number")
    return matrix, between


def _explained(rows: Array, distances: Array, at: tuple[int, int], measure: str, number: float) -> WorstPair:
    """The pair with its numbers from the plain functions, in the order of its smaller distance."""
    i, j = at
    if measure != "renyi" and distances[j, i] < distances[i, j]:
        i, j = j, i
    divergence, distance = _plainly(measure, rows[i], rows[j], number), float(distances[i, j])
    if distance == 0:
        same = _same(rows, _Pairs(np.array([i]), np.array([j]), np.zeros(1)))[0]
        ratio = math.inf if divergence > 0 and not same else 0.0
    else:
        ratio = divergence / distance
    return WorstPair(ratio, i, j, divergence, distance)


def _plainly(measure: str, p: Array, q: Array, number: float) -> float:
    if measure == "multiplicative":
        return divergences.multiplicative(p, q)
    if measure == "approximate":
        return divergences.approximate(p, q, number)
    if measure == "renyi":
        return divergences.renyi(p, q, number)
    if measure == "normalised-renyi":
        return divergences.normalised_renyi(p, q)
    return divergences.total_variation(p, q)


def _at_distance_zero(rows: Array, pairs: _Pairs, measure: str, number: float) -> tuple[int, int] | None:
    """A pair of different distributions at distance 0, whose divergence is not 0."""
    different = pairs.take(~_same(rows, pairs))
    if measure == "approximate" and len(different):
        apart = _Pairs(different.first, different.second, np.ones(len(different)))
        different = different.take(_approximate(rows, apart, number) > 0)
    return _at(different, 0) if len(different) else None


def _worst(rows: Array, pairs: _Pairs, measure: str, number: float) -> tuple[int, int]:
    """The pair with the largest ratio, all distances being positive."""
    if measure == "multiplicative":
        return _at(pairs, int(np.argmax(_multiplicative(rows, pairs) / pairs.distances)))
    if measure == "total-variation":
        return _at(pairs, int(np.argmax(_filled(pair_kernels.total_variation_of_pairs, rows, pairs) / pairs.distances)))
    if measure == "approximate":
        return _at(pairs, int(np.argmax(_approximate(rows, pairs, number))))
    if measure == "renyi":
        return _at(pairs, _worst_renyi(rows, pairs, number - 1))
    return _worst_normalised_renyi(rows, pairs)


def _at(pairs: _Pairs, k: int) -> tuple[int, int]:
    return int(pairs.first[k]), int(pairs.second[k])


# -- measures ------------------------------------------------------------------------------------------------


def _same(rows: Array, pairs: _Pairs) -> NDArray[np.bool_]:
    return np.asarray(_filled(pair_kernels.same_of_pairs, rows, pairs, SAME) == 1)


def _multiplicative(rows: Array, pairs: _Pairs) -> Array:
    return _filled(pair_kernels.multiplicative_of_pairs, _logs(rows), pairs)


def _approximate(rows: Array, pairs: _Pairs, delta: float) -> Array:
    """D_Mult^delta / distance of pairs of which at least the worst is right; the others may be told as 0."""
    if delta == 0:
        return _multiplicative(rows, pairs) / pairs.distances

    def values(some: _Pairs, best: float) -> Array:
        found = _filled(pair_kernels.approximate_of_pairs, rows, some, some.distances, delta, best)
        for k in np.flatnonzero(np.isnan(found)):
            found[k] = divergences.approximate(rows[some.first[k]], rows[some.second[k]], delta) / some.distances[k]
        return found

    # A few pairs from everywhere give a high mark to begin with; most others then fail it at first sight.
    few = np.arange(0, len(pairs), max(1, len(pairs) // 1024))
    marks = values(pairs.take(few), 0.0)
    found = values(pairs, float(np.max(marks)))
    found[few] = np.maximum(found[few], marks)
    return found


def _worst_renyi(rows: Array, pairs: _Pairs, x: float) -> int:
    """The position of the worst pair at order x + 1."""

    def exactly(at: NDArray[np.int64], best: float) -> Array:
        some = pairs.take(at)
        return _filled(orders.renyi_of_pairs, rows, some, x) / some.distances

    if len(pairs) <= FEW_PAIRS:
        return int(np.argmax(exactly(np.arange(len(pairs)), 0.0)))
    logs = _logs(rows)
    impossible = impossible_pairs(rows)[pairs.first, pairs.second]
    if bool(np.any(impossible)):
        return int(np.argmax(impossible))
    if math.isinf(x):
        return int(np.argmax(_filled(pair_kernels.largest_of_pairs, logs, pairs) / pairs.distances))
    estimates, error = all_renyi(rows, logs, x)
    upper = estimates[pairs.first, pairs.second] + error
    unknown = np.flatnonzero(~np.isfinite(upper))
    upper[unknown] = _filled(pair_kernels.largest_of_pairs, logs, pairs.take(unknown))
    upper /= pairs.distances
    return _settle(upper, int(np.argmax(upper)), exactly)


def _worst_normalised_renyi(rows: Array, pairs: _Pairs) -> tuple[int, int]:
    """The worst pair for D_NoR, a metric: pairs with a third dataset on the way between them are no worse than it."""
    supports = np.unique(np.packbits(rows > 0, axis=1), axis=0, return_inverse=True)[1].ravel()
    unequal = supports[pairs.first] != supports[pairs.second]
    if bool(np.any(unequal)):
        return _at(pairs, int(np.argmax(unequal)))
    if len(pairs) > FEW_PAIRS:
        between = np.full((len(rows), len(rows)), math.inf)
        between[pairs.first, pairs.second] = between[pairs.second, pairs.first] = pairs.distances
        np.fill_diagonal(between, 0)
        pairs = pairs.take(_filled(pair_kernels.between_of_pairs, between, pairs) == 0)
    largest = _multiplicative(rows, pairs)
    if len(pairs) > FEW_PAIRS:
        lower, upper = bound_normalised_renyi(rows, _logs(rows), pairs.first, pairs.second, largest)
        start = int(np.argmax(lower / pairs.distances))
    else:
        upper = np.minimum(largest / math.sqrt(2), np.sqrt(largest))
        start = int(np.argmax(largest / pairs.distances))

    def exactly(at: NDArray[np.int64], best: float) -> Array:
        some = pairs.take(at)
        most = max(LEAST_ORDERS, min(orders.MOST_TERMS, TERMS_AT_ONCE // len(at)) // rows.shape[1])
        return _filled(orders.suprema_of_pairs, rows, some, some.distances, best, most)

    return _at(pairs, _settle(upper / pairs.distances, start, exactly))


# -- helpers -------------------------------------------------------------------------------------------------


def _logs(rows: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(rows)


def _settle(upper: Array, start: int, exactly: Callable[[NDArray[np.int64], float], Array]) -> int:
    """The position of the largest value, given bounds from above, where to begin, and exact values of what is asked.

    ``exactly`` may answer anything below the best value that it is given for values that do not exceed it.
    """
    worst, best = start, float(exactly(np.array([start]), 0.0)[0])
    waiting = np.argsort(-upper, kind="stable")
    batch = 256
    while True:
        waiting = waiting[upper[waiting] > best * (1 + SETTLED)]
        if len(waiting) == 0:
            return worst
        now, waiting = waiting[:batch], waiting[batch:]
        values = exactly(now, best)
        k = int(np.argmax(values))
        if values[k] > best:
            worst, best = int(now[k]), float(values[k])
        batch *= 2


def _filled(kernel: Callable[..., Any], matrix: Array, pairs: _Pairs, *arguments: object) -> Array:
    """What ``kernel`` says of every pair, a number each; the list is cut in pieces of which each core takes its share.

    The pieces do not depend on the number of cores, so neither does the answer.
    """
    result = np.empty(len(pairs))
    size = max(64, -(-len(pairs) // 16))
    pieces = [slice(start, start + size) for start in range(0, len(pairs), size)]

    def fill(piece: slice) -> None:
        cut = [a[piece] if isinstance(a, np.ndarray) else a for a in arguments]
        kernel(matrix, pairs.first[piece], pairs.second[piece], *cut, result[piece])

    if len(pieces) == 1:
        fill(pieces[0])
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, pieces))
    return result


# -- the worst curve -----------------------------------------------------------------------------------------


def worst_power_curve(rows: ArrayLike, distances: ArrayLike, levels: ArrayLike) -> WorstPowers:
    """At each of ``levels``, the largest power of a test of one dataset against a neighbour, one at distance 1 from it.

    The supremum of Tr(P_x, P_x') over neighbours, the curve-valued loss of f-DP; it need not be concave. Where there
    are no neighbours it is the identity.

    >>> worst_power_curve([[0.75, 0.25], [0.25, 0.75]], [[0, 1], [1, 0]], [0.05, 0.25]).powers.round(12).tolist()
    [0.15, 0.75]
    """
    matrix, between = _mechanism(rows, distances)
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
