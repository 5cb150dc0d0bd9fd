"""Laws of selection: gaps are geometric, records independent, whatever the blocks and the width of words."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from gap_tools import reach_of
from scipy import stats

from chi_square import FALSE_ALARM, p_value
from stirred.noise import SeededSource, select, source
from stirred.noise.selection import gap_table

TWENTIETH, THIRD, HALF = Fraction(1, 20), Fraction(1, 3), Fraction(1, 2)
NARROW = (3, 6)


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


@pytest.mark.one_in(3)
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


@pytest.mark.one_in(3)
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("block_bytes", [8, 10, 14, 50])
@pytest.mark.parametrize("rate", [TWENTIETH, HALF, Fraction(9, 10)], ids=str)
def test_where_blocks_end_does_not_change_the_law(rate, block_bytes, monkeypatch, remembered_cuts):
    """Blocks of 4, 5, 7 and 25 words, of which a draw takes one or four. False alarm below 1e-9."""
    monkeypatch.setattr(source, "BLOCK_BYTES", block_bytes)
    gaps = gaps_drawn(rate, 50_000, key=18, table=gap_table(rate, 5, 10))
    assert geometric_fits(gaps, rate) > FALSE_ALARM
