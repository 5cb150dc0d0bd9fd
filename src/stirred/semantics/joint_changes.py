"""The worst change of two records that keeps counts which no single record could change without breaking.

Where invariants forbid that one record changes alone, two that change together may keep them: two persons who move to
each other's state leave the totals of states as they are. Many such changes lie at the same distance, and the queries
tell them apart more or less well. This module finds the one that they tell apart best, by a search over everything that
two changing records can have in common.

What a query's counts do depends only on which of four records fall into the same of its cells: the first before and
after, the second before and after. So a column is described by a partition of these four, a margin by several columns
by the common refinement of theirs, and finer geographic levels refine coarser ones. All combinations are searched: the
attributes one by one, the levels by dynamic programming, since a level is bound to the next one only.

Keep in mind: columns are taken to have as many values as a partition needs, and a place as many parts. Where a domain
is smaller the result is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import lcm, prod

Partition = int
"""A partition of the four records, as a position in :data:`PARTITIONS`."""

BEFORE_1, AFTER_1, BEFORE_2, AFTER_2 = range(4)
ALL_FOUR = 0b1111
SIGNS = (-1, 1, -1, 1)
"""What each of the four does to the count of its cell."""


def _partitions() -> Iterator[tuple[int, ...]]:
    """Partitions of four things: for each the number of its block, blocks numbered as they appear."""
    for blocks in product(range(4), repeat=4):
        if all(block <= max(blocks[:at], default=-1) + 1 for at, block in enumerate(blocks)):
            yield blocks


PARTITIONS = tuple(_partitions())
_AT = {blocks: number for number, blocks in enumerate(PARTITIONS)}
SAME, STAYING, CROSSING, TOGETHER, APART = (
    _AT[blocks] for blocks in ((0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 1, 0), (0, 1, 0, 1), (0, 1, 2, 3))
)
"""All four alike; each keeps its own; each takes the other's; both change from one value to one other; no two alike."""


def _refined(first: tuple[int, ...], second: tuple[int, ...]) -> Partition:
    pairs = list(zip(first, second, strict=True))
    seen = list(dict.fromkeys(pairs))
    return _AT[tuple(seen.index(pair) for pair in pairs)]


REFINED = tuple(tuple(_refined(first, second) for second in PARTITIONS) for first in PARTITIONS)
"""The common refinement of two partitions: the cells of a margin by two columns."""


def _changes(partition: Partition, members: int = ALL_FOUR) -> list[int]:
    """By how much the count of each cell changes, looking at some of the four records only."""
    blocks = PARTITIONS[partition]
    return [sum(SIGNS[one] for one in range(4) if blocks[one] == block and members >> one & 1) for block in set(blocks)]


SQUARED = tuple(sum(change * change for change in _changes(one)) // 2 for one in range(len(PARTITIONS)))
"""Half the squared change of the counts: what Gaussian noise loses, in units of the rho of one changed record."""

ONE_ONLY = tuple(int(blocks[BEFORE_1] != blocks[AFTER_1]) for blocks in PARTITIONS)
"""The same where the first record alone changes."""

DISTANT = tuple((sum(map(abs, _changes(one))) // 2) ** 2 for one in range(len(PARTITIONS)))
"""The squared number of records in which a query sees a difference: what any noise loses at most, in the same units."""

KEEPS = tuple(tuple(not any(_changes(one, members)) for members in range(16)) for one in range(len(PARTITIONS)))
"""Whether a margin is kept, by its partition and by which of the four satisfy its condition."""


def _alone(partition: Partition, members: int) -> bool:
    before, after = members >> BEFORE_1 & 1, members >> AFTER_1 & 1
    blocks = PARTITIONS[partition]
    return before != after or bool(before and blocks[BEFORE_1] != blocks[AFTER_1])


BREAKS_ALONE = tuple(tuple(_alone(one, members) for members in range(16)) for one in range(len(PARTITIONS)))
"""Whether the first record's change alone would break a margin."""

_USUAL = (APART, TOGETHER, CROSSING, STAYING, SAME)
"""What free levels can be where margins have no conditions: a kept level stays, crosses or is the same, so is every
level above it, and below the last one both move to one place or to different ones. Of equally bad partitions the first
is taken, so that no more is told than matters."""

_PREFERRED = (*_USUAL, *(one for one in range(len(PARTITIONS)) if one not in _USUAL))

Weights = Mapping[tuple[int, frozenset[str], str], Fraction]
"""rho of queries, by level (as a position), attributes, and which other unit's records they count, empty for none."""

MOST_COMBINATIONS = 1024
"""Of what attributes have in common; beyond it the search becomes an upper bound."""

MOST_ATTRIBUTES = 8
"""Of those that stay and that no margin binds: each doubles the time."""

Masks = tuple[int, ...]
"""Which of the four records satisfy each of some conditions, as bits."""


Condition = tuple[str, str]
"""A column and the value that it must have."""

_States = dict[tuple[Partition, tuple[tuple[Condition, int], ...], bool], tuple[int, tuple[Partition, ...]]]
"""For a partition of a level, the records that satisfy conditions on levels and whether one record alone would break
something: the best sum so far, and the levels that lead to it."""


_Priced = list[list[tuple[frozenset[str], int, Sequence[int]]]]
"""For each level its queries: their attributes, their weights as whole numbers, and what a partition is worth."""


@dataclass(frozen=True)
class KeptMargin:
    """A margin that both datasets share: by attributes and a level (as its position), where conditions hold."""

    attributes: tuple[str, ...]
    level: int | None = None
    where: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class JointChange:
    """The worst change that was found: what it costs, and what the two records have in common, column by column."""

    cost: Fraction
    attributes: Mapping[str, Partition]
    levels: tuple[Partition, ...]


@dataclass(frozen=True)
class Search:
    """What may change, what is kept, and what each margin costs.

    ``weights`` has the rho of each query; with each of the two records goes at most one record of every other unit.
    ``free`` are the attributes that may change, and levels from ``free_from`` on; ``recodes`` pairs coarser versions of
    attributes with these. ``kept`` are the margins that a change of one record would break. ``single_root`` says that
    the first level is one place.
    ``telling`` are the attributes that make up a record together with its place at the finest level, and all of them
    matter here; None where records have others besides, in which any two can differ.
    """

    levels: tuple[str, ...]
    attributes: tuple[str, ...]
    free: frozenset[str]
    free_from: int
    weights: Weights
    kept: tuple[KeptMargin, ...]
    recodes: tuple[tuple[str, str], ...] = ()
    single_root: bool = False
    telling: frozenset[str] | None = None

    @property
    def searchable(self) -> bool:
        """Whether there are few enough combinations to search them all."""
        return self._searched is not None

    def worst(self, values: Sequence[int]) -> JointChange | None:
        """The change whose sum of weights times ``values`` (:data:`SQUARED` or :data:`DISTANT`) is largest, among those
        that keep all margins and that the first record could not make alone; None where there is no such change.
        """
        scale = lcm(*(weight.denominator for weight in self.weights.values())) if self.weights else 1
        others = sorted({other for *_, other in self.weights if other})
        best: tuple[int, dict[str, Partition], tuple[Partition, ...]] | None = None
        for along in product((values, ONE_ONLY), repeat=len(others)):
            valued = dict(zip(others, along, strict=True)) | {"": values}
            priced: _Priced = [[] for _ in self.levels]
            for (level, attributes, other), weight in self.weights.items():
                priced[level].append((attributes, int(weight * scale), valued[other]))
            for columns, masks in self._combinations():
                found = self._best_levels(columns, masks, priced)
                if found is not None and (best is None or found[0] > best[0]):
                    best = found[0], columns, found[1]
        return None if best is None else JointChange(Fraction(best[0], scale), best[1], best[2])

    # -- attributes ------------------------------------------------------------------------------------------

    @cached_property
    def _asked(self) -> dict[str, tuple[str, ...]]:
        """The values that conditions of kept margins ask for, by column."""
        found: dict[str, dict[str, None]] = {}
        for margin in self.kept:
            for column, value in margin.where:
                found.setdefault(column, {})[value] = None
        return {column: tuple(values) for column, values in found.items()}

    @cached_property
    def _named(self) -> frozenset[str]:
        """Attributes in some kept margin."""
        return frozenset(name for margin in self.kept for name in (*margin.attributes, *(c for c, _ in margin.where)))

    @cached_property
    def _bound(self) -> tuple[str, ...]:
        """Attributes in some kept margin, and the recodes of those."""
        coarser = {coarse for coarse, fine in self.recodes if fine in self._named}
        return tuple(name for name in self.attributes if name in self._named or name in coarser)

    @cached_property
    def _following(self) -> tuple[str, ...]:
        """Free attributes that no kept margin binds: whatever the rest, it is worst if both records change alike, from
        one value to one other, as far as kept recodes let them."""
        return tuple(name for name in self.attributes if name in self.free and name not in self._bound)

    @cached_property
    def _searched(self) -> tuple[str, ...] | None:
        """The attributes whose partitions are searched; of those beyond a limit each query takes what is worst for it.
        None if there are too many that the margins bind."""
        rest = [one for one in self.attributes if one not in self._bound and one not in self.free]
        number = prod(len(self._options(one)) for one in self._bound)
        if number > MOST_COMBINATIONS:
            return None
        room = min((MOST_COMBINATIONS // number).bit_length() - 1, MOST_ATTRIBUTES)
        return (*self._bound, *rest[:room])

    @cached_property
    def _loose(self) -> frozenset[str]:
        searched = self._searched or ()
        return frozenset(self.attributes) - set(searched) - set(self._following)

    def _options(self, name: str) -> list[tuple[Partition, Masks]]:
        """What the two records can have in common in one attribute, and which of the four satisfy its conditions."""
        if name not in self.free:
            partitions: Sequence[Partition] = (STAYING, SAME)
        elif any(name in margin.attributes and not margin.where for margin in self.kept):
            partitions = (STAYING, CROSSING, SAME)  # a part of a kept margin is kept too
        else:
            partitions = range(len(PARTITIONS))
        return [(one, masks) for one in partitions for masks in _masks(one, len(self._asked.get(name, ())))]

    def _combinations(self) -> Iterator[tuple[dict[str, Partition], dict[tuple[str, str], int]]]:
        searched = self._searched or ()
        for chosen in product(*map(self._options, searched)):
            columns = {name: partition for name, (partition, _) in zip(searched, chosen, strict=True)}
            if not all(
                REFINED[columns[fine]][columns[coarse]] == columns[fine]
                for coarse, fine in self.recodes
                if fine in columns and coarse in columns
            ):
                continue
            for name in self._following:
                own = TOGETHER
                for coarse, fine in self.recodes:
                    if fine == name and coarse in columns:
                        own = REFINED[own][columns[coarse]]
                columns[name] = own
            masks = {
                (name, value): mask
                for name, (_, held) in zip(searched, chosen, strict=True)
                for value, mask in zip(self._asked.get(name, ()), held, strict=True)
            }
            yield columns, masks

    # -- levels ----------------------------------------------------------------------------------------------

    def _best_levels(
        self,
        columns: Mapping[str, Partition],
        masks: Mapping[tuple[str, str], int],
        priced: _Priced,
    ) -> tuple[int, tuple[Partition, ...]] | None:
        """The best partitions of the levels, from the root to the leaves; None where no margin is broken alone."""
        broken = False
        for margin in self.kept:
            if self._decided_at(margin) is None:
                verdict = self._verdict(margin, SAME, columns, masks)
                if verdict is None:
                    return None
                broken |= verdict
        states: _States = {(SAME, (), broken): (0, ())}
        for number, level in enumerate(self.levels):
            worth = self._worth(columns, priced[number])
            asked = self._asked.get(level, ())
            decided = [margin for margin in self.kept if self._decided_at(margin) == number]
            further: _States = {}
            for (above, held, alone), (total, path) in states.items():
                for partition in self._places(number):
                    if REFINED[partition][above] != partition:
                        continue
                    for own in _masks(partition, len(asked)):
                        conditions = (*held, *(((level, v), mask) for v, mask in zip(asked, own, strict=True)))
                        known = {**masks, **dict(conditions)}
                        verdicts = [self._verdict(margin, partition, columns, known) for margin in decided]
                        if None in verdicts:
                            continue
                        key = partition, conditions, alone or any(verdicts)
                        candidate = total + worth[partition], (*path, partition)
                        if key not in further or candidate[0] > further[key][0]:
                            further[key] = candidate
            states = further
        different = [found for (place, _, alone), found in states.items() if alone and self._different(place, columns)]
        return max(different, key=lambda found: found[0], default=None)

    def _different(self, place: Partition, columns: Mapping[str, Partition]) -> bool:
        """Whether the files differ in both records: two that take each other's whole place leave them as they were."""
        if self.telling is None or self.telling & self._loose:
            return True
        for name in self.telling:
            place = REFINED[place][columns[name]]
        return DISTANT[place] == DISTANT[APART]

    def _places(self, number: int) -> Sequence[Partition]:
        """What the places of the two records can have in common at a level."""
        if number >= self.free_from:
            return _PREFERRED if self._asked else _USUAL
        return (SAME,) if number == 0 and self.single_root else (STAYING, SAME)

    def _decided_at(self, margin: KeptMargin) -> int | None:
        """The level at which it is known whether a margin is kept: the finest that it names."""
        named = [self.levels.index(column) for column, _ in margin.where if column in self.levels]
        return max([*named, *([margin.level] if margin.level is not None else [])], default=None)

    def _verdict(
        self,
        margin: KeptMargin,
        place: Partition,
        columns: Mapping[str, Partition],
        masks: Mapping[tuple[str, str], int],
    ) -> bool | None:
        """Whether one record alone would break a margin; None where the two together break it."""
        members, partition = ALL_FOUR, place
        for condition in margin.where:
            members &= masks[condition]
        for name in margin.attributes:
            partition = REFINED[partition][columns[name]]
        return BREAKS_ALONE[partition][members] if KEEPS[partition][members] else None

    def _worth(
        self, columns: Mapping[str, Partition], priced: Sequence[tuple[frozenset[str], int, Sequence[int]]]
    ) -> list[int]:
        """What the queries of a level add, for each partition of its places."""
        worth = [0] * len(PARTITIONS)
        places = _PREFERRED if self._asked else _USUAL
        for attributes, weight, values in priced:
            told = SAME
            for name in attributes - self._loose:
                told = REFINED[told][columns[name]]
            loose = bool(attributes & self._loose)
            for place in places:
                cells = REFINED[place][told]
                value = values[cells]
                worth[place] += weight * (max(value, values[REFINED[cells][STAYING]]) if loose else value)
        return worth


def _masks(partition: Partition, number: int) -> Iterator[Masks]:
    """Every way in which ``number`` values of a column are those of different blocks, or of none."""
    blocks = PARTITIONS[partition]
    possible = [0, *(sum(1 << one for one in range(4) if blocks[one] == block) for block in sorted(set(blocks)))]
    for masks in product(possible, repeat=number):
        held = [mask for mask in masks if mask]
        if len(set(held)) == len(held):
            yield masks
