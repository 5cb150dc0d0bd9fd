"""The file of a ledger: a SQLite database to which entries are only added.

Every use is one transaction on a connection of its own, so a handle can be shared by threads and processes. The
rollback journal (mode DELETE) rather than WAL keeps the ledger a single file, safe to copy when at rest and free of
shared memory; with synchronous = EXTRA the journal's removal, which is the commit, is itself flushed to the folder
before a commit returns. Writers queue for the one reserved lock before they read, so no two decide on the same total.

Entries are sealed: each seal is the SHA-256 of the entry and the seal before it, the first seals dataset and limit.
SQLite notices a broken page; seals and the count of entries notice rows that were changed or lost.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from stirred import __version__, errors
from stirred.spec import Specification

FORM = 1
PATIENCE = 30.0
"""Seconds to wait for another process before giving up."""
_APPLICATION = int.from_bytes(b"Stir")
_TABLES = """
CREATE TABLE about (dataset TEXT NOT NULL, allowed TEXT, begun_at INTEGER NOT NULL, version TEXT NOT NULL,
                    seal TEXT NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    what TEXT NOT NULL,
    spent_at INTEGER NOT NULL,
    specification TEXT NOT NULL,
    derived_from INTEGER REFERENCES entries (id),
    past INTEGER NOT NULL,
    version TEXT NOT NULL,
    seal TEXT NOT NULL,
    folder TEXT,
    manifest TEXT,
    finished_at INTEGER
);
CREATE TRIGGER a_ledger_keeps_what_it_is_about BEFORE UPDATE ON about
    BEGIN SELECT RAISE (ABORT, 'a ledger keeps its dataset and its limit'); END;
CREATE TRIGGER a_spend_stays BEFORE DELETE ON entries
    BEGIN SELECT RAISE (ABORT, 'a spend is never taken back'); END;
CREATE TRIGGER a_spend_is_never_changed
    BEFORE UPDATE OF id, what, spent_at, specification, derived_from, past, version, seal ON entries
    BEGIN SELECT RAISE (ABORT, 'a spend is never changed'); END;
"""
_SEALED = "id, what, spent_at, specification, derived_from, past, version"


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
    """The entry whose release this was made from; such an entry costs nothing."""
    past: bool
    """Recorded after it was published, whatever the limit."""
    version: str
    """The version of stirred that wrote the entry."""
    seal: str = field(repr=False)
    folder: Path | None
    manifest: str | None = field(repr=False)
    """SHA-256 of the release's manifest."""
    finished_at: int | None

    @property
    def counted(self) -> bool:
        """Whether it spent budget; a product derived from another entry did not."""
        return self.derived_from is None

    @property
    def state(self) -> str:
        """``spent`` until the release is known to be out, then ``released``."""
        return "spent" if self.finished_at is None else "released"

    @property
    def specification(self) -> Specification:
        """The guarantee of this entry."""
        return Specification.from_json(self.text)

    def sealed_after(self, previous: str) -> str:
        """The seal that this entry must have after the seal before it."""
        past = int(self.past)
        return seal(previous, self.id, self.what, self.spent_at, self.text, self.derived_from, past, self.version)


def seal(*parts: str | int | None) -> str:
    """SHA-256 of these parts, as text."""
    return hashlib.sha256(json.dumps(parts, default=repr).encode()).hexdigest()


def now() -> int:
    """Seconds since 1970, UTC."""
    return int(time.time())


def create(path: Path, dataset: str, limit: str | None, patience: float) -> None:
    """Create a ledger file that only its owner can read. A kill meanwhile leaves an empty file, for which
    :func:`transaction` raises."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise errors.ledger_exists(path) from None
    except OSError as problem:
        raise errors.ledger_unusable(path, problem.strerror or "an input/output error") from None
    about = (dataset, limit, now(), __version__)
    try:
        with _in_our_words(path, patience), contextlib.closing(_connect(path, patience)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORM}")
            for statement in _statements(_TABLES):
                connection.execute(statement)
            connection.execute("INSERT INTO about VALUES (?, ?, ?, ?, ?)", (*about, seal(*about)))
            connection.execute("COMMIT")
        _flush(path.parent)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def transaction(path: Path, patience: float, writing: bool = False, thorough: bool = False) -> Iterator[Contents]:
    """Read a ledger and lock it for the block; changes are committed at its end, and undone by an error."""
    if not path.exists():
        raise errors.ledger_missing(path)
    if path.is_dir():
        raise errors.not_a_ledger(path, "it is a folder")
    with _in_our_words(path, patience), contextlib.closing(_connect(path, patience)) as connection:
        _check_kind(connection, path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        _check_whole(connection, path, thorough)
        yield _contents(connection, path)
        connection.execute("COMMIT")


@dataclass(frozen=True)
class Contents:
    """The contents of a ledger during a transaction."""

    connection: sqlite3.Connection
    dataset: str
    limit: str | None
    about_seal: str
    entries: tuple[Entry, ...]

    def append(
        self,
        what: str,
        text: str,
        derived_from: int | None,
        past: bool,
        folder: Path | None,
        manifest: str | None,
        finished: bool,
    ) -> Entry:
        """Add an entry, sealed after the last one."""
        moment = now()
        place = None if folder is None else str(folder).encode(errors="backslashreplace").decode()
        entry = Entry(
            id=len(self.entries) + 1,
            what=what.encode(errors="backslashreplace").decode(),
            spent_at=moment,
            text=text,
            derived_from=derived_from,
            past=past,
            version=__version__,
            seal="",
            folder=folder,
            manifest=manifest,
            finished_at=moment if finished else None,
        )
        sealed = entry.sealed_after(self.entries[-1].seal if self.entries else self.about_seal)
        values = (entry.id, entry.what, moment, text, derived_from, int(past), __version__, sealed)
        self.connection.execute(
            f"INSERT INTO entries ({_SEALED}, seal, folder, manifest, finished_at) VALUES ({', '.join('?' * 11)})",
            (*values, place, manifest, entry.finished_at),
        )
        return replace(entry, seal=sealed)

    def finish(self, entry: Entry, folder: Path, manifest: str) -> None:
        """Note that the release of an entry is complete in ``folder``."""
        place = str(folder).encode(errors="backslashreplace").decode()
        self.connection.execute(
            "UPDATE entries SET folder = ?, manifest = ?, finished_at = ? WHERE id = ?",
            (place, manifest, now(), entry.id),
        )


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    place = Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 - SQLite follows links itself
    connection = sqlite3.connect(f"{place}?mode=rw", uri=True, timeout=patience, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # where fsync alone does not reach the disk
    return connection


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Raise if the file is not a ledger of a known format version, before anything in it is changed."""
    if path.stat().st_size == 0 and not connection.execute("PRAGMA page_count").fetchone()[0]:
        reason = "it is empty, as a 'ledger init' that was killed leaves it; if so, delete it and start again"
        raise errors.not_a_ledger(path, reason)
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise errors.not_a_ledger(path, "it is a database of another program")
    form = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if form != FORM:
        raise errors.ledger_version(path, form, FORM)


def _check_whole(connection: sqlite3.Connection, path: Path, thorough: bool) -> None:
    """Raise if the file was cut short or overwritten.

    SQLite fills a last page that is cut short with zeros, so the length is compared as well.
    """
    pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    if path.stat().st_size < pages * size:
        raise errors.ledger_damaged(path, f"it ends after {path.stat().st_size:,} of {pages * size:,} bytes")
    found = connection.execute(f"PRAGMA {'integrity' if thorough else 'quick'}_check(1)").fetchone()
    if found != ("ok",):
        raise errors.ledger_damaged(path, "its pages contradict one another")


def _contents(connection: sqlite3.Connection, path: Path) -> Contents:
    """Everything in the file; raises if a seal is broken."""
    about = connection.execute("SELECT dataset, allowed, begun_at, version, seal FROM about").fetchall()
    if len(about) != 1 or about[0][-1] != seal(*about[0][:-1]):
        raise errors.ledger_damaged(path, "its dataset or its limit is not what it was made with")
    previous = about[0][-1]
    entries = []
    query = f"SELECT {_SEALED}, seal, folder, manifest, finished_at FROM entries ORDER BY id"
    for number, row in enumerate(connection.execute(query), 1):
        number_found, what, spent_at, text, derived_from, past, version, found, folder, manifest, finished_at = row
        entry = Entry(
            number_found, what, spent_at, text, derived_from, bool(past), version, found,
            None if folder is None else Path(str(folder)), manifest, finished_at,
        )  # fmt: skip
        if entry.id != number or found != entry.sealed_after(previous):
            raise errors.ledger_damaged(path, f"entry {number} is missing or is not what was written")
        previous = found
        entries.append(entry)
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    if (last[0] if last else 0) != len(entries):
        raise errors.ledger_damaged(path, f"it had {last[0] if last else 0} entries and has {len(entries)}")
    return Contents(connection, about[0][0], about[0][1], about[0][-1], tuple(entries))


@contextlib.contextmanager
def _in_our_words(path: Path, patience: float) -> Iterator[None]:
    """Turn SQLite's errors into errors for users; faults in this module's own calls pass unchanged."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise errors.ledger_locked(path, patience) from None
        if code == sqlite3.SQLITE_NOTADB:
            raise errors.not_a_ledger(path, "it is no SQLite database") from None
        if code in _REASONS:
            raise errors.ledger_unusable(path, _REASONS[code]) from None
        raise errors.ledger_damaged(path, "it cannot be read to its end") from None
    except OSError as problem:
        raise errors.ledger_unusable(path, problem.strerror or "an input/output error") from None


_REASONS = {
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_READONLY: "it can be read but not written",
    sqlite3.SQLITE_IOERR: "an input/output error",
    sqlite3.SQLITE_FULL: "no space left on device",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_AUTH: "permission denied",
}


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: ``executescript`` would commit on the way."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
