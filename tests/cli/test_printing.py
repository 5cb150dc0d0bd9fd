"""What commands print: no control characters of somebody else's, nothing lost to an ended pipe, exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import stirred
from stirred.cli import app, printing
from stirred.errors import StirredError

ESCAPE = "\x1b[2K\rholds  everything\u202e\x9b1A"


def specification(tmp_path: Path, **fields: object) -> Path:
    text = json.loads(stirred.read("epsilon=1").to_json())
    path = tmp_path / "specification.json"
    path.write_text(json.dumps(text | fields), encoding="utf-8")
    return path


def clean(ended) -> bool:
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]", ended.out + ended.err)


# -- control characters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["lint", "explain", "compare", "verify", "check", "init", "deployments", "docs"])
def test_a_name_with_control_characters_is_shown_with_escapes(verb, command):
    ended = command(verb, ESCAPE + "\nholds  it", *(["rho=1"] if verb == "compare" else []))
    assert ended.code == 2 and clean(ended)
    assert "\nholds" not in ended.err and "\\x1b[2K" in ended.err


@pytest.mark.parametrize("verb", ["lint", "explain", "compare"])
def test_a_specification_whose_texts_have_line_breaks_is_refused(verb, command, tmp_path):
    path = specification(tmp_path, name="a\nholds  everything")
    ended = command(verb, path, *(["rho=1"] if verb == "compare" else []))
    assert ended.code == 2 and "'name' has line breaks or control characters" in ended.err


def test_a_unit_typed_with_escapes_is_printed_without_them_and_json_keeps_it(command):
    typed = "rho=1,unit=\x1b[2Kx\x9b"
    assert clean(command("lint", typed))
    ended = command("explain", typed, "--json")
    assert clean(ended)
    assert json.loads(ended.out)["specification"]["input_premetric"]["unit"] == "\x1b[2Kx\x9b"


@pytest.mark.parametrize("field", ["unit", "dataset", "match", "publish"])
def test_a_plan_with_line_breaks_in_a_name_is_refused(field):
    value = {"unit": "a\nb", "dataset": "a\x1b", "match": ["a\rb"], "publish": [["a\nb"]]}[field]
    with pytest.raises(StirredError) as refusal:
        stirred.SwapPlan(**{"swap": ["s"], "hold": ["h"], "rate": 0.5, field: value})
    assert refusal.value.kind == "plan-field" and f"{field}" in str(refusal.value)


def test_a_licence_may_have_several_lines():
    assert stirred.SwapPlan(swap=["s"], hold=["h"], rate=0.5, licence="one\ntwo").licence == "one\ntwo"


def test_messages_are_one_line_and_cut():
    error = StirredError("kind", "x\n" * 5_000, "y" * 5_000)
    assert "\n" not in str(error) and len(str(error)) < 4_100 and error.problem.endswith("…")


def test_cells_are_exact_in_a_pipe_and_one_line_each_on_a_terminal(monkeypatch):
    table = pa.table({"a": ["x\nholds\x1b"], "count": [1]})
    for person in (False, True):
        stream = io.StringIO()
        stream.isatty = lambda person=person: person
        monkeypatch.setattr(sys, "stdout", printing.Printed(stream))
        printing.show(table)
        assert stream.getvalue() == ("a,count\nx\\nholds\\u001b,1\n" if person else 'a,count\n"x\nholds\x1b",1\n')


# -- exit codes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (MemoryError(), app.REFUSED),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 9_000), app.REFUSED),
        (OSError(errno.ENOSPC, "No space left on device"), app.REFUSED),
        (OSError(errno.ENOENT, "No such file"), app.FAULT),
        (RuntimeError("SECRET-7731"), app.FAULT),
        (type("PanicException", (BaseException,), {})("SECRET-7731"), app.FAULT),
        (KeyboardInterrupt(), app.INTERRUPTED),
    ],
    ids=["memory", "long-name", "full-disk", "bug", "bug-with-text", "panic", "ctrl-c"],
)
def test_exit_codes_tell_refusals_from_faults(fault, code, command, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.delenv("STIRRED_DEBUG", raising=False)
    monkeypatch.setattr("stirred.spec.loading.load", fail)
    ended = command("lint", "rho=1")
    assert ended.code == code
    assert "SECRET" not in ended.err and len(ended.err) < 6_000
    assert ("a fault in stirred" in ended.err) == (code == app.FAULT)


def test_the_page_and_the_help_list_every_exit_code(command):
    page, help = command("docs", "exit-codes").out, command("--help").out
    for code in (app.FINE, app.VERDICT, app.REFUSED, app.FAULT, app.INTERRUPTED):
        assert f"| {code} |" in page and re.search(rf"\b{code} [a-z]", " ".join(help.split()))


# -- pipes that end --------------------------------------------------------------------------------------------


def piped(*words: object) -> int:
    """The exit code of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code = "import sys; from stirred.cli.app import main; main()"
        return subprocess.run([sys.executable, "-c", code, *map(str, words)], stdout=writing, check=False).returncode
    finally:
        os.close(writing)


def test_an_ended_pipe_leaves_the_exit_code_to_the_work(tmp_path):
    assert piped("deployments") == 0
    assert piped("verify", tmp_path) == 2


@pytest.mark.slow
def test_an_ended_pipe_does_not_stop_a_release(tmp_path):
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    rows.write_csv(tmp_path / "rows.csv")
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, input={"path": "rows.csv"})
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    out = tmp_path / "out"
    assert piped("release", tmp_path / "plan.toml", "--out", out) == 0
    # Another process drew its report, and tests do not draw: see conftest.py.
    assert {one.words.partition(":")[0] for one in stirred.verify(out) if not one.holds} <= {
        "the drawings of report.html"
    }
    assert piped("verify", out) == 0
    with (out / "README.txt").open("a", encoding="utf-8") as readme:
        readme.write("one more line\n")
    assert piped("verify", out) == 1
    assert piped("explain", "rho=1") == 0


@pytest.mark.parametrize("verb", ["verify", "tabulate", "estimate", "explain", "lint", "check", "init", "release"])
@pytest.mark.parametrize("name", ["x" * 5_000, "a/" * 3_000])
def test_a_name_that_no_file_can_have_is_refused(verb, name, command, tmp_path):
    more = {"tabulate": ["--by", "a"], "release": ["--out", tmp_path / "out"]}.get(verb, [])
    ended = command(verb, name, *more)
    assert ended.code == 2 and len(ended.err) < 6_000


@pytest.mark.parametrize("option", ["--html", "--figures"])
def test_an_output_whose_name_no_file_can_have_is_refused(option, command):
    assert command("explain", "rho=1", option, "x" * 5_000).code == 2


# -- numbers ---------------------------------------------------------------------------------------------------

NUMBERS = ["1e9999", "1e999999999", "1e-999999999", "9" * 100_000, "1/0", "nan", "-1", "1/" + "7" * 1_100]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["rho", "epsilon", "mu"])
@pytest.mark.parametrize("verb", ["lint", "explain", "compare"])
def test_numbers_beyond_all_bounds_are_refused(verb, name, number, command):
    ended = command(verb, f"{name}={number}", *(["rho=1"] if verb == "compare" else []))
    assert ended.code == 2 and len(ended.err) < 6_000


@pytest.mark.parametrize("number", ["1e999", "1e400", "1e308", "1" * 400, "1e-400", "1e-999", "5e-324"])
@pytest.mark.parametrize("name", ["rho", "epsilon", "mu", "epsilon=1,delta", "epsilon=1,alpha"])
@pytest.mark.parametrize("verb", ["lint", "explain", "compare"])
def test_numbers_beyond_what_a_float_can_hold_are_worked_with_or_refused(verb, name, number, command):
    ended = command(verb, f"{name}={number}", *(["rho=1"] if verb == "compare" else []))
    assert ended.code in (0, 2)


@pytest.mark.parametrize("size", ["1" * 400, "10000000001", "0"])
@pytest.mark.parametrize("budget", ["rho=1", "mu=1", "epsilon=1,delta=1e-6"])
def test_groups_beyond_all_people_are_refused(size, budget, command):
    assert command("explain", budget, "--group", size).code == 2
