"""Bars of concerns: sorted, in plain words, with both kinds of noise and the rho that each power follows from."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.errors import LossError
from stirred.loss import GaussianCurve, ZcdpCurve
from stirred.semantics import explain
from stirred.semantics.concerns import Concern, exposure, overview
from stirred.semantics.explained_numbers import setting
from stirred.semantics.explaining import ANY_NOISE, IN_USE, ConcernRow, concern_bars, concern_label, concern_row
from stirred.spec.known_deployments.allocations import allocation, from_allocation_fields
from stirred.spec.known_deployments.deployments import deployment
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.presets import preset

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "semantics.json").read_text(encoding="utf-8"))
PL94 = allocation("pl94-2020")
DOMAINS = {"race": ("a", "b"), "adult": ("no", "yes")}


def rows(concerns: list[Concern]) -> list[ConcernRow]:
    return [concern_row(exposure(PL94, concern, rounded=True)) for concern in concerns]


def test_rhos_are_those_of_the_concerns_that_everybody_asks_about():
    every = overview(PL94, "person", rounded=True)
    names = {concern_label(one.concern, PL94): str(one.concern) for one in every}
    bars = concern_bars(map(concern_row, every))
    found = {names[bar.name]: bar.value for bar in bars.bars}
    for name, rho in GOLDEN["other_concerns"]["rho"].items():
        assert found[name] == pytest.approx(float(rho), abs=6e-11), name
    assert bars.mark is None and bars.x_title == "rho"
    group = next(bar for bar in bars.bars if bar.name == "household or kind of group quarters")
    assert group.about.startswith("queries 'hhinstlevels', 'hhgq'")


@pytest.mark.parametrize(("at_level", "level"), list(enumerate([0.01, 0.05, 0.1])))
def test_powers_are_those_of_the_scenarios_the_best_told_first(at_level, level):
    told = {"A": Concern(within="block group"), "B": Concern(within="tract"), "C": Concern(("cenrace",))}
    told |= {"E": Concern(("cenrace",), within="tract"), "all": Concern()}
    bars = concern_bars(rows(list(told.values())), level=level)
    golden = {one["id"]: float(one["powers_from_tables"][at_level]) for one in GOLDEN["scenarios"]["each"]}
    in_use = [bar for bar in bars.bars if bar.group == IN_USE]
    for letter, concern in told.items():
        bar = next(one for one in in_use if one.name == concern_label(concern, PL94))
        assert bar.value == pytest.approx(golden[letter], abs=6e-7)
    assert [bar.value for bar in in_use] == sorted((bar.value for bar in in_use), reverse=True)
    assert (bars.mark, bars.mark_words) == (level, "blind guess")
    assert in_use[0].words == "rho = 2.63" and in_use[0].about == "all queries"


def test_an_impossible_level_is_refused():
    with pytest.raises(LossError, match="level is 2"):
        concern_bars(rows([Concern()]), level=2)


def test_each_power_follows_from_the_rho_beside_it():
    explained = explain(deployment("topdown-2020-pl").specification)
    bars = next(one for one in explained.pictures() if one.name == "concerns")
    assert {bar.group for bar in bars.bars} == {IN_USE, ANY_NOISE}
    for bar in bars.bars:
        rho = float(bar.words.removeprefix("rho = "))
        curve = GaussianCurve((2 * rho) ** 0.5) if bar.group == IN_USE else ZcdpCurve(rho)
        assert bar.value == pytest.approx(float(curve.power(0.05)), abs=5e-4), bar.name
    together = [bar for bar in bars.bars if "2\u00a0persons" in bar.name]
    assert [bar.words for bar in together] == ["rho = 3.473", "rho = 6.946"]
    assert "two persons of different states" in bars.caption


def test_what_the_explanation_says_of_a_concern_is_what_the_bars_show():
    given = setting(deployment("topdown-2020-pl").specification)
    shown = next(one for one in explain(given.specification).pictures() if one.name == "concerns")
    for one in given.concerned:
        label = concern_label(one.exposure.concern, PL94)
        both = [
            bar.value for bar in shown.bars if bar.name.startswith(label) and bar.name[len(label) :][:2] in ("", " (")
        ]
        assert both == [float(one.gaussian.power(0.05)), float(one.bound.power(0.05))]


@pytest.mark.parametrize(("factor", "words"), [(10**5, "almost surely"), (Fraction(1, 10**9), "blind guess")])
def test_bars_that_would_look_all_alike_are_rhos(factor, words):
    small = [
        replace(row, rho=row.rho * factor, any_rho=row.any_rho * factor)
        for row in rows([Concern(), Concern(("hhgq",))])
    ]
    bars = concern_bars(small, level=0.05)
    assert bars.x_title == "rho" and words in bars.caption
    assert [bar.value for bar in bars.bars] == [float(row.rho) for row in small]


# -- labels --------------------------------------------------------------------------------------------------


def test_labels_of_a_plan_are_the_names_of_the_bars():
    plain = preset("teaching", DOMAINS, ("county", "block"))
    fields = plain.model_dump(mode="json", exclude_defaults=True)
    fields["tables"][0]["attributes"][0]["label"] = "race, as people say it"
    fields["spine"]["labels"] = {"county": "county or city"}
    labelled = TopDownPlan(**fields)
    words = [
        concern_label(one.concern, one.allocation) for one in overview(labelled.allocation(), "person", rounded=False)
    ]
    assert words == ["race, as people say it", "adult", "location within the county or city"]
    assert labelled.drawn_hash() == plain.drawn_hash() and labelled.hash() != plain.hash()
    assert TopDownPlan.from_published(labelled.published()).allocation().label("race") == "race, as people say it"


def test_a_label_of_no_level_is_refused():
    fields = preset("teaching", DOMAINS, ("county", "block")).model_dump(mode="json", exclude_defaults=True)
    fields["spine"]["labels"] = {"parish": "parish"}
    with pytest.raises(Exception, match="parish"):
        TopDownPlan(**fields)


def test_equal_labels_are_told_apart_by_the_names():
    both = replace(PL94, labels=(("cenrace", "race"), ("hispanic", "race")))
    assert {both.label(name) for name in ("cenrace", "hispanic")} == {"race (cenrace)", "race (hispanic)"}
    assert both.label("votingage") == "votingage"


def test_every_attribute_of_the_2020_allocations_has_a_plain_label():
    spoken = {"age", "sex"}  # are plain words themselves
    for name in ("pl94-2020", "dhc-2020"):
        known = allocation(name)
        assert {one for one in known.attributes if known.label(one) == one} <= spoken


def test_a_label_that_is_no_text_is_refused():
    fields = {"name": "a", "title": "a", "levels": ["all"], "labels": {"race": 3}}
    fields |= {"part": [{"unit": "person", "rho": "1", "level_shares": ["1"],
                         "query": [{"name": "race", "attributes": ["race"], "shares": ["1"]}]}]}  # fmt: skip
    with pytest.raises(Exception, match="label is not a name"):
        from_allocation_fields(fields)
