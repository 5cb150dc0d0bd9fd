"""The Permutation Swapping Algorithm: plan, check, release, verify.

>>> from stirred import swap
>>> plan = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
>>> plan.rate
Fraction(1, 20)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.swap.checking import SwapCheck, check
    from stirred.swap.estimating import SwappedRelease, estimate
    from stirred.swap.plan import SwapPlan
    from stirred.swap.plan_sections import Coarsening, LinkedTable, PublishedTable, RateRule, Round
    from stirred.swap.releasing import SwapRelease, draw, release
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
