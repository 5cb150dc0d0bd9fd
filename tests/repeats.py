"""How many cases a test goes through that holds one claim against many cases, drawn with fixed seeds."""

from __future__ import annotations

import os
from collections import Counter

import pytest

ALL_CASES = os.environ.get("STIRRED_ALL_CASES") == "1"


def times(cases: int) -> int:
    """The first third of the cases, or all of them where STIRRED_ALL_CASES is 1, as ``make test-slow`` sets it.

    A test that asks for this carries the marker ``repeats``, so that the long run finds it.
    """
    return cases if ALL_CASES else -(-cases // 3)


def some_or(some: int, every: int) -> int:
    """``some`` examples of a property, or ``every`` one of them in ``make test-slow``; marked ``repeats`` too."""
    return every if ALL_CASES else some


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow all but about one in ``n`` cases of a test that is marked ``one_in(n)``.

    Steps by the golden ratio choose them, so that every value of each parameter is met where there are several.
    """
    met: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is not None:
            name = item.nodeid.partition("[")[0]
            if met[name] * 0.6180339887498949 % 1 >= 1 / marker.args[0]:
                item.add_marker(pytest.mark.slow)
            met[name] += 1
