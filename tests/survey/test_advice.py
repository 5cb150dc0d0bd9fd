"""The advice, read as a member of a committee reads it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

from stirred import errors
from stirred.survey.advice import Advice, advise
from stirred.survey.plan.sensitivity import Bounds, Estimator, SurveyFacts, Units
from stirred.survey.plan.settings import SETTINGS

FACTS = SurveyFacts(
    (
        Units(Bounds(50, 120), Bounds(0, 1), stratum="city"),
        Units(Bounds(200, 400), Bounds(0, 1), stratum="country"),
    ),
    fewest=800,
    most=1000,
    stratum_sizes_fixed=True,
    title="Household survey",
)


def flat(advice: Advice) -> str:
    return " ".join(str(advice).split())


def line(advice: Advice, number: int) -> str:
    return next(one for one in str(advice).splitlines() if re.match(rf"{number} ", one))


def test_it_opens_with_what_to_do_and_why():
    said = flat(advise(FACTS, 1))
    assert said.startswith("Where should the guarantee start? Household survey: Horvitz-Thompson total at epsilon 1")
    opening = said[: said.index("starts at")]
    assert "recommend setting 6: start at the target sample and hold the frame fixed" in opening
    assert "Design weights can be treated as fixed" in opening
    assert "It protects one selected unit's record, whether it answers or not" in opening
    assert "is an open question" in opening
    assert "standard deviation of 566 if a unit may be replaced by another" in opening


def test_the_table_has_a_line_for_each_setting():
    advice = advise(FACTS, 1)
    for setting in SETTINGS:
        shown = line(advice, setting.number)
        assert setting.level in shown and setting.recommendation.verdict in shown
        assert ("fixed" if setting.frame_invariant else "may change") in shown
        assert ("sampling" if setting.level in ("population", "frame") else "nothing") in shown.split(None, 3)[-1]
    assert max(map(len, str(advice).splitlines())) <= 110


def test_weights_that_may_change_cost_a_thousand_times_the_noise():
    advice = advise(FACTS, 1)
    costs = {row.number: row.costs[1].noise_sd for row in advice.rows}
    assert costs[6] == pytest.approx(400 * math.sqrt(2))
    assert costs[4] == pytest.approx((400 + 999 * 350) * math.sqrt(2))
    assert "496,000" in line(advice, 4) and " 566 " in line(advice, 6)


def test_what_nobody_knows_is_said_with_the_reason():
    advice = advise(FACTS, 1)
    assert line(advice, 1).count("not known") == line(advice, 2).count("not known") == 2
    assert "2, 3: At the level of the frame, changing one record may change who is sampled" in flat(advice)
    assert all(cost.not_known and cost.sensitivity is None for cost in advice.rows[0].costs)
    known = advise(replace(FACTS, design_depends_on_frame=False, population_changes_one=True), 1)
    assert "not known for" not in flat(known) and "Why some noise" not in flat(known)


def test_final_weights_are_fixed_in_no_setting():
    advice = advise(replace(FACTS, weights="final"), 1)
    assert all(line(advice, number).count("not known") == 2 for number in range(1, 11))
    assert "What it costs in noise is not known for this survey" in flat(advice)
    cut = advise(replace(FACTS, weights="final", weights_cut_by_rule=True), 1)
    assert {row.weights_fixed for row in cut.rows} == {False}
    assert "496,000" in line(cut, 6) and "fixed in no setting" in flat(cut)


def test_sampling_is_counted_only_at_the_frame_with_weights_that_stay():
    facts = replace(FACTS, design_depends_on_frame=False, population_changes_one=True)
    plain, counted = advise(facts, 1), advise(facts, 1, epsilon_on_sample="2.9")
    for before, after in zip(plain.rows, counted.rows, strict=True):
        if before.starts == "frame":
            assert [cost.epsilon for cost in after.costs] == [after.costs[0].epsilon] * 2 and after.costs[0].epsilon > 2
            assert after.costs[1].noise_sd == pytest.approx(before.costs[1].noise_sd / 2.9)
        else:
            assert before.costs == after.costs
    assert "Against anyone who may know who was sampled, the guarantee is that larger epsilon" in flat(counted)
    with pytest.raises(errors.SurveyError):
        advise(facts, 1, epsilon_on_sample="0.5")


def test_a_design_that_no_record_changes_is_noted():
    said = flat(advise(replace(FACTS, design_depends_on_frame=False), 1))
    assert "does then not count against settings 2 to 5, 7 and 8" in said
    assert "does then not count" not in flat(advise(FACTS, 1))


def test_it_is_the_same_as_data():
    advice = advise(FACTS, "1/2", Estimator("hajek", "proportion"))
    data = json.loads(advice.to_json())
    assert data["stirred_survey_advice"] == 1 and data["epsilon"] == "0.5" and len(data["rows"]) == 10
    best = next(row for row in data["rows"] if row["verdict"] == "recommended")
    assert best["number"] == advice.recommended.number == 6
    assert best["costs"][1]["sensitivity"] == "8/807"  # 400 / (400 + 799 x 50)
    assert data["rows"][0]["costs"][0]["sensitivity"] is None


def test_wrong_questions_are_errors_and_not_unknown():
    with pytest.raises(errors.SurveyError, match="between 0 and 1"):
        wide = replace(FACTS, units=(Units(Bounds(1, 2), Bounds(0, 5)),))
        advise(wide, 1, Estimator("hajek", "proportion"))
    for epsilon in (0, -1, "infinity", "a little"):
        with pytest.raises(errors.StirredError):
            advise(FACTS, epsilon)
