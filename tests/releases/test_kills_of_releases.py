"""``kill -9`` at any step of a release leaves nothing that verifies and is not counted, and the next run works.

``kills.py`` runs the releases in forks of one process and looks at the disk after every kill. On a folder that a
killed run left it also does what a careless person may do: copy it under an ordinary name, without its lock.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("kills.py")
LONGEST = 850
"""Seconds for all kills of one mechanism; they take a tenth of it where nothing else runs."""


def assert_kills_leave_nothing_uncounted(folder: Path, mechanism: str, kills: int, seed: int) -> None:
    ended = subprocess.run(
        [sys.executable, PROGRAM, folder, mechanism, str(kills), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with other threads is not safe to fork
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["problems"] == [], ended.stderr
    assert found["kills"] >= kills
    # Else kills fell into one part of a run only, and little was tested.
    states = [state.split(", ") for state in found["states"]]
    assert [state for state in states if state[0] == "unpaid" and "0 left" not in state and "no release" in state]
    assert [state for state in states if state[0] == "paid" and "no release" in state]
    assert [state for state in states if state[0] == "paid" and "released" in state]
    if mechanism == "topdown":
        assert [state for state in states if "kept draw" in state and "no release" in state]


@pytest.fixture
def folder(tmp_path) -> Iterator[Path]:
    """A folder in memory where there is one: a kill takes nothing from it, and flushing costs no time."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["swap", "topdown", "survey"])
def test_two_hundred_kills_leave_nothing_that_verifies_and_is_not_counted(mechanism, folder):
    assert_kills_leave_nothing_uncounted(folder, mechanism, 200, seed=2)
