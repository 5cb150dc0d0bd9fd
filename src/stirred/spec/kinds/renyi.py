"""Renyi divergences of one order, and D_NoR, the standard of zero-concentrated differential privacy: of every order,
over the order."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.tradeoffs import RenyiCurve, ZcdpCurve
from stirred.spec.exact import display, near
from stirred.spec.kinds.kind import Kind, Noise, Number, Parameter, Rule
from stirred.spec.kinds.multiplicative import ORDERS, RESPONSE
from stirred.spec.kinds.trade_off import errors_of_gaussians

TAIL = "Canonne, Kamath and Steinke 2020, Proposition 12"


class Renyi(Kind):
    """D_alpha(P||Q): not symmetric, and finite for Gaussian noise."""

    finite_for_gaussians: ClassVar[bool] = True
    same_support: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    called: ClassVar[str] = "Renyi differential privacy"
    promise: ClassVar[str] = "outcomes do not become much likelier on the whole; rare ones may"
    registry_variant: ClassVar[str] = "Renyi DP"
    weaker: ClassVar[frozenset[str]] = frozenset({"approximate", "total-variation"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("renyi", "renyi", lambda e, order, wanted: e if wanted <= order else None, ORDERS,
             "a smaller order asks for less"),
        Rule("renyi", "approximate",
             lambda e, order, delta: conversions.renyi_to_approximate(order, e, delta) if delta > 0 else None,
             TAIL, "the tail of the loss", neighbours=True),
    )  # fmt: skip

    def check_parameter(self, parameter: Number) -> None:
        """Refuse a parameter outside its range."""
        if not parameter > 1:
            raise errors.bad_block("The order alpha of a Renyi divergence", "is above 1")

    def asks_less(self, parameter: Number, than: Number) -> bool:
        """Whether one parameter is a weaker standard than another."""
        return parameter < than

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return True

    def between_noise(self, noise: Noise, shift: float, parameter: Parameter) -> float | None:
        """The number between two laws of noise of one scale (Mironov 2017, Table II)."""
        order = _order(parameter)
        if math.isinf(order):
            return shift if noise == "laplace" else math.inf
        if noise == "normal":
            return order * shift**2 / 2
        # ln of (a e^((a-1) s) + (a-1) e^(-a s)) / (2a-1), over a-1, with the larger power taken out
        rest = math.log1p((order - 1) / order * math.exp(-(2 * order - 1) * shift))
        return shift + (math.log(order / (2 * order - 1)) + rest) / (order - 1)

    def tests(self, bound: Number, parameter: Parameter) -> RenyiCurve:
        """The greatest power of tests between laws within a bound."""
        return RenyiCurve(((_order(parameter), float(bound)),))


def _order(parameter: Parameter) -> float:
    assert parameter is not None, "an output premetric of this kind has its order"
    return float(parameter)


class NormalisedRenyi(Kind):
    """D_NoR: a metric whose square the budget rho bounds, attained by Gaussian laws of one variance."""

    budget_is_rho: ClassVar[bool] = True
    finite_for_gaussians: ClassVar[bool] = True
    same_support: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    moved_laws: ClassVar[str] = "Gaussian laws of one variance"
    sum_words: ClassVar[str] = "sums of rho"
    called: ClassVar[str] = "zero-concentrated differential privacy"
    promise: ClassVar[str] = "outcomes do not become much likelier on the whole; rare ones may"
    registry_variant: ClassVar[str] = "Zero-concentrated DP"
    weaker: ClassVar[frozenset[str]] = frozenset({"approximate", "renyi", "total-variation"})
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("normalised-renyi", "approximate",
             lambda rho, _, delta: conversions.zcdp_to_approximate(rho, delta, "tight") if delta > 0 else None,
             TAIL, "the best order", neighbours=True),
        Rule("normalised-renyi", "renyi", lambda rho, _, order: conversions.zcdp_to_renyi(rho, order),
             "Bun and Steinke 2016, Definition 1.1", "alpha times rho", neighbours=True),
        Rule("normalised-renyi", "total-variation", lambda rho, _, __: conversions.zcdp_to_total_variation(rho),
             RESPONSE, "that of the randomised response whose divergence of order 1 is rho", from_one=True),
        Rule("normalised-renyi", "total-variation", lambda rho, _, __: math.sqrt(rho / 2),
             "Pinsker's inequality", "the root of half of rho"),
    )  # fmt: skip

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return True

    def between_noise(self, noise: Noise, shift: float, parameter: Parameter) -> float | None:
        """The number between two laws of noise of one scale: for normal ones rho is shift^2 / 2, and this its root."""
        return shift / math.sqrt(2) if noise == "normal" else None

    def classical_epsilon(self, budget: Number, delta: Number) -> float:
        """Epsilon at a delta by the classical formula."""
        return conversions.zcdp_to_approximate(budget, delta, "classical")

    def tests(self, bound: Number, parameter: Parameter) -> ZcdpCurve:
        """The greatest power of tests between laws within a bound."""
        return ZcdpCurve(near(bound))

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of errors under Gaussian noise; other mechanisms of this rho may allow a smaller one."""
        return errors_of_gaussians(math.sqrt(2 * near(bound)))

    def allows_words(self, bound: Any) -> str:
        """What a very large bound allows, in words."""
        return f"Gaussian noise whose means are {display(math.sqrt(2 * near(bound)))} deviations apart"


RENYI = Renyi(
    "renyi", "D_alpha", "epsilon",
    "The Renyi divergence of order alpha.",
    parameter="alpha", composition="sum",
)  # fmt: skip

NORMALISED_RENYI = NormalisedRenyi(
    "normalised-renyi", "D_NoR", "rho",
    "The normalised Renyi metric: the largest root of a Renyi divergence over its order (D_NoR, the standard of "
    "zero-concentrated differential privacy). Its budget is rho, and bounds the square of the metric.",
    metric=True, composition="sum", power=2,
)  # fmt: skip
