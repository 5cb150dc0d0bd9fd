"""How many of the changed records could be put back, and how surely: before a draw, by someone who knows such groups.

Rows that agree on some columns (a *group*: they look like one household) mostly share their swap value. A row whose
value b differs from the commonest other value a of its group has, it seems, moved away from a, and is *put back* to it.
Whether that is wise depends on the pattern: how many rows the group has, how many of them do not have a, how many have
b. :func:`undoing_of` draws the plan's own swap a few times in memory, with the kernel that releases use, and counts for
each pattern how many of its rows changed and had a. A pattern is used where at least 9 of 10 are right and half a row
or more is expected in it; *recovered* is the share of changed records that are then rightly put back.

Keep in mind: this attacker knows how pure such groups are, which the release itself shows only in part; what can be
told from released rows alone is :mod:`stirred.swap.checking.putting_back`. Nothing here is an attack on the theorem,
which bounds what an exchange of two records changes: rows that repeat their household's place are not two records. The
draws are seeded and thrown away; they have nothing to do with those of a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel as compiled
from stirred._display import confidential
from stirred.noise import SeededSource
from stirred.spec import Specification, facts
from stirred.swap.checking.agreeing_columns import STEP, Agreeing, Places, Rows, search, sketched
from stirred.swap.data.counting import RecordRates
from stirred.swap.data.dataset import Dataset, stratum_columns
from stirred.swap.law import permutation
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN
from stirred.tables import Table
from stirred.tables.groups import Groups, group, mixed

SURE = 0.9
"""The share of right put-backs from which a pattern is used."""

LARGEST_GROUP = 64
"""Larger groups are divided at random."""

_HALF_A_ROW = 0.5
_CHANGED = 10_000
"""About how many changed records are looked at, over all draws."""
_FEWEST_DRAWS, _MOST_DRAWS = 2, 64
_GATHERED = 1 << 18
"""About how many rows are looked at for one set of columns."""
LEAST_EXCESS = 0.004
"""Columns whose groups agree by less than this cannot put back a share of records that is worth telling."""
_LOOKED_AT = 6
"""Sets of columns for which the share is computed, of those that agree most."""
_LARGE = 256
"""Groups that seem larger than this are divided before they are sampled."""
_SMALL_FILE, _SHUFFLES = 1 << 16, 4
"""Up to so many records it is computed what chance alone would give, from so many files with shuffled places."""
_FEWEST_PUT_BACK = 3
"""So many records must be expected to be put back before that is believed."""
_LARGEST_HOUSEHOLD = 12
"""Groups that have more rows than this in the mean are not called households."""
_OTHER_RATES = (Fraction(1, 5), Fraction(1, 2))
_SIZES, _MISSING, _OWN = 13, 13, 7
"""Bounds of patterns: classes of sizes, rows without the commonest value, rows with one's own."""


@dataclass(frozen=True)
class Undone:
    """How many changed records a set of columns lets someone put back."""

    table: str
    columns: tuple[str, ...]
    variables: tuple[str, ...]
    """The swap variables that are put back."""
    recovered: float
    """Of the records that change, the share that is rightly put back."""
    precision: float
    """Of what is put back, the share that is right."""
    changed: float
    """How many records change."""
    by_chance: float = 0.0
    """What would be recovered in such a file if its columns told nothing of places; 0 where that was not needed."""
    rows: float = 0.0
    """The mean number of rows of a group."""

    @property
    def believed(self) -> bool:
        """Whether it is more than chance, and a search over hundreds of sets of columns, make in a small file."""
        return self.recovered > 2 * self.by_chance + 0.01 and self.recovered * self.changed >= _FEWEST_PUT_BACK

    @property
    def of_households(self) -> bool:
        """Whether the groups are as small as households; else they stand for places, or other things."""
        return self.rows <= _LARGEST_HOUSEHOLD


@dataclass(frozen=True)
class Remedy:
    """A change of the plan, and the share of changed records that could be put back after it."""

    words: str
    left: float


@dataclass(frozen=True)
class Undoing:
    """What was tried, the most telling first."""

    found: tuple[Undone, ...]
    columns: int
    """Columns whose combinations were searched."""
    remedies: tuple[Remedy, ...] = ()

    @property
    def worst(self) -> Undone | None:
        """The set that lets someone put back most; None if nothing is more than chance."""
        return next((one for one in self.found if one.believed), None)


@confidential
class Swapped:
    """A table of records and its linked rows, as far as putting back needs them: of the data, or of a release."""

    plan: SwapPlan
    counted: Table
    strata: Groups
    rates: Fraction | RecordRates
    tables: tuple[Rows, ...]
    places: Places


def swapped_data(dataset: Dataset, rates: Fraction | RecordRates) -> Swapped:
    """Bring together the columns of all tables of the data, or of a release."""
    plan, counted, strata = dataset.plan, dataset.counted, dataset.strata
    columns = counted.pick([*dict.fromkeys([*plan.match, *dataset.held_within])])
    tables = [Rows(MAIN, {one.name: one.codes for one in columns}, None)] if columns else []
    tables += [
        Rows(entry.plan.name, {column: one.codes for column, one in entry.held.columns.items()}, entry.record)
        for entry in dataset.linked
        if entry.held.columns
    ]
    return Swapped(plan, counted, strata, rates, tuple(tables), places_of(plan, counted, strata))


def places_of(plan: SwapPlan, counted: Table, strata: Groups) -> Places:
    """Each swap variable, and all of them together where that says more."""
    each: list[tuple[NDArray[np.uint32], tuple[str, ...], int]] = [
        (column.codes.astype(np.uint32), (column.name,), column.cardinality) for column in counted.pick(plan.swap)
    ]
    if len(each) > 1:
        joint = group(counted.pick(plan.swap), counted.rows)
        if joint.count > max(distinct for _, _, distinct in each):
            each.append((joint.ids, plan.swap, joint.count))
    each = [one for one in each if one[2] > 1]
    return Places(strata.ids, tuple(codes for codes, _, _ in each), tuple(words for _, words, _ in each))


def undoing_of(given: Swapped, also: Mapping[str, Sequence[Sequence[str]]] | None = None) -> Undoing:
    """How many changed records the most telling columns let someone put back; ``also`` are sets to be tried, by table.

    The same in every run on the same file, in a check and in a release.
    """
    draws = _Draws(given)
    found = []
    for rows in given.tables:
        tried = (also or {}).get(rows.table, ())
        sets = [one for one in search(rows, given.places, tried) if one.excess >= LEAST_EXCESS]
        found += [recovered(given, rows, one, draws) for one in sets[:_LOOKED_AT]]
    ranked = sorted(found, key=lambda one: (-one.recovered, len(one.columns), one.columns))
    return Undoing(tuple(ranked), sum(len(rows.columns) for rows in given.tables))


def recovered(given: Swapped, rows: Rows, agreeing: Agreeing, draws: _Draws) -> Undone:
    """What one set of columns lets someone put back."""
    members = gathered(rows, agreeing.columns)
    target = given.places.targets[agreeing.target]
    share, precision, changed = _share(members, target, draws, rows.record)
    chance = 0.0
    if len(target) <= _SMALL_FILE and share > 0:
        shuffled = [_shuffled(given.strata, target, number) for number in range(_SHUFFLES)]
        chance = sum(_share(members, one, draws, rows.record)[0] for one in shuffled) / _SHUFFLES
    return Undone(
        rows.table,
        agreeing.columns,
        given.places.words[agreeing.target],
        share,
        precision,
        changed,
        chance,
        float(np.mean(np.diff(members.starts))) if len(members.starts) > 1 else 0.0,
    )


def _share(
    members: Members, target: NDArray[np.uint32], draws: _Draws, record: NDArray[np.uint32] | None
) -> tuple[float, float, float]:
    """The share of changed records that is rightly put back, how much of what is put back is right, and the number of
    records that change."""
    totals, rights, none = (np.zeros((_SIZES, _MISSING, _OWN)) for _ in range(3))
    changed = 0
    for origin in draws:
        shown = target[origin]
        changed += int(np.count_nonzero(shown != target))
        _look_at(members.starts, members.record, target, shown, totals, rights, none, np.zeros((2, 0)))
    used = (rights >= SURE * totals) & (totals * members.weight >= _HALF_A_ROW * draws.many) & (rights > 0)
    put, right = float(totals[used].sum()), float(rights[used].sum())
    if record is not None:
        put, right = _once_each(members, target, draws, used.astype(np.float64), record)
    return min(1.0, right * members.weight / max(changed, 1)), right / put if put else 0.0, changed / draws.many


def _shuffled(strata: Groups, target: NDArray[np.uint32], number: int) -> NDArray[np.uint32]:
    """The swap values dealt out anew within strata."""
    keys = np.arange(len(target), dtype=np.uint64) + np.uint64((number + 1) << 40)
    _scramble(keys)
    found = np.empty_like(target)
    found[np.argsort(strata.ids, kind="stable")] = target[np.lexsort((keys, strata.ids))]
    return found


def with_remedies(given: Swapped, undoing: Undoing) -> Undoing:
    """What is left of the worst set if a column of it is dropped, or the rate is raised."""
    worst = undoing.worst
    if worst is None:
        return undoing
    rows = next(one for one in given.tables if one.table == worst.table)
    target, draws = given.places.words.index(worst.variables), _Draws(given)
    columns = [name for name in worst.columns if name not in given.plan.match]
    left = {}
    for name in columns:
        others = tuple(one for one in worst.columns if one != name)
        without = [recovered(given, rows, Agreeing(rows.table, others, target, 0.0), draws)] if others else []
        without += [one for one in undoing.found if name not in one.columns and one.believed]
        left[name] = max((one.recovered for one in without), default=0.0)
    found = [Remedy(f"drop '{name}'", left[name]) for name in sorted(columns, key=lambda one: (left[one], one))]
    if len(columns) > 1:
        rest = max(
            (one.recovered for one in undoing.found if not {*columns} & {*one.columns} and one.believed), default=0.0
        )
        found.append(Remedy("drop both" if len(columns) == 2 else f"drop all {len(columns)}", rest))
    if isinstance(given.rates, Fraction):
        again = Agreeing(rows.table, worst.columns, target, 0.0)
        for rate in (one for one in _OTHER_RATES if one > given.rates):
            other = replace(given, rates=rate)
            found.append(Remedy(f"swap at rate {rate}", recovered(other, rows, again, _Draws(other)).recovered))
    return replace(undoing, remedies=tuple(found))


def undoing_stops(
    plan: SwapPlan, undoing: Undoing, found: Sequence[errors.StoppedByCheck] = ()
) -> list[errors.StoppedByCheck]:
    """The stops ``found`` for columns that tell a swap variable, and one where more of the changed records could be put
    back than the plan accepts; one stop where both are about the same columns.

    Large groups stand for a place, which the others say better; small ones for households, which this says better.
    """
    worst = undoing.worst
    if worst is None or worst.recovered <= plan.most_recovered:
        return list(found)
    telling = [one for one in found if one.kind.startswith(("determines:", "tells:"))]
    alike = [one for one in telling if set(one.kind.partition(":")[2].split("+")) <= set(worst.columns)]
    determined = any(one.kind.startswith("determines:") for one in alike)
    if determined or (alike and not worst.of_households):
        return list(found)
    changes = [(one.words, one.left) for one in undoing.remedies if one.left < worst.recovered]
    return [
        *(one for one in found if one not in alike),
        errors.undone(
            worst.table,
            worst.columns,
            worst.variables,
            households=worst.of_households,
            changed=worst.changed,
            recovered=worst.recovered,
            precision=worst.precision,
            most=float(plan.most_recovered),
            changes=changes,
        ),
    ]


def _once_each(
    members: Members, target: NDArray[np.uint32], draws: _Draws, used: NDArray[np.float64], record: NDArray[np.uint32]
) -> tuple[float, float]:
    """Records with several linked rows, each counted once: all that were put back, and those rightly.

    Where groups are sampled, each of a record's rows counts for a part of it: that is too little, never too much.
    """
    rows, counted = np.maximum(np.bincount(record, minlength=len(target)), 1), np.zeros_like(used)
    put = right = 0.0
    for origin in draws:
        found = np.zeros((2, len(target)))
        _look_at(members.starts, members.record, target, target[origin], counted, counted, used, found)
        if members.weight == 1:
            back = found[0] > 0
            found = np.array([back, back & (2 * found[1] > found[0])], dtype=np.float64)
        else:
            found /= rows
        put, right = put + float(found[0].sum()), right + float(found[1].sum())
    return put, right


class _Draws:
    """A few draws of the plan's swap: for each record, whose swap values it has in the end."""

    def __init__(self, given: Swapped) -> None:
        self._given = given
        rate = given.rates
        selected = float(rate) if isinstance(rate, Fraction) else float(np.mean([float(one) for one in rate.rates]))
        for later in given.plan.rounds:
            selected = 1 - (1 - selected) * (1 - float(later.rate))
        looked = min(given.counted.rows, _GATHERED)
        self.many = min(_MOST_DRAWS, max(_FEWEST_DRAWS, ceil(_CHANGED / max(selected * looked, 1))))
        self._kept: list[NDArray[np.uint32]] = []

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        for number in range(self.many):
            if number == len(self._kept):
                self._kept.append(self._draw(number))
            yield self._kept[number]

    def _draw(self, number: int) -> NDArray[np.uint32]:
        given, source = self._given, SeededSource(number)
        origin = np.arange(given.counted.rows, dtype=np.uint32)
        moves = permutation.draw(given.strata, given.strata.sizes(), given.rates, source)
        origin[moves.receiver] = moves.giver
        matched = stratum_columns(given.plan)
        for later in given.plan.rounds:  # all that a round swaps, and what it matches on, moves together
            matched = (*matched, *later.match_also)
            columns = [
                column.with_codes(column.codes[origin]) if column.name in given.plan.swap else column
                for column in given.counted.pick(matched)
            ]
            strata = group(columns, given.counted.rows)
            moves = permutation.draw(strata, strata.sizes(), later.rate, source)
            origin[moves.receiver] = origin[moves.giver]
        return origin


# -- several releases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    """What this release and earlier swaps of the same data allow together: held values link their rows."""

    releases: int
    """Earlier swaps of the same variables."""
    linked_share: float
    """The share of records that nobody equals in what all of them hold: these are found again in each."""
    recovered: float
    """Of the records that this release would change, the share that the others together put back rightly."""


def together(dataset: Dataset, earlier: Sequence[Specification], changed_share: float) -> Together | None:
    """What earlier swaps, by their specifications, and this one allow together; None if there are none.

    A linked record shows its true value in every release that left it in place. Wrong values hardly ever coincide, so
    two earlier releases that agree are right, and one alone is where it changes so much less often than this one that
    the odds are nine to one.
    """
    swaps = [one for one in earlier if _same_swap(dataset, one)]
    if not swaps:
        return None
    read = [one.domain.variables for one in swaps if one.domain.variables is not None]
    shared = [name for name in (*dataset.plan.match, *dataset.held) if all(name in names for names in read)]
    sizes = group(dataset.table.pick(shared), dataset.records).sizes() if shared else np.array([dataset.records])
    linked = float(np.count_nonzero(sizes == 1) / dataset.records)
    changes = [_changed_share(one) for one in swaps]
    none = float(np.prod(changes))
    sure_alone = [c for c in changes if (1 - c) * changed_share >= 9 * (1 - changed_share) * c]
    one_alone = {True: 0.0, False: 0.0}
    for c in changes:
        one_alone[c in sure_alone] += (1 - c) * none / c if c > 0 else float(len(changes) == 1)
    return Together(len(swaps), linked, linked * max(0.0, 1 - none - one_alone[False]))


def _same_swap(dataset: Dataset, one: Specification) -> bool:
    if one.fact.get(facts.MECHANISM) != facts.PERMUTATION_SWAPPING:
        return False
    swapped = {name.strip() for name in str(one.fact.get(facts.SWAP, "")).split(",")}
    return bool(swapped & {*dataset.plan.swap})


def _changed_share(one: Specification) -> float:
    for name in (facts.CHANGED_SHARE, facts.SELECTED_SHARE, facts.RATE):
        if name in one.fact:
            return min(1.0, float(Fraction(str(one.fact[name]))))
    return 0.0


def releases_stops(plan: SwapPlan, found: Together | None, changed: float) -> list[errors.StoppedByCheck]:
    """A stop where the releases together put back more than the plan accepts."""
    if found is None or found.recovered <= plan.most_recovered:
        return []
    most = float(plan.most_recovered)
    return [errors.undone_by_releases(found.releases, recovered=found.recovered, most=most, changed=changed)]


# -- groups --------------------------------------------------------------------------------------------------


@confidential
class Members:
    """Groups of two records or more, each record once: those of group g stand from ``starts[g]`` to ``starts[g+1]``."""

    record: NDArray[np.uint32]
    starts: NDArray[np.int64]
    weight: float
    """For how many groups each of these stands, in a sample."""


def gathered(rows: Rows, columns: Sequence[str], most: int = _GATHERED) -> Members:
    """The groups of rows that agree on some columns, whole; a sample of them in a large file, the same in every run."""
    cell = rows.hashes(columns)
    owner = np.arange(rows.count, dtype=np.uint32) if rows.record is None else rows.record
    share = min(1.0, most / rows.count)
    if share < 1:
        kept = np.zeros(rows.count, dtype=np.bool_)
        _choose(cell, owner, sketched(cell), np.uint64(int(share * 2.0**64)), kept)
        cell, owner = cell[kept], owner[kept]
    shuffled = owner.astype(np.uint64)
    _scramble(shuffled)
    order = np.lexsort((shuffled, cell))
    cell, owner = cell[order], owner[order]
    record = np.empty_like(owner)
    starts = np.empty(len(owner) + 1, dtype=np.int64)
    groups, entries = _divided(cell, owner, record, starts)
    return Members(record[:entries].copy(), starts[: groups + 1].copy(), 1 / share)


@compiled
def _scramble(numbers):  # type: ignore[no-untyped-def]
    for at in range(len(numbers)):
        numbers[at] = mixed(numbers[at] + np.uint64(0x9E3779B97F4A7C15))


@compiled
def _choose(cell, owner, sketch, bound, kept):  # type: ignore[no-untyped-def]
    """Mark a sample of whole groups; members of one that seems large get one of several new numbers before."""
    low = np.uint64(len(sketch) - 1)
    for row in range(len(cell)):
        number = mixed(cell[row])
        size = np.int64(sketch[number & low]) * STEP
        if size > _LARGE:
            number = mixed(number + mixed(np.uint64(owner[row]) + np.uint64(5)) % np.uint64(size // 48))
        cell[row] = number
        kept[row] = mixed(number) < bound


@compiled
def _divided(cell, owner, record, starts):  # type: ignore[no-untyped-def]
    """Groups of at least two and at most so many records; how many groups and entries there are."""
    groups = entries = start = 0
    while start < len(cell):
        first = entries
        end = start
        while end < len(cell) and cell[end] == cell[start]:
            if end == start or owner[end] != owner[end - 1]:
                record[entries] = owner[end]
                entries += 1
            end += 1
        count = entries - first
        if count < 2:
            entries = first
        else:
            blocks = (count + LARGEST_GROUP - 1) // LARGEST_GROUP
            for block in range(blocks):
                starts[groups] = first + block * count // blocks
                groups += 1
        start = end
    starts[groups] = entries
    return groups, entries


# -- patterns ------------------------------------------------------------------------------------------------


@compiled
def _size_class(size):  # type: ignore[no-untyped-def]
    if size <= 10:
        return size
    return 10 if size <= 16 else (11 if size <= 32 else 12)


@compiled
def _commonest_other(counts, kinds, own):  # type: ignore[no-untyped-def]
    """The kind that most rows have, other than one's own; -1 where two are as common, or there is none."""
    best = -1
    most = 0
    for kind in range(kinds):
        if kind != own:
            if counts[kind] > most:
                best, most = kind, counts[kind]
            elif counts[kind] == most:
                best = -1
    return best


@compiled
def _tallied(record, start, end, shown, values, counts, kind_of):  # type: ignore[no-untyped-def]
    """The distinct values of a group with their counts, and the kind of each member; how many kinds there are."""
    kinds = 0
    for at in range(start, end):
        value = shown[record[at]]
        kind = 0
        while kind < kinds and values[kind] != value:
            kind += 1
        if kind == kinds:
            values[kind], counts[kind] = value, 0
            kinds += 1
        counts[kind] += 1
        kind_of[at - start] = kind
    return kinds


@compiled
def _look_at(starts, record, target, shown, totals, rights, used, back):  # type: ignore[no-untyped-def]
    """Count rows by pattern, and those that are rightly put back; and for each record in how many of its groups a
    pattern that is ``used`` puts it back, and in how many rightly."""
    values = np.zeros(LARGEST_GROUP, dtype=np.int64)
    counts = np.zeros(LARGEST_GROUP, dtype=np.int64)
    kind_of = np.zeros(LARGEST_GROUP, dtype=np.int64)
    for group_number in range(len(starts) - 1):
        start, end = starts[group_number], starts[group_number + 1]
        kinds = _tallied(record, start, end, shown, values, counts, kind_of)
        if kinds < 2:
            continue
        size = _size_class(end - start)
        for at in range(start, end):
            own = kind_of[at - start]
            other = _commonest_other(counts, kinds, own)
            if other < 0:
                continue
            missing, mine = min(end - start - counts[other], _MISSING - 1), min(counts[own], _OWN - 1)
            right = target[record[at]] == values[other]
            totals[size, missing, mine] += 1
            rights[size, missing, mine] += right
            if used[size, missing, mine]:
                back[0, record[at]] += 1
                back[1, record[at]] += right
