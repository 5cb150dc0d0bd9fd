"""What the custodian of a TopDown release can know and must keep: true errors, and what the invariants reveal.

Released rows are counted from the folder, true ones from the confidential files. Keep in mind: the noise of the
measurements is public, but these errors are those of this one draw.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

from stirred import errors
from stirred._progress import stage
from stirred.releases.folder.atomic import CONFIDENTIAL
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import CustodianNote, Data
from stirred.topdown.checking.revealing import TopDownRevealing, alone_in_an_invariant, reveal_topdown
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import Counted, count_release, count_tables
from stirred.topdown.data.histograms import marginal_by
from stirred.topdown.measuring import fingerprint, parts
from stirred.topdown.plan.fields import TopDownPlan

NOTE = """\
CONFIDENTIAL. These errors compare the release with the data themselves. They are not covered by the guarantee: do not
publish them, and do not choose among several draws by them.
"""


@dataclass(frozen=True)
class Accuracy:
    """The errors of one query at one level, over all units and cells."""

    table: str
    level: str
    query: str
    cells: int
    mean_absolute_error: float
    root_mean_square_error: float
    largest_error: int
    noise_of_the_measurement: float
    """Standard error of each cell as measured, before the fit."""


def compare(released: Counted, truth: Counted) -> list[Accuracy]:
    """Errors of every measured query at every level."""
    plan, spine = released.plan, released.spine
    found = []
    for table in plan.released:
        schema = table.schema_of
        for number, level in enumerate(spine.levels):
            true = truth.histograms(table.name, number)
            fitted = released.histograms(table.name, number)
            for query in table.queries:
                cells = schema.number_of_groups(query.by)
                absolute, squared, largest = 0, 0, 0
                for units in parts(spine.units(number), cells):
                    chosen = np.arange(units.start, units.stop)
                    error = np.abs(
                        marginal_by(fitted.of_units(chosen), schema, query.by)
                        - marginal_by(true.of_units(chosen), schema, query.by)
                    )
                    absolute += int(error.sum())
                    squared += int((error * error).sum())
                    largest = max(largest, int(error.max(initial=0)))
                many = spine.units(number) * cells
                variance = table.variance_of(level, query, plan.one_place(level))
                found.append(
                    Accuracy(
                        table.name, level, query.name, many, absolute / many, math.sqrt(squared / many), largest,
                        math.inf if variance is None else math.sqrt(variance),
                    )
                )  # fmt: skip
    return found


def write_accuracy(folder: Path, found: list[Accuracy]) -> None:
    """Write ``errors.csv``, and a note that it is confidential."""
    (folder / CONFIDENTIAL).write_text(NOTE, encoding="utf-8")
    with (folder / "errors.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(field.name for field in fields(Accuracy))
        for row in found:
            lines.writerow(f"{one:.6g}" if isinstance(one, float) else one for one in astuple(row))


_LISTED = 200
"""Queries whose errors are listed; a plan may have thousands."""


def for_custodian(release: ReleaseFolder, plan: TopDownPlan, data: Data | None) -> Iterator[CustodianNote]:
    """Errors of every query at every level, then what the invariants reveal."""
    stage("reading and counting")
    truth = count_tables(plan, data)
    known = Known.of(truth)
    stated = [entry.get("sha256") for entry in release.certificate["invariants"]]
    for invariant, values in zip(plan.invariants, known.exact, strict=True):
        if fingerprint(values) not in stated:
            raise errors.appendix_other_data(str(invariant.margin))
    stage("comparing with the true values")
    leaves = {table.name: count_release(release, plan, truth.spine, table) for table in plan.released}
    yield _errors(Counted(plan, truth.spine, leaves), truth)
    stage("counting what the invariants reveal")
    yield from _revealed(reveal_topdown(known))
    for table in plan.released:
        alone = alone_in_an_invariant(truth, known.exact, table.name)
        if alone:
            many = int(truth.leaves[table.name].counts.sum())
            words = f"{table.name}: {alone:,} of {many:,} records are the only one of some count that is kept exactly."
            yield CustodianNote("revealed", words)


def _errors(released: Counted, truth: Counted) -> CustodianNote:
    found = compare(released, truth)
    words = (
        "The released rows against the confidential data, query by query; the last column is the noise of a count as "
        "it was measured, which is public."
    )
    if len(found) > _LISTED:
        words += f" The first {_LISTED} of {len(found):,} queries are listed."
    head = ("table", "level", "query", "counts", "mean absolute error", "largest", "noise")
    rows = tuple(
        (
            one.table, one.level, one.query.replace("*", " * "), f"{one.cells:,}", f"{one.mean_absolute_error:,.4g}",
            f"{one.largest_error:,}", f"{one.noise_of_the_measurement:,.4g}",
        )
        for one in found[:_LISTED]
    )  # fmt: skip
    return CustodianNote("errors", words, (head, *rows))


def _revealed(found: TopDownRevealing) -> Iterator[CustodianNote]:
    if not found.margins:
        yield CustodianNote("revealed", "The plan keeps nothing exactly, so no invariant reveals anything.")
        return
    rows = tuple(
        (one.margin, *(f"{many:,}" for many in (*one.few.values(), one.determined_records))) for one in found.margins
    )
    words = (
        "How many of the counts that are kept exactly hold so many records, and how many records are fixed in all "
        "their attributes. It is no part of rho, and whoever has the release can compute it too."
    )
    numbers = [name if name == "more" else f"counts of {name}" for name in found.margins[0].few]
    head = ("kept exactly", *numbers, "records fixed")
    yield CustodianNote("revealed", words, (head, *rows))
    for one in found.pairs:
        yield CustodianNote("revealed", f"{one.words}.")
