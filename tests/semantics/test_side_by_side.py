"""Guarantees side by side: numbers of cases that follow, beliefs by the rule of Bayes, rankings by implication."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from test_explaining import EXAMPLES

from repeats import ALL_CASES
from stirred.errors import StirredError
from stirred.semantics.side_by_side import QUESTIONS, side_by_side
from stirred.spec import flavors
from stirred.spec.loading import load
from stirred.spec.specification import Flavor

NAMED = (
    "pure",
    "approximate",
    "zCDP",
    "Renyi",
    "swap",
    "census",
    "metric",
    "pufferfish",
    "nothing",
    "infinite",
    "listed",
)


def told(found):
    return {one.question: one.answers for one in found.consequences}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("pair", list(itertools.combinations(NAMED, 2)), ids=" and ".join)
def test_every_two_guarantees_are_put_side_by_side(pair):
    found = side_by_side(*(EXAMPLES[name] for name in pair))
    assert tuple(one.question for one in found.questions) == QUESTIONS
    assert all(len(one.answers) == 2 and all(one.answers) for one in (*found.questions, *found.consequences))
    (verdict,), (ranking,) = found.verdicts, found.rankings
    begins = {
        "equal": "Yes",
        "first stronger": "Yes",
        "second stronger": "Yes",
        "incomparable": "No",
        "not known": "Not known",
    }
    assert ranking.startswith(begins[verdict.stronger]) and ranking.endswith(".")
    assert max(map(len, str(found).splitlines())) <= 110
    assert json.loads(found.to_json())["rankings"] == [ranking]
    for answers in told(found).values():
        for answer in answers:
            number = answer.split()[0].rstrip("%,")
            assert number in ("nearly", "not") or 0 <= float(number) <= 100


def test_cases_of_a_hundred_and_beliefs_of_pure_guarantees():
    found = told(side_by_side(flavors.pure().at(1), flavors.pure().at(2), levels=[0.05], prior=0.25))
    for at, epsilon in enumerate((1, 2)):
        power = min(math.exp(epsilon) * 0.05, 1 - math.exp(-epsilon) * 0.95)
        assert int(found["any method, 5 false alarms in 100"][at]) == math.ceil(100 * power)
        odds = math.exp(epsilon) / 3
        shown = float(found["any method, belief from 25% before"][at].rstrip("%"))
        assert 100 * odds / (1 + odds) <= shown <= 100 * odds / (1 + odds) + 1
    two = math.ceil(100 * min(math.exp(2) * 0.05, 1 - math.exp(-2) * 0.95))
    assert found["2 persons together, 5 false alarms in 100"][0] == str(two)


def test_names_from_strangers_are_written_as_text():
    hostile = Flavor(
        *(getattr(flavors.pure(), part) for part in ("domain", "multiverse", "input_premetric", "output_premetric"))
    )
    found = side_by_side(hostile.at(1, name="<script>alert(1)</script>"), flavors.pure().at(2))
    assert "<script>" not in found._repr_html_() and "&lt;script&gt;" in found._repr_html_()


def test_the_picture_has_a_line_for_each_guarantee_whose_curve_is_known():
    picture = side_by_side(EXAMPLES["swap"], EXAMPLES["zCDP"], EXAMPLES["census"]).picture()
    assert [line.name.partition(": ")[2] for line in picture.lines[:3]] == [
        "the swap itself",
        "any method",
        "its own noise",
    ]
    assert side_by_side(EXAMPLES["nothing"], EXAMPLES["infinite"]).picture() is None


@pytest.mark.parametrize("prior", [0, 1, -1, 2])
def test_a_prior_is_a_probability(prior):
    with pytest.raises(StirredError, match="prior"):
        side_by_side(flavors.pure().at(1), flavors.pure().at(2), prior=prior)


@pytest.mark.repeats
def test_equal_distances_with_other_changes_and_budgets_on_other_scales_are_not_called_equal_or_unordered():
    rows = {one.question: one for one in side_by_side(flavors.pure().at(1), flavors.zcdp().at(1)).questions}
    assert rows["How much?"].alone == "not on one scale" and rows["Whose record?"].alone == "equal"
    kept = flavors.pure("record", invariants=EXAMPLES["swap"].multiverse.invariants).at(1)
    pairs = list(itertools.combinations([*EXAMPLES.values(), kept], 2))
    for pair in [(EXAMPLES["swap"], kept), *(pairs if ALL_CASES else pairs[::6])]:
        whose = side_by_side(*pair).questions[2]
        assert whose.alone != "equal" or whose.answers[0] == whose.answers[1]


def test_a_ranking_says_that_one_is_about_fewer_releases():
    (said,) = side_by_side(load("das-2020-overall"), load("topdown-2020-pl")).rankings
    assert said.startswith("Yes: topdown-2020-pl promises more than das-2020-overall. They are not about the same")
    assert "das-2020-overall covers PL 94-171 redistricting file, Demographic and Housing" in said
    assert "releases" not in side_by_side(load("epsilon=1"), load("epsilon=2")).rankings[0]
