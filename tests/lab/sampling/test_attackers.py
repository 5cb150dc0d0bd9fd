"""What sampling hides from whom: equation 6.2 for four attackers, counted out."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from small_designs import answered, any_mechanism, coins, counted, simple

from repeats import times
from stirred import errors
from stirred.lab.sampling import SampledMechanism, frame_record, journalist, knows_the_sample, nosy_neighbour, vanishing
from stirred.survey import amplify
from stirred.survey.design import selections

ONE_OF_TWO = SampledMechanism("01", 2, simple(2, 1), answered(1))


def other_is_zero(p):
    return {("1", "0"): p, ("0", "0"): 1 - p}


def at(beliefs, record, output):
    return float(beliefs.ratio[beliefs.records.index(record), beliefs.outputs.index(output)])


@pytest.mark.parametrize(("p", "ratio"), [(0.5, 1.462117), (0.1, 2.319693), (0.01, 2.672363), (1e-4, 2.717815)])
def test_the_nosy_neighbour_comes_close_to_e_to_the_epsilon_as_the_prior_vanishes(p, ratio):
    found = at(nosy_neighbour(ONE_OF_TWO, other_is_zero(p), 0), "1", "1")
    assert found == pytest.approx(ratio, abs=6e-7)
    assert found < math.e  # approached, and not attained as the text says
    if p < 0.5:
        assert found > math.exp(amplify(selections.simple_random(1, 2), 1).epsilon)


@pytest.mark.parametrize(("p", "ratio"), [(0.5, 1.300489), (0.01, 1.843304)])
def test_who_does_not_know_the_sample_is_held_to_the_amplified_loss(p, ratio):
    found = at(frame_record(ONE_OF_TWO, other_is_zero(p), 0), "1", "1")
    assert found == pytest.approx(ratio, abs=6e-7)
    assert found < math.exp(ONE_OF_TWO.loss())


def test_two_of_four_counted_with_and_without_knowing_that_the_unit_is_sampled():
    sampled = SampledMechanism("01", 4, simple(4, 2), counted([2], 1))
    prior = {
        (first, *rest): (0.05 if first == "1" else 0.95) / 8
        for first in "01"
        for rest in itertools.product("01", repeat=3)
    }
    unaware, nosy = frame_record(sampled, prior, 0), nosy_neighbour(sampled, prior, 0)
    assert [at(unaware, "1", t) for t in "012"] == pytest.approx([0.636566, 1, 1.554274], abs=6e-7)
    assert [at(nosy, "1", t) for t in "012"] == pytest.approx([0.379886, 1, 2.503220], abs=6e-7)


def test_the_journalist_is_held_to_the_loss_on_the_sample():
    prior = {
        frame: math.prod(0.001 if r == "1" else 0.999 for r in frame) for frame in itertools.product("01", repeat=4)
    }
    sampled = SampledMechanism("01", 4, simple(4, 1), answered(1))
    found = at(journalist(sampled, prior), "1", "1")
    assert math.exp(sampled.loss()) + 0.5 < found < math.e
    # As printed, with the sum over r' in the numerator too, the ratio would be 1 whatever the mechanism.
    assert found == pytest.approx(math.e / (1 + 0.001 * (math.e - 1)))


def test_who_knows_the_sample_learns_as_if_nothing_had_been_sampled():
    prior = dict.fromkeys(itertools.product("01", repeat=3), 1 / 8)
    sampled = SampledMechanism("01", 3, simple(3, 2), counted([2], 1))
    inside = knows_the_sample(sampled, prior, 0, (0, 1))
    outside = knows_the_sample(sampled, prior, 0, (1, 2))
    assert np.max(inside.ratio) > np.max(frame_record(sampled, prior, 0).ratio)
    assert outside.ratio == pytest.approx(np.ones_like(outside.ratio))  # nothing about who is not in it


@pytest.mark.repeats
def test_no_attacker_exceeds_her_bound():
    rng = np.random.default_rng(29)
    exceeded = 0
    for _ in range(times(60)):
        sampled = SampledMechanism("01", 4, simple(4, 2), any_mechanism(rng, "01", [2], scale=1.0))
        ones = rng.choice([1e-4, 0.1, 0.5, 0.999], 4)
        chances = rng.dirichlet(np.full(16, 0.3))
        weights = [
            (0.9 * math.prod(p if r == "1" else 1 - p for p, r in zip(ones, frame, strict=True)) + 0.1 * chance)
            for frame, chance in zip(itertools.product("01", repeat=4), chances, strict=True)
        ]
        prior = dict(zip(itertools.product("01", repeat=4), weights, strict=True))
        found = vanishing(sampled, prior, 0)
        assert found.largest["frame record"] <= found.frame_loss + 1e-9
        assert max(found.largest.values()) <= found.sample_loss + 1e-9
        exceeded += found.largest["nosy neighbour"] > found.frame_loss
    assert exceeded


def test_being_sampled_tells_something_where_the_design_looks_at_the_data():
    # A one is sampled nine times out of ten.
    def design(frame):
        if len(set(frame)) == 1:
            return simple(2, 1)
        likely = frame.index("1")
        return {(likely,): Fraction(9, 10), (1 - likely,): Fraction(1, 10)}

    sampled = SampledMechanism("01", 2, design, answered(1))
    prior = dict.fromkeys(itertools.product("01", repeat=2), 0.25)
    assert nosy_neighbour(sampled, prior, 0).prior_of_record.tolist() == pytest.approx([0.3, 0.7])


def test_what_is_shown_tells_what_each_can_learn():
    shown = str(vanishing(ONE_OF_TWO, other_is_zero(0.5), 0))
    assert shown.splitlines()[0] == "loss on the sample 1, on the frame 0.6201"
    assert "nosy neighbour: beliefs move by a factor of up to e^" in shown


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: nosy_neighbour(ONE_OF_TWO, {("0", "0"): 1}, 2), "from 0 to 1"),
        (lambda: nosy_neighbour(ONE_OF_TWO, {("0", "2"): 1}, 0), "not a frame"),
        (lambda: nosy_neighbour(ONE_OF_TWO, {("0",): 1}, 0), "not a frame"),
        (lambda: knows_the_sample(ONE_OF_TWO, {("0", "0"): 1}, 0, (0, 1)), "probability 0"),
        (
            lambda: nosy_neighbour(SampledMechanism("01", 2, {(0,): 1}, answered(1)), {("0", "0"): 1}, 1),
            "probability 0",
        ),
        (
            lambda: journalist(
                SampledMechanism("01", 2, coins([Fraction(1, 2)] * 2), counted(range(3), 1)), {("0", "0"): 1}
            ),
            "differ in size",
        ),
        (lambda: SampledMechanism("01", 2, {(2,): 1}, answered(1)), "not in the frame"),
        (lambda: SampledMechanism("01", 2, {(0, 1): 1}, answered(1)).loss(), "no law for some samples"),
        (lambda: SampledMechanism("01", 2, {(0, 1): 1}, answered(1)).sample_loss(), "no law for some samples"),
        (lambda: SampledMechanism(("0", "10"), 2, {(0,): 1}, answered(1)), "one character"),
        (lambda: SampledMechanism("0-", 2, {(0,): 1}, answered(1)), "one character"),
        (lambda: SampledMechanism("01", 20, {(0,): 1}, answered(1)), "are the most"),
        (lambda: SampledMechanism("01", 2, {(0,): 1}, answered(1)).loss_if_sampled(1), "as it is known to be"),
        (
            lambda: SampledMechanism(
                "01", 2, coins([Fraction(1, 2)] * 2), counted(range(3), 1), "add or remove"
            ).loss_if_sampled(0),
            "'replace'",
        ),
    ],
)
def test_questions_that_have_no_answer_are_refused(ask, words):
    with pytest.raises(errors.StirredError, match=words):
        ask()
