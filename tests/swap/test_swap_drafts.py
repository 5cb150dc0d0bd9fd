"""Drafts of swapping plans: roles by what columns are called, with reasons, and every choice that somebody signs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from stirred.swap.checking.plan_check import check
from stirred.swap.plan.draft import draft_plan
from stirred.swap.plan.fields import SwapPlan

HEADER = "household_id,serial,state,county,size,tenure,income,hhwt,GPS_lat,lon,owner_name,weight_kg,award"


def written(
    folder: Path, cells: str = "{n},{n},MA,c{c},{s},{t},{n}.5,{n},42.{n},71.{n},x{n},{n},no", rows: int = 12
) -> Path:
    folder.mkdir(exist_ok=True)
    values = [cells.format(n=n, c=n % 3, s=n % 2, t="own" if n % 4 < 2 else "rent") for n in range(rows)]
    (folder / "households.csv").write_text("\n".join([HEADER, *values]) + "\n")
    return folder / "households.csv"


@pytest.fixture
def text(tmp_path) -> str:
    return draft_plan(written(tmp_path))


def test_ids_weights_coordinates_and_names_are_dropped_with_the_reason(text):
    plan = tomllib.loads(text)
    assert plan["id"] == "household_id"
    assert plan["drop"] == ["hhwt", "GPS_lat", "lon", "owner_name", "serial"]
    assert plan["match"] == ["state", "size"] and plan["swap"] == ["county"]
    assert plan["hold"] == ["tenure", "income", "weight_kg", "award"]
    reasons = {line.split('"')[1]: line.partition("#")[2] for line in text.splitlines() if line.startswith('    "')}
    for name, words in {
        "hhwt": "weight",
        "lon": "coordinates",
        "owner_name": "names a person",
        "serial": "an id",
    }.items():
        assert words in reasons[name]


def test_a_draft_has_all_that_somebody_decides(text):
    plan = tomllib.loads(text)
    assert plan["dataset"] == "households" and plan["unit"] == "household"
    limits = {name: plan[name] for name in plan if name.startswith("most_")}
    assert limits == {"most_unchangeable": 0.25, "most_told": 0.5, "most_recovered": 0.1, "most_alone": 0.05}
    assert set(limits) == {name for name in SwapPlan.model_fields if name.startswith("most_")}
    assert "5 in 100" in text


def test_a_draft_is_a_plan_that_check_reads(tmp_path, text):
    (tmp_path / "plan.toml").write_text(text)
    plan = SwapPlan.from_toml(tmp_path / "plan.toml")
    assert check(plan).specification.domain.name == "households"
    (tmp_path / "again.toml").write_text(plan.to_toml())
    assert SwapPlan.from_toml(tmp_path / "again.toml") == plan


def test_without_look_no_cell_decides(tmp_path):
    first, second = written(tmp_path / "a"), written(tmp_path / "b", "{n},?,?,?,?,?,?,?,?,?,?,?,?", 3)
    assert draft_plan(first).replace(str(first), str(second)) == draft_plan(second)


def test_types_that_were_looked_at_stand_beside_held_columns(tmp_path):
    text = draft_plan(written(tmp_path), look_at_cells=True)
    line = next(line for line in text.splitlines() if line.startswith('    "income"'))
    assert "numbers with a point" in line
    assert "numbers with a point" not in draft_plan(tmp_path / "households.csv")


def test_names_with_quotes_and_spaces_stay_what_they_are(tmp_path):
    names = ["the county", 'say "x"', "a\\b", *(f"column number {n}" for n in range(40))]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    (tmp_path / "odd.csv").write_text(header + "\n" + ",".join("1" for _ in names) + "\n")
    plan = tomllib.loads(draft_plan(tmp_path / "odd.csv"))
    assert plan["swap"] == names[:1] and plan["hold"] == names[1:]
