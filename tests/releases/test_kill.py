"""Runs that are killed at any moment leave no release or a whole one, and runs that are stopped leave nothing.

``kill -9`` cannot be caught: what it leaves is hidden, private, and named by the next run. Ctrl-C and a polite
termination clean up behind themselves. Moments are counted from the start of a run, or from when its unfinished folder
appears, so that some fall for certain into the writing.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repeats import some_or
from stirred.releases.folder.atomic import leftovers
from stirred.swap.verifying import verify
from stirred.tables.synthetic import households_and_persons

HOUSEHOLDS = some_or(30_000, 100_000)
"""With three times as many persons: enough for a writing phase that a kill can hit."""
PATIENCE = 120
PLAN = """\
stirred = 1
mechanism = "swap"
unit = "household"
rate = 0.05
chosen_from = "public"
match = ["region", "size"]
swap = ["county", "tract"]
hold = ["tenure", "type"]
id = "household_id"
tables = [["county", "tenure"]]
format = "csv"
[input]
path = "households.parquet"
[[linked]]
name = "persons"
link = "household_id"
id = "person_id"
hold = "rest"
[linked.input]
path = "persons.parquet"
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    households, persons = households_and_persons(HOUSEHOLDS)
    households.write_parquet(folder / "households.parquet")
    persons.write_parquet(folder / "persons.parquet")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder / "plan.toml"


@pytest.fixture
def place(tmp_path) -> Path:
    """Where releases are written, and nothing else."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


PROGRAM = [sys.executable, "-X", "faulthandler", "-c", "from stirred.cli.app import main; main()", "release"]


def start(plan: Path, place: Path) -> subprocess.Popen[str]:
    words = [*PROGRAM, str(plan)]
    return subprocess.Popen(
        [*words, "--out", str(place / "out")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end_of(run: subprocess.Popen[str]) -> str:
    """Wait for a run and return what it said; one that does not end is made to say where it is."""
    try:
        return run.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGABRT)
        try:
            said = run.communicate(timeout=PATIENCE)[1]
        finally:
            run.kill()
        pytest.fail(f"the run did not end within {PATIENCE} seconds:\n{said}")


def unfinished(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.name.startswith("."))


def hit(plan: Path, place: Path, number: signal.Signals, delay: float, once_writing: bool) -> tuple[int, str]:
    """Start a run, send it a signal after ``delay``, and wait for its end: (exit code, what it said)."""
    known = set(unfinished(place))
    with start(plan, place) as run:
        deadline = time.monotonic() + PATIENCE
        while once_writing and run.poll() is None and set(unfinished(place)) <= known:
            if time.monotonic() > deadline:
                end_of(run)
            time.sleep(0.002)
        time.sleep(delay)
        if run.poll() is None:
            run.send_signal(number)
        said = end_of(run)
    return run.returncode, said


def assert_whole_or_absent(place: Path) -> bool:
    """Whether there is a release; if so it must verify, whatever happened to the run that wrote it."""
    out = place / "out"
    if not out.exists():
        return False
    assert {one.words.partition(":")[0] for one in verify(out) if not one.holds} <= {"report.html"}
    shutil.rmtree(out)
    return True


def assert_next_run_succeeds_and_names(plan: Path, place: Path, left: list[Path]) -> None:
    with start(plan, place) as run:
        said = end_of(run)
    assert run.returncode == 0, said
    for folder in left:
        assert f"{folder} was left by a run that was killed. It may hold confidential rows. Remove it with: " in said
    assert said.count(" was left by a run ") == len(left)  # a slow machine shows progress too
    assert unfinished(place) == left
    assert assert_whole_or_absent(place)


def kill_many(plan: Path, place: Path, moments: list[tuple[float, bool]]) -> int:
    """Kill a run at every moment; how many left an unfinished folder."""
    for delay, once_writing in moments:
        before = len(unfinished(place))
        code, _ = hit(plan, place, signal.SIGKILL, delay, once_writing)
        assert code in (-signal.SIGKILL, 0)
        whole = assert_whole_or_absent(place)
        assert whole or code != 0
        assert len(unfinished(place)) - before <= (0 if whole else 1)
    left = unfinished(place)
    assert leftovers(place) == left
    assert all(stat.S_IMODE(folder.stat().st_mode) & 0o022 == 0 for folder in left)
    assert_next_run_succeeds_and_names(plan, place, left)
    for folder in left:
        shutil.rmtree(folder)
    return len(left)


# -- kill -9 ---------------------------------------------------------------------------------------------------


def test_a_killed_run_leaves_a_whole_release_or_none_and_the_next_one_names_what_is_left(plan, place):
    assert kill_many(plan, place, [(0.05, False), (0.0, True)]) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_runs_killed_at_any_moment_leave_a_whole_release_or_none(seed, plan, place):
    began = time.monotonic()
    assert_next_run_succeeds_and_names(plan, place, [])
    length = time.monotonic() - began
    moments = random.Random(seed)
    anywhere = [(moments.uniform(0.05, length), False) for _ in range(8)]
    in_writing = [(moments.uniform(0, 0.25), True) for _ in range(8)]
    assert kill_many(plan, place, anywhere + in_writing) >= 1


# -- signals that can be caught ----------------------------------------------------------------------------------


def assert_nothing_is_left_after(number: signal.Signals, delay: float, once_writing: bool, plan: Path, place: Path):
    code, said = hit(plan, place, number, delay, once_writing)
    if not assert_whole_or_absent(place):  # a signal that comes when all is done finds a whole release
        assert code != 0
        if once_writing:
            assert "interrupted. Partial files were removed" in said
            assert code == 130
    assert list(place.iterdir()) == []


def test_ctrl_c_while_writing_leaves_nothing_at_all(plan, place):
    assert_nothing_is_left_after(signal.SIGINT, 0.05, True, plan, place)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.15])
def test_a_run_that_is_stopped_while_writing_leaves_nothing_at_all(number, delay, plan, place):
    assert_nothing_is_left_after(number, delay, True, plan, place)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.1, 0.5, 1.0, 1.5, 2.0])
def test_a_run_that_is_stopped_before_it_writes_leaves_nothing_at_all(number, delay, plan, place):
    assert_nothing_is_left_after(number, delay, False, plan, place)


@pytest.mark.slow
def test_a_run_whose_terminal_goes_away_leaves_a_whole_release(plan, place):
    read, write = os.pipe()
    os.close(read)
    words = [*PROGRAM, plan, "--out", place / "out"]
    ended = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    os.close(write)
    assert ended.returncode != 2
    assert b"Traceback" not in ended.stderr
    assert assert_whole_or_absent(place)
    assert unfinished(place) == []
