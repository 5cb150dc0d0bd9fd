"""Estimates with standard errors and confidence intervals, in one format for all mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.estimates.answers import (
        Answers as Answers,
        Coefficients as Coefficients,
        Parts as Parts,
        difference as difference,
        odds_ratio as odds_ratio,
        ratio as ratio,
    )
    from stirred.estimates.error_laws import ErrorLaw as ErrorLaw, Term as Term
    from stirred.estimates.place_estimates import join_map as join_map
    from stirred.estimates.place_estimates import (
        Estimates as Estimates,
        MadeOf as MadeOf,
        Source as Source,
        estimate_rows as estimate_rows,
        kind_lines as kind_lines,
        source_rows as source_rows,
    )
    from stirred.estimates.table_fits import TableFit as TableFit, fit_table as fit_table

__getattr__, __dir__ = lazy(__name__)
