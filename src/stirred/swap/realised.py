"""The exact loss of a swap in the universe of one file, where it can be computed: small strata, two categories.

It depends on the margins of each stratum alone, which are published, so it may be told. It is the loss of this
universe: another file of the domain, with other margins, may lose as much as the theorem says. Strata are independent,
and the loss of the file is the largest of theirs; where one of them cannot be computed, nothing is said.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from stirred.semantics.swap_exposure import ExactLoss
from stirred.swap.moments import constants_of
from stirred.swap.stratum_laws import affordable, stratum_law

if TYPE_CHECKING:
    from stirred.swap.pairs import Cells

_RECORDS, _TABLES, _TERMS = 100, 150, 10_000_000
"""Records of two by two categories, else tables and terms to add: each stratum takes a quarter of a second at most."""
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
    """Whether the loss of a stratum with these margins, both sorted, is computed without being asked for."""
    return _one_apart(held, swapped) or affordable(held, swapped, records=_RECORDS, tables=_TABLES, terms=_TERMS)


@lru_cache(maxsize=1024)
def stratum_loss(held: Totals, swapped: Totals, rate: Fraction) -> float:
    """The largest absolute log ratio per record in which two files of the universe differ.

    >>> round(stratum_loss((10, 10), (10, 10), Fraction("0.05")), 6)
    3.63655
    """
    if _one_apart(held, swapped):
        return _of_one_apart(sum(held), min(swapped if held[0] == 1 and len(held) == 2 else held), rate)
    worst = stratum_law(held, swapped, rate).worst
    return worst.loss if worst else 0.0


# -- helpers -------------------------------------------------------------------------------------------------


def _one_apart(held: Totals, swapped: Totals) -> bool:
    """Whether one record alone has one of the two held values, or one of the two swap values, and can change."""
    return min(len(held), len(swapped)) > 1 and any(len(side) == 2 and side[0] == 1 for side in (held, swapped))


def _of_one_apart(size: int, rarest: int, rate: Fraction) -> float:
    """One record against all others: the file says only which value it has, its own with 1 - q.

    It shows a value s with probability q n_s/(n-1) where it has another, and 1 - q + q (n_s-1)/(n-1) where it has s.
    """
    constants = constants_of(size, rate)
    return abs(math.log1p(constants.shrinkage * (size - 1) / (constants.moved * rarest))) / 2
