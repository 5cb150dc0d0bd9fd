"""What survey releases say of their own numbers: in remarks, README.txt, report.html, checks and confidential files."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import stirred
from stirred import mechanisms
from stirred.cli.estimating import interval_picture
from stirred.cli.printing import show
from stirred.errors import StirredError
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.semantics.sentences.formatting import guarantee_line
from stirred.survey.documents import for_analysts
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.settings import HELD

ROWS = pl.DataFrame({"w": [2, 3, 4, 3] * 30, "sex": ["f", "m"] * 60, "area": ["n", "s", "s"] * 40,
                     "income": [10, 0, 7, 3, 3] * 24})  # fmt: skip
TOTALS = [{"name": "persons", "method": "post-stratified", "margins": [{"by": ["sex"], "totals": [300, 300]}]}]
ANSWERED = "who did not answer are missing unless the weights allow for them."


def plan_of(**changes) -> SurveyPlan:
    fields = {
        "epsilon": 100,
        "weights": {"column": "w", "lower": 1, "upper": 5},
        "design": {"selected": 120},
        "attributes": [{"name": "sex", "values": ["f", "m"]}, {"name": "area", "values": ["n", "s"]}],
        "variables": [{"name": "income", "lower": 0, "upper": 10}],
        "queries": [{"by": ["sex", "area"]}, {"of": "income", "by": ["sex"]}],
    }
    return SurveyPlan(**(fields | changes))


def released(plan: SurveyPlan, folder: Path) -> Path:
    stirred.release(plan, ROWS, out=folder)
    assert all(verdict.holds for verdict in stirred.verify(folder))
    return folder


def notes_of(folder: Path, sort: str) -> list[AnalystNote]:
    return [one for one in for_analysts(ReleaseFolder.open(folder)) if one.sort == sort]


def readme_of(folder: Path) -> str:
    return " ".join((folder / "README.txt").read_text(encoding="utf-8").split())


# -- who did not answer ------------------------------------------------------------------------------------------


def test_sums_that_are_not_adjusted_say_who_is_missing_and_what_adjusts_them(tmp_path, command):
    folder = released(plan_of(calibrations=TOTALS), tmp_path / "out")
    adjusts = "--calibration persons adjusts to the public totals."
    for options in ({}, {"kind": "total", "of": "income"}):
        (remark,) = stirred.estimate(folder, ["sex"], **options).remarks
        assert ANSWERED in remark and remark.endswith(adjusts)
    for options in ({"of": "income"}, {"share": "area"}, {"calibration": "persons"}):
        assert not any(ANSWERED in one for one in stirred.estimate(folder, ["sex"], **options).remarks)
    # Where an adjustment is refused, it is not recommended.
    for options in ({"difference": ("sex", "f", "m")}, {"where": {"area": ["n"]}}):
        (remark,) = stirred.estimate(folder, ["sex"], **options).remarks
        assert ANSWERED in remark and "--calibration" not in remark
    text = " ".join(command("estimate", folder, "--by", "sex").out.split())
    assert text.count(ANSWERED) == 1 and adjusts in text
    (remark,) = json.loads(command("estimate", folder, "--by", "sex", "--json").out)["remarks"]
    assert ANSWERED in remark
    (note,) = notes_of(folder, "corrected")
    for said in (readme_of(folder), note.words):
        assert ANSWERED in said and adjusts in said and "unbiased for the weighted sums of the file" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, f"with the weights of the file: persons {ANSWERED}"),
        ({"weights": None}, f"every record counted once: persons {ANSWERED}"),
        ({"sample": {"everybody_responds": True}}, None),
        ({"weights": {"column": "w", "lower": 1, "upper": 5, "kind": "final", "outside": "cut"},
          "sample": {"most": 120}}, None),
    ],
    ids=["design weights", "no weights", "everybody responds", "final weights"],
)  # fmt: skip
def test_plans_that_say_nobody_is_missing_have_no_such_remark(changes, said, tmp_path):
    folder = released(plan_of(**changes), tmp_path / "out")
    remarks = stirred.estimate(folder, ["sex"]).remarks
    assert (said is None and remarks == ()) or (remarks[0].endswith(said) and said in readme_of(folder))


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({}, "--by sex,area"),
        ({"queries": [{"of": "income", "by": ["sex"]}]}, "--by sex --kind total --of income"),
        ({"calibrations": TOTALS}, "--by sex,area --calibration persons"),
        ({"calibrations": TOTALS, "publish": [{"kind": "count", "by": ["area"], "calibration": "persons"}]},
         "--by area --calibration persons"),
    ],
    ids=["counts", "a variable", "public totals", "a published table"],
)  # fmt: skip
def test_the_command_to_copy_is_answered_and_uses_public_totals(changes, asked, tmp_path, command):
    folder = released(plan_of(**changes), tmp_path / "out")
    (note,) = notes_of(folder, "command")
    assert note.words == f"stirred estimate FOLDER {asked}"
    assert command("estimate", folder, *shlex.split(asked)).code == 0


# -- what is held fixed ------------------------------------------------------------------------------------------


def test_what_is_held_fixed_is_not_called_published(tmp_path):
    for number, (changes, exact) in enumerate([({}, "noise."), ({"calibrations": TOTALS}, "persons (by sex).")]):
        folder = released(plan_of(**changes), tmp_path / f"out{number}")
        (note,) = notes_of(folder, "exact")
        assert note.words.startswith("nothing: every number has noise") and note.words.endswith(exact)
        page = stirred.report(folder, tmp_path / f"report{number}.html").read_text(encoding="utf-8")
        for words in (
            "What is published exactly",
            "Published exactly",
            "Kept exactly",
            "knows these counts as they are",
        ):
            assert words not in page
        assert page.count("What is taken as known and not protected") == 2  # in the list of parts, and above its own
        assert "None of this is released" in page


def test_figures_call_stages_that_are_held_fixed_by_name():
    line = guarantee_line(specify(plan_of()))
    population, frame = (str(HELD[name]) for name in ("population", "frame"))
    assert line.endswith(f"; held fixed, though not released: {population}; {frame}")
    assert "counts held fixed" not in line
    assert guarantee_line(specify(plan_of(holds_fixed=""))).endswith("; no table of counts held fixed")


# -- what is cut -------------------------------------------------------------------------------------------------

CUT = {
    "weights": {"column": "w", "lower": 3, "upper": 3, "outside": "cut"},
    "variables": [{"name": "income", "lower": 0, "upper": 6, "outside": "cut"}],
}


def test_a_check_shows_the_sum_of_weights_before_and_after_cutting():
    rows = ROWS.with_columns(pl.when(pl.col("w") == 2).then(10).otherwise(pl.col("w")).alias("w"))
    found = stirred.check(plan_of(**CUT), rows)
    text = " ".join(str(found).split())
    assert "weights adding up to 360 after cutting, 600 in the file;" in text
    assert "60 cells of column 'w' are cut at the bounds, which biases sums." in text
    assert json.loads(found.to_json())["weights_in_file"] == 600
    unchanged = stirred.check(plan_of(), ROWS.with_columns(w=5))
    assert "weights adding up to 600; unequal" in " ".join(str(unchanged).split())


def test_confidential_files_do_not_call_cut_sums_the_true_ones(tmp_path):
    for name, plan in (("cut", plan_of(**CUT)), ("whole", plan_of())):
        folder = tmp_path / name
        stirred.release(plan, ROWS, out=folder, confidential=tmp_path / f"{name} secret")
        note = tmp_path / f"{name} secret" / "CONFIDENTIAL.txt"
        mechanism = mechanisms.named("survey")
        told = tuple(mechanism.for_custodian(ReleaseFolder.open(folder), plan, ROWS))
        shown = " ".join([*(one.words for one in told), *(cell for one in told for row in one.rows for cell in row)])
        cut = "after cutting at the plan's bounds"
        assert (cut in note.read_text(encoding="utf-8")) == (cut in shown) == (name == "cut")
        assert ("median true sum" in shown) == (name == "whole")
        said = "Weights, values of income: those beyond the plan's bounds are cut at them, which biases sums."
        (corrected,) = notes_of(folder, "corrected")
        assert (said in readme_of(folder)) == (said in corrected.words) == (name == "cut")


# -- what intervals cover ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [0, "1/10"], ids=["not measured", "measured"])
@pytest.mark.parametrize("design", [{}, {"selected": 120}], ids=["no design", "a design"])
def test_intervals_are_promised_for_what_they_cover(errors, design, tmp_path):
    if errors and not design:  # measuring needs a design; clusters without the size of the largest are not bounded
        design = {"selected": 30, "clusters": "block"}
    rows = ROWS.with_columns(block=pl.int_range(pl.len()) // 4)
    wanted = [
        {"kind": "count", "by": ["sex"], "errors": errors},
        {"kind": "count", "by": ["area"], "confidence": "0.9"},
    ]
    folder = tmp_path / "out"
    stirred.release(plan_of(design=design, publish=wanted), rows, out=folder)
    text, (note,) = readme_of(folder), notes_of(folder, "corrected")
    for name, level in (("count-sex", "95%"), ("count-area", "90%")):
        unknown = pl.read_csv(folder / "tables" / f"{name}.csv")["interval"].unique().to_list() == ["unknown"]
        line = f"tables/{name}.csv: estimates, their standard errors and {level} intervals (lower, upper)"
        assert line in text and (f"{line} for noise only" in text) == unknown
    bounded = stirred.estimate(folder, ["area"]).kinds[0] == "bounded"
    for said in (text, note.words):
        assert ("intervals that cover sampling and noise." in said) == bounded
        assert ("intervals that cover noise only" in said) == (not bounded)
        assert ("measures it for count-sex alone, whose intervals cover both" in said) == (bool(errors) and not bounded)


def test_tables_that_no_query_determines_are_not_to_be_had(tmp_path):
    queries = [{"by": ["sex"]}, {"by": ["area"]}]
    folder = released(plan_of(queries=queries), tmp_path / "out")
    with pytest.raises(StirredError):
        stirred.estimate(folder, ["sex", "area"])
    (note,) = notes_of(folder, "unusable")
    assert note.words.startswith("tables by columns that no query has together")


# -- questions that are refused ----------------------------------------------------------------------------------


def test_a_difference_that_needs_a_table_by_its_attribute_says_which(tmp_path, command):
    folder = released(plan_of(calibrations=TOTALS), tmp_path / "out")
    asked = ("estimate", folder, "--share", "area", "--difference", "sex=m,f")
    ended = command(*asked)
    assert ended.code != 0
    assert "A difference of values of 'sex' needs a table by it: add --by sex." in ended.err
    assert "docs/surveys.md has examples (stirred docs surveys)" in ended.err
    assert command(*asked, "--by", "sex").code == 0
    ended = command("estimate", folder, "--by", "area", "--difference", "sex=m,f")
    assert "add --by area,sex." in ended.err
    ended = command(*asked, "--by", "sex", "--calibration", "persons")
    assert "is not offered for adjusted estimates: leave --calibration out." in ended.err
    with pytest.raises(StirredError, match="no attribute or recode 'height'"):
        stirred.estimate(folder, ["sex"], difference=("height", "1", "2"))


# -- tables in the terminal --------------------------------------------------------------------------------------


def test_tabulated_sums_are_printed_with_few_decimals_and_written_with_all(tmp_path, command):
    weights = {"column": "w", "lower": 1, "upper": 5, "step": "0.01"}
    queries = [{"by": ["sex", "area"]}, {"by": ["sex"]}, {"by": ["area"]}, {"of": "income", "by": ["sex"]}]
    folder = released(plan_of(weights=weights, epsilon=1, queries=queries), tmp_path / "out")
    ended = command("tabulate", folder, "--by", "sex")
    assert ANSWERED in " ".join(ended.err.split())
    exact = stirred.tabulate(folder, ["sex"])["count"].to_pylist()
    printed = [float(line.split(",")[1]) for line in ended.out.split()[1:]]
    assert printed == [round(one, 2 if max(map(abs, exact)) >= 1000 else 4) for one in exact]
    assert json.loads(command("tabulate", folder, "--by", "sex", "--json").out)["rows"][0]["count"] == exact[0]
    command("tabulate", folder, "--by", "sex", "--out", tmp_path / "written.csv")
    assert pl.read_csv(tmp_path / "written.csv")["count"].to_list() == exact


@pytest.mark.parametrize(("number", "shown"), [(146032.09855468755, "146032.1"), (12.345678, "12.3457"), (-3.0, "-3")])
def test_numbers_of_a_table_are_rounded_by_their_size(number, shown, capsys):
    show(
        pa.table({"place": ["a"], "dose": [0.123456789], "count": [number], "rows": [123456789]}), by=["place", "dose"]
    )
    place, dose, count, rows = capsys.readouterr().out.split()[1].split(",")
    assert dose == "0.123456789"  # a value of the data, not an estimate
    assert (place, rows) == ("a", "123456789") and float(count) == float(shown) and len(count) <= len(shown) + 2


def test_a_figure_of_sums_that_are_not_adjusted_says_so(tmp_path):
    folder = released(plan_of(calibrations=TOTALS), tmp_path / "out")
    assert ANSWERED in interval_picture(stirred.estimate(folder, ["sex"])).caption
    assert ANSWERED not in interval_picture(stirred.estimate(folder, ["area"], calibration="persons")).caption
