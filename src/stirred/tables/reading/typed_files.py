"""Opens Parquet and Arrow files: one file, a folder, or a glob.

Stata, SAS and SPSS files, through the optional part ``stata-sas-spss``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet as pq

from stirred import errors
from stirred._bounded_reading import is_of_machine
from stirred._threads import ahead
from stirred.tables.columns import plain_type
from stirred.tables.labelled_files import labels_of
from stirred.tables.reading.inputs import MOST_ROWS, TYPES, Found, Input, check_columns, columns_of, root_of

_BATCH_ROWS = 1 << 19
_WRITE_AS_DECLARED = ("parquet-cpp-arrow", "Polars")
"""Writers of Parquet files whose dictionaries of ordered categoricals are in the declared order."""


def open_columnar(found: Found) -> Input:
    """Parquet or Arrow files of one schema, folders called key=value being columns."""
    table, path, files, kind = found.table, found.path, found.files, found.kind
    arrow_format = pa.dataset.IpcFileFormat() if kind == "arrow" else pa.dataset.ParquetFileFormat()
    root = root_of(path).absolute()
    names = [str(file.absolute()) for file in files]
    try:
        own = [arrow_format.inspect(name, pa.fs.LocalFileSystem()).names for name in names]
        check_columns(table, own[0])
        if any(set(columns) != set(own[0]) for columns in own):
            raise errors.mixed_formats(path)
        partitioning = _partitioning(files, root_of(path), own[0])
        plain = pa.dataset.dataset(names, format=arrow_format, partitioning=partitioning, partition_base_dir=str(root))
        schema, rows = plain.schema, plain.count_rows()
        kinds = columns_of(schema) if kind == "arrow" else _parquet_kinds(schema, names)
    except (pa.ArrowException, OSError, ValueError) as problem:
        if is_of_machine(problem):
            raise
        raise errors.unreadable_format(path, kind) from None
    if found.options.types:
        raise errors.plan_field([f"types: {kind} files carry their own types"])
    if not 0 <= rows <= MOST_ROWS:
        raise errors.too_many_records(table, MOST_ROWS)
    reading = _read_parquet if kind == "parquet" else _read_arrow

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = [*columns, *identifiers]
        texts = [name for name in columns if pa.types.is_string(plain_type(schema.field(name).type))]
        try:
            for fragment in plain.get_fragments():
                keys = pa.dataset.get_partition_keys(fragment.partition_expression)
                own_texts = [name for name in texts if name not in keys]
                for batch in reading(fragment.path, [name for name in wanted if name not in keys], own_texts):
                    arrays = [
                        pa.repeat(pa.scalar(keys[name], schema.field(name).type), batch.num_rows)
                        if name in keys
                        else _as_declared(batch.column(name), schema.field(name).type)
                        for name in wanted
                    ]
                    yield pa.record_batch(arrays, names=wanted)
        except (pa.ArrowException, OSError, ValueError, KeyError) as problem:
            if is_of_machine(problem):
                raise
            raise errors.unreadable_format(path, kind) from None

    return Input(
        table,
        "parquet" if kind == "parquet" else "arrow",
        kinds,
        read,
        found.bytes,
        rows,
        state=found.state,
    )


def _parquet_kinds(schema: pa.Schema, files: Sequence[str]) -> dict[str, pa.DataType]:
    """Names and types of Parquet files' columns; dictionaries are ordered only where their order was declared.

    Parquet does not say what the order of a dictionary means: most writers list values as they meet them, which would
    tell of the order of the rows. Arrow (so pandas) and Polars list those of an ordered categorical as declared.
    """
    found = columns_of(schema)
    ordered = {name for name, kind in found.items() if pa.types.is_dictionary(kind) and kind.ordered}
    for file in files if ordered else ():
        ordered = {name for name in ordered if _lists_as_declared(pq.read_metadata(file), name)}
    return {
        name: pa.dictionary(kind.index_type, kind.value_type)
        if pa.types.is_dictionary(kind) and name not in ordered
        else kind
        for name, kind in found.items()
    }


def _lists_as_declared(file: pq.FileMetaData, name: str) -> bool:
    """Whether a column of a Parquet file has dictionaries, which are written as they were declared."""
    if not str(file.created_by).startswith(_WRITE_AS_DECLARED):
        return False
    at = [file.schema.column(number).path for number in range(len(file.schema))].index(name)
    return all(file.row_group(number).column(at).has_dictionary_page for number in range(file.num_row_groups))


def _read_arrow(path: str, wanted: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches as they stand in a file. Arrow takes lengths and places in them on trust, so they are checked here.

    A scanner of Arrow's crashes on some damaged dictionaries, at which this reader raises.
    """
    with pa.OSFile(path) as stream:
        names = pa.ipc.open_file(stream).schema.names
        chosen = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in wanted])
        file = pa.ipc.open_file(stream, options=chosen)
        for number in range(file.num_record_batches):
            batch = file.get_batch(number)
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield batch.slice(start, _BATCH_ROWS)


def _read_parquet(path: str, wanted: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of a bounded number of rows, decoded one after another, however many rows a row group has.

    A scanner would decode whole row groups, and a file of a few megabytes may have a billion rows in one. Columns are
    decoded in two threads, each about half of the work, while the batch before is used.
    """
    shares = [ahead(_decoded(path, share, texts)) for share in _shares(path, wanted, texts)]
    parts: list[Any] = [next(share, None) for share in shares]
    while all(part is not None for part in parts):
        # Batches end where a dictionary does, so they may be of different lengths.
        rows = min(part.num_rows for part in parts)
        found = {name: part.column(name)[:rows] for part in parts for name in part.schema.names}
        yield pa.record_batch([found[name] for name in wanted], names=list(wanted))
        parts = [
            part.slice(rows) if part.num_rows > rows else next(share, None)
            for part, share in zip(parts, shares, strict=True)
        ]
    if any(part is not None for part in parts):
        raise ValueError


def _decoded(path: str, wanted: Sequence[str], texts: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, read_dictionary=[name for name in texts if name in wanted]) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
            for column in batch.columns:
                _require_codes(column)
            yield batch


def _shares(path: str, wanted: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """The columns in two parts that take about as long to decode, by their types: the sizes in the file's metadata are
    not asked for, since Arrow ends the process where these are damaged."""
    if len(wanted) < 2:
        return [list(wanted)]
    schema = pq.read_schema(path)
    cost = {name: _cost(schema.field(name).type, name in texts) for name in wanted}
    parts: list[list[str]] = [[], []]
    for name in sorted(wanted, key=lambda name: -cost[name]):
        min(parts, key=lambda part: sum(cost[one] for one in part)).append(name)
    return [part for part in parts if part]


def _cost(kind: pa.DataType, by_dictionary: bool) -> int:
    """About how many bytes a value of a column is decoded to."""
    if by_dictionary or pa.types.is_dictionary(kind):
        return 4
    return max(kind.bit_width // 8, 1) if pa.types.is_primitive(kind) else 16


def _require_codes(array: pa.Array) -> None:
    """Raise if a column refers to a value that its dictionary lacks; in a damaged file Arrow lets that pass."""
    if pa.types.is_dictionary(array.type):
        extent = pc.min_max(array.indices)
        low, high = extent["min"].as_py(), extent["max"].as_py()
        if low is not None and (low < 0 or high >= len(array.dictionary)):
            raise ValueError


def _as_declared(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array in the type of the first file, where another file has another one."""
    return array if plain_type(array.type) == plain_type(kind) else array.cast(plain_type(kind))


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


def open_statistical(found: Found) -> Input:
    """A Stata, SAS or SPSS file, read whole."""
    table, path, files, kind, options = found.table, found.path, found.files, found.kind, found.options
    try:
        import pyreadstat
    except ImportError:
        raise errors.DataError(
            "needs-extra",
            f"Reading {kind} files needs an optional package that is not installed.",
            "Install it: pip install 'stirred[stata-sas-spss]'",
        ) from None
    readers = {
        "stata": pyreadstat.read_dta,
        "spss": pyreadstat.read_sav,
        "sas": pyreadstat.read_xport if files[0].suffix.lower() == ".xpt" else pyreadstat.read_sas7bdat,
    }
    if len(files) != 1:
        raise errors.mixed_formats(path)
    before = found.state()
    try:
        frame, meta = readers[kind](str(files[0]))
        labels = None if files[0].suffix.lower() == ".sas7bdat" else labels_of(kind, meta)  # nobody can write these
        whole = _with_integers(pa.Table.from_pandas(frame, preserve_index=False))
    except Exception:
        raise errors.unreadable_format(path, kind) from None
    if found.state() != before:
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

    kinds = columns_of(whole.schema)
    return Input(table, "parquet", kinds, read, found.bytes, whole.num_rows, state=found.state, labels=labels)


def _with_integers(table: pa.Table) -> pa.Table:
    """Whole numbers as integers: these formats store every number as a float, and floats cannot match."""
    for at, item in enumerate(table.schema):
        if pa.types.is_floating(item.type):
            column = table.column(at)
            if bool(pc.all(pc.equal(pc.floor(column), column)).as_py()) and bool(pc.all(pc.is_finite(column)).as_py()):
                table = table.set_column(at, item.name, column.cast(pa.int64()))
    return table
