"""Curves as budgets: their values, what is refused, and their order decided at finitely many places."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from stirred.errors import LossError
from stirred.loss import (
    EpsilonProfile,
    GaussianCurve,
    PowerCurve,
    approximate_power,
    at_most,
    gaussian_to_approximate,
    power_curve,
    pure_power,
)

LEVELS = np.unique(np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-12, 1, 500)]))
TABLE_1 = {
    0.01: (0.011052, 0.016487, 0.027183, 0.073891, 0.545982),
    0.05: (0.055259, 0.082436, 0.135914, 0.369453, 0.982600),
    0.10: (0.110517, 0.164872, 0.271828, 0.738906, 0.983516),
}
"""Largest power by level at epsilon 0.1, 0.5, 1, 2, 4, recomputed (the print has 0.820 for 0.082, 0.550 for 0.546)."""


@st.composite
def curves(draw):
    """Power curves between two distributions, with ties and zeros."""
    size = draw(st.integers(2, 6))
    found = []
    for _ in range(2):
        weights = np.array(draw(st.lists(st.integers(0, 6), min_size=size, max_size=size)), dtype=float)
        weights[draw(st.integers(0, size - 1))] += 1
        found.append(weights / weights.sum())
    return PowerCurve(tuple(map(tuple, power_curve(*found).tolist())))


# -- values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "powers"), TABLE_1.items())
def test_pure_power_matches_table_1(level, powers):
    assert [float(pure_power(e).power(level)) for e in (0.1, 0.5, 1, 2, 4)] == pytest.approx(powers, abs=5e-7)


@pytest.mark.parametrize("epsilon", [0, 0.5, 4])
def test_pure_power_is_that_of_wasserman_and_zhou(epsilon):
    expected = np.minimum(math.exp(epsilon) * LEVELS, 1 - math.exp(-epsilon) * (1 - LEVELS))
    assert pure_power(epsilon).power(LEVELS) == pytest.approx(expected, abs=1e-14)


@settings(deadline=None)
@given(st.floats(0, 8), st.floats(0, 1))
def test_approximate_power_is_that_of_kairouz_oh_and_viswanath(epsilon, delta):
    rising = math.exp(epsilon) * LEVELS + delta
    falling = 1 - math.exp(-epsilon) * (1 - LEVELS - delta)
    expected = np.minimum(1, np.minimum(rising, falling))
    assert approximate_power(epsilon, delta).power(LEVELS) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (0, 1), (800, 0), (100, 1e-10), (math.inf, 0), (Fraction(1), 1)]
)
def test_the_ends_of_the_range_are_curves_too(epsilon, delta):
    curve = approximate_power(epsilon, delta)
    assert curve.power(1) == 1
    if epsilon == 0 and delta == 0:
        assert curve.power(LEVELS) == pytest.approx(LEVELS, abs=1e-15)
    if epsilon >= 100 or delta == 1:
        assert curve.power(1e-6) == 1


@pytest.mark.parametrize(("level", "power"), [(0.01, 0.486886), (0.05, 0.741706), (0.10, 0.844211)])
def test_gaussian_power_of_the_2020_redistricting_data(level, power):
    assert GaussianCurve(math.sqrt(2 * 2.63)).power(level) == pytest.approx(power, abs=5e-7)


def test_type_two_error_is_one_minus_power():
    for curve in (GaussianCurve(1.5), approximate_power(1, 0.1)):
        assert curve.type_two_error(LEVELS) == pytest.approx(1 - curve.power(LEVELS), abs=1e-14)
    assert GaussianCurve(40).type_two_error(0.5) == pytest.approx(norm.sf(40), rel=1e-9)
    assert GaussianCurve(1.5).power([[0.0, 1.0]]).tolist() == [[0, 1]]


def test_curves_are_values():
    assert pure_power(1) == approximate_power(1.0, 0)
    assert len({pure_power(1), pure_power(Fraction(1)), GaussianCurve(1), GaussianCurve(1.0)}) == 2
    assert EpsilonProfile(((0.1, 1),)) == EpsilonProfile(points=[[0.1, 1.0]])
    with pytest.raises(AttributeError):
        pure_power(1).points = ()


# -- the order -----------------------------------------------------------------------------------------------


def nowhere_above(f, g):
    return bool(np.all(f.power(LEVELS) <= g.power(LEVELS) * (1 + 1e-12)))


@settings(deadline=None)
@given(curves(), curves())
def test_straight_curves_are_compared_at_every_level(f, g):
    both = np.unique([level for level, _ in f.points + g.points])
    assert at_most(f, g) == bool(np.all(f.power(both) <= g.power(both) * (1 + 1e-12)))
    if at_most(f, g):
        assert nowhere_above(f, g)


@settings(deadline=None)
@given(curves(), st.floats(0, 4))
def test_a_straight_and_a_gaussian_curve_are_compared_at_every_level(f, mu):
    g = GaussianCurve(mu)
    if at_most(f, g):
        assert nowhere_above(f, g)
    if at_most(g, f):
        assert nowhere_above(g, f)
    if np.all(f.power(LEVELS)[1:-1] < g.power(LEVELS)[1:-1] - 1e-3) and f.points[0][1] == 0:
        assert at_most(f, g)


@settings(deadline=None)
@given(st.floats(0.05, 4), st.floats(0.01, 4), st.floats(0.99, 1.01))
def test_a_gaussian_curve_is_below_an_approximate_one_exactly_when_delta_is_large_enough(mu, epsilon, factor):
    delta = gaussian_to_approximate(mu, epsilon) * factor
    assume(1e-200 < delta <= 1 and abs(factor - 1) > 1e-6)
    assert at_most(GaussianCurve(mu), approximate_power(epsilon, delta)) == (factor > 1)


@settings(deadline=None)
@given(curves())
def test_every_curve_is_between_no_test_at_all_and_certainty(f):
    nothing, everything = pure_power(0), pure_power(math.inf)
    assert at_most(f, f) and at_most(nothing, f) and at_most(f, everything)
    assert at_most(GaussianCurve(0), f) and at_most(nothing, GaussianCurve(0))


def test_small_deltas_are_told_apart_from_none():
    assert not at_most(approximate_power(1, 1e-15), pure_power(1))
    assert at_most(pure_power(1), approximate_power(1, 1e-15))
    assert not at_most(approximate_power(1, 2e-15), approximate_power(1, 1e-15))


def test_a_gaussian_curve_is_below_no_pure_one():
    assert not at_most(GaussianCurve(1), pure_power(50))
    assert not at_most(GaussianCurve(1e-6), pure_power(600))
    assert at_most(GaussianCurve(1), approximate_power(50, 1e-200))


def test_gaussian_curves_are_ordered_by_mu():
    assert at_most(GaussianCurve(1), GaussianCurve(1)) and at_most(GaussianCurve(1), GaussianCurve(2))
    assert not at_most(GaussianCurve(2), GaussianCurve(1))


# -- profiles ------------------------------------------------------------------------------------------------


def test_an_epsilon_holds_at_its_delta_and_every_larger_one():
    profile = EpsilonProfile(((0.01, 2.0), (0.1, 1.0)))
    assert [profile.epsilon(d) for d in (0, 0.009, 0.01, Fraction(1, 20), 0.1, 1)] == [math.inf, math.inf, 2, 2, 1, 1]


profiles = st.lists(st.tuples(st.integers(0, 10), st.integers(0, 5)), min_size=1, max_size=4).map(
    lambda points: EpsilonProfile(
        tuple(
            zip(
                sorted({d / 10 for d, _ in points}),
                sorted((float(e) for _, e in points), reverse=True),
                strict=False,
            )
        )
    )
)


@settings(deadline=None)
@given(profiles, profiles)
def test_profiles_are_compared_at_every_delta(f, g):
    deltas = np.linspace(0, 1, 101)
    assert at_most(f, g) == all(f.epsilon(d) <= g.epsilon(d) for d in deltas)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: PowerCurve(((0, 0), (0.5, 0.4), (1, 1))), "not-a-curve", "not concave"),
        (lambda: PowerCurve(((0, 0), (0.5, 0.9), (1, 0.8))), "not-a-curve", "must not decrease"),
        (lambda: PowerCurve(((0, 0.5), (1, 0.9))), "not-a-curve", "at level 1 the power is 1"),
        (lambda: PowerCurve(((0, -0.5), (1, 1))), "not-a-curve", "between 0 and 1"),
        (lambda: PowerCurve(((0.1, 0.5), (1, 1))), "not-a-curve", "from 0 to 1"),
        (lambda: PowerCurve(((0, 0.5), (0, 0.6), (1, 1))), "not-a-curve", "must increase"),
        (lambda: PowerCurve(()), "not-a-curve", "pairs of numbers"),
        (lambda: PowerCurve(((0, 0), (math.nan, 1))), "not-a-curve", "pairs of numbers"),
        (lambda: GaussianCurve(-1), "parameter-out-of-range", "mu is -1"),
        (lambda: GaussianCurve(math.inf), "parameter-out-of-range", "finite"),
        (lambda: GaussianCurve(1).power(1.5), "parameter-out-of-range", "level"),
        (lambda: pure_power(-1), "parameter-out-of-range", "epsilon is -1"),
        (lambda: EpsilonProfile(((0.1, 1), (0.2, 2))), "not-a-curve", "not increase with delta"),
        (lambda: EpsilonProfile(((0.2, 1), (0.1, 1))), "not-a-curve", "deltas must increase"),
        (lambda: EpsilonProfile(((0.2, -1),)), "not-a-curve", "at least 0"),
        (lambda: at_most(EpsilonProfile(((0, 1),)), pure_power(1)), "curves-not-comparable", "no common order"),
    ],
)
def test_what_is_no_curve_is_refused(call, kind, words):
    with pytest.raises(LossError) as refusal:
        call()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
