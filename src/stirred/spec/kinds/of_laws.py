"""Kinds of output premetrics that compare whole laws: Renyi divergences, D_NoR, and trade-off functions.

D_NoR, the standard of zero-concentrated differential privacy, looks at Renyi divergences of every order, over the
order. Tr, the trade-off function of f-DP, is the greatest power of any test at every false-alarm probability; it
bounds neighbours, that is datasets at distance 1, and at distance 0 laws must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.power_curves import Curve, GaussianCurve, PowerCurve, at_most, curve_above, curve_between
from stirred.loss.curves.tradeoffs import RenyiCurve, TradeOff, ZcdpCurve, composed_power_curve
from stirred.spec.exact import display, near
from stirred.spec.kinds.kind import Array, Composed, Grouped, Kind, Noise, Number, Parameter, Rule
from stirred.spec.kinds.of_events import ORDERS, RESPONSE

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


NO_TEST = PowerCurve(((0, 0), (1, 1)))
CERTAINTY = PowerCurve(((0, 1), (1, 1)))


class TradeOffFunction(Kind):
    """Tr(P, Q): a curve for the ordered pair (P, Q), and the finest of all standards."""

    neighbours_only: ClassVar[bool] = True
    mirrored: ClassVar[bool] = True
    explained: ClassVar[bool] = True
    disjoint_is_largest: ClassVar[bool] = True
    called: ClassVar[str] = "a trade-off function"
    promise: ClassVar[str] = "a limit to what tests can notice, for each number of false alarms"
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("trade-off", "approximate", lambda f, _, delta: conversions.power_to_epsilon(f, delta),
             "Dong, Roth and Su 2022, Proposition 2.13", "the steepest line above the curve", neighbours=True),
        Rule("trade-off", "normalised-renyi",
             lambda f, _, __: conversions.gaussian_to_zcdp(f.mu) if isinstance(f, GaussianCurve) else None,
             "Bun and Steinke 2016, Proposition 1.6 and Blackwell's theorem (A.6.2)", "half of mu squared",
             neighbours=True),
    )  # fmt: skip

    def curve_at_most(self, first: Curve, second: Curve) -> bool:
        """Whether one budget lies nowhere above another, both being curves."""
        return at_most(first, second)

    def keeps_mirrored(self, chance: float, bound: Any, parameter: Parameter, slack: float) -> bool:
        """Whether the laws (p, 1 - p) and (1 - p, p) satisfy a bound, up to a factor for rounding."""
        return at_most(PowerCurve(((0, 0), (1 - chance, chance), (1, 1))) if chance < 1 else CERTAINTY, bound)

    def loss_curve(self, rows: Array, distances: Array, deltas: Sequence[float]) -> PowerCurve:
        """The smallest curve that the rows of a mechanism satisfy, over pairs at a finite distance."""
        _require_neighbours(distances)
        curves = [NO_TEST]
        for first, second in np.argwhere(np.isfinite(distances)):
            curve = curve_between(rows[first], rows[second])
            # No curve allows different laws at distance 0 but the one that allows everything.
            told = distances[first, second] == 0 and not at_most(curve, NO_TEST)
            curves.append(CERTAINTY if told else curve)
        return curve_above(curves)

    def largest_curve(self, curves: Sequence[PowerCurve], deltas: Sequence[float]) -> PowerCurve:
        """The smallest curve above several of :meth:`loss_curve`."""
        return curve_above([NO_TEST, *curves])

    def within_curve(self, rows: Array, distances: Array, names: Sequence[str], curve: Any) -> tuple[bool, str]:
        """Whether the rows of a mechanism satisfy a curve, and which rows show it."""
        _require_neighbours(distances)
        for first, second in np.argwhere(np.isfinite(distances)):
            if not at_most(curve_between(rows[first], rows[second]), curve if distances[first, second] else NO_TEST):
                said = f"'{names[first]}' and '{names[second]}'"
                return False, f"some test between {said} has more power than the curve allows"
        return True, "no test between two neighbours has more power than the curve allows"

    def grouped(self, budget: Any, parameter: Parameter, size: int) -> Grouped | None:
        """The bound between datasets ``size`` neighbours apart, from the bound between neighbours."""
        if not isinstance(budget, GaussianCurve):
            return None
        return Grouped(GaussianCurve(budget.mu * size), parameter, f"mu is multiplied by {size}")

    def composed_curves(self, curves: Sequence[Any]) -> Composed | None:
        """The budget of several releases whose budgets are curves."""
        if all(isinstance(curve, GaussianCurve) for curve in curves):
            mu = sum(curve.mu**2 for curve in curves) ** 0.5
            words = f"mu is the root of the sum of squares, {mu:g}"
            return Composed(GaussianCurve(mu), "Dong, Roth and Su 2022, Corollary 3.3", words)
        if all(isinstance(curve, PowerCurve) for curve in curves):
            words = "the curve of the pairs of laws that attain each, taken together"
            return Composed(composed_power_curve(curves), "Dong, Roth and Su 2022, Definition 3.1", words)
        return None

    def tests_of_curve(self, curve: Any, distance: Number, scale: Number) -> TradeOff | None:
        """The greatest power of tests under a budget that is a curve."""
        return curve if distance == scale else None

    def tests_of_group(self, budget: Any, parameter: Parameter, scale: Number, steps: int) -> TradeOff | None:
        """The greatest power of tests between datasets several neighbours apart."""
        return GaussianCurve(budget.mu * steps) if isinstance(budget, GaussianCurve) else None

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows."""
        if isinstance(bound, GaussianCurve):
            return errors_of_gaussians(bound.mu)
        return float(1 - max(power - level for level, power in bound.points))


def errors_of_gaussians(mu: float) -> float:
    """The smallest sum of the two errors of a test between Gaussian laws whose means are mu deviations apart."""
    return math.erfc(mu / math.sqrt(8))


def _require_neighbours(distances: Array) -> None:
    if np.any((distances != 0) & (distances != 1) & np.isfinite(distances)):
        raise errors.bad_block("A trade-off function", "bounds neighbours and nothing further: use distances 0 and 1")


TRADE_OFF = TradeOffFunction(
    "trade-off", "Tr", "f",
    "The greatest power of any test between the two laws, at every level (f-DP, in the power convention).",
    curve=True, separates=False,
)  # fmt: skip
