"""The ledger as a custodian uses it: started before the first release, spent by releases, looked after later."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from postgresql_server import grant, new_address
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.ledger import store
from stirred.releases.ledger.ledger import Ledger
from stirred.spec import Specification
from test_docs import run_blocks

PLAN = """\
stirred = 1
mechanism = "swap"
dataset = "households of Utopia"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
tables = [["county", "tenure"]]
[input]
path = "households.csv"
"""
EPSILON = 3.83
"""Theorem 3.2.4: two strata of 45 at rate 1/2, ln 46 = 3.8286."""


@pytest.fixture
def plan(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [f"{1 + i % 2},{'abc'[i // 2 % 3]},{('own', 'rent')[i // 5 % 2]}" for i in range(90)]
    (folder / "households.csv").write_text("size,county,tenure\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder / "plan.toml"


@pytest.fixture
def limit(plan, tmp_path, command) -> Path:
    """The blocks of the planned release, known from its check."""
    path = tmp_path / "check.json"
    path.write_text(command("check", plan, "--json").out, encoding="utf-8")
    return path


def start(path: str | Path, limit: Path, command) -> None:
    ended = command("ledger", "init", path, "--dataset", "households of Utopia", "--limit", limit, "--budget", "8")
    assert (ended.code, ended.err) == (0, "")


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def ledger(request, limit, tmp_path, command) -> str:
    """A ledger with room for two releases of the plan, in a file or on a server."""
    path = str(tmp_path / "utopia.ledger") if request.param == "file" else new_address()
    start(path, limit, command)
    return path if request.param == "file" else grant(path)


@pytest.fixture
def ledger_file(limit, tmp_path, command) -> Path:
    """The same, always in a file."""
    start(tmp_path / "utopia.ledger", limit, command)
    return tmp_path / "utopia.ledger"


@pytest.fixture
def place(tmp_path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


# -- init --------------------------------------------------------------------------------------------------------


def test_init_says_what_was_started_and_what_comes_next(limit, tmp_path, command):
    path = tmp_path / "utopia.ledger"
    ended = command("ledger", "init", path, "--dataset", "households of Utopia", "--limit", limit, "--budget", "8")
    assert f"Started {path}, the ledger of 'households of Utopia'." in ended.out
    assert "limit: epsilon = 8.00" in ended.out
    assert "It is confidential" in ended.out
    assert 'dataset = "households of Utopia" in the plan' in ended.out
    again = command("ledger", "init", path, "--dataset", "households of Utopia")
    assert again.code == 2 and f"{path} exists already." in again.err


def test_the_limit_has_the_blocks_of_the_check_and_nothing_of_its_data(ledger, limit):
    kept = Ledger.open(ledger).limit
    checked = Specification.from_json(json.dumps(json.loads(limit.read_text(encoding="utf-8"))["specification"]))
    assert kept.flavor == replace(checked.flavor, domain=replace(checked.domain, variables=None, starts=""))
    assert kept.budget.value == 8
    assert (kept.facts, kept.findings, kept.covers, kept.budget.varies) == ((), (), (), "")


def test_a_release_folder_or_a_specification_can_be_the_limit(plan, place, command):
    assert command("release", plan, "--no-report", "--out", place / "first").code == 0
    for number, given in enumerate((place / "first", place / "first" / "specification.json")):
        file = place / f"{number}.ledger"
        assert command("ledger", "init", file, "--dataset", "households of Utopia", "--limit", given).code == 0
        assert command("ledger", "add", file, place / "first", "--what", "the first").code == 0
        assert command("release", plan, "--no-report", "--out", place / "second", "--ledger", file).code == 2


def test_a_typed_limit_is_about_the_ledgers_dataset(place, command):
    file = place / "typed.ledger"
    ended = command("ledger", "init", file, "--dataset", "Utopia", "--limit", "rho=2,unit=person", "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["limit"]["domain"]["name"] == "Utopia"
    assert json.loads(ended.out)["left"] == "2"


def test_a_typed_limit_says_that_it_will_refuse_swaps_and_does(place, plan, limit, command):
    typed, known = place / "typed.ledger", place / "known.ledger"
    ended = command(
        "ledger", "init", typed, "--dataset", "households of Utopia", "--limit", "epsilon=12,unit=household"
    )
    assert "it refuses every release that keeps counts exactly" in ended.out
    assert command("release", plan, "--no-report", "--out", place / "refused", "--ledger", typed).code == 2
    ended = command("ledger", "init", known, "--dataset", "households of Utopia", "--limit", limit, "--budget", "12")
    assert "refuses every release" not in ended.out
    assert command("release", plan, "--no-report", "--out", place / "made", "--ledger", known).code == 0


def test_a_release_is_tied_to_its_check(place, plan, command):
    code = re.search(r"Code of this check: ([A-Z2-7-]+)\.", command("check", plan).out)[1]
    assert command("release", plan, "--no-report", "--out", place / "made", "--as-checked", code).code == 0
    with (plan.parent / "households.csv").open("a", encoding="utf-8") as file:
        file.write("1,a,own\n")
    ended = command("release", plan, "--no-report", "--out", place / "other", "--as-checked", code)
    assert ended.code == 2
    assert "The data are not those that the check with this code has seen." in ended.err
    assert code not in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "3"], "a budget alone is not a guarantee"),
        (["--limit", "rho=1", "--budget", "a lot"], "A budget cannot be 'a lot'"),
        (["--limit", "nothing.json"], "nothing.json"),
    ],
)
def test_limits_that_are_none_are_refused_and_no_file_is_made(words, said, place, command):
    ended = command("ledger", "init", place / "x.ledger", "--dataset", "Utopia", *words)
    assert ended.code == 2
    assert said in ended.said
    assert list(place.iterdir()) == []


def test_a_limit_about_another_dataset_is_refused(limit, place, command):
    ended = command("ledger", "init", place / "x.ledger", "--dataset", "Utopia", "--limit", limit)
    assert ended.code == 2
    assert "The limit is about 'households of Utopia' and the ledger about 'Utopia'." in ended.err
    assert list(place.iterdir()) == []


# -- release -----------------------------------------------------------------------------------------------------


def test_without_a_ledger_a_release_says_that_nothing_is_counted(plan, place, command):
    ended = command("release", plan, "--no-report", "--out", place / "out")
    assert (
        "Not recorded in a ledger; pass --ledger FILE (start one with: stirred ledger init FILE --dataset NAME"
        in ended.out
    )


@pytest.mark.parametrize("ledger", ["file", "server"], indirect=True)
def test_releases_are_counted_until_the_limit_refuses(plan, ledger, place, command):
    for number, left in enumerate((4.17, 0.34)):
        ended = command("release", plan, "--no-report", "--out", place / f"out-{number}", "--ledger", ledger)
        assert ended.code == 0
        assert f"Recorded in {ledger}. Left for releases of the limit's own flavor: epsilon = {left}." in ended.out
        assert command("verify", place / f"out-{number}").code == 0
    before = sorted(place.iterdir())
    own = place / "own"
    ended = command("release", plan, "--no-report", "--out", place / "out-2", "--ledger", ledger, "--confidential", own)
    assert ended.code == 2
    assert f"is epsilon = 11.49, above 8.00, the limit of the ledger {ledger}." in " ".join(ended.err.split())
    assert "Nothing was released and nothing was spent." in ended.err
    assert sorted(place.iterdir()) == before
    entries = Ledger.open(ledger).entries()
    assert [(entry.state, entry.folder) for entry in entries] == [("released", path) for path in before]
    assert "ledger" not in (place / "out-0" / "certificate.json").read_text(encoding="utf-8")


def test_a_spend_comes_before_the_release_and_before_the_truth_is_compared(plan, ledger, place, monkeypatch, command):
    seen = []
    spend = Ledger.spend

    def watched(self, *given, **named):
        seen.append([path.name for path in place.iterdir() if not path.name.startswith(".")])
        return spend(self, *given, **named)

    monkeypatch.setattr(Ledger, "spend", watched)
    out, own = place / "out", place / "own"
    assert command("release", plan, "--no-report", "--out", out, "--confidential", own, "--ledger", ledger).code == 0
    assert seen == [[]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "There is no ledger at"),
        (lambda path: path.write_text("notes\n" * 200), "is not a ledger"),
        (lambda path: sqlite3.connect(path).execute("CREATE TABLE t (x)").connection.close(), "is not a ledger"),
    ],
)
def test_a_release_with_an_unusable_ledger_reads_no_data(make, said, plan, place, tmp_path, command):
    make(tmp_path / "bad.ledger")
    (plan.parent / "households.csv").unlink()
    ended = command("release", plan, "--no-report", "--out", place / "out", "--ledger", tmp_path / "bad.ledger")
    assert ended.code == 2
    assert said in ended.err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("line", ["", 'dataset = "households of Arcadia"\n'])
def test_a_plan_of_another_dataset_or_of_none_is_not_counted(line, plan, ledger, place, command):
    plan.write_text(PLAN.replace('dataset = "households of Utopia"\n', line), encoding="utf-8")
    ended = command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger)
    assert ended.code == 2
    assert 'give it that name: dataset = "households of Utopia" in the plan' in ended.err
    assert Ledger.open(ledger).entries() == ()
    assert list(place.iterdir()) == []


def test_a_release_under_other_invariants_is_refused_by_name(plan, ledger, place, command):
    plan.write_text(
        PLAN.replace('match = ["size"]', 'match = ["tenure"]').replace('hold = ["tenure"]', 'hold = ["size"]')
    )
    ended = command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger)
    assert ended.code == 2
    assert "no rule tells how it counts against this limit" in ended.err
    assert "Does the total (the first) imply the limit (the second)?" in ended.err
    assert "the number of household records by 'tenure' and 'county'" in ended.err
    assert list(place.iterdir()) == []


def test_a_locked_ledger_ends_a_release_without_a_trace(plan, ledger_file, place, monkeypatch, command):
    monkeypatch.setattr(store, "PATIENCE", 0.2)
    other = sqlite3.connect(ledger_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ended = command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger_file)
    other.close()
    assert ended.code == 2
    assert "locked for 0.2 seconds. Nothing was spent." in ended.err
    assert list(place.iterdir()) == []
    assert Ledger.open(ledger_file).entries() == ()


def test_a_write_that_fails_before_anything_is_visible_costs_nothing(plan, ledger, place, monkeypatch, command):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stirred.releases.folder.manifest.HeldBack.of", full)
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger).code == 2
    assert Ledger.open(ledger).entries() == ()


def test_a_ledger_that_cannot_be_told_of_the_end_does_not_fail_the_release(plan, ledger, place, monkeypatch, command):
    def locked(*_: object) -> None:
        from stirred import errors

        raise errors.ledger_locked(ledger, 30)

    monkeypatch.setattr(Ledger, "finished", locked)
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger).code == 0
    assert Ledger.open(ledger).entries()[0].state == "spent"
    assert command("ledger", "verify", ledger).code == 0


# -- add, list, total, verify --------------------------------------------------------------------------------------


def test_an_earlier_release_is_added_once(plan, ledger, place, command):
    assert command("release", plan, "--no-report", "--out", place / "out").code == 0
    ended = command("ledger", "add", ledger, place / "out", "--what", "made in spring")
    assert (ended.code, ended.err) == (0, "")
    assert "Recorded as entry 1" in ended.out and "epsilon = 4.17" in ended.out
    again = command("ledger", "add", ledger, place / "out", "--what", "made in spring")
    assert again.code == 2 and "is already recorded as entry 1 of the ledger" in again.err
    assert command("ledger", "verify", ledger).code == 0


def test_a_release_that_does_not_verify_is_not_recorded(plan, ledger, place, command):
    """Else a folder whose epsilon was edited would be counted at the edited one."""
    assert command("release", plan, "--no-report", "--out", place / "out").code == 0
    for name in ("specification.json", "certificate.json"):
        text = (place / "out" / name).read_text(encoding="utf-8")
        (place / "out" / name).write_text(re.sub(r'"value": "[0-9.]+"', '"value": "0.01"', text), encoding="utf-8")
    write_manifest(place / "out")
    ended = command("ledger", "add", ledger, place / "out", "--what", "made in spring")
    assert ended.code == 2 and "does not verify, so what it cost is not known" in ended.err
    assert Ledger.open(ledger).entries() == ()


def test_a_past_release_beyond_the_limit_is_recorded_loudly(plan, ledger, place, command):
    assert command("release", plan, "--no-report", "--out", place / "out").code == 0
    specification = place / "out" / "specification.json"
    for number in (1, 2):
        assert command("ledger", "add", ledger, specification, "--what", f"number {number}").code == 0
    refused = command("ledger", "add", ledger, specification, "--what", "number 3")
    assert refused.code == 2 and "is epsilon = 11.49, above 8.00, the limit" in refused.err
    ended = command("ledger", "add", ledger, specification, "--what", "number 3", "--past")
    assert ended.code == 0
    assert "WARNING: with entry 3 the total of 'households of Utopia' is not known to keep its limit." in ended.err
    assert "no further release of this dataset can be recorded" in " ".join(ended.err.split())
    assert command("release", plan, "--no-report", "--out", place / "next", "--ledger", ledger).code == 2
    assert command("ledger", "verify", ledger).code == 1
    assert "recorded as past" in command("ledger", "list", ledger).out


def test_one_more_folder_of_a_draw_is_listed_at_no_cost_and_an_independent_one_is_not(plan, ledger, place, command):
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger).code == 0
    shutil.copytree(place / "out", place / "copy")
    ended = command("ledger", "add", ledger, place / "copy", "--derived-from", "1", "--what", "a copy")
    assert f"Listed with entry 1 of {ledger}" in ended.out and "it costs nothing" in ended.out
    assert command("release", plan, "--no-report", "--out", place / "independent").code == 0
    for words in ([place / "independent"], [], [place / "out" / "specification.json"]):
        refused = command("ledger", "add", ledger, *words, "--derived-from", "1", "--what", "free, it says")
        assert refused.code == 2 and "record it as a release of its own, without --derived-from" in refused.err
    assert command("ledger", "add", ledger, place / "copy", "--derived-from", "9", "--what", "maps").code == 2
    assert json.loads(command("ledger", "total", ledger, "--json").out)["counted"] == 1
    listed = command("ledger", "list", ledger).out
    assert "1 entry, of which 1 spent budget" in listed
    assert str(place / "out") in listed and str(place / "copy") in listed


def test_each_spend_prints_the_last_seal_and_verify_finds_it(plan, ledger, limit, place, tmp_path, command):
    start(tmp_path / "other.ledger", limit, command)
    ended = command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger)
    seal = re.search("Last seal: ([0-9a-f]{64})\n", ended.out).group(1)
    assert "Keep it outside the ledger" in ended.out and Ledger.open(ledger).seal == seal
    held = command("ledger", "verify", ledger, "--seal", seal)
    assert held.code == 0 and f"holds  the seal {seal} is in this ledger" in held.out
    for verb in ("list", "total", "verify"):
        assert f"Last seal: {seal}" in command("ledger", verb, ledger).out
    assert json.loads(command("ledger", "total", ledger, "--json").out)["last_seal"] == seal
    (entry,) = json.loads(command("ledger", "list", ledger, "--json").out)
    assert entry["finishes"][-1]["seal"] == seal
    gone = command("ledger", "verify", tmp_path / "other.ledger", "--seal", seal)
    assert gone.code == 1 and "FAILS  the seal" in gone.out and "an older copy, or another ledger" in gone.out
    assert command("ledger", "verify", ledger, "--seal", "abc").code == 2


def test_who_made_a_release_and_why_stay_in_the_ledger(plan, ledger, place, command):
    told = ["--who", "Ada\x1b[2J Lovelace", "--why", "request 17 of the ministry"]
    assert command("release", plan, "--no-report", "--out", place / "out", *told).code == 2
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger, *told).code == 0
    assert command("release", plan, "--no-report", "--out", place / "alone").code == 0
    added = command("ledger", "add", ledger, place / "alone", "--what", "in spring", "--who", "Grace Hopper")
    assert added.code == 0 and "Last seal: " in added.out
    listed = command("ledger", "list", ledger).out
    assert "      who: Ada [2J Lovelace\n      why: request 17 of the ministry\n" in listed
    assert "      who: Grace Hopper\n" in listed
    fields = json.loads(command("ledger", "list", ledger, "--json").out)
    assert (fields[0]["who"], fields[0]["why"]) == ("Ada [2J Lovelace", "request 17 of the ministry")
    for path in (place / "out").rglob("*"):
        assert path.is_dir() or b"Lovelace" not in path.read_bytes()
    assert (
        command("release", plan, "--no-report", "--out", place / "x", "--ledger", ledger, "--why", "x" * 2001).code == 2
    )
    assert not (place / "x").exists()


@pytest.mark.parametrize("words", [["--what", "nothing named"], ["rho=1"]])
def test_an_entry_says_what_it_is_and_under_which_specification(words, ledger, command):
    ended = command("ledger", "add", ledger, *words)
    assert ended.code == 2
    assert Ledger.open(ledger).entries() == ()


def test_total_gives_the_guarantee_the_argument_and_what_is_left(plan, ledger, place, command):
    assert "No release has spent budget yet." in command("ledger", "total", ledger).out
    for number in (1, 2):
        assert command("release", plan, "--no-report", "--out", place / f"out-{number}", "--ledger", ledger).code == 0
    ended = command("ledger", "total", ledger)
    assert "2 entries, of which 2 spent budget" in ended.out
    assert "budget:           epsilon = 7.66" in ended.out
    assert "Does the total keep the limit? yes" in ended.out
    assert "Left for releases of the limit's own flavor: epsilon = 0.34." in ended.out
    fields = json.loads(command("ledger", "total", ledger, "--json").out)
    assert fields["within_limit"] == "yes"
    assert 0.34 < float(fields["left"]) < 0.35
    assert Specification.from_json(json.dumps(fields["total"])).budget.number < 2 * EPSILON


def test_list_as_json_has_everything_an_entry_keeps(plan, ledger, place, command):
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger).code == 0
    (entry,) = json.loads(command("ledger", "list", ledger, "--json").out)
    assert (entry["id"], entry["state"], entry["folder"]) == (1, "released", str(place / "out"))
    assert entry["specification"] == json.loads((place / "out" / "specification.json").read_text(encoding="utf-8"))
    assert len(entry["manifest_sha256"]) == 64
    assert entry["when"].endswith("UTC")


def test_verify_lists_spends_without_a_release_and_leftover_folders(plan, ledger, place, command):
    assert command("release", plan, "--no-report", "--out", place / "out", "--ledger", ledger).code == 0
    clean = command("ledger", "verify", ledger)
    assert clean.code == 0 and "FAILS" not in clean.out
    (place / ".next.stirred-unfinished-abc").mkdir()
    shutil.rmtree(place / "out")
    Ledger.open(ledger).spend(Ledger.open(ledger).limit.flavor.at(1), "a run that was killed", place / "next")
    ended = command("ledger", "verify", ledger)
    assert ended.code == 1
    assert f"nothing is at {place / 'out'} any more" in ended.out
    assert "FAILS  entry 2 (a run that was killed) spent budget, but nothing is at" in ended.out
    assert f"FAILS  {place / '.next.stirred-unfinished-abc'} was left by a run that was killed" in ended.out
    kinds = [fields["kind"] for fields in json.loads(command("ledger", "verify", ledger, "--json").out)]
    kinds.remove("role" if "://" in ledger else "locks")
    assert kinds == ["file", "total", "release-missing", "spent-without-release", "leftover"]


@pytest.mark.parametrize("ledger", ["file", "server"], indirect=True)
def test_a_withdrawn_release_is_told_by_ledger_folder_and_list(plan, ledger, place, command):
    for name in ("first", "second"):
        assert command("release", plan, "--no-report", "--out", place / name, "--ledger", ledger).code == 0
    shutil.copytree(place / "first", place / "copy")
    given = ["ledger", "withdraw", ledger, place / "first", "--superseded-by", place / "second"]
    refused = command(*given)
    assert refused.code == 2 and "no reason was given" in refused.err
    ended = command(*given, "--reason", "Two counties were exchanged.")
    assert ended.code == 0, ended.err
    assert "Withdrawn: 1 release of entry 1 of" in ended.out
    assert f"{place / 'first'}: WITHDRAWN.txt states it" in ended.out
    assert "The budget that it spent stays spent" in ended.out
    assert "Last seal: " in ended.out
    again = command("ledger", "withdraw", ledger, "1")
    assert again.code == 0 and "Nothing to add: withdrawn on " in again.out
    ended = command("ledger", "list", ledger)
    assert "withdrawn" in ended.out.splitlines()[1]
    assert f"{place / 'first'} (withdrawn: Two counties were exchanged.)" in ended.out
    ended = command("ledger", "total", ledger)
    assert "Withdrawn: 1 entry. What they spent stays spent" in ended.out and "epsilon = 7.66" in ended.out
    assert command("ledger", "verify", ledger).code == 0
    # No budget came back.
    assert command("release", plan, "--no-report", "--out", place / "third", "--ledger", ledger).code == 2
    ended = command("ledger", "withdrawn", ledger, "--out", place / "list.json")
    assert ended.code == 0 and "1 release withdrawn" in ended.out and f"Wrote {place / 'list.json'}" in ended.out
    assert str(place) not in (place / "list.json").read_text(encoding="utf-8")
    assert command("ledger", "withdrawn", ledger, "--out", place / "list.json").code == 2
    said = command("verify", place / "first")
    assert said.code == 6 and said.out.startswith("Withdrawn, as the line with WITHDRAWN says.")
    assert command("verify", place / "copy").code == 0  # it has no notice, and nothing is said
    said = command("verify", place / "copy", "--withdrawn", place / "list.json")
    assert said.code == 6 and "Two counties were exchanged." in said.out
    stands = command("verify", place / "second", "--withdrawn", place / "list.json")
    assert stands.code == 0 and "does not name it among the withdrawn releases" in stands.out
    states = [one["state"] for one in json.loads(command("verify", place / "first", "--json").out)]
    assert states.count("withdrawn") == 1
    signed = command("sign", place / "first", "--key", place / "key")
    assert signed.code == 2 and "it was withdrawn" in signed.err
    assert command("ledger", "add", ledger, place / "first", "--what", "again", "--derived-from", "1").code == 2


@pytest.mark.parametrize("verb", ["add", "list", "total", "verify"])
def test_a_ledger_cut_short_is_refused_by_every_verb(verb, ledger_file, command):
    ledger, whole = ledger_file, ledger_file.read_bytes()
    ledger.write_bytes(whole[:5000])
    more = ["--derived-from", "1", "--what", "maps"] if verb == "add" else []
    ended = command("ledger", verb, ledger, *more)
    assert ended.code == 2
    assert "is damaged" in ended.err and "Restore the last backup" in ended.err
    assert ledger.read_bytes() == whole[:5000]


def test_the_page_about_the_ledger_runs_on_a_plan_that_fits_it(plan, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(plan.parent)
    plan.write_text(PLAN.replace("households of Utopia", "census 2030"), encoding="utf-8")
    run_blocks("docs/ledger.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "Does the total keep the limit? yes" in printed and "FAILS" not in printed
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text(encoding="utf-8")
    for sql in (
        "GRANT USAGE ON SCHEMA stirred_ledger_households",
        "GRANT SELECT, INSERT ON stirred_ledger_households.rows",
    ):
        assert f"{sql} TO releasing;" in page
