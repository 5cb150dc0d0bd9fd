"""What the guarantee is worth to a person who is concerned about one thing: an attribute, where they live, or both.

A whole budget bounds what is learnt about a whole record. For somebody concerned only about their race, or only about
the block of their tract they live on, fewer datasets are compared: those that differ in nothing else. Only the queries
whose answers then change tell anything, and their shares of rho add up (Kifer et al. 2022, section 8). Every bound on
tests and beliefs holds with that smaller rho, for that concern.

Keep in mind: a concern restricts which datasets are compared; no noise is added. So an
:class:`Exposure` always names its queries. A concern whose changes would break an invariant of the specification is
explained between datasets that keep it, further apart (:mod:`stirred.semantics.concern_changes`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.errors import listed
from stirred.loss import ComposedLoss, GaussianCurve, ZcdpCurve, compose, discrete_gaussian
from stirred.semantics.testing import gaussian_curve
from stirred.spec.known_deployments.allocations import Allocation, PublishedConcern

EVERYTHING = "everything"
"""The concern of someone who minds the whole record."""

MOVED_CELLS = 2
"""Of each query that one changed record changes: a count goes down by one, another up."""


@dataclass(frozen=True)
class Concern:
    """What somebody is concerned about: attributes, location within a geographic level, both, or a choice of queries.

    ``cells`` is one's own choice of (level, query), in place of the rules; ``without`` takes away (level, query) that
    one regards as telling nothing. A concern with neither attributes, location nor cells is about everything.

    >>> print(Concern(("cenrace",), within="tract"))
    cenrace + location within tract
    """

    attributes: tuple[str, ...] = ()
    within: str | None = None
    cells: tuple[tuple[str, str], ...] | None = None
    without: tuple[tuple[str, str], ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(dict.fromkeys(self.attributes)))
        if self.cells is not None and (self.attributes or self.within is not None):
            raise errors.bad_concern("is a choice of queries, or attributes and a location, not both")

    def __str__(self) -> str:
        if self.name:
            return self.name
        if self.cells is not None:
            return "one chosen query" if len(self.cells) == 1 else f"{len(self.cells)} chosen queries"
        said = [*self.attributes, *([f"location within {self.within}"] if self.within is not None else [])]
        but = f" without {len(self.without)} of its queries" if self.without else ""
        return (" + ".join(said) or EVERYTHING) + but

    @property
    def whole(self) -> bool:
        """Whether it is about the whole record."""
        return not self.attributes and self.within is None and self.cells is None

    @classmethod
    def read(cls, text: str, allocation: Allocation) -> Concern:
        """A concern from what a person types: ``cenrace``, ``block within tract``, ``cenrace + votingage + within
        tract``; ``cenrace without cenrace at us, cenrace at state`` leaves queries out, and ``only total at block``
        is a choice of queries.

        >>> from stirred.spec.known_deployments.allocations import allocation
        >>> Concern.read("cenrace + block within tract", allocation("pl94-2020"))
        Concern(attributes=('cenrace',), within='tract', cells=None, without=(), name='')
        """
        minded, _, left_out = text.strip().partition(" without ")
        without = _cells(left_out) if left_out else ()
        if minded.strip() == EVERYTHING:
            return cls(without=without)
        if minded.strip().startswith("only "):
            return cls(cells=_cells(minded.strip().removeprefix("only ")), without=without)
        attributes: list[str] = []
        within: str | None = None
        for part in (piece.strip() for piece in minded.split("+")):
            what, location, level = f" {part} ".partition(" within ")
            if not location:
                attributes.append(_named(part, allocation.attributes))
                continue
            if within is not None:
                raise errors.bad_concern("has one location")
            within, finer = _named(level.strip(), allocation.levels), what.strip()
            lower = _below(allocation, within)
            if _named(finer, lower) not in ("", "location", *lower):
                raise errors.unknown_choice(f"level below '{within}'", finer, lower)
        for attribute in attributes:
            allocation.about(attribute)
        return cls(tuple(attributes), within, without=without)

    @classmethod
    def of(cls, published: PublishedConcern) -> Concern:
        """A concern that a publication gives numbers for."""
        return cls(published.attributes, published.within, name=published.what)

    def chosen(self, allocation: Allocation) -> tuple[tuple[str, str], ...]:
        """The (level, query) whose answers change with what the concern is about.

        All queries at every level below the one that location is within, and at all levels those that tell about one of
        the attributes. Queries about housing units change with location and with no attribute of a person.
        """
        asked = list(allocation.cells())
        for level, query in (*(self.cells or ()), *self.without):
            if (level, query) not in asked:
                known = [one for where, one in asked if where == level] or allocation.queries
                raise errors.unknown_choice(f"query at level '{level}'", query, known)
        if self.cells is not None:
            kept = [cell for cell in asked if cell in self.cells]
        elif self.whole:
            kept = asked
        else:
            lower = _below(allocation, self.within) if self.within is not None else ()
            telling = {query for attribute in self.attributes for query in allocation.about(attribute)}
            kept = [(level, query) for level, query in asked if level in lower or query in telling]
        return tuple(cell for cell in kept if cell not in self.without)

    def columns(self, allocation: Allocation) -> tuple[str, ...]:
        """What may differ in the one record: attributes with their recodes, geographic levels of its location. Of
        chosen queries, what they tell about; a total tells about its level."""
        if self.cells is not None:
            told = {query.name: query.attributes for part in allocation.parts for query in part.queries}
            named = [name for level, query in self.cells for name in (told[query] or (level,))]
            highest = min((allocation.levels.index(one) for one in named if one in allocation.levels), default=None)
            places = () if highest is None else allocation.levels[highest:]  # who moves to another state moves house
            columns = (*places, *dict.fromkeys(one for one in named if one not in places))
        elif self.whole:
            columns = (*allocation.levels, *allocation.attributes)
        else:
            columns = (*(_below(allocation, self.within) if self.within is not None else ()), *self.attributes)
        joint = (name for name, attributes in allocation.joint if set(attributes) & set(columns))
        return (*columns, *(recode for recode, attribute in allocation.recodes if attribute in columns), *joint)


@brief
@dataclass(frozen=True)
class Exposure:
    """How much of an allocation tells about a concern, and every curve that follows.

    >>> from stirred.spec.known_deployments.allocations import allocation
    >>> block = exposure(allocation("pl94-2020"), Concern(within="block group"), rounded=True)
    >>> block.rho, round(float(block.gaussian.power(0.05)), 6)
    (Fraction(37477407, 336118000), 0.120473)
    """

    allocation: Allocation
    concern: Concern
    rounded: bool
    cells: tuple[tuple[str, str], ...]

    @cached_property
    def rho(self) -> Fraction:
        """What the queries cost together."""
        return sum((self.rho_of(level, query) for level, query in self.cells), Fraction(0))

    def rho_of(self, level: str, query: str) -> Fraction:
        """rho of one query at one geographic level."""
        return self.allocation.rho(level, query, rounded=self.rounded)

    @property
    def gaussian(self) -> GaussianCurve:
        """The power if the noise were continuous: quick, and near the truth at the settings of a census (G18)."""
        return gaussian_curve(self.rho)

    @property
    def bound(self) -> ZcdpCurve:
        """The power that any mechanism of this rho may allow."""
        return ZcdpCurve(float(self.rho))

    def loss(self, grid: float | None = None) -> ComposedLoss:
        """The privacy loss of the discrete Gaussian noise itself: for each query two cells that move by one, or more
        where its groups overlap."""
        variances: Counter[Fraction] = Counter()
        for level, query in self.cells:
            moved = self.allocation.moved(level, query)
            variances[Fraction(moved, MOVED_CELLS) / self.rho_of(level, query)] += moved
        parts = [(discrete_gaussian(variance), count) for variance, count in variances.items()]
        return compose(parts, grid)

    def queries(self) -> str:
        """The queries in words, by the levels at which they are asked."""
        by_query: dict[str, list[str]] = {}
        for level, query in self.cells:
            by_query.setdefault(query, []).append(level)
        by_levels: dict[tuple[str, ...], list[str]] = {}
        for query, levels in by_query.items():
            by_levels.setdefault(tuple(levels), []).append(query)
        return "; ".join(f"{self._queries(queries)} at {self._levels(levels)}" for levels, queries in by_levels.items())

    def _queries(self, queries: list[str]) -> str:
        return "all queries" if set(queries) == set(self.allocation.queries) else f"queries {listed(queries)}"

    def _levels(self, levels: tuple[str, ...]) -> str:
        if levels == self.allocation.levels:
            return "all levels"
        return f"level{'s' if len(levels) > 1 else ''} {listed(levels)}"


@refuses_wrong_arguments
def exposure(allocation: Allocation, concern: Concern | str, *, rounded: bool) -> Exposure:
    """How much of ``allocation`` tells about a concern; ``rounded`` as in :class:`Allocation`."""
    minded = Concern.read(concern, allocation) if isinstance(concern, str) else concern
    return Exposure(allocation, minded, rounded, minded.chosen(allocation))


@refuses_wrong_arguments
def overview(allocation: Allocation, unit: str, *, rounded: bool) -> tuple[Exposure, ...]:
    """The standard concerns: each attribute of a ``unit`` alone, and location within each geographic level."""
    own = {a for part in allocation.parts if part.unit == unit for query in part.queries for a in query.attributes}
    attributes = [Concern((attribute,)) for attribute in allocation.attributes if attribute in own]
    locations = [Concern(within=level) for level in allocation.levels[:-1]]
    return tuple(exposure(allocation, concern, rounded=rounded) for concern in (*attributes, *locations))


@dataclass(frozen=True)
class PublishedExposure:
    """A published rho beside the one that follows from the publication's own tables."""

    published: PublishedConcern
    exposure: Exposure

    @property
    def difference(self) -> Fraction:
        """The rho that follows from the tables, less the printed one."""
        return self.exposure.rho - Fraction(self.published.rho)

    @property
    def agrees(self) -> bool:
        """Whether the printed rho is that of the tables, to the printed digits."""
        places = len(self.published.rho.partition(".")[2])
        return abs(self.difference) <= Fraction(1, 2 * 10**places)


@refuses_wrong_arguments
def published_exposures(allocation: Allocation) -> tuple[PublishedExposure, ...]:
    """The concerns that the allocation's source prints, recomputed from its rounded budgets.

    >>> from stirred.spec.known_deployments.allocations import allocation
    >>> [one.published.id for one in published_exposures(allocation("pl94-2020")) if one.agrees]
    ['A', 'B']
    """
    return tuple(
        PublishedExposure(one, exposure(allocation, Concern.of(one), rounded=True)) for one in allocation.concerns
    )


# -- helpers -------------------------------------------------------------------------------------------------


def _cells(text: str) -> tuple[tuple[str, str], ...]:
    """``query at level, query at level`` as pairs of level and query."""
    pairs = [piece.strip().partition(" at ") for piece in text.split(",")]
    return tuple((level.strip(), query.strip()) for query, _, level in pairs)


def _named(typed: str, names: tuple[str, ...]) -> str:
    """The one of ``names`` that was typed, whatever its capitals; else what was typed."""
    return next((name for name in names if name.casefold() == typed.casefold()), typed)


def _below(allocation: Allocation, level: str) -> tuple[str, ...]:
    if level not in allocation.levels[:-1]:
        raise errors.unknown_choice("level with levels below it", level, allocation.levels[:-1])
    return allocation.levels[allocation.levels.index(level) + 1 :]
