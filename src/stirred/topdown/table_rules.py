"""The rules of one table by its parts, and for which rules every step down the spine has a solution.

The *parts* of a table are the finest groups of cells that any of its rules tells apart. Totals that are kept exactly
divide parts into *blocks*: the parts of the smallest such total, less what is kept inside it. Everything else that a
rule says is an interval [L(v), U(v)] of a part in a unit v. From the leaves up, intervals add up, meet those of rules
of that level, and are narrowed by their block's total N(v): L <= N less the others' U, U <= N less the others' L.

Let F(v) be the vectors of a unit's parts that its leaves can be completed to. Then F(v) is the sum of the children's,
cut by the rules of v. A step down has a solution for whatever was fitted above if and only if the bounds that are kept
at each level describe F(v), and not more. That holds in every unit below the root

* for parts outside of blocks, and for blocks whose total is kept at the root only: F(v) is a product of intervals, and
  so are sums of such;
* for a block of two parts: with its total fixed it is an interval of one of them;
* for a block of any number of parts of which at most one, p, has an upper bound that binds: the most of a set S of
  parts is N less the others' L, and for S = {p} it is U; the least is L, and for all but p it is N - U. Each of these
  is a sum over children; F(v) is a generalised polymatroid, which its leasts and mosts determine, and the sum of two
  has the sums of theirs, in integers as well (Frank and Tardos 1988).

Any other block is refused, and so is a part kept exactly at a coarser level than a total that contains it: there sums
of intervals allow vectors that no leaves have. At the root, intervals and totals are nested: a flow on a tree.

The invariant a reader must know: parts are unions of cells that no rule tells apart, so a vector of parts can always be
completed to cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import withheld
from stirred.margins.schema import Groups
from stirred.margins.spine import Index, Spine
from stirred.topdown.constraints import Counts, carried
from stirred.topdown.plan_sections import RelationSection, TableSection
from stirred.topdown.relations import is_capped, relation_words

MOST = 1 << 38
"""An upper bound that binds nowhere; sums over millions of units stay exact."""

Interval = tuple[Counts, Counts]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Limit:
    """Bounds on the sum over each group of cells (-1: none) in every unit of a level; ``exact`` where both are one."""

    words: str
    level: int
    groups: Groups
    lower: Counts
    upper: Counts
    exact: bool


@dataclass(frozen=True, eq=False)
class Related:
    """A relation of the table to another, and the groups of its own cells."""

    relation: RelationSection
    groups: Groups


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Parts whose sum is kept exactly in every unit of a level."""

    words: str
    parts: tuple[int, ...]
    level: int
    values: Counts


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class TableRules:
    """All rules of one table that is in a relation; ``words`` names a relation for messages."""

    spine: Spine
    table: TableSection
    limits: tuple[Limit, ...]
    related: tuple[Related, ...]
    words: str

    # -- parts and blocks --------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> Groups:
        """The part of each cell."""
        found = np.zeros(self.table.schema_of.cells, dtype=np.int64)
        for groups in [*(one.groups for one in self.limits), *(one.groups for one in self.related)]:
            keys = found * (int(groups.max()) + 2) + groups + 1
            found = np.unique(keys, return_inverse=True)[1]
        return found.astype(np.int32)

    @cached_property
    def _sample(self) -> Index:
        """One cell of each part."""
        return np.unique(self.parts, return_index=True)[1]

    def _inside(self, groups: Groups) -> list[Index]:
        """The parts of each group of a rule."""
        of_part = groups[self._sample]
        order = np.argsort(of_part, kind="stable")
        edges = np.searchsorted(of_part[order], np.arange(int(groups.max()) + 2))
        return [order[start:end] for start, end in pairwise(edges)]

    def part_of(self, related: Related, group: int) -> int:
        """The part that a group of a relation is; raises if other rules divide it."""
        parts = self._inside(related.groups)[group]
        if len(parts) != 1:
            raise errors.relation_unsure(
                relation_words(related.relation),
                f"other rules tell apart records of '{self.table.name}' that it counts together",
            )
        return int(parts[0])

    @cached_property
    def related_parts(self) -> frozenset[int]:
        """The parts that relations are about; raises if two are about the same."""
        found: list[int] = []
        for one in self.related:
            found += [self.part_of(one, group) for group in range(int(one.groups.max()) + 1)]
        if len(set(found)) < len(found):
            self._refuse(f"two relations are about the same records of '{self.table.name}'")
        return frozenset(found)

    @cached_property
    def _totals(self) -> tuple[list[Block], list[int | None]]:
        """Blocks, and the block of each part. Totals are inserted larger ones first; what lies inside another is taken
        from it."""
        kept: dict[tuple[int, ...], Limit] = {}
        values: dict[tuple[int, ...], Counts] = {}
        for limit in self.limits:
            for group, parts in enumerate(self._inside(limit.groups) if limit.exact else []):
                key = tuple(sorted(parts.tolist()))
                if key and (key not in kept or kept[key].level < limit.level):
                    kept[key], values[key] = limit, limit.lower[:, group]
        holder: list[tuple[int, ...] | None] = [None] * len(self._sample)
        for key in sorted(kept, key=len, reverse=True):
            above = holder[key[0]]
            if above is not None:
                if kept[above].level > kept[key].level:
                    self._refuse(f"{kept[key].words} is kept at a coarser level than {kept[above].words}")
                inside = carried(self.spine, values[key][:, None], kept[key].level, kept[above].level)[:, 0]
                values[above] = values[above] - inside
            for part in key:
                holder[part] = key
        blocks: list[Block] = []
        numbers = {}
        for key, limit in kept.items():
            left = tuple(part for part in key if holder[part] == key)
            if left:
                numbers[key] = len(blocks)
                blocks.append(Block(limit.words, left, limit.level, values[key]))
        return blocks, [None if key is None else numbers[key] for key in holder]

    @property
    def blocks(self) -> list[Block]:
        """Parts with totals that are kept exactly."""
        return self._totals[0]

    @property
    def block_of(self) -> list[int | None]:
        """The number of each part's block, None for parts outside of blocks."""
        return self._totals[1]

    @cached_property
    def _possible(self) -> NDArray[np.bool_]:
        """Which parts have a cell that is no structural zero."""
        possible = np.ones(self.table.schema_of.cells, dtype=np.bool_)
        for zero in self.table.zeros:
            possible &= ~self.table.schema_of.where(zero)
        return np.bincount(self.parts[possible], minlength=len(self._sample)) > 0

    @cached_property
    def _said(self) -> list[tuple[int, int, Counts, Counts]]:
        """What rules that are not exact say: level, part, the least and the most. Zeros of several parts together are
        zeros of each; any other bound of several parts together is refused."""
        found = []
        for limit in self.limits:
            if limit.exact:
                continue
            for group, parts in enumerate(self._inside(limit.groups)):
                lower, upper = limit.lower[:, group], np.minimum(limit.upper[:, group], MOST)
                only_zeros = not (lower > 0).any() and not ((upper > 0) & (upper < MOST)).any()
                if len(parts) > 1 and not only_zeros:
                    self._refuse(
                        f"other rules divide the records of '{self.table.name}' that are bounded by {limit.words}"
                    )
                found += [(limit.level, int(part), lower, upper) for part in parts]
        return found

    def said_of(self, part: int) -> list[tuple[int, Counts, Counts]]:
        """What rules that are not exact say about a part: a level, the least and the most in each of its units."""
        found = [(level, lower, upper) for level, about, lower, upper in self._said if about == part]
        if not self._possible[part]:
            leaf = len(self.spine.levels) - 1
            none = np.zeros(self.spine.units(leaf), dtype=np.int64)
            found.append((leaf, none, none))
        return found

    # -- intervals ---------------------------------------------------------------------------------------------

    def interval(self, level: int, known: Mapping[int, Interval]) -> Interval:
        """The least and the most of each part in every unit of a level; ``known`` is what relations say of leaves."""
        return next(found for at, found, binding in self._upward(known) if at == level and binding is not None)

    def left_for(self, block: Block, parts: Sequence[int]) -> Interval:
        """The least and the most of some parts of a block together, without its total and without relations."""
        lower, upper = next(found for at, found, _ in self._upward({}) if at == block.level)
        chosen = list(parts)
        return lower[:, chosen].sum(axis=1), np.minimum(upper[:, chosen].sum(axis=1), MOST)

    def may_have(self, cells: NDArray[np.bool_], level: int) -> NDArray[np.bool_]:
        """Which units of a level may have a record in one of some cells."""
        return np.asarray((self.interval(level, {})[1][:, np.unique(self.parts[cells])] > 0).any(axis=1))

    def _upward(self, known: Mapping[int, Interval]) -> Iterator[tuple[int, Interval, frozenset[int] | None]]:
        """From the leaves up, each level twice: intervals before totals narrow them, and after, then with the parts
        whose upper bounds bind. The arrays of a level are written to when the next is asked for."""
        leaf = len(self.spine.levels) - 1
        shape = (self.spine.units(leaf), len(self._sample))
        lower, upper = np.zeros(shape, dtype=np.int64), np.full(shape, MOST, dtype=np.int64)
        upper[:, ~self._possible] = 0
        for part, (least, most) in known.items():
            lower[:, part], upper[:, part] = least, np.minimum(upper[:, part], most)
        for at in range(leaf, -1, -1):
            if at < leaf:
                edges = self.spine.first_child[at][:-1]
                lower, upper = (np.add.reduceat(one, edges, axis=0) for one in (lower, upper))
                np.minimum(upper, MOST, out=upper)
            for level, part, least, most in self._said:
                if level == at:
                    lower[:, part] = np.maximum(lower[:, part], least)
                    upper[:, part] = np.minimum(upper[:, part], most)
            yield at, (lower, upper), None
            binding: set[int] = set()
            for block in self.blocks:
                if block.level >= at:
                    total = carried(self.spine, block.values[:, None], block.level, at)
                    binding |= _narrow(lower, upper, block.parts, total)
            yield at, (lower, upper), frozenset(binding)

    # -- what is sure ------------------------------------------------------------------------------------------

    def require_sure(self) -> None:
        """Raise unless every step has a solution, whatever is fitted above it and to the tables before."""
        capped = {
            self.part_of(one, group)
            for one in self.related
            if is_capped(one.relation)
            for group in range(int(one.groups.max()) + 1)
        }
        _ = self.related_parts
        binding = {at: found or frozenset() for at, _, found in self._upward({})}
        for block in self.blocks:
            bound = capped & set(block.parts)
            for at in range(1, block.level + 1):
                bound |= binding[at] & set(block.parts)
            if block.level > 0 and len(block.parts) > 2 and len(bound) > 1:
                self._refuse(
                    f"{block.words} is kept below the root, and {len(bound)} groups of records in that total have "
                    "upper bounds"
                )

    def _refuse(self, problem: str) -> NoReturn:
        raise errors.relation_unsure(self.words, problem)


def _narrow(lower: Counts, upper: Counts, parts: tuple[int, ...], total: Counts) -> set[int]:
    """Narrow the intervals of a block's parts by their total; returns the parts whose upper bound is below what the
    others leave somewhere."""
    inside = list(parts)
    least, most = lower[:, inside], upper[:, inside]
    left = total - (least.sum(axis=1, keepdims=True) - least)
    lacking = total - (most.sum(axis=1, keepdims=True) - most)
    lower[:, inside], upper[:, inside] = np.maximum(least, lacking), np.minimum(most, left)
    return {part for part, binds in zip(inside, (most < left).any(axis=0).tolist(), strict=True) if binds}
