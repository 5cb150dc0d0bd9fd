"""Impute a missing number row by row from a linear regression on sums with exact noise, so that the losses add up.

As in :mod:`stirred.survey.imputing`: parameters under epsilon1, the completed file under epsilon2, epsilon1 +
epsilon2 in total (section 7.6; Das et al. 2022). Both variables stand on lattices with public bounds, so that the six
sums of a regression are integers, one record changes them by a known amount, and coefficients are exact fractions of
noisy integers. The same invariants hold: the model may be published, and rows are drawn independently given the model.
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
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred._shown import brief
from stirred.noise import RandomSource, discrete_gaussian, discrete_gaussian_each, discrete_laplace_each
from stirred.survey.imputation_models import (
    LARGEST,
    MISSING,
    Codes,
    ParameterShare,
    integer,
    parsed,
    read,
    require_codes,
    require_drawable,
    written,
)
from stirred.survey.imputing import ConditionalFrequencies


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
class LinearModel:
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
        return written("linear", self.share) | {
            "target": _lattice_fields(self.target_name, self.target),
            "predictor": _lattice_fields(self.predictor_name, self.predictor),
            "noisy": list(self.noisy),
        }

    def to_json(self) -> str:
        """The model as JSON text; :meth:`from_json` reads it back."""
        return json.dumps(self.to_fields(), indent=1)

    @classmethod
    def from_fields(cls, fields: Any) -> LinearModel:
        """The model from the fields of a JSON document; anything else is refused."""
        share = read("linear", fields, {"target", "predictor", "noisy"})
        if not isinstance(fields["noisy"], list):
            raise errors.not_an_imputation_model("it has other than six sums, or too large ones")
        (target_name, target), (name, predictor) = (_lattice_of(fields[key]) for key in ("target", "predictor"))
        return cls(predictor, target, tuple(fields["noisy"]), share, target_name, name)

    @classmethod
    def from_json(cls, text: str | bytes) -> LinearModel:
        """The model from JSON text."""
        return cls.from_fields(parsed(text))

    def _above_noise(self, value: Fraction, statistic: int) -> bool:
        noise = self.noise[statistic]
        return value > noise if self.share.law == "laplace" else value > 0 and value**2 > noise


@says_what_it_takes
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


@says_what_it_takes
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
