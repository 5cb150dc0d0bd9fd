"""Groups units that have the same variances: these depend only on the shape of the tree around a unit.

Noise is the same for all units of a level, so two units whose subtrees look the same have the same covariance matrix
from below, and if also their surroundings look the same then the same matrix from everywhere. There are far fewer kinds
of units than units: all leaves are of one kind from below, and the leaves under one parent are of one kind altogether.
Matrices are therefore computed once for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stirred.margins.spine import Index, Spine


@dataclass(frozen=True, eq=False)
class Kinds:
    """The kind of every unit of a level, numbered from 0 on, and one unit of each kind."""

    of_unit: Index
    sample: Index

    def __len__(self) -> int:
        return len(self.sample)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The kinds of the units of every level: from their subtree, and from the whole tree."""

    below: tuple[Kinds, ...]
    everywhere: tuple[Kinds, ...]
    only: tuple[Index, ...]
    """By level, the units that are their parent's only child: they are their parent, by another name."""

    @classmethod
    def of(cls, spine: Spine) -> Shapes:
        """
        >>> import pyarrow as pa
        >>> names = (pa.array(["s"]), pa.array(["a", "b", "c"]), pa.array(["1", "2", "3", "4", "5"]))
        >>> tree = Spine(("state", "county", "town"), names, (np.array([0, 3]), np.array([0, 2, 4, 5])))
        >>> shapes = Shapes.of(tree)
        >>> [kinds.of_unit.tolist() for kinds in shapes.below], shapes.only[2].tolist()
        ([[0], [1, 1, 0], [0, 0, 0, 0, 0]], [4])
        """
        levels = len(spine.levels)
        below = [Kinds(np.zeros(spine.leaves, dtype=np.int64), np.zeros(1, dtype=np.int64))]
        for level in range(levels - 2, -1, -1):
            below.insert(0, _parents(below[0], spine.first_child[level]))
        everywhere = [below[0]]
        only = [np.zeros(0, dtype=np.int64)]
        for level in range(1, levels):
            parents = spine.parents(level)
            keys = everywhere[-1].of_unit[parents] * len(below[level]) + below[level].of_unit
            everywhere.append(_numbered(keys))
            only.append(np.flatnonzero(np.diff(spine.first_child[level - 1])[parents] == 1))
        return cls(tuple(below), tuple(everywhere), tuple(only))

    def first_kind(self, spine: Spine, level: int) -> Index:
        """Where the kinds of a level that lie in each kind of the level above begin; one entry more than kinds.

        Kinds from the whole tree are numbered in the order of those of their parents.
        """
        of_parents = self.everywhere[level - 1].of_unit[spine.parents_of(level, self.everywhere[level].sample)]
        return np.searchsorted(of_parents, np.arange(len(self.everywhere[level - 1]) + 1))


def _parents(children: Kinds, first_child: Index) -> Kinds:
    """Parents are of one kind when their children are, up to order."""
    sizes = np.diff(first_child)
    if len(children) == 1:
        return _numbered(sizes)
    parent = np.repeat(np.arange(len(sizes)), sizes)
    kinds = children.of_unit[np.lexsort((children.of_unit, parent))]
    known: dict[bytes, int] = {}
    places = zip(first_child[:-1].tolist(), first_child[1:].tolist(), strict=True)
    return _numbered(np.array([known.setdefault(kinds[a:b].tobytes(), len(known)) for a, b in places], dtype=np.int64))


def _numbered(keys: Index) -> Kinds:
    _, sample, of_unit = np.unique(keys, return_index=True, return_inverse=True)
    return Kinds(of_unit.ravel().astype(np.int64), sample.astype(np.int64))
