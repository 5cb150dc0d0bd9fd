"""Density-ratio neighbourhoods: the probabilities near one, all odds within a factor e^r (section 5.8).

Keep in mind: the neighbourhood is the normalised interval of measures I(e^-r P, P), so that its
expectations are those of :class:`stirred.limits.MeasureInterval`, and it stays one under conditioning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._shown import brief
from stirred.limits.distances import density_ratio_distance, measure, one_probability
from stirred.limits.intervals import ROUNDING, MeasureInterval, corners, events, unlike
from stirred.loss.argument_checks import SUM_TOLERANCE, non_negative

Array = NDArray[np.float64]

LARGEST = 600.0
"""Of a finite radius at which extreme points can be listed."""


@brief
@dataclass(frozen=True, eq=False)
class DensityRatioNeighbourhood:
    """N_r(P), the probabilities Q with d_DR(P, Q) <= r: all odds within a factor e^r of those of P (section 5.8).

    An infinite radius leaves only the support, as in :meth:`MeasureInterval.around`: the limit of finite radii.

    >>> near = DensityRatioNeighbourhood([0.1, 0.9], 1)
    >>> near.lower_probability([1, 0]).round(6).tolist(), near.upper_probability([1, 0]).round(6).tolist()
    (0.03927, 0.231969)
    """

    centre: Array
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", one_probability("The centre", self.centre))
        object.__setattr__(self, "radius", non_negative("radius", self.radius))

    @property
    def interval(self) -> MeasureInterval:
        """The interval of measures whose members, normalised, are the members: I(e^-r P, P)."""
        return MeasureInterval(self.centre * math.exp(-self.radius), self.centre)

    def contains(self, q: ArrayLike) -> NDArray[np.bool_]:
        """Whether these are probabilities within the radius."""
        masses = measure("The probability", q)
        total = np.abs(masses.sum(axis=-1) - 1) <= SUM_TOLERANCE
        if math.isinf(self.radius):
            return np.asarray(total & np.all(masses[..., self.centre == 0] == 0, axis=-1))
        return np.asarray(total & (density_ratio_distance(self.centre, masses) <= self.radius + ROUNDING))

    def upper_expectation(self, function: ArrayLike) -> Array:
        """The largest expectation over the members, for each function on the last axis."""
        return self.interval.upper_expectation(function)

    def lower_expectation(self, function: ArrayLike) -> Array:
        """The smallest expectation over the members."""
        return self.interval.lower_expectation(function)

    def upper_probability(self, event: ArrayLike) -> Array:
        """p e^r / (p e^r + 1 - p), p the probability of the event under the centre."""
        return 1 - self.lower_probability(1 - events(event, len(self.centre)))

    def lower_probability(self, event: ArrayLike) -> Array:
        """p / (p + (1 - p) e^r)."""
        inside = events(event, len(self.centre))
        p, rest = inside @ self.centre, (1 - inside) @ self.centre
        least = p * math.exp(-self.radius)
        return np.asarray(np.where(rest == 0, 1.0, least / np.where(rest == 0, 1.0, least + rest)))

    def given(self, event: ArrayLike) -> DensityRatioNeighbourhood:
        """Conditional members are the neighbourhood, of the same radius, of the conditional centre."""
        inside = events(event, len(self.centre)) > 0
        mass = math.fsum(self.centre[inside]) if inside.ndim == 1 else 0.0
        if mass <= 0:
            raise errors.impossible_condition("The event")
        return DensityRatioNeighbourhood(np.where(inside, self.centre, 0.0) / mass, self.radius)

    def extreme_points(self) -> Array:
        """All extreme points, one in each row: P raised by e^r on some of its outcomes, not none and not all; for an
        infinite radius the point masses. For large finite ones what is not raised is too small for a float."""
        held = self.centre > 0
        if math.isinf(self.radius):
            return np.eye(len(self.centre))[held]
        if self.radius > LARGEST:
            raise errors.parameter_out_of_range(
                "radius", self.radius, f"infinite or at most {LARGEST:g} to list points"
            )
        raised = corners(len(self.centre))
        some = np.any(raised[:, held], axis=1) & ~np.all(raised[:, held], axis=1)
        if self.radius == 0 or not bool(np.any(some)):
            return self.centre[None, :].copy()
        points = self.centre * np.where(raised[some], 1.0, math.exp(-self.radius))
        return unlike(points / points.sum(axis=1, keepdims=True))
