"""Whether a release folder was finished from the draw of a ledger's entry, by its certificate and its manifest.

Only what is a function of a counted release costs nothing. A release states the nonce of its draw, which is drawn with
it and repeated by every finish; what was drawn must then be in the same files too, where the entry's own release is
there to compare. Draws before 0.3 have no nonce; of these only TopDown's publish what was drawn, so two of its releases
are of one draw if their measurements are the same files.

Withdrawn releases as recipients see them: the notice in a folder, the list of a ledger, and what ``verify`` says.

A ledger records that a release was withdrawn; from there it goes into ``WITHDRAWN.txt`` in the release's folder, and
into a list that the custodian publishes. Both are public: digests of manifests, days, reasons, nothing of a ledger's
folders or people. Keep in mind: no manifest and no signature covers either, so that they can be added later. Who can
write to a folder can put a notice there or take it away; a list is worth as much as the way by which it came.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred import errors
from stirred._bounded_reading import Unacceptable, inside, is_of_machine, plain, read_json, read_text
from stirred.errors.output import why_unread
from stirred.releases.folder import manifest
from stirred.releases.folder.atomic import flush_one
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import WITHDRAWN, digest_of
from stirred.releases.ledger.rows import LONGEST_WHY, NONCE, Entry, Withdrawal, now, one_line
from stirred.releases.verdicts import Fault, State, Verdict, not_checked, not_compared

_MEASURED = ("measurements/", "invariants/")


def nonce_of(folder: Path) -> str | None:
    """The nonce that a release's certificate states; None if it states none, as before 0.3, or has no certificate."""
    from stirred.releases.folder.documents import CERTIFICATE

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
    from stirred.releases.folder.documents import CERTIFICATE

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
    from stirred.releases.folder.documents import CERTIFICATE, read_json

    try:
        return read_json(folder, CERTIFICATE, "stirred_certificate")
    except errors.OutputError:
        return {}


FORM = 1
_MOST_BYTES = 16 * 1024
"""The largest notice that is read."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_SHA256 = re.compile("[0-9a-f]{64}")
_NO_SUCCESSOR = "nothing so far"
_SUCCESSOR = "the release whose manifest.json has the SHA-256 "
_TEXT = """\
This release was withdrawn by its publisher on {day}.

Reason: {reason}
Superseded by: {successor}

SHA-256 of the manifest.json of the release that was withdrawn: {manifest}

Do not use it for new work. What it told anyone stays told, and the privacy budget that it spent stays spent. This
notice was added later: neither the manifest nor a signature covers it.
"""
_FORM_OF_TEXT = re.compile(
    re.escape(_TEXT)
    .replace(r"\{day\}", f"(?P<day>{_DAY.pattern})")
    .replace(r"\{reason\}", f"(?P<reason>[^\n]{{1,{LONGEST_WHY}}})")
    .replace(r"\{successor\}", f"(?:{_NO_SUCCESSOR}|{_SUCCESSOR}(?P<successor>{_SHA256.pattern}))")
    .replace(r"\{manifest\}", f"(?P<manifest>{_SHA256.pattern})")
)


@dataclass(frozen=True)
class Notice:
    """That one release was withdrawn: when, why, and which release takes its place."""

    manifest: str
    """SHA-256 of the release's manifest, by which a release is known."""
    day: str
    reason: str
    superseded_by: str | None

    def __post_init__(self) -> None:
        digests = (self.manifest, self.manifest if self.superseded_by is None else self.superseded_by)
        formed = all(isinstance(one, str) and _SHA256.fullmatch(one) for one in digests)
        reason = self.reason if isinstance(self.reason, str) and len(self.reason) <= LONGEST_WHY else ""
        if not formed or not reason or one_line(reason) != reason or not _is_day(self.day):
            raise ValueError

    @classmethod
    def of(cls, withdrawal: Withdrawal) -> Notice:
        """What of a ledger's row is public: all but the entry."""
        day = _day(withdrawal.withdrawn_at)
        return cls(withdrawal.manifest, day, withdrawal.reason, withdrawal.superseded_by)

    @classmethod
    def parse(cls, text: str) -> Notice:
        """A notice from its text; raises ValueError if the text is anything else, or says anything else."""
        if (found := _FORM_OF_TEXT.fullmatch(text)) is None:
            raise ValueError
        return cls(found["manifest"], found["day"], found["reason"], found["successor"])

    @property
    def text(self) -> str:
        """The notice as it stands in a folder."""
        successor = _NO_SUCCESSOR if self.superseded_by is None else _SUCCESSOR + self.superseded_by
        return _TEXT.format(day=self.day, reason=self.reason, successor=successor, manifest=self.manifest)

    @property
    def fields(self) -> dict[str, Any]:
        """The notice as it stands in a list."""
        return {
            "manifest_sha256": self.manifest,
            "withdrawn_on": self.day,
            "reason": self.reason,
            "superseded_by": self.superseded_by,
        }

    def verdict(self, source: str) -> Verdict:
        """What ``verify`` says of a release about which this notice was found."""
        words = f"on {self.day}, as {source} says"
        if self.superseded_by is not None:
            words += f"; superseded by {_SUCCESSOR}{self.superseded_by}"
        return Verdict(False, f"{words}; reason: {self.reason}", State.WITHDRAWN)


def has_notice(folder: Path, notice: Notice) -> bool:
    """Whether a folder has this notice."""
    try:
        return read_text(inside(folder, WITHDRAWN), _MOST_BYTES) == notice.text
    except (OSError, Unacceptable):
        return False


def place_notice(folder: Path, notice: Notice) -> None:
    """Write a notice into the folder of its release, if it is not there; a run that was killed can be repeated."""
    if has_notice(folder, notice):
        return
    target = folder / WITHDRAWN
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(target, flags, 0o666), "wb") as file:
            file.write(notice.text.encode())
        flush_one(target)
        flush_one(folder)
    except OSError as problem:
        raise errors.withdrawn_not_stated(target, problem.strerror or "an input/output error") from None


def list_text(dataset: str, entries: Iterable[Entry]) -> str:
    """The list of withdrawn releases that a ledger's custodian publishes, as JSON."""
    found = [Notice.of(one) for entry in entries for one in entry.withdrawals]
    fields = {
        "stirred_withdrawn": FORM,
        "dataset": dataset,
        "made_on": _day(now()),
        "withdrawn": [one.fields for one in sorted(found, key=lambda one: (one.day, one.manifest))],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def withdrawal_verdicts(folder: Path, dataset: str, listed: Path | None) -> list[Verdict]:
    """What is known of a withdrawal: from the notice in the folder, and from a ledger's list if there is one.

    A folder without a notice says nothing about it, and without a list neither does this.
    """
    try:
        digest = digest_of(inside(folder, MANIFEST))
        return _of_notice(folder, digest) + ([] if listed is None else [_of_list(listed, digest, dataset)])
    except OSError as problem:
        return [not_checked("whether it was withdrawn", why_unread(problem))]


def _of_notice(folder: Path, digest: str) -> list[Verdict]:
    if not os.path.lexists(folder / WITHDRAWN):
        return []
    try:
        notice = Notice.parse(read_text(inside(folder, WITHDRAWN), _MOST_BYTES))
    except (OSError, ValueError, Unacceptable) as problem:
        if is_of_machine(problem):
            raise
        return [Fault(False, f"{WITHDRAWN} is not a notice that a release was withdrawn, and nothing else")]
    if notice.manifest != digest:
        return [Fault(False, f"{WITHDRAWN} is about another release: one with another manifest.json")]
    return [notice.verdict(f"{WITHDRAWN} (covered by no manifest and no signature)")]


def _of_list(path: Path, digest: str, dataset: str) -> Verdict:
    about, day, notices = _read_list(path)
    source = f"the list {plain(path)}, made on {day},"
    for notice in notices:
        if notice.manifest == digest:
            return notice.verdict(source)
    if about != dataset:
        why = f"the list {plain(path)} is about the dataset '{plain(about)}', and the release about '{plain(dataset)}'"
        return not_compared("whether it was withdrawn", why)
    return Verdict(True, f"{source} does not name it among the withdrawn releases of its dataset")


def _read_list(path: Path) -> tuple[str, str, list[Notice]]:
    """The dataset, the day and the notices of a list; raises if it is none."""
    try:
        fields = read_json(path)
        if fields["stirred_withdrawn"] != FORM:
            raise errors.no_withdrawn_list(path, "this version does not know its format")
        about, day = fields["dataset"], fields["made_on"]
        if not isinstance(about, str) or not _is_day(day):
            raise ValueError
        return about, day, [_notice(one) for one in fields["withdrawn"]]
    except OSError as problem:
        raise errors.no_withdrawn_list(path, problem.strerror or "an input/output error") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise errors.no_withdrawn_list(path, "it is not a list that stirred ledger withdrawn wrote") from None


def _notice(fields: dict[str, Any]) -> Notice:
    notice = Notice(fields["manifest_sha256"], fields["withdrawn_on"], fields["reason"], fields["superseded_by"])
    if notice.fields != fields:
        raise ValueError
    return notice


def _is_day(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(_DAY.fullmatch(text)) and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _day(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")
