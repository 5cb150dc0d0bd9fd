"""Numbers and errata about surveys, chapters 6 to 8 of the thesis, counted out on very small frames.

Keep in mind: nothing here asks ``stirred.survey``; what is computed with it is in ``survey_guarantees.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.limits import (
    DatabaseGraph,
    Density,
    approximate_distance,
    density_distances,
    multiplicative_distance,
    privacy_loss,
)
from stirred.reproduce.computations import Forms, computation
from stirred.semantics import Beliefs
from stirred.spec import (
    Budget,
    Domain,
    FiniteMechanism,
    Flavor,
    InputPremetric,
    Multiverse,
    OutputPremetric,
    Specification,
    coarsens,
    completed,
    compose,
    flavors,
    is_complete,
    laplace_scales,
    transferred,
)
from stirred.spec.order.finite_mechanisms import randomised_response

Array = NDArray[np.float64]


# -- what can be computed without surveys --------------------------------------------------------------------


@computation
def composed_loss(first: str, second: str) -> Fraction:
    """The loss of two mechanisms on the same data, before anything is sampled."""
    both = compose(flavors.pure().at(first), flavors.pure().at(second)).specification
    return Fraction(both.budget.number)


@computation
def triangle_fails(delta: float) -> bool:
    """Example 6.2.3: three coins, each next to the other at no (epsilon, delta) distance, the ends apart."""
    p, q, r = [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]
    apart = [float(approximate_distance(a, b, delta)) for a, b in ((p, q), (q, r), (p, r))]
    return apart[2] > apart[0] + apart[1]


@computation
def coarser_is_stronger() -> bool:
    """Lemma 6.2.7: universes {a, b} of budget 1 and {a, b, c} of budget 3, against {a, b} and {b, c}."""
    flavor = _listed(("a", "b"), ("a", "b", "c"))
    budgets = tuple(1 if len(universe) == 2 else 3 for universe in flavor.multiverse.universes)
    coarse = flavor.at(Budget(3, by_universe=budgets))
    finer = transferred(coarse, Multiverse(universes=(("a", "b"), ("b", "c"))))
    inherited = dict(zip(finer.multiverse.universes, finer.budget.by_universe, strict=True))
    stronger = bool(coarsens(coarse, finer)) and not coarsens(finer, coarse) and bool(coarse.implies(finer))
    return stronger and inherited == {("a", "b"): 1, ("b", "c"): 3}


@computation
def completion_has_the_same_mechanisms() -> bool:
    """Lemma 6.2.11: c is infinitely far from a and b, and shares a universe with them."""
    whole = _listed(("a", "b", "c"), near=("ab",)).at(1)
    parts = completed(whole)
    same = bool(whole.implies(parts)) and bool(parts.implies(whole))
    return same and bool(is_complete(parts)) and is_complete(whole).verdict == "no"


@computation
def laplace_noise_satisfies_the_specification() -> bool:
    """Theorem 6.4.3, with the scales of the corrected definition, where universes overlap."""
    specification, query = _overlapping()
    return _laplace_loss(query, laplace_scales(specification, query)) <= 1


@computation
def posteriors_move_by_at_most(epsilon: float) -> bool:
    """Equation 6.2, for two records that depend on each other; a rare value comes near to e^epsilon."""
    alike = {("0", "0"): 0.9, ("0", "1"): 0.095, ("1", "0"): 0.001, ("1", "1"): 0.004}
    ratios = np.log(Beliefs(alike, _answers(epsilon, 2), target=0).ratio)
    return bool(np.all(np.abs(ratios) <= epsilon) and np.max(np.abs(ratios)) > 0.9 * epsilon)


@computation
def counting_query_sensitivity() -> float:
    """The largest change of a count where one record is added or removed."""
    graph = DatabaseGraph.symmetric_difference((0, 1), 4)
    counts = np.array([sum(x) for x in graph.datasets])  # type: ignore[call-overload]
    return float(np.max(np.abs(counts[:, None] - counts[None, :])[graph.distances == 1]))


@computation
def mean_sensitivity_is(spread: int, records: int) -> bool:
    """Whether the mean of n values between 0 and R changes by at most R/n, and by that much, if one is replaced."""
    graph = DatabaseGraph.hamming(range(spread + 1), records)
    sums = np.array([sum(x) for x in graph.datasets])  # type: ignore[call-overload]
    largest = int(np.max(np.abs(sums[:, None] - sums[None, :])[graph.distances == 1]))
    return Fraction(largest, records) == Fraction(spread, records)


@computation
def budgets_add_up() -> bool:
    """Section 8.4: two randomised responses lose together, counted out, what the specifications composed say."""
    one, other = (randomised_response(1 / (1 + math.exp(epsilon))) for epsilon in (0.3, 0.7))
    counted = one.and_then(other).loss(flavors.local(), {"0": "0", "1": "1"}).number
    return math.isclose(counted, composed_loss("0.3", "0.7"), rel_tol=1e-9)


# -- errata --------------------------------------------------------------------------------------------------


@computation
def caption_of_figure_6_1() -> Forms:
    """Two randomised responses of one record that is sampled out of ten."""
    epsilon, rate = 1.0, 0.1
    printed = math.log1p(rate * math.expm1(epsilon))
    one = _response(epsilon)
    both = np.stack([np.outer(row, row).ravel() for row in one])
    return Forms("f = 0.1, epsilon 1", printed, _frame_loss(both, 10, 1))


@computation
def sensitivity_over_all_samples() -> Forms:
    """Section 6.4.5: w x = (0, 0, 10, 10), two of four sampled."""
    values, bound = (0, 0, 10, 10), 10
    totals = {sample: sum(values[unit] for unit in sample) for sample in itertools.combinations(range(4), 2)}
    apart = {(s, t): abs(totals[s] - totals[t]) for s, t in itertools.combinations(totals, 2)}
    neighbours = max(change for (s, t), change in apart.items() if len(set(s) & set(t)) == 1)
    return Forms("w x = (0, 0, 10, 10), n = 2: is it so?", max(apart.values()) <= bound, neighbours <= bound)


@computation
def sampling_with_replacement() -> Forms:
    """Theorem 6.4.1: drawn twice, a record counts twice, and the formula does not hold."""
    epsilon = 1.0
    rows = geometric(2, epsilon)
    formula = math.log1p(1.0 * math.expm1(epsilon)) + 1e-12
    with_, without = (_frame_loss(rows, 2, 2, replace) for replace in (True, False))
    return Forms("a count at epsilon 1 of two draws from two records: is it so?", with_ <= formula, without <= formula)


@computation
def optimal_ratio() -> Forms:
    """Section 6.5.1: what an optimal mechanism achieves, for randomised response at epsilon 1."""
    epsilon = 1.0
    rows = _response(epsilon)
    return Forms("epsilon 1", epsilon, float(rows[1, 1] / rows[0, 1]))


@computation
def nosy_neighbour() -> Forms:
    """Section 6.5.1: the posterior over the counterfactual posterior, epsilon 1, unit known to be sampled."""
    seen = Beliefs({("0",): 0.5, ("1",): 0.5}, _answers(1.0), target=0)
    return Forms("randomised response at epsilon 1, prior 0.5", math.e, float(np.max(seen.ratio)))


@computation
def scales_of_overlapping_universes() -> Forms:
    """Definition 6.4.2: q = 0, 1, 3 at a, b, c; universes {a, b} and {b, c}; epsilon 1."""
    specification, query = _overlapping()
    printed = _laplace_loss(query, {"a": Fraction(1), "b": Fraction(2), "c": Fraction(2)})
    correct = _laplace_loss(query, laplace_scales(specification, query))
    return Forms("q = 0, 1, 3 at a, b, c, universes {a, b} and {b, c}, epsilon 1: the loss", printed, correct)


@computation
def inclusion_by_size() -> Forms:
    """Section 7.4: sizes 10, 20, 30, 40, two of four sampled, the first unit."""
    sizes, n = [10, 20, 30, 40], 2
    mean = Fraction(sum(sizes), len(sizes))
    printed, correct = Fraction(n * sizes[0], len(sizes)) * mean, n * sizes[0] / (len(sizes) * mean)
    return Forms("sizes 10, 20, 30, 40, n = 2, first unit", printed, correct)


@computation
def comparable_samples() -> Forms:
    """Section 6.4.4: one unit of each stratum, x = 0, 1 and 10, 12, all weights 2."""
    samples = list(itertools.product((0, 1), (10, 12)))
    apart = [
        (2 * abs(sum(s) - sum(t)), sum(a != b for a, b in zip(s, t, strict=True)))
        for s, t in itertools.combinations(samples, 2)
    ]
    all_pairs, single = max(change for change, _ in apart), max(change for change, records in apart if records == 1)
    return Forms("strata x = 0, 1 and 10, 12, weights 2: largest change", all_pairs, single)


@computation
def changing_weights_or_values() -> Forms:
    """Weights 1 and 10, both values 1, one unit sampled: chapter 7 changes the value, chapter 6 the unit."""
    weights, values = (1, 10), (1, 1)
    value_changes = max(weights) * (max(values) - min(values))
    products = [w * x for w, x in zip(weights, values, strict=True)]
    return Forms("w = 1, 10, x = 1, 1: sensitivity of the total", value_changes, max(products) - min(products))


@computation
def fixed_or_free_values() -> Forms:
    """Weights 2, 4, 5, 10: values as they are in the frame, or any from 1 to 3."""
    weights, values = (2, 4, 5, 10), (1, 3, 2, 1)
    fixed = [w * x for w, x in zip(weights, values, strict=True)]
    free = [w * x for w in weights for x in (min(values), max(values))]
    return Forms("w = 2, 4, 5, 10, x = 1, 3, 2, 1", max(fixed) - min(fixed), max(free) - min(free))


@computation
def data_made_inside_a_mechanism() -> Forms:
    """Example 6.2.2: one of two records is sampled and answers by randomised response at epsilon 1."""
    rows = _response(1.0)
    return Forms(
        "one of two sampled, epsilon 1: loss of a frame record, and of the sampled record",
        _frame_loss(rows, 2, 1),
        float(multiplicative_distance(rows[0], rows[1])),
    )


# -- helpers -------------------------------------------------------------------------------------------------


def _listed(*universes: Sequence[str], near: Sequence[str] = ()) -> Flavor:
    """Listed datasets at distance 1: those that are named as near, or all; others are infinitely far apart."""
    names = tuple(dict.fromkeys(name for universe in universes for name in universe))
    pairs = [tuple(pair) for pair in near] or list(itertools.combinations(names, 2))
    distances = {one: 1 for a, b in pairs for one in ((a, b), (b, a))}
    multiverse = Multiverse(universes=tuple(map(tuple, universes)))
    domain = Domain("listed datasets", datasets=names)
    return Flavor(domain, multiverse, InputPremetric.table(distances), OutputPremetric("multiplicative"))


def _overlapping() -> tuple[Specification, dict[str, float]]:
    return _listed(("a", "b"), ("b", "c")).at(1), {"a": 0, "b": 1, "c": 3}


def _laplace_loss(query: Mapping[str, float], scales: Mapping[str, Fraction | float]) -> float:
    """The largest loss of Laplace noise within the universes {a, b} and {b, c}."""
    laws = {name: Density.laplace(value, float(scales[name])) for name, value in query.items()}
    return max(density_distances(laws[x], laws[y]).multiplicative.upper for x, y in (("a", "b"), ("b", "c")))


def _response(epsilon: float) -> Array:
    return np.asarray(_answers(epsilon).rows)


def _answers(epsilon: float, respondents: int = 1) -> FiniteMechanism:
    return randomised_response(1 / (1 + math.exp(epsilon)), respondents=respondents)


def geometric(most: int, epsilon: float) -> Array:
    """A count of 0 to ``most`` with geometric noise, what falls outside put on the ends."""
    a = math.exp(-epsilon)
    k, t = np.mgrid[0 : most + 1, 0 : most + 1]
    rows = (1 - a) / (1 + a) * a ** np.abs(t - k)
    rows[:, 0], rows[:, -1] = a ** k[:, 0] / (1 + a), a ** (most - k[:, 0]) / (1 + a)
    return np.asarray(rows)


def _frame_loss(rows: Array, frame: int, sample: int, replace: bool = False) -> float:
    """The loss, for the records of a frame of bits, of a mechanism on the number of ones in a sample of it.

    Frames with the same number of ones are alike, and neighbours differ by one.
    """
    laws = []
    for ones in range(frame + 1):
        bits = [1] * ones + [0] * (frame - ones)
        samples = list(itertools.product(bits, repeat=sample) if replace else itertools.combinations(bits, sample))
        laws.append(np.mean([rows[sum(one)] for one in samples], axis=0))
    path = DatabaseGraph.of_edges(range(frame + 1), [(k, k + 1) for k in range(frame)])
    return privacy_loss(np.stack(laws), path).ratio
