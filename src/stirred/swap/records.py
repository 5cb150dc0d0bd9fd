"""Whole records: a row of the main table together with all its linked rows.

Two households that differ only in their persons are different records. Rows are reduced to dense kinds, numbered in
the order of their values, and sorted within their record, so that neither the order of rows nor that of records
matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._shown import withheld
from stirred.swap.dataset import Linked
from stirred.tables import Column, Table
from stirred.tables.columns import chunks
from stirred.tables.groups import Groups, group, mixed


@withheld
@dataclass(frozen=True, eq=False, repr=False)
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


def multiset_class(linked: LinkedKinds) -> NDArray[np.uint32]:
    """A number per record that two records share exactly when their linked rows are the same multiset.

    Sorted kinds are read into a trie whose nodes are the classes; keys are compared in full, so no two different
    multisets ever share a class.
    """
    slots = 1 << int(2 * len(linked.kinds) + 2).bit_length()
    keys = np.zeros(slots, dtype=np.uint64)
    nodes = np.zeros(slots, dtype=np.uint32)
    classes = np.zeros(len(linked.starts) - 1, dtype=np.uint32)
    _trie(linked.kinds, linked.starts, keys, nodes, classes)
    return classes


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
        _add_up(state, total)
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


@kernel
def _add_up(state, total):  # type: ignore[no-untyped-def]
    for record in range(state.shape[0]):
        for lane in range(state.shape[1]):
            total[lane] += state[record, lane]
