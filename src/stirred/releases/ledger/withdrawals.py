"""Withdrawn releases as recipients see them: the notice in a folder, the list of a ledger, and what ``verify`` says.

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
from stirred._bounded_reading import DAY, Unacceptable, inside, is_day, is_of_machine, plain, read_json, read_text
from stirred.errors.releases import why_unread
from stirred.releases.folder.atomic import flush_one
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import WITHDRAWN, digest_of, manifest_of
from stirred.releases.ledger.rows import LONGEST_WHY, Entry, Withdrawal, now, one_line
from stirred.releases.verdicts import Fault, State, Verdict, not_checked, not_compared

FORM = 1
_MOST_BYTES = 16 * 1024
"""The largest notice that is read."""
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
    .replace(r"\{day\}", f"(?P<day>{DAY})")
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
        if not formed or not reason or one_line(reason) != reason or not is_day(self.day):
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
        reason = problem.strerror or "an input/output error"
        raise errors.LedgerError(
            "withdrawn-not-stated",
            f"The ledger has recorded that the release is withdrawn, but {target} could not be written ({reason}).",
            "Correct the permissions or free space, and repeat the command: it adds nothing to the ledger, and writes "
            "what is missing.",
        ) from None


def place_notices(entry: Entry, withdrawal: Withdrawal, named: Path | None) -> list[tuple[Path, str | None]]:
    """Write the notice of a withdrawal into every known folder of its release; where and why not."""
    folders = [folder for folder, digest in entry.places if digest == withdrawal.manifest]
    placed: list[tuple[Path, str | None]] = []
    for folder in dict.fromkeys(one for one in (*folders, named) if one is not None):
        if not folder.is_dir():
            placed.append((folder, "nothing is there any more"))
        elif _is_place_of(withdrawal, folder):
            place_notice(folder, Notice.of(withdrawal))
            placed.append((folder, None))
        else:
            placed.append((folder, "what is there now is not that release"))
    return placed


def _is_place_of(withdrawal: Withdrawal, folder: Path) -> bool:
    """Whether a folder has the release that was withdrawn, or only a notice that was left of it."""
    if os.path.lexists(folder / MANIFEST):
        return manifest_of(folder) == withdrawal.manifest
    return os.path.lexists(folder / WITHDRAWN)


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
        if not isinstance(about, str) or not is_day(day):
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


def _day(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")
