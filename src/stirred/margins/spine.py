"""The geography: levels of geounits, each inside one unit of the level above, and which units are of one shape.

Units of a level are numbered so that the children of one parent stand together and in the order of their parents; a
leaf's number therefore falls into a range for each of its ancestors. The list of leaves is public and comes from a file
of its own: which places exist is not taken from the confidential records.

The invariant a reader must know: every unit of a level has at least one child, and the children of unit u of level l
are the units ``first_child[l][u]`` up to ``first_child[l][u + 1]`` of the level below.

Variances depend only on the shape of the tree around a unit. Noise is the same for all units of a level, so two units
whose subtrees look the same have the same covariance matrix from below, and if also their surroundings look the same
then the same matrix from everywhere. There are far fewer kinds of units than units: all leaves are of one kind from
below, and the leaves under one parent are of one kind altogether. Matrices are therefore computed once for each kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred import errors
from stirred.tables.columns import Column, as_text

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spine:
    """Nested levels from the root to the leaves."""

    levels: tuple[str, ...]
    names: tuple[pa.Array, ...]
    """By level, the name of each unit, as text."""
    first_child: tuple[Index, ...]
    """By level but the last, where the children of each unit begin; one entry more than units."""

    def units(self, level: int) -> int:
        """The number of units of a level."""
        return len(self.names[level])

    @property
    def leaves(self) -> int:
        """The number of finest geounits."""
        return self.units(len(self.levels) - 1)

    def parents(self, level: int) -> Index:
        """The parent of each unit of a level below the first."""
        return self.ancestors(level - 1, level)

    def ancestors(self, level: int, finer: int) -> Index:
        """The unit of a level in which each unit of a finer one, or of the level itself, lies."""
        return np.repeat(np.arange(self.units(level), dtype=np.int64), np.diff(self.first_unit(level, finer)))

    def parents_of(self, level: int, units: Index) -> Index:
        """The parents of some units of a level below the first."""
        return np.searchsorted(self.first_child[level - 1], units, side="right").astype(np.int64) - 1

    def first_leaf(self, level: int) -> Index:
        """Where the leaves of each unit of a level begin; one entry more than units."""
        return self.first_unit(level, len(self.levels) - 1)

    def first_unit(self, level: int, finer: int) -> Index:
        """Where the units of a finer level begin in each unit of a level; one entry more than units."""
        bounds = np.arange(self.units(level) + 1, dtype=np.int64)
        for below in range(level, finer):
            bounds = self.first_child[below][bounds]
        return bounds


def build_spine(levels: Sequence[str], columns: Sequence[Column], root: str | None = None) -> tuple[Spine, Index]:
    """The spine of a list of leaves, and for each row of the list the number of its leaf.

    ``columns`` are the levels' columns, coarsest first; ``root`` names a level above them that has one unit. A finer
    unit that lies in two coarser ones is refused.
    """
    rows = len(columns[0].codes)
    if rows == 0:
        raise errors.nested_levels(levels[-1], "lists no unit")
    unit = np.zeros(rows, dtype=np.int64)
    names: list[pa.Array] = []
    first_child: list[Index] = []
    known = 1
    for level, column in zip(levels, columns, strict=True):
        column = _in_words(column)
        codes = column.codes.astype(np.int64)
        parent_of = np.full(column.cardinality, -1, dtype=np.int64)
        parent_of[codes] = unit
        if not np.array_equal(parent_of[codes], unit):
            row = int(np.argmax(parent_of[codes] != unit))
            two = [names[-1][int(number)].as_py() for number in (unit[row], parent_of[codes[row]])]
            raise errors.not_nested(level, column.values[int(codes[row])].as_py(), levels[len(names) - 1], two)
        order = np.lexsort((np.arange(column.cardinality), parent_of))
        number = np.empty(column.cardinality, dtype=np.int64)
        number[order] = np.arange(column.cardinality)
        first_child.append(np.searchsorted(parent_of[order], np.arange(known + 1)))
        names.append(column.values.take(pa.array(order)))
        unit, known = number[codes], column.cardinality
    if root is not None:
        return Spine((root, *levels), (pa.array([root]), *names), tuple(first_child)), unit
    return Spine(tuple(levels), tuple(names), tuple(first_child[1:])), unit


def _in_words(column: Column) -> Column:
    """A column with its values as text, sorted, so that a spine is read back with the numbers it was written with."""
    if pa.types.is_string(column.type):
        return column  # sorted by their bytes in UTF-8, which is the order of their characters
    return by_text(column.name, column.codes, as_text(column.values))


def by_text(name: str, codes: NDArray[Any], texts: pa.Array) -> Column:
    """A column with its values in the order of their texts, as a file of it would be read."""
    order = pc.array_sort_indices(texts)
    number = np.empty(len(order), dtype=np.uint32)
    number[order.to_numpy()] = np.arange(len(order))
    return Column(name, number[codes], texts.take(order))


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
