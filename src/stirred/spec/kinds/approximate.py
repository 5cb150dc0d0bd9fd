"""D_Mult^delta, the standard of approximate differential privacy: log ratios after delta is taken off.

At one delta the budget is epsilon; at every delta at once it is epsilon as a function of delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, PowerCurve, approximate_power
from stirred.loss.curves.tradeoffs import profile_power_curve
from stirred.spec.exact import near
from stirred.spec.kinds.kind import Array, Grouped, Kind, Noise, Number, Parameter, Rule
from stirred.spec.kinds.multiplicative import MULTIPLICATIVE, errors_of_pure, odds_words

TOLERANCE = 1e-12


class Approximate(Kind):
    """D_Mult^delta: symmetric, and not a metric, since deltas add up along a path."""

    takes_off: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    both_ways: ClassVar[bool] = True
    disjoint_is_largest: ClassVar[bool] = True
    called: ClassVar[str] = "(epsilon, delta)-differential privacy"
    promise: ClassVar[str] = "no outcome becomes much likelier, but for outcomes of a small probability delta"
    registry_variant: ClassVar[str] = "Approximate DP"
    weaker: ClassVar[frozenset[str]] = frozenset({"total-variation"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("approximate", "approximate", lambda e, delta, wanted: e if wanted >= delta else None, "section 2.4.5",
             "a larger delta takes away more"),
        Rule("approximate", "multiplicative", lambda e, delta, _: e if delta == 0 else None, "section 2.4.5",
             "delta is zero"),
        Rule("approximate", "total-variation", lambda e, delta, _: conversions.approximate_to_total_variation(e, delta),
             "Kairouz, Oh and Viswanath 2015", "the point of the region nearest to no protection", neighbours=True),
        Rule("approximate", "trade-off", lambda e, delta, _: approximate_power(float(e), float(delta)),
             "Wasserman and Zhou 2010", "the lines of the level-power region", neighbours=True),
    )  # fmt: skip

    def check_parameter(self, parameter: Number) -> None:
        """Refuse a parameter outside its range."""
        if not 0 <= parameter <= 1:
            raise errors.bad_block("delta", "is a probability, from 0 to 1")

    def simplified(self, parameter: Parameter) -> tuple[Kind, Parameter]:
        """Without delta it is D_Mult, which is known to be a metric."""
        return (MULTIPLICATIVE, None) if parameter == 0 else (self, parameter)

    def asks_less(self, parameter: Number, than: Number) -> bool:
        """Whether one parameter is a weaker standard than another."""
        return parameter > than

    def is_trivial(self, bound: Any, parameter: Parameter) -> bool:
        """Whether every two laws satisfy a bound."""
        return parameter == 1 or super().is_trivial(bound, parameter)

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return parameter != 1

    def separates_at(self, parameter: Parameter) -> bool:
        """Whether two laws without a common output break every finite bound."""
        return parameter != 1

    def between_noise(self, noise: Noise, shift: float, parameter: Parameter) -> float:
        """The number between two laws of noise of one scale: the epsilon at which delta is 1 - e^((epsilon - shift)/2),
        or that of Gaussian noise."""
        if parameter == 1:
            return 0.0
        if noise == "normal":
            return conversions.gaussian_epsilon(shift, float(parameter or 0))
        return max(0.0, shift + 2 * math.log1p(-float(parameter or 0)))

    def told(self, bound: Number, parameter: Parameter) -> Number | None:
        """The probability with which a mechanism within this bound may reveal the dataset outright."""
        return parameter

    def forbids_telling(self, chance: Number, bound: Number, parameter: Parameter) -> bool:
        """Whether revealing the dataset outright with this probability is known to break the bound."""
        return chance > (parameter or 0)

    def grouped(self, budget: Any, parameter: Parameter, size: int) -> Grouped | str:
        """The bound between datasets ``size`` neighbours apart, from the bound between neighbours."""
        epsilon, delta = conversions.group_approximate(budget, parameter or 0, size)
        if delta >= 1:
            return "delta grows beyond 1 on the way"
        return Grouped(epsilon, delta, f"epsilon is multiplied by {size} and delta becomes {float(delta):.3g}")

    def tests(self, bound: Number, parameter: Parameter) -> PowerCurve:
        """The greatest power of tests between laws within a bound."""
        return approximate_power(bound, parameter or 0)

    def tests_of_group(self, budget: Any, parameter: Parameter, scale: Number, steps: int) -> PowerCurve:
        """The greatest power of tests between datasets several neighbours apart."""
        return approximate_power(*conversions.group_approximate(budget * scale, parameter or 0, steps))

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows."""
        return (1 - float(parameter or 0)) * errors_of_pure(near(bound))

    def allows_words(self, bound: Any) -> str:
        """What a very large bound allows, in words."""
        return odds_words(bound)


APPROXIMATE = Approximate(
    "approximate", "D_Mult^delta", "epsilon",
    "The largest log ratio of the probabilities of any event after delta is taken off the larger one "
    "(D_Mult^delta, approximate differential privacy).",
    parameter="delta", separates=False, composition="sum-with-parameter",
)  # fmt: skip


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
        return _profile(deltas, [APPROXIMATE.measure(delta).worst_pair(rows, distances).ratio for delta in deltas])

    def largest_curve(self, curves: Sequence[EpsilonProfile], deltas: Sequence[float]) -> EpsilonProfile:
        """The smallest curve above several of :meth:`loss_curve`."""
        epsilons = [[epsilon for _, epsilon in curve.points] for curve in curves]
        return _profile(deltas, np.max([[0.0] * len(deltas), *epsilons], axis=0))

    def within_curve(self, rows: Array, distances: Array, names: Sequence[str], curve: Any) -> tuple[bool, str]:
        """Whether the rows of a mechanism satisfy a curve, and which rows show it."""
        for delta, epsilon in curve.points:
            worst = APPROXIMATE.measure(delta).worst_pair(rows, distances)
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
