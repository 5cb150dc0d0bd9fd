"""Graphs of datasets: distances by definition, components, and differential privacy as membership in intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from limit_cases import geometric_rows, path, random_graph, response_rows
from stirred.lab.limits.measure_intervals import MeasureInterval
from stirred.limits import (
    DatabaseGraph,
    depends_on_component_only,
    in_intervals,
    multiplicative_distance,
    privacy_loss,
    with_component,
)


def loss_by_definition(rows, graph):
    """The pseudo-code: the largest D_MULT / d over pairs at a finite distance."""
    apart = multiplicative_distance(rows[:, None, :], rows[None, :, :])
    counts = np.isfinite(graph.distances) & (graph.distances > 0)
    return float(np.max(apart[counts] / graph.distances[counts], initial=0.0))


def random_rows(rng, graph, zeros=0.0):
    rows = rng.gamma(1, size=(len(graph.datasets), 4)) + 1e-3
    rows *= (rng.random((graph.component_of.max() + 1, 4)) >= zeros)[graph.component_of] + 1e-300
    rows[:, 0] += 0.1
    rows = np.where(rows < 1e-200, 0.0, rows)
    return rows / rows.sum(axis=1, keepdims=True)


# -- distances -----------------------------------------------------------------------------------------------


def test_the_hamming_distance_counts_records_that_differ():
    graph = DatabaseGraph.hamming("abc", 3)
    for one, other in itertools.product(graph.datasets, repeat=2):
        assert graph.distance(one, other) == sum(a != b for a, b in zip(one, other, strict=True))
    assert graph.is_path_metric
    assert graph.is_connected()
    assert graph.diameter() == graph.radius(("a", "b", "c")) == 3


def test_the_symmetric_difference_counts_records_added_and_removed():
    graph = DatabaseGraph.symmetric_difference("abc", 4)
    for one, other in itertools.product(graph.datasets, repeat=2):
        first, second = Counter(one), Counter(other)
        assert graph.distance(one, other) == ((first - second) + (second - first)).total()
    assert graph.is_path_metric
    assert graph.radius(()) == 4
    assert graph.diameter() == 8


def test_distances_are_infinite_across_components():
    graph = DatabaseGraph.of_edges("abcde", [("a", "b"), ("c", "d"), ("d", "e")])
    assert graph.components == (("a", "b"), ("c", "d", "e"))
    assert graph.distance("a", "c") == graph.diameter() == graph.radius("a") == math.inf
    assert graph.diameter("cde") == graph.radius("c", "cde") == graph.between("c", "de") == 2
    assert not graph.is_connected()
    assert graph.is_connected("cd")


def test_invariants_are_missing_edges():
    cube = DatabaseGraph.hamming((0, 1), 3)
    held = cube.holding(lambda x: x[0])
    assert len(held.components) == 2
    assert held.distance((0, 0, 0), (0, 1, 1)) == 2
    assert held.is_path_metric
    # A total that is held fixed leaves no neighbours at all, though datasets with the same total are two records apart.
    assert all(len(component) == 1 for component in cube.holding(sum).components)
    within = cube.within(sum)
    assert within.distance((1, 0, 0), (0, 1, 0)) == 2
    assert within.distance((1, 0, 0), (1, 1, 0)) == math.inf
    assert not within.is_path_metric
    # A path inside the universe may be longer than the distance of its ends.
    ring = DatabaseGraph.of_edges(range(5), [(k, (k + 1) % 5) for k in range(5)])
    assert ring.holding(lambda x: x == 0).distance(1, 4) == 3
    assert ring.within(lambda x: x == 0).distance(1, 4) == 2


def test_components_and_distances_agree_on_random_graphs(rng):
    for _ in range(100):
        graph = random_graph(rng, int(rng.integers(1, 9)))
        same = graph.component_of[:, None] == graph.component_of[None, :]
        assert np.array_equal(same, np.isfinite(graph.distances))
        assert graph.is_path_metric


# -- mechanisms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("records", "epsilon"), [(1, 1), (3, 0.4), (4, 2)])
def test_randomised_response_has_loss_epsilon_and_protects_groups(records, epsilon):
    graph, rows = DatabaseGraph.hamming((0, 1), records), response_rows(records, epsilon)
    assert privacy_loss(rows, graph).ratio == pytest.approx(epsilon)
    ends = multiplicative_distance(rows[0], rows[-1])
    assert ends == pytest.approx(records * epsilon)


def test_theorem_5_3_5_the_forms_of_differential_privacy_are_equivalent(rng):
    for _ in range(150):
        graph = random_graph(rng, int(rng.integers(2, 7)))
        rows = random_rows(rng, graph, zeros=0.3)
        loss = loss_by_definition(rows, graph)
        assert privacy_loss(rows, graph).ratio == pytest.approx(loss, rel=1e-12)
        # II: neighbours decide, for a path metric.
        assert privacy_loss(rows, graph, neighbours_only=True).ratio == pytest.approx(loss, rel=1e-9)
        # III and IV: membership, at the loss and not below it.
        assert in_intervals(rows, graph, loss).holds
        assert loss == 0 or not in_intervals(rows, graph, loss * (1 - 1e-6)).holds
        for epsilon in (loss * 1.1, loss * 0.9):
            by_interval = all(
                MeasureInterval.around(rows[a], epsilon * graph.distances[a, b]).contains(rows[b])
                for a, b in np.argwhere(np.isfinite(graph.distances) & (graph.distances > 0))
            )
            assert in_intervals(rows, graph, epsilon).holds == by_interval


def test_neighbours_do_not_decide_where_the_distance_is_not_that_of_paths():
    # Within a fixed total nobody has a neighbour, and any mechanism would pass.
    graph = DatabaseGraph.hamming((0, 1), 2).within(sum)
    rows = response_rows(2, 1)
    assert privacy_loss(rows, graph, neighbours_only=True).ratio == 0
    assert privacy_loss(rows, graph).ratio == pytest.approx(1)


def test_supports_that_differ_are_infinitely_lossy_unless_unconnected():
    rows = [[1.0, 0.0], [0.5, 0.5]]
    assert privacy_loss(rows, path(1)).ratio == math.inf
    assert not in_intervals(rows, path(1), 100).holds
    assert in_intervals(rows, path(1), math.inf).holds
    apart = DatabaseGraph.of_edges((0, 1), [])
    assert privacy_loss(np.eye(2), apart).ratio == 0
    assert in_intervals(np.eye(2), apart, 0).holds
    # Vectors of different sizes are not connected in the Hamming distance.
    sizes = DatabaseGraph.of_edges([(0,), (1,), (0, 0)], [((0,), (1,))])
    assert privacy_loss(np.array([[1.0, 0], [1, 0], [0, 1]]), sizes).ratio == 0


def test_the_failing_pair_is_named():
    rows = geometric_rows(3, 0.7)
    found = in_intervals(rows, path(3), 0.5)
    assert not found.holds
    assert found.log_ratio > found.allowed == pytest.approx(0.5 * path(3).distance(found.first, found.second))


def test_proposition_15_no_loss_means_a_function_of_the_component(rng):
    for _ in range(100):
        graph = random_graph(rng, 6)
        by_component = rng.dirichlet(np.ones(3), graph.component_of.max() + 1)[graph.component_of]
        assert depends_on_component_only(by_component, graph)
        assert privacy_loss(by_component, graph).ratio == 0
        rows = random_rows(rng, graph)
        assert depends_on_component_only(rows, graph) == (privacy_loss(rows, graph).ratio == 0)


def test_proposition_16_publishing_the_component_costs_nothing(rng):
    for _ in range(100):
        graph = random_graph(rng, 6)
        rows = random_rows(rng, graph, zeros=0.2)
        more = with_component(rows, graph)
        assert more.sum(axis=1) == pytest.approx(1)
        assert privacy_loss(more, graph).ratio == pytest.approx(privacy_loss(rows, graph).ratio)
        for column in more.T:
            assert len(set(graph.component_of[column > 0])) <= 1
