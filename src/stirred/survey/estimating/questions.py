"""Answers questions to a survey release: totals, means, shares, ratios and quantiles, with intervals.

Where not everybody answered, it is said who is missing, and what adjusts for it. With design weights w = 1 /
(probability of selection), the weighted sum over those who answered is too small by the weights of those who did not.
Keep in mind: these words follow from the plan alone, and nothing is read from the file.

Everything is computed from the measured sums and standard errors of the release and costs nothing. Estimates of totals
are unbiased, over sampling and over noise; quotients are nearly so. An interval covers both errors: that of sampling,
measured or bounded (:mod:`stirred.survey.estimating.intervals`), and that of the noise, whose law the plan fixes. What
is not known about sampling is said, and the interval is then about the weighted sum that the file would give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.estimates import answers
from stirred.estimates.answers import NO_ESTIMATE, Answers, Parts
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.spec.exact import near
from stirred.spec.invariant import plural
from stirred.survey.estimating.adjusted import calibrated
from stirred.survey.estimating.intervals import (
    Curve,
    DesignBound,
    SamplingErrors,
    Sums,
    measured_errors,
    quantile_answers,
)
from stirred.survey.estimating.measured import Array, Family, MeasuredSurvey, Where, read_measured
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection

Codes = NDArray[np.int64]


def answered_only(plan: SurveyPlan, adjustable: bool = True) -> str:
    """The remark on counts and totals that are not adjusted; empty where the plan says that nobody is missing. Without
    ``adjustable`` it does not say what adjusts them, since not every question can be adjusted."""
    final = plan.weights is not None and plan.weights.kind == "final"
    if plan.sample.everybody_responds or (final and not plan.calibrations):
        return ""
    weighed = "every record counted once" if plan.weights is None else "with the weights of the file"
    said = (
        f"Counts and totals are sums over those who answered, {weighed}: {plural(plan.unit)} who did not answer are "
        "missing unless the weights allow for them."
    )
    if plan.calibrations and adjustable:
        first, *others = (one.name for one in plan.calibrations)
        choice = f" (or {', '.join(others)})" if others else ""
        said += f" stirred estimate --calibration {first}{choice} adjusts to the public totals."
    return said


NOT_POSITIVE = f"{NO_ESTIMATE}: what is divided by is not above 0 after noise"
NOT_MEASURED = f"{NO_ESTIMATE}: no measured sum tells it"
NOT_ADJUSTED = f"{NO_ESTIMATE}: noisy counts cannot be adjusted to the public totals"
KINDS: Mapping[str, str] = {
    "measured": "an interval for sampling and noise; the sampling error was measured under the budget",
    "bounded": "an interval for sampling and noise; the sampling error is an upper bound from public facts",
    "unknown": "an interval for noise only: it is about the number that the file would give without noise",
    NOT_POSITIVE: "noise left nothing above 0 to divide by, as it does where few records are; ask for coarser groups",
    NOT_MEASURED: "the queries of the plan do not cross these attributes; ask for coarser groups, or with fewer "
    "conditions",
    NOT_ADJUSTED: "noise left counts that no adjustment takes to the public totals; leave the calibration out, or ask "
    "for a coarser one",
}

PAGE = "surveys"
"""The page that messages about questions to a survey name."""
_UNKNOWN = (
    "The error of sampling is not in these intervals: the plan measures no standard errors for this table, and does "
    "not state enough about the design to bound them ([design] selected, largest_cluster)."
)
_NOTHING = 1e-150
"""Stands for a denominator that is not positive."""


def estimate(
    release: str | Path,
    by: Sequence[str] = (),
    *,
    where: Where | None = None,
    table: str | None = None,
    kind: str | None = None,
    of: str | None = None,
    over: str | None = None,
    share: str | None = None,
    probabilities: Sequence[Any] = (),
    calibration: str | None = None,
    difference: tuple[str, str, str] | None = None,
) -> Answers:
    """Estimates from a release folder; ``kind`` is count, total, mean, proportion, ratio or quantiles.

    Without ``kind`` it follows from the rest: ``of`` a variable gives means, ``over`` another ratios, ``share`` of an
    attribute proportions, ``probabilities`` quantiles of an attribute that cuts a variable, nothing counts.
    """
    if table is not None:
        raise errors.estimate_question("A survey release", "has no tables to choose from: leave --table out", PAGE)
    survey = read_measured(ReleaseFolder.open(release))
    if kind is None:
        asked = {"proportion": share, "quantiles": probabilities, "ratio": over, "mean": of}
        kind = next((name for name, given in asked.items() if given), "count")
    if kind in ("total", "mean", "ratio") and (of is None or (over is None and kind == "ratio")):
        needed = "two variables: pass of and over (--of, --over)" if kind == "ratio" else "a variable: pass of (--of)"
        raise errors.estimate_question(f"A {kind}", f"needs {needed}", PAGE)
    fields: dict[str, Any] = {"kind": kind, "of": share or of, "over": over, "calibration": calibration}
    wanted = PublishSection(**fields, by=tuple(by), probabilities=tuple(probabilities))
    return answer(survey, wanted, where or {}, difference=difference)


def answer(
    survey: MeasuredSurvey,
    wanted: PublishSection,
    where: Where | None = None,
    *,
    difference: tuple[str, str, str] | None = None,
) -> Answers:
    """The answer to one question: a table to publish, with conditions, or the difference of two of its rows."""
    chosen = {name: _listed(values) for name, values in (where or {}).items()}
    for name in (*wanted.by, *chosen):
        survey.plan.attribute(name)
    if wanted.kind == "quantiles":
        if difference is not None:
            raise errors.estimate_question("A difference of quantiles", "is not offered", PAGE)
        return quantile_answers(survey, wanted, chosen)
    asked = _Question(survey, wanted, chosen)
    return asked.answers() if difference is None else asked.difference(*difference)


@dataclass(frozen=True, eq=False)
class _Question:
    """A table to publish, with conditions, asked of a release."""

    survey: MeasuredSurvey
    wanted: PublishSection
    where: Mapping[str, tuple[str, ...]]

    @cached_property
    def sums(self) -> Sums:
        """What the answer is made of."""
        if self.wanted.calibration:
            return calibrated(self.survey, self.wanted, self.where)
        return self._with_sampling(self._measured_sums())

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Between which numbers the truth lies whatever the data."""
        kind = self.wanted.kind
        if kind in ("count", "proportion"):
            return 0.0, 1.0 if kind == "proportion" else np.inf
        bounds = self.survey.plan.variable(str(self.wanted.of)).bounds
        if kind == "mean":
            return near(bounds.low), near(bounds.high)
        return (0.0 if kind == "total" and bounds.low >= 0 else -np.inf), np.inf

    @cached_property
    def family(self) -> Family:
        """The measured sums of what is asked."""
        return self.survey.family(self.wanted.summed)

    @property
    def counts(self) -> Family:
        """The measured counts."""
        return self.survey.family(None)

    @property
    def divisors(self) -> Family:
        """The measured sums that quotients are divided by."""
        return self.survey.family(self.wanted.over) if self.wanted.kind == "ratio" else self.counts

    # -- sums ----------------------------------------------------------------------------------------------------

    def _measured_sums(self) -> Sums:
        wanted, where, family = self.wanted, self.where, self.family
        above, noise = family.estimates(wanted.cells, where), family.noise_variances(wanted.cells, where)
        if wanted.kind in ("count", "total"):
            return Sums(above, noise)
        other = self.divisors
        below, noise_below = other.estimates(wanted.by, where), other.noise_variances(wanted.by, where)
        between = np.zeros(len(above))
        if wanted.kind == "proportion":
            values = len(above) // len(below)
            groups = np.arange(len(above))
            between = other.noise_covariances(
                wanted.cells, where, np.column_stack([groups, groups // values]), wanted.by
            )
            below, noise_below = np.repeat(below, values), np.repeat(noise_below, values)
        elif other is family:
            between = noise.copy()
        return Sums(above, noise, below, noise_below, between)

    def _with_sampling(self, sums: Sums) -> Sums:
        """Measured standard errors where the plan measured these very ones, and bounds, as far as there are any."""
        found = None if self.where else self._measured_errors()
        if found is not None and found.freedom is not None:
            found = replace(found, freedom=np.clip(self._fewest_records(sums) - 1, 1.0, found.freedom))
        bound = DesignBound.of(self.survey.plan)
        curve = None if bound is None else self._curve(sums, bound)
        if curve is None:
            return replace(sums, sampling=found or SamplingErrors(np.zeros(len(sums.above)), "unknown"))
        most = curve.at(self._possible(sums))
        if found is None:
            return replace(sums, sampling=SamplingErrors(most, "bounded", bound=curve))
        # Where the noise of a measured standard error takes it above the bound, the bound says more.
        return replace(
            sums, sampling=replace(found, variances=np.minimum(found.variances, most), bound=curve, most=most)
        )

    def _measured_errors(self) -> SamplingErrors | None:
        wanted = self.wanted
        for one in self.survey.plan.publish:
            if one.errors and (one.kind, one.of, one.over, one.by) == (wanted.kind, wanted.of, wanted.over, wanted.by):
                return measured_errors(self.survey, one)
        return None

    def _fewest_records(self, sums: Sums) -> Array:
        """At least how many records a group has, as far as measured counts tell; infinite where there are none.

        A standard error from k records has at most k - 1 degrees of freedom, whatever the design has.
        """
        if self.wanted.kind in ("count", "proportion"):
            counts = sums.above if sums.below is None else sums.below
        else:
            try:
                counts = self.counts.estimates(self.wanted.by, self.where)
            except errors.StirredError:
                return np.full(len(sums.above), np.inf)
        return np.asarray(np.maximum(counts, 0.0) / near(self.survey.plan.stratum_weights()[1]))

    def _possible(self, sums: Sums) -> Array:
        """The estimates, moved to the nearest possible value; where noise may have made a total small, a larger one."""
        if self.wanted.kind == "ratio":
            return np.zeros(len(sums.above))
        if sums.below is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.clip(np.nan_to_num(sums.above / sums.below), *self.limits)
        return _raised(sums.above, sums.noise) if self.limits[0] == 0 else sums.above

    def _curve(self, sums: Sums, bound: DesignBound) -> Curve | None:
        """An upper bound of the sampling variance, as a function of the truth; None where counts of the groups are
        needed and were not measured."""
        plan, wanted = self.survey.plan, self.wanted
        if wanted.kind == "count":
            return bound.total(0.0, 1.0, sums.above)
        if wanted.kind == "proportion":
            assert sums.below is not None and sums.noise_below is not None
            return bound.mean(0.0, 1.0, _raised(sums.below, sums.noise_below))
        low, high = (near(end) for end in plan.variable(str(wanted.of)).bounds.ends)
        if wanted.kind == "total" and low * high == 0:
            return bound.total(low, high, sums.above)
        try:
            number = _raised(
                self.counts.estimates(wanted.by, self.where), self.counts.noise_variances(wanted.by, self.where)
            )
        except errors.StirredError:
            return None
        if wanted.kind != "ratio":
            return (bound.total if wanted.kind == "total" else bound.mean)(low, high, number)
        assert sums.below is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(sums.above / sums.below)
        ends = [near(end) for end in plan.variable(str(wanted.over)).bounds.ends]
        corners = [np.abs(value - ratio * other) for value in (low, high) for other in ends]
        return Curve.level(bound.residuals(number * np.max(corners, axis=0) ** 2))

    # -- answers -------------------------------------------------------------------------------------------------

    def answers(self) -> Answers:
        """A row for each cell."""
        at = self._ends(0.9)
        return self._told(
            self.wanted.cells,
            measure_words(self.wanted),
            self.survey.plan.labels_of(self.wanted.cells),
            at.values,
            at.variances,
            self._ends,
            self.sums.unmeasured,
            self.sums.by_source(),
            adjustable=not self.where,
        )

    def difference(self, name: str, one: str, other: str) -> Answers:
        """Rows of one value minus those of another; the noise of two rows is related as least squares makes it.
        Intervals are put together from those of both rows (:mod:`stirred.estimates.answers`)."""
        wanted, plan = self.wanted, self.survey.plan
        what = f"A difference of values of '{name}'"
        if wanted.calibration:
            raise errors.estimate_question(what, "is not offered for adjusted estimates: leave --calibration out", PAGE)
        if name not in wanted.cells:
            plan.attribute(name)
            needed = ",".join((*wanted.by, name))
            raise errors.estimate_question(what, f"needs a table by it: add --by {needed}", PAGE)
        at = wanted.cells.index(name)
        known = plan.schema_of([name]).values(name)
        for value in (one, other):
            if value not in known:
                raise errors.unknown_choice(f"value of '{name}'", value, known)
        place = {label: number for number, label in enumerate(plan.labels_of(wanted.cells))}
        rest = [label for label in place if label[at] == one]
        first = np.array([place[label] for label in rest])
        second = np.array([place[(*label[:at], other, *label[at + 1 :])] for label in rest])
        sums, size = self.sums, self._size
        values = sums.ends(0.9, plan.noise).values
        values = values[first] - values[second]
        with np.errstate(over="ignore", invalid="ignore"):  # rows without a positive denominator have no estimate
            sampled, noised = sums.known_sampling.variances / size**2, sums.residual_noise / size**2
            between = sampled[first] + sampled[second] - 2 * self._sampling_covariance(name, first, second)
            noise = self._noise_of_difference(first, second)
            covariance = (sampled[first] + sampled[second] - between + noised[first] + noised[second] - noise) / 2
        covariance = np.nan_to_num(covariance, nan=0.0, posinf=0.0, neginf=0.0)

        def ends(confidence: float) -> Parts:
            parts = self._ends(confidence)
            one, other = (Parts(parts.values[at], parts.variances[at], parts.lower[at], parts.upper[at])
                          for at in (first, second))  # fmt: skip
            with np.errstate(invalid="ignore"):
                found = answers.difference(one, other, covariance)
            lower, upper = one.lower - other.upper, one.upper - other.lower  # what both intervals allow
            return Parts(found.values, found.variances, np.fmax(found.lower, lower), np.fmin(found.upper, upper))

        return self._told(
            tuple(part for part in wanted.cells if part != name),
            f"{measure_words(wanted)}, {one} minus {other}",
            [(*label[:at], *label[at + 1 :]) for label in rest],
            values,
            np.where(np.isnan(values), np.inf, between + noise),
            ends,
            sums.unmeasured[first] | sums.unmeasured[second],
            {"sampling_error": np.sqrt(between), "noise_error": np.sqrt(noise)},
            adjustable=False,
        )

    def _ends(self, confidence: float) -> Parts:
        return self.sums.ends(confidence, self.survey.plan.noise).within(*self.limits)

    def _told(
        self,
        by: tuple[str, ...],
        measure: str,
        labels: Sequence[tuple[str, ...]],
        values: Array,
        variances: Array,
        ends: Callable[[float], Parts],
        unmeasured: NDArray[np.bool_],
        parts: Mapping[str, Array],
        *,
        adjustable: bool,
    ) -> Answers:
        """The answer, with how each interval is found; of rows without an estimate why there is none."""
        sums, source = self.sums, self.sums.known_sampling.source
        gone = np.isnan(values)
        why = NOT_ADJUSTED if sums.below is None else NOT_POSITIVE
        unadjusted = self.wanted.kind in ("count", "total") and self.wanted.calibration is None
        missing = answered_only(self.survey.plan, adjustable) if unadjusted else ""
        unknown = _UNKNOWN if source == "unknown" else ""
        return Answers(
            table="survey",
            by=by,
            where=dict(self.where),
            measure=measure,
            labels=tuple(labels),
            values=values,
            variances=variances,
            naive=None,
            kinds=tuple(np.where(gone, np.where(unmeasured, NOT_MEASURED, why), source).tolist()),
            kind_words=KINDS,
            ends=ends,
            whole=unadjusted,
            remarks=(*sums.remarks, *(said for said in (missing, unknown) if said)),
            parts={name: np.where(gone, np.nan, part) for name, part in parts.items()},
        )

    # -- differences ---------------------------------------------------------------------------------------------

    @cached_property
    def _size(self) -> Array:
        """What sums are divided by."""
        below = self.sums.below
        return np.ones(len(self.sums.above)) if below is None else np.maximum(below, _NOTHING)

    def _sampling_covariance(self, name: str, first: Codes, second: Codes) -> Array:
        """The covariance of the sampling errors of rows ``first`` and ``second``, or the lowest that it could be.

        Different strata are sampled independently: it is 0. So it is for quotients of two domains of which no primary
        unit is in both, where there are no strata, since residuals add up to 0 in each; and where units are selected
        independently. Two totals T and U of such domains have the covariance -f T U / n. In all other cases the errors
        may be related in any way, and the lowest one makes the standard error of the difference the sum of both.
        """
        sums, design = self.sums, self.survey.plan.design
        roots = np.sqrt(sums.known_sampling.variances) / self._size
        lowest = -roots[first] * roots[second]
        apart = name != self.wanted.of or self.wanted.kind != "proportion"  # no record is in both rows
        if apart and design.strata is not None and self.survey.plan.attribute(name).name == design.strata:
            return 0 * lowest
        if not apart or design.clusters is not None or design.strata is not None:
            return np.asarray(lowest)
        if design.selection == "independent" or sums.below is not None:
            return 0 * lowest
        if design.selected is None:
            return np.asarray(lowest)
        factor = (1 - design.selected / (design.population or np.inf)) / (design.selected - 1)
        return np.asarray(np.clip(-factor * sums.above[first] * sums.above[second], lowest, 0.0))

    def _noise_of_difference(self, first: Codes, second: Codes) -> Array:
        """The noise variance of the difference of rows ``first`` and ``second``."""
        wanted, where, sums, size = self.wanted, self.where, self.sums, self._size
        groups = pairs = np.column_stack([first, second])
        above = self.family.noise_covariances(wanted.cells, where, pairs)
        if sums.below is None:
            return np.maximum(sums.noise[first] + sums.noise[second] - 2 * above, 0.0)
        residual = sums.residual_noise
        ratio = np.nan_to_num(sums.above / size)
        if wanted.kind == "proportion":
            # Both shares have the same denominator where the difference is between two values of the attribute.
            groups = pairs // (len(sums.above) // self.survey.plan.number_of_cells(wanted.by))
        below = self.divisors.noise_covariances(wanted.by, where, groups)
        covariance = above + ratio[first] * ratio[second] * below
        if wanted.kind == "proportion":
            for one, other, at in ((first, 1, second), (second, 0, first)):
                crossed = np.column_stack([one, groups[:, other]])
                covariance -= ratio[at] * self.counts.noise_covariances(wanted.cells, where, crossed, wanted.by)
        covariance = covariance / (size[first] * size[second])
        apart = residual[first] / size[first] ** 2 + residual[second] / size[second] ** 2 - 2 * covariance
        return np.asarray(np.maximum(apart, 0.0))


def _raised(values: Array, noise: Array) -> Array:
    """Counts that may be too small by noise, one standard error larger; never negative."""
    return np.asarray(np.maximum(values, 0.0) + np.sqrt(noise))


def measure_words(wanted: PublishSection) -> str:
    """What is estimated, in a few words."""
    words = {
        "count": "count",
        "total": f"total of {wanted.of}",
        "mean": f"mean of {wanted.of}",
        "proportion": f"share of {wanted.of}",
        "ratio": f"{wanted.of} per {wanted.over}",
    }[wanted.kind]
    return f"{words}, {wanted.calibration}" if wanted.calibration else words


def _listed(values: Any) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(str(one) for one in values)


def as_probabilities(text: str) -> list[Fraction]:
    """``0.1,0.5,0.9`` as exact numbers."""
    try:
        return [Fraction(part.strip()) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise errors.estimate_question(f"The probabilities {text!r}", "must be numbers between 0 and 1") from None
