"""Chapter 1's toy models: published numbers, the printed forms that are wrong, and games played out in full."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from stirred.errors import StirredError
from stirred.lab.definitions.prices import (
    ResponseGame,
    expected_utility_bounds,
    gain_of_silence_under_privacy,
    in_base,
    linear_budget,
    price,
)

KEPT = math.log(100 / 99)
"""Epsilon of the example: e^-epsilon is 99/100."""


def test_equation_1_1_bounds_the_expected_utility_of_any_mechanism():
    rng = np.random.default_rng(11)
    for _ in range(200):
        without = rng.dirichlet(np.ones(5))
        with_data = without * np.exp(rng.uniform(-1, 1, 5))
        with_data /= with_data.sum()
        epsilon = float(np.max(np.abs(np.log(with_data / without))))
        utility = rng.exponential(size=5)
        v = float(without @ utility)
        low, high = expected_utility_bounds(v, epsilon)
        assert low - 1e-12 <= with_data @ utility <= high + 1e-12
        assert with_data @ utility - v <= price(v, epsilon) + 1e-12
    # Attained by an output that is e^epsilon times as probable, and the only one of any use.
    assert expected_utility_bounds(1, 2)[1] == pytest.approx(math.exp(2))


def test_ghosh_and_roth_prices_agree_for_small_epsilon_only():
    assert price(100, 1e-6) == pytest.approx(price(100, 1e-6, "linear"), rel=1e-6)
    assert price(100, 12) / price(100, 12, "linear") > 13_000
    assert price(0, 1e6) == 0
    assert price(1, 1e6) == math.inf


def test_section_1_2_1_epsilon_is_a_log_budget_with_its_published_numbers():
    assert linear_budget(12) == pytest.approx(162_754.79, abs=0.005)
    assert linear_budget(19) == pytest.approx(178_482_300.96, abs=0.005)
    # Printed, cut off after three digits.
    assert linear_budget(12) // 1000 * 1000 == 162_000
    assert linear_budget(19) // 1_000_000 * 1_000_000 == 178_000_000
    assert round(in_base(19, 1.1)) == 199
    assert round(in_base(19, 1.01)) == 1909
    for base in (1.01, 1.1, 2, math.e, 10):
        assert base ** in_base(3, base) == pytest.approx(math.exp(3))


def test_section_1_2_2_the_prisoners_dilemma_has_its_published_numbers():
    game = ResponseGame(1_000, KEPT, 100, 50)
    assert game.gain_of_silence(0) == pytest.approx(49)
    assert game.payoff(True, 0) == 50
    assert game.payoff(False, 999) == 0
    assert game.is_dilemma


def test_erratum_e7_the_printed_payoffs_are_not_what_they_are_said_to_be():
    assert 50 - 100 * math.exp(-KEPT) == pytest.approx(-49)  # printed as 49
    assert ResponseGame(1_000, KEPT, 100, 50).gain_of_silence(0) == pytest.approx(49)
    assert (50 - 100) * math.exp(-KEPT) == pytest.approx(-49.5)  # printed as -0.5
    assert gain_of_silence_under_privacy(100, 50, KEPT) == pytest.approx(-0.5)
    # The burden from which the dilemma persists: 0.5 and not 49.5.
    assert gain_of_silence_under_privacy(100, 50, KEPT, burden=0.51) > 0
    assert gain_of_silence_under_privacy(100, 50, KEPT, burden=0.49) < 0


def test_erratum_e7_silence_does_not_dominate_among_few_people():
    dominated = [people for people in range(2, 200) if ResponseGame(people, KEPT, 100, 50).silence_dominates]
    assert dominated == list(range(70, 200))
    alone = ResponseGame(69, KEPT, 100, 50)
    assert alone.gain_of_silence(68) < 0 < alone.gain_of_silence(67)


@pytest.mark.parametrize("people", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("epsilon", "utility", "cost"), [(0.1, 10, 3), (1, 10, 4), (2, 10, 9.9), (0.5, 3, 5), (0, 4, 1)]
)
def test_payoffs_are_those_of_the_game_played_out(people, epsilon, utility, cost):
    game = ResponseGame(people, epsilon, utility, cost)

    def payoffs(responses):
        social = utility * math.exp(-epsilon * responses.count(False)) if any(responses) else 0.0
        return [social - cost * one for one in responses]

    gains = []
    for others in itertools.product((True, False), repeat=people - 1):
        silent = others.count(False)
        with_me, without_me = payoffs((True, *others))[0], payoffs((False, *others))[0]
        assert game.payoff(True, silent) == pytest.approx(with_me)
        assert game.payoff(False, silent) == pytest.approx(without_me)
        assert game.gain_of_silence(silent) == pytest.approx(without_me - with_me)
        gains.append(without_me - with_me)
    assert game.silence_dominates == (min(gains) > 0)
    better = payoffs((True,) * people)[0] > payoffs((False,) * people)[0]
    assert game.is_dilemma == (min(gains) > 0 and better)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: price(-1, 1),
        lambda: price(1, 1, "cubic"),
        lambda: in_base(1, 1),
        lambda: linear_budget(-1),
        lambda: ResponseGame(0, 1, 1, 1),
        lambda: ResponseGame(3, -1, 1, 1),
        lambda: ResponseGame(3, 1, 1, 1).payoff(True, 3),
        lambda: gain_of_silence_under_privacy("x", 1, 1),
    ],
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(StirredError):
        wrong()
