"""Information loss of a table as statistical offices state it: distances between cells before and after a swap.

For a true cell x and a released cell z: the absolute distance |z - x|, the relative one |z - x| / |x|, and that of
square roots |sqrt z - sqrt x|. Means and quantiles are over the cells that are not zero in the true table; cells that
become zero are *false zeros*, and cells that are zero and become something else *false non-zeros*, counted apart with
what is in them. All are given for a whole table and for every value of each swapped column that it has.

After drawing, distances are those of the cells. Before it, they are expected distances:

* absolute: the normal approximation, times sqrt(pi v/2) e^-v (I0(v) + I1(v)), which makes it right for cells that
  seldom change (v is the variance in steps: what one exchange changes). The factor is that of a difference of two
  Poisson counts, which is the law of a rarely changed cell. Exact where the cell can only grow, or only shrink;
* square roots: the *three-point approximation*: the cell stays, or goes up or down by s, such that E(z - x),
  E|z - x| and E(z - x)^2 are as above. Exact if one record at most comes or goes and the others are right;
* zeros: the approximation by independent moves (:mod:`stirred.swap.vanishing`).

Quantiles before drawing are quantiles over cells of their expected distance, and thus closer together than those after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred._shown import withheld
from stirred.swap.expectation import ExpectedTable, Places
from stirred.swap.moments import expected_absolute_error

special = later("scipy.special")

Floats = NDArray[np.float64]

PERCENTS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
"""The quantiles that are given; 50 is the median, 100 the largest."""
DISTANCES = ("absolute", "relative", "root")


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LossBy:
    """Measures of a table for each value of a swapped column; ``variable`` is "" for the whole table. Confidential."""

    variable: str
    values: tuple[str | None, ...]
    measures: Mapping[str, Floats]
    """By name of the measure, a number for each value; nan where it is not defined or not forecast."""

    def fields(self, row: int) -> dict[str, float | None]:
        """The measures of one value, None for those that are not known."""
        return {name: None if np.isnan(part[row]) else float(part[row]) for name, part in self.measures.items()}


def expected_loss(table: ExpectedTable) -> tuple[LossBy, ...]:
    """The measures that are expected of a table before anything is drawn: as a whole, then by swapped columns."""
    bias, facts = table.mean - table.true, table.facts
    absolute = absolute_distance(bias, table.variance, facts.step, facts.one_way)
    # A sum of numbers of both signs may have a square root before and none after.
    root = np.full(len(bias), np.nan)
    if not facts.signed:
        root = root_distance(table.true.astype(np.float64), bias, absolute, bias**2 + table.variance)
    empty = np.full(len(bias), np.nan) if facts.empty is None else facts.empty
    return _by_places(table.true.astype(np.float64), absolute, root, empty, table.places)


def loss_of(true: Floats, released: Floats, places: Sequence[Places]) -> tuple[LossBy, ...]:
    """The measures of a table after drawing: as a whole, then by swapped columns."""
    negative = bool(np.any(true < 0) or np.any(released < 0))
    root = np.full(len(true), np.nan) if negative else np.abs(np.sqrt(released) - np.sqrt(true))
    empty = (released == 0).astype(np.float64)
    return _by_places(true, np.abs(released - true), root, empty, places)


def absolute_distance(bias: Floats, variance: Floats, step: Floats, one_way: NDArray[np.bool_]) -> Floats:
    """The expected absolute distance of cells, from the mean error and the variance (an approximation).

    >>> seldom = absolute_distance(np.zeros(1), np.array([0.01]), np.ones(1), np.array([False]))
    >>> float(seldom[0].round(4))  # a hundredth of the cells changes, by one; plainly normal would be 0.0798
    0.01
    """
    v = variance / step**2
    seldom = np.sqrt(np.pi * v / 2) * (special.ive(0, v) + special.ive(1, v))
    size = np.abs(bias)
    found = np.maximum(expected_absolute_error(bias, variance) * np.minimum(seldom, 1.0), size)
    return np.where(one_way, size, np.minimum(found, np.sqrt(bias**2 + variance)))


def root_distance(true: Floats, bias: Floats, absolute: Floats, squared: Floats) -> Floats:
    """The expected distance of square roots by the three-point approximation.

    ``absolute`` and ``squared`` are the expected absolute and squared distances. With s their quotient, the cell goes
    up by s with probability (absolute + bias) / 2s and down by s with (absolute - bias) / 2s.
    """
    step = _quotient(squared, absolute, 0.0)
    up, down = (_quotient(absolute + sign * bias, 2 * step, 0.0) for sign in (1, -1))
    before = np.sqrt(true)
    found: Floats = up * (np.sqrt(true + step) - before) + down * (before - np.sqrt(np.maximum(true - step, 0.0)))
    return found


def _by_places(
    true: Floats, absolute: Floats, root: Floats, empty: Floats, places: Sequence[Places]
) -> tuple[LossBy, ...]:
    whole = Places("", ("",), np.zeros(len(true), dtype=np.uint8))
    return tuple(
        LossBy(one.variable, one.values, _measures(true, absolute, root, empty, one.codes, len(one.values)))
        for one in (whole, *places)
    )


def _measures(
    true: Floats, absolute: Floats, root: Floats, empty: Floats, ids: NDArray[np.unsignedinteger], count: int
) -> dict[str, Floats]:
    filled = true != 0

    def added(part: Floats, among: NDArray[np.bool_]) -> Floats:
        return np.bincount(ids[among], weights=part[among], minlength=count).astype(np.float64)

    cells = added(np.ones(len(true)), filled)
    wrong = added(1 - empty, ~filled)
    found = {
        "cells": cells,
        "false_zeros": added(empty, filled),
        "false_nonzeros": wrong,
        "in_false_nonzeros": added(absolute, ~filled),
    }
    inside = np.flatnonzero(filled)
    relative = absolute[inside] / np.abs(true[inside])
    for name, distance in zip(DISTANCES, (absolute[inside], relative, root[inside]), strict=True):
        total = np.bincount(ids[inside], weights=distance, minlength=count)
        found[f"{name}_mean"] = _quotient(total.astype(np.float64), cells)
        found |= {
            f"{name}_{percent}%": part
            for percent, part in zip(PERCENTS, _quantiles(distance, ids[inside], cells), strict=True)
        }
    for name, distance in (("absolute", absolute), ("root", root)):
        everywhere = added(distance, filled) + added(distance, ~filled)
        found[f"{name}_mean_with_false_nonzeros"] = _quotient(everywhere, cells + wrong)
    return found


def _quotient(total: Floats, many: Floats, otherwise: float = np.nan) -> Floats:
    found: Floats = np.divide(total, many, out=np.full(len(many), otherwise), where=many != 0)
    return found


def _quantiles(distance: Floats, ids: NDArray[np.unsignedinteger], cells: Floats) -> list[Floats]:
    """By group: the smallest distance that so many percent of its cells do not exceed."""
    ordered = distance[np.lexsort([distance, ids])]
    many = cells.astype(np.int64)
    start = np.cumsum(many) - many
    found = []
    for percent in PERCENTS:
        rank = np.maximum(-(-many * percent // 100), 1) - 1
        at = np.minimum(start + rank, max(len(ordered) - 1, 0))
        found.append(np.where(many > 0, ordered[at], np.nan) if len(ordered) else np.full(len(many), np.nan))
    return found
