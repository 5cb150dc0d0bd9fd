"""What the tests of the ledger share: a dataset, a flavor, and what a refusal must look like."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from stirred.errors import LedgerError, StirredError
from stirred.releases.ledger.rows import Draft, Row, seal_rows
from stirred.spec import Domain, flavors

DOMAIN = Domain("health survey", record="person", free=True)
ZCDP = flavors.zcdp("person", domain=DOMAIN)


@contextlib.contextmanager
def refused(kind: str, words: str = "", error: type[StirredError] = LedgerError):
    """The block must end in a refusal of this kind that says these words and carries no other exception."""
    with pytest.raises(error) as refusal:
        yield refusal
    assert refusal.value.kind == kind
    assert words in str(refusal.value)
    assert refusal.value.__cause__ is None


@contextlib.contextmanager
def tampering(path: Path):
    """What someone with another program can do to a ledger: its triggers taken off, and put back afterwards."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in triggers:
            with contextlib.suppress(sqlite3.OperationalError):  # its table is gone
                connection.execute(sql)
        connection.commit()


def change(path: Path, *statements: str) -> None:
    """Run statements against which a ledger's triggers would stand."""
    with tampering(path) as connection:
        for statement in statements:
            connection.execute(statement)


def kept_rows(path: Path) -> list[Row]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [Row(*row) for row in connection.execute("SELECT number, kind, token, body, seal FROM rows")]


def rewrite(path: Path, rows: list[Row]) -> None:
    """What someone can do who knows how seals are computed: other rows, all sealed anew."""
    drafts = [Draft(row.kind, json.loads(row.body)) for row in rows]
    with tampering(path) as connection:
        connection.execute("DELETE FROM rows")
        connection.execute("UPDATE sqlite_sequence SET seq = 0")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", seal_rows(drafts))
