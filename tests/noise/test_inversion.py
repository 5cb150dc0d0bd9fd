"""Inversion of certified tables: every decision on bits against exact cuts, with narrow words and at full width."""

from __future__ import annotations

from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import Continued, Patterned, decimal, distribution, fits, head_and_rest, share_between

from stirred.noise import SeededSource
from stirred.noise import source as feeding
from stirred.noise.gaussian import gaussian_law
from stirred.noise.inversion import Law, Widths, cut_table, invert

LAWS = [
    gaussian_law(Fraction(1)),
    gaussian_law(Fraction(3, 7)),
    gaussian_law(Fraction(100)),
    gaussian_law(Fraction(214437516707, 177339451520)),
    Law(1, Fraction(1, 3), "halves", gap=Fraction(1, 50)),
    Law(1, Fraction(1, 9), "half", count=16),
    Law(2, Fraction(1, 50), "half"),
    Law(2, Fraction(1, 50), "folded"),
]
NARROW = [Widths(3, 6), Widths(4, 7), Widths(5, 10)]


class OneDraw:
    """Serves the words of one draw, then a continuation."""

    for_release = False

    def __init__(self, words, continuation):
        self.words, self.continuation, self.continued = words, continuation, 0

    def take(self, count):
        if count == 8:
            self.continued += 1
            return self.continuation.take(8)
        return np.array(self.words, dtype="<u2").tobytes().ljust(count, b"\0")


def one_draw(law, widths, bits, ones):
    """(value, whether more bits were needed)"""
    out = np.empty(1, dtype=np.int64)
    source = OneDraw(head_and_rest(bits, *widths), Continued(ones))
    invert(cut_table(law, widths), out, source)
    return int(out[0]), source.continued > 0


def value_at(law, number):
    """min {k : number < F(k)}"""
    values, sums = distribution(law)
    return values[bisect_right(sums, number)]


@pytest.mark.parametrize("widths", NARROW, ids=str)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bits_settle_a_value_exactly_when_every_continuation_gives_the_same(law, widths):
    scale = 2**widths.full
    for bits in range(scale):
        inside = [cut for cut in distribution(law)[1] if bits <= cut * scale < bits + 1]
        undecided = bool(inside) or bits in ((0, scale - 1) if law.shape in ("line", "halves") else (scale - 1,))
        undecided = undecided and not (law.count and not inside)
        found, continued = one_draw(law, widths, bits, ones=bits == 0)
        assert continued == undecided, bits
        if not undecided:
            assert found == value_at(law, Decimal(bits) / scale) == value_at(law, Decimal(2 * bits + 1) / (2 * scale))


@pytest.mark.parametrize("widths", NARROW[:2], ids=str)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_among_all_bit_strings_each_value_has_the_share_of_its_probability(law, widths):
    """Strings that settle a value, and strings that still may, enclose 2^full times its probability."""
    scale = 2**widths.full
    settled, open_to = {}, {}
    for bits in range(scale):
        if not one_draw(law, widths, bits, ones=bits == 0)[1]:
            value = one_draw(law, widths, bits, ones=False)[0]
            settled[value] = settled.get(value, 0) + 1
        else:
            for value in share_between(law, Decimal(bits) / scale, Decimal(bits + 1) / scale):
                open_to[value] = open_to.get(value, 0) + 1
    before = Decimal(0)
    for value, cut in zip(*distribution(law), strict=True):
        count = settled.pop(value, 0)
        assert count <= (cut - before) * scale <= count + open_to.get(value, 0) + Decimal("1e-60"), value
        before = cut
    assert not settled


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_at_64_bits_each_cut_parts_its_value_from_the_next_to_the_last_bit(law):
    table = cut_table(law)
    wide = Widths(16, 64)
    for offset, cut in enumerate(table.cuts.tolist()):
        value = table.first + offset
        if cut > 1:
            assert one_draw(law, wide, cut - 1, False) == (value, False) or cut - 1 in table.cuts
        if cut < 2**64 - 1:
            assert one_draw(law, wide, cut + 1, False) == (value + 1, False) or cut + 1 in table.cuts
        if 0 < cut < 2**64 - 1:
            # In the far tail several cuts may lie in one cell.
            assert one_draw(law, wide, cut, False) == (value_at(law, decimal(Fraction(cut, 2**64))), True)
            assert one_draw(law, wide, cut, True) == (value_at(law, decimal(Fraction(cut + 1, 2**64))), True)


@pytest.mark.parametrize(("variance", "head"), [(1, 0), (1, 0xFFFF), (100, 0), (100, 0xFFFF), ("12345/7", 0)])
def test_the_tails_follow_the_exact_conditional_law(variance, head):
    """The first 16 bits all zeros, or all ones: 100,000 draws beyond four sigma. False alarm below 1e-9."""
    stream = SeededSource(5)

    def pattern(block, count):
        words = np.frombuffer(stream.take(count), dtype="<u2").copy()
        words[::4] = head
        return words.tobytes()

    law = gaussian_law(Fraction(variance))
    out = np.empty(100_000, dtype=np.int64)
    invert(cut_table(law), out, Patterned(pattern, SeededSource(6)))
    shares = share_between(law, Decimal(head) / 65536, Decimal(head + 1) / 65536)
    assert np.all(np.abs(out) >= 4 * float(Fraction(variance)) ** 0.5 - 1)
    assert fits(out, list(shares), shares.values())


def test_far_tails_are_decided_to_the_last_bit():
    """U < 2^-48: all 65,536 words of 64 bits that begin with 48 zeros, one after the other, some eight sigma out."""
    law = gaussian_law(Fraction(100))

    served = iter(range(2 * 65536))

    def pattern(block, count):
        """As many whole draws as there is room for; fewer than four words are left over at the end of a block."""
        words = np.zeros(count // 2, dtype="<u2")
        words[3::4] = [next(served) % 65536 for _ in words[3::4]]
        return words.tobytes()

    out = np.empty(65536, dtype=np.int64)
    invert(cut_table(law), out, Patterned(pattern, Continued(ones=True)))
    values, sums = distribution(law)
    cuts = [int(cut * 2**64) for cut in sums]
    for word in range(65536):
        expected = values[bisect_right(cuts, word)]
        if word not in cuts:
            assert out[word] == expected
        else:
            assert out[word] >= values[cuts.index(word)]
    assert out.max() == -78


@pytest.mark.parametrize("widths", NARROW, ids=str)
@pytest.mark.parametrize("law", LAWS[:6], ids=str)
def test_the_law_survives_narrow_words(law, widths, monkeypatch):
    """20,000 draws, most of them undecided at first; blocks of a few words. False alarm below 1e-9."""
    monkeypatch.setattr(feeding, "WORDS_BYTES", 40)
    out = np.empty(20_000, dtype=np.int64)
    invert(cut_table(law, widths), out, SeededSource(8))
    shares = share_between(law, Decimal(0), Decimal(1))
    assert fits(out, list(shares), shares.values())
