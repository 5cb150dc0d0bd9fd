"""Draws the permutation of the Permutation Swapping Algorithm (Algorithm 3.2.1) exactly, and the order of rows.

The law, independently for each stratum of n records: nobody moves if n < 2; otherwise every record is selected
independently with probability ``rate``, afresh while exactly one is selected, and the selected are permuted by a
uniformly random derangement. So P(sigma) = p^k (1-p)^(n-k) / ([1 - n p (1-p)^(n-1)] d(k)) where sigma moves k records
and d(k) counts derangements. With rates by rule each record has its own p, a function of what is kept, and the stratum
is selected afresh *whole*: keeping the lone record, dropping it or giving it a partner would break the guarantee. The
permutation that moves the records of a set S then has the probability prod_S p_i prod_others (1-p_i) / (D d(|S|)), with
D the probability that not exactly one is selected. There is no cap on how many move, and swaps that change nothing
stay.

Records are selected over the whole file first and only the selected are grouped by stratum: selection does not look at
strata, so the law is that of the loop over strata, and the cost is that of the few percent that move.

*Later rounds*, from coarse to fine. A later round works on what the round before gave and on nothing else, so it is
post-processing: epsilon is that of the first round. Each round swaps columns that the round before swaps, and matches
on the rest of them. So the counts by match and swap variables of the first round are kept, and with them the sizes of
the groups of every later round: what rounds do to a record follows from the invariants (docs/guarantee.md has the
proofs).

*The order of rows* does not depend on the order of the input. Two orders are safe, and which of them is used depends on
the invariants alone. *Sorted by all columns*: a function of the released rows only. *Shuffled*: a permutation drawn
uniformly from fresh randomness. Rows that belong to a record follow it, shuffled among themselves. New ids count the
rows as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred._display import confidential
from stirred.noise import (
    RandomSource,
    derange_groups,
    reselect,
    reselect_by_class,
    select,
    select_by_class,
    shuffle_groups,
)
from stirred.swap.data.counting import RecordRates
from stirred.swap.data.dataset import LinkedInput, stratum_columns
from stirred.swap.law.moments import LawConstants, moved_by_size
from stirred.swap.plan.fields import SwapPlan
from stirred.tables import Column, Table
from stirred.tables.columns import chunks, is_categorical
from stirred.tables.groups import Groups, cells, fits_one_key, group, packed, unpack
from stirred.tables.writing import Cell, Chunk


@confidential
class Moves:
    """Who receives whose swap variables: record ``receiver[i]`` those of ``giver[i]``. Never to be published.

    A record that does not occur keeps its own. ``for_release`` is false when the randomness can be repeated.
    """

    receiver: NDArray[np.uint32]
    giver: NDArray[np.uint32]
    for_release: bool

    def apply(self, codes: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
        """A column after the swap."""
        moved = codes.copy()
        moved[self.receiver] = codes[self.giver]
        return moved


def draw(strata: Groups, sizes: NDArray[np.int64], rate: Fraction | RecordRates, source: RandomSource) -> Moves:
    """Draw one permutation; ``sizes`` are the strata's sizes, ``rate`` one for all records or one for each."""
    if isinstance(rate, Fraction):
        selected = select(len(strata.ids), rate, source)
    else:
        selected = select_by_class(rate.rule, rate.rates, source)
    counts = np.zeros(strata.count, dtype=np.uint32)
    _count(strata.ids, selected, counts)
    again = (counts == 1) & (sizes > 1)  # a stratum of one is never selected, so there is nothing to select again
    if np.any(counts == 1):
        selected = selected[counts[strata.ids[selected]] != 1]
        counts[counts == 1] = 0
    if np.any(again):
        whole = np.flatnonzero(again[strata.ids]).astype(np.uint32)
        rows, starts = _by_stratum(strata.ids, whole, np.where(again, sizes, 0))
        if isinstance(rate, Fraction):
            chosen = reselect(starts, rate, source)
        else:
            chosen = reselect_by_class(starts, rate.rule[rows], rate.rates, source)
        added = rows[chosen]
        _count(strata.ids, added, counts)
        selected = np.concatenate([selected, added])
    grouped, starts = _by_stratum(strata.ids, selected, counts)
    order = derange_groups(starts, source)
    giver = np.empty_like(grouped)
    _within_groups(grouped, starts, order, giver)
    return Moves(grouped, giver, source.for_release)


def _by_stratum(
    ids: NDArray[np.uint32], selected: NDArray[np.uint32], counts: NDArray[np.integer]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The selected grouped by stratum, of each of which there are ``counts``, and where the non-empty groups start."""
    ends = np.cumsum(counts, dtype=np.int64)
    grouped = np.empty_like(selected)
    _scatter(ids, selected, ends - counts, grouped)
    return grouped, np.concatenate([[0], ends[counts > 0]]).astype(np.int64)


@kernel
def _count(ids, rows, counts):  # type: ignore[no-untyped-def]
    for row in rows:
        counts[ids[row]] += np.uint32(1)


@kernel
def _scatter(ids, selected, cursor, grouped):  # type: ignore[no-untyped-def]
    for row in selected:
        stratum = ids[row]
        grouped[cursor[stratum]] = row
        cursor[stratum] += 1


@kernel
def _within_groups(grouped, starts, order, found):  # type: ignore[no-untyped-def]
    """Put the members of every group into the order of their places in it."""
    for number in range(len(starts) - 1):
        start = starts[number]
        for i in range(start, starts[number + 1]):
            found[i] = grouped[start + order[i]]


def draw_later_rounds(plan: SwapPlan, table: Table, source: RandomSource) -> Table:
    """The table after the later rounds; ``table`` is what the first one gave, with the merged variable where there is
    one."""
    matched = stratum_columns(plan)
    for later in plan.rounds:
        matched = (*matched, *later.match_also)
        strata = group(table.pick(matched), table.rows)
        moves = draw(strata, strata.sizes(), later.rate, source)
        table = table.replace(
            {column.name: column.with_codes(moves.apply(column.codes)) for column in table.pick(later.swap)}
        )
    return table


@confidential
class LaterRounds:
    """Later rounds over the cells of match and swap values of the first one. A function of the invariants."""

    stratum: NDArray[np.int64]
    """The stratum of the first round that each cell is in."""
    counts: NDArray[np.float64]
    """The records of each cell."""
    rates: tuple[Fraction, ...]
    sizes: tuple[NDArray[np.int64], ...]
    """For each later round, the size of the group that a cell is in."""

    @property
    def not_selected(self) -> Fraction:
        """The share of records that no later round is expected to select."""
        left = Fraction(1)
        for rate in self.rates:
            left *= 1 - rate
        return left

    def unmoved(self) -> NDArray[np.float64]:
        """For a record of each cell, the probability that no later round moves it."""
        left = np.ones(len(self.counts))
        for rate, sizes in zip(self.rates, self.sizes, strict=True):
            left *= 1 - moved_by_size(sizes, rate)
        return left

    def unchanged(self) -> NDArray[np.float64]:
        """For a record of each cell, the probability that it has the same values after the later rounds.

        A round leaves a record where it is with probability lambda, and else gives it the values of a record drawn
        from its whole group: lambda = 1 - q n/(n-1). Later rounds keep that law, since they keep the counts of every
        value in the group. So from the last round to the first, with D = 1 after the last,
        D_k = lambda_k D_(k+1) + (1 - lambda_k) n_s/n_k.
        """
        same = np.ones(len(self.counts))
        for rate, sizes in zip(reversed(self.rates), reversed(self.sizes), strict=True):
            kept = LawConstants.of(sizes, rate).shrinkage
            same = kept * same + (1 - kept) * self.counts / sizes
        return same


def later_rounds(plan: SwapPlan, table: Table) -> LaterRounds | None:
    """What the later rounds of a plan do, counted in the data or in the release; None for a plan of one round."""
    if not plan.rounds:
        return None
    first, also = stratum_columns(plan), [column for later in plan.rounds for column in later.match_also]
    counted = cells(table.pick([*first, *also, *plan.rounds[-1].swap]), table.rows)
    counts = counted.counts.astype(np.int64)
    sizes, leading = [], len(first)
    for later in plan.rounds:
        leading += len(later.match_also)
        member = np.cumsum(counted.begins(leading)) - 1
        total = np.zeros(int(member[-1]) + 1, dtype=np.int64)
        np.add.at(total, member, counts)
        sizes.append(total[member])
    stratum = np.cumsum(counted.begins(len(first))) - 1
    return LaterRounds(stratum, counts.astype(np.float64), tuple(later.rate for later in plan.rounds), tuple(sizes))


class Rows(Protocol):
    """The rows of one table, in the order of the release."""

    @property
    def order(self) -> str:
        """The order in words, for the data dictionary."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """The rows in the order of the release, a chunk at a time."""
        ...


@confidential
class SortedRows:
    """Rows sorted by all their columns, kept as packed keys."""

    columns: tuple[str, ...]
    id: str | None
    table: Table
    keys: NDArray[np.unsignedinteger]
    order = "sorted by all columns"

    def chunks(self) -> Iterator[Chunk]:
        """The rows in sorted order, a chunk at a time."""
        coded = [self.table[name] for name in self.columns if name != self.id]
        kinds = [column.codes.dtype.type for column in coded]
        for part in chunks(len(self.keys)):
            codes = unpack(self.keys[part].astype(np.uint64), [column.cardinality for column in coded], kinds)
            found = {column.name: Cell(column.name, code, column) for column, code in zip(coded, codes, strict=True)}
            yield [found[name] if name in found else Cell(name, _numbers(part)) for name in self.columns]


@confidential
class ShuffledRows:
    """Rows in a uniformly random order: ``permutation[i]`` is the table's row written as the i-th."""

    columns: tuple[str, ...]
    id: str | None
    table: Table
    permutation: NDArray[np.uint32]
    order = "shuffled uniformly at random"

    def chunks(self) -> Iterator[Chunk]:
        """The rows in shuffled order, a chunk at a time."""
        for part in chunks(len(self.permutation)):
            rows = self.permutation[part]
            yield [
                Cell(name, _numbers(part))
                if name == self.id
                else Cell(name, self.table[name].codes[rows], self.table[name])
                for name in self.columns
            ]


@confidential
class LinkedRows:
    """LinkedInput rows record by record, in the order of the released records, shuffled within each."""

    linked: LinkedInput
    main: Table
    copies: Mapping[str, str]
    permutation: NDArray[np.uint32]
    position: NDArray[np.uint32]
    """For each written row, where its record stands in the release."""
    order = "by the id of the record they belong to, shuffled uniformly at random within it"

    def chunks(self) -> Iterator[Chunk]:
        """The linked rows in the order of their records, a chunk at a time."""
        for part in chunks(len(self.permutation)):
            rows = self.permutation[part]
            yield [self._cell(name, rows, part) for name in self.linked.columns]

    def copied(self, name: str) -> Column:
        """The record's column that a copy repeats, as the copy has it."""
        return self.main[self.copies[name]].copied(name, is_categorical(self.linked.input.kinds[name]))

    def _cell(self, name: str, rows: NDArray[np.uint32], part: slice) -> Cell:
        if name == self.linked.plan.link:
            return Cell(name, self.position[part].astype(np.int64) + 1)
        if name == self.linked.plan.id:
            return Cell(name, _numbers(part))
        if name in self.copies:
            source = self.copied(name)
            return Cell(name, source.codes[self.linked.record[rows]], source)
        held = self.linked.held[name]
        return Cell(name, held.codes[rows], held)


def _numbers(part: slice) -> NDArray[np.int64]:
    return np.arange(part.start + 1, part.stop + 1, dtype=np.int64)


def put_in_order(
    columns: tuple[str, ...], id: str | None, table: Table, linked: bool, source: RandomSource
) -> SortedRows | ShuffledRows:
    """Choose and carry out an order for the main table; records with linked rows are always shuffled."""
    coded = [table[name] for name in columns if name != id]
    if not linked and fits_one_key(coded):
        keys = packed(coded, table.rows)
        keys.sort()
        return SortedRows(columns, id, table, keys)
    return ShuffledRows(columns, id, table, shuffle_groups(np.array([0, table.rows]), source))


def follow(main: ShuffledRows, linked: LinkedInput, source: RandomSource) -> LinkedRows:
    """Put linked rows in the order of their records."""
    place = np.empty(main.table.rows, dtype=np.uint32)
    place[main.permutation] = np.arange(main.table.rows, dtype=np.uint32)
    position = place[linked.record]
    many = np.bincount(position, minlength=main.table.rows)
    starts = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    grouped = np.empty(len(position), dtype=np.uint32)
    _scatter(position, np.arange(len(position), dtype=np.uint32), starts[:-1].copy(), grouped)
    permutation = np.empty_like(grouped)
    _within_groups(grouped, starts, shuffle_groups(starts, source), permutation)
    placed = np.repeat(np.arange(len(many), dtype=np.uint32), many)
    return LinkedRows(linked, main.table, linked.copies, permutation, placed)
