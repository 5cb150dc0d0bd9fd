"""Quantiles of a variable from weighted counts in intervals of it, with intervals for sampling and noise.

A share at or below an edge is a quotient of measured sums like any other; its standard error, of noise and of sampling,
turns into an interval of the quantile by reading the distribution backwards (Woodruff 1952).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stirred.estimates.answers import NO_ESTIMATE, Answers, Parts
from stirred.spec.exact import near, written
from stirred.survey.combining import Array, MeasuredSurvey
from stirred.survey.interval_ends import quantiles
from stirred.survey.plan_sections import PublishSection
from stirred.survey.quantiles import cumulated_shares, grid_quantiles
from stirred.survey.sampling_errors import DesignBound, Source

NOT_POSITIVE = f"{NO_ESTIMATE}: the count of the group is not above 0 after noise"
_WORDS: Mapping[str, str] = {
    "bounded": "the values whose shares are within the interval of the share; sampling errors are upper bounds",
    "unknown": "as far as noise goes: the values whose shares are within the noise of the share",
    NOT_POSITIVE: "noise left no count above 0 in the group, as it does where few records are; ask for coarser groups",
}


def quantile_answers(survey: MeasuredSurvey, wanted: PublishSection, where: Mapping[str, tuple[str, ...]]) -> Answers:
    """The quantiles of every group, a row for each group and probability."""
    plan, attribute = survey.plan, survey.plan.attribute(str(wanted.of))
    by, grid = (*wanted.by, str(wanted.of)), len(attribute.labels)
    family = survey.family(None)
    counts = family.estimates(by, where).reshape(-1, grid)
    edges = np.array([near(cut) for cut in attribute.cuts])
    probabilities = np.array([near(one) for one in wanted.probabilities])
    usable = counts.sum(axis=1) > 0
    values = np.full((len(counts), len(probabilities)), np.nan)
    shares = np.full(counts.shape, np.nan)
    if usable.any():
        shares[usable] = cumulated_shares(counts[usable])
        values[usable] = grid_quantiles(edges, counts[usable], probabilities)
    noise = _share_noise(survey, by, where, counts)
    bound = DesignBound.of(plan)
    totals = counts.sum(axis=1)
    sampling = np.zeros_like(noise)
    if bound is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            sampling = bound.residuals(shares * (1 - shares) * totals[:, None]) / totals[:, None] ** 2
    sampling = np.nan_to_num(sampling)
    source: Source = "unknown" if bound is None else "bounded"

    def ends(confidence: float) -> Parts:
        low, high = np.full(values.shape, edges[0]), np.full(values.shape, edges[-1])
        for group in np.flatnonzero(usable):
            at = np.concatenate([[0.0], shares[group]])
            variances = np.concatenate([[0.0], (noise + sampling)[group]])
            noises = np.concatenate([[0.0], noise[group]])
            # The spread of the share at the quantile itself, between the edges around it.
            here = np.interp(values[group], edges, variances)
            part = np.divide(np.interp(values[group], edges, noises), here, out=np.ones_like(here), where=here > 0)
            spread = quantiles(confidence, part, plan.noise) * np.sqrt(here)
            low[group] = _read_back(edges, at, probabilities - spread, "left")
            high[group] = _read_back(edges, at, probabilities + spread, "right")
        lower, upper = np.minimum(low, values), np.maximum(high, values)
        lower, upper = np.where(np.isnan(values), low, lower), np.where(np.isnan(values), high, upper)
        return Parts(values.ravel(), ((upper - lower) / 2).ravel() ** 2, lower.ravel(), upper.ravel())

    one = ends(0.6826894921370859)
    labels = [
        (*label, written(p)) for label in plan.schema_of(wanted.by).labels(wanted.by) for p in wanted.probabilities
    ]
    return Answers(
        table="survey",
        by=(*wanted.by, "probability"),
        where=dict(where),
        measure=f"quantile of {attribute.variable}",
        labels=tuple(labels),
        values=one.values,
        variances=np.where(np.isnan(one.values), np.inf, one.variances),
        naive=None,
        kinds=tuple(NOT_POSITIVE if gone else source for gone in np.isnan(one.values).tolist()),
        kind_words=_WORDS,
        ends=ends,
        whole=False,
        remarks=(
            "Between the cuts of the plan the distribution is taken to be even. Standard errors are half of the "
            "interval that holds the truth in 68 of 100 cases.",
        ),
    )


def _share_noise(
    survey: MeasuredSurvey, by: tuple[str, ...], where: Mapping[str, tuple[str, ...]], counts: Array
) -> Array:
    """The noise variance of the share at or below each upper edge, in every group."""
    grid = counts.shape[1]
    places = np.arange(counts.size).reshape(-1, grid)
    pairs = np.stack(np.broadcast_arrays(places[:, :, None], places[:, None, :]), axis=-1).reshape(-1, 2)
    between = survey.family(None).noise_covariances(by, where, pairs).reshape(-1, grid, grid)
    totals = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.cumsum(counts, axis=1) / totals[:, None]
        # The derivative of (sum of the first j counts) / total: 1 - share for the first j, minus the share for others.
        steps = np.tri(grid)[None] - shares[:, :, None]
        found = np.einsum("gji,gik,gjk->gj", steps, between, steps) / totals[:, None] ** 2
    return np.asarray(np.maximum(np.nan_to_num(found), 0.0))


def _read_back(edges: Array, shares: Array, wanted: Array, side: str) -> Array:
    """The value at which a rising distribution reaches each share; of a flat part its lower or upper end."""
    wanted = np.clip(wanted, 0.0, 1.0)
    at = np.clip(np.searchsorted(shares, wanted, side=side), 1, len(shares) - 1)  # type: ignore[call-overload]
    low, high = shares[at - 1], shares[at]
    part = np.divide(wanted - low, high - low, out=np.full(len(wanted), float(side == "right")), where=high > low)
    return np.asarray(edges[at - 1] + np.clip(part, 0, 1) * (edges[at] - edges[at - 1]))
