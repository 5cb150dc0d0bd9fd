"""Reads a table in one pass: encodes columns, collects identifiers, counts nulls; and finds what identifiers refer to.

Identifiers are compared (are they unique, which record does each reference point to) and then forgotten: no release
contains one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import helper, kernel
from stirred._display import withheld
from stirred._threads import thread_pool
from stirred.tables.columns import Column, ColumnEncoder, Table, encoded, is_supported, plain_type
from stirred.tables.groups import mixed
from stirred.tables.reading.inputs import MOST_ROWS, Input, Told

_BUCKET = 1 << 15
"""About how many identifiers are compared at a time."""
_SPREAD = 8
"""Integer identifiers spread over at most this many times their number are looked up in a plain table."""


class IdentifierCollector:
    """Batches of an identifier column as one array of plain values.

    Integers are copied once, to where they will stay, when the number of rows is known beforehand.
    """

    def __init__(self, table: str, name: str, kind: pa.DataType, rows: int | None = None) -> None:
        self.table = table
        self.name = name
        self.type = plain_type(kind)
        self._arrays: list[pa.Array] = []
        whole = rows is not None and pa.types.is_integer(self.type)
        self._numbers = np.empty(rows or 0, dtype=self.type.to_pandas_dtype()) if whole else None
        self._at = 0

    def add(self, array: pa.Array) -> None:
        """Append the next batch."""
        if array.type != self.type:
            array = self._cast(array)
        if self._numbers is not None and (array.null_count or self._at + len(array) > len(self._numbers)):
            self._arrays.append(pa.array(self._numbers[: self._at]))
            self._numbers = None
        if self._numbers is None:
            self._arrays.append(array)
            return
        self._numbers[self._at : self._at + len(array)] = array.to_numpy()
        self._at += len(array)

    def _cast(self, array: pa.Array) -> pa.Array:
        try:
            if pa.types.is_dictionary(array.type) and pa.types.is_string_view(array.type.value_type):
                array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(self.type))
            return array.cast(self.type)
        except pa.ArrowException:
            raise errors.unsupported_type(self.table, self.name, str(array.type)) from None

    def finish(self) -> pa.ChunkedArray:
        """All batches as one array."""
        if self._numbers is not None:
            self._arrays.append(pa.array(self._numbers[: self._at]))
        return pa.chunked_array(self._arrays, type=self.type)


def count_repeated(identifiers: pa.ChunkedArray) -> int:
    """How many cells repeat an earlier one. The array must have no nulls."""
    if not pa.types.is_integer(identifiers.type):
        return len(identifiers) - int(pc.count_distinct(identifiers).as_py())
    numbers = identifiers.to_numpy()
    if _increasing(numbers):
        return 0
    numbers = numbers.view(np.int64) if numbers.dtype == np.uint64 else numbers.astype(np.int64, copy=False)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < _SPREAD * len(numbers):  # a bit for each number that there may be
        return int(_count_met_again(numbers, low, np.zeros((high - low) // 64 + 1, dtype=np.uint64)))
    # Equal numbers share a bucket, and the hash table of a bucket fits into the processor's cache.
    buckets = 1 << max(0, (len(numbers) // _BUCKET).bit_length())
    counts = np.zeros(buckets, dtype=np.int64)
    _count_by_bucket(numbers, buckets, counts)
    starts = np.cumsum(counts)
    sorted_out = np.empty_like(numbers)
    _sort_out(numbers, buckets, starts, sorted_out)  # from the ends backwards, so that these become starts
    bounds = [*starts.tolist(), len(numbers)]

    def repeated_in(first: int) -> int:
        found = 0
        for low, high in zip(bounds[first:-1:2], bounds[first + 1 :: 2], strict=True):
            slots = 1 << int(2 * (high - low) + 1).bit_length()
            found += int(_count_repeated(sorted_out[low:high], np.zeros(slots, dtype=np.int64)))
        return found

    with thread_pool(2) as pool:
        return sum(pool.map(repeated_in, range(min(2, buckets))))


def locate(identifiers: pa.ChunkedArray, references: pa.ChunkedArray) -> NDArray[np.int64]:
    """For each reference the position of the identifier it equals, or -1. Identifiers must be unique."""
    if pa.types.is_integer(identifiers.type) and pa.types.is_integer(references.type):
        known = identifiers.to_numpy().astype(np.int64, copy=False)
        wanted = references.to_numpy().astype(np.int64, copy=False)
        positions = np.empty(len(wanted), dtype=np.int64)
        low, high = int(known.min()), int(known.max())
        if high - low <= _SPREAD * len(known) + 1024:
            table = np.full(high - low + 1, -1, dtype=np.int64)
            table[known - low] = np.arange(len(known))
            _look_up(table, low, wanted, positions)
        else:
            slots = 1 << int(2 * len(known)).bit_length()
            keys, rows = np.zeros(slots, dtype=np.int64), np.full(slots, -1, dtype=np.int64)
            _hash_in(known, keys, rows)
            _hash_out(wanted, keys, rows, positions)
        if pa.types.is_uint64(identifiers.type) != pa.types.is_uint64(references.type):
            positions[wanted < 0] = -1  # beyond the range of the other type, not equal to what it wraps around to
        return positions
    found = pc.index_in(references, value_set=identifiers.combine_chunks()).fill_null(-1)
    return np.asarray(found.to_numpy(), dtype=np.int64)


@kernel
def _count_met_again(numbers, low, met):  # type: ignore[no-untyped-def]
    again = 0
    for number in numbers:
        at = np.uint64(number - low)
        word, bit = at >> np.uint64(6), np.uint64(1) << (at & np.uint64(63))
        if met[word] & bit:
            again += 1
        met[word] |= bit
    return again


@helper
def _bucket_of(number, buckets):  # type: ignore[no-untyped-def]
    return np.int64((mixed(np.uint64(number)) >> np.uint64(32)) & np.uint64(buckets - 1))


@kernel
def _count_by_bucket(numbers, buckets, counts):  # type: ignore[no-untyped-def]
    for number in numbers:
        counts[_bucket_of(number, buckets)] += 1


@kernel
def _sort_out(numbers, buckets, ends, out):  # type: ignore[no-untyped-def]
    for number in numbers:
        bucket = _bucket_of(number, buckets)
        ends[bucket] -= 1
        out[ends[bucket]] = number


@kernel
def _count_repeated(numbers, table):  # type: ignore[no-untyped-def]
    """How many numbers occurred before; ``table`` is a hash table of zeros, so 0 itself is counted apart."""
    mask = np.uint64(len(table) - 1)
    zeros = 0
    again = 0
    for number in numbers:
        if number == 0:
            again += 1 if zeros else 0
            zeros += 1
            continue
        at = mixed(np.uint64(number)) & mask
        while table[at] != 0 and table[at] != number:
            at = (at + np.uint64(1)) & mask
        if table[at] == number:
            again += 1
        table[at] = number
    return again


@kernel
def _increasing(numbers):  # type: ignore[no-untyped-def]
    at = 1
    while at < len(numbers) and numbers[at] > numbers[at - 1]:
        at += 1
    return at >= len(numbers)


@kernel
def _look_up(table, low, wanted, positions):  # type: ignore[no-untyped-def]
    for i in range(len(wanted)):
        at = wanted[i] - low
        positions[i] = table[at] if 0 <= at < len(table) else -1


@kernel
def _slot(key, mask):  # type: ignore[no-untyped-def]
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@kernel
def _hash_in(known, keys, rows):  # type: ignore[no-untyped-def]
    mask = len(keys) - 1
    for i in range(len(known)):
        at = _slot(known[i], mask)
        while rows[at] >= 0:
            at = (at + 1) & mask
        keys[at] = known[i]
        rows[at] = i


@kernel
def _hash_out(wanted, keys, rows, positions):  # type: ignore[no-untyped-def]
    mask = len(keys) - 1
    for i in range(len(wanted)):
        at = _slot(wanted[i], mask)
        while rows[at] >= 0 and keys[at] != wanted[i]:
            at = (at + 1) & mask
        positions[i] = rows[at]


_MOST_THREADS = 4
"""Columns that are encoded side by side: more would take memory."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class ReadTable:
    """What one pass over an input found."""

    table: Table
    identifiers: Mapping[str, pa.ChunkedArray]
    nulls: Mapping[str, int]
    """Columns with nulls, and how many."""


def _require_supported(opened: Input, columns: Sequence[str]) -> None:
    for column in columns:
        if not is_supported(opened.kinds[column]):
            raise errors.unsupported_type(opened.table, column, str(opened.kinds[column]))


def read_parts(opened: Input, columns: Sequence[str], told: Told | None = None) -> Iterator[Table]:
    """The rows of a table in parts that are encoded by themselves: for counting, in memory for one part."""
    _require_supported(opened, columns)

    def of(column: str, array: pa.Array) -> Column:
        return encoded(column, array, opened.table, opened.kinds[column])

    with thread_pool(_MOST_THREADS) as pool:
        for batch in opened.batches(columns, (), told):
            parts = dict(zip(batch.schema.names, batch.columns, strict=True))
            made = pool.map(of, columns, [parts[column] for column in columns])
            yield Table(opened.table, batch.num_rows, dict(zip(columns, made, strict=True)))


def read_table(
    opened: Input,
    columns: Sequence[str],
    identifiers: Sequence[str] = (),
    *,
    may_be_empty: bool = False,
    told: Told | None = None,
) -> ReadTable:
    """Encode ``columns`` and gather ``identifiers`` as they are; an error if there are no rows, unless that may be.

    ``told`` is told the share that is read.
    """
    name = opened.table
    _require_supported(opened, [*columns, *identifiers])
    encoders = {column: ColumnEncoder(name, column, opened.kinds[column], opened.rows) for column in columns}
    kept = {column: IdentifierCollector(name, column, opened.kinds[column], opened.rows) for column in identifiers}
    rows = 0
    with thread_pool(_MOST_THREADS) as pool:  # columns are independent, and the kernels do without the lock
        for batch in opened.batches(columns, identifiers, told):
            rows += batch.num_rows
            if rows > MOST_ROWS:
                raise errors.too_many_records(name, MOST_ROWS)
            parts = dict(zip(batch.schema.names, batch.columns, strict=True))
            list(pool.map(ColumnEncoder.add, encoders.values(), [parts[column] for column in encoders]))
            for column, collector in kept.items():
                collector.add(parts[column])
        columns_read = dict(zip(encoders, pool.map(ColumnEncoder.finish, encoders.values()), strict=True))
    pa.default_memory_pool().release_unused()  # what was decoded on the way is gone, and its memory should be
    if rows == 0 and not may_be_empty:
        raise errors.empty_file(name)
    gathered = {column: collector.finish() for column, collector in kept.items()}
    nulls = {column: encoder.nulls for column, encoder in encoders.items()}
    nulls |= {column: array.null_count for column, array in gathered.items()}
    return ReadTable(
        Table(name, rows, columns_read), gathered, {column: count for column, count in nulls.items() if count}
    )
