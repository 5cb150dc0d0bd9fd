"""Opens the data that a user gives: files of many formats, and frames in memory.

An :class:`Input` knows its columns and yields Arrow record batches of those asked for. What the libraries below say
about bad files may quote cells, so their exceptions never get past this folder.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa

from stirred import errors
from stirred._bounded_reading import has_controls
from stirred._display import withheld
from stirred.tables.labelled_files import Labels
from stirred.tables.writing import USUAL, CsvStyle

TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas",
    ".sav": "spss",
    ".zsav": "spss",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
MOST_ROWS = (1 << 32) - 1
"""Rows are numbered in 32 bits."""
MOST_COLUMNS = 10_000
"""How many columns a table may have; each costs work and memory of its own, however short the table is."""


Told = Callable[[float], None]
"""Is told the share of the work that is done."""


@dataclass(frozen=True)
class InputOptions:
    """How to read a file; the options of a plan's ``[input]``."""

    format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    null_values: Sequence[str] = ()
    delimiter: str | None = None
    encoding: str = "utf-8"
    quotes: bool = True
    """Whether quotation marks enclose cells; false takes them as they are."""
    decimal: str = "."
    """The sign between the whole and the fractional part of numbers."""
    header: bool | None = None
    """Whether the first line of a CSV file has the names of its columns. None: it should, and is refused if it looks
    like a record."""
    names: Sequence[str] = ()
    """The names of the columns of a CSV file without a header line."""


@dataclass(frozen=True)
class Rewritten:
    """How many cells of a column would be written otherwise than they stand in a text file, because of its type."""

    in_text: int = 0
    """In a text file: 2 becomes 2.0, TRUE becomes true."""
    lost: int = 0
    """In files that have types of their own too: nobody can tell 01 from 1, or 1.50 from 1.5."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Input:
    """Something that can be read more than once, column by column.

    ``format`` is the format a release of it is written in by default; ``native`` rebuilds the kind of frame that
    came in, where a frame came in.
    """

    table: str
    format: str
    kinds: Mapping[str, pa.DataType]
    read: Callable[[Sequence[str], Sequence[str]], Iterator[pa.RecordBatch]]
    bytes_on_disk: int = 0
    rows: int | None = None
    """How many rows there are, where that is known without reading them."""
    native: Callable[[pa.Table], Any] | None = None
    index: tuple[str, ...] = ()
    """Names in the index of a pandas frame, which are no columns."""
    state: Callable[[], object] = lambda: None
    since: object = None
    """The state when the input was opened: whatever is read later must be of the same moment."""
    style: CsvStyle = USUAL
    """How a CSV release of it is written by default."""
    labels: Labels | None = None
    """Labels of a Stata, SPSS or SAS file, where a release can keep them."""
    rewritten: dict[str, Rewritten] = field(default_factory=dict)
    """By column, how many of the cells read so far would be written otherwise than they stand in the file."""
    bytes_read: Callable[[], int | None] | None = None
    """How many bytes of the files the reading under way has come through; None where nobody knows."""
    most_rows: int | None = None
    """How many rows there may be: one more is an error, raised before the batch that holds it is given out."""

    def batches(
        self, columns: Sequence[str], identifiers: Sequence[str] = (), told: Told | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Batches of these columns; an error if the files change while they are read, or have too many rows.

        ``identifiers`` are columns of mostly distinct values, for which a dictionary would only be in the way. ``told``
        is told the share that is read, by rows or else by bytes, where it is known.
        """
        rows = 0
        for batch in self.read(columns, identifiers):
            rows += batch.num_rows
            if told is not None and (done := self._share(rows)) is not None:
                told(done)
            if self.most_rows is not None and rows > self.most_rows:
                raise errors.more_rows_than_expected(self.table, self.most_rows)
            yield batch
        self.require_unchanged()

    def _share(self, rows: int) -> float | None:
        """The share that is read when so many rows are, or so many bytes of a file that is not compressed."""
        if self.rows:
            return rows / self.rows
        read = None if self.bytes_read is None else self.bytes_read()
        return None if read is None or not self.bytes_on_disk else min(1.0, read / self.bytes_on_disk)

    def require_unchanged(self) -> None:
        """Raise if the files are not as they were when they were opened."""
        if self.state() != self.since:
            raise errors.changed_while_reading(f"the input of table '{self.table}'")


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Found:
    """Files of one format that are not opened yet."""

    table: str
    path: Path
    files: list[Path]
    kind: str
    options: InputOptions
    bytes: int
    state: Callable[[], object]
    """Sizes and times of the files, to be compared before and after reading."""


_OPENERS = {
    "csv": ("stirred.tables.reading.csv_files", "open_csv"),
    "parquet": ("stirred.tables.reading.typed_files", "open_columnar"),
    "arrow": ("stirred.tables.reading.typed_files", "open_columnar"),
    "stata": ("stirred.tables.reading.typed_files", "open_statistical"),
    "sas": ("stirred.tables.reading.typed_files", "open_statistical"),
    "spss": ("stirred.tables.reading.typed_files", "open_statistical"),
}


def open_input(table: str, data: object, options: InputOptions | None = None, *, most_rows: int | None = None) -> Input:
    """Open a path (a file, a folder, a glob) or a pandas, polars or pyarrow frame as table ``table``.

    ``most_rows`` is for tables that somebody else wrote: one with more rows is refused, at once where the file states
    its number of rows, else after that many have been read. A few megabytes can hold a billion rows.
    """
    options = options or InputOptions()
    if isinstance(data, str | os.PathLike):
        opened = _open_path(table, Path(data), options)
    else:
        from stirred.tables.reading.frames import open_frame

        opened = open_frame(table, data)
    if most_rows is not None and opened.rows is not None and opened.rows > most_rows:
        raise errors.more_rows_than_expected(table, most_rows)
    return replace(opened, most_rows=most_rows)


def shares(inputs: Sequence[Input], told: Told) -> list[Told]:
    """For each of several inputs that are read one after another whom to tell its share; ``told`` gets that of all."""
    sizes = [max(1, one.bytes_on_disk) for one in inputs]
    before = [sum(sizes[:at]) for at in range(len(sizes))]

    def of(start: int, size: int) -> Told:
        return lambda done: told((start + done * size) / sum(sizes))

    return [of(start, size) for start, size in zip(before, sizes, strict=True)]


def check_columns(table: str, names: Sequence[str]) -> None:
    """Raise if a column name is empty or repeated. Messages give positions: without a header, names are cells."""
    if len(names) > MOST_COLUMNS:
        raise errors.DataError(
            "too-many-columns",
            f"Table '{table}' has {len(names):,} columns; at most {MOST_COLUMNS:,} can be handled.",
            "Leave out columns, or turn them into rows.",
        )
    first: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if not name:
            raise errors.nameless_column(table, position)
        if has_controls(name):
            raise errors.column_name(table, position)
        if name in first:
            raise errors.duplicate_columns(table, first[name], position)
        first[name] = position


def columns_of(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Names and types of a schema's columns."""
    return {item.name: item.type for item in schema}


def find_files(path: Path) -> list[Path]:
    """The files that a path, a folder or a glob stands for, hidden files and folders left out."""
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            found = [file for file in path.rglob("*") if file.is_file()]
        else:
            named = glob.glob(str(path), recursive=True)  # noqa: PTH207
            found = [Path(name) for name in named if Path(name).is_file()]
        root = root_of(path)
    except (OSError, ValueError):  # a name that no file system takes, or a folder that may not be read
        raise errors.no_such_input(path) from None
    shown = [file for file in found if not any(_is_hidden(part) for part in file.relative_to(root).parts)]
    if not shown and path.is_dir():
        raise errors.DataError(
            "empty-folder",
            f"The folder {path} has no file to read: it is empty, or all files in it are hidden ('.name', '_name').",
            "Check the path, or put the files there; a path in a plan starts from the folder of the plan.",
        )
    if not shown:
        raise errors.no_such_input(path)
    return sorted(shown)


def root_of(path: Path) -> Path:
    """The folder that a file, a folder or a glob starts from; what lies above it says nothing about the data."""
    if path.is_dir():
        return path
    if path.is_file():
        return path.parent
    return Path(*takewhile(lambda part: not re.search(r"[*?[]", part), path.parts[:-1]))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def format_of(path: Path) -> tuple[str, str | None] | None:
    """(format, compression) told by a file's name, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = COMPRESSED.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    return (kind, compression) if kind else None


def state_of(table: str, path: Path) -> object:
    """Sizes and times of the files that a path stands for, to be compared before and after reading."""
    try:
        stats = [(file, file.stat()) for file in find_files(path)]
    except (OSError, errors.DataError):
        raise errors.changed_while_reading(f"the input of table '{table}'") from None
    return [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats]


def _open_path(table: str, path: Path, options: InputOptions) -> Input:
    files = find_files(path)
    kinds = {format_of(file) for file in files}
    if options.format:
        kind = options.format
    elif kinds == {None}:
        raise errors.unknown_format(path)
    else:
        found = {entry[0] for entry in kinds if entry}
        if len(found) != 1 or None in kinds:
            raise errors.mixed_formats(path)
        kind = found.pop()
    if kind not in _OPENERS:
        raise errors.unknown_format(path)

    def state() -> object:
        return state_of(table, path)

    since = state()
    size = sum(file.stat().st_size for file in files)
    module, opener = _OPENERS[kind]
    opened: Input = getattr(import_module(module), opener)(Found(table, path, files, kind, options, size, state))
    return replace(opened, since=since)
