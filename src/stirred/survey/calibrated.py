"""Estimates adjusted to public totals, after the noise: post-stratified, raked, or by linear calibration.

The factors of an adjustment depend on cells of the calibration variables alone, and are computed from measured counts:
post-processing, so that calibration needs no sensitivity of its own. A calibrated total is the sum of g t over cells, g
the factor and t the measured sum. As far as first derivatives go its error is that of the sum of g (t - b n), n the
measured count of a cell and b the fit of t / n to the calibration margins (Deville and Saerndal 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.spec.exact import near
from stirred.survey.calibrating import AdjustedTable, calibrate_table, post_stratify_table, rake_table
from stirred.survey.combining import Array, MeasuredSurvey, Where
from stirred.survey.plan_sections import CalibrationSection, PublishSection
from stirred.survey.sampling_errors import DesignBound, SamplingErrors, Source

Codes = NDArray[np.int64]
Forms = dict[tuple[str | None, tuple[str, ...]], Array]
"""Coefficients of a sum on measured cells, by family and table."""

_IMPOSSIBLE = ("calibration-totals", "calibration-not-reached")
"""Errors that noise can cause: a count below 0, or factors that are not found."""

MOST_FORMS = 2_000
"""Rows of a calibrated table: each has a variance that is worked out by itself."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Calibrated estimates, a row for each group."""

    values: Array
    noise: Array
    sampling: SamplingErrors
    remarks: tuple[str, ...]


def calibrated(survey: MeasuredSurvey, wanted: PublishSection, where: Where) -> Calibrated:
    """Totals, counts, means or shares after an adjustment of the plan."""
    plan = survey.plan
    section = next((one for one in plan.calibrations if one.name == wanted.calibration), None)
    if section is None:
        raise errors.unknown_choice("calibration", str(wanted.calibration), [one.name for one in plan.calibrations])
    if where or wanted.kind == "ratio":
        raise errors.estimate_question("A calibrated estimate", "is not offered for ratios or with conditions")
    try:
        return _calibrated(survey, wanted, section)
    except errors.SurveyError as problem:
        if problem.kind not in _IMPOSSIBLE:
            raise
        return _nothing(survey, wanted, problem)


def _calibrated(survey: MeasuredSurvey, wanted: PublishSection, section: CalibrationSection) -> Calibrated:
    names = tuple(dict.fromkeys(name for margin in section.margins for name in margin.by))
    table = _Adjusted(survey, section, names)
    of = None if wanted.kind in ("count", "proportion") else wanted.of
    by = (*wanted.by, str(wanted.of)) if wanted.kind == "proportion" else wanted.by
    above = table.total(of, by)
    if wanted.kind in ("count", "total"):
        return above
    below = table.total(None, wanted.by)
    many = len(above.values) // len(below.values)
    repeated = np.repeat(np.arange(len(below.values)), many)
    return table.quotient(of, by, wanted.by, above, below.values[repeated], repeated)


def _nothing(survey: MeasuredSurvey, wanted: PublishSection, problem: errors.SurveyError) -> Calibrated:
    """No estimates: noise left measured counts that cannot be adjusted. A release is not to end with an error then,
    since its budget is spent."""
    by = (*wanted.by, str(wanted.of)) if wanted.kind == "proportion" else wanted.by
    number = survey.plan.schema_of(by).number_of_groups(by)
    source: Source = "unknown" if DesignBound.of(survey.plan) is None else "bounded"
    said = f"There are no adjusted estimates, since the noisy counts cannot be adjusted: {problem.problem}"
    unknown = np.full(number, np.nan)
    return Calibrated(unknown, unknown, SamplingErrors(np.zeros(number), source), (said,))


class _Adjusted:
    """The factors of an adjustment, and sums with them."""

    def __init__(self, survey: MeasuredSurvey, section: CalibrationSection, names: tuple[str, ...]) -> None:
        self.survey, self.section, self.names = survey, section, names
        plan = survey.plan
        self.schema = plan.schema_of(names)
        self.shape = tuple(len(self.schema.values(name)) for name in names)
        self.counts = survey.family(None).estimates(names, {}).reshape(self.shape)
        self.margins = [
            (tuple(names.index(name) for name in margin.by), [near(total) for total in margin.totals])
            for margin in section.margins
        ]
        self.adjusted = self._factors()

    def _factors(self) -> AdjustedTable:
        shaped = [(axes, np.reshape(totals, [self.shape[axis] for axis in axes])) for axes, totals in self.margins]
        if self.section.method == "post-stratified":
            axes, totals = shaped[0]
            return post_stratify_table(self.counts, axes, totals, negative="keep")
        if self.section.method == "raked":
            return rake_table(self.counts, shaped)
        dummies = self._dummies()
        totals = np.concatenate([np.ravel(totals) for _, totals in shaped])
        return calibrate_table(self.counts, dummies.reshape(*self.shape, -1), totals, negative="keep")

    def _dummies(self) -> Array:
        """For every cell which category of every margin it is in."""
        places = np.indices(self.shape).reshape(len(self.shape), -1)
        columns = []
        for axes, totals in self.margins:
            code = np.zeros(places.shape[1], dtype=np.int64)
            for axis in axes:
                code = code * self.shape[axis] + places[axis]
            columns.append(np.eye(len(totals))[code])
        return np.hstack(columns)

    def total(self, of: str | None, by: tuple[str, ...]) -> Calibrated:
        """Calibrated totals of a variable (or counts) by some names."""
        cells, groups, sums = self._sums(of, by)
        factors = self.adjusted.factors.ravel()[cells]
        number = int(groups.max()) + 1
        values = np.bincount(groups, factors * sums, number).astype(np.float64)
        fits = self._fits(of, cells, groups, sums, number)
        noise = np.array(
            [self._noise_of(self._forms(of, by, group, cells, groups, fits[group])) for group in range(number)]
        )
        return Calibrated(values, noise, self._sampling(of, fits, cells, groups, sums, number), self._remarks())

    def quotient(
        self, of: str | None, by: tuple[str, ...], below_by: tuple[str, ...], above: Calibrated, below: Array, at: Codes
    ) -> Calibrated:
        """Calibrated totals over calibrated counts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(below > 0, above.values / below, np.nan)
        cells, groups, sums = self._sums(of, by)
        _, below_groups, below_sums = self._sums(None, below_by)
        number = len(above.values)
        fits = self._fits(of, cells, groups, sums, number)
        below_cells = self._sums(None, below_by)[0]
        below_fits = self._fits(None, below_cells, below_groups, below_sums, int(below_groups.max()) + 1)
        noise = np.empty(number)
        for group in range(number):
            ratio = float(np.nan_to_num(values[group]))
            forms = self._forms(of, by, group, cells, groups, fits[group])
            for key, coefficients in self._forms(
                None, below_by, int(at[group]), below_cells, below_groups, below_fits[int(at[group])]
            ).items():
                forms[key] = forms.get(key, 0.0) - ratio * coefficients
            noise[group] = self._noise_of(forms) / max(below[group], 1e-300) ** 2
        sampling = above.sampling
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = np.nan_to_num(sampling.variances / below**2)
        return Calibrated(values, noise, SamplingErrors(variances, sampling.source), above.remarks)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _together(self, by: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.names, *by)))

    def _sums(self, of: str | None, by: Sequence[str]) -> tuple[Codes, Codes, Array]:
        """For every cell by calibration variables and names together: its calibration cell, its group and its sum."""
        together = self._together(by)
        schema = self.survey.plan.schema_of(together)
        bases = [schema.base(name) for name in together]
        if len(set(bases)) < len(bases):
            raise errors.estimate_question(
                "A calibrated table", "cannot be by a recode and by the attribute it is made from"
            )
        sums = self.survey.family(of).estimates(together, {})
        sizes = [len(schema.values(name)) for name in together]
        if len(sums) > 1 << 20 or int(np.prod([len(schema.values(name)) for name in by])) > MOST_FORMS:
            raise errors.estimate_question("A calibrated table", f"can have at most {MOST_FORMS:,} rows")
        places = dict(zip(together, np.indices(sizes).reshape(len(sizes), -1), strict=True))

        def codes(names: Sequence[str]) -> Codes:
            found = np.zeros(len(sums), dtype=np.int64)
            for name in names:
                found = found * len(schema.values(name)) + places[name]
            return found

        return codes(self.names), codes(by), sums

    def _fits(self, of: str | None, cells: Codes, groups: Codes, sums: Array, number: int) -> Array:
        """For each group and calibration cell, the fit of the cell's sum per count to the calibration margins."""
        size = int(np.prod(self.shape))
        by_cell = np.zeros((number, size))
        np.add.at(by_cell, (groups, cells), sums)
        counts = self.adjusted.counts.ravel()  # after adjustment: what factors multiply
        weights = np.maximum(counts, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(self.counts.ravel() > 0, by_cell / self.counts.ravel(), 0.0)
        if self.section.method == "post-stratified":  # every cell has a factor of its own
            return means
        dummies = self._dummies()
        moments = dummies.T @ (weights[:, None] * dummies)
        solved = np.linalg.pinv(moments, hermitian=True) @ (dummies.T @ (weights[:, None] * means.T))
        return np.asarray((dummies @ solved).T)

    def _forms(self, of: str | None, by: Sequence[str], group: int, cells: Codes, groups: Codes, fit: Array) -> Forms:
        """The coefficients of a calibrated total on measured cells, by family and table: g on sums, -g b on counts."""
        factors = self.adjusted.factors.ravel()
        found: Forms = {(of, self._together(by)): np.where(groups == group, factors[cells], 0.0)}
        key = (None, self.names)
        found[key] = found.get(key, 0.0) - factors * fit
        return found

    def _noise_of(self, forms: Forms) -> float:
        """The noise variance of a sum of forms; forms of one family are put together first."""
        total = 0.0
        for of in {of for of, _ in forms}:
            own = {names: values for (family, names), values in forms.items() if family == of}
            together = tuple(dict.fromkeys(name for names in own for name in names))
            schema = self.survey.plan.schema_of(together)
            sizes = [len(schema.values(name)) for name in together]
            whole = np.zeros(sizes)
            for names, values in own.items():
                shaped = values.reshape([len(schema.values(name)) for name in names])
                order = [names.index(name) for name in together if name in names]
                shape = [len(schema.values(name)) if name in names else 1 for name in together]
                whole = whole + np.transpose(shaped, order).reshape(shape)
            total += self.survey.family(of).noise_of_form(together, whole.ravel())
        return total

    def _sampling(
        self, of: str | None, fits: Array, cells: Codes, groups: Codes, sums: Array, number: int
    ) -> SamplingErrors:
        """A bound of the sampling variance: the largest weight after adjustment times squared residuals."""
        plan = self.survey.plan
        bound = DesignBound.of(plan)
        if bound is None:
            return SamplingErrors(np.zeros(number), "unknown")
        low, high = (0.0, 1.0) if of is None else (near(end) for end in plan.variable(of).bounds.ends)
        low, high = min(low, 0.0), max(high, 0.0)  # a record outside of the group counts as 0
        counts = np.maximum(self.adjusted.counts.ravel(), 0.0)
        by_cell = np.zeros((number, len(counts)))
        np.add.at(by_cell, (groups, cells), sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.clip(np.where(self.counts.ravel() > 0, by_cell / self.counts.ravel(), 0.0), low, high)
        squares = ((high - means) * (means - low) + (means - fits) ** 2) @ counts
        largest = float(np.max(self.adjusted.factors, initial=1.0))
        return SamplingErrors(bound.residuals(squares) * largest, "bounded")

    def _remarks(self) -> tuple[str, ...]:
        return (self.adjusted.remark,) if self.adjusted.remark else ()
