"""The exact law of a swap of one stratum with two held and two swap values, through its eigenvalues.

Such a table is its first cell. The chain from the true cell x to the released cell z commutes with the one that
exchanges two random records, so both have the same eigenvectors: the Hahn polynomials Q_j, orthogonal under the
hypergeometric law mu,

    P(z | x) = mu(z) sum_j lambda_j Q_j(x) Q_j(z) / h_j,    h_j = sum_z mu(z) Q_j(z)^2,
    lambda_j = sum_m c_m [C(n-m, j) - C(n-m, j-m-1)] / [C(n, j) - C(n, j-1)],

where c_m writes the swap as a mixture, with signs, of uniform permutations of m random records. Only the first row is
summed this way: since the two chains commute, each further row follows from the two before it.

Keep in mind: all sums have terms of both signs and all divisions leave no remainder, so everything is in whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

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
