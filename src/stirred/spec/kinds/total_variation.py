"""d_TV, total variation: the largest difference of the probabilities of any event."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

from stirred.loss.curves.power_curves import PowerCurve, approximate_power
from stirred.spec.kinds.kind import Kind, Noise, Number, Parameter, Rule


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
