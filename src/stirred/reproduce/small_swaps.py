"""Swaps of few records that statements are tried on, and how far their tables are apart."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import cache

from stirred.lab.definitions.swap_enumeration import Table, tables_of
from stirred.spec import InputPremetric, Invariant

_HOUSEHOLDS = InputPremetric(unit="household")


@cache
def small_universes(most: int = 4) -> tuple[tuple[Table, ...], ...]:
    """All universes of two to four records, up to the names of categories."""
    sizes = range(2, most + 1)
    return tuple(tables_of(h, s) for size in sizes for h in partitions(size) for s in partitions(size))


def partitions(total: int, largest: int | None = None) -> list[tuple[int, ...]]:
    """The ways of writing a number as a sum that does not increase."""
    if total == 0:
        return [()]
    first_most = total if largest is None else min(total, largest)
    return [(first, *rest) for first in range(first_most, 0, -1) for rest in partitions(total - first, first)]


def b_of(tables: Sequence[Table]) -> int:
    """The size of the stratum if it holds two different records, else 0."""
    return len(tables[0]) if any(len(set(table)) > 1 for table in tables) else 0


def tables_apart(x: Table, z: Table) -> int:
    """d_HamS of two tables."""
    return int(_HOUSEHOLDS.distance(list(x), list(z)))


def single_swaps() -> list[tuple[bool, int, bool]]:
    """For two records of a stratum: whether margins are kept, how many cells change, whether both values differ."""
    rows = [dict(zip("mhs", values, strict=True)) for values in itertools.product("01", "ab", "xyz")]
    margins = [Invariant("household", by=by) for by in (("m", "h"), ("m", "s"))]
    inside = Invariant("household", by=("m", "h", "s"))
    found = []
    for one, other in itertools.combinations(rows, 2):
        if one["m"] != other["m"]:
            continue
        before, after = [one, other], [one | {"s": other["s"]}, other | {"s": one["s"]}]
        cells = Counter(inside.value(before))
        cells.subtract(Counter(inside.value(after)))
        kept = all(margin.value(before) == margin.value(after) for margin in margins)
        differs = one["h"] != other["h"] and one["s"] != other["s"]
        found.append((kept, sum(count != 0 for count in cells.values()), differs))
    return found
