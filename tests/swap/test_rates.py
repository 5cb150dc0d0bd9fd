"""Rates by rule: the theorem against every file of small universes, its limits, and the permutation that is drawn."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from rates_oracle import (
    adding,
    bound,
    dropping,
    keeping,
    permutation_chances,
    reselecting,
    worst_ratio,
)
from swap_oracle import partitions, permutations
from test_kernel import assert_swaps_within_strata, drawn_permutations, members, scattered

from chi_square import FALSE_ALARM, p_value
from stirred.noise import SeededSource
from stirred.swap.data.counting import RatesByStratum, RecordRates
from stirred.swap.law.permutation import draw
from stirred.swap.law.theorem import epsilon, epsilon_of_rates, kept_share

RATES = [Fraction(text) for text in ("0.001", "0.02", "0.05", "0.3", "0.5", "0.9", "0.999")]


def by_held(rates):
    """Rates by the held value of a record."""
    return lambda file: [rates[h] for h, _ in file]


def by_sharing(unique, others):
    """Rates by how many records share the held value."""

    def rates_of(file):
        counts = Counter(h for h, _ in file)
        return [unique if counts[h] == 1 else others for h, _ in file]

    return rates_of


def rates_of_totals(held_totals, rates_of):
    return rates_of([(h, 0) for h, total in enumerate(held_totals) for _ in range(total)])


def assert_no_universe_of(n, choices, seed):
    generator = np.random.default_rng(seed)
    met = 0
    for held in partitions(n):
        for swapped in partitions(n):
            if len(held) < 2 or len(swapped) < 2:
                continue
            tried = [by_held([RATES[k] for k in generator.integers(len(RATES), size=n)]) for _ in range(choices)]
            tried += [by_sharing(*(RATES[k] for k in generator.integers(len(RATES), size=2))) for _ in range(choices)]
            for rates_of in tried:
                rates = rates_of_totals(held, rates_of)
                allowed = epsilon_of_rates([(rate, n) for rate in rates])
                assert allowed == pytest.approx(bound(n, rates), rel=1e-12)
                assert worst_ratio(held, swapped, rates_of) <= allowed * (1 + 1e-12)
                met += 1
    assert met > 0


# -- the theorem ---------------------------------------------------------------------------------------------


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_no_small_universe_loses_more_than_the_theorem_says(n):
    assert_no_universe_of(n, {2: 40, 3: 20, 4: 4, 5: 1}[n], 100 + n)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "choices"), [(4, 40), (5, 8), (6, 1)])
def test_no_small_universe_loses_more_than_the_theorem_says_many_times(n, choices):
    assert_no_universe_of(n, choices, 200 + n)


def test_the_bound_is_attained():
    rates = [Fraction("0.999"), Fraction("0.999"), Fraction(1, 2)]
    assert worst_ratio((1, 1, 1), (1, 1, 1), by_held(rates)) == pytest.approx(bound(3, rates), rel=1e-12)


def test_equal_rates_give_theorem_3_2_4_back():
    for rate in RATES:
        for b in (2, 3, 10, 1000):
            assert epsilon_of_rates([(rate, b), (rate, 2)]) == epsilon(b, rate)


def test_epsilon_is_the_largest_over_strata_each_with_its_own_rates():
    low, half, high = Fraction("0.02"), Fraction(1, 2), Fraction("0.99")
    assert epsilon_of_rates([(half, 1000), (low, 10)]) == pytest.approx(math.log(1001), rel=1e-14)
    assert epsilon_of_rates([(half, 100), (low, 10)]) == pytest.approx(math.log(11 * 49), rel=1e-14)
    assert epsilon_of_rates([(half, 2), (high, 2)]) == pytest.approx(math.log(99), rel=1e-14)
    assert epsilon_of_rates([(half, 2), (low, 0)]) == pytest.approx(math.log(3), rel=1e-14)
    assert epsilon_of_rates([]) == 0.0


def test_epsilon_by_rule_is_that_of_the_lowest_and_highest_rate_of_each_stratum():
    """The theorem takes the lowest and the highest odds of a stratum; the largest over rules is the same."""
    generator = np.random.default_rng(5)
    for _ in range(200):
        counts = generator.integers(0, 4, size=(4, 3)) * generator.integers(0, 2, size=(4, 3))
        counts[:, 0] += 2
        rates = tuple(RATES[k] for k in generator.integers(len(RATES), size=3))
        among = generator.integers(0, 2, size=4).astype(bool)
        by_stratum = [
            bound(int(row.sum()), [rate for rate, many in zip(rates, row, strict=True) if many])
            for row in counts[among]
        ]
        largest = RatesByStratum(rates, counts).largest(among)
        found = epsilon_of_rates(zip(rates, largest, strict=True))
        assert found == pytest.approx(max(by_stratum, default=0.0), rel=1e-12)


def test_no_group_of_rates_between_two_has_a_smaller_chance_of_not_exactly_one():
    grid = [Fraction(k, 100) for k in (1, 10, 30, 50, 70, 95, 99)]
    for low, high in itertools.combinations(grid, 2):
        between = [rate for rate in grid if low <= rate <= high]
        for size in (2, 3, 4):
            for rates in itertools.combinations_with_replacement(between, size):
                none = math.prod((1 - rate for rate in rates), start=Fraction(1))
                one = none * sum(rate / (1 - rate) for rate in rates)
                assert 1 - one >= kept_share(low, high)


def test_two_exposed_records_are_told_apart_with_at_most_one_minus_the_product_of_their_rates():
    """Two files in which records 0 and 1 have each other's values; no two values are alike. Rates of both up to 1/2."""
    generator = np.random.default_rng(9)
    for n in (2, 3, 4, 5):
        outputs = [tuple(map(int, sigma)) for sigma in permutations(n)[0]]
        for _ in range(15):
            rates = [RATES[k] for k in [*generator.integers(0, 5, 2), *generator.integers(0, len(RATES), n - 2)]]
            law = dict(zip(outputs, permutation_chances(reselecting(rates), n), strict=True))
            other = {tuple({0: 1, 1: 0}.get(value, value) for value in output): law[output] for output in outputs}
            apart = sum(max(law[output] - other[output], 0) for output in outputs)
            assert apart <= 1 - rates[0] * rates[1]


# -- what would break it: each exceeds the bound where the algorithm does not ---------------------------------


@pytest.mark.parametrize(
    ("mutant", "rates", "excess"),
    [
        (dropping, ("0.02", "0.02", "0.98", "0.98"), 1.125),
        (keeping, ("0.8", "0.8"), 1.146),
        (adding, ("0.001",) * 4, 1.32),
    ],
    ids=["the lone record is dropped", "the lone record is kept", "the lone record gets a partner"],
)
def test_selecting_the_whole_stratum_afresh_matters(mutant, rates, excess):
    exact = [Fraction(text) for text in rates]
    ones = (1,) * len(exact)
    allowed = bound(len(exact), exact)
    assert worst_ratio(ones, ones, by_held(exact), mutant) / allowed == pytest.approx(excess, rel=2e-3)
    assert worst_ratio(ones, ones, by_held(exact), reselecting) <= allowed * (1 + 1e-12)


def test_rates_that_look_at_held_and_swap_values_exceed_the_bound():
    def rates_of(file):
        counts = Counter(file)
        return [Fraction(1, 2) if counts[record] == 1 else Fraction(1, 50) for record in file]

    allowed = bound(4, [Fraction(1, 50), Fraction(1, 2)])
    assert worst_ratio((2, 2), (2, 2), rates_of) / allowed == pytest.approx(1.331, rel=1e-3)


# -- the permutation that is drawn ---------------------------------------------------------------------------


def rated(strata, size, rules):
    """Record rates such that the k-th record of every stratum of ``size``, in the order of the file, has rule k's."""
    rule = np.zeros(len(strata.ids), dtype=np.uint8)
    rule[members(strata, size)] = rules
    return RecordRates((Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)), rule)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rules", [(0, 1), (1, 2), (0, 0, 1), (0, 1, 2), (0, 0, 1, 1), (2, 0, 1, 2), (0, 0, 0, 1, 2)])
def test_every_permutation_of_a_stratum_has_its_probability(rules):
    """200,000 strata in one file. False alarm below 1e-9."""
    size = len(rules)
    strata = scattered([size] * 200_000)
    rates = rated(strata, size, rules)
    moves = draw(strata, strata.sizes(), rates, SeededSource(71))
    assert_swaps_within_strata(strata, moves)
    observed = np.bincount(drawn_permutations(strata, moves, size), minlength=math.factorial(size))
    law = permutation_chances(reselecting([rates.rates[k] for k in rules]), size)
    assert p_value(observed, law) > FALSE_ALARM


def test_strata_of_mixed_sizes_each_follow_their_own_law():
    """60,000 strata of each size from one to four. False alarm below 1e-9."""
    strata = scattered([1, 2, 3, 4] * 60_000)
    rule = np.zeros(len(strata.ids), dtype=np.uint8)
    for size in (1, 2, 3, 4):
        rule[members(strata, size)] = np.arange(size) % 3
    rates = RecordRates((Fraction(1, 50), Fraction(1, 2), Fraction(9, 10)), rule)
    moves = draw(strata, strata.sizes(), rates, SeededSource(72))
    assert_swaps_within_strata(strata, moves)
    for size in (2, 3, 4):
        observed = np.bincount(drawn_permutations(strata, moves, size), minlength=math.factorial(size))
        law = permutation_chances(reselecting([rates.rates[k % 3] for k in range(size)]), size)
        assert p_value(observed, law) > FALSE_ALARM


def test_one_class_has_the_law_of_one_rate():
    """False alarm below 1e-9."""
    strata = scattered([3] * 200_000)
    rates = RecordRates((Fraction(1, 2),), np.zeros(600_000, dtype=np.uint8))
    drawn = drawn_permutations(strata, draw(strata, strata.sizes(), rates, SeededSource(73)), 3)
    law = permutation_chances(reselecting([Fraction(1, 2)] * 3), 3)
    assert p_value(np.bincount(drawn, minlength=6), law) > FALSE_ALARM
