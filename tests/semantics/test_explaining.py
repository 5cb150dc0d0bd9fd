"""Explanations: every sentence true where it is said, every number traceable, nothing said that does not apply."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from stirred.errors import StirredError
from stirred.loss import EpsilonProfile, GaussianCurve, PowerCurve
from stirred.semantics import SECTIONS, Concern, explain
from stirred.semantics.explained_numbers import setting
from stirred.semantics.sentences.templates import Number, Numbers, say, templates
from stirred.spec import (
    Budget,
    Domain,
    Finding,
    InputPremetric,
    Invariant,
    Kind,
    Multiverse,
    OutputPremetric,
    flavors,
    register,
)
from stirred.spec.kinds import KINDS
from stirred.spec.known_deployments.allocations import allocation, read_allocation
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names
from stirred.spec.loading import load
from stirred.spec.specification import Flavor

CENSUS = load("topdown-2020-pl")
FIXED = [Invariant("person", by=("block",))]

EXAMPLES = {
    "pure": flavors.pure().at(1),
    "pure, removed or added": flavors.pure(bounded=False).at(1),
    "approximate": flavors.approximate("1e-6").at(1),
    "approximate, removed or added": flavors.approximate("1e-6", bounded=False).at(1),
    "delta of zero": flavors.approximate(0).at(1),
    "zCDP": flavors.zcdp("household").at("2.63"),
    "a survey without its row": flavors.pure("household").at(1, facts=(("mechanism", "survey"),)),
    "no loss": flavors.zcdp().at(0),
    "Renyi": flavors.renyi(4).at("0.5"),
    "Renyi, removed or added": flavors.renyi(4, bounded=False).at("0.5"),
    "Gaussian": flavors.trade_off().at(GaussianCurve(1)),
    "vertices": flavors.trade_off().at(PowerCurve(((0, 0.1), (0.5, 0.9), (1, 1)))),
    "total variation": flavors.flavor(OutputPremetric("total-variation")).at("0.3"),
    "profile": flavors.flavor(OutputPremetric("approximate-profile")).at(EpsilonProfile(((1e-9, 3), (1e-3, 1)))),
    "local": flavors.local().at("1.5"),
    "metric": flavors.metric("kilometres").at("0.1"),
    "edges": flavors.edge_level().at(1),
    "pufferfish": flavors.pufferfish("models", "pairs of secrets").at(1),
    "events": flavors.subspace("the totals").at(1),
    "unknown nearest": flavors.given_invariants(flavors.zcdp(), FIXED).at(1),
    "nothing": flavors.given_invariants(flavors.pure(), FIXED, nearest=math.inf).at(1),
    "infinite": flavors.pure().at("infinity"),
    "imputed": flavors.zcdp().at(1, facts=(("records_per_respondent", 3), ("records", 1000))),
    "approximate and counted": flavors.approximate("0.001").at(1, facts=(("records", 1000),)),
    "imputed, Renyi": flavors.renyi(4).at("0.5", facts=(("records_per_respondent", 3),)),
    "fixed and near": flavors.given_invariants(flavors.pure(), FIXED, nearest=1).at(1),
    "fixed and not released": flavors.given_invariants(flavors.pure(), FIXED, nearest=1).at(
        1, facts=(("held_not_released", True),)
    ),
    "fixed and neighbours": flavors.given_invariants(flavors.approximate("1e-6"), FIXED, nearest=2).at(1),
    "varies": flavors.pure().at(Budget(1, varies="a function of the invariants")),
    "by universe": Flavor(
        Domain("three", datasets=("a", "b", "c")), Multiverse(universes=(("a", "b"), ("b", "c"))),
        InputPremetric.table({("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1}), OutputPremetric(),
    ).at(Budget(3, by_universe=(1, 3))),
    "listed": Flavor(
        Domain("two", datasets=("a", "b")), Multiverse(universes=(("a", "b"),)),
        InputPremetric.table({("a", "b"): 2, ("b", "a"): 2}), OutputPremetric(),
    ).at(1),
    "doubted": flavors.pure().at(1, marks=("not for release",), findings=(Finding("a-doubt", "Some doubt."),)),
    "certain": flavors.approximate(1).at(1),
    "census": CENSUS,
    "swap": load("psa-2010"),
    "swap at half": load("psa-1940-ma-p50"),
    "swap with counts of one": flavors.given_invariants(flavors.pure(), FIXED, nearest=2).at(
        1, facts=(("match", "size"), ("swap", "county"), ("alone_by_match_and_swap", 3))
    ),
    "large zCDP": flavors.zcdp().at(40),
    "far in a metric": flavors.metric("kilometres").at(50),
}  # fmt: skip


def said(explained):
    return {one.id for one in explained.statements}


@pytest.fixture(scope="module")
def explanations():
    return {name: explain(one) for name, one in EXAMPLES.items()}


# -- every sentence ------------------------------------------------------------------------------------------


def test_every_guidance_item_is_carried_by_a_sentence():
    assert {number for one in templates().values() for number in one.guidance} == set(range(1, 27))


def test_every_sentence_is_said_somewhere(explanations):
    with_concern = explain(CENSUS, concerns=["cenrace"])
    used = {one.id for explained in (*explanations.values(), with_concern) for one in explained.statements}
    # Of definitions of one's own, below; of counts that are all held fixed, in test_joint_changes.py.
    # Of releases: test_sentence_grid.py has them all.
    released = {name for name in templates() if name.startswith("noticed.") or name == "summary.put_back"}
    assert set(templates()) - used - released == {"careful.checklist", "concerns.fixed"}
    assert {"noticed.worst", "noticed.both", "noticed.halve", "noticed.epsilon"} <= used


def test_every_guidance_item_is_said_of_some_guarantee(explanations):
    guided = {number for one in explanations.values() for statement in one.statements for number in statement.guidance}
    assert set(range(1, 27)) - guided == {26}


def test_sections_are_told_in_order(explanations):
    order = list(SECTIONS)
    for explained in explanations.values():
        places = [order.index(one.section) for one in explained.statements]
        assert places == sorted(places)


def test_what_is_exposed_begins_with_the_invariants(explanations):
    first = {name: explanations[name].section("exposed")[0].id for name in ("census", "swap", "unknown nearest")}
    assert first["census"] == first["swap"] == "exposed.invariants"
    assert first["unknown nearest"] == "exposed.assumed"  # nothing is known to be released


NUMERAL = re.compile(r"(?<![\w.^])\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?%?(?![\w])")


def test_every_number_in_a_sentence_is_one_of_its_facts(explanations):
    # Words that come from the specification (names of blocks, invariants) are facts too, and may hold numerals.
    for name, explained in explanations.items():
        for one in explained.statements:
            shown = [fact if isinstance(fact, str) else fact.shown for fact in one.facts.values()]
            told = {number for text in (templates()[one.id].words, *shown) for number in NUMERAL.findall(text)}
            assert set(NUMERAL.findall(one.words)) <= told, (name, one.id)


def test_every_sentence_with_numbers_names_its_formula_and_all_name_their_source():
    for one in templates().values():
        assert one.source
        assert one.id.partition(".")[0] in SECTIONS
    for name, specification in EXAMPLES.items():
        for one in explain(specification).statements:
            if any(isinstance(fact, Number | Numbers) for fact in one.facts.values()):
                assert one.formula, (name, one.id)


def test_templates_hold_no_numbers_of_their_own():
    # Numbers of a sentence come from facts; what remains are names (2020 Census, k-anonymity) and e to a power.
    allowed = {"2020", "100"}  # cases are counted in hundreds
    for one in templates().values():
        assert set(NUMERAL.findall(one.words)) <= allowed, one.id


def test_shown_numbers_are_rounded_up_where_they_bound_a_gain(explanations):
    for explained in explanations.values():
        for one in explained.statements:
            for name in ("power", "powers", "worst", "bound", "epsilon", "factor"):
                fact = one.facts.get(name)
                pairs = []
                if isinstance(fact, Number):
                    pairs = [(fact.value, fact.shown)]
                elif isinstance(fact, Numbers):
                    pairs = zip(fact.values, re.split(", | and ", fact.shown), strict=True)
                for value, shown in pairs:
                    if "^" not in shown:
                        assert float(shown.replace(",", "")) >= float(value) * (1 - 1e-9), (one.id, name)


# -- the counterfactual first --------------------------------------------------------------------------------


def test_nothing_is_protected_where_there_is_no_counterfactual(explanations):
    explained = explanations["nothing"]
    assert explained.section("compares")[0].id == "compares.nothing"
    assert "nothing is protected" in explained.section("compares")[0].words
    assert not any(explained.section(name) for name in ("tests", "beliefs", "delta", "groups", "concerns"))
    assert explained.pictures() == () and explained.powers == []


def test_an_infinite_budget_promises_nothing(explanations):
    explained = explanations["infinite"]
    assert "compares.unbounded" in said(explained)
    assert not any(explained.section(name) for name in ("tests", "beliefs", "delta", "groups"))


def test_swapping_is_told_at_distance_two():
    b2 = flavors.given_invariants(flavors.pure("person"), FIXED, nearest=2)
    epsilon = math.log(3) - math.log(1 / 19)
    explained = explain(b2.at(epsilon, facts=(("mechanism", "permutation-swapping"), ("swap", "county"))))
    further = explained.statement("compares.further")
    assert (further.facts["budget"].shown, further.facts["bound"].shown) == ("4.05", "8.09")
    odds = explained.statement("beliefs.odds").facts["factor"].value
    assert odds == pytest.approx(57**2)  # and not 57, which the true ratio of 361 exceeds
    assert (
        "two persons of one stratum have their values of county exchanged"
        in explained.statement("compares.worlds").words
    )
    # Theorems about one redrawn record are not applied.
    assert "beliefs.outside" in said(explained) and "beliefs.every" not in said(explained)
    assert "exposed.determined" in said(explained)


def test_an_unknown_nearest_distance_is_said_first(explanations):
    assert explanations["unknown nearest"].section("compares")[0].id == "compares.assumed"


def test_a_replaced_record_is_two_steps_where_records_are_added_and_removed(explanations):
    removed = explanations["pure, removed or added"]
    assert removed.statement("beliefs.every").facts["factor"].value == pytest.approx(math.exp(2))
    assert removed.statement("beliefs.odds").facts["factor"].value == pytest.approx(math.e)
    assert "beliefs.default" not in said(removed)
    replaced = explanations["pure"]
    assert replaced.statement("beliefs.every").facts["factor"].value == pytest.approx(math.e)
    assert replaced.statement("beliefs.default").facts["factor"].value == pytest.approx(math.exp(2))


# -- the right theorem for the definition --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "theorems"),
    [
        ("pure", {"every", "perceived"}),
        ("approximate", {"true", "correct"}),
        ("zCDP", {"true", "any", "predictive", "markov", "correct"}),
        ("Renyi", {"true", "any", "predictive", "markov", "correct"}),
        ("Renyi, removed or added", set()),
        ("Gaussian", {"true", "correct"}),
        ("metric", set()),
        ("swap", set()),
        ("census", {"true", "any", "predictive", "exact", "markov", "correct"}),
    ],
)
def test_theorems_are_told_where_they_apply(explanations, name, theorems):
    known = {"every", "perceived", "true", "any", "predictive", "exact", "markov", "correct"}
    found = {one.id.partition(".")[2] for one in explanations[name].section("beliefs")}
    assert found & known == theorems


def test_the_numbers_of_the_beliefs_are_those_of_the_theorems(explanations):
    # Section 3.10 of the reference, at rho = 2.63 and delta = 0.05.
    found = [one for one in explanations["zCDP"].section("beliefs") if "delta" in one.facts]
    factors = {one.id + one.facts.get("assuming", ""): one.facts["factor"].value for one in found}
    assert factors["beliefs.true, if the noise is Gaussian"] == pytest.approx(math.exp(7.1055574), rel=1e-6)
    assert factors["beliefs.any"] == pytest.approx(math.exp(8.2438314), rel=1e-6)
    assert factors["beliefs.predictive"] == pytest.approx(math.exp(2.9838314), rel=1e-6)


DIVIDED = """
levels = ["region", "town"]
[[part]]
unit = "person"
rho = "1/2"
level_shares = ["1/4", "3/4"]
[[part.query]]
name = "age*sex"
attributes = ["age", "sex"]
shares = ["1/2", "1"]
[[part.query]]
name = "total"
attributes = []
shares = ["1/2", "0"]
"""
"""Two cells each for two queries of rho 1/16 and one of 3/8: variances of 16 and 8/3."""


def test_theorem_7_4_is_told_for_the_noise_of_the_mechanism_itself(explanations):
    # Beside 7.1055574 of Gaussian noise (section 3.10 of the reference): the discrete one is a close neighbour.
    told = explanations["census"].statement("beliefs.exact")
    epsilon, gap = math.log(told.facts["factor"].value), told.facts["gap"].value
    assert epsilon == pytest.approx(7.1055574, abs=5e-4)
    assert 0 < gap < 5e-4
    rows = {row["delta"]: row for row in explanations["census"].losses if row["noise"] == "the noise of this mechanism"}
    assert rows[0.05]["bounded"] == pytest.approx(epsilon)
    assert rows[1e-10]["bounded"] == pytest.approx(17.517001, abs=1e-3)
    assert rows[1e-10]["approximate"] == pytest.approx(16.741981, abs=1e-3)
    assert "beliefs.exact" not in said(explanations["zCDP"])  # nobody knows how that budget was spent


def test_theorem_7_4_for_the_noise_itself_is_what_enumeration_finds(tmp_path):
    (tmp_path / "mine.toml").write_text(DIVIDED)
    given = setting(flavors.zcdp().at("1/2"), read_allocation(tmp_path / "mine.toml"))
    # Every loss of six cells, by convolution of those of one cell with each variance.
    k = np.arange(-40, 41)
    law = {0.0: 1.0}
    for variance, cells in ((Fraction(16), 4), (Fraction(8, 3), 2)):
        weights = np.exp(-(k**2) / (2 * float(variance)))
        weights /= weights.sum()
        one = {round((2 * x + 1) / (2 * float(variance)), 12): p for x, p in zip(k.tolist(), weights, strict=True)}
        for _ in range(cells):
            summed: dict[float, float] = {}
            for (a, p), (b, q) in itertools.product(law.items(), one.items()):
                if p * q > 1e-18:
                    at = round(a + b, 9)
                    summed[at] = summed.get(at, 0.0) + p * q
            law = summed
    losses = np.array(sorted(law, reverse=True))
    masses = np.array([law[one] for one in losses])
    tails, others = np.cumsum(masses), np.cumsum(masses * np.exp(-losses))
    for delta in (0.5, 0.05, 1e-3):
        at = int(np.searchsorted(tails, delta))
        part = (delta - tails[at - 1]) / masses[at]  # randomised at the last one
        exact = math.log(delta / (others[at - 1] + part * masses[at] * math.exp(-losses[at])))
        lower, upper = given.exactly_bounded(delta)
        assert lower - 1e-6 <= exact <= upper + 1e-6
        assert upper - lower < 1e-3


def test_epsilons_at_deltas_are_those_of_the_reference(explanations):
    rows = {(row["noise"], row["delta"]): row for row in explanations["zCDP"].losses}
    gaussian = rows["Gaussian noise with this budget", 1e-10]
    assert gaussian["bounded"] == pytest.approx(17.517001, abs=1e-6)
    assert gaussian["approximate"] == pytest.approx(16.741981, abs=1e-6)
    conversions = {
        one.facts["conversion"]: one.facts["epsilon"].value
        for one in explanations["zCDP"].section("delta")
        if one.id == "delta.approximate"
    }
    assert conversions["classical conversion"] == pytest.approx(18.193803, abs=1e-6)
    assert conversions["exact for Gaussian noise"] < conversions["tight conversion, any noise"] < 18.193803


def test_delta_is_read_as_the_definition_allows(explanations):
    assert "delta.catastrophe" in said(explanations["approximate"])
    assert "delta.gradual" in said(explanations["zCDP"]) and "delta.catastrophe" not in said(explanations["zCDP"])
    assert not explanations["pure"].section("delta")
    assert "1/1,000" in explanations["approximate and counted"].statement("delta.catastrophe").words
    vertices = said(explanations["vertices"])  # power at level 0: some outputs give certainty
    assert "delta.gradual" not in vertices


def test_groups_have_their_own_bounds(explanations):
    two, five = [
        one.facts for one in explanations["zCDP"].section("groups") if one.id in ("groups.units", "groups.vast")
    ]
    assert (two["bound"].value, five["bound"].value) == (4 * Fraction("2.63"), 25 * Fraction("2.63"))
    assert explanations["imputed"].statement("groups.respondent").facts["bound"].value == 9
    assert "groups.power" in said(explanations["Renyi"])
    assert explain(CENSUS).statement("groups.within").facts["coarse"] == "household"


def test_a_definition_of_ones_own_is_not_explained_away():
    kind = register(Kind("own-explained", "D_own", "t", "a distance of one's own", divergence=lambda p, q: 0.0))
    try:
        explained = explain(flavors.flavor(OutputPremetric("own-explained")).at(1))
        assert explained.section("careful")[0].guidance == (26,)
        assert not explained.section("tests") and not explained.section("beliefs")
    finally:
        KINDS.pop(kind.name)


# -- concerns ------------------------------------------------------------------------------------------------


def test_the_census_is_explained_with_its_concerns():
    explained = explain(CENSUS, concerns=["cenrace", "state within us"])
    asked = [one.facts for one in explained.statements if one.id == "concerns.one"]
    assert asked[0]["rho"].value == Fraction("3565936167303232/3529616082688675")
    assert asked[1]["bound"].value < 2 * asked[1]["rho"].value  # two persons exchange places; totals stay
    assert explained.statement("concerns.barred").facts["distance"].value == 2
    exact = explained.statement("concerns.exact").facts["powers"].values
    assert exact == pytest.approx((0.182765, 0.411619, 0.555638), abs=2e-5)
    printed = explained.statement("concerns.printed").facts
    assert printed["count"].value == 6 and printed["printed"].values == (0.952, 0.945, 1.32, 0.555, 0.969, 0.968)
    assert {row["id"]: row["agrees"] for row in explained.published} == {
        "A": True, "B": True, "C": False, "D": False, "E": False, "F": False, "G": False, "H": False,
    }  # fmt: skip


def test_concerns_need_an_allocation_that_fits():
    with pytest.raises(StirredError, match="no concern can be looked up"):
        explain(flavors.zcdp().at(1), concerns=["cenrace"])
    pl94 = allocation("pl94-2020")
    with pytest.raises(StirredError, match=r"2\.63"):
        explain(flavors.zcdp().at(1), allocation=pl94)
    with pytest.raises(StirredError, match=r"2\.63"):
        explain(flavors.pure().at("2.63"), allocation=pl94)
    unrounded = flavors.zcdp("person").at(pl94.total(rounded=False))
    explained = explain(unrounded, allocation=pl94, concerns=[Concern(("cenrace",))])
    assert explained.exposures[0]["rho"] < 1.0102900949  # persons got less than the printed 2.56


@pytest.mark.parametrize(
    "bad", [{"levels": [0]}, {"levels": []}, {"deltas": [1]}, {"deltas": [2]}, {"levels": [math.nan]}]
)
def test_levels_and_deltas_are_probabilities(bad):
    with pytest.raises(StirredError, match="above 0 and below 1"):
        explain(flavors.pure().at(1), **bad)


# -- forms ---------------------------------------------------------------------------------------------------


def test_json_holds_all_of_it(explanations):
    for explained in explanations.values():
        fields = json.loads(explained.to_json(), parse_constant=pytest.fail)  # no NaN, no Infinity
        assert fields["stirred_explanation"] == 1
        assert [one["words"] for one in fields["statements"]] == [one.words for one in explained.statements]
        assert all(one["source"] for one in fields["statements"])


def test_text_and_html_hold_every_sentence(explanations):
    for explained in explanations.values():
        flat = re.sub(r"\s+", " ", explained.text(full=True))
        assert all(re.sub(r"\s+", " ", one.words) in flat for one in explained.statements)
        html = explained._repr_html_()
        assert html.count("<li>") == len(explained.statements) and "<script" not in html


def test_the_short_text_keeps_numbers_and_what_is_exposed():
    explained = explain(CENSUS)
    short = explained.text()
    assert len(short) < 0.8 * len(explained.text(full=True))
    assert "Published exactly, and so not protected" in short and "0.699" in short
    assert "Some doubt." in explain(EXAMPLES["doubted"]).text()


def test_sources_are_numbered_and_listed_in_the_full_text(explanations):
    for explained in explanations.values():
        text = explained.text(full=True)
        body, _, listed = text.partition("\nSOURCES\n")
        numbers = {int(number) for number in re.findall(r"\[(\d+)\]", body)}
        assert numbers == set(range(1, len(numbers) + 1)) == {int(one) for one in re.findall(r"- \[(\d+)\]", listed)}
        assert "SOURCES" not in explained.text()


@pytest.mark.parametrize("name", names())
def test_every_known_deployment_is_explained(name):
    explained = explain(deployment(name).specification)
    assert explained.section("compares") and explained.section("exposed")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("census", ["level-and-power", "epsilon-and-delta", "beliefs", "belief-in-the-true-record", "concerns"]),
        ("pure", ["level-and-power", "beliefs"]),
        ("swap", []),  # rules out so little that there is nothing to see
        ("approximate", ["level-and-power", "epsilon-and-delta", "beliefs"]),
    ],
)
def test_pictures_are_those_that_apply(explanations, name, shown):
    assert [one.name for one in explanations[name].pictures()] == shown
    instead = [one.name for one in explanations[name].not_drawn()]
    assert instead == (["level-and-power"] if name == "swap" else [])


@pytest.mark.slow
def test_pictures_of_every_explanation_can_be_made(explanations):
    known = {"level-and-power", "epsilon-and-delta", "beliefs", "belief-in-the-true-record", "concerns"}
    assert {one.name for explained in explanations.values() for one in explained.pictures()} == known


def test_theorem_7_4_of_the_noise_itself_is_drawn_between_its_bounds(explanations):
    census = explanations["census"]
    picture = next(one for one in census.pictures() if one.name == "belief-in-the-true-record")
    gaussian, anything, upper, lower = picture.lines
    assert upper.name == "the noise of this mechanism, upper bound" and upper.dashed
    values = [dict(zip(line.x, line.y, strict=True)) for line in (gaussian, anything, upper, lower)]
    below, above = census.setting.exact_beliefs
    for epsilon in sorted(set(values[2]) & set(values[3])):
        g, a, u, low = (one[epsilon] for one in values)
        assert low <= u <= a + 1e-9
        assert u == pytest.approx(g, rel=2e-3) and low == pytest.approx(g, rel=2e-3)
        if epsilon in (0.5, 3.0, 10.0):
            assert (low, u) == (pytest.approx(below.delta(epsilon)), pytest.approx(above.delta(epsilon)))
    assert values[0][3.0] == pytest.approx(0.67945661, abs=5e-9)


def test_pictures_agree_with_the_sentences(explanations):
    picture = explanations["census"].pictures()[0]
    for line, expected in zip(picture.lines, (0.698160, 0.486886, 0.486886), strict=True):
        assert line.y[line.x.index(0.01)] == pytest.approx(expected, abs=2e-5)


def test_unknown_sentences_and_sections_are_refused(explanations):
    with pytest.raises(StirredError, match="There is no section"):
        explanations["pure"].section("anything")
    with pytest.raises(StirredError, match="There is no sentence"):
        explanations["pure"].statement("delta.catastrophe")
    assert say("tests.ideal").facts == {}


def test_powers_are_ordered(explanations):
    for explained in explanations.values():
        for row in explained.powers:
            assert row["lower"] <= row["level"] <= row["upper"] + 1e-12
        by_level = {}
        for row in explained.powers:
            by_level.setdefault(row["noise"], []).append(row["upper"])
        for powers in by_level.values():
            assert np.all(np.diff(powers) >= 0)
