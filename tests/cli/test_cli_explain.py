"""``stirred explain`` as a person types it."""

from __future__ import annotations

import json

import pytest

from stirred.spec import flavors

OWN = """
levels = ["region", "town"]

[[part]]
unit = "person"
rho = "1/2"
level_shares = ["1/4", "3/4"]

[[part.query]]
name = "age*sex"
attributes = ["age", "sex"]
shares = ["1", "1"]
"""


@pytest.fixture
def run(command):
    """What the command prints, of one that succeeds."""

    def explain(*arguments):
        ended = command("explain", *arguments)
        assert ended.code == 0, ended.err
        return ended.out

    return explain


def test_a_budget_typed_by_hand(run):
    out = run("rho=2.63,unit=household")
    assert "The protected unit is one household." in out
    assert "0.699, 0.947 and 0.963" in out


def test_a_deployment_with_concerns(run):
    out = run("topdown-2020-pl", "--concern", "cenrace", "--concern", "block within tract")
    assert "Cenrace: the two datasets differ in that one person has another cenrace" in out
    assert "Location within tract" in out
    assert "rho from the source's tables" in out


def test_a_release_folder(run, tmp_path):
    (tmp_path / "specification.json").write_text(flavors.pure("person").at(1).to_json())
    assert "probabilities above 0.0272, 0.136 and 0.272" in " ".join(run(tmp_path).split())


def test_json_holds_statements_and_numbers(run):
    fields = json.loads(run("epsilon=1", "--json", "--false-alarm", "0.2"))
    assert {one["section"] for one in fields["statements"]} >= {"compares", "exposed", "tests", "beliefs"}
    assert [row["level"] for row in fields["powers"]] == [0.2]


def test_own_levels_deltas_and_groups(run):
    out = run("rho=0.5", "--false-alarm", "0.001", "--delta", "1e-5", "--group", "3")
    assert "false alarm 0.001" in out and "1e-05" in out and "For 3 persons" in out


def test_figures_and_a_page(run, command, tmp_path):
    folder, page = tmp_path / "figures", tmp_path / "page.html"
    run("rho=1", "--figures", folder, "--html", page)
    shown = ("level-and-power", "epsilon-and-delta", "beliefs")
    assert {path.name for path in folder.iterdir()} == {f"{name}.{kind}" for name in shown for kind in ("png", "svg")}
    assert page.read_text().startswith("<!doctype html>")
    for again in (("--html", page), ("--figures", folder)):
        ended = command("explain", "rho=1", *again)
        assert (ended.code, ended.out) == (2, "") and "exists already" in ended.err


def test_an_allocation_of_ones_own(run, command, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    out = run("rho=1/2", "--allocation", path, "--concern", "age")
    assert "Age: the two datasets differ in that one person has another age" in out
    ended = command("explain", "rho=1", "--allocation", path)
    assert ended.code == 2 and "a rho of 0.5" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing-of-the-kind"], "names no specification"),
        (["rho=1", "--concern", "cenrace"], "--allocation"),
        (["topdown-2020-pl", "--concern", "race"], "Choose one of 'cenrace'"),
        (["rho=1", "--false-alarm", "2"], "above 0 and below 1"),
        (["rho=1", "--group", "0"], "from 1 to"),
    ],
)
def test_what_cannot_be_explained_is_refused(command, arguments, words):
    ended = command("explain", *arguments)
    assert (ended.code, ended.out) == (2, "") and words in ended.err


@pytest.mark.parametrize("option", ["--html", "--figures"])
def test_a_target_that_exists_is_refused_before_anything_is_computed(command, tmp_path, option):
    target = tmp_path / "there"
    target.mkdir()
    ended = command("explain", "no-such-deployment", option, target)
    assert ended.code == 2 and "exists already" in ended.err


def test_a_plan_in_place_of_a_specification_is_told_what_to_run(command, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('stirred = 1\nmechanism = "swap"\n')
    ended = command("explain", plan)
    said = " ".join(ended.err.split())
    assert ended.code == 2 and "This is a plan" in said and f"stirred report {plan} explains it" in said
    plan.write_text(OWN)
    assert "This is not a specification: it is not JSON" in command("explain", plan).err
