"""The example of a small country: five levels, three tables, recodes over several attributes and overlapping ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stirred.topdown.checking.plan_check import check
from stirred.topdown.drawing import release
from stirred.topdown.estimating.questions import MeasuredRelease
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.verifying import tabulate, verify

EXAMPLE = Path(__file__).parents[2] / "examples" / "topdown_small_country"


@pytest.fixture(scope="module")
def country(tmp_path_factory):
    folder = tmp_path_factory.mktemp("country")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "make.py"), str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("64 areas, ")
    plan = TopDownPlan.from_toml(folder / "plan.toml")
    release(plan, out=folder / "released")
    return folder, plan


def test_the_country_is_checked_released_and_verified(country):
    folder, plan = country
    assert len(plan.spine.levels) == 5 and len(plan.tables) == 3
    text = str(check(plan))
    assert "speaks" in text and "No stops" in text
    assert all(verdict.holds for verdict in verify(folder / "released"))


def test_counts_by_language_are_those_of_the_released_rows(country):
    folder, _ = country
    rows = pl.read_csv(folder / "released" / "persons.csv", infer_schema=False)
    expected = {word: len(rows.filter(pl.col("language").str.contains(f"{word}|all"))) for word in
                ("creole", "french", "english")}  # fmt: skip
    found = tabulate(folder / "released", ["speaks"]).to_pylist()
    assert {row["speaks"]: list(row.values())[-1] for row in found} == expected
    table = pl.read_csv(folder / "released" / "tables" / "persons-parish-speaks.csv", infer_schema=False)
    assert table.columns[:2] == ["parish", "speaks"]
    assert sum(int(one) for one in table[:, -1]) == sum(expected.values())


def test_estimates_by_such_recodes_cover_the_truth(country):
    """At 1 - 1e-9 in each of 2 x 3 intervals; noise is drawn anew in every run of the tests."""
    folder, _ = country
    opened = MeasuredRelease.open(folder / "released")
    truth = pl.read_csv(folder / "persons.csv", infer_schema=False)
    found = opened.estimate("persons", ("speaks",), level="island")
    half = found.half_widths(1 - 1e-9)
    for row, island in enumerate(("1", "2")):
        here = truth.filter(pl.col("area").str.starts_with(f"{island}."))
        for column, word in enumerate(("creole", "french", "english")):
            true = len(here.filter(pl.col("language").str.contains(f"{word}|all")))
            assert abs(found.values[row, column] - true) <= half[row, column] + 1
