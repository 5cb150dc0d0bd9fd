"""Reads from a released table which record received whose swap values, and sums up the permutations that were drawn.

A moved record is one that a release shows with the swap values of another: in a made file all of a stratum differ, so
these are the selected ones. What is summed up has a mean that is known for every program that keeps its promise.

The integers that a shuffle draws can be read off its result. The shuffle of Fisher and Yates fills position i by the
element at position j(i) <= i of what is left, so each permutation has one sequence of integers. In a uniform
derangement j(i) is equally likely to be any number below i: renaming the positions below i leaves the law as it is and
renames j(i) with them. So in :func:`contrasts` integers in the lower half count 1 and those in the upper half -1, and
their sum has mean 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.audit.swap_inputs import Integers, MadeFile
from stirred.tables.groups import mixed

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

INTEGERS = ("from the top", "from the bottom", "from the top, of givers", "from the bottom, of givers")
"""The shuffles whose integers are read off: which way positions are filled, with givers or with receivers."""
PATTERNS = ("rank of receiver times rank of giver", "givers that stand later", "givers that stand next to it")


@dataclass(frozen=True, eq=False, repr=False)
class ReadRun:
    """What one released table shows."""

    rows: int
    unknown_records: int
    """Rows whose match and held values are of no record, or of one that is there already."""
    unknown_values: int
    """Rows whose swap values do not occur in their stratum, or more often than before."""
    missing_records: int
    """Records whose match and held values no row has."""
    missing_values: int
    """Swap values that no row of their stratum has."""
    record: Integers
    """By released row, the record with its match and held values."""
    giver: Integers
    """By record, the one whose swap values it has."""

    @property
    def whole(self) -> bool:
        """Whether the release is of all records and all swap values, so that it shows a permutation."""
        return self.rows == len(self.giver) and self.unknown_records == 0 and self.unknown_values == 0


def read_run(made: MadeFile, released: pl.DataFrame) -> ReadRun:
    """Read a released main table that has the columns of the plan."""
    stratum = made.match_digits.read(released)
    held, swapped = made.held_digits.read(released), made.swap_digits.read(released)
    stratum[stratum >= len(made.sizes)] = -1
    inside = np.where(stratum >= 0, made.sizes[stratum], 0)
    first = made.starts[stratum]
    known_record = (held >= 0) & (held < inside)
    known_value = (swapped >= 0) & (swapped < inside)
    record = np.where(known_record, made.record_of_held[np.where(known_record, first + held, 0)], -1)
    from_record = np.where(known_value, made.record_of_swapped[np.where(known_value, first + swapped, 0)], -1)
    once = np.bincount(record[known_record], minlength=made.records)
    used = np.bincount(from_record[known_value], minlength=made.records)
    giver = np.arange(made.records)
    both = known_record & known_value
    giver[record[both]] = from_record[both]
    return ReadRun(
        released.height,
        int(np.count_nonzero(~known_record) + np.sum(np.maximum(once - 1, 0))),
        int(np.count_nonzero(~known_value) + np.sum(np.maximum(used - 1, 0))),
        int(np.count_nonzero(once == 0)),
        int(np.count_nonzero(used == 0)),
        record,
        giver,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Moved:
    """The records that one or several runs moved, by group: one for each run and stratum in which some moved."""

    record: Integers
    """Group g holds the places from ``starts[g]`` to ``starts[g + 1]``, in the order of the file."""
    giver: Integers
    """By place, the place of the record that it receives from."""
    starts: Integers
    stratum: Integers
    """By group."""

    @property
    def counts(self) -> Integers:
        """How many moved, by group."""
        return np.diff(self.starts)

    @property
    def group(self) -> Integers:
        """By place, its group."""
        return np.repeat(np.arange(len(self.stratum)), self.counts)


def moved_in(made: MadeFile, giver: Integers) -> Moved:
    """The records that one run moved."""
    record = np.flatnonzero(giver != np.arange(made.records))
    counts = np.bincount(made.stratum[record], minlength=len(made.sizes))
    stratum = np.flatnonzero(counts)
    place = np.zeros(made.records, dtype=np.int64)
    place[record] = np.arange(len(record))
    return Moved(record, place[giver[record]], _starts(counts[stratum]), stratum)


def together(several: Sequence[Moved]) -> Moved:
    """The groups of all runs."""
    before = np.cumsum([0, *(len(one.record) for one in several)])
    return Moved(
        np.concatenate([one.record for one in several]),
        np.concatenate([one.giver + more for one, more in zip(several, before, strict=False)]),
        _starts(np.concatenate([one.counts for one in several])),
        np.concatenate([one.stratum for one in several]),
    )


def ranks(moved: Moved, label: Integers) -> Integers:
    """By place, the number of its record within the group when they are counted from 0 in the order of a label.

    ``label`` is by place, different within each group, and below 2^32.
    """
    order = np.argsort(moved.group << 32 | label)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - moved.starts[:-1][moved.group]
    return rank


def permutations_by(moved: Moved, rank: Integers) -> Integers:
    """The permutation of each group: the i-th record receives from that with the number at the i-th place."""
    found = np.empty_like(rank)
    found[moved.starts[:-1][moved.group] + rank] = rank[moved.giver]
    return found


def contrasts(permutation: Integers, starts: Integers) -> tuple[Floats, Floats]:
    """Of each group the sums named in :data:`INTEGERS` and in :data:`PATTERNS`, less their means: ``[name, group]``."""
    groups = len(starts) - 1
    integers, patterns = np.zeros((len(INTEGERS), groups)), np.zeros((len(PATTERNS), groups))
    space = np.zeros((4, int(np.diff(starts).max(initial=0))), dtype=np.int64)
    _contrasts(permutation, starts, space, integers, patterns)
    return integers, patterns


def exchanges(permutation: Integers, starts: Integers) -> Integers:
    """The number of cycles of two, by group."""
    first = np.repeat(starts[:-1], np.diff(starts))
    back = permutation[first + permutation] == np.arange(len(permutation)) - first
    return np.add.reduceat(back.astype(np.int64), starts[:-1]) // 2 if len(back) else np.empty(0, dtype=np.int64)


def names_of_permutations(permutation: Integers, starts: Integers, k: int) -> Integers:
    """The permutations of the groups that moved k records, each as one number: its digits to the base k."""
    first = starts[:-1][np.diff(starts) == k]
    digits = permutation[first[:, None] + np.arange(k)]
    return np.asarray(digits @ (k ** np.arange(k - 1, -1, -1)))


def fingerprints(moved: Moved, label: Integers) -> NDArray[np.uint64]:
    """Of each group a number that two groups share if the records with the same labels moved to the same places."""
    found = np.zeros(len(moved.stratum), dtype=np.uint64)
    own = label[moved.record]
    _fingerprint(moved.starts, own, own[moved.giver], found)
    return found


def ranks_in_release(made: MadeFile, record: Integers) -> Integers:
    """By record, how many of its stratum stand before it; ``record`` lists all records in the order of release."""
    rank = np.empty(made.records, dtype=np.int64)
    _count_up(record, made.stratum, np.zeros(len(made.sizes), dtype=np.int64), rank)
    return rank


def _starts(counts: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@kernel
def _contrasts(permutation, starts, space, integers, patterns):  # type: ignore[no-untyped-def]
    given, back, element, place = space[0], space[1], space[2], space[3]
    for group in range(len(starts) - 1):
        start = starts[group]
        k = starts[group + 1] - start
        if k < 3:
            continue
        product = 0
        later = 0
        beside = 0
        for i in range(k):
            j = permutation[start + i]
            given[i] = j
            back[j] = i
            product += (2 * i - k + 1) * (2 * j - k + 1)
            later += 1 if j > i else -1
            beside += 1 if j - i == 1 or i - j == 1 else 0
        # A giver is any other record alike. Ranks from -1 to 1, the sum of whose squares is k(k+1)/(3(k-1)).
        patterns[0, group] = product / ((k - 1) * (k - 1)) + k * (k + 1) / (3.0 * (k - 1) * (k - 1))
        patterns[1, group] = later
        patterns[2, group] = beside - 2
        for way in range(4):
            wanted = given if way < 2 else back
            from_bottom = way % 2 == 1
            for i in range(k):
                element[i] = i
                place[i] = i
            total = 0
            for top in range(k - 1, 0, -1):
                one = k - 1 - wanted[k - 1 - top] if from_bottom else wanted[top]
                j = place[one]
                if 2 * j < top - 1:
                    total += 1
                elif 2 * j > top - 1 and j < top:
                    total -= 1
                other = element[top]
                element[j] = other
                place[other] = j
            integers[way, group] = total


@kernel
def _fingerprint(starts, receiver, giver, found):  # type: ignore[no-untyped-def]
    for group in range(len(starts) - 1):
        total = np.uint64(0)
        for i in range(starts[group], starts[group + 1]):
            total += mixed(np.uint64(receiver[i]) << np.uint64(32) | np.uint64(giver[i]))
        found[group] = total


@kernel
def _count_up(record, stratum, seen, rank):  # type: ignore[no-untyped-def]
    for row in range(len(record)):
        one = record[row]
        rank[one] = seen[stratum[one]]
        seen[stratum[one]] += 1
