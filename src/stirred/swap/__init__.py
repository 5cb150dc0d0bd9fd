"""The Permutation Swapping Algorithm: plan, check, release, verify.

>>> from stirred import swap
>>> plan = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
>>> plan.rate
Fraction(1, 20)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.swap.checking.plan_check import SwapCheck, check
    from stirred.swap.drawing import SwapRelease, draw, release
    from stirred.swap.estimating.questions import SwappedRelease, estimate
    from stirred.swap.plan.fields import SwapPlan
    from stirred.swap.plan.sections import Coarsening, LinkedTable, PublishedTable, RateRule, Round
    from stirred.swap.verifying import tabulate, verify

__all__ = [
    "Coarsening",
    "LinkedTable",
    "PublishedTable",
    "RateRule",
    "Round",
    "SwapCheck",
    "SwapPlan",
    "SwapRelease",
    "SwappedRelease",
    "check",
    "draw",
    "estimate",
    "release",
    "tabulate",
    "verify",
]

__getattr__, __dir__ = lazy(__name__)
