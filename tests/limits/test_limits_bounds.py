"""Bounds from (epsilon, distance): the golden numbers of chapter 5, closed forms, and the errata both ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from limit_cases import printed_number, response_rows
from stirred import loss
from stirred.lab.reproduce.catalogue import items
from stirred.lab.reproduce.verdicts import holds
from stirred.limits import (
    DatabaseGraph,
    Density,
    data_bounds,
    density_bounds,
    density_ratio_distance,
    laplace_count_bounds,
    laplace_count_mixture,
    mixture_bounds,
    multiplicative_distance,
    posterior_bounds,
    power_bounds,
    radius,
    response_bounds,
    standard_limits,
)

OUTPUTS = [-20, -10, -5, 0, 2.5, 5, 7.5, 10, 15, 20, 30]


def laplace_rows(sums, epsilon, outputs, sensitivity=1.0):
    """p_x(t) for the sums of datasets. Erratum 1: the exponent is negative."""
    scale = sensitivity / epsilon
    return np.stack([Density.laplace(q, scale)(np.asarray(outputs, dtype=float)) for q in sums])


# -- G2: the privatised binary sum ---------------------------------------------------------------------------


FIGURE_5_2 = {
    0.1: (
        [.002489, .006767, .011157, .018394, .018394, .018394, .018394, .018394, .011157, .006767, .002489],
        [.006767, .018394, .030327, .050000, .064201, .082436, .064201, .050000, .030327, .018394, .006767],
    ),
    0.25: (
        [.000069, .000842, .002940, .010261, .010261, .010261, .010261, .010261, .002940, .000842, .000069],
        [.000842, .010261, .035813, .125000, .233531, .436293, .233531, .125000, .035813, .010261, .000842],
    ),
}  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.1, 0.25])
def test_figure_5_2_has_its_golden_numbers(epsilon):
    band = laplace_count_bounds(OUTPUTS, epsilon, 10)
    lower, upper = FIGURE_5_2[epsilon]
    assert band.lower == pytest.approx(lower, abs=5e-7)
    assert band.upper == pytest.approx(upper, abs=5e-7)


def test_section_5_6_what_figure_5_2_is_said_to_show():
    lowest, highest = (items()[f"thesis/section-5.6/predictive/{side}-0.1"].published for side in ("lower", "upper"))
    assert holds("rounds to", lowest, laplace_count_bounds(np.linspace(0, 10, 101), 0.1, 10).lower.min())
    assert holds("rounds to", highest, laplace_count_bounds(5, 0.1, 10).upper)
    assert (
        laplace_count_bounds(np.linspace(-20, 30, 501), 0.1, 10).upper.max() == laplace_count_bounds(5, 0.1, 10).upper
    )


def test_erratum_2_more_than_two_fifths_belongs_to_another_epsilon():
    printed = printed_number("thesis/section-5.6/predictive/upper-0.5")
    assert laplace_count_bounds([5], 0.25, 10).upper == pytest.approx(0.436293, abs=5e-7)
    assert printed < laplace_count_bounds(5, 0.25, 10).upper < printed + 0.1
    assert laplace_count_bounds([0, 2.5, 5], 0.5, 10).upper == pytest.approx([0.25, 0.872586, 3.045623], abs=5e-7)
    assert laplace_count_bounds(5, 0.5, 10).upper > 7 * printed


@pytest.mark.parametrize(
    ("epsilon", "low", "high"), [(0.1, 0.551819, 1.648721), (0.25, 0.184691, 3.490343), (0.5, 0.023583, 12.182494)]
)
def test_the_masses_of_the_two_measures(epsilon, low, high):
    for side, mass in (("lower", low), ("upper", high)):

        def bound(t, side=side):
            return float(getattr(laplace_count_bounds(t, epsilon, 10), side))

        found, _ = integrate.quad(bound, -300, 300, points=[0, 5, 10], limit=300)
        assert found == pytest.approx(mass, abs=2e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 1])
def test_the_closed_form_is_the_band_of_whole_sums(epsilon):
    outputs = np.linspace(-6, 16, 89)
    graph = DatabaseGraph.hamming((0, 1), 6)
    rows = laplace_rows([sum(x) for x in graph.datasets], epsilon, outputs)
    band, closed = data_bounds(rows, graph, epsilon), laplace_count_bounds(outputs, epsilon, 6, whole=True)
    assert band.lower == pytest.approx(closed.lower)
    # The infimum over x_* is at one of the two ends, which are whole numbers.
    assert band.upper == pytest.approx(closed.upper)
    trivial, known = mixture_bounds(rows, graph), laplace_count_mixture(outputs, epsilon, 6, whole=True)
    assert trivial.lower == pytest.approx(known.lower)
    assert trivial.upper == pytest.approx(known.upper)
    assert trivial.inside(band)
    assert np.all(laplace_count_bounds(outputs, epsilon, 6).lower >= closed.lower * (1 - 1e-12))


def test_whole_sums_ripple_between_whole_numbers():
    assert laplace_count_bounds(2.5, 0.1, 10, whole=True).lower == pytest.approx(0.017497, abs=5e-7)
    assert laplace_count_bounds(2.5, 0.25, 10, whole=True).lower == pytest.approx(0.009055, abs=5e-7)


def test_the_trivial_band_has_its_golden_numbers():
    band = laplace_count_mixture([-5, 0, 2.5, 5, 10], 0.1, 10, whole=True)
    assert band.lower == pytest.approx([0.011157, 0.018394, 0.023618, 0.030327, 0.018394], abs=5e-7)
    assert band.upper == pytest.approx([0.030327, 0.05, 0.047561, 0.05, 0.05], abs=5e-7)
    band = laplace_count_mixture([0, 5], 0.25, 10, whole=True)
    assert band.lower == pytest.approx([0.010261, 0.035813], abs=5e-7)
    assert band.upper == pytest.approx([0.125, 0.125], abs=5e-7)


def test_erratum_3_which_dataset_attains_the_band_outside_the_sums():
    epsilon, n = 0.3, 10
    below, above = np.linspace(-9, 0, 30), np.linspace(n, 19, 30)
    none, every = Density.laplace(0, 1 / epsilon), Density.laplace(n, 1 / epsilon)
    band = laplace_count_bounds(below, epsilon, n)
    assert band.upper == pytest.approx(none(below), rel=1e-9)
    assert band.lower == pytest.approx(every(below), rel=1e-9)
    band = laplace_count_bounds(above, epsilon, n)
    assert band.upper == pytest.approx(every(above), rel=1e-9)
    assert band.lower == pytest.approx(none(above), rel=1e-9)
    # As printed the supremum for t <= 0 would be at the dataset of ones, which gives less.
    printed = math.exp(-epsilon * n) * every(below)
    assert np.all(printed < laplace_count_bounds(below, epsilon, n).lower)


def test_erratum_4_the_printed_distance_needs_the_hamming_distance():
    graph = DatabaseGraph.symmetric_difference((0, 1), 10, least=1)
    assert graph.diameter() == 20
    radii = {x: graph.radius(x) for x in graph.datasets}
    assert min(radii.values()) == 10
    assert sorted(x for x in radii if radii[x] == 10) == sorted((0,) * k + (1,) * k for k in range(1, 6))
    outputs = [-5, 0, 2.5, 5, 7.5, 10, 15]
    band = data_bounds(laplace_rows([sum(x) for x in graph.datasets], 0.1, outputs), graph, 0.1)
    lower = [0.010095, 0.016644, 0.017497, 0.018394, 0.014325, 0.011157, 0.006767]
    upper = [0.050000, 0.082436, 0.105850, 0.091106, 0.070953, 0.055259, 0.033516]
    assert band.lower == pytest.approx(lower, abs=5e-7)
    assert band.upper == pytest.approx(upper, abs=5e-7)


# -- G3: randomised response ---------------------------------------------------------------------------------


def test_randomised_response_has_the_golden_numbers_of_figure_5_3():
    band = response_bounds(np.arange(1, 11), 1)
    assert band.lower == pytest.approx(
        [.26894142, .07232949, .01945240, .00523155, .00140698, .00037840, .00010177, .00002737, .00000736, .00000198],
        abs=5e-9)  # fmt: skip
    assert band.upper == pytest.approx(
        [.73105858, .53444665, .39071180, .28563322, .20881461, .15265571, .11160027, .08158633, .05964439, .04360354],
        abs=5e-9)  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_the_band_of_randomised_response_is_the_trivial_one_and_attained(epsilon):
    graph, rows = DatabaseGraph.hamming((0, 1), 4), response_rows(4, epsilon)
    closed = response_bounds(4, epsilon)
    for band in (data_bounds(rows, graph, epsilon), mixture_bounds(rows, graph)):
        assert band.lower == pytest.approx(np.full(16, closed.lower), rel=1e-9)
        assert band.upper == pytest.approx(np.full(16, closed.upper), rel=1e-9)
    gaps = np.subtract(*[getattr(response_bounds(np.arange(1, 30), epsilon), side) for side in ("upper", "lower")])
    assert gaps[0] == pytest.approx(gaps[1])
    assert np.all(np.diff(gaps[1:]) < 0)


# -- G4: tests -----------------------------------------------------------------------------------------------

POWERS = {
    0.1: [(.009048, .011052), (.045242, .055259), (.090484, .110517), (.452419, .547581), (.944741, .954758)],
    0.5: [(.006065, .016487), (.030327, .082436), (.060653, .164872), (.303265, .696735), (.917564, .969673)],
    1: [(.003679, .027183), (.018394, .135914), (.036788, .271828), (.183940, .816060), (.864086, .981606)],
    2: [(.001353, .073891), (.006767, .369453), (.013534, .738906), (.067668, .932332), (.630547, .993233)],
    5: [(.000067, .993329), (.000337, .993599), (.000674, .993936), (.003369, .996631), (.006401, .999663)],
}  # fmt: skip


@pytest.mark.parametrize("r", list(POWERS))
def test_powers_have_their_golden_numbers(r):
    levels = [0.01, 0.05, 0.1, 0.5, 0.95]
    for band in (power_bounds(levels, r), power_bounds(levels, r / 4, 4)):
        assert np.column_stack([band.lower, band.upper]) == pytest.approx(np.array(POWERS[r]), abs=5e-7)
    curve = loss.pure_power(r)
    assert power_bounds(levels, r).upper == pytest.approx(np.asarray(curve.power(levels)), rel=1e-12)


def test_powers_at_the_ends():
    for r in (0, 1, 50, 800):
        band = power_bounds([0, 1], r)
        assert band.lower.tolist() == band.upper.tolist() == [0, 1]
    # At an infinite radius one hypothesis may give what the other cannot: any power at any size.
    for epsilon, distance in ((math.inf, 1), (0, math.inf), (1, math.inf)):
        band = power_bounds([0, 0.5, 1], epsilon, distance)
        assert band.lower.tolist() == [0, 0, 0]
        assert band.upper.tolist() == [1, 1, 1]
    assert power_bounds([0, 1], math.inf, 0).upper.tolist() == [0, 1]
    assert power_bounds(0.3, 0).lower == power_bounds(0.3, 0).upper == pytest.approx(0.3)
    vacuous = power_bounds([0.05, 0.5], [0, 1], math.inf)
    assert vacuous.lower.tolist() == [0, 0]
    assert vacuous.upper.tolist() == [1, 1]
    corner = 1 / (1 + math.e)
    assert power_bounds(corner, 1).upper == pytest.approx(1 - corner)


@given(st.floats(0, 1), st.floats(0, 40), st.floats(0, 3))
def test_powers_are_ordered_monotone_and_turn_round(level, r, more):
    band, wider = power_bounds(level, r), power_bounds(level, r + more)
    assert 0 <= band.lower <= level + 1e-15
    assert level - 1e-15 <= band.upper <= 1
    assert band.inside(wider, 1e-14)
    turned = power_bounds(1 - level, r)
    assert band.lower == pytest.approx(1 - turned.upper, abs=1e-12 * math.exp(min(r, 20)))
    assert band.upper <= level * math.exp(r) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("level", "epsilon", "n", "power", "tight"),
    [
        (0.05, 0.1, 10, 0.135914, True),
        (0.05, 1, 1, 0.135914, True),
        (0.05, 1, 2, 0.369453, True),
        (0.05, 0.25, 10, 0.589575, False),
        (0.05, 1, 3, 0.751065, False),
        (0.2, 1, 1, 0.540151, False),
        (0.6, 1, 1, 0.852848, True),
        (0.05, math.log(10) / 10, 10, 0.5, True),
    ],
)
def test_the_best_test_of_a_laplace_count_attains_the_bound_where_it_should(level, epsilon, n, power, tight):
    # By Neyman and Pearson it rejects above a threshold, the (1 - level) quantile of the noise.
    threshold = stats.laplace.ppf(1 - level, scale=1 / epsilon)
    exact = stats.laplace.sf(threshold, loc=n, scale=1 / epsilon)
    assert exact == pytest.approx(power, abs=5e-7)
    bound = power_bounds(level, epsilon, n).upper
    assert exact <= bound + 1e-12
    assert (abs(exact - bound) < 1e-9) == tight


# -- G5, G10, G11: beliefs -----------------------------------------------------------------------------------


def test_the_sharper_band_has_its_golden_numbers():
    priors = [0.5, 0.1, 0.01]
    odds, published = posterior_bounds(priors, 1), posterior_bounds(priors, 1, form="published")
    assert odds.lower == pytest.approx([0.268941, 0.039270, 0.003702], abs=5e-7)
    assert odds.upper == pytest.approx([0.731059, 0.231969, 0.026724], abs=5e-7)
    assert published.lower == pytest.approx([0.183940, 0.036788, 0.003679], abs=5e-7)
    assert published.upper == pytest.approx([1, 0.271828, 0.027183], abs=5e-7)


@given(st.floats(0, 1), st.floats(0, 30))
def test_the_three_forms_are_nested(prior, r):
    odds, interval, published = (posterior_bounds(prior, r, form=form) for form in ("odds", "interval", "published"))
    assert odds.inside(interval, 1e-12)
    assert interval.inside(published, 1e-12)
    if (1 - prior) * math.exp(-r) > 1e-15:
        assert odds.upper < 1
    if prior * math.exp(-r) > 1e-300:
        assert odds.lower > 0


def test_beliefs_at_the_ends():
    for form in ("odds", "interval", "published"):
        band = posterior_bounds([0, 0.4, 1], [[0], [1], [math.inf], [0]], [[3], [1], [1], [math.inf]], form=form)
        assert band.lower[:, 0].tolist() == band.upper[:, 0].tolist() == [0] * 4
        assert band.upper[:, 2].tolist() == [1] * 4
        assert (band.lower[2:, 1].tolist(), band.upper[2:, 1].tolist()) == ([0, 0], [1, 1])
        assert band.lower[0, 1] == band.upper[0, 1] == 0.4


def test_prior_densities_of_figure_5_4_have_their_golden_numbers():
    prior = Density.gamma(3, 1)(np.array([0.5, 1, 2, 3, 5, 8]))
    band = density_bounds(prior, 1)
    assert prior == pytest.approx([0.075816, 0.183940, 0.270671, 0.224042, 0.084224, 0.010735], abs=5e-7)
    assert band.lower == pytest.approx([0.027891, 0.067668, 0.099574, 0.082420, 0.030984, 0.003949], abs=5e-7)
    assert band.upper == pytest.approx([0.206090, 0.500000, 0.735759, 0.609009, 0.228945, 0.029180], abs=1e-6)


def test_the_clamped_count_has_its_predictive_band_and_attains_the_density_ratio():
    # One count that can be replaced by any other: all different counts are neighbours. Counts above 6 are like 6.
    graph = DatabaseGraph.of_edges(range(7), [(a, b) for a in range(7) for b in range(a)])
    outputs = [0, 3, 6, 10]
    rows = laplace_rows(range(7), 1, outputs, sensitivity=6)
    band = data_bounds(rows, graph, 1)
    assert band.lower == pytest.approx([0.030657, 0.030657, 0.030657, 0.015740], abs=5e-7)
    assert band.upper == pytest.approx([0.083333, 0.137393, 0.083333, 0.042785], abs=5e-7)
    marginal = stats.nbinom.pmf(np.arange(7), 3, 0.5)
    marginal[6] = stats.nbinom.sf(5, 3, 0.5)
    assert marginal @ rows == pytest.approx([0.05515184, 0.06423075, 0.05137049, 0.02637449], abs=5e-9)
    assert band.contains(marginal @ rows).all()
    # The likelihood of theta is an average over counts, from that of 0 to that of 6: the posterior, at any output
    # outside (0, 6), is at density-ratio distance epsilon from the prior, and at a smaller multiplicative one.
    theta = np.append(np.linspace(0, 60, 4001), 500)
    counts = np.column_stack([stats.poisson.pmf(k, theta) for k in range(6)])
    likelihood = np.column_stack([counts, 1 - counts.sum(axis=1)]) @ rows[:, [0]]
    ratio = likelihood[:, 0] / (marginal @ rows[:, 0])
    assert density_ratio_distance(ratio, np.ones(len(ratio))) == pytest.approx(1, abs=1e-9)
    assert (ratio.min(), ratio.max()) == (pytest.approx(0.555858, abs=5e-7), pytest.approx(1.510980, abs=5e-7))


@pytest.mark.parametrize(
    ("t", "posterior", "apart"), [(-2, 0.731059, 1), (0, 0.731059, 1), (0.5, 0.5, 0), (1, 0.268941, 1)]
)
def test_the_two_datasets_of_section_5_9(t, posterior, apart):
    rows = laplace_rows([0, 1], 1, [t])[:, 0]
    belief = rows / rows.sum()
    assert belief[0] == pytest.approx(posterior, abs=5e-7)
    assert density_ratio_distance(belief, [0.5, 0.5]) == pytest.approx(apart, abs=1e-9)
    if apart:
        assert multiplicative_distance(belief, [0.5, 0.5]) == pytest.approx(0.620115, abs=5e-7)
        assert posterior_bounds(0.5, 1).contains(belief, 1e-9).all()


@pytest.mark.parametrize("atom", [0.5, 0.01, 1e-9])
def test_erratum_7_an_atom_reaches_the_published_bound_only_as_it_vanishes(atom):
    epsilon, n = 0.7, 3
    rows = laplace_rows([0, n], epsilon, [n + 1.0])[:, 0]
    posterior = atom * rows[1] / (atom * rows[1] + (1 - atom) * rows[0])
    r = epsilon * n
    assert posterior / atom == pytest.approx(math.exp(r) / (atom * math.exp(r) + 1 - atom))
    assert posterior == pytest.approx(posterior_bounds(atom, epsilon, n).upper, rel=1e-9)
    published = posterior_bounds(atom, epsilon, n, "published").upper
    assert (abs(posterior / published - 1) < 1e-7) == (atom < 1e-8)


# -- radii and densities -------------------------------------------------------------------------------------


def test_nothing_is_promised_at_an_infinite_distance():
    assert radius(0, math.inf) == math.inf
    assert radius(math.inf, 0) == 0
    band = density_bounds([0.0, 0.3], 0, math.inf)
    assert band.lower.tolist() == [0, 0]
    assert band.upper.tolist() == [math.inf, math.inf]
    assert density_bounds(0.0, 3, 5).upper == 0


def test_infinite_densities_and_no_mass_give_numbers(recwarn):
    for band in (density_bounds([math.inf, 1], math.inf), density_bounds([math.inf, 1], [0, math.inf], math.inf)):
        assert band.lower.tolist() == [0, 0]
        assert band.upper.tolist() == [math.inf, math.inf]
    empty = density_bounds([math.inf, 2], 1, mass=0)
    assert empty.lower.tolist() == empty.upper.tolist() == [0, 0]
    assert laplace_count_bounds([5], 500, 10).upper == math.inf
    assert not recwarn.list


def test_the_standard_questions():
    one, whole = standard_limits(0.5, 8)
    assert (one.distance, whole.distance) == (1, 8)
    assert whole.power.upper == pytest.approx(power_bounds(whole.levels, 4).upper)
    assert one.posterior.inside(one.published)
    assert one.power.inside(whole.power)
    assert [limit.distance for limit in standard_limits(0.5, 8, bounded=False)] == [1, 2, 16]
