"""What a ledger sees in the folders of releases: are they as recorded, and of the draw that was paid for?

Only what is a function of a counted release costs nothing. A release states the nonce of its draw, which is drawn with
it and repeated by every finish; what was drawn must then be in the same files too, where the entry's own release is
there to compare. Draws before 0.3 have no nonce; of these only TopDown's publish what was drawn, so two of its releases
are of one draw if their measurements are the same files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred import errors
from stirred.releases.folder import manifest
from stirred.releases.ledger.rows import NONCE, Entry
from stirred.releases.ledger.withdrawals import Notice, has_notice


@dataclass(frozen=True)
class LedgerFinding:
    """One thing that was verified of a ledger, and whether it holds; ``kind`` is a stable name for it."""

    holds: bool
    kind: str
    words: str


_MEASURED = ("measurements/", "invariants/")


def nonce_of(folder: Path) -> str | None:
    """The nonce that a release's certificate states; None if it states none, as before 0.3, or has no certificate."""
    from stirred.releases.folder.documents import CERTIFICATE

    if not (folder / CERTIFICATE).is_file():
        return None
    nonce = _certificate(folder).get("nonce")
    return nonce if isinstance(nonce, str) and NONCE.fullmatch(nonce) else None


def why_not_of_draw(entry: Entry, folder: Path, digest: str) -> str | None:
    """Why a release is not known to be finished from an entry's draw; None if it is.

    ``digest`` is the SHA-256 of the release's manifest.
    """
    if not entry.counted:
        return f"entry {entry.id} is itself derived from entry {entry.derived_from}: name that one"
    if digest in entry.manifests:
        return None
    try:
        return _why_not(entry, folder)
    except OSError as problem:
        return f"its files cannot be read ({problem.strerror or 'an input/output error'})"


def _why_not(entry: Entry, folder: Path) -> str | None:
    if found := manifest.differences(folder, manifest.read_manifest(folder)):
        return f"the folder is not as its manifest says ({found[0]})"
    nonce = nonce_of(folder)
    if entry.nonce is not None:
        if nonce is None:
            return "its certificate states no nonce, and the entry's draw has one"
        if nonce != entry.nonce:
            return "its certificate states the nonce of another draw"
        return _other_files(entry, folder)
    if nonce is not None:
        return "its certificate states the nonce of a draw, and the entry was recorded without one"
    return _unlike_measurements(entry, folder)


def _other_files(entry: Entry, folder: Path) -> str | None:
    """Why a release with the nonce of an entry is another draw all the same, where that can be seen."""
    first = entry.folder
    if (
        first is None
        or not (first / manifest.NAME).is_file()
        or manifest.digest_of(first / manifest.NAME) not in (entry.manifests)
    ):
        return None
    if _drawn(first) != _drawn(folder):
        return "its certificate states the nonce of the entry's draw, but what was drawn stands in other files"
    return None


def _drawn(folder: Path) -> set[tuple[str, str]]:
    """The files that hold what was drawn: measurements where there are any, else everything but the certificate."""
    from stirred.releases.folder.documents import CERTIFICATE

    every = {(one.path, one.sha256) for one in manifest.read_manifest(folder) if one.path != CERTIFICATE}
    return _measured(folder) or every


def _unlike_measurements(entry: Entry, folder: Path) -> str | None:
    """The same for draws without a nonce, from the files of both releases."""
    first = entry.folder
    if first is None or entry.manifest is None or not (first / manifest.NAME).is_file():
        return "neither has a nonce, and the entry's own release is not there to compare it with"
    if manifest.digest_of(first / manifest.NAME) != entry.manifest:
        return f"neither has a nonce, and {first} is not the release that was recorded"
    mine, theirs = _measured(first), _measured(folder)
    if not mine:
        return "neither has a nonce, and the entry's release has no measurements to compare"
    if mine != theirs:
        return "its measurements are not those of the entry's release"
    if _certificate(first).get("plan_sha256") != _certificate(folder).get("plan_sha256"):
        return "it has another plan than the entry's release"
    return None


def _measured(folder: Path) -> set[tuple[str, str]]:
    return {(one.path, one.sha256) for one in manifest.read_manifest(folder) if one.path.startswith(_MEASURED)}


def _certificate(folder: Path) -> dict[str, Any]:
    from stirred.releases.folder.documents import CERTIFICATE, read_json

    try:
        return read_json(folder, CERTIFICATE, "stirred_certificate")
    except errors.OutputError:
        return {}


def compare_folders(entry: Entry, known: frozenset[str]) -> list[LedgerFinding]:
    """What does not agree between an entry and its folders, if anything; ``known`` are all recorded manifests."""
    said = f"entry {entry.id} ({entry.what})"
    if entry.finishes:
        found = (_compare_finish(said, entry, one.folder, one.manifest, known) for one in entry.finishes)
        return [verdict for one in found for verdict in one]
    there = entry.folder is not None and os.path.lexists(entry.folder)
    if (there and entry.manifest is not None) or entry.withdrawals:
        return _compare_finish(said, entry, entry.folder, entry.manifest, known)
    if there and entry.folder is not None and not (entry.folder / manifest.NAME).is_file():
        return [LedgerFinding(False, "changed", f"{said}: {entry.folder} is not a release")]
    place = f"nothing is at {entry.folder}" if entry.folder and not there else "no release is noted"
    words = f"{said} spent budget, but {place}: its run was stopped or is still working; the entry stays"
    return [LedgerFinding(False, "spent-without-release", words)]


def _compare_finish(
    said: str, entry: Entry, folder: Path | None, digest: str | None, known: frozenset[str]
) -> list[LedgerFinding]:
    """What does not agree between a release and its folder.

    One that was withdrawn may be gone, with or without a notice in its place, and a later release may be there.
    """
    if folder is None or (withdrawal := entry.withdrawal(digest)) is None:
        return _compare_folder(said, folder, digest)
    if not os.path.lexists(folder / manifest.NAME) or manifest.manifest_of(folder) in known - {digest}:
        return []
    if not has_notice(folder, Notice.of(withdrawal)):
        words = f"{said} was withdrawn, and {folder} does not state it: repeat stirred ledger withdraw"
        return [LedgerFinding(False, "withdrawn-without-notice", words)]
    return _compare_folder(said, folder, digest)


def _compare_folder(said: str, folder: Path | None, digest: str | None) -> list[LedgerFinding]:
    if folder is None:
        return []
    if not os.path.lexists(folder):
        words = f"{said} was released, but nothing is at {folder} any more; the entry stays"
        return [LedgerFinding(False, "release-missing", words)]
    try:
        there = manifest.manifest_of(folder)
    except errors.OutputError:
        return [LedgerFinding(False, "changed", f"{said}: {folder} is not a release")]
    if there != digest:
        return [LedgerFinding(False, "changed", f"{said}: {folder} is not the release that was recorded")]
    return []
