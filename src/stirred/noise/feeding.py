"""Draws batches in chunks on all cores; each kernel gets blocks of random words until it is done.

A batch is cut into chunks of :data:`CHUNK_ROWS` rows whatever the number of threads, and every chunk draws its own
blocks of words, so memory stays bounded and threads share nothing. With the system's generator all chunks draw from it
directly. A :class:`SeededSource` gives each chunk a stream of its own, keyed in the order of chunks: what is drawn
depends on the key and on nothing else. Any other source is asked by one thread, chunk after chunk.

A kernel fills rows until one of three things happens: it is done, its words are used up, or a draw is *undecided*. Then
it says so in ``state`` and returns; here it gets new words, or ``finish`` settles the one draw with exact arithmetic
and says whether the row is filled (it is not when the attempt was rejected). Kernels never call back.

Not claimed: constant time. Table look-ups, rejections and undecided draws take time that depends on what is drawn, so
whoever can time single draws, or watch the caches, learns about them. Batches blur this and do not remove it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.noise.source import RandomSource, SeededSource, SystemSource

CHUNK_ROWS = 1 << 17
"""Rows that one thread draws at a time."""

WORDS_BYTES = 1 << 17
"""Bytes in a block of words: together with a table of 65,536 cells it stays in a core's own cache."""

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

ROW, WORD, STATUS, BITS, FIRST, SECOND = range(6)
"""Slots of the state that kernels resume from; the last two are each kernel's own."""

DONE, EMPTY, UNDECIDED = range(3)
"""Why a kernel returned."""

State = NDArray[np.int64]


def counted(size: Any) -> int:
    """A number of draws, from 0 on."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise errors.noise_size(size)
    return int(size)


def in_chunks(size: int, source: RandomSource, fill: Callable[[int, int, RandomSource], None]) -> None:
    """Call ``fill(start, stop, source)`` for consecutive ranges of rows, in parallel where the source allows."""
    ranges = [(start, min(start + CHUNK_ROWS, size)) for start in range(0, size, CHUNK_ROWS)]
    sources = _sources(source)
    if THREADS < 2 or len(ranges) < 2 or not isinstance(source, SystemSource | SeededSource):
        for (start, stop), own in zip(ranges, sources, strict=False):
            fill(start, stop, own)
        return
    with ThreadPoolExecutor(min(THREADS, len(ranges))) as pool:
        # Submitted in order by this thread, which therefore keys the streams in order.
        waiting = [pool.submit(fill, *rows, own) for rows, own in zip(ranges, sources, strict=False)]
        for chunk in waiting:
            chunk.result()


def _sources(source: RandomSource) -> Iterator[RandomSource]:
    """A source for each chunk."""
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
