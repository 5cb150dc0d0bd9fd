"""Release data under differential privacy with invariants, and say honestly what the guarantee means.

The road is always the same: plan, check, release, and then verify.

    import stirred

    plan = stirred.SwapPlan(unit="household", match=["state", "size"], swap=["county"], hold=["tenure"],
                            rate=0.05, chosen_from="public")
    print(stirred.check(plan, "households.csv"))
    stirred.release(plan, "households.csv", out="release/")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stirred.errors import StirredError
    from stirred.spec import Specification
    from stirred.swap.check import SwapCheck, check
    from stirred.swap.plan import LinkedTable, SwapPlan
    from stirred.swap.recipient import tabulate, verify
    from stirred.swap.release import SwapRelease, draw, release

__version__ = "0.1.0"

_HOMES = {
    "LinkedTable": "stirred.swap.plan",
    "Specification": "stirred.spec",
    "StirredError": "stirred.errors",
    "SwapCheck": "stirred.swap.check",
    "SwapPlan": "stirred.swap.plan",
    "SwapRelease": "stirred.swap.release",
    "check": "stirred.swap.check",
    "draw": "stirred.swap.release",
    "release": "stirred.swap.release",
    "tabulate": "stirred.swap.recipient",
    "verify": "stirred.swap.recipient",
}

__all__ = [
    "LinkedTable",
    "Specification",
    "StirredError",
    "SwapCheck",
    "SwapPlan",
    "SwapRelease",
    "check",
    "draw",
    "release",
    "tabulate",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Names are imported when first used, so that ``import stirred`` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'stirred' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
