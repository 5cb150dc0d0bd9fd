"""What verify finds out about linked rows, and what it will not take for a release."""

import json
import shutil

import polars as pl
import pytest

from stirred import swap
from stirred.errors import OutputError, PlanError, StoppedByCheck
from stirred.releases.folder.manifest import write_manifest
from stirred.tables.synthetic import households_and_persons

PLAN = swap.SwapPlan(
    unit="household",
    id="household_id",
    match=["region", "size"],
    swap=["county", "tract"],
    hold="rest",
    rate="1/5",
    chosen_from="public",
    publish=[["county", "tenure"]],
    saturated=True,
    linked=[{"name": "persons", "link": "household_id", "id": "person_id", "hold": "rest"}],
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    households, persons = households_and_persons(400)
    drawn = swap.draw(PLAN, {"microdata": households, "persons": persons})
    return drawn.write(tmp_path_factory.mktemp("made") / "release")


@pytest.fixture
def release(written, tmp_path):
    return shutil.copytree(written, tmp_path / "release")


def failing(release):
    return [finding.words for finding in swap.verify(release) if not finding.holds]


def rewrite_persons(release, change):
    path = release / "persons.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    write_manifest(release)


def test_a_release_holds(release):
    assert failing(release) == []


def test_persons_moved_to_another_household_of_the_same_kind_are_noticed(release):
    """Counts by match and held person variables stay as they are; only who lives with whom changes."""
    households = pl.read_parquet(release / "microdata.parquet")
    alike = households.filter((pl.col("size") == 3) & (pl.col("region") == "01"))["household_id"].to_list()
    heads = pl.read_parquet(release / "persons.parquet").filter(pl.col("relation") == "head").sort("age")
    heads = heads.filter(pl.col("household_id").is_in(alike))
    alike = [heads["household_id"][0], heads["household_id"][-1]]  # the youngest and the oldest

    def exchange_heads(persons):
        heads = (pl.col("relation") == "head") & pl.col("household_id").is_in(alike)
        other = sum(alike) - pl.col("household_id")
        return persons.with_columns(pl.when(heads).then(other).otherwise(pl.col("household_id")).alias("household_id"))

    rewrite_persons(release, exchange_heads)
    (found,) = [words for words in failing(release) if words.startswith("recomputed and equal")]
    assert "each with all of its rows in 'persons'" in found


def test_a_copy_that_is_not_the_records_is_noticed(release):
    rewrite_persons(release, lambda persons: persons.with_columns(pl.lit("001").alias("county")))
    assert "persons: 'county' agrees with the record" in failing(release)


def test_a_saturated_table_or_a_table_of_another_file_is_noticed(release):
    table = release / "tables" / "county-by-tenure.csv"
    lines = table.read_text().splitlines()
    lines[1] = lines[1].rsplit(",", 1)[0] + ",999"
    table.write_text("\n".join(lines) + "\n")
    saturated = pl.read_parquet(release / "saturated.parquet").with_columns(pl.col("count") + 1)
    saturated.write_parquet(release / "saturated.parquet")
    write_manifest(release)
    assert len([words for words in failing(release) if words.endswith("has the counts of the microdata")]) == 2


def test_a_folder_that_a_killed_run_left_is_no_release_even_if_it_is_complete(release, tmp_path):
    left = shutil.copytree(release, tmp_path / ".release.stirred-unfinished-x")
    with pytest.raises(OutputError, match="did not finish"):
        swap.verify(left)
    (release / ".lock").touch()
    with pytest.raises(OutputError, match="did not finish"):
        swap.verify(release)


def test_a_dictionary_that_points_outside_the_folder_is_not_followed(release):
    dictionary = json.loads((release / "data_dictionary.json").read_text())
    dictionary["tables"][0]["file"] = "../microdata.parquet"
    (release / "data_dictionary.json").write_text(json.dumps(dictionary))
    write_manifest(release)
    assert any("names a file that is not its own" in words for words in failing(release))


def test_tables_by_a_match_variable_that_persons_also_hold(tmp_path):
    households, persons = households_and_persons(200)
    persons = persons.join(households.select("household_id", "region"), on="household_id")
    out = swap.draw(PLAN, {"microdata": households, "persons": persons}).write(tmp_path / "out")
    counted = swap.tabulate(out, ["region", "tenure"], "persons").to_pydict()
    assert sum(counted["count"]) == persons.height
    assert failing(out) == []


def test_a_file_whose_strata_leave_nothing_to_swap_is_refused_and_cannot_be_allowed():
    households = households_and_persons(30)[0].with_columns(pl.int_range(30).cast(pl.String).alias("cell"))
    plan = swap.SwapPlan(match=["cell"], swap=["county", "tract"], hold="rest", id="household_id", rate=0.5)
    with pytest.raises(StoppedByCheck, match="the release would be the confidential file"):
        swap.draw(plan, households)
    with pytest.raises(PlanError, match="nothing-can-change"):
        swap.SwapPlan(match=["cell"], swap=["county"], hold="rest", rate=0.5, allow=["nothing-can-change"])


def test_nothing_that_holds_data_shows_it_when_printed():
    households, persons = households_and_persons(200)
    drawn = swap.draw(PLAN, {"microdata": households, "persons": persons})
    for thing in (drawn, drawn.dataset, drawn.table, drawn.table["tenure"], drawn.rows, drawn.margins, drawn.linked[0]):
        assert "owned" not in repr(thing) and "array" not in repr(thing)
