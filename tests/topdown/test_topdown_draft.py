"""Drafts of TopDown plans: levels from codes, values from a dictionary, shares of a preset, and what is asked."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from census import refused

import stirred
from stirred.topdown.data.counting import count_tables, read_spine
from stirred.topdown.plan.draft import draft_plan, read_domains, read_labels
from stirred.topdown.plan.fields import TopDownPlan

CODES = ["150010201001000", "150010201001001", "150010201002000", "150030001011000"]
DICTIONARY = {
    "race": {"description": "race", "values": {"w": "white", "b": "black"}},
    "adult": {"values": {"no": "", "yes": ""}},
    "AGEP": {"values": {"N": "none", "min": 0, "max": "3"}},
    "PINCP": {"values": {"min": 0, "max": 1_000_000}},
    "INDP": {"details": "many codes"},
}


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "codes.csv").write_text("GEOID\n" + "\n".join(CODES) + "\n")
    rows = [f"{code},{race},{adult},5" for code in CODES for race in "wb" for adult in ("no", "yes")]
    (tmp_path / "people.csv").write_text("\n".join(["GEOID,race,adult,pop", *rows]) + "\n")
    (tmp_path / "dictionary.json").write_text(json.dumps(DICTIONARY))
    return tmp_path


def draft(folder: Path, **more) -> str:
    return draft_plan(
        folder / "people.csv", folder, geography=folder / "codes.csv", dictionary=folder / "dictionary.json", **more
    )


def read(folder: Path, text: str) -> TopDownPlan:
    (folder / "plan.toml").write_text(text)
    return TopDownPlan.from_toml(folder / "plan.toml")


# -- the question --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset_name", [None, "teaching"])
def test_a_column_that_looks_like_counts_is_asked_about(folder, preset_name):
    text = draft(folder, preset_name=preset_name)
    assert "is 'pop' the number of records that a row stands for?" in text
    with refused("topdown-plan") as found:
        read(folder, text)
    assert "whether its column 'pop' is a number of records" in str(found.value)
    answered = read(folder, text.replace('"? pop"', '"pop"'))
    table = answered.tables[0]
    assert table.count == "pop" and [one.name for one in table.attributes] == ["race", "adult"]
    assert count_tables(answered).leaves[table.name].counts.sum() == 5 * 16
    rows = read(folder, "\n".join(line for line in text.splitlines() if not line.startswith("count =")))
    assert count_tables(rows).leaves[table.name].counts.sum() == 16


@pytest.mark.parametrize("name", ["n", "Count", "POPULATION", "PWGTP", "person_count", "total_units", "n_persons"])
def test_names_that_may_be_counts(folder, name):
    (folder / "people.csv").write_text(f"GEOID,race,{name}\n")
    assert f'count = "? {name}"' in draft(folder)


@pytest.mark.parametrize("name", ["nation", "country", "popular", "sex", "tenure", "county_of_birth"])
def test_names_that_are_not_counts_are_attributes(folder, name):
    (folder / "people.csv").write_text(f"GEOID,race,{name}\n")
    assert "count =" not in draft(folder) and f'name = "{name}"' in draft(folder)


def test_numbers_that_the_dictionary_does_not_list_are_asked_about(folder):
    frame = pl.DataFrame({"GEOID": CODES, "race": ["w"] * 4, "x": [3, 1, 4, 1], "adult": [0, 1, 0, 1]})
    frame.write_parquet(folder / "people.parquet")
    text = draft_plan(
        folder / "people.parquet", folder, geography=folder / "codes.csv", dictionary=folder / "dictionary.json"
    )
    assert 'count = "? x"' in text and 'name = "adult"' in text
    assert "count =" not in draft_plan(folder / "people.parquet", folder, geography=folder / "codes.csv")


def test_a_declared_count_is_not_asked_about(folder):
    plan = read(folder, draft(folder, count="pop"))
    assert plan.tables[0].count == "pop"
    with refused("missing-column"):
        draft(folder, count="people")


# -- levels --------------------------------------------------------------------------------------------------


def test_levels_come_from_prefixes_of_codes(folder):
    plan = read(folder, draft(folder, count="pop"))
    assert plan.levels == ("state", "county", "tract", "block_group", "block")
    assert plan.tables[0].place == "GEOID"
    spine = read_spine(plan)
    names = [level.to_pylist() for level in spine.names]
    assert names == [["15"], ["15001", "15003"], ["15001020100", "15003000101"],
                     ["150010201001", "150010201002", "150030001011"], CODES]  # fmt: skip
    assert spine.first_child[1].tolist() == [0, 1, 2]


def test_prefixes_of_any_codes_can_be_said(folder):
    (folder / "codes.csv").write_text("commune\nA1x\nA2y\nB1z\n")
    (folder / "people.csv").write_text("commune,race\nA1x,w\nB1z,b\n")
    with refused("topdown-plan") as found:
        draft(folder)
    assert "--prefixes" in str(found.value)
    plan = read(folder, draft(folder, prefixes="region=1, district=2, commune"))
    assert [level.to_pylist() for level in read_spine(plan).names] == [
        ["A", "B"],
        ["A1", "A2", "B1"],
        ["A1x", "A2y", "B1z"],
    ]
    with refused("topdown-plan"):
        draft(folder, prefixes="region,commune")
    (folder / "codes.csv").write_text("commune\nA1x\nA2\nB1z\n")
    with refused("topdown-geography") as short:
        read_spine(plan)
    assert "The code A2 " in str(short.value) and "'district'" in str(short.value)


def test_prefixes_must_be_of_the_levels_in_order(folder):
    text = draft(folder, count="pop")
    with refused("topdown-plan"):
        read(folder, text.replace("county = 5", "county = 12"))
    with refused("topdown-plan"):
        read(folder, text.replace("state = 2, ", ""))


def test_where_the_list_is_stands_in_no_release_and_the_release_verifies(folder):
    plan = read(folder, draft(folder, count="pop", preset_name="teaching"))
    assert "prefixes" not in json.dumps(plan.published())
    stirred.release(plan, out=folder / "out")
    assert all(verdict.holds for verdict in stirred.verify(folder / "out"))
    assert pl.read_parquet(folder / "out" / "measurements" / "geography.parquet").columns == list(plan.spine.levels)


# -- values --------------------------------------------------------------------------------------------------


def test_values_come_from_the_dictionary(folder):
    found = read_domains(folder / "dictionary.json")
    assert found["race"] == ("w", "b") and found["AGEP"] == ("N", "0", "1", "2", "3")
    assert found["PINCP"] == found["INDP"] == ()
    (folder / "dictionary.csv").write_text('name,value,label\nrace,w,white\nrace,b,"black, or"\nsex,f,\nrace,w,twice\n')
    assert read_domains(folder / "dictionary.csv") == {"race": ("w", "b"), "sex": ("f",)}


def test_labels_come_from_the_dictionary_into_the_plan(folder):
    fields = json.loads((folder / "dictionary.json").read_text())
    fields["race"]["description"] = "Race as people\nsay it, " + "at length " * 20
    (folder / "dictionary.json").write_text(json.dumps(fields))
    for preset_name in (None, "teaching"):
        plan = read(folder, draft(folder, count="pop", preset_name=preset_name))
        labels = {one.name: one.label for one in plan.tables[0].attributes}
        assert labels.pop("race").startswith("Race as people say it, at length") and set(labels.values()) == {None}
        assert 20 < len(plan.allocation().label("race")) <= 61
    (folder / "d.csv").write_text("name,value,label,description\nrace,w,white,race of the person\nrace,b,,\nsex,f,,\n")
    assert read_labels(folder / "d.csv") == {"race": "race of the person"}


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", "[1]"), ("b.json", "{"), ("c.csv", "a,b\n1,2\n"), ("d.csv", ""), ("none.csv", None)],
)
def test_what_is_no_dictionary_is_refused(folder, name, content):
    if content is not None:
        (folder / name).write_text(content)
    with refused("topdown-dictionary"):
        read_domains(folder / name)


def test_a_preset_gives_its_shares_and_asks_for_what_it_needs(folder):
    plan = read(folder, draft(folder, count="pop", preset_name="teaching"))
    assert len(plan.tables[0].queries) == 4
    assert set(plan.tables[0].level_shares.values()) == {Fraction(1, 6)}
    with refused("topdown-plan") as needs:
        draft(folder, preset_name="pl94-2020")
    assert "votingage" in str(needs.value) and "--dictionary FILE" in str(needs.value)
    assert "domains" not in str(needs.value)
    (folder / "codes.csv").write_text("commune\nA1x\n")
    (folder / "people.csv").write_text("commune,race,adult\n")
    with refused("topdown-plan") as levels:
        draft(folder, preset_name="pl94-2020", prefixes="region=1,commune")
    assert "five levels" in str(levels.value)
