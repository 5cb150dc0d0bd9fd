"""Coarser and complete multiverses (Definitions 6.2.6 to 6.2.10), checked by enumeration of small random worlds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from finite_oracle import (
    METRICS,
    MULTIPLICATIVE,
    NUMBERS,
    RENYI,
    losses,
    near_budgets,
    random_flavor,
    random_mechanism,
    satisfied,
    universes,
)
from stirred.errors import SpecificationError
from stirred.lab.definitions.multiverses import (
    coarsens,
    comparable,
    completed,
    is_complete,
    laplace_scales,
    least_budgets,
    transferred,
)
from stirred.spec import Budget, Domain, Flavor, InputPremetric, Invariant, Multiverse, flavors
from stirred.spec.order.finite_flavors import FiniteFlavor, explicit
from stirred.spec.order.finite_mechanisms import FiniteMechanism
from stirred.spec.order.implication import implies_by_table, witness

by_number = pytest.mark.parametrize("output", NUMBERS, ids=str)
by_metric = pytest.mark.parametrize("output", METRICS, ids=str)


def metric(random, names) -> InputPremetric:
    """A metric with infinite distances: shortest paths in a graph with lengths, often of several components."""
    lengths = ("1/2", 1, 2, *[math.inf] * 6)
    pairs = {frozenset(pair): lengths[random.integers(len(lengths))] for pair in itertools.combinations(names, 2)}
    return InputPremetric.table(
        {(x, y): pairs[frozenset((x, y))] for x, y in itertools.permutations(names, 2)}
    ).sharpen()


def finer(random, flavor) -> Multiverse:
    """Parts of the universes at random."""
    parts = []
    for universe in universes(flavor):
        for _ in range(random.integers(1, 3)):
            part = tuple(np.array(universe)[random.random(len(universe)) < 0.7].tolist())
            if part:
                parts.append(part)
    return Multiverse((), tuple(parts) or (universes(flavor)[0],))


def lies_in(fine, coarse) -> bool:
    return all(any(set(one) <= set(other) for other in universes(coarse)) for one in universes(fine))


# -- Lemma 6.2.7 ---------------------------------------------------------------------------------------------


def test_definition_6_2_6_a_coarsening_holds_each_universe_of_the_finer_one():
    random, verdicts = np.random.default_rng(626), Counter()
    for _ in range(300):
        one, other = (random_flavor(random, MULTIPLICATIVE) for _ in range(2))
        verdict = coarsens(one, other).verdict
        verdicts[verdict] += 1
        assert (verdict == "yes") == lies_in(other, one)
    assert min(verdicts["yes"], verdicts["no"]) > 20


@by_number
def test_lemma_6_2_7_a_mechanism_of_the_coarser_multiverse_is_one_of_the_finer(output):
    random, verdicts = np.random.default_rng(627), Counter()
    for _ in range(150):
        flavor = random_flavor(random, output)
        mechanism = random_mechanism(random, flavor.domain.datasets)
        coarse = near_budgets(random, flavor, mechanism)
        fine = transferred(coarse, finer(random, flavor))
        budgets = coarse.budget.by_universe or (coarse.budget.number,) * len(universes(coarse))
        expected = [
            min(b for b, universe in zip(budgets, universes(coarse), strict=True) if set(part) <= set(universe))
            for part in fine.multiverse.universes
        ]
        assert list(fine.budget.by_universe or (fine.budget.number,) * len(expected)) == expected
        verdicts[satisfied(mechanism, coarse), satisfied(mechanism, fine)] += 1
        assert implies_by_table(coarse, fine)
    assert verdicts[True, False] == 0 and verdicts[True, True] > 20 and verdicts[False, True] > 5


def test_lemma_6_2_7_needs_a_coarsening():
    chain = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, size=3, choices=(1,))
    pairs = replace(chain, multiverse=Multiverse((), (("a", "b"), ("b", "c")))).at(1)
    with pytest.raises(SpecificationError, match=r"no universe of the first holds all of \{a, c\}"):
        transferred(pairs, Multiverse((), (("a", "c"),)))


@by_metric
def test_the_least_budgets_follow_and_no_smaller_ones_do(output):
    # Both directions by enumeration: what is transferred holds, and with any budget lowered a mechanism breaks it.
    random, broken, below = np.random.default_rng(6270), 0, 0
    for _ in range(100):
        flavor = replace(random_flavor(random, output), input_premetric=metric(random, tuple("abcd")))
        listed = tuple(Fraction(int(random.integers(1, 12)), 40) for _ in flavor.multiverse.universes)
        coarse = flavor.at(Budget(max(listed, default=Fraction(1, 10)), by_universe=listed))
        parts = finer(random, flavor)
        best, lemma = least_budgets(coarse, parts), transferred(coarse, parts)
        given = lemma.budget.by_universe or (lemma.budget.number,) * len(best)
        assert all(small <= one for small, one in zip(best, given, strict=True))
        below += any(0 < small < one * (1 - 1e-9) for small, one in zip(best, given, strict=True))
        raised = [one * (1 + Fraction(1, 10**6)) for one in best]  # roots of rho are rounded
        assert implies_by_table(coarse, replace(lemma, budget=Budget(max(raised), by_universe=tuple(raised))))
        for at, small in enumerate(best):
            if 0 < small < math.inf:
                lowered = [Fraction(one) * (Fraction(99, 100) if k == at else 2) for k, one in enumerate(best)]
                less = replace(lemma, budget=Budget(max(lowered), by_universe=tuple(lowered)))
                found = witness(coarse, less)
                if output.kind.power == 1:
                    assert found is not None and satisfied(found, coarse) and not satisfied(found, less)
                else:  # the mechanism is Gaussian noise, which has no finite table
                    assert implies_by_table(coarse, less).verdict == "no"
                broken += 1
    assert broken > 30 and below > 3


def test_the_budget_of_lemma_6_2_7_is_the_least_where_universes_are_disjoint():
    random, compared = np.random.default_rng(6271), 0
    for _ in range(60):
        names = tuple("abcdef")
        cut = int(random.integers(2, 5))
        flavor = Flavor(
            Domain("toy", datasets=names),
            Multiverse((), (names[:cut], names[cut:])),
            metric(random, names),
            MULTIPLICATIVE,
        )
        coarse = flavor.at(Budget(2, by_universe=(Fraction(1, 3), 2)))
        parts = finer(random, flavor)
        for part, best, given in zip(
            parts.universes, least_budgets(coarse, parts), transferred(coarse, parts).budget.by_universe, strict=True
        ):
            near = [
                pair for pair in itertools.combinations(part, 2) if flavor.input_premetric.distance(*pair) < math.inf
            ]
            assert best == (given if near else 0)
            compared += bool(near)
    assert compared > 30


def test_the_budget_of_lemma_6_2_7_need_not_be_the_least():
    # Three small universes bind every pair of the large one ten times better than it does.
    flavor = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, size=3, choices=(1,))
    flavor = replace(flavor, multiverse=Multiverse((), (("a", "b", "c"), ("a", "b"), ("b", "c"), ("a", "c"))))
    coarse = flavor.at(Budget(1, by_universe=(1, "1/10", "1/10", "1/10")))
    whole = Multiverse((), (("a", "b", "c"),))
    assert transferred(coarse, whole).budget.by_universe == (1,) and least_budgets(coarse, whole) == (Fraction(1, 10),)
    with pytest.raises(SpecificationError, match="does not add up along paths"):
        least_budgets(replace(coarse, output_premetric=RENYI), whole)


# -- Lemma 6.2.11 --------------------------------------------------------------------------------------------


def test_definition_6_2_8_and_6_2_10_the_completion_cuts_universes_where_distances_are_infinite():
    names = tuple("abcd")
    table = {("a", "b"): 1, ("b", "a"): 1, ("c", "d"): 2, ("d", "c"): 2}
    flavor = Flavor(Domain("toy", datasets=names), Multiverse(), InputPremetric.table(table), MULTIPLICATIVE)
    assert is_complete(flavor).verdict == "no" and "'a' and 'c'" in str(is_complete(flavor))
    both = replace(flavor, multiverse=Multiverse((), (("a", "b", "c"), ("a", "b"), ("b", "c", "d")))).at(
        Budget(3, by_universe=(3, 2, 1))
    )
    found = completed(both)
    assert found.multiverse.universes == (("a", "b"), ("c",), ("b",), ("c", "d"))
    assert found.budget.by_universe == (2, 1, 1, 1)  # {a, b} lies in two universes, {c} and {b} in the third as well
    assert is_complete(found) and coarsens(both, found)


def test_definition_6_2_9_comparable_datasets_differ_and_share_a_universe_at_a_finite_distance():
    random = np.random.default_rng(629)
    for _ in range(40):
        flavor = random_flavor(random, MULTIPLICATIVE)
        premetric = flavor.input_premetric
        for x, y in itertools.product(flavor.domain.datasets, repeat=2):
            near = min(premetric.distance(x, y), premetric.distance(y, x)) < math.inf
            shared = any({x, y} <= set(universe) for universe in universes(flavor))
            assert comparable(flavor, x, y) == (x != y and near and shared)


@by_number
def test_lemma_6_2_11_the_completion_is_complete_and_has_the_same_mechanisms(output):
    random, verdicts, cut = np.random.default_rng(6211), Counter(), 0
    for _ in range(200):
        flavor = replace(random_flavor(random, output, size=5), input_premetric=metric(random, tuple("abcde")))
        mechanism = random_mechanism(random, flavor.domain.datasets)
        one = near_budgets(random, flavor, mechanism)
        other = completed(one)
        assert is_complete(other)
        cut += len(other.multiverse.universes) > len(universes(one))
        verdicts[satisfied(mechanism, one)] += 1
        assert satisfied(mechanism, one) == satisfied(mechanism, other)
        assert implies_by_table(one, other) and implies_by_table(other, one)
        assert completed(other).multiverse == other.multiverse
    assert min(verdicts.values()) > 20 and cut > 50


@by_number
def test_lemma_6_2_11_without_a_metric_keeps_the_mechanisms_but_need_not_be_complete(output):
    random, incomplete = np.random.default_rng(62110), 0
    for _ in range(100):
        flavor = random_flavor(random, output)
        mechanism = random_mechanism(random, flavor.domain.datasets)
        one = near_budgets(random, flavor, mechanism)
        other = completed(one)
        incomplete += is_complete(other).verdict == "no"
        assert satisfied(mechanism, one) == satisfied(mechanism, other)
    assert incomplete > 10


def test_err_13_distances_may_be_infinite_and_then_constrain_nothing():
    flavor = Flavor(
        Domain("toy", datasets=("a", "b")), Multiverse(), InputPremetric.table({("a", "b"): math.inf}), MULTIPLICATIVE
    )
    told = FiniteMechanism.of({"a": {"a": 1}, "b": {"b": 1}})
    assert flavor.input_premetric.distance("a", "b") == math.inf
    assert told.satisfies(flavor.at(0)) and completed(flavor.at(0)).multiverse.universes == (("a",), ("b",))


# -- without a list of datasets ------------------------------------------------------------------------------

FILES = {
    name: [{"state": one, "sex": other} for one, other in rows]
    for name, rows in {
        "none": [], "Mf": [("M", "f")], "Nf": [("N", "f")], "MfMf": [("M", "f"), ("M", "f")],
        "MfNf": [("M", "f"), ("N", "f")], "MmNf": [("M", "m"), ("N", "f")], "NfNf": [("N", "f"), ("N", "f")],
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("invariants", [(), (Invariant("person", by=("state",)),)])
def test_a_completion_without_a_list_is_that_of_any_list(bounded, invariants):
    flavor = flavors.pure("person", bounded=bounded)
    flavor = flavors.given_invariants(flavor, invariants) if invariants else flavor
    done = completed(flavor.at(1))
    assert is_complete(done) and coarsens(flavor, done)
    assert is_complete(explicit(done.flavor, FILES)).verdict == "yes"
    by_list = FiniteFlavor.of(completed(explicit(flavor, FILES).at(1)))
    by_rule = FiniteFlavor.of(done, FILES)
    assert {by_list.members(k) for k in range(len(by_list.universes))} == {
        tuple(by_rule.members(k)) for k in range(len(by_rule.universes))
    }
    random = np.random.default_rng(1)
    for _ in range(20):
        mechanism = random_mechanism(random, FILES)
        assert max(losses(mechanism, explicit(flavor, FILES))) == max(losses(mechanism, explicit(done.flavor, FILES)))


def test_coarsening_without_a_list_goes_by_what_implies_what():
    person = flavors.pure("person")
    state, sex = (Invariant("person", by=(one,)) for one in ("state", "sex"))
    both = Invariant("person", by=("state", "sex"))
    by_state, by_both = (flavors.given_invariants(person, [one]) for one in (state, both))
    assert coarsens(by_state, by_both) and coarsens(by_both, by_state).verdict == "no"
    assert coarsens(by_state, flavors.given_invariants(person, [sex])).verdict == "no"
    moved = transferred(by_state.at(2), by_both.multiverse)
    assert moved.budget.number == 2 and by_state.at(2).implies(moved)
    with pytest.raises(SpecificationError, match="does not hold fixed"):
        transferred(by_both.at(2), by_state.multiverse)
    with pytest.raises(SpecificationError, match="No rule is known for a completion"):
        completed(flavors.metric("travel time").at(1))
    assert is_complete(flavors.metric("travel time")).verdict == "unknown"


# -- Definition 6.4.2 ----------------------------------------------------------------------------------------


def laplace_loss(first, second) -> float:
    """D_Mult between Laplace laws (value, scale): other scales are told apart without bound by the tails."""
    if first[1] != second[1]:
        return math.inf
    return 0.0 if first[0] == second[0] else math.inf if first[1] == 0 else abs(first[0] - second[0]) / first[1]


def worst(specification, query, scales) -> float:
    """The largest loss over its bound, over all pairs of all universes."""
    found = 0.0
    budgets = specification.budget.by_universe or itertools.repeat(specification.budget.number)
    for universe, budget in zip(universes(specification), budgets, strict=False):
        for x, y in itertools.permutations(universe, 2):
            distance = specification.input_premetric.distance(x, y)
            if distance < math.inf:
                loss = laplace_loss((query[x], scales[x]), (query[y], scales[y]))
                found = max(
                    found, loss / float(budget * distance) if budget * distance else math.inf * (loss > 0) or 0.0
                )
    return found


def printed_scale(specification, query, name) -> float:
    """Definition 6.4.2 as printed: over the universes that lie in the datasets comparable with x, or x itself."""
    held = {name} | {y for y in specification.domain.datasets if comparable(specification, name, y)}
    budgets = specification.budget.by_universe
    ratios = [
        abs(query[x] - query[y]) / float(budget * specification.input_premetric.distance(x, y))
        for universe, budget in zip(universes(specification), budgets, strict=True)
        if set(universe) <= held
        for x, y in itertools.permutations(universe, 2)
    ]
    return max(ratios, default=0.0)


def test_definition_6_4_2_err_12_scales_are_those_of_whole_classes():
    flavor = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, size=3, choices=(1,))
    chain = replace(flavor, multiverse=Multiverse((), (("a", "b"), ("b", "c")))).at(Budget(1, by_universe=(1, 1)))
    query = {"a": 0, "b": 1, "c": 10}
    printed = {name: printed_scale(chain, query, name) for name in query}
    assert printed == {"a": 1, "b": 9, "c": 9} and worst(chain, query, printed) == math.inf
    assert (
        laplace_scales(chain, query) == {"a": 9, "b": 9, "c": 9}
        and worst(chain, query, laplace_scales(chain, query)) == 1
    )


def test_definition_6_4_2_corrected_satisfies_any_listed_specification_and_no_smaller_scale_does():
    random, attained = np.random.default_rng(642), 0
    for _ in range(80):
        flavor = replace(random_flavor(random, MULTIPLICATIVE), input_premetric=metric(random, tuple("abcd")))
        listed = tuple(Fraction(int(random.integers(1, 5)), 2) for _ in flavor.multiverse.universes)
        one = flavor.at(Budget(max(listed, default=Fraction(1)), by_universe=listed))
        query = {name: int(random.integers(-3, 4)) for name in flavor.domain.datasets}
        scales = {name: float(scale) for name, scale in laplace_scales(one, query).items()}
        assert worst(one, query, scales) <= 1 + 1e-12
        if any(scales.values()):
            assert worst(one, query, {name: scale * 0.999 for name, scale in scales.items()}) > 1
            attained += 1
    assert attained > 30
    stuck = flavor.at(0)
    assert (
        math.inf
        in laplace_scales(replace(stuck, multiverse=Multiverse()), {n: k for k, n in enumerate("abcd")}).values()
    )
    with pytest.raises(SpecificationError, match="Use a pure specification"):
        laplace_scales(replace(stuck, output_premetric=RENYI), query)
