"""D_Mult, the standard of pure differential privacy: the largest absolute log ratio of probabilities of any event."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

from stirred.loss import conversions
from stirred.loss.curves.power_curves import PowerCurve, pure_power
from stirred.spec.exact import bound, near
from stirred.spec.kinds.kind import Kind, Number, Parameter, Rule

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
