"""What the custodian of a swapped release can know and must keep: true errors, and what the invariants reveal.

True tables are counted from the confidential file, released ones from the folder. Keep in mind: rows of a release are
sorted anew, so nothing here says which records moved, nor how many; nobody can know that from the two files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stirred import errors
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import CustodianNote, Data
from stirred.releases.progress import Progress
from stirred.swap.counted_tables import CountedTable, counted_table
from stirred.swap.dataset import Dataset, load
from stirred.swap.margins import count_margins
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import PublishedTable
from stirred.swap.revealing import Revealing, alone_in_a_margin, reveal_swap
from stirred.swap.sources import source_of
from stirred.swap.verifying import read_files

_MOST_TABLES = 5
"""Tables that are compared where the plan publishes none."""


def for_custodian(
    release: ReleaseFolder, plan: SwapPlan, data: Data | None, progress: Progress
) -> Iterator[CustodianNote]:
    """Errors of the published tables, or of swapped by held columns where there are none; then what is revealed."""
    progress.stage("reading")
    dataset = load(plan, data)
    progress.stage("comparing with the true values")
    stated = [entry.get("sha256") for entry in release.certificate["invariants"]]
    for counted in count_margins(dataset).counted:
        if counted.margin.sha256 not in stated:
            raise errors.appendix_other_data(str(counted.margin))
    yield _errors(release, plan, dataset)
    progress.stage("counting what the invariants reveal")
    yield from _revealed(reveal_swap(dataset), alone_in_a_margin(dataset))


def _errors(release: ReleaseFolder, plan: SwapPlan, dataset: Dataset) -> CustodianNote:
    true, released = source_of(dataset), read_files(release, plan).source()
    asked = plan.published_tables or tuple(
        PublishedTable(by=(plan.swap[0], name)) for name in dataset.held[:_MOST_TABLES]
    )
    rows = [_row(one, counted_table(true, one), counted_table(released, one)) for one in asked]
    words = (
        "Counted from the released rows as they stand, against the confidential file. The relative error is a mean "
        "over cells that are not 0 in truth. The corrected estimates of stirred estimate are not compared here."
    )
    head = ("table", "cells", "cells that differ", "mean absolute error", "largest error", "mean relative error")
    return CustodianNote("errors", words, (head, *rows))


def _row(asked: PublishedTable, true: CountedTable, released: CountedTable) -> tuple[str, ...]:
    mine, theirs = _by_cell(true), _by_cell(released)
    cells = list(dict.fromkeys([*mine, *theirs]))
    before = np.array([mine.get(cell, 0.0) for cell in cells])
    error = np.abs(np.array([theirs.get(cell, 0.0) for cell in cells]) - before)
    some = before != 0
    relative = float((error[some] / np.abs(before[some])).mean()) if some.any() else 0.0
    return (
        asked.words, f"{len(cells):,}", f"{int(np.count_nonzero(error)):,}",
        f"{error.sum() / max(len(error), 1):,.4g}", f"{error.max(initial=0.0):,.6g}", f"{100 * relative:.3g}%",
    )  # fmt: skip


def _by_cell(table: CountedTable) -> dict[tuple[str | None, ...], float]:
    """The numbers of a table by the texts of its values: two files number their values each in their own way."""
    texts = [column.texts() for column in table.columns]
    labels = zip(*([text[code] for code in codes] for text, codes in zip(texts, table.codes, strict=True)), strict=True)
    return dict(zip(labels, table.numbers.floats().tolist(), strict=True))


def _revealed(found: Revealing, alone: int) -> Iterator[CustodianNote]:
    counts = found.counts
    words = (
        "What the published counts show by themselves, at any rate of swapping. It is no part of epsilon, and whoever "
        "has the release can compute it too."
    )
    rows = [
        ("shown as they are: only one table has these counts", counts.determined_records),
        ("must lie in a certain combination of held and swapped values", counts.pinned_records),
        ("swapped values guessed rightly by naming the commonest of the stratum", counts.guessed),
        ("only record of some published count", alone),
        ("unique on match and held values", found.levels[0].alone),
    ]
    table = tuple((name, f"{many:,}", f"{100 * many / counts.records:.1f}%") for name, many in rows)
    yield CustodianNote("revealed", words, (("records", "number", "of all records"), *table))
    if found.beliefs is None:
        return
    laws = {
        "hypergeometric": "every assignment of swapped values is equally likely",
        "uniform": "every table is equally likely",
    }
    believed = tuple(
        (laws.get(one.law, one.law), f"{100 * one.guessed_share:.1f}%", f"{100 * one.whole_share:.2f}%")
        for one in found.beliefs.laws
    )
    if believed:
        head = ("if", "swapped values guessed rightly", "records whose whole group has one swapped value")
        yield CustodianNote("revealed", "An attacker who knows these counts and nothing else.", (head, *believed))
