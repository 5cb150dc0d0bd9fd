"""The parts of the fit and of rounding: projections, orders of sweeps, where numbers lie, flows of least cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from stirred.topdown.data.histograms import Histograms
from stirred.topdown.fitting import level_problem
from stirred.topdown.fitting.fit_kernel import CLOSED, _key, _project, _shuffle
from stirred.topdown.fitting.rounding_kernel import Network, cheapest_flow
from strategies import Draws


def by_sorting(target: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The projection on the simplex by the textbook: sort, and find how many stay positive."""
    ordered = np.sort(target)[::-1]
    thresholds = (np.cumsum(ordered) - total) / np.arange(1, len(target) + 1)
    return np.maximum(target - thresholds[np.flatnonzero(ordered > thresholds)[-1]], 0)


@settings(deadline=None)
@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=30),
    st.integers(1, 50),
    st.floats(-100, 100),
    st.sampled_from([1.0, 0.1, 1 / 3, 1e6]),
)
def test_projection_is_that_by_sorting_from_any_start(
    numbers: list[int], total: int, start: float, unit: float
) -> None:
    """Integers times a unit have ties, which rounding errors could make the method chase for ever."""
    target = np.array(numbers, dtype=np.float64) * unit
    out = np.empty_like(target)
    for threshold in (start * unit, 0.5 * CLOSED):
        _project(target, np.ones_like(target), np.int64(total), threshold, False, out)
        exact = 1e-12 * (total + np.abs(target).sum())  # what rounding leaves
        assert np.allclose(out, by_sorting(target, total), rtol=0, atol=exact)
        assert out.min() >= 0 and out.sum() == pytest.approx(total, abs=exact)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), min_size=1, max_size=20), st.integers(1, 50))
def test_projection_ignores_closed_entries(entries: list[tuple[int, bool]], total: int) -> None:
    target = np.array([value if opened else CLOSED for value, opened in entries], dtype=np.float64)
    opened = np.array([opened for _, opened in entries])
    out = np.empty_like(target)
    _project(target, np.ones_like(target), np.int64(total), 0.0, False, out)
    assert np.all(out[~opened] == 0)
    if opened.any():
        assert np.allclose(out[opened], by_sorting(target[opened], total))


def test_projection_of_a_root_is_the_positive_part() -> None:
    out = np.empty(3)
    _project(np.array([2.5, -1.0, CLOSED]), np.ones(3), np.int64(1), 0.0, True, out)
    assert out.tolist() == [2.5, 0, 0]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 10)), min_size=1, max_size=20),
    st.integers(1, 50),
    st.floats(-100, 100),
)
def test_projection_in_a_metric_meets_its_optimality_conditions(
    entries: list[tuple[int, int]], total: int, start: float
) -> None:
    """Weight times distance is the same for all entries that stay positive, and no larger for the others."""
    target = np.array([value for value, _ in entries], dtype=np.float64)
    metric = np.array([size for _, size in entries], dtype=np.float64)
    metric /= metric.max()
    out = np.empty_like(target)
    for threshold in (start, 0.5 * CLOSED):
        _project(target, metric, np.int64(total), threshold, False, out)
        pull = (target - out) / metric
        positive = out > 1e-9
        assert out.min() >= 0 and out.sum() == pytest.approx(total)
        assert np.ptp(pull[positive]) < 1e-8 and pull[~positive].max(initial=-np.inf) <= pull[positive].min() + 1e-8


def test_orders_are_fresh_permutations_that_depend_on_the_histogram() -> None:
    cells, counts = np.arange(50, dtype=np.int32), np.arange(1, 51)
    state = _key(cells, counts, 3)
    assert len({int(_key(cells, counts, 3)), int(_key(cells, counts, 4)), int(_key(cells, counts + 1, 3))}) == 3
    order = np.arange(50)
    seen = set()
    for _ in range(100):
        state = _shuffle(order, state)
        assert sorted(order.tolist()) == list(range(50))
        seen.add(tuple(order.tolist()))
    assert len(seen) == 100


def test_every_order_of_three_cells_is_about_as_frequent() -> None:
    """6,000 orders: a count outside 1,000 +- 240 has probability below 1e-14 if they are uniform."""
    order, state, found = np.arange(3), np.uint64(7), dict[tuple[int, ...], int]()
    for _ in range(6000):
        state = _shuffle(order, state)
        found[tuple(order.tolist())] = found.get(tuple(order.tolist()), 0) + 1
    assert len(found) == 6 and all(abs(count - 1000) < 240 for count in found.values())


@settings(deadline=None)
@given(st.data())
def test_values_are_gathered_to_the_groups_that_occur(data: st.DataObject) -> None:
    rng = Draws(data)
    parents = Histograms.from_dense(rng.poisson(0.7, size=(4, 6)))
    first_child = np.concatenate([[0], np.cumsum(rng.integers(1, 4, size=4))])
    groups = rng.integers(-1, 4, size=(2, 6)).astype(np.int32)
    first, last = sorted(rng.permutation(np.arange(5))[:2])
    starts = parents.starts[first : last + 1]
    cells = parents.cells[starts[0] : starts[-1]]
    children = first_child[first : last + 1]
    rows = np.empty((len(cells), 2), dtype=np.int32)
    row_starts = np.zeros((last - first, 3), dtype=np.int64)
    row_groups = np.empty(2 * len(cells), dtype=np.int32)
    count = level_problem.lay_out(starts, cells, groups, rows, row_starts, row_groups)
    sizes = (row_starts[:, 2] - row_starts[:, 0]) * np.diff(children)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.full(int(offsets[-1]), np.nan)
    values = [rng.integers(0, 99, size=(int(first_child[-1]), 4)) for _ in range(2)]
    for family in range(2):
        level_problem.gather(values[family], family, row_starts, row_groups, children, offsets, -1.0, out)
    for parent in range(last - first):
        width = children[parent + 1] - children[parent]
        block = out[offsets[parent] : offsets[parent + 1]].reshape(-1, width)
        for j in range(starts[parent] - starts[0], starts[parent + 1] - starts[0]):
            for family in range(2):
                group = groups[family, cells[j]]
                if group < 0:
                    assert rows[j, family] == -1
                else:
                    expected = -values[family][children[parent] : children[parent + 1], group]
                    assert np.array_equal(block[rows[j, family]], expected)
    met = sum(
        len({g for g in groups[f, cells[starts[p] - starts[0] : starts[p + 1] - starts[0]]].tolist() if g >= 0})
        for p in range(last - first)
        for f in range(2)
    )
    assert count == met and not np.isnan(out).any()


@settings(deadline=None)
@given(st.data())
def test_flows_cost_what_a_linear_program_finds_least(data: st.DataObject) -> None:
    """Layers of nodes above the ground, arcs to any later layer, random excesses: half of them cannot be sent."""
    rng = Draws(data)
    nodes = int(rng.integers(2, 9))
    pairs = [(a, b) for a in range(1, nodes) for b in range(a) if rng.random() < 0.7]
    source, target = (np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2))
    arcs = len(pairs)
    capacity = rng.integers(0, 4, size=arcs)
    potential = rng.integers(-20, 20, size=nodes)
    cost = rng.integers(-20, 20, size=arcs)
    reduced = cost + potential[source] - potential[target] if arcs else cost
    flow = np.where(reduced < 0, capacity, np.where(reduced == 0, rng.integers(0, capacity + 1), 0))
    excess = rng.integers(-2, 3, size=nodes)
    excess[0] -= excess.sum()
    lonely = set[int]()  # at most one arc of a node is between its bounds to start with, as in a tree
    for arc in range(arcs):
        if 0 < flow[arc] < capacity[arc] and (source[arc] in lonely or excess[source[arc]] != 0):
            flow[arc] = 0
        elif 0 < flow[arc] < capacity[arc]:
            lonely.add(int(source[arc]))
    before = flow.copy()
    with_room = [np.append(one, np.zeros(nodes)).astype(np.int64) for one in (source, target, capacity, cost, flow)]
    network = Network(*with_room, np.zeros(arcs, dtype=np.int64))
    found = cheapest_flow(network, excess.copy(), potential)
    flow = network.flow[:arcs]
    incidence = np.zeros((nodes, arcs))
    for arc in range(arcs):
        incidence[source[arc], arc] += 1
        incidence[target[arc], arc] -= 1
    wanted = incidence @ before + excess
    oracle = (
        linprog(cost, A_eq=incidence, b_eq=wanted, bounds=np.stack([0 * capacity, capacity], axis=1)) if arcs else None
    )
    if oracle is None or oracle.x is None:
        assert not found or not excess.any()
        return
    assert found
    assert np.all(flow >= 0) and np.all(flow <= capacity) and np.array_equal(incidence @ flow, wanted)
    assert cost @ flow == pytest.approx(oracle.fun, abs=1e-6)
