"""A ledger on a PostgreSQL server, which several machines share: one table in a schema of its own, only added to.

Who adds a row first takes an advisory lock of the session, then reads and adds in one SERIALIZABLE transaction. The
lock makes writers queue; that no two decide on the same total rests on the transaction and on the primary key, also
for a program that takes no lock.

A commit whose answer is lost is found out: the lost session keeps its lock until the server has ended it, so whoever
gets the lock on a new connection knows that the lost commit has happened or never will, and looks for the row by its
token. If no new connection comes about in time, an error says that nobody knows.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stirred import errors
from stirred.releases.ledger.rows import FORM, WITHDRAWN, Contents, Draft, Row, one_line, read_rows, seal_rows
from stirred.releases.ledger.store import Decision, ServerAddress, read_back

if TYPE_CHECKING:
    import psycopg

_FORMS = (2, FORM)
"""Format versions that are read; the table is the same."""
_GRACE = 30.0
"""Seconds beyond its patience after which a use of a connection is broken off, whatever the server does."""
_IDLE = 10.0
"""Seconds after which the server ends a session that asks for nothing, and gives its lock to the next."""
_PAUSE = 0.1
_COMMENT = "a ledger of stirred, format version"
_STATE_FORM = f"COMMENT ON SCHEMA {{schema}} IS '{_COMMENT} {FORM}'"
_REFUSES = "BEGIN RAISE EXCEPTION 'a row of a ledger is never changed or taken back'; END"
_TABLES = (
    "CREATE SCHEMA {schema}",
    "CREATE TABLE {schema}.rows (number integer PRIMARY KEY, kind text NOT NULL, token text NOT NULL UNIQUE, "
    "body text NOT NULL, seal text NOT NULL UNIQUE)",
    "CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $body$ " + _REFUSES + " $body$",
    "CREATE TRIGGER a_row_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.rows "
    "FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse()",
    "ALTER TABLE {schema}.rows ENABLE ALWAYS TRIGGER a_row_stays",
    "REVOKE ALL ON SCHEMA {schema} FROM PUBLIC",
    "REVOKE ALL ON {schema}.rows FROM PUBLIC",
    "REVOKE ALL ON FUNCTION {schema}.refuse() FROM PUBLIC",
    _STATE_FORM,
)
_SCHEMA_QUERIES = (
    # Not relhasrules, which the server clears only at its next VACUUM.
    "SELECT c.relname, c.relkind, c.relpersistence, c.relrowsecurity, "
    "EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid) FROM pg_class c "
    "WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind NOT IN ('i', 't') ORDER BY 1",
    "SELECT a.attname, a.atttypid::regtype::text, a.attnotnull, a.atthasdef, a.attgenerated, a.attidentity "
    "FROM pg_attribute a WHERE a.attrelid = %(table)s::regclass AND a.attnum > 0 AND NOT a.attisdropped "
    "ORDER BY a.attnum",
    "SELECT c.contype, pg_get_constraintdef(c.oid), c.condeferrable FROM pg_constraint c "
    "WHERE c.conrelid = %(table)s::regclass AND c.contype <> 'n' ORDER BY 1, 2",
    "SELECT t.tgname, t.tgtype, t.tgenabled, t.tgqual IS NULL, p.proname, p.pronamespace::regnamespace::text, "
    "p.prosrc, p.proconfig IS NULL FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
    "WHERE t.tgrelid = %(table)s::regclass",
    "SELECT i.indisunique, i.indisvalid, i.indpred IS NULL FROM pg_index i WHERE i.indrelid = %(table)s::regclass "
    "ORDER BY 1, 2, 3",
)
_TRIGGER_TYPE = 2 | 8 | 16 | 32
"""Before, delete, update, truncate; for each statement."""
_DEFINITE = ("40001", "40P01")
"""SQLSTATEs after which a transaction was certainly undone: a serialisation failure, a deadlock."""


class _LostAtCommit(Exception):
    """The connection was lost after COMMIT was sent: nobody knows yet whether these rows are there."""

    def __init__(self, rows: Sequence[Row]) -> None:
        super().__init__()
        self.rows = rows


class _Again(Exception):
    """The transaction was certainly undone, and may succeed when it is run again."""


@dataclass(frozen=True)
class ServerStore:
    """A ledger in a PostgreSQL database."""

    address: ServerAddress
    patience: float

    def create(self, first: Draft) -> None:
        """Create the schema and the table; the role that does so owns them."""
        rows = seal_rows([first])
        with self._connected() as connection:
            self._lock(connection)
            if _there(connection, self.address.schema):
                raise errors.ledger_exists(self.address)
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            for statement in _TABLES:
                connection.execute(statement.format(schema=self.address.schema).encode())
            self._insert(connection, rows)
            connection.execute("COMMIT")
        read_back(self.read, rows, self.address)

    def read(self, thorough: bool = False) -> Contents:
        """Everything in the table."""
        with self._connected() as connection:
            return self._read(connection)

    def append(self, decide: Decision) -> tuple[Contents, Sequence[Row]]:
        """Add rows; returns when they are known to be there."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                before, rows = self._attempt(decide)
            except _LostAtCommit as lost:
                rows = lost.rows
                if not self._arrived(rows):
                    if time.monotonic() > deadline:
                        raise errors.ledger_unreachable(self.address, "the connection was lost") from None
                    continue
            except _Again:
                if time.monotonic() > deadline:
                    raise errors.ledger_locked(self.address, self.patience) from None
                time.sleep(_PAUSE)
                continue
            else:
                if not rows:
                    return before, rows
            return read_back(self.read, rows, self.address), rows

    def require_recording(self) -> None:
        """Raise if the role of this address may not add rows."""
        with self._connected() as connection:
            query = "SELECT has_table_privilege(%s, 'INSERT')"
            if connection.execute(query, (f"{self.address.schema}.rows",)).fetchone() != (True,):
                raise errors.ledger_role(self.address, self.address.schema)

    def cautions(self) -> list[tuple[bool, str, str]]:
        """What the role of this address may do to the rows, in words."""
        query = "SELECT string_agg(p, ', ') FROM unnest(%s::text[]) p WHERE has_table_privilege(%s, p)"
        with self._connected() as connection:
            table = f"{self.address.schema}.rows"
            found = connection.execute(query, (["UPDATE", "DELETE", "TRUNCATE", "TRIGGER"], table)).fetchone()
        if found is None or found[0] is None:
            return [(True, "role", "the role of this address can add rows and read them, and not change or remove any")]
        words = f"the role of this address may do more than add and read rows ({found[0]}): release with another role"
        return [(True, "role", words)]

    # -- one transaction -------------------------------------------------------------------------------------------

    def _attempt(self, decide: Decision) -> tuple[Contents, Sequence[Row]]:
        """Read, decide and add in one transaction."""
        psycopg = _driver()
        with self._connected() as connection:
            self._lock(connection)
            try:
                connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
                before = self._read(connection)
                rows = before.sealed(decide(before))
                if not rows:
                    return before, rows
                if any(row.kind == WITHDRAWN for row in rows):
                    self._raise_form(connection)
                self._insert(connection, rows)
            except psycopg.Error as problem:
                if problem.sqlstate in (*_DEFINITE, "23505"):  # someone added a row with this number without the lock
                    raise _Again from None
                raise
            try:
                connection.execute("COMMIT")
            except psycopg.Error as problem:
                if problem.sqlstate in _DEFINITE:
                    raise _Again from None
                raise _LostAtCommit(rows) from None
            return before, rows

    def _arrived(self, rows: Sequence[Row]) -> bool:
        """Whether rows are there whose commit was not answered; raises if that cannot be found out in time."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                with self._connected() as connection:
                    self._lock(connection)  # had only when the lost session has ended, and with it its commit
                    tokens = {row.token for row in self._read(connection).rows}
                return rows[0].token in tokens
            except errors.LedgerError as refusal:
                if refusal.kind not in ("ledger-unreachable", "ledger-locked") or time.monotonic() > deadline:
                    reason = f"the connection was lost while it was being recorded. {refusal.problem}"
                    raise errors.ledger_unknown(self.address, rows[0].token, reason) from None
            time.sleep(_PAUSE)

    def _insert(self, connection: psycopg.Connection[Any], rows: Sequence[Row]) -> None:
        for row in rows:
            connection.execute(self._table(b"INSERT INTO %b.rows VALUES (%%s, %%s, %%s, %%s, %%s)"), row)

    def _read(self, connection: psycopg.Connection[Any]) -> Contents:
        """All rows, once the table is known to be as it was made."""
        schema = self.address.schema
        if not _there(connection, schema):
            raise errors.ledger_missing(self.address)
        if (form := self._form(connection)) not in _FORMS:
            raise errors.ledger_version(self.address, form, FORM)
        if _schema(connection, schema) != _expected_schema(schema):
            raise errors.ledger_damaged(self.address, "its table or trigger is not what a ledger is made with")
        rows = connection.execute(self._table(b"SELECT number, kind, token, body, seal FROM %b.rows ORDER BY number"))
        return read_rows([Row(*row) for row in rows.fetchall()], self.address)

    def _form(self, connection: psycopg.Connection[Any]) -> int:
        """The format version that the schema states; raises if it is not of a ledger."""
        schema = self.address.schema
        query = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
        (said,) = connection.execute(query, (schema,)).fetchone() or ("",)
        stated = re.fullmatch(_COMMENT + r" (\d+)", said or "")
        if stated is None:
            raise errors.not_a_ledger(self.address, f"the schema {schema} is of another program")
        return int(stated[1])

    def _raise_form(self, connection: psycopg.Connection[Any]) -> None:
        """State the present format version, so that versions that know no withdrawals refuse the ledger as newer."""
        if self._form(connection) == FORM:
            return
        try:
            connection.execute(_STATE_FORM.format(schema=self.address.schema).encode())
        except _driver().errors.InsufficientPrivilege:
            raise errors.LedgerError(
                "ledger-owner-first",
                f"The ledger {self.address} was started by an earlier version of stirred, and the first withdrawal "
                "raises its format version, which only the role that owns it may do.",
                "Nothing was recorded. Repeat this once with the address of the owner's role; afterwards any role "
                "that may add rows can withdraw releases.",
            ) from None

    def _table(self, query: bytes) -> bytes:
        return query % self.address.schema.encode()

    # -- the connection --------------------------------------------------------------------------------------------

    def _lock(self, connection: psycopg.Connection[Any]) -> None:
        """Wait until no other session is adding rows; the lock is given back when the connection is closed."""
        key = int.from_bytes(hashlib.sha256(f"stirred ledger {self.address.schema}".encode()).digest()[:8], signed=True)
        connection.execute("SELECT pg_advisory_lock(%s)", (key,))

    @contextlib.contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection of its own for the block, with errors in our words and an end to every wait."""
        psycopg = _driver()
        alive = {"keepalives_idle": 10, "keepalives_interval": 5}
        with self._in_our_words():
            connection = psycopg.connect(
                self.address.conninfo,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=max(2, round(self.patience)),
                application_name="stirred ledger",
                client_encoding="utf8",
                **{name: seconds for name, seconds in alive.items() if f"{name}=" not in self.address.conninfo},
            )
            with contextlib.closing(connection), _broken_off(connection, self.patience + _GRACE):
                self._prepare(connection)
                yield connection

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        """Settings of the session, and what the server must promise: a commit that it answers is on its disk."""
        wait = max(1, round(self.patience * 1000))
        connection.execute("SET search_path TO pg_catalog")
        connection.execute(f"SET lock_timeout TO {wait}".encode())
        # A machine that is cut off must not keep the lock for hours.
        for name, value in (("idle", 10), ("interval", 5), ("count", 3)):
            connection.execute(f"SET tcp_keepalives_{name} TO {value}".encode())
        connection.execute(f"SET idle_in_transaction_session_timeout TO {round(wait + _GRACE * 1000)}".encode())
        if connection.info.server_version >= 140_000:
            connection.execute(f"SET idle_session_timeout TO {round(_IDLE * 1000)}".encode())
        query = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
        for (name,) in connection.execute(query).fetchall():
            raise errors.LedgerError(
                "ledger-unsafe-server",
                f"The server of the ledger {self.address} runs with {name} = off, so a power cut can lose what it "
                "confirmed.",
                f"Nothing was spent. Set {name} = on in the server's configuration.",
            )
        (flushed,) = connection.execute("SELECT current_setting('synchronous_commit')").fetchone() or ("off",)
        if flushed in ("off", "local"):
            connection.execute("SET synchronous_commit TO on")

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        """Turn the driver's errors into errors for users; none of them shows a password."""
        psycopg = _driver()
        try:
            yield
        except psycopg.Error as problem:
            state = problem.sqlstate or ""
            if state in ("55P03", "57014"):
                raise errors.ledger_locked(self.address, self.patience) from None
            if state == "42501":
                raise errors.ledger_role(self.address, self.address.schema) from None
            if state in ("", "25006") or state[:2] in ("08", "28", "3D", "53", "57", "58"):
                raise errors.ledger_unreachable(self.address, self._reason(problem)) from None
            reason = self._reason(problem)
            raise errors.LedgerError(
                "ledger-server",
                f"The server of the ledger {self.address} refused what was asked of it ({reason}).",
                "Nothing was spent. Ask whoever runs the server.",
            ) from None

    def _reason(self, problem: psycopg.Error) -> str:
        said = problem.diag.message_primary or " ".join(str(problem).split()) or "the connection was lost"
        return one_line(self.address.without_secrets(said))[:300].removesuffix(".")


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise errors.LedgerError(
            "ledger-needs-driver",
            "A ledger on a PostgreSQL server needs a package that is not installed (psycopg).",
            "Nothing was spent. Install it: pip install 'stirred[postgresql]'",
        ) from None
    return psycopg


@contextlib.contextmanager
def _broken_off(connection: psycopg.Connection[Any], seconds: float) -> Iterator[None]:
    """Close the connection's socket if the block takes longer, so that a server that says nothing is not waited for."""
    handle = socket.socket(fileno=os.dup(connection.fileno()))
    ending = threading.Timer(seconds, _shut, [handle])
    ending.daemon = True
    ending.start()
    try:
        yield
    finally:
        ending.cancel()
        handle.close()


def _shut(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it ended by itself meanwhile
        handle.shutdown(socket.SHUT_RDWR)


def _there(connection: psycopg.Connection[Any], schema: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None


def _schema(connection: psycopg.Connection[Any], schema: str) -> list[list[Any]]:
    """What the catalogue says about the table, its constraints, indices, triggers and rules."""
    given = {"schema": schema, "table": f"{schema}.rows"}
    table = connection.execute("SELECT to_regclass(%(table)s)::text", given).fetchone()
    if table is None or table[0] is None:
        return []
    return [connection.execute(query.encode(), given).fetchall() for query in _SCHEMA_QUERIES]


def _expected_schema(schema: str) -> list[list[Any]]:
    return [
        [("rows", "r", "p", False, False)],
        [
            ("number", "integer", True, False, "", ""),
            *((name, "text", True, False, "", "") for name in ("kind", "token", "body", "seal")),
        ],
        [("p", "PRIMARY KEY (number)", False), ("u", "UNIQUE (seal)", False), ("u", "UNIQUE (token)", False)],
        [("a_row_stays", _TRIGGER_TYPE, "A", True, "refuse", schema, f" {_REFUSES} ", True)],
        [(True, True, True)] * 3,
    ]
