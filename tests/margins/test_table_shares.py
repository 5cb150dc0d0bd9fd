"""Shares of a budget: closed forms, grids, and never worse than equal shares."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf, sqrt

import numpy as np
import pytest
from dense_table import DenseTable, random_margin, random_schema, random_where, rows

from repeats import some_or
from stirred.errors import StirredError
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.margins.table_shares import AskedMargin, ShareProblem

AGE = Schema((Attribute("age", ("0", "1", "2", "3", "4")),))


def best_shares(schema, candidates, asked, parts=1000, **more):
    return ShareProblem.of(schema, candidates, asked, **more).best(parts)


def random_problem(seed, noise, goal):
    """Candidates that determine what is asked, with or without factors of strata; and their value, computed densely."""
    rng = np.random.default_rng(seed)
    while True:
        schema = random_schema(rng)
        candidates = [(random_margin(schema, rng), 10 ** rng.uniform(-1, 1)) for _ in range(rng.integers(1, 4))]
        more = {}
        if rng.random() < 0.4:
            stratum = schema.attributes[0].name
            more = {"stratum": stratum, "factors": {v: 10 ** rng.uniform(-0.5, 0.5) for v in schema.values(stratum)}}
        asked = [
            AskedMargin(tuple(random_margin(schema, rng)), rng.uniform(0.1, 5), random_where(schema, rng))
            for _ in range(rng.integers(1, 3))
        ]
        dense = DenseTable(schema, candidates, **more)
        if all(dense.estimable(rows(schema, one.by, one.where)).all() for one in asked):
            break

    def value(shares):
        power = 1 if noise == "gaussian" else 2
        used = [(by, v / float(s) ** power) for (by, v), s in zip(candidates, shares, strict=True) if s]
        table = DenseTable(schema, used, **more)
        found = []
        for one in asked:
            forms = rows(schema, one.by, one.where)
            if not table.estimable(forms).all():
                return inf
            found.append(one.importance * np.diagonal(table.covariances(forms, forms)))
        every = np.concatenate(found)
        return every.sum() if goal == "sum" else every.max()

    return ShareProblem.of(schema, candidates, asked, noise=noise, goal=goal, **more), value


@pytest.mark.repeats
@pytest.mark.parametrize(("noise", "goal"), list(product(("gaussian", "laplace"), ("sum", "largest"))))
def test_values_are_those_of_dense_least_squares_and_no_grid_is_better(noise, goal):
    improved = 0
    for seed in range(some_or(5, 45)):
        problem, dense = random_problem(seed, noise, goal)
        found = problem.best()
        number = problem.candidates
        assert sum(found.shares) == 1 and min(found.shares) >= 0
        assert max(share.denominator for share in found.shares) <= 1000
        assert np.isclose(found.value, dense(found.shares), rtol=1e-6)
        assert np.isclose(found.equal, dense(problem.equal), rtol=1e-6)
        assert found.value <= found.equal
        if found.equal == 0:
            continue
        improved += found.value < 0.9 * found.equal
        grid = [problem.value(np.array(some) / 20) for some in product(range(21), repeat=number) if sum(some) == 20]
        # One part in a thousand: the shares are multiples of it, and kinks of the largest variance stop the search.
        assert found.value <= min(grid) * (1 + 1e-3)
        if noise == "gaussian":
            assert found.bound is not None
            assert found.bound <= min(*grid, found.equal, found.value) * (1 + 1e-9)
            assert found.value <= found.bound * (1.001 if goal == "sum" else 1.01)
        else:
            assert found.bound is None
    assert improved >= some_or(2, 5)


@pytest.mark.parametrize(("noise", "goal"), list(product(("gaussian", "laplace"), ("sum", "largest"))))
def test_slopes_are_derivatives(noise, goal):
    for seed in range(12):
        problem, _ = random_problem(100 + seed, noise, goal)
        shares = np.random.default_rng(seed).uniform(0.2, 1, problem.candidates)
        power = 1 if goal == "sum" else 6
        value, slopes, _ = problem._smooth(shares, power)
        for at in range(problem.candidates):
            moved = np.eye(problem.candidates)[at] * 1e-5
            up, down = (problem._smooth(shares + sign * moved, power)[0] for sign in (1, -1))
            assert np.isclose((down - up) / 2e-5, slopes[at], rtol=1e-5, atol=1e-7 * value)


def test_one_candidate_gets_everything():
    for noise, goal in product(("gaussian", "laplace"), ("sum", "largest")):
        found = best_shares(AGE, [(["age"], 7)], [AskedMargin(())], noise=noise, goal=goal)
        assert found.shares == (1,) and np.isclose(found.value, 35) and found.value == found.equal


@pytest.mark.parametrize("importance", [0.01, 0.4, 3, 24, 1000])
def test_cells_and_their_total_have_a_closed_form(importance):
    # With m cells, share s of the cells and importance w of the total, the value is
    # (m - 1) / s + (1 + w m) / (s + m (1 - s)).
    number = 5
    asked = [AskedMargin(("age",)), AskedMargin((), importance)]
    found = best_shares(AGE, [(["age"], 1), ([], 1)], asked)
    best = number / (number - 1 + sqrt(1 + importance * number))
    assert abs(float(found.shares[0]) - best) <= 1e-3
    smallest = (number - 1) / best + (1 + importance * number) / (best + number * (1 - best))
    assert smallest * (1 - 1e-9) <= found.value <= smallest * (1 + 2e-4)
    assert smallest * (1 - 1e-3) <= found.bound <= smallest * (1 + 1e-9)


@pytest.mark.parametrize("importance", [0.01, 0.4, 3, 24, 1000])
def test_laplace_noise_on_cells_and_their_total_beats_a_fine_grid(importance):
    number = 5
    s = np.linspace(0, 1, 100_001)[1:]
    grid = (number - 1) / s**2 + (1 + importance * number) / (s**2 + number * (1 - s) ** 2)
    asked = [AskedMargin(("age",)), AskedMargin((), importance)]
    found = best_shares(AGE, [(["age"], 1), ([], 1)], asked, noise="laplace")
    assert grid.min() * (1 - 1e-9) <= found.value <= grid.min() * (1 + 1e-3)


def test_the_same_margin_twice_goes_to_the_more_precise_one():
    for noise in ("gaussian", "laplace"):
        found = best_shares(AGE, [(["age"], 2), (["age"], 1)], [AskedMargin(("age",))], noise=noise)
        assert found.shares == (0, 1)


def test_the_largest_of_two_variances_is_balanced():
    # Two attributes, one margin each; the means are shared, so only contrasts compete, and symmetry settles them.
    schema = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1", "2"))))
    found = best_shares(schema, [(["a"], 1), (["b"], 1)], [AskedMargin(("a",)), AskedMargin(("b",))], goal="largest")
    assert found.shares == (Fraction(1, 2), Fraction(1, 2))


def test_equal_shares_that_are_no_multiples_are_kept_where_they_are_best():
    schema = Schema(tuple(Attribute(name, ("0", "1")) for name in "abc"))
    asked = [AskedMargin((name,)) for name in "abc"]
    found = best_shares(schema, [([name], 1) for name in "abc"], asked)
    assert found.shares == (Fraction(1, 3),) * 3 and found.value == found.equal


def test_groups_without_a_cell_cost_nothing():
    schema = Schema(AGE.attributes, (Recode("old", "age", (("no", ("0", "1")), ("yes", ("2", "3", "4")))),))
    empty = AskedMargin((), 1, {"age": ["0"], "old": ["yes"]})
    assert best_shares(schema, [(["age"], 1), ([], 1)], [empty]).value == 0


def test_a_table_of_thousands_of_cells_with_strata():
    ages = tuple(str(age) for age in range(40))
    decades = tuple((f"{at}0s", ages[10 * at : 10 * at + 10]) for at in range(4))
    regions = tuple(f"r{at}" for at in range(12))
    schema = Schema(
        (Attribute("age", ages), Attribute("region", regions), Attribute("work", tuple("abcdefghij"))),
        (Recode("decade", "age", decades),),
    )
    candidates = [(["age", "region", "work"], 1), (["decade", "region"], 1), (["work"], 1), (["region"], 1)]
    asked = [AskedMargin(("region",)), AskedMargin(("decade", "region")), AskedMargin(("work",), 2)]
    factors = {region: 1 + at / 3 for at, region in enumerate(regions)}
    found = best_shares(schema, candidates, asked, stratum="region", factors=factors)
    assert found.value < 0.8 * found.equal and found.value <= found.bound * 1.001


def test_questions_without_an_answer_are_refused():
    def refused(kind, words, **given):
        given = {"candidates": [(["age"], 1)], "asked": [AskedMargin(())], **given}
        with pytest.raises(StirredError, match=words) as refusal:
            best_shares(AGE, **given)
        assert refusal.value.kind == kind

    refused("shares-question", "must have an asked margin", asked=[])
    refused("shares-question", "1 to 40 candidates", candidates=[])
    refused("shares-question", "must be positive", asked=[AskedMargin((), 0)])
    refused("shares-question", "at least 2", candidates=[([], 1), (["age"], 1)], parts=1)
    refused("unknown-choice", "'cauchy'", noise="cauchy")
    refused("unknown-choice", "'mean'", goal="mean")
    refused("not-estimable", "all asked margins", candidates=[([], 1)], asked=[AskedMargin(("age",))])
