"""Adjusts a table of weighted counts to totals that are public: post-stratification, raking, linear calibration.

Each cell is multiplied by a factor so that margins equal the public ones: one factor for each post-stratum; a product
of one factor for each margin (raking, Deming and Stephan 1940); or 1 + x'λ (linear calibration, the generalised
regression estimator, Deville and Särndal 1992). Keep in mind: a factor depends on the auxiliary variables alone, so a
table by these variables gives the factors of its records, and adjusting a table that was released with noise is
post-processing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stirred import errors

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
Margin = tuple[tuple[int, ...], Numbers]
"""Axes of a table, and public totals over all others: positive numbers, which add up to the same for every margin."""

TOLERANCE = 1e-10
"""By what part of its size a total may be missed."""
ROUNDS = 1000

_SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class AdjustedTable:
    """Factors of the cells of a table, and the table times its factors."""

    counts: Numbers
    """After adjustment."""
    factors: Numbers
    """Of every cell, also where the count is 0."""
    remark: str
    """What a reader of the table should know about cells below 0; empty if there were none."""


def post_stratify(counts: Numbers, margin: Margin) -> AdjustedTable:
    """Multiply the cells of a table so that its margin is the public one. Cells that noise made negative are kept.

    >>> post_stratify(np.array([[1.0, 3], [2, -1]]), ((0,), np.array([8, 6]))).counts.tolist()
    [[2.0, 6.0], [12.0, -6.0]]
    """
    return _adjusted(counts, counts, _raked(counts, [margin]), "kept")


def rake(counts: Numbers, margins: Sequence[Margin]) -> AdjustedTable:
    """Multiply the cells of a table by one factor for each margin, in turn, until all agree.

    Cells that noise made negative are set to 0: that raises the sum of small cells a little, but kept as they are
    raking need not converge. Cells of 0 stay 0: with many of them no factors may reach the totals, which is refused.
    Factors are products, so cells with the count 0 have one too; use it for other sums of the same cell.
    """
    used = np.maximum(counts, 0.0)
    done = "set to 0 before adjustment, which raises sums of small cells"
    return _adjusted(counts, used, _raked(used, margins), done)


def calibrate_linearly(counts: Numbers, margins: Sequence[Margin]) -> AdjustedTable:
    """Multiply the cells of a table by 1 + x'λ, x being 1 for the categories of the margins that a cell is in.

    Cells below 0 are kept: they can make factors large. Factors can be negative.
    """
    wanted = np.concatenate([np.ravel(totals) for _, totals in margins])
    factors = _linear(counts.ravel(), scipy.sparse.csr_array(categories(counts.shape, margins)), wanted)
    return _adjusted(counts, counts, factors, "kept")


def categories(shape: tuple[int, ...], margins: Sequence[Margin]) -> Numbers:
    """For every cell of a table (rows) which category of every margin (columns) it is in: 1 there, else 0."""
    return np.hstack([np.eye(totals.size)[_codes(shape, axes)] for axes, totals in margins])


def _adjusted(counts: Numbers, used: Numbers, factors: Numbers, done: str) -> AdjustedTable:
    factors = factors.reshape(counts.shape)
    below = int(np.count_nonzero(counts < 0))
    remark = f"{below:,} of {counts.size:,} cells were negative and were {done}." if below else ""
    return AdjustedTable(used * factors, factors, remark)


def _codes(shape: tuple[int, ...], axes: tuple[int, ...]) -> Codes:
    """The cell of a margin that each cell of the table belongs to, for the table as one column."""
    places = np.indices(shape, sparse=True)
    code: Any = 0
    for axis in axes:
        code = code * shape[axis] + places[axis]
    return np.broadcast_to(code, shape).ravel().astype(np.int64)


def _raked(table: Numbers, margins: Sequence[Margin]) -> Numbers:
    """Factors of cells, each a product of one factor for each margin."""
    counts = table.ravel()
    codes = [_codes(table.shape, axes) for axes, _ in margins]
    wanted = [totals.ravel() for _, totals in margins]
    own = [np.ones(len(total)) for total in wanted]
    factors = np.ones(len(counts))
    rounds, gap = 0, math.inf
    while rounds < ROUNDS and gap > TOLERANCE:
        for place, (code, total) in enumerate(zip(codes, wanted, strict=True)):
            own[place] = own[place] * _quotients(total, _sums(code, counts * factors, len(total)))
            factors = reduce(np.multiply, (factor[code] for factor, code in zip(own, codes, strict=True)))
        rounds += 1
        gap = max(
            float(np.max(np.abs(_sums(code, counts * factors, len(total)) - total) / total))
            for code, total in zip(codes, wanted, strict=True)
        )
    if gap > TOLERANCE:
        raise errors.calibration_not_reached(rounds, gap)
    return factors


def _sums(codes: Codes, values: Numbers, number: int) -> Numbers:
    return np.asarray(np.bincount(codes, values, minlength=number), dtype=np.float64)


def _quotients(wanted: Numbers, reached: Numbers) -> Numbers:
    """What to multiply by."""
    lacking = int(np.count_nonzero(reached <= 0))
    if lacking:
        raise errors.calibration_totals(
            f"{lacking:,} categories with a public total above 0 have no weight in the sample or table",
            "Join them to other categories",
        )
    return np.asarray(wanted / reached)


def _linear(counts: Numbers, variables: scipy.sparse.csr_array, wanted: Numbers) -> Numbers:
    """Factors 1 + x'λ, with λ by Newton's method: one step (two where rounding spoils it), and one to polish."""
    solution = np.zeros(variables.shape[1])
    factors = np.ones(len(counts))
    sizes = np.maximum(np.abs(wanted), np.abs(variables).T @ np.abs(counts))
    moments = (variables.T @ scipy.sparse.diags_array(counts) @ variables).toarray()
    inverse, gap = _inverse(moments), math.inf
    for step in itertools.count():
        polished = gap <= TOLERANCE
        solution = solution + inverse @ (wanted - variables.T @ (counts * factors))
        factors = np.asarray(1 + variables @ solution)
        gap = float(np.max(np.abs(wanted - variables.T @ (counts * factors)) / sizes))
        if step and gap > TOLERANCE:
            raise errors.calibration_totals(
                "No factors give these totals: the auxiliary variables depend on each other and their totals do not",
                "Correct the totals, or leave out variables that repeat others",
            )
        if polished:
            break
    return factors


def _inverse(moments: Numbers) -> Numbers:
    """Generalised inverse of a symmetric matrix whose rows may differ in size by much."""
    sizes = np.sqrt(np.abs(np.diagonal(moments)))
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = np.linalg.pinv(moments / np.outer(sizes, sizes), rcond=_SINGULAR, hermitian=True)
    return np.asarray(scaled / np.outer(sizes, sizes))
