"""A ledger file that someone changed: what the file itself notices, and what only a seal that was kept can tell."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
from ledger_tools import ZCDP, change, kept_rows, refused, rewrite

from stirred.releases.ledger import rows as ledger_rows
from stirred.releases.ledger import sqlite_file
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.ledger.rows import Row, read_rows, seal


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "survey.ledger"


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger.create(path, "health survey", ZCDP.at(1))


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    return folder


def seal_holds(ledger: Ledger, kept: str) -> bool:
    return next(verdict for verdict in ledger.verify(kept) if verdict.kind == "seal").holds


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM rows WHERE number = 1",
        "DELETE FROM rows WHERE number = 2",
        "DELETE FROM rows WHERE number = 5",
        "DELETE FROM rows",
        "UPDATE rows SET body = replace(body, '0.25', '0.05') WHERE number = 2",
        "UPDATE rows SET body = replace(body, '/out', '/elsewhere') WHERE number = 5",
        "UPDATE rows SET body = replace(body, '\"at\": 1', '\"at\": 2') WHERE number = 5",
        'UPDATE rows SET body = replace(body, \'"manifest": "\', \'"manifest": "0\') WHERE number = 5',
        "UPDATE rows SET kind = 'finished' WHERE number = 2",
        "UPDATE rows SET token = 'another' WHERE number = 2",
        "UPDATE rows SET body = x'00ff' WHERE number = 2",
        "UPDATE rows SET body = replace(body, 'health', 'wealth') WHERE number = 1",
        "UPDATE rows SET number = 9 WHERE number = 5",
        "DROP TABLE rows",
        "CREATE TRIGGER mine AFTER INSERT ON rows BEGIN SELECT 1; END",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON rows (kind)",
        "CREATE VIEW more AS SELECT * FROM rows",
        "ALTER TABLE rows ADD COLUMN more",
    ],
)
def test_a_ledger_that_was_tampered_with_counts_nothing(statement, ledger, path, tmp_path):
    for _ in range(2):
        ledger.spend(ZCDP.at("0.25"), "tables")
    change(path)
    ledger.spend(ZCDP.at("0.1"), "with its triggers as they were all is well")
    ledger.finished(3, make_folder(tmp_path / "out"))
    before = kept_rows(path)
    assert len(before) == 5
    change(path, statement)
    if statement.startswith("UPDATE"):
        assert kept_rows(path) != before  # else nothing was tested
    for use in (ledger.verify, lambda: ledger.spend(ZCDP.at("0.1"), "tables"), lambda: Ledger.open(path)):
        with refused("ledger-damaged"):
            use()


@pytest.mark.parametrize("name", ["a_row_stays", "a_row_is_never_changed", "a_row_is_never_replaced"])
def test_a_ledger_without_one_of_its_triggers_is_refused(name, ledger, path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    with refused("ledger-damaged", "its tables or triggers are not those that a ledger is made with"):
        ledger.spend(ZCDP.at("0.1"), "tables")


def test_only_a_seal_that_was_kept_tells_a_ledger_that_was_written_anew_or_is_an_older_copy(ledger, path, tmp_path):
    ledger.spend(ZCDP.at("0.25"), "tables")
    older = shutil.copy(path, tmp_path / "older.ledger")
    ledger.spend(ZCDP.at("0.25"), "more tables")
    kept = ledger.seal
    assert seal_holds(ledger, kept)
    shutil.copy(older, path)
    assert not seal_holds(ledger, kept)
    ledger.spend(ZCDP.at("0.25"), "more tables")  # the same words again are not the same row
    assert not seal_holds(ledger, kept)
    kept = ledger.seal
    rewrite(path, kept_rows(path)[:2])
    assert len(Ledger.open(path).entries()) == 1  # who can write the file can do this
    assert not seal_holds(ledger, kept)


@pytest.mark.parametrize(
    "fields",
    [
        {"entry": 2},
        {"entry": "1"},
        {"past": 1},
        {"at": 1e400},
        {"at": 10**12},
        {"at": -1},
        {"nonce": "x"},
        {"derived_from": 1},
        {"derived_from": 0},
        {"manifest": "x"},
        {"extra": 1},
        {"who": "\ud800"},
        {"nonce": 7},
        {"specification": None},
        {"version": ["a"]},
        {"earlier_seal": "0" * 64},
    ],
)
def test_rows_that_are_sealed_and_make_no_sense_are_refused(fields, ledger, path):
    ledger.spend(ZCDP.at("0.25"), "tables")
    first, second = kept_rows(path)
    rewrite(path, [first, second._replace(body=json.dumps(json.loads(second.body) | fields))])
    with refused("ledger-damaged", "its rows contradict one another"):
        Ledger.open(path)


def test_two_entries_with_one_nonce_are_refused(ledger, path):
    for nonce in ("0" * 32, "1" * 32):
        ledger.spend(ZCDP.at("0.25"), "tables", nonce=nonce)
    *others, last = kept_rows(path)
    rewrite(path, [*others, last._replace(body=last.body.replace("1" * 32, "0" * 32))])
    with refused("ledger-damaged", "contradict"):
        Ledger.open(path)


def test_a_schema_that_is_no_text_is_refused(ledger, path):
    whole = path.read_bytes()
    for place in range(whole.index(b"CREATE TRIGGER"), whole.index(b"CREATE TRIGGER") + 150):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with refused("ledger-damaged"):
            Ledger.open(path)


@pytest.mark.parametrize("which", [(1,), (0, 0), (0, 1, 1), ()])
def test_rows_in_an_order_that_makes_no_sense_are_refused(which, ledger, path):
    ledger.spend(ZCDP.at("0.25"), "tables")
    rows = kept_rows(path)
    rewrite(path, [rows[number] for number in which])
    with refused("ledger-damaged"):
        Ledger.open(path)


def test_a_row_nested_without_end_is_refused(path):
    body = "[" * 100_000
    with refused("ledger-damaged", "contradict"):
        read_rows([Row(1, "begun", "t", body, seal("stirred ledger 2", None, 1, "begun", "t", body))], path)


# -- ledgers of stirred 0.1 ------------------------------------------------------------------------------------


@pytest.fixture(params=["swap", "topdown"])
def old(request, tmp_path) -> Path:
    """A copy of a ledger that stirred 0.1 wrote."""
    made = Path(__file__).parents[1] / "fixtures" / "v0_1" / f"{request.param}.ledger"
    return Path(shutil.copy(made, tmp_path / "old.ledger"))


def test_a_ledger_of_0_1_is_read_in_place_and_gets_the_present_form_with_the_first_row_added(old):
    before = old.read_bytes()
    ledger = Ledger.open(old)
    (entry,) = ledger.entries()
    last = ledger.seal
    assert {verdict.kind for verdict in ledger.verify(entry.seal) if not verdict.holds} <= {"release-missing"}
    assert entry.version == "0.1.0" and entry.state == "released"
    ledger.check(entry.specification)
    assert old.read_bytes() == before
    ledger.spend(entry.specification, "more", nonce="0" * 32)
    with contextlib.closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (ledger_rows.FORM,)
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'entries'").fetchone() is None
    assert ledger.entries()[0] == entry and len(ledger.entries()) == 2
    # Both seals of before hold on: the entry's own of 0.1, which its work folder names, and the last one of the ledger.
    assert seal_holds(ledger, entry.seal) and seal_holds(ledger, last)
    rows = kept_rows(old)
    for number, name in ((0, "dataset"), (1, "what")):
        changed = list(rows)
        changed[number] = rows[number]._replace(body=json.dumps(json.loads(rows[number].body) | {name: "another"}))
        rewrite(old, changed)
        with refused("ledger-damaged"):  # the seal of 0.1 is in it still
            Ledger.open(old)


def test_a_kill_while_a_ledger_of_0_1_is_turned_into_rows_leaves_it_as_it_was(old, monkeypatch):
    before = Ledger.open(old).entries()
    child = os.fork()
    if child == 0:
        try:
            monkeypatch.setattr(sqlite_file, "_insert", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
            Ledger.open(old).spend(before[0].specification, "more")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    ledger = Ledger.open(old)
    assert ledger.entries() == before
    with contextlib.closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    ledger.spend(before[0].specification, "more")
    assert len(ledger.entries()) == 2


def test_a_refused_spend_leaves_a_ledger_of_0_1_as_it_is(old):
    before = old.read_bytes()
    with refused("ledger-other-dataset"):
        Ledger.open(old).spend(ZCDP.at(1), "tables")
    assert old.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET what = 'another'",
        "UPDATE about SET dataset = 'another'",
        "DELETE FROM entries",
        "DELETE FROM about",
        "UPDATE entries SET what = x'00'",
        "CREATE TABLE more (x)",
    ],
)
def test_a_ledger_of_0_1_that_was_tampered_with_counts_nothing(statement, old):
    change(old, statement)
    before = old.read_bytes()
    with refused("ledger-damaged"):
        Ledger.open(old)
    assert old.read_bytes() == before


def test_derived_entries_of_0_1_are_read_and_cost_nothing(tmp_path):
    path = tmp_path / "old.ledger"
    text = ZCDP.at("0.5").to_json()
    about = ("health survey", ZCDP.at(1).to_json(), 1_700_000_000, "0.1.0")
    seals = [seal(*about)]
    values = [(1, "tables", 1_700_000_001, text, None, 0, "0.1.0"), (2, "maps", 1_700_000_002, text, 1, 0, "0.1.0")]
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(sqlite_file._TABLES[1])
        connection.execute(f"PRAGMA application_id = {sqlite_file._APPLICATION}")
        connection.execute("PRAGMA user_version = 1")
        connection.execute("INSERT INTO about VALUES (?, ?, ?, ?, ?)", (*about, seals[0]))
        for row in values:
            seals.append(seal(seals[-1], *row))
            columns = ", ".join("?" * 11)
            connection.execute(f"INSERT INTO entries VALUES ({columns})", (*row, seals[-1], None, None, None))
        connection.commit()
    ledger = Ledger.open(path)
    assert [(entry.counted, entry.derived_from) for entry in ledger.entries()] == [(True, None), (False, 1)]
    ledger.spend(ZCDP.at("0.5"), "the rest")
    assert [(entry.counted, entry.derived_from) for entry in ledger.entries()][:2] == [(True, None), (False, 1)]
    assert ledger.standing().left == 0
    with refused("ledger-not-derived", "entry 2 is itself derived from entry 1: name that one"):
        ledger.record(None, "maps", make_folder(tmp_path / "out"), derived_from=2)


# -- file systems ------------------------------------------------------------------------------------------------


def test_where_locks_do_not_exclude_nothing_is_recorded_and_all_can_be_read(ledger, path, tmp_path, monkeypatch):
    ledger.spend(ZCDP.at("0.1"), "tables")
    assert (True, "locks") in [(verdict.holds, verdict.kind) for verdict in ledger.verify()]
    monkeypatch.setattr(sqlite_file, "exclusive", lambda folder: False)
    before = path.read_bytes()
    with refused("ledger-without-locks", "gives one lock to two holders. Two runs at once could pass the limit"):
        ledger.spend(ZCDP.at("0.1"), "tables")
    with refused("ledger-without-locks"):
        ledger.check(ZCDP.at("0.1"))
    with refused("ledger-without-locks"):
        Ledger.create(tmp_path / "new.ledger", "health survey")
    assert path.read_bytes() == before and not (tmp_path / "new.ledger").exists()
    assert len(ledger.entries()) == 1
    assert [verdict.kind for verdict in ledger.verify() if not verdict.holds] == ["locks", "spent-without-release"]


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_on_a_network_file_system_nothing_is_recorded(kind, ledger, monkeypatch):
    monkeypatch.setattr(sqlite_file, "file_system", lambda folder: kind)
    with refused("ledger-without-locks", f"it is on a network file system ({kind}), whose locks may not reach other"):
        ledger.spend(ZCDP.at("0.1"), "tables")
    assert ledger.entries() == ()


def test_the_kind_of_file_system_is_that_of_the_nearest_mount(monkeypatch):
    mounts = (
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "40 22 0:40 / /mnt/our\\040office rw shared:5 master:1 - nfs4 server:/x rw\n"
        "41 40 0:41 / /mnt/our\\040office/fast rw - tmpfs tmpfs rw\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda self, **_: mounts)
    found = [sqlite_file.file_system(Path(name)) for name in ("/data", "/mnt/our office/x", "/mnt/our office/fast/y")]
    assert found == ["ext4", "nfs4", "tmpfs"]


@pytest.mark.parametrize("way", ["open file", "process"])
def test_a_lock_is_tried_against_a_second_holder_and_leaves_nothing(way, tmp_path, monkeypatch):
    import fcntl

    if way == "process":
        monkeypatch.delattr(fcntl, "F_OFD_SETLK", raising=False)
    assert sqlite_file.exclusive(tmp_path)
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    assert sqlite_file.exclusive(tmp_path)
    assert list(tmp_path.iterdir()) == []
    if way == "open file":
        monkeypatch.setattr(fcntl, "fcntl", lambda *given: 0)  # every lock is given to everyone
    else:
        monkeypatch.setattr(fcntl, "lockf", lambda *given: None)
    assert not sqlite_file.exclusive(tmp_path)
