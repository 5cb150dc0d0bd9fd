"""Pufferfish as a specification: losses agree, and compare, lint and explain speak of distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from limit_cases import geometric_rows, random_pufferfish

from stirred.limits import DatabaseGraph, Pufferfish, all_but_one_known, equal_records
from stirred.semantics import explain
from stirred.spec import Specification, compare, flavors, lint

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
    assert len(RECORDS.graph.components) > 1


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
    assert np.isclose(explained.powers[1]["upper"], 0.05 * math.e)
    assert RECORDS.loss(COUNTED).epsilon < 1
