"""A TopDown run that is killed leaves measurements whole or absent, paid for or not there, and can be gone on with."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stirred.releases.ledger import Ledger
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown import preset, reopen, verify
from stirred.topdown.plan import TopDownPlan

PATIENCE = 120
PROGRAM = [sys.executable, "-X", "faulthandler", "-c", "from stirred.cli.app import main; main()", "release"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    Population(20_000, seed=5).write(folder)
    files = {"geography": "blocks.parquet", "persons": "persons.parquet"}
    files |= {"units": "units.parquet", "facilities": "facilities.parquet"}
    chosen = preset("pl94-2020", DOMAINS, dataset="a census", chosen_from="public")
    (folder / "plan.toml").write_text(chosen.reading(files).to_toml(), encoding="utf-8")
    return folder / "plan.toml"


def run_and_stop(plan: Path, place: Path, number: signal.Signals, delay: float) -> int:
    words = [*PROGRAM, plan, "--out", place / "out", "--work", place / "work", "--ledger", place / "a.ledger"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        try:
            run.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            run.send_signal(number)
        try:
            run.wait(timeout=PATIENCE)
        finally:
            run.kill()
    return run.returncode


def assert_stopped_runs_lose_nothing(plan: Path, place: Path, number: signal.Signals, delays: list[float]) -> None:
    ledger = Ledger.create(place / "a.ledger", "a census")
    drawn: tuple[int, str] | None = None
    for delay in delays:
        run_and_stop(plan, place, number, delay)
        if (place / "work").exists():
            found = reopen(TopDownPlan.from_toml(plan), place / "work")  # whole, by its manifest
            assert drawn in (None, found.entry)  # never drawn anew once it is there
            drawn = found.entry
            assert drawn in [(entry.id, entry.seal) for entry in ledger.entries()]
        elif number is not signal.SIGKILL:
            # Counted at the last moment before the folder appears, so a spend without it needs a kill in between.
            assert len(ledger.entries()) == 0
    if not (place / "out").exists():
        assert run_and_stop(plan, place, number, PATIENCE) == 0
    assert all(verdict.holds for verdict in verify(place / "out"))
    assert len(ledger.entries()) <= len(delays) + 1


def test_a_run_that_is_stopped_twice_is_gone_on_with(plan, tmp_path):
    assert_stopped_runs_lose_nothing(plan, tmp_path, signal.SIGINT, [1.5, 3.0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_runs_killed_at_any_moment_lose_nothing(seed, plan, tmp_path):
    moments = random.Random(seed)
    delays = sorted(moments.uniform(0.5, 6) for _ in range(8))
    assert_stopped_runs_lose_nothing(plan, tmp_path, signal.SIGKILL, delays)
