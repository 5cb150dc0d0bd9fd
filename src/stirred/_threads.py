"""How many threads compute, and the few ways in which work is shared among them.

It is as many as this process has cores, or ``STIRRED_THREADS``, which ``--threads`` of a command sets. No result
depends on it: work is cut into pieces whatever the number, pieces are put together in their order, and a piece of a
draw has a stream of its own (:mod:`stirred.noise.source`). Polars, Arrow and linear algebra have settings of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from stirred import errors

SETTING = "STIRRED_THREADS"
_Made = TypeVar("_Made")


def thread_count() -> int:
    """How many threads compute at a time."""
    if said := os.environ.get(SETTING):
        if not (said.isascii() and said.isdecimal() and 0 < len(said) < 5 and int(said) > 0):
            raise errors.parameter_out_of_range(SETTING, "not a number of threads", "a whole number from 1 to 9999")
        return int(said)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_threads(number: int) -> None:
    """Let ``number`` threads compute, in this process and in those that it starts."""
    os.environ[SETTING] = str(number)


def thread_pool(most: int | None = None) -> ThreadPoolExecutor:
    """A pool of :func:`thread_count` threads, at most ``most``: for work that does without the interpreter lock."""
    return ThreadPoolExecutor(thread_count() if most is None else min(most, thread_count()))


@contextmanager
def meanwhile(work: Callable[[], _Made]) -> Iterator[Callable[[], _Made]]:
    """What ``work`` gives: it is done in another thread during the block, or when asked for if one thread computes."""
    if thread_count() < 2:
        yield work
        return
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(work).result


def ahead(items: Iterator[_Made]) -> Iterator[_Made]:
    """The same items, the next one being made in another thread while the last is used. No item may be None.

    An iterator that is left before its end is ended by Python's garbage collector, in whichever thread that happens to
    run, perhaps one that is just starting. Waiting there for a thread to end can wait for ever, so nothing here waits:
    a thread finishes the item it makes, and ends.
    """
    if thread_count() < 2:
        yield from items
        return
    pool = ThreadPoolExecutor(1)
    try:
        pending = pool.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = pool.submit(next, items, None)
            yield item
    finally:
        pool.shutdown(wait=False)
