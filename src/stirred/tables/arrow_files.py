"""Opens Parquet and Arrow files: one file, a folder, or a glob."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from stirred import errors
from stirred.tables.columns import plain_type
from stirred.tables.inputs import Found, Input, check_columns, columns_of, root_of

_BATCH_ROWS = 1 << 19


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
    except (pa.ArrowException, OSError, ValueError):
        raise errors.unreadable_format(path, kind) from None
    if found.options.types:
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
            options = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False) if kind == "parquet" else None
            scanner = source.scanner(
                columns=wanted, batch_size=_BATCH_ROWS, batch_readahead=2, fragment_scan_options=options
            )
            yield from scanner.to_batches()
        except (pa.ArrowException, OSError, ValueError, KeyError):
            raise errors.unreadable_format(path, kind) from None

    return Input(
        table,
        "parquet" if kind == "parquet" else "arrow",
        columns_of(schema),
        read,
        found.bytes,
        rows,
        state=found.state,
    )


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
