"""Targeted pairwise swapping in the manner of the 2010 US Census, rebuilt from what is public, each choice a parameter.

Households at risk are selected more often, some always; each is paired with a household of the same adults, minors
and tenure in the same state and another block, by preference one that was selected too, is near, or is at risk itself;
the pairs exchange county, tract, block group and block (Bailie 2025, Appendix B.6; the rates and the formula of the
risk are not public, so the weights here are ours). No finite epsilon holds, whatever the parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import polars as pl

from stirred import errors
from stirred._shown import brief
from stirred.noise import RandomSource
from stirred.spec import Specification, facts
from stirred.spec.specification import Fact
from stirred.study.swappers.pairing import Kind, Pairs
from stirred.study.swappers.simulated import (
    BY_PLACES,
    GUARANTEE,
    NONE,
    PAIRS,
    Flags,
    Floats,
    NoGuarantee,
    Rows,
    Simulated,
    encoded,
    flags_of,
    grouped,
    kept,
    moved,
    no_epsilon,
    rank_within,
    sharing,
    specified,
    uniform,
    weighted_order,
    within,
)
from stirred.tables import Table
from stirred.tables.groups import Groups

Priority = Literal["selected", "nearby", "risk"]
UNIQUES = (
    "a household that is unique in its area is always moved if it can be, so a file in which one household differs "
    "from all others, and has a possible partner, never comes out as it is: seeing it excludes it"
)


@brief
@dataclass(frozen=True)
class Targeted2010(NoGuarantee):
    """The parameters of a targeted pairwise swap.

    Parameters
    ----------
    areas
        The columns that move, from the widest to the narrowest; the last is the block.
    match
        Columns on which partners agree, such as adults, minors and tenure.
    rate
        The share of households of each region that may be swapped, partners included.
    region
        The column within which partners are sought and the rate is counted, such as the state; None for the whole file.
    rare
        Columns whose combination makes a household rare where nobody else in its block has it, such as race.
    rare_weight
        How many times as likely a rare household is selected.
    unique, unique_in
        Columns on which a household that is unique in the area ``unique_in`` (a column of ``areas``) is always
        selected, whatever the rate. No columns: nobody is.
    size_power
        The weight of a household falls with the number of households of its block, to this power.
    imputed
        A column that is true for imputed households. They are never selected, and the more of them a block has the less
        likely others of it are.
    imputed_partners
        Whether imputed households may be taken as partners.
    outside
        The column in which partners must differ; by default the block.
    nearby
        The column in which partners agree if they are near, such as the tract; None: nothing is near.
    high_risk
        Households whose weight is at least so many times the mean are at high risk.
    priorities
        What is preferred in a partner, the most important first.
    unit
        What one row is.
    """

    areas: tuple[str, ...]
    match: tuple[str, ...]
    rate: float = 0.03
    region: str | None = None
    rare: tuple[str, ...] = ()
    rare_weight: float = 10.0
    unique: tuple[str, ...] = ()
    unique_in: str | None = None
    size_power: float = 0.5
    imputed: str | None = None
    imputed_partners: bool = False
    outside: str | None = None
    nearby: str | None = None
    high_risk: float = 2.0
    priorities: tuple[Priority, ...] = ("selected", "nearby", "risk")
    unit: str = "household"

    def __post_init__(self) -> None:
        if not self.areas:
            raise errors.study_parameter("areas", "is empty", "name the columns that move, such as county and block")
        if not 0 < self.rate < 1:
            raise errors.study_parameter("rate", f"is {self.rate:g}", "give a share between 0 and 1")
        if self.rare_weight < 1 or self.size_power < 0 or self.high_risk <= 0:
            raise errors.study_parameter(
                "rare_weight, size_power, high_risk", "are out of range", "give at least 1, at least 0, and above 0"
            )
        for name in (self.unique_in, self.outside, self.nearby):
            if name is not None and name not in self.areas:
                raise errors.study_parameter("unique_in, outside, nearby", f"name '{name}'", "name columns of areas")
        wanted = ("selected", "nearby", "risk")
        if len(set(self.priorities)) < len(self.priorities) or not set(self.priorities) <= set(wanted):
            raise errors.study_parameter("priorities", "is not as known", f"order some of {errors.listed(wanted)}")
        if self.region in self.areas or set(self.match) & {*self.areas, self.region}:
            raise errors.study_parameter(
                "match, region", "name columns that move, or each other", "give each column one part"
            )

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that move."""
        return self.areas

    @property
    def agreed(self) -> tuple[str, ...]:
        """The columns on which partners agree."""
        return (*([self.region] if self.region else []), *self.match)

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, self._columns())
        weights = self.weights(table)
        always = self.always_selected(table)
        limit = self._limits(table)
        selected = self._selected(table, weights, always, limit, source)
        chosen = np.zeros(table.rows, dtype=np.bool_)
        chosen[selected] = True
        pairs = Pairs.none(table.rows, limit.copy())
        unmatched = pairs.add(
            selected,
            self._kinds(table, weights, chosen, source),
            grouped(table, self._nested(self.outside or self.areas[-1])).ids,
            self._regions(table).ids,
            always,
        )
        return moved(frame, self.areas, pairs.giver, unmatched)

    def weights(self, table: Table) -> Floats:
        """How likely each household is selected, up to a factor: 0 for imputed ones."""
        block = self._nested(self.areas[-1])
        weights: Floats = sharing(table, block).astype(np.float64) ** -self.size_power
        if self.rare:
            weights[sharing(table, [*block, *self.rare]) == 1] *= self.rare_weight
        if self.imputed is not None:
            imputed = self._imputed(table)
            blocks = grouped(table, block)
            share = np.bincount(blocks.ids, weights=imputed) / blocks.sizes()
            weights *= 1 - share[blocks.ids]
            weights[imputed] = 0.0
        return weights

    def always_selected(self, table: Table) -> Flags:
        """Households that are unique in their area, unless they are imputed."""
        if not self.unique:
            return np.zeros(table.rows, dtype=np.bool_)
        area = self._nested(self.unique_in or self.areas[-1])
        return np.asarray((sharing(table, [*area, *self.unique]) == 1) & ~self._imputed(table))

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee: there is none."""
        encoded(frame.head(1), self._columns())
        stated: list[tuple[str, Fact]] = [
            (facts.MECHANISM, "targeted-pairwise-swapping"),
            (GUARANTEE, NONE),
            (facts.PAIRWISE, True),
            (facts.CAP_ON_SWAPS, math.floor(self.rate * frame.height / 2)),
            (facts.MATCH, ", ".join(self.agreed)),
            (facts.SWAP, ", ".join(self.areas)),
        ]
        reasons = [PAIRS, *([UNIQUES] if self.unique else []), BY_PLACES]
        invariants = kept(frame, self.unit, self.agreed, self.areas)
        return specified(frame, self.unit, invariants, math.inf, no_epsilon(reasons), stated)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _columns(self) -> list[str]:
        others = [self.imputed] if self.imputed else []
        return [*self.agreed, *self.areas, *self.rare, *self.unique, *others]

    def _nested(self, area: str) -> list[str]:
        """An area with all that it lies in: block numbers may be used again in other tracts."""
        region = [self.region] if self.region else []
        return [*region, *self.areas[: self.areas.index(area) + 1]]

    def _regions(self, table: Table) -> Groups:
        return grouped(table, [self.region] if self.region else [])

    def _limits(self, table: Table) -> Rows:
        """By region, how many households may be swapped."""
        sizes = self._regions(table).sizes()
        limits: Rows = np.floor(self.rate * sizes).astype(np.int64)
        return limits

    def _imputed(self, table: Table) -> Flags:
        if self.imputed is None:
            return np.zeros(table.rows, dtype=np.bool_)
        return flags_of(table, self.imputed)

    def _selected(self, table: Table, weights: Floats, always: Flags, limit: Rows, source: RandomSource) -> Rows:
        """Who is selected: first those who always are, then others by weight until the region's limit is reached."""
        forced = np.flatnonzero(always).astype(np.int64)
        forced = forced[np.argsort(uniform(len(forced), source), kind="stable")]
        regions = self._regions(table).ids
        others = weighted_order(np.where(always, 0.0, weights), source)
        room = limit - np.bincount(regions[forced], minlength=len(limit))
        return np.concatenate([forced, others[rank_within(regions[others], len(limit)) < room[regions[others]]]])

    def _kinds(self, table: Table, weights: Floats, chosen: Flags, source: RandomSource) -> list[Kind]:
        """Kinds of partners from the most to the least preferred, by the order of priorities."""
        order = np.argsort(uniform(table.rows, source), kind="stable").astype(np.int64)
        if not self.imputed_partners:
            order = order[~self._imputed(table)[order]]
        alike = grouped(table, self.agreed)
        near = within(alike, grouped(table, self._nested(self.nearby))) if self.nearby else alike
        mean = weights.mean() or 1.0
        risky = weights >= self.high_risk * mean
        found = []
        for wanted in product((True, False), repeat=len(self.priorities)):
            asked = {name for name, yes in zip(self.priorities, wanted, strict=True) if yes}
            if "nearby" in asked and not self.nearby:
                continue
            candidates = order
            if "selected" in asked:
                candidates = candidates[chosen[candidates]]
            if "risk" in asked:
                candidates = candidates[risky[candidates]]
            found.append(Kind(near if "nearby" in asked else alike, candidates))
        return found
