"""The discrete Gaussian: P(x) proportional to exp(-x^2 / (2 variance)) on all integers, exactly.

Given uniform random bits the law is the mathematical one, not an approximation: see :mod:`stirred.noise.inversion`
(variances up to 2^20), method B below (larger ones) and :mod:`stirred.noise.scale_per_row` (a variance
in each row) for the arguments and the error budgets. The parameter ``variance`` is that of the formula; the variance of
what is drawn is a little smaller for variances below about 1. Canonne, Kamath and Steinke (2020), The Discrete Gaussian
for Differential Privacy, Theorem 4: noise of this law on an integer query of sensitivity d satisfies rho-zCDP with rho
= d^2 / (2 variance).

Method B, for one variance above 2^20: blocks and rejection. With t = 2^s an attempt draws

* a block k >= 0 with probability proportional to exp(-(k t)^2 / (2 variance)), by method T;
* j uniform in 0, ..., t - 1 (s random bits), and a random sign; minus zero is rejected;
* and is accepted with probability exp(-j (2 k t + j) / (2 variance)).

The product of the chances is proportional to exp(-(k t + j)^2 / (2 variance)), and each integer x comes from exactly
one (k, j, sign), so what is accepted has the law exactly. With 64 <= sigma / t < 128 about 0.3 % is rejected.

Error budget. Blocks: none is spent, see :mod:`stirred.noise.inversion`. Acceptance: V uniform, known through 16 bits,
accepts at once below a certified lower bound of the least acceptance in the block. Else 64 bits of V are compared with
the band of :mod:`stirred.noise.fixed_point`, for y = j (2 k t + j) < t^2 (2 k + 1): blocks number below 2^11, so y <
2^(2s + 12), and dropping max(0, 2s - 52) of its bits moves the exponent by less than 2^(2s - 52) 2^57 t^-2 2^-13 = 2^-8
units (1 / (2 variance) <= 2^-13 t^-2). That is inside the 8 units of the band. Inside the band (2^-54 of the
comparisons) the draw is settled by :func:`stirred.noise.inversion.happens`, with the rational exponent.

Values are 64-bit and so is k t + j for sigma <= 2^40, the limit of this method: a block that is not in the table has a
probability below 2^-64 and is drawn by exact arithmetic, too; a value beyond 64 bits (below exp(-2^45)) raises
OverflowError.

Running time is not constant: see :mod:`stirred.noise.source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.fixed_point import exp_bounds, exp_steps, exponent_of, mantissa_of, multiply, probability_band
from stirred.noise.inversion import (
    WIDE,
    CutTable,
    Law,
    Widths,
    cut_table,
    happens,
    invert,
    leave,
    longer,
    resolve,
    search,
    seen,
)
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

LARGEST_VARIANCE = 1 << 80
"""What the error budgets of methods B and U carry: a sigma of 2^40."""

LARGEST_TABLE = 1 << 20
"""Variances up to here have one table of all values, at most 18,600 cuts."""

_RANGE = Range("The variance of a discrete Gaussian", "greater than 0", limit=LARGEST_VARIANCE)

MOST_BLOCKS = 1 << 11


def discrete_gaussian(variance: Number, size: int, source: RandomSource) -> NDArray[np.int64]:
    """``size`` independent draws with one variance, 0 < variance <= 2^80.

    >>> from stirred.noise import SeededSource
    >>> discrete_gaussian("3/7", 12, SeededSource(1)).tolist()
    [0, -1, 0, 0, 0, 0, -1, 0, 0, -1, 0, -1]
    """
    return _draw(_RANGE.exact(variance), counted(size), source)


def discrete_gaussian_each(variances: Numbers, source: RandomSource) -> NDArray[np.int64]:
    """One independent draw for each variance: a sequence of numbers, or integer arrays (numerators, denominators).

    >>> from stirred.noise import SeededSource
    >>> discrete_gaussian_each([1, "1/3", 10**12], SeededSource(1)).tolist()
    [0, 0, -182792]
    """
    return draw_each(2, exact_rows(variances, _RANGE), _draw, source)


def gaussian_law(variance: Fraction) -> Law:
    """All integers, P(k) proportional to exp(-k^2 / (2 variance))."""
    return Law(2, 1 / (2 * variance), "line")


def _draw(variance: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    if variance <= LARGEST_TABLE:
        return drawn(size, source, partial(invert, cut_table(gaussian_law(variance))))
    return drawn(size, source, partial(draw_blocks, block_table(variance)))


# -- method B -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockTable:
    """What the kernel needs to know about one variance."""

    variance: Fraction
    within_bits: int
    """s: a block holds 2^s absolute values."""
    blocks: CutTable
    at_once: NDArray[np.uint32]
    """Per block: a certified lower bound of its least acceptance, in units of 2^-head."""
    mantissa: int
    shift: int

    @property
    def word_count(self) -> int:
        """Words for j and the sign."""
        return 1 if self.within_bits < 16 else 3


def bits_within(variance: Fraction) -> int:
    """s with 64 <= sigma / 2^s < 128, or 0 for smaller sigma."""
    return max(0, (int(variance).bit_length() - 13) // 2)


@lru_cache(maxsize=32)
def block_table(variance: Fraction, within_bits: int | None = None, widths: Widths = WIDE) -> BlockTable:
    """The table of a variance up to 2^80; other block sizes and widths are for tests."""
    bits = bits_within(variance) if within_bits is None else within_bits
    blocks = cut_table(Law(2, Fraction(1 << (2 * bits)) / (2 * variance), "half"), widths)
    count = len(blocks.cuts) + 1
    if bits > 47 or count > MOST_BLOCKS or (bits > 26 and variance < 1 << (2 * bits + 12)):
        raise ValueError("these blocks are outside the error budget")
    ends = [Fraction((2 * k + 1) << (2 * bits)) / (2 * variance) for k in range(count)]
    at_once = np.array([exp_bounds(end, widths.head)[0] for end in ends], dtype=np.uint32)
    return BlockTable(variance, bits, blocks, at_once, *mantissa_of(1 / (2 * variance)))


@kernel
def _blocks(words, within_bits, head_bits, full_bits, cells, cuts, at_once, mantissa, shift, steps, out, state):  # type: ignore[no-untyped-def]
    """Fill ``out``; undecided draws leave the block or -1, x with its sign and the bits of the open comparison."""
    row = state[ROW]
    word = state[WORD]
    unseen = np.uint64(16 - head_bits)
    few = within_bits < 16
    mask = (np.uint64(1) << np.uint64(within_bits)) - np.uint64(1)
    unused = np.uint64(64 - full_bits)
    cut = max(0, 2 * within_bits - 52)
    last = len(words) - 11
    status = DONE
    while row < len(out) and word <= last:
        block = np.int64(cells[np.uint64(words[word]) >> unseen])
        word += 1
        if block < 0:
            block, bits = search(words, word - 1, head_bits, full_bits, cuts)
            word += 3
            if block < 0:
                state[BITS] = np.int64(bits)
                state[FIRST] = -1
                status = UNDECIDED
                break
        drawn = np.uint64(words[word])
        word += 1
        if not few:
            drawn |= (np.uint64(words[word]) << np.uint64(16)) | (np.uint64(words[word + 1]) << np.uint64(32))
            word += 2
        within = drawn & mask
        minus = (drawn >> np.uint64(within_bits)) & np.uint64(1)
        start = np.uint64(block) << np.uint64(within_bits)
        size = start + within
        if size == 0 and minus:
            continue
        x = -np.int64(size) if minus else np.int64(size)
        head = np.uint64(words[word]) >> unseen
        word += 1
        if within == 0 or head < at_once[block]:
            out[row] = x
            row += 1
            continue
        bits = longer(words, word - 1, head_bits, full_bits)
        word += 3
        high, low = multiply(within, start + size)
        surely, possibly = probability_band(exponent_of(high, low, cut, mantissa, shift), steps)
        if bits < surely >> unused:
            out[row] = x
            row += 1
        elif bits <= possibly >> unused:
            state[BITS] = np.int64(bits)
            state[FIRST] = block
            state[SECOND] = x
            status = UNDECIDED
            break
    leave(state, row, word, status, len(out))


def draw_blocks(table: BlockTable, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out`` with independent draws."""
    steps = exp_steps()
    fixed = (table.within_bits, *table.blocks.arrays, table.at_once, np.uint64(table.mantissa), table.shift, steps)

    def step(words: NDArray[np.uint16], state: State) -> None:
        _blocks(words, *fixed, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        width = table.blocks.widths.full
        if state[FIRST] < 0:
            block = resolve(table.blocks.law, seen(state), width, own)
            within = int.from_bytes(own.take(8), "big") >> (63 - table.within_bits)
            within, minus = within >> 1, within & 1
            x = (block << table.within_bits) + within
            if minus and x == 0:
                return False
            accepted = happens(_exponent(table, block, x), 0, 0, own)
            x = -x if minus else x
        else:
            x = int(state[SECOND])
            accepted = happens(_exponent(table, int(state[FIRST]), abs(x)), seen(state), width, own)
        if accepted:
            out[state[ROW]] = x
        return accepted

    feed(step, finish, source, 2, 2.06 + table.word_count, len(out))


def _exponent(table: BlockTable, block: int, size: int) -> Fraction:
    """(x^2 - (k t)^2) / (2 variance)"""
    return (size**2 - (block << table.within_bits) ** 2) / (2 * table.variance)
