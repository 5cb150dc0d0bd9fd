"""What the invariants of a swap reveal by themselves: the rate has no part in it, and no noise hides it.

A swap publishes the counts by match and held values and those by match and swap values, and which linked rows belong to
one record. Everything here is computed from these counts, so a recipient can compute it from the release too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stirred import errors
from stirred.invariants import Alike, Beliefs, Revealed, TwoMargins, alike, believe, reveal
from stirred.swap.dataset import Dataset
from stirred.swap.margins import CountedMargin
from stirred.swap.records import kinds_of, multiset_class
from stirred.tables import Column
from stirred.tables.groups import Cells, anonymous, cells, group

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
    stays = dataset.table.pick(dataset.held_within)
    for entry in dataset.linked:
        classes = multiset_class(kinds_of(entry, dataset.records))
        stays.append(anonymous(classes, int(classes.max(initial=0)) + 1))
    return [strata, *stays], [strata, *dataset.table.pick(dataset.plan.swap)]


def _by_swapped(names: Sequence[str], swapped: Cells) -> list[Alike]:
    found = []
    for used in range(1, len(names) + 1):
        begins = np.flatnonzero(swapped.begins(1 + used))
        counts = np.add.reduceat(swapped.counts.astype(np.int64), begins)
        found.append(alike(f"match values and {', '.join(names[:used])}", counts))
    return found
