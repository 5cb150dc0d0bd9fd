"""How many permutations take one table of a stratum to another, by the number of records that they leave in place.

Pairs of a permutation from x to z and m records that it leaves in place are counted by the table e of these records,

    M_m = sum over e <= min(x, z), |e| = m, of  prod C(x, e) prod_h (n_h - e_h)! prod_s (n_s - e_s)! / prod (z - e)!

and N_j = sum_m (-1)^(m - j) C(m, j) M_m permutations leave exactly j in place (inclusion and exclusion).

Keep in mind: the numbers are exact. They are found modulo some primes, whose product is larger than n!.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.swap.universes import Integers, Table

Words = NDArray[np.uint64]

_PLAIN_TERMS = 20_000
"""Terms up to which the compiler, which takes a second to start, is not worth it."""


def permutation_counts(table: Table, released: Table) -> tuple[int, ...]:
    """N_0, ..., N_n for two tables with the same margins.

    >>> permutation_counts(((0, 2), (2, 0)), ((1, 1), (1, 1)))
    (4, 8, 4, 0, 0)
    """
    pair = np.array([table, released], dtype=np.int64)
    if np.any(pair.sum(axis=1)[0] != pair.sum(axis=1)[1]) or np.any(pair.sum(axis=2)[0] != pair.sum(axis=2)[1]):
        raise errors.parameter_out_of_range("released", "a table with other margins", "one with those of the first")
    return tuple(Counting.of(pair).counts(pair[0], pair[1:])[0])


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
