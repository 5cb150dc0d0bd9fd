"""Finish: fit what was drawn, and write a release folder that appears whole or not at all.

Everything here is post-processing of the measurements and of the invariants' values: it costs nothing, and can be done
again from the same work folder, with other constraints or other tables asked for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pc

from stirred import errors
from stirred.releases.documents import README, RecountedInvariant, write_certificate, write_dictionary
from stirred.releases.folder import appearing, check_target
from stirred.releases.ledger import Ledger
from stirred.releases.manifest import digest_of, write_manifest
from stirred.releases.progress import Progress, Silent
from stirred.spec import Specification
from stirred.tables.write import write_table
from stirred.topdown.accuracy import Accuracy, compare, write_confidential
from stirred.topdown.agreement import require_counted
from stirred.topdown.constraints import Counts, invariant_words
from stirred.topdown.counting import Counted, count_tables
from stirred.topdown.drawing import (
    DRAWN,
    GEOGRAPHY,
    INVARIANTS,
    MEASUREMENTS,
    Drawn,
    counts_table,
    draw,
    fingerprint,
    reopen,
)
from stirred.topdown.fitting import LevelReport, fit_table
from stirred.topdown.microdata import described, rows
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import AskedSection
from stirred.topdown.problems import Histograms
from stirred.topdown.words import readme


@dataclass(frozen=True, eq=False, repr=False)
class TopDownRelease:
    """A fitted release, ready to be written or used in memory."""

    drawn: Drawn
    leaves: Mapping[str, Histograms]
    """By table, the fitted histograms of the leaves."""
    reports: tuple[LevelReport, ...]

    def __repr__(self) -> str:
        records = ", ".join(f"{int(one.counts.sum()):,} {name}" for name, one in self.leaves.items())
        return f"<TopDownRelease of {records}; .specification, .counts(table, level, by), .write(out)>"

    @property
    def plan(self) -> TopDownPlan:
        return self.drawn.plan

    @property
    def specification(self) -> Specification:
        return self.drawn.specification

    @property
    def fitted(self) -> Counted:
        return Counted(self.plan, self.drawn.spine, self.leaves)

    def counts(self, table: str, level: str, by: tuple[str, ...] = ()) -> Counts:
        """Released counts: a row for each unit of a level, a column for each group of the marginal ``by``."""
        return self.fitted.counts(table, level, by)

    def write(
        self,
        out: str | Path,
        *,
        confidential: str | Path | None = None,
        truth: Counted | None = None,
        ledger: Ledger | None = None,
        for_tests: bool = False,
        progress: Progress | None = None,
    ) -> Path:
        """Write the release folder. ``confidential`` also receives the errors against the ``truth``."""
        if not self.drawn.for_release and not for_tests:
            raise errors.seeded_release()
        progress, out = progress or Silent(), Path(out)
        if ledger is not None:
            require_entry(self.drawn, ledger)
        with appearing(out) as folder:
            self._write_folder(folder, progress)
            if confidential is not None and truth is not None:  # appears before the release, which comes last
                progress.stage("comparing with the truth")
                with appearing(Path(confidential), private=True) as private:
                    write_confidential(private, self.accuracy(truth))
        if ledger is not None and self.drawn.entry is not None:
            with contextlib.suppress(errors.LedgerError):  # a note only: the draw was counted
                note_release(ledger, self.drawn.entry[0], out)
        return out

    def accuracy(self, truth: Counted) -> list[Accuracy]:
        """Errors of every query at every level. Confidential."""
        return compare(self.fitted, truth)

    def _write_folder(self, folder: Path, progress: Progress) -> None:
        plan, spine = self.plan, self.drawn.spine
        progress.stage("writing microdata")
        tables = []
        for table in plan.released:
            leaves = self.leaves[table.name]
            tables.append(described(plan, spine, table, int(leaves.counts.sum())))
            write_table(folder / tables[-1].file, plan.format, rows(plan, spine, table, leaves))
        progress.stage("writing tables and documents")
        if plan.asked:
            (folder / "tables").mkdir()
        for asked in plan.asked:
            write_asked(folder / "tables" / f"{asked.name}.csv", self, asked)
        for part in (MEASUREMENTS, INVARIANTS):
            # Copies, not links: the release is to be given away, and the work folder stays private and unchanged.
            shutil.copytree(self.drawn.folder / part, folder / part, copy_function=shutil.copyfile)
        write_dictionary(folder, tables)
        certificate = {
            "fit": [report.published() for report in self.reports],
            "geography_sha256": digest_of(self.drawn.folder / MEASUREMENTS / GEOGRAPHY),
            "agrees_with": [one.published() for one in self.drawn.agreements],
        }
        write_certificate(
            folder, plan, self.specification, self._invariants(), None, self.drawn.randomness, certificate
        )
        (folder / README).write_text(readme(self.specification, plan, tables), encoding="utf-8")
        write_manifest(folder)

    def _invariants(self) -> list[RecountedInvariant]:
        """Each invariant; those of released tables are recounted from what is written."""
        found = []
        for invariant, values in zip(self.plan.invariants, self.drawn.exact, strict=True):
            if invariant.table in self.leaves:
                recounted = self.counts(invariant.table, invariant.level, invariant.by)
                if not np.array_equal(recounted, values):
                    raise errors.invariants_broken(invariant_words(invariant))
            columns = (invariant.level, *invariant.by)
            found.append(
                RecountedInvariant(
                    invariant.table, columns, invariant_words(invariant), values.size, fingerprint(values)
                )
            )
        return found


def fit(drawn: Drawn, progress: Progress | None = None) -> TopDownRelease:
    """Fit every table of a draw, in memory."""
    progress = progress or Silent()
    leaves: dict[str, Histograms] = {}
    reports: list[LevelReport] = []
    for table in drawn.plan.released:
        leaves[table.name], made = fit_table(
            drawn.plan, drawn.spine, drawn.exact, drawn.measurements, table, progress, drawn.agreements
        )
        reports += made
    return TopDownRelease(drawn, leaves, tuple(reports))


def write_asked(path: Path, release: TopDownRelease, asked: AskedSection) -> None:
    """A table that was asked for: every unit and every group, also where the count is 0."""
    counts = release.counts(asked.table, asked.level, asked.by)
    table = counts_table(release.plan, release.drawn.spine, asked.table, asked.level, asked.by, counts)
    pc.write_csv(table, path)


def require_entry(drawn: Drawn, ledger: Ledger) -> None:
    """Refuse a ledger that does not have the entry that paid for a draw."""
    known = drawn.entry is not None and drawn.entry in [(entry.id, entry.seal) for entry in ledger.entries()]
    if not known:
        raise errors.topdown_work(drawn.folder, f"the ledger {ledger.path} did not count its measurements")


def note_release(ledger: Ledger, entry: int, out: Path) -> None:
    """The first release of a draw is noted in its entry; a further one becomes an entry that costs nothing."""
    spent = ledger.entries()[entry - 1]
    if spent.finished_at is None:
        ledger.finished(entry, out)
    else:
        ledger.record(None, f"a further fit of entry {entry}", out, derived_from=entry)


def release(
    plan: TopDownPlan,
    data: Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    work: str | Path | None = None,
    confidential: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> TopDownRelease:
    """Draw, or go on from a work folder that is there, then fit and write: the whole job.

    Without ``work`` a folder beside ``out`` is used; it is removed once the release is there, and left for another try
    if the fit is interrupted.
    """
    out, progress = Path(out), progress or Silent()
    place = Path(work) if work is not None else default_work(out)
    targets = [out, place, *([Path(confidential)] if confidential is not None else [])]
    for target in targets:
        if target != place:
            check_target(target.absolute())
    if len({os.path.realpath(target) for target in targets}) < len(targets):
        raise errors.one_folder_for_both(out)
    if isinstance(ledger, str | Path):
        ledger = Ledger.open(ledger)
    drawn = (
        reopen(plan, place)
        if os.path.lexists(place)
        else draw(plan, data, work=place, ledger=ledger, progress=progress)
    )
    if ledger is not None:
        require_entry(drawn, ledger)
        require_counted(drawn.agreements, ledger)
    truth = count_tables(plan, data) if confidential is not None else None
    fitted = fit(drawn, progress)
    fitted.write(out, confidential=confidential, truth=truth, ledger=ledger, progress=progress)
    if work is None:
        shutil.rmtree(place)
    return fitted


def default_work(out: Path) -> Path:
    return out.with_name(f"{out.name}-work")


def is_work(folder: Path) -> bool:
    return (folder / DRAWN).is_file()
