"""Distances between measures: the fixtures of appendix C, enumeration of events, and the propositions one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limit_cases import printed_number, random_pairs, subsets
from stirred import loss
from stirred.limits import (
    approximate_distance,
    density_ratio_distance,
    linear_vacuous_distance,
    log_ratio_range,
    multiplicative_distance,
    odds_ratio_distance,
    total_variation_distance,
)

CASES = 3000
P9, Q9 = np.array([9 / 10, *[1 / 80] * 8]), np.array([1 / 5, *[1 / 10] * 8])


def by_events(mu, nu):
    """Log ratios of all events, 0/0 = 1."""
    events = subsets(len(mu))
    a, b = events @ mu, events @ nu
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((a == 0) & (b == 0), 0.0, np.log(a) - np.log(b))


# -- fixtures (G6) -------------------------------------------------------------------------------------------


def test_the_fixture_of_proposition_13_as_corrected():
    # Erratum 6: Q is 1/10 on 2..9; on 1..10, as printed, it would have two values at 1 and not sum to one.
    assert P9.sum() == pytest.approx(1)
    assert Q9.sum() == pytest.approx(1)
    assert multiplicative_distance(P9, Q9) == pytest.approx(
        printed_number("thesis/proposition-13/strict/multiplicative")
    )
    assert density_ratio_distance(P9, Q9) == pytest.approx(printed_number("thesis/proposition-13/strict/density-ratio"))
    assert odds_ratio_distance(P9, Q9) == pytest.approx(35 / 36)


def test_mirrored_coins_attain_twice_the_multiplicative_distance():
    p, q = [1 / 3, 2 / 3], [2 / 3, 1 / 3]
    assert multiplicative_distance(p, q) == pytest.approx(printed_number("thesis/proposition-13/equal/multiplicative"))
    assert density_ratio_distance(p, q) == pytest.approx(printed_number("thesis/proposition-13/equal/density-ratio"))
    assert density_ratio_distance(p, q) == pytest.approx(2 * multiplicative_distance(p, q))
    assert odds_ratio_distance(p, q) == pytest.approx(0.75)


def test_a_multiple_is_at_no_density_ratio_distance():
    mu = np.array([1.0, 3.0])
    assert density_ratio_distance(mu, 2 * mu) == printed_number("thesis/equation-C.7/density-ratio") == 0
    assert multiplicative_distance(mu, 2 * mu) == pytest.approx(printed_number("thesis/equation-C.7/multiplicative"))
    assert density_ratio_distance([1, 1], [2, 1.5]) == pytest.approx(0.287682, abs=5e-7)
    assert multiplicative_distance([1, 1], [2, 1.5]) == pytest.approx(0.693147, abs=5e-7)


def test_the_multiplicative_distance_is_quasi_convex_but_not_convex():
    first = np.full(10, 0.1)
    second, third = np.array([1 / 5, *[8 / 90] * 9]), np.array([3 / 10, *[7 / 90] * 9])
    mixed = multiplicative_distance(first, (second + third) / 2)
    printed = [printed_number(f"thesis/remark-C.4.3/multiplicative/{key}") for key in ("mixture", "second", "third")]
    assert mixed == pytest.approx(printed[0])
    ends = multiplicative_distance(first, np.stack([second, third]))
    assert ends == pytest.approx(printed[1:])
    assert ends.mean() < mixed < ends.max()


def test_the_linear_vacuous_distance_is_not_convex():
    half, third = np.array([0.5, 0.5]), np.array([0.7, 0.3])
    printed = [printed_number(f"thesis/remark-C.4.3/linear-vacuous/{key}") for key in ("mixture", "average")]
    assert linear_vacuous_distance(half, (half + third) / 2) == pytest.approx(printed[0])
    assert linear_vacuous_distance(half, third) / 2 == pytest.approx(printed[1])
    assert printed[0] > printed[1]


def test_the_linear_vacuous_distance_is_the_largest_over_events(rng):
    p, q = random_pairs(rng, 300, 5)
    events = subsets(5)[1:]
    a, b = p @ events.T, q @ events.T
    assert linear_vacuous_distance(p, q) == pytest.approx(np.max((b - a) / b, axis=1))


def test_the_approximate_distance_breaks_the_triangle_inequality():
    p, q, r = [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]
    assert approximate_distance(np.array([p, q]), np.array([q, r]), 0.1).tolist() == [0, 0]
    assert approximate_distance(p, r, 0.1) == pytest.approx(math.log(4 / 3))
    flip = 1 / (1 + math.e)
    assert approximate_distance([1 - flip, flip], [flip, 1 - flip], 0.05) == pytest.approx(0.929155, abs=5e-7)


@pytest.mark.parametrize(("at", "least"), [(4, math.log(3)), (3, math.log(2.125))])  # dissertation and paper
def test_the_multiplicative_distance_is_not_continuous_on_infinitely_many_outcomes(at, least):
    delta, outcomes = 0.5, np.arange(1.0, 200)
    first = outcomes**-2
    second = first.copy()
    second[0], second[at - 1] = 1 - delta / 4, at**-2.0 + delta / 4
    assert np.max(np.abs(first - second)) < delta
    assert multiplicative_distance(first, second) >= least - 1e-12 > math.log(2)


# -- conventions ---------------------------------------------------------------------------------------------


def test_zero_measures_and_zero_outcomes():
    zero, one = [0, 0], [1, 0]
    for distance in (multiplicative_distance, density_ratio_distance, odds_ratio_distance):
        assert distance(zero, zero) == 0
        assert distance([0.5, 0.5, 0], [0.5, 0.5, 0]) == 0
    assert multiplicative_distance(zero, one) == density_ratio_distance(one, zero) == math.inf
    assert multiplicative_distance(one, [0.5, 0.5]) == density_ratio_distance([0.5, 0.5], one) == math.inf
    assert odds_ratio_distance(one, [0.5, 0.5]) == odds_ratio_distance(zero, one) == 1
    assert linear_vacuous_distance(one, [0.5, 0.5]) == 1
    assert linear_vacuous_distance([0.5, 0.5], one) == pytest.approx(0.5)


def test_infinite_masses_cancel_only_each_other():
    assert multiplicative_distance([math.inf, 1], [math.inf, 2]) == pytest.approx(math.log(2))
    assert multiplicative_distance([math.inf, 1], [5, 1]) == math.inf
    assert multiplicative_distance([math.inf, 1], [math.inf, 1]) == 0


def test_single_pairs_agree_with_the_room_of_divergences(rng):
    p, q = random_pairs(rng, 200, 6, zeros=0.3)
    for one, other, m, t in zip(p, q, multiplicative_distance(p, q), total_variation_distance(p, q), strict=True):
        assert m == pytest.approx(loss.multiplicative(one, other), rel=1e-14)
        assert t == pytest.approx(loss.total_variation(one, other), rel=1e-12)


def test_the_total_variation_of_measures_is_the_largest_difference_over_events(rng):
    mu, nu = rng.gamma(1, size=(2, 200, 6))
    found = np.max(np.abs((mu - nu) @ subsets(6).T), axis=1)
    assert total_variation_distance(mu, nu) == pytest.approx(found)


# -- propositions --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=5))
def test_proposition_10_and_lemma_c_5_2_single_outcomes_attain_the_ratios_of_events(masses):
    mu, nu = np.array(masses).T
    mu, nu = np.where(mu < 1e-9, 0, mu), np.where(nu < 1e-9, 0, nu)
    ratios = by_events(mu, nu)
    told = (subsets(len(mu)) @ (mu + nu)) > 0  # events that both cannot give have ratio 1 by convention
    low, high = log_ratio_range(mu, nu)
    if told.any():
        assert low == pytest.approx(ratios[told].min(), abs=1e-12)
        assert high == pytest.approx(ratios[told].max(), abs=1e-12)
    assert multiplicative_distance(mu, nu) == pytest.approx(np.max(np.abs(ratios)), abs=1e-12)


def test_proposition_12_and_corollaries_c_5_4_and_c_5_5_the_forms_of_the_density_ratio_metric_agree(rng):
    for mu, nu in zip(*random_pairs(rng, 60, 4), strict=True):
        mu = mu * rng.gamma(2)
        ratios = by_events(mu, nu)[1:]
        apart = density_ratio_distance(mu, nu)
        assert apart == pytest.approx(ratios.max() + (-ratios).max())
        events = subsets(4)[1:]
        odds = [(a @ mu) * (b @ nu) / ((b @ mu) * (a @ nu)) for a, b in itertools.product(events, events)]
        assert apart == pytest.approx(math.log(max(odds)))
        assert odds_ratio_distance(mu, nu) == pytest.approx(1 - min(odds))
        assert apart == pytest.approx(-math.log(1 - odds_ratio_distance(mu, nu)))


def test_proposition_7_the_density_ratio_does_not_depend_on_the_dominating_measure(rng):
    mu, nu = random_pairs(rng, CASES, 5)
    base = rng.gamma(1, size=(CASES, 5)) + 0.01
    assert density_ratio_distance(mu / base, nu / base) == pytest.approx(density_ratio_distance(mu, nu))
    assert multiplicative_distance(mu / base, nu / base) == pytest.approx(multiplicative_distance(mu, nu))


def test_proposition_8_and_lemmas_c_3_3_and_c_3_4_they_are_metrics(rng):
    (p, q), (r, _) = random_pairs(rng, CASES, 5), random_pairs(rng, CASES, 5)
    scale = rng.gamma(2, size=(CASES, 1)) + 0.01
    for distance in (multiplicative_distance, density_ratio_distance):
        assert distance(p, q) == pytest.approx(distance(q, p), abs=1e-12)
        assert np.all(distance(p, q) <= distance(p, r) + distance(r, q) + 1e-12)
        assert np.all(distance(p, p) == 0)
        assert np.all(distance(p, q) > 0)
    assert density_ratio_distance(scale * p, q) == pytest.approx(density_ratio_distance(p, q), abs=1e-12)
    assert multiplicative_distance(scale * p, p) == pytest.approx(np.abs(np.log(scale[:, 0])), abs=1e-12)


def test_proposition_9_close_measures_on_finitely_many_outcomes_are_close(rng):
    first = rng.gamma(1, size=(CASES, 5)) + 0.1
    epsilon = rng.uniform(0.01, 2, CASES)
    delta = first.min(axis=1) * (1 - np.exp(-epsilon)) * 0.999
    second = first + rng.uniform(-1, 1, first.shape) * delta[:, None]
    assert np.all(multiplicative_distance(first, second) < epsilon)


def test_proposition_11_products_cost_at_most_the_sum_and_exactly_the_worse_direction(rng):
    (p, q), (r, s) = random_pairs(rng, CASES, 3), random_pairs(rng, CASES, 4)
    both = [(a[:, :, None] * b[:, None, :]).reshape(CASES, -1) for a, b in ((p, r), (q, s))]
    joint = multiplicative_distance(*both)
    assert np.all(joint <= multiplicative_distance(p, q) + multiplicative_distance(r, s) + 1e-12)
    one, other = log_ratio_range(p, q), log_ratio_range(r, s)
    assert joint == pytest.approx(np.maximum(one.highest + other.highest, -one.lowest - other.lowest))
    product = np.outer(P9, Q9).ravel(), np.outer(Q9, P9).ravel()
    assert multiplicative_distance(*product) == pytest.approx(math.log(36))


def test_proposition_13_the_two_metrics_bound_each_other(rng):
    p, q = random_pairs(rng, CASES, 5)
    m, r = multiplicative_distance(p, q), density_ratio_distance(p, q)
    assert np.all((m < r) & (r <= 2 * m + 1e-12))
    # Erratum 5: of measures in general only d_DR <= 2 D_MULT is left; the printed d_DR <= D_MULT fails.
    mu, nu = rng.gamma(1, size=(2, CASES, 5)) + 0.01
    m, r = multiplicative_distance(mu, nu), density_ratio_distance(mu, nu)
    assert np.all(r <= 2 * m + 1e-12)
    assert np.any(r > m)
    assert np.any(r < m)


def test_quasi_convexity_over_random_mixtures(rng):
    (p, q), (r, _) = random_pairs(rng, CASES, 5), random_pairs(rng, CASES, 5)
    weight = rng.random((CASES, 1))
    for distance in (multiplicative_distance, linear_vacuous_distance):
        mixed = distance(p, weight * q + (1 - weight) * r)
        assert np.all(mixed <= np.maximum(distance(p, q), distance(p, r)) + 1e-12)


def test_post_processing_brings_measures_nearer(rng):
    p, q = random_pairs(rng, CASES, 5)
    kernel = rng.dirichlet(np.ones(4), size=(CASES, 5))
    after = [np.einsum("ci,cij->cj", one, kernel) for one in (p, q)]
    for distance in (multiplicative_distance, density_ratio_distance, total_variation_distance):
        assert np.all(distance(*after) <= distance(p, q) + 1e-12)
