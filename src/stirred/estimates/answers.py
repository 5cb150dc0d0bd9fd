"""Answers to questions: counts, shares, differences, ratios, odds ratios and regression coefficients, a row for each.

Each row has the naive value beside the corrected one; a coefficient has its attenuation too.

Standard errors of what is derived from counts are those of the delta method, exact for differences. Intervals are put
together from those of the parts (Zou and Donner, Statistics in Medicine 27, 2008): with estimates x and y, their ends l
and u, and their correlation r, the lower end of x - y is x - y - sqrt(a^2 + b^2 - 2 r a b) with a = x - l_x and
b = u_y - y, and the upper end mirrors it. A ratio t is in its interval if 0 is in that of x - t y. With normal
intervals of the parts these are the usual interval of a difference and Fieller's of a ratio, and they keep what better
intervals of the parts know: that a count is small, near a bound, or known.

Nothing here knows a mechanism: parts come with values, variances and ends, pairs with covariances.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief, html_table

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Estimates with their variances and the ends of their intervals at one confidence."""

    values: Array
    variances: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        for name in ("values", "variances", "lower", "upper"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @property
    def down(self) -> Array:
        """How far the intervals reach below the estimates."""
        return np.maximum(self.values - self.lower, 0.0)

    @property
    def up(self) -> Array:
        """How far they reach above."""
        return np.maximum(self.upper - self.values, 0.0)

    def within(self, low: float, high: float) -> Parts:
        """With intervals cut to what is possible; the estimates stay as they are."""
        return Parts(self.values, self.variances, np.clip(self.lower, low, high), np.clip(self.upper, low, high))


def difference(one: Parts, other: Parts, covariance: Array) -> Parts:
    """``one`` minus ``other``.

    >>> apart = difference(Parts([5], [1], [3], [7]), Parts([2], [1], [0], [4]), np.array([0.0]))
    >>> apart.values, apart.lower.round(3), apart.upper.round(3)
    (array([3.]), array([0.172]), array([5.828]))
    """
    values = one.values - other.values
    r = _correlation(one, other, covariance)
    variances = np.maximum(one.variances + other.variances - 2 * covariance, 0.0)
    lower, upper = values - _apart(one.down, other.up, r), values + _apart(one.up, other.down, r)
    unknown = np.isnan(values)  # without an estimate the interval is what both intervals allow
    lower, upper = np.where(unknown, one.lower - other.upper, lower), np.where(unknown, one.upper - other.lower, upper)
    return Parts(values, np.where(unknown, np.inf, variances), lower, upper)


def ratio(one: Parts, other: Parts, covariance: Array) -> Parts:
    """``one`` divided by ``other``, which is not negative; an end is infinite where ``other`` may be 0.

    >>> part = ratio(Parts([50], [4], [46], [54]), Parts([200], [0], [200], [200]), np.array([0.0]))
    >>> part.values, part.lower.round(3), part.upper.round(3)
    (array([0.25]), array([0.23]), array([0.27]))
    """
    y = other.values
    usable = y > 0
    safe = np.where(usable, y, 1.0)
    values = np.where(usable, one.values / safe, np.nan)
    known = np.where(usable, values, 0.0)
    spread = np.where(usable, other.variances, 0.0)
    variances = np.maximum(one.variances - 2 * known * covariance + known**2 * spread, 0.0) / safe**2
    r = _correlation(one, other, covariance)
    lower = _ratio_end(one.values, y, one.down, other.up, r, -1)
    upper = _ratio_end(one.values, y, one.up, other.down, r, 1)
    unknown = np.isnan(one.values) | np.isnan(y)  # without an estimate the interval is what both intervals allow
    low, high = np.maximum(other.lower, 0.0), np.maximum(other.upper, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(unknown, np.where(high > 0, one.lower / high, -np.inf), lower)
        upper = np.where(unknown, np.where(low > 0, one.upper / low, np.inf), upper)
    return Parts(values, np.where(usable, variances, np.inf), lower, upper)


def odds_ratio(parts: Sequence[Parts], covariance: Array) -> Parts:
    """x0 x3 / (x1 x2), for four estimates whose covariances are ``covariance[..., i, j]``; undefined unless all are
    positive. Standard errors are on the scale of the odds ratio.
    """
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    values = np.stack([part.values for part in parts], axis=-1)
    usable = np.asarray((values > 0).all(axis=-1))
    safe = np.where(usable[..., None], values, 1.0)
    found = np.where(usable, np.exp((signs * np.log(safe)).sum(axis=-1)), np.nan)
    gradient = signs / safe
    variances = np.einsum("...i,...ij,...j->...", gradient, covariance, gradient)
    spread = np.sqrt(np.maximum(np.einsum("...ii->...i", covariance), 0.0))
    scale = spread[..., :, None] * spread[..., None, :]
    correlation = np.clip(np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0), -1, 1)
    index = np.arange(4)
    correlation[..., index, index] = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.stack([np.log(part.values / np.maximum(part.lower, 0.0)) for part in parts], axis=-1)
        up = np.stack([np.log(np.maximum(part.upper, part.values) / part.values) for part in parts], axis=-1)
    lower, upper = (
        _odds_end(np.where(signs > 0, first, second), signs, correlation) for first, second in ((down, up), (up, down))
    )
    base = np.where(usable, found, 1.0)
    bounded = np.isnan(values).any(axis=-1)  # without an estimate the interval is what all intervals allow
    low, high = (np.stack([np.maximum(part, 0.0) for part in ends], axis=-1) for ends in _ends(parts))
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.nan_to_num(low[..., 0] * low[..., 3] / (high[..., 1] * high[..., 2]), nan=0.0, posinf=0.0)
        most = np.nan_to_num(high[..., 0] * high[..., 3] / (low[..., 1] * low[..., 2]), nan=np.inf, posinf=np.inf)
    return Parts(
        found,
        np.where(usable, np.maximum(variances, 0.0) * base**2, np.inf),
        np.where(usable, base * np.exp(-lower), np.where(bounded, least, 0.0)),
        np.where(usable, base * np.exp(upper), np.where(bounded, most, np.inf)),
    )


def _ends(parts: Sequence[Parts]) -> tuple[list[Array], list[Array]]:
    return [part.lower for part in parts], [part.upper for part in parts]


def _odds_end(reach: Array, signs: Array, correlation: Array) -> Array:
    endless = np.asarray(~np.isfinite(reach).all(axis=-1))
    known = np.where(endless[..., None], 0.0, reach) * signs
    square = np.maximum(np.einsum("...i,...ij,...j->...", known, correlation, known), 0.0)
    return np.where(endless, np.inf, np.sqrt(square))


def _correlation(one: Parts, other: Parts, covariance: Array) -> Array:
    scale = np.sqrt(np.maximum(one.variances, 0.0) * np.maximum(other.variances, 0.0))
    usable = (scale > 0) & np.isfinite(scale)
    found = np.divide(covariance, scale, out=np.zeros(np.shape(scale)), where=usable)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _apart(a: Array, b: Array, correlation: Array) -> Array:
    return np.sqrt(np.maximum(a**2 + b**2 - 2 * correlation * a * b, 0.0))


def _ratio_end(x: Array, y: Array, a: Array, b: Array, correlation: Array, side: int) -> Array:
    """The root t of (x - t y)^2 = a^2 + t^2 b^2 - 2 r t a b on one side of x/y."""
    square, middle, constant = y**2 - b**2, x * y - correlation * a * b, x**2 - a**2
    usable = (square > 0) & (y > 0)
    inside = np.maximum(middle**2 - square * constant, 0.0)
    root = np.divide(middle + side * np.sqrt(inside), square, out=np.full(np.shape(x), side * np.inf), where=usable)
    return np.asarray(root)


NO_ESTIMATE = "no estimate"
"""How the kind of a row begins that has no estimate; why not follows."""
SHOWN = 20
"""Rows that a notebook shows."""


def asked_contrasts(
    difference: Any, ratio: Any, odds_ratio: Any, share: str | None, of_share: Sequence[str]
) -> list[Any]:
    """The contrasts of a question, which may have one comparison, and shares of more than one value; ``of_share`` are
    the values that a condition leaves of the column of shares."""
    if sum(one is not None for one in (difference, ratio, odds_ratio)) > 1:
        raise errors.estimate_question("A question", "has one of --difference, --ratio and --odds-ratio")
    if share is not None and odds_ratio is not None:
        raise errors.estimate_question("An odds ratio", "is of counts: leave --share out")
    if share is not None and len(of_share) == 1:
        raise errors.share_of_one(share)
    return [one for one in (difference, ratio, *(odds_ratio or ())) if one is not None]


def first_rows(rows: Sequence[tuple[str, ...]], total: int) -> str:
    """The head and the first of so many rows as an HTML table, for a notebook."""
    head, *shown = rows
    more = [("...", *[""] * (len(head) - 2), f"{total:,} rows in all")] if total > len(shown) else []
    return html_table(head, [(row, False) for row in [*shown, *more]])


def json_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame for a JSON document, which knows no infinite numbers."""
    return [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in frame.rows(named=True)
    ]


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
        return first_rows(self.rows(most=SHOWN), len(self))

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
            "estimates": json_rows(self.to_frame(confidence)),
        }
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


@brief
@dataclass(frozen=True, eq=False)
class Coefficients(Answers):
    """Coefficients of a regression; ``naive`` are those that the released rows give without correction."""

    attenuation: Array = field(default_factory=lambda: np.zeros(0))
    """The part of each predictor's association with the outcome that is left in the released rows, on average; ``nan``
    for the intercept."""

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row for each coefficient; ``estimate`` is the corrected one."""
        return super().to_frame(confidence).with_columns(pl.Series("attenuation", self.attenuation))

    def rows(self, confidence: float = 0.95, most: int | None = None) -> list[tuple[str, ...]]:
        """A table to print: the head, then a line for each coefficient, at most ``most``."""
        lower, upper = self.interval(confidence)
        assert self.naive is not None
        interval = f"{100 * confidence:g}% interval"
        rows: list[tuple[str, ...]] = [
            (*self.by, "naive", "corrected", "std. error", interval, "attenuation", "kind")
        ]  # fmt: skip
        for at, label in enumerate(self.labels[:most]):
            digits = digits_shown(self.standard_errors[at], self.values[at])
            naive, value, error, low, high = (
                f"{part + 0:,.{digits}f}"
                for part in (self.naive[at], self.values[at], self.standard_errors[at], lower[at], upper[at])
            )
            left = self.attenuation[at]
            left_words = "" if math.isnan(left) else f"{left:.4f}"
            rows.append((*label, naive, value, error, f"{low} to {high}", left_words, self.kinds[at]))
        return rows


def digits_shown(error: float, value: float) -> int:
    """Decimals that show two digits of the error, or six of a number that has none."""
    shown = error if error > 0 else abs(value) / 10**4
    return 0 if shown <= 0 else min(max(2 - math.ceil(math.log10(shown)), 0), 12)
