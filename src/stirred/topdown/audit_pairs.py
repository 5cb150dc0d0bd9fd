"""Worst pairs for TopDown: a few made records, of which one changes its cell while everything that is kept stays.

Measurements with noise of some variance on each cell tell two such files apart best by one number: the sum, over all
queries and levels, of what the new cell's values exceed the old cell's, divided by the variance. (For Gaussian noise
that is the log-likelihood ratio, up to a constant.) That number is what is looked at.

A change keeps the invariants if the two cells lie in the same group of each of them, and likewise of each constraint.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.schema import Groups
from stirred.releases.mechanism import AuditPair
from stirred.topdown.data.constraints import Known, groups_about, require_kept
from stirred.topdown.data.counting import GEOGRAPHY, count_tables
from stirred.topdown.fitting.relations import relation_groups, require_related
from stirred.topdown.measuring import cell_labels
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.sections import ConstraintSection, QuerySection, RelationSection, TableSection

MEASUREMENTS = "measurements"
"""What the output of a program is called: a row for each measured value."""
KEYS = ("table", "level", "geounit", "query", "cell")
"""Its columns beside ``value``."""

_PLACES = ((0, 0), (0, 1), (1, 0))
"""The finest places of a made file, by the first and the last step down the spine."""

Tables = Mapping[str, pl.DataFrame]
Cells = tuple[int, int]


@dataclass(frozen=True)
class Change:
    """One record that moves from one cell to another, and how many others are in the two."""

    name: str
    words: str
    place: int
    others: tuple[int, int]
    edge: bool = False
    """Whether the cells are at the edge of the domain."""


_CHANGES = (
    Change("one-record", "one record moves to another cell, and both cells have other records", 0, (3, 3)),
    Change("empty-cell", "one record moves to a cell that was empty", 0, (3, 0)),
    Change("edge-of-domain", "one record moves between the first and the last cell that it may have, in the last place",
           2, (3, 3), edge=True),
    Change("alone-in-its-place", "the only record of a place moves to another cell", 1, (0, 0)),
)  # fmt: skip


def audit_pairs(plan: TopDownPlan) -> list[AuditPair]:
    """Pairs of files for a plan; those that its constraints do not allow are left out."""
    if plan.earlier:
        raise errors.not_audited("A plan that agrees with earlier releases", "made files would contradict them")
    found = []
    for change in _CHANGES:
        # A record of every released table changes at once if that is possible: then all of the budget is at stake.
        for tables in (plan.released, [one for one in plan.released if one.unit == plan.unit][:1]):
            cells = {table.name: _cells(plan, table, change.edge) for table in tables}
            moves = {name: pair for name, pair in cells.items() if pair is not None}
            made = Made(plan, change, moves)
            if moves and made.is_possible():
                found.append(made.pair())
                break
    if not found:
        raise errors.not_audited("This plan", "its invariants and constraints let no record change by itself")
    return found


def _cells(plan: TopDownPlan, table: TableSection, edge: bool) -> Cells | None:
    """The two cells between which a record can move and which most of the budget tells apart.

    At the ``edge`` of the domain they are the first cell from which a record can move, and the last to which it can.
    """
    schema = table.schema_of
    kept = [schema.groups(one.by) for one in plan.invariants if one.table == table.name]
    kept += [groups_about(plan, one) for one in plan.constraints if one.table == table.name]
    kept += [relation_groups(plan, one)[0] for one in plan.relations if one.table == table.name]
    possible = np.flatnonzero(table.possible)
    alike = np.zeros(len(possible), dtype=np.int64)
    for groups in kept:
        alike = np.unique(np.stack([alike, groups[possible]]), axis=1, return_inverse=True)[1]
    ends = [(possible[alike == one][0], possible[alike == one][-1]) for one in dict.fromkeys(alike.tolist())]
    moves = [(int(first), int(last)) for first, last in ends if first != last]
    if not moves:
        return None
    return moves[0] if edge else max(moves, key=lambda cells: _told(plan, table, cells))


def _told(plan: TopDownPlan, table: TableSection, cells: Cells) -> float:
    """The rho that all queries together spend between two cells."""
    first, second = cells
    told = Fraction(0)
    for query in table.queries:
        apart = int(np.abs(_moved(table, query, first, second)[1]).sum())
        for level in plan.spine.all_levels:
            variance = table.variance_of(level, query, plan.one_place(level))
            told += apart / (2 * variance) if variance is not None else 0
    return float(told)


def _moved(table: TableSection, query: QuerySection, first: int, second: int) -> tuple[NDArray[np.int64], Any]:
    """The groups of a query that a record leaves or enters when it moves from one cell to another: their numbers, and
    -1 or 1."""
    change = np.zeros(table.schema_of.number_of_groups(query.by), dtype=np.int64)
    for family in table.schema_of.families(query.by):
        for cell, by in ((first, -1), (second, 1)):
            if family.groups[cell] >= 0:
                change[family.columns[family.groups[cell]]] += by
    return np.flatnonzero(change), change[change != 0]


@dataclass(frozen=True, eq=False)
class Made:
    """Made files for a plan in which a record of some tables moves between two cells."""

    plan: TopDownPlan
    change: Change
    moves: Mapping[str, Cells]

    def pair(self) -> AuditPair:
        """The pair of files."""
        return AuditPair(
            self.change.name,
            self.change.words,
            "all measurements of the two cells, each as precise as its share of the budget makes it",
            1,
            1,
            specify(self.plan),
            self.tables,
            self.outcomes,
        )

    def is_possible(self) -> bool:
        """Whether both files keep the constraints, and have the same invariants."""
        try:
            known = []
            for form in (False, True):
                counted = count_tables(self.plan, self.tables([form]))
                known.append(Known.of(counted))
                require_kept(counted, known[-1])
                require_related(counted)
        except errors.StirredError:
            return False
        return all(np.array_equal(one, other) for one, other in zip(*(one.exact for one in known), strict=True))

    def tables(self, coins: Sequence[bool]) -> dict[str, pl.DataFrame]:
        """The list of places and all tables; in the second form the record is in the second cell."""
        records: dict[str, list[tuple[int, int]]] = {table.name: [] for table in self.plan.tables}
        for name, (first, second) in self.moves.items():
            for place in range(len(_PLACES)):
                here = self.change.others if place == self.change.place else (2, 2)
                records[name] += [(place, first)] * here[0] + [(place, second)] * here[1]
            records[name].append((self.change.place, second if coins[0] else first))
            self._add_needed(records, name)
        levels = self.plan.spine.levels
        places = {level: [self.unit(level, place) for place in range(len(_PLACES))] for level in levels}
        return {GEOGRAPHY: pl.DataFrame(places)} | {
            table.name: self._frame(table, records[table.name]) for table in self.plan.tables
        }

    def unit(self, level: str, place: int) -> str:
        """The name of the unit of a level that a place lies in."""
        if level == self.plan.spine.root:
            return level
        levels = self.plan.spine.levels
        above, within = _PLACES[place]
        path = (above, *[0] * (len(levels) - 2), within) if len(levels) > 1 else (place,)
        return "u" + "-".join(str(1 + step) for step in path[: levels.index(level) + 1])

    def _add_needed(self, records: dict[str, list[tuple[int, int]]], name: str) -> None:
        """Add to other tables, in every place, what the cells of a move need by the constraints: one record of each."""
        needed: list[tuple[ConstraintSection | RelationSection, Groups, Groups]] = []
        for constraint in self.plan.constraints:
            theirs = self.plan.table(constraint.counted).schema_of.groups(tuple(constraint.each.values()))
            needed.append((constraint, groups_about(self.plan, constraint), theirs))
        needed += [(relation, *relation_groups(self.plan, relation)[:2]) for relation in self.plan.relations]
        for said, mine, theirs in needed:
            if said.table == name:
                group = mine[self.moves[name][0]]
                fitting = np.flatnonzero(self.plan.table(said.counted).possible & (theirs == group))
                if group >= 0 and len(fitting):
                    occupied = sorted({place for place, _ in records[name]})
                    records[said.counted] += [(place, int(fitting[0])) for place in occupied]

    def _frame(self, table: TableSection, records: Sequence[tuple[int, int]]) -> pl.DataFrame:
        schema = table.schema_of
        labels = schema.labels([one.name for one in table.attributes])
        columns: dict[str, list[str]] = {table.place or self.plan.spine.levels[-1]: []}
        columns |= {one.column or one.name: [] for one in table.attributes}
        for place, cell in records:
            row = (self.unit(self.plan.spine.levels[-1], place), *labels[cell])
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return frame.with_columns(pl.lit(1, pl.Int64).alias(table.count)) if table.count else frame

    def outcomes(self, made: Tables) -> Sequence[Hashable]:
        """The number that tells the two files apart best."""
        frame = made[MEASUREMENTS]
        keys = [name for name in KEYS if name in frame.columns]
        found = frame.with_columns(pl.col(keys).cast(pl.String)).join(self._weights.select(*keys, "weight"), on=keys)
        told = (found["value"].cast(pl.Float64, strict=False) * found["weight"]).sum()
        return [float(told)]

    @cached_property
    def _weights(self) -> pl.DataFrame:
        """Of every measured value, how much it counts: one over its variance for the new cell's groups, minus that for
        the old one's."""
        rows = []
        for name, cells in self.moves.items():
            table = self.plan.table(name)
            for query in table.queries:
                labels = cell_labels(table.schema_of, query.by).to_pylist()
                numbers, signs = _moved(table, query, *cells)
                for level in self.plan.spine.all_levels:
                    variance = table.variance_of(level, query, self.plan.one_place(level))
                    weight = 0.0 if variance is None else float(1 / variance)
                    unit = self.unit(level, self.change.place)
                    rows += [
                        (name, level, unit, query.name, labels[at], sign * weight)
                        for at, sign in zip(numbers.tolist(), signs.tolist(), strict=True)
                    ]
        kinds = dict.fromkeys(KEYS, pl.String) | {"weight": pl.Float64}
        return pl.DataFrame(rows, schema=kinds, orient="row")
