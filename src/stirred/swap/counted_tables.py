"""Tables of counts and of sums: counted from records or linked rows, written, and set beside each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stirred._shown import withheld
from stirred.swap.plan_sections import PublishedTable
from stirred.swap.sources import Source
from stirred.tables import Column
from stirred.tables.columns import Codes
from stirred.tables.exact_numbers import ExactNumbers, row_numbers
from stirred.tables.groups import cells, free_label, group
from stirred.tables.writing import Cell, Chunk


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class CountedTable:
    """The cells of a table that have a row, in the order of their codes, and the number of each."""

    asked: PublishedTable
    columns: tuple[Column, ...]
    """The columns of the table, of which only the values matter."""
    codes: tuple[Codes, ...]
    numbers: ExactNumbers

    def chunk(self) -> Chunk:
        """The table as it is written, the numbers last."""
        return [*self.named(), number_cell(free_label(self.asked.label, self.asked.by), self.numbers)]

    def named(self) -> list[Cell]:
        """The columns of the table as they are written."""
        return [Cell(column.name, codes, column) for column, codes in zip(self.columns, self.codes, strict=True)]


def counted_table(source: Source, asked: PublishedTable) -> CountedTable:
    """Count a table, or add it up."""
    columns, rows = source.columns(asked, asked.by), source.rows(asked)
    if not asked.adds_up:
        counted = cells(columns, rows)
        return CountedTable(asked, tuple(columns), counted.codes, ExactNumbers(counted.counts.astype(np.int64), 0))
    grouped = group(columns, rows)
    member = np.zeros(grouped.count, dtype=np.int64)
    member[grouped.ids] = np.arange(rows)
    numbers = row_numbers(source.columns(asked, asked.added), rows).added_up(grouped.ids, grouped.count)
    return CountedTable(asked, tuple(columns), tuple(column.codes[member] for column in columns), numbers)


def number_cell(label: str, numbers: ExactNumbers) -> Cell:
    """Exact numbers as a column to be written: whole numbers, or decimal text."""
    if not numbers.scale and numbers.whole.dtype != object:
        return Cell(label, numbers.whole)
    texts = pa.array(numbers.texts(), pa.string())
    return Cell(label, np.arange(len(texts)), Column(label, np.zeros(0, dtype=np.uint32), texts))


def side_by_side(one: CountedTable, other: CountedTable) -> tuple[CountedTable, ExactNumbers]:
    """The first table with the cells of both, and the numbers of the second in these cells; zero where there is none.

    Both are of the same columns with the same values.
    """
    columns = [
        Column(column.name, np.concatenate([mine, theirs]), column.values)
        for column, mine, theirs in zip(one.columns, one.codes, other.codes, strict=True)
    ]
    ids = group(columns, len(one.codes[0]) + len(other.codes[0]))
    member = np.zeros(ids.count, dtype=np.int64)
    member[ids.ids] = np.arange(len(ids.ids))
    split = len(one.codes[0])
    numbers = [
        part.numbers.added_up(where, ids.count) for part, where in ((one, ids.ids[:split]), (other, ids.ids[split:]))
    ]
    codes = tuple(column.codes[member] for column in columns)
    return CountedTable(one.asked, one.columns, codes, numbers[0]), numbers[1]
