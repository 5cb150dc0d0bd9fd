"""Files of places for released folders: estimates, tables of rows, zeros in shares and comparisons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from census import KINDS, plan, refused, tables
from scipy.stats import binom

import stirred
from stirred import mechanisms
from stirred.cli.options import chosen
from stirred.survey.plan.fields import SurveyPlan
from stirred.topdown.drawing import release
from stirred.topdown.estimating.questions import MeasuredRelease, covariance_of
from stirred.topdown.estimating.ratios import ask
from stirred.verbs import tabulated


def test_the_verb_answers_for_a_file_of_places(tmp_path):
    release(plan("2"), tables(), out=tmp_path / "out")
    places = pl.DataFrame({"town": ["a1", "b1", "a2", "b3"], "district": ["east", "east", "west", "empty"]})
    found = stirred.estimate(tmp_path / "out", ["kind"], place_file=places)
    assert found.places == ("east", "west", "empty") and found.level == "district"
    known = found.variances == 0
    # a2 has a college only, b3 nothing; a1 and b1 have dwellings and a nursing home, and no college
    assert known.tolist() == [[False, False, True], [True, True, False], [True, True, True]]
    one = stirred.estimate(tmp_path / "out", place_file=places, places=[("district", "east"), ("town", "b2")])
    assert one.places == ("east + b2",)
    sources = stirred.estimate(tmp_path / "out", place_file=places, places=[("district", "east")], sources=True)
    assert sum(source.share for source in sources.sources) == pytest.approx(1)
    assert stirred.estimate(tmp_path / "out", place_file=places, nonnegative=True).interval()[0].min() >= 0
    with refused("estimate-question") as found:
        stirred.estimate(tmp_path / "out", place_column="x")
    assert "give --places too" in str(found.value)
    with refused("estimate-question") as found:
        stirred.estimate(tmp_path / "out", level="town", place_file=places)
    assert "either a level or a file" in str(found.value)


# -- zeros in shares and comparisons -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Little noise beside the counts: everything that can be divided by is clear of zero."""
    folder = tmp_path_factory.mktemp("release") / "out"
    release(plan("200"), tables(), out=folder)
    return folder


TOWNS = ["a1", "a2", "b1", "b2", "b3"]
POSSIBLE = {"a1": {"household"}, "a2": {"college"}, "b1": {"household", "nursing"}, "b2": {"household"}, "b3": set()}
"""By hand: where dwellings and homes are."""


def rows_of(answers, confidence=0.9):
    lower, upper = answers.interval(confidence)
    return {
        label: (value, error, low, high, kind)
        for label, value, error, low, high, kind in zip(
            answers.labels, answers.values, answers.standard_errors, lower, upper, answers.kinds, strict=True
        )
    }


def test_a_group_that_cannot_occur_has_the_share_zero_and_the_only_one_left_the_share_one(made):
    shares = rows_of(stirred.estimate(made, level="town", share="kind"))
    for town in TOWNS:
        for kind in KINDS:
            value, error, low, high, interval = shares[town, kind]
            if town == "b3":
                assert np.isnan(value) and interval == "empty" and (low, high) == (0, 1)
            elif kind not in POSSIBLE[town]:
                assert (value, error, low, high, interval) == (0, 0, 0, 0, "known")
            elif POSSIBLE[town] == {kind}:
                assert (value, error, low, high, interval) == (1, 0, 1, 1, "known")
            else:
                assert 0 < value < 1 and error > 0 and low <= value <= high and interval == "combined"
    # of grown-ups and of the young: the young have no nursing home anywhere
    both = rows_of(stirred.estimate(made, by=["adult"], level="town", share="kind"))
    assert both["b1", "no", "household"][:4] == (1, 0, 1, 1) and both["b1", "no", "nursing"][:4] == (0, 0, 0, 0)
    assert both["b1", "yes", "household"][1] > 0


def test_a_difference_from_a_count_that_cannot_occur_is_the_other_count(made):
    counts = stirred.estimate(made, by=["kind"], level="town")
    found = rows_of(stirred.estimate(made, level="town", difference=("kind", "household", "nursing")))
    lower, upper = counts.interval(0.9)
    for at, town in enumerate(TOWNS):
        value, error, low, high, kind = found[(town,)]
        if "nursing" not in POSSIBLE[town]:
            assert value == pytest.approx(counts.values[at, 0])
            assert error == pytest.approx(counts.standard_errors[at, 0])
            assert (low, high) == (lower[at, 0], upper[at, 0]), town  # the same law of the noise
            assert kind == str(counts.interval_kinds[at, 0])
        else:
            assert error > 0 and kind == "exact"
    assert found[("b3",)][:4] == (0, 0, 0, 0) and found[("a2",)][:4] == (0, 0, 0, 0)


def test_a_ratio_to_a_count_that_cannot_occur_is_none_and_that_of_one_is_zero(made):
    found = rows_of(stirred.estimate(made, level="town", ratio=("kind", "nursing", "household")))
    assert found[("a1",)] == (0, 0, 0, 0, "known") and found[("b3",)][4] == "empty" and found[("a2",)][4] == "empty"
    assert found[("b1",)][4] == "combined"


def test_zeros_in_listed_places_and_in_comparisons_of_them(made):
    places = pl.DataFrame({"town": ["a1", "b2", "a2", "b3", "b1"], "district": ["x", "x", "y", "y", "z"]})
    shares = rows_of(stirred.estimate(made, place_file=places, share="kind"))
    assert shares["x", "household"][:4] == (1, 0, 1, 1) and shares["y", "college"][:4] == (1, 0, 1, 1)
    assert shares["x", "nursing"][:4] == (0, 0, 0, 0) and shares["z", "household"][1] > 0
    apart = stirred.estimate(made, place_file=places, share="kind", difference=("district", "x", "y"))
    assert rows_of(apart)[("household",)][:4] == (1, 0, 1, 1) and rows_of(apart)[("college",)][:4] == (-1, 0, -1, -1)
    counts = stirred.estimate(made, by=["kind"], place_file=places)
    apart = stirred.estimate(made, by=["kind"], place_file=places, difference=("district", "x", "y"))
    assert apart.values == pytest.approx(counts.values[0] - counts.values[1])
    assert apart.variances == pytest.approx(counts.variances[0] + counts.variances[1])  # one of the two is known
    assert "counts that the plan and the published counts rule out are 0" in apart.exact


def test_covariances_for_a_fit_are_those_of_the_answers_with_zeros(made):
    opened = MeasuredRelease.open(made)
    for more in (
        {"share": "kind"},
        {"share": "kind", "by": ("adult",)},
        {"difference": ("kind", "household", "nursing")},
    ):
        question = ask(opened, "persons", level="town", **more)
        answer = question.answer()
        for row in range(len(question.rows)):
            here = answer.variances[row :: len(question.rows)]
            units = np.flatnonzero(np.isfinite(here))
            found = np.diag(covariance_of(question, row, units))
            np.testing.assert_allclose(found, here[units], rtol=1e-7, atol=1e-12)
            assert (here[units] == 0).any()


@pytest.mark.slow
def test_differences_with_counts_that_are_ruled_out_cover_the_truth(tmp_path):
    """300 releases at rho 2 and 90%; false alarms below 1e-9 for each of 4 towns."""
    data = tables()
    true = data["persons"].group_by("town", "kind").len()
    inside, number = np.zeros(4, dtype=int), 300
    for at in range(number):
        release(plan("2"), data, out=tmp_path / str(at))
        found = stirred.estimate(tmp_path / str(at), level="town", difference=("kind", "household", "nursing"))
        lower, upper = found.interval(0.9)
        for place, town in enumerate(TOWNS[:4]):
            counts = {kind: n for t, kind, n in true.iter_rows() if t == town}
            truth = counts.get("household", 0) - counts.get("nursing", 0)
            inside[place] += lower[place] <= truth <= upper[place]
    assert (inside >= binom.ppf(1e-9, number, 0.9)).all(), inside


def test_units_of_a_place_that_is_empty_for_certain_are_empty_too(tmp_path):
    fields_ = {"invariants": [{"table": "persons", "level": "county"}], "constraints": []}
    data = tables()
    data["persons"] = data["persons"].filter(pl.col("town").str.starts_with("b"))
    release(plan("2", **fields_), data, out=tmp_path / "out")
    found = stirred.estimate(tmp_path / "out", level="town")
    assert (found.variances[:, 0] == 0).tolist() == [True, True, False, False, False]


# -- tables of rows ------------------------------------------------------------------------------------------


def test_tables_by_places_count_the_released_rows(made, tmp_path):
    rows = pl.read_parquet(made / "persons.parquet")
    places = pl.DataFrame({
        "town": ["a1", "a2", "b1", "b1", "b3"], "district": ["x", "x", "x", "y", "z"], "other": ["o"] * 5
    })  # fmt: skip
    found = pl.DataFrame(stirred.tabulate(made, ["adult"], place_file=places, place_column="district"))
    assert found.columns == ["district", "adult", "count"] and found.height == 6
    for name, towns in {"x": ["a1", "a2", "b1"], "y": ["b1"], "z": ["b3"]}.items():
        for adult in ("no", "yes"):
            expected = rows.filter(pl.col("town").is_in(towns) & (pl.col("adult") == adult)).height
            assert found.filter((pl.col("district") == name) & (pl.col("adult") == adult))["count"].item() == expected
    totals, remarks = tabulated(made, [], None, place_file=places, place_column="district")
    assert totals.to_pydict()["district"] == ["x", "y", "z"] and totals["count"][2].as_py() == 0
    outside = rows.filter(pl.col("town") == "b2").height
    assert f"A count of {outside} is in no place" in remarks[0] and "1 units of 'town' lie in more" in remarks[1]
    counties = stirred.tabulate(made, place_file={"county": ["a", "b"], "region": ["r", "r"]})
    assert counties.to_pydict() == {"region": ["r"], "count": [rows.height]}
    with refused("places-unknown"):
        stirred.tabulate(made, place_file={"town": ["nowhere"], "district": ["x"]})
    with refused("places-file"):
        stirred.tabulate(made, ["adult"], place_file={"town": ["a1"], "adult": ["x"]})


def test_tables_by_places_of_a_swapped_file_and_of_a_survey(tmp_path):
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    swap = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    stirred.release(swap, rows, out=tmp_path / "swapped")
    regions = {"county": ["a", "c", "b"], "region": ["west", "west", None]}
    made, remarks = tabulated(tmp_path / "swapped", ["size"], None, place_file=regions)
    assert made.to_pydict() == {"region": ["west", "west"], "size": [1, 2], "count": [5, 5]}
    assert "A count of 10 is in no place" in remarks[0] and "1 units of 'county' that the file names" in remarks[1]
    with refused("option-not-for"):
        chosen(mechanisms.named("swap"), "estimate", {"--places": Path("x")})
    people = pl.DataFrame({"county": list("aabbc") * 4, "w": [2.0] * 20})
    survey = SurveyPlan(
        unit="person", epsilon=20, weights={"column": "w", "lower": 1, "upper": 2}, chosen_from="public",
        attributes=[{"name": "county", "values": ["a", "b", "c"]}], queries=[{"by": "county"}],
    )  # fmt: skip
    stirred.release(survey, people, out=tmp_path / "survey")
    sums = stirred.tabulate(tmp_path / "survey", place_file={"county": ["a", "b"], "region": ["r", "r"]})
    assert sums["region"].to_pylist() == ["r"] and sums[1][0].as_py() == pytest.approx(32, abs=8)
    with refused("places-unknown"):
        stirred.tabulate(tmp_path / "survey", place_file={"county": ["x"], "region": ["r"]})
