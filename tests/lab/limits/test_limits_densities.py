"""Densities: closed forms against grids and integrals, certified bounds against what is known exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from stirred import loss
from stirred.lab.limits.distances_of_densities import (
    MixedMeasure,
    density_distances,
    hockey_stick_of_densities,
    mixed_distances,
)
from stirred.limits import Density

LINEAR_F = Density.linear((-1, 0, 1), ((2 / 3, 2 / 3), (2 / 3, 0)))
LINEAR_G = Density.linear((-1, 0, 1), ((0, 2 / 3), (2 / 3, 2 / 3)))


def close(bounds, value, within):
    """The bounds hold the value and are this near to each other."""
    assert bounds.lower <= value + 1e-12
    assert bounds.upper >= value - 1e-12
    assert bounds.upper - bounds.lower <= within


# -- Laplace noise (G1, Example 5.2.2) -----------------------------------------------------------------------


def test_the_laplace_illustration_has_the_numbers_of_figure_5_1():
    here, there = Density.laplace(10, 0.5), Density.laplace(11, 0.5)
    assert here(np.array([10.0, 9.5])) == pytest.approx([1, math.exp(-1)])
    assert there(np.array([10.0, 9.5])) == pytest.approx([math.exp(-2), math.exp(-3)])
    below, above = np.linspace(0, 10, 50), np.linspace(11, 20, 50)
    assert here(below) == pytest.approx(math.exp(2) * there(below))
    assert here(above) == pytest.approx(math.exp(-2) * there(above))
    found = density_distances(here, there)
    assert found.multiplicative == (2, 2)
    assert found.density_ratio == (4, 4)


@pytest.mark.parametrize("epsilon", [0.1, 3])
def test_laplace_noise_of_one_scale_has_closed_forms(epsilon):
    found = density_distances(Density.laplace(0, 1 / epsilon), Density.laplace(1, 1 / epsilon))
    assert found.multiplicative.upper == pytest.approx(epsilon)
    assert found.odds_ratio.upper == pytest.approx(1 - math.exp(-2 * epsilon))
    assert found.linear_vacuous.upper == pytest.approx(1 - math.exp(-epsilon))
    close(found.total_variation, 1 - math.exp(-epsilon / 2), 1e-11)
    for delta in (0.01, 0.9):
        close(found.approximate(delta), max(0.0, epsilon + 2 * math.log(1 - delta)), 1e-9)
    assert found.approximate(0) == found.multiplicative


def test_laplace_noise_on_two_coordinates_adds_up():
    # Example 5.2.2 with k = 2: the log ratio of the product ranges over sums of the two ranges.
    one = density_distances(Density.laplace(0, 2), Density.laplace(0.3, 2))
    other = density_distances(Density.laplace(0, 2), Density.laplace(-0.5, 2))
    assert one.highest.upper + other.highest.upper == pytest.approx(0.8 / 2)


# -- families ------------------------------------------------------------------------------------------------


MEMBERS = [
    [Density.laplace(a, b) for a, b in ((0, 1), (1, 1), (0, 2), (-1, 3))],
    [Density.normal(a, b) for a, b in ((0, 1), (1, 1), (0, 2), (-1, 3))],
    [Density.gamma(k, r) for k, r in ((3, 1), (3, 2), (5, 2), (1, 1), (5, 1))],
]


@pytest.mark.parametrize(("f", "g"), [pair for family in MEMBERS for pair in itertools.permutations(family, 2)])
def test_the_range_of_log_ratios_in_a_family_is_that_of_a_fine_grid(f, g):
    grid = np.linspace(-28, 28, 100_001)
    if f.family[0] == "gamma":
        grid = np.geomspace(1e-9, 300, 100_001)
    with np.errstate(divide="ignore"):
        logs = np.log(f(grid)) - np.log(g(grid))
    found = density_distances(f, g)
    for bound, seen, worse in ((found.lowest.lower, logs.min(), -1), (found.highest.upper, logs.max(), 1)):
        if math.isinf(bound):
            assert worse * seen > 4  # as far as the grid reaches, it has no end
        else:
            assert seen == pytest.approx(bound, abs=2e-4)
            assert worse * seen <= worse * bound + 1e-9


def test_normal_noise_is_infinitely_far_but_not_in_total_variation():
    found = density_distances(Density.normal(0, 1), Density.normal(1, 1))
    assert found.multiplicative == found.density_ratio == (math.inf, math.inf)
    assert found.odds_ratio == found.linear_vacuous == (1, 1)
    close(found.total_variation, 2 * stats.norm.cdf(0.5) - 1, 1e-11)
    for delta in (1e-6, 0.3):
        close(found.approximate(delta), loss.gaussian_epsilon(1, delta), 1e-6)


def test_gamma_densities_integrate_to_the_total_variation():
    f, g = Density.gamma(3, 1), Density.gamma(5, 2)
    value, _ = integrate.quad(lambda t: abs(stats.gamma.pdf(t, 3) - stats.gamma.pdf(t, 5, scale=0.5)), 0, 60, limit=500)
    found = density_distances(f, g).total_variation
    assert found.upper - found.lower < 1e-11
    assert found.lower == pytest.approx(value / 2, abs=1e-8)


def test_members_of_different_families_are_compared_on_a_grid():
    found = density_distances(Density.laplace(0, 1), Density.normal(0, 1))
    value, _ = integrate.quad(lambda t: abs(stats.laplace.pdf(t) - stats.norm.pdf(t)), -40, 40, limit=500, points=[0])
    assert found.total_variation.lower == pytest.approx(value / 2, abs=1e-8)
    assert found.multiplicative.upper == math.inf
    assert found.multiplicative.lower > 50  # the grid sees no end of it


# -- straight pieces and functions of one's own ---------------------------------------------------------------


def test_densities_with_common_support_can_be_infinitely_far_apart():
    # The fixture of appendix C: each is positive where the other is, and one vanishes where the other does not.
    found = density_distances(LINEAR_F, LINEAR_G)
    assert found.multiplicative == found.density_ratio == (math.inf, math.inf)
    assert found.odds_ratio == (1, 1)
    close(found.total_variation, 1 / 3, 1e-11)
    assert LINEAR_F.between(np.array([-1.0]), np.array([1.0])) == pytest.approx(1)


def test_different_supports_are_infinitely_far():
    found = density_distances(Density.linear((0, 1), ((1, 1),)), Density.linear((0, 2), ((0.5, 0.5),)))
    assert found.multiplicative.lower == math.inf
    assert found.highest == pytest.approx((math.log(2), math.log(2)))
    close(found.total_variation, 0.5, 1e-11)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.floats(0.05, 3), st.floats(0.05, 3)), min_size=2, max_size=4), st.data())
def test_straight_pieces_have_their_extreme_ratios_at_knots(f_ends, data):
    knots = list(range(len(f_ends) + 1))
    g_ends = [data.draw(st.tuples(st.floats(0.05, 3), st.floats(0.05, 3))) for _ in f_ends]
    ratios = [
        math.log(a / b) for one, other in zip(f_ends, g_ends, strict=True) for a, b in zip(one, other, strict=True)
    ]
    found = density_distances(Density.linear(knots, f_ends), Density.linear(knots, g_ends))
    close(found.highest, max(ratios), 1e-2)
    close(found.lowest, min(ratios), 1e-2)


def test_a_function_of_ones_own_is_enclosed_by_its_monotone_pieces():
    bump = Density((lambda t: 1 + np.sin(t), lambda t: 1 + np.sin(t)), (0, math.pi / 2, math.pi))
    flat = Density((lambda t: np.full(np.shape(t), 1.5),), (0, math.pi))
    found = density_distances(bump, flat)
    close(found.highest, math.log(2 / 1.5), 1e-9)
    close(found.lowest, math.log(1 / 1.5), 1e-9)
    value, _ = integrate.quad(
        lambda t: max(1 + math.sin(t) - 1.5, 0), 0, math.pi, points=[math.pi / 6, 5 * math.pi / 6]
    )
    close(hockey_stick_of_densities(bump, flat, 0), value, 1e-3)
    # The two masses differ, and the larger excess counts.
    back, _ = integrate.quad(lambda t: max(0.5 - math.sin(t), 0), 0, math.pi, points=[math.pi / 6, 5 * math.pi / 6])
    close(found.total_variation, max(value, back), 1e-3)


@pytest.mark.parametrize("epsilon", [0, 0.3, 0.9, 1, 2])
def test_the_hockey_stick_of_laplace_noise(epsilon):
    value = max(0.0, 1 - math.exp((epsilon - 1) / 2))
    close(hockey_stick_of_densities(Density.laplace(0, 1), Density.laplace(1, 1), epsilon), value, 1e-11)


# -- where two densities are the same ------------------------------------------------------------------------


def triangle():
    return Density((lambda t: t, lambda t: 2 - t), (0, 1, 2))


def test_equal_densities_are_found_near_though_not_flat():
    one, other = triangle(), triangle()
    close(density_distances(one, other).total_variation, 0.0, 1e-3)
    assert density_distances(one, one).total_variation == (0, 0)
    assert density_distances(one, one).multiplicative == (0, 0)
    # Equal up to 1; from there on the second falls at another place: the halves of a square of side 1/2 differ.
    half = Density((lambda t: t, lambda t: 0 * t + 1, lambda t: 0 * t), (0, 1, 1.5, 2))
    close(density_distances(one, half).total_variation, 0.125, 1e-3)


# -- atoms beside a density ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 3.0), (0.25, 0.5)])
def test_a_clamped_laplace_output_has_the_distances_of_its_two_parts(low, high):
    one, other = (MixedMeasure.clamped(Density.laplace(at, 1), low, high) for at in (0, 1))
    found = mixed_distances(one, other)
    law, moved = stats.laplace(0), stats.laplace(1)
    atoms = [(law.cdf(low), moved.cdf(low)), (law.sf(high), moved.sf(high))]
    excess = sum(max(a - b, 0.0) for a, b in atoms)
    excess += integrate.quad(lambda t: max(law.pdf(t) - moved.pdf(t), 0), low, high, points=[0.5], limit=200)[0]
    back = sum(max(b - a, 0.0) for a, b in atoms)
    back += integrate.quad(lambda t: max(moved.pdf(t) - law.pdf(t), 0), low, high, points=[0.5], limit=200)[0]
    assert excess == pytest.approx(back, abs=1e-7)  # both are probabilities
    close(found.total_variation, excess, 1e-3)
    grid = np.linspace(low, high, 2001)
    logs = np.abs(np.append(law.logpdf(grid) - moved.logpdf(grid), [math.log(a / b) for a, b in atoms]))
    close(found.multiplicative, logs.max(), 1e-3)
    assert found.multiplicative.upper <= 1 + 1e-3  # processing adds nothing


def test_an_atom_that_only_one_measure_has_is_infinitely_far():
    flat = Density((lambda t: 0 * t + 0.5,), (0, 1))
    found = mixed_distances(MixedMeasure(flat, {0.5: 0.5}), MixedMeasure(flat, {0.25: 0.5}))
    assert found.multiplicative == (math.inf, math.inf)
    close(found.total_variation, 0.5, 1e-9)
    same = mixed_distances(MixedMeasure(flat, {0.5: 0.5, 2: 0}), MixedMeasure(flat, {0.5: 0.25}))
    assert same.multiplicative == pytest.approx((math.log(2), math.log(2)))
    close(same.approximate(0.25), 0.0, 1e-9)
    assert mixed_distances(MixedMeasure(flat, {}), MixedMeasure(flat, {})).total_variation == (0, 0)


def test_a_restricted_density_keeps_values_and_masses():
    part = Density.laplace(0, 1).restricted(-0.5, 2)
    assert part(np.array([-0.6, -0.5, 0.0, 1.9, 2.1])) == pytest.approx(
        [0, *(stats.laplace.pdf(t) for t in (-0.5, 0, 1.9)), 0]
    )
    assert part.between(np.array([-9.0]), np.array([9.0])) == pytest.approx(
        stats.laplace.cdf(2) - stats.laplace.cdf(-0.5)
    )
    assert part.breaks == (-0.5, 0, 2)
