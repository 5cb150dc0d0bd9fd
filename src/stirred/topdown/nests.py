"""Groups of cells that are nested: each inside or outside every other. What rounding can keep exactly, all at once.

The invariant a reader must know: larger groups have smaller numbers, so a group's number exceeds that of any group that
contains it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._shown import withheld
from stirred.topdown.problems import Bounds


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Nest:
    """Nested groups of cells: ``leaves[cell]`` is the smallest one with the cell, ``above[group]`` the next larger.

    Larger groups have smaller numbers. ``columns`` numbers the groups with declared bounds (-1: none), and
    ``places[bound][group]`` says which column a bound's group has.
    """

    leaves: NDArray[np.int32]
    above: NDArray[np.int32]
    in_chain: NDArray[np.bool_]
    columns: NDArray[np.int32]
    places: tuple[NDArray[np.int64], ...]


def nested(cells: int, chain: tuple[NDArray[np.int32], ...], bounds: tuple[Bounds, ...]) -> Nest:
    """The nest of all groups of the chain and of the bounds, or a refusal if two of them cross."""
    names = [f"chain {i}" for i in range(len(chain))] + [f"bounds {i}" for i in range(len(bounds))]
    families = [*chain, *(bound.groups for bound in bounds)]
    sets: dict[bytes, int] = {}
    members: list[NDArray[np.int64]] = []
    owners: list[int] = []
    numbers: list[NDArray[np.int64]] = []
    for family, groups in enumerate(families):
        assert len(groups) == cells, (len(groups), cells)
        order = np.argsort(groups, kind="stable")
        edges = np.searchsorted(groups[order], np.arange(int(groups.max(initial=-1)) + 2))
        number = np.full(len(edges) - 1, -1, dtype=np.int64)
        for group in range(len(edges) - 1):
            inside = order[edges[group] : edges[group + 1]]
            # A single cell of the chain is an entry, and entries are within floor and ceiling anyway.
            if len(inside) == 0 or (len(inside) == 1 and family < len(chain)):
                continue
            key = inside.tobytes()
            if key not in sets:
                sets[key] = len(members)
                members.append(inside)
                owners.append(family)
            number[group] = sets[key]
        numbers.append(number)
    sizes = np.array([len(inside) for inside in members], dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    leaves = np.full(cells, -1, dtype=np.int32)
    above = np.full(len(order), -1, dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    flat = np.concatenate([members[s] for s in order]) if members else np.empty(0, dtype=np.int64)
    crossing = _insert(starts, flat, leaves, above)
    if crossing >= 0:
        inside = members[order[crossing]]
        others = {owners[order[s]] for s in leaves[inside].tolist() if 0 <= s != crossing}
        pair = ", ".join([names[owners[order[crossing]]], *(names[other] for other in sorted(others))])
        raise errors.parameter_out_of_range("groups to round", pair, "nested, each group inside or outside every other")
    in_chain = np.zeros(len(order), dtype=np.bool_)
    for number in numbers[: len(chain)]:
        in_chain[rank[number[number >= 0]]] = True
    columns = np.full(len(order), -1, dtype=np.int32)
    bounded = np.unique(np.concatenate([rank[number] for number in numbers[len(chain) :]] or [np.array([-1])]))
    bounded = bounded[bounded >= 0]
    columns[bounded] = np.arange(len(bounded))
    places = tuple(np.where(number >= 0, columns[rank[number]], -1) for number in numbers[len(chain) :])
    return Nest(leaves, above, in_chain, columns, places)


def cross(first: NDArray[np.int32], second: NDArray[np.int32]) -> bool:
    """Whether some group of one and some group of the other overlap with neither inside the other.

    >>> half, third = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)
    >>> cross(half, third), cross(half, np.arange(6, dtype=np.int32))
    (True, False)
    """
    inside = (first >= 0) & (second >= 0)
    pairs, common = np.unique(np.stack([first[inside], second[inside]]), axis=1, return_counts=True)
    sizes = [np.bincount(one[one >= 0], minlength=1) for one in (first, second)]
    return bool(np.any((common < sizes[0][pairs[0]]) & (common < sizes[1][pairs[1]])))


@kernel
def _insert(set_starts, members, deepest, above):  # type: ignore[no-untyped-def]
    """Insert sets of cells, larger ones first, into a forest; returns the first that crosses another, or -1.

    ``deepest[cell]`` becomes the smallest set with the cell, ``above[set]`` the next larger one. A set is nested with
    those before it exactly if all its cells have the same smallest set so far.
    """
    for s in range(len(set_starts) - 1):
        holder = deepest[members[set_starts[s]]]
        for i in range(set_starts[s], set_starts[s + 1]):
            if deepest[members[i]] != holder:
                return s
            deepest[members[i]] = s
        above[s] = holder
    return -1
