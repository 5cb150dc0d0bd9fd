"""The confidential data of a swap, read once: encoded columns, strata, and linked rows tied to their records.

A *record* is one row of the main table together with all linked rows that belong to it: two households that differ
only in their persons are different records. Everything that check and release compute starts from a
:class:`Dataset`; loading it settles every question about columns, nulls and ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.swap.plan import MAIN, InputSection, LinkedTable, SwapPlan
from stirred.tables import Column, Input, Table, open_input
from stirred.tables.columns import exact_values, plain_type
from stirred.tables.groups import Groups, group
from stirred.tables.identifiers import count_repeated, locate
from stirred.tables.read import read_table

Data = object
"""What a user brings: a path, or a pandas, polars or pyarrow frame."""


@dataclass(frozen=True, eq=False)
class Linked:
    """A linked table: its held columns and copies, and the main table's row that each of its rows belongs to."""

    plan: LinkedTable
    input: Input
    columns: tuple[str, ...]
    """Names to be written, in the order of the input."""
    held: Table
    copies: Mapping[str, str]
    record: NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A file and its plan, brought together. ``held`` is the plan's hold with "rest" spelled out."""

    plan: SwapPlan
    input: Input
    columns: tuple[str, ...]
    held: tuple[str, ...]
    table: Table
    strata: Groups
    linked: tuple[Linked, ...]

    @property
    def records(self) -> int:
        return self.table.rows


def load(plan: SwapPlan, data: Data | None = None, linked: Mapping[str, Data] | None = None) -> Dataset:
    """Read and encode what the plan names. ``data`` and ``linked`` override the paths of the plan."""
    opened = open_input(MAIN, _place(MAIN, plan.input, data), plan.input.options())
    held = _resolve_roles(
        MAIN, opened, [*plan.match, *plan.swap], plan.hold, [*plan.drop, *([plan.id] if plan.id else [])]
    )
    if not held and not plan.linked:
        raise errors.empty_role("hold")
    used = [*plan.match, *plan.swap, *held]
    for column in plan.match:
        if pa.types.is_floating(plain_type(opened.kinds[column])):
            raise errors.float_match(column)
    table, ids = _read(opened, used, [plan.id] if plan.id else [], plan.nulls)
    if plan.id and (repeated := count_repeated(ids[plan.id])) > 0:
        raise errors.duplicate_ids(MAIN, plan.id, repeated)
    ties = tuple(_tie(plan, entry, ids, table, (linked or {}).get(entry.name)) for entry in plan.linked)
    kept = {*used, *([plan.id] if plan.id else [])}
    columns = tuple(name for name in opened.kinds if name in kept)
    ordered = Table(MAIN, table.rows, {name: table[name] for name in columns if name in table.columns})
    return Dataset(plan, opened, columns, held, ordered, group(table.pick(plan.match), table.rows), ties)


def _place(table: str, section: InputSection, given: Data | None) -> Data:
    if given is not None:
        return Path(given) if isinstance(given, str) else given
    if section.path is None:
        raise errors.plan_field([f"input: no data were given for table '{table}' and the plan names no path"])
    return Path(section.path)


def _resolve_roles(
    table: str, opened: Input, named: Sequence[str], hold: str | Sequence[str], others: Sequence[str]
) -> tuple[str, ...]:
    """The held columns, once every column of the input is known to have one role."""
    listed = [*named, *others, *([] if hold == "rest" else hold)]
    missing = [name for name in listed if name not in opened.kinds]
    if missing:
        raise errors.missing_columns(table, missing)
    rest = tuple(name for name in opened.kinds if name not in listed)
    if hold == "rest":
        return rest
    if rest:
        raise errors.columns_without_role(table, rest)
    return tuple(hold)


def _read(
    opened: Input, columns: Sequence[str], identifiers: Sequence[str], nulls: Sequence[str]
) -> tuple[Table, Mapping[str, pa.ChunkedArray]]:
    """Read a table in which only the columns of ``nulls`` may have nulls; ids never may."""
    found = read_table(opened, columns, identifiers)
    for column, count in found.nulls.items():
        if column not in nulls or column in identifiers:
            raise errors.nulls(opened.table, column, count)
    return found.table, found.identifiers


def _tie(
    plan: SwapPlan, entry: LinkedTable, ids: Mapping[str, pa.ChunkedArray], main: Table, data: Data | None
) -> Linked:
    """Read a linked table, find each row's record, and see that the copies of swap variables agree."""
    opened = open_input(entry.name, _place(entry.name, entry.input, data), entry.input.options())
    copies = {name: name for name in plan.swap if name in opened.kinds and name not in entry.drop} | dict(entry.copies)
    own = [entry.link, *([entry.id] if entry.id else [])]
    held = _resolve_roles(entry.name, opened, [], entry.hold, [*own, *entry.drop, *copies])
    table, found = _read(opened, [*held, *copies], own, entry.nulls)
    if entry.id and (repeated := count_repeated(found[entry.id])) > 0:
        raise errors.duplicate_ids(entry.name, entry.id, repeated)
    assert plan.id is not None
    if not _comparable(found[entry.link].type, ids[plan.id].type):
        raise errors.id_types_differ(entry.name, entry.link)
    position = locate(ids[plan.id], found[entry.link])
    if (orphans := int(np.count_nonzero(position < 0))) > 0:
        raise errors.linked_without_record(entry.name, entry.link, MAIN, orphans)
    record = position.astype(np.uint32)
    for column, target in copies.items():
        if not _comparable(table[column].type, main[target].type):
            raise errors.id_types_differ(entry.name, column)
        if (differing := _count_differing(table[column], main[target], record)) > 0:
            raise errors.copies_disagree(entry.name, column, target, differing)
    kept = {*own, *held, *copies}
    columns = tuple(name for name in opened.kinds if name in kept)
    stays = Table(entry.name, table.rows, {name: table[name] for name in columns if name in held})
    return Linked(entry, opened, columns, stays, copies, record)


def _comparable(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (pa.types.is_integer(one) and pa.types.is_integer(other)))


def _count_differing(copy: Column, target: Column, record: NDArray[np.uint32]) -> int:
    known = exact_values(target.values)
    found = pc.index_in(exact_values(copy.values).cast(known.type, safe=False), value_set=known)
    translation = np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int64)
    return int(_differing(copy.codes, translation, target.codes, record))


@kernel
def _differing(copy, translation, target, record):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(copy)):
        if translation[copy[i]] != np.int64(target[record[i]]):
            count += 1
    return count


def linked_class(linked: Linked, records: int) -> NDArray[np.uint32]:
    """:func:`multiset_class` of the rows that each record has in ``linked``."""
    return multiset_class(list(linked.held.columns.values()), linked.record, records)


def multiset_class(columns: Sequence[Column], record: NDArray[np.uint32], records: int) -> NDArray[np.uint32]:
    """A number per record that two records share exactly when their rows are the same multiset.

    Rows are reduced to dense kinds, sorted within their record, and read into a trie whose nodes are the
    classes; keys are compared in full, so no two different multisets ever share a class.
    """
    kinds = group(columns, len(record))
    starts = np.concatenate([[0], np.cumsum(np.bincount(record, minlength=records))]).astype(np.int64)
    sequence = np.empty(len(record), dtype=np.uint32)
    _gather_sorted(kinds.ids, record, starts[:-1].copy(), starts, sequence)
    slots = 1 << int(2 * len(sequence) + 2).bit_length()
    keys = np.zeros(slots, dtype=np.uint64)
    nodes = np.zeros(slots, dtype=np.uint32)
    classes = np.zeros(records, dtype=np.uint32)
    _trie(sequence, starts, keys, nodes, classes)
    return classes


@kernel
def _gather_sorted(kinds, record, cursor, starts, sequence):  # type: ignore[no-untyped-def]
    for i in range(len(kinds)):
        sequence[cursor[record[i]]] = kinds[i]
        cursor[record[i]] += 1
    for r in range(len(starts) - 1):
        sequence[starts[r] : starts[r + 1]].sort()


@kernel
def _trie(sequence, starts, keys, nodes, classes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(keys) - 1)
    made = np.uint32(0)
    for r in range(len(starts) - 1):
        node = np.uint32(0)
        for i in range(starts[r], starts[r + 1]):
            key = (np.uint64(node) << np.uint64(32)) | np.uint64(sequence[i])
            mixed = key * np.uint64(0x9E3779B97F4A7C15)
            at = (mixed ^ (mixed >> np.uint64(29))) & mask
            while nodes[at] != 0 and keys[at] != key:
                at = (at + np.uint64(1)) & mask
            if nodes[at] == 0:
                made += np.uint32(1)
                nodes[at] = made
                keys[at] = key
            node = nodes[at]
        classes[r] = node
