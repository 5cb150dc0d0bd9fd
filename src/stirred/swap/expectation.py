"""What a swap is expected to do to a table, before any randomness is drawn.

For a table by some match, held and swap variables, each cell of each stratum has an exact mean and variance
(:mod:`stirred.swap.moments`); strata are independent, so they add. From these come two forecasts of the mean absolute
percentage error (MAPE): that of the expected table, which is a lower bound on the expected MAPE (Jensen), and a
normal approximation to the expected MAPE itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.swap.coarsening import constant_columns
from stirred.swap.dataset import Dataset
from stirred.swap.moments import cell_moments, expected_absolute_error, stratum_constants
from stirred.swap.rates import RecordRates, one_rate
from stirred.swap.unequal_moments import unequal_cell_moments
from stirred.tables.columns import Codes
from stirred.tables.groups import Groups, anonymous, cells, group

_MOST_PAIRS = 50_000_000
_MOST_UNEQUAL_PAIRS = 1_000_000
"""Cells of strata in which records have different rates: each takes about a hundred microseconds."""


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedTable:
    """A table as it is and as a swap is expected to leave it. Confidential: it contains the true counts."""

    by: tuple[str, ...]
    labels: tuple[tuple[str | None, ...], ...]
    true: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"<ExpectedTable by {', '.join(self.by)}: {len(self.true):,} cells; confidential and not shown>"

    @property
    def is_invariant(self) -> bool:
        """Whether the swap keeps this table exactly."""
        return not bool(np.any(self.variance > 0)) and bool(np.allclose(self.mean, self.true))

    @property
    def mape_of_expectation(self) -> float:
        """MAPE of the expected table over cells that are not empty: a lower bound on the expected MAPE."""
        filled = self.true > 0
        return float(np.mean(np.abs(self.mean - self.true)[filled] / self.true[filled]))

    @property
    def expected_mape(self) -> float:
        """Normal approximation to the expected MAPE over cells that are not empty."""
        filled = self.true > 0
        errors = expected_absolute_error((self.mean - self.true)[filled], self.variance[filled])
        return float(np.mean(errors / self.true[filled]))


def expected_table(dataset: Dataset, by: Sequence[str], rates: RecordRates | None = None) -> ExpectedTable | None:
    """The forecast for the table ``by``; None where it would take too many cells of too many strata.

    ``rates`` are those of a plan with rates by rule. The closed forms hold where all records of a stratum have one
    rate; elsewhere moments are computed by classes of equal rates.
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
    stratum, h, s = _pairs(dataset.strata.count, held_codes, swapped_codes)
    if stratum is None:
        return None
    sizes = dataset.strata.sizes()
    at_true, found_true = _look_up(
        _key(inner_codes[0], inner_codes[1], inner_codes[2], held.count, swapped.count),
        _key(stratum, held_codes[1][h], swapped_codes[1][s], held.count, swapped.count),
    )
    true = np.where(found_true, inner.counts.astype(np.int64)[at_true], 0)
    n, n_h, n_s = sizes[stratum], by_held.counts[h], by_swapped.counts[s]
    if rates is None:
        mean, variance = cell_moments(stratum_constants(sizes, one_rate(plan)), n, n_h, n_s, true)
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
    keys = _key(area_of[stratum], held_codes[1][h], swapped_codes[1][s], held.count, swapped.count)
    found, position = np.unique(keys, return_inverse=True)
    sums = [
        np.bincount(position, weights=part, minlength=len(found)).astype(np.float64) for part in (true, mean, variance)
    ]
    codes = _codes(dataset, by, found, area, held, swapped)
    order = np.lexsort(codes[::-1])
    texts = [dataset.table[name].texts() for name in by]
    labels = zip(*([text[code] for code in part[order]] for text, part in zip(texts, codes, strict=True)), strict=True)
    return ExpectedTable(
        tuple(by), tuple(labels), np.rint(sums[0]).astype(np.int64)[order], sums[1][order], sums[2][order]
    )


def _pairs(
    count: int,
    held: tuple[NDArray[np.unsignedinteger], ...],
    swapped: tuple[NDArray[np.unsignedinteger], ...],
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64], NDArray[np.int64]]:
    """Every (held cell, swapped cell) of one stratum: the stratum and the positions of both."""
    many_h = np.bincount(held[0], minlength=count)
    many_s = np.bincount(swapped[0], minlength=count)
    total = int(np.sum(many_h * many_s))
    if total > _MOST_PAIRS:
        return None, many_h, many_s
    stratum = np.repeat(np.arange(count), many_h * many_s)
    start = np.repeat(np.cumsum(many_h * many_s) - many_h * many_s, many_h * many_s)
    within = np.arange(total) - start
    first_h, first_s = np.cumsum(many_h) - many_h, np.cumsum(many_s) - many_s
    return stratum, first_h[stratum] + within // many_s[stratum], first_s[stratum] + within % many_s[stratum]


def _key(
    outer: NDArray[np.integer], h: NDArray[np.integer], s: NDArray[np.integer], held: int, swapped: int
) -> NDArray[np.int64]:
    return (outer.astype(np.int64) * held + h.astype(np.int64)) * swapped + s.astype(np.int64)


def _look_up(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Where each of ``wanted`` stands among ``keys``, which are increasing, and whether it does."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return at, keys[at] == wanted


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
