"""The exact loss of a swap in the universe of one file, where it can be computed: small strata, two categories.

It depends on the margins of each stratum alone, which are published, so it may be told. It is the loss of this
universe: another file of the domain, with other margins, may lose as much as the theorem says. Strata are independent,
and the loss of the file is the largest of theirs; where one of them cannot be computed, nothing is said.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial
from typing import TYPE_CHECKING

import numpy as np

from stirred.semantics.swap_exposure import ExactLoss
from stirred.swap.enumeration import exact_loss, tables_of
from stirred.swap.guarantee import derangements
from stirred.swap.moments import constants_of

if TYPE_CHECKING:
    from stirred.swap.pairs import Cells

_ENUMERATED = 4
"""Records up to which all permutations are listed, whatever the categories."""
_TWO_BY_TWO = 20
"""Records up to which a table of two by two categories is counted."""
_MOST_KINDS = 30
"""Different margins that are computed."""

Totals = tuple[int, ...]


def exact_loss_of(cells: Cells, rate: Fraction) -> ExactLoss | None:
    """The exact loss of the universe of these strata; None where one of them is too large to be computed."""
    kinds: set[tuple[Totals, Totals]] = set()
    strata = 0
    for part in cells.strata():
        held = np.sort(cells.sharing_held[np.unique(cells.held[part])]).tolist()
        swapped = np.sort(cells.sharing_swapped[np.unique(cells.swapped[part])]).tolist()
        if not computable(tuple(held), tuple(swapped)):
            return None
        kinds.add((tuple(held), tuple(swapped)))
        strata += 1
        if len(kinds) > _MOST_KINDS:
            return None
    return ExactLoss(max(stratum_loss(held, swapped, rate) for held, swapped in kinds), strata) if kinds else None


def computable(held: Totals, swapped: Totals) -> bool:
    """Whether the loss of a stratum with these margins, both sorted, can be computed."""
    return _one_apart(held, swapped) or sum(held) <= _ENUMERATED or _two_by_two(held, swapped)


@lru_cache(maxsize=1024)
def stratum_loss(held: Totals, swapped: Totals, rate: Fraction) -> float:
    """The largest absolute log ratio per record in which two files of the universe differ.

    >>> round(stratum_loss((10, 10), (10, 10), Fraction("0.05")), 6)
    3.63655
    """
    if _two_by_two(held, swapped):
        return _counted(held, swapped, rate)
    if sum(held) <= _ENUMERATED:
        return float(exact_loss(tables_of(held, swapped), rate).number)
    return _of_one_apart(sum(held), min(swapped if held[0] == 1 and len(held) == 2 else held), rate)


# -- helpers -------------------------------------------------------------------------------------------------


def _two_by_two(held: Totals, swapped: Totals) -> bool:
    return len(held) == len(swapped) == 2 and sum(held) <= _TWO_BY_TWO


def _one_apart(held: Totals, swapped: Totals) -> bool:
    """Whether one record alone has one of the two held values, or one of the two swap values."""
    return any(len(side) == 2 and side[0] == 1 for side in (held, swapped))


def _of_one_apart(size: int, rarest: int, rate: Fraction) -> float:
    """One record against all others: the file says only which value it has, its own with 1 - q.

    It shows a value s with probability q n_s/(n-1) where it has another, and 1 - q + q (n_s-1)/(n-1) where it has s.
    """
    constants = constants_of(size, rate)
    return abs(math.log1p(constants.shrinkage * (size - 1) / (constants.moved * rarest))) / 2


def _counted(held: Totals, swapped: Totals, rate: Fraction) -> float:
    """Two by two categories: the law of each table from the numbers of permutations that lead to it."""
    size = sum(held)
    least, most = max(0, held[0] + swapped[0] - size), min(held[0], swapped[0])
    tables = [_table(x, held, swapped) for x in range(least, most + 1)]
    laws = [[_chance(x, z, held, swapped, rate) for z in tables] for x in tables]
    logs = [
        abs(_log(one[z] / other[z])) / 2  # neighbours differ in two records; further files lose no more per record
        for one, other in itertools.pairwise(laws)
        for z in range(len(tables))
        if one[z] or other[z]
    ]
    return max(logs, default=0.0)


def _table(x: int, held: Totals, swapped: Totals) -> Totals:
    return x, held[0] - x, swapped[0] - x, held[1] - swapped[0] + x


def _chance(x: Totals, z: Totals, held: Totals, swapped: Totals, rate: Fraction) -> Fraction:
    """P(z | x), up to the normaliser: permutations by how many records they leave in place."""
    size = sum(held)
    marked = [0] * (size + 1)
    for kept in itertools.product(*(range(min(one, other) + 1) for one, other in zip(x, z, strict=True))):
        a, b, c, d = kept
        ways = math.prod(comb(total, stay) for total, stay in zip(x, kept, strict=True))
        rest = factorial(held[0] - a - b) * factorial(held[1] - c - d)
        rest *= factorial(swapped[0] - a - c) * factorial(swapped[1] - b - d)
        marked[sum(kept)] += ways * rest // math.prod(factorial(to - stay) for to, stay in zip(z, kept, strict=True))
    found = Fraction(0)
    for stay in range(size + 1):
        many = sum((-1) ** (m - stay) * comb(m, stay) * marked[m] for m in range(stay, size + 1))
        if many and size - stay != 1:
            found += many * rate ** (size - stay) * (1 - rate) ** stay / derangements(size - stay)
    return found


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator)
