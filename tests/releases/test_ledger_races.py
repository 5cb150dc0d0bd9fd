"""Many processes that spend at once: the limit is never passed, and each success is in the ledger exactly once."""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_tools import ZCDP

from postgresql_server import new_address
from stirred.errors import LedgerError
from stirred.releases.ledger.ledger import Ledger

FORKED = multiprocessing.get_context("forkserver")
"""Runners are forks of one process that has imported everything, and has no threads and no connection."""


@pytest.fixture(scope="module", autouse=True)
def ready_to_fork() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # else what is imported beforehand is not found
        FORKED.set_forkserver_preload([__name__])
        multiprocessing.forkserver.ensure_running()


def race(number: int, paths: list[str], budget: str, meeting: object, results: object) -> None:
    """Spend once on every ledger, at the same moment as the others; tell what came of it."""
    for path in paths:
        ledger = Ledger.open(path)
        meeting.wait(timeout=120)
        try:
            ledger.spend(ZCDP.at(budget), f"runner {number}")
            results.put((path, f"runner {number}", "passed"))
        except LedgerError as refusal:
            results.put((path, f"runner {number}", refusal.kind))


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path) -> Callable[[], str]:
    """A new place for a ledger at each call."""
    if request.param == "server":
        new_address()
        return new_address
    numbers = iter(range(1000))
    return lambda: str(Path(tmp_path) / f"{next(numbers)}.ledger")


def assert_no_race_passes_the_limit(place: Callable[[], str], races: int, runners: int, budget: str, winners: int):
    paths = [place() for _ in range(races)]
    for path in paths:
        Ledger.create(path, "health survey", ZCDP.at(1))
    meeting, results = FORKED.Barrier(runners), FORKED.Queue()
    running = [
        FORKED.Process(target=race, args=(number, paths, budget, meeting, results), daemon=True)
        for number in range(runners)
    ]
    for process in running:
        process.start()
    found = [results.get(timeout=240) for _ in range(runners * len(paths))]
    for process in running:
        process.join(timeout=120)
        assert process.exitcode == 0
    for path in paths:
        outcomes = Counter(outcome for where, _, outcome in found if where == path)
        assert outcomes == {"passed": winners, "ledger-over-limit": runners - winners}
        passed = sorted(who for where, who, outcome in found if where == path and outcome == "passed")
        assert sorted(entry.what for entry in Ledger.open(path).entries()) == passed


SETTINGS = pytest.mark.parametrize(("runners", "budget", "winners"), [(2, "0.6", 1), (4, "0.4", 2)])


@SETTINGS
def test_processes_that_race_for_the_last_of_the_limit_do_not_pass_it_together(place, runners, budget, winners):
    assert_no_race_passes_the_limit(place, 15, runners, budget, winners)


@pytest.mark.slow
@SETTINGS
def test_500_races_do_not_pass_the_limit(place, runners, budget, winners):
    assert_no_race_passes_the_limit(place, 125, runners, budget, winners)
