"""The plan of a TopDown release: geography, tables, queries, the division of the budget, and what is kept exactly.

A plan is public. It lists the full domain of every attribute, and it names columns; nothing in it is read from the
confidential tables. Shares are fractions that add up to exactly one: a table's rho is divided among levels, and a
level's share among the table's queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.release.plans import (
    ChosenFrom,
    InputSection,
    Names,
    PlanSection,
    Section,
    beside,
    dicts,
    hash_of,
    read_plan,
)
from stirred.spec.allocations import Allocation, AllocationPart, Query
from stirred.topdown.schema import Attribute, Recode, Schema

TOTAL = "total"
"""The name of the query that counts all records."""


def _share(written: object) -> Fraction:
    try:
        share = as_fraction(written)
    except NOT_A_NUMBER:
        raise errors.topdown_plan(f"The share or budget {written!r}", "is a number, or a fraction in quotes") from None
    if share < 0:
        raise errors.topdown_plan(f"The share or budget {written!r}", "is not negative")
    return share


Share = Annotated[Fraction, BeforeValidator(_share), PlainSerializer(str, return_type=str)]


class SpineSection(Section):
    """The levels from the coarsest to the finest, each a column of the public list of geounits.

    ``root`` names a level above the columns that has one unit. ``absent`` are levels of the budget's division that this
    spine does not have, such as the nation for one state: their shares are not spent.
    """

    levels: Names
    root: str | None = None
    absent: Names = ()
    input: InputSection = Field(default_factory=InputSection)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """From the root of this spine to its leaves."""
        return (self.root, *self.levels) if self.root is not None else self.levels


class AttributeSection(Section):
    """A categorical column with its full domain."""

    name: str
    values: Names
    column: str | None = None


class RecodeSection(Section):
    """A coarser version of an attribute: its groups by name, each with the values that belong to it."""

    name: str
    of: str
    groups: Mapping[str, Names]


class QuerySection(Section):
    """A marginal to measure: the attributes or recodes it is by (none: the total), and its share of each level."""

    by: Names = ()
    shares: Mapping[str, Share] | Share

    @property
    def name(self) -> str:
        return "*".join(self.by) or TOTAL

    def share(self, level: str) -> Fraction:
        return self.shares.get(level, Fraction(0)) if isinstance(self.shares, Mapping) else self.shares


class TableSection(Section):
    """A confidential table: one row for each unit, or with ``count`` one row for each kind of them.

    Without ``rho`` it is not released: its counts serve invariants and constraints only.
    """

    name: str
    unit: str
    place: str | None = None
    """The column with the finest geounit; by default it is called like the finest level."""
    count: str | None = None
    attributes: tuple[AttributeSection, ...] = ()
    recodes: tuple[RecodeSection, ...] = ()
    zeros: tuple[Mapping[str, Names], ...] = ()
    """Combinations of values that cannot occur."""
    rho: Share | None = None
    level_shares: Mapping[str, Share] = Field(default_factory=dict)
    queries: tuple[QuerySection, ...] = ()
    input: InputSection = Field(default_factory=InputSection)

    @cached_property
    def schema_of(self) -> Schema:
        attributes = tuple(Attribute(one.name, one.values) for one in self.attributes)
        return Schema(attributes, tuple(Recode(one.name, one.of, tuple(one.groups.items())) for one in self.recodes))

    def rho_of(self, level: str, query: QuerySection) -> Fraction:
        """rho of one query at one level; the noise on its cells has variance one over it."""
        return (self.rho or Fraction(0)) * self.level_shares.get(level, Fraction(0)) * query.share(level)


class InvariantSection(Section):
    """A margin that is released as it is: the number of records by some attributes in every unit of a level."""

    table: str
    level: str
    by: Names = ()


class ConstraintSection(Section):
    """What another table's counts in a finest geounit say about this one's.

    ``each`` pairs an attribute of ``table`` with one of ``counted``: a value of the first goes with the same value of
    the second. Without it, ``where`` picks cells of ``table`` and the whole count of ``counted`` is looked at. Where
    nothing is counted there are none (``zero_without``); where something is, at least ``at_least`` for each.
    """

    table: str
    counted: str
    each: Mapping[str, str] = Field(default_factory=dict)
    where: Mapping[str, Names] = Field(default_factory=dict)
    at_least: int = 0
    zero_without: bool = True


class TopDownPlan(PlanSection):
    """What the TopDown Algorithm is to do. Frozen; docs/topdown.md explains every field."""

    dataset: str | None = None
    """The confidential dataset's name, by which a ledger knows it."""
    unit: str = "person"
    """The protected unit: that of one of the released tables."""
    spine: SpineSection
    tables: tuple[TableSection, ...]
    invariants: tuple[InvariantSection, ...] = ()
    constraints: tuple[ConstraintSection, ...] = ()
    passes: Literal["auto", "one", "two"] = "auto"
    chosen_from: ChosenFrom | None = None
    format: Literal["csv", "parquet", "arrow"] = "parquet"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        _check_names(self)
        for table in self.released:
            _check_shares(self, table)
        for invariant in self.invariants:
            table = self.table(invariant.table)
            if invariant.level not in self.spine.all_levels:
                raise errors.unknown_choice("level", invariant.level, self.spine.all_levels)
            table.schema_of.groups(invariant.by)
        for constraint in self.constraints:
            _check_constraint(self, constraint)
        for table in self.tables:
            for zero in table.zeros:
                table.schema_of.where(zero)
        return self

    @property
    def released(self) -> tuple[TableSection, ...]:
        """The tables with a budget."""
        return tuple(table for table in self.tables if table.rho is not None)

    def table(self, name: str) -> TableSection:
        for table in self.tables:
            if table.name == name:
                return table
        raise errors.unknown_choice("table", name, [table.name for table in self.tables])

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the budget's division, also those that the spine does not have."""
        return (*self.spine.absent, *self.spine.all_levels)

    @cached_property
    def rho(self) -> Fraction:
        """What is spent: the shares of the levels that the spine has."""
        return sum(
            (
                table.rho_of(level, query)
                for table in self.released
                for level in self.spine.all_levels
                for query in table.queries
            ),
            Fraction(0),
        )

    def allocation(self) -> Allocation:
        """The division of the budget as semantics look things up in it; absent levels have no part in it."""
        levels = self.spine.all_levels
        parts = []
        for table in self.released:
            spent = {level: sum((table.rho_of(level, q) for q in table.queries), Fraction(0)) for level in levels}
            rho = sum(spent.values(), Fraction(0))
            queries = tuple(
                Query(
                    query.name if len(self.released) == 1 else f"{query.name} of {table.name}",
                    tuple(dict.fromkeys(table.schema_of.base(name) for name in query.by)),
                    table.schema_of.number_of_groups(query.by),
                    tuple(table.rho_of(lv, query) / spent[lv] if spent[lv] else _first(query, table) for lv in levels),
                )
                for query in table.queries
            )
            shares = tuple(spent[level] / rho for level in levels)
            parts.append(AllocationPart(table.name, table.unit, None, rho, shares, queries))
        return Allocation(self.dataset or "plan", self.dataset or "the plan", levels, tuple(parts))

    @classmethod
    def from_toml(cls, path: str | Path) -> TopDownPlan:
        """Read a plan file; relative paths in it are taken from the plan's own folder."""
        fields = read_plan(path, "topdown")
        spine = fields.get("spine")
        inputs = [spine.get("input")] if isinstance(spine, dict) else []
        beside(path, [*inputs, *(table.get("input") for table in dicts(fields.get("tables")))])
        return cls(**fields)

    def published(self) -> dict[str, Any]:
        """The plan as a release states it: not where the inputs were or how they were stored."""
        fields = self.model_dump(mode="json", exclude={"format"}, exclude_defaults=True)
        for section in [fields["spine"], *fields["tables"]]:
            section.pop("input", None)
        return {"stirred": 1, "mechanism": "topdown", **fields}

    def hash(self) -> str:
        return hash_of(self.published())


# -- checks --------------------------------------------------------------------------------------------------


def _check_names(plan: TopDownPlan) -> None:
    for what, names in (("level", plan.levels), ("table", [table.name for table in plan.tables])):
        if not names or len(set(names)) < len(names):
            raise errors.topdown_plan(f"Each {what}", "has a name of its own, and there is at least one")
    if not plan.released:
        raise errors.topdown_plan("At least one table", "has a rho")
    if plan.unit not in [table.unit for table in plan.released]:
        raise errors.topdown_plan(f"The protected unit '{plan.unit}'", "is that of a table with a rho")
    for table in plan.tables:
        _ = table.schema_of


def _check_shares(plan: TopDownPlan, table: TableSection) -> None:
    """Shares add up to exactly one, over the levels and over the queries of each level that has a share."""
    strange = [level for level in table.level_shares if level not in plan.levels]
    if strange:
        raise errors.unknown_choice("level", strange[0], plan.levels)
    names = [query.name for query in table.queries]
    if not names or len(set(names)) < len(names):
        raise errors.topdown_plan(f"The table '{table.name}'", "asks each of its queries once, and at least one")
    if table.rho == 0:
        raise errors.topdown_plan(f"The rho of '{table.name}'", "is above 0; leave it out if nothing is released")
    _require_one(table.name, "the levels", [table.level_shares.get(level, Fraction(0)) for level in plan.levels])
    for level in plan.levels:
        for query in table.queries:
            if isinstance(query.shares, Mapping):
                unknown = [name for name in query.shares if name not in plan.levels]
                if unknown:
                    raise errors.unknown_choice("level", unknown[0], plan.levels)
            table.schema_of.groups(query.by)
        if table.level_shares.get(level, 0):
            shares = [query.share(level) for query in table.queries]
            _require_one(table.name, f"the queries at level '{level}'", shares)
        elif level in plan.spine.all_levels:
            raise errors.topdown_plan(f"The level '{level}' of '{table.name}'", "has a share of the budget")


def _require_one(table: str, where: str, shares: Sequence[Fraction]) -> None:
    total = sum(shares, Fraction(0))
    if total != 1:
        raise errors.shares_do_not_add_up(table, where, total)


def _check_constraint(plan: TopDownPlan, constraint: ConstraintSection) -> None:
    table, counted = plan.table(constraint.table), plan.table(constraint.counted)
    if bool(constraint.each) == bool(constraint.where):
        raise errors.topdown_plan("A constraint", "has either 'each' or 'where'")
    if constraint.at_least < 0:
        raise errors.topdown_plan("The 'at_least' of a constraint", "is not negative")
    table.schema_of.where(constraint.where)
    for mine, theirs in constraint.each.items():
        table.schema_of.values(mine)
        counted.schema_of.values(theirs)
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


def _first(query: QuerySection, table: TableSection) -> Fraction:
    """For a level where nothing is spent: any division will do."""
    return Fraction(int(query.name == table.queries[0].name))
