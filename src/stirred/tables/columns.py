"""Encoded columns: small integer codes beside a sorted list of the distinct values.

The invariant: **values are sorted and every one of them occurs**, so that a column's codes, its dictionary and all
that is later written from them depend on the values present and not on the order in which they were met. Of a
categorical column the order that an ordered one declares is kept beside them; categories that no row has are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel

Codes = NDArray[np.unsignedinteger]

_SHOWN = 12
"""Names of columns that the ``repr`` of a table lists."""

_NARROW = 1 << 22
"""Integers that span less than this are looked up in a table rather than hashed."""


_ZONE = re.compile(r"[A-Za-z0-9_+:/-]{1,64}")
"""Names of time zones; others could not be read back from a data dictionary."""


def smallest_type(cardinality: int) -> type[np.unsignedinteger]:
    """The narrowest unsigned type that holds codes below ``cardinality``."""
    if cardinality <= 1 << 8:
        return np.uint8
    return np.uint16 if cardinality <= 1 << 16 else np.uint32


@dataclass(frozen=True)
class Categories:
    """Says that a column is categorical; ``order`` is, for an ordered one, its values' codes in the declared order."""

    order: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """One encoded column. A null, where it is a category, is the last value."""

    name: str
    codes: Codes
    values: pa.Array
    categories: Categories | None = None
    """Whether the input had it as a categorical (pandas, Polars) or a dictionary (Arrow, Parquet)."""

    def __repr__(self) -> str:
        return f"<Column {self.name!r}: {len(self.codes):,} rows, values not shown>"

    @property
    def cardinality(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self.values.type

    def with_codes(self, codes: Codes) -> Column:
        """The same values with other codes."""
        return replace(self, codes=codes)

    def copied(self, name: str, categorical: bool) -> Column:
        """The column under another name, categorical or not; its order is this one's."""
        return replace(self, name=name, categories=(self.categories or Categories()) if categorical else None)

    def decode(self, codes: NDArray[np.integer]) -> pa.Array:
        """The values behind ``codes``, as a plain array."""
        return self.values.take(pa.array(codes))

    def decode_categorical(self, codes: NDArray[np.integer]) -> pa.DictionaryArray:
        """The values behind ``codes`` with the dictionary of a categorical: in the declared order, else sorted."""
        declared = None if self.categories is None else self.categories.order
        known = self.cardinality - self.values.null_count
        order = np.arange(known, dtype=np.int64) if declared is None else np.array(declared, dtype=np.int64)
        place = np.full(self.cardinality, -1, dtype=np.int32)
        place[order] = np.arange(known, dtype=np.int32)
        found = place[codes]
        indices = pa.array(found, mask=found < 0 if self.values.null_count else None)
        return pa.DictionaryArray.from_arrays(indices, self.values.take(pa.array(order)), ordered=declared is not None)

    def is_categorical_in(self, kind: str) -> bool:
        """Whether the column is categorical, and stays so in format ``kind``: Parquet has categories of text alone."""
        if self.categories is None:
            return False
        return kind == "arrow" or (kind == "parquet" and pa.types.is_string(self.type))

    def stated_categories(self) -> str | list[str | None]:
        """What a data dictionary says of a categorical: that it is unordered, or its values in their order."""
        if self.categories is None or self.categories.order is None:
            return "unordered"
        texts = self.texts()
        return [texts[code] for code in self.categories.order]

    def texts(self) -> list[str | None]:
        """The values as text, for tables meant to be read; null stays None."""
        return list(as_text(self.values).to_pylist())


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Encoded columns of equal length, in the order in which they will be written."""

    name: str
    rows: int
    columns: Mapping[str, Column]

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, list(self.columns)[:_SHOWN])) + ", ..." * (len(self.columns) > _SHOWN)
        return f"<Table {self.name!r}: {self.rows:,} rows, {len(self.columns)} columns ({shown}), cells not shown>"

    def pick(self, names: Iterable[str]) -> list[Column]:
        """Some of the columns, in this order."""
        return [self.columns[name] for name in names]

    def replace(self, new: Mapping[str, Column]) -> Table:
        """The table with some columns replaced."""
        return Table(self.name, self.rows, {name: new.get(name, column) for name, column in self.columns.items()})

    def nbytes(self) -> int:
        """The memory that the codes take, in bytes."""
        return sum(column.codes.nbytes for column in self.columns.values())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values: its own, less dictionaries and the layouts that not every format has."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    if pa.types.is_time32(kind) and kind.unit == "s":
        return pa.time32("ms")
    return kind


def is_categorical(kind: pa.DataType) -> bool:
    """Whether a type is that of categoricals; those without any value are none."""
    return bool(pa.types.is_dictionary(kind) and not pa.types.is_null(kind.value_type))


def is_supported(kind: pa.DataType) -> bool:
    """Whether columns of this type can be released: one plain value in each cell. Types not listed here are refused."""
    if pa.types.is_dictionary(kind) and pa.types.is_dictionary(kind.value_type):
        return False  # reading these from a file crashes Arrow
    kind = plain_type(kind)
    return (
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
        or pa.types.is_date(kind)
        or pa.types.is_time(kind)
        or (pa.types.is_timestamp(kind) and (kind.tz is None or _ZONE.fullmatch(kind.tz) is not None))
        or pa.types.is_duration(kind)
        or (pa.types.is_decimal(kind) and kind.scale >= 0)
    )


@dataclass(eq=False, repr=False)
class _Hashed:
    """A batch with a dictionary of its own."""

    codes: Codes
    values: pa.Array
    """The value behind each local code; slots that no record uses are masked by ``used``."""
    used: NDArray[np.bool_]


@dataclass(eq=False, repr=False)
class _Offset:
    """A batch of integers, as distances from ``low``."""

    codes: Codes
    low: int


class ColumnEncoder:
    """Encodes one column batch by batch; :meth:`finish` settles the dictionary and narrows the codes."""

    def __init__(self, table: str, name: str, kind: pa.DataType, rows: int | None = None) -> None:
        """``rows``, where it is known beforehand, lets the codes be written once, where they will stay."""
        self.table = table
        self.name = name
        self.type = plain_type(kind)
        self.nulls = 0
        self._categorical = is_categorical(kind)
        self._ordered = self._categorical and kind.ordered
        self._declared = pa.array([], self.type)
        self._chunks: list[_Hashed | _Offset] = []
        self._rows = rows
        self._place: Codes | None = None
        self._placed = 0
        self._low = 0
        self._seen = np.zeros(0, dtype=np.bool_)  # which integers from _low on have been met in offset batches

    def add(self, array: pa.Array) -> None:
        """Encode the next batch."""
        if len(array) == 0:
            return
        self.nulls += array.null_count
        if pa.types.is_integer(self.type) and not pa.types.is_dictionary(array.type) and array.null_count == 0:
            numbers = array.to_numpy()
            low, high = _extent(numbers)
            if self._make_room(low, high):
                codes = self._room(len(numbers), smallest_type(high - low + 1))
                _offset(numbers, numbers.dtype.type(low), codes, self._seen[low - self._low :])
                self._chunks.append(_Offset(codes, low))
                return
        self._chunks.append(self._hashed(array))

    def _room(self, size: int, kind: type[np.unsignedinteger]) -> Codes:
        """Where the codes of the next batch go: their final place, if there is one and it is wide enough."""
        if self._rows is not None and self._place is None:
            self._place = np.empty(self._rows, dtype=kind)
        too_narrow = self._place is not None and self._place.dtype.itemsize < np.dtype(kind).itemsize
        if self._place is None or too_narrow or self._placed + size > len(self._place):
            self._rows, self._place = None, None  # batches already placed keep their part of it alive
            return np.empty(size, dtype=kind)
        self._placed += size
        return self._place[self._placed - size : self._placed]

    def _make_room(self, low: int, high: int) -> bool:
        """Widen the range of integers met so far; False if it would become too wide for a table."""
        if len(self._seen):
            low, high = min(low, self._low), max(high, self._low + len(self._seen) - 1)
        if high - low >= _NARROW:
            return False
        if len(self._seen) < high - low + 1:
            wider = np.zeros(high - low + 1, dtype=np.bool_)
            wider[self._low - low : self._low - low + len(self._seen)] = self._seen
            self._low, self._seen = low, wider
        return True

    def _declare(self, dictionary: pa.Array) -> None:
        """Note the order of an ordered dictionary; there is none if the next batch has another one."""
        listed = self._cast(dictionary.drop_null())
        shorter, longer = sorted((self._declared, listed), key=len)
        self._ordered = self._ordered and shorter.equals(longer[: len(shorter)])
        self._declared = longer

    def _categories(self, values: pa.Array) -> Categories | None:
        """The categories of a column with these values; NaN, which has no text of its own, has no place in an order."""
        if not self._categorical or not self._ordered:
            return Categories() if self._categorical else None
        place = pc.index_in(exact_values(values), value_set=exact_values(self._declared))
        if place.null_count or (pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()):
            return Categories()
        return Categories(tuple(np.argsort(place.to_numpy()).tolist()))

    def _hashed(self, array: pa.Array) -> _Hashed:
        if self._ordered and pa.types.is_dictionary(array.type):
            self._declare(array.dictionary)
        if pa.types.is_floating(array.type):
            array = _bits_of(array)  # by bits, so that -0.0 and every NaN come out as they went in
        if pa.types.is_decimal(array.type):
            array = self._cast(array)  # the narrow ones cannot be hashed
        if not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode(null_encoding="mask")
        elif array.dictionary.null_count:
            self.nulls -= array.null_count
            array = array.cast(array.type.value_type).dictionary_encode(null_encoding="mask")
            self.nulls += array.null_count
        values = array.dictionary
        if pa.types.is_floating(values.type):  # an incoming dictionary of floats
            values = _bits_of(values)
        elif values.type != self.type and not pa.types.is_floating(self.type):
            values = self._cast(values)
        if pa.types.is_string(values.type):
            try:
                values.validate(full=True)
            except pa.ArrowInvalid:
                raise errors.not_utf8(f"Column '{self.name}' of table '{self.table}'") from None
        indices = array.indices.fill_null(len(values)) if array.null_count else array.indices
        codes = indices.to_numpy(zero_copy_only=False)
        used = np.zeros(len(values) + 1, dtype=np.bool_)
        used[codes] = True
        placed = self._room(len(codes), smallest_type(len(values) + 1))
        placed[:] = codes
        return _Hashed(placed, values, used[: len(values)])

    def _cast(self, array: pa.Array) -> pa.Array:
        try:
            return array.cast(self.type)
        except pa.ArrowException:
            raise errors.unsupported_type(self.table, self.name, str(array.type)) from None

    def finish(self) -> Column:
        """The column; afterwards the encoder is spent."""
        values, recodes = self._settle()
        size = len(values) + (1 if self.nulls else 0)
        rows, kind = sum(len(chunk.codes) for chunk in self._chunks), smallest_type(size)
        in_place = self._place is not None and self._placed == rows and self._place.dtype == kind
        codes = self._place[:rows] if in_place and self._place is not None else np.empty(rows, dtype=kind)
        at = 0
        for chunk, recode in zip(self._chunks, recodes, strict=True):
            _recode(chunk.codes, recode, codes[at : at + len(chunk.codes)])
            at += len(chunk.codes)
            chunk.codes = codes[:0]  # one copy of a large column, not two
        self._chunks = []
        if pa.types.is_floating(self.type):
            values = values.view(self.type)
        if len(values) and not _on_calendar(values):
            raise errors.DataError(
                "time-out-of-range",
                f"Column '{self.name}' of table '{self.table}' has dates outside the years 1 to 9999, or times "
                "outside a day.",
                "Correct them, or store the column as text or as whole numbers.",
            )
        categories = self._categories(values)
        if self.nulls:
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        return Column(self.name, codes, values, categories)

    def _settle(self) -> tuple[pa.Array, Iterator[Codes]]:
        """The sorted values, and for each batch the code that each of its local codes becomes.

        All batches are looked up together, once: an index of all values for every batch would be quadratic work.
        """
        met = pa.array([], self.type)
        if len(self._seen):
            met = _integers(np.flatnonzero(self._seen), self._low, self.type)
        present = [chunk.values.filter(pa.array(chunk.used)) for chunk in self._chunks if isinstance(chunk, _Hashed)]
        if not present:
            ranks = (np.cumsum(self._seen, dtype=np.int64) - 1).astype(smallest_type(len(met)))
            return met, self._recodes(ranks, ranks[:0], 0)
        coded = pa.concat_arrays([met.cast(present[0].type), *present]).dictionary_encode()
        order = pc.array_sort_indices(coded.dictionary)
        kind = smallest_type(len(order) + (1 if self.nulls else 0))
        rank = np.empty(len(order), dtype=kind)
        rank[order.to_numpy()] = np.arange(len(order), dtype=kind)
        found = rank[coded.indices.to_numpy()]
        of_seen = np.zeros(len(self._seen), dtype=kind)
        of_seen[self._seen] = found[: len(met)]
        null = len(order) if self.nulls else 0
        return coded.dictionary.take(order), self._recodes(of_seen, found[len(met) :], null)

    def _recodes(self, of_seen: Codes, of_hashed: Codes, null: int) -> Iterator[Codes]:
        """The recode of each batch, from the codes of the integers met in offset batches and those of the used values
        of the hashed batches, one batch after another. The last slot of a hashed batch is the null's."""
        at = 0
        for chunk in self._chunks:
            if isinstance(chunk, _Offset):
                yield of_seen[chunk.low - self._low :]
            else:
                used = np.flatnonzero(chunk.used)
                recode = np.full(len(chunk.used) + 1, null, dtype=of_hashed.dtype)
                recode[used] = of_hashed[at : at + len(used)]
                at += len(used)
                yield recode


def encoded(name: str, array: pa.Array, table: str = "", kind: pa.DataType | None = None) -> Column:
    """The values of an array as a column: in one batch, of the array's type unless another is given."""
    encoder = ColumnEncoder(table, name, kind or array.type, len(array))
    encoder.add(array)
    return encoder.finish()


_DAY = 86_400
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Days from 1970 to the first of year 1 and to the last of year 9999."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _on_calendar(values: pa.Array) -> bool:
    """Whether sorted dates and times lie in the years 1 to 9999, and times of day in one day.

    Others are no text that could be read back, and some libraries crash at them.
    """
    kind = values.type
    if pa.types.is_date32(kind):
        low, high = _FIRST_DAY, _LAST_DAY
    elif pa.types.is_timestamp(kind):
        second = _PER_SECOND[kind.unit]
        low, high = _FIRST_DAY * _DAY * second, (_LAST_DAY + 1) * _DAY * second - 1
    elif pa.types.is_time(kind):
        low, high = 0, _DAY * _PER_SECOND[kind.unit] - 1
    else:
        return True
    numbers = values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return bool(low <= numbers[0].as_py() and numbers[-1].as_py() <= high)


def _integers(distances: NDArray[np.int64], low: int, kind: pa.DataType) -> pa.Array:
    """The integers at some distances from ``low``, which may lie beyond the signed range."""
    wide = np.uint64 if low >= 0 else np.int64
    return pa.array((distances.astype(wide) + wide(low)).astype(kind.to_pandas_dtype()), kind)


_BITS_TYPE = {2: "int16", 4: "int32", 8: "int64"}


def exact_values(values: pa.Array) -> pa.Array:
    """Values that are equal exactly when they are the same: floats by their bits, all else as it is."""
    return _bits_of(values) if pa.types.is_floating(values.type) else values


def _bits_of(array: pa.Array) -> pa.Array:
    return array.view(_BITS_TYPE[array.type.bit_width // 8])


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
def _offset(numbers, low, codes, seen):  # type: ignore[no-untyped-def]
    for i in range(len(numbers)):
        code = np.int64(numbers[i] - low)
        codes[i] = code
        seen[code] = True


@kernel
def _recode(codes, recode, out):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        out[i] = recode[codes[i]]


def as_text(values: pa.Array) -> pa.Array:
    """Values as text that :func:`recast` reads back: times with a zone in UTC, durations as numbers of their unit."""
    if pa.types.is_timestamp(values.type) and values.type.tz:
        local = values.view(pa.timestamp(values.type.unit)).cast(pa.string())
        return pc.binary_join_element_wise(local, "Z", "")
    return values.cast(pa.string())


def _from_text(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_time(kind):
        return pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp(kind.unit)).cast(kind)
    if pa.types.is_duration(kind):
        return texts.cast(pa.int64()).cast(kind)
    if pa.types.is_null(kind) and texts.null_count == len(texts):
        return pa.nulls(len(texts))
    try:
        return texts.cast(kind)
    except pa.ArrowNotImplementedError:  # a type that no text has, such as null where there are values
        raise ValueError(f"text cannot be read as {kind}") from None


def recast(column: Column, kind: pa.DataType, decimal: str = ".") -> Column:
    """A column of text as a column of ``kind``, its values sorted anew; ``ValueError`` if a value does not fit."""
    if column.type == kind:
        return column
    texts = column.values
    if decimal != "." and pa.types.is_floating(kind):
        texts = pc.replace_substring(texts, decimal, ".")
    typed = encoded(column.name, _from_text(texts, kind), kind=kind)
    return Column(column.name, typed.codes[column.codes], typed.values)


def type_named(name: str) -> pa.DataType:
    """The type that ``str(type)`` calls ``name``."""
    decimal = re.fullmatch(r"decimal(128|256)\((\d+), (-?\d+)\)", name)
    if decimal:
        make = pa.decimal128 if decimal[1] == "128" else pa.decimal256
        return make(int(decimal[2]), int(decimal[3]))
    zoned = re.fullmatch(r"timestamp\[(\w+), tz=(.+)\]", name)
    if zoned:
        return pa.timestamp(zoned[1], zoned[2])
    return pa.type_for_alias(name)


def chunks(rows: int, size: int = 1 << 20) -> Iterator[slice]:
    """Slices that cover ``rows`` rows."""
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))
