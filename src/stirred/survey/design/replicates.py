"""Variances from replicate weights: BRR, Fay, jackknife, bootstrap and successive differences; confidential, no noise.

An estimate is computed again with each of R columns of replicate weights, and its variance is the sum over replicates
of a coefficient times the squared distance from the estimate: 1 / R (BRR, bootstrap), 1 / (R (1 - k)^2) (Fay),
(R - 1) / R (JK1), (n - 1) / n of the replicate's stratum (JKn), 4 / R (successive differences, as in the American
Community Survey with R = 80). Keep in mind: replicate weights hold the base weight already, and may be 0 or negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.survey.design.linearised import Estimates
from stirred.survey.weights import adjustment
from stirred.survey.weights.adjustment import Codes, Numbers

Method = Literal["brr", "fay", "jk1", "jkn", "bootstrap", "sdr", "given"]
Centre = Literal["estimate", "mean"]
"""What distances are taken from: the estimate with the full weights, or the mean over the replicates."""

_BLOCK = 1 << 15
"""Records that are added up at a time: their replicate weights stay in the cache of a processor."""


@withheld
@dataclass(frozen=True, eq=False)
class ReplicatedSample:
    """Records with weights, replicate weights and domains; made by :meth:`of`."""

    weights: Numbers
    replicates: NDArray[Any]
    coefficients: Numbers
    centre: Centre
    domains: Codes
    number_of_domains: int

    @classmethod
    def of(
        cls,
        weights: Any,
        replicates: Any,
        method: Method,
        *,
        fay: float | None = None,
        coefficients: Any = None,
        centre: Centre = "estimate",
        domains: Any = None,
        number_of_domains: int | None = None,
    ) -> ReplicatedSample:
        """A sample with replicate weights (records by replicates, any type of number; not copied).

        ``fay`` is Fay's k, from 0 to below 1. ``coefficients``, one for each replicate, are needed for ``"jkn"``:
        (n - 1) / n, where n is the number of clusters of the stratum from which the replicate leaves one out; and for
        ``"given"``. Domains are codes from 0 on; -1 in none; without them there is one.
        """
        column = adjustment.checked_weights(weights)
        matrix = np.asarray(replicates)
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or matrix.shape[1] < 2 or len(matrix) != len(column):
            raise errors.survey_column(
                "replicate weights",
                "are not numbers by records and replicates",
                f"Give a matrix with {len(column):,} rows and a column for each of at least 2 replicates",
            )
        if matrix.dtype.kind == "f" and (missing := _missing(matrix)):
            raise errors.survey_column(
                "replicate weights", f"are missing or infinite in {missing:,} records", "Give all of them"
            )
        if centre not in get_args(Centre):
            raise errors.design_choice("centre", "is not known", f"Choose {errors.listed(get_args(Centre), 'or')}")
        if domains is None:
            domains, number_of_domains = np.zeros(len(column), dtype=np.int64), 1
        within = adjustment.checked_codes("domains", domains, number_of_domains, len(column), outside=True)
        number = adjustment.number_of("domains", within, number_of_domains)
        return cls(
            column, matrix, replicate_coefficients(method, matrix.shape[1], fay, coefficients), centre, within, number
        )

    @property
    def records(self) -> int:
        return len(self.weights)


def replicate_coefficients(
    method: Method, replicates: int, fay: float | None = None, coefficients: Any = None
) -> Numbers:
    """Coefficients of the squared distances of so many replicates.

    >>> replicate_coefficients("sdr", 80)[0], replicate_coefficients("fay", 16, fay=0.5)[0]
    (np.float64(0.05), np.float64(0.25))
    """
    if method not in get_args(Method):
        raise errors.design_choice(
            "The method of the replicates", "is not known", f"Choose {errors.listed(get_args(Method), 'or')}"
        )
    if (fay is not None) != (method == "fay"):
        raise errors.design_choice("Fay's k", "goes with the method 'fay' and only with it", "Give fay= there")
    if (coefficients is not None) != (method in ("jkn", "given")):
        raise errors.design_choice(
            "The coefficients of the replicates",
            "go with the methods 'jkn' and 'given' and only with them",
            "Give them there",
        )
    if coefficients is not None:
        given = np.asarray(coefficients)
        if given.shape != (replicates,) or given.dtype.kind not in "biuf" or not (given >= 0).all():
            raise errors.design_choice(
                "The coefficients of the replicates", "do not fit", f"Give {replicates:,} numbers from 0 on"
            )
        return given.astype(np.float64)
    if method == "fay" and not (isinstance(fay, int | float) and 0 <= fay < 1):
        raise errors.design_choice("Fay's k", "is not a number from 0 to below 1", "Give the k of the file")
    one = {
        "brr": 1 / replicates,
        "fay": 1 / (replicates * (1 - (fay or 0.0)) ** 2),
        "jk1": (replicates - 1) / replicates,
        "bootstrap": 1 / replicates,
        "sdr": 4 / replicates,
    }[method]
    return np.full(replicates, one)


# -- estimates ---------------------------------------------------------------------------------------------------


def totals(sample: ReplicatedSample, values: Any = None) -> Estimates:
    """Totals by domain; without values, counts (sums of weights).

    >>> sample = ReplicatedSample.of([1, 1], [[2, 0], [0, 2]], "jk1")
    >>> totals(sample, [3, 5]).values.tolist(), totals(sample, [3, 5]).variances.tolist()
    ([8.0], [4.0])
    """
    return _estimates(sample, *_sums(sample, values))


def means(sample: ReplicatedSample, values: Any) -> Estimates:
    """Hájek means by domain: weighted totals of values over sums of weights."""
    return _quotients(sample, _sums(sample, values), _sums(sample, None))


def ratios(sample: ReplicatedSample, numerators: Any, denominators: Any) -> Estimates:
    """Ratios of two totals by domain; the variance is not a number where a replicate has the denominator 0."""
    return _quotients(sample, _sums(sample, numerators), _sums(sample, denominators))


def proportions(sample: ReplicatedSample, categories: Any, number_of_categories: int | None = None) -> Estimates:
    """Shares of categories (codes from 0 on) in the weight of each domain: arrays of domains by categories."""
    given = adjustment.checked_codes("categories", categories, number_of_categories, sample.records)
    number = adjustment.number_of("categories", given, number_of_categories)
    below = _sums(sample, None)
    columns = [_quotients(sample, _sums(sample, given == category), below) for category in range(number)]
    shape = (sample.number_of_domains, number)
    return Estimates(
        np.stack([one.values for one in columns], axis=1) if columns else np.zeros(shape),
        np.stack([one.variances for one in columns], axis=1) if columns else np.zeros(shape),
    )


def covariances(sample: ReplicatedSample, first: Any, second: Any) -> Numbers:
    """Covariances of two totals of the same domain, by domain; ``None`` stands for the count."""
    return _covariances(sample, *_sums(sample, first), *_sums(sample, second))


def _quotients(sample: ReplicatedSample, above: tuple[Numbers, Numbers], below: tuple[Numbers, Numbers]) -> Estimates:
    with np.errstate(divide="ignore", invalid="ignore"):
        whole, each = above[0] / below[0], above[1] / below[1]
    return _estimates(sample, np.where(np.isfinite(whole), whole, np.nan), np.where(np.isfinite(each), each, np.nan))


def _estimates(sample: ReplicatedSample, whole: Numbers, each: Numbers) -> Estimates:
    return Estimates(whole, _covariances(sample, whole, each, whole, each))


def _covariances(
    sample: ReplicatedSample, whole: Numbers, each: Numbers, other_whole: Numbers, other_each: Numbers
) -> Numbers:
    left, right = (
        replicated
        - (full if sample.centre == "estimate" else replicated[:, sample.coefficients > 0].mean(axis=1))[:, None]
        for full, replicated in ((whole, each), (other_whole, other_each))
    )
    return np.asarray((left * right) @ sample.coefficients)


def _sums(sample: ReplicatedSample, values: Any) -> tuple[Numbers, Numbers]:
    """Weighted sums by domain, with the full weights, and with each column of replicate weights."""
    column = None if values is None else adjustment.checked_numbers("values", values, sample.records)
    replicates = sample.replicates.shape[1]
    number = sample.number_of_domains
    whole = np.zeros(number + 1)
    each = np.zeros((replicates, number + 1))  # records in no domain are added up in the last place
    for start in range(0, sample.records, _BLOCK):
        block = slice(start, start + _BLOCK)
        domains = sample.domains[block]
        own = np.where(domains < 0, number, domains)
        here = 1.0 if column is None else column[block]
        whole += np.bincount(own, sample.weights[block] * here, minlength=number + 1)
        weighted = np.ascontiguousarray(sample.replicates[block].T, dtype=np.float64) * here
        for replicate in range(replicates):
            each[replicate] += np.bincount(own, weighted[replicate], minlength=number + 1)
    return whole[:number], each[:, :number].T


def _missing(matrix: NDArray[Any]) -> int:
    return sum(
        int(np.count_nonzero(~np.isfinite(matrix[start : start + _BLOCK]).all(axis=1)))
        for start in range(0, len(matrix), _BLOCK)
    )
