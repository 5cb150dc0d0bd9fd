"""Laws on the integers, P(k) proportional to exp(-rate |k|^power), and certified bounds of their distribution function.

``power`` is 2 for Gaussian and 1 for geometric laws, and the rate is rational. The shape says which integers there are:

========  ============================================================================================
line      every integer k, weight exp(-rate |k|^power)
halves    k >= 0 with weight exp(-rate k), and -1-k with weight exp(-gap) exp(-rate k); power 1
half      k >= 0; with ``count``, only k < count
folded    k >= 0, and every weight but that of 0 is doubled: the law of the absolute value of *line*
========  ============================================================================================

A value is drawn by inversion: X = min {k : U < F(k)}, U a uniform number known through its first bits, F the
distribution function. :func:`resolve` asks for bits, 64 at a time, until every continuation gives the same X. What is
drawn has the law exactly: no decision rests on anything but integers that enclose F.

Error budget of F to ``width`` bits. Weights come from w_k = w_(k-1) r_k, r_(k+1) = r_k r^2 (r_k constant at power 1),
as a lower and an upper bound each, multiplied in fixed point of ``width + 2 margin`` bits with products rounded apart.
They are listed until the upper bound is below 2^-(width + margin); what is left out is below the geometric series with
the last ratio, and counts in upper bounds only. So 2^width F(k) is known to about 2^-margin, and its floor is known
unless it lies that close to an integer. With ``width`` = ``margin`` = 64 these are 13.3 standard deviations of a
Gaussian.

Method T: draws from one law by inversion of a certified table, lazily, 16 bits and then 64.

* 16 bits settle it unless a cut F(k) falls inside their cell; a table of 65,536 cells says which.
* Else 48 more bits make w, the first 64 of U, which is compared with the cuts c_k = floor(2^64 F(k)): w < c_k means
  U < F(k) and w > c_k means U > F(k).
* w = c_k is *undecided*; :func:`resolve` goes on with more bits and more precision.

Method T spends no error. Every cut is certified (lower and upper bound of F(k) have the same floor; the precision
grows until they have), and no decision is taken unless every continuation of the bits gives the same answer for the
true F. Cuts whose floor is 0, or 2^64 - 1, are listed once: beyond them all values lie in w = 0 and in w = 2^64 - 1,
which are undecided. About 2^-64 per cut and draw is undecided, some 1e-15 for the largest tables.

Widths other than (16, 64) are for tests, where the rare paths become common.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.fixed_point import exp_bounds
from stirred.noise.source import BITS, DONE, EMPTY, ROW, STATUS, UNDECIDED, WORD, RandomSource, State, feed

Shape = Literal["line", "halves", "half", "folded"]


@dataclass(frozen=True)
class Law:
    """One law; see the module for the shapes."""

    power: Literal[1, 2]
    rate: Fraction
    shape: Shape
    gap: Fraction = Fraction(0)
    count: int | None = None


@dataclass(frozen=True)
class Floors:
    """For k = first, first + 1, ...: integers with low <= floor(2^width F(k)) <= high, both non-decreasing in k.

    ``ends`` says that the value after the last listed one is the largest there is, so that its F is 1.
    """

    first: int
    low: list[int]
    high: list[int]
    ends: bool


def _side(law: Law, width: int, margin: int) -> tuple[list[int], list[int], int, int]:
    """Bounds of exp(-rate k^power) for k = 0, 1, ..., an upper bound of the sum of later ones, and the precision."""
    precision = width + 2 * margin
    least = 1 << margin
    ratio_low, ratio_high = exp_bounds(law.rate, precision)
    change_low, change_high = exp_bounds(2 * law.rate, precision)
    lows: list[int] = []
    highs: list[int] = []
    low = high = 1 << precision
    while high >= least and len(lows) != law.count:
        lows.append(low)
        highs.append(high)
        low = low * ratio_low >> precision
        high = -(-high * ratio_high >> precision)
        if law.power == 2:
            ratio_low = ratio_low * change_low >> precision
            ratio_high = -(-ratio_high * change_high >> precision)
    if len(lows) == law.count:
        return lows, highs, 0, precision
    # high bounds the first weight left out and ratio_high every later ratio: high + high ratio + high ratio^2 + ...
    return lows, highs, -(-(high << precision) // ((1 << precision) - ratio_high)), precision


def _weights(law: Law, width: int, margin: int) -> tuple[int, list[int], list[int], int, int]:
    """The first value listed, bounds of all listed weights, and upper bounds of what lies before and behind them."""
    low, high, tail, precision = _side(law, width, margin)
    if law.shape == "line":
        return 1 - len(low), low[:0:-1] + low, high[:0:-1] + high, tail, tail
    if law.shape == "halves":
        gap_low, gap_high = exp_bounds(law.gap, precision)
        left_low = [value * gap_low >> precision for value in low]
        left_high = [-(-value * gap_high >> precision) for value in high]
        return -len(low), left_low[::-1] + low, left_high[::-1] + high, tail, tail
    if law.shape == "folded":
        return 0, [low[0], *(2 * v for v in low[1:])], [high[0], *(2 * v for v in high[1:])], 0, 2 * tail
    return 0, low, high, 0, tail


@lru_cache(maxsize=16)
def floors(law: Law, width: int, margin: int = 64) -> Floors:
    """Bounds of floor(2^width F(k)) for every k whose F is not within about 2^-(width + margin) of 0 or 1."""
    first, low, high, before, behind = _weights(law, width, margin)
    at_most_low, at_most_high = list(accumulate(low)), list(accumulate(high))
    all_low, all_high = at_most_low[-1], at_most_high[-1]
    ends = len(low) == law.count
    lows, highs = [], []
    if before:  # the last value that is not listed has a cut, too
        first -= 1
        lows.append(0)
        highs.append((before << width) // (before + all_low))
    for mass_low, mass_high in zip(at_most_low, at_most_high, strict=True):
        # F = A / (A + B), A the mass up to k and B the mass beyond, rises in A and falls in B.
        beyond_low, beyond_high = all_low - mass_low, all_high - mass_high + behind
        lows.append((mass_low << width) // (mass_low + beyond_high))
        highs.append(((mass_high + before) << width) // (mass_high + before + beyond_low))
    if ends:  # F = 1 at the last value
        lows.pop()
        highs.pop()
    else:  # F < 1 everywhere
        highs = [min(cut, (1 << width) - 1) for cut in highs]
    return Floors(first, lows, highs, ends)


def resolve(law: Law, bits: int, width: int, source: RandomSource) -> int:
    """The value of a draw whose uniform number begins with the ``width`` bits ``bits``, exactly."""
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        known = floors(law, width)
        passed = bisect_left(known.high, bits)  # cuts that are surely at or below the number
        if (known.ends and passed == len(known.low)) or (passed < len(known.low) and bits < known.low[passed]):
            return known.first + passed


def happens(rate: Fraction, bits: int, width: int, source: RandomSource) -> bool:
    """Whether U < exp(-rate) for a uniform number that begins with the ``width`` bits ``bits``, exactly.

    No bits at all (``width`` 0) make a fresh draw.
    """
    if rate == 0:
        return True
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        low, high = exp_bounds(rate, width)
        if bits < low:
            return True
        if bits >= high:
            return False


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
def longer(words, at, head_bits, full_bits):  # type: ignore[no-untyped-def]
    """The first ``full_bits`` bits of the number whose head is at ``at``, from three more words."""
    head = np.uint64(words[at]) >> np.uint64(16 - head_bits)
    rest = (
        (np.uint64(words[at + 1]) << np.uint64(32))
        | (np.uint64(words[at + 2]) << np.uint64(16))
        | np.uint64(words[at + 3])
    )
    rest_bits = full_bits - head_bits
    return (head << np.uint64(rest_bits)) | (rest >> np.uint64(48 - rest_bits))


@kernel
def search(words, at, head_bits, full_bits, cuts):  # type: ignore[no-untyped-def]
    """The draw whose head, at ``at``, did not settle it, from three more words: (cuts passed or -1, bits seen)."""
    bits = longer(words, at, head_bits, full_bits)
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
def leave(state, row, word, status, rows):  # type: ignore[no-untyped-def]
    """Save where to go on; what ended neither done nor undecided wants more words."""
    state[ROW] = row
    state[WORD] = word
    state[STATUS] = EMPTY if status == DONE and row < rows else status


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
    leave(state, row, word, status, len(out))


def seen(state: State) -> int:
    """Bits that a kernel left in its state."""
    return int(state[BITS : BITS + 1].view(np.uint64)[0])


def invert(table: CutTable, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out`` with independent draws from the table's law."""

    def step(words: NDArray[np.uint16], state: State) -> None:
        _invert(words, *table.arrays, table.first, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        out[state[ROW]] = resolve(table.law, seen(state), table.widths.full, own)
        return True

    feed(step, finish, source, 2, 1.3, len(out))
