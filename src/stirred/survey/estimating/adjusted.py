"""Estimates adjusted to public totals, after the noise: post-stratified, raked, or by linear calibration.

The factors of an adjustment depend on cells of the calibration variables alone, and are computed from measured counts:
post-processing, so that calibration needs no sensitivity of its own. A calibrated total is the sum of g t over cells, g
the factor and t the measured sum. As far as first derivatives go its error is that of the sum of g (t - b n), n the
measured count of a cell and b = X (X'DX)^-1 X'u the fit of t / n to the calibration margins X: with D = n and u = t for
linear calibration, where g = 1 + X l, and with D = g n and u = g t for raking, where log g = X l (Deville and Saerndal
1992). A cell that raking sets to 0, since noise made it negative, does not move the factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.spec.exact import near
from stirred.survey.estimating.intervals import Curve, DesignBound, SamplingErrors, Source, Sums
from stirred.survey.estimating.measured import Array, MeasuredSurvey, Where
from stirred.survey.estimating.public_totals import calibrate_linearly, categories, post_stratify, rake
from stirred.survey.plan.sections import CalibrationSection, PublishSection

Codes = NDArray[np.int64]

_IMPOSSIBLE = ("calibration-totals", "calibration-not-reached")
"""Errors that noise can cause: a count below 0, or factors that are not found."""
_TINY = 1e-150
MOST_WEIGHTS = 1 << 21
"""Derivatives by measured values that are held at a time."""
MOST_FORMS = 2_000
"""Rows of a calibrated table: each has a variance that is worked out by itself."""


def calibrated(survey: MeasuredSurvey, wanted: PublishSection, where: Where) -> Sums:
    """Totals, counts, means or shares after an adjustment of the plan."""
    section = survey.plan.calibration(str(wanted.calibration))
    if where or wanted.kind == "ratio":
        raise errors.estimate_question("A calibrated estimate", "is not offered for ratios or with conditions")
    try:
        return _calibrated(survey, wanted, section)
    except errors.SurveyError as problem:
        if problem.kind not in _IMPOSSIBLE:
            raise
        return _nothing(survey, wanted, problem)


def _calibrated(survey: MeasuredSurvey, wanted: PublishSection, section: CalibrationSection) -> Sums:
    table = _Adjusted(survey, section, wanted.summed)
    above = table.crossed(wanted.summed, wanted.cells)
    if wanted.kind in ("count", "total"):
        return table.total(above)
    below = table.crossed(None, wanted.by)
    at = np.repeat(np.arange(len(below.by_cell)), len(above.by_cell) // len(below.by_cell))
    return table.quotient(above, below, at)


@dataclass(frozen=True, eq=False)
class _Crossed:
    """Measured sums by calibration variables and other names together."""

    of: str | None
    names: tuple[str, ...]
    """Of calibration variables, then of the others."""
    cells: Codes
    """For every sum its cell by calibration variables."""
    groups: Codes
    """For every sum its group."""
    by_cell: Array
    """For each group and calibration cell its sum."""
    fits: Array
    """The fit of the sum per count to the calibration margins, likewise."""


def _nothing(survey: MeasuredSurvey, wanted: PublishSection, problem: errors.SurveyError) -> Sums:
    """No estimates: noise left measured counts that cannot be adjusted. A release is not to end with an error then,
    since its budget is spent."""
    number = survey.plan.number_of_cells(wanted.cells)
    source: Source = "unknown" if DesignBound.of(survey.plan) is None else "bounded"
    said = f"There are no adjusted estimates, since the noisy counts cannot be adjusted: {problem.problem}"
    unknown = np.full(number, np.nan)
    return Sums(unknown, unknown, sampling=SamplingErrors(np.zeros(number), source), remarks=(said,))


class _Adjusted:
    """The factors of an adjustment, and sums with them."""

    def __init__(self, survey: MeasuredSurvey, section: CalibrationSection, of: str | None) -> None:
        self.survey, self.section, self.of = survey, section, of
        self.names = names = section.names
        self.shape = tuple(len(survey.plan.schema_of(names).values(name)) for name in names)
        self.counts = survey.family(None).estimates(names, {}).reshape(self.shape)
        self.margins = [
            (axes, np.reshape([near(total) for total in margin.totals], [self.shape[axis] for axis in axes]))
            for margin in section.margins
            for axes in [tuple(names.index(name) for name in margin.by)]
        ]
        if section.method == "post-stratified":
            self.adjusted = post_stratify(self.counts, self.margins[0])
        else:
            self.adjusted = (rake if section.method == "raked" else calibrate_linearly)(self.counts, self.margins)

    def crossed(self, of: str | None, by: tuple[str, ...]) -> _Crossed:
        """The measured sums of a variable (or counts) by calibration variables and some names."""
        together = tuple(dict.fromkeys((*self.names, *by)))
        schema = self.survey.plan.schema_of(together)
        bases = [schema.base(name) for name in together]
        if len(set(bases)) < len(bases):
            raise errors.estimate_question(
                "A calibrated table", "cannot be by a recode and by the attribute it is made from"
            )
        sums = self.survey.family(of).estimates(together, {})
        sizes = {name: len(schema.values(name)) for name in together}
        if len(sums) > 1 << 20 or int(np.prod([sizes[name] for name in by])) > MOST_FORMS:
            raise errors.estimate_question("A calibrated table", f"can have at most {MOST_FORMS:,} rows")
        places = dict(zip(together, np.indices([*sizes.values()]).reshape(len(sizes), -1), strict=True))

        def codes(names: Sequence[str]) -> Codes:
            found = np.zeros(len(sums), dtype=np.int64)
            for name in names:
                found = found * sizes[name] + places[name]
            return found

        cells, groups = codes(self.names), codes(by)
        by_cell = np.zeros((int(groups.max()) + 1, self.counts.size))
        np.add.at(by_cell, (groups, cells), sums)
        return _Crossed(of, together, cells, groups, by_cell, self._fits(by_cell))

    def total(self, of: _Crossed) -> Sums:
        """Calibrated totals of a variable (or counts) by some names."""
        noise = np.concatenate([self._weights(of, some) ** 2 @ self._variances for some in self._parts(of)])
        low, high = self._bounds(of.of)
        squares = self._squares(of.by_cell, of.fits, min(low, 0.0), max(high, 0.0), self.counts.ravel()[None])
        squares = squares + max(-low, high) * np.sqrt(noise)
        values, sampling = self._values(of), self._sampling(squares)
        if low >= 0 and sampling.source == "bounded":
            # Sums of squares of values from 0 on grow with their total: so does the variance, seen from other totals.
            flat = np.where(values > 0, 0.0, sampling.variances)
            slope = np.where(values > 0, sampling.variances / (np.maximum(values, 0.0) + np.sqrt(noise) + _TINY), 0.0)
            sampling = replace(sampling, bound=Curve(flat, slope, np.zeros_like(flat)))
        return Sums(values, noise, sampling=sampling, remarks=self._remarks())

    def quotient(self, above: _Crossed, below: _Crossed, at: Codes) -> Sums:
        """Calibrated totals over calibrated counts, of which row ``at`` belongs to each.

        The residuals are those of the sum of y - R z, y the value and z = 1 of the records in the denominator: they lie
        between low - R and high - R for these, and are 0 for all others.
        """
        values, divisors = self._values(above), self._values(below)[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.nan_to_num(np.where(divisors > 0, values / divisors, 0.0))
        low, high = self._bounds(above.of)
        ratio, variances = np.clip(found, low, high)[:, None], self._variances
        noise, noise_below, between, left = np.zeros((4, len(values)))
        for some in self._parts(above):
            over, under = self._weights(above, some), self._weights(below, at[some])
            noise[some], noise_below[some] = over**2 @ variances, under**2 @ variances
            between[some], left[some] = (over * under) @ variances, (over - ratio[some] * under) ** 2 @ variances
        inside = np.clip(below.by_cell[at], 0.0, np.maximum(self.counts.ravel(), 0.0))
        sums, fits = above.by_cell - ratio * below.by_cell[at], above.fits - ratio * below.fits[at]
        squares = self._squares(sums, fits, low - ratio, high - ratio, inside)
        squares = squares + np.maximum(high - ratio, ratio - low)[:, 0] * np.sqrt(left)
        sampling = self._sampling(squares)
        return Sums(values, noise, divisors, noise_below, between, sampling, self._remarks())

    # -- parts ---------------------------------------------------------------------------------------------------

    def _fits(self, by_cell: Array) -> Array:
        """For each group and calibration cell, the fit of the cell's sum per count to the calibration margins."""
        counts, factors = self.counts.ravel(), self.adjusted.factors.ravel()
        if self.section.method == "post-stratified":  # every cell has a factor of its own
            return np.asarray(by_cell / counts)
        weights, sums = counts, by_cell
        if self.section.method == "raked":
            weights, sums = np.maximum(counts, 0.0) * factors, by_cell * factors
        dummies = categories(self.shape, self.margins)
        moments = dummies.T @ (weights[:, None] * dummies)
        solved = np.linalg.pinv(moments, rcond=1e-10, hermitian=True) @ (dummies.T @ sums.T)
        fits = (dummies @ solved).T
        return np.asarray(np.where(counts > 0, fits, 0.0) if self.section.method == "raked" else fits)

    def _values(self, of: _Crossed) -> Array:
        return np.asarray(of.by_cell @ self.adjusted.factors.ravel())

    def _parts(self, of: _Crossed) -> list[Codes]:
        """The groups, some at a time: derivatives of all of them by all measured values would be a large matrix."""
        at_once = max(1, MOST_WEIGHTS // max(len(of.cells), len(self._variances)))
        return [np.arange(start, min(start + at_once, len(of.by_cell))) for start in range(0, len(of.by_cell), at_once)]

    def _weights(self, of: _Crossed, some: Codes) -> Array:
        """The derivative of some groups' calibrated totals (rows) by every measured value (columns) of all families: g
        on sums, -g b on counts."""
        factors, counts = self.adjusted.factors.ravel(), self.survey.family(None)
        on_sums = np.where(of.groups == some[:, None], factors[of.cells], 0.0)
        on_counts = -factors * of.fits[some]
        if of.of is not None:
            own = self.survey.family(of.of).weights_of_form(of.names, on_sums)
            return np.concatenate([counts.weights_of_form(self.names, on_counts), own], axis=1)
        found = counts.weights_of_form(of.names, on_sums + on_counts[:, of.cells])
        return np.pad(found, ((0, 0), (0, len(self._variances) - found.shape[1])))

    @cached_property
    def _variances(self) -> Array:
        """The noise variance of every measured value of all families."""
        return np.concatenate(
            [each for of in dict.fromkeys((None, self.of)) for each in self.survey.family(of).variances]
        )

    def _bounds(self, of: str | None) -> tuple[float, float]:
        """Between which numbers the values of a variable lie; of counts 0 and 1."""
        if of is None:
            return 0.0, 1.0
        low, high = (near(end) for end in self.survey.plan.variable(of).bounds.ends)
        return low, high

    def _squares(self, sums: Array, fits: Array, low: Any, high: Any, inside: Array) -> Array:
        """By group an upper bound of the sum of squared residuals, with adjusted weights.

        In a cell of n, of which ``inside`` have a value between low <= 0 and high >= 0 and the others 0, values with
        the sum s have a sum of squares of at most (low + high) s - low high inside.
        """
        counts = self.counts.ravel()
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.clip(np.where(counts > 0, sums / counts, 0.0), low, high)
            share = np.where(counts > 0, inside / counts, 0.0)
        within = np.maximum((low + high) * means - low * high * share - means**2, 0.0)
        return np.asarray((within + (means - fits) ** 2) @ np.maximum(self.adjusted.counts.ravel(), 0.0))

    def _sampling(self, squares: Array) -> SamplingErrors:
        """A bound of the sampling variance: the largest weight after adjustment times squared residuals."""
        bound = DesignBound.of(self.survey.plan)
        if bound is None:
            return SamplingErrors(np.zeros(len(squares)), "unknown")
        largest = float(np.max(self.adjusted.factors, initial=1.0))
        return SamplingErrors(bound.residuals(squares) * largest, "bounded")

    def _remarks(self) -> tuple[str, ...]:
        return (self.adjusted.remark,) if self.adjusted.remark else ()
