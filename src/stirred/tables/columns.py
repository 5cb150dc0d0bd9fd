"""Encoded columns: small integer codes beside a sorted list of the distinct values.

The invariant: **values are sorted and every one of them occurs**, so that a column's codes, its dictionary and all
that is later written from them depend on the values present and not on the order in which they were met.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel

Codes = NDArray[np.unsignedinteger]

_NARROW = 1 << 16
"""Integer batches whose values span less than this are offset rather than hashed."""


def smallest_type(cardinality: int) -> type[np.unsignedinteger]:
    """The narrowest unsigned type that holds codes below ``cardinality``."""
    if cardinality <= 1 << 8:
        return np.uint8
    return np.uint16 if cardinality <= 1 << 16 else np.uint32


@dataclass(frozen=True, eq=False)
class Column:
    """One encoded column. A null, where it is a category, is the last value."""

    name: str
    codes: Codes
    values: pa.Array

    @property
    def cardinality(self) -> int:
        return len(self.values)

    @property
    def type(self) -> pa.DataType:
        return self.values.type

    def with_codes(self, codes: Codes) -> Column:
        return Column(self.name, codes, self.values)

    def decode(self, codes: NDArray[np.integer]) -> pa.Array:
        """The values behind ``codes``, as a plain array."""
        return self.values.take(pa.array(codes))

    def texts(self) -> list[str | None]:
        """The values as text, for tables meant to be read; null stays None."""
        return [None if value is None else str(value) for value in self.values.to_pylist()]


@dataclass(frozen=True, eq=False)
class Table:
    """Encoded columns of equal length, in the order in which they will be written."""

    name: str
    rows: int
    columns: Mapping[str, Column]

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def pick(self, names: Iterable[str]) -> list[Column]:
        return [self.columns[name] for name in names]

    def replace(self, new: Mapping[str, Column]) -> Table:
        return Table(self.name, self.rows, {name: new.get(name, column) for name, column in self.columns.items()})

    def nbytes(self) -> int:
        return sum(column.codes.nbytes for column in self.columns.values())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type a column is released with: its own, less dictionaries and the many layouts of text."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def is_supported(kind: pa.DataType) -> bool:
    kind = plain_type(kind)
    return not (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
        or isinstance(kind, pa.ExtensionType)
    )


@dataclass(eq=False)
class _Chunk:
    codes: Codes
    values: pa.Array
    """The value behind each local code; slots that no record uses are masked by ``used``."""
    used: NDArray[np.bool_]


class ColumnEncoder:
    """Encodes one column batch by batch; :meth:`finish` settles the dictionary and narrows the codes."""

    def __init__(self, table: str, name: str, kind: pa.DataType) -> None:
        self.table = table
        self.name = name
        self.type = plain_type(kind)
        self.nulls = 0
        self._chunks: list[_Chunk] = []

    def add(self, array: pa.Array) -> None:
        if len(array) == 0:
            return
        self.nulls += array.null_count
        if pa.types.is_integer(self.type) and not pa.types.is_dictionary(array.type) and array.null_count == 0:
            numbers = array.to_numpy()
            low, high = _extent(numbers)
            if high - low < _NARROW:
                codes = np.empty(len(numbers), dtype=smallest_type(high - low + 1))
                used = np.zeros(high - low + 1, dtype=np.bool_)
                _offset(numbers, numbers.dtype.type(low), codes, used)
                values = pa.array((np.arange(high - low + 1) + low).astype(numbers.dtype), type=self.type)
                self._chunks.append(_Chunk(codes, values, used))
                return
        self._chunks.append(self._hashed(array))

    def _hashed(self, array: pa.Array) -> _Chunk:
        if pa.types.is_floating(array.type):
            array = _bits_of(array)  # by bits, so that -0.0 and every NaN come out as they went in
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode(null_encoding="mask")
        elif array.dictionary.null_count:
            array = array.cast(array.type.value_type).dictionary_encode(null_encoding="mask")
            self.nulls += array.null_count
        values = array.dictionary
        if pa.types.is_floating(values.type):  # an incoming dictionary of floats
            values = _bits_of(values)
        elif values.type != self.type and not pa.types.is_floating(self.type):
            values = values.cast(self.type)
        indices = array.indices.fill_null(len(values)) if array.null_count else array.indices
        codes = indices.to_numpy(zero_copy_only=False)
        used = np.zeros(len(values) + 1, dtype=np.bool_)
        used[codes] = True
        return _Chunk(codes.astype(smallest_type(len(values) + 1), copy=False), values, used[: len(values)])

    def finish(self) -> Column:
        """The column; afterwards the encoder is spent."""
        present = [chunk.values.filter(pa.array(chunk.used)) for chunk in self._chunks]
        values = _sorted_values(pc.unique(pa.concat_arrays(present)) if present else pa.array([], self.type))
        size = len(values) + (1 if self.nulls else 0)
        if size > 1 << 31:
            raise errors.nearly_distinct(self.table, self.name, 100)
        codes = np.empty(sum(len(chunk.codes) for chunk in self._chunks), dtype=smallest_type(size))
        at = 0
        for chunk, used_values in zip(self._chunks, present, strict=True):
            recode = np.full(len(chunk.values) + 1, len(values), dtype=codes.dtype)  # the last slot is the null's
            found = pc.index_in(used_values, value_set=values).to_numpy(zero_copy_only=False)
            recode[np.flatnonzero(chunk.used)] = found.astype(codes.dtype)
            np.take(recode, chunk.codes, out=codes[at : at + len(chunk.codes)], mode="clip")
            at += len(chunk.codes)
            chunk.codes = codes[:0]  # one copy of a large column, not two
        self._chunks = []
        if pa.types.is_floating(self.type):
            values = _floats_of(values, self.type)
        if self.nulls:
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        return Column(self.name, codes, values)


def _sorted_values(values: pa.Array) -> pa.Array:
    return values.take(pc.array_sort_indices(values))


_BITS_TYPE = {2: "int16", 4: "int32", 8: "int64"}


def _bits_of(array: pa.Array) -> pa.Array:
    return array.view(_BITS_TYPE[array.type.bit_width // 8])


def _floats_of(bits: pa.Array, kind: pa.DataType) -> pa.Array:
    return bits.view(kind)


@kernel
def _extent(numbers):  # type: ignore[no-untyped-def]
    low = numbers[0]
    high = numbers[0]
    for number in numbers:
        if number < low:
            low = number
        if number > high:
            high = number
    return low, high


@kernel
def _offset(numbers, low, codes, used):  # type: ignore[no-untyped-def]
    for i in range(len(numbers)):
        code = np.int64(numbers[i] - low)
        codes[i] = code
        used[code] = True


def recast(column: Column, kind: pa.DataType) -> Column:
    """A column of text as a column of ``kind``, its values sorted anew; ``ValueError`` if a value does not fit."""
    if column.type == kind:
        return column
    encoder = ColumnEncoder("", column.name, kind)
    encoder.add(column.values.cast(kind))
    typed = encoder.finish()
    return Column(column.name, typed.codes[column.codes], typed.values)


def type_named(name: str) -> pa.DataType:
    """The type that ``str(type)`` calls ``name``."""
    decimal = re.fullmatch(r"decimal(128|256)\((\d+), (-?\d+)\)", name)
    if decimal:
        make = pa.decimal128 if decimal[1] == "128" else pa.decimal256
        return make(int(decimal[2]), int(decimal[3]))
    return pa.type_for_alias(name)


def chunks(rows: int, size: int = 1 << 20) -> Iterator[slice]:
    """Slices that cover ``rows`` rows."""
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))
