"""A release from published noisy measurements: fitted and verified like any other, gone on with when interrupted, and
never paid for."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from noisy_files import publish

import stirred
from stirred.cli import app
from stirred.errors import StirredError
from stirred.tables.synthetic.population import DOMAINS
from stirred.topdown.data.constraints import Known
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.noisy_files import reading
from stirred.topdown.noisy_files.reading import open_noisy_measurements
from stirred.verbs import release_measurements


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """The measurements of a generated census, as noisy measurement files."""
    folder = tmp_path_factory.mktemp("published")
    publish(folder, persons=2_000, seed=9)
    return folder / "files"


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["stirred", *(str(word) for word in words)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return int(ended.value.code or 0)


def test_a_release_from_published_measurements_is_fitted_verified_and_says_whose_guarantee_it_is(
    files, tmp_path, monkeypatch, capsys
):
    assert run(monkeypatch, "release", "--measurements", files, "--out", tmp_path / "made") == 0
    said = capsys.readouterr().out
    assert "Nothing was spent" in said and "ledger" not in said
    assert not (tmp_path / "made-work").exists()
    assert all(verdict.holds for verdict in stirred.verify(tmp_path / "made"))
    certificate = json.loads((tmp_path / "made" / "certificate.json").read_text())
    assert "noisy measurement files" in certificate["plan"]["measured_by"]
    words = (tmp_path / "made" / "README.txt").read_text()
    assert "They are public" in words and "spends nothing" in words
    assert "whose guarantee it is" in " ".join(words.split())
    own = MeasuredRelease.open(tmp_path / "made")
    read = open_noisy_measurements(files)
    for level in ("county", "block"):
        expected = read.estimate("persons", ("votingage",), level=level)
        found = own.estimate("persons", ("votingage",), level=level)
        assert (found.values == expected.values).all() and (found.variances == expected.variances).all()


def test_totals_that_are_given_are_kept_exactly(files, tmp_path):
    made = release_measurements(files, out=tmp_path / "made", totals=files / "totals.csv")
    assert made.counts("persons", "state").sum() == 2_000
    assert all(verdict.holds for verdict in stirred.verify(tmp_path / "made"))


def test_an_interrupted_fit_is_gone_on_with_from_the_measurements_that_were_taken_in(files, tmp_path, monkeypatch):
    honest = Known.kept
    levels = []

    def stops(known, table, level):
        levels.append(level)
        if len(levels) == 3:
            raise KeyboardInterrupt
        return honest(known, table, level)

    with monkeypatch.context() as stopped:
        stopped.setattr(Known, "kept", stops)
        with pytest.raises(KeyboardInterrupt):
            release_measurements(files, out=tmp_path / "made", work=tmp_path / "work")
    assert not (tmp_path / "made").exists() and (tmp_path / "work" / "draw.json").is_file()
    assert not (tmp_path / "work" / "scattered").exists()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("taken in twice")

    monkeypatch.setattr(reading, "adopt", never)
    levels.clear()
    monkeypatch.setattr(Known, "kept", lambda *given: (levels.append(given[2]), honest(*given))[1])
    release_measurements(files, out=tmp_path / "made", work=tmp_path / "work")
    assert levels[0] == 2  # two levels of the first table were finished
    release_measurements(files, out=tmp_path / "again", work=tmp_path / "work")
    for path in (one for one in (tmp_path / "made").rglob("*") if one.is_file()):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path / "made")).read_bytes(), path


def test_a_work_folder_is_gone_on_with_for_the_same_files_and_options_only(files, tmp_path):
    release_measurements(files, out=tmp_path / "made", work=tmp_path / "work", down_to="tract")
    for options in ({}, {"down_to": "county"}, {"down_to": "tract", "totals": files / "totals.csv"}):
        with pytest.raises(StirredError, match="other noisy measurement files, or with other options"):
            release_measurements(files, out=tmp_path / "other", work=tmp_path / "work", **options)
    shutil.copytree(files / "US_Person_PL_PROD", tmp_path / "persons")
    with pytest.raises(StirredError, match="other noisy measurement files"):
        release_measurements(tmp_path / "persons", out=tmp_path / "other", work=tmp_path / "work", down_to="tract")
    release_measurements(files, out=tmp_path / "other", work=tmp_path / "work", down_to="tract")
    own = stirred.topdown.preset("pl94-2020", DOMAINS)
    with pytest.raises(StirredError, match="work folder"):
        stirred.topdown.reopen(own, tmp_path / "work")


def test_measurements_go_with_no_plan_no_ledger_and_no_comparison(files, tmp_path, monkeypatch, capsys):
    out = ("--out", tmp_path / "made")
    plan = tmp_path / "plan.toml"
    plan.write_text('stirred = 1\nmechanism = "topdown"\n')
    assert run(monkeypatch, "release", *out) != 0
    assert run(monkeypatch, "release", plan, "--measurements", files, *out) != 0
    assert "either a plan or --measurements" in capsys.readouterr().err
    assert run(monkeypatch, "release", "--measurements", files, *out, "--ledger", tmp_path / "a.ledger") != 0
    assert "spend nothing" in capsys.readouterr().err
    assert run(monkeypatch, "release", plan, *out, "--down-to", "tract") != 0
    assert "goes with --measurements" in " ".join(capsys.readouterr().err.split())
    assert run(monkeypatch, "release", "--measurements", tmp_path, *out) != 0
    assert "not laid out as described" in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_estimates_of_published_files_on_the_command_line(files, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "estimate", files, "--level", "county", "--by", "cenrace") == 0
    said = capsys.readouterr()
    assert "white-black" in said.out and "noisy-measurements" in said.err and "totals of states" in said.err
    assert run(monkeypatch, "estimate", files, "--tabulated", "county", "--totals", files / "totals.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)
    (tmp_path / "list.csv").write_text("block\n01001\n")
    assert run(monkeypatch, "estimate", files, "--blocks", tmp_path / "list.csv") == 0
    assert "list" in capsys.readouterr().out
    assert run(monkeypatch, "estimate", files, "--tabulated", "village") != 0
    assert run(monkeypatch, "estimate", files, "--tabulated", "county", "--level", "county") != 0
    assert run(monkeypatch, "estimate", files, "--tabulated", "county", "--share", "hispanic") == 0
    assert run(monkeypatch, "estimate", files.parent / "release", "--level", "county", "--states", "01") != 0
    assert "folders of noisy measurement files" in capsys.readouterr().err
    assert run(monkeypatch, "estimate", files.parent / "release", "--tabulated", "county") == 0
    assert run(monkeypatch, "noisy-measurements", files.parent / "release", tmp_path / "files") == 0
    assert "persons:" in capsys.readouterr().out
    assert run(monkeypatch, "noisy-measurements", files.parent / "release", tmp_path / "files") != 0


@pytest.mark.slow
def test_a_release_from_published_measurements_that_is_killed_is_gone_on_with(files, tmp_path):
    words = [sys.executable, "-c", "from stirred.cli.app import main; main()", "release", "--measurements", str(files)]
    words += ["--out", str(tmp_path / "made"), "--work", str(tmp_path / "work")]
    for moment in (
        lambda: any(tmp_path.iterdir()),
        (tmp_path / "work").exists,
        (tmp_path / "work/finished-parts").exists,
    ):
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            while running.poll() is None and not moment():
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
    if not (tmp_path / "made").exists():
        assert subprocess.run(words, check=False, capture_output=True).returncode == 0
    # The process that was not killed drew its report, and tests do not draw: see conftest.py.
    open_ones = {one.words.partition(":")[0] for one in stirred.verify(tmp_path / "made") if not one.holds}
    assert open_ones <= {"the drawings of report.html"}
