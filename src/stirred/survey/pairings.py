"""How many records of a sample change with one unit: samples with it and without it, paired as well as possible.

A pairing (a coupling) of the two conditional laws of a design moves probability from samples with the unit to samples
without it. The number wanted is the least k for which all probability can be moved between samples that differ in at
most k records: a flow problem, solved in exact fractions for designs whose samples can be listed.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction

Sample = tuple[int, ...]
"""The numbers of the units of a sample, from 0 on."""


def records_changed(design: Mapping[Sample, Fraction], unit: int) -> int:
    """The least number of records, in a coupling, by which samples with the unit and without it differ."""
    taken = {frozenset(s): p for s, p in design.items() if unit in s}
    left = {frozenset(s): p for s, p in design.items() if unit not in s}
    if not taken or not left:
        return 1
    with_unit, without = sum(taken.values(), Fraction(0)), sum(left.values(), Fraction(0))
    supply = [p / with_unit for p in taken.values()]
    demand = [p / without for p in left.values()]
    apart = [[len(s - t) for t in left] for s in taken]
    for most in sorted({distance for row in apart for distance in row}):
        if _can_be_moved(supply, demand, [[distance <= most for distance in row] for row in apart]):
            return most
    raise AssertionError("the largest distance allows every pair")


def _can_be_moved(supply: list[Fraction], demand: list[Fraction], allowed: list[list[bool]]) -> bool:
    """Whether all supply can go to demand along allowed pairs: augmenting paths with exact amounts."""
    spare, wanted = list(supply), list(demand)
    moved = [[Fraction(0)] * len(demand) for _ in supply]
    while any(spare):
        came_from: dict[tuple[str, int], tuple[str, int] | None] = {("s", i): None for i, x in enumerate(spare) if x}
        queue, end = list(came_from), None
        for side, place in queue:
            if side == "t" and wanted[place]:
                end = (side, place)
                break
            steps = (
                [("t", j) for j in range(len(demand)) if allowed[place][j]]
                if side == "s"
                else [("s", i) for i in range(len(supply)) if moved[i][place]]
            )
            for step in steps:
                if step not in came_from:
                    came_from[step] = (side, place)
                    queue.append(step)
        if end is None:
            return False
        path = [end]
        while (before := came_from[path[-1]]) is not None:
            path.append(before)
        path.reverse()
        edges = list(itertools.pairwise(path))
        back = [moved[b[1]][a[1]] for a, b in edges if a[0] == "t"]
        amount = min([spare[path[0][1]], wanted[end[1]], *back])
        for a, b in edges:
            if a[0] == "s":
                moved[a[1]][b[1]] += amount
            else:
                moved[b[1]][a[1]] -= amount
        spare[path[0][1]] -= amount
        wanted[end[1]] -= amount
    return True
