"""Rows and units of a survey: whom the guarantee is about, and what in a file speaks against the facts of its plan."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import stirred
from stirred.cli import app
from stirred.errors import PlanError, StirredError, StoppedByCheck
from stirred.semantics.sentences.formatting import guarantee_line
from stirred.spec.algebra import compose
from stirred.survey.checking.against_plan import looks_like_id
from stirred.survey.data import read_records
from stirred.survey.estimating.measured import MeasuredSurvey
from stirred.survey.measuring import query_noise, true_sums
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify

CONDITION = "if each row is one whole household"
ROWS = 180
PERSONS = pl.DataFrame(
    {
        "w": [2, 3, 4] * 60,
        "sex": ["f", "m"] * 90,
        "income": [10, 0, 7, 3, 3] * 36,
        "hid": [i // 9 for i in range(ROWS)],
        "pid": [1 + i % 9 for i in range(ROWS)],
        "person_id": list(range(ROWS)),
        "psu": [i // 18 for i in range(ROWS)],
    }
)
"""Twenty households of nine persons, two in each of ten blocks."""
HOUSEHOLDS = PERSONS.group_by("hid", maintain_order=True).first().with_columns(number=pl.col("hid") % 2 + 1)


def plan_of(**changes) -> SurveyPlan:
    fields = {
        "unit": "household",
        "rho": 1,
        "weights": {"column": "w", "lower": 1, "upper": 5},
        "attributes": [{"name": "sex", "values": ["f", "m"]}],
        "variables": [{"name": "income", "lower": 0, "upper": 10}],
        "queries": [{"by": ["sex"]}],
    }
    return SurveyPlan(**(fields | changes))


def stops_of(plan: SurveyPlan, data: pl.DataFrame = PERSONS) -> dict[str, StoppedByCheck]:
    return {stop.kind: stop for stop in stirred.check(plan, data).open_stops}


def words_of(text: str) -> str:
    return " ".join(text.split())


# -- the row of a plan ---------------------------------------------------------------------------------------------


def test_a_unit_that_is_not_the_row_is_refused_with_both_ways_out():
    with pytest.raises(PlanError) as refused:
        plan_of(row="person")
    assert refused.value.kind == "unit-is-not-the-row"
    assert "one row for each household" in refused.value.remedy and 'unit = "person"' in refused.value.remedy
    assert plan_of(row="Household ").row == "Household "


def test_a_plan_without_row_publishes_what_it_published_before():
    plan = plan_of()
    assert "row" not in plan.published() and "allow" not in plan.published()
    assert "row" not in specify(plan).fact
    assert specify(plan_of(row="household")).fact["row"] == "household"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A release whose plan states its row, and one whose plan does not."""
    place, found = tmp_path_factory.mktemp("units"), {}
    for name, row in (("stated", "household"), ("silent", None)):
        found[name] = place / name
        stirred.release(plan_of(row=row), HOUSEHOLDS, out=found[name])
        assert all(verdict.holds for verdict in stirred.verify(found[name]))
    return found


def test_without_a_row_the_first_sentence_everywhere_carries_the_condition(folders):
    silent = folders["silent"]
    said = {
        "README": words_of((silent / "README.txt").read_text("utf-8")),
        "explain": words_of(str(stirred.explain(silent))),
        "report": words_of((silent / "report.html").read_text("utf-8")),
        "check": words_of(str(stirred.check(plan_of(), HOUSEHOLDS))),
        "figures": guarantee_line(specify(plan_of())),
        "specification": str(specify(plan_of())),
        "json": specify(plan_of()).to_json(),
    }
    assert {name for name, text in said.items() if CONDITION not in text} == set()
    assert f"Protected is one selected unit's record, whether it answers or not, {CONDITION}." in said["README"]
    assert "would lose the square of their number times the stated rho" in said["README"]
    assert f"Each household is protected {CONDITION}: within the limit" in said["explain"]
    assert f"rho = 1.00 per household {CONDITION}." in said["check"]


def test_with_a_row_the_documents_say_what_was_looked_at(folders):
    stated = folders["stated"]
    readme = words_of((stated / "README.txt").read_text("utf-8"))
    assert "Each row of the file is one whole household: the plan states it" in readme
    assert "Nothing else was looked at to confirm it." in readme
    assert CONDITION not in readme + words_of(str(stirred.explain(stated))) + (stated / "report.html").read_text(
        "utf-8"
    )
    assert "no value repeats in 'hid', by name an id of one household" in words_of(
        str(stirred.check(plan_of(row="household"), HOUSEHOLDS))
    )


def test_releases_of_0_6_are_explained_with_the_condition_and_not_contradicted():
    """Its plan has no row, and its tables have NaN where there is no estimate."""
    folder = Path(__file__).parents[1] / "fixtures" / "v0_6" / "survey"
    assert "NaN" in (folder / "tables" / "count-employment-persons.csv").read_text("utf-8")
    assert "Each person is protected if each row is one whole person: " in words_of(str(stirred.explain(folder)))
    assert not [verdict for verdict in stirred.verify(folder) if "follow" in verdict.words and not verdict.holds]


def test_the_total_of_several_releases_keeps_the_condition():
    assert compose(specify(plan_of(row="household")), specify(plan_of())).specification.condition == CONDITION
    assert not compose(*[specify(plan_of(row="household"))] * 2).specification.condition


# -- ids of the unit -----------------------------------------------------------------------------------------------


def test_a_household_of_nine_rows_loses_81_times_rho_and_is_refused():
    """The loss that the stop names: nine rows of one household change together, each as far as the noise is for."""
    plan = plan_of(weights=None)
    query, others = plan.queries[0], PERSONS.with_columns(sex=pl.lit("f"))
    changed = others.with_columns(sex=pl.when(pl.col("hid") == 0).then(pl.lit("m")).otherwise("sex"))
    moved = np.abs(true_sums(read_records(plan, changed), query) - true_sums(read_records(plan, others), query))
    assert sum(Fraction(int(one)) ** 2 / (2 * query_noise(plan, query).parameters[0]) for one in moved) == 81
    stop = stops_of(plan)["several-rows:hid"]
    assert "180 rows share theirs, up to 9 rows one value" in stop.problem
    assert "81 times the stated rho" in stop.problem
    assert "9 times the stated epsilon" in stops_of(plan_of(rho=None, epsilon=1))["several-rows:hid"].problem
    with pytest.raises(StoppedByCheck):
        stirred.mechanisms.named("survey").draw(plan, PERSONS)


@pytest.mark.parametrize("row", [None, "household"])
@pytest.mark.parametrize("name", ["household_id", "HHID", "hid", "DB030", "SERIALNO", "household", "id_household"])
def test_a_repeating_id_of_the_unit_is_seen_by_its_name(name, row):
    assert list(stops_of(plan_of(row=row), PERSONS.rename({"hid": name}))) == [f"several-rows:{name}"]


def test_ids_are_seen_in_any_type_of_column():
    for kind in (pl.String, pl.Float64, pl.Categorical):
        data = PERSONS.with_columns(pl.col("hid").cast(pl.String).cast(kind))
        assert list(stops_of(plan_of(), data)) == ["several-rows:hid"]


@pytest.mark.parametrize("name", ["hh_size", "household_type", "region", "h1", "pid", "neighbourhood_id", "weight"])
def test_other_names_are_no_ids_of_a_household(name):
    assert not looks_like_id(name, "household")


def test_clusters_with_the_name_of_the_unit_are_seen():
    design = {"clusters": "hh", "selected": 20}
    data = PERSONS.rename({"hid": "hh"}).drop("pid")
    assert "several-rows:hh" in stops_of(plan_of(design=design), data)
    one_each = HOUSEHOLDS.rename({"hid": "hh"})
    assert not stops_of(plan_of(design=design), one_each)


def test_persons_in_households_are_fine_where_persons_are_protected():
    plan = plan_of(unit="person", row="person")
    assert not stops_of(plan), "numbers of persons begin anew in each household"
    twice = pl.concat([PERSONS, PERSONS])
    assert set(stops_of(plan, twice)) == {"several-rows:pid", "several-rows:person_id"}


def test_numbers_of_households_that_begin_anew_in_each_cluster_are_fine():
    data = HOUSEHOLDS.drop("hid").rename({"number": "hhnum"})
    assert "several-rows:hhnum" in stops_of(plan_of(), data)
    assert not stops_of(plan_of(design={"clusters": "psu", "selected": 10}), data)


def test_what_a_kind_of_household_is_called_is_no_id():
    data = HOUSEHOLDS.drop("hid").with_columns(household=pl.lit("couple"))
    assert "several-rows:household" in stops_of(plan_of(), data.head(20))  # few rows for a value: it may be an id
    large = pl.concat([data] * 5)
    assert not stops_of(plan_of(), large)


def test_a_stop_ends_a_release_in_words_that_quote_no_cell(tmp_path, capsys, monkeypatch):
    PERSONS.with_columns(hid=pl.lit("SECRET-7731")).write_csv(tmp_path / "persons.csv")
    (tmp_path / "plan.toml").write_text(plan_of(input={"path": "persons.csv"}).to_toml())
    monkeypatch.setattr("sys.argv", ["stirred", "release", str(tmp_path / "plan.toml"), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 2 and not (tmp_path / "out").exists()
    said = capsys.readouterr()
    assert "one household of 180 rows would lose 32,400 times the stated rho" in words_of(said.err)
    assert "SECRET" not in said.out + said.err


def test_an_allowed_column_brings_the_condition_back():
    plan = plan_of(row="household", allow=["several-rows:hid"])
    assert not stops_of(plan)
    assert specify(plan).condition == CONDITION
    assert "allowed-several-rows-hid" in [finding.id for finding in specify(plan).findings]
    with pytest.raises(PlanError, match="one that can be allowed"):
        plan_of(allow=["largest-cluster"])


# -- facts that a file refutes -------------------------------------------------------------------------------------

STRATA = {"attributes": [{"name": "sex", "values": ["f", "m"]}], "unit": "person", "row": "person"}


def test_a_file_in_which_some_do_not_answer_refutes_that_everybody_does():
    data = pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 40, "w": [1] * 80})
    sizes = {"strata": "sex", "sizes": {"f": {"selected": 50}, "m": {"selected": 50}}}
    fields = STRATA | {"design": sizes, "variables": []}
    stop = stops_of(plan_of(**fields, sample={"everybody_responds": True}), data)["everybody-responds"]
    assert "80 of 100 selected records, fewer than were selected in 2 of 2 strata" in stop.problem
    assert not stops_of(plan_of(**fields), data), "that not everybody answers is nothing unusual"
    whole = pl.concat([data, data.head(10), data.tail(10)])
    assert not stops_of(plan_of(**fields, sample={"everybody_responds": True}), whole)


def test_a_cluster_with_more_records_than_stated_is_refused():
    fields = STRATA | {"design": {"clusters": "hid", "selected": 20, "largest_cluster": 1}}
    stop = stops_of(plan_of(**fields))["largest-cluster"]
    assert "has 9 records, and the plan says that none has more than 1" in stop.problem
    assert not stops_of(plan_of(**STRATA | {"design": {"clusters": "hid", "selected": 20, "largest_cluster": 9}}))


def test_fewer_clusters_than_selected_are_refused_unless_nobody_answered_there():
    fields = STRATA | {"design": {"clusters": "hid", "selected": 25}}
    assert "20 of the 25 clusters" in stops_of(plan_of(**fields))["fewer-selected"].problem
    assert not stops_of(plan_of(**fields, allow=["fewer-selected"]))
    responding = stops_of(plan_of(**fields, sample={"everybody_responds": True}, allow=["fewer-selected"]))
    assert list(responding) == ["everybody-responds"]


def test_a_number_of_clusters_that_no_machine_counts_is_refused_in_words():
    fields = STRATA | {"design": {"clusters": "hid", "selected": 10**30}, "publish": [{"kind": "count", "by": ["sex"]}]}
    with pytest.raises(StirredError, match="numbers of selected clusters are not whole numbers"):
        stops_of(plan_of(**fields, allow=["fewer-selected"]))


def test_more_records_than_selected_are_refused_without_measured_errors_too():
    with pytest.raises(stirred.errors.DataError, match="more records in a stratum"):
        stirred.mechanisms.named("survey").draw(plan_of(**STRATA | {"design": {"selected": 100}}), PERSONS)


@pytest.mark.parametrize(
    ("population", "final", "stopped"),
    [
        (1_000_000, False, True), (10_000, False, False), (10_801, False, True), (270, False, False),
        (269, False, True), (1080, True, False), (1081, True, True),
    ],
)  # fmt: skip
def test_weights_of_another_population_are_refused(population, final, stopped):
    """The weights add up to 540: at least 5% of the population, or half of it if they are final, at most twice."""
    assert PERSONS["w"].sum() == 540
    weights = {"column": "w", "lower": 1, "upper": 5} | ({"kind": "final", "outside": "cut"} if final else {})
    fields = STRATA | {"weights": weights, "sample": {"population": population, "most": ROWS}}
    found = stops_of(plan_of(**fields))
    assert list(found) == ["weights-population"] * stopped
    if stopped:
        assert f"add up to 540, and the plan states a population of {population:,}" in (
            found["weights-population"].problem
        )
        assert not stops_of(plan_of(**fields, allow=["weights-population"]))


@pytest.mark.parametrize("name", ["income", "sex"])
def test_a_column_without_a_single_value_is_refused(name):
    kind = {"income": pl.Int64, "sex": pl.String}[name]
    data = PERSONS.with_columns(pl.lit(None, dtype=kind).alias(name))
    empty = {
        "attributes": [{"name": "sex", "values": ["f", "m"], "missing": "f"}],
        "variables": [{"name": "income", "lower": 0, "upper": 10, "missing": 0}],
    }
    stop = stops_of(plan_of(**STRATA | empty), data)[f"all-empty:{name}"]
    assert "cannot be allowed" in stop.remedy


def test_a_check_lists_all_its_stops_in_text_and_json():
    found = stirred.check(plan_of(sample={"population": 10**6}), PERSONS)
    assert "STOP several-rows:hid" in str(found) and "STOP weights-population" in str(found)
    assert "A release of this plan would be refused" in str(found)
    fields = json.loads(found.to_json())
    assert [stop["name"] for stop in fields["stops"]] == ["several-rows:hid", "weights-population"]
    assert fields["ids_of_the_unit"]["hid"] == {"rows": 180, "largest": 9}


# -- rows without an estimate --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without(tmp_path_factory) -> Path:
    """A release in which noise left a count below 0: that of a group in which nobody is."""
    attributes = [
        {"name": "sex", "values": ["f", "m", "x"]},
        {"name": "band", "variable": "income", "cuts": [0, 5, 10]},
    ]
    totals = [{"name": "all", "method": "post-stratified", "margins": [{"by": ["sex"], "totals": [300, 300, 10]}]}]
    plan = plan_of(
        unit="person", row="person", attributes=attributes, calibrations=totals,
        queries=[{"by": ["sex", "band"]}, {"of": "income", "by": ["sex"]}],
        publish=[
            {"kind": "mean", "of": "income", "by": ["sex"]},
            {"kind": "count", "by": ["sex"], "calibration": "all"},
            {"kind": "quantiles", "of": "band", "by": ["sex"], "probabilities": ["1/2"]},
        ],
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("without") / "out"
    drawn = stirred.mechanisms.named("survey").draw(plan, PERSONS)
    sums = {"count-sex-band": np.array([150, 120, 150, 120, -2, 1]), "income-sex": np.array([700, 500, 3])}
    replace(drawn, survey=MeasuredSurvey(plan, sums)).write(folder)
    return folder


def test_tables_say_no_estimate_and_why(without):
    texts = {path.name: path.read_text("utf-8") for path in (without / "tables").iterdir()}
    assert "x,,,,,no estimate: noisy counts cannot be adjusted to the public totals,," in texts["count-sex-all.csv"]
    rows = {name: pl.read_csv(without / "tables" / name).row(2, named=True) for name in texts}
    assert rows["mean-income-sex.csv"]["interval"] == "no estimate: what is divided by is not above 0 after noise"
    assert (
        rows["quantiles-band-sex.csv"]["interval"] == "no estimate: the count of the group is not above 0 after noise"
    )
    assert {row["estimate"] for row in rows.values()} == {None}
    assert not [name for name, text in texts.items() if "nan" in text.lower() or "inf" in text]
    readme = words_of((without / "README.txt").read_text("utf-8"))
    assert "1 of 3 rows have no estimate: what is divided by is not above 0 after noise" in readme
    assert "3 of 3 rows have no estimate: noisy counts cannot be adjusted to the public totals" in readme
    assert all(verdict.holds for verdict in stirred.verify(without))


def test_estimates_without_a_number_are_null_in_json_with_the_reason(without):
    found = stirred.estimate(without, ["sex"], of="income")
    fields = json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert fields["estimates"][2]["estimate"] is fields["estimates"][2]["sampling_error"] is None
    kind = fields["estimates"][2]["interval"]
    assert "few records" in fields["interval_kinds"][kind]
    assert found.rows()[3][1] == "-" and found.rows()[3][-1] == kind
