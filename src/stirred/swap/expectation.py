"""What a swap is expected to do to a table, before any randomness is drawn.

For a table by some match, held and swap variables, each cell of each stratum has an exact mean and variance
(:mod:`stirred.swap.moments`); strata are independent, so they add. From these come two forecasts of the mean absolute
percentage error (MAPE): that of the expected table, which is a lower bound on the expected MAPE (Jensen), and a
normal approximation to the expected MAPE itself. :mod:`stirred.swap.information_loss` has other distances.

Tables of linked rows, sums and weighted counts are forecast in :mod:`stirred.swap.scores`, in the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._shown import withheld
from stirred.swap.cell_pairs import key_of, look_up, pairs
from stirred.swap.coarsening import constant_columns
from stirred.swap.dataset import Dataset
from stirred.swap.moments import cell_moments, expected_absolute_error, stratum_constants
from stirred.swap.plan_sections import PublishedTable
from stirred.swap.rates import RecordRates, one_rate
from stirred.swap.round_moments import after_finer_rounds, after_round
from stirred.swap.unequal_moments import unequal_cell_moments
from stirred.swap.vanishing import log_chance_of_empty
from stirred.tables import Column
from stirred.tables.columns import Codes
from stirred.tables.groups import Groups, anonymous, cells, group

_MOST_UNEQUAL_PAIRS = 1_000_000
"""Cells of strata in which records have different rates: each takes about a hundred microseconds."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """A swapped column of a table: which of its values each cell has."""

    variable: str
    values: tuple[str | None, ...]
    codes: Codes


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class CellFacts:
    """What is known of cells beside mean and variance, for the forecast of distances."""

    empty: NDArray[np.float64] | None
    """The probability that the cell is zero after the swap; None where it is not forecast."""
    step: NDArray[np.float64]
    """By how much two records that change places change the cell: 1 for counts of records."""
    one_way: NDArray[np.bool_]
    """Whether the cell can only grow, or only shrink."""
    signed: bool = False
    """Whether some of the numbers that are added up are negative."""


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedTable:
    """A table as it is and as a swap is expected to leave it. Confidential: it contains the true counts."""

    asked: PublishedTable
    labels: tuple[tuple[str | None, ...], ...]
    true: NDArray[np.int64] | NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    facts: CellFacts
    places: tuple[Places, ...]

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of the table."""
        return self.asked.by

    def __repr__(self) -> str:
        return f"<ExpectedTable by {', '.join(self.by)}: {len(self.true):,} cells; confidential and not shown>"

    @property
    def is_invariant(self) -> bool:
        """Whether the swap keeps this table exactly."""
        return not bool(np.any(self.variance > 0)) and bool(np.allclose(self.mean, self.true))

    @property
    def mape_of_expectation(self) -> float:
        """MAPE of the expected table over cells that are not empty: a lower bound on the expected MAPE."""
        filled = self.true != 0
        errors = np.abs(self.mean - self.true)[filled]
        return float(np.mean(errors / np.abs(self.true[filled]))) if filled.any() else 0.0

    @property
    def expected_mape(self) -> float:
        """Normal approximation to the expected MAPE over cells that are not empty."""
        filled = self.true != 0
        errors = expected_absolute_error((self.mean - self.true)[filled], self.variance[filled])
        return float(np.mean(errors / np.abs(self.true[filled]))) if filled.any() else 0.0


def expected_table(dataset: Dataset, by: Sequence[str], rates: RecordRates | None = None) -> ExpectedTable | None:
    """The forecast for the table ``by``; None where it would take too many cells of too many strata.

    ``rates`` are those of a plan with rates by rule. The closed forms hold where all records of a stratum have one
    rate; elsewhere moments are computed by classes of equal rates. Later rounds are counted in where the first has one
    rate; with rates by rule only tables that are kept may be asked for.
    """
    plan, rows = dataset.plan, dataset.records
    strata = anonymous(dataset.strata.ids, dataset.strata.count)
    held = group(dataset.table.pick([name for name in by if name in dataset.held_within]), rows)
    swapped = group(dataset.table.pick([name for name in by if name in plan.swap]), rows)
    constant = constant_columns(plan)
    area = group(dataset.table.pick([name for name in by if name in constant]), rows)
    by_held = cells([strata, anonymous(held.ids, held.count)], rows)
    by_swapped = cells([strata, anonymous(swapped.ids, swapped.count)], rows)
    inner = cells([strata, anonymous(held.ids, held.count), anonymous(swapped.ids, swapped.count)], rows)
    if (dataset.strata.count + 1) * held.count * swapped.count >= 1 << 63:
        return None
    held_codes, swapped_codes, inner_codes = by_held.codes, by_swapped.codes, inner.codes
    stratum, h, s = pairs(dataset.strata.count, held_codes, swapped_codes)
    if stratum is None:
        return None
    sizes = dataset.strata.sizes()
    at_true, found_true = look_up(
        key_of(inner_codes[0], inner_codes[1], inner_codes[2], held.count, swapped.count),
        key_of(stratum, held_codes[1][h], swapped_codes[1][s], held.count, swapped.count),
    )
    true = np.where(found_true, inner.counts.astype(np.int64)[at_true], 0)
    n, n_h, n_s = sizes[stratum], by_held.counts[h], by_swapped.counts[s]
    empty = None
    if rates is None and plan.rounds:
        finer = after_finer_rounds(dataset, held, swapped)
        if finer is None:
            return None
        start = finer.at(key_of(stratum, held_codes[1][h], swapped_codes[1][s], held.count, swapped.count))
        mean, variance = after_round(stratum_constants(sizes, one_rate(plan)), n, n_h, n_s, *start)
    elif rates is None:
        constants = stratum_constants(sizes, one_rate(plan))
        mean, variance = cell_moments(constants, n, n_h, n_s, true)
        empty = log_chance_of_empty(constants, n, n_h, n_s, true)
    else:
        by_stratum = rates.by_stratum(dataset.strata)
        mean, variance = true.astype(np.float64), np.zeros(len(stratum))
        left = (n_h < n) & (n_s < n)  # where all records are in h, or in s, the cell is kept
        for rate, strata_of_rate in by_stratum.one_each().items():
            here = strata_of_rate[stratum]
            left &= ~here
            constants = stratum_constants(sizes[strata_of_rate], rate)
            mean[here], variance[here] = cell_moments(constants, n[here], n_h[here], n_s[here], true[here])
        if np.count_nonzero(left) > _MOST_UNEQUAL_PAIRS:
            return None
        h_column, s_column = anonymous(held.ids, held.count), anonymous(swapped.ids, swapped.count)
        inside = rates.tally(group([strata, h_column, s_column], rows))
        mean[left], variance[left] = unequal_cell_moments(
            by_stratum,
            stratum[left],
            rates.tally(group([strata, h_column], rows))[h[left]],
            rates.tally(group([strata, s_column], rows))[s[left]],
            np.where(found_true[left][:, None], inside[at_true[left]], 0),
        )
    area_of = np.zeros(dataset.strata.count, dtype=np.int64)
    area_of[dataset.strata.ids] = area.ids
    keys = key_of(area_of[stratum], held_codes[1][h], swapped_codes[1][s], held.count, swapped.count)
    found, position = np.unique(keys, return_inverse=True)

    def added(part: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(position, weights=part, minlength=len(found)).astype(np.float64)

    codes = _codes(dataset, by, found, area, held, swapped)
    order = np.lexsort(codes[::-1])
    may_grow, may_shrink = added(np.minimum(n_h, n_s) - true), added(true - np.maximum(n_h + n_s - n, 0))
    facts = CellFacts(
        None if empty is None else np.exp(added(empty))[order],
        np.ones(len(found)),
        ((may_grow == 0) | (may_shrink == 0))[order],
    )
    columns = [dataset.table[name].with_codes(part[order]) for name, part in zip(by, codes, strict=True)]
    return ExpectedTable(
        PublishedTable(by=tuple(by)),
        labels_of(columns),
        np.rint(added(true)).astype(np.int64)[order],
        added(mean)[order],
        added(variance)[order],
        facts,
        places_of(columns, [name in plan.swap for name in by]),
    )


def labels_of(columns: Sequence[Column]) -> tuple[tuple[str | None, ...], ...]:
    """The values of each cell as text."""
    texts = [np.array(column.texts(), dtype=object)[column.codes].tolist() for column in columns]
    return tuple(zip(*texts, strict=True))


def places_of(columns: Sequence[Column], swapped: Sequence[bool]) -> tuple[Places, ...]:
    """The swapped ones among the columns of a table's cells."""
    return tuple(
        Places(column.name, tuple(column.texts()), column.codes)
        for column, moves in zip(columns, swapped, strict=True)
        if moves
    )


def _codes(
    dataset: Dataset, by: Sequence[str], keys: NDArray[np.int64], area: Groups, held: Groups, swapped: Groups
) -> list[Codes]:
    """The codes of ``by`` in each cell, from a record of the group they belong to."""
    parts = {
        "match": (area, keys // (held.count * swapped.count)),
        "hold": (held, keys // swapped.count % held.count),
        "swap": (swapped, keys % swapped.count),
    }
    columns = []
    for name in by:
        role = "hold" if name in dataset.held_within else "swap" if name in dataset.plan.swap else "match"
        grouped, position = parts[role]
        member = np.zeros(grouped.count, dtype=np.int64)
        member[grouped.ids] = np.arange(dataset.records)
        columns.append(dataset.table[name].codes[member[position]])
    return columns
