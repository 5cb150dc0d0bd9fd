"""Many places at once, each kept as the whole units of a tree that form it: their sums of estimates and covariances.

Places may overlap and need not cover everything. Which units they touch, how few units they take and how their
covariances are carried up the tree: :class:`stirred.margins.areas.Overlap`.

The invariant a reader must know: units of one place never overlap, and none of them is an only child, since a unit
whose children all lie in the place stands for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stirred.margins.areas import Overlap
from stirred.margins.hierarchy import BlockTree
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine


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
