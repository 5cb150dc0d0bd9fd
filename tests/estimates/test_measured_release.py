"""Measurements of a release, opened and asked: unbiased, as precise as stated, and refused where they do not fit."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from gls_oracle import geography, people, plan_of, released
from scipy.stats import binom, chi2, norm

from stirred.errors import StirredError
from stirred.estimates import estimate_rows, source_rows
from stirred.noise import SeededSource
from stirred.topdown.data.counting import count_tables
from stirred.topdown.estimating.precision import Design
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.measuring import measure
from stirred.topdown.plan.fields import TopDownPlan

ALARM = 1e-10
"""The probability that a statistical claim here fails although it is true; there are ten of them."""

SEX = {"sex": ("f", "m"), "colour": ("x", "y", "z")}
WARM = {"warm": ("colour", {"warm": ("x", "y"), "cold": ("z",)})}


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """Two thousand states that know nothing of each other: as many independent draws of one small release."""
    places = geography([[2, 1]] * 2000)
    queries = [[], ["warm"], ["sex", "colour"]]
    plan = plan_of(SEX, WARM, queries, [[3, 1, 1], [1, 1, 1], [1, 1, 4]], [("state", ("sex",))], rho="1/2")
    persons = people(places, SEX, 20_000, np.random.default_rng(5))
    return released(tmp_path_factory.mktemp("forest"), plan, places, persons, seed=11)


@pytest.mark.parametrize(("level", "one_of"), [("state", 1), ("county", 2), ("town", 3)])
def test_estimates_are_unbiased_with_the_stated_variance_and_coverage(forest, level, one_of):
    counted, release = forest
    by = ("sex", "warm")
    found = release.estimate("persons", by, level=level)
    at = counted.spine.levels.index(level)
    schema = counted.plan.table("persons").schema_of
    histograms = counted.histograms("persons", at).dense(schema.cells)
    truth = np.stack([histograms[:, schema.groups(by) == group].sum(axis=1) for group in range(4)], axis=1)
    # One unit of each state, one group: independent, and all with the same law.
    rows = np.arange(0, len(truth), one_of)
    known = found.variances[rows, 0] == 0  # in a state without women there is no warm one, and that is no estimate
    assert known.sum() < 20 and not truth[rows[known], 0].any()
    rows = rows[~known]
    errors, variance = (found.values - truth)[rows, 0], found.variances[rows, 0]
    draws = len(errors)
    assert np.ptp(variance) < 1e-9 * variance[0] and variance[0] > 0
    assert abs(errors.mean()) < norm.isf(ALARM / 2) * np.sqrt(variance[0] / draws)
    squares = (errors**2).sum() / variance[0]
    assert chi2.ppf(ALARM / 2, draws) < squares < chi2.isf(ALARM / 2, draws)
    for confidence in (0.5, 0.9):
        lower, upper = found.interval(confidence)
        inside = int(((lower <= truth) & (truth <= upper))[rows, 0].sum())
        assert inside >= binom.ppf(ALARM, draws, confidence)


def one_level(folder, queries, rho="1"):
    """A release of one level: what its queries say of a unit is all that is known of it."""
    share = f"1/{len(queries)}"
    table = {
        "name": "persons", "unit": "person", "rho": rho, "level_shares": {"town": 1},
        "attributes": [{"name": name, "values": values} for name, values in SEX.items()],
        "queries": [{"by": by, "shares": share} for by in queries],
    }  # fmt: skip
    plan = TopDownPlan(spine={"levels": ["town"]}, tables=[table])
    places = geography([[3]]).select("town")
    counted = count_tables(plan, {"geography": places, "persons": people(places, SEX, 90, np.random.default_rng(1))})
    measure(counted, folder, SeededSource(4))
    return MeasuredRelease.open(folder, plan, counted.spine)


def test_a_single_measurement_is_its_own_estimate_with_an_exact_interval(tmp_path):
    release = one_level(tmp_path, [["sex"]])
    found = release.estimate("persons", "sex", level="town")
    (entry,) = release.measurements.entries
    np.testing.assert_allclose(found.values, release.measurements.values(entry, slice(0, 3)), atol=1e-9)
    assert (found.interval_kinds == "exact").all() and (found.terms == 1).all()
    lower, upper = found.interval(0.9)
    assert (
        upper - lower == 4
    ).all()  # a discrete Gaussian of variance 1 is within 2 of zero in 99.1 of 100 cases, within 1 in 88.3
    total = release.estimate("persons", level="town")
    assert (total.terms == 2).all() and (total.interval_kinds == "exact").all()
    together = release.union("persons", places=[("town", "s0c0t0"), ("town", "s0c0t2")])
    assert together.terms.tolist() == [[4]] and together.variances[0, 0] == pytest.approx(4)


def test_two_measurements_of_a_number_have_an_exact_interval_where_noise_is_small(tmp_path):
    release = one_level(tmp_path, [[], ["sex"]])
    found = release.estimate("persons", level="town")
    assert (found.interval_kinds == "exact").all()
    (small, large) = found.sums[0]
    assert (small.times, large.times, small.parameter) == (2, 1, 2.0)
    assert (small.weight, large.weight) == pytest.approx((1 / 3, 2 / 3), abs=1e-11)
    assert found.variances[0, 0] == pytest.approx(1 / (1 / 2 + 1 / 4))


@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_at_rho_20_intervals_contain_the_truth_as_seldom_as_whole_numbers_allow(tmp_path, confidence):
    # Nine measured values tell the total of a town. All values of their noise are listed, here and there.
    release = one_level(tmp_path, [[], ["sex"], ["sex", "colour"]], rho="20")
    found = release.estimate("persons", level="town", units=["s0c0t0"])
    assert found.interval_kinds.tolist() == [["exact"]]
    parts = [one for term in found.sums[0] for one in [(term.weight, term.parameter)] * term.times]
    assert len(parts) == 9 and sum(w * w * s for w, s in parts) == pytest.approx(found.variances[0, 0])
    sums, chances = np.zeros(1), np.ones(1)
    for weight, parameter in parts:
        values = np.arange(-2, 3)
        law = np.exp(-(values**2) / (2 * parameter))
        sums = np.add.outer(sums, weight * values).ravel()
        chances = np.multiply.outer(chances, law / law.sum()).ravel()
    distances, place = np.unique(np.round(np.abs(sums), 9), return_inverse=True)
    inside = np.cumsum(np.bincount(place.ravel(), weights=chances))
    # An interval holds one whole number at least, which is the truth whenever the error is below a half.
    least = max(np.searchsorted(inside, confidence), np.searchsorted(distances, 0.5, side="right") - 1)
    shortest = distances[least] <= 0.5
    covers = found.coverage(confidence)[0, 0]
    assert confidence <= covers <= inside[least] + 1e-9 and covers > inside[least] - 1e-6
    assert shortest or inside[least - 1] < confidence
    lower, upper = found.interval(confidence)
    assert (lower <= upper).all() and (upper - lower <= (0 if shortest else 2)).all()
    assert found.coverage(confidence, normal=True)[0, 0] > covers


def test_what_is_not_measured_is_not_told(tmp_path):
    release = one_level(tmp_path, [["sex"]])
    with pytest.raises(StirredError) as refused:
        release.estimate("persons", "colour", level="town")
    assert refused.value.kind == "not-estimable"
    with pytest.raises(StirredError, match="No measurement of 'persons' determines this count in this place"):
        release.explain("persons", {"colour": "x"}, places=[("town", "s0c0t0")])


def test_a_group_that_is_not_told_stands_beside_those_that_are(tmp_path):
    # Of the three colours only the one that is a group by itself is told by the recode.
    table = {
        "name": "persons", "unit": "person", "rho": 1, "level_shares": {"town": 1},
        "attributes": [{"name": "colour", "values": SEX["colour"]}],
        "recodes": [{"name": "warm", "of": "colour", "groups": WARM["warm"][1]}],
        "queries": [{"by": ["warm"], "shares": 1}],
    }  # fmt: skip
    plan = TopDownPlan(spine={"levels": ["town"]}, tables=[table])
    places = geography([[2]]).select("town")
    colours = {"colour": SEX["colour"]}
    counted = count_tables(plan, {"geography": places, "persons": people(places, colours, 9, np.random.default_rng(1))})
    measure(counted, tmp_path, SeededSource(4))
    release = MeasuredRelease.open(tmp_path, plan, counted.spine)
    found = release.estimate("persons", "colour", level="town")
    assert np.isnan(found.values[:, :2]).all() and not np.isnan(found.values[:, 2]).any()
    assert found.interval_kinds[0].tolist() == ["none", "none", "exact"]
    assert found.interval()[0][0, 0] == -np.inf
    assert estimate_rows(found)[1][-2] == "not measured"


def test_a_table_without_attributes_has_a_total(tmp_path):
    table = {"name": "units", "unit": "unit", "rho": 2, "level_shares": {"state": "1/2", "town": "1/2"},
             "queries": [{"by": [], "shares": 1}]}  # fmt: skip
    plan = TopDownPlan(unit="unit", spine={"levels": ["state", "town"]}, tables=[table])
    places = geography([[3]]).select("state", "town")
    counted = count_tables(plan, {"geography": places, "units": places.select("town")})
    measure(counted, tmp_path, SeededSource(4))
    release = MeasuredRelease.open(tmp_path, plan, counted.spine)
    state, town = (release.estimate("units", level=level) for level in ("state", "town"))
    assert state.variances[0, 0] == pytest.approx(1 / (1 + 1 / 3))
    assert town.variances[0, 0] == pytest.approx(1 - 1 / 3 + state.variances[0, 0] / 9)
    assert town.values.sum() == pytest.approx(state.values[0, 0])


def test_results_can_be_printed_and_tabulated(forest):
    _, release = forest
    found = release.estimate("persons", ["sex"], {"colour": "x"}, level="town", units=["s0c1t0", "s7c0t1"])
    frame = found.to_frame(0.95)
    assert frame.columns == ["town", "sex", "estimate", "standard_error", "lower", "upper", "interval", "covers"]
    assert frame["town"].to_list() == ["s0c1t0", "s0c1t0", "s7c0t1", "s7c0t1"]
    assert frame["sex"].to_list() == ["f", "m", "f", "m"]
    assert frame.filter(pl.col("lower") > pl.col("upper")).is_empty()
    rows = estimate_rows(found, 0.95, most=3)
    assert rows[0] == ("town", "sex", "estimate", "std. error", "95% interval", "covers") and len(rows) == 4
    assert found.where == {"colour": ("x",)} and found.exact == ("the number of 'persons' by sex in each state",)
    sources = release.explain("persons", {"colour": "x"}, places=[("county", "s0c1")])
    assert sum(one.share for one in sources) == pytest.approx(1)
    assert sources[0].relation == "inside" and sources[0].query == "sex*colour"
    assert source_rows(sources)[0][0] == "level"


def test_what_can_be_expected_needs_no_measurement(forest):
    counted, release = forest
    design = Design.of(counted.plan, counted.spine, "persons", ["warm"], invariants=[0])
    found = release.estimate("persons", ["warm"], level="county")
    assert np.array_equal(design.variances(1), found.variances)


# -- opening -------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A release folder as it is published; names of towns are numbers, in another order than that of text."""
    places = pl.DataFrame({"state": ["1"] * 4, "county": ["7", "7", "8", "8"], "town": ["9", "10", "11", "100"]})
    plan = plan_of(SEX, {}, [[], ["sex", "colour"]], [[1, 1]] * 3, [("state", ())])
    (tmp_path / "measurements").mkdir()
    counted, _ = released(
        tmp_path / "measurements", plan, places, people(places, SEX, 50, np.random.default_rng(1)), known=False
    )
    (tmp_path / "certificate.json").write_text(json.dumps({"plan": plan.published()}))
    leaves = [names.to_pylist() for names in counted.spine.names]
    parents = counted.spine.parents(2)
    written = {"state": ["1"] * 4, "county": [leaves[1][parent] for parent in parents], "town": leaves[2]}
    pl.DataFrame(written).write_parquet(tmp_path / "measurements" / "geography.parquet")
    return tmp_path, plan, counted


def test_a_published_folder_is_all_that_is_needed(folder):
    path, plan, counted = folder
    given = MeasuredRelease.open(path / "measurements", plan, counted.spine).estimate("persons", "sex", level="town")
    for where in (path, path / "measurements"):
        found = MeasuredRelease.open(where).estimate("persons", "sex", level="town")
        assert found.places == given.places and np.array_equal(found.values, given.values)


def refusal(kind, words, call):
    with pytest.raises(StirredError) as refused:
        call()
    assert refused.value.kind == kind and words in str(refused.value)


def test_folders_without_measurements_are_refused(folder, tmp_path_factory):
    path, _, _ = folder
    refusal("not-measurements", "measurements.json", lambda: MeasuredRelease.open(tmp_path_factory.mktemp("empty")))
    (path / "certificate.json").write_text(json.dumps({"plan": {"mechanism": "swap"}}))
    refusal("not-measurements", "no certificate.json with a TopDown plan", lambda: MeasuredRelease.open(path))
    (path / "certificate.json").write_text("{")
    refusal("not-measurements", "no certificate.json with a TopDown plan", lambda: MeasuredRelease.open(path))


def test_a_folder_without_geography_needs_a_spine(folder):
    path, _, counted = folder
    (path / "measurements" / "geography.parquet").unlink()
    refusal("not-measurements", "there is no geography.parquet", lambda: MeasuredRelease.open(path))
    assert MeasuredRelease.open(path, spine=counted.spine).spine is counted.spine


def test_measurements_of_another_plan_or_place_are_refused(folder):
    path, plan, counted = folder
    other = plan_of(SEX, {}, [[], ["sex", "colour"]], [[1, 2]] * 3, [("state", ())])
    refusal("measurements-do-not-fit", "other queries or units", lambda: MeasuredRelease.open(path, other))
    listed = path / "measurements" / "geography.parquet"
    renamed = pl.read_parquet(listed).with_columns(town=pl.col("town").str.replace("100", "200"))
    renamed.write_parquet(listed)
    refusal("measurements-do-not-fit", "level 'town' has other units", lambda: MeasuredRelease.open(path))
    wrong = [np.zeros((2, 1), dtype=np.int64)]
    refusal("measurements-do-not-fit", "", lambda: MeasuredRelease.open(path, plan, counted.spine, wrong))


def test_questions_that_cannot_be_asked_are_refused(folder, monkeypatch):
    path, _, _ = folder
    release = MeasuredRelease.open(path)
    ask = lambda *words, **more: lambda: release.estimate("persons", *words, **{"level": "town", **more})  # noqa: E731
    refusal("unknown-choice", "There is no level 'block'", ask(level="block"))
    refusal("unknown-choice", "There is no attribute or recode 'age'", ask("age"))
    refusal("unknown-choice", "There is no attribute or recode 'age'", ask((), {"age": "1"}))
    refusal("unknown-choice", "There is no value of 'sex' 'q'", ask((), {"sex": ["f", "q"]}))
    refusal("unknown-choice", "There is no table 'units'", lambda: release.estimate("units", level="town"))
    refusal("estimate-question", "must name each attribute or recode once", ask(["sex", "sex"]))
    refusal("unknown-geounit", "The level 'town' has no unit '09'", ask(units=["09"]))
    refusal("estimate-question", "must name at least one geounit", ask(units=[]))
    refusal("estimate-question", "must name at least one geounit", lambda: release.union("persons", places=[]))
    found = release.estimate("persons", level="town")
    refusal("parameter-out-of-range", "between 0 and 1", lambda: found.interval(90))
    monkeypatch.setattr("stirred.topdown.estimating.precision.LARGEST", 0)
    refusal("estimate-too-wide", "at most 0 can be solved for", ask("colour"))
