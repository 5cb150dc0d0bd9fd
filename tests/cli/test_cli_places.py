"""``--places`` of ``estimate`` and ``tabulate``: files, tables, Parquet and maps from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import stirred


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A release of seven towns, with a file of districts and a map of them."""
    where = tmp_path_factory.mktemp("places")
    plan = stirred.topdown.preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"])
    towns = [f"0{number}" for number in range(1, 8)]
    places = pl.DataFrame({"county": ["A"] * 4 + ["B"] * 3, "town": towns})
    people = pl.DataFrame({"town": towns * 60, "race": ["a", "b", "a"] * 140, "adult": ["yes", "no"] * 210})
    stirred.release(plan, {"persons": people, "geography": places}, out=where / "release")
    (where / "districts.csv").write_text("town,district,school\n01,10,S\n02,10,S\n05,20,\n05,10,T\n07,20,T\n")
    features = [
        {"type": "Feature", "geometry": None, "properties": {"CODE": code, "name": name}}
        for code, name in (("10", "ten"), ("20", "twenty"), ("30", "thirty"))
    ]
    (where / "map.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return where


def test_estimates_of_a_file_of_places_as_text_csv_parquet_and_json(folder, command, tmp_path):
    asked = ("estimate", folder / "release", "--places", folder / "districts.csv", "--place-column", "district")
    ended = command(*asked, "--by", "adult")
    assert ended.code == 0 and "district" in ended.out and "10" in ended.out
    assert "3 of 7 units of 'town' lie in no place" in ended.out and "1 of 7 units of 'town' lies in more" in ended.out
    assert command(*asked, "--out", tmp_path / "found.csv").code == 0
    told = command(*asked, "--out", tmp_path / "found.parquet")
    assert "lie in no place" in told.err
    csv = pl.read_csv(tmp_path / "found.csv", schema_overrides={"district": pl.String})
    assert csv.columns == ["district", "estimate", "standard_error", "lower", "upper", "interval", "covers"]
    assert (
        pl.read_parquet(tmp_path / "found.parquet")["district"].to_list() == csv["district"].to_list() == ["10", "20"]
    )
    fields = json.loads(command(*asked, "--json").out)
    assert [one["district"] for one in fields["estimates"]] == ["10", "20"] and len(fields["remarks"]) == 3
    share = json.loads(command(*asked, "--share", "district", "--json").out)
    assert share["measure"] == "share of district" and len(share["estimates"]) == 2
    two = json.loads(command(*asked, "--difference", "district=10,20", "--json").out)
    assert two["measure"] == "10 minus 20" and len(two["estimates"]) == 1
    each = json.loads(command(*asked, "--against", "county=A", "--ratio", "places", "--json").out)
    assert each["measure"] == "district divided by A" and len(each["estimates"]) == 2
    one = json.loads(command(*asked, "--place", "district=20", "--place", "town=03", "--json").out)
    assert one["estimates"][0]["place"] == "20 + 03"


def test_estimates_are_joined_to_a_map(folder, command, tmp_path):
    asked = ("estimate", folder / "release", "--places", folder / "districts.csv", "--place-column", "district")
    ended = command(*asked, "--join", folder / "map.geojson", "--key", "CODE", "--out", tmp_path / "made.geojson")
    assert ended.code == 0 and "1 features have no estimate: 30" in ended.err
    made = json.loads((tmp_path / "made.geojson").read_text())["features"]
    values = {one["district"]: one["estimate"] for one in json.loads(command(*asked, "--json").out)["estimates"]}
    assert [one["properties"].get("estimate") for one in made] == [values["10"], values["20"], None]
    assert made[0]["properties"]["name"] == "ten"
    again = command(*asked, "--join", folder / "map.geojson", "--key", "CODE", "--out", tmp_path / "made.geojson")
    assert again.code == 2 and "exists" in again.err
    alone = command(*asked, "--join", folder / "map.geojson")
    assert alone.code == 2 and "--join and --out" in alone.err
    other = command(*asked, "--join", folder / "map.geojson", "--key", "code", "--out", tmp_path / "other.geojson")
    assert other.code == 2 and "3 of 3 features have no property 'code'" in other.err
    assert not (tmp_path / "other.geojson").exists()


def test_tables_by_a_file_of_places(folder, command, tmp_path):
    asked = ("tabulate", folder / "release", "--places", folder / "districts.csv", "--place-column", "school")
    ended = command(*asked)
    rows = pl.read_parquet(folder / "release" / "persons.parquet")
    of = {"S": ["01", "02"], "T": ["05", "07"]}
    expected = [f"{name},{rows.filter(pl.col('town').is_in(towns)).height}" for name, towns in of.items()]
    assert ended.code == 0 and ended.out.split() == ["school,count", *expected]
    assert "in no place of 'school'" in ended.err
    assert command(*asked, "--by", "race,adult", "--out", tmp_path / "table.parquet").code == 0
    table = pl.read_parquet(tmp_path / "table.parquet")
    assert table.columns == ["school", "race", "adult", "count"] and table.height == 8
    assert table["count"].sum() == sum(int(one.split(",")[1]) for one in expected)
    nothing = command("tabulate", folder / "release")
    assert nothing.code == 2 and "--by" in nothing.err
    wrong = command("tabulate", folder / "release", "--places", folder / "districts.csv")
    assert wrong.code == 2 and "has 2 columns beside 'town'" in wrong.err


def test_another_mechanism_says_that_it_has_no_places(command, tmp_path):
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4})
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    stirred.release(plan, rows, out=tmp_path / "swapped")
    ended = command("estimate", tmp_path / "swapped", "--by", "tenure", "--places", tmp_path / "x.csv")
    assert ended.code == 2 and "--places does not apply to the mechanism 'swap'" in ended.err


def test_the_fields_of_json_are_those_that_the_guide_lists(folder, command):
    """Every field that a mechanism prints is in the tables of docs/estimates.md."""
    guide = (Path(__file__).parents[2] / "docs" / "estimates.md").read_text(encoding="utf-8")
    section = guide.split("## The fields of `--json`")[1]
    asked = ("estimate", folder / "release", "--json")
    for more in (("--level", "town"), ("--level", "town", "--share", "adult"), ("--place", "town=01", "--sources"),
                 ("--level", "town", "--nonnegative")):  # fmt: skip
        fields = json.loads(command(*asked, *more).out)
        columns = {"town", "place", "adult"}
        inner = {name for one in fields["estimates"] for name in one} - columns
        inner |= {name for one in fields.get("sources", ()) for name in one}
        assert all(f"`{name}`" in section for name in {*fields, *inner}), {*fields, *inner}
