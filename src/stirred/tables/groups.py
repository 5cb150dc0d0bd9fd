"""Groups records by several columns at once: group numbers, and counts of cells.

Codes are packed into one 64-bit key per record (mixed radix). Where the number of possible keys is moderate a table
indexed by the key does the work; otherwise keys are sorted. Columns too many for one key are folded: the groups of
the first become one column with the next.

Scattering 64-bit numbers (:func:`mixed`) is for fingerprints, samples and keys, never for the law of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel
from stirred._display import withheld
from stirred.tables.columns import Codes, Column, chunks


@helper
def mixed(number):  # type: ignore[no-untyped-def]
    """A number far from those of its neighbours (the last step of splitmix64); different numbers stay different."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


_DIRECT = 1 << 24
"""Possible keys up to which a table indexed by the key is always used; beyond, up to one per record."""

_SORTED_AT_ONCE = 1 << 26
"""Records up to which their order by key is kept in memory: looking each key up takes several times as long."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """Which group each record is in; groups are numbered in the order of their codes, and each has a record."""

    ids: NDArray[np.uint32]
    count: int

    def sizes(self) -> NDArray[np.int64]:
        """The number of records of each group."""
        sizes = np.zeros(self.count, dtype=np.int64)
        _tally(self.ids, sizes)
        return sizes

    def of_each(self, part: NDArray[np.integer]) -> NDArray[np.int64]:
        """For each group the number that its records share."""
        found = np.zeros(self.count, dtype=np.int64)
        found[self.ids] = part
        return found

    def members(self) -> NDArray[np.int64]:
        """One record of each group."""
        return self.of_each(np.arange(len(self.ids)))

    def among(self, rows: NDArray[np.bool_]) -> Groups:
        """The groups of some records, numbered as before; a group may have none of them."""
        return Groups(self.ids[rows], self.count)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """The non-empty cells of a contingency table, in the order of their codes."""

    names: tuple[str, ...]
    counts: NDArray[np.integer]
    keys: NDArray[np.uint64] | None
    """Packed codes, where they fit one key: millions of cells need not stand in memory column by column."""
    cardinalities: tuple[int, ...]
    columns: tuple[Codes, ...]
    """The codes themselves where they fit no key, else empty columns that tell their types."""

    def __len__(self) -> int:
        return len(self.counts)

    def part(self, rows: slice) -> list[Codes]:
        """The codes of some cells, column by column."""
        if self.keys is None:
            return [codes[rows] for codes in self.columns]
        return unpack(self.keys[rows].copy(), self.cardinalities, [codes.dtype.type for codes in self.columns])

    def begins(self, leading: int) -> NDArray[np.bool_]:
        """Where a cell's first ``leading`` columns differ from those of the cell before; true for the first."""
        begins = np.zeros(len(self), dtype=np.bool_)
        begins[:1] = True
        if self.keys is not None:
            _mark_key_changes(self.keys, prod(self.cardinalities[leading:]), begins)
        else:
            for codes in self.columns[:leading]:
                _mark_changes(codes, begins)
        return begins

    @property
    def codes(self) -> tuple[Codes, ...]:
        """The codes of all cells, column by column."""
        return tuple(self.part(slice(0, len(self))))

    @property
    def label(self) -> str:
        """A heading for the counts that no column has."""
        return free_label("count", self.names)

    def equals(self, other: Cells) -> bool:
        """Whether the same columns, coded alike, have the same counts."""
        return (
            self.names == other.names
            and self.cardinalities == other.cardinalities
            and np.array_equal(self.counts, other.counts)
            and all(
                np.array_equal(mine, theirs)
                for part in chunks(len(self))
                for mine, theirs in zip(self.part(part), other.part(part), strict=True)
            )
        )


def free_label(label: str, taken: Sequence[str]) -> str:
    """``label``, lengthened until no column is called that.

    >>> free_label("count", ["count", "county"])
    'count_of_rows'
    """
    while label in taken:
        label += "_of_rows"
    return label


def fits_one_key(columns: Sequence[Column]) -> bool:
    """Whether all combinations of the columns' values fit into one 64-bit key."""
    return prod(column.cardinality for column in columns) <= 1 << 63


def pack(columns: Sequence[Column], rows: slice) -> NDArray[np.uint64]:
    """The keys of some records: the first column counts most."""
    keys = np.zeros(rows.stop - rows.start, dtype=np.uint64)
    for column in columns:
        _push(keys, column.codes[rows], column.cardinality)
    return keys


def packed(columns: Sequence[Column], rows: int) -> NDArray[np.unsignedinteger]:
    """The keys of all records, in 32 bits where they fit: these are sorted in half the time."""
    narrow = prod(column.cardinality for column in columns) <= 1 << 32
    keys: NDArray[np.unsignedinteger] = np.empty(rows, dtype=np.uint32 if narrow else np.uint64)
    for part in chunks(rows):
        keys[part] = pack(columns, part)
    return keys


def unpack(keys: NDArray[np.uint64], cardinalities: Sequence[int], kinds: Sequence[type]) -> list[Codes]:
    """The codes behind keys, column by column; ``keys`` is used up."""
    columns: list[Codes] = []
    for cardinality, kind in zip(reversed(cardinalities), reversed(kinds), strict=True):
        codes: Codes = np.empty(len(keys), dtype=kind)
        _pop(keys, codes, cardinality)
        columns.append(codes)
    return columns[::-1]


def group(columns: Sequence[Column], rows: int) -> Groups:
    """Number the distinct combinations of ``columns``; no columns at all make one group."""
    ids = np.zeros(rows, dtype=np.uint32)
    if not columns or rows == 0:
        return Groups(ids, 1 if rows else 0)
    first, rest = _fitting(columns)
    count = _number(first, rows, ids)
    while rest:
        first, rest = _fitting([anonymous(ids, count), *rest])
        count = _number(first, rows, ids)
    return Groups(ids, count)


def cells(columns: Sequence[Column], rows: int) -> Cells:
    """The contingency table of ``columns``: its non-empty cells with their counts."""
    names = tuple(column.name for column in columns)
    cardinalities = tuple(column.cardinality for column in columns)
    if not fits_one_key(columns):
        grouped = group(columns, rows)
        member = grouped.members()
        codes = tuple(column.codes[member] for column in columns)
        return Cells(names, grouped.sizes(), None, cardinalities, codes)
    if _direct(prod(cardinalities), rows):
        tally = np.zeros(prod(cardinalities), dtype=np.uint32)
        for part in chunks(rows):
            _tally(pack(columns, part), tally)
        keys = np.flatnonzero(tally).astype(np.uint64)
        counts: NDArray[np.integer] = tally[keys].astype(np.int64)
    else:
        keys, counts = _sorted_cells(columns, rows)
    return Cells(names, counts, keys, cardinalities, tuple(column.codes[:0] for column in columns))


def anonymous(ids: Codes, count: int) -> Column:
    """Numbers below ``count`` as a column, whose values do not matter."""
    return Column("", ids, _Anonymous(count))


class _Anonymous:
    """Stands in for the values of a column of which only the number matters."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def _direct(size: int, rows: int) -> bool:
    return size <= max(_DIRECT, rows)


def _fitting(columns: Sequence[Column]) -> tuple[list[Column], list[Column]]:
    """As many leading columns as fit one key, and the others."""
    taken = 1
    while taken < len(columns) and fits_one_key(columns[: taken + 1]):
        taken += 1
    return list(columns[:taken]), list(columns[taken:])


def _number(columns: Sequence[Column], rows: int, ids: NDArray[np.uint32]) -> int:
    """Write dense group numbers, in key order, into ``ids``; how many there are."""
    size = prod(column.cardinality for column in columns)
    if _direct(size, rows):
        present = np.zeros(size, dtype=np.bool_)
        for part in chunks(rows):
            _mark(pack(columns, part), present)
        numbers = np.cumsum(present, dtype=np.uint32) - np.uint32(1)
        for part in chunks(rows):
            np.take(numbers, pack(columns, part), out=ids[part], mode="clip")
        return int(np.count_nonzero(present))
    if rows <= _SORTED_AT_ONCE:
        keys = packed(columns, rows)
        return int(_number_in_order(keys, np.argsort(keys), ids))
    found, _ = _sorted_cells(columns, rows)
    for part in chunks(rows):
        ids[part] = np.searchsorted(found, pack(columns, part)).astype(np.uint32)
    return len(found)


def _sorted_cells(columns: Sequence[Column], rows: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    keys = packed(columns, rows)
    keys.sort()
    counts = np.empty(len(keys), dtype=np.uint32)
    found = _run_lengths(keys, counts)
    kept = counts[:found] if found > rows // 2 else counts[:found].copy()
    return keys[:found].astype(np.uint64), kept


@kernel
def _push(keys, codes, cardinality):  # type: ignore[no-untyped-def]
    base = np.uint64(cardinality)
    for i in range(len(keys)):
        keys[i] = keys[i] * base + np.uint64(codes[i])


@kernel
def _pop(keys, codes, cardinality):  # type: ignore[no-untyped-def]
    base = np.uint64(cardinality)
    for i in range(len(keys)):
        quotient = keys[i] // base
        codes[i] = keys[i] - quotient * base
        keys[i] = quotient


@kernel
def _run_lengths(keys, counts):  # type: ignore[no-untyped-def]
    """Distinct values of sorted ``keys``, moved to its front, and how often each occurs; how many there are."""
    at = 0
    start = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[i] != keys[start]:
            keys[at] = keys[start]
            counts[at] = i - start
            at += 1
            start = i
    return at


@kernel
def _number_in_order(keys, order, ids):  # type: ignore[no-untyped-def]
    """Number the distinct keys, ``order`` being the records in the order of their keys; how many there are."""
    number = 0
    last = keys[order[0]]
    for row in order:
        if keys[row] != last:
            number += 1
            last = keys[row]
        ids[row] = number
    return number + 1


@kernel
def _mark_changes(codes, begins):  # type: ignore[no-untyped-def]
    for i in range(1, len(codes)):
        if codes[i] != codes[i - 1]:
            begins[i] = True


@kernel
def _mark_key_changes(keys, trailing, begins):  # type: ignore[no-untyped-def]
    size = np.uint64(trailing)
    end = np.uint64(0)  # the first key that the leading columns of the cell before do not have
    for i in range(len(keys)):
        if keys[i] >= end:
            begins[i] = True
            end = (keys[i] // size + np.uint64(1)) * size


@kernel
def _mark(keys, present):  # type: ignore[no-untyped-def]
    for key in keys:
        present[key] = True


@kernel
def _tally(keys, counts):  # type: ignore[no-untyped-def]
    for key in keys:
        counts[key] += 1
