"""Selection with an exactly rational probability: certified tables, exact decisions, and the laws that result.

The proof is by enumeration: with words of a few bits every bit string can be fed to the kernel, and its answer is
compared with exact fractions. Chi-square tests then watch over what no enumeration reaches: blocks, buffers, long runs.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

from stirred.noise import SeededSource, bernoulli, reselect, select, source
from stirred.noise.bernoulli import MOST_CUTS, gap_table

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

FALSE_ALARM = 1e-12
"""Nominal, for every statistical test here. Cells expect 200 or more, whose skewness at seven standard deviations
multiplies a tail by exp(7^3 / (6 sqrt(200))), less than 100: the true false-alarm probability stays below 1e-9."""


def p_value(observed, chances):
    """Of a chi-square test against exact ``chances``; cells that expect fewer than 200 are pooled."""
    observed = np.asarray(observed)
    expected = np.array([float(chance) for chance in chances]) * observed.sum()
    assert expected.sum() == pytest.approx(observed.sum(), rel=1e-12)
    if observed[expected == 0].any():
        return 0.0
    order = np.argsort(expected)
    pooled = max(np.searchsorted(expected[order], 200), np.searchsorted(np.cumsum(expected[order]), 200) + 1)
    starts = [0, *range(pooled, len(order))]
    assert len(starts) > 1, "too few draws to compare anything"
    found, wanted = np.add.reduceat(observed[order], starts), np.add.reduceat(expected[order], starts)
    return stats.chi2.sf(np.sum((found - wanted) ** 2 / wanted), len(starts) - 1)


def reach_of(rate):
    """K, the number of cuts in a table; a gap of K stands for "K or more"."""
    return len(gap_table(rate).cuts)


@cache
def exact_cuts(rate, count):
    """F(0), ..., F(count - 1), each from its own power."""
    return [1 - (1 - rate) ** (k + 1) for k in range(count)]


@pytest.fixture
def remembered_cuts(monkeypatch):
    """Undecided draws are common with narrow words; let them not compute all cuts afresh each time."""
    monkeypatch.setattr(bernoulli, "cut_values", cache(bernoulli.cut_values))


@pytest.fixture
def resolved(monkeypatch):
    """The answers that the rational fall-back gives, in a list."""
    answers = []
    original = bernoulli._resolve

    def recording(*arguments):
        answers.append(original(*arguments))
        return answers[-1]

    monkeypatch.setattr(bernoulli, "_resolve", recording)
    return answers


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


class Untouchable:
    """A source that must not be asked."""

    for_release = True

    def take(self, count):
        raise AssertionError("randomness was drawn where none is needed")


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


def test_when_there_is_no_room_a_gap_is_kept_and_no_word_is_used_twice(monkeypatch):
    """4000 runs of 200 records at 9/10 that a buffer of 64 must hold; with one cut a draw says "this" or "not this".

    Drawing again for want of room would favour "not this", and does not: the gap before each of the first 140 selected
    is 0 in 9 of 10 runs. Gaps from the same words would be equal, and are not: no two of the 140 are correlated. False
    alarm 280 * 1e-12 for the first, exactly binomial; below 1e-80 for the second, by Bernstein's inequality.
    """
    monkeypatch.setattr(bernoulli, "MOST_CUTS", 1)
    drawn, table = SeededSource(19), gap_table.__wrapped__(Fraction(9, 10))
    assert len(table.cuts) == 1
    runs = np.array([select(200, Fraction(1, 10**9), drawn, table)[:140] for _ in range(4000)], dtype=np.int64)
    none_before = np.diff(runs, axis=1, prepend=-1) == 1
    found = np.count_nonzero(none_before, axis=0)
    assert stats.binom.cdf(found, 4000, 0.9).min() > FALSE_ALARM
    assert stats.binom.sf(found - 1, 4000, 0.9).min() > FALSE_ALARM
    assert np.abs(np.corrcoef(none_before.T) - np.eye(140)).max() < 0.5


# -- laws of select ------------------------------------------------------------------------------------------


def gaps_drawn(rate, wanted, key, table=None):
    """The first ``wanted`` gaps of a run that is long enough for more, so that their number is not random."""
    records = int(wanted / rate * Fraction(11, 10)) + 1000
    selected = select(records, rate, SeededSource(key), table).astype(np.int64)
    assert len(selected) >= wanted
    return np.diff(selected[:wanted], prepend=-1) - 1


def geometric_fits(gaps, rate):
    """The p-value of the gaps; the last cell is everything from some gap on that leaves 200 beyond."""
    longest = int(math.log(200 / len(gaps)) / math.log(1 - rate))
    assert longest > 1
    observed = np.bincount(np.minimum(gaps, longest), minlength=longest + 1)
    missed = float(1 - rate)
    return p_value(observed, [float(rate) * missed**k for k in range(longest)] + [missed**longest])


@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, HALF, Fraction(9, 10)], ids=str)
def test_gaps_are_geometric(rate):
    """A million draws over several blocks, gaps beyond the table's reach among them. False alarm below 1e-9."""
    assert geometric_fits(gaps_drawn(rate, 1_000_000, key=11), rate) > FALSE_ALARM


@pytest.mark.parametrize(("widths", "draws"), [((3, 6), 100_000), ((4, 7), 100_000), ((5, 9), 200_000)], ids=str)
@pytest.mark.parametrize("rate", [TWENTIETH, HALF, Fraction(9, 10)], ids=str)
def test_gaps_are_geometric_where_the_rare_paths_are_common(rate, widths, draws, remembered_cuts, resolved):
    """False alarm below 1e-9."""
    gaps = gaps_drawn(rate, draws, key=12, table=gap_table(rate, *widths))
    assert geometric_fits(gaps, rate) > FALSE_ALARM
    assert len(resolved) > 100, "the narrow words were not narrow enough"
    assert len(set(resolved)) > 1


def test_with_64_bits_the_rare_path_is_rare(resolved):
    """A million draws, 136 cuts: one is undecided with probability 1e-11."""
    gaps_drawn(TWENTIETH, 1_000_000, key=13)
    assert resolved == []


def test_gaps_beyond_the_reach_of_the_table_are_geometric_too():
    """At 1/1000 the table ends at a gap of 1024 and one draw in three is longer. False alarm below 1e-9."""
    rate = Fraction(1, 1000)
    gaps = gaps_drawn(rate, 300_000, key=14)
    bins = np.minimum(gaps // 64, 100)
    missed = float((1 - rate) ** 64)
    assert reach_of(rate) == 1024
    chances = [missed**k * (1 - missed) for k in range(100)] + [missed**100]
    assert p_value(np.bincount(bins, minlength=101), chances) > FALSE_ALARM


@pytest.mark.parametrize("rate", [TWENTIETH, HALF], ids=str)
def test_successive_gaps_are_independent(rate):
    """Joint law of neighbouring gaps, each counted up to 12. False alarm below 1e-9."""
    pairs = np.minimum(gaps_drawn(rate, 1_000_000, key=15), 12).reshape(-1, 2)
    observed = np.bincount(pairs @ [13, 1], minlength=169)
    chances = np.array([float(rate * (1 - rate) ** k) for k in range(12)] + [float((1 - rate) ** 12)])
    assert p_value(observed, np.outer(chances, chances).ravel()) > FALSE_ALARM


@pytest.mark.parametrize("widths", [(16, 64), (3, 6)], ids=str)
@pytest.mark.parametrize("rate", [TWENTIETH, HALF, Fraction(9, 10)], ids=str)
def test_every_subset_of_four_records_has_its_probability(rate, widths, remembered_cuts):
    """40,000 calls; hence the number selected is binomial and no position is favoured. False alarm below 1e-9."""
    drawn, table = SeededSource(16), gap_table(rate, *widths)
    observed = np.zeros(16, dtype=np.int64)
    for _ in range(40_000):
        observed[sum(1 << int(position) for position in select(4, rate, drawn, table))] += 1
    sizes = [subset.bit_count() for subset in range(16)]
    assert p_value(observed, [rate**k * (1 - rate) ** (4 - k) for k in sizes]) > FALSE_ALARM


@pytest.mark.parametrize("widths", [(16, 64), (5, 10)], ids=str)
@pytest.mark.parametrize("rate", [TWENTIETH, HALF], ids=str)
def test_no_part_of_a_long_file_is_favoured(rate, widths, remembered_cuts):
    """200 parts of 10,000 records: each part's number selected is binomial. False alarm below 1e-9."""
    selected = select(2_000_000, rate, SeededSource(17), gap_table(rate, *widths))
    found = np.bincount(selected // 10_000, minlength=200)
    mean, variance = float(10_000 * rate), float(10_000 * rate * (1 - rate))
    assert stats.chi2.sf(np.sum((found - mean) ** 2) / variance, 200) > FALSE_ALARM
    assert stats.chi2.cdf(np.sum((found - mean) ** 2) / variance, 200) > FALSE_ALARM


@pytest.mark.parametrize("block_bytes", [8, 10, 14, 50])
@pytest.mark.parametrize("rate", [TWENTIETH, HALF, Fraction(9, 10)], ids=str)
def test_where_blocks_end_does_not_change_the_law(rate, block_bytes, monkeypatch, remembered_cuts):
    """Blocks of 4, 5, 7 and 25 words, of which a draw takes one or four. False alarm below 1e-9."""
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    gaps = gaps_drawn(rate, 50_000, key=18, table=gap_table(rate, 5, 10))
    assert geometric_fits(gaps, rate) > FALSE_ALARM


# -- laws of reselect ----------------------------------------------------------------------------------------


def starts_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def subset_law(size, rate):
    """P(subset) for each subset as a bit mask, given that not exactly one is selected."""
    kept = 1 - size * rate * (1 - rate) ** (size - 1)
    counts = [subset.bit_count() for subset in range(2**size)]
    return [Fraction(0) if k == 1 else rate**k * (1 - rate) ** (size - k) / kept for k in counts]


def count_law(size, rate):
    law = subset_law(size, rate)
    return [math.comb(size, k) * law[2**k - 1] for k in range(size + 1)]


@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, HALF, Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_the_number_selected_in_a_group_is_binomial_given_that_it_is_not_one(size, rate):
    """200,000 groups; below six records every subset too. False alarm below 1e-9 each."""
    chosen = reselect(starts_of([size] * 200_000), rate, SeededSource(21)).reshape(-1, size)
    assert p_value(np.bincount(chosen.sum(axis=1), minlength=size + 1), count_law(size, rate)) > FALSE_ALARM
    if size < 6:
        subsets = np.bincount(chosen @ (1 << np.arange(size)), minlength=2**size)
        assert p_value(subsets, subset_law(size, rate)) > FALSE_ALARM


@pytest.mark.parametrize("block_bytes", [8, 14, 2**18])
@pytest.mark.parametrize("rate", [TWENTIETH, HALF, Fraction(9, 10)], ids=str)
def test_the_law_within_groups_survives_narrow_words_and_short_blocks(
    rate, block_bytes, monkeypatch, remembered_cuts, resolved
):
    """20,000 groups of ten. False alarm below 1e-9."""
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    chosen = reselect(starts_of([10] * 20_000), rate, SeededSource(22), gap_table(rate, *NARROW)).reshape(-1, 10)
    assert p_value(np.bincount(chosen.sum(axis=1), minlength=11), count_law(10, rate)) > FALSE_ALARM
    assert len(resolved) > 100


def test_groups_larger_than_the_reach_of_the_table_follow_the_law():
    """At 1/2 the table ends at 10, in groups of 12 a draw may pass it. False alarm below 1e-9."""
    assert reach_of(HALF) == 10
    chosen = reselect(starts_of([12] * 200_000), HALF, SeededSource(23)).reshape(-1, 12)
    assert p_value(np.bincount(chosen.sum(axis=1), minlength=13), count_law(12, HALF)) > FALSE_ALARM


def test_small_rates_in_large_groups_follow_the_law():
    """Groups of 3000 at 1/1000, where the table ends at 1024. False alarm below 1e-9."""
    rate, size = Fraction(1, 1000), 3000
    chosen = reselect(starts_of([size] * 10_000), rate, SeededSource(24)).reshape(-1, size)
    counts = np.minimum(chosen.sum(axis=1), 12)
    law = stats.binom.pmf(np.arange(12), size, float(rate))
    kept = 1 - law[1]
    law[1] = 0
    chances = [*(law / kept), stats.binom.sf(11, size, float(rate)) / kept]
    assert p_value(np.bincount(counts, minlength=13), chances) > FALSE_ALARM


@pytest.mark.parametrize("rate", [TWENTIETH, HALF], ids=str)
def test_groups_of_none_and_one_are_never_selected_and_disturb_no_other(rate):
    """Sizes 0, 1, 2, 0, 3, 1 in turn, the file ending with a group of one. False alarm below 1e-9."""
    sizes = np.tile([0, 1, 2, 0, 3, 1], 100_000)
    starts = starts_of(sizes)
    chosen = reselect(starts, rate, SeededSource(25))
    counts = np.diff(np.concatenate([[0], np.cumsum(chosen)])[starts])
    assert not counts[sizes < 2].any()
    for size in (2, 3):
        assert p_value(np.bincount(counts[sizes == size], minlength=size + 1), count_law(size, rate)) > FALSE_ALARM


@pytest.mark.parametrize("rate", [TWENTIETH, HALF], ids=str)
def test_selections_of_neighbouring_groups_are_independent(rate):
    """Groups of two, most of them drawn more than once at 1/2. False alarm below 1e-9."""
    chosen = reselect(starts_of([2] * 400_000), rate, SeededSource(26)).reshape(-1, 2).all(axis=1)
    both = rate**2 / (1 - 2 * rate * (1 - rate))
    observed = np.bincount(chosen.reshape(-1, 2) @ [2, 1], minlength=4)
    assert p_value(observed, [(1 - both) ** 2, both * (1 - both), both * (1 - both), both**2]) > FALSE_ALARM


def test_at_rate_one_every_group_of_two_or_more_is_selected_whole_and_at_rate_zero_none():
    starts = starts_of([0, 1, 2, 3, 1, 0, 5])
    assert reselect(starts, Fraction(1), Untouchable()).tolist() == [False] + [True] * 5 + [False] + [True] * 5
    assert reselect(starts, Fraction(0), Untouchable()).tolist() == [False] * 12


@pytest.mark.parametrize("rate", [Fraction(0), TWENTIETH, Fraction(1)], ids=str)
def test_without_groups_there_is_nothing_to_select(rate):
    assert reselect(starts_of([]), rate, SeededSource(27)).tolist() == []
