"""Where the numbers of a chunk of parents lie: values, bounds and masks brought to the cells that occur, and back.

A chunk is a range of parents; their positive cells and children are slices of the level's arrays. Values given by unit
and group are read where they are and written to blocks of (row, child), one block for each parent.

The invariant a reader must know: a parent's rows are numbered from 0 on, family after family, and a family has a row
for each of its groups that has a cell in the parent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel


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
    """A table of zeros."""
    return np.zeros((height, width))


@helper
def integers(height, width):  # type: ignore[no-untyped-def]
    """A table of integer zeros."""
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
def close(groups, allowed, starts, cells, first_child, x_starts, opened):  # type: ignore[no-untyped-def]
    """Close the entries (cell, child) that a mask does not allow."""
    base = starts[0]
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = x_starts[parent] - x_starts[0]
        for j in range(starts[parent], starts[parent + 1]):
            group = groups[cells[j - base]]
            for k in range(width):
                if not allowed[first_child[parent] + k, group]:
                    opened[at + k] = False
            at += width


@kernel
def close_bounded(groups, upper, starts, cells, first_child, x_starts, opened):  # type: ignore[no-untyped-def]
    """Close the entries of groups that are bounded by zero."""
    base = starts[0]
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = x_starts[parent] - x_starts[0]
        for j in range(starts[parent], starts[parent + 1]):
            group = groups[cells[j - base]]
            if group >= 0:
                for k in range(width):
                    if upper[first_child[parent] + k, group] <= 0:
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


@kernel
def count_positive(starts, first_child, x_starts, rounded, child_starts):  # type: ignore[no-untyped-def]
    """How many cells of each child are positive, in ``child_starts[child + 1]``."""
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = x_starts[parent]
        for _j in range(starts[parent], starts[parent + 1]):
            for k in range(width):
                if rounded[at + k] > 0:
                    child_starts[first_child[parent] + k + 1] += 1
            at += width


@kernel
def fill_positive(starts, cells, first_child, x_starts, rounded, cursor, out_cells, out_counts):  # type: ignore[no-untyped-def]
    """The positive cells of each child; ``cursor`` is where each child's begin."""
    for parent in range(len(starts) - 1):
        width = first_child[parent + 1] - first_child[parent]
        at = x_starts[parent]
        for j in range(starts[parent], starts[parent + 1]):
            for k in range(width):
                if rounded[at + k] > 0:
                    child = first_child[parent] + k
                    out_cells[cursor[child]] = cells[j]
                    out_counts[cursor[child]] = rounded[at + k]
                    cursor[child] += 1
            at += width
