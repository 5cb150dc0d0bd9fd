"""What the invariants of a swap reveal by themselves: the rate has no part in it, and no noise hides it.

A swap publishes the counts by match and held values and those by match and swap values, and which linked rows belong to
one record. Everything here is computed from these counts, so a recipient can compute it from the release too.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stirred.invariants import Alike, Posterior, Revealed, TwoMargins, alike, posterior, reveal
from stirred.invariants.margin_posterior import FEWEST_SWEEPS, SWEEPS, Law
from stirred.swap.dataset import Dataset
from stirred.swap.records import kinds_of, multiset_class
from stirred.tables.groups import Cells, anonymous, cells

POINTS = 12
"""Records at equal distances whose strata an attacker's beliefs are worked out for."""
_MOVES = 1 << 24
"""Moves that each chain may make in one stratum."""
_WORKERS = 4
"""Strata looked at side by side: dense tables of large ones take memory."""
LAWS: tuple[Law, ...] = ("hypergeometric", "uniform")
WIDTHS = ("0", "1", "2 to 4", "5 to 9", "10 to 99", "100 and more")
"""In words, the widths of bounds that :class:`Revealed` tells apart."""


@dataclass(frozen=True)
class Belief:
    """What an attacker believes who knows the published counts alone, under one law over the files they allow.

    Shares are of records, estimated from the strata of records at equal distances.
    """

    law: str
    guessed_share: float
    """Expected to be guessed rightly, by the likeliest swap values for what is held."""
    whole_share: float
    """Expected to share what is held with others, all of whom have the same swap values."""


@dataclass(frozen=True)
class Beliefs:
    """An attacker's beliefs under both laws, in a sample of the strata."""

    strata: int
    """Strata that were looked at,"""
    listed: int
    """of these with all tables listed (uniform law),"""
    drawn: int
    """with tables drawn by Markov chains,"""
    disagreeing: int
    """of which the chains do not agree, so that their numbers are rough,"""
    too_large: int
    """and strata that are too large for chains, and left out."""
    laws: tuple[Belief, ...]


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


def _counted(dataset: Dataset) -> tuple[Cells, Cells]:
    """The two margins by stratum, linked rows being part of what is held."""
    strata, rows = anonymous(dataset.strata.ids, dataset.strata.count), dataset.records
    stays = dataset.table.pick(dataset.held)
    for entry in dataset.linked:
        classes = multiset_class(kinds_of(entry, rows))
        stays.append(anonymous(classes, int(classes.max(initial=0)) + 1))
    return cells([strata, *stays], rows), cells([strata, *dataset.table.pick(dataset.plan.swap)], rows)


def _by_swapped(names: Sequence[str], swapped: Cells) -> list[Alike]:
    found = []
    for used in range(1, len(names) + 1):
        begins = np.flatnonzero(swapped.begins(1 + used))
        counts = np.add.reduceat(swapped.counts.astype(np.int64), begins)
        found.append(alike(f"match values and {', '.join(names[:used])}", counts))
    return found


def believe(margins: TwoMargins, plan_hash: str) -> Beliefs:
    """An attacker's beliefs in the strata of some records, chosen at equal distances with a start from the plan's hash.

    The strata are a function of the plan and the published counts, and so are the beliefs.
    """
    ends = np.cumsum(margins.sizes)
    start = int(plan_hash[:8], 16) / 2**32
    at = np.minimum(((np.arange(POINTS) + start) / POINTS * ends[-1]).astype(np.int64), ends[-1] - 1)
    chosen, times = np.unique(np.searchsorted(ends, at, side="right"), return_counts=True)

    def of(number: int) -> dict[Law, Posterior] | None:
        held, swapped = margins.stratum(number)
        sweeps = min(SWEEPS, _MOVES // (len(held) * len(swapped)))
        if sweeps < FEWEST_SWEEPS:
            return None
        return {law: posterior(held, swapped, law, plan_hash, sweeps) for law in LAWS}

    with ThreadPoolExecutor(_WORKERS) as pool:  # kernels do without the interpreter lock
        believed = list(pool.map(of, chosen.tolist()))
    found = [(many, by_law) for many, by_law in zip(times.tolist(), believed, strict=True) if by_law is not None]
    uniform = [by_law["uniform"] for _, by_law in found]
    return Beliefs(
        len(chosen),
        sum(one.method == "listed" for one in uniform),
        sum(one.method == "chain" for one in uniform),
        sum(not one.converged for one in uniform),
        len(chosen) - len(found),
        tuple(_belief(law, [(many, by_law[law]) for many, by_law in found]) for law in LAWS if found),
    )


def _belief(law: Law, found: Sequence[tuple[int, Posterior]]) -> Belief:
    weight = sum(many for many, _ in found)
    guessed = sum(many * one.guessed for many, one in found)
    whole = sum(many * one.whole_rows for many, one in found)
    return Belief(law, guessed / weight, whole / weight)
