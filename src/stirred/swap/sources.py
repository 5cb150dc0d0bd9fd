"""The tables of a swap as tables of counts see them: records, and linked rows beside the columns of their record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import withheld
from stirred.swap.dataset import Dataset
from stirred.swap.plan_sections import PublishedTable
from stirred.tables import Column, Table
from stirred.tables.exact_numbers import require_numeric


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LinkedSource:
    """Linked rows: their held columns, the record of each, and which columns repeat a swap variable of the record."""

    held: Table
    record: NDArray[np.uint32]
    copies: Mapping[str, str]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Records and their linked rows, before a swap or after it."""

    main: Table
    linked: Mapping[str, LinkedSource]

    def of_record(self, asked: PublishedTable, name: str) -> str | None:
        """The column of the record that ``name`` means in a table; None for a linked table's own."""
        if asked.linked is None:
            return name
        linked = self.linked[asked.linked]
        return None if name in linked.held.columns else linked.copies.get(name, name)

    def rows(self, asked: PublishedTable) -> int:
        """How many rows are counted."""
        return self.main.rows if asked.linked is None else self.linked[asked.linked].held.rows

    def record(self, asked: PublishedTable) -> NDArray[np.integer]:
        """The record of each row that is counted."""
        return np.arange(self.main.rows) if asked.linked is None else self.linked[asked.linked].record

    def columns(self, asked: PublishedTable, names: Sequence[str]) -> list[Column]:
        """Columns of the rows that are counted."""
        return [self._column(asked, name) for name in names]

    def require(self, asked: PublishedTable) -> None:
        """Raise unless the release will have the columns of a table, and those that are added up are numbers."""
        known = list(self.main.columns)
        if asked.linked is not None:
            linked = self.linked[asked.linked]
            known = list(dict.fromkeys([*linked.held.columns, *linked.copies, *known]))
        for names, how in ((asked.by, "by"), (asked.added, "that adds up")):
            if unknown := [name for name in names if name not in known]:
                elsewhere = [
                    table
                    for table, linked in self.linked.items()
                    if asked.linked is None and set(unknown) <= set(linked.held.columns)
                ]
                raise errors.table_columns(unknown, known, asked.linked, elsewhere, how)
        for name in asked.added:
            require_numeric(self._values_of(asked, name))

    def _values_of(self, asked: PublishedTable, name: str) -> Column:
        """A column without its rows."""
        target = self.of_record(asked, name)
        if target is not None:
            return self.main[target]
        assert asked.linked is not None
        return self.linked[asked.linked].held[name]

    def _column(self, asked: PublishedTable, name: str) -> Column:
        found = self._values_of(asked, name)
        if asked.linked is None or self.of_record(asked, name) is None:
            return found
        return Column(name, found.codes[self.linked[asked.linked].record], found.values)


def source_of(dataset: Dataset, main: Table | None = None) -> Source:
    """The tables of the data; ``main`` are its records after a swap."""
    linked = {one.plan.name: LinkedSource(one.held, one.record, one.copies) for one in dataset.linked}
    return Source(dataset.table if main is None else main, linked)
