"""What somebody believes before an output is seen: a prior of theta, a model of the data given theta, a law of noise.

Noise is seen as a reader of an output sees it: how probable the output is, given each answer without noise. A
:class:`Listing` has the data of a model as a list, with how probable an output is given each of them, for sums over
the data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.limits.densities import Density
from stirred.loss.argument_checks import Number, as_float, as_floats, distribution
from stirred.noise.source import RandomSource

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
Sampler = Callable[[int], Array]

CELLS = 1024
NEWTON = 12
LARGEST = 100_000
"""Counts and listed values of the data: at most so many."""


@brief
@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed about theta before anything is seen; it must be proper, that is, have total probability 1.

    Make one with :meth:`of`, :meth:`function`, :meth:`listed` or :meth:`drawn`.

    >>> Prior.of(Density.gamma(3, 1)).density(np.array([2.0])).round(6).tolist()
    [0.270671]
    """

    name: str
    density: Function | None = None
    breaks: tuple[float, ...] = ()
    values: Array | None = None
    probabilities: Array | None = None
    draw: Callable[[int, RandomSource], Array] | None = None

    @classmethod
    def of(cls, density: Density) -> Prior:
        """A density of :class:`Density`; one that tells its mass between two points can also be drawn from."""
        inverse = None if density.between is None else _inverse(density)
        return cls("a density", density, density.breaks, draw=inverse)

    @classmethod
    def function(
        cls,
        density: Function,
        low: float = -math.inf,
        high: float = math.inf,
        breaks: Sequence[float] = (),
        draw: Sampler | None = None,
    ) -> Prior:
        """A density given as a function of an array, 0 outside of ``low`` and ``high``.

        ``breaks`` are points where it jumps, has a corner or a narrow peak. ``draw(size)`` gives independent values of
        it, by a generator of your own; without it there is no rejection sampling.
        """
        ends = (float(low), *sorted(float(at) for at in breaks), float(high))
        if not all(a < b for a, b in itertools.pairwise(ends)):
            raise errors.not_a_prior("its ends and breaks do not increase")

        def evaluated(theta: Array) -> Array:
            at = np.asarray(theta, dtype=np.float64)
            values = np.broadcast_to(np.asarray(density(at), dtype=np.float64), at.shape)
            return np.where((at >= ends[0]) & (at <= ends[-1]), values, 0.0)

        return cls("a function", evaluated, ends, draw=_by(draw))

    @classmethod
    def listed(cls, values: ArrayLike, probabilities: ArrayLike) -> Prior:
        """Finitely many values, with their probabilities."""
        at, chances = as_floats("values", values, "numbers"), distribution("The prior", probabilities)
        if at.shape != chances.shape or len(np.unique(at)) != len(at) or not bool(np.all(np.isfinite(at))):
            raise errors.not_a_prior("there must be one probability for each value, and each value once")
        order = np.argsort(at)
        at, chances = at[order], chances[order] / math.fsum(chances)
        ends = np.cumsum(chances)

        def draw(size: int, source: RandomSource) -> Array:
            place = np.searchsorted(ends, uniforms(size, source) * ends[-1], side="right")
            return np.asarray(at[np.minimum(place, len(at) - 1)])

        return cls("a list", values=at, probabilities=chances, draw=draw)

    @classmethod
    def drawn(cls, draw: Sampler) -> Prior:
        """A prior that can only be drawn from: ``draw(size)`` gives so many independent values, one in each row."""
        return cls("a sampler", draw=_by(draw))


@brief
@dataclass(frozen=True, eq=False)
class DataModel:
    """The law of the data x given theta: make one with :meth:`counts`, :meth:`listed` or :meth:`drawn`.

    ``pmf(x, theta)`` takes arrays that broadcast and gives probabilities that sum to 1 over x.
    """

    name: str
    pmf: Callable[[Array, Array], Array] | None = None
    values: Array | None = None
    low: int = 0
    draw: Function | None = None

    @classmethod
    def counts(cls, pmf: Callable[[Array, Array], Array], low: int = 0) -> DataModel:
        """Whole numbers from ``low`` on, without an upper end.

        >>> from scipy import stats
        >>> DataModel.counts(stats.poisson.pmf).probabilities(np.arange(3.0), np.array([1.0])).round(4).tolist()
        [[0.3679, 0.3679, 0.1839]]
        """
        if isinstance(low, bool) or not isinstance(low, int | np.integer):
            raise errors.parameter_out_of_range("low", low, "a whole number")
        return cls("counts", pmf, low=int(low))

    @classmethod
    def listed(cls, values: ArrayLike, pmf: Callable[[Array, Array], Array]) -> DataModel:
        """Finitely many values of x."""
        at = as_floats("values", values, "numbers")
        if at.ndim != 1 or not 0 < len(at) <= LARGEST or len(np.unique(at)) != len(at):
            raise errors.parameter_out_of_range("values", "none, too many or one twice", f"up to {LARGEST} numbers")
        return cls("a list", pmf, values=at)

    @classmethod
    def drawn(cls, draw: Function) -> DataModel:
        """Data that can only be drawn: ``draw(theta)`` gives one dataset for each theta, in rows, by a generator of
        your own. The query takes all of them at once."""
        return cls("a sampler", draw=draw)

    def probabilities(self, x: Array, theta: Array) -> Array:
        """P(x | theta), a row for each theta and a column for each x."""
        assert self.pmf is not None
        shape = (len(theta), len(x))
        with np.errstate(all="ignore"):
            found = np.broadcast_to(np.asarray(self.pmf(x[None, :], theta[:, None]), dtype=np.float64), shape)
        if not bool(np.all((found >= 0) & (found <= 1 + 1e-9))):
            raise errors.parameter_out_of_range("The model", "below 0, above 1 or not a number", "probabilities of x")
        return found


def uniforms(size: int, source: RandomSource) -> Array:
    """Independent uniform numbers of 53 bits, from 0 to below 1."""
    words = np.frombuffer(source.take(8 * size), dtype="<u8")
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)


@refuses_wrong_arguments
def clamp_to(low: float, high: float) -> Function:
    """The query that cuts off below ``low`` and above ``high``, as in Example 5.6.5.

    >>> clamp_to(0, 6)(np.array([-1.0, 4.0, 9.0])).tolist()
    [0.0, 4.0, 6.0]
    """
    a, b = float(low), float(high)
    if not a < b:
        raise errors.parameter_out_of_range("The clamp", f"[{a:g}, {b:g}]", "an upper end above the lower one")
    return Clamp(a, b)


@dataclass(frozen=True)
class Clamp:
    """Cuts off below ``low`` and above ``high``; whoever computes with it knows that nothing changes beyond."""

    low: float
    high: float

    def __call__(self, x: Array) -> Array:
        return np.clip(np.asarray(x, dtype=np.float64), self.low, self.high)


# -- helpers -------------------------------------------------------------------------------------------------


def _by(draw: Sampler | None) -> Callable[[int, RandomSource], Array] | None:
    if draw is None:
        return None
    return lambda size, source: np.asarray(draw(size))


def _inverse(density: Density) -> Callable[[int, RandomSource], Array]:
    """Draws by inversion: the place below which the mass is a uniform number.

    It is bracketed by a table and then found by Newton's steps or, where they leave the bracket, by halving the floats
    in it, until it is known to the last digits.
    """
    first, last = density.breaks[0], density.breaks[-1]
    between = density.between
    assert between is not None
    total = float(between(np.array([first]), np.array([last]))[0])

    def missing(at: Array, u: Array) -> Array:
        """The mass below less what is wanted; in the upper half from above, where small masses are precise."""
        with np.errstate(all="ignore"):
            below = between(np.full(len(at), first), at) - u
            above = (total - u) - between(at, np.full(len(at), last))
        return np.where(u < total / 2, below, above)

    def found(u: Array, low: Array, high: Array) -> Array:
        at, open_ = high.copy(), np.arange(len(u))
        for step in range(NEWTON + 64):
            middle = _middle(low[open_], high[open_])
            if step < NEWTON:
                with np.errstate(all="ignore"):
                    better = at[open_] - missing(at[open_], u[open_]) / density(at[open_])
                middle = np.where((better > low[open_]) & (better < high[open_]), better, middle)
            off = missing(middle, u[open_])
            low[open_], high[open_] = np.where(off < 0, middle, low[open_]), np.where(off < 0, high[open_], middle)
            at[open_] = middle
            # Settled to the digits that masses have, or to two neighbouring floats.
            precise = np.abs(off) <= 2.0**-50 * np.minimum(u[open_], total - u[open_])
            open_ = open_[~(precise | (np.nextafter(low[open_], math.inf) >= high[open_]))]
            if not len(open_):
                break
        return at

    @lru_cache(maxsize=1)
    def table() -> Array:
        u = np.arange(1, CELLS) / CELLS * total
        inner = found(u, np.full(len(u), first), np.full(len(u), last))
        return np.concatenate([[first], np.maximum.accumulate(inner), [last]])

    def draw(size: int, source: RandomSource) -> Array:
        u = uniforms(size, source) + 2.0**-54
        cell = (u * CELLS).astype(np.int64)
        # One cell more on either side: entries of the table are rounded.
        ends = table()
        return found(u * total, ends[np.maximum(cell - 1, 0)].copy(), ends[np.minimum(cell + 2, CELLS)].copy())

    return draw


def _middle(low: Array, high: Array) -> Array:
    """The float in the middle of all floats between two."""
    a, b = _ordinals(low), _ordinals(high)
    return _floats((a >> 1) + (b >> 1) + (a & b & 1))


def _ordinals(numbers: Array) -> NDArray[np.int64]:
    """Floats as whole numbers in the same order."""
    bits = np.asarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _floats(ordinals: NDArray[np.int64]) -> Array:
    return np.where(ordinals < 0, np.int64(-(2**63)) - ordinals, ordinals).view(np.float64)


Range = tuple[float, float]
EVERYWHERE: Range = (-math.inf, math.inf)

FAR = 42.0
"""e^-42 is less than half a unit of rounding."""


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """The density, or the probability, of an output given an answer.

    ``log_density`` takes an output and an array of answers; ``log_highest`` an output and the range in which answers
    lie, and gives a number that no log density of this output exceeds. Rejection sampling rests on it.

    >>> law = NoiseLaw.laplace(6)  # an answer within a range of 6, epsilon 1
    >>> np.exp(law.log_density(3.0, np.array([3.0, 0.0]))).round(6).tolist()
    [0.083333, 0.050544]
    """

    name: str
    log_density: Callable[[float, Array], Array]
    log_highest: Callable[[float, Range], float]
    reach: float = math.inf
    """So far from the nearest possible answer the density is at most e^-42 of what it is there; infinite if unknown."""

    @classmethod
    def laplace(cls, scale: Number) -> NoiseLaw:
        """Laplace noise: e^(-|t - q| / scale) / (2 scale). With scale D/epsilon it is epsilon-DP for answers that
        change by at most D."""
        b = _positive("scale", scale)
        return cls._symmetric(f"Laplace noise of scale {b:g}", lambda away: -away / b - math.log(2 * b), FAR * b)

    @classmethod
    def discrete_laplace(cls, scale: Number) -> NoiseLaw:
        """Laplace noise on the whole numbers, also called geometric: tanh(1 / (2 scale)) e^(-|k| / scale)."""
        b = _positive("scale", scale)
        at_zero = math.log(math.tanh(1 / (2 * b)))
        return cls._symmetric(f"discrete Laplace noise of scale {b:g}", lambda away: -away / b + at_zero, FAR * b, True)

    @classmethod
    def discrete_gaussian(cls, variance: Number) -> NoiseLaw:
        """Gaussian noise on the whole numbers: proportional to e^(-k^2 / (2 variance))."""
        v = _positive("variance", variance)
        total = math.log(_gaussian_total(v))
        name = f"discrete Gaussian noise with variance parameter {v:g}"
        return cls._symmetric(name, lambda away: -away * away / (2 * v) - total, math.sqrt(2 * FAR * v), True)

    @classmethod
    def gaussian(cls, variance: Number) -> NoiseLaw:
        """Gaussian noise."""
        v = _positive("variance", variance)
        total = math.log(2 * math.pi * v) / 2
        name = f"Gaussian noise of variance {v:g}"
        return cls._symmetric(name, lambda away: -away * away / (2 * v) - total, math.sqrt(2 * FAR * v))

    @classmethod
    def of_density(cls, density: Callable[[float, Array], Array], highest: Number, name: str = "noise") -> NoiseLaw:
        """Noise of one's own: ``density(output, answers)``, and a number that it never exceeds.

        It need not depend on the difference, so that randomised response is one, too.
        """
        top = math.log(_positive("highest", highest))

        def log_density(output: float, answers: Array) -> Array:
            values = np.broadcast_to(np.asarray(density(output, answers), dtype=np.float64), answers.shape)
            if not bool(np.all((values >= 0) & (values <= math.exp(top) * (1 + 1e-9)))):
                wanted = "at least 0 and nowhere above what was given as its highest value"
                raise errors.parameter_out_of_range("The density of the noise", "out of range somewhere", wanted)
            with np.errstate(divide="ignore"):
                return np.minimum(np.log(values), top)

        return cls(name, log_density, lambda output, answers: top)

    @classmethod
    def _symmetric(cls, name: str, falling: Callable[[Array], Array], reach: float, whole: bool = False) -> NoiseLaw:
        """A law of the distance from the answer by its logarithm, which is concave and falls."""

        def log_density(output: float, answers: Array) -> Array:
            away = np.abs(output - np.asarray(answers, dtype=np.float64))
            logs = falling(away)
            return np.where(away == np.floor(away), logs, -math.inf) if whole else logs

        def log_highest(output: float, answers: Range) -> float:
            nearest = min(max(output, answers[0]), answers[1])
            return float(falling(np.abs(np.float64(output - nearest))))

        return cls(name, log_density, log_highest, reach)


def _gaussian_total(variance: float) -> float:
    """The sum of e^(-k^2 / (2 variance)) over the whole numbers; where many count, by Poisson's formula."""
    if variance >= 1:
        k = np.arange(1, 8)
        return math.sqrt(2 * math.pi * variance) * (1 + 2 * float(np.sum(np.exp(-2 * (math.pi * k) ** 2 * variance))))
    k = np.arange(1, 60)
    return 1 + 2 * float(np.sum(np.exp(-k * k / (2 * variance))))


def _positive(name: str, value: Number) -> float:
    number = as_float(name, value, "above 0 and finite")
    if not 0 < number < math.inf:
        raise errors.parameter_out_of_range(name, value, "above 0 and finite")
    return number


Query = Callable[[Array], Array] | None

FIRST_COUNTS = 64
MORE = 4
MOST_COUNTS = 4_096
"""Where nobody knows which counts matter, the first 64, 256, ... are listed, up to these."""

AT_ONCE = 4_000_000
"""Probabilities of x that are held in memory."""

SUMMED = 1e-12
"""Listed probabilities that add up to 1 within this are taken for all of them: sums are rounded."""


def log_densities(noise: NoiseLaw, output: float, query: Query, x: Array) -> Array:
    """ln g(t | q(x)) for each dataset."""
    answers = np.asarray(x if query is None else query(x), dtype=np.float64)
    if answers.shape != x.shape[:1] or not bool(np.all(np.isfinite(answers))):
        raise errors.parameter_out_of_range(
            "The query", "not one number for each dataset", "one finite number for each"
        )
    return np.asarray(noise.log_density(output, answers), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Listing:
    """Data x with their weights, g(t | q(x)) over e^log_top, which no g of this output exceeds."""

    model: DataModel
    x: Array
    weights: Array
    log_top: float
    rest: float | None
    """The weight of all data that are not listed, where it is known; 0 where there are none."""
    outside: float = 1.0
    """Else a bound on the weights of data that are not listed."""

    @classmethod
    def of(cls, model: DataModel, noise: NoiseLaw, output: float, query: Query, count: int) -> Listing:
        """All data of a list; counts up to the end of a clamp; with noise of a known reach all counts that matter; else
        the first ``count``."""
        if model.pmf is None:
            raise errors.posterior_needs("A sum over the data", "P(x | theta): counts or a list of data")
        if model.values is not None:
            logs = log_densities(noise, output, query, model.values)
            return cls._of(model, model.values, logs, float(np.max(logs)), lambda weights: 0.0)
        if isinstance(query, Clamp):
            last = max(model.low, math.ceil(query.high))
            if last - model.low >= LARGEST:
                raise errors.parameter_out_of_range("The clamp", f"up to {last:,}", f"at most {LARGEST:,} counts")
            x = np.arange(model.low, last + 1, dtype=np.float64)
            logs = log_densities(noise, output, query, x)
            return cls._of(model, x, logs, float(np.max(logs)), lambda weights: float(weights[-1]))
        if query is None and noise.reach <= LARGEST / 2:
            nearest = max(model.low, math.ceil(output))
            x = np.arange(max(model.low, nearest - math.ceil(noise.reach) - 1), nearest + math.ceil(noise.reach) + 1.0)
            top = float(noise.log_highest(output, (float(model.low), math.inf)))
            found = cls._of(model, x, log_densities(noise, output, query, x), top, lambda weights: None)
            if not found.weights.any():
                raise errors.impossible_output()
            return replace(found, outside=math.exp(-FAR))
        x = np.arange(model.low, model.low + count, dtype=np.float64)
        answers = EVERYWHERE if query is not None else (float(model.low), math.inf)
        top = float(noise.log_highest(output, answers))
        return cls._of(model, x, log_densities(noise, output, query, x), top, lambda weights: None)

    @classmethod
    def _of(cls, model: DataModel, x: Array, logs: Array, top: float, rest: Callable[[Array], float | None]) -> Listing:
        if top == -math.inf:
            raise errors.impossible_output()
        weights = np.exp(logs - top)
        return cls(model, x, weights, top, rest(weights))

    def likelihood(self, theta: Array) -> tuple[Array, Array]:
        """p(t | theta) over e^log_top from the listed data, and the most that all others may add."""
        listed, left = np.empty(len(theta)), np.zeros(len(theta))
        step = max(1, AT_ONCE // len(self.x))
        for start in range(0, len(theta), step):
            part = slice(start, start + step)
            chances = self.model.probabilities(self.x, theta[part])
            missing = np.maximum(0.0, 1 - chances.sum(axis=1))
            listed[part] = chances @ self.weights
            if self.rest is None:
                left[part] = np.where(missing > SUMMED, missing * self.outside, 0.0)
            else:
                listed[part] += missing * self.rest
        return listed, left
