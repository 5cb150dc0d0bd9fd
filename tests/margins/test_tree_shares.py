"""Shares by level and query: closed forms, dense least squares, another optimiser, and lower bounds that hold."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize

from repeats import some_or
from stirred.margins.margin_blocks import Margin
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.margins.spine import Spine
from stirred.margins.tree_shares import AskedPlace, TreePrecision, TreeShares, as_parts

AGES = Schema((Attribute("age", ("0", "1", "2", "3", "4")),))
ONE = Spine(("all",), (pa.array(["all"]),), ())


def tree_of(children: list[list[int]]) -> Spine:
    """A spine from the numbers of children of the units of each level but the last, below one root."""
    names, starts, units = [pa.array(["r"])], [], 1
    for sizes in children:
        assert len(sizes) == units
        starts.append(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        units = sum(sizes)
        names.append(pa.array([str(number) for number in range(units)]))
    return Spine(tuple(f"l{number}" for number in range(len(names))), tuple(names), tuple(starts))


def dense(spine: Spine, schema: Schema, candidates, fixed, asked):
    """From what is spent on each candidate, for each asked margin of a level its variances by unit and group: those of
    least squares on all cells of all leaves. What is known exactly is measured with a variance of nearly nothing."""
    leaf = len(spine.levels) - 1
    below = [np.eye(spine.leaves)]
    for at in range(leaf - 1, -1, -1):
        starts = spine.first_child[at]
        below.insert(0, np.array([below[0][starts[u] : starts[u + 1]].sum(axis=0) for u in range(len(starts) - 1)]))

    def rows(at: int, names) -> np.ndarray:
        groups = np.asarray(schema.groups(names))
        one = (groups[None, :] == np.arange(schema.number_of_groups(names))[:, None]).astype(float)
        return np.kron(below[at], one)

    squares = np.array([rows(*one).T @ rows(*one) for one in [*candidates, *fixed]])
    forms = [(spine.units(level), rows(level, by)) for level, by in asked]

    def variances(spent) -> list[np.ndarray]:
        total = np.tensordot([*spent, *([1e9] * len(fixed))], squares, axes=1)
        covariance = np.linalg.pinv(total, hermitian=True, rcond=1e-15)
        return [((form @ covariance) * form).sum(axis=1).reshape(units, -1) for units, form in forms]

    return variances


def problem(spine, schema, candidates, asked, limits, fixed=(), least=1e-6, goal="worst", importance=None):
    tree = TreePrecision.of(
        "table",
        spine,
        [(level, Margin.of(schema, by)) for level, by in candidates],
        [AskedPlace(level, Margin.of(schema, by), typical) for level, by, typical in asked],
        [(level, Margin.of(schema, by)) for level, by in fixed],
    )
    weights = np.ones(len(limits)) if importance is None else np.array(importance)
    return TreeShares(tree, np.array(limits, dtype=float), weights, least, goal)


TWO = [(0, ()), (0, ("age",))]
BOTH = [(0, (), False), (0, ("age",), False)]


def test_two_queries_of_one_unit_have_the_budget_that_both_limits_force():
    """Var(total) = 1/(t + d/n), Var(cell) = (1 - 1/n)/d + Var(total)/n^2: both limits bind."""
    n, first, second = 5, 2.0, 1.5
    found = problem(ONE, AGES, TWO, BOTH, [first, second]).best()
    detail = (1 - 1 / n) / (second - first / n**2)
    total = 1 / first - detail / n
    assert total > 0
    assert found.value == pytest.approx(total + detail, rel=1e-4)
    assert found.shares == pytest.approx(np.array([total, detail]) / (total + detail), rel=1e-3)
    assert found.bound <= found.value <= found.bound * (1 + 1e-6)


def test_one_target_gets_what_tells_it_best():
    """By the conditions of Kuhn and Tucker a total is best measured itself, and so is a cell."""
    for asked, wanted in ((BOTH[:1], [1, 0]), (BOTH[1:], [0, 1])):
        found = problem(ONE, AGES, TWO, asked, [1.0]).best()
        assert found.shares == pytest.approx(wanted, abs=1e-4)
        assert found.portions.tolist() == [1.0]


def test_the_smallest_sum_of_two_variances_has_the_quotient_of_shares_that_kuhn_and_tucker_give():
    """a Var(total) + Var(cell) is smallest where t/d is the root of a + 1/n^2, minus 1/n."""
    for weight in (0.1, 1.0, 30.0):
        found = problem(ONE, AGES, TWO, BOTH, [1.0, 1.0], goal="sum", importance=[weight, 1.0]).best()
        wanted = np.sqrt(weight + 1 / 25) - 1 / 5
        assert found.shares[0] / found.shares[1] == pytest.approx(wanted, rel=2e-3)
        assert found.bound <= found.value <= found.bound * (1 + 1e-5)


TREES = [
    tree_of([[3]]),
    tree_of([[2], [3, 1]]),
    tree_of([[2], [2, 2], [1, 3, 2, 1]]),
]
SCHEMA = Schema(
    (Attribute("a", ("x", "y", "z")), Attribute("b", ("0", "1"))),
    (Recode("r", "a", (("xy", ("x", "y")), ("z", ("z",)))),),
)
QUERIES = [(), ("r",), ("b",), ("a", "b")]


@pytest.mark.parametrize("spine", TREES, ids=["two levels", "an only child", "four levels"])
@pytest.mark.parametrize("fixed", [[], [(0, ())], [(1, ("b",))]], ids=["nothing fixed", "root", "below"])
def test_variances_and_slopes_agree_with_dense_least_squares(spine, fixed):
    rng = np.random.default_rng(len(fixed) + spine.leaves)
    candidates = [(level, by) for level in range(len(spine.levels)) for by in QUERIES]
    spent = rng.random(len(candidates)) + 0.1
    questions = [(level, by) for level in range(len(spine.levels)) for by in ((), ("r",), ("a",), ("a", "b"))]
    truths = dense(spine, SCHEMA, candidates, fixed, questions)(spent)
    for (level, by), truth in zip(questions, truths, strict=True):
        every = problem(spine, SCHEMA, candidates, [(level, by, False)], [1.0], fixed)
        assert every.tree.variances(spent)[0].max() == pytest.approx(truth.max(), rel=1e-5, abs=1e-6)
        mean = problem(spine, SCHEMA, candidates, [(level, by, True)], [1.0], fixed)
        found, _, slopes = mean.tree.variances_and_slopes(spent, lambda some: (None, [np.ones_like(some[0])]))
        assert found[0].max() == pytest.approx(truth.mean(axis=0).max(), rel=1e-5, abs=1e-6)
        assert slopes @ spent == pytest.approx(found[0].sum(), rel=1e-6, abs=1e-9)  # degree -1
        for at in range(0, len(spent), 3):
            step = np.zeros(len(spent))
            step[at] = 1e-4 * spent[at]
            up, down = (mean.tree.variances(spent + sign * step)[0].sum() for sign in (1, -1))
            assert slopes[at] == pytest.approx((down - up) / (2 * step[at]), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("goal", ["worst", "sum"])
@pytest.mark.parametrize("seed", range(2))
def test_another_optimiser_on_dense_least_squares_finds_nothing_better(goal, seed):
    """Nelder and Mead on logarithms of shares, with variances from dense matrices."""
    rng = np.random.default_rng(seed)
    spine = TREES[1]
    candidates = [(0, ()), (1, ("a", "b")), (2, ()), (2, ("a", "b"))]
    asked = [(0, ("a",), False), (2, (), bool(seed % 2)), (1, ("b",), False)]
    limits = rng.random(3) + 0.2
    found = problem(spine, SCHEMA, candidates, asked, limits, goal=goal).best()
    exact = dense(spine, SCHEMA, candidates, [], [(level, by) for level, by, _ in asked])

    def value(logs):
        shares = np.exp(logs - logs.max())
        shares = shares / shares.sum()
        quotients = []
        for (_, _, typical), limit, variances in zip(asked, limits, exact(shares), strict=True):
            quotients.append((variances.mean(axis=0) if typical else variances).max() / limit)
        return max(quotients) if goal == "worst" else sum(quotients)

    start = np.log(np.maximum(found.shares, 1e-4)) + 0.3 * rng.standard_normal(4)
    other = minimize(value, start, method="Nelder-Mead", options={"maxiter": 250, "xatol": 1e-5, "fatol": 1e-8})
    assert found.value <= other.fun * (1 + 1e-4)
    assert value(np.log(found.shares)) == pytest.approx(found.value, rel=1e-6)
    assert found.bound <= found.value <= found.bound * (1 + 1e-4)
    assert found.bound <= other.fun * (1 + 1e-5)  # its shares may be below the least


@pytest.mark.repeats
def test_the_lower_bound_holds_for_random_shares():
    spine, rng = TREES[2], np.random.default_rng(5)
    candidates = [(level, by) for level in range(4) for by in QUERIES]
    asked = [(1, (), False), (3, ("a",), True), (2, ("r",), False)]
    whole = problem(spine, SCHEMA, candidates, asked, [1.0, 2.0, 0.5], least=0.001)
    found = whole.best()
    assert found.portions.sum() == pytest.approx(1) and (found.portions >= 0).all()
    assert found.shares.min() >= 0.001 * (1 - 1e-9) and found.shares.sum() == pytest.approx(1)
    for _ in range(some_or(50, 200)):
        part = rng.dirichlet(np.full(len(candidates), 0.3))
        assert whole.value(0.001 + (1 - 0.001 * len(candidates)) * part) >= found.bound * (1 - 1e-9)


def test_what_a_target_costs_is_what_a_wider_limit_saves():
    """The cost is minus the derivative of the budget by the logarithm of the limit."""
    spine = TREES[1]
    candidates = [(0, ()), (1, ("a", "b")), (2, ()), (2, ("a", "b"))]
    asked, limits = [(0, ("a",), False), (2, (), False)], np.array([1.0, 1.0])
    found = problem(spine, SCHEMA, candidates, asked, limits).best()
    for number in range(2):
        wider = limits.copy()
        wider[number] *= 1.01
        saved = found.value - problem(spine, SCHEMA, candidates, asked, wider).best().value
        assert saved == pytest.approx(found.portions[number] * found.value * np.log(1.01), rel=0.03, abs=1e-6)


def test_what_nothing_tells_and_what_is_known_exactly():
    whole = problem(TREES[0], SCHEMA, [(0, ("a",)), (1, ("b",))], [(1, ("a",), False)], [1.0])
    assert whole.tree.undetermined == (True,)
    known = problem(TREES[0], SCHEMA, [(0, ("a",)), (1, ("b",))], [(0, (), False)], [1.0], fixed=[(0, ())])
    assert known.tree.undetermined == (False,) and known.best().value == 0


@pytest.mark.parametrize("parts", [10, 1000, 99_999])
def test_fractions_add_up_to_one_and_none_is_zero(parts):
    rng = np.random.default_rng(parts)
    for _ in range(50):
        shares = rng.dirichlet(np.full(int(rng.integers(1, 10)), 0.2))
        found = as_parts(shares, parts)
        assert sum(found, Fraction(0)) == 1 and min(found) >= Fraction(1, parts)
        assert all((one * parts).denominator == 1 for one in found)
