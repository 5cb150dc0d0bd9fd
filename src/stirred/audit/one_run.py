"""A lower confidence bound on epsilon from a single run of a mechanism on an input that holds many secret coins.

Each of many independent fair coins decides one thing about the input, such as which of two records a stratum holds;
from the output somebody guesses as many of the coins as they like. If changing one coin changes the law of the output
within epsilon, then, whatever the output, the number of right guesses is stochastically at most binomial with success
e^epsilon / (1 + e^epsilon) (Steinke, Nasr and Jagielski 2023, section 5). Which coins are guessed may depend on the
output, but not on the coins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stirred.audit.joint_bounds import lower_limit, require_distance, require_rate
from stirred.audit.results import Result
from stirred.errors import parameter_out_of_range
from stirred.loss.argument_checks import non_negative, probability
from stirred.loss.conversions import group_approximate

_MOST_EPSILON = 700.0
_STEPS = 60


@dataclass(frozen=True)
class OneRunBound:
    """``right`` of ``guessed`` coins were guessed, and epsilon is therefore at least so much, per unit of distance."""

    epsilon: float
    right: int
    guessed: int
    confidence: float
    distance: int = 1
    delta: float = 0.0

    def __str__(self) -> str:
        at = f" at delta {self.delta:g}" if self.delta else ""
        return (
            f"epsilon{at} is at least {self.epsilon:.4g} with confidence {self.confidence:.6g}: {self.right:,} of "
            f"{self.guessed:,} guesses were right in one run"
        )


def one_run_bound(
    right: int,
    guessed: int,
    *,
    confidence: float = 0.95,
    distance: int = 1,
    delta: float = 0.0,
    coins: int | None = None,
) -> OneRunBound:
    """The epsilon that so many right guesses need at least, at a delta.

    ``distance`` is how far apart two inputs are that differ in one coin, in the units of the budget: 2 if a coin
    exchanges two records and epsilon is per record. ``coins`` counts all coins, those that were not guessed too; it
    matters with a delta only.

    >>> round(one_run_bound(900, 1000).epsilon, 3), round(one_run_bound(500, 1000).epsilon, 3)
    (2.021, 0.0)
    """
    false_alarm = 1 - require_rate("confidence", confidence)
    coins = _require_guesses(right, guessed, coins)
    require_distance(distance)
    delta = probability("delta", delta)
    if delta == 0:
        accuracy = float(lower_limit(right, guessed, false_alarm))
        odds = accuracy / (1 - accuracy) if accuracy < 1 else math.inf
        epsilon = max(0.0, math.log(odds)) / distance if odds > 0 else 0.0
    else:
        epsilon = _largest_refuted(right, guessed, coins, delta, distance, false_alarm)
    return OneRunBound(epsilon, right, guessed, float(confidence), distance, delta)


def one_run_p_value(
    right: int, guessed: int, epsilon: float, *, distance: int = 1, delta: float = 0.0, coins: int | None = None
) -> float:
    """How probable so many right guesses are at most, if the mechanism keeps epsilon (at a delta) per unit of distance.

    With W binomial with success e^epsilon / (1 + e^epsilon), n coins and v right guesses it is
    P(W >= v) + 2 n delta max over i >= 1 of P(v - i <= W < v) / i (Appendix D there), for the epsilon and delta of the
    distance.

    >>> round(one_run_p_value(900, 1000, 2.0), 4)
    0.0317
    """
    from scipy import special

    coins = _require_guesses(right, guessed, coins)
    require_distance(distance)
    epsilon, delta = group_approximate(non_negative("epsilon", epsilon), probability("delta", delta), distance)
    success = 1 / (1 + math.exp(-epsilon))
    if right == 0 or success == 1:
        return 1.0
    p_value = float(special.bdtrc(right - 1, guessed, success))
    if delta:
        below = np.arange(right - 1, -1, -1)
        log_mass = (
            special.gammaln(guessed + 1)
            - special.gammaln(below + 1)
            - special.gammaln(guessed - below + 1)
            + below * math.log(success)
            - (guessed - below) * (epsilon + math.log1p(math.exp(-epsilon)))
        )
        p_value += 2 * coins * delta * float(np.max(np.cumsum(np.exp(log_mass)) / np.arange(1, right + 1)))
    return min(1.0, p_value)


def one_run_result(
    name: str,
    right: int,
    guessed: int,
    *,
    allotted: float,
    epsilon: float,
    distance: int = 1,
    delta: float = 0.0,
    coins: int | None = None,
) -> Result:
    """Whether one run contradicts a promised epsilon (at a delta) per unit of distance.

    A mechanism that keeps the promise is found wrong with at most the probability ``allotted``.
    """
    epsilon = non_negative("epsilon", epsilon)
    bound = one_run_bound(
        right, guessed, confidence=1 - require_rate("allotted", allotted), distance=distance, delta=delta, coins=coins
    )
    promised = f"epsilon {epsilon:g}" + (f" at delta {delta:g}" if delta else "")
    guesses = f"{right:,} of {guessed:,} guesses in one run were right, so epsilon is at least {bound.epsilon:.4g}"
    return Result.tested(
        name,
        f"Are secret coins in the input guessed from the output more often than {promised} allows?",
        one_run_p_value(right, guessed, epsilon, distance=distance, delta=delta, coins=coins),
        allotted,
        right=f"This run does not show more than was promised: {guesses}.",
        wrong=f"More is revealed than was promised: {guesses}.",
        at_least=bound.epsilon,
        promised=epsilon,
    )


# -- helpers -------------------------------------------------------------------------------------------------


def _largest_refuted(right: int, guessed: int, coins: int, delta: float, distance: int, false_alarm: float) -> float:
    """The largest epsilon whose p-value is at most the false-alarm rate, rounded down.

    The p-value rises with epsilon wherever it is below about one half: its derivative is negative only where the law
    of W is past the middle of what is added up.
    """

    def refuted(epsilon: float) -> bool:
        return one_run_p_value(right, guessed, epsilon, distance=distance, delta=delta, coins=coins) <= false_alarm

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _MOST_EPSILON / distance
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _require_guesses(right: int, guessed: int, coins: int | None) -> int:
    coins = guessed if coins is None else coins
    for name, value, least, most in (
        ("guessed", guessed, 1, math.inf),
        ("right", right, 0, guessed),
        ("coins", coins, guessed, math.inf),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            top = f" and at most {most}" if most < math.inf else ""
            raise parameter_out_of_range(name, value, f"a whole number that is at least {least}{top}")
    return int(coins)
