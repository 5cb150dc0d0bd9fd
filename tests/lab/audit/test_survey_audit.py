"""Audits of programs against survey plans: worst pairs lose what the plan allows and no more, and faults are found.

Coins and draws come from fixed seeds; under other seeds an audit of our own program fails with probability 1e-9.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import errors
from stirred.lab.audit import survey_audit
from stirred.lab.audit.plan_audit import audit_plan
from stirred.lab.audit.results import Result
from stirred.lab.audit.survey_audit import Program, audit_survey, plan_program, runs_needed
from stirred.noise import SeededSource
from stirred.survey.audit_pairs import MEASUREMENTS, Made, _changes, audit_pairs, cell_labels
from stirred.survey.data import read_records
from stirred.survey.measuring import query_noise, query_step, true_sums
from stirred.survey.plan.fields import SurveyPlan

NEVER = 1e-9
WEIGHTS = {"column": "w", "lower": 1, "upper": 20, "step": "0.5"}
SEX = {"name": "sex", "values": ["f", "m"]}
REGION = {"name": "reg", "values": ["n", "s", "w"], "in_frame": True}
BAND = {"name": "band", "variable": "inc", "cuts": [0, 25, 50, 100]}
INCOME = {"name": "inc", "lower": 0, "upper": 100}
DEBT = {"name": "debt", "lower": -50, "upper": 30, "step": "0.1"}
STRATA = {
    "strata": "reg",
    "sizes": {"n": {"selected": 4, "upper": 10}, "s": {"selected": 6}, "w": {"selected": 5, "upper": 15}},
}
QUERIES = [{"by": ["reg", "sex"]}, {"of": "inc", "by": ["reg", "sex"]}, {}, {"by": ["sex", "band"]}]


def plan(**more: Any) -> SurveyPlan:
    fields: dict[str, Any] = {
        "epsilon": 1, "weights": WEIGHTS, "variables": [INCOME], "attributes": [SEX, REGION, BAND], "queries": QUERIES,
    }  # fmt: skip
    return SurveyPlan(**fields | more)


def one_query(**more: Any) -> SurveyPlan:
    return plan(**{"attributes": [SEX], "queries": [{"of": "inc", "by": "sex"}]} | more)


FINAL = {"weights": WEIGHTS | {"kind": "final", "outside": "cut"}}
PLANS = {
    "laplace": plan(),
    "gaussian": plan(epsilon=None, rho="1/2"),
    "values only": plan(change="value"),
    "strata": plan(design=STRATA, sample={"stratum_sizes_fixed": True}),
    "strata that vary": plan(design=STRATA),
    "measured errors": plan(design=STRATA, publish=[{"kind": "count", "by": "sex", "errors": "1/4"}]),
    "everybody responds": plan(sample={"everybody_responds": True}),
    "responding sample": plan(starts="responding sample", holds_fixed="target sample"),
    "from weights": plan(starts="weights", **FINAL),
    "moving weights": plan(sample={"most": 40, "fewest": 10}, **FINAL),
    "moving weights, gaussian": plan(epsilon=None, rho=2, sample={"most": 40}, **FINAL),
    "both signs": plan(variables=[INCOME, DEBT], queries=[*QUERIES, {"of": "debt", "by": "sex"}, {"of": "debt"}]),
    "clusters": plan(design={"clusters": "psu", "selected": 8}, publish=[{"kind": "count", "errors": "1/9"}]),
    "without weights": plan(weights=None),
    "large file": plan(sample={"fewest": 6_000}),
    "shrunk weights": plan(weights=WEIGHTS | {"shrink": "1/2", "centre": 10, "rounding": "nearest", "outside": "cut"}),
    "imputed": plan(imputation=[{"of": "sex", "kind": "frequencies", "given": ["reg"], "share": "1/10"}]),
}  # fmt: skip


def made(chosen: SurveyPlan) -> dict[str, Made]:
    return {change.name: Made(chosen, change) for change in _changes(chosen)}


# -- worst pairs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", PLANS)
def test_pairs_fit_the_plan_and_lose_no_more_than_it_allows(which):
    chosen = PLANS[which]
    pairs = audit_pairs(chosen)
    assert pairs
    for pair in pairs:
        one = made(chosen)[pair.name]
        assert 0 < one.told <= chosen.budget
        rows = [pair.tables([form])["survey"].height for form in (False, True)]
        assert abs(rows[0] - rows[1]) <= (pair.name == "does-not-answer")
        assert min(rows) >= chosen.sample.fewest and max(rows) <= (chosen.sample.most or np.inf)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("largest-weight-moves", one_query()),
        ("largest-weight-moves", one_query(epsilon=None, rho="1/3")),
        ("largest-weight-moves", one_query(change="value")),
        ("lowest-to-highest", one_query(queries=[{"of": "inc"}])),
        ("lowest-to-highest", one_query(queries=[{"of": "inc"}], epsilon=None, rho="1/3", change="value")),
        ("smallest-to-largest-weight", one_query(queries=[{}], sample={"everybody_responds": True})),
        ("does-not-answer", one_query(queries=[{}])),
        ("moves-and-turns", one_query(variables=[DEBT | {"lower": -30}], queries=[{"of": "debt", "by": "sex"}])),
        ("all-weights-change", one_query(sample={"most": 30}, **FINAL)),
    ],
)
def test_the_worst_pair_of_one_query_uses_all_of_its_budget(name, chosen):
    assert made(chosen)[name].told == chosen.budget == max(one.told for one in made(chosen).values())


def test_what_is_held_fixed_stays():
    for pair in audit_pairs(PLANS["values only"]):
        first, second = pair.first["survey"], pair.second["survey"]
        if first.height == second.height:
            assert first["reg"].equals(second["reg"])
            assert first["w"].equals(second["w"])


def test_weights_of_all_records_change_only_where_a_plan_has_to_allow_for_it():
    name = "all-weights-change"
    assert name not in made(PLANS["laplace"])
    assert name not in made(PLANS["from weights"])
    one = made(PLANS["moving weights"])[name]
    assert one.tables([True])["survey"].height == 40
    assert set(one.tables([False])["survey"]["w"].to_list()) == {1, 20}  # the changed record keeps its own
    assert set(one.tables([True])["survey"]["w"].to_list()) == {20}


def test_the_empty_cell_is_empty():
    one = made(PLANS["laplace"])["empty-cell"]
    assert "m" not in one.tables([False])["survey"]["sex"].to_list()
    assert one.tables([True])["survey"]["sex"].to_list().count("m") == 1


@pytest.mark.parametrize("which", ["laplace", "gaussian", "strata", "both signs", "moving weights"])
def test_what_is_looked_at_is_the_log_likelihood_ratio(which):
    """At measured values of either file it is the logarithm of a quotient of probabilities of the stated law."""
    chosen = PLANS[which]
    rng = np.random.default_rng(1)
    for pair in audit_pairs(chosen):
        files = [read_records(chosen, dict(pair.tables([form]))) for form in (False, True)]
        seen, expected = [], 0.0
        for query in chosen.queries:
            noise, step = query_noise(chosen, query), float(query_step(chosen, query))
            first, second = (true_sums(one, query) for one in files)
            measured = first + rng.integers(-50, 50, len(first))
            scale = np.array([float(one) for one in noise.parameters])[noise.class_of]
            if noise.law == "laplace":
                expected += float(((np.abs(measured - first) - np.abs(measured - second)) / scale).sum())
            else:
                expected += float((((measured - first) ** 2 - (measured - second) ** 2) / (2 * scale)).sum())
            names = {"query": query.name, "cell": cell_labels(chosen, query)}
            seen.append(pl.DataFrame(names | {"value": measured * step}))
        assert pair.outcomes({MEASUREMENTS: pl.concat(seen)})[0] == pytest.approx(expected, abs=1e-9)


def test_a_plan_in_which_nothing_fits_is_refused():
    narrow = plan(design={"selected": 2}, sample={"fewest": 20}, publish=[{"kind": "count", "errors": "1/2"}])
    with pytest.raises(errors.StirredError) as refused:
        audit_pairs(narrow)
    assert refused.value.kind == "not-audited"


# -- programs --------------------------------------------------------------------------------------------------------


def noisy(chosen: SurveyPlan, share: float, seed: int) -> Program:
    """A program whose noise has a share of the stated scale: rounded normal or Laplace numbers."""
    rng = np.random.default_rng(seed)

    def run(tables: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
        records = read_records(chosen, dict(tables))
        parts = []
        for query in chosen.queries:
            noise = query_noise(chosen, query)
            scale = np.array([float(one) for one in noise.parameters])[noise.class_of]
            drawn = rng.laplace(0, scale) if noise.law == "laplace" else rng.normal(0, np.sqrt(scale))
            values = true_sums(records, query) + np.rint(share * drawn)
            names = {"query": query.name, "cell": cell_labels(chosen, query)}
            parts.append(pl.DataFrame(names | {"value": values * float(query_step(chosen, query))}))
        return {MEASUREMENTS: pl.concat(parts)}

    return run


def result(results: tuple[Result, ...], name: str) -> Result:
    return next(one for one in results if one.name == name)


@pytest.mark.parametrize("which", ["laplace", "gaussian", "strata", "moving weights", "imputed"])
def test_our_own_program_is_not_found_wrong(which):
    chosen = PLANS[which]
    source = SeededSource(3)
    found = audit_plan(chosen, program=plan_program(chosen, source), runs=60, false_alarm=NEVER, source=source)
    assert found.passed, found
    names = [one.name for one in found.results]
    assert "noise-inc-reg-sex" in names or "noise-inc-reg-sex-1" in names
    assert "pair-largest-weight-moves" in names


@pytest.mark.parametrize("which", ["laplace", "gaussian", "strata"])
def test_half_of_the_noise_is_found(which):
    """By the law in every query, each of which has half of its noise."""
    chosen = PLANS[which]
    found = audit_survey(chosen, noisy(chosen, 0.5, 1), false_alarm=1e-6)
    assert found.runs == runs_needed(chosen)
    wrong = [one.name for one in found.wrong]
    assert wrong == [one.name for one in found.results if one.name.startswith("noise-")]
    assert all("Too little noise, a privacy fault" in one.said for one in found.wrong)


@pytest.mark.parametrize("chosen", [one_query(epsilon=2), one_query(epsilon=None, rho=1)], ids=["laplace", "gaussian"])
def test_half_of_the_noise_breaks_the_guarantee_of_a_pair(chosen, monkeypatch):
    """With the law left out: the pair alone shows it, and shows nothing of the stated noise."""

    def unknown(*given: Any, **more: Any) -> None:
        raise errors.audit_of_plan("nothing that is looked at here")

    monkeypatch.setattr(survey_audit, "audit_survey", unknown)
    monkeypatch.setattr("stirred.survey.audit_pairs._changes", lambda chosen: _changes(chosen)[:1])
    effort: dict[str, Any] = {"runs": 1_500, "false_alarm": 1e-6, "source": SeededSource(5)}
    found = audit_plan(chosen, program=noisy(chosen, 0.5, 2), **effort)
    assert [one.name for one in found.wrong] == ["pair-largest-weight-moves"]
    assert audit_plan(chosen, program=noisy(chosen, 1.0, 2), **effort).passed


FAULTS = {
    "there-once": lambda frame: frame[1:],
    "whole-multiples": lambda frame: frame.with_columns(pl.col("value") + 0.1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_missing_sums_and_values_off_the_lattice_are_found(name):
    chosen, own = PLANS["laplace"], plan_program(PLANS["laplace"], SeededSource(1))
    found = audit_survey(chosen, lambda tables: {MEASUREMENTS: FAULTS[name](own(tables)[MEASUREMENTS])}, runs=4)
    assert result(found.results, name).wrong


def test_rows_twice_and_rows_of_no_cell_are_found():
    chosen, own = PLANS["laplace"], plan_program(PLANS["laplace"], SeededSource(1))

    def doubled(tables: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
        frame = own(tables)[MEASUREMENTS]
        return {MEASUREMENTS: pl.concat([frame, frame[:2], frame[:1].with_columns(cell=pl.lit("nowhere"))])}

    numbers = result(audit_survey(chosen, doubled, runs=2).results, "there-once").numbers
    assert (numbers["twice"], numbers["unplanned"], numbers["missing"]) == (4, 2, 0)


def test_one_noise_for_all_queries_and_the_same_noise_in_every_run_are_found():
    chosen = one_query(queries=[{"by": "sex"}, {"of": "inc", "by": "sex"}])
    rng = np.random.default_rng(4)
    records = read_records(chosen, dict(audit_pairs(chosen)[0].first))

    def sharing(repeated: bool) -> Program:
        first = rng.laplace(0, 1, 2)

        def run(tables: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
            drawn = first if repeated else rng.laplace(0, 1, 2)
            parts = []
            for query in chosen.queries:
                scale, step = float(query_noise(chosen, query).parameters[0]), float(query_step(chosen, query))
                values = (true_sums(records, query) + np.rint(drawn * scale)) * step
                parts.append(pl.DataFrame({"query": query.name, "cell": ["f", "m"], "value": values}))
            return {MEASUREMENTS: pl.concat(parts)}

        return run

    assert result(audit_survey(chosen, sharing(False), runs=100).results, "between-queries").wrong
    assert result(audit_survey(chosen, sharing(True), runs=100).results, "between-runs").wrong


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        ({"other": pl.DataFrame({"a": [1]})}, "there is no table 'measurements'"),
        ({MEASUREMENTS: pl.DataFrame({"query": ["count"], "value": [1]})}, "there is no column 'cell'"),
        ({MEASUREMENTS: pl.DataFrame({"query": ["count"], "cell": ["all"], "value": ["x"]})}, "is not all numbers"),
    ],
)
def test_outputs_that_cannot_be_read_are_refused(made_of, said):
    with pytest.raises(errors.StirredError, match=said):
        audit_survey(PLANS["laplace"], lambda tables: made_of, runs=2)


def test_effort_that_makes_no_sense_is_refused():
    for effort in ({"runs": 1}, {"false_alarm": 1.0}):
        with pytest.raises(errors.StirredError):
            audit_survey(PLANS["laplace"], noisy(PLANS["laplace"], 1.0, 1), **effort)  # type: ignore[arg-type]


def test_budgets_of_shares_add_up_in_the_loss_of_a_pair():
    """A query with a quarter of the budget has a quarter of the loss."""
    both = one_query(queries=[{"of": "inc", "by": "sex", "share": "1/4"}, {"by": "sex", "share": "3/4"}])
    assert made(both)["largest-weight-moves"].told == 1
    assert made(both)["lowest-to-highest"].told == Fraction(1, 8)
