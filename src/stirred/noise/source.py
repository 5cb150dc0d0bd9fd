"""Sources of random bits, the operating system's generator or a repeatable one for tests, and how kernels get them.

Kernels never call back for a word. They are handed a block, consume it, and return to be handed the next, so the
cost of a system call is spread over some hundred thousand draws. What is left of a block is thrown away, never
reused. Each caller (each worker) takes its own blocks, so there are no seeds, no streams to split and nothing to
store: the bits that made a release cannot be found again. :class:`SeededSource` exists for tests. It is reachable from
Python only and everything drawn from it is marked *not for release*.

A batch is cut into chunks of :data:`CHUNK_ROWS` rows whatever the number of threads, and every chunk draws its own
blocks of words, so memory stays bounded and threads share nothing. With the system's generator all chunks draw from it
directly. A :class:`SeededSource` gives each chunk a stream of its own, keyed in the order of chunks: what is drawn
depends on the key and on nothing else. Any other source is asked by one thread, chunk after chunk.

A kernel fills rows until one of three things happens: it is done, its words are used up, or a draw is *undecided*. Then
it says so in ``state`` and returns; :func:`feed` hands it new words, or ``finish`` settles the one draw with exact
arithmetic and says whether the row is filled (it is not when the attempt was rejected).

Not claimed: constant time. Table look-ups, rejections and undecided draws take time that depends on what is drawn, so
whoever can time single draws, or watch the caches, learns about them. Batches blur this and do not remove it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._threads import thread_count, thread_pool

BLOCK_BYTES = 1 << 18
"""Large enough that the system call is negligible, small enough to stay in a core's cache."""

CHUNK_ROWS = 1 << 17
"""Rows that one thread draws at a time."""

WORDS_BYTES = 1 << 17
"""Bytes in a block of words: together with a table of 65,536 cells it stays in a core's own cache."""

ROW, WORD, STATUS, BITS, FIRST, SECOND = range(6)
"""Slots of the state that kernels resume from; the last two are each kernel's own."""

DONE, EMPTY, UNDECIDED = range(3)
"""Why a kernel returned."""

State = NDArray[np.int64]


class RandomSource(Protocol):
    """Uniform, independent random bytes."""

    @property
    def for_release(self) -> bool:
        """Whether draws may be released; false for a source whose bits can be repeated."""
        ...

    def take(self, count: int) -> bytes:
        """``count`` fresh bytes."""
        ...


class SystemSource:
    """The operating system's cryptographic generator (``os.urandom``)."""

    for_release = True

    def take(self, count: int) -> bytes:
        """``count`` fresh bytes from the operating system."""
        return os.urandom(count)


class SeededSource:
    """A repeatable stream for tests: SHAKE-128 of a key and a block number.

    >>> SeededSource(7).take(4) == SeededSource(7).take(4)
    True
    >>> SeededSource(7).for_release
    False
    """

    for_release = False

    def __init__(self, key: int) -> None:
        self._key = key.to_bytes(16, "big", signed=True)
        self._block = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes of the repeatable stream."""
        name = self._key + self._block.to_bytes(8, "big")
        self._block += 1
        return hashlib.shake_128(name).digest(count)


def block_of_words(source: RandomSource, word_bytes: int, most: int) -> NDArray[Any]:
    """A block of words of so many bytes: ``most`` of them, or as many as a block holds."""
    count = min(max(most, 64), BLOCK_BYTES // word_bytes)
    return np.frombuffer(source.take(word_bytes * count), dtype=f"<u{word_bytes}")


def counted(size: Any) -> int:
    """A number of draws, from 0 on."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise errors.noise_size(size)
    return int(size)


def in_chunks(size: int, source: RandomSource, fill: Callable[[int, int, RandomSource], None]) -> None:
    """Call ``fill(start, stop, source)`` for consecutive ranges of rows, in parallel where the source allows."""
    ranges = [(start, min(start + CHUNK_ROWS, size)) for start in range(0, size, CHUNK_ROWS)]
    sources = _sources(source)
    if thread_count() < 2 or len(ranges) < 2 or not isinstance(source, SystemSource | SeededSource):
        for (start, stop), own in zip(ranges, sources, strict=False):
            fill(start, stop, own)
        return
    with thread_pool(len(ranges)) as pool:
        # Submitted in order by this thread, which therefore keys the streams in order.
        waiting = [pool.submit(fill, *rows, own) for rows, own in zip(ranges, sources, strict=False)]
        for chunk in waiting:
            chunk.result()


def drawn(
    size: int, source: RandomSource, fill: Callable[[NDArray[np.int64], RandomSource], None]
) -> NDArray[np.int64]:
    """``size`` whole numbers; ``fill(part, source)`` draws those of a range of rows."""
    out = np.empty(size, dtype=np.int64)
    in_chunks(size, source, lambda start, stop, own: fill(out[start:stop], own))
    return out


def _sources(source: RandomSource) -> Iterator[RandomSource]:
    """The source that each chunk of rows draws from, chunk after chunk."""
    while True:
        yield SeededSource(int.from_bytes(source.take(15), "big")) if isinstance(source, SeededSource) else source


def feed(
    step: Callable[[NDArray[Any], State], None],
    finish: Callable[[State, RandomSource], bool],
    source: RandomSource,
    word_bytes: int,
    words_per_row: float,
    rows: int,
) -> None:
    """Run ``step`` until all ``rows`` are filled. ``words_per_row`` is what is expected, and only saves randomness."""
    state = np.zeros(6, dtype=np.int64)
    kind = f"<u{word_bytes}"
    words: NDArray[Any] = np.empty(0, dtype=kind)
    state[STATUS] = EMPTY if rows else DONE
    while state[STATUS] != DONE:
        if state[STATUS] == EMPTY:
            wanted = 32 + int((rows - int(state[ROW])) * words_per_row)
            words = np.frombuffer(source.take(word_bytes * min(wanted, WORDS_BYTES // word_bytes)), dtype=kind)
            state[WORD] = 0
        elif finish(state, source):
            state[ROW] += 1
        step(words, state)
