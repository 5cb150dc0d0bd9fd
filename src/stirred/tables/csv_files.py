"""Opens CSV files. Cells are text unless a type is given; only empty fields are null unless ``null_values`` says more.

Arrow's exceptions may quote a line of the file, so they are replaced in this module.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from stirred import errors
from stirred.tables.inputs import COMPRESSED, TYPES, Found, Input, InputOptions, check_columns

_HEADER_BYTES = 1 << 20
_CSV_BLOCK = 1 << 24


class _CountingQuotes(io.RawIOBase):
    """A stream that counts quotation marks: Arrow reads an unclosed quote to the end of the file without an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size if size >= 0 else None)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()


def _csv_stream(file: Path, encoding: str) -> Any:
    compression = COMPRESSED.get(file.suffix.lower())
    stream = pa.input_stream(str(file), compression=compression)
    "a".encode(encoding)  # LookupError for what is no encoding of text
    if codecs.lookup(encoding).name not in ("utf-8", "ascii"):
        return pa.transcoding_input_stream(stream, encoding, "utf-8")
    return stream


def _csv_header(table: str, file: Path, options: InputOptions, delimiter: str) -> list[str]:
    try:
        with _csv_stream(file, options.encoding) as stream:
            start = stream.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise errors.no_such_input(file) from None
    except LookupError:
        raise errors.plan_field([f"encoding: {options.encoding!r} is not known"]) from None
    except UnicodeError:
        raise errors.not_utf8(file) from None
    except (OSError, pa.ArrowException):
        raise errors.unreadable_format(file, "csv") from None
    if not start.strip():
        raise errors.empty_file(table)
    # The cut at the end of the block may fall inside a character; a header never reaches that far.
    text = start.decode("utf-8-sig", errors="replace")
    try:
        header = next(
            row
            for row in csv.reader(
                io.StringIO(text, newline=""),
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE,
            )
            if row
        )
    except (csv.Error, StopIteration):
        raise errors.unreadable_format(file, "csv") from None
    if any("\ufffd" in name for name in header):
        raise errors.not_utf8(file)
    check_columns(table, header)
    return header


def open_csv(found: Found) -> Input:
    """A CSV file, or several with one header."""
    table, files, options = found.table, found.files, found.options
    delimiter = options.delimiter or ("\t" if ".tsv" in Path(files[0].name.lower()).suffixes else ",")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise errors.plan_field(["delimiter: it is one plain character"])
    header = _csv_header(table, files[0], options, delimiter)
    if any(_csv_header(table, file, options, delimiter) != header for file in files[1:]):
        raise errors.mixed_formats(found.path)
    unknown = [name for name in options.types if name not in header]
    if unknown:
        raise errors.missing_columns(table, unknown)
    kinds = {name: TYPES[options.types.get(name, "text")] for name in header}
    parsed = {
        name: pa.dictionary(pa.int32(), pa.string()) if pa.types.is_string(kind) else kind
        for name, kind in kinds.items()
    }

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for file in files:
            convert = pa.csv.ConvertOptions(
                column_types={name: parsed[name] for name in columns} | {name: kinds[name] for name in identifiers},
                include_columns=[*columns, *identifiers],
                null_values=["", *options.null_values],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            try:
                with _CountingQuotes(_csv_stream(file, options.encoding)) as stream:
                    yield from pa.csv.open_csv(
                        stream,
                        read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK),
                        parse_options=pa.csv.ParseOptions(
                            delimiter=delimiter, newlines_in_values=True, quote_char='"' if options.quotes else False
                        ),
                        convert_options=convert,
                    )
                    if options.quotes and stream.quotes % 2:
                        raise errors.unclosed_quote(file)
            except (pa.ArrowException, OSError, UnicodeError, ValueError) as problem:
                raise _csv_problem(table, file, header, options, problem) from None

    return Input(table, "csv", kinds, read, found.bytes, state=found.state)


def _csv_problem(
    table: str, file: Path, header: Sequence[str], options: InputOptions, problem: Exception
) -> errors.StirredError:
    """Which of our messages fits what Arrow said; its own text may quote a line of the file, which must not mislead."""
    said = str(problem)
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+", said):
        return errors.ragged_csv(file)
    if isinstance(problem, UnicodeError) or re.match(r"In CSV column #\d+: [^']*invalid UTF8", said):
        return errors.not_utf8(file)
    named = re.match(r"In CSV column #(\d+): (Row #\d+: )?CSV conversion error to", said)
    if named and int(named[1]) < len(header):
        column = header[int(named[1])]
        return errors.wrong_type(table, column, options.types.get(column, "text"))
    if "Empty CSV" in said:
        return errors.empty_file(table)
    return errors.unreadable_format(file, "csv")
