"""Measurements: their law is exact, their files cover everything, and any range of units is read back as it was."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from census import fields, plan, tables
from scipy import stats

from stirred.noise import SeededSource
from stirred.topdown.data.counting import count_tables
from stirred.topdown.data.histograms import marginal
from stirred.topdown.measuring import INDEX, Measurements, entries, measure
from stirred.topdown.plan.fields import TopDownPlan

FALSE_ALARM = 1e-9
"""Of each statistical test here; seeds are fixed."""


def measured(folder, chosen, data, seed=1):
    counted = count_tables(chosen, data)
    measure(counted, folder, SeededSource(seed))
    return counted, Measurements(folder)


def truth_of(counted, entry):
    schema = counted.plan.table(entry.table).schema_of
    histograms = counted.histograms(entry.table, counted.spine.levels.index(entry.level))
    return marginal(histograms, schema.groups(entry.by), entry.cells)


def many_towns(rho):
    """A plan of persons alone with 1,500 towns, and tables for it."""
    alone = fields(rho)
    alone["tables"], alone["invariants"], alone["constraints"] = alone["tables"][:1], [], []
    names = [f"{county}{number:03}" for county in "abc" for number in range(500)]
    geography = pl.DataFrame({"state": ["s"] * 1500, "county": [name[0] for name in names], "town": names})
    rng = np.random.default_rng(1)
    persons = tables(3000)["persons"].with_columns(town=pl.Series(rng.choice(names, 3000)))
    return TopDownPlan(**alone), {"geography": geography, "persons": persons}


# -- the law -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", ["20", "1/5", "1/200"])
def test_measurements_minus_the_truth_are_discrete_gaussian_of_the_exact_variance(tmp_path, rho):
    # Pearson's test in every query of the towns, on values that are expected 20 times or more, the rest put together.
    # False alarms: FALSE_ALARM for each of the nine tests (with so many expected, the approximation is good there).
    counted, measurements = measured(tmp_path, *many_towns(rho))
    for entry in measurements.of("persons", "town"):
        noise = (measurements.values(entry, slice(0, entry.units)) - truth_of(counted, entry)).ravel()
        variance = float(Fraction(entry.variance))
        reach = int(12 * variance**0.5) + 10
        weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
        expected = noise.size * weights / weights.sum()
        assert np.abs(noise).max() <= reach
        # Values next to each other are put together until 20 are expected.
        bins = np.minimum(np.cumsum(expected) // 20, noise.size // 20 - 1).astype(int)
        used, place = np.unique(bins, return_inverse=True)
        seen = np.bincount(place[noise + reach], minlength=len(used))
        wanted = np.bincount(place, weights=expected)
        assert len(used) > 2 and stats.chisquare(seen, wanted).pvalue > FALSE_ALARM


def test_no_two_cells_share_their_noise(tmp_path, monkeypatch):
    # Of independent draws, neighbouring parts, units, cells and queries have correlations within 6.2 standard errors.
    monkeypatch.setattr("stirred.topdown.measuring.PART", 24 * 100)
    counted, measurements = measured(tmp_path, *many_towns("1/200"))
    total, minor, detailed = (
        measurements.values(entry, slice(0, entry.units)) - truth_of(counted, entry)
        for entry in measurements.of("persons", "town")
    )
    pairs = [
        (detailed[:-100], detailed[100:]),
        (detailed[:-1], detailed[1:]),
        (detailed[:, :-1], detailed[:, 1:]),
        (detailed[:, :1], total),
        (detailed[:, :2], minor),
    ]
    for first, second in pairs:
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 6.2 / first.size**0.5


def test_noise_is_added_to_the_truth_cell_by_cell(tmp_path, monkeypatch):
    chosen = plan("1/50")
    drawn = []

    def recorded(variance, size, source):
        drawn.append((Fraction(variance), size))
        return np.arange(size) % 7 - 3

    monkeypatch.setattr("stirred.topdown.measuring.discrete_gaussian", recorded)
    counted, measurements = measured(tmp_path, chosen, tables(2000))
    assert drawn == [(Fraction(one.variance), one.units * one.cells) for one in measurements.entries]
    for one in measurements.entries:
        noise = measurements.values(one, slice(0, one.units)) - truth_of(counted, one)
        assert np.array_equal(noise.ravel(), np.arange(noise.size) % 7 - 3)


# -- the files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [1 << 21, 30, 1])
def test_measurements_cover_every_unit_and_cell_with_their_variance(tmp_path, monkeypatch, part):
    monkeypatch.setattr("stirred.topdown.measuring.PART", part)
    chosen = plan()
    counted, measurements = measured(tmp_path, chosen, tables())
    found = measurements.entries
    assert found == entries(chosen, counted.spine)
    assert sum(Fraction(one.rho) for one in found) == chosen.rho
    assert all(Fraction(one.rho) * Fraction(one.variance) == 1 for one in found)
    assert {path.name for path in tmp_path.iterdir()} == {INDEX, *(one.file for one in found)}
    for one in found:
        units = counted.spine.names[counted.spine.levels.index(one.level)].to_pylist()
        labels = ["*".join(label) or "all" for label in chosen.table(one.table).schema_of.labels(one.by)]
        table = pq.read_table(tmp_path / one.file)
        assert table.schema.metadata == {b"rho": one.rho.encode(), b"variance": one.variance.encode()}
        rows = table.to_pydict()
        assert list(rows) == ["level", "geounit", "query", "cell", "value"]
        assert set(rows["level"]) == {one.level} and set(rows["query"]) == {one.query}
        assert list(zip(rows["geounit"], rows["cell"], strict=True)) == [(u, c) for u in units for c in labels]


@pytest.mark.parametrize("part", [1 << 21, 60, 30])
def test_measurements_are_read_by_ranges_of_units(tmp_path, monkeypatch, part):
    monkeypatch.setattr("stirred.topdown.measuring.PART", part)  # 30 is one unit of the detailed query, 60 are two
    measurements = measured(tmp_path, plan(), tables())[1]
    monkeypatch.undo()  # how large parts were is known from the file alone
    for one in measurements.entries:
        whole = np.array(pq.read_table(tmp_path / one.file)["value"]).reshape(one.units, one.cells)
        for start in range(one.units):
            for stop in range(start + 1, one.units + 1):
                assert np.array_equal(measurements.values(one, slice(start, stop)), whole[start:stop])


def test_files_can_be_searched_by_geounit_without_reading_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("stirred.topdown.measuring.PART", 30)
    measurements = measured(tmp_path, plan(), tables())[1]
    detailed = next(one for one in measurements.entries if (one.level, one.cells) == ("town", 24))
    described = pq.read_metadata(tmp_path / detailed.file)
    ranges = [described.row_group(group).column(1).statistics for group in range(described.num_row_groups)]
    assert [(one.min, one.max) for one in ranges] == [(town, town) for town in ("a1", "a2", "b1", "b2", "b3")]
    assert pq.read_table(tmp_path / detailed.file, filters=[("geounit", "=", "b1")]).num_rows == 24


def test_values_of_any_size_are_kept(tmp_path, monkeypatch):
    # So many different ones that a Parquet dictionary of them is given up on the way.
    chosen, data = many_towns("1")
    large = np.iinfo(np.int64).max // 2 - 3**20 * np.arange(1500 * 24)
    monkeypatch.setattr("stirred.topdown.measuring.discrete_gaussian", lambda variance, size, source: large[:size])
    counted, measurements = measured(tmp_path, chosen, data)
    for one in measurements.of("persons", "town"):
        noise = measurements.values(one, slice(0, one.units)) - truth_of(counted, one)
        assert np.array_equal(noise.ravel(), large[: noise.size])


def test_the_same_seed_gives_the_same_measurements_and_another_seed_others(tmp_path):
    found = []
    for number, seed in enumerate((1, 1, 2)):
        (tmp_path / str(number)).mkdir()
        measurements = measured(tmp_path / str(number), plan("1/50"), tables(), seed)[1]
        found.append([measurements.values(one, slice(0, one.units)).tolist() for one in measurements.entries])
    assert found[0] == found[1] != found[2]


def test_without_an_index_nothing_counts_as_measured(tmp_path, monkeypatch):
    calls = []

    def failing(variance, size, source):
        calls.append(size)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("stirred.topdown.measuring.discrete_gaussian", failing)
    with pytest.raises(KeyboardInterrupt):
        measured(tmp_path, plan(), tables())
    assert len(calls) == 4 and not (tmp_path / INDEX).exists()
