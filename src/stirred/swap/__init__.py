"""The Permutation Swapping Algorithm: plan, check, release, verify.

from stirred import swap

plan = swap.SwapPlan(unit="household", match=["size"], swap=["county"], hold=["tenure"], rate=0.05)
print(swap.check(plan, "households.csv"))
swap.release(plan, "households.csv", out="release/")
"""

from stirred.swap.checking import SwapCheck, check
from stirred.swap.plan import LinkedTable, SwapPlan
from stirred.swap.recipient import tabulate, verify
from stirred.swap.releasing import SwapRelease, draw, release

__all__ = [
    "LinkedTable",
    "SwapCheck",
    "SwapPlan",
    "SwapRelease",
    "check",
    "draw",
    "release",
    "tabulate",
    "verify",
]
