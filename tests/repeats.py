"""How many cases a test goes through that holds one claim against many cases, drawn with fixed seeds."""

from __future__ import annotations

import os

ALL_CASES = os.environ.get("STIRRED_ALL_CASES") == "1"


def times(cases: int) -> int:
    """The first third of the cases, or all of them where STIRRED_ALL_CASES is 1, as ``make test-slow`` sets it.

    A test that asks for this carries the marker ``repeats``, so that the long run finds it.
    """
    return cases if ALL_CASES else -(-cases // 3)


def some_or(some: int, every: int) -> int:
    """``some`` examples of a property, or ``every`` one of them in ``make test-slow``; marked ``repeats`` too."""
    return every if ALL_CASES else some
