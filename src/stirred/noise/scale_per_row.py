"""Method U: a scale of its own in every row, Gaussian (power 2) or Laplace (power 1), from one set of reference tables.

The law: P(x) proportional to exp(-R |x|^power) on all integers, with R = 1 / (2 variance) or 1 / scale, rational.

Reference rates are the numbers m 2^(o - bottom - 3), m = 8, ..., 15, from 2^-bottom (a Gaussian sigma or Laplace scale
of 32) up to 4. For a row, s >= 0 is the least integer with r = R 2^(power s) >= 2^-bottom, t = 2^s, and the reference
is the largest rate that is at most r: it has r's leading four bits, so no search is needed and r >= rate is certain. An
attempt draws

* k >= 0 with probability proportional to exp(-rate k^power), by method T from 12 and then 64 bits;
* j uniform in 0, ..., t - 1, and a random sign; minus zero is rejected;
* and is accepted with probability exp(-E), E = R x^power - rate k^power >= 0, where x = k t + j.

The product of the chances is proportional to exp(-R x^power), and x comes from exactly one (k, j, sign): exact. For
scales up to 16, where t = 1, every reference weight but that of 0 is doubled and minus zero counts as zero, so that no
draw is lost to it. One 64-bit word makes an attempt: 12 bits for k, up to 35 for j, 1 sign, 16 for the acceptance.

Error budget, in the units of 2^-57 of :mod:`stirred.noise.fixed_point`. rate k^power is exact, since rates are
multiples of 2^-14 and the products stay below 2^7. R x^power is computed from R's leading 64 bits. For power 2, k < 2^9
and x < 2^(s + 9), so x^2 < 2^(2s + 18) is cut to its leading 64 bits: max(0, 2s - 46) bits are dropped, and R < 2^(-9 -
2s) then, so this costs at most 2^(2s - 46) 2^57 2^(-9 - 2s) = 4 units; for power 1 nothing is dropped. Together with 2
units for the mantissa and 1 for the shift that is below the 8 units of the band. A comparison inside the band (2^-54 of
them), and a k that 64 bits leave undecided, are settled with rational numbers. From E = 45 on the acceptance is below
2^-64; where R x^power is too large for 64 bits E is far beyond that. The first test, V < 1 - E <= exp(-E), needs no
exp.

Limit: s <= 35, which is a sigma or scale of 2^40.

Rows with few different scales are grouped, and each group drawn by the faster method for one scale. Which method is
used depends on the scales alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.fixed_point import (
    EXPONENT_SLACK,
    FRACTION_BITS,
    exp_steps,
    exponent_of,
    mantissa_of,
    multiply,
    probability_band,
)
from stirred.noise.inversion import Law, Widths, cells_of, certified_cuts, happens, leave, resolve, seen
from stirred.noise.scales import Rows
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
    feed,
    in_chunks,
)

BOTTOM = {1: 5, 2: 11}
TABLE = Widths(12, 64)
ACCEPTANCE = Widths(16, 64)
_HIGHEST = 2
"""The highest reference rate is 2^2."""
_WORTH_A_TABLE = 1 << 16
"""Rows with the same scale for which a table of their own pays."""


@dataclass(frozen=True, eq=False)
class References:
    """Tables of all reference laws of one power."""

    power: Literal[1, 2]
    table: Widths
    acceptance: Widths
    laws: tuple[Law, ...]
    cells: NDArray[np.int16]
    """One row for each law."""
    cuts: NDArray[np.uint64]
    starts: NDArray[np.int64]
    """The cuts of law i stand from starts[i] to starts[i + 1]."""


def reference_law(power: Literal[1, 2], index: int) -> Law:
    """Rate (8 + index mod 8) 2^(index div 8 - bottom - 3); folded from a scale of 16 downwards."""
    octave, eighths = divmod(index, 8)
    rate = Fraction((8 + eighths) << octave, 1 << (BOTTOM[power] + 3))
    return Law(power, rate, "folded" if octave >= power else "half")


@lru_cache(maxsize=8)
def references(power: Literal[1, 2], table: Widths = TABLE, acceptance: Widths = ACCEPTANCE) -> References:
    """All tables of one power, about 1 MB; widths other than the usual are for tests."""
    laws = [reference_law(power, index) for index in range(8 * (BOTTOM[power] + _HIGHEST) + 1)]
    cells, cuts = [], []
    for law in laws:
        first, own = certified_cuts(law)
        if first or len(own) >= 1 << (9 if power == 2 else 11) or law.rate * len(own) ** power > 80:
            raise ValueError("this reference is outside the error budget")
        cuts.append(own >> np.uint64(64 - table.full))
        cells.append(cells_of(cuts[-1], table))
    starts = np.concatenate([[0], np.cumsum([len(own) for own in cuts])]).astype(np.int64)
    return References(power, table, acceptance, tuple(laws), np.stack(cells), np.concatenate(cuts), starts)


@kernel
def placed(mantissa, shift, power, bottom, references):  # type: ignore[no-untyped-def]
    """(s, index of the reference) of the rate mantissa 2^-shift."""
    bits = max(0, (shift - 63 - bottom + power - 1) // power)
    octave = 63 - shift + power * bits + bottom
    return bits, min(8 * octave + np.int64((mantissa >> np.uint64(60)) & np.uint64(7)), references - 1)


@kernel
def _universal(  # type: ignore[no-untyped-def]
    words, mantissas, shifts, power, bottom, cells, cuts, starts, head, full, first_bits, all_bits, steps, out, state
):
    """Fill ``out``; undecided draws leave k or -1, x with its sign and the bits of the open comparison."""
    row = state[ROW]
    word = state[WORD]
    last = len(words) - 3
    one, slack = np.uint64(1), np.uint64(EXPONENT_SLACK)
    unseen, unseen_first = np.uint64(64 - head), np.uint64(16 - first_bits)
    unused, unused_first = np.uint64(64 - all_bits), np.uint64(64 - first_bits)
    status = DONE
    while row < len(out) and word <= last:
        mantissa, shift = mantissas[row], shifts[row]
        bits_within, reference = placed(mantissa, shift, power, bottom, len(cells))
        drawn = words[word]
        word += 1
        k = np.int64(cells[reference, drawn >> unseen])
        if k < 0:
            bits = (drawn >> unseen << np.uint64(full - head)) | (words[word] >> np.uint64(64 - full + head))
            word += 1
            own = cuts[starts[reference] : starts[reference + 1]]
            k = np.int64(np.searchsorted(own, bits, side="right"))
            if k > 0 and own[k - 1] == bits:
                state[BITS] = np.int64(bits)
                state[FIRST] = -1
                status = UNDECIDED
                break
        within = (drawn >> np.uint64(17)) & ((one << np.uint64(bits_within)) - one)
        minus = (drawn >> np.uint64(16)) & one
        size = (np.uint64(k) << np.uint64(bits_within)) + within
        x = -np.int64(size) if minus else np.int64(size)
        if size == 0:  # E = 0
            if not minus or reference >= 8 * power:
                out[row] = 0
                row += 1
            continue
        rate = np.uint64(8 + (reference & 7)) << np.uint64(FRACTION_BITS - 3 - bottom + (reference >> 3))
        if power == 2:
            high, low = multiply(size, size)
            exponent = exponent_of(high, low, max(0, 2 * bits_within - 46), mantissa, shift)
            start = np.uint64(k * k) * rate
        else:
            exponent = exponent_of(np.uint64(0), size, 0, mantissa, shift)
            start = np.uint64(k) * rate
        exponent = exponent - start if exponent > start else np.uint64(0)
        chance = (drawn & np.uint64(0xFFFF)) >> unseen_first
        if exponent >> np.uint64(FRACTION_BITS) == 0:
            at_least = ~((exponent + slack) << np.uint64(64 - FRACTION_BITS))  # 1 - E, or less by a unit
            if exponent + slack < one << np.uint64(FRACTION_BITS) and chance < at_least >> unused_first:
                out[row] = x
                row += 1
                continue
        surely, possibly = probability_band(exponent, steps)
        if chance > possibly >> unused_first:
            continue
        bits = (chance << np.uint64(all_bits - first_bits)) | (words[word] >> np.uint64(64 - all_bits + first_bits))
        word += 1
        if bits < surely >> unused:
            out[row] = x
            row += 1
        elif bits <= possibly >> unused:
            state[BITS] = np.int64(bits)
            state[FIRST] = k
            state[SECOND] = x
            status = UNDECIDED
            break
    leave(state, row, word, status, len(out))


def draw_universal(tables: References, rows: Rows, start: int, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out`` with independent draws, the i-th with the scale of row ``start`` + i."""
    power, bottom, steps = tables.power, BOTTOM[tables.power], exp_steps()
    mantissas, shifts = rows.inverses(start, start + len(out), power)
    fixed = (power, bottom, tables.cells, tables.cuts, tables.starts, *tables.table, *tables.acceptance, steps)

    def step(words: NDArray[np.uint64], state: State) -> None:
        _universal(words, mantissas, shifts, *fixed, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        rate = 1 / (power * rows.exact(start + int(state[ROW])))
        mantissa, shift = mantissa_of(rate)
        bits_within, index = placed(np.uint64(mantissa), shift, power, bottom, len(tables.laws))
        law = tables.laws[index]
        if state[FIRST] < 0:
            k = resolve(law, seen(state), tables.table.full, own)
            drawn = int.from_bytes(own.take(8), "big") >> (63 - bits_within)
            minus, size = drawn & 1, (k << bits_within) + (drawn >> 1)
            if minus and size == 0 and law.shape == "half":
                return False
            accepted = happens(rate * size**power - law.rate * k**power, 0, 0, own)
            x = -size if minus else size
        else:
            k, x = int(state[FIRST]), int(state[SECOND])
            exponent = rate * abs(x) ** power - law.rate * k**power
            accepted = happens(exponent, seen(state), tables.acceptance.full, own)
        if accepted:
            out[state[ROW]] = x
        return accepted

    feed(step, finish, source, 8, 1.15, len(out))


def draw_each(
    power: Literal[1, 2],
    rows: Rows,
    one: Callable[[Fraction, int, RandomSource], NDArray[np.int64]],
    source: RandomSource,
) -> NDArray[np.int64]:
    """One draw for each row; ``one(scale, size, source)`` draws many with the same scale."""
    out = np.empty(len(rows), dtype=np.int64)
    groups = rows.grouped()
    if groups is not None and (len(groups[0]) <= 16 or len(groups[0]) * _WORTH_A_TABLE <= len(rows)):
        scales, codes = groups
        for code, scale in enumerate(scales):
            members = np.flatnonzero(codes == code)
            out[members] = one(scale, len(members), source)
        return out
    tables = references(power)

    def fill(start: int, stop: int, own: RandomSource) -> None:
        draw_universal(tables, rows, start, out[start:stop], own)

    in_chunks(len(out), source, fill)
    return out
