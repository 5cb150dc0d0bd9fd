"""Mechanisms and models that are known in full: bounds in closed form, and the exact numbers beside them (chapter 5).

*Bounds* for a count with Laplace noise and for randomised response (section 5.4). Datasets are vectors of n bits at
Hamming distance, so d_* = n; this reading reproduces the published figures. The noise has the law (epsilon/2)
e^(-epsilon |t - q|), with a minus sign (it is missing in Example 5.4.3).

*Exact powers and posteriors* (section 5.9). The bounds of :mod:`stirred.limits.bounds` hold for every mechanism,
model and prior. Here are the numbers of some that are known in full, to be put beside them: the best test and the
beliefs on a count with Laplace noise, and on randomised responses. A count is that of bits; at Hamming distance d the
count differs by at most d, and by d for the two datasets that are compared.

*The posterior of a rate* from one count that is clamped and gets Laplace noise (Example 5.6.5). theta has a Gamma
prior, the count x is Poisson with mean theta, q(x) is x clamped to [low, high], and the release is q(x) plus Laplace
noise of scale (high - low)/epsilon. Any two counts are neighbours, so d_** = 1.

With g(k) the density of the noise around k, the likelihood of theta at an output is the mean of g(q(x)); since
g(q(x)) is constant from ``high`` on,

    p(t | theta) = sum over k < high of Poisson(k; theta) g(q(k)), and g(high) P(x >= high).

A power of theta times a Gamma density is another Gamma density, so that moments are the same sums with other counts.

Keep in mind: every number is a closed form or a finite sum of positive terms, with no sampling and no quadrature.
Tests integrate numerically and agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._lazy import later
from stirred.limits.bounds import Band, density_bounds, posterior_bounds, radius
from stirred.limits.distances import count, one_probability
from stirred.loss import PowerCurve, power_curve
from stirred.loss.argument_checks import Number, finite, probabilities

special = later("scipy.special")

Array = NDArray[np.float64]


@refuses_wrong_arguments
def laplace_count_bounds(outputs: ArrayLike, epsilon: Number, records: int, whole: bool = False) -> Band:
    """The bounds of Theorem 5.4.1 for a count of ``records`` bits: Figure 5.2. With D the distance to the middle n/2,

        upper (epsilon/2) e^(epsilon (n/2 - D)),  lower (epsilon/2) e^(-epsilon n - epsilon max(0, D - n/2)).

    The figure lets sums be any number from 0 to n. With ``whole`` sums only, as bits have, the lower bound is smaller
    between whole numbers.

    >>> band = laplace_count_bounds([0, 5, 15], 0.1, 10)
    >>> band.lower.round(6).tolist(), band.upper.round(6).tolist()
    ([0.018394, 0.018394, 0.011157], [0.05, 0.082436, 0.030327])
    """
    t, e, n = np.asarray(outputs, dtype=np.float64), finite("epsilon", epsilon), count("records", records)
    with np.errstate(over="ignore"):
        upper = e / 2 * np.exp(e * (n / 2 - np.abs(t - n / 2)))
    return Band(e / 2 * np.exp(-e * n - e * _nearest(t, n, whole)), upper)


@refuses_wrong_arguments
def laplace_count_mixture(outputs: ArrayLike, epsilon: Number, records: int, whole: bool = False) -> Band:
    """Bounds for somebody who knows the whole mechanism: its density at the farthest and at the nearest sum."""
    t, e, n = np.asarray(outputs, dtype=np.float64), finite("epsilon", epsilon), count("records", records)
    farthest = np.maximum(np.abs(t), np.abs(t - n))
    return Band(e / 2 * np.exp(-e * farthest), e / 2 * np.exp(-e * _nearest(t, n, whole)))


@refuses_wrong_arguments
def response_bounds(records: ArrayLike, epsilon: Number) -> Band:
    """Randomised response: (1 + e^epsilon)^-n <= p(t) <= e^(n epsilon) (1 + e^epsilon)^-n (equation 5.8, Figure 5.3).

    The trivial band is the same.

    >>> band = response_bounds([1, 10], 1)
    >>> band.lower.round(8).tolist(), band.upper.round(8).tolist()
    ([0.26894142, 1.98e-06], [0.73105858, 0.04360354])
    """
    n, e = np.asarray(records, dtype=np.float64), finite("epsilon", epsilon)
    if not bool(np.all((n >= 1) & (n == np.floor(n)))):
        raise errors.parameter_out_of_range("records", "not a count", "whole numbers that are at least 1")
    return Band(np.exp(n * special.log_expit(-e)), np.exp(n * special.log_expit(e)))


def _nearest(t: Array, n: int, whole: bool) -> Array:
    """How far outputs are from the nearest possible sum."""
    nearest = np.clip(t, 0, n)
    return np.abs(t - (np.round(nearest) if whole else nearest))


stats = later("scipy.stats")


MOST_RECORDS = 100_000
"""Of randomised responses: the law of their number is listed in full."""


# -- a count with Laplace noise ------------------------------------------------------------------------------


@refuses_wrong_arguments
def laplace_power(level: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1) -> Array:
    """The power of the best test between two datasets whose counts are ``distance`` apart, with r = epsilon d:

        a e^r for a <= e^-r / 2,  1 - e^-r / (4 a) for a <= 1/2,  1 - (1 - a) e^-r above.

    The bound of Corollary 5.5.2 is attained for the first and the last; Neyman and Pearson reject above a threshold.

    >>> laplace_power([0.05, 0.05, 0.6], 1, [2, 3, 1]).round(6).tolist()
    [0.369453, 0.751065, 0.852848]
    """
    a, r = np.broadcast_arrays(probabilities("level", level), radius(epsilon, distance))
    shrunk = np.exp(-r)
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.where(a == 0, 0.0, a * np.exp(r))
    middle = 1 - shrunk / (4 * np.where(a > shrunk / 2, a, 1.0))
    last = 1 - (1 - a) * shrunk
    found = np.where(a <= shrunk / 2, first, np.where(a <= 0.5, middle, last))
    return np.where(np.isinf(r), 1.0, found)  # no noise, or no end between the counts: also at level 0


@refuses_wrong_arguments
def laplace_threshold(level: ArrayLike, epsilon: Number) -> Array:
    """The output above which this test of the smaller count, taken as 0, rejects: the noise's 1 - level quantile.

    >>> laplace_threshold(0.05, 1).round(6).tolist()
    2.302585
    """
    a, e = probabilities("level", level), finite("epsilon", epsilon)
    if e == 0:
        raise errors.parameter_out_of_range("epsilon", epsilon, "above 0")
    with np.errstate(divide="ignore"):
        right, left = -np.log(2 * np.minimum(a, 0.5)), np.log(2 * np.minimum(1 - a, 0.5))
    return np.asarray(np.where(a <= 0.5, right, left) / e)


@refuses_wrong_arguments
def laplace_count_densities(outputs: ArrayLike, epsilon: Number, records: int) -> Array:
    """p_x(t) for each sum 0, ..., ``records`` (rows) and output (columns)."""
    t, e = np.asarray(outputs, dtype=np.float64), finite("epsilon", epsilon)
    sums = np.arange(count("records", records) + 1, dtype=np.float64).reshape(-1, *[1] * t.ndim)
    return np.asarray(e / 2 * np.exp(-e * np.abs(t - sums)))


class Beliefs(NamedTuple):
    """The probability density of outputs, and what is believed about each sum after each of them."""

    density: Array
    posterior: Array
    """Outputs on the first axes, sums on the last."""


@refuses_wrong_arguments
def laplace_count_beliefs(outputs: ArrayLike, weights: ArrayLike, epsilon: Number) -> Beliefs:
    """Exact densities and posteriors for the count of bits where ``weights`` are the probabilities of the sums 0, 1,
    ..., n: as a model of the data, p(t | theta); as what somebody believes, the prior predictive density and the
    posterior.

    >>> found = laplace_count_beliefs([0, 0.5], [0.5, 0.5], 1)  # section 5.9: one bit, all others known
    >>> found.posterior.round(6).tolist()
    [[0.731059, 0.268941], [0.5, 0.5]]
    """
    believed, e = one_probability("The probability of the sums", weights), finite("epsilon", epsilon)
    t, sums = np.asarray(outputs, dtype=np.float64)[..., None], np.arange(len(believed), dtype=np.float64)
    # Far from all sums that are believed in, densities underflow together; only their ratios count there. What all of
    # them have in common is taken off first, at the nearest sum there is: else it swallows the differences.
    outside = np.abs(t - np.clip(t, 0, len(believed) - 1))
    with np.errstate(divide="ignore"):
        logs = np.log(believed) - e * np.abs(np.clip(t, 0, len(believed) - 1) - sums)
    largest = logs.max(axis=-1, keepdims=True)
    ratios = np.exp(logs - largest)
    total = ratios.sum(axis=-1, keepdims=True)
    return Beliefs((e / 2 * np.exp(largest - e * outside) * total)[..., 0], ratios / total)


# -- randomised response -------------------------------------------------------------------------------------


@refuses_wrong_arguments
def response_power(level: ArrayLike, epsilon: Number, records: int = 1) -> Array:
    """The power of the best test of n zeros against n ones on their randomised responses: how many are ones is
    sufficient, a binomial number. With one record it is the bound of Corollary 5.5.2.

    >>> response_power([0.05, 0.5], 1).round(6).tolist()
    [0.135914, 0.81606]
    """
    e, n = finite("epsilon", epsilon), count("records", records)
    if n > MOST_RECORDS:
        raise errors.parameter_out_of_range("records", records, f"at most {MOST_RECORDS}")
    zeros = stats.binom.pmf(np.arange(n + 1), n, float(special.expit(-e)))
    ones = zeros[::-1]
    vertices = power_curve(zeros / math.fsum(zeros), ones / math.fsum(ones))
    return np.asarray(PowerCurve(tuple(map(tuple, vertices.tolist()))).power(probabilities("level", level)))


@refuses_wrong_arguments
def response_likelihood(ones: ArrayLike, records: int, rate: ArrayLike, epsilon: Number) -> Array:
    """The probability of one sequence of responses with so many ``ones``, where bits are ones independently with
    probability ``rate``: q^k (1 - q)^(n - k), q the probability that a response is a one.

    >>> response_likelihood([0, 10], 10, [0, 1], 1).round(8).tolist()
    [0.04360354, 0.04360354]
    """
    k, n = np.asarray(ones, dtype=np.float64), count("records", records)
    if not bool(np.all((k >= 0) & (k <= n) & (k == np.floor(k)))):
        raise errors.parameter_out_of_range("ones", "not among them", "whole numbers from 0 to the number of records")
    e, theta = finite("epsilon", epsilon), probabilities("rate", rate)
    q = theta * special.expit(e) + (1 - theta) * special.expit(-e)
    return np.asarray(np.exp(special.xlogy(k, q) + special.xlogy(n - k, 1 - q)))


optimize = later("scipy.optimize")


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
