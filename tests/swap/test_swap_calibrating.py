"""Swap rates that keep limits: the theorem's range, the swap's own power, beliefs and expected errors."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

import stirred
from stirred.errors import StirredError
from stirred.loss.curves.swap_curves import swap_power_curve, swap_power_curve_up_to
from stirred.swap.law import theorem
from stirred.swap.plan.fields import SwapPlan

ROWS = 120


def rows() -> pl.DataFrame:
    """Four strata of thirty."""
    return pl.DataFrame(
        {
            "size": [str(1 + i % 4) for i in range(ROWS)],
            "county": ["abc"[i // 4 % 3] for i in range(ROWS)],
            "tenure": [("owned", "rented", "free")[i // 5 % 3] for i in range(ROWS)],
        }
    )


def plan(**fields) -> SwapPlan:
    chosen = {
        "match": ["size"],
        "swap": ["county"],
        "hold": ["tenure"],
        "rate": 0.05,
        "chosen_from": "public",
        **fields,
    }
    return SwapPlan(**chosen)


def found(*targets: str, data=None, **options):
    return stirred.calibrate(plan(), list(targets), rows() if data is None else data, **options)


def refused(kind: str, *targets: str, of: SwapPlan | None = None, **options) -> str:
    with pytest.raises(StirredError) as error:
        stirred.calibrate(of or plan(), list(targets), rows(), **options)
    assert error.value.kind == kind, error.value
    return str(error.value)


@pytest.mark.parametrize("largest", [2, 10, 30, 264_331])
@pytest.mark.parametrize("above", [0.01, 0.5, 3.0])
def test_rates_for_an_epsilon_are_those_of_the_theorem(largest, above):
    wanted = round(theorem.smallest_epsilon(largest) + above, 3)
    fields = stirred.calibrate(plan(), f"epsilon <= {wanted}", largest_stratum=largest).fields
    low, high = Fraction(fields["lowest_rate"]), Fraction(fields["highest_rate"])
    exact = theorem.rates_for(wanted, largest)
    assert float(low) == pytest.approx(exact[0], rel=1e-3) and float(low) >= exact[0] * (1 - 1e-12)
    assert 1 - float(high) == pytest.approx(1 - exact[1], rel=1e-3) and float(high) <= exact[1]
    assert max(theorem.epsilon(largest, rate) for rate in (low, high)) <= wanted


def test_a_typed_stratum_reads_no_data_and_is_public():
    missing = plan(input={"path": "there-is-no-such-file.csv"})
    told = stirred.calibrate(missing, "epsilon <= 5", largest_stratum=30)
    assert not told.confidential and told.plan.chosen_from == "public" and "chosen_from" not in told.paste
    counted = found("epsilon <= 5")
    assert counted.confidential and str(counted).startswith("CONFIDENTIAL")
    assert counted.plan.chosen_from == "this data" and 'chosen_from = "this data"' in counted.paste
    assert counted.fields["rate"] == told.fields["rate"] and counted.plan.rate == Fraction(counted.fields["rate"])
    assert "voids the guarantee" in " ".join(str(counted).split())


def test_the_power_is_that_of_the_swap_itself_and_the_rate_is_the_lowest_that_keeps_it():
    told = found("power at 5% <= 20%")
    rate = Fraction(told.fields["rate"])
    assert (
        float(swap_power_curve(30, rate).power(0.05)) <= 0.2 < float(swap_power_curve(30, rate * 99 / 100).power(0.05))
    )
    assert told.targets[0].before == pytest.approx(float(swap_power_curve(30, Fraction(1, 20)).power(0.05)))
    for between in (0.25, 0.5, 0.75):
        high = Fraction(told.fields["highest_rate"])
        assert float(swap_power_curve(30, rate + (high - rate) * Fraction(between)).power(0.05)) <= 0.2


def test_without_the_sizes_of_strata_every_size_up_to_the_largest_counts():
    told = stirred.calibrate(plan(), "power at 5% <= 60%", largest_stratum=10)
    rate = Fraction(told.fields["rate"])
    assert float(swap_power_curve_up_to(10, rate).power(0.05)) <= 0.6
    assert "up to 10 records" in str(told)
    said = refused("target-out-of-reach", "power at 5% <= 20%", largest_stratum=1000)
    assert "no rate serves small and large ones at once" in said


def test_a_belief_is_kept_too():
    told = found("belief from 1% <= 5%")
    assert told.targets[0].met and 0.049 < told.targets[0].after <= 0.05


def test_the_error_of_a_table_gives_the_highest_rate():
    told = found("error of county,tenure <= 3%")
    assert (
        told.targets[0].met
        and 0.029 < told.targets[0].after <= 0.03
        and told.fields["rate"] == told.fields["highest_rate"]
    )
    table = stirred.check(told.plan, rows(), tables=[["county", "tenure"]]).tables[0]
    assert table.expected_mape == pytest.approx(told.targets[0].after)
    assert "keep the errors that are asked for" in str(told)
    assert found("error of size,tenure <= 1%").targets[0].after == 0  # kept exactly


def test_privacy_and_error_together_give_a_rate_or_a_no():
    told = found("epsilon <= 6", "error of county,tenure <= 30%")
    assert all(one.met for one in told.targets)
    assert Fraction(told.fields["lowest_rate"]) == Fraction(told.fields["rate"]) < Fraction(told.fields["highest_rate"])
    assert "does not hold" in refused("targets-disagree", "epsilon <= 5", "error of county,tenure <= 0.1%")


def test_what_no_rate_reaches_is_said_with_what_one_can():
    said = refused("target-out-of-reach", "epsilon <= 0.1")
    assert "no rate has an epsilon below 1.72" in said
    assert "Raise the limit." in said and "keeping more exactly: that is not better privacy" in said


def test_rates_by_rule_are_told_the_range_that_all_must_lie_in():
    ruled = plan(rate=None, rates=[{"where": {"size": ["1"]}, "rate": "1/2"}, {"otherwise": True, "rate": "1/10"}])
    told = stirred.calibrate(ruled, "epsilon <= 6", rows())
    assert told.plan is None and "Every rate of the plan from" in str(told)
    refused("target-not-for", "power at 5% <= 20%", of=ruled)


@pytest.mark.parametrize(
    ("target", "options", "kind"),
    [
        ("rho <= 1", {}, "target-not-for"),
        ("epsilon <= 5 at delta 1e-6", {}, "bad-target"),
        ("error of county at tract <= 5", {}, "bad-target"),
        ("relative error of county <= 1% for 500", {}, "bad-target"),
        ("error of county,tenure <= 3%", {"largest_stratum": 30}, "calibration-option"),
        ("epsilon <= 5", {"largest_stratum": 1}, "calibration-option"),
        ("error of moon <= 3%", {}, "table-column"),
    ],
)
def test_what_cannot_be_asked_of_a_swap_is_refused(target, options, kind):
    refused(kind, target, **options)


def test_a_file_that_no_swap_changes_has_no_rate():
    same = rows().with_columns(pl.lit("owned").alias("tenure"))
    with pytest.raises(StirredError, match="no stratum of this file has two records"):
        stirred.calibrate(plan(), "epsilon <= 5", same)
