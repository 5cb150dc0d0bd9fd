"""Targeted swapping as statistical offices do it: record swapping in Europe, and pairwise swapping of the 2010 Census.

*Record swapping*, after the public description of sdcMicro's function. From the widest level of the geography to the
narrowest: households that fewer than k share their risk variables with, in their area of that level, must leave it;
at the narrowest level others follow, by their risk, up to the swap rate of their area. A partner is from another area
of that level, agrees on a profile of columns (further profiles are fall-backs), and is likelier the higher its own
risk; whole places are exchanged. This is our own program: it follows the published description, not the code, and no
finite epsilon holds for it.

*Partners.* Each target gets the first record of its kind, outside its own area, that nobody has taken. Kinds are
tried from the narrowest to the widest, each for all targets that have no partner yet. Nobody is in two pairs, and
partners never lie in one area. Candidates are taken in the order in which they are given, so a random order makes the
choice random, and one by weights makes some candidates likelier.

*Pairwise swapping* in the manner of the 2010 US Census, rebuilt from what is public, each choice a parameter.
Households at risk are selected more often, some always; each is paired with a household of the same adults, minors
and tenure in the same state and another block, by preference one that was selected too, is near, or is at risk
itself; the pairs exchange county, tract, block group and block (Bailie 2025, Appendix B.6; the rates and the formula
of the risk are not public, so the weights here are ours). No finite epsilon holds, whatever the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import brief
from stirred.lab.study.swappers.simulated import (
    BY_PLACES,
    GUARANTEE,
    NONE,
    PAIRS,
    Flags,
    Floats,
    Rows,
    Simulated,
    Swapper,
    encoded,
    flags_of,
    grouped,
    kept,
    moved,
    rank_within,
    sharing,
    specified,
    uniform,
    weighted_order,
    within,
)
from stirred.noise import RandomSource
from stirred.spec import Specification, facts
from stirred.spec.specification import Fact
from stirred.tables import Table
from stirred.tables.groups import Groups

NOBODY = np.int64(-1)


@dataclass(frozen=True, eq=False)
class Kind:
    """Records of one group may be paired; ``candidates`` are those that may be taken, in the order of taking."""

    groups: Groups
    candidates: Rows


@dataclass(eq=False)
class Pairs:
    """Who is paired with whom so far; ``partner`` is -1 for records that are in no pair."""

    partner: Rows
    left: Rows
    """By region, how many records may still be swapped; what is negative has no limit."""

    @classmethod
    def none(cls, records: int, left: Rows | None = None) -> Pairs:
        """No pairs yet."""
        return cls(np.full(records, NOBODY), np.full(1, NOBODY) if left is None else left)

    @property
    def giver(self) -> Rows:
        """Whose place each record gets: its partner's, or its own."""
        own = np.arange(len(self.partner), dtype=np.int64)
        return np.where(self.partner == NOBODY, own, self.partner)

    def add(
        self,
        targets: Rows,
        kinds: Sequence[Kind],
        area: NDArray[np.uint32],
        region: NDArray[np.uint32] | None = None,
        exempt: NDArray[np.bool_] | None = None,
    ) -> int:
        """Pair the targets, in their order, as far as partners and limits allow; how many have none.

        ``region`` says which limit counts for a record, ``exempt`` which targets may exceed it.
        """
        regions = np.zeros(len(self.partner), dtype=np.uint32) if region is None else region
        free = np.zeros(len(self.partner), dtype=np.bool_) if exempt is None else exempt
        for kind in kinds:
            of = kind.groups.ids[kind.candidates]
            members = kind.candidates[np.argsort(of, kind="stable")]
            starts = np.searchsorted(np.sort(of), np.arange(kind.groups.count + 1)).astype(np.int64)
            _pair(
                targets, kind.groups.ids, members, starts, starts[:-1].copy(), area, regions, free,
                self.left, self.partner,
            )  # fmt: skip
        return int(np.count_nonzero(self.partner[targets] == NOBODY))


@kernel
def _pair(targets, group, members, starts, heads, area, region, exempt, left, partner):  # type: ignore[no-untyped-def]
    """``heads`` are the first candidates of each group that are not known to be taken."""
    for target in targets:
        if partner[target] >= 0:
            continue
        limit = left[region[target]]
        if 0 <= limit < 2 and not exempt[target]:
            continue
        kind = group[target]
        end = starts[kind + 1]
        first = heads[kind]
        while first < end and partner[members[first]] >= 0:
            first += 1
        heads[kind] = first
        for at in range(first, end):
            other = members[at]
            if partner[other] < 0 and area[other] != area[target]:
                partner[target] = other
                partner[other] = target
                if limit >= 0:
                    left[region[target]] = max(limit - 2, 0)
                break


MUST_LEAVE = (
    "a household that few share its values with must leave its area, so a file in which one household differs from "
    "all others, and has a possible partner, never comes out as it is: seeing it excludes it"
)


@brief
@dataclass(frozen=True)
class RecordSwap(Swapper):
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
        reasons = [*([MUST_LEAVE] if self.k_anonymity > 1 and self.risk_variables else []), PAIRS, BY_PLACES]
        return _without_guarantee(self, frame, "targeted-record-swapping", reasons)

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


Priority = Literal["selected", "nearby", "risk"]
UNIQUES = (
    "a household that is unique in its area is always moved if it can be, so a file in which one household differs "
    "from all others, and has a possible partner, never comes out as it is: seeing it excludes it"
)


@brief
@dataclass(frozen=True)
class Targeted2010(Swapper):
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
        reasons = [PAIRS, *([UNIQUES] if self.unique else []), BY_PLACES]
        cap = (facts.CAP_ON_SWAPS, math.floor(self.rate * frame.height / 2))
        return _without_guarantee(self, frame, "targeted-pairwise-swapping", reasons, cap)

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


def _without_guarantee(
    swapper: RecordSwap | Targeted2010, frame: pl.DataFrame, name: str, reasons: Sequence[str], *more: tuple[str, Fact]
) -> Specification:
    """The five blocks of a swapper of which no epsilon is finite, for these reasons."""
    encoded(frame.head(1), swapper._columns())
    match, swap = ", ".join(swapper.agreed), ", ".join(swapper.places)
    stated: list[tuple[str, Fact]] = [
        (facts.MECHANISM, name), (GUARANTEE, NONE), (facts.PAIRWISE, True), *more,
        (facts.MATCH, match), (facts.SWAP, swap),
    ]  # fmt: skip
    said = "no finite epsilon holds: " + "; ".join(f"({number}) {one}" for number, one in enumerate(reasons, 1))
    return specified(
        frame, swapper.unit, kept(frame, swapper.unit, swapper.agreed, swapper.places), math.inf, said, stated
    )
