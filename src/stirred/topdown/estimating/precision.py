"""Variances of estimates from the plan and geography alone, and what follows: expected errors, estimates, weights.

A :class:`Design` splits the asked margin into blocks and works out the covariance matrices of each over the tree; an
:class:`Answer` adds the measured values, projected on these blocks in ranges of units.

The invariant a reader must know: blocks are uncorrelated, so variances of a form add up over blocks, and within a block
over its copies.

Expected errors of a plan's queries, each alone and all combined, are known before anything is measured; so are those of
*target areas*, such as districts and precincts: columns of the list of geounits, named under ``[[targets]]`` of the
plan. The error of an area is that of the best linear unbiased estimate from all measurements, whatever units it is put
together from: its vector is carried up the tree (:meth:`stirred.margins.areas.Overlap.covariances`). Every area is
worked out, and nothing is sampled. No count is read, so that all of it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._progress import stage
from stirred.margins.areas import Areas, Overlap
from stirred.margins.margin_blocks import Array, Margin, MarginGroups, Split, representatives
from stirred.margins.spine import Index, Shapes, Spine
from stirred.margins.tree import BlockTree, Upward
from stirred.topdown.data.histograms import Counts
from stirred.topdown.measuring import BatchedMeasurements, Entry, entries, parts
from stirred.topdown.plan.fields import TopDownPlan

LEAST = 1e-6
"""Smaller variances are taken for this one: such noise is never met, and no digits are lost on it."""

LARGEST = 512
"""Numbers that recodes may tie together in a unit."""

_HELD = 1 << 22
"""Numbers that are held for many kinds of units at a time."""


@dataclass(frozen=True, eq=False)
class MeasuredQuery:
    """What was measured of one query at one level."""

    entry: Entry
    margin: Margin

    @property
    def parameter(self) -> float:
        """The parameter of the noise that the release states as its variance."""
        return float(Fraction(self.entry.variance))

    @property
    def variance(self) -> float:
        """The variance to compute with: the parameter, but at least ``LEAST``."""
        return max(LEAST, self.parameter)


@dataclass(frozen=True, eq=False)
class Design:
    """An asked margin of a table, what is known of it by level, and the trees of its blocks."""

    spine: Spine
    shapes: Shapes
    asked: Margin
    split: Split
    measured: tuple[tuple[MeasuredQuery, ...], ...]
    """By level."""
    fixed: tuple[tuple[tuple[int, Margin], ...], ...]
    """By level the invariants that are taken into account: their number in the plan, and their margin."""
    trees: tuple[BlockTree, ...]
    information: tuple[Mapping[tuple[str, ...], Array], ...]
    """By block, A'A of each margin that measurements and invariants are about, by the margin's names."""

    @classmethod
    def of(
        cls,
        plan: TopDownPlan,
        spine: Spine,
        table: str,
        by: Sequence[str] = (),
        where: Mapping[str, Sequence[str]] | None = None,
        invariants: Sequence[int] | None = None,
        shapes: Shapes | None = None,
        most: int | None = None,
    ) -> Design:
        """``invariants`` are the numbers of those in the plan whose values will be given, by default all of the table;
        ``most`` limits the numbers that all covariance matrices may have together."""
        shapes = shapes or Shapes.of(spine)
        schema = plan.table(table).schema_of
        asked = Margin.of(schema, by, where)
        here = [MeasuredQuery(one, Margin.of(schema, one.by)) for one in entries(plan, spine) if one.table == table]
        measured = tuple(tuple(one for one in here if one.entry.level == level) for level in spine.levels)
        own = ((number, one) for number, one in enumerate(plan.invariants) if one.table == table)
        chosen = [(number, one) for number, one in own if invariants is None or number in invariants]
        fixed = tuple(
            tuple((number, Margin.of(schema, one.by)) for number, one in chosen if one.level == level)
            for level in spine.levels
        )
        every = [one.margin for one in here] + [margin for level in fixed for _, margin in level]
        known = list({margin.names: margin for margin in every}.values())
        # Groups that overlap do not add up to the margin without them, which shares are of.
        loose = [name for name in asked.names if schema.overlapping((name,))]
        without = [some for number in range(1, len(loose) + 1) for some in combinations(loose, number)]
        coarser = [Margin.of(schema, [one for one in asked.names if one not in some], where) for some in without]
        split = Split.of(table, [asked, *coarser], known, LARGEST)
        kinds = sum(len(level) for level in shapes.below)
        if most is not None and kinds * sum(block.size**2 for block in split.blocks) > most:
            raise errors.estimate_too_wide(table, kinds * max(block.size for block in split.blocks), most)
        information = tuple({margin.names: block.information(margin) for margin in known} for block in split.blocks)
        trees = _trees(spine, shapes, split, measured, fixed, information)
        return cls(spine, shapes, asked, split, measured, fixed, trees, information)

    def told_by_leaves(self) -> float:
        """Which part of what is known of a unit above the leaves its leaves tell, in the direction in which that is
        most; the mean over all units of that level."""
        level = len(self.spine.levels) - 2
        most = np.zeros(len(self.shapes.below[level]))
        for tree in self.trees:
            shares = np.linalg.eigvals(tree.covariance[level] @ tree.precision_below[level]).real
            most = np.maximum(most, shares.max(axis=1))
        return float(most[self.shapes.below[level].of_unit].mean())

    def without_leaves(self) -> Design:
        """The same design with nothing measured of the leaves."""
        measured: tuple[tuple[MeasuredQuery, ...], ...] = (*self.measured[:-1], ())
        trees = _trees(self.spine, self.shapes, self.split, measured, self.fixed, self.information)
        return replace(self, measured=measured, trees=trees)

    def numbers(self, level: int) -> int:
        """How many numbers a level has in all blocks."""
        return self.spine.units(level) * self.split.numbers

    # -- variances -------------------------------------------------------------------------------------------

    def variances(self, level: int) -> Array:
        """The variance of every asked group in every unit of a level; infinite where nothing is measured."""
        found = self.split.variances(self.asked, [tree.covariances_of(level) for tree in self.trees])
        spread = self.asked.spread(found)[self.shapes.everywhere[level].of_unit]
        unknown = np.array([self.unknown(at) for at in range(level + 1)])
        spread[unknown[self._tops[level]]] = np.inf
        return spread

    def typical_variances(self) -> list[float]:
        """By level, the median over its units of the largest variance of an asked group; infinite where nothing tells.

        Variances are worked out once for each kind of unit and for each set of groups that must have the same one, and
        in parts of the tree: memory is that of one number for each kind of unit.
        """
        few, _ = representatives(self.asked, self.split.axes)
        largest = [np.empty(len(kinds)) for kinds in self.shapes.everywhere]
        held = sum(block.size**2 for block in self.split.blocks) + math.prod(len(factor) for factor in few.factors)
        for level, kinds, matrices in self._by_parts(max(1, _HELD // held)):
            largest[level][kinds] = self.split.variances(few, matrices).max(axis=1)
        found = []
        for level, kinds_here in enumerate(self.shapes.everywhere):
            many = np.bincount(kinds_here.of_unit, minlength=len(kinds_here))
            order = np.argsort(largest[level])
            median = largest[level][order][np.searchsorted(np.cumsum(many[order]), many.sum() / 2)]
            found.append(math.inf if self.unknown(level).any() else float(median))
        return found

    def _by_parts(self, step: int) -> Iterator[tuple[int, slice, list[Array]]]:
        """The covariance matrices of each block for all kinds of units, in ranges of at most ``step`` kinds of a level;
        only one range of each level is held at a time."""
        first_kind = [self.shapes.first_kind(self.spine, level) for level in range(1, len(self.spine.levels))]

        def under(level: int, kinds: slice, matrices: list[Array]) -> Iterator[tuple[int, slice, list[Array]]]:
            yield level, kinds, matrices
            if level < len(first_kind):
                begin, end = first_kind[level][kinds.start], first_kind[level][kinds.stop]
                for start in range(begin, end, step):
                    some = slice(start, min(start + step, end))
                    yield from under(
                        level + 1,
                        some,
                        [
                            tree.covariances_under(level + 1, some, known, kinds.start)
                            for tree, known in zip(self.trees, matrices, strict=True)
                        ],
                    )

        return under(0, slice(0, len(self.shapes.everywhere[0])), [tree.covariance[0] for tree in self.trees])

    def variances_of_sum(self, units: Mapping[int, Index]) -> Array:
        """The variance of every asked group in the union of some units of each level."""
        totals = []
        for tree in self.trees:
            found = tree.covariances(units)
            totals.append(sum(found[level][some].sum(axis=0) for level, some in units.items())[None])
        spread = self.asked.spread(self.split.variances(self.asked, totals))
        for level in units:
            spread[:, self.unknown(level)] = np.inf
        return spread

    def unknown(self, level: int, margin: Margin | None = None) -> NDArray[np.bool_]:
        """Which groups, by default the asked ones, have no estimate in a unit of this level that is not an only
        child."""
        margin = margin or self.asked
        found = self.split.unseen(margin, [tree.known[level].unknown for tree in self.trees])
        return np.asarray(margin.spread(found[None].astype(np.float64))[0] > 0)

    def covariances_among(self, level: int, units: Index, one: MarginGroups, other: MarginGroups) -> Array:
        """The covariance of one group in each of some units of a level with another group in each of them."""
        total = np.zeros((len(units), len(units)))
        for tree, block in zip(self.trees, self.split.blocks, strict=True):
            factor = float(block.products(*one, *other)[0])
            if factor:
                left, right = (
                    np.repeat(block.loadings(margin)[0][groups], len(units), axis=0) for margin, groups in (one, other)
                )
                total += factor * tree.covariances_among(level, units, left, right)
        return total

    def between(self, places: Sequence[Mapping[int, Index]]) -> list[list[list[Array]]]:
        """For every two of some unions of units and each block, the covariance of their vectors."""
        found: list[list[list[Array]]] = [[[] for _ in places] for _ in places]
        for tree in self.trees:
            for second, units in enumerate(places):
                with_all = tree.covariances(units)
                for first, others in enumerate(places):
                    added = sum(with_all[level][some].sum(axis=0) for level, some in others.items())
                    found[first][second].append(np.asarray(added)[None])
        return found

    @cached_property
    def _tops(self) -> list[Index]:
        """By level and unit, the level of the highest ancestor that is the same place."""
        found = [np.zeros(self.spine.units(0), dtype=np.int64)]
        for level in range(1, len(self.spine.levels)):
            top = np.full(self.spine.units(level), level, dtype=np.int64)
            only = self.shapes.only[level]
            top[only] = found[-1][self.spine.parents(level)[only]]
            found.append(top)
        return found

    def plain_sums(self, level: int, variances: Array, units: int | Index = 1) -> tuple[Array, Array]:
        """Where an estimate is a plain sum of values of one query of a level: the noise's parameter, and how many.

        The best estimate is unique, so it is such a sum if its variance is that of the sum; ``units`` is the number of
        units of the level that a place consists of.
        """
        parameter, terms = np.zeros_like(variances), np.zeros_like(variances)
        for one in self.measured[level]:
            number = self.asked.spread(self.asked.sums_of(one.margin)[None]) * units
            plain = (number > 0) & np.isclose(variances, number * one.variance, rtol=1e-9, atol=0)
            parameter = np.where(plain, one.parameter, parameter)
            terms = np.where(plain, number, terms)
        return parameter, terms

    # -- weights ---------------------------------------------------------------------------------------------

    def weights(self, units: Mapping[int, Index]) -> Iterator[tuple[MeasuredQuery, slice, Array]]:
        """The weight of every measured value in the estimate of the one asked group in a union of units."""
        assert self.asked.groups == 1
        form = self.split.projected(self.asked, np.ones((1, 1)))
        tensors = [np.zeros((self.spine.units(level), *self.split.shape)) for level in range(len(self.spine.levels))]
        for tree, block in zip(self.trees, self.split.blocks, strict=True):
            for tensor, numbers in zip(tensors, tree.covariances(units, block.take(form)[0]), strict=True):
                block.put(tensor, numbers)
        for tensor, level in zip(tensors, self.measured, strict=True):
            for one in level:
                for some in parts(one.entry.units, one.entry.cells):
                    yield one, some, self.split.told(one.margin, tensor[some]) / one.variance


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """A design with the measured values: means of every block, kept down to the level ``deepest``."""

    design: Design
    deepest: int
    upward: tuple[Upward, ...]

    @classmethod
    def of(
        cls, design: Design, measurements: BatchedMeasurements, exact: Sequence[Counts | None], deepest: int
    ) -> Answer:
        """Read every query of the table once, in batches, and go up the trees.

        Values of leaves are added up over their parents where no one asks for leaves: all leaves have the same
        matrices, and there are too many of them to hold.
        """
        spine, leaf = design.spine, len(design.spine.levels) - 1
        summed = deepest < leaf
        held = [spine.units(min(level, leaf - 1) if summed else level) for level in range(leaf + 1)]
        weighted = [np.zeros((units, *design.split.shape)) for units in held]
        places = {one.entry: (number, one) for number, level in enumerate(design.measured) for one in level}
        for entry, units, values in measurements.batches(list(places)):
            number, one = places[entry]
            if summed and number == leaf:
                units, values = _by_parent(spine, leaf, units, values)
            weighted[number][units] += design.split.projected(one.margin, values) / one.variance
        fixed = []
        for number, level in enumerate(design.fixed):
            own = [(margin, told) for at, margin in level if (told := exact[at]) is not None]
            given = [design.split.projected(margin, told) for margin, told in own]
            if summed and number == leaf:
                given = [np.add.reduceat(one, spine.first_child[leaf - 1][:-1]) for one in given]
            fixed.append(given)
        upward = []
        stage("combining the measurements of all levels")
        for block, tree in zip(design.split.blocks, design.trees, strict=True):
            rights = {level: block.take(tensor) for level, tensor in enumerate(weighted)}
            known = {level: [block.take(tensor) for tensor in tensors] for level, tensors in enumerate(fixed)}
            upward.append(tree.up(rights, known, deepest, summed))
        return cls(design, deepest, tuple(upward))

    def values(self, level: int) -> Array:
        """The estimate of every asked group in every unit of a level."""
        design = self.design
        tensor = np.zeros((design.spine.units(level), *design.split.shape))
        for block, tree, upward in zip(design.split.blocks, design.trees, self.upward, strict=True):
            block.put(tensor, tree.down(upward, level))
        return design.split.told(design.asked, tensor)


def _trees(
    spine: Spine,
    shapes: Shapes,
    split: Split,
    measured: Sequence[Sequence[MeasuredQuery]],
    fixed: Sequence[Sequence[tuple[int, Margin]]],
    information: Sequence[Mapping[tuple[str, ...], Array]],
) -> tuple[BlockTree, ...]:
    """Least squares over the tree of places, for each block of the margins."""
    found = []
    for number, (block, told) in enumerate(zip(split.blocks, information, strict=True)):
        stage("computing how precise the estimates are", number / len(information))
        measures = [[(told[one.margin.names], one.variance) for one in level] for level in measured]
        exact = [[told[margin.names] for _, margin in level] for level in fixed]
        found.append(BlockTree.of(spine, shapes, block.size, measures, exact))
    return tuple(found)


def _by_parent(
    spine: Spine, level: int, units: slice | Index, values: NDArray[np.integer]
) -> tuple[Index, NDArray[np.int64]]:
    """Values of some units of a level added up over their parents: the parents, and the sums."""
    numbers = np.arange(units.start, units.stop) if isinstance(units, slice) else units
    parents = spine.parents_of(level, numbers)
    if np.any(np.diff(parents) < 0):
        order = np.argsort(parents, kind="stable")
        parents, values = parents[order], values[order]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    return parents[starts], np.add.reduceat(values, starts, dtype=np.int64)


@dataclass(frozen=True)
class TargetError:
    """The expected standard error of one query in the areas of one sort: of the largest cell, by area."""

    target: str
    table: str
    query: str
    areas: int
    on_spine: int
    """Areas that are one unit of the spine."""
    on_median: float | None
    """The median over these; None where there are none, or recodes tie too many numbers together."""
    off_median: float | None
    """The median over the other areas."""
    off_largest: float | None
    units_median: float
    """Over the other areas: units that are added or subtracted."""
    units_largest: int
    worst: str
    """The area with the largest error."""


@dataclass(frozen=True, eq=False)
class Target:
    """Areas of one sort, what they have in common with units of the spine, and how many units each takes."""

    areas: Areas
    overlap: Overlap
    distances: Any

    @classmethod
    def of(cls, spine: Spine, areas: Areas) -> Target:
        """The areas on a spine."""
        overlap = Overlap.of(spine, areas.of_leaf, len(areas))
        return cls(areas, overlap, overlap.distances())


def area_variances(design: Design, overlap: Overlap) -> Array:
    """By area, the largest variance of an asked group; infinite where nothing tells it, 0 for an area without leaves.

    Variances are worked out for each set of groups that must have the same one, and for a range of areas at a time.
    """
    few, _ = representatives(design.asked, design.split.axes)
    found = np.zeros(overlap.areas)
    for some in overlap.ranges(max(block.size for block in design.split.blocks)):
        matrices = [overlap.covariances(tree, some)[0] for tree in design.trees]
        found[some] = design.split.variances(few, matrices).max(axis=1)
    unknown = np.array([design.unknown(level).any() for level in range(len(design.spine.levels))])
    return np.where(unknown[overlap.deepest()] & (overlap.leaves > 0), math.inf, found)


def target_error(target: Target, table: str, query: str, design: Design | None) -> TargetError:
    """The expected errors of a query in the areas of one sort; None stands for a design that is too wide."""
    distances = target.distances
    on = distances == 1
    spread = None if design is None else np.sqrt(area_variances(design, target.overlap))
    worst = int(np.argmax(distances if spread is None else spread)) if len(on) else -1
    return TargetError(
        target=target.areas.name,
        table=table,
        query=query,
        areas=len(on),
        on_spine=int(on.sum()),
        on_median=_median(spread, on),
        off_median=_median(spread, ~on),
        off_largest=None if spread is None or on.all() else float(spread[~on].max()),
        units_median=float(np.median(distances[~on])) if not on.all() else 1.0,
        units_largest=int(distances.max(initial=0)),
        worst=target.areas.names[worst].as_py() if worst >= 0 else "",
    )


def _median(spread: Array | None, some: Any) -> float | None:
    """The lower median, so that a number of infinite errors does not hide the others."""
    if spread is None or not some.any():
        return None
    chosen = np.sort(spread[some])
    return float(chosen[(len(chosen) - 1) // 2])


@dataclass(frozen=True)
class ExpectedError:
    """The standard error of one cell of a query in one unit of a level."""

    table: str
    level: str
    query: str
    cells: int
    rho: str
    measured: float
    """As the query is measured by itself."""
    combined: float | None
    """Of the best linear unbiased estimate from all queries of all levels and the invariants: the median over units
    of the largest cell. None where recodes tie too many numbers together."""


def expected_errors(plan: TopDownPlan, spine: Spine) -> tuple[ExpectedError, ...]:
    """The expected error of every query at every level; needs no data."""
    return errors_with_targets(plan, spine, ())[0]


def errors_with_targets(
    plan: TopDownPlan, spine: Spine, targets: Sequence[Target]
) -> tuple[tuple[ExpectedError, ...], tuple[TargetError, ...]]:
    """The expected error of every query at every level, and in target areas of every sort; needs no data."""
    shapes = Shapes.of(spine)
    at_levels: list[ExpectedError] = []
    in_targets: list[TargetError] = []
    for table in plan.released:
        combined: dict[str, list[float]] = {}
        for query in table.queries:  # one design at a time: those of a nation take gigabytes
            design: Design | None = None
            try:
                design = Design.of(plan, spine, table.name, query.by, shapes=shapes)
            except errors.StirredError as refusal:
                if refusal.kind != "estimate-too-wide":
                    raise
            else:
                combined[query.name] = [math.sqrt(variance) for variance in design.typical_variances()]
            in_targets += [target_error(one, table.name, query.name, design) for one in targets]
        for number, level in enumerate(spine.levels):
            for query in table.queries:
                rho = table.rho_of(level, query)
                variance = table.variance_of(level, query, plan.one_place(level))
                at_levels.append(
                    ExpectedError(
                        table.name,
                        level,
                        query.name,
                        table.schema_of.number_of_groups(query.by),
                        str(rho),
                        math.inf if variance is None else math.sqrt(variance),
                        combined[query.name][number] if query.name in combined else None,
                    )
                )
    return tuple(at_levels), tuple(in_targets)
