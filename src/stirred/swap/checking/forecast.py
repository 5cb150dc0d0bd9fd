"""Forecasts tables of a swap before any randomness is drawn: the exact mean and variance of every cell.

Each cell of each stratum has an exact mean and variance (:mod:`stirred.swap.law.moments`); strata are independent, so
they add. From these come two forecasts of the mean absolute percentage error (MAPE): that of the expected table, which
is a lower bound on the expected MAPE (Jensen), and a normal approximation to the expected MAPE itself.
:mod:`stirred.swap.checking.comparison` has other distances.

*Several rounds.* Nested rounds have the same law in any order (docs/guarantee.md), so the finest may be taken as the
first. Within a group of a round a cell has, given its count x before, a mean that is linear and a variance that is
quadratic in x. So the mean and the variance of x are all that is needed of the finer rounds, and groups of one round
are independent: moments are added up from the finest groups to the strata of the first round.

*Linked rows, sums and weighted counts.* Such a cell is sum_i u_i v_sigma(i): u_i is what record i brings into the row
of the cell (how many of its persons, the sum of their values or weights), v_i is 1 if the record has the cell's swap
values and else 0. Scores are added up within a record before anything is computed. With n records in a stratum, n_s of
them with v = 1, ubar the mean of u and b = n_s/n, the mean is n ubar b + shrinkage [uv] and the variance is that of
:func:`stirred.swap.law.moments.score_covariance` for centred scores, both exact; strata add. They hold for one rate
only.

Keep in mind: forecasts start from the true counts, so they are confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._display import confidential
from stirred.swap.data.counting import RecordRates, key_of, look_up, one_rate, pairs
from stirred.swap.data.dataset import Dataset, stratum_columns
from stirred.swap.law.moments import (
    LawConstants,
    cell_moments,
    expected_absolute_error,
    log_chance_of_empty,
    score_covariance,
    stratum_constants,
    unequal_cell_moments,
)
from stirred.swap.plan.sections import PublishedTable
from stirred.tables import Column
from stirred.tables.columns import Codes
from stirred.tables.exact_numbers import row_numbers
from stirred.tables.groups import Groups, anonymous, cells, group

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_PAIRS = 50_000_000


@confidential
class CellsBefore:
    """Mean and variance of cells before a round, by their keys, which are increasing; other cells are empty."""

    keys: NDArray[np.int64]
    mean: Floats
    variance: Floats

    def at(self, wanted: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of these cells."""
        where, found = look_up(self.keys, wanted)
        return np.where(found, self.mean[where], 0.0), np.where(found, self.variance[where], 0.0)


def after_round(
    constants: LawConstants,
    size: NDArray[np.integer],
    held_total: NDArray[np.integer],
    swapped_total: NDArray[np.integer],
    mean: Floats,
    variance: Floats,
) -> tuple[Floats, Floats]:
    """Moments of cells after a round, from those of their counts before it.

    With the formulas of :mod:`stirred.swap.law.moments` for a count x, by the laws of total mean and variance: a term
    of x squared adds its weight times the variance of x, and the mean adds the square of its shrinkage times that.
    """
    rows = constants.rows(size)
    n = np.maximum(size, 1).astype(np.float64)
    held, swapped = held_total.astype(np.float64), swapped_total.astype(np.float64)
    delta = mean - held * swapped / n
    spread = (held * (n - held) / n) * (swapped * (n - swapped) / n) / n
    tilt = ((n - 2 * held) / n) * ((n - 2 * swapped) / n)
    a4, square = constants.a4[rows], constants.a1[rows] + constants.a2[rows]
    own = (a4 + n * constants.a3[rows]) * spread + a4 * tilt * delta + square * delta**2
    after = mean - constants.moved[rows] * delta * (n / np.maximum(n - 1, 1))
    return after, np.maximum(own + (square + constants.shrinkage[rows] ** 2) * variance, 0.0)


def after_finer_rounds(dataset: Dataset, held: Groups, swapped: Groups) -> CellsBefore | None:
    """Moments of the cells of every stratum after all rounds but the first; None where there are too many cells.

    Keys are those of (stratum, held, swapped). Confidential: they start from the true counts.
    """
    plan, rows = dataset.plan, dataset.records
    columns = [anonymous(one.ids, one.count) for one in (held, swapped)]
    matched, levels = stratum_columns(plan), [dataset.strata]
    for later in plan.rounds:
        matched = (*matched, *later.match_also)
        levels.append(group(dataset.counted.pick(matched), rows))
    if max(level.count + 1 for level in levels) * held.count * swapped.count >= 1 << 63:
        return None
    finest = cells([anonymous(levels[-1].ids, levels[-1].count), *columns], rows)
    outer, h_codes, s_codes = finest.codes
    keys = key_of(outer, h_codes, s_codes, held.count, swapped.count)
    before = CellsBefore(keys, finest.counts.astype(np.float64), np.zeros(len(keys)))
    for later, level, parent in zip(reversed(plan.rounds), levels[:0:-1], levels[-2::-1], strict=True):
        groups = anonymous(level.ids, level.count)
        by_held, by_swapped = (cells([groups, column], rows) for column in columns)
        held_codes, swapped_codes = by_held.codes, by_swapped.codes
        which, h, s = pairs(level.count, held_codes[0], swapped_codes[0], _MOST_PAIRS)
        if which is None:
            return None
        codes, sizes = (held_codes[1][h], swapped_codes[1][s]), level.sizes()
        start = before.at(key_of(which, *codes, held.count, swapped.count))
        constants = stratum_constants(sizes, later.rate)
        after = after_round(constants, sizes[which], by_held.counts[h], by_swapped.counts[s], *start)
        keys, at = np.unique(
            key_of(level.of_each(parent.ids)[which], *codes, held.count, swapped.count), return_inverse=True
        )
        mean, variance = (np.bincount(at, part, len(keys)).astype(np.float64) for part in after)
        before = CellsBefore(keys, mean, variance)
    return before


_MOST_UNEQUAL_PAIRS = 1_000_000
"""Cells of strata in which records have different rates: each takes about a hundred microseconds."""


@confidential
class Places:
    """A swapped column of a table: which of its values each cell has."""

    variable: str
    values: tuple[str | None, ...]
    codes: Codes


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedTable:
    """A table as it is and as a swap is expected to leave it. Confidential: it contains the true counts."""

    asked: PublishedTable
    labels: tuple[tuple[str | None, ...], ...]
    true: NDArray[np.int64] | NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    empty: NDArray[np.float64] | None
    """The probability that the cell is zero after the swap; None where it is not forecast."""
    step: NDArray[np.float64]
    """By how much two records that change places change the cell: 1 for counts of records."""
    one_way: NDArray[np.bool_]
    """Whether the cell can only grow, or only shrink."""
    places: tuple[Places, ...]
    signed: bool = False
    """Whether some of the numbers that are added up are negative."""

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
    roles = [_role(dataset, name) for name in by]
    area, held, swapped = (
        group(dataset.table.pick([name for name, own in zip(by, roles, strict=True) if own == role]), rows)
        for role in ("match", "hold", "swap")
    )
    h_column, s_column = anonymous(held.ids, held.count), anonymous(swapped.ids, swapped.count)
    by_held, by_swapped = cells([strata, h_column], rows), cells([strata, s_column], rows)
    inner = cells([strata, h_column, s_column], rows)
    if (dataset.strata.count + 1) * held.count * swapped.count >= 1 << 63:
        return None
    held_codes, swapped_codes, inner_codes = by_held.codes, by_swapped.codes, inner.codes
    stratum, h, s = pairs(dataset.strata.count, held_codes[0], swapped_codes[0], _MOST_PAIRS)
    if stratum is None:
        return None
    sizes, shape = dataset.strata.sizes(), (held.count, swapped.count)
    wanted = key_of(stratum, held_codes[1][h], swapped_codes[1][s], *shape)
    at_true, found_true = look_up(key_of(inner_codes[0], inner_codes[1], inner_codes[2], *shape), wanted)
    true = np.where(found_true, inner.counts.astype(np.int64)[at_true], 0)
    n, n_h, n_s = sizes[stratum], by_held.counts[h], by_swapped.counts[s]
    empty = None
    if rates is None and plan.rounds:
        finer = after_finer_rounds(dataset, held, swapped)
        if finer is None:
            return None
        mean, variance = after_round(stratum_constants(sizes, one_rate(plan)), n, n_h, n_s, *finer.at(wanted))
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
        inside = rates.tally(group([strata, h_column, s_column], rows))
        mean[left], variance[left] = unequal_cell_moments(
            by_stratum,
            stratum[left],
            rates.tally(group([strata, h_column], rows))[h[left]],
            rates.tally(group([strata, s_column], rows))[s[left]],
            np.where(found_true[left][:, None], inside[at_true[left]], 0),
        )
    area_of = dataset.strata.of_each(area.ids)
    keys = key_of(area_of[stratum], held_codes[1][h], swapped_codes[1][s], *shape)
    found, position = np.unique(keys, return_inverse=True)

    def added(part: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(position, weights=part, minlength=len(found)).astype(np.float64)

    order, columns = _in_order(dataset.table.pick(by), roles, found, (area, held, swapped))
    may_grow, may_shrink = added(np.minimum(n_h, n_s) - true), added(true - np.maximum(n_h + n_s - n, 0))
    return ExpectedTable(
        PublishedTable(by=tuple(by)),
        labels_of(columns),
        np.rint(added(true)).astype(np.int64)[order],
        added(mean)[order],
        added(variance)[order],
        None if empty is None else np.exp(added(empty))[order],
        np.ones(len(found)),
        ((may_grow == 0) | (may_shrink == 0))[order],
        places_of(columns, roles),
    )


def labels_of(columns: Sequence[Column]) -> tuple[tuple[str | None, ...], ...]:
    """The values of each cell as text."""
    texts = [np.array(column.texts(), dtype=object)[column.codes].tolist() for column in columns]
    return tuple(zip(*texts, strict=True))


def places_of(columns: Sequence[Column], roles: Sequence[str]) -> tuple[Places, ...]:
    """The swapped ones among the columns of a table's cells."""
    return tuple(
        Places(column.name, tuple(column.texts()), column.codes)
        for column, role in zip(columns, roles, strict=True)
        if role == "swap"
    )


def _role(dataset: Dataset, name: str | None) -> str:
    """Whether a column of the record (None: of a linked row) stays with it, moves, or is the same in all of a
    stratum."""
    if name is None or name in dataset.held_within:
        return "hold"
    return "swap" if name in dataset.plan.swap else "match"


def _in_order(
    columns: Sequence[Column], roles: Sequence[str], keys: Integers, groups: tuple[Groups, Groups, Groups]
) -> tuple[NDArray[np.intp], list[Column]]:
    """The order of a table's cells by their codes, and its columns with these codes in that order; each is taken from
    a member of the group that a cell belongs to."""
    area, held, swapped = groups
    found = {
        "match": (area, keys // (held.count * swapped.count)),
        "hold": (held, keys // swapped.count % held.count),
        "swap": (swapped, keys % swapped.count),
    }
    rows = {role: grouped.members()[position] for role, (grouped, position) in found.items() if role in roles}
    codes = [column.codes[rows[role]] for column, role in zip(columns, roles, strict=True)]
    order = np.lexsort(codes[::-1])
    return order, [column.with_codes(part[order]) for column, part in zip(columns, codes, strict=True)]


_MOST_SCORE_PAIRS = 20_000_000
"""Cells of strata: they take twice the memory of those of plain counts."""


@confidential
class _Scores:
    """What records bring into rows of a table: one entry for each record and row in which it has something."""

    record: Integers
    row: Integers
    score: Floats


def expected_scores(dataset: Dataset, asked: PublishedTable) -> ExpectedTable | None:
    """The forecast of a table of linked rows, sums or weighted counts; None where it would take too many cells."""
    plan = dataset.plan
    named = [dataset.of_record(asked, name) for name in asked.by]
    roles = [_role(dataset, name) for name in named]
    columns = dataset.columns_of(asked, asked.by)
    rows, record = dataset.rows_of(asked), dataset.record_of(asked)

    kept = group([column for column, role in zip(columns, roles, strict=True) if role == "hold"], rows)

    def of_records(role: str) -> Groups:
        targets = [target for target, own in zip(named, roles, strict=True) if own == role and target is not None]
        return group(dataset.table.pick(targets), dataset.records)

    swapped, area = of_records("swap"), of_records("match")
    strata = dataset.strata
    if max((strata.count + 1) * swapped.count, dataset.records) * kept.count >= 1 << 63:
        return None
    scores = _scores(dataset, asked, record, kept)
    where = strata.ids[scores.record].astype(np.int64)
    # Cells of held values by stratum, and of both by stratum, from the entries
    outer, at_outer = np.unique(where * kept.count + scores.row, return_inverse=True)
    inner, at_inner = np.unique(
        key_of(where, scores.row, swapped.ids[scores.record], kept.count, swapped.count), return_inverse=True
    )
    records = anonymous(strata.ids, strata.count), anonymous(swapped.ids, swapped.count)
    by_swapped = cells(records, dataset.records)
    row_of = outer % kept.count
    stratum, h, s = pairs(strata.count, outer // kept.count, by_swapped.codes[0], _MOST_SCORE_PAIRS)
    if stratum is None:
        return None
    at, found = look_up(inner, key_of(stratum, row_of[h], by_swapped.codes[1][s], kept.count, swapped.count))

    def by_row(part: NDArray[Any]) -> Floats:
        return np.bincount(at_outer, weights=part, minlength=len(outer)).astype(np.float64)[h]

    def by_cell(part: NDArray[Any]) -> Floats:
        return np.where(found, np.bincount(at_inner, weights=part, minlength=len(inner)).astype(np.float64)[at], 0.0)

    sizes = strata.sizes()
    n, n_s = sizes[stratum].astype(np.float64), by_swapped.counts[s].astype(np.float64)
    one = np.ones(len(scores.score))
    mean_score = np.bincount(at_outer, weights=scores.score, minlength=len(outer)) / sizes[outer // kept.count]
    centred = scores.score - mean_score[at_outer]
    ubar, b = mean_score[h], n_s / n
    true = by_cell(scores.score)
    # Records without an entry have the score 0, which is -ubar when centred.
    held_squares = by_row(centred**2) + (n - by_row(one)) * ubar**2
    cell_squares = by_cell(centred**2) + (n_s - by_cell(one)) * ubar**2
    shift = by_cell(centred) - (n_s - by_cell(one)) * ubar
    fixed = (n_s == n) | _same_for_all(scores, at_outer, len(outer), sizes[outer // kept.count])[h]
    shift = np.where(fixed, 0.0, shift)
    # A table by what stays with its record is kept at any rate, also at rates by rule and after several rounds.
    constants = stratum_constants(sizes, one_rate(plan) if "swap" in roles else plan.every_rate[-1])
    variance = score_covariance(
        constants,
        sizes[stratum],
        uvuv=(1 - b) ** 2 * cell_squares + b**2 * np.maximum(held_squares - cell_squares, 0.0),
        u1v1=shift,
        u2v2=shift,
        u1v2=shift,
        u2v1=shift,
        uu=held_squares,
        vv=n_s * (1 - b),
    )
    variance = np.where(fixed, 0.0, np.maximum(variance, 0.0))
    mean = true - constants.moved[constants.rows(sizes[stratum])] * shift * (n / np.maximum(n - 1, 1))
    with_score = scores.score != 0
    holders = by_row(with_score), by_cell(with_score)
    empty = log_chance_of_empty(constants, sizes[stratum], holders[0], n_s, holders[1])
    signed = bool(np.any(scores.score < 0))

    area_of = strata.of_each(area.ids)
    keys, position = np.unique(
        key_of(area_of[stratum], row_of[h], by_swapped.codes[1][s], kept.count, swapped.count), return_inverse=True
    )

    def added(part: NDArray[Any]) -> Floats:
        return np.bincount(position, weights=part, minlength=len(keys)).astype(np.float64)

    # How many records have the swap values of a cell is kept: one that comes replaces another, so what changes the cell
    # is the difference of two scores. The step is the mean square of such differences over their mean.
    apart = added(_distances_of_pairs(scores, at_outer, sizes[outer // kept.count])[h] / n)
    step = np.divide(added(held_squares), apart, out=np.ones(len(keys)), where=apart > 0)
    # Areas of records without linked rows are cells too, so values of the record are taken from records.
    wide = [
        column if target is None or role == "hold" else Column(column.name, dataset.table[target].codes, column.values)
        for column, role, target in zip(columns, roles, named, strict=True)
    ]
    order, in_order = _in_order(wide, roles, keys, (area, kept, swapped))
    true_numbers = added(true)[order]
    return ExpectedTable(
        asked,
        labels_of(in_order),
        true_numbers if asked.adds_up else np.rint(true_numbers).astype(np.int64),
        added(mean)[order],
        added(variance)[order],
        None if signed else np.exp(added(empty))[order],
        step[order],
        (added(holders[1]) == 0)[order] & (not signed),
        places_of(in_order, roles),
        signed,
    )


def _scores(dataset: Dataset, asked: PublishedTable, record: NDArray[np.integer], kept: Groups) -> _Scores:
    """Scores by record and row of the table, added up exactly."""
    rows = len(record)
    numbers = row_numbers(dataset.columns_of(asked, asked.added), rows)
    if asked.linked is None:
        return _Scores(record.astype(np.int64), kept.ids.astype(np.int64), numbers.floats())
    keys, entry = np.unique(record.astype(np.int64) * kept.count + kept.ids, return_inverse=True)
    sums = numbers.added_up(entry, len(keys)).floats()
    return _Scores(keys // kept.count, keys % kept.count, sums)


def _distances_of_pairs(scores: _Scores, at: NDArray[np.intp], sizes: Integers) -> Floats:
    """For each row of a stratum, the sum of |u_i - u_j| over pairs of records; those without an entry have 0.

    It is the sum of (2k - n - 1) u_k over scores in increasing order, k = 1 to n.
    """
    order = np.lexsort([scores.score, at])
    row, score = at[order], scores.score[order]
    entries = np.bincount(at, minlength=len(sizes))
    rank = np.arange(1, len(row) + 1) - (np.cumsum(entries) - entries)[row]
    rank += np.where(score > 0, (sizes - entries)[row], 0)
    return np.bincount(row, weights=(2 * rank - sizes[row] - 1) * score, minlength=len(sizes)).astype(np.float64)


def _same_for_all(scores: _Scores, at: NDArray[np.intp], count: int, sizes: Integers) -> NDArray[np.bool_]:
    """Which rows of strata get the same from every record, so that nothing can change."""
    first = np.zeros(count)
    first[at] = scores.score
    differ = np.bincount(at, weights=scores.score != first[at], minlength=count)
    entries = np.bincount(at, minlength=count)
    return np.asarray((differ == 0) & ((entries == sizes) | (first == 0)), dtype=np.bool_)
