"""Makes the next item of an iterator in another thread while the last one is used.

An iterator that is left before its end is ended by Python's garbage collector, in whichever thread that happens to run,
perhaps one that is just starting. Waiting there for a thread to end can wait for ever, so nothing here waits: a thread
finishes the item it makes, and ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Made = TypeVar("_Made")


def ahead(items: Iterator[_Made]) -> Iterator[_Made]:
    """The same items, the next one being made while the last is used. No item may be None."""
    pool = ThreadPoolExecutor(1)
    try:
        pending = pool.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = pool.submit(next, items, None)
            yield item
    finally:
        pool.shutdown(wait=False)
