"""The rule for weights: exact against fractions, record by record, within the bounds it states, refused by name."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stirred.errors import SurveyError
from stirred.survey import WeightRule

BIG = 2**63 - 1
SECRET = 7731077


def by_hand(rule: WeightRule, weight: Fraction) -> Fraction | str:
    """The rule as its definition reads, one weight at a time; or the name of the error."""
    if weight <= 0:
        return "weight-not-positive"
    if not rule.lower <= weight <= rule.upper:
        if rule.outside == "refuse":
            return "weight-outside"
        weight = rule.lower if weight < rule.lower else rule.upper
    weight = weight + rule.shrink * ((rule.centre or 0) - weight)
    below = math.floor(weight / rule.step)
    rest = weight / rule.step - below
    if rest and rule.rounding == "refuse":
        return "weight-off-lattice"
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2)
    return (below + bool(up)) * rule.step


@st.composite
def rules(draw) -> WeightRule:
    step = draw(st.fractions(Fraction(1, 1000), 5, max_denominator=1000))
    low = draw(st.integers(1, 500))
    high = low + draw(st.integers(0, 10**6))
    shrink = draw(st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(1, 3), Fraction("0.85")]))
    centre = step * draw(st.fractions(low, high, max_denominator=7)) if shrink else None
    outside = draw(st.sampled_from(["cut", "refuse"]))
    rounding = "nearest" if shrink else draw(st.sampled_from(["nearest", "refuse"]))
    return WeightRule(low * step, high * step, step, outside, rounding, shrink, centre)


@given(rules(), st.sampled_from([1, 2, 3, 100, 1000, 4096, 10**12]), st.data())
def test_weights_after_the_rule_are_those_of_the_definition_exactly(rule, scale, data):
    most = min(math.ceil(rule.upper * scale) + 3, BIG)
    near = [math.floor(end * scale) + k for end in (rule.lower, rule.upper) for k in (-1, 0, 1)]
    halves = st.integers(0, 2 * 10**6).map(lambda k: math.floor(k * rule.step * scale / 2))  # many ties
    some = st.one_of(st.integers(1, most), st.sampled_from(near), halves).filter(lambda k: abs(k) < BIG)
    given_weights = data.draw(st.lists(some, max_size=30))
    wanted = [by_hand(rule, Fraction(one, scale)) for one in given_weights]
    names = {one for one in wanted if isinstance(one, str)}
    if names:
        with pytest.raises(SurveyError) as refused:
            rule.apply(np.array(given_weights), scale)
        assert refused.value.kind in names
        return
    found = rule.apply(np.array(given_weights, np.int64), scale)
    assert found.dtype == np.int64
    assert [int(one) * rule.step for one in found] == wanted
    assert all(rule.after.low <= one <= rule.after.high for one in wanted)


@given(rules())
def test_the_stated_bounds_are_those_of_the_bounds_after_the_rule(rule):
    ends = [by_hand(rule, end) for end in (rule.lower, rule.upper)]
    assert list(rule.after.ends) == ends
    assert [one * rule.step for one in rule.multiples] == ends and ends[0] > 0


@given(rules(), st.lists(st.integers(1, 10**6), min_size=2, max_size=9), st.integers(0, 8), st.integers(1, 10**6))
def test_a_changed_record_changes_its_own_weight_only(rule, weights, at, other):
    assume(rule.outside == "cut" and rule.rounding == "nearest")
    at %= len(weights)
    changed = [*weights[:at], other, *weights[at + 1 :]]
    first, second = (rule.apply(np.array(one), 10) for one in (weights, changed))
    assert np.flatnonzero(first != second).tolist() in ([], [at])


def test_ties_go_to_the_even_multiple():
    rule = WeightRule(1, 9, 1, rounding="nearest")
    assert rule.apply([15, 25, 35, 26, 24], 10).tolist() == [2, 2, 4, 3, 2]


def test_weights_too_fine_for_64_bits_are_as_exact_as_others():
    rule = WeightRule(1, 10**6, "0.01", "cut", "nearest", Fraction(1, 999_999_937), Fraction("31.41592653589793"))
    weights = [10**15 + 5 * 10**9, 10**15 + 5 * 10**9 + 1, 9 * 10**18, 1, 10**12]
    found = rule.apply(np.array(weights), 10**12)
    assert [int(one) * rule.step for one in found] == [by_hand(rule, Fraction(one, 10**12)) for one in weights]


def test_equal_weights_are_the_end_of_shrinking():
    rule = WeightRule(1, 900, "0.1", "cut", "nearest", 1, Fraction(1000, 7))
    assert rule.apply([1, 5000, 90000], 10).tolist() == [1429] * 3
    assert rule.after.low == rule.after.high == Fraction("142.9")
    assert "Each weight is then 1000/7, whatever it was." in str(rule)


def test_no_records_and_small_types_are_fine():
    rule = WeightRule(1, 200, 1)
    assert rule.apply([], 1).tolist() == []
    for kind in (np.uint8, np.int16, np.uint64):
        assert rule.apply(np.array([1, 200], kind), 1).tolist() == [1, 200]


REFUSED = [
    ([1, 0], "weight-not-positive", "1 records have a weight of 0 or less"),
    ([-SECRET, -1], "weight-not-positive", "2 records"),
    ([SECRET, 20, 30], "weight-outside", "1 records have a weight outside the bounds 0.5 to 50 of the rule"),
    ([21, 31, 25], "weight-off-lattice", "2 records have a weight that is no whole multiple of 0.5. State"),
    ([1.5, 2], "weights-not-whole", "a float is not the decimal"),
    ([float("nan")], "weights-not-whole", "not whole numbers"),
    (["12"], "weights-not-whole", "not whole numbers"),
    ([True, False], "weights-not-whole", "not whole numbers"),
    ([None, 1], "weights-not-whole", "not whole numbers"),
    ([[1, 2], [3, 4]], "weights-not-whole", "one number for each record"),
    ([[1, 2], [3]], "weights-not-whole", "not an array"),
    ([2**70], "weights-not-whole", "not whole numbers of at most 64 bits"),
    ([2**64 - 1], "weights-not-whole", "larger than 64 bits"),
]


@pytest.mark.parametrize(("weights", "kind", "words"), REFUSED, ids=[str(one[0])[:20] for one in REFUSED])
def test_weights_that_cannot_be_used_are_refused_by_name_and_never_quoted(weights, kind, words):
    with pytest.raises(SurveyError, match=words) as refused:
        WeightRule("0.5", 50, "0.5").apply(weights, 10)
    assert refused.value.kind == kind
    assert str(SECRET) not in str(refused.value)


def test_missing_weights_are_refused_whatever_stands_in_their_place():
    rule = WeightRule(1, 5, 1, "cut")
    with pytest.raises(SurveyError, match="2 records have no weight") as refused:
        rule.apply([1, -9, SECRET], 1, [False, True, True])
    assert refused.value.kind == "weight-missing"
    assert rule.apply([1, 9], 1, [False, False]).tolist() == [1, 5]
    for mask in ([False], [0, 1], "no"):
        with pytest.raises(SurveyError, match="do not fit the mask"):
            rule.apply([1, 9], 1, mask)
    for scale in (0, -1, 2.0, True, None):
        with pytest.raises(SurveyError, match="scale"):
            rule.apply([1, 9], scale)


BAD_RULES = [
    ({"lower": None}, "survey-bounds", "the lower bound of weights"),
    ({"upper": None}, "survey-bounds", "the upper bound of weights"),
    ({"lower": 0}, "weight-rule", "lower bound is not positive"),
    ({"lower": 51}, "weight-rule", "above the upper one"),
    ({"step": 0}, "weight-rule", "step is not positive"),
    ({"step": "x"}, "survey-fact", "step of weights"),
    ({"step": 3}, "weight-rule", "bound 1 is no whole multiple of the step 3"),
    ({"upper": "50.5"}, "weight-rule", "bound 50.5 is no"),
    ({"upper": 2**62}, "weight-rule", "2\\^62 steps"),
    ({"upper": float("inf")}, "survey-fact", "finite"),
    ({"outside": "drop"}, "weight-rule", "one of refuse, cut"),
    ({"rounding": "up"}, "weight-rule", "one of refuse, nearest"),
    ({"shrink": "1/2"}, "weight-rule", "names none"),
    ({"shrink": 2, "centre": 3}, "weight-rule", "between 0 and 1"),
    ({"shrink": "1/2", "centre": 51}, "weight-rule", "outside its bounds"),
    ({"shrink": "1/3", "centre": 3}, "weight-rule", "where no multiple of the step is"),
]


@pytest.mark.parametrize(("changed", "kind", "words"), BAD_RULES, ids=[str(one[0]) for one in BAD_RULES])
def test_rules_that_cannot_be_used_are_refused_by_name(changed, kind, words):
    with pytest.raises(SurveyError, match=words) as refused:
        WeightRule(**({"lower": 1, "upper": 50, "step": 1} | changed))
    assert refused.value.kind == kind


def test_a_shrunk_weight_off_the_lattice_is_refused_unless_rounded():
    rule = WeightRule(1, 5, 1, shrink="1/2", centre=3)
    assert rule.apply([1, 3, 5], 1).tolist() == [2, 3, 4]
    with pytest.raises(SurveyError, match="multiple of 1 after they are drawn to the centre"):
        rule.apply([2], 1)


def test_effects_count_everything_and_show_nothing():
    rule = WeightRule(2, 5, 1)
    effects = rule.effects([10, 25, 50, 60, 0, -3, 99], 10, [False] * 6 + [True])
    counted = (effects.records, effects.missing, effects.not_positive, effects.below, effects.above)
    assert counted == (7, 1, 2, 1, 1) and effects.off_lattice == 1
    assert "confidential" in repr(effects) and "7" not in repr(effects)
    assert str(effects).startswith("CONFIDENTIAL") and "2 have a weight of 0 or less" in str(effects)
