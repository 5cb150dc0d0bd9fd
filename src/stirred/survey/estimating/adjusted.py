"""Estimates adjusted to public totals, after the noise: post-stratified, raked, or by linear calibration.

The factors of an adjustment depend on cells of the calibration variables alone, and are computed from measured counts:
post-processing, so that calibration needs no sensitivity of its own. A calibrated total is the sum of g t over cells, g
the factor and t the measured sum. As far as first derivatives go its error is that of the sum of g (t - b n), n the
measured count of a cell and b = X (X'DX)^-1 X'u the fit of t / n to the calibration margins X: with D = n and u = t for
linear calibration, where g = 1 + X l, and with D = g n and u = g t for raking, where log g = X l (Deville and Saerndal
1992). A cell that raking sets to 0, since noise made it negative, does not move the factors.

Each cell of a table of counts is multiplied by a factor so that margins equal the public ones: one factor for each
post-stratum; a product of one factor for each margin (raking, Deming and Stephan 1940); or 1 + x'λ (linear calibration,
the generalised regression estimator).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stirred import errors
from stirred.spec.exact import near
from stirred.survey.estimating.intervals import Curve, DesignBound, SamplingErrors, Source, Sums
from stirred.survey.estimating.measured import Array, MeasuredSurvey, Where
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


# -- factors for public totals -----------------------------------------------------------------------------------------

Margin = tuple[tuple[int, ...], Array]
"""Axes of a table, and public totals over all others: positive numbers, which add up to the same for every margin."""

TOLERANCE = 1e-10
"""By what part of its size a total may be missed."""
ROUNDS = 1000

_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class AdjustedTable:
    """Factors of the cells of a table, and the table times its factors."""

    counts: Array
    """After adjustment."""
    factors: Array
    """Of every cell, also where the count is 0."""
    remark: str
    """What a reader of the table should know about cells below 0; empty if there were none."""


def post_stratify(counts: Array, margin: Margin) -> AdjustedTable:
    """Multiply the cells of a table so that its margin is the public one. Cells that noise made negative are kept.

    >>> post_stratify(np.array([[1.0, 3], [2, -1]]), ((0,), np.array([8, 6]))).counts.tolist()
    [[2.0, 6.0], [12.0, -6.0]]
    """
    return _adjusted(counts, counts, _raked(counts, [margin]), "kept")


def rake(counts: Array, margins: Sequence[Margin]) -> AdjustedTable:
    """Multiply the cells of a table by one factor for each margin, in turn, until all agree.

    Cells that noise made negative are set to 0: that raises the sum of small cells a little, but kept as they are
    raking need not converge. Cells of 0 stay 0: with many of them no factors may reach the totals, which is refused.
    Factors are products, so cells with the count 0 have one too; use it for other sums of the same cell.
    """
    used = np.maximum(counts, 0.0)
    done = "set to 0 before adjustment, which raises sums of small cells"
    return _adjusted(counts, used, _raked(used, margins), done)


def calibrate_linearly(counts: Array, margins: Sequence[Margin]) -> AdjustedTable:
    """Multiply the cells of a table by 1 + x'λ, x being 1 for the categories of the margins that a cell is in.

    Cells below 0 are kept: they can make factors large. Factors can be negative.
    """
    wanted = np.concatenate([np.ravel(totals) for _, totals in margins])
    factors = _linear(counts.ravel(), scipy.sparse.csr_array(categories(counts.shape, margins)), wanted)
    return _adjusted(counts, counts, factors, "kept")


def categories(shape: tuple[int, ...], margins: Sequence[Margin]) -> Array:
    """For every cell of a table (rows) which category of every margin (columns) it is in: 1 there, else 0."""
    return np.hstack([np.eye(totals.size)[_codes(shape, axes)] for axes, totals in margins])


def _adjusted(counts: Array, used: Array, factors: Array, done: str) -> AdjustedTable:
    factors = factors.reshape(counts.shape)
    below = int(np.count_nonzero(counts < 0))
    remark = f"{below:,} of {counts.size:,} cells were negative and were {done}." if below else ""
    return AdjustedTable(used * factors, factors, remark)


def _codes(shape: tuple[int, ...], axes: tuple[int, ...]) -> Codes:
    """The cell of a margin that each cell of the table belongs to, for the table as one column."""
    places = np.indices(shape, sparse=True)
    code: Any = 0
    for axis in axes:
        code = code * shape[axis] + places[axis]
    return np.broadcast_to(code, shape).ravel().astype(np.int64)


def _raked(table: Array, margins: Sequence[Margin]) -> Array:
    """Factors of cells, each a product of one factor for each margin."""
    counts = table.ravel()
    codes = [_codes(table.shape, axes) for axes, _ in margins]
    wanted = [totals.ravel() for _, totals in margins]
    own = [np.ones(len(total)) for total in wanted]
    factors = np.ones(len(counts))
    rounds, gap = 0, math.inf
    while rounds < ROUNDS and gap > TOLERANCE:
        for place, (code, total) in enumerate(zip(codes, wanted, strict=True)):
            own[place] = own[place] * _quotients(total, _sums(code, counts * factors, len(total)))
            factors = reduce(np.multiply, (factor[code] for factor, code in zip(own, codes, strict=True)))
        rounds += 1
        gap = max(
            float(np.max(np.abs(_sums(code, counts * factors, len(total)) - total) / total))
            for code, total in zip(codes, wanted, strict=True)
        )
    if gap > TOLERANCE:
        raise errors.SurveyError(
            "calibration-not-reached",
            f"After {rounds:,} rounds the weights still miss a total by {gap:.2g} of its size.",
            "Allow more rounds or wider bounds, or join small categories; or take the weights as they are "
            "(must_converge=False).",
        )
    return factors


def _sums(codes: Codes, values: Array, number: int) -> Array:
    return np.asarray(np.bincount(codes, values, minlength=number), dtype=np.float64)


def _quotients(wanted: Array, reached: Array) -> Array:
    """By category the factor that takes what is reached to the public total; refused where nothing is there."""
    lacking = int(np.count_nonzero(reached <= 0))
    if lacking:
        raise errors.calibration_totals(
            f"{lacking:,} categories with a public total above 0 have no weight in the sample or table",
            "Join them to other categories",
        )
    return np.asarray(wanted / reached)


def _linear(counts: Array, variables: scipy.sparse.csr_array, wanted: Array) -> Array:
    """Factors 1 + x'λ, with λ by Newton's method: one step (two where rounding spoils it), and one to polish."""
    solution = np.zeros(variables.shape[1])
    factors = np.ones(len(counts))
    sizes = np.maximum(np.abs(wanted), np.abs(variables).T @ np.abs(counts))
    moments = (variables.T @ scipy.sparse.diags_array(counts) @ variables).toarray()
    inverse, gap = _inverse(moments), math.inf
    for step in itertools.count():
        polished = gap <= TOLERANCE
        solution = solution + inverse @ (wanted - variables.T @ (counts * factors))
        factors = np.asarray(1 + variables @ solution)
        gap = float(np.max(np.abs(wanted - variables.T @ (counts * factors)) / sizes))
        if step and gap > TOLERANCE:
            raise errors.calibration_totals(
                "No factors give these totals: the auxiliary variables depend on each other and their totals do not",
                "Correct the totals, or leave out variables that repeat others",
            )
        if polished:
            break
    return factors


def _inverse(moments: Array) -> Array:
    """Generalised inverse of a symmetric matrix whose rows may differ in size by much."""
    sizes = np.sqrt(np.abs(np.diagonal(moments)))
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = np.linalg.pinv(moments / np.outer(sizes, sizes), rcond=_SINGULAR, hermitian=True)
    return np.asarray(scaled / np.outer(sizes, sizes))
