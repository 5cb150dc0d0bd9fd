"""Reads pandas, polars and pyarrow frames, and gives back frames of the same type.

Only names, types and cells are read, and the order of ordered categoricals; indexes, categories that no row has and
metadata are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa

from stirred import errors
from stirred.tables.reading.inputs import Input, check_columns


def open_frame(table: str, frame: object) -> Input:
    """A frame as an :class:`Input` whose ``native`` gives back the same kind."""
    if isinstance(frame, pa.Table | pa.RecordBatch):
        arrow: pa.Table = frame if isinstance(frame, pa.Table) else pa.Table.from_batches([frame])
        native: Callable[[pa.Table], Any] = _same
    else:
        if not hasattr(frame, "collect"):  # before narwhals, which words it differently
            check_columns(table, [str(name) for name in getattr(frame, "columns", [])])
        try:
            narrow: Any = nw.from_native(frame)
        except TypeError:
            raise errors.not_a_table(table, type(frame).__name__) from None
        eager = _collected(table, narrow)
        arrow = _as_arrow(table, eager)
        native = _pandas_rebuilder(eager.to_native()) if eager.implementation.is_pandas() else _other_rebuilder(eager)
    check_columns(table, arrow.schema.names)
    arrow = arrow.replace_schema_metadata(None)

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from arrow.select([*columns, *identifiers]).to_batches()

    kinds = {item.name: item.type for item in arrow.schema}
    return Input(table, "parquet", kinds, read, arrow.nbytes, arrow.num_rows, native, _index(frame))


def as_polars(table: str, frame: object) -> pl.DataFrame:
    """The rows of a frame that is read whole."""
    opened = open_frame(table, frame)
    batches = list(opened.batches(list(opened.kinds)))
    return pl.DataFrame(pl.from_arrow(batches)) if batches else pl.DataFrame()


def collected(table: str, frame: object) -> object:
    """A lazy frame, collected; any other as it is."""
    if not hasattr(frame, "collect"):
        return frame
    try:
        narrow: Any = nw.from_native(frame)
    except TypeError:
        raise errors.not_a_table(table, type(frame).__name__) from None
    return _collected(table, narrow).to_native() if isinstance(narrow, nw.LazyFrame) else frame


def _index(frame: object) -> tuple[str, ...]:
    """The names in the index of a pandas frame; others have none."""
    return tuple(str(name) for name in getattr(getattr(frame, "index", None), "names", ()) if name is not None)


def _collected(table: str, frame: Any) -> Any:
    """An eager frame without an index."""
    try:
        return nw.maybe_reset_index(frame.collect() if isinstance(frame, nw.LazyFrame) else frame)
    except Exception:  # whatever a lazy query runs into may quote cells
        raise errors.unreadable_format(f"the lazy frame given for table '{table}'", "a table") from None


def _as_arrow(table: str, frame: Any) -> pa.Table:
    try:
        return frame.to_arrow()
    except Exception:  # a column of mixed objects, for one; what is said of it may quote cells
        for name in frame.columns:
            if not _converts(frame.select(name)):
                raise errors.unsupported_type(table, name, str(frame.schema[name])) from None
        raise errors.not_a_table(table, type(frame.to_native()).__name__) from None


def _converts(frame: Any) -> bool:
    try:
        frame.to_arrow()
    except Exception:
        return False
    return True


def _same(table: pa.Table) -> pa.Table:
    return table


def _other_rebuilder(frame: Any) -> Callable[[pa.Table], Any]:
    """What makes a frame like the given one of an Arrow table."""
    listed = {name for name, kind in frame.schema.items() if isinstance(kind, nw.Enum)}

    def rebuild(table: pa.Table) -> Any:
        made = nw.DataFrame.from_arrow(table, backend=frame.implementation)
        enums = [
            nw.col(item.name).cast(nw.Enum(table.column(item.name).chunk(0).dictionary.to_pylist()))
            for item in table.schema
            if item.name in listed and pa.types.is_dictionary(item.type)
        ]
        return (made.with_columns(enums) if enums else made).to_native()

    return rebuild


def _pandas_rebuilder(frame: Any) -> Callable[[pa.Table], Any]:
    import pandas as pd

    kinds = {str(name): kind for name, kind in frame.dtypes.items()}
    nullable = {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, pd.api.extensions.ExtensionDtype) and kind.kind in "iufb"
    }

    def rebuild(table: pa.Table) -> Any:
        # Whole numbers beside nulls would otherwise become floating-point ones, and large ones others.
        plain = table.to_pandas(integer_object_nulls=True)
        plain = plain.astype({name: kind for name, kind in nullable.items() if name in plain.columns})
        for name, kind in plain.dtypes.items():
            before = kinds.get(name)
            if isinstance(kind, pd.CategoricalDtype) and isinstance(before, pd.CategoricalDtype):
                typed = kind.categories.astype(before.categories.dtype)
                plain[name] = plain[name].cat.rename_categories(typed)
        return plain

    return rebuild
