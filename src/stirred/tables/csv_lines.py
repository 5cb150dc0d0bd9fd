"""Finds the line of a CSV file that cannot be read, for messages: they name lines, and never what is in them.

Arrow reads files quickly and does not say which line it could not read; here the file is read again, slowly, once that
is known. A line is counted as an editor does, from 1, the header included.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from stirred.tables.inputs import COMPRESSED

_AT_ONCE = 10_000


def csv_stream(file: Path, encoding: str) -> Any:
    """The bytes of a CSV file in UTF-8, decompressed; ``LookupError`` for what is no encoding of text."""
    compression = COMPRESSED.get(file.suffix.lower())
    stream = pa.input_stream(str(file), compression=compression)
    "a".encode(encoding)  # LookupError for what is no encoding of text
    if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig", "ascii"):  # Arrow skips a byte order mark
        return pa.transcoding_input_stream(stream, encoding, "utf-8")
    return stream


def ragged_line(file: Path, encoding: str, delimiter: str, quotes: bool, wanted: int) -> tuple[int, int, int]:
    """The first line whose number of fields is not ``wanted``: its number, its fields, and ``wanted``; all 0 if none is
    found. ``csv.Error`` if a field does not end."""
    for line, row in _rows(file, encoding, delimiter, quotes):
        if len(row) != wanted:
            return line, len(row), wanted
    return 0, 0, 0


def wrong_line(
    file: Path,
    encoding: str,
    delimiter: str,
    quotes: bool,
    column: int,
    fits: Callable[[Sequence[str]], bool],
    skipped: int = 1,
) -> int:
    """The first line whose cell in a column does not fit; 0 if none is found. ``skipped`` are lines of the header."""
    rows = islice(_rows(file, encoding, delimiter, quotes), skipped, None)
    while several := [(line, row[column]) for line, row in islice(rows, _AT_ONCE) if len(row) > column]:
        if not fits([cell for _, cell in several]):
            return next((line for line, cell in several if not fits([cell])), 0)
    return 0


def _rows(file: Path, encoding: str, delimiter: str, quotes: bool) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, with the number of the line on which it begins."""
    with csv_stream(file, encoding) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
        rows = csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE)
        before = 0
        for row in rows:
            if row:
                yield before + 1, row
            before = rows.line_num
