"""Forecasts of person tables, sums and weighted counts equal the enumeration of all permutations."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from score_oracle import Household, cell_laws, frames, moments, true_cells

from repeats import some_or
from stirred import errors, swap
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.data.dataset import load
from stirred.swap.data.records import counted_table
from stirred.swap.mechanism import _table
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import LinkedTable, RateRule, table_names
from stirred.tables import Column
from stirred.tables.exact_numbers import row_numbers

one_household = st.builds(
    Household,
    region=st.sampled_from(["N", "S"]),
    county=st.sampled_from(["a", "b", "c"]),
    tenure=st.sampled_from(["own", "rent"]),
    weight=st.integers(1, 40).map(lambda w: Fraction(w, 8)),
    income=st.integers(0, 5).map(lambda k: 1000 * k),
    persons=st.lists(st.tuples(st.sampled_from("fm"), st.integers(0, 2)), max_size=3).map(tuple),
)
households = st.lists(one_household, min_size=2, max_size=7).filter(
    lambda all_of_them: (
        any(one.persons for one in all_of_them)
        and all(sum(one.region == region for one in all_of_them) <= 5 for region in "NS")
    )
)
RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]
ONE = Fraction(1)

TABLES = {
    "persons by sex": (
        {"table": "persons", "by": ["sex", "county"]},
        lambda one: [((sex,), ONE) for sex, _ in one.persons],
    ),
    "persons by own and household columns": (
        {"table": "persons", "by": ["tenure", "age", "region", "county"]},
        lambda one: [((one.tenure, str(age), one.region), ONE) for _, age in one.persons],
    ),
    "sum of a person column": (
        {"table": "persons", "by": ["sex", "county"], "sum": "age"},
        lambda one: [((sex,), Fraction(age)) for sex, age in one.persons],
    ),
    "persons weighted by their household": (
        {"table": "persons", "by": ["sex", "county"], "weight": "weight"},
        lambda one: [((sex,), one.weight) for sex, _ in one.persons],
    ),
    "sum": ({"by": ["tenure", "county"], "sum": "income"}, lambda one: [((one.tenure,), Fraction(one.income))]),
    "weighted count": ({"by": ["tenure", "county"], "weight": "weight"}, lambda one: [((one.tenure,), one.weight)]),
    "weighted sum": (
        {"by": ["region", "county"], "sum": "income", "weight": "weight"},
        lambda one: [((one.region,), one.weight * one.income)],
    ),
}


def plan(rate: object = Fraction(1, 20), **fields: object) -> SwapPlan:
    roles = {"match": ["region"], "swap": ["county"], "hold": ["tenure", "weight", "income"], "id": "id"}
    linked = [LinkedTable(name="persons", link="id", hold=["sex", "age"])]
    allow = ["few-change", "many-unchangeable"]
    return SwapPlan(**({"unit": "household", "rate": rate, "linked": linked, "allow": allow, **roles} | fields))


@pytest.mark.repeats
@pytest.mark.parametrize("name", TABLES)
@settings(
    max_examples=some_or(8, 25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(data=households, rate=st.sampled_from(RATES))
def test_mean_and_variance_are_those_of_all_permutations(name, data, rate):
    asked, score = TABLES[name]
    (found,) = swap.check(plan(rate), frames(data), tables=[asked]).tables
    exact, true = cell_laws(data, rate, score), true_cells(data, score)
    assert {(label[:-1], label[-1]) for label in found.labels} == set(exact)
    for label, value, mean, variance in zip(found.labels, found.true, found.mean, found.variance, strict=True):
        key = (label[:-1], label[-1])
        wanted = moments(exact[key])
        assert value == pytest.approx(float(true.get(key, 0)), rel=1e-14)
        assert mean == pytest.approx(float(wanted[0]), rel=1e-11, abs=1e-11)
        assert variance == pytest.approx(float(wanted[1]), rel=1e-9, abs=1e-9 * max(1.0, float(wanted[0])))
        if wanted[1] == 0:
            assert variance == 0
            assert mean == value


DATA = [
    Household(region, county, tenure, Fraction(weight, 8), income, persons)
    for region, county, tenure, weight, income, persons in [
        ("N", "a", "own", 9, 1000, (("f", 30), ("m", 31))),
        ("N", "b", "rent", 12, 2000, (("f", 20),)),
        ("N", "a", "rent", 1, 0, ()),
        ("N", "c", "own", 20, 5000, (("m", 50), ("m", 51), ("f", 7))),
        ("S", "a", "own", 8, 3000, (("f", 70),)),
        ("S", "d", "rent", 3, 4000, (("m", 25), ("f", 26))),
        ("S", "d", "own", 7, 1000, (("m", 41),)),
    ]
]
PUBLISH = [
    ["county", "tenure"],
    {"table": "persons", "by": ["county", "sex"]},
    {"by": ["county"], "weight": "weight"},
    {"table": "persons", "by": ["county", "tenure"], "sum": "age", "weight": "weight"},
]
NAMES = [
    "county-by-tenure",
    "county-by-sex-of-persons",
    "county-weighted-by-weight",
    "county-by-tenure-of-persons-sum-of-age-weighted-by-weight",
]


@pytest.fixture
def released(tmp_path):
    out, confidential = tmp_path / "release", tmp_path / "confidential"
    swap.release(plan(Fraction(1, 2), publish=PUBLISH), frames(DATA), out=out, confidential=confidential)
    return out, confidential


def failing(release):
    return [finding.words for finding in swap.verify(release) if not finding.holds]


def decimals(path):
    return {tuple(row[:-1]): Fraction(row[-1]) for row in pl.read_csv(path, infer_schema=False).iter_rows()}


def test_published_tables_are_those_of_the_released_files(released):
    release, _ = released
    assert sorted(path.stem for path in (release / "tables").iterdir()) == sorted(NAMES)
    main, persons = pl.read_parquet(release / "microdata.parquet"), pl.read_parquet(release / "persons.parquet")
    together = persons.join(main, on="id")
    found = decimals(release / "tables" / f"{NAMES[1]}.csv")
    counts = together.group_by("county", "sex").len()
    assert found == {(county, sex): many for county, sex, many in counts.iter_rows()}
    weights = main.group_by("county").agg(pl.col("weight").sum())  # eighths add up exactly in binary
    assert decimals(release / "tables" / f"{NAMES[2]}.csv") == {(c,): Fraction(w) for c, w in weights.iter_rows()}
    sums = together.group_by("county", "tenure").agg((pl.col("weight") * pl.col("age")).sum())
    assert decimals(release / "tables" / f"{NAMES[3]}.csv") == {(c, t): Fraction(w) for c, t, w in sums.iter_rows()}
    assert "tables/county-by-sex-of-persons.csv" in (release / "README.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_verify_notices_a_forged_table(released, name):
    release, _ = released
    assert failing(release) == []
    table = release / "tables" / f"{name}.csv"
    lines = table.read_text().splitlines()
    cells, _, number = lines[1].rpartition(",")
    lines[1] = f"{cells},{number[:-1]}{(int(number[-1]) + 1) % 10}"
    table.write_text("\n".join(lines) + "\n")
    write_manifest(release)
    assert failing(release) == [
        f"tables/{name}.csv has the {'sums' if 'weighted' in name else 'counts'} of the microdata"
    ]


def test_the_confidential_folder_has_true_and_released_numbers(released):
    release, confidential = released
    for name, (_, score) in zip(NAMES[1:3], [TABLES["persons by sex"], TABLES["weighted count"]], strict=True):
        rows = pl.read_csv(confidential / "tables" / f"{name}.csv", infer_schema=False).rows()
        true = {tuple(row[:-2]): Fraction(row[-2]) for row in rows}
        by_hand: dict[tuple[str, ...], Fraction] = {}
        for (label, county), value in true_cells(DATA, score).items():
            key = (county, *label) if name == NAMES[1] else (county,)
            by_hand[key] = by_hand.get(key, Fraction(0)) + value
        assert {key: value for key, value in true.items() if value} == by_hand
        after = {tuple(row[:-2]): Fraction(row[-1]) for row in rows if Fraction(row[-1])}
        assert after == decimals(release / "tables" / f"{name}.csv")


def test_sums_do_not_depend_on_the_order_of_rows_or_on_binary_fractions():
    def total(weights):
        column = pl.Series(weights, dtype=pl.Float64)
        frame = pl.DataFrame({"county": ["a", "b"] * (len(weights) // 2), "h": range(len(weights)), "w": column})
        asked = swap.PublishedTable(by=["h"], weight="w")
        own = SwapPlan(swap=["county"], hold=["h", "w"], rate=0.5, publish=[asked])
        data = load(own, frame)
        return counted_table(data, swap.PublishedTable(by=["county"], weight="w")).numbers.texts()

    assert total([0.1, 0.0] * 10) == ["1.0", "0.0"]  # as floating-point numbers, ten tenths are 0.9999999999999999
    assert total([1e16, 0.0, 1.0, 0.0, -1e16, 0.0]) == ["1", "0"]
    assert total([1e30, 0.0, 0.25, 0.0]) == ["1000000000000000000000000000000.25", "0.00"]


@given(st.lists(st.decimals(-(10**12), 10**12, places=4), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_exact_sums_equal_sums_of_fractions(numbers, random):
    shuffled = random.sample(numbers, len(numbers))
    for these in (numbers, shuffled):
        column = exact_column(pa.array(these, pa.decimal128(20, 4)))
        (text,) = row_numbers([column], len(these)).added_up(np.zeros(len(these), dtype=np.int64), 1).texts()
        assert Fraction(text) == sum(map(Fraction, numbers))


def exact_column(values):
    distinct = pa.array(sorted(set(values.to_pylist())), values.type)
    codes = [distinct.to_pylist().index(one) for one in values.to_pylist()]
    return Column("w", np.array(codes, dtype=np.uint32), distinct)


def test_tables_by_what_is_kept_are_invariant_and_said_to_be():
    found = swap.check(plan(), frames(DATA), tables=[{"table": "persons", "by": ["region", "sex", "tenure"]}])
    assert found.tables[0].is_invariant
    assert "Table of persons by 'region', 'sex' and 'tenure': kept exactly." in str(found)


def test_with_rates_by_rule_persons_and_sums_are_not_forecast():
    rules = [RateRule(unique_on="held", rate=0.5), RateRule(otherwise=True, rate=0.1)]
    by_rule = plan(None, rates=rules, publish=PUBLISH)
    found = swap.check(by_rule, frames(DATA))
    assert [table.by for table in found.tables] == [("county", "tenure")]
    assert [table_names([one])[0] for one in found.not_forecast] == NAMES[1:]
    said = " ".join(str(found).split())
    assert "Table of persons by 'county' and 'sex': not forecast." in said
    assert json.loads(found.to_json())["tables_not_forecast"][0] == {"by": ["county", "sex"], "table": "persons"}


def test_plain_tables_are_written_and_named_as_before():
    plain, fields = plan(publish=[["county", "tenure"]]), plan(publish=[{"by": ["county", "tenure"]}])
    assert plain.published()["publish"] == [["county", "tenure"]]
    assert plain.published_tables == fields.published_tables
    assert table_names(plain.published_tables) == ["county-by-tenure"]
    assert SwapPlan.from_published(fields.published()) == fields


def test_a_copy_of_a_swap_variable_under_another_name_moves_with_the_record():
    data = frames(DATA)
    persons = data["persons"].join(data["microdata"].select("id", home="county"), on="id")
    linked = [LinkedTable(name="persons", link="id", hold=["sex", "age"], copies={"home": "county"})]
    asked = [{"table": "persons", "by": [name, "sex"]} for name in ("home", "county")]
    home, county = swap.check(
        plan(linked=linked), {"microdata": data["microdata"], "persons": persons}, tables=asked
    ).tables
    assert home.labels == county.labels
    assert np.array_equal(home.variance, county.variance)
    assert home.variance.any()
    assert [one.variable for one in home.places] == ["home"]


def test_the_command_line_takes_linked_tables_sums_and_weights():
    assert _table("county, sex;table=persons") == {"by": ("county", "sex"), "table": "persons"}
    assert _table("county;weight=w;sum=income") == {"by": ("county",), "weight": "w", "sum": "income"}
    assert _table("a;b,c") == {"by": ("a;b", "c")}  # a semicolon in a name stays in it


def test_a_column_that_is_asked_for_twice_is_an_error():
    with pytest.raises(errors.PlanError, match="none twice"):
        swap.check(plan(), frames(DATA), tables=[{"by": ["county", "county"]}])
    with pytest.raises(errors.PlanError, match="summ: there is no such field"):
        swap.check(plan(), frames(DATA), tables=[{"by": ["county"], "summ": "income"}])


def test_persons_of_a_flat_file_are_counted_and_verified(tmp_path):
    data = frames(DATA)
    flat = data["persons"].join(data["microdata"], on="id")
    own = plan(
        Fraction(1, 2),
        hold=["tenure", "weight", "income"],
        linked=[LinkedTable(name="persons", link="id", hold=["sex", "age"], flat=True)],
        publish=[{"table": "persons", "by": ["county", "sex"], "sum": "age"}],
    )
    swap.release(own, flat, out=tmp_path / "out")
    assert failing(tmp_path / "out") == []
    found = decimals(tmp_path / "out" / "tables" / "county-by-sex-of-persons-sum-of-age.csv")
    assert sum(found.values()) == flat["age"].sum()


def test_a_merged_match_column_stays_with_the_record():
    data = frames(DATA)
    coarsened = plan(coarsen={"column": "region", "merge": [["N", "S"]], "at_least": 5})
    (found,) = swap.check(coarsened, data, tables=[{"table": "persons", "by": ["region", "county"]}]).tables
    one_stratum = [replace(one, tenure=one.region, region="all") for one in DATA]
    exact = cell_laws(one_stratum, Fraction(1, 20), lambda one: [((one.tenure,), ONE) for _ in one.persons])
    assert dict(zip(found.labels, found.variance, strict=True)) == {
        (*label, county): pytest.approx(float(moments(law)[1])) for (label, county), law in exact.items()
    }


@settings(max_examples=25, deadline=None)
@given(data=households, rate=st.sampled_from(RATES), times=st.integers(1, 7))
def test_weights_of_one_count_and_weights_of_several_multiply(data, rate, times):
    alike = [replace(one, weight=Fraction(times)) for one in data]
    plain, weighted = swap.check(
        plan(rate), frames(alike), tables=[["county", "tenure"], {"by": ["county", "tenure"], "weight": "weight"}]
    ).tables
    assert weighted.labels == plain.labels
    assert weighted.true == pytest.approx(times * plain.true)
    assert weighted.mean == pytest.approx(times * plain.mean)
    assert weighted.variance == pytest.approx(times**2 * plain.variance, rel=1e-9, abs=1e-12)
    assert weighted.empty == pytest.approx(plain.empty, rel=1e-12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(data=households, rate=st.sampled_from(RATES))
def test_what_counties_lose_other_counties_gain(data, rate):
    (found,) = swap.check(plan(rate), frames(data), tables=[{"table": "persons", "by": ["sex", "county"]}]).tables
    for sex in {label[0] for label in found.labels}:
        rows = [number for number, label in enumerate(found.labels) if label[0] == sex]
        assert found.mean[rows].sum() == pytest.approx(found.true[rows].sum())
    assert found.true.sum() == sum(len(one.persons) for one in data)


def test_a_candidate_that_would_swap_a_weight_has_no_expected_error():
    found = swap.check(
        plan(publish=[{"by": ["county"], "weight": "weight"}]),
        frames(DATA),
        candidates=[(("region",), ("county", "weight")), (("region",), ("county",))],
    )
    errors_of = {entry.swap: entry.errors[0][1] for entry in found.what_if}
    assert errors_of["county", "weight"] is None
    assert errors_of["county",] > 0
