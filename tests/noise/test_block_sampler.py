"""The discrete Gaussian by blocks: all bit strings of narrow words, exact acceptance, tails, the choice of blocks."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import Patterned, fits, head_and_rest, share_between, weights
from rejection_tools import OPEN_ACCEPTANCE, OPEN_BLOCK, REJECTED, Tally, attempt, certain, chances

from stirred.noise import SeededSource, source
from stirred.noise.fixed_point import exp_bounds, exp_steps
from stirred.noise.gaussian import _blocks, bits_within, block_table, draw_blocks
from stirred.noise.inversion import Widths

PRODUCTION = Fraction(214437516707, 177339451520)


def kernel_of(table):
    fixed = (
        table.within_bits,
        *table.blocks.arrays,
        table.at_once,
        np.uint64(table.mantissa),
        table.shift,
        exp_steps(),
    )
    return lambda words, out, state: _blocks(words, *fixed, out, state)


def words_of(table, block_bits, within, minus, chance_bits):
    """The words of one attempt, as the kernel reads them; words that it does not need are left out."""
    widths = table.blocks.widths
    block = head_and_rest(block_bits, *widths)
    if table.blocks.cells[block[0] >> (16 - widths.head)] >= 0:
        block = block[:1]
    return [*block, within | minus << table.within_bits, *head_and_rest(chance_bits, *widths), *[0] * 8][:11]


@pytest.mark.parametrize(
    ("variance", "within_bits", "widths"),
    [
        (Fraction(9), 1, Widths(3, 5)),
        (Fraction(9), 2, Widths(2, 4)),
        (Fraction(20, 3), 0, Widths(3, 5)),
        (PRODUCTION, 1, Widths(3, 6)),
        (Fraction(5, 2), 1, Widths(4, 6)),
    ],
    ids=str,
)
def test_all_bit_strings_together_give_each_value_its_probability(variance, within_bits, widths):
    """Every attempt with words of a few bits. What is settled is certain, what is open is so for a reason."""
    table = block_table(variance, within_bits, widths)
    kernel, t, tally = kernel_of(table), 2**within_bits, Tally()
    block_weights = weights(table.blocks.law)
    cells = {
        bits: list(share_between(table.blocks.law, Decimal(bits) / 2**widths.full, Decimal(bits + 1) / 2**widths.full))
        for bits in range(2**widths.full)
    }
    for block_bits, blocks in cells.items():
        for within in range(t):
            for minus in (0, 1):
                for chance_bits in range(2**widths.full):
                    words = words_of(table, block_bits, within, minus, chance_bits)
                    outcome = attempt(kernel, words, np.uint16)
                    reachable = [(1 - 2 * minus) * (k * t + within) for k in blocks]
                    tally.add(outcome, reachable)
                    if isinstance(outcome, tuple) and outcome[0] == OPEN_BLOCK:
                        assert len(blocks) > 1 or block_bits == 2**widths.full - 1
                        continue
                    (k,) = blocks
                    x = reachable[0]
                    sure = certain((x**2 - (k * t) ** 2) / (2 * variance), chance_bits, widths.full)
                    if minus and x == 0:
                        sure = False
                    if outcome == REJECTED:
                        assert sure is False
                    elif isinstance(outcome, int):
                        assert sure is True
                        assert outcome == x
                    else:
                        assert outcome == (OPEN_ACCEPTANCE, k, x)
                        assert sure is None
    total = sum(Fraction(weight) for weight in block_weights.values())
    tally.encloses(chances(1 / (2 * variance), 2, lambda: total, 2 * t))


@pytest.mark.parametrize("widths", [Widths(3, 6), Widths(5, 8)], ids=str)
@pytest.mark.parametrize(("variance", "within_bits"), [(Fraction(9), 1), (PRODUCTION, 1), (Fraction(400), 3)], ids=str)
def test_the_law_survives_narrow_words_and_short_blocks(variance, within_bits, widths, monkeypatch):
    """20,000 draws, open comparisons being common. False alarm below 1e-9."""
    monkeypatch.setattr(source, "WORDS_BYTES", 50)
    out = np.empty(20_000, dtype=np.int64)
    draw_blocks(block_table(variance, within_bits, widths), out, SeededSource(31))
    values = np.arange(-200, 201)
    pmf = np.exp(-(values**2) / (2 * float(variance)))
    assert fits(out, values, pmf / pmf.sum())


@pytest.mark.parametrize("variance", [Fraction(10**8), Fraction(10**12 + 1, 3), Fraction(2**80)], ids=str)
def test_at_full_width_acceptance_is_decided_exactly_around_its_probability(variance):
    """64-bit words just inside, on and just outside the band around exp(-E), for many blocks and places in them."""
    table = block_table(variance)
    kernel, t = kernel_of(table), 2**table.within_bits
    opened = 0
    for k in range(1, 570, 37):
        cell = int(np.flatnonzero(table.blocks.cells == k)[0]) if k in table.blocks.cells else None
        block = [cell] if cell is not None else head_and_rest(int(table.blocks.cuts[k]) - 1, 16, 64)
        for within in (1, t // 3, t - 1):
            x = k * t + within
            exponent = (x**2 - (k * t) ** 2) / (2 * variance)
            near = int(exp_fraction(exponent) * 2**64)
            drawn = [within] if table.word_count == 1 else [within & 0xFFFF, (within >> 16) & 0xFFFF, within >> 32]
            for shift in (-(2**40), -5000, -1200, -1, 0, 1, 20, 5000, 2**40):
                bits = min(max(near + shift, 0), 2**64 - 1)
                words = [*block, *drawn, *head_and_rest(bits, 16, 64), *[0] * 11]
                outcome = attempt(kernel, words[:11], np.uint16)
                sure = certain(exponent, bits, 64)
                if isinstance(outcome, tuple):
                    opened += 1
                    assert outcome == (OPEN_ACCEPTANCE, k, x)
                    assert -1200 <= shift <= 20
                else:
                    assert outcome == (x if sure else REJECTED)
                    assert sure is not None
    assert opened > 20


def exp_fraction(exponent):
    return Fraction(exp_bounds(exponent, 200)[0], 1 << 200)


def test_open_draws_are_settled_by_exact_arithmetic(monkeypatch):
    """Bits on the edge, then the lowest and the highest continuation: rejected or accepted as the rational says."""
    variance = Fraction(10**8)
    table = block_table(variance)
    k, within = 100, 50
    x = (k << table.within_bits) + within
    exponent = (x**2 - (k << table.within_bits) ** 2) / (2 * variance)
    near = int(exp_fraction(exponent) * 2**128)
    monkeypatch.setattr(source, "WORDS_BYTES", 22)
    block = [int(np.flatnonzero(table.blocks.cells == k)[0])]
    plain = [int(np.flatnonzero(table.blocks.cells == 3)[0]), 1, 0]
    for change, expected in ((-1, x), (1, (3 << table.within_bits) + 1)):
        first = [*block, within, *head_and_rest(near >> 64, 16, 64), *[0] * 5]
        served = [np.array(words, dtype="<u2").tobytes() for words in (first, [*plain, *[0] * 8])]
        more = Patterned(lambda number, count, change=change: (near % 2**64 + change).to_bytes(8, "big"))
        out = np.empty(1, dtype=np.int64)
        draw_blocks(table, out, Patterned(lambda number, count, served=served: served[number], more))
        assert out[0] == expected


def test_the_tail_follows_the_exact_conditional_law(monkeypatch):
    """Blocks whose first 16 bits are ones, one attempt for each block of words. False alarm below 1e-9."""
    variance = Fraction(900)
    table, stream = block_table(variance, 3), SeededSource(32)
    monkeypatch.setattr(source, "WORDS_BYTES", 22)

    def pattern(number, count):
        words = np.frombuffer(stream.take(22), dtype="<u2").copy()
        words[0] = 0xFFFF
        return words.tobytes()

    out = np.empty(30_000, dtype=np.int64)
    draw_blocks(table, out, Patterned(pattern, SeededSource(33)))
    chance = {}
    for k, share in share_between(table.blocks.law, 1 - Decimal(1) / 65536, Decimal(1)).items():
        for j in range(8):
            chance[8 * k + j] = float(share) * np.exp(-j * (16 * k + j) / 1800)
    total = 2 * sum(chance.values())
    chance |= {-x: share for x, share in chance.items()}
    values = sorted(chance)
    assert min(abs(out)) > 120
    assert fits(out, values, [chance[x] / total for x in values])


def test_blocks_are_64_to_128_to_a_standard_deviation():
    for exponent in range(12, 81):
        for variance in (Fraction(2**exponent), Fraction(2**exponent + 1), Fraction(2 ** (exponent + 1) - 1)):
            assert 2**12 <= variance / 4 ** bits_within(variance) < 2**14
    assert bits_within(Fraction(1, 3)) == 0


def test_blocks_outside_the_error_budget_are_refused():
    for variance, within_bits in ((Fraction(2**60), 60), (Fraction(2**80), 30)):
        with pytest.raises(ValueError, match=r"error budget|32,767"):
            block_table(variance, within_bits)
