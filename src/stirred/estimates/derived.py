"""Differences, ratios, shares and odds ratios of estimates, from their values, intervals and covariances.

Standard errors are those of the delta method, exact for differences. Intervals are put together from those of the parts
(Zou and Donner, Statistics in Medicine 27, 2008): with estimates x and y, their ends l and u, and their correlation r,
the lower end of x - y is x - y - sqrt(a^2 + b^2 - 2 r a b) with a = x - l_x and b = u_y - y, and the upper end mirrors
it. A ratio t is in its interval if 0 is in that of x - t y. With normal intervals of the parts these are the usual
interval of a difference and Fieller's of a ratio, and they keep what better intervals of the parts know: that a count
is small, near a bound, or known.

Nothing here knows a mechanism: parts come with values, variances and ends, pairs with covariances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Estimates with their variances and the ends of their intervals at one confidence."""

    values: Array
    variances: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        for name in ("values", "variances", "lower", "upper"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @property
    def down(self) -> Array:
        """How far the intervals reach below the estimates."""
        return np.maximum(self.values - self.lower, 0.0)

    @property
    def up(self) -> Array:
        """How far they reach above."""
        return np.maximum(self.upper - self.values, 0.0)

    def within(self, low: float, high: float) -> Parts:
        """With intervals cut to what is possible; the estimates stay as they are."""
        return Parts(self.values, self.variances, np.clip(self.lower, low, high), np.clip(self.upper, low, high))


def difference(one: Parts, other: Parts, covariance: Array) -> Parts:
    """``one`` minus ``other``.

    >>> apart = difference(Parts([5], [1], [3], [7]), Parts([2], [1], [0], [4]), np.array([0.0]))
    >>> apart.values, apart.lower.round(3), apart.upper.round(3)
    (array([3.]), array([0.172]), array([5.828]))
    """
    values = one.values - other.values
    r = _correlation(one, other, covariance)
    variances = np.maximum(one.variances + other.variances - 2 * covariance, 0.0)
    lower, upper = values - _apart(one.down, other.up, r), values + _apart(one.up, other.down, r)
    unknown = np.isnan(values)  # without an estimate the interval is what both intervals allow
    lower, upper = np.where(unknown, one.lower - other.upper, lower), np.where(unknown, one.upper - other.lower, upper)
    return Parts(values, np.where(unknown, np.inf, variances), lower, upper)


def ratio(one: Parts, other: Parts, covariance: Array) -> Parts:
    """``one`` divided by ``other``, which is not negative; an end is infinite where ``other`` may be 0.

    >>> part = ratio(Parts([50], [4], [46], [54]), Parts([200], [0], [200], [200]), np.array([0.0]))
    >>> part.values, part.lower.round(3), part.upper.round(3)
    (array([0.25]), array([0.23]), array([0.27]))
    """
    y = other.values
    usable = y > 0
    safe = np.where(usable, y, 1.0)
    values = np.where(usable, one.values / safe, np.nan)
    known = np.where(usable, values, 0.0)
    spread = np.where(usable, other.variances, 0.0)
    variances = np.maximum(one.variances - 2 * known * covariance + known**2 * spread, 0.0) / safe**2
    r = _correlation(one, other, covariance)
    lower = _ratio_end(one.values, y, one.down, other.up, r, -1)
    upper = _ratio_end(one.values, y, one.up, other.down, r, 1)
    unknown = np.isnan(one.values) | np.isnan(y)  # without an estimate the interval is what both intervals allow
    low, high = np.maximum(other.lower, 0.0), np.maximum(other.upper, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(unknown, np.where(high > 0, one.lower / high, -np.inf), lower)
        upper = np.where(unknown, np.where(low > 0, one.upper / low, np.inf), upper)
    return Parts(values, np.where(usable, variances, np.inf), lower, upper)


def odds_ratio(parts: Sequence[Parts], covariance: Array) -> Parts:
    """x0 x3 / (x1 x2), for four estimates whose covariances are ``covariance[..., i, j]``; undefined unless all are
    positive. Standard errors are on the scale of the odds ratio.
    """
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    values = np.stack([part.values for part in parts], axis=-1)
    usable = np.asarray((values > 0).all(axis=-1))
    safe = np.where(usable[..., None], values, 1.0)
    found = np.where(usable, np.exp((signs * np.log(safe)).sum(axis=-1)), np.nan)
    gradient = signs / safe
    variances = np.einsum("...i,...ij,...j->...", gradient, covariance, gradient)
    spread = np.sqrt(np.maximum(np.einsum("...ii->...i", covariance), 0.0))
    scale = spread[..., :, None] * spread[..., None, :]
    correlation = np.clip(np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0), -1, 1)
    index = np.arange(4)
    correlation[..., index, index] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.stack([np.log(part.values / np.maximum(part.lower, 0.0)) for part in parts], axis=-1)
        up = np.stack([np.log(np.maximum(part.upper, part.values) / part.values) for part in parts], axis=-1)
    lower, upper = (
        _odds_end(np.where(signs > 0, first, second), signs, correlation) for first, second in ((down, up), (up, down))
    )
    base = np.where(usable, found, 1.0)
    bounded = np.isnan(values).any(axis=-1)  # without an estimate the interval is what all intervals allow
    low, high = (np.stack([np.maximum(part, 0.0) for part in ends], axis=-1) for ends in _ends(parts))
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.nan_to_num(low[..., 0] * low[..., 3] / (high[..., 1] * high[..., 2]), nan=0.0, posinf=0.0)
        most = np.nan_to_num(high[..., 0] * high[..., 3] / (low[..., 1] * low[..., 2]), nan=np.inf, posinf=np.inf)
    return Parts(
        found,
        np.where(usable, np.maximum(variances, 0.0) * base**2, np.inf),
        np.where(usable, base * np.exp(-lower), np.where(bounded, least, 0.0)),
        np.where(usable, base * np.exp(upper), np.where(bounded, most, np.inf)),
    )


def _ends(parts: Sequence[Parts]) -> tuple[list[Array], list[Array]]:
    return [part.lower for part in parts], [part.upper for part in parts]


def _odds_end(reach: Array, signs: Array, correlation: Array) -> Array:
    endless = np.asarray(~np.isfinite(reach).all(axis=-1))
    known = np.where(endless[..., None], 0.0, reach) * signs
    square = np.maximum(np.einsum("...i,...ij,...j->...", known, correlation, known), 0.0)
    return np.where(endless, np.inf, np.sqrt(square))


def _correlation(one: Parts, other: Parts, covariance: Array) -> Array:
    scale = np.sqrt(np.maximum(one.variances, 0.0) * np.maximum(other.variances, 0.0))
    usable = (scale > 0) & np.isfinite(scale)
    found = np.divide(covariance, scale, out=np.zeros(np.shape(scale)), where=usable)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _apart(a: Array, b: Array, correlation: Array) -> Array:
    return np.sqrt(np.maximum(a**2 + b**2 - 2 * correlation * a * b, 0.0))


def _ratio_end(x: Array, y: Array, a: Array, b: Array, correlation: Array, side: int) -> Array:
    """The root t of (x - t y)^2 = a^2 + t^2 b^2 - 2 r t a b on one side of x/y."""
    square, middle, constant = y**2 - b**2, x * y - correlation * a * b, x**2 - a**2
    usable = (square > 0) & (y > 0)
    inside = np.maximum(middle**2 - square * constant, 0.0)
    root = np.divide(middle + side * np.sqrt(inside), square, out=np.full(np.shape(x), side * np.inf), where=usable)
    return np.asarray(root)
