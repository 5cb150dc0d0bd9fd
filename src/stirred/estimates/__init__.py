"""Estimates with standard errors and confidence intervals, in one format for all mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.estimates.answers import Answers, Coefficients, Parts, difference, odds_ratio, ratio
    from stirred.estimates.error_laws import ErrorLaw, Term
    from stirred.estimates.map_joins import join_map
    from stirred.estimates.place_estimates import Estimates, MadeOf, Source, estimate_rows, kind_lines, source_rows
    from stirred.estimates.table_fits import TableFit, fit_table

__all__ = [
    "Answers",
    "Coefficients",
    "ErrorLaw",
    "Estimates",
    "MadeOf",
    "Parts",
    "Source",
    "TableFit",
    "Term",
    "difference",
    "estimate_rows",
    "fit_table",
    "join_map",
    "kind_lines",
    "odds_ratio",
    "ratio",
    "source_rows",
]

__getattr__, __dir__ = lazy(__name__)
