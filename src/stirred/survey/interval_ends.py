"""Ends of intervals whose error is part sampling (nearly normal) and part noise (normal or Laplace).

The error of an estimate is the sum of two independent parts. Normal noise keeps the sum normal. Laplace noise has
longer tails: the quantile of the sum of a normal and a Laplace law with these variances is taken, which is exact for
one measured number, or the normal quantile where that is larger: sums of several numbers lie between the two.
Quotients have Fieller's intervals: t is inside if Y - t X is within so many of its own standard errors of 0. Where
these depend on t as well, they are taken at t (Wilson 1927). A sum is a quotient whose denominator is known to be 1.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.survey.sampling_errors import Curve

special = later("scipy.special")

Array = NDArray[np.float64]

_GRID = 200
"""Shares of noise at which quantiles are computed; between them they are interpolated."""


def quantiles(confidence: float, noise_shares: Array, law: str, freedom: Array | None = None) -> Array:
    """How many standard errors an interval reaches to either side, by the share of noise in the variance.

    >>> quantiles(0.95, np.array([0.0, 1.0]), "laplace").round(3).tolist()
    [1.96, 2.118]
    """
    normal = float(special.ndtri((1 + confidence) / 2))
    if law == "gaussian":
        found = np.full(len(noise_shares), normal)
    else:
        found = np.interp(np.nan_to_num(noise_shares), np.linspace(0, 1, _GRID + 1), _laplace(confidence))
        found = np.maximum(found, normal)
    if freedom is None:
        return found
    # A standard error from few primary units is uncertain itself, as far as the error is one of sampling.
    wider = student(confidence, freedom) / normal
    return np.asarray(found * (1 + (wider - 1) * (1 - np.nan_to_num(noise_shares))))


def student(confidence: float, freedom: Array) -> Array:
    """How many estimated standard errors an interval of a normal estimate reaches, by their degrees of freedom."""
    return np.asarray(special.stdtrit(freedom, (1 + confidence) / 2))


@lru_cache(maxsize=32)
def _laplace(confidence: float) -> Array:
    """Quantiles of the absolute value of a normal plus a Laplace number with variance 1 together."""
    shares = np.linspace(0, 1, _GRID + 1)
    low, high = np.zeros(len(shares)), np.full(len(shares), 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        inside = _within(middle, shares) >= confidence
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    return high


def _within(reach: Array, shares: Array) -> Array:
    """The probability that the sum is within ``reach`` of 0."""
    s, b = np.sqrt(np.maximum(1 - shares, 1e-12)), np.sqrt(np.maximum(shares, 1e-12) / 2)
    z, r = reach / s, s / b
    # F(x) = Phi(z) - (exp(-x/b) Phi(z - r) - exp(x/b) Phi(-z - r)) exp(r^2 / 2) / 2, by logarithms.
    first = np.exp(np.minimum(r**2 / 2 - reach / b + special.log_ndtr(z - r), 50.0))
    second = np.exp(np.minimum(r**2 / 2 + reach / b + special.log_ndtr(-z - r), 50.0))
    return np.asarray(2 * (special.ndtr(z) - (first - second) / 2) - 1)


def quotient_ends(
    above: Array, below: Array, sampling: Curve, noise: tuple[Array, Array, Array], reach: Array
) -> tuple[Array, Array]:
    """Intervals of quotients Y / X, from the sampling variance of Y - t X and the noise variances of Y and X and their
    covariance. Ends are infinite where X may be 0.

    The values t with (Y - t X)^2 <= reach^2 (sampling at t + noise of Y - t X) are those between the roots of a
    quadratic. Where it has none (Y is further than its noise beyond all that is possible), the sampling variance is
    taken at the nearest possible value instead.
    """
    lower, upper, missing = _roots(above, below, sampling, noise, reach)
    if missing.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            nearest = np.nan_to_num(np.maximum(above / below, 0.0))
        flat = _roots(above, below, Curve.level(sampling.at(nearest)), noise, reach)
        lower, upper = np.where(missing, flat[0], lower), np.where(missing, flat[1], upper)
    return lower, upper


def _roots(
    above: Array, below: Array, sampling: Curve, noise: tuple[Array, Array, Array], reach: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    with np.errstate(divide="ignore", invalid="ignore"):
        square = below**2 - reach**2 * (noise[1] + sampling.square)
        middle = above * below - reach**2 * (noise[2] - sampling.slope / 2)
        constant = above**2 - reach**2 * (sampling.constant + noise[0])
        usable = (square > 0) & (below > 0)
        inner = middle**2 - square * constant
        root = np.sqrt(np.maximum(inner, 0.0))
        lower = np.where(usable, (middle - root) / square, -np.inf)
        upper = np.where(usable, (middle + root) / square, np.inf)
    return lower, upper, np.asarray(usable & (inner < 0))
