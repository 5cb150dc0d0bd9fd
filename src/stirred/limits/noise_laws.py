"""Laws of noise as a reader of an output sees them: how probable the output is, given each answer without noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import says_what_it_is_made_of
from stirred._shown import brief
from stirred.loss.argument_checks import Number, as_float

Array = NDArray[np.float64]
Range = tuple[float, float]
EVERYWHERE: Range = (-math.inf, math.inf)

FAR = 42.0
"""e^-42 is less than half a unit of rounding."""


@says_what_it_is_made_of
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
