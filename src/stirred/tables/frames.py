"""Frames in memory: pandas, polars and pyarrow in, the same kind out.

Only names, types and cells are taken over. Indexes, categories and metadata stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw
import pyarrow as pa

from stirred import errors
from stirred.tables.inputs import Input, check_columns


def open_frame(table: str, frame: object) -> Input:
    """A frame as an :class:`Input` whose ``native`` gives back the same kind."""
    if isinstance(frame, pa.Table):
        arrow: pa.Table = frame
        native: Callable[[pa.Table], Any] = _same
    else:
        names = [str(name) for name in getattr(frame, "columns", [])]
        check_columns(table, names)  # before narwhals, which words it differently
        try:
            narrow: Any = nw.from_native(frame)
        except TypeError:
            raise errors.not_a_table(table, type(frame).__name__) from None
        eager = narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
        arrow, native = eager.to_arrow(), _rebuilder(eager.implementation)
    check_columns(table, arrow.schema.names)
    arrow = arrow.replace_schema_metadata(None)

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from arrow.select([*columns, *identifiers]).to_batches()

    kinds = {item.name: item.type for item in arrow.schema}
    return Input(table, "parquet", kinds, read, arrow.nbytes, native)


def _same(table: pa.Table) -> pa.Table:
    return table


def _rebuilder(implementation: nw.Implementation) -> Callable[[pa.Table], Any]:
    def rebuild(table: pa.Table) -> Any:
        return nw.DataFrame.from_arrow(table, backend=implementation).to_native()  # type: ignore[arg-type]

    return rebuild
