"""Coins, uniform integers and randomised response: exact decisions on bits, and the laws that result."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import Continued, counts_fit, head_and_rest

from stirred.noise import SeededSource, bernoulli_exp, randomised_response, uniform_integers
from stirred.noise import source as feeding
from stirred.noise.coins import _band_of_exp, _pair_bands, _pair_bands_exp, band_of_fraction, below, bernoulli, toss
from stirred.noise.fixed_point import exp_bounds, exp_steps
from stirred.noise.inversion import Widths, happens
from stirred.noise.uniform import draw_below

PROBABILITIES = [
    Fraction(n, d) for n, d in [(0, 1), (1, 1), (1, 2), (3, 8), (1, 3), (1, 20), (2**62 - 1, 2**62), (1, 2**62)]
]
PROBABILITIES += [Fraction(1, 64), Fraction(63, 64), Fraction(177339451520, 214437516707)]
EXPONENTS = [
    Fraction(n, d) for n, d in [(0, 1), (1, 2**62), (1, 3), (1, 1), (12345, 777), (44, 1), (46, 1), (2**62, 1)]
]


class OneCoin:
    def __init__(self, bits, widths, ones):
        self.words, self.more, self.continued = head_and_rest(bits, *widths), Continued(ones), False

    for_release = False

    def take(self, count):
        if count == 8:
            self.continued = True
            return self.more.take(8)
        return np.array(self.words, dtype="<u2").tobytes().ljust(count, b"\0")


def one_coin(value, band, settle, bits, widths, ones):
    out, source = np.empty(1, dtype=np.bool_), OneCoin(bits, widths, ones)
    arrays = tuple(np.array([end], dtype=np.uint64) for end in band)
    toss(arrays, out, lambda row: value, settle, source, widths)
    return bool(out[0]), source.continued


@pytest.mark.parametrize("widths", [Widths(3, 6), Widths(4, 9)], ids=str)
@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_bits_settle_a_coin_exactly_when_every_continuation_gives_the_same(p, widths):
    """The lowest and the highest continuation are decided as the fraction says, also on the edge itself."""
    scale = 2**widths.full
    for bits in range(scale):
        lowest = Fraction(bits, scale) < p
        highest = Fraction(bits + 1, scale) <= p
        for ones, expected in ((False, lowest), (True, highest)):
            found, continued = one_coin(p, band_of_fraction(p), below, bits, widths, ones)
            assert found == expected
            assert continued <= (abs(bits - p * scale) <= 1), "bits were asked for without need"
            assert continued or lowest == highest


@pytest.mark.parametrize("widths", [Widths(3, 6), Widths(4, 9)], ids=str)
@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_bits_settle_a_coin_of_exp_exactly_when_every_continuation_gives_the_same(x, widths):
    low, high = exp_bounds(x, widths.full + 100)
    for bits in range(2**widths.full):
        if x and bits == 0 and high >> 100 == 0:
            continue  # zeros for ever would never settle it
        lowest, highest = bits << 100 < low, (bits + 1) << 100 <= low
        for ones, expected in ((False, lowest), (True, highest)):
            if ones and x and bits == 2**widths.full - 1:
                continue  # ones for ever: the number 1 itself
            assert one_coin(x, _band_of_exp(x), happens, bits, widths, ones)[0] == expected


@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_bands_of_pairs_are_those_of_their_fraction(p):
    surely, possibly = np.empty((2, 1), dtype=np.uint64)
    for factor in (1, 2) if p.denominator < 2**61 else (1,):
        tops, bottoms = np.array([p.numerator * factor]), np.array([p.denominator * factor])
        _pair_bands(tops, bottoms, exp_steps(), surely, possibly)
        assert (int(surely[0]), int(possibly[0])) == band_of_fraction(p)
    quotient = p * 2**64
    if 0 < p < 1:
        assert int(surely[0]) == math.floor(quotient)
        assert int(possibly[0]) == math.ceil(quotient) - 1


@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_bands_of_exponents_enclose_the_probability(x):
    surely, possibly = np.empty((2, 1), dtype=np.uint64)
    _pair_bands_exp(np.array([x.numerator]), np.array([x.denominator]), exp_steps(), surely, possibly)
    low, high = exp_bounds(x, 200)
    assert int(surely[0]) << 136 <= low
    assert (int(possibly[0]) + 1) << 136 >= high
    assert int(possibly[0]) - int(surely[0]) < 1100


@pytest.mark.one_in(3)
@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_coins_come_up_with_their_probability(p):
    """400,000 draws, as one number, as pairs and as a list. False alarm below 1e-9."""
    size = 400_000
    tops, bottoms = np.full(size, p.numerator), np.full(size, p.denominator)
    for given in (p, (tops, bottoms), [p] * size):
        drawn = bernoulli(given, size, SeededSource(61))
        assert counts_fit(np.bincount(drawn, minlength=2), [float(1 - p), float(p)])
        assert p not in (0, 1) or np.all(drawn == bool(p))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_coins_of_exp_come_up_with_their_probability(x):
    """400,000 draws, as one number, as pairs and as a list. False alarm below 1e-9."""
    size, p = 400_000, math.exp(-x)
    tops, bottoms = np.full(size, x.numerator), np.full(size, x.denominator)
    for given in (x, (tops, bottoms), [x] * size):
        drawn = bernoulli_exp(given, size, SeededSource(62))
        assert counts_fit(np.bincount(drawn, minlength=2), [1 - p, p])
        assert x or drawn.all()


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(7, 8), Fraction(1, 20)], ids=str)
def test_the_law_survives_narrow_words_and_short_blocks(p, monkeypatch):
    """30,000 coins, many undecided at first. False alarm below 1e-9."""
    monkeypatch.setattr(feeding, "WORDS_BYTES", 14)
    out = np.empty(30_000, dtype=np.bool_)
    bands = tuple(np.array([end], dtype=np.uint64) for end in band_of_fraction(p))
    toss(bands, out, lambda row: p, below, SeededSource(63), Widths(2, 4))
    assert counts_fit(np.bincount(out, minlength=2), [float(1 - p), float(p)])


def test_every_row_has_its_own_coin():
    """Rows of probability 0 and 1 among others."""
    tops = np.tile([0, 1, 5, 1], 50_000)
    drawn = bernoulli((tops, np.tile([7, 1, 5, 4], 50_000)), 200_000, SeededSource(64))
    assert not drawn[0::4].any()
    assert drawn[1::4].all()
    assert drawn[2::4].all()
    assert counts_fit(np.bincount(drawn[3::4], minlength=2), [0.75, 0.25])


# -- integers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [3, 5, 6])
def test_all_words_together_give_each_integer_equally_often(bits):
    """Words of a few bits: every bound, every word, with the rejected ones drawn again."""
    for bound in range(1, 2**bits + 1):
        counts, redrawn = np.zeros(bound, dtype=np.int64), 0
        for word in range(2**bits):

            class Word:
                for_release = False
                blocks = 0

                def take(self, count, word=word):
                    self.blocks += 1
                    chosen = word if self.blocks == 1 else 2**bits - 1  # the last word is never rejected
                    return ((chosen << (32 - bits)).to_bytes(4, "little") * (count // 4)) if count else b""

            source = Word()
            out = np.empty(1, dtype=np.int64)
            draw_below(np.array([bound], dtype=np.uint64), bits, out, source)
            counts[out[0]] += source.blocks == 1
            redrawn += source.blocks > 1
        assert set(counts) == {2**bits // bound}
        assert redrawn == 2**bits % bound


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 100, 2**32, 2**32 + 1, 2**63 - 1, 2**63])
def test_integers_are_uniform(bound):
    """300,000 draws; large bounds by their leading and their last bits. False alarm below 1e-9."""
    drawn = uniform_integers(bound, 300_000, SeededSource(65))
    assert drawn.min() >= 0
    assert int(drawn.max()) < bound
    if bound <= 100:
        assert counts_fit(np.bincount(drawn, minlength=bound), np.full(bound, 1 / bound))
    else:
        assert counts_fit(np.bincount(drawn // -(-bound // 64), minlength=64), np.full(64, 1 / 64))
        assert counts_fit(np.bincount(drawn % 64, minlength=64), np.full(64, 1 / 64))


def test_a_bound_so_large_that_half_the_words_are_rejected():
    """Just above 2^62, of 2^64: rejection matters. False alarm below 1e-9."""
    bound = 3 * 2**61 + 1
    drawn = uniform_integers(bound, 300_000, SeededSource(66))
    assert counts_fit(np.bincount(drawn // 2**58, minlength=25)[:24], np.full(24, 1 / 24))


def test_every_row_has_its_own_bound():
    bounds = np.tile(np.array([1, 2, 3, 2**40]), 50_000)
    drawn = uniform_integers(bounds, 200_000, SeededSource(67))
    assert not drawn[0::4].any()
    assert counts_fit(np.bincount(drawn[1::4]), [1 / 2] * 2)
    assert counts_fit(np.bincount(drawn[2::4]), [1 / 3] * 3)
    assert counts_fit(np.bincount(drawn[3::4] >> 37), [1 / 8] * 8)


# -- randomised response -------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1, 4), Fraction(2, 3), Fraction(1)], ids=str)
@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.int64])
def test_two_categories_are_flipped_with_their_probability(p, kind):
    """False alarm below 1e-9."""
    values = (np.arange(200_000) % 3 == 0).astype(kind)
    answers = randomised_response(values, p, SeededSource(68))
    assert answers.dtype == values.dtype
    for value in (0, 1):
        flipped = answers[values == value] != value
        assert counts_fit(np.bincount(flipped, minlength=2), [float(1 - p), float(p)])


@pytest.mark.parametrize("categories", [3, 5, 256])
@pytest.mark.parametrize("p", [Fraction(0), Fraction(3, 10), Fraction(1)], ids=str)
def test_other_categories_are_equally_likely(p, categories):
    """The value itself with 1 - p, each other one with p / (k - 1). False alarm below 1e-9."""
    for value in (0, 1, categories - 1):
        answers = randomised_response(np.full(200_000, value, np.uint8), p, SeededSource(69), categories=categories)
        assert answers.dtype == np.uint8
        law = np.full(categories, float(p) / (categories - 1))
        law[value] = float(1 - p)
        assert counts_fit(np.bincount(answers, minlength=categories), law)
