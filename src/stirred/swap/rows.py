"""Puts released rows into an order that does not depend on the order of the input.

Two orders are safe, and which of them is used depends on the invariants alone. *Sorted by all columns*: a function of
the released rows only. *Shuffled*: a permutation drawn uniformly from fresh randomness. Rows that belong to a record
follow it, shuffled among themselves. New ids count the rows as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._shown import withheld
from stirred.noise import RandomSource, shuffle_groups
from stirred.swap.dataset import Linked
from stirred.tables import Column, Table
from stirred.tables.columns import chunks, is_categorical
from stirred.tables.groups import fits_one_key, packed, unpack
from stirred.tables.writing import Cell, Chunk


class Rows(Protocol):
    """The rows of one table, in the order of the release."""

    @property
    def order(self) -> str:
        """The order in words, for the data dictionary."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """The rows in the order of the release, a chunk at a time."""
        ...


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class SortedRows:
    """Rows sorted by all their columns, kept as packed keys."""

    columns: tuple[str, ...]
    id: str | None
    table: Table
    keys: NDArray[np.unsignedinteger]
    order = "sorted by all columns"

    def chunks(self) -> Iterator[Chunk]:
        """The rows in sorted order, a chunk at a time."""
        coded = [self.table[name] for name in self.columns if name != self.id]
        kinds = [column.codes.dtype.type for column in coded]
        for part in chunks(len(self.keys)):
            codes = unpack(self.keys[part].astype(np.uint64), [column.cardinality for column in coded], kinds)
            found = {column.name: Cell(column.name, code, column) for column, code in zip(coded, codes, strict=True)}
            yield [found[name] if name in found else Cell(name, _numbers(part)) for name in self.columns]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class ShuffledRows:
    """Rows in a uniformly random order: ``permutation[i]`` is the table's row written as the i-th."""

    columns: tuple[str, ...]
    id: str | None
    table: Table
    permutation: NDArray[np.uint32]
    order = "shuffled uniformly at random"

    def chunks(self) -> Iterator[Chunk]:
        """The rows in shuffled order, a chunk at a time."""
        for part in chunks(len(self.permutation)):
            rows = self.permutation[part]
            yield [
                Cell(name, _numbers(part))
                if name == self.id
                else Cell(name, self.table[name].codes[rows], self.table[name])
                for name in self.columns
            ]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LinkedRows:
    """Linked rows record by record, in the order of the released records, shuffled within each."""

    linked: Linked
    main: Table
    copies: Mapping[str, str]
    permutation: NDArray[np.uint32]
    position: NDArray[np.uint32]
    """For each written row, where its record stands in the release."""
    order = "by the id of the record they belong to, shuffled uniformly at random within it"

    def chunks(self) -> Iterator[Chunk]:
        """The linked rows in the order of their records, a chunk at a time."""
        for part in chunks(len(self.permutation)):
            rows = self.permutation[part]
            yield [self._cell(name, rows, part) for name in self.linked.columns]

    def copied(self, name: str) -> Column:
        """The record's column that a copy repeats, as the copy has it."""
        return self.main[self.copies[name]].copied(name, is_categorical(self.linked.input.kinds[name]))

    def _cell(self, name: str, rows: NDArray[np.uint32], part: slice) -> Cell:
        if name == self.linked.plan.link:
            return Cell(name, self.position[part].astype(np.int64) + 1)
        if name == self.linked.plan.id:
            return Cell(name, _numbers(part))
        if name in self.copies:
            source = self.copied(name)
            return Cell(name, source.codes[self.linked.record[rows]], source)
        held = self.linked.held[name]
        return Cell(name, held.codes[rows], held)


def _numbers(part: slice) -> NDArray[np.int64]:
    return np.arange(part.start + 1, part.stop + 1, dtype=np.int64)


def put_in_order(
    columns: tuple[str, ...], id: str | None, table: Table, linked: bool, source: RandomSource
) -> SortedRows | ShuffledRows:
    """Choose and carry out an order for the main table; records with linked rows are always shuffled."""
    coded = [table[name] for name in columns if name != id]
    if not linked and fits_one_key(coded):
        keys = packed(coded, table.rows)
        keys.sort()
        return SortedRows(columns, id, table, keys)
    return ShuffledRows(columns, id, table, shuffle_groups(np.array([0, table.rows]), source))


def follow(main: ShuffledRows, linked: Linked, source: RandomSource) -> LinkedRows:
    """Put linked rows in the order of their records."""
    place = np.empty(main.table.rows, dtype=np.uint32)
    place[main.permutation] = np.arange(main.table.rows, dtype=np.uint32)
    position = place[linked.record]
    starts = np.concatenate([[0], np.cumsum(np.bincount(position, minlength=main.table.rows))]).astype(np.int64)
    grouped = np.empty(len(position), dtype=np.uint32)
    _bring_together(position, starts[:-1].copy(), grouped)
    within = shuffle_groups(starts, source)
    permutation = np.empty_like(grouped)
    placed = np.empty_like(grouped)
    _arrange(starts, grouped, within, permutation, placed)
    return LinkedRows(linked, main.table, linked.copies, permutation, placed)


@kernel
def _bring_together(position, cursor, grouped):  # type: ignore[no-untyped-def]
    for row in range(len(position)):
        at = position[row]
        grouped[cursor[at]] = row
        cursor[at] += 1


@kernel
def _arrange(starts, grouped, within, permutation, placed):  # type: ignore[no-untyped-def]
    for record in range(len(starts) - 1):
        start = starts[record]
        for i in range(start, starts[record + 1]):
            permutation[i] = grouped[start + within[i]]
            placed[i] = record
