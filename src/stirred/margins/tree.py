"""Least squares over a tree, for one block: up the tree and down again, exactly.

Each unit has a vector x of a block's numbers; a parent's is the sum of its children's. At each level there are
measurements with precision matrix L and weighted values h = A'V^-1 y, the same L for all units of the level.

Up: a unit with children knows their sum with covariance S = sum of the children's C, so with its own measurements its
covariance is C = (L + S^-1)^-1 and its mean C (h + S^-1 s), s the sum of the children's means. Down: given the parent's
mean m and covariance D from the whole tree, a child's are c + C S^-1 (m - s) and C - C S^-1 C + C S^-1 D S^-1 C. This
is the generalised least squares estimate of everything together: the best linear unbiased one.

Some directions may be known exactly (invariants) and others not at all (never measured). Both are the same for all
units of a level: what is exact for children is exact for their sum, what is unknown for them is unknown for their sum
unless the level measures it. So each level has an orthonormal basis of three parts, *exact*, *proper* and *unknown*;
the matrices C and S^-1 live on the proper part and are zero elsewhere.

The invariant a reader must know: covariances tell the weights. The estimate of a form gives a measurement with row a
and variance v the weight Cov(a x, form) / v, so :meth:`BlockTree.covariances` answers for unions and explanations too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index, Shapes, Spine

_GATHERED = 1 << 22
"""Matrix entries that are held for many units at a time."""

_TINY = 1e-8
_INCONSISTENT = 1e-5


@dataclass(frozen=True, eq=False)
class Known:
    """What a level knows about the vector of each of its units."""

    precision: Array
    exact: Array
    """Columns: an orthonormal basis of the directions known exactly."""
    proper: Array
    unknown: Array
    solve: Array
    """From the right sides of all exact equations, one below the other, to the exact part of the vector."""
    equations: Array
    """Their left sides."""

    @classmethod
    def of(
        cls, size: int, measured: Sequence[tuple[Array, float]], fixed: Sequence[Array], below: Known | None
    ) -> Known:
        """From A'A and the variance of each query, A'A of each invariant, and what the level below knows."""
        nothing = np.zeros((size, size))
        precision = sum((matrix / variance for matrix, variance in measured), nothing)
        told = [] if below is None or not below.exact.shape[1] else [below.exact @ below.exact.T]
        equations = np.vstack([np.zeros((0, size)), *told, *fixed])
        exact, rest = range_and_null(sum((scaled(matrix) for matrix in (*told, *fixed)), nothing))
        seen = sum((scaled(matrix) for matrix, _ in measured), exact @ exact.T)
        known, unknown = range_and_null(seen if below is None else seen + below.proper @ below.proper.T)
        proper = known @ range_and_null(known.T @ rest @ rest.T @ known)[0]
        solve = np.linalg.pinv(equations, rcond=_TINY) if len(equations) else np.zeros((size, 0))
        return cls(precision, exact, proper, unknown, solve, equations)

    def inverse(self, matrices: Array) -> Array:
        """Inverses of matrices on the proper part, zero elsewhere."""
        if not self.proper.shape[1]:
            return np.zeros_like(matrices)
        inner = np.linalg.inv(self.proper.T @ matrices @ self.proper)
        return np.asarray(self.proper @ ((inner + inner.transpose(0, 2, 1)) / 2) @ self.proper.T)


@dataclass(frozen=True, eq=False)
class Upward:
    """Means from each unit's subtree, and the sums of the children's means, by level; levels that no one asked for are
    left out."""

    means: Mapping[int, Array]
    sums: Mapping[int, Array]


@dataclass(frozen=True, eq=False)
class BlockTree:
    """The matrices of one block, for every kind of unit of every level."""

    spine: Spine
    shapes: Shapes
    known: tuple[Known, ...]
    covariance: tuple[Array, ...]
    """C by level and kind from below."""
    precision_below: tuple[Array, ...]
    """S^-1 by level but the last, and kind from below."""

    @classmethod
    def of(
        cls,
        spine: Spine,
        shapes: Shapes,
        size: int,
        measured: Sequence[Sequence[tuple[Array, float]]],
        fixed: Sequence[Sequence[Array]],
    ) -> BlockTree:
        """From A'A and variances by level, and A'A of invariants by level; ``size`` is that of the block."""
        leaf = len(spine.levels) - 1
        known = [Known.of(size, measured[leaf], fixed[leaf], None)]
        covariance = [known[0].inverse(known[0].precision[None])]
        below: list[Array] = []
        for level in range(leaf - 1, -1, -1):
            here = Known.of(size, measured[level], fixed[level], known[0])
            starts, kinds = spine.first_child[level], shapes.below[level + 1].of_unit
            sums = np.array(
                [covariance[0][kinds[starts[u] : starts[u + 1]]].sum(0) for u in shapes.below[level].sample]
            )
            below.insert(0, known[0].inverse(sums))
            covariance.insert(0, here.inverse(here.precision + below[0]))
            known.insert(0, here)
        return cls(spine, shapes, tuple(known), tuple(covariance), tuple(below))

    # -- means -----------------------------------------------------------------------------------------------

    def up(
        self,
        weighted: Mapping[int, Array],
        fixed: Mapping[int, Sequence[Array]],
        deepest: int,
        summed: bool = False,
    ) -> Upward:
        """From the values h of every level, and A'y of its invariants; kept down to the level ``deepest``.

        With ``summed`` those of the leaves are given as sums over the leaves of each parent.
        """
        means: dict[int, Array] = {}
        sums: dict[int, Array] = {}
        leaf = len(self.spine.levels) - 1
        of_leaves: Array | None = None
        if summed:
            of_leaves = self.mean(leaf, self.spine.first_child[leaf - 1][:-1], weighted[leaf], None, fixed[leaf])
        for level in range(leaf - 1 if summed else leaf, -1, -1):
            added = self._added(level, means[level + 1]) if level + 1 in means else of_leaves
            of_leaves = None
            if level + 1 > deepest:
                means.pop(level + 1, None)
            if added is not None and level < deepest:
                sums[level] = added
            units = np.arange(self.spine.units(level))
            means[level] = self.mean(level, units, weighted[level], added, fixed[level])
        return Upward(means, sums)

    def mean(self, level: int, units: Index, weighted: Array, added: Array | None, fixed: Sequence[Array]) -> Array:
        """The means of some units of a level from their subtrees: from their values h, the sums of their children's
        means where they have children, and A'y of the level's invariants.

        All of it is linear, so that for units with the same matrices, such as leaves, it may be given sums over units.
        """
        known, kinds, right = self.known[level], self.shapes.below[level].of_unit[units], weighted
        exact = self._exact(known, level, added, fixed) if len(known.equations) else None
        if exact is not None:
            right = right - known.precision @ exact
        if added is not None:
            told = added if exact is None else added - exact
            right = right + times(self.precision_below[level], kinds, told)
        mean = times(self.covariance[level], kinds, right)
        return mean if exact is None else mean + exact

    def down(self, upward: Upward, level: int) -> Array:
        """The means of a level's units from the whole tree."""
        mean = upward.means[0]
        for at in range(1, level + 1):
            parents = self.spine.parents(at)
            told = self._times_below(at - 1, mean - upward.sums[at - 1])
            found = upward.means[at] + self._times_covariance(at, told[parents])
            found[self.shapes.only[at]] = mean[parents[self.shapes.only[at]]]
            mean = found
        return mean

    # -- covariances -----------------------------------------------------------------------------------------

    def covariances_of(self, level: int) -> Array:
        """The covariance of a unit's vector from the whole tree, for each kind of unit of a level."""
        found = self.covariance[0]
        for at in range(1, level + 1):
            found = self.covariances_under(at, slice(0, len(self.shapes.everywhere[at])), found, 0)
        return found

    def covariances_under(self, level: int, kinds: slice, of_parents: Array, first: int) -> Array:
        """The same for a range of a level's kinds, given the covariances of the kinds of their parents, which are
        those from number ``first`` on: what a large tree is gone down by, part by part."""
        own, above, of_kind, only = self._step_down(level, kinds)
        told, gain = of_parents[of_kind - first], own @ above
        return np.where(only, told, own - gain @ own + gain @ told @ gain.transpose(0, 2, 1))

    def covariances_with(self, level: int, above: int) -> Array:
        """The covariance of a unit's vector with that of the unit of the level ``above`` in which it lies, for each
        kind of unit of a level."""
        found = self.covariances_of(above)
        for at in range(above + 1, level + 1):
            own, between, of_kind, only = self._step_down(at, slice(None))
            found = np.where(only, found[of_kind], own @ between @ found[of_kind])
        return found

    def _step_down(self, level: int, kinds: slice) -> tuple[Array, Array, Index, NDArray[np.bool_]]:
        """For some kinds of units of a level: C, S^-1 of their parents, the kind of these, and whether they are only
        children."""
        sample = self.shapes.everywhere[level].sample[kinds]
        parents = self.spine.parents_of(level, sample)
        own = self.covariance[level][self.shapes.below[level].of_unit[sample]]
        above = self.precision_below[level - 1][self.shapes.below[level - 1].of_unit[parents]]
        starts = self.spine.first_child[level - 1]
        only = starts[parents + 1] - starts[parents] == 1
        return own, above, self.shapes.everywhere[level - 1].of_unit[parents], only[:, None, None]

    def covariances_among(self, level: int, units: Index, one: Array, other: Array) -> Array:
        """The covariance of a form of each of some units of a level with another form of each of them.

        Forms have a row for each unit. Given a parent's vector its children depend on each other only through their
        sum, and on nothing else in the tree. So both forms are carried up, from a unit to its parent, and at each
        level add what is left of the covariance of units with the same parent.
        """
        total = np.zeros((len(units), len(units)))
        for at in range(level, 0, -1):
            parents, kinds = self.spine.parents(at)[units], self.shapes.below[at].of_unit[units]
            above = self.shapes.below[at - 1].of_unit[parents]
            moved = [times(self.covariance[at], kinds, form[:, :, None]) for form in (one, other)]
            carried = [times(self.precision_below[at - 1], above, form)[:, :, 0] for form in moved]
            only = np.isin(units, self.shapes.only[at])
            same, siblings = units[:, None] == units, parents[:, None] == parents
            left = np.where(same, one @ moved[1][:, :, 0].T, 0.0) - carried[0] @ moved[1][:, :, 0].T
            total += np.where(siblings & ~only, left, 0.0)
            one, other = (np.where(only[:, None], form, new) for form, new in zip((one, other), carried, strict=True))
            units = parents
        right = times(self.covariance[0], self.shapes.below[0].of_unit[units], other[:, :, None])[:, :, 0]
        return np.asarray(total + np.where(units[:, None] == units, one @ right.T, 0.0))

    def covariances(self, union: Mapping[int, Index], form: Array | None = None) -> list[Array]:
        """The covariance of every unit's vector with that of a union of units, given by level, or with forms of it.

        ``form`` has a column for each form. The result has by level a matrix with such columns for every unit.
        """
        form = np.eye(len(self.known[0].precision)) if form is None else form
        levels = range(len(self.spine.levels))
        asked = [np.zeros((self.spine.units(level), *form.shape)) for level in levels]
        for level, units in union.items():
            asked[level][units] += form
        passed: list[Array] = []
        for level in reversed(levels[1:]):
            up = self._times_below(level - 1, self._added(level - 1, self._times_covariance(level, asked[level])))
            only = self.shapes.only[level]
            up[self.spine.parents(level)[only]] = asked[level][only]
            asked[level - 1] += up
            passed.insert(0, up)
        found = [self._times_covariance(0, asked[0])]
        for level in levels[1:]:
            parents, only = self.spine.parents(level), self.shapes.only[level]
            told = self._times_below(level - 1, found[-1]) - passed[level - 1]
            here = self._times_covariance(level, asked[level] + told[parents])
            here[only] = found[-1][parents[only]]
            found.append(here)
        return found

    # -- helpers ---------------------------------------------------------------------------------------------

    def _exact(self, known: Known, level: int, added: Array | None, fixed: Sequence[Array]) -> Array:
        """The part of each unit's vector that is known exactly."""
        rights = list(fixed)
        if level + 1 < len(self.known) and self.known[level + 1].exact.shape[1]:
            below = self.known[level + 1].exact
            assert added is not None
            rights.insert(0, below @ (below.T @ added))
        right = np.concatenate(rights, axis=1)
        found = np.asarray(known.solve @ right)
        wrong = np.abs(known.equations @ found - right) > _INCONSISTENT * (1 + np.abs(right).max(initial=0))
        if wrong.any():
            units = np.flatnonzero(wrong.any(axis=(1, 2)))
            raise errors.invariants_disagree(
                self.spine.levels[level], len(units), self.spine.names[level].take(units[: errors.FEW]).to_pylist()
            )
        return found

    def _added(self, level: int, of_children: Array) -> Array:
        return np.asarray(np.add.reduceat(of_children, self.spine.first_child[level][:-1], axis=0))

    def _times_covariance(self, level: int, vectors: Array) -> Array:
        return times(self.covariance[level], self.shapes.below[level].of_unit, vectors)

    def _times_below(self, level: int, vectors: Array) -> Array:
        return times(self.precision_below[level], self.shapes.below[level].of_unit, vectors)


def times(matrices: Array, kinds: Index, vectors: Array) -> Array:
    """The vectors of every unit (a column each) multiplied by the matrix of its kind."""
    size = matrices.shape[1]
    if size == 1:
        return np.asarray(matrices[kinds] * vectors)
    if len(matrices) == 1:
        return np.asarray(matrices[0] @ vectors)
    found = np.empty_like(vectors)
    step = max(1, _GATHERED // size**2)
    for start in range(0, len(vectors), step):
        units = slice(start, start + step)
        np.matmul(matrices[kinds[units]], vectors[units], out=found[units])
    return found


def range_and_null(matrix: Array) -> tuple[Array, Array]:
    """Orthonormal bases of the range and of the null space of a symmetric matrix."""
    if not len(matrix):
        return np.zeros((0, 0)), np.zeros((0, 0))
    values, vectors = np.linalg.eigh(matrix)
    positive = values > _TINY * max(1.0, float(values[-1]))
    return vectors[:, positive], vectors[:, ~positive]


def scaled(matrix: Array) -> Array:
    """The same null space, with entries of order one: how precise a query is does not decide what it is about."""
    largest = float(np.abs(matrix).max(initial=0))
    return matrix / largest if largest > 0 else matrix
