"""Covariances of many unions of units at once, each worked out from its own units and those above them.

A union is some units of any levels, no two of them inside each other. Given a parent's vector, its children depend on
each other only through their sum and on nothing else in the tree; so a form of children is carried up to a form of
their parent, and leaves behind what it adds to the covariance. The invariant a reader must know: work is linear in the
units of all unions and the units above them, not in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stirred.margins.hierarchy import BlockTree, times
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Spine


def whole_units(spine: Spine, area: Index) -> dict[int, tuple[Index, Index]]:
    """Areas as the fewest units: by level, areas and units of them, a unit only where its parent is not whole.

    ``area`` has for each leaf the number of its area, or -1.

    >>> import pyarrow as pa
    >>> names = (pa.array(["s"]), pa.array(["a", "b"]), pa.array(["1", "2", "3", "4"]))
    >>> tree = Spine(("state", "county", "town"), names, (np.array([0, 2]), np.array([0, 2, 4])))
    >>> {at: (a.tolist(), u.tolist()) for at, (a, u) in whole_units(tree, np.array([0, 0, 0, 1])).items()}
    {1: ([0], [0]), 2: ([0, 1], [2, 3])}
    """
    found: dict[int, tuple[Index, Index]] = {}
    whole_above: np.ndarray = np.zeros(0, dtype=np.bool_)
    for level in range(len(spine.levels)):
        starts = spine.first_leaf(level)[:-1]
        least = np.minimum.reduceat(area, starts)
        whole = (least >= 0) & (least == np.maximum.reduceat(area, starts))
        new = whole & ~whole_above[spine.parents(level)] if level else whole
        if new.any():
            units = np.flatnonzero(new)
            found[level] = least[units].astype(np.int64), units
        whole_above = whole
    return found


def covariances_of_unions(tree: BlockTree, unions: Mapping[int, tuple[Index, Index]], number: int) -> Array:
    """The covariance matrix of the vector of each union, from the whole tree."""
    spine, size = tree.spine, len(tree.known[0].precision)
    total = np.zeros((number, size, size))
    areas, units, forms = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((0, size, size))
    for level in range(len(spine.levels) - 1, -1, -1):
        if level in unions:
            more = unions[level]
            each = np.broadcast_to(np.eye(size), (len(more[0]), size, size))
            areas, units, forms = _merged(
                np.concatenate([areas, more[0]]), np.concatenate([units, more[1]]), np.concatenate([forms, each])
            )
        if not len(areas):
            continue
        moved = times(tree.covariance[level], tree.shapes.below[level].of_unit[units], forms)
        own = forms.transpose(0, 2, 1) @ moved
        if level == 0:
            np.add.at(total, areas, own)
            break
        parents = spine.parents_of(level, units)
        starts = spine.first_child[level - 1]
        only = starts[parents + 1] - starts[parents] == 1
        np.add.at(total, areas, np.where(only[:, None, None], 0.0, own))
        # An only child is its parent: its form is carried up as it is.
        up_areas, up_units, gathered = _merged(areas, parents, moved)
        carried = times(tree.precision_below[level - 1], tree.shapes.below[level - 1].of_unit[up_units], gathered)
        alone = starts[up_units + 1] - starts[up_units] == 1
        left = np.where(alone[:, None, None], 0.0, gathered.transpose(0, 2, 1) @ carried)
        np.subtract.at(total, up_areas, left)
        if alone.any():
            carried[alone] = _merged(areas[only], parents[only], forms[only])[2]
        areas, units, forms = up_areas, up_units, carried
    return total


def _merged(areas: Index, units: Index, forms: Array) -> tuple[Index, Index, Array]:
    """One form for each area and unit, in the order of these: those of the same are added up."""
    order = np.lexsort((units, areas))
    areas, units, forms = areas[order], units[order], forms[order]
    starts = np.flatnonzero((np.diff(areas, prepend=-1) != 0) | (np.diff(units, prepend=-1) != 0))
    return areas[starts], units[starts], np.add.reduceat(forms, starts) if len(starts) else forms
