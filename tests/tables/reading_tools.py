"""What tests of reading and writing share: reading as a release does, refusals that must not quote, other readers."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.errors import StirredError
from stirred.tables import InputOptions, open_input
from stirred.tables.reading.table_reader import ReadTable, read_table

SECRET = "SECRET-7731"


def read(data: object, columns: Sequence[str] | None = None, **options: Any) -> ReadTable:
    opened = open_input("people", data, InputOptions(**options))
    return read_table(opened, list(opened.kinds) if columns is None else columns)


def cells(data: object, **options: Any) -> dict[str, list[object]]:
    """All columns, decoded."""
    table = read(data, **options).table
    return {name: column.decode(column.codes).to_pylist() for name, column in table.columns.items()}


def refused(kind: str, data: object, columns: Sequence[str] | None = None, **options: Any) -> StirredError:
    """The refusal, once it is seen to be of the right kind and to keep the marker to itself."""
    with pytest.raises(StirredError) as caught:
        read(data, columns, **options)
    refusal = caught.value
    shown = str(refusal) + "".join(traceback.format_exception(refusal))
    assert refusal.kind == kind, str(refusal)
    assert SECRET not in shown
    assert refusal.__cause__ is None
    assert refusal.__context__ is None or refusal.__suppress_context__
    return refusal


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def arrow_of(path: Path) -> pa.Table:
    """A Parquet or Arrow file, as the library of its format reads it."""
    return pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
