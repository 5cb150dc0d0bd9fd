"""A real survey in three settings side by side, and the same on a small file of our own with the same columns.

The folder is named by STIRRED_DATA and defaults to ../shared/data beside the repository.
"""

import csv
import importlib.util
import json
import os
import random
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.errors import StirredError
from stirred.reports.figures import draw, save
from stirred.semantics.pictures.shapes import GroupedInterval, GroupedIntervals
from stirred.survey.measuring import query_noise, query_reach
from stirred.survey.plan.fields import SurveyPlan

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "survey_nist"
NIST = Path(os.environ.get("STIRRED_DATA", ROOT.parent / "shared" / "data")) / "nist_ma2019.csv"
PUMAS = ("25-00503", "25-00703", "25-01000", "25-01300", "25-02800")


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.slow), "own"])
def survey(request, tmp_path) -> Path:
    """The excerpt, or a file with its columns: final weights, incomes with N for children."""
    if request.param == "real":
        if not NIST.exists():
            pytest.skip("the NIST excerpt is not here; set STIRRED_DATA to its folder")
        return NIST
    path, drawn = tmp_path / "survey.csv", random.Random(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["PUMA", "SEX", "EDU", "PINCP", "PINCP_DECILE", "PWGTP"])
        for at in range(7_000):
            child = at % 7 == 0
            income = "N" if child else f"{drawn.randint(-90, 4000) * 100 // (1 + drawn.randrange(4))}.0"
            decile = "N" if child else str(drawn.randrange(10))
            education = "N" if child and at % 2 else str(drawn.randint(1, 12))
            writer.writerow([PUMAS[at % 5], at % 2 + 1, education, income, decile, drawn.randint(2, 661)])
    return path


def example():
    spec = importlib.util.spec_from_file_location("survey_nist_compare", EXAMPLE / "compare.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_three_settings_side_by_side_in_one_picture(survey, tmp_path, capsys):
    example().main(str(survey), str(tmp_path / "out"))
    printed = capsys.readouterr().out
    blocks = printed.split("\n\n")
    assert "one record with its weight" in printed and "one selected unit's record" in printed
    noise = {
        block.strip()[0]: [line.split()[3] for line in block.splitlines() if "25-0" in line] for block in blocks[:3]
    }
    sizes = {name: float(found[0].replace(",", "")) for name, found in noise.items()}
    assert sizes["C"] < sizes["A"] < 10_000 < 1_000_000 < sizes["B"]
    assert (tmp_path / "out" / "settings.png").stat().st_size > 20_000


def test_the_settings_differ_in_the_noise_only_as_their_weights_do():
    """Noise by hand: one record moves 300 from one cell to another, all weights move as well, or 100 move."""
    found = {}
    for name in ("weighted_file", "cut_weights", "equal_weights"):
        plan = SurveyPlan.from_toml(EXAMPLE / f"{name}.toml")
        query = plan.queries[0]
        found[name] = max(query_reach(plan, query)[0].total)
        assert query_noise(plan, query).law == "gaussian"
    assert found == {"weighted_file": 600, "cut_weights": 600 + 7633 * Fraction(299), "equal_weights": 200}


def test_pictures_of_several_groups_keep_their_numbers_and_cut_what_is_beyond(tmp_path):
    one = GroupedInterval("x", "first", 1, 2, 30, 1.5, 2.5)
    two = GroupedInterval("x", "second", 0, None, 9, 0, 9)
    picture = GroupedIntervals("some", "Some", "", "number", (one, two), 0, 10)
    assert json.loads(save(picture, tmp_path / "some.json")[0].read_text())["intervals"][0]["upper"] == 30
    drawn = json.dumps(draw(picture).to_dict())
    assert '"upper": 10' in drawn and '"value": null' in drawn
    with pytest.raises(StirredError, match="of one interval of a group"):
        GroupedIntervals("some", "Some", "", "number", (one, one), 0, 10)
    with pytest.raises(StirredError, match="below x_to"):
        GroupedIntervals("some", "Some", "", "number", (one,), 10, 10)
    with pytest.raises(StirredError, match="finite"):
        GroupedInterval("x", "first", 1, float("nan"), 3, 1, 3)
