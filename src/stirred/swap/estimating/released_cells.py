"""Holds what estimates read of a swapped file: released cells by stratum, held class and swap class, and scores.

A *held class* is a kind of record by what it holds: a combination of held values, or the multiset of its linked rows.
Its *score* in a group h is how many rows of the asked table it has there: 0 or 1 for the records themselves, any number
for persons of households; in a regression it is the value of a variable. A *swap class* is a combination of swap
values, and is in one group s or in none. A count is then, summed over strata, the sum of score times indicator over the
records, which is what :mod:`stirred.swap.law.moments` gives the moments of. Everything is grouped: nothing here is as
long as the file.

Counts (:class:`Tally`) have few whole scores for each class, and cells in any order. Regressions
(:class:`ReleasedSums`) have a score of every class for each variable, and cells in the order of stratum, swap class,
held class, so that every sum is over neighbours and nothing is sorted or hashed again. Their estimates of products of
true sums are those of :mod:`stirred.swap.estimating.cell_estimates`, for any scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.swap.data.counting import RatesByStratum, look_up, pairs
from stirred.swap.law.moments import LawConstants

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
    _, a, b = pairs(len(tally.area), held_keys // shape.held, swap_keys // shape.swapped)
    wanted = held_keys[a] * shape.swapped + swap_keys[b] % shape.swapped
    place, found = look_up(keys, wanted)
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


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedSums:
    """Released cells by stratum, swap class and held class."""

    law: LawConstants
    """Of each stratum; every stratum has records."""
    held: Integers
    """Of each cell its held class"""
    count: Floats
    """and number of records."""
    begin: Integers
    """Of each group of cells that share stratum and swap class its first cell,"""
    stratum: Integers
    """its stratum"""
    swapped: Integers
    """and its swap class."""

    def __repr__(self) -> str:
        return f"<ReleasedSums: {len(self.count):,} cells in {len(self.law.size):,} strata>"

    @classmethod
    def of(
        cls, law: LawConstants, stratum: Integers, swapped: Integers, held: Integers, count: Integers
    ) -> ReleasedSums:
        """From cells in the order of stratum and swap class."""
        new = np.ones(len(stratum), dtype=np.bool_)
        new[1:] = (stratum[1:] != stratum[:-1]) | (swapped[1:] != swapped[:-1])
        begin = np.flatnonzero(new)
        return cls(law, held, count.astype(np.float64), begin, stratum[begin], swapped[begin])

    @cached_property
    def size(self) -> Floats:
        """The records of each stratum."""
        return self.law.size.astype(np.float64)

    @cached_property
    def _first(self) -> Integers:
        return np.searchsorted(self.stratum, np.arange(len(self.law.size)))

    @cached_property
    def records(self) -> Floats:
        """The records of each group."""
        return np.asarray(np.add.reduceat(self.count, self.begin))

    @cached_property
    def cell_stratum(self) -> Integers:
        """Of each cell its stratum."""
        return np.repeat(self.stratum, np.diff(np.append(self.begin, len(self.count))))

    def by_group(self, part: Floats) -> Floats:
        """A number of each cell, added up over the records of each group."""
        return np.asarray(np.add.reduceat(part * self.count, self.begin))

    def by_stratum(self, part: Floats) -> Floats:
        """A number of each group, added up for each stratum."""
        return np.asarray(np.add.reduceat(part, self._first))

    @cached_property
    def held_records(self) -> Floats:
        """The records of each held class."""
        return np.asarray(np.bincount(self.held, self.count), dtype=np.float64)

    def swap_means(self, score: Floats) -> Floats:
        """The mean in each stratum of a score of swap classes."""
        return self.by_stratum(self.records * score[self.swapped]) / self.size

    def held_products(self, scores: Floats, weight: Floats | None = None) -> Floats:
        """Sums of products of held scores ``[class, score]`` over all records, strata weighted."""
        many = self.held_records
        if weight is not None:
            weighted = self.count * weight[self.cell_stratum]
            many = np.asarray(np.bincount(self.held, weighted, minlength=len(scores)), dtype=np.float64)
        return np.asarray(scores.T @ (many[:, None] * scores))

    def swap_products(self, scores: Floats, weight: Floats | None = None) -> Floats:
        """Sums of products of swap scores over all records, strata weighted."""
        records = self.records if weight is None else self.records * weight[self.stratum]
        many = np.bincount(self.swapped, records, minlength=len(scores))
        return np.asarray(scores.T @ (many[:, None] * scores))

    def product_of_parts(self, held: Floats, swapped: Floats) -> float:
        """The sum over the true records of a score of each cell's held class times one of the swap class, estimated.

        Where a stratum cannot be inverted, held and swap values are taken as unrelated.
        """
        f, g = self.by_group(held), swapped[self.swapped]
        independent = self.by_stratum(f) * self.by_stratum(self.records * g) / self.size
        apart = self.by_stratum(f * g) - independent
        usable = self.law.invertible
        shift = np.divide(apart, self.law.shrinkage, out=np.zeros(len(apart)), where=usable)
        return float(np.sum(independent + shift))


class HeldColumns:
    """Held variables, centred in strata, and their products, added up for each group: the only passes over cells."""

    def __init__(self, sums: ReleasedSums, columns: Floats) -> None:
        self._sums, self._columns = sums, columns
        self._products: dict[tuple[int, int], Floats] = {}
        self.sums = np.zeros((len(sums.begin), columns.shape[1]))
        """``[group, variable]``, of centred variables"""
        self.means = np.zeros((len(sums.size), columns.shape[1]))
        """``[stratum, variable]``"""
        for at, column in enumerate(columns.T):
            found = sums.by_group(column[sums.held])
            self.means[:, at] = sums.by_stratum(found) / sums.size
            self.sums[:, at] = found - self.means[sums.stratum, at] * sums.records

    def __repr__(self) -> str:
        return f"<HeldColumns: {self._columns.shape[1]} variables>"

    def products(self, one: int, other: int) -> Floats:
        """Sums of products of two variables, for each group."""
        key = (min(one, other), max(one, other))
        if key not in self._products:
            self._products[key] = self._sums.by_group(self._apart(key[0]) * self._apart(key[1]))
        return self._products[key]

    def spread(self, at: int) -> Floats:
        """The sum of squares of a variable within each stratum."""
        return self._sums.by_stratum(self.products(at, at))

    def _apart(self, at: int) -> Floats:
        return np.asarray(self._columns[self._sums.held, at] - self.means[self._sums.cell_stratum, at])


class ScoreCovariances:
    """Covariances of released sums W = sum u_i v_sigma(i), estimated without bias, strata weighted.

    ``held`` are weights ``[variable, score]`` of the held variables, ``swapped`` scores ``[class, score]``; ``factor``
    multiplies the sums of each stratum.
    """

    def __init__(self, sums: ReleasedSums, columns: HeldColumns, held: Floats, swapped: Floats, factor: Floats) -> None:
        self._sums, self._columns, self._factor = sums, columns, factor
        self._weights, self._scores = held, swapped
        self._swap: dict[int, Floats] = {}
        self._spread: dict[tuple[int, int], Floats] = {}
        self._product: dict[tuple[int, int], Floats] = {}

    def __repr__(self) -> str:
        return f"<ScoreCovariances of {self._weights.shape[1]} scores>"

    def has(self, held: int, swapped: int) -> bool:
        """Whether a sum can vary at all."""
        return bool(np.any(self._weights[:, held]) and np.any(self._scores[:, swapped]))

    def between(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
        """The covariance of two sums, each a held and a swap score; and what it were if both sides were unrelated."""
        (a, b), (c, d) = one, other
        sums, law, n = self._sums, self._sums.law, self._sums.size
        f, g = self._v(b), self._v(d)
        pairs = self._uu(a, c)
        known = sums.by_stratum(pairs) * sums.by_stratum(sums.records * f * g)
        straight = self._w(a, b) * self._w(c, d)
        crossed = self._w(a, d) * self._w(c, b)
        usable = law.invertible
        lam = np.where(usable, law.shrinkage, 1.0)
        four = known / n + np.where(usable, (sums.by_stratum(pairs * f * g) - known / n) / lam, 0.0)
        base = law.a4 * four + law.a3 * known
        plus = (straight + crossed - 2 * base) / _away(law.shrinkage**2 + law.a1 + law.a2)
        minus = (straight - crossed) / _away(law.shrinkage**2 + law.a1 - law.a2)
        found = base + law.a1 * (plus + minus) / 2 + law.a2 * (plus - minus) / 2
        unrelated = (law.a4 / n + law.a3) * known
        weight = self._factor**2
        return float(np.sum(found * weight)), float(np.sum(unrelated * weight))

    def _v(self, at: int) -> Floats:
        if at not in self._swap:
            score = self._scores[:, at]
            self._swap[at] = score[self._sums.swapped] - self._sums.swap_means(score)[self._sums.stratum]
        return self._swap[at]

    def _uu(self, a: int, b: int) -> Floats:
        key = (min(a, b), max(a, b))
        if key not in self._spread:
            found = np.zeros(len(self._sums.begin))
            f, g = self._weights[:, a], self._weights[:, b]
            for i, j in combinations_with_replacement(np.flatnonzero((f != 0) | (g != 0)).tolist(), 2):
                weight = f[i] * g[j] + (f[j] * g[i] if i != j else 0.0)
                if weight:
                    found += weight * self._columns.products(i, j)
            self._spread[key] = found
        return self._spread[key]

    def _w(self, a: int, b: int) -> Floats:
        if (a, b) not in self._product:
            own = self._columns.sums @ self._weights[:, a]
            self._product[a, b] = self._sums.by_stratum(own * self._v(b))
        return self._product[a, b]


def _away(number: Floats) -> Floats:
    """A divisor that is not near 0."""
    return np.where(np.abs(number) > 1e-6, number, np.inf)
