"""Models that fill in missing values row by row, from noisy counts or a noisy regression, so that the losses add up.

A model is published: it holds noisy integers and public facts, and JSON is read back within the bounds of
:mod:`stirred._bounded_reading`. No error here tells a code of the data.

Missing categories are drawn from frequencies that were counted with exact noise. Section 7.6 (Das et al. 2022): if the
imputed values of a row depend on that row and on parameters alone, and the parameters cost epsilon1, then an analysis
of the completed file under epsilon2 costs epsilon1 + epsilon2 in total (the proof is in
:mod:`stirred.survey.plan.imputation_kinds`).

Files that are compared have the same number of records and differ in one of them, which may also turn from observed to
missing. Invariants: a model holds noisy integers and public facts only, so that it may be published; everything that is
computed from it is exact, and is a function of it alone; rows are drawn independently of each other.

Missing numbers are drawn from a linear regression on sums with exact noise, and the losses add up likewise. Both
variables stand on lattices with public bounds, so that the six sums of a regression are integers, one record changes
them by a known amount, and coefficients are exact fractions of noisy integers. The same invariants hold: the model may
be published, and rows are drawn independently given the model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stirred import _bounded_reading, errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.noise import (
    RandomSource,
    discrete_gaussian,
    discrete_gaussian_each,
    discrete_laplace,
    discrete_laplace_each,
    uniform_integers,
)
from stirred.survey.plan.imputation_kinds import at_least

MISSING = -1
"""The code of a missing answer in a target; predictors are never missing."""

NoiseLaw = Literal["laplace", "gaussian"]
Codes = NDArray[np.integer[Any]]

VERSION = 1
LARGEST = 1 << 62
LARGEST_SCALE = 1 << 40
"""What the exact samplers draw: a scale of 2^40, a variance of 2^80."""


@dataclass(frozen=True)
class ParameterShare:
    """The share of the budget that the parameters of a model cost: epsilon with Laplace noise, rho with Gaussian."""

    law: NoiseLaw
    budget: Fraction

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "budget", as_fraction(self.budget))
        except NOT_A_NUMBER:
            raise errors.imputation_share() from None
        if self.law not in ("laplace", "gaussian") or self.budget <= 0:
            raise errors.imputation_share()

    @classmethod
    def of(cls, epsilon: Any = None, rho: Any = None) -> ParameterShare:
        """Either epsilon or rho."""
        if (epsilon is None) == (rho is None):
            raise errors.imputation_share()
        return cls("laplace", epsilon) if rho is None else cls("gaussian", rho)

    @property
    def word(self) -> str:
        """The name of the budget."""
        return "epsilon" if self.law == "laplace" else "rho"

    def noise(self, sum_changed: int, squares_changed: int, reach: int = 1) -> Fraction:
        """The scale of Laplace or variance of Gaussian noise on a statistic that reaches up to ``reach``.

        One record changes the statistics, each divided by its reach, by at most ``sum_changed`` (added up) or
        ``squares_changed`` (squares added up). Canonne, Kamath and Steinke (2020) for the Gaussian.
        """
        if self.law == "laplace":
            return reach * sum_changed / self.budget
        return reach * reach * squares_changed / (2 * self.budget)


# -- reading and writing -----------------------------------------------------------------------------------------


def _heading(kind: str, share: ParameterShare) -> dict[str, Any]:
    """The fields that every published imputation model begins with."""
    return {"stirred_imputation": VERSION, "kind": kind, "noise": share.law, share.word: str(share.budget)}


def _share_read(kind: str, fields: Any, own: set[str]) -> ParameterShare:
    """The share of a model of some kind with fields of its own; anything else is refused."""
    if not isinstance(fields, dict):
        raise errors.not_an_imputation_model("it is not an object")
    word = "epsilon" if fields.get("noise") == "laplace" else "rho"
    wanted = {"stirred_imputation", "kind", "noise", word} | own
    if set(fields) != wanted:
        raise errors.not_an_imputation_model(f"its fields are not {', '.join(sorted(wanted))}")
    if (
        type(fields["stirred_imputation"]) is not int
        or fields["stirred_imputation"] != VERSION
        or fields["kind"] != kind
    ):
        raise errors.not_an_imputation_model(f"it is of another version or kind than {VERSION} and '{kind}'")
    if not isinstance(fields[word], str):
        raise errors.not_an_imputation_model(f"{word} is not a text such as '1/2'")
    return ParameterShare(fields["noise"], fields[word])


class _Model:
    """What both kinds of models share: JSON text and back."""

    def to_fields(self) -> dict[str, Any]:
        """Everything that is published about the model, for a JSON document."""
        raise NotImplementedError

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """The model from the fields of a JSON document; anything else is refused."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The model as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_fields(), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The model from JSON text."""
        try:
            return cls.from_fields(_bounded_reading.parse_json(text))
        except _bounded_reading.Unacceptable as found:
            raise errors.not_an_imputation_model(str(found)) from None


# -- what is given -----------------------------------------------------------------------------------------------


def require_codes(codes: Any, column: str, least: int, below: int, rows: int | None = None) -> None:
    if not isinstance(codes, np.ndarray) or codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise errors.imputation_codes(column, "are not a one-dimensional array of whole numbers")
    if rows is not None and len(codes) != rows:
        raise errors.imputation_codes(column, "are not as many as those of the other column")
    if len(codes) and not (least <= int(codes.min()) and int(codes.max()) < below):
        raise errors.imputation_codes(column, "are not all among those that the plan lists")


def require_drawable(share: ParameterShare, noise: Fraction, remedy: str) -> None:
    if noise > (LARGEST_SCALE if share.law == "laplace" else LARGEST_SCALE**2):
        raise errors.imputation_too_large("The noise of the imputation model exceeds a scale of 2^40", remedy)


def integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise errors.not_an_imputation_model("a noisy number is not a whole number")
    return int(value)


MOST_CELLS = 1_000_000
"""Groups times values of a table of frequencies."""


@brief
@dataclass(frozen=True)
class ConditionalFrequencies(_Model):
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
        return _heading("conditional frequencies", self.share) | {
            "target": self.target,
            "by": list(self.by),
            "noisy_counts": [list(row) for row in self.noisy_counts],
        }

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """The model from the fields of a JSON document; anything else is refused."""
        share = _share_read("conditional frequencies", fields, {"target", "by", "noisy_counts"})
        counts, by = fields["noisy_counts"], fields["by"]
        if not isinstance(counts, list) or not all(isinstance(row, list) for row in counts):
            raise errors.not_an_imputation_model("the noisy counts are not a table of groups by values")
        if not isinstance(by, list) or not all(isinstance(name, str) for name in [fields["target"], *by]):
            raise errors.not_an_imputation_model("names of columns are texts")
        return cls(tuple(map(tuple, counts)), share, fields["target"], tuple(by))


def frequency_weights(noisy_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The published rule from noisy counts (..., groups, values) to weights; a function of the noisy counts only.

    >>> frequency_weights(np.array([[3, -1], [-2, -4]])).tolist()
    [[3, 0], [1, 0]]
    """
    own = np.maximum(noisy_counts, 0)
    together = np.maximum(noisy_counts.sum(axis=-2, keepdims=True), 0)
    together = np.where(together.any(axis=-1, keepdims=True), together, 1)
    return np.where(own.any(axis=-1, keepdims=True), own, together)


@refuses_wrong_arguments
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


@refuses_wrong_arguments
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


@dataclass(frozen=True)
class Lattice:
    """The values low, low + step, ..., high that a variable can have; public. A value is known by its code 0, 1, ...

    >>> Lattice(0, "2.5", "0.5").steps
    5
    """

    low: Fraction
    high: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        for name in ("low", "high", "step"):
            try:
                object.__setattr__(self, name, as_fraction(getattr(self, name)))
            except NOT_A_NUMBER:
                raise errors.survey_bounds_missing(
                    "a lower bound, an upper bound and a step of each variable"
                ) from None
        if self.step <= 0 or self.high <= self.low or ((self.high - self.low) / self.step).denominator != 1:
            raise errors.survey_fact("A range of values", "is a positive whole number of positive steps long")

    @property
    def steps(self) -> int:
        """The largest code."""
        return int((self.high - self.low) / self.step)

    def value(self, code: int) -> Fraction:
        """The value with this code."""
        return self.low + self.step * code


STATISTICS = ("n", "sum of z", "sum of x", "sum of z z", "sum of z x", "sum of x x")
"""Of the observed records; z and x are twice the number of steps from the middle of the range of each variable."""
SUM_CHANGED, SQUARES_CHANGED = 6, 8
"""By how much one record changes the six statistics, each divided by its reach: added up, and squares added up.

With u, v in [-1, 1] for z and x divided by their reach the statistics are (1, u, v, uu, uv, vv). A record at a corner
that turns missing changes each of them by 1: 6 in all, and 6 in squares. Two observed records: with d and s the
absolute difference and sum of their u (D and S of their v), d <= 2 - s and D <= 2 - S, the changes are at most 0, d, D,
d s, (d S + s D) / 2, D S. Added up they are at most 4 + 2 s + 2 S - s^2 - S^2 - s S <= 16/3 < 6. Squares: with p =
1 - s and q = 1 - S in [-1, 1], at most 5 + 2 p + 2 q - p^2 - q^2 + p^4 + q^4 - 2 p q + p^2 q^2, which is at most
5 + 2 (1 - (1 - p)(1 - q)) + p^2 q^2 <= 8, attained by two opposite corners, which are on every lattice.
"""


@brief
@dataclass(frozen=True)
class LinearModel(_Model):
    """A regression of one variable on another from noisy sums, and the law of imputed values: an imputation model.

    ``noisy`` are the six :data:`STATISTICS` of the observed records plus noise, of a scale (Laplace, 6 reach/epsilon)
    or standard deviation (Gaussian, 2 reach/sqrt(rho)) in proportion to how far one record reaches in each of them.
    Published rule for imputing, in codes of the two lattices:

    * Means are cut at the bounds. Where the noisy n is not above the scale or standard deviation of its noise, nothing
      is taken as known: the mean is the middle, and the variance that of all codes alike.
    * The slope is the noisy covariance over the noisy variance of the predictor; 0 where the sum of squares of the
      predictor about its mean is not above the scale or standard deviation of the noise of its sum of squares.
    * The prediction is rounded to the nearest code, halves up, and cut at the bounds.
    * A discrete Gaussian of the residual variance is added, and the sum is cut at the bounds. A negative residual
      variance counts as 0, one above a quarter of the squared range as that.
    """

    predictor: Lattice
    target: Lattice
    noisy: tuple[int, ...]
    share: ParameterShare
    target_name: str = ""
    predictor_name: str = ""

    def __post_init__(self) -> None:
        found = tuple(map(integer, self.noisy))
        if len(found) != len(STATISTICS) or max(map(abs, found)) >= 1 << 80:
            raise errors.not_an_imputation_model("it has other than six sums, or too large ones")
        object.__setattr__(self, "noisy", found)

    @property
    def noise(self) -> tuple[Fraction, ...]:
        """The scales (Laplace) or variances (Gaussian) of the noise of the six statistics."""
        return _linear_noise(self.predictor.steps, self.target.steps, self.share)

    @cached_property
    def fit(self) -> tuple[Fraction, Fraction, Fraction]:
        """Intercept, slope and residual variance, in codes of the two lattices, by the published rule."""
        reach_z, reach_x = self.predictor.steps, self.target.steps
        n, sum_z, sum_x, sum_zz, sum_zx, sum_xx = self.noisy
        if not self._above_noise(Fraction(n), 0):
            return Fraction(reach_x, 2), Fraction(0), Fraction(reach_x * (reach_x + 2), 12)
        mean_z, mean_x = _cut(Fraction(sum_z, n), -reach_z, reach_z), _cut(Fraction(sum_x, n), -reach_x, reach_x)
        spread, joint = sum_zz - n * mean_z**2, sum_zx - n * mean_z * mean_x
        slope = joint / spread if self._above_noise(spread, 3) else Fraction(0)
        residual = _cut(Fraction(sum_xx, n) - mean_x**2 - slope * joint / n, 0, reach_x**2)
        return (reach_x + mean_x - slope * (reach_z + mean_z)) / 2, slope, residual / 4

    @property
    def slope(self) -> Fraction:
        """By how much the target rises with the predictor, in their own units."""
        return self.fit[1] * self.target.step / self.predictor.step

    @property
    def intercept(self) -> Fraction:
        """The prediction where the predictor is 0, in the units of the target."""
        return self.target.low + self.target.step * self.fit[0] - self.slope * self.predictor.low

    @property
    def residual_variance(self) -> Fraction:
        """Of what is added to predictions, in squared units of the target."""
        return self.fit[2] * self.target.step**2

    def predicted(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rounded and cut prediction for each code of the predictor, as a code of the target."""
        intercept, slope, _ = self.fit
        below = intercept.denominator * slope.denominator
        start, rise = int(intercept * below), int(slope * below)
        most = self.target.steps
        found = [min(max((2 * (start + rise * code) + below) // (2 * below), 0), most) for code in codes.tolist()]
        return np.array(found, dtype=np.int64)

    def to_fields(self) -> dict[str, Any]:
        """Everything that is published about the model, for a JSON document."""
        return _heading("linear", self.share) | {
            "target": _lattice_fields(self.target_name, self.target),
            "predictor": _lattice_fields(self.predictor_name, self.predictor),
            "noisy": list(self.noisy),
        }

    @classmethod
    def from_fields(cls, fields: Any) -> Self:
        """The model from the fields of a JSON document; anything else is refused."""
        share = _share_read("linear", fields, {"target", "predictor", "noisy"})
        if not isinstance(fields["noisy"], list):
            raise errors.not_an_imputation_model("it has other than six sums, or too large ones")
        (target_name, target), (name, predictor) = (_lattice_of(fields[key]) for key in ("target", "predictor"))
        return cls(predictor, target, tuple(fields["noisy"]), share, target_name, name)

    def _above_noise(self, value: Fraction, statistic: int) -> bool:
        noise = self.noise[statistic]
        return value > noise if self.share.law == "laplace" else value > 0 and value**2 > noise


@refuses_wrong_arguments
def estimate_linear(
    predictor: Codes,
    answers: Codes,
    *,
    predictor_lattice: Lattice,
    target_lattice: Lattice,
    source: RandomSource,
    epsilon: Any = None,
    rho: Any = None,
    target: str = "",
    by: str = "",
) -> LinearModel:
    """Add up the six sums over observed records, add exact noise to each, and give the model: may be published.

    Parameters
    ----------
    predictor
        The code of the predictor in each record, on its lattice; never missing.
    answers
        The code of the target in each record, or -1 where it is missing.
    predictor_lattice, target_lattice
        Bounds and steps by the plan, not by the file.
    epsilon, rho
        One of them, for Laplace or Gaussian noise; see :class:`LinearModel`.
    """
    share = ParameterShare.of(epsilon, rho)
    reach_z, reach_x = predictor_lattice.steps, target_lattice.steps
    noise = _linear_noise(reach_z, reach_x, share)
    require_drawable(share, max(noise), "Choose coarser steps, or raise the share of the parameters")
    sums = linear_statistics(predictor, answers, reach_z, reach_x)
    draw = discrete_laplace_each if share.law == "laplace" else discrete_gaussian_each
    drawn = [int(draw([one], source)[0]) for one in noise]
    noisy = tuple(exact + added for exact, added in zip(sums, drawn, strict=True))
    return LinearModel(predictor_lattice, target_lattice, noisy, share, target, by)


def linear_statistics(predictor: Codes, answers: Codes, reach_z: int, reach_x: int) -> tuple[int, ...]:
    """The six :data:`STATISTICS` of the observed records, without noise: confidential."""
    require_codes(predictor, "predictor", 0, reach_z + 1)
    require_codes(answers, "target", MISSING, reach_x + 1, len(predictor))
    if max(reach_z, reach_x) ** 2 * max(len(predictor), 1) >= LARGEST:
        raise errors.imputation_too_large(
            "Sums of squares over so many records and so fine steps exceed 2^62", "Choose coarser steps"
        )
    observed = answers != MISSING
    z = 2 * predictor[observed].astype(np.int64) - reach_z
    x = 2 * answers[observed].astype(np.int64) - reach_x
    sums = (z.sum(), x.sum(), z @ z, z @ x, x @ x)
    return (len(z), *(int(one) for one in sums))


@refuses_wrong_arguments
def impute_linear(model: LinearModel, predictor: Codes, answers: Codes, source: RandomSource) -> NDArray[np.int64]:
    """The codes of the target with every missing one drawn about its prediction, independently: confidential.

    Call it several times for multiple imputation; the model is estimated, and paid for, once.
    """
    require_codes(predictor, "predictor", 0, model.predictor.steps + 1)
    require_codes(answers, "target", MISSING, model.target.steps + 1, len(predictor))
    completed = answers.astype(np.int64)
    rows = np.flatnonzero(answers == MISSING)
    codes, places = np.unique(predictor[rows].astype(np.int64), return_inverse=True)
    imputed = model.predicted(codes)[places]
    variance = model.fit[2]
    if variance > 0:
        imputed = imputed + discrete_gaussian(variance, len(rows), source)
    completed[rows] = np.clip(imputed, 0, model.target.steps)
    return completed


def _linear_noise(reach_z: int, reach_x: int, share: ParameterShare) -> tuple[Fraction, ...]:
    reaches = (1, reach_z, reach_x, reach_z**2, reach_z * reach_x, reach_x**2)
    return tuple(share.noise(SUM_CHANGED, SQUARES_CHANGED, reach) for reach in reaches)


def _cut(value: Fraction, low: int, high: int) -> Fraction:
    return min(max(value, Fraction(low)), Fraction(high))


def model_from_fields(fields: Any) -> ConditionalFrequencies | LinearModel:
    """An imputation model from the fields of a JSON document, of either kind."""
    if not isinstance(fields, dict):
        raise errors.not_an_imputation_model("it is not an object")
    if fields.get("kind") == "linear":
        return LinearModel.from_fields(fields)
    return ConditionalFrequencies.from_fields(fields)


def _lattice_fields(name: str, lattice: Lattice) -> dict[str, str]:
    return {"name": name, "low": str(lattice.low), "high": str(lattice.high), "step": str(lattice.step)}


def _lattice_of(fields: Any) -> tuple[str, Lattice]:
    wanted = {"name", "low", "high", "step"}
    if (
        not isinstance(fields, dict)
        or set(fields) != wanted
        or not all(isinstance(one, str) for one in fields.values())
    ):
        raise errors.not_an_imputation_model("a variable has a name, low, high and step, as texts")
    return fields["name"], Lattice(fields["low"], fields["high"], fields["step"])
