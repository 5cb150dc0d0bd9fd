"""Budgets and shares of survey plans that keep stated errors of the noise, looked at again with the noise itself."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import stirred
from stirred.errors import StirredError
from stirred.survey.estimating.measured import Family
from stirred.survey.measuring import query_noise
from stirred.survey.plan.fields import SurveyPlan


def plan(**fields: Any) -> SurveyPlan:
    base = {
        "unit": "person",
        "rho": "1",
        "weights": {"column": "w", "lower": 1, "upper": 50},
        "attributes": [{"name": "sex", "values": ["f", "m"]}, {"name": "area", "values": ["a", "b", "c"]}],
        "variables": [{"name": "income", "lower": 0, "upper": 100}],
        "queries": [{"by": ["sex", "area"]}, {"by": []}, {"of": "income", "by": ["sex"]}],
    }
    return SurveyPlan(**(base | fields))


def error(of: SurveyPlan, by: list[str], variable: str | None = None) -> float:
    return math.sqrt(float(np.max(Family(of, variable, of.family(variable), ()).noise_variances(by, {}))))


def shares(of: SurveyPlan) -> list[Fraction]:
    return [of.share(one) for one in (*of.queries, *of.publish, *of.imputation)]


@pytest.mark.parametrize("law", ["rho", "epsilon"])
def test_errors_are_kept_and_other_queries_keep_their_noise(law):
    given = plan(**{"rho": None, law: "1"})
    found = stirred.calibrate(given, ["error of sex,area <= 300", "error of total <= 200"])
    assert error(found.plan, ["sex", "area"]) <= 300 and error(found.plan, []) <= 200
    assert max(error(found.plan, ["sex", "area"]) / 300, error(found.plan, []) / 200) > 0.98
    assert sum(shares(found.plan), Fraction(0)) == 1 and found.targets[0].met
    before, after = (query_noise(one, one.queries[2]).parameters for one in (given, found.plan))
    assert before == after
    assert found.fields["budget"] == str(found.plan.budget) and f'{law} = "' in found.paste


def test_the_smallest_rho_for_one_table_is_that_of_its_own_query():
    """Gaussian noise of variance d^2 / (2 rho): nothing else tells the cells better than their own query."""
    given = plan(queries=[{"by": ["sex", "area"], "share": "9/10"}, {"by": [], "share": "1/10"}])
    found = stirred.calibrate(given, "error of sex,area <= 100").plan
    whole = float(query_noise(given, given.queries[0]).variances.max()) * 0.9
    assert whole / 100**2 * 0.98 <= float(found.rho) <= whole / 100**2 * 1.01


def test_standard_errors_and_variables_keep_what_they_had():
    given = plan(queries=[{"by": ["sex"], "share": "1/2"}, {"of": "income", "by": ["sex"], "share": "1/2"}])
    found = stirred.calibrate(given, "relative error of sex in income <= 10% for 20000").plan
    assert error(found, ["sex"], "income") <= 2000
    assert found.budget * found.share(found.queries[0]) == Fraction(1, 2)


def test_limits_on_the_guarantee_are_looked_at_together_with_errors():
    found = stirred.calibrate(plan(), ["error of total <= 2000", "rho <= 5"])
    assert all(one.met for one in found.targets)
    with pytest.raises(StirredError, match="cannot be met together"):
        stirred.calibrate(plan(), ["error of sex <= 20", "power at 5% <= 20%"])


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("error of sex at county <= 5", "bad-target"),
        ("typical error of sex <= 5", "bad-target"),
        ("error of moon <= 5", "unknown-choice"),
        ("error of sex in rent <= 5", "unknown-choice"),
        ("error of area in income <= 5", "unknown-choice"),
    ],
)
def test_what_cannot_be_asked_of_a_survey_is_refused(target, kind):
    with pytest.raises(StirredError) as refused:
        stirred.calibrate(plan(), target)
    assert refused.value.kind == kind, refused.value
