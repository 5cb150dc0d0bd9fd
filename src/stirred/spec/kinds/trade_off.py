"""Tr, trade-off functions (f-DP): the greatest power of any test at every false-alarm probability.

They bound neighbours, that is datasets at distance 1; at distance 0 laws must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves.power_curves import Curve, GaussianCurve, PowerCurve, at_most, curve_above, curve_between
from stirred.loss.curves.tradeoffs import TradeOff, composed_power_curve
from stirred.spec.kinds.kind import Array, Composed, Grouped, Kind, Number, Parameter, Rule

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
