"""D_Mult^delta, the standard of approximate differential privacy: log ratios after delta is taken off."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.power_curves import PowerCurve, approximate_power
from stirred.loss.worst_pairs import Approximate as Measured
from stirred.loss.worst_pairs import Measure
from stirred.spec.exact import near
from stirred.spec.kinds.kind import Grouped, Kind, Noise, Number, Parameter, Rule
from stirred.spec.kinds.multiplicative import MULTIPLICATIVE, errors_of_pure, odds_words


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

    def measure(self, parameter: Parameter) -> Measure:
        """The divergence of finite distributions, and the search for a mechanism's worst pair."""
        return Measured(float(parameter or 0))

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
