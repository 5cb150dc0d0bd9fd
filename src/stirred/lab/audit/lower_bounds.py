"""Lower confidence bounds on what a mechanism reveals: from many runs on two inputs, or from one run with many coins.

*Many runs.* Events are found on the first half of the runs on each input and counted on the second half, one event
for each number that is reported, so that nothing is gained by trying many. Any event makes two coins of the two laws,
and whatever bounds the laws bounds the coins (data processing); what the coins need at least is bounded in
:mod:`stirred.lab.audit.two_counts`. The runs must be independent. A small bound says nothing: the pair of inputs, the
event or the number of runs may be poor.

*Events.* By the lemma of Neyman and Pearson the best ones collect the outputs whose likelihood ratio is largest.
Outputs are put into cells, and cells are taken in the order of the ratio that the runs suggest; numbers also in their
own order, which needs no estimate. Whatever is chosen, a bound from other runs is valid: a poor choice only makes it
small.

*One run.* Each of many independent fair coins decides one thing about the input, such as which of two records a
stratum holds; from the output somebody guesses as many of the coins as they like. If changing one coin changes the
law of the output within epsilon, then, whatever the output, the number of right guesses is stochastically at most
binomial with success e^epsilon / (1 + e^epsilon) (Steinke, Nasr and Jagielski 2023, section 5). Which coins are
guessed may depend on the output, but not on the coins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._lazy import later
from stirred.errors import parameter_out_of_range
from stirred.errors.kinds import one_line
from stirred.lab.audit.results import Result
from stirred.lab.audit.two_counts import (
    Counts,
    Floats,
    Measure,
    epsilon_at,
    joint_lower_bound,
    joint_p_value,
    lower_limit,
    power_at,
    require_distance,
    require_rate,
    rho_at,
)
from stirred.loss.argument_checks import non_negative, probability
from stirred.loss.conversions import group_approximate

special = later("scipy.special")

Outputs = NDArray[Any] | list[Hashable]
"""One output for each run: numbers as an array, anything else as a list."""
Input = Literal["first", "second"]

_MOST_BREAKS = 127
_MOST_SIZES = 256
_PARTS = 2
"""Into which the runs are divided to judge an order by other runs than it was made from."""
_CAUTION = 0.5
"""Standard deviations by which limits are moved further out: the best of many events looks better than it is."""
_NAMED = 3
"""Outputs or ranges that the words for an event name one by one."""
_SHOWN = 40
"""Characters of an output that are shown."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs that seem likelier from one of the two inputs."""

    likelier_from: Input
    cells: Cells
    taken: NDArray[np.bool_]

    @property
    def words(self) -> str:
        """Which outputs, in words that continue "the output": ``is at least 3``."""
        return self.cells.words(self.taken)

    def count(self, first: Outputs, second: Outputs) -> Counts:
        """How often it occurs in runs on both inputs, the one that makes it likelier first."""
        pair = (first, second) if self.likelier_from == "first" else (second, first)
        hits, other = (int(self.taken[self.cells.of(outputs)].sum()) for outputs in pair)
        return Counts(hits, len(pair[0]), other, len(pair[1]))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Events that may be chosen: the first cells, of each of the ``sizes``, of some orders of all cells."""

    cells: Cells
    sizes: NDArray[np.intp]
    orders: tuple[_Order, ...]

    @classmethod
    def of(cls, first: Outputs, second: Outputs) -> Candidates:
        """The candidates among the outputs of the runs on which events are found."""
        cells = _cells(first, second)
        sizes, counts, other = _sizes(cells.count), _counts(cells, first), _counts(cells, second)
        own = [np.arange(cells.count), np.arange(cells.count)[::-1]] if isinstance(cells, _Ranges) else []
        orders = _orders("first", counts, other, own, sizes) + _orders("second", other, counts, own, sizes)
        return cls(cells, sizes, tuple(orders))

    def best(self, measures: Sequence[Measure], false_alarm: float) -> tuple[Event, Measure]:
        """The event and the measure for which other runs like these promise the largest lower bound.

        Where they promise none, the event whose frequencies differ most: one that nearly always occurs would come
        nearest to a bound of nothing, and never show more.
        """
        hits = np.array([one.hits for one in self.orders])
        other_hits = np.array([one.other_hits for one in self.orders])
        runs = np.array([[one.runs] for one in self.orders])
        other_runs = np.array([[one.other_runs] for one in self.orders])
        z = _CAUTION - float(special.ndtri(false_alarm / 2))
        low, high = 1 - _about_upper_limit(runs - hits, runs, z), _about_upper_limit(other_hits, other_runs, z)
        values = np.array([measure.at_each(low.ravel(), high.ravel()).reshape(low.shape) for measure in measures])
        if values.max() <= measures[0].nothing:
            mean = (hits + other_hits) / (runs + other_runs)
            deviation = np.sqrt(np.maximum(mean * (1 - mean), 1e-12) * (1 / runs + 1 / other_runs))
            values = ((hits / runs - other_hits / other_runs) / deviation)[None]
        which, row, column = (int(i) for i in np.unravel_index(np.argmax(values), values.shape))
        taken = np.zeros(self.cells.count, dtype=np.bool_)
        taken[self.orders[row].order[: self.sizes[column]]] = True
        return Event(self.orders[row].likelier_from, self.cells, taken), measures[which]


def as_outputs(name: Input, outputs: Any) -> Outputs:
    """The outputs of the runs on one input, checked."""
    sized = hasattr(outputs, "__len__") and hasattr(outputs, "__iter__")
    if not sized or isinstance(outputs, str | bytes | Mapping):
        raise errors.audit_runs(name, "are not a list with one output for each run")
    listed = outputs.tolist() if isinstance(outputs, np.ndarray) else list(outputs)
    if len(listed) < 2:
        raise errors.audit_runs(name, f"are {len(listed)}: events are found on one half and tested on the other")
    try:
        different = set(listed)
    except TypeError:
        raise errors.audit_runs(name, "have lists or tables as outputs, which must be made tuples") from None
    if any(one != one for one in different):
        raise errors.audit_runs(name, "have outputs that are not a number (NaN)")
    if all(isinstance(one, int | float | np.number) and not isinstance(one, bool) for one in different):
        numbers = np.asarray(listed)
        return numbers if numbers.dtype.kind in "iuf" else listed
    return listed


# -- helpers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Order:
    """All cells in some order, and how often the first of them occur, for each of the sizes."""

    likelier_from: Input
    order: NDArray[np.intp]
    hits: Floats
    runs: float
    other_hits: Floats
    other_runs: float


def _orders(
    likelier_from: Input, counts: Floats, other: Floats, own: Sequence[NDArray[np.intp]], sizes: NDArray[np.intp]
) -> list[_Order]:
    """By the likelihood ratio, and in the own order of numbers from both ends.

    ``counts`` have one row for each part of the runs. An order that is judged by the runs it was made from would look
    better than it is, so each part is counted in the order that the other parts suggest.
    """
    all_counts, all_other = counts.sum(axis=0), other.sum(axis=0)
    crossed = [
        _ranked(all_counts - part, all_other - part_of_other) for part, part_of_other in zip(counts, other, strict=True)
    ]
    pairs = [(_ranked(all_counts, all_other), crossed), *((order, [order] * _PARTS) for order in own)]
    return [
        _Order(
            likelier_from,
            order,
            _firsts(counts, by_part, sizes),
            all_counts.sum(),
            _firsts(other, by_part, sizes),
            all_other.sum(),
        )
        for order, by_part in pairs
    ]


def _ranked(counts: Floats, other: Floats) -> NDArray[np.intp]:
    """Cells in the order of the likelihood ratio, which is drawn towards one where counts are small."""
    return np.argsort((other + 1) / (counts + 1), kind="stable")


def _firsts(counts: Floats, orders: Sequence[NDArray[np.intp]], sizes: NDArray[np.intp]) -> Floats:
    """How often the first cells occur in all parts, for each of the sizes."""
    sums = [part[order].cumsum()[sizes - 1] for part, order in zip(counts, orders, strict=True)]
    return np.asarray(np.sum(sums, axis=0))


def _counts(cells: Cells, outputs: Outputs) -> Floats:
    """How often each cell occurs in each part of the runs."""
    part = np.arange(len(outputs)) % _PARTS
    counts = np.bincount(part * cells.count + cells.of(outputs), minlength=_PARTS * cells.count)
    return counts.reshape(_PARTS, cells.count).astype(np.float64)


def _cells(first: Outputs, second: Outputs) -> Cells:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        values = np.unique(np.concatenate([first, second]))
        if len(values) > _MOST_BREAKS:
            values = np.unique(np.quantile(np.concatenate([first, second]), _ranks(), method="closest_observation"))
        return _Ranges(values)
    seen = Counter(one for outputs in (first, second) for one in _listed(outputs))
    return _Values({value: code for code, value in enumerate(one for one, times in seen.items() if times > 1)})


def _ranks() -> Floats:
    """Ranks of numbers between which cells lie, from 0 to 1, closer together at both ends: telling outputs are rare."""
    return np.sin(np.linspace(0, np.pi / 2, _MOST_BREAKS)) ** 2


def _sizes(cells: int) -> NDArray[np.intp]:
    """How many cells an event may have; of many cells, only some numbers."""
    most = max(1, cells - 1)
    if most <= _MOST_SIZES:
        return np.arange(1, most + 1)
    return np.unique(np.geomspace(1, most, _MOST_SIZES).astype(np.intp))


def _listed(outputs: Outputs) -> list[Hashable]:
    return outputs.tolist() if isinstance(outputs, np.ndarray) else outputs


@dataclass(frozen=True, eq=False)
class _Ranges:
    """A division of all numbers into cells: from one break to below the next."""

    breaks: NDArray[Any]

    @property
    def count(self) -> int:
        return len(self.breaks) + 1

    def of(self, outputs: Outputs) -> NDArray[np.intp]:
        """The cell of each output."""
        return np.searchsorted(self.breaks, np.asarray(outputs), side="right")

    def words(self, taken: NDArray[np.bool_]) -> str:
        """Which outputs lie in the cells that are taken, in words that continue "the output"."""
        change = np.flatnonzero(np.diff(np.concatenate([[False], taken, [False]]).astype(int)))
        ranges = [self._range(int(start), int(end)) for start, end in zip(change[::2], change[1::2], strict=True)]
        more = [f"lies in {len(ranges) - _NAMED} more ranges"] if len(ranges) > _NAMED else []
        return ", or ".join(ranges[:_NAMED] + more) or "is none at all"

    def _range(self, start: int, end: int) -> str:
        if start == 0:
            return "is any number" if end == self.count else f"is below {self.breaks[end - 1]:.6g}"
        if end == self.count:
            return f"is at least {self.breaks[start - 1]:.6g}"
        return f"is from {self.breaks[start - 1]:.6g} to below {self.breaks[end - 1]:.6g}"


@dataclass(frozen=True, eq=False)
class _Values:
    """A division of outputs that are not numbers into cells: each one seen at least twice, and all others together."""

    codes: Mapping[Hashable, int]

    @property
    def count(self) -> int:
        return len(self.codes) + 1

    def of(self, outputs: Outputs) -> NDArray[np.intp]:
        other = len(self.codes)
        return np.fromiter((self.codes.get(one, other) for one in _listed(outputs)), dtype=np.intp, count=len(outputs))

    def words(self, taken: NDArray[np.bool_]) -> str:
        values = [value for value, code in self.codes.items() if taken[code]]
        named = [one_line(repr(value), _SHOWN) for value in values[:_NAMED]]
        if len(values) > _NAMED:
            named.append(f"one of {len(values) - _NAMED} more outputs")
        if taken[-1]:
            named.append("one that was seen at most once where events were looked for")
        return "is " + (", or ".join(named) or "none at all")


Cells = _Ranges | _Values


def _about_upper_limit(hits: Floats, runs: Floats, z: float) -> Floats:
    """About the Clopper-Pearson limit for the chance of a normal quantile z: enough to choose by, and quicker.

    The limit is (k + 1) F / (n - k + (k + 1) F) with F a quantile of an F law of 2 (k + 1) and 2 (n - k) degrees, whose
    cube root is nearly normal (Wilson and Hilferty).
    """
    misses = np.maximum(runs - hits, 1.0)
    a, b = 1 - 1 / (9 * (hits + 1)), 1 - 1 / (9 * misses)
    square = b * b - z * z * (1 - b)
    inside = np.maximum(0.0, a * a * b * b - square * (a * a - z * z * (1 - a)))
    root = (a * b + np.sqrt(inside)) / np.where(square > 0, square, 1.0)
    odds = (hits + 1) / misses * root**3
    return np.where((square > 0) & (hits < runs), odds / (1 + odds), 1.0)


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
