"""Finds what a swap reveals whatever its epsilon: columns that show who moved, unique records, published counts.

Held columns are published as they are. If one of them determines a swap variable (a tract is held while its county is
swapped), anyone who knows the code book sees which records moved and from where. If a column has nearly as many values
as rows, it identifies records. Both are stops: a release ends unless the plan allows them by name.

A swap also publishes the counts by match and held values and those by match and swap values, and which linked rows
belong to one record. What these invariants reveal is the same at any rate, and no noise hides it; it is computed from
the counts alone, so a recipient can compute it from the release too. No randomness is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.invariants import Alike, Beliefs, Revealed, TwoMargins, alike, believe, reveal
from stirred.swap.data.counting import CountedMargin, varies
from stirred.swap.data.dataset import Dataset, InputDataset
from stirred.swap.data.records import classes_of
from stirred.tables import Column
from stirred.tables.columns import Codes
from stirred.tables.groups import Cells, Groups, anonymous, cells, group, mixed
from stirred.tables.reading.inputs import TYPES

_DISTINCT_SHARE = 0.9
_FEWEST_ROWS = 20
"""Below so many rows, values that all differ say nothing."""
_LOOKS = (1 << 14, 1 << 20)
"""Rows that are looked at before all of them are."""
_TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
_CHANCE = 1e-6
"""A dependence is believed when chance would produce it with less than this probability."""


def find_stops(dataset: InputDataset) -> list[errors.StoppedByCheck]:
    """All stops of this release, in the order of the columns."""
    found: list[errors.StoppedByCheck] = []
    swapped = dataset.table.pick(dataset.plan.swap)
    for table, record in dataset.held_tables():
        for column in table.columns.values():
            if table.rows >= _FEWEST_ROWS and column.cardinality >= _DISTINCT_SHARE * table.rows:
                percent = 100 * column.cardinality // table.rows
                found.append(errors.nearly_distinct(table.name, column.name, percent))
            for variable in _determined(dataset.strata, column, swapped, record):
                alone = bool(_determined(Groups(np.zeros_like(dataset.strata.ids), 1), column, [variable], record))
                found.append(errors.held_determines_swap(table.name, column.name, variable.name, not alone))
    for opened in (dataset.input, *(entry.input for entry in dataset.linked)):
        in_text = (dataset.plan.format or opened.format) == "csv"
        for name, written in opened.rewritten.items():
            if (count := written.in_text if in_text else written.lost) > 0:
                found.append(errors.text_changes(opened.table, name, _TYPE_NAMES[opened.kinds[name]], count))
    return found


def refuse_stops(stops: list[errors.StoppedByCheck], allowed: tuple[str, ...]) -> None:
    """Raise the first stop that is not allowed by name."""
    for stop in stops:
        if stop.kind not in allowed:
            raise stop


def _determined(strata: Groups, held: Column, swapped: list[Column], record: NDArray[np.uint32] | None) -> list[Column]:
    """The swap variables that stratum and held value determine in these rows, more often than by chance."""
    rows = len(held.codes)
    suspects = [variable for variable in swapped if variable.cardinality > 1]
    for few in dict.fromkeys(min(rows, look) for look in _LOOKS):  # most innocent columns show it at once
        at: slice | NDArray[np.uint32] = slice(0, few) if record is None else record[:few]
        suspects = [one for one in suspects if not _contradicted(strata.ids[at], held.codes[:few], one.codes[at])]
        if not suspects:
            return []
    ids = strata.ids if record is None else strata.ids[record]
    both = group([anonymous(ids, strata.count), held], rows)
    found = []
    for variable in suspects:
        codes = variable.codes if record is None else variable.codes[record]
        if not varies(both, codes).any():
            chance = _log_chance(Groups(ids, strata.count), both, variable.with_codes(codes))
            found += [variable] if chance < log(_CHANCE) else []
    return found


def _contradicted(strata: NDArray[np.uint32], held: Codes, swapped: Codes) -> bool:
    """Whether two rows agree on stratum and held value and differ in the swap value."""
    slots = 1 << int(2 * len(held) + 2).bit_length()
    keys, first = np.zeros(slots, dtype=np.uint64), np.zeros(slots, dtype=np.uint32)
    return bool(_differs_somewhere(strata, held, swapped, keys, first))


def _log_chance(strata: Groups, both: Groups, swapped: Column) -> float:
    """Log of a bound on the probability that every group is pure when held and swapped are independent.

    A group of k records in a stratum whose commonest value has share w is pure with probability at most w^(k-1).
    """
    rows = len(both.ids)
    commonest = np.zeros(strata.count, dtype=np.int64)
    pairs = group([anonymous(strata.ids, strata.count), swapped], rows)
    np.maximum.at(commonest, pairs.of_each(strata.ids), pairs.sizes())
    stratum = both.of_each(strata.ids)
    share = commonest[stratum] / strata.sizes()[stratum]
    return float(np.sum((both.sizes() - 1) * np.log(share)))


@kernel
def _differs_somewhere(strata, held, swapped, keys, first):  # type: ignore[no-untyped-def]
    """Whether two rows of one group differ, the groups being found on the way; stops at the first such pair. ``keys``
    and ``first`` are a hash table, empty where first is 0."""
    mask = np.uint64(len(keys) - 1)
    for row in range(len(strata)):
        key = np.uint64(strata[row]) << np.uint64(32) | np.uint64(held[row])
        at = mixed(key) & mask
        while first[at] != 0 and keys[at] != key:
            at = (at + np.uint64(1)) & mask
        if first[at] == 0:
            keys[at] = key
            first[at] = swapped[row] + 1
        elif first[at] != np.uint32(swapped[row]) + np.uint32(1):
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
    parts = [*dataset.table.pick([*dataset.plan.match, *dataset.held]), *classes_of(dataset)]
    return Uniques(alone, int(np.count_nonzero(group(parts, dataset.records).sizes() == 1)))


WIDTHS = ("0", "1", "2 to 4", "5 to 9", "10 to 99", "100 and more")
"""In words, the widths of bounds that :class:`Revealed` tells apart."""


@dataclass(frozen=True)
class Revealing:
    """What the published counts of a swap reveal."""

    counts: Revealed
    levels: tuple[Alike, ...]
    """Cells of few records: on what is held, in the strata, and by the swap variables from the first to all."""
    beliefs: Beliefs | None

    @property
    def unique_share(self) -> float:
        """Share of records that are unique on match and held values, linked rows included."""
        return self.levels[0].alone / self.counts.records

    def to_fields(self) -> dict[str, Any]:
        """For the JSON of a check; all of it may be computed from a release as well."""
        counts = asdict(self.counts)
        return {
            "from_published_counts": True,
            **counts,
            "widths": dict(zip(WIDTHS, self.counts.widths, strict=True)),
            "mean_width": self.counts.mean_width,
            "told": {str(percent): records for percent, records in self.counts.told},
            "determined_share": self.counts.determined_share,
            "pinned_share": self.counts.pinned_share,
            "guessed_share": self.counts.guessed_share,
            "unique_share": self.unique_share,
            "alone_by_match_and_swap": self.levels[-1].alone,
            "cells_of_few_records": [
                {
                    "by": one.level,
                    **{str(number): many for number, many in enumerate(one.cells, 1)},
                    "more": one.more,
                }
                for one in self.levels
            ],
            "attacker": None if self.beliefs is None else asdict(self.beliefs),
        }


def reveal_swap(dataset: Dataset, beliefs: bool = True) -> Revealing:
    """What the invariants of this swap reveal; with ``beliefs`` also an attacker's."""
    held, swapped = _counted(dataset)
    margins = TwoMargins.of(held, swapped)
    levels = [
        alike("match and held values", held.counts),
        alike("match values (strata)", margins.sizes),
        *_by_swapped(dataset.plan.swap, swapped),
    ]
    seed = dataset.plan.hash()
    return Revealing(reveal(margins), tuple(levels), believe(margins, seed) if beliefs else None)


def two_margins(dataset: Dataset) -> TwoMargins:
    """The two margins that a swap publishes, stratum by stratum."""
    return TwoMargins.of(*_counted(dataset))


def alone_in_a_margin(dataset: Dataset) -> int:
    """How many records are the only one of a count of either margin, or of both."""
    alone = np.zeros(dataset.records, dtype=np.bool_)
    for columns in _columns(dataset):
        groups = group(columns, dataset.records)
        alone |= (groups.sizes() == 1)[groups.ids]
    return int(np.count_nonzero(alone))


def alone_stops(dataset: Dataset, swapped: CountedMargin) -> list[errors.StoppedByCheck]:
    """A reason not to release if too many counts by match and swap variables are of one record."""
    plan, columns = dataset.plan, swapped.margin.columns
    if plan.most_alone is None or swapped.alone <= plan.most_alone * dataset.records:
        return []
    left = {
        name: _alone_by(dataset, [other for other in columns if other != name]) / dataset.records
        for name in columns
        if name not in plan.swap or len(plan.swap) > 1
    }
    return [errors.many_alone(swapped.alone, dataset.records, columns, plan.most_alone, left)]


def _alone_by(dataset: Dataset, columns: Sequence[str]) -> int:
    return int(np.count_nonzero(group(dataset.counted.pick(columns), dataset.records).sizes() == 1))


def _counted(dataset: Dataset) -> tuple[Cells, Cells]:
    held, swapped = _columns(dataset)
    return cells(held, dataset.records), cells(swapped, dataset.records)


def _columns(dataset: Dataset) -> tuple[list[Column], list[Column]]:
    """What the two margins are counted by: the stratum first, linked rows being part of what is held."""
    strata = anonymous(dataset.strata.ids, dataset.strata.count)
    stays = [*dataset.table.pick(dataset.held_within), *classes_of(dataset)]
    return [strata, *stays], [strata, *dataset.table.pick(dataset.plan.swap)]


def _by_swapped(names: Sequence[str], swapped: Cells) -> list[Alike]:
    found = []
    for used in range(1, len(names) + 1):
        begins = np.flatnonzero(swapped.begins(1 + used))
        counts = np.add.reduceat(swapped.counts.astype(np.int64), begins)
        found.append(alike(f"match values and {', '.join(names[:used])}", counts))
    return found
