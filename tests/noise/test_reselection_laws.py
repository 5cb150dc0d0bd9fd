"""Laws of selection in groups, given that no group has exactly one selected."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from gap_tools import Untouchable, reach_of
from scipy import stats

from chi_square import FALSE_ALARM, p_value
from stirred.noise import SeededSource, reselect, source
from stirred.noise.selection import gap_table

TWENTIETH, THIRD, HALF = Fraction(1, 20), Fraction(1, 3), Fraction(1, 2)
NARROW = (3, 6)


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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rate", [TWENTIETH, THIRD, HALF, Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("size", [2, 3, 5, 10])
def test_the_number_selected_in_a_group_is_binomial_given_that_it_is_not_one(size, rate):
    """200,000 groups; below six records every subset too. False alarm below 1e-9 each."""
    chosen = reselect(starts_of([size] * 200_000), rate, SeededSource(21)).reshape(-1, size)
    assert p_value(np.bincount(chosen.sum(axis=1), minlength=size + 1), count_law(size, rate)) > FALSE_ALARM
    if size < 6:
        subsets = np.bincount(chosen @ (1 << np.arange(size)), minlength=2**size)
        assert p_value(subsets, subset_law(size, rate)) > FALSE_ALARM


@pytest.mark.one_in(3)
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
