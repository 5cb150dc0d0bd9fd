"""One run with many secret coins: the bound is the published one, valid, and near the truth for a real swap."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stirred import swap
from stirred.errors import StirredError
from stirred.lab.audit.lower_bounds import one_run_bound, one_run_p_value
from stirred.lab.definitions.swap_practices import released_law
from stirred.noise import SeededSource, randomised_response


@pytest.mark.parametrize(
    ("coins", "guessed", "right", "delta", "published"),
    [(1_000, 100, 75, 1e-4, 0.673), (100_000, 1_510, 1_439, 1e-5, 2.675)],
)
def test_bounds_are_those_of_the_paper(coins, guessed, right, delta, published):
    """Steinke, Nasr and Jagielski 2023, Appendix D and Section 7, where digits are rounded or cut."""
    found = one_run_bound(right, guessed, delta=delta, coins=coins)
    assert found.epsilon == pytest.approx(published, abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("coins", [1, 7, 60])
def test_a_bound_exceeds_the_truth_no_more_often_than_stated(epsilon, coins):
    """Randomised response is the worst case; the probability is summed over all numbers of right guesses."""
    success = 1 / (1 + math.exp(-epsilon))
    law = stats.binom.pmf(np.arange(coins + 1), coins, success)
    for confidence in (0.5, 0.95, 1 - 1e-6):
        bounds = [one_run_bound(right, coins, confidence=confidence).epsilon for right in range(coins + 1)]
        assert law[np.array(bounds) > epsilon + 1e-12].sum() <= (1 - confidence) * (1 + 1e-9)


def tails_at_delta(coins, epsilon, delta):
    """Probabilities of at least v right guesses, v = 0, 1, ..., for mechanisms that satisfy (epsilon, delta)."""
    success = 1 / (1 + math.exp(-epsilon))
    v = np.arange(coins + 1)
    tail = stats.binom.sf(v - 1, coins, success)
    yield delta + (1 - delta) * tail  # all coins are told with probability delta, else none
    yield stats.binom.sf(v - 1, coins, delta + (1 - delta) * success)  # each of them is
    for told in range(1, coins):  # some of them are told together, with a probability that each of them adds up to
        yield delta * stats.binom.sf(v - 1 - told, coins - told, success) + (1 - delta) * tail


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.5])
@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.1])
@pytest.mark.parametrize("coins", [1, 4, 25])
def test_p_values_at_a_delta_hold_for_mechanisms_that_use_it_up(coins, epsilon, delta):
    allowed = np.array([one_run_p_value(right, coins, epsilon, delta=delta) for right in range(coins + 1)])
    for tail in tails_at_delta(coins, epsilon, delta):
        assert (tail <= allowed + 1e-12).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
@pytest.mark.parametrize("distance", [1, 2])
def test_bounds_and_p_values_decide_alike(delta, distance):
    found = one_run_bound(170, 200, delta=delta, distance=distance, coins=260)
    for factor, rare in ((0.999, True), (1.001, False)):
        p_value = one_run_p_value(170, 200, factor * found.epsilon, delta=delta, distance=distance, coins=260)
        assert (p_value <= 0.05) is rare


def test_p_values_rise_with_epsilon_where_they_decide_anything():
    for right, coins, delta in ((75, 1_000, 1e-4), (75, 1_000, 1e-2), (95, 100, 1e-3), (60, 100, 0.2)):
        p_values = [
            one_run_p_value(right, 100, epsilon, delta=delta, coins=coins) for epsilon in np.linspace(0, 8, 200)
        ]
        low = np.flatnonzero(np.array(p_values) < 0.4)
        assert (low == np.arange(len(low))).all()
        assert (np.diff(np.array(p_values)[low]) >= -1e-12).all()


def test_a_distance_divides_epsilon():
    one, two = (one_run_bound(900, 1_000, distance=distance).epsilon for distance in (1, 2))
    assert two == pytest.approx(one / 2)
    # With a delta, that of two steps is larger.
    one, two = (one_run_bound(900, 1_000, distance=distance, delta=1e-5).epsilon for distance in (1, 2))
    assert 0.9 * one / 2 < two < one / 2


def test_guesses_that_are_no_better_than_chance_show_nothing():
    assert one_run_bound(0, 10).epsilon == one_run_bound(50, 100).epsilon == one_run_bound(1, 1).epsilon == 0
    assert one_run_bound(50, 100, delta=1e-6).epsilon == one_run_bound(0, 10, delta=1e-6).epsilon == 0


def test_many_guesses_bring_the_bound_near_the_truth_and_not_above():
    """With confidence 1 - 1e-9 a false alarm has at most that probability."""
    coins = np.random.default_rng(2).integers(0, 2, 200_000)
    told = randomised_response(coins, Fraction(1, 10), SeededSource(3))
    found = one_run_bound(int((told == coins).sum()), len(coins), confidence=1 - 1e-9)
    assert 0.97 * math.log(9) < found.epsilon < math.log(9)


RATE = Fraction(1, 4)


def strata_with_coins(coins):
    """Strata of three households; a coin decides which of the first two lives in which county."""
    county = np.array([["a", "b", "b"], ["b", "a", "b"]])[coins]
    names = [f"stratum {number}" for number in range(len(coins))]
    return pl.DataFrame(
        {
            "stratum": np.repeat(names, 3),
            "tenure": np.tile(["own", "rent", "other"], len(coins)),
            "county": county.ravel(),
        }
    )


def test_one_run_of_a_swap_shows_nearly_its_exact_loss_and_not_more():
    """A stratum is a coin of its own: the likelier of its two tables is guessed. False alarm: 1e-9."""
    coins = np.random.default_rng(9).integers(0, 2, 3_000)
    plan = swap.SwapPlan(
        unit="household", match=["stratum"], swap=["county"], hold=["tenure"], rate=RATE, allow=["tells:tenure"]
    )
    released = swap.draw(plan, strata_with_coins(coins), source=SeededSource(10)).frame()
    tables = [((0, 0), (1, 1), (2, 1)), ((0, 1), (1, 0), (2, 1))]
    first, second = (released_law(table, RATE) for table in tables)
    loss = max(abs(math.log(first[z] / second[z])) for z in first)
    # In its own order of tenures, each stratum has its county "a" once: with the owner, the renter or the other.
    place = released.filter(pl.col("county") == "a").sort(pl.col("stratum").str.slice(8).cast(int))["tenure"].to_list()
    guess = np.array([{"own": 0, "rent": 1, "other": -1}[tenure] for tenure in place])
    sure = guess >= 0  # where the county ended with the third, both tables are equally likely: no guess
    right = int((guess == coins)[sure].sum())
    per_record = one_run_bound(right, int(sure.sum()), confidence=1 - 1e-9, distance=2)
    assert 0.8 * loss / 2 < per_record.epsilon < loss / 2
    promise = float(swap.check(plan, strata_with_coins(coins)).epsilon)
    assert one_run_p_value(right, int(sure.sum()), promise, distance=2) > 1e-6


def test_a_broken_promise_is_found_in_one_run():
    assert one_run_p_value(900, 1_000, 1.0) < 1e-6
    assert one_run_p_value(900, 1_000, 2.0) > 1e-6
    assert one_run_p_value(900, 1_000, 1.8, delta=1e-2) > 1e-6


def test_a_bound_is_told_in_words():
    assert str(one_run_bound(900, 1_000)) == (
        "epsilon is at least 2.021 with confidence 0.95: 900 of 1,000 guesses were right in one run"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"right": 11},
        {"right": -1},
        {"right": 2.5},
        {"guessed": 0, "right": 0},
        {"guessed": True, "right": 1},
        {"coins": 9},
        {"confidence": 0},
        {"confidence": 1},
        {"delta": -1e-6},
        {"delta": math.nan},
        {"distance": 0},
        {"distance": "2"},
    ],
    ids=repr,
)
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(StirredError):
        one_run_bound(**({"right": 5, "guessed": 10} | wrong))
