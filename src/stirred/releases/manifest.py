"""The manifest: every file of a release with its size and SHA-256, so that a recipient can check them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from stirred import errors

NAME = "manifest.json"
FORM = 1


@dataclass(frozen=True)
class Entry:
    """One file of a release: path, size and SHA-256."""

    path: str
    bytes: int
    sha256: str


def write_manifest(folder: Path) -> None:
    """Write ``manifest.json``, which lists all files of ``folder``; to be called last."""
    entries = [vars(_entry(folder, path)) for path in _files(folder)]
    (folder / NAME).write_text(json.dumps({"stirred_manifest": FORM, "files": entries}, indent=2) + "\n")


def read_manifest(folder: Path) -> list[Entry]:
    """The entries of a release's manifest."""
    try:
        fields = json.loads((folder / NAME).read_text(encoding="utf-8"))
        if fields["stirred_manifest"] != FORM:
            raise errors.not_a_release(folder, "this version does not know the format of its manifest.json")
        return [Entry(str(item["path"]), int(item["bytes"]), str(item["sha256"])) for item in fields["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise errors.not_a_release(folder, "it has no readable manifest.json") from None


def differences(folder: Path, entries: list[Entry]) -> list[str]:
    """What differs between the manifest and the folder, in words; empty when nothing does."""
    listed = {entry.path: entry for entry in entries}
    present = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    found = [f"{name} is missing" for name in listed if name not in present]
    found += [f"{name} is not in the manifest" for name in present if name not in listed]
    for name, entry in listed.items():
        if name in present and _entry(folder, present[name]) != entry:
            found.append(f"{name} is not the file that was released")
    return found


def _files(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path != folder / NAME and not path.name.startswith(".")
    )


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(folder: Path, path: Path) -> Entry:
    return Entry(path.relative_to(folder).as_posix(), path.stat().st_size, digest_of(path))
