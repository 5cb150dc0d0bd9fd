"""Parameters that name no law, or one outside the error budget, are refused in words that say what to do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from gap_tools import Untouchable

from stirred import errors
from stirred.noise import (
    SeededSource,
    bernoulli_exp,
    discrete_gaussian,
    discrete_gaussian_each,
    discrete_laplace,
    discrete_laplace_each,
    randomised_response,
    uniform_integers,
)
from stirred.noise.coins import bernoulli
from stirred.noise.scales import Range, exact_number, exact_rows

NOT_NUMBERS = [math.nan, math.inf, -math.inf, "x", "", "1/0", None, True, 1j, [1], Decimal("NaN"), "1e999999999", ...]
ONE_SCALE = [discrete_gaussian, discrete_laplace]
EACH = [discrete_gaussian_each, discrete_laplace_each]


def refused(kind, says="[.]"):
    return pytest.raises(errors.NoiseError, match=says, check=lambda error: error.kind == kind)


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("draw", ONE_SCALE)
def test_what_is_not_a_finite_number_is_no_scale(draw, value):
    with refused("noise-not-a-number", "shortest decimal"):
        draw(value, 1, Untouchable())


@pytest.mark.parametrize("value", [0, 0.0, "-1/3", -1, Fraction(-1, 10**9), Decimal(-2), np.int64(0)], ids=repr)
@pytest.mark.parametrize("draw", ONE_SCALE)
def test_scales_are_positive(draw, value):
    with refused("noise-out-of-range", "greater than 0"):
        draw(value, 1, Untouchable())


@pytest.mark.parametrize(
    ("draw", "limit", "said"),
    [(discrete_gaussian, 2**80, r"2\^80"), (discrete_laplace, 2**40, r"2\^40")],
    ids=["gaussian", "laplace"],
)
def test_the_error_budget_names_its_limit_and_carries_scales_up_to_it(draw, limit, said):
    with refused("noise-too-wide", said):
        draw(limit + Fraction(1, 10**30), 1, Untouchable())
    assert len(draw(limit, 3, SeededSource(1))) == 3


@pytest.mark.parametrize("value", [*NOT_NUMBERS[:5], None, True], ids=repr)
@pytest.mark.parametrize("draw", EACH)
def test_a_row_that_is_not_a_number_is_refused(draw, value):
    with refused("noise-not-a-number"):
        draw([1, value, 2], Untouchable())


@pytest.mark.parametrize("draw", EACH)
def test_rows_are_positive_and_within_the_budget(draw):
    for rows in ([1, 0], np.array([1, 0]), (np.array([1, -1]), np.array([1, 1])), np.array([0.5, -0.5])):
        with refused("noise-out-of-range"):
            draw(rows, Untouchable())
    with refused("noise-out-of-range", "row 1"):
        draw(np.array([1, 0]), Untouchable())
    with refused("noise-too-wide"):
        draw([1, 2**90], Untouchable())


def test_pairs_beyond_the_budget_of_the_laplace_law_are_refused_to_the_last_unit():
    at_limit = np.array([2**40, 2**41 + 1]), np.array([1, 2])
    with refused("noise-too-wide", r"row 1.*2\^40"):
        discrete_laplace_each(at_limit, Untouchable())
    assert len(discrete_laplace_each((at_limit[0] - [0, 1], at_limit[1]), SeededSource(1))) == 2


@pytest.mark.parametrize(
    "rows",
    [
        5,
        "12",
        np.ones((2, 2)),
        (np.array([1, 2]), np.array([1])),
        (np.array([1.0, 2.0]), np.array([1, 1])),
        (np.array([1, 2]), np.array([1, 0])),
        (np.array([1, 2]), np.array([1, -1])),
        (np.array([2**63], dtype=np.uint64), np.array([1])),
        np.array(3),
    ],
    ids=str,
)
def test_rows_that_are_none_are_refused(rows):
    with refused("noise-rows", "numerators, denominators"):
        discrete_gaussian_each(rows, Untouchable())


@pytest.mark.parametrize("size", [-1, 1.5, "3", None, True], ids=repr)
def test_a_number_of_draws_is_a_whole_number(size):
    for draw in (lambda: discrete_gaussian(1, size, Untouchable()), lambda: bernoulli(1, size, Untouchable())):
        with refused("noise-size", "whole number"):
            draw()


def test_probabilities_lie_between_0_and_1_and_exponents_are_not_negative():
    for p in (-0.1, "11/10", [0.5, 2], (np.array([3]), np.array([2]))):
        with refused("noise-out-of-range", "from 0 to 1"):
            bernoulli(p, 2 if isinstance(p, list) else 1, Untouchable())
    with refused("noise-out-of-range", "0 or greater"):
        bernoulli_exp(-1, 1, Untouchable())
    with refused("noise-rows", "given for 2 rows, not for 3"):
        bernoulli_exp([1, 2], 3, Untouchable())


def test_bounds_are_whole_numbers_from_1_to_2_to_the_63():
    for bound in (0, -3, 2**63 + 1):
        with refused("noise-out-of-range"):
            uniform_integers(bound, 1, Untouchable())
    for bound in (1.5, "6", True, None):
        with refused("noise-not-a-number"):
            uniform_integers(bound, 1, Untouchable())
    for bound in (np.array([1, 0]), np.array([1, 2**63 + 1], dtype=np.uint64)):
        with refused("noise-out-of-range", "row 1"):
            uniform_integers(bound, 2, Untouchable())
    for bound in (np.array([1.0]), np.ones((1, 1), dtype=np.int64), np.array([1, 2, 3])):
        with refused("noise-rows"):
            uniform_integers(bound, 1, Untouchable())


@pytest.mark.parametrize(
    "values",
    [[0, 7731], [-7731, 0], [0.5, 7731.0], ["7731"], [[0, 1]], [True, False]],
    ids=["large", "negative", *"abcd"],
)
def test_values_that_are_no_categories_are_refused_and_never_quoted(values):
    with refused("response-values", "from 0 to 2") as refusal:
        randomised_response(np.array(values), "1/2", Untouchable(), categories=3)
    assert "7731" not in str(refusal.value)


def test_categories_are_two_or_more():
    for categories, kind in ((1, "noise-out-of-range"), (2.5, "noise-not-a-number"), (True, "noise-not-a-number")):
        with refused(kind, "number of categories"):
            randomised_response(np.array([0]), "1/2", Untouchable(), categories=categories)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.05, Fraction(1, 20)),
        (np.float64(0.1), Fraction(1, 10)),
        (Decimal("2.63"), Fraction(263, 100)),
        (" 1/3 ", Fraction(1, 3)),
        ("1e3", Fraction(1000)),
        (np.uint8(7), Fraction(7)),
    ],
    ids=repr,
)
def test_numbers_mean_what_is_written(value, exact):
    assert exact_number(value, "It") == exact


def test_long_numbers_are_not_written_out_in_messages():
    with refused("noise-out-of-range") as refusal:
        discrete_gaussian(Fraction(-(10**500)), 1, Untouchable())
    assert len(str(refusal.value)) < 200


def test_no_draws_take_no_randomness():
    assert discrete_gaussian(1, 0, Untouchable()).tolist() == []
    assert discrete_laplace(10**6, 0, Untouchable()).tolist() == []
    assert discrete_gaussian_each([], Untouchable()).tolist() == []
    assert discrete_laplace_each(np.array([], dtype=np.int64), Untouchable()).tolist() == []
    assert bernoulli("1/3", 0, Untouchable()).tolist() == []
    assert uniform_integers(6, 0, Untouchable()).tolist() == []
    assert randomised_response(np.array([], dtype=np.int64), 1, Untouchable(), categories=5).tolist() == []


def test_rows_are_coded_by_value_and_type():
    rows = exact_rows([1, Fraction(1), 1.0, "1", 2, 1], Range("It", "any"))
    assert [rows.exact(i) for i in range(6)] == [1, 1, 1, 1, 2, 1]
    with refused("noise-not-a-number"):
        exact_rows([1, True], Range("It", "any"))
