"""``stirred compare``, ``lint`` and ``deployments`` as a privacy officer uses them."""

import json

import pytest

from stirred.spec import flavors


def test_two_deployments_are_put_side_by_side_and_told_to_be_incomparable(command):
    ended = command("compare", "topdown-2020-pl", "psa-2020-state-county-p05")
    assert ended.code == 0
    said = " ".join(ended.out.split())
    assert "Can these be ranked? No: topdown-2020-pl and psa-2020-state-county-p05 each promise something" in said
    assert "whose universes hold it fixed, and no finite budget of psa-2020-state-county-p05 allows it" in said
    assert "rho = 2.63" in ended.out
    assert "finding different-flavors" in ended.out
    assert "psa-2020-state-county-p05: the nearest datasets of a universe are 2 apart" in ended.out


def test_reasons_name_the_propositions(command):
    ended = command("compare", "epsilon=1", "rho=0.5", "--reasons")
    assert "Does epsilon=1 imply rho=0.5? yes" in ended.out
    assert "Kairouz, Oh and Viswanath 2015" in ended.out
    assert "Does rho=0.5 imply epsilon=1? no" in ended.out


def test_files_releases_and_typed_budgets_can_be_mixed(command, tmp_path):
    path = tmp_path / "specification.json"
    path.write_text(flavors.zcdp("person").at("0.1").to_json())
    ended = command("compare", path, "rho=0.2", "das-2020-overall")
    assert ended.code == 0
    assert "promises more than rho=0.2." in " ".join(ended.out.split())


def test_a_comparison_comes_as_json_and_as_a_page_that_needs_nothing_else(command, tmp_path):
    ended = command("compare", "rho=1", "rho=2", "--json", "--html", tmp_path / "page.html")
    assert json.loads(ended.out)["verdicts"][0]["stronger"] == "first stronger"
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "http" not in page
    again = command("compare", "rho=1", "rho=2", "--html", tmp_path / "page.html")
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    nowhere = command("compare", "rho=1", "rho=2", "--html", tmp_path / "no" / "page.html")
    assert nowhere.code == 2 and "does not exist" in nowhere.err


def test_consequences_stand_beside_each_other_at_the_levels_and_the_prior_asked_for(command, tmp_path):
    ended = command("compare", "epsilon=1", "rho=0.5", "--false-alarm", "0.05", "--prior", "0.5", "--json")
    found = json.loads(ended.out)
    told = {one["question"]: one["answers"] for one in found["consequences"]}
    assert told["any method, 5 false alarms in 100"] == ["14", "34"]  # e times 5, and what zCDP allows
    assert told["method in use, 5 false alarms in 100"] == ["not known", "26 if Gaussian"]
    assert told["any method, belief from 50% before"][0] == "74%"  # e / (1 + e), rounded up
    assert [one["question"] for one in found["questions"]][:2] == ["Which data?", "What is held fixed?"]
    assert found["rankings"] == ["Yes: epsilon=1 promises more than rho=0.5."]
    strict = found["questions"][3]
    assert strict["alone"] == "epsilon=1 is stricter" and found["questions"][4]["alone"] == "not on one scale"
    ended = command("compare", "psa-1940-ma-p50", "epsilon=1,unit=household", "--json")
    assert json.loads(ended.out)["questions"][2]["alone"] == "same distance, other changes"
    drawn = command("compare", "epsilon=1", "rho=0.5", "--figures", tmp_path / "drawn")
    assert drawn.code == 0 and {path.stem for path in (tmp_path / "drawn").iterdir()} == {"level-and-power"}
    assert command("compare", "epsilon=1", "rho=0.5", "--prior", "1").code == 2


def test_who_cannot_be_ranked_is_told_apart_from_what_is_not_known(command):
    unknown = " ".join(command("compare", "epsilon=1", "epsilon=1,delta=1e-6,unit=household").out.split())
    assert (
        "Can these be ranked? Not known for epsilon=1 and epsilon=1,delta=1e-6,unit=household: at most how" in unknown
    )
    same = " ".join(command("compare", "rho=1", "rho=1").out.split())
    assert "promise the same" in same


@pytest.mark.parametrize("words", [["rho=1"], ["rho=1", "nosuch"], ["rho=1", "rho=-1"], ["rho=1", "rho=nan"]])
def test_what_cannot_be_compared_is_refused_with_a_remedy(command, words):
    ended = command("compare", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("stirred: ")


def test_lint_prints_what_was_seen_why_and_where_it_is_said(command):
    ended = command("lint", "psa-2020-blockgroup-size-block-p05", "--before", "psa-2020-state-county-p50")
    assert ended.code == 0
    said = " ".join(ended.out.split())
    assert "more-invariants: Epsilon falls from 16.42 to 11.37" in said
    assert "is not better privacy" in said
    found = json.loads(command("lint", "psa-2020-blockgroup-size-block-p05", "--json").out)["findings"]
    assert all(finding["source"] and finding["why"] for finding in found)
    assert "nearest-not-one" in {finding["id"] for finding in found}


def test_deployments_are_listed_and_shown_with_sources_and_errata(command):
    listed = command("deployments").out.splitlines()
    assert any(line.startswith("das-2020-overall ") for line in listed)
    shown = command("deployments", "topdown-2020-pl").out
    assert "erratum:" in shown and "source:" in shown and "rho = 2.63" in shown
    assert max(map(len, shown.splitlines())) <= 110
    unknown = command("deployments", "topdown-2021")
    assert unknown.code == 2 and "topdown-2020-pl" in unknown.err


def test_a_deployment_under_another_name_is_said(command):
    ended = command("compare", "psa-2010", "rho=1")
    assert "'psa-2010' is taken as 'psa-2010-p02'; 13 others begin so" in ended.err
    assert "psa-2010-p02" in ended.out
    assert command("lint", "phsafe-2020").err == ""
    assert "is taken as 'das-2020-overall'" in command("deployments", "DAS 2020").err
