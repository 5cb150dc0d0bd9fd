"""Exact companions: golden numbers G1, G4, G5 and G10, other ways to the same numbers, and bounds that hold."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from limit_cases import response_rows
from stirred.lab.reproduce.catalogue import items
from stirred.lab.reproduce.verdicts import holds
from stirred.limits import (
    ClampedCount,
    Density,
    density_ratio_distance,
    laplace_count_beliefs,
    laplace_count_densities,
    laplace_power,
    laplace_threshold,
    multiplicative_distance,
    posterior_bounds,
    power_bounds,
    response_bounds,
    response_likelihood,
    response_power,
)

COUNT = ClampedCount()

# t: p(t), posterior mean and standard deviation, smallest and largest posterior over prior.
G5 = {
    -10: (0.01041684, 2.657089, 1.577457, 0.555858, 1.510980),
    0: (0.05515184, 2.657089, 1.577457, 0.555858, 1.510980),
    1: (0.06166589, 2.722543, 1.583252, 0.587302, 1.209121),
    3: (0.06423075, 2.974003, 1.651932, 0.786916, 1.059958),
    5: (0.05665370, 3.257068, 1.780405, 0.639261, 1.255020),
    6: (0.05137049, 3.390869, 1.855986, 0.596775, 1.622202),
    10: (0.02637449, 3.390869, 1.855986, 0.596775, 1.622202),
    20: (0.00498150, 3.390869, 1.855986, 0.596775, 1.622202),
}


# -- G1 and the Laplace count --------------------------------------------------------------------------------


def test_the_laplace_illustration_has_all_its_numbers():
    rows = laplace_count_densities([0, -0.5], 2, 1)
    assert rows[0] == pytest.approx([1, math.exp(-1)])
    assert rows[1] == pytest.approx([math.exp(-2), math.exp(-3)])
    t = np.linspace(-5, 6, 111)
    low, high = laplace_count_densities(t, 2, 1)
    assert low[t <= 0] == pytest.approx(math.exp(2) * high[t <= 0])
    assert low[t >= 1] == pytest.approx(math.exp(-2) * high[t >= 1])
    assert rows == pytest.approx(np.stack([Density.laplace(q, 0.5)(np.array([0, -0.5])) for q in (0, 1)]))


@pytest.mark.parametrize(
    ("level", "epsilon", "n", "power", "bound"),
    [
        (0.05, 0.1, 10, 0.135914, 0.135914),
        (0.05, 1, 1, 0.135914, 0.135914),
        (0.05, 1, 2, 0.369453, 0.369453),
        (0.05, 0.25, 10, 0.589575, 0.609125),
        (0.05, 1, 3, 0.751065, 0.952702),
        (0.2, 1, 1, 0.540151, 0.543656),
        (0.6, 1, 1, 0.852848, 0.852848),
        (0.05, math.log(10) / 10, 10, 0.5, 0.5),
    ],
)
def test_section_5_9_the_best_test_has_its_golden_powers(level, epsilon, n, power, bound):
    assert float(laplace_power(level, epsilon, n)) == pytest.approx(power, abs=5e-7)
    assert float(power_bounds(level, epsilon, n).upper) == pytest.approx(bound, abs=5e-7)
    threshold = float(laplace_threshold(level, epsilon))
    assert stats.laplace.sf(threshold, scale=1 / epsilon) == pytest.approx(level, rel=1e-12)
    assert stats.laplace.sf(threshold, loc=n, scale=1 / epsilon) == pytest.approx(power, abs=5e-7)


@given(st.floats(0, 1), st.floats(0, 50))
def test_section_5_9_theorem_5_5_1_is_attained_exactly_where_the_reference_says(level, r):
    exact, bound = float(laplace_power(level, r)), float(power_bounds(level, r).upper)
    assert level - 1e-12 <= exact <= bound + 1e-12
    tight = level <= math.exp(-r) / 2 or level >= 0.5
    assert not tight or exact == pytest.approx(bound, abs=1e-9)
    if not tight and math.exp(-r) * 0.51 < level < 0.49 and 0.1 < r < 20:
        assert exact < bound


def test_powers_of_the_laplace_count_at_the_ends():
    assert laplace_power([0, 1], 1).tolist() == [0, 1]
    assert laplace_power(0.3, 0).tolist() == 0.3
    assert laplace_power([0, 0.3, 1], math.inf).tolist() == [1, 1, 1]
    assert laplace_power(0.01, 1000).tolist() == 1
    assert laplace_threshold([0, 0.5, 1], 1).tolist() == [math.inf, 0, -math.inf]


def test_the_best_test_beats_other_tests_on_a_fine_partition_of_outputs():
    edges = np.append(-np.inf, np.append(np.linspace(-12, 15, 541), np.inf))
    p, q = (np.diff(stats.laplace.cdf(edges, loc=at)) for at in (0, 3))
    rng = np.random.default_rng(5)
    for _ in range(200):
        region = rng.random(len(p)) < rng.random()
        assert q[region].sum() <= float(laplace_power(min(1.0, p[region].sum()), 1, 3)) + 1e-12


def test_g10_beliefs_about_one_bit_have_the_numbers_of_section_5_9():
    found = laplace_count_beliefs([-2, 0, 0.5, 1, 40, 1e9], [0.5, 0.5], 1)
    expected = [0.731059, 0.731059, 0.5, 0.268941, 0.268941, 0.268941]
    assert found.posterior[:, 0] == pytest.approx(expected, abs=5e-7)
    assert density_ratio_distance(found.posterior, [0.5, 0.5]) == pytest.approx([1, 1, 0, 1, 1, 1], abs=1e-9)
    assert multiplicative_distance(found.posterior[0], [0.5, 0.5]) == pytest.approx(0.620115, abs=5e-7)


def test_beliefs_about_a_count_are_those_of_bayes(rng):
    for _ in range(50):
        n, epsilon = int(rng.integers(0, 6)), float(rng.uniform(0.1, 3))
        weights = rng.dirichlet(np.ones(n + 1))
        t = rng.normal(n / 2, 3, size=(2, 3))
        found = laplace_count_beliefs(t, weights, epsilon)
        joint = np.stack([stats.laplace.pdf(t, loc=k, scale=1 / epsilon) * weights[k] for k in range(n + 1)], axis=-1)
        assert found.density == pytest.approx(joint.sum(axis=-1))
        assert found.posterior == pytest.approx(joint / joint.sum(axis=-1, keepdims=True))
        # Each sum as an event: within the band of the distance between the farthest possible sums.
        assert posterior_bounds(weights, epsilon, n).contains(found.posterior).all()


# -- randomised response -------------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [1, 2, 3, 4])
def test_the_best_test_on_responses_is_that_of_all_sequences(records):
    from stirred.loss import PowerCurve, power_curve

    rows = response_rows(records, 0.8)
    vertices = power_curve(rows[0], rows[-1])
    levels = np.linspace(0, 1, 41)
    oracle = PowerCurve(tuple(map(tuple, vertices.tolist()))).power(levels)
    found = response_power(levels, 0.8, records)
    assert found == pytest.approx(oracle, abs=1e-12)
    bound = power_bounds(levels, 0.8, records).upper
    assert np.all(found <= bound + 1e-12)
    assert (records == 1) == bool(np.allclose(found, bound, atol=1e-9))


def test_the_likelihood_of_responses_is_the_average_over_bits():
    epsilon, records = 0.7, 3
    rows = response_rows(records, epsilon)
    bits = np.array(list(itertools.product((0, 1), repeat=records)))
    for rate in (0, 0.2, 0.5, 1):
        model = np.prod(np.where(bits == 1, rate, 1 - rate), axis=1)
        found = response_likelihood(bits.sum(axis=1), records, rate, epsilon)
        assert found == pytest.approx(model @ rows)
        assert response_bounds(records, epsilon).contains(found).all()


# -- G5: the clamped count -----------------------------------------------------------------------------------


@pytest.mark.parametrize("t", G5)
def test_example_5_6_5_has_its_golden_numbers(t):
    density, mean, deviation, least, most = G5[t]
    assert float(COUNT.predictive(t)) == pytest.approx(density, abs=5e-9)
    assert COUNT.mean(t) == pytest.approx(mean, abs=5e-7)
    assert COUNT.deviation(t) == pytest.approx(deviation, abs=5e-7)
    assert COUNT.ratios(t) == (pytest.approx(least, abs=5e-7), pytest.approx(most, abs=5e-7))


def test_example_5_6_5_the_noise_and_the_counts():
    noise = items()["thesis/example-5.6.5/noise"]
    assert holds(noise.relation, noise.published, math.sqrt(2) * COUNT.scale)
    assert holds("rounds to", noise.further, math.sqrt(2) * COUNT.scale)
    assert COUNT.counts[:-1] == pytest.approx([0.125, 0.1875, 0.1875, 0.15625, 0.1171875, 0.08203125])
    assert COUNT.counts[-1] == pytest.approx(0.14453125)
    # How often rejection sampling would accept: exp(-epsilon |t - q|/6) on average.
    assert [round(12 * float(COUNT.predictive(t)), 6) for t in (-10, 3, 20)] == [0.125002, 0.770769, 0.059778]


@pytest.mark.parametrize("count", [COUNT, ClampedCount(2.5, 0.7, 1, 4, 2.3), ClampedCount(1, 2, 2, 9, 0.3)])
@pytest.mark.parametrize("t", [-3.0, 1.5, 2.0, 3.3, 8.7, 30.0])
def test_the_finite_sums_are_what_quadrature_finds(count, t):
    counts = np.arange(200)
    noise = stats.laplace.pdf(t, loc=np.clip(counts, count.low, count.high), scale=count.scale)
    factorials = special.gammaln(counts + 1)

    def likelihood(theta):
        return float(np.exp(special.xlogy(counts, theta) - theta - factorials) @ noise)

    def prior(theta):
        k, r = count.shape, count.rate
        return math.exp(k * math.log(r) + special.xlogy(k - 1, theta) - r * theta - math.lgamma(k))

    def mean_of(function, upper=70.0):
        return integrate.quad(
            lambda x: function(x) * prior(x) * likelihood(x), 0, upper, limit=200, epsabs=0, epsrel=1e-9
        )[0]

    total = mean_of(lambda x: 1.0)
    assert float(count.predictive(t)) == pytest.approx(total, rel=1e-8)
    assert float(count.likelihood(2.2, t)) == pytest.approx(likelihood(2.2), rel=1e-12)
    assert float(count.posterior(2.2, t)) == pytest.approx(prior(2.2) * likelihood(2.2) / total, rel=1e-8)
    assert count.mean(t) == pytest.approx(mean_of(lambda x: x) / total, rel=1e-7)
    assert count.deviation(t) ** 2 == pytest.approx(mean_of(lambda x: (x - count.mean(t)) ** 2) / total, rel=1e-6)
    assert count.belief(1.5, t) == pytest.approx(mean_of(lambda x: 1.0, upper=1.5) / total, rel=1e-7)
    grid = np.append(np.geomspace(1e-6, 150, 4001), 0)
    ratios = count.likelihood(grid, t) / total
    least, most = count.ratios(t)
    assert (least, most) == (pytest.approx(ratios.min(), rel=1e-6), pytest.approx(ratios.max(), rel=1e-5))
    assert least <= ratios.min() * (1 + 1e-12) and ratios.max() <= most * (1 + 1e-9)


def test_theorem_5_6_2_and_5_6_3_hold_for_the_clamped_count_at_every_output():
    theta, outputs = np.linspace(0, 20, 81), np.linspace(-30, 40, 71)
    band = COUNT.predictive_bounds(outputs)
    assert band.contains(COUNT.predictive(outputs)).all()
    assert COUNT.predictive_bounds([0, 3, 6, 10]).lower == pytest.approx([0.030657] * 3 + [0.015740], abs=5e-7)
    assert COUNT.predictive_bounds([0, 3, 6, 10]).upper == pytest.approx(
        [0.083333, 0.137393, 0.083333, 0.042785], abs=5e-7
    )
    for t in outputs:
        assert COUNT.posterior_bounds(theta).contains(COUNT.posterior(theta, t)).all()
        for most in (0.5, 2, 5):
            assert COUNT.belief_bounds(most).contains(COUNT.belief(most, t)).all()


def test_the_odds_form_is_attained_outside_the_clamp_and_nowhere_inside():
    for t in (-1e9, -10, 0, 6, 20, 1e9):
        least, most = COUNT.ratios(t)
        assert math.log(most / least) == pytest.approx(1, abs=1e-9)
    for t in (1, 3, 5):
        least, most = COUNT.ratios(t)
        assert math.log(most / least) < 0.9


def test_a_wide_clamp_is_an_ordinary_noisy_count():
    count = ClampedCount(3, 1, 0, 400, 4000.0)  # noise of scale 0.1
    assert count.mean(5.0) == pytest.approx((3 + 5) / 2, abs=1e-3)
    assert sum(count.counts) == pytest.approx(1)


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_of_the_release_are_those_of_its_density(probability):
    t = COUNT.quantile(probability)
    clamped = np.minimum(np.arange(7), 6)
    assert COUNT.counts @ stats.laplace.cdf(t, loc=clamped, scale=6) == pytest.approx(probability, abs=1e-10)


# -- far from what is believed -------------------------------------------------------------------------------


def test_beliefs_are_numbers_where_all_weight_is_far_from_the_output(recwarn):
    weights = stats.binom.pmf(np.arange(2001), 2000, 0.01)
    weights /= weights.sum()
    found = laplace_count_beliefs([2000.0, 1e6], weights, 1)
    assert found.posterior.sum(axis=1) == pytest.approx([1, 1])
    # Beyond all sums the posterior is that of the largest one, where weights times e^k are known exactly.
    tilted = np.array([special.xlogy(k, 0.01 * math.e) + special.xlogy(2000 - k, 0.99) for k in range(2001)])
    tilted += special.gammaln(2001) - special.gammaln(np.arange(2001) + 1) - special.gammaln(2001 - np.arange(2001))
    tilted = np.exp(tilted - special.logsumexp(tilted))
    assert found.posterior[0] == pytest.approx(tilted, abs=1e-12)
    assert found.posterior[1] == pytest.approx(tilted, abs=1e-12)
    single = laplace_count_beliefs(2, [1, 0, 0], 2000)
    assert single.posterior.tolist() == [1, 0, 0]
    assert single.density == 0  # e^-4000
    assert not recwarn.list


def test_densities_of_beliefs_are_the_mixture(rng):
    weights = rng.dirichlet(np.ones(6))
    outputs = rng.uniform(-8, 14, 50)
    rows = laplace_count_densities(outputs, 0.7, 5)
    found = laplace_count_beliefs(outputs, weights, 0.7)
    assert found.density == pytest.approx(weights @ rows, rel=1e-12)
    assert found.posterior == pytest.approx((weights[:, None] * rows / (weights @ rows)).T, rel=1e-12)


def test_a_large_epsilon_has_bounds_of_the_clamped_count(recwarn):
    band = ClampedCount(epsilon=800).predictive_bounds([0, 3, 30])
    assert np.isfinite(band.lower).all()
    assert not np.isnan(band.upper).any()
    assert np.all(band.upper >= band.lower)
    assert not recwarn.list
