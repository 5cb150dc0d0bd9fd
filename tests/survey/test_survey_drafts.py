"""Drafts of survey plans: from names alone, and refused until public facts are filled in."""

import re
import tomllib
from pathlib import Path

import pytest

from stirred.cli import app
from stirred.errors import StirredError
from stirred.survey.plan.draft import draft_plan, guess
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import TO_FILL_IN


@pytest.mark.parametrize(
    ("columns", "weight", "final", "replicates", "strata", "clusters"),
    [
        (["PUMA", "PWGTP", "WGTP", "SEX"], "PWGTP", True, 0, None, None),
        (["SERIALNO", *(f"PWGTP{n}" for n in range(1, 81)), "PWGTP"], "PWGTP", True, 80, None, None),
        (["sdmvstra", "sdmvpsu", "wtint2yr", "weight"], "weight", False, 0, "sdmvstra", "sdmvpsu"),
        (["stratum", "psu", "final_weight", "weight", "rep_1", "rep_2", "rep_3"], "weight", False, 3, "stratum", "psu"),
        (["hid", "dw_wgt", "cluster", "strata"], "dw_wgt", False, 0, "strata", "cluster"),
        (["age", "sex", "income"], None, False, 0, None, None),
        (["wave1", "wave2", "wave3", "pweight"], "pweight", False, 0, None, None),
        (["weight_1", "weight_3", "weight_7"], "weight_1", False, 0, None, None),
    ],
)
def test_columns_are_told_by_their_names(columns, weight, final, replicates, strata, clusters):
    found = guess(columns)
    assert (found.weight, found.final, len(found.replicates)) == (weight, final, replicates)
    assert (found.strata, found.clusters) == (strata, clusters)
    together = [found.weight, found.strata, found.clusters, *found.other_weights, *found.replicates, *found.left_out]
    together += [*found.variables, *found.attributes]
    assert sorted(name for name in together if name) == sorted(columns)


def test_no_cell_is_read(tmp_path):
    (tmp_path / "b").mkdir()
    first, second = tmp_path / "a.csv", tmp_path / "b" / "a.csv"
    first.write_text("stratum,psu,w,income,sex\n1,1,3,4,f\n")
    second.write_text("stratum,psu,w,income,sex\nx,y,z,nine,tooth\nv,v,v,v,v\n")
    assert draft_plan(first).replace(str(first), str(second)) == draft_plan(second)


def test_a_draft_is_toml_and_is_refused_with_the_names_of_its_blanks(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("stratum,psu,w,income,sex\n1,1,3,4,f\n")
    monkeypatch.setattr("sys.argv", ["stirred", "init", "s.csv", "--mechanism", "survey", "--out", "plan.toml"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code in (0, None)
    text = Path("plan.toml").read_text()
    assert tomllib.loads(text)["weights"]["column"] == "w"
    with pytest.raises(StirredError) as refused:
        SurveyPlan.from_toml("plan.toml")
    for name in ("row", "epsilon", "weights.lower", "design.sizes", "attributes.sex.values", "variables.income.upper"):
        assert f"'{name}'" in str(refused.value)
    assert "public knowledge" in str(refused.value)


def test_a_draft_that_is_filled_in_is_a_plan(tmp_path):
    (tmp_path / "s.csv").write_text("stratum,psu,w,income,sex\na,1,3,4,f\na,2,3,4,f\n")
    text = draft_plan(tmp_path / "s.csv")
    for blank, value in (
        (r'values = \["FILL IN"\]', 'values = ["a", "f"]'),
        (r'"FILL IN" = \{.*\}', "a = { selected = 2, population = 9 }"),
        (r'row = "FILL IN"', 'row = "person"'),
        (r'(lower|epsilon|upper|largest_cluster) = "FILL IN"', r"\1 = 5"),
    ):
        text = re.sub(blank, value, text)
    text = text.replace('values = ["a", "f"]', 'values = ["a"]', 1)
    assert f'"{TO_FILL_IN}"' not in text.split("stirred = 1")[1]
    (tmp_path / "plan.toml").write_text(text)
    assert SurveyPlan.from_toml(tmp_path / "plan.toml").design.sizes["a"].selected == 2
