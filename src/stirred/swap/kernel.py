"""The permutation of the Permutation Swapping Algorithm (Algorithm 3.2.1), drawn exactly.

The law, independently for each stratum of n records: nobody moves if n < 2; otherwise every record is selected
independently with probability ``rate``, afresh while exactly one is selected, and the selected are permuted by a
uniformly random derangement. So P(sigma) = p^k (1-p)^(n-k) / ([1 - n p (1-p)^(n-1)] d(k)) where sigma moves k records
and d(k) counts derangements. With rates by rule each record has its own p, a function of what is kept, and the stratum
is selected afresh *whole*: keeping the lone record, dropping it or giving it a partner would break the guarantee. The
permutation that moves the records of a set S then has the probability prod_S p_i prod_others (1-p_i) / (D d(|S|)), with
D the probability that not exactly one is selected. There is no cap on how many move, and swaps that change nothing
stay.

Records are selected over the whole file first and only the selected are grouped by stratum: selection does not look
at strata, so the law is that of the loop over strata, and the cost is that of the few percent that move.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._shown import withheld
from stirred.noise import RandomSource, derange_groups, reselect, reselect_by_class, select, select_by_class
from stirred.swap.rates import RecordRates
from stirred.tables.groups import Groups

_UNWANTED = np.uint32(0xFFFFFFFF)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Moves:
    """Who receives whose swap variables: record ``receiver[i]`` those of ``giver[i]``. Never to be published.

    A record that does not occur keeps its own. ``for_release`` is false when the randomness can be repeated.
    """

    receiver: NDArray[np.uint32]
    giver: NDArray[np.uint32]
    for_release: bool

    def apply(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
        """A column after the swap."""
        moved = codes.copy()
        moved[self.receiver] = codes[self.giver]
        return moved


def draw(strata: Groups, sizes: NDArray[np.int64], rate: Fraction | RecordRates, source: RandomSource) -> Moves:
    """Draw one permutation; ``sizes`` are the strata's sizes, ``rate`` one for all records or one for each."""
    if isinstance(rate, Fraction):
        selected = select(len(strata.ids), rate, source)
    else:
        selected = select_by_class(rate.rule, rate.rates, source)
    counts = np.zeros(strata.count, dtype=np.uint32)
    _count(strata.ids, selected, counts)
    again = (counts == 1) & (sizes > 1)  # a stratum of one is never selected, so there is nothing to select again
    if np.any(counts == 1):
        selected = _without_lone(strata.ids, selected, counts)
        counts[counts == 1] = 0
    if np.any(again):
        rows, starts = _members(strata.ids, again, sizes)
        if isinstance(rate, Fraction):
            chosen = reselect(starts, rate, source)
        else:
            chosen = reselect_by_class(starts, rate.rule[rows], rate.rates, source)
        added = rows[chosen]
        _count(strata.ids, added, counts)
        selected = np.concatenate([selected, added])
    grouped, starts = _by_stratum(strata.ids, selected, counts)
    order = derange_groups(starts, source)
    giver = np.empty_like(grouped)
    _givers(grouped, starts, order, giver)
    return Moves(grouped, giver, source.for_release)


def _without_lone(
    ids: NDArray[np.uint32], selected: NDArray[np.uint32], counts: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The selected, less those that are alone in their stratum."""
    kept = np.empty_like(selected)
    return kept[: _keep_accompanied(ids, selected, counts, kept)]


def _members(
    ids: NDArray[np.uint32], wanted: NDArray[np.bool_], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """All records of the wanted strata, grouped, and where each group starts."""
    starts = np.concatenate([[0], np.cumsum(sizes[wanted])]).astype(np.int64)
    rows = np.empty(int(starts[-1]), dtype=np.uint32)
    cursor = np.full(len(wanted), _UNWANTED, dtype=np.uint32)
    cursor[wanted] = starts[:-1]
    _collect(ids, cursor, rows)
    return rows, starts


def _by_stratum(
    ids: NDArray[np.uint32], selected: NDArray[np.uint32], counts: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The selected grouped by stratum, and where the groups of the non-empty strata start."""
    ends = np.cumsum(counts, dtype=np.int64)
    grouped = np.empty_like(selected)
    _scatter(ids, selected, ends - counts, grouped)
    return grouped, np.concatenate([[0], ends[counts > 0]]).astype(np.int64)


@kernel
def _count(ids, rows, counts):  # type: ignore[no-untyped-def]
    for row in rows:
        counts[ids[row]] += np.uint32(1)


@kernel
def _keep_accompanied(ids, selected, counts, kept):  # type: ignore[no-untyped-def]
    at = 0
    for row in selected:
        if counts[ids[row]] != 1:
            kept[at] = row
            at += 1
    return at


@kernel
def _collect(ids, cursor, rows):  # type: ignore[no-untyped-def]
    for row in range(len(ids)):
        at = cursor[ids[row]]  # one look at memory per record: most strata are not wanted
        if at != _UNWANTED:
            rows[at] = row
            cursor[ids[row]] = at + np.uint32(1)


@kernel
def _scatter(ids, selected, cursor, grouped):  # type: ignore[no-untyped-def]
    for row in selected:
        stratum = ids[row]
        grouped[cursor[stratum]] = row
        cursor[stratum] += 1


@kernel
def _givers(grouped, starts, order, giver):  # type: ignore[no-untyped-def]
    for stratum in range(len(starts) - 1):
        start = starts[stratum]
        for i in range(start, starts[stratum + 1]):
            giver[i] = grouped[start + order[i]]
