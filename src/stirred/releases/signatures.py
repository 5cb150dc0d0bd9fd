"""Signatures of releases, made and checked by OpenSSH's ``ssh-keygen``.

A signature is a file ``manifest.json.sig`` beside the manifest. The manifest has the SHA-256 of every file, so a
signature of it covers the whole release. It says who published the folder and that it is unchanged since, nothing
about the data or the guarantee. No cryptography is done here: ``ssh-keygen`` gets the bytes that were read, and every
word of its answer that is printed is cut and freed of control characters.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess  # nosec B404 # runs ssh-keygen only, with a list of arguments and no shell
import tempfile
from pathlib import Path

from stirred import errors
from stirred._received import Unacceptable, inside, is_of_machine, plain, read_bytes
from stirred.errors.output import why_unread
from stirred.releases.folder import is_unfinished
from stirred.releases.manifest import NAME as MANIFEST
from stirred.releases.manifest import SIGNATURE, WITHDRAWN
from stirred.releases.verdicts import Fault, Verdict, not_checked, not_compared, noted

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
        raise errors.no_signing_program()
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
        raise errors.no_signers(signers, "there is no such file")
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
    try:
        return read_bytes(inside(folder, MANIFEST))
    except (OSError, Unacceptable) as problem:
        if is_of_machine(problem):
            raise
        raise errors.not_a_release(folder, "it has no readable manifest.json") from None


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
