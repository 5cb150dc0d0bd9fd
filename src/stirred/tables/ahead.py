"""Makes the next item of an iterator in another thread while the last one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Made = TypeVar("_Made")


def ahead(items: Iterator[_Made]) -> Iterator[_Made]:
    """The same items, the next one being made while the last is used. No item may be None."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = pool.submit(next, items, None)
            yield item
