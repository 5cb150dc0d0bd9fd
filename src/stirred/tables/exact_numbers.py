"""Numbers of the data added up exactly: as whole numbers of a power of ten, so that the order of rows cannot matter.

A number is what its shortest decimal text says: 0.1 is one tenth and not the nearest binary fraction. Sums are then
whole numbers, the same on every machine, and a recipient who adds up again finds the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import withheld
from stirred.tables.columns import Column, plain_type

Whole = NDArray[Any]
"""Whole numbers: of 64 bits where sums of all of them fit, else of any size."""

_FITS = 1 << 62
_FIFTEEN_DIGITS = 10.0**15
_MOST_DECIMALS = 9
"""Digits after the point up to which floats are read all at once."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class ExactNumbers:
    """Numbers that are ``whole`` times ten to the power of minus ``scale``."""

    whole: Whole
    scale: int

    def floats(self) -> NDArray[np.float64]:
        """The nearest floating-point numbers."""
        if self.whole.dtype == object:
            return np.array([int(one) / 10**self.scale for one in self.whole], dtype=np.float64)
        return self.whole.astype(np.float64) / float(10**self.scale)

    def texts(self) -> list[str]:
        """The numbers in decimal, all with ``scale`` digits after the point."""
        if not self.scale:
            return [str(int(one)) for one in self.whole]
        unit = 10**self.scale
        return [
            f"{'-' if one < 0 else ''}{abs(one) // unit}.{abs(one) % unit:0{self.scale}d}"
            for one in (int(each) for each in self.whole)
        ]

    def added_up(self, ids: NDArray[np.integer], count: int) -> ExactNumbers:
        """Their sums by group: number i belongs to group ``ids[i]`` of ``count``."""
        sums: Whole = np.zeros(count, dtype=self.whole.dtype)
        if self.whole.dtype == object:
            np.add.at(sums, ids, self.whole)
        else:
            _add_up(ids, self.whole, sums)
        return ExactNumbers(sums, self.scale)


def ones(rows: int) -> ExactNumbers:
    """A one for every row: adding them up counts."""
    return ExactNumbers(np.ones(rows, dtype=np.int64), 0)


def row_numbers(columns: Sequence[Column], rows: int) -> ExactNumbers:
    """The product of some numeric columns in every row; one where there are none."""
    if not columns:
        return ones(rows)
    parts = [_values(column) for column in columns]
    scale = sum(each for _, each in parts)
    largest = prod(max((abs(one) for one in whole), default=0) for whole, _ in parts)
    kind = np.int64 if largest * max(rows, 1) < _FITS else object
    found: Whole = np.ones(rows, dtype=kind)
    for column, (whole, _) in zip(columns, parts, strict=True):
        found = found * np.array(whole, dtype=kind)[column.codes]
    return ExactNumbers(found, scale)


def require_numeric(column: Column) -> None:
    """Raise unless the column's values are numbers, none of them missing, that can be added up exactly."""
    _values(column)


def whole_array(column: Column) -> tuple[Whole, NDArray[np.bool_], int]:
    """The distinct values of a numeric column as whole numbers, which of them are null or NaN (0 there), and the scale.

    >>> whole_array(Column("w", np.zeros(2, np.uint8), pa.array([0.25, 10.0, None])))
    (array([  25, 1000,    0]), array([False, False,  True]), 2)
    """
    values = column.values
    if pa.types.is_signed_integer(column.type) or (pa.types.is_integer(column.type) and column.type.bit_width < 64):
        empty = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
        return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64), empty, 0
    if pa.types.is_float64(column.type):
        floats = np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        empty = ~np.isfinite(floats)  # nulls are NaN here
        found = _short_decimals(np.where(empty, 0.0, floats))
        if found is not None:
            return found[0], empty, found[1]
    if pa.types.is_decimal128(column.type) and column.type.scale >= 0:
        empty = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
        words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
        low, high = np.where(empty, 0, words[:, 0]), np.where(empty, 0, words[:, 1])
        if np.array_equal(high, low >> 63) and largest(low) < _FITS:  # 64 of 128 bits hold it
            return low, empty, column.type.scale
    known = values.is_valid()
    if pa.types.is_floating(column.type):
        known = pc.and_kleene(known, pc.is_finite(values)).fill_null(False)
    listed, scale = _values(Column(column.name, column.codes, values.filter(known)))
    empty = ~np.asarray(known.to_numpy(zero_copy_only=False), dtype=np.bool_)
    numbers: Whole = np.zeros(len(values), dtype=np.int64 if all(abs(one) < _FITS for one in listed) else object)
    numbers[~empty] = np.array(listed, dtype=numbers.dtype)
    return numbers, empty, scale


def largest(numbers: Whole) -> int:
    """The largest absolute value among whole numbers; 0 if there are none."""
    return max(-int(numbers.min(initial=0)), int(numbers.max(initial=0)))


def _short_decimals(floats: NDArray[np.float64]) -> tuple[NDArray[np.int64], int] | None:
    """Floats as whole numbers of the smallest power of ten that holds them all; None where that takes many digits.

    Decimal numbers of up to 15 digits have floats of their own. So one that is the nearest to a float when it is
    divided out is also what the float's shortest text says.
    """
    for scale in range(_MOST_DECIMALS + 1):
        unit = 10.0**scale
        with np.errstate(over="ignore"):
            whole = np.rint(floats * unit)
        if np.abs(whole).max(initial=0.0) >= _FIFTEEN_DIGITS:
            return None
        if np.array_equal(whole / unit, floats):
            return whole.astype(np.int64), scale
    return None


def _values(column: Column) -> tuple[list[int], int]:
    """The distinct values of a column as whole numbers, and their scale."""
    kind = plain_type(column.type)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise errors.added_up_text(column.name, "text" if pa.types.is_string(kind) else str(kind))
    values = column.values
    if values.null_count:
        raise errors.added_up_null(column.name)
    if pa.types.is_integer(kind):
        return values.to_pylist(), 0
    if pa.types.is_floating(kind):
        floats = values.to_numpy(zero_copy_only=False)
        if not np.all(np.isfinite(floats)):
            raise errors.added_up_null(column.name)
        # str() of a number of numpy is its shortest text, in its own precision
        written = [Decimal(str(one)).normalize() for one in floats]
    else:
        written = values.to_pylist()
    exponents = [_exponent(one) for one in written]
    scale = max(0, -min(exponents, default=0))
    if max((one.adjusted() for one in written if one), default=0) + scale >= 36:
        raise errors.PlanError(
            "added-up-digits",
            f"'{column.name}' is to be added up exactly or to be a weight, and needs more than 36 digits: from the "
            "first of its largest value to the last of its finest.",
            "Round the column in the file to the digits that matter.",
        )
    return [int(Fraction(one) * 10**scale) for one in written], scale


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent if number else 0


@kernel
def _add_up(ids, numbers, sums):  # type: ignore[no-untyped-def]
    for i in range(len(ids)):
        sums[ids[i]] += numbers[i]
