"""Budgets that keep limits agree with closed forms, and a little more would not keep them."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from scipy.stats import norm

import stirred
from stirred.errors import StirredError
from stirred.loss import ZcdpCurve, zcdp_to_approximate
from stirred.semantics.budgets_for_targets import (
    calibrate_number,
    greatest_budget,
    rounded_down,
    rounded_up,
    value_of,
)
from stirred.semantics.targets import read_targets
from stirred.spec import flavors


def budget(what: str, *targets: str) -> Fraction:
    return Fraction(calibrate_number(what, read_targets(targets)).fields["budget"])


def test_power_under_pure_differential_privacy_is_the_closed_form():
    for level, most in ((0.05, 0.2), (0.01, 0.5), (0.1, 0.95)):
        exact = max(math.log(most / level), math.log((1 - level) / (1 - most)))
        assert 0.999 * exact <= float(budget("epsilon", f"power at {level} <= {most}")) <= exact


def test_power_of_gaussian_noise_is_the_closed_form():
    fields = calibrate_number("rho", read_targets("power at 5% <= 20%")).fields
    exact = (norm.ppf(0.2) - norm.ppf(0.05)) ** 2 / 2
    assert 0.999 * exact <= float(Fraction(fields["budget_with_gaussian_noise"])) <= exact
    assert Fraction(fields["budget"]) < Fraction(fields["budget_with_gaussian_noise"])


def test_a_belief_under_pure_differential_privacy_is_a_difference_of_log_odds():
    exact = math.log(0.05 / 0.95) - math.log(0.01 / 0.99)
    assert 0.999 * exact <= float(budget("epsilon", "belief from 1% <= 5%")) <= exact
    assert 0.999 * exact <= float(budget("epsilon", "belief from 1% <= 5% except 0")) <= exact


@pytest.mark.parametrize(
    "targets",
    [
        ("power at 5% <= 20%",),
        ("belief from 1% <= 5%",),
        ("belief from 50% <= 90% except 1/1000", "power at 1% <= 30%"),
        ("epsilon <= 2 at delta 1e-6",),
    ],
)
def test_the_rho_found_keeps_the_targets_and_one_that_is_a_little_greater_does_not(targets):
    asked = read_targets(targets)
    found = greatest_budget(lambda rho: flavors.zcdp().at(rho), asked)
    for factor, kept in ((1, True), (Fraction(1003, 1000), False)):
        stated = flavors.zcdp().at(found * factor)
        assert all(value_of(one, stated) <= float(one.most) for one in asked) is kept


def test_numbers_are_those_of_the_functions_they_invert():
    rho = budget("rho", "power at 5% <= 20%")
    assert float(ZcdpCurve(float(rho)).power(0.05)) <= 0.2 < float(ZcdpCurve(float(rho) * 1.001).power(0.05))
    rho = budget("rho", "epsilon <= 3 at delta 1e-10")
    assert zcdp_to_approximate(float(rho), 1e-10, "tight") <= 3
    assert budget("rho", "rho <= 1/3") == Fraction(1, 3) and float(budget("epsilon", "epsilon <= 2.345678")) == 2.345678


def test_a_value_in_use_is_compared_with_what_is_found():
    found = calibrate_number("rho=2.63", read_targets("power at 5% <= 20%"))
    assert "The rho in use is 2.63" in str(found) and "11.9 times as much" in str(found)
    assert round(found.targets[0].before, 4) == 0.9466
    assert "keeps the target already" in str(calibrate_number("rho=0.1", read_targets("power at 5% <= 20%")))
    fields = json.loads(found.to_json())
    assert fields["stirred_calibration"] == 1 and fields["confidential"] is False and fields["all_met"] is True
    assert {one["what"]: one["before"] for one in fields["changes"]}["epsilon at delta 1e-10"] == pytest.approx(
        17.43, 1e-3
    )


def test_other_blocks_are_kept():
    assert budget("epsilon,delta=1e-6,unit=household", "power at 5% <= 20%") < budget("epsilon", "power at 5% <= 20.1%")
    assert stirred.calibrate("epsilon=3", "epsilon <= 2").fields["budget"] == "2"


def test_what_cannot_be_asked_of_a_number_is_refused():
    for what, target, kind in (
        ("rho", "error of race at tract <= 5", "target-not-for"),
        ("rho", "belief from 1% <= 5% except 0", "target-out-of-reach"),
        ("mu", "power at 5% <= 20%", "calibration-option"),
        ("rho=0", "power at 5% <= 20%", "calibration-option"),
    ):
        with pytest.raises(StirredError) as refused:
            calibrate_number(what, read_targets(target))
        assert refused.value.kind == kind, refused.value
    with pytest.raises(StirredError, match="--goal does not apply"):
        stirred.calibrate("rho", "rho <= 1", goal="sum")


@pytest.mark.parametrize(
    "value", [Fraction(2, 3), Fraction(12345678), Fraction(1, 7000), Fraction(1), Fraction(9999, 10)]
)
def test_rounding_goes_the_safe_way_by_less_than_a_thousandth(value):
    assert rounded_down(value) <= value <= rounded_up(value)
    assert rounded_up(value) - rounded_down(value) <= value / 1000
    assert rounded_down(Fraction(1, 4)) == rounded_up(Fraction(1, 4)) == Fraction(1, 4)
