"""Finds held columns on which rows agree that belong together, as those of one household do.

Rows of one household, building or firm carry the same amounts and lived in one place. After a swap most of them still
say so, and the one that moved stands out. So what is looked for are sets C of columns such that rows which agree on C
agree on the swap value more often than rows of their stratum do by chance, by the excess agreement

    E(C) = (1/n) sum_g [ sum_v c_v (c_v - 1) / (k - 1)  -  sum_i q(s_i) ],

over groups g of k rows, c_v of them with the swap value v, where q(s) is the share of s in the stratum. Single columns
and pairs are tried, and the best are grown by the columns on which rows of one group agree when their swap value is the
same and not otherwise.

Keep in mind: groups are looked at whole. For each column a *slice* of the file is taken by a hash of its values, so all
rows that share a value are in or out together; only values that very many rows have are thinned. What is found depends
on the rows, not on their order (but for which members of a large group are compared), and no randomness is drawn. The
search is not complete: docs/guarantee.md says what it misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._display import confidential
from stirred._threads import thread_pool
from stirred.tables.columns import Codes
from stirred.tables.groups import mixed

LOOKED_AT = 1 << 17
"""About how many rows a slice has."""

MOST_COLUMNS = 32
"""Columns that are tried in pairs: of more, those that agree most alone."""

_HEAVY = 1 << 10
"""Rows that agree beyond which they are thinned in a slice of a large file."""

STEP = 16
"""Every so many rows are counted to know which groups are large."""
_SKETCH = 1 << 20

_COMPARED = 24
"""With how many others each row of a group is compared, to see on which further columns they agree."""

_STARTS = 3
"""Sets that are grown."""

_GAIN = 1.01
"""A larger set must agree by so much more to be preferred."""

_MOST_GROWN = 16
"""Columns that a set is grown to at the most."""

_RECORD_BITS = np.uint64(24)

Hashes = NDArray[np.uint64]


@confidential
class Rows:
    """The rows of one table: their columns, and for each row its record, None where rows are records."""

    table: str
    columns: Mapping[str, Codes]
    record: NDArray[np.uint32] | None

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values())))

    def hashes(self, names: Iterable[str]) -> Hashes:
        """A number per row that two rows share when they agree on the columns."""
        found = np.zeros(self.count, dtype=np.uint64)
        for name in names:
            _add_hash(found, self.columns[name], _salt(name))
        return found


@confidential
class Places:
    """What is swapped, per record: the stratum, and for each target the swap value and its share in the stratum."""

    strata: NDArray[np.uint32]
    targets: tuple[NDArray[np.uint32], ...]
    words: tuple[tuple[str, ...], ...]
    """The swap variables of each target: one, or all together."""


@dataclass(frozen=True)
class Agreeing:
    """A set of columns on which rows that belong together agree, and what they then agree on."""

    table: str
    columns: tuple[str, ...]
    target: int
    excess: float


def search(rows: Rows, places: Places, also: Sequence[Sequence[str]] = ()) -> list[Agreeing]:
    """Sets of columns whose groups share their swap value, the best first; ``also`` are sets to be grown too."""
    names = [name for name, codes in rows.columns.items() if int(codes.max(initial=0)) > 0]
    if not names or rows.count < 3 or not places.targets:
        return []
    looking = _Looking(rows, places)
    found: dict[tuple[str, ...], NDArray[np.float64]] = {(name,): looking.at((name,)) for name in names}
    ranked = sorted(names, key=lambda name: (-float(found[name,].max()), name))[:MOST_COLUMNS]
    pairs = list(combinations(sorted(ranked), 2))
    with thread_pool() as pool:  # sorting and counting do without the interpreter lock
        found |= dict(zip(pairs, pool.map(looking.at, pairs), strict=True))
    given = [tuple(sorted(one)) for one in also if one]
    found |= {one: looking.at(one) for one in given if one not in found}
    kept: dict[tuple[str, ...], Agreeing] = {}
    for target in range(len(places.targets)):
        order = sorted(found, key=lambda one: (-float(found[one][target]), len(one), one))
        for start in [*_unlike(order), *given]:
            for one in looking.grown(start, target, names):
                if one.excess > 0 and (one.columns not in kept or kept[one.columns].excess < one.excess):
                    kept[one.columns] = one
    return sorted(kept.values(), key=lambda one: (-one.excess, len(one.columns), one.columns))


def _unlike(order: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first few sets that share no column with one before them."""
    chosen: list[tuple[str, ...]] = []
    for one in order:
        if not any(set(one) & set(other) for other in chosen):
            chosen.append(one)
        if len(chosen) == _STARTS:
            break
    return chosen


@confidential
class _Slice:
    """Some rows of a table, those with equal values of one column together."""

    hashes: Mapping[str, Hashes]
    record: NDArray[np.uint32]
    """Which record of the slice each row belongs to."""
    values: NDArray[np.uint32]
    """Per target and record the swap value."""
    chance: NDArray[np.float64]
    """Per target and record the share of its swap value among other records of its stratum in the slice."""


class _Looking:
    """Slices of one table by some of its columns, made when they are first needed."""

    def __init__(self, rows: Rows, places: Places) -> None:
        self.rows, self.places = rows, places
        self.share = min(1.0, LOOKED_AT / rows.count)
        self._slices: dict[str, _Slice] = {}

    @cached_property
    def distinct(self) -> dict[str, int]:
        return {name: int(codes.max(initial=0)) + 1 for name, codes in self.rows.columns.items()}

    def of(self, columns: Sequence[str]) -> _Slice:
        """The slice by the column of a set that has the most values; if these are few, one that all sets share."""
        name = max(columns, key=lambda one: (self.distinct[one], one))
        if self.share == 1 or self.rows.count > _HEAVY * self.distinct[name]:
            name = ""
        if name not in self._slices:
            self._slices[name] = self.by([name] if name else [])
        return self._slices[name]

    @cached_property
    def _whole(self) -> Hashes:
        """A number per row that rows with equal columns share: thins rows of a common value."""
        return self.rows.hashes(self.rows.columns)

    def by(self, columns: Sequence[str]) -> _Slice:
        """A slice in which rows that agree on some columns are all in or out, unless they are very many."""
        rows, places = self.rows, self.places
        if self.share == 1:
            chosen = np.arange(rows.count, dtype=np.int64)
        else:
            cell = rows.hashes(columns) if columns else self._whole
            kept = np.zeros(rows.count, dtype=np.bool_)
            sketch = sketched(cell) if columns else np.zeros(1, dtype=np.uint32)
            _mark_slice(cell, self._whole, sketch, np.uint64(int(self.share * 2.0**64)), kept)
            chosen = np.flatnonzero(kept)
        owner = chosen if rows.record is None else rows.record[chosen]
        owners, record = np.unique(owner, return_inverse=True)
        order = np.argsort(_scattered(len(owners)))  # so that a group's members are compared in no order of the file
        number = np.empty(len(owners), dtype=np.uint32)
        number[order] = np.arange(len(owners), dtype=np.uint32)
        mixed_up = owners[order]
        values = np.array([target[mixed_up] for target in places.targets], dtype=np.uint32)
        chance = np.array([_shares(places.strata[mixed_up], one) for one in values])
        some = Rows(rows.table, {column: codes[chosen] for column, codes in rows.columns.items()}, None)
        hashes = {column: some.hashes([column]) for column in some.columns}
        return _Slice(hashes, number[record.reshape(-1)], values, chance)

    def at(self, columns: Sequence[str]) -> NDArray[np.float64]:
        """The excess agreement of a set, for each target."""
        return self._at(self.of(columns), columns)

    def _at(self, part: _Slice, columns: Sequence[str]) -> NDArray[np.float64]:
        keys = _keys(part, columns)
        found = np.zeros(len(part.values), dtype=np.float64)
        seen = np.zeros(int(part.values.max(initial=0)) + 1, dtype=np.int64)
        rows = int(_excess(keys, part.values, part.chance, seen, found))
        return found / max(rows, 1)

    def grown(self, start: tuple[str, ...], target: int, names: Sequence[str]) -> list[Agreeing]:
        """A set and what it grows to: with the columns on which rows agree that share group and swap value."""
        part = self.of(start) if self.share == 1 else self.by(start)
        others = [name for name in names if name not in start]
        same, unlike = np.zeros((len(others), 2)), np.zeros((len(others), 2))
        if others:
            stacked = np.array([part.hashes[name] for name in others])
            _compare(_ordered(part, start), part.record, stacked, part.values[target], same, unlike)
        gap = same[:, 0] / np.maximum(same[:, 1], 1) - unlike[:, 0] / np.maximum(unlike[:, 1], 1)
        order = [others[at] for at in np.argsort(-gap, kind="stable") if gap[at] > 0][: _MOST_GROWN - len(start)]
        tried = [start, *(tuple(sorted((*start, *order[: n + 1]))) for n in range(len(order)))]
        excess = [float(self._at(part, one)[target]) for one in tried]
        best = 0
        for number, value in enumerate(excess):
            if value > _GAIN * excess[best]:
                best = number
        if excess[best] <= 0:
            return []
        least, value = self._fewer(part, tried[best], target, excess[best], set(start))
        longest = max(number for number, one in enumerate(excess) if one >= 0.8 * excess[best])
        chosen = {least: value, tried[longest]: excess[longest], start: excess[0]}
        return [Agreeing(self.rows.table, one, target, found) for one, found in chosen.items()]

    def _fewer(
        self, part: _Slice, columns: tuple[str, ...], target: int, excess: float, kept: set[str]
    ) -> tuple[tuple[str, ...], float]:
        """The set without columns that add nothing."""
        for name in columns:
            left = tuple(one for one in columns if one != name)
            if len(left) > 1 and name not in kept:
                found = float(self._at(part, left)[target])
                if found >= excess:
                    columns, excess = left, found
        return columns, excess


def _salt(name: str) -> np.uint64:
    return np.uint64(crc32(name.encode()) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)


def sketched(cell: Hashes) -> NDArray[np.uint32]:
    """Every sixteenth row counted by its cell, to know the cells that very many rows have."""
    sketch = np.zeros(_SKETCH, dtype=np.uint32)
    _tally_some(cell, sketch)
    return sketch


def _scattered(count: int) -> Hashes:
    found = np.zeros(count, dtype=np.uint64)
    _add_hash(found, np.arange(count, dtype=np.uint32), np.uint64(1))
    return found


def _shares(strata: NDArray[np.uint32], values: NDArray[np.uint32]) -> NDArray[np.float64]:
    """For each record the share of its value among the others of its stratum; of all records where it is alone."""
    _, stratum, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    pairs = strata.astype(np.uint64) << np.uint64(32) | values
    _, pair, both = np.unique(pairs, return_inverse=True, return_counts=True)
    _, value, overall = np.unique(values, return_inverse=True, return_counts=True)
    size = sizes[stratum.reshape(-1)]
    within = (both[pair.reshape(-1)] - 1) / np.maximum(size - 1, 1)
    return np.asarray(np.where(size > 1, within, overall[value.reshape(-1)] / len(values)), dtype=np.float64)


def _cells(part: _Slice, columns: Sequence[str]) -> Hashes:
    cell = part.hashes[columns[0]].copy()
    for name in columns[1:]:
        cell += part.hashes[name]
    return cell


def _keys(part: _Slice, columns: Sequence[str]) -> Hashes:
    """By cell, mixed to 40 bits, then record; sorted."""
    keys = _cells(part, columns)
    _with_record(keys, part.record)
    keys.sort()
    return keys


def _ordered(part: _Slice, columns: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows by cell and record, and where a cell begins."""
    keys = _cells(part, columns)
    _with_record(keys, part.record)
    order = np.argsort(keys)
    cell = keys[order] >> _RECORD_BITS
    return order, np.append(True, cell[1:] != cell[:-1])


@kernel
def _add_hash(found, codes, salt):  # type: ignore[no-untyped-def]
    for row in range(len(found)):
        found[row] += mixed(np.uint64(codes[row]) + salt)


@kernel
def _tally_some(cell, sketch):  # type: ignore[no-untyped-def]
    low = np.uint64(len(sketch) - 1)
    for row in range(0, len(cell), STEP):
        sketch[mixed(cell[row]) & low] += np.uint32(1)


@kernel
def _mark_slice(cell, whole, sketch, bound, kept):  # type: ignore[no-untyped-def]
    low = np.uint64(len(sketch) - 1)
    for row in range(len(cell)):
        number = mixed(cell[row])
        if np.int64(sketch[number & low]) * STEP > _HEAVY:
            number = mixed(whole[row])
        kept[row] = mixed(number) < bound


@kernel
def _with_record(keys, record):  # type: ignore[no-untyped-def]
    for row in range(len(keys)):
        keys[row] = mixed(keys[row]) >> np.uint64(24) << np.uint64(24) | np.uint64(record[row])


@kernel
def _excess(keys, values, chance, seen, found):  # type: ignore[no-untyped-def]
    """Add up the excess agreement over groups, for each target; how many rows there are, each record once a group.

    ``seen`` has a zero for every swap value, before and after.
    """
    low = np.uint64((1 << 24) - 1)
    members = np.zeros(len(keys), dtype=np.int64)
    start = rows = 0
    while start < len(keys):
        cell = keys[start] >> np.uint64(24)
        count = 0
        end = start
        while end < len(keys) and keys[end] >> np.uint64(24) == cell:
            if end == start or keys[end] != keys[end - 1]:
                members[count] = np.int64(keys[end] & low)
                count += 1
            end += 1
        rows += count
        if count > 1:
            for target in range(len(values)):
                agree = 0
                by_chance = 0.0
                for one in range(count):
                    value = values[target, members[one]]
                    by_chance += chance[target, members[one]]
                    agree += seen[value]
                    seen[value] += 1
                for one in range(count):
                    seen[values[target, members[one]]] = 0
                found[target] += 2 * agree / (count - 1) - by_chance
        start = end
    return rows


@kernel
def _compare(ordered, record, hashes, values, same, unlike):  # type: ignore[no-untyped-def]
    """For pairs of rows of one cell: how often they agree on each column, where their swap value is the same or not."""
    order, begins = ordered
    for one in range(len(order)):
        for other in range(one + 1, min(len(order), one + 1 + _COMPARED)):
            if begins[other]:
                break
            first, second = order[one], order[other]
            if record[first] != record[second]:
                counted = same if values[record[first]] == values[record[second]] else unlike
                for column in range(len(hashes)):
                    counted[column, 1] += 1
                    if hashes[column, first] == hashes[column, second]:
                        counted[column, 0] += 1
