"""A real survey file, read where it lies; the same path is covered by a small file of our own.

The folder is named by STIRRED_DATA and defaults to ../shared/data beside the repository.
"""

import csv
import os
from pathlib import Path

import polars as pl
import pytest

from stirred.errors import StoppedByCheck
from stirred.swap.checking.plan_check import check
from stirred.swap.drawing import release
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify

DATA = Path(os.environ.get("STIRRED_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
NIST = DATA / "nist_ma2019.csv"


@pytest.fixture(params=["real", "own"])
def survey(request, tmp_path) -> Path:
    """A survey file in which the density of an area, to one decimal, tells the area."""
    if request.param == "real":
        if not NIST.exists():
            pytest.skip("the NIST excerpt is not here; set STIRRED_DATA to its folder")
        return NIST
    path = tmp_path / "survey.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["PUMA", "AGEP", "SEX", "NPF", "OWN_RENT", "DENSITY", "PINCP"])
        for i in range(600):
            area = i * 7 % 4
            income = "N" if i % 9 == 0 else f"{i * 131 % 700}.0"
            writer.writerow([f"25-0{area:04}", i * 5 % 90, i % 2 + 1, i * 3 % 5 or "N", i % 3, 2000.5 + area, income])
    return path


def plan(**changes: object) -> SwapPlan:
    fields = {
        "unit": "person",
        "match": ["NPF", "SEX"],
        "swap": ["PUMA"],
        "hold": "rest",
        "rate": 0.05,
        "chosen_from": "public",
        "tables": [["PUMA", "OWN_RENT"]],
    }
    return SwapPlan(**(fields | changes))


def test_a_density_that_tells_the_area_stops_the_swap_of_areas(survey):
    found = check(plan(), survey)
    assert [stop.kind for stop in found.open_stops] == ["determines:DENSITY"]
    with pytest.raises(StoppedByCheck, match="determines the swap variable 'PUMA'"):
        release(plan(), survey, out=survey.parent / "never")


def test_swapping_the_density_along_makes_a_release_that_verifies_and_keeps_every_character(survey, tmp_path):
    release(plan(swap=["PUMA", "DENSITY"]), survey, out=tmp_path / "out")
    assert all(finding.holds for finding in verify(tmp_path / "out"))
    before = pl.read_csv(survey, infer_schema=False)
    after = pl.read_csv(tmp_path / "out" / "microdata.csv", infer_schema=False)
    assert after.columns == before.columns
    held = [name for name in before.columns if name not in ("PUMA", "DENSITY")]
    assert after.select(held).sort(held).equals(before.select(held).sort(held))
    keys = ["NPF", "SEX", "PUMA", "DENSITY"]
    assert after.select(keys).sort(keys).equals(before.select(keys).sort(keys))


def test_letters_for_not_applicable_stay_letters(survey, tmp_path):
    release(plan(swap=["PUMA", "DENSITY"]), survey, out=tmp_path / "out")
    column = pl.read_csv(tmp_path / "out" / "microdata.csv", infer_schema=False)["PINCP"]
    assert "N" in column.to_list() and any(value.endswith(".0") for value in column.to_list())
