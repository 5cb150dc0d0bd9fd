"""The list of mechanisms, by name, and which of them a plan or a release folder is of.

An unknown name is an error, and never imports anything. :func:`register` adds a mechanism of your own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from stirred import errors
from stirred._bounded_reading import is_file, plain
from stirred.releases.mechanism import Mechanism

if TYPE_CHECKING:
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.plans import Plan

CERTIFICATE = "certificate.json"

BUILT_IN = {
    "swap": "stirred.swap.mechanism",
    "topdown": "stirred.topdown.mechanism",
    "survey": "stirred.survey.mechanism",
}
"""The modules of the built-in mechanisms, by name; each has its mechanism as ``MECHANISM``."""

_REGISTERED: dict[str, Mechanism] = {}


def names() -> list[str]:
    """The names of all mechanisms, built-in ones first."""
    return [*BUILT_IN, *(name for name in _REGISTERED if name not in BUILT_IN)]


def named(name: object) -> Mechanism:
    """The mechanism of this name.

    >>> named("swap").title
    'Permutation Swapping Algorithm'
    """
    if not isinstance(name, str) or name not in names():
        raise errors.PlanError(
            "unknown-mechanism",
            f"There is no mechanism {name!r} in this version.",
            f"Choose one of {errors.listed(names())}.",
        )
    if name not in _REGISTERED:
        _REGISTERED[name] = import_module(BUILT_IN[name]).MECHANISM
    return _REGISTERED[name]


def every() -> list[Mechanism]:
    """All mechanisms, in the order of their names in the list."""
    return [named(name) for name in names()]


def register(mechanism: Mechanism) -> Mechanism:
    """Add a mechanism of your own, for plans, releases and the command line of this process."""
    if mechanism.name in names() and named(mechanism.name) is not mechanism:
        raise errors.PlanError(
            "mechanism-taken", f"A mechanism called {mechanism.name!r} exists already.", "Choose another name."
        )
    _REGISTERED[mechanism.name] = mechanism
    return mechanism


def forget(name: str) -> None:
    """Remove a mechanism that was added by :func:`register`."""
    if name not in BUILT_IN:
        _REGISTERED.pop(name, None)


def read_plan(plan: Plan | str | Path) -> tuple[Mechanism, Plan]:
    """The mechanism of a plan, and the plan, read if it is a file."""
    from stirred.releases.plans import Plan

    if isinstance(plan, Plan):
        return named(plan.mechanism), plan
    if not isinstance(plan, str | Path):
        raise errors.PlanError(
            "not-a-plan",
            f"A plan was expected, not a {type(plan).__name__}.",
            "Pass a SwapPlan, a TopDownPlan, a SurveyPlan, or the path of a plan file.",
        )
    mechanism = mechanism_of_plan(plan)
    return mechanism, mechanism.read_plan(plan)


def open_release(path: str | Path, most_rows: int | None = None) -> tuple[Mechanism, ReleaseFolder]:
    """The mechanism of a release, and its folder, opened."""
    from stirred.releases.folder.release_folder import ReleaseFolder

    with as_received(path):
        opened = ReleaseFolder.open(path, most_rows)
    if opened.mechanism not in names():
        raise errors.not_a_release(
            opened.path, f"it names the mechanism {plain(repr(opened.mechanism), 80)}, which this version does not know"
        )
    return named(opened.mechanism), opened


def mechanism_of_plan(path: str | Path) -> Mechanism:
    """The mechanism that a plan file names."""
    from stirred.releases.plans import mechanism_of

    asked = mechanism_of(path)
    if asked not in names():
        raise errors.plan_mechanism(asked, names())
    return named(asked)


def mechanism_of_release(path: str | Path) -> Mechanism:
    """The mechanism that made a release, given its folder or a folder directly inside it."""
    folder = Path(path)
    inside = not is_file(folder / CERTIFICATE) and is_file(folder.parent / CERTIFICATE)
    if not inside and not is_file(folder / CERTIFICATE) and (reader := _reader_of(folder)) is not None:
        return reader
    return open_release(folder.parent if inside else folder)[0]


def mechanism_of_measurements(path: str | Path) -> Mechanism:
    """The mechanism that reads a folder of measurements that others published."""
    found = _reader_of(Path(path))
    if found is None:
        raise errors.noisy_folder(Path(path), "there is no folder US.parquet, State.parquet, ... in it")
    return found


def _reader_of(folder: Path) -> Mechanism | None:
    return next((one for one in every() if one.reads_measurements(folder)), None)


@contextmanager
def as_received(path: str | Path) -> Iterator[None]:
    """Refuse a folder whose documents contradict its tables or each other, where reading it fails for that reason.

    Errors of the machine pass through, and what may be a fault of this program is not said to be one of the folder.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError):
        raise errors.not_a_release(Path(path), "its documents contradict its tables, or each other") from None
    except (TypeError, AttributeError) as problem:
        raise errors.not_read(Path(path), problem) from None
