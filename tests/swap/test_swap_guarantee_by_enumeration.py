"""The swapping guarantee against brute force: every permutation of small strata, in exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from swap_oracle import (
    PUBLISHED,
    derangements_by_counting,
    distance,
    exact_loss,
    exact_loss_all_distinct,
    outcome_counts,
    partitions,
    permutation_law,
    released_law,
    rounds_to,
    universe,
)

from stirred.swap.law.theorem import epsilon, gap, lower_bound

RATES = [Fraction(text) for text in ("0.01", "0.05", "0.25", "0.5", "0.6", "0.7", "0.75", "0.9", "0.99")]


def test_the_oracle_draws_permutations_as_algorithm_3_2_1_does():
    p = Fraction(1, 20)
    kept = 1 - 3 * p * (1 - p) ** 2
    assert permutation_law(3, p) == (
        (1 - p) ** 3 / kept,
        0,
        p**2 * (1 - p) / kept,
        p**3 / (2 * kept),
    )


@pytest.mark.parametrize("n", range(2, 6))
def test_from_every_dataset_exactly_its_universe_can_be_released(n):
    for held in partitions(n):
        for swapped in partitions(n):
            tables = universe(held, swapped)
            law = released_law(tables[0], Fraction(3, 10))
            assert sorted(law) == tables
            assert sum(law.values()) == 1


@pytest.mark.parametrize("n", range(2, 6))
def test_no_two_datasets_of_a_universe_are_at_distance_one(n):
    for held in partitions(n):
        for swapped in partitions(n):
            tables = universe(held, swapped)
            distances = {distance(x, other) for x in tables for other in tables if x != other}
            assert not distances or min(distances) == 2


def test_lemma_b_3_4_as_many_records_must_move_as_differ_and_no_more():
    for x in universe((2, 1, 1), (2, 2)):
        for other, counts in outcome_counts(x).items():
            fewest = next(k for k, count in enumerate(counts) if count)
            assert fewest == distance(x, other)


def test_exact_losses_match_the_notes():
    for row in PUBLISHED["exact_loss"]["rows"]:
        found = exact_loss(row["held_totals"], row["swapped_totals"], Fraction(row["rate"]))
        assert rounds_to(found, row["loss"]), (row, found)
    for row in PUBLISHED["exact_loss_all_distinct"]["rows"]:
        found = exact_loss_all_distinct(row["size"], Fraction(row["rate"]))
        assert rounds_to(found, row["loss"]), (row, found)


@pytest.mark.parametrize("n", range(2, 5))
def test_the_two_ways_to_an_exact_loss_agree(n):
    for rate in RATES:
        assert exact_loss_all_distinct(n, rate) == pytest.approx(exact_loss((1,) * n, (1,) * n, rate), rel=1e-13)


@pytest.mark.parametrize("n", range(2, 6))
def test_no_small_universe_loses_more_than_theorem_3_2_4_says(n):
    assert_theorem_holds(n, RATES if n < 5 else [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])


@pytest.mark.slow
def test_no_universe_of_six_records_loses_more_than_theorem_3_2_4_says():
    assert_theorem_holds(5, RATES)
    assert_theorem_holds(6, [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)], largest_universe=100)


def assert_theorem_holds(n: int, some_rates: list[Fraction], largest_universe: int = 120) -> None:
    checked = 0
    for held in partitions(n):
        for swapped in partitions(n):
            if len(universe(held, swapped)) > largest_universe:
                continue
            identical = len(held) == len(swapped) == 1
            for rate in some_rates:
                loss = exact_loss(held, swapped, rate)
                assert loss <= epsilon(0 if identical else n, rate) * (1 + 1e-12), (held, swapped, rate)
                checked += 1
    assert checked >= 4 * len(some_rates)


def test_uniform_permutations_exceed_the_epsilon_that_derangements_keep():
    """The slides permute the selected records in one half and derange them in the other."""
    exceeded = {}
    for n, text in itertools.product(range(2, 6), ("0.05", "0.2", "0.5", "0.7", "0.9")):
        rate = Fraction(text)
        assert exact_loss_all_distinct(n, rate) <= epsilon(n, rate) * (1 + 1e-12)
        # Whoever moves is selected, and of those who stay any number may be.
        law = {
            moved: sum(
                math.comb(n - moved, k - moved) * rate**k * (1 - rate) ** (n - k) / math.factorial(k)
                for k in range(moved, n + 1)
            )
            for moved in range(n + 1)
            if moved != 1
        }
        assert sum(math.comb(n, k) * derangements_by_counting(k) * chance for k, chance in law.items()) == 1
        tables = list(itertools.permutations(range(n)))
        logs = {x: math.log(law[sum(a != b for a, b in enumerate(x))]) for x in tables}
        found = max(
            abs(logs[z] - logs[tuple(z[at] for at in x)]) / sum(a != b for a, b in enumerate(x))
            for x in tables[1:]
            for z in tables
        )
        if found > epsilon(n, rate):
            exceeded[n, text] = round(found, 4)
    assert exceeded == {(4, "0.7"): 0.946, (5, "0.7"): 1.0963}


@pytest.mark.parametrize("n", range(2, 6))
def test_universes_of_a_single_table_lose_nothing(n):
    for margin in partitions(n):
        assert exact_loss((n,), margin, Fraction(1, 20)) == exact_loss(margin, (n,), Fraction(1, 20)) == 0.0


@pytest.mark.parametrize("n", range(4, 8))
def test_all_distinct_strata_attain_the_lower_bound(n):
    for rate in RATES:
        assert exact_loss_all_distinct(n, rate) == pytest.approx(lower_bound(n, rate), rel=1e-12)


def test_four_categories_attain_the_lower_bound_when_b_is_even():
    for rate in (Fraction(1, 100), Fraction(1, 4), Fraction(1, 2)):
        assert exact_loss((2, 2, 1, 1), (2, 2, 1, 1), rate) == pytest.approx(lower_bound(6, rate), rel=1e-12)


def test_four_categories_do_not_attain_the_lower_bound_when_b_is_five():
    rate = Fraction(1, 20)
    margins = [margin for margin in partitions(5) if len(margin) <= 4]
    worst = max(exact_loss(held, swapped, rate) for held in margins for swapped in margins)
    assert worst < lower_bound(5, rate) - 0.3
    assert epsilon(5, rate) - worst > gap(5, rate) + 0.1


@pytest.mark.slow
def test_five_categories_attain_the_lower_bound_when_b_is_seven():
    margin = (2, 2, 1, 1, 1)
    assert exact_loss(margin, margin, Fraction(1, 20)) == pytest.approx(lower_bound(7, Fraction(1, 20)), rel=1e-12)


def test_no_universe_of_three_records_comes_as_close_as_f_of_three():
    for rate in (Fraction(1, 100), Fraction(1, 20), Fraction(3, 10)):
        worst = max(exact_loss(held, swapped, rate) for held in partitions(3) for swapped in partitions(3))
        assert worst == pytest.approx(lower_bound(3, rate), rel=1e-12)
        shortfall = epsilon(3, rate) - worst
        assert shortfall > float(PUBLISHED["gap"]["three"]["f"]) + 0.1
        assert shortfall == pytest.approx(gap(3, rate), rel=1e-12)


def test_two_records_at_five_per_cent_have_a_likelihood_ratio_of_361():
    rate = Fraction(1, 20)
    kept, exchanged = ((0, 0), (1, 1)), ((0, 1), (1, 0))
    ratio = released_law(kept, rate)[kept] / released_law(exchanged, rate)[kept]
    promised = epsilon(2, rate)
    assert ratio == 361
    assert distance(kept, exchanged) == 2
    assert rounds_to(promised, "4.04")
    # Reading epsilon as the log odds between the nearest datasets would be wrong: they are two records apart.
    assert math.exp(promised) == pytest.approx(57)
    assert math.exp(promised) < ratio <= math.exp(2 * promised)
