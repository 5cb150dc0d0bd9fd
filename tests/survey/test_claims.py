"""Amplification is claimed where sampling is part of the mechanism, secret and under control, and nowhere else."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from stirred import errors
from stirred.survey import SETTINGS, SamplingFacts, may_claim
from stirred.survey.design import selections
from stirred.survey.design.amplification import claimable

GOOD = SamplingFacts(
    "frame",
    selections.simple_random(10, 100),
    response="complete",
    membership_secret=True,
    every_output_counted=True,
)


def test_a_secret_sample_from_the_frame_with_complete_response_amplifies():
    claim = may_claim(GOOD)
    assert claim
    assert "Theorem 6.4.1" in str(claim)
    assert any("nobody who is to be kept from learning knows who is in it" in one for one in claim.reasons)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"starts": "target sample"}, "sampling is not part of it"),
        ({"starts": "responding sample"}, "sampling is not part of it"),
        ({"starts": "population"}, "making the frame is part of it"),
        ({"selection": None}, "has not been stated"),
        ({"selection": selections.systematic()}, "no record in common"),
        ({"selection": selections.data_dependent()}, "depends on the data"),
        ({"response": "uncontrolled"}, "who responds is not under control"),
        ({"membership_secret": False}, "nosy neighbour"),
        ({"protects": "sample record"}, "journalist"),
        ({"every_output_counted": False}, "composed before they are amplified"),
    ],
)
def test_one_reason_is_enough_for_no(change, words):
    claim = may_claim(replace(GOOD, **change))
    assert not claim
    assert len(claim.reasons) == 1
    assert words in claim.reasons[0]
    assert "may not be claimed" in str(claim)


def test_table_6_3_steps_that_are_part_of_the_mechanism():
    inside = {
        "population": {"sampling", "response", "frame construction"},
        "frame": {"sampling", "response"},
        "target sample": {"response"},
        "responding sample": set(),
    }
    for start, step in itertools.product(inside, ("frame construction", "sampling", "response")):
        outside = any("is not part of it" in one for one in may_claim(replace(GOOD, starts=start), step).reasons)
        assert outside == (step not in inside[start])


def test_response_amplifies_only_where_the_custodian_draws_it():
    followed_up = replace(GOOD, starts="target sample", response="drawn by the custodian")
    assert may_claim(followed_up, "response")
    assert not may_claim(replace(followed_up, response="uncontrolled"), "response")
    assert "nothing to amplify by" in str(may_claim(replace(followed_up, response="complete"), "response"))


def test_the_making_of_the_frame_never_amplifies():
    for start in ("population", "frame"):
        claim = may_claim(replace(GOOD, starts=start), "frame construction")
        assert not claim
        assert "unknown" in str(claim)


def test_a_mechanism_on_the_population_may_claim_sampling_only_where_one_record_changes_one_of_the_frame():
    assert not may_claim(replace(GOOD, starts="population"))
    assert may_claim(replace(GOOD, starts="population", population_changes_one=True))
    assert not may_claim(replace(GOOD, starts="population", population_changes_one=True), "frame construction")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: str(one.number))
def test_a_setting_is_claimable_where_some_survey_may_claim_sampling(setting):
    """Over every combination of facts; a setting that is not claimable is so for none of them."""
    facts = itertools.product(
        (None, selections.simple_random(10, 100), selections.systematic()),
        ("complete", "drawn by the custodian", "uncontrolled"),
        (False, True),
        ("frame record", "sample record"),
        (False, True),
        (False, True),
    )
    assert claimable(setting)[0] == any(may_claim(SamplingFacts(setting.level, *some)) for some in facts)


def test_nothing_is_claimed_from_facts_that_were_not_stated():
    assert not may_claim(SamplingFacts("frame", selections.simple_random(1, 10)))
    assert len(may_claim(SamplingFacts("frame")).reasons) == 4


@pytest.mark.parametrize(
    "ask",
    [
        lambda: SamplingFacts("sample"),
        lambda: SamplingFacts("frame", response="good"),
        lambda: SamplingFacts("frame", protects="everyone"),
        lambda: may_claim(GOOD, "weighting"),
    ],
)
def test_unknown_words_are_refused(ask):
    with pytest.raises(errors.StirredError, match="Choose one of"):
        ask()
