"""Counts tables of records and of their linked rows, and tells whole records apart.

A whole record is a row of the main table together with all its linked rows: two households that differ only in their
persons are different records. Rows are reduced to dense kinds, numbered in the order of their values, and sorted within
their record, so that neither the order of rows nor that of records matters.

Tables of counts and of sums see records, or linked rows beside the columns of their record, before a swap or after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._display import confidential
from stirred.swap.data.dataset import Dataset, Linked
from stirred.swap.plan.sections import PublishedTable
from stirred.tables import Column, Table
from stirred.tables.columns import Codes, chunks
from stirred.tables.exact_numbers import ExactNumbers, row_numbers
from stirred.tables.groups import Groups, anonymous, cells, free_label, group, mixed
from stirred.tables.writing import Cell, Chunk


@confidential
class LinkedKinds:
    """Per record the sorted kinds of its linked rows: ``kinds[starts[r] : starts[r + 1]]``."""

    kinds: NDArray[np.uint32]
    starts: NDArray[np.int64]


def linked_kinds(columns: Sequence[Column], record: NDArray[np.uint32], records: int) -> LinkedKinds:
    """The kinds of linked rows with these columns, ``record`` being the row of the main table they belong to."""
    grouped = group(columns, len(record))
    starts = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=records))]).astype(np.int64)
    kinds = np.empty(len(record), dtype=np.uint32)
    _gather_sorted(grouped.ids, record, starts[:-1].copy(), starts, kinds)
    return LinkedKinds(kinds, starts)


def kinds_of(linked: Linked, records: int) -> LinkedKinds:
    """The kinds of the rows of a linked table, by record."""
    return linked_kinds(list(linked.held.columns.values()), linked.record, records)


def classes_of(dataset: Dataset) -> list[Column]:
    """Per linked table, the class of each record by its linked rows."""
    return [multiset_class(kinds_of(entry, dataset.records)) for entry in dataset.linked]


def multiset_class(linked: LinkedKinds) -> Column:
    """A number per record that two records share exactly when their linked rows are the same multiset.

    Sorted kinds are read into a trie whose nodes are the classes; keys are compared in full, so no two different
    multisets ever share a class.
    """
    slots = 1 << int(2 * len(linked.kinds) + 2).bit_length()
    keys = np.zeros(slots, dtype=np.uint64)
    nodes = np.zeros(slots, dtype=np.uint32)
    classes = np.zeros(len(linked.starts) - 1, dtype=np.uint32)
    _trie(linked.kinds, linked.starts, keys, nodes, classes)
    return anonymous(classes, int(classes.max(initial=0)) + 1)


def whole_fingerprint(fixed: Groups, linked: Sequence[LinkedKinds]) -> str:
    """A fingerprint of the multiset of whole records: match and held values with all linked rows.

    ``fixed`` groups records by match and held values. Each record is mixed into four 64-bit numbers, which are added up
    over all records, so that their order does not matter. It tells files apart by accident, not against an adversary
    who designs two files for it; the margins' fingerprints are SHA-256.
    """
    lanes = np.arange(1, 5, dtype=np.uint64)
    total = np.zeros(4, dtype=np.uint64)
    for part in chunks(len(fixed.ids)):
        state = np.empty((part.stop - part.start, 4), dtype=np.uint64)
        _mix_first(fixed.ids[part], lanes, state)
        for entry in linked:
            _mix_sequences(entry.kinds, entry.starts[part.start : part.stop + 1], state)
        total += state.sum(axis=0)
    return "".join(f"{int(part):016x}" for part in total)


def beside_record(main: Table, names: Sequence[str], own: Table, record: NDArray[np.integer]) -> Table:
    """A linked table with the columns ``names`` of each row's record; where names clash, the record's is meant."""
    joined = {name: main[name].with_codes(main[name].codes[record]) for name in names}
    rest = {name: column for name, column in own.columns.items() if name not in joined}
    return Table(own.name, own.rows, joined | rest)


@kernel
def _gather_sorted(kinds, record, cursor, starts, sequence):  # type: ignore[no-untyped-def]
    for i in range(len(kinds)):
        sequence[cursor[record[i]]] = kinds[i]
        cursor[record[i]] += 1
    for r in range(len(starts) - 1):
        if starts[r + 1] - starts[r] > 32:
            sequence[starts[r] : starts[r + 1]].sort()
            continue
        for i in range(starts[r] + 1, starts[r + 1]):  # most records have few linked rows
            one = sequence[i]
            at = i
            while at > starts[r] and sequence[at - 1] > one:
                sequence[at] = sequence[at - 1]
                at -= 1
            sequence[at] = one


@kernel
def _trie(sequence, starts, keys, nodes, classes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(keys) - 1)
    made = np.uint32(0)
    for r in range(len(starts) - 1):
        node = np.uint32(0)
        for i in range(starts[r], starts[r + 1]):
            key = (np.uint64(node) << np.uint64(32)) | np.uint64(sequence[i])
            spread = key * np.uint64(0x9E3779B97F4A7C15)
            at = (spread ^ (spread >> np.uint64(29))) & mask
            while nodes[at] != 0 and keys[at] != key:
                at = (at + np.uint64(1)) & mask
            if nodes[at] == 0:
                made += np.uint32(1)
                nodes[at] = made
                keys[at] = key
            node = nodes[at]
        classes[r] = node


@kernel
def _mix_first(ids, lanes, state):  # type: ignore[no-untyped-def]
    for record in range(len(ids)):
        for lane in range(len(lanes)):
            state[record, lane] = mixed(lanes[lane] * np.uint64(0x9E3779B97F4A7C15) + np.uint64(ids[record]))


@kernel
def _mix_sequences(kinds, starts, state):  # type: ignore[no-untyped-def]
    for record in range(len(starts) - 1):
        for lane in range(state.shape[1]):
            found = state[record, lane]
            for i in range(starts[record], starts[record + 1]):
                found = mixed(found + np.uint64(kinds[i]) + np.uint64(1))
            state[record, lane] = mixed(found ^ np.uint64(0xD1B54A32D192ED03))


@confidential
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


def counted_table(dataset: Dataset, asked: PublishedTable) -> CountedTable:
    """Count a table, or add it up."""
    columns, rows = dataset.columns_of(asked, asked.by), dataset.rows_of(asked)
    if not asked.adds_up:
        counted = cells(columns, rows)
        return CountedTable(asked, tuple(columns), counted.codes, ExactNumbers(counted.counts.astype(np.int64), 0))
    grouped = group(columns, rows)
    member = grouped.members()
    numbers = row_numbers(dataset.columns_of(asked, asked.added), rows).added_up(grouped.ids, grouped.count)
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
    member = ids.members()
    split = len(one.codes[0])
    numbers = [
        part.numbers.added_up(where, ids.count) for part, where in ((one, ids.ids[:split]), (other, ids.ids[split:]))
    ]
    codes = tuple(column.codes[member] for column in columns)
    return CountedTable(one.asked, one.columns, codes, numbers[0]), numbers[1]
