"""The file of a ledger: damage never makes it count wrongly, and no two runs pass the limit at once."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_tools import ZCDP, change, refused

from stirred.errors import LedgerError
from stirred.releases.ledger import sqlite_file
from stirred.releases.ledger.ledger import Ledger


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "survey.ledger"


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger.create(path, "health survey", ZCDP.at(1))


# -- damage --------------------------------------------------------------------------------------------------


def test_a_ledger_is_private_and_a_single_file_at_rest(ledger, path, tmp_path):
    ledger.spend(ZCDP.at("0.1"), "tables")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_commit_is_on_disk_when_it_returns(ledger, path):
    with sqlite_file.FileStore(path, 1.0)._transaction(writing=True) as (connection, _):
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "fullfsync")
        }
    assert settings == {"synchronous": 3, "journal_mode": "delete", "fullfsync": 1}  # 3 is EXTRA


def test_a_ledger_is_started_once(ledger, path):
    before = path.read_bytes()
    with refused("ledger-exists"):
        Ledger.create(path, "health survey")
    assert path.read_bytes() == before


def test_a_path_that_is_no_ledger_is_refused(tmp_path):
    with refused("ledger-missing", "stirred ledger init"):
        Ledger.open(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
    with refused("not-a-ledger", "it is a folder"):
        Ledger.open(tmp_path)
    with refused("ledger-unusable"):
        Ledger.create(tmp_path / "missing" / "x.ledger", "health survey")
    with refused("ledger-unusable", "no file can have this name"):
        Ledger.open("a\0b")
    with refused("ledger-unusable"):
        Ledger.open("a" * 5000)
    os.mkfifo(tmp_path / "pipe")
    with refused("not-a-ledger", "it is not a file"):
        Ledger.open(tmp_path / "pipe")
    text = tmp_path / "notes.txt"
    for content, words in ((b"", "it is empty"), (b"notes " * 500, "no SQLite database")):
        text.write_bytes(content)
        with refused("not-a-ledger", words):
            Ledger.open(text)
        assert text.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_left_as_it_is(path):
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE entries (id)")
    connection.close()
    before = path.read_bytes()
    with refused("not-a-ledger", "another program"):
        Ledger.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("form", [0, 4, 99])
def test_a_ledger_of_another_form_is_refused_and_left_as_it_is(form, ledger, path):
    change(path, f"PRAGMA user_version = {form}")
    before = path.read_bytes()
    for use in (Ledger.open, lambda path: ledger.spend(ZCDP.at("0.1"), "tables")):
        with refused("ledger-version", f"has format version {form}; this version of stirred reads format versions up"):
            use(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM rows",
        "UPDATE rows SET body = ''",
        "INSERT OR REPLACE INTO rows SELECT number, kind, token, body || ' ', seal FROM rows WHERE number = 2",
        "INSERT OR REPLACE INTO rows SELECT 9, kind, token, body || ' ', seal FROM rows WHERE number = 2",
    ],
)
def test_the_file_itself_refuses_to_lose_or_change_a_spend(statement, ledger, path):
    ledger.spend(ZCDP.at("0.25"), "tables")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()


def test_a_ledger_cut_short_anywhere_is_refused_and_left_as_it_is(ledger, path, tmp_path):
    for number in range(12):
        ledger.spend(ZCDP.at("0.01"), f"tables {number}")
    whole = path.read_bytes()
    cut = tmp_path / "cut.ledger"
    lengths = {*range(200), *range(0, len(whole), 101), *range(len(whole) - 4200, len(whole), 13), len(whole) - 1}
    for length in sorted(lengths):
        cut.write_bytes(whole[:length])
        for use in (Ledger.open, lambda cut: replace(ledger, path=cut).spend(ZCDP.at("0.01"), "tables")):
            with pytest.raises(LedgerError) as refusal:
                use(cut)
            assert refusal.value.kind in ("ledger-damaged", "not-a-ledger"), length
            assert cut.read_bytes() == whole[:length]
        assert sorted(tmp_path.iterdir()) == [cut, path]
    with refused("ledger-damaged", f"it ends after {len(whole) - 1:,} of {len(whole):,} bytes"):
        Ledger.open(cut)


def test_a_ledger_with_a_flipped_byte_anywhere_never_counts_less(ledger, path, tmp_path):
    for number in range(6):
        ledger.spend(ZCDP.at("0.15"), f"tables {number}")
    whole = path.read_bytes()
    told = 0
    for place in range(100, len(whole), 61):
        other = tmp_path / "flipped.ledger"
        other.write_bytes(whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :])
        try:
            total = Ledger.open(other).total()
            assert total.specification.budget.value == Fraction(9, 10)
        except LedgerError:
            told += 1
    assert told > 50


def test_a_full_disk_while_spending_leaves_the_ledger_as_it_was(ledger, path, monkeypatch):
    ledger.spend(ZCDP.at("0.1"), "tables")
    connect = sqlite_file._connect

    def small(path: Path, patience: float) -> sqlite3.Connection:
        connection = connect(path, patience)
        connection.execute(f"PRAGMA max_page_count = {path.stat().st_size // 4096}")
        return connection

    monkeypatch.setattr(sqlite_file, "_connect", small)
    with refused("ledger-unusable", "no space left"):
        for _ in range(20):
            ledger.spend(ZCDP.at("0.01"), "tables " * 500)
    monkeypatch.undo()
    assert all(entry.what.startswith("tables") for entry in ledger.entries())
    ledger.spend(ZCDP.at("0.1"), "more tables")


# -- several at once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_locked_ledger_is_told_after_a_bounded_wait_and_nothing_is_spent(lock, ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(lock)
    with refused("ledger-locked", "locked for 0.2 seconds"):
        replace(ledger, patience=0.2).spend(ZCDP.at("0.1"), "tables")
    if lock == "BEGIN EXCLUSIVE":
        with refused("ledger-locked", "Wait for it to end"):
            Ledger.open(path, patience=0.2)
    other.execute("ROLLBACK")
    other.close()
    assert ledger.entries() == ()
    ledger.spend(ZCDP.at("0.1"), "tables")


def test_a_reader_that_keeps_the_ledger_open_delays_a_spend_and_loses_none(ledger, path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT * FROM rows").fetchall()
    with refused("ledger-locked"):
        replace(ledger, patience=0.2).spend(ZCDP.at("0.1"), "tables")
    spent: list[int] = []
    waiting = threading.Thread(target=lambda: spent.append(ledger.spend(ZCDP.at("0.1"), "tables").id))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    other.close()
    waiting.join(30)
    assert spent == [1]
    assert len(ledger.entries()) == 1


def test_threads_that_share_a_handle_lose_no_spend(path):
    ledger = Ledger.create(path, "health survey")
    threads = [
        threading.Thread(target=lambda: [ledger.spend(ZCDP.at("0.1"), "tables") for _ in range(10)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry.id for entry in ledger.entries()] == list(range(1, 41))
