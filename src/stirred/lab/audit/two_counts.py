"""Sharp lower bounds from two counts: an event in runs of a mechanism on one input, and in runs on another.

The plain bound puts the two Clopper-Pearson limits, each with half of the false-alarm rate, into what is measured. The
bound here looks at both counts together (Buehler 1957): it is the smallest measure among all pairs of probabilities
under which an outcome whose plain bound is at least as large as the one seen has more than the allowed probability.
Like the plain bound it exceeds the truth with at most the false-alarm rate, exactly and for any number of runs, and it
is never smaller: if the measure at (p, q) is below the plain bound that was seen, then under (p, q) plain bounds that
large have at most the allowed probability, since plain bounds are valid; so (p, q) is not among those pairs.

A thousandth of the false-alarm rate goes to an interval for the smaller probability, so that only pairs near the data
need a look (Berger and Boos 1994); the plain bound that is never undercut is that at the rest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.errors import parameter_out_of_range
from stirred.lab.audit import two_count_kernels as kernels
from stirred.lab.audit.two_count_kernels import NO_PROBABILITY
from stirred.loss.argument_checks import as_float

special = later("scipy.special")

Floats = NDArray[np.float64]

_INTERVAL = 1e-3
"""The part of the false-alarm rate for the interval of the smaller probability."""
_SAFE = 1 - 1e-6
"""By which the allowed probability is lowered, which covers rounding."""
_SPREAD = 7.0
"""Standard deviations around the data within which cuts are found; outside they are set on the safe side."""
_ROUND = 64
"""Windows of counts begin and end at multiples of this, so that limits that were computed serve again."""
_CELLS = 8
_MOST_CELLS = 200
_FINE = 0.03
"""The part of what is gained over the plain bound that may be given away to end the search."""


@dataclass(frozen=True)
class Counts:
    """An event that occurred ``hits`` times in ``runs`` runs on the input that makes it likelier, and on the other."""

    hits: int
    runs: int
    other_hits: int
    other_runs: int


@dataclass(frozen=True)
class Measure:
    """What is measured of the probabilities p and q of an event; it rises with p and falls with q.

    Made by :func:`epsilon_at`, :func:`rho_at` and :func:`power_at`.
    """

    kind: int
    parameter: float
    distance: int = 1

    @property
    def nothing(self) -> float:
        """What is measured where nothing is told apart."""
        return self.parameter if self.kind == kernels.POWER else 0.0

    def at(self, p: float, q: float) -> float:
        """The measure for one pair of probabilities."""
        return float(kernels.measure(self.kind, self.parameter, self.distance, float(p), float(q)))

    def largest(self, value: float, q: float) -> float:
        """The largest p, rounded up, whose measure against q is at most ``value``."""
        return float(kernels.largest_kept(self.kind, self.parameter, self.distance, float(value), float(q)))

    def at_each(self, p: Floats, q: Floats) -> Floats:
        """The measure for several pairs."""
        results = np.empty(len(p))
        kernels.measures(self.kind, self.parameter, self.distance, p, q, results)
        return results


def epsilon_at(delta: float, distance: int = 1) -> Measure:
    """The epsilon per unit of distance that two inputs ``distance`` apart need at this delta.

    >>> round(epsilon_at(0.0).at(0.75, 0.25), 4), round(epsilon_at(0.0, 2).at(0.75, 0.25), 4)
    (1.0986, 0.5493)
    """
    return Measure(kernels.EPSILON, float(delta), distance)


def rho_at(order: float, distance: int = 1) -> Measure:
    """The rho of zero-concentrated differential privacy that the Rényi divergence of one order needs.

    rho-zCDP bounds the divergence of every order a by rho a d^2 at distance d, and so between the two coins that an
    event makes of the outputs.
    """
    return Measure(kernels.RHO, float(order), distance)


def power_at(rate: float) -> Measure:
    """The power of a test with this false-alarm rate that looks at the event alone.

    >>> round(power_at(0.05).at(0.5, 0.1), 4)
    0.25
    """
    return Measure(kernels.POWER, float(rate))


def lower_limit(hits: int | NDArray[np.int64], runs: int, chance: float) -> Floats:
    """The Clopper-Pearson limit that is below the true probability except with ``chance`` at most.

    >>> lower_limit(0, 10, 0.05).item(), round(lower_limit(10, 10, 0.05).item(), 4)
    (0.0, 0.7411)
    """
    k = np.asarray(hits, dtype=np.float64)
    return np.where(k > 0, special.betaincinv(np.maximum(k, 1), runs - k + 1, chance), 0.0)


def upper_limit(hits: int | NDArray[np.int64], runs: int, chance: float) -> Floats:
    """The Clopper-Pearson limit that exceeds the true probability except with ``chance`` at most."""
    k = np.asarray(hits, dtype=np.float64)
    return np.where(k < runs, special.betainccinv(k + 1, np.maximum(runs - k, 1), chance), 1.0)


def joint_lower_bound(counts: Counts, measure: Measure, false_alarm: float) -> float:
    """A lower bound on the measure that exceeds the truth with at most the probability ``false_alarm``.

    >>> counts = Counts(hits=300, runs=1000, other_hits=100, other_runs=1000)
    >>> round(joint_lower_bound(counts, epsilon_at(0.0), 0.05), 3)
    0.908
    """
    if counts.hits * counts.other_runs <= counts.other_hits * counts.runs:
        return measure.nothing
    tail = _Tail.of(counts, measure, false_alarm)
    if tail.seen == -math.inf:
        return measure.nothing
    return max(measure.nothing, tail.seen, _smallest(tail, measure))


def joint_p_value(counts: Counts, measure: Measure, promise: float, false_alarm: float) -> float:
    """How probable an outcome as telling as this one is at most, if the measure is at most ``promise``.

    But for rounding it is below ``false_alarm`` where the lower bound at that rate is above the promise; it is never
    below a thousandth of the rate.
    """
    if counts.hits * counts.other_runs <= counts.other_hits * counts.runs:
        return 1.0
    tail = _Tail.of(counts, measure, false_alarm)
    return min(1.0, (_largest(tail, measure, promise) + _INTERVAL * false_alarm) / _SAFE)


def require_rate(name: str, value: float) -> float:
    """A probability that is neither 0 nor 1."""
    number = as_float(name, value, "between 0 and 1")
    if not 0 < number < 1:
        raise parameter_out_of_range(name, value, "between 0 and 1")
    return number


def require_distance(distance: int) -> None:
    """Refuse a distance of two inputs that is not a positive whole number."""
    if isinstance(distance, bool) or not isinstance(distance, int) or distance < 1:
        raise parameter_out_of_range("distance", distance, "a whole number that is at least 1")


# -- helpers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tail:
    """The outcomes whose plain bound is at least the one ``seen``, as cuts, and where q lies."""

    seen: float
    allowed: float
    low: float
    high: float
    runs: int
    other_runs: int
    start: int
    cuts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Counts, measure: Measure, false_alarm: float) -> _Tail:
        interval, allowed = _INTERVAL * false_alarm, (1 - _INTERVAL) * false_alarm * _SAFE
        k, n, j, m = counts.hits, counts.runs, counts.other_hits, counts.other_runs
        low = lower_limit(j, m, interval / 2).item()
        high = upper_limit(j, m, interval / 2).item()
        seen = measure.at(lower_limit(k, n, allowed / 2).item(), upper_limit(j, m, allowed / 2).item())
        start, end = _likely(low, high, m)
        first, last = _likely(min(k / n, measure.largest(seen, low)), max(k / n, measure.largest(seen, high)), n)
        lower, upper = _lower_limits(first, last, n, allowed / 2), _upper_limits(start, end, m, allowed / 2)
        cuts = np.empty(len(upper), dtype=np.int64)
        # A little below what was seen: the outcome that was seen must be counted whatever is rounded.
        as_telling = seen - 1e-12 * (1 + abs(seen))
        kernels.cuts(measure.kind, measure.parameter, measure.distance, as_telling, lower, first, upper, cuts)
        return cls(seen, allowed, low, high, n, m, start, cuts)

    def at(self, p: float, q: float) -> float:
        """The probability of these outcomes."""
        return float(kernels.tail(p, q, self.runs, self.other_runs, self.start, self.cuts))

    def largest_rare(self, q: float, low: float, high: float) -> float:
        """The largest p at which they have at most the allowed probability; NO_PROBABILITY if even at 1."""
        found = kernels.largest_rare(q, low, high, self.allowed, self.runs, self.other_runs, self.start, self.cuts)
        return float(found)


def _likely(low: float, high: float, runs: int) -> tuple[int, int]:
    """The first count that is likely if a probability lies between two, and the one after the last; rounded apart."""
    first = runs * low - _SPREAD * math.sqrt(runs * low * (1 - low)) - _SPREAD**2
    last = runs * high + _SPREAD * math.sqrt(runs * high * (1 - high)) + _SPREAD**2
    return max(0, math.floor(first / _ROUND) * _ROUND), min(runs, math.ceil(last / _ROUND) * _ROUND) + 1


@lru_cache(maxsize=32)
def _lower_limits(first: int, end: int, runs: int, chance: float) -> Floats:
    """Limits of all counts from one to below another: kept, as several measures of one event need the same."""
    return lower_limit(np.arange(first, end), runs, chance)


@lru_cache(maxsize=32)
def _upper_limits(first: int, end: int, runs: int, chance: float) -> Floats:
    return upper_limit(np.arange(first, end), runs, chance)


def _smallest(tail: _Tail, measure: Measure) -> float:
    """The smallest measure of pairs under which the tail has more than the allowed probability, rounded down.

    The largest p at which it has not rises with q, so between two values of q the measure is at least that of the p of
    the smaller one against the larger one.
    """

    def largest_rare(q: float, low: float, high: float) -> float:
        return tail.largest_rare(q, low, high) if low < NO_PROBABILITY else NO_PROBABILITY

    def least(q: float, p: float, next_q: float, next_p: float) -> float:
        return measure.at(p, next_q) if p < NO_PROBABILITY else math.inf

    plain = max(tail.seen, measure.nothing)
    return _search(tail, largest_rare, least, lambda best: _FINE * max(0.0, best - plain))


def _largest(tail: _Tail, measure: Measure, promise: float) -> float:
    """The largest probability of the tail among pairs whose measure is at most ``promise``, rounded up."""

    def largest_kept(q: float, low: float, high: float) -> float:
        return measure.largest(promise, q)

    def least(q: float, p: float, next_q: float, next_p: float) -> float:
        return -tail.at(next_p, q)

    return -_search(tail, largest_kept, least, lambda best: -_FINE * best)


def _search(
    tail: _Tail,
    p_at: Callable[[float, float, float], float],
    least: Callable[[float, float, float, float], float],
    close: Callable[[float], float],
) -> float:
    """A lower bound on the smallest value of a function of q and of a p that rises with q.

    ``p_at`` gives that p between two others, ``least`` a lower bound from one q and p to the next. The interval with
    the lowest bound is halved until it is ``close`` to a value that is attained.
    """
    edges = [float(q) for q in np.linspace(tail.low, tail.high, _CELLS + 1)]
    found = [p_at(edges[0], 0.0, 1.0)]
    for q in edges[1:]:
        found.append(p_at(q, found[-1], 1.0))
    points = list(zip(edges, found, strict=True))
    cells = [(least(*one, *other), *one, *other) for one, other in pairwise(points)]
    heapq.heapify(cells)
    best = min(least(*point, *point) for point in points)
    for _ in range(_MOST_CELLS):
        bound, q, p, next_q, next_p = cells[0]
        if best - bound <= close(best):
            break
        middle = (q + next_q) / 2
        middle_p = p_at(middle, p, next_p)
        best = min(best, least(middle, middle_p, middle, middle_p))
        heapq.heapreplace(cells, (least(q, p, middle, middle_p), q, p, middle, middle_p))
        heapq.heappush(cells, (least(middle, middle_p, next_q, next_p), middle, middle_p, next_q, next_p))
    return cells[0][0]
