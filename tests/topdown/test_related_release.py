"""Releases with relations between tables: kept at any budget, gone on with after a stop, and forgeries noticed."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from census import tables
from related_census import broken_by_hand, related_census
from test_finished_levels import Told, files
from test_fitting import require_sound
from test_relations import WORDS, related

import stirred
from repeats import some_or, times
from stirred.errors import StirredError
from stirred.lab.audit.topdown_runs import make_data
from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.releases.ledger.ledger import Ledger
from stirred.tables.writing import write_table
from stirred.topdown.audit_pairs import audit_pairs
from stirred.topdown.checking.plan_check import check
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.drawing import draw, fit, release, reopen, rows
from stirred.topdown.fitting.relations import leaves_breaking_relation
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.verifying import verify

# -- random censuses ---------------------------------------------------------------------------------------------------

CENSUSES = 90


@pytest.mark.repeats
def test_relations_of_any_census_are_kept_at_any_budget_or_refused_before_a_draw(tmp_path):
    kept = 0
    for seed in range(times(CENSUSES)):
        chosen, data = related_census(np.random.default_rng(seed))
        work = tmp_path / "work"
        try:
            made = fit(draw(chosen, data, work=work, source=SeededSource(seed)))
        except StirredError as refusal:
            assert refusal.kind == "relation-unsure" and not work.exists()
            continue
        reports = {table.name: [one for one in made.reports if one.table == table.name] for table in chosen.released}
        require_sound(count_tables(chosen, data), {name: (one, reports[name]) for name, one in made.leaves.items()})
        for table in chosen.released:
            written = rows(chosen, made.draw.spine, table, made.leaves[table.name])
            write_table(tmp_path / f"{table.name}.parquet", "parquet", written)
        released = {one.name: pl.read_parquet(tmp_path / f"{one.name}.parquet") for one in chosen.released}
        assert not broken_by_hand(chosen, {name: one.cast(pl.String) for name, one in released.items()})
        kept += 1
        shutil.rmtree(work)
    assert kept > times(CENSUSES) / 3


def test_without_noise_related_tables_come_back_exactly(tmp_path):
    for seed in range(100, 112):
        chosen, data = related_census(np.random.default_rng(seed), rho=str(10**9))
        try:
            made = fit(draw(chosen, data, work=tmp_path / str(seed), source=SeededSource(seed)))
        except StirredError:
            continue
        truth = count_tables(chosen, data)
        for table in chosen.released:
            one, other = truth.leaves[table.name], made.leaves[table.name]
            assert np.array_equal(one.starts, other.starts) and np.array_equal(one.counts, other.counts)
            assert np.array_equal(one.cells, other.cells)


# -- the folder --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("related")
    chosen = related().model_copy(update={"passes": "two"})
    return release(chosen, tables(), out=place / "out", work=place / "work"), place


def test_a_release_keeps_its_relations_says_them_and_verifies(made):
    released, place = made
    assert not len(leaves_breaking_relation(released.fitted, released.plan.relations[0]))
    verdicts = verify(place / "out")
    assert all(one.holds for one in verdicts)
    assert f"recounted and kept: {WORDS}" in [one.words for one in verdicts]
    assert WORDS in " ".join((place / "out" / "README.txt").read_text().split())
    assert [report.table for report in released.reports] == ["persons"] * 3 + ["dwellings"] * 3


def test_estimates_say_that_they_do_not_use_relations(made):
    for table in ("persons", "dwellings"):
        found = stirred.estimate(made[1] / "out", [], table=table, level="county")
        assert "relations to other tables" in found.unused


def test_without_the_relation_the_same_draws_break_it(tmp_path):
    whole = related().model_dump(mode="json", exclude_defaults=True)
    for table in whole["tables"][:2]:
        table["rho"] = "1/1000"
    broken = []
    for relations in (whole["relations"], []):
        chosen = TopDownPlan(**whole | {"relations": relations})
        made = [
            fit(draw(chosen, tables(), work=tmp_path / f"{len(relations)}-{seed}", source=SeededSource(seed)))
            for seed in range(5)
        ]
        broken.append(sum(len(leaves_breaking_relation(one.fitted, related().relations[0])) for one in made))
    assert broken[0] == 0 < broken[1]


def test_rows_that_break_a_relation_are_noticed_and_nothing_else_is_wrong_with_them(made, tmp_path):
    # All household persons of b2 now live in b1, in the order of a release; every total is as before.
    released, place = made
    shutil.copytree(place / "out", tmp_path / "out")
    persons = released.plan.table("persons")
    dense = released.leaves["persons"].dense(persons.schema_of.cells)
    household = persons.schema_of.where({"kind": ["household"]})
    assert dense[3, household].sum() > 0
    dense[2, household] += dense[3, household]
    dense[3, household] = 0
    forged = rows(released.plan, released.draw.spine, persons, Histograms.from_dense(dense))
    write_table(tmp_path / "out" / "persons.parquet", "parquet", forged)
    write_manifest(tmp_path / "out")
    wrong = [one.words for one in verify(tmp_path / "out") if not one.holds]
    assert f"recounted and kept: {WORDS}" in wrong
    assert not [words for words in wrong if words.startswith("recounted") and WORDS not in words]


def test_check_says_that_every_fit_can_keep_the_relations():
    assert "They keep every relation between tables, and every fit can." in " ".join(
        str(check(related(), tables())).split()
    )


# -- stops and audits --------------------------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize(("way", "step"), [("least squares first", some_or(4, 1)), ("level by level", some_or(6, 3))])
def test_a_fit_that_is_stopped_anywhere_spends_once_and_is_the_same(way, step, tmp_path):
    chosen = related().model_copy(update={"dataset": "town", "fit": way})
    whole = Told(every=True)
    release(chosen, tables(), out=tmp_path / "whole", progress=whole)
    first = next(at for at, words in enumerate(whole.stages) if "dwellings" in words and "measuring" not in words)
    for last in range(first, len(whole.stages) + 1, step):
        place = tmp_path / str(last)
        place.mkdir()
        ledger = Ledger.create(place / "town.ledger", "town")
        given = {"out": place / "out", "work": place / "work", "ledger": ledger}
        with pytest.raises(KeyboardInterrupt):
            release(chosen, tables(), progress=Told(last, every=True), **given)
        release(chosen, tables(), **given)
        assert len(ledger.entries()) == 1
        release(chosen, **given | {"out": place / "again"})  # in one piece
        assert files(place / "out") == files(place / "again")


def test_the_fit_does_not_depend_on_how_it_is_divided(made, tmp_path, monkeypatch):
    released, place = made
    monkeypatch.setattr("stirred.topdown.fitting.subtrees.CHUNK", 1)
    again = fit(reopen(released.plan, place / "work"))
    for name, one in released.leaves.items():
        assert np.array_equal(one.cells, again.leaves[name].cells)
        assert np.array_equal(one.counts, again.leaves[name].counts)


def test_audits_make_data_that_keep_the_relations():
    found = make_data(related())
    assert not len(leaves_breaking_relation(found.counted, related().relations[0]))
    assert len(audit_pairs(related())) >= 2
