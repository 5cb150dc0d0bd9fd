"""``stirred limits`` as a person types it, and the limits in ``stirred explain``."""

from __future__ import annotations

import json

import pytest

from stirred.lab.limits.pufferfish import Pufferfish
from stirred.limits import power_bounds


@pytest.fixture
def run(command):
    """What a command prints, of one that succeeds."""

    def succeed(*arguments):
        ended = command(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    return succeed


def test_the_standard_questions(run):
    out = " ".join(run("limits", "--epsilon", "1", "--records", "10").split())
    assert "What is tested (one record, all others known, distance 1)" in out
    assert "at most 0.0272, 0.136 and 0.272" in out
    assert "What is believed (the whole database, only its size known, distance 10)" in out
    assert "at least 4.53e-5 and at most 22,100 times" in out
    assert "prior predictive" in out


def test_a_distance_levels_and_priors_of_ones_own(run):
    out = run(
        "limits",
        "--epsilon",
        "1/2",
        "--records",
        "10",
        "--distance",
        "3",
        "--false-alarm",
        "0.2",
        "--prior",
        "0.3",
        "--json",
    )
    fields = json.loads(out)
    (limit,) = fields["limits"]
    assert limit["distance"] == 3 and limit["levels"] == [0.2] and limit["priors"] == [0.3]
    assert limit["power"]["upper"] == pytest.approx(power_bounds([0.2], 1.5).upper.tolist())
    assert all(one["source"] for one in fields["statements"])


def test_infinite_answers_are_said_as_such(run):
    out = " ".join(run("limits", "--epsilon", "1", "--records", "10", "--distance", "infinity").split())
    assert "Nothing limits what can be learnt here" in out and "infinitely far apart" in out
    assert (
        json.loads(run("limits", "--epsilon", "inf", "--records", "1", "--json"))["limits"][0]["data"]["upper"] is None
    )


def test_figures_are_drawn_once(run, command, tmp_path):
    target = tmp_path / "figures"
    run("limits", "--epsilon", "1", "--records", "10", "--figures", target)
    names = {path.name for path in target.iterdir()}
    assert names == {f"limits-{kind}.{ending}" for kind in ("tests", "beliefs") for ending in ("png", "svg")}
    again = command("limits", "--epsilon", "1", "--records", "10", "--figures", target)
    assert again.code == 2 and "exists" in again.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epsilon", "-1", "--records", "10"], "Epsilon"),
        (["--epsilon", "one", "--records", "10"], "Epsilon"),
        (["--epsilon", "1", "--records", "0"], "records is 0"),
        (["--epsilon", "1", "--records", "10", "--false-alarm", "1.5"], "level"),
        (["--epsilon", "1", "--records", "10", "--prior", "-0.1"], "prior"),
        (["--epsilon", "1", "--records", "10", "--distance", "far"], "distance"),
        (["--epsilon", "1", "--records", "-5", "--distance", "2"], "records is -5"),
        (["--epsilon", "1", "--records", "10", "--distance", "50"], "at most 10"),
        (["--epsilon", "1", "--records", "10", "--distance", "1.5"], "whole number of records"),
    ],
)
def test_bad_options_are_refused(command, options, words):
    ended = command("limits", *options)
    assert ended.code == 2 and words in ended.said


def test_an_epsilon_beyond_floats_is_answered_as_infinite(run, command, tmp_path):
    out = " ".join(run("limits", "--epsilon", "1e400", "--records", "3").split())
    assert "epsilon = 1e400" in out and "too large to compute with" in out
    drawn = command("limits", "--epsilon", "1e400", "--records", "3", "--figures", tmp_path / "figures")
    assert drawn.code == 0 and "No picture of tests: nothing practical is ruled out" in drawn.said


def test_json_says_what_was_asked(run):
    fields = json.loads(run("limits", "--epsilon", "0.001", "--records", "7", "--unbounded", "--json"))
    assert (fields["epsilon"], fields["records"], fields["bounded"]) == ("0.001", 7, False)
    assert "epsilon = 0.001 for each record that is added or removed, 7 records" in fields["heading"]
    assert [one["distance"] for one in fields["limits"]] == [1, 2, 14]


def test_a_question_that_is_left_out_of_the_figures_is_named(command, tmp_path):
    drawn = command("limits", "--epsilon", "6", "--records", "300", "--figures", tmp_path / "figures", "--paper")
    assert drawn.code == 0
    said = (tmp_path / "figures" / "limits-tests-caption.txt").read_text(encoding="utf-8")
    assert "Not drawn, since nothing practical is ruled out: the whole database" in " ".join(said.split())


def test_an_epsilon_of_nothing_is_not_drawn(command, tmp_path):
    ended = command("limits", "--epsilon", "0", "--records", "10", "--figures", tmp_path / "figures")
    assert ended.code == 0 and "no test is better than a blind guess" in ended.err
    assert not (tmp_path / "figures").exists()


def test_explain_of_a_pure_guarantee_ends_with_its_limits(run):
    out = run("explain", "epsilon=1", "--full")
    assert out.rstrip().splitlines()[-1].split()[:3] == ["5", "persons", "replaced"]
    assert "Somebody who does not know the number of persons" in " ".join(out.split())
    assert "WHAT CAN AT MOST BE LEARNT" in out
    brief = run("explain", "epsilon=1")
    assert "What is tested (the nearest two datasets, distance 1)" in " ".join(brief.split())
    assert "hardly more than about one only where epsilon" in " ".join(out.split()) and "hardly more" not in brief


def test_explain_of_another_guarantee_says_why_not(run):
    for budget in ("rho=1", "epsilon=1,delta=1e-6"):
        out = " ".join(run("explain", budget).split())
        assert "Limits that hold for every output need the multiplicative standard" in out


def test_explain_shows_limits_in_json_and_html(run, tmp_path):
    fields = json.loads(run("explain", "epsilon=1,unbounded", "--json", "--html", tmp_path / "page.html"))
    assert [one["distance"] for one in fields["limits"]["limits"]] == [1, 2, 4, 10]
    assert {one["section"] for one in fields["limits"]["statements"]} == {"limits"}
    assert fields["statements"] and fields["powers"]
    page = (tmp_path / "page.html").read_text()
    assert "What can at most be learnt" in page and page.endswith("</body></html>\n")


def test_explain_asks_at_the_levels_and_groups_given(run):
    fields = json.loads(run("explain", "epsilon=1", "--json", "--false-alarm", "0.2", "--group", "7"))
    limits = fields["limits"]["limits"]
    assert [one["distance"] for one in limits] == [1, 7] and limits[0]["levels"] == [0.2]


def test_a_pufferfish_specification_is_explained_compared_and_linted(run, tmp_path):
    case = Pufferfish("abc", {"me": [0.5, 0.25, 0.25]}, {x: x for x in "abc"}, [("a", "b"), ("b", "c")])
    for epsilon in (1, 2):
        (tmp_path / f"{epsilon}.json").write_text(case.specification(epsilon, name=f"puffer-{epsilon}").to_json())
    out = " ".join(run("explain", tmp_path / "1.json").split())
    assert "These limits hold for the attackers of the domain and between paired secrets only" in out
    assert "the farthest two distributions 2" in out
    assert "Two distributions of the data are compared" in out and "respondent" not in out
    assert "puffer-1 promises more" in " ".join(run("compare", tmp_path / "1.json", tmp_path / "2.json").split())
    assert "hidden-invariant" not in run("lint", tmp_path / "1.json")
