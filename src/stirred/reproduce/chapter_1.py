"""Numbers of chapter 1 of the thesis: the scale of epsilon, prices of privacy, whether to respond."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from stirred.lab.definitions import prices
from stirred.loss.divergences import multiplicative
from stirred.reproduce.computations import Forms, computation
from stirred.reproduce.examples import pairs_of_laws

_SLACK = 1 + 1e-9
_KEPT = math.log(100 / 99)
"""Epsilon of the example of section 1.2.2: e^-epsilon is 99/100."""


@computation
def linear_scale(epsilon: str) -> float:
    """e^epsilon, the budget on a linear scale."""
    return prices.linear_budget(Fraction(epsilon))


@computation
def budget_in_base(epsilon: str, base: str) -> float:
    """epsilon to another base than e."""
    return prices.in_base(Fraction(epsilon), Fraction(base))


@computation
def utility_is_bounded() -> bool:
    """Whether expected utilities with and without a person are within a factor e^epsilon (inequality 1.1)."""
    for p, q in pairs_of_laws():
        utility = np.arange(4.0)
        low, high = prices.expected_utility_bounds(float(q @ utility), multiplicative(p, q))
        if not low / _SLACK <= p @ utility <= high * _SLACK:
            return False
    return True


@computation
def linear_price_is_close(epsilon: str) -> bool:
    """Whether epsilon v is within a twentieth of (e^epsilon - 1) v."""
    linear, exact = (prices.price(100, Fraction(epsilon), form) for form in ("linear", "exact"))
    return math.isclose(linear, exact, rel_tol=0.05)


@computation
def gain_of_silence() -> float:
    """What somebody gains by not responding, at least."""
    game = _dilemma()
    return min(game.gain_of_silence(silent) for silent in range(game.people))


@computation
def payoff_if_all(respond: bool) -> float:
    """What each gets if all respond, or if nobody does."""
    game = _dilemma()
    return game.payoff(True, 0) if respond else game.payoff(False, game.people - 1)


@computation
def silence_is_best() -> bool:
    """Whether not responding is better whatever others do."""
    return _dilemma().silence_dominates


@computation
def gain_of_silence_with_privacy(burden: str) -> float:
    """The gain of silence where the cost in privacy shrinks with epsilon, and responding takes an effort."""
    return prices.gain_of_silence_under_privacy(100, 50, _KEPT, Fraction(burden))


# -- errata --------------------------------------------------------------------------------------------------


@computation
def silence_forms() -> Forms:
    """The gain of silence if all others respond."""
    return Forms("utility 100, cost 50, e^-epsilon = 0.99", 50 - 100 * math.exp(-_KEPT), _dilemma().gain_of_silence(0))


@computation
def silence_under_privacy_forms() -> Forms:
    """The gain of silence where the cost in privacy shrinks with epsilon."""
    return Forms(
        "utility 100, privacy 50, e^-epsilon = 0.99",
        (50 - 100) * math.exp(-_KEPT),
        prices.gain_of_silence_under_privacy(100, 50, _KEPT),
    )


@computation
def burden_forms() -> Forms:
    """The burden above which the dilemma holds: what silence loses without one."""
    return Forms(
        "utility 100, privacy 50, e^-epsilon = 0.99",
        math.exp(-_KEPT) * (100 - 50),
        -prices.gain_of_silence_under_privacy(100, 50, _KEPT),
    )


@computation
def few_people_forms() -> Forms:
    """Whether silence is best whatever others do, among 69 people."""
    return Forms("69 people", True, _dilemma(69).silence_dominates)


# -- helpers -------------------------------------------------------------------------------------------------


def _dilemma(people: int = 1000) -> prices.ResponseGame:
    return prices.ResponseGame(people, _KEPT, 100, 50)
