"""The manifest: every file of a release with its size and SHA-256, so that a recipient can check them.

The certificate and the manifest complete a release: a folder without them verifies as nothing. They are therefore held
in memory until the release is paid for (:class:`HeldBack`); what a killed run leaves before that is no release.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stirred import errors
from stirred._received import Unacceptable, inside, is_of_machine, plain, read_json, read_text
from stirred.releases.folder import LOCK

NAME = "manifest.json"
SIGNATURE = f"{NAME}.sig"
"""A signature of the manifest, which no manifest can list."""
WITHDRAWN = "WITHDRAWN.txt"
"""The notice that a release was withdrawn, which is put into its folder later."""
FORM = 1
MOST_FILES = 100_000
"""Files that a manifest may list."""
_SHOWN = 20
_DEEPEST = 8
_BESIDE = frozenset({NAME, SIGNATURE, WITHDRAWN, LOCK})
_MAY_BE_EMPTY = frozenset({"invariants"})
"""Folders that versions before 0.3 made also where nothing was to be put into them."""


@dataclass(frozen=True)
class Entry:
    """One file of a release: path, size and SHA-256."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class HeldBack:
    """The last files of a release, in memory; :meth:`write` completes the folder.

    Their space on disk is reserved beforehand, so that a full disk is noticed before anything is spent.
    """

    folder: Path
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, folder: Path, files: Mapping[str, bytes]) -> HeldBack:
        """Hold back ``files`` and the manifest of the folder with them, and reserve their space."""
        last = dict(files) | {NAME: _text(folder, files).encode()}
        for name, content in last.items():
            (folder / name).write_bytes(b" " * len(content))
        return cls(folder, last)

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest."""
        return hashlib.sha256(self.files[NAME]).hexdigest()

    def write(self) -> None:
        """Write the files where their space is reserved, the manifest last."""
        for name, content in self.files.items():
            with (self.folder / name).open("r+b") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())


def write_manifest(folder: Path) -> None:
    """Write ``manifest.json``, which lists all files of ``folder``; to be called last."""
    (folder / NAME).write_text(_text(folder, {}), encoding="utf-8")


def _text(folder: Path, more: Mapping[str, bytes]) -> str:
    entries = {name: _entry(path, name) for name, path in _files(folder)}
    entries |= {name: Entry(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in more.items()}
    return _written([entries[name] for name in sorted(entries)])


def _written(entries: list[Entry]) -> str:
    fields = {"stirred_manifest": FORM, "files": [vars(entry) for entry in entries]}
    return json.dumps(fields, indent=2) + "\n"


def is_plain(folder: Path) -> bool:
    """Whether a manifest is written as this version writes it: in order, without anything between its fields."""
    return read_text(inside(folder, NAME)) == _written(sorted(read_manifest(folder), key=lambda entry: entry.path))


def read_manifest(folder: Path) -> list[Entry]:
    """The entries of a release's manifest."""
    try:
        fields = read_json(inside(folder, NAME))
        if fields["stirred_manifest"] != FORM:
            raise errors.not_a_release(folder, "this version does not know the format of its manifest.json")
        if set(fields) != {"stirred_manifest", "files"}:
            raise errors.not_a_release(folder, "its manifest.json has fields that no manifest has")
        if len(fields["files"]) > MOST_FILES:
            raise errors.not_a_release(folder, f"its manifest.json lists more than {MOST_FILES:,} files")
        entries = [Entry(**item) for item in fields["files"]]
        if not all(_well_formed(entry) for entry in entries) or len({entry.path for entry in entries}) < len(entries):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError) as problem:
        if is_of_machine(problem):
            raise
        raise errors.not_a_release(folder, "it has no readable manifest.json") from None
    return entries


def _well_formed(entry: Entry) -> bool:
    return (
        isinstance(entry.path, str)
        and isinstance(entry.sha256, str)
        and isinstance(entry.bytes, int)
        and not isinstance(entry.bytes, bool)
    )


def differences(folder: Path, entries: list[Entry], besides: frozenset[str] = frozenset()) -> list[str]:
    """What differs between the manifest and the folder, in words; empty when nothing does.

    Everything in the folder must be listed, hidden files and empty folders too, but for the files and folders in
    ``besides``. Links, pipes and devices are named and never opened.
    """
    listed = {entry.path: entry for entry in entries}
    found: list[str] = []
    present = set()
    folders = {str(parent) for name in listed for parent in Path(name).parents}
    for name, kind in _walk(folder):
        if (name in _BESIDE and kind == "file") or (name.split("/")[0] in besides and kind in ("file", "folder")):
            continue
        if kind == "folder":
            if name not in folders and name not in _MAY_BE_EMPTY:
                found.append(f"the folder {plain(name)} is not in the manifest")
            continue
        present.add(name)
        if kind != "file":
            found.append(f"{plain(name)} is {kind}, not a file that can be checked")
        elif name not in listed:
            found.append(f"{plain(name)} is not in the manifest")
        elif not _same(folder, listed[name]):
            found.append(f"{plain(name)} is not the file that was released")
    found = [f"{plain(name)} is missing" for name in listed if name not in present] + found
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"and {len(found) - _SHOWN:,} more"]


def _same(folder: Path, entry: Entry) -> bool:
    try:
        path = inside(folder, entry.path)
        return path.stat().st_size == entry.bytes and _entry(path, entry.path) == entry
    except (Unacceptable, OSError) as problem:
        if is_of_machine(problem):
            raise
        return False


def _walk(folder: Path, before: str = "") -> Iterator[tuple[str, str]]:
    """Everything in a folder, with the kind of thing it is; nothing is opened, no link is followed."""
    if before.count("/") > _DEEPEST:
        yield f"{before}...", "nested too deep"
        return
    with os.scandir(folder) as found:
        for one in sorted(found, key=lambda one: one.name):
            name = before + one.name
            mode = one.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                yield name, "folder"
                yield from _walk(folder / one.name, f"{name}/")
            else:
                yield name, "file" if stat.S_ISREG(mode) else "a link" if stat.S_ISLNK(mode) else "a pipe or device"


def _files(folder: Path) -> list[tuple[str, Path]]:
    return [(name, folder / name) for name, kind in _walk(folder) if kind == "file" and name not in _BESIDE]


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path, name: str) -> Entry:
    return Entry(name, path.stat().st_size, digest_of(path))
