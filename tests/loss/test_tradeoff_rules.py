"""Rules for trade-off functions: inverse, symmetrisation, the attaining pair, composition against products of laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import LossError
from stirred.loss import (
    GaussianCurve,
    PowerCurve,
    RenyiCurve,
    ZcdpCurve,
    approximate_power,
    attaining_pair,
    composed_power_curve,
    inverted_power_curve,
    power_curve,
    power_to_approximate,
    pure_power,
    symmetric_power_curve,
)

LEVELS = np.linspace(0, 1, 201)

weights = st.lists(st.integers(0, 6), min_size=5, max_size=5).filter(any).map(lambda w: np.array(w) / sum(w))


def curve_of(p, q) -> PowerCurve:
    return PowerCurve(tuple(map(tuple, power_curve(p, q).tolist())))


# -- inverse and symmetrisation ------------------------------------------------------------------------------


@given(weights, weights)
@settings(deadline=None)
def test_the_inverse_exchanges_the_laws(p, q):
    here, there = inverted_power_curve(curve_of(p, q)), curve_of(q, p)
    assert here.power(LEVELS) == pytest.approx(there.power(LEVELS), abs=1e-12)
    assert here.power(0.0) == pytest.approx(float(there.power(0.0)), abs=1e-12)


@given(weights, weights)
@settings(deadline=None)
def test_symmetrising_takes_the_lower_of_a_curve_and_its_inverse(p, q):
    curve = curve_of(p, q)
    found = symmetric_power_curve(curve)
    lower = np.minimum(curve.power(LEVELS), inverted_power_curve(curve).power(LEVELS))
    assert found.power(LEVELS) == pytest.approx(lower, abs=1e-12)
    assert inverted_power_curve(found).power(LEVELS) == pytest.approx(found.power(LEVELS), abs=1e-9)


@pytest.mark.parametrize("curve", [GaussianCurve(1), ZcdpCurve(1), RenyiCurve(((2, 1),))])
def test_curves_of_both_directions_are_their_own_inverse(curve):
    assert inverted_power_curve(curve) is curve
    assert symmetric_power_curve(curve) is curve


# -- composition ---------------------------------------------------------------------------------------------


@given(weights, weights)
@settings(deadline=None)
def test_the_attaining_pair_has_the_curve(p, q):
    curve = curve_of(p, q)
    assert curve_of(*attaining_pair(curve)).power(LEVELS) == pytest.approx(curve.power(LEVELS), abs=1e-12)


@given(weights, weights, weights, weights)
@settings(deadline=None)
def test_composition_is_the_curve_of_the_product(p, q, r, s):
    found = composed_power_curve([curve_of(p, q), curve_of(r, s)])
    product = curve_of(np.outer(p, r).ravel(), np.outer(q, s).ravel())
    assert found.power(LEVELS) == pytest.approx(product.power(LEVELS), abs=1e-9)


def test_two_randomised_responses_compose_to_example_4_9():
    e = math.e
    found = composed_power_curve([pure_power(1), pure_power(1)])
    both, one = e**2 / (1 + e) ** 2, 2 * e / (1 + e) ** 2
    assert (both, one) == pytest.approx((0.5344466, 0.3932239), abs=5e-8)
    assert np.array(found.points) == pytest.approx(
        np.array([(0, 0), (both / e**2, both), (both / e**2 + one, both + one), (1, 1)]), abs=1e-12
    )


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.5, 0, 5), (0.3, 0.01, 8), (1, 1e-6, 20)])
def test_approximate_curves_compose_optimally(epsilon, delta, times):
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3."""
    found = composed_power_curve([approximate_power(epsilon, delta)] * times)
    for i in range(times // 2 + 1):
        terms = [
            math.comb(times, k) * (math.exp((times - k) * epsilon) - math.exp((times - 2 * i + k) * epsilon))
            for k in range(i)
        ]
        rest = sum(terms) / (1 + math.exp(epsilon)) ** times
        expected = 1 - (1 - delta) ** times * (1 - rest)
        assert power_to_approximate(found, (times - 2 * i) * epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-13)
    assert len(found.points) <= times + 4


def test_rules_of_the_definitions():
    assert composed_power_curve([GaussianCurve(3), GaussianCurve(4)]) == GaussianCurve(5)
    assert composed_power_curve([ZcdpCurve(2.5), ZcdpCurve(0.25)]) == ZcdpCurve(2.75)
    parts = [RenyiCurve(((2, 0.5), (4, 1))), RenyiCurve(((4, 0.25), (8, 3), (4, 0.5)))]
    assert composed_power_curve(parts) == RenyiCurve(((4, 1.25),))
    one = approximate_power(1, 0.1)
    assert composed_power_curve([one]).power(LEVELS) == pytest.approx(one.power(LEVELS), abs=1e-15)
    alone = composed_power_curve([PowerCurve(((0, 1), (1, 1))), pure_power(1)])
    assert alone.power(LEVELS) == pytest.approx(np.ones(201), abs=1e-15)


def test_a_product_that_would_fill_the_memory_is_refused():
    at = np.linspace(0, 1, 3001)
    many = PowerCurve(tuple(zip(at, np.sqrt(at), strict=True)))
    with pytest.raises(LossError, match="9000000 outputs; 4000000 are the most") as refusal:
        composed_power_curve(itertools.repeat(many, 2))
    assert refusal.value.kind == "too-many-outputs"
