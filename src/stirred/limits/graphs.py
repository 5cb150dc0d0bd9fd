"""Differential privacy as a Lipschitz condition on a graph of datasets (sections 5.2 and 5.3).

Datasets are the nodes, neighbours the edges, and the distance of two datasets is the length of a shortest path. It is
infinite across components, where nothing is promised. A mechanism is epsilon-DP if x -> P_x is epsilon-Lipschitz in the
multiplicative distance; equally, if every P_x' lies in the interval of measures of radius epsilon d(x, x') around P_x.

Keep in mind: neighbours decide (Theorem 5.3.5) only where the distance is that of paths, which
``is_path_metric`` tells. Holding an invariant by removing edges keeps it so; keeping the old distances between datasets
that agree on the invariant does not, and is the stronger promise where paths must leave the universe.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._lazy import later
from stirred.limits.distances import count, log_ratio_range
from stirred.loss import WorstPair
from stirred.loss.argument_checks import Number, non_negative, require_probabilities
from stirred.loss.worst_pairs import Multiplicative

sparse = later("scipy.sparse")
csgraph = later("scipy.sparse.csgraph")

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Datasets = Iterable[Hashable] | None
"""Some datasets of a graph; None means all."""

ROUNDING = 1e-12
"""A log ratio beyond its bound by a smaller part counts as within it."""


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class DatabaseGraph:
    """Datasets and their distances, a symmetric matrix that is infinite where two are not connected.

    Only a dataset itself is at distance 0: else nothing would be allowed between two different ones. To be at a finite
    distance is transitive (Definition 5.3.2).

    >>> graph = DatabaseGraph.of_edges("abcd", [("a", "b"), ("b", "c")])
    >>> graph.distance("a", "c"), graph.distance("a", "d"), graph.components
    (2.0, inf, (('a', 'b', 'c'), ('d',)))
    """

    datasets: tuple[Hashable, ...]
    distances: Array

    def __post_init__(self) -> None:
        names = tuple(self.datasets)
        matrix = np.array(self.distances, dtype=np.float64)
        if not names or len(set(names)) < len(names):
            raise errors.not_a_graph("there is no dataset, or one is listed twice")
        if matrix.shape != (len(names), len(names)):
            raise errors.not_a_graph(f"the matrix has shape {matrix.shape} and there are {len(names)} datasets")
        if not bool(np.all(matrix >= 0)) or bool(np.any(np.diag(matrix) != 0)):
            raise errors.not_a_graph("a distance is negative or not a number, or that of a dataset to itself is not 0")
        if not np.array_equal(matrix, matrix.T):
            raise errors.not_a_graph("the distances in the two directions differ")
        if np.count_nonzero(matrix == 0) > len(names):
            raise errors.not_a_graph("two different datasets are at distance 0")
        matrix.setflags(write=False)
        object.__setattr__(self, "datasets", names)
        object.__setattr__(self, "distances", matrix)
        joined = self.component_of[:, None] == self.component_of[None, :]
        if bool(np.any(np.isinf(matrix) & joined)):
            raise errors.not_a_graph("two datasets are infinitely far apart, and steps of finite length join them")

    # -- graphs ----------------------------------------------------------------------------------------------

    @classmethod
    def of_edges(cls, datasets: Iterable[Hashable], edges: Iterable[tuple[Hashable, Hashable]]) -> DatabaseGraph:
        """Any graph with edges of length one (Assumption 5.3.3)."""
        names = tuple(datasets)
        place = {name: number for number, name in enumerate(names)}
        pairs = [(place.get(a, -1), place.get(b, -1)) for a, b in edges]
        if any(min(pair) < 0 for pair in pairs):
            raise errors.not_a_graph("an edge leads to a dataset that is not listed")
        return cls(names, _paths(len(names), pairs))

    @classmethod
    def hamming(cls, values: Iterable[Hashable], records: int) -> DatabaseGraph:
        """All vectors of ``records`` values; neighbours differ in one record. The distance of bounded DP.

        >>> graph = DatabaseGraph.hamming((0, 1), 3)
        >>> len(graph.datasets), graph.diameter(), graph.radius((0, 0, 1))
        (8, 3.0, 3.0)
        """
        kinds = tuple(dict.fromkeys(values))
        names = tuple(itertools.product(kinds, repeat=count("records", records, 0)))
        codes = np.array(list(itertools.product(range(len(kinds)), repeat=records)), dtype=np.int64)
        apart = np.zeros((len(names), len(names)))
        for column in codes.T:
            apart += column[:, None] != column[None, :]
        return cls(names, apart)

    @classmethod
    def symmetric_difference(cls, values: Sequence[Hashable], most: int, least: int = 0) -> DatabaseGraph:
        """All multisets of ``least`` to ``most`` values, as sorted tuples; a neighbour has one record more or fewer.
        The distance of unbounded DP.

        >>> DatabaseGraph.symmetric_difference("ab", 2).diameter()
        4.0
        """
        kinds = list(dict.fromkeys(values))
        sizes = range(count("least", least, 0), count("most", most, 0) + 1)
        names = [name for size in sizes for name in itertools.combinations_with_replacement(kinds, size)]
        place = {name: number for number, name in enumerate(names)}
        order = {kind: number for number, kind in enumerate(kinds)}
        pairs = []
        for name in names:
            for kind in kinds:
                larger = tuple(sorted((*name, kind), key=order.__getitem__))
                if larger in place:
                    pairs.append((place[name], place[larger]))
        return cls(tuple(names), _paths(len(names), pairs))

    def holding(self, invariant: Callable[[Hashable], Hashable]) -> DatabaseGraph:
        """The graph without the edges between datasets that differ in the invariant; paths go round or not at all.

        >>> cube = DatabaseGraph.hamming((0, 1), 3)
        >>> len(cube.holding(lambda x: x[0]).components), len(cube.holding(sum).components)
        (2, 8)
        """
        first, second = np.nonzero(np.triu((self.distances == 1) & self._agree(invariant)))
        return replace(self, distances=_paths(len(self.datasets), list(zip(first, second, strict=True))))

    def within(self, invariant: Callable[[Hashable], Hashable]) -> DatabaseGraph:
        """The same distances between datasets that agree on the invariant, infinite ones between others.

        >>> given_total = DatabaseGraph.hamming((0, 1), 3).within(sum)
        >>> len(given_total.components), given_total.is_path_metric
        (4, False)
        """
        return replace(self, distances=np.where(self._agree(invariant), self.distances, math.inf))

    def _agree(self, invariant: Callable[[Hashable], Hashable]) -> Mask:
        held: dict[Hashable, int] = {}
        codes = np.array([held.setdefault(invariant(name), len(held)) for name in self.datasets])
        return np.asarray(codes[:, None] == codes[None, :])

    # -- questions -------------------------------------------------------------------------------------------

    @property
    def is_path_metric(self) -> bool:
        """Assumption 5.3.3: every distance is the number of edges of a shortest path of neighbours."""
        first, second = np.nonzero(np.triu(self.distances == 1))
        return np.array_equal(self.distances, _paths(len(self.datasets), list(zip(first, second, strict=True))))

    @cached_property
    def component_of(self) -> NDArray[np.int64]:
        """For each dataset the number of its component."""
        return _labels(self.distances)

    @property
    def components(self) -> tuple[tuple[Hashable, ...], ...]:
        """The classes [x] of datasets at a finite distance from each other (Definition 5.3.2)."""
        found: dict[int, list[Hashable]] = {}
        for name, number in zip(self.datasets, self.component_of, strict=True):
            found.setdefault(int(number), []).append(name)
        return tuple(tuple(members) for members in found.values())

    def distance(self, first: Hashable, second: Hashable) -> float:
        """How far apart two datasets are."""
        a, b = self.places([first, second])
        return float(self.distances[a, b])

    def radius(self, centre: Hashable, among: Datasets = None) -> float:
        """d_*(x_*), the largest distance of some datasets from ``centre``."""
        return float(np.max(self.distances[self.places([centre])[0], self.places(among)]))

    def diameter(self, among: Datasets = None) -> float:
        """d_**, the largest distance of two of some datasets."""
        at = self.places(among)
        return float(np.max(self.distances[np.ix_(at, at)]))

    def between(self, first: Datasets, second: Datasets) -> float:
        """d_**, the largest distance of a dataset of the first set from one of the second (Theorem 5.5.1)."""
        return float(np.max(self.distances[np.ix_(self.places(first), self.places(second))]))

    def is_connected(self, among: Datasets = None) -> bool:
        """Whether all pairs are at a finite distance."""
        return self.diameter(among) < math.inf

    def require_connected(self, what: str, among: Datasets = None) -> None:
        """Refuse datasets of several components."""
        at = self.places(among)
        if len(at) and np.any(self.component_of[at] != self.component_of[at[0]]):
            raise errors.LimitsError(
                "not-connected",
                f"{what} fall into {len(set(self.component_of[at].tolist()))} components at infinite distance from "
                "each other: nothing bounds what the output tells about which of them holds the data.",
                "Ask about one component at a time; publishing which one it is costs no privacy loss.",
            )

    def places(self, among: Datasets) -> NDArray[np.intp]:
        """Where datasets stand in the list."""
        if among is None:
            return np.arange(len(self.datasets))
        found = np.array([self._place.get(name, -1) for name in among], dtype=np.intp)
        if len(found) == 0 or bool(np.any(found < 0)):
            raise errors.not_in_graph("any of them" if len(found) == 0 else "some of these datasets")
        return found

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {name: number for number, name in enumerate(self.datasets)}


# -- mechanisms on a graph -----------------------------------------------------------------------------------


@brief
@dataclass(frozen=True)
class Membership:
    """Whether every P_x' lies in the interval of measures around every P_x; else a pair and an output that tell."""

    holds: bool
    first: Hashable | None = None
    second: Hashable | None = None
    log_ratio: float = 0.0
    allowed: float = math.inf


@refuses_wrong_arguments
def in_intervals(rows: ArrayLike, graph: DatabaseGraph, epsilon: Number) -> Membership:
    """Whether a mechanism is epsilon-DP: P_x' in I(e^(-epsilon d) P_x, e^(epsilon d) P_x) for all pairs at a finite
    distance d (Theorem 5.3.5, III). ``rows`` holds P_x for each dataset of the graph, in its order.

    >>> pair = DatabaseGraph.of_edges("ab", [("a", "b")])
    >>> in_intervals([[0.75, 0.25], [0.25, 0.75]], pair, math.log(3)).holds
    True
    >>> in_intervals([[1, 0], [0.5, 0.5]], pair, 5)
    Membership(holds=False, first='a', second='b', log_ratio=inf, allowed=5.0)
    """
    matrix, e = mechanism(rows, graph), non_negative("epsilon", epsilon)
    for number, row in enumerate(matrix):
        connected = np.flatnonzero(np.isfinite(graph.distances[number]))
        apart = graph.distances[number, connected]
        allowed = np.where(apart > 0, e, 0.0) * np.where(apart > 0, apart, 1.0)
        lowest, highest = log_ratio_range(matrix[connected], row)
        ratios = np.maximum(-lowest, highest)
        # An infinite epsilon allows everything, also different supports.
        with np.errstate(invalid="ignore"):
            beyond = (ratios > allowed + ROUNDING * np.maximum(1.0, allowed)) & np.isfinite(allowed)
        if bool(np.any(beyond)):
            worst = int(np.flatnonzero(beyond)[np.argmax(ratios[beyond])])
            names = graph.datasets[number], graph.datasets[int(connected[worst])]
            return Membership(False, *names, float(ratios[worst]), float(allowed[worst]))
    return Membership(True)


@refuses_wrong_arguments
def privacy_loss(rows: ArrayLike, graph: DatabaseGraph, neighbours_only: bool = False) -> WorstPair:
    """The smallest epsilon for which a mechanism is epsilon-DP, and the pair that attains it (Definition 5.2.1).

    Over all pairs at a finite distance, or neighbours alone, which is the same for a path metric. Pairs that are not
    connected do not count: where there are no others the loss of any mechanism is 0.
    """
    matrix = mechanism(rows, graph)
    distances = np.where(graph.distances == 1, 1.0, math.inf) if neighbours_only else graph.distances
    return Multiplicative().worst_pair(matrix, distances)


@refuses_wrong_arguments
def depends_on_component_only(rows: ArrayLike, graph: DatabaseGraph) -> bool:
    """Whether P_x is a function of [x]: equally, whether the privacy loss is 0 (Proposition 15)."""
    return in_intervals(rows, graph, 0).holds


@refuses_wrong_arguments
def with_component(rows: ArrayLike, graph: DatabaseGraph) -> Array:
    """The mechanism that also publishes [x], at the same privacy loss (Proposition 16): its outputs are pairs of a
    component and an output, components first."""
    matrix = mechanism(rows, graph)
    labels = graph.component_of
    wide = np.zeros((len(matrix), int(labels.max()) + 1, matrix.shape[1]))
    wide[np.arange(len(matrix)), labels] = matrix
    return wide.reshape(len(matrix), -1)


def mechanism(rows: ArrayLike, graph: DatabaseGraph) -> Array:
    """One distribution for each dataset of the graph."""
    matrix = np.asarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) != len(graph.datasets):
        raise errors.analysis_does_not_fit("the mechanism does not have one row for each dataset of the graph")
    require_probabilities("A row of the mechanism", matrix)
    return matrix


# -- helpers -------------------------------------------------------------------------------------------------


def _paths(size: int, pairs: Sequence[tuple[int, int]]) -> Array:
    """Lengths of shortest paths along edges of length one."""
    first, second = (np.array(end, dtype=np.intp) for end in (zip(*pairs, strict=True) if pairs else ((), ())))
    edges = sparse.csr_matrix((np.ones(len(first)), (first, second)), shape=(size, size))
    result: Array = csgraph.shortest_path(edges, directed=False, unweighted=True)
    np.fill_diagonal(result, 0.0)
    return result


def _labels(distances: Array) -> NDArray[np.int64]:
    _, labels = csgraph.connected_components(sparse.csr_matrix(np.isfinite(distances)), directed=False)
    return np.asarray(labels, dtype=np.int64)
