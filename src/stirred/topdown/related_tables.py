"""What tables with relations must keep at every level, so that whatever is fitted to one leaves room for the other.

A relation is kept by order: ``counted`` is fitted first, from the root to the leaves; its integers a(u) are then known,
and in the fit of ``table`` the related group b has the bounds at_least * a(u) <= b(u) <= at_most * a(u), carried up.
Children of ``counted`` add up to their parent, so bounds that hold above leave room below. What remains is that
``counted`` is not fitted to something that no ``table`` can go with. If a total N(v) of ``table`` is kept exactly
in unit v, and the other groups in it have L(v) records at least and U(v) at most, then ``table`` has a solution if
and only if

    at_least * a(v) <= N(v) - L(v)    and    N(v) - U(v) <= at_most * a(v),

so these are bounds of ``counted`` in v, published as far as N, L and U are, and kept by its own fit. The true tables
keep them all, so there is something to fit. :mod:`stirred.topdown.table_rules` says for which plans that is all there
is to it, and refuses every other plan before anything is drawn.

The invariant a reader must know: nothing here reads data but values of invariants and fitted tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stirred import errors
from stirred._shown import withheld
from stirred.margins.schema import Groups
from stirred.margins.spine import Spine
from stirred.topdown.constraints import (
    Counts,
    Kept,
    carried,
    closed_at_root,
    constraint_words,
    counted_by,
    names_of,
)
from stirred.topdown.counting import marginal
from stirred.topdown.earlier import Agreement
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import RelationSection, TableSection
from stirred.topdown.problems import UNBOUNDED, Allowed, Bounds, Histograms
from stirred.topdown.relations import allowed_by, is_capped, relation_groups, relation_words
from stirred.topdown.table_rules import MOST, Interval, Limit, Related, TableRules


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class RelatedTables:
    """The rules of every table that is in a relation."""

    plan: TopDownPlan
    spine: Spine
    rules: Mapping[str, TableRules]

    @classmethod
    def of(
        cls, plan: TopDownPlan, spine: Spine, exact: Sequence[Counts], agreements: Sequence[Agreement] = ()
    ) -> RelatedTables:
        """The rules that follow from a plan and the values of its invariants; raises if it is not sure that every fit
        can keep its relations."""
        names = {name for one in plan.relations for name in (one.table, one.counted)}
        for agreement in agreements:
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
            limits = [*_limits(plan, spine, exact, table), *derived[table.name]]
            related = [Related(one, relation_groups(plan, one)[0]) for one in mine]
            rules[table.name] = TableRules(spine, table, tuple(limits), tuple(related), relation_words(first))
            rules[table.name].require_sure()
            for relation in mine:
                counted = plan.table(relation.counted)
                known = TableRules(spine, counted, tuple(_limits(plan, spine, exact, counted)), (), "")
                theirs = relation_groups(plan, relation)[1]
                derived[counted.name] += Derivation(rules[table.name], relation, theirs, known).limits()
        return cls(plan, spine, rules)

    def steps(self, table: TableSection, fitted: Mapping[str, Histograms]) -> RelatedSteps:
        """What a table keeps at every level, once the tables that it is related to are fitted."""
        return RelatedSteps(self, table, fitted)


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class RelatedSteps:
    """What one table with relations keeps at every level."""

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
            for group in range(number):
                known[rules.part_of(one, group)] = (lower[:, group], np.minimum(upper[:, group], MOST))
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


def _limits(plan: TopDownPlan, spine: Spine, exact: Sequence[Counts], table: TableSection) -> list[Limit]:
    """What invariants and constraints by invariant counts say about a table."""
    found = [
        Limit(
            str(one.margin),
            plan.spine.all_levels.index(one.level),
            table.schema_of.groups(one.by),
            values,
            values,
            exact=True,
        )
        for one, values in zip(plan.invariants, exact, strict=True)
        if one.table == table.name
    ]
    for one in plan.constraints:
        if one.table == table.name:
            groups, counts = counted_by(plan, one, exact)
            lower = one.at_least * counts
            upper = np.full_like(counts, MOST) if one.at_most is None else one.at_most * counts
            upper = np.where(counts == 0, 0, upper) if one.zero_without else upper
            found.append(Limit(constraint_words(one), len(spine.levels) - 1, groups, lower, upper, exact=False))
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
        me = next(one for one in self.rules.related if one.relation is self.relation)
        return [self.rules.part_of(me, group) for group in range(int(me.groups.max()) + 1)]

    def limits(self) -> list[Limit]:
        """Bounds of the groups of ``counted``, those that say anything."""
        found = []
        together: dict[int, list[int]] = {}
        for group, part in enumerate(self.parts):
            for level, lower, upper in self.rules.said_of(part):
                found.append(self._limit(level, [group], lower, upper))
            at = self.rules.block_of[part]
            if at is not None:
                together.setdefault(at, []).append(group)
        for number, groups in together.items():
            block = self.rules.blocks[number]
            own = [self.parts[group] for group in groups]
            others = [part for part in block.parts if part not in own]
            if any(part in self.rules.related_parts for part in others):
                self._refuse(f"another relation is about a part of the same total, {block.words}")
            least, most = self.rules.left_for(block, others)
            found.append(self._limit(block.level, groups, block.values - most, block.values - least))
        for part in self.parts:
            self._require_linear(part, len(together.get(self._block(part), [])))
        return [one for one in found if bool((one.lower > 0).any() or (one.upper < MOST).any())]

    def _block(self, part: int) -> int:
        number = self.rules.block_of[part]
        return -1 if number is None else number

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

    def _require_linear(self, part: int, shared: int) -> None:
        """Raise where two levels bound a related part, so that what ``counted`` may have is no longer one bound.

        The least that ``table`` can have in unit v is the sum over its units u of max(at_least * a(u), L(u)), which is
        at_least * a(v) only if no L(u) at a finer level is above 0; likewise for the most."""
        relation, number = self.relation, self.rules.block_of[part]
        block = None if number is None else self.rules.blocks[number]
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
