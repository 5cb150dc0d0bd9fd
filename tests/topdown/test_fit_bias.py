"""The forecast of the bias of the finest places: public facts only, near what fits do, told where it is promised."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from census import plan, refused, tables

from stirred.noise import SeededSource
from stirred.releases.folder.manifest import write_manifest
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown import preset
from stirred.topdown.checking import fit_bias
from stirred.topdown.checking.fit_bias import (
    ExpectedBias,
    expected_bias,
    kept_totals,
    simulated_records,
)
from stirred.topdown.checking.plan_check import check
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.drawing import release
from stirred.topdown.fitting.table_fit import fit_table
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.verifying import verify


def measured_bias(folder, counted, table, draws):
    """The mean error of fitted totals of blocks by true size, over several releases."""
    known = Known.of(counted)
    truth, errors = counted.leaves[table.name].totals(), []
    for draw in range(draws):
        work = folder / str(draw)
        work.mkdir()
        measure(counted, work, SeededSource(draw))
        leaves, _ = fit_table(known, Measurements(work), table)
        errors.append(leaves.totals() - truth)
    error = np.mean(errors, axis=0)
    edges = ((0, 0), (1, 9), (10, 99), (100, truth.max()))
    return {least: error[(truth >= least) & (truth <= most)].mean() for least, most in edges}


def state(persons, seed=4):
    made = Population(persons=persons, seed=seed).tables()
    data = {
        "geography": made.blocks, "persons": made.persons, "units": made.units, "facilities": made.facilities,
    }  # fmt: skip
    return count_tables(preset("pl94-2020", DOMAINS), data)


def bias_of_tables(counted, table):
    """The forecast for tables that are known, with all constraints of their finest places: how well one could do."""
    sample = fit_bias._sample(counted.plan, counted.spine, table)
    kept = sample.kept(Known.of(counted), table)
    truth = counted.leaves[table.name].of_units(sample.units)
    return fit_bias._simulated(counted.plan, sample, table, kept, truth, SeededSource(fit_bias._KEY), "known tables")


def by_size(found):
    return {one.least: (one.bias, one.standard_error) for one in found.classes}


@pytest.mark.slow
def test_forecasts_are_near_the_bias_of_whole_releases(tmp_path):
    """The simulation of known tables within 2 persons (its own standard error is below 1.5), the forecast from public
    facts within a factor of two; draws are seeded."""
    counted = state(60_000)
    table = counted.plan.table("persons")
    actual = measured_bias(tmp_path, counted, table, 4)
    known = by_size(bias_of_tables(counted, table))
    public = by_size(expected_bias(Known.of(counted), table))
    for least in (1, 100):
        assert abs(known[least][0] - actual[least]) < 2 + 2 * known[least][1]
        assert 1 / 2 < public[least][0] / actual[least] < 2
    assert actual[1] > 2 and actual[100] < -4


def test_small_places_are_forecast_too_large_and_large_ones_too_small(tmp_path):
    counted = state(6_000)
    table = counted.plan.table("persons")
    known = Known.of(counted)
    found = expected_bias(known, table)
    biases = by_size(found)
    assert biases[1][0] > 3 * biases[1][1] and biases[100][0] < -3 * biases[100][1]
    # What small places gain the large ones lose: places of one parent add up.
    total = sum(one.places * one.bias for one in found.classes)
    assert abs(total) < 1e-6
    words = found.sentence("persons")
    assert "a block of fewer than 10 persons too large by about" in words
    assert "a block of 100 persons and more too small by about" in words
    assert expected_bias(known, table) == found  # seeded
    assert ExpectedBias.from_published(json.loads(json.dumps(found.published()))).table == "persons"


def test_without_noise_there_is_no_bias():
    counted = state(3_000)
    plan_ = counted.plan.model_copy(
        update={
            "tables": tuple(
                one.model_copy(update={"rho": one.rho * 10**9} if one.rho else {}) for one in counted.plan.tables
            )
        }
    )
    found = expected_bias(replace(Known.of(counted), plan=plan_), plan_.table("persons"))
    assert all(one.bias == 0 for one in found.classes) and found.sentence("persons") == ""


def test_the_forecast_does_not_read_the_records():
    chosen = plan(invariants=[], constraints=[])
    texts = set()
    for seed in (1, 2):
        data = tables(seed=seed)
        found = check(chosen, data)
        texts.add(json.dumps([one.published() for one in found.biases]))
    assert len(texts) == 1


def test_sizes_can_be_typed(tmp_path):
    chosen, data = plan(), tables()
    found = check(chosen, data, sizes=[5, 500])
    assert {one.least for one in found.biases[0].classes} <= {0, 1, 100}
    assert found.biases[0].sizes == "simulated records in places of the sizes given"
    assert "Forecast of the bias" in str(found) and "stirred estimate" in str(found)
    for wrong in ([], [0, 0], [-1, 4]):
        with refused("parameter-out-of-range"):
            check(chosen, data, sizes=wrong)


def test_totals_that_are_kept_have_no_forecast():
    chosen = plan()
    assert kept_totals(chosen, chosen.table("dwellings")) and not kept_totals(chosen, chosen.table("persons"))
    assert [one.table for one in check(chosen, tables()).biases] == ["persons"]


def test_a_release_tells_the_forecast_and_verify_reads_it(tmp_path):
    release(plan("1/50"), tables(persons=2000), out=tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert [one["table"] for one in certificate["expected_bias"]] == ["persons"]
    text = " ".join((tmp_path / "out" / "README.txt").read_text().split())
    assert "by a forecast from public facts and this plan's noise" in text
    assert "for a single small place or count they are closer to the truth all the same" in text
    assert "take the unbiased" not in text and not any(figure in text for figure in ("47.7", "18.8", "45.8"))
    assert all(verdict.holds for verdict in verify(tmp_path / "out"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        "x",
        [{"table": "persons"}],
        [{"table": "homes", "level": "town", "sizes": "simulated records", "classes": []}],
        "one less",
        "a little larger",
        "larger",
    ],
)
def test_a_forged_forecast_is_noticed(tmp_path, forged):
    release(plan("1/50"), tables(persons=2000), out=tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    fields = json.loads(path.read_text())
    if forged in ("larger", "a little larger"):
        by, forged = {"larger": 50.0, "a little larger": 2.0}[forged], fields["expected_bias"]
        forged[0]["classes"][-1]["bias"] -= by
    elif forged == "one less":
        forged = fields["expected_bias"]
        del forged[0]["classes"][0]
    fields["expected_bias"] = forged
    path.write_text(json.dumps(fields, indent=1))
    write_manifest(tmp_path / "out")
    wrong = [verdict.words for verdict in verify(tmp_path / "out") if not verdict.holds]
    assert any("forecast of bias" in words for words in wrong), wrong


def test_a_forecast_within_its_own_simulation_error_is_neither_confirmed_nor_contradicted(tmp_path):
    release(plan("1/50"), tables(persons=2000), out=tmp_path / "out")
    path = tmp_path / "out" / "certificate.json"
    fields = json.loads(path.read_text())
    fields["expected_bias"][0]["classes"][0]["bias"] += 0.01
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")
    write_manifest(tmp_path / "out")
    [line] = [line for line in map(str, verify(tmp_path / "out")) if "forecast" in line]
    assert line.startswith("open   the last digits of the forecast")


def test_a_forecast_for_a_few_large_places_is_not_computed_again_beyond_a_bound():
    counted = count_tables(plan(), tables())
    table = counted.plan.table("persons")
    few = simulated_records(counted.plan, counted.spine, table, 1000)
    assert simulated_records(counted.plan, counted.spine, table, 1_000_000) == pytest.approx(1000 * few, rel=0.01)
    assert simulated_records(counted.plan, counted.spine, counted.plan.table("dwellings"), 1000) == 0
