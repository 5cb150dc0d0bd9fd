"""Forecasts of tables of linked rows, of sums and of weighted counts: what a swap is expected to do to them.

Such a cell is sum_i u_i v_sigma(i): u_i is what record i brings into the row of the cell (how many of its persons, the
sum of their values or weights), v_i is 1 if the record has the cell's swap values and else 0. Scores are added up
within a record before anything is computed. With n records in a stratum, n_s of them with v = 1, ubar the mean of u and
b = n_s/n, the mean is n ubar b + shrinkage [uv] and the variance is that of
:func:`stirred.swap.moments.score_covariance` for centred scores, both exact; strata add. They hold for one rate only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred._shown import withheld
from stirred.swap.cell_pairs import key_of, look_up, pairs
from stirred.swap.dataset import Dataset
from stirred.swap.expectation import CellFacts, ExpectedTable, labels_of, places_of
from stirred.swap.moments import score_covariance, stratum_constants
from stirred.swap.plan_sections import PublishedTable
from stirred.swap.rates import one_rate
from stirred.swap.sources import Source, source_of
from stirred.swap.vanishing import log_chance_of_empty
from stirred.tables import Column
from stirred.tables.exact_numbers import row_numbers
from stirred.tables.groups import Groups, anonymous, cells, group

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_SCORE_PAIRS = 20_000_000
"""Cells of strata: they take twice the memory of those of plain counts."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class _Scores:
    """What records bring into rows of a table: one entry for each record and row in which it has something."""

    record: Integers
    row: Integers
    score: Floats


def expected_scores(dataset: Dataset, asked: PublishedTable) -> ExpectedTable | None:
    """The forecast of a table of linked rows, sums or weighted counts; None where it would take too many cells."""
    plan, source = dataset.plan, source_of(dataset)
    roles = [_role(dataset, source, asked, name) for name in asked.by]
    columns = source.columns(asked, asked.by)
    rows, record = source.rows(asked), source.record(asked)

    kept = group([column for column, role in zip(columns, roles, strict=True) if role == "hold"], rows)
    named = [source.of_record(asked, name) for name in asked.by]

    def of_records(role: str) -> Groups:
        targets = [target for target, own in zip(named, roles, strict=True) if own == role and target is not None]
        return group(dataset.table.pick(targets), dataset.records)

    swapped, area = of_records("swap"), of_records("match")
    strata = dataset.strata
    if max((strata.count + 1) * swapped.count, dataset.records) * kept.count >= 1 << 63:
        return None
    scores = _scores(source, asked, record, kept)
    where = strata.ids[scores.record].astype(np.int64)
    # Cells of held values by stratum, and of both by stratum, from the entries
    outer, at_outer = np.unique(where * kept.count + scores.row, return_inverse=True)
    inner, at_inner = np.unique(
        key_of(where, scores.row, swapped.ids[scores.record], kept.count, swapped.count), return_inverse=True
    )
    records = anonymous(strata.ids, strata.count), anonymous(swapped.ids, swapped.count)
    by_swapped = cells(records, dataset.records)
    row_of = outer % kept.count
    stratum, h, s = pairs(strata.count, (outer // kept.count,), by_swapped.codes, _MOST_SCORE_PAIRS)
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

    area_of = np.zeros(strata.count, dtype=np.int64)
    area_of[strata.ids] = area.ids
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
    labelled = _cell_columns(wide, roles, keys, (area, kept, swapped))
    order = np.lexsort([column.codes for column in labelled[::-1]])
    in_order = [column.with_codes(column.codes[order]) for column in labelled]
    true_numbers = added(true)[order]
    facts = CellFacts(
        None if signed else np.exp(added(empty))[order],
        step[order],
        (added(holders[1]) == 0)[order] & (not signed),
        signed,
    )
    return ExpectedTable(
        asked,
        labels_of(in_order),
        true_numbers if asked.adds_up else np.rint(true_numbers).astype(np.int64),
        added(mean)[order],
        added(variance)[order],
        facts,
        places_of(in_order, [role == "swap" for role in roles]),
    )


def _role(dataset: Dataset, source: Source, asked: PublishedTable, name: str) -> str:
    """Whether a column of a table stays with the record, moves, or is the same in all of a stratum."""
    target = source.of_record(asked, name)
    if target is None or target in dataset.held_within:
        return "hold"
    return "swap" if target in dataset.plan.swap else "match"


def _scores(source: Source, asked: PublishedTable, record: NDArray[np.integer], kept: Groups) -> _Scores:
    """Scores by record and row of the table, added up exactly."""
    rows = len(record)
    numbers = row_numbers(source.columns(asked, asked.added), rows)
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


def _cell_columns(
    columns: list[Column],
    roles: list[str],
    keys: Integers,
    groups: tuple[Groups, Groups, Groups],
) -> list[Column]:
    """The columns of a table with the codes of its cells, each taken from a member of the group it belongs to."""
    area, kept, swapped = groups
    positions = {
        "match": (area.ids, area.count, keys // (kept.count * swapped.count)),
        "hold": (kept.ids, kept.count, keys // swapped.count % kept.count),
        "swap": (swapped.ids, swapped.count, keys % swapped.count),
    }
    found = []
    for column, role in zip(columns, roles, strict=True):
        ids, count, position = positions[role]
        member = np.zeros(count, dtype=np.int64)
        member[ids] = np.arange(len(ids))
        found.append(column.with_codes(column.codes[member[position]]))
    return found
