"""The manifest: every file of a release with its size and SHA-256, so that a recipient can check them.

The certificate and the manifest complete a release: a folder without them verifies as nothing. They are therefore held
in memory until the release is paid for (:class:`HeldBack`); what a killed run leaves before that is no release.

The manifest can be signed with OpenSSH's ``ssh-keygen``. A signature is a file ``manifest.json.sig`` beside the
manifest, which has the SHA-256 of every file, so it covers the whole release. It says who published the folder and that
it is unchanged since, nothing about the data or the guarantee. No cryptography is done here: ``ssh-keygen`` gets the
bytes that were read, and every word of its answer that is printed is cut and freed of control characters.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess  # nosec B404 # runs ssh-keygen only, with a list of arguments and no shell
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stirred import errors
from stirred._bounded_reading import Unacceptable, inside, is_of_machine, plain, read_bytes, read_json, read_text
from stirred._progress import stage
from stirred.errors.releases import why_unread
from stirred.releases.folder.atomic import LOCK, is_unfinished
from stirred.releases.verdicts import Fault, Verdict, not_checked, not_compared, noted

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
class ManifestEntry:
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
    own = (name for name, kind in _walk(folder) if kind == "file" and name not in _BESIDE)
    entries = {name: _entry(folder / name, name) for name in own}
    entries |= {name: ManifestEntry(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in more.items()}
    return _written([entries[name] for name in sorted(entries)])


def _written(entries: list[ManifestEntry]) -> str:
    fields = {"stirred_manifest": FORM, "files": [vars(entry) for entry in entries]}
    return json.dumps(fields, indent=2) + "\n"


def is_plain(folder: Path) -> bool:
    """Whether a manifest is written as this version writes it: in order, without anything between its fields."""
    return read_text(inside(folder, NAME)) == _written(sorted(read_manifest(folder), key=lambda entry: entry.path))


@contextlib.contextmanager
def readable(folder: Path, name: str) -> Iterator[None]:
    """Say that a release has no readable document of this name where the block fails to read it, for a reason that is
    the folder's."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as problem:
        if is_of_machine(problem):
            raise
        raise errors.not_a_release(folder, f"it has no readable {name}") from None


def read_manifest(folder: Path) -> list[ManifestEntry]:
    """The entries of a release's manifest."""
    with readable(folder, NAME):
        fields = read_json(inside(folder, NAME))
        if fields["stirred_manifest"] != FORM:
            raise errors.not_a_release(folder, "this version does not know the format of its manifest.json")
        if set(fields) != {"stirred_manifest", "files"}:
            raise errors.not_a_release(folder, "its manifest.json has fields that no manifest has")
        if len(fields["files"]) > MOST_FILES:
            raise errors.not_a_release(folder, f"its manifest.json lists more than {MOST_FILES:,} files")
        entries = [ManifestEntry(**item) for item in fields["files"]]
        if not all(_well_formed(entry) for entry in entries) or len({entry.path for entry in entries}) < len(entries):
            raise ValueError
    return entries


def _well_formed(entry: ManifestEntry) -> bool:
    return (
        isinstance(entry.path, str)
        and isinstance(entry.sha256, str)
        and isinstance(entry.bytes, int)
        and not isinstance(entry.bytes, bool)
    )


def differences(folder: Path, entries: list[ManifestEntry], besides: frozenset[str] = frozenset()) -> list[str]:
    """What differs between the manifest and the folder, in words; empty when nothing does.

    Everything in the folder must be listed, hidden files and empty folders too, but for the files and folders in
    ``besides``. Links, pipes and devices are named and never opened.
    """
    listed = {entry.path: entry for entry in entries}
    found: list[str] = []
    present = set()
    done, every = 0, max(1, sum(max(0, entry.bytes) for entry in listed.values()))
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
        else:
            stage("comparing the files with the manifest", done / every)
            done += max(0, listed[name].bytes)
            if not _same(folder, listed[name]):
                found.append(f"{plain(name)} is not the file that was released")
    found = [f"{plain(name)} is missing" for name in listed if name not in present] + found
    return found if len(found) <= _SHOWN else [*found[:_SHOWN], f"and {len(found) - _SHOWN:,} more"]


def _same(folder: Path, entry: ManifestEntry) -> bool:
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


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_of(folder: Path) -> str:
    """SHA-256 of a release's manifest, which itself lists the SHA-256 of every file."""
    try:
        return digest_of(folder / NAME)
    except OSError:
        raise errors.not_a_release(folder, "it has no readable manifest.json") from None


def _entry(path: Path, name: str) -> ManifestEntry:
    return ManifestEntry(name, path.stat().st_size, digest_of(path))


NAMESPACE = "stirred-release"
"""What a signature is for: one that was made for a mail or a commit does not pass as one of a release."""
PARTLY = "stirred-release-not-all-compared"
"""What a signature is for where ``verify`` had not compared everything before; a file of signers must allow it too."""
MOST_BYTES = 64 * 1024
"""The largest signature that is read; one of an RSA key of 16,384 bits has 6 kB."""

_SIGNING_SECONDS = 300
_CHECKING_SECONDS = 20
_MOST_NAMES = 10
_ARMOUR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\r?\n[A-Za-z0-9+/=\r\n]+-----END SSH SIGNATURE-----\r?\n?")
_KEY = re.compile(r"\bkey (SHA256:[A-Za-z0-9+/]{20,64})")


def sign(folder: str | Path, key: str | Path, partly: bool = False) -> Path:
    """Sign the manifest of a complete release with a key of OpenSSH; returns the path of the new signature.

    With ``partly`` the signature states that not everything in the release was compared before.

    ``key`` is a private key, or the public key of one that an agent or a security key holds. ``ssh-keygen`` itself
    asks for a passphrase on the terminal.
    """
    folder, key = Path(folder), Path(key)
    if is_unfinished(folder):
        raise errors.not_a_release(folder, "the run that was writing it did not finish")
    if os.path.lexists(folder / WITHDRAWN):
        raise errors.cannot_sign(folder, f"it was withdrawn, as {WITHDRAWN} in it says")
    content = _manifest(folder)
    target = folder / SIGNATURE
    if os.path.lexists(target):
        raise errors.output_exists(target)
    if not key.is_file():
        raise errors.cannot_sign(folder, f"there is no key file {key}")
    said = _run(["-Y", "sign", "-n", PARTLY if partly else NAMESPACE, "-f", str(key)], content, _SIGNING_SECONDS)
    if said is None:
        raise errors.OutputError(
            "no-signing-program",
            "The program ssh-keygen was not found. It makes and checks signatures.",
            "Install OpenSSH 8.2 or newer. docs/security.md says how to do without it (stirred docs security).",
        )
    if said.returncode != 0 or not said.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise errors.cannot_sign(folder, f"ssh-keygen said: {_words(said.stderr)}")
    try:
        with target.open("xb") as file:
            file.write(said.stdout)
    except FileExistsError:
        raise errors.output_exists(target) from None
    except OSError as problem:
        raise errors.cannot_sign(folder, f"{target} cannot be written, {problem.strerror}") from None
    return target


def namespaces(partly: bool) -> str:
    """What a key may be used for, as a line for recipients states it."""
    return f"{NAMESPACE},{PARTLY}" if partly else NAMESPACE


def signers_line(key: str | Path, name: str, partly: bool = False) -> str | None:
    """The line by which recipients know a key, for their file of allowed signers; None without its ``.pub`` file."""
    path = Path(key)
    public = path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub")
    try:
        kind, text, *_ = read_bytes(public, MOST_BYTES).decode("ascii").split()
    except (OSError, ValueError):
        return None
    return f'{name} namespaces="{namespaces(partly)}" {kind} {text}'


def signature_verdicts(folder: Path, signers: Path | None) -> list[Verdict]:
    """Whether a release is signed, and by whom.

    Without a file of allowed ``signers`` it is said which key signed, but not whose it is: anybody can make a key. A
    file of signers asks for a signature by one of them, and nothing else holds.
    """
    if signers is not None and not signers.is_file():
        raise errors.OutputError(
            "no-signers",
            f"The list of signers {signers} cannot be read: there is no such file.",
            'Each of its lines is: NAME namespaces="stirred-release" PUBLIC-KEY; the publisher gives you theirs.',
        )
    if not os.path.lexists(folder / SIGNATURE):
        words = "not signed: the folder does not show who published it"
        if signers is None:
            return [noted(words)]
        return [Fault(False, f"{words}, and a signature was asked for")]
    try:
        signature = read_bytes(inside(folder, SIGNATURE), MOST_BYTES)
    except (OSError, Unacceptable) as problem:
        if is_of_machine(problem):
            return [not_checked("its signature", why_unread(problem))]
        reason = str(problem) if isinstance(problem, Unacceptable) else "it cannot be read"
        return [Fault(False, f"{SIGNATURE} is not a signature: {reason}")]
    if not _ARMOUR.fullmatch(signature):
        return [Fault(False, f"{SIGNATURE} is not a signature of OpenSSH alone")]
    with tempfile.TemporaryDirectory() as private:
        # ssh-keygen reads a copy: what stands in the folder may be another file by then.
        copy = Path(private) / SIGNATURE
        copy.write_bytes(signature)
        return [_verdict(_manifest(folder), copy, signers)]


def _verdict(content: bytes, signature: Path, signers: Path | None) -> Verdict:
    namespace, but = NAMESPACE, ""
    checked = _run(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature)], content)
    if checked is not None and checked.returncode > 0:
        namespace, but = PARTLY, ", although not everything in it had been compared"
        checked = _run(["-Y", "check-novalidate", "-n", PARTLY, "-s", str(signature)], content)
    if checked is None:
        why = "the program ssh-keygen was not found (install OpenSSH)"
        return not_compared("its signature", why) if signers is None else not_checked("its signature", why)
    if checked.returncode < 0:
        return not_checked("its signature", "ssh-keygen was ended before it had answered")
    if checked.returncode != 0:
        return Fault(False, f"{SIGNATURE} is no signature of this manifest as a release")
    found = _KEY.search(_words(checked.stdout))
    key = f"the key {found[1]}" if found else "a key"
    if signers is None:
        words = "whose key it is was not checked (--signers FILE does, with a file of keys that you trust)"
        return noted(f"signed with {key}{but}, and unchanged since; {words}")
    named = _run(["-Y", "find-principals", "-s", str(signature), "-f", str(signers)], b"")
    names = named.stdout.decode("utf-8", "replace").splitlines() if named and named.returncode == 0 else []
    for name in names[:_MOST_NAMES]:
        options = ["-n", namespace, "-f", str(signers), "-I", name, "-s", str(signature)]
        verified = _run(["-Y", "verify", *options], content)
        if verified is not None and verified.returncode == 0:
            return Verdict(True, f"signed by {plain(name)} with {key}{but}, and unchanged since")
    what = "releases that were not compared as a whole" if but else "releases"
    return Fault(False, f"signed with {key}{but}, which {plain(signers)} does not allow to sign {what}")


def _manifest(folder: Path) -> bytes:
    with readable(folder, NAME):
        return read_bytes(inside(folder, NAME))


_Ended = subprocess.CompletedProcess[bytes]


def _run(arguments: list[str], content: bytes, seconds: float | None = None) -> _Ended | None:
    """Run ``ssh-keygen`` on ``content``; None if there is no such program. A run that is too long is ended."""
    program = shutil.which("ssh-keygen")
    if program is None:
        return None
    try:
        return subprocess.run(  # nosec B603 # a list of arguments, no shell; names from outside are values of options
            [program, *arguments],
            input=content,
            capture_output=True,
            timeout=seconds or _CHECKING_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return _Ended(arguments, -1, b"", b"nothing within the time that it is given")
    except OSError:
        return None


def _words(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return plain("; ".join(lines)) or "nothing"
