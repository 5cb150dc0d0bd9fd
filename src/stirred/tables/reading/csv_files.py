"""Opens CSV files. Cells are text unless a type is given; only empty fields are null unless ``null_values`` says more.

Columns that are given a type are read as text first, so that it is known which cells would be written otherwise.
Arrow's exceptions may quote a line of the file, so they are replaced in this module.

Arrow reads files quickly and does not say which line it could not read; for messages the file is then read again,
slowly. They name lines, and never what is in them. A line is counted as an editor does, from 1, the header included.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from stirred import errors
from stirred._bounded_reading import is_of_machine
from stirred.tables.reading.inputs import COMPRESSED, TYPES, Found, Input, InputOptions, Rewritten, check_columns
from stirred.tables.writing import CsvStyle, can_be_null, csv_cells, is_delimiter, likely_delimiter, sign_of

_AT_ONCE = 10_000


def csv_stream(file: Path, encoding: str) -> Any:
    """The bytes of a CSV file in UTF-8, decompressed; ``LookupError`` for what is no encoding of text."""
    compression = COMPRESSED.get(file.suffix.lower())
    stream = pa.input_stream(str(file), compression=compression)
    "a".encode(encoding)  # LookupError for what is no encoding of text
    if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig", "ascii"):  # Arrow skips a byte order mark
        return pa.transcoding_input_stream(stream, encoding, "utf-8")
    return stream


def _rows(file: Path, options: InputOptions, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, with the number of the line on which it begins; ``csv.Error`` if a field does not
    end."""
    with csv_stream(file, options.encoding) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        rows = csv.reader(text, delimiter=delimiter, quoting=_quoting(options))
        before = 0
        for row in rows:
            if row:
                yield before + 1, row
            before = rows.line_num


def _quoting(options: InputOptions) -> Any:
    return csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE


_HEADER_BYTES = 1 << 20
_SEEN_ROWS = 10_000
"""How many of the first rows are compared with the header, as far as they lie in the bytes that it is read from."""
_CSV_BLOCK = 1 << 24


class _CountingQuotes(io.RawIOBase):
    """A stream that counts quotation marks: Arrow reads an unclosed quote to the end of the file without an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.quotes = self.bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size if size >= 0 else None)
        self.quotes += data.count(b'"')
        self.bytes += len(data)
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


def _wait_until_released(stream: _CountingQuotes, alone: int) -> None:
    """Wait, a second at most, until Arrow's own threads have let go of a stream that they read ahead from.

    If Python ends while such a thread calls back, the process aborts, and its exit code is not the one it should be.
    """
    for _ in range(1_000):
        if sys.getrefcount(stream) <= alone + 1:  # one more for this function's argument
            return
        time.sleep(0.001)


_NOT_TEXT = {
    b"\x1f\x8b": ("a gzip file", "Name it {name}.gz, or unpack it."),
    b"\x28\xb5\x2f\xfd": ("a zstd file", "Name it {name}.zst, or unpack it."),
    b"\x04\x22\x4d\x18": ("an lz4 file", "Name it {name}.lz4, or unpack it."),
    b"BZh91AY": ("a bzip2 file", "Name it {name}.bz2, or unpack it."),
    b"PK\x03\x04": ("an Excel workbook or another zip file", "Save the sheet as CSV, or unpack the file."),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook of the older kind", "Save the sheet as CSV."),
    b"PAR1\x15": ("a Parquet file", 'Write format = "parquet" in [input], or name it .parquet.'),
}
"""First bytes of files that are no text, what they are, and what to do."""


def _require_text(file: Path) -> None:
    """Raise if the first bytes of a file are those of another format than its name says."""
    if file.suffix.lower() in COMPRESSED:
        return
    try:
        with file.open("rb") as opened:
            start = opened.read(8)
    except OSError:
        raise errors.no_such_input(file) from None
    for mark, (what, remedy) in _NOT_TEXT.items():
        if start.startswith(mark):
            raise errors.not_csv(file, what, remedy.format(name=file.name))


def _first_rows(table: str, file: Path, options: InputOptions, delimiter: str, most: int = 1) -> list[list[str]]:
    """The first row of a file, and those after it that are whole in its first bytes, ``most`` in all."""
    try:
        with csv_stream(file, options.encoding) as stream:
            start = stream.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise errors.no_such_input(file) from None
    except LookupError:
        raise errors.plan_field([f"encoding: {options.encoding!r} is not known"]) from None
    except UnicodeError:
        raise errors.not_utf8(file, options.encoding) from None
    except (OSError, pa.ArrowException) as problem:
        if is_of_machine(problem):
            raise
        raise errors.unreadable_format(file, "csv") from None
    if not start.strip():
        raise errors.empty_file(table)
    # The cut at the end of the block may fall inside a character; a header never reaches that far.
    text = start.decode("utf-8-sig", errors="replace")
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a field without an end; what comes before it is known
        split = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=_quoting(options))
        rows.extend(islice((row for row in split if row), most))
    if not rows:
        raise errors.unreadable_format(file, "csv")
    if any("\ufffd" in name for name in rows[0]):
        raise errors.not_utf8(file)
    return rows if len(start) < _HEADER_BYTES or len(rows) < 2 else rows[:-1]


def _names(table: str, file: Path, options: InputOptions, delimiter: str) -> list[str]:
    """The names of the columns: those of the header, or of the plan where it says that there is no header.

    Without a header the first record would become names, which are published as they are; so a first line that looks
    like a record is refused unless the plan says that it is a header.
    """
    first, *others = _first_rows(table, file, options, delimiter, _SEEN_ROWS)
    if options.delimiter is None and (likely := likely_delimiter(first, delimiter)) is not None:
        raise errors.one_column(table, likely)
    if options.header is False:
        if len(options.names) != len(first):
            raise errors.DataError(
                "names-of-columns",
                f"The plan says that table '{table}' has no header line and names {len(options.names):,} columns; its "
                f"first line has {len(first):,} fields.",
                f"List {len(first):,} names under names in the section of the plan that has its path (init: --names "
                "a,b,c), one for each column in their order, or correct the delimiter there.",
            )
        return list(options.names)
    if options.names:
        raise errors.plan_field(["names: they are for a file without a header line; write header = false too"])
    if options.header is None:
        numbers = [position for position, name in enumerate(first, 1) if _is_number(name)]
        values = [
            position
            for position, name in enumerate(first, 1)
            if name and any(len(row) >= position and row[position - 1] == name for row in others)
        ]
        if numbers or values:
            raise errors.header_is_record(table, len(first), numbers, values)
    return first


def _is_number(name: str) -> bool:
    """Whether a name has digits and no letter, as numbers, dates and many codes do.

    >>> [_is_number(name) for name in ("2010", "-1.5e+3", "25-00503", "2019-07-01", "pop2010", "_1", "-")]
    [True, True, True, True, False, False, False]
    """
    without_exponent = re.sub(r"(?<=\d)[eE](?=[+-]?\d+$)", "", name.strip())
    return any(sign.isdigit() for sign in name) and not any(sign.isalpha() or sign == "_" for sign in without_exponent)


def open_csv(found: Found) -> Input:
    """A CSV file, or several with one header, or with none."""
    table, files, options = found.table, found.files, found.options
    delimiter = sign_of(options.delimiter) or usual_delimiter(files[0])
    if not is_delimiter(delimiter):
        raise errors.plan_field(['delimiter: it is one plain character, or "tab"'])
    if options.decimal not in (".", ",") or options.decimal == delimiter:
        raise errors.plan_field(['decimal: it is "." or ",", and not the delimiter'])
    for file in files:
        _require_text(file)
    header = _names(table, files[0], options, delimiter)
    check_columns(table, header)
    for file in files[1:]:
        [first] = _first_rows(table, file, options, delimiter)
        if len(first) != len(header) or (options.header is not False and first != header):
            raise errors.mixed_formats(found.path)
    unknown = [name for name in options.types if name not in header]
    if unknown:
        raise errors.missing_columns(table, unknown, header)
    kinds = {name: TYPES[options.types.get(name, "text")] for name in header}
    rewritten: dict[str, Rewritten] = {}
    cells = _Cells(table, options, kinds, CsvStyle(delimiter, decimal=options.decimal), rewritten)

    come = [0]  # through so many bytes of the files

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rewritten.clear()
        come[0] = 0
        coded = pa.dictionary(pa.int32(), pa.string())
        for file in files:
            cells.file = file
            convert = pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, coded) | {name: cells.parsed(name) for name in identifiers},
                include_columns=[*columns, *identifiers],
                null_values=["", *options.null_values],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            try:
                with _CountingQuotes(csv_stream(file, options.encoding)) as stream:
                    alone, start = sys.getrefcount(stream), come[0]
                    try:
                        reader = pa.csv.open_csv(
                            stream,
                            read_options=pa.csv.ReadOptions(
                                block_size=_CSV_BLOCK, column_names=header if options.header is False else None
                            ),
                            parse_options=pa.csv.ParseOptions(
                                delimiter=delimiter,
                                newlines_in_values=True,
                                quote_char='"' if options.quotes else False,
                            ),
                            convert_options=convert,
                        )
                        for batch in reader:
                            come[0] = start + stream.bytes
                            yield cells.of(batch)
                    except Exception:
                        reader = None
                        _wait_until_released(stream, alone)
                        raise
                    if options.quotes and stream.quotes % 2:
                        raise errors.unclosed_quote(file)
            except (pa.ArrowException, OSError, UnicodeError, ValueError) as problem:
                if is_of_machine(problem):
                    raise
                raise _csv_problem(table, file, header, options, delimiter, problem) from None

    style = CsvStyle(delimiter, _null_marker(options, delimiter), options.decimal)
    plain = not any(COMPRESSED.get(file.suffix.lower()) for file in files)
    return Input(
        table, "csv", kinds, read, found.bytes, state=found.state, style=style, rewritten=rewritten,
        bytes_read=(lambda: come[0]) if plain else None,
    )  # fmt: skip


def usual_delimiter(file: Path) -> str:
    """What separates the fields of a file where nobody says: tabs if its name says so, else commas."""
    return "\t" if ".tsv" in Path(file.name.lower()).suffixes else ","


def _null_marker(options: InputOptions, delimiter: str) -> str:
    """What a release writes for a missing cell: the first of ``null_values``, where it can be written plainly."""
    first = next(iter(options.null_values), "")
    return first if can_be_null(first, delimiter) else ""


class _Cells:
    """Turns the text of cells into values of their types, and nulls that were quoted into nulls."""

    def __init__(
        self,
        table: str,
        options: InputOptions,
        kinds: Mapping[str, pa.DataType],
        style: CsvStyle,
        rewritten: dict[str, Rewritten],
    ) -> None:
        self._table, self._options, self._kinds, self._style, self._rewritten = table, options, kinds, style, rewritten
        self.file: Path | None = None
        """The file that is being read, for messages."""
        self._nulls = pa.array(list(options.null_values), pa.string()) if options.quotes else pa.array([], pa.string())

    def parsed(self, identifier: str) -> pa.DataType:
        """The type that Arrow reads an identifier as; others than plain whole numbers are read as text first."""
        kind = self._kinds[identifier]
        return kind if pa.types.is_integer(kind) and not len(self._nulls) else pa.string()

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with the values of each column."""
        arrays = [self._values(name, array) for name, array in zip(batch.schema.names, batch.columns, strict=True)]
        return pa.record_batch(arrays, names=batch.schema.names)

    def _values(self, name: str, array: pa.Array) -> pa.Array:
        kind = self._kinds[name]
        if array.type == kind and not pa.types.is_string(kind):
            return array
        coded = pa.types.is_dictionary(array.type)
        texts = array.dictionary if coded else array
        if len(self._nulls) and pc.any(named := pc.is_in(texts, value_set=self._nulls)).as_py():
            texts = pc.if_else(named, pa.scalar(None, pa.string()), texts)
        if not pa.types.is_string(kind):
            values = self._typed(name, texts, kind)
            if not coded:
                return values
            self._count_rewritten(name, array.indices, texts, values)
            return values.take(array.indices)
        if texts is (array.dictionary if coded else array) or not coded:
            return texts if not coded else array
        return texts.take(array.indices).dictionary_encode(null_encoding="mask")

    def _typed(self, name: str, texts: pa.Array, kind: pa.DataType) -> pa.Array:
        try:
            return typed(texts, kind, self._style.decimal)
        except ValueError:
            line = self.file and _wrong_line(self.file, self._options, self._style.delimiter, list(self._kinds), name)
            raise errors.wrong_type(self._table, name, self._options.types[name], self.file, line or 0) from None

    def _count_rewritten(self, name: str, indices: pa.Array, texts: pa.Array, values: pa.Array) -> None:
        written = csv_cells(values, self._style)
        other = pc.fill_null(pc.not_equal(written, texts), False)
        if not pc.any(other).as_py():
            return
        cells = np.bincount(indices.drop_null().to_numpy(), minlength=len(texts))
        in_text = int(cells[other.to_numpy(zero_copy_only=False)].sum())
        if pa.types.is_floating(values.type):
            whole = pc.replace_substring_regex(written, f"[{self._style.decimal}]0$", "")
            other = pc.and_(other, pc.fill_null(pc.not_equal(whole, texts), False))
        lost = 0 if pa.types.is_boolean(values.type) else int(cells[other.to_numpy(zero_copy_only=False)].sum())
        before = self._rewritten.get(name, Rewritten())
        self._rewritten[name] = Rewritten(before.in_text + in_text, before.lost + lost)


_BOOLEANS = {"1": True, "true": True, "True": True, "TRUE": True}
_BOOLEANS |= {"0": False, "false": False, "False": False, "FALSE": False}


def typed(texts: pa.Array, kind: pa.DataType, decimal: str = ".") -> pa.Array:
    """Texts as values of a type; ``ValueError`` if one is none.

    >>> typed(pa.array(["1,5", None]), pa.float64(), ",").to_pylist()
    [1.5, None]
    """
    if pa.types.is_boolean(kind):
        known = pc.index_in(texts, value_set=pa.array(list(_BOOLEANS)))
        if known.null_count > texts.null_count:
            raise ValueError
        return pa.array(list(_BOOLEANS.values())).take(known)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        texts = pc.utf8_trim(texts, characters=" \t")
    if pa.types.is_floating(kind) and decimal == ",":
        if pc.any(pc.match_substring(texts, ".")).as_py():
            raise ValueError
        texts = pc.replace_substring(texts, ",", ".")
    return texts.cast(kind)


def _wrong_line(file: Path, options: InputOptions, delimiter: str, header: Sequence[str], column: str) -> int:
    """The first line whose cell in a column is not of the type that the plan gives it; 0 if none is found."""
    kind, empty = TYPES[options.types.get(column, "text")], {"", *options.null_values}

    def fits(cells: Sequence[str]) -> bool:
        try:
            typed(pa.array([None if cell in empty else cell for cell in cells], pa.string()), kind, options.decimal)
        except ValueError:
            return False
        return True

    at = header.index(column)
    with contextlib.suppress(csv.Error):
        rows = islice(_rows(file, options, delimiter), 0 if options.header is False else 1, None)
        while several := [(line, row[at]) for line, row in islice(rows, _AT_ONCE) if len(row) > at]:
            if not fits([cell for _, cell in several]):
                return next((line for line, cell in several if not fits([cell])), 0)
    return 0


def _csv_problem(
    table: str, file: Path, header: Sequence[str], options: InputOptions, delimiter: str, problem: Exception
) -> errors.StirredError:
    """Which of our messages fits what Arrow said; its own text may quote a line of the file, which must not mislead."""
    said = str(problem)
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+", said):
        try:
            counted = ((line, len(row)) for line, row in _rows(file, options, delimiter))
            line, fields = next((one for one in counted if one[1] != len(header)), (0, 0))
            return errors.ragged_csv(file, line, fields, len(header))
        except csv.Error:  # a field without an end
            return errors.unclosed_quote(file)
    if isinstance(problem, UnicodeError) or re.match(r"In CSV column #\d+: [^']*invalid UTF8", said):
        return errors.not_utf8(file, options.encoding)
    named = re.match(r"In CSV column #(\d+): (Row #\d+: )?CSV conversion error to", said)
    if named and int(named[1]) < len(header):
        column = header[int(named[1])]
        kind = options.types.get(column, "text")
        return errors.wrong_type(table, column, kind, file, _wrong_line(file, options, delimiter, header, column))
    if "straddling object" in said:
        return errors.DataError(
            "line-too-long",
            f"{file} has a line longer than {_CSV_BLOCK >> 20} MiB.",
            "Look for a quotation mark that is not closed (or write quotes = false in [input]), or shorten the line.",
        )
    if "Empty CSV" in said:
        return errors.empty_file(table)
    return errors.unreadable_format(file, "csv")
