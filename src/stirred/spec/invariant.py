"""What a universe holds fixed: invariants as statements about counts, and when some imply others.

An invariant c is a function of the data; two datasets share a universe if they agree on every invariant (Equation 2.4).
Here it is a table of counts ("households by state and county"), or only whether each count reaches a threshold (an
inequality invariant, Equation 2.6), or a sentence that nothing is deduced from. Values are counted in
:mod:`stirred.invariants`; this module reasons about the statements alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stirred import errors

Nesting = Iterable[tuple[str, str]]
"""Pairs (fine, coarse): in every dataset the value of the first column determines that of the second."""


@dataclass(frozen=True)
class Invariant:
    """The number of ``counts`` that satisfy ``where``, by the columns ``by``.

    ``at_least`` keeps of each number only whether it reaches the threshold. ``name`` stands for an invariant that is
    not a count; only the same name implies it.

    >>> print(Invariant("household", by=("state", "county")))
    the number of households by county and state
    >>> print(Invariant("housing unit", by=("block",), at_least=1))
    whether the number of housing units by block is at least 1
    """

    counts: str = ""
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    at_least: int | None = None
    name: str = ""
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(sorted(set(self.by))))
        object.__setattr__(self, "where", tuple(sorted({(column, value) for column, value in self.where})))
        if bool(self.counts) == bool(self.name):
            raise errors.bad_block("An invariant", "either counts something or has a name of its own")
        if self.name and (self.by or self.where or self.at_least is not None):
            raise errors.bad_block("An invariant with a name of its own", "has no columns, conditions or threshold")
        if self.at_least is not None and self.at_least < 1:
            raise errors.bad_block("The threshold of an inequality invariant", "is at least 1")

    def __str__(self) -> str:
        return self.words or self.sentence()

    def sentence(self) -> str:
        """The invariant in words, from its fields alone."""
        if self.name:
            return self.name
        said = f"the number of {plural(self.counts)}"
        if self.where:
            said += " with " + " and ".join(f"{column} = {value}" for column, value in self.where)
        if self.by:
            said += f" by {errors.listed_plainly(self.by)}"
        return said if self.at_least is None else f"whether {said} is at least {self.at_least}"

    def implies(self, other: Invariant, nesting: Nesting = ()) -> bool:
        """Whether equal values of this one make equal values of ``other``, in every pair of datasets.

        A margin implies its sub-margins, and those by columns that its own columns determine.

        >>> blocks = Invariant("household", by=("block", "size"))
        >>> blocks.implies(Invariant("household", by=("county",)), nesting=[("block", "county")])
        True
        >>> Invariant("household", by=("county",)).implies(blocks)
        False
        """
        if self.name or other.name:
            return self == other
        if self.counts != other.counts or not set(self.where) <= set(other.where):
            return False
        known = determined(self.by, nesting)
        further = {column for column, value in other.where if (column, value) not in self.where}
        if self.at_least is None:
            return set(other.by) <= known and further <= known
        if self.at_least != other.at_least or other.where != self.where:
            return False
        # Whether a union of cells is non-empty follows from its cells; a higher threshold does not add up.
        return set(other.by) <= known and (self.at_least == 1 or determined(other.by, nesting) >= set(self.by))

    def value(self, records: Sequence[Mapping[str, Any]]) -> Any:
        """The invariant's value on a small dataset given as a sequence of records; None if it cannot be evaluated."""
        if self.name:
            return None
        counted: dict[tuple[Any, ...], int] = {}
        for record in records:
            if any(column not in record for column in (*self.by, *(column for column, _ in self.where))):
                return None
            if all(str(record[column]) == value for column, value in self.where):
                cell = tuple(record[column] for column in self.by)
                counted[cell] = counted.get(cell, 0) + 1
        if self.at_least is None:
            return counted
        return {cell for cell, count in counted.items() if count >= self.at_least}


def determined(columns: Iterable[str], nesting: Nesting) -> set[str]:
    """The columns whose values follow from those of ``columns``."""
    known = set(columns)
    pairs = list(nesting)
    while True:
        further = {coarse for fine, coarse in pairs if fine in known} - known
        if not further:
            return known
        known |= further


def implied(by: Iterable[Invariant], wanted: Invariant, nesting: Nesting = ()) -> bool:
    """Whether some invariant of ``by`` implies the wanted one. Each is tried alone, which misses nothing among margins
    of a domain whose counts vary freely: a margin lies in the span of others only if one of them contains it."""
    return any(given.implies(wanted, nesting) for given in by)


def missing(given: Iterable[Invariant], wanted: Iterable[Invariant], nesting: Nesting = ()) -> tuple[Invariant, ...]:
    """The wanted invariants that the given ones are not known to imply."""
    given = tuple(given)
    return tuple(invariant for invariant in wanted if not implied(given, invariant, nesting))


def merged(invariants: Iterable[Invariant], nesting: Nesting = ()) -> tuple[Invariant, ...]:
    """The invariants without those that others imply, in their order."""
    kept: list[Invariant] = []
    for invariant in dict.fromkeys(invariants):
        if implied(kept, invariant, nesting):
            continue
        kept = [other for other in kept if not invariant.implies(other, nesting)]
        kept.append(invariant)
    return tuple(kept)


def plural(unit: str) -> str:
    """The plural of an English noun.

    >>> plural("household"), plural("city"), plural("day")
    ('households', 'cities', 'days')
    """
    if unit.endswith("y") and unit[-2:-1] not in "aeiou":
        return unit[:-1] + "ies"
    return unit + ("es" if unit.endswith(("s", "x", "ch", "sh")) else "s")
