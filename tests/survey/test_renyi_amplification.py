"""Bounds in Rényi divergences against divergences that are counted out or integrated."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from small_designs import any_mechanism, clusters, coins, counted, every, sampford, simple, strata

from repeats import times
from stirred import errors
from stirred.lab.sampling import SampledMechanism
from stirred.loss import zcdp_to_approximate
from stirred.loss.conversions import renyi_to_approximate
from stirred.spec.order.finite_mechanisms import FiniteMechanism
from stirred.survey import amplify, amplify_renyi, amplify_zcdp, sampled_gaussian
from stirred.survey.design import selections

SLACK = 1e-9
BY_SIZE = [Fraction(k, 10) for k in (2, 4, 6, 8)]
DESIGNS = {
    "simple": (selections.simple_random(1, 4), simple(4, 1), 4, [1], "replace"),
    "simple half": (selections.simple_random(2, 4), simple(4, 2), 4, [2], "replace"),
    "poisson": (
        selections.poisson(["0.1", "0.4"]),
        coins([Fraction(1, 10), Fraction(4, 10), Fraction(1, 10)]),
        3,
        range(4),
        "add or remove",
    ),
    "strata": (selections.stratified({"a": (1, 2), "b": (1, 3)}), strata((1, 2), (1, 3)), 5, [2], "replace"),
    "sampford": (selections.by_size(BY_SIZE, "sampford"), sampford(BY_SIZE), 4, [2], "replace"),
    "clusters": (selections.clusters(1, 3, 2), clusters(1, 3, 2), 6, [2], "replace"),
    "systematic, listed": (selections.listed(every(2, 6)), every(2, 6), 6, [3], "replace"),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", DESIGNS)
def test_the_bound_is_never_below_the_divergence_that_is_counted_out(name):
    selection, design, units, sizes, neighbours = DESIGNS[name]
    rng = np.random.default_rng([13, *name.encode()])
    for _ in range(times(24)):
        mechanism = any_mechanism(rng, "01", sizes, scale=rng.choice([0.05, 0.5, 2.0]))
        sampled = SampledMechanism("01", units, design, mechanism, neighbours)
        curve = cache(lambda order, of=sampled: of.sample_loss("renyi", order))
        for order in (1, 1.3, 2, 2.5, 3, 7, 20, math.inf):
            bound = amplify_renyi(selection, curve, order)
            assert sampled.loss("renyi", order) <= bound * (1 + SLACK) + SLACK, order
            assert bound <= curve(order) * (1 + SLACK) + SLACK  # sampling never costs anything


def test_clusters_exceed_the_bound_of_simple_random_samples_and_keep_to_their_own():
    sampled = SampledMechanism("01", 9, clusters(1, 3, 3), counted([3], 1))
    curve = cache(lambda order: sampled.sample_loss("renyi", order))
    assert amplify_renyi(selections.simple_random(1, 3), curve, 8) < sampled.loss("renyi", 8)
    assert amplify_renyi(selections.clusters(1, 3, 3), curve, 8) >= sampled.loss("renyi", 8)


def test_small_rates_gain_the_square():
    selection = selections.simple_random(1, 1000)
    assert amplify_renyi(selection, lambda order: order * 0.05, 2) < 5e-7


@pytest.mark.parametrize("rho", [0.005, 0.1, 0.5])
@pytest.mark.parametrize("order", [2, 3, 6, 12])
@pytest.mark.parametrize("pure", [math.inf, 0.3])
def test_theorem_9_of_wang_balle_and_kasiviswanathan_and_theorem_5_of_zhu_and_wang_as_written(rho, order, pure):
    p, e = mpmath.mpf(1) / 500, mpmath.exp

    def curve(alpha):
        return min(rho * alpha, pure)

    cap = 2 if math.isinf(pure) else min(2, mpmath.expm1(pure) ** 2)
    total = 1 + p**2 * math.comb(order, 2) * min(4 * mpmath.expm1(curve(2)), e(curve(2)) * cap)
    for j in range(3, order + 1):
        cap = 2 if math.isinf(pure) else min(2, mpmath.expm1(pure) ** j)
        total += p**j * math.comb(order, j) * e((j - 1) * curve(j)) * cap
    convex = 1 - p + p * e((order - 1) * curve(order))
    assert amplify_renyi(selections.simple_random(1, 500), curve, order) == pytest.approx(
        float(mpmath.log(min(total, convex)) / (order - 1)), rel=1e-9
    )
    assert total < convex or order > 3

    removed = added = (1 - p) ** (order - 1) * (order * p - p + 1)
    for j in range(2, order + 1):
        term = math.comb(order, j) * (1 - p) ** (order - j) * p**j * e((j - 1) * curve(j))
        removed, added = removed + term, added + term * (3 if j > 2 else 1)
    assert amplify_renyi(selections.poisson(["1/500"]), curve, order) == pytest.approx(
        float(mpmath.log(max(removed, min(added, convex))) / (order - 1)), rel=1e-9
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("rate", "variance"), [("0.1", 1), ("0.01", 4), ("0.5", 9)])
@pytest.mark.parametrize("order", [2, 20])
def test_the_sampled_gaussian_mechanism_is_what_integration_gives(rate, variance, order):
    found = sampled_gaussian(selections.poisson([rate]), variance, order)
    q, v = mpmath.mpf(rate), mpmath.mpf(variance)
    with mpmath.workdps(30):

        def density(x, mean):
            return mpmath.exp(-((x - mean) ** 2) / (2 * v)) / mpmath.sqrt(2 * mpmath.pi * v)

        def mixed(x):
            return (1 - q) * density(x, 0) + q * density(x, 1)

        points = [-20 * variance, -variance, 0, 1, order, order + 10 * variance, order + 40 * variance]
        removed = mpmath.quad(lambda x: mixed(x) ** order * density(x, 0) ** (1 - order), points)
        added = mpmath.quad(lambda x: density(x, 0) ** order * mixed(x) ** (1 - order), points)
        worst = max(mpmath.log(removed), mpmath.log(added)) / (order - 1)
    assert found == pytest.approx(float(worst), rel=1e-9)
    assert amplify_renyi(selections.poisson([rate]), lambda a: a / (2 * variance), order) >= found * (1 - 1e-12)


def test_zcdp_is_not_amplified_but_single_orders_are():
    selection, rho = selections.poisson(["0.01"]), 0.5
    ratios = [sampled_gaussian(selection, 1 / (2 * rho), order) / order for order in (2, 10, 100, 1000)]
    assert ratios[0] < rho / 100
    assert ratios[-1] > 0.98 * rho
    assert ratios == sorted(ratios)


@pytest.mark.parametrize("selection", [selections.simple_random(1, 100), selections.poisson(["0.01"])])
@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.1, 1e-6), (1, 1e-8), (5, 1e-6)])
def test_zcdp_on_a_sample_is_converted_the_better_of_two_ways(selection, rho, delta):
    found = amplify_zcdp(selection, rho, delta)
    first = amplify(selection, zcdp_to_approximate(rho, 100 * delta, "tight"), 100 * delta)
    order_8 = renyi_to_approximate(8, amplify_renyi(selection, lambda a: a * rho, 8), delta)
    assert first.delta == pytest.approx(delta)
    assert found <= min(first.epsilon, order_8)
    assert found < zcdp_to_approximate(rho, delta, "tight")


def test_zcdp_on_a_small_frame_is_never_below_what_is_counted_out():
    # Discrete Gaussian noise of variance 1 on a count of a sample, cut off where it is below 1e-30.
    reach = range(-14, 18)
    laws = np.array([[math.exp(-((t - k) ** 2) / 2) for t in reach] for k in range(3)])
    laws /= laws.sum(axis=1, keepdims=True)

    mechanism = FiniteMechanism(("00", "01", "11"), tuple(map(str, reach)), laws)
    sampled = SampledMechanism("01", 5, simple(5, 2), mechanism)
    for delta in (1e-2, 1e-4):
        counted_out = sampled.loss("approximate", delta)
        bound = amplify_zcdp(selections.simple_random(2, 5), 0.5, delta)
        assert 0.3 * bound < counted_out <= bound


def test_orders_between_whole_ones_lie_below_the_chord():
    selection = selections.poisson(["0.1"])
    at = {order: (order - 1) * amplify_renyi(selection, lambda a: a, order) for order in (2, 2.5, 3)}
    assert at[2.5] <= (at[2] + at[3]) / 2 * (1 + 1e-12)


def test_rates_of_one_in_a_hundred_million_keep_their_digits():
    p, curve = Fraction(1, 10**8), lambda order: order * 0.01
    assert amplify_renyi(selections.poisson([p]), curve, 2) == pytest.approx(1e-16 * math.expm1(0.02), rel=1e-9)
    found = amplify_renyi(selections.simple_random(1, 10**8), curve, 2)
    assert found == pytest.approx(4e-16 * math.expm1(0.02), rel=1e-9)


def test_everything_sampled_gains_nothing():
    for selection in (selections.simple_random(4, 4), selections.poisson([1])):
        for order in (1, 1.5, 2, 9, math.inf):
            assert amplify_renyi(selection, lambda a: 0.3, order) == pytest.approx(0.3)
    assert sampled_gaussian(selections.poisson([1]), 1, 4) == pytest.approx(2)


def test_nothing_lost_stays_nothing():
    for selection, *_ in DESIGNS.values():
        assert amplify_renyi(selection, lambda a: 0.0, 5) == pytest.approx(0, abs=1e-12)


def test_large_divergences_do_not_overflow():
    for selection, *_ in DESIGNS.values():
        found = amplify_renyi(selection, lambda a: a * 500.0, 40)
        assert 15_000 < found <= 20_000


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: amplify_renyi(selections.systematic(), lambda a: a, 2), "no record in common"),
        (lambda: amplify_renyi(selections.with_replacement(2, 4), lambda a: a, 2), "not built here"),
        (lambda: amplify_zcdp(selections.with_replacement(2, 4), 1, 1e-6), "not built here"),
        (lambda: amplify_zcdp(selections.data_dependent(), 1, 1e-6), "depends on the data"),
        (lambda: amplify_zcdp(selections.simple_random(1, 2), 1, 0), "promises nothing"),
        (lambda: amplify_renyi(selections.simple_random(1, 2), lambda a: a, 0.5), "at least 1"),
        (lambda: sampled_gaussian(selections.simple_random(1, 2), 1, 2), "Poisson"),
        (lambda: sampled_gaussian(selections.poisson([0.5]), 0, 2), "variance above 0"),
        (lambda: sampled_gaussian(selections.poisson([0.5]), 1, 2.5), "whole order"),
    ],
)
def test_what_has_no_answer_is_refused(ask, words):
    with pytest.raises(errors.StirredError, match=words):
        ask()
