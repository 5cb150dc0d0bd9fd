"""Losses and budgets that are curves, on a finite domain: trade-off functions and profiles of epsilon (section 2.4.6).

How a curve is computed for the rows of a mechanism, and compared with a budget, is known to its kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.loss.curves.power_curves import Curve
from stirred.spec.finite_flavor import FiniteFlavor
from stirred.spec.specification import Answer, Step

Array = NDArray[np.float64]

DELTAS = (0.0, 1e-10, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Where a profile of epsilon is evaluated, unless told otherwise."""


def loss_curves(rows: Array, finite: FiniteFlavor, deltas: Sequence[float]) -> tuple[Curve, tuple[Curve, ...]]:
    """The smallest budget under a curve-valued output premetric: over all universes, and in each."""
    kind = finite.output.kind
    inside = [finite.compared & np.outer(mask, mask) for mask in finite.universes]
    curves = tuple(kind.loss_curve(rows, np.where(held, finite.distances, np.inf), deltas) for held in inside)
    return kind.largest_curve(curves, deltas), curves


def within_curve(rows: Array, finite: FiniteFlavor, budget: Any) -> Answer:
    """Whether every pair of every universe satisfies a budget that is a curve."""
    constrained = np.where(finite.compared, finite.distances, np.inf)
    kept, words = finite.output.kind.within_curve(rows, constrained, finite.names, budget)
    return answer("yes" if kept else "no", words)


def answer(verdict: str, words: str) -> Answer:
    """An answer that was found by enumeration, with its one step."""
    return Answer(verdict, (Step("enumeration", "Definition 2.4.5", words),))
