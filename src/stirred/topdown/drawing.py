"""Draws and releases by TopDown: counts the data once, measures with exact noise, and keeps that in a work folder.

From then on the data are not needed any more: a fit reads measurements, the public geography and the values of the
invariants, as often as wanted. The budget of an existing work folder is spent: drawing again spends again, finishing
from it does not (:mod:`stirred.releases.steps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from stirred._progress import Progress, current
from stirred.margins.spine import Spine
from stirred.noise import RandomSource, SystemSource
from stirred.releases import steps
from stirred.releases.folder.documents import draw_nonce
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Data
from stirred.releases.steps import Request, releasing
from stirred.spec import Specification
from stirred.topdown.data.constraints import (
    Agreement,
    invariant_values,
    read_agreements,
    require_agreement,
    require_kept,
    require_nested,
)
from stirred.topdown.data.counting import Counted, count_tables
from stirred.topdown.data.histograms import Counts
from stirred.topdown.finishing import TopDownRelease, fit
from stirred.topdown.fitting.relations import RelatedTables, require_related
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    INVARIANTS,
    MEASUREMENTS,
    DrawRecord,
    Measurements,
    measure,
    read_geography,
    read_invariants,
    read_record,
    write_geography,
    write_invariants,
    write_record,
)
from stirred.topdown.mechanism import MECHANISM
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify


@dataclass(frozen=True, eq=False, repr=False)
class TopDownDraw:
    """A TopDown draw in a work folder: measurements, invariants, and the ledger's entry."""

    folder: Path
    plan: TopDownPlan
    spine: Spine
    exact: tuple[Counts, ...]
    """The value of each invariant, a row for each unit of its level."""
    agreements: tuple[Agreement, ...]
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


def prepare(
    plan: TopDownPlan, data: Data | None, progress: Progress, *, with_areas: bool = False
) -> tuple[Counted, tuple[Counts, ...], tuple[Agreement, ...]]:
    """Count the data, and raise if they contradict the plan; called before any noise is drawn."""
    progress.stage("reading and counting")
    require_nested(plan)
    counted = count_tables(
        plan, data, with_areas=with_areas, told=lambda done: progress.stage("reading and counting", done)
    )
    progress.stage("looking for contradictions")
    exact = invariant_values(counted)
    require_kept(counted, exact)
    require_related(counted)
    agreements = read_agreements(plan, counted.spine)
    require_nested(plan, agreements)
    require_agreement(plan, counted.spine, exact, agreements)
    RelatedTables.of(plan, counted.spine, exact, agreements)
    return counted, exact, agreements


def draw_into(
    folder: Path,
    plan: TopDownPlan,
    data: Data | None = None,
    *,
    keep_truth: bool = False,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> TopDownDraw:
    """Measure once into a folder that has no manifest yet."""
    source, progress = source or SystemSource(), progress or current()
    counted, exact, agreements = prepare(plan, data, progress)
    (folder / MEASUREMENTS).mkdir()
    measure(counted, folder / MEASUREMENTS, source, progress)
    progress.stage("writing geography and invariants")
    write_geography(folder / MEASUREMENTS / GEOGRAPHY_FILE, plan, counted.spine)
    write_invariants(folder / INVARIANTS, plan, counted.spine, exact)
    return TopDownDraw(
        folder=folder,
        plan=plan,
        spine=counted.spine,
        exact=exact,
        agreements=agreements,
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
    exact = read_invariants(work / INVARIANTS, plan, spine)
    agreements = read_agreements(plan, spine)
    require_nested(plan, agreements)
    require_agreement(plan, spine, exact, agreements)
    stated = specify(plan, record.for_release)
    return TopDownDraw(work, plan, spine, exact, agreements, stated, record.for_release, record.nonce, record.entry)


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
