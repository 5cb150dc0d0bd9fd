"""Kinds of output premetrics that compare the probabilities of any event: D_Mult, D_Mult^delta, and total variation.

D_Mult is the standard of pure differential privacy: the largest absolute log ratio of probabilities. D_Mult^delta,
the standard of approximate differential privacy, takes delta off first; at one delta the budget is epsilon, at every
delta at once it is epsilon as a function of delta. d_TV is the largest difference of probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, PowerCurve, approximate_power, pure_power
from stirred.loss.curves.tradeoffs import profile_power_curve
from stirred.spec.exact import bound, near
from stirred.spec.kinds.kind import Array, Grouped, Kind, Noise, Number, Parameter, Rule

PURE_ZCDP = "Bun and Steinke 2016, Proposition 3.3"
ORDERS = "Renyi divergences grow with their order"
KAIROUZ = "Kairouz, Oh and Viswanath 2015"
RESPONSE = "randomised response is the worst case"


class Multiplicative(Kind):
    """D_Mult: a metric, infinite where one law gives an output that the other cannot give."""

    called: ClassVar[str] = "pure differential privacy"
    promise: ClassVar[str] = "no outcome whatever becomes likelier by more than a stated factor"
    pure: ClassVar[bool] = True
    same_support: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    moved_laws: ClassVar[str] = "a coin"
    registry_variant: ClassVar[str] = "Pure DP"
    weaker: ClassVar[frozenset[str]] = frozenset(
        {"approximate", "approximate-profile", "renyi", "normalised-renyi", "total-variation", "trade-off"}
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("multiplicative", "normalised-renyi", lambda e, _, __: _least_rho(e), KAIROUZ,
             "epsilon tanh(epsilon / 2), of randomised response, the worst case", from_one=True),
        Rule("multiplicative", "normalised-renyi", lambda e, _, __: e * e / 2, PURE_ZCDP, "half of epsilon squared"),
        Rule("multiplicative", "approximate", lambda e, _, __: e, "section 2.4.5", "delta only takes away"),
        Rule("multiplicative", "renyi", lambda e, _, order: conversions.pure_to_renyi(e, order), KAIROUZ,
             "the divergence of randomised response, the worst case", neighbours=True),
        Rule("multiplicative", "renyi", lambda e, _, __: e, ORDERS, "every order is at most the largest"),
        Rule("multiplicative", "total-variation", lambda e, _, __: conversions.pure_to_total_variation(e), RESPONSE,
             "the hyperbolic tangent of half of epsilon", from_one=True),
        Rule("multiplicative", "total-variation", lambda e, _, __: Fraction(e) / 2 if e < math.inf else e, RESPONSE,
             "at most half of epsilon"),
        Rule("multiplicative", "trade-off", lambda e, _, __: pure_power(float(e)), "Wasserman and Zhou 2010", RESPONSE,
             neighbours=True),
    )  # fmt: skip

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return True

    def coin(self, distance: Number) -> float:
        """The probability of heads of a coin that is moved by a distance along a line."""
        # With p = e^-f / 2 the log ratios of p are the differences of f, and those of 1 - p are smaller.
        return math.exp(-near(distance)) / 2

    def tests(self, bound: Number, parameter: Parameter) -> PowerCurve:
        """The greatest power of tests between laws within a bound."""
        return pure_power(bound)

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows."""
        return errors_of_pure(near(bound))

    def allows_words(self, bound: Any) -> str:
        """What a very large bound allows, in words."""
        return odds_words(bound)


def _least_rho(epsilon: Number) -> Number:
    """The rho of randomised response, rounded up; at most half of epsilon squared, which is exact."""
    return min(epsilon * epsilon / 2, conversions.pure_to_zcdp(epsilon))


def errors_of_pure(epsilon: float) -> float:
    """The smallest sum of the two errors of a test under epsilon: those of randomised response."""
    return 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))


def odds_words(epsilon: Number) -> str:
    """By how much an epsilon allows odds to change."""
    times = f"e^{bound(epsilon)}, about 10^{near(epsilon) / math.log(10):.1f}"
    return f"the odds to change by a factor of {times}"


MULTIPLICATIVE = Multiplicative(
    "multiplicative", "D_Mult", "epsilon",
    "The largest absolute log ratio of the probabilities of any event (D_Mult, the standard of pure differential "
    "privacy).",
    metric=True, composition="sum",
)  # fmt: skip


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


class TotalVariation(Kind):
    """d_TV: a metric that is 1 between laws without a common output, and never more."""

    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    largest: ClassVar[Number] = Fraction(1)
    disjoint_is_largest: ClassVar[bool] = True
    moved_laws: ClassVar[str] = "a coin"
    called: ClassVar[str] = "a bound on the total variation"
    promise: ClassVar[str] = "nothing becomes likelier by more than a stated probability"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("total-variation", "approximate", lambda t, _, delta: Fraction(0) if t <= delta else None,
             "Definition of total variation", "no event differs by more than delta", neighbours=True),
    )  # fmt: skip

    def is_trivial(self, bound: Any, parameter: Parameter) -> bool:
        """Whether every two laws satisfy a bound."""
        return bool(bound >= self.largest)

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return bound < self.largest

    def between_noise(self, noise: Noise, shift: float, parameter: Parameter) -> float:
        """The number between two laws of noise of one scale."""
        return -math.expm1(-shift / 2) if noise == "laplace" else math.erf(shift / math.sqrt(8))

    def coin(self, distance: Number) -> float:
        """The probability of heads of a coin that is moved by a distance along a line."""
        return float(distance)

    def told(self, bound: Number, parameter: Parameter) -> Number:
        """The probability with which a mechanism within this bound may reveal the dataset outright."""
        return min(bound, self.largest)

    def forbids_telling(self, chance: Number, bound: Number, parameter: Parameter) -> bool:
        """Whether revealing the dataset outright with this probability is known to break the bound."""
        return chance > bound

    def tests(self, bound: Number, parameter: Parameter) -> PowerCurve:
        """The greatest power of tests between laws within a bound."""
        return approximate_power(0, min(bound, self.largest))

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows."""
        return 1 - float(bound)


TOTAL_VARIATION = TotalVariation(
    "total-variation", "d_TV", "t",
    "The largest difference of the probabilities of any event.",
    metric=True, separates=False, composition="sum",
)  # fmt: skip
