"""Many places at once, each a union of units of a tree: their units, sums of estimates, and covariances.

A place is kept as the fewest units that form it. The covariance of its vector is found by carrying its form up the tree
(:mod:`stirred.margins.hierarchy` has the formulas): a unit with form F and covariance C from below adds F'CF, less
T'S^-1 T for its parent, where T is the sum of C F over the parent's units in the place; the parent's own form is
S^-1 T. Only units that the place touches are visited, so that the cost is that of all places' units and their
ancestors, and nothing has the size of places times units.

The invariant a reader must know: units of one place never overlap, and none of them is an only child, since a unit
whose children all lie in the place stands for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stirred.margins.hierarchy import BlockTree
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine

_HELD = 1 << 22
"""Matrix entries that are held for the units of some places at a time."""


@dataclass(frozen=True, eq=False)
class Unions:
    """Places and their units, by level in the order of the places."""

    spine: Spine
    number: int
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
        found = []
        keys = np.unique(place * spine.leaves + leaf)
        place, unit = np.divmod(keys, spine.leaves)
        for level in range(len(spine.levels) - 1, 0, -1):
            units, sizes = spine.units(level - 1), np.diff(spine.first_child[level - 1])
            above, back, many = np.unique(
                place * units + spine.parents(level)[unit], return_inverse=True, return_counts=True
            )
            whole = many == sizes[above % units]
            part = ~whole[back.ravel()]
            found.append((place[part], unit[part]))
            place, unit = np.divmod(above[whole], units)
        found.append((place, unit))
        places, units_of = zip(*reversed(found), strict=True)
        return cls(spine, number, places, units_of)

    def of(self, place: int) -> dict[int, Index]:
        """The units of one place, by level."""
        found = {}
        for level, (places, units) in enumerate(zip(self.place, self.unit, strict=True)):
            start, stop = np.searchsorted(places, [place, place + 1])
            if stop > start:
                found[level] = units[start:stop]
        return found

    def units_of(self) -> Index:
        """How many units each place has."""
        return np.asarray(sum(np.bincount(places, minlength=self.number) for places in self.place), dtype=np.int64)

    def fewest(self) -> Index:
        """How many units each place takes at least, if they may be added or subtracted; :mod:`stirred.margins.areas`
        has the formula."""
        spine = self.spine
        place, unit, own, rest = (np.zeros(0, dtype=np.int64) for _ in range(4))
        for level in range(len(spine.levels) - 1, -1, -1):
            whole = len(self.unit[level])
            place, unit = np.concatenate([place, self.place[level]]), np.concatenate([unit, self.unit[level]])
            own = np.concatenate([own, np.ones(whole, dtype=np.int64)])
            rest = np.concatenate([rest, np.zeros(whole, dtype=np.int64)])
            if level:
                units = spine.units(level - 1)
                above, back = np.unique(place * units + spine.parents_of(level, unit), return_inverse=True)
                place, unit = np.divmod(above, units)
                inside, touched, outside = (
                    np.bincount(back.ravel(), weights, len(above)).astype(np.int64)
                    for weights in (own, np.ones_like(own), rest)
                )
                outside += np.diff(spine.first_child[level - 1])[unit] - touched
                own, rest = np.minimum(inside, 1 + outside), np.minimum(outside, 1 + inside)
        return np.bincount(place, own, self.number).astype(np.int64)

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

    def parts(self, size: int) -> Iterator[tuple[slice, Unions]]:
        """Ranges of places with few enough units, for matrices of this size."""
        ends = np.cumsum(self.units_of())
        most = max(1, _HELD // size**2)
        start = 0
        while start < self.number:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield slice(start, stop), self._range(start, stop)
            start = stop

    def _range(self, start: int, stop: int) -> Unions:
        place, unit = [], []
        for places, units in zip(self.place, self.unit, strict=True):
            first, last = np.searchsorted(places, [start, stop])
            place.append(places[first:last] - start)
            unit.append(units[first:last])
        return Unions(self.spine, stop - start, tuple(place), tuple(unit))


def union_covariances(tree: BlockTree, unions: Unions) -> tuple[Array, Array]:
    """The covariance matrix of the vector of each place, and that with the vector of everything (the whole tree)."""
    size = len(tree.known[0].precision)
    own, with_all = (np.zeros((unions.number, size, size)) for _ in range(2))
    for some, part in unions.parts(size):
        own[some], with_all[some] = _covariances(tree, part, size)
    return own, with_all


def _covariances(tree: BlockTree, unions: Unions, size: int) -> tuple[Array, Array]:
    own, with_all, spine = (*(np.zeros((unions.number, size, size)) for _ in range(2)), unions.spine)
    place, unit, form = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, size, size))
    for level in range(len(spine.levels) - 1, -1, -1):
        below, matrices = tree.shapes.below[level].of_unit, tree.covariance[level]
        moved = matrices[below[unit]] @ form  # of units that the place has a part of
        whole, inside = unions.place[level], unions.unit[level]
        if level == 0:
            for total in (own, with_all):
                _add_alike(total, whole, below[inside], matrices)
            _add(own, place, form.transpose(0, 2, 1) @ moved)
            _add(with_all, place, moved.transpose(0, 2, 1))
            break
        units = spine.units(level - 1)
        keys = [at * units + spine.parents_of(level, some) for at, some in ((place, unit), (whole, inside))]
        above, back = np.unique(np.concatenate(keys), return_inverse=True)
        of_part, of_whole = np.split(back.ravel(), [len(unit)])
        upper, parents = np.divmod(above, units)
        alone = np.diff(spine.first_child[level - 1])[parents] == 1
        mixed = ~alone[of_part]
        _add(own, place[mixed], form[mixed].transpose(0, 2, 1) @ moved[mixed])
        _add_alike(own, whole, below[inside], matrices)
        total = np.zeros((len(above), size, size))
        _add(total, of_part, moved)
        _add_alike(total, of_whole, below[inside], matrices)
        carried = tree.precision_below[level - 1][tree.shapes.below[level - 1].of_unit[parents]] @ total
        _add(own, upper[~alone], -(total[~alone].transpose(0, 2, 1) @ carried[~alone]))
        carried[of_part[~mixed]] = form[~mixed]
        place, unit, form = upper, parents, carried
    return own, with_all


def _add(total: Array, places: Index, matrices: Array) -> None:
    """Add matrices to those of their places."""
    if len(places):
        order = np.argsort(places, kind="stable")
        which, starts = np.unique(places[order], return_index=True)
        total[which] += np.add.reduceat(matrices[order], starts, axis=0)


def _add_alike(total: Array, places: Index, kinds: Index, matrices: Array) -> None:
    """Add the matrix of each unit's kind to that of its place, once for all units of a place and a kind."""
    if len(places):
        keys, many = np.unique(places * len(matrices) + kinds, return_counts=True)
        at, kind = np.divmod(keys, len(matrices))
        _add(total, at, many[:, None, None] * matrices[kind])
