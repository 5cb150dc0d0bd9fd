"""The law of an estimate's error, with certified probabilities, and the intervals of whole numbers made from it.

An error is a weighted sum of independent whole numbers, each with a law that is symmetric about zero:

=========  =================================================================
gaussian   P(k) proportional to exp(-k^2 / (2 s)), s the *parameter*
geometric  P(k) proportional to exp(-|k| / s), s the *parameter*
=========  =================================================================

Weights are rounded to multiples of one step, so that the rounded error is a whole number of steps and its law is found
by convolution. Where the weights have a common step (a plain sum, thirds) nothing is rounded but the last digits.

What is not exact is bounded and counted against the interval:

* Probabilities are sums of products of positive floating-point numbers, so relative errors add up (``relative``).
* Values left out far in the tails weigh at most ``lost``.
* The true error is within ``blur`` of the rounded one but for a probability that is part of ``lost``. A discrete
  Gaussian has a moment generating function of at most exp(s t^2 / 2), so what rounding leaves, a weighted sum of
  variance proxy v, exceeds ``blur`` with probability at most 2 exp(-blur^2 / 2 v). Geometric noise is bounded by its
  furthest value that is listed.

Intervals are of whole numbers and contain the truth at least as often as they say. Noise on a cell is a discrete
Gaussian with parameter s: P(k) proportional to exp(-k^2 / 2s). What a release states as its variance is s. The law's
own variance is smaller, by less than one part in four million from s = 1 on but noticeably below (0.215 for s = 1/4),
while s bounds its moment generating function like that of a normal law. So we compute with s: variances of estimates
are exact where noise has parameters of 1 and more, and safe below.

Counts are whole numbers, so intervals are too. Where the noise in an estimate is a sum of few terms its law is listed,
and the interval holds the whole numbers within the smallest distance that the error keeps often enough, and always the
nearest one (*exact*).
Elsewhere it holds all whole numbers within half a unit of the normal interval (*normal*): the half covers the lattice,
whose steps are the weights of single measurements, as long as none is above one. That makes normal intervals
conservative where noise is small: at a standard error of 1 the one that is asked to contain the truth in 50 of 100
cases does so in about 76, at 10 in about 53.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._lazy import later

Array = NDArray[np.float64]
Noise = Literal["gaussian", "geometric"]

_UNIT = 2.0**-53
_UNLIKELY = 1e-12
"""The probability with which what rounding leaves may be larger than ``blur``."""
_TRIMMED = 1e-16
"""What may be cut off at each end of a law after a convolution."""
_DENOMINATORS = 60
"""Weights with a common denominator up to this one are taken to have it."""
_FINE = 2048
"""Steps in a standard deviation where weights have no common step."""
LARGEST = 1 << 20
"""From this variance on, in steps, a plain sum has the normal law to all digits that matter."""
WIDEST = 1 << 17
"""Steps that a law may have."""


@dataclass(frozen=True)
class Term:
    """Noise in an estimate: so many independent values of one law, each with the same weight."""

    weight: float
    parameter: float
    times: int = 1
    noise: Noise = "gaussian"

    @property
    def proxy(self) -> float:
        """At least the variance of one value."""
        return self.parameter if self.noise == "gaussian" else 2 * self.parameter**2


@dataclass(frozen=True, eq=False, repr=False)
class ErrorLaw:
    """The law of an estimate's error: probabilities of 0, 1, 2, ... steps to either side together.

    >>> law = ErrorLaw.of([Term(1, parameter=1)])
    >>> law.reach(0.9), round(law.within(2), 4), round(law.within(1), 4)
    (2.0, 0.9909, 0.8829)
    """

    step: float
    inside: Array
    """For m = 0, 1, 2, ...: the probability of at most m steps from zero."""
    blur: float
    relative: float
    lost: float

    def __repr__(self) -> str:
        return f"<ErrorLaw: {len(self.inside):,} values to either side, {self.step:.6g} apart>"

    @classmethod
    def of(cls, terms: Iterable[Term]) -> ErrorLaw:
        """The law of a sum. Refuses one that has too many values to be listed."""
        terms = tuple(terms)
        for one in terms:
            if not (0 < one.parameter < math.inf and math.isfinite(one.weight) and one.times >= 1):
                raise errors.parameter_out_of_range(
                    "The noise of an estimate", one, "finite, with a positive parameter"
                )
        used = tuple(one for one in terms if one.weight)
        step = _step(used)
        scaled = [(round(abs(one.weight) / step), one) for one in used]
        reach = sum(_furthest(one) * one.times * steps for steps, one in scaled)
        spread = math.sqrt(sum(one.times * one.proxy * steps**2 for steps, one in scaled))
        if min(reach, 9 * spread) > WIDEST:
            raise errors.parameter_out_of_range(
                "The noise of an estimate", f"{spread:g} steps", f"below {WIDEST // 9:,}"
            )
        total = _Listed(np.ones(1), 0.0, 0.0)
        for steps, one in sorted(scaled, key=lambda pair: pair[0]):
            if steps:
                total = total.plus(_times(one.noise, one.parameter, one.times), steps)
        blur, unlikely = _blur(scaled, step)
        middle = len(total.chances) // 2
        sides = np.concatenate([[0.0], total.chances[middle + 1 :] + total.chances[:middle][::-1]])
        inside = np.cumsum(total.chances[middle] * (np.arange(len(sides)) == 0) + sides)
        relative = total.relative + 2 * len(inside) * _UNIT
        return cls(step, inside, blur, relative, total.lost + unlikely)

    def within(self, half: float) -> float:
        """The probability that the error is at most ``half`` from zero; certified, at most the true one. A distance
        that exceeds ``half`` by a part of 1e-9 of a step counts as equal."""
        last = math.floor((half - self.blur) / self.step * (1 + 4 * _UNIT) + 1e-9)
        return 0.0 if last < 0 else self._certain[min(last, len(self.inside) - 1)].item()

    def reach(self, confidence: float) -> float | None:
        """The smallest distance from zero that the error keeps with at least this probability; None where that is too
        near to 1 to be certified."""
        certain = self._certain
        if certain[-1] < confidence:
            return None
        return float(np.searchsorted(certain, confidence)) * self.step + self.blur

    @property
    def _certain(self) -> Array:
        return np.maximum(self.inside * (1 - self.relative) - self.lost, 0.0)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Probabilities of an odd number of values about zero, with bounds of what is wrong with them."""

    chances: Array
    relative: float
    lost: float

    def plus(self, other: _Listed, stride: int = 1) -> _Listed:
        """The law of a sum, where the other number counts ``stride`` times."""
        if stride == 1:
            chances = np.convolve(self.chances, other.chances)
        else:
            side = len(other.chances) // 2
            chances = np.zeros(len(self.chances) + 2 * side * stride)
            for at, chance in enumerate(other.chances):
                chances[at * stride : at * stride + len(self.chances)] += chance * self.chances
        sums = min(len(self.chances), len(other.chances)) + 1
        relative = self.relative + other.relative + sums * _UNIT
        extra = max(0, int(np.searchsorted(np.cumsum(chances), _TRIMMED)) - 1)
        lost = self.lost + other.lost + (2 * _TRIMMED if extra else 0.0)
        return _Listed(chances[extra : len(chances) - extra], relative, lost)


def _furthest(one: Term) -> int:
    """Values further out weigh less than 1e-30, and e^-37 for geometric noise."""
    if one.noise == "gaussian":
        return 1 + math.ceil(12 * math.sqrt(one.parameter))
    return 1 + math.ceil(37 * one.parameter)


@lru_cache(maxsize=256)
def _times(noise: Noise, parameter: float, times: int) -> _Listed:
    """The law of a plain sum, by repeated doubling."""
    total, power, left = None, _single(noise, parameter), times
    while True:
        if left & 1:
            total = power if total is None else total.plus(power)
        left >>= 1
        if not left:
            assert total is not None
            return total
        power = power.plus(power)


def _single(noise: Noise, parameter: float) -> _Listed:
    furthest = _furthest(Term(1, parameter, noise=noise))
    numbers = np.abs(np.arange(-furthest, furthest + 1, dtype=np.float64))
    exponents = numbers**2 / (2 * parameter) if noise == "gaussian" else numbers / parameter
    weights = np.exp(-exponents)
    # exp of a number that is rounded thrice, then a sum and a quotient; what underflows weighs nothing.
    relative = (4 * min(float(exponents.max()), 746.0) + 4 + 2 * len(weights)) * _UNIT
    lost = 1e-30 if noise == "gaussian" else 2 * math.exp(-furthest / parameter)
    return _Listed(weights / weights.sum(), relative, lost)


def _step(terms: tuple[Term, ...]) -> float:
    """A step of which all weights are multiples, or else a fine one."""
    if not terms:
        return 1.0
    weights = np.abs([one.weight for one in terms])
    largest = float(weights.max())
    for whole in range(1, _DENOMINATORS + 1):
        ratios = weights / largest * whole
        if np.all(np.abs(ratios - np.round(ratios)) < 1e-9) and np.all(np.round(ratios) > 0):
            return largest / whole
    spread = math.sqrt(sum(one.times * one.proxy * one.weight**2 for one in terms))
    return spread / _FINE


def _blur(scaled: list[tuple[int, Term]], step: float) -> tuple[float, float]:
    """How far the true error may be from the rounded one, and how probable it is to be further."""
    proxy = bound = 0.0
    for steps, one in scaled:
        left = abs(abs(one.weight) - steps * step)
        if one.noise == "gaussian":
            proxy += one.times * one.parameter * left**2
        else:
            bound += one.times * left * _furthest(one)
    if not proxy:
        return bound, 0.0
    return bound + math.sqrt(2 * proxy * math.log(2 / _UNLIKELY)), _UNLIKELY


special = later("scipy.special")


WORTHWHILE = 10.0
"""Up to this standard error the law of a weighted sum is worth listing: above it, the half unit adds at most 4 points
of coverage to a normal interval."""

SHORTEST = 0.5
"""An error below it leaves the truth the nearest whole number, and an interval that reaches less far may hold none."""


@lru_cache(maxsize=256)
def plain_law(parameter: float, terms: int) -> ErrorLaw | None:
    """The law of a sum of so many discrete Gaussians; None where the normal law gives the same."""
    return None if parameter * terms > LARGEST else ErrorLaw.of([Term(1, parameter, terms)])


def reach(parameter: float, terms: int, confidence: float) -> int | None:
    """The least m such that a sum of ``terms`` discrete Gaussians is within m of zero with this probability; None where
    the normal law gives the same.

    >>> reach(1.0, 1, 0.9), reach(1e-3, 5, 0.99)
    (2, 0)
    """
    law = plain_law(parameter, terms)
    found = None if law is None else law.reach(confidence)
    return None if found is None else round(found)


def exact_half_width(law: ErrorLaw, confidence: float) -> float | None:
    """How far an interval reaches to either side of an estimate whose error has this law; None where the law cannot
    certify the confidence. At least half a unit: every interval holds the nearest whole number."""
    found = law.reach(confidence)
    return None if found is None else max(found, SHORTEST)


def normal_half_widths(errors: Array, confidence: float) -> Array:
    """How far intervals reach to either side of estimates with nearly normal errors."""
    return np.asarray(float(special.ndtri((1 + confidence) / 2)) * errors + 0.5)


def normal_coverage(errors: Array, half: Array) -> Array:
    """How often, about, a normal error is as near to zero as a normal interval reaches."""
    ratios = np.divide(half, errors, out=np.full_like(errors, math.inf), where=(errors > 0) & np.isfinite(errors))
    return np.asarray(2 * special.ndtr(ratios) - 1)
