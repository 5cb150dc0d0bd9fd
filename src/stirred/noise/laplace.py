"""The discrete Laplace (two-sided geometric): P(x) proportional to exp(-|x| / scale) on all integers, exactly.

Write x >= 0 as x = h T + l and x < 0 as x = -(h T + l + 1), with T = 2^(number of lower bits), h >= 0 and 0 <= l < T.
Then exp(-|x| / scale) is exp(-h T / scale) exp(-l / scale), times exp(-1 / scale) for x < 0: the side with h, and l,
are independent, and so are the digits of l in any bases that are powers of two, each a geometric law cut off at its
base. All of them are drawn by method T; nothing is rejected, and a scale up to 128 is one table.

Error budget: none is spent; see :mod:`stirred.noise.inversion`. An undecided digit, and those that follow it, are drawn
with exact arithmetic. Limit: a scale of 2^40, where x stays within 64 bits; a value beyond (probability below
exp(-2^22)) raises OverflowError. For a scale in each row see :mod:`stirred.noise.scale_per_row`, which has the same
limit.

Noise of this law on an integer query of sensitivity d satisfies epsilon-differential privacy with epsilon = d / scale.
Running time is not constant: see :mod:`stirred.noise.source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.inversion import WIDE, CutTable, Law, Widths, cut_table, invert, leave, resolve, search, seen
from stirred.noise.scale_per_row import draw_each
from stirred.noise.scales import Number, Numbers, Range, exact_rows
from stirred.noise.source import (
    BITS,
    DONE,
    FIRST,
    ROW,
    SECOND,
    UNDECIDED,
    WORD,
    RandomSource,
    State,
    counted,
    drawn,
    feed,
)

LARGEST_SCALE = 1 << 40
LARGEST_TABLE = 128
"""Scales up to here have one table of all values, at most 11,500 cuts."""
DIGIT_BITS = 8

_RANGE = Range("The scale of a discrete Laplace", "greater than 0", limit=LARGEST_SCALE)


def discrete_laplace(scale: Number, size: int, source: RandomSource) -> NDArray[np.int64]:
    """``size`` independent draws with one scale, 0 < scale <= 2^40.

    >>> from stirred.noise import SeededSource
    >>> discrete_laplace("3/2", 10, SeededSource(2)).tolist()
    [0, -3, 0, 4, 2, -2, 2, 3, 5, 1]
    """
    return _draw(_RANGE.exact(scale), counted(size), source)


def discrete_laplace_each(scales: Numbers, source: RandomSource) -> NDArray[np.int64]:
    """One independent draw for each scale: a sequence of numbers, or integer arrays (numerators, denominators).

    >>> from stirred.noise import SeededSource
    >>> discrete_laplace_each([1, "1/3", 10**6], SeededSource(1)).tolist()
    [0, 0, 1287433]
    """
    return draw_each(1, exact_rows(scales, _RANGE), _draw, source)


@dataclass(frozen=True, eq=False)
class Digits:
    """The side and high part, then the lower digits from the lowest; digit i counts 2^offsets[i]."""

    high: CutTable
    lower: tuple[CutTable, ...]
    offsets: tuple[int, ...]
    lower_bits: int

    def value(self, high: int, low: int) -> int:
        """x from its high part, negative for x < 0, and the sum of its lower digits."""
        return (high << self.lower_bits) + (low if high >= 0 else (1 << self.lower_bits) - 1 - low)


def digit_bits(scale: Fraction) -> list[int]:
    """Bits of each lower digit: as few as bring the scale of the high part to 128, shared out evenly."""
    lower = 0
    while scale > LARGEST_TABLE << lower:
        lower += 1
    digits = -(-lower // DIGIT_BITS)
    return [(lower + i) // digits for i in range(digits)]


@lru_cache(maxsize=32)
def digit_tables(scale: Fraction, bits: tuple[int, ...] | None = None, widths: Widths = WIDE) -> Digits:
    """The tables of one scale; other digits and widths are for tests."""
    sizes = digit_bits(scale) if bits is None else list(bits)
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    lower = tuple(
        cut_table(Law(1, (1 << offset) / scale, "half", count=1 << size), widths)
        for offset, size in zip(offsets, sizes, strict=False)
    )
    high = cut_table(Law(1, (1 << offsets[-1]) / scale, "halves", gap=1 / scale), widths)
    return Digits(high, lower, tuple(offsets[:-1]), offsets[-1])


@kernel
def _digits(  # type: ignore[no-untyped-def]
    words, head_bits, full_bits, cells, cuts, first, low_cells, low_cuts, starts, offsets, lower_bits, out, state
):
    """Fill ``out``. Lower digits come first; an undecided one leaves its number and the sum of those before it."""
    row = state[ROW]
    word = state[WORD]
    unseen = np.uint64(16 - head_bits)
    digits = len(offsets)
    last = len(words) - 4 * (digits + 1)
    status = DONE
    while row < len(out) and word <= last:
        low = np.int64(0)
        passed = np.int64(0)
        bits = np.uint64(0)
        for digit in range(digits):
            passed = np.int64(low_cells[digit, np.uint64(words[word]) >> unseen])
            word += 1
            if passed < 0:
                own = low_cuts[starts[digit] : starts[digit + 1]]
                passed, bits = search(words, word - 1, head_bits, full_bits, own)
                word += 3
                if passed < 0:
                    state[FIRST] = digit
                    break
            low += passed << offsets[digit]
        if passed >= 0:
            passed = np.int64(cells[np.uint64(words[word]) >> unseen])
            word += 1
            if passed < 0:
                passed, bits = search(words, word - 1, head_bits, full_bits, cuts)
                word += 3
                state[FIRST] = digits
        if passed < 0:
            state[BITS] = np.int64(bits)
            state[SECOND] = low
            status = UNDECIDED
            break
        high = first + passed
        out[row] = (high << lower_bits) + (low if high >= 0 else (np.int64(1) << lower_bits) - 1 - low)
        row += 1
    leave(state, row, word, status, len(out))


def draw_digits(tables: Digits, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out`` with independent draws."""
    lower = tables.lower
    if not lower:
        invert(tables.high, out, source)
        return
    cells, cuts = np.stack([table.cells for table in lower]), np.concatenate([table.cuts for table in lower])
    starts = np.concatenate([[0], np.cumsum([len(table.cuts) for table in lower])]).astype(np.int64)
    fixed = (*tables.high.arrays, tables.high.first, cells, cuts, starts, np.array(tables.offsets), tables.lower_bits)

    def step(words: NDArray[np.uint16], state: State) -> None:
        _digits(words, *fixed, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        low, open_digit = int(state[SECOND]), int(state[FIRST])
        drawn = [(table.law, 0, 0) for table in (*lower, tables.high)[open_digit:]]
        drawn[0] = (drawn[0][0], seen(state), tables.high.widths.full)
        values = [resolve(law, bits, width, own) for law, bits, width in drawn]
        low += sum(value << offset for value, offset in zip(values, tables.offsets[open_digit:], strict=False))
        out[state[ROW]] = tables.value(values[-1], low)
        return True

    feed(step, finish, source, 2, 1.15 * (len(lower) + 1), len(out))


def _draw(scale: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    return drawn(size, source, partial(draw_digits, digit_tables(scale)))
