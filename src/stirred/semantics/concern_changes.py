"""Which datasets are compared for a concern, what the queries can lose between them, and how they differ, in words.

One record that changes alone may break an invariant: a person who moves to another state changes the number of persons
in both. Then the datasets that are compared keep the invariant and lie further apart, and there are many of them. Two
persons may take each other's place, or move to other blocks of each other's state, or change alike in what nothing
holds fixed. Noise protects least between those that the queries tell apart best: every number is about these.

Keep in mind: changes that one record could make alone are compared at its own distance. Two records that make such
changes side by side are a group of two, and not what a concern under an invariant is about.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.errors import listed_plainly
from stirred.semantics import joint_changes as joint
from stirred.semantics.concerns import Concern, Exposure
from stirred.semantics.testing import Change, Status, replaced_record, smallest_change
from stirred.spec.invariant import Invariant, plural
from stirred.spec.known_deployments.allocations import Allocation, AllocationPart, Query
from stirred.spec.specification import Specification


def told_in_words(unit: str, search: joint.Search, found: joint.JointChange, spoken: Collection[str]) -> str:
    """A change of two records of a ``unit``; ``spoken`` are the attributes that are named."""
    told = _Words(search, found, {name: own for name, own in found.attributes.items() if name in spoken})
    what = [*told.moves(), *told.attributes()] or ["change"]
    likeness = told.likeness()
    said = f", {likeness}," if likeness else ""
    return f"two {plural(unit)}{told.places()}{said} {' and '.join(what)}, all else as it is"


@dataclass(frozen=True)
class _Words:
    search: joint.Search
    found: joint.JointChange
    named: dict[str, joint.Partition]

    def _finest(self, partition: joint.Partition) -> str | None:
        """The finest level at which places are as the partition says."""
        named = list(zip(self.search.levels, self.found.levels, strict=True))
        return next((level for level, own in reversed(named) if own == partition), None)

    def places(self) -> str:
        """Where the two are before anything changes."""
        blocks = [joint.PARTITIONS[one] for one in self.found.levels]
        shared = [level for level, own in zip(self.search.levels, blocks, strict=True) if own[0] == own[2]]
        if len(shared) == len(blocks):
            return f" of one {shared[-1]}"
        different = f" of different {plural(self._finest(joint.CROSSING) or self.search.levels[len(shared)])}"
        known = len(shared) == 1 and self.search.single_root
        return different if known or not shared else f"{different} of one {shared[-1]}"

    def moves(self) -> Iterator[str]:
        """Where the two records move, as verbs of a sentence."""
        leaf, own = self.search.levels[-1], self.found.levels[-1]
        if own in (joint.SAME, joint.STAYING):
            return
        crossed, shared = self._finest(joint.CROSSING), self._finest(joint.SAME)
        if crossed == leaf:
            yield f"each move to the other's {leaf}"
        elif crossed is not None:
            yield f"each move to another {leaf} of the other's {crossed}"
        elif own == joint.TOGETHER:
            first = self.search.levels[self.found.levels.index(joint.TOGETHER)]
            yield f"both move to the same other {first}{f' of that {shared}' if shared else ''}"
        elif (stayed := self._finest(joint.STAYING)) is not None:
            yield f"each move within their {stayed}"
        else:
            yield "move"

    def attributes(self) -> Iterator[str]:
        """What the two records change in, as verbs of a sentence."""
        ways: dict[str, list[str]] = {}
        for name, own in self.named.items():
            ways.setdefault(_way(own), []).append(name)
        for way, names in ways.items():
            if way:
                yield way.format(listed_plainly(names))

    def likeness(self) -> str:
        """In which of the attributes that stay they are alike."""
        alike = [name for name, own in self.named.items() if own == joint.SAME]
        unlike = [name for name, own in self.named.items() if own == joint.STAYING]
        every = "every other attribute" if len(alike) + len(unlike) < len(self.named) else "every attribute"
        if not alike or not unlike:
            return f"{'alike' if alike else 'unlike'} in {every}" if alike or unlike else ""
        return f"alike in {listed_plainly(alike)} and unlike in {listed_plainly(unlike)}"


def _way(partition: joint.Partition) -> str:
    """How two records change in an attribute; empty where neither does."""
    if partition == joint.CROSSING:
        return "exchange their {}"
    if partition == joint.TOGETHER:
        return "change alike in {} (both from one value to the same other)"
    before, after, second_before, second_after = joint.PARTITIONS[partition]
    changed = (before != after) + (second_before != second_after)
    return ("", "one of them gets another {}", "each get another {}")[changed]


@brief
@dataclass(frozen=True)
class WorstChange:
    """The datasets that are compared for a concern: of those at their distance, made by changes that no record could
    make alone, the ones that are told apart best."""

    change: Change
    records: Fraction
    """How many records differ: the distance, in records that are replaced."""

    rho: Fraction
    """At most what Gaussian noise in the stated shares loses between the two datasets."""

    any_rho: Fraction
    """At most what any noise of the stated shares loses."""

    @property
    def joint(self) -> bool:
        """Whether more than one record changes, since one alone would break what is held fixed."""
        return self.records > 1


@refuses_wrong_arguments
def concerned_change(specification: Specification, exposed: Exposure) -> Change:
    """The nearest datasets of a universe that differ in all that the concern is about, and in nothing else; of several
    the ones that the queries tell apart best."""
    return worst_change(specification, exposed).change


@refuses_wrong_arguments
def worst_change(specification: Specification, exposed: Exposure) -> WorstChange:
    """The datasets that are compared for a concern, and how much the queries lose between them.

    >>> from stirred.semantics.concerns import exposure
    >>> from stirred.spec.known_deployments.allocations import allocation
    >>> from stirred.spec.loading import load
    >>> moving = exposure(allocation("pl94-2020"), "state within us", rounded=True)
    >>> worst = worst_change(load("topdown-2020-pl"), moving)
    >>> print(worst.change.words.partition(", all else as it is")[0])
    two persons of different states, unlike in every attribute, each move to another block of the other's state
    >>> round(float(worst.rho), 3)
    3.473
    """
    found = _worst(specification, exposed)
    if exposed.concern.within is None or not found.change.exists or not specification.input_premetric.stays_in:
        return found
    coarse = " and the ".join(specification.input_premetric.stays_in)
    # Where dwellings are held fixed, one falls vacant and another fills: records of them are not looked at here.
    alone = (
        f"whoever moves is alone in the {coarse}, which moves along as one record; no other record is taken to change"
    )
    words = f"{found.change.words} ({alone})"
    return replace(found, change=replace(found.change, words=words))


def _worst(specification: Specification, exposed: Exposure) -> WorstChange:
    smallest, one = smallest_change(specification), replaced_record(specification)
    if not smallest.exists:
        return WorstChange(smallest, Fraction(0), Fraction(0), Fraction(0))
    if one is None or exposed.concern.whole:
        return _further(specification, exposed, smallest)
    apart = Fraction(one.distance)
    columns = exposed.concern.columns(exposed.allocation)
    certain = one.status == "inside" and exposed.concern.cells is None and not _unread(specification)
    status: Status = "inside" if certain else "assumed"
    if broken := broken_invariants(specification, columns):
        return _Kept(specification, exposed, broken).worst(apart, status)
    return _single(exposed, f"one {specification.input_premetric.unit}", apart, status)


def broken_invariants(specification: Specification, columns: tuple[str, ...]) -> tuple[Invariant, ...]:
    """The invariants that change when one record changes in ``columns``: those that count its unit by one of them.

    Whether counts reach a threshold is not among them: it stays the same wherever counts are not next to it.
    """
    unit = specification.input_premetric.unit
    return tuple(
        invariant
        for invariant in specification.multiverse.invariants
        if invariant.counts == unit
        and invariant.at_least is None
        and {*invariant.by, *(column for column, _ in invariant.where)} & set(columns)
    )


def _single(exposed: Exposure, who: str, apart: Fraction, status: Status) -> WorstChange:
    """One record changes in all that the concern is about, and two cells of each query move by one."""
    change = Change(f"{who} {_changed(exposed.concern)}, all else as it is", apart, status)
    return WorstChange(change, Fraction(1), exposed.rho, exposed.rho * apart**2)


def _further(specification: Specification, exposed: Exposure, smallest: Change) -> WorstChange:
    """Where the specification says how far apart datasets are and not why: records that differ may change alike, and
    then a query moves as many times as far as for one."""
    premetric = specification.input_premetric
    distance = Fraction(smallest.distance)
    one = Fraction(premetric.scale if premetric.bounded else 2 * premetric.scale)
    records = distance / one if premetric.kind == "records" else Fraction(1)
    rho = exposed.rho * max(records, Fraction(1)) ** 2
    return WorstChange(smallest, records, rho, exposed.rho * distance**2)


@dataclass(frozen=True)
class _Kept:
    """A concern whose changes would break invariants, and the search for changes that keep them."""

    specification: Specification
    exposed: Exposure
    broken: tuple[Invariant, ...]

    def worst(self, apart: Fraction, status: Status) -> WorstChange:
        """The worst change of two records; of four, where no two can change so."""
        search = self._search()
        if not search.searchable:
            return self._several(2, self._together(), apart, "assumed")
        gaussian, any_noise = search.worst(joint.SQUARED), search.worst(joint.DISTANT)
        if gaussian is None or any_noise is None:
            if any(self._holds(one, self._every_column) for one in self.broken):
                words = "no other dataset that differs in this alone agrees with what is held fixed"
                return WorstChange(Change(words, math.inf, "none"), Fraction(0), Fraction(0), Fraction(0))
            if all(one.where for one in self.broken):  # whoever satisfies no condition can change alone
                who = f"one {self._unit} to whom no condition of what is held fixed applies"
                return _single(self.exposed, who, apart, "assumed")
            # Datasets that agree on every pair of columns differ in at least four records.
            words = f"four {plural(self._unit)} or more change together, all else as it is"
            return self._several(4, words, apart, "assumed")
        change = Change(told_in_words(self._unit, search, gaussian, self._spoken), 2 * apart, status)
        return WorstChange(change, Fraction(2), gaussian.cost, any_noise.cost * apart**2)

    def _several(self, records: int, words: str, apart: Fraction, status: Status) -> WorstChange:
        """An upper bound without a search: the records change alike in every query whose answers are not held fixed."""
        free = [
            self.exposed.rho_of(level, query.name)
            for level, part, query in self._queries()
            if part.unit != self._unit or not any(self._holds(one, {level, *query.columns}) for one in self.broken)
        ]
        rho = sum(free, Fraction(0)) * records**2
        return WorstChange(Change(words, records * apart, status), Fraction(records), rho, rho * apart**2)

    @property
    def _unit(self) -> str:
        return self.specification.input_premetric.unit

    @property
    def _allocation(self) -> Allocation:
        return self.exposed.allocation

    @property
    def _free(self) -> frozenset[str]:
        return frozenset(self.exposed.concern.columns(self._allocation))

    @property
    def _every_column(self) -> set[str]:
        """All columns of a record that invariants or queries name."""
        queries = [query for part in self._allocation.parts if part.unit == self._unit for query in part.queries]
        own = {name for query in queries for name in query.attributes}
        return own | {name for one in self.broken for name in one.by} | set(self._allocation.levels)

    def _holds(self, invariant: Invariant, columns: set[str]) -> bool:
        """Whether an invariant fixes all counts by some columns."""
        if invariant.where:
            return False
        known = set(invariant.by)
        levels = self._allocation.levels
        finest = max((levels.index(one) for one in known if one in levels), default=-1)
        known |= {*levels[: finest + 1], *(recode for recode, of in self._allocation.recodes if of in known)}
        known |= {name for name, attributes in self._allocation.joint if set(attributes) <= known}
        if self._allocation.single_root:
            known.add(levels[0])
        return columns <= known

    def _queries(self) -> Iterator[tuple[str, AllocationPart, Query]]:
        found = {query.name: (part, query) for part in self._allocation.parts for query in part.queries}
        for level, name in self.exposed.cells:
            yield level, *found[name]

    def _column(self, part: AllocationPart, name: str) -> str:
        """The column of another unit's record that goes with the changing one has a name of its own."""
        return name if part.unit == self._unit else f"{name} of {part.name}"

    def _weights(self) -> joint.Weights:
        weights: dict[tuple[int, frozenset[str], str], Fraction] = {}
        for level, part, query in self._queries():
            columns = frozenset(self._column(part, one) for one in query.columns)
            key = self._allocation.levels.index(level), columns, "" if part.unit == self._unit else part.unit
            weights[key] = weights.get(key, Fraction(0)) + self.exposed.rho_of(level, query.name)
        return weights

    def _search(self) -> joint.Search:
        levels, weights = self._allocation.levels, self._weights()
        margins = []
        for one in self.broken:
            finest = max((levels.index(name) for name in one.by if name in levels), default=None)
            margins.append(joint.KeptMargin(tuple(name for name in one.by if name not in levels), finest, one.where))
        named = {name: None for one in margins for name in (*one.attributes, *(name for name, _ in one.where))}
        named |= {name: None for _, attributes, _ in weights for name in sorted(attributes)}
        attributes = tuple(name for name in named if name not in levels)
        parts = self._allocation.parts
        recodes = {
            (self._column(part, recode), self._column(part, of)): None
            for part in parts
            for recode, of in self._allocation.recodes
        }
        free = {self._column(part, name) for part in parts for name in self._free} | self._free
        own = frozenset(self._every_column - set(levels))
        return joint.Search(
            levels,
            attributes,
            frozenset(free),
            min((number for number, level in enumerate(levels) if level in free), default=len(levels)),
            weights,
            tuple(margins),
            tuple((recode, of) for recode, of in recodes if recode in named and of in named),
            self._allocation.single_root,
            own if own <= set(attributes) else None,
        )

    @property
    def _spoken(self) -> frozenset[str]:
        """The attributes that are named where a change is told: the records' own."""
        kept = {name for one in self.broken for name in one.by}
        return frozenset(self._every_column - {recode for recode, _ in self._allocation.recodes if recode not in kept})

    def _together(self) -> str:
        return f"two {plural(self._unit)} change together in what is asked about, all else as it is"


# -- helpers -------------------------------------------------------------------------------------------------


def _changed(concern: Concern) -> str:
    """What is different about the one record."""
    if concern.cells is not None:
        return "changes in nothing but what the chosen queries tell"
    values = f"has another {' and another '.join(concern.attributes)}" if concern.attributes else ""
    place = f"lives elsewhere in the same {concern.within}" if concern.within is not None else ""
    return " and ".join(part for part in (values, place) if part)


def _unread(specification: Specification) -> bool:
    """Whether an invariant is given in words alone, so that what breaks it cannot be computed."""
    return any(invariant.name for invariant in specification.multiverse.invariants)
