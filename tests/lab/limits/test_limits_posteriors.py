"""Example 5.6.5 for any model and prior: against finite sums, conjugate closed forms, many digits and Theorem 5.6.3."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import special, stats

from stirred.errors import LimitsError, StirredError
from stirred.lab.limits.models import DataModel, NoiseLaw, Prior, clamp_to, uniforms
from stirred.lab.limits.posteriors import Posterior
from stirred.limits import ClampedCount, Density, laplace_count_beliefs, posterior_bounds
from stirred.noise import SeededSource

COUNT = ClampedCount()
GAMMA = Prior.of(Density.gamma(3, 1))
POISSON = DataModel.counts(stats.poisson.pmf)

# G5: the output, the posterior mean, the standard deviation, p(t).
G5 = [
    (-10, 2.657089, 1.577457, 0.01041684),
    (0, 2.657089, 1.577457, 0.05515184),
    (1, 2.722543, 1.583252, 0.06166589),
    (3, 2.974003, 1.651932, 0.06423075),
    (5, 3.257068, 1.780405, 0.05665370),
    (6, 3.390869, 1.855986, 0.05137049),
    (20, 3.390869, 1.855986, 0.00498150),
]


def published(output, prior=GAMMA, model=POISSON):
    return Posterior(prior, model, NoiseLaw.laplace(6), output, clamp_to(0, 6))


def agrees(found, truth):
    """Within the stated error, which is small."""
    assert found.error < 1e-7 * max(1.0, abs(truth))
    assert abs(found.value - truth) <= found.error + 1e-14 * abs(truth)


# -- quadrature ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("t", "mean", "deviation", "density"), G5)
def test_example_5_6_5_by_quadrature_has_its_golden_numbers(t, mean, deviation, density):
    after = published(t)
    assert after.mean.value == pytest.approx(mean, abs=5e-7)
    assert after.deviation.value == pytest.approx(deviation, abs=5e-7)
    assert after.predictive.value == pytest.approx(density, abs=5e-9)


@pytest.mark.parametrize("count", [COUNT, ClampedCount(2.5, 0.7, 1, 4, 2.3), ClampedCount(1, 2, 2, 9, 0.3)])
@pytest.mark.parametrize("t", [-3.0, 2.0, 3.3, 30.0])
def test_example_5_6_5_by_quadrature_is_the_finite_sum_within_the_stated_error(count, t):
    prior, noise = Prior.of(Density.gamma(count.shape, count.rate)), NoiseLaw.laplace(count.scale)
    after = Posterior(prior, POISSON, noise, t, clamp_to(count.low, count.high))
    agrees(after.mean, count.mean(t))
    agrees(after.deviation, count.deviation(t))
    agrees(after.predictive, float(count.predictive(t)))
    agrees(after.probability(high=1.5), count.belief(1.5, t))
    agrees(after.probability(1.5, 4), count.belief(4, t) - count.belief(1.5, t))
    theta = np.array([0.3, 2.2, 7.0])
    assert after.density(theta) == pytest.approx(count.posterior(theta, t), rel=1e-12)
    for p in (0.01, 0.5, 0.975):
        assert count.belief(after.quantile(p).value, t) == pytest.approx(p, abs=1e-12)
        assert after.quantile(p).error < 1e-9


def test_theorem_5_6_3_holds_for_posteriors_of_any_prior_and_model(rng):
    priors = [
        (GAMMA, np.linspace(0.01, 12, 60)),
        (Prior.function(lambda x: special.expit(x) * special.expit(-x)), np.linspace(-9, 9, 61)),
        (Prior.listed([0.5, 2, 4, 11], [0.1, 0.2, 0.3, 0.4]), np.array([0.5, 2, 4, 11])),
        (Prior.of(Density.normal(2, 3)), np.linspace(-8, 12, 61)),
    ]
    models = [
        DataModel.counts(lambda x, theta: stats.poisson.pmf(x, np.abs(theta) + 0.1)),
        DataModel.listed(range(9), lambda x, theta: stats.binom.pmf(x, 8, special.expit(theta))),
        DataModel.counts(lambda x, theta: stats.geom.pmf(x, special.expit(-theta / 3)), low=1),
    ]
    for (prior, theta), model in itertools.product(priors, models):
        epsilon, high = float(rng.uniform(0.2, 3)), float(rng.integers(3, 8))
        for t in (-4.0, 2.5, 30.0):
            after = Posterior(prior, model, NoiseLaw.laplace(high / epsilon), t, clamp_to(0, high))
            assert after.bounds(theta, epsilon).contains(after.density(theta), 1e-9).all()
            ratios = after.ratio(theta)
            assert np.all(np.abs(np.log(ratios)) <= epsilon + 1e-9)
            assert np.log(ratios.max() / ratios.min()) <= epsilon + 1e-9
            # The sharper form, of an event.
            at = float(np.median(theta))
            if prior.values is None:
                flat = NoiseLaw.of_density(lambda t, q: 0 * q + 1, 1)
                before = Posterior(prior, model, flat, 0, clamp_to(0, high)).probability(high=at)
                assert posterior_bounds(before.value, epsilon).contains(after.probability(high=at).value, 1e-8).all()


def test_a_wrong_band_would_be_noticed():
    theta = np.linspace(0.01, 12, 60)
    assert not published(20).bounds(theta, 0.4).contains(published(20).density(theta)).all()


def test_a_beta_prior_of_a_binomial_share_with_discrete_noise_has_its_closed_form():
    a, b, n = 0.7, 2.5, 12
    prior = Prior.function(lambda x: stats.beta.pdf(x, a, b), 0, 1)
    model = DataModel.listed(range(n + 1), lambda x, theta: stats.binom.pmf(x, n, theta))
    k = np.arange(n + 1)
    for noise, weights in (
        (NoiseLaw.discrete_laplace(1.7), np.exp(-np.abs(9 - k) / 1.7)),
        (NoiseLaw.discrete_gaussian(3), np.exp(-((9 - k) ** 2) / 6)),
        (NoiseLaw.gaussian(3), np.exp(-((9 - k) ** 2) / 6)),
    ):
        after = Posterior(prior, model, noise, 9)
        counts = stats.betabinom.pmf(k, n, a, b) * weights
        counts /= counts.sum()
        means = (a + k) / (a + b + n)
        squares = means * (a + k + 1) / (a + b + n + 1)
        agrees(after.mean, float(counts @ means))
        agrees(after.deviation, math.sqrt(counts @ squares - (counts @ means) ** 2))
        agrees(
            after.probability(0.2, 0.6),
            float(counts @ np.diff(stats.beta.cdf([[0.2], [0.6]], a + k, b + n - k), axis=0)[0]),
        )


def test_a_posterior_without_a_clamp_is_what_forty_digits_find():
    after = Posterior(GAMMA, POISSON, NoiseLaw.discrete_gaussian("3/2"), 4)
    with localcontext() as context:
        context.prec = 40
        noise = {k: (-Decimal(k * k) / 3).exp() for k in range(-99, 100)}
        total = sum(noise.values())
        # Gamma and Poisson are negative binomial; given x, theta is Gamma(3 + x, 2).
        joint = [math.comb(x + 2, 2) / Decimal(2) ** (3 + x) * noise[4 - x] / total for x in range(100)]
        agrees(after.predictive, float(sum(joint)))
        agrees(after.mean, float(sum(p * (3 + x) / 2 for x, p in enumerate(joint)) / sum(joint)))


def test_counts_that_are_left_out_are_in_the_error_and_listed_where_they_matter():
    heavy = Prior.function(lambda x: np.where(x > 0, 2 / math.pi / (1 + x * x), 0.0), 0)  # half a Cauchy
    after = Posterior(heavy, POISSON, NoiseLaw.discrete_laplace(2), 2)
    assert after.predictive.error < 1e-10
    unknown = Posterior(heavy, POISSON, NoiseLaw.discrete_laplace(2), 2, lambda x: x)  # which counts matter?
    assert 1e-6 < unknown.predictive.error < 1e-3
    assert abs(unknown.predictive.value - after.predictive.value) <= unknown.predictive.error
    clamp = Posterior(heavy, POISSON, NoiseLaw.laplace(6), 2, clamp_to(0, 6))
    assert math.isinf(clamp.mean.error)  # there is no mean: every count from 6 on has the same likelihood
    assert math.isinf(clamp.deviation.error)
    assert clamp.predictive.error < 1e-9
    assert clamp.quantile(0.99).error < 1e-6


def test_the_stated_error_covers_the_truth_where_few_counts_are_listed(monkeypatch):
    monkeypatch.setattr("stirred.lab.limits.posteriors.FIRST_COUNTS", 5)
    monkeypatch.setattr("stirred.lab.limits.posteriors.MOST_COUNTS", 10)
    rough = Posterior(GAMMA, POISSON, NoiseLaw.discrete_gaussian(4), 3, lambda x: x)
    assert rough.mean.error > 0
    monkeypatch.undo()
    fine = Posterior(GAMMA, POISSON, NoiseLaw.discrete_gaussian(4), 3)
    for name in ("predictive", "mean", "deviation"):
        first, second = getattr(rough, name), getattr(fine, name)
        assert 1e-4 < abs(first.value - second.value) <= first.error
        assert second.error < 1e-9


def test_a_far_output_has_a_posterior_though_its_density_vanishes():
    after = published(1e5)
    assert after.predictive.value == 0.0
    agrees(after.mean, COUNT.mean(6))


def test_a_list_of_thetas_is_a_finite_sum():
    # Section 5.9 with one bit: theta is the bit itself.
    bit = DataModel.listed([0, 1], lambda x, theta: (x == theta).astype(float))
    for t in (-2.0, 0.5, 0.8, 3.0):
        after = Posterior(Prior.listed([1, 0], [0.3, 0.7]), bit, NoiseLaw.laplace(1), t)
        exact = laplace_count_beliefs(t, [0.7, 0.3], 1)
        assert after.density([0, 1, 0.5]) == pytest.approx([*exact.posterior, 0.0])
        agrees(after.predictive, float(exact.density))
        agrees(after.mean, float(exact.posterior[1]))
        agrees(after.probability(1, 1), float(exact.posterior[1]))
        assert after.quantile(0.999).value == 1
        assert after.quantile(1e-6) == (0, 0)


def test_g10_the_posterior_of_section_5_9_has_its_numbers():
    bit = DataModel.listed([0, 1], lambda x, theta: (x == theta).astype(float))
    for t, expected in ((-1, 0.268941), (0.5, 0.5), (1, 0.731059)):
        after = Posterior(Prior.listed([0, 1], [0.5, 0.5]), bit, NoiseLaw.laplace(1), t)
        assert after.mean.value == pytest.approx(expected, abs=5e-7)


def test_noise_of_ones_own_may_be_randomised_response():
    told = NoiseLaw.of_density(lambda t, q: np.where(q == t, 0.75, 0.25), 0.75, "randomised response")
    coin = DataModel.listed([0, 1], lambda x, theta: np.where(x == 1, theta, 1 - theta))
    after = Posterior(Prior.function(np.ones_like, 0, 1), coin, told, 1)
    agrees(after.mean, (0.25 / 2 + 0.5 / 3) / 0.5)  # prior uniform, likelihood 1/4 + theta/2
    assert after.density([0.0, 1.0]) == pytest.approx([0.5, 1.5])


@pytest.mark.parametrize("variance", [0.01, 0.3, 0.999, 1.0, 7.0, 400.0])
def test_discrete_laws_are_probabilities(variance):
    k = np.arange(-2_000, 2_001, dtype=float)
    for law in (NoiseLaw.discrete_gaussian(variance), NoiseLaw.discrete_laplace(variance**0.5)):
        found = np.exp(law.log_density(0.0, k))
        assert found.sum() == pytest.approx(1, rel=1e-13)
        assert law.log_highest(0.0, (-math.inf, math.inf)) == pytest.approx(math.log(found.max()))
        assert np.all(np.exp(law.log_density(0.5, k)) == 0)


# -- draws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [-10, 3, 20])
@pytest.mark.parametrize("way", ["theta and x", "theta"])
def test_example_5_6_5_by_rejection_is_that_of_quadrature_within_its_monte_carlo_error(t, way):
    generator = np.random.default_rng(4)
    prior = Prior.drawn(lambda size: generator.gamma(3, 1, size)) if way == "theta and x" else GAMMA
    model = DataModel.drawn(generator.poisson) if way == "theta and x" else POISSON
    draws = published(t, prior, model).draws(20_000, SeededSource(8))
    assert len(draws) == 20_000
    for found, truth in (
        (draws.mean, COUNT.mean(t)),
        (draws.expected(lambda theta: (theta < 1.5).astype(float)), COUNT.belief(1.5, t)),
        (draws.predictive, float(COUNT.predictive(t))),
    ):
        assert 0 < found.error < 0.02 * truth
        assert abs(found.value - truth) < 4 * found.error
    median = draws.quantile(0.5)
    assert abs(COUNT.belief(median.value, t) - 0.5) < 4 * math.sqrt(0.25 / 20_000)
    assert 0.3 < median.error / (0.5 / math.sqrt(20_000) / float(COUNT.posterior(median.value, t))) < 3


@pytest.mark.slow
@pytest.mark.parametrize("t", [0, 3, 6])
def test_draws_have_the_law_of_the_posterior(t):
    draws = published(t).draws(400_000, SeededSource(21))
    cells = np.array([COUNT.belief(x, t) for x in np.linspace(0.25, 9, 36)])
    seen = np.histogram(draws.values, np.concatenate([[0], np.linspace(0.25, 9, 36), [math.inf]]))[0]
    expected = np.diff(np.concatenate([[0], cells, [1]])) * len(draws)
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def test_the_acceptance_is_the_published_one_within_the_clamp_and_no_less_outside():
    # G5: 12 p(t), relative to the largest density of the noise. Outside no answer reaches that, so more is accepted.
    for t, rate in ((0, 0.661822), (3, 0.770769), (6, 0.616446), (20, 0.616446), (-10, 0.661822)):
        found = published(t).draws(5_000, SeededSource(3)).acceptance
        assert abs(found.value - rate) < 4 * found.error
    assert 12 * published(20).predictive.value == pytest.approx(0.059778, abs=5e-7)
    assert 12 * published(-10).predictive.value == pytest.approx(0.125002, abs=5e-7)


def test_counts_without_end_are_decided_as_far_as_needed():
    after = Posterior(GAMMA, POISSON, NoiseLaw.discrete_gaussian(4), 2)
    draws = after.draws(5_000, SeededSource(5))
    assert abs(draws.mean.value - after.mean.value) < 4 * draws.mean.error
    unknown = Posterior(GAMMA, POISSON, NoiseLaw.discrete_gaussian(4), 2, lambda x: x)
    assert unknown.draws(5_000, SeededSource(5)).values.tolist() == draws.values.tolist()
    far = Posterior(Prior.drawn(lambda size: np.full(size, 5_000.0)), POISSON, NoiseLaw.laplace(60), 5_010.0)
    assert far.draws(50, SeededSource(5)).mean.value == 5_000


def test_whole_datasets_can_be_drawn_and_queried():
    generator = np.random.default_rng(2)
    ten_bits = DataModel.drawn(lambda theta: generator.random((len(theta), 10)) < theta[:, None])
    prior = Prior.of(Density.linear((0, 1), ((1, 1),)))
    drawn = Posterior(prior, ten_bits, NoiseLaw.laplace(1), 7, lambda x: x.sum(axis=1)).draws(20_000, SeededSource(2))
    sums = DataModel.listed(range(11), lambda x, theta: stats.binom.pmf(x, 10, theta))
    exact = Posterior(prior, sums, NoiseLaw.laplace(1), 7)
    assert abs(drawn.mean.value - exact.mean.value) < 4 * drawn.mean.error


def test_a_fixed_source_repeats_draws_and_another_does_not():
    first, second, third = (published(3).draws(50, SeededSource(key)).values for key in (1, 1, 2))
    assert first.tolist() == second.tolist() != third.tolist()
    assert len(published(3).draws(5)) == 5  # the operating system's


@pytest.mark.parametrize(
    ("density", "law"),
    [
        (Density.gamma(3, 1), stats.gamma(3)),
        (Density.gamma(1, 2), stats.expon(scale=0.5)),
        (Density.normal(5, 2), stats.norm(5, 2)),
        (Density.laplace(-3, 0.1), stats.laplace(-3, 0.1)),
        (Density.linear((0, 1, 2), ((0, 1), (1, 0))), stats.triang(0.5, 0, 2)),
    ],
)
def test_draws_from_a_density_are_quantiles_of_uniform_numbers(density, law):
    found = Prior.of(density).draw(2_000, SeededSource(4))
    u = uniforms(2_000, SeededSource(4)) + 2.0**-54
    assert np.max(np.abs(law.cdf(found) - u)) < 1e-13


# -- errors --------------------------------------------------------------------------------------------------


def refused(kind, action):
    with pytest.raises(StirredError) as refusal:
        action()
    assert refusal.value.kind == kind


def test_what_is_not_a_prior_is_refused():
    twice = Posterior(Prior.function(lambda x: 2 * np.ones_like(x), 0, 1), POISSON, NoiseLaw.laplace(1), 0)
    with pytest.raises(LimitsError, match="integrates to 2"):
        twice.likelihood(1)
    refused("not-a-prior", lambda: Posterior(Prior.function(np.ones_like, 0), POISSON, NoiseLaw.laplace(1), 0).mean)
    narrow = Prior.function(lambda x: stats.norm.pdf(x, 1000, 0.1))
    refused("not-a-prior", lambda: Posterior(narrow, POISSON, NoiseLaw.laplace(1), 0).mean)
    found = Posterior(
        Prior.function(lambda x: stats.norm.pdf(x, 1000, 0.1), 0, breaks=[1000]), POISSON, NoiseLaw.laplace(9), 990
    )
    assert found.mean.value == pytest.approx(1000, abs=0.1)
    refused("not-a-prior", lambda: Prior.function(np.ones_like, 1, 0))
    refused("not-a-prior", lambda: Prior.listed([1, 1], [0.5, 0.5]))
    refused("not-a-prior", lambda: Posterior(Prior.function(lambda x: -x, 0, 1), POISSON, NoiseLaw.laplace(1), 0).mean)


def test_what_cannot_be_computed_says_what_is_needed():
    drawn = Prior.drawn(lambda size: np.ones(size))
    refused("posterior-needs", lambda: published(3, prior=drawn).mean)
    refused("posterior-needs", lambda: published(3, prior=drawn).density(1))
    refused("posterior-needs", lambda: published(3, prior=drawn).probability(1, 2))
    refused("posterior-needs", lambda: published(3, model=DataModel.drawn(np.floor)).mean)
    no_sampler = Prior.function(lambda x: np.exp(-x), 0)
    refused("posterior-needs", lambda: published(3, prior=no_sampler).draws(5))


def test_an_output_that_cannot_occur_is_refused():
    refused("impossible-output", lambda: Posterior(GAMMA, POISSON, NoiseLaw.discrete_laplace(1), 2.5).mean)
    bits = DataModel.listed([0, 1], lambda x, theta: 0 * x + 0 * theta + 0.5)
    refused("impossible-output", lambda: Posterior(GAMMA, bits, NoiseLaw.discrete_laplace(1), 0.5).mean)


def test_too_few_acceptances_end_in_an_error():
    far = Posterior(Prior.drawn(np.zeros), DataModel.drawn(lambda x: x), NoiseLaw.laplace(1), 60)
    refused("too-few-accepted", lambda: far.draws(5, SeededSource(1), most=2_000))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NoiseLaw.laplace(0),
        lambda: NoiseLaw.discrete_gaussian("x"),
        lambda: NoiseLaw.of_density(lambda t, q: q, -1),
        lambda: Posterior(GAMMA, POISSON, NoiseLaw.of_density(lambda t, q: 0 * q + 2, 1), 0).mean,
        lambda: published(math.inf),
        lambda: published(3).quantile(1),
        lambda: published(3).probability(2, 1),
        lambda: published(3).draws(0),
        lambda: published(3).draws(5, SeededSource(1)).quantile(0),
        lambda: published(3).draws(5, SeededSource(1)).expected(np.sum),
        lambda: published(3, prior=Prior.drawn(lambda size: np.ones(3))).draws(5),
        lambda: published(3, prior=Prior.drawn(lambda size: np.ones((size, 2)))).draws(5),
        lambda: published(3, model=DataModel.drawn(lambda theta: theta[:2])).draws(5),
        lambda: Posterior(GAMMA, POISSON, NoiseLaw.laplace(6), 3, lambda x: x[:2]).mean,
        lambda: Posterior(GAMMA, DataModel.counts(lambda x, theta: x + theta), NoiseLaw.laplace(6), 3).mean,
        lambda: clamp_to(1, 1),
        lambda: Posterior(GAMMA, POISSON, NoiseLaw.laplace(6), 3, clamp_to(0, 1e9)).mean,
        lambda: DataModel.counts(stats.poisson.pmf, low=0.5),
        lambda: DataModel.listed([], stats.poisson.pmf),
        lambda: Posterior(GAMMA, POISSON, NoiseLaw.laplace(6)),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_in_words(wrong):
    with pytest.raises(StirredError):
        wrong()
