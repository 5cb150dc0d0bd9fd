"""The discrete Laplace by digits: how values are put together, all bit strings of narrow words, tails."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exact_laws import Patterned, fits, head_and_rest, share_between, weights

from stirred.noise import SeededSource, source
from stirred.noise.fixed_point import exp_bounds
from stirred.noise.inversion import Widths
from stirred.noise.laplace import LARGEST_SCALE, LARGEST_TABLE, _digits, digit_bits, digit_tables, draw_digits
from stirred.noise.source import EMPTY, FIRST, SECOND, STATUS, UNDECIDED


def test_digits_bring_every_scale_down_to_one_table():
    for scale in (
        Fraction(1, 9),
        Fraction(128),
        Fraction(129),
        Fraction(10**6),
        Fraction(2**35, 3),
        Fraction(LARGEST_SCALE),
    ):
        bits = digit_bits(scale)
        assert scale / 2 ** sum(bits) <= LARGEST_TABLE
        assert not bits or scale / 2 ** (sum(bits) - 1) > LARGEST_TABLE
        assert all(1 <= digit <= 8 for digit in bits)


def test_every_integer_has_exactly_one_set_of_digits():
    tables = digit_tables(Fraction(50), (2, 1))
    values = [tables.value(high, low) for high in range(-5, 5) for low in range(8)]
    assert sorted(values) == list(range(-40, 40))
    assert [tables.value(-1, low) for low in range(8)] == list(range(-1, -9, -1))


def kernel_of(tables):
    lower = tables.lower
    cells, cuts = np.stack([table.cells for table in lower]), np.concatenate([table.cuts for table in lower])
    starts = np.concatenate([[0], np.cumsum([len(table.cuts) for table in lower])]).astype(np.int64)
    fixed = (*tables.high.arrays, tables.high.first, cells, cuts, starts, np.array(tables.offsets), tables.lower_bits)
    return lambda words, out, state: _digits(words, *fixed, out, state)


@pytest.mark.parametrize(
    ("scale", "bits", "widths"),
    [
        (Fraction(5), (1,), Widths(3, 6)),
        (Fraction(10, 3), (2,), Widths(4, 6)),
        (Fraction(7), (1, 1), Widths(2, 4)),
        (Fraction(7), (2, 1), Widths(3, 4)),
    ],
    ids=str,
)
def test_all_bit_strings_together_give_each_value_its_probability(scale, bits, widths):
    """Every draw with words of a few bits: settled strings and open ones enclose every probability."""
    tables = digit_tables(scale, bits, widths)
    kernel = kernel_of(tables)
    every = (*tables.lower, tables.high)
    number = 2**widths.full
    cells = [
        [list(share_between(table.law, Decimal(i) / number, Decimal(i + 1) / number)) for i in range(number)]
        for table in every
    ]
    settled, possible = Counter(), Counter()
    for drawn in product(range(number), repeat=len(every)):
        words = []
        for table, own in zip(every, drawn, strict=True):
            all_words = head_and_rest(own, *widths)
            words += all_words if table.cells[own >> (widths.full - widths.head)] < 0 else all_words[:1]
        out, state = np.empty(1, dtype=np.int64), np.zeros(6, dtype=np.int64)
        kernel(np.array(words + [0] * (4 * len(every) - len(words)), dtype=np.uint16), out, state)
        sets = [cell[own] for cell, own in zip(cells, drawn, strict=True)]
        open_digits = [i for i, own in enumerate(sets) if len(own) > 1]
        if cells[-1] and drawn[-1] in (0, number - 1) and len(every) - 1 not in open_digits:
            open_digits.append(len(every) - 1)
        reachable = {
            tables.value(digits[-1], sum(d << o for d, o in zip(digits, tables.offsets, strict=False)))
            for digits in product(*sets)
        }
        if state[STATUS] == UNDECIDED:
            assert state[FIRST] == open_digits[0]
            known = zip(sets[: open_digits[0]], tables.offsets, strict=False)
            assert state[SECOND] == sum(own[0] << offset for own, offset in known)
            possible.update(reachable)
        else:
            assert state[STATUS] != EMPTY
            assert not open_digits
            assert reachable == {int(out[0])}
            settled[int(out[0])] += 1
    assert settled
    total = sum(Fraction(w) for w in weights(digit_tables(scale, ()).high.law).values())
    for x in settled.keys() | possible.keys():
        low, high = exp_bounds(abs(x) / scale, 200)
        strings = Fraction(number ** len(every))
        assert settled[x] <= Fraction(high, 2**200) / total * strings * (1 + Fraction(1, 10**60)), x
        assert Fraction(low, 2**200) / total * strings <= settled[x] + possible[x], x


@pytest.mark.parametrize(
    ("scale", "bits"), [(Fraction(5), (1, 1)), (Fraction(50), (3, 2)), (Fraction(50), ())], ids=str
)
@pytest.mark.parametrize("widths", [Widths(3, 6), Widths(5, 8)], ids=str)
def test_the_law_survives_narrow_words_and_short_blocks(scale, bits, widths, monkeypatch):
    """20,000 draws, open digits being common. False alarm below 1e-9."""
    monkeypatch.setattr(source, "WORDS_BYTES", 50)
    out = np.empty(20_000, dtype=np.int64)
    draw_digits(digit_tables(scale, bits, widths), out, SeededSource(51))
    values = np.arange(-2000, 2001)
    pmf = np.exp(-np.abs(values) / float(scale))
    assert fits(out, values, pmf / pmf.sum())


@pytest.mark.parametrize("head", [0, 0xFFFF])
def test_the_tail_follows_the_exact_conditional_law(head, monkeypatch):
    """The high part's first 16 bits all zeros or all ones, the low digit free. False alarm below 1e-9."""
    scale = Fraction(60)
    tables, stream = digit_tables(scale, (3,)), SeededSource(52)
    settled = np.flatnonzero(tables.lower[0].cells >= 0)
    monkeypatch.setattr(source, "WORDS_BYTES", 16)

    def pattern(number, count):
        """One draw for each block: a low digit that its head settles (or not: then the high part is drawn as usual)."""
        words = np.frombuffer(stream.take(16), dtype="<u2").copy()
        words[0] = settled[words[0] % len(settled)]
        words[1] = head
        return words.tobytes()

    out = np.empty(30_000, dtype=np.int64)
    draw_digits(tables, out, Patterned(pattern, SeededSource(53)))
    chance = {}
    for high, share in share_between(tables.high.law, Decimal(head) / 65536, Decimal(head + 1) / 65536).items():
        chance[high] = chance.get(high, 0) + float(share)
    values = sorted(chance)
    assert fits(out >> 3, values, [chance[high] for high in values])
    assert abs(out).min() > 500
