"""Targeted record swapping as statistical offices in Europe do it, after the public description of sdcMicro's function.

From the widest level of the geography to the narrowest: households that fewer than k share their risk variables with,
in their area of that level, must leave it; at the narrowest level others follow, by their risk, up to the swap rate of
their area. A partner is from another area of that level, agrees on a profile of columns (further profiles
are fall-backs), and is likelier the higher its own risk; whole places are exchanged. This is our own program: it
follows the published description, not the code, and no finite epsilon holds for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.noise import RandomSource
from stirred.spec import Specification, facts
from stirred.spec.specification import Fact
from stirred.study.swappers.pairing import NOBODY, Kind, Pairs
from stirred.study.swappers.simulated import (
    BY_PLACES,
    GUARANTEE,
    NONE,
    PAIRS,
    Floats,
    NoGuarantee,
    Rows,
    Simulated,
    encoded,
    grouped,
    kept,
    moved,
    no_epsilon,
    rank_within,
    sharing,
    specified,
    uniform,
    weighted_order,
)
from stirred.tables import Table

MUST_LEAVE = (
    "a household that few share its values with must leave its area, so a file in which one household differs from "
    "all others, and has a possible partner, never comes out as it is: seeing it excludes it"
)


@brief
@dataclass(frozen=True)
class RecordSwap(NoGuarantee):
    """The parameters of a targeted record swap.

    Parameters
    ----------
    hierarchy
        The columns of the geography, from the widest level to the narrowest; they move together.
    similar
        Profiles: lists of columns on which partners agree. The first is tried for all, then the next for those without
        a partner, and so on.
    swaprate
        The share of households of each narrowest area that are swapped: half of it are selected there, the others are
        partners of those selected elsewhere. Somewhat fewer are swapped, since a partner may have been selected too;
        more are where more must leave their area.
    k_anonymity
        A household must leave its area of a level if fewer than so many there share its risk variables; 0: none must.
    risk_variables
        The columns that are counted for the risk. Its value is one over the count, at the level where it is largest.
    carry_along
        Further columns that move with the geography.
    unit
        What one row is.
    """

    hierarchy: tuple[str, ...]
    similar: tuple[tuple[str, ...], ...]
    swaprate: float = 0.05
    k_anonymity: int = 3
    risk_variables: tuple[str, ...] = ()
    carry_along: tuple[str, ...] = ()
    unit: str = "household"

    def __post_init__(self) -> None:
        if not self.hierarchy:
            raise errors.study_parameter("hierarchy", "is empty", "name the columns of the geography")
        if not self.similar or not all(self.similar):
            raise errors.study_parameter("similar", "has an empty profile", "name at least one column in each profile")
        if not 0 <= self.swaprate < 1:
            raise errors.study_parameter("swaprate", f"is {self.swaprate:g}", "give a share of at least 0 and below 1")
        if self.k_anonymity < 0:
            raise errors.study_parameter("k_anonymity", f"is {self.k_anonymity}", "give 0 or more")
        moving = {*self.hierarchy[1:], *self.carry_along}
        if moving & {name for profile in self.similar for name in profile}:
            raise errors.study_parameter(
                "similar", "names a column that moves", "name columns that stay, or the widest level alone"
            )

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that move."""
        return tuple(name for name in (*self.hierarchy, *self.carry_along) if name not in self.agreed)

    @property
    def agreed(self) -> tuple[str, ...]:
        """The columns that are in every profile."""
        return tuple(name for name in self.similar[0] if all(name in profile for profile in self.similar))

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, self._columns())
        counts = [self._sharing(table, level) for level in range(len(self.hierarchy))]
        risk: Floats = 1.0 / np.minimum.reduce(counts)
        pairs = Pairs.none(table.rows)
        must = np.zeros(table.rows, dtype=np.bool_)
        for level, name in enumerate(self.hierarchy):
            area = grouped(table, self.hierarchy[: level + 1]).ids
            if name in self.agreed:  # nobody leaves an area that partners agree on
                continue
            forced = counts[level] < self.k_anonymity
            must |= forced
            waiting = np.flatnonzero(forced & (pairs.partner == NOBODY))
            targets = waiting[np.argsort(uniform(len(waiting), source), kind="stable")].astype(np.int64)
            pairs.add(targets, self._kinds(table, risk, source), area)
        must[self._to_the_rate(table, area, pairs, risk, source)] = True
        return moved(frame, self.places, pairs.giver, int(np.count_nonzero(must & (pairs.partner == NOBODY))))

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee: there is none."""
        encoded(frame.head(1), self._columns())
        stated: list[tuple[str, Fact]] = [
            (facts.MECHANISM, "targeted-record-swapping"),
            (GUARANTEE, NONE),
            (facts.PAIRWISE, True),
            (facts.MATCH, ", ".join(self.agreed)),
            (facts.SWAP, ", ".join(self.places)),
        ]
        reasons = [*([MUST_LEAVE] if self.k_anonymity > 1 and self.risk_variables else []), PAIRS, BY_PLACES]
        invariants = kept(frame, self.unit, self.agreed, self.places)
        return specified(frame, self.unit, invariants, math.inf, no_epsilon(reasons), stated)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _columns(self) -> list[str]:
        similar = [name for profile in self.similar for name in profile]
        return [*self.hierarchy, *self.carry_along, *similar, *self.risk_variables]

    def _sharing(self, table: Table, level: int) -> Rows:
        """How many households of the area of this level have the same risk variables; without any, all are alike."""
        if not self.risk_variables:
            return np.full(table.rows, table.rows + self.k_anonymity, dtype=np.int64)
        return sharing(table, [*self.hierarchy[: level + 1], *self.risk_variables])

    def _kinds(self, table: Table, risk: Floats, source: RandomSource) -> list[Kind]:
        """Partners by profile, in a random order that puts those at risk first more often."""
        order = weighted_order(risk, source)
        return [Kind(grouped(table, profile), order) for profile in self.similar]

    def _to_the_rate(
        self, table: Table, area: NDArray[np.uint32], pairs: Pairs, risk: Floats, source: RandomSource
    ) -> Rows:
        """Pair those that are swapped beyond who must be: in each area half of what is missing to the rate, by risk.

        The other half are partners of households elsewhere. Half of a household is one with probability one half.
        """
        areas = int(area.max()) + 1
        swapped = np.bincount(area[pairs.partner != NOBODY], minlength=areas)
        missing = np.maximum(self.swaprate * np.bincount(area, minlength=areas) - swapped, 0.0) / 2
        wanted = np.floor(missing + uniform(areas, source)).astype(np.int64)
        order = weighted_order(np.where(pairs.partner == NOBODY, risk, 0.0), source)
        targets: Rows = order[rank_within(area[order], areas) < wanted[area[order]]]
        pairs.add(targets, self._kinds(table, risk, source), area)
        return targets
