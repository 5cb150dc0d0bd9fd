"""How a budget was divided: rho for each geographic level and query, exact, as the data files of deployments have it.

A part of the budget (persons, housing units) is divided among levels, and a level's share among its queries; rho of a
query at a level is the product (Kifer et al. 2022, section 8.1). What one block's releases cost is the sum over all
levels, one unit of each, so that levels add up along one path of the spine.

Keep in mind: shares are fractions that add up to exactly one, checked when read. Budgets come *rounded*, as printed, or
as the noise was drawn; the two differ in both directions, so the caller always says which.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from stirred import _bounded_reading, errors
from stirred._display import brief, html_table
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.spec.invariant import plural
from stirred.spec.known_deployments.accounts import Erratum
from stirred.spec.known_deployments.names import data_files


@dataclass(frozen=True)
class Query:
    """A marginal: the attributes it tells about, its number of cells, and its share of each level.

    ``by`` are the columns it counts by where these are not the attributes themselves: recodes are coarser. ``moved``
    says by level how many of its cells one changed record moves at most, each by one, where these are more than two.
    """

    name: str
    attributes: tuple[str, ...]
    cells: int | None
    shares: tuple[Fraction, ...]
    by: tuple[str, ...] | None = None
    moved: tuple[int, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes or recodes whose values are counted."""
        return self.attributes if self.by is None else self.by


@brief
@dataclass(frozen=True)
class AllocationPart:
    """One part of an allocation: whose budget it is, how large it is, and how it is divided.

    ``scale`` is the global scale of the noise in production, where it is known; ``unrounded`` is 1 over its square.
    """

    name: str
    unit: str
    scale: Fraction | None
    rounded: Fraction
    level_shares: tuple[Fraction, ...]
    queries: tuple[Query, ...]

    @property
    def unrounded(self) -> Fraction:
        """rho before it was rounded for publication."""
        return self.rounded if self.scale is None else 1 / self.scale**2

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
class PublishedConcern:
    """A concern of one person as printed (the scenarios of Kifer et al. 2022, section 8.2): which attributes, and
    location within a unit of which level; its rho and the powers at levels 0.01, 0.05 and 0.10."""

    id: str
    what: str
    rho: str
    powers: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    within: str | None = None


@brief
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
    levels: tuple[str, ...]
    """From the root of the spine to its leaves."""
    parts: tuple[AllocationPart, ...]
    deployment: str = ""
    """The deployment whose budget this is, by name."""
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    published: tuple[PublishedEpsilon, ...] = ()
    concerns: tuple[PublishedConcern, ...] = ()
    errata: tuple[Erratum, ...] = ()
    recodes: tuple[tuple[str, str], ...] = ()
    """Coarser versions of attributes that invariants or queries may name: the recode, and the attribute it is of."""
    joint: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns of queries that several attributes tell together, or whose groups overlap, with these attributes. What is
    said of them is an upper bound: they are taken to change as much as they can whenever one of the attributes may."""
    single_root: bool = False
    """Whether the first level is known to be one place, such as a nation."""
    labels: tuple[tuple[str, str], ...] = ()
    """Attributes and levels in plain words, for reports and figures."""

    def _repr_html_(self) -> str:
        rows = [
            ((query, *(f"{float(self.rho(level, query, rounded=True)):.3g}" for level in self.levels)), False)
            for query in self.queries
        ]
        return html_table((f"rho of {self.title or self.name}", *self.levels), rows)

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of all queries."""
        return tuple(query.name for part in self.parts for query in part.queries)

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes that some query tells about."""
        return tuple(dict.fromkeys(name for part in self.parts for query in part.queries for name in query.attributes))

    def label(self, name: str) -> str:
        """An attribute or level in plain words, with its name where two have the same; its name where it has none.

        >>> allocation("pl94-2020").label("hhgq"), allocation("pl94-2020").label("county")
        ('household or kind of group quarters', 'county')
        """
        known = dict(self.labels)
        others = {known.get(one, one) for one in (*self.attributes, *self.levels) if one != name}
        said = known.get(name, name)
        return f"{said} ({name})" if said in others and said != name else said

    def rho(self, level: str, query: str, *, rounded: bool) -> Fraction:
        """rho of one query at one level; 0 where it was not asked."""
        part, asked = self._find(query)
        at = self._at(level)
        return part.budget(rounded=rounded) * part.level_shares[at] * asked.shares[at]

    def variance(self, level: str, query: str, *, rounded: bool) -> Fraction | float:
        """The variance of the noise on each cell of a query: 1/rho, or d/(2 rho) where a changed record moves d of its
        cells; infinite where the query was not asked.

        It is that of the continuous Gaussian; the discrete one of the same parameter has a slightly smaller one.
        """
        rho = self.rho(level, query, rounded=rounded)
        return Fraction(self.moved(level, query), 2) / rho if rho else inf

    def moved(self, level: str, query: str) -> int:
        """How many cells of a query one changed record moves at most, each by one."""
        asked = self._find(query)[1]
        return 2 if asked.moved is None else asked.moved[self._at(level)]

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
        if attribute not in self.attributes:
            raise errors.unknown_choice("attribute", attribute, self.attributes)
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


def allocation_of(deployment: str) -> Allocation | None:
    """The allocation of a deployment's budget, if it is known."""
    return next((one for one in _all().values() if deployment and one.deployment == deployment), None)


def read_allocation(path: str | Path) -> Allocation:
    """An allocation of one's own from a TOML file: ``levels``, and for each ``[[part]]`` its ``unit``, ``rho``,
    ``level_shares`` and ``[[part.query]]`` tables with ``name``, ``attributes`` and ``shares``. Numbers are text.
    ``[labels]`` may have attributes and levels in plain words."""
    try:
        fields = _bounded_reading.read_toml(Path(path), number=str)
    except tomllib.TOMLDecodeError as problem:
        raise errors.not_an_allocation(f"it is not TOML ({problem})") from None
    except _bounded_reading.Unacceptable as problem:
        raise errors.not_an_allocation(str(problem)) from None
    except (OSError, ValueError):
        raise errors.not_an_allocation("it cannot be read") from None
    named = {"name": Path(path).stem, "title": Path(path).name}
    try:
        return from_allocation_fields(named | fields)
    except KeyError as missing:
        raise errors.not_an_allocation(f"{missing} is missing") from None
    except (*NOT_A_NUMBER, AttributeError):
        raise errors.not_an_allocation("a field is not of its kind") from None


# -- reading -------------------------------------------------------------------------------------------------


@cache
def _all() -> dict[str, Allocation]:
    files = data_files(allocations=True)
    found = [from_allocation_fields(fields) for file in files for fields in file["allocation"]]
    return {one.name: one for one in found}


def from_allocation_fields(fields: Mapping[str, Any]) -> Allocation:
    """An allocation from the fields of a data file; refused unless its shares add up to exactly one."""
    result = Allocation(
        name=fields["name"],
        title=fields["title"],
        deployment=fields.get("deployment", ""),
        levels=tuple(fields["levels"]),
        parts=tuple(_part(part) for part in fields["part"]),
        sources=tuple(fields.get("sources", ())),
        notes=tuple(fields.get("notes", ())),
        published=tuple(
            PublishedEpsilon(**{**one, "delta": as_fraction(one["delta"]), "levels": tuple(one["levels"])})
            for one in fields.get("published", ())
        ),
        concerns=tuple(_concern(one) for one in fields.get("concern", ())),
        errata=tuple(Erratum(**one) for one in fields.get("errata", ())),
        recodes=tuple((recode, of) for recode, of in fields.get("recodes", ())),
        single_root=fields.get("single_root", False) is True,
        labels=tuple(dict(fields.get("labels", {})).items()),
    )
    texts = [*result.levels, *(part.unit for part in result.parts), *result.queries]
    texts += [name for part in result.parts for query in part.queries for name in (*query.attributes, *query.columns)]
    texts += [name for pair in (*result.recodes, *result.labels) for name in pair]
    if not all(isinstance(one, str) and one and not _bounded_reading.has_controls(one) for one in texts):
        raise errors.not_an_allocation("a level, unit, query, attribute or label is not a name")
    names = result.queries
    if len(set(names)) < len(names):
        raise errors.not_an_allocation("it names a query twice")
    for part in result.parts:
        if any(len(query.shares) != len(result.levels) for query in part.queries):
            raise errors.not_an_allocation("a query does not have one share for each level")
        _require_one(result.name, f"the levels of '{part.name}'", part.level_shares, len(result.levels))
        for at, level in enumerate(result.levels):
            shares = tuple(query.shares[at] for query in part.queries)
            _require_one(result.name, f"'{part.name}' at level '{level}'", shares, len(part.queries))
    return result


def _part(fields: Mapping[str, Any]) -> AllocationPart:
    queries = tuple(
        Query(
            one["name"],
            tuple(one["attributes"]),
            one.get("cells"),
            _fractions(one["shares"]),
            tuple(one["by"]) if "by" in one else None,
        )
        for one in fields["query"]
    )
    return AllocationPart(
        fields.get("name", plural(fields["unit"])),
        fields["unit"],
        as_fraction(fields["scale"]) if "scale" in fields else None,
        as_fraction(fields["rho"]),
        _fractions(fields["level_shares"]),
        queries,
    )


def _concern(fields: Mapping[str, Any]) -> PublishedConcern:
    lists = {name: tuple(fields.get(name, ())) for name in ("powers", "attributes")}
    return PublishedConcern(**{**fields, **lists})


def _fractions(texts: Collection[str | int]) -> tuple[Fraction, ...]:
    return tuple(as_fraction(text) for text in texts)


def _require_one(name: str, where: str, shares: tuple[Fraction, ...], number: int) -> None:
    total = sum(shares, Fraction(0))
    if total != 1 or len(shares) != number or min(shares, default=0) < 0:
        raise errors.shares_do_not_add_up(name, where, total)
