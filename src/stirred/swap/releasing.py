"""Release a swap: *draw* once, then *finish* as often as wanted.

:func:`draw` reads the file, permutes the swap variables within strata and recounts the invariants; it is the only
step that touches the data. :meth:`SwapRelease.write` is post-processing: it puts rows into an order of their own,
gives them new ids and writes a folder that appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stirred import errors
from stirred._compiled import kernel as compiled
from stirred.invariants import Margin
from stirred.noise import RandomSource, SystemSource
from stirred.releases.documents import (
    README,
    RecountedInvariant,
    ReleasedTable,
    WholeRecords,
    write_certificate,
    write_dictionary,
)
from stirred.releases.folder import appearing, check_target
from stirred.releases.ledger import Ledger, manifest_of
from stirred.releases.manifest import write_manifest
from stirred.releases.progress import Progress, Silent
from stirred.spec import Specification
from stirred.swap import kernel
from stirred.swap.checking import check_table
from stirred.swap.dataset import Data, Dataset, load
from stirred.swap.exposure import find_stops, refuse_stops
from stirred.swap.margins import Margins, count_margins, strata_of_dataset
from stirred.swap.plan import MAIN, SwapPlan, table_names
from stirred.swap.rows import LinkedRows, Rows, ShuffledRows, SortedRows, follow, put_in_order
from stirred.swap.specify import specify
from stirred.swap.words import confidential_note, readme
from stirred.tables import Column, Input, Table
from stirred.tables.groups import Cells, cells, free_label
from stirred.tables.write import EXTENSIONS, Cell, Chunk, as_arrow, counted_chunk, write_table


@dataclass(frozen=True, eq=False, repr=False)
class SwapRelease:
    """A drawn swap, ready to be written or used in memory.

    Like everything that holds data, it shows none of it when it is printed by accident.
    """

    dataset: Dataset
    table: Table
    """The swapped records, still in the order of the input: never to be shown."""
    rows: SortedRows | ShuffledRows
    linked: tuple[LinkedRows, ...]
    margins: Margins
    specification: Specification
    for_release: bool

    def __repr__(self) -> str:
        return f"<SwapRelease of {self.table.rows:,} {self.plan.records}; .specification, .frame(), .write(out)>"

    @property
    def plan(self) -> SwapPlan:
        return self.dataset.plan

    def frame(self, name: str = MAIN) -> Any:
        """A released table in memory, of the kind that came in (an Arrow table where a file came in)."""
        for rows, opened in self._tables():
            if opened.table == name:
                arrow = as_arrow(rows.chunks())
                return opened.native(arrow) if opened.native else arrow
        raise errors.unknown_table(name, [opened.table for _, opened in self._tables()])

    def tabulate(self, by: Sequence[str]) -> Cells:
        """A table of the released records; tables cost nothing."""
        check_table(self.dataset, by)
        return cells(self.table.pick(by), self.table.rows)

    def write(
        self,
        out: str | Path,
        *,
        confidential: str | Path | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
    ) -> Path:
        """Write the release folder; ``confidential`` also receives true against released tables.

        ``ledger`` counts the release before anyone can see any of it, or refuses it. Each call counts.
        """
        if not self.for_release and not for_tests:
            raise errors.seeded_release()
        progress = progress or Silent()
        out = Path(out)
        spent = None
        with appearing(out) as folder:
            self._write_folder(folder, progress)
            if ledger is not None:
                progress.stage("counting the release in the ledger")
                what = f"swap at rate {self.plan.rate}, plan {self.plan.hash()[:12]}"
                spent = ledger.spend(self.specification, what, out, manifest=manifest_of(folder))
            if confidential is not None:  # appears before the release, which comes last
                progress.stage("comparing with the truth")
                with appearing(Path(confidential), private=True) as private:
                    self._write_confidential(private)
        if ledger is not None and spent is not None:
            with contextlib.suppress(errors.LedgerError):  # a note only: the entry has the manifest of this release
                ledger.finished(spent.id, out)
        return out

    def _tables(self) -> Iterator[tuple[Rows, Input]]:
        yield self.rows, self.dataset.input
        for rows in self.linked:
            yield rows, rows.linked.input

    def _write_folder(self, folder: Path, progress: Progress) -> None:
        progress.stage("writing microdata")
        with ThreadPoolExecutor() as pool:
            released = list(pool.map(lambda table: self._write_table(folder, *table), self._tables()))
        progress.stage("writing tables and documents")
        kind = self.plan.format or self.dataset.input.format
        if self.plan.tables:
            (folder / "tables").mkdir()
        for by, name in zip(self.plan.tables, table_names(self.plan.tables), strict=True):
            write_table(folder / "tables" / f"{name}.csv", "csv", [counted_chunk(self.table, self.tabulate(by))])
        if self.plan.saturated:
            counted = self.tabulate(list(self.table.columns))
            write_table(folder / f"saturated{EXTENSIONS[kind]}", kind, [counted_chunk(self.table, counted)])
        write_dictionary(folder, released)
        randomness = "the operating system's generator" if self.for_release else "a seeded source: not for release"
        write_certificate(folder, self.plan, self.specification, self._invariants(), self._whole_records(), randomness)
        (folder / README).write_text(readme(self.specification, self.plan, released), encoding="utf-8")
        write_manifest(folder)

    def _write_table(self, folder: Path, rows: Rows, opened: Input) -> ReleasedTable:
        kind = self.plan.format or opened.format
        file = opened.table + EXTENSIONS[kind]
        write_table(folder / file, kind, rows.chunks())
        return self._describe(rows, opened.table, file, kind)

    def _describe(self, rows: Rows, name: str, file: str, kind: str) -> ReleasedTable:
        if isinstance(rows, LinkedRows):
            entry = rows.linked
            roles = {entry.plan.link: "link"} | ({entry.plan.id: "id"} if entry.plan.id else {})
            columns = [
                (column, roles.get(column, "copy" if column in rows.copies else "hold")) for column in entry.columns
            ]
            copied = {
                copy: Column(copy, self.table[target].codes[:0], self.table[target].values)
                for copy, target in rows.copies.items()
            }
            encoded = Table(name, entry.held.rows, dict(entry.held.columns) | copied)
            return ReleasedTable(name, file, kind, entry.held.rows, rows.order, tuple(columns), encoded)
        roles = dict.fromkeys(self.plan.match, "match") | dict.fromkeys(self.plan.swap, "swap")
        roles |= {self.plan.id: "id"} if self.plan.id else {}
        columns = [(column, roles.get(column, "hold")) for column in self.dataset.columns]
        return ReleasedTable(name, file, kind, self.table.rows, rows.order, tuple(columns), self.table)

    def _invariants(self) -> list[RecountedInvariant]:
        return [
            RecountedInvariant(
                counted.margin.table, counted.margin.columns, counted.margin.words(), counted.cells, counted.fingerprint
            )
            for counted in self.margins.counted
        ]

    def _whole_records(self) -> WholeRecords | None:
        if self.margins.whole is None:
            return None
        names = tuple(rows.linked.plan.name for rows in self.linked)
        return WholeRecords(names, str(self.specification.multiverse.invariants[0]), self.margins.whole)

    def _write_confidential(self, folder: Path) -> None:
        (folder / "CONFIDENTIAL.txt").write_text(confidential_note(), encoding="utf-8")
        (folder / "tables").mkdir()
        lines = ["table,cells,mape"]
        for by, name in zip(self.plan.tables, table_names(self.plan.tables), strict=True):
            chunk, mape = self._against_truth(by)
            write_table(folder / "tables" / f"{name}.csv", "csv", [chunk])
            lines.append(f"{name},{len(chunk[0].codes)},{mape:.6f}")
        (folder / "errors.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _against_truth(self, by: Sequence[str]) -> tuple[Chunk, float]:
        true = cells(self.dataset.table.pick(by), self.table.rows)
        released = self.tabulate(by)
        columns = [
            Column(name, np.concatenate([mine, theirs]), self.table[name].values)
            for name, mine, theirs in zip(by, true.codes, released.codes, strict=True)
        ]
        both = cells(columns, len(true) + len(released))
        counts = [_aligned(both, part) for part in (true, released)]
        filled = counts[0] > 0
        mape = float(np.mean(np.abs(counts[1] - counts[0])[filled] / counts[0][filled]))
        chunk = [Cell(name, codes, self.table[name]) for name, codes in zip(by, both.codes, strict=True)]
        labels = [free_label(name, by) for name in ("true_count", "released_count")]
        return [*chunk, *(Cell(label, count) for label, count in zip(labels, counts, strict=True))], mape


def _aligned(all_cells: Cells, some: Cells) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The counts of ``some`` at the cells of ``all_cells``, zero where it has none."""
    known = dict(zip(zip(*some.codes, strict=True), some.counts.tolist(), strict=True))
    return np.array([known.get(key, 0) for key in zip(*all_cells.codes, strict=True)], dtype=np.int64)


def draw(
    plan: SwapPlan,
    data: Data | None = None,
    linked: Mapping[str, Data] | None = None,
    *,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> SwapRelease:
    """Swap, once. ``source`` other than the operating system's is for tests and marks what it touches."""
    source = source or SystemSource()
    progress = progress or Silent()
    progress.stage("reading")
    dataset = load(plan, data, linked)
    for by in plan.tables:
        check_table(dataset, by)
    progress.stage("checking what would be laid open")
    refuse_stops(find_stops(dataset), plan.allow)
    progress.stage("counting the invariants")
    margins = count_margins(dataset)
    strata = strata_of_dataset(dataset, margins)
    progress.stage("swapping")
    moves = kernel.draw(dataset.strata, strata.sizes, plan.rate, source)
    table = dataset.table.replace(
        {column.name: column.with_codes(moves.apply(column.codes)) for column in dataset.table.pick(plan.swap)}
    )
    progress.stage("recounting the invariants")
    recount(dataset, table)
    progress.stage("putting rows in order")
    rows = put_in_order(dataset.columns, plan.id, table, bool(dataset.linked), source)
    followers = tuple(follow(rows, entry, source) for entry in dataset.linked if isinstance(rows, ShuffledRows))
    return SwapRelease(
        dataset=dataset,
        table=table,
        rows=rows,
        linked=followers,
        margins=margins,
        specification=specify(plan, dataset.held, dataset.linked_columns, strata, source.for_release),
        for_release=source.for_release,
    )


def recount(dataset: Dataset, table: Table) -> None:
    """Refuse to go on unless the swapped table has the invariants of the data.

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
        _mark_different(dataset.table[name].codes, table[name].codes, changed)
    rows = np.flatnonzero(changed)
    margin = (*plan.match, *plan.swap)
    counts = [
        cells([column.with_codes(column.codes[rows]) for column in source.pick(margin)], len(rows))
        for source in (dataset.table, table)
    ]
    if not counts[0].equals(counts[1]):
        raise errors.invariants_broken(Margin(MAIN, margin).words())


@compiled
def _mark_different(before, after, changed):  # type: ignore[no-untyped-def]
    for i in range(len(before)):
        if before[i] != after[i]:
            changed[i] = True


def release(
    plan: SwapPlan,
    data: Data | None = None,
    linked: Mapping[str, Data] | None = None,
    *,
    out: str | Path,
    confidential: str | Path | None = None,
    progress: Progress | None = None,
    ledger: Ledger | str | Path | None = None,
) -> SwapRelease:
    """Draw and write: the whole job, with the operating system's randomness.

    With a ledger the release is counted before it appears, or refused; what was drawn is then thrown away unseen.
    """
    targets = [Path(target) for target in (out, confidential) if target is not None]
    for target in targets:
        check_target(target.absolute())
    if len({os.path.realpath(target) for target in targets}) < len(targets):
        raise errors.one_folder_for_both(targets[0])
    if isinstance(ledger, str | Path):
        ledger = Ledger.open(ledger)
    if ledger is not None:
        ledger.check_dataset(plan.dataset)
    drawn = draw(plan, data, linked, progress=progress)
    if ledger is not None:
        ledger.check(drawn.specification)
    drawn.write(out, confidential=confidential, progress=progress, ledger=ledger)
    return drawn
