"""Lower bounds from runs are valid: they exceed what is truly revealed no more often than is stated."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from audited_laws import PAIRS, response
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from stirred.errors import StirredError
from stirred.lab.audit.lower_bounds import ORDERS, Candidates, as_outputs, lower_bounds, promise_result
from stirred.lab.audit.two_counts import (
    Counts,
    epsilon_at,
    joint_lower_bound,
    joint_p_value,
    lower_limit,
    power_at,
    rho_at,
    upper_limit,
)

MEASURES = {
    "epsilon": epsilon_at(0.0),
    "epsilon-at-delta": epsilon_at(0.02),
    "epsilon-of-two": epsilon_at(0.02, 2),
    "rho": rho_at(1.0),
    "rho-of-order-4": rho_at(4.0),
    "power": power_at(0.1),
}
each_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)


# -- two counts: exact, by enumeration -----------------------------------------------------------------------


def all_outcomes(n, m):
    return [(k, j) for k in range(n + 1) for j in range(m + 1)]


@each_measure
@pytest.mark.parametrize("false_alarm", [0.05, 0.3])
def test_a_bound_exceeds_the_truth_no_more_often_than_stated_whatever_the_probabilities(measure, false_alarm):
    """The probability of exceeding is summed over all outcomes: no chance is involved."""
    n, m = 14, 11
    outcomes = all_outcomes(n, m)
    bounds = np.array([joint_lower_bound(Counts(k, n, j, m), measure, false_alarm) for k, j in outcomes])
    worst = 0.0
    for p in np.linspace(0.02, 1, 30):
        for q in np.linspace(0.01, p, 30):
            law = np.outer(stats.binom.pmf(np.arange(n + 1), n, p), stats.binom.pmf(np.arange(m + 1), m, q)).ravel()
            truth = max(measure.nothing, measure.at(p, q))
            worst = max(worst, law[bounds > truth + 1e-9].sum())
    assert worst <= false_alarm
    assert worst > 0.4 * false_alarm  # the bounds are not valid for being trivial


def lower(hits, runs, chance):
    return stats.beta.ppf(chance, hits, runs - hits + 1) if hits else 0.0


def upper(hits, runs, chance):
    return stats.beta.isf(chance, hits + 1, runs - hits) if hits < runs else 1.0


def by_definition(counts, measure, false_alarm):
    """The smallest measure on a grid of pairs, q in its interval, under which the tail is not rare."""
    n, m, half = counts.runs, counts.other_runs, 0.999 * false_alarm / 2
    plain = np.array([[measure.at(lower(k, n, half), upper(j, m, half)) for j in range(m + 1)] for k in range(n + 1)])
    tail = plain >= plain[counts.hits, counts.other_hits] - 1e-9
    p = np.linspace(1e-6, 1 - 1e-6, 1_201)
    ends = lower(counts.other_hits, m, 5e-4 * false_alarm), upper(counts.other_hits, m, 5e-4 * false_alarm)
    q = np.linspace(max(ends[0], 1e-9), ends[1], 601)
    masses = [stats.binom.pmf(np.arange(size + 1)[:, None], size, grid) for size, grid in ((n, p), (m, q))]
    kept = masses[0].T @ tail @ masses[1] > 0.999 * false_alarm
    both = np.meshgrid(p, q, indexing="ij")
    return max(measure.nothing, measure.at_each(both[0][kept], both[1][kept]).min())


def plain_lower_bound(counts: Counts, measure, false_alarm: float) -> float:
    """The measure at the two Clopper-Pearson limits, each with half of the false-alarm rate."""
    low = lower_limit(counts.hits, counts.runs, false_alarm / 2).item()
    high = upper_limit(counts.other_hits, counts.other_runs, false_alarm / 2).item()
    return max(measure.nothing, measure.at(low, high))


@each_measure
@pytest.mark.parametrize("counts", [Counts(12, 20, 3, 16), Counts(20, 20, 0, 16), Counts(9, 20, 0, 16)], ids=repr)
def test_a_bound_is_the_smallest_measure_under_which_what_was_seen_is_not_rare(measure, counts):
    found, wanted = joint_lower_bound(counts, measure, 0.05), by_definition(counts, measure, 0.05)
    plain = plain_lower_bound(counts, measure, 0.05)
    # What the grid leaves out makes its answer larger; the search ends a thirtieth of the gain early.
    assert wanted - 0.04 * (wanted - plain) - 5e-3 <= found <= wanted


@each_measure
def test_a_bound_is_never_below_the_plain_one(measure):
    for k, j in all_outcomes(13, 17):
        counts = Counts(k, 13, j, 17)
        for false_alarm in (0.05, 1e-6):
            # The plain bound at what the interval leaves: a thousandth less.
            plain = plain_lower_bound(counts, measure, false_alarm * 0.999 * (1 - 1e-6))
            assert joint_lower_bound(counts, measure, false_alarm) >= plain - 1e-12


def test_a_bound_is_well_above_the_plain_one_where_there_is_room():
    counts = Counts(300, 1_000, 100, 1_000)
    truth, plain = math.log(3), plain_lower_bound(counts, epsilon_at(0.0), 0.05)
    assert truth - joint_lower_bound(counts, epsilon_at(0.0), 0.05) < 0.7 * (truth - plain)


@each_measure
def test_more_hits_never_lower_a_bound_and_more_on_the_other_side_never_raise_it(measure):
    n = 12
    bounds = np.array(
        [[joint_lower_bound(Counts(k, n, j, n), measure, 0.05) for j in range(n + 1)] for k in range(n + 1)]
    )
    slack = 0.02 * np.maximum(1, bounds[:, 1:])  # searches end early by a part of what is gained over the plain bound
    assert (np.diff(bounds, axis=0) >= -slack.max()).all()
    assert (np.diff(bounds, axis=1) <= slack).all()


@each_measure
def test_p_values_and_bounds_decide_alike(measure):
    for counts in (Counts(40, 50, 10, 60), Counts(9, 50, 0, 60), Counts(30, 50, 20, 60)):
        bound = joint_lower_bound(counts, measure, 0.05)
        if bound > measure.nothing:
            assert joint_p_value(counts, measure, measure.nothing + 0.97 * (bound - measure.nothing), 0.05) < 0.0501
        assert joint_p_value(counts, measure, measure.nothing + 1.1 * (bound - measure.nothing) + 0.03, 0.05) > 0.05


def test_p_values_are_valid_whatever_the_probabilities():
    n, promise, measure = 12, 0.7, epsilon_at(0.0)
    outcomes = all_outcomes(n, n)
    p_values = np.array([joint_p_value(Counts(k, n, j, n), measure, promise, 0.05) for k, j in outcomes])
    for q in np.linspace(0.01, math.exp(-promise), 40):
        law = np.outer(*(stats.binom.pmf(np.arange(n + 1), n, chance) for chance in (math.exp(promise) * q, q))).ravel()
        assert law[p_values < 0.05].sum() <= 0.05


def test_counts_of_millions_are_handled():
    counts = Counts(300_000, 1_000_000, 100_000, 1_000_000)
    bound = joint_lower_bound(counts, epsilon_at(0.0), 1e-9)
    assert math.log(3) - 0.03 < bound < math.log(3)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(list(MEASURES.values())),
    st.integers(1, 400),
    st.integers(1, 400),
    st.data(),
    st.sampled_from([0.5, 0.05, 1e-4, 1e-9]),
)
def test_a_bound_lies_between_the_plain_one_and_what_was_seen(measure, n, m, data, false_alarm):
    counts = Counts(data.draw(st.integers(0, n)), n, data.draw(st.integers(0, m)), m)
    bound = joint_lower_bound(counts, measure, false_alarm)
    seen = measure.at(counts.hits / n, counts.other_hits / m)
    assert measure.nothing <= bound
    if counts.hits == 0 or counts.other_hits == m:
        assert bound == measure.nothing
    if false_alarm <= 0.05:
        assert bound <= max(measure.nothing, seen) + 1e-9
    assert joint_lower_bound(counts, measure, false_alarm / 10) <= bound * 1.02 + 1e-9


# -- runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_many_runs_bring_the_bounds_near_the_truth_and_not_above(pair):
    """With confidence 1 - 1e-9 a false alarm has at most that probability."""
    runs = 60_000
    found = lower_bounds(pair.run(0, runs, 11), pair.run(1, runs, 12), confidence=1 - 1e-9, deltas=(1e-2,))
    for bound, truth in (
        (found.epsilon, pair.epsilon()),
        (found.epsilons[1e-2], pair.epsilon(1e-2)),
        (found.rho, pair.rho()),
    ):
        assert bound.value <= truth + 1e-9
    for level, bound in found.powers.items():
        assert level <= bound.value <= pair.power(level) + 1e-9
    if pair is PAIRS["gaussian"]:  # epsilon is infinite, and the two coins of one event cannot show all of rho
        assert found.rho.value > 0.5 * pair.rho()
    elif pair is not PAIRS["constant"]:
        assert found.epsilon.value > 0.8 * pair.epsilon()


def test_the_known_laws_are_what_they_are_said_to_be():
    assert PAIRS["response"].epsilon() == pytest.approx(math.log(3))
    assert PAIRS["geometric"].epsilon() == pytest.approx(0.5)
    assert PAIRS["gaussian"].rho() == pytest.approx(1 / 4, rel=1e-3)
    assert PAIRS["constant"].epsilon(0.0) == pytest.approx(0, abs=1e-12)
    assert PAIRS["response"].power(0.05) == pytest.approx(0.15)


AUDITS = 2_000


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_bounds_of_two_thousand_audits_exceed_the_truth_no_more_often_than_stated(pair):
    """Each count of bounds above the truth is at most binomial (2,000, 0.05); together a false alarm has 6e-10."""
    runs = 200
    outputs = [pair.run(which, AUDITS * runs, 5 + which) for which in (0, 1)]
    truths = pair.epsilon(), pair.rho(), pair.power(0.1)
    above = np.zeros(3, dtype=int)
    for number in range(AUDITS):
        part = slice(number * runs, (number + 1) * runs)
        found = lower_bounds(outputs[0][part], outputs[1][part], deltas=(), levels=(0.1,))
        values = found.epsilon.value, found.rho.value, found.powers[0.1].value
        above += [value > truth * (1 + 1e-9) + 1e-12 for value, truth in zip(values, truths, strict=True)]
    assert above.max() <= stats.binom.isf(2e-10, AUDITS, 0.05)


def test_bounds_of_outputs_that_do_not_differ_are_zero():
    found = lower_bounds([0, 1] * 200, [0, 1] * 200)
    assert found.epsilon.value == found.rho.value == 0
    assert all(bound.value == level for level, bound in found.powers.items())
    same = lower_bounds(["a"] * 50, ["a"] * 50)
    assert same.epsilon.value == same.rho.value == 0


def test_outputs_of_any_kind_are_told_apart():
    for one, other in (("yes", "no"), ((1, "a"), (2, "b")), (None, True), (1.5, -3.25), (True, False), (2**80, 2**81)):
        found = lower_bounds([one] * 400, [other] * 400)
        assert found.epsilon.value > 3.5
        assert found.epsilon.counts.hits == 200
        assert found.epsilon.counts.other_hits == 0


def test_unequal_numbers_of_runs_are_taken():
    pair = PAIRS["response"]
    found = lower_bounds(pair.run(0, 4_001, 1), pair.run(1, 900, 2))
    assert found.runs == (4_001, 900)
    assert 0.7 < found.epsilon.value < pair.epsilon()


def test_where_nothing_is_promised_the_event_that_differs_most_is_tested():
    """An event that always occurs would come nearest to nothing, and never show more."""
    first, second = [0] * 40 + [1] * 60, [0] * 50 + [1] * 50
    rng = np.random.default_rng(1)
    found = lower_bounds(rng.permutation(first * 2), rng.permutation(second * 2))
    assert 0 < found.epsilon.counts.hits < 100


def test_two_runs_on_each_input_are_enough_to_ask_and_show_nothing():
    found = lower_bounds([0, 1], ["a", "b"])
    assert found.epsilon.value == found.rho.value == 0


def test_an_event_in_the_middle_is_found():
    """Neither input gives larger outputs: only the likelihood ratio tells that the second avoids the middle."""
    rng = np.random.default_rng(4)
    middle = rng.normal(0, 1, 4_000)
    sides = rng.normal(0, 3, 4_000)
    assert lower_bounds(middle, sides).epsilon.value > 1.5


def test_events_are_chosen_without_the_second_halves():
    pair, rng = PAIRS["geometric"], np.random.default_rng(8)
    first, second = pair.run(0, 2_000, 3), pair.run(1, 2_000, 4)
    events = {
        lower_bounds(
            np.concatenate([first[:1_000], rng.permutation(1_000) * scale]),
            np.concatenate([second[:1_000], rng.permutation(1_000) * -scale]),
        ).epsilon.event
        for scale in (0, 1, 7)
    }
    assert len(events) == 1


def test_a_distance_divides_epsilon_and_divides_rho_twice():
    pair = PAIRS["response"]
    first, second = pair.run(0, 4_000, 1), pair.run(1, 4_000, 2)
    one, two = (lower_bounds(first, second, distance=distance, deltas=(1e-3,)) for distance in (1, 2))
    assert two.epsilon.value == pytest.approx(one.epsilon.value / 2)
    assert two.rho.value == pytest.approx(one.rho.value / 4)
    assert two.powers[0.05].value == one.powers[0.05].value
    # At a delta the delta of two steps is larger, 1 + e^epsilon times: a little less than half is shown.
    assert 0.98 * one.epsilons[1e-3].value / 2 < two.epsilons[1e-3].value < one.epsilons[1e-3].value / 2


def test_epsilon_at_a_distance_and_a_delta_is_that_of_group_privacy():
    from stirred.loss import group_approximate

    epsilon = epsilon_at(0.01, 3).at(0.9, 0.1)
    of_group, delta = group_approximate(epsilon, 0.01, 3)
    assert math.exp(of_group) * 0.1 + delta == pytest.approx(0.9)


def test_the_measure_of_rho_is_that_of_zcdp():
    p, q = 0.6, 0.2
    divergence = math.log(p**3 * q**-2 + (1 - p) ** 3 * (1 - q) ** -2) / 2
    assert rho_at(3.0).at(p, q) == pytest.approx(divergence / 3)
    assert rho_at(1.0).at(p, q) == pytest.approx(p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))
    assert max(rho_at(order).at(0.75, 0.25) for order in ORDERS) == pytest.approx(PAIRS["response"].rho(), rel=1e-3)


def test_the_whole_is_told_in_words():
    told = str(lower_bounds(["y"] * 300, ["n"] * 300))
    assert "epsilon is at least 3." in told
    assert "the output is 'y' in 150 of 150 runs on the first input and in 0 of 150 runs on the second" in told
    assert "Each line holds with confidence 0.95" in told
    assert "everything at once with 0.8" in told


def test_words_for_ranges_name_a_few_and_count_the_others():
    outputs = as_outputs("first", np.repeat(np.arange(20), 2))
    cells = Candidates.of(outputs, outputs).cells
    taken = np.zeros(21, dtype=bool)
    assert cells.words(taken) == "is none at all"
    taken[[0, 3, 4, 20]] = True
    assert cells.words(taken) == "is below 0, or is from 2 to below 4, or is at least 19"
    taken[[7, 9]] = True
    assert cells.words(taken).endswith("or lies in 2 more ranges")
    assert cells.words(np.ones(21, dtype=bool)) == "is any number"


# -- promises ------------------------------------------------------------------------------------------------


def test_a_promise_that_is_broken_is_found_and_one_that_is_kept_is_not():
    pair = response(Fraction(1, 4))
    first, second = pair.run(0, 6_000, 1), pair.run(1, 6_000, 2)
    for promise in ({"epsilon": 0.8}, {"rho": 0.3}, {"epsilon": 0.7, "delta": 1e-3}):
        found = promise_result("pair", first, second, allotted=1e-6, **promise)
        assert found.wrong
        assert found.p_value < 1e-6
        assert "More is revealed than was promised" in found.said
    for promise in ({"epsilon": math.log(3)}, {"rho": 0.6}, {"epsilon": 1.05, "delta": 1e-1}):
        found = promise_result("pair", first, second, allotted=1e-6, **promise)
        assert not found.wrong
        assert found.numbers["at_least"] <= found.numbers["promised"]


def test_a_distance_makes_a_promise_weaker():
    first, second = (PAIRS["response"].run(which, 6_000, which) for which in (0, 1))
    assert promise_result("pair", first, second, allotted=1e-6, epsilon=0.8).wrong
    assert not promise_result("pair", first, second, allotted=1e-6, epsilon=0.8, distance=2).wrong


@pytest.mark.parametrize("promise", [{}, {"epsilon": 1, "rho": 1}], ids=repr)
def test_a_promise_is_either_an_epsilon_or_a_rho(promise):
    with pytest.raises(StirredError, match="either an epsilon or a rho"):
        promise_result("pair", [0, 1], [0, 1], allotted=1e-6, **promise)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([], "are 0"),
        ([1], "are 1"),
        ([1.0, math.nan], "NaN"),
        (np.array([1.0, np.nan]), "NaN"),
        (["a", math.nan], "NaN"),
        ([[1], [2]], "must be made tuples"),
        (np.zeros((3, 2)), "must be made tuples"),
        ("text", "not a list"),
        (None, "not a list"),
        ({"a": 1}, "not a list"),
        (7, "not a list"),
    ],
    ids=repr,
)
def test_runs_that_cannot_be_used_are_refused(runs, says):
    with pytest.raises(StirredError, match=says) as refusal:
        lower_bounds([0, 1, 1], runs)
    assert "second input" in str(refusal.value)
    with pytest.raises(StirredError, match=says):
        lower_bounds(runs, [0, 1, 1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"confidence": 0},
        {"confidence": 1},
        {"confidence": 1.5},
        {"confidence": math.nan},
        {"confidence": "high"},
        {"deltas": (-0.1,)},
        {"deltas": (math.nan,)},
        {"levels": (0,)},
        {"levels": (1,)},
        {"distance": 0},
        {"distance": 1.5},
        {"distance": True},
    ],
    ids=repr,
)
def test_questions_that_cannot_be_answered_are_refused(wrong):
    with pytest.raises(StirredError):
        lower_bounds([0, 1, 1], [0, 1, 0], **wrong)
