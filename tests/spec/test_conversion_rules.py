"""Conversions by randomised response: what `implies` answers with them, and at which distances they hold."""

import math
from dataclasses import replace

import pytest

from stirred.loss import pure_to_total_variation, pure_to_zcdp, zcdp_to_total_variation
from stirred.spec import InputPremetric, OutputPremetric, flavors


def test_implies_answers_by_randomised_response_where_it_said_unknown():
    pure = flavors.pure("person")
    assert pure.at(4).implies(flavors.zcdp("person").at("3.8562"))
    assert pure.at(4).implies(flavors.zcdp("person").at("3.856")).verdict == "unknown"
    assert pure.at(1).implies(flavors.renyi(2, "person").at("0.7354"))
    assert pure.at(1).implies(flavors.renyi(2, "person").at("0.7353")).verdict == "unknown"
    varied = flavors.flavor(OutputPremetric("total-variation"))
    assert flavors.zcdp("person").at("2.63").implies(varied.at("0.8984"))
    assert flavors.zcdp("person").at("2.63").implies(varied.at("0.8983")).verdict == "unknown"
    assert pure.at(4).implies(varied.at("0.9641"))


def test_randomised_response_is_the_worst_case_only_where_no_two_datasets_are_closer_than_one():
    half = InputPremetric(unit="person", scale="1/2")
    pure, concentrated = (
        replace(one, input_premetric=half) for one in (flavors.pure("person"), flavors.zcdp("person"))
    )
    # At distance 1/2 the laws of randomised response at epsilon = 2 have rho = 2 tanh(1), and 3.857 / 4 is less.
    assert pure.at(4).implies(concentrated.at(8))
    assert pure.at(4).implies(concentrated.at("7.99")).verdict == "unknown"
    assert 2 * math.tanh(1) > 3.857 / 4


@pytest.mark.parametrize("distance", [1, 2, 3, 10])
def test_a_conversion_between_neighbours_holds_at_every_larger_distance(distance):
    for epsilon in (0.01, 0.3, 1.0, 4.0, 20.0):
        assert pure_to_zcdp(epsilon * distance) <= distance**2 * pure_to_zcdp(epsilon)
        assert pure_to_total_variation(epsilon * distance) <= distance * pure_to_total_variation(epsilon)
        assert zcdp_to_total_variation(epsilon * distance**2) <= distance * zcdp_to_total_variation(epsilon)


def test_the_budgets_of_an_answer_are_shown_in_the_order_that_they_have():
    said = str(flavors.pure("person").at(4).implies(flavors.zcdp("person").at("3.857")))
    assert "the budget 3.857 is at most 3.857" in said
    zcdp = flavors.zcdp("person")
    assert "the budget 1.000101 is above 1.0001" in str(zcdp.at("1.000101").implies(zcdp.at("1.0001")))
