"""``stirred calibrate`` from its entry point, for each mechanism, for a bare number, and for what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from counting_mechanism import Counting
from stirred import mechanisms
from stirred.topdown import TopDownPlan, preset

ERRORS = ["--target", "error of race at town <= 3", "--target", "error of total at county <= 2"]


@pytest.fixture
def topdown(tmp_path) -> Path:
    """A plan whose confidential table does not exist: only the geography is there."""
    folder = tmp_path / "plans"
    folder.mkdir()
    (folder / "places.csv").write_text("county,town\nA,x\nA,y\nB,z\n")
    plan = preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"], invariants=())
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    fields["spine"]["input"] = {"path": "places.csv"}
    fields["tables"][0]["input"] = {"path": "secret.csv"}
    (folder / "plan.toml").write_text(TopDownPlan(**fields).to_toml())
    return folder / "plan.toml"


@pytest.fixture
def swap(tmp_path) -> Path:
    rows = [f"{size},{county},{tenure}" for size in (1, 2) for county in "xyz" for tenure in "or"]
    (tmp_path / "households.csv").write_text("size,county,tenure\n" + "\n".join(rows * 5) + "\n")
    (tmp_path / "swap.toml").write_text(
        'stirred = 1\nmechanism = "swap"\nunit = "household"\nrate = 0.05\nchosen_from = "public"\nmatch = ["size"]\n'
        'swap = ["county"]\nhold = ["tenure"]\n[input]\npath = "households.csv"\n'
    )
    return tmp_path / "swap.toml"


def test_a_topdown_plan_is_written_with_shares_that_keep_the_targets(topdown, tmp_path, command):
    out = tmp_path / "better.toml"
    ended = command("calibrate", topdown, *ERRORS, "--out", out)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("All targets are kept with rho of") and "For the plan:" in ended.out
    better = TopDownPlan.from_toml(out)
    assert better.rho < 1 and 'path = "plans/places.csv"' in out.read_text()
    again = command("calibrate", out, *ERRORS, "--rho", "plan", "--json")
    assert again.code == 0 and json.loads(again.out)["all_met"] is True
    assert command("calibrate", topdown, *ERRORS, "--out", out).code == 2  # it exists


def test_errors_that_more_than_double_are_warned_of(topdown, command):
    only = ["--target", "error of total at county <= 2"]
    fields = json.loads(command("calibrate", topdown, *only, "--json").out)
    grown = [one["what"] for one in fields["expected_errors"] if one["before"] and one["after"] > 2 * one["before"]]
    printed = " ".join(command("calibrate", topdown, *only).out.split())
    assert grown and "WARNING: more than twice as large as before: error of" in printed
    warned = printed.partition("WARNING")[2].partition("Targets")[0]
    assert sum(f"{what} (" in warned for what in grown) == min(5, len(grown))
    kept = command("calibrate", topdown, "--target", "rho <= 1")
    assert kept.code == 0 and "WARNING" not in kept.out


def test_a_budget_that_is_not_enough_ends_with_one(topdown, command):
    ended = command("calibrate", topdown, *ERRORS, "--rho", "1/100", "--goal", "sum", "--least", "1/1000")
    assert ended.code == 1 and "NOT MET" in ended.out and "does not keep all targets" in ended.out


def test_the_json_of_a_calibration_has_a_form(topdown, command):
    fields = json.loads(command("calibrate", topdown, *ERRORS, "--json").out)
    assert list(fields)[:3] == ["stirred_calibration", "confidential", "of"]
    assert fields["of"] == "topdown" and fields["confidential"] is False
    assert [set(one) for one in fields["targets"]] == [{"target", "met", "limit", "before", "after", "costs"}] * 2
    assert {"rho", "rho_before", "tables", "expected_errors", "changes", "notes", "answer"} <= set(fields)
    (table,) = fields["tables"]
    assert table["needed"] >= table["no_shares_need_less_than"] > 0


def test_a_swap_is_calibrated_with_and_without_its_data(swap, tmp_path, command):
    ended = command("calibrate", swap, "--target", "epsilon <= 5")
    assert ended.code == 0 and ended.out.startswith("CONFIDENTIAL") and "A swap rate of" in ended.out
    (tmp_path / "households.csv").unlink()
    public = command(
        "calibrate", swap, "--target", "epsilon <= 5", "--largest-stratum", "30", "--out", tmp_path / "2.toml"
    )
    assert public.code == 0 and "CONFIDENTIAL" not in public.out
    assert 'chosen_from = "public"' in (tmp_path / "2.toml").read_text()


def test_the_option_of_check_that_moved_says_where(swap, command):
    ended = command("check", swap, "--epsilon", "5")
    assert ended.code == 2 and "stirred calibrate PLAN --target 'epsilon <= 5'" in ended.err


def test_a_number_is_calibrated_without_a_plan(command, tmp_path):
    ended = command("calibrate", "rho=2.63", "--target", "power at 5% <= 20%", "--target", "belief from 1% <= 5%")
    assert ended.code == 0 and ended.out.startswith("rho of at most 0.1262 keeps all targets, whatever the mechanism.")
    assert "The rho in use is 2.63" in ended.out
    assert command("calibrate", "rho", "--target", "rho <= 1", "--out", tmp_path / "p.toml").code == 2
    ended = command("calibrate", "epsilon", "--target", "epsilon <= 1", "--largest-stratum", "3")
    assert ended.code == 2 and "--largest-stratum does not apply" in ended.err


def test_a_survey_plan_is_calibrated_for_its_guarantee_and_its_errors(tmp_path, command):
    (tmp_path / "survey.toml").write_text(
        'stirred = 1\nmechanism = "survey"\nepsilon = 3\nweights = { column = "w", lower = 1, upper = 50 }\n'
        'attributes = [{ name = "sex", values = ["f", "m"] }]\nqueries = [{ by = "sex" }]\n'
    )
    out = tmp_path / "better.toml"
    ended = command("calibrate", tmp_path / "survey.toml", "--target", "power at 5% <= 20%", "--out", out)
    assert ended.code == 0 and "epsilon of at most 1.386" in ended.out and 'epsilon = "1.386"' in out.read_text()
    ended = command("calibrate", tmp_path / "survey.toml", "--target", "error of sex <= 3")
    assert ended.code == 0 and ended.out.startswith("All targets are kept with epsilon of")


def test_options_and_targets_that_do_not_fit_are_refused(topdown, swap, command):
    for words, said in (
        ([topdown], "No limit was given"),
        ([topdown, "--target", "error of race"], "it has no limit"),
        ([topdown, "--target", "error of race at moon <= 1"], "moon"),
        ([topdown, *ERRORS, "--largest-stratum", "5"], "--largest-stratum does not apply to the mechanism 'topdown'"),
        ([swap, "--target", "epsilon <= 5", "--rho", "1"], "--rho does not apply to the mechanism 'swap'"),
        ([topdown.parent / "none.toml", "--target", "rho <= 1"], "none.toml"),
    ):
        ended = command("calibrate", *words)
        assert ended.code == 2 and said in ended.err, (words, ended.err)


def test_a_mechanism_without_calibration_says_so(tmp_path, command):
    mechanisms.register(Counting())
    try:
        (tmp_path / "count.toml").write_text('stirred = 1\nmechanism = "count"\n[input]\npath = "rows.csv"\n')
        ended = command("calibrate", tmp_path / "count.toml", "--target", "epsilon <= 1")
        assert ended.code == 2 and "does not offer calibration" in ended.err
    finally:
        mechanisms.forget("count")


def test_the_help_has_an_example(command):
    said = " ".join(command("calibrate", "--help").out.split())
    assert (
        "stirred calibrate plan.toml --target" in said
        and "Options for swap:" in said
        and "Options for topdown:" in said
    )
