"""Reads the tables of a swapped release and ties them together by its plan.

What a recipient counts again is counted from these: invariants, strata, the rate of every record. Keep in mind: roles
of columns are those that the release states; :mod:`stirred.swap.verifying` holds them against the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.data.counting import (
    LinkedClasses,
    Margins,
    RatesByStratum,
    RecordRates,
    Strata,
    count_margin,
    declare,
    record_rates,
    strata_of,
)
from stirred.swap.data.dataset import (
    copies_of,
    fine_columns,
    held_columns,
    linked_plan,
    strata_groups,
    stratum_columns,
    with_merged,
)
from stirred.swap.data.records import (
    LinkedKinds,
    LinkedSource,
    Source,
    beside_record,
    linked_kinds,
    multiset_class,
    whole_fingerprint,
)
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN
from stirred.tables import Column, Table
from stirred.tables.groups import Groups, group
from stirred.tables.reading.table_reader import ReadTable


class ReleasedFiles:
    """The tables of a release, read and tied together by the plan."""

    def __init__(self, release: ReleaseFolder, plan: SwapPlan, tables: Mapping[str, ReadTable]) -> None:
        self.release, self.plan, self.tables = release, plan, tables
        self.main = tables[MAIN].table
        self.counted = with_merged(plan, self.main)
        self.held = {name: held_columns(plan, name, list(release.columns(name))) for name in tables}
        self.linked_columns = {name: self.held[name] for name in tables if name != MAIN}
        self.records = {name: record_of(release, name, tables[name]) for name in self.linked_columns}

    def __repr__(self) -> str:
        return f"<ReleasedFiles: {self.main.rows:,} released records>"

    @cached_property
    def kinds(self) -> list[LinkedKinds]:
        """Per linked table, the kinds of rows that each record has."""
        return [
            linked_kinds(self.tables[name].table.pick(self.held[name]), record, self.main.rows)
            for name, record in self.records.items()
        ]

    @cached_property
    def classes(self) -> list[Column]:
        """Per linked table, the class of each record by its linked rows."""
        return [multiset_class(one) for one in self.kinds]

    @property
    def _linked(self) -> LinkedClasses | None:
        return (lambda: self.classes) if self.linked_columns else None

    @cached_property
    def groups(self) -> Groups:
        """The stratum of each record."""
        return strata_groups(self.plan, self.counted)

    def margins(self) -> Margins:
        """The invariants of the plan, counted in the released tables."""
        match = self.plan.match
        own = (*stratum_columns(self.plan), *fine_columns(self.plan))
        joined = {
            name: beside_record(self.counted, own, self.tables[name].table, record)
            for name, record in self.records.items()
        }
        declared = declare(self.plan, self.held[MAIN], self.linked_columns)
        counted = tuple(count_margin(one, joined.get(one.table, self.counted), len(match)) for one in declared)
        if not self.linked_columns:
            return Margins(counted)
        fixed = group(self.main.pick([*match, *self.held[MAIN]]), self.main.rows)
        return Margins(counted, whole_fingerprint(fixed, self.kinds))

    def source(self) -> Source:
        """The released tables as tables of counts see them."""
        linked = {
            name: LinkedSource(self.held_table(name), record, self.copies(name))
            for name, record in self.records.items()
        }
        return Source(self.main, linked)

    def held_table(self, name: str) -> Table:
        """The held columns of a linked table."""
        read = self.tables[name].table
        return Table(name, read.rows, {one: read[one] for one in self.held[name]})

    def strata(self, margins: Margins) -> Strata:
        """Strata of the released tables, which are those of the data."""
        return strata_of(margins, lambda: self.groups, self._linked)

    def record_rates(self) -> RecordRates | None:
        """The rate of every record by the plan's rules; None for a plan with one rate."""
        return record_rates(self.plan, self.held[MAIN], self.source(), self._linked)

    def rates(self) -> RatesByStratum | None:
        """How many records of each stratum have which rate by the plan's rules; None for a plan with one rate."""
        found = self.record_rates()
        return found.by_stratum(self.groups) if found else None

    def copies(self, name: str) -> dict[str, str]:
        """The columns of a table that repeat a swap variable of the record, and which one; none of the main table."""
        return (
            {} if name == MAIN else copies_of(self.plan, linked_plan(self.plan, name), list(self.release.columns(name)))
        )

    def copied(self, name: str, copy: str, target: str) -> Column:
        """The record's column that a copy repeats, categorical where the copy is."""
        return self.main[target].copied(copy, self.tables[name].table[copy].categories is not None)


def read_files(release: ReleaseFolder, plan: SwapPlan) -> ReleasedFiles:
    """Read all tables of a release."""
    return ReleasedFiles(release, plan, {name: release.read(name) for name in release.dictionary})


def record_of(release: ReleaseFolder, name: str, found: ReadTable) -> NDArray[np.uint32]:
    """The row of the main table that each row of a linked one belongs to."""
    link = release.with_role(name, "link")[0]
    position = found.identifiers[link].to_numpy() - 1
    if position.min() < 0 or position.max() >= release.dictionary[MAIN]["rows"]:
        raise errors.linked_without_record(name, link, MAIN, 1)
    return np.asarray(position, dtype=np.uint32)
