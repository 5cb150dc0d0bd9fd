"""The parts of a TopDown plan: geography, tables with their queries, what is kept, what is published.

Names and values here are public; shares and budgets are exact fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.invariants import Margin
from stirred.margins.schema import Attribute, Condition, JointRecode, Recode, Schema
from stirred.releases.plans import MOST_SECTIONS, InputSection, Names, Section, Unit, slug

OPEN = "? "
"""Begins what a draft leaves to be answered; a plan with it is refused."""
TOTAL = "total"
"""The name of the query that counts all records."""


def _share(written: object) -> Fraction:
    try:
        share = as_fraction(written)
    except NOT_A_NUMBER:
        raise errors.topdown_plan(
            f"The share or budget {written!r}", "must be a number, or a fraction in quotes"
        ) from None
    if share < 0:
        raise errors.topdown_plan(f"The share or budget {written!r}", "cannot be negative")
    return share


Conditions = Annotated[tuple[Mapping[str, Names], ...], Field(max_length=MOST_SECTIONS)]
"""A list of conditions, each with the values that some attributes may have."""
Share = Annotated[Fraction, BeforeValidator(_share), PlainSerializer(str, return_type=str)]


class PlacesInput(InputSection):
    """Where the public list of geounits is. With ``prefixes`` it needs one column, the code of the finest unit, in
    which a coarser unit's code is the first so many characters; ``code`` names that column if it is not called like
    the finest level."""

    code: str | None = None
    prefixes: Mapping[str, Annotated[int, Field(ge=1, le=1000)]] = Field(default_factory=dict)


class SpineSection(Section):
    """The levels from the coarsest to the finest, each a column of the public list of geounits.

    ``root`` names a level above the columns that has one unit. ``absent`` are levels of the budget's division that this
    spine does not have, such as the nation for one state: their shares are not spent.
    """

    levels: Names
    root: str | None = None
    absent: Names = ()
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Levels in plain words, for reports and figures."""
    input: PlacesInput = Field(default_factory=PlacesInput)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """All levels from the root of this spine to its leaves."""
        return (self.root, *self.levels) if self.root is not None else self.levels


class AttributeSection(Section):
    """A categorical column with its full domain. ``label`` says in plain words what it is, for reports and figures."""

    name: str
    values: Names
    column: str | None = None
    label: str | None = None


class RecodeSection(Section):
    """A coarser version of an attribute: its groups by name, each with the values that belong to it.

    With several attributes in ``of`` a group is a list of conditions, each with values for some of them; a combination
    of values belongs to the group if one of the conditions holds. Groups that are ``overlapping`` may have values or
    combinations in common, and need not have all.
    """

    name: str
    of: str | Names
    groups: Mapping[str, Names | Conditions]
    overlapping: bool = False

    def recode(self) -> Recode | JointRecode:
        """The recode as a schema has it."""
        of = (self.of,) if isinstance(self.of, str) else self.of
        plain = [values for values in self.groups.values() if all(isinstance(one, str) for one in values)]
        if len(of) > 1 and plain:
            raise errors.topdown_plan(
                f"The recode '{self.name}'",
                'is of several attributes, so its groups must be lists of conditions such as {race = ["1"], sex = '
                '["f"]}',
            )
        if isinstance(self.of, str) and not self.overlapping and len(plain) == len(self.groups):
            return Recode(self.name, self.of, tuple((label, _texts(values)) for label, values in self.groups.items()))
        groups = tuple((label, _conditions(of[0], values)) for label, values in self.groups.items())
        return JointRecode(self.name, of, groups, self.overlapping)


def _texts(values: Names | Conditions) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _conditions(attribute: str, values: Names | Conditions) -> tuple[Condition, ...]:
    """The conditions of a group; a list of values is one condition on the recode's only attribute."""
    listed = tuple(tuple(one.items()) for one in values if not isinstance(one, str))
    texts = _texts(values)
    return (*listed, *([((attribute, texts),)] if texts or not listed else []))


class QuerySection(Section):
    """A marginal to measure: the attributes or recodes it is by (none: the total), and its share of each level."""

    by: Names = ()
    shares: Mapping[str, Share] | Share

    @property
    def name(self) -> str:
        """The attributes joined by ``*``, or the name of the total."""
        return "*".join(self.by) or TOTAL

    def share(self, level: str) -> Fraction:
        """The query's share of a level's budget."""
        return self.shares.get(level, Fraction(0)) if isinstance(self.shares, Mapping) else self.shares


class TableSection(Section):
    """A confidential table: one row for each unit, or with ``count`` one row for each kind of them.

    Without ``rho`` it is not released: its counts serve invariants and constraints only.
    """

    name: str
    unit: Unit
    place: str | None = None
    """The column with the finest geounit; by default it is called like the finest level."""
    count: str | None = None
    attributes: tuple[AttributeSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    recodes: tuple[RecodeSection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    zeros: tuple[Mapping[str, Names], ...] = Field(default=(), max_length=MOST_SECTIONS)
    """Combinations of values that cannot occur."""
    rho: Share | None = None
    level_shares: Mapping[str, Share] = Field(default_factory=dict)
    queries: tuple[QuerySection, ...] = Field(default=(), max_length=MOST_SECTIONS)
    input: InputSection = Field(default_factory=InputSection)

    @cached_property
    def schema_of(self) -> Schema:
        """Attributes, recodes and cells of the table."""
        attributes = tuple(Attribute(one.name, one.values) for one in self.attributes)
        return Schema(attributes, tuple(one.recode() for one in self.recodes))

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Which cells can have a record: those that no zero rules out."""
        found = np.ones(self.schema_of.cells, dtype=np.bool_)
        for zero in self.zeros:
            found &= ~self.schema_of.where(zero)
        return found

    def rho_of(self, level: str, query: QuerySection) -> Fraction:
        """rho of one query at one level; see :meth:`variance_of`."""
        return (self.rho or Fraction(0)) * self.level_shares.get(level, Fraction(0)) * query.share(level)

    def moved(self, query: QuerySection, one_place: bool) -> int:
        """By how much one changed record moves a query at most: the squared length of the change, 2 unless groups
        overlap. ``one_place`` is for a level that has one unit."""
        key = (query.by, one_place)
        if key not in self._moved:
            self._moved[key] = self.schema_of.most_moved(query.by, one_place)
        return self._moved[key]

    def variance_of(self, level: str, query: QuerySection, one_place: bool = False) -> Fraction | None:
        """The variance of the noise on a query's cells at one level: d / (2 rho), where a changed record moves the
        query by d at most (:meth:`moved`), so one over rho unless groups overlap. None where it is not measured."""
        rho = self.rho_of(level, query)
        return self.moved(query, one_place) / (2 * rho) if rho else None

    @cached_property
    def _moved(self) -> dict[tuple[tuple[str, ...], bool], int]:
        return {}


class InvariantSection(Section):
    """A margin that is released as it is: the number of records by some attributes in every unit of a level.

    >>> print(InvariantSection(table="persons", level="state").margin)
    the number of 'persons' in each state
    """

    table: str
    level: str
    by: Names = ()

    @property
    def margin(self) -> Margin:
        """The margin that is kept, as the certificate states it."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        words = f"the number of '{self.table}'{by} in each {self.level}"
        return Margin(self.table, (self.level, *self.by), words)


class ConstraintSection(Section):
    """What another table's counts in a finest geounit say about this one's.

    ``each`` pairs an attribute of ``table`` with one of ``counted``: a value of the first goes with the same value of
    the second. Without it, ``where`` picks cells of ``table`` and the whole count of ``counted`` is looked at. Where
    nothing is counted there are none (``zero_without``); where something is, at least ``at_least`` for each, and at
    most ``at_most``.
    """

    table: str
    counted: str
    each: Mapping[str, str] = Field(default_factory=dict)
    where: Mapping[str, Names] = Field(default_factory=dict)
    at_least: int = 0
    zero_without: bool = True
    at_most: int | None = None


class RelationSection(Section):
    """What two released tables have to do with each other in every finest geounit, and so in every unit above.

    ``where`` picks records of ``table`` and ``counted_where`` records of ``counted``, all of them if they are left out;
    ``each`` pairs an attribute of ``table`` with one of ``counted``, as in a constraint. For each record of ``counted``
    there are at least ``at_least`` records of ``table`` and at most ``at_most``; where there is none of ``counted``
    there is none of ``table`` (``zero_without``). ``counted`` is fitted first, and its released counts are what the
    fit of ``table`` keeps to.
    """

    table: str
    counted: str
    each: Mapping[str, str] = Field(default_factory=dict)
    where: Mapping[str, Names] = Field(default_factory=dict)
    counted_where: Mapping[str, Names] = Field(default_factory=dict)
    at_least: int = 0
    at_most: int | None = None
    zero_without: bool = True


class TargetSection(Section):
    """Areas off the spine that tables are wanted for, such as districts: a column of the list of geounits, in which a
    null stands for no area. ``check`` says which errors to expect in them; nothing else reads it."""

    column: str
    name: str | None = None

    @property
    def words(self) -> str:
        """What the areas are called."""
        return self.name or self.column


class PublishSection(Section):
    """A table to publish beside the microdata: counts by some attributes or recodes in every unit of a level."""

    table: str
    level: str
    by: Names = ()

    @property
    def name(self) -> str:
        """The name of its file, without the extension."""
        return "-".join(slug(part) for part in (self.table, self.level, *self.by))


class EarlierSection(Section):
    """A release that this one must agree with: the counts of its records in every unit of the finest level that both
    have, ``H(Z) = P``.

    ``of`` is the earlier release's table (by default of the same name), ``by`` the attributes or recodes of ``table``
    that agree with its columns of the same names (by default all columns it has).
    """

    path: str
    table: str
    of: str | None = None
    by: Names = ()
