"""Finds what a swap reveals whatever its epsilon: columns that show who moved, and unique records.

Held columns are published as they are. If one of them determines a swap variable (a tract is held while its county
is swapped), anyone who knows the code book sees which records moved and from where. If a column has nearly as many
values as rows, it identifies records. Both are stops: a release ends unless the plan allows them by name. No
randomness is drawn here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from stirred import errors
from stirred._compiled import kernel
from stirred.swap.dataset import Dataset
from stirred.swap.plan import MAIN
from stirred.swap.records import kinds_of, multiset_class
from stirred.tables import Column
from stirred.tables.columns import Codes
from stirred.tables.groups import Groups, anonymous, group
from stirred.tables.inputs import TYPES

_DISTINCT_SHARE = 0.9
_FEWEST_ROWS = 20
"""Below so many rows, values that all differ say nothing."""
_FIRST_LOOK = 1 << 20
_TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
_CHANCE = 1e-6
"""A dependence is believed when chance would produce it with less than this probability."""


def find_stops(dataset: Dataset) -> list[errors.StoppedByCheck]:
    """All stops of this release, in the order of the columns."""
    found: list[errors.StoppedByCheck] = []
    for table, column, strata, swapped in _held_columns(dataset):
        if len(column.codes) >= _FEWEST_ROWS and column.cardinality >= _DISTINCT_SHARE * len(column.codes):
            percent = 100 * column.cardinality // len(column.codes)
            found.append(errors.nearly_distinct(table, column.name, percent))
        for variable in _determined(strata, column, swapped):
            alone = bool(_determined(Groups(np.zeros_like(strata.ids), 1), column, [variable]))
            found.append(errors.held_determines_swap(table, column.name, variable.name, not alone))
    for opened in (dataset.input, *(entry.input for entry in dataset.linked)):
        in_text = (dataset.plan.format or opened.format) == "csv"
        for name, cells in opened.rewritten.items():
            if (count := cells.in_text if in_text else cells.lost) > 0:
                found.append(errors.text_changes(opened.table, name, _TYPE_NAMES[opened.kinds[name]], count))
    return found


def refuse_stops(stops: list[errors.StoppedByCheck], allowed: tuple[str, ...]) -> None:
    """Raise the first stop that is not allowed by name."""
    for stop in stops:
        if stop.kind not in allowed:
            raise stop


def _held_columns(dataset: Dataset) -> Iterator[tuple[str, Column, Groups, list[Column]]]:
    """Every held column with, row by row, the stratum and the swap variables it must not determine."""
    swapped = dataset.table.pick(dataset.plan.swap)
    for name in dataset.held_within:
        yield MAIN, dataset.table[name], dataset.strata, swapped
    for entry in dataset.linked:
        if not entry.held.columns:
            continue
        strata = Groups(dataset.strata.ids[entry.record], dataset.strata.count)
        moved = [column.with_codes(column.codes[entry.record]) for column in swapped]
        for column in entry.held.columns.values():
            yield entry.held.name, column, strata, moved


def _determined(strata: Groups, held: Column, swapped: list[Column]) -> list[Column]:
    """The swap variables that stratum and held value determine in these rows, more often than by chance."""
    rows = len(held.codes)
    suspects = [variable for variable in swapped if variable.cardinality > 1]
    both = Groups(strata.ids, strata.count)
    for look in dict.fromkeys([min(rows, _FIRST_LOOK), rows]):  # most innocent columns show it at once
        both = group([anonymous(strata.ids[:look], strata.count), held.with_codes(held.codes[:look])], look)
        suspects = [variable for variable in suspects if not _contradicted(both, variable.codes[:look])]
        if not suspects:
            return []
    return [variable for variable in suspects if _log_chance(strata, both, variable) < log(_CHANCE)]


def _contradicted(groups: Groups, codes: Codes) -> bool:
    return bool(_differs_within(groups.ids, codes, np.full(groups.count, -1, dtype=np.int64)))


def _log_chance(strata: Groups, both: Groups, swapped: Column) -> float:
    """Log of a bound on the probability that every group is pure when held and swapped are independent.

    A group of k records in a stratum whose commonest value has share w is pure with probability at most w^(k-1).
    """
    rows = len(both.ids)
    commonest = np.zeros(strata.count, dtype=np.int64)
    pairs = group([anonymous(strata.ids, strata.count), swapped], rows)
    stratum_of_pair = np.zeros(pairs.count, dtype=np.int64)
    stratum_of_pair[pairs.ids] = strata.ids
    np.maximum.at(commonest, stratum_of_pair, pairs.sizes())
    stratum_of_group = np.zeros(both.count, dtype=np.int64)
    stratum_of_group[both.ids] = strata.ids
    sizes = strata.sizes()
    share = commonest[stratum_of_group] / sizes[stratum_of_group]
    return float(np.sum((both.sizes() - 1) * np.log(share)))


@kernel
def _differs_within(ids, codes, first):  # type: ignore[no-untyped-def]
    """Whether two rows of one group differ; stops at the first such pair."""
    for row in range(len(ids)):
        if first[ids[row]] < 0:
            first[ids[row]] = codes[row]
        elif first[ids[row]] != np.int64(codes[row]):
            return True
    return False


@dataclass(frozen=True)
class Uniques:
    """How many records are unique on match and held values, which swapping publishes as they are."""

    on_held: int
    with_linked: int | None
    """The same, linked rows counted as part of the record; None where there are none."""


def count_uniques(dataset: Dataset, alone: int) -> Uniques:
    """Count unique records; ``alone`` is their number on match and held variables."""
    if not dataset.linked:
        return Uniques(alone, None)
    parts = dataset.table.pick([*dataset.plan.match, *dataset.held])
    for entry in dataset.linked:
        classes = multiset_class(kinds_of(entry, dataset.records))
        parts.append(anonymous(classes, int(classes.max(initial=0)) + 1))
    return Uniques(alone, int(np.count_nonzero(group(parts, dataset.records).sizes() == 1)))
