"""Measures how well held columns predict the swap variables: what is held is published as it is, and may undo the swap.

Held columns that predict where a record lives show which records moved, and where from: a postcode that is held while
its county is swapped, two coordinates together, or a school code with a few typing errors. Each held column, each pair
of them, and all of them together by a small decision tree are tried as predictors of each swap variable, beside the
match variables, which are published with it anyway. Predictions are learnt on one half of the rows and counted on the
other, and the other way round, so that a column of chance does not seem to tell anything.

The measure is a share: of the records whose value the match variables alone do not predict rightly, how many more are
predicted rightly with the held columns (less those that are then predicted wrongly). Large files are sampled, so that
rows which agree on what is tried stay together; nothing here reaches a release but the decision to stop.

The decision tree finds what single values cannot show: coordinates, dates or amounts that nearly all differ and yet
tell the place, since codes of columns are in the order of their values. Columns are cut into 64 parts of about equal
size, and a node is divided where that makes its halves purest (Gini), down to ten levels. It is written here because no
library that the package needs has one (scipy and polars do not), and scikit-learn would be a dependency as large as all
others together for these eighty lines. Besides, which releases stop would then change with its versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._threads import thread_pool
from stirred.swap.data.dataset import Dataset
from stirred.tables import Table
from stirred.tables.columns import Codes, Column
from stirred.tables.groups import mixed

_PARTS = 64
_LEVELS = 10
_FEWEST = 20
"""Rows of a node below which it is not divided."""
_VALUES = 32
"""Values of the swap variable that are told apart; the rarer ones are one."""


def predicted_by_tree(
    columns: Sequence[NDArray[np.uint32]], codes: NDArray[np.uint32], half: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each row whether a tree that was grown on the other half predicts its value."""
    binned = np.column_stack([_parts(column) for column in columns])
    common = np.argsort(-np.bincount(codes), kind="stable")[: _VALUES - 1]
    label = np.full(int(codes.max()) + 1, _VALUES - 1, dtype=np.int64)
    label[common] = np.arange(len(common))
    wanted = label[codes]
    right = np.zeros(len(codes), dtype=np.bool_)
    for side in (False, True):
        grown_on, tried_on = np.flatnonzero(half != side), np.flatnonzero(half == side)
        if len(grown_on) and len(tried_on):
            predicted = np.zeros(len(tried_on), dtype=np.int64)
            _grow(binned, wanted, grown_on, tried_on, predicted, _LEVELS, _FEWEST, _PARTS, _VALUES)
            right[tried_on] = (predicted == wanted[tried_on]) & (wanted[tried_on] < _VALUES - 1)
    return right


def _parts(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """The codes of a column cut into parts of about equally many rows: the part of each row."""
    counts = np.bincount(codes)
    before = np.cumsum(counts) - counts
    part_of = np.minimum(before * _PARTS // max(len(codes), 1), _PARTS - 1).astype(np.uint8)
    return np.take(part_of, codes)


@kernel
def _grow(binned, wanted, grown, tried, predicted, levels, fewest, parts, values):  # type: ignore[no-untyped-def]
    """Grow a tree level by level on the rows ``grown``, and predict the rows ``tried`` by their leaves."""
    columns = binned.shape[1]
    node = np.zeros(len(grown), dtype=np.int64)
    place = np.zeros(len(tried), dtype=np.int64)
    nodes = 1
    for level in range(levels + 1):
        counts = np.zeros((nodes, values), dtype=np.int64)
        for i in range(len(grown)):
            counts[node[i], wanted[grown[i]]] += 1
        for i in range(len(tried)):
            best, most = 0, -1
            for value in range(values):
                if counts[place[i], value] > most:
                    best, most = value, counts[place[i], value]
            if most > 0:
                predicted[i] = best
        if level == levels:
            return
        column_of = np.full(nodes, -1, dtype=np.int64)
        cut_of = np.zeros(nodes, dtype=np.int64)
        score = np.zeros(nodes)
        size = np.zeros(nodes, dtype=np.int64)
        for at in range(nodes):
            for value in range(values):
                size[at] += counts[at, value]
                score[at] += float(counts[at, value]) * counts[at, value]
            score[at] = score[at] / max(size[at], 1) * (1 + 1e-9)
        for column in range(columns):
            table = np.zeros((nodes, parts, values), dtype=np.int64)
            for i in range(len(grown)):
                table[node[i], binned[grown[i], column], wanted[grown[i]]] += 1
            left = np.zeros(values, dtype=np.int64)
            for at in range(nodes):
                if size[at] < fewest:
                    continue
                left[:] = 0
                many = 0
                for cut in range(parts - 1):
                    squares_left = 0.0
                    squares_right = 0.0
                    many = 0
                    for value in range(values):
                        left[value] += table[at, cut, value]
                        many += left[value]
                        squares_left += float(left[value]) * left[value]
                        rest = float(counts[at, value] - left[value])
                        squares_right += rest * rest
                    if 0 < many < size[at]:
                        purity = squares_left / many + squares_right / (size[at] - many)
                        if purity > score[at]:
                            score[at] = purity
                            column_of[at] = column
                            cut_of[at] = cut
        children = np.full((nodes, 2), -1, dtype=np.int64)
        following = 0
        for at in range(nodes):
            if column_of[at] >= 0:
                children[at, 0] = following
                children[at, 1] = following + 1
                following += 2
        if following == 0:
            return
        # Rows of nodes that are not divided share one node after the last, which keeps their prediction.
        kept = 0
        for i in range(len(grown)):
            at = node[i]
            if column_of[at] >= 0:
                grown[kept] = grown[i]
                node[kept] = children[at, 1 if binned[grown[i], column_of[at]] > cut_of[at] else 0]
                kept += 1
        grown, node = grown[:kept], node[:kept]
        for i in range(len(tried)):
            at = place[i]
            if at >= 0 and column_of[at] >= 0:
                place[i] = children[at, 1 if binned[tried[i], column_of[at]] > cut_of[at] else 0]
            else:
                place[i] = following
        nodes = following + 1


SAMPLED = 1 << 16
"""About how many rows are looked at."""

_FEWEST_IN_SAMPLE = 32
"""Large strata are thinned to no fewer rows than this; smaller ones are taken whole or not at all."""

_BELIEVED = 4.0
"""A gain in right predictions is believed when it exceeds so many of its standard deviations under pure chance."""

_MORE = 0.01
"""By so much several columns must tell more than one of them to be worth a line."""

_MANY = 1 << 10
"""Rows with one value of which a sample keeps enough to tell what they have in common."""

_MOST_VALUES = 1 << 20
_LOW = np.uint64(22)
"""Bits of a sort key below the cell: twenty of a value, its half, and what the match variables predict."""


@dataclass(frozen=True)
class Told:
    """What some held columns of a table tell about a swap variable."""

    table: str
    columns: tuple[str, ...]
    """One column, two, or all of them (by a decision tree)."""
    variable: str
    share: float
    """Of the records that the match variables alone do not predict: how many more are predicted rightly."""
    believed: bool
    """Whether the gain is more than chance makes."""

    @property
    def named(self) -> str:
        """What a plan calls these columns where it allows them."""
        return "+".join(self.columns) if len(self.columns) < 3 else "all-held-columns"


@dataclass(frozen=True)
class Telling:
    """Everything that was tried, the most telling first."""

    told: tuple[Told, ...]
    rows: int
    """Rows of the main table that were looked at."""
    columns: int
    pairs: int

    @property
    def worth_telling(self) -> list[Told]:
        """What is more than chance and, of several columns, tells more than one of them alone."""
        alone = {(one.table, one.variable, one.columns[0]): one.share for one in self.told if len(one.columns) == 1}
        return [
            one
            for one in self.told
            if one.believed
            and (
                len(one.columns) == 1
                or one.share > _MORE + max(alone[one.table, one.variable, column] for column in one.columns)
            )
        ]

    def above(self, most: float) -> list[Told]:
        """What tells more than is accepted; a pair only where neither of its columns does alone."""
        telling = [one for one in self.told if one.believed and one.share > most]
        alone = {(one.table, one.columns[0], one.variable) for one in telling if len(one.columns) == 1}
        few = [
            one
            for one in telling
            if len(one.columns) == 1 or not any((one.table, column, one.variable) in alone for column in one.columns)
        ]
        fewer = {(one.table, one.variable) for one in few if len(one.columns) < 3}
        return [one for one in few if len(one.columns) < 3 or (one.table, one.variable) not in fewer]


def measure(dataset: Dataset) -> Telling:
    """Try every held column, every pair, and all together, on a sample of the rows."""
    told: list[Told] = []
    columns = pairs = 0
    swapped = dataset.table.pick(dataset.plan.swap)
    for held, record in dataset.held_tables():
        ids = dataset.strata.ids if record is None else dataset.strata.ids[record]
        table = _Table(held, record, ids, dataset.strata.count, swapped)
        names = list(held.columns)
        groups = [(name,) for name in names] + list(combinations(names, 2))
        columns, pairs = columns + len(names), pairs + len(groups) - len(names)
        by_slice: dict[str, list[tuple[str, ...]]] = {"": []}
        for one in groups:
            by_slice.setdefault(table.slice_of(one), []).append(one)
        for name, sets in by_slice.items():
            part = _part(table, name)
            for variable, codes in part.swapped.items():
                if 0 < int(codes.max(initial=0)) < _MOST_VALUES:
                    told += _of_variable(part, variable, codes, sets, with_tree=name == "")
    ranked = sorted(told, key=lambda one: (-one.share, len(one.columns), one.columns))
    return Telling(tuple(ranked), min(dataset.records, SAMPLED), columns, pairs)


def telling_stops(
    dataset: Dataset, telling: Telling, found: Sequence[errors.StoppedByCheck]
) -> list[errors.StoppedByCheck]:
    """A stop for whatever tells more about a swap variable than the plan accepts.

    ``found`` are the stops for columns that determine one exactly: what holds such a column is not said again.
    """
    most = float(dataset.plan.most_told)
    exact = {stop.kind.removeprefix("determines:") for stop in found if stop.kind.startswith("determines:")}
    return [
        errors.held_tells_swap(one.table, one.columns, one.named, one.variable, one.share, most)
        for one in telling.above(most)
        if not exact & set(one.columns)
    ]


# -- the rows that are looked at -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Table:
    """One table: per row its record, its stratum and its held values; and the swap variables of the records."""

    held: Table
    record: NDArray[np.uint32] | None
    strata: NDArray[np.uint32]
    count: int
    """The number of strata."""
    swapped: list[Column]

    def slice_of(self, columns: Sequence[str]) -> str:
        """The column by whose values a large table is sampled for a set of columns, so that rows which agree stay
        together; none where each value has so many rows that some of them do."""
        name = max(columns, key=lambda one: (self.held[one].cardinality, one))
        rows = len(self.strata)
        return "" if rows <= SAMPLED or rows > _MANY * self.held[name].cardinality else name


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """A sample of one table: per row its stratum, the half it belongs to, its held values and swap values."""

    table: str
    strata: NDArray[np.uint32]
    half: NDArray[np.bool_]
    held: dict[str, NDArray[np.uint32]]
    swapped: dict[str, NDArray[np.uint32]]


def _part(table: _Table, name: str) -> _Part:
    """A sample of a table, by the values of a column; rows of one record are in the same half."""
    rows = _sample(table.strata, np.bincount(table.strata, minlength=table.count), table.held[name] if name else None)
    record = rows if table.record is None else table.record[rows]
    return _Part(
        table.held.name,
        table.strata[rows],
        _halves(record),
        {one: _dense(column.codes[rows]) for one, column in table.held.columns.items()},
        {column.name: _dense(column.codes[record]) for column in table.swapped},
    )


def _sample(ids: NDArray[np.uint32], sizes: NDArray[np.int64], column: Column | None = None) -> NDArray[np.int64]:
    """About SAMPLED rows: some of each large stratum, and some small strata whole, the same in every run.

    Of a large stratum with a column given, all rows that have some of its values, and some rows of each value that very
    many have.
    """
    if len(ids) <= SAMPLED:
        return np.arange(len(ids), dtype=np.int64)
    part = SAMPLED / len(ids)
    thinned = sizes * part >= _FEWEST_IN_SAMPLE
    kept = np.zeros(len(ids), dtype=np.bool_)
    bound = np.uint64(int(part * 2.0**64))
    codes, many = np.zeros_like(ids), np.array([True])
    if column is not None:
        codes, many = column.codes, np.bincount(column.codes, minlength=column.cardinality) > _MANY
    _mark_sample(ids, thinned, codes, many, bound, kept)
    return np.flatnonzero(kept)


def _halves(rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    halves = np.zeros(len(rows), dtype=np.bool_)
    _mark_half(rows.astype(np.int64), halves)
    return halves


def _dense(codes: Codes) -> NDArray[np.uint32]:
    """Codes of a sample without gaps, in the same order."""
    return np.unique(codes, return_inverse=True)[1].astype(np.uint32)


# -- predictions ---------------------------------------------------------------------------------------------


def _of_variable(
    part: _Part, variable: str, codes: NDArray[np.uint32], groups: Sequence[tuple[str, ...]], with_tree: bool
) -> list[Told]:
    """What each group of columns tells about one swap variable."""
    base = _told_by_match(part, codes)
    wrong = int(np.count_nonzero(~base))
    low = codes.astype(np.uint64) * 4 + part.half.astype(np.uint64) * 2 + base.astype(np.uint64)

    def of(columns: tuple[str, ...]) -> Told:
        held = [part.held[name] for name in columns]
        counts = [_gained_and_lost(_keys(cells, low)) for cells in (held, [part.strata, *held])]
        return max((_told(part, columns, variable, *both, wrong) for both in counts), key=lambda one: one.share)

    with thread_pool() as pool:  # sorting and counting do without the interpreter lock
        found = list(pool.map(of, groups))
    if with_tree and len(part.held) > 2:
        right = predicted_by_tree([part.strata, *part.held.values()], codes, part.half)
        gained, lost = int(np.count_nonzero(right & ~base)), int(np.count_nonzero(base & ~right))
        found.append(_told(part, tuple(part.held), variable, gained, lost, wrong))
    return found


def _told(part: _Part, columns: tuple[str, ...], variable: str, gained: int, lost: int, wrong: int) -> Told:
    share = max(0.0, (gained - lost) / wrong) if wrong else 0.0
    return Told(part.table, columns, variable, share, gained - lost > _BELIEVED * sqrt(gained + lost))


def _told_by_match(part: _Part, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """For each row whether the commonest value of its stratum in the other half is its own."""
    low = codes.astype(np.uint64) * 4 + part.half.astype(np.uint64) * 2
    keys = part.strata.astype(np.uint64) << _LOW | low
    order, right = np.argsort(keys), np.zeros(len(codes), dtype=np.bool_)
    right[order] = _told_by_other_half(keys[order])[0]
    return right


def _gained_and_lost(keys: NDArray[np.uint64]) -> tuple[int, int]:
    """Rows that are predicted rightly by the commonest value of their cell in the other half and not by the match
    variables, and the other way round. Where the other half does not have the cell, the match variables decide."""
    keys.sort()
    right, wrong = _told_by_other_half(keys)
    before = (keys & np.uint64(1)).astype(np.bool_)
    return int(np.count_nonzero(right & ~before)), int(np.count_nonzero(wrong & before))


def _told_by_other_half(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """For sorted keys, whether the commonest value of their cell in the other half is that of the row, and whether it
    is another: ``[right or wrong, row]``."""
    told = np.zeros((2, len(keys)), dtype=np.bool_)
    _compare_halves(keys, told)
    return told


def _keys(cells: Sequence[NDArray[np.uint32]], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """By cell, then value, half and what the match variables predict. Cells are mixed to 42 bits, so that two of them
    are taken for one in one file of many."""
    cell = np.zeros(len(low), dtype=np.uint64)
    for codes in cells:
        _mix(cell, codes)
    keys: NDArray[np.uint64] = np.bitwise_or(cell >> _LOW << _LOW, low)
    return keys


@kernel
def _mix(cell, codes):  # type: ignore[no-untyped-def]
    for row in range(len(cell)):
        cell[row] = mixed(cell[row] + np.uint64(0x9E3779B97F4A7C15) * (np.uint64(codes[row]) + np.uint64(1)))


@kernel
def _mark_sample(ids, thinned, codes, many, bound, kept):  # type: ignore[no-untyped-def]
    for row in range(len(ids)):
        stratum = ids[row]
        drawn = np.uint64(stratum) + (np.uint64(1) << np.uint64(40))
        if thinned[stratum]:
            drawn = np.uint64(row) if many[codes[row]] else np.uint64(codes[row]) + (np.uint64(1) << np.uint64(41))
        if mixed(drawn + np.uint64(0x9E3779B97F4A7C15)) < bound:
            kept[row] = True


@kernel
def _mark_half(rows, halves):  # type: ignore[no-untyped-def]
    for i in range(len(rows)):
        halves[i] = mixed(np.uint64(rows[i]) + np.uint64(77)) & np.uint64(1) == np.uint64(1)


@kernel
def _compare_halves(keys, told):  # type: ignore[no-untyped-def]
    best = np.zeros(2, dtype=np.int64)  # of each half: the count of the commonest value of the cell,
    value = np.zeros(2, dtype=np.int64)  # and that value
    count = np.zeros(2, dtype=np.int64)
    start = 0
    while start < len(keys):
        cell = keys[start] >> np.uint64(22)
        best[:] = 0
        end = start
        while end < len(keys) and keys[end] >> np.uint64(22) == cell:
            if end == start or keys[end - 1] >> np.uint64(2) != keys[end] >> np.uint64(2):
                count[:] = 0
            side = np.int64(keys[end] >> np.uint64(1) & np.uint64(1))
            count[side] += 1
            if count[side] > best[side]:
                best[side] = count[side]
                value[side] = np.int64(keys[end] >> np.uint64(2) & np.uint64(0xFFFFF))
            end += 1
        for at in range(start, end):
            other = 1 - np.int64(keys[at] >> np.uint64(1) & np.uint64(1))
            if best[other] > 0:
                right = np.int64(keys[at] >> np.uint64(2) & np.uint64(0xFFFFF)) == value[other]
                told[0, at], told[1, at] = right, not right
        start = end
