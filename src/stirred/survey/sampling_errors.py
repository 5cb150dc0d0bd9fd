"""The error of sampling in an estimate: measured under the plan's budget, or bounded from public facts.

The linearised variance of a sum of residuals e = w r is at most f (Q - T^2 / n), where Q is the sum over primary units
of their squared totals, T the sum of all, n the number of selected primary units and f the largest n_h / (n_h - 1). A
primary unit of at most m records has a squared total of at most m times the sum of its squared residuals, and
w^2 <= W w for weights of at most W. So Q <= m W times a weighted sum of r^2, and that is bounded by what is released:
the count of a domain for r = 1, its count times (high - R)(R - low) for deviations of a variable in [low, high] from
its mean R.

The invariant a reader must know: a design standard error is never published without protection.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class SamplingErrors:
    """Variances of sampling, and where they come from."""

    variances: Array
    """Of totals, or of the sums of residuals of means, shares and ratios; 0 where nothing is known."""
    source: Source
    noise: float = 0.0
    """The variance of the noise in a measured standard error, in its own unit at most."""


@dataclass(frozen=True)
class DesignBound:
    """What bounds of sampling variances need: f, m, W and n."""

    factor: float
    largest_cluster: float
    largest_weight: float
    selected: float

    @classmethod
    def of(cls, plan: SurveyPlan) -> DesignBound | None:
        """The numbers of a plan; None where it does not state enough."""
        design = plan.design
        selected = [one.selected for one in design.sizes.values()] if design.strata else [design.selected]
        if any(one is None for one in selected) or (design.clusters is not None and design.largest_cluster is None):
            return None
        numbers = [float(one) for one in selected if one is not None]
        factor = max((one / (one - 1) for one in numbers if one > 1), default=1.0)
        return cls(factor, float(design.largest_cluster or 1), near(plan.stratum_weights()[1]), sum(numbers))

    def total(self, squares: Array, totals: Array) -> Array:
        """The bound for a total, from the weighted sum of r^2 and the total itself."""
        most = self.largest_cluster * self.largest_weight * np.maximum(squares, 0.0)
        return np.asarray(self.factor * np.maximum(most - totals**2 / self.selected, 0.0))

    def residuals(self, squares: Array) -> Array:
        """The bound for a sum of residuals, from their weighted sum of squares."""
        return np.asarray(self.factor * self.largest_cluster * self.largest_weight * np.maximum(squares, 0.0))


def degrees_of_freedom(plan: SurveyPlan) -> int | None:
    """Selected primary units less strata; None where the plan does not say how many are selected."""
    design = plan.design
    if design.strata is not None:
        return sum(one.selected - 1 for one in design.sizes.values())
    return None if design.selected is None else design.selected - 1


def measured_errors(survey: MeasuredSurvey, wanted: PublishSection) -> SamplingErrors | None:
    """Sampling variances from the measured standard errors of a table; None where none were measured.

    A standard error with noise of variance v is larger by v in the mean of its square. That is left in, and where noise
    made the standard error negative v alone is taken: intervals are then rather too wide than too narrow.
    """
    found = survey.errors.get(wanted.name)
    if found is None:
        return None
    unit = units(survey.plan, wanted, found.centres)
    noise = error_noise(survey.plan, wanted).variances * unit**2
    errors = np.maximum(found.multiples * unit, 0.0)
    return SamplingErrors(np.maximum(errors**2, noise), "measured", float(noise.max(initial=0.0)))
