"""Explanations of awkward guarantees: what must not be said of them, and at which distance the rest is."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stirred.errors import StirredError
from stirred.lab.definitions.beliefs import Beliefs
from stirred.loss import EpsilonProfile, GaussianCurve, PowerCurve, ZcdpCurve
from stirred.reports.limits_section import of_explanation
from stirred.semantics import allowed_power, explain, replaced_record, smallest_change
from stirred.spec import FiniteMechanism, InputPremetric, Invariant, OutputPremetric, flavors
from stirred.spec.known_deployments.allocations import Allocation, AllocationPart, Query, allocation
from stirred.spec.loading import load

FIXED = [Invariant("person", by=("block",))]


def said(explained):
    return {one.id for one in explained.statements}


def test_belief_theorems_speak_of_somebody_who_knows_what_is_held_fixed():
    given = flavors.given_invariants(flavors.pure(), FIXED, nearest=1).at(1)
    explained = explain(given)
    assert "who knows what is held fixed" in explained.statement("beliefs.every").words
    assert "beliefs.default" not in said(explained)  # a fixed default record would break the invariant
    assert "who knows" not in explain(flavors.pure().at(1)).statement("beliefs.every").words
    # Publishing the blocks is free in this multiverse, and tells everything to somebody who does not know them.
    person = [{"block": "A"}, {"block": "B"}]
    counts = FiniteMechanism.of({str((one,)): {one["block"]: 1} for one in person})
    unaware = {(tuple(one.items()),): p for one, p in zip(person, (0.001, 0.999), strict=True)}
    name = lambda dataset: str((dict(dataset[0]),))  # noqa: E731
    ratios = Beliefs(unaware, counts, 0, name=name).ratio
    assert np.nanmax(ratios) == pytest.approx(1000)
    aware = {(tuple(person[0].items()),): 1.0}
    assert np.nanmax(Beliefs(aware, counts, 0, name=name).ratio) == 1


def test_a_fixed_size_with_records_added_and_removed_is_one_replaced_record():
    given = flavors.given_invariants(flavors.pure(bounded=False), [Invariant("person")], nearest=2).at(1)
    assert smallest_change(given).words == "one record of a person is removed and another added"
    assert (replaced_record(given).distance, replaced_record(given).status) == (2, "inside")
    explained = explain(given)
    assert "exposed.determined" not in said(explained)
    assert explained.statement("beliefs.every").facts["factor"].value == pytest.approx(math.exp(2))


def test_groups_are_added_or_removed_where_distances_count_that():
    removed = explain(flavors.pure(bounded=False).at(1)).statement("groups.units").words
    assert "added or removed together the bound is epsilon 2.00" in removed
    assert "change together the bound is epsilon 2.00" in explain(flavors.pure().at(1)).statement("groups.units").words


def test_a_respondents_several_records_follow_the_rule_of_the_definition():
    facts = (("records_per_respondent", 3),)
    assert explain(flavors.zcdp().at(1, facts=facts)).statement("groups.respondent").facts["bound"].value == 9
    assert (
        explain(flavors.pure(bounded=False).at(1, facts=facts)).statement("groups.respondent").facts["bound"].value == 6
    )
    renyi = explain(flavors.renyi(4).at(1, facts=facts))
    assert "groups.respondent" not in said(renyi)
    level = renyi.setting.level
    power = renyi.statement("groups.answers").facts["power"].value
    assert power == pytest.approx(float(allowed_power(flavors.renyi(4).at(1), 3).power(level)))


def own_allocation():
    queries = (Query("age", ("age",), None, (Fraction(1),)),)
    part = AllocationPart("persons", "person", None, Fraction(1, 2), (Fraction(1),), queries)
    return Allocation("mine", "mine", ("all",), (part,))


def test_a_changed_attribute_is_two_steps_where_records_are_added_and_removed():
    given = flavors.zcdp("person", bounded=False).at("1/2")
    explained = explain(given, allocation=own_allocation(), concerns=["age"])
    (row,) = explained.exposures
    assert row["distance"] == 2
    assert row["bound"] == pytest.approx(np.asarray(allowed_power(given, 2).power([0.01, 0.05, 0.1])))


def test_allocations_and_attributes_of_another_unit_are_refused():
    with pytest.raises(StirredError, match="protects a household"):
        explain(flavors.zcdp("household").at("1/2"), allocation=own_allocation())
    with pytest.raises(StirredError, match="attribute of a person"):
        explain(load("topdown-2020-pl"), concerns=["occupancy"])


def test_chosen_queries_are_held_against_the_invariants():
    explained = explain(load("topdown-2020-pl"), concerns=["only total at state", "only cenrace at county"])
    state, county = [one for one in explained.setting.concerned if one.asked]
    assert state.worst.joint and not county.worst.joint
    assert state.worst.rho == 0  # the totals of states are held fixed
    first, second = [one.words for one in explained.statements if one.id == "concerns.one"]
    assert "two persons of different states" in first and "if there are such datasets" in second


def test_the_power_follows_from_the_rho_beside_it_wherever_it_is_told():
    explained = explain(load("topdown-2020-pl"), concerns=["state within us", "cenrace + within us", "cenrace"])
    rows = {row["concern"]: row for row in explained.exposures}
    moved = rows["location within us"]
    # Every query counts twice but the totals of states, which are held fixed. An exchange has rho 2.066.
    table = {cell: allocation("pl94-2020").rho(*cell, rounded=True) for cell in allocation("pl94-2020").cells()}
    expected = 2 * sum(rho for cell, rho in table.items() if cell[0] != "us" and cell != ("state", "total"))
    assert Fraction(moved["rho_exact"]) == expected and moved["distance"] == 2
    assert moved["gaussian"] == pytest.approx([0.621, 0.839, 0.912], abs=6e-4)
    assert "each move to another block of the other's state" in moved["change"]
    said = [one for one in explained.statements if one.id == "concerns.one"]
    for one, row in zip(said, list(rows.values())[:3], strict=True):
        for rho in (row["rho"], one.facts["bound"].value):
            assert row["gaussian"] == pytest.approx(list(GaussianCurve(math.sqrt(2 * rho)).power([0.01, 0.05, 0.1])))
        assert row["bound"] == pytest.approx(list(ZcdpCurve(row["rho_any_noise"]).power([0.01, 0.05, 0.1])))
        assert one.facts["power"].value == row["gaussian"][1] and one.facts["worst"].value == row["bound"][1]
    for text in (str(explained), explained._repr_html_()):
        assert "3.4730" in text and "2.066" not in text
    bars = explained.pictures()[-1].bars
    drawn = sorted(zip(*([bar.value for bar in bars[start::2]] for start in (0, 1)), strict=True))
    assert drawn == sorted((row["gaussian"][1], row["bound"][1]) for row in rows.values())
    assert {bar.words for bar in bars if bar.name == "location within the nation (2\u00a0persons)"} == {
        "rho = 3.473", "rho = 6.946"
    }  # fmt: skip
    (barred, _) = [one for one in explained.statements if one.id == "concerns.barred"]
    assert barred.facts["rho"].value == expected and "2 apart" in barred.words


@pytest.mark.parametrize(
    "given",
    [
        flavors.approximate("0.1").at(1),
        flavors.approximate(1).at(1),
        flavors.flavor(OutputPremetric("total-variation")).at("0.9"),
        flavors.trade_off().at(PowerCurve(((0, 0.5), (0.5, 1), (1, 1)))),
        flavors.zcdp().at(100_000),
    ],
)
def test_no_sentence_speaks_of_an_infinite_factor(given):
    assert not [one.words for one in explain(given).statements if "infinite times" in one.words or "e^inf" in one.words]


def test_certainty_is_told_from_the_curve():
    assert explain(flavors.flavor(OutputPremetric("total-variation")).at("0.3")).statement("delta.catastrophe")
    assert "delta.catastrophe" not in said(explain(flavors.renyi(2).at(1)))


def test_a_guarantee_about_some_events_bounds_tests_of_these_alone():
    explained = explain(flavors.subspace("the totals").at(1))
    assert "that looks at these events alone" in explained.statement("tests.bound").words
    assert "beliefs.outside" in said(explained) and not {"beliefs.every", "beliefs.odds"} & said(explained)


def test_nearly_certain_powers_keep_their_digits():
    explained = explain(flavors.pure().at("6.91"))
    assert "tests.vacuous" not in said(explained)
    assert "0.9991" in explained.statement("tests.bound").words
    assert "tests.vacuous" in said(explain(flavors.pure().at(30)))


def test_a_finite_epsilon_is_never_told_as_certainty():
    words = explain(flavors.pure().at(20)).statement("tests.vacuous").words
    # e^-20 (1 - level), rounded down
    assert "rules out next to nothing" in words
    assert "a test may miss the change with probabilities of only 2e-9, 1.9e-9 and 1.8e-9" in words
    assert "less than 1e-12" in explain(flavors.pure().at(745)).statement("tests.vacuous").words
    total = explain(flavors.flavor(OutputPremetric("total-variation")).at(1))
    assert "tests.certain" in said(total) and "tests.vacuous" not in said(total)
    assert "tests.certain" in said(explain(flavors.approximate("0.99").at(1)))
    assert "tests.certain" not in said(explain(flavors.approximate("0.95").at(745)))


def test_certainty_of_an_output_is_told_by_delta_however_large_epsilon_is():
    words = explain(flavors.approximate("1e-6").at(745)).statement("delta.catastrophe").words
    assert "with a probability of 1e-06" in words
    profile = EpsilonProfile(((1e-6, 745.0), (0.5, 700.0)))
    given = flavors.flavor(OutputPremetric("approximate-profile")).at(profile)
    assert "with a probability of 1e-06" in explain(given).statement("delta.catastrophe").words


def test_what_is_wrongly_believed_is_told_with_its_factor():
    words = explain(flavors.pure().at(20)).statement("beliefs.perceived").words
    assert "a factor of 4.86e8" in words and "breach" not in words and "imagined" not in words


@pytest.mark.parametrize("epsilon", ["1.0003", "1.003", "1", "0.0123456789", "2.8903717578961645", "20", "745"])
def test_one_bound_has_one_number(epsilon):
    given = flavors.pure().at(epsilon)
    explained = explain(given)
    odds = explained.statement("beliefs.odds").facts
    assert odds["epsilon"].shown == given.budget.shown()
    # The factor follows from the epsilon beside it, by a calculator.
    if float(epsilon) < 100:
        followed = math.exp(float(odds["epsilon"].shown))
        factor = float(odds["factor"].shown.replace(",", ""))
        assert followed <= factor * (1 + 1e-12) and factor <= followed * 1.01
    else:
        assert odds["factor"].shown == f"e^{odds['epsilon'].shown}"
    others = [one for one in explained.statements if one.id in ("beliefs.every", "beliefs.perceived")]
    shared = {one.facts["factor"].shown for one in others}
    assert shared == {odds["factor"].shown}
    # Powers are the same text in the sentences of explanations and of limits, and the same number in the data.
    limits = {one.id: one.facts for one in of_explanation(explained).statements}
    if "limits.power" in limits:
        told = explained.statement("tests.bound").facts["powers"].shown
        assert told == limits["limits.power"]["powers"].shown
        shown = [float(one) for one in told.replace(" and ", ", ").split(", ")]
        assert [row["upper"] for row in explained.powers] == shown
        assert all(f"  {one} (" in explained.text() for one in told.replace(" and ", ", ").split(", "))


def test_a_bound_that_holds_for_every_mechanism_is_not_told():
    assert "beliefs.predictive" in said(explain(flavors.zcdp().at(1)))
    assert "beliefs.predictive" not in said(explain(load("das-2020-overall")))


def test_where_no_rule_is_known_it_is_said():
    given = flavors.given_invariants(flavors.approximate("1e-6"), FIXED, nearest=2).at(1)
    assert "tests.none" in said(explain(given)) and "compares.further" not in said(explain(given))
    assert "beliefs.outside" in said(explain(flavors.renyi(4, bounded=False).at(1)))


def test_levels_are_shown_as_typed():
    explained = explain(flavors.pure().at(1), levels=[0.012345])
    assert "at false-alarm probability 0.012345 the power is at most" in explained.statement("groups.units").words


def test_distributions_are_not_explained_as_datasets():
    explained = explain(flavors.pufferfish("two models", "pairs of secrets").at(1))
    assert "exposed.models" in said(explained)
    assert not {"compares.causal", "tests.rest", "exposed.generalisable", "beliefs.before"} & said(explained)
    assert "every attacker of the domain" in explained.statement("beliefs.odds").words
    assert smallest_change(explained.specification).status == "inside"


def test_profiles_grow_with_the_distance_at_any_scale():
    output = OutputPremetric("approximate-profile")
    base = flavors.flavor(output)
    doubled = base.__class__(
        base.domain, base.multiverse, InputPremetric(unit="person", sharpened=False, scale=2), output
    )
    profile = doubled.at(EpsilonProfile(((1e-9, 1.0),)))
    point = doubled.__class__(
        doubled.domain, doubled.multiverse, doubled.input_premetric, OutputPremetric("approximate", "1e-9")
    )
    for distance in (2, 4, 6):
        one, other = (float(allowed_power(given, distance).power(0.01)) for given in (profile, point.at(1)))
        assert one == pytest.approx(other)


def test_distances_of_a_metric_are_any():
    half = allowed_power(flavors.metric("kilometres").at(1), "1/2")
    assert float(half.power(0.01)) == pytest.approx(0.01 * math.exp(0.5))


@pytest.mark.parametrize("text", ["epsilon=1e400", "rho=1e308", "rho=1e400", "mu=1e10", "epsilon=0", "rho=0", "mu=0"])
def test_extreme_budgets_are_explained(text):
    explained = explain(load(text))
    assert explained.to_json() and explained.text()
    for row in explained.powers:
        if text.endswith("=0"):
            assert row["upper"] == pytest.approx(row["level"])
    if text.endswith("=0") and not text.startswith("epsilon"):
        assert "0.1 and" not in explained.statement("tests.bound").facts["powers"].shown


def test_many_steps_of_a_group_end():
    assert "For 100000 persons" in explain(flavors.renyi(4).at(1), groups=[100_000]).statement("groups.power").words


def test_the_certified_budgets_can_be_explained_too():
    pl94 = allocation("pl94-2020")
    unrounded = flavors.zcdp("person").at(pl94.total(rounded=False))
    assert explain(unrounded, allocation=pl94).setting.rounded is False
