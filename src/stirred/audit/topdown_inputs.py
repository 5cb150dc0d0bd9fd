"""Makes small data for an audit of TopDown measurements, and knows the true answer to every query of the plan.

Places and records are invented from the plan alone; no confidential data are read. Some places are empty and some
cells hold nothing, others hold a few records or a dozen, so that noise which depends on the count shows. The invariant
a reader must know: the data keep the plan's zeros and constraints, as every program that follows the plan demands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.errors import StirredError
from stirred.topdown.data.constraints import invariant_values, require_kept
from stirred.topdown.data.counting import GEOGRAPHY, Counted, count_tables
from stirred.topdown.fitting.relations import relation_groups, require_related
from stirred.topdown.measuring import Entry, cell_labels, entries
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TOTAL, ConstraintSection, RelationSection, TableSection

if TYPE_CHECKING:
    import polars as pl

KEYS = ("table", "level", "geounit", "query", "cell")
"""Columns of measurements that say what was measured; a column ``value`` has the noisy count."""

_UNITS = 6
"""Units of the coarsest level that has several; each finer level has two more."""
_EMPTY = 3
"""Every third leaf is empty."""
_PATTERN = (3, 0, 1, 0, 12)
_OCCUPIED = 200
"""Cells of a leaf that may hold records, where no constraint asks for more."""


@dataclass(frozen=True, eq=False)
class Group:
    """One query at one level: what it is called, its noise by the plan, and the true counts, a row for each unit."""

    entry: Entry
    truth: NDArray[np.int64]
    planned: bool = True
    """Whether the plan has this query at this level."""

    @property
    def words(self) -> str:
        """What is measured, in words."""
        return f"'{self.entry.query}' of {self.entry.table} at level '{self.entry.level}'"


@dataclass(frozen=True, eq=False)
class MadeData:
    """Tables for a program, by name, and their true counts."""

    plan: TopDownPlan
    tables: Mapping[str, pl.DataFrame]
    counted: Counted

    def groups(self) -> list[Group]:
        """All queries of the plan at all levels, in its order."""
        found = entries(self.plan, self.counted.spine)
        return [Group(one, self.counted.counts(one.table, one.level, one.by)) for one in found]

    def unplanned(self, table: str, level: str, query: str) -> Group | None:
        """A query that the plan does not have at this level; None if its true counts are not known."""
        names = () if query == TOTAL else tuple(query.split("*"))
        listed = [one for one in self.plan.tables if one.name == table]
        spine = self.counted.spine
        if not listed or level not in spine.levels or not set(names) <= set(listed[0].schema_of.names):
            return None
        units, cells = spine.units(spine.levels.index(level)), listed[0].schema_of.number_of_groups(names)
        entry = Entry(table, level, query, names, units, cells, "0", "0", "")
        return Group(entry, self.counted.counts(table, level, names), planned=False)

    def keys(self, entry: Entry) -> pl.DataFrame:
        """The rows that measurements of a query must have, in the order of its units and cells."""
        import polars as pl

        spine = self.counted.spine
        names = spine.names[spine.levels.index(entry.level)].to_pylist()
        labels = cell_labels(self.plan.table(entry.table).schema_of, entry.by).to_pylist()
        return pl.DataFrame(
            {
                "table": [entry.table] * (entry.units * entry.cells),
                "level": [entry.level] * (entry.units * entry.cells),
                "geounit": [name for name in names for _ in labels],
                "query": [entry.query] * (entry.units * entry.cells),
                "cell": labels * entry.units,
            }
        )


def make_data(plan: TopDownPlan) -> MadeData:
    """Small data that fit a plan; raises if its zeros and constraints leave none that this module can make."""
    plan = plan.model_copy(update={"earlier": ()})  # earlier releases matter to the fit only
    leaves = _UNITS + 2 * (len(plan.spine.levels) - 1)
    tables = {GEOGRAPHY: _geography(plan, leaves)}
    counts = _counts(plan)
    for table in plan.tables:
        tables[table.name] = _rows(plan, table, counts[table.name], tables[GEOGRAPHY][plan.spine.levels[-1]].to_list())
    try:
        counted = count_tables(plan, tables)
        require_kept(counted, invariant_values(counted))
        require_related(counted)
    except StirredError:
        raise errors.audit_question(
            "The zeros and constraints of this plan", "must leave room for data that the audit can make"
        ) from None
    return MadeData(plan, tables, counted)


def _geography(plan: TopDownPlan, leaves: int) -> pl.DataFrame:
    import polars as pl

    columns = {}
    for number, level in enumerate(plan.spine.levels):
        last = _UNITS + 2 * number - 1
        columns[level] = [f"{level} {min(leaf, last) + 1:02d}" for leaf in range(leaves)]
    return pl.DataFrame(columns)


def _counts(plan: TopDownPlan) -> dict[str, NDArray[np.int64]]:
    """How many records each cell of an occupied leaf has, by table."""
    found, possible = {}, {}
    for table in plan.tables:
        allowed = np.ones(table.schema_of.cells, dtype=np.bool_)
        for zero in table.zeros:
            allowed &= ~table.schema_of.where(zero)
        cells = np.flatnonzero(allowed)
        counts = np.zeros(len(allowed), dtype=np.int64)
        if table.name in {one.counted for one in plan.constraints} | {one.counted for one in plan.relations}:
            counts[cells] = 1  # nothing is ruled out elsewhere because nothing is counted here
        else:
            counts[cells[:_OCCUPIED]] = np.resize(_PATTERN, min(len(cells), _OCCUPIED))
        found[table.name], possible[table.name] = counts, allowed
    for _ in plan.constraints:  # a table that is raised may be counted in another constraint
        for one in plan.constraints:
            _raise_to(plan, one, found, possible[one.table])
    for _ in plan.relations:
        for relation in plan.relations:
            _relate(plan, relation, found, possible)
    return found


def _relate(
    plan: TopDownPlan,
    relation: RelationSection,
    found: dict[str, NDArray[np.int64]],
    possible: Mapping[str, NDArray[np.bool_]],
) -> None:
    """Add records to the first possible cell of each group of either table that has fewer than a relation demands."""
    mine, theirs, number = relation_groups(plan, relation)
    for group in range(number):
        inside, there = mine == group, theirs == group
        some, others = int(found[relation.table][inside].sum()), int(found[relation.counted][there].sum())
        most = relation.at_most or (some if relation.zero_without else 0)
        lacking = (
            (relation.table, inside, relation.at_least * others - some),
            (relation.counted, there, -(-some // most) - others if most else 0),
        )
        for name, cells, missing in lacking:
            if missing > 0 and (cells & possible[name]).any():
                found[name][np.flatnonzero(cells & possible[name])[0]] += missing


def _raise_to(
    plan: TopDownPlan, one: ConstraintSection, found: dict[str, NDArray[np.int64]], allowed: NDArray[np.bool_]
) -> None:
    """Add records to the first possible cell of each group that has fewer than a constraint demands."""
    mine, theirs = plan.table(one.table).schema_of, plan.table(one.counted).schema_of
    for label in theirs.labels(tuple(one.each.values())):
        values = dict(zip(one.each, label, strict=True))
        if any(value not in mine.values(name) for name, value in values.items()):
            continue
        inside = mine.where({name: [value] for name, value in values.items()} or one.where)
        there = theirs.where({one.each[name]: [value] for name, value in values.items()})
        missing = one.at_least * int(found[one.counted][there].sum()) - int(found[one.table][inside].sum())
        if missing > 0 and (inside & allowed).any():
            found[one.table][np.flatnonzero(inside & allowed)[0]] += missing


def _rows(plan: TopDownPlan, table: TableSection, counts: NDArray[np.int64], leaves: list[str]) -> pl.DataFrame:
    """A row for each record of the occupied leaves, or with a count column one for each cell that holds any."""
    import polars as pl

    cells = np.flatnonzero(counts)
    number = counts[cells] if table.count is None else np.ones(len(cells), dtype=np.int64)
    each = np.repeat(cells, number)
    occupied = [leaf for place, leaf in enumerate(leaves) if place % _EMPTY != _EMPTY - 1]
    labels = table.schema_of.labels(tuple(one.name for one in table.attributes))
    columns: dict[str, pl.Series] = {
        table.place or plan.spine.levels[-1]: pl.Series([leaf for leaf in occupied for _ in each], dtype=pl.String)
    }
    for at, attribute in enumerate(table.attributes):
        values = [labels[cell][at] for cell in each] * len(occupied)
        columns[attribute.column or attribute.name] = pl.Series(values, dtype=pl.String)
    if table.count is not None:
        columns[table.count] = pl.Series(np.tile(counts[each], len(occupied)))
    return pl.DataFrame(columns)
