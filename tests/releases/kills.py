"""Whole releases, killed with ``kill -9`` at chosen steps and at any time, in forks of a process that has all ready.

Run as a program (``python kills.py FOLDER MECHANISM KILLS SEED``), it imports everything, makes one release of the
mechanism and one verification, so that kernels are compiled and loaded, and then forks a child for each run. A child
counts its own steps and kills itself at a given one, or is killed by its parent after a given time. After every kill
it is looked at what is on disk; what must hold and does not is printed as JSON, with how often each state was met.

A *step* is a call that changes files or the ledger, or a call or return of a function that makes releases. Only
CSV is written by Polars, whose threads do not survive a fork; the parent therefore writes Parquet, its children CSV.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl

import stirred
from stirred.errors import StirredError
from stirred.mechanisms import mechanism_of_plan
from stirred.releases import steps as releasing
from stirred.releases.folder.atomic import leftovers
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.verdicts import contradicted

DATASET = "households of Utopia"
PATIENCE = 30
PACKAGE = Path(stirred.__file__).parent

SWAP = """\
stirred = 1
mechanism = "swap"
dataset = "households of Utopia"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
{more}
[input]
path = "households.parquet"
"""
TOPDOWN = """\
stirred = 1
mechanism = "topdown"
dataset = "households of Utopia"
unit = "household"
chosen_from = "public"
{more}
[spine]
levels = ["state", "county"]
[spine.input]
path = "places.parquet"
[[tables]]
name = "households"
unit = "household"
rho = "1/2"
level_shares = {{ state = "1/2", county = "1/2" }}
attributes = [{{ name = "size", values = ["1", "2"] }}, {{ name = "tenure", values = ["own", "rent"] }}]
queries = [{{ by = [], shares = "1/2" }}, {{ by = ["size", "tenure"], shares = "1/2" }}]
[tables.input]
path = "households.parquet"
[[invariants]]
table = "households"
level = "state"
"""
SURVEY = """\
stirred = 1
mechanism = "survey"
dataset = "households of Utopia"
unit = "household"
epsilon = 2
chosen_from = "public"
design = {{ selected = 240 }}
attributes = [{{ name = "county", values = ["a", "b", "c"] }}, {{ name = "tenure", values = ["own", "rent"] }}]
queries = [{{ by = ["county", "tenure"] }}]
{more}
[input]
path = "households.parquet"
"""
PLANS = {
    "swap": (SWAP, 'tables = [["county", "tenure"]]\nformat = "csv"', 'format = "parquet"'),
    "topdown": (TOPDOWN, 'format = "csv"', 'format = "parquet"'),
    "survey": (
        SURVEY,
        'format = "csv"\npublish = [{ kind = "count", by = ["county"], errors = "1/4" }]',
        'format = "parquet"',  # tables of estimates are CSV
    ),
}


def write_data(folder: Path) -> None:
    rows = range(240)
    households = {
        "size": [str(1 + i % 2) for i in rows],
        "county": ["abc"[i // 2 % 3] for i in rows],
        "tenure": [("own", "rent")[i // 5 % 2] for i in rows],
    }
    pl.DataFrame(households).write_parquet(folder / "households.parquet")
    pl.DataFrame({"state": ["s"] * 3, "county": list("abc")}).write_parquet(folder / "places.parquet")
    for name, (text, wanted, warm) in PLANS.items():
        (folder / f"{name}.toml").write_text(text.format(more=wanted), encoding="utf-8")
        (folder / f"{name}-warm.toml").write_text(text.format(more=warm), encoding="utf-8")


# -- runs in children --------------------------------------------------------------------------------------------

CALLS = {
    *("open", "close", "write", "writelines", "truncate", "fsync", "chmod", "mkdir", "rmdir", "rename", "replace"),
    *("unlink", "remove", "link", "execute", "executemany", "commit", "flock", "lockf", "connect", "write_table"),
}
"""Names of functions in C that change files, locks or the ledger."""
ROOMS = ("releases", "verbs.py", "reports/folder_report.py", "swap/drawing.py", "topdown/drawing.py",
         "survey/documents.py", "survey/drawing.py")  # fmt: skip
WATCHED = tuple(str(PACKAGE / room) for room in ROOMS)


class Steps:
    """Counts the steps of this process, in all of its threads, and kills it at the step ``last``."""

    def __init__(self, last: int | None) -> None:
        self.last = last
        self.taken = 0
        self.paid = 0
        """The step at which the release was paid for."""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("c_call", "c_return", "c_exception"):
            if getattr(argument, "__name__", "") not in CALLS:
                return
        elif not frame.f_code.co_filename.startswith(WATCHED) or frame.f_code.co_name.startswith("<"):
            return
        self.taken += 1
        if event == "return" and frame.f_code.co_name == "spend":
            self.paid = self.taken
        if self.taken == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(job: Callable[[], Any], delay: float | None = None) -> tuple[int, Any]:
    """Run ``job`` in a fork, killed after ``delay`` seconds if that is given: (exit code or minus signal, result)."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            os.write(write, json.dumps(job()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    if delay is not None:
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
    with os.fdopen(read) as told:
        said = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code, json.loads(said) if code == 0 else None


@dataclass
class Case:
    """A folder of its own with a ledger, in which the same command is run until a release is there."""

    folder: Path
    plan: Path
    secret: bool
    """Whether the command asks for the confidential comparison too."""

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def work(self) -> Path:
        return releasing.default_work(self.out)

    @property
    def ledger(self) -> Ledger:
        return Ledger.open(self.folder / "a.ledger")

    @property
    def paid(self) -> int:
        """How many entries spent budget."""
        return sum(entry.counted for entry in self.ledger.entries())

    def command(self) -> None:
        secret = self.folder / "secret"
        # A kill between the two folders leaves the comparison; the same command then asks for another name.
        asked = secret if self.secret and not secret.exists() else None
        stirred.release(self.plan, out=self.out, confidential=asked, ledger=self.folder / "a.ledger")

    def steps(self, last: int | None = None) -> tuple[int, int]:
        """Run the command up to its step ``last``; how many it took, which threads make vary a little, and the one at
        which it paid."""
        steps = Steps(last)
        threading.setprofile(steps)
        sys.setprofile(steps)
        self.command()
        sys.setprofile(None)
        return steps.taken, steps.paid


# -- what must hold after every kill -------------------------------------------------------------------------------


def holds(folder: Path) -> bool:
    """Whether ``verify`` contradicts nothing of a folder."""
    try:
        return not contradicted(stirred.verify(folder))
    except StirredError:
        return False


@contextlib.contextmanager
def carelessly_copied(folder: Path, place: Path) -> Iterator[Path]:
    """A copy under an ordinary name and without the lock, as somebody makes it who wants to save what is there."""
    copy = place / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".lock"))
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


class Looking:
    """Looks at a case after a kill: what verifies is counted, what is left is named, the ledger is whole."""

    def __init__(self, case: Case, place: Path) -> None:
        self.case, self.place = case, place
        self.mechanism = mechanism_of_plan(case.plan)
        self.problems: list[str] = []

    def demand(self, holds: bool, words: str) -> None:
        if not holds:
            self.problems.append(f"{self.case.folder.name}: {words}")

    def look(self, before: tuple[int, bool]) -> str:
        """Look, and name the state that was met; ``before`` says how many entries there were, and if a kept draw."""
        case, ledger = self.case, self.case.ledger
        verdicts = {verdict.kind: verdict.holds for verdict in ledger.verify()}  # raises if the file is damaged
        self.demand(verdicts["file"] and verdicts["total"], "the ledger does not verify")
        told = case.out.exists() or not case.paid or "spent-without-release" in verdicts
        self.demand(told, "the ledger does not say that budget was spent without a release")
        paid = sum(entry.counted for entry in ledger.entries()) - before[0]
        self.demand(paid <= (not before[1]), "the run paid more than once, or for a draw that was kept")
        hidden = sorted(path for path in case.folder.iterdir() if path.name.startswith("."))
        self.demand(leftovers(case.folder) == hidden, "what was left is not named")
        known = {"a.ledger", "a.ledger-journal", "out", "out-work", "secret", *(path.name for path in hidden)}
        self.demand({path.name for path in case.folder.iterdir()} <= known, "a folder has a name of its own")
        usable = [path for path in self.folders() if self.is_release(path)]
        for folder in usable:
            name = folder.relative_to(case.folder)
            self.demand(self.is_counted(ledger, folder), f"{name} verifies and is not counted")
        for folder in [case.work, *hidden] if self.mechanism.keeps_draws else []:
            self.demand(self.is_paid_draw(ledger, folder), f"{folder.name} can be finished and is not paid for")
        self.demand(case.out in usable or not case.out.exists(), "a release is there and does not verify")
        words = ["paid" if paid else "unpaid", f"{len(hidden)} left"]
        words += ["kept draw"] if case.work.exists() else []
        return ", ".join([*words, "released" if case.out.exists() else "no release"])

    def look_and_go_on(self, before: tuple[int, bool], go_on: bool) -> tuple[str, list[str]]:
        """Look, then run the same command to its end unless there is a release, and look again."""
        state = self.look(before)
        if go_on and not self.case.out.exists():
            before = self.case.paid, self.case.work.exists()
            self.case.command()
            self.look(before)
            self.demand(self.case.out.exists(), "the next run made no release")
            self.demand(self.case.paid - before[0] == (not before[1]), "the next run paid otherwise than due")
        return state, self.problems

    def folders(self) -> list[Path]:
        return [Path(place) / name for place, names, _ in os.walk(self.case.folder) for name in names]

    def is_release(self, folder: Path) -> bool:
        """Whether a folder passes for a release, as it is or in a careless copy."""
        if holds(folder):
            return True
        with carelessly_copied(folder, self.place) as copy:
            return holds(copy)

    def is_counted(self, ledger: Ledger, folder: Path) -> bool:
        """Whether an entry has the folder's manifest or, until the release is noted, its draw."""
        if ledger.entry_of(folder) is not None:
            return True
        if not self.mechanism.keeps_draws or not self.case.work.exists():
            return False
        drawn = {path.name: path.read_bytes() for path in (self.case.work / "measurements").iterdir()}
        released = {path.name: path.read_bytes() for path in (folder / "measurements").iterdir()}
        return drawn == released and self.is_paid_draw(ledger, self.case.work)

    def is_paid_draw(self, ledger: Ledger, folder: Path) -> bool:
        """Whether a folder is no draw that could be finished, or one whose entry is in the ledger."""
        if not folder.exists():
            return True
        with carelessly_copied(folder, self.place) as copy:
            try:
                drawn: Any = self.mechanism.reopen(self.mechanism.read_plan(self.case.plan), copy)
            except StirredError:
                return True
        return drawn.entry in [(entry.id, entry.seal) for entry in ledger.entries()]


# -- many kills --------------------------------------------------------------------------------------------------------


def kill_many(folder: Path, name: str, kills: int, seed: int) -> dict[str, Any]:
    """Kill runs at any step, one in four once it has paid, and one in four at any time; one in five is killed again."""
    assert forked(lambda: write_data(folder))[0] == 0
    Ledger.create(folder / "empty.ledger", DATASET)
    copies = folder / "copies"
    copies.mkdir()
    numbers = iter(range(1_000_000))

    def new_case(secret: bool, plan: str = name) -> Case:
        place = folder / f"case-{next(numbers)}"
        place.mkdir()
        shutil.copyfile(folder / "empty.ledger", place / "a.ledger")
        return Case(place, folder / f"{plan}.toml", secret)

    warm = new_case(False, f"{name}-warm")
    warm.command()
    assert holds(warm.out)
    lengths = {}
    for secret in (False, True):
        began = time.monotonic()
        assert forked(new_case(secret).command)[0] == 0
        seconds = time.monotonic() - began
        lengths[secret] = (forked(new_case(secret).steps)[1], seconds)

    moments = random.Random(seed)
    states: Counter[str] = Counter()
    problems: list[str] = []
    runs = tries = 0
    while states.total() < kills:
        case = new_case(runs % 4 == 1)
        (steps, paid), seconds = lengths[case.secret]
        found: list[str] = []
        rounds = 2 if runs % 5 == 2 else 1
        for number in range(rounds):
            before = case.paid, case.work.exists()
            if tries % 4 == 3:
                ended, _ = forked(case.command, moments.uniform(0, seconds))
            else:
                share = ((tries + moments.random()) / kills if number == 0 else moments.random()) % 1
                last = 1 + int(steps * share if tries % 4 else paid + (steps - paid) * share)
                ended, _ = forked(partial(case.steps, last))
            tries += 1
            if ended not in (0, -signal.SIGKILL):
                found.append(f"{case.folder.name}: the run to be killed ended with {ended}")
            code, seen = forked(partial(Looking(case, copies).look_and_go_on, before, number == rounds - 1))
            state, more = seen or ("", [f"{case.folder.name}: looking, or the next run, ended with {code}"])
            states[state] += ended == -signal.SIGKILL
            found += more
            if case.out.exists():
                break
        problems += found
        if not found:
            shutil.rmtree(case.folder)
        runs += 1
    return {"kills": states.total(), "steps": lengths, "states": states, "problems": problems}


if __name__ == "__main__":
    faulthandler.enable()
    print(json.dumps(kill_many(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])), indent=1))
