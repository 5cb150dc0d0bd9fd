"""Finishes a TopDown draw: fits tables to the measurements, and writes them as rows into the release folder.

Everything here is post-processing of the measurements and of the invariants' values: it costs nothing, and can be done
again from the same work folder, with other constraints or other tables to publish.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._progress import Progress, current, stage
from stirred.invariants import Margin
from stirred.margins.spine import Spine
from stirred.releases.folder.atomic import PARTS
from stirred.releases.folder.documents import Certificate, ReleasedTable, write_documents
from stirred.releases.folder.manifest import NAME, digest_of
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.steps import Request, publishing
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.tables import Column, Table
from stirred.tables.writing import EXTENSIONS, Cell, Chunk, write_table
from stirred.topdown.checking.comparison import Accuracy, compare, write_accuracy
from stirred.topdown.checking.fit_bias import ExpectedBias, expected_bias
from stirred.topdown.data.constraints import Agreement
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.data.histograms import Counts, Histograms
from stirred.topdown.documents import readme
from stirred.topdown.fitting.relations import RelatedSteps, RelatedTables
from stirred.topdown.fitting.table_fit import FinishedLevels, LevelReport, fit_table
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    MEASUREMENTS,
    Measurements,
    counts_table,
    fingerprint,
    invariant_files,
    measurement_files,
)
from stirred.topdown.mechanism import MECHANISM
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import TableSection

if TYPE_CHECKING:
    from stirred.topdown.drawing import TopDownDraw

ROWS = 1 << 20
"""Rows that are made at a time."""
PLACE, ATTRIBUTE = "place", "attribute"
ORDER = "by place, then by values in the order of the plan"


def place_columns(plan: TopDownPlan, spine: Spine) -> list[Column]:
    """For every level that is a column, the unit that each leaf lies in."""
    columns = []
    units = np.arange(spine.leaves, dtype=np.int64)
    for level in range(len(spine.levels) - 1, len(spine.levels) - len(plan.spine.levels) - 1, -1):
        columns.append(Column(spine.levels[level], units.astype(np.uint32), spine.names[level]))
        units = spine.parents(level)[units] if level else units
    return columns[::-1]


def attribute_columns(table: TableSection) -> list[Column]:
    """For every attribute, under the name of its column, the code that each cell has."""
    schema = table.schema_of
    cells = np.arange(schema.cells, dtype=np.int64)
    columns = []
    for at, attribute in enumerate(table.attributes):
        codes = (cells // math.prod(schema.shape[at + 1 :])) % schema.shape[at]
        columns.append(
            Column(attribute.column or attribute.name, codes.astype(np.uint32), pa.array(attribute.values, pa.string()))
        )
    return columns


def rows(plan: TopDownPlan, spine: Spine, table: TableSection, leaves: Histograms) -> Iterator[Chunk]:
    """The records of a table, a bounded number at a time; one chunk without rows if there are none."""
    places, attributes = place_columns(plan, spine), attribute_columns(table)
    leaf = np.repeat(np.arange(leaves.units, dtype=np.int64), np.diff(leaves.starts))
    ends = np.cumsum(leaves.counts)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, max(total, 1), ROWS):
        entry = _entries(ends, first, min(total, first + ROWS))
        cells = leaves.cells[entry]
        yield [
            *(Cell(column.name, column.codes[leaf[entry]], column) for column in places),
            *(Cell(column.name, column.codes[cells], column) for column in attributes),
        ]


def _entries(ends: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """The entries of the histograms that the records from ``first`` up to ``last`` belong to.

    >>> _entries(np.array([2, 3, 7]), 1, 5).tolist()
    [0, 1, 2, 2]
    """
    begin, end = np.searchsorted(ends, [first, last - 1], side="right") if last > first else (0, -1)
    inside = np.arange(begin, end + 1)
    bounds = np.clip(ends[begin : end + 1], first, last)
    return np.repeat(inside, np.diff(np.concatenate([[first], bounds])))


def described(plan: TopDownPlan, spine: Spine, table: TableSection, records: int) -> ReleasedTable:
    """The table as the data dictionary states it."""
    places, attributes = place_columns(plan, spine), attribute_columns(table)
    return ReleasedTable(
        table.name,
        table.name + EXTENSIONS[plan.format],
        plan.format,
        records,
        ORDER,
        (*((column.name, PLACE) for column in places), *((column.name, ATTRIBUTE) for column in attributes)),
        Table(table.name, records, {column.name: column for column in (*places, *attributes)}),
    )


_SHOWN_FALLBACKS = 5


@dataclass(frozen=True, eq=False, repr=False)
class TopDownRelease:
    """A fitted release, ready to be written or used in memory."""

    draw: TopDownDraw
    leaves: Mapping[str, Histograms]
    """By table, the fitted histograms of the leaves."""
    reports: tuple[LevelReport, ...]

    def __repr__(self) -> str:
        records = ", ".join(f"{int(one.counts.sum()):,} {name}" for name, one in self.leaves.items())
        return f"<TopDownRelease of {records}; .specification, .counts(table, level, by), .write(out)>"

    @property
    def plan(self) -> TopDownPlan:
        """The plan."""
        return self.draw.plan

    @property
    def specification(self) -> Specification:
        """The guarantee."""
        return self.draw.specification

    @property
    def fitted(self) -> Counted:
        """The fitted tables as counts on the geography."""
        return Counted(self.plan, self.draw.spine, self.leaves)

    def counts(self, table: str, level: str, by: tuple[str, ...] = ()) -> Counts:
        """Released counts: a row for each unit of a level, a column for each group of the marginal ``by``."""
        return self.fitted.counts(table, level, by)

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines for the terminal that say what was released."""
        rho = display(self.specification.budget.number)
        lines = [
            ", ".join(f"{int(one.counts.sum()):,} {name}" for name, one in self.leaves.items()),
            f"rho {rho} per {self.plan.unit}, given the invariants",
        ]
        fallbacks = [(report, unit, words) for report in self.reports for unit, words in report.fallbacks]
        lines += [
            f"{report.table} below {unit} (level {report.level}): {words}"
            for report, unit, words in fallbacks[:_SHOWN_FALLBACKS]
        ]
        if len(fallbacks) > _SHOWN_FALLBACKS:
            lines.append(f"... and {len(fallbacks) - _SHOWN_FALLBACKS} more; certificate.json lists all")
        return tuple(lines)

    def write(
        self,
        out: str | Path,
        *,
        confidential: str | Path | None = None,
        data: Data | None = None,
        ledger: Ledger | str | Path | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder. ``confidential`` also receives the errors against the true counts, for which
        ``data`` are read (or the plan's own files) where the draw did not keep them. :func:`stirred.verbs.write` writes
        a report too."""
        asked = Request.of(out, confidential=confidential, ledger=ledger, for_tests=for_tests, progress=progress)
        with publishing(MECHANISM, self, data, asked):
            return asked.out

    def write_confidential(self, folder: Path, data: Data | None = None) -> None:
        """Write the errors against the true counts. Confidential."""
        truth = self.draw.truth if self.draw.truth is not None else count_tables(self.plan, data)
        write_accuracy(folder, self.accuracy(truth))

    def accuracy(self, truth: Counted) -> list[Accuracy]:
        """Errors of every query at every level. Confidential."""
        return compare(self.fitted, truth)

    def write_files(self, folder: Path) -> Certificate:
        """Write everything that a recipient gets into an empty folder, but the certificate, which is returned."""
        plan, spine = self.plan, self.draw.spine
        stage("writing microdata")
        tables = []
        for table in plan.released:
            leaves = self.leaves[table.name]
            tables.append(described(plan, spine, table, int(leaves.counts.sum())))
            write_table(folder / tables[-1].file, plan.format, rows(plan, spine, table, leaves))
        stage("writing tables and documents")
        if plan.publish:
            (folder / "tables").mkdir()
        for wanted in plan.publish:
            counts = self.counts(wanted.table, wanted.level, wanted.by)
            table = counts_table(plan, spine, wanted.table, wanted.level, wanted.by, counts)
            pc.write_csv(table, folder / "tables" / f"{wanted.name}.csv")
        for name in (*measurement_files(plan, spine), *invariant_files(plan)):
            (folder / name).parent.mkdir(exist_ok=True)
            # By list, since a work folder may hold an editor's copy of something confidential.
            _put(self.draw.folder / name, folder / name, link=self.draw.removed_next)
        ways = {report.table: report.way for report in self.reports}
        found = [
            expected_bias(plan, spine, self.draw.exact, table, records=int(self.leaves[table.name].counts.sum()))
            for table in plan.released
        ]
        # As the certificate has them, rounded, since a recipient has no others.
        biases = [ExpectedBias.from_published(one.published()) for one in found if one is not None]
        write_documents(folder, self.specification, tables, readme(self.specification, plan, tables, ways, biases))
        more = {
            "expected_bias": [one.published() for one in biases],
            "fit": [report.published() for report in self.reports],
            "geography_sha256": digest_of(folder / MEASUREMENTS / GEOGRAPHY_FILE),
            "agrees_with": [one.published() for one in self.draw.agreements],
        }
        return Certificate(plan, self.specification, self._margins(), self.draw.for_release, self.draw.nonce, more)

    def _margins(self) -> list[Margin]:
        """Each invariant; those of released tables are recounted from what is written."""
        found = []
        for invariant, values in zip(self.plan.invariants, self.draw.exact, strict=True):
            if invariant.table in self.leaves:
                recounted = self.counts(invariant.table, invariant.level, invariant.by)
                if not np.array_equal(recounted, values):
                    raise errors.invariants_broken(str(invariant.margin))
            found.append(invariant.margin.counted_as(values.size, fingerprint(values)))
        return found


def _put(file: Path, place: Path, *, link: bool) -> None:
    """Put a file of a draw into a release: a copy, since the release is to be given away, and the work folder stays
    private and unchanged.

    With ``link`` it is the file itself under a second name, for a work folder that is removed next: measurements are
    nearly all of both folders, and need not be on disk twice. A run that is killed in between leaves a whole draw, with
    or without a whole release.
    """
    if link:
        with contextlib.suppress(OSError):  # a file system without second names
            os.link(file, place, follow_symlinks=False)
            return
    shutil.copyfile(file, place, follow_symlinks=False)


def fit(draw: TopDownDraw, progress: Progress | None = None) -> TopDownRelease:
    """Fit every table of a draw, in memory; goes on from levels that an interrupted fit has finished."""
    progress = progress or current()
    finished = _finished_levels(draw)
    plan, spine, exact = draw.plan, draw.spine, draw.exact
    found = fit_tables(plan, spine, exact, draw.measurements, progress, draw.agreements, finished)
    reports = [report for table in plan.released for report in found[table.name][1]]
    return TopDownRelease(draw, {table.name: found[table.name][0] for table in plan.released}, tuple(reports))


def fit_tables(
    plan: TopDownPlan,
    spine: Spine,
    exact: Sequence[Counts],
    measurements: Measurements,
    progress: Progress,
    agreements: Sequence[Agreement] = (),
    finished: FinishedLevels | None = None,
) -> dict[str, tuple[Histograms, list[LevelReport]]]:
    """Fit every released table, those first that relations of others count; by table, its leaves and how it went."""
    together = RelatedTables.of(plan, spine, exact, agreements)
    leaves: dict[str, Histograms] = {}
    found = {}
    for table in plan.order_of_fit:
        related = RelatedSteps(together, table, leaves) if table.name in together.rules else None
        given = (plan, spine, exact, measurements, table, progress, agreements, finished)
        found[table.name] = fit_table(*given, related)
        leaves[table.name] = found[table.name][0]
    return found


def _finished_levels(draw: TopDownDraw) -> FinishedLevels | None:
    """Where finished levels of this draw and plan are kept; None for a draw that has no manifest yet."""
    manifest = draw.folder / NAME
    if not manifest.is_file():
        return None
    agreed = [one.published() for one in draw.agreements]
    belongs_to = [version("stirred"), draw.plan.hash(), draw.nonce, digest_of(manifest), agreed]
    return FinishedLevels(draw.folder / PARTS, hashlib.sha256(json.dumps(belongs_to).encode()).hexdigest())
