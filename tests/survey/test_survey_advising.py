"""The page for a committee: it says for a plan what its public facts give, and nothing that they do not."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import stirred
from stirred.errors import StirredError
from stirred.survey.advice import advice_pictures, advise_lines, plan_advice, weight_trade
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify

FIELDS = {
    "weights": {"column": "w", "lower": 2, "upper": 40},
    "sample": {"fewest": 500, "most": 800, "population": 9000},
    "attributes": [{"name": "sex", "values": ["f", "m"]}],
    "variables": [{"name": "income", "lower": 0, "upper": 1000}],
    "queries": [{"by": "sex", "share": "1/4"}, {"of": "income", "by": "sex", "share": "3/4"}],
}


@pytest.fixture
def page(tmp_path):
    def made(of=None, sampled=None, as_json=False, **changes):
        fields = {"dataset": "A test", "epsilon": 1} | FIELDS | changes
        fields = {name: value for name, value in fields.items() if value is not None}
        (tmp_path / "plan.toml").write_text(SurveyPlan(**fields).to_toml())
        return "\n".join(advise_lines(tmp_path / "plan.toml", of, sampled, as_json))

    return made


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_page_says_where_the_plan_stands_and_what_it_costs(page):
    said = flat(page())
    assert "starts at the target sample and holds the frame fixed: setting 6 (recommended)" in said
    assert "one selected unit's record, whether it answers or not, against another unit in its place" in said
    # One record leaves one cell and enters another: 80 in all, Laplace noise of scale 80 / (1/4).
    assert "count-sex 0.25 80 452.6" in said
    assert "may not claim it" in said and "sampling is not part of it (Table 6.3)" in said
    assert "1 population nothing may change sampling not known" in said


def test_gaussian_plans_get_gaussian_noise(page):
    found = json.loads(page(epsilon=None, rho=2, as_json=True))
    row = found["rows"][5]
    unit = next(cost for cost in row["costs"] if cost["change"] == "unit")
    assert found["epsilon"] is None and found["rho"] == "2" and unit["sensitivity"] == "40"
    assert math.isclose(unit["noise_sd"], 40 / math.sqrt(2 * 2))
    assert "Gaussian noise" in page(epsilon=None, rho=2)
    laplace = json.loads(page(as_json=True))["rows"][5]["costs"]
    assert math.isclose(max(cost["noise_sd"] for cost in laplace), 40 * math.sqrt(2))


def test_without_the_most_records_settings_with_moving_weights_have_no_number(page):
    plan = SurveyPlan(**(FIELDS | {"epsilon": 1, "sample": {}}))
    rows = plan_advice(plan).rows
    assert [row.number for row in rows if row.costs[0].noise_sd is not None] == [6, 9, 10]
    assert "does not say how many records the sample can have at most" in flat(page(sample={}))


def test_what_sampling_would_buy_and_for_whom_it_vanishes(page):
    said = flat(page(sampled="10/100"))
    assert "10 of 100 units would turn epsilon 1 on the sample into epsilon 0.159 on the frame" in said
    assert "nosy neighbour" in said and "journalist" in said and "epsilon stays 1" in said
    fields = json.loads(page(sampled="10/100", as_json=True))["sampling"]
    assert math.isclose(fields["on_frame"], math.log(1 + 0.1 * (math.e - 1))) and not fields["claimable"]
    gaussian = json.loads(page(sampled="10/100", epsilon=None, rho=1, as_json=True))["sampling"]
    assert gaussian["on_frame"] < gaussian["on_sample"] < 8 and gaussian["delta"] == "0.000001"
    with pytest.raises(StirredError, match="such as 1000/250000"):
        page(sampled="a tenth")


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ("edited and imputed data", "copied or averaged into other people's missing answers"),
        ("weights", "their weights"),
    ],
)
def test_later_starts_are_outside_the_ten_and_what_they_give_up_is_said(page, starts, words):
    said = flat(page(starts=starts))
    assert "none of the ten settings" in said and words in said and "not protected" in said
    assert "starts at the weights" not in said and "holds nothing fixed" in flat(page(starts=starts, holds_fixed=""))
    assert json.loads(page(starts=starts, as_json=True))["plan"]["setting"] is None


def test_the_trade_of_weights_has_the_noise_of_the_plan(page, tmp_path):
    page()
    trade = weight_trade(SurveyPlan.from_toml(tmp_path / "plan.toml"), "income")
    stands = json.loads(page(as_json=True))["plan"]["queries"]
    noise = {one["query"]: one["noise_sd"] for one in stands}
    assert math.isclose(trade.at().noise_sd, noise["income-sex"], rel_tol=1e-3)
    assert [picture.name for picture in advice_pictures(tmp_path / "plan.toml")] == ["weight-cut"]


def test_where_there_is_nothing_to_trade_the_page_says_why(page, tmp_path):
    assert "all weights are equal" in page(weights=None)
    assert "it needs [sample] most and population" in flat(page(sample={"most": 800}))
    final = {"column": "w", "lower": 2, "upper": 40, "kind": "final", "outside": "cut"}
    said = flat(page(weights=final))
    assert "One record may change the weights of all others, and the noise covers that" in said
    assert "recommend it for design weights; these are final weights" in said
    assert "Closer bounds lower the noise in proportion" in said
    assert advice_pictures(tmp_path / "plan.toml") == ()
    assert "has no query of weighted counts" in flat(page(queries=[{"of": "income"}]))


def test_a_page_fits_a_committees_paper(page):
    assert max(len(line) for line in page(sampled="100/9000").splitlines()) <= 111
    assert not Path("figures").exists()


def test_an_explanation_does_not_say_that_the_frame_was_released():
    """A survey takes its frame as known and publishes nothing of it, unlike a swap with its kept counts."""
    kept = specify(SurveyPlan(**(FIELDS | {"epsilon": 1})))
    said = flat(str(stirred.explain(kept)))
    assert "Not released as it is, only taken as known: (1)" in said
    assert "Published exactly" not in said and "may be published exactly" not in said
    free = specify(SurveyPlan(**(FIELDS | {"epsilon": 1, "holds_fixed": ""})))
    assert "taken as known" not in flat(str(stirred.explain(free)))
    released = replace(kept, facts=())
    assert "Published exactly, and so not protected at all" in flat(str(stirred.explain(released)))
