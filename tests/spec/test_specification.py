"""A specification prints all five blocks, and never a smaller guarantee than the one that holds."""

import json
import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from stirred.spec import Budget, Domain, InputPremetric, Multiverse, OutputPremetric, Specification
from stirred.spec.exact import display, display_down
from stirred.swap.law.theorem import epsilon


def spec(value: float) -> Specification:
    return Specification(
        Domain("who"),
        Multiverse(words="where"),
        InputPremetric(unit="person"),
        OutputPremetric("multiplicative"),
        Budget(value, conversion="by hand"),
        nearest=2,
    )


def test_displays_round_up_where_the_paper_rounds_to_the_nearest():
    value = epsilon(264_331, Fraction(1, 2))
    assert f"{value:.2f}" == "12.48"
    assert display(value) == "12.49"


def test_numbers_that_are_already_round_are_left_alone():
    assert all(display(cents / 100) == f"{cents / 100:.2f}" for cents in range(5000))


@given(st.floats(0, 1e6), st.integers(0, 6))
def test_a_displayed_guarantee_is_never_too_small_and_a_displayed_lower_bound_never_too_large(value, decimals):
    up, down = Fraction(display(value, decimals)), Fraction(display_down(value, decimals))
    assert down <= Fraction(repr(value)) <= up
    assert up - down <= Fraction(1, 10**decimals)


def test_all_five_blocks_and_the_nearest_distance_are_in_the_json():
    fields = json.loads(spec(1.5).to_json())
    assert set(fields) >= {"domain", "multiverse", "input_premetric", "output_premetric", "budget"}
    assert fields["nearest"] == "2"


def test_an_infinite_budget_is_said_in_words_not_in_invalid_json():
    assert json.loads(spec(math.inf).to_json())["budget"]["value"] == "infinity"
    assert "infinite" in str(spec(math.inf))
