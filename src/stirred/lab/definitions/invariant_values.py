"""Counts the values of declared invariants on tables, and compares them by fingerprints.

:class:`stirred.spec.Invariant` says what is kept; this module counts it on data. An inequality invariant keeps of each
count only whether it reaches its threshold (Equation 2.6), so its value is the set of cells that do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from stirred import errors
from stirred.invariants.margins import fingerprint
from stirred.spec import Invariant
from stirred.tables import Column, Table
from stirred.tables.groups import Cells, cells


def evaluate(invariant: Invariant, table: Table) -> tuple[Table, Cells]:
    """The cells of an invariant and their counts; for an inequality the cells that reach it, each counted once.

    The table that comes with them has the values that occur in those cells and no others.
    """
    if invariant.name:
        raise errors.cannot_evaluate(f"the invariant '{invariant.name}'")
    wanted = (*invariant.by, *(column for column, _ in invariant.where))
    if lacking := [name for name in dict.fromkeys(wanted) if name not in table.columns]:
        raise errors.missing_columns(table.name, lacking)
    rows = np.ones(table.rows, dtype=np.bool_)
    for name, value in invariant.where:
        texts = table[name].texts()
        rows &= table[name].codes == texts.index(value) if value in texts else np.False_
    counted = _counted(table.pick(invariant.by), rows)
    if invariant.at_least is not None:
        reached = counted[1].counts >= invariant.at_least
        found = [counted[0][name].with_codes(codes) for name, codes in zip(invariant.by, counted[1].codes, strict=True)]
        counted = _counted(found, reached)
    return Table(table.name, counted[0].rows, counted[0].columns), counted[1]


def _counted(columns: list[Column], rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Table, Cells]:
    kept = {column.name: _present(column.with_codes(column.codes[rows])) for column in columns}
    number = int(np.count_nonzero(rows))
    return Table("", number, kept), cells(list(kept.values()), number)


def _present(column: Column) -> Column:
    """The column with the values that occur in it and no others."""
    used, codes = np.unique(column.codes, return_inverse=True)
    return Column(column.name, codes.astype(column.codes.dtype), column.decode(used))


def digest(invariant: Invariant, table: Table) -> str:
    """SHA-256 of the invariant's value: the same on two tables if, and only if, they agree on it."""
    return fingerprint(*evaluate(invariant, table))


def agree(invariants: Iterable[Invariant], first: Table, second: Table) -> bool:
    """Whether two tables agree on all of these invariants."""
    return all(digest(invariant, first) == digest(invariant, second) for invariant in invariants)


def recount(invariants: Iterable[Invariant], tables: Mapping[str, Table]) -> dict[Invariant, str | None]:
    """The fingerprint of every invariant on released tables, given by what they count (``{"household": ...}``).

    None where the tables at hand cannot show an invariant.
    """
    found: dict[Invariant, str | None] = {}
    for invariant in invariants:
        table = tables.get(invariant.counts)
        wanted = {*invariant.by, *(column for column, _ in invariant.where)}
        shown = table is not None and wanted <= set(table.columns)
        found[invariant] = digest(invariant, table) if shown and table is not None else None
    return found
