"""Laws of selection where records have different rates."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from chi_square import FALSE_ALARM, p_value
from stirred.noise import SeededSource, reselect_by_class, select_by_class, source
from stirred.noise import selection as module
from stirred.noise.inversion import Widths

RATES = [Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)]
MIXES = [(0, 1), (0, 0, 1), (0, 1, 2), (2, 2, 1), (0, 0, 1, 2), (1, 1, 1, 1)]


def subset_law(rates):
    """P(subset) for each subset as a bit mask, given that not exactly one is selected."""
    chances = [
        math.prod((rate if subset >> i & 1 else 1 - rate for i, rate in enumerate(rates)), start=Fraction(1))
        for subset in range(2 ** len(rates))
    ]
    kept = 1 - sum(chance for subset, chance in enumerate(chances) if subset.bit_count() == 1)
    return [Fraction(0) if subset.bit_count() == 1 else chance / kept for subset, chance in enumerate(chances)]


def drawn_subsets(mix, groups, seed, **options):
    size = len(mix)
    starts = np.arange(groups + 1, dtype=np.int64) * size
    classes = np.tile(np.array(mix, dtype=np.uint8), groups)
    chosen = reselect_by_class(starts, classes, RATES, SeededSource(seed), **options).reshape(-1, size)
    return np.bincount(chosen @ (1 << np.arange(size)), minlength=2**size)


@pytest.mark.parametrize("mix", MIXES, ids=str)
def test_every_subset_of_a_group_has_its_probability(mix):
    """200,000 groups. False alarm below 1e-9."""
    assert p_value(drawn_subsets(mix, 200_000, 61), subset_law([RATES[c] for c in mix])) > FALSE_ALARM


@pytest.mark.one_in(3)
@pytest.mark.parametrize("widths", [Widths(1, 2), Widths(3, 6)], ids=str)
@pytest.mark.parametrize("block_bytes", [8, 14, 2**17])
@pytest.mark.parametrize("mix", [(0, 1), (0, 1, 2)], ids=str)
def test_the_law_survives_narrow_words_and_short_blocks(mix, block_bytes, widths, monkeypatch):
    """20,000 groups; draws that few bits leave undecided are common. False alarm below 1e-9."""
    monkeypatch.setattr(source, "WORDS_BYTES", block_bytes)
    settled = []
    original = module.below
    monkeypatch.setattr(module, "below", lambda *given: settled.append(original(*given)) or settled[-1])
    assert p_value(drawn_subsets(mix, 20_000, 62, widths=widths), subset_law([RATES[c] for c in mix])) > FALSE_ALARM
    assert len(settled) > 100


def test_groups_of_none_and_one_are_never_selected_and_disturb_no_other():
    """Sizes 0, 1, 2, 0, 3, 1 in turn. False alarm below 1e-9."""
    sizes = np.tile([0, 1, 2, 0, 3, 1], 100_000)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    classes = np.tile(np.array([2, 0, 1, 0, 1, 2, 2], dtype=np.uint8), 100_000)
    chosen = reselect_by_class(starts, classes, RATES, SeededSource(63)).reshape(-1, 7)
    assert not chosen[:, [0, 6]].any()
    pairs = np.bincount(chosen[:, 1:3] @ [1, 2], minlength=4)
    threes = np.bincount(chosen[:, 3:6] @ [1, 2, 4], minlength=8)
    assert p_value(pairs, subset_law([RATES[0], RATES[1]])) > FALSE_ALARM
    assert p_value(threes, subset_law([RATES[0], RATES[1], RATES[2]])) > FALSE_ALARM
    joint = np.bincount((chosen[:, 1:3].all(axis=1) * 2 + chosen[:, 3:6].any(axis=1)).astype(np.int64), minlength=4)
    both, some = subset_law([RATES[0], RATES[1]])[3], 1 - subset_law([RATES[0], RATES[1], RATES[2]])[0]
    assert p_value(joint, [(1 - both) * (1 - some), (1 - both) * some, both * (1 - some), both * some]) > FALSE_ALARM


def test_without_groups_there_is_nothing_to_select():
    none = np.zeros(0, dtype=np.uint8)
    assert len(reselect_by_class(np.zeros(1, dtype=np.int64), none, RATES, SeededSource(1))) == 0


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1)])
def test_rates_that_may_leave_one_alone_for_ever_are_refused(rate):
    with pytest.raises(ValueError, match="strictly between"):
        reselect_by_class(np.array([0, 2]), np.zeros(2, dtype=np.uint8), [rate], SeededSource(1))


def test_selection_over_a_file_is_independent_with_the_rate_of_each_class():
    """400,000 records whose classes alternate in threes: all subsets of each three. False alarm below 1e-9."""
    classes = np.tile(np.array([0, 1, 2], dtype=np.uint8), 400_000)
    chosen = np.zeros(len(classes), dtype=np.int64)
    chosen[select_by_class(classes, RATES, SeededSource(64))] = 1
    law = [
        math.prod((rate if subset >> i & 1 else 1 - rate for i, rate in enumerate(RATES)), start=Fraction(1))
        for subset in range(8)
    ]
    assert p_value(np.bincount(chosen.reshape(-1, 3) @ [1, 2, 4], minlength=8), law) > FALSE_ALARM
