"""Intervals of estimates: the error of sampling, measured or bounded, and the noise together; quantiles with theirs.

The linearised variance of a sum of residuals e = w r is the sum, over strata h of n selected primary units of N, of
f (Q - T^2 / n), where f = (1 - n/N) n/(n - 1), Q the sum over primary units of their squared totals and T the sum of
all; primary units that are selected independently of each other have f (Q - T^2 / n) = Q. A primary unit of at most m
records has a squared total of at most m times the sum of its squared residuals, and w^2 <= W w for weights of at most
W. So the variance is at most c S - d T^2 / n, with S the weighted sum of r^2, c the largest f m W of a stratum, d the
smallest f and n the number of all selected primary units. For values y in [low, high], y^2 <= (low + high) y - low
high, so that S is bounded by totals and counts; for deviations from a mean R, S <= (high - R)(R - low) times the count.

These bounds are functions of the truth that an interval is about. They are kept as such (:class:`Curve`): an interval
holds the values t from which the estimate is not further away than so many standard errors *at t*, as Wilson's interval
of a proportion. It stays valid where a domain has so few records that the variance at the estimate would mislead.

The error of an estimate is the sum of two independent parts, of sampling (nearly normal) and of noise. Normal noise
keeps the sum normal. Laplace noise has longer tails: the quantile of the sum of a normal and a Laplace law with these
variances is taken, which is exact for one measured number, or the normal quantile where that is larger: sums of several
numbers lie between the two. Quotients have Fieller's intervals: t is inside if Y - t X is within so many of its own
standard errors of 0. Where these depend on t as well, they are taken at t (Wilson 1927). A sum is a quotient whose
denominator is known to be 1.

Quantiles are read off a stated grid. The share at or below each edge is the cumulated count over the total, and grows
in a straight line between edges; the quantile of a probability p is the smallest value whose share is at least p.
Counts may hold noise: cumulated shares that fall are replaced by the nearest ones that do not (isotonic regression,
least squares), so no count is cut off at 0 by itself. The share has a standard error, of noise and of sampling, as any
other quotient; it turns into an interval of the quantile by reading the distribution backwards (Woodruff 1952).

The invariant a reader must know: a design standard error is never published without protection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.estimates.answers import NO_ESTIMATE, Answers, Parts
from stirred.spec.exact import near, written
from stirred.survey.estimating.measured import Array, MeasuredSurvey
from stirred.survey.measuring import error_noise, units
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection

optimize, special = later("scipy.optimize"), later("scipy.special")

Source = Literal["measured", "bounded", "unknown"]

CLEAR = 3.0
"""By how many standard errors of its noise a measured standard error must lie below a bound to be used instead."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A variance that depends on the truth t: constant + slope t + square t^2, by row."""

    constant: Array
    slope: Array
    square: Array

    @classmethod
    def level(cls, variances: Array) -> Curve:
        """A variance that is the same whatever the truth is."""
        return cls(variances, np.zeros_like(variances), np.zeros_like(variances))

    def times(self, factors: Array) -> Curve:
        """The curve with every row multiplied by a factor."""
        return Curve(self.constant * factors, self.slope * factors, self.square * factors)

    def at(self, truth: Array) -> Array:
        """The variance at a truth, at least 0."""
        return np.asarray(np.maximum(self.constant + self.slope * truth + self.square * truth**2, 0.0))


@dataclass(frozen=True, eq=False)
class SamplingErrors:
    """Variances of sampling, and where they come from."""

    variances: Array
    """Of totals, or of the sums of residuals of means, shares and ratios; 0 where nothing is known."""
    source: Source
    noise: Array | None = None
    """The variance of the noise in each measured standard error."""
    bound: Curve | None = None
    """What public facts say, where they say something."""
    most: Array | None = None
    """The bound at the estimate, where standard errors were measured."""
    measured: Array | None = None
    """Squares of the measured standard errors, 0 where noise made one negative."""

    freedom: Array | None = None
    """Degrees of freedom of each measured standard error; None where nothing limits them."""

    def curve(self, quantile: Array) -> Curve:
        """The measured variances for intervals that reach so many standard errors.

        Let a measured standard error be E = s + h, s the one without noise and h noise of variance v. An error of
        sampling of at most q (s + h) is the same as error - q h <= q s, and the left side has the variance s^2 + q^2 v.
        So q^2 v must be added to E^2 where v is small; without it noise would narrow an interval as often as it widens
        it, and narrow ones lose more. Where v is not small, less will do: with q^2 v (E^2 + v) / (E^2 + 3 v) the
        coverage is at least the nominal one for all s, and for v up to s^2 / 4 less than 0.01 above it (at 0.95).

        How the variance depends on the truth is taken from the bound; the measured number says how large it is, where
        it lies below the bound by more than three standard errors of its noise. Always taking the smaller of the two
        would keep what noise takes off a standard error and lose what it adds: where the bound is exact, as for counts
        in simple random samples, coverage would be up to 0.04 too low. By three standard errors it is at most 0.001 too
        low with normal and 0.004 with Laplace noise.
        """
        assert self.measured is not None and self.noise is not None
        variances = with_noise(self.measured, self.noise, quantile)
        if self.bound is None or self.most is None:
            return Curve.level(variances)
        clear = np.sqrt(self.measured) + CLEAR * np.sqrt(self.noise) < np.sqrt(self.most)
        part = np.divide(variances, self.most, out=np.ones_like(variances), where=clear)
        return self.bound.times(np.minimum(part, 1.0))


def with_noise(squares: Array, noise: Array, quantile: Array) -> Array:
    """Squares of measured standard errors with what their noise adds to intervals of so many standard errors."""
    part = np.divide(squares + noise, squares + 3 * noise, out=np.zeros_like(squares), where=squares + noise > 0)
    return np.asarray(squares + quantile**2 * noise * part)


@dataclass(frozen=True)
class DesignBound:
    """What bounds of sampling variances need: c, and d / n."""

    largest: float
    smallest: float

    @classmethod
    def of(cls, plan: SurveyPlan) -> DesignBound | None:
        """The numbers of a plan; None where it does not state enough."""
        design = plan.design
        if design.clusters is not None and design.largest_cluster is None:
            return None
        within = float(design.largest_cluster or 1)
        strata: list[str | None] = [None] if design.strata is None else [*plan.attribute(design.strata).values]
        weights = [near(plan.stratum_weights(one)[1]) for one in strata]
        if design.selection == "independent":
            return cls(within * max(weights), 0.0)
        sizes = plan.selected_units
        if sizes is None:
            return None
        factors = [(1 - n / (N or inf)) * n / (n - 1) if n > 1 else 0.0 for n, N in sizes]
        largest = max(factor * weight for factor, weight in zip(factors, weights, strict=True))
        return cls(within * largest, min(factors) / sum(n for n, _ in sizes))

    def total(self, low: float, high: float, counts: Array) -> Curve:
        """The bound for totals of values between two numbers, in groups of at most so many; counts have 0 and 1."""
        flat = np.ones(len(counts))
        constant = -self.largest * low * high * counts if low * high else 0 * flat
        return Curve(constant, self.largest * (low + high) * flat, -self.smallest * flat)

    def mean(self, low: float, high: float, counts: Array) -> Curve:
        """The bound for sums of deviations from a mean of values between two numbers."""
        most = self.largest * counts
        return Curve(-most * low * high, most * (low + high), -most)

    def residuals(self, squares: Array) -> Array:
        """The bound for a sum of residuals, from their weighted sum of squares."""
        return np.asarray(self.largest * np.maximum(squares, 0.0))


def degrees_of_freedom(plan: SurveyPlan) -> int | None:
    """Selected primary units less strata; None where the plan does not say how many are selected, or their number is
    random."""
    sizes = plan.selected_units
    return None if sizes is None else sum(n - 1 for n, _ in sizes)


def measured_errors(survey: MeasuredSurvey, wanted: PublishSection) -> SamplingErrors | None:
    """Sampling variances from the measured standard errors of a table; None where none were measured.

    A standard error with noise is reported as it was measured, but not below the standard error of its noise.
    """
    found = survey.errors.get(wanted.name)
    if found is None:
        return None
    unit = units(survey.plan, wanted, found.centres)
    noise = error_noise(survey.plan, wanted).variances * unit**2
    squares = np.maximum(found.multiples * unit, 0.0) ** 2
    freedom = np.full(len(squares), float(degrees_of_freedom(survey.plan) or inf))
    return SamplingErrors(np.maximum(squares, noise), "measured", noise, measured=squares, freedom=freedom)


_GRID = 200
"""Shares of noise at which quantiles are computed; between them they are interpolated."""


def quantiles(confidence: float, noise_shares: Array, law: str, freedom: Array | None = None) -> Array:
    """How many standard errors an interval reaches to either side, by the share of noise in the variance.

    >>> quantiles(0.95, np.array([0.0, 1.0]), "laplace").round(3).tolist()
    [1.96, 2.118]
    """
    normal = float(special.ndtri((1 + confidence) / 2))
    if law == "gaussian":
        found = np.full(len(noise_shares), normal)
    else:
        found = np.interp(np.nan_to_num(noise_shares), np.linspace(0, 1, _GRID + 1), _laplace(confidence))
        found = np.maximum(found, normal)
    if freedom is None:
        return found
    # A standard error from few primary units is uncertain itself, as far as the error is one of sampling.
    wider = student(confidence, freedom) / normal
    return np.asarray(found * (1 + (wider - 1) * (1 - np.nan_to_num(noise_shares))))


def student(confidence: float, freedom: Array) -> Array:
    """How many estimated standard errors an interval of a normal estimate reaches, by their degrees of freedom."""
    return np.asarray(special.stdtrit(freedom, (1 + confidence) / 2))


@lru_cache(maxsize=32)
def _laplace(confidence: float) -> Array:
    """Quantiles of the absolute value of a normal plus a Laplace number with variance 1 together."""
    shares = np.linspace(0, 1, _GRID + 1)
    low, high = np.zeros(len(shares)), np.full(len(shares), 60.0)
    for _ in range(60):
        middle = (low + high) / 2
        inside = _within(middle, shares) >= confidence
        low, high = np.where(inside, low, middle), np.where(inside, middle, high)
    return high


def _within(reach: Array, shares: Array) -> Array:
    """The probability that the sum is within ``reach`` of 0."""
    s, b = np.sqrt(np.maximum(1 - shares, 1e-12)), np.sqrt(np.maximum(shares, 1e-12) / 2)
    z, r = reach / s, s / b
    # F(x) = Phi(z) - (exp(-x/b) Phi(z - r) - exp(x/b) Phi(-z - r)) exp(r^2 / 2) / 2, by logarithms.
    first = np.exp(np.minimum(r**2 / 2 - reach / b + special.log_ndtr(z - r), 50.0))
    second = np.exp(np.minimum(r**2 / 2 + reach / b + special.log_ndtr(-z - r), 50.0))
    return np.asarray(2 * (special.ndtr(z) - (first - second) / 2) - 1)


def quotient_ends(
    above: Array, below: Array, sampling: Curve, noise: tuple[Array, Array, Array], reach: Array
) -> tuple[Array, Array]:
    """Intervals of quotients Y / X, from the sampling variance of Y - t X and the noise variances of Y and X and their
    covariance. Ends are infinite where X may be 0.

    The values t with (Y - t X)^2 <= reach^2 (sampling at t + noise of Y - t X) are those between the roots of a
    quadratic. Where it has none (Y is further than its noise beyond all that is possible), the sampling variance is
    taken at the nearest possible value instead.
    """
    lower, upper, missing = _roots(above, below, sampling, noise, reach)
    if missing.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            nearest = np.nan_to_num(np.maximum(above / below, 0.0))
        flat = _roots(above, below, Curve.level(sampling.at(nearest)), noise, reach)
        lower, upper = np.where(missing, flat[0], lower), np.where(missing, flat[1], upper)
    return lower, upper


def _roots(
    above: Array, below: Array, sampling: Curve, noise: tuple[Array, Array, Array], reach: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    with np.errstate(divide="ignore", invalid="ignore"):
        square = below**2 - reach**2 * (noise[1] + sampling.square)
        middle = above * below - reach**2 * (noise[2] - sampling.slope / 2)
        constant = above**2 - reach**2 * (sampling.constant + noise[0])
        usable = (square > 0) & (below > 0)
        inner = middle**2 - square * constant
        root = np.sqrt(np.maximum(inner, 0.0))
        lower = np.where(usable, (middle - root) / square, -np.inf)
        upper = np.where(usable, (middle + root) / square, np.inf)
    return lower, upper, np.asarray(usable & (inner < 0))


@dataclass(frozen=True, eq=False)
class Sums:
    """What an answer is made of: a sum for each row, or two whose quotient it is, with noise and sampling errors."""

    above: Array
    noise: Array
    below: Array | None = None
    noise_below: Array | None = None
    noise_between: Array | None = None
    sampling: SamplingErrors | None = None
    remarks: tuple[str, ...] = ()

    def ends(self, confidence: float, law: str) -> Parts:
        """Values and intervals: what all that is known about the error of sampling leaves possible."""
        sampling = self.known_sampling
        flat = np.ones(len(self.above))
        below = flat if self.below is None else self.below
        noise_below = 0 * flat if self.noise_below is None else self.noise_below
        between = 0 * flat if self.noise_between is None else self.noise_between
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(below > 0, self.above / below, np.nan)
            noise = self.residual_noise
            variances = np.where(below > 0, (sampling.variances + noise) / below**2, np.inf)
        known: list[tuple[Curve, Array | None]] = [] if sampling.bound is None else [(sampling.bound, None)]
        if sampling.freedom is not None:
            known.append((sampling.curve(student(confidence, sampling.freedom)), sampling.freedom))
        lower, upper = np.full(len(flat), -np.inf), np.full(len(flat), np.inf)
        for curve, freedom in known or [(Curve.level(sampling.variances), None)]:
            reach = quantiles(confidence, _share(noise, curve.at(np.nan_to_num(values))), law, freedom)
            low, high = quotient_ends(self.above, below, curve, (self.noise, noise_below, between), reach)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
        return Parts(values, variances, np.fmin(lower, values), np.fmax(upper, values))

    @property
    def known_sampling(self) -> SamplingErrors:
        """The errors of sampling, once they were looked up."""
        assert self.sampling is not None
        return self.sampling

    @property
    def residual_noise(self) -> Array:
        """The noise variance of Y - R X, or of Y alone."""
        if self.below is None or self.noise_below is None or self.noise_between is None:
            return self.noise
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.where(self.below > 0, self.above / self.below, 0.0))
            return np.maximum(self.noise - 2 * ratio * self.noise_between + ratio**2 * self.noise_below, 0.0)

    @property
    def unmeasured(self) -> NDArray[np.bool_]:
        """Rows that no measured sum tells: their noise is infinite."""
        return np.isinf(self.noise) | np.isinf(0.0 if self.noise_below is None else self.noise_below)

    def by_source(self) -> dict[str, Array]:
        """The standard error of each answer by where it comes from."""
        noise = self.residual_noise
        with np.errstate(divide="ignore", invalid="ignore"):
            size = 1.0 if self.below is None else np.where(self.below > 0, self.below, np.nan)
            sampling = np.sqrt(self.known_sampling.variances) / size
            if self.known_sampling.source == "unknown":
                sampling = np.full(np.shape(noise), np.nan)
            return {"sampling_error": sampling, "noise_error": np.sqrt(noise) / size}


def _share(noise: Array, sampling: Array) -> Array:
    total = noise + sampling
    return np.divide(noise, total, out=np.ones_like(noise), where=(total > 0) & np.isfinite(total))


_SAME = 1e-12
"""Shares that differ by less are one: sums of weights in another order differ by as much."""


def cumulated_shares(counts: Array) -> Array:
    """Shares at or below the upper edge of each interval, never falling, for groups (rows) whose counts are not 0.

    >>> cumulated_shares(np.array([[1, 2, 0, 1], [4, -1, 1, 4]])).tolist()
    [[0.25, 0.75, 0.75, 1.0], [0.4375, 0.4375, 0.5, 1.0]]
    """
    cumulated = np.cumsum(counts, axis=1)
    shares = np.asarray(cumulated / cumulated[:, -1:])
    falling = (np.diff(shares, axis=1) < 0).any(axis=1) | (shares < 0).any(axis=1) | (shares > 1).any(axis=1)
    for row in np.flatnonzero(falling):
        shares[row, :-1] = np.clip(optimize.isotonic_regression(shares[row, :-1]).x, 0.0, 1.0)
    return shares


def grid_quantiles(edges: Array, shares: Array, probabilities: Array) -> Array:
    """The smallest value whose share is at least each probability; edges are one more than shares at or below them.

    >>> grid_quantiles(np.array([0, 10, 20]), np.array([1 / 3, 1]), np.array([0.25, 0.5])).tolist()
    [7.5, 12.5]
    """
    at_edges = np.concatenate([[0.0], shares])
    upper = np.searchsorted(at_edges, probabilities - _SAME, side="left").clip(0, len(shares))
    lower = np.maximum(upper - 1, 0)
    width = at_edges[upper] - at_edges[lower]
    part = np.divide(probabilities - at_edges[lower], width, out=np.zeros(len(width)), where=width > 0)
    return np.asarray(edges[lower] + part.clip(0, 1) * (edges[upper] - edges[lower]))


NOT_POSITIVE = f"{NO_ESTIMATE}: the count of the group is not above 0 after noise"
_WORDS: Mapping[str, str] = {
    "bounded": "the values whose shares are within the interval of the share; sampling errors are upper bounds",
    "unknown": "as far as noise goes: the values whose shares are within the noise of the share",
    NOT_POSITIVE: "noise left no count above 0 in the group, as it does where few records are; ask for coarser groups",
}


def quantile_answers(survey: MeasuredSurvey, wanted: PublishSection, where: Mapping[str, tuple[str, ...]]) -> Answers:
    """The quantiles of every group, a row for each group and probability."""
    plan, attribute = survey.plan, survey.plan.attribute(str(wanted.of))
    by, grid = wanted.cells, len(attribute.labels)
    family = survey.family(None)
    counts = family.estimates(by, where).reshape(-1, grid)
    edges = np.array([near(cut) for cut in attribute.cuts])
    probabilities = np.array([near(one) for one in wanted.probabilities])
    usable = counts.sum(axis=1) > 0
    values = np.full((len(counts), len(probabilities)), np.nan)
    shares = np.full(counts.shape, np.nan)
    if usable.any():
        shares[usable] = cumulated_shares(counts[usable])
        values[usable] = [grid_quantiles(edges, row, probabilities) for row in shares[usable]]
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
    labels = [(*label, written(p)) for label in plan.labels_of(wanted.by) for p in wanted.probabilities]
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
