"""The one order of a release: what is created when, what is spent when, and what a failure says about it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import stirred
from stirred import errors
from stirred.noise import SeededSource
from stirred.releases import steps
from stirred.releases.folder.atomic import leftovers
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Check, Draw, KeptDraw, Release
from stirred.survey import data as records
from stirred.swap.data import dataset
from stirred.swap.drawing import SwapRelease
from stirred.topdown import drawing
from stirred.topdown.data import counting

ROWS = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
PLACES = pl.DataFrame({"county": ["A", "A", "B"], "town": ["x", "y", "z"]})
PEOPLE = pl.DataFrame({"town": list("xyz") * 20, "race": ["p", "q"] * 30, "adult": ["yes", "no", "yes"] * 20})
DOMAINS = {"race": ["p", "q"], "adult": ["yes", "no"]}


def swap_plan(**fields):
    return stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, dataset="rows", **fields)


def topdown_plan(**fields):
    return stirred.topdown.preset("teaching", DOMAINS, ["county", "town"], dataset="rows", **fields)


def survey_plan(**fields):
    counties = {"name": "county", "values": ["a", "b", "c"]}
    wanted = {"kind": "count", "by": ["county"], "errors": "1/4"}
    return stirred.SurveyPlan(epsilon=1, dataset="rows", design={"selected": 60}, attributes=[counties],
                              queries=[{"by": ["county"]}], publish=[wanted], **fields)  # fmt: skip


def data_of(plan):
    return ROWS if plan.mechanism in ("swap", "survey") else {"persons": PEOPLE, "geography": PLACES}


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "rows.ledger", "rows")


def notes(failure: BaseException) -> str:
    return " ".join(getattr(failure, "__notes__", []))


@pytest.mark.parametrize("plan", [swap_plan(), topdown_plan(), survey_plan()], ids=["swap", "topdown", "survey"])
def test_the_unfinished_folders_are_there_before_anything_is_spent(plan, tmp_path, ledger, monkeypatch):
    seen = []
    spend = Ledger.spend

    def spending(self, *given, **named):
        seen.extend(sorted(path.name.split(".")[1] for path in tmp_path.glob(".*stirred-unfinished-*")))
        return spend(self, *given, **named)

    monkeypatch.setattr(Ledger, "spend", spending)
    stirred.release(plan, data_of(plan), out=tmp_path / "out", confidential=tmp_path / "own", ledger=ledger)
    assert {"out", "own"} <= set(seen)
    assert not list(tmp_path.glob(".*stirred-unfinished-*"))


@pytest.mark.parametrize("plan", [swap_plan(), topdown_plan(), survey_plan()], ids=["swap", "topdown", "survey"])
def test_the_data_are_read_once_also_for_the_comparison(plan, tmp_path, monkeypatch):
    opened = []
    for module in (counting, dataset, records):

        def opening(name, *rest, real=module.open_input):
            opened.append(name)
            return real(name, *rest)

        monkeypatch.setattr(module, "open_input", opening)
    stirred.release(plan, data_of(plan), out=tmp_path / "out", confidential=tmp_path / "own")
    assert len(opened) == len(set(opened)) and opened
    assert list((tmp_path / "own").glob("*.csv"))


def test_a_swap_that_fails_after_its_spend_says_so(tmp_path, ledger, monkeypatch):
    def full(self, folder, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SwapRelease, "write_confidential", full)
    with pytest.raises(errors.OutputError) as failure:
        stirred.release(swap_plan(), ROWS, out=tmp_path / "out", confidential=tmp_path / "own", ledger=ledger)
    assert f"The budget was spent before this happened: entry 1 of {ledger.path}." in notes(failure.value)
    assert "another release spends again" in notes(failure.value)
    assert not (tmp_path / "out").exists() and not (tmp_path / "own").exists()


def test_a_swap_that_fails_before_its_spend_costs_nothing_and_says_nothing_of_one(tmp_path, ledger, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("stirred.releases.folder.manifest.HeldBack.of", full)
    with pytest.raises(errors.OutputError) as failure:
        stirred.release(swap_plan(), ROWS, out=tmp_path / "out", ledger=ledger)
    assert notes(failure.value) == "" and ledger.entries() == ()


def test_a_topdown_run_that_fails_after_its_spend_can_be_gone_on_with(tmp_path, ledger, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    plan = topdown_plan()
    with monkeypatch.context() as patched:
        patched.setattr(drawing, "fit_table", stop)
        with pytest.raises(KeyboardInterrupt) as failure:
            stirred.release(plan, data_of(plan), out=tmp_path / "out", ledger=ledger)
    assert "entry 1 of" in notes(failure.value)
    assert "the same command continues from it and spends nothing" in notes(failure.value)
    stirred.release(plan, out=tmp_path / "out", ledger=ledger)
    assert len(ledger.entries()) == 1 and not steps.default_work(tmp_path / "out").exists()


def test_both_mechanisms_keep_the_protocols_that_are_stated(tmp_path):
    for plan in (swap_plan(), topdown_plan()):
        assert isinstance(stirred.check(plan, data_of(plan)), Check)
    drawn = stirred.swap.draw(swap_plan(), ROWS)
    assert isinstance(drawn, Draw) and isinstance(drawn.finish(), Release)
    kept = stirred.topdown.draw(topdown_plan(), data_of(topdown_plan()), work=tmp_path / "work")
    assert isinstance(kept, KeptDraw) and isinstance(kept.finish(), Release)
    assert kept.finish().draw is kept


def test_what_a_seeded_source_drew_into_a_work_folder_is_not_released(tmp_path):
    plan = topdown_plan()
    stirred.topdown.draw(plan, data_of(plan), work=tmp_path / "work", source=SeededSource(1))
    with pytest.raises(errors.PlanError, match="not for release"):
        stirred.release(plan, out=tmp_path / "out", work=tmp_path / "work")
    assert not (tmp_path / "out").exists()


def test_work_is_refused_by_a_mechanism_without_work_folders(tmp_path):
    with pytest.raises(errors.PlanError, match="does not apply to the mechanism 'swap'"):
        stirred.release(swap_plan(), ROWS, out=tmp_path / "out", work=tmp_path / "work")


def test_licence_and_releaser_reach_readme_and_certificate(tmp_path):
    for plan in (swap_plan(licence="CC BY 4.0", released_by="The Office"), topdown_plan(released_by="The Office")):
        out = tmp_path / plan.mechanism
        stirred.release(plan, data_of(plan), out=out)
        assert json.loads((out / "certificate.json").read_text())["plan"]["released_by"] == "The Office"
        assert "Released by The Office." in (out / "README.txt").read_text()
        assert all(verdict.holds for verdict in stirred.verify(out))
    assert "Licence of the data: CC BY 4.0" in (tmp_path / "swap" / "README.txt").read_text()


def test_checks_of_all_mechanisms_have_one_head_in_json():
    heads = []
    for plan in (swap_plan(), topdown_plan()):
        fields = json.loads(stirred.check(plan, data_of(plan)).to_json())
        heads.append(list(fields)[:6])
        assert fields["stirred_check"] == 2 and fields["mechanism"] == plan.mechanism
        assert fields["plan_sha256"] == plan.hash() and isinstance(fields["stops"], list)
    assert heads[0] == heads[1]


def test_infinity_is_one_word_in_every_check():
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=1, allow=["rate-zero-or-one"])
    assert json.loads(stirred.check(plan, ROWS).to_json())["guarantee"]["epsilon"] == "infinity"
    fields = json.loads(stirred.check(_without_detail(), data_of(topdown_plan())).to_json())
    assert "infinity" in {one["kappa"] for one in fields["fit"]}


def _without_detail():
    plan = topdown_plan().model_dump(exclude_defaults=True)
    plan["tables"][0]["queries"] = [{"by": [], "shares": "1/2"}, {"by": ["race"], "shares": "1/2"}]
    return stirred.TopDownPlan(**plan)


def test_a_name_of_0_1_and_its_new_name_together_are_refused():
    with pytest.raises(errors.PlanError, match="earlier name of publish"):
        swap_plan(tables=[["county"]], publish=[["county"]])
    assert swap_plan(tables=[["county"]]).publish == (("county",),)


# -- leftovers -----------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import stirred
from stirred.releases.folder import atomic as folder
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
folder._settle = die
import polars as pl
rows = pl.DataFrame({"size": [1, 2] * 30, "county": list("abcabb") * 10, "tenure": list("ooorrr") * 10})
plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1, dataset="rows")
stirred.release(plan, rows, out=sys.argv[1] + "/out", ledger=sys.argv[2] or None, report=False)
"""


@pytest.mark.parametrize("paid", [False, True])
def test_leftovers_are_listed_and_removed_unless_they_were_paid_for(paid, tmp_path, ledger, command):
    place = tmp_path / "place"
    place.mkdir()
    run = subprocess.run([sys.executable, "-c", KILLED, place, str(ledger.path) if paid else ""], check=False)
    assert run.returncode < 0 and len(leftovers(place)) == 1
    unknown = command("leftovers", place, "--remove")
    assert unknown.code == 1 and "Pass --ledger FILE" in unknown.out and len(leftovers(place)) == 1
    listed = command("leftovers", place, "--ledger", ledger.path)
    assert listed.code == 1 and str(leftovers(place)[0]) in listed.out
    removed = command("leftovers", place, "--ledger", ledger.path, "--remove")
    assert removed.code == (1 if paid else 0)
    assert len(leftovers(place)) == (1 if paid else 0)
    assert ("entry 1 of the ledger spent budget" in removed.out) == paid
    if not paid:
        assert "No unfinished folders" in command("leftovers", place).out


def test_a_draft_for_topdown_names_levels_and_leaves_values_to_be_written(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PLACES.write_csv("places.csv")
    PEOPLE.write_csv("people.csv")
    ended = command("init", "people.csv", "--mechanism", "topdown", "--geography", "places.csv", "--out", "plan.toml")
    assert ended.code == 0, ended.err
    text = Path("plan.toml").read_text()
    assert 'levels = ["county", "town"]' in text and "yes" not in text
    values = iter(['["p", "q"]', '["yes", "no"]'])
    while "values = []" in text:
        text = text.replace("values = []", f"values = {next(values)}", 1)
    Path("plan.toml").write_text(text)
    assert command("check", "plan.toml").code == 0
    assert command("init", "people.csv", "--mechanism", "topdown").code == 2


# -- private things stay private, and apart -------------------------------------------------------------------------


@pytest.mark.parametrize("plan", [swap_plan(), topdown_plan(), survey_plan()], ids=["swap", "topdown", "survey"])
def test_a_private_folder_and_a_release_never_lie_inside_one_another(plan, tmp_path):
    data = data_of(plan)
    stirred.release(plan, data, out=tmp_path / "first", confidential=tmp_path / "own")
    before = sorted(tmp_path.rglob("*"))
    for out, confidential in [
        ("second", "second/own"),
        ("own2/second", "own2"),
        ("second", "first/own"),
        ("own/second", None),
        ("first/second", None),
    ]:
        with pytest.raises(errors.OutputError) as refused:
            private = None if confidential is None else tmp_path / confidential
            stirred.release(plan, data, out=tmp_path / out, confidential=private)
        assert refused.value.kind in ("folder-inside-another", "output-parent-missing")
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "link").symlink_to(tmp_path / "first")
    with pytest.raises(errors.OutputError, match="would lie inside"):
        stirred.release(plan, data, out=tmp_path / "link" / "second")


def test_a_work_folder_inside_a_release_is_refused(tmp_path):
    plan = topdown_plan()
    stirred.release(plan, data_of(plan), out=tmp_path / "first")
    with pytest.raises(errors.OutputError, match="would lie inside"):
        stirred.release(plan, data_of(plan), out=tmp_path / "second", work=tmp_path / "first" / "work")


def test_a_work_folder_that_was_asked_for_is_never_removed_later(tmp_path):
    """The folder that is used by default may be one that an earlier run was asked to keep."""
    plan = topdown_plan()
    work = steps.default_work(tmp_path / "second")
    stirred.release(plan, data_of(plan), out=tmp_path / "first", work=work)
    stirred.release(plan, data_of(plan), out=tmp_path / "second")
    assert (work / "draw.json").exists()
    stated = [json.loads((tmp_path / name / "certificate.json").read_text())["nonce"] for name in ("first", "second")]
    assert stated[0] == stated[1], "two releases of one draw"


def test_a_work_folder_that_nobody_asked_for_is_removed(tmp_path):
    plan = topdown_plan()
    stirred.release(plan, data_of(plan), out=tmp_path / "first")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first"]


def test_only_what_the_plan_names_is_copied_from_a_work_folder(tmp_path, monkeypatch):
    plan = topdown_plan()
    drawn = stirred.topdown.draw(plan, data_of(plan), work=tmp_path / "work")
    for name in ("measurements/.geography.parquet.swp", "measurements/true.csv", "invariants/notes~"):
        (tmp_path / "work" / name).write_text("confidential")
    drawn.finish().write(tmp_path / "out")
    assert all(verdict.holds for verdict in stirred.verify(tmp_path / "out"))
    with pytest.raises(errors.OutputError, match="is not in the manifest"):
        stirred.release(plan, out=tmp_path / "again", work=tmp_path / "work")


# -- what is on disk before the spend is no release ------------------------------------------------------------------


def test_before_the_spend_a_swap_has_neither_certificate_nor_manifest(tmp_path, ledger, monkeypatch):
    seen = {}
    spend = Ledger.spend

    def spending(self, *given, **named):
        [folder] = tmp_path.glob(".*stirred-unfinished-*")
        seen.update({path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()})
        return spend(self, *given, **named)

    monkeypatch.setattr(Ledger, "spend", spending)
    stirred.release(swap_plan(), ROWS, out=tmp_path / "out", ledger=ledger)
    for name in ("certificate.json", "manifest.json"):
        assert seen[name] == b" " * (tmp_path / "out" / name).stat().st_size, "space is reserved, and nothing said"
    assert ledger.entry_of(tmp_path / "out").id == 1


def test_two_draws_never_share_a_nonce(tmp_path):
    nonces = set()
    for number in range(3):
        stirred.release(swap_plan(), ROWS, out=tmp_path / str(number))
        nonces.add(json.loads((tmp_path / str(number) / "certificate.json").read_text())["nonce"])
    assert len(nonces) == 3 and all(len(nonce) == 32 for nonce in nonces)


def test_another_draw_is_not_free_because_its_certificate_was_given_the_nonce_of_a_counted_one(tmp_path, ledger):
    first = stirred.swap.draw(swap_plan(), ROWS)
    # Two draws have the same rows now and then, and would be the same files: draw until they differ.
    draws = (stirred.swap.draw(swap_plan(), ROWS) for _ in range(1_000))
    second = next(draw for draw in draws if not draw.frame().equals(first.frame()))
    first.write(tmp_path / "first", ledger=ledger)
    second.write(tmp_path / "second")
    stated = [json.loads((tmp_path / name / "certificate.json").read_text()) for name in ("first", "second")]
    (tmp_path / "second" / "certificate.json").write_text(json.dumps(stated[1] | {"nonce": stated[0]["nonce"]}))
    write_manifest(tmp_path / "second")
    with pytest.raises(errors.LedgerError, match="what was drawn stands in other files"):
        ledger.record(None, "the same, surely", tmp_path / "second", 1)


def test_a_draw_that_is_written_twice_is_paid_for_once(tmp_path, ledger):
    drawn = stirred.swap.draw(swap_plan(), ROWS)
    for name in ("first", "second"):
        drawn.write(tmp_path / name, ledger=ledger)
    [entry] = ledger.entries()
    assert [one.folder.name for one in entry.finishes] == ["first", "second"]


def test_a_release_that_nobody_could_read_is_refused_before_it_is_paid_for(tmp_path, ledger, monkeypatch):
    monkeypatch.setattr("stirred._bounded_reading.MOST_BYTES", 1_000)
    monkeypatch.setattr("stirred._bounded_reading.read_text.__defaults__", (1_000,))
    with pytest.raises(errors.OutputError) as refused:
        stirred.release(swap_plan(), ROWS, out=tmp_path / "out", ledger=ledger)
    assert refused.value.kind == "unreadable-release"
    assert not ledger.entries() and not (tmp_path / "out").exists()
