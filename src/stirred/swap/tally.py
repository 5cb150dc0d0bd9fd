"""What estimates read of a swapped file: released cells by stratum, held class and swap class, and scores of classes.

A *held class* is a kind of record by what it holds: a combination of held values, or the multiset of its linked rows.
Its *score* in a group h is how many rows of the asked table it has there: 0 or 1 for the records themselves, any number
for persons of households. A *swap class* is a combination of swap values, and is in one group s or in none. A count is
then, summed over strata, the sum of score times indicator over the records, which is what :mod:`stirred.swap.moments`
gives the moments of. Everything is grouped: nothing here is as long as the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.swap.law_constants import LawConstants
from stirred.swap.rates import RatesByStratum

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Shape(NamedTuple):
    """How many groups there are by match values, by what is held and by swap values."""

    areas: int
    held: int
    swapped: int


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """The released cells of a question."""

    shape: Shape
    law: LawConstants
    """Of each stratum."""
    area: Integers
    """Of each stratum its group by match values; -1 where its records are not asked for."""
    stratum: Integers
    """Of each released cell its stratum,"""
    held: Integers
    """held class,"""
    swapped: Integers
    """swap class"""
    count: Integers
    """and number of records."""
    class_of: Integers
    """For each positive score its held class,"""
    group_of: Integers
    """its group,"""
    score: Integers
    """and the score."""
    swap_group: Integers
    """Of each swap class its group; -1 where it is not asked for."""
    rates: RatesByStratum | None = None
    """Which rates the records of each stratum have, where a plan gives several,"""
    rule: Integers | None = None
    """and the rule of each held class."""

    def __repr__(self) -> str:
        return f"<Tally: {len(self.count):,} cells in {len(self.area):,} strata>"

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Which strata that are asked for have records of different rates."""
        if self.rates is None:
            return np.zeros(len(self.area), dtype=np.bool_)
        return np.asarray(~np.logical_or.reduce(list(self.rates.one_each().values())) & (self.area >= 0))

    @property
    def changeable(self) -> NDArray[np.bool_]:
        """Which strata have records that differ both in what is counted and in their swap values: a swap changes no
        count of the others."""
        kind = np.arange(self.classes)
        if self.rule is not None:  # classes of records that differ in their rates alone are one
            kind = np.full(self.classes, -1)
            kind[self.class_of] = self.group_of
        several = [
            _differ(self.stratum, part, len(self.area)) for part in (kind[self.held], self.swap_group[self.swapped])
        ]
        return np.asarray(several[0] & several[1] & (self.area >= 0))

    @property
    def classes(self) -> int:
        """The number of held classes."""
        return int(self.held.max(initial=-1)) + 1

    def merged(self, areas: Integers, held: Integers, swapped: Integers) -> Tally:
        """The same cells with groups put together: for each group the number of its new one.

        Merging before estimating is what keeps covariances within a stratum right.
        """
        groups = Shape(*(int(part.max(initial=-1)) + 1 for part in (areas, held, swapped)))
        keys, at = np.unique(self.class_of * groups.held + held[self.group_of], return_inverse=True)
        return replace(
            self,
            shape=groups,
            area=np.append(areas, -1)[self.area],
            class_of=keys // max(groups.held, 1),
            group_of=keys % max(groups.held, 1),
            score=np.bincount(at.reshape(-1), self.score).astype(np.int64),
            swap_group=np.append(swapped, -1)[self.swap_group],
        )


@dataclass(frozen=True, eq=False, repr=False)
class StratumCells:
    """Cells (stratum, h, s) that the margins allow, with what is public about them: a row for each."""

    stratum: Integers
    held: Integers
    swapped: Integers
    size: Floats
    """n, the records of the stratum"""
    scores: Floats
    """sum of u over its records"""
    squares: Floats
    """sum of u^2"""
    cubes: Floats
    """sum of u^3"""
    largest: Floats
    """the largest u"""
    records: Floats
    """records with the swap values s"""
    released: Floats
    """z: sum of u over released records with s"""
    released_squares: Floats
    """sum of u^2 over them"""

    def __repr__(self) -> str:
        return f"<StratumCells: {len(self.stratum):,}>"

    @property
    def low(self) -> Floats:
        """The least that the margins allow."""
        return np.maximum(0.0, self.scores - (self.size - self.records) * self.largest)

    @property
    def high(self) -> Floats:
        """The most that the margins allow."""
        return np.minimum(self.scores, self.records * self.largest)


def stratum_cells(tally: Tally) -> StratumCells:
    """All cells of strata that are asked for, those released empty included."""
    shape, asked = tally.shape, tally.area >= 0
    inside = asked[tally.stratum]
    m, k, t, many = (part[inside] for part in (tally.stratum, tally.held, tally.swapped, tally.count))
    row, at = scores_of(tally, k)
    u, h, weight = tally.score[at].astype(np.float64), tally.group_of[at], many[row].astype(np.float64)
    s = tally.swap_group[t]
    held_keys, held_at = np.unique(m[row] * shape.held + h, return_inverse=True)
    sums = [np.bincount(held_at, weight * u**power) for power in (1, 2, 3)]
    largest = np.zeros(len(held_keys))
    np.maximum.at(largest, held_at, u)
    chosen = s >= 0
    swap_keys, swap_at = np.unique(m[chosen] * shape.swapped + s[chosen], return_inverse=True)
    records = np.bincount(swap_at, many[chosen])
    both = chosen[row]
    keys, cell_at = np.unique((m[row[both]] * shape.held + h[both]) * shape.swapped + s[row[both]], return_inverse=True)
    z1, z2 = np.bincount(cell_at, weight[both] * u[both]), np.bincount(cell_at, weight[both] * u[both] ** 2)
    a, b = _pairs(held_keys // shape.held, swap_keys // shape.swapped, len(tally.area))
    wanted = held_keys[a] * shape.swapped + swap_keys[b] % shape.swapped
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    found = keys[place] == wanted if len(keys) else np.zeros(len(wanted), dtype=np.bool_)
    stratum = held_keys[a] // shape.held
    return StratumCells(
        stratum=stratum,
        held=held_keys[a] % shape.held,
        swapped=swap_keys[b] % shape.swapped,
        size=tally.law.size[stratum].astype(np.float64),
        scores=sums[0][a].astype(np.float64),
        squares=sums[1][a].astype(np.float64),
        cubes=sums[2][a].astype(np.float64),
        largest=largest[a],
        records=records[b].astype(np.float64),
        released=np.where(found, z1[place], 0.0) if len(keys) else np.zeros(len(wanted)),
        released_squares=np.where(found, z2[place], 0.0) if len(keys) else np.zeros(len(wanted)),
    )


def scores_of(tally: Tally, held: Integers) -> tuple[Integers, Integers]:
    """Each row beside each positive score of its class: positions of rows, and of scores."""
    order = np.argsort(tally.class_of, kind="stable")
    many = np.bincount(tally.class_of, minlength=tally.classes)
    first = np.cumsum(many) - many
    row = np.repeat(np.arange(len(held)), many[held])
    ends = np.cumsum(many[held])
    within = np.arange(len(row)) - np.repeat(ends - many[held], many[held])
    return row, order[first[held[row]] + within]


def _differ(stratum: Integers, part: Integers, strata: int) -> NDArray[np.bool_]:
    """In which strata the entries are not all the same."""
    least, most = np.full(strata, np.iinfo(np.int64).max), np.full(strata, np.iinfo(np.int64).min)
    np.minimum.at(least, stratum, part)
    np.maximum.at(most, stratum, part)
    return np.asarray(least < most)


def _pairs(left: Integers, right: Integers, strata: int) -> tuple[Integers, Integers]:
    """All pairs of entries of the same stratum; both are sorted by it."""
    many_left, many_right = np.bincount(left, minlength=strata), np.bincount(right, minlength=strata)
    first_left, first_right = np.cumsum(many_left) - many_left, np.cumsum(many_right) - many_right
    stratum = np.repeat(np.arange(strata), many_left * many_right)
    ends = np.cumsum(many_left * many_right)
    within = np.arange(len(stratum)) - np.repeat(ends - many_left * many_right, many_left * many_right)
    return (
        first_left[stratum] + within // many_right[stratum],
        first_right[stratum] + within % many_right[stratum],
    )
