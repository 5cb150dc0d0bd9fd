"""Conversions: the published numbers, agreement with each other, and that each is a bound of real mechanisms."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from stirred.errors import LossError
from stirred.loss import (
    GaussianCurve,
    PowerCurve,
    approximate,
    approximate_power,
    approximate_to_total_variation,
    approximate_to_zcdp,
    gaussian_epsilon,
    gaussian_to_approximate,
    gaussian_to_zcdp,
    group_approximate,
    hockey_stick,
    multiplicative,
    normalised_renyi,
    power_curve,
    power_to_approximate,
    pure_power,
    pure_to_renyi,
    pure_to_total_variation,
    pure_to_zcdp,
    renyi,
    renyi_to_approximate,
    total_variation,
    zcdp_to_approximate,
    zcdp_to_renyi,
    zcdp_to_total_variation,
)
from stirred.loss.curves.tradeoffs import ZcdpCurve

CENSUS = {
    "55.371": 126.7843,
    "15.29": 52.8168,
    "221.484": 364.3106,
    "2.63": 18.1938,
    "19.776": 62.4543,
    "17.79": 58.2686,
    "2.515": 17.7347,
    "12.66": 46.8072,
}
"""rho to epsilon at delta = 1e-10, by the classical conversion (Table 3.3, section 3.4.4)."""

positive = st.lists(st.integers(1, 9), min_size=4, max_size=4).map(lambda weights: np.array(weights) / sum(weights))


# -- published numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rho", "epsilon"), CENSUS.items())
def test_classical_conversion_matches_table_3_3(rho, epsilon):
    assert zcdp_to_approximate(Fraction(rho), 1e-10) == pytest.approx(epsilon, abs=5e-5)
    assert zcdp_to_approximate(float(rho), Fraction(1, 10**10)) == pytest.approx(epsilon, abs=5e-5)


@pytest.mark.parametrize(("rho", "epsilon"), [(2.55623, 17.14), (0.0749437, 2.47)])
def test_tight_conversion_matches_the_registry_from_unrounded_rho(rho, epsilon):
    assert round(zcdp_to_approximate(rho, 1e-10, "tight"), 2) == epsilon


def test_from_the_rounded_rho_the_registry_is_missed():
    # The registry's 2.56 and 0.07 are rounded; its epsilons were computed before rounding.
    assert round(zcdp_to_approximate(2.56, 1e-10, "tight"), 2) == 17.16
    assert round(zcdp_to_approximate(0.07, 1e-10, "tight"), 2) == 2.39


# -- zCDP ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.floats(1e-6, 1e3), st.floats(1e-30, 0.5))
def test_tight_is_the_best_order_and_no_worse_than_classical(rho, delta):
    tight = zcdp_to_approximate(rho, delta, "tight")
    assert tight <= zcdp_to_approximate(rho, delta)
    orders = 1 + np.geomspace(1e-6, 1e8, 3001)
    every = min(renyi_to_approximate(a, a * rho, delta) for a in orders)
    assert tight <= every * (1 + 1e-12)
    assert tight >= every * (1 - 1e-3) - 1e-3 * rho


@settings(deadline=None)
@given(st.floats(1e-3, 50), st.floats(1e-20, 0.4))
def test_every_conversion_of_a_gaussian_is_above_its_exact_epsilon(mu, delta):
    rho = gaussian_to_zcdp(mu)
    exact = gaussian_epsilon(mu, delta)
    assert exact <= zcdp_to_approximate(rho, delta, "tight") * (1 + 1e-9)
    assert gaussian_to_approximate(mu, exact) <= delta
    if exact > 1e-9:
        assert gaussian_to_approximate(mu, exact * (1 - 1e-6)) > delta


@settings(deadline=None)
@given(st.floats(1e-9, 1e4), st.floats(1e-30, 1))
def test_the_inverse_of_the_classical_conversion_is_its_inverse(rho, delta):
    assert approximate_to_zcdp(zcdp_to_approximate(rho, delta), delta) == pytest.approx(rho, rel=1e-9)


def test_the_ends_of_zcdp():
    assert zcdp_to_approximate(0, 1e-10) == zcdp_to_approximate(0, 0, "tight") == 0
    assert zcdp_to_approximate(1, 0) == zcdp_to_approximate(math.inf, 0.1, "tight") == math.inf
    assert zcdp_to_approximate(Fraction(1, 2), 1) == 0.5
    assert zcdp_to_approximate(0.001, 0.9, "tight") == 0
    assert approximate_to_zcdp(0, 0.1) == approximate_to_zcdp(5, 0) == 0
    assert zcdp_to_renyi(Fraction(1, 2), 3) == 1.5
    assert zcdp_to_renyi(0, math.inf) == 0
    assert zcdp_to_total_variation(0) == 0
    assert zcdp_to_total_variation(math.inf) == zcdp_to_total_variation(100) == 1  # 1 - 2 e^-100, rounded up


# -- bounds of real mechanisms -------------------------------------------------------------------------------


@settings(deadline=None)
@given(positive, positive, st.floats(1.01, 50), st.floats(1e-6, 0.3))
def test_conversions_bound_what_they_convert_to(p, q, order, delta):
    epsilon, rho = multiplicative(p, q), normalised_renyi(p, q) ** 2
    slack = 1 + 1e-9
    assert rho <= pure_to_zcdp(epsilon) * slack
    assert renyi(p, q, order) <= pure_to_renyi(epsilon, order) * slack
    assert renyi(p, q, order) <= zcdp_to_renyi(rho, order) * slack
    for method in ("classical", "tight"):
        assert approximate(p, q, delta) <= zcdp_to_approximate(rho, delta, method) * slack
    both_ways = max(renyi(p, q, order), renyi(q, p, order))
    assert approximate(p, q, delta) <= renyi_to_approximate(order, both_ways, delta) * slack
    assert total_variation(p, q) <= pure_to_total_variation(epsilon) * slack
    assert total_variation(p, q) <= zcdp_to_total_variation(rho) * slack
    assert total_variation(p, q) <= approximate_to_total_variation(approximate(p, q, delta), delta) * slack


@settings(deadline=None)
@given(st.floats(0, 20), st.floats(0, 1))
def test_total_variation_is_the_height_of_the_power_curve_above_the_identity(epsilon, delta):
    height = max(power - level for level, power in approximate_power(epsilon, delta).points)
    assert approximate_to_total_variation(epsilon, delta) == pytest.approx(height, abs=1e-12)
    formula = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert approximate_to_total_variation(epsilon, delta) == pytest.approx(formula, abs=1e-12)
    assert pure_to_total_variation(epsilon) == pytest.approx(approximate_to_total_variation(epsilon, 0), rel=1e-12)


def test_pure_bounds_at_known_places():
    assert pure_to_zcdp(4) == pytest.approx(4 * math.tanh(2), rel=1e-13)
    assert round(pure_to_zcdp(4), 3) == 3.856
    assert round(pure_to_renyi(1, 2), 3) == 0.735
    assert round(zcdp_to_total_variation(2.63), 3) == 0.898
    assert pure_to_renyi(1, 1) == pure_to_zcdp(1)
    assert pure_to_renyi(1, math.inf) == 1
    assert pure_to_renyi(0, math.inf) == pure_to_zcdp(0) == 0
    assert pure_to_zcdp(math.inf) == pure_to_renyi(math.inf, 2) == math.inf
    assert pure_to_zcdp(1e300) == pure_to_renyi(1e300, 2) == 1e300


def reference(epsilon: float, order: float) -> Decimal:
    """The Rényi divergence of randomised response from its probabilities, in digits that e^-epsilon does not escape."""
    with localcontext(prec=120 + int(epsilon)):
        e, alpha = Decimal(epsilon), Decimal(order)
        odds = e.exp()
        if alpha == 1:
            return e * (odds - 1) / (odds + 1)
        # p^alpha q^(1 - alpha) + q^alpha p^(1 - alpha) with p = odds q and q = 1 / (1 + odds)
        total = ((alpha * e).exp() + ((1 - alpha) * e).exp()) / (1 + odds)
        return total.ln() / (alpha - 1)


SLACK = Decimal(1) + Decimal("2e-14")
EPSILONS = (1e-9, 1e-4, 0.01, 0.3, 1.0, 2.5, 4.0, 12.0, 40.0, 300.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_attains_what_pure_epsilon_gives_and_no_bound_is_too_small(epsilon):
    exact = reference(epsilon, 1)
    assert exact <= Decimal(pure_to_zcdp(epsilon)) <= exact * SLACK
    for order in (1, 1 + 1e-12, 1 + 1e-6, 1.01, 1.5, 2, 3, 10, 50):
        exact = reference(epsilon, order)
        assert exact <= Decimal(pure_to_renyi(epsilon, order)) <= exact * SLACK
        # D_alpha / alpha is largest at order 1.
        assert exact / Decimal(order) <= Decimal(pure_to_zcdp(epsilon))
    ratios = [reference(epsilon, order) / Decimal(order) for order in (1, 1.001, 1.1, 1.5, 2, 4, 8, 16, 64)]
    assert ratios == sorted(ratios, reverse=True)


@pytest.mark.parametrize("rho", [1e-12, 1e-3, 0.02, 0.5, 1.0, 2.63, 8.0, 30.0])
def test_total_variation_under_zcdp_is_that_of_the_curve_and_of_a_randomised_response(rho):
    found = zcdp_to_total_variation(rho)
    with localcontext(prec=60):
        low, high = Decimal(0), Decimal(rho) + 10
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (middle, high) if reference(middle, 1) < Decimal(rho) else (low, middle)
        exact = 1 - 2 / (high.exp() + 1)
        assert exact <= Decimal(found) <= min(1, exact * SLACK)
    levels = np.linspace(0, 1, 20_001)
    curve = float(np.max(ZcdpCurve(rho).power(levels) - levels))
    assert found * (1 - 1e-3) - 1e-6 <= curve <= found * (1 + 1e-9)
    assert found <= math.sqrt(rho / 2) * (1 + 1e-13)


def test_no_random_pure_pair_exceeds_randomised_response_at_any_order():
    random = np.random.default_rng(4)
    orders = np.concatenate([1 + np.geomspace(1e-6, 1, 20), np.geomspace(2, 200, 20)])
    closest = 0.0
    for _ in range(400):
        size = int(random.integers(2, 6))
        epsilon = float(random.choice([0.1, 0.5, 1, 3, 6]))
        q = random.dirichlet(np.full(size, random.choice([0.2, 1, 5])))
        # Ratios at both ends come near the worst pairs; others are drawn between them.
        ratios = np.where(random.random(size) < 0.7, random.choice([-epsilon, epsilon], size), 0)
        p = q * np.exp(ratios)
        p /= p.sum()
        found = multiplicative(p, q)
        if not 0 < found < 50:
            continue
        for order in orders:
            divergence = max(renyi(p, q, float(order)), renyi(q, p, float(order)))
            assert divergence <= pure_to_renyi(found, float(order)) * (1 + 1e-9) + 1e-12
            assert divergence / order <= pure_to_zcdp(found) * (1 + 1e-9) + 1e-12
            closest = max(closest, divergence / order / pure_to_zcdp(found))
        rho = normalised_renyi(p, q) ** 2
        assert total_variation(p, q) <= zcdp_to_total_variation(rho) * (1 + 1e-9)
    assert closest > 0.95


# -- groups --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.floats(0, 3), st.floats(0, 1e-3), st.integers(1, 8))
def test_a_group_pays_the_geometric_sum(epsilon, delta, size):
    found = group_approximate(epsilon, delta, size)
    expected = delta * sum(math.exp(k * epsilon) for k in range(size))
    assert found[0] == size * epsilon
    assert found[1] == pytest.approx(min(1, expected), rel=1e-12)


@settings(deadline=None)
@given(st.lists(positive, min_size=4, max_size=4), st.floats(0, 1))
def test_a_group_bound_holds_along_a_chain_of_neighbours(chain, epsilon):
    delta = max(max(hockey_stick(a, b, epsilon), hockey_stick(b, a, epsilon)) for a, b in itertools.pairwise(chain))
    group = group_approximate(epsilon, delta, 3)
    assert hockey_stick(chain[0], chain[-1], group[0]) <= group[1] + 1e-12


@pytest.mark.parametrize("epsilon", [1e-18, 1e-300, 500, 5000])
def test_the_group_bound_is_stable_for_small_and_large_epsilon(epsilon):
    delta = group_approximate(epsilon, 1e-9, 5)[1]
    assert delta == pytest.approx(5e-9, rel=1e-12) if epsilon < 1 else delta == 1


# -- Gaussian ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mu", "epsilon"), [(1, 0), (1, 5), (2.293469, 10), (0.47, 0.5), (5, 1), (0.1, 1), (30, 1)])
def test_the_delta_of_a_gaussian_is_the_integral_over_its_loss(mu, epsilon):
    # delta = E (1 - e^(epsilon - L))+ with L normal of mean mu^2/2 and standard deviation mu.
    def excess(loss):
        return -math.expm1(epsilon - loss) * norm.pdf(loss, mu * mu / 2, mu)

    top = max(epsilon, mu * mu / 2) + 12 * mu
    expected = quad(excess, epsilon, top, epsabs=0, epsrel=1e-12, limit=400, points=[max(epsilon, mu * mu / 2)])[0]
    assert gaussian_to_approximate(mu, epsilon) == pytest.approx(expected, rel=1e-9)


def test_the_delta_of_a_gaussian_is_also_right_in_its_tail():
    # Phi(-t) by its asymptotic series in exact arithmetic, at t = 29.5 and 30.5.
    with localcontext() as context:
        context.prec = 50

        def tail(t):
            term, total = Decimal(1), Decimal(1)
            for k in range(1, 40):
                term *= -Decimal(2 * k - 1) / (t * t)
                total += term
            return (-t * t / 2).exp() / (t * (2 * Decimal("3.14159265358979323846264338327950288")).sqrt()) * total

        expected = float(tail(Decimal("29.5")) - Decimal(30).exp() * tail(Decimal("30.5")))
    assert gaussian_to_approximate(1, 30) == pytest.approx(expected, rel=1e-9)


def test_the_ends_of_gaussian_privacy():
    assert gaussian_to_approximate(0, 0) == gaussian_epsilon(0, 0) == gaussian_epsilon(1, 1) == 0
    assert gaussian_epsilon(1, 0) == math.inf
    assert gaussian_to_approximate(100, 1) == 1
    assert gaussian_epsilon(1, gaussian_to_approximate(1, 0)) == 0
    assert gaussian_to_zcdp(Fraction(3)) == 4.5
    assert gaussian_to_approximate(1e-3, 0) == pytest.approx(math.erf(1e-3 / (2 * math.sqrt(2))), rel=1e-9)


# -- curves --------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(positive, positive, st.floats(0, 4))
def test_the_delta_of_a_curve_is_the_hockey_stick(p, q, epsilon):
    curve = PowerCurve(tuple(map(tuple, power_curve(p, q).tolist())))
    assert power_to_approximate(curve, epsilon) == pytest.approx(hockey_stick(q, p, epsilon), abs=1e-12)


@settings(deadline=None)
@given(st.floats(0, 30), st.floats(0, 1))
def test_a_budget_of_epsilon_and_delta_comes_back_from_its_curve(epsilon, delta):
    assert power_to_approximate(approximate_power(epsilon, delta), epsilon) == pytest.approx(delta, abs=1e-12)


def test_the_delta_of_other_curves():
    assert power_to_approximate(GaussianCurve(1), 1) == gaussian_to_approximate(1, 1)
    assert power_to_approximate(GaussianCurve(1), math.inf) == power_to_approximate(pure_power(3), math.inf) == 0
    assert power_to_approximate(pure_power(1), 0) == pytest.approx(math.tanh(0.5))
    assert power_to_approximate(approximate_power(1, 0.25), 800) == 0.25


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: zcdp_to_approximate(-1, 0.1), "parameter-out-of-range", "rho is -1"),
        (lambda: zcdp_to_approximate(1, 1.1), "parameter-out-of-range", "delta is 1.1"),
        (lambda: zcdp_to_approximate(1, math.nan), "parameter-out-of-range", "delta is nan"),
        (lambda: zcdp_to_approximate(1, 0.1, "best"), "unknown-choice", "'classical' and 'tight'"),
        (lambda: renyi_to_approximate(1, 1, 0.1), "parameter-out-of-range", "above 1"),
        (lambda: pure_to_renyi(1, 0.9), "parameter-out-of-range", "order is 0.9"),
        (lambda: group_approximate(1, 0.1, 0), "parameter-out-of-range", "size is 0"),
        (lambda: group_approximate(1, 0.1, 1.5), "parameter-out-of-range", "whole number"),
        (lambda: gaussian_epsilon(math.inf, 0.1), "parameter-out-of-range", "finite"),
    ],
)
def test_parameters_out_of_range_are_refused(call, kind, words):
    with pytest.raises(LossError) as refusal:
        call()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
