"""Reads the confidential data of a swap once: encoded columns, strata, and linked rows tied to their records.

A *record* is one row of the main table together with all linked rows that belong to it: two households that differ only
in their persons are different records. Everything that check and release compute starts from a :class:`Dataset`;
loading it settles every question about columns, nulls and ids.

What is a function of the plan and of column names alone (the role of every column, flat files, merged match values) is
used by a recipient's check too, which derives from the plan what must be there. A *flat file* has one row for each
person, in which the columns of the household are repeated. Read, it is split into the records (households) and their
linked rows (persons); a release puts them together again, row by row.

*Merged match values* make coarser strata where a stratum is small, by a rule of the plan. The rule looks at the plan
and at how many records have which match values, and at nothing else. These counts are invariants, so the strata are the
same for every file of the universe and the theorem holds with the merged strata. The value itself is then *held* and
not matched: its counts by swap variables are no longer kept, those of the merged value are. A rule that looked at swap
values ("merge strata with one swap value") would have no finite epsilon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import confidential
from stirred._progress import telling
from stirred._threads import meanwhile
from stirred.releases.folder.documents import ReleasedTable
from stirred.releases.mechanism import Data
from stirred.releases.plans import by_table
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN, LinkedTable, PublishedTable
from stirred.tables import Column, Input, Table, open_input
from stirred.tables.columns import exact_values, plain_type, smallest_type
from stirred.tables.exact_numbers import require_numeric
from stirred.tables.groups import Groups, anonymous, cells, group
from stirred.tables.labelled_files import Labels
from stirred.tables.reading.inputs import Told, shares
from stirred.tables.reading.table_reader import count_repeated, locate, read_table
from stirred.tables.writing import EXTENSIONS, USUAL, Cell, Chunk, CsvStyle, csv_cells


def roles_of(plan: SwapPlan, table: str, columns: Sequence[str]) -> dict[str, str]:
    """The role of each column of a released table; columns for which the plan has no place are left out."""
    if table == MAIN:
        named = dict.fromkeys(plan.match, "match") | dict.fromkeys(plan.swap, "swap")
        named |= {plan.id: "id"} if plan.id else {}
        held = plan.hold
    else:
        entry = linked_plan(plan, table)
        named = {name: "copy" for name in columns if name in copies_of(plan, entry, columns)} | {entry.link: "link"}
        named |= {entry.id: "id"} if entry.id else {}
        held = entry.hold
    rest = (name for name in columns if name not in named)
    named |= dict.fromkeys(rest if held == "rest" else held, "hold")
    return {name: named[name] for name in columns if name in named}


def missing_from(plan: SwapPlan, table: str, columns: Sequence[str]) -> list[str]:
    """Columns that the plan releases in a table and that are not there."""
    if table == MAIN:
        asked = [*plan.match, *plan.swap, *([plan.id] if plan.id else []), *_listed(plan.hold)]
    else:
        entry = linked_plan(plan, table)
        asked = [entry.link, *([entry.id] if entry.id else []), *entry.copies, *_listed(entry.hold)]
    return [name for name in asked if name not in columns]


def held_columns(plan: SwapPlan, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The held columns of a released table, in the order of its invariants."""
    if table == MAIN and plan.hold != "rest":
        return tuple(plan.hold)
    return tuple(name for name, role in roles_of(plan, table, columns).items() if role == "hold")


def copies_of(plan: SwapPlan, entry: LinkedTable, columns: Sequence[str]) -> dict[str, str]:
    """The columns of a linked table that repeat a swap variable of the record, and which one."""
    same = {name: name for name in plan.swap if name in columns and name not in entry.drop}
    return same | dict(entry.copies)


def linked_plan(plan: SwapPlan, name: str) -> LinkedTable:
    """The part of a plan that is about a linked table."""
    return next(entry for entry in plan.linked if entry.name == name)


def described(
    plan: SwapPlan,
    name: str,
    kind: str,
    columns: Sequence[str],
    table: Table,
    order: str,
    copied: Mapping[str, Column] | None = None,
    style: CsvStyle = USUAL,
) -> ReleasedTable:
    """A table as the data dictionary states it; ``copied`` are columns that repeat those of the record."""
    encoded = Table(name, table.rows, dict(table.columns) | dict(copied or {}))
    roles = tuple(roles_of(plan, name, columns).items())
    return ReleasedTable(name, name + EXTENSIONS[kind], kind, table.rows, order, roles, encoded, style)


def style_of(table: ReleasedTable, wanted: CsvStyle) -> CsvStyle:
    """How the file of a released table is written: as its input was, where nothing can be mistaken then.

    Missing cells keep their text unless it is also that of a value, as a copy may bring one from another table, or
    could be that of a new id.
    """
    if table.format != "csv" or not wanted.null:
        return wanted if table.format == "csv" else USUAL
    numbered = any(role in ("id", "link") for _, role in table.columns) and wanted.null.strip().isdecimal()
    cells = (csv_cells(column.values, wanted) for column in table.encoded.columns.values())
    mistaken = numbered or any(pc.any(pc.equal(texts, wanted.null)).as_py() for texts in cells)
    return replace(wanted, null="") if mistaken else wanted


def flat_style(tables: Sequence[ReleasedTable]) -> CsvStyle:
    """How a flat file is written: as the two tables that it is put together from, where they agree."""
    styles = {table.style for table in tables}
    return styles.pop() if len(styles) == 1 else replace(tables[0].style, null="")


def flat_labels(tables: Sequence[ReleasedTable], columns: Sequence[str] = ()) -> Labels | None:
    """The labels of a flat file with these columns: those of the two tables; None if they have none of one kind."""
    main, linked = (table.labels for table in tables)
    return None if main is None or linked is None or main.kind != linked.kind else main.beside(linked, columns)


def _listed(held: str | Sequence[str]) -> list[str]:
    return [] if held == "rest" else list(held)


FLAT = "flat"
"""The name of the flat file in a release."""


def records_of(ids: pa.ChunkedArray) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The number of the record that each row belongs to, and the first row of each record.

    >>> [one.tolist() for one in records_of(pa.chunked_array([["b", "a"], ["b"]]))]
    [[0, 1, 0], [0, 1]]
    """
    codes = ids.combine_chunks().dictionary_encode().indices.to_numpy()
    return codes.astype(np.uint32), np.unique(codes, return_index=True)[1]


def count_varying(column: Column, record: NDArray[np.uint32], first: NDArray[np.int64]) -> int:
    """In how many rows a column differs from the first row of the same record."""
    return int(np.count_nonzero(column.codes != column.codes[first][record]))


def flat_chunks(columns: Sequence[str], link: str, main: Table, linked: Iterable[Chunk]) -> Iterator[Chunk]:
    """Linked rows beside the columns of their record; ``main`` and ``linked`` are in the order of the release."""
    for chunk in linked:
        own = {cell.name: cell for cell in chunk}
        at = own[link].codes - 1
        yield [own[name] if name in own else Cell(name, main[name].codes[at], main[name]) for name in columns]


def merged_name(plan: SwapPlan) -> str:
    """What the merged variable is called beside the columns of the file."""
    assert plan.coarsen is not None
    return f"{plan.coarsen.column} (merged)"


def stratum_columns(plan: SwapPlan) -> tuple[str, ...]:
    """The match variables, the merged one in the place of its column."""
    if plan.coarsen is None:
        return plan.match
    return tuple(merged_name(plan) if name == plan.coarsen.column else name for name in plan.match)


def constant_columns(plan: SwapPlan) -> tuple[str, ...]:
    """The match variables that all records of a stratum share."""
    return plan.match if plan.coarsen is None else tuple(name for name in plan.match if name != plan.coarsen.column)


def fine_columns(plan: SwapPlan) -> tuple[str, ...]:
    """The match variable that is held within merged strata, if there is one."""
    return () if plan.coarsen is None else (plan.coarsen.column,)


def with_merged(plan: SwapPlan, table: Table) -> Table:
    """The table with the merged variable beside its columns; the table itself where nothing is merged."""
    if plan.coarsen is None:
        return table
    name = merged_name(plan)
    if name in table.columns:
        raise errors.plan_field([f"coarsen: the file has a column '{name}' already; rename it"])
    return Table(table.name, table.rows, {**table.columns, name: _merged(plan, table, name)})


def strata_groups(plan: SwapPlan, table: Table) -> Groups:
    """Which stratum each record of a table that has the merged variable is in."""
    return group(table.pick(stratum_columns(plan)), table.rows)


def _merged(plan: SwapPlan, table: Table, name: str) -> Column:
    assert plan.coarsen is not None
    column = table[plan.coarsen.column]
    texts = column.texts()
    areas = group(table.pick(constant_columns(plan)), table.rows)
    both = [anonymous(areas.ids, areas.count), column]
    fine = cells(both, table.rows)
    inside = np.array([[text in values for text in texts] for values in plan.coarsen.merge], dtype=np.bool_)
    merged = _merge(fine.codes[0], fine.codes[1], fine.counts, inside, plan.coarsen.at_least)
    used, codes = np.unique(merged, return_inverse=True)
    labels = [*texts, *(", ".join(values) for values in plan.coarsen.merge)]
    narrow = codes.astype(smallest_type(len(used)))
    return Column(name, narrow[group(both, table.rows).ids], pa.array([labels[code] for code in used], pa.string()))


def _merge(
    area: NDArray[np.integer],
    value: NDArray[np.integer],
    counts: NDArray[np.integer],
    inside: NDArray[np.bool_],
    at_least: int,
) -> NDArray[np.int64]:
    """The merged value of each cell (area, value): the value, or the number of values plus that of the list.

    List after list: in an area where one of the groups that lie inside the list has too few records, all of the
    list becomes one group.
    """
    values = inside.shape[1]
    merged = value.astype(np.int64)
    for number, among in enumerate(inside):
        here = np.flatnonzero(among[value])
        if not len(here):
            continue
        keys = area[here].astype(np.int64) * (values + len(inside)) + merged[here]
        _, which = np.unique(keys, return_inverse=True)
        sizes = np.bincount(which, weights=counts[here])[which]
        small = np.unique(area[here[sizes < at_least]])
        merged[here[np.isin(area[here], small)]] = values + number
    return merged


_FEWEST_OF_GROUP, _MOST_OF_GROUP = 1.2, 100
"""How many rows share a value of a column that looks like the id of a household or a firm, in the mean."""
_VARYING = 0.01
"""The share of rows in which a column of a group may differ, by errors in the file."""


@confidential
class Linked:
    """A linked table: its held columns, which others repeat a swap variable of the record, and which row of the main
    table each of its rows belongs to."""

    plan: LinkedTable
    held: Table
    copies: Mapping[str, str]
    record: NDArray[np.uint32]


@confidential
class LinkedInput(Linked):
    """A linked table of the confidential data, with the input that it was read from."""

    input: Input
    columns: tuple[str, ...]
    """Names to be written, in the order of the input."""


@confidential
class Dataset:
    """Records and a plan, brought together: those of the data, or of a release, in which the invariants are the same.
    ``held`` is the plan's hold with "rest" spelled out."""

    plan: SwapPlan
    held: tuple[str, ...]
    table: Table
    counted: Table
    """The table with the merged match variable beside its columns, where the plan merges one; else the table itself."""
    strata: Groups
    linked: tuple[Linked, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return self.table.rows

    @property
    def held_within(self) -> tuple[str, ...]:
        """What stays within a stratum: the held columns, and the match column whose values are merged."""
        return (*fine_columns(self.plan), *self.held)

    @property
    def linked_columns(self) -> dict[str, tuple[str, ...]]:
        """The held columns of each linked table."""
        return {entry.plan.name: tuple(entry.held.columns) for entry in self.linked}

    def held_tables(self) -> Iterator[tuple[Table, NDArray[np.uint32] | None]]:
        """The tables with held columns, and the record that each row belongs to; None where rows are records."""
        if self.held_within:
            yield Table(MAIN, self.records, {name: self.table[name] for name in self.held_within}), None
        yield from ((entry.held, entry.record) for entry in self.linked if entry.held.columns)

    @property
    def by_name(self) -> dict[str, Linked]:
        """The linked tables by their names."""
        return {entry.plan.name: entry for entry in self.linked}

    # -- what tables of counts and of sums see: records, or linked rows beside the columns of their record -------

    def of_record(self, asked: PublishedTable, name: str) -> str | None:
        """The column of the record that ``name`` means in a table; None for a linked table's own."""
        if asked.linked is None:
            return name
        linked = self.by_name[asked.linked]
        return None if name in linked.held.columns else linked.copies.get(name, name)

    def rows_of(self, asked: PublishedTable) -> int:
        """How many rows are counted."""
        return self.records if asked.linked is None else self.by_name[asked.linked].held.rows

    def record_of(self, asked: PublishedTable) -> NDArray[np.integer]:
        """The record of each row that is counted."""
        return np.arange(self.records) if asked.linked is None else self.by_name[asked.linked].record

    def columns_of(self, asked: PublishedTable, names: Sequence[str]) -> list[Column]:
        """Columns of the rows that are counted."""
        found = []
        for name in names:
            column = self._values_of(asked, name)
            if asked.linked is not None and self.of_record(asked, name) is not None:
                column = Column(name, column.codes[self.by_name[asked.linked].record], column.values)
            found.append(column)
        return found

    def require(self, asked: PublishedTable) -> None:
        """Raise unless the release will have the columns of a table, and those that are added up are numbers."""
        known = list(self.table.columns)
        if asked.linked is not None:
            linked = self.by_name[asked.linked]
            known = list(dict.fromkeys([*linked.held.columns, *linked.copies, *known]))
        for names, how in ((asked.by, "by"), (asked.added, "that adds up")):
            if unknown := [name for name in names if name not in known]:
                elsewhere = [
                    table
                    for table, columns in self.linked_columns.items()
                    if asked.linked is None and set(unknown) <= set(columns)
                ]
                raise errors.table_columns(unknown, known, asked.linked, elsewhere, how)
        for name in asked.added:
            require_numeric(self._values_of(asked, name))

    def _values_of(self, asked: PublishedTable, name: str) -> Column:
        """A column without its rows."""
        target = self.of_record(asked, name)
        if target is not None:
            return self.table[target]
        assert asked.linked is not None
        return self.by_name[asked.linked].held[name]


@confidential
class InputDataset(Dataset):
    """The confidential data, with what was read."""

    linked: tuple[LinkedInput, ...]
    input: Input
    columns: tuple[str, ...]
    flat: tuple[str, ...] = ()
    """The columns of a flat file, in the order of the input."""


def inputs(plan: SwapPlan, data: Data | None = None) -> dict[str, Data]:
    """By table, the path or frame that is read."""
    linked = () if plan.flat is not None else plan.linked
    given = by_table(data, MAIN, [entry.name for entry in linked])
    found = {MAIN: plan.input.path} | {entry.name: entry.input.path for entry in linked}
    found |= {name: place for name, place in given.items() if place is not None}
    for name, place in found.items():
        if place is None:
            raise errors.plan_field([f"input: no data were given for table '{name}' and the plan names no path"])
    return {name: Path(place) if isinstance(place, str) else place for name, place in found.items()}


def load(plan: SwapPlan, data: Data | None = None) -> InputDataset:
    """Read and encode what the plan names.

    ``data`` replaces the paths of the plan: a path or a frame for the main table, or a mapping of such by the name of
    the table, ``"microdata"`` for the main one.
    """
    places = inputs(plan, data)
    # All files are opened before the first is read and compared after the last: so they are of one moment.
    opened = open_input(MAIN, places[MAIN], plan.input.options())
    if plan.flat is not None:
        return _load_flat(plan, plan.flat, opened)
    others = [open_input(entry.name, places[entry.name], entry.input.options()) for entry in plan.linked]
    own = [plan.id] if plan.id else []
    held = _resolve_roles(MAIN, opened, [*plan.match, *plan.swap], plan.hold, [*plan.drop, *own])
    if not held and not plan.linked:
        raise errors.empty_role("hold")
    used = [*plan.match, *plan.swap, *held]
    _require_no_float(plan, opened)
    told, *each = _told([opened, *others])
    read = _read(opened, used, own, plan.nulls, told)
    linked = [_read_linked(plan, *one) for one in zip(plan.linked, others, each, strict=True)]
    for one in (opened, *others):
        one.require_unchanged()
    if forbidden := [one.forbidden for one in (read, *(entry.read for entry in linked)) if one.forbidden is not None]:
        raise errors.nulls(forbidden, _looked(plan))
    table, ids = read.table, read.identifiers
    if plan.id and (repeated := count_repeated(ids[plan.id])) > 0:
        raise errors.duplicate_ids(MAIN, plan.id, repeated, may_be_flat=not plan.linked)
    if not plan.linked:
        ids = {}  # a column of ids is as large as all the others together
    ties = tuple(_tie(plan, entry, ids, table) for entry in linked)
    _require_known(plan, {*used, *(column for entry in linked for column in entry.read.table.columns)}, held, ties)
    columns = tuple(name for name in opened.kinds if name in {*used, *own})
    ordered = Table(MAIN, table.rows, {name: table[name] for name in columns if name in table.columns})
    counted = with_merged(plan, ordered)
    return InputDataset(plan, held, ordered, counted, strata_groups(plan, counted), ties, opened, columns)


def _require_no_float(plan: SwapPlan, opened: Input) -> None:
    for column in plan.match:
        if pa.types.is_floating(plain_type(opened.kinds[column])):
            raise errors.float_match(column)


def _require_known(plan: SwapPlan, released: set[str], held: Sequence[str], ties: Sequence[Linked]) -> None:
    """Raise if the plan allows a stop of a column that there is not."""
    known = {*held, *fine_columns(plan), *(name for tie in ties for name in tie.held.columns)}
    for name in plan.allow:
        if name.startswith("changes-text:"):
            unknown = name.partition(":")[2] not in released
        else:
            groups = {*plan.match} if name.startswith("undone:") else set()
            unknown = ":" in name and not _names_held(name, known | groups)
        if unknown:
            raise errors.unknown_allowance(name)


def _told(inputs: Sequence[Input]) -> list[Told]:
    """Whom to tell the share of each input that is read, most of the time of a release."""
    return shares(inputs, telling("reading"))


def _load_flat(plan: SwapPlan, entry: LinkedTable, opened: Input) -> InputDataset:
    """Read a flat file and split it into records and their rows."""
    assert plan.id is not None
    numbered = [plan.id, *([entry.id] if entry.id else [])]
    named = [*plan.match, *plan.swap, *plan.drop, *numbered, *entry.drop]
    own = tuple(
        [name for name in opened.kinds if name not in (*named, *plan.hold)] if entry.hold == "rest" else entry.hold
    )
    held = _resolve_roles(
        MAIN, opened, [*plan.match, *plan.swap], plan.hold, [*plan.drop, *numbered, *entry.drop, *own]
    )
    used = [*plan.match, *plan.swap, *held]
    _require_no_float(plan, opened)
    read = _read(opened, [*used, *own], numbered, [*plan.nulls, *entry.nulls], *_told([opened]))
    if (found := read.forbidden) is not None:
        parts = [
            replace(found, counts={name: count for name, count in found.counts.items() if name not in own}),
            errors.NullsFound(
                entry.name, {name: found.counts[name] for name in own if name in found.counts}, (), entry.nulls, False
            ),
        ]
        raise errors.nulls([replace(parts[0], allowed=plan.nulls), parts[1]], _looked(plan))
    if entry.id and (repeated := count_repeated(read.identifiers[entry.id])) > 0:
        raise errors.duplicate_ids(MAIN, entry.id, repeated)
    record, first = records_of(read.identifiers[plan.id])
    varying = {
        name: count
        for name in opened.kinds
        if name in used and (count := count_varying(read.table[name], record, first))
    }
    if varying:
        raise errors.flat_varies(plan.id, varying)
    columns = tuple(name for name in opened.kinds if name in {*used, plan.id})
    theirs = tuple(name for name in opened.kinds if name in {*own, *numbered})
    main = Table(
        MAIN,
        len(first),
        {name: read.table[name].with_codes(read.table[name].codes[first]) for name in columns if name != plan.id},
    )
    stays = Table(entry.name, read.table.rows, {name: read.table[name] for name in theirs if name in own})
    apart = {name: cells for name, cells in opened.rewritten.items() if name in own}
    tie = LinkedInput(entry, stays, {}, record, replace(opened, table=entry.name, rewritten=apart), theirs)
    rest = {name: cells for name, cells in opened.rewritten.items() if name not in own}
    _require_known(plan, {*used, *own}, held, [tie])
    counted = with_merged(plan, main)
    return InputDataset(
        plan,
        held,
        main,
        counted,
        strata_groups(plan, counted),
        (tie,),
        replace(opened, rewritten=rest),
        columns,
        tuple(name for name in opened.kinds if name in {*columns, *theirs}),
    )


def kept_with_dropped_ids(dataset: InputDataset) -> dict[str, list[tuple[str, ...]]]:
    """For each dropped column that looks like an id of groups of rows, the columns that are the same within a group.

    The id of a household is often dropped while the household's own columns stay and do the same.
    """
    plan = dataset.plan
    dropped = [name for name in plan.drop if name in dataset.input.kinds]
    if not dropped or plan.flat is not None:
        return {}
    read = read_table(dataset.input, dropped, []).table
    found = []
    for column in read.columns.values():
        if not _FEWEST_OF_GROUP <= dataset.records / column.cardinality <= _MOST_OF_GROUP:
            continue
        first = np.unique(column.codes, return_index=True)[1]
        same = [
            name
            for name in (*plan.match, *dataset.held_within)
            if count_varying(dataset.table[name], column.codes, first) <= _VARYING * dataset.records
        ]
        found += [tuple(dict.fromkeys(same))] if same else []
    return {MAIN: found}


def _names_held(allowance: str, held: set[str]) -> bool:
    """Whether an allowance such as "determines:tract" or "tells:x+y" is about held columns."""
    kind, _, named = allowance.partition(":")
    if kind == "tells":
        return named == "all-held-columns" or named in held or set(named.split("+")) <= held
    return named in held or (kind == "undone" and set(named.split("+")) <= held)


def _resolve_roles(
    table: str, opened: Input, named: Sequence[str], hold: str | Sequence[str], others: Sequence[str]
) -> tuple[str, ...]:
    """The held columns, once every column of the input is known to have one role."""
    listed = [*named, *others, *([] if hold == "rest" else hold)]
    missing = [name for name in listed if name not in opened.kinds]
    if missing:
        if indexed := [name for name in missing if name in opened.index]:
            raise errors.index_column(table, indexed)
        raise errors.missing_columns(table, missing, opened.kinds)
    rest = tuple(name for name in opened.kinds if name not in listed)
    if hold == "rest":
        return rest
    if rest:
        raise errors.columns_without_role(table, rest)
    return tuple(hold)


def _looked(plan: SwapPlan) -> bool:
    """Whether the plan says that types and formats of this data, or more, were looked at."""
    return plan.chosen_from == "this data" or plan.looked_at in ("types and formats", "values")


@confidential
class _Read:
    """A table as it was read, and the nulls that it must not have."""

    table: Table
    identifiers: Mapping[str, pa.ChunkedArray]
    forbidden: errors.NullsFound | None


def _read(opened: Input, columns: Sequence[str], identifiers: Sequence[str], nulls: Sequence[str], told: Told) -> _Read:
    """Read a table in which only the columns of ``nulls`` may have nulls; ids never may."""
    unknown = [name for name in nulls if name not in opened.kinds]
    if unknown:
        raise errors.missing_columns(opened.table, unknown, opened.kinds)
    found = read_table(opened, columns, identifiers, told=told)
    counts = {name: count for name, count in found.nulls.items() if name not in nulls or name in identifiers}
    ordered = {name: counts[name] for name in opened.kinds if name in counts}
    forbidden = errors.NullsFound(opened.table, ordered, identifiers, nulls, opened.table == MAIN) if counts else None
    return _Read(found.table, found.identifiers, forbidden)


@confidential
class _ReadLinked:
    """A linked table as it was read, not tied to its records yet."""

    plan: LinkedTable
    input: Input
    copies: Mapping[str, str]
    read: _Read


def _read_linked(plan: SwapPlan, entry: LinkedTable, opened: Input, told: Told) -> _ReadLinked:
    copies = copies_of(plan, entry, list(opened.kinds))
    own = [entry.link, *([entry.id] if entry.id else [])]
    held = _resolve_roles(entry.name, opened, [], entry.hold, [*own, *entry.drop, *copies])
    return _ReadLinked(entry, opened, copies, _read(opened, [*held, *copies], own, entry.nulls, told))


def _tie(plan: SwapPlan, linked: _ReadLinked, ids: Mapping[str, pa.ChunkedArray], main: Table) -> LinkedInput:
    """Find the record of each row of a linked table, and see that the copies of swap variables agree."""
    entry, opened, copies = linked.plan, linked.input, linked.copies
    table, found = linked.read.table, linked.read.identifiers
    assert plan.id is not None
    if not _comparable(found[entry.link].type, ids[plan.id].type):
        raise errors.id_types_differ(entry.name, entry.link)
    with meanwhile(lambda: count_repeated(found[entry.id]) if entry.id else 0) as repeated:
        position = locate(ids[plan.id], found[entry.link])
        if entry.id and (many := repeated()) > 0:
            raise errors.duplicate_ids(entry.name, entry.id, many)
    if (orphans := int(np.count_nonzero(position < 0))) > 0:
        raise errors.linked_without_record(entry.name, entry.link, MAIN, orphans)
    record = position.astype(np.uint32)
    for column, target in copies.items():
        if not _comparable(table[column].type, main[target].type):
            raise errors.id_types_differ(entry.name, column)
        if (differing := count_differing(table[column], main[target], record)) > 0:
            raise errors.copies_disagree(entry.name, column, target, differing)
    columns = tuple(name for name in opened.kinds if name in {*found, *table.columns})
    held = [name for name in columns if name not in found and name not in copies]
    stays = Table(entry.name, table.rows, {name: table[name] for name in held})
    return LinkedInput(entry, stays, copies, record, opened, columns)


def _comparable(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (pa.types.is_integer(one) and pa.types.is_integer(other)))


def count_differing(copy: Column, target: Column, record: NDArray[np.uint32]) -> int:
    """In how many linked rows a copy differs from the column of the record."""
    if copy.type == target.type:
        found = pc.index_in(exact_values(copy.values), value_set=exact_values(target.values)).fill_null(-1)
        translation = np.asarray(found.to_numpy(), dtype=np.int64)
    else:  # integers of different widths
        known = {value: code for code, value in enumerate(target.values.to_pylist())}
        translation = np.array([known.get(value, -1) for value in copy.values.to_pylist()], dtype=np.int64)
    return int(_differing(copy.codes, translation, target.codes, record))


@kernel
def _differing(copy, translation, target, record):  # type: ignore[no-untyped-def]
    count = 0
    for i in range(len(copy)):
        if translation[copy[i]] != np.int64(target[record[i]]):
            count += 1
    return count
