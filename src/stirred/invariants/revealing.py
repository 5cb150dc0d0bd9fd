"""What two published margins reveal by themselves, without noise, rate or epsilon: determined records, bounds, uniques.

Within a stratum of n records let n_h be the counts by what is held and n_s the counts by what is swapped, both
published exactly. The count x of records with both h and s is then bounded (Frechet):

    max(0, n_h + n_s - n) <= x <= min(n_h, n_s),        width = min(n_h, n_s, n - n_h, n - n_s).

Everything here is a function of the two margins alone, so whoever holds a release can compute it too. Pairs (h, s) are
never listed, since there may be far more of them than records. Two counts that add up to more than n have one above
n/2, so the sum of the lower bounds needs the pairs with the largest n_h or n_s of a stratum only; widths are counted by
how many n_h and how many n_s reach each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred._display import withheld
from stirred.tables.groups import Cells

WIDTHS = (1, 2, 5, 10, 100)
"""Widths of bounds that are told apart: 0, 1, 2 to 4, 5 to 9, 10 to 99, 100 and more."""
PERCENTS = (50, 90, 99)
"""Chances of a best guess that are told apart."""
_LARGE = 1 << 20
"""Strata with more records are few, and their widths are counted by sorting; of others by a table of all widths."""
MOST_ALIKE = 5
"""Cells of 1, 2, ... up to so many records are counted."""

Integers = NDArray[np.int64]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class TwoMargins:
    """Two margins of the same records, stratum by stratum: the non-empty counts of each.

    Those of stratum m are ``held[held_starts[m] : held_starts[m + 1]]``, and likewise for ``swapped``. Both add up to
    the size of the stratum.
    """

    held_starts: Integers
    held: Integers
    swapped_starts: Integers
    swapped: Integers

    @classmethod
    def of(cls, held: Cells, swapped: Cells, leading: int = 1) -> TwoMargins:
        """From counted cells whose first ``leading`` columns are the stratum."""
        return cls(
            _starts(held, leading),
            held.counts.astype(np.int64),
            _starts(swapped, leading),
            swapped.counts.astype(np.int64),
        )

    @classmethod
    def of_lists(cls, strata: Sequence[tuple[ArrayLike, ArrayLike]]) -> TwoMargins:
        """From a list of strata, each the counts of its two margins.

        >>> TwoMargins.of_lists([([2, 1], [3]), ([4], [4])]).sizes.tolist()
        [3, 4]
        """
        parts = [require_margins(held, swapped) for held, swapped in strata]
        return cls(
            np.cumsum([0, *(len(held) for held, _ in parts)]),
            np.concatenate([held for held, _ in parts]),
            np.cumsum([0, *(len(swapped) for _, swapped in parts)]),
            np.concatenate([swapped for _, swapped in parts]),
        )

    def __len__(self) -> int:
        return len(self.held_starts) - 1

    @property
    def sizes(self) -> Integers:
        """The number of records of each stratum."""
        return np.add.reduceat(self.held, self.held_starts[:-1])

    @property
    def determined(self) -> NDArray[np.bool_]:
        """The strata of which the margins leave one table: those with one held or one swapped value."""
        one: NDArray[np.bool_] = (np.diff(self.held_starts) == 1) | (np.diff(self.swapped_starts) == 1)
        return one

    def stratum(self, number: int) -> tuple[Integers, Integers]:
        """The counts of one stratum."""
        return (
            self.held[self.held_starts[number] : self.held_starts[number + 1]],
            self.swapped[self.swapped_starts[number] : self.swapped_starts[number + 1]],
        )


def require_margins(held: ArrayLike, swapped: ArrayLike) -> tuple[Integers, Integers]:
    """The counts of a stratum by two margins; an error unless they are positive and have the same sum."""
    rows, columns = np.asarray(held, dtype=np.int64), np.asarray(swapped, dtype=np.int64)
    counts = np.append(rows, columns)
    if not len(rows) or not len(columns) or counts.min() < 1 or rows.sum() != columns.sum():
        raise errors.parameter_out_of_range(  # counts may be confidential, so they are not shown
            "the pair of margins", "that of no stratum", "of positive counts that have the same sum"
        )
    return rows, columns


@dataclass(frozen=True)
class Alike:
    """How many cells of a published margin hold 1, 2, ... records, and how many hold more."""

    level: str
    """What the margin is by."""
    cells: tuple[int, ...]
    """Cells of 1, 2, ..., records."""
    more: int
    """Cells of more."""

    @property
    def alone(self) -> int:
        """Records that stand alone in their cell."""
        return self.cells[0]


@dataclass(frozen=True)
class Revealed:
    """What two margins reveal by themselves. Computed from published counts alone."""

    records: int
    strata: int
    singletons: int
    """Strata of one record."""
    duplicates: int
    """Strata of two or more records that are all alike: one held and one swapped value."""
    determined_strata: int
    """Strata with one held or one swapped value, of which the margins leave one table."""
    determined_records: int
    """Their records."""
    pinned_records: int
    """Records that must lie in a certain cell: the sum of all lower bounds, determined strata included."""
    cells: int
    """Pairs of a held and a swapped value that occur in a stratum."""
    widths: tuple[int, ...]
    """Of these, how many have bounds of width 0, 1, 2 to 4, 5 to 9, 10 to 99, and 100 or more."""
    total_width: int
    guessed: int
    """Records whose swapped value is guessed rightly by who guesses the commonest one of each stratum."""
    told: tuple[tuple[int, int], ...]
    """By percent: records for which this guess is right with at least so much chance."""

    @property
    def determined_share(self) -> float:
        """Share of records that the margins determine."""
        return self.determined_records / self.records

    @property
    def pinned_share(self) -> float:
        """Share of records that must lie in a certain cell."""
        return self.pinned_records / self.records

    @property
    def guessed_share(self) -> float:
        """Share of records that are guessed rightly."""
        return self.guessed / self.records

    @property
    def mean_width(self) -> float:
        """Mean width of the bounds over all cells."""
        return self.total_width / self.cells


def reveal(margins: TwoMargins) -> Revealed:
    """What two margins reveal by themselves.

    >>> found = reveal(TwoMargins.of_lists([([18, 2], [12, 5, 3]), ([1], [1])]))
    >>> found.pinned_records, found.determined_records, found.mean_width
    (15, 1, 1.714...)
    """
    sizes = margins.sizes
    totals = np.zeros(8, dtype=np.int64)
    at_least = np.zeros(len(WIDTHS), dtype=np.int64)
    told = np.zeros(len(PERCENTS), dtype=np.int64)
    longest = min(int(sizes.max(initial=0)), _LARGE) // 2 + 2
    _scan(
        margins.held_starts.astype(np.int64),
        margins.held,
        margins.swapped_starts.astype(np.int64),
        margins.swapped,
        sizes,
        np.array(WIDTHS, dtype=np.int64),
        np.array(PERCENTS, dtype=np.int64),
        _LARGE,
        np.zeros((2, longest), dtype=np.int64),
        totals,
        at_least,
        told,
    )
    for number in np.flatnonzero((sizes > _LARGE) & ~margins.determined).tolist():
        total, reaching = _widths(*margins.stratum(number))
        totals[6] += total
        at_least += reaching
    singletons, duplicates, determined_strata, determined_records, pinned, cells, total_width, guessed = totals.tolist()
    return Revealed(
        int(sizes.sum()),
        len(margins),
        singletons,
        duplicates,
        determined_strata,
        determined_records,
        pinned,
        cells,
        tuple((-np.diff([cells, *at_least, 0])).tolist()),
        total_width,
        guessed,
        tuple(zip(PERCENTS, told.tolist(), strict=True)),
    )


def alike(level: str, counts: NDArray[np.integer], most: int = MOST_ALIKE) -> Alike:
    """How many of the non-empty cells hold 1, 2, ... up to ``most`` records.

    >>> alike("county", np.array([1, 1, 3, 9]), 3)
    Alike(level='county', cells=(2, 0, 1), more=1)
    """
    found = np.bincount(np.minimum(counts, most + 1).astype(np.int64), minlength=most + 2)
    return Alike(level, tuple(found[1 : most + 1].tolist()), int(found[most + 1]))


def _widths(held: Integers, swapped: Integers) -> tuple[int, Integers]:
    """The sum of the widths of all pairs of a stratum, and how many reach each of ``WIDTHS``.

    >>> _widths(np.array([18, 2]), np.array([12, 5, 3]))
    (12, array([6, 6, 0, 0, 0]))
    """
    n = held.sum()
    rows, columns = np.minimum(held, n - held), np.sort(np.minimum(swapped, n - swapped))
    below = np.searchsorted(columns, rows)
    total = int(np.sum(np.append(0, np.cumsum(columns))[below] + rows * (len(columns) - below)))
    reaching = [np.count_nonzero(rows >= width) * np.count_nonzero(columns >= width) for width in WIDTHS]
    return total, np.array(reaching, dtype=np.int64)


def _starts(counted: Cells, leading: int) -> Integers:
    return np.append(np.flatnonzero(counted.begins(leading)), len(counted)).astype(np.int64)


@kernel
def _scan(  # type: ignore[no-untyped-def]
    held_starts, held, swapped_starts, swapped, sizes, widths, percents, large, reached, totals, at_least, told
):
    """One pass over the strata. ``reached`` is zero and is left so: by width, how many counts of a margin allow it."""
    for m in range(len(sizes)):
        n = sizes[m]
        h0, h1, s0, s1 = held_starts[m], held_starts[m + 1], swapped_starts[m], swapped_starts[m + 1]
        rows, columns = h1 - h0, s1 - s0
        largest_held, largest_swapped = h0, s0
        for i in range(h0, h1):
            if held[i] > held[largest_held]:
                largest_held = i
        for j in range(s0, s1):
            if swapped[j] > swapped[largest_swapped]:
                largest_swapped = j
        a, b = held[largest_held], swapped[largest_swapped]
        totals[5] += rows * columns
        totals[7] += b
        for c in range(len(percents)):
            if 100 * b >= percents[c] * n:
                told[c] += n
        if n == 1:
            totals[0] += 1
        elif rows == 1 and columns == 1:
            totals[1] += 1
        if rows == 1 or columns == 1:
            totals[2] += 1
            totals[3] += n
            totals[4] += n
            continue
        if 2 * a > n:
            for j in range(s0, s1):
                totals[4] += max(0, a + swapped[j] - n)
        if 2 * b > n:
            for i in range(h0, h1):
                if i != largest_held or 2 * a <= n:
                    totals[4] += max(0, b + held[i] - n)
        if n > large:
            continue
        widest = 0
        for i in range(h0, h1):
            width = min(held[i], n - held[i])
            reached[0, width] += 1
            widest = max(widest, width)
        for j in range(s0, s1):
            width = min(swapped[j], n - swapped[j])
            reached[1, width] += 1
            widest = max(widest, width)
        by_held = by_swapped = 0
        at = len(widths) - 1
        for width in range(widest, 0, -1):
            by_held += reached[0, width]
            by_swapped += reached[1, width]
            totals[6] += by_held * by_swapped
            while at >= 0 and widths[at] > width:
                at -= 1
            if at >= 0 and widths[at] == width:
                at_least[at] += by_held * by_swapped
            reached[0, width] = reached[1, width] = 0
