"""Regression of a table of TopDown estimates, a row for each unit of a level, on columns that the reader brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stirred import errors
from stirred.estimates.table_fits import TableFit, fit_table
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index
from stirred.topdown.comparing import Question

MOST_PLACES = 4000
"""Units whose covariance matrix is worked out for one fit."""


def regress(question: Question, formula: str, predictors: Any, *, scatter: bool = True) -> TableFit:
    """Fit one row of every place to columns of ``predictors``, as ``sex=f ~ income + rural`` says."""
    level = question.sites.level
    if level is None or question.sites.unions:
        raise errors.estimate_question("A regression", "is of the units of a level: give --level, and no other places")
    outcome, names = _formula(formula)
    row = _row(question, outcome)
    column = str(question.sites.column)
    frame = _read(predictors, column, names)
    place = {name: at for at, name in enumerate(question.sites.names)}
    strange = [name for name in frame[column] if name not in place]
    if strange:
        raise errors.unknown_geounit(column, str(strange[0]))
    units = np.array([place[name] for name in frame[column]], dtype=np.int64)
    if len(np.unique(units)) < len(units):
        raise errors.estimate_question("The file of predictors", f"must have one row for each '{column}'")
    answers = question.answer()
    told = ~np.isnan(answers.values[units * len(question.rows) + row])
    used = units[told]
    if len(used) > MOST_PLACES:
        raise errors.estimate_question("A regression", f"takes at most {MOST_PLACES:,} places, not {len(used):,}")
    columns = {name: frame[name].to_numpy()[told] for name in names}
    values = answers.values[used * len(question.rows) + row]
    fitted = fit_table(
        values, covariance_of(question, row, used), columns, scatter=scatter,
        outcome=f"{outcome}, {question.measure.words}" if question.rows[0] else question.measure.words,
        table=question.sites.table,
    )  # fmt: skip
    left = len(place) - len(units), int((~told).sum())
    said = [
        f"{number:,} units of '{column}' are left out: {why}."
        for number, why in zip(left, ("the file does not have them", "they have no estimate"), strict=True)
        if number
    ]
    return replace(
        fitted, where=question.sites.where, remarks=(*fitted.remarks, *said), exact=answers.exact, unused=answers.unused
    )


def covariance_of(question: Question, row: int, units: Index) -> Array:
    """The covariance matrix of one row's measure in some units of a level; the delta method, exact for counts and their
    differences."""
    assert question.sites.level is not None
    every = units * len(question.rows) + row
    slopes = np.array(question.measure.slopes(question.values[every]))
    for at, same in question.totals_of_one.items():  # such a total is the count before it
        slopes[same[every], at - 1] += slopes[same[every], at]
        slopes[same[every], at] = 0.0
    varies = question.variances[every] > 0
    groups = [(margin, some[[row]]) for margin, some in map(question.groups, question.measure.counts)]
    total = np.zeros((len(units), len(units)))
    for i, one in enumerate(groups):
        for j, other in enumerate(groups[: i + 1]):
            found = question.design.covariances_among(question.sites.level, units, one, other)
            found = found * np.outer(slopes[:, i] * varies[:, i], slopes[:, j] * varies[:, j])
            total += found if i == j else found + found.T
    return total


def _formula(text: str) -> tuple[str, tuple[str, ...]]:
    left, sign, right = text.partition("~")
    names = tuple(part.strip() for part in right.split("+"))
    if not (sign and left.strip() and all(names)) or len(set(names)) < len(names):
        raise errors.estimate_question(
            f"The regression {text!r}",
            "must be written as OUTCOME ~ COLUMN + COLUMN, each column once: the outcome as column=value, or the word "
            "estimate where a place has one number",
        )
    return left.strip(), names


def _row(question: Question, outcome: str) -> int:
    """Which row of a place is meant."""
    rows = question.rows
    if len(rows) == 1 and outcome == "estimate":
        return 0
    pairs = (one.partition("=") for one in outcome.split(","))
    wanted = {name.strip(): value.strip() for name, _, value in pairs}
    for at, row in enumerate(rows):
        if row == wanted and row:
            return at
    example = ",".join(f"{name}={value}" for name, value in rows[0].items()) or "estimate"
    raise errors.estimate_question(
        f"The outcome '{outcome}'", f"must name one number of a place, for example {example}"
    )


def _read(given: Any, column: str, names: tuple[str, ...]) -> pl.DataFrame:
    """The predictors, with places as text and numbers as numbers."""
    if isinstance(given, str | Path):
        path = Path(given)
        try:
            frame = (
                pl.read_parquet(path)
                if path.suffix == ".parquet"
                else pl.read_csv(path, schema_overrides={column: pl.String}, infer_schema_length=None)
            )
        except (OSError, pl.exceptions.PolarsError):
            raise errors.estimate_question(
                f"The file of predictors {path}", "must be a readable CSV or Parquet file"
            ) from None
    else:
        frame = pl.DataFrame(given) if isinstance(given, Mapping | pl.DataFrame) else _converted(given)
    missing = [name for name in (column, *names) if name not in frame.columns]
    if missing:
        raise errors.unknown_choice("column of the predictors", missing[0], frame.columns)
    text = [name for name in names if not (frame[name].dtype.is_numeric() or frame[name].dtype == pl.Boolean)]
    if text:
        raise errors.estimate_question(f"The predictor '{text[0]}'", "must hold numbers")
    chosen = frame.select(pl.col(column).cast(pl.String), *(pl.col(name).cast(pl.Float64) for name in names))
    if chosen.null_count().sum_horizontal().item() or not all(chosen[name].is_finite().all() for name in names):
        raise errors.estimate_question("The predictors", "must be finite numbers, and none missing")
    return chosen


def _converted(given: Any) -> pl.DataFrame:
    from stirred.tables.reading.inputs import open_input

    opened = open_input("predictors", given)
    batches = list(opened.batches(list(opened.kinds)))
    return pl.DataFrame(pl.from_arrow(batches)) if batches else pl.DataFrame()
