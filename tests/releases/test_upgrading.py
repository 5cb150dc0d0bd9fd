"""Plans of earlier versions in the present form: the same plan, the same guarantee, and nothing else rewritten."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from stirred import errors
from stirred.mechanisms import mechanism_of_plan
from stirred.releases.plans import FORM, upgrade
from stirred.survey.plan.fields import SurveyPlan
from stirred.swap.plan.fields import SwapPlan

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("tests/fixtures/v0_*/*.toml"), *ROOT.glob("examples/*/*.toml")])
PLANS = [path for path in FILES if tomllib.loads(path.read_text()).get("stirred") == FORM]
OLD = """stirred = 1 # the form
mechanism = "swap"
licence = '''
tables = none
[x]
'''
rate = 0.05
swap = ["county"]
hold = [
  "tenure",
]
tables = [["county",
  "tenure"]]   # what users ask for

# where the file is
[input]
path = "a.csv"
"""


def test_there_are_plans_of_every_mechanism_to_upgrade():
    assert {mechanism_of_plan(path).name for path in PLANS} == {"swap", "topdown", "survey"}


@pytest.mark.parametrize("path", PLANS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_upgraded_plan_is_the_same_plan(path, tmp_path):
    kind = mechanism_of_plan(path).plan_type
    found = upgrade(kind, path, path.parent)
    before = kind.from_toml(path)
    fields = {
        key: value
        for key, value in tomllib.loads(found.text, parse_float=str).items()
        if key not in ("stirred", "mechanism")
    }
    after = kind(**kind.placed(fields, path.parent))
    assert after == before and after.hash() == before.hash()  # all that a guarantee is made from
    assert not set(kind.earlier_names) & set(fields)
    after_lines = iter(found.text.splitlines())
    kept = [any(line == other for other in after_lines) for line in path.read_text().splitlines()]
    assert all(kept) or set(kind.earlier_names) & set(tomllib.loads(path.read_text()))


def test_names_change_and_choices_are_written_out_and_comments_stay(tmp_path):
    (tmp_path / "old.toml").write_text(OLD)
    found = upgrade(SwapPlan, tmp_path / "old.toml", tmp_path)
    fields = tomllib.loads(found.text)
    assert fields["publish"] == [["county", "tenure"]] and "tables" not in fields
    assert fields["licence"] == "tables = none\n[x]\n"
    assert (fields["unit"], fields["most_told"], fields["most_recovered"]) == ("record", "1/2", "1/10")
    assert "most_alone" not in fields and "# most_alone = ..." in found.text and "# dataset = ..." in found.text
    for comment in ("# the form", "# what users ask for", "\n# where the file is\n[input]"):
        assert comment in found.text
    assert found.changes[0] == "tables is called publish now"
    assert 'most_told = "1/2" is written out: what the plan meant without it' in found.changes


def test_what_has_the_present_form_stays_as_it_is(tmp_path):
    (tmp_path / "old.toml").write_text(OLD)
    once = upgrade(SwapPlan, tmp_path / "old.toml", tmp_path).text
    (tmp_path / "new.toml").write_text(once)
    again = upgrade(SwapPlan, tmp_path / "new.toml", tmp_path)
    assert again.text == once and again.changes == ()


def test_a_survey_without_row_is_told_of_it():
    path = next(
        path for path in PLANS if mechanism_of_plan(path).plan_type is SurveyPlan and "\nrow" not in path.read_text()
    )
    assert "row is not stated; a comment says what it would be" in upgrade(SurveyPlan, path, path.parent).changes


def test_a_plan_that_would_mean_something_else_is_refused(tmp_path):
    (tmp_path / "old.toml").write_text(OLD)
    with pytest.raises(errors.PlanError, match="Write the new plan into the same folder"):
        upgrade(SwapPlan, tmp_path / "old.toml", tmp_path / "elsewhere")
    (tmp_path / "quoted.toml").write_text(OLD.replace("\ntables = [[", '\n"tables" = [['))
    with pytest.raises(errors.PlanError, match="rename by hand"):
        upgrade(SwapPlan, tmp_path / "quoted.toml", tmp_path)


def test_the_command_prints_what_changed(tmp_path, command):
    (tmp_path / "old.toml").write_text(OLD)
    ended = command("plan", "upgrade", tmp_path / "old.toml", "--out", tmp_path / "new.toml")
    assert ended.code == 0 and "Changed: tables is called publish now." in ended.err
    assert SwapPlan.from_toml(tmp_path / "new.toml") == SwapPlan.from_toml(tmp_path / "old.toml")
    ended = command("plan", "upgrade", tmp_path / "new.toml")
    assert ended.out == (tmp_path / "new.toml").read_text() and "Changed nothing" in ended.err
