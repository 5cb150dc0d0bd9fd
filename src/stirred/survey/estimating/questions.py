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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
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
from stirred.survey.estimating.adjusted import Calibrated, calibrated
from stirred.survey.estimating.intervals import (
    Curve,
    DesignBound,
    SamplingErrors,
    Source,
    measured_errors,
    quantile_answers,
    quantiles,
    quotient_ends,
    student,
)
from stirred.survey.estimating.measured import Array, MeasuredSurvey, Where, read_measured
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection


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
_QUOTIENTS = ("mean", "proportion", "ratio")
_NOTHING = 1e-150
"""Stands for a denominator that is not positive."""


@dataclass(frozen=True, eq=False)
class Sums:
    """What an answer is made of: a sum for each row, or two whose quotient it is, with noise and sampling errors."""

    above: Array
    noise: Array
    below: Array | None = None
    noise_below: Array | None = None
    noise_between: Array | None = None
    sampling: SamplingErrors | None = None
    remarks: tuple[str, ...] = ()

    def ends(self, confidence: float, law: str) -> Parts:
        """Values and intervals: what all that is known about the error of sampling leaves possible."""
        sampling = self.sampling
        assert sampling is not None
        flat = np.ones(len(self.above))
        below = flat if self.below is None else self.below
        noise_below = 0 * flat if self.noise_below is None else self.noise_below
        between = 0 * flat if self.noise_between is None else self.noise_between
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(below > 0, self.above / below, np.nan)
            noise = self.residual_noise
            variances = np.where(below > 0, (sampling.variances + noise) / below**2, np.inf)
        known: list[tuple[Curve, Array | None]] = [] if sampling.bound is None else [(sampling.bound, None)]
        if sampling.freedom is not None:
            known.append((sampling.curve(student(confidence, sampling.freedom)), sampling.freedom))
        lower, upper = np.full(len(flat), -np.inf), np.full(len(flat), np.inf)
        for curve, freedom in known or [(Curve.level(sampling.variances), None)]:
            reach = quantiles(confidence, _share(noise, curve.at(np.nan_to_num(values))), law, freedom)
            low, high = quotient_ends(self.above, below, curve, (self.noise, noise_below, between), reach)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return Parts(values, variances, np.fmin(lower, values), np.fmax(upper, values))

    @property
    def residual_noise(self) -> Array:
        """The noise variance of Y - R X, or of Y alone."""
        if self.below is None or self.noise_below is None or self.noise_between is None:
            return self.noise
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.where(self.below > 0, self.above / self.below, 0.0))
            return np.maximum(self.noise - 2 * ratio * self.noise_between + ratio**2 * self.noise_below, 0.0)

    @property
    def unmeasured(self) -> NDArray[np.bool_]:
        """Rows that no measured sum tells: their noise is infinite."""
        return np.isinf(self.noise) | np.isinf(0.0 if self.noise_below is None else self.noise_below)

    def by_source(self) -> dict[str, Array]:
        """The standard error of each answer by where it comes from."""
        assert self.sampling is not None
        noise = self.noise if self.below is None else self.residual_noise
        with np.errstate(divide="ignore", invalid="ignore"):
            size = 1.0 if self.below is None else np.where(self.below > 0, self.below, np.nan)
            sampling = np.sqrt(self.sampling.variances) / size
            if self.sampling.source == "unknown":
                sampling = np.full(np.shape(noise), np.nan)
            return {"sampling_error": sampling, "noise_error": np.sqrt(noise) / size}


def _share(noise: Array, sampling: Array) -> Array:
    total = noise + sampling
    return np.divide(noise, total, out=np.ones_like(noise), where=(total > 0) & np.isfinite(total))


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
    plan = survey.plan
    chosen = {name: _listed(values) for name, values in (where or {}).items()}
    for name in (*wanted.by, *chosen):
        plan.attribute(name)
    if wanted.kind == "quantiles":
        if difference is not None:
            raise errors.estimate_question("A difference of quantiles", "is not offered", PAGE)
        return quantile_answers(survey, wanted, chosen)
    found = calibrated(survey, wanted, chosen) if wanted.calibration else None
    sums = _adjusted(found) if found is not None else _sums(survey, wanted, chosen)
    by = (*wanted.by, str(wanted.of)) if wanted.kind == "proportion" else wanted.by
    labels = plan.schema_of(by).labels(by)
    if difference is not None:
        return _difference(survey, wanted, chosen, sums, by, labels, difference)
    return _answers(survey, wanted, chosen, sums, by, tuple(labels))


# -- sums --------------------------------------------------------------------------------------------------------


def _sums(survey: MeasuredSurvey, wanted: PublishSection, where: Where) -> Sums:
    of = None if wanted.kind in ("count", "proportion") else wanted.of
    by = (*wanted.by, str(wanted.of)) if wanted.kind == "proportion" else wanted.by
    family = survey.family(of)
    above, noise = family.estimates(by, where), family.noise_variances(by, where)
    if wanted.kind not in _QUOTIENTS:
        return _with_sampling(survey, wanted, where, Sums(above, noise))
    other = survey.family(wanted.over if wanted.kind == "ratio" else None)
    below, noise_below = other.estimates(wanted.by, where), other.noise_variances(wanted.by, where)
    between = np.zeros(len(above))
    if wanted.kind == "proportion":
        values = len(above) // len(below)
        groups = np.arange(len(above))
        pairs = np.column_stack([groups, groups // values])
        between = other.noise_covariances(by, where, pairs, wanted.by)
        below, noise_below = np.repeat(below, values), np.repeat(noise_below, values)
    elif other is family:
        between = noise.copy()
    return _with_sampling(survey, wanted, where, Sums(above, noise, below, noise_below, between))


def _with_sampling(survey: MeasuredSurvey, wanted: PublishSection, where: Where, sums: Sums) -> Sums:
    """Measured standard errors where the plan measured these very ones, and bounds, as far as there are any."""
    found = None if where else _measured(survey, wanted)
    if found is not None and found.freedom is not None:
        few = _fewest_records(survey, wanted, where, sums)
        found = replace(found, freedom=np.clip(few - 1, 1.0, found.freedom))
    bound = DesignBound.of(survey.plan)
    curve = None if bound is None else _curve(survey, wanted, where, sums, bound)
    if curve is None:
        return replace(sums, sampling=found or SamplingErrors(np.zeros(len(sums.above)), "unknown"))
    most = curve.at(_possible(survey, wanted, sums))
    if found is None:
        return replace(sums, sampling=SamplingErrors(most, "bounded", bound=curve))
    # Where the noise of a measured standard error takes it above the bound, the bound says more.
    return replace(sums, sampling=replace(found, variances=np.minimum(found.variances, most), bound=curve, most=most))


def _measured(survey: MeasuredSurvey, wanted: PublishSection) -> SamplingErrors | None:
    for one in survey.plan.publish:
        same = (one.kind, one.of, one.over, one.by) == (wanted.kind, wanted.of, wanted.over, wanted.by)
        if same and one.errors and not wanted.calibration:
            return measured_errors(survey, one)
    return None


def _fewest_records(survey: MeasuredSurvey, wanted: PublishSection, where: Where, sums: Sums) -> Array:
    """At least how many records a group has, as far as measured counts tell; infinite where there are none.

    A standard error from k records has at most k - 1 degrees of freedom, whatever the design has.
    """
    largest = near(survey.plan.stratum_weights()[1])
    if wanted.kind in ("count", "proportion"):
        counts = sums.above if sums.below is None else sums.below
        return np.asarray(np.maximum(counts, 0.0) / largest)
    try:
        return np.asarray(np.maximum(survey.family(None).estimates(wanted.by, where), 0.0) / largest)
    except errors.StirredError:
        return np.full(len(sums.above), np.inf)


def _raised(values: Array, noise: Array) -> Array:
    """Counts that may be too small by noise, one standard error larger; never negative."""
    return np.asarray(np.maximum(values, 0.0) + np.sqrt(noise))


def _possible(survey: MeasuredSurvey, wanted: PublishSection, sums: Sums) -> Array:
    """The estimates, moved to the nearest possible value; where noise may have made a total small, a larger one."""
    if wanted.kind == "ratio":
        return np.zeros(len(sums.above))
    if sums.below is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(np.nan_to_num(sums.above / sums.below), *_limits(survey, wanted))
    if wanted.kind == "count" or survey.plan.variable(str(wanted.of)).lower >= 0:
        return _raised(sums.above, sums.noise)
    return sums.above


def _curve(
    survey: MeasuredSurvey, wanted: PublishSection, where: Where, sums: Sums, bound: DesignBound
) -> Curve | None:
    """An upper bound of the sampling variance, as a function of the truth; None where counts of the groups are needed
    and were not measured."""
    plan = survey.plan
    if wanted.kind == "count":
        return bound.total(0.0, 1.0, sums.above)
    if wanted.kind == "proportion":
        assert sums.below is not None and sums.noise_below is not None
        return bound.mean(0.0, 1.0, _raised(sums.below, sums.noise_below))
    low, high = (near(end) for end in plan.variable(str(wanted.of)).bounds.ends)
    if wanted.kind == "total" and low * high == 0:
        return bound.total(low, high, sums.above)
    try:
        counts = survey.family(None)
        number = _raised(counts.estimates(wanted.by, where), counts.noise_variances(wanted.by, where))
    except errors.StirredError:
        return None
    if wanted.kind == "total":
        return bound.total(low, high, number)
    if wanted.kind == "mean":
        return bound.mean(low, high, number)
    assert sums.below is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(sums.above / sums.below)
    ends = [near(end) for end in plan.variable(str(wanted.over)).bounds.ends]
    corners = [np.abs(value - ratio * other) for value in (low, high) for other in ends]
    return Curve.level(bound.residuals(number * np.max(corners, axis=0) ** 2))


def _adjusted(found: Calibrated) -> Sums:
    return Sums(
        found.above, found.noise, found.below, found.noise_below, found.noise_between, found.sampling, found.remarks
    )


# -- answers -----------------------------------------------------------------------------------------------------


def _answers(
    survey: MeasuredSurvey,
    wanted: PublishSection,
    where: Mapping[str, tuple[str, ...]],
    sums: Sums,
    by: tuple[str, ...],
    labels: tuple[tuple[str, ...], ...],
) -> Answers:
    plan, sampling = survey.plan, sums.sampling
    assert sampling is not None
    limits = _limits(survey, wanted)

    def ends(confidence: float) -> Parts:
        return sums.ends(confidence, plan.noise).within(*limits)

    at = ends(0.9)
    return Answers(
        table="survey",
        by=by,
        where=dict(where),
        measure=measure_words(wanted),
        labels=labels,
        values=at.values,
        variances=at.variances,
        naive=None,
        kinds=_kinds(sums, at.values, sums.unmeasured),
        kind_words=KINDS,
        ends=ends,
        whole=wanted.kind in ("count", "total") and wanted.calibration is None,
        remarks=(*sums.remarks, *_remarks(plan, wanted, sampling.source, adjustable=not where)),
        parts={name: np.where(np.isnan(at.values), np.nan, part) for name, part in sums.by_source().items()},
    )


def _kinds(sums: Sums, values: Array, unmeasured: NDArray[np.bool_]) -> tuple[str, ...]:
    """How each interval is found; of rows without an estimate why there is none."""
    assert sums.sampling is not None
    why = NOT_ADJUSTED if sums.below is None else NOT_POSITIVE
    kinds = np.where(np.isnan(values), np.where(unmeasured, NOT_MEASURED, why), sums.sampling.source)
    return tuple(str(kind) for kind in kinds)


def _remarks(plan: SurveyPlan, wanted: PublishSection, source: Source, *, adjustable: bool) -> tuple[str, ...]:
    sums = wanted.kind in ("count", "total") and wanted.calibration is None
    missing = (said,) if sums and (said := answered_only(plan, adjustable)) else ()
    if source != "unknown":
        return missing
    return (
        *missing,
        "The error of sampling is not in these intervals: the plan measures no standard errors for this table, and "
        "does not state enough about the design to bound them ([design] selected, largest_cluster).",
    )


def _limits(survey: MeasuredSurvey, wanted: PublishSection) -> tuple[float, float]:
    """Between which numbers the truth lies whatever the data."""
    if wanted.kind == "count":
        return 0.0, np.inf
    if wanted.kind == "proportion":
        return 0.0, 1.0
    bounds = survey.plan.variable(str(wanted.of)).bounds
    if wanted.kind == "mean":
        return near(bounds.low), near(bounds.high)
    return (0.0 if wanted.kind == "total" and bounds.low >= 0 else -np.inf), np.inf


def measure_words(wanted: PublishSection) -> str:
    """What is estimated, in a few words."""
    words = {
        "count": "count",
        "total": f"total of {wanted.of}",
        "mean": f"mean of {wanted.of}",
        "proportion": f"share of {wanted.of}",
        "ratio": f"{wanted.of} per {wanted.over}",
        "quantiles": f"quantile of {wanted.of}",
    }[wanted.kind]
    return f"{words}, {wanted.calibration}" if wanted.calibration else words


def _difference(
    survey: MeasuredSurvey,
    wanted: PublishSection,
    where: Mapping[str, tuple[str, ...]],
    sums: Sums,
    by: tuple[str, ...],
    labels: Sequence[tuple[str, ...]],
    contrast: tuple[str, str, str],
) -> Answers:
    """Rows of one value minus those of another; the noise of two rows is related as least squares makes it. Intervals
    are put together from those of both rows (:mod:`stirred.estimates.answers`)."""
    name, one, other = contrast
    what = f"A difference of values of '{name}'"
    if wanted.calibration:
        raise errors.estimate_question(what, "is not offered for adjusted estimates: leave --calibration out", PAGE)
    if name not in by:
        survey.plan.attribute(name)
        needed = ",".join((*wanted.by, name))
        raise errors.estimate_question(what, f"needs a table by it: add --by {needed}", PAGE)
    at = by.index(name)
    known = survey.plan.schema_of([name]).values(name)
    for value in (one, other):
        if value not in known:
            raise errors.unknown_choice(f"value of '{name}'", value, known)
    place = {label: number for number, label in enumerate(labels)}
    rest = [label for label in labels if label[at] == one]
    first = np.array([place[label] for label in rest])
    second = np.array([place[(*label[:at], other, *label[at + 1 :])] for label in rest])
    plan, sampling = survey.plan, sums.sampling
    assert sampling is not None
    values, limits = sums.ends(0.9, plan.noise).values, _limits(survey, wanted)
    values = values[first] - values[second]
    size = np.ones(len(labels)) if sums.below is None else np.maximum(sums.below, _NOTHING)
    with np.errstate(over="ignore", invalid="ignore"):  # rows without a positive denominator have no estimate
        sampled, noised = sampling.variances / size**2, sums.residual_noise / size**2
        between = sampled[first] + sampled[second] - 2 * _sampling_covariance(survey, wanted, sums, name, first, second)
        noise = _noise_of_difference(survey, wanted, where, sums, by, first, second)
        covariance = (sampled[first] + sampled[second] - between + noised[first] + noised[second] - noise) / 2
    covariance = np.nan_to_num(covariance, nan=0.0, posinf=0.0, neginf=0.0)

    def ends(confidence: float) -> Parts:
        parts = sums.ends(confidence, plan.noise).within(*limits)
        one, other = (Parts(parts.values[at], parts.variances[at], parts.lower[at], parts.upper[at])
                      for at in (first, second))  # fmt: skip
        with np.errstate(invalid="ignore"):
            found = answers.difference(one, other, covariance)
        lower, upper = one.lower - other.upper, one.upper - other.lower  # what both intervals allow
        return Parts(found.values, found.variances, np.fmax(found.lower, lower), np.fmin(found.upper, upper))

    return Answers(
        table="survey",
        by=tuple(part for part in by if part != name),
        where=dict(where),
        measure=f"{measure_words(wanted)}, {one} minus {other}",
        labels=tuple(tuple(part for number, part in enumerate(label) if number != at) for label in rest),
        values=values,
        variances=np.where(np.isnan(values), np.inf, between + noise),
        naive=None,
        kinds=_kinds(sums, values, sums.unmeasured[first] | sums.unmeasured[second]),
        kind_words=KINDS,
        ends=ends,
        whole=wanted.kind in ("count", "total"),
        remarks=_remarks(plan, wanted, sampling.source, adjustable=False),
        parts={
            name: np.where(np.isnan(values), np.nan, np.sqrt(part))
            for name, part in (("sampling_error", between), ("noise_error", noise))
        },
    )


def _sampling_covariance(
    survey: MeasuredSurvey,
    wanted: PublishSection,
    sums: Sums,
    name: str,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> Array:
    """The covariance of the sampling errors of rows ``first`` and ``second``, or the lowest that it could be.

    Different strata are sampled independently: it is 0. So it is for quotients of two domains of which no primary unit
    is in both, where there are no strata, since residuals add up to 0 in each; and where units are selected
    independently. Two totals T and U of such domains have the covariance -f T U / n. In all other cases the errors may
    be related in any way, and the lowest one makes the standard error of the difference the sum of both.
    """
    plan, sampling, design = survey.plan, sums.sampling, survey.plan.design
    assert sampling is not None
    size = np.ones(len(sums.above)) if sums.below is None else np.maximum(sums.below, _NOTHING)
    roots = np.sqrt(sampling.variances) / size
    lowest = -roots[first] * roots[second]
    apart = name != wanted.of or wanted.kind != "proportion"  # no record is in both rows
    alone = apart and design.clusters is None
    if apart and design.strata is not None and plan.attribute(name).name == design.strata:
        return 0 * lowest
    if not alone or design.strata is not None:
        return np.asarray(lowest)
    if design.selection == "independent" or sums.below is not None:
        return 0 * lowest
    if design.selected is None:
        return np.asarray(lowest)
    factor = (1 - design.selected / (design.population or np.inf)) / (design.selected - 1)
    return np.asarray(np.clip(-factor * sums.above[first] * sums.above[second], lowest, 0.0))


def _noise_of_difference(
    survey: MeasuredSurvey,
    wanted: PublishSection,
    where: Where,
    sums: Sums,
    by: tuple[str, ...],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> Array:
    """The noise variance of the difference of rows ``first`` and ``second``."""
    of = None if wanted.kind in ("count", "proportion") else wanted.of
    pairs = np.column_stack([first, second])
    above = survey.family(of).noise_covariances(by, where, pairs)
    if sums.below is None:
        return np.maximum(sums.noise[first] + sums.noise[second] - 2 * above, 0.0)
    residual = sums.residual_noise
    size = np.maximum(sums.below, _NOTHING)
    ratio = np.nan_to_num(sums.above / size)
    if wanted.kind == "proportion" and by[-1] == wanted.of:
        # Both shares have the same denominator where the difference is between two values of the attribute.
        values = len(sums.above) // survey.plan.schema_of(wanted.by).number_of_groups(wanted.by)
        groups = np.column_stack([first // values, second // values])
    else:
        groups = pairs
    other = survey.family(wanted.over if wanted.kind == "ratio" else None)
    below = other.noise_covariances(wanted.by, where, groups)
    covariance = above + ratio[first] * ratio[second] * below
    if wanted.kind == "proportion":
        crossed = np.column_stack([first, groups[:, 1]]), np.column_stack([second, groups[:, 0]])
        family = survey.family(None)
        covariance -= ratio[second] * family.noise_covariances(by, where, crossed[0], wanted.by)
        covariance -= ratio[first] * family.noise_covariances(by, where, crossed[1], wanted.by)
    covariance = covariance / (size[first] * size[second])
    apart = residual[first] / size[first] ** 2 + residual[second] / size[second] ** 2 - 2 * covariance
    return np.asarray(np.maximum(apart, 0.0))


def _listed(values: Any) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(str(one) for one in values)


def as_probabilities(text: str) -> list[Fraction]:
    """``0.1,0.5,0.9`` as exact numbers."""
    try:
        return [Fraction(part.strip()) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise errors.estimate_question(f"The probabilities {text!r}", "must be numbers between 0 and 1") from None
