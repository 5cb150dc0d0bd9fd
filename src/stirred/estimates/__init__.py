"""Unbiased estimates with standard errors and confidence intervals, in one format for all mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.estimates.estimates import Estimates, Source, estimate_rows, source_rows

__all__ = ["Estimates", "Source", "estimate_rows", "source_rows"]

__getattr__, __dir__ = lazy(
    __name__, by_module({"stirred.estimates.estimates": "Estimates Source estimate_rows source_rows"})
)
