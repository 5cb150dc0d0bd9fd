"""Densities on the line: monotone between breaks, with the mass between two points where it is known.

:mod:`stirred.lab.limits.distances_of_densities` compares them.

Keep in mind: a piece is looked at in 65 points and then trusted to be monotone. A spike between
them goes unnoticed, and whatever is computed from such a function means nothing; put a break at every turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._lazy import later

special = later("scipy.special")

Array = NDArray[np.float64]
Function = Callable[[Array], Array]


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class Density:
    """A density with respect to length, zero outside its breaks; it need not integrate to one.

    ``pieces`` holds a function for each interval between ``breaks``, monotone and continuous there up to both ends,
    which is checked in some points only.
    ``between`` is the mass between two points, where it is known; with an infinite break it must be. It should be
    precise in both tails, where differences of a distribution function are not.

    >>> triangle = Density((lambda t: t, lambda t: 2 - t), (0, 1, 2))
    >>> flat = Density((lambda t: 0 * t + 0.5,), (0, 2))
    >>> triangle(np.array([0.5, 1.5, 3.0])).tolist(), flat(1.5).tolist()
    ([0.5, 0.5, 0.0], 0.5)
    """

    pieces: tuple[Function, ...]
    breaks: tuple[float, ...]
    between: Callable[[Array, Array], Array] | None = None
    family: tuple[str, float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "breaks", tuple(float(at) for at in self.breaks))
        object.__setattr__(self, "pieces", tuple(self.pieces))
        if len(self.breaks) != len(self.pieces) + 1 or not self.pieces:
            raise errors.not_a_density("This function", "there must be one piece between every two breaks")
        if not all(a < b for a, b in zip(self.breaks, self.breaks[1:], strict=False)):
            raise errors.not_a_density("This function", "its breaks do not increase")
        if self.between is None and math.isinf(self.breaks[-1] - self.breaks[0]):
            raise errors.not_a_density("This function", "it has no end, and nothing tells its mass between two points")
        positive = False
        for number, (a, b) in enumerate(zip(self.breaks, self.breaks[1:], strict=False)):
            values = self._evaluated(number, _spread(a, b))
            rounding = 1e-12 * np.max(np.abs(values), initial=0.0)
            if not bool(np.all(values >= 0)):
                raise errors.not_a_density("This function", "it is negative or not a number somewhere")
            if np.any(np.diff(values) > rounding) and np.any(np.diff(values) < -rounding):
                raise errors.not_a_density("This function", "it rises and falls between two of its breaks")
            positive = positive or bool(np.any(values > 0))
        if not positive:
            raise errors.not_a_density("This function", "it is 0 everywhere")

    @classmethod
    def laplace(cls, location: float, scale: float) -> Density:
        """e^(-|t - location| / scale) / (2 scale)."""
        a, b = float(location), _positive("scale", scale)

        def lower_tail(z: Array) -> Array:
            return np.where(z < 0, np.exp(np.minimum(z, 0.0)) / 2, 1 - np.exp(-np.maximum(z, 0.0)) / 2)

        pieces = (lambda t: np.exp(-np.abs(t - a) / b) / (2 * b),) * 2
        mass = _symmetric(lower_tail, a, b)
        return cls(pieces, (-math.inf, a, math.inf), mass, ("laplace", a, b))

    @classmethod
    def normal(cls, location: float, scale: float) -> Density:
        """The normal density with this mean and standard deviation."""
        a, b = float(location), _positive("scale", scale)
        height = 1 / (b * math.sqrt(2 * math.pi))
        pieces = (lambda t: np.exp(-(((t - a) / b) ** 2) / 2) * height,) * 2
        return cls(pieces, (-math.inf, a, math.inf), _symmetric(special.ndtr, a, b), ("normal", a, b))

    @classmethod
    def gamma(cls, shape: float, rate: float) -> Density:
        """rate^shape t^(shape - 1) e^(-rate t) / Gamma(shape) for t > 0; the shape is at least 1."""
        k, r = _positive("shape", shape), _positive("rate", rate)
        if k < 1:
            raise errors.parameter_out_of_range("shape", shape, "at least 1")
        mode = (k - 1) / r

        def density(t: Array) -> Array:
            at = np.where(t > 0, t, 1.0)
            inside = np.exp(k * math.log(r) + (k - 1) * np.log(at) - r * at - special.gammaln(k))
            return np.where(t > 0, inside, r if k == 1 else 0.0)

        def between(left: Array, right: Array) -> Array:
            x, y = r * np.maximum(left, 0.0), r * np.maximum(right, 0.0)
            upper, lower = (
                special.gammaincc(k, x) - special.gammaincc(k, y),
                special.gammainc(k, y) - special.gammainc(k, x),
            )
            return np.asarray(np.where(left >= mode, upper, lower))

        breaks = (0.0, mode, math.inf) if mode > 0 else (0.0, math.inf)
        return cls((density,) * (len(breaks) - 1), breaks, between, ("gamma", k, r))

    @classmethod
    def linear(cls, knots: Sequence[float], ends: Sequence[tuple[float, float]]) -> Density:
        """Straight between knots: for each interval the values at its left and right end; it may jump at a knot."""
        at = [float(knot) for knot in knots]
        if len(ends) != len(at) - 1:
            raise errors.not_a_density("This function", "there must be two values for every interval between knots")

        def line(a: float, b: float, left: float, right: float) -> Function:
            return lambda t: left * ((b - t) / (b - a)) + right * ((t - a) / (b - a))

        cells = list(zip(at, at[1:], ends, strict=False))
        lines = tuple(line(a, b, float(left), float(right)) for a, b, (left, right) in cells)

        def between(left: Array, right: Array) -> Array:
            total = np.zeros(np.shape(left))
            for (a, b, _), one in zip(cells, lines, strict=True):
                x, y = np.clip(left, a, b), np.clip(right, a, b)
                total += (y - x) * (one(x) + one(y)) / 2
            return total

        return cls(lines, tuple(at), between)

    def restricted(self, low: float, high: float) -> Density:
        """The density between two points, nothing outside. Its mass is what is left: it is not normalised."""
        a, b = max(float(low), self.breaks[0]), min(float(high), self.breaks[-1])
        if not a < b:
            raise errors.not_a_density("This function", "nothing of it lies between these points")
        inner = [at for at in self.breaks if a < at < b]
        first = int(np.searchsorted(self.breaks, a, side="right")) - 1
        whole = self.between

        def between(left: Array, right: Array) -> Array:
            assert whole is not None
            return whole(np.clip(left, a, b), np.clip(right, a, b))

        pieces = self.pieces[first : first + len(inner) + 1]
        return Density(pieces, (a, *inner, b), None if whole is None else between)

    def __call__(self, t: float | Array) -> Array:
        """The density at points; at a break that of the piece to its right."""
        at = np.atleast_1d(np.asarray(t, dtype=np.float64))
        result = np.zeros(at.shape)
        for number, (a, b) in enumerate(zip(self.breaks, self.breaks[1:], strict=False)):
            inside = (at >= a) & ((at < b) | ((at == b) & (b == self.breaks[-1])))
            result[inside] = self._evaluated(number, at[inside])
        return result.reshape(np.shape(t))

    def _evaluated(self, number: int, t: Array) -> Array:
        finite = np.isfinite(t)
        values = np.zeros(len(t))  # nothing is left at infinity
        values[finite] = self.pieces[number](t[finite])
        return values

    def on(self, left: Array, right: Array) -> tuple[Array, Array]:
        """The values at both ends of cells that hold no break inside."""
        values = np.zeros((2, len(left)))
        number = np.searchsorted(self.breaks, left, side="right") - 1
        for one in range(len(self.pieces)):
            here = number == one
            if bool(np.any(here)):
                values[0, here] = self._evaluated(one, left[here])
                values[1, here] = self._evaluated(one, right[here])
        return values[0], values[1]


# -- helpers -------------------------------------------------------------------------------------------------


def _spread(a: float, b: float) -> Array:
    """Points between two breaks, in order, to look at a function."""
    away = np.append(0.0, np.geomspace(1e-3, 1e6, 64))
    if math.isinf(a) and math.isinf(b):
        return np.append(-away[::-1], away)
    if math.isinf(a):
        return b - away[::-1]
    return a + away if math.isinf(b) else np.linspace(a, b, 65)


def _symmetric(lower_tail: Function, location: float, scale: float) -> Callable[[Array, Array], Array]:
    """The mass between two points of a law that is symmetric about its location, precise in both tails."""

    def between(left: Array, right: Array) -> Array:
        x, y = (left - location) / scale, (right - location) / scale
        flipped = x > 0
        return np.asarray(lower_tail(np.where(flipped, -x, y)) - lower_tail(np.where(flipped, -y, x)))

    return between


def _positive(name: str, value: float) -> float:
    number = float(value)
    if not 0 < number < math.inf:
        raise errors.parameter_out_of_range(name, value, "positive and finite")
    return number
