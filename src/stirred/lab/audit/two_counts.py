"""Sharp lower bounds from two counts: an event in runs of a mechanism on one input, and in runs on another.

The plain bound puts the two Clopper-Pearson limits, each with half of the false-alarm rate, into what is measured. The
bound here looks at both counts together (Buehler 1957): it is the smallest measure among all pairs of probabilities
under which an outcome whose plain bound is at least as large as the one seen has more than the allowed probability.
Like the plain bound it exceeds the truth with at most the false-alarm rate, exactly and for any number of runs, and it
is never smaller: if the measure at (p, q) is below the plain bound that was seen, then under (p, q) plain bounds that
large have at most the allowed probability, since plain bounds are valid; so (p, q) is not among those pairs.

A thousandth of the false-alarm rate goes to an interval for the smaller probability, so that only pairs near the data
need a look (Berger and Boos 1994); the plain bound that is never undercut is that at the rest.

Let K be binomial (n, p) for the input that makes the event likelier and L binomial (m, q) for the other one. The
outcomes at least as telling as what was seen are {K >= cut(L)} with a cut that never falls, so their probability rises
with p and falls with q: everything else rests on that. Whatever is left out, is left out so that this probability comes
out larger.
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

from stirred._compiled import kernel
from stirred._lazy import later
from stirred.errors import parameter_out_of_range
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


EPSILON, RHO, POWER = 0, 1, 2
"""What is measured of two coins; see :func:`_measured`."""

NO_PROBABILITY = 2.0
"""Given by :func:`_largest_rare` where no probability is compatible with what was seen."""

_NO_MORE = 1e-24
"""Masses of outcomes that are not added up any more."""
_START = -55.0
"""The logarithm of the mass from which summing begins."""


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
        return self.parameter if self.kind == POWER else 0.0

    def at(self, p: float, q: float) -> float:
        """The measure for one pair of probabilities."""
        return float(_measured(self.kind, self.parameter, self.distance, float(p), float(q)))

    def largest(self, value: float, q: float) -> float:
        """The largest p, rounded up, whose measure against q is at most ``value``."""
        return float(_largest_kept(self.kind, self.parameter, self.distance, float(value), float(q)))

    def at_each(self, p: Floats, q: Floats) -> Floats:
        """The measure for several pairs."""
        results = np.empty(len(p))
        _measured_each(self.kind, self.parameter, self.distance, p, q, results)
        return results


def epsilon_at(delta: float, distance: int = 1) -> Measure:
    """The epsilon per unit of distance that two inputs ``distance`` apart need at this delta.

    >>> round(epsilon_at(0.0).at(0.75, 0.25), 4), round(epsilon_at(0.0, 2).at(0.75, 0.25), 4)
    (1.0986, 0.5493)
    """
    return Measure(EPSILON, float(delta), distance)


def rho_at(order: float, distance: int = 1) -> Measure:
    """The rho of zero-concentrated differential privacy that the Rényi divergence of one order needs.

    rho-zCDP bounds the divergence of every order a by rho a d^2 at distance d, and so between the two coins that an
    event makes of the outputs.
    """
    return Measure(RHO, float(order), distance)


def power_at(rate: float) -> Measure:
    """The power of a test with this false-alarm rate that looks at the event alone.

    >>> round(power_at(0.05).at(0.5, 0.1), 4)
    0.25
    """
    return Measure(POWER, float(rate))


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
    """The number, if it is a probability that is neither 0 nor 1; else refused."""
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
        _fill_cuts(measure.kind, measure.parameter, measure.distance, as_telling, lower, first, upper, cuts)
        return cls(seen, allowed, low, high, n, m, start, cuts)

    def at(self, p: float, q: float) -> float:
        """The probability of these outcomes."""
        return float(_tail_probability(p, q, self.runs, self.other_runs, self.start, self.cuts))

    def largest_rare(self, q: float, low: float, high: float) -> float:
        """The largest p at which they have at most the allowed probability; NO_PROBABILITY if even at 1."""
        found = _largest_rare(q, low, high, self.allowed, self.runs, self.other_runs, self.start, self.cuts)
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


# -- kernels -------------------------------------------------------------------------------------------------


@kernel
def _measured(kind, parameter, distance, p, q):  # type: ignore[no-untyped-def]
    """How much coins of success p and q tell apart two inputs; it never falls as p rises, and never rises with q.

    EPSILON: the smallest epsilon with p <= e^(d eps) q + delta (1 + e^eps + ... + e^((d-1) eps)), ``parameter`` being
    delta and d the distance; it may be negative. RHO: D_a(p || q) / (a d^2) with ``parameter`` the order a; below 0
    where p < q. POWER: the power of the best test with false-alarm rate ``parameter`` that looks at the coin.
    """
    if kind == EPSILON:
        return _epsilon(parameter, distance, p, q)
    if kind == RHO:
        if p <= q:
            return p - q
        return _divergence(parameter, p, q) / (parameter * distance * distance)
    if q >= parameter:
        return parameter * p / q
    return 1 - (1 - p) * (1 - parameter) / (1 - q)


@kernel
def _epsilon(delta, distance, p, q):  # type: ignore[no-untyped-def]
    if p <= delta:
        return -np.inf
    if q <= 0:
        return np.inf if delta == 0 or distance == 1 else _grouped_epsilon(delta, distance, p, 0.0)
    if delta == 0 or distance == 1:
        return math.log((p - delta) / q) / distance
    return _grouped_epsilon(delta, distance, p, q)


@kernel
def _grouped_epsilon(delta, distance, p, q):  # type: ignore[no-untyped-def]
    low = -50.0
    high = math.log((p - delta) / max(q, 1e-300)) / distance
    for _ in range(60):
        middle = (low + high) / 2
        total, power = 0.0, 1.0
        for _ in range(distance):
            total += power
            power *= math.exp(middle)
        if power * q + delta * total < p:
            low = middle
        else:
            high = middle
    return low


@kernel
def _divergence(order, p, q):  # type: ignore[no-untyped-def]
    """The Rényi divergence of a coin of success p from one of success q, where p > q."""
    if q <= 0:
        return np.inf
    log_ratio, other = math.log(p / q), math.log1p(-q) - (math.log1p(-p) if p < 1 else -np.inf)
    if order == 1:
        return p * log_ratio - ((1 - p) * other if p < 1 else 0.0)
    likely = math.log(p) + (order - 1) * log_ratio
    if p >= 1:
        return likely / (order - 1)
    unlikely = math.log1p(-p) - (order - 1) * other
    return (likely + math.log1p(math.exp(unlikely - likely))) / (order - 1)


@kernel
def _measured_each(kind, parameter, distance, p, q, results):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the measure of each pair of coins."""
    for i in range(len(p)):
        results[i] = _measured(kind, parameter, distance, p[i], q[i])


@kernel
def _fill_cuts(kind, parameter, distance, seen, low, first, high, results):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the smallest K, for each L, whose plain bound is at least ``seen``.

    ``low`` are lower limits of p for the counts from ``first`` on, ``high`` upper limits of q for the counts L. The cut
    never falls, so one walk through both is enough. Where K would lie below the window, the cut is 0.
    """
    j = 0
    for i in range(len(high)):
        while j < len(low) and _measured(kind, parameter, distance, low[j], high[i]) < seen:
            j += 1
        results[i] = first + j if j > 0 else 0


@kernel
def _tail_probability(p, q, n, m, start, cut):  # type: ignore[no-untyped-def]
    """P(K >= cut(L)); ``cut`` holds the cuts of ``start`` and what follows: 0 before, and as the last one after."""
    k, mass = _start(n, p)
    j, weight = _start(m, q)
    at_least, total = 0.0, 0.0
    while j >= 0:
        if j < start:
            at_least = 1.0
        else:
            least = cut[min(j - start, len(cut) - 1)]
            while k >= least and k >= 0 and (mass > _NO_MORE or k > n * p):
                at_least += mass
                mass *= k * (1 - p) / ((n - k + 1) * p) if k > 0 else 0.0
                k -= 1
        total += weight * at_least
        if weight < _NO_MORE and j < m * q:
            break
        weight *= j * (1 - q) / ((m - j + 1) * q) if j > 0 else 0.0
        j -= 1
    return min(total, 1.0)


@kernel
def _start(n, p):  # type: ignore[no-untyped-def]
    """The largest outcome of a binomial law whose mass is not negligible, and its mass."""
    if p <= 0:
        return 0, 1.0
    if p >= 1:
        return n, 1.0
    low, high = int(n * p), n + 1
    constant, up, down = math.lgamma(n + 1.0), math.log(p), math.log1p(-p)
    while high - low > 1:
        middle = (low + high) // 2
        if (
            constant - math.lgamma(middle + 1.0) - math.lgamma(n - middle + 1.0) + middle * up + (n - middle) * down
            < _START
        ):
            high = middle
        else:
            low = middle
    return low, math.exp(constant - math.lgamma(low + 1.0) - math.lgamma(n - low + 1.0) + low * up + (n - low) * down)


@kernel
def _largest_rare(q, low, high, chance, n, m, start, cut):  # type: ignore[no-untyped-def]
    """The largest p between ``low`` and ``high``, rounded down, at which the tail is at most ``chance``.

    NO_PROBABILITY where it is so even at 1: then no p is compatible with what was seen. The logarithm of the tail is
    nearly straight, so steps go where the line through both ends says, and to the middle where that gains little.
    """
    if high >= 1 and _tail_probability(1.0, q, n, m, start, cut) <= chance:
        return NO_PROBABILITY
    high = min(high, 1.0)
    near = 1e-4 * math.sqrt(high * (1 - low) / n) + 1e-15
    below, above, width = -np.inf, np.inf, np.inf
    while high - low > near:
        middle = (low + high) / 2
        if high - low < width / 2 and below > -np.inf and above < np.inf:
            middle = low + (high - low) * below / (below - above)
            middle = min(max(middle, low + near / 4), high - near / 4)
        width = high - low
        excess = math.log(max(_tail_probability(middle, q, n, m, start, cut), 1e-300) / chance)
        if excess <= 0:
            low, below = middle, excess
        else:
            high, above = middle, excess
    return low


@kernel
def _largest_kept(kind, parameter, distance, promise, q):  # type: ignore[no-untyped-def]
    """The largest p, rounded up, whose measure against q is at most ``promise``."""
    low, high = 0.0, 1.0
    if _measured(kind, parameter, distance, high, q) <= promise:
        return high
    while high - low > 1e-12 * high + 1e-18:
        middle = (low + high) / 2
        if _measured(kind, parameter, distance, middle, q) <= promise:
            low = middle
        else:
            high = middle
    return high
