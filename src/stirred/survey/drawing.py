"""Fills in empty cells before anything is measured: row by row, from models whose parameters were drawn with noise.

Given the parameters, which are published, a record's value is drawn from its own answers alone. So one changed record
changes one row of what is measured, and the losses of the parameters and of the measurements add up (Das et al. 2022;
:mod:`stirred.survey.imputing`).

Draws a survey release: reads the file once, imputes, measures sums and standard errors with exact noise.

The order is part of the guarantee: imputation models are estimated with noise of their own before any sum is measured,
and standard errors look at means that were measured, and are public, before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from stirred._progress import Progress, shown_by, stage, telling
from stirred.noise import RandomSource, SystemSource
from stirred.releases.folder.documents import draw_nonce
from stirred.releases.mechanism import Data
from stirred.survey.checking.against_plan import open_stops, require_design, stops_of
from stirred.survey.data import Records, read_records, with_intervals
from stirred.survey.documents import SurveyRelease
from stirred.survey.estimating.measured import MeasuredSurvey, measured_tables
from stirred.survey.estimating.questions import answer
from stirred.survey.imputing import (
    MISSING,
    ConditionalFrequencies,
    Lattice,
    LinearModel,
    estimate_frequencies,
    estimate_linear,
    impute_categories,
    impute_linear,
)
from stirred.survey.measuring import measure, measure_errors
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.sections import ImputationSection, VariableSection

Model = ConditionalFrequencies | LinearModel


def fill_in(records: Records, source: RandomSource) -> tuple[Records, Mapping[str, dict[str, Any]]]:
    """The records without empty cells, and the model of each imputation as it is published."""
    models: dict[str, dict[str, Any]] = {}
    for section in records.plan.imputation:
        if section.kind == "frequencies":
            records, model = _categories(records, section, source)
        else:
            records, model = _numbers(records, section, source)
        models[section.of] = model.to_fields()
    return (with_intervals(records) if models else records), models


def lattice_of(variable: VariableSection) -> Lattice:
    """The values that a variable can have."""
    return Lattice(variable.lower, variable.upper, variable.step)


def _budget(plan: SurveyPlan, section: ImputationSection) -> dict[str, Fraction]:
    """What the parameters of an imputation may cost."""
    return {"epsilon" if plan.noise == "laplace" else "rho": plan.budget * section.share}


def _categories(records: Records, section: ImputationSection, source: RandomSource) -> tuple[Records, Model]:
    plan = records.plan
    groups = records.cells(section.given)
    answers = records.codes[section.of].astype(np.int64)
    number = plan.number_of_cells(section.given)
    model = estimate_frequencies(
        groups,
        answers,
        group_count=number,
        value_count=len(plan.attribute(section.of).labels),
        source=source,
        **_budget(plan, section),
        target=section.of,
        by=section.given,
    )
    filled = impute_categories(model, groups, answers, source).astype(np.int32)
    return records.with_values({}, {section.of: filled}), model


def _numbers(records: Records, section: ImputationSection, source: RandomSource) -> tuple[Records, Model]:
    plan, (given,) = records.plan, section.given
    lattices, codes = {}, {}
    for name in (given, section.of):
        variable = plan.variable(name)
        lattices[name] = lattice_of(variable)
        codes[name] = records.values[name] - int(variable.lower / variable.step)
    answers = np.where(records.empty[section.of], MISSING, codes[section.of])
    model = estimate_linear(
        codes[given],
        answers,
        predictor_lattice=lattices[given],
        target_lattice=lattices[section.of],
        source=source,
        **_budget(plan, section),
        target=section.of,
        by=given,
    )
    low = int(plan.variable(section.of).lower / plan.variable(section.of).step)
    filled = impute_linear(model, codes[given], answers, source) + low
    return records.with_values({section.of: filled}, {}), model


def draw(
    plan: SurveyPlan,
    data: Data | None = None,
    *,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> SurveyRelease:
    """Read the data once and draw everything."""
    with shown_by(progress):
        return _drawn(plan, data, keep_truth, source or SystemSource())


def _drawn(plan: SurveyPlan, data: Data | None, keep_truth: bool, source: RandomSource) -> SurveyRelease:
    stage("reading the survey")
    records = read_records(plan, data, telling("reading the survey"))
    require_design(records)
    for stop in open_stops(plan, stops_of(records)):
        raise stop
    if plan.imputation:
        stage("imputing")
    filled, models = fill_in(records, source)
    stage("measuring sums")
    survey = MeasuredSurvey(plan, measure(filled, source))
    found = {}
    for wanted in measured_tables(plan):
        stage(f"measuring the standard errors of {wanted.name}")
        found[wanted.name] = measure_errors(filled, wanted, answer(survey, wanted).values, source)
    survey = MeasuredSurvey(plan, survey.sums, found)
    stated = specify(plan, source.for_release)
    return SurveyRelease(survey, models, stated, source.for_release, draw_nonce(source), filled if keep_truth else None)
