"""The error of sampling in an estimate: measured under the plan's budget, or bounded from public facts.

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

The invariant a reader must know: a design standard error is never published without protection.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred.spec.exact import near
from stirred.survey.combining import MeasuredSurvey
from stirred.survey.design_errors import error_noise, units
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection

Array = NDArray[np.float64]
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
        sizes = [(design.selected, design.population)] if design.strata is None else []
        sizes += [(design.sizes[str(one)].selected, design.sizes[str(one)].population) for one in strata if one]
        if any(selected is None for selected, _ in sizes):
            return None
        numbers = [int(selected or 0) for selected, _ in sizes]
        factors = [
            (1 - n / (N or inf)) * n / (n - 1) if n > 1 else 0.0 for n, (_, N) in zip(numbers, sizes, strict=True)
        ]
        largest = max(factor * weight for factor, weight in zip(factors, weights, strict=True))
        return cls(within * largest, min(factors) / sum(numbers))

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
    design = plan.design
    if design.selection == "independent":
        return None
    if design.strata is not None:
        return sum(one.selected - 1 for one in design.sizes.values())
    return None if design.selected is None else design.selected - 1


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
