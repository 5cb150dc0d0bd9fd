"""Quantiles of a distribution on a stated grid, from weighted counts by interval, with Woodruff's intervals.

The share at or below each edge of the grid is the cumulated count over the total. Between edges the share is taken to
grow in a straight line (rule "linear"), or all records of an interval are taken to lie at its upper edge (rule
"step", for variables whose values are the edges). The quantile of a probability p is the smallest value whose share is
at least p. Keep in mind: counts may hold noise; cumulated shares that fall are replaced by the nearest ones that do not
(isotonic regression, least squares), so no count is cut off at 0 by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from stirred import errors
from stirred._lazy import later
from stirred.survey.record_columns import Numbers

optimize, special = later("scipy.optimize"), later("scipy.special")

Rule = Literal["linear", "step"]

_SAME = 1e-12
"""Shares that differ by less are one: sums of weights in another order differ by as much."""


@dataclass(frozen=True, eq=False)
class QuantileIntervals:
    """Quantiles with the ends of their intervals, one for each probability."""

    values: Numbers
    lower: Numbers
    upper: Numbers
    cut_off: int
    """Ends at the edge of the grid because the share there would be below 0 or above 1."""


def cumulated_shares(counts: Any) -> Numbers:
    """Shares at or below the upper edge of each interval, never falling; the last axis of ``counts`` is the grid.

    >>> cumulated_shares([1, 2, 1]).tolist(), cumulated_shares([4, -1, 1, 4]).tolist()
    ([0.25, 0.75, 1.0], [0.4375, 0.4375, 0.5, 1.0])
    """
    given = np.asarray(counts)
    if given.dtype.kind not in "biuf" or given.ndim == 0 or not given.shape[-1] or not np.isfinite(given).all():
        raise errors.survey_column("counts by interval", "are missing or not numbers", "Give one for each interval")
    cumulated = np.cumsum(given.astype(np.float64), axis=-1)
    whole = cumulated[..., -1:]
    if (whole <= 0).any():
        raise errors.survey_column(
            "counts by interval", "add up to 0 or less, so that there is no distribution", "Ask for larger domains"
        )
    shares = cumulated / whole
    falling = (np.diff(shares, axis=-1) < 0).any(axis=-1) | (shares < 0).any(axis=-1) | (shares > 1).any(axis=-1)
    for place in np.argwhere(np.atleast_1d(falling)):
        row = shares if shares.ndim == 1 else shares[tuple(place)]
        row[:-1] = np.clip(optimize.isotonic_regression(row[:-1]).x, 0.0, 1.0)
    return np.asarray(shares)


def grid_quantiles(edges: Any, counts: Any, probabilities: Any, *, rule: Rule = "linear") -> Numbers:
    """Quantiles of counts (one for each interval, or domains by intervals) between edges, one more than intervals.

    >>> grid_quantiles([0, 10, 20], [1, 2], [0.25, 0.5]).tolist()
    [7.5, 12.5]
    """
    shares = cumulated_shares(counts)
    points = _edges(edges, shares.shape[-1])
    wanted = _probabilities(probabilities)
    if shares.ndim == 1:
        return _inverted(points, shares, wanted, _rule(rule))
    rows = shares.reshape(-1, shares.shape[-1])
    found = [_inverted(points, row, wanted, _rule(rule)) for row in rows]
    return np.reshape(found, (*shares.shape[:-1], len(wanted)))


def woodruff_intervals(
    edges: Any,
    counts: Any,
    probabilities: Any,
    standard_error: Callable[[float], float],
    *,
    confidence: float = 0.95,
    degrees_of_freedom: float | None = None,
    rule: Rule = "linear",
) -> QuantileIntervals:
    """Quantiles with intervals: the quantiles of p - t s and p + t s (Woodruff 1952).

    ``standard_error`` takes a value and gives s, the standard error of the share at or below it (with the noise, where
    counts hold some). t is the quantile of the normal distribution, or of Student's with ``degrees_of_freedom``. With
    the rule "step", R's survey goes out from the share at the quantile, which may exceed p; give that share to match.

    >>> found = woodruff_intervals([0, 10, 20], [5, 5], [0.5], lambda value: 0.1, confidence=0.9)
    >>> found.values.round(2).tolist(), found.lower.round(2).tolist(), found.upper.round(2).tolist()
    ([10.0], [6.71], [13.29])
    """
    if not 0 < confidence < 1:
        raise errors.design_number("The confidence", "not between 0 and 1", "a number between 0 and 1")
    shares = cumulated_shares(counts)
    if shares.ndim != 1:
        raise errors.survey_column("counts by interval", "are of several domains", "Give one domain at a time")
    points, wanted = _edges(edges, len(shares)), _probabilities(probabilities)
    values = _inverted(points, shares, wanted, _rule(rule))
    tail = (1 + confidence) / 2
    factor = special.ndtri(tail) if degrees_of_freedom is None else special.stdtrit(degrees_of_freedom, tail)
    spread = factor * np.array([float(standard_error(float(value))) for value in values])
    if not (spread >= 0).all():
        raise errors.survey_column("standard errors of shares", "are negative or missing", "Give numbers from 0 on")
    low, high = wanted - spread, wanted + spread
    return QuantileIntervals(
        values,
        _inverted(points, shares, np.clip(low, 0, 1), rule),
        _inverted(points, shares, np.clip(high, 0, 1), rule),
        int(np.count_nonzero(low < 0) + np.count_nonzero(high > 1)),
    )


def _inverted(points: Numbers, shares: Numbers, probabilities: Numbers, rule: Rule) -> Numbers:
    """The smallest value whose share is at least each probability."""
    at_edges = np.concatenate([[0.0], shares])
    upper = np.searchsorted(at_edges, probabilities - _SAME, side="left").clip(0, len(shares))
    if rule == "step":
        # The smallest value is the upper edge of the first interval with a record, also for the probability 0.
        upper = np.maximum(upper, np.searchsorted(at_edges, _SAME, side="right"))
        return np.asarray(points[upper])
    lower = np.maximum(upper - 1, 0)
    width = at_edges[upper] - at_edges[lower]
    part = np.divide(probabilities - at_edges[lower], width, out=np.zeros(len(width)), where=width > 0)
    return np.asarray(points[lower] + part.clip(0, 1) * (points[upper] - points[lower]))


def _rule(rule: Rule) -> Rule:
    if rule not in get_args(Rule):
        raise errors.design_choice("rule", "is not known", f"Choose {errors.listed(get_args(Rule), 'or')}")
    return rule


def _edges(edges: Any, intervals: int) -> Numbers:
    points = np.asarray(edges)
    if points.dtype.kind not in "iuf" or points.shape != (intervals + 1,) or not np.isfinite(points).all():
        raise errors.survey_column(
            "edges of the grid", "are not finite numbers, one more than intervals", f"Give {intervals + 1:,} numbers"
        )
    if not (np.diff(points) > 0).all():
        raise errors.survey_column("edges of the grid", "do not grow", "Give each edge once, in their order")
    return points.astype(np.float64)


def _probabilities(probabilities: Any) -> Numbers:
    wanted = np.asarray(probabilities)
    if wanted.dtype.kind not in "iuf" or wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise errors.survey_column("probabilities", "are not numbers from 0 to 1", "Give an array of them")
    return wanted.astype(np.float64)
