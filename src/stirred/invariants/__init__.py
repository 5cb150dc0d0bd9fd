"""Invariants, the counts that a mechanism keeps exactly: declares, counts, recounts and fingerprints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.invariants.margins import Margin, fingerprint
    from stirred.invariants.values import Inequality, agree, digest, evaluate, recount

__all__ = ["Inequality", "Margin", "agree", "digest", "evaluate", "fingerprint", "recount"]

__getattr__, __dir__ = lazy(
    __name__,
    by_module(
        {
            "stirred.invariants.margins": "Margin fingerprint",
            "stirred.invariants.values": "Inequality agree digest evaluate recount",
        }
    ),
)
