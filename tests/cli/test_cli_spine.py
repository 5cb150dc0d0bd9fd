"""``stirred spine`` and target areas from the command line: lists as they come, what is written, what is told."""

from __future__ import annotations

import json

import polars as pl
import pytest

from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown import TopDownPlan, preset

LEVELS = ["state", "county", "tract", "block_group", "block"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small census whose blocks lie in districts, and some in places; codes have zeros in front."""
    found = tmp_path_factory.mktemp("spines")
    made = Population(9_000, seed=3).tables()
    at = pl.int_range(pl.len())
    places = pl.when(at % 7 > 1).then((at // 23).cast(pl.String).str.zfill(4))
    blocks = made.blocks.with_columns(district=(at // 41).cast(pl.String).str.zfill(3), place=places)
    blocks.write_csv(found / "blocks.csv")
    blocks.write_parquet(found / "blocks.parquet")
    blocks.with_columns(pl.col("place").fill_null("NA")).write_csv(found / "coded.csv", separator=";")
    blocks.select("block", "district").write_csv(found / "codes.csv")
    made.persons.write_parquet(found / "persons.parquet")
    return found


def test_a_spine_is_proposed_written_and_used_by_a_plan(folder, tmp_path, command):
    out = tmp_path / "geography.csv"
    ended = command("spine", "--blocks", folder / "blocks.csv", "--targets", "place,district", "--out", out)
    assert ended.code == 0 and not ended.err
    for words in ("Administrative spine", "Proposed spine", "Units that areas take", f'input = {{path = "{out}"}}'):
        assert words in ended.out
    written = pl.read_csv(out, infer_schema=False)
    blocks = pl.read_csv(folder / "blocks.csv", infer_schema=False)
    new = ["state", "county", "area", "tract_part", "block_group_part", "block"]
    assert written.columns == [*new, "tract", "block_group", "place", "district"]
    same = written.select(*blocks.columns).sort("block")
    assert same.equals(blocks.sort("block"))  # with the zeros in front, and nulls as they were
    assert written["block"].str.len_chars().unique().to_list() == [15]

    plan = preset("teaching", DOMAINS, chosen_from="public")
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    fields["spine"]["levels"] = new
    fields["spine"]["absent"] = []
    fields["tables"][0]["level_shares"] = dict.fromkeys(new, "1/6")
    files = {"geography": str(out), "persons": str(folder / "persons.parquet")}
    wanted = [{"column": "place", "name": "towns"}, {"column": "tract"}]
    made = TopDownPlan(**fields, targets=wanted).reading(files)
    (tmp_path / "plan.toml").write_text(made.to_toml(), encoding="utf-8")
    checked = command("check", tmp_path / "plan.toml", "--json")
    found = {(one["target"], one["query"]): one for one in json.loads(checked.out)["expected_errors_of_targets"]}
    assert found["towns", "total"]["areas"] == blocks["place"].n_unique() - 1
    assert found["towns", "total"]["off_median"] > 0 and ("tract", "race*adult") in found
    released = command("release", tmp_path / "plan.toml", "--out", tmp_path / "release")
    assert released.code == 0
    town = written.filter(pl.col("place") == "0003")["block"].to_list()
    asked = [word for block in town for word in ("--place", f"block={block}")]
    estimate = command("estimate", tmp_path / "release", *asked)
    assert estimate.code == 0 and "of the geography, added or subtracted and as few as possible" in estimate.said
    as_json = json.loads(command("estimate", tmp_path / "release", *asked, "--json").out)
    assert as_json["places_made_of"][0]["units"] < len(town) and "area" in as_json["places_made_of"][0]["words"]


def test_the_report_is_json_too_and_says_the_same_for_every_format(folder, command):
    found = []
    for name, more in (("blocks.csv", ()), ("blocks.parquet", ()), ("coded.csv", ("--null", "NA"))):
        ended = command("spine", "--blocks", folder / name, "--targets", "place", *more, "--json")
        found.append(json.loads(ended.out))
    assert found[0] == found[1] == found[2]
    assert found[0]["stirred_spine"] == 1 and found[0]["inside"] == "county" and found[0]["file"] is None
    place = next(one for one in found[0]["targets"] if one["target"] == "place")
    assert place["blocks_outside"] > 0 and place["after"]["mean"] < place["before"]["mean"]
    assert place["before"]["on_spine"] <= place["areas"]


def test_prefixes_of_codes_can_be_levels(folder, command):
    ended = command("spine", "--blocks", folder / "codes.csv", "--targets", "district", "--levels",
                    "state=2,county=5,tract=11,block", "--json")  # fmt: skip
    found = json.loads(ended.out)
    assert [one["level"] for one in found["levels_before"]] == ["state", "county", "tract", "block"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--targets"),
        (["--targets", "moon"], "no column 'moon'"),
        (["--targets", "place", "--levels", "county,moon"], "no column 'moon'"),
        (["--targets", "place", "--levels", "state=two,block"], "must be a column, or be written as state=2"),
        (["--targets", "place", "--levels", "state=2"], "must be all levels but the last"),
        (["--targets", "place", "--inside", "block"], "must be one of"),
        (["--targets", "place", "--levels", "tract,county,block"], "lies in two units"),
        (["--targets", "place", "--out", "geography.xlsx"], "must end in .csv, .parquet or .arrow"),
    ],
)
def test_what_cannot_be_done_is_said(folder, command, options, words):
    ended = command("spine", "--blocks", folder / "blocks.csv", *options)
    assert ended.code == 2 and words in ended.said


def test_lists_with_other_faults_are_errors(folder, tmp_path, command):
    blocks = pl.read_csv(folder / "blocks.csv", infer_schema=False)
    pl.concat([blocks, blocks.head(2).with_columns(place=pl.lit("9"))]).write_csv(tmp_path / "twice.csv")
    ended = command("spine", "--blocks", tmp_path / "twice.csv", "--targets", "place")
    assert ended.code == 2 and f"2 block codes more than once; the first is {blocks['block'][0]}" in ended.said
    blocks.with_columns(tract=pl.when(pl.int_range(pl.len()) > 3).then("tract")).write_csv(tmp_path / "null.csv")
    ended = command("spine", "--blocks", tmp_path / "null.csv", "--targets", "place")
    assert ended.code == 2 and "'tract' has nulls in 4 rows" in ended.said
    blocks.drop("block").write_csv(tmp_path / "none.csv")
    ended = command("spine", "--blocks", tmp_path / "none.csv", "--targets", "place")
    assert ended.code == 2 and "--levels county,block" in ended.said
    ended = command("spine", "--targets", "place")
    assert ended.code == 2 and "--blocks FILE" in ended.said
    ended = command("spine", "--blocks", folder / "blocks.csv", "--targets", "place", "--out", tmp_path / "null.csv")
    assert ended.code == 2 and "exists already" in ended.said
