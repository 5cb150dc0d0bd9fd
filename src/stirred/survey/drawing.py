"""Draws a survey release: reads the file once, imputes, measures sums and standard errors with exact noise.

The order is part of the guarantee: imputation models are estimated with noise of their own before any sum is measured,
and standard errors look at means that were measured, and are public, before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stirred._shown import withheld
from stirred.noise import RandomSource, SystemSource
from stirred.releases.folder.documents import draw_nonce
from stirred.releases.mechanism import Data
from stirred.releases.progress import Progress, Silent
from stirred.spec import Specification
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.design_errors import measure_errors
from stirred.survey.estimating import answer
from stirred.survey.filling import fill_in
from stirred.survey.measuring import measure
from stirred.survey.plan import SurveyPlan
from stirred.survey.records import Records, read_records
from stirred.survey.refuting import open_stops, require_design, stops_of
from stirred.survey.released import measured_tables
from stirred.survey.specifying import specify


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Drawn:
    """What was drawn; the records are there only where the confidential comparison was asked for."""

    survey: MeasuredSurvey
    models: Mapping[str, Any]
    """By imputed attribute or variable its noisy model, as it is published."""
    specification: Specification
    for_release: bool
    nonce: str
    records: Records | None


def draw(
    plan: SurveyPlan,
    data: Data | None = None,
    *,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> Drawn:
    """Read the data once and draw everything."""
    source, progress = source or SystemSource(), progress or Silent()
    progress.stage("reading the survey")
    records = read_records(plan, data, lambda done: progress.stage("reading the survey", done))
    require_design(records)
    for stop in open_stops(plan, stops_of(records)):
        raise stop
    if plan.imputation:
        progress.stage("imputing")
    filled, models = fill_in(records, source)
    progress.stage("measuring sums")
    survey = MeasuredSurvey(plan, measure(filled, source))
    found = {}
    for wanted in measured_tables(plan):
        progress.stage(f"measuring the standard errors of {wanted.name}")
        found[wanted.name] = measure_errors(filled, wanted, answer(survey, wanted).values, source)
    survey = MeasuredSurvey(plan, survey.sums, found)
    stated = specify(plan, source.for_release)
    return Drawn(survey, models, stated, source.for_release, draw_nonce(source), filled if keep_truth else None)
