"""``stirred audit noise`` as a person types it: files, columns, standard input, programs, our own sampler."""

from __future__ import annotations

import io
import json
import shlex
import sys

import numpy as np
import polars as pl
import pytest

from stirred.lab.audit.laws import coin, gaussian
from stirred.noise import SeededSource

GAUSSIAN = ("--law", "gaussian", "--sigma2", "10")


@pytest.fixture
def run(command):
    return lambda *words: command("audit", "noise", *words)


@pytest.fixture
def good(tmp_path):
    return written(tmp_path / "draws.txt", gaussian(10).draw(5000, SeededSource(1)))


def written(path, numbers):
    path.write_text("".join(f"{number}\n" for number in numbers), encoding="utf-8")
    return path


def test_draws_of_the_stated_law_pass(run, good):
    ended = run(good, *GAUSSIAN)
    assert ended.code == 0 and "Nothing wrong was found" in ended.out
    assert "5,000 draws" in ended.out and "Sigma too small by 1% takes" in ended.out


def test_draws_of_another_law_do_not(run, good):
    ended = run(good, "--law", "gaussian", "--sigma2", "20")
    assert ended.code == 1 and "Too little noise, a privacy fault" in ended.out


def test_json_says_the_same(run, good):
    ended = run(good, "--law", "laplace", "--scale", "3", "--false-alarm", "0.001", "--json")
    fields = json.loads(ended.out)
    assert ended.code == 1 and not fields["passed"] and fields["false_alarm"] == 0.001
    assert {one["name"] for one in fields["results"]} >= {"mean", "spread", "fit", "tails", "repeats"}


def test_unrounded_noise_is_wrong(run, tmp_path):
    noise = np.random.default_rng(1).normal(0, 10**0.5, 300)
    ended = run(written(tmp_path / "draws.txt", noise), *GAUSSIAN)
    assert ended.code == 1 and "Digits after the point can betray" in ended.out


def test_standard_input_is_read(run, good, monkeypatch):
    class Piped:
        buffer = io.BytesIO(good.read_bytes())

    monkeypatch.setattr(sys, "stdin", Piped)
    assert run("-", *GAUSSIAN).code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_a_column_of_a_table_is_read(run, tmp_path, ending):
    frame = pl.DataFrame({"place": ["a"] * 3000, "noise": gaussian(10).draw(3000, SeededSource(2))})
    path = tmp_path / f"table.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    elif ending == "csv":
        frame.write_csv(path)
    else:
        import gzip

        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    assert run(path, "--column", "noise", *GAUSSIAN).code == 0
    missing = run(path, "--column", "noisy", *GAUSSIAN)
    assert missing.code == 2 and "no column 'noisy'" in missing.said
    text = run(path, "--column", "place", *GAUSSIAN)
    assert text.code == 2 and "is not all numbers" in text.said


def test_a_table_of_one_column_needs_no_name(run, tmp_path):
    draws = gaussian(10).draw(3000, SeededSource(2))
    pl.DataFrame({"noise": draws}).write_parquet(tmp_path / "one.parquet")
    pl.DataFrame({"noise": draws, "other": draws}).write_parquet(tmp_path / "two.parquet")
    assert run(tmp_path / "one.parquet", *GAUSSIAN).code == 0
    two = run(tmp_path / "two.parquet", *GAUSSIAN)
    assert two.code == 2 and "'noise' and 'other'" in two.said and "--column" in two.said


def test_nulls_are_no_draws(run, tmp_path):
    pl.DataFrame({"noise": [1, None, 2] * 100}).write_parquet(tmp_path / "draws.parquet")
    ended = run(tmp_path / "draws.parquet", *GAUSSIAN)
    assert ended.code == 2 and "none missing" in ended.said


@pytest.mark.parametrize(
    "law",
    [("gaussian", "--sigma2", "3/7"), ("laplace", "--scale", "3"), ("integers", "--below", "10"),
     ("coin", "--probability", "1/20")],
)  # fmt: skip
def test_our_own_sampler_passes(run, monkeypatch, law):
    monkeypatch.setattr("stirred.lab.audit.laws.SystemSource", lambda: SeededSource(5))
    ended = run("--own", "4000", "--law", *law)
    assert ended.code == 0 and "stirred's own sampler" in ended.out


# -- programs ------------------------------------------------------------------------------------------------


def program(code):
    return shlex.join([sys.executable, "-c", code])


def test_a_program_is_run_twice_and_a_fixed_seed_is_seen(run, tmp_path):
    draws = written(tmp_path / "coins.txt", coin("1/2").draw(3000, SeededSource(3)))
    fixed = run("--command", f"cat {draws}", "--law", "coin", "--probability", "1/2")
    assert fixed.code == 1 and "The seed may have been used again" in fixed.out
    assert "The first 3,000 are of one run of the program" in fixed.out


def test_a_program_that_draws_afresh_passes(run, tmp_path):
    """It prints the first half of a file, and the second half the next time."""
    draws = written(tmp_path / "draws.txt", gaussian(10).draw(4000, SeededSource(4)))
    code = (
        f"import pathlib; mark = pathlib.Path({str(tmp_path / 'mark')!r}); "
        f"lines = pathlib.Path({str(draws)!r}).read_text().split(); "
        "print('\\n'.join(lines[2000:] if mark.exists() else lines[:2000])); mark.touch()"
    )
    assert run("--command", program(code), *GAUSSIAN).code == 0


@pytest.mark.parametrize(
    ("command_line", "words"),
    [
        ("no-such-program-anywhere", "there is no such program"),
        ("''", "there is no such program"),
        ("echo 'open", "quotes are not closed"),
        (program("import sys; sys.exit('no luck')"), "exit code 1 and said: no luck"),
        (program("raise SystemExit(3)"), "exit code 3."),
        (program("print('a')"), "Line 1 of what the program printed is not a number"),
        (program("pass"), "100 or more"),
    ],
)
def test_programs_that_give_no_draws_are_named(run, command_line, words):
    ended = run("--command", command_line, *GAUSSIAN)
    assert ended.code == 2 and words in ended.said


def test_a_program_that_hangs_is_ended_with_all_that_it_started(run, tmp_path):
    mark = tmp_path / "mark"
    child = program(f"import time, pathlib; time.sleep(1.5); pathlib.Path({str(mark)!r}).touch()")
    code = f"import subprocess, shlex, time; subprocess.Popen(shlex.split({child!r})); time.sleep(60)"
    ended = run("--command", program(code), "--seconds", "0.5", *GAUSSIAN)
    assert ended.code == 2 and "did not end within 0.5 seconds" in ended.said
    import time

    time.sleep(1.5)
    assert not mark.exists()


def test_a_program_that_prints_without_end_is_stopped(run, monkeypatch):
    monkeypatch.setattr("stirred.lab.audit.noise_audit.MOST_BYTES", 100_000)
    ended = run("--command", "yes 1", *GAUSSIAN)
    assert ended.code == 2 and "printed more than 100,000 bytes" in ended.said


# -- what cannot be asked ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [("1\n2\nSECRET-7731\n3\n", "Line 3 of"), ("noise\n1\n2\n", "Line 1 of"), ("1\n\n2\n", "Line 2 of"),
     ("1\n2\n", "100 or more"), ("", "100 or more"), ("1" * 500 + "\n", "Line 1 of"),
     ("nan\n" * 200, "none missing or infinite"), ("99999999999999999999\n" * 200, "64 bits")],
)  # fmt: skip
def test_files_that_hold_no_draws_are_refused_without_quoting_them(run, tmp_path, text, words):
    path = tmp_path / "draws.csv"
    path.write_text(text, encoding="utf-8")
    ended = run(path, *GAUSSIAN)
    assert ended.code == 2 and words in ended.said and "SECRET" not in ended.said


def test_a_file_that_is_too_long_is_refused(run, good, monkeypatch):
    monkeypatch.setattr("stirred.lab.audit.noise_audit.MOST_BYTES", 1000)
    ended = run(good, *GAUSSIAN)
    assert ended.code == 2 and "at most 1,000 bytes" in ended.said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.txt", *GAUSSIAN), "Nothing can be read at nowhere.txt"),
        (GAUSSIAN, "one of FILE, --own or --command"),
        (("nowhere.txt", "--own", "1000", *GAUSSIAN), "one of FILE, --own or --command"),
        (("--own", "1000", "--column", "a", *GAUSSIAN), "--column must go with"),
        (("--own", "1000", "--law", "gaussian"), "must have --sigma2"),
        (("--own", "1000", "--law", "coin", "--sigma2", "10"), "must have --probability"),
        (("--own", "1000", *GAUSSIAN, "--scale", "3"), "no parameter of another law"),
        (("--own", "1000", "--law", "coin", "--probability", "2"), "at most 1"),
        (("--own", "1000", "--law", "integers", "--below", "x"), "must be a number"),
        (("--own", "1000", *GAUSSIAN, "--false-alarm", "2"), "must be between 0 and 1"),
        (("--own", "50", *GAUSSIAN), "100 or more"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(run, words, said):
    ended = run(*words)
    assert ended.code == 2 and said in ended.said
