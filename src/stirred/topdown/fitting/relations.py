"""What tables with relations must keep at every level, so that whatever is fitted to one leaves room for the other.

A *relation* says of every finest geounit u and of every group g of it, with a = the records of ``counted`` and b =
those of ``table``: at_least * a <= b <= at_most * a, and b = 0 where a = 0. Both sides add up, so the two inequalities
hold in every unit above as well.

A relation is kept by order: ``counted`` is fitted first, from the root to the leaves; its integers a(u) are then known,
and in the fit of ``table`` the related group b has the bounds at_least * a(u) <= b(u) <= at_most * a(u), carried up.
Children of ``counted`` add up to their parent, so bounds that hold above leave room below. What remains is that
``counted`` is not fitted to something that no ``table`` can go with. If a total N(v) of ``table`` is kept exactly
in unit v, and the other groups in it have L(v) records at least and U(v) at most, then ``table`` has a solution if
and only if

    at_least * a(v) <= N(v) - L(v)    and    N(v) - U(v) <= at_most * a(v),

so these are bounds of ``counted`` in v, published as far as N, L and U are, and kept by its own fit. The true tables
keep them all, so there is something to fit. For some plans that is all there is to it; every other plan is refused
before anything is drawn.

For which plans, the *parts* of a table tell: the finest groups of cells that any of its rules tells apart, unions of
cells, so that a vector of parts can always be completed to cells. Totals that are kept exactly divide parts into
*blocks*: the parts of the smallest such total, less what is kept inside it. Everything else that a rule says is an
interval [L(v), U(v)] of a part in a unit v. From the leaves up, intervals add up, meet those of rules of that level,
and are narrowed by their block's total N(v): L <= N less the others' U, U <= N less the others' L.

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

The invariant a reader must know: a relation is between what is *released*. The data must keep it too, since they are in
no domain of the guarantee otherwise, but its fit reads the fitted counts of the other table and values of invariants,
and nothing of the data.
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
from stirred._display import withheld
from stirred.margins.schema import Groups, Schema
from stirred.margins.spine import Index, Spine
from stirred.topdown.data.constraints import (
    Kept,
    Known,
    allowed_by,
    carried,
    closed_at_root,
    constraint_words,
    leaves_outside,
    names_of,
    refuse_leaves,
)
from stirred.topdown.data.counting import Counted
from stirred.topdown.data.histograms import Counts, Histograms, marginal
from stirred.topdown.fitting.level_problem import UNBOUNDED, Allowed, Bounds
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import RelationSection, TableSection

Where = Mapping[str, tuple[str, ...]]


def relation_groups(plan: TopDownPlan, relation: RelationSection) -> tuple[Groups, Groups, int]:
    """The group of each cell of ``table`` and of ``counted`` (-1: none), and how many groups there are."""
    table, counted = plan.table(relation.table).schema_of, plan.table(relation.counted).schema_of
    mine, theirs = tuple(relation.each), tuple(relation.each.values())
    both = (table, mine, relation.where), (counted, theirs, relation.counted_where)
    labels = [set(_groups_by_label(*one)) for one in both]
    number = {label: place for place, label in enumerate(sorted(labels[0] & labels[1]))}
    first, second = (_numbered(*one, number) for one in both)
    return first, second, len(number)


def _groups_by_label(schema: Schema, names: tuple[str, ...], where: Where) -> dict[tuple[str, ...], int]:
    """The combinations of values that picked cells have, with their groups."""
    labels = schema.labels(names)
    return {labels[group]: int(group) for group in np.unique(schema.groups(names)[schema.where(where)])}


def _numbered(schema: Schema, names: tuple[str, ...], where: Where, number: Mapping[tuple[str, ...], int]) -> Groups:
    place = np.array([number.get(label, -1) for label in schema.labels(names)], dtype=np.int32)
    return np.where(schema.where(where), place[schema.groups(names)], -1).astype(np.int32)


def is_capped(relation: RelationSection) -> bool:
    """Whether a relation says how many records of ``table`` there may be at most."""
    return relation.at_most is not None or relation.zero_without


def relation_words(relation: RelationSection) -> str:
    """A relation in words, for messages and documents.

    >>> relation_words(RelationSection(table="persons", counted="units", where={"kind": ["household"]}, at_least=1))
    "the relation of 'persons' (kind in household) to 'units': at least 1 for each, none without one"
    """
    mine = [f"{name} in {', '.join(values)}" for name, values in relation.where.items()]
    theirs = [f"{name} in {', '.join(values)}" for name, values in relation.counted_where.items()]
    pairs = [f"{one} as {other}" for one, other in relation.each.items()]
    said = [f"at least {relation.at_least:,} for each"] if relation.at_least else []
    said += [f"at most {relation.at_most:,} for each"] if relation.at_most is not None else []
    said += ["none without one"] if relation.zero_without and relation.at_most is None else []

    def picked(parts: list[str]) -> str:
        return f" ({', '.join(parts)})" if parts else ""

    return (
        f"the relation of '{relation.table}'{picked([*pairs, *mine])} to '{relation.counted}'{picked(theirs)}: "
        f"{', '.join(said)}"
    )


def leaves_breaking_relation(counted: Counted, relation: RelationSection) -> Index:
    """The leaves in which the counts of two tables do not keep a relation."""
    mine, theirs, number = relation_groups(counted.plan, relation)
    other = counted.leaves[relation.counted]
    return leaves_outside(
        relation,
        counted.leaves[relation.table],
        mine,
        number,
        lambda units: marginal(other.of_units(units), theirs, number),
    )


def require_related(counted: Counted) -> None:
    """Raise if the data contradict a relation of the plan; called before any noise is drawn."""
    for relation in counted.plan.relations:
        refuse_leaves(counted, relation_words(relation), leaves_breaking_relation(counted, relation))


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

    def parts_of(self, related: Related) -> list[int]:
        """The part that each group of a relation is; raises if other rules divide one."""
        found = self._inside(related.groups)
        if any(len(parts) != 1 for parts in found):
            raise errors.relation_unsure(
                relation_words(related.relation),
                f"other rules tell apart records of '{self.table.name}' that it counts together",
            )
        return [int(parts[0]) for parts in found]

    @cached_property
    def related_parts(self) -> frozenset[int]:
        """The parts that relations are about; raises if two are about the same."""
        found = [part for one in self.related for part in self.parts_of(one)]
        if len(set(found)) < len(found):
            self._refuse(f"two relations are about the same records of '{self.table.name}'")
        return frozenset(found)

    @cached_property
    def blocks(self) -> list[Block]:
        """Parts with totals that are kept exactly. Totals are inserted larger ones first; what lies inside another is
        taken from it."""
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
        found = []
        for key, limit in kept.items():
            left = tuple(part for part in key if holder[part] == key)
            if left:
                found.append(Block(limit.words, left, limit.level, values[key]))
        return found

    def block_of(self, part: int) -> Block | None:
        """The block of a part, None for parts outside of blocks."""
        return next((block for block in self.blocks if part in block.parts), None)

    @cached_property
    def _possible(self) -> NDArray[np.bool_]:
        """Which parts have a cell that is no structural zero."""
        return np.bincount(self.parts[self.table.possible], minlength=len(self._sample)) > 0

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
        capped = {part for one in self.related if is_capped(one.relation) for part in self.parts_of(one)}
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


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class RelatedTables:
    """The rules of every table that is in a relation."""

    plan: TopDownPlan
    spine: Spine
    rules: Mapping[str, TableRules]

    @classmethod
    def of(cls, known: Known) -> RelatedTables:
        """The rules that follow from a plan and the values of its invariants; raises if it is not sure that every fit
        can keep its relations."""
        plan, spine = known.plan, known.spine
        names = {name for one in plan.relations for name in (one.table, one.counted)}
        for agreement in known.agreements:
            if agreement.table in names:
                first = next(one for one in plan.relations if agreement.table in (one.table, one.counted))
                raise errors.relation_unsure(
                    relation_words(first), f"'{agreement.table}' must also agree with an earlier release"
                )
        rules: dict[str, TableRules] = {}
        derived: dict[str, list[Limit]] = {name: [] for name in names}
        for table in reversed([one for one in plan.order_of_fit if one.name in names]):
            first = next(one for one in plan.relations if table.name in (one.table, one.counted))
            mine = [one for one in plan.relations if one.table == table.name]
            limits = [*_limits(known, table), *derived[table.name]]
            related = [Related(one, relation_groups(plan, one)[0]) for one in mine]
            rules[table.name] = TableRules(spine, table, tuple(limits), tuple(related), relation_words(first))
            rules[table.name].require_sure()
            for relation in mine:
                counted = plan.table(relation.counted)
                by_itself = TableRules(spine, counted, tuple(_limits(known, counted)), (), "")
                theirs = relation_groups(plan, relation)[1]
                derived[counted.name] += Derivation(rules[table.name], relation, theirs, by_itself).limits()
        return cls(plan, spine, rules)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class RelatedSteps:
    """What one table with relations keeps at every level, once the tables that it is related to are fitted."""

    together: RelatedTables
    table: TableSection
    fitted: Mapping[str, Histograms]

    @cached_property
    def _known(self) -> dict[int, Interval]:
        """What relations say of the leaves, by part."""
        plan, rules = self.together.plan, self.together.rules[self.table.name]
        known: dict[int, Interval] = {}
        for one in rules.related:
            _, theirs, number = relation_groups(plan, one.relation)
            lower, upper = allowed_by(one.relation, marginal(self.fitted[one.relation.counted], theirs, number))
            for group, part in enumerate(rules.parts_of(one)):
                known[part] = (lower[:, group], np.minimum(upper[:, group], MOST))
        return known

    def kept(self, level: int) -> Kept:
        """The bounds and zeros of a level: intervals of every part, and totals that are kept exactly."""
        rules, spine = self.together.rules[self.table.name], self.together.spine
        lower, upper = rules.interval(level, self._known)
        wrong = np.flatnonzero((lower > upper).any(axis=1))
        if len(wrong):  # cannot happen with data that keep the plan
            named = names_of(spine, level, wrong)
            raise errors.topdown_infeasible(
                spine.levels[level], len(wrong), named, ["a lower bound exceeds an upper one"]
            )
        bounds = [
            Bounds(one.groups, sums, sums)
            for one in rules.limits
            if one.exact and one.level >= level
            for sums in [carried(spine, one.lower, one.level, level)]
        ]
        allowed: list[Allowed] = closed_at_root(spine, self.table) if level == 0 else []
        if bool((lower > 0).any() or (upper < MOST).any()):
            groups = rules.parts
            upper[upper >= MOST] = UNBOUNDED
            bounds.append(Bounds(groups, lower, upper))
            allowed.append(Allowed(groups, upper > 0))
        return Kept(tuple(bounds), tuple(allowed))


def _limits(known: Known, table: TableSection) -> list[Limit]:
    """What invariants and constraints by invariant counts say about a table."""
    levels = known.plan.spine.all_levels
    found = [
        Limit(
            str(one.margin),
            levels.index(one.level),
            table.schema_of.groups(one.by),
            values,
            values,
            exact=True,
        )
        for one, values in zip(known.plan.invariants, known.exact, strict=True)
        if one.table == table.name
    ]
    for one in known.plan.constraints:
        if one.table == table.name:
            groups, counts = known.counted_by(one)
            lower, upper = allowed_by(one, counts)
            found.append(Limit(constraint_words(one), len(known.spine.levels) - 1, groups, lower, upper, exact=False))
    return found


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Derivation:
    """What a relation says about ``counted`` because of the rules of ``table``."""

    rules: TableRules
    relation: RelationSection
    theirs: Groups
    """The group of the relation that each cell of ``counted`` belongs to."""
    known: TableRules
    """The rules of ``counted`` by itself."""

    @cached_property
    def parts(self) -> list[int]:
        """The part of ``table`` that each group of the relation is."""
        return self.rules.parts_of(next(one for one in self.rules.related if one.relation is self.relation))

    def limits(self) -> list[Limit]:
        """Bounds of the groups of ``counted``, those that say anything."""
        found = []
        for group, part in enumerate(self.parts):
            for level, lower, upper in self.rules.said_of(part):
                found.append(self._limit(level, [group], lower, upper))
        held = [self.rules.block_of(part) for part in self.parts]
        for block in dict.fromkeys(one for one in held if one is not None):
            groups = [group for group, one in enumerate(held) if one is block]
            own = [self.parts[group] for group in groups]
            others = [part for part in block.parts if part not in own]
            if any(part in self.rules.related_parts for part in others):
                self._refuse(f"another relation is about a part of the same total, {block.words}")
            least, most = self.rules.left_for(block, others)
            found.append(self._limit(block.level, groups, block.values - most, block.values - least))
        for part, about in zip(self.parts, held, strict=True):
            self._require_linear(part, about, 0 if about is None else held.count(about))
        return [one for one in found if bool((one.lower > 0).any() or (one.upper < MOST).any())]

    def _limit(self, level: int, groups: list[int], lower: Counts, upper: Counts) -> Limit:
        """Bounds of counted groups together, where the related groups of ``table`` must be able to have at least
        ``lower`` records and must not be forced to have more than ``upper``."""
        relation = self.relation
        least = np.zeros_like(lower)
        if relation.at_most is not None:
            least = np.maximum(least, -(-lower // relation.at_most))
        elif relation.zero_without:
            least = np.where(lower > 0, 1, 0)
        most = np.full_like(upper, MOST)
        if relation.at_least:
            most = np.where(upper < MOST, upper // relation.at_least, MOST)
        about = np.where(np.isin(self.theirs, groups), 0, -1).astype(np.int32)
        words = f"what follows for '{relation.counted}' from {relation_words(relation)}"
        return Limit(words, level, about, least[:, None], most[:, None], exact=False)

    def _require_linear(self, part: int, block: Block | None, shared: int) -> None:
        """Raise where two levels bound a related part, so that what ``counted`` may have is no longer one bound.

        The least that ``table`` can have in unit v is the sum over its units u of max(at_least * a(u), L(u)), which is
        at_least * a(v) only if no L(u) at a finer level is above 0; likewise for the most."""
        relation = self.relation
        own = self.rules.said_of(part)
        if block is not None and len(block.parts) == 1:
            own = [one for one in own if one[0] > block.level]
        elif block is not None and any(one[0] < block.level for one in own):
            self._refuse(f"its records are bounded at a coarser level than {block.words}")
        levels = {one[0] for one in own} | ({block.level} if block is not None else set())
        for level, lower, upper in own:
            if level == min(levels) and shared < 2:
                continue
            if relation.at_least and bool((lower > 0).any()):
                self._refuse("a constraint also says how many records of that group there are at least")
            if is_capped(relation) and bool((upper < MOST).any()):
                self._require_zeros(part, level, upper)

    def _require_zeros(self, part: int, level: int, upper: Counts) -> None:
        """Raise unless an upper bound besides the relation's is 0 or none, and 0 only where nothing is counted."""
        if bool(((upper > 0) & (upper < MOST)).any()):
            self._refuse("a constraint also says how many records of that group there are at most")
        group = self.parts.index(part)
        if not self.relation.at_least and bool(self.known.may_have(self.theirs == group, level)[upper == 0].any()):
            self._refuse(
                f"some places may have '{self.relation.counted}' but, by a constraint, no record of that group"
            )

    def _refuse(self, problem: str) -> None:
        raise errors.relation_unsure(relation_words(self.relation), problem)
