"""Sums over the released records of strata: products of scores of what is held with scores of swap values.

A *score* is a number for each class of held values, or for each class of swap values. Cells stand in the order of
stratum, swap class, held class, so that every sum is over neighbours and nothing is sorted or hashed again.

The estimates of products of true sums are those of :mod:`stirred.swap.estimation`, here for any scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from stirred.swap.law_constants import LawConstants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
