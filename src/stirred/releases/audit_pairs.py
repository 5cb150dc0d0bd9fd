"""Pairs of inputs on which a guarantee is tried: what differs, how far apart they are, and what to look at.

A guarantee bounds how well anybody can tell two inputs of one universe apart, given what a program makes of one of
them. An :class:`AuditPair` is such a pair, made for a plan and from nobody's data.

The invariant a reader must know: an input may hold many *parts*, of which each is in its first or in its second form,
whatever the others are. Inputs that differ in one part are at the stated ``distance``. Where a fair coin decides the
form of each part, every part of one run is a separate attempt to tell the two forms apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec import Specification


@dataclass(frozen=True, eq=False)
class AuditPair:
    """Two forms of an input that a program must not tell apart too well."""

    name: str
    """Short and stable: ``smallest-stratum``."""
    words: str
    """What differs, and where, in plain words."""
    looked_at: str
    """What of the output is looked at, in plain words."""
    distance: int
    """In how many units of the guarantee the two forms differ."""
    parts: int
    """How many parts an input has."""
    specification: Specification
    """The guarantee that the plan states for these inputs."""
    tables: Callable[[Sequence[bool]], Mapping[str, pl.DataFrame]]
    """The input in which these parts are in their second form."""
    outcomes: Callable[[Mapping[str, pl.DataFrame]], Sequence[Hashable]]
    """What is seen of each part in an output: something that can be counted, or a number."""

    @property
    def first(self) -> Mapping[str, pl.DataFrame]:
        """The input with every part in its first form."""
        return self.tables([False] * self.parts)

    @property
    def second(self) -> Mapping[str, pl.DataFrame]:
        """The input with every part in its second form."""
        return self.tables([True] * self.parts)
