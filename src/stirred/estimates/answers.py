"""Estimates of counts, shares, differences, ratios or odds ratios: a row for each, beside the naive values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.estimates.derived import Parts
from stirred.spec.html import table

Array = NDArray[np.float64]

NO_ESTIMATE = "no estimate"
"""How the kind of a row begins that has no estimate; why not follows."""
_SHOWN = 20
"""Rows that a notebook shows."""


@brief
@dataclass(frozen=True, eq=False)
class Answers:
    """Estimates with a row for each combination of values. Counts may be negative: raising them to 0 would bias them.

    Where there is no estimate the value is ``nan``, and the interval is what can be said: ``kinds`` tells why.
    """

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    measure: str
    """What is estimated, in words: ``count``, ``share of tenure``, ..."""
    labels: tuple[tuple[str, ...], ...]
    """For each row its value of every name in ``by``."""
    values: Array
    variances: Array
    naive: Array | None
    """What the released rows give without correction; None where that is not asked."""
    kinds: tuple[str, ...]
    """How the interval of each row is found."""
    kind_words: Mapping[str, str]
    """What the kinds mean."""
    ends: Callable[[float], Parts] = field(repr=False)
    """The intervals at a confidence."""
    whole: bool = True
    """Whether what is estimated are whole numbers."""
    exact: tuple[str, ...] = ()
    """What is known exactly and was used, in words."""
    unused: tuple[str, ...] = ()
    """What could not be used, in words."""
    remarks: tuple[str, ...] = ()
    """What a reader must know beside the numbers."""
    sources: tuple[Any, ...] = ()
    parts: Mapping[str, Array] = field(default_factory=dict)
    """Further columns: the standard error of each estimate by where it comes from."""

    def __len__(self) -> int:
        return len(self.values)

    def _repr_html_(self) -> str:
        """The first rows as an HTML table, with intervals at 95%."""
        head, *rows = self.rows(most=_SHOWN)
        more = [("...", *[""] * (len(head) - 2), f"{len(self):,} rows in all")] if len(self) > len(rows) else []
        return table(head, [(row, False) for row in [*rows, *more]])

    @property
    def standard_errors(self) -> Array:
        """The standard error of each estimate; infinite where there is none."""
        return np.sqrt(np.maximum(self.variances, 0.0))

    @property
    def interval_kinds(self) -> NDArray[np.str_]:
        """How each interval is found; ``kind_words`` says what the kinds mean."""
        return np.array(self.kinds, dtype=np.str_)

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, ends included. Each by itself contains the truth with about this
        probability, or more often."""
        if not 0 < confidence < 1:
            raise errors.parameter_out_of_range("The confidence", confidence, "between 0 and 1")
        found = self.ends(confidence)
        return found.lower, found.upper

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row for each estimate; what is not known is null, which a file leaves empty."""
        lower, upper = self.interval(confidence)
        frame = pl.DataFrame(
            [
                *(
                    pl.Series(name, [label[at] for label in self.labels], dtype=pl.String)
                    for at, name in enumerate(self.by)
                ),
                pl.Series("estimate", self.values),
                pl.Series("standard_error", self.standard_errors),
                pl.Series("lower", lower),
                pl.Series("upper", upper),
                pl.Series("interval", list(self.kinds), dtype=pl.String),
                *([] if self.naive is None else [pl.Series("naive", self.naive)]),
                *(pl.Series(name, numbers) for name, numbers in self.parts.items()),
            ]
        )
        numbers = [pl.col(name).fill_nan(None) for name, kind in frame.schema.items() if kind.is_float()]
        made = pl.col("estimate").is_not_null()
        return frame.with_columns(numbers).with_columns(standard_error=pl.when(made).then("standard_error"))

    def to_json(self, confidence: float = 0.95) -> str:
        """The estimates as JSON: what was asked, then an entry for each row with its interval and any naive value."""
        rows = self.to_frame(confidence).rows(named=True)
        body = {
            "stirred_estimates": 1,
            "table": self.table,
            "measure": self.measure,
            "by": self.by,
            "where": {name: list(values) for name, values in self.where.items()},
            "confidence": confidence,
            "interval_kinds": {kind: words for kind, words in self.kind_words.items() if kind in self.kinds},
            "known_exactly_and_used": self.exact,
            "not_used": self.unused,
            "remarks": self.remarks,
            "estimates": [
                {name: None if isinstance(value, float) and not math.isfinite(value) else value
                 for name, value in row.items()}
                for row in rows
            ],
        }  # fmt: skip
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    def rows(self, confidence: float = 0.95, most: int | None = None) -> list[tuple[str, ...]]:
        """A table to print: the head, then a line for each estimate, at most ``most``."""
        lower, upper = self.interval(confidence)
        beside = () if self.naive is None else ("naive",)
        sources = tuple(name.replace("_", " ") for name in self.parts)
        head = (*self.by, self.measure, "std. error", *sources, f"{100 * confidence:g}% interval", *beside, "kind")
        rows: list[tuple[str, ...]] = [head]
        for at, label in enumerate(self.labels[:most]):
            refused = math.isnan(self.values[at])
            rows.append(
                (
                    *label,
                    "-" if refused else self._number(self.values[at], 1),
                    "-" if refused else self._number(self.standard_errors[at], 2),
                    *(self._number(one[at], 2) for one in self.parts.values()),
                    "-" if math.isnan(lower[at]) else f"{self._number(lower[at], 0)} to {self._number(upper[at], 0)}",
                    *(() if self.naive is None else (self._number(self.naive[at], 0),)),
                    self.kinds[at],
                )
            )
        return rows

    def kind_lines(self, confidence: float = 0.95) -> list[str]:
        """For each kind of interval among the estimates, what it means."""
        return [f"{kind}: {words}" for kind, words in self.kind_words.items() if kind in self.kinds]

    def _number(self, value: float, decimals: int) -> str:
        if not math.isfinite(value):
            return "-" if math.isnan(value) else "any" if value > 0 else "-any"
        return f"{value + 0:,.{decimals if self.whole else 4}f}"
