"""Approximate differential privacy at every delta at once: the budget is epsilon as a function of delta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from stirred.loss import conversions
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, PowerCurve
from stirred.loss.curves.tradeoffs import profile_power_curve
from stirred.loss.worst_pairs import Approximate
from stirred.spec.kinds.approximate import APPROXIMATE
from stirred.spec.kinds.kind import Array, Kind, Number, Parameter, Rule
from stirred.spec.kinds.multiplicative import errors_of_pure

TOLERANCE = 1e-12


class ApproximateProfile(Kind):
    """(epsilon, delta)-DP at the deltas of a profile; these suffice, since loss and budget both fall with delta."""

    takes_off: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    both_ways: ClassVar[bool] = True
    disjoint_is_largest: ClassVar[bool] = True
    called: ClassVar[str] = "(epsilon, delta)-differential privacy"
    promise: ClassVar[str] = "no outcome becomes much likelier, but for outcomes of a small probability delta"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("approximate-profile", "approximate", lambda f, _, delta: f.epsilon(float(delta)), "section 2.4.6",
             "the curve at this delta"),
    )  # fmt: skip

    def takes_curve(self, curve: Curve) -> bool:
        """Whether a curve is the sort of budget that this kind takes."""
        return isinstance(curve, EpsilonProfile)

    def keeps_mirrored(self, chance: float, bound: Any, parameter: Parameter, slack: float) -> bool:
        """Whether the laws (p, 1 - p) and (1 - p, p) satisfy a bound, up to a factor for rounding."""
        return all(APPROXIMATE.keeps_mirrored(chance, epsilon, delta, slack) for delta, epsilon in bound.points)

    def loss_curve(self, rows: Array, distances: Array, deltas: Sequence[float]) -> EpsilonProfile:
        """The smallest curve that the rows of a mechanism satisfy, over pairs at a finite distance."""
        return _profile(deltas, [Approximate(delta).worst_pair(rows, distances).ratio for delta in deltas])

    def largest_curve(self, curves: Sequence[EpsilonProfile], deltas: Sequence[float]) -> EpsilonProfile:
        """The smallest curve above several of :meth:`loss_curve`."""
        epsilons = [[epsilon for _, epsilon in curve.points] for curve in curves]
        return _profile(deltas, np.max([[0.0] * len(deltas), *epsilons], axis=0))

    def within_curve(self, rows: Array, distances: Array, names: Sequence[str], curve: Any) -> tuple[bool, str]:
        """Whether the rows of a mechanism satisfy a curve, and which rows show it."""
        for delta, epsilon in curve.points:
            worst = Approximate(delta).worst_pair(rows, distances)
            if worst.ratio > epsilon * (1 + TOLERANCE) + TOLERANCE and worst.first is not None:
                said = f"'{names[worst.first]}' and '{names[worst.second or 0]}' need {worst.ratio:.6g}"
                return False, f"at delta = {delta:g} {said} where epsilon is {epsilon:.6g}"
        return True, "no pair of datasets exceeds epsilon at any delta of the profile"

    def tests_of_curve(self, curve: Any, distance: Number, scale: Number) -> PowerCurve:
        """The greatest power of tests under a budget that is a curve."""
        points = tuple((delta, epsilon * float(distance)) for delta, epsilon in curve.points)
        return profile_power_curve(EpsilonProfile(points))

    def tests_of_group(self, budget: Any, parameter: Parameter, scale: Number, steps: int) -> PowerCurve:
        """The greatest power of tests between datasets several neighbours apart."""
        points = (conversions.group_approximate(e * float(scale), delta, steps) for delta, e in budget.points)
        return profile_power_curve(_lowest(points))

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows."""
        return min((1 - float(delta)) * errors_of_pure(epsilon) for delta, epsilon in bound.points)


def _profile(deltas: Sequence[float], epsilons: Sequence[float] | Array) -> EpsilonProfile:
    # A larger delta never needs a larger epsilon; rounding may make it look so, by a digit.
    falling = np.maximum.accumulate(np.asarray(epsilons)[::-1])[::-1]
    return EpsilonProfile(tuple(zip(map(float, deltas), map(float, falling), strict=True)))


def _lowest(points: Iterable[tuple[float, float]]) -> EpsilonProfile:
    """Points (epsilon, delta) as a profile, without those that another point implies."""
    kept: list[tuple[float, float]] = []
    for delta, epsilon in sorted((delta, epsilon) for epsilon, delta in points):
        if not kept or epsilon < kept[-1][1]:
            kept.append((delta, epsilon))
    return EpsilonProfile(tuple(kept))


APPROXIMATE_PROFILE = ApproximateProfile(
    "approximate-profile", "D_Mult^.", "epsilon(delta)",
    "The approximate multiplicative premetric for every delta at once.",
    curve=True, separates=False,
)  # fmt: skip
