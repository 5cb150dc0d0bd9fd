"""Counts of released rows by the plan's recodes.

Rows hold attributes; a recode's groups are told from them. Where groups overlap, a row counts in each group that it is
in, so such counts add up to more than the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stirred.margins.schema import Schema
from stirred.topdown.plan_sections import TableSection


def columns_behind(table: TableSection, by: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The columns that must be counted by so that counts by some columns and recodes can be told."""
    recodes = {one.name for one in table.recodes} - set(known)
    column = {one.name: one.column or one.name for one in table.attributes}
    schema = table.schema_of
    found = [[column[base] for base in schema.bases(name)] if name in recodes else [name] for name in by]
    return tuple(dict.fromkeys(name for names in found for name in names))


def recoded(counts: pa.Table, table: TableSection, by: Sequence[str]) -> pa.Table:
    """Counts by columns, added up to counts by some of these columns and recodes of them; the last column counts."""
    *columns, number = counts.column_names
    recodes = [name for name in by if name not in columns]
    schema: Schema = table.schema_of
    column = {one.name: one.column or one.name for one in table.attributes}
    values = {one.name: {value: at for at, value in enumerate(one.values)} for one in table.attributes}
    small = {
        name: Schema(
            tuple(one for one in schema.attributes if one.name in schema.bases(name)),
            tuple(one for one in schema.recodes if one.name == name),
        )
        for name in recodes
    }
    members = {name: small[name].members(name) for name in recodes}
    sums: dict[tuple[object, ...], int] = {}
    for row in counts.to_pylist():
        keys: list[tuple[object, ...]] = [()]
        for name in by:
            if name in recodes:
                place = tuple(values[one.name][str(row[column[one.name]])] for one in small[name].attributes)
                labels = small[name].values(name)
                inside = members[name][:, np.ravel_multi_index(place, small[name].shape)]
                here: list[object] = [labels[at] for at in np.flatnonzero(inside)]
            else:
                here = [row[name]]
            keys = [(*key, one) for key in keys for one in here]
        for key in keys:
            sums[key] = sums.get(key, 0) + row[number]
    orders = [schema.values(name) if name in recodes else () for name in by]
    found = sorted(
        sums.items(),
        key=lambda item: [
            (order.index(str(value)) if order else 0, str(value)) for order, value in zip(orders, item[0], strict=True)
        ],
    )
    kinds = [pa.string() if name in recodes else counts.schema.field(name).type for name in by]
    arrays = [pa.array([key[at] for key, _ in found], kind) for at, kind in enumerate(kinds)]
    totals = pa.array([count for _, count in found], counts.schema.field(number).type)
    return pa.table([*arrays, totals], names=[*by, number])
