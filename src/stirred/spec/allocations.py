"""How a budget was divided: rho for each geographic level and query, exact, from the data files of
``stirred/deployments``.

A part of the budget (persons, housing units) is divided among levels, and a level's share among its queries; rho of a
query at a level is the product (Kifer et al. 2022, section 8.1). What one block's releases cost is the sum over all
levels, one unit of each, so that levels add up along one path of the spine.

The invariant a reader must know: shares are fractions that add up to exactly one, checked when read. Budgets come
*rounded*, as printed, or as the noise was drawn; the two differ in both directions, so the caller always says which.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import inf
from typing import Any

from stirred import errors
from stirred.spec.deployments import Erratum

VERSION = 1
"""Of the form of the data files."""


@dataclass(frozen=True)
class Query:
    """A marginal: the attributes it tells about, its number of cells, and its share of each level."""

    name: str
    attributes: tuple[str, ...]
    cells: int
    shares: tuple[Fraction, ...]


@dataclass(frozen=True)
class AllocationPart:
    """A budget of its own: for whom, how large, and its division.

    ``scale`` is the global scale of the noise in production; ``unrounded`` is 1 over its square.
    """

    name: str
    unit: str
    scale: Fraction
    rounded: Fraction
    level_shares: tuple[Fraction, ...]
    queries: tuple[Query, ...]

    @property
    def unrounded(self) -> Fraction:
        return 1 / self.scale**2

    def budget(self, *, rounded: bool) -> Fraction:
        """The whole rho of the part."""
        return self.rounded if rounded else self.unrounded


@dataclass(frozen=True)
class PublishedEpsilon:
    """An epsilon as printed, and which share of the budget it is of: all queries at some levels, or those that tell
    about one attribute."""

    what: str
    epsilon: str
    delta: Fraction
    conversion: str
    part: str
    levels: tuple[str, ...]
    attribute: str | None = None


@dataclass(frozen=True)
class Allocation:
    """A budget and its division among levels and queries.

    >>> pl94 = allocation("pl94-2020")
    >>> pl94.rho("county", "occupancy", rounded=True)  # 0.07 * 7/82
    Fraction(49, 8200)
    >>> pl94.total(rounded=True), round(float(pl94.variance("state", "total", rounded=True)), 4)
    (Fraction(263, 100), 1.2074)
    """

    name: str
    title: str
    deployment: str
    """The deployment whose budget this is, by name."""
    levels: tuple[str, ...]
    parts: tuple[AllocationPart, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()
    published: tuple[PublishedEpsilon, ...] = ()
    errata: tuple[Erratum, ...] = ()

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries."""
        return tuple(query.name for part in self.parts for query in part.queries)

    def rho(self, level: str, query: str, *, rounded: bool) -> Fraction:
        """rho of one query at one level; 0 where it was not asked."""
        part, asked = self._find(query)
        at = self._at(level)
        return part.budget(rounded=rounded) * part.level_shares[at] * asked.shares[at]

    def variance(self, level: str, query: str, *, rounded: bool) -> Fraction | float:
        """The variance of the noise on each cell of a query: 1/rho; infinite where the query was not asked.

        It is that of the continuous Gaussian; the discrete one of the same parameter has a slightly smaller one.
        """
        rho = self.rho(level, query, rounded=rounded)
        return 1 / rho if rho else inf

    def total(
        self,
        *,
        rounded: bool,
        levels: Collection[str] | None = None,
        queries: Collection[str] | None = None,
    ) -> Fraction:
        """The sum of rho over some levels and queries, by default all."""
        chosen = self.queries if queries is None else queries
        return sum(
            (
                self.rho(level, query, rounded=rounded)
                for level in (self.levels if levels is None else levels)
                for query in chosen
            ),
            Fraction(0),
        )

    def about(self, attribute: str) -> tuple[str, ...]:
        """The queries that tell about an attribute.

        >>> allocation("pl94-2020").about("hhgq")
        ('hhinstlevels', 'hhgq', 'hhgq*votingage*hispanic*cenrace')
        """
        known = dict.fromkeys(name for part in self.parts for query in part.queries for name in query.attributes)
        if attribute not in known:
            raise errors.unknown_choice("attribute", attribute, list(known))
        return tuple(query.name for part in self.parts for query in part.queries if attribute in query.attributes)

    def part(self, name: str) -> AllocationPart:
        """The part of this name."""
        for part in self.parts:
            if part.name == name:
                return part
        raise errors.unknown_choice("part", name, [part.name for part in self.parts])

    def cells(self) -> Iterator[tuple[str, str]]:
        """Every level and query with a share above 0."""
        for part in self.parts:
            for query in part.queries:
                for at, level in enumerate(self.levels):
                    if query.shares[at] * part.level_shares[at]:
                        yield level, query.name

    def _at(self, level: str) -> int:
        if level not in self.levels:
            raise errors.unknown_choice("level", level, self.levels)
        return self.levels.index(level)

    def _find(self, query: str) -> tuple[AllocationPart, Query]:
        for part in self.parts:
            for one in part.queries:
                if one.name == query:
                    return part, one
        raise errors.unknown_choice("query", query, self.queries)


def allocation(name: str) -> Allocation:
    """The allocation of this name."""
    known = _all()
    if name not in known:
        raise errors.unknown_choice("allocation", name, list(known))
    return known[name]


def allocation_names() -> list[str]:
    """All names.

    >>> allocation_names()
    ['pl94-2020']
    """
    return list(_all())


# -- reading -------------------------------------------------------------------------------------------------


@cache
def _all() -> dict[str, Allocation]:
    folder = files("stirred") / "deployments"
    read = [
        tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.startswith("allocations-")
    ]
    assert all(file["stirred_deployments"] == VERSION for file in read)
    found = [from_allocation_fields(fields) for file in read for fields in file["allocation"]]
    return {one.name: one for one in found}


def from_allocation_fields(fields: Mapping[str, Any]) -> Allocation:
    """An allocation from the fields of a data file; refused unless its shares add up to exactly one."""
    result = Allocation(
        name=fields["name"],
        title=fields["title"],
        deployment=fields["deployment"],
        levels=tuple(fields["levels"]),
        parts=tuple(_part(part) for part in fields["part"]),
        sources=tuple(fields["sources"]),
        notes=tuple(fields.get("notes", ())),
        published=tuple(
            PublishedEpsilon(**{**one, "delta": Fraction(one["delta"]), "levels": tuple(one["levels"])})
            for one in fields.get("published", ())
        ),
        errata=tuple(Erratum(**one) for one in fields.get("errata", ())),
    )
    for part in result.parts:
        _require_one(result.name, f"the levels of '{part.name}'", part.level_shares, len(result.levels))
        for at, level in enumerate(result.levels):
            shares = tuple(query.shares[at] for query in part.queries)
            _require_one(result.name, f"'{part.name}' at level '{level}'", shares, len(part.queries))
    return result


def _part(fields: Mapping[str, Any]) -> AllocationPart:
    queries = tuple(
        Query(one["name"], tuple(one["attributes"]), one["cells"], _fractions(one["shares"])) for one in fields["query"]
    )
    return AllocationPart(
        fields["name"],
        fields["unit"],
        Fraction(fields["scale"]),
        Fraction(fields["rounded"]),
        _fractions(fields["level_shares"]),
        queries,
    )


def _fractions(texts: Collection[str]) -> tuple[Fraction, ...]:
    return tuple(Fraction(text) for text in texts)


def _require_one(name: str, where: str, shares: tuple[Fraction, ...], number: int) -> None:
    total = sum(shares, Fraction(0))
    if total != 1 or len(shares) != number or min(shares) < 0:
        raise errors.shares_do_not_add_up(name, where, total)
