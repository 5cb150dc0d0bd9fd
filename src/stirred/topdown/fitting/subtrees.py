"""What each unit's own measurements and all below it tell of its table: the first half of a fit, up the tree.

Let c be the best linear unbiased value of a unit's table x from its subtree alone and C its covariance
(:mod:`stirred.margins.tree`). The measurements of the whole tree, minimised over everything below the children k
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._progress import stage
from stirred._threads import ahead
from stirred.margins.margin_blocks import Array, Margin, contracted
from stirred.margins.schema import Family
from stirred.margins.spine import Index, Spine
from stirred.topdown.data.histograms import Counts
from stirred.topdown.estimating.precision import LARGEST, Design, MeasuredQuery
from stirred.topdown.fitting.level_problem import Measured, separates
from stirred.topdown.measuring import Measurements
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TableSection

CHUNK = 1 << 24
"""Measured values that are held at a time; more numbers than this of a level are kept in a file."""

MOST_MATRICES = 1 << 25
"""Numbers that the covariance matrices of all kinds of units may have together."""

WORTH_READING = 0.05
"""Leaves are most of all measurements, and take the time that reading takes. They are left out where they tell less
than this part of what is known of the units above them (:meth:`Design.told_by_leaves`)."""

LEAST_DETAIL = 1e-3
"""The least part of all weight that the queries have which separate all cells, where there are such queries."""

_HELD = 1 << 22
_TINY = 1e-12
_NOISE = 1e-10
_SWEEPS = 200
_SETTLED = 1e-6

Told = dict[tuple[str, ...], Measured]
"""What a fit is near to, by the names of each query; a query whose groups overlap is there several times, with a number
after its names."""


def measured_families(
    names: tuple[str, ...], families: Sequence[Family], weight: float | Array, values: NDArray[Any]
) -> Told:
    """What was measured of a query, as sets of groups that do not overlap."""
    if len(families) == 1 and len(families[0].columns) == values.shape[1]:
        return {names: Measured(families[0].groups, weight, values)}
    return {
        (*names, str(number)): Measured(one.groups, weight, np.ascontiguousarray(values[:, one.columns]))
        for number, one in enumerate(families)
    }


def whole_design(plan: TopDownPlan, spine: Spine, table: TableSection) -> Design:
    """The design of all cells of a table, with the invariants of its plan.

    Raises ``estimate-too-wide`` where recodes, or units with many kinds of subtrees, tie too many numbers together.
    """
    names = tuple(attribute.name for attribute in table.attributes)
    if any(not isinstance(factor, np.ndarray) for factor in Margin.of(table.schema_of, names).factors):
        # An attribute of thousands of values has no matrices, by which values are taken to blocks and back here.
        raise errors.estimate_too_wide(table.name, max(table.schema_of.shape), LARGEST)
    return Design.of(plan, spine, table.name, names, most=MOST_MATRICES)


def _matrices(margin: Margin) -> list[Array]:
    """The factors of a margin of a table whose attributes have few values each."""
    return [factor for factor in margin.factors if isinstance(factor, np.ndarray)]


@dataclass(frozen=True, eq=False, repr=False)
class Subtrees:
    """The values c of a table for every unit above the leaves, and what they weigh."""

    table: TableSection
    design: Design
    values: tuple[Array, ...]
    """By level but the last, a row for each unit and a column for each cell."""

    def __repr__(self) -> str:
        return f"<Subtrees of {self.table.name}: {len(self.values)} levels above the leaves>"

    @classmethod
    def of(
        cls,
        table: TableSection,
        design: Design,
        exact: Sequence[Counts],
        measurements: Measurements,
    ) -> Subtrees:
        """Go up the tree once, reading every measurement in ranges of units; the design is :func:`whole_design`."""
        spine = design.spine
        above = range(len(spine.levels) - 1)
        if above and design.told_by_leaves() < WORTH_READING:
            design = design.without_leaves()
        rooms = tuple(_room((spine.units(level), table.schema_of.cells)) for level in above)
        upward = _Upward(table, design, measurements, exact, rooms)
        for level in reversed(above):
            stage(f"least squares of {table.name} at level '{spine.levels[level]}'", 0.0)
            upward.fill(level)
        return cls(table, design, rooms)

    def measured(self, level: int, units: slice, by: tuple[str, ...]) -> tuple[Told, Told]:
        """What to fit some units of a level above the leaves to: the queries of :meth:`queries` with the weights of the
        whole table, and those of them that are about attributes of ``by`` only with the weights of the margin by
        these."""
        schema = self.table.schema_of
        cells = np.asarray(schema.by_axes(self.values[level][units]))
        kinds = self.design.shapes.below[level].of_unit[units]
        weights, few = self._weights[level], self._margin_weights(level, by)
        queries = self.queries(level)
        told = [margin.spread(contracted(cells, [factor.T for factor in _matrices(margin)])) for _, margin in queries]
        families = [schema.families(names) for names, _ in queries]
        names = [by for by, _ in queries]
        whole: Told = {}
        for at in range(len(queries)):
            whole |= measured_families(names[at], families[at], weights[kinds, at], told[at])
        part: Told = {}
        for place, at in enumerate(self._inside(level, by)):
            part |= measured_families(names[at], families[at], few[kinds, place], told[at])
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
            at
            for at, (names, _) in enumerate(self.queries(level))
            if {base for name in names for base in schema.bases(name)} <= set(by)
        ]

    # -- weights ---------------------------------------------------------------------------------------------

    @cached_property
    def _weights(self) -> list[Array]:
        """By level but the last, the weight of each query for each kind of unit from below."""
        found = []
        for level in range(len(self.values)):
            queries = self.queries(level)
            own = self._own(level)
            gram = np.zeros((len(self.design.shapes.below[level]), len(queries), len(queries)))
            right = np.zeros(gram.shape[:2])
            for known, tree in zip(self.design.information, self.design.trees, strict=True):
                matrices = np.stack([known[names] for names, _ in queries])
                covariance = tree.covariance[level]
                _add_products(gram, right, matrices, covariance, covariance @ tree.precision_below[level] @ covariance)
            weights = own + _nonnegative(gram, right)
            schema = self.table.schema_of
            detailed = [at for at, (by, _) in enumerate(queries) if separates(schema.families(by)[0].groups)]
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
            shared = np.zeros((len(sample), len(sample)))
            for family in schema.families(queries[at][0]):
                groups = family.groups[sample]
                shared += (groups[:, None] == groups) & (groups >= 0)
            parts.append(shared)
        matrices = np.stack(parts)
        told = np.einsum("q,qij->ij", own, matrices)
        gram, aims = np.zeros((kinds, len(inside), len(inside))), np.zeros((kinds, len(inside)))
        _add_products(gram, aims, matrices, covariance, covariance - covariance @ told @ covariance)
        return np.asarray(own + _nonnegative(gram, aims))

    def _own(self, level: int) -> Array:
        """The precision with which each query is measured at a level itself."""
        precision: dict[tuple[str, ...], float] = {}
        for one in self.design.measured[level]:
            precision[one.entry.by] = precision.get(one.entry.by, 0.0) + 1 / one.variance
        return np.array([precision.get(names, 0.0) for names, _ in self.queries(level)])


@dataclass(frozen=True, eq=False, repr=False)
class _Upward:
    """The way up the tree: rooms are filled from the lowest level on."""

    table: TableSection
    design: Design
    measurements: Measurements
    exact: Sequence[Counts]
    rooms: tuple[Array, ...]

    def fill(self, level: int) -> None:
        """The values of a level's units, from their own measurements and their children's values."""
        spine, room = self.design.spine, self.rooms[level]
        edges = spine.first_child[level]
        lowest = level == len(self.rooms) - 1
        if lowest:  # the room then holds what was measured of the leaves, added up over each parent
            room[:] = 0
            self._add_leaves(room)
        back = [axis.basis.T for axis in self.design.split.axes]
        for first, last in ranges(np.diff(edges) if not lowest else np.ones_like(edges[1:]), room.shape[1]):
            units = slice(first, last)
            children = slice(int(edges[first]), int(edges[last]))
            starts = edges[first:last] - children.start
            if lowest:
                # All leaves have the same matrices, so that their values can be had of sums as of themselves.
                known = [np.add.reduceat(one[children], starts) for one in self._exact(level + 1)]
                added = self._means(level + 1, edges[first:last], self._in_blocks(room[units]), None, known)
            else:
                added = self._in_blocks(np.add.reduceat(self.rooms[level + 1][children], starts, axis=0))
            known = [one[units] for one in self._exact(level)]
            weighted = self._in_blocks(self._weighted(level, units))
            means = self._means(level, np.arange(first, last), weighted, added, known)
            room[units] = self.table.schema_of.by_cells(contracted(means, back)).reshape(last - first, -1)

    def _add_leaves(self, room: Array) -> None:
        """Add up A'V^-1 y of the leaves of every parent, by cells."""
        level = len(self.rooms)
        edges = self.design.spine.first_child[level - 1]

        def read() -> Iterator[tuple[int, MeasuredQuery, Array]]:
            for one in self.design.measured[level]:
                for units, given in self.measurements.stored_parts(one.entry):
                    first = int(np.searchsorted(edges, units.start, side="right")) - 1
                    last = int(np.searchsorted(edges, units.stop, side="left"))
                    starts = np.maximum(edges[first:last] - units.start, 0)
                    yield first, one, np.add.reduceat(given, starts, axis=0) / one.variance

        for first, one, added in ahead(read()):
            self._add(room[first : first + len(added)], one.margin, added)

    def _weighted(self, level: int, units: slice) -> Array:
        """A'V^-1 y of some units, by cells."""
        found = np.zeros((units.stop - units.start, self.table.schema_of.cells))
        for one in self.design.measured[level]:
            self._add(found, one.margin, self.measurements.values(one.entry, units) / one.variance)
        return found

    def _add(self, found: Array, margin: Margin, values: Array) -> None:
        """Add to each cell the value of its group."""
        tensor = margin.arranged(values)
        # An attribute that the query is not by has one group, which numpy spreads over all values by itself.
        spreading = [factor if len(factor) > 1 else np.ones((1, 1)) for factor in _matrices(margin)]
        schema, added = self.table.schema_of, contracted(tensor, spreading)
        if len(schema.axes) < len(schema.shape):
            added = np.asarray(schema.by_cells(np.broadcast_to(added, (len(added), *schema.axis_shape))))
        found.reshape(-1, *schema.shape)[...] += added

    def _exact(self, level: int) -> list[Counts]:
        return [self.exact[number] for number, _ in self.design.fixed[level]]

    def _in_blocks(self, cells: Array) -> Array:
        tensor = np.asarray(self.table.schema_of.by_axes(cells))
        return contracted(tensor, [axis.basis for axis in self.design.split.axes])

    def _means(self, level: int, units: Index, weighted: Array, added: Array | None, fixed: Sequence[Counts]) -> Array:
        """The values c in the basis of the blocks, from A'V^-1 y, the sums of the children's and the invariants."""
        design = self.design
        margins = [margin for _, margin in design.fixed[level]]
        exact = [design.split.projected(margin, given) for margin, given in zip(margins, fixed, strict=True)]
        found = np.empty_like(weighted)
        for block, tree in zip(design.split.blocks, design.trees, strict=True):
            below = None if added is None else block.take(added)
            mean = tree.mean(level, units, block.take(weighted), below, [block.take(one) for one in exact])
            block.put(found, mean)
        return found


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


def _add_products(gram: Array, right: Array, matrices: Array, covariance: Array, aim: Array) -> None:
    """Add what one block has of the least squares of tr(C (M - T) C (M - T)), for every kind of unit: tr(C A C B) for
    queries A and B, and tr(A C T C), where ``aim`` is C T C."""
    step = max(1, _HELD // matrices.size)
    for start in range(0, len(covariance), step):
        kinds = slice(start, start + step)
        beside = covariance[kinds, None] @ matrices[None]
        # What an invariant fixes has a covariance of rounding errors.
        largest = np.abs(covariance[kinds]).max(axis=(1, 2))[:, None] * np.abs(matrices).max(axis=(1, 2))
        nothing = np.abs(beside).max(axis=(2, 3)) <= _NOISE * largest
        beside[nothing] = 0
        gram[kinds] += np.einsum("kqij,krji->kqr", beside, beside, optimize=True)
        right[kinds] += np.where(nothing, 0.0, np.einsum("qij,kji->kq", matrices, aim[kinds], optimize=True))


def _nonnegative(gram: Array, right: Array) -> Array:
    """For each kind of unit the numbers w >= 0 with the least w'G w/2 - w'b, nearly: by their equations where these
    have such a solution, and elsewhere from there by coordinate descent."""
    scale = np.sqrt(np.maximum(np.einsum("kqq->kq", gram), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = gram * inverse[:, :, None] * inverse[:, None, :]
    aims = right * inverse
    found = np.maximum((np.linalg.pinv(scaled, rcond=_TINY, hermitian=True) @ aims[:, :, None])[:, :, 0], 0.0)
    found *= scale > 0
    for _ in range(_SWEEPS):
        before = found.copy()
        for at in range(found.shape[1]):
            slope = np.einsum("kq,kq->k", scaled[:, at], found) - aims[:, at]
            found[:, at] = np.where(scale[:, at] > 0, np.maximum(found[:, at] - slope, 0.0), 0.0)
        if np.abs(found - before).max(initial=0) <= _SETTLED * np.abs(found).max(initial=0):
            break
    return np.asarray(found * inverse)
