"""Limits in sentences: numbers beside their formulas, rounded the safe way, in every form; and why not, for others."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.limits import Pufferfish, limit_at, posterior_bounds, power_bounds
from stirred.loss import GaussianCurve
from stirred.report.limit_sentences import TEMPLATES, Asked, about, shown_down
from stirred.report.limits_said import of_epsilon, of_explanation
from stirred.semantics import explain
from stirred.spec import Invariant, OutputPremetric, Specification, flavors
from stirred.spec.loading import load


def section(specification: Specification, **asked):
    return of_explanation(explain(specification, **asked))


def said(found):
    return [one.id for one in found.statements]


def questions(found):
    return {one.question: one.distance for one in found.limits}


# -- sentences -----------------------------------------------------------------------------------------------


def test_every_sentence_has_a_source_and_one_with_numbers_a_formula():
    numbers = {"lowest", "factor", "priors", "lower", "upper", "levels", "powers", "radius", "power"}
    for template in TEMPLATES.values():
        assert template.section == "limits" and template.source
        places = set(re.findall(r"{(\w+)}", template.words))
        assert bool(places & numbers) <= bool(template.formula)


@given(st.floats(0.001, 12), st.integers(1, 6))
def test_shown_numbers_never_understate(epsilon, distance):
    limit = limit_at("q", epsilon, distance)
    for one in about(limit, Asked(epsilon)):
        for name, fact in one.facts.items():
            if isinstance(fact, str) or name in ("levels", "priors"):
                continue
            values = fact.values if hasattr(fact, "values") else (float(fact.value),)
            texts = re.split(r", | and ", fact.shown) if hasattr(fact, "values") else [fact.shown]
            for value, text in zip(values, texts, strict=True):
                shown = float(text.replace(",", "")) if not text.startswith("e^") else math.inf
                if name in ("lower", "lowest"):
                    assert shown <= value + 1e-9
                else:
                    assert shown >= value - 1e-9 * (1 + value)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.0123, "0.012"), (0.00012, "0.0001"), (0.00004, "0"), (1, "1.000")]
)
def test_lower_bounds_are_rounded_down(value, text):
    assert shown_down(value) == text


# -- an epsilon and a number of records ----------------------------------------------------------------------


def test_the_standard_questions_are_answered_for_one_record_and_for_all():
    found = of_epsilon(1, 10)
    assert questions(found) == {"one record, all others known": 1, "the whole database, only its size known": 10}
    assert said(found) == ["limits.what"] + 2 * [
        "limits.data", "limits.predictive", "limits.posterior", "limits.power", "limits.attained",
    ]  # fmt: skip
    one = found.limits[0]
    assert one.power.upper == pytest.approx(power_bounds(one.levels, 1).upper)
    assert one.posterior.upper == pytest.approx(posterior_bounds(one.priors, 1).upper)
    assert (float(one.data.lower), float(one.data.upper)) == (pytest.approx(1 / math.e), pytest.approx(math.e))
    words = found.statements[3].words
    assert "a probability of 0.01, 0.1 and 0.5" in words and "at most 0.027, 0.232 and 0.732" in words


def test_infinite_and_vacuous_answers_are_said_as_such():
    endless = of_epsilon(1, 10, distance="infinity")
    assert said(endless) == ["limits.what", "limits.infinite"]
    assert "infinitely far apart" in endless.statements[1].words
    assert json.loads(endless.to_json())["limits"][0]["distance"] is None
    assert said(of_epsilon("infinity", 10))[1:] == ["limits.infinite"] * 2
    assert "epsilon is infinite" in of_epsilon("infinity", 10).statements[1].words
    assert said(of_epsilon(0, 10, distance="infinity"))[1:] == ["limits.infinite"]
    assert said(of_epsilon(5, 100))[-1] == "limits.vacuous"
    assert "epsilon times the distance is 500.00" in of_epsilon(5, 100).statements[-1].words


def test_text_and_json_hold_the_same_statements():
    found = of_epsilon(Fraction(1, 3), 4, levels=[0.2], priors=[0.3, 0.6])
    fields = json.loads(found.to_json())
    text = " ".join(found.text().split())
    for one in fields["statements"]:
        assert one["words"] in text and one["section"] == "limits"
    assert fields["limits"][0]["levels"] == [0.2] and fields["limits"][0]["priors"] == [0.3, 0.6]
    assert "epsilon = 0.34" in text


# -- explanations --------------------------------------------------------------------------------------------


def test_a_bounded_pure_guarantee_is_asked_at_one_record_and_at_groups():
    found = section(flavors.pure("person").at(1))
    assert questions(found) == {"the nearest two datasets": 1, "2 persons replaced": 2, "5 persons replaced": 5}
    assert found.statements[-1].id == "limits.further" and "the distance is n:" in found.statements[-1].words


def test_an_unbounded_one_at_twice_the_distance():
    found = section(flavors.pure("person", bounded=False).at(1), groups=[3])
    assert questions(found) == {"the nearest two datasets": 1, "one person replaced": 2, "3 persons replaced": 6}
    assert "up to 2n" in found.statements[-1].words


def test_the_whole_database_where_its_size_is_known():
    specification = flavors.pure("person").at("0.01", facts=(("records", 40),))
    found = section(specification, groups=[2, 50])
    assert questions(found) == {"the nearest two datasets": 1, "2 persons replaced": 2, "all 40 persons": 40}
    assert found.limits[-1].power.upper == pytest.approx(power_bounds(found.limits[-1].levels, 0.4).upper)


def test_universes_decide_the_nearest_distance():
    swapped = load("psa-2010")
    found = section(swapped)
    assert found.limits[0].distance == 2
    given = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=2).at("0.1")
    nearest = section(given)
    assert questions(nearest)["the nearest two datasets"] == 2
    (believed,) = [one for one in nearest.statements if one.id == "limits.posterior"]
    assert "whoever knows what is held fixed and gave" in believed.words
    assert nearest.limits[0].power.upper == pytest.approx(power_bounds(nearest.limits[0].levels, 0.2).upper)


def test_a_pufferfish_specification_is_told_in_secrets():
    case = Pufferfish("abc", {"me": [0.5, 0.25, 0.25]}, {x: x for x in "abc"}, [("a", "b"), ("b", "c")])
    found = section(case.specification(1))
    assert said(found) == ["limits.attackers", "limits.given", "limits.secrets", "limits.power"]
    assert questions(found) == {"the nearest two distributions": 1, "the farthest two distributions": 2}


@pytest.mark.parametrize(
    "specification",
    [
        flavors.zcdp().at("2.63"),
        flavors.approximate("1e-6").at(1),
        flavors.renyi(2).at(1),
        flavors.trade_off().at(GaussianCurve(1)),
        flavors.flavor(OutputPremetric("total-variation")).at("0.1"),
    ],
)
def test_remarks_5_3_7_and_5_6_4_other_standards_get_one_sentence(specification):
    found = section(specification)
    assert said(found) == ["limits.other"] and found.limits == ()
    assert specification.output_premetric.symbol in found.statements[0].words
    assert found.statements[0].source.endswith("Remarks 5.3.7 and 5.6.4")
    assert found.text(brief=True).count("  - ") == 1


def test_nothing_and_some_events_get_one_sentence_too():
    alone = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=math.inf).at(1)
    assert said(section(alone)) == ["limits.nothing"]
    assert said(section(flavors.pure().at("infinity"))) == ["limits.nothing"]
    assert said(section(flavors.subspace("the span of the queries").at(1))) == ["limits.events"]


def test_neighbours_alone_are_asked_at_their_distance_only():
    assert questions(section(flavors.blowfish("policy").at(1))) == {"the nearest two datasets": 1}
    assert questions(section(flavors.metric("metres").at(1))) == {"the nearest two datasets": 1}


def test_html_holds_the_sentences_and_the_table():
    html = section(flavors.pure().at(1)).html()
    assert html.startswith("<h3>What can at most be learnt</h3>") and "<table>" in html
    assert "tests whose probability of a false alarm" in html
    assert "<table>" not in section(flavors.zcdp().at(1)).html()
