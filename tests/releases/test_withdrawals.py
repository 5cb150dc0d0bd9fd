"""Withdrawn releases: what a ledger records, what the folder and the list state, and what ``verify`` says of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import polars as pl
import pytest
from ledger_tools import ZCDP, change, kept_rows, refused, rewrite
from test_ledger import make_release

import stirred
from postgresql_server import grant, new_address, schema_of, server
from stirred import errors
from stirred.errors import LedgerError, OutputError
from stirred.releases.folder.manifest import WITHDRAWN, manifest_of, sign
from stirred.releases.ledger import rows as ledger_rows
from stirred.releases.ledger import sqlite_file, withdrawals
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.ledger.withdrawals import Notice, list_text, place_notice
from stirred.releases.verdicts import State

REASON = "Two counties were exchanged."


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path) -> str:
    return str(tmp_path / "survey.ledger") if request.param == "file" else new_address()


def filled(place: str | Path, folder: Path) -> Ledger:
    """A ledger with two releases, in the folders ``first`` and ``second``."""
    ledger = Ledger.create(place, "health survey", ZCDP.at(1))
    for name in ("first", "second"):
        ledger.record(ZCDP.at("0.25"), name, make_release(folder / name, name))
    return ledger


@pytest.fixture
def ledger(place, tmp_path) -> Ledger:
    return filled(place, tmp_path)


@pytest.fixture
def in_file(tmp_path) -> Ledger:
    return filled(tmp_path / "survey.ledger", tmp_path)


def failing(ledger: Ledger) -> set[str]:
    return {verdict.kind for verdict in ledger.verify() if not verdict.holds}


# -- the ledger --------------------------------------------------------------------------------------------------


def test_a_withdrawal_is_recorded_and_stated_and_gives_no_budget_back(ledger, tmp_path):
    before, seal = ledger.standing(), ledger.seal
    done = ledger.withdraw(tmp_path / "first", f" {REASON}\n", superseded_by=tmp_path / "second")
    assert done.added and done.placed == ((tmp_path / "first", None),)
    first, second = ledger.entries()
    assert (first.state, second.state) == ("withdrawn", "released")
    (found,) = first.withdrawals
    assert (found.manifest, found.reason) == (manifest_of(tmp_path / "first"), REASON)
    assert found.superseded_by == manifest_of(tmp_path / "second")
    after = ledger.standing()
    assert after.left == before.left and after.total == before.total
    assert (before.withdrawn, after.withdrawn, after.counted) == (0, 1, 2)
    assert failing(ledger) == set()
    assert any("recorded after it: entry 1 was withdrawn" in verdict.words for verdict in ledger.verify(seal))
    text = (tmp_path / "first" / WITHDRAWN).read_text(encoding="utf-8")
    assert REASON in text and found.superseded_by in text and "stays spent" in text
    assert Notice.parse(text) == Notice.of(found)


def test_the_list_has_nothing_of_the_ledger_but_what_is_withdrawn(in_file, tmp_path):
    in_file.spend(ZCDP.at("0.1"), "a secret draw", tmp_path / "never", who="Ada Lovelace", why="request 17")
    assert json.loads(in_file.withdrawn())["withdrawn"] == []
    in_file.withdraw(1, REASON)
    fields = json.loads(in_file.withdrawn())
    assert set(fields) == {"stirred_withdrawn", "dataset", "made_on", "withdrawn"}
    (one,) = fields["withdrawn"]
    assert set(one) == {"manifest_sha256", "withdrawn_on", "reason", "superseded_by"}
    for secret in (str(tmp_path), "first", "Ada", "request", "secret", manifest_of(tmp_path / "second")):
        assert secret not in in_file.withdrawn()


def test_a_repeated_withdrawal_adds_nothing_and_another_reason_is_refused(ledger, tmp_path):
    ledger.withdraw(tmp_path / "first", REASON)
    seal = ledger.seal
    for again in (REASON, None):
        assert not ledger.withdraw(tmp_path / "first", again).added
    assert not ledger.withdraw(1).added
    with refused("ledger-withdrawn-already", "with another reason"):
        ledger.withdraw(tmp_path / "first", "Something else.")
    assert ledger.seal == seal


def test_a_successor_can_be_named_later_once(ledger, tmp_path):
    ledger.record(ZCDP.at("0.25"), "third", make_release(tmp_path / "third", "third"))
    (before,) = ledger.withdraw(1, REASON).withdrawals
    assert ledger.withdraw(1, superseded_by=tmp_path / "second").added
    (after,) = ledger.entries()[0].withdrawals
    assert (after.withdrawn_at, after.reason) == (before.withdrawn_at, REASON)
    assert after.superseded_by == manifest_of(tmp_path / "second")
    assert after.superseded_by in (tmp_path / "first" / WITHDRAWN).read_text()
    assert not ledger.withdraw(1, superseded_by=tmp_path / "second").added
    with refused("ledger-withdrawn-already", "with another successor"):
        ledger.withdraw(1, superseded_by=tmp_path / "third")
    assert failing(ledger) == set()


def test_what_cannot_be_withdrawn_is_refused_with_the_reason(in_file, tmp_path):
    seal = in_file.seal
    stranger = make_release(tmp_path / "stranger", "of another ledger")
    with refused("ledger-not-recorded", "name that dataset's ledger"):
        in_file.withdraw(stranger, REASON)
    with refused("ledger-not-recorded", "nothing is there"):
        in_file.withdraw(tmp_path / "nowhere", REASON)
    with refused("ledger-unknown-entry"):
        in_file.withdraw(7, REASON)
    for reason in (None, " \n"):
        with refused("ledger-no-reason", "--reason"):
            in_file.withdraw(1, reason)
    with refused("ledger-note-too-long"):
        in_file.withdraw(1, "x" * 2001)
    assert in_file.seal == seal
    in_file.record(ZCDP.at("0.1"), "a table on paper")
    with refused("ledger-nothing-to-withdraw", "Entry 3"):
        in_file.withdraw(3, REASON)
    assert not (stranger / WITHDRAWN).exists()


def test_a_successor_is_a_recorded_release_that_stands(in_file, tmp_path):
    stranger = make_release(tmp_path / "stranger", "of another ledger")
    with refused("ledger-not-recorded", str(stranger)):
        in_file.withdraw(1, REASON, superseded_by=stranger)
    with refused("ledger-bad-successor", "itself to be withdrawn"):
        in_file.withdraw(1, REASON, superseded_by=tmp_path / "first")
    in_file.withdraw(2, REASON)
    with refused("ledger-bad-successor", "was withdrawn itself"):
        in_file.withdraw(1, REASON, superseded_by=tmp_path / "second")
    assert in_file.entries()[0].withdrawals == ()


def test_a_release_whose_folder_is_gone_is_withdrawn_by_its_path_or_entry(in_file, tmp_path):
    shutil.rmtree(tmp_path / "first")
    done = in_file.withdraw(tmp_path / "first", REASON)
    assert done.placed == ((tmp_path / "first", "nothing is there any more"),)
    assert not in_file.withdraw(1, REASON).added
    assert failing(in_file) == set()  # without the withdrawal: release-missing
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "notes.txt").write_text("of somebody else")
    assert in_file.withdraw(1).placed == ((tmp_path / "first", "what is there now is not that release"),)
    assert failing(in_file) == set()


def test_a_later_release_in_the_same_place_is_left_alone(in_file, tmp_path):
    shutil.rmtree(tmp_path / "first")
    in_file.record(ZCDP.at("0.25"), "again", make_release(tmp_path / "first", "again"))
    assert failing(in_file) == {"changed"}
    done = in_file.withdraw(1, REASON, superseded_by=tmp_path / "first")
    assert done.placed == ((tmp_path / "first", "what is there now is not that release"),)
    assert not (tmp_path / "first" / WITHDRAWN).exists()
    assert failing(in_file) == set()
    shutil.rmtree(tmp_path / "first")
    with refused("ledger-not-recorded", "several were recorded there"):
        in_file.withdraw(tmp_path / "first", REASON)


def test_a_notice_alone_may_stand_in_the_place_of_a_release(in_file, tmp_path):
    in_file.withdraw(1, REASON)
    for path in (tmp_path / "first").iterdir():
        if path.name != WITHDRAWN:
            path.unlink()
    assert failing(in_file) == set()
    assert not in_file.withdraw(tmp_path / "first").added
    with refused("not-a-release", "was withdrawn, and WITHDRAWN.txt was left in its place", OutputError):
        stirred.verify(tmp_path / "first")


def test_each_folder_of_a_draw_is_withdrawn_by_itself(in_file, tmp_path):
    nonce = "0" * 32
    in_file.record(ZCDP.at("0.25"), "draw", make_release(tmp_path / "one", "one", nonce))
    in_file.record(None, "finished again", make_release(tmp_path / "two", "two", nonce), derived_from=3)
    in_file.withdraw(tmp_path / "one", REASON, superseded_by=tmp_path / "two")
    assert in_file.entries()[2].state == "released"
    assert not (tmp_path / "two" / WITHDRAWN).exists()
    in_file.withdraw(tmp_path / "two", REASON)
    assert in_file.entries()[2].state == "withdrawn"


def test_a_kill_between_ledger_and_folder_is_found_and_repeating_mends_it(in_file, tmp_path, monkeypatch):
    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(withdrawals, "place_notice", killed)
        with pytest.raises(KeyboardInterrupt):
            in_file.withdraw(1, REASON)
    assert in_file.entries()[0].state == "withdrawn"
    assert failing(in_file) == {"withdrawn-without-notice"}
    (tmp_path / "first" / WITHDRAWN).write_text("This release was withdr")
    assert failing(in_file) == {"withdrawn-without-notice"}
    assert not in_file.withdraw(1).added
    assert failing(in_file) == set()


def test_a_withdrawal_of_which_nobody_knows_can_be_repeated(in_file, tmp_path, monkeypatch):
    def lost(*given: object) -> None:
        raise errors.ledger_unknown(in_file.path, "token", "the connection was lost.")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_file, "read_back", lost)
        with refused("ledger-unknown-withdrawal", "Repeat the command") as refusal:
            in_file.withdraw(1, REASON)
        assert "spent" not in str(refusal.value)
    assert not (tmp_path / "first" / WITHDRAWN).exists()
    assert not in_file.withdraw(1, REASON).added
    assert (tmp_path / "first" / WITHDRAWN).exists()


def test_a_notice_that_cannot_be_written_is_told_and_nothing_else_is_overwritten(in_file, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / "first" / WITHDRAWN).symlink_to(elsewhere)
    with refused("withdrawn-not-stated", "repeat the command"):
        in_file.withdraw(1, REASON)
    assert elsewhere.read_text() == "mine"
    assert in_file.entries()[0].state == "withdrawn"


def test_of_withdrawals_at_once_one_is_recorded_and_the_others_are_told(ledger, tmp_path):
    meeting, found = threading.Barrier(4), []

    def run(number: int) -> None:
        meeting.wait(timeout=60)
        try:
            found.append(ledger.withdraw(tmp_path / "first", f"Reason {number}.").withdrawals[0].reason)
        except LedgerError as refusal:
            found.append(refusal.kind)

    runners = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for one in runners:
        one.start()
    for one in runners:
        one.join(timeout=120)
    (recorded,) = ledger.entries()[0].withdrawals
    assert sorted(found) == sorted([recorded.reason, *["ledger-withdrawn-already"] * 3])
    assert Notice.parse((tmp_path / "first" / WITHDRAWN).read_text()) == Notice.of(recorded)


def test_rows_about_withdrawals_that_make_no_sense_are_refused(in_file, tmp_path):
    in_file.withdraw(1, REASON)
    rows = kept_rows(in_file.path)
    (last,) = (json.loads(row.body) for row in rows if row.kind == ledger_rows.WITHDRAWN)
    other = manifest_of(tmp_path / "second")
    wrong = (
        {"manifest": other}, {"manifest": None}, {"reason": ""}, {"reason": "a\nb"}, {"reason": "x" * 2001},
        {"superseded_by": "0" * 64}, {"entry": 0},
        {"superseded_by": last["manifest"]}, {"more": 1},
    )  # fmt: skip
    for fields in wrong:
        rewrite(in_file.path, [*rows[:-1], rows[-1]._replace(body=json.dumps(last | fields))])
        with refused("ledger-damaged", "contradict"):
            in_file.entries()
    for fields in ({}, {"superseded_by": other, "reason": "Another."}):
        rewrite(in_file.path, [*rows, rows[-1]._replace(body=json.dumps(last | fields))])
        with refused("ledger-damaged", "contradict"):
            in_file.entries()
    rewrite(in_file.path, [*rows, rows[-1]._replace(body=json.dumps(last | {"superseded_by": other}))])
    assert in_file.entries()[0].withdrawals[0].superseded_by == other


# -- earlier forms of the ledger -----------------------------------------------------------------------------------


def form_of(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_a_file_of_form_2_stays_so_until_the_first_withdrawal(in_file):
    change(in_file.path, "PRAGMA user_version = 2")
    in_file.spend(ZCDP.at("0.1"), "tables")
    assert form_of(in_file.path) == 2
    in_file.withdraw(1, REASON)
    assert form_of(in_file.path) == 3
    assert in_file.entries()[0].state == "withdrawn"


def test_on_a_server_the_owner_makes_the_first_withdrawal_in_a_ledger_of_form_2(tmp_path):
    address = new_address()
    owner = filled(address, tmp_path)
    comment = f"COMMENT ON SCHEMA {schema_of(address)} IS 'a ledger of stirred, format version 2'"
    server().run(comment, database=address.rsplit("/", 1)[1].split("?")[0])
    role = Ledger.open(grant(address))
    seal = role.seal
    with refused("ledger-owner-first", "owner's role"):
        role.withdraw(1, REASON)
    assert role.seal == seal
    owner.withdraw(1, REASON)
    assert role.withdraw(2, REASON).added


def test_a_releasing_role_withdraws_in_a_new_ledger(tmp_path):
    address = new_address()
    filled(address, tmp_path)
    assert Ledger.open(grant(address)).withdraw(1, REASON).added


# -- the recipient -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A release."""
    folder = tmp_path_factory.mktemp("made") / "release"
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    plan = stirred.SwapPlan(
        unit="household", dataset="a town", match=["size"], swap=["county"], hold=["tenure"], rate=0.1,
        chosen_from="public",
    )  # fmt: skip
    stirred.release(plan, rows, out=folder, report=False)
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "release"))


@pytest.fixture
def notice(folder) -> Notice:
    return Notice(manifest_of(folder), "2030-04-01", REASON, "0" * 64)


def listed(path: Path, dataset: str, *notices: Notice) -> Path:
    fields = json.loads(list_text(dataset, ()))
    path.write_text(json.dumps(fields | {"withdrawn": [one.fields for one in notices]}), encoding="utf-8")
    return path


def test_verify_reports_the_notice_and_nothing_else_changes(folder, notice):
    before = stirred.verify(folder)
    assert before.state is State.HOLDS
    assert not any("withdrawn" in verdict.words for verdict in before)  # nothing is known of it
    place_notice(folder, notice)
    found = stirred.verify(folder)
    assert found.state is State.WITHDRAWN
    assert found[1:] == before
    assert not found[0].holds
    words = str(found).splitlines()
    assert words[0].startswith("Withdrawn, as the line with WITHDRAWN says. Apart from that: Everything was")
    assert words[1].startswith("WITHDRAWN  on 2030-04-01, as WITHDRAWN.txt (covered by no manifest and no signature)")
    assert REASON in words[1] and "0" * 64 in words[1]


def test_verify_finds_a_withdrawn_release_by_the_list(folder, notice, tmp_path):
    other = Notice("1" * 64, "2030-05-01", "Another one.", None)
    names_it = listed(tmp_path / "names.json", "a town", other, notice)
    found = stirred.verify(folder, withdrawn=names_it)
    assert found.state is State.WITHDRAWN
    assert f"on 2030-04-01, as the list {names_it}, made on" in found[0].words
    found = stirred.verify(folder, withdrawn=listed(tmp_path / "others.json", "a town", other))
    assert found.state is State.HOLDS
    assert "does not name it among the withdrawn releases" in found[0].words
    found = stirred.verify(folder, withdrawn=listed(tmp_path / "elsewhere.json", "another town", other))
    assert found.state is State.NOT_COMPARED
    assert "whether it was withdrawn: not compared" in found[0].words
    (folder / "microdata.csv").write_bytes(b"")
    assert stirred.verify(folder, withdrawn=names_it).state is State.CONTRADICTED


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "The truth: 17\n",
        lambda text: text.replace("2030-04-01", "2030-13-01"),
        lambda text: text.replace(REASON, REASON + "\u202e"),
        lambda text: text.replace(REASON, REASON + "  And."),
        lambda text: text.replace(REASON, "x" * 2001),
        lambda text: text.replace("that was withdrawn: ", "that was withdrawn: 0")[:-1],
        lambda text: "",
    ],
)
def test_a_notice_that_says_anything_else_is_contradicted(change, folder, notice):
    (folder / WITHDRAWN).write_text(change(notice.text), encoding="utf-8")
    found = stirred.verify(folder)
    assert found.state is State.CONTRADICTED
    assert "WITHDRAWN.txt is not a notice" in found[0].words


def test_a_notice_of_another_release_and_a_link_are_contradicted(folder, tmp_path):
    place_notice(folder, Notice("1" * 64, "2030-04-01", REASON, None))
    found = stirred.verify(folder)
    assert found.state is State.CONTRADICTED and "about another release" in found[0].words
    (folder / WITHDRAWN).rename(tmp_path / WITHDRAWN)
    (folder / WITHDRAWN).symlink_to(tmp_path / WITHDRAWN)
    assert stirred.verify(folder).state is State.CONTRADICTED


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", '{"stirred_withdrawn": 9}',
        '{"stirred_withdrawn": 1, "dataset": "a", "made_on": "2030-04-01", "withdrawn": [{}]}',
        '{"stirred_withdrawn": 1, "dataset": "a", "made_on": "2030-04-01", "withdrawn": {"a": 1}}',
        '{"stirred_withdrawn": 1, "dataset": "a", "made_on": "today", "withdrawn": []}',
    ],
)  # fmt: skip
def test_a_list_that_is_none_is_refused(content, folder, tmp_path):
    (tmp_path / "list.json").write_text(content)
    with refused("no-withdrawn-list", "stirred ledger withdrawn"):
        stirred.verify(folder, withdrawn=tmp_path / "list.json")


def test_a_list_that_is_missing_or_half_right_is_refused(folder, notice, tmp_path):
    with refused("no-withdrawn-list", "No such file"):
        stirred.verify(folder, withdrawn=tmp_path / "nowhere.json")
    path = listed(tmp_path / "list.json", "a town", notice)
    fields = json.loads(path.read_text())
    for wrong in ({"superseded_by": ""}, {"superseded_by": 7}, {"reason": None}, {"manifest_sha256": "x"}, {"more": 1}):
        path.write_text(json.dumps(fields | {"withdrawn": [notice.fields | wrong]}))
        with refused("no-withdrawn-list"):
            stirred.verify(folder, withdrawn=path)


def test_a_withdrawn_release_is_not_signed(folder, notice, tmp_path):
    place_notice(folder, notice)
    with refused("cannot-sign", "it was withdrawn", OutputError):
        sign(folder, tmp_path / "key")


def test_a_notice_can_be_read_by_those_who_read_the_release(folder, notice):
    mask = os.umask(0o022)
    try:
        place_notice(folder, notice)
    finally:
        os.umask(mask)
    assert (folder / WITHDRAWN).stat().st_mode & 0o777 == 0o644
