"""Draws and releases by TopDown: counts the data once, measures with exact noise, and keeps that in a work folder.

From then on the data are not needed any more. Finishing a draw fits tables to the measurements, and writes them as rows
into the release folder: post-processing of measurements, the public geography and the values of the invariants, which
costs nothing and can be done again, with other constraints or other tables to publish. The budget of an existing work
folder is spent: drawing again spends again, finishing from it does not (:mod:`stirred.releases.steps`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from stirred import errors
from stirred._progress import Progress, shown_by, stage, telling
from stirred.invariants import Margin
from stirred.margins.spine import Spine
from stirred.noise import RandomSource, SystemSource
from stirred.releases import steps
from stirred.releases.folder.atomic import PARTS
from stirred.releases.folder.documents import Certificate, ReleasedTable, draw_nonce, write_documents
from stirred.releases.folder.manifest import NAME, digest_of
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.steps import Request, Writable, releasing
from stirred.spec import Specification
from stirred.spec.exact import display
from stirred.tables import Column, Table
from stirred.tables.writing import EXTENSIONS, Cell, Chunk, write_table
from stirred.topdown.checking.comparison import Accuracy, compare, write_accuracy
from stirred.topdown.checking.fit_bias import ExpectedBias, expected_bias
from stirred.topdown.data.constraints import Known, require_kept, require_nested
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.data.histograms import Counts, Histograms
from stirred.topdown.documents import readme
from stirred.topdown.fitting.relations import RelatedSteps, RelatedTables, require_related
from stirred.topdown.fitting.table_fit import FinishedLevels, LevelReport, fit_table
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    INVARIANTS,
    MEASUREMENTS,
    DrawRecord,
    Measurements,
    counts_table,
    fingerprint,
    invariant_files,
    measure,
    measurement_files,
    read_geography,
    read_invariants,
    read_record,
    write_record,
)
from stirred.topdown.mechanism import MECHANISM
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.sections import TableSection

ROWS = 1 << 20
"""Rows that are made at a time."""
PLACE, ATTRIBUTE = "place", "attribute"
ORDER = "by place, then by values in the order of the plan"
_SHOWN_FALLBACKS = 5


@dataclass(frozen=True, eq=False, repr=False)
class TopDownDraw:
    """A TopDown draw in a work folder: measurements, invariants, and the ledger's entry."""

    folder: Path
    known: Known
    """The plan, the geography, the value of each invariant, and earlier releases."""
    specification: Specification
    for_release: bool
    nonce: str
    """The identity of the draw."""
    entry: tuple[int, str] | None = None
    truth: Counted | None = None
    """The true counts, where this run has read the data and was asked to keep them. Confidential."""
    removed_next: bool = False
    """Whether the folder is removed as soon as the release is written."""

    def __repr__(self) -> str:
        return f"<TopDownDraw in {self.folder}; .specification, .measurements, .finish()>"

    @property
    def plan(self) -> TopDownPlan:
        """The plan."""
        return self.known.plan

    @property
    def spine(self) -> Spine:
        """The geography."""
        return self.known.spine

    @property
    def measurements(self) -> Measurements:
        """The noisy measurements of the work folder."""
        return Measurements(self.folder / MEASUREMENTS)

    def finish(self, progress: Progress | None = None) -> TopDownRelease:
        """Fit every table, in memory. Costs nothing and can be repeated."""
        return fit(self, progress)

    def seal(self, work: Path, entry: tuple[int, str] | None) -> TopDownDraw:
        """Write the ledger's entry and the manifest; returns the draw as it will be in ``work``."""
        write_record(self.folder, self.plan, DrawRecord(self.for_release, entry, self.nonce))
        return replace(self, folder=work, entry=entry)

    def to_be_removed(self) -> TopDownDraw:
        """The draw, in a folder that is removed as soon as the release is written."""
        return replace(self, removed_next=True)


def prepare(plan: TopDownPlan, data: Data | None, *, with_areas: bool = False) -> tuple[Counted, Known]:
    """Count the data, and raise if they contradict the plan; called before any noise is drawn."""
    stage("reading and counting")
    require_nested(plan)
    counted = count_tables(plan, data, with_areas=with_areas, told=telling("reading and counting"))
    stage("looking for contradictions")
    known = Known.of(counted)
    require_kept(counted, known)
    require_related(counted)
    known = known.with_earlier()
    RelatedTables.of(known)
    return counted, known


def draw_into(
    folder: Path,
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    keep_truth: bool = False,
    source: RandomSource | None = None,
) -> TopDownDraw:
    """Measure once into a folder that has no manifest yet."""
    source = source or SystemSource()
    counted, known = prepare(plan, data)
    (folder / MEASUREMENTS).mkdir()
    measure(counted, folder / MEASUREMENTS, source)
    stage("writing geography and invariants")
    known.write(folder)
    return TopDownDraw(
        folder=folder,
        known=known,
        specification=specify(plan, source.for_release),
        for_release=source.for_release,
        nonce=draw_nonce(source),
        truth=counted if keep_truth else None,
    )


def reopen(plan: TopDownPlan, work: str | Path) -> TopDownDraw:
    """A draw that was made before; the plan may differ in what only the fit uses."""
    work = Path(work)
    record = read_record(work, plan)
    spine = read_geography(work / MEASUREMENTS / GEOGRAPHY_FILE, plan)
    known = Known(plan, spine, read_invariants(work / INVARIANTS, plan, spine)).with_earlier()
    return TopDownDraw(work, known, specify(plan, record.for_release), record.for_release, record.nonce, record.entry)


def draw(
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    work: str | Path,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> TopDownDraw:
    """Measure once into the new folder ``work``. ``source`` other than the operating system's is for tests.

    ``data`` gives frames or paths by table in place of the plan's own, and the list of places as ``"geography"``.
    ``keep_truth`` keeps the true counts in memory, for the confidential comparison.
    """
    made = steps.draw(
        MECHANISM, plan, data, work=work, keep_truth=keep_truth, source=source, ledger=ledger, progress=progress
    )
    return cast(TopDownDraw, made)


def release(
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    out: str | Path,
    work: str | Path | None = None,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> TopDownRelease:
    """Make a release: draw, or continue from an existing work folder, then fit and write.

    Without ``work`` a folder beside ``out`` is used; it is removed once the release is written, and kept for another
    try if the fit is interrupted. :func:`stirred.release` writes a report too.
    """
    asked = Request.of(out, work=work, confidential=confidential, ledger=ledger, progress=progress)
    with releasing(MECHANISM, plan, data, asked) as made:
        return cast(TopDownRelease, made.release)


# -- finishing -----------------------------------------------------------------------------------------------


def place_columns(plan: TopDownPlan, spine: Spine) -> list[Column]:
    """For every level that is a column, the unit that each leaf lies in."""
    leaf, first = len(spine.levels) - 1, len(spine.levels) - len(plan.spine.levels)
    return [
        Column(spine.levels[at], spine.ancestors(at, leaf).astype(np.uint32), spine.names[at])
        for at in range(first, leaf + 1)
    ]


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


@dataclass(frozen=True, eq=False, repr=False)
class TopDownRelease(Writable):
    """A fitted release, ready to be written or used in memory."""

    mechanism = MECHANISM
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
            expected_bias(self.draw.known, table, records=int(self.leaves[table.name].counts.sum()))
            for table in plan.released
        ]
        # As the certificate has them, rounded, since a recipient has no others.
        biases = [ExpectedBias.from_published(one.published()) for one in found if one is not None]
        write_documents(folder, self.specification, tables, readme(self.specification, plan, tables, ways, biases))
        more = {
            "expected_bias": [one.published() for one in biases],
            "fit": [report.published() for report in self.reports],
            "geography_sha256": digest_of(folder / MEASUREMENTS / GEOGRAPHY_FILE),
            "agrees_with": [one.published() for one in self.draw.known.agreements],
        }
        return Certificate(plan, self.specification, self._margins(), self.draw.for_release, self.draw.nonce, more)

    def _margins(self) -> list[Margin]:
        """Each invariant; those of released tables are recounted from what is written."""
        found = []
        for invariant, values in zip(self.plan.invariants, self.draw.known.exact, strict=True):
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
    finished = _finished_levels(draw)
    with shown_by(progress):
        found = fit_tables(draw.known, draw.measurements, finished)
    reports = [report for table in draw.plan.released for report in found[table.name][1]]
    return TopDownRelease(draw, {table.name: found[table.name][0] for table in draw.plan.released}, tuple(reports))


def fit_tables(
    known: Known, measurements: Measurements, finished: FinishedLevels | None = None
) -> dict[str, tuple[Histograms, list[LevelReport]]]:
    """Fit every released table, those first that relations of others count; by table, its leaves and how it went."""
    together = RelatedTables.of(known)
    leaves: dict[str, Histograms] = {}
    found = {}
    for table in known.plan.order_of_fit:
        related = RelatedSteps(together, table, leaves) if table.name in together.rules else None
        found[table.name] = fit_table(known, measurements, table, finished, related)
        leaves[table.name] = found[table.name][0]
    return found


def _finished_levels(draw: TopDownDraw) -> FinishedLevels | None:
    """Where finished levels of this draw and plan are kept; None for a draw that has no manifest yet."""
    manifest = draw.folder / NAME
    if not manifest.is_file():
        return None
    agreed = [one.published() for one in draw.known.agreements]
    belongs_to = [version("stirred"), draw.plan.hash(), draw.nonce, digest_of(manifest), agreed]
    return FinishedLevels(draw.folder / PARTS, hashlib.sha256(json.dumps(belongs_to).encode()).hexdigest())
