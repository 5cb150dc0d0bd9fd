"""Checks a survey plan against its file before any noise: what is protected, expected errors, what is cut or empty.

Noise and the guarantee follow from the plan alone. Numbers of records, design standard errors and what the rules change
are read from the file, so a check as a whole is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from stirred import errors
from stirred._progress import Progress, shown_by, stage, telling
from stirred.errors.kinds import listed
from stirred.releases.folder.documents import check_json, code_line, fill, findings_and_stops
from stirred.releases.mechanism import Data
from stirred.semantics.sentences.formatting import columns
from stirred.spec import Specification
from stirred.spec.exact import bound, written
from stirred.survey.checking.against_plan import Repeats, open_stops, require_design, stops_of
from stirred.survey.checking.comparison import design_estimates, first_stage
from stirred.survey.data import Records, read_records
from stirred.survey.design.standard_errors import FirstStage
from stirred.survey.estimating.measured import Array, MeasuredSurvey, measured_tables
from stirred.survey.estimating.questions import answer
from stirred.survey.measuring import (
    ErrorTable,
    centres_of,
    error_noise,
    query_noise,
    query_reach,
    true_errors,
    true_sums,
    weights_may_move,
)
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.sections import PublishSection, QuerySection
from stirred.survey.weights.rules import effective_size_of_multiples


@dataclass(frozen=True)
class QueryNoise:
    """The noise of one query, from the plan alone."""

    query: str
    cells: int
    share: str
    moved: float
    """By how much one record can move all cells together."""
    noise: float
    """The standard deviation of the noise of a cell, at most."""
    combined: float
    """The standard error of the best estimate from all queries of the variable: the median over cells."""
    typical: float
    """The median, over cells with a record, of the absolute true sum. Confidential."""
    empty: int
    """Cells without a record. Confidential."""


@dataclass(frozen=True)
class TableErrors:
    """Expected errors of a table to publish, medians over its rows. Confidential."""

    table: str
    rows: int
    without: int
    """Rows that have no estimate: no record is in them."""
    estimate: float
    sampling: float
    """The design standard error of the file."""
    noise: float
    interval: float
    """Half the length of the expected interval."""
    source: str
    """Where the sampling error of the intervals comes from."""


@dataclass(frozen=True, eq=False, repr=False)
class SurveyCheck:
    """The result of checking a plan against its file. Confidential."""

    plan: SurveyPlan
    specification: Specification
    records: int
    weighted: float
    effective: float
    effect: float
    queries: tuple[QueryNoise, ...]
    tables: tuple[TableErrors, ...]
    changed: Mapping[str, int]
    empty: Mapping[str, int]
    """By imputed attribute or variable, how many cells are empty."""
    weights_in_file: float | None = None
    """The sum of the weights before the plan's rule; None where there are no weights."""
    ids: Mapping[str, Repeats] = field(default_factory=dict)
    """By column that looks like an id of the unit, how its values repeat."""
    stops: tuple[errors.StoppedByCheck, ...] = ()
    code: str | None = None
    """Ties a release to this check; as confidential as the data."""

    def __repr__(self) -> str:
        return f"<SurveyCheck, confidential: {self.records:,} records; print it to read it all>"

    @property
    def open_stops(self) -> Sequence[errors.StoppedByCheck]:
        """Stops that the plan does not allow: a release ends with the first of them."""
        return open_stops(self.plan, self.stops)

    def to_json(self) -> str:
        """The check as JSON. Confidential."""
        fields = {
            "records": self.records,
            "weighted_records": self.weighted,
            "weights_in_file": self.weights_in_file,
            "effective_sample_size": self.effective,
            "design_effect_of_weights": self.effect,
            "queries": [_plain(asdict(one)) for one in self.queries],
            "tables": [_plain(asdict(one)) for one in self.tables],
            "cut_at_the_bounds": dict(self.changed),
            "empty_cells": dict(self.empty),
            "ids_of_the_unit": {name: found._asdict() for name, found in self.ids.items()},
        }
        return check_json(self.plan, self.specification, self.stops, self.open_stops, fields, self.code)

    def __str__(self) -> str:
        parts = [
            "CONFIDENTIAL: computed from the data. Do not publish it.",
            _protected(self),
            _file(self),
            _queries(self),
            _tables(self),
            *findings_and_stops(self.specification, self.open_stops),
            "No stops: nothing that was looked at in the file speaks against the plan, so that a release would not be "
            "refused."
            if not self.open_stops
            else "A release of this plan would be refused because of what the lines with STOP say.",
            *code_line(self.code),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def check(plan: SurveyPlan, data: Data | None = None, *, progress: Progress | None = None) -> SurveyCheck:
    """Check a plan against its file; draws nothing. Raises the errors that a release would raise."""
    with shown_by(progress):
        return _checked(plan, data)


def _checked(plan: SurveyPlan, data: Data | None) -> SurveyCheck:
    stage("reading the survey")
    records = read_records(plan, data, telling("reading the survey"))
    require_design(records)
    stage("working out expected errors")
    filled = _complete(records)
    survey = MeasuredSurvey(plan, {query.name: true_sums(filled, query) for query in plan.queries})
    survey = MeasuredSurvey(plan, survey.sums, _expected_errors(survey, filled))
    effective = effective_size_of_multiples(records.weights)
    first = first_stage(filled) if plan.publish and plan.design.replicates is None else None
    return SurveyCheck(
        plan,
        specify(plan),
        records.rows,
        float(records.weights.sum() * plan.weight_step),
        float(effective),
        float(records.rows / effective),
        tuple(_query(survey, query) for query in plan.queries),
        tuple(_expected(survey, filled, wanted, first) for wanted in plan.publish),
        {name: many for name, many in records.changed.items() if many},
        {name: int(gone.sum()) for name, gone in records.empty.items()},
        records.weights_in_file,
        records.ids,
        tuple(stops_of(records)),
    )


def _complete(records: Records) -> Records:
    """Records in which empty cells that a release would impute count as the first value, for expected errors only."""
    codes = {name: np.maximum(values, 0) for name, values in records.codes.items() if name in records.empty}
    return records.with_values({}, codes)


def _query(survey: MeasuredSurvey, query: QuerySection) -> QueryNoise:
    plan, family = survey.plan, survey.family(query.of)
    true = family.values[family.queries.index(query)]
    present = true != 0
    combined = family.noise_variances(query.by, {})
    return QueryNoise(
        query.name,
        len(true),
        written(plan.share(query)),
        float(max(query_reach(plan, query)[0].total)),
        float(np.sqrt(query_noise(plan, query).variances.max())),
        float(np.sqrt(np.median(combined))),
        float(np.median(np.abs(true[present]))) if present.any() else 0.0,
        int((~present).sum()),
    )


def _expected_errors(survey: MeasuredSurvey, records: Records) -> dict[str, ErrorTable]:
    """What measured standard errors are expected to be: the root of their squares plus the variance of their noise."""
    found = {}
    for wanted in measured_tables(survey.plan):
        centres = centres_of(survey.plan, wanted, answer(survey, wanted).values)
        true = np.array(true_errors(records, wanted, centres), dtype=np.float64)
        with_noise = np.sqrt(true**2 + error_noise(survey.plan, wanted).variances)
        found[wanted.name] = ErrorTable(centres, np.rint(with_noise).astype(np.int64))
    return found


def _expected(
    survey: MeasuredSurvey, records: Records, wanted: PublishSection, first: FirstStage | None
) -> TableErrors:
    found = answer(survey, wanted)
    lower, upper = found.interval(float(wanted.confidence))
    sampling = np.full(len(found), np.nan)
    if wanted.kind != "quantiles" and wanted.calibration is None:
        sampling = design_estimates(records, wanted, first)[1]
    known = np.isfinite(found.values)
    noise = found.parts.get("noise_error", np.full(len(found), np.nan))
    half = np.where(np.isfinite(upper - lower), (upper - lower) / 2, np.nan)
    return TableErrors(
        wanted.name,
        len(found),
        int((~known).sum()),
        _median(np.abs(found.values)),
        _median(sampling),
        _median(noise),
        _median(half),
        "measured" if wanted.errors else found.kinds[0],
    )


def _median(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else float("nan")


def _plain(fields: dict[str, object]) -> dict[str, object]:
    return {name: None if value != value else value for name, value in fields.items()}


# -- the page ----------------------------------------------------------------------------------------------------


def _protected(check: SurveyCheck) -> str:
    plan, budget = check.plan, check.specification.budget
    word = "epsilon" if plan.noise == "laplace" else "rho"
    condition = f" {check.specification.condition}".rstrip()
    change = "another unit may stand in its place" if plan.change == "unit" else "it may give other answers"
    lines = [
        fill(f"Protected: {plan.pipeline.protects} ({change})."),
        str(plan.pipeline),
        fill(f"Guarantee: {word} = {bound(budget.number)} per {plan.unit}{condition}. {budget.conversion}."),
    ]
    if why := weights_may_move(plan):
        lines.append(fill(f"One record may change all weights, and the noise covers that: {why}"))
    return "\n".join(lines)


def _file(check: SurveyCheck) -> str:
    rule, given = check.plan.weight_rule, check.weights_in_file
    total = f"{check.weighted:,.0f}"
    if rule is not None and given is not None and f"{given:,.0f}" != total:
        steps = {"cutting": rule.outside == "cut", "shrinking": rule.shrink > 0, "rounding": rule.rounding == "nearest"}
        done = " and ".join(name for name, does in steps.items() if does)
        total += f" after {done}, {given:,.0f} in the file" if done else ""
    lines = [
        f"{check.records:,} records, weights adding up to {total}; unequal weights make them worth "
        f"{check.effective:,.0f} records (design effect {check.effect:.2f})"
    ]
    lines.append(_rows(check))
    lines += [
        f"{many:,} cells of column '{name}' are cut at the bounds, which biases sums"
        for name, many in check.changed.items()
    ]
    lines += [f"{many:,} cells of '{name}' are empty and would be imputed" for name, many in check.empty.items()]
    return "\n".join(fill(f"- {line}.", "  ") for line in lines)


def _rows(check: SurveyCheck) -> str:
    """What the file shows about whether each row is one whole unit."""
    unit = check.plan.unit
    said = "The plan does not say what one row is"
    if check.plan.row is not None:
        said = f"Each row is one whole {unit}, as the plan states"
    if any(found.rows for found in check.ids.values()):
        return f"{said}; the file shows otherwise"
    if check.ids:
        return f"{said}; no value repeats in {listed(check.ids)}, by name an id of one {unit}"
    return f"{said}; the file cannot show otherwise, since no column has a name like that of an id of one {unit}"


def _queries(check: SurveyCheck) -> str:
    rows = [("query", "cells", "share", "one record moves", "noise", "combined", "typical sum", "empty cells")]
    rows += [
        (one.query, f"{one.cells:,}", one.share, _number(one.moved), _number(one.noise), _number(one.combined),
         _number(one.typical), f"{one.empty:,}")
        for one in check.queries
    ]  # fmt: skip
    return (
        "Standard deviation of the noise of a cell: as measured, and of the best estimate from all queries\n"
        + columns(rows, numbers_right=True)
    )


def _tables(check: SurveyCheck) -> str:
    if not check.tables:
        return ""
    rows = [("table", "rows", "typical value", "sampling error", "noise", "half interval", "sampling error is")]
    rows += [
        (one.table, f"{one.rows:,}", _number(one.estimate), _number(one.sampling), _number(one.noise),
         _number(one.interval), one.source)
        for one in check.tables
    ]  # fmt: skip
    text = "Expected errors of the tables to publish (medians over their rows)\n" + columns(rows, numbers_right=True)
    without = [f"{one.without:,} rows of {one.table}" for one in check.tables if one.without]
    if without:
        text += "\n" + fill(f"Without any record, and so without an estimate but for noise: {', '.join(without)}.")
    return (
        text
        + "\n"
        + fill(
            "The sampling error is that of the file by its design (linearised, or by its replicate weights). In a "
            "release it is measured with noise or bounded from public facts, never published as it is."
        )
    )


def _number(value: float) -> str:
    if not np.isfinite(value):
        return "-"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
