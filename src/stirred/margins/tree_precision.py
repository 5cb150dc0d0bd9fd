"""Variances of the best estimates over a tree of places as functions of how much is spent on each query, with slopes.

A query that gets rho at a level has noise of variance 1/rho, so the precision matrix of a level is linear in what its
queries get, and the variance of a best linear unbiased estimate is a convex function of all of it, of degree -1. The
recursions are those of :mod:`stirred.margins.hierarchy`, for every kind of unit once; slopes are taken backwards
through them, so that all slopes together cost about as much as the variances.

The invariant a reader must know: every candidate gets something. What can be told at all, and what is known exactly,
then never depends on how much each gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from stirred.margins.hierarchy import Known
from stirred.margins.margin_blocks import Array, Margin, representatives
from stirred.margins.shapes import Shapes
from stirred.margins.spine import Index, Spine
from stirred.margins.split import Split

LARGEST = 512
"""Numbers that recodes may tie together in a unit."""

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class AskedPlace:
    """A margin that is asked for in the units of a level."""

    level: int
    margin: Margin
    typical: bool = False
    """Whether the mean variance over the units counts; otherwise that of every unit does."""


@dataclass(frozen=True, eq=False)
class _Family:
    """The blocks of one size, one after another: arrays have the axes kind, block, row, column."""

    size: int
    pieces: Array
    """Candidates, blocks, size, size: A'A of each."""
    proper: tuple[Array, ...]
    """By level and block, the projection on what is neither known exactly nor unknown."""
    squares: tuple[Array, ...]
    """For each asked margin a column for each class of its groups: coefficients on covariances."""


@dataclass(frozen=True, eq=False)
class _Pass:
    """What going up and down the tree once gives for one family of blocks."""

    covariance: list[Array]
    below: list[Array]
    everywhere: list[Array]


@dataclass(frozen=True, eq=False, repr=False)
class TreePrecision:
    """Candidates to be measured at levels of a tree, and margins asked for."""

    families: tuple[_Family, ...]
    levels: int
    candidate_levels: tuple[int, ...]
    asked: tuple[AskedPlace, ...]
    undetermined: tuple[bool, ...]
    """Of each asked margin, whether the candidates and what is known exactly leave it open."""
    counts: tuple[Array, ...]
    """By level the number of units of each kind."""
    children: tuple[Any, ...]
    """By level but the last, how many children of each kind a unit of each kind has: sparse."""
    links: tuple[_Link, ...]

    def __repr__(self) -> str:
        return f"<TreePrecision: {len(self.candidate_levels)} candidates on {self.levels} levels>"

    @classmethod
    def of(
        cls,
        name: str,
        spine: Spine,
        candidates: Sequence[tuple[int, Margin]],
        asked: Sequence[AskedPlace],
        fixed: Sequence[tuple[int, Margin]] = (),
        shapes: Shapes | None = None,
    ) -> TreePrecision:
        """``candidates`` are margins with the number of the level at which they are measured, ``fixed`` those that are
        known exactly; ``name`` is the table's, for messages."""
        shapes = shapes or Shapes.of(spine)
        levels = len(spine.levels)
        known = list({one.names: one for _, one in (*candidates, *fixed)}.values())
        split = Split.of(name, [one.margin for one in asked], known, LARGEST)
        few = [representatives(one.margin, split.axes)[0] for one in asked]
        structure = []
        for block in split.blocks:
            told = {margin.names: block.information(margin) for margin in known}
            below: Known | None = None
            found: list[Known] = []
            for level in range(levels - 1, -1, -1):
                measured = [(told[margin.names], 1.0) for at, margin in candidates if at == level]
                below = Known.of(
                    block.size, measured, [told[margin.names] for at, margin in fixed if at == level], below
                )
                found.insert(0, below)
            structure.append((block, told, found))
        undetermined = tuple(
            bool(split.unseen(few[number], [found[one.level].unknown for _, _, found in structure]).any())
            for number, one in enumerate(asked)
        )
        families = []
        for size in sorted({block.size for block in split.blocks}):
            members = [one for one in structure if one[0].size == size]
            squares = []
            for margin in few:
                parts = []
                for block, _, _ in members:
                    rows, copies = block.loadings(margin)
                    parts.append((rows[:, :, None] * rows[:, None, :] * copies[:, None, None]).reshape(len(rows), -1))
                squares.append(np.ascontiguousarray(np.hstack(parts).T))
            families.append(
                _Family(
                    size,
                    np.stack([[told[margin.names] for _, told, _ in members] for _, margin in candidates]),
                    tuple(
                        np.stack([found[level].proper @ found[level].proper.T for _, _, found in members])
                        for level in range(levels)
                    ),
                    tuple(squares),
                )
            )
        deepest = max(one.level for one in asked)
        return cls(
            tuple(families),
            levels,
            tuple(level for level, _ in candidates),
            tuple(asked),
            undetermined,
            tuple(np.bincount(kinds.of_unit, minlength=len(kinds)).astype(np.float64) for kinds in shapes.everywhere),
            tuple(_children(spine, shapes, level) for level in range(levels - 1)),
            tuple(_Link.of(spine, shapes, level) for level in range(1, deepest + 1)),
        )

    def variances(self, spent: Array) -> list[Array]:
        """The variances of each asked margin: a row for each kind of unit of its level (one row, of means, where the
        typical unit is asked for), a column for each class of groups that have the same variance."""
        return self._solved(spent)[0]

    def variances_and_slopes(self, spent: Array, weigh: Any) -> tuple[list[Array], Any, Array]:
        """Variances; what ``weigh`` says of them besides weights of the same shapes; and for each candidate by how much
        the sum of variances times weights falls when more is spent on it."""
        found, passes = self._solved(spent)
        said, weights = weigh(found)
        slopes = np.zeros(len(self.candidate_levels))
        for family, done in zip(self.families, passes, strict=True):
            slopes += self._slopes(family, done, weights)
        return found, said, np.maximum(slopes, 0.0)

    # -- up and down ---------------------------------------------------------------------------------------------

    def _solved(self, spent: Array) -> tuple[list[Array], list[_Pass]]:
        found = [np.zeros((1, family.shape[1])) for family in self.families[0].squares]
        passes = []
        for family in self.families:
            done = self._pass(family, spent)
            passes.append(done)
            for number, one in enumerate(self.asked):
                held = done.everywhere[one.level]
                flat = held.reshape(len(held), -1)
                if one.typical:
                    flat = (self.counts[one.level] @ flat / self.counts[one.level].sum())[None]
                found[number] = found[number] + flat @ family.squares[number]
        return [np.maximum(one, 0.0) for one in found], passes

    def _pass(self, family: _Family, spent: Array) -> _Pass:
        precision = [np.zeros_like(family.pieces[0]) for _ in range(self.levels)]
        for level, amount, piece in zip(self.candidate_levels, spent, family.pieces, strict=True):
            precision[level] = precision[level] + amount * piece
        covariance = [_inverse(precision[-1][None], family.proper[-1])]
        below: list[Array] = []
        for level in range(self.levels - 2, -1, -1):
            below.insert(0, _inverse(_added(self.children[level], covariance[0]), family.proper[level + 1]))
            covariance.insert(0, _inverse(precision[level] + below[0], family.proper[level]))
        everywhere = [covariance[0]]
        for level, link in enumerate(self.links, 1):
            own, above, told = covariance[level][link.own], below[level - 1][link.above], everywhere[-1][link.parent]
            gap = above - _times(_times(above, told), above)
            under = own - _times(_times(own, gap), own)
            everywhere.append(np.where(link.only[:, None, None, None], told, under))
        return _Pass(covariance, below, everywhere)

    def _slopes(self, family: _Family, done: _Pass, weights: Sequence[Array]) -> Array:
        """The derivative of the weighted variances by what each candidate gets, its sign turned."""
        towards = [np.zeros_like(one) for one in done.everywhere]
        for number, one in enumerate(self.asked):
            flat = weights[number] @ family.squares[number].T
            if one.typical:
                flat = (self.counts[one.level] / self.counts[one.level].sum())[:, None] * flat
            towards[one.level] += flat.reshape(towards[one.level].shape)
        of_covariance = [np.zeros_like(one) for one in done.covariance]
        of_below = [np.zeros_like(one) for one in done.below]
        for level in range(len(self.links), 0, -1):
            link, here = self.links[level - 1], towards[level]
            only = link.only[:, None, None, None]
            own, above = done.covariance[level][link.own], done.below[level - 1][link.above]
            told = done.everywhere[level - 1][link.parent]
            gap = above - _times(_times(above, told), above)
            free = np.where(only, 0.0, here)
            once = _times(_times(free, own), gap)
            of_gap = -_times(_times(own, free), own)
            twice = _times(_times(of_gap, above), told)
            of_covariance[level] += _gathered(link.from_own, free - once - _turned(once))
            of_below[level - 1] += _gathered(link.from_above, of_gap - twice - _turned(twice))
            up = np.where(only, here, -_times(_times(above, of_gap), above))
            towards[level - 1] += _gathered(link.from_parent, up)
        of_covariance[0] += towards[0]
        slopes = np.zeros(len(self.candidate_levels))
        for level in range(self.levels):
            own = done.covariance[level]
            of_sum = -_times(_times(own, of_covariance[level]), own)
            total = of_sum.sum(axis=0)
            for number, at in enumerate(self.candidate_levels):
                if at == level:
                    slopes[number] = -float((total * family.pieces[number]).sum())
            if level < self.levels - 1:
                above = done.below[level]
                back = -_times(_times(above, of_below[level] + of_sum), above)
                of_covariance[level + 1] += _added(self.children[level].T, back)
        return slopes


@dataclass(frozen=True, eq=False)
class _Link:
    """Of each kind of unit of a level: its kind from below, that of its parent from below, that of its parent from
    everywhere; whether it is an only child; and sparse matrices that add up over kinds."""

    own: Index
    above: Index
    parent: Index
    only: Any
    from_own: Any
    from_above: Any
    from_parent: Any

    @classmethod
    def of(cls, spine: Spine, shapes: Shapes, level: int) -> _Link:
        sample = shapes.everywhere[level].sample
        parents = spine.parents_of(level, sample)
        starts = spine.first_child[level - 1]
        own = shapes.below[level].of_unit[sample]
        above = shapes.below[level - 1].of_unit[parents]
        parent = shapes.everywhere[level - 1].of_unit[parents]
        sizes = len(shapes.below[level]), len(shapes.below[level - 1]), len(shapes.everywhere[level - 1])
        gather = [_selection(places, many) for places, many in zip((own, above, parent), sizes, strict=True)]
        return cls(own, above, parent, starts[parents + 1] - starts[parents] == 1, *gather)


def _selection(places: Index, many: int) -> Any:
    """A sparse matrix that adds up rows which belong to the same place."""
    ones = np.ones(len(places))
    return sparse.csr_array((ones, (places, np.arange(len(places)))), shape=(many, len(places)))


def _children(spine: Spine, shapes: Shapes, level: int) -> Any:
    starts, kinds = spine.first_child[level], shapes.below[level + 1].of_unit
    rows, columns, many = [], [], []
    for row, unit in enumerate(shapes.below[level].sample):
        found, times = np.unique(kinds[starts[unit] : starts[unit + 1]], return_counts=True)
        rows.append(np.full(len(found), row))
        columns.append(found)
        many.append(times.astype(np.float64))
    shape = (len(shapes.below[level]), len(shapes.below[level + 1]))
    return sparse.csr_array((np.concatenate(many), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _added(matrix: Any, arrays: Array) -> Array:
    return np.asarray(matrix @ arrays.reshape(len(arrays), -1)).reshape(-1, *arrays.shape[1:])


def _gathered(matrix: Any, arrays: Array) -> Array:
    return _added(matrix, arrays)


def _times(one: Array, other: Array) -> Array:
    return one * other if one.shape[-1] == 1 else one @ other


def _turned(arrays: Array) -> Array:
    return arrays.swapaxes(-1, -2)


def _inverse(matrices: Array, proper: Array) -> Array:
    """Inverses on the proper part of each block, zero elsewhere."""
    if matrices.shape[-1] == 1:
        there = proper > 0.5
        return np.where(there, 1 / np.where(there, np.maximum(matrices, _TINY), 1.0), 0.0)
    rest = np.eye(matrices.shape[-1]) - proper
    inner = proper @ matrices @ proper + rest
    found = np.linalg.inv((inner + _turned(inner)) / 2) - rest
    return np.asarray((found + _turned(found)) / 2)
