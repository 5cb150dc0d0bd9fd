"""Made files on which a swapping program is tried, and what its releases show: who got whose values, in which order.

*The file.* Within a stratum every record has a held value and a swap value of its own, so the release shows the
permutation that the program drew. All values are whole numbers without a meaning; nothing is taken from anybody's
data. Held values, swap values, ids and the order of the rows are drawn independently of each other, so that each of
them could betray the others only through the program. Records are numbered by stratum and, within it, in the order of
the file. Rates by rule, merged values and later rounds are to be idle in such a file: what rules name is alike
everywhere, no value is one of the plan, and what a later round matches on differs within a stratum. Whether all have
one rate then is for :func:`stirred.lab.audit.small_strata.make_idle` to find out.

*The permutations.* A moved record is one that a release shows with the swap values of another. What is summed up has
a mean that is known for every program that keeps its promise. The integers that a shuffle draws can be read off its
result: the shuffle of Fisher and Yates fills position i by the element at position j(i) <= i of what is left, so each
permutation has one sequence of integers. In a uniform derangement j(i) is equally likely to be any number below i:
renaming the positions below i leaves the law as it is and renames j(i) with them. So in :func:`contrasts` integers in
the lower half count 1 and those in the upper half -1, and their sum has mean 0.

*The order.* Rows may be shuffled, or sorted by what is released. Then their order says nothing about where records
stood in the file, which of them moved, or whose values they had: the made file stands in an order of its own, so a
sorted release is as foreign to it as a shuffled one. New ids are looked at in the same way, where their order is
another one. Orders of several runs may be the same (sorted ones nearly are), so what concerns the order of the file
is tested run by run and the smallest p-value is taken as often as there are runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._lazy import later
from stirred.lab.audit import p_values
from stirred.noise import RandomSource, shuffle_groups
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable
from stirred.tables.groups import free_label, mixed

Integers = NDArray[np.int64]

RECORDS = "records"
"""What the main table is called among the tables that a program is given and gives back."""
LINKED_ROWS = 2
"""Rows that each record has in each linked table."""
FEWEST_RECORDS = 200

_PARTS = ((0.04, 0), (0.12, 1), (0.24, 4), (0.3, 20), (0.295, 200))
"""Share of the records in strata where so many are expected to be selected; 0 stands for the smallest strata."""
_SMALLEST = (2, 3, 4, 5, 6)
_FEWEST_OF_A_SIZE = 4
_ID_BITS = 51
"""Ids are random numbers of so many bits and one: a number that a program counts up is never one of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Digits:
    """How a number is written in some columns: one digit each, the first column being the most significant."""

    columns: tuple[str, ...]
    base: int
    zero: int = 0
    """What stands for the digit 0."""
    alike: tuple[str, ...] = ()
    """Columns that say nothing: a 0 everywhere."""
    again: tuple[str, ...] = ()
    """Columns each of which says the whole number once more."""

    @classmethod
    def of(
        cls, columns: Sequence[str], below: int, zero: int = 0, alike: Sequence[str] = (), again: Sequence[str] = ()
    ) -> Digits:
        """As many digits as there are columns, for numbers below a bound."""
        base = 2
        while base ** max(len(columns), 1) < below:
            base = max(base + 1, int(below ** (1 / max(len(columns), 1))))
        return cls(tuple(columns), base, zero, tuple(alike), tuple(again))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that are written."""
        return (*self.columns, *self.alike, *self.again)

    def write(self, numbers: Integers) -> dict[str, Integers]:
        """The columns that say these numbers."""
        digits = {
            name: self.zero + numbers // self.base ** (len(self.columns) - 1 - place) % self.base
            for place, name in enumerate(self.columns)
        }
        digits |= dict.fromkeys(self.alike, np.full_like(numbers, self.zero))
        return digits | dict.fromkeys(self.again, self.zero + numbers)

    def read(self, frame: pl.DataFrame) -> Integers:
        """The numbers that the columns of a frame say; -1 where they say none."""
        numbers = np.zeros(frame.height, dtype=np.int64)
        wrong = np.zeros(frame.height, dtype=np.bool_)
        for name in self.columns:
            digit = whole_numbers(frame[name]).fill_null(-1).to_numpy() - self.zero
            wrong |= (digit < 0) | (digit >= self.base)
            numbers = numbers * self.base + digit
        for names, wanted in ((self.alike, 0), (self.again, numbers)):
            for name in names:
                wrong |= whole_numbers(frame[name]).fill_null(-1).to_numpy() - self.zero != wanted
        numbers[wrong] = -1
        return numbers


@dataclass(frozen=True, eq=False, repr=False)
class LinkedFile:
    """A linked table of the made file: how its rows say which record they belong to."""

    plan: LinkedTable
    held: Digits
    ids: Integers
    """By row; empty where the rows have none."""
    row: Integers
    """Where the rows stand in the file, record by record."""


@dataclass(frozen=True, eq=False, repr=False)
class MadeFile:
    """The tables that a program is given, and everything that is needed to read what it gives back."""

    plan: SwapPlan
    rate: float
    tables: dict[str, pl.DataFrame]
    sizes: Integers
    starts: Integers
    """Records of stratum s are those from ``starts[s]`` to ``starts[s + 1]``."""
    stratum: Integers
    row: Integers
    """By record, its row in the file."""
    held: Integers
    swapped: Integers
    """By record, what its held and its swap value say: a number below the size of the stratum."""
    record_of_held: Integers
    record_of_swapped: Integers
    """The record of stratum s with the value v, at ``starts[s] + v``."""
    ids: Integers
    """By record; empty where the plan has no id."""
    match_digits: Digits
    held_digits: Digits
    swap_digits: Digits
    linked: tuple[LinkedFile, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.starts[-1])

    @property
    def released_columns(self) -> set[str]:
        """The columns that a release of the main table has."""
        own = {*self.match_digits.names, *self.swap_digits.names, *self.held_digits.names}
        return own | ({self.plan.id} if self.plan.id else set())


def make_file(
    plan: SwapPlan, records: int, source: RandomSource, rate: float | None = None, everywhere: bool = False
) -> MadeFile:
    """Make a file of about so many records for a plan.

    ``rate`` is that of all records; by default the one of records that meet no rule. ``everywhere`` writes the numbers
    of records in all held columns, also in those that rules name, which then makes records unique.
    """
    rate = rate_that_is_tried(plan) if rate is None else rate
    if records < FEWEST_RECORDS:
        raise errors.audit_question("The number of records", f"must be at least {FEWEST_RECORDS}")
    sizes = stratum_sizes(records, rate) if plan.match else np.array([records], dtype=np.int64)
    sizes = sizes[shuffle_groups(np.array([0, len(sizes)]), source)]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    row = _shuffled(np.array([0, starts[-1]]), source)
    row = row[np.lexsort((row, stratum))]
    held, swapped = _shuffled(starts, source), _shuffled(starts, source)
    first = starts[:-1][stratum]
    record_of_held, record_of_swapped = np.empty_like(held), np.empty_like(swapped)
    record_of_held[first + held] = record_of_swapped[first + swapped] = np.arange(starts[-1])
    most = int(sizes.max())
    zero = first_number(plan)
    telling = telling_match(plan)
    match_digits = Digits.of(telling, len(sizes), zero, [name for name in plan.match if name not in telling])
    held_digits = _numbering(held_names(plan), named_by_rules(plan), most, zero, everywhere)
    placed = plan.rounds[0].match_also if plan.rounds else plan.swap
    swap_digits = Digits.of(placed, most, zero, again=[name for name in plan.swap if name not in placed])
    ids = _ids(len(row), source) if plan.id else np.empty(0, dtype=np.int64)
    columns = {**match_digits.write(stratum), **swap_digits.write(swapped), **held_digits.write(held)}
    columns |= {plan.id: ids} if plan.id else {}
    columns |= dict.fromkeys(plan.drop, row)
    tables = {RECORDS: _frame(columns, row)}
    linked = []
    for entry in plan.linked:
        digits = _numbering(
            linked_names(plan, entry), named_by_rules(plan, entry.name), LINKED_ROWS * most, zero, everywhere
        )
        one, frame = _linked_rows(entry, digits, ids, held, swap_digits.write(swapped), source)
        linked.append(one)
        tables[entry.name] = frame
    return MadeFile(
        plan,
        rate,
        tables,
        sizes,
        starts,
        stratum,
        row,
        held,
        swapped,
        record_of_held,
        record_of_swapped,
        ids,
        match_digits,
        held_digits,
        swap_digits,
        tuple(linked),
    )


def whole_numbers(column: pl.Series) -> pl.Series:
    """A column as whole numbers, however a program writes them; null where there is none."""
    if column.dtype.is_integer():
        return column.cast(pl.Int64, strict=False)
    if column.dtype.is_float():
        return column.set(column != column.floor(), None).cast(pl.Int64, strict=False)
    return column.cast(pl.String).cast(pl.Int64, strict=False)


def rate_that_is_tried(plan: SwapPlan) -> float:
    """The rate of a plan, or an error where its law is one that these audits do not know."""
    for what, there in (
        ("a flat file", plan.flat),
        ("no held column in the main table", not plan.hold),
        ("a rate of 0 or 1", plan.rate in (0, 1)),
    ):
        if there:
            raise errors.audit_of_plan(what)
    return float(plan.every_rate[-1])


# -- the columns of a plan -----------------------------------------------------------------------------------


def first_number(plan: SwapPlan) -> int:
    """Whole numbers from here on are no values of the plan's rules or of what it merges."""
    texts = [value for rule in plan.rates for values in rule.where.values() for value in values]
    texts += [value for values in (plan.coarsen.merge if plan.coarsen else ()) for value in values]
    return max((1 + int(one) for one in texts if one.isascii() and one.isdigit() and len(one) < 10), default=0)


def named_by_rules(plan: SwapPlan, table: str | None = None) -> set[str]:
    """The columns that rules name, of those that look at the rows of a linked table where one is given."""
    return {name for rule in plan.rates if table in (None, rule.table) for name in rule.columns}


def telling_match(plan: SwapPlan) -> tuple[str, ...]:
    """The match columns that tell strata apart: those that are not merged and that no rule names, or one of them."""
    free = [name for name in plan.match if plan.coarsen is None or name != plan.coarsen.column]
    named = named_by_rules(plan)
    return tuple(name for name in free if name not in named) or tuple(free[:1])


def held_names(plan: SwapPlan) -> tuple[str, ...]:
    """The held columns of a made file: those of the plan, or one and those that rules name."""
    if plan.hold != "rest":
        return plan.hold
    own = [*plan.match, *plan.swap, *plan.drop, *([plan.id] if plan.id else [])]
    named = [name for rule in plan.rates if rule.table is None for name in rule.columns if name not in plan.match]
    return (free_label("held", own), *dict.fromkeys(named))


def linked_names(plan: SwapPlan, entry: LinkedTable) -> tuple[str, ...]:
    """The held columns of a linked table of a made file."""
    if entry.hold != "rest":
        return entry.hold
    taken = [entry.link, *entry.copies, *entry.drop, *plan.swap, *([entry.id] if entry.id else [])]
    kept = (*plan.match, *held_names(plan))
    named = [n for rule in plan.rates if rule.table == entry.name for n in rule.columns if n not in kept]
    return (free_label("held", taken), *dict.fromkeys(named))


def _numbering(names: Sequence[str], named: set[str], below: int, zero: int, everywhere: bool) -> Digits:
    """How held columns say a number: in those that no rule names, where there are some."""
    free = [name for name in names if name not in named] or list(names)
    others = [name for name in names if name not in free]
    return Digits.of(free, below, zero, again=others) if everywhere else Digits.of(free, below, zero, others)


def stratum_sizes(records: int, rate: float) -> Integers:
    """Sizes of strata that show what a swapper may do wrong, in all about so many records.

    Many of the smallest sizes; many in which about one record is selected, so that a lone one is common; many with
    about four, whose permutations can be told apart; and large ones, in which each selected record tells most about
    the integers that the program draws.
    """
    found: list[int] = []
    for share, expected in _PARTS:
        for part, size in _sizes_of_part(share * records, expected, rate):
            found += [size] * int(part / size)
    found += [1] * (records // 200)
    return np.array(found, dtype=np.int64)


def _sizes_of_part(records: float, expected: int, rate: float) -> Iterable[tuple[float, int]]:
    """The sizes of one part of the file, each with the records that are for it."""
    if expected == 0:
        return [(records * size / sum(_SMALLEST), size) for size in _SMALLEST]
    most = max(max(_SMALLEST) + 1, int(records / _FEWEST_OF_A_SIZE))
    return [(records, min(most, max(max(_SMALLEST) + 1, round(expected / rate))))]


def _shuffled(starts: Integers, source: RandomSource) -> Integers:
    return shuffle_groups(starts, source).astype(np.int64)


def _ids(count: int, source: RandomSource) -> Integers:
    """Different random numbers."""
    ids = np.empty(0, dtype=np.int64)
    while len(ids) < count:
        words = np.frombuffer(source.take(8 * (count + 64)), dtype="<u8") >> np.uint64(64 - _ID_BITS)
        ids = np.unique(words.astype(np.int64) + (1 << _ID_BITS))
    ids = ids[:count]
    return ids[_shuffled(np.array([0, count]), source)]


def _frame(columns: dict[str, Integers], row: Integers) -> pl.DataFrame:
    """A frame whose i-th row is that of the record (or linked row) with ``row == i``."""
    order = np.argsort(row)
    return pl.DataFrame({name: values[order] for name, values in columns.items()})


def _linked_rows(
    entry: LinkedTable,
    digits: Digits,
    ids: Integers,
    held: Integers,
    swapped: dict[str, Integers],
    source: RandomSource,
) -> tuple[LinkedFile, pl.DataFrame]:
    """The rows of a linked table; their held values say whose they are and which of its rows."""
    record = np.repeat(np.arange(len(ids)), LINKED_ROWS)
    which = np.tile(np.arange(LINKED_ROWS), len(ids))
    row = _shuffled(np.array([0, len(record)]), source)
    own = _ids(len(record), source) if entry.id else np.empty(0, dtype=np.int64)
    columns = {entry.link: ids[record], **digits.write(LINKED_ROWS * held[record] + which)}
    columns |= {copy: swapped[target][record] for copy, target in entry.copies.items()}
    columns |= {entry.id: own} if entry.id else {}
    columns |= dict.fromkeys(entry.drop, row)
    return LinkedFile(entry, digits, own, row), _frame(columns, row)


Floats = NDArray[np.float64]

INTEGERS = ("from the top", "from the bottom", "from the top, of givers", "from the bottom, of givers")
"""The shuffles whose integers are read off: which way positions are filled, with givers or with receivers."""
PATTERNS = ("rank of receiver times rank of giver", "givers that stand later", "givers that stand next to it")


@dataclass(frozen=True, eq=False, repr=False)
class ReadRun:
    """What one released table shows: rows that are wrong or missing, and by record whose swap values it has."""

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


stats = later("scipy.stats")


@dataclass(frozen=True, eq=False, repr=False)
class OrderSeen:
    """P-values and sums that tell whether the order of one release betrays the input."""

    input_order: float
    """P-value: whether rows stand as in the file, all of them or within strata or one after another."""
    moved_ranks: float
    """How late moved records stand among those of their stratum: the sum of ranks from -1 to 1."""
    moved_variance: float
    earlier_values: NDArray[np.float64]
    """By group, whether moved records stand in the order of the values that they had: 0 in the mean, from -1 to 1."""
    groups: Integers
    """By group, its stratum."""


def order_seen(made: MadeFile, record: Integers, moved: Moved) -> OrderSeen:
    """Look at one release, of which ``record`` lists the records in their order."""
    rank = ranks_in_release(made, record)
    size = made.sizes[made.stratum[moved.record]].astype(np.float64)
    late = (2 * rank[moved.record] - size + 1) / (size - 1)
    own = ranks(moved, made.swapped[moved.record])
    k = moved.counts.astype(np.float64)[moved.group]
    standing = 2 * ranks(moved, rank[moved.record]) - k + 1
    # Given the release, the earlier value is that of any other moved record of the stratum alike.
    surplus = standing * ((2 * own - k + 1) + (2 * own[moved.giver] - k + 1) / (k - 1)) / k**3
    return OrderSeen(
        order_kept(made, record, rank),
        float(np.sum(late)),
        float(np.sum((size + 1) / (3 * (size - 1)))),
        np.bincount(moved.group, weights=surplus, minlength=len(moved.stratum)).astype(np.float64),
        moved.stratum,
    )


def order_kept(made: MadeFile, record: Integers, rank: Integers) -> float:
    """P-value of a release with these records, one after the other; ``rank`` counts them by stratum."""
    rows = made.row[record]
    steps = np.diff(rows)
    up = int(np.count_nonzero(steps > 0))
    # Records of a stratum are numbered in the order of the file.
    within = np.diff(rank)[np.diff(made.stratum) == 0]
    several = made.sizes[made.sizes > 1].astype(np.float64)
    return p_values.smallest_of(
        [
            correlated(rows),
            # Ascents of a random permutation are a sum of independent coins (Eulerian numbers), of variance (n+1)/12.
            p_values.of_bounded_sum(up - len(steps) / 2, (len(rows) + 1) / 12),
            p_values.of_bounded_sum(np.count_nonzero(within > 0) - len(within) / 2, float(np.sum(several + 1)) / 12),
            neighbours_kept(int(np.count_nonzero(np.abs(steps) == 1))),
        ]
    )


def correlated(rows: Integers) -> float:
    """P-value of the rank correlation of an order with that of the file; its tails are lighter than the normal's."""
    count = len(rows)
    centred = np.arange(count) - (count - 1) / 2
    correlation = float(np.dot(centred, rows)) / (count * (float(count) ** 2 - 1) / 12)
    return float(2 * stats.norm.sf(abs(correlation) * math.sqrt(count - 1)))


def neighbours_kept(pairs: int) -> float:
    """P-value of so many pairs of rows that were neighbours and are. Expected are two.

    With X of them E C(X, m) is at most 2^m / m!, since m pairs can be glued together in 2^m ways.
    """
    return min(1.0, math.exp(pairs * math.log(2) - math.lgamma(pairs + 1)))
