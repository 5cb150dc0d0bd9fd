"""Independent selection with exactly rational probabilities: one for all records, by geometric gaps, or one a class.

The law. Each of ``n`` records is selected independently with probability ``rate`` = a/b, exactly. Equivalently the
number of records passed over before the next selected one is geometric, P(gap >= k) = (1 - a/b)^k, and gaps are
independent; so one draw is needed per selected record, not per record.

How a gap is drawn. Let U be uniform on [0, 1), known through its first bits only, and F(k) = 1 - (1 - a/b)^(k+1).
The gap is the number of k with F(k) <= U. A decision is taken only when *every* continuation of the bits seen
gives the same answer for the rational F(k), so the law is exact given uniform bits, with no error to account for:

* 16 bits settle it unless a cut F(k) falls inside their cell (a table of 65,536 cells says which);
* else 48 more bits are compared with floor(2^64 F(k)), computed from integers; above or below is settled, and so
  is equality where 2^64 F(k) is itself an integer (then U >= F(k));
* else the draw is *undecided* (about 2^-64 per cut) and :func:`_resolve` goes on with rational arithmetic, 64 bits
  at a time, until it is settled.

The table ends after K cuts. A gap of K or more means "pass over K records and draw again", which is exact because
the geometric law has no memory. The word widths are arguments so that the tests can run the same kernels with words
of a few bits, where the rare paths are common.

Where records have different rates, each one of a few exact fractions, record i is selected independently with the rate
of its class, exactly. Selection over a file is one call of :func:`select` for each class, so it costs one draw per
selected record. Selection in groups *given that no group has exactly one selected* tosses a coin for every record of a
group, and all of them again while exactly one came up: only so is the law the conditional one. Coins are those of
:mod:`stirred.noise.coins`. A group is tossed 1/P(not exactly one) times on average, which is two at most for equal
rates, and many for a group of one record of rate near 1 and one of rate near 0
(:func:`stirred.swap.law.theorem.kept_share`).

Not claimed: constant time. How long a draw takes depends on what is drawn.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.coins import as_arrays, band_of_fraction, below, coin
from stirred.noise.inversion import WIDE, Widths, longer, seen
from stirred.noise.source import (
    BITS,
    DONE,
    EMPTY,
    FIRST,
    ROW,
    SECOND,
    STATUS,
    UNDECIDED,
    WORD,
    RandomSource,
    State,
    block_of_words,
    feed,
)

MOST_CUTS = 1024
"""Cuts in a gap table; more would fill the 16-bit cells with cuts, fewer would waste draws at small rates."""

_AT, _COUNT, _GROUP = ROW, FIRST, SECOND  # slots of the state that kernels of gaps resume from
_FULL = 3  # why such a kernel returned, beside the usual: there is no room for what was selected
_NEEDS_WORDS, _IS_UNDECIDED = -1, -2  # what _gap says instead of a gap


@dataclass(frozen=True)
class GapTable:
    """Certified cuts of the geometric law of one rate, for words of ``head_bits`` and then ``full_bits`` bits."""

    rate: Fraction
    head_bits: int
    full_bits: int
    cells: NDArray[np.int16]
    """Per head: the gap, or -1 where a cut falls inside the head's cell. The value K stands for "K or more"."""
    cuts: NDArray[np.uint64]
    """floor(2^full_bits F(k)) for k < K, increasing."""
    whole: NDArray[np.bool_]
    """Whether 2^full_bits F(k) is an integer."""

    @property
    def reach(self) -> int:
        """K: a gap of so many records or more is drawn in steps."""
        return len(self.cuts)

    @property
    def arrays(self) -> tuple[int, int, NDArray[np.int16], NDArray[np.uint64], NDArray[np.bool_]]:
        """What the kernels need, in their order."""
        return self.head_bits, self.full_bits, self.cells, self.cuts, self.whole


def select(records: int, rate: Fraction, source: RandomSource, table: GapTable | None = None) -> NDArray[np.uint32]:
    """Positions, increasing, of the records selected among ``records``, each independently with ``rate``.

    >>> from stirred.noise import SeededSource
    >>> len(select(1_000, Fraction(1, 20), SeededSource(1)))
    48
    """
    if records >= 1 << 32:
        raise ValueError("positions are 32-bit")
    if rate == 0 or records == 0:
        return np.empty(0, dtype=np.uint32)
    if rate == 1:
        return np.arange(records, dtype=np.uint32)
    table = table or gap_table(rate)
    expected = int(records * rate)
    selected = np.empty(min(records, expected + 6 * int(expected**0.5) + 64), dtype=np.uint32)
    state = np.zeros(6, dtype=np.int64)

    def step(forced: int, words: NDArray[np.uint16]) -> None:
        _select(records, forced, words, *table.arrays, selected, state)

    def grow() -> None:
        nonlocal selected
        selected = np.concatenate([selected, np.empty(len(selected), dtype=np.uint32)])

    _drive(step, table, state, source, 2 * expected, grow)
    return selected[: int(state[_COUNT])]


def reselect(
    starts: NDArray[np.int64], rate: Fraction, source: RandomSource, table: GapTable | None = None
) -> NDArray[np.bool_]:
    """Selection in groups, conditional on no group having exactly one selected.

    Group ``g`` holds positions ``starts[g]`` to ``starts[g + 1]``. Each group is selected afresh until the number
    selected is not one (line 11 of Algorithm 3.2.1); groups of fewer than two records are never selected.
    """
    chosen = np.zeros(int(starts[-1]), dtype=np.bool_)
    if rate == 0:
        return chosen
    if rate == 1:
        sizes = np.diff(starts)
        return np.repeat(sizes > 1, sizes)
    table = table or gap_table(rate)
    state = np.zeros(6, dtype=np.int64)

    def step(forced: int, words: NDArray[np.uint16]) -> None:
        _reselect(starts, forced, words, *table.arrays, chosen, state)

    _drive(step, table, state, source, 4 * (len(starts) + int(2 * starts[-1] * rate)))
    return chosen


def select_by_class(
    classes: NDArray[np.unsignedinteger], rates: Sequence[Fraction], source: RandomSource
) -> NDArray[np.uint32]:
    """Positions of the selected records, class after class; record i has the rate ``rates[classes[i]]``.

    >>> from stirred.noise import SeededSource
    >>> classes = np.repeat(np.arange(2, dtype=np.uint8), 1_000)
    >>> chosen = select_by_class(classes, [Fraction(1, 50), Fraction(1, 2)], SeededSource(1))
    >>> int((chosen < 1_000).sum()), int((chosen >= 1_000).sum())
    (20, 486)
    """
    sizes = np.bincount(classes, minlength=len(rates))
    chosen = []
    for code, rate in enumerate(rates):
        rows = np.empty(int(sizes[code]), dtype=np.uint32)
        _positions(classes, code, rows)
        chosen.append(rows[select(len(rows), rate, source)])
    return np.concatenate(chosen)


def reselect_by_class(
    starts: NDArray[np.int64],
    classes: NDArray[np.unsignedinteger],
    rates: Sequence[Fraction],
    source: RandomSource,
    widths: Widths = WIDE,
) -> NDArray[np.bool_]:
    """Selection in groups with a rate for each record, given that no group has exactly one selected.

    Group ``g`` holds positions ``starts[g]`` to ``starts[g + 1]``. The whole group is selected afresh until the number
    selected is not one; groups of fewer than two records are never selected. Rates lie strictly between 0 and 1, else
    a group might have exactly one selected for ever. Other widths are for tests.
    """
    if not all(0 < rate < 1 for rate in rates):
        raise ValueError("rates of classes lie strictly between 0 and 1")
    chosen = np.zeros(int(starts[-1]), dtype=np.bool_)
    surely, possibly = as_arrays(map(band_of_fraction, rates))

    def step(words: NDArray[np.uint16], state: State) -> None:
        _reselect_by_class(words, *widths, starts, classes, surely, possibly, chosen, state)

    def finish(state: State, own: RandomSource) -> bool:
        row = int(state[ROW])
        chosen[row] = below(rates[classes[row]], seen(state), widths.full, own)
        state[SECOND] += int(chosen[row])
        return True

    feed(step, finish, source, 2, 1.5, len(chosen))
    return chosen


def cut_values(rate: Fraction) -> list[Fraction]:
    """F(0), ..., F(K-1): K cuts cover all but 2^-10 of the mass, or MOST_CUTS of them at small rates."""
    missed = 1 - rate
    cuts = [rate]
    beyond = missed
    while len(cuts) < MOST_CUTS and beyond * 1024 > 1:
        beyond *= missed
        cuts.append(1 - beyond)
    return cuts


@lru_cache(maxsize=64)
def gap_table(rate: Fraction, head_bits: int = 16, full_bits: int = 64) -> GapTable:
    """The table of one rate, 0 < rate < 1; widths other than (16, 64) are for tests."""
    if not 0 < rate < 1:
        raise ValueError("a gap table needs a rate strictly between 0 and 1")
    if not 1 <= head_bits <= 16 or not 0 < full_bits - head_bits <= 48:
        raise ValueError("a head has at most 16 bits and at most 48 follow it")
    values = cut_values(rate)
    heads = np.arange(1 << head_bits)
    scaled = [(value.numerator << head_bits, value.denominator) for value in values]
    floors = np.array([top // bottom for top, bottom in scaled])
    ceilings = np.array([-(-top // bottom) for top, bottom in scaled])
    fewest = np.searchsorted(ceilings, heads, side="right")  # cuts at or below the cell's lower end
    most = np.searchsorted(floors, heads, side="right")  # cuts below the cell's upper end
    full = [divmod(value.numerator << full_bits, value.denominator) for value in values]
    return GapTable(
        rate=rate,
        head_bits=head_bits,
        full_bits=full_bits,
        cells=np.where(fewest == most, fewest, -1).astype(np.int16),
        cuts=np.array([quotient for quotient, _ in full], dtype=np.uint64),
        whole=np.array([remainder == 0 for _, remainder in full]),
    )


@kernel
def _gap(words, at, head_bits, full_bits, cells, cuts, whole, state):  # type: ignore[no-untyped-def]
    """One gap from ``words`` at ``at``: (gap, next position), or a negative code instead of the gap."""
    if at + 4 > len(words):
        return _NEEDS_WORDS, at
    head = np.uint64(words[at]) >> np.uint64(16 - head_bits)
    gap = np.int64(cells[head])
    if gap >= 0:
        return gap, at + 1
    bits = longer(words, at, head_bits, full_bits)
    gap = np.int64(np.searchsorted(cuts, bits, side="right"))
    if gap > 0 and cuts[gap - 1] == bits and not whole[gap - 1]:
        state[BITS] = np.int64(bits)
        return _IS_UNDECIDED, at + 4
    return gap, at + 4


@kernel
def _select(records, forced, words, head_bits, full_bits, cells, cuts, whole, selected, state):  # type: ignore[no-untyped-def]
    """Fill ``selected`` with the positions chosen among ``records``; resume from and save to ``state``."""
    reach = len(cuts)
    at = state[_AT]
    count = state[_COUNT]
    word = state[WORD]
    status = DONE
    while at < records:
        if forced >= 0:
            gap = forced
            forced = -1
        else:
            gap, word = _gap(words, word, head_bits, full_bits, cells, cuts, whole, state)
            if gap < 0:
                status = EMPTY if gap == _NEEDS_WORDS else UNDECIDED
                break
        at += gap
        if gap == reach:
            continue
        if at < records:
            if count == len(selected):  # the caller makes room and comes back with the same gap
                at -= gap
                state[BITS] = gap
                status = _FULL
                break
            selected[count] = at
            count += 1
            at += 1
    state[_AT] = at
    state[_COUNT] = count
    state[WORD] = word
    state[STATUS] = status


@kernel
def _reselect(starts, forced, words, head_bits, full_bits, cells, cuts, whole, chosen, state):  # type: ignore[no-untyped-def]
    """Per group: select until the number selected is not one. ``state[_COUNT]`` counts within the group."""
    reach = len(cuts)
    group = state[_GROUP]
    at = state[_AT]
    count = state[_COUNT]
    word = state[WORD]
    status = DONE
    while group < len(starts) - 1:
        start = starts[group]
        size = starts[group + 1] - start
        if size < 2:
            group += 1
            continue
        while at < size:
            if forced >= 0:
                gap = forced
                forced = -1
            else:
                gap, word = _gap(words, word, head_bits, full_bits, cells, cuts, whole, state)
                if gap < 0:
                    status = EMPTY if gap == _NEEDS_WORDS else UNDECIDED
                    break
            at += gap
            if gap < reach and at < size:
                chosen[start + at] = True
                count += 1
                at += 1
        if status != DONE:
            break
        if count == 1:
            for i in range(start, start + size):
                chosen[i] = False
        else:
            group += 1
        at = 0
        count = 0
    state[_GROUP] = group
    state[_AT] = at
    state[_COUNT] = count
    state[WORD] = word
    state[STATUS] = status


def _drive(
    step: Callable[[int, NDArray[np.uint16]], None],
    table: GapTable,
    state: NDArray[np.int64],
    source: RandomSource,
    words_expected: int,
    grow: Callable[[], None] | None = None,
) -> None:
    """Call ``step`` with a gap to start from, or -1, and words, until it is done."""
    words = block_of_words(source, 2, words_expected)
    forced = -1
    while True:
        step(forced, words)
        forced = -1
        if state[STATUS] == DONE:
            return
        if state[STATUS] == EMPTY:
            words = block_of_words(source, 2, words_expected)
            state[WORD] = 0
        elif state[STATUS] == UNDECIDED:
            forced = _resolve(table, seen(state), source)
        else:
            assert grow is not None
            forced = int(state[BITS])  # the gap that found no room
            grow()


def _resolve(table: GapTable, bits: int, source: RandomSource) -> int:
    """Finish an undecided draw whose first ``full_bits`` bits are ``bits``, exactly."""
    values = cut_values(table.rate)
    width = table.full_bits
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        low, high = Fraction(bits, 1 << width), Fraction(bits + 1, 1 << width)
        at_most, below = bisect_right(values, low), bisect_left(values, high)
        if at_most == below:
            return at_most


@kernel
def _positions(classes, wanted, rows):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(len(classes)):
        if classes[i] == wanted:
            rows[at] = i
            at += 1


@kernel
def _reselect_by_class(words, head_bits, full_bits, starts, classes, surely, possibly, chosen, state):  # type: ignore[no-untyped-def]
    """Toss for each record in turn; FIRST is the group, SECOND the number selected in it so far."""
    row = state[ROW]
    word = state[WORD]
    group = state[FIRST]
    count = state[SECOND]
    last = len(words) - 4
    status = DONE
    while group < len(starts) - 1:
        start, end = starts[group], starts[group + 1]
        if end - start < 2:
            row = end
        if row == end:
            if count == 1:
                row = start
            else:
                group += 1
            count = 0
            continue
        if word > last:
            status = EMPTY
            break
        own = classes[row]
        side, bits, word = coin(words, word, head_bits, full_bits, surely[own], possibly[own])
        if side < 0:
            state[BITS] = np.int64(bits)
            status = UNDECIDED
            break
        chosen[row] = side == 1
        count += side
        row += 1
    state[FIRST] = group
    state[SECOND] = count
    state[ROW] = row
    state[WORD] = word
    state[STATUS] = status
