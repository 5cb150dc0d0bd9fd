"""Fills in empty cells before anything is measured: row by row, from models whose parameters were drawn with noise.

Given the parameters, which are published, a record's value is drawn from its own answers alone. So one changed record
changes one row of what is measured, and the losses of the parameters and of the measurements add up (Das et al. 2022;
:mod:`stirred.survey.imputing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from stirred.noise import RandomSource
from stirred.survey.imputation_models import MISSING
from stirred.survey.imputing import ConditionalFrequencies, estimate_frequencies, impute_categories
from stirred.survey.linear_imputing import Lattice, LinearModel, estimate_linear, impute_linear
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import ImputationSection, VariableSection
from stirred.survey.records import Records, with_intervals

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
    number = plan.schema_of(section.given).number_of_groups(section.given)
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
