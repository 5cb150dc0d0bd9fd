"""Imputation models: sensitivities against brute force, laws of imputed values, published rules, reading, writing."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

from chi_square import FALSE_ALARM, p_value
from stirred.errors import StirredError, SurveyError
from stirred.noise import SeededSource, discrete_gaussian, discrete_laplace
from stirred.survey.imputing import (
    MISSING,
    SQUARES_CHANGED,
    SUM_CHANGED,
    ConditionalFrequencies,
    Lattice,
    LinearModel,
    ParameterShare,
    count_answers,
    estimate_frequencies,
    estimate_linear,
    frequency_weights,
    impute_categories,
    impute_linear,
    linear_statistics,
    model_from_fields,
    values_at,
)

SHARE = ParameterShare.of(epsilon=1)


def columns(*records):
    first, second = np.array(records, dtype=np.int64).reshape(-1, 2).T
    return first, second


# -- categories --------------------------------------------------------------------------------------------------


def test_one_record_changes_counts_by_two_in_all_and_in_squares():
    records = list(itertools.product(range(3), [MISSING, 0, 1]))
    tables = [count_answers(*columns(record), 3, 2) for record in records]
    changes = [one - other for one, other in itertools.product(tables, repeat=2)]
    assert max(np.abs(change).sum() for change in changes) == 2
    assert max((change**2).sum() for change in changes) == 2


@pytest.mark.parametrize(("share", "draw", "noise"), [("epsilon", discrete_laplace, 8), ("rho", discrete_gaussian, 4)])
def test_noisy_counts_are_counts_plus_one_exact_draw_each(share, draw, noise):
    groups, answers = columns(*itertools.product(range(4), [MISSING, 0, 1, 2]))
    found = estimate_frequencies(
        groups, answers, group_count=5, value_count=3, source=SeededSource(7), **{share: Fraction(1, 4)}
    )
    assert found.noise == noise
    counts = np.repeat([[1, 1, 1], [0, 0, 0]], [4, 1], axis=0)
    drawn = draw(noise, 15, SeededSource(7)).reshape(5, 3)
    assert np.array_equal(np.array(found.noisy_counts), counts + drawn)


@pytest.mark.parametrize(
    ("noisy", "weights"),
    [
        ([[2, 0, 5], [1, 1, -9]], [[2, 0, 5], [1, 1, 0]]),
        ([[4, -1, 3], [-2, 0, -5]], [[4, 0, 3], [2, 0, 0]]),  # the second group takes 2, -1, -2 without negatives
        ([[-1, 0], [0, -3]], [[1, 1], [1, 1]]),
        ([[1, -4], [-3, 0]], [[1, 0], [1, 1]]),  # sums are -2 and -4: all values alike
    ],
)
def test_groups_without_a_positive_count_take_all_groups_together_and_then_all_values_alike(noisy, weights):
    assert frequency_weights(np.array(noisy)).tolist() == weights
    model = ConditionalFrequencies(tuple(map(tuple, noisy)), SHARE)
    assert model.probabilities(0) == tuple(Fraction(w, sum(weights[0])) for w in weights[0])


def test_each_value_owns_as_many_positions_as_its_weight():
    """With uniform positions below the total, which are exact, this is the law of imputed values itself."""
    weights = np.array([[3, 0, 4], [0, 5, 0], [1, 1, 1]])
    for group, row in enumerate(weights):
        positions = np.arange(row.sum())
        values = values_at(weights, np.full(len(positions), group), positions)
        assert np.bincount(values, minlength=3).tolist() == row.tolist()


def test_imputed_categories_follow_the_frequencies_and_rows_are_independent():
    model = ConditionalFrequencies(((30, 0, 10, 5), (1, 2, 3, -4)), SHARE)
    rows = 400_000
    groups = np.tile([0, 1], rows // 2)
    drawn = impute_categories(model, groups, np.full(rows, MISSING), SeededSource(11))
    pairs = np.bincount(drawn[::2] * 4 + drawn[1::2], minlength=16)
    chances = [p * q for p in model.probabilities(0) for q in model.probabilities(1)]
    assert p_value(pairs, chances) > FALSE_ALARM
    next_to = np.bincount(drawn[:-2:4] * 4 + drawn[2::4], minlength=16)  # rows of the same group
    assert p_value(next_to, [p * q for p in model.probabilities(0) for q in model.probabilities(0)]) > FALSE_ALARM


def test_observed_categories_stay_as_they_are():
    model = ConditionalFrequencies(((0, 1),), SHARE)
    groups, answers = np.zeros(5, dtype=np.int8), np.array([0, -1, 1, 0, -1], dtype=np.int8)
    assert impute_categories(model, groups, answers, SeededSource(1)).tolist() == [0, 1, 1, 0, 1]
    assert answers.tolist() == [0, -1, 1, 0, -1]
    assert len(impute_categories(model, groups[:0], answers[:0], SeededSource(1))) == 0


# -- one linear regression ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reach_z", "reach_x"), [(1, 1), (1, 4), (2, 3), (4, 4), (5, 2)])
def test_one_record_changes_the_six_sums_by_what_brute_force_finds(reach_z, reach_x):
    reaches = (1, reach_z, reach_x, reach_z**2, reach_z * reach_x, reach_x**2)
    records = itertools.product(range(reach_z + 1), [MISSING, *range(reach_x + 1)])
    sums = {linear_statistics(*columns(record), reach_z, reach_x) for record in records}
    changes = [
        [Fraction(a - b, reach) for a, b, reach in zip(one, other, reaches, strict=True)]
        for one, other in itertools.product(sums, repeat=2)
    ]
    assert max(sum(map(abs, change)) for change in changes) == SUM_CHANGED
    assert max(sum(part**2 for part in change) for change in changes) == SQUARES_CHANGED


@pytest.mark.parametrize(("share", "draw"), [("epsilon", discrete_laplace), ("rho", discrete_gaussian)])
def test_noise_of_the_six_sums_is_exact_and_gives_the_budget(share, draw):
    z, x = columns((0, 3), (2, -1), (2, 0), (1, 1))
    lattices = {"predictor_lattice": Lattice(10, 12, 1), "target_lattice": Lattice(0, "1.5", "0.5")}
    found = estimate_linear(z, x, source=SeededSource(5), **{share: "0.5"}, **lattices)
    reaches = (1, 2, 3, 4, 6, 9)
    wanted = [Fraction(12 * reach) if share == "epsilon" else Fraction(8 * reach**2) for reach in reaches]
    assert list(found.noise) == wanted
    source = SeededSource(5)
    drawn = [int(draw(noise, 1, source)[0]) for noise in wanted]
    exact = (3, -2 + 2 + 0, 3 - 3 - 1, 4 + 4 + 0, -6 - 6 + 0, 9 + 9 + 1)
    assert found.noisy == tuple(a + b for a, b in zip(exact, drawn, strict=True))


def test_without_noise_the_coefficients_are_those_of_least_squares():
    drawn = np.random.default_rng(3)
    z = drawn.integers(0, 41, 500)
    x = np.clip(10 + z // 2 + drawn.integers(-4, 5, 500), 0, 60)
    share = ParameterShare.of(epsilon=10**9)
    sums = linear_statistics(z, x, 40, 60)
    model = LinearModel(Lattice(-5, 15, "0.5"), Lattice(100, 220, 2), sums, share)
    in_units_z, in_units_x = -5 + 0.5 * z, 100 + 2.0 * x
    slope, intercept = np.polyfit(in_units_z, in_units_x, 1)
    assert float(model.slope) == pytest.approx(slope, rel=1e-10)
    assert float(model.intercept) == pytest.approx(intercept, rel=1e-10)
    residual = np.mean((in_units_x - intercept - slope * in_units_z) ** 2)
    assert float(model.residual_variance) == pytest.approx(residual, rel=1e-10)


def linear(noisy, epsilon=6, reach_z=10, reach_x=10):
    return LinearModel(Lattice(0, reach_z, 1), Lattice(0, reach_x, 1), noisy, ParameterShare.of(epsilon=epsilon))


def test_published_rules_where_noise_hides_what_is_estimated():
    assert linear((1, 0, 0, 0, 0, 0)).fit == (5, 0, Fraction(10))  # n is not above its scale 1: all codes alike
    assert linear((-50, 3, 9, 1, 1, 1)).fit == (5, 0, Fraction(10))
    assert linear((2, 0, 8, 100, 500, 0)).fit[1] == 0  # the predictor's sum of squares is not above its scale 100
    assert linear((2, 0, 8, 101, 500, 0)).fit[1] == Fraction(500, 101)
    assert linear((2, 0, 900, 0, 0, 0)).fit == (10, 0, 0)  # the mean is cut at the bound, a negative variance at 0
    assert linear((2, 0, 0, 0, 0, 10**6)).fit == (5, 0, 25)  # a variance is at most a quarter of the squared range
    gaussian = LinearModel(Lattice(0, 10, 1), Lattice(0, 10, 1), (2, 0, 0, 200, 50, 0), ParameterShare.of(rho=1))
    assert gaussian.noise[3] == 40_000 and gaussian.fit[1] == 0  # 200 is not above the standard deviation 200
    assert gaussian.fit[0] == 10 // 2


def test_predictions_are_rounded_halves_up_and_cut_at_the_bounds():
    model = linear((1000, 0, 0, 20_000, 30_000, 50_000))  # slope 3/2 through the middles
    assert model.fit[:2] == (Fraction(5) - Fraction(15, 2), Fraction(3, 2))
    assert model.predicted(np.arange(11)).tolist() == [0, 0, 1, 2, 4, 5, 7, 8, 10, 10, 10]


def test_imputed_numbers_follow_a_discrete_gaussian_cut_at_the_bounds():
    model = linear((1000, 0, 0, 20_000, 10_000, 13_000))
    variance = model.fit[2]
    assert variance == 2
    drawn = impute_linear(model, np.full(300_000, 8), np.full(300_000, MISSING), SeededSource(4))
    centre = int(model.predicted(np.array([8]))[0])
    numbers = np.arange(-60, 61)
    law = np.exp(-(numbers**2) / (2 * float(variance)))
    chances = np.bincount(np.clip(centre + numbers, 0, 10), weights=law / law.sum(), minlength=11)
    assert 5 < centre < 10 and p_value(np.bincount(drawn, minlength=11), chances) > FALSE_ALARM


def test_observed_numbers_stay_and_without_residual_variance_the_prediction_is_taken():
    model = linear((1000, 0, 0, 20_000, 20_000, 20_000))  # x = z, exactly
    z, x = columns((0, 9), (3, -1), (7, 2), (10, -1))
    assert impute_linear(model, z, x, SeededSource(1)).tolist() == [9, 3, 2, 10]


def test_a_large_share_recovers_the_line_from_which_the_data_came():
    drawn = np.random.default_rng(8)
    z = drawn.integers(0, 101, 200_000)
    x = np.clip(20 + z // 2 + drawn.integers(-9, 10, len(z)), 0, 100)
    x[drawn.random(len(z)) < 0.3] = MISSING
    found = estimate_linear(
        z, x, predictor_lattice=Lattice(0, 100, 1), target_lattice=Lattice(0, 100, 1), source=SeededSource(2), epsilon=1
    )
    assert float(found.slope) == pytest.approx(0.5, abs=0.01)
    assert float(found.intercept) == pytest.approx(19.75, abs=0.5)
    assert float(found.residual_variance) == pytest.approx(30, abs=2)


# -- reading, writing, refusals ----------------------------------------------------------------------------------

TABLE = ConditionalFrequencies(((3, -1), (0, 2)), ParameterShare.of(rho="1/3"), "tenure", ("region",))
LINE = LinearModel(Lattice(0, "2.5", "0.5"), Lattice(-1, 1, 1), (1, -2, 3, -4, 5, -6), SHARE, "income", "age")


@pytest.mark.parametrize("model", [TABLE, LINE])
def test_models_are_written_and_read_back_as_they_were(model):
    assert type(model).from_json(model.to_json()) == model
    assert model_from_fields(json.loads(model.to_json())) == model


@pytest.mark.parametrize("model", [TABLE, LINE])
def test_documents_with_a_field_more_less_or_wrong_are_refused(model):
    fields = model.to_fields()
    wrong = [fields | {"more": 1}, fields | {"kind": "spline"}, fields | {"stirred_imputation": 2}, [], "text"]
    wrong += [{key: value for key, value in fields.items() if key != name} for name in fields]
    wrong += [fields | {name: value} for name in fields for value in (None, 1.5, True, [[]], [[1, 2], [3]], {"a": 1})]
    for one in wrong:
        with pytest.raises(StirredError):
            model_from_fields(one)
        with pytest.raises(StirredError):
            type(model).from_json(json.dumps(one))
    with pytest.raises(SurveyError, match="not JSON"):
        type(model).from_json("{")


GROUPS, ANSWERS = columns((0, 0), (1, -1), (1, 1))
BOTH = {"group_count": 2, "value_count": 2, "source": SeededSource(1)}
LATTICES = {"predictor_lattice": Lattice(0, 1, 1), "target_lattice": Lattice(0, 1, 1), "source": SeededSource(1)}


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH), "imputation-share"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH, epsilon=1, rho=1), "imputation-share"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH, epsilon=0), "imputation-share"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH, epsilon="much"), "imputation-share"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH, epsilon="1e-20"), "imputation-too-large"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH | {"group_count": 10**6}, rho=1), "imputation-too-large"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH | {"group_count": 0}, rho=1), "imputation-number"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH | {"group_count": 1}, rho=1), "imputation-codes"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS, **BOTH | {"value_count": 1}, rho=1), "imputation-codes"),
        (lambda: estimate_frequencies(-GROUPS, ANSWERS, **BOTH, rho=1), "imputation-codes"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS - 1, **BOTH, rho=1), "imputation-codes"),
        (lambda: estimate_frequencies(GROUPS / 2, ANSWERS, **BOTH, rho=1), "imputation-codes"),
        (lambda: estimate_frequencies(GROUPS, ANSWERS[:2], **BOTH, rho=1), "imputation-codes"),
        (lambda: impute_categories(TABLE, GROUPS, ANSWERS + 1, SeededSource(1)), "imputation-codes"),
        (lambda: impute_categories(TABLE, GROUPS + 1, ANSWERS, SeededSource(1)), "imputation-codes"),
        (lambda: estimate_linear(GROUPS, ANSWERS, **LATTICES), "imputation-share"),
        (lambda: estimate_linear(GROUPS - 1, ANSWERS, **LATTICES, epsilon=1), "imputation-codes"),
        (lambda: estimate_linear(GROUPS, ANSWERS + 1, **LATTICES, epsilon=1), "imputation-codes"),
        (
            lambda: estimate_linear(GROUPS, ANSWERS, **LATTICES | {"target_lattice": Lattice(0, 1, "1e-6")}, epsilon=1),
            "imputation-too-large",
        ),
        (
            lambda: estimate_linear(
                GROUPS, ANSWERS, **LATTICES | {"target_lattice": Lattice(0, 1, "1e-10")}, epsilon=10**12
            ),
            "imputation-too-large",
        ),
        (lambda: impute_linear(LINE, GROUPS + 5, ANSWERS, SeededSource(1)), "imputation-codes"),
        (lambda: Lattice(0, 1, "0.3"), "survey-fact"),
        (lambda: Lattice(0, 0, 1), "survey-fact"),
        (lambda: Lattice(None, 1, 1), "survey-bounds"),
        (lambda: LinearModel(Lattice(0, 1, 1), Lattice(0, 1, 1), (1, 2, 3), SHARE), "not-an-imputation-model"),
        (lambda: ConditionalFrequencies((), SHARE), "not-an-imputation-model"),
        (lambda: ConditionalFrequencies(((1, 2), (3,)), SHARE), "not-an-imputation-model"),
        (lambda: ConditionalFrequencies(((2**61,), (2**61,)), SHARE), "not-an-imputation-model"),
        (lambda: ConditionalFrequencies(((1.5,),), SHARE), "not-an-imputation-model"),
    ],
)
def test_what_cannot_be_estimated_or_imputed_is_refused_by_name(call, kind):
    with pytest.raises(SurveyError) as refused:
        call()
    assert refused.value.kind == kind
