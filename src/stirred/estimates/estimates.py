"""Estimates with their standard errors and intervals, and the measurements that an estimate rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.estimates.intervals import Array, half_widths
from stirred.spec.pages import table

_SHOWN = 20
"""Rows that a notebook shows."""

_ROUNDING = 1e-6
"""More than what floating-point numbers can have added to an end that is a whole number."""


@brief
@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates with a row for each place and a column for each group. They may be negative, and so are unbiased.

    A count that no measurement determines is ``nan``, with an infinite standard error.
    """

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    level: str | None
    """None for places that are not units of one level."""
    places: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    """For each group its value of every name in ``by``."""
    values: Array
    variances: Array
    parameter: Array = field(repr=False)
    """Where ``terms`` is positive, the estimate is a plain sum of so many values with noise of this parameter."""
    terms: Array = field(repr=False)
    exact: tuple[str, ...] = ()
    """The invariants that were taken into account, in words."""
    unused: tuple[str, ...] = ()
    """What is also known of the table, and was not used."""
    sources: tuple[Source, ...] = ()
    """The measurements that a single estimate rests on, where they were asked for."""

    def _repr_html_(self) -> str:
        """The first rows as an HTML table, with intervals at 90%."""
        head, *rows = estimate_rows(self, most=_SHOWN)
        total = len(self.places) * len(self.labels)
        more = [("...", *[""] * (len(head) - 2), f"{total:,} rows in all")] if total > len(rows) else []
        return table(head, [(row, False) for row in [*rows, *more]])

    @property
    def standard_errors(self) -> Array:
        """The standard error of each estimate; infinite where nothing is known."""
        return np.sqrt(self.variances)

    def interval(self, confidence: float = 0.9) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, as whole numbers, ends included. Each interval by itself contains the
        true count with at least this probability."""
        if not 0 < confidence < 1:
            raise errors.parameter_out_of_range("The confidence", confidence, "between 0 and 1")
        half = half_widths(self.standard_errors, self.parameter, self.terms, confidence)
        middle = np.where(np.isnan(self.values), 0.0, self.values)
        return np.ceil(middle - half - _ROUNDING), np.floor(middle + half + _ROUNDING)

    @property
    def interval_kinds(self) -> NDArray[np.str_]:
        """How each interval is found: from the law of the noise itself or from the normal one; *known* where an
        invariant tells the count, *none* where nothing does."""
        kinds = np.where(self.terms > 0, "exact", "normal")
        return np.where(self.variances == 0, "known", np.where(np.isinf(self.variances), "none", kinds))

    def to_frame(self, confidence: float = 0.9) -> pl.DataFrame:
        """One row for each place and group."""
        lower, upper = self.interval(confidence)
        groups = len(self.labels)
        texts = {self.level or "place": [place for place in self.places for _ in range(groups)]}
        texts |= {name: [label[at] for label in self.labels] * len(self.places) for at, name in enumerate(self.by)}
        return pl.DataFrame(
            [
                *(pl.Series(name, values, dtype=pl.String) for name, values in texts.items()),
                pl.Series("estimate", self.values.ravel()),
                pl.Series("standard_error", self.standard_errors.ravel()),
                pl.Series("lower", lower.ravel()),
                pl.Series("upper", upper.ravel()),
                pl.Series("interval", self.interval_kinds.ravel().tolist(), dtype=pl.String),
            ]
        )


@dataclass(frozen=True)
class Source:
    """Measurements of one query at one level that an estimate rests on.

    ``relation`` is *inside* for units that lie in the place, *around* for units that contain some of it and more, and
    *beside* for the others.
    """

    level: str
    relation: Literal["inside", "around", "beside"]
    query: str
    units: int
    weight: float
    """The largest weight, in absolute value, that a single value has."""
    share: float
    """Their share of the estimate's variance; all shares add up to one."""


def estimate_rows(estimates: Estimates, confidence: float = 0.9, most: int | None = None) -> list[tuple[str, ...]]:
    """A table to print: the head, then a line for each place and group, at most ``most``."""
    lower, upper = estimates.interval(confidence)
    percent = f"{100 * confidence:g}%"
    rows = [(estimates.level or "place", *estimates.by, "estimate", "std. error", f"{percent} interval")]
    for at, place in enumerate(estimates.places):
        for group, label in enumerate(estimates.labels):
            if most is not None and len(rows) > most:
                return rows
            value, error = estimates.values[at, group], estimates.standard_errors[at, group]
            if np.isinf(error):
                rows.append((place, *label, "-", "-", "not measured"))
            else:
                ends = f"{lower[at, group] + 0:,.0f} to {upper[at, group] + 0:,.0f}"
                rows.append((place, *label, f"{round(value, 1) + 0:,.1f}", f"{error:,.2f}", ends))
    return rows


def source_rows(sources: Sequence[Source], most: int = 10) -> list[tuple[str, ...]]:
    """A table to print: the head, then the measurements that an estimate rests on, the largest shares first."""
    head: tuple[str, ...] = ("level", "units", "query", "largest weight", "share of variance")
    return [head] + [
        (one.level, f"{one.units:,} {one.relation}", one.query, f"{one.weight:.3f}", f"{100 * one.share:.1f}%")
        for one in sources[:most]
    ]
