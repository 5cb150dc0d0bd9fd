"""Mechanisms are found by name, and a third one goes through the whole command line without a line of it changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stirred
from counting_mechanism import Counting, CountPlan
from stirred import mechanisms
from stirred.errors import OutputError, PlanError, StirredError
from stirred.noise import SeededSource
from stirred.releases.ledger.ledger import Ledger
from stirred.verbs import write

CLI = Path(stirred.__file__).parent / "cli"


@pytest.fixture
def counting():
    mechanism = mechanisms.register(Counting())
    yield mechanism
    mechanisms.forget("count")


@pytest.fixture
def plan(tmp_path) -> Path:
    (tmp_path / "rows.csv").write_text("a,b\n" + "1,2\n" * 1000)
    text = 'stirred = 1\nmechanism = "count"\ndataset = "rows"\nepsilon = "1/2"\n[input]\npath = "rows.csv"\n'
    (tmp_path / "plan.toml").write_text(text)
    return tmp_path / "plan.toml"


def test_no_command_knows_a_mechanism_by_name():
    for path in sorted(CLI.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "stirred.swap" not in text and "stirred.topdown" not in text, path.name
        assert '"topdown"' not in text, path.name


def test_a_third_mechanism_goes_through_every_command(counting, plan, tmp_path, command):
    out, ledger = tmp_path / "out", tmp_path / "rows.ledger"
    drafted = command("init", tmp_path / "rows.csv", "--mechanism", "count")
    assert drafted.code == 0 and 'mechanism = "count"' in drafted.out
    assert command("ledger", "init", ledger, "--dataset", "rows").code == 0
    checked = command("check", plan, "--twice", "--json")
    assert checked.code == 0, checked.err
    assert json.loads(checked.out)["twice"] is True and json.loads(checked.out)["stirred_check"] == 2
    ended = command("release", plan, "--out", out, "--ledger", ledger, "--confidential", tmp_path / "own")
    assert ended.code == 0 and "one count" in ended.out, ended.err
    assert (tmp_path / "own" / "true.txt").read_text() == "1000\n"
    assert Ledger.open(ledger).total().specification.budget.number == 0.5
    verified = command("verify", out)
    assert verified.code == 0 and "holds  the guarantee is that of the plan" in verified.out
    released = int(command("tabulate", out, "--by", "number").out.splitlines()[1].split(",")[0])
    assert abs(released - 1000) < 200  # Laplace noise of scale 2: a false alarm once in exp(99)
    assert "epsilon" in command("explain", out).out
    assert command("compare", out, "epsilon=1").code == 0
    assert command("lint", out).code == 0
    assert command("scale", "1/4").out == "scale 4\n"
    shown = command("demo", "count", "--out", tmp_path / "demo")
    assert "three rows" in shown.out and "of 3, released as " in shown.out, shown.err
    assert command("verify", tmp_path / "demo" / "release").code == 0
    assert "Options for count: --twice Say it twice." in " ".join(command("check", "--help").out.split())


def test_a_third_mechanisms_certificate_is_really_verified(counting, plan, tmp_path, command):
    command("release", plan, "--out", tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    fields = json.loads(path.read_text())
    fields["specification"]["budget"]["value"] = "1/10"
    path.write_text(json.dumps(fields))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert command("verify", tmp_path / "out").code == 1
    assert manifest["stirred_manifest"] == 1


def test_options_of_other_mechanisms_are_refused_by_name(counting, plan, tmp_path, command):
    for words in (["check", plan, "--rates", "0.1"], ["release", plan, "--out", tmp_path / "o", "--work", tmp_path]):
        ended = command(*words)
        assert ended.code == 2
        assert "does not apply to the mechanism 'count'" in ended.err


def test_an_option_of_another_mechanism_names_those_that_there_are(command):
    fixtures = Path(__file__).parent / "fixtures" / "v0_4"
    ended = command("estimate", fixtures / "swap", "--sources")
    assert ended.code == 2 and "for 'swap' this command has --level, --place, --share, --difference" in ended.err


def test_a_zero_is_an_option_that_was_given(counting, plan, command):
    ended = command("check", plan, "--epsilon", "0")
    assert ended.code == 2 and "--epsilon does not apply" in ended.err


def test_what_a_mechanism_does_not_offer_is_refused_in_words(counting, plan, tmp_path, command):
    command("release", plan, "--out", tmp_path / "out")
    ended = command("estimate", tmp_path / "out")
    assert ended.code == 2 and "does not offer estimates" in ended.err
    with pytest.raises(StirredError, match="does not offer pairs"):
        counting.audit_pairs(None)


def test_the_packages_own_verbs_take_a_third_mechanism(counting, tmp_path):
    import polars as pl

    rows = pl.DataFrame({"a": [1] * 40})
    plan = CountPlan(epsilon="2")
    assert str(stirred.check(plan, rows)).startswith("CONFIDENTIAL")
    stirred.release(plan, rows, out=tmp_path / "out")
    assert all(verdict.holds for verdict in stirred.verify(tmp_path / "out"))
    assert stirred.read(tmp_path / "out").budget.number == 2


def test_what_a_seeded_source_drew_is_not_published(counting, tmp_path):
    import polars as pl

    drawn = counting.draw(CountPlan(), pl.DataFrame({"a": [1]}), source=SeededSource(3))
    with pytest.raises(PlanError, match="not for release"):
        write(drawn, tmp_path / "out")


def test_a_folder_that_names_an_unknown_mechanism_imports_nothing(counting, plan, tmp_path, command):
    command("release", plan, "--out", tmp_path / "out")
    mechanisms.forget("count")
    with pytest.raises(OutputError, match="'count', which this version does not know"):
        stirred.verify(tmp_path / "out")
    with pytest.raises(StirredError, match="no mechanism 'os'"):
        mechanisms.named("os")


def test_a_name_is_taken_once(counting):
    class Swapping(Counting):
        name = "swap"

    with pytest.raises(PlanError, match="already"):
        mechanisms.register(Swapping())
    with pytest.raises(PlanError, match="A plan was expected, not a int"):
        stirred.check(3)
