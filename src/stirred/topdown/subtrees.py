"""What each unit's own measurements and all below it tell of its table: the first half of a fit, up the tree.

Let c be the best linear unbiased value of a unit's table x from its subtree alone and C its covariance
(:mod:`stirred.margins.hierarchy`). The measurements of the whole tree, minimised over everything below the children k
of a parent whose table is already fitted, ask for the least of

    sum_k (x_k - c_k)' C_k^-1 (x_k - c_k)   where the x_k add up to the parent's table.

So nothing has to come down the tree again: what the rest of it tells enters through the parent alone, and without
bounds this gives the best linear unbiased values of the whole tree. The fit takes weights of queries in place of a
matrix: C^-1 = L + T, where L is what the unit's own measurements tell, a sum of the queries' A'A with their precisions,
and T what is told from below. T is put as such a sum too, the nearest in tr(C (M - T) C (M - T)), with no negative
weight; it is one already where units have subtrees alike.

The invariant a reader must know: the values are c whatever the weights, so an inexact weight costs accuracy where
bounds bind, and nothing where they do not. Leaves have nothing below them and are fitted to what was measured.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stirred._lazy import later
from stirred.margins.margin_blocks import Array, Margin
from stirred.margins.spine import Index, Spine
from stirred.releases.progress import Progress
from stirred.tables.ahead import ahead
from stirred.topdown import design as designs
from stirred.topdown.constraints import Counts
from stirred.topdown.measuring import Measurements
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TableSection
from stirred.topdown.problems import Measured, separates

optimize = later("scipy.optimize")

CHUNK = 1 << 24
"""Measured values that are held at a time; more numbers than this of a level are kept in a file."""

MOST_MATRICES = 1 << 26
"""Numbers that the covariance matrices of all kinds of units may have together."""

LEAST_DETAIL = 1e-3
"""The least part of all weight that the queries have which separate all cells, where there are such queries."""

_TINY = 1e-12

Told = dict[tuple[str, ...], Measured]
"""What a fit is near to, by the names of each query."""


@dataclass(frozen=True, eq=False, repr=False)
class Subtrees:
    """The values c of a table, given by the sums over each unit's children; those of a unit follow from its own
    measurements."""

    table: TableSection
    design: designs.Design
    exact: tuple[Counts, ...]
    sums: tuple[Array, ...]
    """By level but the last, the sum of the children's values for each unit, in the basis of the blocks."""

    @classmethod
    def of(
        cls,
        plan: TopDownPlan,
        spine: Spine,
        exact: Sequence[Counts],
        measurements: Measurements,
        table: TableSection,
        progress: Progress,
    ) -> Subtrees:
        """Go up the tree once, reading every measurement below the root in ranges of units.

        Raises ``estimate-too-wide`` where recodes, or units with many kinds of subtrees, tie too many numbers together.
        """
        fixed = [number for number, one in enumerate(plan.invariants) if one.table == table.name]
        names = tuple(attribute.name for attribute in table.attributes)
        design = designs.Design.of(plan, spine, table.name, names, None, fixed, most=MOST_MATRICES)
        leaf = len(spine.levels) - 1
        sums = tuple(_room((spine.units(level), *design.split.shape)) for level in range(leaf))
        found = cls(table, design, tuple(exact), sums)
        for level in range(leaf, 0, -1):
            progress.stage(f"least squares of {table.name} at level '{spine.levels[level]}'", (leaf - level) / leaf)
            found._add_up(level, measurements)
        return found

    def measured(self, level: int, units: slice, values: Sequence[Counts], by: tuple[str, ...]) -> tuple[Told, Told]:
        """What to fit units above the leaves to, given the measured values of the level's queries: the queries of
        :meth:`queries` with the weights of the whole table, and those of them that are about attributes of ``by`` only
        with the weights of the margin by these."""
        means = self._means(level, np.arange(units.start, units.stop), self._weighted(level, values), units)
        kinds = self.design.shapes.below[level].of_unit[units]
        weights, few = self._weights[level], self._margin_weights(level, by)
        queries = self.queries(level)
        told = [self.design.split.told(margin, means) for _, margin in queries]
        schema = self.table.schema_of
        groups = [schema.groups(names) for names, _ in queries]
        names = [by for by, _ in queries]
        whole = {names[at]: Measured(groups[at], weights[kinds, at], told[at]) for at in range(len(queries))}
        part = {
            names[at]: Measured(groups[at], few[kinds, place], told[at])
            for place, at in enumerate(self._inside(level, by))
        }
        return _with_weight(whole), _with_weight(part)

    def queries(self, level: int) -> list[tuple[tuple[str, ...], Margin]]:
        """The queries that are measured at a level or below it: the names of each, and its margin."""
        found: dict[tuple[str, ...], Margin] = {}
        for here in self.design.measured[level:]:
            for one in here:
                found.setdefault(one.entry.by, one.margin)
        return list(found.items())

    def _inside(self, level: int, by: tuple[str, ...]) -> list[int]:
        schema = self.table.schema_of
        return [
            at for at, (names, _) in enumerate(self.queries(level)) if {schema.base(name) for name in names} <= set(by)
        ]

    # -- values ----------------------------------------------------------------------------------------------

    def _add_up(self, level: int, measurements: Measurements) -> None:
        """The sums of the values of a level's units over their parents."""
        edges = self.design.spine.first_child[level - 1]
        leaf = level == len(self.design.spine.levels) - 1

        def read() -> Iterator[tuple[int, int, list[Counts]]]:
            per_unit = sum(one.entry.cells for one in self.design.measured[level])
            for first, last in ranges(np.diff(edges), per_unit):
                units = slice(int(edges[first]), int(edges[last]))
                starts = edges[first:last] - units.start
                values = []
                for one in self.design.measured[level]:
                    given = measurements.values(one.entry, units)
                    # All leaves have the same matrices, so that their values may be added up before.
                    values.append(np.add.reduceat(given, starts, axis=0) if leaf else given)
                yield first, last, values

        for first, last, values in ahead(read()):
            weighted = self._weighted(level, values)
            if leaf:
                self.sums[level - 1][first:last] = self._means(level, edges[first:last], weighted, None, (first, last))
                continue
            units = slice(int(edges[first]), int(edges[last]))
            means = self._means(level, np.arange(units.start, units.stop), weighted, units)
            self.sums[level - 1][first:last] = np.add.reduceat(means, edges[first:last] - units.start, axis=0)

    def _weighted(self, level: int, values: Sequence[Counts]) -> Array:
        """A'V^-1 y of all queries of a level."""
        split = self.design.split
        pairs = zip(self.design.measured[level], values, strict=True)
        parts = [split.projected(one.margin, given) / one.variance for one, given in pairs]
        return np.asarray(sum(parts[1:], parts[0]))

    def _means(
        self, level: int, units: Index, weighted: Array, own: slice | None, parents: tuple[int, int] = (0, 0)
    ) -> Array:
        """The values c of some units, or of leaves added up over some parents."""
        design = self.design
        added = self.sums[level][own] if own is not None and level < len(self.sums) else None
        fixed = []
        for number, margin in design.fixed[level]:
            given = self.exact[number]
            if own is None:
                edges = design.spine.first_child[level - 1]
                inside = given[edges[parents[0]] : edges[parents[1]]]
                given = np.add.reduceat(inside, edges[parents[0] : parents[1]] - edges[parents[0]], axis=0)
            else:
                given = given[own]
            fixed.append(design.split.projected(margin, given))
        found = np.empty_like(weighted)
        for block, tree in zip(design.split.blocks, design.trees, strict=True):
            below = None if added is None else block.take(added)
            mean = tree.mean(level, units, block.take(weighted), below, [block.take(one) for one in fixed])
            block.put(found, mean)
        return found

    # -- weights ---------------------------------------------------------------------------------------------

    @cached_property
    def _weights(self) -> list[Array]:
        """By level but the last, the weight of each query for each kind of unit from below."""
        found = []
        for level in range(len(self.sums)):
            queries = self.queries(level)
            own = self._own(level)
            gram = np.zeros((len(self.design.shapes.below[level]), len(queries), len(queries)))
            right = np.zeros(gram.shape[:2])
            for block, tree in zip(self.design.split.blocks, self.design.trees, strict=True):
                matrices = np.stack([block.information(margin) for _, margin in queries])
                _add_products(gram, right, matrices, tree.covariance[level], tree.precision_below[level])
            weights = own + _nonnegative(gram, right)
            detailed = [at for at, (names, _) in enumerate(queries) if separates(self.table.schema_of.groups(names))]
            if detailed:
                least = LEAST_DETAIL * weights.sum(axis=1)
                weights[:, detailed[0]] = np.maximum(weights[:, detailed[0]], least)
            found.append(weights)
        return found

    def _margin_weights(self, level: int, by: tuple[str, ...]) -> Array:
        """The weights for the margin by some attributes alone, whatever the rest of the table is."""
        key = (level, by)
        if key not in self._margins:
            self._margins[key] = self._weights_of_margin(level, by)
        return self._margins[key]

    @cached_property
    def _margins(self) -> dict[tuple[int, tuple[str, ...]], Array]:
        return {}

    def _weights_of_margin(self, level: int, by: tuple[str, ...]) -> Array:
        schema = self.table.schema_of
        inside, queries = self._inside(level, by), self.queries(level)
        own = self._own(level)[inside]
        margin = Margin.of(schema, by)
        kinds = len(self.design.shapes.below[level])
        if kinds * margin.groups**2 > MOST_MATRICES or not inside:
            return np.asarray(self._weights[level][:, inside])
        places = np.arange(margin.groups)
        left, right = np.repeat(places, margin.groups), np.tile(places, margin.groups)
        between = [tree.covariance[level] for tree in self.design.trees]
        covariance = self.design.split.covariances(between, (margin, left), (margin, right))
        covariance = covariance.reshape(kinds, margin.groups, margin.groups)
        # One cell of each group, in the order of a tensor.
        sample = np.empty(margin.groups, dtype=np.int64)
        sample[margin.in_tensor] = np.unique(schema.groups(by), return_index=True)[1]
        parts = []
        for at in inside:
            groups = schema.groups(queries[at][0])[sample]
            parts.append((groups[:, None] == groups).astype(np.float64))
        matrices = np.stack(parts)
        told = np.einsum("q,qij->ij", own, matrices)
        gram, aims = np.zeros((kinds, len(inside), len(inside))), np.zeros((kinds, len(inside)))
        _add_products(gram, aims, matrices, covariance, None, covariance - covariance @ told @ covariance)
        return np.asarray(own + _nonnegative(gram, aims))

    def _own(self, level: int) -> Array:
        """The precision with which each query is measured at a level itself."""
        precision: dict[tuple[str, ...], float] = {}
        for one in self.design.measured[level]:
            precision[one.entry.by] = precision.get(one.entry.by, 0.0) + 1 / one.variance
        return np.array([precision.get(names, 0.0) for names, _ in self.queries(level)])


def _with_weight(told: Told) -> Told:
    return {by: one for by, one in told.items() if one.typical_weight > 0}


def ranges(sizes: Index, per_unit: int) -> Iterator[tuple[int, int]]:
    """Ranges of parents whose children have a bounded number of measured values."""
    first, held = 0, 0
    for parent, size in enumerate(sizes.tolist()):
        if held and held + size * per_unit > CHUNK:
            yield first, parent
            first, held = parent, 0
        held += int(size) * per_unit
    yield first, len(sizes)


def _room(shape: tuple[int, ...]) -> Array:
    """An array to be written; a large one lies in a file that goes away with it."""
    if math.prod(shape) <= CHUNK:
        return np.empty(shape)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float64, mode="w+", shape=shape)


def _add_products(
    gram: Array, right: Array, matrices: Array, covariance: Array, aim: Array | None, around: Array | None = None
) -> None:
    """Add what one block has of the least squares of tr(C (M - T) C (M - T)), for every kind of unit: tr(C A C B) for
    queries A and B, and tr(C A C T) for T the aim, or with C T C given as ``around``."""
    beside = covariance[:, None] @ matrices[None]
    gram += np.einsum("kqij,krji->kqr", beside, beside, optimize=True)
    inner = covariance @ aim @ covariance if aim is not None else around
    right += np.einsum("qij,kji->kq", matrices, inner, optimize=True)


def _nonnegative(gram: Array, right: Array) -> Array:
    """For each kind of unit the numbers w >= 0 with the least w'G w/2 - w'b."""
    found = np.zeros_like(right)
    for kind, (matrix, aim) in enumerate(zip(gram, right, strict=True)):
        scale = np.sqrt(np.diagonal(matrix))
        told = scale > 0
        if not told.any():
            continue
        scaled = matrix[np.ix_(told, told)] / np.outer(scale[told], scale[told])
        values, vectors = np.linalg.eigh(scaled)
        root = np.sqrt(values[values > _TINY])
        vectors = vectors[:, values > _TINY]
        solution, _ = optimize.nnls(root[:, None] * vectors.T, vectors.T @ (aim[told] / scale[told]) / root)
        found[kind, told] = solution / scale[told]
    return found
