"""Pufferfish: each statement of sections 5.7 and 5.8 on random finite cases, against loops over everything."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from limit_cases import (
    geometric_rows,
    printed_number,
    random_laws,
    random_pufferfish,
    random_rows,
    response_rows,
    subsets,
)
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval
from stirred.lab.limits.pufferfish import Pufferfish, all_but_one_known, equal_records, independent_records
from stirred.limits import (
    DatabaseGraph,
    density_ratio_distance,
    multiplicative_distance,
    odds_ratio_distance,
    power_bounds,
    privacy_loss,
)
from stirred.loss import PowerCurve, power_curve

CUBE = DatabaseGraph.hamming((0, 1), 3)
COUNTED = geometric_rows(3, 0.7)[[sum(x) for x in CUBE.datasets]]


def brute_force(case, rows):
    """The loss by the definition: every attacker, every pair, every event of the output."""
    worst = 0.0
    for law in case.attackers.values():
        for pair in case.pairs:
            given = []
            for name in pair:
                inside = [case.datasets.index(x) for x in case.secrets[name]]
                mass = sum(law[x] for x in inside)
                given.append(None if mass == 0 else sum(law[x] / mass * rows[x] for x in inside))
            if given[0] is None or given[1] is None:
                continue
            events = subsets(rows.shape[1])
            p, q = (events @ one for one in given)
            if np.any((p > 0) != (q > 0)):
                return math.inf
            worst = max(worst, np.abs(np.log(p[p > 0] / q[p > 0])).max())
    return worst


def conjectures(case):
    """All (attacker, secret) that are possible."""
    for name, law in case.attackers.items():
        for secret, event in case.secrets.items():
            if sum(law[case.datasets.index(x)] for x in event) > 0:
                yield name, secret


# -- the loss ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [400, pytest.param(3000, marks=pytest.mark.slow)])
def test_definition_5_7_3_the_loss_is_that_of_brute_force_on_thousands_of_cases(rng, cases):
    for number in range(cases):
        case, rows = random_pufferfish(rng, zeros=0.3 * (number % 5 == 0))
        expected, found = brute_force(case, rows), case.loss(rows)
        assert found.epsilon == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert case.satisfied(rows, expected)
        assert expected == 0 or math.isinf(expected) or not case.satisfied(rows, expected * (1 - 1e-6))
        given = [case.conditional(found.attacker, name) @ rows for name in found.pair]
        assert float(multiplicative_distance(*given)) == pytest.approx(found.epsilon, rel=1e-9, abs=1e-12)


def test_proposition_19_and_equation_5_17_the_odds_move_by_at_most_the_loss_and_by_that_much(rng):
    for number in range(500):
        case, rows = random_pufferfish(rng, zeros=0.3 * (number % 5 == 0))
        ratios = case.odds_ratios(rows)
        with np.errstate(divide="ignore"):
            moved = np.abs(np.log(ratios[~np.isnan(ratios)])).max()
        assert moved == pytest.approx(case.loss(rows).epsilon, rel=1e-9, abs=1e-9)


def test_odds_ratios_are_posterior_odds_over_prior_odds():
    case = Pufferfish("abc", {"me": [0.5, 0.2, 0.3]}, {"a": "a", "not a": "bc"}, [("a", "not a")])
    rows = np.array([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]])
    joint = np.array([0.5, 0.2, 0.3])[:, None] * rows
    posterior = joint / joint.sum(axis=0)
    odds = posterior[0] / (posterior[1] + posterior[2])
    assert case.odds_ratios(rows)[0, 0] == pytest.approx(odds / (0.5 / 0.5))


def test_undefined_conditionals_are_skipped():
    laws = {"knows it is a": [1, 0], "me": [0.5, 0.5]}
    case = Pufferfish("ab", laws, {"a": "a", "b": "b"}, [("a", "b")])
    rows = [[0.75, 0.25], [0.25, 0.75]]
    assert case.loss(rows).attacker == "me"
    assert np.isnan(case.odds_ratios(rows)[0]).all()
    assert case.loss(rows).epsilon == pytest.approx(math.log(3))
    assert case.satisfied(np.eye(2), math.inf) and not case.satisfied(np.eye(2), 50)


# -- theorem 5.8.1 -------------------------------------------------------------------------------------------


def test_theorem_5_8_1_the_four_forms_agree(rng):
    for _ in range(80):
        case, rows = random_pufferfish(rng)
        loss = case.loss(rows).epsilon
        if not 0 < loss < math.inf:
            continue
        laws = case.laws @ rows
        distances = case.graph.distances
        for epsilon, holds in ((loss * (1 + 1e-9), True), (loss * 0.99, False)):
            members, lipschitz, densities = True, True, True
            for i, j in zip(*np.nonzero(np.isfinite(distances) & (distances > 0)), strict=True):
                r = epsilon * distances[i, j]
                members &= bool(MeasureInterval.around(laws[i], r).contains(laws[j]))
                lipschitz &= bool(multiplicative_distance(laws[i], laws[j]) <= r)
                densities &= bool(np.all(laws[j] <= laws[i] * math.exp(r)))
            assert case.satisfied(rows, epsilon) == members == lipschitz == densities == holds


def test_the_graph_has_an_edge_for_each_attacker_and_pair_and_shortest_paths(rng):
    for _ in range(200):
        case, _ = random_pufferfish(rng)
        nodes = list(conjectures(case))
        names = sorted({case.node(*one) for one in nodes})
        assert names == sorted(case.graph.datasets)
        edges = {
            frozenset((case.node(a, first), case.node(a, second)))
            for a in case.attackers
            for first, second in case.pairs
            if (a, first) in nodes and (a, second) in nodes
        }
        for a, b in itertools.combinations(names, 2):
            # Breadth first, by hand.
            reached, steps = {a}, 0
            while b not in reached:
                wider = reached | {y for edge in edges if edge & reached for y in edge}
                steps, grown = steps + 1, wider != reached
                reached = wider
                if not grown:
                    steps = math.inf
                    break
            assert case.graph.distance(a, b) == steps
        one, other = nodes[0], nodes[-1]
        assert case.distance(one, other) == case.graph.distance(case.node(*one), case.node(*other))


def test_equal_conditional_distributions_are_one_node():
    case = Pufferfish(
        "abc", {"x": [0.5, 0.5, 0], "y": [0.2, 0, 0.8]}, {"a": "a", "b": "b", "c": "c"}, [("a", "b"), ("a", "c")]
    )
    assert case.node("x", "a") == case.node("y", "a") == "x, given a"
    assert case.distance(("x", "b"), ("y", "c")) == 2


def test_propositions_17_and_18_the_provision_is_the_double_integral(rng):
    case, rows = random_pufferfish(rng)
    provided = case.provision(rows)
    ends = np.cumsum(rows, axis=1)
    for attacker, secret in conjectures(case):
        law = np.cumsum(case.conditional(attacker, secret))
        # M(G(theta, u1), u2), both by inverse distribution functions: constant on the rectangles between their steps.
        first, second = (np.unique(np.clip(np.append(0, steps), 0, 1)) for steps in (law, ends))
        expected = np.zeros(rows.shape[1])
        for (a, b), (c, d) in itertools.product(itertools.pairwise(first), itertools.pairwise(second)):
            x = int(np.searchsorted(law, (a + b) / 2))
            expected[int(np.searchsorted(ends[x], (c + d) / 2))] += (b - a) * (d - c)
        assert list(provided.law(case.node(attacker, secret)).values()) == pytest.approx(expected, abs=1e-9)


# -- theorems 5.8.4 and 5.8.6 --------------------------------------------------------------------------------


def test_theorem_5_8_4_posteriors_of_a_partition_lie_in_the_neighbourhood_and_reach_its_edge(rng):
    for _ in range(300):
        size = int(rng.integers(2, 7))
        labels = rng.integers(0, 3, size).tolist()
        laws = {f"a{k}": law for k, law in enumerate(random_laws(rng, 2, size))}
        possible = {labels[x] for law in laws.values() for x in np.flatnonzero(law)}
        if not any(len({labels[x] for x in np.flatnonzero(law)}) > 1 for law in laws.values()):
            continue
        case = Pufferfish.partition(range(size), laws, lambda x, labels=labels: labels[x])
        assert set(case.secrets) == {str(one) for one in possible}
        rows = random_rows(rng, size, 4)
        loss, reached = case.loss(rows).epsilon, 0.0
        for attacker in laws:
            prior = [case.attackers[attacker][list(map(case.datasets.index, e))].sum() for e in case.secrets.values()]
            near = case.neighbourhood(attacker, loss)
            assert near.centre == pytest.approx(prior)
            assert near.radius in (0.0, loss)
            posteriors = case.beliefs(rows, attacker)
            assert near.contains(posteriors).all()
            reached = max(reached, float(density_ratio_distance(posteriors, near.centre).max()))
            for event in subsets(len(prior)):
                believed = posteriors @ event
                assert np.all(near.lower_probability(event) - 1e-12 <= believed)
                assert np.all(believed <= near.upper_probability(event) + 1e-12)
        # The converse: no smaller epsilon would do.
        assert reached == pytest.approx(loss, rel=1e-9, abs=1e-9)


def test_theorem_5_8_4_with_fewer_pairs_the_radius_is_that_of_the_longest_path(rng):
    secrets = {"a": "a", "b": "b", "c": "c"}
    for _ in range(100):
        law, rows = rng.dirichlet(np.ones(3)), random_rows(rng, 3, 4)
        case = Pufferfish("abc", {"me": law}, secrets, [("a", "b"), ("b", "c")])
        near = case.neighbourhood("me", case.loss(rows).epsilon)
        assert near.radius == pytest.approx(2 * case.loss(rows).epsilon)
        assert near.contains(case.beliefs(rows, "me")).all()
    apart = Pufferfish("abc", {"me": law}, secrets, [("a", "b")])
    assert apart.neighbourhood("me", 1).radius == math.inf


def test_section_5_9_theorem_5_8_4_is_tight():
    # Two datasets, all records but one known: posteriors of a count at its ends are at density ratio epsilon.
    case = Pufferfish.of_records((0, 1), 3, all_but_one_known((0, 1), 3))
    found = case.beliefs(COUNTED, "knows ?,0,0", ["record 1 is 0", "record 1 is 1"])
    assert density_ratio_distance(found[0], [0.5, 0.5]) == pytest.approx(0.7, abs=1e-9)


def test_theorem_5_8_6_powers_of_all_tests_lie_in_the_band_and_some_fill_it(rng):
    for _ in range(50):
        case, rows = random_pufferfish(rng)
        loss = case.loss(rows)
        if not 0 < loss.epsilon < math.inf:
            continue
        nodes = list(conjectures(case))
        for first, second in itertools.islice(itertools.product(nodes, nodes), 12):
            p, q = (np.clip(case.conditional(*one) @ rows, 0, 1) for one in (first, second))
            for event in subsets(rows.shape[1]):
                band = case.power_bounds(min(1.0, float(p @ event)), loss.epsilon, first, second)
                assert band.contains(float(q @ event), 1e-9).all()
        # Conversely: with a smaller epsilon some best test breaks the band.
        p, q = (case.conditional(loss.attacker, name) @ rows for name in loss.pair)
        broken = False
        for one, other in ((p, q), (q, p)):
            curve = PowerCurve(tuple(map(tuple, power_curve(one, other).tolist())))
            levels = np.array([level for level, _ in curve.points])
            broken |= bool(np.any(curve.power(levels) > power_bounds(levels, loss.epsilon * 0.99).upper + 1e-12))
        assert broken


def test_theorem_5_8_6_a_test_of_level_one_in_twenty():
    case = Pufferfish("ab", {"me": [0.5, 0.5]}, {"a": "a", "b": "b"}, [("a", "b")])
    level = printed_number("thesis/theorem-5.8.6/level")
    assert level == 0.05
    assert case.power_bounds(0.05, 1, ("me", "a"), ("me", "b")).upper == pytest.approx(level * math.e)
    assert case.power_bounds(0.05, 1, ("me", "a"), ("me", "a")).upper == pytest.approx(0.05)


def test_remark_5_8_7_the_neighbourhood_is_a_constant_odds_ratio_model(rng):
    for _ in range(100):
        p, q = rng.dirichlet(np.ones(3), size=2)
        r = float(density_ratio_distance(p, q))
        assert DensityRatioNeighbourhood(p, r).contains(q)
        assert odds_ratio_distance(p, q) == pytest.approx(1 - math.exp(-r))


# -- remark 5.8.5: records -----------------------------------------------------------------------------------


def test_remark_5_8_5_attackers_who_know_all_but_one_record_give_differential_privacy_back(rng):
    for values, records in (((0, 1), 3), (("a", "b", "c"), 2), ((0, 1), 1)):
        graph = DatabaseGraph.hamming(values, records)
        case = Pufferfish.of_records(values, records, all_but_one_known(values, records))
        for _ in range(60):
            rows = random_rows(rng, len(graph.datasets), 4)
            assert case.loss(rows).epsilon == pytest.approx(privacy_loss(rows, graph).ratio, rel=1e-12)


def test_remark_5_8_5_independent_attackers_learn_no_more_than_differential_privacy_allows(rng):
    for _ in range(300):
        values, records = ((0, 1), 3) if rng.random() < 0.5 else ((0, 1, 2), 2)
        graph = DatabaseGraph.hamming(values, records)
        rows = random_rows(rng, len(graph.datasets), 3)
        laws = {f"a{k}": independent_records(rng.dirichlet(np.ones(len(values)) / 3, size=records)) for k in range(3)}
        case = Pufferfish.of_records(values, records, laws)
        assert case.loss(rows).epsilon <= privacy_loss(rows, graph).ratio + 1e-9


def test_remark_5_8_5_independent_attackers_reach_differential_privacy_as_they_know_the_others_better():
    losses = []
    for known in (0.5, 0.9, 0.999, 1 - 1e-9):
        law = independent_records([[0.5, 0.5], [known, 1 - known], [known, 1 - known]])
        losses.append(Pufferfish.of_records((0, 1), 3, {"me": law}).loss(COUNTED).epsilon)
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(0.7, abs=1e-6)


def test_remark_5_8_5_the_distance_of_point_masses_is_the_hamming_distance():
    case = Pufferfish.of_records((0, 1), 3, all_but_one_known((0, 1), 3))
    places = {}
    for attacker, secret in conjectures(case):
        law = case.conditional(attacker, secret)
        if law.max() == 1:
            places[CUBE.datasets[int(law.argmax())]] = case.node(attacker, secret)
    assert len(places) == 8
    for x, y in itertools.product(places, places):
        assert case.graph.distance(places[x], places[y]) == CUBE.distance(x, y)


def test_g10_correlated_attackers_cost_the_number_of_records():
    graph_loss = privacy_loss(COUNTED, CUBE).ratio
    independent = Pufferfish.of_records((0, 1), 3, all_but_one_known((0, 1), 3))
    correlated = Pufferfish.of_records((0, 1), 3, {"all alike": equal_records([0.5, 0.5], 3)})
    assert graph_loss == pytest.approx(0.7)
    assert independent.loss(COUNTED).epsilon == pytest.approx(0.7)
    assert correlated.loss(COUNTED).epsilon == pytest.approx(2.1)
    both = all_but_one_known((0, 1), 3) | {"all alike": equal_records([0.5, 0.5], 3)}
    found = Pufferfish.of_records((0, 1), 3, both).loss(COUNTED)
    assert found.epsilon == pytest.approx(2.1) and found.attacker == "all alike"


@pytest.mark.parametrize("records", [1, 2, 4])
def test_correlated_attackers_cost_the_number_of_records_of_randomised_response_too(records):
    case = Pufferfish.of_records((0, 1), records, {"all alike": equal_records([0.3, 0.7], records)})
    assert case.loss(response_rows(records, 0.4)).epsilon == pytest.approx(0.4 * records)


def test_correlation_never_costs_more_than_the_whole_database(rng):
    for _ in range(200):
        rows = random_rows(rng, 8, 3)
        law = random_laws(rng, 1, 8)[0] + 1e-3
        case = Pufferfish.of_records((0, 1), 3, {"me": law / law.sum()})
        assert case.loss(rows).epsilon <= 3 * privacy_loss(rows, CUBE).ratio + 1e-9
