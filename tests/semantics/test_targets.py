"""Targets are read from plain words, and what cannot be meant is refused in words that show what can."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.semantics.targets import (
    BeliefTarget,
    EpsilonTarget,
    ErrorTarget,
    PowerTarget,
    RhoTarget,
    read_target,
    read_targets,
)


def test_a_standard_error_of_a_query_at_a_level():
    found = read_target("error of race * adult at block group <= 5")
    assert isinstance(found, ErrorTarget)
    assert (found.by, found.level, found.standard_error) == (("race", "adult"), "block group", 5)
    assert read_target("error of total at county at most 2.5").by == ()
    assert read_target("error of 'race, adult' at \"in town\" in persons < 1/2").level == "in town"


def test_a_relative_error_is_one_of_a_stated_size():
    found = read_target("typical relative error of total at county in homes <= 1% for 10000 weight 2")
    assert (found.standard_error, found.typical, found.table, found.weight) == (100, True, "homes", 2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("power at 5% <= 20%", PowerTarget("", Fraction(1, 20), Fraction(1, 5))),
        ("power at 0.05 below .2", PowerTarget("", Fraction(1, 20), Fraction(1, 5))),
        ("belief from 1% <= 5%", BeliefTarget("", Fraction(1, 100), Fraction(1, 20))),
        ("belief from 1% <= 5% except 0", BeliefTarget("", Fraction(1, 100), Fraction(1, 20), Fraction(0))),
        ("epsilon ≤ 2", EpsilonTarget("", Fraction(2))),
        ("Epsilon <= 2 at delta 1e-6", EpsilonTarget("", Fraction(2), Fraction(1, 10**6))),
        ("epsilon at delta 1e-6 <= 2", EpsilonTarget("", Fraction(2), Fraction(1, 10**6))),
        ("rho under 1/3", RhoTarget("", Fraction(1, 3))),
    ],
)
def test_limits_on_the_guarantee(text, found):
    read = read_target(text)
    assert type(read) is type(found)
    assert {**vars(read), "text": ""} == vars(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no limit"),
        ("power at 5%", "it has no limit"),
        ("<= 5", "write 'error of QUERY at LEVEL"),
        ("error of race at tract <=", "write 'error of QUERY at LEVEL"),
        ("power at 5% <= 2%", "the limit must be above 0.05"),
        ("power at 0% <= 2%", "the limit must be above"),
        ("belief from 10% <= 5%", "a belief is at least its prior"),
        ("belief from 10% <= 100%", "below 100%"),
        ("belief from 1% <= 5% except 2", "must be a probability"),
        ("power from 5% <= 20%", "write 'power at 5% <= 20%'"),
        ("epsilon of it <= 2", "write 'epsilon <= 2'"),
        ("epsilon <= 0", "must be above 0"),
        ("epsilon <= 2 at delta 2", "delta between 0 and 1"),
        ("rho at 5 <= 2", "write 'rho <= 1'"),
        ("rho <= -1", "must be above 0"),
        ("rho <= 1 2", "not understood after the limit"),
        ("rho <= two", "'two' is not a number"),
        ("rho <= 1/0", "is not a number"),
        ("error of at tract <= 5", "write 'error of QUERY"),
        ("error race <= 5", "write 'error of QUERY"),
        ("error of race at tract <= 0", "must be above 0"),
        ("error of race at tract <= 1 weight 0", "must be above 0"),
        ("error of race,,adult at tract <= 5", "a name between two commas"),
        ("error of race at tract <= 5 for 100", "a relative error is one of a stated size"),
        ("relative error of race at tract <= 5%", "a relative error is one of a stated size"),
        ("error of race at tract <= 5 except 1%", "'except' does not belong"),
        ("power at 5% <= 20% weight 2", "'weight' does not belong"),
        ("error of 'race at tract <= 5", "a quotation mark is not closed"),
    ],
)
def test_targets_that_cannot_be_read_are_refused(text, words):
    with pytest.raises(StirredError) as refused:
        read_target(text)
    assert refused.value.kind == "bad-target"
    assert words in refused.value.problem and "stirred docs calibrate" in refused.value.remedy


def test_at_least_one_target_is_needed_and_none_twice():
    with pytest.raises(StirredError) as refused:
        read_targets([])
    assert refused.value.kind == "no-targets"
    with pytest.raises(StirredError, match="it is given twice"):
        read_targets(["power at 5% <= 20%", "power at 0.05 < 0.2"])
    assert len(read_targets("rho <= 1")) == 1
