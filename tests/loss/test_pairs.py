"""The worst pair: what the fast search finds is what the plain functions find over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from repeats import times
from stirred import errors
from stirred.errors import LossError
from stirred.loss import (
    PowerCurve,
    approximate,
    multiplicative,
    normalised_renyi,
    power_curve,
    renyi,
    total_variation,
    worst_pair,
    worst_pairs,
    worst_power_curve,
)
from stirred.loss.renyi_orders import BOUND_ORDERS, all_renyi, bound_normalised_renyi

MEASURES = [
    ("multiplicative", None),
    ("total-variation", None),
    ("approximate", 0.0),
    ("approximate", 0.05),
    ("approximate", 0.3),
    ("renyi", 1),
    ("renyi", 1.5),
    ("renyi", 8),
    ("renyi", 400),
    ("renyi", math.inf),
    ("normalised-renyi", None),
]
RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


def plainly(measure, p, q, parameter):
    return {
        "multiplicative": lambda: multiplicative(p, q),
        "total-variation": lambda: total_variation(p, q),
        "approximate": lambda: approximate(p, q, parameter),
        "renyi": lambda: renyi(p, q, parameter),
        "normalised-renyi": lambda: normalised_renyi(p, q),
    }[measure]()


def ratios(rows, distances, measure, parameter):
    """The ratio of every ordered pair of finite distance."""
    found = {}
    for i in range(len(rows)):
        for j in range(len(rows)):
            if i != j and math.isfinite(distances[i, j]):
                divergence = plainly(measure, rows[i], rows[j], parameter)
                if distances[i, j] > 0:
                    found[i, j] = divergence / distances[i, j]
                else:
                    found[i, j] = math.inf if divergence > 0 else 0.0
    return found


def agree(rows, distances, measure, parameter):
    expected = ratios(rows, distances, measure, parameter)
    worst = worst_pair(rows, distances, measure, parameter)
    if not expected:
        assert (worst.ratio, worst.first, worst.second) == (0, None, None)
        return
    assert worst.ratio == pytest.approx(max(expected.values()), rel=1e-9)
    assert worst.ratio == pytest.approx(expected[worst.first, worst.second], rel=1e-12)
    assert worst.distance == distances[worst.first, worst.second]
    assert worst.divergence == plainly(measure, rows[worst.first], rows[worst.second], parameter)


def random_mechanism(generator, size=None, outputs=None):
    """Rows with zeros, ties and copies of each other; distances with zeros, infinities and both directions unlike."""
    size = size or int(generator.integers(2, 9))
    outputs = outputs or int(generator.integers(2, 7))
    rows = generator.integers(0 if generator.random() < 0.5 else 1, 6, (size, outputs)).astype(float)
    if generator.random() < 0.3:
        rows *= 10.0 ** generator.integers(-9, 1, (size, outputs))
    rows[np.arange(size), generator.integers(0, outputs, size)] += 1
    rows[generator.random(size) < 0.2] = rows[0]
    rows /= rows.sum(axis=1, keepdims=True)
    distances = generator.integers(0 if generator.random() < 0.3 else 1, 5, (size, size)) * generator.choice([1, 0.3])
    distances[generator.random((size, size)) < generator.choice([0, 0.5, 0.9])] = math.inf
    if generator.random() < 0.5:
        distances = np.minimum(distances, distances.T)
    return rows, distances


@pytest.fixture
def as_if_many(monkeypatch):
    """Bounds for all pairs at once, as for thousands of them."""
    monkeypatch.setattr(worst_pairs, "FEW_PAIRS", 0)


# -- agreement with the plain functions ----------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_the_worst_of_few_pairs_is_that_of_the_plain_functions(measure, parameter):
    generator = np.random.default_rng(1)
    for _ in range(times(300)):
        agree(*random_mechanism(generator), measure, parameter)


@pytest.mark.repeats
@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_the_worst_of_many_pairs_is_that_of_the_plain_functions(measure, parameter, as_if_many):
    generator = np.random.default_rng(2)
    for _ in range(times(300)):
        agree(*random_mechanism(generator), measure, parameter)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_the_worst_of_really_many_pairs_is_that_of_the_plain_functions(measure, parameter):
    generator = np.random.default_rng(3)
    rows = generator.dirichlet(np.ones(9), 80) + 1e-6
    rows /= rows.sum(axis=1, keepdims=True)
    distances = generator.integers(1, 9, (80, 80)).astype(float)
    assert len(rows) * (len(rows) - 1) // 2 > worst_pairs.FEW_PAIRS
    agree(rows, distances, measure, parameter)


@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_distances_along_a_line_are_settled_by_neighbours(measure, parameter, as_if_many):
    at = np.arange(30)
    rows = np.exp(-0.4 * np.abs(at[:, None] - at))
    rows /= rows.sum(axis=1, keepdims=True)
    agree(rows, np.abs(at[:, None] - at).astype(float), measure, parameter)


@st.composite
def mechanisms(draw):
    """As above, but built entry by entry."""
    size, outputs = draw(st.integers(2, 8)), draw(st.integers(2, 6))
    entry = st.integers(0, 5) | st.sampled_from([1e-9, 1e-4])
    law = st.lists(entry, min_size=outputs, max_size=outputs).filter(any)
    different = draw(st.lists(law, min_size=1, max_size=size))
    rows = np.array([different[at] if at < len(different) else different[0] for at in range(size)], dtype=float)
    rows /= rows.sum(axis=1, keepdims=True)
    distance = st.sampled_from([1.0, 2.0, 3.0, 4.0, 0.3, 1.2, 0.0, math.inf])
    distances = draw(hnp.arrays(float, (size, size), elements=distance))
    return rows, np.minimum(distances, distances.T) if draw(st.booleans()) else distances


@settings(deadline=None)
@given(mechanisms(), st.sampled_from(MEASURES), st.booleans())
def test_any_mechanism_agrees(mechanism, which, many):
    rows, distances = mechanism
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_pairs, "FEW_PAIRS", 0 if many else worst_pairs.FEW_PAIRS)
        agree(rows, distances, *which)


@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_probabilities_at_the_end_of_floats_agree(measure, parameter, as_if_many):
    rows = np.array([[1e-310, 1e-5, 1], [1e-3, 1e-300, 1], [1e-2, 1e-200, 1], [1e-100, 1e-2, 1]])
    rows /= rows.sum(axis=1, keepdims=True)
    distances = np.array([[0, 1, 2, 3], [1, 0, 0.5, 2], [2, 0.5, 0, 1], [3, 2, 1, 0]])
    agree(rows, distances, measure, parameter)


# -- zeros, infinities and directions ------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_nothing_constrained_is_no_pair(measure, parameter):
    worst = worst_pair(RESPONSE, [[0, math.inf], [math.inf, 0]], measure, parameter)
    assert worst == worst_pairs.WorstPair(0.0, None, None, 0.0, math.inf)
    assert worst_pair([[0.5, 0.5]], [[0]], measure, parameter).first is None


@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_different_laws_at_distance_zero_have_no_finite_budget(measure, parameter):
    # Unordered data under a mechanism that looks at the order: section 3.5.1's randomised response.
    worst = worst_pair(RESPONSE, [[0, 0], [1, 0]], measure, parameter)
    assert worst.ratio == math.inf
    assert worst.distance == 0
    assert (worst.first, worst.second) == (0, 1)
    same = worst_pair([[0.5, 0.5], [0.5, 0.5]], [[0, 0], [0, 0]], measure, parameter)
    assert same.ratio == same.divergence == 0


@pytest.mark.parametrize(("measure", "parameter"), MEASURES)
def test_laws_that_differ_by_rounding_are_the_same_at_distance_zero(measure, parameter):
    rows = [[0.1 + 0.2, 0.7], [0.3, 0.7]]
    assert rows[0] != rows[1]
    assert worst_pair(rows, np.zeros((2, 2)), measure, parameter).ratio == 0
    assert worst_pair([[0.3 + 1e-10, 0.7 - 1e-10], [0.3, 0.7]], np.zeros((2, 2)), "multiplicative").ratio == math.inf


def test_a_long_list_of_choices_says_how_many_are_not_named():
    letters = [chr(ord("a") + place) for place in range(15)]
    assert str(errors.unknown_choice("value of 'x'", "?", letters, most=12)).endswith("'k', 'l' and 3 more.")
    assert str(errors.unknown_choice("value of 'x'", "?", letters[:12], most=12)).endswith("'k' and 'l'.")


def test_laws_within_delta_of_each_other_may_be_at_distance_zero():
    rows = [[0.4, 0.6], [0.1, 0.9]]  # up to rounding: 0.4 - 0.3 is not 0.1 in floats
    assert worst_pair(rows, np.zeros((2, 2)), "approximate", 0.3).ratio == 0
    generator = np.random.default_rng(8)
    for _ in range(50):  # exactly delta apart, in many outputs
        q = generator.dirichlet(np.ones(400))
        half = np.arange(400) < 200
        p = q * np.where(half, 1 + 0.1 / q[half].sum(), 1 - 0.1 / q[~half].sum())
        rows, distances = [p, q, q[::-1]], [[0, 0, 2], [0, 0, 2], [2, 2, 0]]
        assert worst_pair(rows, distances, "approximate", 0.1).distance == 2
    rows = [[1, 0], [0.9, 0.1]]
    assert worst_pair(rows, np.zeros((2, 2)), "approximate", 0.1).ratio == 0
    assert worst_pair(rows, np.zeros((2, 2)), "approximate", 0.09).ratio == math.inf


def test_renyi_looks_at_one_direction_and_the_others_at_both():
    rows, one_way = [[0.5, 0.5], [1, 0]], [[0, 2], [math.inf, 0]]
    assert worst_pair(rows, one_way, "renyi", 2).ratio == math.inf
    assert worst_pair(rows[::-1], one_way, "renyi", 2).ratio == pytest.approx(math.log(2) / 2)
    for measure in ("multiplicative", "normalised-renyi"):
        assert worst_pair(rows[::-1], one_way, measure).ratio == math.inf


def test_the_smaller_distance_counts_and_names_the_order_of_the_pair():
    worst = worst_pair(RESPONSE, [[0, 4], [2, 0]], "multiplicative")
    assert (worst.first, worst.second, worst.distance) == (1, 0, 2)
    assert worst.ratio == pytest.approx(math.log(3) / 2)


def test_the_diagonal_is_ignored():
    assert worst_pair(RESPONSE, [[math.nan, 1], [1, -1]], "total-variation").ratio == 0.5


def test_a_pair_on_the_way_is_needed_when_it_is_itself_at_the_whole_distance(as_if_many):
    # 1 + 1e-20 is 1 in floats: none of the long pairs may be passed over for the other.
    rows = np.array([[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]])
    distances = np.array([[0, 1, 1], [1, 0, 1e-20], [1, 1e-20, 0]])
    assert worst_pair(rows, distances, "normalised-renyi").ratio == pytest.approx(normalised_renyi(rows[0], rows[1]))


# -- bounds --------------------------------------------------------------------------------------------------


def test_bounds_for_all_pairs_hold():
    generator = np.random.default_rng(5)
    for _ in range(50):
        rows = 10.0 ** generator.uniform(-generator.choice([1, 5, 60]), 0, (6, 5))
        rows /= rows.sum(axis=1, keepdims=True)
        logs = np.log(rows)
        first, second = np.nonzero(~np.eye(6, dtype=bool))
        for x in (0.0, 1e-3, 1.0, 30.0):
            values, error = all_renyi(rows, logs, x)
            for i, j in zip(first, second, strict=True):
                if np.isfinite(values[i, j]):
                    assert abs(values[i, j] - renyi(rows[i], rows[j], x + 1)) <= error
        largest = np.array([multiplicative(rows[i], rows[j]) for i, j in zip(first, second, strict=True)])
        exact = [normalised_renyi(rows[i], rows[j]) for i, j in zip(first, second, strict=True)]
        lower, upper = bound_normalised_renyi(rows, logs, first, second, largest)
        assert np.all(lower <= np.array(exact) * (1 + 1e-9))
        assert np.all(np.array(exact) <= upper * (1 + 1e-9))


def test_bounds_hold_for_a_supremum_beyond_the_orders_looked_at(as_if_many):
    rows = np.array([[1e-8, 1 - 1e-8], [2e-8, 1 - 2e-8], [3e-8, 1 - 3e-8]])
    exact = normalised_renyi(rows[0], rows[1])
    order = max(range(2, 400), key=lambda a: max(renyi(rows[0], rows[1], a), renyi(rows[1], rows[0], a)) / a)
    assert order - 1 > BOUND_ORDERS[-1]
    largest = np.array([multiplicative(rows[0], rows[1])])
    lower, upper = bound_normalised_renyi(rows, np.log(rows), np.array([0]), np.array([1]), largest)
    assert lower[0] <= exact <= upper[0]
    agree(rows, np.array([[0, 1, 9], [1, 0, 0.5], [9, 0.5, 0]]), "normalised-renyi", None)


def test_the_largest_value_is_found_whatever_the_bounds_promise():
    generator = np.random.default_rng(7)
    for _ in range(200):
        values = generator.random(1000)
        upper = values * (1 + generator.random(1000) * generator.choice([0, 1e-6, 0.01, 1, 100]))

        def exactly(at, best, values=values):
            return np.where(values[at] > best, values[at], 0.0)

        found = worst_pairs._settle(upper, int(generator.integers(1000)), exactly)
        assert values[found] >= values.max() * (1 - 1e-9)


@pytest.mark.parametrize("cores", [1, 5])
def test_the_answer_does_not_depend_on_the_number_of_cores(cores, monkeypatch):
    generator = np.random.default_rng(4)
    rows = generator.dirichlet(np.ones(5), 70)
    distances = 1.0 - np.eye(70)
    expected = [worst_pair(rows, distances, *which) for which in MEASURES]
    monkeypatch.setenv("STIRRED_THREADS", str(cores))
    assert [worst_pair(rows, distances, *which) for which in MEASURES] == expected


# -- power curves --------------------------------------------------------------------------------------------


@pytest.mark.repeats
def test_the_worst_power_curve_is_the_highest_of_all_neighbours():
    generator = np.random.default_rng(6)
    levels = np.array([0.3, 0, 0.01, 0.05, 0.5, 1, 0.999])
    for _ in range(times(60)):
        rows, distances = random_mechanism(generator)
        found = worst_power_curve(rows, distances, levels)
        curves = {
            (i, j): PowerCurve(tuple(map(tuple, power_curve(rows[i], rows[j]).tolist()))).power(levels)
            for i in range(len(rows))
            for j in range(len(rows))
            if i != j and distances[i, j] == 1
        }
        expected = np.max([levels, *curves.values()], axis=0)
        assert found.powers == pytest.approx(expected, abs=1e-12)
        assert found.levels.tolist() == levels.tolist()
        for k in range(len(levels)):
            if found.first[k] >= 0:
                assert curves[found.first[k], found.second[k]][k] == pytest.approx(expected[k], abs=1e-12)
            else:
                assert found.powers[k] == levels[k]


def test_without_neighbours_a_test_has_no_power():
    found = worst_power_curve(RESPONSE, [[0, 2], [2, 0]], [0.05, 0.5])
    assert found.powers.tolist() == [0.05, 0.5]
    assert found.first.tolist() == found.second.tolist() == [-1, -1]


# -- refusals ------------------------------------------------------------------------------------------------

ONE = np.ones((2, 2))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: worst_pair(RESPONSE, ONE, "hellinger"), "unknown-choice", "no measure 'hellinger'"),
        (lambda: worst_pair(RESPONSE, ONE, "multiplicative", 0.1), "parameter-not-used", "takes no parameter"),
        (lambda: worst_pair(RESPONSE, ONE, "approximate"), "parameter-out-of-range", "delta is nan"),
        (lambda: worst_pair(RESPONSE, ONE, "renyi"), "parameter-out-of-range", "order is nan"),
        (lambda: worst_pair(RESPONSE, np.ones((3, 3)), "multiplicative"), "distances-do-not-fit", "(3, 3)"),
        (lambda: worst_pair(RESPONSE, -ONE, "multiplicative"), "distances-do-not-fit", "negative"),
        (lambda: worst_pair(RESPONSE, ONE * math.nan, "multiplicative"), "distances-do-not-fit", "not a number"),
        (lambda: worst_pair([0.5, 0.5], ONE, "multiplicative"), "not-a-distribution", "not a matrix"),
        (lambda: worst_pair(RESPONSE + 0.1, ONE, "multiplicative"), "not-a-distribution", "do not sum to 1"),
        (lambda: worst_power_curve(RESPONSE, ONE, [0.5, 2]), "parameter-out-of-range", "a level"),
    ],
)
def test_what_is_no_mechanism_is_refused(call, kind, words):
    with pytest.raises(LossError) as refusal:
        call()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
