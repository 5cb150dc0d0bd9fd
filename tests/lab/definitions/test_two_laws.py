"""The most powerful test with its ties, and attackers who are unsure about the rest (Theorem 6.5)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred import loss
from stirred.errors import StirredError
from stirred.lab.definitions.two_laws import best_test, level_and_power, uncertain_power
from stirred.loss import PowerCurve, pure_power
from stirred.semantics import allowed_power
from stirred.spec import FiniteMechanism, flavors
from stirred.spec.order.finite_mechanisms import randomised_response
from strategies import laws

F = Fraction


def weights(draw_from):
    return draw_from.map(lambda ns: [F(n, sum(ns)) for n in ns])


LAWS = st.integers(2, 5).flatmap(
    lambda k: st.tuples(*(weights(st.lists(st.integers(0, 6), min_size=k, max_size=k).filter(any)) for _ in range(2)))
)


def greatest_power(null, alternative, level):
    """By the definition: the best mixture of tests that reject on some set of outputs (an exact linear programme, whose
    solutions are two sets and a coin)."""
    subsets = list(itertools.product((0, 1), repeat=len(null)))
    points = [
        tuple(sum(p * s for p, s in zip(law, one, strict=True)) for law in (null, alternative)) for one in subsets
    ]
    best = max(power for at, power in points if at <= level)
    for (a, p), (b, q) in itertools.permutations(points, 2):
        if a <= level < b:
            best = max(best, p + (q - p) * (level - a) / (b - a))
    return best


@settings(max_examples=150, deadline=None)
@given(LAWS, st.fractions(0, 1, max_denominator=12))
def test_no_test_has_more_power_and_ties_are_exact(laws, level):
    null, alternative = laws
    found = best_test(null, alternative, level)
    assert found.power == greatest_power(null, alternative, level)
    assert level_and_power(null, alternative, found.threshold, found.on_threshold) == (level, found.power)
    assert 0 <= found.on_threshold <= 1


def test_the_loss_is_what_the_test_looks_at():
    # Randomised response at epsilon 1: the loss is +1 or -1, and a level between needs a coin.
    keep = math.e / (1 + math.e)
    found = best_test([keep, 1 - keep], [1 - keep, keep], (1 - keep) / 2)
    assert found.loss == pytest.approx(-1)
    assert found.on_threshold == pytest.approx(0.5)
    assert found.power == pytest.approx(float(pure_power(1).power(found.level)))


def test_outputs_that_one_law_never_gives():
    found = best_test([F(1, 2), F(1, 2), F(0)], [F(1, 2), F(0), F(1, 2)], F(0))
    assert (found.power, found.threshold) == (F(1, 2), F(1))
    everything = best_test([F(1, 2), F(1, 2), F(0)], [F(1, 2), F(0), F(1, 2)], F(1))
    assert everything.power == 1


@pytest.mark.parametrize(
    ("null", "alternative", "level"),
    [([0.5, 0.5], [1.0], 0.1), ([0.5, 0.6], [0.5, 0.5], 0.1), ([0.5, 0.5], [1.5, -0.5], 0.1), ([1.0], [1.0], 1.5)],
)
def test_what_is_no_test_is_refused(null, alternative, level):
    with pytest.raises(StirredError):
        best_test(null, alternative, level)


# -- Theorem 6.5 ---------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(2, 5))
def test_theorem_6_5_uncertainty_about_the_rest_does_not_help(data, rests, outputs):
    names = [f"{rest}{record}" for rest in range(rests) for record in "01"]
    rows = data.draw(laws(2 * rests, outputs))
    mechanism = FiniteMechanism(tuple(names), tuple(map(str, range(outputs))), rows)
    belief = dict(zip(map(str, range(rests)), data.draw(laws(1, rests))[0], strict=True))
    null, alternative = ({str(r): f"{r}{record}" for r in range(rests)} for record in "01")
    seen = uncertain_power(mechanism, belief, null, alternative)
    levels = np.linspace(0, 1, 21)
    # The budget of each definition that the pairs need is then a bound for the mixture as well.
    pairs = [(mechanism.rows[2 * r], mechanism.rows[2 * r + 1]) for r in range(rests)]
    epsilon = max(loss.multiplicative(*pair) for pair in pairs)
    rho = max(loss.normalised_renyi(*pair) ** 2 for pair in pairs)
    for specification in (flavors.pure().at(epsilon * (1 + 1e-12)), flavors.zcdp().at(rho * (1 + 1e-12))):
        assert bool(np.all(seen.power(levels) <= np.asarray(allowed_power(specification).power(levels)) + 1e-9))
    # The identity of the proof: level and power of a test are averages over the rest.
    curves = [PowerCurve(tuple(map(tuple, loss.power_curve(*pair)))) for pair in pairs]
    least_above = np.max([curve.power(levels) for curve in curves], axis=0)
    if rests == 1:
        assert seen.power(levels) == pytest.approx(least_above, abs=1e-9)


def test_an_attacker_who_knows_the_rest_has_at_least_the_power_of_one_who_does_not():
    # The count of two people, reported by randomised response on the count's parity.
    answers = randomised_response("1/5", respondents=2)
    parity = answers.then({name: {str(name.count("1") % 2): 1} for name in answers.outputs})
    half = {"0": F(1, 2), "1": F(1, 2)}
    unsure = uncertain_power(parity, half, {"0": "00", "1": "01"}, {"0": "10", "1": "11"})
    assert unsure.power(0.3) == pytest.approx(0.3)  # nothing is learnt without the other answer
    sure = uncertain_power(parity, {"0": F(1)}, {"0": "00"}, {"0": "10"})
    assert sure.power(0.3) > 0.5


@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(2, 4), st.permutations("012"), st.permutations("012"))
def test_a_recoding_of_records_leaves_the_budget_as_it_is(data, outputs, first, second):
    """Section 6.4: a one-to-one recoding nu of each person's records keeps neighbours, and so the budget."""
    names = [a + b for a in "012" for b in "012"]
    rows = data.draw(laws(len(names), outputs))
    mechanism = FiniteMechanism(tuple(names), tuple(map(str, range(outputs))), rows)
    recoded = {name: first[int(name[0])] + second[int(name[1])] for name in names}
    after = FiniteMechanism(tuple(names), mechanism.outputs, rows[[names.index(recoded[name]) for name in names]])
    files = {name: [{"id": at, "record": record} for at, record in enumerate(name)] for name in names}
    for flavor in (flavors.pure(), flavors.zcdp()):
        assert after.loss(flavor, files).value == pytest.approx(mechanism.loss(flavor, files).value, rel=1e-9)


@pytest.mark.parametrize(
    ("belief", "null"),
    [({"0": 0.5}, {"0": "00"}), ({"0": 1.0}, {}), ({}, {}), ({"0": 1.0}, {"0": "99"})],
)
def test_a_belief_that_is_none_is_refused(belief, null):
    with pytest.raises(StirredError):
        uncertain_power(randomised_response("1/4", respondents=2), belief, null, {"0": "10"})
