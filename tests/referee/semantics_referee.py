"""The referee of ``semantics``: tests and beliefs under a guarantee beside those of random finite mechanisms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from mpmath import mp
from referee_harness import Case, claim
from referee_numbers import (
    Law,
    dyadic,
    excess,
    floats,
    multiplicative,
    number,
    power,
    random_laws,
    random_pair,
    renyi,
    rho,
)

from stirred import semantics
from stirred.lab.definitions import beliefs, two_laws
from stirred.loss import ZcdpCurve, approximate_power, pure_power
from stirred.semantics import randomised_response
from stirred.spec import flavors
from stirred.spec.order.finite_mechanisms import FiniteMechanism

KINDS = ("pure", "zcdp", "approximate", "renyi")


@claim("semantics", cases=900)
def powers_along_a_chain(case: Case) -> None:
    """Datasets in a row, neighbours within the budget: no test between the ends has more power than is allowed."""
    steps, kind = case.whole("steps", 1, 4), case.pick("kind", KINDS)
    while True:
        chain = random_laws(case.random, steps + 1, case.whole("outputs", 2, 4))
        if kind == "approximate" or all(
            (a > 0) == (b > 0) for one in chain for a, b in zip(one, chain[0], strict=True)
        ):
            break
    case.say(chain=[floats(one) for one in chain])
    pairs = list(itertools.pairwise(chain))
    if kind == "pure":
        budget = float(max(multiplicative(a, b) for a, b in pairs))
        stated = flavors.pure().at(Fraction(budget * (1 + 1e-14)))
    elif kind == "zcdp":
        stated = flavors.zcdp().at(Fraction(max(rho(a, b)[0] for a, b in pairs) * (1 + 1e-9)))
    elif kind == "renyi":
        order = case.pick("order", (2, 3, 8))
        budget = max(0.0, float(max(max(renyi(a, b, order), renyi(b, a, order)) for a, b in pairs)))
        stated = flavors.renyi(order).at(Fraction(budget * (1 + 1e-12)))
    else:
        epsilon = case.share("epsilon", 0.1, 3)
        worst = max(max(excess(a, b, epsilon), excess(b, a, epsilon)) for a, b in pairs)
        delta = min(1.0, float(worst) * (1 + 1e-14))
        stated = flavors.approximate(delta).at(Fraction(str(epsilon)))
    curve = semantics.allowed_power(stated, steps)
    levels = [float(one) for one in case.random.random(4) ** 3]
    lower, upper = semantics.power(stated, levels, steps)
    for level, low, high in zip(levels, lower, upper, strict=True):
        truth = power(chain[0], chain[-1], Fraction(level))
        worst_test = 1 - power(chain[0], chain[-1], 1 - Fraction(level))  # the best test, turned round
        # Corners of curves are floats, and a group's curve is one after the other: a few units each.
        case.at_most(truth, float(curve.power(level)), f"power at {level}", relative=1e-12, absolute=1e-13)
        case.within(low, worst_test, high, f"the worst test at {level}", relative=1e-12, absolute=1e-12)
        case.at_most(truth, high, f"the bound at {level}", relative=1e-12, absolute=1e-13)


@claim("semantics", cases=700)
def best_tests(case: Case) -> None:
    """In fractions: the most powerful test, over all randomised tests by duality; nothing is rounded."""
    p, q = random_pair(case.random, case.whole("outputs", 2, 6))
    case.say(p=floats(p), q=floats(q))
    for level in (Fraction(0), Fraction(1), *(Fraction(int(k), 1000) for k in case.random.integers(1, 1000, 3))):
        found = two_laws.best_test(p, q, level)
        case.holds(found.power == power(p, q, level), f"at {level}: {found.power} instead of {power(p, q, level)}")
        again = two_laws.level_and_power(p, q, found.threshold, found.on_threshold)
        case.holds(again[1] >= found.power and again[0] <= max(level, again[0]), f"the same test again at {level}")
        if level > 0:
            case.holds(again == (found.level, found.power), f"level and power of the test: {again}")


@claim("semantics", cases=500)
def tests_of_the_uncertain(case: Case) -> None:
    """Who knows the rest only up to a law has the power of the mixtures, and no more than one who knows it."""
    rests = case.whole("rests", 1, 3)
    laws = random_laws(case.random, 2 * rests, case.whole("outputs", 2, 4))
    weights = dyadic(list(case.random.dirichlet(np.ones(rests))), 20)
    case.say(laws=[floats(one) for one in laws], weights=floats(weights))
    names = [f"{side}{rest}" for rest in range(rests) for side in "ab"]
    mechanism = FiniteMechanism(
        tuple(names), tuple(f"t{k}" for k in range(len(laws[0]))), [floats(one) for one in laws]
    )
    known = {str(rest): weights[rest] for rest in range(rests)}
    curve = two_laws.uncertain_power(
        mechanism, known, {str(r): f"a{r}" for r in range(rests)}, {str(r): f"b{r}" for r in range(rests)}
    )
    mixed: list[Law] = [
        [sum((weights[r] * laws[2 * r + side][t] for r in range(rests)), Fraction(0)) for t in range(len(laws[0]))]
        for side in (0, 1)
    ]
    for level in (Fraction(float(one)) for one in case.random.random(4) ** 2):
        case.same(float(curve.power(float(level))), power(*mixed, level), f"power at {float(level)}", absolute=1e-13)


# -- beliefs -------------------------------------------------------------------------------------------------


def attacker(case: Case, rest_known: bool = False) -> tuple[dict[tuple[str, ...], Fraction], dict[str, Law]]:
    """A prior on pairs of records with any dependence, and a mechanism that can give every output."""
    values = "012"[: case.whole("values", 2, 3)]
    datasets = list(itertools.product(values, repeat=2))
    if rest_known:
        datasets = [one for one in datasets if one[1] == "0"]
    elif case.random.random() < 0.5:
        kept = case.random.random(len(datasets)) < 0.7
        datasets = [one for one, keep in zip(datasets, kept, strict=True) if keep] or datasets
    chances = dyadic(list(case.random.dirichlet(np.full(len(datasets), 0.7)) + 1e-3), 24)
    names = ["".join(one) for one in itertools.product(values, repeat=2)]
    while True:
        rows = random_laws(case.random, len(names), case.whole("outputs", 2, 4))
        if all(value > 0 for row in rows for value in row):
            break
    prior = dict(zip(datasets, chances, strict=True))
    laws = dict(zip(names, rows, strict=True))
    case.say(prior={"".join(one): float(chance) for one, chance in prior.items()}, rows=[floats(row) for row in rows])
    return prior, laws


def worlds(prior: dict[tuple[str, ...], Fraction], laws: dict[str, Law]) -> dict[str, tuple[list[Fraction], ...]]:
    """For each record of the first person: P(record and output), and the same with the person's record resampled."""
    outputs = range(len(next(iter(laws.values()))))
    found = {}
    for record in dict.fromkeys(one[0] for one in prior):
        actual, resampled = [], []
        for t in outputs:
            actual.append(sum((c * laws["".join(x)][t] for x, c in prior.items() if x[0] == record), Fraction(0)))
            total = Fraction(0)
            for x, c in prior.items():
                if x[0] == record:
                    beside = {y: d for y, d in prior.items() if y[1] == x[1]}
                    mixture = sum((d * laws["".join(y)][t] for y, d in beside.items()), Fraction(0))
                    total += c * mixture / sum(beside.values())
            resampled.append(total)
        found[record] = (actual, resampled)
    return found


@claim("semantics", cases=400)
def posteriors(case: Case) -> None:
    prior, laws = attacker(case)
    names = tuple(laws)
    mechanism = FiniteMechanism(
        names, tuple(f"t{k}" for k in range(len(laws[names[0]]))), [floats(laws[n]) for n in names]
    )
    seen = beliefs.Beliefs({one: float(chance) for one, chance in prior.items()}, mechanism, 0)
    truth = worlds(prior, laws)
    for row, record in enumerate(seen.records):
        actual, resampled = truth[record]
        for t in range(len(actual)):
            whole = sum(one[0][t] for one in truth.values())
            again = sum(one[1][t] for one in truth.values())
            # Sums and quotients of positive numbers: a few units each.
            case.same(float(seen.posterior[row, t]), actual[t] / whole, "posterior", relative=1e-13)
            case.same(float(seen.counterfactual[row, t]), resampled[t] / again, "counterfactual", relative=1e-13)
            case.same(float(seen.ratio[row, t]), actual[t] / resampled[t], "ratio", relative=1e-13)
            case.same(float(seen.predictive[t]), whole, "predictive", relative=1e-13)


@claim("semantics", cases=300)
def bounds_on_beliefs(case: Case) -> None:
    """No posterior-to-posterior ratio exceeds what the theorems allow, as often as they allow it."""
    known = bool(case.random.integers(2))
    prior, laws = attacker(case, known)
    truth = worlds(prior, laws)
    near = [
        (laws["".join(x)], laws["".join(y)])
        for x, y in itertools.permutations(prior, 2)
        if x[1] == y[1]  # the target's record changes alone
    ]
    if not near:
        near = [(next(iter(laws.values())),) * 2]
    pure = float(max(multiplicative(a, b) for a, b in near)) * (1 + 1e-14)
    concentrated = max(rho(a, b)[0] for a, b in near) * (1 + 1e-9)
    order = case.pick("order", (2, 3, 6))
    divergence = max(0.0, float(max(renyi(a, b, order) for a, b in near))) * (1 + 1e-12)
    epsilon = case.share("epsilon", 0, 1.2) * max(pure, 0.01)
    delta = min(1.0, float(max(excess(a, b, epsilon / 2) for a, b in near)) * (1 + 1e-14))
    bound = semantics.PureBelief(pure)
    curves = (pure_power(pure), ZcdpCurve(concentrated), approximate_power(epsilon / 2, delta))
    odds = mp.exp(epsilon)
    for record, (actual, resampled) in truth.items():
        ratios = [a / r for a, r in zip(actual, resampled, strict=True)]
        chance = sum(actual)
        whole = [sum(one[0][t] for one in truth.values()) for t in range(len(actual))]
        for t, ratio in enumerate(ratios):
            case.at_most(abs(mp.log(number(ratio))), bound.limit, f"Theorem 7.1 for {record}", relative=1e-13)
            without = float(resampled[t] / sum(one[1][t] for one in truth.values()))
            high = float(semantics.highest_posterior(without, pure))
            low = float(semantics.lowest_posterior(without, pure))
            case.within(low, actual[t] / whole[t], high, f"the posterior of {record}", relative=1e-12)
        large = [t for t, ratio in enumerate(ratios) if number(ratio) > odds * (1 + mp.mpf(10) ** -11)]
        given = sum((actual[t] / chance for t in large), Fraction(0))
        for told in (
            semantics.AnyPriorBelief(concentrated),
            semantics.AnyPriorBelief(points=((order, divergence),)),
            *(semantics.TrueRecordBelief(curve) for curve in curves),
        ):
            case.at_most(given, told.delta(epsilon), f"{told.theorem} for {record}", relative=1e-11)
        if known:
            expected = sum((whole[t] for t in large), Fraction(0))
            for told in (
                semantics.PredictiveBelief(concentrated),
                semantics.PredictiveBelief(points=((order, divergence),)),
            ):
                case.at_most(expected, told.delta(epsilon), f"{told.theorem} for {record}", relative=1e-11)


@claim("semantics", cases=500)
def dependent_records(case: Case) -> None:
    """Randomised response on two records: likelihood ratios and factors from prior to posterior, by enumeration."""
    epsilon = case.share("epsilon", 0.05, 4)
    joint = dyadic(list(case.random.dirichlet(np.ones(4)) + 1e-3), 24)
    table = [[joint[0], joint[1]], [joint[2], joint[3]]]
    case.say(joint=floats(joint))
    keep = 1 / (1 + mp.exp(-epsilon))

    def both_ones(first: int) -> mp.mpf:
        total = sum(table[first])
        answer = keep if first else 1 - keep
        return mp.fsum(number(table[first][b] / total) * answer * (keep if b else 1 - keep) for b in (0, 1))

    found = beliefs.pair_likelihood_ratio(epsilon, [[float(x) for x in row] for row in table])
    truth = both_ones(1) / both_ones(0)
    case.same(found, truth, "the likelihood ratio", relative=1e-13)
    low, high = beliefs.prior_to_posterior_bounds(2, epsilon)
    case.within(low, truth, high, "at most two records' worth", relative=1e-13)
    cov = table[1][1] - (table[1][0] + table[1][1]) * (table[0][1] + table[1][1])
    case.same(beliefs.covariance([[float(x) for x in row] for row in table]), cov, "covariance", absolute=1e-15)
    case.holds(
        (truth > mp.exp(epsilon)) == (cov > 0) or abs(cov) < 1e-12, "above e^epsilon exactly if records go together"
    )
    share = sum(table[1])
    posterior = number(share) * both_ones(1) / (number(share) * both_ones(1) + number(1 - share) * both_ones(0))
    factor = float(beliefs.posterior_factor(found, float(share)))
    case.same(factor, posterior / number(share), "from prior to posterior", relative=1e-12)


@claim("semantics", cases=500)
def randomised_answers(case: Case) -> None:
    """The estimator of randomised response: mean and variance over all answers of few respondents, in fractions."""
    n = case.whole("respondents", 2, 5)
    keep = Fraction(case.pick("keep * 100", [*range(1, 50), *range(51, 100)]), 100)
    share = Fraction(case.whole("share * 20", 0, 20), 20)
    case.same(randomised_response.epsilon(str(keep)), abs(mp.log(number(keep / (1 - keep)))), "epsilon", relative=1e-14)
    one = keep * share + (1 - keep) * (1 - share)
    mean = square = spread = Fraction(0)
    for ones in range(n + 1):
        chance = math.comb(n, ones) * one**ones * (1 - one) ** (n - ones)
        found = (Fraction(ones, n) + keep - 1) / (2 * keep - 1)
        said = randomised_response.estimated_share(Fraction(ones, n), keep)
        case.same(said, found, f"the estimate from {ones} ones", relative=1e-14, absolute=1e-15)
        mean, square = mean + chance * found, square + chance * found**2
        spread += chance * Fraction(randomised_response.estimated_variance(Fraction(ones, n), keep, n))
    case.holds(mean == share, "the estimator is unbiased")
    case.same(randomised_response.expected_mean(share, keep), one, "the mean of the answers", relative=1e-15)
    case.same(
        randomised_response.variance(share, keep, n), square - mean**2, "its variance", relative=1e-14, absolute=1e-18
    )
    case.same(float(spread), square - mean**2, "the estimated variance on average", relative=1e-13, absolute=1e-15)
    case.at_most(square - mean**2, randomised_response.variance_bound(keep, n), "the largest variance", relative=1e-15)


CLAIMS = (
    powers_along_a_chain,
    best_tests,
    tests_of_the_uncertain,
    posteriors,
    bounds_on_beliefs,
    dependent_records,
    randomised_answers,
)
