"""Draw, finish, verify: what a release folder holds, what is spent when, and what tampering does."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from census import SPENT, plan, refused, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from random_census import random_census
from test_fitting import require_sound

import stirred
from repeats import some_or
from stirred._progress import Silent
from stirred.errors import StirredError
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.ledger.ledger import Ledger
from stirred.topdown import drawing
from stirred.topdown.checking.plan_check import check
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import marginal
from stirred.topdown.drawing import draw, fit, release, reopen
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.fitting.table_fit import TOO_WIDE
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.verifying import tabulate, verify
from strategies import Draws

PUBLISH = [{"table": "persons", "level": "county", "by": ["minor", "colour"]}, {"table": "dwellings", "level": "state"}]


@pytest.fixture
def made(tmp_path):
    chosen = plan(publish=PUBLISH)
    return release(chosen, tables(), out=tmp_path / "out", work=tmp_path / "work")


# -- random censuses ---------------------------------------------------------------------------------------------


@pytest.mark.repeats
@settings(max_examples=some_or(30, 60))
@given(drawn=st.data(), key=st.integers(0, 2**32))
def test_any_spine_tables_and_constraints_are_kept_at_any_budget(tmp_path_factory, drawn, key):
    chosen, data = random_census(Draws(drawn))
    work = tmp_path_factory.mktemp("random") / "work"
    made = fit(draw(chosen, data, work=work, source=SeededSource(key)))
    counted = count_tables(chosen, data)
    reports = {table.name: [one for one in made.reports if one.table == table.name] for table in chosen.released}
    require_sound(counted, {name: (leaves, reports[name]) for name, leaves in made.leaves.items()})
    for exact, invariant in zip(Known.of(counted).exact, chosen.invariants, strict=True):
        if invariant.table == "persons":
            assert np.array_equal(made.counts("persons", invariant.level, invariant.by), exact)
    shutil.rmtree(work.parent)


@pytest.mark.repeats
@settings(max_examples=some_or(20, 30))
@given(drawn=st.data(), key=st.integers(0, 2**32))
def test_without_noise_any_census_comes_back_exactly(tmp_path_factory, drawn, key):
    chosen, data = random_census(Draws(drawn), rho=str(10**9))
    work = tmp_path_factory.mktemp("exact") / "work"
    made = fit(draw(chosen, data, work=work, source=SeededSource(key)))
    truth = count_tables(chosen, data).leaves["persons"]
    found = made.leaves["persons"]
    assert np.array_equal(truth.starts, found.starts) and np.array_equal(truth.cells, found.cells)
    assert np.array_equal(truth.counts, found.counts)
    shutil.rmtree(work.parent)


# -- the folder ----------------------------------------------------------------------------------------------------


def test_a_release_verifies_and_its_rows_are_what_was_fitted(made, tmp_path):
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))
    rows = pl.read_parquet(tmp_path / "out" / "persons.parquet")
    assert rows.columns == ["state", "county", "town", "kind", "adult", "colour"]
    counts = made.counts("persons", "town", ("colour",))
    for unit, town in enumerate(made.draw.spine.names[-1].to_pylist()):
        here = rows.filter(pl.col("town").cast(pl.String) == town)
        for place, colour in enumerate(("red", "green", "blue", "black")):
            assert here.filter(pl.col("colour").cast(pl.String) == colour).height == counts[unit, place]
    asked = pl.read_csv(tmp_path / "out" / "tables" / "persons-county-minor-colour.csv")
    assert asked["count"].to_list() == made.counts("persons", "county", ("minor", "colour")).ravel().tolist()
    found = tabulate(tmp_path / "out", ["county"], "dwellings").to_pydict()
    assert dict(zip(found["county"], found["count"], strict=True)) == {"a": 30, "b": 30}


def test_a_release_of_nobody_is_a_release(tmp_path):
    data = tables()
    data = {name: frame if name == "geography" else frame.clear() for name, frame in data.items()}
    made = release(plan(), data, out=tmp_path / "out")
    assert made.counts("persons", "state").sum() == 0
    assert pl.read_parquet(tmp_path / "out" / "persons.parquet").height == 0
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_other_formats_verify_too(kind, tmp_path):
    release(plan(format=kind, publish=PUBLISH), tables(), out=tmp_path / "out")
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))


def test_the_certificate_states_plan_invariants_and_how_the_fit_went(made, tmp_path):
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["plan"]["mechanism"] == "topdown"
    assert certificate["invariants"][0]["words"] == "the number of 'persons' in each county"
    assert {(entry["table"], entry["level"]) for entry in certificate["fit"]} == {
        (table, level) for table in ("persons", "dwellings") for level in ("state", "county", "town")
    }
    assert max(entry["worst_gap"] for entry in certificate["fit"]) <= 1e-6
    readme = (tmp_path / "out" / "README.txt").read_text()
    assert "the number of 'homes' by type in each town" in readme and "no finite budget" in " ".join(readme.split())


def test_a_work_folder_has_nothing_of_the_data_but_measurements_and_invariants(tmp_path):
    """Two datasets one person apart that agree on the invariants: given the same measurements all else is the same."""
    data = tables()
    changed = (
        data["persons"]
        .with_row_index()
        .with_columns(colour=pl.when(pl.col("index") == 0).then(pl.lit("black")).otherwise(pl.col("colour")))
    )
    other = {**data, "persons": changed.drop("index").reverse()}
    assert not other["persons"].sort("*").equals(data["persons"].sort("*"))
    folders = [tmp_path / "work0", tmp_path / "work1"]
    for folder, each in zip(folders, (data, other), strict=True):
        draw(plan(), each, work=folder, source=SeededSource(5))
    drawn = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    ]
    differing = {str(name) for name in drawn[0] if drawn[0][name] != drawn[1][name]}
    assert differing - {"manifest.json"} and drawn[0].keys() == drawn[1].keys()
    measured = {name for name in differing if name.startswith("measurements/") and "geography" not in name}
    assert differing == {*measured, "manifest.json"}
    shutil.rmtree(folders[1] / "measurements")
    shutil.copytree(folders[0] / "measurements", folders[1] / "measurements")
    (folders[1] / "kept.txt").unlink()  # it is no part of the draw
    write_manifest(folders[1])
    outs = [fit(reopen(plan(), folder)).write(tmp_path / f"out-{folder.name}", for_tests=True) for folder in folders]
    for path in outs[0].rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (outs[1] / path.relative_to(outs[0])).read_bytes(), path


def test_errors_against_the_truth_are_written_only_when_asked_for(tmp_path):
    made = release(plan(), tables(), out=tmp_path / "out", confidential=tmp_path / "errors")
    assert (tmp_path / "errors").stat().st_mode & 0o077 == 0
    rows = pl.read_csv(tmp_path / "errors" / "errors.csv")
    towns = rows.filter((pl.col("table") == "persons") & (pl.col("level") == "town") & (pl.col("query") == "total"))
    true = count_tables(plan(), tables()).histograms("persons", 2).totals()
    assert towns["mean_absolute_error"].item() == pytest.approx(
        np.abs(made.counts("persons", "town")[:, 0] - true).mean()
    )
    assert "errors" not in {path.name for path in (tmp_path / "out").iterdir()}


# -- draw once, finish as often as wanted ----------------------------------------------------------------------


def test_finishing_again_gives_the_same_and_costs_nothing(tmp_path):
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    chosen = plan(dataset="town")
    first = release(chosen, tables(), out=tmp_path / "first", work=tmp_path / "work", ledger=ledger)
    second = release(chosen, out=tmp_path / "second", work=tmp_path / "work", ledger=ledger)
    assert (tmp_path / "first" / "persons.parquet").read_bytes() == (
        tmp_path / "second" / "persons.parquet"
    ).read_bytes()
    assert second.draw.entry == first.draw.entry
    release(plan(dataset="town", publish=PUBLISH), out=tmp_path / "third", work=tmp_path / "work", ledger=ledger)
    (entry,) = ledger.entries()
    assert [one.folder for one in entry.finishes] == [tmp_path / name for name in ("first", "second", "third")]
    assert all(verdict.holds for verdict in ledger.verify())
    assert ledger.total().specification.budget.number == SPENT == first.specification.budget.number


def test_what_the_fit_alone_uses_may_change_after_the_draw(tmp_path):
    drawn = draw(plan(), tables(), work=tmp_path / "work", source=SeededSource(1))
    other = plan(publish=PUBLISH, passes="one")
    again = fit(reopen(other, tmp_path / "work"))
    assert again.plan.publish and again.reports[0].passes == 1
    assert np.array_equal(again.draw.known.exact[0], drawn.known.exact[0])


def test_both_ways_of_the_fit_are_finished_from_one_draw_and_say_so(tmp_path):
    by_level = plan("1/8", fit="level by level")
    for chosen, out in ((plan("1/8"), "first"), (by_level, "levels")):
        found = release(chosen, tables(), out=tmp_path / out, work=tmp_path / "work")
        assert all(verdict.holds for verdict in verify(tmp_path / out))
        certificate = json.loads((tmp_path / out / "certificate.json").read_text())
        assert {one["way"] for one in certificate["fit"]} == {chosen.fit}
        assert ("least squares gave" in (tmp_path / out / "README.txt").read_text()) == (out == "first")
        assert chosen.fit in str(check(chosen, tables()))
        assert found.draw.folder == tmp_path / "work"
    assert (tmp_path / "first" / "persons.parquet").read_bytes() != (
        tmp_path / "levels" / "persons.parquet"
    ).read_bytes()


def test_a_table_that_is_too_wide_for_least_squares_is_released_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "stirred.topdown.fitting.subtrees.MOST_MATRICES", 20
    )  # dwellings have one attribute, persons three
    release(plan("1/8"), tables(), out=tmp_path / "out")
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))
    ways = {one["table"]: one["way"] for one in json.loads((tmp_path / "out" / "certificate.json").read_text())["fit"]}
    assert ways == {"persons": TOO_WIDE, "dwellings": "least squares first"}
    assert "those of 'persons' to the measurements of each level by themselves" in " ".join(
        (tmp_path / "out" / "README.txt").read_text().split()
    )


def test_an_interrupted_measurement_leaves_nothing_and_spends_nothing(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "town.ledger", "town")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stirred.topdown.data.constraints.write_geography", stop)  # after all noise is drawn
    with pytest.raises(KeyboardInterrupt):
        release(plan(dataset="town"), tables(), out=tmp_path / "out", ledger=ledger)
    assert [path.name for path in tmp_path.iterdir()] == ["town.ledger"]
    assert ledger.entries() == ()


def test_an_interrupted_fit_keeps_what_was_paid_for(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    chosen = plan(dataset="town")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(drawing, "fit_table", stop)
        release(chosen, tables(), out=tmp_path / "out", ledger=ledger)
    assert not (tmp_path / "out").exists() and (tmp_path / "out-work").is_dir()
    assert (tmp_path / "out-work").stat().st_mode & 0o077 == 0
    release(chosen, out=tmp_path / "out", ledger=ledger)  # the data are not read again
    assert not (tmp_path / "out-work").exists()
    assert ledger.total().specification.budget.number == SPENT
    assert all(verdict.holds for verdict in ledger.verify())


def test_a_limit_refuses_before_the_data_are_read(tmp_path):
    limit = replace(
        draw(plan(dataset="town"), tables(), work=tmp_path / "w", source=SeededSource(1)).specification, marks=()
    )
    ledger = Ledger.create(tmp_path / "town.ledger", "town", limit)
    release(plan(dataset="town"), tables(), out=tmp_path / "first", ledger=ledger)
    with refused("ledger-over-limit"):
        release(plan(dataset="town"), {"persons": "no such file"}, out=tmp_path / "second", ledger=ledger)
    assert not (tmp_path / "second-work").exists()


def test_work_folders_that_cannot_be_used_are_refused(tmp_path):
    draw(plan(dataset="town"), tables(), work=tmp_path / "work", source=SeededSource(1))
    with refused("work-folder") as other:
        release(plan("3", dataset="town"), tables(), out=tmp_path / "out", work=tmp_path / "work")
    assert "another plan" in str(other.value)
    (tmp_path / "empty").mkdir()
    with refused("work-folder"):
        release(plan(dataset="town"), tables(), out=tmp_path / "out", work=tmp_path / "empty")
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    with refused("work-folder") as uncounted:
        release(plan(dataset="town"), tables(), out=tmp_path / "out", work=tmp_path / "work", ledger=ledger)
    assert "has no entry for the draw" in str(uncounted.value)
    [damaged] = (tmp_path / "work" / "measurements").glob("*-persons-town-total.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with refused("work-folder") as broken:
        reopen(plan(dataset="town"), tmp_path / "work")
    assert "persons-town-total.parquet" in str(broken.value)


def test_a_draw_is_tied_to_its_check_and_one_that_was_made_before_is_not(tmp_path):
    chosen, data = plan(), tables()
    code = stirred.check(chosen, data).code
    with refused("not-as-checked"):
        fewer = {**data, "persons": data["persons"][1:]}
        stirred.release(chosen, fewer, out=tmp_path / "out", work=tmp_path / "work", as_checked=code)
    assert not (tmp_path / "work").exists()
    stirred.release(chosen, data, out=tmp_path / "out", work=tmp_path / "work", as_checked=code)
    with refused("drawn-before"):
        stirred.release(chosen, data, out=tmp_path / "again", work=tmp_path / "work", as_checked=code)


def test_a_seeded_draw_is_not_released(tmp_path):
    made = fit(draw(plan(), tables(), work=tmp_path / "work", source=SeededSource(1)))
    with refused("seeded-release"):
        made.write(tmp_path / "out")


def test_one_folder_cannot_be_both(tmp_path):
    with refused("one-folder-for-both"):
        release(plan(), tables(), out=tmp_path / "out", confidential=tmp_path / "out")
    with refused("one-folder-for-both"):
        release(plan(), tables(), out=tmp_path / "out", work=tmp_path / "out")


def test_queries_whose_names_look_alike_have_files_of_their_own(tmp_path):
    places = pl.DataFrame({"town": ["x", "y"]})
    rows = pl.DataFrame(
        {"town": ["x"] * 3 + ["y"] * 4, "âge": list("aabbabb"), "ëge": list("bbbbaaa"), "年齢": list("aaabbbb")}
    )
    names = ["âge", "ëge", "年齢"]
    table = {
        "name": "gens", "unit": "person", "rho": str(10**9), "level_shares": {"town": 1},
        "attributes": [{"name": name, "values": ["a", "b"]} for name in names],
        "queries": [*({"by": [name], "shares": "1/4"} for name in names), {"by": names, "shares": "1/4"}],
    }  # fmt: skip
    chosen = TopDownPlan(spine={"levels": ["town"]}, tables=[table])
    made = release(chosen, {"geography": places, "gens": rows}, out=tmp_path / "out")
    for name in names:
        expected = [[rows.filter(town=town).filter(pl.col(name) == value).height for value in "ab"] for town in "xy"]
        assert made.counts("gens", "town", (name,)).tolist() == expected
        found = MeasuredRelease.open(tmp_path / "out").estimate("gens", [name], level="town")
        assert np.allclose(found.values, expected)


def test_two_runs_at_once_pay_once(tmp_path):
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    meeting = threading.Barrier(2, timeout=60)

    class Together(Silent):
        def stage(self, words: str, done: float | None = None) -> None:
            if words == "writing geography and invariants":
                meeting.wait()

    def run(_: int) -> str:
        try:
            draw(plan(dataset="town"), tables(), work=tmp_path / "work", ledger=ledger, progress=Together())
        except StirredError as refusal:
            return refusal.kind
        return "drawn"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(run, range(2))) == ["drawn", "output-exists"]
    assert len(ledger.entries()) == 1


def test_margins_that_cross_are_refused_before_the_data_are_read(tmp_path):
    invariants = [
        {"table": "persons", "level": "state", "by": ["adult"]},
        {"table": "persons", "level": "town", "by": ["colour"]},
    ]
    with refused("topdown-crossing") as found:
        release(plan(invariants=invariants, constraints=[]), {"persons": "no such file"}, out=tmp_path / "out")
    assert "by adult in each state" in str(found.value) and "by colour in each town" in str(found.value)


def test_counts_of_a_release_are_marginals_of_its_leaves(made):
    schema = made.plan.table("persons").schema_of
    groups = schema.groups(("kind",))
    assert np.array_equal(made.counts("persons", "town", ("kind",)), marginal(made.leaves["persons"], groups, 3))
