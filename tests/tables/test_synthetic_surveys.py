"""What generated surveys promise: places that nest, weights that are right, public tables that tell of the frame alone.

Everything has a fixed seed; where a frequency or a mean is compared with its law, the comparison fails for a random
seed with probability 1e-9 at most, all cells of it together.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

from stirred.errors import StirredError
from stirred.tables.synthetic import survey_frame, surveys
from stirred.tables.synthetic.survey_frame import make_frame
from stirred.tables.synthetic.surveys import DESIGNS, Survey, draw_survey

FALSE_ALARM = 1e-9
PERSONS = 30_000
EXACT = {"nonresponse": False, "final_weights": False, "replicates": 0}


def make_survey(persons: int, *, seed: int = 0, regions: int = 8, areas: int = 40, **options) -> Survey:
    return draw_survey(make_frame(persons, seed=seed, regions=regions, areas=areas), seed=seed, **options)


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return make_frame(PERSONS, seed=5)


@pytest.fixture(scope="module", params=DESIGNS)
def survey(request, frame: pl.DataFrame) -> Survey:
    return draw_survey(frame, seed=6, design=request.param, sampled=3_000, replicates=5)


def assert_binomial(found: np.ndarray, of: np.ndarray, chances: np.ndarray) -> None:
    law = stats.binom(of, chances)
    assert np.minimum(law.cdf(found), law.sf(found - 1)).min() > FALSE_ALARM / (2 * found.size)


def assert_mean(found: np.ndarray, true: float) -> None:
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - true) < stats.t.isf(FALSE_ALARM / 2, len(found) - 1) * error


# -- the frame -------------------------------------------------------------------------------------------------------


def test_the_same_options_give_the_same_rows():
    once, again = (make_survey(6_000, seed=3, design="two-stage", replicates=3) for _ in range(2))
    for name in ("frame", "target", "records", "strata", "totals", "truth"):
        assert getattr(once, name).equals(getattr(again, name)), name
    other = make_survey(6_000, seed=4, design="two-stage", replicates=3)
    assert not other.frame.equals(once.frame) and not other.records.equals(once.records)


def test_the_frame_does_not_depend_on_what_is_drawn_from_it():
    first = make_survey(6_000, seed=3, design="two-stage", replicates=0)
    other = make_survey(6_000, seed=3, design="poisson", sampled=77, decimals=0, replicates=1)
    assert first.frame.equals(other.frame) and first.totals.equals(other.totals) and first.truth.equals(other.truth)


def test_places_nest_and_everybody_is_somewhere(frame: pl.DataFrame):
    assert frame.height == PERSONS and frame.null_count().sum_horizontal().item() == 0
    assert frame["person"].to_list() == list(range(1, PERSONS + 1))
    for inner, outer in (("block", "area"), ("area", "kind"), ("area", "region")):
        assert frame.group_by(inner).agg(pl.col(outer).n_unique())[outer].max() == 1
    assert frame["area"].n_unique() == 40 and frame["region"].n_unique() == 8
    assert frame.group_by("region", "kind").agg(pl.col("block").n_unique())["block"].min() >= 2
    assert frame.group_by("block").len()["len"].min() >= 20
    assert (frame["block"].cast(str).str.head(7) == frame["area"].cast(str)).all()


@pytest.mark.parametrize(("persons", "regions", "areas"), [(200, 1, 2), (1_600, 8, 16), (20_000, 3, 111)])
def test_frames_of_any_size_have_exactly_the_persons_and_places_asked_for(persons: int, regions: int, areas: int):
    frame = make_frame(persons, regions=regions, areas=areas)
    assert frame.height == persons
    assert (frame["region"].n_unique(), frame["area"].n_unique()) == (regions, areas)


def test_answers_keep_their_bounds_and_are_skewed(frame: pl.DataFrame):
    for name, (least, most) in (surveys.BOUNDS | {"size": survey_frame.SIZES}).items():
        assert frame[name].dtype.is_integer() and frame[name].min() >= least and frame[name].max() <= most
    assert frame["income"].mean() > 1.15 * frame["income"].median()
    assert ((frame["hours"] > 0) == (frame["employment"] == "employed")).all()
    assert set(frame["employment"].cast(str)) == set(surveys.EMPLOYMENT)
    assert set(frame["age_group"].cast(str)) == set(surveys.AGE_GROUP)


def test_answers_are_correlated_within_blocks(frame: pl.DataFrame):
    """One-way analysis of variance: without an effect of blocks F would be above 2 with probability below 1e-9."""
    adults = frame.filter(pl.col("employment") == "employed", pl.col("income") > 0)
    groups = [np.log(group["income"].to_numpy()) for _, group in adults.group_by("block", maintain_order=True)]
    many = [group for group in groups if len(group) > 1]
    assert stats.f.sf(2.0, len(many) - 1, adults.height - len(many)) < FALSE_ALARM
    assert stats.f_oneway(*many).statistic > 2.0


# -- the sample ------------------------------------------------------------------------------------------------------


def test_public_tables_do_not_depend_on_who_is_sampled(survey: Survey):
    other = draw_survey(survey.frame, seed=7, design=survey.design, sampled=3_000, replicates=0)
    assert other.strata.equals(survey.strata) and other.totals.equals(survey.totals)
    assert not other.target["person"].equals(survey.target["person"])


def test_the_strata_table_tells_of_the_frame_and_of_the_sample(survey: Survey):
    frame = survey.frame
    if survey.design in ("simple", "poisson"):
        frame = frame.with_columns(stratum=pl.lit("all"))
    else:
        frame = frame.with_columns(stratum=pl.col("region").cast(str) + "-" + pl.col("kind").cast(str))
    psu = "block" if survey.design == "two-stage" else "person"
    counted = frame.group_by("stratum").agg(pl.len().alias("units"), pl.col(psu).n_unique().alias("psus"))
    sampled = survey.target.with_columns(pl.col("stratum").cast(str)).group_by("stratum")
    sampled = sampled.agg(pl.len().alias("sampled"), pl.col("psu").n_unique().alias("selected"))
    strata = survey.strata.join(counted, on="stratum", validate="1:1").join(sampled, on="stratum", validate="1:1")
    assert strata.height == survey.strata.height == counted.height
    assert (strata["population_units"] == strata["units"]).all()
    assert (strata["population_psus"] == strata["psus"]).all()
    if survey.design == "poisson":
        assert strata["selected_psus"].null_count() == strata["sampled_units"].null_count() == 1
    else:
        assert (strata["selected_psus"] == strata["selected"]).all()
        assert (strata["sampled_units"] == strata["sampled"]).all()
        assert strata["selected"].min() >= 2


def test_primary_sampling_units_nest_in_strata(survey: Survey):
    assert survey.target.group_by("psu").agg(pl.col("stratum").n_unique())["stratum"].max() == 1
    assert survey.target["person"].is_unique().all()
    if survey.design == "two-stage":
        assert survey.target.group_by("psu").len()["len"].to_list() == [15] * survey.target["psu"].n_unique()
    else:
        assert survey.target["psu"].to_list() == survey.target["person"].cast(str).to_list()


def test_weights_are_one_over_inclusion_probabilities(survey: Survey):
    strata = survey.strata.with_columns(pl.col("stratum").cast(survey.target["stratum"].dtype))
    joined = survey.target.join(strata, on="stratum").join(survey.frame.select("person", "size", "block"), on="person")
    assert joined.height == survey.target.height
    in_block = Counter(survey.frame["block"].cast(str))
    for row in joined.iter_rows(named=True):
        if survey.design == "poisson":
            exact = Fraction(int(survey.frame["size"].sum()), 3_000 * row["size"])
            # Rounded to the step before anybody is drawn, so the weight is exactly 1 over the probability.
            assert row["weight"] * row["probability"] == pytest.approx(1, rel=1e-14)
        elif survey.design == "two-stage":
            exact = Fraction(row["population_psus"], row["selected_psus"]) * Fraction(in_block[row["block"]], 15)
            assert float(1 / exact) == pytest.approx(row["probability"], rel=1e-12)
        else:
            exact = Fraction(row["population_units"], row["sampled_units"])
            assert float(1 / exact) == pytest.approx(row["probability"], rel=1e-12)
        assert abs(row["weight"] - exact) <= 0.005 + 1e-9


def test_weights_are_multiples_of_the_step_within_the_public_limits(survey: Survey):
    limits = survey.strata.with_columns(pl.col("stratum").cast(survey.records["stratum"].dtype))
    records = survey.records.join(limits, on="stratum")
    for column, limit in (("weight", "weight"), ("final_weight", "final_weight")):
        assert records[column].is_between(records[f"smallest_{limit}"], records[f"largest_{limit}"]).all()
    for column in ("weight", "final_weight", "replicate_1", "replicate_5"):
        assert all(Fraction(repr(value)) * 100 % 1 == 0 for value in survey.records[column])


@pytest.mark.parametrize("design", DESIGNS)
def test_whole_weights_are_whole_numbers(design: str):
    records = make_survey(6_000, seed=1, design=design, decimals=0, replicates=1).records
    for column in ("weight", "final_weight", "replicate_1"):
        assert records[column].dtype == pl.Int64
    assert records["weight"].min() >= 1 and records["final_weight"].min() >= 1


@pytest.mark.parametrize("design", DESIGNS)
def test_weighted_totals_are_unbiased(design: str):
    frame = make_frame(2_000, seed=8, regions=2, areas=8)
    drawn = [
        draw_survey(frame, seed=seed, design=design, sampled=200, decimals=6, **EXACT).records for seed in range(250)
    ]
    unemployed = [records.filter(pl.col("employment") == "unemployed")["weight"].sum() for records in drawn]
    income = [(records["income"] * records["weight"]).sum() for records in drawn]
    area = [records.filter(pl.col("area") == "02-0007")["weight"].sum() for records in drawn]
    assert_mean(np.array(unemployed), (frame["employment"] == "unemployed").sum())
    assert_mean(np.array(income), frame["income"].sum())
    assert_mean(np.array(area), (frame["area"] == "02-0007").sum())


def test_poisson_sampling_gives_about_the_number_asked_for(frame: pl.DataFrame):
    sizes = [draw_survey(frame, seed=seed, design="poisson", sampled=900, **EXACT).target.height for seed in range(60)]
    # Rounding weights to hundredths changes the expected number by less than a thousandth.
    assert_mean(np.array(sizes, dtype=np.float64) - 900, 0.0)


def test_small_blocks_are_taken_whole_where_more_is_asked_for():
    frame = make_frame(6_000, seed=2)
    survey = draw_survey(frame, seed=2, design="two-stage", sampled=3_000, take=60, **EXACT)
    size = frame["block"].cast(str).value_counts()
    taken = survey.target.group_by("psu").len().join(size, left_on="psu", right_on="block")
    assert (taken["len"] == pl.Series(np.minimum(60, taken["count"]))).all() and taken["count"].min() < 60
    counted = survey.target["stratum"].cast(str).value_counts().join(survey.strata, on="stratum")
    stated = counted.drop_nulls("sampled_units")
    assert (stated["count"] == stated["sampled_units"]).all() and 0 < stated.height < counted.height


# -- answers ---------------------------------------------------------------------------------------------------------


def test_response_rates_are_those_of_the_parts_of_regions(frame: pl.DataFrame):
    target = draw_survey(frame, seed=9, design="simple", sampled=20_000, replicates=0).target
    counted = (
        target.group_by("region", "kind").agg(pl.len(), pl.col("responded").sum()).cast({"region": str, "kind": str})
    )
    stated = {"region": [f"{region + 1:02}" for region in range(8) for _ in surveys.KIND], "kind": surveys.KIND * 8}
    stated["response"] = surveys._rates(8).ravel()
    joined = counted.join(pl.DataFrame(stated), on=["region", "kind"], validate="1:1")
    assert joined.height == 16 and joined["response"].n_unique() > 4
    assert_binomial(joined["responded"].to_numpy(), joined["len"].to_numpy(), joined["response"].to_numpy())


def test_records_are_those_who_responded_with_their_own_answers(survey: Survey):
    assert survey.records["person"].equals(survey.target.filter("responded")["person"])
    assert survey.records["weight"].equals(survey.target.filter("responded")["weight"])
    joined = survey.records.join(survey.frame, on="person", suffix="_true")
    for name in ("region", "kind", "area", "age_group", "sex", "employment", "income", "hours"):
        known = joined.drop_nulls(name)
        assert (known[name] == known[f"{name}_true"]).all() and known.height > 0.8 * joined.height


def test_items_are_missing_as_often_as_stated(frame: pl.DataFrame):
    records = draw_survey(frame, seed=9, design="simple", sampled=25_000, replicates=0).records
    joined = records.join(frame.select("person", true="employment"), on="person")
    for name, chances in surveys.ITEM_NONRESPONSE.items():
        counted = joined.group_by(pl.col("true").cast(str)).agg(pl.len(), pl.col(name).is_null().sum().alias("gone"))
        assert counted.height == 3
        chance = np.array([chances[value] for value in counted["true"]])
        assert_binomial(counted["gone"].to_numpy(), counted["len"].to_numpy(), chance)
    assert (records["hours"].is_null() == records["employment"].is_null()).all()
    assert records.drop("income", "employment", "hours").null_count().sum_horizontal().item() == 0


def test_without_nonresponse_everybody_answers_everything(frame: pl.DataFrame):
    survey = draw_survey(frame, seed=1, nonresponse=False, replicates=0)
    assert survey.target["responded"].all() and survey.records.height == survey.target.height
    assert survey.records.null_count().sum_horizontal().item() == 0


# -- final and replicate weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["final_weight", "replicate_1", "replicate_4"])
def test_raked_weights_add_up_to_the_public_totals(survey: Survey, column: str):
    """Up to rounding by half a step for each record; nothing is cut at the limits here."""
    for row in survey.totals.iter_rows(named=True):
        own = {name: row[name] for name in ("region", "age_group", "sex") if row[name] is not None}
        some = survey.records.filter(**own)
        assert abs(some[column].sum() - row["persons"]) <= 0.005 * some.height + 1e-6 * row["persons"]


def test_final_weights_are_cut_at_the_public_limits():
    """A survey so small that raking changes weights more than the limits allow."""
    survey = make_survey(1_600, seed=4, design="two-stage", areas=16, sampled=60, take=2, replicates=0)
    limits = survey.strata.with_columns(pl.col("stratum").cast(survey.records["stratum"].dtype))
    records = survey.records.join(limits, on="stratum")
    cut = (records["final_weight"] == records["largest_final_weight"]) | (
        records["final_weight"] == records["smallest_final_weight"]
    )
    assert cut.any()
    assert records["final_weight"].is_between(records["smallest_final_weight"], records["largest_final_weight"]).all()
    half, four = (Fraction(repr(one)) for one in surveys.FINAL_CUTS)
    for row in survey.strata.iter_rows(named=True):
        for name, least in (("smallest", half), ("largest", four)):
            exact = Fraction(repr(row[f"{name}_weight"])) * least
            assert 0 <= exact - Fraction(repr(row[f"{name}_final_weight"])) < Fraction(1, 100)


@pytest.mark.parametrize("design", ["simple", "stratified", "two-stage"])
def test_replicates_draw_one_unit_less_with_replacement_in_each_stratum(frame: pl.DataFrame, design: str):
    survey = draw_survey(
        frame, seed=3, design=design, sampled=600, nonresponse=False, final_weights=False, replicates=12, decimals=6
    )
    records = survey.records.with_columns(pl.col("stratum").cast(str))
    selected = dict(survey.strata.select("stratum", "selected_psus").iter_rows())
    for number in range(1, 13):
        factor = records[f"replicate_{number:02}"] / records["weight"]
        by_psu = records.select("stratum", "psu", factor=factor).group_by("stratum", "psu")
        psus = by_psu.agg(pl.col("factor").min(), (pl.col("factor").max() - pl.col("factor").min()).alias("spread"))
        assert psus["spread"].max() < 1e-5
        for (stratum,), some in psus.group_by("stratum"):
            n = selected[stratum]
            assert some.height == n
            times = some["factor"].to_numpy() * (n - 1) / n
            np.testing.assert_allclose(times, np.rint(times), atol=1e-4)
            assert round(times.sum()) == n - 1


@pytest.mark.parametrize("design", DESIGNS)
def test_replicates_vary_as_much_as_linearisation_says(frame: pl.DataFrame, design: str):
    """The mean square of 600 replicates is off by 6 standard errors, a third, with probability below 1e-9."""
    survey = draw_survey(
        frame, seed=3, design=design, sampled=1_500, nonresponse=False, final_weights=False, replicates=600
    )
    records = survey.records.with_columns(z=pl.col("weight") * pl.col("income"))
    total = records["z"].sum()
    names = [name for name in records.columns if name.startswith("replicate_")]
    replicates = records.select(pl.col(names) * pl.col("income")).sum().to_numpy()[0]
    if design == "poisson":
        variance = (records["z"] ** 2).sum()
    else:
        psus = records.group_by("stratum", "psu").agg(pl.col("z").sum())
        parts = psus.group_by("stratum").agg(pl.len() * pl.col("z").var(ddof=1))
        variance = parts["len"].sum()
    assert ((replicates - total) ** 2).mean() == pytest.approx(variance, rel=0.35)


# -- public tables and files -----------------------------------------------------------------------------------------


def test_totals_and_truth_agree_with_the_frame(frame: pl.DataFrame):
    survey = draw_survey(frame, replicates=0)
    rows = frame.rows(named=True)
    by_age_and_sex = Counter((row["age_group"], row["sex"]) for row in rows)
    by_region = Counter(row["region"] for row in rows)
    for row in survey.totals.iter_rows(named=True):
        if row["margin"] == "region":
            assert row["persons"] == by_region.pop(row["region"])
        else:
            assert row["persons"] == by_age_and_sex.pop((row["age_group"], row["sex"]))
    assert not by_region and not by_age_and_sex

    assert Counter(survey.truth["by"]) == {"all": 1, "region": 8, "kind": 2, "area": 40, "age_group": 7, "sex": 2}
    for row in survey.truth.iter_rows(named=True):
        own = [one for one in rows if row["by"] == "all" or one[row["by"]] == row["value"]]
        assert row["persons"] == len(own) > 0
        for name in surveys.EMPLOYMENT:
            assert row[name] == sum(one["employment"] == name for one in own)
        for name in ("income", "hours"):
            assert row[name] == sum(one[name] for one in own)


def test_all_values_of_categorical_columns_are_known(survey: Survey):
    for name, values in survey.values.items():
        assert set(survey.records[name].drop_nulls().cast(str)) <= set(values)
    assert survey.values["employment"] == surveys.EMPLOYMENT and len(survey.values["area"]) == 40
    assert survey.values["stratum"] == tuple(survey.strata["stratum"])


def test_files_hold_what_was_made(tmp_path):
    made = make_survey(6_000, seed=2, design="stratified", sampled=500, replicates=3)
    paths = made.write(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(path.name for path in paths.values())
    texts = pl.read_csv(paths["survey"], infer_schema=False)
    assert texts["weight"].str.contains(r"^\d+\.\d{1,2}$").all() and texts["income"].null_count() > 0
    expected = made.records.with_columns(pl.col(name).cast(str) for name in made.values)
    assert pl.read_csv(paths["survey"], schema=expected.schema).equals(expected)
    for name in ("strata", "totals", "truth"):
        table = getattr(made, name)
        assert pl.read_csv(paths[name], schema=table.schema).equals(table)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"persons": 3_999}, "number of persons"),
        ({"persons": 5_000, "areas": 15}, "number of areas"),
        ({"persons": 5_000, "regions": 0}, "number of regions"),
        ({"persons": 5_000, "seed": -1}, "seed"),
        ({"persons": 5_000, "design": "quota"}, "no sampling design 'quota'"),
        ({"persons": 5_000, "sampled": 5_001}, "number of sampled persons"),
        ({"persons": 5_000, "sampled": 0}, "number of sampled persons"),
        ({"persons": 5_000, "take": 0}, "taken from each selected block"),
        ({"persons": 5_000, "replicates": 1_000}, "number of replicate weights"),
        ({"persons": 5_000, "decimals": 7}, "number of decimals"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options: dict[str, object], words: str):
    with pytest.raises(StirredError, match=words):
        make_survey(**options)
