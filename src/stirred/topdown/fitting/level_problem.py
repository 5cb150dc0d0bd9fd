"""What one step down the spine has to fit, and where its numbers lie: measurements of children, bounds, nested groups.

Cells of the table are numbered from 0 on. A query, a mask or a bound is a map of cells to groups, an ``int32`` array
with one entry for each cell; values belong to pairs of a unit and a group. The children of a parent are consecutive.

The invariant a reader must know: a cell that is zero in a parent is zero in its children, so a problem's variables are
the pairs of a cell *positive in the parent* and a child. A parent's variables lie together, one row for each positive
cell and one column for each child.

*Groups that are nested*, each inside or outside every other, are what rounding can keep exactly, all at once. Larger
groups have smaller numbers, so a group's number exceeds that of any group that contains it.

A *chunk* is a range of parents; their positive cells and children are slices of the level's arrays. Values given by
unit and group are read where they are and written to blocks of (row, child), one block for each parent. A parent's rows
are numbered from 0 on, family after family, and a family has a row for each of its groups that has a cell in the
parent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import helper, kernel
from stirred._display import withheld
from stirred.topdown.data.histograms import Histograms

UNBOUNDED = 1 << 50
"""An upper bound that binds nowhere; finite, so that sums and differences of bounds stay exact."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """Noisy sums over the groups of a query in every child; ``weight`` is one over their variance, in all children or a
    number for each of them. Cells of group -1 are in none."""

    groups: NDArray[np.int32]
    weight: float | NDArray[np.float64]
    values: NDArray[Any]

    @property
    def typical_weight(self) -> float:
        """The mean weight of all children."""
        return float(np.mean(self.weight))

    def of_units(self, units: NDArray[np.int64]) -> Measured:
        """The same query in some children."""
        weight = self.weight[units] if isinstance(self.weight, np.ndarray) else self.weight
        return Measured(self.groups, weight, self.values[units])


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Allowed:
    """Cells of a group may be positive in a child only where ``allowed[child, group]``."""

    groups: NDArray[np.int32]
    allowed: NDArray[np.bool_]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Bounds:
    """Integer bounds on a child's sum over each group, fixed where both are equal. Cells of group -1 are in none."""

    groups: NDArray[np.int32]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LevelProblem:
    """All parents of a level and their children; with ``parents`` None every unit is a root, fitted by itself.

    Children of parent p are the units ``first_child[p]`` up to ``first_child[p + 1]``.
    """

    parents: Histograms | None
    first_child: NDArray[np.int64]
    cells: int
    measured: tuple[Measured, ...]
    allowed: tuple[Allowed, ...] = ()
    bounds: tuple[Bounds, ...] = ()

    def __post_init__(self) -> None:
        units = int(self.first_child[-1])
        assert self.first_child[0] == 0 and bool(np.all(np.diff(self.first_child) > 0)), "a parent without a child"
        assert self.parents is None or self.parents.units == len(self.first_child) - 1
        assert self.measured and all(query.typical_weight > 0 for query in self.measured), "a query without weight"
        for query in self.measured:
            assert np.shape(query.weight) in ((), (units,)) and bool(np.all(query.weight >= 0)), (
                "weights of other units"
            )
            assert query.values.shape == (units, _groups(query.groups, self.cells)), query.values.shape
        for mask in self.allowed:
            assert mask.allowed.shape == (units, _groups(mask.groups, self.cells)), mask.allowed.shape
        for bound in self.bounds:
            assert bound.lower.shape == bound.upper.shape == (units, _groups(bound.groups, self.cells))
            assert bool(np.all(bound.lower <= bound.upper)), "a lower bound above the upper one"

    @property
    def support(self) -> Histograms:
        """The parents, or for roots every cell of every unit (their counts are then all 1, and mean nothing)."""
        if self.parents is not None:
            return self.parents
        units = len(self.first_child) - 1
        return Histograms(
            np.arange(units + 1, dtype=np.int64) * self.cells,
            np.tile(np.arange(self.cells, dtype=np.int32), units),
            np.ones(units * self.cells, dtype=np.int64),
        )

    def of_parents(self, parents: NDArray[np.int64]) -> LevelProblem:
        """The same problem for some parents, in the order given."""
        sizes = np.diff(self.first_child)[parents]
        first_child = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        units = self.children_of(parents)
        return replace(
            self,
            parents=None if self.parents is None else self.parents.of_units(parents),
            first_child=first_child,
            measured=tuple(query.of_units(units) for query in self.measured),
            allowed=tuple(replace(mask, allowed=mask.allowed[units]) for mask in self.allowed),
            bounds=tuple(replace(bound, lower=bound.lower[units], upper=bound.upper[units]) for bound in self.bounds),
        )

    def children_of(self, parents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The children of some parents, as numbers of units."""
        sizes = np.diff(self.first_child)[parents]
        ends = np.cumsum(sizes)
        return np.repeat(self.first_child[parents] - (ends - sizes), sizes) + np.arange(int(sizes.sum()))


def separates(groups: NDArray[np.int32]) -> bool:
    """Whether every cell has a group of its own."""
    return bool(groups.min(initial=0) >= 0) and len(np.unique(groups)) == len(groups)


def kappa(measured: tuple[Measured, ...]) -> float:
    """How hard the fit is: the sum of all weights over that of the queries which separate all cells.

    Sweeps grow about linearly with it; infinite where no query separates all cells.

    >>> two = np.arange(2, dtype=np.int32)
    >>> values = np.zeros((1, 2))
    >>> kappa((Measured(two, 0.5, values), Measured(two * 0, 2.0, values[:, :1])))
    5.0
    """
    detailed = sum(query.typical_weight for query in measured if separates(query.groups))
    return sum(query.typical_weight for query in measured) / detailed if detailed else float("inf")


def _groups(groups: NDArray[np.int32], cells: int) -> int:
    """How many groups of cells are numbered; -1 stands for none."""
    assert groups.dtype == np.int32 and len(groups) == cells, (groups.dtype, len(groups), cells)
    return int(groups.max(initial=-1)) + 1


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


class Parents(NamedTuple):
    """The parents of a chunk: those cells of parent p from ``starts[p] - starts[0]`` on, with their counts.

    Its children are ``first_child[p]`` up to ``first_child[p + 1]``, and its variables, a row for each cell and a
    column for each child, begin at ``x_starts[p]``.
    """

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]
    first_child: NDArray[np.int64]
    x_starts: NDArray[np.int64]


# numba compiles numpy's functions anew for every shape and type they meet, so kernels share these few.


@helper
def reals(height, width):  # type: ignore[no-untyped-def]
    """A table of zeros, of floating-point numbers, for kernels."""
    return np.zeros((height, width))


@helper
def integers(height, width):  # type: ignore[no-untyped-def]
    """A table of zeros, of whole numbers, for kernels."""
    return np.zeros((height, width), dtype=np.int64)


@helper
def indices(count):  # type: ignore[no-untyped-def]
    """Room for ``count`` integers, not yet written."""
    return np.empty(count, dtype=np.int64)


@helper
def clipped(value, low, high):  # type: ignore[no-untyped-def]
    """The value, or the bound that it is beyond."""
    if low > value:
        value = low
    return high if high < value else value


@kernel
def lay_out(starts, cells, groups, rows, row_starts, row_groups):  # type: ignore[no-untyped-def]
    """Number the groups that occur in each parent: ``rows[cell, family]`` within the parent, -1 for none.

    The rows of a parent and family are ``row_starts[parent, family]`` to the next, and ``row_groups`` their groups.
    """
    families = groups.shape[0]
    most = 1
    for family in range(families):
        for cell in range(groups.shape[1]):
            most = max(most, groups[family, cell] + 1)
    met = np.zeros(most, dtype=np.int64)
    row_of = np.empty(most, dtype=np.int32)
    base = starts[0]
    at = 0
    for parent in range(len(starts) - 1):
        first = at
        for family in range(families):
            row_starts[parent, family] = at
            token = parent * families + family + 1
            for j in range(starts[parent], starts[parent + 1]):
                group = groups[family, cells[j - base]]
                if group < 0:
                    rows[j - base, family] = -1
                    continue
                if met[group] != token:
                    met[group] = token
                    row_of[group] = at - first
                    row_groups[at] = group
                    at += 1
                rows[j - base, family] = row_of[group]
        row_starts[parent, families] = at
    return at


@kernel
def gather(values, family, row_starts, row_groups, first_child, offsets, scale, out):  # type: ignore[no-untyped-def]
    """Write ``scale`` times the values of one family to (row, child) of every parent, reading them where they are."""
    for parent in range(len(row_starts)):
        width = first_child[parent + 1] - first_child[parent]
        origin = row_starts[parent, 0]
        for k in range(width):
            unit = first_child[parent] + k
            for row in range(row_starts[parent, family], row_starts[parent, family + 1]):
                out[offsets[parent] + (row - origin) * width + k] = scale * values[unit, row_groups[row]]


@kernel
def unmet(lower, family, row_starts, row_groups, first_child, violations, converged):  # type: ignore[no-untyped-def]
    """Note the lower bounds of groups that have no cell in the parent, which nothing can meet."""
    met = np.zeros(lower.shape[1], dtype=np.int64)
    for parent in range(len(row_starts)):
        for row in range(row_starts[parent, family], row_starts[parent, family + 1]):
            met[row_groups[row]] = parent + 1
        for unit in range(first_child[parent], first_child[parent + 1]):
            for group in range(lower.shape[1]):
                if lower[unit, group] > 0 and met[group] != parent + 1:
                    violations[parent] = max(violations[parent], lower[unit, group])
                    converged[parent] = False


@kernel
def close(groups, allowed, starts, cells, counts, first_child, x_starts, opened):  # type: ignore[no-untyped-def]
    """Close the entries (cell, child) that a mask, a row for each child of the chunk, does not allow."""
    base = starts[0]
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = x_starts[parent] - x_starts[0]
        for j in range(starts[parent], starts[parent + 1]):
            group = groups[cells[j - base]]
            for k in range(width if group >= 0 else 0):
                if not allowed[first_child[parent] - first_child[0] + k, group]:
                    opened[at + k] = False
            at += width


@kernel
def spread(shares, starts, counts, first_child, offsets, out):  # type: ignore[no-untyped-def]
    """Minus what the ridge draws to: the parent's count times the child's share, in the rows from ``offsets`` on."""
    base = starts[0]
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = offsets[parent]
        for j in range(starts[parent], starts[parent + 1]):
            for k in range(width):
                out[at + k] = -counts[j - base] * shares[first_child[parent] + k]
            at += width
