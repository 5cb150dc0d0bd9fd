"""A scale in each row: all bit strings of narrow words, exact acceptance at full width, scales of any size."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import fits, share_between, weights
from rejection_tools import OPEN_ACCEPTANCE, OPEN_BLOCK, REJECTED, Tally, attempt, certain, chances
from scipy import stats

from stirred.noise import SeededSource, discrete_gaussian_each, discrete_laplace_each, scale_per_row, source
from stirred.noise.fixed_point import exp_bounds, exp_steps, mantissa_of
from stirred.noise.inversion import Widths
from stirred.noise.scale_per_row import BOTTOM, _universal, draw_universal, placed, references
from stirred.noise.scales import CodedRows, PairRows

PRODUCTION = Fraction(214437516707, 177339451520)


def setting(power, scale, tables):
    """(kernel, rate, s, index of the reference) of one scale."""
    rate = 1 / (power * scale)
    mantissa, shift = mantissa_of(rate)
    bits, index = placed(np.uint64(mantissa), shift, power, BOTTOM[power], len(tables.laws))
    widths = (*tables.table, *tables.acceptance)
    fixed = (power, BOTTOM[power], tables.cells, tables.cuts, tables.starts, *widths, exp_steps())
    given = np.array([mantissa], dtype=np.uint64), np.array([shift])
    return (lambda words, out, state: _universal(words, *given, *fixed, out, state)), rate, int(bits), int(index)


def words_of(tables, index, k_bits, within, minus, chance_bits):
    """The 64-bit words of one attempt, those for the rest of k only where its head does not settle it."""
    rest, later = tables.table.full - tables.table.head, tables.acceptance.full - tables.acceptance.head
    head, chance = k_bits >> rest, chance_bits >> later
    drawn = head << (64 - tables.table.head) | within << 17 | minus << 16 | chance << (16 - tables.acceptance.head)
    k_rest = [(k_bits & ((1 << rest) - 1)) << (64 - rest)] if tables.cells[index, head] < 0 else []
    return [drawn, *k_rest, (chance_bits & ((1 << later) - 1)) << (64 - later), 0][:3]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("power", "scale", "k_widths", "widths"),
    [
        (2, PRODUCTION, Widths(3, 6), Widths(3, 6)),
        (2, Fraction(3, 7), Widths(4, 6), Widths(2, 6)),
        (2, Fraction(1, 50), Widths(3, 6), Widths(3, 6)),
        (2, Fraction(300), Widths(4, 8), Widths(3, 5)),
        (2, Fraction(1500), Widths(4, 8), Widths(2, 4)),
        (1, Fraction(3, 7), Widths(3, 6), Widths(3, 6)),
        (1, Fraction(5, 3), Widths(4, 7), Widths(3, 5)),
        (2, Fraction(200), Widths(4, 8), Widths(2, 4)),
        (1, Fraction(20), Widths(4, 7), Widths(3, 4)),
        (1, Fraction(12), Widths(4, 8), Widths(2, 4)),
        (1, Fraction(70), Widths(4, 7), Widths(2, 4)),
    ],
    ids=str,
)
def test_all_bit_strings_together_give_each_value_its_probability(power, scale, k_widths, widths):
    """Every attempt with words of a few bits. What is settled is certain, what is open is so for a reason."""
    tables = references(power, k_widths, widths)
    kernel, rate, bits, index = setting(power, scale, tables)
    law, t, tally = tables.laws[index], 2**bits, Tally()
    assert rate * t**power >= law.rate
    folded = law.shape == "folded"
    for k_bits in range(2**k_widths.full):
        low, high = Decimal(k_bits) / 2**k_widths.full, Decimal(k_bits + 1) / 2**k_widths.full
        ks = list(share_between(law, low, high))
        for within in range(t):
            for minus in (0, 1):
                for chance_bits in range(2**widths.full):
                    words = words_of(tables, index, k_bits, within, minus, chance_bits)
                    outcome = attempt(kernel, words, np.uint64)
                    reachable = [(1 - 2 * minus) * (k * t + within) for k in ks]
                    tally.add(outcome, reachable)
                    if isinstance(outcome, tuple) and outcome[0] == OPEN_BLOCK:
                        assert len(ks) > 1 or k_bits == 2**k_widths.full - 1
                        continue
                    (k,) = ks
                    x = reachable[0]
                    sure = certain(rate * abs(x) ** power - law.rate * k**power, chance_bits, widths.full)
                    if minus and x == 0 and not folded:
                        sure = False
                    if outcome == REJECTED:
                        assert sure is False
                    elif isinstance(outcome, int):
                        assert sure is True
                        assert outcome == x
                    else:
                        assert outcome == (OPEN_ACCEPTANCE, k, x)
                        assert sure is None
    total = sum(Fraction(weight) for weight in weights(law).values())
    # Folded weights are doubled, but for 0, which has two signs: either way 2 strings of t in 2 t.
    tally.encloses(chances(rate, power, lambda: total, t if folded else 2 * t))


WIDE_SCALES = {
    2: [Fraction(1), PRODUCTION, Fraction(999, 7), Fraction(10**12), Fraction(2**62 - 1), Fraction(2**80)],
    1: [Fraction(1), Fraction(1, 3), Fraction(999, 7), Fraction(10**6), Fraction(2**40)],
}


@pytest.mark.parametrize(
    ("power", "scale"), [(power, scale) for power in (1, 2) for scale in WIDE_SCALES[power]], ids=str
)
def test_at_full_width_acceptance_is_decided_exactly_around_its_probability(power, scale):
    """64-bit words just inside, on and just outside the band around exp(-E), for many k and j."""
    tables = references(power)
    kernel, rate, bits, index = setting(power, scale, tables)
    own = tables.cuts[tables.starts[index] : tables.starts[index + 1]]
    law, t, opened = tables.laws[index], 2**bits, 0
    for k in range(1, len(own) - 1, 1 + len(own) // 9):
        for within in {0, t // 3, t - 1}:
            x = k * t + within
            exponent = rate * x**power - law.rate * k**power
            assert exponent >= 0
            near = exp_bounds(exponent, 64)[0]
            for shift in (-(2**40), -5000, -1200, -1, 0, 1, 20, 5000, 2**40):
                chance = min(max(near + shift, 0), 2**64 - 1)
                outcome = attempt(kernel, words_of(tables, index, int(own[k]) - 1, within, 0, chance), np.uint64)
                sure = certain(exponent, chance, 64)
                if isinstance(outcome, tuple):
                    opened += 1
                    assert outcome == (OPEN_ACCEPTANCE, k, x)
                    assert abs(chance - near) <= 1200
                else:
                    assert outcome == (x if sure else REJECTED)
                    assert sure is not None
    assert opened > 5


@pytest.mark.parametrize("power", [1, 2])
def test_every_rate_finds_a_reference_at_or_below_it_and_within_an_eighth(power):
    tables = references(power)
    bottom = Fraction(1, 2 ** BOTTOM[power])
    rng = np.random.default_rng(2)
    pairs = rng.integers(0, 2**62, (300, 2)) >> rng.integers(0, 62, (300, 2))
    tried = [Fraction(int(top) + 1, int(bottom) + 1) for top, bottom in pairs]
    tiny = Fraction(1, 2**70)
    tried += [law.rate * change for law in tables.laws for change in (1, 1 + tiny, 1 - tiny)]
    for rate in [rate for rate in tried if rate * (2**36) ** power >= 1]:
        mantissa, shift = mantissa_of(rate)
        bits, index = placed(np.uint64(mantissa), shift, power, BOTTOM[power], len(tables.laws))
        scaled = rate * 2 ** (power * int(bits))
        assert tables.laws[index].rate <= scaled
        assert scaled < tables.laws[index].rate * Fraction(9, 8) or index == len(tables.laws) - 1
        assert bits == 0 or scaled < bottom * 2**power
        assert bits == 0 or tables.laws[index].shape == "half"


@pytest.mark.parametrize(
    ("power", "scale"),
    [(2, PRODUCTION), (2, Fraction(400)), (2, Fraction(5000)), (1, Fraction(2)), (1, Fraction(50))],
    ids=str,
)
def test_the_law_survives_narrow_words_and_short_blocks(power, scale, monkeypatch):
    """10,000 rows, open comparisons being common; pairs, and fractions too long for pairs. False alarm below 1e-9."""
    monkeypatch.setattr(source, "WORDS_BYTES", 64)
    tables = references(power, Widths(4, 7), Widths(3, 6))
    values = np.arange(-1000, 1001)
    pmf = np.exp(-(np.abs(values) ** power) / (power * float(scale)))
    pairs = PairRows(np.full(10_000, 3 * scale.numerator), np.full(10_000, 3 * scale.denominator))
    coded = CodedRows([scale], np.zeros(10_000, dtype=np.int64))
    for rows in (pairs, coded):
        out = np.empty(10_000, dtype=np.int64)
        draw_universal(tables, rows, 0, out, SeededSource(41))
        assert fits(out, values, pmf / pmf.sum())


def many(scales, rows, each, key):
    """Draws with scales in turn, never grouped, and the row's scale."""
    turn = np.arange(rows) % len(scales)
    tops = np.array([scale.numerator for scale in scales])[turn]
    bottoms = np.array([scale.denominator for scale in scales])[turn]
    return each((tops, bottoms), SeededSource(key)), turn


SCALES = [
    Fraction(n, d) for n, d in [(1, 10), (3, 7), (1, 1), (5, 2), (100, 1), (257, 1), (1023, 1), (12345, 7), (10**6, 1)]
]
SCALES += [PRODUCTION, Fraction(10**12), Fraction(2**40 - 1)]


@pytest.mark.parametrize("power", [1, 2])
def test_scales_in_turn_each_follow_their_law(power, monkeypatch):
    """100,000 rows of each scale; wide ones in 64 bins of the distribution function. False alarm below 1e-9 each."""
    monkeypatch.setattr(PairRows, "grouped", lambda self: None)
    scales = [scale for scale in SCALES if power == 2 or scale < 2**39]
    each = discrete_gaussian_each if power == 2 else discrete_laplace_each
    drawn, turn = many(scales, 100_000 * len(scales), each, 42)
    for i, scale in enumerate(scales):
        law_fits(drawn[turn == i], power, scale)


def law_fits(drawn, power, scale):
    width = float(scale) ** (1 / power)
    step = max(1, int(width / 20))
    reach = int(40 * width if power == 1 else 10 * width) + 5
    edges = np.arange(-reach // step, reach // step + 2)
    values = np.arange(int(edges[0]) * step, int(edges[-1]) * step) if reach < 10**7 else None
    if values is not None:
        pmf = np.exp(-(np.abs(values / width) ** power) / power)
        cells = (pmf / pmf.sum()).reshape(-1, step).sum(axis=1)
        assert fits(drawn // step, edges[:-1], cells)
    else:  # cells of the continuous law, which is as good as equal at such scales
        continuous = stats.norm if power == 2 else stats.laplace
        cells = np.floor(continuous.cdf((drawn + 0.5) / width) * 64)
        assert fits(cells, np.arange(64), np.full(64, 1 / 64))


def test_few_scales_are_grouped_and_many_are_not(monkeypatch):
    asked = []
    monkeypatch.setattr(scale_per_row, "references", lambda power: asked.append(power) or references(power))
    discrete_gaussian_each((np.arange(1000) % 3 + 1, np.ones(1000, dtype=np.int64)), SeededSource(1))
    assert asked == []
    discrete_gaussian_each(np.arange(1, 1001), SeededSource(1))
    assert asked == [2]
    discrete_laplace_each([Fraction(n, 7) for n in range(1, 100)], SeededSource(1))
    assert asked == [2, 1]


def test_grouped_rows_have_the_law_of_their_own_scale():
    """Three scales in turn. False alarm below 1e-9."""
    scales = [Fraction(1), Fraction(100), Fraction(10**7)]
    drawn, turn = many(scales, 300_000, discrete_gaussian_each, 43)
    for i, scale in enumerate(scales):
        law_fits(drawn[turn == i], 2, scale)


def test_fractions_too_long_for_64_bits_are_scales_too():
    """100 scales beside 1, with numerators of 200 bits. False alarm below 1e-9."""
    scales = [Fraction(2**200 + n, 2**200) for n in range(100)]
    drawn = discrete_gaussian_each(scales * 1000, SeededSource(44))
    law_fits(drawn, 2, Fraction(1))


def test_scales_so_small_that_all_noise_is_zero():
    assert not discrete_gaussian_each([Fraction(1, 10**n) for n in range(4, 200)], SeededSource(45)).any()
    assert not discrete_laplace_each([Fraction(1, 10**n) for n in range(3, 200)], SeededSource(45)).any()
    pairs = np.ones(100, dtype=np.int64), np.arange(2**62, 2**62 + 100)
    assert not discrete_laplace_each(pairs, SeededSource(1)).any()
