"""Questions to release folders of a swap: which are answered, from which columns, and which are refused in words."""

from __future__ import annotations

import json
import shutil

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import stirred
from stirred import errors
from stirred.cli.estimating import interval_picture
from stirred.noise import SeededSource
from stirred.reports.figures import draw
from stirred.swap.drawing import draw as draw_swap
from stirred.swap.drawing import release as release_swap
from stirred.swap.estimating.question_counts import mean_shrinkage, tabulate_note
from stirred.swap.estimating.questions import SwappedRelease
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons


@pytest.fixture(scope="module")
def tables():
    households, persons = households_and_persons(600)
    return {"microdata": households, "persons": persons}


def released(folder, tables, **fields):
    plan = {"match": ["region", "size"], "swap": ["county", "tract"], "hold": ["tenure", "type"], "rate": 0.1}
    plan |= {"unit": "household", "id": "household_id", "chosen_from": "public", "allow": ["many-unchangeable"]}
    plan |= {"linked": [{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}]}
    release_swap(SwapPlan(**plan | fields), tables, out=folder)
    return folder


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    return released(tmp_path_factory.mktemp("estimating") / "release", tables)


def counted(frame, by):
    return {row[:-1]: row[-1] for row in frame.group_by(by).len().rows()}


def test_invariant_tables_are_known_and_equal_the_true_counts(folder, tables):
    households = tables["microdata"].with_columns(pl.all().cast(pl.String))
    for by in (["region", "county"], ["tenure", "type"], ["size", "tract"]):
        found = stirred.estimate(folder, by)
        assert set(found.kinds) == {"known"} and not found.standard_errors.any()
        truth = counted(households, by)
        assert {label: value for label, value in zip(found.labels, found.values, strict=True) if value} == truth
        lower, upper = found.interval(0.95)
        np.testing.assert_array_equal(lower, upper)


def test_estimates_add_up_to_the_kept_totals(folder, tables):
    frame = stirred.estimate(folder, ["county", "tenure"]).to_frame()
    kept = counted(tables["microdata"].with_columns(pl.all().cast(pl.String)), ["county"])
    sums = frame.group_by("county").agg(pl.col("estimate").fill_null(np.nan).sum()).rows()
    assert {(county,): round(total, 6) for county, total in sums} == kept
    naive = stirred.tabulate(folder, ["county", "tenure"]).to_pylist()
    stated = {row[:2]: row[2] for row in frame.select("county", "tenure", "naive").rows() if row[2]}
    assert stated == {(str(row["county"]), str(row["tenure"])): row["count"] for row in naive}


def test_shares_add_up_to_one_and_conditions_choose_records(folder):
    shares = stirred.estimate(folder, ["county", "tenure"], share="tenure")
    sums = shares.to_frame().group_by("county").agg(pl.col("estimate").fill_null(np.nan).sum())["estimate"].to_numpy()
    np.testing.assert_allclose(sums, 1)
    every = stirred.estimate(folder, ["county", "tenure", "type"])
    value = every.labels[0][2]
    some = stirred.estimate(folder, ["county", "tenure"], where={"type": [value]})
    inside = {label[:2]: number for label, number in zip(every.labels, every.values, strict=True) if label[2] == value}
    for label, number in zip(some.labels, some.values, strict=True):
        assert number == pytest.approx(inside[label])


def test_persons_of_households_are_estimated_as_scores(folder, tables):
    found = stirred.estimate(folder, ["county", "sex"], table="persons")
    assert set(found.kinds) <= {"score", "known", "bounded", "combined"}
    total = sum(found.values)
    assert total == pytest.approx(len(tables["persons"]))
    by_county = stirred.estimate(folder, ["county"], table="persons")
    assert set(by_county.kinds) == {"known"}  # household size is matched, so persons by county are kept
    both = stirred.estimate(folder, ["county", "tenure", "sex"], table="persons")
    merged = both.to_frame().group_by("county", "sex").agg(pl.col("estimate").fill_null(np.nan).sum())
    sums = {row[:2]: row[2] for row in merged.rows()}
    for label, value in zip(found.labels, found.values, strict=True):
        assert sums[label] == pytest.approx(value)


def test_level_and_place_are_columns_and_values_of_the_swapped_geography(folder):
    county = stirred.estimate(folder, ["county"]).labels[0][0]
    found = stirred.estimate(folder, ["tenure"], level="county")
    assert found.by == ("county", "tenure")
    place = stirred.estimate(folder, ["tenure"], places=[("county", county)])
    here = [value for label, value in zip(found.labels, found.values, strict=True) if label[0] == county]
    np.testing.assert_allclose(place.values, here)


def test_comparisons_are_differences_ratios_and_odds_ratios_of_the_counts(folder):
    every = stirred.estimate(folder, ["county", "tenure"])
    value = dict(zip(every.labels, every.values, strict=True))
    (a, b), (x, y) = sorted({label[0] for label in value})[:2], sorted({label[1] for label in value})[:2]
    apart = stirred.estimate(folder, ["tenure"], difference=("county", a, b))
    assert apart.by == ("tenure",)
    for label, number in zip(apart.labels, apart.values, strict=True):
        assert number == pytest.approx(value[(a, *label)] - value[(b, *label)])
    ratio = stirred.estimate(folder, ["tenure"], ratio=("county", a, b))
    assert ratio.values[0] == pytest.approx(value[a, x] / value[b, x])
    odds = stirred.estimate(folder, odds_ratio=(("county", a, b), ("tenure", x, y)))
    assert odds.values[0] == pytest.approx(value[a, x] * value[b, y] / (value[a, y] * value[b, x]))
    lower, upper = odds.interval(0.95)
    assert 0 <= lower[0] < odds.values[0] < upper[0]
    shares = stirred.estimate(folder, ["tenure"], share="tenure", difference=("county", a, b))
    total = {county: sum(number for label, number in value.items() if label[0] == county) for county in (a, b)}
    assert shares.values[0] == pytest.approx(value[a, x] / total[a] - value[b, x] / total[b])


def test_merged_strata_are_the_strata_of_the_estimate(tables, tmp_path):
    coarsen = {"column": "size", "merge": [["5", "6"], ["4", "5", "6"]], "at_least": 40}
    folder = released(tmp_path / "coarse", tables, coarsen=coarsen)
    exact = stirred.estimate(folder, ["size", "tenure"])
    assert set(exact.kinds) == {"known"}  # the merged column is held within strata
    found = stirred.estimate(folder, ["size", "county"])
    assert "score" in found.kinds or "bounded" in found.kinds
    by = counted(tables["microdata"].with_columns(pl.all().cast(pl.String)), ["region", "county"])
    kept = stirred.estimate(folder, ["region", "county"])
    assert {label: value for label, value in zip(kept.labels, kept.values, strict=True) if value} == by


def test_rates_by_stratum_have_each_their_own_law(tables, tmp_path):
    rules = [{"where": {"size": ["1", "2"]}, "rate": 0.3}, {"otherwise": True, "rate": 0.05}]
    folder = released(tmp_path / "by-stratum", tables, rate=None, rates=rules)
    opened = SwappedRelease.open(folder)
    found = opened.estimate(["county", "tenure"])
    assert len(found) and np.isfinite(found.values).all()


def test_rates_that_differ_within_strata_are_undone_by_class(tables, tmp_path):
    rules = [{"unique_on": ["tenure", "type"], "at_most": 60, "rate": 0.3}, {"otherwise": True, "rate": 0.05}]
    folder = released(tmp_path / "by-rule", tables, rate=None, rates=rules)
    found = stirred.estimate(folder, ["county", "tenure"])
    assert "normal" in found.kinds
    kept = counted(tables["microdata"].with_columns(pl.all().cast(pl.String)), ["tenure"])
    sums = found.to_frame().group_by("tenure").agg(pl.col("estimate").fill_null(np.nan).sum()).rows()
    assert {(tenure,): round(total, 6) for tenure, total in sums} == kept
    shares = stirred.estimate(folder, ["county", "tenure"], share="tenure")
    assert np.nansum(shares.values) == pytest.approx(len({label[0] for label in found.labels}))
    a, b = sorted({label[0] for label in found.labels})[:2]
    for question in ({"difference": ("county", a, b)}, {"table": "persons"}):
        drawn = stirred.estimate(folder, ["county", "tenure"], **question)
        assert (
            "simulated" in drawn.kinds
            and drawn.to_json() == stirred.estimate(folder, ["county", "tenure"], **question).to_json()
        )


def test_questions_that_cannot_be_answered_say_why(folder, tables, tmp_path):
    with pytest.raises(errors.StirredError, match="shoe"):
        stirred.estimate(folder, ["county", "shoe"])
    with pytest.raises(errors.StirredError, match="value of 'county'"):
        stirred.estimate(folder, ["tenure"], where={"county": ["nowhere"]})
    with pytest.raises(errors.StirredError, match="is 1 everywhere"):
        stirred.estimate(folder, ["county"], where={"tenure": ["rented"]}, share="tenure")
    with pytest.raises(errors.StirredError, match="one of --difference"):
        stirred.estimate(folder, difference=("county", "a", "b"), ratio=("county", "a", "b"))
    pairs = pl.DataFrame({"size": [1, 1, 2, 2], "county": list("abab"), "tenure": list("oror")})
    plan = SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.5, chosen_from="public")
    release_swap(plan, pairs, out=tmp_path / "pairs")
    with pytest.raises(errors.StirredError) as refused:
        stirred.estimate(tmp_path / "pairs", ["county", "tenure"])
    assert refused.value.kind == "swap-mixes-too-much"


def test_a_folder_without_a_specification_is_not_asked(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "part")
    (tmp_path / "part" / "specification.json").unlink()
    with pytest.raises(errors.StirredError, match=r"no specification\.json\. 'stirred verify") as refused:
        stirred.estimate(tmp_path / "part", ["county", "tenure"])
    assert refused.value.kind == "not-a-release"


def test_after_several_rounds_what_the_first_swapped_alone_is_estimated_as_after_one(tables, tmp_path):
    """The later round exchanges tracts within counties, so that the table by county is that of one round."""
    fields = {"match": ["region", "size"], "swap": ["county", "tract"], "hold": "rest", "id": "household_id"}
    rounds = [{"swap": ["tract"], "match_also": ["county"], "rate": "1/4"}]
    answers = []
    for later in ([], rounds):
        plan = SwapPlan(rate="1/10", chosen_from="public", unit="household", rounds=later, **fields)
        drawn = draw_swap(plan, tables["microdata"], source=SeededSource(5))
        folder = drawn.write(tmp_path / str(len(later)), for_tests=True)
        answers.append([stirred.estimate(folder, by).to_frame() for by in (["county", "tenure"], ["county", "tract"])])
    for once, twice in zip(*answers, strict=True):
        assert once.equals(twice)
    by_tract = stirred.estimate(folder, ["county", "tract", "tenure"])
    assert "simulated" in by_tract.kinds
    sums = by_tract.to_frame().group_by("county", "tenure").agg(pl.col("estimate").fill_null(np.nan).sum())
    both = sums.join(answers[1][0], on=["county", "tenure"]).filter(pl.all_horizontal(cs.float().is_finite()))
    assert len(both) > 10, "counties none of whose tracts is refused"
    assert both["estimate"].to_numpy() == pytest.approx(both["estimate_right"].to_numpy())
    with pytest.raises(errors.StirredError, match="exchanged in several rounds") as refused:
        stirred.estimate(folder, regress="tenure=rented ~ tract")
    assert refused.value.kind == "estimates-of-rounds"


def test_json_frames_and_pictures(folder):
    found = stirred.estimate(folder, ["county", "tenure"])
    body = json.loads(found.to_json(0.95))
    assert body["measure"] == "count" and len(body["estimates"]) == len(found)
    assert set(body["estimates"][0]) == {
        "county", "tenure", "estimate", "standard_error", "lower", "upper", "interval", "naive",
    }  # fmt: skip
    assert "score" in body["interval_kinds"]
    picture = interval_picture(found, 0.95)
    assert picture.intervals[0].beside == found.naive[0]
    assert draw(picture).to_dict()["description"].startswith("Estimates with 95% intervals")
    assert "<table" in found._repr_html_()


def test_the_command_line_warns_before_a_weakened_table_and_names_the_command(folder, command):
    ended = command("tabulate", folder, "--by", "county,tenure")
    left = mean_shrinkage(SwappedRelease.open(folder).release, SwappedRelease.open(folder).plan)
    assert not ended.code and ended.out.startswith("county,tenure,count")
    assert f"stirred estimate {folder} --by county,tenure" in ended.err and f"about {100 * left:.2g}%" in ended.err
    ended = command("tabulate", folder, "--by", "county,size")
    assert not ended.code and not ended.err


@pytest.mark.parametrize(("rate", "says"), [("0.9", "reversed on average, at about 98%"), ("0.5", "Next to nothing")])
def test_the_note_tells_what_is_left_in_groups_of_two(rate, says, tmp_path):
    rows = pl.DataFrame({"g": [*"aabbccdd"], "county": ["x", "y"] * 4, "tenure": ["o", "r", "r", "o"] * 2})
    plan = SwapPlan(match=["g"], swap=["county"], hold=["tenure"], rate=rate)
    stirred.release(plan, rows, out=tmp_path / "out")
    opened = SwappedRelease.open(tmp_path / "out")
    assert says in (tabulate_note(opened.release, ["county", "tenure"]) or "")


def test_the_command_line_estimates(folder, command, tmp_path):
    ended = command("estimate", folder, "--by", "county,tenure", "--share", "tenure", "--confidence", "0.95")
    assert not ended.code and "share of tenure" in ended.out and "95% interval" in ended.out
    ended = command("estimate", folder, "--by", "county", "--sources")
    assert ended.code and "--sources" in ended.err
    ended = command("estimate", folder, "--by", "tenure", "--json")
    assert not ended.code and json.loads(ended.out)["table"] == "microdata"
    ended = command("estimate", folder, "--difference", "county")
    assert ended.code and "column=one,other" in ended.err
    ended = command("estimate", folder, "--by", "tenure", "--figures", tmp_path / "figures")
    assert not ended.code and (tmp_path / "figures" / "estimates.png").stat().st_size > 1000


def test_readme_tells_analysts_which_tables_are_exact(folder):
    text = " ".join((folder / "README.txt").read_text().split())
    assert "Row order and ids are new and mean nothing." in text
    assert "For analysts: which tables are right" in text and "stirred estimate FOLDER --by county,tenure" in text
    assert all(verdict.holds for verdict in stirred.verify(folder))


def test_no_table_is_called_weakened_that_the_swap_cannot_change(command, tmp_path):
    """Rooms are held and follow from the household size, which is matched: by county and rooms nothing changes, as
    check and estimate say."""
    rows = pl.DataFrame({"county": [*"abcabcabcd"] * 12, "size": [1, 2, 3, 3] * 30, "tenure": ["o", "r", "o"] * 40})
    rows = rows.with_columns(rooms=pl.when(pl.col("size") == 1).then(pl.lit("few")).otherwise(pl.lit("many")))
    for name, rate in (("one", {"rate": 0.2}), ("rules", {"rates": [{"where": {"tenure": ["r"]}, "rate": 0.3},
                                                                    {"otherwise": True, "rate": 0.05}]})):  # fmt: skip
        plan = SwapPlan(match=["size"], swap=["county"], hold=["tenure", "rooms"], **rate)
        folder = tmp_path / name
        release_swap(plan, rows, out=folder)
        exact = command("tabulate", folder, "--by", "county,rooms")
        assert exact.code == 0 and not exact.err
        assert set(stirred.estimate(folder, ["county", "rooms"]).kinds) == {"known"}
        told = pl.from_arrow(stirred.tabulate(folder, ["county", "rooms"])).sort("county", "rooms")
        assert (
            told["count"].to_list() == rows.group_by("county", "rooms").len().sort("county", "rooms")["len"].to_list()
        )
        weakened = command("tabulate", folder, "--by", "county,rooms,tenure")
        assert "Note: the swap weakened how 'county'" in " ".join(weakened.err.split())


def test_numbers_of_linked_rows_are_exact_where_records_of_a_group_have_as_many(folder, tables, command, tmp_path):
    """Household size is matched and is the number of persons; without it in the match the numbers by county change."""
    assert not command("tabulate", folder, "--by", "county", "--table", "persons").err
    other = released(tmp_path / "loose", tables, match=["region"], hold=["size", "tenure", "type"])
    ended = command("tabulate", other, "--by", "county", "--table", "persons")
    assert "which do not all have as many" in " ".join(ended.err.split())
