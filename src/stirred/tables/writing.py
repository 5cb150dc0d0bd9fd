"""Writes tables chunk by chunk as Parquet, CSV or Arrow, and knows the forms that CSV files have.

Files carry names, types and cells. No metadata of the input, no index, no dictionary order but the sorted one or that
of an ordered categorical, and no time stamp is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._bounded_reading import has_controls
from stirred._display import withheld
from stirred._threads import ahead
from stirred.tables.columns import Column, Table, as_text
from stirred.tables.groups import Cells

_MANY_NUMBERS = 1 << 12
"""Distinct integers above which a Parquet file has no dictionary of them."""
_ROWS_AT_A_TIME = 1 << 14
EXTENSIONS = {"parquet": ".parquet", "csv": ".csv", "arrow": ".arrow"}
DELIMITERS = (",", ";", "\t", "|")
"""What separates fields in practice; other signs have to be named."""

TAB = "tab"
"""How a tab is written where control characters are not allowed, as in a plan."""


@dataclass(frozen=True)
class CsvStyle:
    """The form of a CSV file.

    >>> CsvStyle(";", "NA", ",").words
    "fields separated by ';', missing cells written as 'NA', decimal comma"
    """

    delimiter: str = ","
    null: str = ""
    """The text of a missing cell."""
    decimal: str = "."

    @property
    def words(self) -> str:
        """The form in words, as far as it is not the usual one."""
        parts = []
        if self.delimiter != ",":
            parts.append(f"fields separated by {'tabs' if self.delimiter == chr(9) else repr(self.delimiter)}")
        if self.null:
            parts.append(f"missing cells written as '{self.null}'")
        if self.decimal == ",":
            parts.append("decimal comma")
        return ", ".join(parts)

    def to_fields(self) -> dict[str, str]:
        """The form as a data dictionary states it."""
        return asdict(self) | {"delimiter": TAB if self.delimiter == "\t" else self.delimiter}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any] | None) -> CsvStyle:
        """The form that a data dictionary states; without one, the usual. ``ValueError`` if it is none."""
        if fields is None:
            return USUAL
        if not isinstance(fields, Mapping) or set(fields) != {"delimiter", "null", "decimal"}:
            raise ValueError("the form of a CSV file has a delimiter, a null and a decimal sign")
        style = cls(sign_of(fields["delimiter"]), fields["null"], fields["decimal"])
        if not (
            is_delimiter(style.delimiter)
            and isinstance(style.null, str)
            and style.decimal in (".", ",")
            and (style.null == "" or can_be_null(style.null, style.delimiter))
        ):
            raise ValueError("a CSV file cannot have this form")
        return style


USUAL = CsvStyle()


def sign_of(written: Any) -> Any:
    """The delimiter that a plan names; a tab is written as a word."""
    return "\t" if written == TAB else written


def is_delimiter(text: object) -> bool:
    """Whether fields can be separated by it: one plain character that is no quotation mark and no line end."""
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in '"\r\n\0'


def can_be_null(marker: str, delimiter: str) -> bool:
    """Whether a text can be written without quotation marks as a missing cell."""
    return 0 < len(marker) <= 100 and not has_controls(marker) and not set(marker) & {delimiter, '"'}


def likely_delimiter(names: list[str], used: str) -> str | None:
    """What separates the fields of a file that was read as one column, if its name tells.

    >>> likely_delimiter(["a;b;c"], ","), likely_delimiter(["a", "b;c"], ",")
    (';', None)
    """
    if len(names) != 1:
        return None
    counts = {sign: names[0].count(sign) for sign in DELIMITERS if sign != used and sign in names[0]}
    return max(counts, key=lambda sign: counts[sign]) if counts else None


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Cell:
    """One column of one chunk: codes of a column, or numbers that stand for themselves (new ids, counts)."""

    name: str
    codes: NDArray[np.integer]
    column: Column | None = None

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self.column.type if self.column is not None else pa.int64()

    @property
    def may_be_null(self) -> bool:
        """Whether the column has empty cells, in this chunk or another."""
        return self.column is not None and self.column.values.null_count > 0

    def array(self, kind: str, keep_text_coded: bool = False) -> pa.Array:
        """The values as an Arrow array for format ``kind``."""
        if self.column is None:
            return pa.array(self.codes)
        if self.column.is_categorical_in(kind):
            return self.column.decode_categorical(self.codes)
        if keep_text_coded and pa.types.is_string(self.kind) and not self.may_be_null:
            wide = self.codes.astype(np.int32, copy=False)
            return pa.DictionaryArray.from_arrays(pa.array(wide), self.column.values)
        return self.column.decode(self.codes)


Chunk = Sequence[Cell]


def counted_chunk(table: Table, counted: Cells) -> Chunk:
    """A table of counts as one chunk, the counts last."""
    named = [Cell(name, codes, table[name]) for name, codes in zip(counted.names, counted.codes, strict=True)]
    return [*named, Cell(counted.label, counted.counts.astype(np.int64))]


def write_table(path: Path, kind: str, chunks: Iterable[Chunk], style: CsvStyle = USUAL) -> None:
    """Write non-empty ``chunks`` to ``path`` in format ``kind``; ``style`` is for CSV."""
    if kind == "csv":
        _write_csv(path, ahead(iter(chunks)), style)
    else:
        {"parquet": _write_parquet, "arrow": _write_arrow}[kind](path, ahead(iter(chunks)))


def as_arrow(chunks: Iterable[Chunk]) -> pa.Table:
    """Chunks as one table in memory."""
    return pa.Table.from_batches([_batch(chunk, "arrow") for chunk in chunks])


def _batch(chunk: Chunk, kind: str) -> pa.RecordBatch:
    return pa.record_batch([cell.array(kind) for cell in chunk], names=[cell.name for cell in chunk])


def _write_parquet(path: Path, chunks: Iterator[Chunk]) -> None:
    first = next(chunks)
    # Parquet alone cannot express a time zone, a duration or a categorical; those need Arrow's schema beside it, and
    # plain text.
    needs_schema = any(
        pa.types.is_duration(cell.kind)
        or (pa.types.is_timestamp(cell.kind) and cell.kind.tz)
        or (cell.column is not None and cell.column.is_categorical_in("parquet"))
        for cell in first
    )

    def table(chunk: Chunk) -> pa.Table:
        arrays = [cell.array("parquet", keep_text_coded=not needs_schema) for cell in chunk]
        # Saying that a column has no empty cells spares readers and writer a mark for each cell.
        fields = [
            pa.field(cell.name, array.type, nullable=cell.may_be_null)
            for cell, array in zip(chunk, arrays, strict=True)
        ]
        return pa.table(arrays, schema=pa.schema(fields))

    numbered = [cell.name for cell in first if _better_as_numbers(cell)]
    coded = [cell.name for cell in first if cell.name not in numbered]
    counted = dict.fromkeys(numbered, "DELTA_BINARY_PACKED")
    current = table(first)
    with pq.ParquetWriter(
        path,
        current.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=coded,
        column_encoding=counted or None,
        # The least and greatest text of every page take half of the time, and nobody looks for rows by them.
        write_statistics=[cell.name for cell in first if not pa.types.is_string(cell.kind)],
        write_batch_size=_ROWS_AT_A_TIME,
        store_schema=needs_schema,
    ) as writer:
        writer.write_table(current)
        for chunk in chunks:
            writer.write_table(table(chunk))


def _better_as_numbers(cell: Cell) -> bool:
    """Whether differences of numbers take less time and space than a dictionary of them."""
    return cell.column is None or (pa.types.is_integer(cell.kind) and cell.column.cardinality > _MANY_NUMBERS)


def _write_csv(path: Path, chunks: Iterator[Chunk], style: CsvStyle) -> None:
    with path.open("wb") as file:
        for number, chunk in enumerate(chunks):
            frame = pl.from_arrow(_batch([_in_text(cell) for cell in chunk], "csv"))
            assert isinstance(frame, pl.DataFrame)
            frame.write_csv(
                file,
                include_header=number == 0,
                separator=style.delimiter,
                null_value=style.null,
                decimal_comma=style.decimal == ",",
            )


def csv_cells(values: pa.Array, style: CsvStyle) -> pa.Array:
    """Values as the text of cells in a CSV file, without quotation marks; null stays null."""
    if pa.types.is_floating(values.type):
        # One value on each line: how Polars writes a number when it is alone may differ from how it casts one.
        frame = pl.DataFrame({"": pl.from_arrow(values.fill_null(0.0))})
        lines = frame.write_csv(include_header=False, separator=";", decimal_comma=style.decimal == ",").splitlines()
        return pc.if_else(values.is_valid(), pa.array(lines, pa.string()), pa.scalar(None, pa.string()))
    return as_text(values)


def csv_text(table: pa.Table, *, one_line: bool = False) -> str:
    """A small table as CSV, its values written as in the CSV file of a release.

    ``one_line`` is for reading: line feeds in a value are then shown as an escape.
    """
    arrays = [one if _polars_writes(one.type) else as_text(one.combine_chunks()) for one in table.columns]
    if one_line:
        arrays = [pc.replace_substring(one, "\n", "\\n") if pa.types.is_string(one.type) else one for one in arrays]
    frame = pl.from_arrow(pa.table(arrays, names=table.column_names))
    assert isinstance(frame, pl.DataFrame)
    return frame.write_csv()


def _polars_writes(kind: pa.DataType) -> bool:
    """Whether Polars writes values of this type as they are read back; some others it cannot even hold."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date(kind)
    )


def _in_text(cell: Cell) -> Cell:
    """A cell whose values are text already, where Polars would write them otherwise than they are read back."""
    if cell.column is None or _polars_writes(cell.kind):
        return cell
    return Cell(cell.name, cell.codes, Column(cell.name, cell.column.codes[:0], as_text(cell.column.values)))


def _write_arrow(path: Path, chunks: Iterator[Chunk]) -> None:
    first = _batch(next(chunks), "arrow")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    writer: Any = pa.ipc.new_file(str(path), first.schema, options=options)
    with writer:
        writer.write_batch(first)
        for chunk in chunks:
            writer.write_batch(_batch(chunk, "arrow"))
