"""Draws a swap, and writes the release folder.

:func:`draw` reads the file, permutes the swap variables within strata, recounts the invariants and puts rows into an
order of their own; it is the only step that reads the data. Nothing is left to be finished: the draw is the release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from stirred import errors
from stirred._progress import Progress, current, stage
from stirred._threads import meanwhile, thread_pool
from stirred.invariants import Margin
from stirred.noise import RandomSource, SystemSource
from stirred.releases.folder.atomic import CONFIDENTIAL
from stirred.releases.folder.documents import Certificate, ReleasedTable, draw_nonce, write_documents
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.steps import Request, Writable, releasing
from stirred.spec import Specification, facts
from stirred.spec.exact import display
from stirred.swap.checking.comparison import write_comparison
from stirred.swap.checking.movement import movement_of, movement_stops, unchangeable_rows
from stirred.swap.checking.prediction import measure, telling_stops
from stirred.swap.checking.putting_back import PUT_BACK, PutBack, put_back
from stirred.swap.checking.revealing import alone_stops, find_stops, refuse_stops
from stirred.swap.checking.undoing import Swapped, places_of, swapped_data, undoing_of, undoing_stops
from stirred.swap.data.counting import (
    Margins,
    Strata,
    count_margins,
    one_rate,
    rates_of_dataset,
    stated_margins,
    strata_of_dataset,
)
from stirred.swap.data.dataset import (
    FLAT,
    Dataset,
    InputDataset,
    described,
    flat_chunks,
    flat_labels,
    flat_style,
    load,
    stratum_columns,
    style_of,
)
from stirred.swap.data.records import counted_table
from stirred.swap.documents import readme, say
from stirred.swap.law import permutation
from stirred.swap.law.permutation import (
    LinkedRows,
    Rows,
    ShuffledRows,
    SortedRows,
    draw_later_rounds,
    follow,
    later_rounds,
    put_in_order,
)
from stirred.swap.mechanism import MECHANISM
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import specify
from stirred.swap.plan.sections import MAIN, PublishedTable, table_names
from stirred.tables import Input, Table
from stirred.tables.groups import Cells, cells, free_label
from stirred.tables.labelled_files import write_labelled
from stirred.tables.writing import EXTENSIONS, Cell, Chunk, as_arrow, counted_chunk, write_table


@dataclass(frozen=True, eq=False, repr=False)
class SwapRelease(Writable):
    """A drawn swap, ready to be written or used in memory.

    Printing it shows no data.
    """

    mechanism = MECHANISM

    dataset: InputDataset
    table: Table
    """The swapped records, still in the order of the input: never to be shown."""
    rows: SortedRows | ShuffledRows
    linked: tuple[LinkedRows, ...]
    margins: Margins
    strata: Strata
    specification: Specification
    for_release: bool
    nonce: str
    """The identity of this draw."""
    put_back: PutBack
    """How many changed records anyone can put back from what is released, at least."""

    def __repr__(self) -> str:
        return f"<SwapRelease of {self.table.rows:,} {self.plan.records}; .specification, .frame(), .write(out)>"

    @property
    def draw(self) -> SwapRelease:
        """The draw; for a swap it is the release itself."""
        return self

    def finish(self, progress: Progress | None = None) -> SwapRelease:
        """The release itself: a swap needs no finishing."""
        return self

    @property
    def plan(self) -> SwapPlan:
        """The plan."""
        return self.dataset.plan

    def frame(self, name: str = MAIN) -> Any:
        """A released table as a frame of the type that was given (an Arrow table if it was a file).

        ``"flat"`` is that of a flat file, with the columns of the records in every row.
        """
        for rows, opened in self._tables():
            if opened.table == name:
                arrow = as_arrow(rows.chunks())
                return opened.native(arrow) if opened.native else arrow
        if name == FLAT and self.plan.flat is not None:
            arrow, native = as_arrow(self._flat_chunks()), self.dataset.input.native
            return native(arrow) if native else arrow
        raise errors.unknown_table(name, [opened.table for _, opened in self._tables()])

    def tabulate(self, by: Sequence[str]) -> Cells:
        """Counts of the released records by some columns; costs no budget."""
        self.dataset.require(PublishedTable(by=tuple(by)))
        return cells(self.table.pick(by), self.table.rows)

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines for the terminal that say what was released."""
        stated = self.specification
        nearest = stated.nearest if stated.nearest != math.inf else "no"
        return (
            f"{self.table.rows:,} {self.plan.records}",
            f"epsilon {display(stated.budget.number)} per {self.plan.unit}, given the invariants; the nearest "
            f"files that share them differ in {nearest} records",
            f"{100 * float(stated.fact[facts.CHANGED_SHARE]):.3g}% of the records are expected to have other swap "
            f"values than before, and {100 * float(stated.fact[facts.UNCHANGEABLE_SHARE]):.3g}% never can",
        )

    def _tables(self) -> Iterator[tuple[Rows, Input]]:
        yield self.rows, self.dataset.input
        for rows in self.linked:
            yield rows, rows.linked.input

    def write_files(self, folder: Path) -> Certificate:
        """Write everything that a recipient gets into an empty folder, but the certificate, which is returned."""
        stage("writing microdata")
        with thread_pool() as pool:
            released = list(pool.map(lambda table: self._write_table(folder, *table), self._tables()))
        stage("writing tables and documents")
        kind = self.plan.format or self.dataset.input.format
        if self.plan.flat is not None:
            write_table(folder / f"{FLAT}{EXTENSIONS[kind]}", kind, self._flat_chunks(), flat_style(released))
            if (labels := flat_labels(released, self.dataset.flat)) is not None:
                write_labelled(folder / labels.file(FLAT), as_arrow(self._flat_chunks()), labels)
        if self.plan.publish:
            (folder / "tables").mkdir()
        swapped, asked = replace(self.dataset, table=self.table), self.plan.published_tables
        for one, name in zip(asked, table_names(asked), strict=True):
            write_table(folder / "tables" / f"{name}.csv", "csv", [counted_table(swapped, one).chunk()])
        if self.plan.saturated:
            counted = self.tabulate(list(self.table.columns))
            write_table(folder / f"saturated{EXTENSIONS[kind]}", kind, [counted_chunk(self.table, counted)])
        write_documents(
            folder, self.specification, released, readme(self.specification, self.plan, released, self.put_back)
        )
        more = {PUT_BACK: self.put_back.to_fields()}
        stated = stated_margins(self.plan, self.specification, self.margins)
        return Certificate(self.plan, self.specification, stated, self.for_release, self.nonce, more)

    def _write_table(self, folder: Path, rows: Rows, opened: Input) -> ReleasedTable:
        kind = self.plan.format or opened.format
        table = self._describe(rows, opened.table, kind)
        table = replace(table, style=style_of(table, opened.style))
        write_table(folder / table.file, kind, rows.chunks(), table.style)
        if opened.labels is not None and self.plan.format is None:
            numbered = [name for name, role in table.columns if role in ("id", "link")]
            table = replace(table, labels=opened.labels.of([name for name, _ in table.columns], numbered))
            assert table.labels is not None
            write_labelled(folder / table.labels.file(table.name), as_arrow(rows.chunks()), table.labels)
        return table

    def _flat_chunks(self) -> Iterator[Chunk]:
        """The rows of a flat file: those of the linked table beside the columns of their record."""
        assert isinstance(self.rows, ShuffledRows)
        order = self.rows.permutation
        moved = {name: column.with_codes(column.codes[order]) for name, column in self.table.columns.items()}
        rows = self.linked[0]
        main = Table(MAIN, self.table.rows, moved)
        return flat_chunks(self.dataset.flat, rows.linked.plan.link, main, rows.chunks())

    def _describe(self, rows: Rows, name: str, kind: str) -> ReleasedTable:
        if not isinstance(rows, LinkedRows):
            return described(self.plan, name, kind, self.dataset.columns, self.table, rows.order)
        copied = {
            copy: rows.copied(copy).with_codes(self.table[target].codes[:0]) for copy, target in rows.copies.items()
        }
        return described(self.plan, name, kind, rows.linked.columns, rows.linked.held, rows.order, copied)

    def write_confidential(self, folder: Path, data: Data | None = None) -> None:
        """Write true and released counts of every table that the plan publishes."""
        (folder / CONFIDENTIAL).write_text(say("confidential"), encoding="utf-8")
        (folder / "tables").mkdir()
        write_comparison(folder, self.plan, self.dataset, replace(self.dataset, table=self.table))
        self._write_unchangeable(folder / "records_that_cannot_change.csv")

    def _write_unchangeable(self, path: Path) -> None:
        """List the records that no swap can change: their rows in the input, sorted by place."""
        plan, table = self.plan, self.dataset.table
        rows = np.flatnonzero(unchangeable_rows(self.dataset, self.strata))
        order = rows[np.lexsort([table[name].codes[rows] for name in reversed((*plan.swap, *plan.match))])]
        label = free_label("row_of_the_input", (*plan.swap, *plan.match))
        cells_of = [Cell(name, table[name].codes[order], table[name]) for name in (*plan.swap, *plan.match)]
        write_table(path, "csv", [[*cells_of, Cell(label, order + 1)]])


def draw(
    plan: SwapPlan,
    data: Data | None = None,
    *,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> SwapRelease:
    """Draw one swap. Another ``source`` than the operating system's is for tests: the result is not for release."""
    source = source or SystemSource()
    progress = progress or current()
    progress.stage("reading")
    dataset = load(plan, data, progress)
    for one in plan.published_tables:
        dataset.require(one)
    progress.stage("counting the invariants and looking for stops")
    rates = rates_of_dataset(dataset)
    data_of_swap = swapped_data(dataset, rates or one_rate(plan))
    with meanwhile(lambda: _stops(dataset, data_of_swap)) as stops:
        margins = count_margins(dataset)
        refuse_stops(stops(), plan.allow)
    strata = strata_of_dataset(dataset, margins)
    by_stratum = rates.by_stratum(dataset.strata) if rates else None
    later = later_rounds(plan, dataset.counted)
    movement = movement_of(strata, margins.swapped, by_stratum or one_rate(plan), later)
    refuse_stops([*movement_stops(plan, strata, movement), *alone_stops(dataset, margins.swapped)], plan.allow)
    progress.stage("swapping")
    moves = permutation.draw(dataset.strata, strata.sizes, rates or one_rate(plan), source)
    table = dataset.table.replace(
        {column.name: column.with_codes(moves.apply(column.codes)) for column in dataset.table.pick(plan.swap)}
    )
    if plan.rounds:
        first = dataset.counted.replace({name: table[name] for name in plan.swap})
        last = draw_later_rounds(plan, first, source)
        table = table.replace({name: last[name] for name in plan.swap})
    progress.stage("recounting the invariants")
    recount(dataset, table)
    progress.stage("putting rows in order")
    rows = put_in_order(dataset.columns, plan.id, table, bool(dataset.linked), source)
    followers = tuple(follow(rows, entry, source) for entry in dataset.linked if isinstance(rows, ShuffledRows))
    stated = specify(
        plan,
        dataset.held,
        dataset.linked_columns,
        strata,
        movement,
        source.for_release,
        by_stratum,
        margins.swapped.alone,
    )
    return SwapRelease(
        dataset=dataset,
        table=table,
        rows=rows,
        linked=followers,
        margins=margins,
        strata=strata,
        specification=stated,
        for_release=source.for_release,
        nonce=draw_nonce(source),
        put_back=PutBack.of(put_back(replace(data_of_swap, places=places_of(plan, table, dataset.strata)))),
    )


def _stops(dataset: InputDataset, data_of_swap: Swapped) -> list[errors.StoppedByCheck]:
    """Reasons not to release that lie in the columns."""
    stops = find_stops(dataset)
    told = telling_stops(dataset, measure(dataset), stops)
    return undoing_stops(dataset.plan, undoing_of(data_of_swap), [*stops, *told])


def recount(dataset: Dataset, table: Table) -> None:
    """Raise unless the swapped table has the invariants of the data.

    Records whose swap variables are as before cannot change a count, so the margin by match and swap variables is
    recounted over the others, before and after; match and held columns must be the same, cell by cell. Linked rows
    are not touched by the swap. ``verify`` recounts everything from the written files.
    """
    plan = dataset.plan
    for name in (*plan.match, *dataset.held):
        before, after = dataset.table[name].codes, table[name].codes
        if before is not after and not np.array_equal(before, after):
            raise errors.invariants_broken(f"the column '{name}'")
    changed = np.zeros(table.rows, dtype=np.bool_)
    for name in plan.swap:
        changed |= dataset.table[name].codes != table[name].codes
    rows = np.flatnonzero(changed)
    strata = dataset.counted.pick(stratum_columns(plan))
    counts = [
        cells([column.with_codes(column.codes[rows]) for column in [*strata, *source.pick(plan.swap)]], len(rows))
        for source in (dataset.table, table)
    ]
    if not counts[0].equals(counts[1]):
        raise errors.invariants_broken(str(Margin(MAIN, (*stratum_columns(plan), *plan.swap))))


def release(
    plan: SwapPlan,
    data: Data | None = None,
    *,
    out: str | Path,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> SwapRelease:
    """Draw a swap with the operating system's randomness, and write the release folder.

    With a ledger the release is recorded before it appears. If that would exceed the limit, an error is raised and the
    draw is thrown away. :func:`stirred.release` writes a report too.
    """
    asked = Request.of(out, confidential=confidential, ledger=ledger, progress=progress)
    with releasing(MECHANISM, plan, data, asked) as made:
        return cast(SwapRelease, made.release)
