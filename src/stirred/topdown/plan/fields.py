"""The plan of a TopDown release: geography, tables, queries, the division of the budget, and what is kept exactly.

A plan is public. It lists the full domain of every attribute, and it names columns; nothing in it is read from the
confidential tables. Shares are fractions that add up to exactly one: a table's rho is divided among levels, and a
level's share among the table's queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from stirred import errors
from stirred.releases.plans import MOST_SECTIONS, InputSection, Plan, Unit, dicts, hash_of
from stirred.spec.known_deployments.allocations import Allocation, AllocationPart, Query
from stirred.topdown.plan.sections import (
    OPEN,
    ConstraintSection,
    EarlierSection,
    InvariantSection,
    PlacesInput,
    PublishSection,
    RelationSection,
    SpineSection,
    TableSection,
    TargetSection,
)


class TopDownPlan(Plan):
    """The plan of a TopDown release. Frozen; docs/topdown.md explains every field.

    Parameters
    ----------
    spine
        The levels of the geography from the coarsest to the finest, and where the public list of places is.
    tables
        The confidential tables: their attributes with all possible values, their budget and queries.
    unit
        The protected unit, that of one of the released tables.
    invariants, constraints, relations
        Counts that are published exactly; what such counts of one table say about another; what two released tables
        have to do with each other in every place.
    publish
        Tables to write beside the microdata.
    earlier
        Releases that this one must agree with.
    targets
        Columns of the list of places with areas off the spine, whose expected errors ``check`` tells.
    measured_by
        Who drew the measurements, for a release from measurements that others published.
    passes, fit
        Whether totals are fitted first; whether the fit reads the best unbiased values of each subtree, or each level's
        own measurements only.
    dataset, chosen_from, looked_at, format, licence, released_by, context
        As in every plan: the dataset's name in a ledger, where the choices came from, the format of released files,
        the licence of the data, who releases them, and answers about the five safes.

    Examples
    --------
    >>> from stirred.topdown import preset
    >>> plan = preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"])
    >>> type(plan).__name__, plan.spine.levels
    ('TopDownPlan', ('county', 'town'))
    """

    mechanism: ClassVar[str] = "topdown"
    page: ClassVar[str] = "topdown"
    earlier_names: ClassVar[Mapping[str, str]] = {"asked": "publish"}

    unit: Unit = "person"
    """The protected unit: that of one of the released tables."""
    spine: SpineSection
    tables: tuple[TableSection, ...] = Field(max_length=MOST_SECTIONS)
    invariants: tuple[InvariantSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    constraints: tuple[ConstraintSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    relations: tuple[RelationSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    publish: tuple[PublishSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    """Tables to be written beside the microdata."""
    earlier: tuple[EarlierSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    targets: tuple[TargetSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    """Areas off the spine whose expected errors ``check`` tells."""
    measured_by: str | None = Field(default=None, max_length=500)
    """Who drew the measurements, where they were published by others: the guarantee is theirs."""
    passes: Literal["auto", "one", "two"] = "auto"
    fit: Literal["least squares first", "level by level"] = "least squares first"
    format: Literal["csv", "parquet", "arrow"] = "parquet"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _check_names(self)
        _check_inputs(self)
        for table in self.released:
            _check_shares(self, table)
        for invariant in self.invariants:
            table = self.table(invariant.table)
            _require_levels([invariant.level], self.spine.all_levels)
            _require_plain(table, invariant.by, "An invariant")
        _require_levels(self.spine.labels, self.spine.all_levels)
        for constraint in self.constraints:
            _check_constraint(self, constraint)
        for relation in self.relations:
            _check_relation(self, relation)
        _ = self.order_of_fit
        for wanted in self.publish:
            _check_published(self, wanted)
        for earlier in self.earlier:
            _released(self, earlier.table).schema_of.groups(earlier.by)
        for table in self.tables:
            _ = table.possible  # names and values are looked up
        return self

    @property
    def released(self) -> tuple[TableSection, ...]:
        """The tables with a budget."""
        return tuple(table for table in self.tables if table.rho is not None)

    def table(self, name: str) -> TableSection:
        """The section of a table; raises if there is no such table."""
        for table in self.tables:
            if table.name == name:
                return table
        raise errors.unknown_choice("table", name, [table.name for table in self.tables])

    @property
    def order_of_fit(self) -> tuple[TableSection, ...]:
        """The released tables in the order in which they are fitted: that of the plan, but a table comes after those
        that its relations count. Raises if relations go round in a circle."""
        found: list[TableSection] = []
        left = list(self.released)
        while left:
            waiting = {one.name for one in left}
            ready = [
                table
                for table in left
                if not any(one.table == table.name and one.counted in waiting for one in self.relations)
            ]
            if not ready:
                raise errors.PlanError(
                    "relations-circle",
                    "The relations of a TopDown plan go round in a circle among "
                    f"{errors.listed(sorted(waiting))}: a table is fitted after those that its relations count, "
                    "and none of these could be the first.",
                    "Leave out one of the relations, or turn it round: docs/relations.md (stirred docs relations).",
                )
            found.append(ready[0])
            left.remove(ready[0])
        return tuple(found)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels among which the budget is divided, also those that the spine does not have."""
        return (*self.spine.absent, *self.spine.all_levels)

    def spent_on(self, table: TableSection) -> Fraction:
        """The part of a table's rho that is spent: the shares of the levels that the spine has."""
        levels = self.spine.all_levels
        return sum((table.rho_of(level, query) for level in levels for query in table.queries), Fraction(0))

    @cached_property
    def rho(self) -> Fraction:
        """The budget that is spent on all tables."""
        return sum(map(self.spent_on, self.released), Fraction(0))

    def one_place(self, level: str) -> bool:
        """Whether the plan says that a level has one unit."""
        return level == self.spine.root

    def allocation(self) -> Allocation:
        """How the budget is divided among levels and queries, for explanations; absent levels are left out."""
        levels = self.spine.all_levels
        parts = []
        for table in self.released:
            spent = {level: sum((table.rho_of(level, q) for q in table.queries), Fraction(0)) for level in levels}
            rho = self.spent_on(table)
            queries = tuple(
                Query(
                    query.name if len(self.released) == 1 else f"{query.name} of {table.name}",
                    tuple(dict.fromkeys(base for name in query.by for base in table.schema_of.bases(name))),
                    table.schema_of.number_of_groups(query.by),
                    # Where nothing is spent any division does: everything to the first query.
                    tuple(
                        table.rho_of(lv, query) / spent[lv] if spent[lv] else Fraction(query is table.queries[0])
                        for lv in levels
                    ),
                    tuple(query.by),
                    tuple(table.moved(query, self.one_place(level)) for level in levels)
                    if table.schema_of.overlapping(query.by)
                    else None,
                )
                for query in table.queries
            )
            shares = tuple(spent[level] / rho for level in levels)
            parts.append(AllocationPart(table.name, table.unit, None, rho, shares, queries))
        named = [(table.schema_of, one.name) for table in self.released for one in table.recodes]
        recodes = tuple((name, schema.base(name)) for schema, name in named if not schema.joint(name))
        joint = tuple((name, schema.bases(name)) for schema, name in named if schema.joint(name))
        name, title = self.dataset or "plan", self.dataset or "the plan"
        one, labels = self.spine.root is not None, tuple(self._labels().items())
        return Allocation(
            name, title, levels, tuple(parts), recodes=recodes, joint=joint, single_root=one, labels=labels
        )

    def _labels(self) -> dict[str, str]:
        """Attributes and levels in plain words."""
        told = [(one.name, one.label) for table in self.released for one in table.attributes]
        return {**{name: label for name, label in told if label}, **self.spine.labels}

    @classmethod
    def input_sections(cls, fields: Mapping[str, Any]) -> list[Any]:
        spine = fields.get("spine")
        tables = [table.get("input") for table in dicts(fields.get("tables"))]
        return [spine.get("input") if isinstance(spine, dict) else None, *tables, *dicts(fields.get("earlier"))]

    def reading(self, paths: Mapping[str, str | Path]) -> TopDownPlan:
        """The same plan with its tables, and its ``geography``, read from these paths."""
        section = PlacesInput(path=str(paths["geography"])) if "geography" in paths else self.spine.input
        tables = tuple(
            table.model_copy(update={"input": InputSection(path=str(paths[table.name]))})
            if table.name in paths
            else table
            for table in self.tables
        )
        spine = self.spine.model_copy(update={"input": section})
        return self.model_copy(update={"spine": spine, "tables": tables})

    def published(self) -> dict[str, Any]:
        fields = super().published()
        for section in [fields["spine"], *fields["tables"]]:
            section.pop("input", None)
        for section in fields.get("earlier", []):
            section.pop("path")
        return fields

    @classmethod
    def from_published(cls, fields: Mapping[str, Any]) -> Self:
        earlier = [{"path": "", **section} for section in fields.get("earlier", ())]
        return super().from_published({**fields, "earlier": earlier})

    def drawn_hash(self) -> str:
        """SHA-256 of what is fixed once measurements are drawn; the rest of the plan is for the fit only."""
        later = ("publish", "earlier", "targets", "passes", "fit", "licence", "released_by", "context")
        fields = {key: value for key, value in self.published().items() if key not in later}
        fields["spine"].pop("labels", None)
        for attribute in (one for table in fields["tables"] for one in table.get("attributes", ())):
            attribute.pop("label", None)
        return hash_of(fields)


# -- checks --------------------------------------------------------------------------------------------------


def _check_inputs(plan: TopDownPlan) -> None:
    """What a draft leaves open must be settled, and prefixes must be of the levels above the finest."""
    for table in plan.tables:
        if table.count is not None and table.count.startswith(OPEN):
            asked = table.count.removeprefix(OPEN).strip()
            raise errors.topdown_plan(
                f"The table '{table.name}'",
                f"must say whether its column '{asked}' is a number of records: write count = \"{asked}\" if a row "
                "stands for that many, or remove the line if each row is one record",
            )
    prefixes = plan.spine.input.prefixes
    lengths = list(prefixes.values())
    if prefixes and (tuple(prefixes) != plan.spine.levels[:-1] or lengths != sorted(set(lengths))):
        raise errors.topdown_plan(
            "The prefixes of the list of geounits",
            "must be given for every level but the finest, from the coarsest on, each longer than the one before",
        )


def _check_names(plan: TopDownPlan) -> None:
    for what, names in (("level", plan.levels), ("table", [table.name for table in plan.tables])):
        if not names or len(set(names)) < len(names):
            raise errors.topdown_plan(f"Each {what}", "must have a name of its own, and there must be at least one")
    called = [one.words for one in plan.targets]
    if len(set(called)) < len(called):
        raise errors.topdown_plan("Each target", "must have a name of its own")
    if not plan.released:
        raise errors.topdown_plan("At least one table", "must have a rho")
    if plan.unit not in [table.unit for table in plan.released]:
        raise errors.topdown_plan(f"The protected unit '{plan.unit}'", "must be the unit of a table with a rho")
    for table in plan.tables:
        if not re.fullmatch(r"\w[\w -]*", table.name) or table.name == "geography":
            raise errors.topdown_plan(
                f"The table {table.name!r}",
                "must have a name of letters, digits, spaces, '_' and '-', other than 'geography'",
            )
        columns = [*plan.spine.all_levels, *(one.column or one.name for one in table.attributes)]
        named = [*plan.spine.all_levels, *(one.name for one in table.attributes), *(one.name for one in table.recodes)]
        if len(set(columns)) < len(columns) or len(set(named)) < len(named):
            raise errors.topdown_plan(
                f"The table '{table.name}'",
                "cannot have two attributes or recodes of the same name, or one with the name of a level",
            )
        _ = table.schema_of


def _check_shares(plan: TopDownPlan, table: TableSection) -> None:
    """Raises unless shares add up to exactly one, over the levels and over the queries of each level with a share."""
    _require_levels(table.level_shares, plan.levels)
    names = [query.name for query in table.queries]
    if not names or len(set(names)) < len(names):
        raise errors.topdown_plan(f"The table '{table.name}'", "must list at least one query, and each query once")
    if table.rho == 0:
        raise errors.topdown_plan(
            f"The rho of '{table.name}'", "must be above 0; leave it out if the table is not released"
        )
    _require_one(table.name, "the levels", [table.level_shares.get(level, Fraction(0)) for level in plan.levels])
    for level in plan.levels:
        for query in table.queries:
            if isinstance(query.shares, Mapping):
                _require_levels(query.shares, plan.levels)
            table.schema_of.number_of_groups(query.by)
        if table.level_shares.get(level, 0):
            shares = [query.share(level) for query in table.queries]
            _require_one(table.name, f"the queries at level '{level}'", shares)
        elif level in plan.spine.all_levels:
            raise errors.topdown_plan(f"The level '{level}' of '{table.name}'", "must have a share of the budget")
    for query in table.queries:
        if not any(table.rho_of(level, query) for level in plan.spine.all_levels):
            raise errors.topdown_plan(f"The query '{query.name}' of '{table.name}'", "must have a share at some level")


def _require_one(table: str, where: str, shares: Sequence[Fraction]) -> None:
    total = sum(shares, Fraction(0))
    if total != 1:
        raise errors.shares_do_not_add_up(table, where, total)


def _check_constraint(plan: TopDownPlan, constraint: ConstraintSection) -> None:
    table, counted = _released(plan, constraint.table), plan.table(constraint.counted)
    if bool(constraint.each) == bool(constraint.where):
        raise errors.topdown_plan("A constraint", "must have either 'each' or 'where'")
    _check_numbers(constraint, "constraint")
    table.schema_of.where(constraint.where)
    _require_plain(table, tuple(constraint.each), "The 'each' of a constraint")
    _require_plain(counted, tuple(constraint.each.values()), "The 'each' of a constraint")
    needed = set(constraint.each.values())
    leaf = plan.spine.levels[-1]
    kept = any(
        invariant.table == constraint.counted and invariant.level == leaf and needed <= set(invariant.by)
        for invariant in plan.invariants
    )
    if not kept:
        by = f" by {', '.join(sorted(needed))}" if needed else ""
        raise errors.topdown_plan(
            f"A constraint on '{constraint.table}' by '{constraint.counted}'",
            f"reads exact counts, so the number of '{constraint.counted}'{by} in each {leaf} must be an invariant",
        )


def _check_numbers(said: ConstraintSection | RelationSection, what: str) -> None:
    if said.at_least < 0:
        raise errors.topdown_plan(f"The 'at_least' of a {what}", "cannot be negative")
    if said.at_most is not None and said.at_most < max(1, said.at_least):
        raise errors.topdown_plan(f"The 'at_most' of a {what}", "must be 1 or more, and no less than 'at_least'")


def _check_relation(plan: TopDownPlan, relation: RelationSection) -> None:
    table, counted = _released(plan, relation.table), _released(plan, relation.counted)
    if table.name == counted.name:
        raise errors.topdown_plan("A relation", "must be between two tables")
    _check_numbers(relation, "relation")
    if not relation.at_least and relation.at_most is None and not relation.zero_without:
        raise errors.topdown_plan("A relation", "must have 'at_least', 'at_most' or 'zero_without'")
    table.schema_of.where(relation.where)
    counted.schema_of.where(relation.counted_where)
    for mine, theirs in relation.each.items():
        if not set(table.schema_of.values(mine)) & set(counted.schema_of.values(theirs)):
            raise errors.topdown_plan(
                f"A relation that pairs '{mine}' with '{theirs}'", "needs a value that both of them have"
            )


def _check_published(plan: TopDownPlan, wanted: PublishSection) -> None:
    table = _released(plan, wanted.table)
    _require_levels([wanted.level], plan.spine.all_levels)
    table.schema_of.number_of_groups(wanted.by)
    if [one.name for one in plan.publish].count(wanted.name) > 1:
        raise errors.topdown_plan(f"The table {wanted.name}", "can be listed under publish only once")


def _require_levels(named: Iterable[str], known: Sequence[str]) -> None:
    for level in named:
        if level not in known:
            raise errors.unknown_choice("level", level, known)


def _require_plain(table: TableSection, names: Sequence[str], what: str) -> None:
    """Raises if a name is unknown, or a recode of several attributes or of groups that overlap: what such a recode
    keeps cannot be told attribute by attribute, which explanations of a guarantee need."""
    for name in names:
        table.schema_of.values(name)
        if table.schema_of.joint(name):
            raise errors.topdown_plan(
                f"{what} by '{name}'",
                "must be by attributes, or recodes of one attribute whose groups do not overlap; such recodes can "
                "stand in queries, zeros, conditions and published tables",
            )


def _released(plan: TopDownPlan, name: str) -> TableSection:
    table = plan.table(name)
    if table.rho is None:
        raise errors.topdown_plan(
            f"The table '{name}'", "has no rho, so it is not released and nothing else can use it as a released table"
        )
    return table
