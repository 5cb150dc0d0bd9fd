"""What the tables of a swap's release contain: the role of every column, as the plan determines it.

Used twice: to describe what is written, and by a recipient's check, which derives from the plan what must be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from stirred.releases.folder.documents import ReleasedTable
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import MAIN, LinkedTable
from stirred.tables import Column, Table
from stirred.tables.csv_style import USUAL, CsvStyle
from stirred.tables.labelled_files import Labels
from stirred.tables.writing import EXTENSIONS, csv_cells


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
    """The plan of a linked table."""
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
