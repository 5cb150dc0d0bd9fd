"""Writes fitted histograms as rows: one for each record, in the order of places and cells."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.margins.spine import Spine
from stirred.releases.folder.documents import ReleasedTable
from stirred.tables import Column, Table
from stirred.tables.writing import EXTENSIONS, Cell, Chunk
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TableSection
from stirred.topdown.problems import Histograms

ROWS = 1 << 20
"""Rows that are made at a time."""
PLACE, ATTRIBUTE = "place", "attribute"
ORDER = "by place, then by values in the order of the plan"


def place_columns(plan: TopDownPlan, spine: Spine) -> list[Column]:
    """For every level that is a column, the unit that each leaf lies in."""
    columns = []
    units = np.arange(spine.leaves, dtype=np.int64)
    for level in range(len(spine.levels) - 1, len(spine.levels) - len(plan.spine.levels) - 1, -1):
        columns.append(Column(spine.levels[level], units.astype(np.uint32), spine.names[level]))
        units = spine.parents(level)[units] if level else units
    return columns[::-1]


def attribute_columns(table: TableSection) -> list[Column]:
    """For every attribute, under the name of its column, the code that each cell has."""
    schema = table.schema_of
    cells = np.arange(schema.cells, dtype=np.int64)
    columns = []
    for at, attribute in enumerate(table.attributes):
        codes = (cells // math.prod(schema.shape[at + 1 :])) % schema.shape[at]
        columns.append(
            Column(attribute.column or attribute.name, codes.astype(np.uint32), pa.array(attribute.values, pa.string()))
        )
    return columns


def rows(plan: TopDownPlan, spine: Spine, table: TableSection, leaves: Histograms) -> Iterator[Chunk]:
    """The records of a table, a bounded number at a time; one chunk without rows if there are none."""
    places, attributes = place_columns(plan, spine), attribute_columns(table)
    leaf = np.repeat(np.arange(leaves.units, dtype=np.int64), np.diff(leaves.starts))
    ends = np.cumsum(leaves.counts)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, max(total, 1), ROWS):
        entry = _entries(ends, first, min(total, first + ROWS))
        cells = leaves.cells[entry]
        yield [
            *(Cell(column.name, column.codes[leaf[entry]], column) for column in places),
            *(Cell(column.name, column.codes[cells], column) for column in attributes),
        ]


def _entries(ends: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """The entries of the histograms that the records from ``first`` up to ``last`` belong to.

    >>> _entries(np.array([2, 3, 7]), 1, 5).tolist()
    [0, 1, 2, 2]
    """
    begin, end = np.searchsorted(ends, [first, last - 1], side="right") if last > first else (0, -1)
    inside = np.arange(begin, end + 1)
    bounds = np.clip(ends[begin : end + 1], first, last)
    return np.repeat(inside, np.diff(np.concatenate([[first], bounds])))


def described(plan: TopDownPlan, spine: Spine, table: TableSection, records: int) -> ReleasedTable:
    """The table as the data dictionary states it."""
    places, attributes = place_columns(plan, spine), attribute_columns(table)
    return ReleasedTable(
        table.name,
        table.name + EXTENSIONS[plan.format],
        plan.format,
        records,
        ORDER,
        (*((column.name, PLACE) for column in places), *((column.name, ATTRIBUTE) for column in attributes)),
        Table(table.name, records, {column.name: column for column in (*places, *attributes)}),
    )
