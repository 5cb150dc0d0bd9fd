"""Pufferfish as a specification: losses agree, and compare, lint and explain speak of distributions."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from limit_cases import geometric_rows, random_pufferfish
from stirred.lab.limits.pufferfish import Pufferfish, all_but_one_known, equal_records
from stirred.limits import DatabaseGraph
from stirred.loss import GaussianCurve
from stirred.reports.limits_section import of_explanation
from stirred.semantics import explain
from stirred.spec import (
    Budget,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    Specification,
    compare,
    flavors,
    lint,
)

COUNTED = geometric_rows(3, 0.7)[[sum(x) for x in DatabaseGraph.hamming((0, 1), 3).datasets]]
RECORDS = Pufferfish.of_records((0, 1), 3, all_but_one_known((0, 1), 3))


def test_the_loss_of_the_provision_under_the_specification_is_the_pufferfish_loss(rng):
    for number in range(150):
        case, rows = random_pufferfish(rng, zeros=0.3 * (number % 5 == 0))
        loss, provided = case.loss(rows).epsilon, case.provision(rows)
        assert provided.loss(case.specification(1)).number == pytest.approx(loss, rel=1e-9, abs=1e-12)
        if 0 < loss < math.inf:
            assert provided.satisfies(case.specification(f"{loss * (1 + 1e-9):.15f}"))
            assert not provided.satisfies(case.specification(f"{loss * 0.999:.15f}"))


def test_the_blocks_say_that_distributions_are_compared():
    specification = RECORDS.specification("0.7", name="records", about="three bits")
    words = dict(specification.blocks())
    assert specification.domain.objects == "distributions"
    assert words["domain"].startswith("Distributions of three bits, not datasets: what 12 attackers believe given each")
    assert words["input premetric"].startswith("On pairs of conditional distributions: 1 between")
    assert "All listed distributions are compared" in words["multiverse"]
    assert specification.nearest_words() == "the nearest distributions of a universe are 1 apart"
    assert Specification.from_json(specification.to_json()) == specification
    single = Pufferfish("ab", {"me": [0.5, 0.5]}, {"a": "a", "b": "b"}, [("a", "b")]).specification(1)
    assert "what 1 attacker believes given each of 2 secrets (2 conditional" in str(single)


def test_the_flavor_without_a_list_says_it_too():
    words = dict(flavors.pufferfish("models of households", "pairs of secrets").at(1).blocks())
    assert "On pairs of conditional distributions" in words["input premetric"]
    assert "All distributions are compared" in words["multiverse"]


def test_distances_in_the_specification_are_those_of_the_graph():
    table = RECORDS.specification(1).input_premetric
    for a in RECORDS.graph.datasets:
        for b in RECORDS.graph.datasets:
            assert float(table.distance(a, b)) == RECORDS.graph.distance(a, b)
    assert table.sharpened and table.sharpen().distances == table.distances


def test_larger_budgets_and_fewer_pairs_are_implied():
    strong = RECORDS.specification("0.7")
    assert strong.implies(RECORDS.specification(1)).verdict == "yes"
    assert RECORDS.specification(1).implies(strong).verdict == "no"
    fewer = Pufferfish(RECORDS.datasets, RECORDS.attackers, RECORDS.secrets, RECORDS.pairs[:2])
    assert strong.implies(fewer.specification("0.7")).verdict == "yes"
    assert fewer.specification("0.7").implies(strong).verdict == "no"
    others = Pufferfish.of_records((0, 1), 3, {"all alike": equal_records([0.5, 0.5], 3)})
    assert strong.implies(others.specification("0.7")).verdict == "unknown"


def test_compare_and_lint_work_and_invent_no_invariant():
    one, other = RECORDS.specification("0.7", name="one"), RECORDS.specification(1, name="other")
    assert "one is the stronger" in str(compare(one, other))
    assert "hidden-invariant" not in {finding.id for finding in lint(one)}


# -- whose attackers they are --------------------------------------------------------------------------------

SECRETS = {"x": "ab", "y": "cd"}
EVEN = Pufferfish("abcd", {"me": [0.25] * 4}, SECRETS, [("x", "y")])
ODD = Pufferfish("abcd", {"me": [0.49, 0.01, 0.01, 0.49]}, SECRETS, [("x", "y")])


def test_attackers_of_one_name_and_other_beliefs_promise_other_things():
    even, odd = EVEN.specification(1), ODD.specification(1)
    # The same mechanism tells nothing to one of them and nearly all to the other.
    rows = [[0.99, 0.01], [0.01, 0.99], [0.99, 0.01], [0.01, 0.99]]
    assert EVEN.loss(rows).epsilon == pytest.approx(0)
    assert ODD.loss(rows).epsilon > 3
    assert EVEN.fingerprint != ODD.fingerprint
    assert even != odd
    for a, b in ((even, odd), (odd, even)):
        assert a.implies(b).verdict == "unknown"
        read = Specification.from_json(a.to_json())
        assert read == a and read != b
        assert read.implies(b).verdict == "unknown" and read.implies(a).verdict == "yes"
    assert "the same" not in str(compare(even, odd))


def test_the_fingerprint_sees_laws_names_and_datasets_and_not_their_order():
    turned = Pufferfish("dcba", {"me": [0.49, 0.01, 0.01, 0.49]}, SECRETS, [("x", "y")])
    assert turned.fingerprint == ODD.fingerprint and turned.specification(1) == ODD.specification(1)
    renamed = Pufferfish("abcd", {"you": [0.25] * 4}, SECRETS, [("x", "y")])
    moved = Pufferfish("abce", {"me": [0.25] * 4}, {"x": "ab", "y": "ce"}, [("x", "y")])
    slightly = Pufferfish("abcd", {"me": [0.25, 0.25, 0.25 + 1e-10, 0.25 - 1e-10]}, SECRETS, [("x", "y")])
    for other in (renamed, moved, slightly):
        assert other.fingerprint != EVEN.fingerprint
        assert EVEN.specification(1).implies(other.specification(1)).verdict == "unknown"
    rounded = Pufferfish("abcd", {"me": [0.1 + 0.15, 0.25, 0.25, 0.25]}, SECRETS, [("x", "y")])
    assert rounded.specification(1) == EVEN.specification(1)


def test_laws_that_differ_in_their_support_or_in_small_parts_are_two_nodes():
    for tiny, other in ((0.0, 2e-13), (1e-13, 2e-13)):
        laws = {name: [0.5 * (1 - 2 * part), 0.5, part] for name, part in (("A", tiny), ("B", other))}
        case = Pufferfish("abc", laws, {"s": "ac", "t": "b"}, [("s", "t")])
        rows = np.array([[1.0, 0], [1, 0], [0, 1]])
        assert case.node("A", "s") != case.node("B", "s")
        assert case.node("A", "t") == case.node("B", "t")
        assert case.distance(("A", "s"), ("B", "s")) == 2
        assert case.provision(rows).loss(case.specification(1)).number == pytest.approx(case.loss(rows).epsilon)


def test_a_table_of_datasets_that_falls_apart_is_still_found():
    from stirred.spec import Domain, Flavor, InputPremetric, Multiverse, OutputPremetric

    premetric = InputPremetric.table({("a", "b"): 1, ("b", "a"): 1})
    for objects, found in (("datasets", True), ("distributions", False)):
        domain = Domain("things", datasets=("a", "b", "c"), objects=objects)
        flavor = Flavor(domain, Multiverse(), premetric, OutputPremetric("multiplicative"))
        assert ("hidden-invariant" in {one.id for one in lint(flavor.at(1))}) == found


def test_explain_says_who_is_covered():
    explained = explain(RECORDS.specification(1, about="three bits"))
    assert "three bits" in explained.statement("exposed.models").words
    assert "every attacker of the domain" in explained.statement("beliefs.odds").words
    assert explained.setting.change.distance == 1
    assert explained.powers[1]["upper"] == 0.136  # 0.05 e, rounded up
    assert RECORDS.loss(COUNTED).epsilon < 1


def of_distributions():
    """On distributions of every kind: listed, by a relation, other standards, with nothing left to compare."""
    listed = RECORDS.specification(1, about="three bits")
    named = flavors.pufferfish("models of households", "pairs of secrets").at(1)
    others = [
        (OutputPremetric("normalised-renyi"), "0.5"),
        (OutputPremetric("approximate", "1e-6"), 1),
        (OutputPremetric("renyi", 2), 1),
        (OutputPremetric("total-variation"), "0.1"),
        (OutputPremetric("multiplicative"), "infinity"),
        (OutputPremetric("multiplicative"), 60),
    ]
    yield listed
    yield named
    for output, budget in others:
        yield from (replace(one, output_premetric=output, budget=Budget(budget)) for one in (listed, named))
    yield replace(listed, input_premetric=replace(listed.input_premetric, scale=3))
    yield replace(listed, input_premetric=InputPremetric.table({}, "secret", words="None"), nearest=None)
    yield replace(listed, multiverse=Multiverse(universes=(listed.domain.datasets[:2],)))
    yield replace(named, input_premetric=InputPremetric.metric("miles", "secret"))
    yield replace(named, input_premetric=InputPremetric("records", "secret"))
    yield replace(named, output_premetric=OutputPremetric("trade-off"), budget=Budget(GaussianCurve(1)))


@pytest.mark.parametrize("specification", list(of_distributions()))
def test_explanations_of_distributions_speak_of_no_dataset_and_no_record(specification):
    explained = explain(specification)
    said = [*explained.statements, *of_explanation(explained).statements]
    assert len(said) > 5
    for one in said:
        told = re.sub("'[^']*'", "", f"{one.words} {one.formula}")
        assert not re.search("dataset|record|respondent|person|household", told.replace("models of households", ""))
    assert "dataset" not in explained.setting.change.words + of_explanation(explained).text()
    if specification.output_premetric.name in ("renyi", "approximate"):
        return  # whose pictures take long and have the words of the others
    for picture in explained.pictures():
        assert "record" not in picture.caption and "data in which" not in picture.subtitle + picture.caption


def test_explanations_of_datasets_still_speak_of_them():
    words = " ".join(one.words for one in explain(flavors.pure().at(1)).statements)
    for said in ("Two datasets are compared", "Every inference about a record", "whether a changed record"):
        assert said in words
