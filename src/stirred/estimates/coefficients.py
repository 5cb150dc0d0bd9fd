"""Coefficients of a regression: a row for each, naive and corrected, with standard error, interval and attenuation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from stirred._shown import brief
from stirred.estimates.answers import Answers, Array


@brief
@dataclass(frozen=True, eq=False)
class Coefficients(Answers):
    """Coefficients of a regression; ``naive`` are those that the released rows give without correction."""

    attenuation: Array = field(default_factory=lambda: np.zeros(0))
    """The part of each predictor's association with the outcome that is left in the released rows, on average; ``nan``
    for the intercept."""

    def to_frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """One row for each coefficient; ``estimate`` is the corrected one."""
        return super().to_frame(confidence).with_columns(pl.Series("attenuation", self.attenuation))

    def rows(self, confidence: float = 0.95, most: int | None = None) -> list[tuple[str, ...]]:
        """A table to print: the head, then a line for each coefficient, at most ``most``."""
        lower, upper = self.interval(confidence)
        assert self.naive is not None
        interval = f"{100 * confidence:g}% interval"
        rows: list[tuple[str, ...]] = [
            (*self.by, "naive", "corrected", "std. error", interval, "attenuation", "kind")
        ]  # fmt: skip
        for at, label in enumerate(self.labels[:most]):
            digits = _digits(self.standard_errors[at], self.values[at])
            naive, value, error, low, high = (
                f"{part + 0:,.{digits}f}"
                for part in (self.naive[at], self.values[at], self.standard_errors[at], lower[at], upper[at])
            )
            left = self.attenuation[at]
            left_words = "" if math.isnan(left) else f"{left:.4f}"
            rows.append((*label, naive, value, error, f"{low} to {high}", left_words, self.kinds[at]))
        return rows


def _digits(error: float, value: float) -> int:
    """Decimals that show two digits of the error, or six of a number that has none."""
    shown = error if error > 0 else abs(value) / 10**4
    return 0 if shown <= 0 else min(max(2 - math.ceil(math.log10(shown)), 0), 12)
