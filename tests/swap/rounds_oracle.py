"""Several rounds of a swap by brute force: one stratum of the first round, every permutation, exact fractions.

``rounds_law`` shares no code with the package; slots that keep their numbers are enumerated by ``in_rounds``, which
audits use too. A record is ``(h, s)``; ``places[s]`` is the group of the swap value s
in a round. Swap values that lie in one group have all columns in common on which that round matches, so exchanging the
others is exchanging s itself.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from swap_oracle import Table, partitions, released_law, worst_difference

from stirred.lab.definitions.swap_practices import in_rounds

Places = Sequence[int]


@cache
def _of_part(table: Table, rate: Fraction) -> dict[Table, Fraction]:
    """The law of a part of the records, which many files have in common."""
    return released_law(table, rate)


def one_round(table: Table, places: Places, rate: Fraction) -> dict[Table, Fraction]:
    """P(table) after one round among records whose swap values lie in one group."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for record in table:
        groups.setdefault(places[record[1]], []).append(record)
    if len(groups) == 1:
        return released_law(table, rate)
    laws = [_of_part(tuple(group), rate).items() for group in groups.values()]
    found: Counter = Counter()
    for parts in itertools.product(*laws):
        chance = math.prod((chance for _, chance in parts), start=Fraction(1))
        found[tuple(sorted(record for part, _ in parts for record in part))] += chance
    return dict(found)


def rounds_law(table: Table, rounds: Sequence[tuple[Places, Fraction]]) -> dict[Table, Fraction]:
    """P(table) after all rounds, each on what the round before gave."""
    law = {tuple(sorted(table)): Fraction(1)}
    for places, rate in rounds:
        after: Counter = Counter()
        for between, chance in law.items():
            for last, further in one_round(between, places, rate).items():
                after[last] += chance * further
        law = dict(after)
    return law


def shares(swapped: Sequence[int], rounds: Sequence[tuple[Places, Fraction]]) -> tuple[Fraction, Fraction]:
    """The expected numbers of records that move in at least one round, and that end with another value."""
    moved = changed = Fraction(0)
    for (values, mask), chance in in_rounds(swapped, rounds).items():
        moved += chance * mask.bit_count()
        changed += chance * sum(new != old for new, old in zip(values, swapped, strict=True))
    return moved, changed


def geographies(n: int) -> Iterator[tuple[tuple[int, ...], Places]]:
    """Every way, up to names, of n records having fine places within coarse ones: totals, largest first, and places."""
    seen = set()
    for coarse in partitions(n):
        for inside in itertools.product(*(list(partitions(total)) for total in coarse)):
            if (key := tuple(sorted(inside))) not in seen:
                seen.add(key)
                every = sorted(((total, place) for place, part in enumerate(inside) for total in part), reverse=True)
                yield tuple(total for total, _ in every), [place for _, place in every]


Law = Callable[[Table], dict[Table, Fraction]]


def matrix(tables: Sequence[Table], law: Law) -> np.ndarray:
    """P(z | x) for tables x and z of one universe, as floats."""
    at = {table: number for number, table in enumerate(tables)}
    found = np.zeros((len(tables), len(tables)))
    for x, table in enumerate(tables):
        for z, chance in law(table).items():
            found[x, at[z]] += float(chance)
    return found


def distances(tables: Sequence[Table]) -> np.ndarray:
    """d_HamS between all tables: the records that they do not have in common."""
    kinds = sorted({record for table in tables for record in table})
    counts = np.array([[Counter(table)[kind] for kind in kinds] for table in tables], dtype=np.int8)
    return len(tables[0]) - np.array([np.minimum(row, counts).sum(axis=1) for row in counts])


def worst_loss(released: np.ndarray, between: np.ndarray) -> float:
    """The largest |ln P_x(z)/P_x'(z)| / d_HamS(x, x'); infinite where only one of the two can lead to z."""
    with np.errstate(divide="ignore"):
        logs = np.log(released)
    return worst_difference(logs, between)
