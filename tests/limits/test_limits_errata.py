"""What chapter 5 and appendix C print wrongly, both ways: as printed it fails, as corrected it holds.

Other errata have their tests beside the theorems that they are about; the list ``tests/golden/published`` names all.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate

from limit_cases import random_pairs, response_rows
from stirred.lab.limits.finite_analysis import FiniteAnalysis
from stirred.limits import (
    DatabaseGraph,
    data_bounds,
    density_ratio_distance,
    laplace_count_densities,
    multiplicative_distance,
    odds_ratio_distance,
    privacy_loss,
)


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 0), (2.0, 1)])
def test_example_5_4_3_the_exponent_of_the_density_is_negative(epsilon, count):
    def ours(t):
        return float(laplace_count_densities([t], epsilon, 1)[count, 0])

    def printed(t):
        return epsilon / 2 * math.exp(epsilon * abs(t - count))

    far = 60 / epsilon
    assert integrate.quad(ours, -far, far, points=[count], limit=200)[0] == pytest.approx(1)
    assert integrate.quad(printed, -far, far, points=[count], limit=200)[0] > 1e20
    assert ours(count) == printed(count) == epsilon / 2


def test_example_5_2_2_the_density_integrates_to_one_outside_the_exponential():
    # P_x(S) >= e^-epsilon P_x'(S), the display of the example with dz where it belongs, on intervals S.
    epsilon = 0.7
    for low, high in ((-3.0, -1.0), (-0.5, 0.2), (0.4, 8.0), (-50.0, 50.0)):
        here, there = (
            integrate.quad(lambda t, at=at: epsilon / 2 * math.exp(-epsilon * abs(t - at)), low, high, points=[0, 1])[0]
            for at in (0, 1)
        )
        assert math.exp(-epsilon) * there <= here * (1 + 1e-9) and here <= math.exp(epsilon) * there * (1 + 1e-9)
    assert here == pytest.approx(1, abs=1e-9)


def test_remark_5_8_7_the_odds_ratio_distance_is_one_where_supports_differ():
    for p, q in (([0.75, 0.25], [1, 0]), ([1, 0], [0, 1]), ([0, 0], [1, 0])):
        # The printed infimum over events of positive mu has no value: nu(S) = 0 stands below or above for some S.
        assert odds_ratio_distance(p, q) == odds_ratio_distance(q, p) == 1
        # Any smaller value would contradict d_DR = -ln(1 - d_COR), Corollary C.5.5.
        assert density_ratio_distance(p, q) == math.inf
    assert odds_ratio_distance([0, 0], [0, 0]) == 0


def test_theorem_5_6_2_more_datasets_may_give_narrower_bounds(rng):
    path = DatabaseGraph.of_edges(range(3), [(0, 1), (1, 2)])
    narrower = wider = 0
    for _ in range(300):
        rows = rng.dirichlet(np.ones(3) * 4, size=3)
        epsilon = privacy_loss(rows, path).ratio
        few, all_three = data_bounds(rows, path, epsilon, among=[0, 2]), data_bounds(rows, path, epsilon)
        weight = rng.random()
        density = weight * rows[0] + (1 - weight) * rows[2]
        assert few.contains(density).all() and all_three.contains(density).all()
        narrower += bool(np.any(all_three.upper < few.upper * (1 - 1e-6)))
        wider += bool(np.any(all_three.upper > few.upper * (1 + 1e-6)))
    assert narrower > 50  # as printed they "will be wider"
    line = DatabaseGraph.of_edges(range(4), [(0, 1), (1, 2), (2, 3)])
    rows = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.4, 0.6]])
    few, more = data_bounds(rows, line, math.log(1.25), among=[0, 1]), data_bounds(rows, line, math.log(1.25))
    assert np.all(more.upper > few.upper) and np.all(more.lower < few.lower)
    assert wider == 0  # on the path of three, whose middle is nearer to both ends than they are to each other


# -- appendix C ----------------------------------------------------------------------------------------------


def test_equation_c_6_outcomes_that_only_the_other_base_measure_has_count_for_neither():
    # mu and nu have densities with respect to tau_1, which lacks the third outcome, and to tau = tau_1 + tau_2.
    mu, nu = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.75, 0.0])
    first, both = np.array([1.0, 2.0]), np.array([3.0, 2.5, 1.0])
    by_first = density_ratio_distance(mu[:2] / first, nu[:2] / first)
    assert by_first == pytest.approx(density_ratio_distance(mu / both, nu / both)) == pytest.approx(math.log(3))


def test_lemma_c_3_3_the_triangle_goes_by_the_third_measure(rng):
    (p, q), (r, _) = random_pairs(rng, 1000, 4), random_pairs(rng, 1000, 4)
    by_third = multiplicative_distance(p, r) + multiplicative_distance(r, q)
    printed = multiplicative_distance(p, q) + multiplicative_distance(r, q)
    assert np.all(multiplicative_distance(p, q) <= by_third + 1e-12)
    # The line before it is sup|ln p - ln r| + sup|ln r - ln q|: the printed sum is another number.
    assert np.mean(np.isclose(printed, by_third)) < 0.01


def test_proposition_9_an_event_may_gain_delta_at_each_outcome(rng):
    first = rng.gamma(1, size=(500, 6)) + 0.1
    delta = 0.05
    second = first + rng.uniform(-delta, delta, first.shape)
    gained = (second - first) * (second > first)
    assert np.any(gained.sum(axis=1) > delta)
    assert np.all(gained.sum(axis=1) <= (second > first).sum(axis=1) * delta)
    # The conclusion about ratios, outcome by outcome, is right.
    assert np.all(second.sum(axis=1) / first.sum(axis=1) <= np.max((first + delta) / first, axis=1))


def test_proposition_11_a_factor_that_is_infinitely_far_makes_the_bound_infinite():
    far, near = ([1.0, 0.0], [0.5, 0.5]), ([0.5, 0.5], [0.4, 0.6])
    assert multiplicative_distance(*far) == math.inf
    joint = [np.outer(far[k], near[k]).ravel() for k in (0, 1)]
    assert multiplicative_distance(*joint) == math.inf
    # As printed, mu_1 = (1, 0) and nu_2 = (0.4, 0.6) would decide; here they differ in support and the sum is finite.
    one, other = ([1.0, 0.0], [1.0, 0.0]), ([0.5, 0.5], [0.4, 0.6])
    assert multiplicative_distance(one[0], other[1]) == math.inf
    assert multiplicative_distance(*one) + multiplicative_distance(*other) == pytest.approx(math.log(1.25))


def test_proposition_13_q_as_printed_is_no_probability():
    printed = [Fraction(1, 10)] * 9  # x = 1, ..., 9; there is no outcome 10
    corrected = [Fraction(1, 5), *[Fraction(1, 10)] * 8]
    p = [Fraction(9, 10), *[Fraction(1, 80)] * 8]
    assert (sum(printed), sum(corrected), sum(p)) == (Fraction(9, 10), 1, 1)
    ratios = [a / b for a, b in zip(p, corrected, strict=True)]
    assert max(ratios) / min(ratios) == 36
    assert max(max(ratios), 1 / min(ratios)) == 8
    ratios = [a / b for a, b in zip(p, printed, strict=True)]
    assert max(ratios) / min(ratios) == 72


def test_theorem_5_4_1_the_bound_depends_on_the_support_of_the_model():
    bits = DatabaseGraph.hamming((0, 1), 2)
    rows = response_rows(2, 1)
    models = np.array([[0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    case = FiniteAnalysis(rows, bits, models)
    band = case.likelihood_bounds()
    assert band.contains(case.likelihood).all()
    assert np.any(band.upper[0] < band.upper[1] * (1 - 1e-6))
    # No one u serves as the sharp bound of both: that of the first model fails for the second.
    assert np.any(case.likelihood[1] > band.upper[0])


def test_theorem_5_6_3_likelihoods_differ_by_up_to_the_factor_that_the_proof_drops():
    epsilon, records = 0.7, 3
    bits = DatabaseGraph.hamming((0, 1), records)
    case = FiniteAnalysis(response_rows(records, epsilon), bits, np.eye(8)[[0, 7]], [0.5, 0.5])
    ratio = case.likelihood[0] / case.likelihood[1]
    assert np.any(ratio > 1)  # the printed p(t | theta') <= p(t | theta)
    farthest = case.farthest(0)
    assert farthest == records
    assert np.all(ratio <= math.exp(epsilon * farthest) * (1 + 1e-12))
    assert ratio.max() == pytest.approx(math.exp(epsilon * farthest))
