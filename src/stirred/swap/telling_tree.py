"""A small decision tree that predicts a swap variable from all held columns together.

Codes of columns are in the order of their values, so a tree finds what single values cannot show: coordinates, dates or
amounts that nearly all differ and yet tell the place. Columns are cut into 64 parts of about equal size, and a node is
divided where that makes its halves purest (Gini), down to ten levels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel

_PARTS = 64
_LEVELS = 10
_FEWEST = 20
"""Rows of a node below which it is not divided."""
_VALUES = 32
"""Values of the swap variable that are told apart; the rarer ones are one."""


def predicted_by_tree(
    columns: Sequence[NDArray[np.uint32]], codes: NDArray[np.uint32], half: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each row whether a tree that was grown on the other half predicts its value."""
    binned = np.column_stack([_parts(column) for column in columns])
    common = np.argsort(-np.bincount(codes), kind="stable")[: _VALUES - 1]
    label = np.full(int(codes.max()) + 1, _VALUES - 1, dtype=np.int64)
    label[common] = np.arange(len(common))
    wanted = label[codes]
    right = np.zeros(len(codes), dtype=np.bool_)
    for side in (False, True):
        grown_on, tried_on = np.flatnonzero(half != side), np.flatnonzero(half == side)
        if len(grown_on) and len(tried_on):
            predicted = np.zeros(len(tried_on), dtype=np.int64)
            _grow(binned, wanted, grown_on, tried_on, predicted, _LEVELS, _FEWEST, _PARTS, _VALUES)
            right[tried_on] = (predicted == wanted[tried_on]) & (wanted[tried_on] < _VALUES - 1)
    return right


def _parts(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Each code's part of about equal size."""
    counts = np.bincount(codes)
    before = np.cumsum(counts) - counts
    part_of = np.minimum(before * _PARTS // max(len(codes), 1), _PARTS - 1).astype(np.uint8)
    return np.take(part_of, codes)


@kernel
def _grow(binned, wanted, grown, tried, predicted, levels, fewest, parts, values):  # type: ignore[no-untyped-def]
    """Grow a tree level by level on the rows ``grown``, and predict the rows ``tried`` by their leaves."""
    columns = binned.shape[1]
    node = np.zeros(len(grown), dtype=np.int64)
    place = np.zeros(len(tried), dtype=np.int64)
    nodes = 1
    for level in range(levels + 1):
        counts = np.zeros((nodes, values), dtype=np.int64)
        for i in range(len(grown)):
            counts[node[i], wanted[grown[i]]] += 1
        for i in range(len(tried)):
            best, most = 0, -1
            for value in range(values):
                if counts[place[i], value] > most:
                    best, most = value, counts[place[i], value]
            if most > 0:
                predicted[i] = best
        if level == levels:
            return
        column_of = np.full(nodes, -1, dtype=np.int64)
        cut_of = np.zeros(nodes, dtype=np.int64)
        score = np.zeros(nodes)
        size = np.zeros(nodes, dtype=np.int64)
        for at in range(nodes):
            for value in range(values):
                size[at] += counts[at, value]
                score[at] += float(counts[at, value]) * counts[at, value]
            score[at] = score[at] / max(size[at], 1) * (1 + 1e-9)
        for column in range(columns):
            table = np.zeros((nodes, parts, values), dtype=np.int64)
            for i in range(len(grown)):
                table[node[i], binned[grown[i], column], wanted[grown[i]]] += 1
            left = np.zeros(values, dtype=np.int64)
            for at in range(nodes):
                if size[at] < fewest:
                    continue
                left[:] = 0
                many = 0
                for cut in range(parts - 1):
                    squares_left = 0.0
                    squares_right = 0.0
                    many = 0
                    for value in range(values):
                        left[value] += table[at, cut, value]
                        many += left[value]
                        squares_left += float(left[value]) * left[value]
                        rest = float(counts[at, value] - left[value])
                        squares_right += rest * rest
                    if 0 < many < size[at]:
                        purity = squares_left / many + squares_right / (size[at] - many)
                        if purity > score[at]:
                            score[at] = purity
                            column_of[at] = column
                            cut_of[at] = cut
        children = np.full((nodes, 2), -1, dtype=np.int64)
        following = 0
        for at in range(nodes):
            if column_of[at] >= 0:
                children[at, 0] = following
                children[at, 1] = following + 1
                following += 2
        if following == 0:
            return
        # Rows of nodes that are not divided share one node after the last, which keeps their prediction.
        kept = 0
        for i in range(len(grown)):
            at = node[i]
            if column_of[at] >= 0:
                grown[kept] = grown[i]
                node[kept] = children[at, 1 if binned[grown[i], column_of[at]] > cut_of[at] else 0]
                kept += 1
        grown, node = grown[:kept], node[:kept]
        for i in range(len(tried)):
            at = place[i]
            if at >= 0 and column_of[at] >= 0:
                place[i] = children[at, 1 if binned[tried[i], column_of[at]] > cut_of[at] else 0]
            else:
                place[i] = following
        nodes = following + 1
