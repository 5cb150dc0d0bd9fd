"""Numbers about limits of inference and distances of measures: chapter 5 and appendix C of the thesis, the paper."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred.lab.limits.chapter_figures import chapter_figure
from stirred.lab.limits.distances_of_densities import density_distances
from stirred.lab.limits.distortions import (
    DistortionModel,
    approximate_function,
    continuity_radius,
    distorting_function,
    mixture,
)
from stirred.lab.limits.finite_analysis import FiniteAnalysis
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood, MeasureInterval
from stirred.lab.limits.pufferfish import Pufferfish, all_but_one_known
from stirred.lab.reproduce.catalogue import Forms
from stirred.lab.reproduce.examples import response, sensitivity_of
from stirred.limits import (
    ClampedCount,
    DatabaseGraph,
    Density,
    data_bounds,
    density_bounds,
    density_ratio_distance,
    depends_on_component_only,
    in_intervals,
    laplace_count_beliefs,
    laplace_count_bounds,
    laplace_count_densities,
    laplace_power,
    laplace_threshold,
    multiplicative_distance,
    odds_ratio_distance,
    posterior_bounds,
    privacy_loss,
    response_bounds,
    with_component,
)
from stirred.semantics.pictures.shapes import Picture

Array = NDArray[np.float64]
Side = Literal["lower", "upper"]

_RENUMBERED = {
    "Figure 5.": "Figure ",
    "Bailie (2025)": "Bailie and Gong, limits",
    "Theorem 5.4.1": "Theorem 9",
    "Theorem 5.6.3": "Theorem 15",
    "Lemma C.6.3": "Lemma 57",
    "Equation 5.8": "Equation 8",
}
# -- figures -------------------------------------------------------------------------------------------------


def limit_figure(number: str) -> tuple[Picture, ...]:
    """Figures 5.1 to 5.4 of the thesis."""
    return chapter_figure(number)


def limits_paper_figure(number: str) -> tuple[Picture, ...]:
    """The same figures under the paper's numbers."""
    return tuple(
        replace(
            one,
            name=f"limits-paper-{one.name.replace('-5-', '-')}",
            caption=_renumbered(one.caption),
            lines=tuple(replace(line, name=_renumbered(line.name)) for line in one.lines),
        )
        for one in chapter_figure(f"5.{number}")
    )


# -- two mechanisms ------------------------------------------------------------------------------------------


def laplace_density(at: float, count: int, epsilon: float) -> float:
    """The density of a count of 0 or 1 with Laplace noise."""
    return float(laplace_count_densities([at], epsilon, 1)[count, 0])


def laplace_ratio_is_constant(epsilon: float, side: Side) -> bool:
    """Whether p_x = e^epsilon p_x' left of both counts, or e^-epsilon p_x' right of them."""
    t = np.linspace(-20, 0, 201) if side == "lower" else np.linspace(1, 21, 201)
    first, second = laplace_count_densities(t, epsilon, 1)
    return bool(np.allclose(np.log(first / second), epsilon if side == "lower" else -epsilon, rtol=1e-12))


def laplace_is_private(epsilon: float, moves: list[float]) -> bool:
    """Whether Laplace noise at scale (sum of the moves)/epsilon on each coordinate loses epsilon and no more."""
    scale = sum(map(abs, moves)) / epsilon
    losses = [density_distances(Density.laplace(0, scale), Density.laplace(move, scale)) for move in moves]
    return math.isclose(sum(one.multiplicative.upper for one in losses), epsilon, rel_tol=1e-12)


def response_is_private(epsilon: float, records: int) -> bool:
    """Whether randomised response of bits loses epsilon for each bit that differs, and no more."""
    bits, rows = DatabaseGraph.hamming((0, 1), records), _responses(epsilon, records)
    return math.isclose(privacy_loss(rows, bits).ratio, epsilon, rel_tol=1e-12)


def count_sensitivity(records: int) -> float:
    """The largest difference between the sums of bits of two neighbours."""
    bits = DatabaseGraph.hamming((0, 1), records)
    return sensitivity_of(bits, [sum(x) for x in bits.datasets])  # type: ignore[call-overload]


def farthest_vector(records: int) -> float:
    """d_* of vectors of bits at Hamming distance."""
    return DatabaseGraph.hamming((0, 1), records).radius((0,) * records)


def count_bound(epsilon: float, records: int, side: Side, from_: float, to: float) -> float:
    """The least lower or the greatest upper bound of Theorem 5.4.1 on a Laplace count, over outputs."""
    band = laplace_count_bounds(np.linspace(from_, to, 1001), epsilon, records)
    return float(band.lower.min() if side == "lower" else band.upper.max())


def count_bounds_widen(tight: float, loose: float, records: int) -> bool:
    """Whether upper and lower bound are farther apart, as a ratio, at every output for the larger epsilon."""
    outputs = np.linspace(-2 * records, 3 * records, 501)
    first, second = (laplace_count_bounds(outputs, epsilon, records) for epsilon in (tight, loose))
    return bool(np.all(first.upper / first.lower < second.upper / second.lower))


def response_bounds_are_those_of_the_theorem(epsilon: float, records: int) -> bool:
    """Whether equation 5.8 is Theorem 5.4.1 for randomised response, by enumeration."""
    band = data_bounds(_responses(epsilon, records), DatabaseGraph.hamming((0, 1), records), epsilon)
    closed = response_bounds(records, epsilon)
    return bool(np.allclose(band.lower, closed.lower, rtol=1e-9) and np.allclose(band.upper, closed.upper, rtol=1e-9))


def response_bounds_narrow(epsilon: float, records: int) -> bool:
    """Whether both bounds fall with every record, and their gap never widens."""
    band = response_bounds(np.arange(1, records + 1), epsilon)
    gaps = np.diff(band.upper - band.lower)
    return bool(np.all(np.diff(band.lower) < 0) and np.all(np.diff(band.upper) < 0) and np.all(gaps < 1e-12))


# -- section 5.3: intervals of measures ----------------------------------------------------------------------


def interval_is_a_ball(epsilon: float) -> bool:
    """Lemma 5.3.4 and Remark 5.3.6: on the edge of the ball, just within it and just beyond."""
    nucleus = np.array([0.5, 0.3, 0.2])
    ball = DistortionModel(nucleus, epsilon, "multiplicative")
    for factor in (1 - 1e-6, 1 + 1e-6):
        moved = nucleus * np.array([1, 1, math.exp(-epsilon * factor)])
        moved[0] += 1 - moved.sum()  # by less than e^epsilon
        by_interval = bool(MeasureInterval.around(nucleus, epsilon).contains(moved))
        if by_interval != bool(ball.contains(moved)) or by_interval != (factor < 1):
            return False
    return True


def neighbours_decide(epsilon: float, records: int) -> bool:
    """Theorem 5.3.5 for randomised response: loss of neighbours, of all pairs, and membership in intervals."""
    bits, rows = DatabaseGraph.hamming((0, 1), records), _responses(epsilon, records)
    near, all_pairs = (privacy_loss(rows, bits, neighbours_only=only).ratio for only in (True, False))
    inside, outside = (in_intervals(rows, bits, e).holds for e in (epsilon, epsilon * (1 - 1e-6)))
    return math.isclose(near, all_pairs, rel_tol=1e-9) and inside and not outside


def groups_need_paths() -> bool:
    """Whether neighbours do not decide where the distance is not that of paths: a total that is held fixed."""
    universe, rows = DatabaseGraph.hamming((0, 1), 2).within(sum), _responses(1, 2)  # type: ignore[arg-type]
    return privacy_loss(rows, universe, neighbours_only=True).ratio == 0 < privacy_loss(rows, universe).ratio


def no_loss_is_a_function_of_the_component() -> bool:
    """Proposition 15, on datasets of two components."""
    graph = DatabaseGraph.of_edges("abc", [("a", "b")])
    by_component, other = np.array([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]]), np.array([[0.5, 0.5], [0.6, 0.4], [1, 0]])
    losses = [privacy_loss(rows, graph).ratio for rows in (by_component, other)]
    said = [depends_on_component_only(rows, graph) for rows in (by_component, other)]
    return losses[0] == 0 < losses[1] and said == [True, False]


def publishing_the_component_is_free() -> bool:
    """Proposition 16, on datasets of two components."""
    graph = DatabaseGraph.of_edges("abc", [("a", "b")])
    rows = np.array([[0.5, 0.5], [0.6, 0.4], [0.1, 0.9]])
    return math.isclose(privacy_loss(with_component(rows, graph), graph).ratio, privacy_loss(rows, graph).ratio)


def normal_noise_bounds_no_ratio() -> bool:
    """Remark 5.3.7: densities of normal noise, which is zero-concentrated DP, have ratios of any size."""
    found = density_distances(Density.normal(0, 1), Density.normal(1, 1))
    return math.isinf(found.multiplicative.lower) and found.total_variation.upper < 1


def approximate_is_no_interval(epsilon: float, delta: float) -> bool:
    """Section 5.10: the laws within (epsilon, delta) of a uniform one are not all that lie between two measures.

    Of eight outcomes any one may be raised far. Two raised at once still lie between the extremes, and are beyond.
    """
    outcomes = np.eye(8)
    ball = DistortionModel(np.full(8, 1 / 8), epsilon, approximate_function(delta))
    between = MeasureInterval(ball.lower_probability(outcomes), ball.upper_probability(outcomes))
    raised = math.exp(epsilon) / 8 + 0.8 * delta
    two = np.array([raised] * 2 + [(1 - 2 * raised) / 6] * 6)
    return bool(between.contains(two)) and not ball.contains(two)


def theorem_holds(theorem: Literal["5.4.1", "5.5.1", "5.6.2", "5.6.3"]) -> bool:
    """One of the four theorems about analysts, for three bits answered by randomised response and three models."""
    rates, records = np.array([0.2, 0.5, 0.9]), 3
    bits = DatabaseGraph.hamming((0, 1), records)
    ones = np.array([sum(x) for x in bits.datasets])  # type: ignore[call-overload]
    models = rates[:, None] ** ones * (1 - rates[:, None]) ** (records - ones)
    case = FiniteAnalysis(_responses(0.7, records), bits, models, np.array([0.3, 0.5, 0.2]))
    levels = np.linspace(0, 1, 51)
    if theorem == "5.4.1":
        return bool(np.all(case.likelihood_bounds().contains(case.likelihood)))
    if theorem == "5.5.1":
        return bool(np.all(case.best_power(0, 2, levels) <= case.power_bounds(0, 2, levels).upper + 1e-12))
    if theorem == "5.6.2":
        return bool(np.all(case.predictive_bounds().contains(case.predictive)))
    outputs = range(len(bits.datasets))
    return all(bool(np.all(case.posterior_bounds(t, form="published").contains(case.posterior(t)))) for t in outputs)


# -- tests and beliefs ---------------------------------------------------------------------------------------


def power_over_exp(level: float, epsilon: float) -> float:
    """The greatest power between two secrets of a pair, over e^epsilon."""
    case = Pufferfish(tuple("ab"), {"attacker": [0.5, 0.5]}, {"E": "a", "E'": "b"}, [("E", "E'")])
    band = case.power_bounds(level, epsilon, ("attacker", "E"), ("attacker", "E'"))
    return float(band.upper) / math.exp(epsilon)


def noise_deviation(epsilon: float, low: int, high: int) -> float:
    """The standard deviation of the noise on a clamped count."""
    return math.sqrt(2) * ClampedCount(low=low, high=high, epsilon=epsilon).scale


def log_posterior_bound(epsilon: float, distance: float, side: Side) -> float:
    """ln of the bound of Theorem 5.6.3 over the prior density, at the rate 1."""
    prior = ClampedCount().prior(1.0)
    return float(np.log(getattr(density_bounds(prior, epsilon, distance), side) / prior))


def posteriors_stay_between() -> bool:
    """Whether the posteriors of Figure 5.4 lie between its bounds, and nowhere reach them."""
    count, theta = ClampedCount(), np.linspace(0.05, 10, 200)
    band = count.posterior_bounds(theta)
    posteriors = [count.posterior(theta, count.quantile((2 * part + 1) / 20)) for part in range(10)]
    return all(bool(np.all((band.lower < one) & (one < band.upper))) for one in posteriors)


def best_test_attains_the_bound(level: float, epsilon: float, records: int) -> bool:
    """Section 5.9: whether the test above a threshold of at least n has power exactly level times e^(epsilon n)."""
    bound = level * math.exp(epsilon * records)
    beyond = float(laplace_threshold(level, epsilon)) >= records
    return beyond and math.isclose(float(laplace_power(level, epsilon, records)), bound, rel_tol=1e-12)


def upper_bound_is_attained(epsilon: float, records: int) -> bool:
    """Section 5.9: whether u(t) is the density of the dataset of ones for all t >= n."""
    outputs = np.linspace(records, 3 * records, 101)
    ones = Density.laplace(records, 1 / epsilon)(outputs)
    return bool(np.allclose(laplace_count_bounds(outputs, epsilon, records).upper, ones, rtol=1e-12))


def belief_in_one_bit_moves_by_epsilon(epsilon: float, measured: Literal["odds", "distance"]) -> bool:
    """Section 5.9, all other bits known, t <= 0: ln of odds over prior odds, or d_DR of posterior and prior."""
    after = laplace_count_beliefs([-9.0, -1.0, 0.0], [0.5, 0.5], epsilon).posterior
    moved = np.log(after[:, 0] / after[:, 1]) if measured == "odds" else density_ratio_distance(after, [0.5, 0.5])
    return bool(np.allclose(moved, epsilon, rtol=1e-12))


def opposite_datasets_are_n_apart(records: int) -> bool:
    """The Pufferfish distance between n zeros and n ones, for attackers who take records for independent."""
    case = Pufferfish.of_records((0, 1), records, all_but_one_known((0, 1), records))
    zeros, ones = (("knows " + ",".join(["?", *[bit] * (records - 1)]), f"record 1 is {bit}") for bit in ("0", "1"))
    return case.distance(zeros, ones) == records


def independent_attackers_are_differential_privacy(epsilon: float, records: int) -> bool:
    """Remark 5.8.5, for randomised response: the losses are the same."""
    rows = _responses(epsilon, records)
    case = Pufferfish.of_records((0, 1), records, all_but_one_known((0, 1), records))
    private = privacy_loss(rows, DatabaseGraph.hamming((0, 1), records)).ratio
    return math.isclose(case.loss(rows).epsilon, private, rel_tol=1e-12)


def odds_move_by_the_loss(epsilon: float) -> bool:
    """(5.17) and Proposition 19: whether the largest ratio of odds is e^epsilon."""
    rows = _responses(epsilon, 1)
    case = Pufferfish((0, 1), {"attacker": [0.3, 0.7]}, {"E": [0], "E'": [1]}, [("E", "E'")])
    return math.isclose(float(np.max(case.odds_ratios(rows))), math.exp(case.loss(rows).epsilon), rel_tol=1e-12)


def posterior_is_in_the_neighbourhood(epsilon: float) -> bool:
    """Theorem 5.8.4: inside the density-ratio neighbourhood of radius epsilon, and in none that is smaller."""
    rows, prior = _responses(epsilon, 1), np.array([0.3, 0.7])
    case = Pufferfish((0, 1), {"attacker": prior}, {"E": [0], "E'": [1]}, [("E", "E'")])
    after = case.beliefs(rows, "attacker")
    near, nearer = (DensityRatioNeighbourhood(prior, epsilon * factor) for factor in (1 + 1e-9, 1 - 1e-6))
    return bool(np.all(near.contains(after)) and not np.any(nearer.contains(after)))


def neighbourhood_is_an_odds_ratio_model(radius: float) -> bool:
    """Remark 5.8.7: the balls of d_DR and of d_COR, just within the radius and just beyond."""
    nucleus = np.array([0.5, 0.3, 0.2])
    balls: list[DensityRatioNeighbourhood | DistortionModel] = [
        DensityRatioNeighbourhood(nucleus, radius),
        DistortionModel(nucleus, radius, "density-ratio"),
        DistortionModel(nucleus, 1 - math.exp(-radius), "odds-ratio"),
    ]
    for factor in (1 - 1e-6, 1 + 1e-6):
        moved = nucleus * np.exp(np.array([radius * factor, 0.0, 0.0]))
        if any(bool(ball.contains(moved / moved.sum())) != (factor < 1) for ball in balls):
            return False
    return True


# -- errata --------------------------------------------------------------------------------------------------


def sign_of_the_laplace_density() -> Forms:
    """Example 5.4.3."""
    printed = 0.05 * math.exp(0.1 * 100)
    return Forms("p_x(t), epsilon 0.1, t 100 above the sum", printed, laplace_density(100.0, 0, 0.1))


def distance_of_at_most_ten_bits() -> Forms:
    """Example 5.4.3: d_* = 10 for 1 to 10 bits."""
    graph = DatabaseGraph.symmetric_difference((0, 1), 10, least=1)
    return Forms("x_* ten zeros, 1 to 10 bits, records added or removed", 10.0, graph.radius((0,) * 10))


def where_the_lower_bound_is_attained() -> Forms:
    """Section 5.9: at t = -1 the supremum is at zeros and gives the density of ones, not the other way round."""
    epsilon, records, at = 0.3, 10, [-1.0]
    printed = float(laplace_count_densities(at, epsilon, records)[0, 0])
    return Forms("l(-1), epsilon 0.3, n 10", printed, float(laplace_count_bounds(at, epsilon, records).lower[0]))


def posterior_of_an_atom() -> Forms:
    """Section 5.9: the bound e^(epsilon n) is reached by densities, or by an atom as it vanishes, and by no other."""
    atom, epsilon, records = 0.5, 0.7, 3
    printed = float(posterior_bounds(1e-12, epsilon, records, "published").upper) / 1e-12
    after = laplace_count_beliefs([records + 1.0], [1 - atom, 0, 0, atom], epsilon).posterior[0, -1]
    return Forms("posterior over prior of theta = 1, prior 0.5, epsilon 0.7, n 3", printed, float(after) / atom)


def last_line_of_the_posterior() -> Forms:
    """Proof of Theorem 5.6.3: p(t | theta') <= p(t | theta) without e^(epsilon d)."""
    rows = _responses(1, 1)
    ratio = float(rows[0, 0] / rows[1, 0])
    return Forms("randomised response, epsilon 1: is it so?", ratio <= 1, ratio <= math.e * (1 + 1e-12))


def output_that_rules_datasets_out() -> Forms:
    """Theorems 5.4.1 and 5.6.2: the published lower bound where the model gives the support a mass below 1."""
    case = _revealing()
    printed = float(data_bounds(case.rows, case.graph, 0, ["a"]).lower[0])
    correct = float(case.likelihood_bounds().lower[1, 0])
    return Forms("two unconnected datasets told apart, the first of probability 0.1: p(t) at least", printed, correct)


def posterior_of_what_is_ruled_out() -> Forms:
    """Theorem 5.6.3 in the same case."""
    case = _revealing()
    printed = float(posterior_bounds(0.5, case.budget, case.farthest(0), "published").upper)
    return Forms("the same, prior 0.5: posterior at most", printed, float(case.posterior_bounds(0).upper[0]))


def bounds_from_more_datasets() -> Forms:
    """After Theorem 5.6.2: bounds from a larger set 'will be wider'. In its middle may be a better dataset."""
    graph = DatabaseGraph.of_edges(range(3), [(0, 1), (1, 2)])
    rows = np.array([[0.6, 0.4], [0.45, 0.55], [0.44, 0.56]])
    epsilon = privacy_loss(rows, graph).ratio
    narrow = data_bounds(rows, graph, epsilon, among=[0, 2])
    wide = data_bounds(rows, graph, epsilon)
    return Forms("0 - 1 - 2, the data are 0 or 2: p(t) at most", float(narrow.upper[0]), float(wide.upper[0]))


# -- helpers -------------------------------------------------------------------------------------------------


def _renumbered(words: str) -> str:
    """What is said about a figure of the thesis, with the numbers that the paper has for the same."""
    for thesis, paper in _RENUMBERED.items():
        words = words.replace(thesis, paper)
    return words


def _responses(epsilon: float, records: int) -> Array:
    """Randomised response of each bit, datasets and outputs in the order of ``DatabaseGraph.hamming``."""
    return np.asarray(response(epsilon, records).rows)


def _revealing() -> FiniteAnalysis:
    """Two datasets that are not connected, told apart at no loss; the second model gives the first a mass of 1/10."""
    graph = DatabaseGraph.of_edges("ab", [])
    models, prior = np.array([[1, 0], [0.1, 0.9]]), np.array([0.5, 0.5])
    return FiniteAnalysis(with_component([[1.0], [1.0]], graph), graph, models, prior)


Measures = Literal["multiplicative", "density-ratio", "odds-ratio", "linear-vacuous"]

_UNIFORM = np.full(10, 0.1)
_MASSES: dict[str, Array] = {
    # Remark C.4.3
    "half": np.array([0.5, 0.5]),
    "seven tenths": np.array([0.7, 0.3]),
    "uniform": _UNIFORM,
    "a fifth": np.array([1 / 5, *[8 / 90] * 9]),
    "three tenths": np.array([3 / 10, *[7 / 90] * 9]),
    # (C.7)
    "any measure": np.array([1.0, 3.0]),
    "twice it": np.array([2.0, 6.0]),
    # Proposition 13
    "a third": np.array([1 / 3, 2 / 3]),
    "two thirds": np.array([2 / 3, 1 / 3]),
    "P": np.array([9 / 10, *[1 / 80] * 8]),
    "Q": np.array([1 / 5, *[1 / 10] * 8]),
    # The second case after Proposition 9
    "with an outcome": np.array([0.75, 0.25]),
    "without it": np.array([1.0, 0.0]),
}
"""The measures of appendix C, by the names that the list uses."""


def measure_distance(distance: Measures, first: str, second: str) -> float:
    """A distance between two measures of appendix C."""
    return float(distorting_function(distance)(_MASSES[first], _MASSES[second]))


def mixture_distance(distance: Measures, first: str, second: str, third: str, bound: Literal["", "mean"] = "") -> float:
    """The distance of the middle of two measures from the first; or the mean of their distances, of (C.9)."""
    found = mixture(distance, _MASSES[first], _MASSES[second], _MASSES[third])
    return found.mean if bound else found.distance


def density_distance(distance: Literal["multiplicative", "density-ratio"]) -> float:
    """Between the two densities on [-1, 1] of Proposition 13, one of which vanishes where the other does not."""
    first = Density.linear((-1, 0, 1), ((2 / 3, 2 / 3), (2 / 3, 0)))
    second = Density.linear((-1, 0, 1), ((0, 2 / 3), (2 / 3, 2 / 3)))
    found = density_distances(first, second)
    return (found.density_ratio if distance == "density-ratio" else found.multiplicative).lower


def mixture_is_farther(distance: Measures, first: str, second: str, third: str) -> bool:
    """Whether the middle of two measures is farther from the first than they are on average: no convexity."""
    return not mixture(distance, _MASSES[first], _MASSES[second], _MASSES[third]).convex


def mixture_is_no_farther_than_the_farthest(distance: Measures) -> bool:
    """Quasi-convexity on the measures of Remark C.4.3, at many weights."""
    p, q, r = (_MASSES[name] for name in ("uniform", "a fifth", "three tenths"))
    return all(mixture(distance, p, q, r, float(weight)).quasi_convex for weight in np.linspace(0, 1, 101))


def distances_bound_each_other(first: str, second: str) -> bool:
    """Proposition 13: D_MULT < d_DR <= 2 D_MULT."""
    p, q = _MASSES[first], _MASSES[second]
    return bool(multiplicative_distance(p, q) < density_ratio_distance(p, q) <= 2 * multiplicative_distance(p, q))


def near_masses_are_near_measures(epsilon: float) -> bool:
    """Proposition 9: masses that each change by less than the radius, all up, all down or one by one."""
    first = _MASSES["P"]
    step = continuity_radius(first, epsilon) * (1 - 1e-9)
    changes = np.vstack([np.ones(9), -np.ones(9), np.eye(9), -np.eye(9)])
    return bool(np.all(multiplicative_distance(first, first + step * changes) < epsilon))


def distance_jumps(root: Literal["sum outside", "sum inside"]) -> bool:
    """The first case after Proposition 9: whether measures nearer than delta are more than ln 2 apart, at many delta.

    The thesis puts the second mass at ceil(sqrt(4/delta) + 1), the paper at ceil(sqrt(4/delta + 1)).
    """
    for delta in (0.9, 0.5, 0.1, 0.01):
        at = math.ceil(math.sqrt(4 / delta) + 1 if root == "sum outside" else math.sqrt(4 / delta + 1))
        first = np.arange(1.0, at + 10) ** -2
        second = first.copy()
        second[[0, at - 1]] += [-delta / 4, delta / 4]
        if not np.max(np.abs(first - second)) < delta or not multiplicative_distance(first, second) > math.log(2):
            return False
    return True


def base_measure_does_not_matter() -> bool:
    """Proposition 7: densities with respect to any measure give the same d_DR."""
    p, q, base = _MASSES["P"], _MASSES["Q"], np.linspace(0.5, 4, 9)
    return math.isclose(float(density_ratio_distance(p / base, q / base)), float(density_ratio_distance(p, q)))


def distance_of_events(distance: Literal["multiplicative", "density-ratio"]) -> bool:
    """Propositions 10 and 12: the forms by events and by single outcomes agree, over all events of nine outcomes."""
    events = (np.arange(1, 2**9)[:, None] >> np.arange(9)) & 1
    logs = np.log(events @ _MASSES["P"]) - np.log(events @ _MASSES["Q"])
    by_events = logs.max() - logs.min() if distance == "density-ratio" else np.abs(logs).max()
    return math.isclose(float(by_events), measure_distance(distance, "P", "Q"))


def triangle_holds(distance: Literal["multiplicative", "density-ratio"]) -> bool:
    """Lemmas C.3.3 and C.3.4 on the three measures of Remark C.4.3, in every order."""
    for a, b, c in permutations(("uniform", "a fifth", "three tenths")):
        direct, back = measure_distance(distance, a, b), measure_distance(distance, b, a)
        round_about = measure_distance(distance, a, c) + measure_distance(distance, c, b)
        if not math.isclose(direct, back) or direct > round_about + 1e-12:
            return False
    return True


def densities_bound_measures() -> bool:
    """Proposition 14: a class of densities between a g and b g is the interval from a tau to b tau."""
    base, tau = np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    classes = MeasureInterval.of_densities(0.5 * tau / base, 2 * tau / base, base), MeasureInterval(tau / 2, 2 * tau)
    tried = np.stack([tau * np.array(factors) for factors in ((0.5, 2, 1), (0.49, 1, 1), (1, 2.01, 1))])
    said = [one.contains(tried).tolist() for one in classes]
    return all(one == [True, False, False] for one in said)


def products_add_up() -> bool:
    """Proposition 11 on two pairs of appendix C."""
    (p, q), (r, s) = (_MASSES["P"], _MASSES["Q"]), (_MASSES["a third"], _MASSES["two thirds"])
    joint = multiplicative_distance(np.outer(p, r).ravel(), np.outer(q, s).ravel())
    return bool(joint <= multiplicative_distance(p, q) + multiplicative_distance(r, s) + 1e-12)


def odds_ratio_is_the_density_ratio(first: str, second: str) -> bool:
    """Corollary C.5.5: d_DR = -ln(1 - d_COR)."""
    p, q = _MASSES[first], _MASSES[second]
    return math.isclose(float(density_ratio_distance(p, q)), -math.log1p(-float(odds_ratio_distance(p, q))))


# -- errata -------------------------------------------------------------------------------------------------


def odds_ratio_of_different_supports() -> Forms:
    """Remark 5.8.7: the last branch of d_COR."""
    return Forms(
        "d_COR of (3/4, 1/4) and (1, 0)",
        "not defined",
        measure_distance("odds-ratio", "with an outcome", "without it"),
    )


def density_ratio_of_measures() -> Forms:
    """Proposition 13 for measures: d_DR <= D_MULT fails, d_DR <= 2 D_MULT holds."""
    p, q = _MASSES["a third"], _MASSES["two thirds"]
    apart, ratio = float(multiplicative_distance(p, q)), float(density_ratio_distance(p, q))
    return Forms("(1/3, 2/3) and (2/3, 1/3): is it so?", ratio <= apart, ratio <= 2 * apart)


def mass_of_q() -> Forms:
    """Proposition 13: Q(x) = 1/10 at x = 1, ..., 10 where there are nine outcomes and Q(1) = 1/5."""
    return Forms("Q(1) + ... + Q(9)", 9 * Fraction(1, 10), Fraction(1, 5) + 8 * Fraction(1, 10))


def last_line_of_the_triangle() -> Forms:
    """Lemma C.3.3: D(mu, nu) + D(tau, nu) on the right makes it true of itself."""
    mu, nu, tau = (_MASSES[name] for name in ("uniform", "a fifth", "three tenths"))
    wrong = float(multiplicative_distance(mu, nu) + multiplicative_distance(tau, nu))
    right = float(multiplicative_distance(mu, tau) + multiplicative_distance(tau, nu))
    return Forms("three measures of Remark C.4.3", wrong, right)


def mass_of_an_event_under_the_sup_norm() -> Forms:
    """Proof of Proposition 9: nu_2(S) <= nu_1(S) + delta for a set S of two outcomes."""
    delta, larger = Fraction(1, 10), Fraction(9, 100)
    return Forms(
        "S of two outcomes, each 0.09 larger, delta 0.1: is it so?", 2 * larger <= delta, 2 * larger <= 2 * delta
    )
