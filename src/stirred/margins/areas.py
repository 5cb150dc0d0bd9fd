"""Areas that are unions of leaves of a spine: how few units they take, and what the spine's units tell of them.

The distance of an area is the least number of units whose sum, each added or subtracted, is the area (off-spine entity
distance, Cumings-Menon et al., arXiv 2203.16654). With I(u) the least number for the part of the area in unit u, and
O(u) for what is left of u without it, children c of u give

    I(u) = min(sum I(c), 1 + sum O(c)),    O(u) = min(sum O(c), 1 + sum I(c)),

and a leaf in the area has I = 1, O = 0. The invariant a reader must know: this is the minimum over all combinations
with whole coefficients, not only over those with 0 and 1 at every leaf on the way. Take any combination and let t(u) be
the sum of the coefficients of u and of the units above it. Moving every t(u) to the nearest of 0 and 1 makes no
coefficient larger and leaves the leaves as they are.

Where a unit has nothing in common with an area, I = 0 and O = 1. So only units are looked at that have something in
common with it: work and memory are linear in leaves. Covariances of areas are carried up the tree
(:meth:`Overlap.covariances`).

Many places at once (:class:`Unions`) are each kept as the whole units of a tree that form it. They may overlap and need
not cover everything. Units of one place never overlap, and none of them is an only child, since a unit whose children
all lie in the place stands for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine
from stirred.margins.tree import BlockTree
from stirred.tables.columns import Column, as_text

Numbers = NDArray[np.int32] | Index
_Number = TypeVar("_Number", np.int64, np.float64)

_HELD = 1 << 22
"""Matrix entries that are held for many units at a time."""


@dataclass(frozen=True, eq=False)
class Areas:
    """Areas of one sort: a leaf of the spine lies in one of them or in none."""

    name: str
    names: pa.Array
    of_leaf: Numbers
    """For each leaf the number of its area, or -1."""

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of_rows(cls, name: str, column: Column, spine: Spine, leaf: Index) -> Areas:
        """From a column in which nulls stand for no area, and the leaf of each of its rows."""
        missing = column.values.is_null().to_numpy(zero_copy_only=False)
        number = np.where(missing, -1, np.cumsum(~missing) - 1).astype(np.int32)
        of_leaf = np.full(spine.leaves, -1, dtype=np.int32)
        of_leaf[leaf] = number[column.codes]
        wrong = of_leaf[leaf] != number[column.codes]
        if wrong.any():
            first = spine.names[-1][int(leaf[np.argmax(wrong)])].as_py()
            raise errors.block_twice(spine.levels[-1], first, len(np.unique(leaf[wrong])))
        return cls(name, as_text(column.values.filter(pa.array(~missing))), of_leaf)


@dataclass(frozen=True, eq=False)
class Shared:
    """At one level, every unit together with an area that it has leaves in common with; sorted by area, then unit."""

    unit: Index
    area: Index
    first: Index
    """Where the pairs of the level below begin that lie in each of these; at the last level but one, of leaves."""
    children: Index
    """How many children the unit has, in the area or not."""
    whole: NDArray[np.bool_]
    """Whether the whole unit lies in the area."""
    below: int
    """How many pairs the level below has."""

    def added(self, below: NDArray[_Number]) -> NDArray[_Number]:
        """Sums over the pairs of the level below."""
        return np.asarray(np.add.reduceat(below, self.first, axis=0))

    @property
    def touched(self) -> Index:
        """How many children have something in common with the area."""
        return np.diff(np.append(self.first, self.below))


@dataclass(frozen=True, eq=False)
class Overlap:
    """What units of a spine and areas have in common: pairs by level, from the root to the parents of leaves."""

    spine: Spine
    areas: int
    levels: tuple[Shared, ...]
    leaves: Index
    """How many leaves each area has."""

    @classmethod
    def of(cls, spine: Spine, of_leaf: Numbers, areas: int) -> Overlap:
        """``of_leaf`` has the number of each leaf's area, or -1."""
        inside = np.flatnonzero(of_leaf >= 0)
        leaf = inside[np.argsort(of_leaf[inside], kind="stable")].astype(np.int64)
        return cls.of_pairs(spine, of_leaf[leaf].astype(np.int64), leaf, areas)

    @classmethod
    def of_pairs(cls, spine: Spine, area: Index, leaf: Index, areas: int) -> Overlap:
        """From pairs of an area and a leaf, each once, sorted by area, then leaf; areas may have leaves in common."""
        unit = leaf
        many = np.bincount(area, minlength=areas)
        whole = np.ones(len(unit), dtype=np.bool_)
        levels: list[Shared] = []
        for level in range(len(spine.levels) - 2, -1, -1):
            parent = spine.parents_of(level + 1, unit)
            begins = np.ones(len(unit), dtype=np.bool_)
            begins[1:] = (parent[1:] != parent[:-1]) | (area[1:] != area[:-1])
            first = np.flatnonzero(begins)
            pairs = len(unit)
            unit, area = parent[first], area[first]
            children = np.diff(spine.first_child[level])[unit]
            inside_all = np.logical_and.reduceat(whole, first) if pairs else whole
            whole = inside_all & (np.diff(np.append(first, pairs)) == children)
            levels.insert(0, Shared(unit, area, first, children, whole, pairs))
        return cls(spine, areas, tuple(levels), many)

    def distances(self) -> Index:
        """By area, the least number of units that are added and subtracted; 0 for an area without leaves."""
        if not self.levels:
            return self.leaves
        inside = outside = np.zeros(0, dtype=np.int64)
        for number, here in enumerate(reversed(self.levels)):
            taken = here.touched if number == 0 else here.added(inside)
            left = here.children - here.touched + (0 if number == 0 else here.added(outside))
            inside, outside = np.minimum(taken, left + 1), np.minimum(taken + 1, left)
        return np.bincount(self.levels[0].area, weights=inside, minlength=self.areas).astype(np.int64)

    def deepest(self) -> Index:
        """By area, the level of its smallest parts, if units that lie in it as a whole are taken as they are."""
        last = len(self.levels)
        found = np.zeros(self.areas, dtype=np.int64)
        for level, here in enumerate(self.levels):
            # A unit that is partly in the area has parts at the level below, or further down.
            np.maximum.at(found, here.area[~here.whole], level + 1)
        return np.minimum(found, last)

    # -- variances -------------------------------------------------------------------------------------------

    def covariances(self, tree: BlockTree, some: slice) -> tuple[Array, Array]:
        """The covariance matrix of the vector of each of a range of areas, and that with the vector of everything.

        An area's vector is a form of its leaves. Given the vector of a parent, its children depend on nothing else in
        the tree. So forms are carried up, and each level adds what is left of their variance given the level above.
        """
        areas = some.stop - some.start
        size = len(tree.known[0].precision)
        each = np.eye(size)
        if not self.levels:
            alone = np.asarray(self.leaves[some, None, None] * tree.covariance[0][0])
            return alone, alone
        total = np.zeros((areas, size, size))
        forms = np.zeros((0, size, size))
        units = np.zeros(0, dtype=np.int64)
        for level in range(len(self.levels) - 1, -1, -1):
            here = self._range(level, some)
            only = here.children == 1
            if level == len(self.levels) - 1:
                share = (here.touched / here.children)[:, None, None]
                left = share * (1 - share) * here.children[:, None, None] * tree.covariance[level + 1][0]
                carried = share * each
            else:
                kinds = tree.shapes.below[level + 1].of_unit[units]
                moved = forms @ tree.covariance[level + 1][kinds]
                both = here.added(moved)
                between = tree.precision_below[level][tree.shapes.below[level].of_unit[here.unit]]
                carried = both @ between
                left = here.added(moved @ forms.transpose(0, 2, 1)) - carried @ both.transpose(0, 2, 1)
                carried[only] = forms[here.first[only]]
            settled = here.whole | only
            left[settled] = 0
            carried[here.whole] = each
            _add(total, here.area - some.start, left)
            forms, units = carried, here.unit
        with_all, at = np.zeros((areas, size, size)), self._range(0, some).area - some.start
        carried = forms @ tree.covariance[0][tree.shapes.below[0].of_unit[units]]
        _add(with_all, at, carried)
        _add(total, at, carried @ forms.transpose(0, 2, 1))
        return (total + total.transpose(0, 2, 1)) / 2, with_all

    def ranges(self, size: int) -> list[slice]:
        """Ranges of areas for which matrices of ``size`` numbers can be held for every pair."""
        if not self.levels or not self.areas:
            return [slice(0, self.areas)] * bool(self.areas)
        pairs = np.bincount(self.levels[-1].area, minlength=self.areas)
        group = np.cumsum(pairs * size**2) // _HELD
        starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        ends = [*starts[1:].tolist(), self.areas]
        return [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]

    def _range(self, level: int, some: slice) -> Shared:
        """The pairs of some areas at one level."""
        here = self.levels[level]
        start, stop = np.searchsorted(here.area, [some.start, some.stop])
        first = here.first[start:stop]
        end = int(here.first[stop]) if stop < len(here.first) else here.below
        begin = int(first[0]) if len(first) else end
        return Shared(
            here.unit[start:stop],
            here.area[start:stop],
            first - begin,
            here.children[start:stop],
            here.whole[start:stop],
            end - begin,
        )


# -- one area ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Signed:
    """The fewest units whose sum, each added or subtracted, is an area: by level their numbers, and which are added."""

    units: dict[int, Index]
    added: dict[int, NDArray[np.bool_]]

    def __len__(self) -> int:
        return sum(len(some) for some in self.units.values())

    def words(self, levels: Sequence[str]) -> str:
        """How many units of each level, as in ``2 tract, less 1 block``."""
        plus = [(level, int(self.added[level].sum())) for level in sorted(self.units)]
        less = [(level, int((~self.added[level]).sum())) for level in sorted(self.units)]
        parts = [f"{many:,} {levels[level]}" for level, many in plus if many]
        parts += [f"less {many:,} {levels[level]}" for level, many in less if many]
        return ", ".join(parts)


def fewest_units(spine: Spine, covered: NDArray[np.bool_]) -> Signed:
    """The fewest units for the union of the leaves that are ``covered``.

    >>> names = (pa.array(["s"]), pa.array(["a", "b"]), pa.array(list("12345")))
    >>> tree = Spine(("state", "county", "town"), names, (np.array([0, 2]), np.array([0, 3, 5])))
    >>> fewest_units(tree, np.array([True, True, False, True, True])).words(tree.levels)
    '1 state, less 1 town'
    """
    last = len(spine.levels) - 1
    inside, outside = [covered.astype(np.int64)], [(~covered).astype(np.int64)]
    for level in range(last - 1, -1, -1):
        starts = spine.first_child[level][:-1]
        taken, left = (np.add.reduceat(one[0], starts) for one in (inside, outside))
        inside.insert(0, np.minimum(taken, left + 1))
        outside.insert(0, np.minimum(taken + 1, left))
    units: dict[int, Index] = {}
    added: dict[int, NDArray[np.bool_]] = {}
    state = np.zeros(spine.units(0), dtype=np.bool_)
    for level in range(last + 1):
        if level == last:
            after = covered
        else:
            starts = spine.first_child[level][:-1]
            taken, left = (np.add.reduceat(one[level + 1], starts) for one in (inside, outside))
            whole = left == 0
            # Of two ways with as many units, the one that does not take this unit; but a whole unit is taken as it is.
            after = np.where(state, ~(taken + 1 < left), (left + 1 < taken) | (whole & (taken > 0)))
        moved = np.flatnonzero(after != state)
        if len(moved):
            units[level], added[level] = moved, after[moved]
        if level < last:
            state = after[spine.parents(level + 1)]
    return Signed(units, added)


def _add(total: Array, areas: Index, matrices: Array) -> None:
    """Add matrices to those of their areas, which ascend."""
    if len(areas):
        first = np.flatnonzero(np.concatenate([[True], areas[1:] != areas[:-1]]))
        total[areas[first]] += np.add.reduceat(matrices, first, axis=0)


@dataclass(frozen=True, eq=False)
class Unions:
    """Places and their units, by level in the order of the places."""

    overlap: Overlap
    place: tuple[Index, ...]
    """By level, the place that each of the units below lies in, ascending."""
    unit: tuple[Index, ...]

    @classmethod
    def of_leaves(cls, spine: Spine, place: Index, leaf: Index, number: int) -> Unions:
        """From pairs of a place and a leaf: where all children of a unit lie in a place, the unit stands for them.

        >>> import pyarrow as pa
        >>> names = (pa.array(["s"]), pa.array(["a", "b"]), pa.array(["1", "2", "3", "4"]))
        >>> tree = Spine(("state", "county", "town"), names, (np.array([0, 2]), np.array([0, 2, 4])))
        >>> found = Unions.of_leaves(tree, np.array([0, 0, 0, 1]), np.array([0, 1, 2, 3]), 2)
        >>> [one.tolist() for one in found.unit], [one.tolist() for one in found.place]
        ([[], [0], [2, 3]], [[], [0], [0, 1]])
        """
        place, leaf = np.divmod(np.unique(place * spine.leaves + leaf), spine.leaves)
        overlap = Overlap.of_pairs(spine, place, leaf, number)
        found, inside = [], np.zeros(len(leaf) if not overlap.levels else len(overlap.levels[0].unit), dtype=np.bool_)
        for here in overlap.levels:
            own = here.whole & ~inside
            found.append((here.area[own], here.unit[own]))
            inside = np.repeat(here.whole, here.touched)  # of the pairs below: whether their parent is whole
        found.append((place[~inside], leaf[~inside]))
        places, units = zip(*found, strict=True)
        return cls(overlap, places, units)

    @property
    def number(self) -> int:
        """How many places there are."""
        return self.overlap.areas

    def of(self, place: int) -> dict[int, Index]:
        """The units of one place, by level."""
        found = {}
        for level, (places, units) in enumerate(zip(self.place, self.unit, strict=True)):
            start, stop = np.searchsorted(places, [place, place + 1])
            if stop > start:
                found[level] = units[start:stop]
        return found

    def has(self) -> Index:
        """How many units of each level (a column each) each place has."""
        return np.stack([np.bincount(places, minlength=self.number) for places in self.place], axis=1)

    def added(self, level: int, numbers: Array) -> Array:
        """Numbers of the units of a level, added up within each place."""
        total = np.zeros((self.number, *numbers.shape[1:]))
        places, units = self.place[level], self.unit[level]
        if len(places):
            which, starts = np.unique(places, return_index=True)
            total[which] = np.add.reduceat(numbers[units], starts, axis=0)
        return total


def union_covariances(tree: BlockTree, unions: Unions) -> tuple[Array, Array]:
    """The covariance matrix of the vector of each place, and that with the vector of everything (the whole tree)."""
    size = len(tree.known[0].precision)
    own, with_all = (np.zeros((unions.number, size, size)) for _ in range(2))
    for some in unions.overlap.ranges(size):
        own[some], with_all[some] = unions.overlap.covariances(tree, some)
    return own, with_all
