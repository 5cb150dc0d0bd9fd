"""Coarser matches for small strata: match values that are merged, by a rule of the plan, where a stratum is small.

The rule looks at the plan and at how many records have which match values, and at nothing else. These counts are
invariants, so the strata are the same for every file of the universe and the theorem holds with the merged strata. The
value itself is then *held* and not matched: its counts by swap variables are no longer kept, those of the merged value
are. A rule that looked at swap values ("merge strata with one swap value") would have no finite epsilon.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.swap.plan import SwapPlan
from stirred.tables import Column, Table
from stirred.tables.columns import smallest_type
from stirred.tables.groups import Groups, anonymous, cells, group


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
