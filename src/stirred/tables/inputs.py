"""Opening what a user brings: CSV, Parquet, Arrow, Stata, SAS and SPSS files, and frames in memory.

An :class:`Input` knows its columns and yields Arrow record batches of those asked for. CSV cells are carried as text
unless a type is given, so that county 001 stays 001, and only the empty field is null unless ``null_values`` says
otherwise. What the libraries below say about bad files may quote cells, so their exceptions never get past this
module.
"""

from __future__ import annotations

import codecs
import csv
import glob
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs

from stirred import errors
from stirred.tables.columns import plain_type

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
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_HEADER_BYTES = 1 << 20
_CSV_BLOCK = 1 << 24


@dataclass(frozen=True)
class InputOptions:
    """How a file is to be read. All of it can be said in a plan's ``[input]``."""

    format: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    null_values: Sequence[str] = ()
    delimiter: str | None = None
    encoding: str = "utf-8"


@dataclass(frozen=True, eq=False)
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
    native: Callable[[pa.Table], Any] | None = None
    state: Callable[[], object] = lambda: None

    def batches(self, columns: Sequence[str], identifiers: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Batches of these columns; an error if the files change while they are read.

        ``identifiers`` are columns of mostly distinct values, for which a dictionary would only be in the way.
        """
        before = self.state()
        yield from self.read(columns, identifiers)
        if self.state() != before:
            raise errors.changed_while_reading(f"the input of table '{self.table}'")


def open_input(table: str, data: object, options: InputOptions | None = None) -> Input:
    """Open a path (a file, a folder, a glob) or a pandas, polars or pyarrow frame as table ``table``."""
    options = options or InputOptions()
    if isinstance(data, str | os.PathLike):
        opened = _open_path(table, Path(data), options)
    else:
        from stirred.tables.frames import open_frame

        opened = open_frame(table, data)
    return opened


def check_columns(table: str, names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if repeated:
        raise errors.duplicate_columns(table, repeated)


def find_files(path: Path) -> list[Path]:
    """The files that a path, a folder or a glob stands for, hidden files and folders left out."""
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.is_file()]
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()]  # noqa: PTH207
    root = _root(path)
    shown = [file for file in found if not any(_is_hidden(part) for part in file.relative_to(root).parts)]
    if not shown:
        raise errors.no_such_input(path)
    return sorted(shown)


def _root(path: Path) -> Path:
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
    compression = _COMPRESSED.get(suffixes[-1]) if suffixes else None
    if compression:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    return (kind, compression) if kind else None


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
    openers: dict[str, Callable[..., Input]] = {
        "csv": _open_csv,
        "parquet": _open_columnar,
        "arrow": _open_columnar,
        "stata": _open_statistical,
        "sas": _open_statistical,
        "spss": _open_statistical,
    }
    if kind not in openers:
        raise errors.unknown_format(path)

    def state() -> object:
        try:
            stats = [(file, file.stat()) for file in files]
        except OSError:
            raise errors.changed_while_reading(f"the input of table '{table}'") from None
        return [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in stats]

    size = sum(file.stat().st_size for file in files)
    return openers[kind](table, path, files, kind, options, size, state)


# -- CSV -----------------------------------------------------------------------------------------------------


def _csv_stream(file: Path, encoding: str) -> Any:
    compression = _COMPRESSED.get(file.suffix.lower())
    stream = pa.input_stream(str(file), compression=compression)
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
        header = next(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row)
    except (csv.Error, StopIteration):
        raise errors.unreadable_format(file, "csv") from None
    if any("\ufffd" in name for name in header):
        raise errors.not_utf8(file)
    check_columns(table, header)
    return header


def _open_csv(
    table: str,
    path: Path,
    files: list[Path],
    kind: str,
    options: InputOptions,
    size: int,
    state: Callable[[], object],
) -> Input:
    delimiter = options.delimiter or ("\t" if ".tsv" in Path(files[0].name.lower()).suffixes else ",")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise errors.plan_field(["delimiter: it is one plain character"])
    header = _csv_header(table, files[0], options, delimiter)
    if any(_csv_header(table, file, options, delimiter) != header for file in files[1:]):
        raise errors.mixed_formats(path)
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
                with _csv_stream(file, options.encoding) as stream:
                    yield from pa.csv.open_csv(
                        stream,
                        read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK),
                        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                        convert_options=convert,
                    )
            except (pa.ArrowException, OSError, UnicodeError, ValueError) as problem:
                raise _csv_problem(table, file, header, options, problem) from None

    return Input(table, "csv", kinds, read, size, None, state)


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


# -- Parquet and Arrow -----------------------------------------------------------------------------------------


def _open_columnar(
    table: str,
    path: Path,
    files: list[Path],
    kind: str,
    options: InputOptions,
    size: int,
    state: Callable[[], object],
) -> Input:
    arrow_format = pa.dataset.IpcFileFormat() if kind == "arrow" else pa.dataset.ParquetFileFormat()
    root = _root(path).absolute()
    names = [str(file.absolute()) for file in files]
    try:
        own = [arrow_format.inspect(name, pa.fs.LocalFileSystem()).names for name in names]
        check_columns(table, own[0])
        if any(set(columns) != set(own[0]) for columns in own):
            raise errors.mixed_formats(path)
        partitioning = _partitioning(files, _root(path), own[0])
        plain = pa.dataset.dataset(names, format=arrow_format, partitioning=partitioning, partition_base_dir=str(root))
        schema = plain.schema
    except (pa.ArrowException, OSError, ValueError):
        raise errors.unreadable_format(path, kind) from None
    if options.types:
        raise errors.plan_field([f"types: {kind} files carry their own types"])

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        try:
            source = plain
            if kind == "parquet":
                texts = [name for name in columns if pa.types.is_string(plain_type(schema.field(name).type))]
                reading = pa.dataset.ParquetFileFormat(dictionary_columns=texts)
                source = pa.dataset.dataset(
                    names, schema=None, format=reading, partitioning=partitioning, partition_base_dir=str(root)
                )
            wanted = [*columns, *identifiers]
            yield from source.scanner(columns=wanted, batch_size=1 << 18, batch_readahead=4).to_batches()
        except (pa.ArrowException, OSError, ValueError, KeyError):
            raise errors.unreadable_format(path, kind) from None

    return Input(table, "parquet" if kind == "parquet" else "arrow", _kinds(table, schema), read, size, None, state)


def _partitioning(files: Sequence[Path], root: Path, own: Sequence[str]) -> pa.dataset.Partitioning:
    """Folders called key=value as columns that the files themselves lack: whole numbers where all look it, or text."""
    found: dict[str, list[str]] = {}
    for file in files:
        for part in file.relative_to(root).parts[:-1]:
            key, equals, value = part.partition("=")
            if equals and unquote(key) not in own:
                found.setdefault(unquote(key), []).append(value)
    whole = re.compile(r"0|-?[1-9]\d{0,17}")
    return pa.dataset.partitioning(
        pa.schema(
            [
                (key, pa.int64() if all(whole.fullmatch(value) for value in values) else pa.string())
                for key, values in found.items()
            ]
        ),
        flavor="hive",
    )


def _with_integers(table: pa.Table) -> pa.Table:
    """Whole numbers as integers: these formats store every number as a float, and floats cannot match."""
    for at, item in enumerate(table.schema):
        if pa.types.is_floating(item.type):
            column = table.column(at)
            if bool(pc.all(pc.equal(pc.floor(column), column)).as_py()) and bool(pc.all(pc.is_finite(column)).as_py()):
                table = table.set_column(at, item.name, column.cast(pa.int64()))
    return table


def _kinds(table: str, schema: pa.Schema) -> dict[str, pa.DataType]:
    return {item.name: item.type for item in schema}


# -- Stata, SAS, SPSS -------------------------------------------------------------------------------------------


def _open_statistical(
    table: str,
    path: Path,
    files: list[Path],
    kind: str,
    options: InputOptions,
    size: int,
    state: Callable[[], object],
) -> Input:
    try:
        import pyreadstat
    except ImportError:
        raise errors.needs_extra(kind) from None
    readers = {
        "stata": pyreadstat.read_dta,
        "spss": pyreadstat.read_sav,
        "sas": pyreadstat.read_xport if files[0].suffix.lower() == ".xpt" else pyreadstat.read_sas7bdat,
    }
    if len(files) != 1:
        raise errors.mixed_formats(path)
    before = state()
    try:
        frame, _ = readers[kind](str(files[0]))
        whole = _with_integers(pa.Table.from_pandas(frame, preserve_index=False))
    except Exception:
        raise errors.unreadable_format(path, kind) from None
    if state() != before:
        raise errors.changed_while_reading(f"the input of table '{table}'")
    check_columns(table, whole.schema.names)
    for column, wanted in options.types.items():  # SPSS, for one, stores every number as a floating-point one
        if column not in whole.schema.names:
            raise errors.missing_columns(table, [column])
        try:
            typed = whole.column(column).cast(TYPES[wanted])
        except pa.ArrowException:
            raise errors.wrong_type(table, column, wanted) from None
        whole = whole.set_column(whole.schema.get_field_index(column), column, typed)

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from whole.select([*columns, *identifiers]).to_batches()

    return Input(table, "parquet", _kinds(table, whole.schema), read, size, None, state)
