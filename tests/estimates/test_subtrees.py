"""What subtrees tell, against dense least squares on all cells of all leaves, and what a fit gains by it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from gls_oracle import LEVELS, Dense, geography, people, plan_of, released
from scipy.optimize import nnls

from repeats import some_or
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.histograms import added_up
from stirred.topdown.fitting import subtrees
from stirred.topdown.fitting.level_problem import LevelProblem
from stirred.topdown.fitting.one_level import fit_level
from stirred.topdown.fitting.subtrees import Subtrees, whole_design
from stirred.topdown.fitting.table_fit import BY_LEVEL, LEAST_SQUARES, TOO_WIDE, fit_table, way_of_fit

ATTRIBUTES = {"sex": ["f", "m"], "age": ["0", "1", "2", "3"]}
RECODES = {"adult": ("age", {"no": ["0", "1", "2"], "yes": ["3"]})}
QUERIES = [[], ["sex"], ["adult"], ["sex", "age"]]
SHARES = [[4, 1, 2, 1], [3, 1, 2, 2], [2, 1, 1, 4]]
UNEVEN = [[2, 1, 4], [3, 1]]

PLANS = [
    pytest.param({"recodes": {}, "queries": [[], ["sex"], ["age"], ["sex", "age"]]}, id="plain"),
    pytest.param({}, id="a recode"),
    pytest.param({"invariants": [("state", []), ("county", ["sex"])]}, id="invariants"),
    pytest.param({"invariants": [("town", [])]}, id="an invariant of the leaves"),
    pytest.param({"shares": [[1, 0, 0, 0], [0, 1, 1, 1], [1, 0, 1, 2]]}, id="queries of some levels only"),
]


def made(folder, *, sizes=UNEVEN, number=4_000, seed=1, rho="1/2", **changed):
    chosen = {"attributes": ATTRIBUTES, "recodes": RECODES, "queries": QUERIES, "shares": SHARES, "rho": rho, **changed}
    plan, places = plan_of(**chosen), geography(sizes)
    persons = people(places, ATTRIBUTES, number, np.random.default_rng(seed))
    counted, release = released(folder, plan, places, persons, seed)
    return counted, release


def up(counted, release):
    table = counted.plan.table("persons")
    design = whole_design(counted.plan, counted.spine, table)
    return Subtrees.of(table, design, release.exact, release.measurements)


@pytest.fixture
def all_leaves(monkeypatch):
    """Leaves are read however little they tell."""
    monkeypatch.setattr(subtrees, "WORTH_READING", 0.0)


@pytest.mark.parametrize("changed", PLANS)
@pytest.mark.parametrize("chunk", [1, 1 << 24])
def test_at_the_root_subtrees_tell_the_best_unbiased_values(changed, chunk, tmp_path, monkeypatch, all_leaves):
    monkeypatch.setattr(subtrees, "CHUNK", chunk)  # with 1 every level lies in a file, and units come one by one
    counted, release = made(tmp_path, **changed)
    dense = Dense(counted, release)
    values, variances, _ = dense.answer(dense.forms(0, tuple(ATTRIBUTES), {}))
    assert np.isfinite(variances).all()
    assert np.allclose(up(counted, release).values[0].ravel(), values, atol=1e-6)


@pytest.mark.parametrize("changed", PLANS)
def test_below_a_fitted_parent_the_fit_is_that_of_all_measurements_below_it(changed, tmp_path, all_leaves):
    """Counts are so large that no bound of zero binds. The towns of counties are alike, so weights are exact."""
    counted, release = made(tmp_path, number=40_000, **changed)
    found, _ = fitted_below(counted, release)
    assert np.allclose(found, dense_below(Dense(counted, release), counted.plan), atol=0.05)


def fitted_below(counted, release, level=1):
    """Real values of counties that add up to the true states, and the problem they solve."""
    plan, spine = counted.plan, counted.spine
    table = plan.table("persons")
    here = Known(plan, spine, release.exact).kept(table, level)
    units = slice(0, spine.units(level))
    told, _ = up(counted, release).measured(level, units, ())
    above = counted.histograms("persons", level - 1)
    problem = LevelProblem(
        above, spine.first_child[level - 1], table.schema_of.cells, tuple(told.values()), here.allowed, here.bounds
    )
    fit = fit_level(problem, gap=1e-9)
    assert fit.converged.all()
    dense = np.zeros((units.stop, table.schema_of.cells))
    support = problem.support
    for parent in range(support.units):
        cells = support.cells[support.starts[parent] : support.starts[parent + 1]]
        first, last = problem.first_child[parent : parent + 2]
        values = fit.values[fit.starts[parent] : fit.starts[parent + 1]].reshape(len(cells), last - first)
        dense[first:last, cells] = values.T
    return dense, problem


def dense_below(oracle, plan):
    """The counties by least squares of what is measured of them and of towns, given the true states and invariants."""
    spine, names = oracle.counted.spine, tuple(ATTRIBUTES)
    below = np.concatenate(
        [np.full(one.units * one.cells, one.level != "state") for one in oracle.release.measurements.entries]
    )
    scale = 1 / np.sqrt(oracle.variances[below])
    matrix, values = oracle.matrix[below] * scale[:, None], oracle.values[below] * scale
    equations, right = [oracle.rows(0, names)], [oracle.truth(0, names).ravel()]
    for one, given in zip(plan.invariants, oracle.release.exact, strict=True):
        equations.append(oracle.rows(spine.levels.index(one.level), one.by))
        right.append(given.ravel())
    fixed = np.vstack(equations)
    start = np.linalg.pinv(fixed) @ np.concatenate(right)
    _, singular, vectors = np.linalg.svd(fixed)
    free = vectors[int((singular > 1e-9).sum()) :].T
    leaves = start + free @ np.linalg.lstsq(matrix @ free, values - matrix @ start, rcond=1e-10)[0]
    return (oracle.rows(1, names) @ leaves).reshape(spine.units(1), -1)


def test_with_bounds_of_zero_no_integer_table_is_nearer_to_all_measurements(tmp_path, all_leaves):
    """Every division of a tiny state between two counties is tried; the towns below are as they fit best."""
    attributes = {"sex": ["f", "m"]}
    plan = plan_of(attributes, {}, [[], ["sex"]], [[1, 1], [1, 1], [1, 2]], rho="1/4")
    places = geography([[2, 3]])
    at_zero = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        counted, release = released(folder, plan, places, people(places, attributes, 6, rng), seed)
        oracle = Dense(counted, release)
        found, _ = fitted_below(counted, release)
        at_zero += int((found < 1e-6).sum())
        state = oracle.truth(0, ("sex",))[0]
        tables = [
            np.array([first, state - first])
            for first in itertools.product(*(range(number + 1) for number in state.tolist()))
        ]
        assert distance(oracle, found) <= min(distance(oracle, table) for table in tables) + 1e-6
    assert at_zero > 3  # or no bound was met


def distance(oracle, counties):
    """Half the weighted squares of all measurements below the root, towns being as near as they can be."""
    below = np.concatenate(
        [np.full(one.units * one.cells, one.level != "state") for one in oracle.release.measurements.entries]
    )
    scale = 1 / np.sqrt(oracle.variances[below])
    matrix, values = oracle.matrix[below] * scale[:, None], oracle.values[below] * scale
    fixed = oracle.rows(1, ("sex",))
    start = np.linalg.pinv(fixed) @ np.ravel(counties)
    _, singular, vectors = np.linalg.svd(fixed)
    free = vectors[int((singular > 1e-9).sum()) :].T
    rest = values - matrix @ start
    rest = rest - matrix @ free @ np.linalg.lstsq(matrix @ free, rest, rcond=None)[0]
    return 0.5 * float(rest @ rest)


@pytest.mark.parametrize("changed", PLANS)
def test_weights_of_queries_are_near_the_covariance_also_where_subtrees_differ(changed, tmp_path, all_leaves):
    """States have counties of 2, 1 and 4 towns; the precision from below is then no sum of queries, but nearly one."""
    counted, release = made(tmp_path, **changed)
    oracle, tree = Dense(counted, release), up(counted, release)
    told, _ = tree.measured(0, slice(0, 2), ())
    gain = oracle.rows(0, tuple(ATTRIBUTES)) @ oracle.gain
    covariance = (gain * oracle.variances) @ gain.T
    for state in range(2):
        own = slice(8 * state, 8 * state + 8)
        matrices = [one.weight[state] * (one.groups[:, None] == one.groups) for one in told.values()]
        shares = np.linalg.eigvals(covariance[own, own] @ sum(matrices)).real
        shares = shares[shares > 1e-6]  # what invariants fix has no variance
        assert shares.min() > 0.75 and shares.max() < 1.25, shares


@pytest.mark.parametrize("by", [(), ("sex",)])
def test_in_a_first_pass_a_margin_weighs_what_all_measurements_tell_of_it(by, tmp_path, all_leaves):
    counted, release = made(tmp_path)
    oracle = Dense(counted, release)
    _, told = up(counted, release).measured(0, slice(0, 2), by)
    assert set(told) == {(), by}
    gain = oracle.rows(0, by) @ oracle.gain
    covariance = (gain * oracle.variances) @ gain.T
    groups = 2 ** len(by)
    for state in range(2):
        own = slice(groups * state, groups * state + groups)
        first = np.unique(oracle.schema.groups(by), return_index=True)[1]
        parts = [one.weight[state] * (one.groups[first][:, None] == one.groups[first]) for one in told.values()]
        assert np.allclose(covariance[own, own] @ sum(parts), np.eye(groups), atol=0.02)


def test_weights_are_those_of_nonnegative_least_squares():
    rng = np.random.default_rng(2)
    matrices = rng.normal(size=(20, 9, 4))
    aims = rng.normal(size=(20, 9))
    gram = np.einsum("kij,kil->kjl", matrices, matrices)
    found = subtrees._nonnegative(gram, np.einsum("kij,ki->kj", matrices, aims))
    exact = np.array([nnls(matrix, aim)[0] for matrix, aim in zip(matrices, aims, strict=True)])
    assert (exact == 0).any() and np.allclose(found, exact, atol=1e-4)
    assert subtrees._nonnegative(np.zeros((1, 2, 2)), np.zeros((1, 2))).tolist() == [[0, 0]]


# -- the whole fit -------------------------------------------------------------------------------------------


def both_ways(folder, counted, release):
    """The fitted counties, level by level and by least squares first, of the same measurements."""
    found = []
    for way in (BY_LEVEL, LEAST_SQUARES):
        plan = counted.plan.model_copy(update={"fit": way})
        table = plan.table("persons")
        leaves, reports = fit_table(Known(plan, counted.spine, release.exact), release.measurements, table)
        assert {report.way for report in reports} == {way}
        found.append(added_up(leaves, counted.spine.first_leaf(1)).dense(8))
    return found


@pytest.mark.repeats
def test_least_squares_first_is_nearer_to_the_truth_on_the_same_draws(tmp_path):
    """Fixed seeds. Counties with little budget above towns with much: in theory two thirds of the standard error."""
    errors = []
    for seed in range(some_or(5, 12)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shares = dict(zip(LEVELS, ("1/10", "2/10", "7/10"), strict=True))
        counted, release = made(folder, sizes=[[2] * 6, [3] * 6], seed=seed, level_shares=shares)
        truth = counted.histograms("persons", 1).dense(8)
        errors.append(
            [(np.abs(one - truth).mean(), np.abs((one - truth).sum(axis=1)).mean())
             for one in both_ways(folder, counted, release)]
        )  # fmt: skip
    by_level, first = np.mean(errors, axis=0)
    assert (first < 0.8 * by_level).all(), (by_level, first)


def test_leaves_that_tell_little_are_not_read(tmp_path, monkeypatch):
    def failing(*_):
        raise AssertionError("leaves are read")

    shares = dict(zip(LEVELS, ("1/3", "32/50", "2/75"), strict=True))
    counted, release = made(tmp_path, sizes=[[3] * 4], level_shares=shares)
    monkeypatch.setattr("stirred.topdown.measuring.Measurements.stored_parts", failing)
    left_out = up(counted, release).values[0]
    monkeypatch.undo()
    monkeypatch.setattr(subtrees, "WORTH_READING", 0.0)
    assert np.abs(left_out - up(counted, release).values[0]).max() > 0
    counted, release = made(tmp_path, sizes=[[3] * 4])
    monkeypatch.undo()
    monkeypatch.setattr("stirred.topdown.measuring.Measurements.stored_parts", failing)
    with pytest.raises(AssertionError, match="leaves are read"):
        up(counted, release)


@pytest.mark.parametrize(
    ("place", "most"),
    [
        ("stirred.topdown.estimating.precision.LARGEST", 1),
        (f"{subtrees.__name__}.MOST_MATRICES", 9),
        ("stirred.margins.margin_blocks.Margin.of.__func__.__defaults__", (None, 3)),
    ],
)
def test_where_too_many_numbers_are_tied_together_levels_are_fitted_by_themselves(place, most, tmp_path, monkeypatch):
    counted, release = made(tmp_path)
    plan = counted.plan
    by_level = plan.model_copy(update={"fit": BY_LEVEL})
    monkeypatch.setattr(place, most)
    table = plan.table("persons")
    known = Known(plan, counted.spine, release.exact)
    leaves, reports = fit_table(known, release.measurements, table)
    assert {report.way for report in reports} == {TOO_WIDE} == {way_of_fit(plan, counted.spine, table)}
    same, reports = fit_table(replace(known, plan=by_level), release.measurements, table)
    assert {report.way for report in reports} == {BY_LEVEL} == {way_of_fit(by_level, counted.spine, table)}
    assert np.array_equal(leaves.cells, same.cells) and np.array_equal(leaves.counts, same.counts)
