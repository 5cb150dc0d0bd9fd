"""Parameters of laws as exact numbers: one fraction, or one for each row.

A float means its shortest decimal (0.05 is 1/20, not the binary number beside it). Rows are either a pair of integer
arrays (numerators, denominators), which are never turned into Python objects, or any sequence of numbers, which is kept
as its distinct fractions and a code for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.noise.fixed_point import mantissa_of, quotient_of

Number = Fraction | int | float | Decimal | str
"""What is taken for an exact number."""

Numbers = Sequence[Number] | NDArray[Any] | tuple[NDArray[np.integer], NDArray[np.integer]]
"""One exact number for each row."""

_SLOTS = 512
FEW = 64
"""Different numbers that :meth:`PairRows.grouped` looks for."""


def exact_number(value: Any, what: str) -> Fraction:
    """A finite fraction.

    >>> exact_number(0.05, "The rate"), exact_number("1/3", "The rate")
    (Fraction(1, 20), Fraction(1, 3))
    """
    try:
        return as_fraction(value)
    except NOT_A_NUMBER:
        raise errors.noise_not_a_number(what, value) from None


@dataclass(frozen=True)
class Range:
    """What the parameter of a law is called and which numbers it can be, in words for the message, and a limit of the
    samplers."""

    what: str
    wanted: str
    zero: bool = False
    most: int | None = None
    limit: int | None = None

    def exact(self, value: Any, row: int | None = None) -> Fraction:
        """The number as a fraction; raises if it is none, or outside the range."""
        what = self.what if row is None else f"{self.what} of row {row}"
        number = exact_number(value, what)
        if number < 0 or (number == 0 and not self.zero) or (self.most is not None and number > self.most):
            raise errors.noise_out_of_range(what, number, self.wanted)
        if self.limit is not None and number > self.limit:
            raise errors.noise_too_wide(what, number, f"2^{self.limit.bit_length() - 1}")
        return number


@dataclass(frozen=True, eq=False)
class PairRows:
    """numerators[i] / denominators[i], positive denominators."""

    numerators: NDArray[np.int64]
    denominators: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numerators)

    def exact(self, row: int) -> Fraction:
        """The number of one row."""
        return Fraction(int(self.numerators[row]), int(self.denominators[row]))

    def inverses(self, start: int, stop: int, factor: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Mantissas and shifts of 1 / (factor number); numbers are positive and the factor is 1 or 2."""
        mantissas, shifts = np.empty(stop - start, dtype=np.uint64), np.empty(stop - start, dtype=np.int64)
        tops, bottoms = self.denominators[start:stop], self.numerators[start:stop]
        _quotients(tops.view(np.uint64), bottoms.view(np.uint64), factor, mantissas, shifts)
        return mantissas, shifts

    def grouped(self) -> tuple[list[Fraction], NDArray[np.int16]] | None:
        """Different pairs and a code for each row, if there are at most :data:`FEW`; pairs need not be reduced."""
        codes, firsts = np.empty(len(self), dtype=np.int16), np.empty(FEW, dtype=np.int64)
        count = _codes(self.numerators, self.denominators, codes, firsts)
        return None if count < 0 else ([self.exact(row) for row in firsts[:count]], codes)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """distinct[codes[i]]."""

    distinct: list[Fraction]
    codes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.codes)

    def exact(self, row: int) -> Fraction:
        """The number of one row."""
        return self.distinct[int(self.codes[row])]

    def inverses(self, start: int, stop: int, factor: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """As for pairs."""
        mantissas, shifts = self._inverses[factor]
        codes = self.codes[start:stop]
        return mantissas[codes], shifts[codes]

    @cached_property
    def _inverses(self) -> dict[int, tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        found = {}
        for factor in (1, 2):
            pairs = [mantissa_of(1 / (factor * number)) for number in self.distinct]
            tops, shifts = [top for top, _ in pairs], [shift for _, shift in pairs]
            found[factor] = np.array(tops, dtype=np.uint64), np.array(shifts, dtype=np.int64)
        return found

    def grouped(self) -> tuple[list[Fraction], NDArray[np.int16]] | None:
        """As for pairs."""
        return None if len(self.distinct) > FEW else (self.distinct, self.codes.astype(np.int16))


Rows = PairRows | CodedRows


def exact_rows(values: Any, allowed: Range) -> Rows:
    """One number for each row, checked."""
    if isinstance(values, tuple) and len(values) == 2 and all(hasattr(part, "dtype") for part in values):
        return _pairs(np.asarray(values[0]), np.asarray(values[1]), allowed)
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise errors.noise_rows(allowed.what, "is one value, not one for each row")
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise errors.noise_rows(allowed.what, f"has {values.ndim} dimensions, not one")
        if values.dtype.kind in "iu":
            return _pairs(values, np.ones(len(values), dtype=np.int64), allowed)
    seen: dict[Any, int] = {}
    codes = np.array([seen.setdefault(_key(value), len(seen)) for value in values], dtype=np.int64)
    return CodedRows([allowed.exact(value) for _, value in seen], codes)


def _key(value: Any) -> tuple[type, Any]:
    """The type is part of it, since True equals 1 and is no number."""
    return (type(value), value) if getattr(value, "__hash__", None) else (type(value), repr(value))


def _pairs(numerators: NDArray[Any], denominators: NDArray[Any], allowed: Range) -> PairRows:
    parts, what = [], allowed.what
    for name, part in (("numerators", numerators), ("denominators", denominators)):
        if part.ndim != 1 or part.dtype.kind not in "iu":
            raise errors.noise_rows(what, f"has {name} that are not a one-dimensional array of integers")
        if part.dtype.kind == "u" and len(part) and int(part.max()) >= 1 << 63:
            raise errors.noise_rows(what, f"has {name} of 2^63 or more")
        parts.append(np.ascontiguousarray(part, dtype=np.int64))
    tops, bottoms = parts
    if len(tops) != len(bottoms):
        raise errors.noise_rows(what, f"has {len(tops)} numerators and {len(bottoms)} denominators")
    if np.any(bottoms <= 0):
        raise errors.noise_rows(what, f"has a denominator in row {int(np.argmax(bottoms <= 0))} that is not positive")
    wrong = tops < (0 if allowed.zero else 1)
    if allowed.most is not None:  # most is 1 where there is one
        wrong |= tops > bottoms
    if allowed.limit is not None and allowed.limit < 1 << 63:
        wrong |= (tops - 1) >> (allowed.limit.bit_length() - 1) >= bottoms
    rows = PairRows(tops, bottoms)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        allowed.exact(rows.exact(row), row)
    return rows


@kernel
def _quotients(numerators, denominators, factor, mantissas, shifts):  # type: ignore[no-untyped-def]
    doubled = np.uint64(factor - 1)
    for i in range(len(numerators)):
        mantissas[i], shifts[i] = quotient_of(numerators[i], denominators[i] << doubled)


@kernel
def _codes(numerators, denominators, codes, firsts):  # type: ignore[no-untyped-def]
    """Number the pairs in the order in which they first occur; -1 if there are more than ``firsts`` has room for."""
    slots = np.full(_SLOTS, -1, dtype=np.int16)
    count = 0
    for i in range(len(numerators)):
        mixed = np.uint64(numerators[i]) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(32)) ^ np.uint64(denominators[i])) * np.uint64(0xD6E8FEB86659FD93)
        slot = np.int64(mixed >> np.uint64(55))
        while slots[slot] >= 0:
            first = firsts[slots[slot]]
            if numerators[first] == numerators[i] and denominators[first] == denominators[i]:
                break
            slot = (slot + 1) % _SLOTS
        if slots[slot] < 0:
            if count == len(firsts):
                return -1
            firsts[count] = i
            slots[slot] = count
            count += 1
        codes[i] = slots[slot]
    return count
