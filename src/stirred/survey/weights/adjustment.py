"""Checks columns of records before they are added up: lengths, codes, and numbers that are there.

A column is an array with one entry for each record. Categories arrive as codes 0, 1, ...; -1 stands for a record that
is in none of them where that is allowed. Errors name the column and count records, and never tell an entry.

Adjusts weights, or a table of weighted counts, to totals that are public: post-stratification, raking, calibration.

Each record's weight is multiplied by a factor so that weighted totals equal the public ones: one factor for each
post-stratum; a product of one factor for each margin (raking, Deming and Stephan 1940); or 1 + x'λ (linear calibration,
the generalised regression estimator, Deville and Särndal 1992), cut at bounds where they are given. Keep in mind: a
factor depends on the auxiliary variables alone, so a table by these variables gives the factors of its cells, and
adjusting a table that was released with noise is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


def checked_numbers(column: str, values: Any, records: int | None = None, *, negative: bool = True) -> Numbers:
    """A column of finite numbers; ``negative=False`` refuses those below 0."""
    array = _array(column, values, records)
    if array.dtype.kind not in "biuf":
        raise errors.survey_column(column, "are not numbers", "Give an array of numbers, one for each record")
    array = array.astype(np.float64, copy=False)
    missing = len(array) - int(np.count_nonzero(np.isfinite(array)))
    if missing:
        raise errors.survey_column(
            column,
            f"are missing or infinite in {missing:,} records",
            "Fill them in, or leave these records out of every domain (code -1) with the number 0",
        )
    if not negative and (below := int(np.count_nonzero(array < 0))):
        raise errors.survey_column(column, f"are negative in {below:,} records", "Give numbers from 0 on")
    return array


def checked_weights(values: Any, records: int | None = None, *, negative: bool = False) -> Numbers:
    """A column of weights: 0 is allowed (a record that stands for nobody), a negative number only on request."""
    return checked_numbers("weights", values, records, negative=negative)


def checked_codes(
    column: str, values: Any, number: int | None, records: int | None = None, *, outside: bool = False
) -> Codes:
    """A column of codes below ``number`` (``None``: as many as there are); ``outside`` allows -1, in no category."""
    array = _array(column, values, records)
    if array.dtype.kind not in "biu":
        raise errors.survey_column(column, "are not codes", "Give whole numbers from 0 on, one for each record")
    array = array.astype(np.int64, copy=False)
    if len(array) and int(array.min()) < (-1 if outside else 0):
        lowest = "-1 (in no category) or from 0 on" if outside else "from 0 on"
        raise errors.survey_column(column, "have a code that is negative", f"Give whole numbers {lowest}")
    if number is not None and (above := int(np.count_nonzero(array >= number))):
        raise errors.survey_column(
            column,
            f"have a code of {number:,} or more in {above:,} records",
            f"There are {number:,}: code them from 0 on",
        )
    return array


def number_of(column: str, values: Codes, given: int | None) -> int:
    """How many categories there are: as given, else one more than the largest code."""
    if given is None:
        return int(values.max(initial=-1)) + 1
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise errors.design_number(f"The number of {column}", errors.kind_of(given), "a whole number")
    return int(given)


def added(groups: NDArray[np.integer[Any]], values: Numbers, number: int) -> Numbers:
    """Sums of the values of each group."""
    return np.bincount(groups, values, minlength=number).astype(np.float64, copy=False)


def _array(column: str, values: Any, records: int | None) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise errors.survey_column(column, "are not a flat array", "Give one entry for each record")
    if records is not None and len(array) != records:
        raise errors.survey_column(
            column, f"have {len(array):,} entries, and there are {records:,} records", "Give one entry for each record"
        )
    return array


Negative = Literal["zero", "keep", "refuse"]
"""What is done with cells of a table that noise made negative: set to 0, kept as they are, or refused."""

TOLERANCE = 1e-10
"""By what part of its size a total may be missed."""
ROUNDS = 1000

_DISAGREE = 1e-9
"""By what part sums of margins may differ that are the same number."""
_SINGULAR = 1e-13


@withheld
@dataclass(frozen=True, eq=False)
class AdjustedWeights:
    """Weights of records after adjustment, with what the variance of their estimates needs."""

    weights: Numbers
    factors: Numbers
    base_weights: Numbers
    """Weights before."""
    auxiliary: scipy.sparse.csr_array
    """Auxiliary variables whose totals are kept (records by variables); 0 and 1 for categories."""
    rounds: int
    largest_gap: float
    """By what part of its size a total is missed at most."""
    converged: bool

    @cached_property
    def inverse(self) -> Numbers:
        """Inverse of the weighted sum of x x' before adjustment; generalised where variables repeat each other."""
        moments = (self.auxiliary.T @ scipy.sparse.diags_array(self.base_weights) @ self.auxiliary).toarray()
        return _inverse(moments)


@withheld
@dataclass(frozen=True, eq=False)
class AdjustedTable:
    """Factors of the cells of a table, and the table times its factors."""

    counts: Numbers
    """After adjustment."""
    factors: Numbers
    """Of every cell, also where the count is 0."""
    negative_cells: int
    """How many cells were below 0."""
    negative: Negative
    """What was done with them."""
    rounds: int
    largest_gap: float
    converged: bool

    @property
    def remark(self) -> str:
        """What a reader of the table should know about cells below 0; empty if there were none."""
        if not self.negative_cells:
            return ""
        done = "kept" if self.negative == "keep" else "set to 0 before adjustment, which raises sums of small cells"
        return f"{self.negative_cells:,} of {self.counts.size:,} cells were negative and were {done}."


# -- records -----------------------------------------------------------------------------------------------------


def post_stratify(weights: Any, post_strata: Any, totals: Any) -> AdjustedWeights:
    """Multiply the weights of each post-stratum (codes from 0 on) so that they add up to its public total.

    >>> post_stratify([1, 1, 2], [0, 0, 1], [30, 10]).weights.tolist()
    [15.0, 15.0, 10.0]
    """
    return rake(weights, [(post_strata, totals)])


def rake(
    weights: Any,
    margins: Sequence[tuple[Any, Any]],
    *,
    tolerance: float = TOLERANCE,
    most_rounds: int = ROUNDS,
    must_converge: bool = True,
) -> AdjustedWeights:
    """Multiply weights by one factor for each margin (codes of records, totals of codes), in turn, until all agree."""
    base = checked_weights(weights)
    wanted = [_wanted(totals, flat=True) for _, totals in _some(margins)]
    codes = [
        checked_codes(f"codes of margin {place}", given, len(total), len(base))
        for place, ((given, _), total) in enumerate(zip(margins, wanted, strict=True), 1)
    ]
    cells, own = _joint(codes, [len(total) for total in wanted])
    counts = added(own, base, len(cells))
    raked = _rake(counts, [cells[:, place] for place in range(len(codes))], wanted, tolerance, most_rounds)
    _require(raked, must_converge)
    factors = raked.factors[own]
    starts = np.cumsum([0] + [len(total) for total in wanted])
    positions = np.concatenate([code + start for code, start in zip(codes, starts[:-1], strict=True)])
    rows = np.tile(np.arange(len(base)), len(codes))
    dummies = scipy.sparse.csr_array((np.ones(len(positions)), (rows, positions)), shape=(len(base), int(starts[-1])))
    return AdjustedWeights(base * factors, factors, base, dummies, raked.rounds, raked.gap, raked.converged)


def calibrate(
    weights: Any,
    auxiliary: Any,
    totals: Any,
    *,
    bounds: tuple[float, float] | None = None,
    tolerance: float = TOLERANCE,
    most_rounds: int = ROUNDS,
    must_converge: bool = True,
) -> AdjustedWeights:
    """Multiply weights by 1 + x'λ so that totals of auxiliary variables x (records by variables) are the public ones.

    With ``bounds`` (lowest and highest factor, around 1), factors are cut at them. Without, they can be negative.
    """
    base = checked_weights(weights)
    variables = _variables(auxiliary, len(base))
    found = _calibrate(
        base, variables, _wanted(totals, variables.shape[1], negative=True), bounds, tolerance, most_rounds
    )
    _require(found, must_converge)
    return AdjustedWeights(
        base * found.factors, found.factors, base, variables, found.rounds, found.gap, found.converged
    )


# -- tables ------------------------------------------------------------------------------------------------------


def post_stratify_table(counts: Any, axes: Sequence[int], totals: Any, *, negative: Negative = "zero") -> AdjustedTable:
    """Multiply the cells of a table so that its margin over ``axes`` is the public one.

    >>> post_stratify_table([[1, 3], [2, -1]], [0], [8, 6]).counts.tolist()
    [[2.0, 6.0], [6.0, 0.0]]
    """
    return rake_table(counts, [(axes, totals)], negative=negative)


def rake_table(
    counts: Any,
    margins: Sequence[tuple[Sequence[int], Any]],
    *,
    negative: Negative = "zero",
    tolerance: float = TOLERANCE,
    most_rounds: int = ROUNDS,
    must_converge: bool = True,
) -> AdjustedTable:
    """Multiply the cells of a table by one factor for each margin (axes, public totals), in turn, until all agree.

    Cells that noise made negative are set to 0 unless ``negative`` says otherwise: that raises the sum of small cells a
    little. Kept as they are, they leave post-stratified sums free of that bias, but raking need not converge, and a
    margin that adds up to 0 or less is refused. Cells of 0 stay 0: with many of them no factors may reach the totals,
    which is refused as well (``must_converge``). Factors are products, so cells with the count 0 have one too; use it
    for other sums of the same cell.
    """
    table = _table(counts)
    wanted, codes = [], []
    for axes, totals in _some(margins):
        chosen = _axes(axes, table.ndim)
        shape = tuple(table.shape[axis] for axis in chosen)
        wanted.append(_wanted(totals, shape).ravel())
        codes.append(_codes_of_axes(table.shape, chosen))
    used, below = _cells(table, negative)
    raked = _rake(used.ravel(), codes, wanted, tolerance, most_rounds)
    _require(raked, must_converge)
    factors = raked.factors.reshape(table.shape)
    return AdjustedTable(used * factors, factors, below, negative, raked.rounds, raked.gap, raked.converged)


def calibrate_table(
    counts: Any,
    auxiliary: Any,
    totals: Any,
    *,
    bounds: tuple[float, float] | None = None,
    negative: Negative = "zero",
    tolerance: float = TOLERANCE,
    most_rounds: int = ROUNDS,
    must_converge: bool = True,
) -> AdjustedTable:
    """Multiply the cells of a table by 1 + x'λ so that totals of the auxiliary variables x are the public ones.

    The variables are the last axis of ``auxiliary``; the axes before it are those of the table. Cells below 0 are
    treated as in :func:`rake_table`; kept, they can make factors large.
    """
    table = _table(counts)
    given = np.asarray(auxiliary)
    if given.shape[:-1] != table.shape:
        raise errors.calibration_totals(
            "The auxiliary variables do not have the shape of the table and one axis more", "Give x for every cell"
        )
    variables = _variables(given.reshape(table.size, -1), table.size)
    used, below = _cells(table, negative)
    wanted = _wanted(totals, variables.shape[1], negative=True)
    found = _calibrate(used.ravel(), variables, wanted, bounds, tolerance, most_rounds)
    _require(found, must_converge)
    factors = found.factors.reshape(table.shape)
    return AdjustedTable(used * factors, factors, below, negative, found.rounds, found.gap, found.converged)


# -- raking ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Found:
    factors: Numbers
    rounds: int
    gap: float
    converged: bool


def _rake(
    counts: Numbers, codes: Sequence[Codes], wanted: Sequence[Numbers], tolerance: float, most_rounds: int
) -> _Found:
    """Factors of cells, each a product of one factor for each margin."""
    everything = [float(total.sum()) for total in wanted]
    if max(everything) - min(everything) > _DISAGREE * max(everything):
        raise errors.calibration_totals(
            "The margins add up to different totals", "Scale them to one total before they are given"
        )
    own = [np.ones(len(total)) for total in wanted]
    factors = np.ones(len(counts))
    rounds, gap = 0, math.inf
    while rounds < most_rounds and gap > tolerance:
        for place, (code, total) in enumerate(zip(codes, wanted, strict=True)):
            reached = added(code, counts * factors, len(total))
            own[place] = own[place] * _quotients(total, reached)
            factors = _product(own, codes)
        rounds += 1
        gap = max(_gap(counts * factors, code, total) for code, total in zip(codes, wanted, strict=True))
    return _Found(factors, rounds, gap, gap <= tolerance)


def _product(own: Sequence[Numbers], codes: Sequence[Codes]) -> Numbers:
    product = own[0][codes[0]]
    for factor, code in zip(own[1:], codes[1:], strict=True):
        product = product * factor[code]
    return product


def _quotients(wanted: Numbers, reached: Numbers) -> Numbers:
    """What to multiply by; 0 where nothing is wanted."""
    lacking = int(np.count_nonzero((wanted > 0) & (reached <= 0)))
    if lacking:
        raise errors.calibration_totals(
            f"{lacking:,} categories with a public total above 0 have no weight in the sample or table",
            "Join them to other categories",
        )
    return np.divide(wanted, reached, out=np.zeros(len(wanted)), where=wanted > 0)


def _gap(adjusted: Numbers, code: Codes, wanted: Numbers) -> float:
    reached = added(code, adjusted, len(wanted))
    return float(np.max(np.abs(reached - wanted) / np.where(wanted > 0, wanted, 1.0), initial=0.0))


def _joint(codes: Sequence[Codes], numbers: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Combinations of codes that occur (rows), and the combination of each record."""
    if len(codes) == 1:
        return np.arange(numbers[0])[:, None], codes[0]
    key = codes[0]
    for code, number in zip(codes[1:], numbers[1:], strict=True):
        key = np.unique(key, return_inverse=True)[1] * number + code
    _, first, own = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([code[first] for code in codes], axis=1), own


# -- linear calibration ------------------------------------------------------------------------------------------


def _calibrate(
    counts: Numbers,
    variables: scipy.sparse.csr_array,
    wanted: Numbers,
    bounds: tuple[float, float] | None,
    tolerance: float,
    most_rounds: int,
) -> _Found:
    """Factors 1 + x'λ, cut at the bounds, with λ by Newton's method: one step without bounds, and one to polish."""
    lowest, highest = _bounds(bounds)
    solution = np.zeros(variables.shape[1])
    factors = np.ones(len(counts))
    sizes = np.maximum(np.abs(wanted), np.abs(variables).T @ np.abs(counts))
    sizes = np.where(sizes > 0, sizes, 1.0)
    rounds, gap, polished = 0, math.inf, False
    while rounds < most_rounds and not polished:
        polished = gap <= tolerance
        free = (factors > lowest) & (factors < highest) if rounds else np.ones(len(counts), dtype=bool)
        moments = (variables.T @ scipy.sparse.diags_array(counts * free) @ variables).toarray()
        missing = wanted - variables.T @ (counts * factors)
        solution = solution + _inverse(moments) @ missing
        factors = np.clip(1 + variables @ solution, lowest, highest)
        rounds += 1
        gap = float(np.max(np.abs(wanted - variables.T @ (counts * factors)) / sizes, initial=0.0))
        if bounds is None and rounds > 1 and gap > tolerance:
            raise errors.calibration_totals(
                "No factors give these totals: the auxiliary variables depend on each other and their totals do not",
                "Correct the totals, or leave out variables that repeat others",
            )
    return _Found(factors, rounds, gap, gap <= tolerance)


def _bounds(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        lowest, highest = (float(one) for one in bounds)
    except (TypeError, ValueError):
        raise errors.design_choice("bounds", "are not two numbers", "Give the lowest and highest factor") from None
    if not lowest < 1 < highest:
        raise errors.design_choice("bounds", "do not lie around 1", "Give a lowest factor below 1 and a highest above")
    return lowest, highest


def _inverse(moments: Numbers) -> Numbers:
    """Generalised inverse of a symmetric matrix whose rows may differ in size by much."""
    sizes = np.sqrt(np.abs(np.diagonal(moments)))
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = np.linalg.pinv(moments / np.outer(sizes, sizes), rcond=_SINGULAR, hermitian=True)
    return np.asarray(scaled / np.outer(sizes, sizes))


# -- what is given -----------------------------------------------------------------------------------------------


def _require(found: _Found, must_converge: bool) -> None:
    if must_converge and not found.converged:
        raise errors.calibration_not_reached(found.rounds, found.gap)


def _some(margins: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
    if not isinstance(margins, list | tuple) or not margins or any(len(one) != 2 for one in margins):
        raise errors.calibration_totals("There are no margins", "Give pairs: what a margin is by, and its totals")
    return margins


def _wanted(
    totals: Any, shape: int | tuple[int, ...] | None = None, *, flat: bool = False, negative: bool = False
) -> Numbers:
    wanted = np.asarray(totals)
    if wanted.dtype.kind not in "biuf" or not np.isfinite(wanted).all() or (not negative and (wanted < 0).any()):
        raise errors.calibration_totals("A public total is missing, negative or not a number", "Give numbers from 0 on")
    shape = (shape,) if isinstance(shape, int) else shape
    if (flat and wanted.ndim != 1) or (shape is not None and wanted.shape != shape):
        raise errors.calibration_totals(
            "There is not one public total for each category or variable", "Give the totals in the order of the codes"
        )
    if not wanted.size or (not negative and not wanted.any()):
        raise errors.calibration_totals("The public totals are all 0", "Give totals of which one is above 0")
    return wanted.astype(np.float64)


def _variables(auxiliary: Any, rows: int) -> scipy.sparse.csr_array:
    if not scipy.sparse.issparse(auxiliary):
        given = np.asarray(auxiliary)
        if given.dtype.kind not in "biuf" or given.ndim != 2 or not np.isfinite(given).all():
            raise errors.survey_column(
                "auxiliary variables",
                "are not numbers by records and variables",
                "Give a matrix without missing numbers",
            )
        auxiliary = given.astype(np.float64)
    matrix = scipy.sparse.csr_array(auxiliary, dtype=np.float64)
    if matrix.shape[0] != rows:
        raise errors.survey_column(
            "auxiliary variables", f"have {matrix.shape[0]:,} rows, and {rows:,} are needed", "Give one row for each"
        )
    return matrix


def _table(counts: Any) -> Numbers:
    table = np.asarray(counts)
    if table.dtype.kind not in "biuf" or table.ndim == 0 or not table.size or not np.isfinite(table).all():
        raise errors.calibration_totals("The table is empty, or a cell is not a number", "Give a number for every cell")
    return table.astype(np.float64)


def _cells(table: Numbers, negative: Negative) -> tuple[Numbers, int]:
    if negative not in get_args(Negative):
        raise errors.design_choice("negative", "is not known", f"Choose {errors.listed(get_args(Negative), 'or')}")
    below = int(np.count_nonzero(table < 0))
    if below and negative == "refuse":
        raise errors.calibration_totals(
            f"{below:,} cells of the table are negative",
            'Set them to 0 (negative="zero") or keep them (negative="keep")',
        )
    return (np.maximum(table, 0.0) if negative == "zero" else table), below


def _axes(axes: Sequence[int], number: int) -> tuple[int, ...]:
    chosen = tuple(axes)
    if not chosen or len(set(chosen)) < len(chosen) or any(axis not in range(number) for axis in chosen):
        raise errors.calibration_totals(
            "A margin names an axis that the table does not have, or none, or one twice",
            f"Number the axes of the table from 0 to {number - 1}",
        )
    return chosen


def _codes_of_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> Codes:
    """The cell of a margin that each cell of the table belongs to, for the table as one column."""
    places = np.indices(shape, sparse=True)
    code: Any = 0
    for axis in axes:
        code = code * shape[axis] + places[axis]
    return np.broadcast_to(code, shape).ravel().astype(np.int64)
