"""Compares a survey release with what the file gives without noise, cell by cell; confidential.

Design standard errors here are computed from the file itself, linearised or from its replicate weights, and are not
protected: the folder must stay where the file is.

For the custodian's report, noisy sums are read from the folder and true ones are computed from the file. Keep in mind:
a survey release keeps no counts exactly; what it holds fixed is stated in its guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from stirred import errors
from stirred._progress import stage
from stirred.releases.folder.atomic import CONFIDENTIAL
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import CustodianNote, Data
from stirred.spec.exact import near
from stirred.survey.data import Records, read_records
from stirred.survey.design.standard_errors import (
    Estimates,
    FirstStage,
    Numbers,
    ReplicatedSample,
    WeightedSample,
    replicate_coefficients,
)
from stirred.survey.estimating.measured import MeasuredSurvey, read_measured
from stirred.survey.estimating.questions import answer
from stirred.survey.measuring import query_noise, query_step, true_sums
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection

MANY = 1 << 40
NOTE = """\
CONFIDENTIAL. These files hold true sums, estimates without noise and design standard errors. They are not covered by
the guarantee: do not publish them, and delete them when you have read them.
"""
CUT = """
True sums and estimates without noise are those after cutting at the plan's bounds (cut.csv says how much was cut).
What cutting changed is a bias that they do not show.
"""


def write_comparison(folder: Path, survey: MeasuredSurvey, records: Records) -> None:
    """Write for every query the noisy beside the true sums, and for every published table the estimates beside those
    of the file with their design standard errors."""
    plan = survey.plan
    (folder / CONFIDENTIAL).write_text(_note(records), encoding="utf-8")
    for query in plan.queries:
        step = near(query_step(plan, query))
        true, noisy = true_sums(records, query) * step, survey.sums[query.name] * step
        numbers = {"true": true, "released": noisy, "noise": noisy - true}
        frame = pl.DataFrame([*_labels(plan, query.by), *(pl.Series(name, one) for name, one in numbers.items())])
        frame.write_csv(folder / f"{query.name}.csv")
    stage = first_stage(records) if plan.publish else None
    for wanted in plan.publish:
        if wanted.kind != "quantiles" and wanted.calibration is None:
            _compared(survey, records, wanted, stage).write_csv(folder / f"estimates-{wanted.name}.csv")
    cut = pl.DataFrame({"column": list(records.changed), "cut_at_the_bounds": list(records.changed.values())})
    cut.write_csv(folder / "cut.csv")


def design_estimates(
    records: Records, wanted: PublishSection, stage: FirstStage | None = None
) -> tuple[Numbers, Numbers]:
    """The estimates of the file without noise and their design standard errors, NaN where nothing tells them.
    Confidential. ``stage`` is that of :func:`first_stage`, for callers that ask about several tables."""
    plan = records.plan
    groups = plan.number_of_cells(wanted.by)
    weights = np.asarray(records.weights * near(plan.weight_step), dtype=np.float64)
    domains = records.cells(wanted.by)
    section = plan.design.replicates
    sample: WeightedSample | ReplicatedSample
    if section is None:
        sample = WeightedSample(weights, domains, groups, first_stage(records) if stage is None else stage)
    else:
        matrix = np.column_stack(records.replicates)
        if matrix.shape[1] < 2:
            raise errors.survey_column(
                "replicate weights",
                "are not numbers by records and replicates",
                f"Give a matrix with {records.rows:,} rows and a column for each of at least 2 replicates",
            )
        scales = [near(one) for one in section.scales]
        coefficients = replicate_coefficients(section.method, matrix.shape[1], near(section.fay), scales)
        sample = ReplicatedSample(weights, matrix, coefficients, domains, groups)
    found = _asked(sample, records, wanted)
    return (
        np.stack([one.values for one in found], axis=1).ravel(),
        np.stack([one.standard_errors for one in found], axis=1).ravel(),
    )


def first_stage(records: Records) -> FirstStage | None:
    """How the records were sampled, as the plan states it; None where it does not say."""
    design = records.plan.design
    independent = design.selection == "independent"
    # Independent selection is like a fixed number among very many, of which nearly all are empty.
    sizes = ((MANY, None),) if independent else records.plan.selected_units
    if sizes is None:
        return None
    if max(n for n, _ in sizes) >= 1 << 63:  # a plan may state any whole number, and the file refutes none
        raise errors.survey_column(
            "numbers of selected clusters", "are not whole numbers from 1 on", "Give one for each stratum"
        )
    population = [near(float(N)) if N else np.inf for _, N in sizes]
    return FirstStage.of(records.strata, records.clusters, [n for n, _ in sizes], population)


def _asked(sample: WeightedSample | ReplicatedSample, records: Records, wanted: PublishSection) -> list[Estimates]:
    """The estimates of a table; of proportions those of each category."""
    plan = records.plan

    def values(name: str) -> Numbers:
        return np.asarray(records.values[name] * near(plan.variable(name).step))

    if wanted.kind in ("count", "total"):
        return [sample.totals(None if wanted.summed is None else values(wanted.summed))]
    if wanted.kind in ("mean", "ratio"):
        return [sample.ratios(values(str(wanted.summed)), None if wanted.over is None else values(wanted.over))]
    if wanted.kind == "proportion":
        names = [str(wanted.of)]
        categories = records.cells(names)
        number = plan.number_of_cells(names)
        return [sample.ratios((categories == category).astype(np.float64)) for category in range(number)]
    raise errors.estimate_question(f"A table of {wanted.kind}", "has no design standard error")


def _compared(
    survey: MeasuredSurvey, records: Records, wanted: PublishSection, stage: FirstStage | None
) -> pl.DataFrame:
    frame = answer(survey, wanted).to_frame(float(wanted.confidence))
    true, design = design_estimates(records, wanted, stage)
    return frame.with_columns(pl.Series("without_noise", true), pl.Series("design_standard_error", design))


def _note(records: Records) -> str:
    if not records.cut:
        return NOTE
    weighted, given = near(records.plan.weight_step) * float(records.weights.sum()), records.weights_in_file
    both = f"Weights add up to {weighted:,.2f} after the plan's rule, {given:,.2f} in the file.\n" if given else ""
    return NOTE + CUT + both


def _labels(plan: SurveyPlan, by: tuple[str, ...]) -> list[pl.Series]:
    labels = plan.labels_of(by)
    return [pl.Series(name, [label[at] for label in labels]) for at, name in enumerate(by)]


def for_custodian(release: ReleaseFolder, plan: SurveyPlan, data: Data | None) -> Iterator[CustodianNote]:
    """Errors of every query, values that were cut, and what is held fixed."""
    stage("reading the survey")
    records = read_records(plan, data)
    stage("comparing with the true values")
    if any(missing.any() for missing in records.empty.values()):
        words = "The true sums are not compared: the plan fills empty cells at random, and what was filled is not kept."
        yield CustodianNote("errors", words)
    else:
        yield _errors(release, plan, records)
    cut = [(name, f"{many:,}") for name, many in records.changed.items() if many]
    words = f"Of {records.rows:,} records, values outside the bounds of the plan were cut: this is a bias of every sum."
    if cut and records.weights_in_file is not None:
        weighted = near(plan.weight_step) * float(records.weights.sum())
        words += (
            f" Weights add up to {weighted:,.0f} after the plan's rule, {records.weights_in_file:,.0f} in the file."
        )
    if cut:
        yield CustodianNote("errors", words, (("column", "values cut at the bounds"), *cut))
    fixed = ", ".join(stage.name for stage in plan.pipeline.held_fixed)
    held = f"Held fixed, and not protected: {fixed}. " if fixed else "Nothing is held fixed. "
    yield CustodianNote("revealed", f"{held}No count of the file is published without noise.")


def _errors(release: ReleaseFolder, plan: SurveyPlan, records: Records) -> CustodianNote:
    survey = read_measured(release)
    rows = []
    for query in plan.queries:
        step, true = near(query_step(plan, query)), true_sums(records, query)
        error = np.abs((survey.sums[query.name] - true).astype(np.float64)) * step
        noise = float(query_noise(plan, query).variances.max()) ** 0.5
        median = float(np.median(np.abs(true.astype(np.float64)))) * step
        rows.append((query.name, f"{len(true):,}", f"{error.mean():,.4g}", f"{error.max():,.4g}", f"{noise:,.4g}",
                     f"{median:,.4g}"))  # fmt: skip
    words = (
        "The noise that was drawn: released sums against those of the confidential file. The standard deviation is "
        "public. Errors of sampling come on top, and nobody knows them."
    )
    if records.cut:
        words += " Sums of the file are those after cutting at the plan's bounds."
    size = "median sum after cutting at the plan's bounds" if records.cut else "median true sum"
    head = ("query", "sums", "mean absolute error", "largest error", "standard deviation", size)
    return CustodianNote("errors", words, (head, *rows))
