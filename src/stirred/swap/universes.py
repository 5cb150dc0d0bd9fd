"""All tables of one stratum that have the same margins, and which of them differ only in the order of alike values.

A table counts the records of a stratum by held value (rows) and by swap value (columns); a universe is all tables with
the same two margins. Values with equal totals are alike: a swap does not know their names, so that turning the same
alike rows, or columns, of the true and of the released table changes no probability. One table for each such class, a
*representative*, is enough to know the laws of all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Totals = tuple[int, ...]
Table = tuple[Totals, ...]
Integers = NDArray[np.int64]

_SCATTER = 0x9E3779B97F4A7C15
"""An odd number whose powers are spread over 64 bits."""


@dataclass(frozen=True, eq=False)
class Universe:
    """The tables as an array ``[table, row, column]``, and for each the turn that makes it its representative."""

    tables: Integers
    axis: int
    """What is turned: 1, rows, or 2, columns."""
    turns: Integers
    """For each table the order of its rows, or columns, in its representative."""
    representative: Integers
    """For each table its representative's place in ``representatives``."""
    representatives: Integers
    """The places of the representatives in ``tables``."""

    @classmethod
    def of(cls, tables: Sequence[Table], *, turned: bool = True) -> Universe:
        """All tables with two margins; without being ``turned`` each is its own representative."""
        array = np.array(tables, dtype=np.int64)
        held, swapped = array[0].sum(axis=1), array[0].sum(axis=0)
        axis = 1 if _orders(held) >= _orders(swapped) else 2
        totals = held if axis == 1 else swapped
        own = np.arange(len(array))
        turns = np.tile(np.arange(len(totals)), (len(array), 1))
        if not turned or _orders(totals) == 1:
            return cls(array, axis, turns, own, own)
        lines = array if axis == 1 else array.transpose(0, 2, 1)
        keys = [*lines.transpose(2, 0, 1)[::-1], np.tile(totals, (len(array), 1))]
        turns = np.lexsort(keys, axis=1)
        # Sorted, values stand by their totals; each place gets one of its own total back.
        turns = turns[:, np.argsort(np.argsort(totals, kind="stable"), kind="stable")]
        found = cls(array, axis, turns, own, own).places_of(array, turns)
        representatives, number = np.unique(found, return_inverse=True)
        return cls(array, axis, turns, number, representatives)

    def __len__(self) -> int:
        return len(self.tables)

    def turned(self, at: int) -> Integers | slice:
        """The place of every table after the turn that makes this one its representative."""
        if np.array_equal(self.turns[at], np.arange(self.turns.shape[1])):
            return slice(None)
        return self.places_of(self.tables, self.turns[at : at + 1])

    def places_of(self, tables: Integers, turns: Integers) -> Integers:
        """Where tables stand in the universe after their rows, or columns, are put into these orders: one each, or one
        for all, or one table in all orders."""
        along = turns[:, :, None] if self.axis == 1 else turns[:, None, :]
        codes, order = self._codes
        return np.asarray(order[np.searchsorted(codes, self._code(np.take_along_axis(tables, along, axis=self.axis)))])

    def distances(self, at: int) -> Integers:
        """In how many records each table differs from this one: n - sum min(x, z)."""
        return np.asarray(np.maximum(self.tables - self.tables[at], 0).sum(axis=(1, 2)))

    @cached_property
    def _codes(self) -> tuple[NDArray[np.uint64], Integers]:
        codes = self._code(self.tables)
        order = np.argsort(codes)
        assert np.all(np.diff(codes[order]) > 0)  # no two tables have the same code, so that none is mistaken
        return codes[order], order

    def _code(self, tables: Integers) -> NDArray[np.uint64]:
        cells = math.prod(tables.shape[1:])
        factors = np.array([pow(_SCATTER, k + 1, 1 << 64) for k in range(cells)], dtype=np.uint64)
        return np.asarray(tables.reshape(len(tables), cells).astype(np.uint64) @ factors)


def tables_with(held: Sequence[int], swapped: Sequence[int]) -> Iterator[Table]:
    """All tables with these margins, one after the other.

    >>> list(tables_with((2, 1), (1, 2)))
    [((0, 2), (1, 0)), ((1, 1), (0, 1))]
    """
    if not held:
        yield ()
        return
    for row in _rows(held[0], swapped):
        left = [have - taken for have, taken in zip(swapped, row, strict=True)]
        for rest in tables_with(held[1:], left):
            yield (row, *rest)


# -- helpers -------------------------------------------------------------------------------------------------


def _orders(totals: Integers) -> int:
    """The number of orders of values that are alike."""
    return math.prod(math.factorial(many) for many in Counter(totals.tolist()).values())


def _rows(total: int, most: Sequence[int]) -> Iterator[Totals]:
    """All rows with this sum, no entry above ``most``."""
    if len(most) == 1:
        yield (total,)
        return
    for first in range(max(0, total - sum(most[1:])), min(total, most[0]) + 1):
        for rest in _rows(total - first, most[1:]):
            yield (first, *rest)
