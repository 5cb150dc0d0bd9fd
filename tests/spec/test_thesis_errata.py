"""What is printed wrongly about specifications, beside what is right: both forms, evaluated."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from stirred.lab.definitions.multiverses import as_pairs
from stirred.lab.reproduce.catalogue import published
from stirred.loss.divergences import approximate, multiplicative, power_curve
from stirred.spec import (
    Domain,
    FiniteMechanism,
    Flavor,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    flavors,
    per_respondent,
)
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.order.finite_mechanisms import randomised_response
from stirred.spec.order.implication import implies_by_table


def test_sections_2_4_4_and_3_4_4_count_the_own_record_too():
    overall = deployment("das-2020-overall").specification
    recipients = 1
    correct = per_respondent(overall, 1 + recipients).specification.budget.number
    printed = per_respondent(overall, recipients).specification.budget.number
    stated = published("thesis/section-3.4.4/rho")
    assert f"{float(correct):.2f}" == stated
    assert f"{float(printed):.2f}" == published("thesis/section-3.4.4/rho-not-duplicated") != stated


def test_section_2_4_6_the_trade_off_function_is_the_power():
    informative, blind = power_curve([0.75, 0.25], [0.25, 0.75]), power_curve([0.5, 0.5], [0.5, 0.5])
    at = dict(map(tuple, informative.tolist()))
    assert at[0.25] == 0.75  # the power; the smallest type II error is 0.25
    # Processing to nothing must not raise a non-decreasing function of Tr. The power falls to the level, while the
    # type II error rises.
    assert blind.tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert at[0.25] > 0.25 and 1 - at[0.25] < 1 - 0.25


def test_definition_2_5_1_composes_two_mechanisms():
    files, flavor = {"0": "0", "1": "1"}, flavors.local()
    first, second = randomised_response("1/4"), randomised_response("1/3")
    both = first.and_then(second).loss(flavor, files).number
    assert both == pytest.approx(math.log(3) + math.log(2))
    assert first.and_then(first).loss(flavor, files).number == pytest.approx(2 * math.log(3))


def listed(universes) -> Flavor:
    table = dict.fromkeys(itertools.permutations("abc", 2), 1)
    return Flavor(
        Domain("three", datasets=("a", "b", "c")),
        Multiverse((), universes),
        InputPremetric.table(table),
        OutputPremetric(),
    )


def test_section_4_3_a_refinement_lies_within_the_other_multiverse():
    coarse, fine = (("a", "b", "c"),), (("a", "b"), ("c",))

    def refines(one, other) -> bool:
        return all(any(set(x) <= set(y) for y in other) for x in one)

    # As printed, the universes are compared with those of the same multiverse, and the answer is always yes.
    assert refines(coarse, coarse) and refines(fine, fine)
    assert refines(fine, coarse) and not refines(coarse, fine)
    # Proposition 2.4.13 holds for the correct definition only.
    assert implies_by_table(listed(coarse).at(1), listed(fine).at(1)).verdict == "yes"
    assert implies_by_table(listed(fine).at(1), listed(coarse).at(1)).verdict == "no"


def test_section_4_3_delta_need_not_lower_the_distance():
    random = np.random.default_rng(43)
    for p, q in random.dirichlet(np.ones(4), size=(50, 2)):
        assert approximate(p, q, 0.1) <= multiplicative(p, q)
        assert approximate(p, p, 0.1) == multiplicative(p, p) == 0
    far, near = [1, 0], [0.8, 0.2]
    assert approximate(far, near, 0.1) == multiplicative(far, near) == math.inf
    assert approximate([0.75, 0.25], [0.25, 0.75], 0.1) < math.log(3)


def test_proposition_a_3_2_intersects_with_pairs():
    universes = (("a", "b", "c"),)
    whole = listed(universes).at(1)
    printed = {tuple(sorted(set(x) & set(y))) for x in universes for y in universes}
    assert printed == {("a", "b", "c")}
    pairs = set(as_pairs(whole).multiverse.universes)
    assert {("a", "b"), ("a", "c"), ("b", "c")} <= pairs and max(map(len, pairs)) == 2
    # Both have the same mechanisms, but only the second has universes of pairs.
    assert implies_by_table(whole, as_pairs(whole)) and implies_by_table(as_pairs(whole), whole)


def test_the_hamming_distance_counts_all_records_that_differ():
    hamming = InputPremetric(unit="record", ordered=True)
    assert hamming.distance("0000", "0011") == 2
    assert hamming.distance("0000", "1111") == 4
    assert hamming.distance("000", "0000") == math.inf


def test_a_constant_mechanism_loses_nothing_even_if_it_publishes_the_data():
    told = FiniteMechanism.releases(dict.fromkeys("abc", "the data"), str)
    assert told.loss(replace(listed((tuple("abc"),)))).value == 0
    assert told.satisfies(listed((tuple("abc"),)).at(Fraction(0)))
