"""``stirred audit``: what it prints, and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner, Result

from stirred import errors
from stirred.lab.commands import register, seconds_of
from stirred.swap.drawing import release as release_swap
from stirred.topdown import preset

SWAP = 'stirred = 1\nmechanism = "swap"\nrate = 0.05\nmatch = ["size"]\nswap = ["county"]\nhold = ["tenure"]\n'
ALWAYS = ["--false-alarm", "1e-9"]
"""So rarely does an audit of ours fail by chance."""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller files than by default, for the time they take."""
    monkeypatch.setattr("stirred.lab.audit.swap_audit.DEFAULT_RECORDS", 20_000)


def run(*words: str | Path) -> Result:
    app = typer.Typer()
    register(app)
    ended = CliRunner().invoke(app, ["audit", *(str(word) for word in words)])
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(SWAP, encoding="utf-8")
    return path


def test_our_own_swap_is_audited(plan):
    ended = run("plan", plan, "--time", "2s", *ALWAYS)
    assert ended.exit_code == 0, ended.output
    assert "Nothing wrong was found" in ended.output
    assert "Permutation Swapping Algorithm" in ended.output
    assert "False alarms: at most 1e-09" in ended.output


def test_our_own_measurements_are_audited(tmp_path):
    chosen = preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"])
    (tmp_path / "plan.toml").write_text(chosen.to_toml(), encoding="utf-8")
    ended = run("plan", tmp_path / "plan.toml", "--time", "2s", "--json", *ALWAYS)
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.output)
    assert found["passed"]
    assert {one["name"] for one in found["results"]} >= {"pair-one-record", "pair-alone-in-its-place"}


def test_a_command_that_swaps_nothing_is_found_wrong(plan):
    ended = run("program", plan, "--command", "cp {input} {output}", "--time", "2s")
    assert ended.exit_code == 1
    assert "BROKEN" in ended.output
    assert "WRONG" in ended.output


def test_a_python_function_that_ends_python_does_not_pass(plan, tmp_path, monkeypatch):
    (tmp_path / "leaves.py").write_text("import sys\ndef f(tables):\n    sys.exit(0)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(errors.StirredError, match=r"sys\.exit\(0\)"):  # which the command's outermost layer ends with 2
        run("program", plan, "--python", "leaves:f", "--time", "2s")


def test_a_python_function_that_swaps_nothing_is_found_wrong(plan, tmp_path, monkeypatch):
    (tmp_path / "nothing_swapped.py").write_text("def same(tables):\n    return tables\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    ended = run("program", plan, "--python", "nothing_swapped:same", "--time", "2s", "--json")
    assert ended.exit_code == 1
    assert not json.loads(ended.output)["passed"]


@pytest.mark.parametrize("given", [[], ["--command", "cp {input} {output}", "--python", "a:b"]])
def test_a_program_is_named_once(given, plan):
    assert run("program", plan, *given).exit_code == 2


def test_runs_and_time_cannot_both_be_given(plan):
    assert run("plan", plan, "--runs", "2", "--time", "1s").exit_code == 2


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("no-such-program {input} {output}", "program-not-found"),
        ("false {input} {output}", "program-failed"),
        ("true {input} {output}", "program-wrote-nothing"),
        ("cp {input} elsewhere", "program-command"),
        ("sh -c 'sleep 30' x {input} {output}", "program-hangs"),
        ("sh -c 'head -c 300 /dev/zero > \"$2\"' x {input} {output}", "program-wrote-no-table"),
        ("sh -c 'echo a,b > \"$2\"' x {input} {output}", "program-other-columns"),
    ],
)
def test_a_program_that_cannot_be_audited_is_named(command, kind, plan):
    with pytest.raises(errors.StirredError) as refused:
        run("program", plan, "--command", command, "--time", "1s", "--timeout", "1s")
    assert refused.value.kind == kind


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h", 3600), ("1.5m", 90), (" 20 ", 20)])
def test_times_are_read(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5 days", "-1s", "0s", "1e3s", "nan"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(errors.StirredError, match="90s, 5m or 1h"):
        seconds_of(text)


# -- releases --------------------------------------------------------------------------------------------------------


def households(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "size": rng.integers(1, 4, rows),
            "county": rng.choice(["a", "b", "c"], rows),
            "tenure": rng.choice(["o", "r"], rows),
            "rent": rng.integers(1, 300, rows),
        }
    )


@pytest.fixture
def released(tmp_path: Path) -> tuple[Path, Path]:
    from stirred.swap.plan.fields import SwapPlan

    households().write_csv(tmp_path / "input.csv")
    chosen: Any = SwapPlan(match=["size"], swap=["county"], hold=["tenure", "rent"], rate=0.05)
    release_swap(chosen, tmp_path / "input.csv", out=tmp_path / "out")
    return tmp_path / "out", tmp_path / "input.csv"


@pytest.mark.parametrize("table", ["", "microdata="])
def test_a_release_of_ours_has_no_traces(table, released):
    ended = run("release", released[0], "--input", f"{table}{released[1]}", *ALWAYS)
    assert ended.exit_code == 0, ended.output
    assert ended.output.startswith("Confidential")


def test_a_release_with_traces_is_found(released, tmp_path):
    households().write_csv(tmp_path / "as_it_was.csv")
    ended = run("release", tmp_path / "as_it_was.csv", "--input", released[1], "--json")
    assert ended.exit_code == 1
    found = json.loads(ended.output)
    assert [one["name"] for one in found["results"] if one["wrong"]] == ["unchanged-as_it_was", "row-order-as_it_was"]


def test_an_input_of_a_table_that_is_not_released_is_refused(released):
    with pytest.raises(errors.StirredError) as refused:
        run("release", released[0], "--input", f"persons={released[1]}")
    assert refused.value.kind == "unknown-table"


def test_several_inputs_are_named_by_their_tables(released):
    with pytest.raises(errors.StirredError) as refused:
        run("release", released[0], "--input", released[1], "--input", released[1])
    assert refused.value.kind == "nothing-to-compare"
