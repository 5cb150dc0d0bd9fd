"""Errors of tables over several draws, each with the error that comes from the number of draws.

For a cell c with the true count x_c and the released count z_cd of draw d, e_cd = z_cd - x_c. Over the cells of a
table, or of a part of it: the mean of |e|, the root of the mean of e^2, the mean of |e| / x where x > 0, the mean of e.
The *systematic* error is what remains when many draws are averaged: the root of the mean over cells of (E e_c)^2, whose
square is estimated without bias by [(sum_d e_cd)^2 - sum_d e_cd^2] / (D (D - 1)). Monte Carlo errors are standard
errors over the draws, that of the systematic error by leaving out one draw at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors

MOST_NUMBERS = 50_000_000
"""Cells times draws of one table that are kept in memory."""
COUNT = "_count"
BY_SIZE = "true count"
"""How the names of parts by the size of the true count begin."""
SIZES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, None))
"""Ranges of true counts for which errors are told apart."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated by simulation, and its standard error; nan where one draw tells neither."""

    value: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        shown = f"{self.value:.4g}"
        return shown if math.isnan(self.error) or self.error == 0 else f"{shown} ± {self.error:.1g}"


@dataclass(frozen=True)
class Errors:
    """The errors of some cells of a table."""

    cells: int
    mean_absolute: Estimate
    root_mean_square: Estimate
    relative: Estimate
    """Mean of |e| / x over cells that are not empty in truth."""
    mean: Estimate
    """Mean of e: above zero where released counts are too large."""
    systematic: Estimate
    """The part of the root mean square error that more draws would not average out."""

    @classmethod
    def measures(cls) -> list[str]:
        """The names of the measures, in order."""
        return [one.name for one in fields(cls) if one.name != "cells"]


@dataclass(frozen=True)
class Part:
    """Errors of a table as a whole, by the size of the true count, or by a place."""

    name: str
    errors: Errors


def errors_of(error: Floats, truth: Floats) -> Errors:
    """The errors of some cells: a row of ``error`` for each draw, a column for each cell."""
    draws, cells = error.shape
    absolute = np.abs(error)
    filled = truth > 0
    relative = absolute[:, filled] / truth[filled]
    squares = (error**2).mean(axis=1)
    root = math.sqrt(squares.mean())
    of_squares = over_draws(squares)
    return Errors(
        cells,
        over_draws(absolute.mean(axis=1)),
        Estimate(root, of_squares.error / (2 * root) if root else of_squares.error),
        over_draws(relative.mean(axis=1)) if filled.any() else Estimate(math.nan, math.nan),
        over_draws(error.mean(axis=1)),
        _systematic(error) if draws > 1 else Estimate(math.nan, math.nan),
    )


def parts_of(error: Floats, truth: Floats, place: NDArray[np.integer], places: Sequence[str]) -> Iterator[Part]:
    """A table as a whole, by ranges of true counts, and by place; ``place`` says where each cell is."""
    yield Part("all cells", errors_of(error, truth))
    for low, high in SIZES:
        inside = (truth >= low) & (truth <= (math.inf if high is None else high))
        if inside.any():
            yield Part(f"{BY_SIZE} {_range(low, high)}", errors_of(error[:, inside], truth[inside]))
    for number, name in enumerate(places):
        inside = place == number
        yield Part(name, errors_of(error[:, inside], truth[inside]))


def over_draws(by_draw: Floats) -> Estimate:
    """A mean over draws, and its standard error."""
    if np.ptp(by_draw) == 0:  # a mean of equal floats may differ from them in its last digit
        return Estimate(float(by_draw[0]), 0.0 if len(by_draw) > 1 else math.nan)
    return Estimate(float(by_draw.mean()), float(by_draw.std(ddof=1) / math.sqrt(len(by_draw))))


# -- counting ------------------------------------------------------------------------------------------------


def counted(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Counts of the rows of a frame by some columns, whose values are texts."""
    return frame.select(pl.col(*by).cast(pl.String)).group_by(list(by)).agg(pl.len().cast(pl.Int64).alias(COUNT))


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table: every place with every combination of the other columns that occurs anywhere."""

    index: pl.DataFrame
    truth: Floats
    place: NDArray[np.uint32]
    places: tuple[str, ...]
    """By the first column of the geography that the table has; empty where it has none."""

    @classmethod
    def of(
        cls,
        truth: pl.DataFrame,
        released: Sequence[pl.DataFrame],
        by: Sequence[str],
        geography: Sequence[str],
        listed: pl.DataFrame | None,
    ) -> Cells:
        """From the true counts, all released ones, and the list of places where there is one."""
        where = [name for name in geography if name in by]
        others = [name for name in by if name not in where]
        seen = [frame.select(by) for frame in (truth, *released)]
        places = [frame.select(where) for frame in seen]
        if listed is not None and where and set(where) <= set(listed.columns):
            places.append(listed.select(pl.col(*where).cast(pl.String)))
        index = pl.concat(places).unique() if where else None
        if others:
            kinds = pl.concat([frame.select(others) for frame in seen]).unique()
            index = kinds if index is None else index.join(kinds, how="cross")
        assert index is not None
        index = index.select(by).sort(by)
        if len(index) * max(1, len(released)) > MOST_NUMBERS:
            raise errors.study_too_large(", ".join(by), len(index) * len(released), MOST_NUMBERS)
        first = index[where[0]] if where else pl.Series(["all"] * len(index))
        names = first.unique().sort()
        place = first.replace_strict(names, np.arange(len(names)), return_dtype=pl.UInt32)
        return cls(index, _aligned(index, truth), place.to_numpy(), tuple(map(str, names)) if where else ())

    def error(self, released: pl.DataFrame) -> Floats:
        """Released minus true counts, cell by cell."""
        return _aligned(self.index, released) - self.truth


def _aligned(index: pl.DataFrame, counts: pl.DataFrame) -> Floats:
    joined = index.join(counts, on=index.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined[COUNT].fill_null(0).to_numpy().astype(np.float64)


# -- helpers -------------------------------------------------------------------------------------------------


def _systematic(error: Floats) -> Estimate:
    draws = len(error)
    sums, squares = error.sum(axis=0), (error**2).sum(axis=0)
    square = float(np.mean(sums**2 - squares)) / (draws * (draws - 1))
    root = math.sqrt(max(square, 0.0))
    if draws < 3:
        return Estimate(root, math.nan)
    without = np.array([np.mean((sums - one) ** 2 - (squares - one**2)) for one in error])
    without /= (draws - 1) * (draws - 2)
    spread = math.sqrt((draws - 1) / draws * float(np.sum((without - without.mean()) ** 2)))
    return Estimate(root, spread / (2 * root) if root else math.sqrt(spread))


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,} and more"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def to_fields(one: Errors) -> Mapping[str, float | None]:
    """Errors for JSON, each measure with its Monte Carlo error."""
    found: dict[str, float | None] = {"cells": one.cells}
    for name in Errors.measures():
        estimate: Estimate = getattr(one, name)
        found[name] = None if math.isnan(estimate.value) else estimate.value
        found[f"{name}_monte_carlo_error"] = None if math.isnan(estimate.error) else estimate.error
    return found
