"""The Permutation Swapping Algorithm: plan, check, release, verify.

>>> from stirred import swap
>>> plan = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
>>> plan.rate
Fraction(1, 20)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.swap.checking.plan_check import SwapCheck as SwapCheck, check as check
    from stirred.swap.drawing import SwapRelease as SwapRelease, draw as draw, release as release
    from stirred.swap.estimating.questions import SwappedRelease as SwappedRelease, estimate as estimate
    from stirred.swap.plan.fields import SwapPlan as SwapPlan
    from stirred.swap.plan.sections import (
        Coarsening as Coarsening,
        LinkedTable as LinkedTable,
        PublishedTable as PublishedTable,
        RateRule as RateRule,
        Round as Round,
    )
    from stirred.swap.verifying import tabulate as tabulate, verify as verify

__getattr__, __dir__ = lazy(__name__)
