"""Histograms: the positive cells of many units, added up to coarser units and to marginals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel
from stirred._display import withheld
from stirred.margins.schema import Groups, Schema
from stirred.margins.spine import Index

Counts = NDArray[np.int64]
"""Numbers of records: a row for each unit, a column for each group."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Histograms:
    """The positive cells of many units: those of unit u are ``cells[starts[u]:starts[u + 1]]``, in ascending order."""

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def units(self) -> int:
        """The number of units."""
        return len(self.starts) - 1

    @classmethod
    def from_dense(cls, table: NDArray[Any]) -> Histograms:
        """From a table with a row for each unit and a column for each cell.

        >>> Histograms.from_dense(np.array([[0, 3], [2, 1]])).cells.tolist()
        [1, 0, 1]
        """
        units, cells = np.nonzero(table)
        starts = np.zeros(len(table) + 1, dtype=np.int64)
        np.cumsum(np.bincount(units, minlength=len(table)), out=starts[1:])
        return cls(starts, cells.astype(np.int32), table[units, cells].astype(np.int64))

    @classmethod
    def joined(cls, pieces: Sequence[Histograms]) -> Histograms:
        """The units of all pieces, one after another."""
        if len(pieces) == 1:
            return pieces[0]
        shifts = np.cumsum([0, *(int(piece.starts[-1]) for piece in pieces)])
        starts = [piece.starts[:-1] + shift for piece, shift in zip(pieces, shifts[:-1], strict=True)]
        return cls(
            np.concatenate([*starts, shifts[-1:]]).astype(np.int64),
            np.concatenate([piece.cells for piece in pieces]),
            np.concatenate([piece.counts for piece in pieces]),
        )

    def dense(self, cells: int) -> NDArray[np.int64]:
        """The table with a row for each unit and a column for each cell."""
        table = np.zeros((self.units, cells), dtype=np.int64)
        table[np.repeat(np.arange(self.units), np.diff(self.starts)), self.cells] = self.counts
        return table

    def totals(self) -> NDArray[np.int64]:
        """The sum of every unit's counts."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]], dtype=np.int64)

    def of_units(self, units: NDArray[np.int64]) -> Histograms:
        """The histograms of some units, in the order given."""
        lengths = np.diff(self.starts)[units]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.starts[units] - starts[:-1], lengths) + np.arange(starts[-1])
        return Histograms(starts, self.cells[taken], self.counts[taken])

    def with_units(self, units: NDArray[np.int64], others: Histograms) -> Histograms:
        """These histograms, with those of ``units`` replaced by ``others`` in order."""
        source = np.arange(self.units, dtype=np.int64)
        source[units] = self.units + np.arange(len(units))
        return Histograms.joined([self, others]).of_units(source)


def added_up(leaves: Histograms, first_leaf: Index) -> Histograms:
    """The histograms of coarser units, each a range of leaves.

    >>> two = Histograms.from_dense(np.array([[1, 0, 2], [4, 0, 1]]))
    >>> added_up(two, np.array([0, 2])).counts.tolist()
    [5, 3]
    """
    if len(first_leaf) == len(leaves.starts):
        return leaves
    sums = np.zeros(int(leaves.cells.max(initial=0)) + 1, dtype=np.int64)
    starts = np.zeros(len(first_leaf), dtype=np.int64)
    cells, counts = np.empty_like(leaves.cells), np.empty_like(leaves.counts)
    _add_up(first_leaf, leaves.starts, leaves.cells, leaves.counts, sums, starts, cells, counts)
    return Histograms(starts, cells[: starts[-1]].copy(), counts[: starts[-1]].copy())


def marginal(histograms: Histograms, groups: Groups, number: int) -> Counts:
    """The sums over the groups of a marginal, one row for each unit; cells with group -1 are left out."""
    sums = np.zeros((histograms.units, number), dtype=np.int64)
    _sum_groups(histograms.starts, histograms.cells, histograms.counts, groups, sums)
    return sums


def marginal_by(histograms: Histograms, schema: Schema, by: Sequence[str]) -> Counts:
    """The counts of the marginal by some names, one row for each unit; where groups overlap a record counts in each of
    its groups."""
    if not schema.overlapping(by):
        return marginal(histograms, schema.groups(by), schema.number_of_groups(by))
    counts = np.zeros((histograms.units, schema.number_of_groups(by)), dtype=np.int64)
    for family in schema.families(by):
        counts[:, family.columns] = marginal(histograms, family.groups, len(family.columns))
    return counts


@helper
def _ascending(numbers, begin, end):  # type: ignore[no-untyped-def]
    """Sort a range in place, by heaps: the array's own ``sort`` takes five times as long to compile."""
    count = end - begin
    for step in range(count // 2 + count - 1 if count > 1 else 0):
        if step < count // 2:  # make it a heap, from its last parent on
            node, size = count // 2 - 1 - step, count
        else:  # move the largest behind the heap
            size = count - 1 - (step - count // 2)
            numbers[begin], numbers[begin + size] = numbers[begin + size], numbers[begin]
            node = 0
        while 2 * node + 1 < size:
            child = 2 * node + 1
            if child + 1 < size and numbers[begin + child + 1] > numbers[begin + child]:
                child += 1
            if numbers[begin + node] >= numbers[begin + child]:
                break
            numbers[begin + node], numbers[begin + child] = numbers[begin + child], numbers[begin + node]
            node = child


@kernel
def _add_up(first_leaf, starts, cells, counts, sums, out_starts, out_cells, out_counts):  # type: ignore[no-untyped-def]
    """Add up ranges of leaves, each unit's cells in ascending order. ``sums`` are zero by cell, and are left so."""
    at = np.int64(0)
    for unit in range(len(first_leaf) - 1):
        begin = at
        for j in range(starts[first_leaf[unit]], starts[first_leaf[unit + 1]]):
            if sums[cells[j]] == 0:
                out_cells[at] = cells[j]
                at += 1
            sums[cells[j]] += counts[j]
        _ascending(out_cells, begin, at)
        for i in range(begin, at):
            out_counts[i] = sums[out_cells[i]]
            sums[out_cells[i]] = 0
        out_starts[unit + 1] = at


@kernel
def _sum_groups(starts, cells, counts, groups, sums):  # type: ignore[no-untyped-def]
    """Add up the counts of the cells of each group, unit by unit."""
    for unit in range(len(starts) - 1):
        for j in range(starts[unit], starts[unit + 1]):
            group = groups[cells[j]]
            if group >= 0:
                sums[unit, group] += counts[j]
