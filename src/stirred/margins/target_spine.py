"""Proposes a spine that serves areas off the administrative one: places, districts, precincts.

Inside every unit of a chosen level the children become its intersections with the target areas; further down the
administrative units are cut by these. With ``groups="even"`` the last level above the blocks is that of the optimised
block groups of the 2020 Census: blocks of a unit that lie in the same target areas, divided evenly into groups of at
most int(sqrt(n) + fan_out + 1), n the number of blocks in the unit (Cumings-Menon et al., arXiv 2203.16654).

Where a unit has one child, the two are the same place, measured at two levels. The least squares fit knows that they
are, and gives them the precision of both measurements together, which is that of one measurement with both budgets. The
2020 system does the same by giving the child's budget to the parent.

The invariant a reader must know: only the list of blocks is read, and the same blocks give the same spine in whatever
order they are listed. Work is linear in blocks, but for sorting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred.margins.areas import Areas, Overlap
from stirred.margins.spine import Index, Spine, build_spine
from stirred.tables.columns import Column, as_text

FAN_OUT = 12
"""Added to the root of the number of blocks; that of the 2020 production code."""
Groups = Literal["parts", "even"]
GROUPS: tuple[Groups, ...] = ("parts", "even")


@dataclass(frozen=True, eq=False)
class ProposedSpine:
    """A spine for target areas, beside the administrative one that it was made from."""

    before: Spine
    after: Spine
    columns: tuple[Column, ...]
    """The levels of the new spine, a row for each block; then the other columns of the list."""
    targets: tuple[Areas, ...]
    """The target areas, and the units of administrative levels that are no longer on the spine; by block in the order
    of the administrative spine."""
    leaf_after: Index
    """For each block in the order of the administrative spine, its number in the new one."""

    def distances(self, areas: Areas) -> tuple[Index, Index]:
        """By area, how many units are added and subtracted to get it: on the administrative spine, and on this one."""
        moved = np.empty_like(areas.of_leaf)
        moved[self.leaf_after] = areas.of_leaf
        before = Overlap.of(self.before, areas.of_leaf, len(areas)).distances()
        return before, Overlap.of(self.after, moved, len(areas)).distances()


def propose_spine(
    levels: Sequence[Column],
    targets: Sequence[Sequence[Column]],
    inside: str | None = None,
    *,
    groups: Groups = "parts",
    fan_out: int = FAN_OUT,
) -> ProposedSpine:
    """A spine from the administrative levels of a list of blocks, coarsest first, and the target areas of each block.

    Each group of ``targets`` is one level of the new spine: the intersections of all its columns. A null stands for a
    block in no area. ``inside`` is the level whose units are divided, by default the second if there are four or more
    levels, else the first.
    """
    names = [column.name for column in levels]
    if len(names) < 2:
        raise errors.spine_question("The list of blocks", "must have at least two levels, the last that of the blocks")
    inside = inside or names[1 if len(names) >= 4 else 0]
    if inside not in names[:-1]:
        raise errors.spine_question(
            f"The level to divide, '{inside}',", f"must be one of {errors.listed(names[:-1], 'or')}"
        )
    if groups not in GROUPS:
        raise errors.spine_question(f"The groups {groups!r}", "must be 'parts' or 'even'")
    if fan_out < 0:
        raise errors.spine_question("The fan-out", "cannot be negative")
    if not targets or not all(targets):
        raise errors.spine_question("The target areas", "must be given: at least one column of the list")
    chosen = [column.name for group in targets for column in group]
    twice = [name for name in chosen if chosen.count(name) > 1 or name in names]
    if twice:
        raise errors.spine_question(f"The column '{twice[0]}'", "can be a level or a target area, and only once")
    before, leaf = build_spine(names, levels)
    _require_once(before, leaf)
    row = np.empty(before.leaves, dtype=np.int64)
    row[leaf] = np.arange(len(leaf))  # every array below has an entry for each block, in the order of the spine
    work = _Making(before, row, {*names, *chosen})
    at = names.index(inside)
    for level in range(at + 1):
        work.keep(level)
    middle = list(range(at + 1, len(names) - 1))
    alone = groups == "even" and len(middle) == 1 and len(targets) == 1
    numbered = [f"area_{number}" for number in range(1, len(targets) + 1)] if len(targets) > 1 else ["area"]
    sets = np.zeros(before.leaves, dtype=np.int64)
    for name, group in zip(numbered, targets, strict=True):
        for column in group:
            codes = column.codes[row].astype(np.int64)
            sets = _joined(sets, np.where(_is_null(column)[codes], -1, codes) + 1)
        if not alone:
            work.divide(name, sets)
    for level in middle:
        if groups == "even" and level == middle[-1]:
            work.divide(f"{names[level]}_optimised", _evenly(work.unit, sets, fan_out))
        else:
            work.cut(level)
    return work.finish([column for group in targets for column in group], [names[level] for level in middle], row)


class _Making:
    """A spine in the making: the levels so far, and the unit of the last of them in which each block lies."""

    def __init__(self, before: Spine, row: Index, taken: set[str]) -> None:
        self.before = before
        self.taken = taken
        self.row = row
        self.unit = np.zeros(before.leaves, dtype=np.int64)
        self.names = pa.array([""])
        self.levels: list[tuple[str, Index, pa.Array]] = []

    def keep(self, level: int) -> None:
        """An administrative level as it is."""
        self._add(self.before.levels[level], self._administrative(level), self.before.names[level])

    def divide(self, name: str, by: Index) -> None:
        """Divide the units of the last level; the parts of a unit are numbered."""
        unit = _joined(self.unit, by)
        parent = _sample(unit, self.unit)
        self._add(self._free(name), unit, _numbered(self.names, parent))

    def cut(self, level: int) -> None:
        """Divide the units of the last level by those of an administrative one."""
        own = self._administrative(level)
        unit = _joined(self.unit, own)
        parent, of = _sample(unit, self.unit), _sample(unit, own)
        # A part that is the whole unit has its name; one that is all of the area has the area's.
        only = (np.bincount(parent)[parent] == 1) & (np.bincount(of)[of] > 1)
        names = pc.if_else(pa.array(only), self.names.take(parent), _numbered(self.before.names[level], of))
        self._add(self._free(f"{self.before.levels[level]}_part"), unit, _distinct(names))

    def finish(self, targets: Sequence[Column], middle: Sequence[str], row: Index) -> ProposedSpine:
        last = len(self.before.levels) - 1
        blocks = np.arange(self.before.leaves)
        self._add(self.before.levels[last], blocks, self.before.names[last])
        columns = [_sorted(name, unit, names) for name, unit, names in self.levels]
        after, leaf_after = build_spine([column.name for column in columns], columns)
        others = [
            Column(name, self._administrative(number).astype(np.uint32), self.before.names[number])
            for number, name in enumerate(self.before.levels)
            if name in middle
        ]
        asked = [Column(column.name, column.codes[row], column.values) for column in targets]
        areas = [Areas.of_rows(column.name, column, self.before, blocks) for column in (*asked, *others)]
        return ProposedSpine(self.before, after, (*columns, *others, *asked), tuple(areas), leaf_after)

    def _add(self, name: str, unit: Index, names: pa.Array) -> None:
        self.unit, self.names = unit, names
        self.levels.append((name, unit, names))

    def _administrative(self, level: int) -> Index:
        """The unit of an administrative level in which each block lies."""
        sizes = np.diff(self.before.first_leaf(level))
        return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)

    def _free(self, name: str) -> str:
        """A name that no column of the list has."""
        return name if name not in self.taken else self._free(f"{name}_")


def _joined(one: Index, other: Index) -> Index:
    """The distinct pairs of two numbers, numbered in their order."""
    _, found = np.unique(one * (int(other.max(initial=0)) + 1) + other, return_inverse=True)
    return np.asarray(found.ravel(), dtype=np.int64)


def _sample(unit: Index, of: Index) -> Index:
    """For each unit what ``of`` has for its blocks, which is the same for all of them."""
    found = np.empty(int(unit.max(initial=-1)) + 1, dtype=np.int64)
    found[unit] = of
    return found


def _evenly(unit: Index, sets: Index, fan_out: int) -> Index:
    """Groups of blocks in the same unit and the same target areas, of even sizes within the limit."""
    alike = _joined(unit, sets)
    blocks = np.bincount(alike)
    within = np.bincount(unit)[_sample(alike, unit)]
    most = (np.sqrt(within) + fan_out + 1).astype(np.int64)
    pieces = -(-blocks // most)
    order = np.argsort(alike, kind="stable")
    starts = np.cumsum(blocks) - blocks
    place = np.empty(len(alike), dtype=np.int64)
    place[order] = np.arange(len(alike)) - np.repeat(starts, blocks)
    return _joined(alike, place * pieces[alike] // blocks[alike])


def _numbered(names: pa.Array, of: Index) -> pa.Array:
    """Names for parts of units, given the unit of each part: the unit's own and a number, or only the unit's own if it
    has one part."""
    many = np.bincount(of, minlength=len(names))
    order = np.argsort(of, kind="stable")
    number = np.empty(len(of), dtype=np.int64)
    number[order] = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many) + 1
    width = len(str(int(many.max(initial=1))))
    digits = pc.utf8_lpad(pa.array(number).cast(pa.string()), width, padding="0")
    own = as_text(names).take(pa.array(of))
    return _distinct(pc.if_else(pa.array(many[of] == 1), own, pc.binary_join_element_wise(own, digits, "-")))


def _distinct(names: pa.Array) -> pa.Array:
    """The names as they are if no two are the same, else numbers in their place."""
    if len(pc.unique(names)) == len(names):
        return names
    width = int(math.log10(max(1, len(names)))) + 1
    return pa.array([f"unit-{number:0{width}}" for number in range(1, len(names) + 1)])


def _sorted(name: str, unit: Index, names: pa.Array) -> Column:
    """The column of a level with its values in the order of their texts, as a file of it would be read."""
    order = pc.array_sort_indices(names)
    number = np.empty(len(order), dtype=np.uint32)
    number[order.to_numpy()] = np.arange(len(order))
    return Column(name, number[unit], names.take(order))


def _is_null(column: Column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(column.values.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _require_once(spine: Spine, leaf: Index) -> None:
    many = np.bincount(leaf)
    if (many > 1).any():
        first = int(np.argmax(many > 1))
        raise errors.block_twice(spine.levels[-1], spine.names[-1][first].as_py(), int((many > 1).sum()))
