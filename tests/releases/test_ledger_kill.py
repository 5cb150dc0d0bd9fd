"""``kill -9`` at any moment never loses a spend, and no release is ever visible without one.

Run as a program, this file is the parent of many short-lived children: it has imported everything, forks, lets the
child spend in a loop, kills it, and looks at what is on disk. A child tells each spend through a pipe once it returned.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # run as a program, it has no other way to find it
from postgresql_server import new_address
from stirred.releases.folder.atomic import leftovers
from stirred.releases.folder.manifest import manifest_of
from stirred.releases.ledger.ledger import Ledger
from stirred.spec import Domain, flavors

ZCDP = flavors.zcdp("person", domain=Domain("health survey", record="person", free=True))
KILLS_PER_LEDGER = 25
LONGEST = 0.025
"""Seconds from what a child told last to its end, a few spends."""
PATIENCE = 120
LONGEST_RUN = 400
"""Seconds after which no further child is started: a disk may be slow, and every spend is flushed."""


# -- children that spend in a loop -------------------------------------------------------------------------------


def child(ledger: Ledger, told: int) -> None:
    for number in range(1_000_000):
        entry = ledger.spend(ZCDP.at("0.001"), f"{os.getpid()}-{number}")
        os.write(told, f"{entry.id} {entry.what}\n".encode())


def killed_child(ledger: Ledger, wait_for: int, delay: float) -> list[str]:
    """What a child told before it was killed, some time after it told so many spends."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(ledger, write)
        finally:
            os._exit(1)
    os.close(write)
    # A child that tells nothing is made to say where it is: faulthandler prints its stack.
    signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGABRT))
    signal.alarm(PATIENCE)
    with os.fdopen(read) as told:
        first = [told.readline() for _ in range(wait_for)]
        time.sleep(delay)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        signal.alarm(0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the child ended by itself"
        return ("".join(first) + told.read()).splitlines()


def kill_many(place: str, kills: int, seed: int) -> dict[str, int]:
    """Kill so many children that spend on ledgers whose addresses begin with ``place``."""
    moments = random.Random(seed)
    seen = {"kills": 0, "spends": 0, "untold": 0, "journals": 0}
    deadline = time.monotonic() + LONGEST_RUN
    while seen["kills"] < kills and time.monotonic() < deadline:
        path = f"{place}{seen['kills']}"
        ledger = Ledger.create(path, "health survey", ZCDP.at(1000))
        known: list[str] = []
        for _ in range(min(KILLS_PER_LEDGER, kills - seen["kills"])):
            longest = LONGEST if isinstance(ledger.path, Path) else 8 * LONGEST
            told = killed_child(ledger, moments.randrange(4), moments.uniform(0, longest))
            seen["journals"] += Path(f"{path}-journal").exists()
            ledger._store.append(lambda contents: [])  # a server may still be at the commit of a client that is gone
            entries = Ledger.open(path).entries()  # found whole: pages, seals and numbers
            found = [f"{entry.id} {entry.what}" for entry in entries]
            assert found[: len(known) + len(told)] == known + told, "a spend that was told is lost"
            assert len(found) - len(known) - len(told) <= 1, "more than the one spend under way is untold"
            seen["kills"] += 1
            seen["spends"] += len(found) - len(known)
            seen["untold"] += len(found) - len(known) - len(told)
            known = found
        assert Ledger.open(path).verify()[0].holds
    return seen


if __name__ == "__main__":
    faulthandler.enable()
    print(kill_many(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    sys.exit()


def assert_kills_lose_nothing(place: str, kills: int, seed: int) -> None:
    ended = subprocess.run(
        [sys.executable, __file__, place, str(kills), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_RUN + PATIENCE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with other threads is not safe to fork
    )
    assert ended.returncode == 0, ended.stderr
    seen = dict(pair.split(": ") for pair in ended.stdout.strip("{}\n").replace("'", "").split(", "))
    done = int(seen["kills"])
    assert done >= min(kills, 4 * KILLS_PER_LEDGER)
    # Else no kill fell into a spend, and nothing was tested.
    assert int(seen["spends"]) > done
    assert int(seen["journals"]) >= max(1, done // 50) or place.startswith("postgresql")


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path) -> str:
    """The beginning of the addresses of ledgers."""
    return str(tmp_path / "ledger-") if request.param == "file" else f"{new_address()}_"


def test_some_kills_lose_no_spend(place):
    assert_kills_lose_nothing(place, 40 if "://" not in place else 15, seed=1)


@pytest.mark.slow
def test_many_kills_lose_no_spend(place):
    assert_kills_lose_nothing(place, 1_000 if "://" not in place else 300, seed=2)


# -- a swap that is killed -----------------------------------------------------------------------------------------

PLAN = """\
stirred = 1
mechanism = "swap"
dataset = "households of Utopia"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
[input]
path = "households.csv"
"""

RELEASE = """
import os, pkgutil, signal, sys
from stirred.cli.app import main
def die(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)
place = sys.argv.pop(1)
if place != "nowhere":
    owner, _, name = place.rpartition(".")
    target = pkgutil.resolve_name(owner)
    if sys.argv.pop(1) == "after":
        real = getattr(target, name)
        setattr(target, name, lambda *given, **named: (real(*given, **named), die()))
    else:
        setattr(target, name, die)
main()
"""


@pytest.fixture
def plan(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [f"{1 + i % 2},{'abc'[i // 2 % 3]},{('own', 'rent')[i // 5 % 2]}" for i in range(20_000)]
    (folder / "households.csv").write_text("size,county,tenure\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder / "plan.toml"


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "utopia.ledger", "households of Utopia")


def start(plan: Path, out: Path, ledger: Ledger, *place: str) -> subprocess.Popen[bytes]:
    words = ["release", str(plan), "--out", str(out), "--ledger", str(ledger.path), *(["--no-report"] if place else [])]
    return subprocess.Popen(
        [sys.executable, "-c", RELEASE, *(place or ("nowhere",)), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def failing(ledger: Ledger) -> list[str]:
    return [verdict.kind for verdict in ledger.verify() if not verdict.holds]


@pytest.mark.parametrize(
    ("place", "moment", "spends", "visible", "found"),
    [
        pytest.param("stirred.releases.steps.flush", "after", 0, False, [], marks=pytest.mark.slow),
        ("stirred.releases.ledger.sqlite_file._insert", "after", 0, False, []),
        ("stirred.releases.ledger.ledger.Ledger.spend", "after", 1, False, ["spent-without-release", "leftover"]),
        pytest.param(
            "stirred.releases.folder.atomic._settle",
            "after",
            1,
            False,
            ["spent-without-release", "leftover"],
            marks=pytest.mark.slow,
        ),
        ("stirred.releases.ledger.ledger.Ledger.finished", "before", 1, True, []),
        pytest.param("stirred.releases.ledger.ledger.Ledger.finished", "after", 1, True, [], marks=pytest.mark.slow),
    ],
)
def test_a_release_killed_at_this_step_leaves(place, moment, spends, visible, found, plan, tmp_path, ledger):
    out = tmp_path / "place" / "out"
    out.parent.mkdir()
    with start(plan, out, ledger, place, moment) as run:
        assert run.wait(timeout=120) == -signal.SIGKILL
    assert len(ledger.entries()) == spends
    assert out.exists() == visible
    assert failing(ledger) == found
    if spends and not visible:
        assert leftovers(out.parent)


def assert_no_release_without_its_spend(plan: Path, folder: Path, ledger: Ledger, delays: list[float]) -> None:
    for number, delay in enumerate(delays):
        out = folder / f"out-{number}"
        with start(plan, out, ledger) as run:
            time.sleep(delay)
            run.kill()
            run.wait(timeout=PATIENCE)
        entries = {entry.folder: entry for entry in ledger.entries()}
        if out.exists():
            assert entries[out].manifest == manifest_of(out)
        assert len(entries) <= number + 1


@pytest.mark.slow
def test_a_release_killed_at_any_moment_is_not_visible_without_its_spend(plan, tmp_path, ledger):
    assert_no_release_without_its_spend(plan, tmp_path, ledger, [1.0, 2.0])


@pytest.mark.slow
def test_releases_killed_at_many_moments_are_not_visible_without_their_spends(plan, tmp_path, ledger):
    began = time.monotonic()
    with start(plan, tmp_path / "first", ledger) as run:
        assert run.wait(timeout=120) == 0
    length = time.monotonic() - began
    ledger = Ledger.create(tmp_path / "second.ledger", "households of Utopia")
    moments = random.Random(3)
    assert_no_release_without_its_spend(plan, tmp_path, ledger, [length * moments.uniform(0.6, 1.1) for _ in range(12)])
