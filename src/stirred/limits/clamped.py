"""The posterior of a rate from one count that is clamped and gets Laplace noise: Example 5.6.5, exactly.

theta has a Gamma prior, the count x is Poisson with mean theta, q(x) is x clamped to [low, high], and the release is
q(x) plus Laplace noise of scale (high - low)/epsilon. Any two counts are neighbours, so d_** = 1.

With g(k) the density of the noise around k, the likelihood of theta at an output is the mean of g(q(x)); since g(q(x))
is constant from ``high`` on,

    p(t | theta) = sum over k < high of Poisson(k; theta) g(q(k)), and g(high) P(x >= high).

A power of theta times a Gamma density is another Gamma density, so that moments are the same sums with other counts.

Keep in mind: everything about the posterior is therefore a finite sum of positive terms in closed
form, with no sampling and no quadrature. Tests integrate numerically and agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._lazy import later
from stirred.limits.bounds import Band, density_bounds, posterior_bounds

optimize = later("scipy.optimize")
special = later("scipy.special")
stats = later("scipy.stats")

Array = NDArray[np.float64]

LARGEST = 10_000
"""Counts up to the upper clamp are listed."""

FAR = 60.0


@dataclass(frozen=True)
class ClampedCount:
    """The prior Gamma(shape, rate), the clamp and the privacy loss; by default those of Figure 5.4.

    >>> count = ClampedCount()
    >>> round(float(count.predictive(3)), 8), round(float(count.mean(3)), 6), round(float(count.deviation(3)), 6)
    (0.06423075, 2.974003, 1.651932)
    """

    shape: float = 3.0
    rate: float = 1.0
    low: int = 0
    high: int = 6
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        for name in ("shape", "rate", "epsilon"):
            value = float(getattr(self, name))
            if not 0 < value < math.inf:
                raise errors.parameter_out_of_range(name, value, "above 0 and finite")
            object.__setattr__(self, name, value)
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        if not whole or not 0 <= self.low < self.high <= LARGEST:
            wanted = f"whole numbers, the lower at least 0 and below the upper, which is at most {LARGEST}"
            raise errors.parameter_out_of_range("The clamp", f"[{self.low}, {self.high}]", wanted)

    @property
    def scale(self) -> float:
        """The scale of the noise: the sensitivity over epsilon. Its standard deviation is the root of two times
        this."""
        return (self.high - self.low) / self.epsilon

    # -- the release -----------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Array:
        """The probabilities of the counts 0, ..., high - 1 and, last, of ``high`` or more: negative binomial."""
        return self._counted(self.shape)

    def noise(self, outputs: ArrayLike) -> Array:
        """g(q(k)) for each output (first axes) and count 0, ..., high (last axis)."""
        t = np.asarray(outputs, dtype=np.float64)[..., None]
        clamped = np.maximum(np.arange(self.high + 1), self.low)
        return np.asarray(np.exp(-np.abs(t - clamped) / self.scale) / (2 * self.scale))

    def predictive(self, outputs: ArrayLike) -> Array:
        """p(t), the prior predictive density."""
        return np.asarray(self.noise(outputs) @ self.counts)

    def predictive_bounds(self, outputs: ArrayLike) -> Band:
        """Theorem 5.6.2 with d_* = 1: the best of g(k) e^(-epsilon) and of g(k) e^epsilon over the counts."""
        t = np.asarray(outputs, dtype=np.float64)[..., None]
        apart = np.abs(t - np.maximum(np.arange(self.high + 1), self.low)) / self.scale
        with np.errstate(over="ignore"):  # e^epsilon alone may be too large
            lower, upper = np.exp(-apart.min(axis=-1) - self.epsilon), np.exp(self.epsilon - apart.max(axis=-1))
        return Band(lower / (2 * self.scale), upper / (2 * self.scale))

    def quantile(self, probability: float) -> float:
        """The output below which the release falls with this probability, before anything is known of theta."""
        if not 0 < probability < 1:
            raise errors.parameter_out_of_range("probability", probability, "above 0 and below 1")
        clamped = np.maximum(np.arange(self.high + 1), self.low)

        def below(t: float) -> float:
            z = (t - clamped) / self.scale
            return float(self.counts @ np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2))

        far = self.scale * (1 - math.log(min(probability, 1 - probability)))
        return float(optimize.brentq(lambda t: below(t) - probability, self.low - far, self.high + far, xtol=1e-12))

    # -- theta -----------------------------------------------------------------------------------------------

    def prior(self, theta: ArrayLike) -> Array:
        """The Gamma density."""
        return np.exp(_log_gamma(np.asarray(theta, dtype=np.float64), self.shape, self.rate))

    def likelihood(self, theta: ArrayLike, output: float) -> Array:
        """p(t | theta)."""
        at = np.asarray(theta, dtype=np.float64)[..., None]
        if not bool(np.all(at >= 0)):
            raise errors.parameter_out_of_range("theta", "negative or not a number", "at least 0")
        k = np.arange(self.high)
        g = self.noise(output)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(k > 0, k * np.log(at), 0.0) - at - special.gammaln(k + 1)
        return np.asarray(np.exp(logs) @ g[:-1] + special.gammainc(self.high, at[..., 0]) * g[-1])

    def posterior(self, theta: ArrayLike, output: float) -> Array:
        """The density of theta after the output."""
        seen = self._seen(output)
        return self.prior(theta) * self.likelihood(theta, seen) / self.predictive(seen)

    def posterior_bounds(self, theta: ArrayLike) -> Band:
        """Theorem 5.6.3: the prior density times e^-epsilon and e^epsilon, at any output."""
        return density_bounds(self.prior(theta), self.epsilon)

    def belief(self, most: float, output: float) -> float:
        """The posterior probability that theta is at most this."""
        g, counts = self.noise(self._seen(output)), self.counts
        below = counts[:-1] * special.gammainc(self.shape + np.arange(self.high), (self.rate + 1) * most)
        rest = max(0.0, float(special.gammainc(self.shape, self.rate * most)) - math.fsum(below))
        return min(1.0, float(np.append(below, rest) @ g / (counts @ g)))

    def belief_bounds(self, most: float) -> Band:
        """Bounds on :meth:`belief`: Theorem 5.6.3 in terms of odds."""
        return posterior_bounds(float(special.gammainc(self.shape, self.rate * most)), self.epsilon)

    def mean(self, output: float) -> float:
        """The posterior mean."""
        return self._moment(1, output)

    def deviation(self, output: float) -> float:
        """The standard deviation of the posterior."""
        return math.sqrt(self._moment(2, output) - self._moment(1, output) ** 2)

    def ratios(self, output: float) -> tuple[float, float]:
        """The infimum and the supremum over theta of posterior over prior.

        g(q(k)) rises in k and then falls, so the likelihood has at most one stationary point, a maximum. The other
        extremes are at the ends: no count at all, or ``high`` and more.

        >>> [round(one, 6) for one in ClampedCount().ratios(0)]
        [0.555858, 1.51098]
        """
        seen = self._seen(output)
        g, total = self.noise(seen), float(self.predictive(seen))
        ends = float(g[0]), float(g[-1])
        best = max(ends)
        k = np.arange(self.low, self.high)
        rises = np.diff(g)[k]
        if np.any(rises > 0) and np.any(rises < 0):

            def slope(log_theta: float) -> float:
                # e^theta dp/dtheta = sum of rises(k) theta^k / k!, scaled to its largest term.
                logs = k * log_theta - special.gammaln(k + 1)
                return float(rises @ np.exp(logs - logs.max()))

            # At both ends one term, the first or the last, outweighs the others together.
            at = math.exp(optimize.brentq(slope, -FAR, math.log(self.high) + FAR, xtol=1e-13))
            best = max(best, float(self.likelihood(at, seen)))
        return min(ends) / total, best / total

    def _seen(self, output: float) -> float:
        """The output or, beyond the clamp, its end: the posterior is the same there, and densities do not vanish."""
        return min(max(float(output), self.low), self.high)

    def _moment(self, order: int, output: float) -> float:
        """E(theta^order | t): theta^order Gamma(shape, rate) is a multiple of Gamma(shape + order, rate)."""
        g = self.noise(self._seen(output))
        rising = self.shape if order == 1 else self.shape * (self.shape + 1)
        return rising / self.rate**order * float(self._counted(self.shape + order) @ g / (self.counts @ g))

    def _counted(self, shape: float) -> Array:
        """The law of the count where theta is Gamma(shape, rate)."""
        chance = self.rate / (1 + self.rate)
        listed = stats.nbinom.pmf(np.arange(self.high), shape, chance)
        return np.append(listed, stats.nbinom.sf(self.high - 1, shape, chance))


def _log_gamma(theta: Array, shape: float, rate: float) -> Array:
    if not bool(np.all(theta >= 0)):
        raise errors.parameter_out_of_range("theta", "negative or not a number", "at least 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(shape == 1, 0.0, (shape - 1) * np.log(theta))
    return np.asarray(shape * math.log(rate) + powers - rate * theta - special.gammaln(shape))
