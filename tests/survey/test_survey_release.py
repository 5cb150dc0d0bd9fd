"""A survey release from end to end: every budget and format, the ledger, the commands, and what a seed is good for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import stirred
from stirred.errors import StirredError
from stirred.noise import SeededSource
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.ledger.ledger import Ledger
from stirred.survey.plan.guarantee import specify

FRAME = pl.DataFrame(
    {
        "w": [2.5, 1.0, 4.0, 1.5] * 30,
        "region": ["n"] * 40 + ["s"] * 80,
        "block": [f"b{i // 4}" for i in range(120)],
        "sex": (["f", "m", None] * 40),
        "income": [10, 0, 7, 3, 3] * 24,
    }
)
FIELDS = {
    "row": "person",
    "unit": "person",
    "dataset": "a survey",
    "chosen_from": "public",
    "weights": {"column": "w", "lower": 1, "upper": 5, "step": "0.5"},
    "design": {"strata": "region", "clusters": "block",
               "sizes": {"n": {"selected": 10, "population": 90, "upper": 4}, "s": {"selected": 20}}},
    "attributes": [
        {"name": "region", "values": ["n", "s"], "in_frame": True},
        {"name": "sex", "values": ["f", "m", "x"]},
        {"name": "band", "variable": "income", "cuts": [0, 5, 10]},
    ],
    "recodes": [{"name": "known", "of": "sex", "groups": {"yes": ["f", "m"], "no": ["x"]}}],
    "variables": [{"name": "income", "lower": 0, "upper": 10}],
    "imputation": [{"of": "sex", "kind": "frequencies", "given": ["region"], "share": "1/10"}],
    "queries": [{"by": ["region", "sex"]}, {"of": "income", "by": ["region", "sex"]}, {"by": ["region", "band"]}],
    "publish": [
        {"kind": "count", "by": ["sex"], "errors": "1/20"},
        {"kind": "mean", "of": "income", "by": ["region", "sex"], "errors": "1/20"},
        {"kind": "quantiles", "of": "band", "by": ["region"], "probabilities": ["1/2"]},
    ],
}  # fmt: skip


def plan_of(**changes) -> stirred.SurveyPlan:
    fields = FIELDS | changes
    return stirred.SurveyPlan(**({"epsilon": 5} | fields if "rho" not in fields else fields))


def holds(folder: Path) -> bool:
    return all(verdict.holds for verdict in stirred.verify(folder))


def test_a_release_is_tied_to_its_check(tmp_path):
    code = stirred.check(plan_of(), FRAME).code
    with pytest.raises(StirredError) as refused:
        stirred.release(plan_of(), FRAME.reverse(), out=tmp_path / "release", as_checked=code)
    assert refused.value.kind == "not-as-checked"
    stirred.release(plan_of(), FRAME, out=tmp_path / "release", as_checked=code)
    assert holds(tmp_path / "release")


@pytest.mark.parametrize("budget", [{"epsilon": 10**6}, {"rho": 10**8}], ids=["laplace", "gaussian"])
def test_a_budget_that_leaves_hardly_any_noise_can_be_tabulated_and_estimated(budget, tmp_path):
    stirred.release(plan_of(**budget), FRAME, out=tmp_path / "out")
    assert holds(tmp_path / "out")
    counted = stirred.tabulate(tmp_path / "out", ["region"])["count"].to_pylist()
    assert counted == pytest.approx(
        FRAME.group_by("region").agg(pl.col("w").sum()).sort("region")["w"].to_list(), abs=1
    )
    assert stirred.estimate(tmp_path / "out", ["region"], of="income").to_frame()["standard_error"].is_finite().all()


@pytest.mark.parametrize("budget", [{"epsilon": 5}, {"rho": 5}], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
def test_a_release_verifies_and_answers(budget, form, tmp_path):
    plan = plan_of(format=form, **budget)
    stirred.release(plan, FRAME, out=tmp_path / "out", confidential=tmp_path / "secret")
    assert holds(tmp_path / "out")
    table = stirred.tabulate(tmp_path / "out", ["region"])
    assert table.column_names == ["region", "count"] and table.num_rows == 2
    means = stirred.estimate(tmp_path / "out", ["region"], of="income").to_frame()
    assert set(means.columns) >= {"region", "estimate", "standard_error", "lower", "upper", "interval"}
    published = pl.read_csv(tmp_path / "out" / "tables" / "mean-income-region-sex.csv")
    assert published.height == 6  # nobody has the sex x, and its cells are there all the same
    answered = published.filter(pl.col("estimate").is_not_null())
    assert set(answered["interval"]) == {"measured"} and answered.height >= 4
    assert (tmp_path / "secret").is_dir()


def complete() -> pl.DataFrame:
    return FRAME.with_columns(pl.col("sex").fill_null("m"))


def test_a_domain_without_records_is_measured_like_any_other(tmp_path):
    attributes = [dict(one) for one in FIELDS["attributes"]]
    attributes[1]["missing"] = "m"
    plan = plan_of(imputation=[], attributes=attributes)
    drawn = stirred.mechanisms.named("survey").draw(plan, FRAME)
    assert [len(drawn.survey.sums[query.name]) for query in plan.queries] == [6, 6, 4]
    assert holds(drawn.write(tmp_path / "out"))


def test_releases_add_up_in_the_ledger_until_the_limit_is_reached(tmp_path):
    plan = plan_of(publish=[], imputation=[])
    limit = replace(specify(plan), budget=specify(plan_of(publish=[], imputation=[], epsilon=11)).budget)
    Ledger.create(tmp_path / "a.ledger", "a survey", limit=limit)
    for number in (1, 2):
        stirred.release(plan, complete(), out=tmp_path / f"out{number}", ledger=tmp_path / "a.ledger")
    with pytest.raises(StirredError) as refused:
        stirred.release(plan, complete(), out=tmp_path / "out3", ledger=tmp_path / "a.ledger")
    assert refused.value.kind == "ledger-over-limit"
    assert not (tmp_path / "out3").exists()
    ledger = Ledger.open(tmp_path / "a.ledger")
    assert ledger.total().specification.budget.number == 10
    assert all(verdict.holds for verdict in ledger.verify())


def test_releases_of_other_variables_add_up_too(tmp_path):
    """One plan refuses incomes outside their bounds and the other does not read them."""
    Ledger.create(tmp_path / "a.ledger", "a survey")
    stirred.release(plan_of(publish=[], imputation=[]), complete(), out=tmp_path / "one", ledger=tmp_path / "a.ledger")
    counts = plan_of(publish=[], imputation=[], queries=[{"by": ["sex"]}], variables=[],
                     attributes=FIELDS["attributes"][:2])  # fmt: skip
    stirred.release(counts, complete(), out=tmp_path / "two", ledger=tmp_path / "a.ledger")
    assert Ledger.open(tmp_path / "a.ledger").total().specification.budget.number == 10


def test_a_second_release_into_the_same_folder_is_refused_before_anything_is_read(tmp_path):
    stirred.release(plan_of(), FRAME, out=tmp_path / "out")
    before = (tmp_path / "out" / "certificate.json").read_bytes()
    with pytest.raises(StirredError) as refused:
        stirred.release(plan_of(), FRAME.head(0), out=tmp_path / "out")
    assert refused.value.kind == "output-exists"
    assert (tmp_path / "out" / "certificate.json").read_bytes() == before


def test_the_same_seed_gives_the_same_draw_and_is_marked(tmp_path):
    survey = stirred.mechanisms.named("survey")
    one, other, third = (survey.draw(plan_of(), FRAME, source=SeededSource(seed)) for seed in (1, 1, 2))
    for query in one.plan.queries:
        assert np.array_equal(one.survey.sums[query.name], other.survey.sums[query.name])
    assert one.models == other.models
    assert any(not np.array_equal(one.survey.sums[name], third.survey.sums[name]) for name in one.survey.sums)
    assert not one.for_release and one.specification.marks
    with pytest.raises(StirredError) as refused:
        one.write(tmp_path / "out")
    assert refused.value.kind == "seeded-release"
    one.write(tmp_path / "tests", for_tests=True)
    assert not holds(tmp_path / "tests")
    assert sum(not verdict.holds for verdict in stirred.verify(tmp_path / "tests")) == 1


# -- commands ----------------------------------------------------------------------------------------------------

PLAN = """
stirred = 1
mechanism = "survey"
unit = "person"
dataset = "a survey"
chosen_from = "public"
epsilon = 5
design = { selected = 120 }
attributes = [{ name = "region", values = ["n", "s"] }, { name = "sex", values = ["f", "m"] }]
variables = [{ name = "income", lower = 0, upper = 10 }]
queries = [{ by = ["region", "sex"] }, { of = "income", by = ["region"] }]
publish = [{ kind = "mean", of = "income", by = ["region"], errors = "1/10" }]

[input]
path = "survey.parquet"

[weights]
column = "w"
lower = 1
upper = 5
step = 0.5
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    complete().write_parquet(folder / "survey.parquet")
    (folder / "survey.toml").write_text(PLAN, encoding="utf-8")
    stirred.release(folder / "survey.toml", out=folder / "out")
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "survey.toml"], "CONFIDENTIAL"),
        (["verify", "out"], "holds"),
        (["tabulate", "out", "--by", "region"], "region"),
        (["tabulate", "out", "--by", "region", "--table", "income-region"], "income"),
        (["estimate", "out", "--by", "region"], "bounded"),
        (["estimate", "out", "--by", "region", "--of", "income"], "measured"),
        (["estimate", "out", "--share", "sex"], "share of sex"),
        (["explain", "out"], "epsilon"),
        (["explain", "out", "--full"], "epsilon"),
        (["lint", "out"], ""),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)  # fmt: skip
def test_commands_work_on_surveys(words, said, written, command):
    ended = command(words[0], written / words[1], *words[2:])
    assert ended.code == 0 or (ended.code == 1 and words[0] == "lint"), ended.err
    assert said in ended.said


def test_the_release_command_says_what_was_released(written, tmp_path, command):
    ended = command("release", written / "survey.toml", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "noisy sums" in ended.said
    assert holds(tmp_path / "out")


@pytest.mark.parametrize("words", [["check", "survey.toml"], ["verify", "out"], ["estimate", "out", "--by", "sex"],
                                   ["lint", "out"]], ids=" ".join)  # fmt: skip
def test_commands_have_a_json_form(words, written, command):
    ended = command(words[0], written / words[1], *words[2:], "--json")
    assert json.loads(ended.out) is not None


def test_the_certificate_can_be_read_and_states_the_plan(written):
    release = ReleaseFolder.open(written / "out")
    assert release.mechanism == "survey"
    assert release.specification == specify(stirred.SurveyPlan.from_toml(written / "survey.toml"))
    assert stirred.SurveyPlan.from_published(release.certificate["plan"]).queries[0].by == ("region", "sex")
    assert "survey.parquet" not in json.dumps(release.certificate)
    assert release.certificate["imputation"] == {}


def test_the_true_numbers_are_in_no_file_that_is_published(tmp_path):
    """With so much noise a true sum that stands in a released table would be no chance: a release shows no true one."""
    stirred.release(plan_of(epsilon="1/1000", publish=[], imputation=[]), complete(), out=tmp_path / "out")
    true = complete().group_by("region", "sex").agg(pl.col("w").sum())["w"].to_list()
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not any(f",{number}\n" in text for number in true)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"ratio": ("sex", "f", "m")}, "asked for with 'of' and 'over' (--of income --over hours)"),
        ({"level": "region"}, "this command has calibration, difference, kind, of, over, probabilities, share"),
        ({"kind": "ratio", "of": "income"}, "needs two variables: pass of and over (--of, --over)"),
        ({"over": "income"}, "needs two variables: pass of and over (--of, --over)"),
        ({"kind": "mean"}, "needs a variable: pass of (--of)"),
    ],
)
def test_a_question_that_surveys_do_not_answer_is_met_with_what_to_pass(asked, says, written):
    with pytest.raises(StirredError) as refusal:
        stirred.estimate(written / "out", ["sex"], **asked)
    assert says in str(refusal.value)


def test_the_command_for_a_ratio_says_the_same(written, command):
    ended = command("estimate", written / "out", "--by", "sex", "--ratio", "sex=f,m")
    assert ended.code == 2 and "--of income --over hours" in ended.said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("asked", [{}, {"of": "income"}, {"difference": ("sex", "f", "m")}], ids=str)
def test_what_no_query_tells_has_no_estimate_and_gives_no_warning(asked, tmp_path):
    queries = [{"by": ["sex"]}, {"by": ["region"]}, {"of": "income", "by": ["sex"]}, {"of": "income", "by": ["region"]}]
    stirred.release(plan_of(queries=queries, publish=[], imputation=[]), complete(), out=tmp_path / "out")
    found = stirred.estimate(tmp_path / "out", ["sex"], where={"sex": ["f"], "region": ["n"]}, **asked)
    row = found.to_frame().row(0, named=True)
    assert row["estimate"] is None and row["standard_error"] is None
    assert row["interval"] == "no estimate: no measured sum tells it"
