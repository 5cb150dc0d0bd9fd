"""Beliefs: the two worlds enumerated in fractions, the published numbers, and Gaussian noise by three routes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import brentq
from scipy.stats import norm

from stirred.errors import LossError, SpecificationError, StirredError
from stirred.lab.definitions.beliefs import Beliefs, GaussianBelief
from stirred.loss import gaussian_to_tail
from stirred.spec import (
    Domain,
    FiniteMechanism,
    Flavor,
    InputPremetric,
    Invariant,
    Multiverse,
    OutputPremetric,
    flavors,
)
from stirred.spec.order.finite_flavors import explicit
from stirred.spec.order.finite_mechanisms import randomised_response

# -- the worlds, written out ---------------------------------------------------------------------------------


def both_worlds(prior, laws, target):
    """P(R = r and output = w) in the actual and in the counterfactual world, from the words of section 7.2."""
    records = list(dict.fromkeys(dataset[target] for dataset, chance in prior.items() if chance))
    outputs = range(len(next(iter(laws.values()))))
    worlds = [{(r, w): Fraction(0) for r in records for w in outputs} for _ in range(2)]
    for dataset, chance in prior.items():
        others = dataset[:target], dataset[target + 1 :]
        beside = {d: p for d, p in prior.items() if (d[:target], d[target + 1 :]) == others and p}
        for w in outputs if chance else ():
            worlds[0][dataset[target], w] += chance * laws[dataset][w]
            for replaced, p in beside.items():  # drawn from P(R | rest) before the mechanism runs
                worlds[1][dataset[target], w] += chance * p / sum(beside.values()) * laws[replaced][w]
    return records, worlds


def random_weights(rng, size):
    """Fractions that sum to 1, many of them 0."""
    while not (weights := rng.integers(0, 7, size) * rng.integers(0, 2, size)).any():
        pass
    return [Fraction(int(weight), int(weights.sum())) for weight in weights]


def random_case(rng):
    people, kinds, outputs = rng.integers(1, 4), rng.integers(2, 4), int(rng.integers(2, 5))
    datasets = list(itertools.product("abc"[:kinds], repeat=int(people)))
    prior = dict(zip(datasets, random_weights(rng, len(datasets)), strict=True))
    laws = {dataset: random_weights(rng, outputs) for dataset in datasets}
    mechanism = FiniteMechanism.of(
        {"".join(d): {str(w): law for w, law in enumerate(laws[d])} for d in datasets if prior[d] or rng.integers(2)}
    )
    return prior, laws, mechanism, int(rng.integers(people))


@pytest.mark.parametrize("seed", range(150))
def test_posteriors_are_those_of_the_two_worlds(seed):
    prior, laws, mechanism, target = random_case(np.random.default_rng(seed))
    records, (actual, counterfactual) = both_worlds(prior, laws, target)
    found = Beliefs(prior, mechanism, target)
    assert found.records == tuple(records)
    for (row, r), (column, output) in itertools.product(enumerate(records), enumerate(found.outputs)):
        w = int(output)
        mine = sum(chance for dataset, chance in prior.items() if dataset[target] == r)
        totals = [sum(world[s, w] for s in records) for world in (actual, counterfactual)]
        assert totals[0] == totals[1]  # the output has the same law in both worlds
        near = {"rel": 1e-12, "abs": 1e-15}
        assert found.predictive[column] == pytest.approx(float(totals[0]), **near)
        assert found.predictive_counterfactual[column] == pytest.approx(float(totals[0]), **near)
        assert found.prior_of_record[row] == pytest.approx(float(mine), **near)
        assert found.given_record[row, column] == pytest.approx(float(actual[r, w] / mine), **near)
        assert np.isnan(found.posterior[row, column]) == np.isnan(found.counterfactual[row, column]) == (totals[0] == 0)
        if totals[0]:
            assert found.posterior[row, column] == pytest.approx(float(actual[r, w] / totals[0]), **near)
            assert found.counterfactual[row, column] == pytest.approx(float(counterfactual[r, w] / totals[0]), **near)
            moved = actual[r, w] / totals[0] / mine
            assert found.prior_to_posterior[row, column] == pytest.approx(float(moved), **near)
        if counterfactual[r, w]:
            assert found.ratio[row, column] == pytest.approx(float(actual[r, w] / counterfactual[r, w]), **near)
        else:
            assert actual[r, w] == 0
            assert np.isnan(found.ratio[row, column])


@pytest.mark.parametrize("seed", range(60))
def test_chances_of_large_ratios_are_counted_under_the_law_that_is_named(seed):
    prior, laws, mechanism, target = random_case(np.random.default_rng(1000 + seed))
    records, (actual, counterfactual) = both_worlds(prior, laws, target)
    found = Beliefs(prior, mechanism, target)
    for r in records:
        outputs = [int(output) for output in found.outputs]
        ratios = {w: actual[r, w] / counterfactual[r, w] for w in outputs if counterfactual[r, w]}
        mine = sum(chance for dataset, chance in prior.items() if dataset[target] == r)
        under = {
            "predictive": {w: sum(actual[s, w] for s in records) for w in outputs},
            "record": {w: actual[r, w] / mine for w in outputs},
        }
        for limit in {*ratios.values(), Fraction(1, 2), Fraction(7, 5)} - {0}:  # each ratio itself: a tie
            for given, law in under.items():
                least = sum(law[w] for w, ratio in ratios.items() if ratio >= limit)
                above = sum(law[w] for w, ratio in ratios.items() if ratio > limit)
                epsilon = math.log(limit)
                assert found.exceeds(epsilon, r, given) == pytest.approx(float(least), abs=1e-13)
                assert found.exceeds(epsilon, r, given, strict=True) == pytest.approx(float(above), abs=1e-13)


def test_what_the_rest_tells_is_in_both_posteriors_if_the_rest_is_known_it_is_the_prior():
    known = Beliefs({"01": 0.2, "11": 0.8}, randomised_response("1/5", respondents=2), 0)
    assert known.counterfactual == pytest.approx(np.repeat(known.prior_of_record[:, None], 4, axis=1), rel=1e-14)
    assert known.ratio == pytest.approx(known.prior_to_posterior, rel=1e-14)


def test_outputs_as_rare_as_floats_can_hold_keep_their_posteriors():
    smallest = 5e-324
    laws = {"0": {"usual": 1.0, "rare": smallest}, "1": {"usual": 1.0, "rare": 3 * smallest}}
    found = Beliefs({("0",): 0.7, ("1",): 0.3}, FiniteMechanism.of(laws), 0)
    assert found.ratio[1, 1] == pytest.approx(3 / 1.6, rel=1e-12)
    assert found.prior_to_posterior[1, 1] == pytest.approx(3 / 1.6, rel=1e-12)


def test_a_hundred_thousand_datasets_are_enumerated():
    # A target of two records beside 50 000 rests that make one of them likelier; the answer is about the target alone.
    rests = 50_000
    prior = {(r, rest): (rest + r + 1) for rest in range(rests) for r in range(2)}
    total = sum(prior.values())
    rows = np.array([[0.4, 0.6], [0.7, 0.3]])[[r for r, _ in prior]]
    mechanism = FiniteMechanism(tuple(f"{r},{rest}" for r, rest in prior), ("no", "yes"), rows)
    chances = {dataset: weight / total for dataset, weight in prior.items()}
    found = Beliefs(chances, mechanism, 0, name=lambda dataset: f"{dataset[0]},{dataset[1]}")
    mine = sum(range(2, rests + 2)) / total
    assert found.posterior[1, 0] == pytest.approx(0.7 * mine / (0.7 * mine + 0.4 * (1 - mine)), rel=1e-12)


# -- an uncertain rest ---------------------------------------------------------------------------------------


def copied(share, flip):
    """The first record is 1 with probability ``share``; the second is the first, or with probability ``flip`` not."""
    even, odd = (1 - flip) * np.array([1 - share, share]), flip * np.array([1 - share, share])
    return {("0", "0"): even[0], ("0", "1"): odd[0], ("1", "0"): odd[1], ("1", "1"): even[1]}


def counted(prior, edges, scale=1.0):
    """The number of ones plus Gaussian noise, told as an interval."""
    cuts = np.array([-math.inf, *edges, math.inf]) / scale
    laws = {}
    for dataset in prior:
        low, high = cuts[:-1] - dataset.count("1") / scale, cuts[1:] - dataset.count("1") / scale
        tails = np.where(low > 0, norm.sf(low) - norm.sf(high), norm.cdf(high) - norm.cdf(low))
        laws["".join(dataset)] = tails / tails.sum()
    names = tuple(str(number) for number in range(len(cuts) - 1))
    return FiniteMechanism(tuple(laws), names, np.array(list(laws.values())))


def test_an_uncertain_rest_under_gaussian_noise():
    # Reference, section 6.13: rho = 1/2, so the noise is N(0, 1). Intervals of 0.001 wide tell the probability up to
    # the mass of one of them, at most 0.0004.
    edges = np.linspace(-10, 14, 24_001)
    found = Beliefs(copied(0.01, 0.2), counted(copied(0.01, 0.2), edges), 0)
    assert found.exceeds(1, "1", "record") == pytest.approx(0.257185, abs=4e-4)
    assert np.nanmax(found.ratio[found.records.index("1")]) == pytest.approx(25.75, abs=0.01)
    bounded = Beliefs(copied(0.1, 0.1), counted(copied(0.1, 0.1), edges), 0)
    assert np.nanmax(bounded.ratio[bounded.records.index("1")]) == pytest.approx(2, rel=1e-4)
    assert bounded.exceeds(1, "1", "record") == 0


# -- Gaussian noise in closed form ---------------------------------------------------------------------------

SECTION_6_10 = [
    (2.63, 0.01, 3, 0.39947464, 0.00935499),
    (2.63, 0.01, 4, 0.17431351, 0.00235435),
    (0.5, 0.1, 1, 0.23827644, 0.06294294),
    (0.5, 0.01, 2, 0.05859095, 0.00566796),
    (0.1115, 0.5, 0.2, 0.23657380, 0.17683822),
    (0.1115, 0.01, 1, 0.02751874, 0.00859678),
]


@pytest.mark.parametrize(("rho", "prior", "epsilon", "record", "predictive"), SECTION_6_10)
def test_two_records_and_gaussian_noise_as_in_section_6_10(rho, prior, epsilon, record, predictive):
    belief = GaussianBelief(math.sqrt(2 * rho), prior)
    assert belief.exceeds(epsilon, "record") == pytest.approx(record, abs=6e-9)
    assert belief.exceeds(epsilon, "predictive") == pytest.approx(predictive, abs=6e-9)


@pytest.mark.parametrize(("rho", "prior", "epsilon"), [row[:3] for row in SECTION_6_10])
def test_the_closed_form_is_the_integral_of_the_densities(rho, prior, epsilon):
    mu = math.sqrt(2 * rho)

    def excess(w):
        own, other = norm.pdf(w, mu), norm.pdf(w)
        return own / (prior * own + (1 - prior) * other) - math.exp(epsilon)

    start = brentq(excess, -20, 20, xtol=1e-14)
    record, _ = integrate.quad(lambda w: norm.pdf(w, mu), start, 40, epsabs=1e-13)
    predictive, _ = integrate.quad(
        lambda w: prior * norm.pdf(w, mu) + (1 - prior) * norm.pdf(w), start, 40, epsabs=1e-13
    )
    belief = GaussianBelief(mu, prior)
    assert belief.exceeds(epsilon, "record") == pytest.approx(record, abs=1e-10)
    assert belief.exceeds(epsilon, "predictive") == pytest.approx(predictive, abs=1e-10)


@pytest.mark.parametrize(("rho", "prior", "epsilon"), [row[:3] for row in SECTION_6_10])
def test_the_closed_form_is_the_finite_engine_up_to_one_interval(rho, prior, epsilon):
    # The ratio grows with the output, so only the interval with the threshold in it is counted wholly or not at all.
    mu = math.sqrt(2 * rho)
    edges = np.linspace(-8, 8 + mu, 1001) / mu
    mechanism = counted([("0",), ("1",)], edges, scale=1 / mu)
    found = Beliefs({("0",): 1 - prior, ("1",): prior}, mechanism, 0)
    belief = GaussianBelief(mu, prior)
    assert bool(np.all(np.diff(found.ratio[1]) >= -1e-9))
    for given in ("record", "predictive"):
        widest = found.law("1", given).max()
        assert widest < 0.02
        assert found.exceeds(epsilon, "1", given) == pytest.approx(belief.exceeds(epsilon, given), abs=widest)


def test_a_rare_record_is_the_worst_and_its_chance_the_tail_of_the_loss():
    # Reference, section 2.7: the supremum over priors is the limit at 0.
    mu, epsilon = math.sqrt(5.26), 3.0
    chances = [GaussianBelief(mu, prior).exceeds(epsilon, "record") for prior in (0.04, 0.02, 1e-3, 1e-6, 1e-12)]
    assert chances == sorted(chances)
    assert chances[-1] == pytest.approx(gaussian_to_tail(mu, epsilon), abs=1e-10)
    assert GaussianBelief(mu, math.exp(-3)).exceeds(3.001, "record") == 0  # the ratio is at most 1/prior


@pytest.mark.parametrize("epsilon", [-3.0, -0.5, 0.0, 1e-9, 0.4, 2.0])
def test_the_threshold_is_where_the_ratio_is_e_to_the_epsilon(epsilon):
    belief = GaussianBelief(0.7, 0.1)
    output = (belief.threshold(epsilon) + 0.7**2 / 2) / 0.7
    assert math.log(float(belief.ratio(output))) == pytest.approx(epsilon, abs=1e-13)
    assert GaussianBelief(0.7, 0.5).threshold(1e-14) == pytest.approx(2e-14, rel=1e-6, abs=0)
    assert (belief.threshold(-1000), belief.exceeds(-1000, "record")) == (-math.inf, 1)


def test_noise_that_hides_everything_moves_no_belief():
    still = GaussianBelief(0, 0.2)
    assert float(still.ratio(1e9)) == pytest.approx(1)
    assert [still.exceeds(e, given) for e in (-1, 0, 1e-9) for given in ("record", "predictive")] == [1, 1, 1, 1, 0, 0]


def test_a_wrong_prior_perceives_a_breach_whatever_the_noise():
    # Example 7.2 (reference, section 6.6): everyone is Hispanic, the attacker thinks that nobody else is.
    belief = GaussianBelief(1, 0.01)
    assert float(belief.loss(101.3)) == pytest.approx(100.8)
    exact = 1 / (1 + 99 * math.exp(-100.8))
    assert float(belief.posterior(101.3)) == pytest.approx(exact, rel=1e-15)
    assert float(belief.ratio(101.3)) == pytest.approx(100 * exact, rel=1e-14)
    for mu in (1e-3, 0.1, 1.0, 10.0):
        for prior in (0.01, 1e-6):
            assert float(GaussianBelief(mu, prior).ratio(50 / mu + mu)) == pytest.approx(1 / prior, rel=1e-9)
    # And in the engine: among the intervals that the attacker holds nearly impossible there is a sure one.
    found = Beliefs({("0",): 0.99, ("1",): 0.01}, counted([("0",), ("1",)], np.linspace(-5, 30, 36)), 0)
    assert found.ratio[1].max() == pytest.approx(100, rel=1e-9)
    assert found.law("1", "predictive")[found.ratio[1] > 99].sum() < 1e-6  # but he should not have expected it


# -- whether the theorems apply ------------------------------------------------------------------------------


def evenly(*datasets):
    return {tuple(dataset): Fraction(1, len(datasets)) for dataset in datasets}


ONE, RESPONSES = randomised_response("1/4"), randomised_response("1/4", respondents=2)


@pytest.mark.parametrize(
    ("specification", "apart", "inside"),
    [
        (flavors.pure("person").at(1), 1, True),
        (flavors.local().at(1), 1, True),
        (flavors.pure("person", bounded=False).at(1), 2, False),
        (flavors.zcdp("person").at(1), 1, True),
        (flavors.pure("person", invariants=[Invariant(name="the number of ones")]).at(1), None, None),
        (flavors.metric("somewhere").at(1), None, None),
    ],
)
def test_worlds_that_differ_in_one_record_are_one_unit_apart_or_not(specification, apart, inside):
    beliefs = Beliefs(evenly("00", "01", "10", "11"), RESPONSES, 0)
    assert beliefs.worlds_apart(specification) == apart
    assert beliefs.worlds_stay_inside(specification) is inside


def with_columns(dataset):
    return [{"sex": record} for record in dataset]


def test_an_invariant_that_the_record_changes_takes_the_worlds_out_of_the_universe():
    kept = flavors.given_invariants(flavors.pure("person"), [Invariant("person", by=("sex",))]).at(1)
    free = Beliefs(evenly("00", "01", "10", "11"), RESPONSES, 0)
    assert free.worlds_apart(kept, with_columns) == math.inf
    assert free.worlds_stay_inside(kept, with_columns) is False
    # An attacker who knows the invariant: now the rest determines the record, and the ratio is 1 by its making.
    told = Beliefs(evenly("01", "10"), RESPONSES, 0)
    assert told.worlds_stay_inside(kept, with_columns) is True
    assert told.rest_determines_record
    assert not free.rest_determines_record
    assert told.ratio == pytest.approx(1, rel=1e-14)
    assert told.prior_to_posterior.max() > 1.5
    # Without columns nothing can be counted.
    assert free.worlds_stay_inside(kept) is None


def test_universes_that_are_listed_are_looked_up_by_name():
    flavor = explicit(flavors.pure("person", ordered=True), {name: name for name in ("00", "01", "10", "11")})
    listed = Flavor(
        flavor.domain, Multiverse((), (("00", "10"), ("01",), ("11",))), flavor.input_premetric, flavor.output_premetric
    ).at(1)
    assert Beliefs(evenly("00", "10"), RESPONSES, 0).worlds_stay_inside(listed) is True
    assert Beliefs(evenly("00", "10", "01"), RESPONSES, 0).worlds_stay_inside(listed) is True  # 11 is impossible
    assert Beliefs(evenly("00", "10", "01", "11"), RESPONSES, 0).worlds_stay_inside(listed) is False
    assert Beliefs(evenly("00", "01"), RESPONSES, 1).worlds_stay_inside(listed) is False


def test_both_directions_of_a_distance_count():
    toy = Flavor(
        Domain("toy", datasets=("0", "1")), Multiverse(), InputPremetric.table({("0", "1"): 1, ("1", "0"): 3}),
        OutputPremetric(),
    ).at(1)  # fmt: skip
    assert Beliefs(evenly("0", "1"), ONE, 0).worlds_apart(toy) == 3
    assert Beliefs(evenly("1", "0"), ONE, 0).worlds_apart(toy) == 3


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ({}, "do not sum to 1"),
        ({("0",): 0.5, ("1",): 0.4}, "do not sum to 1"),
        ({("0",): 1.5, ("1",): -0.5}, "negative"),
        ({("0",): math.nan, ("1",): 1}, "not a number"),
        ({("0",): math.inf}, "do not sum to 1"),
        ({("0",): "often"}, "tuples of records to probabilities"),
        ({0: 1}, "tuples of records to probabilities"),
        ({("0",): 0.5, ("0", "1"): 0.5}, "same number of records"),
    ],
)
def test_a_prior_that_is_none_is_refused(prior, words):
    with pytest.raises(LossError) as refusal:
        Beliefs(prior, ONE, 0)
    assert refusal.value.kind == "not-a-distribution"
    assert words in str(refusal.value)


@pytest.mark.parametrize("target", [-1, 1, 0.5, "0"])
def test_a_target_that_is_nobody_is_refused(target):
    with pytest.raises(LossError, match="The target is"):
        Beliefs({("0",): 1}, ONE, target)


def test_a_prior_is_brought_to_one_and_what_is_said_twice_adds_up():
    found = Beliefs({("0",): 0.25, "0": 0.5, ("1",): 0.25 + 5e-10}, ONE, 0)
    assert found.prior_of_record == pytest.approx([0.75, 0.25], abs=1e-9)
    assert found.predictive.sum() == pytest.approx(1, abs=1e-15)


def test_datasets_of_probability_zero_need_no_law_others_do():
    assert Beliefs({("0",): 1, ("2",): 0}, ONE, 0).records == ("0",)
    with pytest.raises(SpecificationError, match="no law for some datasets"):
        Beliefs({("0",): 0.5, ("2",): 0.5}, ONE, 0)


def test_two_datasets_with_one_name_are_refused_unless_the_name_was_chosen():
    prior = {("1", "11"): 0.5, ("11", "1"): 0.5}
    mechanism = FiniteMechanism.of({"111": {"y": 1}})
    with pytest.raises(LossError, match="the same for two datasets"):
        Beliefs(prior, mechanism, 0)
    assert Beliefs(prior, mechanism, 0, name=lambda dataset: "111").posterior[0, 0] == 0.5


def test_laws_and_records_that_do_not_exist_are_refused():
    found = Beliefs({("0",): 0.5, ("1",): 0.5}, ONE, 0)
    for call in (
        lambda: found.exceeds(1, "0", "both"),
        lambda: found.exceeds(1, "2", "record"),
        lambda: found.exceeds(math.nan, "0", "record"),
        lambda: GaussianBelief(1, 0.5).exceeds(1, "both"),
        lambda: GaussianBelief(0, 0.5).exceeds(1, "both"),
        lambda: GaussianBelief(1, 0),
        lambda: GaussianBelief(1, 1),
        lambda: GaussianBelief(-1, 0.5),
        lambda: GaussianBelief(math.inf, 0.5),
    ):
        with pytest.raises(StirredError):
            call()
