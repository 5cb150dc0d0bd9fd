"""Permutations and derangements within groups: exactly uniform integers, uniform laws, independent groups."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from stirred.noise import SeededSource, derange_groups, shuffle_groups, source

FALSE_ALARM = 1e-12
"""Nominal, for every statistical test here. Cells expect 200 or more, whose skewness at seven standard deviations
multiplies a tail by exp(7^3 / (6 sqrt(200))), less than 100: the true false-alarm probability stays below 1e-9."""


def starts_of(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def all_permutations(size):
    return list(itertools.permutations(range(size)))


def all_derangements(size):
    return [order for order in all_permutations(size) if all(item != i for i, item in enumerate(order))]


def index_among(orders, outcomes):
    """Which of ``outcomes`` each row of ``orders`` is; a row that is none of them fails the test."""
    digits = orders.shape[1] ** np.arange(orders.shape[1])
    known = np.array(outcomes) @ digits
    codes = orders.astype(np.int64) @ digits
    by_code = np.argsort(known)
    found = by_code[np.minimum(np.searchsorted(known[by_code], codes), len(known) - 1)]
    assert np.array_equal(known[found], codes), "an outcome that cannot be"
    return found


def uniform_p_value(indices, outcomes):
    """Of a chi-square test that each outcome is equally likely."""
    assert len(indices) >= 200 * outcomes, "too few draws for the chi-square law"
    expected = len(indices) / outcomes
    statistic = np.sum((np.bincount(indices, minlength=outcomes) - expected) ** 2) / expected
    return stats.chi2.sf(statistic, outcomes - 1)


SHUFFLES = [(shuffle_groups, all_permutations, size) for size in range(2, 6)]
DERANGEMENTS = [(derange_groups, all_derangements, size) for size in range(3, 7)]


def name(case):
    return getattr(case, "__name__", str(case))


# -- laws ----------------------------------------------------------------------------------------------------


def test_there_are_as_many_derangements_as_the_books_say():
    assert [len(all_derangements(size)) for size in range(2, 7)] == [1, 2, 9, 44, 265]


@pytest.mark.parametrize(("draw", "outcomes", "size"), SHUFFLES + DERANGEMENTS, ids=name)
def test_every_order_of_a_group_is_equally_likely(draw, outcomes, size):
    """A million groups, for which blocks must be fetched again and again. False alarm below 1e-9."""
    orders = draw(np.arange(0, 1_000_000 * size + 1, size), SeededSource(31)).reshape(-1, size)
    possible = outcomes(size)
    assert uniform_p_value(index_among(orders, possible), len(possible)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_every_derangement_is_equally_likely_in_fifty_million_draws(size):
    """False alarm below 1e-9. Probabilities that were all 1 % off, up or down, would be found at every size."""
    drawn, possible = SeededSource(32), all_derangements(size)
    observed = np.zeros(len(possible), dtype=np.int64)
    for _ in range(50):
        orders = derange_groups(np.arange(0, 1_000_000 * size + 1, size), drawn).reshape(-1, size)
        observed += np.bincount(index_among(orders, possible), minlength=len(possible))
    expected = observed.sum() / len(possible)
    statistic = np.sum((observed - expected) ** 2) / expected
    assert stats.chi2.sf(statistic, len(possible) - 1) > FALSE_ALARM


def test_groups_of_one_keep_their_member_and_groups_of_two_that_are_deranged_exchange():
    assert shuffle_groups(starts_of([1] * 5), SeededSource(33)).tolist() == [0] * 5
    assert derange_groups(starts_of([2] * 5), SeededSource(33)).tolist() == [1, 0] * 5


@pytest.mark.parametrize(("draw", "outcomes", "size"), [SHUFFLES[1], *DERANGEMENTS[:2]], ids=name)
@pytest.mark.parametrize("apart", [1, 2, 4, 1000, 100_000])
def test_orders_of_two_groups_are_independent(draw, outcomes, size, apart):
    """Joint law of groups ``apart`` from each other: one order repeated in all groups would be found at once.

    False alarm below 1e-9.
    """
    orders = draw(np.arange(0, 400_000 * size + 1, size), SeededSource(34)).reshape(-1, size)
    possible = outcomes(size)
    indices = index_among(orders, possible).reshape(-1, 2, apart)
    joint = indices[:, 0, :] * len(possible) + indices[:, 1, :]
    assert uniform_p_value(joint.ravel(), len(possible) ** 2) > FALSE_ALARM


def test_orders_of_four_groups_are_jointly_uniform():
    """False alarm below 1e-9."""
    orders = derange_groups(np.arange(0, 400_000 * 3 + 1, 3), SeededSource(35)).reshape(-1, 3)
    indices = index_among(orders, all_derangements(3)).reshape(-1, 4)
    assert uniform_p_value(indices @ [8, 4, 2, 1], 16) > FALSE_ALARM


def test_successive_calls_are_independent():
    """Two calls on one source. False alarm below 1e-9."""
    drawn = SeededSource(36)
    starts = np.arange(0, 200_000 * 3 + 1, 3)
    first, second = (index_among(shuffle_groups(starts, drawn).reshape(-1, 3), all_permutations(3)) for _ in range(2))
    assert uniform_p_value(first * 6 + second, 36) > FALSE_ALARM


@pytest.mark.parametrize(
    ("draw", "outcomes", "sizes"),
    [(shuffle_groups, all_permutations, (3, 0, 1, 4, 2, 0)), (derange_groups, all_derangements, (3, 0, 2, 5, 4, 0))],
    ids=name,
)
def test_groups_of_mixed_sizes_each_follow_their_own_law(draw, outcomes, sizes):
    """100,000 groups of each size, empty ones among and after them. False alarm below 1e-9."""
    orders = draw(starts_of(sizes * 100_000), SeededSource(37)).reshape(-1, sum(sizes))
    at = starts_of(sizes)
    for i, size in enumerate(sizes):
        if size > 0:
            possible = outcomes(size)
            indices = index_among(orders[:, at[i] : at[i + 1]], possible)
            assert len(possible) == 1 or uniform_p_value(indices, len(possible)) > FALSE_ALARM


@pytest.mark.parametrize("draw", [shuffle_groups, derange_groups], ids=name)
def test_a_large_group_stays_a_permutation_with_the_fixed_points_it_may_have(draw):
    """A million members; a shuffle has more than 20 fixed points with probability 2e-20."""
    order = draw(np.array([0, 1_000_000]), SeededSource(38)).astype(np.int64)
    assert np.array_equal(np.sort(order), np.arange(1_000_000))
    fixed = np.count_nonzero(order == np.arange(1_000_000))
    assert fixed == 0 if draw is derange_groups else fixed <= 20


@pytest.mark.parametrize("draw", [shuffle_groups, derange_groups], ids=name)
def test_members_of_a_large_group_go_anywhere_alike(draw):
    """Where members of ten ranges come from, among ten ranges of 100,000: hypergeometric. False alarm below 1e-9.

    With 81 degrees of freedom the sum is chi-square but for a factor 1 + 1e-6, fixed points being so few.
    """
    order = draw(np.array([0, 1_000_000]), SeededSource(39)).astype(np.int64)
    observed = np.bincount(np.arange(1_000_000) // 100_000 * 10 + order // 100_000, minlength=100)
    statistic = np.sum((observed - 10_000) ** 2) / 10_000
    assert stats.chi2.sf(statistic, 81) > FALSE_ALARM
    assert stats.chi2.cdf(statistic, 81) > FALSE_ALARM


# -- edges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [shuffle_groups, derange_groups], ids=name)
@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 0]], ids=str)
def test_without_members_there_is_nothing_to_order(draw, sizes):
    assert draw(starts_of(sizes), SeededSource(40)).tolist() == []


@pytest.mark.parametrize("sizes", [[1], [2, 1, 3], [0, 1], [5, 1]], ids=str)
def test_a_group_of_one_has_no_derangement(sizes):
    with pytest.raises(ValueError, match="a group of one has no derangement"):
        derange_groups(starts_of(sizes), SeededSource(41))


# -- bounded integers ----------------------------------------------------------------------------------------


class Dictated:
    """Serves the given 32-bit words, then words with all bits set."""

    for_release = False

    def __init__(self, *words):
        self.bytes = b"".join(word.to_bytes(4, "little") for word in words)

    def take(self, count):
        served, self.bytes = self.bytes[:count], self.bytes[count:]
        return served.ljust(count, b"\xff")


def fisher_yates(size, integers):
    """From the top: position i receives what stands at the integer drawn for it; without one, its own."""
    order = list(range(size))
    for top, other in zip(range(size - 1, 0, -1), integers, strict=False):
        order[top], order[other] = order[other], order[top]
    return order


def words_at_the_edges(bound):
    """The first three and the last word of each of the ``bound`` intervals into which products fall."""
    for j in range(bound):
        first, beyond = -(-(j << 32) // bound), -(-((j + 1) << 32) // bound)
        yield from (first, first + 1, first + 2, beyond - 1)


@pytest.mark.parametrize("bound", [3, 4, 5, 6, 7, 8, 11, 100])
def test_a_word_is_rejected_exactly_when_its_low_half_is_below_the_threshold(bound):
    """Then each integer below the bound has floor(2^32 / bound) words. 1000 stands for 0, whatever the bound."""
    threshold = 2**32 % bound
    rejected = 0
    for word in words_at_the_edges(bound):
        integer, low = divmod(word * bound, 2**32)
        expected = fisher_yates(bound, [0] if low < threshold else [integer, 0])
        assert shuffle_groups(np.array([0, bound]), Dictated(word, 1000)).tolist() == expected, word
        rejected += low < threshold
    assert rejected == threshold


@pytest.mark.parametrize(("bound", "inverse"), [(b, pow(b, -1, 2**32)) for b in (3, 5, 7, 100_003)], ids=str)
def test_a_low_half_equal_to_the_threshold_is_kept_and_one_less_is_not(bound, inverse):
    threshold = 2**32 % bound
    kept, dropped = (threshold * inverse % 2**32, (threshold - 1) * inverse % 2**32)
    assert [kept * bound % 2**32, dropped * bound % 2**32] == [threshold, threshold - 1]
    starts = np.array([0, bound])
    integer = kept * bound >> 32
    assert shuffle_groups(starts, Dictated(kept, 1000)).tolist() == fisher_yates(bound, [integer, 0])
    assert shuffle_groups(starts, Dictated(dropped, 1000)).tolist() == fisher_yates(bound, [0])


# -- blocks --------------------------------------------------------------------------------------------------


class Stream:
    """Serves one long stream, however it is asked for."""

    for_release = False

    def __init__(self, key, length):
        self.bytes, self.at = SeededSource(key).take(length), 0

    def take(self, count):
        assert self.at + count <= len(self.bytes), "the stream is too short for this test"
        self.at += count
        return self.bytes[self.at - count : self.at]


@pytest.mark.parametrize("words", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("draw", [shuffle_groups, derange_groups], ids=name)
def test_where_blocks_end_changes_nothing(draw, words, monkeypatch):
    """No word is skipped or used twice between blocks: the same stream gives the same orders."""
    starts = starts_of([3, 0, 4, 2, 5, 6, 40] * 100)
    whole = draw(starts, Stream(42, 1_000_000))
    monkeypatch.setattr(source, "BLOCK_BYTES", 4 * words)
    assert np.array_equal(draw(starts, Stream(42, 1_000_000)), whole)


@pytest.mark.parametrize("words", [1, 3])
def test_derangements_in_short_blocks_are_uniform(words, monkeypatch):
    """Every group is interrupted, at every stage. False alarm below 1e-9."""
    monkeypatch.setattr(source, "BLOCK_BYTES", 4 * words)
    orders = derange_groups(np.arange(0, 20_000 * 4 + 1, 4), SeededSource(43)).reshape(-1, 4)
    assert uniform_p_value(index_among(orders, all_derangements(4)), 9) > FALSE_ALARM
