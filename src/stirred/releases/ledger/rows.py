"""The rows of a ledger: what each says, how they are sealed, and the entries that they add up to.

A ledger is a list of rows to which rows are only ever added, wherever it is kept. The first row names the dataset and
the limit (``begun``). A release that spends budget is one row (``spent``); each folder finished from its draw is one
more (``finished``), and so is each release that is withdrawn, or gets a successor later (``withdrawn``). A row's seal
is the SHA-256 of everything in it and of the seal before it, so whoever kept the last seal can tell a removed row, a
replaced row and an older copy. Seals have no key: who can write the ledger can also compute them anew, and only a seal
kept elsewhere tells.

Ledgers of format version 1 (stirred 0.1) are read as the rows that they would be; their own seals are kept in the rows,
and checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from stirred import __version__, errors
from stirred._bounded_reading import UNPRINTED
from stirred.spec import Specification

FORM = 3
"""The format version of new ledgers. Version 2 is the same without withdrawals, and the first of these raises it."""
BEGUN, SPENT, FINISHED, WITHDRAWN = "begun", "spent", "finished", "withdrawn"
LONGEST_WHO, LONGEST_WHY, LONGEST_WHAT = 200, 2000, 5000
"""Characters at most in who made a release, why, and in what was released."""
NONCE = re.compile("[0-9a-f]{32}")
"""The form of a draw's identity."""
_SHA256 = re.compile("[0-9a-f]{64}")
_FIELDS = {
    BEGUN: {"dataset", "limit", "at", "version"},
    SPENT: {
        *("entry", "what", "specification", "derived_from", "past", "folder", "manifest", "nonce", "who", "why"),
        *("at", "version"),
    },
    FINISHED: {"entry", "folder", "manifest", "what", "at", "version"},
    WITHDRAWN: {"entry", "manifest", "reason", "superseded_by", "at", "version"},
}
"""What each kind of row says, no more and no less; only rows of 0.1 also keep a seal of that time."""
_END_OF_TIME = 253_402_300_800
"""The year 10000 in seconds since 1970: no calendar prints a later moment."""
_T = TypeVar("_T")


class Row(NamedTuple):
    """One row as it is kept; all of it is sealed."""

    number: int
    kind: str
    token: str
    """Unlike that of any other row: by it a row is found again after a commit whose answer was lost."""
    body: str
    """What the row says, as JSON."""
    seal: str


class Draft(NamedTuple):
    """A row to be added: its kind, and what it says."""

    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Finish:
    """One release folder that was finished from the draw of an entry."""

    folder: Path | None
    manifest: str | None = field(repr=False)
    """SHA-256 of the release's manifest."""
    finished_at: int
    """Seconds since 1970, UTC."""
    what: str
    """What sets it apart, in words; may be empty."""
    version: str
    seal: str = field(repr=False)


@dataclass(frozen=True)
class Withdrawal:
    """One release that its publisher withdrew. All of it is public."""

    manifest: str
    """SHA-256 of the release's manifest."""
    withdrawn_at: int
    """Seconds since 1970, UTC; a successor may have been named later."""
    reason: str
    superseded_by: str | None
    """SHA-256 of the manifest of the release that takes its place, if there is one."""


@dataclass(frozen=True)
class Entry:
    """One release as recorded in a ledger."""

    id: int
    what: str
    spent_at: int
    """Seconds since 1970, UTC."""
    text: str
    """The specification, as JSON."""
    derived_from: int | None
    """In ledgers of stirred 0.1, the entry whose release this was made from; such an entry costs nothing."""
    past: bool
    """Recorded after it was published, whatever the limit."""
    version: str
    """The version of stirred that wrote the entry."""
    seal: str = field(repr=False)
    folder: Path | None
    """Where the release is: the first that was finished or, before that, where it was to appear."""
    manifest: str | None = field(repr=False)
    """SHA-256 of that release's manifest."""
    finished_at: int | None
    nonce: str | None = field(default=None, repr=False)
    """The identity of the draw, as the certificates of all releases finished from it state it."""
    who: str | None = None
    """Who made the release, if that was told."""
    why: str | None = None
    finishes: tuple[Finish, ...] = ()
    """Every folder that was finished from the draw, oldest first."""
    token: str = field(default="", repr=False)
    """Unlike that of any other row of the ledger."""
    withdrawals: tuple[Withdrawal, ...] = ()
    """Which of its releases were withdrawn, oldest first. What was spent stays spent."""

    @property
    def counted(self) -> bool:
        """Whether it spent budget; a product derived from another entry did not."""
        return self.derived_from is None

    @property
    def state(self) -> str:
        """``spent`` until the release is known to be out, then ``released``; ``withdrawn`` if all its releases are."""
        if self.withdrawals and all(self.withdrawal(digest) for digest in self.manifests):
            return "withdrawn"
        return "spent" if self.finished_at is None else "released"

    def withdrawal(self, manifest: str | None) -> Withdrawal | None:
        """The withdrawal of the release with this manifest; None if it was not withdrawn."""
        return next((one for one in self.withdrawals if one.manifest == manifest), None)

    @property
    def places(self) -> tuple[tuple[Path | None, str | None], ...]:
        """Its folders, each with the manifest of the release that was recorded there."""
        return (self.folder, self.manifest), *((one.folder, one.manifest) for one in self.finishes)

    @property
    def manifests(self) -> frozenset[str]:
        """The SHA-256 of the manifests of all releases of this entry."""
        return frozenset(digest for _, digest in self.places if digest is not None)

    @property
    def specification(self) -> Specification:
        """The guarantee of this entry."""
        return Specification.from_json(self.text)


@dataclass(frozen=True)
class Contents:
    """Everything that a ledger says, its seals checked."""

    dataset: str
    limit: str | None
    entries: tuple[Entry, ...]
    rows: tuple[Row, ...] = field(repr=False)
    earlier_seals: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    """Seals of format version 1, each with the number of the row that keeps it."""

    @property
    def seal(self) -> str:
        """The seal of the last row."""
        return self.rows[-1].seal

    def row_of_seal(self, wanted: str) -> int | None:
        """The number of the row that has this seal; None if no row has it."""
        known = {row.seal: row.number for row in self.rows} | {found: number for number, found in self.earlier_seals}
        return known.get(wanted)

    def sealed(self, drafts: Iterable[Draft]) -> list[Row]:
        """Rows to be added after the last one; raises if the ledger could not be read with them."""
        rows = seal_rows(drafts, self.rows)
        _Reading([*self.rows, *rows]).contents()
        return rows


# -- making rows ---------------------------------------------------------------------------------------------------


def draft(kind: str, **fields: Any) -> Draft:
    """A row that says this now: what is text or a path in a form that can be printed, and ``what`` on one line."""
    said = {
        name: str(one).encode(errors="backslashreplace").decode() if isinstance(one, str | Path) else one
        for name, one in fields.items()
    }
    if "what" in said:
        said["what"] = plain(said["what"], "what", LONGEST_WHAT) or ""
    return Draft(kind, said | {"at": now(), "version": __version__})


def seal_rows(drafts: Iterable[Draft], after: Sequence[Row] = ()) -> list[Row]:
    """Number and seal new rows after those that are there."""
    rows = list(after)
    for draft in drafts:
        body = json.dumps(draft.fields, sort_keys=True)
        rows.append(_sealed(rows, draft.kind, os.urandom(16).hex(), body))
    return rows[len(after) :]


def _sealed(before: Sequence[Row], kind: str, token: str, body: str) -> Row:
    number = len(before) + 1
    return Row(number, kind, token, body, _seal_of(before[-1].seal if before else None, number, kind, token, body))


def _seal_of(previous: str | None, number: int, kind: str, token: str, body: str) -> str:
    return seal("stirred ledger 2", previous, number, kind, token, body)


def seal(*parts: str | int | None) -> str:
    """SHA-256 of these parts, as text."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def now() -> int:
    """Seconds since 1970, UTC."""
    return int(time.time())


def plain(text: str | None, name: str, most: int) -> str | None:
    """A note of a person as :func:`one_line`, refused if it is too long; None if nothing is left."""
    if text is None:
        return None
    line = one_line(text)
    if len(line) > most:
        raise errors.LedgerError(
            "ledger-note-too-long",
            f"What was given as '{name}' has {len(line):,} characters; the ledger keeps {most:,}.",
            "Nothing was spent. Shorten it.",
        )
    return line or None


def one_line(text: str) -> str:
    """A text as it can be printed: on one line, without control characters.

    >>> one_line("Ada\\tL.\\x1b[31m")
    'Ada L. [31m'
    """
    return " ".join(UNPRINTED.sub(" ", text).split())


def checked_nonce(nonce: str | None) -> str | None:
    """The nonce of a draw, or None; raises if it is not 32 hexadecimal digits."""
    if nonce is not None and not NONCE.fullmatch(nonce):
        raise errors.LedgerError(
            "ledger-bad-nonce",
            "The nonce of a draw is 32 hexadecimal digits, and this is something else.",
            "Nothing was spent. A release states its nonce in certificate.json; give none where it states none.",
        )
    return nonce


# -- reading rows --------------------------------------------------------------------------------------------------


def read_rows(rows: Sequence[Row], place: object) -> Contents:
    """What the rows say; raises if one of them is missing, is not what was written, or cannot be read."""
    previous = None
    for number, row in enumerate(rows, 1):
        if row.number != number or row.seal != _seal_of(previous, *row[:4]):
            raise errors.ledger_damaged(place, f"row {number} is missing or is not what was written")
        previous = row.seal
    try:
        return _Reading(rows).contents()
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise errors.ledger_damaged(place, "its rows contradict one another") from None


class _Reading:
    """Goes through the rows once; any fault in them raises ValueError, KeyError or TypeError."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._entries: list[Entry] = []
        self._earlier: list[tuple[int, str]] = []

    def contents(self) -> Contents:
        about = _fields(self._rows[0], BEGUN)
        dataset, limit = _taken(about, "dataset", str), _optional(about, "limit", str)
        at, version = _moment(about), _taken(about, "version", str)
        self._check_earlier(about, 1, (dataset, limit, at, version))
        for row in self._rows[1:]:
            if row.kind == SPENT:
                self._spent(row)
            elif row.kind == WITHDRAWN:
                self._withdrawn(row)
            else:
                self._finished(row)
        return Contents(dataset, limit, tuple(self._entries), tuple(self._rows), tuple(self._earlier))

    def _spent(self, row: Row) -> None:
        fields = _fields(row, SPENT)
        folder = _optional(fields, "folder", str)
        entry = Entry(
            id=_taken(fields, "entry", int),
            what=_taken(fields, "what", str),
            spent_at=_moment(fields),
            text=_taken(fields, "specification", str),
            derived_from=_optional(fields, "derived_from", int),
            past=_taken(fields, "past", bool),
            version=_taken(fields, "version", str),
            seal=row.seal,
            folder=None if folder is None else Path(folder),
            manifest=_optional(fields, "manifest", str),
            finished_at=None,
            nonce=_optional(fields, "nonce", str),
            who=_optional(fields, "who", str),
            why=_optional(fields, "why", str),
            token=row.token,
        )
        if entry.id != len(self._entries) + 1 or not _is(NONCE, entry.nonce) or not _is(_SHA256, entry.manifest):
            raise ValueError
        if entry.nonce is not None and entry.nonce in (one.nonce for one in self._entries):
            raise ValueError
        old = (entry.id, entry.what, entry.spent_at, entry.text, entry.derived_from, int(entry.past), entry.version)
        kept = self._check_earlier(fields, row.number, old)
        if entry.derived_from is not None and (kept is None or not 1 <= entry.derived_from < entry.id):
            raise ValueError  # only 0.1 wrote such entries
        # Work folders of 0.1 name their entry by its seal of that time.
        self._entries.append(entry if kept is None else replace(entry, seal=kept))

    def _finished(self, row: Row) -> None:
        fields = _fields(row, FINISHED)
        at = _taken(fields, "entry", int) - 1
        folder = _optional(fields, "folder", str)
        finish = Finish(
            None if folder is None else Path(folder),
            _optional(fields, "manifest", str),
            _moment(fields),
            _taken(fields, "what", str),
            _taken(fields, "version", str),
            row.seal,
        )
        if at < 0 or not _is(_SHA256, finish.manifest):
            raise ValueError
        entry = replace(self._entries[at], finishes=(*self._entries[at].finishes, finish))
        if len(entry.finishes) == 1:
            entry = replace(entry, folder=finish.folder, manifest=finish.manifest, finished_at=finish.finished_at)
        self._entries[at] = entry

    def _withdrawn(self, row: Row) -> None:
        fields = _fields(row, WITHDRAWN)
        at = _taken(fields, "entry", int) - 1
        found = Withdrawal(
            _taken(fields, "manifest", str),
            _moment(fields),
            _taken(fields, "reason", str),
            _optional(fields, "superseded_by", str),
        )
        _taken(fields, "version", str)
        known = {digest for entry in self._entries for digest in entry.manifests} - {found.manifest}
        if at < 0 or found.manifest not in self._entries[at].manifests:
            raise ValueError
        if not 1 <= len(found.reason) <= LONGEST_WHY or one_line(found.reason) != found.reason:
            raise ValueError
        if found.superseded_by is not None and found.superseded_by not in known:
            raise ValueError
        entry = self._entries[at]
        if (before := entry.withdrawal(found.manifest)) is not None:
            if before.superseded_by is not None or found.superseded_by is None or before.reason != found.reason:
                raise ValueError  # only a successor can be named later, and once
            found = replace(found, withdrawn_at=before.withdrawn_at)
        others = tuple(one for one in entry.withdrawals if one is not before)
        self._entries[at] = replace(entry, withdrawals=(*others, found))

    def _check_earlier(self, fields: dict[str, Any], number: int, sealed: tuple[str | int | None, ...]) -> str | None:
        """The seal of format version 1 that a row keeps, checked; None if it keeps none."""
        kept = _optional(fields, "earlier_seal", str)
        if kept is None:
            return None
        before = () if number == 1 else (self._earlier[-1][1],)
        if kept != seal(*before, *sealed):
            raise ValueError
        self._earlier.append((number, kept))
        return kept


def _fields(row: Row, kind: str) -> dict[str, Any]:
    fields = json.loads(row.body)
    if row.kind != kind or not isinstance(fields, dict) or fields.keys() - {"earlier_seal"} != _FIELDS[kind]:
        raise ValueError
    return fields


def _is(form: re.Pattern[str], text: str | None) -> bool:
    return text is None or form.fullmatch(text) is not None


def _taken(fields: dict[str, Any], name: str, kind: type[_T]) -> _T:
    value = fields[name]
    if type(value) is not kind:
        raise TypeError
    if isinstance(value, str):
        value.encode()  # raises a ValueError for half of a character, which nothing can print
    return value


def _moment(fields: dict[str, Any]) -> int:
    if not 0 <= (at := _taken(fields, "at", int)) < _END_OF_TIME:
        raise ValueError
    return at


def _optional(fields: dict[str, Any], name: str, kind: type[_T]) -> _T | None:
    return None if fields.get(name) is None else _taken(fields, name, kind)


# -- format version 1 ------------------------------------------------------------------------------------------------


def rows_of_form_1(about: Sequence[Any], entries: Iterable[Sequence[Any]]) -> list[Row]:
    """The rows that a ledger of format version 1 becomes: always the same, and its seals are kept in them.

    ``about`` is its row about the dataset, ``entries`` are its entries, with the columns in the order of its tables.
    """
    dataset, limit, begun_at, version, about_seal = about
    fields = {"dataset": dataset, "limit": limit, "at": begun_at, "version": version, "earlier_seal": about_seal}
    drafts = [(Draft(BEGUN, fields), about_seal)]
    for number, what, at, text, derived_from, past, wrote, kept, folder, manifest, finished_at in entries:
        fields = {
            "entry": number, "what": what, "specification": text, "derived_from": derived_from, "past": bool(past),
            "folder": folder, "manifest": manifest, "nonce": None, "who": None, "why": None, "at": at,
            "version": wrote, "earlier_seal": kept,
        }  # fmt: skip
        drafts.append((Draft(SPENT, fields), kept))
        if finished_at is not None:
            fields = {"entry": number, "folder": folder, "manifest": manifest, "what": "", "at": finished_at}
            drafts.append((Draft(FINISHED, fields | {"version": wrote}), kept))
    rows: list[Row] = []
    for draft, kept in drafts:
        body = json.dumps(draft.fields, sort_keys=True)
        rows.append(_sealed(rows, draft.kind, seal("form 1", draft.kind, kept)[:32], body))
    return rows
