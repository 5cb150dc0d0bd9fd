"""Weighted least squares on a table of estimates: a row for each place, columns that are known, noise that is known.

The true number of a place is taken to be a linear function of its columns plus scatter, independent from place to place
and with one variance t. Estimates y add noise with covariance matrix S, so they have covariance V = S + t I. Each row
has the weight 1 / (its variance in S + t); with the matrix W of these weights the coefficients are G y, where
G = (X'WX)^-1 X'W, unbiased whatever V is, and their covariance is G V G'. Weights leave covariances out on purpose:
with them, a sum that happens to be known almost exactly (of all places, say) would decide the fit although t is not
known.

The scatter is found from the residuals: with M = W - W X G, the sum y'My has the mean tr(M V), and t is where they are
equal, or 0 where that would make it negative. For independent noise this is the rule of Paule and Mandel (1982).

Beside the standard error of a coefficient stands the part that the noise of the release has in it: the standard
deviation of the same weighted fit about what it would have been with the true numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from stirred import errors
from stirred._display import brief
from stirred._lazy import later
from stirred.estimates.answers import Answers, Array, Parts, digits_shown

special = later("scipy.special")
optimize = later("scipy.optimize")

INTERCEPT = "intercept"

KIND_WORDS = {
    "t": "from Student's t with as many degrees of freedom as there are rows less coefficients",
    "normal": "from the normal law, for noise alone: no scatter about the line is allowed for",
    "known": "without noise and without scatter",
}
"""What the kinds of intervals mean."""

_TINY = 1e-10


@brief
@dataclass(frozen=True, eq=False)
class TableFit(Answers):
    """Coefficients of a weighted least-squares fit to a table of estimates, the intercept first."""

    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    """The covariance matrix of the coefficients."""
    noise_errors: Array = field(default_factory=lambda: np.zeros(0))
    """How far the noise of the release moves each coefficient: a standard deviation."""
    scatter: float = 0.0
    """The standard deviation of true numbers about the line."""
    places: int = 0
    """How many rows were used."""

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row for each coefficient."""
        return super().to_frame(confidence).with_columns(pl.Series("noise_error", self.noise_errors))

    def rows(self, confidence: float = 0.95, most: int | None = None) -> list[tuple[str, ...]]:
        """A table to print: the head, then a line for each coefficient, at most ``most``."""
        lower, upper = self.interval(confidence)
        interval = f"{100 * confidence:g}% interval"
        rows: list[tuple[str, ...]] = [(*self.by, "coefficient", "std. error", "by noise", interval, "kind")]
        for at, label in enumerate(self.labels[:most]):
            numbers = self.values[at], self.standard_errors[at], self.noise_errors[at], lower[at], upper[at]
            value, error, noise, low, high = (_shown(number, self.standard_errors[at]) for number in numbers)
            rows.append((*label, value, error, noise, f"{low} to {high}", self.kinds[at]))
        return rows


def fit_table(
    values: ArrayLike,
    covariance: ArrayLike,
    columns: Mapping[str, ArrayLike],
    *,
    scatter: bool = True,
    outcome: str = "estimate",
    table: str = "estimates",
) -> TableFit:
    """Fit a linear function of some columns to estimates, by weighted least squares.

    Parameters
    ----------
    values
        The estimates, one for each row of the table.
    covariance
        The covariance matrix of their noise; zeros for a number that is known.
    columns
        By name the columns to explain them by, known without error; an intercept is added.
    scatter
        Whether true numbers may lie off the line. Without it noise alone is taken to explain the residuals.
    outcome
        What is estimated, in words.
    table
        The name of the table, for the head of what is printed.

    Returns
    -------
    TableFit
        ``values`` are the coefficients; ``to_frame()`` has them with standard errors and intervals.

    Examples
    --------
    >>> import numpy as np
    >>> fit = fit_table([1.0, 3.1, 4.9, 7.0], 0.01 * np.eye(4), {"x": [0, 1, 2, 3]}, scatter=False)
    >>> fit.values.round(3).tolist(), fit.standard_errors.round(3).tolist()
    ([1.03, 1.98], [0.084, 0.045])
    """
    y, noise = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    x, scale = _matrix(y, noise, columns)
    freedom = len(y) - x.shape[1]
    own = np.maximum(np.diag(noise), 0.0)
    own = np.where(own > _TINY * own.max(), own, 0.0)
    if not scatter and own.any() and not own.all():
        raise errors.estimate_question(
            "A fit without scatter", "needs noise in every number: some are known exactly. Allow for scatter"
        )
    variance = _scatter(x, y, noise, own, freedom) if scatter else 0.0
    gain, _ = _fit(x, own, variance)
    found = (gain @ y) / scale
    moved = gain @ noise @ gain.T / np.outer(scale, scale)
    both = moved + variance * gain @ gain.T / np.outer(scale, scale)
    variances = np.maximum(np.diag(both), 0.0)
    names = (INTERCEPT, *columns)
    kind = "known" if not variances.any() else "t" if scatter else "normal"

    def ends(confidence: float) -> Parts:
        at = (1 + confidence) / 2
        reach = float(special.stdtrit(freedom, at) if scatter else special.ndtri(at)) * np.sqrt(variances)
        return Parts(found, variances, found - reach, found + reach)

    return TableFit(
        table=table,
        by=("term",),
        where={},
        measure=f"coefficient of {outcome}",
        labels=tuple((name,) for name in names),
        values=found,
        variances=variances,
        naive=None,
        kinds=(kind,) * len(names),
        kind_words=KIND_WORDS,
        ends=ends,
        whole=False,
        remarks=_assumptions(outcome, len(y), math.sqrt(variance), scatter),
        covariance=both,
        noise_errors=np.sqrt(np.maximum(np.diag(moved), 0.0)),
        scatter=math.sqrt(variance),
        places=len(y),
    )


def _matrix(y: Array, noise: Array, columns: Mapping[str, ArrayLike]) -> tuple[Array, Array]:
    """The columns with the intercept before them, each divided by its length, and these lengths."""
    rows = len(y)
    try:
        given = [np.asarray(column, dtype=np.float64) for column in columns.values()]
    except (TypeError, ValueError):
        raise errors.estimate_question("The columns of a fit", "must hold numbers") from None
    if y.ndim != 1 or noise.shape != (rows, rows) or any(column.shape != (rows,) for column in given):
        raise errors.estimate_question("A fit", "needs a number of every column, and a covariance, for each estimate")
    if not all(np.isfinite(part).all() for part in (y, noise, *given)):
        raise errors.estimate_question("A fit", "needs numbers that are finite, and none missing")
    if not given or INTERCEPT in columns:
        raise errors.estimate_question("A fit", f"needs a column; '{INTERCEPT}' is always one and cannot be named")
    if rows < len(given) + 2:
        raise errors.estimate_question(
            f"A fit with {len(given)} columns", f"needs at least {len(given) + 2} rows, and has {rows}"
        )
    x = np.stack([np.ones(rows), *given], axis=1)
    scale = np.linalg.norm(x, axis=0)
    if (scale == 0).any() or np.linalg.matrix_rank(x / np.where(scale > 0, scale, 1.0), tol=1e-9) < x.shape[1]:
        raise errors.estimate_question(
            "The columns of a fit", "must differ from each other and from a constant: leave out what others determine"
        )
    return x / scale, scale


def _fit(x: Array, own: Array, variance: float) -> tuple[Array, Array]:
    """The matrix from numbers to coefficients, and that of the weighted squares of residuals."""
    weights = 1 / (own + variance) if (own + variance > 0).all() else np.ones(len(x))
    heavy = x * weights[:, None]
    gain = np.asarray(np.linalg.solve(heavy.T @ x, heavy.T), dtype=np.float64)
    return gain, np.diag(weights) - heavy @ gain


def _scatter(x: Array, y: Array, noise: Array, own: Array, freedom: int) -> float:
    """The variance about the line at which weighted squares of residuals are as large as they should be."""
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    plain = float(left @ left) / freedom
    if plain <= _TINY**2 * float(y @ y):
        return 0.0
    if not own.any():
        return plain

    def excess(variance: float) -> float:
        _, squares = _fit(x, own, variance)
        return float(y @ squares @ y - (squares * noise).sum() - variance * np.trace(squares))

    least = _TINY * plain
    if excess(least) <= 0:
        return 0.0 if own.all() else least
    most = plain
    while excess(most) > 0:
        most *= 2
    return float(optimize.brentq(excess, least, most, rtol=1e-10))


def _assumptions(outcome: str, rows: int, scatter: float, allowed: bool) -> tuple[str, ...]:
    about = (
        f"true numbers lie about a linear function of the columns, with independent scatter of standard deviation "
        f"{scatter:.3g}, found from the residuals"
        if allowed
        else "true numbers are a linear function of the columns, and noise alone explains the residuals"
    )
    return (
        f"Weighted least squares on {rows:,} estimates ({outcome}). Assumed: {about}; the columns are known without "
        "error. Standard errors take the covariances of the noise into account.",
        "'by noise' is the part of a standard error that comes from the noise of the release. Coefficients are about "
        "places; about persons they say nothing.",
    )


def _shown(number: float, error: float) -> str:
    return f"{number + 0:,.{digits_shown(error, number)}f}"
