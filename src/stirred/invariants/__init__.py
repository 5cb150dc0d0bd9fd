"""Invariants, the counts that a mechanism keeps exactly: declares, counts, recounts and fingerprints them.

Also what they reveal by themselves, whatever the budget: records that they determine, bounds, beliefs of an attacker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.invariants.margin_beliefs import Belief, Beliefs, Posterior, believe, posterior
    from stirred.invariants.margins import Margin, fingerprint
    from stirred.invariants.revealing import Alike, Revealed, TwoMargins, alike, reveal
    from stirred.lab.definitions.invariant_values import Inequality, agree, digest, evaluate, recount

__all__ = [
    "Alike",
    "Belief",
    "Beliefs",
    "Inequality",
    "Margin",
    "Posterior",
    "Revealed",
    "TwoMargins",
    "agree",
    "alike",
    "believe",
    "digest",
    "evaluate",
    "fingerprint",
    "posterior",
    "recount",
    "reveal",
]

__getattr__, __dir__ = lazy(__name__)
