"""Losses and budgets that are curves, on a finite domain: trade-off functions and profiles of epsilon (section 2.4.6).

Trade-off functions bound neighbours, that is datasets at distance 1; at distance 0 laws must be equal. A profile bounds
D_Mult^delta by epsilon(delta) times the distance at every delta of its points, which is enough: both fall with delta.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.loss import divergences
from stirred.loss.curves import Curve, EpsilonProfile, PowerCurve, at_most
from stirred.loss.pairs import worst_pair
from stirred.spec.finite_flavor import FiniteFlavor
from stirred.spec.specification import Answer, Step

Array = NDArray[np.float64]

DELTAS = (0.0, 1e-10, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Where a profile of epsilon is evaluated, unless told otherwise."""

TOLERANCE = 1e-12
NO_TEST = PowerCurve(((0, 0), (1, 1)))
CERTAINTY = PowerCurve(((0, 1), (1, 1)))


def loss_curves(rows: Array, finite: FiniteFlavor, deltas: Sequence[float]) -> tuple[Curve, tuple[Curve, ...]]:
    """The smallest budget under a curve-valued output premetric: over all universes, and in each."""
    if finite.output.name == "trade-off":
        powers = tuple(_power_loss(rows, finite, mask) for mask in finite.universes)
        return _least_above([NO_TEST, *powers]), powers
    profiles = tuple(_profile_loss(rows, finite, mask, deltas) for mask in finite.universes)
    epsilons = [[epsilon for _, epsilon in one.points] for one in profiles]
    return _profile(deltas, np.max([[0.0] * len(deltas), *epsilons], axis=0)), profiles


def within_curve(rows: Array, finite: FiniteFlavor, budget: Curve) -> Answer:
    """Whether every pair of every universe keeps to a budget that is a curve."""
    constrained = np.where(finite.compared, finite.distances, np.inf)
    if isinstance(budget, EpsilonProfile):
        for delta, epsilon in budget.points:
            worst = worst_pair(rows, constrained, "approximate", delta)
            if worst.ratio > epsilon * (1 + TOLERANCE) + TOLERANCE and worst.first is not None:
                said = f"'{finite.names[worst.first]}' and '{finite.names[worst.second or 0]}' need {worst.ratio:.6g}"
                return answer("no", f"at delta = {delta:g} {said} where epsilon is {epsilon:.6g}")
        return answer("yes", "no pair of datasets exceeds epsilon at any delta of the profile")
    _require_neighbours(finite)
    for first, second in np.argwhere(finite.compared):
        if not at_most(_power(rows, first, second), budget if finite.distances[first, second] else NO_TEST):
            said = f"'{finite.names[first]}' and '{finite.names[second]}'"
            return answer("no", f"some test between {said} has more power than the curve allows")
    return answer("yes", "no test between two neighbours has more power than the curve allows")


def answer(verdict: str, words: str) -> Answer:
    return Answer(verdict, (Step("enumeration", "Definition 2.4.5", words),))


def _power_loss(rows: Array, finite: FiniteFlavor, mask: NDArray[np.bool_]) -> PowerCurve:
    _require_neighbours(finite)
    curves = [NO_TEST]
    for first, second in np.argwhere(finite.compared & np.outer(mask, mask)):
        curve = _power(rows, first, second)
        # No curve allows different laws at distance 0 but the one that allows everything.
        told = finite.distances[first, second] == 0 and not at_most(curve, NO_TEST)
        curves.append(CERTAINTY if told else curve)
    return _least_above(curves)


def _profile_loss(
    rows: Array, finite: FiniteFlavor, mask: NDArray[np.bool_], deltas: Sequence[float]
) -> EpsilonProfile:
    constrained = np.where(finite.compared & np.outer(mask, mask), finite.distances, np.inf)
    return _profile(deltas, [worst_pair(rows, constrained, "approximate", delta).ratio for delta in deltas])


def _profile(deltas: Sequence[float], epsilons: Sequence[float] | Array) -> EpsilonProfile:
    # A larger delta never needs a larger epsilon; rounding may make it look so, by a digit.
    falling = np.maximum.accumulate(np.asarray(epsilons)[::-1])[::-1]
    return EpsilonProfile(tuple(zip(map(float, deltas), map(float, falling), strict=True)))


def _power(rows: Array, first: int, second: int) -> PowerCurve:
    vertices = divergences.power_curve(rows[first], rows[second])
    # Probabilities that vanish beside others make no step.
    return PowerCurve(tuple(dict(map(tuple, vertices.tolist())).items()))


def _least_above(curves: Sequence[PowerCurve]) -> PowerCurve:
    """The smallest power curve that lies above all: the concave hull of their vertices."""
    hull: list[tuple[float, float]] = []
    for level, power in sorted({point for curve in curves for point in curve.points}):
        while hull and (hull[-1][0] == level or (len(hull) > 1 and _below(hull[-2], hull[-1], (level, power)))):
            hull.pop()
        hull.append((level, power))
    return PowerCurve(tuple(hull))


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b lies on or below the line from a to c."""
    return (b[1] - a[1]) * (c[0] - a[0]) <= (c[1] - a[1]) * (b[0] - a[0])


def _require_neighbours(finite: FiniteFlavor) -> None:
    if np.any((finite.distances != 0) & (finite.distances != 1) & finite.compared):
        raise errors.bad_block("A trade-off function", "bounds neighbours and nothing further: use distances 0 and 1")
