"""The custodian's confidential appendix to the report of a release: ledger total, true errors, what invariants reveal.

It is another file than the report, says on top that it must not be published, can be read by its owner only, and is
refused inside a release folder. Keep in mind: nothing of it is covered by the guarantee of the release.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stirred import errors
from stirred._progress import Progress, shown_by
from stirred.mechanisms import open_release, read_plan
from stirred.releases.folder import manifest
from stirred.releases.folder.atomic import new_file
from stirred.releases.mechanism import CustodianNote, Data
from stirred.reports.page import document, materials
from stirred.reports.page_elements import Markup, element, joined, listing, paragraphs, section, table
from stirred.reports.subjects import Subject, of_folder
from stirred.semantics.sentences.formatting import budget_line

if TYPE_CHECKING:
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.ledger.rows import Entry
    from stirred.releases.plans import Plan

WARNING = (
    "CONFIDENTIAL. Do not publish this file. It is computed from the confidential data and from the ledger, and the "
    "guarantee of the release does not cover it."
)
CAREFUL = (
    "Do not draw again because of what is written here, do not choose among draws by it, and do not change the plan "
    "after reading it: the guarantee does not cover such choices. Delete the file when it has served its purpose."
)
_TITLES = {"errors": "True errors of this release", "revealed": "What the invariants reveal about these data"}
_NOT_GIVEN = "Not computed: the plan of the release was not given, so its data were not read."
_NOT_OFFERED = "This mechanism offers no such numbers."


def appendix(
    release: str | Path,
    out: str | Path,
    *,
    plan: Plan | str | Path | None = None,
    data: Data | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the confidential appendix to the report of a release.

    Parameters
    ----------
    release
        A release folder.
    out
        The file to write; it must not exist, and must not lie in a release.
    plan
        The plan that the release was made from; its data are read.
    data
        Data to read in place of the plan's own paths.
    ledger
        The dataset's ledger, its path, or its address on a server.
    progress
        Receives the name of each stage when it begins; by default nothing is shown.

    Returns
    -------
    Path
        The file that was written, readable by its owner only.
    """
    from stirred.releases.ledger.ledger import Ledger

    out = Path(out)
    check_place(out)
    if plan is None and ledger is None:
        raise errors.appendix_of_nothing()
    mechanism, opened = open_release(release)
    opened_ledger = Ledger.open(ledger) if isinstance(ledger, str | Path) else ledger
    notes: Sequence[CustodianNote] | None = None
    if plan is not None:
        of, read = read_plan(plan)
        if of is not mechanism or read.hash() != opened.certificate.get("plan_sha256"):
            raise errors.PlanError(
                "appendix-other-plan",
                f"This is not the plan that the release {opened.path} was made from: its hash is not that of the "
                "certificate.",
                "Give the plan of this release, unchanged.",
            )
        with shown_by(progress):
            notes = tuple(mechanism.for_custodian(opened, read, data))
    text = appendix_text(of_folder(mechanism, opened), notes, opened_ledger)
    with new_file(out, private=True) as file:
        file.write(text.encode())
    return out


def check_place(out: Path) -> None:
    """Raise if the file exists, or would lie in a release, where it would be given away with it."""
    if os.path.lexists(out):
        raise errors.output_exists(out)
    for above in Path(os.path.realpath(out)).parents:
        try:
            manifest.read_manifest(above)
        except errors.OutputError:
            continue
        raise errors.OutputError(
            "appendix-in-a-release",
            f"{out} would lie inside {above}, which is a release and is given away.",
            "Choose a place where confidential files are kept.",
        )


def appendix_text(subject: Subject, notes: Sequence[CustodianNote] | None, ledger: Ledger | None) -> str:
    """The appendix as HTML; ``notes`` are those of the mechanism, None where the data were not read."""
    one = subject.alone()
    title = f"CONFIDENTIAL: appendix to the report of {one.name}"
    stated = one.specification
    about = (
        f"Guarantee of the release itself: {budget_line(stated)}. Its report, which can be published, is another file."
    )
    parts = [
        element("p", WARNING, class_="mark", role="note"),
        paragraphs([CAREFUL, about]),
        section(2, "Total of the ledger", _ledger(one, ledger), id="ledger"),
        *(section(2, words, _notes(notes, sort), id=sort) for sort, words in _TITLES.items()),
        section(2, "Bill of materials", materials([one], public=False), id="materials"),
        element("p", WARNING, class_="mark"),
    ]
    return document(title, element("main", element("h1", title), joined(parts)))


def _notes(notes: Sequence[CustodianNote] | None, sort: str) -> Markup:
    if notes is None:
        return paragraphs([_NOT_GIVEN])
    own = [note for note in notes if note.sort == sort]
    if not own:
        return paragraphs([_NOT_OFFERED])
    return joined(
        joined([element("p", note.words), *([table(_TITLES[sort], note.rows[0], note.rows[1:])] if note.rows else [])])
        for note in own
    )


def _ledger(one: Subject, ledger: Ledger | None) -> Markup:
    if ledger is None:
        return paragraphs(["Not stated: no ledger was given."])
    assert one.release is not None
    standing, entry = ledger.standing(), ledger.entry_of(one.release.path)
    total = standing.total
    said = [
        f"Entries for {ledger.dataset}: {standing.entries:,}, of which {standing.counted:,} spent budget.",
        "No release has spent budget yet." if total is None else "",
        f"Limit: {standing.limit.output_premetric.kind.budget} = {standing.limit.budget.shown()} per "
        f"{standing.limit.input_premetric.unit}." if standing.limit is not None else "",
        f"Does the total keep the limit? {standing.within}" if standing.within is not None else "",
        str(standing),
    ]  # fmt: skip
    blocks = [] if total is None else [table("Total of all releases", ("block", "total"), total.specification.blocks())]
    return joined([paragraphs(said), *blocks, listing(_entry(entry))])


def _entry(entry: Entry | None) -> Iterator[str]:
    """What the ledger has about this release."""
    if entry is None:
        yield "This release is not in the ledger: the total does not count it."
        return
    yield f"This release is entry {entry.id}: {entry.what}."
    for name, told in (("Made by", entry.who), ("Made because", entry.why)):
        if told is not None:
            yield f"{name}: {told}"
