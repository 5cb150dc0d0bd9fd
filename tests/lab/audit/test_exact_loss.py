"""Exact losses as they are told: the numbers of the published table, the theorem beside them, text and JSON.

Nothing here is drawn at random, so there are no false alarms.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from stirred.errors import StirredError
from stirred.lab.audit.exact_loss import LEVELS, exact_audit, exact_audit_of, written
from stirred.lab.commands import exact
from stirred.lab.definitions.swap_practices import as_files, as_mechanism, exact_loss, swap_flavor, tables_of
from stirred.loss import swap_power_curve
from stirred.spec import FiniteMechanism, OutputPremetric, flavors
from stirred.spec.order.finite_flavors import explicit
from stirred.spec.order.finite_mechanisms import bernoulli, randomised_response

RATES = ["0.01", "0.05", "0.1", "0.5", "0.9"]
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "stratum_losses.json").read_text(encoding="utf-8"))
QUICK = [case for case in GOLDEN["losses"] if len(case["swapped"]) == 2 and sum(case["held"]) <= 20]
ANSWERS = {"0": "0", "1": "1"}


# -- a stratum -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", QUICK, ids=lambda case: f"{case['held']}x{case['swapped']}")
def test_losses_and_the_theorem_are_those_of_the_published_table(case):
    for rate, loss, theorem in zip(RATES, case["losses"], case["theorem"], strict=True):
        audit = exact_audit(case["held"], case["swapped"], rate)
        assert audit.loss == pytest.approx(loss, abs=6e-7)
        assert audit.promised == pytest.approx(theorem, abs=6e-5)
        assert audit.slack == pytest.approx(theorem - loss, abs=6e-5) and audit.kept


def test_the_worst_output_attains_the_loss():
    audit = exact_audit((3, 2, 2), (4, 3), "0.05")
    likelier, other = audit.worst.chances
    assert math.log(likelier / other) / audit.worst.distance == pytest.approx(audit.loss, rel=1e-12)
    law = audit.as_mechanism()
    assert law.law(audit.worst.first)[audit.worst.output] == pytest.approx(float(likelier), rel=1e-12)
    assert law.law(audit.worst.second)[audit.worst.output] == pytest.approx(float(other), rel=1e-12)


@pytest.mark.parametrize(("held", "swapped"), [((2, 2), (2, 2)), ((2, 2, 1), (3, 2)), ((2, 1, 1), (2, 1, 1))])
def test_the_mechanism_has_the_same_loss_under_the_flavor_of_swaps(held, swapped):
    audit = exact_audit(held, swapped, "0.3")
    files = {
        written(table): [
            {"held": h, "swapped": s} for h, row in enumerate(table) for s, many in enumerate(row) for _ in range(many)
        ]
        for table in audit.laws.tables
    }
    assert audit.as_mechanism().loss(swap_flavor(), files).number == pytest.approx(audit.loss, rel=1e-12)
    assert audit.loss == pytest.approx(exact_loss(tables_of(held, swapped), Fraction(3, 10)).number, rel=1e-12)


def test_the_curve_is_below_that_of_the_worst_file_of_this_size():
    """The nearest tables of any universe are told apart no better than two records of a file where all differ."""
    for held, swapped, rate in [((10, 10), (10, 10), "0.5"), ((5, 5, 1, 1), (5, 5, 1, 1), "0.1")]:
        audit = exact_audit(held, swapped, rate)
        assert audit.worst.distance == 2
        found, bound = audit.worst.curve.power(LEVELS), swap_power_curve(sum(held), rate).power(LEVELS)
        assert all(found < bound + 1e-12)
    assert exact_audit((1, 1), (1, 1), "0.9").worst.curve.power(LEVELS).round(4).tolist() == [0.81, 0.9883, 0.9889]


def test_what_it_teaches_is_told_with_its_numbers():
    few, many = exact_audit((50, 50), (50, 50), "0.05"), exact_audit((5, 5, 1, 1), (5, 5, 1, 1), "0.05")
    assert "True loss:    3.66" in str(few) and "Promised:     7.56 by the theorem" in str(few)
    assert "has 2, and the true loss is 48% of the theorem's epsilon" in " ".join(str(few).split())
    assert "has 4, and the true loss is 98% of the theorem's epsilon" in " ".join(str(many).split())
    for audit in (few, many):
        assert "The theorem's epsilon stays the guarantee" in str(audit)


def test_the_text_names_pair_and_output():
    text = str(exact_audit((10, 10), (10, 10), "0.05"))
    assert "Worst pair:   1 9 / 9 1 and 0 10 / 10 0, 2 apart" in text
    assert "Worst output: 10 0 / 0 10, with probability 3.25e-28 from the first, 2.26e-31 from the second" in text
    assert "power 0.751, 0.791 and 0.841 between these two" in text
    assert max(map(len, text.splitlines())) <= 110


def test_a_stratum_that_cannot_change_loses_nothing():
    audit = exact_audit((7,), (3, 4), "1")
    assert (audit.loss, audit.promised, audit.worst) == (0.0, 0.0, None)
    assert "Only one table has these margins" in str(audit) and "no two datasets are compared" in str(audit)
    assert json.loads(audit.to_json())["worst"] is None


@pytest.mark.parametrize(("totals", "rate"), [((2, 2), "0"), ((1, 1, 1), "1")])
def test_rates_at_the_ends_have_no_finite_loss(totals, rate):
    audit = exact_audit(totals, totals, rate)
    assert audit.loss == audit.promised == math.inf and audit.kept
    assert "True loss:    infinite" in str(audit)
    found = json.loads(audit.to_json())
    assert found["loss"] == found["promised"] == "infinity" and found["slack"] == 0
    assert found["worst"]["probabilities"][1] == "0"


def test_json_holds_what_the_text_says():
    audit = exact_audit((4, 3), (5, 2), 0.1)
    found = json.loads(audit.to_json())
    assert found["loss"] == audit.loss and found["promised"] == audit.promised and found["kept"] is True
    assert found["worst"]["power"] == audit.worst.curve.power(LEVELS).tolist()
    for text, chance in zip(found["worst"]["probabilities"], audit.worst.chances, strict=True):
        assert float(text) == pytest.approx(float(chance), rel=1e-11)
    assert found["teaches"] == list(audit.teaches)


@pytest.mark.slow
def test_probabilities_beyond_floats_make_no_mechanism():
    audit = exact_audit((75, 75), (75, 75), "0.0001")
    assert audit.loss < audit.promised < math.inf
    with pytest.raises(StirredError, match="no probability below 1e-308"):
        audit.as_mechanism()


@pytest.mark.parametrize("rate", ["nothing", None, "1e999999999", float("nan")])
def test_a_rate_that_is_no_number_is_refused(rate):
    with pytest.raises(StirredError, match="between 0 and 1"):
        exact_audit((2, 2), (2, 2), rate)


@pytest.mark.parametrize("rate", ["-0.1", "1.5"])
def test_a_rate_that_is_no_probability_is_refused(rate):
    with pytest.raises(StirredError, match="outside 0 to 1"):
        exact_audit((2, 2), (2, 2), rate)


@pytest.mark.slow
def test_three_by_three_categories_with_24_records():
    """For even margins m of three by three, as the rate falls: (1/2) ln[d(2m) / (d(2m-2) m)] - ln o."""
    audit = exact_audit((8, 8, 8), (8, 8, 8), "0.001")
    assert audit.loss == pytest.approx(math.log(16 * 15 / 8) / 2 + math.log(999), abs=0.005)
    assert audit.loss < audit.promised


# -- any finite mechanism ------------------------------------------------------------------------------------


def test_a_promise_that_is_broken_is_said_to_be_broken():
    kept, broken = (exact_audit_of(randomised_response("1/4"), flavors.local(), ANSWERS, promised=e) for e in (1.1, 1))
    assert kept.loss == broken.loss == pytest.approx(math.log(3), rel=1e-12)
    assert kept.kept and "BROKEN" not in str(kept) and not kept.result.wrong
    assert broken.kept is False and "BROKEN" in str(broken) and broken.result.wrong
    assert broken.result.said == "The promise is broken: the true loss is 1.10 against 1.00."
    assert broken.slack < 0


def test_a_promise_that_is_attained_is_kept():
    assert exact_audit_of(randomised_response("1/4"), flavors.local(), ANSWERS, promised=math.log(3)).kept


def test_a_specification_promises_its_budget():
    listed = explicit(flavors.local(), ANSWERS)
    assert exact_audit_of(randomised_response("1/4"), listed.at(1)).kept is False
    assert exact_audit_of(randomised_response("1/4"), listed).kept is None
    assert "Promised" not in str(exact_audit_of(randomised_response("1/4"), listed))


def test_swaps_by_enumeration_and_by_counts_are_told_alike():
    tables = tables_of((2, 2, 1), (3, 2))
    listed = exact_audit_of(as_mechanism(tables, Fraction(1, 10)), swap_flavor(), as_files(tables))
    counted = exact_audit((2, 2, 1), (3, 2), "0.1")
    assert listed.loss == pytest.approx(counted.loss, rel=1e-12)
    assert listed.worst.distance == counted.worst.distance


def test_an_output_that_only_one_dataset_gives_is_the_worst():
    audit = exact_audit_of(bernoulli({"0": 0.5, "1": 0}), flavors.local(), ANSWERS, promised=3)
    assert audit.loss == math.inf and audit.kept is False and json.loads(audit.to_json())["slack"] == "-infinity"
    assert (audit.worst.first, audit.worst.output, audit.worst.chances) == ("0", "yes", (0.5, 0.0))
    assert audit.as_mechanism() is audit.laws


def test_outputs_that_the_standard_does_not_tell_apart_are_merged():
    told = FiniteMechanism.of({"0": {"a": 0.5, "b": 0.1, "c": 0.4}, "1": {"a": 0.1, "b": 0.4, "c": 0.5}})
    merged = replace(flavors.local(), output_premetric=OutputPremetric(partition=(("a", "b"), ("c",))))
    audit = exact_audit_of(told, merged, ANSWERS)
    assert audit.loss == pytest.approx(math.log(5 / 4)) and audit.worst.output == "c" and "2 outputs" in audit.about
    assert exact_audit_of(told, flavors.local(), ANSWERS).worst.output == "a"


def test_datasets_that_are_not_compared_lose_nothing():
    audit = exact_audit_of(bernoulli({"none": 0.2, "two": 0.9}), flavors.pure("person"), {"none": "0", "two": "00"})
    assert audit.loss == 0 and audit.worst is None


def test_other_standards_are_refused():
    with pytest.raises(StirredError, match="must be one of pure differential privacy"):
        exact_audit_of(bernoulli({"0": 0.2, "1": 0.9}), flavors.zcdp("person"), ANSWERS)


# -- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def run():
    app = typer.Typer()
    app.command()(exact)
    return lambda *words: CliRunner().invoke(app, words)


def test_the_command_prints_text_or_json(run):
    words = ("--held", "4,3", "--swapped", "5, 2", "--rate", "1/10")
    assert run(*words).output == f"{exact_audit((4, 3), (5, 2), '0.1')}\n"
    assert run(*words, "--json").output == exact_audit((4, 3), (5, 2), "0.1").to_json()


def test_the_command_refuses_what_is_no_list_of_numbers(run):
    ended = run("--held", "4,x", "--swapped", "4", "--rate", "0.1")
    assert isinstance(ended.exception, StirredError)
    assert str(ended.exception).startswith("--held must be whole numbers with commas between them, such as 10,10.")
