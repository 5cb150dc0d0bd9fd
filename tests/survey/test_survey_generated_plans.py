"""The plan that comes with a generated survey: it fits its file in every design, and states public facts only."""

import polars as pl
import pytest

import stirred
from stirred.errors import StirredError
from stirred.survey.data import read_records
from stirred.survey.demo import plan_text, write_lines
from stirred.survey.mechanism import MECHANISM
from stirred.survey.plan.fields import SurveyPlan
from stirred.tables.synthetic.survey_frame import make_frame
from stirred.tables.synthetic.surveys import DESIGNS, draw_survey


@pytest.mark.parametrize("design", DESIGNS)
def test_a_generated_survey_has_a_plan_that_checks_and_releases(design, tmp_path):
    lines = write_lines(tmp_path / "made", 12_000, 3, design)
    assert "Nobody in it is real" in lines[0] and lines[-1].strip().startswith("stirred release")
    files = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert files == ["strata.csv", "survey.csv", "survey.toml", "totals.csv", "truth.csv"]
    plan = SurveyPlan.from_toml(tmp_path / "made" / "survey.toml")
    found = stirred.check(plan)
    assert found.records == pl.read_csv(tmp_path / "made" / "survey.csv").height
    sources = {table.source for table in found.tables}
    assert sources == {"measured", "bounded"}
    stirred.release(plan, out=tmp_path / "release")
    assert all(verdict.holds for verdict in stirred.verify(tmp_path / "release"))


def test_the_plan_does_not_depend_on_who_was_sampled():
    frame = make_frame(12_000, seed=3)
    texts = {plan_text(draw_survey(frame, seed=seed, replicates=0)) for seed in (4, 5)}
    assert len(texts) == 1


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "made").mkdir()
    with pytest.raises(StirredError, match="exists"):
        write_lines(tmp_path / "made", 5_000)


def test_numbers_in_csv_files_need_no_types(tmp_path):
    """Cells of a CSV file are text; what the plan weighs with or adds up is read as numbers all the same."""
    (tmp_path / "few.csv").write_text("w,x,g\n2.5,10,a\n1,,b\n")
    plan = SurveyPlan(
        epsilon=1, weights={"column": "w", "lower": 1, "upper": 3, "step": "0.5"},
        variables=[{"name": "x", "lower": 0, "upper": 10, "missing": 4}],
        attributes=[{"name": "g", "values": ["a", "b"]}], queries=[{"by": "g"}, {"of": "x"}],
    )  # fmt: skip
    found = stirred.check(plan, tmp_path / "few.csv")
    assert found.weighted == 3.5
    assert {one.query: one.typical for one in found.queries} == {"count-g": 1.75, "x": 29.0}


def test_the_expected_interval_of_measured_errors_is_that_of_measured_errors(tmp_path):
    """Not that of the bound from public facts, which is several times as wide in a design with clusters."""
    write_lines(tmp_path / "made", 30_000, 3, "two-stage")
    plan = SurveyPlan.from_toml(tmp_path / "made" / "survey.toml")
    expected = {one.table: one for one in stirred.check(plan).tables}["mean-income-sex"]
    halves = []
    for _ in range(8):  # one alone is often half as long: noise then made the measured error nearly 0
        table = MECHANISM.draw(plan).estimates("mean-income-sex")
        halves += ((table["upper"] - table["lower"]) / 2).to_list()
    typical = (sum(half**2 for half in halves) / len(halves)) ** 0.5
    assert typical / 2 < expected.interval < 2 * typical
    assert expected.interval > 1.9 * (expected.sampling**2 + expected.noise**2) ** 0.5


@pytest.mark.parametrize("method", ["post-stratified", "raked", "linear"])
def test_counts_that_cannot_be_adjusted_give_no_estimates_and_no_error(method, tmp_path):
    """Nobody is in group b, and its noisy count may be below 0: the budget is spent, so the release must appear."""
    rows = pl.DataFrame({"g": ["a"] * 20})
    plan = SurveyPlan(
        epsilon="0.01", attributes=[{"name": "g", "values": ["a", "b"]}], queries=[{"by": "g"}],
        calibrations=[{"name": "public", "method": method, "margins": [{"by": "g", "totals": [30, 5]}]}],
        publish=[{"kind": "count", "by": "g", "calibration": "public"}],
    )  # fmt: skip
    drawn: dict[bool, list] = {True: [], False: []}
    for _ in range(12):
        release = MECHANISM.draw(plan, rows)
        drawn[release.estimates("count-g-public")["estimate"].is_null().all()].append(release)
    assert drawn[True] or method == "linear"  # else all noisy counts were positive: probability below 1e-5
    for none, releases in drawn.items():
        for release in releases[:1]:
            out = release.write(tmp_path / f"{none}")
            table = pl.read_csv(out / "tables" / "count-g-public.csv")
            assert none == table["interval"].str.starts_with("no estimate").all()
            assert none or table["estimate"].round(6).to_list() == [30, 5]
            assert all(verdict.holds for verdict in stirred.verify(out))
            assert "nan" not in stirred.estimate(out, ["g"], calibration="public").to_json().lower()


def test_an_empty_cell_of_an_attribute_counts_as_the_value_that_the_plan_states(tmp_path):
    (tmp_path / "few.csv").write_text("g,h\na,1\nN,1\n,1\nb,1\n")
    attributes = [{"name": "g", "values": ["a", "b", "none"], "missing": "none"}]
    plan = SurveyPlan(epsilon=1, input={"null_values": ["N"]}, attributes=attributes, queries=[{"by": "g"}])
    records = read_records(plan, tmp_path / "few.csv")
    assert records.codes["g"].tolist() == [0, 2, 2, 1]


def test_noise_that_no_sampler_draws_is_refused_by_the_check_already():
    rows = pl.DataFrame({"w": [1, 2, 3], "x": [1, 2, 3]})
    fields = {"rho": "1/2", "weights": {"column": "w", "kind": "final", "lower": 1, "upper": 300, "outside": "cut"}}
    fields |= {"sample": {"most": 10_000}, "queries": [{"of": "x"}]}
    plan = SurveyPlan(**fields, variables=[{"name": "x", "lower": 0, "upper": 10**6}])
    with pytest.raises(StirredError, match="a larger step"):
        stirred.check(plan, rows)
    coarse = {"name": "x", "lower": 0, "upper": 10**6, "step": 100, "rounding": "nearest"}
    assert stirred.check(SurveyPlan(**fields, variables=[coarse]), rows).records == 3
