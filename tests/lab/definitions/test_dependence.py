"""From prior to posterior: formulas against enumeration, components against all subsets, and a false theorem."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import StirredError
from stirred.lab.definitions.beliefs import (
    Beliefs,
    covariance,
    dependency_component,
    dependency_components,
    markov_boundary,
    pair_likelihood_ratio,
    posterior_factor,
    posterior_factor_bounds,
    prior_to_posterior_bounds,
)
from stirred.loss import multiplicative
from stirred.spec import FiniteMechanism
from stirred.spec.order.finite_mechanisms import randomised_response

E = math.e
HALF = Fraction(1, 2)
shares = st.floats(1e-6, 1 - 1e-6)


def responses(people, epsilon=1.0):
    return randomised_response(1 / (1 + math.exp(epsilon)), respondents=people)


def copied(share, flip, people):
    """The first is 1 with probability ``share``; each next copies the one before, or with probability ``flip`` not."""
    prior = {}
    for bits in itertools.product((0, 1), repeat=people):
        chance = share if bits[0] else 1 - share
        for before, after in itertools.pairwise(bits):
            chance *= flip if before != after else 1 - flip
        prior[tuple(map(str, bits))] = chance
    return prior


def moved(beliefs, record="1", output=None):
    """The ratio of posterior to prior, by default where everyone answers 1."""
    output = output or max(beliefs.outputs)
    return float(beliefs.prior_to_posterior[beliefs.records.index(record), beliefs.outputs.index(output)])


# -- one record, and two -------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e3), shares)
@settings(max_examples=200, deadline=None)
def test_an_output_moves_the_prior_of_one_record_by_its_factor(ratio, share):
    # One record, an output that is ``ratio`` times as likely if it is 1.
    high, low = (0.5, 0.5 / ratio) if ratio > 1 else (0.5 * ratio, 0.5)
    mechanism = FiniteMechanism.of({"0": {"w": low, "v": 1 - low}, "1": {"w": high, "v": 1 - high}})
    exact = moved(Beliefs({("0",): 1 - share, ("1",): share}, mechanism, 0), output="w")
    assert float(posterior_factor(ratio, share)) == pytest.approx(exact, rel=1e-9)
    low, high = posterior_factor_bounds(ratio)
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    assert (low, high) == (min(1, ratio), max(1, ratio))


def test_the_bounds_of_the_factor_are_its_values_at_shares_of_none_and_of_all():
    for ratio in (0.0, 0.3, 1.0, 7.0, math.inf):
        ends = sorted((float(posterior_factor(ratio, 0)), float(posterior_factor(ratio, 1))))
        if ratio:
            assert ends == list(posterior_factor_bounds(ratio))
    assert posterior_factor([0.0, math.inf], 0.25).tolist() == [0, 4]
    assert math.isnan(float(posterior_factor(0, 1)))  # the output cannot occur


def test_a_factor_within_epsilon_for_every_share_is_a_likelihood_ratio_within_epsilon():
    every = np.linspace(0, 1, 1001)
    for ratio in np.exp(np.linspace(-2, 2, 81)):
        within = np.abs(np.log(posterior_factor(ratio, every))).max() <= 1 + 1e-12
        assert within == (abs(math.log(ratio)) <= 1 + 1e-12)


@pytest.mark.parametrize(
    ("own", "other", "ratio"), [(1, 0, 7.389056), (0.8, 0.3, 4.259299), (0.5, 0.5, 2.718282), (0.3, 0.8, 1.734806)]
)
def test_likelihood_ratios_of_pairs_as_in_section_7_6(own, other, ratio):
    for share in (0.001, 0.4):
        joint = [[(1 - share) * (1 - other), (1 - share) * other], [share * (1 - own), share * own]]
        assert pair_likelihood_ratio(1, joint) == pytest.approx(ratio, abs=6e-7)


@given(st.tuples(*[st.floats(1e-4, 1)] * 4), st.floats(0.01, 5))
@settings(max_examples=300, deadline=None)
def test_the_pair_is_that_of_enumeration_and_exceeds_epsilon_exactly_if_the_covariance_is_positive(weights, epsilon):
    joint = np.array(weights).reshape(2, 2) / sum(weights)
    prior = {(str(a), str(b)): joint[a, b] for a in (0, 1) for b in (0, 1)}
    beliefs = Beliefs(prior, responses(2, epsilon), 0)
    at = beliefs.outputs.index("11")
    expected = beliefs.given_record[1, at] / beliefs.given_record[0, at]
    found = pair_likelihood_ratio(epsilon, joint)
    assert found == pytest.approx(expected, rel=1e-9)
    assert moved(beliefs) == pytest.approx(float(posterior_factor(found, joint[1].sum())), rel=1e-9)
    own, other = joint[1, 1] / joint[1].sum(), joint[0, 1] / joint[0].sum()
    assert covariance(joint) == pytest.approx((own - other) * joint[0].sum() * joint[1].sum(), abs=1e-15)
    assert covariance(joint) == pytest.approx(joint[1, 1] - joint[1].sum() * joint[:, 1].sum(), abs=1e-15)
    if abs(covariance(joint)) > 1e-9:
        assert (found > math.exp(epsilon)) == (covariance(joint) > 0)


@pytest.mark.parametrize(
    ("share", "factor"), [(0.01, 6.9453), (0.1, 4.5085), (0.2, 3.2439), (0.268941, 2.71828), (0.5, 1.7616)]
)
def test_of_a_pair_of_copies_only_a_rare_record_moves_by_more_than_epsilon(share, factor):
    # Reference, section 7.6: above e^epsilon exactly if the share is below 1 / (1 + e^epsilon).
    found = moved(Beliefs(copied(share, 0, 2), responses(2), 0))
    assert found == pytest.approx(factor, abs=6e-5)
    assert float(posterior_factor(E**2, share)) == pytest.approx(found)
    assert (found > E + 1e-5) == (share < 0.2689)


@pytest.mark.parametrize(
    ("share", "flip", "posterior", "counterfactual", "ratio", "to_prior"),
    [
        (0.1, 0.1, 0.39625643, 0.26621722, 1.48847, 3.96256),
        (0.01, 0.05, 0.06240585, 0.02918938, 2.13796, 6.24058),
        (0.3, 0.5, 0.3 * 1.79367, 0.3, 1.79367, 1.79367),
    ],
)
def test_a_dependent_prior_moves_by_more_than_epsilon_the_counterfactual_does_not(
    share, flip, posterior, counterfactual, ratio, to_prior
):
    # Reference, section 6.11: randomised response at epsilon = 1 on both, both answer 1.
    found = Beliefs(copied(share, flip, 2), responses(2), 0)
    at = found.records.index("1"), found.outputs.index("11")
    assert found.posterior[at] == pytest.approx(posterior, rel=4e-6)
    assert found.counterfactual[at] == pytest.approx(counterfactual, rel=2e-7)
    assert found.ratio[at] == pytest.approx(ratio, abs=6e-6)
    assert found.prior_to_posterior[at] == pytest.approx(to_prior, abs=6e-6)
    assert found.ratio[at] <= E
    assert (found.prior_to_posterior[at] > E) == (flip != 0.5)


# -- components ----------------------------------------------------------------------------------------------


def product_of(*laws):
    """Independent groups of records, one after the other."""
    prior = {(): Fraction(1)}
    for law in laws:
        prior = {first + second: p * q for first, p in prior.items() for second, q in law.items()}
    return prior


def shuffled(prior, order):
    return {tuple(dataset[place] for place in order): chance for dataset, chance in prior.items()}


def random_law(rng, people, zeros):
    datasets = list(itertools.product("01", repeat=people))
    weights = rng.integers(0 if zeros else 1, 9, len(datasets))
    weights[0] += 1
    return {dataset: Fraction(int(w), int(weights.sum())) for dataset, w in zip(datasets, weights, strict=True)}


def smallest_component(prior, target):
    """By definition: of all sets with the target in them, the smallest that is independent of the rest."""
    people = len(next(iter(prior)))
    others = [person for person in range(people) if person != target]
    for size in range(people):
        for some in itertools.combinations(others, size):
            inside = sorted({target, *some})
            outside = [person for person in range(people) if person not in inside]
            joint, first, second = {}, {}, {}
            for dataset, chance in prior.items():
                parts = tuple(dataset[p] for p in inside), tuple(dataset[p] for p in outside)
                for law, key in ((joint, parts), (first, parts[0]), (second, parts[1])):
                    law[key] = law.get(key, 0) + chance
            if all(joint.get((a, b), 0) == first[a] * second[b] for a in first for b in second):
                return tuple(inside)
    raise AssertionError


EXCLUSIVE_OR = {
    dataset: Fraction(1, 4) for dataset in [("0", "0", "0"), ("0", "1", "1"), ("1", "0", "1"), ("1", "1", "0")]
}
COPIES = {("0", "0"): HALF, ("1", "1"): HALF}
ALONE = {("0",): Fraction(1, 3), ("1",): Fraction(2, 3)}


@pytest.mark.parametrize(
    ("prior", "components"),
    [
        (product_of(ALONE, ALONE, ALONE), ((0,), (1,), (2,))),
        (product_of(COPIES, ALONE), ((0, 1), (2,))),
        (product_of(EXCLUSIVE_OR, COPIES), ((0, 1, 2), (3, 4))),  # though any two of the first three are independent
        (shuffled(product_of(COPIES, COPIES), (0, 2, 1, 3)), ((0, 2), (1, 3))),
        ({("0", "1", "0"): 1}, ((0,), (1,), (2,))),
        ({("0", "0"): HALF, ("0", "1"): HALF, ("1", "0"): Fraction(0)}, ((0,), (1,))),
    ],
)
def test_components_of_known_dependences(prior, components):
    assert dependency_components(prior) == components
    assert dependency_components({dataset: float(chance) for dataset, chance in prior.items()}) == components
    for component in components:
        assert all(dependency_component(prior, person) == component for person in component)


@pytest.mark.parametrize("seed", range(80))
def test_components_are_the_smallest_independent_sets(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 4, int(rng.integers(1, 3)))]
    laws = [random_law(rng, size, bool(rng.integers(2))) for size in sizes]
    prior = shuffled(product_of(*laws), rng.permutation(sum(sizes)))
    for target in range(sum(sizes)):
        expected = smallest_component(prior, target)
        assert dependency_component(prior, target) == expected
        assert dependency_component({dataset: float(p) for dataset, p in prior.items()}, target) == expected


def test_what_is_known_cuts_components_and_may_join_them():
    chain = {dataset: Fraction(chance).limit_denominator() for dataset, chance in copied(0.5, 0.25, 3).items()}
    assert dependency_component(chain, 0) == (0, 1, 2)
    assert dependency_component(chain, 0, known=lambda dataset: dataset[1] == "1") == (0,)
    assert dependency_component(EXCLUSIVE_OR, 0, known=lambda dataset: dataset[2] == "1") == (0, 1)
    alone = product_of(ALONE, ALONE)
    assert dependency_component(alone, 0, known=lambda dataset: "1" in dataset) == (0, 1)


def test_a_small_dependence_is_seen_in_fractions_and_in_floats_down_to_their_tolerance():
    tiny = Fraction(1, 10**30)
    off = {("0", "0"): Fraction(1, 4) + tiny, ("0", "1"): Fraction(1, 4) - tiny}
    prior = off | {("1", "0"): Fraction(1, 4) - tiny, ("1", "1"): Fraction(1, 4) + tiny}
    assert dependency_component(prior, 0) == (0, 1)
    assert dependency_component({dataset: float(p) for dataset, p in prior.items()}, 0) == (0,)
    off = {d: 0.25 * (1 + (1e-7 if d[0] == d[1] else -1e-7)) for d in prior}
    assert dependency_component(off, 0) == (0, 1)
    # Two rare values that never come together: all that can happen has nearly the product's probability.
    assert dependency_component({("0", "0"): 1 - 2e-11, ("0", "1"): 1e-11, ("1", "0"): 1e-11}, 0) == (0, 1)


@pytest.mark.parametrize("seed", range(80))
def test_the_component_bounds_the_ratio_of_posterior_to_prior(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 4, int(rng.integers(1, 3)))]
    people = sum(sizes)
    prior = shuffled(product_of(*(random_law(rng, size, True) for size in sizes)), rng.permutation(people))
    names = ["".join(bits) for bits in itertools.product("01", repeat=people)]
    rows = rng.dirichlet(np.full(3, rng.choice([0.3, 3.0])), len(names)) + 1e-3
    mechanism = FiniteMechanism(tuple(names), tuple("xyz"), rows / rows.sum(axis=1, keepdims=True))
    if rng.integers(2):
        mechanism = responses(people, float(rng.uniform(0.2, 3)))
    epsilon = max(
        multiplicative(mechanism.rows[i], mechanism.rows[j])
        for i, j in itertools.combinations(range(len(names)), 2)
        if sum(a != b for a, b in zip(names[i], names[j], strict=True)) == 1
    )
    facts = (lambda dataset: True), (lambda dataset: dataset[-1] == max(d[-1] for d in prior if prior[d]))
    for known, target in itertools.product(facts, range(people)):
        given_facts = {dataset: chance for dataset, chance in prior.items() if known(dataset)}
        total = sum(given_facts.values())
        beliefs = Beliefs({d: chance / total for d, chance in given_facts.items()}, mechanism, target)
        low, high = prior_to_posterior_bounds(len(dependency_component(prior, target, known)), epsilon)
        assert beliefs.prior_to_posterior.max() <= high * (1 + 1e-9)
        assert beliefs.prior_to_posterior.min() >= low * (1 - 1e-9)


@pytest.mark.parametrize(("people", "factor"), [(1, E), (2, 7.389), (3, 20.086), (5, 148.41)])
def test_the_bound_for_every_prior_is_reached_by_copies(people, factor):
    # Reference, section 7.6.
    low, high = prior_to_posterior_bounds(people, 1)
    assert high == pytest.approx(factor, rel=4e-5)
    prior = {("0",) * people: 1 - 1e-9, ("1",) * people: 1e-9}
    assert moved(Beliefs(prior, responses(people), 0)) == pytest.approx(high, rel=1e-6)
    assert moved(Beliefs(prior, responses(people), 0), output="0" * people) == pytest.approx(low, rel=1e-6)
    assert dependency_component(prior, 0) == tuple(range(people))


# -- the false theorem ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flip", "factor"), [(0, 20.047), (0.001, 19.857), (0.01, 18.282), (0.05, 13.389), (0.1, 9.868)]
)
def test_erratum_15_a_markov_boundary_does_not_bound_what_is_learnt(flip, factor):
    chain = copied(1e-4, flip, 3)
    boundary, component = markov_boundary(chain, 0), dependency_component(chain, 0)
    assert (boundary, component) == ((1,), (0, 1, 2))
    found = moved(Beliefs(chain, responses(3), 0))
    assert found == pytest.approx(factor, abs=6e-4)
    claimed = prior_to_posterior_bounds(len(boundary) + 1, 1)[1]
    assert claimed == pytest.approx(7.389, abs=1e-3)
    assert claimed < found <= prior_to_posterior_bounds(len(component), 1)[1]


def test_markov_boundaries_of_known_dependences():
    assert markov_boundary(product_of(ALONE, ALONE), 0) == ()
    assert markov_boundary(EXCLUSIVE_OR, 0) == (1, 2)
    chain = copied(0.3, 0.1, 4)
    assert [markov_boundary(chain, person) for person in range(4)] == [(1,), (0, 2), (1, 3), (2,)]
    assert markov_boundary(chain, 1, known=lambda dataset: dataset[2] == "0") == (0,)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: posterior_factor(-1, 0.5), "likelihood ratio"),
        (lambda: posterior_factor(math.nan, 0.5), "likelihood ratio"),
        (lambda: posterior_factor(1, 1.5), "The share"),
        (lambda: posterior_factor_bounds(-1), "likelihood ratio"),
        (lambda: pair_likelihood_ratio(1, [0.5, 0.5]), "two by two"),
        (lambda: pair_likelihood_ratio(1, [[0.5, 0.5], [0, 0]]), "one possible value"),
        (lambda: pair_likelihood_ratio(math.inf, [[0.5, 0], [0, 0.5]]), "finite"),
        (lambda: covariance([[0.5, 0.5], [0.5, 0]]), "sum to 1"),
        (lambda: covariance([[1.5, 0], [-0.5, 0]]), "negative"),
        (lambda: prior_to_posterior_bounds(0, 1), "from 1 on"),
        (lambda: prior_to_posterior_bounds(1.5, 1), "from 1 on"),
        (lambda: prior_to_posterior_bounds(2, -1), "epsilon"),
        (lambda: dependency_component(COPIES, 2), "The target"),
        (lambda: dependency_component({("0",): 0.5}, 0), "sum to 1"),
        (lambda: dependency_component(COPIES, 0, known=lambda dataset: False), "impossible under the prior"),
        (lambda: markov_boundary(COPIES, -1), "The target"),
    ],
)
def test_questions_without_an_answer_are_refused(call, words):
    with pytest.raises(StirredError, match=words):
        call()


def test_large_exponents_are_infinite_and_not_an_error():
    assert prior_to_posterior_bounds(10**6, 1) == (0, math.inf)
    assert prior_to_posterior_bounds(3, math.inf) == (0, math.inf)
    assert pair_likelihood_ratio(2000, [[0.5, 0], [0, 0.5]]) == math.inf
    assert pair_likelihood_ratio(600, [[0.5, 0], [0.5, 0]]) == pytest.approx(math.exp(600))
