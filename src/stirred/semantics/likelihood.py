"""The most powerful test between two finite laws, with its ties, and tests by an attacker who is uncertain about the
rest of the data.

The test of Neyman and Pearson looks at the log likelihood ratio T = ln P/Q of the output, P the law under the null
hypothesis: it rejects below a threshold, never above it, and with some probability on it (Kifer et al. 2022, section
4). Only with that coin can it have every false-alarm probability.

Keep in mind: laws given as fractions make fractions. Ties are then exact; with floats, outputs
whose ratios differ by rounding alone may be taken for different.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.divergences import power_curve
from stirred.spec.order.finite_mechanisms import FiniteMechanism

Probability = Fraction | float

SUM_TOLERANCE = 1e-9


@brief
@dataclass(frozen=True)
class RatioTest:
    """Reject where P/Q is below ``threshold``; where it equals the threshold, with probability ``on_threshold``.

    ``threshold`` is the ratio itself, 0 for outputs that only Q gives and infinite for those that only P gives; its
    logarithm is the value of the privacy loss.
    """

    threshold: Probability
    on_threshold: Probability
    level: Probability
    power: Probability

    @property
    def loss(self) -> float:
        """The threshold as a privacy loss, ln P/Q."""
        return -math.inf if self.threshold == 0 else math.log(self.threshold)


@says_what_it_takes
def best_test(null: Sequence[Any], alternative: Sequence[Any], level: Any) -> RatioTest:
    """The most powerful test of ``null`` against ``alternative`` with exactly this false-alarm probability.

    >>> best_test([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], Fraction(1, 8))
    RatioTest(threshold=Fraction(1, 3), on_threshold=Fraction(1, 2), level=Fraction(1, 8), power=Fraction(3, 8))
    """
    groups = _by_ratio(null, alternative)
    if not 0 <= level <= 1:
        raise errors.parameter_out_of_range("level", level, "between 0 and 1")
    spent: Probability = 0 * groups[0][1]
    power: Probability = spent
    for ratio, p, q in groups:
        if p > 0 and spent + p >= level:
            share = (level - spent) / p
            return RatioTest(ratio, share, level, power + share * q)
        spent, power = spent + p, power + q
    return RatioTest(groups[-1][0], 0 * power + 1, level, min(power, 0 * power + 1))  # sums of floats fall short of 1


@says_what_it_takes
def level_and_power(
    null: Sequence[Any], alternative: Sequence[Any], threshold: Any, on_threshold: Any
) -> tuple[Probability, Probability]:
    """False-alarm probability and power of the test with a threshold on P/Q, from the distributions of the loss:

        level = c P(L12 <= t) + (1 - c) P(L12 < t),  power = c P(L21 >= -t) + (1 - c) P(L21 > -t).

    >>> level_and_power([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], Fraction(1, 3), 1)
    (Fraction(1, 4), Fraction(3, 4))
    """
    groups = _by_ratio(null, alternative)
    below = [(p, q) for ratio, p, q in groups if ratio < threshold]
    on = [(p, q) for ratio, p, q in groups if ratio == threshold]
    level = sum(p for p, _ in below) + on_threshold * sum(p for p, _ in on)
    power = sum(q for _, q in below) + on_threshold * sum(q for _, q in on)
    return level, power


@says_what_it_takes
def uncertain_power(
    mechanism: FiniteMechanism, weights: Mapping[str, Any], null: Mapping[str, str], alternative: Mapping[str, str]
) -> PowerCurve:
    """The power of an attacker who knows the rest of the data only up to a distribution (Theorem 6.5).

    ``weights`` has a probability for each possible rest; ``null`` and ``alternative`` name, for each rest, the dataset
    of ``mechanism`` that it makes with the target's one or other record. What the attacker sees is then drawn from a
    mixture. For definitions that are convex and survive post-processing the curve is nowhere above that of an attacker
    who knows the rest: uncertainty does not help.

    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> answers = randomised_response("1/4", respondents=2)
    >>> half = {"0": Fraction(1, 2), "1": Fraction(1, 2)}  # the second respondent's answer, unknown
    >>> uncertain_power(answers, half, {"0": "00", "1": "01"}, {"0": "10", "1": "11"}).power(0.25).item()
    0.75
    """
    if not weights or any(not w >= 0 for w in weights.values()) or abs(sum(weights.values()) - 1) > SUM_TOLERANCE:
        raise errors.not_a_distribution("The attacker's belief about the rest", "it is negative or does not sum to 1")
    if set(weights) - set(null) or set(weights) - set(alternative):
        raise errors.not_a_mechanism("some rest of the data has no dataset under a hypothesis")
    strange = {worlds[rest] for worlds in (null, alternative) for rest in weights} - set(mechanism.datasets)
    if strange:
        raise errors.strange_datasets(sorted(strange))
    place = {name: row for row, name in enumerate(mechanism.datasets)}
    shares = np.array([float(weight) for weight in weights.values()])
    first, second = (
        shares @ mechanism.rows[[place[worlds[rest]] for rest in weights]] for worlds in (null, alternative)
    )
    points = power_curve(first / first.sum(), second / second.sum())
    return PowerCurve(tuple(map(tuple, points[np.append(np.diff(points[:, 0]) > 0, True)].tolist())))


def _by_ratio(null: Sequence[Any], alternative: Sequence[Any]) -> list[tuple[Probability, Probability, Probability]]:
    """(ratio, P, Q) of the outputs with each value of P/Q, smallest ratio first."""
    if len(null) != len(alternative) or len(null) == 0:
        raise errors.outputs_differ(len(null), len(alternative))
    for name, law in (("The null hypothesis", null), ("The alternative", alternative)):
        if any(not p >= 0 for p in law) or abs(sum(law) - 1) > SUM_TOLERANCE:
            raise errors.not_a_distribution(name, "it is negative or does not sum to 1")
    groups: dict[Probability, tuple[Probability, Probability]] = {}
    for p, q in zip(null, alternative, strict=True):
        if p == 0 and q == 0:
            continue
        ratio = p / q if q else math.inf
        before = groups.get(ratio, (0 * p, 0 * q))
        groups[ratio] = (before[0] + p, before[1] + q)
    return [(ratio, *groups[ratio]) for ratio in sorted(groups)]
