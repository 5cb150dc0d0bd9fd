"""The confidential comparison of a survey release with what the file gives without noise, cell by cell.

Design standard errors here are computed from the file itself, linearised or from its replicate weights, and are not
protected: the folder must stay where the file is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.folder.atomic import CONFIDENTIAL
from stirred.spec.exact import near
from stirred.survey import linearised, replicates
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.estimating import answer
from stirred.survey.linearised import FirstStage, WeightedSample
from stirred.survey.measuring import true_sums
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection
from stirred.survey.query_noise import query_step
from stirred.survey.records import Records
from stirred.survey.replicates import ReplicatedSample

Numbers = NDArray[np.float64]

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
    groups = plan.schema_of(wanted.by).number_of_groups(wanted.by)
    weights = records.weights * near(plan.weight_step)
    domains = records.cells(wanted.by)
    if plan.design.replicates is not None:
        section = plan.design.replicates
        sample: Any = ReplicatedSample.of(
            weights,
            np.column_stack(records.replicates),
            section.method,
            fay=near(section.fay) if section.method == "fay" else None,
            coefficients=[near(one) for one in section.scales] or None,
            domains=domains,
            number_of_domains=groups,
        )
        found = _asked(replicates, sample, records, wanted)
        return found.values.ravel(), np.sqrt(found.variances).ravel()
    stage = first_stage(records) if stage is None else stage
    if stage is None:
        found = _asked(
            linearised, WeightedSample.of(weights, domains=domains, number_of_domains=groups), records, wanted
        )
        return found.values.ravel(), np.full(found.values.size, np.nan)
    sample = WeightedSample.of(weights, stage, domains=domains, number_of_domains=groups)
    found = _asked(linearised, sample, records, wanted)
    return found.values.ravel(), np.sqrt(found.variances).ravel()


def first_stage(records: Records) -> FirstStage | None:
    """How the records were sampled, as the plan states it; None where it does not say."""
    design = records.plan.design
    independent = design.selection == "independent"
    # Independent selection is like a fixed number among very many, of which nearly all are empty.
    sizes = ((MANY, None),) if independent else records.plan.selected_units
    if sizes is None:
        return None
    population = [near(float(N)) if N else np.inf for _, N in sizes]
    return FirstStage.of(
        strata=records.strata,
        clusters=records.clusters,
        selected=[n for n, _ in sizes],
        population=population,
        lonely="certainty" if design.single == "certain" else "refuse",
    )


def _asked(module: Any, sample: Any, records: Records, wanted: PublishSection) -> Any:
    plan = records.plan

    def values(name: str) -> Numbers:
        return np.asarray(records.values[name] * near(plan.variable(name).step))

    if wanted.kind == "count":
        return module.totals(sample)
    if wanted.kind == "total":
        return module.totals(sample, values(str(wanted.of)))
    if wanted.kind == "mean":
        return module.means(sample, values(str(wanted.of)))
    if wanted.kind == "ratio":
        return module.ratios(sample, values(str(wanted.of)), values(str(wanted.over)))
    if wanted.kind == "proportion":
        name = str(wanted.of)
        return module.proportions(sample, records.cells([name]), plan.schema_of([name]).number_of_groups([name]))
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
    labels = plan.schema_of(by).labels(by)
    return [pl.Series(name, [label[at] for label in labels]) for at, name in enumerate(by)]
