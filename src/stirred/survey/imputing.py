"""Impute missing categories row by row from frequencies that were counted with exact noise, so that the losses add up.

Section 7.6 (Das et al. 2022): if the imputed values of a row depend on that row and on parameters alone, and the
parameters cost epsilon1, then an analysis of the completed file under epsilon2 costs epsilon1 + epsilon2 in total (the
proof is in :mod:`stirred.survey.imputation_accounting`; a linear model is in :mod:`stirred.survey.linear_imputing`).

Files that are compared have the same number of records and differ in one of them, which may also turn from observed to
missing. Invariants: a model holds noisy integers and public facts only, so that it may be published; everything that is
computed from it is exact, and is a function of it alone; rows are drawn independently of each other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.noise import RandomSource, discrete_gaussian, discrete_laplace, uniform_integers
from stirred.survey.imputation_models import (
    LARGEST,
    MISSING,
    Codes,
    ParameterShare,
    at_least,
    integer,
    parsed,
    read,
    require_codes,
    require_drawable,
    written,
)

MOST_CELLS = 1_000_000
"""Groups times values of a table of frequencies."""


@brief
@dataclass(frozen=True)
class ConditionalFrequencies:
    """How often each value of a categorical answer occurs in each group of records, with noise: an imputation model.

    ``noisy_counts[group][value]`` is the number of records of a group with an observed value, plus noise: one record
    that is replaced lowers one count by 1 and raises another, so the counts change by 2 in all (by 2 in squares).
    Published rule for imputing: noisy counts below 0 count as 0. A group without a positive count takes the sums of the
    noisy counts over all groups, again without those below 0; if none is positive, all values are alike.
    """

    noisy_counts: tuple[tuple[int, ...], ...]
    share: ParameterShare
    target: str = ""
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows = [[integer(count) for count in row] for row in self.noisy_counts]
        if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
            raise errors.not_an_imputation_model("the noisy counts are not a table of groups by values")
        if (
            len(rows) * len(rows[0]) > MOST_CELLS
            or sum(abs(count) for row in rows for count in row) * len(rows) >= LARGEST
        ):
            raise errors.not_an_imputation_model("the noisy counts are too many or too large")
        object.__setattr__(self, "noisy_counts", tuple(map(tuple, rows)))
        object.__setattr__(self, "by", tuple(self.by))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.noisy_counts)

    @property
    def values(self) -> int:
        """The number of values of the answer."""
        return len(self.noisy_counts[0])

    @property
    def noise(self) -> Fraction:
        """The scale of the Laplace noise on each count, 2/epsilon, or the variance of the Gaussian, 1/rho."""
        return self.share.noise(2, 2)

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """One row for each group: whole numbers in proportion to which values are drawn."""
        return frequency_weights(np.array(self.noisy_counts, dtype=np.int64))

    def probabilities(self, group: int) -> tuple[Fraction, ...]:
        """With which probability each value is imputed in a record of this group."""
        row = [int(weight) for weight in self.weights[group]]
        return tuple(Fraction(weight, sum(row)) for weight in row)

    def to_fields(self) -> dict[str, Any]:
        """Everything that is published about the model, for a JSON document."""
        return written("conditional frequencies", self.share) | {
            "target": self.target,
            "by": list(self.by),
            "noisy_counts": [list(row) for row in self.noisy_counts],
        }

    def to_json(self) -> str:
        """The model as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_fields(), indent=1)

    @classmethod
    def from_fields(cls, fields: Any) -> ConditionalFrequencies:
        """The model from the fields of a JSON document; anything else is refused."""
        share = read("conditional frequencies", fields, {"target", "by", "noisy_counts"})
        counts, by = fields["noisy_counts"], fields["by"]
        if not isinstance(counts, list) or not all(isinstance(row, list) for row in counts):
            raise errors.not_an_imputation_model("the noisy counts are not a table of groups by values")
        if not isinstance(by, list) or not all(isinstance(name, str) for name in [fields["target"], *by]):
            raise errors.not_an_imputation_model("names of columns are texts")
        return cls(tuple(map(tuple, counts)), share, fields["target"], tuple(by))

    @classmethod
    def from_json(cls, text: str | bytes) -> ConditionalFrequencies:
        """The model from JSON text."""
        return cls.from_fields(parsed(text))


def frequency_weights(noisy_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The published rule from noisy counts (..., groups, values) to weights; a function of the noisy counts only.

    >>> frequency_weights(np.array([[3, -1], [-2, -4]])).tolist()
    [[3, 0], [1, 0]]
    """
    own = np.maximum(noisy_counts, 0)
    together = np.maximum(noisy_counts.sum(axis=-2, keepdims=True), 0)
    together = np.where(together.any(axis=-1, keepdims=True), together, 1)
    return np.where(own.any(axis=-1, keepdims=True), own, together)


@says_what_it_takes
def estimate_frequencies(
    groups: Codes,
    answers: Codes,
    *,
    group_count: int,
    value_count: int,
    source: RandomSource,
    epsilon: Any = None,
    rho: Any = None,
    target: str = "",
    by: tuple[str, ...] = (),
) -> ConditionalFrequencies:
    """Count observed answers by group, add exact noise to every count, and give the model: may be published.

    Parameters
    ----------
    groups
        The group of each record, 0 to group_count - 1: a cell of the table by the predicting attributes.
    answers
        The answer of each record, 0 to value_count - 1, or -1 where it is missing.
    group_count, value_count
        How many groups and values there are by the plan, not by the file.
    epsilon, rho
        One of them: discrete Laplace noise of scale 2/epsilon, or discrete Gaussian noise of variance 1/rho.

    >>> from stirred.noise import SeededSource
    >>> groups, answers = np.repeat([0, 1], 50), np.tile([0, 1, 1, 1, -1], 20)
    >>> found = estimate_frequencies(
    ...     groups, answers, group_count=2, value_count=2, source=SeededSource(1), epsilon="0.5"
    ... )
    >>> found.noisy_counts, [str(p) for p in found.probabilities(0)]
    (((12, 22), (8, 30)), ['6/17', '11/17'])
    """
    share = ParameterShare.of(epsilon, rho)
    at_least(group_count, "The number of groups", 1)
    at_least(value_count, "The number of values", 1)
    cells = group_count * value_count
    if cells > MOST_CELLS:
        raise errors.imputation_too_large(
            f"The imputation model has {cells:,} counts, and {MOST_CELLS:,} are the most", "Predict by fewer attributes"
        )
    counts = count_answers(groups, answers, group_count, value_count)
    scale = share.noise(2, 2)
    require_drawable(share, scale, "Raise the share of the parameters")
    draw = discrete_laplace if share.law == "laplace" else discrete_gaussian
    noisy = counts + draw(scale, cells, source).reshape(counts.shape)
    return ConditionalFrequencies(tuple(map(tuple, noisy.tolist())), share, target, tuple(by))


def count_answers(groups: Codes, answers: Codes, group_count: int, value_count: int) -> NDArray[np.int64]:
    """Observed answers by group and value, without noise: confidential."""
    require_codes(groups, "group", 0, group_count)
    require_codes(answers, "target", MISSING, value_count, len(groups))
    observed = answers != MISSING
    cells = groups[observed].astype(np.int64) * value_count + answers[observed]
    return np.bincount(cells, minlength=group_count * value_count).reshape(group_count, value_count)


@says_what_it_takes
def impute_categories(
    model: ConditionalFrequencies, groups: Codes, answers: Codes, source: RandomSource
) -> NDArray[np.int64]:
    """The answers with every missing one drawn from the frequencies of its group, independently: confidential.

    Call it several times for multiple imputation; the model is estimated, and paid for, once.
    """
    require_codes(groups, "group", 0, model.groups)
    require_codes(answers, "target", MISSING, model.values, len(groups))
    completed = answers.astype(np.int64)
    rows = np.flatnonzero(answers == MISSING)
    own = groups[rows].astype(np.int64)
    positions = uniform_integers(model.weights.sum(axis=1)[own], len(rows), source)
    completed[rows] = values_at(model.weights, own, positions)
    return completed


def values_at(weights: NDArray[np.int64], groups: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The value that owns a position from 0 on in the weights of a group laid end to end: as many as its weight is."""
    ends = np.cumsum(weights.ravel())
    starts = ends[weights.shape[1] - 1 :: weights.shape[1]] - weights.sum(axis=1)
    found: NDArray[np.int64] = np.searchsorted(ends, positions + starts[groups], side="right").astype(np.int64)
    return found - groups * np.int64(weights.shape[1])
