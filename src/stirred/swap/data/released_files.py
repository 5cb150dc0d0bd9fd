"""Reads the tables of a swapped release and ties them together by its plan.

What a recipient counts again is counted from these as it is from the data: invariants, strata, the rate of every
record. Keep in mind: roles of columns are those that the release states; :mod:`stirred.swap.verifying` holds them
against the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.data.dataset import Dataset, Linked, copies_of, held_columns, linked_plan, strata_groups, with_merged
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN
from stirred.tables import Column, Table
from stirred.tables.reading.table_reader import ReadTable


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedFiles:
    """The tables of a release, read and tied together by the plan."""

    release: ReleaseFolder
    tables: Mapping[str, ReadTable]
    data: Dataset

    def __repr__(self) -> str:
        return f"<ReleasedFiles: {self.data.records:,} released records>"

    def copies(self, name: str) -> dict[str, Column]:
        """The columns of a table that repeat one of the record, categorical where the copy is; none of the main one."""
        if name == MAIN:
            return {}
        read = self.tables[name].table
        return {
            copy: self.data.table[target].copied(copy, read[copy].categories is not None)
            for copy, target in self.data.by_name[name].copies.items()
        }


def read_files(release: ReleaseFolder, plan: SwapPlan) -> ReleasedFiles:
    """Read all tables of a release."""
    tables = {name: release.read(name) for name in release.dictionary}
    main = tables[MAIN].table
    counted = with_merged(plan, main)
    held = held_columns(plan, MAIN, list(release.columns(MAIN)))
    linked = tuple(_linked(release, plan, name, read) for name, read in tables.items() if name != MAIN)
    return ReleasedFiles(release, tables, Dataset(plan, held, main, counted, strata_groups(plan, counted), linked))


def _linked(release: ReleaseFolder, plan: SwapPlan, name: str, read: ReadTable) -> Linked:
    entry, columns = linked_plan(plan, name), list(release.columns(name))
    held = {one: read.table[one] for one in held_columns(plan, name, columns)}
    copies = copies_of(plan, entry, columns)
    return Linked(entry, Table(name, read.table.rows, held), copies, record_of(release, name, read))


def record_of(release: ReleaseFolder, name: str, found: ReadTable) -> NDArray[np.uint32]:
    """The row of the main table that each row of a linked one belongs to."""
    link = release.with_role(name, "link")[0]
    position = found.identifiers[link].to_numpy() - 1
    if position.min() < 0 or position.max() >= release.dictionary[MAIN]["rows"]:
        raise errors.linked_without_record(name, link, MAIN, 1)
    return np.asarray(position, dtype=np.uint32)
