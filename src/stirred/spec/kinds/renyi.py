"""D_alpha, the Renyi divergence of one order."""

from __future__ import annotations

import math
from typing import ClassVar

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.tradeoffs import RenyiCurve
from stirred.loss.worst_pairs import Measure
from stirred.loss.worst_pairs import Renyi as Measured
from stirred.spec.kinds.kind import Kind, Noise, Number, Parameter, Rule
from stirred.spec.kinds.multiplicative import ORDERS

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

    def measure(self, parameter: Parameter) -> Measure:
        """The divergence of finite distributions, and the search for a mechanism's worst pair."""
        return Measured(_order(parameter))

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


RENYI = Renyi(
    "renyi", "D_alpha", "epsilon",
    "The Renyi divergence of order alpha.",
    parameter="alpha", composition="sum",
)  # fmt: skip
