"""How the pairs of a mechanism are measured, one class for each divergence, and how the worst of them is found.

A measure knows its divergence between two distributions and the largest ratio of divergence to distance over the pairs
of a matrix. :func:`stirred.loss.pairs.worst_pair` takes any of them; :class:`Plain` makes one of any function.

Keep in mind: the answer is that of the plain functions of :mod:`stirred.loss.divergences` over all
pairs, up to a relative 1e-10. What is fast is knowing early that a pair is not the worst: cheap bounds for all pairs,
exact values only for those that can still win, the most promising first.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._shown import brief
from stirred.errors import distances_do_not_fit, not_a_distribution, parameter_not_used, unknown_choice
from stirred.loss import divergences, orders, pair_kernels
from stirred.loss.argument_checks import Number, probability, renyi_order, require_probabilities
from stirred.loss.pair_bounds import all_renyi, bound_normalised_renyi, impossible_pairs

Array = NDArray[np.float64]

SAME = 1e-12
"""Rows whose probabilities differ by a smaller part are the same distribution, rounded in different ways."""

FEW_PAIRS = 2_000
"""Up to so many pairs are computed one by one; beyond, bounds for all pairs at once pay."""

SETTLED = 1e-10
"""A pair whose bound exceeds the best value found by a smaller part is not looked at again."""

TERMS_AT_ONCE = 50_000_000
LEAST_ORDERS = 100
"""How many terms the search for suprema of one batch of pairs may add up, and how many orders a pair gets at least."""

NEGLIGIBLE = 1e-12
"""A smaller number from a function of one's own is 0, rounded."""


@brief
@dataclass(frozen=True)
class WorstPair:
    """The pair with the largest ratio of divergence to distance; no pair where nothing is constrained."""

    ratio: float
    first: int | None
    second: int | None
    divergence: float
    distance: float


NOTHING = WorstPair(0.0, None, None, 0.0, math.inf)


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


# -- measures ------------------------------------------------------------------------------------------------


class Measure(Protocol):
    """A divergence, and how the worst pair of a mechanism under it is found."""

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """The divergence of two distributions."""

    def worst_pair(self, rows: ArrayLike, distances: ArrayLike) -> WorstPair:
        """The largest ratio of divergence to distance over pairs of different rows at a finite distance."""


@dataclass(frozen=True)
class Plain:
    """Any function of two distributions, asked about every ordered pair.

    >>> largest = Plain(lambda p, q: float(np.max(np.abs(p - q))))
    >>> largest.worst_pair([[0.75, 0.25], [0.25, 0.75]], [[0, 1], [1, 0]]).ratio
    0.5
    """

    divergence: Callable[[Any, Any], float]

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """The divergence of two distributions."""
        return float(self.divergence(p, q))

    def worst_pair(self, rows: ArrayLike, distances: ArrayLike) -> WorstPair:
        """The largest ratio of divergence to distance over pairs of different rows at a finite distance."""
        matrix, between = mechanism(rows, distances)
        worst = WorstPair(-1.0, None, None, 0.0, math.inf)
        for first, second in np.argwhere(np.isfinite(between) & ~np.eye(len(matrix), dtype=np.bool_)):
            apart, distance = self.between(matrix[first], matrix[second]), float(between[first, second])
            ratio = apart / distance if distance > 0 else (math.inf if apart > NEGLIGIBLE else 0.0)
            if ratio > worst.ratio:
                worst = WorstPair(ratio, int(first), int(second), apart, distance)
        return worst if worst.first is not None else NOTHING


class _Searched(ABC):
    """A measure whose worst pair is found without computing all of them."""

    directed: ClassVar[bool] = False
    """Whether the divergence is that of the ordered pair. Else it is symmetric, and the smaller of the two distances
    between two rows counts."""

    @abstractmethod
    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """The divergence of two distributions, by the plain function."""

    @abstractmethod
    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        """The pair with the largest ratio, all distances being positive."""

    def _apart(self, rows: Array, pairs: _Pairs) -> _Pairs:
        """Those of some pairs whose distributions differ and whose divergence is not 0."""
        return pairs.take(~_same(rows, pairs))

    def worst_pair(self, rows: ArrayLike, distances: ArrayLike) -> WorstPair:
        """The largest ratio of divergence to distance over pairs of different rows at a finite distance."""
        matrix, between = mechanism(rows, distances)
        if not self.directed:
            smaller = np.minimum(between, between.T)
            between = np.where(np.triu(np.ones(smaller.shape, dtype=np.bool_)), smaller, math.inf)
        np.fill_diagonal(between, math.inf)
        first, second = np.nonzero(np.isfinite(between))
        pairs = _Pairs(first, second, between[first, second])
        if len(pairs) == 0:
            return NOTHING
        given = np.asarray(distances, dtype=np.float64)
        apart, rest = self._apart(matrix, pairs.take(pairs.distances == 0)), pairs.take(pairs.distances > 0)
        if len(apart) > 0 or len(rest) == 0:
            return self._explained(matrix, given, _at(apart if len(apart) else pairs, 0))
        return self._explained(matrix, given, self._worst(matrix, rest))

    def _explained(self, rows: Array, distances: Array, at: tuple[int, int]) -> WorstPair:
        """The pair with its numbers from the plain function, in the order of its smaller distance."""
        i, j = at
        if not self.directed and distances[j, i] < distances[i, j]:
            i, j = j, i
        divergence, distance = self.between(rows[i], rows[j]), float(distances[i, j])
        if distance == 0:
            same = _same(rows, _Pairs(np.array([i]), np.array([j]), np.zeros(1)))[0]
            ratio = math.inf if divergence > 0 and not same else 0.0
        else:
            ratio = divergence / distance
        return WorstPair(ratio, i, j, divergence, distance)


@dataclass(frozen=True)
class Multiplicative(_Searched):
    """The largest absolute log ratio of the probabilities of any event."""

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """D_Mult between two distributions."""
        return divergences.multiplicative(p, q)

    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        return _at(pairs, int(np.argmax(_multiplicative(rows, pairs) / pairs.distances)))


@dataclass(frozen=True)
class TotalVariation(_Searched):
    """The largest difference of the probabilities of any event."""

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """d_TV between two distributions."""
        return divergences.total_variation(p, q)

    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        return _at(pairs, int(np.argmax(_filled(pair_kernels.total_variation_of_pairs, rows, pairs) / pairs.distances)))


@dataclass(frozen=True)
class Approximate(_Searched):
    """The largest log ratio after ``delta`` is taken off the larger probability."""

    delta: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", probability("delta", self.delta))

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """D_Mult^delta between two distributions."""
        return divergences.approximate(p, q, self.delta)

    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        return _at(pairs, int(np.argmax(_approximate(rows, pairs, float(self.delta)))))

    def _apart(self, rows: Array, pairs: _Pairs) -> _Pairs:
        different = super()._apart(rows, pairs)
        if len(different) == 0:
            return different
        at_one = _Pairs(different.first, different.second, np.ones(len(different)))
        return different.take(_approximate(rows, at_one, float(self.delta)) > 0)


@dataclass(frozen=True)
class Renyi(_Searched):
    """The Rényi divergence of one order, that of the ordered pair."""

    order: Number
    directed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", renyi_order(self.order))

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """D_alpha of the ordered pair (P, Q)."""
        return divergences.renyi(p, q, self.order)

    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        return _at(pairs, _worst_renyi(rows, pairs, float(self.order) - 1))


@dataclass(frozen=True)
class NormalisedRenyi(_Searched):
    """The largest root of a Rényi divergence over its order: a metric, in its Lipschitz units."""

    def between(self, p: ArrayLike, q: ArrayLike) -> float:
        """D_NoR between two distributions."""
        return divergences.normalised_renyi(p, q)

    def _worst(self, rows: Array, pairs: _Pairs) -> tuple[int, int]:
        return _worst_normalised_renyi(rows, pairs)


_NAMED: dict[str, tuple[Callable[..., Measure], bool]] = {
    "multiplicative": (Multiplicative, False),
    "approximate": (Approximate, True),
    "renyi": (Renyi, True),
    "normalised-renyi": (NormalisedRenyi, False),
    "total-variation": (TotalVariation, False),
}
"""Measures by the names that :func:`stirred.loss.worst_pair` takes, and whether they have a parameter."""


def named(name: str, parameter: Number | None = None) -> Measure:
    """The measure of a name, with its parameter if it has one."""
    if name not in _NAMED:
        raise unknown_choice("measure", name, tuple(_NAMED))
    made, takes_one = _NAMED[name]
    if takes_one:
        return made(math.nan if parameter is None else parameter)
    if parameter is not None:
        raise parameter_not_used(name)
    return made()


# -- searches ------------------------------------------------------------------------------------------------


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


def mechanism(rows: ArrayLike, distances: ArrayLike) -> tuple[Array, Array]:
    """A mechanism and its distances as arrays, checked; every distribution is at distance 0 from itself."""
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


def _at(pairs: _Pairs, k: int) -> tuple[int, int]:
    return int(pairs.first[k]), int(pairs.second[k])


def _same(rows: Array, pairs: _Pairs) -> NDArray[np.bool_]:
    return np.asarray(_filled(pair_kernels.same_of_pairs, rows, pairs, SAME) == 1)


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
    """The number that ``kernel`` computes for every pair, in pieces that are shared among the cores.

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
