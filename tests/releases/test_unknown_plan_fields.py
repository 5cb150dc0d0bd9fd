"""A field that a plan does not have is named with the one that may have been meant, and with the page of its plan."""

from __future__ import annotations

import pytest

from stirred.errors import PlanError
from stirred.survey.plan.fields import SurveyPlan
from stirred.swap.plan.fields import SwapPlan
from stirred.topdown.plan.fields import TopDownPlan


@pytest.mark.parametrize(
    ("plan", "fields", "said", "page"),
    [
        (SwapPlan, {"raet": "0.1"}, "raet: there is no such field (did you mean rate?)", "plans"),
        (SwapPlan, {"zzzzzz": 1}, "zzzzzz: there is no such field", "plans"),
        (SwapPlan, {"input": {"pth": "a.csv"}}, "input.pth: there is no such field (did you mean path?)", "plans"),
        (TopDownPlan, {"tabels": []}, "tabels: there is no such field (did you mean tables?)", "topdown"),
        (TopDownPlan, {"tables": [{"naem": "x"}]}, "naem: there is no such field (did you mean name?)", "topdown"),
        (SurveyPlan, {"queres": []}, "queres: there is no such field (did you mean queries?)", "surveys"),
    ],
)
def test_an_unknown_field_is_named_with_a_likely_one(plan, fields, said, page):
    with pytest.raises(PlanError) as refusal:
        plan(**fields)
    assert said in str(refusal.value) and f"(stirred docs {page})" in str(refusal.value)
