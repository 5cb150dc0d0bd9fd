"""What somebody believes before an output is seen: a prior of theta, and a model of the data given theta."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.limits.densities import Density
from stirred.loss.argument_checks import as_floats, distribution
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


@says_what_it_takes
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
