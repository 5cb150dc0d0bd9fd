"""Exact powers and posteriors of mechanisms and models that can be computed, beside the bounds (section 5.9).

The bounds of :mod:`stirred.limits.bounds` hold for every mechanism, model and prior. Here are the numbers of some that
are known in full, to be put beside them: the best test and the beliefs on a count with Laplace noise, and on randomised
responses. A count is that of bits; at Hamming distance d the count differs by at most d, and by d for the two
datasets that are compared. The clamped count of Example 5.6.5 is in :mod:`stirred.limits.clamped`.

Keep in mind: nothing is drawn and nothing is searched for; every number is a closed form or a
finite sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._lazy import later
from stirred.limits.bounds import radius
from stirred.limits.distances import count, one_probability
from stirred.loss import PowerCurve, power_curve
from stirred.loss.argument_checks import Number, finite
from stirred.loss.curves.tradeoffs import in_unit

special = later("scipy.special")
stats = later("scipy.stats")

Array = NDArray[np.float64]

MOST_RECORDS = 100_000
"""Of randomised responses: the law of their number is listed in full."""


# -- a count with Laplace noise ------------------------------------------------------------------------------


@says_what_it_takes
def laplace_power(level: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1) -> Array:
    """The power of the best test between two datasets whose counts are ``distance`` apart, with r = epsilon d:

        a e^r for a <= e^-r / 2,  1 - e^-r / (4 a) for a <= 1/2,  1 - (1 - a) e^-r above.

    The bound of Corollary 5.5.2 is attained for the first and the last; Neyman and Pearson reject above a threshold.

    >>> laplace_power([0.05, 0.05, 0.6], 1, [2, 3, 1]).round(6).tolist()
    [0.369453, 0.751065, 0.852848]
    """
    a, r = np.broadcast_arrays(in_unit("level", level), radius(epsilon, distance))
    shrunk = np.exp(-r)
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.where(a == 0, 0.0, a * np.exp(r))
    middle = 1 - shrunk / (4 * np.where(a > shrunk / 2, a, 1.0))
    last = 1 - (1 - a) * shrunk
    found = np.where(a <= shrunk / 2, first, np.where(a <= 0.5, middle, last))
    return np.where(np.isinf(r), 1.0, found)  # no noise, or no end between the counts: also at level 0


@says_what_it_takes
def laplace_threshold(level: ArrayLike, epsilon: Number) -> Array:
    """The output above which this test of the smaller count, taken as 0, rejects: the noise's 1 - level quantile.

    >>> laplace_threshold(0.05, 1).round(6).tolist()
    2.302585
    """
    a, e = in_unit("level", level), finite("epsilon", epsilon)
    if e == 0:
        raise errors.parameter_out_of_range("epsilon", epsilon, "above 0")
    with np.errstate(divide="ignore"):
        right, left = -np.log(2 * np.minimum(a, 0.5)), np.log(2 * np.minimum(1 - a, 0.5))
    return np.asarray(np.where(a <= 0.5, right, left) / e)


@says_what_it_takes
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


@says_what_it_takes
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


@says_what_it_takes
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
    return np.asarray(PowerCurve(tuple(map(tuple, vertices.tolist()))).power(in_unit("level", level)))


@says_what_it_takes
def response_likelihood(ones: ArrayLike, records: int, rate: ArrayLike, epsilon: Number) -> Array:
    """The probability of one sequence of responses with so many ``ones``, where bits are ones independently with
    probability ``rate``: q^k (1 - q)^(n - k), q the probability that a response is a one.

    >>> response_likelihood([0, 10], 10, [0, 1], 1).round(8).tolist()
    [0.04360354, 0.04360354]
    """
    k, n = np.asarray(ones, dtype=np.float64), count("records", records)
    if not bool(np.all((k >= 0) & (k <= n) & (k == np.floor(k)))):
        raise errors.parameter_out_of_range("ones", "not among them", "whole numbers from 0 to the number of records")
    e, theta = finite("epsilon", epsilon), in_unit("rate", rate)
    q = theta * special.expit(e) + (1 - theta) * special.expit(-e)
    return np.asarray(np.exp(special.xlogy(k, q) + special.xlogy(n - k, 1 - q)))
