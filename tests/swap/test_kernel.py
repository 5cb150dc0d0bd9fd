"""The permutation that a swap draws, against every permutation of small strata with its exact probability."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swap_oracle import (
    moved_probability_by_enumeration,
    outcome_counts,
    permutation_law,
    permutations,
    released_law,
)

from chi_square import FALSE_ALARM, p_value
from stirred.lab.reproduce.swapping import moved_probability_as_printed
from stirred.noise import SeededSource, SystemSource
from stirred.swap.law.moments import cell_moments, stratum_constants
from stirred.swap.law.permutation import draw
from stirred.swap.law.theorem import moved_probability
from stirred.tables.groups import Groups

RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]

FAR = 7.0
"""Standard deviations that a mean may be off: 3e-12 for a normal mean. A skewness of g in R replicates multiplies that
by exp(7^3 g / (6 sqrt(R))), below 10 here (counts and their squares have g < 9), so a false alarm stays below 1e-9."""


def scattered(sizes, key=0):
    """Strata of these sizes whose records lie anywhere in the file."""
    ids = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    return Groups(np.random.default_rng(key).permutation(ids), len(sizes))


def members(strata, size):
    """The records of the strata that have ``size`` of them, a row for each stratum, in the order of the file."""
    sizes = strata.sizes()
    by_stratum = np.argsort(strata.ids, kind="stable")
    return by_stratum[np.repeat(sizes == size, sizes)].reshape(-1, size)


def giver_of_each(moves, records):
    """sigma: from whom each record has its swap variables, itself if it stays."""
    sigma = np.arange(records, dtype=np.int64)
    sigma[moves.receiver] = moves.giver
    return sigma


def drawn_permutations(strata, moves, size):
    """For every stratum of ``size`` records, which of ``permutations(size)`` was drawn."""
    rows = members(strata, size)
    place = np.empty(len(strata.ids), dtype=np.int64)
    place[rows] = np.arange(size)
    digits = size ** np.arange(size)
    codes = place[giver_of_each(moves, len(strata.ids))[rows]] @ digits
    known = permutations(size)[0] @ digits
    by_code = np.argsort(known)
    found = by_code[np.minimum(np.searchsorted(known[by_code], codes), len(known) - 1)]
    assert np.array_equal(known[found], codes), "not a permutation of the stratum"
    return found


def released_tables(table, replicates, rate, source):
    """The swapped values that the records of ``table`` have after the swap, a row for each copy of the stratum."""
    strata = scattered([len(table)] * replicates)
    rows = members(strata, len(table))
    swapped = np.empty(len(strata.ids), dtype=np.uint8)
    swapped[rows] = [s for _, s in table]
    return draw(strata, strata.sizes(), rate, source).apply(swapped)[rows]


def count_cell(table, released, cell):
    """How many records of one cell each copy has."""
    held = np.array([h for h, _ in table])
    return np.count_nonzero((released == cell[1]) & (held == cell[0]), axis=1)


def oracle_law(size, rate):
    """P(sigma) for each of ``permutations(size)``."""
    by_moved = permutation_law(size, rate)
    return [by_moved[k] for k in permutations(size)[1]]


def assert_swaps_within_strata(strata, moves):
    """What is true of every draw, whatever the rate."""
    receiver, giver = moves.receiver.astype(np.int64), moves.giver.astype(np.int64)
    assert len(np.unique(receiver)) == len(receiver)
    assert np.array_equal(np.sort(receiver), np.sort(giver))
    assert not np.any(receiver == giver)
    assert np.array_equal(strata.ids[receiver], strata.ids[giver])
    assert not np.any(np.bincount(strata.ids[receiver], minlength=strata.count) == 1)


# -- the law -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_permutation_of_a_stratum_has_its_probability(size, rate):
    """80,000 strata in one file. False alarm below 1e-9."""
    strata = scattered([size] * 80_000)
    moves = draw(strata, strata.sizes(), rate, SeededSource(51))
    observed = np.bincount(drawn_permutations(strata, moves, size), minlength=math.factorial(size))
    assert p_value(observed, oracle_law(size, rate)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_every_permutation_of_a_stratum_has_its_probability_in_ten_million_draws(size, rate):
    """Fifty files of 200,000 strata. False alarm below 1e-9."""
    strata, source = scattered([size] * 200_000), SeededSource(52)
    sizes, observed = strata.sizes(), np.zeros(math.factorial(size), dtype=np.int64)
    for _ in range(50):
        moves = draw(strata, sizes, rate, source)
        observed += np.bincount(drawn_permutations(strata, moves, size), minlength=math.factorial(size))
    assert p_value(observed, oracle_law(size, rate)) > FALSE_ALARM


@pytest.mark.parametrize(
    ("rate", "many"),
    [
        (Fraction(1, 2), 20_000),
        pytest.param(Fraction(1, 20), 80_000, marks=pytest.mark.slow),
        pytest.param(Fraction(9, 10), 80_000, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_strata_of_mixed_sizes_each_follow_their_own_law(rate, many):
    """So many strata of each size from one to five in one file. False alarm below 1e-9."""
    strata = scattered([1, 2, 3, 4, 5] * many)
    moves = draw(strata, strata.sizes(), rate, SeededSource(53))
    assert_swaps_within_strata(strata, moves)
    for size in (2, 3, 4, 5):
        observed = np.bincount(drawn_permutations(strata, moves, size), minlength=math.factorial(size))
        assert p_value(observed, oracle_law(size, rate)) > FALSE_ALARM


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(9, 10)], ids=str)
def test_permutations_of_two_strata_are_independent(rate):
    """Joint laws of strata that are near and far, 100,000 pairs of three records. False alarm below 1e-9 each."""
    strata = scattered([3] * 200_000)
    drawn = drawn_permutations(strata, draw(strata, strata.sizes(), rate, SeededSource(54)), 3)
    law = np.array([float(chance) for chance in oracle_law(3, rate)])
    for apart in (1, 2, 1000, 100_000):
        pairs = drawn.reshape(-1, 2, apart)
        observed = np.bincount((pairs[:, 0, :] * 6 + pairs[:, 1, :]).ravel(), minlength=36)
        assert p_value(observed, np.outer(law, law).ravel()) > FALSE_ALARM


TABLE = ((0, 0), (0, 0), (0, 1), (1, 0), (1, 1), (1, 1))


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_every_table_is_released_with_its_probability(rate):
    """50,000 copies of one stratum of six records, each after its swap. False alarm below 1e-9."""
    released = released_tables(TABLE, 50_000, rate, SeededSource(55))
    # Margins being fixed, the cell (1, 1) says which table it is.
    law = released_law(TABLE, rate)
    assert len({z.count((1, 1)) for z in law}) == len(law) == len(outcome_counts(TABLE)) == 4
    chances = {z.count((1, 1)): chance for z, chance in law.items()}
    observed = np.bincount(count_cell(TABLE, released, (1, 1)), minlength=4)
    assert p_value(observed, [chances[count] for count in range(4)]) > FALSE_ALARM


# -- what moves ----------------------------------------------------------------------------------------------


def moved_variance(size, rate):
    """Exact variance of the number of records that move in a stratum."""
    law, moved = oracle_law(size, rate), permutations(size)[1].tolist()
    mean = sum(chance * k for chance, k in zip(law, moved, strict=True))
    return sum(chance * (k - mean) ** 2 for chance, k in zip(law, moved, strict=True))


@pytest.mark.parametrize(
    ("size", "rate"),
    [
        (2, Fraction(1, 2)),
        (5, Fraction(1, 20)),
        pytest.param(3, Fraction(1, 2), marks=pytest.mark.slow),
        pytest.param(5, Fraction(1, 3), marks=pytest.mark.slow),
        pytest.param(6, Fraction(1, 10), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_share_that_moves_is_the_corrected_formula_not_the_printed_one(size, rate):
    """400,000 strata, within seven standard deviations: false alarm below 1e-9.

    Power: the printed formula lies 21 standard deviations away or more; a kernel that followed it would pass with
    probability below 1e-9.
    """
    strata = scattered([size] * 400_000)
    moves = draw(strata, strata.sizes(), rate, SeededSource(56))
    deviation = math.sqrt(moved_variance(size, rate) / 400_000) / size
    share = len(moves.receiver) / len(strata.ids)
    corrected, printed = moved_probability(size, rate), moved_probability_as_printed(size, rate)
    assert corrected == pytest.approx(float(moved_probability_by_enumeration(size, rate)))
    assert abs(corrected - printed) > 3 * FAR * deviation
    assert abs(share - corrected) < FAR * deviation
    assert abs(share - printed) > FAR * deviation


def test_a_stratum_of_one_never_moves():
    strata = scattered([1] * 1000 + [4] * 1000)
    alone = strata.sizes()[strata.ids] == 1
    for rate in (*RATES, Fraction(1)):
        moves = draw(strata, strata.sizes(), rate, SeededSource(57))
        assert len(moves.receiver) > 0
        assert not alone[moves.receiver].any()


def test_at_rate_zero_nobody_moves():
    strata = scattered([1, 2, 3, 50])
    moves = draw(strata, strata.sizes(), Fraction(0), SeededSource(58))
    assert len(moves.receiver) == len(moves.giver) == 0
    assert np.array_equal(moves.apply(strata.ids), strata.ids)


def test_at_rate_one_every_stratum_of_two_or_more_is_deranged():
    """And all derangements of five are equally likely, in 50,000 strata. False alarm below 1e-9."""
    strata = scattered([1, 2, 3, 5] * 50_000)
    moves = draw(strata, strata.sizes(), Fraction(1), SeededSource(59))
    assert_swaps_within_strata(strata, moves)
    assert np.array_equal(np.sort(moves.receiver), np.flatnonzero(strata.sizes()[strata.ids] > 1))
    observed = np.bincount(drawn_permutations(strata, moves, 5), minlength=120)
    assert p_value(observed, oracle_law(5, Fraction(1))) > FALSE_ALARM


def test_a_file_without_records_has_no_moves():
    strata = Groups(np.empty(0, dtype=np.uint32), 0)
    for rate in (Fraction(0), *RATES, Fraction(1)):
        assert len(draw(strata, strata.sizes(), rate, SeededSource(60)).receiver) == 0


# -- what every swap keeps -----------------------------------------------------------------------------------

FILES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=120)
SOME_RATES = st.fractions(0, 1, max_denominator=1000) | st.sampled_from([Fraction(0), Fraction(1), *RATES])


def tally(*columns):
    """A contingency table, as a sorted list of its records."""
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(records=FILES, rate=SOME_RATES, key=st.integers(0, 2**64))
def test_margins_survive_any_swap(records, rate, key):
    match, held, swapped = (np.array(column, dtype=np.uint16) for column in zip(*records, strict=True))
    names, ids = np.unique(match, return_inverse=True)
    strata = Groups(ids.astype(np.uint32), len(names))
    before = tally(match, held), tally(match, swapped)
    moves = draw(strata, strata.sizes(), rate, SeededSource(key))
    assert_swaps_within_strata(strata, moves)
    after = moves.apply(swapped)
    assert after.dtype == swapped.dtype
    assert (tally(match, held), tally(match, after)) == before
    assert tally(match, swapped) == before[1], "the column given was changed in place"
    # The other way round: moving the held variables instead leaves both margins alone too.
    assert (tally(match, moves.apply(held)), tally(match, swapped)) == before


def test_a_record_receives_the_variables_of_its_giver_and_all_columns_move_together():
    strata = scattered([4] * 1000)
    moves = draw(strata, strata.sizes(), Fraction(1, 2), SeededSource(61))
    own = np.arange(4000, dtype=np.uint32)
    sigma = giver_of_each(moves, 4000)
    assert np.array_equal(moves.apply(own), sigma)
    assert np.array_equal(moves.apply((own % 251).astype(np.uint8)), sigma % 251)


# -- moments -------------------------------------------------------------------------------------------------

SEVEN = ((0, 0), (0, 0), (0, 0), (0, 1), (1, 1), (1, 2), (1, 2))


def predicted(table, rate, cell):
    held, swapped = (list(column) for column in zip(*table, strict=True))
    mean, variance = cell_moments(
        stratum_constants([len(table)], rate),
        len(table),
        held.count(cell[0]),
        swapped.count(cell[1]),
        list(table).count(cell),
    )
    return float(mean), float(variance)


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_mean_and_variance_of_swapped_cells_are_as_predicted(rate):
    """50,000 strata of seven, within seven standard deviations of exact ones: false alarm below 1e-9 each."""
    law = released_law(SEVEN, rate)
    released = released_tables(SEVEN, 50_000, rate, SeededSource(62))
    for cell in ((0, 0), (0, 1), (1, 0), (1, 2)):
        counts = count_cell(SEVEN, released, cell)
        mean, variance = predicted(SEVEN, rate, cell)
        fourth = float(sum(chance * (z.count(cell) - Fraction(mean)) ** 4 for z, chance in law.items()))
        assert abs(counts.mean() - mean) < FAR * math.sqrt(variance / 50_000)
        spread = np.mean((counts - mean) ** 2)
        assert abs(spread - variance) < FAR * math.sqrt((fourth - variance**2) / 50_000)


def test_mean_and_variance_are_as_predicted_in_strata_too_large_to_enumerate():
    """20,000 strata of a hundred, within seven standard deviations: false alarm below 1e-9 each.

    Counts of dozens of moves are close to normal, so the variance's own standard deviation is taken from the sample.
    """
    table = ((0, 0),) * 10 + ((0, 1),) * 20 + ((1, 0),) * 10 + ((1, 1),) * 60
    for rate in (Fraction(1, 20), Fraction(1, 2)):
        counts = count_cell(table, released_tables(table, 20_000, rate, SeededSource(63)), (0, 0))
        mean, variance = predicted(table, rate, (0, 0))
        assert abs(counts.mean() - mean) < FAR * math.sqrt(variance / 20_000)
        squares = (counts - mean) ** 2
        assert abs(squares.mean() - variance) < FAR * squares.std() / math.sqrt(20_000)


# -- extremes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rate",
    [Fraction(1, 20), *(pytest.param(one, marks=pytest.mark.slow) for one in (Fraction(1, 1000), RATES[-1]))],
    ids=str,
)
def test_a_stratum_of_a_million_is_swapped(rate):
    """The number that moves is binomial: within seven standard deviations, false alarm below 1e-9."""
    strata = Groups(np.zeros(1_000_000, dtype=np.uint32), 1)
    moves = draw(strata, strata.sizes(), rate, SeededSource(64))
    assert_swaps_within_strata(strata, moves)
    deviation = math.sqrt(1_000_000 * rate * (1 - rate))
    assert abs(len(moves.receiver) - 1_000_000 * rate) < FAR * deviation


@pytest.mark.parametrize(
    "rate",
    [Fraction(1, 20), *(pytest.param(one, marks=pytest.mark.slow) for one in (Fraction(1, 2), Fraction(1)))],
    ids=str,
)
def test_a_million_strata_of_one_or_two_are_swapped(rate):
    """Pairs that exchange are binomial: within seven standard deviations, false alarm below 1e-9."""
    strata = scattered([1, 2] * 500_000)
    moves = draw(strata, strata.sizes(), rate, SeededSource(65))
    assert_swaps_within_strata(strata, moves)
    both = rate**2 / (rate**2 + (1 - rate) ** 2)
    assert abs(len(moves.receiver) / 2 - 500_000 * both) <= FAR * math.sqrt(500_000 * both * (1 - both))


def test_a_million_strata_of_one_are_left_alone():
    strata = scattered([1] * 1_000_000)
    assert len(draw(strata, strata.sizes(), Fraction(1, 2), SeededSource(66)).receiver) == 0


# -- randomness ----------------------------------------------------------------------------------------------


def test_moves_say_whether_they_may_be_released():
    strata = scattered([5] * 20)
    assert draw(strata, strata.sizes(), Fraction(1, 2), SeededSource(67)).for_release is False
    assert draw(strata, strata.sizes(), Fraction(1, 2), SystemSource()).for_release is True


def test_a_seed_repeats_a_draw_and_another_seed_gives_another():
    strata = scattered([5] * 200)
    first, again, other = (draw(strata, strata.sizes(), Fraction(1, 2), SeededSource(key)) for key in (68, 68, 69))
    assert np.array_equal(first.receiver, again.receiver)
    assert np.array_equal(first.giver, again.giver)
    assert not np.array_equal(giver_of_each(first, 1000), giver_of_each(other, 1000))
