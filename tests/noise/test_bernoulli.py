"""Selection with an exactly rational probability: certified tables, exact decisions, and the laws that result.

The proof is by enumeration: with words of a few bits every bit string can be fed to the kernel, and its answer is
compared with exact fractions. Chi-square tests then watch over what no enumeration reaches: blocks, buffers, long runs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction

import numpy as np
import pytest
from gap_tools import Untouchable, exact_cuts, reach_of

from stirred.noise import SeededSource, reselect, select
from stirred.noise.selection import MOST_CUTS, gap_table

TWENTIETH, THIRD, HALF = Fraction(1, 20), Fraction(1, 3), Fraction(1, 2)
RATES = [
    TWENTIETH,
    HALF,
    THIRD,
    Fraction(3, 4),
    Fraction(9, 10),
    Fraction(999, 1000),
    Fraction(1, 1000),
    Fraction(123456789, 10**9),
    Fraction(1, 2**20),
    1 - Fraction(1, 2**20),
]
WIDTHS = [(16, 64), (3, 6), (4, 7), (5, 10)]
NARROW = (3, 6)

# -- the table -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_a_table_reaches_all_but_a_1024th_of_the_mass_or_as_far_as_allowed(rate):
    reach = reach_of(rate)
    assert reach == MOST_CUTS or (1 - rate) ** reach <= Fraction(1, 1024)
    assert reach == 1 or (1 - rate) ** (reach - 1) > Fraction(1, 1024)


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_every_cut_is_the_floor_of_the_rational_it_stands_for(rate, widths):
    table = gap_table(rate, *widths)
    scaled = [cut * 2 ** widths[1] for cut in exact_cuts(rate, reach_of(rate))]
    assert table.cuts.tolist() == [math.floor(value) for value in scaled]
    assert table.whole.tolist() == [value.denominator == 1 for value in scaled]


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("rate", RATES, ids=str)
def test_every_cell_names_a_gap_exactly_when_no_cut_falls_inside(rate, widths):
    table = gap_table(rate, *widths)
    scaled = [cut * 2 ** widths[0] for cut in exact_cuts(rate, reach_of(rate))]
    assert len(table.cells) == 2 ** widths[0]
    at_or_below = 0
    for head, gap in enumerate(table.cells.tolist()):
        while at_or_below < len(scaled) and scaled[at_or_below] <= head:
            at_or_below += 1
        cut_inside = at_or_below < len(scaled) and scaled[at_or_below] < head + 1
        assert gap == (-1 if cut_inside else at_or_below), head


def test_the_cuts_of_one_half_are_whole_and_those_of_one_third_never():
    assert gap_table(HALF).whole.all()
    assert gap_table(HALF, 3, 6).whole.tolist() == [True] * 6 + [False] * 4
    assert not gap_table(THIRD).whole.any()


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)], ids=str)
def test_a_table_is_refused_for_a_rate_that_needs_none(rate):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        gap_table(rate)


@pytest.mark.parametrize("widths", [(0, 8), (17, 64), (8, 8), (8, 57)], ids=str)
def test_a_table_is_refused_for_words_that_do_not_fit(widths):
    with pytest.raises(ValueError, match="at most 16 bits"):
        gap_table(HALF, *widths)


# -- one gap from given bits ---------------------------------------------------------------------------------


class Dictated:
    """Serves a uniform number's bits: ``first`` as the first words, then ``more`` eight bytes at a time, then zeros."""

    for_release = False

    def __init__(self, widths, first, *more):
        head_bits, full_bits = widths
        rest_bits = full_bits - head_bits
        head, rest = first >> rest_bits, first & ((1 << rest_bits) - 1)
        bits = (head << (16 - head_bits) << 48) | (rest << (48 - rest_bits))
        self.words = b"".join(((bits >> shift) & 0xFFFF).to_bytes(2, "little") for shift in (48, 32, 16, 0))
        self.more = list(more)
        self.continuations = 0

    def take(self, count):
        if count == 8:
            self.continuations += 1
            return (self.more.pop(0) if self.more else 0).to_bytes(8, "big")
        served, self.words = self.words, b""
        return served.ljust(count, b"\0")


def one_draw(rate, widths, first, *more):
    """The gap that the bits give, and how often more bits were needed."""
    table = gap_table(rate, *widths)
    selected = select(reach_of(rate), rate, Dictated(widths, first, *more), table)
    dictated = Dictated(widths, first, *more)
    select(1, rate, dictated, table)  # a single draw decides on a single record
    return int(selected[0]) if len(selected) else reach_of(rate), dictated.continuations


def gaps_within(rate, low, high):
    """The least and the largest gap of the numbers U with low <= U < high, from exact cuts."""
    cuts = exact_cuts(rate, reach_of(rate))
    return bisect_right(cuts, low), bisect_left(cuts, high)


ALL_ONES = 2**64 - 1


@pytest.mark.parametrize("widths", [(3, 6), (4, 7), (5, 10)], ids=str)
@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, HALF, Fraction(9, 10), Fraction(123456789, 10**9)], ids=str)
def test_bits_settle_a_gap_exactly_when_every_continuation_gives_the_same(rate, widths, remembered_cuts):
    scale = 2 ** widths[1]
    for bits in range(scale):
        least, largest = gaps_within(rate, Fraction(bits, scale), Fraction(bits + 1, scale))
        continued = int(least < largest)
        assert one_draw(rate, widths, bits, 0) == (least, continued)
        assert one_draw(rate, widths, bits, ALL_ONES) == (largest, continued)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("rate", "length"),
    [
        (HALF, 10),
        (Fraction(3, 4), 10),
        (Fraction(7, 8), 12),
        (Fraction(15, 16), 12),
        (THIRD, 13),
        (TWENTIETH, 13),
        (Fraction(9, 10), 13),
    ],
    ids=str,
)
def test_among_all_bit_strings_each_gap_has_the_share_of_its_probability(rate, length, remembered_cuts):
    """Words of 6 bits, then ``length`` - 6 more from the fall-back: 2^length strings, all of them tried.

    A string counts for a gap when its lowest and its highest continuation agree. Rates with a power of two below the
    line have all cuts at ends of strings: there no string is left over and the shares are exact.
    """
    reach, beyond = reach_of(rate), length - 6
    settled, straddling = [0] * (reach + 1), [0] * (reach + 1)
    continued = 0
    for string in range(2**length):
        bits, more = string >> beyond, (string % 2**beyond) << (64 - beyond)
        ones = more | (2 ** (64 - beyond) - 1)
        least, needed = one_draw(rate, NARROW, bits, more)
        largest, _ = one_draw(rate, NARROW, bits, ones)
        continued += needed
        if least == largest:
            settled[least] += 1
        else:
            for gap in range(least, largest + 1):
                straddling[gap] += 1
    chances = [rate * (1 - rate) ** k for k in range(reach)] + [(1 - rate) ** reach]
    for gap, chance in enumerate(chances):
        assert settled[gap] <= chance * 2**length <= settled[gap] + straddling[gap], gap
    assert continued > 0, "the fall-back was never needed"
    if rate.denominator in (2, 4, 8, 16):
        assert not any(straddling)


@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, HALF, Fraction(999, 1000), Fraction(123456789, 10**9)], ids=str)
def test_at_64_bits_each_cut_parts_its_gap_from_the_next_to_the_last_bit(rate):
    table = gap_table(rate)
    for k, (cut, whole) in enumerate(zip(table.cuts.tolist(), table.whole.tolist(), strict=True)):
        assert one_draw(rate, (16, 64), cut - 1) == (k, 0)
        assert one_draw(rate, (16, 64), cut) == ((k + 1, 0) if whole else (k, 1))
        assert one_draw(rate, (16, 64), cut + 1) == (k + 1, 0)


@pytest.mark.parametrize("widths", [(3, 6), (5, 10), (16, 64)], ids=str)
@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, Fraction(9, 10), Fraction(123456789, 10**9)], ids=str)
def test_an_undecided_gap_goes_on_with_64_bits_at_a_time_until_it_is_settled(rate, widths, remembered_cuts):
    for cut in exact_cuts(rate, reach_of(rate)):
        floor = math.floor(cut * 2 ** (widths[1] + 64))
        bits, more = floor >> 64, floor % 2**64
        for change, continuations in ((-1, 1), (1, 1), (0, 2)):
            if not 0 <= more + change < 2**64:
                continue  # would be another cell
            for last in (0, ALL_ONES):
                number = Fraction(((floor + change) << 64) | last, 2 ** (widths[1] + 128))
                least, largest = gaps_within(rate, number, number + Fraction(1, 2 ** (widths[1] + 128)))
                assert least == largest
                assert one_draw(rate, widths, bits, more + change, last) == (least, continuations)


# -- edges of select -----------------------------------------------------------------------------------------


def test_rates_zero_and_one_and_an_empty_file_take_no_randomness():
    assert select(1000, Fraction(0), Untouchable()).tolist() == []
    assert select(1000, Fraction(1), Untouchable()).tolist() == list(range(1000))
    for rate in (Fraction(0), TWENTIETH, Fraction(1)):
        assert select(0, rate, Untouchable()).tolist() == []


def test_more_records_than_positions_can_name_are_refused():
    with pytest.raises(ValueError, match="32-bit"):
        select(2**32, TWENTIETH, Untouchable())


@pytest.mark.parametrize("rate", [Fraction(-1, 20), Fraction(21, 20)], ids=str)
def test_a_rate_outside_zero_to_one_is_refused(rate):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        select(10, rate, Untouchable())
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        reselect(np.array([0, 10]), rate, Untouchable())


@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, Fraction(999, 1000)], ids=str)
def test_positions_increase_and_stay_below_the_number_of_records(rate):
    for records in (*range(1, 40), 12_345):
        selected = select(records, rate, SeededSource(records)).astype(np.int64)
        assert np.all(np.diff(selected) > 0)
        assert np.all((selected >= 0) & (selected < records))


class Constant:
    """Every 16-bit word is the same."""

    for_release = False

    def __init__(self, word):
        self.word = word.to_bytes(2, "little")

    def take(self, count):
        return self.word * (count // 2)


@pytest.mark.parametrize("widths", WIDTHS, ids=str)
def test_far_more_selected_than_expected_are_all_kept(widths):
    assert np.array_equal(select(100_000, TWENTIETH, Constant(0), gap_table(TWENTIETH, *widths)), np.arange(100_000))


@pytest.mark.parametrize("gap", [0, 3, 20])
def test_a_buffer_that_grows_loses_and_repeats_nothing(gap):
    """A rate of 10^-9 sizes the buffer; the table of 1/20 draws the same gap again and again."""
    table = gap_table(TWENTIETH)
    every = Constant(int(np.flatnonzero(table.cells == gap)[0]))
    selected = select(100_000, Fraction(1, 10**9), every, table)
    assert np.array_equal(selected, np.arange(gap, 100_000, gap + 1))


class Counting:
    """Its words mean gaps of 0, 1, 2, ... in turn, so that gaps tell which words they came from."""

    for_release = False

    def __init__(self, table):
        self.words = [int(np.flatnonzero(table.cells == gap)[0]) for gap in range(400)]
        self.blocks = []

    def take(self, count):
        begun = self.blocks[-1].stop if self.blocks else 0
        self.blocks.append(range(begun, begun + count // 2))
        return np.array([self.words[i] for i in self.blocks[-1]], dtype="<u2").tobytes()


def test_every_word_is_used_once_whether_a_block_ends_or_a_buffer_is_full():
    """A draw may take four words, so the last three of a block go unused. The buffer grows from 64 twice or more."""
    table = gap_table(Fraction(1, 1000))
    counting = Counting(table)
    selected = select(40_000, Fraction(1, 10**9), counting, table).astype(np.int64)
    used = [word for block in counting.blocks for word in block[:-3]]
    assert len(counting.blocks) > 3
    assert len(selected) > 4 * 64
    assert (np.diff(selected, prepend=-1) - 1).tolist() == used[: len(selected)]
