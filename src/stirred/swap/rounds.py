"""Later rounds of a swap, from coarse to fine: drawing them, and what they do to a record.

A later round works on what the round before gave and on nothing else, so it is post-processing: epsilon is that of the
first round. Each round swaps columns that the round before swaps, and matches on the rest of them. So the counts by
match and swap variables of the first round are kept, and with them the sizes of the groups of every later round: what
rounds do to a record follows from the invariants (docs/guarantee.md has the proofs).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.noise import RandomSource
from stirred.swap import kernel
from stirred.swap.coarsening import stratum_columns
from stirred.swap.moments import stratum_constants
from stirred.swap.plan import SwapPlan
from stirred.tables import Table
from stirred.tables.groups import cells, group


def draw_later_rounds(plan: SwapPlan, table: Table, source: RandomSource) -> Table:
    """The table after the later rounds; ``table`` is what the first one gave, with the merged variable where there is
    one."""
    matched = stratum_columns(plan)
    for later in plan.rounds:
        matched = (*matched, *later.match_also)
        strata = group(table.pick(matched), table.rows)
        moves = kernel.draw(strata, strata.sizes(), later.rate, source)
        table = table.replace(
            {column.name: column.with_codes(moves.apply(column.codes)) for column in table.pick(later.swap)}
        )
    return table


@dataclass(frozen=True, eq=False, repr=False)
class LaterRounds:
    """Later rounds over the cells of match and swap values of the first one. A function of the invariants."""

    stratum: NDArray[np.int64]
    """The stratum of the first round that each cell is in."""
    counts: NDArray[np.float64]
    """The records of each cell."""
    rates: tuple[Fraction, ...]
    sizes: tuple[NDArray[np.int64], ...]
    """For each later round, the size of the group that a cell is in."""

    def __repr__(self) -> str:
        return f"<LaterRounds: {len(self.rates)} rounds; counts are confidential and not shown>"

    @property
    def not_selected(self) -> Fraction:
        """The share of records that no later round is expected to select."""
        left = Fraction(1)
        for rate in self.rates:
            left *= 1 - rate
        return left

    def unmoved(self) -> NDArray[np.float64]:
        """For a record of each cell, the probability that no later round moves it."""
        left = np.ones(len(self.counts))
        for rate, sizes in zip(self.rates, self.sizes, strict=True):
            constants = stratum_constants(sizes, rate)
            left *= 1 - constants.moved[constants.rows(sizes)]
        return left

    def unchanged(self) -> NDArray[np.float64]:
        """For a record of each cell, the probability that it has the same values after the later rounds.

        A round leaves a record where it is with probability lambda, and else gives it the values of a record drawn
        from its whole group: lambda = 1 - q n/(n-1). Later rounds keep that law, since they keep the counts of every
        value in the group. So from the last round to the first, with D = 1 after the last,
        D_k = lambda_k D_(k+1) + (1 - lambda_k) n_s/n_k.
        """
        same = np.ones(len(self.counts))
        for rate, sizes in zip(reversed(self.rates), reversed(self.sizes), strict=True):
            constants = stratum_constants(sizes, rate)
            kept = constants.shrinkage[constants.rows(sizes)]
            same = kept * same + (1 - kept) * self.counts / sizes
        return same


def later_rounds(plan: SwapPlan, table: Table) -> LaterRounds | None:
    """What the later rounds of a plan do, counted in the data or in the release; None for a plan of one round."""
    if not plan.rounds:
        return None
    first, also = stratum_columns(plan), [column for later in plan.rounds for column in later.match_also]
    counted = cells(table.pick([*first, *also, *plan.rounds[-1].swap]), table.rows)
    counts = counted.counts.astype(np.int64)
    sizes, leading = [], len(first)
    for later in plan.rounds:
        leading += len(later.match_also)
        member = np.cumsum(counted.begins(leading)) - 1
        total = np.zeros(int(member[-1]) + 1, dtype=np.int64)
        np.add.at(total, member, counts)
        sizes.append(total[member])
    stratum = np.cumsum(counted.begins(len(first))) - 1
    return LaterRounds(stratum, counts.astype(np.float64), tuple(later.rate for later in plan.rounds), tuple(sizes))
