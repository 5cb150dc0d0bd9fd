"""Method T: draws from one law by inversion of a certified table, lazily, 16 bits and then 64.

The law is that of :class:`stirred.noise.laws.Law`: X = min {k : U < F(k)}, with U an endless string of random bits.

* 16 bits settle it unless a cut F(k) falls inside their cell; a table of 65,536 cells says which.
* Else 48 more bits make w, the first 64 of U, which is compared with the cuts c_k = floor(2^64 F(k)): w < c_k means
  U < F(k) and w > c_k means U > F(k).
* w = c_k is *undecided*; :func:`stirred.noise.laws.resolve` goes on with more bits and more precision.

Error budget: none is spent. Every cut is certified (lower and upper bound of F(k) have the same floor; the precision
grows until they have), and no decision is taken unless every continuation of the bits gives the same answer for the
true F. Cuts whose floor is 0, or 2^64 - 1, are listed once: beyond them all values lie in w = 0 and in w = 2^64 - 1,
which are undecided. About 2^-64 per cut and draw is undecided, some 1e-15 for the largest tables.

Widths other than (16, 64) are for tests, where the rare paths become common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.feeding import BITS, DONE, EMPTY, ROW, STATUS, UNDECIDED, WORD, State, feed
from stirred.noise.laws import Law, floors, resolve
from stirred.noise.source import RandomSource


class Widths(NamedTuple):
    """Bits that are looked at first, and bits that are looked at before a draw counts as undecided."""

    head: int = 16
    full: int = 64


WIDE = Widths()


@dataclass(frozen=True, eq=False)
class CutTable:
    """Certified cuts of one law for words of given widths."""

    law: Law
    widths: Widths
    first: int
    """The value below the first cut."""
    cells: NDArray[np.int16]
    """Per head: how many cuts lie below it, or -1 where one falls inside."""
    cuts: NDArray[np.uint64]
    """floor(2^full F(k)) for k = first, first + 1, ..., non-decreasing."""

    @property
    def arrays(self) -> tuple[int, int, NDArray[np.int16], NDArray[np.uint64]]:
        """What kernels need, in their order."""
        return self.widths.head, self.widths.full, self.cells, self.cuts


def certified_cuts(law: Law) -> tuple[int, NDArray[np.uint64]]:
    """(first, cuts): floor(2^64 F(k)) for k from ``first``, those at 0 and at 2^64 - 1 listed once."""
    margin = 64
    known = floors(law, 64, margin)
    while known.low != known.high:
        margin *= 2
        known = floors(law, 64, margin)
    cuts = np.array(known.low, dtype=np.uint64)
    start = max(int(np.searchsorted(cuts, 0, side="right")) - 1, 0)
    stop = int(np.searchsorted(cuts, np.uint64(2**64 - 1), side="left")) + 1
    return known.first + start, cuts[start:stop]


def cells_of(cuts: NDArray[np.uint64], widths: Widths) -> NDArray[np.int16]:
    """Per head: the number of cuts below its cell, or -1 where a cut lies in it; ``cuts`` have ``widths.full`` bits."""
    if len(cuts) > np.iinfo(np.int16).max:
        raise ValueError("a table holds at most 32,767 cuts")
    heads = cuts >> np.uint64(widths.full - widths.head)
    every = np.arange(1 << widths.head, dtype=np.uint64)
    below, within = np.searchsorted(heads, every, side="left"), np.searchsorted(heads, every, side="right")
    return np.where(below == within, below, -1).astype(np.int16)


@lru_cache(maxsize=64)
def cut_table(law: Law, widths: Widths = WIDE) -> CutTable:
    """The table of a law; of the last 64 asked for, about 200 kB each, none is computed twice."""
    if not 1 <= widths.head <= 16 or not 0 < widths.full - widths.head <= 48:
        raise ValueError("a head has at most 16 bits and at most 48 follow it")
    first, cuts = certified_cuts(law)
    cuts = cuts >> np.uint64(64 - widths.full)  # floor of a floor
    return CutTable(law, widths, first, cells_of(cuts, widths), cuts)


@kernel
def search(words, at, head_bits, full_bits, cuts):  # type: ignore[no-untyped-def]
    """The draw whose head, at ``at``, did not settle it, from three more words: (cuts passed or -1, bits seen)."""
    head = np.uint64(words[at]) >> np.uint64(16 - head_bits)
    rest = (
        (np.uint64(words[at + 1]) << np.uint64(32))
        | (np.uint64(words[at + 2]) << np.uint64(16))
        | np.uint64(words[at + 3])
    )
    rest_bits = full_bits - head_bits
    bits = (head << np.uint64(rest_bits)) | (rest >> np.uint64(48 - rest_bits))
    passed, beyond = np.int64(0), np.int64(len(cuts))  # cuts at or below the bits; numpy's search is slow to compile
    while passed < beyond:
        middle = (passed + beyond) // 2
        if cuts[middle] <= bits:
            passed = middle + 1
        else:
            beyond = middle
    if passed > 0 and cuts[passed - 1] == bits:
        return -1, bits
    return passed, bits


@kernel
def _invert(words, head_bits, full_bits, cells, cuts, first, out, state):  # type: ignore[no-untyped-def]
    """Fill ``out`` with draws; resume from and save to ``state``."""
    row = state[ROW]
    word = state[WORD]
    unseen = np.uint64(16 - head_bits)
    last = len(words) - 4
    status = DONE
    while row < len(out) and word <= last:
        passed = np.int64(cells[np.uint64(words[word]) >> unseen])
        word += 1
        if passed < 0:
            passed, bits = search(words, word - 1, head_bits, full_bits, cuts)
            word += 3
            if passed < 0:
                state[BITS] = np.int64(bits)
                status = UNDECIDED
                break
        out[row] = first + passed
        row += 1
    if status == DONE and row < len(out):
        status = EMPTY
    state[ROW] = row
    state[WORD] = word
    state[STATUS] = status


def seen(state: State, slot: int = BITS) -> int:
    """Bits that a kernel left in its state."""
    return int(state[slot : slot + 1].view(np.uint64)[0])


def invert(table: CutTable, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out`` with independent draws from the table's law."""

    def step(words: NDArray[np.uint16], state: State) -> None:
        _invert(words, *table.arrays, table.first, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        out[state[ROW]] = resolve(table.law, seen(state), table.widths.full, own)
        return True

    feed(step, finish, source, 2, 1.3, len(out))
