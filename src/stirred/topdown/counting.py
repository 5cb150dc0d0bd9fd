"""From files to histograms: the confidential tables, counted in the finest geounits, and added up along the spine.

The invariant a reader must know: everything a release reads of the data is a :class:`Counted`. Places and values are
looked up in the public list and in the plan's domains; what is not there is refused with a number of rows, not quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred.release.plans import InputSection
from stirred.tables import open_input
from stirred.tables.columns import Column, as_text
from stirred.tables.read import read_table
from stirred.topdown.plan import TableSection, TopDownPlan
from stirred.topdown.problems import Histograms
from stirred.topdown.spine import Index, Spine, build_spine

GEOGRAPHY = "geography"
"""What the public list of geounits is called among the inputs."""


@dataclass(frozen=True, eq=False, repr=False)
class Counted:
    """The data of a TopDown release: a public spine, and by table the confidential histograms of its leaves."""

    plan: TopDownPlan
    spine: Spine
    leaves: Mapping[str, Histograms]

    def histograms(self, table: str, level: int) -> Histograms:
        """Those of all units of a level."""
        return added_up(self.leaves[table], self.spine.first_leaf(level))


def count_tables(plan: TopDownPlan, data: Mapping[str, Any] | None = None) -> Counted:
    """Read and count everything a plan names. ``data`` gives frames or paths by table in place of the plan's own, and
    the list of geounits under the name ``geography``."""
    given = dict(data or {})
    spine = read_spine(plan, given.pop(GEOGRAPHY, None))
    strange = [name for name in given if name not in [table.name for table in plan.tables]]
    if strange:
        raise errors.unknown_choice("table", strange[0], [GEOGRAPHY, *(table.name for table in plan.tables)])
    leaves = {table.name: _count_table(plan, table, spine, given.get(table.name)) for table in plan.tables}
    return Counted(plan, spine, leaves)


def read_spine(plan: TopDownPlan, data: Any = None) -> Spine:
    """The spine of the public list of geounits."""
    columns = _read(GEOGRAPHY, data, plan.spine.input, plan.spine.levels)
    for name, column in zip(plan.spine.levels, columns, strict=True):
        if column.values.null_count:
            raise errors.topdown_geography(name, "has nulls")
    return build_spine(plan.spine.levels, columns, plan.spine.root)[0]


def added_up(leaves: Histograms, first_leaf: Index) -> Histograms:
    """The histograms of coarser units, each a range of leaves.

    >>> two = Histograms.from_dense(np.array([[1, 0, 2], [4, 0, 1]]))
    >>> added_up(two, np.array([0, 2])).counts.tolist()
    [5, 3]
    """
    if len(first_leaf) == len(leaves.starts):
        return leaves
    cells = int(leaves.cells.max(initial=0)) + 1
    of_leaf = np.repeat(np.arange(len(first_leaf) - 1, dtype=np.int64), np.diff(first_leaf))
    unit = np.repeat(of_leaf, np.diff(leaves.starts))
    return gathered(unit, leaves.cells, leaves.counts, len(first_leaf) - 1, cells)


def gathered(
    unit: Index, cell: NDArray[np.integer], count: NDArray[np.int64] | None, units: int, cells: int
) -> Histograms:
    """Histograms of records, or of groups of ``count`` records, from the unit and the cell of each."""
    keys = unit * cells + cell
    if count is None:
        found, counts = np.unique(keys, return_counts=True)
    else:
        found, where = np.unique(keys, return_inverse=True)
        counts = np.zeros(len(found), dtype=np.int64)
        np.add.at(counts, where, count)
        found, counts = found[counts > 0], counts[counts > 0]
    starts = np.searchsorted(found, np.arange(units + 1, dtype=np.int64) * cells)
    return Histograms(starts.astype(np.int64), (found % cells).astype(np.int32), counts.astype(np.int64))


def marginal(histograms: Histograms, groups: NDArray[np.int32], number: int) -> NDArray[np.int64]:
    """The sums over the groups of a marginal, one row for each unit; cells with group -1 are left out."""
    unit = np.repeat(np.arange(histograms.units, dtype=np.int64), np.diff(histograms.starts))
    group = groups[histograms.cells]
    inside = group >= 0
    keys = unit[inside] * number + group[inside]
    sums = np.zeros(histograms.units * number, dtype=np.int64)
    np.add.at(sums, keys, histograms.counts[inside])
    return sums.reshape(histograms.units, number)


# -- reading -------------------------------------------------------------------------------------------------


def _read(name: str, data: Any, section: InputSection, columns: tuple[str, ...]) -> list[Column]:
    source = data if data is not None else section.path
    if source is None:
        raise errors.topdown_plan(f"The input of '{name}'", "has a path, or is given in Python")
    opened = open_input(name, source, section.options())
    missing = [column for column in columns if column not in opened.kinds]
    if missing:
        raise errors.missing_columns(name, missing)
    return read_table(opened, columns, may_be_empty=name != GEOGRAPHY).table.pick(columns)


def _count_table(plan: TopDownPlan, table: TableSection, spine: Spine, data: Any) -> Histograms:
    schema = table.schema_of
    place = table.place or plan.spine.levels[-1]
    columns = (place, *(one.column or one.name for one in table.attributes), *([table.count] if table.count else []))
    read = _read(table.name, data, table.input, columns)
    leaf = _looked_up(read[0], spine.names[-1])
    if (strange := int((leaf < 0).sum())) > 0:
        raise errors.topdown_place(table.name, place, strange)
    cell = np.zeros(len(leaf), dtype=np.int64)
    for attribute, column in zip(table.attributes, read[1:], strict=False):
        codes = _looked_up(column, pa.array(attribute.values))
        if (strange := int((codes < 0).sum())) > 0:
            raise errors.topdown_category(table.name, column.name, strange)
        cell = cell * len(attribute.values) + codes
    count = _counts(table, read[-1]) if table.count else None
    histograms = gathered(leaf, cell, count, spine.leaves, schema.cells)
    for zero in table.zeros:
        impossible = schema.where(zero)[histograms.cells]
        if impossible.any():
            raise errors.topdown_zero(table.name, int(histograms.counts[impossible].sum()))
    return histograms


def _looked_up(column: Column, known: pa.Array) -> NDArray[np.int64]:
    """For each row the place of its value among ``known``, both as text; -1 where it is not there."""
    found = pc.index_in(as_text(column.values), value_set=as_text(known), skip_nulls=True)
    places = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    return places[column.codes]


def _counts(table: TableSection, column: Column) -> NDArray[np.int64]:
    name = table.count or ""
    if column.values.null_count:
        raise errors.topdown_count(table.name, name, "have nulls")
    try:
        values = column.values.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise errors.topdown_count(table.name, name, "are not whole numbers") from None
    if bool(np.any(values < 0)):
        raise errors.topdown_count(table.name, name, "are negative somewhere")
    return np.asarray(values[column.codes], dtype=np.int64)
