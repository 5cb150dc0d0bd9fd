"""Finds partners: each target gets the first record of its kind, outside its own area, that nobody has taken.

Kinds are tried from the narrowest to the widest, each for all targets that have no partner yet. Nobody is in two
pairs, and partners never lie in one area. Candidates are taken in the order in which they are given, so a random order
makes the choice random, and one by weights makes some candidates likelier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.study.swappers.simulated import Rows
from stirred.tables.groups import Groups

NOBODY = np.int64(-1)


@dataclass(frozen=True, eq=False)
class Kind:
    """Records of one group may be paired; ``candidates`` are those that may be taken, in the order of taking."""

    groups: Groups
    candidates: Rows


@dataclass(eq=False)
class Pairs:
    """Who is paired with whom so far; ``partner`` is -1 for records that are in no pair."""

    partner: Rows
    left: Rows
    """By region, how many records may still be swapped; what is negative has no limit."""

    @classmethod
    def none(cls, records: int, left: Rows | None = None) -> Pairs:
        """No pairs yet."""
        return cls(np.full(records, NOBODY), np.full(1, NOBODY) if left is None else left)

    @property
    def giver(self) -> Rows:
        """Whose place each record gets: its partner's, or its own."""
        own = np.arange(len(self.partner), dtype=np.int64)
        return np.where(self.partner == NOBODY, own, self.partner)

    def add(
        self,
        targets: Rows,
        kinds: Sequence[Kind],
        area: NDArray[np.uint32],
        region: NDArray[np.uint32] | None = None,
        exempt: NDArray[np.bool_] | None = None,
    ) -> int:
        """Pair the targets, in their order, as far as partners and limits allow; how many have none.

        ``region`` says which limit counts for a record, ``exempt`` which targets may exceed it.
        """
        regions = np.zeros(len(self.partner), dtype=np.uint32) if region is None else region
        free = np.zeros(len(self.partner), dtype=np.bool_) if exempt is None else exempt
        for kind in kinds:
            of = kind.groups.ids[kind.candidates]
            members = kind.candidates[np.argsort(of, kind="stable")]
            starts = np.searchsorted(np.sort(of), np.arange(kind.groups.count + 1)).astype(np.int64)
            _pair(
                targets, kind.groups.ids, members, starts, starts[:-1].copy(), area, regions, free,
                self.left, self.partner,
            )  # fmt: skip
        return int(np.count_nonzero(self.partner[targets] == NOBODY))


@kernel
def _pair(targets, group, members, starts, heads, area, region, exempt, left, partner):  # type: ignore[no-untyped-def]
    """``heads`` are the first candidates of each group that are not known to be taken."""
    for target in targets:
        if partner[target] >= 0:
            continue
        limit = left[region[target]]
        if 0 <= limit < 2 and not exempt[target]:
            continue
        kind = group[target]
        end = starts[kind + 1]
        first = heads[kind]
        while first < end and partner[members[first]] >= 0:
            first += 1
        heads[kind] = first
        for at in range(first, end):
            other = members[at]
            if partner[other] < 0 and area[other] != area[target]:
                partner[target] = other
                partner[other] = target
                if limit >= 0:
                    left[region[target]] = max(limit - 2, 0)
                break
