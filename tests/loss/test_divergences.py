"""Divergences: golden values and counterexamples of the papers, exact arithmetic, enumeration, and their laws."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import some_or
from stirred.errors import LossError
from stirred.loss import (
    approximate,
    hockey_stick,
    multiplicative,
    normalised_renyi,
    power_curve,
    renyi,
    total_variation,
)

RESPONSE = [0.75, 0.25], [0.25, 0.75]
ONE_OUTPUT_MORE = [0.5, 0.5, 0.0], [0.5, 0.25, 0.25]


@st.composite
def pairs(draw, positive=False, most=6, count=2):
    """Some distributions on the same outputs, with ties and zeros, and now and then very small probabilities."""
    size = draw(st.integers(2, most))
    weight = st.one_of(st.integers(1 if positive else 0, 5).map(float), st.floats(1e-9, 3))
    found = []
    for _ in range(count):
        weights = np.array(draw(st.lists(weight, min_size=size, max_size=size)))
        weights[draw(st.integers(0, size - 1))] += 1
        found.append(weights / weights.sum())
    return found


def events(p, q):
    """(P(S), Q(S)) for every set S of outputs."""
    for chosen in itertools.product([False, True], repeat=len(p)):
        yield math.fsum(p[list(chosen)]), math.fsum(q[list(chosen)])


def product(p, q):
    return np.outer(p, q).ravel()


def discrete_gaussian(variance, reach, shift):
    at = np.arange(-reach, reach + 1)
    weights = np.exp(-((at - shift) ** 2) / (2 * variance))
    return weights / weights.sum()


# -- numbers of the papers -----------------------------------------------------------------------------------


def test_randomised_response_has_the_published_divergences():
    assert multiplicative(*RESPONSE) == pytest.approx(math.log(3), rel=1e-15)
    assert approximate(*RESPONSE, 0.1) == pytest.approx(0.955511, abs=5e-7)
    assert normalised_renyi(*RESPONSE) == pytest.approx(0.741151, abs=1e-6)  # printed cut off, not rounded
    assert normalised_renyi(*RESPONSE) == pytest.approx(math.sqrt(renyi(*RESPONSE, 1)), rel=1e-10)
    assert renyi(*RESPONSE, 1) == pytest.approx(math.log(3) / 2, rel=1e-14)


def test_the_approximate_premetric_is_no_metric_and_does_not_compose():
    a, b, c = [1, 0], [0.9, 0.1], [0.8, 0.2]
    assert approximate(a, b, 0.1) == approximate(b, c, 0.1) == 0
    assert approximate(a, c, 0.1) == math.inf
    both = product(a, a), product(b, b)
    assert approximate(*both, 0.1) == math.inf
    assert approximate(*both, 0.2) == 0


@pytest.mark.parametrize(("variance", "shift"), [(1, 1), (1, 2), (4, 1), (4, 2), (0.25, 1)])
def test_a_shifted_discrete_gaussian_has_the_normalised_divergence_of_the_normal(variance, shift):
    reach = math.ceil(30 * math.sqrt(variance))
    p, q = discrete_gaussian(variance, reach, 0), discrete_gaussian(variance, reach, shift)
    assert normalised_renyi(p, q) == pytest.approx(shift / math.sqrt(2 * variance), rel=1e-10)


@pytest.mark.parametrize(("order", "value"), [(1.5, 2.942461), (2, 4)])
def test_renyi_of_a_shifted_discrete_gaussian_is_as_recomputed(order, value):
    p, q = discrete_gaussian(0.25, 12, 0), discrete_gaussian(0.25, 12, 1)
    assert renyi(p, q, order) == pytest.approx(value, abs=5e-7)


# -- conventions ---------------------------------------------------------------------------------------------


def test_an_output_that_neither_gives_is_ignored():
    p, q = [0.75, 0.25, 0], [0.25, 0.75, 0]
    assert multiplicative(p, q) == multiplicative(*RESPONSE)
    assert approximate(p, q, 0.1) == approximate(*RESPONSE, 0.1)
    assert renyi(p, q, 3) == renyi(*RESPONSE, 3)
    assert normalised_renyi(p, q) == normalised_renyi(*RESPONSE)
    assert power_curve(p, q).tolist() == power_curve(*RESPONSE).tolist()


def test_an_output_that_only_one_gives_is_infinite_where_the_direction_sees_it():
    p, q = ONE_OUTPUT_MORE
    assert multiplicative(p, q) == multiplicative(q, p) == math.inf
    assert normalised_renyi(p, q) == normalised_renyi(q, p) == math.inf
    assert [renyi(q, p, order) for order in (1, 2, math.inf)] == [math.inf] * 3
    assert renyi(p, q, math.inf) == pytest.approx(math.log(2))
    assert renyi(p, q, 1) == pytest.approx(0.5 * math.log(2))
    assert renyi(p, q, 2) == pytest.approx(math.log(0.5 + 1))
    assert approximate(p, q, 0.25) == approximate(q, p, 0.25) == 0
    assert approximate(p, q, 0.2499) == approximate(q, p, 0.2499) == math.inf


def test_probabilities_that_sum_to_delta_up_to_rounding_do_not_exceed_it():
    # 0.1 + 0.2 is above 0.3 in floats.
    assert approximate([0.1, 0.2, 0.7], [0, 0, 1], 0.3) == pytest.approx(0, abs=1e-12)
    assert approximate([0.1, 0.2, 0.7], [1e-30, 1e-30, 1], 0.3) == pytest.approx(0, abs=1e-12)
    assert approximate([0.1, 0.2, 0.7], [0, 0, 1], 0.2999999) == math.inf
    assert approximate([1e-20, 1], [0, 1], 0) == math.inf
    # 0.4 - 0.3 is not 0.1 in floats, and twenty twentieths are not 1.
    assert approximate([0.4, 0.6], [0.1, 0.9], 0.3) == approximate([0.05] * 20, [1 / 20] * 20, 0.3) == 0


def test_ratios_beyond_the_range_of_floats_are_still_logarithms():
    p, q = [1 - 1e-320, 1e-320], [0.5, 0.5]
    assert multiplicative(p, q) == pytest.approx(math.log(0.5) - math.log(1e-320))
    assert renyi(q, p, 1000) == pytest.approx(renyi(q, p, math.inf), rel=1e-3)
    assert renyi(q, p, 1000) == pytest.approx((math.log(0.5) * 1000 - 999 * math.log(1e-320)) / 999, rel=1e-12)
    assert hockey_stick(q, p, 735) == pytest.approx(0.5 - math.exp(735 + math.log(1e-320)), rel=1e-6)
    assert hockey_stick(q, p, math.inf) == 0


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_divergences_of_nearly_equal_distributions_keep_their_digits(gap):
    p, q = [0.5 + gap, 0.5 - gap], [0.5, 0.5]
    with localcontext() as context:
        context.prec = 60
        high, low = Decimal(p[0]) / Decimal("0.5"), Decimal(p[1]) / Decimal("0.5")
        exact = (Decimal(p[0]) * high.ln() + Decimal(p[1]) * low.ln()).__float__()
        cubes = ((Decimal(p[0]) * high**2 + Decimal(p[1]) * low**2).ln() / 2).__float__()
    assert renyi(p, q, 1) == pytest.approx(exact, rel=1e-12)
    assert renyi(p, q, 3) == pytest.approx(cubes, rel=1e-12)
    assert renyi(p, q, 1 + 1e-9) == pytest.approx(exact, rel=1e-8)
    assert multiplicative(p, q) == pytest.approx(-math.log1p(-2 * gap), rel=1e-12)


@settings(deadline=None)
@given(pairs())
def test_equal_distributions_have_no_divergence(found):
    p = found[0]
    assert multiplicative(p, p) == hockey_stick(p, p, 0) == approximate(p, p, 0.1) == total_variation(p, p) == 0
    assert renyi(p, p, 1) == renyi(p, p, 2) == renyi(p, p, math.inf) == normalised_renyi(p, p) == 0


# -- definitions, by enumeration -----------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs(), st.sampled_from([0, 0.01, 0.1, 0.3, 1]))
def test_the_approximate_premetric_is_the_supremum_over_events(found, delta):
    p, q = found
    largest = 0.0
    for in_p, in_q in events(p, q):
        for one, other in ((in_p, in_q), (in_q, in_p)):
            if one > delta * (1 + 1e-12):
                largest = max(largest, math.inf if other == 0 else (one - delta) / other)
    expected = math.log(largest) if largest > 1 else 0.0
    assert approximate(p, q, delta) == pytest.approx(expected, rel=1e-9, abs=2e-12)


@settings(deadline=None)
@given(pairs(), st.floats(0, 5))
def test_the_hockey_stick_is_the_supremum_over_events(found, epsilon):
    p, q = found
    expected = max(in_p - math.exp(epsilon) * in_q for in_p, in_q in events(p, q))
    assert hockey_stick(p, q, epsilon) == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(pairs(), st.sampled_from([0.01, 0.1, 0.3]))
def test_the_approximate_premetric_is_where_the_hockey_stick_meets_delta(found, delta):
    p, q = found
    epsilon = approximate(p, q, delta)
    if epsilon == math.inf:
        assert max(hockey_stick(p, q, 600), hockey_stick(q, p, 600)) > delta
    else:
        assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= delta + 1e-12
        if epsilon > 1e-6:
            lower = epsilon - 1e-6
            assert max(hockey_stick(p, q, lower), hockey_stick(q, p, lower)) > delta


@settings(deadline=None)
@given(pairs())
def test_multiplicative_and_total_variation_are_suprema_over_events(found):
    p, q = found
    assert total_variation(p, q) == pytest.approx(max(a - b for a, b in events(p, q)), abs=1e-12)
    logs = [math.inf if a == 0 or b == 0 else abs(math.log(a / b)) for a, b in events(p, q) if a > 0 or b > 0]
    assert multiplicative(p, q) == pytest.approx(max(logs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("order", [Fraction(3, 2), 2, 3, 7])
def test_renyi_is_its_definition(order):
    p, q = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    alpha = float(order)
    expected = math.log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True) if a > 0)) / (alpha - 1)
    assert renyi(p, q, order) == pytest.approx(expected, rel=1e-13)


@settings(deadline=None)
@given(pairs(positive=True), st.floats(1, 60), st.floats(0, 60))
def test_renyi_does_not_decrease_with_the_order(found, order, more):
    p, q = found
    assert renyi(p, q, 1) <= renyi(p, q, order) * (1 + 1e-12)
    assert renyi(p, q, order) <= renyi(p, q, order + more) * (1 + 1e-12)
    assert renyi(p, q, order + more) <= renyi(p, q, math.inf) <= multiplicative(p, q) * (1 + 1e-12)


@pytest.mark.repeats
@settings(max_examples=some_or(12, 100), deadline=None)
@given(pairs(positive=True))
def test_the_normalised_divergence_is_the_supremum_over_orders(found):
    p, q = found
    orders = 1 + np.concatenate([[0, 1e-12], np.geomspace(1e-6, 1e20, 801)])
    values = np.array([max(renyi(p, q, a), renyi(q, p, a)) for a in orders])
    assert np.sqrt(values / orders).max() <= normalised_renyi(p, q) * (1 + 1e-10)
    # Between neighbours of the grid D is at most that of the upper one and the order at least that of the lower.
    steps = np.sqrt(values[1:] / orders[:-1])
    beyond = math.sqrt(multiplicative(p, q) / orders[-1])
    assert normalised_renyi(p, q) <= max(*steps, beyond) * (1 + 1e-10)


@pytest.mark.parametrize(("rarer", "by"), [(1e-60, 13), (1e-60, 9), (1e-200, 28)])
def test_the_supremum_is_found_among_several_maxima(rarer, by):
    # Each rare output makes a hill of its own; which hill is higher differs.
    p = np.array([1 - 1e-4, 1e-4, rarer])
    q = np.array([1 - 1e-4 * math.exp(-3), 1e-4 * math.exp(-3), rarer * math.exp(-by)])
    orders = 1 + np.geomspace(1e-4, 1e4, 10_001)
    values = np.array([max(renyi(p, q, a), renyi(q, p, a)) / a for a in orders])
    peaks = np.flatnonzero((values[1:-1] > values[:-2]) & (values[1:-1] > values[2:]))
    assert len(peaks) == 2
    assert math.sqrt(values.max()) <= normalised_renyi(p, q) * (1 + 1e-10)
    assert normalised_renyi(p, q) == pytest.approx(math.sqrt(values.max()), rel=1e-6)


# -- laws ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs(positive=True, count=3))
def test_multiplicative_normalised_and_total_variation_are_metrics(found):
    p, q, r = found
    for distance in (multiplicative, normalised_renyi, total_variation):
        assert distance(p, q) == pytest.approx(distance(q, p), rel=1e-9)
        assert distance(p, r) <= (distance(p, q) + distance(q, r)) * (1 + 1e-9)


@settings(deadline=None)
@given(pairs(positive=True, most=4), pairs(positive=True, most=4))
def test_independent_releases_compose(found, others):
    (p, q), (r, s) = found, others
    both = product(p, r), product(q, s)
    assert multiplicative(*both) <= (multiplicative(p, q) + multiplicative(r, s)) * (1 + 1e-9) + 1e-12
    assert normalised_renyi(*both) <= math.hypot(normalised_renyi(p, q), normalised_renyi(r, s)) * (1 + 1e-9)
    assert renyi(*both, 3) == pytest.approx(renyi(p, q, 3) + renyi(r, s, 3), rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(pairs())
def test_the_normalised_divergence_is_at_most_the_multiplicative_by_the_root_of_two(found):
    p, q = found
    assert normalised_renyi(p, q) <= multiplicative(p, q) / math.sqrt(2) * (1 + 1e-9)


@settings(deadline=None)
@given(pairs(most=5), st.integers(0, 3))
def test_merging_outputs_loses_information(found, at):
    p, q = found
    at = at % (len(p) - 1)
    merged = [np.concatenate([d[:at], [d[at] + d[at + 1]], d[at + 2 :]]) for d in (p, q)]
    for measure in (
        multiplicative,
        normalised_renyi,
        total_variation,
        lambda a, b: approximate(a, b, 0.05),
        lambda a, b: renyi(a, b, 2),
    ):
        assert measure(*merged) <= measure(p, q) * (1 + 1e-9) + 1e-12


# -- power curves --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(pairs())
def test_no_event_has_more_power_than_the_curve(found):
    p, q = found
    levels, powers = power_curve(p, q).T
    assert levels[0] == 0 and levels[-1] == powers[-1] == 1
    assert powers[0] == pytest.approx(math.fsum(q[p == 0]), abs=1e-12)
    assert np.all(np.diff(levels) > 0)
    for in_p, in_q in events(p, q):
        assert in_q <= np.interp(in_p, levels, powers) + 1e-12
    attained = list(events(p, q))
    for level, power in zip(levels, powers, strict=True):
        assert any(abs(a - level) < 1e-12 and abs(b - power) < 1e-12 for a, b in attained)


def test_outputs_of_equal_ratio_make_one_edge():
    assert power_curve([0.25, 0.25, 0.5], [0.125, 0.125, 0.75]).tolist() == [[0, 0], [0.5, 0.75], [1, 1]]
    assert power_curve([0.5, 0.5], [0.5, 0.5]).tolist() == [[0, 0], [1, 1]]
    assert power_curve([1, 0], [0, 1]).tolist() == [[0, 1], [1, 1]]


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: multiplicative([0.5, 0.6], [0.5, 0.5]), "not-a-distribution", "do not sum to 1"),
        (lambda: multiplicative([0.5, 0.5], [1.5, -0.5]), "not-a-distribution", "The second distribution"),
        (lambda: renyi([math.nan, 1], [0.5, 0.5], 2), "not-a-distribution", "not a number"),
        (lambda: total_variation([[1.0]], [1.0]), "not-a-distribution", "not a list"),
        (lambda: total_variation([], []), "not-a-distribution", "not a list"),
        (lambda: total_variation([1.0], [0.5, 0.5]), "outputs-differ", "One distribution has 1 outputs, the other 2"),
        (lambda: renyi(*RESPONSE, 0.5), "parameter-out-of-range", "order is 0.5"),
        (lambda: approximate(*RESPONSE, 1.5), "parameter-out-of-range", "between 0 and 1"),
        (lambda: hockey_stick(*RESPONSE, -1), "parameter-out-of-range", "epsilon is -1"),
        (lambda: hockey_stick(*RESPONSE, math.nan), "parameter-out-of-range", "epsilon is nan"),
    ],
)
def test_what_is_no_distribution_is_refused(call, kind, words):
    with pytest.raises(LossError) as refusal:
        call()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
