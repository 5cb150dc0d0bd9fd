"""What the invariants of a TopDown plan reveal by themselves: they are published without noise, whatever the budget.

An invariant is a margin at a level. A count of 0 says that a unit has no such record, a count of 1 that it has one.
Where a table is kept by some attributes at a coarse level and by fewer at a finer one (persons by sex in each county,
persons in each town), the two together bound the finer table that nobody published: the count by sex in a town lies
between its Frechet bounds within the county. Rules of the plan (zeros, constraints by other tables) may narrow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.invariants import Alike, Beliefs, Revealed, TwoMargins, alike, believe, reveal
from stirred.margins.schema import Groups, refines
from stirred.margins.spine import Index, Spine
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import Counted
from stirred.topdown.data.histograms import Counts
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import InvariantSection


@dataclass(frozen=True)
class KeptExactly:
    """Counts of one invariant by how many records they hold."""

    margin: str
    records: int
    empty: int
    """Counts of 0: every finer count within them is then known to be 0."""
    counts: Alike
    determined_records: int
    """Records of combinations that the attributes of the margin fix completely (one possible cell)."""

    @property
    def few(self) -> dict[str, int]:
        """How many counts hold 0, 1, ... records, and more."""
        cells = {str(number): many for number, many in enumerate(self.counts.cells, 1)}
        return {"0": self.empty, **cells, "more": self.counts.more}


@dataclass(frozen=True)
class KeptTogether:
    """What two invariants of one table, at a coarse and a finer level, say about the table by both."""

    coarse: str
    fine: str
    revealed: Revealed
    beliefs: Beliefs
    """About which group of the coarse margin a record of a finer unit belongs to."""

    @property
    def words(self) -> str:
        """What the two say together, in a sentence without its end."""
        both = self.revealed
        return (
            f"{self.coarse}, together with {self.fine}: the finer table is determined for {both.determined_records:,} "
            f"of {both.records:,} records, {both.pinned_records:,} must lie in a certain one of its cells, and a cell "
            f"is known to within {both.mean_width:.2f} on average"
        )


@dataclass(frozen=True)
class TopDownRevealing:
    """What the published counts of a TopDown plan reveal."""

    margins: tuple[KeptExactly, ...]
    pairs: tuple[KeptTogether, ...]

    def to_fields(self) -> dict[str, Any]:
        """For the JSON of a check; all of it may be computed from a release as well."""
        return {
            "from_published_counts": True,
            "margins": [
                {
                    "margin": one.margin,
                    "records": one.records,
                    "determined_records": one.determined_records,
                    "counts_of_few_records": one.few,
                }
                for one in self.margins
            ],
            "pairs": [
                {
                    "coarse": one.coarse,
                    "fine": one.fine,
                    **asdict(one.revealed),
                    "determined_share": one.revealed.determined_share,
                    "pinned_share": one.revealed.pinned_share,
                    "mean_width": one.revealed.mean_width,
                    "attacker": asdict(one.beliefs),
                }
                for one in self.pairs
            ],
        }


def reveal_topdown(known: Known) -> TopDownRevealing:
    """What the invariants reveal, each alone and two at a time."""
    plan, spine = known.plan, known.spine
    values = list(zip(plan.invariants, known.exact, strict=True))
    margins = tuple(_alone(plan, one, counts) for one, counts in values)
    pairs = [
        _together(plan, spine, coarse, fine)
        for coarse in values
        for fine in values
        if coarse[0].table == fine[0].table and _says_more(plan, spine, coarse[0], fine[0])
    ]
    return TopDownRevealing(margins, tuple(one for one in pairs if one is not None))


def alone_in_an_invariant(counted: Counted, exact: Sequence[Counts], table: str) -> int:
    """How many records of a table are the only one of a count of some invariant; ``exact`` are their values."""
    spine, schema, leaves = counted.spine, counted.plan.table(table).schema_of, counted.leaves[table]
    leaf = np.repeat(np.arange(leaves.units), np.diff(leaves.starts))
    alone = np.zeros(len(leaf), dtype=np.bool_)
    for invariant, counts in zip(counted.plan.invariants, exact, strict=True):
        if invariant.table == table:
            level = spine.levels.index(invariant.level)
            unit = spine.ancestors(level, len(spine.levels) - 1)
            alone |= counts[unit[leaf], schema.groups(invariant.by)[leaves.cells]] == 1
    # A count of 1 has one cell below it, whose own count is then 1: cells are records here.
    return int(np.count_nonzero(alone))


def _alone(plan: TopDownPlan, invariant: InvariantSection, counts: Counts) -> KeptExactly:
    table = plan.table(invariant.table)
    cells = np.bincount(table.schema_of.groups(invariant.by)[table.possible], minlength=counts.shape[1])
    return KeptExactly(
        str(invariant.margin),
        int(counts.sum()),
        int(np.count_nonzero(counts == 0)),
        alike(invariant.level, counts[counts > 0]),
        int(counts[:, cells == 1].sum()),
    )


def _says_more(plan: TopDownPlan, spine: Spine, coarse: InvariantSection, fine: InvariantSection) -> bool:
    """Whether the first is of a coarser level and tells apart more than the second, which adds up to its sums."""
    if spine.levels.index(coarse.level) >= spine.levels.index(fine.level):
        return False
    more, less = (plan.table(coarse.table).schema_of.groups(one.by) for one in (coarse, fine))
    return refines(more, less) and not refines(less, more)


def _together(
    plan: TopDownPlan,
    spine: Spine,
    coarse: tuple[InvariantSection, Counts],
    fine: tuple[InvariantSection, Counts],
) -> KeptTogether | None:
    """Strata are the units of the coarse level by the groups of the finer margin; in each the finer units are rows, the
    groups of the coarse margin columns."""
    schema = plan.table(coarse[0].table).schema_of
    more, less = schema.groups(coarse[0].by), schema.groups(fine[0].by)
    group_of = np.zeros(coarse[1].shape[1], dtype=np.int64)
    group_of[more] = less
    groups = fine[1].shape[1]
    ancestor = spine.ancestors(spine.levels.index(coarse[0].level), spine.levels.index(fine[0].level))
    by_unit = _sparse(fine[1], ancestor, np.arange(groups), groups)
    by_group = _sparse(coarse[1], np.arange(len(coarse[1])), group_of, groups)
    if len(by_unit[1]) == 0:
        return None
    both = TwoMargins(*by_unit, *by_group)
    return KeptTogether(str(coarse[0].margin), str(fine[0].margin), reveal(both), believe(both, plan.hash()))


def _sparse(counts: Counts, unit: Index, group: Groups | Index, groups: int) -> tuple[Index, NDArray[np.int64]]:
    """The positive counts, those of one stratum together, and where each stratum begins."""
    rows, columns = np.nonzero(counts)
    stratum = unit[rows] * groups + group[columns]
    order = np.argsort(stratum, kind="stable")
    first = np.flatnonzero(np.diff(stratum[order], prepend=-1))
    starts = np.append(first, len(order)).astype(np.int64)
    return starts, counts[rows, columns][order].astype(np.int64)
