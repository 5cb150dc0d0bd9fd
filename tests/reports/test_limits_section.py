"""Limits in sentences: numbers beside their formulas, rounded the safe way, in every form; and why not, for others."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from html import unescape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.errors import StirredError
from stirred.lab.limits.pufferfish import Pufferfish
from stirred.limits import limit_at, posterior_bounds, power_bounds
from stirred.loss import GaussianCurve
from stirred.reports.limits_section import TEMPLATES, about, of_epsilon, of_explanation
from stirred.reports.page import report_text
from stirred.reports.subjects import subject
from stirred.semantics import explain
from stirred.semantics.sentences.formatting import shown_down, shown_up
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
        assert template.id.startswith("limits.") and template.source
        places = set(re.findall(r"{(\w+)}", template.words))
        assert bool(places & numbers) <= bool(template.formula)


@given(st.floats(1e-9, 60), st.integers(1, 6))
def test_shown_numbers_never_understate(epsilon, distance):
    limit = limit_at("q", epsilon, distance, priors=[1e-9, 0.01, 0.5])
    for one in about(limit, epsilon):
        for name, fact in one.facts.items():
            if isinstance(fact, str) or name in ("levels", "priors"):
                continue
            values = fact.values if hasattr(fact, "values") else (float(fact.value),)
            texts = re.split(r", | and ", fact.shown) if hasattr(fact, "values") else [fact.shown]
            for value, text in zip(values, texts, strict=True):
                shown = float(text.replace(",", "")) if not text.startswith("e^") else math.inf
                if name in ("lower", "lowest") or one.id == "limits.attained":
                    assert shown <= value * (1 + 1e-9) and (value == 0 or shown >= 0.9 * value)
                else:
                    assert shown >= value * (1 - 1e-9) and (math.isinf(shown) or shown <= 1.12 * value)


@pytest.mark.parametrize(
    ("value", "down", "up"),
    [
        (0.0, "0", "0"),
        (0.01234, "0.0123", "0.0124"),
        (0.00012, "0.00012", "0.00012"),
        (4.54321e-7, "4.54e-7", "4.55e-7"),
        (0.5432, "0.543", "0.544"),
        (1 - 1e-5, "0.999", "0.99999"),
        (1.0, "1", "1"),
    ],
)
def test_probabilities_keep_their_size_when_rounded(value, down, up):
    assert (shown_down(value), shown_up(value)) == (down, up)


def test_rows_of_small_radii_differ():
    rows = {tuple(shown_up(float(power), 0.01) for power in limit_at("q", 0.001, d).power.upper[:1]) for d in (1, 2, 5)}
    assert rows == {("0.010011",), ("0.010021",), ("0.010051",)}
    assert shown_down(0.01 * math.exp(-0.001), 0.01) == "0.00999"
    assert shown_up(0.01 + 1e-17, 0.01) == "0.01000000001"
    assert shown_up(0.01, 0.01) == shown_down(0.01, 0.01) == "0.01"


# -- an epsilon and a number of records ----------------------------------------------------------------------


def test_the_standard_questions_are_answered_for_one_record_and_for_all():
    found = of_epsilon(1, 10)
    assert questions(found) == {"one record, all others known": 1, "the whole database, only its size known": 10}
    assert said(found) == ["limits.what"] + 2 * [
        "limits.data", "limits.predictive", "limits.posterior", "limits.power", "limits.attained",
    ] + ["limits.unknown"]  # fmt: skip
    one = found.limits[0]
    assert one.power.upper == pytest.approx(power_bounds(one.levels, 1).upper)
    assert one.posterior.upper == pytest.approx(posterior_bounds(one.priors, 1).upper)
    assert (float(one.data.lower), float(one.data.upper)) == (pytest.approx(1 / math.e), pytest.approx(math.e))
    words = found.statements[3].words
    assert "a probability of 0.01, 0.1 and 0.5" in words and "at most 0.0268, 0.232 and 0.732" in words


def test_every_sentence_with_a_number_says_for_whom_it_holds():
    for one in of_epsilon(1, 10).statements:
        if one.id in ("limits.data", "limits.predictive", "limits.posterior"):
            assert re.search("somebody who considers only datasets possible that are at most (1|10) apart", one.words)
        if one.id == "limits.power":
            assert re.search("two hypotheses whose possible datasets are at most (1|10) apart", one.words)
    given = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=2).at("0.1")
    told = [one.words for one in section(given).statements if "somebody who considers only" in one.words]
    assert len(told) == 3
    assert all("apart and knows the number of persons and what is held fixed" in words for words in told)


def test_what_is_typed_is_shown_as_typed():
    for typed in ("0.001", "1/3", "0.000001", "2.63", "1", "1e-9", "1e400"):
        assert f"epsilon = {typed} for each record" in of_epsilon(typed, 100).heading
    assert "epsilon = 0.05 for" in of_epsilon(0.05, 2).heading
    for typed in ("0.001", "1/3", "0.000001", "0.0001"):
        assert f"epsilon = {typed}" in str(explain(flavors.pure().at(typed)))


def test_what_is_too_large_or_too_small_for_a_float_is_answered():
    assert "too large to compute with" in of_epsilon("1e400", 2).statements[1].words
    with pytest.raises(StirredError, match="records"):
        of_epsilon(1, 10**400)
    tiny = of_epsilon("1e-400", 2)
    assert "limits.zero" not in said(tiny)
    assert said(of_epsilon(0, 2))[1:3] == ["limits.zero"] * 2
    assert "beliefs stay what they were" in of_epsilon(0, 2).statements[1].words


def test_beliefs_may_be_limited_where_tests_are_not():
    found = of_epsilon(20, 1, priors=[1e-12, 1e-9])
    assert "limits.vacuous" not in said(found) and "limits.posterior" in said(found)
    (believed,) = [one for one in found.statements if one.id == "limits.posterior"]
    assert "at most 0.000485 and 0.327" in believed.words
    assert said(of_epsilon(20, 1, priors=[0.1])) == ["limits.what", "limits.vacuous", "limits.unknown"]


def test_one_record_is_asked_about_once():
    assert questions(of_epsilon(1, 1)) == {"the one record there is": 1}
    assert questions(of_epsilon(1, 3, bounded=False)) == {
        "whether one record is there, all others known": 1,
        "what one record says, all others known": 2,
        "the whole database, only its size known": 6,
    }
    assert "limits.unknown" not in said(of_epsilon(1, 3, bounded=False))


@pytest.mark.parametrize(
    ("records", "asked", "words"),
    [
        (-5, {"distance": 2}, "records is -5"),
        (0, {}, "records is 0"),
        (10, {"distance": 11}, "at most 10"),
        (10, {"distance": 21, "bounded": False}, "at most 20"),
        (10, {"distance": "1.5"}, "whole number of records"),
        (10, {"levels": []}, "level"),
        (10, {"priors": []}, "prior"),
    ],
)
def test_questions_that_cannot_be_are_refused(records, asked, words):
    with pytest.raises(StirredError, match=words):
        of_epsilon(1, records, **asked)


def test_infinite_and_vacuous_answers_are_said_as_such():
    endless = of_epsilon(1, 10, distance="infinity")
    assert said(endless) == ["limits.what", "limits.infinite"]
    assert "infinitely far apart" in endless.statements[1].words
    assert json.loads(endless.to_json())["limits"][0]["distance"] is None
    assert said(of_epsilon("infinity", 10))[1:] == ["limits.infinite"] * 2
    assert endless.limits[0].power.upper.tolist() == [1, 1, 1]
    at_ends = of_epsilon(1, 10, distance="infinity", levels=[0, 1], priors=[0, 0.5, 1])
    assert " ".join(at_ends.text().splitlines()[-1].split()[-11:]) == "1 1 0 to 0 0 to 1 1 to 1"
    assert "epsilon is infinite" in of_epsilon("infinity", 10).statements[1].words
    assert said(of_epsilon(0, 10, distance="infinity"))[1:] == ["limits.infinite"]
    assert said(of_epsilon(5, 100))[-2] == "limits.vacuous"
    assert "epsilon times the distance is 500.00" in of_epsilon(5, 100).statements[-2].words
    assert "distance is 10000000000. " in of_epsilon(1000, 10**7).statements[-2].words
    assert "distance 10,000,000)" in of_epsilon(1000, 10**7).statements[-2].words


def test_text_and_json_hold_the_same_statements():
    found = of_epsilon(Fraction(1, 3), 4, levels=[0.2], priors=[0.3, 0.6])
    fields = json.loads(found.to_json())
    text = " ".join(found.text().split())
    for one in fields["statements"]:
        assert one["words"] in text and one["section"] == "limits"
    assert fields["limits"][0]["levels"] == [0.2] and fields["limits"][0]["priors"] == [0.3, 0.6]
    assert "epsilon = 1/3" in text
    assert (fields["epsilon"], fields["records"], fields["bounded"]) == ("1/3", 4, True)
    assert fields["heading"] == found.heading


# -- explanations --------------------------------------------------------------------------------------------


def test_a_bounded_pure_guarantee_is_asked_at_one_record_and_at_groups():
    found = section(flavors.pure("person").at(1))
    assert questions(found) == {"the nearest two datasets": 1, "2 persons replaced": 2, "5 persons replaced": 5}
    assert said(found)[-2:] == ["limits.further", "limits.unknown"]
    assert "n persons but their number the distance is n:" in found.statements[-2].words
    assert "Somebody who does not know the number of persons may learn it" in found.statements[-1].words


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
    assert "knows the number of persons and what is held fixed, and gave" in believed.words
    assert nearest.limits[0].power.upper == pytest.approx(power_bounds(nearest.limits[0].levels, 0.2).upper)


def test_where_something_is_held_fixed_nobody_is_told_that_records_are_replaced():
    given = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=2).at("0.1")
    for found, units in ((section(load("psa-2010")), "households"), (section(given), "persons")):
        assert not [question for question in questions(found) if "replaced" in question]
        assert f"up to 5 {units} that differ, what is held fixed known" in questions(found)
        further, unknown = found.statements[-2:]
        assert further.id == "limits.further" and unknown.id == "limits.unknown"
        assert f"n {units} but their number and what is held fixed the distance is at most n" in further.words
        assert f"the number of {units} or what is held fixed may learn it" in unknown.words
        assert "infinitely far apart" in unknown.words


def test_a_nearest_distance_that_nobody_knows_is_said_to_be_assumed():
    given = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))]).at("0.1")
    assert explain(given).setting.change.status == "assumed"
    found = section(given)
    assert next(iter(questions(found))) == "two datasets 1 apart, if there are any"
    assert "(two datasets 1 apart, if there are any, distance 1)" in found.text().replace("\n    ", " ")


def test_what_a_count_attains_is_said_only_where_a_count_can_differ_so():
    fixed = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=2).at("0.1")
    for specification in (fixed, flavors.metric("metres").at(1), flavors.blowfish("policy").at(1)):
        assert "limits.attained" not in said(section(specification))
    assert "limits.attained" in said(section(flavors.pure().at(1)))
    (attained,) = [one for one in section(flavors.pure().at(1)).statements if one.id == "limits.attained"]
    assert "reaches 0.0271, 0.135 and 0.271, rounded down" in attained.words


def test_beliefs_between_distributions_of_two_attackers_are_nobodys():
    laws = {"me": [0.5, 0.5, 0, 0], "you": [0, 0.5, 0.25, 0.25]}
    case = Pufferfish("abcd", laws, {"a": "a", "b": "b", "c": "cd"}, [("a", "b"), ("b", "c")])
    found = section(case.specification(1))
    near, far = found.limits
    assert (near.distance, far.distance) == (1, 2)
    assert np.isfinite(near.posterior.upper).all() and np.isnan(far.posterior.upper).all()
    assert far.power.upper == pytest.approx(power_bounds(far.levels, 2).upper)
    fields = json.loads(found.to_json())["limits"]
    assert fields[1]["posterior"]["upper"] == [None] * 3 and fields[1]["power"]["upper"][0] > 0
    assert len(found.text().splitlines()[-1].split()) == 4 + 1 + 3


def test_a_pufferfish_specification_is_told_in_secrets():
    case = Pufferfish("abc", {"me": [0.5, 0.25, 0.25]}, {x: x for x in "abc"}, [("a", "b"), ("b", "c")])
    found = section(case.specification(1))
    assert said(found) == ["limits.attackers", "limits.given", "limits.secrets", "limits.power"]
    assert questions(found) == {"the nearest two distributions": 1, "the farthest two distributions": 2}


@pytest.mark.parametrize(
    ("specification", "words", "possible"),
    [
        (flavors.zcdp().at("2.63"), "zero-concentrated differential privacy", False),
        (flavors.approximate("1e-6").at(1), "(epsilon, delta)-differential privacy", True),
        (flavors.renyi(2).at(1), "Renyi differential privacy", False),
        (flavors.trade_off().at(GaussianCurve(1)), "a trade-off function", True),
        (flavors.flavor(OutputPremetric("total-variation")).at("0.1"), "total variation", True),
    ],
)
def test_remarks_5_3_7_and_5_6_4_other_standards_get_one_sentence(specification, words, possible):
    found = section(specification)
    assert said(found) == ["limits.other"] and found.limits == ()
    assert words in found.statements[0].words
    # Finite Renyi divergences both ways leave no output that only one dataset can give.
    assert ("possible for one dataset and not for another" in found.statements[0].words) == possible
    assert found.statements[0].source.endswith("Remarks 5.3.7 and 5.6.4")
    assert found.text(full=False).count("  - ") == 1


def test_nothing_and_some_events_get_one_sentence_too():
    alone = flavors.given_invariants(flavors.pure(), [Invariant("person", by=("county",))], nearest=math.inf).at(1)
    assert said(section(alone)) == ["limits.nothing"]
    assert "no two datasets are compared" in section(alone).statements[0].words
    assert said(section(flavors.pure().at("infinity"))) == ["limits.nothing"]
    assert "no finite budget is promised" in section(flavors.pure().at("infinity")).statements[0].words
    assert said(section(flavors.subspace("the span of the queries").at(1))) == ["limits.events"]


def test_neighbours_alone_are_asked_at_their_distance_only():
    assert questions(section(flavors.blowfish("policy").at(1))) == {"the nearest two datasets": 1}
    assert questions(section(flavors.metric("metres").at(1))) == {"two datasets 1 apart, if there are any": 1}


def test_a_page_holds_the_sentences_and_the_table():
    pure, other = (report_text([subject(one)], drawing=False) for one in (flavors.pure().at(1), flavors.zcdp().at(1)))
    caption = "Powers are at most these, and beliefs stay in these ranges"
    assert all(">What can at most be learnt</h" in page for page in (pure, other))
    assert "tests whose probability of a false alarm" in unescape(re.sub("<[^<>]*>", "", pure)) and caption in pure
    assert caption not in other
