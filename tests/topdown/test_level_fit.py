"""The fit against an interior-point method, its certificate, and what it depends on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from level_oracle import Case, by_piqp, quadratic, random_case, roots, values_of

from stirred import errors
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.fitting import one_level
from stirred.topdown.fitting.level_problem import Allowed, Bounds, LevelProblem, Measured, kappa
from stirred.topdown.fitting.one_level import VIOLATION, LevelFit, fit_level

KINDS = [
    pytest.param({}, id="sums"),
    pytest.param({"masked": True}, id="masks"),
    pytest.param({"bounded": True}, id="bounds"),
    pytest.param({"masked": True, "bounded": True}, id="masks and bounds"),
    pytest.param({"uneven": True}, id="weights of each child"),
    pytest.param({"uneven": True, "masked": True, "bounded": True}, id="weights of each child with masks and bounds"),
    pytest.param({"as_roots": True}, id="roots"),
    pytest.param({"partial": True}, id="queries of some cells only"),
    pytest.param({"partial": True, "uneven": True, "masked": True, "bounded": True}, id="some cells with bounds"),
    pytest.param({"as_roots": True, "masked": True, "bounded": True}, id="roots with bounds"),
]


def modulus(problem: LevelProblem) -> float:
    return max(np.min(query.weight) for query in problem.measured if len(query.groups) == query.values.shape[1])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_fit_is_the_minimum_that_an_interior_point_method_finds(kind: dict[str, bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, cells=int(rng.integers(2, 20)), scale=float(rng.choice([1, 30])), **kind)
    fit = fit_level(case.problem)
    assert fit.converged.all() and fit.gap.max() <= 1e-6 and fit.violation.max() <= VIOLATION
    for parent in range(len(fit.gap)):
        q, x = quadratic(case.problem, parent), values_of(fit, parent)
        best = by_piqp(q)
        least = q.objective(best)
        assert q.objective(x) - least <= fit.gap[parent] + 1e-8 * (1 + least)
        # Strong convexity turns the gap into a distance; a bound may besides be broken by VIOLATION.
        far = np.sqrt(2 * 1e-6 / modulus(case.problem)) + 1e-6 + (0.01 if kind.get("bounded") else 0)
        assert np.abs(x - best).max(initial=0) <= far
        assert x.min(initial=0) >= 0 and np.all(x[q.most == 0] == 0)
        assert np.abs(q.sums @ x - q.totals).max(initial=0) <= 1e-9 * (1 + q.totals.max(initial=0))
        sums = q.bounded @ x
        assert np.maximum(q.low - sums, sums - q.high).max(initial=0) <= fit.violation[parent] + 1e-9


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_certificate_bounds_the_excess_wherever_the_sweeps_stop(kind: dict[str, bool], sweeps: int) -> None:
    case = random_case(np.random.default_rng(40 + sweeps), parents=5, cells=15, scale=10, **kind)
    fit = fit_level(case.problem, most_sweeps=sweeps, gap=1e-12)
    informative = 0
    for parent in range(len(fit.gap)):
        q = quadratic(case.problem, parent)
        least = q.objective(by_piqp(q))
        excess = q.objective(values_of(fit, parent)) - least
        assert excess <= fit.gap[parent] + 1e-8 * (1 + least)
        informative += excess > 1e-6
    assert informative > 0  # or nothing was tested


def test_certificate_is_tight() -> None:
    """It exceeds the true excess by a factor of the order of kappa, not of the number of variables or of counts."""
    case = random_case(np.random.default_rng(3), parents=1, cells=40, most_children=9, scale=100)
    fit = fit_level(case.problem, most_sweeps=4, gap=1e-12)
    q = quadratic(case.problem, 0)
    excess = q.objective(values_of(fit, 0)) - q.objective(by_piqp(q))
    assert 1e-6 < excess <= fit.gap[0] <= 10 * kappa(case.problem.measured) * excess


def test_optimality_conditions_hold() -> None:
    """In each cell the gradient is the same where a child is positive, and no smaller where it is zero."""
    case = random_case(np.random.default_rng(8), parents=6, cells=12, scale=20, masked=True)
    fit = fit_level(case.problem, gap=1e-12)
    for parent in range(6):
        q, x = quadratic(case.problem, parent), values_of(fit, parent)
        width = int(np.diff(case.problem.first_child)[parent])
        gradient = (q.root.T @ (q.root @ x - q.target)).reshape(-1, width)
        for row, value, most in zip(gradient, x.reshape(-1, width), q.most.reshape(-1, width), strict=True):
            positive = value > 1e-6
            assert np.ptp(row[positive]) < 1e-4
            assert row[(most > 0) & ~positive].min(initial=np.inf) >= row[positive].max() - 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_without_noise_the_truth_comes_back_at_once(kind: dict[str, bool]) -> None:
    case = random_case(np.random.default_rng(1), parents=8, cells=20, scale=40, noise=0.0, **kind)
    fit = fit_level(case.problem)
    assert fit.sweeps.max() == 0 and fit.gap.max() < 1e-12
    support = case.problem.support
    for parent in range(8):
        cells = support.cells[support.starts[parent] : support.starts[parent + 1]]
        units = slice(case.problem.first_child[parent], case.problem.first_child[parent + 1])
        assert np.allclose(values_of(fit, parent), case.truth[units][:, cells].T.ravel(), atol=1e-9)


def _same(one: LevelFit, other: LevelFit, order: np.ndarray) -> None:
    """``other`` is ``one`` with its parents in another order, to the last bit."""
    for new, old in enumerate(order):
        assert np.array_equal(values_of(one, old), values_of(other, new))
    for name in ("gap", "violation", "sweeps", "converged"):
        assert np.array_equal(getattr(one, name)[order], getattr(other, name))


def test_neither_threads_nor_chunks_nor_order_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(np.random.default_rng(5), parents=30, cells=12, masked=True, bounded=True, uneven=True)
    monkeypatch.setenv("STIRRED_THREADS", "1")
    straight = fit_level(case.problem)
    order = np.random.default_rng(6).permutation(30)
    monkeypatch.setenv("STIRRED_THREADS", "3")
    _same(straight, fit_level(case.problem.of_parents(order)), order)
    monkeypatch.setattr(one_level, "CHUNK_ENTRIES", 1)
    _same(straight, fit_level(case.problem), np.arange(30))
    monkeypatch.setattr(one_level, "CHUNK_ENTRIES", 1 << 40)
    _same(straight, fit_level(case.problem), np.arange(30))


def _two_cells(**changes: object) -> LevelProblem:
    """A parent of two cells, 4 and 6, with three children; the second cell of the last child would like to be 9."""
    each = Measured(np.arange(2, dtype=np.int32), 1.0, np.array([[1, 2], [1, 2], [2, 9]]))
    problem = LevelProblem(Histograms.from_dense(np.array([[4, 6]])), np.array([0, 3]), 2, (each,))
    return replace(problem, **changes)  # type: ignore[arg-type]


def test_an_only_child_is_its_parent_and_an_empty_parent_is_skipped() -> None:
    each = np.arange(2, dtype=np.int32)
    parents = Histograms.from_dense(np.array([[3, 0], [0, 0], [5, 7]]))
    problem = LevelProblem(parents, np.array([0, 1, 3, 4]), 2, (Measured(each, 1.0, np.full((4, 2), 50)),))
    fit = fit_level(problem)
    assert fit.values.tolist() == [3, 5, 7] and fit.starts.tolist() == [0, 1, 1, 3]
    assert fit.converged.all() and fit.sweeps.tolist() == [0, 0, 0]


def test_only_detailed_measurements_need_one_projection() -> None:
    fit = fit_level(_two_cells())
    assert fit.values.reshape(2, 3).tolist() == [[1, 1, 2], [0, 0, 6]] and fit.kappa == 1


def test_a_closed_entry_is_exactly_zero() -> None:
    mask = Allowed(np.array([0, 1], dtype=np.int32), np.array([[True, True], [True, True], [True, False]]))
    fit = fit_level(_two_cells(allowed=(mask,)))
    assert fit.values.reshape(2, 3).tolist() == [[1, 1, 2], [3, 3, 0]]


def test_an_upper_bound_of_zero_closes() -> None:
    upper = np.array([[9], [9], [0]])
    bound = Bounds(np.array([-1, 0], dtype=np.int32), np.zeros_like(upper), upper)
    fit = fit_level(_two_cells(bounds=(bound,)))
    assert fit.values.reshape(2, 3).tolist() == [[1, 1, 2], [3, 3, 0]] and fit.violation[0] == 0


@pytest.mark.parametrize(
    "bound",
    [
        pytest.param(
            Bounds(np.array([0, 0], dtype=np.int32), *2 * (np.array([[3], [3], [5]]),)), id="sums to 11 of 10"
        ),
        pytest.param(Bounds(np.array([-1, 0], dtype=np.int32), *2 * (np.array([[7], [0], [0]]),)), id="more than all"),
        pytest.param(Bounds(np.array([0, 1], dtype=np.int32), *2 * (np.ones((3, 2), dtype=int),)), id="fewer than all"),
    ],
)
def test_bounds_that_nothing_meets_do_not_converge(bound: Bounds) -> None:
    fit = fit_level(_two_cells(bounds=(bound,)))
    assert not fit.converged[0] and fit.violation[0] > 0.3 and fit.sweeps[0] <= 4000


def test_what_nothing_can_meet_is_noted() -> None:
    """A lower bound on a group that the parent lacks, a cell that no child may have, an only child out of bounds."""
    each = np.arange(2, dtype=np.int32)
    none, some = np.zeros((2, 2), dtype=np.int64), np.array([[0, 0], [0, 4]])
    problem = LevelProblem(
        Histograms.from_dense(np.array([[4, 0]])), np.array([0, 2]), 2, (Measured(each, 1.0, none),),
        bounds=(Bounds(each, some, none + 9),),
    )  # fmt: skip
    fit = fit_level(problem)
    assert not fit.converged[0] and fit.violation[0] == 4
    mask = Allowed(each, np.array([[False, True], [False, True]]))
    assert not fit_level(replace(problem, bounds=(), allowed=(mask,))).converged[0]
    three = np.array([[3]])
    total = Bounds(np.zeros(2, dtype=np.int32), three, three)
    fit = fit_level(
        replace(problem, first_child=np.array([0, 1]), measured=(Measured(each, 1.0, none[:1]),), bounds=(total,))
    )
    assert not fit.converged[0] and fit.violation[0] == 1


@pytest.mark.parametrize("seed", range(3))
def test_without_a_query_that_separates_all_cells_a_ridge_decides(seed: int) -> None:
    case = random_case(np.random.default_rng(seed), cells=9, detailed=False)
    fit = fit_level(case.problem)
    weights = sum(query.weight for query in case.problem.measured)
    assert fit.kappa == np.inf and fit.ridge == pytest.approx(1e-3 * weights) and fit.converged.all()
    best = min(case.problem.measured, key=lambda query: query.values.shape[1] / query.weight)
    totals = np.maximum(best.values.sum(axis=1), 0)
    support = case.problem.support
    for parent in range(len(fit.gap)):
        units = slice(case.problem.first_child[parent], case.problem.first_child[parent + 1])
        shares = totals[units] / totals[units].sum() if totals[units].any() else np.full(len(totals[units]), 1.0)
        counts = support.counts[support.starts[parent] : support.starts[parent + 1]]
        target = np.outer(counts, shares / shares.sum()).ravel()
        q = quadratic(case.problem, parent)
        root = np.sqrt(fit.ridge)
        q = replace(
            q,
            root=sp.vstack([q.root, root * sp.identity(len(target))], format="csc"),
            target=np.concatenate([q.target, root * target]),
        )
        x, z = values_of(fit, parent), by_piqp(q)
        assert q.objective(x) - q.objective(z) <= fit.gap[parent] + 1e-8 * (1 + q.objective(z))


def test_a_root_of_a_detailed_measurement_is_its_positive_part() -> None:
    each = Measured(np.arange(3, dtype=np.int32), 0.5, np.array([[4, -2, 0], [-1, -1, 7]]))
    fit = fit_level(roots(3, 2, (each,)))
    assert fit.values.tolist() == [4, 0, 0, 0, 0, 7]


def test_a_root_with_a_fixed_total_is_a_projection_on_a_simplex() -> None:
    each = Measured(np.arange(3, dtype=np.int32), 0.5, np.array([[4, -2, 1]]))
    total = np.array([[9]])
    fit = fit_level(roots(3, 1, (each,), bounds=(Bounds(np.zeros(3, dtype=np.int32), total, total),)))
    assert np.allclose(fit.values, [6, 0, 3], atol=1e-3)


@pytest.mark.parametrize("ratio", [30, 200])
def test_a_poor_condition_only_takes_more_sweeps(ratio: int) -> None:
    case = random_case(np.random.default_rng(2), parents=4, cells=8, scale=30)
    measured = tuple(
        replace(q, weight=q.weight / (ratio if q.values.shape[1] == 8 else 1)) for q in case.problem.measured
    )
    problem = replace(case.problem, measured=measured)
    fit = fit_level(problem)
    assert fit.kappa > ratio / 2 and fit.converged.all()
    for parent in range(4):
        q = quadratic(problem, parent)
        assert q.objective(values_of(fit, parent)) <= q.objective(by_piqp(q)) * (1 + 1e-8) + 1e-6


def test_counts_of_millions_reach_the_same_gap() -> None:
    case = random_case(np.random.default_rng(2), parents=2, cells=8, scale=1e6, noise=300.0)
    measured = tuple(replace(q, weight=q.weight / (30 if q.values.shape[1] == 8 else 1)) for q in case.problem.measured)
    fit = fit_level(replace(case.problem, measured=measured), gap=1e-7)
    assert fit.converged.all() and fit.sweeps.max() > 300


@pytest.mark.parametrize(("name", "value"), [("gap", 0.0), ("gap", float("nan")), ("most_sweeps", 0)])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(errors.StirredError, match=name):
        fit_level(_two_cells(), **{name: value})  # type: ignore[arg-type]


def test_parts_of_a_problem_are_its_parents() -> None:
    case: Case = random_case(np.random.default_rng(5), parents=6, cells=5, bounded=True, masked=True)
    chosen = np.array([4, 1])
    part = case.problem.of_parents(chosen)
    units = case.problem.children_of(chosen)
    assert part.parents is not None and case.problem.parents is not None
    assert np.array_equal(part.parents.dense(5), case.problem.parents.dense(5)[chosen])
    assert np.array_equal(part.measured[2].values, case.problem.measured[2].values[units])
    assert np.array_equal(part.bounds[0].lower, case.problem.bounds[0].lower[units])
    assert np.diff(part.first_child).tolist() == np.diff(case.problem.first_child)[chosen].tolist()
    truth = Histograms.from_dense(case.truth)
    changed = truth.with_units(units, Histograms.from_dense(np.zeros((len(units), 5), dtype=int)))
    expected = case.truth.copy()
    expected[units] = 0
    assert np.array_equal(changed.dense(5), expected) and np.array_equal(changed.totals(), expected.sum(axis=1))
