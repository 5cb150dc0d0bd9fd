"""Tails of the loss and pbdp: published curves, the definitions themselves, round trips, and what is exact."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stirred.loss
from stirred.errors import LossError
from stirred.lab.definitions.conversion_table import CONVERSIONS
from stirred.loss import (
    EpsilonProfile,
    GaussianCurve,
    PowerCurve,
    RenyiCurve,
    ZcdpCurve,
    approximate_power,
    approximate_to_pbdp_delta,
    approximate_to_pbdp_epsilon,
    gaussian_epsilon,
    gaussian_to_approximate,
    gaussian_to_pbdp_delta,
    gaussian_to_pbdp_epsilon,
    gaussian_to_tail,
    multiplicative,
    normalised_renyi,
    pbdp_curve_to_type_two_error,
    pbdp_to_power,
    pbdp_to_pure,
    power_curve,
    pure_power,
    pure_to_pbdp_delta,
    pure_to_pbdp_epsilon,
    renyi_orders_to_pbdp_delta,
    renyi_orders_to_pbdp_epsilon,
    renyi_to_pbdp_delta,
    renyi_to_pbdp_epsilon,
    tails,
    tradeoff_to_pbdp_delta,
    tradeoff_to_pbdp_epsilon,
    zcdp_to_pbdp_delta,
    zcdp_to_pbdp_epsilon,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "tradeoffs.json").read_text(encoding="utf-8"))
LEVELS = np.linspace(0, 1, 101)
SMALL = 1e-12

rhos = st.floats(-3, 1).map(lambda power: 10**power)
weights = st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w) / sum(w))


def curve_of(p, q) -> PowerCurve:
    return PowerCurve(tuple(map(tuple, power_curve(p, q).tolist())))


def as_printed(text: str) -> object:
    """What agrees with a number to the digits that are shown."""
    digits = len(text.partition("e")[0].replace(".", "").lstrip("0")) - 1
    return pytest.approx(float(text), rel=0.51 * 10**-digits * 10, abs=6e-9 if "e" not in text else 0)


# -- the published curves ------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", GOLDEN["curves"], ids=lambda figure: figure["source"])
def test_deltas_of_the_figures_are_reproduced(figure):
    rho = float(figure["rho"])
    mu = math.sqrt(2 * rho)
    found = {
        "approximate": lambda e: gaussian_to_approximate(mu, e),
        "tail": lambda e: gaussian_to_tail(mu, e),
        "pbdp": lambda e: gaussian_to_pbdp_delta(mu, e),
        "zcdp": lambda e: zcdp_to_pbdp_delta(rho, e),
    }
    for row in figure["deltas"]:
        for name in row.keys() - {"epsilon"}:
            assert found[name](float(row["epsilon"])) == as_printed(row[name]), (name, row["epsilon"])


@pytest.mark.parametrize("figure", GOLDEN["curves"], ids=lambda figure: figure["source"])
def test_epsilons_of_the_figures_are_reproduced(figure):
    rho = float(figure["rho"])
    mu = math.sqrt(2 * rho)
    found = {
        "approximate": lambda d: gaussian_epsilon(mu, d),
        "pbdp": lambda d: gaussian_to_pbdp_epsilon(mu, d),
        "zcdp": lambda d: zcdp_to_pbdp_epsilon(rho, d),
    }
    for row in figure["epsilons"]:
        for name in row.keys() - {"delta"}:
            assert found[name](float(row["delta"])) == as_printed(row[name]), (name, row["delta"])


# -- the order -----------------------------------------------------------------------------------------------


@given(rhos, st.floats(0, 12))
@settings(max_examples=400, deadline=None)
def test_approximate_is_at_most_the_tail_at_most_pbdp_at_most_the_bounds_of_zcdp(rho, times):
    mu, epsilon = math.sqrt(2 * rho), rho + times * math.sqrt(rho)
    deltas = [
        gaussian_to_approximate(mu, epsilon),
        gaussian_to_tail(mu, epsilon),
        gaussian_to_pbdp_delta(mu, epsilon),
        zcdp_to_pbdp_delta(rho, epsilon, "exact"),
        zcdp_to_pbdp_delta(rho, epsilon),
    ]
    assert deltas == sorted(deltas)
    # The first three are of one mechanism and differ; that they are strictly apart keeps the test honest.
    assert deltas[0] < deltas[1] * (1 - 1e-6)
    assert deltas[1] < deltas[2] * (1 - 1e-6)


@given(rhos, st.floats(-12, -0.01).map(lambda power: 10**power))
@settings(max_examples=200, deadline=None)
def test_epsilons_have_the_same_order(rho, delta):
    epsilons = [
        gaussian_epsilon(math.sqrt(2 * rho), delta),
        gaussian_to_pbdp_epsilon(math.sqrt(2 * rho), delta),
        zcdp_to_pbdp_epsilon(rho, delta, "exact"),
        zcdp_to_pbdp_epsilon(rho, delta),
    ]
    assert all(low <= high * (1 + SMALL) for low, high in itertools.pairwise(epsilons))


# -- the definitions -----------------------------------------------------------------------------------------


def worst_tail(p, q, epsilon: float) -> float:
    """The largest P(L > epsilon) after any deterministic post-processing, by enumeration of all partitions."""
    worst = 0.0
    for labels in itertools.product(range(len(p)), repeat=len(p)):
        first, second = np.bincount(labels, p, len(p)), np.bincount(labels, q, len(p))
        worst = max(worst, float(first[first > math.exp(epsilon) * second * (1 + SMALL)].sum()))
    return worst


@given(weights, weights, st.floats(0.05, 3))
@settings(max_examples=60, deadline=None)
def test_pbdp_bounds_the_tail_after_every_post_processing(p, q, epsilon):
    delta = tradeoff_to_pbdp_delta(curve_of(q, p), epsilon)  # tests of Q whose power is against P
    assert worst_tail(p, q, epsilon) <= delta * (1 + 1e-9) + SMALL


@given(weights, weights, st.floats(0.05, 3))
@settings(max_examples=100, deadline=None)
def test_pbdp_is_the_smallest_such_delta(p, q, epsilon):
    """Randomised post-processings reach it: rejecting the outputs of largest ratio, the last by a coin."""
    curve = curve_of(q, p)
    delta = tradeoff_to_pbdp_delta(curve, epsilon)
    for power in np.linspace(0.001, 0.999, 20) * delta:
        assert float(curve.power(math.exp(-epsilon) * power)) >= power - 1e-9
    above = delta + 0.01 * (1 - delta) + 1e-6
    if above < 1:
        assert float(curve.power(math.exp(-epsilon) * above)) < above


def test_the_tail_of_two_randomised_responses_grows_by_post_processing():
    """Example 4.9: the tail at epsilon/2 of both is below that of one; pbdp is not."""
    for epsilon, both, one in ((0.5, 0.3874556, 0.6224593), (1, 0.5344466, 0.7310586), (2, 0.7758035, 0.8807971)):
        coin = np.array([1 / (1 + math.exp(epsilon)), 1 / (1 + math.exp(-epsilon))])
        p, q = np.outer(coin, coin).ravel(), np.outer(1 - coin, 1 - coin).ravel()
        ratios = np.log(p / q)
        assert float(p[ratios > epsilon / 2].sum()) == pytest.approx(both, abs=6e-8)
        assert worst_tail(p, q, epsilon / 2) >= one - 6e-8
        assert tradeoff_to_pbdp_delta(curve_of(q, p), epsilon / 2) >= one
        assert multiplicative(p, q) == pytest.approx(2 * epsilon)


def test_one_point_of_pbdp_is_not_convex():
    """Example 5.8: both mechanisms pass at (1.01, 0.02), their even mixture fails."""
    first = np.array([math.e, 1, 0, 0]) / (1 + math.e), np.array([1, math.e, 0, 0]) / (1 + math.e)
    second = np.array([0, 0, 0.0, 1]), np.array([0, 0, 0.01, 0.99])
    for p, q in (first, second, (first[1], first[0]), (second[1], second[0])):
        assert tradeoff_to_pbdp_delta(curve_of(p, q), 1.01) <= 0.02
    mixed = curve_of((first[0] + second[0]) / 2, (first[1] + second[1]) / 2)
    assert float(mixed.power(0.0067235355)) == pytest.approx(0.0232764645, abs=1e-9)
    assert tradeoff_to_pbdp_delta(mixed, 1.01) > 0.02


def test_releasing_some_records_makes_epsilon_infinite_up_to_their_share():
    """m of n records (Example 4.7): loss 0, or infinite with probability m/n."""
    curve = PowerCurve(((0, 0.1), (0.9, 1), (1, 1)))
    assert tradeoff_to_pbdp_epsilon(curve, 0.05) == tradeoff_to_pbdp_epsilon(curve, 0.1) == math.inf
    assert tradeoff_to_pbdp_epsilon(curve, 0.2) == pytest.approx(math.log(2))
    assert tradeoff_to_pbdp_epsilon(curve, 1) == pytest.approx(math.log(1 / 0.9))
    assert tradeoff_to_pbdp_epsilon(curve, 0) == math.inf
    assert tradeoff_to_pbdp_delta(curve, math.inf) == 0.1


def test_the_inverse_of_a_trade_off_function_falls_short_above_its_start():
    """Section 5.2 prints f(f^-1(z)) >= z for all z, with f^-1(z) = inf {y: f(y) <= z}. Above f(0) it is false."""
    curve = PowerCurve(((0, 0.1), (0.9, 1), (1, 1)))  # f(x) = 0.9 - x, down to 0
    for z, holds in ((0.2, True), (0.9, True), (0.95, False), (1, False)):
        inverse = float(stirred.loss.level_at_power(curve, 1 - z))
        assert (float(curve.type_two_error(inverse)) >= z - SMALL) == holds
        assert (tradeoff_to_pbdp_epsilon(curve, 1 - z) == math.inf) == (z >= 0.9)


@given(rhos, st.floats(0.1, 8))
@settings(max_examples=100, deadline=None)
def test_section_5_3_a_loss_is_compared_with_epsilon_and_not_with_its_exponential(rho, times):
    """P(L > e^epsilon), as printed, is the tail at a larger epsilon, and smaller: what bounds it need not bound
    P(L > epsilon), which the section is about."""
    mu, epsilon = math.sqrt(2 * rho), rho * (1 + times)
    right, printed = gaussian_to_tail(mu, epsilon), gaussian_to_tail(mu, math.exp(epsilon))
    assert printed < right <= zcdp_to_pbdp_delta(rho, epsilon)
    order = (epsilon + rho) / (2 * rho)
    assert right <= renyi_to_pbdp_delta(order, order * rho, epsilon) * (1 + 1e-9)


# -- exact formulas against the curves -----------------------------------------------------------------------


@given(st.just(0.0) | st.floats(1e-3, 6), st.floats(0, 1), st.just(0.0) | st.floats(1e-6, 1))
@settings(max_examples=300, deadline=None)
def test_approximate_to_pbdp_is_that_of_its_curve(epsilon, delta, at):
    curve = approximate_power(epsilon, delta)
    found = approximate_to_pbdp_epsilon(epsilon, delta, at)
    level = float(stirred.loss.level_at_power(curve, at))
    if level > 1e-9 and at > 1e-9:
        assert found == pytest.approx(tradeoff_to_pbdp_epsilon(curve, at), rel=1e-6, abs=1e-6)
    there = approximate_to_pbdp_delta(epsilon, delta, at * 8)
    assert there == pytest.approx(tradeoff_to_pbdp_delta(curve, at * 8), rel=1e-6, abs=1e-6)


def test_approximate_to_pbdp_in_numbers():
    assert approximate_to_pbdp_epsilon(1, 1e-6, 2e-6) == pytest.approx(1 + math.log(2))
    assert approximate_to_pbdp_delta(1, 1e-6, 1 + math.log(2)) == pytest.approx(2e-6)
    assert approximate_to_pbdp_epsilon(1, 1e-6, 1e-6) == math.inf
    assert pure_to_pbdp_epsilon(1, 0.3) == 1
    assert pure_to_pbdp_epsilon(1, 0) == 1
    assert pure_to_pbdp_epsilon(1, 0.9) == pytest.approx(math.log(0.9 / (1 - math.e * 0.1)))
    assert pure_to_pbdp_epsilon(1, 1) == 0
    assert pure_to_pbdp_delta(1, 1) == pure_to_pbdp_delta(1, 2) == 0
    for at in (0.1, 0.5, 0.999):
        expected = math.exp(at) * (math.e - 1) / (math.exp(1 + at) - 1)
        assert pure_to_pbdp_delta(1, at) == pytest.approx(expected)
        assert pure_to_pbdp_epsilon(1, expected) == pytest.approx(at)


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.2, 0.7, 0.95, 1.0])
def test_randomised_response_is_pbdp_at_its_epsilon_and_no_less_below_the_threshold(delta):
    curve = pure_power(1)
    assert float(curve.power(math.exp(-1) * delta)) <= delta * (1 + SMALL)
    smaller = 0.6
    fails = float(curve.power(math.exp(-smaller) * delta)) > delta * (1 + SMALL)
    assert fails == (delta < pure_to_pbdp_delta(1, smaller))


@pytest.mark.parametrize("rho", [0.01, 0.1115, 0.926, 2.63])
@pytest.mark.parametrize("delta", [0.9, 0.5, 0.05, 1e-4, 1e-10])
def test_the_exact_pbdp_of_zcdp_is_attained_by_two_coins(rho, delta):
    epsilon = zcdp_to_pbdp_epsilon(rho, delta, "exact")
    level = math.exp(-epsilon) * delta
    assert normalised_renyi([delta, 1 - delta], [level, 1 - level]) ** 2 == pytest.approx(rho, rel=1e-6)
    assert zcdp_to_pbdp_delta(rho, epsilon, "exact") == pytest.approx(delta, rel=1e-6)
    # The classical bound is left behind in the middle and reached in the tail.
    ratio = epsilon / zcdp_to_pbdp_epsilon(rho, delta)
    assert ratio < 0.98 if delta >= 0.5 else ratio <= 1


def test_markov_is_above_the_exact_pbdp_of_one_order():
    curve = RenyiCurve(((3, 1),))
    for epsilon in (1.2, 2, 4):
        exact, bound = tradeoff_to_pbdp_delta(curve, epsilon), renyi_to_pbdp_delta(3, 1, epsilon)
        assert exact < bound == pytest.approx(math.exp(2 * (1 - epsilon)))
        assert renyi_to_pbdp_epsilon(3, 1, bound) == pytest.approx(epsilon)
    points = [(1.5, 0.4), (3, 1), (9, 2.5)]
    for epsilon in (0.5, 1.5, 4):
        least = renyi_orders_to_pbdp_delta(points, epsilon)
        assert least == min(renyi_to_pbdp_delta(order, gamma, epsilon) for order, gamma in points)
        assert renyi_orders_to_pbdp_epsilon(points, least) == pytest.approx(epsilon)


@pytest.mark.parametrize("rho", [0.1115, 0.555, 2.63])
def test_the_classical_bound_is_the_best_order(rho):
    for epsilon in (rho * 1.1, rho + 1, rho + 6):
        orders = np.linspace(1.0001, 3 * (epsilon + rho) / (2 * rho), 20001)
        best = renyi_orders_to_pbdp_delta([(order, rho * order) for order in orders], epsilon)
        assert zcdp_to_pbdp_delta(rho, epsilon) == pytest.approx(best, rel=1e-6)
        at = (epsilon + rho) / (2 * rho)
        assert renyi_to_pbdp_delta(at, rho * at, epsilon) == pytest.approx(zcdp_to_pbdp_delta(rho, epsilon), rel=1e-12)


# -- round trips ---------------------------------------------------------------------------------------------

CURVES = [
    pure_power(1),
    approximate_power(1, 0.1),
    GaussianCurve(1.5),
    ZcdpCurve(0.5),
    RenyiCurve(((2, 1.0), (8, 1.6))),
    PowerCurve(((0, 0.1), (0.9, 1), (1, 1))),
]


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("level", [0.001, 0.05, 0.3, 0.8])
def test_a_whole_curve_of_pbdp_gives_the_trade_off_back(curve, level):
    error = pbdp_curve_to_type_two_error(lambda delta: tradeoff_to_pbdp_epsilon(curve, delta), level)
    assert error == pytest.approx(float(curve.type_two_error(level)), abs=1e-9)


@pytest.mark.parametrize("curve", CURVES, ids=str)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.5])
def test_delta_and_epsilon_of_pbdp_are_inverse(curve, epsilon):
    delta = tradeoff_to_pbdp_delta(curve, epsilon)
    assert 0 <= delta <= 1
    if 0 < delta < 1:
        assert tradeoff_to_pbdp_epsilon(curve, delta) == pytest.approx(epsilon, abs=1e-9)
    elif delta == 1:
        assert tradeoff_to_pbdp_epsilon(curve, 1) >= epsilon
    else:
        assert tradeoff_to_pbdp_epsilon(curve, 0) <= epsilon


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_points_of_pbdp_bound_the_power_and_many_of_them_tightly(curve):
    deltas = np.linspace(0.0005, 1, 2000)
    epsilons = np.minimum.accumulate([tradeoff_to_pbdp_epsilon(curve, delta) for delta in deltas])
    profile = EpsilonProfile(tuple(zip(deltas, epsilons, strict=True)))
    few = EpsilonProfile(profile.points[::400])
    found = pbdp_to_power(profile, LEVELS)
    assert np.all(found >= curve.power(LEVELS) - SMALL)
    assert found == pytest.approx(curve.power(LEVELS), abs=6e-4)
    assert np.all(pbdp_to_power(few, LEVELS) >= found - SMALL)


def test_one_point_of_pbdp_bounds_the_power_at_both_ends():
    found = pbdp_to_power(EpsilonProfile(((0.1, 1.0),)), [0, 0.01, 0.1, 0.6, 0.89, 0.91])
    rest = math.exp(-1)
    assert found == pytest.approx([0.1, 0.1, 0.1 * math.e, 1 - 0.4 * rest, 1 - 0.11 * rest, 1])


def test_pbdp_at_delta_zero_is_pure():
    assert pbdp_to_pure(EpsilonProfile(((0, 3), (1e-6, 2)))) == 3
    assert pbdp_to_pure(EpsilonProfile(((1e-6, 2),))) == math.inf
    assert tradeoff_to_pbdp_epsilon(pure_power(2), 0) == pytest.approx(2)
    assert tradeoff_to_pbdp_epsilon(RenyiCurve(((2, 1), (math.inf, 3))), 0) == 3
    assert tradeoff_to_pbdp_delta(RenyiCurve(((2, 1), (math.inf, 3))), 3) == 0
    assert tradeoff_to_pbdp_epsilon(GaussianCurve(1), 0) == math.inf
    assert tradeoff_to_pbdp_epsilon(ZcdpCurve(1), 0) == math.inf


# -- ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["classical", "exact"])
def test_ends_of_zcdp(method):
    assert zcdp_to_pbdp_delta(1, 0, method) == 1
    assert zcdp_to_pbdp_delta(1, math.inf, method) == 0
    assert zcdp_to_pbdp_delta(0, 1, method) == 0
    assert zcdp_to_pbdp_epsilon(1, 0, method) == math.inf
    assert zcdp_to_pbdp_epsilon(math.inf, 0.5, method) == math.inf
    assert zcdp_to_pbdp_epsilon(0, 0.5, method) == 0


def test_the_classical_bound_says_nothing_up_to_rho():
    assert zcdp_to_pbdp_delta(2.63, 2.63) == zcdp_to_pbdp_delta(2.63, 1) == 1
    assert zcdp_to_pbdp_delta(2.63, 2.64) < 1
    assert zcdp_to_pbdp_delta(2.63, 1, "exact") < 1


def test_ends_of_gaussian_and_rényi():
    assert gaussian_to_tail(1, math.inf) == gaussian_to_tail(0, 0) == 0
    assert gaussian_to_pbdp_delta(1, 0) == 1
    assert gaussian_to_pbdp_delta(1, 1e4) == gaussian_to_pbdp_delta(0, 1) == 0
    assert gaussian_to_pbdp_epsilon(1, 0) == math.inf
    assert gaussian_to_pbdp_epsilon(1, 1) == gaussian_to_pbdp_epsilon(0, 0.5) == 0
    assert renyi_to_pbdp_delta(math.inf, 1, 1) == 0
    assert renyi_to_pbdp_delta(2, 1, 1) == renyi_to_pbdp_delta(2, math.inf, 5) == 1
    assert renyi_to_pbdp_epsilon(2, 1, 0) == math.inf
    assert renyi_to_pbdp_epsilon(math.inf, 1, 0) == 1


@pytest.mark.parametrize(
    ("job", "kind", "words"),
    [
        (lambda: zcdp_to_pbdp_delta(-1, 1), "parameter-out-of-range", "rho is -1."),
        (lambda: zcdp_to_pbdp_delta(1, -1), "parameter-out-of-range", "epsilon is -1."),
        (lambda: zcdp_to_pbdp_epsilon(1, 1.5), "parameter-out-of-range", "delta is 1.5."),
        (lambda: zcdp_to_pbdp_epsilon(1, -0.1), "parameter-out-of-range", "delta is -0.1."),
        (lambda: zcdp_to_pbdp_epsilon(1, 0.1, "tight"), "unknown-choice", "There is no method 'tight'."),
        (lambda: renyi_to_pbdp_delta(1, 1, 2), "parameter-out-of-range", "order is 1."),
        (lambda: renyi_to_pbdp_delta(2, math.nan, 2), "parameter-out-of-range", "divergence is nan."),
        (lambda: renyi_orders_to_pbdp_delta([], 2), "nothing-to-compose", "no pair of order and divergence"),
        (lambda: renyi_orders_to_pbdp_epsilon([], 0.5), "nothing-to-compose", "no pair of order and divergence"),
        (lambda: gaussian_to_tail(math.inf, 1), "parameter-out-of-range", "mu is inf."),
        (lambda: gaussian_to_pbdp_epsilon(1, 2), "parameter-out-of-range", "delta is 2."),
        (lambda: approximate_to_pbdp_epsilon(1, 2, 0.5), "parameter-out-of-range", "delta is 2."),
        (lambda: approximate_to_pbdp_delta(1, 0.1, -1), "parameter-out-of-range", "at is -1."),
        (lambda: pbdp_to_power(EpsilonProfile(((0.1, 1),)), 2), "parameter-out-of-range", "level is below 0"),
        (lambda: pbdp_curve_to_type_two_error(lambda delta: 1.0, -1), "parameter-out-of-range", "level is -1."),
    ],
)
def test_bad_input_is_refused(job, kind, words):
    with pytest.raises(LossError) as refusal:
        job()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)


# -- the table of conversions --------------------------------------------------------------------------------


def test_every_conversion_is_listed_and_exists():
    listed = {conversion.name for conversion in CONVERSIONS}
    assert listed <= set(stirred.loss.__all__)
    functions = {name for name in stirred.loss.__all__ if "_to_" in name}
    assert functions <= listed
    assert len({(conversion.name, conversion.method) for conversion in CONVERSIONS}) == len(CONVERSIONS)


@pytest.mark.parametrize("conversion", CONVERSIONS, ids=lambda c: f"{c.name} {c.method}")
def test_a_conversion_says_in_words_whether_it_is_exact(conversion):
    function = getattr(stirred.loss, conversion.name)
    words = function.__doc__
    if function.__module__ == tails.__name__:
        said = {"exact": "Exact", "bound": "Bound"}[conversion.exactness]
        assert f"{said}:" in words
        others = {c.exactness for c in CONVERSIONS if c.name == conversion.name}
        assert ("Exact:" in words, "Bound:" in words) == ("exact" in others, "bound" in others)
    elif function.__module__.endswith("conversions") and conversion.exactness != "exact":
        assert "exact;" not in words.lower()
        assert not words.lower().rstrip().endswith("exact.") or "neither is exact" in words.lower()


def test_a_renyi_divergence_of_zero_leaves_no_loss():
    assert [renyi_to_pbdp_delta(3, 0, epsilon) for epsilon in (0, 0.1, 5)] == [1.0, 0.0, 0.0]
    assert renyi_to_pbdp_epsilon(3, 0, 0.01) == 0
