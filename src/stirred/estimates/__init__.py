"""Unbiased estimates with standard errors and confidence intervals, in one format for all mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import by_module, lazy

if TYPE_CHECKING:
    from stirred.estimates.error_laws import ErrorLaw, Term
    from stirred.estimates.estimates import Estimates, Source, estimate_rows, kind_lines, source_rows

__all__ = ["ErrorLaw", "Estimates", "Source", "Term", "estimate_rows", "kind_lines", "source_rows"]

__getattr__, __dir__ = lazy(
    __name__,
    by_module(
        {
            "stirred.estimates.error_laws": "ErrorLaw Term",
            "stirred.estimates.estimates": "Estimates Source estimate_rows kind_lines source_rows",
        }
    ),
)
