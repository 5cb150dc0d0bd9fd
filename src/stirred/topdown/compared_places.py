"""The places of a question, and the covariances of everything that is measured in two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.estimates.place_estimates import Estimates
from stirred.margins.margin_blocks import Array
from stirred.margins.spine import Index
from stirred.topdown.design import Design

if TYPE_CHECKING:
    from stirred.topdown.estimating import MeasuredRelease

Union = Mapping[int, Index]
"""Units by level, taken together as one place."""


@dataclass(frozen=True, eq=False)
class Sites:
    """The places of a question: every unit of a level, or one union; and what each is compared with, if anything.

    Place 0 is the asked one, place 1 that which it is compared with.
    """

    release: MeasuredRelease
    table: str
    where: Mapping[str, tuple[str, ...]]
    column: str | None
    """What the places are called in the answer; None where there is one for each row and it needs no name."""
    names: tuple[str, ...]
    level: int | None
    unions: tuple[Union, ...]
    """Of one place: itself and what it is compared with. Of all units of a level: what they are compared with."""
    _seen: dict[Any, Any] = field(default_factory=dict, init=False)

    @property
    def kinds(self) -> Index:
        """The kind of each place: those of one kind have the same covariances."""
        if self.level is None:
            return np.zeros(1, dtype=np.int64)
        return self.release.shapes.everywhere[self.level].of_unit

    @property
    def samples(self) -> Index:
        """A place of each kind."""
        return np.zeros(1, dtype=np.int64) if self.level is None else self.release.shapes.everywhere[self.level].sample

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of the places."""
        return ()

    def units(self, role: int, place: int) -> Union:
        """What a place consists of."""
        if self.level is None:
            return self.unions[role]
        return self.unions[0] if role else {self.level: np.array([place])}

    def counts(self, role: int, by: tuple[str, ...]) -> Estimates:
        """Estimates of the counts by some attributes, with one row where they are the same for all places."""
        if (role, by) not in self._seen:
            if self.level is not None and not role:
                level = self.release.spine.levels[self.level]
                found = self.release.estimate(self.table, by, self.where, level=level)
            else:
                found = self.release._in_union(self.table, by, dict(self.where), self.units(role, 0), "union")
            self._seen[role, by] = found
        return self._seen[role, by]  # type: ignore[no-any-return]

    def between(self, design: Design) -> list[list[list[Array]]]:
        """For every two of place 0 and place 1 and each block, the covariance of their vectors, by kind of place."""
        if self.level is None:
            return design.between(self.unions)
        own = [tree.covariances_of(self.level) for tree in design.trees]
        if not self.unions:
            return [[own]]
        # All first units together are everything. A unit depends on none of them but the one that it lies in.
        cross = [tree.covariances_with(self.level, 0) for tree in design.trees]
        kinds = self.release.shapes.everywhere[0].of_unit
        every = [tree.covariances_of(0)[kinds].sum(axis=0, keepdims=True) for tree in design.trees]
        whole = [np.repeat(one, len(part), axis=0) for one, part in zip(every, own, strict=True)]
        return [[own, cross], [[part.transpose(0, 2, 1) for part in cross], whole]]
