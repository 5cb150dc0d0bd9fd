"""Reads a table in one pass: encodes columns, collects identifiers, counts nulls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from stirred import errors
from stirred._shown import withheld
from stirred.tables.columns import Column, ColumnEncoder, Table, is_supported
from stirred.tables.identifiers import IdentifierCollector
from stirred.tables.inputs import MOST_ROWS, Input, Told

_WORKERS = min(4, os.cpu_count() or 1)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class ReadTable:
    """What one pass over an input found."""

    table: Table
    identifiers: Mapping[str, pa.ChunkedArray]
    nulls: Mapping[str, int]
    """Columns with nulls, and how many."""


def read_parts(opened: Input, columns: Sequence[str], told: Told | None = None) -> Iterator[Table]:
    """The rows of a table in parts that are encoded by themselves: for counting, in memory for one part."""
    for column in columns:
        if not is_supported(opened.kinds[column]):
            raise errors.unsupported_type(opened.table, column, str(opened.kinds[column]))

    def encoded(column: str, array: pa.Array) -> Column:
        encoder = ColumnEncoder(opened.table, column, opened.kinds[column], len(array))
        encoder.add(array)
        return encoder.finish()

    with ThreadPoolExecutor(_WORKERS) as pool:
        for batch in opened.batches(columns, (), told):
            parts = dict(zip(batch.schema.names, batch.columns, strict=True))
            made = pool.map(encoded, columns, [parts[column] for column in columns])
            yield Table(opened.table, batch.num_rows, dict(zip(columns, made, strict=True)))


def read_table(
    opened: Input,
    columns: Sequence[str],
    identifiers: Sequence[str] = (),
    *,
    may_be_empty: bool = False,
    told: Told | None = None,
) -> ReadTable:
    """Encode ``columns`` and gather ``identifiers`` as they are; an error if there are no rows, unless that may be.

    ``told`` is told the share that is read.
    """
    name = opened.table
    for column in [*columns, *identifiers]:
        if not is_supported(opened.kinds[column]):
            raise errors.unsupported_type(name, column, str(opened.kinds[column]))
    encoders = {column: ColumnEncoder(name, column, opened.kinds[column], opened.rows) for column in columns}
    kept = {column: IdentifierCollector(name, column, opened.kinds[column], opened.rows) for column in identifiers}
    rows = 0
    with ThreadPoolExecutor(_WORKERS) as pool:  # columns are independent, and the kernels do without the lock
        for batch in opened.batches(columns, identifiers, told):
            rows += batch.num_rows
            if rows > MOST_ROWS:
                raise errors.too_many_records(name, MOST_ROWS)
            parts = dict(zip(batch.schema.names, batch.columns, strict=True))
            list(pool.map(ColumnEncoder.add, encoders.values(), [parts[column] for column in encoders]))
            for column, collector in kept.items():
                collector.add(parts[column])
        columns_read = dict(zip(encoders, pool.map(ColumnEncoder.finish, encoders.values()), strict=True))
    pa.default_memory_pool().release_unused()  # what was decoded on the way is gone, and its memory should be
    if rows == 0 and not may_be_empty:
        raise errors.empty_file(name)
    gathered = {column: collector.finish() for column, collector in kept.items()}
    nulls = {column: encoder.nulls for column, encoder in encoders.items()}
    nulls |= {column: array.null_count for column, array in gathered.items()}
    return ReadTable(
        Table(name, rows, columns_read), gathered, {column: count for column, count in nulls.items() if count}
    )
