"""A ledger in a file: a SQLite database with one table, to which rows are only added.

Every use is one transaction on a connection of its own, so a handle can be shared by threads and processes. The
rollback journal (mode DELETE) rather than WAL keeps the ledger a single file, safe to copy when at rest and free of
shared memory; with synchronous = EXTRA the journal's removal, which is the commit, is itself flushed to the folder
before a commit returns. Writers queue for the one reserved lock before they read, so no two decide on the same total.

SQLite lets one process at a time write by POSIX locks on the file. Some file systems grant such locks to everyone, and
network file systems may grant them on each machine separately: two machines then decide on the same total, and together
pass the limit. Both are looked for before anything is written. The first by a trial on an unnamed file in the ledger's
folder, never on the ledger itself: closing any handle of a file drops all of a process's locks on it. The second by the
kind of file system, since no trial on one machine tells what another one sees.

SQLite notices a broken page; seals and the count of rows notice rows that were changed or lost; tables, triggers and
indices are compared with those that a ledger is made with.

A file of format version 1 (stirred 0.1) is read where it is, and nothing in it is changed by reading. The first row
that is added turns it into the present format, in the same transaction: its entries become rows that keep their seals.
Format version 2 has the same table, and no rows about withdrawals: the first of these raises it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sqlite3
import stat
import struct
import subprocess  # nosec B404 # runs this Python on a fixed program, see below
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred import errors
from stirred.releases.folder.atomic import flush_one
from stirred.releases.ledger.rows import FORM, WITHDRAWN, Contents, Draft, Row, read_rows, rows_of_form_1, seal_rows
from stirred.releases.ledger.store import Decision, read_back

_OVER_A_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf"),
        *(f"fuse.{name}" for name in ("ceph", "davfs2", "gcsfuse", "glusterfs", "goofys", "rclone", "s3fs", "sshfs")),
    }
)
_CHILD = "import fcntl, sys\ntry: fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError: sys.exit(7)"


def locks_problem(path: Path) -> str | None:
    """Why locks cannot be relied on for a ledger in this file; None if nothing speaks against them."""
    folder = Path(os.path.realpath(path)).parent
    kind = file_system(folder)
    if kind in _OVER_A_NETWORK:
        return f"it is on a network file system ({kind}), whose locks may not reach other machines"
    if not exclusive(folder):
        return "the file system that it is on gives one lock to two holders"
    return None


def file_system(folder: Path) -> str | None:
    """The kind of file system that a folder is on; None where that cannot be found out."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    found: tuple[int, str | None] = (-1, None)
    for line in mounts.splitlines():
        place, _, rest = line.partition(" - ")
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place.split(" ")[4]))
        if folder.is_relative_to(point) and len(point.parts) >= found[0]:
            found = (len(point.parts), rest.split(" ")[0])
    return found[1]


def exclusive(folder: Path) -> bool:
    """Whether a lock that is held refuses a second holder, tried on a file in this folder."""
    try:
        import fcntl
    except ImportError:
        raise errors.needs_posix() from None
    with _trial(folder) as (first, second):
        if hasattr(fcntl, "F_OFD_SETLK"):  # locks of an open file, which also exclude the process that holds one
            wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            try:
                fcntl.fcntl(first, fcntl.F_OFD_SETLK, wanted)
            except OSError:
                return False
            try:
                fcntl.fcntl(second, fcntl.F_OFD_SETLK, wanted)
            except OSError:
                return True
            return False
        try:
            fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        child = [sys.executable, "-I", "-S", "-c", _CHILD]
        return subprocess.run(child, stdin=second, check=False).returncode == 7  # nosec B603 # no shell


@contextlib.contextmanager
def _trial(folder: Path) -> Iterator[tuple[int, int]]:
    """Two handles of one file that has no name, or loses it at once, so that a kill leaves nothing."""
    handles: list[int] = []
    try:
        try:
            handles.append(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
            handles.append(os.open(f"/proc/self/fd/{handles[0]}", os.O_RDWR))
        except (AttributeError, OSError):
            name = folder / f".stirred-lock-trial-{os.urandom(8).hex()}"
            handles.append(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                handles.append(os.open(name, os.O_RDWR))
            finally:
                name.unlink()
        yield handles[-2], handles[-1]
    finally:
        for handle in handles:
            os.close(handle)


_APPLICATION = int.from_bytes(b"Stir")
_TABLES = {
    1: """
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
""",
    2: """
CREATE TABLE rows (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    seal TEXT NOT NULL UNIQUE
);
CREATE TRIGGER a_row_is_never_changed BEFORE UPDATE ON rows
    BEGIN SELECT RAISE (ABORT, 'a row of a ledger is never changed'); END;
CREATE TRIGGER a_row_stays BEFORE DELETE ON rows
    BEGIN SELECT RAISE (ABORT, 'a row of a ledger is never taken back'); END;
CREATE TRIGGER a_row_is_never_replaced BEFORE INSERT ON rows
    WHEN EXISTS (SELECT 1 FROM rows WHERE number = NEW.number OR token = NEW.token OR seal = NEW.seal)
    BEGIN SELECT RAISE (ABORT, 'a row of a ledger is never replaced'); END;
""",
}
_TABLES[FORM] = _TABLES[2]
_COUNTED = {1: ("entries", "SELECT count(*) FROM entries")} | dict.fromkeys(
    (2, FORM), ("rows", "SELECT count(*) FROM rows")
)
"""By format version, the table whose rows are numbered without a gap, and how many it has."""
_ENTRIES_OF_FORM_1 = (
    "SELECT id, what, spent_at, specification, derived_from, past, version, seal, folder, manifest, finished_at "
    "FROM entries ORDER BY id"
)


@dataclass(frozen=True)
class FileStore:
    """A ledger in a SQLite file."""

    path: Path
    patience: float

    def create(self, first: Draft) -> None:
        """Create a file that only its owner can read. A kill meanwhile leaves an empty file, which no one can open."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise errors.ledger_exists(self.path) from None
        except (OSError, ValueError) as problem:
            raise errors.ledger_unusable(self.path, _reason(problem)) from None
        try:
            self.require_recording()
            rows = seal_rows([first])
            with self._in_our_words(), contextlib.closing(_connect(self.path, self.patience)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                _make(connection, rows)
                connection.execute("COMMIT")
                flush_one(self.path.parent)
            read_back(self.read, rows, self.path)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    def read(self, thorough: bool = False) -> Contents:
        """Everything in the file."""
        with self._transaction(writing=False, thorough=thorough) as (connection, form):
            return self._contents(connection, form)

    def append(self, decide: Decision) -> tuple[Contents, Sequence[Row]]:
        """Add rows, and read them back on another connection."""
        with self._transaction(writing=True) as (connection, form):
            before = self._contents(connection, form)
            rows = before.sealed(decide(before))
            if rows:
                self.require_recording()
                if form == 1:
                    _leave_form_1(connection, before.rows)
                elif any(row.kind == WITHDRAWN for row in rows):
                    connection.execute(f"PRAGMA user_version = {FORM}")
                _insert(connection, rows)
        return (read_back(self.read, rows, self.path) if rows else before), rows

    def cautions(self) -> list[tuple[bool, str, str]]:
        """Whether locks hold here, in words."""
        with self._in_our_words():
            problem = locks_problem(self.path)
        if problem is None:
            return [(True, "locks", "locks keep two processes from recording at once")]
        return [(False, "locks", f"locks do not protect this ledger: {problem}; nothing can be recorded in it here")]

    @contextlib.contextmanager
    def _transaction(self, writing: bool, thorough: bool = False) -> Iterator[tuple[sqlite3.Connection, int]]:
        """Lock the ledger for the block; changes are committed at its end, and undone by an error."""
        self._require_a_file()
        with self._in_our_words(), contextlib.closing(_connect(self.path, self.patience)) as connection:
            self._check_kind(connection)
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            form = self._check_kind(connection)  # again: another process may have changed it until the lock was had
            self._check_whole(connection, form, thorough)
            yield connection, form
            connection.execute("COMMIT")

    def _require_a_file(self) -> None:
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            raise errors.ledger_missing(self.path) from None
        except (OSError, ValueError) as problem:
            raise errors.ledger_unusable(self.path, _reason(problem)) from None
        if not stat.S_ISREG(mode):
            raise errors.not_a_ledger(self.path, "it is a folder" if stat.S_ISDIR(mode) else "it is not a file")

    def require_recording(self) -> None:
        """Raise if locks do not keep two processes from adding rows at once."""
        with self._in_our_words():
            problem = locks_problem(self.path)
        if problem is not None:
            raise errors.LedgerError(
                "ledger-without-locks",
                f"Nothing can be recorded in the ledger {self.path}: {problem}.",
                "Two runs at once could pass the limit together. Keep the file on a local disk, or keep the ledger on "
                "a PostgreSQL server: see docs/ledger.md (stirred docs ledger).",
            )

    def _check_kind(self, connection: sqlite3.Connection) -> int:
        """The format version; raises if the file is not a ledger, before anything in it is changed."""
        if self.path.stat().st_size == 0 and not connection.execute("PRAGMA page_count").fetchone()[0]:
            reason = "it is empty, as a 'ledger init' that was killed leaves it; if so, delete it and start again"
            raise errors.not_a_ledger(self.path, reason)
        if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise errors.not_a_ledger(self.path, "it is a database of another program")
        form = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if form not in _TABLES:
            raise errors.ledger_version(self.path, form, FORM)
        return form

    def _check_whole(self, connection: sqlite3.Connection, form: int, thorough: bool) -> None:
        """Raise if the file was cut short or overwritten, or has other tables or triggers than it was made with.

        SQLite fills a last page that is cut short with zeros, so the length is compared as well.
        """
        pages, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
        if (there := self.path.stat().st_size) < pages * size:
            raise errors.ledger_damaged(self.path, f"it ends after {there:,} of {pages * size:,} bytes")
        found = connection.execute(f"PRAGMA {'integrity' if thorough else 'quick'}_check(1)").fetchone()
        if found != ("ok",):
            raise errors.ledger_damaged(self.path, "its pages contradict one another")
        if _schema(connection) != _expected_schema(form):
            raise errors.ledger_damaged(self.path, "its tables or triggers are not those that a ledger is made with")

    def _contents(self, connection: sqlite3.Connection, form: int) -> Contents:
        rows = _rows_of_form_1(connection, self.path) if form == 1 else _rows(connection)
        table, number = _COUNTED[form]
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        had, has = last[0] if last else 0, connection.execute(number).fetchone()[0]
        if had != has:
            raise errors.ledger_damaged(self.path, f"it had {had} {table} and has {has}")
        return read_rows(rows, self.path)

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Turn SQLite's errors into errors for users; faults in this module's own calls pass unchanged."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except UnicodeDecodeError:  # in SQLite's message about a broken schema, which quotes it
            raise errors.ledger_damaged(self.path, "its tables cannot be read") from None
        except sqlite3.Error as problem:
            code = getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise errors.ledger_locked(self.path, self.patience) from None
            if code == sqlite3.SQLITE_NOTADB:
                raise errors.not_a_ledger(self.path, "it is no SQLite database") from None
            if code in _REASONS:
                raise errors.ledger_unusable(self.path, _REASONS[code]) from None
            raise errors.ledger_damaged(self.path, "it cannot be read to its end") from None
        except OSError as problem:
            raise errors.ledger_unusable(self.path, problem.strerror or "an input/output error") from None


_REASONS = {
    sqlite3.SQLITE_PERM: "permission denied",
    sqlite3.SQLITE_READONLY: "it can be read but not written",
    sqlite3.SQLITE_IOERR: "an input/output error",
    sqlite3.SQLITE_FULL: "no space left on device",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_AUTH: "permission denied",
}


def _reason(problem: OSError | ValueError) -> str:
    return getattr(problem, "strerror", None) or "no file can have this name"


def _connect(path: Path, patience: float) -> sqlite3.Connection:
    place = Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 - SQLite follows links itself
    connection = sqlite3.connect(f"{place}?mode=rw", uri=True, timeout=patience, isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # where fsync alone does not reach the disk
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _make(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    connection.execute(f"PRAGMA user_version = {FORM}")
    for statement in _statements(_TABLES[FORM]):
        connection.execute(statement)
    _insert(connection, rows)


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    connection.executemany("INSERT INTO rows (number, kind, token, body, seal) VALUES (?, ?, ?, ?, ?)", rows)


def _leave_form_1(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Put the rows that a ledger of format version 1 was read as in the place of its tables."""
    for name in ("entries", "about"):
        connection.execute(f"DROP TABLE {name}")  # and its triggers
    _make(connection, rows)


def _rows(connection: sqlite3.Connection) -> list[Row]:
    return [Row(*row) for row in connection.execute("SELECT number, kind, token, body, seal FROM rows ORDER BY number")]


def _rows_of_form_1(connection: sqlite3.Connection, path: Path) -> list[Row]:
    about = connection.execute("SELECT dataset, allowed, begun_at, version, seal FROM about").fetchall()
    if len(about) != 1:
        raise errors.ledger_damaged(path, "its dataset or its limit is not what it was made with")
    try:
        return rows_of_form_1(about[0], connection.execute(_ENTRIES_OF_FORM_1))
    except TypeError:  # bytes where text was written
        raise errors.ledger_damaged(path, "an entry is not what was written") from None


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str, str, str | None]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@functools.cache
def _expected_schema(form: int) -> set[tuple[str, str, str, str | None]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES[form])
        return _schema(connection)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: ``executescript`` would commit on the way."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
