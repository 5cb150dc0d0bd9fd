"""The worst pair of a mechanism: the largest D(P_x, P_x') / d(x, x') over the pairs of datasets at a finite distance.

A mechanism is a matrix with one distribution in each row; the distances say how far its datasets are from each other,
infinity where a pair is not constrained. The largest ratio is the smallest budget for which the specification holds
(Definition 2.4.9), as the D is Lipschitz in d with that constant.

Which D is a *measure*, one class for each divergence. It knows the divergence of two distributions and finds the worst
pair of a matrix; :func:`worst_pair` takes any of them, and :class:`Plain` makes one of any function.

Keep in mind: the answer is that of the plain functions of :mod:`stirred.loss.divergences` over all pairs, up to a
relative 1e-10. What is fast is knowing early that a pair is not the worst: cheap bounds for all pairs, exact values
only for those that can still win, the most promising first. The kernels get lists of pairs (``first[k]``,
``second[k]``), fill one number for each, and stop as soon as a pair cannot be the worst.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._compiled import kernel
from stirred._display import brief
from stirred._threads import thread_pool
from stirred.errors import (
    LossError,
    distances_do_not_fit,
    not_a_distribution,
    parameter_out_of_range,
    unknown_choice,
)
from stirred.loss import divergences, renyi_orders
from stirred.loss.argument_checks import Number, probability, renyi_order, require_probabilities
from stirred.loss.divergences import ROUNDING
from stirred.loss.renyi_orders import all_renyi, bound_normalised_renyi, impossible_pairs

OVERFLOW = 690.0
"""Logarithms of ratios above this are left to the plain functions; e^709 is the largest float."""

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
        return _at(pairs, int(np.argmax(_filled(total_variation_of_pairs, rows, pairs) / pairs.distances)))


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


MEASURES: dict[str, tuple[Callable[..., Measure], bool]] = {
    "multiplicative": (Multiplicative, False),
    "approximate": (Approximate, True),
    "renyi": (Renyi, True),
    "normalised-renyi": (NormalisedRenyi, False),
    "total-variation": (TotalVariation, False),
}
"""Measures by the names that :func:`stirred.loss.worst_pair` takes, and whether they have a parameter."""


def named(name: str, parameter: Number | None = None) -> Measure:
    """The measure of a name, with its parameter if it has one."""
    if name not in MEASURES:
        raise unknown_choice("measure", name, tuple(MEASURES))
    made, takes_one = MEASURES[name]
    if takes_one:
        return made(math.nan if parameter is None else parameter)
    if parameter is not None:
        raise LossError(
            "parameter-not-used",
            f"The measure '{name}' takes no parameter.",
            "Leave it out, or choose another measure.",
        )
    return made()


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

    ``measure`` says which D: an object of :mod:`stirred.loss.worst_pairs`, or the name of one with its ``parameter``:
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
    powers_of_pairs(matrix, first, second, asked[order], powers, at)
    back = np.argsort(order, kind="stable")
    powers, at = powers[back], at[back]
    chosen = [np.where(at >= 0, index[at], -1) if len(index) else at for index in (first, second)]
    return WorstPowers(asked, powers, *chosen)


# -- searches ------------------------------------------------------------------------------------------------


def _multiplicative(rows: Array, pairs: _Pairs) -> Array:
    return _filled(multiplicative_of_pairs, _logs(rows), pairs)


def _approximate(rows: Array, pairs: _Pairs, delta: float) -> Array:
    """D_Mult^delta / distance of pairs of which at least the worst is right; the others may be told as 0."""
    if delta == 0:
        return _multiplicative(rows, pairs) / pairs.distances

    def values(some: _Pairs, best: float) -> Array:
        found = _filled(approximate_of_pairs, rows, some, some.distances, delta, best)
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
        return _filled(renyi_orders.renyi_of_pairs, rows, some, x) / some.distances

    if len(pairs) <= FEW_PAIRS:
        return int(np.argmax(exactly(np.arange(len(pairs)), 0.0)))
    logs = _logs(rows)
    impossible = impossible_pairs(rows)[pairs.first, pairs.second]
    if bool(np.any(impossible)):
        return int(np.argmax(impossible))
    if math.isinf(x):
        return int(np.argmax(_filled(largest_of_pairs, logs, pairs) / pairs.distances))
    estimates, error = all_renyi(rows, logs, x)
    upper = estimates[pairs.first, pairs.second] + error
    unknown = np.flatnonzero(~np.isfinite(upper))
    upper[unknown] = _filled(largest_of_pairs, logs, pairs.take(unknown))
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
        pairs = pairs.take(_filled(between_of_pairs, between, pairs) == 0)
    largest = _multiplicative(rows, pairs)
    if len(pairs) > FEW_PAIRS:
        lower, upper = bound_normalised_renyi(rows, _logs(rows), pairs.first, pairs.second, largest)
        start = int(np.argmax(lower / pairs.distances))
    else:
        upper = np.minimum(largest / math.sqrt(2), np.sqrt(largest))
        start = int(np.argmax(largest / pairs.distances))

    def exactly(at: NDArray[np.int64], best: float) -> Array:
        some = pairs.take(at)
        most = max(LEAST_ORDERS, min(renyi_orders.MOST_TERMS, TERMS_AT_ONCE // len(at)) // rows.shape[1])
        return _filled(renyi_orders.suprema_of_pairs, rows, some, some.distances, best, most)

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
    return np.asarray(_filled(same_of_pairs, rows, pairs, SAME) == 1)


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
        with thread_pool() as pool:
            list(pool.map(fill, pieces))
    return result


# -- kernels --------------------------------------------------------------------------------------------------


@kernel
def multiplicative_of_pairs(logs, first, second, result):  # type: ignore[no-untyped-def]
    """The largest |ln p - ln q|, given logarithms; (-inf) - (-inf) is not a number and never the largest."""
    outputs = logs.shape[1]
    whole = outputs - outputs % 4
    for k in range(len(first)):
        p = logs[first[k]]
        q = logs[second[k]]
        a = b = c = d = 0.0  # four maxima at a time, as each waits for its own last comparison
        for i in range(0, whole, 4):
            w = abs(p[i] - q[i])
            x = abs(p[i + 1] - q[i + 1])
            y = abs(p[i + 2] - q[i + 2])
            z = abs(p[i + 3] - q[i + 3])
            a = w if w > a else a
            b = x if x > b else b
            c = y if y > c else c
            d = z if z > d else d
        for i in range(whole, outputs):
            w = abs(p[i] - q[i])
            a = w if w > a else a
        result[k] = max(max(a, b), max(c, d))


@kernel
def largest_of_pairs(logs, first, second, result):  # type: ignore[no-untyped-def]
    """The largest ln p - ln q, one direction: the Rényi divergence of order infinity, which few ask for."""
    for k in range(len(first)):
        p = logs[first[k]]
        q = logs[second[k]]
        largest = 0.0
        for i in range(len(p)):
            w = p[i] - q[i]
            largest = w if w > largest else largest
        result[k] = largest


@kernel
def total_variation_of_pairs(rows, first, second, result):  # type: ignore[no-untyped-def]
    """Half the sum of |p - q|."""
    outputs = rows.shape[1]
    whole = outputs - outputs % 4
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        a = b = c = d = 0.0
        for i in range(0, whole, 4):
            a += abs(p[i] - q[i])
            b += abs(p[i + 1] - q[i + 1])
            c += abs(p[i + 2] - q[i + 2])
            d += abs(p[i + 3] - q[i + 3])
        for i in range(whole, outputs):
            a += abs(p[i] - q[i])
        result[k] = ((a + b) + (c + d)) / 2


@kernel
def _smallest_factor(p, q, delta, enough, factor):  # type: ignore[no-untyped-def]
    """The smallest c >= ``factor`` with P(S) <= c Q(S) + delta for every S, one direction.

    The sum of max(p - c q, 0) is convex and falls with c, a polygon. Newton's steps from below, c = (P(S) - delta)/Q(S)
    with S = {p > c q}, never pass its root and reach it after as many steps as they meet edges: a handful.
    """
    while True:
        mass = 0.0
        other = 0.0
        for i in range(len(p)):
            if p[i] > factor * q[i]:
                mass += p[i]
                other += q[i]
        if mass <= enough:
            return factor
        if other == 0:
            return np.inf
        higher = (mass - delta) / other
        if not higher > factor * (1 + 1e-15):
            return factor
        factor = higher


@kernel
def approximate_of_pairs(rows, first, second, distances, delta, best, result):  # type: ignore[no-untyped-def]
    """D_Mult^delta / distance where it exceeds ``best``, the largest met so far; else 0.

    A pair that is not the worst is passed over after one look at each direction. Not a number: left to the caller.
    """
    enough = delta * (1 + ROUNDING)
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        least = math.exp(min(best * distances[k], OVERFLOW))
        factor = _smallest_factor(q, p, delta, enough, _smallest_factor(p, q, delta, enough, least))
        result[k] = 0.0
        if factor > least and factor > 1 + ROUNDING:
            if np.isinf(factor) or math.log(factor) < OVERFLOW:
                best = math.log(factor) / distances[k]
                result[k] = best
            else:
                result[k] = np.nan


@kernel
def same_of_pairs(rows, first, second, rounding, result):  # type: ignore[no-untyped-def]
    """Whether two rows are the same distribution up to rounding."""
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        result[k] = True
        for i in range(len(p)):
            if abs(p[i] - q[i]) > rounding * max(p[i], q[i]):
                result[k] = False
                break


@kernel
def between_of_pairs(distances, first, second, result):  # type: ignore[no-untyped-def]
    """Whether some third row h lies between: d(i, h) + d(h, j) <= d(i, j), both smaller, for symmetric distances."""
    for k in range(len(first)):
        i = distances[first[k]]
        j = distances[second[k]]
        whole = i[second[k]]
        result[k] = False
        for h in range(len(i)):
            if i[h] + j[h] <= whole and i[h] < whole and j[h] < whole:
                result[k] = True
                break


@kernel
def powers_of_pairs(rows, first, second, levels, powers, at):  # type: ignore[no-untyped-def]
    """Raise ``powers`` to the largest power of any pair at each of the increasing ``levels``; ``at`` says whose."""
    outputs = rows.shape[1]
    ratios = np.empty(outputs)
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        power = 0.0
        for i in range(outputs):
            if p[i] > 0:
                ratios[i] = -q[i] / p[i]
            else:
                ratios[i] = -np.inf
                power += q[i]
        order = np.argsort(ratios)
        level = 0.0
        step = 0
        for g in range(len(levels)):
            while step < outputs and (p[order[step]] == 0 or level + p[order[step]] <= levels[g]):
                if p[order[step]] > 0:
                    level += p[order[step]]
                    power += q[order[step]]
                step += 1
            reached = power
            if step < outputs:
                reached += (levels[g] - level) * q[order[step]] / p[order[step]]
            if min(1.0, reached) > powers[g]:
                powers[g] = min(1.0, reached)
                at[g] = k
