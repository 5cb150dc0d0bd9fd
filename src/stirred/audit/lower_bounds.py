"""Lower confidence bounds on what a mechanism reveals, from its outputs in many runs on two inputs.

Events are found on the first half of the runs on each input and counted on the second half, one event for each number
that is reported, so that nothing is gained by trying many. Any event makes two coins of the two laws, and whatever
bounds the laws bounds the coins (data processing); what the coins need at least is bounded in ``joint_bounds``. The
runs must be independent. A small bound says nothing: the pair of inputs, the event or the number of runs may be poor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from stirred import errors
from stirred.audit.events import Candidates, Event, Input, Outputs, as_outputs
from stirred.audit.joint_bounds import (
    Counts,
    Measure,
    epsilon_at,
    joint_lower_bound,
    joint_p_value,
    power_at,
    require_distance,
    require_rate,
    rho_at,
)
from stirred.audit.results import Result
from stirred.loss.argument_checks import non_negative, probability

DELTAS = (0.0, 1e-6)
LEVELS = (0.01, 0.05, 0.1)

ORDERS = (1.0, *(1 + 0.02 * 1.4**k for k in range(24)))
"""Orders of Rényi divergences among which one is chosen, together with the event, for a bound on rho."""


@dataclass(frozen=True)
class LowerBound:
    """A number that the truth is at least, with the event that shows it.

    ``event`` continues "the output"; ``counts`` are those of the second halves, the input that makes it likelier first.
    """

    value: float
    event: str
    likelier_from: Input
    counts: Counts

    @property
    def seen(self) -> str:
        """The event and how often it was seen, in words."""
        other = "second" if self.likelier_from == "first" else "first"
        counts = self.counts
        return (
            f"the output {self.event} in {counts.hits:,} of {counts.runs:,} runs on the {self.likelier_from} input "
            f"and in {counts.other_hits:,} of {counts.other_runs:,} runs on the {other}"
        )


@dataclass(frozen=True)
class LowerBounds:
    """What a mechanism reveals at least about which of two inputs it was given.

    Each of ``epsilons`` (by delta) and ``rho`` is at most the truth with the stated confidence, each by itself;
    ``powers`` (by the false-alarm rate of a test) are so all together. Epsilons and rho are per unit of distance,
    powers those of this pair of inputs.
    """

    epsilons: Mapping[float, LowerBound]
    rho: LowerBound
    powers: Mapping[float, LowerBound]
    confidence: float
    distance: int
    runs: tuple[int, int]

    @property
    def epsilon(self) -> LowerBound:
        """The bound on epsilon at delta 0."""
        return self.epsilons[0.0]

    @property
    def together(self) -> float:
        """The confidence that all these bounds hold at once, at least."""
        return max(0.0, 1 - (len(self.epsilons) + 1 + bool(self.powers)) * (1 - self.confidence))

    def __str__(self) -> str:
        lines = [
            f"What {self.runs[0]:,} and {self.runs[1]:,} runs on two inputs {self.distance} apart show at least. Each "
            f"line holds with confidence {self.confidence:.6g}, the powers all together; everything at once with "
            f"{self.together:.6g}. Events were found on the first halves of the runs and counted on the second."
        ]
        for delta, bound in self.epsilons.items():
            at = f" at delta {delta:g}" if delta else ""
            lines.append(f"epsilon{at} is at least {bound.value:.4g}: {bound.seen}")
        lines.append(f"rho is at least {self.rho.value:.4g}: {self.rho.seen}")
        for level, bound in self.powers.items():
            lines.append(f"a test with false-alarm rate {level:g} has power at least {bound.value:.4g}: {bound.seen}")
        return "\n".join(lines)


def lower_bounds(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    confidence: float = 0.95,
    deltas: Sequence[float] = DELTAS,
    levels: Sequence[float] = LEVELS,
    distance: int = 1,
) -> LowerBounds:
    """Lower bounds on epsilon, rho and power from the outputs of independent runs on two inputs.

    Outputs are numbers, or anything that can be told equal (texts, tuples). ``distance`` is how far apart the inputs
    are in the units of the budget: 2 if two records were exchanged and epsilon is promised per record.

    >>> coin = lambda heads: [1] * heads + [0] * (100 - heads)
    >>> found = lower_bounds(coin(75) * 20, coin(25) * 20)
    >>> round(found.epsilon.value, 2), found.epsilon.event
    (1.0, 'is at least 1')
    """
    false_alarm = 1 - require_rate("confidence", confidence)
    at = dict.fromkeys([0.0, *(probability("delta", delta) for delta in deltas)])
    rates = dict.fromkeys(require_rate("level", level) for level in levels)
    runs = _Runs.of(first, second, distance)
    return LowerBounds(
        {delta: runs.bound([epsilon_at(delta, distance)], false_alarm) for delta in at},
        runs.bound(_rhos(distance), false_alarm),
        {level: runs.bound([power_at(level)], false_alarm / len(rates)) for level in rates},
        1 - false_alarm,
        distance,
        runs.number,
    )


def promise_result(
    name: str,
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    allotted: float,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    distance: int = 1,
) -> Result:
    """Whether runs on two inputs contradict a promised epsilon (at a delta) or a promised rho, per unit of distance.

    A mechanism that keeps the promise is found wrong with at most the probability ``allotted``.
    """
    if (epsilon is None) == (rho is None):
        raise errors.audit_question("The promise", "must be either an epsilon or a rho")
    if rho is None:
        symbol, promise = "epsilon", non_negative("epsilon", cast(float, epsilon))
        measures = [epsilon_at(probability("delta", delta), distance)]
    else:
        symbol, promise, measures = "rho", non_negative("rho", rho), _rhos(distance)
    runs = _Runs.of(first, second, distance)
    event, measure, counts = runs.choose(measures, require_rate("allotted", allotted))
    bound = _bound(event, measure, counts, allotted)
    p_value = joint_p_value(counts, measure, promise, allotted)
    # Both decide the same, but each is rounded on its own safe side: where they differ, the bound decides.
    p_value = min(p_value, allotted * (1 - 1e-9)) if bound.value > promise else max(p_value, allotted)
    promised = f"{symbol} {promise:g}" + (f" at delta {delta:g}" if delta else "")
    return Result.tested(
        name,
        f"Do two inputs {distance} apart differ in what they give by more than {promised} allows?",
        p_value,
        allotted,
        right=f"These runs do not show more than was promised: {symbol} is at least {bound.value:.4g}.",
        wrong=f"More is revealed than was promised: {symbol} is at least {bound.value:.4g}; {bound.seen}.",
        at_least=bound.value,
        promised=promise,
    )


# -- helpers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Runs:
    """Events found on the first halves of the runs, and the second halves."""

    candidates: Candidates
    first: Outputs
    second: Outputs
    number: tuple[int, int]

    @classmethod
    def of(cls, first: Sequence[Any], second: Sequence[Any], distance: int) -> _Runs:
        require_distance(distance)
        one, other = as_outputs("first", first), as_outputs("second", second)
        half, other_half = len(one) // 2, len(other) // 2
        candidates = Candidates.of(one[:half], other[:other_half])
        return cls(candidates, one[half:], other[other_half:], (len(one), len(other)))

    def choose(self, measures: Sequence[Measure], false_alarm: float) -> tuple[Event, Measure, Counts]:
        """The event that promises most on the first halves, and how often it occurs in the second."""
        event, measure = self.candidates.best(measures, false_alarm)
        return event, measure, event.count(self.first, self.second)

    def bound(self, measures: Sequence[Measure], false_alarm: float) -> LowerBound:
        return _bound(*self.choose(measures, false_alarm), false_alarm)


def _bound(event: Event, measure: Measure, counts: Counts, false_alarm: float) -> LowerBound:
    return LowerBound(joint_lower_bound(counts, measure, false_alarm), event.words, event.likelier_from, counts)


def _rhos(distance: int) -> list[Measure]:
    return [rho_at(order, distance) for order in ORDERS]
