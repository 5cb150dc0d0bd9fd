"""The Permutation Swapping Algorithm: plan, check, release, verify.

>>> from stirred import swap
>>> plan = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
>>> plan.rate
Fraction(1, 20)
"""

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.swap.checking import SwapCheck, check
    from stirred.swap.plan import Coarsening, LinkedTable, RateRule, SwapPlan
    from stirred.swap.releasing import SwapRelease, draw, release
    from stirred.swap.verifying import tabulate, verify

__all__ = [
    "Coarsening",
    "LinkedTable",
    "RateRule",
    "SwapCheck",
    "SwapPlan",
    "SwapRelease",
    "check",
    "draw",
    "release",
    "tabulate",
    "verify",
]

__getattr__, __dir__ = lazy(
    __name__,
    by_module(
        {
            "stirred.swap.checking": "SwapCheck check",
            "stirred.swap.plan": "Coarsening LinkedTable RateRule SwapPlan",
            "stirred.swap.releasing": "SwapRelease draw release",
            "stirred.swap.verifying": "tabulate verify",
        }
    ),
)
