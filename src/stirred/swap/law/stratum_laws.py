"""Computes the exact law of the swap of one stratum, far beyond what permutations can list, and intervals from it.

A table counts the records of a stratum by held value (rows) and by swap value (columns); a universe is all tables with
the same two margins. A permutation that moves k of n records has the weight p^k (1-p)^(n-k) / d(k), d(k) being the
derangement numbers. The probability P(z | x) that table z is released from table x follows from the numbers of
permutations from x to z by how many records they leave in place, or, where there are two by two categories, from
eigenvalues. One cell alone is the first one of such a table, its own held and swap value and all others, since merging
values commutes with a swap.

*Tables that differ only in the order of alike values.* Values with equal totals are alike: a swap does not know their
names, so that turning the same alike rows, or columns, of the true and of the released table changes no probability.
One table for each such class, a *representative*, is enough to know the laws of all.

*Numbers of permutations.* Pairs of a permutation from x to z and m records that it leaves in place are counted by the
table e of these records,

    M_m = sum over e <= min(x, z), |e| = m, of  prod C(x, e) prod_h (n_h - e_h)! prod_s (n_s - e_s)! / prod (z - e)!

and N_j = sum_m (-1)^(m - j) C(m, j) M_m permutations leave exactly j in place (inclusion and exclusion). They are found
modulo some primes, whose product is larger than n!.

*Two by two categories.* Such a table is its first cell. The chain from the true cell x to the released cell z commutes
with the one that exchanges two random records, so both have the same eigenvectors: the Hahn polynomials Q_j, orthogonal
under the hypergeometric law mu,

    P(z | x) = mu(z) sum_j lambda_j Q_j(x) Q_j(z) / h_j,    h_j = sum_z mu(z) Q_j(z)^2,
    lambda_j = sum_m c_m [C(n-m, j) - C(n-m, j-m-1)] / [C(n, j) - C(n, j-1)],

where c_m writes the swap as a mixture, with signs, of uniform permutations of m random records. Only the first row is
summed this way: since the two chains commute, each further row follows from the two before it. All sums have terms of
both signs and all divisions leave no remainder, so everything is in whole numbers.

Keep in mind: probabilities are whole numbers over one common total. Nothing is rounded before a logarithm is taken.
"""

from __future__ import annotations

import math
import operator
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import brief
from stirred.invariants.revealing import require_margins
from stirred.loss.curves.swap_laws import derangements
from stirred.swap.law.theorem import require_rate

Totals = tuple[int, ...]
Table = tuple[Totals, ...]
Integers = NDArray[np.int64]

_SCATTER = 0x9E3779B97F4A7C15
"""An odd number whose powers are spread over 64 bits."""


@dataclass(frozen=True, eq=False)
class Universe:
    """The tables as an array ``[table, row, column]``, and for each the turn that makes it its representative."""

    tables: Integers
    axis: int
    """What is turned: 1, rows, or 2, columns."""
    turns: Integers
    """For each table the order of its rows, or columns, in its representative."""
    representative: Integers
    """For each table its representative's place in ``representatives``."""
    representatives: Integers
    """The places of the representatives in ``tables``."""

    @classmethod
    def of(cls, tables: Sequence[Table], *, turned: bool = True) -> Universe:
        """All tables with two margins; without being ``turned`` each is its own representative."""
        array = np.array(tables, dtype=np.int64)
        held, swapped = array[0].sum(axis=1), array[0].sum(axis=0)
        axis = 1 if _orders(held) >= _orders(swapped) else 2
        totals = held if axis == 1 else swapped
        own = np.arange(len(array))
        turns = np.tile(np.arange(len(totals)), (len(array), 1))
        if not turned or _orders(totals) == 1:
            return cls(array, axis, turns, own, own)
        lines = array if axis == 1 else array.transpose(0, 2, 1)
        keys = [*lines.transpose(2, 0, 1)[::-1], np.tile(totals, (len(array), 1))]
        turns = np.lexsort(keys, axis=1)
        # Sorted, values stand by their totals; each place gets one of its own total back.
        turns = turns[:, np.argsort(np.argsort(totals, kind="stable"), kind="stable")]
        found = cls(array, axis, turns, own, own).places_of(array, turns)
        representatives, number = np.unique(found, return_inverse=True)
        return cls(array, axis, turns, number, representatives)

    def __len__(self) -> int:
        return len(self.tables)

    def turned(self, at: int) -> Integers | slice:
        """The place of every table after the turn that makes this one its representative."""
        if np.array_equal(self.turns[at], np.arange(self.turns.shape[1])):
            return slice(None)
        return self.places_of(self.tables, self.turns[at : at + 1])

    def places_of(self, tables: Integers, turns: Integers) -> Integers:
        """Where tables stand in the universe after their rows, or columns, are put into these orders: one each, or one
        for all, or one table in all orders."""
        along = turns[:, :, None] if self.axis == 1 else turns[:, None, :]
        codes, order = self._codes
        return np.asarray(order[np.searchsorted(codes, self._code(np.take_along_axis(tables, along, axis=self.axis)))])

    def distances(self, at: int) -> Integers:
        """In how many records each table differs from this one: n - sum min(x, z)."""
        return np.asarray(np.maximum(self.tables - self.tables[at], 0).sum(axis=(1, 2)))

    @cached_property
    def _codes(self) -> tuple[NDArray[np.uint64], Integers]:
        codes = self._code(self.tables)
        order = np.argsort(codes)
        assert np.all(np.diff(codes[order]) > 0)  # no two tables have the same code, so that none is mistaken
        return codes[order], order

    def _code(self, tables: Integers) -> NDArray[np.uint64]:
        cells = math.prod(tables.shape[1:])
        factors = np.array([pow(_SCATTER, k + 1, 1 << 64) for k in range(cells)], dtype=np.uint64)
        return np.asarray(tables.reshape(len(tables), cells).astype(np.uint64) @ factors)


def tables_with(held: Sequence[int], swapped: Sequence[int]) -> Iterator[Table]:
    """All tables with these margins, one after the other.

    >>> list(tables_with((2, 1), (1, 2)))
    [((0, 2), (1, 0)), ((1, 1), (0, 1))]
    """
    if not held:
        yield ()
        return
    for row in _rows(held[0], swapped):
        left = [have - taken for have, taken in zip(swapped, row, strict=True)]
        for rest in tables_with(held[1:], left):
            yield (row, *rest)


# -- helpers -------------------------------------------------------------------------------------------------


def _orders(totals: Integers) -> int:
    """The number of orders of values that are alike."""
    return math.prod(math.factorial(many) for many in Counter(totals.tolist()).values())


def _rows(total: int, most: Sequence[int]) -> Iterator[Totals]:
    """All rows with this sum, no entry above ``most``."""
    if len(most) == 1:
        yield (total,)
        return
    for first in range(max(0, total - sum(most[1:])), min(total, most[0]) + 1):
        for rest in _rows(total - first, most[1:]):
            yield (first, *rest)


Words = NDArray[np.uint64]

_PLAIN_TERMS = 20_000
"""Terms up to which the compiler, which takes a second to start, is not worth it."""


@dataclass(frozen=True, eq=False)
class Counting:
    """What is needed for all tables with two margins.

    Rows are gone through one after the other, with the column sums of e as the state; tables are transposed where that
    makes fewer states.
    """

    held: Integers
    swapped: Integers
    transposed: bool

    @classmethod
    def of(cls, tables: Integers) -> Counting:
        held, swapped = tables[0].sum(axis=1), tables[0].sum(axis=0)
        transposed = bool(np.log1p(held).sum() < np.log1p(swapped).sum())
        return cls(swapped, held, True) if transposed else cls(held, swapped, False)

    def effort(self, table: Integers, released: Integers) -> tuple[float, float]:
        """The terms that are added for all pairs of a table and a released one, and the most states that one has."""
        kept = np.minimum(*self._turned(table, released)).astype(np.float64)
        after = (1 + kept.cumsum(axis=1)).prod(axis=2)
        before = np.column_stack([np.ones(len(kept)), after[:, :-1]])
        terms = float((before * (1 + kept).prod(axis=2)).sum())
        return terms * len(_primes(int(self.held.sum()))), float(after[:, -1].max(initial=1))

    def counts(self, table: Integers, released: Integers) -> NDArray[np.object_]:
        """N_j as ``[z, j]``, from one table to each of the released ones."""
        size = int(self.held.sum())
        x, z = self._turned(table, released)
        terms, states = self.effort(table, released)
        run = _left_in_place if terms > _PLAIN_TERMS or "numba" in sys.modules else _left_in_place.py_func  # type: ignore[attr-defined]
        known, unit = np.zeros((len(z), size + 1), dtype=object), 1
        for prime in _primes(size):
            residues = np.empty(known.shape, dtype=np.uint64)
            modulo = _modulo(prime, size)
            run(x[0], z, self.held, self.swapped, int(states), np.uint64(prime), *modulo, residues)
            # The number with these residues is the one known so far, plus a multiple of the product of primes so far.
            more = (residues.astype(object) - known) * pow(unit, -1, prime) % prime
            known, unit = known + unit * more, unit * prime
        return known

    def _turned(self, table: Integers, released: Integers) -> tuple[Integers, Integers]:
        both = table[None], released
        first, second = (np.ascontiguousarray(one.transpose(0, 2, 1) if self.transposed else one) for one in both)
        return first, second


# -- helpers -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _primes(size: int) -> tuple[int, ...]:
    """Primes below 2^31, from the largest on, whose product is above n!; products of two fit into 64 bits."""
    found: list[int] = []
    candidate = (1 << 31) - 1
    while math.prod(found) <= math.factorial(size):
        if all(candidate % divisor for divisor in range(3, math.isqrt(candidate) + 1, 2)):
            found.append(candidate)
        candidate -= 2
    return tuple(found)


@lru_cache(maxsize=64)
def _modulo(prime: int, size: int) -> tuple[Words, Words, Words]:
    """Factorials, their inverses and (-1)^(m - j) C(m, j) as ``[m, j]``, modulo a prime."""
    factorials = [math.factorial(k) % prime for k in range(size + 1)]
    signed = [[(-1) ** (m - j) * math.comb(m, j) % prime for j in range(size + 1)] for m in range(size + 1)]
    found = factorials, [pow(one, -1, prime) for one in factorials], signed
    first, second, third = (np.array(one, dtype=np.uint64) for one in found)
    return first, second, third


@kernel
def _left_in_place(table, released, held, swapped, most, prime, factorial, inverse, signed, found):  # type: ignore[no-untyped-def]
    """Fill found[z, j] with N_j(x -> z) modulo a prime, for a table x and each of the released tables z.

    With prod x! taken out, each row gives the factor (n_h - e_h)! prod_s 1 / (e! (x - e)! (z - e)!), and each column
    (n_s - e_s)! at the end.
    """
    rows, columns = table.shape
    size = len(factorial) - 1
    now, then = np.zeros(most, np.uint64), np.zeros(most, np.uint64)
    offset, weight = np.zeros(most, np.int64), np.zeros(most, np.uint64)
    stride, above, kept = np.zeros(columns, np.int64), np.zeros(columns, np.int64), np.zeros(columns, np.int64)
    marked = np.zeros(size + 1, np.uint64)
    one = np.uint64(1)
    arranged = one
    for h in range(rows):
        for s in range(columns):
            arranged = arranged * factorial[table[h, s]] % prime
    for z in range(len(released)):
        states = 1
        for s in range(columns):
            stride[s], above[s] = states, 1
            for h in range(rows):
                above[s] += min(table[h, s], released[z, h, s])
            states *= above[s]
        now[:states] = 0
        now[0] = arranged
        for h in range(rows):
            choices = 0
            kept[:] = 0
            while True:
                ways, at, left = one, 0, held[h]
                for s in range(columns):
                    ways = ways * inverse[kept[s]] % prime
                    ways = ways * inverse[table[h, s] - kept[s]] % prime
                    ways = ways * inverse[released[z, h, s] - kept[s]] % prime
                    at += kept[s] * stride[s]
                    left -= kept[s]
                offset[choices], weight[choices] = at, ways * factorial[left] % prime
                choices += 1
                s = 0
                while s < columns and kept[s] == min(table[h, s], released[z, h, s]):
                    kept[s] = 0
                    s += 1
                if s == columns:
                    break
                kept[s] += 1
            then[:states] = 0
            for state in range(states):
                if now[state]:
                    for choice in range(choices):
                        to = state + offset[choice]
                        then[to] = (then[to] + now[state] * weight[choice]) % prime
            now, then = then, now
        marked[:] = 0
        for state in range(states):
            ways, rest, left = now[state], state, 0
            for s in range(columns):
                taken = rest % above[s]
                ways = ways * factorial[swapped[s] - taken] % prime
                left += taken
                rest //= above[s]
            marked[left] = (marked[left] + ways) % prime
        for j in range(size + 1):
            ways = np.uint64(0)
            for m in range(j, size + 1):
                ways = (ways + signed[m, j] * marked[m]) % prime
            found[z, j] = ways


Row = list[int]


def shares_of_two_by_two(size: int, held: int, swapped: int, weights: Sequence[int]) -> Iterator[Row]:
    """For each true cell, from the least on, the weights of all permutations that lead to each released cell.

    ``held`` and ``swapped`` are the records of the first held and of the first swap value, ``weights`` the weight of
    one permutation by the number of records that it moves.

    >>> list(shares_of_two_by_two(4, 2, 2, [1, 0, 1, 1, 1]))  # all permutations weigh the same
    [[4, 16, 4], [4, 16, 4], [4, 16, 4]]
    """
    chain = _Exchanges(size, held, swapped)
    cells = chain.cells
    before, row = [0] * len(cells), _first_row(chain, weights)
    yield row
    for x in cells[:-1]:
        # Each cell of the next row, from P T = T P for the rates T of the exchanges; nothing lies beyond the ends.
        padded = [0, *row, 0]
        following = [
            (chain.away(x) - chain.away(z)) * row[at]
            + chain.up(z - 1) * padded[at]
            + chain.down(z + 1) * padded[at + 2]
            - chain.down(x) * before[at]
            for at, z in enumerate(cells)
        ]
        before, row = row, [share // chain.up(x) for share in following]
        yield row


# -- helpers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Exchanges:
    """The chain that exchanges two random records: its rates from each cell, and the law that it keeps."""

    size: int
    held: int
    swapped: int

    @property
    def cells(self) -> range:
        return range(max(0, self.held + self.swapped - self.size), min(self.held, self.swapped) + 1)

    def up(self, x: int) -> int:
        return (self.held - x) * (self.swapped - x)

    def down(self, x: int) -> int:
        return x * (self.size - self.held - self.swapped + x)

    def away(self, x: int) -> int:
        return self.up(x) + self.down(x)

    def hypergeometric(self) -> Row:
        """mu, up to a constant."""
        return [comb(self.held, z) * comb(self.size - self.held, self.swapped - z) for z in self.cells]

    def eigenvector(self, j: int) -> Row:
        """Q_j(z), times the product of up(y) over the cells y below z; Q_j is 1 at the first cell."""
        found, before, rate = [1], 0, j * (self.size - j + 1)
        for z in self.cells[:-1]:
            found.append((self.away(z) - rate) * found[-1] - self.down(z) * self.up(z - 1) * before)
            before = found[-2]
        return found


def _first_row(chain: _Exchanges, weights: Sequence[int]) -> Row:
    size, law = chain.size, chain.hypergeometric()
    ups = [1]
    for z in chain.cells[:-1]:
        ups.append(ups[-1] * chain.up(z))
    mixture = _mixture(size, weights)
    vectors = [chain.eigenvector(j) for j in range(len(chain.cells))]
    norms = [
        sum((Fraction(mu * q * q, up * up) for mu, q, up in zip(law, vector, ups, strict=True)), start=Fraction(0))
        for vector in vectors
    ]
    inverses = [1 / (_dimension(size, j) * norm) for j, norm in enumerate(norms)]
    common = math.lcm(*(one.denominator for one in inverses))
    parts = [
        int(inverse * common) * sum(c * _fixed_dimension(size, m, j) for m, c in enumerate(mixture))
        for j, inverse in enumerate(inverses)
    ]
    return [
        mu * sum(part * vector[at] for part, vector in zip(parts, vectors, strict=True)) // (up * common)
        for at, (mu, up) in enumerate(zip(law, ups, strict=True))
    ]


def _mixture(size: int, weights: Sequence[int]) -> Row:
    """c_m, times the sum of the weights of all permutations."""
    return [
        math.factorial(m)
        * sum((-1) ** (k - m) * comb(size, k) * comb(k, m) * weights[k] for k in range(m, size + 1))
        for m in range(size + 1)
    ]  # fmt: skip


def _dimension(size: int, j: int) -> int:
    return comb(size, j) - (comb(size, j - 1) if j else 0)


def _fixed_dimension(size: int, m: int, j: int) -> int:
    """The same for what a uniform permutation of m records leaves as it is."""
    return comb(size - m, j) - (comb(size - m, j - m - 1) if j > m else 0)


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


LARGEST = 20
"""Records up to which laws of cells are listed unasked: one takes a millisecond, and a hundred with 100 records."""


@lru_cache(maxsize=4096)
def cell_law(size: int, held: int, swapped: int, rate: Fraction) -> Floats:
    """P(z | x) as ``[x - L, z - L]`` for a cell with margins ``held`` and ``swapped``, L the least possible count.

    >>> cell_law(4, 2, 2, Fraction(1, 10)).round(6)
    array([[9.49056e-01, 5.08810e-02, 6.30000e-05],
           [1.27200e-02, 9.74559e-01, 1.27200e-02],
           [6.30000e-05, 5.08810e-02, 9.49056e-01]])
    """
    if held in (0, size) or swapped in (0, size):  # the margins say all
        return np.eye(1)
    law = stratum_law((held, size - held), (swapped, size - swapped), rate)
    return np.array([[share / law.total for share in row] for row in law.shares])


def exact_interval(size: int, held: int, swapped: int, released: int, rate: Fraction, miss: float) -> tuple[int, int]:
    """The hull of the true counts that neither tail, of probability ``miss``/2, rejects; the nearest bound if none is.

    >>> exact_interval(20, 8, 5, 3, Fraction(1, 20), 0.05)
    (2, 4)
    """
    low = max(0, held + swapped - size)
    law = cell_law(size, held, swapped, rate)
    at = released - low
    below, above = law[:, : at + 1].sum(axis=1), law[:, at:].sum(axis=1)
    kept = np.flatnonzero((below > miss / 2) & (above > miss / 2))
    if not len(kept):
        nearest = int(np.argmax(np.minimum(below, above))) + low
        return nearest, nearest
    return int(kept[0]) + low, int(kept[-1]) + low
