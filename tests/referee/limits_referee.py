"""The referee of ``limits``: intervals of measures, bands and Pufferfish losses beside enumeration and definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from mpmath import mp
from referee_harness import Case, claim
from referee_numbers import Law, dyadic, floats, multiplicative, number, power, random_laws, random_pair

from stirred import limits
from stirred.lab.limits.finite_analysis import FiniteAnalysis
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval, ProbabilityInterval
from stirred.lab.limits.pufferfish import Pufferfish

# -- distances -----------------------------------------------------------------------------------------------


@claim("limits", cases=700)
def distances(case: Case) -> None:
    """Over all events and all pairs of outcomes, one by one."""
    p, q = random_pair(case.random, case.whole("outputs", 2, 5), zeros=bool(case.random.integers(2)))
    case.say(p=floats(p), q=floats(q))
    size = len(p)
    highest, linear, total = mp.mpf(0), Fraction(0), Fraction(0)
    for event in itertools.product((0, 1), repeat=size):
        a = sum((x for x, inside in zip(p, event, strict=True) if inside), Fraction(0))
        b = sum((x for x, inside in zip(q, event, strict=True) if inside), Fraction(0))
        total = max(total, abs(a - b))
        if b > 0:
            linear = max(linear, (b - a) / b)
        if (a > 0) != (b > 0):
            highest = mp.inf
        elif a > 0 and highest < mp.inf:
            highest = max(highest, abs(mp.log(number(a / b))))
    case.same(float(limits.multiplicative_distance(floats(p), floats(q))), highest, "D_MULT", relative=1e-14)
    case.same(float(limits.total_variation_distance(floats(p), floats(q))), number(total), "d_TV", absolute=1e-15)
    case.same(float(limits.linear_vacuous_distance(floats(p), floats(q))), number(linear), "d_LV", absolute=1e-15)
    odds = mp.mpf(0)
    for i, j in itertools.permutations(range(size), 2):
        if 0 in (p[i], p[j], q[i], q[j]):
            if (p[i] > 0) != (q[i] > 0) or (p[j] > 0) != (q[j] > 0):
                odds = mp.inf
            continue
        odds = max(odds, mp.log(number(p[i] / p[j] / (q[i] / q[j]))))
    found = float(limits.density_ratio_distance(floats(p), floats(q)))
    # A difference of two logarithms, each to a unit of its own size.
    case.same(found, odds, "d_DR", relative=1e-14, absolute=1e-15)
    case.same(float(limits.odds_ratio_distance(floats(p), floats(q))), 1 - mp.exp(-odds), "d_COR", absolute=1e-14)


# -- intervals -----------------------------------------------------------------------------------------------


def interval(case: Case) -> tuple[np.ndarray, np.ndarray]:
    size = case.whole("outcomes", 2, 5)
    lower = case.random.gamma(0.7, size=size) * (case.random.random(size) < 0.8)
    upper = lower + case.random.gamma(0.7, size=size) * (case.random.random(size) < 0.8)
    upper[int(case.random.integers(size))] += 0.3
    case.say(lower=lower.tolist(), upper=upper.tolist())
    return lower, upper


@claim("limits", cases=800)
def intervals_of_measures(case: Case) -> None:
    """Expectations over an interval, by its corners: a ratio of linear functions is largest at one of them."""
    lower, upper = interval(case)
    function = case.random.normal(size=len(lower))
    case.say(function=function.tolist())
    corners = np.array([np.where(raised, upper, lower) for raised in itertools.product((0, 1), repeat=len(lower))])
    corners = corners[corners.sum(axis=1) > 0]
    means = corners @ function / corners.sum(axis=1)
    found = MeasureInterval(lower, upper)
    case.same(
        float(found.upper_expectation(function)), means.max(), "upper expectation", relative=1e-12, absolute=1e-12
    )
    case.same(
        float(found.lower_expectation(function)), means.min(), "lower expectation", relative=1e-12, absolute=1e-12
    )
    event = case.random.integers(0, 2, len(lower))
    shares = corners @ event / corners.sum(axis=1)
    case.same(float(found.upper_probability(event)), shares.max(), "upper probability", absolute=1e-12)
    case.same(float(found.lower_probability(event)), shares.min(), "lower probability", absolute=1e-12)
    for _ in range(3):  # any member
        mu = lower + (upper - lower) * case.random.random(len(lower))
        case.holds(bool(found.contains(mu)), "a measure between the bounds is a member")
        if mu.sum() > 0:
            mean = mu @ function / mu.sum()
            low, high = float(found.lower_expectation(function)), float(found.upper_expectation(function))
            case.within(low, mean, high, "the mean of a member", absolute=1e-12)


@claim("limits", cases=700)
def intervals_of_probabilities(case: Case) -> None:
    """Vertices of the set of probabilities between two measures: all but one mass at a bound."""
    size = case.whole("outcomes", 2, 5)
    centre = case.random.dirichlet(np.ones(size))
    lower = centre * case.random.uniform(0, 1, size)
    upper = np.minimum(1.0, centre * (1 + case.random.gamma(1.0, size=size)))
    case.say(lower=lower.tolist(), upper=upper.tolist())
    vertices = []
    for last in range(size):
        others = [k for k in range(size) if k != last]
        for raised in itertools.product((0, 1), repeat=size - 1):
            point = np.zeros(size)
            point[others] = np.where(raised, upper[others], lower[others])
            point[last] = 1 - point.sum()
            if lower[last] - 1e-13 <= point[last] <= upper[last] + 1e-13:
                vertices.append(point)
    corners = np.array(vertices)
    function, event = case.random.normal(size=size), case.random.integers(0, 2, size)
    found = ProbabilityInterval(lower, upper)
    for name, values, high, low in (
        ("expectation", function, found.upper_expectation(function), found.lower_expectation(function)),
        ("probability", event, found.upper_probability(event), found.lower_probability(event)),
    ):
        case.same(float(high), (corners @ values).max(), f"upper {name}", absolute=1e-11)
        case.same(float(low), (corners @ values).min(), f"lower {name}", absolute=1e-11)
    condition = case.random.integers(0, 2, size)
    condition[int(case.random.integers(size))] = 1
    if float(found.lower_probability(condition)) > 1e-6:
        means = (corners * condition) @ function / (corners @ condition)
        case.same(float(found.upper_expectation_given(function, condition)), means.max(), "given", absolute=1e-9)
        case.same(float(found.lower_expectation_given(function, condition)), means.min(), "given", absolute=1e-9)


@claim("limits", cases=500)
def neighbourhoods(case: Case) -> None:
    """All probabilities whose odds are within a factor: its extreme points raise the centre on some outcomes."""
    size, r = case.whole("outcomes", 2, 5), case.share("radius", 0, 3)
    centre = dyadic(list(case.random.dirichlet(np.ones(size)) + 1e-4))
    case.say(centre=floats(centre))
    raised = [np.where(inside, math.exp(r), 1.0) * floats(centre) for inside in itertools.product((0, 1), repeat=size)]
    points = np.array([one / one.sum() for one in raised])
    found = DensityRatioNeighbourhood(floats(centre), r)
    function, event = case.random.normal(size=size), case.random.integers(0, 2, size)
    case.same(float(found.upper_expectation(function)), (points @ function).max(), "upper", absolute=1e-12)
    case.same(float(found.lower_expectation(function)), (points @ function).min(), "lower", absolute=1e-12)
    case.same(float(found.upper_probability(event)), (points @ event).max(), "upper probability", absolute=1e-12)
    case.same(float(found.lower_probability(event)), (points @ event).min(), "lower probability", absolute=1e-12)


# -- bands ---------------------------------------------------------------------------------------------------


def paths(size: int, edges: list[tuple[int, int]]) -> np.ndarray:
    found = np.full((size, size), math.inf)
    np.fill_diagonal(found, 0)
    for a, b in edges:
        found[a, b] = found[b, a] = 1
    for middle in range(size):
        found = np.minimum(found, found[:, [middle]] + found[[middle]])
    return found


def world(case: Case) -> tuple[np.ndarray, list[Law], limits.DatabaseGraph]:
    """Connected datasets, their distances, and the laws of a mechanism that can give every output."""
    size = case.whole("datasets", 2, 5)
    edges = [(k, int(case.random.integers(k))) for k in range(1, size)]
    edges += [(a, b) for a in range(size) for b in range(a) if case.random.random() < 0.2]
    while True:
        rows = random_laws(case.random, size, case.whole("outputs", 2, 4))
        if all(value > 0 for row in rows for value in row):
            break
    case.say(edges=edges, rows=[floats(row) for row in rows])
    return paths(size, edges), rows, limits.DatabaseGraph.of_edges(range(size), edges)


def loss(rows: list[Law], apart: np.ndarray) -> float:
    pairs = itertools.permutations(range(len(rows)), 2)
    return float(max(multiplicative(rows[i], rows[j]) / apart[i, j] for i, j in pairs))


@claim("limits", cases=700)
def bands_of_data_tests_and_beliefs(case: Case) -> None:
    """Any model, any prior: nothing leaves the bands of Theorems 5.4.1 to 5.6.3."""
    apart, rows, graph = world(case)
    epsilon = loss(rows, apart) * (1 + 1e-14)
    case.same(limits.privacy_loss([floats(row) for row in rows], graph).ratio, epsilon, "the loss", relative=1e-12)
    models = [
        dyadic(list(case.random.dirichlet(np.full(len(rows), 0.6)) + 1e-6)) for _ in range(case.whole("models", 2, 3))
    ]
    prior = dyadic(list(case.random.dirichlet(np.ones(len(models))) + 1e-3))
    case.say(models=[floats(one) for one in models], prior=floats(prior))
    outputs = range(len(rows[0]))
    likelihood = [
        [sum((m * row[t] for m, row in zip(one, rows, strict=True)), Fraction(0)) for t in outputs] for one in models
    ]
    predictive = [sum((w * one[t] for w, one in zip(prior, likelihood, strict=True)), Fraction(0)) for t in outputs]
    band = limits.data_bounds([floats(row) for row in rows], graph, epsilon)
    mixture = limits.mixture_bounds([floats(row) for row in rows], graph)
    for one in (*likelihood, predictive):
        for t in outputs:
            case.within(float(band.lower[t]), one[t], float(band.upper[t]), "probability of the data", relative=1e-12)
            case.within(float(mixture.lower[t]), one[t], float(mixture.upper[t]), "mixture", relative=1e-12)
    farthest = float(apart.max())
    for t, k in itertools.product(outputs, range(len(models))):
        posterior = prior[k] * likelihood[k][t] / predictive[t]
        for form in limits.FORMS:
            told = limits.posterior_bounds(float(prior[k]), epsilon, farthest, form)
            case.within(float(told.lower), posterior, float(told.upper), f"posterior, {form}", relative=1e-12)
    for level in (Fraction(float(one)) for one in case.random.random(2) ** 2):
        told = limits.power_bounds(float(level), epsilon, farthest)
        best = power(likelihood[0], likelihood[1], level)
        worst = 1 - power(likelihood[0], likelihood[1], 1 - level)
        case.at_most(best, float(told.upper), "the best test", relative=1e-12)
        case.at_most(float(told.lower), worst, "the worst test", absolute=1e-12)
    analysis = FiniteAnalysis([floats(row) for row in rows], graph, [floats(one) for one in models], floats(prior))
    for t in outputs:
        case.same(float(analysis.predictive[t]), predictive[t], "predictive", relative=1e-12)
        for k in range(len(models)):
            posterior = prior[k] * likelihood[k][t] / predictive[t]
            case.same(float(analysis.posterior(t)[k]), posterior, "posterior", relative=1e-12)


@claim("limits", cases=700, counted=0.8)
def pufferfish_losses(case: Case) -> None:
    """Over all attackers, pairs and outputs: conditional laws by Bayes, in fractions."""
    size, count = case.whole("datasets", 2, 5), case.whole("attackers", 1, 3)
    laws = random_laws(case.random, count, size)
    rows = random_laws(case.random, size, case.whole("outputs", 2, 4))
    labels = case.random.integers(0, 3, size).tolist()
    secrets: dict[str, list[int]] = {f"s{k}": [x for x in range(size) if labels[x] == k] for k in set(labels)}
    secrets |= {"first": [0], "rest": list(range(1, size))}
    case.say(laws=[floats(one) for one in laws], rows=[floats(row) for row in rows], secrets=secrets)
    mass = {(a, s): sum((laws[a][x] for x in event), Fraction(0)) for a in range(count) for s, event in secrets.items()}
    pairs = [
        (s, r)
        for s, r in itertools.combinations(secrets, 2)
        if not set(secrets[s]) & set(secrets[r]) and any(mass[a, s] > 0 and mass[a, r] > 0 for a in range(count))
    ]
    held = {name: event for name, event in secrets.items() if any(mass[a, name] > 0 for a in range(count))}
    if not pairs:
        return  # no attacker thinks both secrets of a pair possible
    worst: Any = mp.mpf(0)
    for a, (s, r) in itertools.product(range(count), pairs):
        if mass[a, s] == 0 or mass[a, r] == 0:
            continue
        given = [
            [
                sum((laws[a][x] * rows[x][t] for x in secrets[one]), Fraction(0)) / mass[a, one]
                for t in range(len(rows[0]))
            ]
            for one in (s, r)
        ]
        worst = max(worst, multiplicative(*given))
    found = Pufferfish(tuple(range(size)), {f"a{a}": floats(laws[a]) for a in range(count)}, held, pairs)
    case.same(
        found.loss([floats(row) for row in rows]).epsilon, worst, "the Pufferfish loss", relative=1e-12, absolute=1e-14
    )


CLAIMS = (
    distances,
    intervals_of_measures,
    intervals_of_probabilities,
    neighbourhoods,
    bands_of_data_tests_and_beliefs,
    pufferfish_losses,
)
