"""Regressions from release folders: how columns enter, what is exact, what is refused and in which words."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import stirred
from stirred import errors
from stirred.cli.estimating import interval_picture
from stirred.noise import SeededSource
from stirred.swap.drawing import draw as draw_swap
from stirred.swap.drawing import release as release_swap
from stirred.swap.estimating.questions import SwappedRelease
from stirred.swap.estimating.regression_questions import read_formula
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    n = 1500
    size, county = rng.integers(1, 5, n), np.array(["A", "B", "C"])[rng.integers(0, 3, n)]
    income = (20_000 + 4_000 * (county == "B") + 9_000 * (county == "C") + 1_500 * size + rng.normal(0, 9e3, n)).round()
    return pl.DataFrame(
        {
            "region": np.array(["n", "s"])[rng.integers(0, 2, n)],
            "size": size,
            "county": county,
            "zone": rng.integers(1, 4, n) * 10,
            "income": income.astype(np.int64),
            "tenure": np.where(rng.random(n) < 0.2 + 0.3 * (county == "C"), "rented", "owned"),
            "rooms": size + rng.integers(0, 3, n),
            "a+b": rng.integers(0, 2, n),
        }
    )


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    return released(tmp_path_factory.mktemp("regressing") / "release", rows)


def released(folder, rows, **fields):
    """From a seed: in one of some hundred draws chance alone brings the naive coefficients nearer to the file."""
    plan = {"match": ["region", "size"], "swap": ["county", "zone"], "hold": "rest", "rate": 0.2}
    plan |= {"chosen_from": "public", "allow": ["distinct:income"]}
    return draw_swap(SwapPlan(**plan | fields), rows, source=SeededSource(5)).write(folder, for_tests=True)


def least_squares(outcome, *columns):
    design = np.column_stack([np.ones(len(outcome)), *columns])
    return np.linalg.lstsq(design, np.asarray(outcome, dtype=float), rcond=None)[0]


def rows_of(found):
    return [label[0] for label in found.labels]


def test_naive_coefficients_are_those_of_the_released_rows_and_corrected_ones_near_the_file(folder, rows):
    found = stirred.estimate(folder, regress="income ~ county + rooms", target="file")
    released = pl.read_parquet(folder / "microdata.parquet")
    assert rows_of(found) == ["(intercept)", "county=B", "county=C", "rooms"]
    for frame, values in ((released, found.naive), (rows, None)):
        county = frame["county"].to_numpy()
        usual = least_squares(frame["income"], county == "B", county == "C", frame["rooms"])
        if values is not None:
            np.testing.assert_allclose(values, usual)
        else:
            assert np.all(np.abs(found.values - usual) <= 5 * found.standard_errors)
            assert abs(found.values[2] - usual[2]) < abs(found.naive[2] - usual[2])
    assert np.isnan(found.attenuation[0]) and found.attenuation[3] == 1
    assert 0.78 < found.attenuation[2] < 0.82


def test_two_groups_are_differences_of_means_and_of_shares(folder, rows):
    means = stirred.estimate(folder, regress="income ~ county", reference={"county": "C"})
    assert rows_of(means)[1:] == ["county=A", "county=B"]
    assert any("difference of means of income: here minus at C" in one for one in means.remarks)
    naive = pl.read_parquet(folder / "microdata.parquet").group_by("county").agg(pl.col("income").mean())
    mean = dict(naive.rows())
    assert means.naive[1] == pytest.approx(mean["A"] - mean["C"])
    shares = stirred.estimate(folder, regress="tenure=rented ~ county")
    assert any("spreads differently" in one for one in shares.remarks)
    table = stirred.estimate(folder, ["tenure"], share="tenure", difference=("county", "C", "A"))
    share = dict(zip([label[0] for label in table.labels], table.values, strict=True))["rented"]
    assert shares.values[2] == pytest.approx(share)  # the same question asked as a table
    file = stirred.estimate(folder, regress="tenure=rented ~ county", target="file")
    error = dict(zip([label[0] for label in table.labels], table.standard_errors, strict=True))["rented"]
    assert file.standard_errors[2] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("formula", ["income ~ rooms + size", "zone ~ county + size", "tenure=rented ~ region"])
def test_regressions_among_what_a_swap_keeps_are_exact(folder, rows, formula):
    found = stirred.estimate(folder, regress=formula, target="file")
    assert set(found.kinds) == {"known"} and not found.standard_errors.any()
    np.testing.assert_array_equal(found.values, found.naive)
    assert any("nothing is corrected" in one for one in found.remarks)
    if formula.startswith("income"):
        np.testing.assert_allclose(found.values, least_squares(rows["income"], rows["rooms"], rows["size"]))
    population = stirred.estimate(folder, regress=formula)
    assert set(population.kinds) == {"sampling"} and population.standard_errors.all()


def test_numbers_enter_as_numbers_or_as_categories(folder):
    assert rows_of(stirred.estimate(folder, regress="income ~ zone")) == ["(intercept)", "zone"]
    found = stirred.estimate(folder, regress="income ~ zone", categories=["zone"])
    assert rows_of(found) == ["(intercept)", "zone=20", "zone=30"]
    found = stirred.estimate(folder, regress="income ~ zone", reference={"zone": "20"})
    assert rows_of(found) == ["(intercept)", "zone=10", "zone=30"]
    assert rows_of(stirred.estimate(folder, regress="income ~ `a+b` + zone=10"))[1:] == ["a+b", "zone=10"]


def test_conditions_on_match_variables_choose_whole_strata(folder):
    some = stirred.estimate(folder, regress="income ~ county", where={"region": ["n"]})
    frame = pl.read_parquet(folder / "microdata.parquet").filter(pl.col("region") == "n")
    county = frame["county"].to_numpy()
    np.testing.assert_allclose(some.naive, least_squares(frame["income"], county == "B", county == "C"))
    assert some.where == {"region": ("n",)}


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("income ~ county:rooms", "interaction"),
        ("income ~ county*rooms", "interaction"),
        ("income ~ log(rooms)", "transformation"),
        ("income ~ rooms^2", "transformation"),
        ("logit(tenure) ~ county", "not linear"),
        ("poisson(rooms) ~ county", "not linear"),
        ("income ~ county, weights=rooms", "weights"),
        ("income ~ county | region", "weights or conditions"),
        ("tenure ~ county", "is text"),
        ("income ~ 0 + county", "intercept"),
        ("income ~ county +", "empty term"),
        ("income", "OUTCOME ~ PREDICTOR"),
        ("a ~ b ~ c", "OUTCOME ~ PREDICTOR"),
        ("income ~ county + county", "twice"),
        ("income ~ income", "twice"),
        ("income ~ county=B + county", "follows from the other"),
    ],
)
def test_what_is_not_valid_is_refused_by_name(folder, formula, words):
    with pytest.raises(errors.StirredError, match=f"(?i){words.replace('+', '.')}") as refused:
        stirred.estimate(folder, regress=formula)
    assert refused.value.kind == "regression-not-valid"


def test_other_questions_that_cannot_be_answered_say_why(folder, rows, tmp_path):
    for formula in ("income ~ shoe", "shoe ~ income", "income ~ `sh+oe`", "shoe=big ~ income"):
        with pytest.raises(errors.StirredError, match=r"sh.?oe") as refused:
            stirred.estimate(folder, regress=formula)
        assert refused.value.kind == "unknown-table-column"
    with pytest.raises(errors.StirredError, match="value of 'tenure'"):
        stirred.estimate(folder, regress="tenure=stolen ~ county")
    with pytest.raises(errors.StirredError, match="value of 'county'"):
        stirred.estimate(folder, regress="income ~ county", reference={"county": "nowhere"})
    for column in ("county", "tenure"):
        with pytest.raises(errors.StirredError, match="not on a match variable"):
            stirred.estimate(folder, regress="income ~ rooms", where={column: ["x"]})
    with pytest.raises(errors.StirredError, match="takes no --by"):
        stirred.estimate(folder, ["county"], regress="income ~ county")
    with pytest.raises(errors.StirredError, match="goes with --regress"):
        stirred.estimate(folder, ["county"], target="file")
    with pytest.raises(errors.StirredError, match="target"):
        stirred.estimate(folder, regress="income ~ county", target="moon")
    with pytest.raises(errors.StirredError, match="does not stand in the formula"):
        stirred.estimate(folder, regress="income ~ county", categories=["zone"])
    with pytest.raises(errors.StirredError, match="at most 100"):
        stirred.estimate(folder, regress="rooms ~ county + income", categories=["income"])
    holes = rows.with_columns(pl.when(pl.col("rooms") > 4).then(None).otherwise(pl.col("rooms")).alias("rooms"))
    with pytest.raises(errors.StirredError, match="missing cells"):
        stirred.estimate(released(tmp_path / "holes", holes, nulls=["rooms"]), regress="rooms ~ county")
    uneven = [{"where": {"tenure": ["rented"]}, "rate": 0.3}, {"otherwise": True, "rate": 0.1}]
    with pytest.raises(errors.StirredError) as refused:
        stirred.estimate(released(tmp_path / "uneven", rows, rate=None, rates=uneven), regress="income ~ county")
    assert refused.value.kind == "estimates-of-rates"


def test_rates_by_stratum_have_each_their_own_attenuation(rows, tmp_path):
    rules = [{"where": {"size": ["1", "2"]}, "rate": 0.4}, {"otherwise": True, "rate": 0.1}]
    found = stirred.estimate(released(tmp_path / "r", rows, rate=None, rates=rules), regress="income ~ county")
    assert 0.6 < found.attenuation[1] < 0.9 and np.isfinite(found.values).all()


def test_columns_of_linked_tables_are_refused_in_words(tmp_path):
    households, persons = households_and_persons(300)
    plan = SwapPlan(
        match=["region", "size"], swap=["county", "tract"], hold=["tenure", "type"], rate=0.1, unit="household",
        id="household_id", chosen_from="public", allow=["many-unchangeable"],
        linked=[{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}],
    )  # fmt: skip
    release_swap(plan, {"microdata": households, "persons": persons}, out=tmp_path / "linked")
    for asked in ({"regress": "sex ~ county"}, {"regress": "size ~ county", "table": "persons"}):
        with pytest.raises(errors.StirredError, match="several rows for a record"):
            stirred.estimate(tmp_path / "linked", **asked)
    found = SwappedRelease.open(tmp_path / "linked").regress("size ~ county")
    assert set(found.kinds) == {"sampling"}  # household size is matched, so the swap keeps it by county


def test_terms_and_quoted_names():
    formula = read_formula(" y=1 ~ `a ~ b` + c = d + `e+f`=g", ["y", "a ~ b", "c", "e+f"])
    assert [one.label for one in (formula.outcome, *formula.predictors)] == ["y=1", "a ~ b", "c=d", "e+f=g"]


def test_json_frames_pictures_and_the_command_line(folder, command):
    found = stirred.estimate(folder, regress="income ~ county")
    frame = found.to_frame(0.95)
    assert frame.columns == [
        "term", "estimate", "standard_error", "lower", "upper", "interval", "naive", "attenuation",
    ]  # fmt: skip
    assert interval_picture(found).intervals[1].beside == found.naive[1]
    assert "<table" in found._repr_html_()
    ended = command("estimate", folder, "--regress", "income ~ county", "--reference", "county=C", "--target", "file")
    assert not ended.code, ended.err
    for words in ("naive", "corrected", "std. error", "95% interval", "attenuation", "county=A", "compared with C"):
        assert words in ended.said
    ended = command("estimate", folder, "--regress", "income ~ zone", "--category", "zone", "--robust", "--json")
    body = json.loads(ended.out)
    assert body["measure"] == "coefficient for income" and body["estimates"][0]["attenuation"] is None
    assert [row["term"] for row in body["estimates"]] == ["(intercept)", "zone=20", "zone=30"]
    ended = command("estimate", folder, "--regress", "income ~ county", "--reference", "county")
    assert ended.code and "column=value" in ended.err
    ended = command("estimate", folder, "--by", "county", "--category", "zone")
    assert ended.code and "--category goes with --regress" in ended.said
