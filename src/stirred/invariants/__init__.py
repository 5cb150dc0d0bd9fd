"""Invariants, the counts that a mechanism keeps exactly: declares, counts, recounts and fingerprints them.

Also what they reveal by themselves, whatever the budget: records that they determine, bounds, beliefs of an attacker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.invariants.margin_beliefs import (
        Belief as Belief,
        Beliefs as Beliefs,
        Posterior as Posterior,
        believe as believe,
        posterior as posterior,
    )
    from stirred.invariants.margins import Margin as Margin, fingerprint as fingerprint
    from stirred.invariants.revealing import (
        Alike as Alike,
        Revealed as Revealed,
        TwoMargins as TwoMargins,
        alike as alike,
        reveal as reveal,
    )


_MOVED = {
    "stirred.lab.definitions.invariant_values": "agree digest evaluate recount",
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
