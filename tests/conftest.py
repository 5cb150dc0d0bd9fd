"""What tests of several folders share: the command line, run inside the test's own process."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# One thread of linear algebra for each worker: matrices here are small, and idle threads would wait by spinning.
# Set before numpy is imported, which no plugin does.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# Each question for a version reads a file of the environment, and each verification asks several times.
importlib.metadata.version = functools.cache(importlib.metadata.version)

# Their assertions then say what was compared, as those of test modules do.
pytest.register_assert_rewrite("sentence_formulas", "sentence_grid", "summary_formulas", "swap_formulas")

# No deadline: the first example may have to compile a kernel. The same examples in every run; the referee draws others.
settings.register_profile("repeated", deadline=None, derandomize=True)
settings.load_profile("repeated")

# Fixtures of the tests of commands. They have a module of their own: Python would take a second conftest for this one.
from offered_files import as_json, files, offered  # noqa: E402, F401

# Their examples would be looked for by the name "conftest", which only one of them can have.
collect_ignore_glob = ["*conftest.py"]

# Every test draws the same noise in every run.
from repeated_draws import pytest_configure, pytest_fixture_setup, pytest_runtest_setup  # noqa: E402, F401

# Of tests that hold one claim against many cases, some of the cases.
from repeats import pytest_collection_modifyitems  # noqa: E402, F401


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: looking through it for garbage again and again takes longer than any test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both streams, their line breaks undone."""
        return " ".join((self.out + " " + self.err).split())


@pytest.fixture(autouse=True, scope="module")
def _releases_without_drawings(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reports in releases that tests make have no drawings: these take longer than many a release. Tests about
    pages, in ``tests/reports`` and in commands that write pages, draw, and each picture once."""
    from stirred.reports.page_elements import Figures

    draw = Figures._drawn
    with pytest.MonkeyPatch.context() as patched:
        if "reports" in request.path.parts or request.path.stem in ("test_cli_report", "test_cli_explain"):
            patched.setattr(Figures, "_drawn", functools.partialmethod(_drawn_once, draw))
        else:
            patched.setattr(Figures, "_drawn", lambda self, picture: "<svg></svg>")
        yield


_DRAWN: dict[tuple[Any, ...], str] = {}


def _drawn_once(figures: Any, draw: Callable[[Any, Any], str], picture: Any) -> str:
    """A picture as it was drawn before in this process: verifying a report draws what making it has drawn."""
    from stirred.reports import page_elements

    kind = figures.drawing, page_elements._drawing_process, pickle.dumps(picture)
    if kind not in _DRAWN:
        _DRAWN[kind] = draw(figures, picture)
    return _DRAWN[kind]


_BUILT: dict[tuple[Any, ...], Any] = {}


def _built_once(build: Callable[[list[str]], Any], words: list[str]) -> Any:
    """The commands as ``words`` need them, put together once in a process: this takes longer than many a command."""
    from typer.main import get_command

    from stirred import mechanisms
    from stirred.cli.app import LABORATORY

    completing = [name for name in os.environ if "COMPLETE" in name]
    kind = LABORATORY.isdisjoint(words), *completing, *mechanisms.every()
    if kind not in _BUILT:
        _BUILT[kind] = get_command(build(words))
    return _BUILT[kind]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """``command("check", plan)`` runs ``stirred check PLAN`` from its entry point."""
    from stirred.cli import app
    from stirred.cli.app import main

    monkeypatch.setattr(app, "build", functools.partial(_built_once, app.build))

    def run(*words: str | Path) -> Ended:
        monkeypatch.setattr(sys, "argv", ["stirred", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ending:
            main()
        said = capsys.readouterr()
        return Ended(int(ending.value.code or 0), said.out, said.err)

    return run
