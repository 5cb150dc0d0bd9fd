"""What the release runner and ``verify`` are handed so that a release also holds a report.

The report is made by a room that stands right of this one (``reports``), so it is not imported here: whoever starts a
release hands a writer over. Keep in mind: a writer is given what the release publishes and nothing else, before
anything is spent, so that a report costs no budget when it fails and can hold no confidential number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stirred._received import Unacceptable, inside, read_text
from stirred.releases.active_content import active_content
from stirred.releases.documents import README, REPORT
from stirred.releases.manifest import read_manifest
from stirred.releases.release_folder import ReleaseFolder, described_tables
from stirred.releases.texts import with_report
from stirred.releases.verdicts import Verdict

if TYPE_CHECKING:
    from stirred.releases.mechanism import Mechanism


class DocumentWriter(Protocol):
    """Makes the report of a release from what the release publishes."""

    def text(self, mechanism: Mechanism, release: ReleaseFolder) -> str:
        """The text of ``report.html``; the same for the same release, wherever its folder lies."""
        ...

    def agrees(self, mechanism: Mechanism, release: ReleaseFolder, found: str) -> list[Verdict]:
        """Whether a text that was found in the folder is what this writer writes for it."""
        ...


def write_report(writer: DocumentWriter, mechanism: Mechanism, folder: Path, certificate: str) -> None:
    """Write ``report.html`` into the folder of a release that has no certificate yet, and name it in README.txt."""
    release = ReleaseFolder(folder, json.loads(certificate), described_tables(folder))
    (folder / REPORT).write_text(writer.text(mechanism, release), encoding="utf-8", newline="\n")
    readme = folder / README
    readme.write_text(with_report(readme.read_text(encoding="utf-8")), encoding="utf-8")


def report_verdicts(writer: DocumentWriter, mechanism: Mechanism, release: ReleaseFolder) -> list[Verdict]:
    """Whether the report of a release goes with its other documents; nothing for a release that has no report."""
    if REPORT not in {entry.path for entry in read_manifest(release.path)}:
        return []
    try:
        found = read_text(inside(release.path, REPORT))
    except Unacceptable:
        return [Verdict(False, f"{REPORT} can be read")]
    if release.is_by_version_before(0, 6):
        return [Verdict(False, f"the version that wrote the release writes {REPORT}")]
    active = active_content(found)
    words = f"{REPORT} shows words and drawings, and has nothing that runs, loads or leads elsewhere"
    if active is not None:
        return [Verdict(False, f"{words} (not so: {active})")]
    return [Verdict(True, words), *writer.agrees(mechanism, release, found)]
