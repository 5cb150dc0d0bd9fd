"""A ledger on a real PostgreSQL server: its address, its roles, and what is lost between a client and a server."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from ledger_tools import ZCDP, refused

import stirred
from postgresql_server import Proxy, grant, new_address, proxy, schema_of, server
from stirred.errors import LedgerError
from stirred.releases.ledger import postgresql
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.ledger.store import ServerAddress

SECRET = "s3cr3t-7731"


@pytest.fixture
def address() -> str:
    return new_address()


@pytest.fixture
def ledger(address) -> Ledger:
    """A ledger as the role sees it that may add and read rows only."""
    Ledger.create(address, "health survey", ZCDP.at(1))
    return Ledger.open(grant(address))


def run(address: str, *statements: str, user: str = "owner") -> list[tuple[object, ...]]:
    return server().run(*statements, database="office", user=user)


# -- addresses and passwords ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown", "schema", "secrets"),
    [
        ("postgresql://db.office/census", "postgresql://db.office/census", "stirred_ledger", ()),
        (
            f"postgres://ada:{SECRET}@db.office:5433/census?stirred_ledger=households&sslmode=require",
            "postgresql://ada@db.office:5433/census?stirred_ledger=households",
            "stirred_ledger_households",
            (SECRET,),
        ),
        (
            f"postgresql:///census?host=/run/postgresql&user=ada&password={SECRET}",
            "postgresql:///census?host=/run/postgresql",
            "stirred_ledger",
            (SECRET,),
        ),
        ("postgresql://[::1]:5432,other:5433/x", "postgresql://[::1]:5432,other:5433/x", "stirred_ledger", ()),
        ("postgresql://ada:a%40b+c@h/x", "postgresql://ada@h/x", "stirred_ledger", ("a%40b+c", "a@b+c")),
        ("postgresql://", "postgresql://", "stirred_ledger", ()),
    ],
)
def test_an_address_is_shown_without_its_password(text, shown, schema, secrets):
    read = ServerAddress.parse(text)
    assert (str(read), read.schema, read.secrets) == (shown, schema, secrets)
    assert SECRET not in repr(read) and "stirred_ledger=" not in read.conninfo
    given = psycopg.conninfo.conninfo_to_dict(text.replace("stirred_ledger=households&", ""))
    assert psycopg.conninfo.conninfo_to_dict(read.conninfo) == given


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://ada:{SECRET}/x@db/census",
        f"postgresql://ada:{SECRET}?x@db/census",
        f"postgresql://ada:{SECRET}#@db/census",
        f"postgresql://ada:{SECRET}@db/census/more",
        f"postgresql://ada:{SECRET} @db/census",
        f"postgresql://{SECRET}:x/census",
        f"postgresql://ada:{SECRET}@db/census?stirred_ledger=Households",
        f"postgresql://ada:{SECRET}@db/census?stirred_ledger={'a' * 41}",
        f"postgresql://ada:{SECRET}@db/census?stirred_ledger=a;drop",
        f"postgresql://ada:{SECRET}@db/census?stirred_ledger=a&stirred_ledger=b",
        f"postgresql://ada:{SECRET}@db/census?nothing",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(text, command):
    with refused("ledger-address") as refusal:
        Ledger.open(text)
    assert SECRET not in str(refusal.value)
    ended = command("ledger", "list", text)
    assert ended.code == 2 and SECRET not in ended.said


def test_an_address_as_a_path_is_refused():
    with refused("ledger-address", "give it as text"):
        Ledger.open(Path("postgresql://db/census"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace(f":{server().port}/", ":1/"), "cannot be reached"),
        (lambda text: text.replace("/office", "/nothing"), 'database "nothing" does not exist'),
        (lambda text: text.replace("//owner", f"//ada:{SECRET}"), 'role "ada" does not exist'),
        (lambda text: f"{text}&sslmode={SECRET}", "***"),
        (lambda text: f"{text}&{SECRET}=1", "cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used_is_named_without_a_password(change, said, ledger, address, command):
    text = change(address).replace("//owner@", f"//owner:{SECRET}@")
    with refused("ledger-unreachable", "" if said == "***" else said) as refusal:
        Ledger.open(text, patience=1)
    assert SECRET not in str(refusal.value) and "Nothing was spent" in str(refusal.value)
    ended = command("ledger", "total", text)
    assert ended.code == 2 and SECRET not in ended.said


def test_no_message_note_or_report_shows_the_password(address, tmp_path, command, monkeypatch):
    text = address.replace("//owner@", f"//owner:{SECRET}@")
    said = [command("ledger", "init", text, "--dataset", "health survey", "--limit", "rho=1,unit=person")]
    assert said[0].code == 0 and "GRANT SELECT, INSERT ON" in said[0].out
    (tmp_path / "s.json").write_text(Ledger.open(text).limit.flavor.at("0.5").to_json())
    said.append(command("ledger", "add", text, tmp_path / "s.json", "--what", "tables"))
    assert said[-1].code == 0 and "Last seal: " in said[-1].out
    for verb in ("list", "total", "verify"):
        said += [command("ledger", verb, text), command("ledger", verb, text, "--json")]
    said.append(command("ledger", "init", text, "--dataset", "health survey"))
    said.append(command("ledger", "add", text, tmp_path / "s.json", "--what", "tables", "--derived-from", "1"))
    said.append(command("leftovers", tmp_path, "--ledger", text))
    assert [one.code for one in said] == [0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0]
    assert all(SECRET not in one.said for one in said)
    ledger = Ledger.open(text)
    assert SECRET not in f"{ledger!r} {ledger.path} {ledger.entries()} {vars(LedgerError)}"


def test_without_the_driver_a_message_says_what_to_install(address, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    ended = command("ledger", "list", address)
    assert ended.code == 2 and "pip install 'stirred[postgresql]'" in ended.err
    with refused("ledger-needs-driver"):
        Ledger.open(address)


def test_several_ledgers_share_a_database(address):
    other = new_address()
    first = Ledger.create(address, "health survey", ZCDP.at(1))
    second = Ledger.create(other, "health survey", ZCDP.at(2))
    first.spend(ZCDP.at(1), "tables")
    assert (first.standing().left, second.standing().left) == (0, 2)
    with refused("ledger-exists"):
        Ledger.create(address, "health survey")
    with refused("ledger-missing", "stirred ledger init"):
        Ledger.open(new_address())


# -- roles and tampering -------------------------------------------------------------------------------------------


def test_a_releasing_role_adds_and_reads_and_can_do_nothing_else(ledger, address):
    ledger.spend(ZCDP.at("0.25"), "tables")
    table = f"{schema_of(address)}.rows"
    for statement in (
        f"UPDATE {table} SET body = ''",
        f"DELETE FROM {table}",
        f"TRUNCATE {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE {table} DISABLE TRIGGER ALL",
        f"CREATE TRIGGER mine BEFORE INSERT ON {table} EXECUTE FUNCTION {schema_of(address)}.refuse()",
        f"CREATE TABLE {schema_of(address)}.more (x int)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(address, statement, user="releasing")
    (role,) = [verdict for verdict in ledger.verify() if verdict.kind == "role"]
    assert role.words == "the role of this address can add rows and read them, and not change or remove any"
    owner = Ledger.open(address)
    (role,) = [verdict for verdict in owner.verify() if verdict.kind == "role"]
    assert "(UPDATE, DELETE, TRUNCATE, TRIGGER): release with another role" in role.words
    for statement in (f"UPDATE {table} SET body = ''", f"DELETE FROM {table}", f"TRUNCATE {table}"):
        for before in ("SELECT 1", "SET session_replication_role TO replica"):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed or taken back"):
                run(address, before, statement)
    assert len(ledger.entries()) == 1


def test_a_role_without_rights_is_told_what_to_ask_for(address):
    Ledger.create(address, "health survey")
    run(address, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")
    with refused("ledger-role", f"GRANT SELECT, INSERT ON {schema_of(address)}.rows TO ROLE"):
        Ledger.open(address.replace("//owner@", "//guest@"))
    with refused("ledger-role", "the right to create schemas"):
        Ledger.create(new_address().replace("//owner@", "//guest@"), "health survey")
    reading = grant(address, "reader")
    run(address, f"REVOKE INSERT ON {schema_of(address)}.rows FROM reader")
    assert Ledger.open(reading).entries() == ()
    for use in (lambda ledger: ledger.check(ZCDP.at("0.1")), lambda ledger: ledger.spend(ZCDP.at("0.1"), "tables")):
        with refused("ledger-role"):
            use(Ledger.open(reading))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {table} WHERE number = 2",
        "DELETE FROM {table}",
        "UPDATE {table} SET body = replace(body, '0.25', '0.05')",
        "UPDATE {table} SET number = 7 WHERE number = 3",
        "INSERT INTO {table} VALUES (4, 'spent', 'x', '{{}}', 'y')",
        "ALTER TABLE {table} ADD COLUMN more text",
        "ALTER TABLE {table} ALTER COLUMN body DROP NOT NULL",
        "ALTER TABLE {table} DROP CONSTRAINT rows_token_key",
        "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        "CREATE INDEX ON {table} (kind)",
        "CREATE RULE mine AS ON INSERT TO {table} DO INSTEAD NOTHING",
        "CREATE TABLE {schema}.more (x int)",
        "CREATE TRIGGER mine BEFORE INSERT ON {table} EXECUTE FUNCTION {schema}.refuse()",
        "DROP TRIGGER a_row_stays ON {table}",
        "ALTER TABLE {table} ENABLE TRIGGER a_row_stays",
        "CREATE OR REPLACE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "DROP TABLE {table}",
    ],
)
def test_a_table_that_was_tampered_with_counts_nothing(statement, ledger, address):
    for _ in range(2):
        ledger.spend(ZCDP.at("0.25"), "tables")
    schema = schema_of(address)
    table = f"{schema}.rows"
    off, on = f"ALTER TABLE {table} DISABLE TRIGGER ALL", f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER a_row_stays"
    change = statement.format(schema=schema, table=table)
    run(address, *([off, change, on] if statement.startswith(("DELETE", "UPDATE")) else [change]))
    for use in (ledger.verify, lambda: ledger.spend(ZCDP.at("0.1"), "tables"), lambda: Ledger.open(address)):
        with refused("ledger-damaged"):
            use()


@pytest.mark.parametrize(
    ("made", "undone"),
    [
        ("CREATE RULE mine AS ON INSERT TO {table} DO INSTEAD NOTHING", "DROP RULE mine ON {table}"),
        (
            "CREATE TRIGGER mine BEFORE INSERT ON {table} EXECUTE FUNCTION {schema}.refuse()",
            "DROP TRIGGER mine ON {table}",
        ),
        ("CREATE INDEX mine ON {table} (kind)", "DROP INDEX {schema}.mine"),
        ("ALTER TABLE {table} ADD COLUMN more text", "ALTER TABLE {table} DROP COLUMN more"),
    ],
)
def test_a_change_of_the_table_that_was_undone_leaves_a_whole_ledger(made, undone, ledger, address):
    schema = schema_of(address)
    run(address, *(one.format(schema=schema, table=f"{schema}.rows") for one in (made, undone)))
    ledger.spend(ZCDP.at("0.25"), "tables")
    assert "its 1 entries are unchanged" in str(ledger.verify()[0])


@pytest.mark.parametrize(
    ("comment", "kind"), [("a ledger of stirred, format version 9", "ledger-version"), ("mine", "not-a-ledger")]
)
def test_a_schema_of_another_program_or_version_is_refused(comment, kind, ledger, address):
    run(address, f"COMMENT ON SCHEMA {schema_of(address)} IS '{comment}'")
    with refused(kind):
        ledger.spend(ZCDP.at("0.1"), "tables")


def test_what_a_server_refuses_is_told_in_its_words(ledger):
    with refused("ledger-server", "(division by zero). Nothing was spent"), ledger._store._connected() as connection:
        connection.execute("SELECT 1 / 0")


def test_a_server_that_may_lose_what_it_confirmed_is_refused(ledger):
    run("", "ALTER SYSTEM SET fsync TO off", "SELECT pg_reload_conf()")
    try:
        deadline = time.monotonic() + 30
        while run("", "SHOW fsync") != [("off",)] and time.monotonic() < deadline:
            time.sleep(0.05)
        with refused("ledger-unsafe-server", "fsync = off, so a power cut can lose what it confirmed"):
            ledger.spend(ZCDP.at("0.1"), "tables")
    finally:
        run("", "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf()")
        while run("", "SHOW fsync") != [("on",)]:
            time.sleep(0.05)
    run("", "ALTER ROLE releasing SET synchronous_commit TO off")
    try:
        with ledger._store._connected() as connection:
            assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    finally:
        run("", "ALTER ROLE releasing RESET synchronous_commit")


def test_a_ledger_that_another_session_keeps_locked_is_told_after_a_bounded_wait(ledger):
    with ledger._store._connected() as other:
        ledger._store._lock(other)
        with refused("ledger-locked", "locked for 0.3 seconds"):
            replace(ledger, patience=0.3).spend(ZCDP.at("0.1"), "tables")
        assert len(ledger.entries()) == 0  # reading waits for nobody
    ledger.spend(ZCDP.at("0.1"), "tables")


def test_a_program_that_takes_no_lock_cannot_pass_the_limit_either(ledger, monkeypatch):
    """The lock only makes writers queue: without it the transactions and the primary key still exclude."""
    monkeypatch.setattr(postgresql.ServerStore, "_lock", lambda self, connection: None)
    monkeypatch.setattr(postgresql, "_PAUSE", 0.01)
    outcomes: list[str] = []

    def spend() -> None:
        try:
            ledger.spend(ZCDP.at("0.3"), "tables")
            outcomes.append("passed")
        except LedgerError as refusal:
            outcomes.append(refusal.kind)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["ledger-over-limit"] * 5 + ["passed"] * 3
    assert len(ledger.entries()) == 3


# -- connections that are lost -------------------------------------------------------------------------------------


@pytest.fixture
def between():
    with proxy() as made:
        yield made


def through(ledger: Ledger, between: Proxy, patience: float = 10.0) -> Ledger:
    text = str(ledger.path).replace(f":{server().port}/", f":{between.port}/")
    return Ledger.open(text, patience=patience)


@pytest.mark.parametrize("losses", [["drop-before"], ["drop-after"], ["drop-before", "drop-before", "drop-after"]])
def test_a_connection_lost_at_commit_is_found_out_and_the_spend_is_there_once(losses, ledger, between):
    through(ledger, between).spend(ZCDP.at("0.1"), "before")
    between.at_commits = list(losses)
    entry = through(ledger, between).spend(ZCDP.at("0.1"), "tables")
    assert between.at_commits == []
    assert [one.what for one in ledger.entries()] == ["before", "tables"] and ledger.entries()[1] == entry


@pytest.mark.parametrize(("loss", "there"), [("drop-before", 0), ("drop-after", 1)])
def test_where_it_cannot_be_found_out_an_error_says_so_and_how_to_find_out(loss, there, ledger, between, command):
    cut = through(ledger, between, patience=1.0)
    between.at_commits, between.refuse_afterwards = [loss], True
    with refused("ledger-unknown", "Nothing is published, and the budget may have been spent") as refusal:
        cut.spend(ZCDP.at("0.1"), "tables")
    assert len(ledger.entries()) == there
    listed = command("ledger", "list", ledger.path, "--json").out
    token = str(refusal.value).partition('"token": ')[2].partition(".")[0]
    assert (f'"token": {token}' in listed) == bool(there)


def test_a_server_that_does_not_answer_is_not_waited_for_without_end(ledger, between, monkeypatch):
    monkeypatch.setattr(postgresql, "_GRACE", 0.5)
    monkeypatch.setattr(postgresql, "_IDLE", 1.0)
    slow = through(ledger, between, patience=5.0)
    between.at_commits = ["stall"]
    entry = replace(slow, patience=2.0).spend(ZCDP.at("0.1"), "tables")
    assert between.at_commits == [] and not between.waited_in_vain
    assert [one.what for one in ledger.entries()] == ["tables"] and ledger.entries()[0] == entry


def test_nothing_is_published_while_the_spend_is_unknown(address, between, tmp_path, command):
    data = tmp_path / "data"
    data.mkdir()
    rows = [f"{1 + i % 2},{'abc'[i // 2 % 3]},{('own', 'rent')[i // 5 % 2]}" for i in range(90)]
    (data / "households.csv").write_text("size,county,tenure\n" + "\n".join(rows) + "\n")
    (data / "plan.toml").write_text(
        'stirred = 1\nmechanism = "swap"\ndataset = "Utopia"\nunit = "household"\nrate = 0.5\nchosen_from = "public"\n'
        'match = ["size"]\nswap = ["county"]\nhold = ["tenure"]\n[input]\npath = "households.csv"\n'
    )
    Ledger.create(address, "Utopia")
    text = str(Ledger.open(address).path).replace(f":{server().port}/", f":{between.port}/")
    place = tmp_path / "place"
    place.mkdir()
    first = command("release", data / "plan.toml", "--out", place / "first", "--ledger", text)
    assert first.code == 0 and "Last seal" in first.out and command("verify", place / "first").code == 0
    ledger = Ledger.open(address)
    assert ledger.entries()[0].finishes[0].folder == place / "first"
    between.at_commits, between.refuse_afterwards = ["drop-after"], True
    with refused("ledger-unknown"):
        stirred.release(data / "plan.toml", out=place / "second", ledger=Ledger.open(text, patience=1.0))
    assert [path.name for path in place.iterdir()] == ["first"]
    assert len(ledger.entries()) == 2  # it did arrive: spent, and never published
    assert [verdict.kind for verdict in ledger.verify() if not verdict.holds] == ["spent-without-release"]


# -- a server that is killed ---------------------------------------------------------------------------------------

SPENDS = """
import sys, time
from stirred.errors import LedgerError
from stirred.releases.ledger.ledger import Ledger
from stirred.spec import Domain, flavors
zcdp = flavors.zcdp("person", domain=Domain("health survey", record="person", free=True))
number = 0
while True:
    number += 1
    try:
        ledger = Ledger.open(sys.argv[1], patience=20)
        entry = ledger.spend(zcdp.at("0.001"), f"{sys.argv[2]}-{number}")
        print("spent", entry.what, flush=True)
    except LedgerError as refusal:
        print(refusal.kind, f"{sys.argv[2]}-{number}", flush=True)
        time.sleep(0.05)
"""


def assert_server_kills_lose_nothing(address: str, kills: int) -> None:
    """Several clients spend in a loop while the server is killed and started again."""
    Ledger.create(address, "health survey", ZCDP.at(1000))
    clients = [
        subprocess.Popen([sys.executable, "-c", SPENDS, address, f"client{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    said: list[str] = []
    try:
        for number in range(kills):
            for client in clients:
                said.append(client.stdout.readline())
                while not said[-1].startswith("spent"):
                    assert said[-1], "a client ended by itself"
                    said.append(client.stdout.readline())
            time.sleep(0.03 * (number % 7))
            if number % 2:
                server().crash_a_session()
            else:
                server().kill()
                server().start()
    finally:
        for client in clients:
            client.kill()
        said += [line for client in clients for line in client.communicate()[0].splitlines()]
        server().wait()
    ledger = Ledger.open(address)
    ledger._store.append(lambda contents: [])
    found = [entry.what for entry in ledger.entries()]
    assert len(set(found)) == len(found), "a spend was recorded twice"
    outcomes = [line.split() for line in said]
    for outcome, what in outcomes:
        if outcome == "spent":
            assert what in found, "a spend that was told is lost"
        elif outcome != "ledger-unknown":
            assert what not in found, f"{outcome} was told, and budget was spent"
    assert len(found) > kills
    assert len(found) <= sum(outcome in ("spent", "ledger-unknown") for outcome, _ in outcomes) + len(clients)


def test_a_server_that_is_killed_loses_no_spend(address):
    assert_server_kills_lose_nothing(address, 2)  # the server itself, and one of its sessions


@pytest.mark.slow
def test_a_server_that_is_killed_often_loses_no_spend(address):
    assert_server_kills_lose_nothing(address, 30)
