"""The laws and the p-values that audits of swapping programs rest on, against enumeration and exact sums."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stirred.lab.audit import p_values as tails
from stirred.lab.audit.laws import (
    all_derangements,
    chance_of_the_same,
    log_most_likely,
    mean_and_variance_selected,
    number_of_exchanges,
    number_selected,
)
from stirred.lab.definitions.swap_practices import deranged, reselected

RATES = [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2), Fraction(19, 20)]


def law_of_permutations(size, rate):
    return deranged(reselected([rate] * size))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_numbers_selected_are_those_of_the_enumerated_law(size, rate):
    law = Counter()
    for chosen, chance in reselected([rate] * size).items():
        law[len(chosen)] += chance
    expected = [float(law[k]) for k in range(size + 1)]
    assert number_selected(size, float(rate)) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    mean = sum(k * chance for k, chance in law.items())
    variance = sum(k**2 * chance for k, chance in law.items()) - mean**2
    found = mean_and_variance_selected(np.array([size, 1]), float(rate))
    assert found[0] == pytest.approx([float(mean), 0], rel=1e-9)
    assert found[1] == pytest.approx([float(variance), 0], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_two_strata_move_alike_no_more_often_than_stated(size, rate):
    law = law_of_permutations(size, rate)
    still = tuple(range(size))
    exact = float(sum(chance**2 for order, chance in law.items() if order != still))
    assert exact <= chance_of_the_same(size, float(rate)) <= 3.1 * exact
    likeliest = np.log(float(max(law.values())))
    assert likeliest - 1e-9 <= log_most_likely(size, float(rate)) <= min(0, likeliest + np.log(3))


@pytest.mark.parametrize("k", [4, 5, 6, 7, 8])
def test_numbers_of_exchanges_are_those_of_all_derangements(k):
    found = Counter(min(3, sum(one[one[i]] == i for i in range(k)) // 2) for one in all_derangements(k))
    expected = [found[j] / len(all_derangements(k)) for j in range(4)]
    assert number_of_exchanges(k) == pytest.approx(expected, abs=1e-12)


def test_numbers_of_exchanges_go_over_into_a_poisson_law():
    assert number_of_exchanges(60) == pytest.approx(number_of_exchanges(61), abs=1e-14)


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_the_p_value_of_a_total_is_above_its_exact_tail_and_not_far(rate):
    law = np.array([1.0])
    sizes, times = np.array([1, 2, 5, 20, 40]), np.array([7, 10, 8, 10, 3])
    for size, many in zip(sizes[1:], times[1:], strict=True):
        for _ in range(many):
            law = np.convolve(law, number_selected(int(size), rate))
    above, below = np.cumsum(law[::-1])[::-1], np.cumsum(law)
    for total in np.flatnonzero(law > 1e-40):
        p_value = tails.of_number_selected(int(total), sizes, times, rate)
        tail = min(above[total], below[total])
        assert min(1.0, tail) <= p_value
        if 1e-35 < tail < 1e-3:
            assert p_value < 50 * tail


@pytest.mark.parametrize(("count", "chance"), [(50, 0.02), (1000, 0.5), (1000, 0.001)])
def test_bounds_are_above_binomial_tails(count, chance):
    mean = count * chance
    for seen in range(int(mean) + 1, int(mean) + 60):
        tail = stats.binom.sf(seen - 1, count, chance)
        assert tail <= tails.of_rare_coincidences(seen, mean)
        assert tail <= tails.of_bounded_sum(seen - mean, mean * (1 - chance))


def test_p_values_of_counts_are_no_smaller_than_stated_where_cells_are_small():
    # Cells of 100 and one of 9,900: the exact tail of the largest of them, as a binomial, is never above.
    for seen in range(140, 200, 5):
        p_value, degrees = tails.of_counts([([seen, 10_000 - seen], [100.0, 9_900.0])])
        assert degrees == 1
        assert stats.binom.sf(seen - 1, 10_000, 0.01) <= p_value


def test_more_extreme_counts_never_have_larger_p_values():
    p_values = [tails.of_counts([([100 + more, 9_900 - more], [100.0, 9_900.0])])[0] for more in range(0, 400, 5)]
    assert p_values == sorted(p_values, reverse=True)
    assert p_values[-1] < 1e-100


def test_cells_are_put_together_until_they_expect_enough():
    assert tails.of_counts([([1, 2, 3], [2.0, 2.0, 2.0])]) == (1.0, 0)
    assert tails.of_counts([([60, 60, 60, 60], [60.0] * 4)])[1] == 1
    assert tails.of_counts([([500, 500, 1], [500.5, 500.5, 0.0])])[0] == 0.0


def test_sums_that_are_few_say_nothing_and_many_say_something():
    assert tails.of_independent_sums(np.ones(20)) == 1.0
    assert tails.of_independent_sums(np.array([1.0] * 100 + [1000.0])) == 1.0
    assert tails.of_independent_sums(np.ones(100)) < 1e-12
    assert tails.of_independent_sums(np.array([1.0, -1.0] * 100)) == 1.0


def test_the_smallest_of_several_p_values_is_paid_for():
    assert tails.smallest_of([0.5, 0.01, 0.9]) == pytest.approx(0.03)
    assert tails.smallest_of([0.5, 0.9]) == 1.0
