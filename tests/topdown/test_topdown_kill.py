"""A TopDown run that is killed leaves measurements whole or absent, paid for or not there, and can be gone on with."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stirred.releases.ledger.ledger import Ledger
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown import preset, reopen, verify
from stirred.topdown.plan.fields import TopDownPlan

PATIENCE = 120
PROGRAM = [sys.executable, "-X", "faulthandler", "-c", "from stirred.cli.app import main; main()", "release"]

HOUSED = {
    "table": "persons", "counted": "units", "where": {"hhgq": ["household"]},
    "counted_where": {"occupancy": ["occupied"]}, "at_least": 1, "at_most": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    Population(20_000, seed=5).write(folder)
    files = {"geography": "blocks.parquet", "persons": "persons.parquet"}
    files |= {"units": "units.parquet", "facilities": "facilities.parquet"}
    chosen = preset("pl94-2020", DOMAINS, dataset="a census", chosen_from="public", relations=[HOUSED])
    (folder / "plan.toml").write_text(chosen.reading(files).to_toml(), encoding="utf-8")
    return folder / "plan.toml"


Moment = float | Callable[[Path], bool]
"""Seconds after the start, or what is seen in the folder that a run writes to."""


def measuring(place: Path) -> bool:
    """The draw has begun; it takes a second until it is paid for."""
    return any(path.name.startswith(".work.stirred-unfinished-") for path in place.iterdir())


def fitting(place: Path) -> bool:
    """The draw is paid for."""
    return (place / "work").exists()


def a_level_is_fitted(place: Path) -> bool:
    """The fit has finished a level, and not yet all."""
    return (place / "work" / "finished-parts").exists()


def wait(run: subprocess.Popen[bytes], place: Path, moment: Moment) -> None:
    """Wait for a moment, or the end of the run."""
    begun = time.monotonic()
    while run.poll() is None and time.monotonic() - begun < (moment if isinstance(moment, float) else PATIENCE):
        if not isinstance(moment, float) and moment(place):
            return
        time.sleep(0.002)


def run_and_stop(plan: Path, place: Path, number: signal.Signals, moment: Moment, out: str = "out") -> int:
    words = [*PROGRAM, plan, "--out", place / out, "--work", place / "work", "--ledger", place / "a.ledger"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        wait(run, place, moment)
        run.send_signal(number)  # which does nothing to a run that has ended
        try:
            run.wait(timeout=PATIENCE)
        finally:
            run.kill()
    return run.returncode


def assert_stopped_runs_lose_nothing(plan: Path, place: Path, number: signal.Signals, moments: list[Moment]) -> None:
    ledger = Ledger.create(place / "a.ledger", "a census")
    drawn: tuple[int, str] | None = None
    for moment in moments:
        run_and_stop(plan, place, number, moment)
        if (place / "work").exists():
            found = reopen(TopDownPlan.from_toml(plan), place / "work")  # whole, by its manifest
            assert drawn in (None, found.entry)  # never drawn anew once it is there
            drawn = found.entry
            assert drawn in [(entry.id, entry.seal) for entry in ledger.entries()]
        elif number is not signal.SIGKILL:
            # Counted at the last moment before the folder appears, and not stopped in between.
            assert len(ledger.entries()) == 0
    if not (place / "out").exists():
        assert run_and_stop(plan, place, number, float(PATIENCE)) == 0
    assert {one.words.partition(":")[0] for one in verify(place / "out") if not one.holds} <= {"report.html"}
    assert not a_level_is_fitted(place)
    assert run_and_stop(plan, place, number, float(PATIENCE), "again") == 0  # in one piece, from the same draw
    for file in (path for path in (place / "again").rglob("*") if path.is_file()):
        assert file.read_bytes() == (place / "out" / file.relative_to(place / "again")).read_bytes(), file
    assert len(ledger.entries()) <= len(moments) + 1


@pytest.mark.slow  # without a process: test_finished_levels.py
def test_a_run_that_is_stopped_at_every_stage_is_gone_on_with(plan, tmp_path):
    # By what is there: a second counted from the start could be the one between the spend and the folder.
    assert_stopped_runs_lose_nothing(plan, tmp_path, signal.SIGINT, [measuring, fitting, a_level_is_fitted])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_runs_killed_at_any_moment_lose_nothing(seed, plan, tmp_path):
    chance = random.Random(seed)
    moments: list[Moment] = [*sorted(chance.uniform(0.5, 6) for _ in range(8)), a_level_is_fitted]
    assert_stopped_runs_lose_nothing(plan, tmp_path, signal.SIGKILL, moments)
