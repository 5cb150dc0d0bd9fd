"""The operating system's generator, replaced in tests by a stream that is the same in every run.

A test that makes a release draws fresh noise. A claim that holds for all but one draw in a thousand would then fail in
some run, for no reason that can be found again. So inside a test, :class:`~stirred.noise.SystemSource` serves
SHAKE-128 of the test's name and a counter; a fixture of wider scope has a stream under its own name, whichever test
comes first. Commands that a test starts in another process draw fresh bits all the same, and so do tests marked
``fresh_draws``. Another stream for all tests: ``STIRRED_DRAWS=name``; the system's own bits: ``STIRRED_DRAWS=fresh``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator

import pytest

from stirred.noise import SystemSource

_SET = os.environ.get("STIRRED_DRAWS", "")
_name: str | None = None
_blocks = itertools.count()


def _take(self: SystemSource, count: int) -> bytes:
    if _name is None:
        return os.urandom(count)
    return hashlib.shake_128(f"{_SET}|{_name}|{next(_blocks)}".encode()).digest(count)


def _start(name: str | None) -> None:
    global _name, _blocks
    _name, _blocks = None if _SET == "fresh" else name, itertools.count()


def pytest_configure() -> None:
    """From here on, every system source asks this module."""
    SystemSource.take = _take  # type: ignore[method-assign]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Each test begins the stream of its own name."""
    _start(None if item.get_closest_marker("fresh_draws") else item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[None]:
    """What several tests share is drawn alike, whichever of them runs first."""
    global _name, _blocks
    if fixturedef.scope == "function":
        yield
        return
    before = _name, _blocks
    _start(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]")
    yield
    _name, _blocks = before
