"""Whether a release folder was finished from the draw of a ledger's entry, by its certificate and its manifest.

Only what is a function of a counted release costs nothing. A release states the nonce of its draw, which is drawn with
it and repeated by every finish; what was drawn must then be in the same files too, where the entry's own release is
there to compare. Draws before 0.3 have no nonce; of these only TopDown's publish what was drawn, so two of its releases
are of one draw if their measurements are the same files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stirred import errors
from stirred.releases import manifest
from stirred.releases.ledger_rows import NONCE, Entry

_MEASURED = ("measurements/", "invariants/")


def nonce_of(folder: Path) -> str | None:
    """The nonce that a release's certificate states; None if it states none, as before 0.3, or has no certificate."""
    from stirred.releases.documents import CERTIFICATE

    if not (folder / CERTIFICATE).is_file():
        return None
    nonce = _certificate(folder).get("nonce")
    return nonce if isinstance(nonce, str) and NONCE.fullmatch(nonce) else None


def difference(entry: Entry, folder: Path, digest: str) -> str | None:
    """Why a release is not known to be finished from an entry's draw; None if it is.

    ``digest`` is the SHA-256 of the release's manifest.
    """
    if not entry.counted:
        return f"entry {entry.id} is itself derived from entry {entry.derived_from}: name that one"
    if digest in entry.manifests:
        return None
    try:
        return _difference(entry, folder)
    except OSError as problem:
        return f"its files cannot be read ({problem.strerror or 'an input/output error'})"


def _difference(entry: Entry, folder: Path) -> str | None:
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
    from stirred.releases.documents import CERTIFICATE

    every = {(one.path, one.sha256) for one in manifest.read_manifest(folder) if one.path != CERTIFICATE}
    return {one for one in every if one[0].startswith(_MEASURED)} or every


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
    from stirred.releases.documents import CERTIFICATE, read_json

    try:
        return read_json(folder, CERTIFICATE, "stirred_certificate")
    except errors.OutputError:
        return {}
