"""What the room of limits refuses: the kind of each error, and words of its message."""

from __future__ import annotations

import math

import numpy as np
import pytest

from limit_cases import path, response_rows
from stirred.errors import StirredError
from stirred.lab.limits.distances_of_densities import MixedMeasure
from stirred.lab.limits.finite_analysis import FiniteAnalysis
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval, ProbabilityInterval
from stirred.lab.limits.pufferfish import Pufferfish, all_but_one_known, equal_records, independent_records
from stirred.limits import (
    ClampedCount,
    DatabaseGraph,
    Density,
    data_bounds,
    density_bounds,
    density_ratio_distance,
    in_intervals,
    laplace_count_beliefs,
    laplace_count_bounds,
    laplace_power,
    laplace_threshold,
    limit_at,
    linear_vacuous_distance,
    log_ratio_range,
    mixture_bounds,
    multiplicative_distance,
    posterior_bounds,
    power_bounds,
    privacy_loss,
    response_bounds,
    response_likelihood,
    response_power,
    standard_limits,
    total_variation_distance,
)

PATH = path(1)
RESPONSE = response_rows(1, 1)
APART = DatabaseGraph.of_edges("ab", [])
SAME = np.array([[0.5, 0.5], [0.5, 0.5]])
HALF = [0.5, 0.5]


def flat(t):
    return np.ones(np.shape(t))


def puffer(attackers=None, secrets=None, pairs=(("a", "b"),)):
    """A small instantiation, something of it changed."""
    return Pufferfish("abc", attackers or {"me": [0.5, 0.25, 0.25]}, secrets or {"a": "a", "b": "b"}, pairs)


REFUSALS = [
    ("not-a-measure", "negative", lambda: multiplicative_distance([0.5, -0.5], HALF)),
    ("not-a-measure", "not a number", lambda: density_ratio_distance([0.5, math.nan], HALF)),
    ("not-a-measure", "list of masses", lambda: log_ratio_range(0.5, 0.5)),
    ("not-a-measure", "sigma-finite", lambda: density_ratio_distance([1, math.inf], HALF)),
    ("not-a-measure", "infinite masses", lambda: total_variation_distance([1, math.inf], HALF)),
    ("not-a-measure", "not all of them 0", lambda: MeasureInterval.around([0, 0], 1)),
    ("not-a-measure", "infinite", lambda: MeasureInterval([math.inf, 0], [math.inf, 1])),
    ("not-a-measure", "negative", lambda: density_bounds([-0.1], 1)),
    ("not-a-measure", "negative", lambda: mixture_bounds([[-0.1], [0.1]], PATH)),
    ("measures-differ", "2 outcomes, the other on 3", lambda: multiplicative_distance(HALF, [0.2, 0.3, 0.5])),
    ("measures-differ", "shape", lambda: multiplicative_distance(np.ones((2, 2)), np.ones((3, 2)))),
    ("measures-differ", "3", lambda: MeasureInterval(HALF, [1, 1, 1])),
    ("measures-differ", "2", lambda: DensityRatioNeighbourhood(HALF, 1).upper_expectation([1, 2, 3])),
    ("measures-differ", "2", lambda: MeasureInterval.around(HALF, 1).updated([1, 2, 3])),
    ("not-a-distribution", "sum to 1", lambda: linear_vacuous_distance(HALF, [0.5, 0.6])),
    ("not-a-distribution", "centre", lambda: DensityRatioNeighbourhood([0.5, 0.6], 1)),
    ("not-a-distribution", "The prior", lambda: FiniteAnalysis(RESPONSE, PATH, np.eye(2), [0.5, 0.6])),
    ("not-a-distribution", "A model", lambda: FiniteAnalysis(RESPONSE, PATH, [[0.5, 0.6]])),
    ("not-a-distribution", "A row", lambda: privacy_loss([[0.5, 0.6], HALF], PATH)),
    ("not-a-density", "one piece", lambda: Density((flat,), (0, 1, 2))),
    ("not-a-density", "do not increase", lambda: Density((flat,), (1, 0))),
    ("not-a-density", "no end", lambda: Density((flat,), (0, math.inf))),
    ("not-a-density", "negative", lambda: Density((lambda t: t - 0.5,), (0, 1))),
    ("not-a-density", "rises and falls", lambda: Density((np.sin,), (0, math.pi))),
    ("not-a-density", "0 everywhere", lambda: Density((np.zeros_like,), (0, 1))),
    ("not-a-density", "two values", lambda: Density.linear((0, 1, 2), ((1, 1),))),
    ("empty-interval", "exceeds", lambda: MeasureInterval([0.5, 0.5], [0.4, 1])),
    ("empty-interval", "enclose 1", lambda: ProbabilityInterval([0.7, 0.7], [0.8, 0.8])),
    ("empty-interval", "enclose 1", lambda: ProbabilityInterval([0, 0], [0.3, 0.3])),
    (
        "impossible-condition",
        "event",
        lambda: ProbabilityInterval([0, 0], [1, 1]).upper_expectation_given(HALF, [1, 0]),
    ),
    ("impossible-condition", "event", lambda: DensityRatioNeighbourhood([1, 0], 1).given([0, 1])),
    ("impossible-condition", "second event", lambda: MeasureInterval([1, 0], [2, 0]).odds([1, 0], [0, 1])),
    ("impossible-condition", "Everything", lambda: MeasureInterval([0, 0], [0, 0]).upper_expectation(HALF)),
    (
        "impossible-condition",
        "output",
        lambda: FiniteAnalysis([[1, 0], [1, 0]], PATH, np.eye(2), HALF).posterior(1),
    ),
    ("too-many-points", "17", lambda: DensityRatioNeighbourhood(np.full(17, 1 / 17), 1).extreme_points()),
    ("not-a-graph", "twice", lambda: DatabaseGraph.of_edges("aa", [])),
    ("not-a-graph", "not listed", lambda: DatabaseGraph.of_edges("ab", [("a", "c")])),
    ("not-a-graph", "shape", lambda: DatabaseGraph(("a", "b"), np.zeros((3, 3)))),
    ("not-a-graph", "differ", lambda: DatabaseGraph(("a", "b"), np.array([[0, 1], [2, 0]]))),
    ("not-a-graph", "negative", lambda: DatabaseGraph(("a", "b"), np.array([[0, -1], [-1, 0]]))),
    ("not-in-graph", "some of these", lambda: PATH.distance(0, 7)),
    ("not-in-graph", "any of them", lambda: PATH.diameter([])),
    ("not-connected", "2 components", lambda: data_bounds(SAME, APART, 1)),
    ("not-connected", "can give the output", lambda: FiniteAnalysis(SAME, APART, [HALF]).likelihood_bounds()),
    ("not-connected", "hypotheses", lambda: FiniteAnalysis(SAME, APART, np.eye(2)).power_bounds(0, 1, 0.05)),
    ("not-connected", "output", lambda: FiniteAnalysis(SAME, APART, np.eye(2), HALF).posterior_bounds(0)),
    ("analysis-does-not-fit", "one row", lambda: in_intervals([HALF], PATH, 1)),
    ("analysis-does-not-fit", "one row", lambda: data_bounds([HALF], PATH, 1)),
    ("analysis-does-not-fit", "one column", lambda: FiniteAnalysis(RESPONSE, PATH, [[0.2, 0.3, 0.5]])),
    ("analysis-does-not-fit", "each model", lambda: FiniteAnalysis(RESPONSE, PATH, np.eye(2), [1.0])),
    ("analysis-does-not-fit", "needs a prior", lambda: FiniteAnalysis(RESPONSE, PATH, np.eye(2)).posterior(0)),
    ("analysis-does-not-fit", "exceeds", lambda: FiniteAnalysis(RESPONSE, PATH, np.eye(2), epsilon=0.9)),
    ("parameter-out-of-range", "epsilon", lambda: power_bounds(0.05, -1)),
    ("parameter-out-of-range", "distance", lambda: power_bounds(0.05, 1, math.nan)),
    ("parameter-out-of-range", "level", lambda: power_bounds(1.05, 1)),
    ("parameter-out-of-range", "prior", lambda: posterior_bounds(-0.1, 1)),
    ("parameter-out-of-range", "mass", lambda: density_bounds(0.3, 1, mass=1.2)),
    ("parameter-out-of-range", "event", lambda: DensityRatioNeighbourhood(HALF, 1).lower_probability(HALF)),
    ("parameter-out-of-range", "function", lambda: MeasureInterval.around(HALF, 1).upper_expectation([1, math.inf])),
    ("parameter-out-of-range", "scale", lambda: Density.laplace(0, 0)),
    ("parameter-out-of-range", "shape", lambda: Density.gamma(0.5, 1)),
    ("parameter-out-of-range", "records", lambda: laplace_count_bounds(0, 1, 0)),
    ("parameter-out-of-range", "records", lambda: response_bounds(1.5, 1)),
    ("parameter-out-of-range", "records", lambda: standard_limits(1, 0)),
    ("parameter-out-of-range", "records", lambda: DatabaseGraph.hamming((0, 1), -1)),
    ("parameter-out-of-range", "output", lambda: FiniteAnalysis(RESPONSE, PATH, np.eye(2), HALF).posterior(2)),
    ("unknown-choice", "odds", lambda: posterior_bounds(0.5, 1, form="sharp")),
    # Pufferfish.
    ("not-a-distribution", "The attacker 'me'", lambda: puffer({"me": [0.5, 0.5, 0.5]})),
    ("not-a-distribution", "negative", lambda: puffer({"me": [1.5, -0.5, 0]})),
    ("analysis-does-not-fit", "some dataset", lambda: puffer({"me": HALF})),
    ("analysis-does-not-fit", "no pair", lambda: puffer(pairs=())),
    ("analysis-does-not-fit", "no attacker", lambda: Pufferfish("ab", {}, {"a": "a", "b": "b"}, [("a", "b")])),
    ("not-a-graph", "twice", lambda: Pufferfish("aa", {"me": HALF}, {"a": "a"}, [("a", "a")])),
    ("not-in-graph", "of a secret", lambda: puffer(secrets={"a": "a", "b": "x"})),
    ("unknown-choice", "no secret 'c'. Choose one of", lambda: puffer(pairs=[("a", "c")])),
    ("secrets-overlap", "'a' and 'ab' are a pair", lambda: puffer(secrets={"a": "a", "ab": "ab"}, pairs=[("a", "ab")])),
    ("secrets-overlap", "'a' and 'a'", lambda: puffer(pairs=[("a", "a")])),
    ("impossible-secret", "'b' has probability 0", lambda: puffer({"me": [0.5, 0, 0.5]})),
    ("impossible-secret", "'none'", lambda: puffer(secrets={"a": "a", "b": "b", "none": ""})),
    ("pair-never-compared", "both 'a' and 'b'", lambda: puffer({"x": [1, 0, 0], "y": [0, 1, 0]})),
    ("secrets-do-not-divide", "attacker 'me'", lambda: puffer().neighbourhood("me", 1)),
    (
        "secrets-do-not-divide",
        "several",
        lambda: puffer(secrets={"a": "a", "b": "b", "c": "bc"}).beliefs(np.eye(3), "me"),
    ),
    ("unknown-choice", "no attacker 'you'", lambda: puffer().neighbourhood("you", 1)),
    ("unknown-choice", "no secret 'z'", lambda: puffer().conditional("me", "z")),
    ("impossible-condition", "for the attacker 'x'", lambda: puffer({"x": [1, 0, 0], "y": [*HALF, 0]}).node("x", "b")),
    ("analysis-does-not-fit", "row for each dataset", lambda: puffer().loss(SAME)),
    ("not-a-distribution", "row of the mechanism", lambda: puffer().loss(np.ones((3, 2)))),
    ("parameter-out-of-range", "epsilon", lambda: puffer().satisfied(np.eye(3), -1)),
    ("not-a-distribution", "law of record 2", lambda: independent_records([HALF, [0.5, 0.6]])),
    ("analysis-does-not-fit", "same values", lambda: independent_records([HALF, [0.2, 0.3, 0.5]])),
    ("parameter-out-of-range", "records", lambda: equal_records(HALF, 0)),
    ("parameter-out-of-range", "records", lambda: all_but_one_known((0, 1), 0)),
    ("names-collide", "same text", lambda: Pufferfish.partition([1, "1", "c"], {"me": [0.5, 0.25, 0.25]}, lambda x: x)),
    ("names-collide", "same text", lambda: Pufferfish.of_records((1, "1"), 1, {"me": HALF})),
    ("names-collide", "same text", lambda: all_but_one_known((1, "1"), 2)),
    ("parameter-out-of-range", "records", lambda: equal_records(HALF, True)),
    # Distances and mixed measures.
    ("not-a-graph", "at distance 0", lambda: DatabaseGraph(("a", "b"), np.zeros((2, 2)))),
    (
        "not-a-graph",
        "steps of finite length",
        lambda: DatabaseGraph("abc", [[0, 1, math.inf], [1, 0, 1], [math.inf, 1, 0]]),
    ),
    ("impossible-condition", "The event", lambda: ProbabilityInterval([0, 0], [1, 1]).given([1, 0])),
    ("not-a-measure", "list of atoms", lambda: MixedMeasure(Density((flat,), (0, 1)), {0.5: -1})),
    ("not-a-density", "to be clamped", lambda: MixedMeasure.clamped(Density((flat,), (0, 1)), 0, 1)),
    ("not-a-density", "between these points", lambda: Density((flat,), (0, 1)).restricted(2, 3)),
    ("parameter-out-of-range", "level is not a list", lambda: limit_at("q", 1, 1, levels=[])),
    ("parameter-out-of-range", "prior is not a list", lambda: standard_limits(1, 10, priors=[])),
    # Companions.
    ("parameter-out-of-range", "level", lambda: laplace_power(1.5, 1)),
    ("parameter-out-of-range", "epsilon", lambda: laplace_threshold(0.5, 0)),
    ("not-a-distribution", "probability of the sums", lambda: laplace_count_beliefs(1, [0.5, 0.6], 1)),
    ("parameter-out-of-range", "records", lambda: response_power(0.5, 1, 0)),
    ("parameter-out-of-range", "at most 100000", lambda: response_power(0.5, 1, 10**6)),
    ("parameter-out-of-range", "ones", lambda: response_likelihood(4, 3, 0.5, 1)),
    ("parameter-out-of-range", "rate", lambda: response_likelihood(1, 3, 1.5, 1)),
    ("parameter-out-of-range", "shape", lambda: ClampedCount(shape=0)),
    ("parameter-out-of-range", "epsilon", lambda: ClampedCount(epsilon=math.inf)),
    ("parameter-out-of-range", "clamp", lambda: ClampedCount(low=3, high=3)),
    ("parameter-out-of-range", "clamp", lambda: ClampedCount(high=10**6)),
    ("parameter-out-of-range", "theta", lambda: ClampedCount().posterior([-1.0], 0)),
    ("parameter-out-of-range", "probability", lambda: ClampedCount().quantile(1)),
    ("parameter-out-of-range", "distance", lambda: limit_at("far", 1, -1)),
]


@pytest.mark.parametrize(("kind", "words", "refused"), REFUSALS)
def test_a_refusal_has_its_kind_and_says_why(kind, words, refused):
    with pytest.raises(StirredError, match=words) as refusal:
        refused()
    assert refusal.value.kind == kind
    assert refusal.value.remedy


def test_an_analysis_of_one_component_is_answered_where_the_whole_is_refused():
    case = FiniteAnalysis(SAME, APART, np.eye(2), [1.0, 0.0])
    assert case.posterior_bounds(0).lower.tolist() == [1, 0]
    assert data_bounds(SAME, APART, 1, ["a"]).upper.tolist() == HALF
