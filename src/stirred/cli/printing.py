"""What commands print: without control characters, and without failing when nobody reads on.

Text from files that somebody else wrote reaches standard output in many places. A control character in it could move
the cursor, or hide and overwrite lines, so each is written as an escape (``\\u001b``), which is also what JSON means by
it. A pipe that has ended (``| head``) is no failure of a command: what is left to print is dropped, and the exit code
is that of the work that was done.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from stirred._bounded_reading import UNPRINTED, plain

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 5_000


def without_controls(text: str) -> str:
    r"""The text with each control character as an escape; tabs and line feeds stay.

    >>> without_controls("one\n\x1b[2Ktwo")
    'one\n\\u001b[2Ktwo'
    """
    return UNPRINTED.sub(lambda found: found[0] if found[0] in "\t\n" else f"\\u{ord(found[0]):04x}", text)


class Printed(io.TextIOBase):
    """Standard output without control characters; it takes everything, also when the pipe has ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ended = False
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter is no failure

    def write(self, text: str) -> int:
        """Write a text, its control characters escaped."""
        return self.write_exactly(without_controls(text))

    def write_exactly(self, text: str) -> int:
        """Write a text as it is, for cells that go into a file or another program."""
        if not self._ended:
            try:
                self._stream.write(text)
            except BrokenPipeError:
                self._end()
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        if not self._ended:
            try:
                self._stream.flush()
            except BrokenPipeError:
                self._end()

    def _end(self) -> None:
        """Let what is still in a buffer go nowhere, since Python would fail on it when it exits."""
        self._ended = True
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):  # a stream without a file
            pass

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The file descriptor below."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Yes."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    @property
    def buffer(self) -> Any:
        """The bytes below, for libraries that look for them."""
        return getattr(self._stream, "buffer", None)


def show(table: pa.Table, by: Sequence[str] = ()) -> None:
    """Print a table as CSV: texts exactly where a file or a program takes them; to a person, one line for each row.
    Estimates that are no whole numbers have at most four decimals, but values of the columns ``by`` are data and stay
    as they are; files that a command writes have all decimals."""
    from stirred.tables.writing import csv_text

    table = _rounded(table, by)
    printed = sys.stdout
    if isinstance(printed, Printed) and not printed.isatty():
        printed.write_exactly(csv_text(table))
    else:
        printed.write(csv_text(table, one_line=True))


def _rounded(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """The table with floating numbers rounded to two decimals from 1000 on, to four below; noise hides the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, column in enumerate(table.schema):
        if pa.types.is_floating(column.type) and column.name not in by:
            largest = pc.max(pc.abs(table[at])).as_py() or 0.0
            table = table.set_column(at, column, pc.round(table[at], 2 if largest >= 1000 else 4))
    return table


def print_json(fields: object) -> None:
    """Print a value as JSON, indented, with letters as they are."""
    import json

    print(json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False))


def complain(text: object) -> None:
    """Print a line to standard error after "stirred: ", without control characters, and cut."""
    note(f"stirred: {text}")


def note(text: object) -> None:
    """Print a line to standard error, without control characters, and cut."""
    with contextlib.suppress(BrokenPipeError, UnicodeEncodeError):
        print(plain(text, _MOST), file=sys.stderr)
