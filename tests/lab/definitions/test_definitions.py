"""Definitions of privacy as questions about two laws: their own words, the paper's examples, closed forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import strategies
from stirred.errors import StirredError
from stirred.lab.definitions.two_laws import ASKED, Definition, coin, edge, level_power
from stirred.loss import (
    EpsilonProfile,
    GaussianCurve,
    RenyiCurve,
    ZcdpCurve,
    approximate_power,
    pure_power,
    pure_to_pbdp_delta,
    renyi,
)
from stirred.spec import OutputPremetric
from stirred.spec.order.finite_mechanisms import FiniteMechanism, randomised_response

LEVELS = np.array([0, 1e-6, 0.001, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.75, 0.9, 0.99, 1])

weights = st.lists(st.integers(0, 6), min_size=3, max_size=4).filter(any)
pairs = st.tuples(weights, weights).filter(lambda pair: len(pair[0]) == len(pair[1]))


def as_fractions(pair):
    return [[Fraction(weight, sum(law)) for weight in law] for law in pair]


def as_laws(pair):
    return np.array(as_fractions(pair), dtype=float)


def response(epsilon: float, respondents: int = 1) -> FiniteMechanism:
    """Randomised response with loss epsilon."""
    return randomised_response(1 / (1 + math.exp(epsilon)), respondents=respondents)


# -- each definition says what its name says -----------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5)]), st.integers(0, 20))
def test_pure_and_approximate_are_about_every_event(pair, ratio, twentieths):
    # By enumeration of all events with exact numbers; equality counts as held.
    p, q = as_fractions(pair)
    events = [event for size in range(len(p) + 1) for event in itertools.combinations(range(len(p)), size)]
    delta = Fraction(twentieths, 20)

    def holds(delta):
        return all(
            sum(a[i] for i in event) <= ratio * sum(b[i] for i in event) + delta
            for a, b in ((p, q), (q, p))
            for event in events
        )

    laws, epsilon = as_laws(pair), math.log(ratio)
    assert Definition.approximate(epsilon, delta).satisfied(*laws) == holds(delta)
    # At epsilon = 0 a rounded ratio near 1 decides, and the fractions know better.
    assert Definition.pure(epsilon).satisfied(*laws) == holds(0) or ratio == 1
    assert Definition.total_variation(delta).satisfied(*laws) == holds(delta) or ratio > 1


@settings(max_examples=60, deadline=None)
@given(pairs, st.sampled_from([Fraction(7, 6), Fraction(5, 3), Fraction(9, 4)]), st.integers(0, 20))
def test_probabilistic_is_the_chance_of_a_large_loss(pair, ratio, twentieths):
    p, q = as_fractions(pair)
    delta = Fraction(twentieths, 20)
    tails = [sum(a[i] for i in range(len(a)) if a[i] > ratio * b[i]) for a, b in ((p, q), (q, p))]
    # Ratios that are exactly e^epsilon do not exceed it, and rounding does not make them.
    definition = Definition.probabilistic(math.log(ratio), delta)
    assert definition.price(as_laws(pair)) == pytest.approx(float(max(tails)))
    assert definition.satisfied(*as_laws(pair)) == (max(tails) <= delta)


def best_test(p, q, level):
    """The chances of a yes after each output that have the greatest power, by linear programming."""
    return linprog(-q, A_ub=[p], b_ub=[level], bounds=(0, 1)).x


@settings(max_examples=60, deadline=None)
@given(pairs, st.floats(0.05, 3), st.floats(0.01, 1))
def test_pbdp_is_the_best_test_at_one_level(pair, epsilon, delta):
    laws = as_laws(pair)
    definition = Definition.pbdp(epsilon, delta)
    best = max(q @ best_test(p, q, math.exp(-epsilon) * delta) for p, q in (laws, laws[::-1]))
    assert definition.price(laws) == pytest.approx(best, abs=1e-8)
    if abs(best - delta) > 1e-6:
        assert definition.satisfied(*laws) == (best < delta)


@settings(max_examples=40, deadline=None)
@given(pairs, st.floats(0.05, 3), st.floats(0.01, 0.99), st.data())
def test_theorems_5_4_and_5_7_pbdp_bounds_the_tail_after_any_processing_and_nothing_smaller_does(
    pair, epsilon, delta, data
):
    laws = as_laws(pair)
    pbdp, tail = Definition.pbdp(epsilon, delta), Definition.probabilistic(epsilon, delta)
    if pbdp.satisfied(*laws):
        for outputs in (2, 3):
            processing = data.draw(strategies.laws(laws.shape[1], outputs, least=0))
            assert tail.passes(laws @ processing)
    elif pbdp.breaks(laws):
        # The test of best power at that level has a tail that is too large.
        tests = [best_test(p, q, math.exp(-epsilon) * delta) for p, q in (laws, laws[::-1])]
        found = max(tail.price(laws @ np.column_stack([test, 1 - test])) for test in tests)
        assert found > delta or pbdp.price(laws) < delta * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(pairs, st.floats(0, 2), st.floats(0, 0.5))
def test_definitions_given_as_curves_or_premetrics_are_the_same_definitions(pair, epsilon, delta):
    laws = as_laws(pair)

    def agree(one: Definition, two: Definition) -> bool:
        return one.passes(laws) == two.passes(laws) or not (one.breaks(laws) or two.breaks(laws))

    assert agree(Definition.pure(epsilon), Definition.tradeoff(pure_power(epsilon)))
    assert agree(Definition.approximate(epsilon, delta), Definition.tradeoff(approximate_power(epsilon, delta)))
    output = OutputPremetric("approximate", delta)
    assert agree(Definition.approximate(epsilon, delta), Definition.by_premetric(output, epsilon))
    assert agree(Definition.pure(epsilon), Definition.by_premetric(OutputPremetric(), epsilon))
    profile = EpsilonProfile(((delta, epsilon),))
    by_profile = Definition.by_premetric(OutputPremetric("approximate-profile"), profile)
    assert agree(Definition.approximate(epsilon, delta), by_profile)
    by_curve = Definition.by_premetric(OutputPremetric("trade-off"), GaussianCurve(1 + epsilon))
    assert agree(Definition.tradeoff(GaussianCurve(1 + epsilon)), by_curve)
    assert agree(Definition.zcdp(epsilon), Definition.by_premetric(OutputPremetric("normalised-renyi"), epsilon))


@settings(max_examples=40, deadline=None)
@given(pairs, st.floats(0.01, 3))
def test_zcdp_is_renyi_at_every_order(pair, rho):
    laws = as_laws(pair)
    orders = 1 + np.geomspace(1e-5, 1e3, 60)
    worst = max(renyi(*order, alpha) / alpha for order in (laws, laws[::-1]) for alpha in orders)
    if abs(worst - rho) > 1e-3 * rho:
        assert Definition.zcdp(rho).satisfied(*laws) == (worst < rho)
    alpha = 2.5
    assert Definition.renyi(alpha, rho).satisfied(*laws) == (max(renyi(*laws, alpha), renyi(*laws[::-1], alpha)) <= rho)


# -- the paper's examples ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "two", "one"), [(0.5, 0.3874556, 0.6224593), (1, 0.5344466, 0.7310586),
                                                     (2, 0.7758035, 0.8807971)])  # fmt: skip
def test_example_4_9_forgetting_one_of_two_responses_raises_the_tail(epsilon, two, one):
    # Reference, section 6.4.
    both = response(epsilon).and_then(response(epsilon))
    odds = math.exp(epsilon)
    assert both.rows[0] == pytest.approx(np.array([odds**2, odds, odds, 1]) / (1 + odds) ** 2)
    first = both.then({f"({a}, {b})": {a: 1} for a in "01" for b in "01"})
    nothing = both.then({f"({a}, {b})": {"1": 1} for a in "01" for b in "01"})
    tail = Definition.probabilistic(epsilon / 2, two + 1e-6)
    assert tail.price(both.rows) == pytest.approx(two, abs=5e-8)
    assert tail.price(first.rows) == pytest.approx(one, abs=5e-8)
    assert tail.price(nothing.rows) == 0
    assert tail.satisfied(*both.rows)
    assert tail.breaks(first.rows)
    # None of the three is anything to pure differential privacy.
    assert all(Definition.pure(2 * epsilon).satisfied(*made.rows) for made in (both, first, nothing))
    # The delta of pbdp foresees this, and what a coin tossed after the response would do.
    foreseen = pure_to_pbdp_delta(epsilon, epsilon / 2)
    assert foreseen > one
    assert Definition.pbdp(epsilon / 2, foreseen).price(first.rows) == pytest.approx(foreseen)
    assert Definition.pbdp(epsilon / 2, foreseen).breaks(both.rows)


def test_example_5_8_one_point_of_pbdp_is_not_convex():
    # Reference, section 6.5.
    most, least = math.e / (1 + math.e), 1 / (1 + math.e)
    first = FiniteMechanism.of({"D1": {"2": most, "-2": least}, "D2": {"2": least, "-2": most}})
    second = FiniteMechanism.of({"D1": {"0": 1}, "D2": {"1": 0.01, "0": 0.99}})
    pbdp = Definition.pbdp(1.01, 0.02)
    level = math.exp(-1.01) * 0.02
    assert level == pytest.approx(0.0072843796, abs=5e-11)
    assert pbdp.satisfied(*first.rows)
    assert pbdp.satisfied(*second.rows)
    assert pbdp.price(second.rows) == pytest.approx(0.99 * level + 0.01)
    assert pbdp.price(second.rows) == pytest.approx(0.0172115, abs=5e-8)
    assert level / 0.99 == pytest.approx(0.0073580, abs=5e-8)
    halves = np.hstack([first.rows / 2, second.rows / 2])
    mixture = FiniteMechanism(first.datasets, first.outputs + second.outputs, halves)
    assert pbdp.breaks(mixture.rows)
    test = mixture.then({"1": {"yes": 1}, "-2": {"yes": 0.05, "no": 0.95}, "2": {"no": 1}, "0": {"no": 1}})
    assert test.law("D1")["yes"] == pytest.approx(0.0067235355, abs=5e-11)
    assert test.law("D2")["yes"] == pytest.approx(0.0232764645, abs=5e-11)
    assert pbdp.breaks(test.rows)


@pytest.mark.parametrize("epsilon", [0.3, 1, 2])
def test_theorem_a_1_pure_is_pbdp_at_every_delta(epsilon):
    # Reference, section 6.9: and a smaller epsilon fails below a delta that is known.
    laws = response(epsilon).rows
    for delta in (1e-6, 1e-3, 0.1, 0.5, 0.9, 1):
        assert Definition.pbdp(epsilon, delta).satisfied(*laws)
    for part in (0.2, 0.5, 0.9):
        smaller = part * epsilon
        edge_at = math.exp(smaller) * math.expm1(epsilon) / math.expm1(epsilon + smaller)
        assert edge_at == pytest.approx(pure_to_pbdp_delta(epsilon, smaller))
        assert Definition.pbdp(smaller, min(1, edge_at * (1 + 1e-9))).satisfied(*laws)
        assert Definition.pbdp(smaller, edge_at * (1 - 1e-6)).breaks(laws)


# -- levels and powers ---------------------------------------------------------------------------------------


CLOSED = [
    (Definition.pure(1), pure_power(1).power),
    (Definition.pure(0), lambda levels: levels),
    (Definition.approximate(0.5, 0.1), approximate_power(0.5, 0.1).power),
    (Definition.approximate(0.5, 0), pure_power(0.5).power),
    (Definition.renyi(2, 1), RenyiCurve(((2, 1),)).power),
    (Definition.renyi(1, 0.3), RenyiCurve(((1, 0.3),)).power),
    (Definition.zcdp(0.5), ZcdpCurve(0.5).power),
    (Definition.tradeoff(GaussianCurve(1.5)), GaussianCurve(1.5).power),
    (Definition.total_variation(0.3), lambda levels: np.minimum(1, levels + 0.3)),
]


@pytest.mark.parametrize(("definition", "power"), CLOSED, ids=[definition.name for definition, _ in CLOSED])
def test_the_greatest_power_is_that_of_the_definitions_curve(definition, power):
    assert level_power(definition, LEVELS) == pytest.approx(np.asarray(power(LEVELS)), rel=1e-7, abs=1e-12)


def test_theorem_6_4_the_greatest_power_is_concave():
    for definition, _ in CLOSED:
        assert np.all(np.diff(level_power(definition, np.linspace(0, 1, 21)), n=2) <= 1e-9)


def test_tables_1_and_2_are_reproduced():
    # Reference, sections 3.1 and 3.2, with the misprints mended.
    levels = [0.01, 0.05, 0.1]
    assert level_power(Definition.pure(0.5), levels) == pytest.approx([0.016487, 0.082436, 0.164872], abs=5e-7)
    # The reference looks at orders from 1.0001 on; the limit at order 1 binds by 3e-5.
    assert level_power(Definition.zcdp(2.63), levels) == pytest.approx([0.698160, 0.946615, 0.962346], abs=4e-5)


def test_the_greatest_power_of_one_point_of_pbdp_has_a_known_kink():
    # A coin below the level e^-epsilon delta is a test there once it also says yes to some of the no's.
    epsilon, delta = 1.01, 0.02
    at = math.exp(-epsilon) * delta
    expected = [(delta - at) / (1 - at), delta, math.exp(epsilon) * 0.05]
    assert level_power(Definition.pbdp(epsilon, delta), [0, at, 0.05]) == pytest.approx(expected)


@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.1, 2),
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.lists(st.floats(0, 1), min_size=8, max_size=8),
)
def test_theorem_6_5_being_unsure_of_everybody_else_gains_nothing(epsilon, unsure, yes):
    # Three people respond, the first is Jessie; the others' records are drawn from any law F, dependent or not.
    mechanism = response(epsilon, respondents=3)
    chances = np.array(unsure) / sum(unsure)
    test = np.array(yes)  # the chance of a yes after each output
    laws = mechanism.rows @ np.column_stack([test, 1 - test])
    by_record = laws[:, 0].reshape(2, 4)  # Jessie's answer is the first letter of a dataset's name
    assert mechanism.datasets[:4] == ("000", "001", "010", "011")
    levels, powers = by_record
    level, power = chances @ levels, chances @ powers
    pointwise = level_power(Definition.pure(epsilon), levels)
    assert np.all(powers <= pointwise * (1 + 1e-12))
    compound = level_power(Definition.pure(epsilon), level)
    assert power <= chances @ pointwise * (1 + 1e-12) <= compound * (1 + 1e-9)


def test_a_definition_that_holds_in_two_places_has_its_greater_power_found():
    # Powers around one half are forbidden, larger ones allowed again.
    odd = Definition("odd", lambda p, q: not 0.4 < q[0] < 0.6, symmetric=False)
    assert float(level_power(odd, 0.1)) == 1
    capped = Definition("capped", lambda p, q: q[0] <= 0.3 or 0.6 < q[0] < 0.7, symmetric=False)
    assert float(level_power(capped, 0.1)) == pytest.approx(0.7)
    assert np.isnan(level_power(Definition("never", lambda p, q: False), [0, 0.5])).all()


def test_the_edge_is_where_laws_stop_to_hold():
    laws = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    found = edge(Definition.total_variation(0.1), laws)
    assert found == pytest.approx(np.array([[0.4, 0.3, 0.3], [0.3, 0.3, 0.4]]), abs=1e-7)
    assert found.sum(axis=1) == pytest.approx(1)
    # Beyond the laws themselves, as far as probabilities go.
    assert edge(Definition.total_variation(1), laws) == pytest.approx(np.array([[0.7, 0.3, 0], [0, 0.3, 0.7]]))
    assert edge(Definition.total_variation(1), laws[[0, 0]]) is None


# -- rounding ------------------------------------------------------------------------------------------------


def test_laws_that_fail_by_rounding_do_not_break_a_definition():
    tenth = Definition("a tenth", lambda p, q: bool(np.all(np.abs(p - q) <= 0.1)))
    laws = np.array([[0.4, 0.6], [0.3, 0.7]])
    assert 0.4 - 0.3 > 0.1  # as floats
    assert not tenth.satisfied(*laws)
    assert not tenth.breaks(laws)
    assert tenth.breaks(np.array([[0.4001, 0.5999], [0.3, 0.7]]))
    # So the last digit of a large probability may decide, where the budget is small.
    small, laws = Definition.approximate(0, 1e-12), coin(1e-12, 2e-12) @ np.array([[1, 0, 0], [0, 0.9, 0.1]])
    assert [small.passes(coin(1e-12, 2e-12)), small.passes(laws), small.breaks(laws)] == [True, False, False]
    # A cost above the budget by a part of 1e-12 is within it.
    assert Definition("c", cost=lambda p, q: 1 + 1e-13, budget=1).satisfied([1], [1])
    assert not Definition("c", cost=lambda p, q: 1 + 1e-11, budget=1).satisfied([1], [1])


# -- how definitions are asked -------------------------------------------------------------------------------


def test_both_orders_are_asked_unless_told_otherwise():
    seen = []

    def holds(p, q):
        seen.append((p.tolist(), q.tolist()))
        return True

    Definition("both", holds).satisfied([0.2, 0.8], [0.5, 0.5])
    assert seen == [([0.2, 0.8], [0.5, 0.5]), ([0.5, 0.5], [0.2, 0.8])]
    seen.clear()
    Definition("one", holds, symmetric=False).satisfied([0.2, 0.8], [0.5, 0.5])
    assert seen == [([0.2, 0.8], [0.5, 0.5])]


def test_outputs_that_cannot_happen_are_not_shown_to_a_definition():
    # Else a sloppy p / q would be 0 / 0 where nothing is.
    sloppy = Definition("sloppy", lambda p, q: bool(np.all(p / q <= 2)))
    assert sloppy.satisfied([0.5, 0.5, 0], [0.4, 0.6, 0])
    assert not sloppy.satisfied([0.5, 0.4, 0.1], [0.4, 0.6, 0])


def test_a_definition_may_spoil_what_it_is_given():
    def spoils(p, q):
        p -= q
        return bool(np.max(np.abs(p)) <= 0.2)

    laws = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert Definition("spoils", spoils).passes(laws)
    assert laws.tolist() == [[0.5, 0.5], [0.4, 0.6]]


def test_without_a_budget_the_smallest_that_lets_laws_hold_is_taken():
    measure = Definition.by_premetric(OutputPremetric("total-variation"))
    assert not measure.bounded
    one, two = coin(0.5, 0.6), coin(0.1, 0.3)
    assert measure.at(one, two).budget == pytest.approx(0.2)
    assert measure.at(coin(0.5, 0.5)) is None
    assert Definition.by_premetric(OutputPremetric()).at(coin(0, 0.5)) is None
    assert Definition.pure(1).at(one) is not None
    assert Definition.pure(1).at(one, coin(0.1, 0.9)) is None


def test_the_definitions_of_the_paper_come_with_what_the_paper_says_of_them():
    assert set(Definition.pure(1).declared) == set(ASKED)
    assert "composition" not in Definition.pbdp(1, 0.1).declared


# -- what is refused -----------------------------------------------------------------------------------------


def yes(p, q):
    return True


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Definition("x"), "either a predicate of two laws or a cost"),
        (lambda: Definition("x", yes, max), "either a predicate of two laws or a cost"),
        (lambda: Definition("x", yes, budget=1), "have a cost that its budget bounds"),
        (lambda: Definition("x", cost=max, budget=math.nan), "budget is nan"),
        (lambda: Definition("x", yes, tolerance=0), "tolerance is 0"),
        (lambda: Definition("x", yes, hints=(math.nan,)), "hint is nan"),
        (lambda: Definition("x", yes, declared={"luck": "much"}), "question to a proposer 'luck'"),
        (lambda: Definition.pure(math.inf), "epsilon is inf"),
        (lambda: Definition.approximate(1, 2), "delta is 2"),
        (lambda: Definition.pbdp(1, 0), "delta is 0.*above 0"),
        (lambda: Definition.by_premetric(OutputPremetric(events="some"), 1), "Cannot evaluate events"),
        (lambda: Definition.by_premetric(OutputPremetric("trade-off"), 1), "is a curve where the output premetric is"),
        (lambda: level_power(Definition.pure(1), 2), "level is below 0, above 1"),
        (lambda: level_power(Definition("x", cost=max), 0.5), "have a budget to hold its cost against"),
        (lambda: Definition("x", yes).price(coin(0, 1)), "have a cost to be asked for it"),
        (lambda: Definition("x", lambda p, q: None).passes(coin(0, 1)), "answer True or False, and answered None on"),
        (lambda: Definition("x", lambda p, q: p > q).passes(coin(0, 1)), "answer True or False, and answered array"),
        (lambda: Definition("x", cost=lambda p, q: "1").price(coin(0, 1)), "must cost a number, and cost '1'"),
        (lambda: Definition("x", cost=lambda p, q: 1 / 0).price(coin(0, 1)), r"raised ZeroDivisionError.*\[0.0, 1.0\]"),
        (lambda: Definition.pure(1).satisfied([0.5, math.nan], [0.5, 0.5]), "negative or not a number"),
        (lambda: Definition.pure(1).satisfied([1.0], [0.5, 0.5]), "1 outputs, the other 2"),
    ],
)
def test_what_makes_no_definition_or_no_laws_is_refused(make, words):
    with pytest.raises(StirredError, match=words):
        make()
