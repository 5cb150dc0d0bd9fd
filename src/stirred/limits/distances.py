"""Distances between measures on the same finite list of outcomes (Definitions 5.2.1 and 5.8.3, Remarks 5.8.7, C.4.3).

A measure is a list of masses on the last axis of an array; the axes before it are many measures at once, and two arrays
are broadcast against each other. Masses need not sum to one where the definition does not ask for it. Conventions:
0/0 = inf/inf = 1, so an outcome that neither measure has is ignored; one that only one of them has makes the
multiplicative and the density-ratio distance infinite and the odds-ratio distance 1; two zero measures are at distance
0. Densities on the line are compared in :mod:`stirred.limits.densities`.

Keep in mind: all but the total variation and the approximate distance are functions of the range of
ln(mu/nu) over single outcomes, :func:`log_ratio_range`, which is also the range over events.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred.loss import approximate
from stirred.loss.argument_checks import Number, distribution, require_probabilities
from stirred.loss.divergences import log_ratios

Array = NDArray[np.float64]
Value = TypeVar("Value", bound=Hashable)

MOST = 2**53
"""The largest number of records: beyond it floats do not count one by one."""


class LogRatios(NamedTuple):
    """The smallest and the largest ln(mu/nu) over events that are not empty."""

    lowest: Array
    highest: Array


@refuses_wrong_arguments
def log_ratio_range(mu: ArrayLike, nu: ArrayLike) -> LogRatios:
    """inf and sup over non-empty events S of ln mu(S)/nu(S) (Lemma C.5.2); attained by single outcomes. Events that
    neither measure has are left out, the empty one among them: by convention their ratio is 1.

    Where the supports differ, or one measure is zero and the other is not, the end that sees it is infinite.

    >>> low, high = log_ratio_range([0.5, 0.5, 0], [0.25, 0.75, 0])
    >>> low.round(6).tolist(), high.round(6).tolist()
    (-0.405465, 0.693147)
    """
    first, second = measures(mu, nu)
    same = (first == second) | (first == 0) & (second == 0)  # also infinite where both are
    usual = (first > 0) & (second > 0) & np.isfinite(first) & np.isfinite(second) & ~same
    logs = np.where(usual, log_ratios(np.where(usual, first, 1.0), np.where(usual, second, 1.0)), 0.0)
    logs = np.where(~usual & ~same, np.where(first > second, math.inf, -math.inf), logs)
    nothing = (first == 0) & (second == 0)
    lowest = np.min(np.where(nothing, math.inf, logs), axis=-1)
    highest = np.max(np.where(nothing, -math.inf, logs), axis=-1)
    empty = np.all(nothing, axis=-1)
    return LogRatios(np.where(empty, 0.0, lowest), np.where(empty, 0.0, highest))


@refuses_wrong_arguments
def multiplicative_distance(mu: ArrayLike, nu: ArrayLike) -> Array:
    """D_MULT, the largest |ln mu(S)/nu(S)| over events S (Definition 5.2.1, Proposition 10): a metric.

    For two probability distributions it is :func:`stirred.loss.multiplicative`.

    >>> multiplicative_distance([1, 1], [2, 1.5]).round(6).tolist()
    0.693147
    """
    lowest, highest = log_ratio_range(mu, nu)
    return np.asarray(np.maximum(-lowest, highest) + 0.0)


@refuses_wrong_arguments
def density_ratio_distance(mu: ArrayLike, nu: ArrayLike) -> Array:
    """d_DR, the largest ln of (mu(t)/mu(t')) / (nu(t)/nu(t')) (Definition 5.8.3, Proposition 12).

    A metric between probabilities. Between measures the scale does not count: d_DR(mu, 2 mu) = 0.

    >>> density_ratio_distance([[1, 1], [1, 2]], [2, 1.5]).round(6).tolist()
    [0.287682, 0.980829]
    """
    first, second = measures(mu, nu)
    if not bool(np.all(np.isfinite(first))) or not bool(np.all(np.isfinite(second))):
        raise errors.not_a_measure("A measure", "an infinite mass at one outcome is not sigma-finite")
    lowest, highest = log_ratio_range(first, second)
    apart = np.isinf(lowest) | np.isinf(highest)
    return np.where(apart, math.inf, np.where(apart, 0.0, highest) - np.where(apart, 0.0, lowest))


@refuses_wrong_arguments
def odds_ratio_distance(mu: ArrayLike, nu: ArrayLike) -> Array:
    """d_COR = 1 - e^(-d_DR), the constant-odds-ratio distance (Remark 5.8.7, Corollary C.5.5); 1 where supports differ.

    >>> odds_ratio_distance([1 / 3, 2 / 3], [2 / 3, 1 / 3]).round(6).tolist()
    0.75
    """
    return np.asarray(-np.expm1(-density_ratio_distance(mu, nu)) + 0.0)


@refuses_wrong_arguments
def linear_vacuous_distance(p: ArrayLike, q: ArrayLike) -> Array:
    """d_LV, the largest (Q(S) - P(S)) / Q(S) over events (Remark C.4.3): 1 - min p/q. Not symmetric.

    Defined between probabilities that have every outcome. Here events with Q(S) = 0 are left out and nothing else is
    asked; an outcome that only Q has makes it 1.

    >>> linear_vacuous_distance([0.5, 0.5], [0.6, 0.4]).round(6).tolist()
    0.166667
    """
    first, second = measures(p, q)
    require_probabilities("The first distribution", first)
    require_probabilities("The second distribution", second)
    reached = second > 0
    ratio = np.where(reached, first / np.where(reached, second, 1.0), math.inf)
    return np.asarray(np.maximum(0.0, 1 - np.min(ratio, axis=-1)))


@refuses_wrong_arguments
def total_variation_distance(mu: ArrayLike, nu: ArrayLike) -> Array:
    """The largest |mu(S) - nu(S)| over events S, for finite measures.

    For two probability distributions it is :func:`stirred.loss.total_variation`.

    >>> total_variation_distance([0.75, 0.25], [[0.25, 0.75], [0.75, 0.25]]).tolist()
    [0.5, 0.0]
    """
    first, second = measures(mu, nu)
    if not bool(np.all(np.isfinite(first))) or not bool(np.all(np.isfinite(second))):
        raise errors.not_a_measure("A measure", "differences of infinite masses are not defined")
    more = np.maximum(first - second, 0.0).sum(axis=-1)
    less = np.maximum(second - first, 0.0).sum(axis=-1)
    return np.asarray(np.maximum(more, less))


@refuses_wrong_arguments
def approximate_distance(p: ArrayLike, q: ArrayLike, delta: Number) -> Array:
    """D_MULT^delta, the smallest epsilon for which (epsilon, delta) holds (Example 6.2.3): that of
    :func:`stirred.loss.approximate`, for many pairs. Not a metric.

    >>> approximate_distance([[0.5, 0.5], [0.4, 0.6]], [0.3, 0.7], 0.1).round(6).tolist()
    [0.287682, 0.0]
    """
    first, second = measures(p, q)
    shape, outcomes = first.shape[:-1], first.shape[-1]
    rows = zip(first.reshape(-1, outcomes), second.reshape(-1, outcomes), strict=True)
    return np.array([approximate(one, other, delta) for one, other in rows]).reshape(shape)


# -- checks --------------------------------------------------------------------------------------------------


def measures(mu: ArrayLike, nu: ArrayLike) -> tuple[Array, Array]:
    """Two arrays of measures on the same outcomes, of one shape."""
    first, second = measure("The first measure", mu), measure("The second measure", nu)
    if first.shape[-1] != second.shape[-1]:
        raise errors.measures_differ(first.shape[-1], second.shape[-1])
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise errors.measures_differ(f"an array of shape {first.shape}", f"one of shape {second.shape}") from None
    return np.broadcast_to(first, shape), np.broadcast_to(second, shape)


def measure(name: str, values: ArrayLike) -> Array:
    """Masses of a finite list of outcomes on the last axis: at least 0; infinity passes."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise errors.not_a_measure(name, "it is not a list of masses")
    if not bool(np.all(array >= 0)):
        raise errors.not_a_measure(name, "a mass is negative or not a number")
    return array


def finite_measure(name: str, values: ArrayLike) -> Array:
    """One measure without infinite masses, which is not zero."""
    array = measure(name, values)
    if array.ndim != 1 or not bool(np.all(np.isfinite(array))) or not bool(np.any(array > 0)):
        raise errors.not_a_measure(name, "it must be one list of finite masses, not all of them 0")
    return array


def one_probability(name: str, values: ArrayLike) -> Array:
    """One distribution, unchanged, that later code cannot change."""
    array = distribution(name, values).copy()
    array.setflags(write=False)
    return array


def count(name: str, value: int, least: int = 1) -> int:
    """A whole number that is at least ``least``, and not beyond those that floats count by; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise errors.parameter_out_of_range(name, value, f"a whole number that is at least {least}")
    if value > MOST:
        raise errors.parameter_out_of_range(name, "too large", f"at most {MOST:,}")
    return value


def different(values: Iterable[Value]) -> tuple[Value, ...]:
    """The different values in their order; their texts, by which they are named, must differ too."""
    kinds = tuple(dict.fromkeys(values))
    if len(set(map(str, kinds))) < len(kinds):
        raise errors.LimitsError(
            "names-collide",
            "Two different values have the same text, so secrets or attackers named after them would be taken for one.",
            "Give values whose texts differ: 'one' in place of '1' where there is also the number 1.",
        )
    return kinds
