"""Looks at what one run of a swapping program gave: what is plainly wrong with it, and else which records moved.

No chance is involved here. A release has the columns of the plan; every record is there once with what is kept of it;
every stratum has the swap values that it had; ids are new; linked rows stay with their record. Only a release that is
whole in this sense shows a permutation, so one that is not ends an audit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stirred import errors
from stirred.audit import tails
from stirred.audit.permutations_seen import ReadRun, moved_in, read_run
from stirred.audit.released_order import correlated, order_seen
from stirred.audit.results import Result
from stirred.audit.swap_inputs import LINKED_ROWS, RECORDS, Integers, LinkedFile, MadeFile, whole_numbers
from stirred.audit.swap_questions import SeenRun
from stirred.audit.tails import smallest_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class PlainlySeen:
    """What is plainly wrong with one release: columns, and numbers of rows."""

    missing: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    """Columns that are not there, and that should not be."""
    rows: int | None = None
    """How many there are; None if the columns that tell records apart are not there."""
    unknown_records: int = 0
    unknown_values: int = 0
    missing_records: int = 0
    missing_values: int = 0
    old_ids: int | None = None
    wrong_links: int | None = None
    """None where a release is not whole: then ids and links are not looked at."""


def look(made: MadeFile, released: Mapping[str, pl.DataFrame]) -> tuple[PlainlySeen, SeenRun | None]:
    """Look at what one run gave: what is plainly wrong, and what else it shows if it is whole."""
    main = _table(released, RECORDS)
    missing = frozenset(made.released_columns - set(main.columns))
    added = frozenset(set(main.columns) - made.released_columns)
    if missing - {made.plan.id}:
        return PlainlySeen(missing, added), None
    read = read_run(made, main)
    if missing or added or not read.whole:
        counts = (read.unknown_records, read.unknown_values, read.missing_records, read.missing_values)
        return PlainlySeen(missing, added, read.rows, *counts), None
    linked = [_look_at_linked(made, one, main, _table(released, one.plan.name), read) for one in made.linked]
    ids = _numbers(main, made.plan.id)
    plain = PlainlySeen(
        rows=read.rows,
        old_ids=_among(ids, made.ids) + sum(one.old_ids for one in linked),
        wrong_links=sum(one.wrong for one in linked),
    )
    if plain.wrong_links:
        return plain, None
    moved = moved_in(made, read.giver)
    id_order = None
    if ids is not None and np.any(np.diff(ids) < 0):
        id_order = order_seen(made, read.record[np.argsort(ids, kind="stable")], moved)
    order = order_seen(made, read.record, moved)
    return plain, SeenRun(moved, order, id_order, tuple(one.order for one in linked))


def plain_results(made: MadeFile, seen: Sequence[PlainlySeen]) -> list[Result]:
    """The results of all runs, of which only the last may not be whole."""
    last = seen[-1]
    columns = [f"{errors.listed(sorted(last.missing))} missing"] if last.missing else []
    columns += [f"{errors.listed(sorted(last.added))} not to be released"] if last.added else []
    found = [
        Result.seen(
            "columns",
            "Does a release have the columns of the plan?",
            bool(columns),
            right="It does.",
            wrong=f"It does not: {' and '.join(columns)}.",
        )
    ]
    if last.rows is None:
        return found
    found += [
        Result.seen(
            "rows",
            "Does a release have as many rows as the input?",
            last.rows != made.records,
            right="It does.",
            wrong=f"It does not: {last.rows:,} and not {made.records:,}.",
        ),
        Result.seen(
            "kept-values",
            "Is every record there once, with its match and held values?",
            bool(last.unknown_records or last.missing_records),
            right="Every one is.",
            wrong=_not_kept(
                "They are not",
                (last.missing_records, "records are missing"),
                (last.unknown_records, "rows are of no record, or of one that is there already"),
            ),
        ),
        Result.seen(
            "kept-counts",
            "Does every stratum have the swap values that it had?",
            bool(last.unknown_values or last.missing_values),
            right="Every one does.",
            wrong=_not_kept(
                "They do not",
                (last.missing_values, "swap values are missing"),
                (last.unknown_values, "rows have swap values from elsewhere, or used already"),
            ),
        ),
    ]
    if made.plan.id:
        found.append(
            _counted(
                "ids",
                "Are ids drawn anew?",
                [one.old_ids for one in seen],
                "None of the input is in a release.",
                "They are not: ids of the input survive, in {:,} rows.",
            )
        )
    if made.linked:
        found.append(
            _counted(
                "linked-rows",
                "Do linked rows stay with their record, and do copied columns follow it?",
                [one.wrong_links for one in seen],
                "They do.",
                "They do not: {:,} rows are with another record, or not there.",
            )
        )
    return found


def _not_kept(verdict: str, *counts: tuple[int, str]) -> str:
    return f"{verdict}: {', and '.join(f'{number:,} {words}' for number, words in counts if number)}."


def _counted(name: str, asked: str, by_run: Sequence[int | None], right: str, wrong: str) -> Result:
    """The result of rows that are wrong, counted in all runs whose release was whole."""
    looked = [one for one in by_run if one is not None]
    if not looked:
        return Result.unasked(name, asked, "the release is not whole")
    return Result.seen(name, asked, sum(looked) > 0, right=right, wrong=wrong.format(sum(looked)))


@dataclass(frozen=True)
class _LinkedSeen:
    wrong: int
    old_ids: int = 0
    order: float = 1.0
    """P-value of the order of the rows."""


def _look_at_linked(
    made: MadeFile, linked: LinkedFile, main: pl.DataFrame, frame: pl.DataFrame, read: ReadRun
) -> _LinkedSeen:
    """Count linked rows that are not with their record, or whose copies are not its new values."""
    entry, held_columns = linked.plan, linked.held.columns
    assert made.plan.id is not None  # a plan with linked tables has one
    if not {entry.link, *linked.held.names, *entry.copies} <= set(frame.columns):
        return _LinkedSeen(LINKED_ROWS * made.records)
    ids, links = _as_numbers(main[made.plan.id], frame[entry.link])
    order = np.argsort(ids)
    at = order[np.minimum(np.searchsorted(ids, links, sorter=order), len(ids) - 1)]
    record = read.record[at]
    wrong = ids[at] != links
    row = LINKED_ROWS * record
    if held_columns:
        held = linked.held.read(frame)
        wrong |= held // LINKED_ROWS != made.held[record]
        row += held % LINKED_ROWS
    new = made.swap_digits.write(made.swapped[read.giver[record]])
    for copy, target in entry.copies.items():
        found = _numbers(frame, copy)
        wrong |= True if found is None else found != new[target]
    times = np.bincount(row[~wrong], minlength=LINKED_ROWS * made.records)
    missing = np.count_nonzero(times != 1 if held_columns else times[::LINKED_ROWS] != LINKED_ROWS)
    old = _among(_numbers(frame, entry.id), linked.ids)
    if not held_columns or missing or np.any(wrong):
        return _LinkedSeen(int(missing + np.count_nonzero(wrong)), old)
    rows = linked.row[row]
    up = int(np.count_nonzero(np.diff(rows) > 0)) - (len(rows) - 1) / 2
    return _LinkedSeen(0, old, smallest_of([correlated(rows), tails.of_bounded_sum(up, (len(rows) + 1) / 12)]))


def _table(released: Mapping[str, pl.DataFrame], name: str) -> pl.DataFrame:
    if name not in released:
        raise errors.audit_no_table(name, released)
    return released[name]


def _among(numbers: Integers | None, old: Integers) -> int:
    return 0 if numbers is None else int(np.count_nonzero(np.isin(numbers, old)))


def _as_numbers(ids: pl.Series, links: pl.Series) -> tuple[Integers, Integers]:
    """Ids and links to them as whole numbers; texts are numbered."""
    import polars as pl

    if ids.dtype.is_integer() and links.dtype.is_integer():
        return ids.cast(pl.Int64).to_numpy(), links.cast(pl.Int64).to_numpy()
    codes = pl.concat([ids.cast(pl.String), links.cast(pl.String)]).rank("dense").cast(pl.Int64).to_numpy()
    return codes[: len(ids)], codes[len(ids) :]


def _numbers(frame: pl.DataFrame, column: str | None) -> Integers | None:
    """A column of whole numbers; None if there is none, or if it holds anything else."""
    if column is None or column not in frame.columns:
        return None
    numbers = whole_numbers(frame[column])
    return None if numbers.null_count() else numbers.to_numpy()
