"""Checks columns of records before they are added up: lengths, codes, and numbers that are there.

A column is an array with one entry for each record. Categories arrive as codes 0, 1, ...; -1 stands for a record that
is in none of them where that is allowed. Errors name the column and count records, and never tell an entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors

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
