"""The commands from their entry point: what they print, what they write, and how they end."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest

import stirred
from stirred.cli import app
from stirred.swap.plan.fields import SwapPlan

MARKER = "SECRET-7731"
ROWS = 120
PLAN = """\
stirred = 1
mechanism = "swap"
unit = "household"
rate = 0.05
chosen_from = "public"
match = ["state", "size"]
swap = ["county"]
hold = ["tenure"]
id = "hhid"
tables = [["county", "tenure"]]
[input]
path = "households.csv"
[[linked]]
name = "persons"
link = "hhid"
id = "pid"
hold = ["age"]
[linked.input]
path = "persons.csv"
"""


@pytest.fixture
def data(tmp_path) -> Path:
    """A folder with households, persons and a plan."""
    households = pl.DataFrame(
        {
            "state": [("MA", "NH")[i % 2] for i in range(ROWS)],
            "size": [str(1 + i // 2 % 2) for i in range(ROWS)],
            "county": [f"{i % 2}{'abc'[i // 4 % 3]}" for i in range(ROWS)],
            "tenure": [("owned", "rented", "free")[i // 5 % 3] for i in range(ROWS)],
            "hhid": [f"h{i}" for i in range(ROWS)],
        }
    )
    rows = [i for i in range(ROWS) for _ in range(1 + i // 2 % 2)]
    persons = pl.DataFrame(
        {
            "pid": [f"p{at}" for at in range(len(rows))],
            "hhid": [f"h{i}" for i in rows],
            "age": [str(20 + (3 * at) % 7) for at in range(len(rows))],
        }
    )
    folder = tmp_path / "data"
    folder.mkdir()
    households.write_csv(folder / "households.csv")
    persons.write_csv(folder / "persons.csv")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder


@pytest.fixture
def plan(data) -> Path:
    return data / "plan.toml"


# -- stirred -----------------------------------------------------------------------------------------------------


def test_version_is_printed(command):
    ended = command("--version")
    assert (ended.code, ended.out.splitlines()[0]) == (0, stirred.__version__)


def test_help_names_every_command(command):
    ended = command("--help")
    assert ended.code == 0
    for verb in ("init", "check", "release", "verify", "tabulate", "demo"):
        assert f"\n  {verb} " in ended.out


@pytest.mark.parametrize("verb", ["init", "check", "release", "verify", "tabulate", "demo"])
def test_every_command_has_help(verb, command):
    ended = command(verb, "--help")
    assert ended.code == 0
    assert f" {verb} [OPTIONS]" in ended.out


@pytest.mark.parametrize(
    "words", [["swap"], ["check"], ["release", "plan.toml"], ["check", "plan.toml", "--seed", "1"]]
)
def test_wrong_usage_exits_with_two(words, command):
    ended = command(*words)
    assert ended.code == 2
    assert "Usage: " in ended.err


@pytest.mark.parametrize("fault", [ValueError, OSError, KeyError, AssertionError, ZeroDivisionError])
def test_an_unexpected_exception_is_told_without_its_text(fault, plan, command, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise fault(f"could not parse {MARKER}")

    monkeypatch.delenv("STIRRED_DEBUG", raising=False)
    monkeypatch.setattr("stirred.swap.checking.plan_check.load", fail)
    ended = command("check", plan)
    assert ended.code == 3
    assert f"unexpected {fault.__name__} in swap/checking/plan_check.py, line " in ended.err
    assert "STIRRED_DEBUG=1 to see it" in ended.err
    assert MARKER not in ended.said
    assert "Traceback" not in ended.said


def test_debugging_shows_an_unexpected_exception(plan, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ValueError("the text")

    monkeypatch.setenv("STIRRED_DEBUG", "1")
    monkeypatch.setattr("stirred.swap.checking.plan_check.load", fail)
    monkeypatch.setattr("sys.argv", ["stirred", "check", str(plan)])
    with pytest.raises(ValueError, match="the text"):
        app.main()


@pytest.mark.parametrize("end", [KeyboardInterrupt, app.Terminated])
def test_a_stopped_command_says_so(end, plan, command, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise end

    monkeypatch.setattr("stirred.swap.checking.plan_check.load", stop)
    ended = command("check", plan)
    assert ended.code == 130
    assert "interrupted. Partial files were removed" in ended.err


# -- init --------------------------------------------------------------------------------------------------------


def test_a_draft_is_a_plan_that_can_be_checked(data, command):
    out = data / "draft.toml"
    ended = command("init", data / "households.csv", "--out", out)
    assert (ended.code, ended.out) == (0, "")
    assert f"stirred check {out}" in ended.err
    drafted = SwapPlan.from_toml(out)
    assert (drafted.match, drafted.swap, drafted.hold) == (("state", "size"), ("county",), ("tenure",))
    assert (drafted.id, drafted.drop, drafted.chosen_from) == ("hhid", (), None)
    assert command("check", out).code == 0


def test_a_draft_with_a_linked_table_is_a_plan_that_can_be_checked(data, command):
    out = data / "draft.toml"
    assert command("init", data / "households.csv", "--linked", data / "persons.csv", "--out", out).code == 0
    (linked,) = SwapPlan.from_toml(out).linked
    assert (linked.name, linked.link, linked.id, linked.hold) == ("persons", "hhid", "pid", ("age",))
    ended = command("check", out, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["linked_rows"] == {"persons": 180}


def test_a_draft_without_out_is_printed(data, command):
    ended = command("init", data / "households.csv")
    assert (ended.code, ended.err) == (0, "")
    assert tomllib.loads(ended.out)["swap"] == ["county"]


def test_a_draft_never_overwrites_a_file(plan, data, command):
    before = plan.read_bytes()
    ended = command("init", data / "households.csv", "--out", plan)
    assert ended.code == 2
    assert f"{plan} exists already." in ended.err
    assert plan.read_bytes() == before


def test_a_draft_in_a_folder_that_does_not_exist_is_refused(data, command):
    ended = command("init", data / "households.csv", "--out", data / "missing" / "plan.toml")
    assert ended.code == 2
    assert f"The folder {data / 'missing'} does not exist." in ended.err


def test_a_draft_finds_its_files_from_whatever_folder_it_is_checked(data, tmp_path, command, monkeypatch):
    (tmp_path / "plans").mkdir()
    monkeypatch.chdir(data)
    words = ["init", "households.csv", "--linked", "persons.csv", "--out", "../plans/plan.toml"]
    assert command(*words).code == 0
    assert SwapPlan.from_toml("../plans/plan.toml").input.path == "../plans/../data/households.csv"
    monkeypatch.chdir(tmp_path)
    assert command("check", "plans/plan.toml").code == 0
    monkeypatch.chdir("/")
    assert command("check", tmp_path / "plans" / "plan.toml").code == 0


def test_a_draft_looks_at_no_cell(data, command):
    lines = (data / "households.csv").read_text(encoding="utf-8").splitlines()
    (data / "households.csv").write_text(f"{lines[0]}\n{MARKER}\n", encoding="utf-8")  # ragged, were it read
    ended = command("init", data / "households.csv")
    assert ended.code == 0
    assert MARKER not in ended.said


def test_names_that_need_quotes_survive_a_draft(data, command):
    frame = pl.read_csv(data / "households.csv", infer_schema=False).rename({"tenure": 'the "tenure", année'})
    frame.write_csv(data / 'odd "name".csv')
    assert command("init", data / 'odd "name".csv', "--out", data / "draft.toml").code == 0
    assert SwapPlan.from_toml(data / "draft.toml").hold == ('the "tenure", année',)
    assert command("check", data / "draft.toml").code == 0


@pytest.mark.parametrize("name", ["2020 persons.csv", "microdata.csv", "tables.csv", "_.csv", "Ménages.csv"])
def test_a_draft_names_a_linked_table_as_a_plan_may(name, data, command):
    (data / "persons.csv").rename(data / name)
    out = data / "draft.toml"
    assert command("init", data / "households.csv", "--linked", data / name, "--out", out).code == 0
    assert command("check", out).code == 0


def test_a_draft_does_not_take_a_place_for_the_id(data, command):
    frame = pl.read_csv(data / "households.csv", infer_schema=False).rename(
        {"state": "state_id", "county": "county_id"}
    )
    frame.write_csv(data / "places.csv")
    assert command("init", data / "places.csv", "--out", data / "draft.toml").code == 0
    drafted = SwapPlan.from_toml(data / "draft.toml")
    assert (drafted.match, drafted.swap, drafted.id) == (("state_id", "size"), ("county_id",), "hhid")


def test_a_draft_of_a_file_whose_columns_say_nothing_asks_for_a_swap_variable(data, command):
    (data / "plain.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    out = data / "draft.toml"
    assert command("init", data / "plain.csv", "--out", out).code == 0
    ended = command("check", out)
    assert ended.code == 2
    assert "lists no swap variables" in ended.err


# -- check -------------------------------------------------------------------------------------------------------


def test_a_check_begins_by_saying_that_it_is_confidential(plan, command):
    ended = command("check", plan)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("CONFIDENTIAL")


def test_a_check_prints_json_that_says_that_it_is_confidential(plan, command):
    ended = command("check", plan, "--json", "--rates", "0.01,0.5", "--by", "county,tenure")
    fields = json.loads(ended.out)
    assert list(fields)[:2] == ["stirred_check", "confidential"]
    assert fields["confidential"] is True
    assert fields["records"] == ROWS
    assert float(fields["specification"]["budget"]["value"]) == fields["guarantee"]["epsilon"]
    assert len(fields["tables"]) == 1  # asked for by the plan and again by the option
    assert 0 < fields["guarantee"]["best_rate"] < 1


def test_rates_and_candidates_are_tried_side_by_side(plan, command):
    words = ["--rates", "0.01, 0.05,1/2", "--candidate", "match=state;swap=county,tenure", "--candidate", "swap=size"]
    ended = command("check", plan, *words, "--json")
    assert ended.code == 0
    entries = json.loads(ended.out)["what_if"]
    assert [(entry["match"], entry["swap"]) for entry in entries] == [
        (["state", "size"], ["county"]),
        (["state"], ["county", "tenure"]),
        ([], ["size"]),
    ]
    assert [[rate for rate, _ in entry["epsilons"]] for entry in entries] == [["1/100", "1/20", "1/2"]] * 3
    text = command("check", plan, *words).out
    assert "What if" in text
    assert "eps at 1/20" in text
    assert "voids the guarantee" in " ".join(text.split())


def test_figures_of_a_check_compare_what_candidates_reveal(plan, command, tmp_path):
    ended = command("check", plan, "--candidate", "match=state;swap=county", "--figures", tmp_path / "drawn")
    assert ended.code == 0
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {
        f"revealed-by-{axis}.{ending}" for axis in ("epsilon", "error") for ending in ("png", "svg")
    }
    ended = command("check", plan, "--figures", tmp_path / "none")
    assert ended.code == 2 and "nothing to draw" in ended.err and not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "text",
    [
        "county",
        "swap=",
        "match=state",
        "swop=county",
        "swap=county;hold=size",
        "state;swap=county",
        "match=county;swap=county",
        "swap=county,county",
        "swap=county;swap=size",
        "",
    ],
)
def test_candidates_that_cannot_be_read_are_refused(text, plan, command):
    ended = command("check", plan, "--candidate", text)
    assert ended.code == 2
    assert "cannot be read" in ended.err


def test_unknown_columns_in_a_candidate_or_a_table_are_refused(plan, command):
    for option, text in (("--candidate", "swap=tract"), ("--by", "tract,tenure")):
        ended = command("check", plan, option, text)
        assert ended.code == 2
        assert "'tract'" in ended.err


@pytest.mark.parametrize("text", ["five", "0.05,five", "2"])
def test_rates_that_are_none_are_refused(text, plan, command):
    ended = command("check", plan, "--rates", text)
    assert ended.code == 2
    assert "swap rate" in ended.err


def test_a_table_is_forecast_with_its_true_counts(plan, command):
    ended = command("check", plan, "--by", "tenure,county")
    assert "Table by 'tenure' and 'county': true count, expected count after the swap" in ended.out
    assert "Table by 'tenure': kept exactly." in command("check", plan, "--by", "tenure").out
