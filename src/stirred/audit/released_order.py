"""Does the order of released rows betray the input? Rows may be shuffled, or sorted by what is released.

Then the order says nothing about where records stood in the file, which of them moved, or whose values they had. The
made file stands in an order of its own, drawn uniformly, so a sorted release is as foreign to it as a shuffled one. The
order of new ids is looked at in the same way, where it is another one.

Orders of several runs may be the same (sorted ones nearly are), so what concerns the order of the file is tested run by
run and the smallest p-value is taken as often as there are runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._lazy import later
from stirred.audit import tails
from stirred.audit.permutations_seen import Moved, ranks, ranks_in_release
from stirred.audit.swap_inputs import Integers, MadeFile

stats = later("scipy.stats")


@dataclass(frozen=True, eq=False, repr=False)
class OrderSeen:
    """What the order of one release says."""

    input_order: float
    """P-value: whether rows stand as in the file, all of them or within strata or one after another."""
    moved_ranks: float
    """How late moved records stand among those of their stratum: the sum of ranks from -1 to 1."""
    moved_variance: float
    earlier_values: NDArray[np.float64]
    """By group, whether moved records stand in the order of the values that they had: 0 in the mean, from -1 to 1."""
    groups: Integers
    """By group, its stratum."""


def order_seen(made: MadeFile, record: Integers, moved: Moved) -> OrderSeen:
    """Look at one release, of which ``record`` lists the records in their order."""
    rank = ranks_in_release(made, record)
    size = made.sizes[made.stratum[moved.record]].astype(np.float64)
    late = (2 * rank[moved.record] - size + 1) / (size - 1)
    own = ranks(moved, made.swapped[moved.record])
    k = moved.counts.astype(np.float64)[moved.group]
    standing = 2 * ranks(moved, rank[moved.record]) - k + 1
    # Given the release, the earlier value is that of any other moved record of the stratum alike.
    surplus = standing * ((2 * own - k + 1) + (2 * own[moved.giver] - k + 1) / (k - 1)) / k**3
    return OrderSeen(
        order_kept(made, record, rank),
        float(np.sum(late)),
        float(np.sum((size + 1) / (3 * (size - 1)))),
        np.bincount(moved.group, weights=surplus, minlength=len(moved.stratum)).astype(np.float64),
        moved.stratum,
    )


def order_kept(made: MadeFile, record: Integers, rank: Integers) -> float:
    """P-value of a release with these records, one after the other; ``rank`` counts them by stratum."""
    rows = made.row[record]
    steps = np.diff(rows)
    up = int(np.count_nonzero(steps > 0))
    # Records of a stratum are numbered in the order of the file.
    within = np.diff(rank)[np.diff(made.stratum) == 0]
    several = made.sizes[made.sizes > 1].astype(np.float64)
    return tails.smallest_of(
        [
            correlated(rows),
            # Ascents of a random permutation are a sum of independent coins (Eulerian numbers), of variance (n+1)/12.
            tails.of_bounded_sum(up - len(steps) / 2, (len(rows) + 1) / 12),
            tails.of_bounded_sum(np.count_nonzero(within > 0) - len(within) / 2, float(np.sum(several + 1)) / 12),
            neighbours_kept(int(np.count_nonzero(np.abs(steps) == 1))),
        ]
    )


def correlated(rows: Integers) -> float:
    """P-value of the rank correlation of an order with that of the file; its tails are lighter than the normal's."""
    count = len(rows)
    centred = np.arange(count) - (count - 1) / 2
    correlation = float(np.dot(centred, rows)) / (count * (float(count) ** 2 - 1) / 12)
    return float(2 * stats.norm.sf(abs(correlation) * math.sqrt(count - 1)))


def neighbours_kept(pairs: int) -> float:
    """P-value of so many pairs of rows that were neighbours and are. Expected are two.

    With X of them E C(X, m) is at most 2^m / m!, since m pairs can be glued together in 2^m ways.
    """
    return min(1.0, math.exp(pairs * math.log(2) - math.lgamma(pairs + 1)))
