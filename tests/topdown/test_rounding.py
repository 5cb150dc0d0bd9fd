"""Rounding: integers that keep every constraint, as near to the fit as branch and bound can find."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from level_oracle import Case, least_distance, quadratic, random_case, roots, sums, values_of
from numpy.typing import NDArray

from stirred import errors
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.fitting import one_level
from stirred.topdown.fitting.level_problem import UNBOUNDED, Allowed, Bounds, LevelProblem, Measured, nested
from stirred.topdown.fitting.one_level import REASONS, LevelFit, RoundingReport, fit_level, round_level
from stirred.topdown.fitting.rounding_kernel import FREED, IMPOSSIBLE, NEAREST, WIDENED, _sort
from strategies import Draws

TOTAL = np.zeros(2, dtype=np.int32)
EACH = np.arange(2, dtype=np.int32)


def entries(case_problem: LevelProblem, children: Histograms, parent: int) -> NDArray[np.int64]:
    """What the children got of the parent's cells, in the order of the fit's values."""
    support = case_problem.support
    cells = support.cells[support.starts[parent] : support.starts[parent + 1]]
    units = slice(case_problem.first_child[parent], case_problem.first_child[parent + 1])
    return children.dense(case_problem.cells)[units][:, cells].T.ravel()


def assert_kept(problem: LevelProblem, children: Histograms, report: RoundingReport) -> None:
    """Cells' sums, zeros and bounds are exact in every parent that was rounded."""
    table = children.dense(problem.cells)
    possible = report.stages != IMPOSSIBLE
    units = np.repeat(possible, np.diff(problem.first_child))
    if problem.parents is not None:
        added = np.add.reduceat(table, problem.first_child[:-1], axis=0)
        assert np.array_equal(added[possible], problem.parents.dense(problem.cells)[possible])
    for mask in problem.allowed:
        assert not table[units][~mask.allowed[units][:, mask.groups]].any()
    for bound in problem.bounds:
        found = sums(table, bound.groups)[units]
        assert np.all(found >= bound.lower[units]) and np.all(found <= bound.upper[units])
    assert not table[~units].any()


@given(st.data(), st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0.7, 3.0, 40.0]))
@settings(max_examples=40, deadline=None)
def test_integers_keep_everything_and_stay_within_one_at_the_least_distance(
    data: st.DataObject, masked: bool, bounded: bool, as_roots: bool, scale: float
) -> None:
    rng = Draws(data)
    case = random_case(
        rng, cells=int(rng.integers(2, 16)), scale=scale, masked=masked, bounded=bounded, as_roots=as_roots
    )
    problem = case.problem
    fit = fit_level(problem)
    children, report = round_level(problem, fit, case.chain)
    assert_kept(problem, children, report)
    assert not report.stages.any() and report.fallbacks == ()  # feasible by construction
    for parent in range(len(report.stages)):
        x, found = values_of(fit, parent), entries(problem, children, parent)
        snapped = np.where(np.abs(x - np.rint(x)) < 1e-6, np.rint(x), x)
        assert np.all(found >= np.floor(snapped)) and np.all(found <= np.ceil(snapped))
        assert np.abs(found - snapped).sum() == pytest.approx(report.distance[parent], abs=1e-5)
        best = least_distance(problem, fit, parent, case.chain)
        assert best is not None and np.abs(found - snapped).sum() == pytest.approx(best, abs=1e-7)
        support = problem.support
        cells = support.cells[support.starts[parent] : support.starts[parent + 1]]
        for groups in case.chain:
            for group in range(int(groups.max()) + 1):
                inside = groups[cells] == group
                width = int(np.diff(problem.first_child)[parent])
                fitted = x.reshape(-1, width)[inside].sum(axis=0)
                assert np.all(np.abs(found.reshape(-1, width)[inside].sum(axis=0) - fitted) < 1 + 1e-4)


@given(st.data(), st.booleans(), st.booleans())
@settings(max_examples=30, deadline=None)
def test_without_noise_the_truth_comes_back(data: st.DataObject, bounded: bool, as_roots: bool) -> None:
    kind = {"masked": True, "bounded": bounded, "as_roots": as_roots}
    case = random_case(Draws(data), parents=4, cells=10, scale=50, noise=0.0, **kind)
    children, report = round_level(case.problem, fit_level(case.problem), case.chain)
    assert np.array_equal(children.dense(10), case.truth) and report.distance.max() < 1e-9


def made_up(problem: LevelProblem, values: list[float]) -> LevelFit:
    """A fit with given values."""
    return replace(fit_level(problem, most_sweeps=1), values=np.array(values, dtype=np.float64))


def two_by_two(parent: tuple[int, int], *, low: list[list[int]], high: list[list[int]] | None = None) -> LevelProblem:
    """Two cells, two children, bounds on the children's totals."""
    each = Measured(EACH, 1.0, np.zeros((2, 2), dtype=np.int64))
    bound = Bounds(TOTAL, np.array(low), np.array(high or low))
    return LevelProblem(Histograms.from_dense(np.array([parent])), np.array([0, 2]), 2, (each,), bounds=(bound,))


def test_a_sum_just_below_its_bound_is_not_rounded_below_it() -> None:
    """A fitted total of 2.9995 under a lower bound of 3: the floor would be 2."""
    problem = two_by_two((3, 3), low=[[3], [0]], high=[[UNBOUNDED], [UNBOUNDED]])
    children, report = round_level(problem, made_up(problem, [1.4997, 1.5003, 1.4998, 1.5002]), (TOTAL,))
    assert report.stages[0] == NEAREST and children.totals().tolist() == [3, 3]


def test_a_sum_far_from_its_bound_is_rounded_from_the_bound() -> None:
    """A first total of 2.4 that must be 4: the others give way within their floors and ceilings."""
    each = Measured(EACH, 1.0, np.zeros((3, 2), dtype=np.int64))
    totals = Bounds(TOTAL, np.array([[4], [0], [0]]), np.array([[4], [UNBOUNDED], [UNBOUNDED]]))
    problem = LevelProblem(Histograms.from_dense(np.array([[9, 9]])), np.array([0, 3]), 2, (each,), bounds=(totals,))
    children, report = round_level(problem, made_up(problem, [1.2, 3.8, 4.0, 1.2, 3.9, 3.9]), (TOTAL,))
    assert report.stages[0] == NEAREST and children.dense(2).tolist() == [[2, 2], [3, 4], [4, 3]]


def test_almost_integers_are_integers() -> None:
    """The first child's total is 2 up to rounding errors: its ceiling is 2, though every entry would round up."""
    groups = np.arange(3, dtype=np.int32)
    each = Measured(groups, 1.0, np.zeros((2, 3), dtype=np.int64))
    problem = LevelProblem(Histograms.from_dense(np.ones((1, 3), dtype=int)), np.array([0, 2]), 3, (each,))
    for error in (-1e-8, 0.0, 1e-8):
        fit = made_up(problem, [0.6, 0.4, 0.6, 0.4, 0.8 + error, 0.2 - error])
        children, _ = round_level(problem, fit, (np.zeros(3, dtype=np.int32),))
        assert children.totals().tolist() == [2, 1]


def test_a_closed_entry_is_zero_whatever_was_fitted() -> None:
    problem = replace(two_by_two((3, 3), low=[[0], [0]]), bounds=())
    mask = Allowed(EACH, np.array([[False, True], [True, True]]))
    children, report = round_level(replace(problem, allowed=(mask,)), made_up(problem, [0.4, 2.6, 1.5, 1.5]), ())
    assert report.stages[0] == NEAREST and children.dense(2)[:, 0].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("total", "stage", "distance"),
    [
        (3, NEAREST, 2.0),
        (4, WIDENED, 3.2),
        (5, WIDENED, 5.2),
        (6, WIDENED, 7.2),
        (7, FREED, 9.2),
        (19, IMPOSSIBLE, 18.0),
    ],
)
def test_fallbacks_come_in_order_and_never_break_a_bound(total: int, stage: int, distance: float) -> None:
    """The first child's total is fixed further and further from its fit of 1.2 + 1.2; the two have 18 together."""
    problem = two_by_two((9, 9), low=[[total], [0]], high=[[total], [UNBOUNDED]])
    fit = made_up(problem, [1.2, 7.8, 1.2, 7.8])
    children, report = round_level(problem, fit, (EACH,))
    assert report.stages.tolist() == [stage]
    assert_kept(problem, children, report)
    assert report.distance[0] == pytest.approx(distance)
    assert report.fallbacks == (((0, REASONS[stage]),) if stage else ())
    assert report.infeasible.tolist() == ([0] if stage == IMPOSSIBLE else [])


def test_groups_of_the_chain_give_way_by_one_before_they_are_given_up() -> None:
    """The second child's total of 15.6 has to be 14 for the first one's to be 4, and 13 for 5."""
    for total, stage in ((3, NEAREST), (4, WIDENED), (5, FREED)):
        problem = two_by_two((9, 9), low=[[total], [0]], high=[[total], [UNBOUNDED]])
        _, report = round_level(problem, made_up(problem, [1.2, 7.8, 1.2, 7.8]), (TOTAL,))
        assert report.stages.tolist() == [stage]


@given(st.data(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_last_fallback_is_the_nearest_of_all_tables_that_keep_the_constraints(
    data: st.DataObject, as_roots: bool
) -> None:
    """By enumeration: two cells and two children, any fitted values however wrong, bounds on totals and on one cell."""
    rng = Draws(data)
    counts = rng.integers(1, 5, size=2)
    truth = np.array([[counts[0] - (a := rng.integers(0, counts[0] + 1)), 0], [a, 0]])
    truth[:, 1] = [counts[1] - (b := rng.integers(0, counts[1] + 1)), b]
    units = 2
    lower = np.maximum(truth.sum(axis=1, keepdims=True) - rng.integers(0, 2, size=(2, 1)), 0)
    upper = lower + rng.integers(0, 2, size=(2, 1))
    cell = np.array([-1, 0], dtype=np.int32)
    capped = Bounds(cell, np.zeros((units, 1), dtype=np.int64), rng.integers(0, 4, size=(units, 1)))
    each = Measured(EACH, 1.0, np.zeros((units, 2), dtype=np.int64))
    bounds = (Bounds(TOTAL, lower, upper), capped)
    if as_roots:
        problem = roots(2, units, (each,), (), bounds)
        values = rng.uniform(0, 6, size=(units, 2))
        fit = made_up(problem, values.ravel().tolist())
        fitted = values
    else:
        problem = LevelProblem(Histograms.from_dense(counts[None]), np.array([0, 2]), 2, (each,), (), bounds)
        shares = rng.uniform(0, 1, size=2)
        fitted = np.stack([counts * shares, counts * (1 - shares)])
        fit = made_up(problem, fitted.T.ravel().tolist())
    children, report = round_level(problem, fit, (TOTAL,))
    assert_kept(problem, children, report)
    best = np.full(1 if not as_roots else units, np.inf)
    for numbers in product(range(9 if as_roots else 5), repeat=4 if not as_roots else 2):
        table = np.array(numbers).reshape(-1, 2)
        if not as_roots and not np.array_equal(table.sum(axis=0), counts):
            continue
        for unit in range(units if as_roots else 1):
            rows = [unit] if as_roots else [0, 1]
            totals = table.sum(axis=1, keepdims=True)
            if np.all((totals >= lower[rows]) & (totals <= upper[rows]) & (table[:, 1:] <= capped.upper[rows])):
                best[unit] = min(best[unit], np.abs(table - fitted[rows]).sum())
    for parent, least in enumerate(best):
        assert (report.stages[parent] == IMPOSSIBLE) == np.isinf(least)
        if report.stages[parent] == FREED:
            assert report.distance[parent] == pytest.approx(least, abs=1e-6)
        elif report.stages[parent] != IMPOSSIBLE:
            assert report.distance[parent] >= least - 1e-6


def test_totals_fixed_blind_to_a_prison_are_reported_infeasible() -> None:
    """All persons of one child are in group quarters, which no other child has: its total decides theirs."""
    truth = np.array([[0, 90], [30, 0], [25, 0]])
    totals = np.array([[93], [28], [24]])  # 3 more in the prison than there are prisoners
    each = Measured(EACH, 1.0, truth)
    problem = LevelProblem(
        Histograms.from_dense(truth.sum(axis=0)[None]), np.array([0, 3]), 2, (each,),
        (Allowed(EACH, truth > 0),), (Bounds(TOTAL, totals, totals),),
    )  # fmt: skip
    fit = fit_level(problem)
    children, report = round_level(problem, fit, (TOTAL,))
    assert not fit.converged[0] and report.fallbacks == ((0, REASONS[IMPOSSIBLE]),)
    assert children.counts.sum() == 0
    freed = replace(problem, bounds=())  # what a caller does: totals as soft targets
    children, report = round_level(freed, fit_level(freed), (TOTAL,))
    assert children.dense(2).tolist() == truth.tolist() and report.infeasible.size == 0


def test_an_infeasible_parent_leaves_the_others_alone() -> None:
    case = random_case(np.random.default_rng(11), parents=6, cells=6, bounded=True)
    total = case.problem.bounds[0]
    wrong = total.lower.copy()
    wrong[case.problem.first_child[2]] += 1
    problem = replace(case.problem, bounds=(Bounds(total.groups, wrong, wrong), *case.problem.bounds[1:]))
    children, report = round_level(problem, fit_level(problem), case.chain)
    straight, _ = round_level(case.problem, fit_level(case.problem), case.chain)
    assert report.infeasible.tolist() == [2]
    units = case.problem.children_of(np.array([0, 1, 3, 4, 5]))
    assert np.array_equal(children.dense(6)[units], straight.dense(6)[units])


@pytest.mark.parametrize("bounded", [False, True])
def test_neither_threads_nor_chunks_nor_order_change_a_count(bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(np.random.default_rng(9), parents=25, cells=10, bounded=bounded)
    monkeypatch.setenv("STIRRED_THREADS", "1")
    straight, report = round_level(case.problem, fit_level(case.problem), case.chain)
    order = np.random.default_rng(1).permutation(25)
    monkeypatch.setenv("STIRRED_THREADS", "3")
    monkeypatch.setattr(one_level, "CHUNK_ENTRIES", 40)
    part = case.problem.of_parents(order)
    again, other = round_level(part, fit_level(part), case.chain)
    assert np.array_equal(again.dense(10), straight.dense(10)[case.problem.children_of(order)])
    assert np.array_equal(other.distance, report.distance[order])


def test_ties_go_to_the_first_child() -> None:
    problem = replace(two_by_two((1, 1), low=[[0], [0]]), bounds=())
    children, _ = round_level(problem, made_up(problem, [0.5, 0.5, 0.5, 0.5]), ())
    assert children.dense(2).tolist() == [[1, 1], [0, 0]]


def test_controlled_totals_differ_from_fitted_ones_by_less_than_one() -> None:
    """Without a chain the errors of single cells add up; with it they may not."""
    case: Case = random_case(np.random.default_rng(4), parents=20, cells=30, scale=2.0)
    fit = fit_level(case.problem)
    off = []
    for chain in ((), case.chain):
        children, _ = round_level(case.problem, fit, chain)
        fitted = np.concatenate(
            [values_of(fit, p).reshape(-1, w).sum(axis=0) for p, w in enumerate(np.diff(case.problem.first_child))]
        )
        off.append(np.abs(children.totals() - fitted).max())
    assert off[1] < 1 < off[0]


@pytest.mark.parametrize(
    ("chain", "bounds", "said"),
    [
        ([[0, 0, 1, 1], [0, 1, 0, 1]], [], "chain 0, chain 1|chain 1, chain 0"),
        ([[0, 0, 0, 0]], [[0, 0, 1, 1], [-1, 0, 0, -1]], "bounds 1, bounds 0"),
        ([[0, 0, 1, 1]], [[0, 0, 0, 0], [0, 1, 1, 2]], "bounds 1, chain 0"),
    ],
)
def test_groups_that_cross_are_refused_by_position(chain: list[list[int]], bounds: list[list[int]], said: str) -> None:
    families = tuple(np.array(groups, dtype=np.int32) for groups in bounds)
    zeros = [np.zeros((1, int(groups.max()) + 1), dtype=np.int64) for groups in families]
    with pytest.raises(errors.StirredError, match=said):
        nested(
            4,
            tuple(np.array(groups, dtype=np.int32) for groups in chain),
            tuple(Bounds(groups, zero, zero) for groups, zero in zip(families, zeros, strict=True)),
        )


def test_nested_groups_need_no_order() -> None:
    """Partitions may be given in any order, refine each other in parts only, and repeat."""
    one, two = np.array([0, 0, 1, 2], dtype=np.int32), np.array([0, 1, 2, 2], dtype=np.int32)
    nest = nested(4, (one, np.zeros(4, dtype=np.int32), two, one), ())
    assert nest.above.tolist() == [-1, 0, 0] and nest.leaves.tolist() == [1, 1, 2, 2]
    assert nest.in_chain.all() and (nest.columns == -1).all()


@settings(deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=40), st.integers(0, 5))
def test_sorting_is_stable(keys: list[int], first: int) -> None:
    array = np.array(keys, dtype=np.int64)
    first = min(first, len(keys))
    order, spare = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    _sort(array, first, len(keys), order, spare)
    expected = first + np.argsort(array[first:], kind="stable")
    assert order[: len(keys) - first].tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_larger_problems_are_rounded_at_the_least_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(
        rng, parents=2, cells=60, most_children=25, scale=2.0, masked=bool(seed % 2), bounded=bool(seed % 4 > 1)
    )
    fit = fit_level(case.problem)
    children, report = round_level(case.problem, fit, case.chain)
    assert fit.converged.all() and not report.stages.any()
    assert_kept(case.problem, children, report)
    for parent in range(2):
        best = least_distance(case.problem, fit, parent, case.chain)
        assert report.distance[parent] == pytest.approx(best, abs=1e-4)
        assert quadratic(case.problem, parent).root.shape[1] == len(values_of(fit, parent))


def test_what_is_compiled_beforehand_is_what_a_release_calls(tmp_path):
    """In a process of its own, so that no other test has compiled another signature."""
    program = (
        "from stirred.topdown import preset\nfrom stirred.topdown.fitting import one_level, rounding_kernel\n"
        "import polars as pl, stirred\n"
        "one_level.compile_kernel()\n"
        "before = list(rounding_kernel.round_parents.signatures)\n"
        "plan = preset('teaching', {'race': ['p', 'q'], 'adult': ['yes', 'no']}, ['county', 'town'])\n"
        "places = pl.DataFrame({'county': ['A', 'A'], 'town': ['x', 'y']})\n"
        "people = pl.DataFrame({'town': ['x', 'y'] * 20, 'race': ['p', 'q'] * 20, 'adult': ['yes'] * 40})\n"
        f"stirred.release(plan, {{'persons': people, 'geography': places}}, out={str(tmp_path / 'out')!r})\n"
        "assert len(before) == 1 and list(rounding_kernel.round_parents.signatures) == before\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_compiling_beforehand_is_left_out_where_the_cache_has_it_or_cannot_have_it(monkeypatch, tmp_path):
    begun = []
    monkeypatch.setattr(one_level.subprocess, "Popen", lambda *given, **named: begun.append(given))
    monkeypatch.setattr(one_level, "_process", None)
    monkeypatch.setattr(one_level, "_FOLDER", tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    one_level.start_compiling()
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "rounding_kernel.round_parents-1.py311.nbi").touch()
    one_level.start_compiling()
    assert begun == []
    (tmp_path / "__pycache__" / "rounding_kernel.round_parents-1.py311.nbi").unlink()
    one_level.start_compiling()
    assert len(begun) == 1
