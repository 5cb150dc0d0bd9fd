"""Changes to the Permutation Swapping Algorithm that people ask for, each with what is proved about it (section B.6.2).

*Proved* means that a theorem gives a finite epsilon: rates by rule (docs/guarantee.md), frozen records under a scope
that holds them fixed, and everything that works on the swapped file alone. *Open* means that nobody has proved a bound.
Nothing is stated in between: an open guarantee has an infinite epsilon until somebody proves a finite one. The
permutations themselves are those of :mod:`stirred.swap.law.permutation`, drawn exactly; the two open variants toss
float coins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import brief
from stirred.lab.study.swappers.simulated import (
    GUARANTEE,
    OPEN,
    PROVED,
    Rows,
    Simulated,
    Swapper,
    encoded,
    flags_of,
    grouped,
    kept,
    moved,
    sharing,
    specified,
    uniform,
)
from stirred.loss import PowerCurve, swap_power_curve, swap_rates_power_curve
from stirred.noise import RandomSource, derange_groups, randomised_response, uniform_integers
from stirred.spec import Invariant, Specification, facts
from stirred.spec.specification import Fact
from stirred.swap.data.counting import RatesByStratum, RecordRates
from stirred.swap.law import permutation
from stirred.swap.law.theorem import epsilon_of_rates
from stirred.swap.plan.sections import exact_rate
from stirred.tables import Table
from stirred.tables.groups import Groups

_TRIES = 1_000
"""Selections of a stratum after which it is left as it is."""
_LISTED = 6
"""Selected records up to which permutations are drawn until one fits; of more, a chain of exchanges is run."""


@dataclass(frozen=True)
class Permutation(Swapper):
    """What all variants of the Permutation Swapping Algorithm share: the columns, the rate, the strata, the swap.

    Parameters
    ----------
    match
        Columns on which records agree that exchange their places.
    swap
        The columns that move.
    rate
        The probability that a record is selected, taken exactly as written.
    unit
        What one row is.
    """

    match: tuple[str, ...]
    swap: tuple[str, ...]
    rate: Fraction | float | str
    unit: str = "household"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        if self.rate in (0, 1):
            raise errors.study_parameter("rate", f"is {self.rate}", "give a probability strictly between 0 and 1")
        if not self.swap:
            raise errors.study_parameter("swap", "is empty", "name the columns that move")

    @property
    def places(self) -> tuple[str, ...]:
        """The columns that move."""
        return self.swap

    @property
    def agreed(self) -> tuple[str, ...]:
        """The columns on which records that exchange their places agree."""
        return self.match

    @property
    def chance(self) -> Fraction:
        """The rate as a fraction."""
        return Fraction(self.rate)

    def _stated(
        self, frame: pl.DataFrame, name: str, status: str, epsilon: float, reasons: str, more: Sequence[Invariant] = ()
    ) -> Specification:
        invariants = (*kept(frame, self.unit, self.agreed, self.swap), *more)
        return specified(frame, self.unit, invariants, epsilon, reasons, self._told(name, status))

    def _told(self, name: str, status: str) -> list[tuple[str, Fact]]:
        columns = [(facts.MATCH, ", ".join(self.match)), (facts.SWAP, ", ".join(self.swap))]
        return [(facts.MECHANISM, name), (GUARANTEE, status), *columns]

    def _sizes(self, frame: pl.DataFrame) -> NDArray[np.int64]:
        """The sizes of the strata."""
        return grouped(encoded(frame, self.match or self.swap), self.match).sizes()

    def _swapped(self, table: Table, source: RandomSource) -> Rows:
        """Who gives each record its place: one draw of the Permutation Swapping Algorithm."""
        strata = grouped(table, self.match)
        return _givers(table.rows, permutation.draw(strata, strata.sizes(), self.chance, source))


@brief
@dataclass(frozen=True)
class RatesByRisk(Permutation):
    """Records that few share some values with have a rate of their own.

    Proved if ``rare_on`` are columns that stay, or match columns and columns that move; open if it mixes what is held
    with what moves, as "unique in its county" does: the bound of the theorem is then exceeded in examples.

    Parameters
    ----------
    rare_on
        The columns that are counted, over the whole file.
    at_most
        A record is rare if at most so many share its values.
    rare_rate
        The probability that a rare record is selected.
    """

    rare_on: tuple[str, ...] = ()
    at_most: int = 1
    rare_rate: Fraction | float | str = Fraction(1, 2)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rare_rate", exact_rate(self.rare_rate))
        if self.rare_rate in (0, 1):
            raise errors.study_parameter("rare_rate", f"is {self.rare_rate}", "give one strictly between 0 and 1")
        if not self.rare_on:
            raise errors.study_parameter("rare_on", "is empty", "name the columns whose values are counted")

    @property
    def covered(self) -> bool:
        """Whether the theorem for rates by rule covers it: it looks at what stays or at what moves, not at both."""
        held = set(self.rare_on) - {*self.match, *self.swap}
        return not held or not set(self.rare_on) & set(self.swap)

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, [*self.match, *self.swap, *self.rare_on])
        strata = grouped(table, self.match)
        moves = permutation.draw(strata, strata.sizes(), self.rates(table), source)
        return moved(frame, self.swap, _givers(table.rows, moves))

    def rates(self, table: Table) -> RecordRates:
        """The rate of every record."""
        rare = sharing(table, self.rare_on) <= self.at_most
        return RecordRates((Fraction(self.rare_rate), self.chance), np.where(rare, 0, 1).astype(np.uint8))

    def power_curve(self, frame: pl.DataFrame) -> PowerCurve | None:
        """The greatest power of a test between the nearest two files, where the theorem covers the rates."""
        rates = self._by_stratum(frame)
        plural = rates.counts.sum(axis=1) > 1
        if not self.covered or not plural.any():
            return None
        return rates_curve(rates, plural)

    def _by_stratum(self, frame: pl.DataFrame) -> RatesByStratum:
        table = encoded(frame, [*self.match, *self.swap, *self.rare_on])
        return self.rates(table).by_stratum(grouped(table, self.match))

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee of the theorem for rates by rule, where that covers it."""
        name = "permutation-swapping-by-risk"
        rates = self._by_stratum(frame)
        if not self.covered:
            reasons = (
                "no bound is proved: the rates look at what is held and at places together, so that moving two records "
                "changes the rates of others. In an example of four records the loss is 1.33 times the bound of the "
                "theorem for rates by rule"
            )
            return self._stated(frame, name, OPEN, math.inf, reasons)
        plural = rates.counts.sum(axis=1) > 1
        found = epsilon_of_rates(zip(rates.rates, rates.largest(plural), strict=True))
        what = (
            "what stays" if not set(self.rare_on) & set(self.swap) else "match values and places, not at what is held"
        )
        reasons = f"the theorem for rates by rule: rates look at {what} (rates {self.rare_rate} and {self.rate})"
        return self._stated(frame, name, PROVED, found, reasons)


@brief
@dataclass(frozen=True)
class FrozenImputed(Permutation):
    """Imputed records never move, and the others are swapped as if they were a file of their own.

    Proved between files that agree on the imputed records, each with all its values; these are published as they are.

    Parameters
    ----------
    imputed
        A column that is true for imputed records. It stays, so it is published.
    """

    imputed: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.imputed or self.imputed in self.swap:
            raise errors.study_parameter("imputed", "is missing, or moves", "name a column that stays")

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, [*self.match, *self.swap, self.imputed])
        free = np.flatnonzero(~flags_of(table, self.imputed))
        strata = grouped(table, self.match)
        among = Groups(strata.ids[free], strata.count)
        giver = np.arange(table.rows, dtype=np.int64)
        giver[free] = free[_givers(len(free), permutation.draw(among, among.sizes(), self.chance, source))]
        return moved(frame, self.swap, giver)

    def power_curve(self, frame: pl.DataFrame) -> PowerCurve | None:
        """The greatest power of a test between the nearest two files."""
        return _curve(self._free(frame), self.chance)

    def _free(self, frame: pl.DataFrame) -> NDArray[np.int64]:
        """The sizes of the strata of records that are not imputed."""
        table = encoded(frame, [*self.match, *self.swap, self.imputed])
        strata = grouped(table, self.match)
        return Groups(strata.ids[~flags_of(table, self.imputed)], strata.count).sizes()

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee of Theorem 3.2.4 for the others, given the imputed ones."""
        found = epsilon_of_rates([(self.chance, _plural(self._free(frame)))])
        frozen = Invariant(
            self.unit,
            by=tuple(frame.columns),
            where=((self.imputed, "true"),),
            words=f"the imputed {self.unit} records, with all their values",
        )
        reasons = (
            f"Theorem 3.2.4 at swap rate {self.rate} for the records that are not imputed. Files that differ in an "
            "imputed record are not compared: whoever it copies is published as imputed, where it is"
        )
        return self._stated(frame, "permutation-swapping-frozen", PROVED, found, reasons, [frozen])


@brief
@dataclass(frozen=True)
class NoVacuousSwaps(Permutation):
    """All who are selected get another place; selections that do not allow it are made afresh. Open.

    Up to six selected records of a stratum the permutation is uniform among those that fit; for more a chain of random
    exchanges is run that comes near to that. A stratum in which most records have one place may never allow it, and is
    then left as it is after a thousand tries.
    """

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, [*self.match, *self.swap])
        strata, place = grouped(table, self.match), grouped(table, self.swap).ids
        order = np.argsort(strata.ids, kind="stable").astype(np.int64)
        ends = np.cumsum(strata.sizes())
        giver = np.arange(table.rows, dtype=np.int64)
        stuck = 0
        for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            members = order[begin:end]
            for _ in range(_TRIES):
                chosen = members[uniform(len(members), source) < float(self.chance)]
                if len(chosen) == 0 or 2 * int(np.unique_counts(place[chosen]).counts.max()) <= len(chosen):
                    giver[chosen] = chosen[_to_others(place[chosen], source)]
                    break
            else:
                stuck += len(members)
        return moved(frame, self.swap, giver, stuck)

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee: open."""
        reasons = (
            "no bound is proved. Every file of the universe can still come out, so the loss is finite in each; for all "
            "files of up to four records it stayed within the theorem's bound, and nobody knows beyond"
        )
        return self._stated(frame, "permutation-swapping-no-vacuous", OPEN, math.inf, reasons)


@brief
@dataclass(frozen=True)
class AcrossStrata(Permutation):
    """Some of the selected exchange with records that agree on fewer columns. Open.

    Each selected record joins, with probability ``across``, those of all strata that agree on ``across_match``; these
    exchange among themselves, and the others within their strata. Who is alone in either stays.

    Parameters
    ----------
    across
        The probability that a selected record is exchanged with others than those of its own stratum.
    across_match
        The match columns on which these still agree.
    """

    across: Fraction | float | str = Fraction(1, 20)
    across_match: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "across", exact_rate(self.across))
        if not set(self.across_match) < set(self.match):
            raise errors.study_parameter("across_match", "is not a part of match", "name some of the match columns")

    @property
    def agreed(self) -> tuple[str, ...]:
        """The columns on which records that exchange their places always agree."""
        return self.across_match

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, [*self.match, *self.swap])
        selected = np.flatnonzero(uniform(table.rows, source) < float(self.chance))
        leaves = uniform(len(selected), source) < float(Fraction(self.across))
        giver = np.arange(table.rows, dtype=np.int64)
        alone = _exchange(selected[~leaves], grouped(table, self.match), giver, source)
        alone += _exchange(selected[leaves], grouped(table, self.across_match), giver, source)
        return moved(frame, self.swap, giver, alone)

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee: open."""
        reasons = (
            f"no bound is proved. Places keep their numbers of records by {errors.listed(self.across_match)}"
            if self.across_match
            else "no bound is proved. Places keep their numbers of records"
        ) + f", and no longer those by {errors.listed(self.match)}"
        return self._stated(frame, "permutation-swapping-across-strata", OPEN, math.inf, reasons)


@brief
@dataclass(frozen=True)
class PerturbedSwap(Permutation):
    """Held values are replaced at random before or after the swap.

    *After*: proved, with the epsilon of the swap, since the swapped file alone is looked at. *Before*: proved with the
    epsilon of the replacing, between files that differ in the replaced columns only, since the swap works on what was
    replaced; how much the swap adds is open.

    Parameters
    ----------
    columns
        Columns that stay and whose values are replaced.
    probability
        The probability that a value is replaced by another one of its column, any alike.
    when
        ``"before"`` or ``"after"`` the swap.
    """

    columns: tuple[str, ...] = ()
    probability: Fraction | float | str = Fraction(1, 100)
    when: str = "after"
    publishes_counts = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probability", exact_rate(self.probability))
        if not self.columns or {*self.columns} & {*self.match, *self.swap}:
            raise errors.study_parameter(
                "columns", "is missing, or names columns that are not held", "name columns that only stay"
            )
        if not 0 < Fraction(self.probability) < 1:
            raise errors.study_parameter("probability", f"is {self.probability}", "give one strictly between 0 and 1")
        if self.when not in ("before", "after"):
            raise errors.study_parameter("when", f"is '{self.when}'", "write before or after")

    def simulate(self, frame: pl.DataFrame, source: RandomSource) -> Simulated:
        """Swap once. Confidential."""
        table = encoded(frame, [*self.match, *self.swap, *self.columns])
        # The swap looks at match columns and places only, so both orders have one law; the guarantees differ.
        found = moved(frame, self.swap, self._swapped(table, source))
        replaced = {}
        for name in self.columns:
            column = table[name]
            codes = column.codes.astype(np.int64)
            if column.cardinality > 1:
                codes = randomised_response(codes, Fraction(self.probability), source, categories=column.cardinality)
            replaced[name] = pl.Series(name, column.decode(codes)).cast(frame.schema[name])
        return Simulated(found.frame.with_columns(**replaced), found.giver, found.changed)

    def power_curve(self, frame: pl.DataFrame) -> PowerCurve | None:
        """The greatest power of a test between the nearest two files, where the guarantee is that of the swap."""
        return _curve(self._sizes(frame), self.chance) if self.when == "after" else None

    def specification(self, frame: pl.DataFrame) -> Specification:
        """The guarantee of the swap, or of the replacing."""
        table = encoded(frame, [*self.match, *self.swap, *self.columns])
        if self.when == "after":
            reasons = (
                f"Theorem 3.2.4 at swap rate {self.rate}; what is replaced afterwards adds nothing to epsilon "
                "(post-processing), and what it hides is not counted"
            )
            found = epsilon_of_rates([(self.chance, _plural(self._sizes(frame)))])
            return self._stated(frame, "permutation-swapping-perturbed", PROVED, found, reasons)
        found = math.fsum(_response_loss(table[name].cardinality, Fraction(self.probability)) for name in self.columns)
        rest = tuple(name for name in frame.columns if name not in self.columns)
        reasons = (
            f"randomised response on {errors.listed(self.columns)}, for files that differ in nothing else; the swap "
            "works on what was replaced (post-processing). What the swap adds for other files is open. The values that "
            "occur are taken as known to all"
        )
        told = self._told("permutation-swapping-perturbed", PROVED)
        return specified(frame, self.unit, [Invariant(self.unit, by=rest)], found, reasons, told, nearest=1)


# -- helpers -------------------------------------------------------------------------------------------------


def _givers(rows: int, moves: permutation.Moves) -> Rows:
    giver = np.arange(rows, dtype=np.int64)
    giver[moves.receiver] = moves.giver
    return giver


def _plural(sizes: NDArray[np.int64]) -> int:
    """The largest stratum of two records or more; 0 if there is none."""
    return int(sizes[sizes > 1].max(initial=0))


def rates_curve(rates: RatesByStratum, strata: NDArray[np.bool_]) -> PowerCurve:
    """The power of the best test for some of the strata, whose records have rates by rule."""
    kinds = np.unique(rates.counts[strata], axis=0).tolist()
    return swap_rates_power_curve([dict(zip(rates.rates, kind, strict=True)) for kind in kinds])


def _curve(sizes: NDArray[np.int64], rate: Fraction) -> PowerCurve | None:
    """The power of the best test for strata of these sizes; None if none has two records."""
    plural = np.unique(sizes[sizes > 1]).tolist()
    return swap_power_curve(plural, rate) if plural else None


def _exchange(rows: Rows, groups: Groups, giver: Rows, source: RandomSource) -> int:
    """Let records of one group exchange by a uniform derangement; how many are alone in theirs."""
    sizes = np.bincount(groups.ids[rows], minlength=groups.count)
    together = rows[sizes[groups.ids[rows]] > 1]
    together = together[np.argsort(groups.ids[together], kind="stable")]
    many = sizes[sizes > 1]
    starts = np.append(0, np.cumsum(many)).astype(np.int64)
    if len(together):
        giver[together] = together[np.repeat(starts[:-1], many) + derange_groups(starts, source)]
    return len(rows) - len(together)


def _to_others(place: NDArray[np.uint32], source: RandomSource) -> Rows:
    """A random permutation that gives everybody another place; no place has more than half of the records."""
    count = len(place)
    if count <= _LISTED:
        while True:
            order = np.argsort(uniform(count, source), kind="stable")
            if np.all(place[order] != place):
                return order
    by_place = np.argsort(place, kind="stable")
    found = np.empty(count, dtype=np.int64)
    found[by_place] = np.roll(by_place, count // 2)  # half of the file further lies another place
    steps = 4 * count * math.ceil(math.log(count))
    _exchange_at_random(found, place, uniform_integers(count, 5 * steps, source))
    return found


@kernel
def _exchange_at_random(giver, place, picks):  # type: ignore[no-untyped-def]
    """Exchange what two random records receive, then rotate what three do, wherever all then still get another place.

    Exchanges alone do not lead everywhere: between three places they keep the numbers that go from each to each.
    """
    for at in range(0, len(picks), 5):
        i, j = picks[at], picks[at + 1]
        if place[giver[j]] != place[i] and place[giver[i]] != place[j]:
            giver[i], giver[j] = giver[j], giver[i]
        i, j, k = picks[at + 2], picks[at + 3], picks[at + 4]
        apart = i != j and j != k and k != i
        if apart and place[giver[j]] != place[i] and place[giver[k]] != place[j] and place[giver[i]] != place[k]:
            giver[i], giver[j], giver[k] = giver[j], giver[k], giver[i]


def _response_loss(categories: int, probability: Fraction) -> float:
    """Epsilon of randomised response on one value: |ln((1 - p)(k - 1)/p)|."""
    if categories < 2:
        return 0.0
    return abs(math.log((1 - probability) * (categories - 1) / probability))
