"""The exact law of the Permutation Swapping Algorithm on one stratum, far beyond what can be listed by permutations.

A permutation that moves k of n records has the weight p^k (1-p)^(n-k) / d(k), d(k) being the derangement numbers. The
probability P(z | x) that table z is released from table x follows from the numbers of permutations from x to z by how
many records they leave in place (:mod:`stirred.swap.permutation_counts`), or, where there are two by two categories,
from eigenvalues (:mod:`stirred.swap.two_by_two_laws`).

Keep in mind: probabilities are whole numbers over one common total. Nothing is rounded before a logarithm is taken.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.invariants.revealing import require_margins
from stirred.swap.guarantee import derangements, require_rate
from stirred.swap.permutation_counts import Counting
from stirred.swap.two_by_two_laws import shares_of_two_by_two
from stirred.swap.universes import Table, Totals, Universe, tables_with

Floats = NDArray[np.float64]

MOST_RECORDS = 200
"""Records of a stratum: its probabilities then are whole numbers of 110,000 bits, and those of two by two categories
fill 140 MB."""
MOST_TABLES = 6_000
"""Tables of a universe."""
MOST_SHARES = 5_000_000
"""Probabilities that are kept: those from one table of each class of tables that are alike, to all."""
MOST_TERMS = 3_000_000_000
"""Terms that are added to count permutations: about a minute."""

_MOST_STATES = 10_000_000


@brief
@dataclass(frozen=True, eq=False)
class StratumLaw:
    """The law of the released table for each table of a universe.

    ``shares[r][z] / total`` is P(z | x) for the representative x of number r; see :class:`Universe`.
    """

    held: Totals
    swapped: Totals
    rate: Fraction
    tables: tuple[Table, ...]
    universe: Universe
    shares: tuple[tuple[int, ...], ...]
    total: int

    def row(self, table: int) -> list[int]:
        """P(z | x) for all tables z, times ``total``; tables are given by their places in ``tables``."""
        shares, turned = self.shares[self.universe.representative[table]], self.universe.turned(table)
        return [shares[at] for at in np.arange(len(shares))[turned]]

    def chance(self, table: int, released: int) -> Fraction:
        """P(z | x), tables being given by their places in ``tables``."""
        return Fraction(self.row(table)[released], self.total)

    def logs(self, table: int) -> Floats:
        """ln P(z | x) for all tables z; minus infinity where z cannot be released."""
        return np.asarray(self._logs[self.universe.representative[table]][self.universe.turned(table)])

    @cached_property
    def worst(self) -> WorstRatio | None:
        """The two tables, and the released one, with the largest absolute log ratio per record in which the two differ.

        The difference of two tables is a sum of cycles of cells that all agree with it in sign (each takes a record out
        of k cells and puts one into k others, in k rows and k columns), so that distances add up along them. Hence the
        largest ratio is found where no row or column changes by more than one record; between two categories these
        are the nearest tables, two records apart. None where the universe has one table.
        """
        best, found, tables = -1.0, None, self.universe.tables
        for x in self.universe.representatives.tolist():
            apart, distances, logs = np.abs(tables - tables[x]), self.universe.distances(x), self.logs(x)
            near = (apart.sum(axis=1).max(axis=1) <= 2) & (apart.sum(axis=2).max(axis=1) <= 2) & (distances > 0)
            for y in np.flatnonzero(near).tolist():
                with np.errstate(invalid="ignore"):  # of two that cannot be released
                    ratios = np.nan_to_num(np.abs(self.logs(y) - logs), nan=0.0, posinf=math.inf)
                at = int(np.argmax(ratios))
                if ratios[at] / distances[y] > best:
                    best, found = float(ratios[at] / distances[y]), (x, y, at)
        return None if found is None else self._ratio(*found)

    def _ratio(self, x: int, y: int, released: int) -> WorstRatio:
        first, second = self.row(x)[released], self.row(y)[released]
        distance = int(self.universe.distances(x)[y])
        if first < second:
            x, y, first, second = y, x, second, first
        return WorstRatio(_log_ratio(first, second) / distance, x, y, released, distance)

    @cached_property
    def _logs(self) -> Floats:
        return np.array([[_log_ratio(share, self.total) for share in row] for row in self.shares])


@dataclass(frozen=True)
class WorstRatio:
    """Places of two tables of a universe, and of a released table that is likelier from ``first``.

    ``loss`` is the log ratio of its two probabilities, divided by the ``distance`` of the two.
    """

    loss: float
    first: int
    second: int
    released: int
    distance: int


def stratum_law(held: Sequence[int], swapped: Sequence[int], rate: Fraction) -> StratumLaw:
    """The law of a swap of one stratum with these numbers of records by held and by swap value.

    >>> law = stratum_law((2, 2), (2, 2), Fraction(1, 10))
    >>> law.tables
    (((0, 2), (2, 0)), ((1, 1), (1, 1)), ((2, 0), (0, 2)))
    >>> [round(float(law.chance(0, z)), 9) for z in range(3)]
    [0.949055775, 0.050881486, 6.2739e-05]
    """
    rows, columns = _margins(held, swapped)
    require_rate(rate)
    size = sum(rows)
    if min(len(rows), len(columns)) == 1:  # one table, and nothing can change, whatever the rate
        only = (columns,) if len(rows) == 1 else tuple((count,) for count in rows)
        return StratumLaw(rows, columns, rate, (only,), Universe.of([only], turned=False), ((1,),), 1)
    if size > MOST_RECORDS:
        raise errors.stratum_too_large(f"{size:,} records", f"{MOST_RECORDS:,}")
    tables = tuple(islice(tables_with(rows, columns), MOST_TABLES + 1))
    if len(tables) > MOST_TABLES:
        raise errors.stratum_too_large(f"more than {MOST_TABLES:,} tables", f"{MOST_TABLES:,}")
    weights = _weights(size, rate)
    universe = Universe.of(tables, turned=not _two_by_two(rows, columns))
    if _two_by_two(rows, columns):
        shares = tuple(map(tuple, shares_of_two_by_two(size, rows[0], columns[0], weights[::-1])))
    else:
        shares = _counted(universe, weights)
    return StratumLaw(rows, columns, rate, tables, universe, shares, sum(shares[0]))


def affordable(held: Sequence[int], swapped: Sequence[int], *, records: int, tables: int, terms: float) -> bool:
    """Whether a law needs at most so many tables and terms to add, or records where there are two by two categories."""
    if _two_by_two(held, swapped) or sum(held) > MOST_RECORDS:
        return _two_by_two(held, swapped) and sum(held) <= records
    listed = tuple(islice(tables_with(held, swapped), tables + 1))
    return len(listed) <= tables and _effort(Universe.of(listed))[0] <= terms


# -- helpers -------------------------------------------------------------------------------------------------


def _margins(held: Sequence[int], swapped: Sequence[int]) -> tuple[Totals, Totals]:
    try:
        rows, columns = require_margins(*([operator.index(count) for count in side] for side in (held, swapped)))
    except (TypeError, OverflowError):
        raise errors.parameter_out_of_range(
            "the pair of margins", "not two lists of whole numbers", "of positive counts that have the same sum"
        ) from None
    return tuple(rows.tolist()), tuple(columns.tolist())


def _two_by_two(held: Sequence[int], swapped: Sequence[int]) -> bool:
    return len(held) == len(swapped) == 2


def _weights(size: int, rate: Fraction) -> list[int]:
    """The weight p^(n-j) (1-p)^j / d(n-j) of a permutation that leaves j records in place, over a common denominator.

    One record is never moved alone.
    """
    move, stay = rate.numerator, rate.denominator - rate.numerator
    ways = [derangements(size - j) for j in range(size + 1)]
    common = math.lcm(*(way for way in ways if way))
    found = [move ** (size - j) * stay**j * (common // way) if way else 0 for j, way in enumerate(ways)]
    divisor = math.gcd(*found)
    return [weight // divisor for weight in found]


def _counted(universe: Universe, weights: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The weights of all permutations from each representative to each table.

    Where x and z change places, N_j(x -> z) prod z! = N_j(z -> x) prod x!, so each pair is counted once.
    """
    if (many := len(universe.representatives) * len(universe)) > MOST_SHARES:
        raise errors.stratum_too_large(f"{many:,} different probabilities", f"{MOST_SHARES:,}")
    terms, states = _effort(universe)
    if terms > MOST_TERMS or states > _MOST_STATES:
        raise errors.stratum_too_large(f"{terms:.1e} terms to add", f"{MOST_TERMS:.0e}")
    counting, weighed = Counting.of(universe.tables), np.array(weights, dtype=object)
    arranged = [math.prod(map(math.factorial, x.ravel().tolist())) for x in universe.tables[universe.representatives]]
    shares: list[list[int]] = []
    for number, x in enumerate(universe.tables[universe.representatives]):
        row = [0] * len(universe)
        later = np.flatnonzero(universe.representative >= number)
        for z, share in zip(later.tolist(), counting.counts(x, universe.tables[later]) @ weighed, strict=True):
            row[z] = share
        earlier = np.flatnonzero(universe.representative < number)
        others, backs = universe.representative[earlier], universe.places_of(x[None], universe.turns[earlier])
        for z, other, back in zip(earlier.tolist(), others.tolist(), backs.tolist(), strict=True):
            row[z] = shares[other][back] * arranged[number] // arranged[other]
        shares.append(row)
    return tuple(map(tuple, shares))


def _effort(universe: Universe) -> tuple[float, float]:
    """The terms to be added for all pairs that are counted, and the most states that one has."""
    counting, terms, states = Counting.of(universe.tables), 0.0, 0.0
    for number, x in enumerate(universe.tables[universe.representatives]):
        more, most = counting.effort(x, universe.tables[universe.representative >= number])
        terms, states = terms + more, max(states, most)
    return terms, states


def _log_ratio(one: int, other: int) -> float:
    """ln(one / other) to the precision of floats, whatever the size of the numbers."""
    if not one or not other:
        return 0.0 if one == other else math.inf if one else -math.inf
    shift = one.bit_length() - other.bit_length()
    scaled = (one << max(0, 128 - shift)) // (other << max(0, shift - 128))
    return math.log1p((scaled - (1 << 128)) / (1 << 128)) + shift * math.log(2)
