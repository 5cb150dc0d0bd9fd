"""The geography: levels of geounits, each inside one unit of the level above.

Units of a level are numbered so that the children of one parent stand together and in the order of their parents; a
leaf's number therefore falls into a range for each of its ancestors. The list of leaves is public and comes from a file
of its own: which places exist is not taken from the confidential records.

The invariant a reader must know: every unit of a level has at least one child, and the children of unit u of level l
are the units ``first_child[l][u]`` up to ``first_child[l][u + 1]`` of the level below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

    @property
    def geounits(self) -> int:
        """The number of units of all levels together."""
        return sum(self.units(level) for level in range(len(self.levels)))

    def parents(self, level: int) -> Index:
        """The parent of each unit of a level below the first."""
        sizes = np.diff(self.first_child[level - 1])
        return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)

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
    texts = as_text(column.values)
    order = pc.array_sort_indices(texts)
    number = np.empty(len(order), dtype=np.uint32)
    number[order.to_numpy()] = np.arange(len(order))
    return Column(column.name, number[column.codes], texts.take(order))
