"""Numbers and errata about surveys: chapters 6 to 8 of the thesis.

What needs no surveys is counted out on very small frames. Settings, sampling, weights and attackers are computed with
``stirred.survey``: where the source prints a formula, our sensitivity is compared with that formula at several frames,
and the row shows the formula if they agree everywhere; where it states what sampling does, samples of very small frames
are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stirred.lab.definitions.beliefs import Beliefs
from stirred.lab.definitions.multiverses import coarsens, completed, is_complete, laplace_scales, transferred
from stirred.lab.limits.distances_of_densities import density_distances
from stirred.lab.reproduce.catalogue import Forms
from stirred.lab.reproduce.examples import flavor_of, response, sensitivity_of
from stirred.lab.sampling.enumerated import SampledMechanism, Vanishing, knows_the_sample, vanishing
from stirred.limits import DatabaseGraph, Density, approximate_distance, multiplicative_distance, privacy_loss
from stirred.releases.context import parameters
from stirred.semantics.pictures.shapes import Line, Picture
from stirred.spec import Budget, FiniteMechanism, Flavor, Multiverse, Specification, compose, flavors
from stirred.survey.design.amplification import OneSample, amplify, on_one_sample, shared_sample_curves
from stirred.survey.design.selections import simple_random
from stirred.survey.plan.sensitivity import Bounds, Estimator, SurveyFacts, Units, sensitivity, weights_fixed
from stirred.survey.plan.settings import (
    CHANGES,
    CONSIDERED,
    FIXED,
    SETTINGS,
    Change,
    Setting,
    printed_amplification,
    setting,
)

Array = NDArray[np.float64]


# -- what can be computed without surveys --------------------------------------------------------------------


def composed_loss(first: str, second: str) -> Fraction:
    """The loss of two mechanisms on the same data, before anything is sampled."""
    both = compose(flavors.pure().at(first), flavors.pure().at(second)).specification
    return Fraction(both.budget.number)


def triangle_fails(delta: float) -> bool:
    """Example 6.2.3: three coins, each next to the other at no (epsilon, delta) distance, the ends apart."""
    p, q, r = [0.5, 0.5], [0.4, 0.6], [0.3, 0.7]
    apart = [float(approximate_distance(a, b, delta)) for a, b in ((p, q), (q, r), (p, r))]
    return apart[2] > apart[0] + apart[1]


def coarser_is_stronger() -> bool:
    """Lemma 6.2.7: universes {a, b} of budget 1 and {a, b, c} of budget 3, against {a, b} and {b, c}."""
    flavor = _listed(("a", "b"), ("a", "b", "c"))
    budgets = tuple(1 if len(universe) == 2 else 3 for universe in flavor.multiverse.universes)
    coarse = flavor.at(Budget(3, by_universe=budgets))
    finer = transferred(coarse, Multiverse(universes=(("a", "b"), ("b", "c"))))
    inherited = dict(zip(finer.multiverse.universes, finer.budget.by_universe, strict=True))
    stronger = bool(coarsens(coarse, finer)) and not coarsens(finer, coarse) and bool(coarse.implies(finer))
    return stronger and inherited == {("a", "b"): 1, ("b", "c"): 3}


def completion_has_the_same_mechanisms() -> bool:
    """Lemma 6.2.11: c is infinitely far from a and b, and shares a universe with them."""
    whole = _listed(("a", "b", "c"), near=("ab",)).at(1)
    parts = completed(whole)
    same = bool(whole.implies(parts)) and bool(parts.implies(whole))
    return same and bool(is_complete(parts)) and is_complete(whole).verdict == "no"


def laplace_noise_satisfies_the_specification() -> bool:
    """Theorem 6.4.3, with the scales of the corrected definition, where universes overlap."""
    specification, query = _overlapping()
    return _laplace_loss(query, laplace_scales(specification, query)) <= 1


def posteriors_move_by_at_most(epsilon: float) -> bool:
    """Equation 6.2, for two records that depend on each other; a rare value comes near to e^epsilon."""
    alike = {("0", "0"): 0.9, ("0", "1"): 0.095, ("1", "0"): 0.001, ("1", "1"): 0.004}
    ratios = np.log(Beliefs(alike, response(epsilon, 2), target=0).ratio)
    return bool(np.all(np.abs(ratios) <= epsilon) and np.max(np.abs(ratios)) > 0.9 * epsilon)


def counting_query_sensitivity() -> float:
    """The largest change of a count where one record is added or removed."""
    graph = DatabaseGraph.symmetric_difference((0, 1), 4)
    return sensitivity_of(graph, [sum(x) for x in graph.datasets])  # type: ignore[call-overload]


def mean_sensitivity_is(spread: int, records: int) -> bool:
    """Whether the mean of n values between 0 and R changes by at most R/n, and by that much, if one is replaced."""
    graph = DatabaseGraph.hamming(range(spread + 1), records)
    largest = sensitivity_of(graph, [sum(x) for x in graph.datasets])  # type: ignore[call-overload]
    return Fraction(largest) / records == Fraction(spread, records)


def budgets_add_up() -> bool:
    """Section 8.4: two randomised responses lose together, counted out, what the specifications composed say."""
    one, other = response(0.3), response(0.7)
    counted = one.and_then(other).loss(flavors.local(), {"0": "0", "1": "1"}).number
    return math.isclose(counted, composed_loss("0.3", "0.7"), rel_tol=1e-9)


# -- errata --------------------------------------------------------------------------------------------------


def caption_of_figure_6_1() -> Forms:
    """Two randomised responses of one record that is sampled out of ten."""
    epsilon, rate = 1.0, 0.1
    printed = math.log1p(rate * math.expm1(epsilon))
    one = response(epsilon).rows
    both = np.stack([np.outer(row, row).ravel() for row in one])
    return Forms("f = 0.1, epsilon 1", printed, _frame_loss(both, 10, 1))


def sensitivity_over_all_samples() -> Forms:
    """Section 6.4.5: w x = (0, 0, 10, 10), two of four sampled."""
    values, bound = (0, 0, 10, 10), 10
    totals = {sample: sum(values[unit] for unit in sample) for sample in itertools.combinations(range(4), 2)}
    apart = {(s, t): abs(totals[s] - totals[t]) for s, t in itertools.combinations(totals, 2)}
    neighbours = max(change for (s, t), change in apart.items() if len(set(s) & set(t)) == 1)
    return Forms("w x = (0, 0, 10, 10), n = 2: is it so?", max(apart.values()) <= bound, neighbours <= bound)


def sampling_with_replacement() -> Forms:
    """Theorem 6.4.1: drawn twice, a record counts twice, and the formula does not hold."""
    epsilon = 1.0
    rows = geometric(2, epsilon)
    formula = math.log1p(1.0 * math.expm1(epsilon)) + 1e-12
    with_, without = (_frame_loss(rows, 2, 2, replace) for replace in (True, False))
    return Forms("a count at epsilon 1 of two draws from two records: is it so?", with_ <= formula, without <= formula)


def optimal_ratio() -> Forms:
    """Section 6.5.1: what an optimal mechanism achieves, for randomised response at epsilon 1."""
    epsilon = 1.0
    rows = response(epsilon).rows
    return Forms("epsilon 1", epsilon, float(rows[1, 1] / rows[0, 1]))


def nosy_neighbour() -> Forms:
    """Section 6.5.1: the posterior over the counterfactual posterior, epsilon 1, unit known to be sampled."""
    seen = Beliefs({("0",): 0.5, ("1",): 0.5}, response(1.0), target=0)
    return Forms("randomised response at epsilon 1, prior 0.5", math.e, float(np.max(seen.ratio)))


def scales_of_overlapping_universes() -> Forms:
    """Definition 6.4.2: q = 0, 1, 3 at a, b, c; universes {a, b} and {b, c}; epsilon 1."""
    specification, query = _overlapping()
    printed = _laplace_loss(query, {"a": Fraction(1), "b": Fraction(2), "c": Fraction(2)})
    correct = _laplace_loss(query, laplace_scales(specification, query))
    return Forms("q = 0, 1, 3 at a, b, c, universes {a, b} and {b, c}, epsilon 1: the loss", printed, correct)


def inclusion_by_size() -> Forms:
    """Section 7.4: sizes 10, 20, 30, 40, two of four sampled, the first unit."""
    sizes, n = [10, 20, 30, 40], 2
    mean = Fraction(sum(sizes), len(sizes))
    printed, correct = Fraction(n * sizes[0], len(sizes)) * mean, n * sizes[0] / (len(sizes) * mean)
    return Forms("sizes 10, 20, 30, 40, n = 2, first unit", printed, correct)


def comparable_samples() -> Forms:
    """Section 6.4.4: one unit of each stratum, x = 0, 1 and 10, 12, all weights 2."""
    samples = list(itertools.product((0, 1), (10, 12)))
    apart = [
        (2 * abs(sum(s) - sum(t)), sum(a != b for a, b in zip(s, t, strict=True)))
        for s, t in itertools.combinations(samples, 2)
    ]
    all_pairs, single = max(change for change, _ in apart), max(change for change, records in apart if records == 1)
    return Forms("strata x = 0, 1 and 10, 12, weights 2: largest change", all_pairs, single)


def changing_weights_or_values() -> Forms:
    """Weights 1 and 10, both values 1, one unit sampled: chapter 7 changes the value, chapter 6 the unit."""
    weights, values = (1, 10), (1, 1)
    value_changes = max(weights) * (max(values) - min(values))
    products = [w * x for w, x in zip(weights, values, strict=True)]
    return Forms("w = 1, 10, x = 1, 1: sensitivity of the total", value_changes, max(products) - min(products))


def fixed_or_free_values() -> Forms:
    """Weights 2, 4, 5, 10: values as they are in the frame, or any from 1 to 3."""
    weights, values = (2, 4, 5, 10), (1, 3, 2, 1)
    fixed = [w * x for w, x in zip(weights, values, strict=True)]
    free = [w * x for w in weights for x in (min(values), max(values))]
    return Forms("w = 2, 4, 5, 10, x = 1, 3, 2, 1", max(fixed) - min(fixed), max(free) - min(free))


def data_made_inside_a_mechanism() -> Forms:
    """Example 6.2.2: one of two records is sampled and answers by randomised response at epsilon 1."""
    rows = response(1.0).rows
    return Forms(
        "one of two sampled, epsilon 1: loss of a frame record, and of the sampled record",
        _frame_loss(rows, 2, 1),
        float(multiplicative_distance(rows[0], rows[1])),
    )


# -- helpers -------------------------------------------------------------------------------------------------


def _listed(*universes: Sequence[str], near: Sequence[str] = ()) -> Flavor:
    """Listed datasets at distance 1: those that are named as near, or all; others are infinitely far apart."""
    names = tuple(dict.fromkeys(name for universe in universes for name in universe))
    pairs = [(pair[0], pair[1]) for pair in near] or list(itertools.combinations(names, 2))
    return flavor_of(dict.fromkeys(pairs, 1), *universes, names=names)


def _overlapping() -> tuple[Specification, dict[str, float]]:
    return _listed(("a", "b"), ("b", "c")).at(1), {"a": 0, "b": 1, "c": 3}


def _laplace_loss(query: Mapping[str, float], scales: Mapping[str, Fraction | float]) -> float:
    """The largest loss of Laplace noise within the universes {a, b} and {b, c}."""
    laws = {name: Density.laplace(value, float(scales[name])) for name, value in query.items()}
    return max(density_distances(laws[x], laws[y]).multiplicative.upper for x, y in (("a", "b"), ("b", "c")))


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


_CLOSE = 1e-9
_SAMPLE_LEVEL = setting("target sample", "frame")


# -- settings ------------------------------------------------------------------------------------------------


def settings_of_level(level: str) -> int:
    """How many settings start at a stage, or at any."""
    return sum(level in ("any", one.level) for one in SETTINGS)


def design_weights(setting: str) -> str:
    """Table 6.2, decided for every setting with this last stage held fixed, where a record may change the design."""
    held = {"target-sample invariance": "target sample", "frame invariance": "frame"}
    through = held.get(setting, "population" if setting == "population invariance" else "")
    facts = SurveyFacts((Units(_bounds(1, 10), _bounds(0, 1)),), fewest=5, most=5)
    (fixed,) = {weights_fixed(facts, one)[0] for one in SETTINGS if one.fixed_through == through}
    return FIXED if fixed else CONSIDERED


def amplification_at_level(level: str) -> str:
    """Table 6.3, the same in all settings that start at a stage."""
    (printed,) = {printed_amplification(one) for one in SETTINGS if one.level == level}
    return printed


# -- amplification -------------------------------------------------------------------------------------------


def amplification_theorem_holds() -> bool:
    """Theorem 6.4.1 for counts of samples of one to four of two to four records, by listing all samples.

    A count with geometric noise attains epsilon'. A mechanism that fails with probability delta, and then tells the
    count as it is, keeps (epsilon', n/N delta).
    """
    epsilon, delta = 1.0, 0.1
    for frame in (2, 3, 4):
        for sample in range(1, frame + 1):
            bound = amplify(simple_random(sample, frame), epsilon, delta)
            pure = _counted(frame, sample, epsilon).loss()
            failing = _counted(frame, sample, epsilon, delta).loss("approximate", bound.delta)
            formula = math.log1p(sample / frame * math.expm1(epsilon))
            if not math.isclose(bound.delta, sample / frame * delta, rel_tol=_CLOSE):
                return False
            if not math.isclose(bound.epsilon, formula, rel_tol=_CLOSE) or failing > formula + _CLOSE:
                return False
            if not math.isclose(pure, formula, rel_tol=_CLOSE):
                return False
    return True


def amplification_is_proportional(epsilon: str, rate: str) -> bool:
    """Whether epsilon' is within a hundredth of n/N epsilon, and below epsilon."""
    share = Fraction(rate)
    after = amplify(simple_random(share.numerator, share.denominator), float(epsilon)).epsilon
    return math.isclose(after, share * Fraction(epsilon), rel_tol=0.01) and after < float(epsilon)


def loss_of_one(number: int) -> float:
    """The loss of one of the two mechanisms of section 6.5.2, one record in ten sampled."""
    return _section_6_5_2().parts[number - 1].epsilon


def losses_added_up() -> float:
    """The sum of their losses, which is not the loss of both on one sample."""
    return _section_6_5_2().naive


def loss_on_one_sample() -> float:
    """The loss of both on one sample."""
    return _section_6_5_2().total.epsilon


def figure_6_1() -> tuple[Picture, ...]:
    """The losses of two mechanisms on one sample of a tenth: added up, as they are, and as the caption has it.

    The source does not say how far its axis goes.
    """
    curves = shared_sample_curves(simple_random(1, 10), np.linspace(0, 4, 81))
    epsilon = tuple(curves.epsilons)
    return (
        Picture(
            "figure-6-1",
            "Two mechanisms on one sample",
            "one record in ten is sampled; Figure 6.1 of the thesis",
            "epsilon of each mechanism on the sample",
            "loss of both, for the records of the frame",
            (
                Line("added up (too small)", epsilon, tuple(curves.naive)),
                Line("of both: composed, then amplified", epsilon, tuple(curves.total)),
                Line(
                    "formula in the caption",
                    epsilon,
                    tuple(curves.printed),
                    dashed=True,
                    words="an erratum: without the factor of 2 this is the loss of one mechanism",
                ),
            ),
            caption="Compared are frames in which one record has another value, for someone who does not know who was "
            "sampled.",
            guarantee="Guarantees: epsilon of the horizontal axis for each of two mechanisms, per record replaced in "
            "the sample, pure differential privacy",
        ),
    )


# -- attackers -----------------------------------------------------------------------------------------------


def knowing_the_sample_changes_nothing() -> bool:
    """Section 6.4.2: a guarantee on the sample holds for who knows exactly whose records it holds.

    Two of three are sampled, and a count is answered. The beliefs of who knows the sample move by at most the loss on
    the sample, for every sample, and come near it; the loss on the sample is that of the mechanism by itself.
    """
    sampled, prior = _counted(3, 2, 1.0), _unlikely_ones(3)
    loss = sampled.sample_loss()
    moved = [
        float(np.max(np.abs(np.log(knows_the_sample(sampled, prior, unit, sample).ratio))))
        for sample in itertools.combinations(range(3), 2)
        for unit in sample
    ]
    return math.isclose(loss, 1, rel_tol=_CLOSE) and max(moved) <= loss + _CLOSE and min(moved) > 0.99 * loss


def sampling_is_no_help_against(attacker: str) -> bool:
    """Whether an attacker's beliefs move by nearly the loss on the sample, which is more than the amplified one."""
    found = _attacked()
    moved = found.largest[attacker]
    hidden = found.largest["frame record"] <= found.frame_loss + _CLOSE
    return hidden and found.frame_loss < 0.99 * found.sample_loss < moved <= found.sample_loss + _CLOSE


# -- weights -------------------------------------------------------------------------------------------------


def weighted_count_sensitivity(formula: str) -> str:
    """The sensitivity of a weighted count, weights fixed, in both readings of a change."""
    bits = _bounds(0, 1)
    agree = all(
        _sensitivity([Units(_bounds(w, w), bits) for w in weights], _SAMPLE_LEVEL, change) == max(weights)
        for weights, _ in _FRAMES
        for change in CHANGES
    )
    return formula if agree else "another formula"


def total_sensitivity(formula: str, frame: str) -> str:
    """The sensitivity of the Horvitz-Thompson total, unit replaced, the frame ``invariant`` or ``agnostic``."""
    chosen = _SAMPLE_LEVEL if frame == "invariant" else setting("target sample")
    printed = _where_fixed if frame == "invariant" else _where_free
    sizes = (1, 2, 4)
    agree = all(
        _sensitivity(Units.listed(weights, values), chosen, "unit", n) == printed(weights, values, n)
        for weights, values in _FRAMES
        for n in sizes
    )
    return formula if agree else "another formula"


def strata_lower_sensitivity() -> bool:
    """Whether the sensitivity is smaller with strata than without, the frame held fixed: x = 0, 1 and 10, 12, w = 2."""
    units = Units.listed([2, 2, 2, 2], [0, 1, 10, 12], ["one", "one", "other", "other"])
    with_strata = _sensitivity(units, _SAMPLE_LEVEL, "unit", 2, strata=True)
    return with_strata < _sensitivity(units, _SAMPLE_LEVEL, "unit", 2)


def mean_sensitivity(formula: str, records: int) -> str:
    """The sensitivity of the Horvitz-Thompson mean of N records where a value changes between 0 and R."""
    mean = Estimator(target="mean", population=Fraction(records))
    agree = all(
        _sensitivity([Units(_bounds(w, w), _bounds(0, spread)) for w in weights], _SAMPLE_LEVEL, "value", 4, mean)
        == Fraction(max(weights) * spread, records)
        for weights, _ in _FRAMES
        for spread in (1, 7)
    )
    return formula if agree else "another formula"


def equal_weights_change_nothing(records: int, sampled: int) -> bool:
    """Whether with equal weights N/n the weighted mean has the sensitivity R/n of the plain one, here R = 5."""
    weight = Fraction(records, sampled)
    units = [Units(_bounds(weight, weight), _bounds(0, 5))]
    mean = Estimator(target="mean", population=Fraction(records))
    return _sensitivity(units, _SAMPLE_LEVEL, "value", sampled, mean) == Fraction(5, sampled)


# -- imputation ----------------------------------------------------------------------------------------------


def imputation_grows_linearly(observed: int) -> bool:
    """Whether the sensitivity of a sum of bits grows by equal steps with the number of imputed values.

    They are all imputed by one donor, or all by the mean of what was observed.
    """
    graph = DatabaseGraph.hamming((0, 1), observed)
    data = np.array(graph.datasets)

    for imputed in (data[:, 0], data.mean(axis=1)):
        steps = np.diff([sensitivity_of(graph, data.sum(axis=1) + many * imputed) for many in range(6)])
        if not (np.allclose(steps, steps[0]) and steps[0] > 0):
            return False
    return True


def private_imputation_loss(formula: str, model: float, analysis: float) -> str:
    """The loss of a private count as imputation model and a private count of the imputed records, both seen.

    Three records say 0 or 1 or nothing. Given the model's noisy count, each record that says nothing gets a value from
    this count alone; so the imputed data differ in one record where the data do.
    """
    records = 3
    graph = DatabaseGraph.hamming(("0", "1", "?"), records)
    first, second = geometric(records, model), geometric(records, analysis)
    rows = []
    for data in graph.datasets:
        answers = list(data)  # type: ignore[call-overload]
        law = first[answers.count("1")]
        rows.append(
            np.concatenate(
                [
                    law[seen] * second[answers.count("1") + (seen > 1) * answers.count("?")]
                    for seen in range(records + 1)
                ]
            )
        )
    loss = privacy_loss(np.stack(rows), graph).ratio
    return formula if math.isclose(loss, model + analysis, rel_tol=_CLOSE) else "another loss"


# -- Table 8.1 -----------------------------------------------------------------------------------------------


def among_the_five_safes(parameter: str) -> str:
    """What a parameter of contextual integrity is among the five safes, as releases print it."""
    return {one.title: one.meaning for one in parameters()}[parameter]


# -- helpers -------------------------------------------------------------------------------------------------

_FRAMES: Sequence[tuple[list[int], list[int]]] = (
    ([2, 4, 5, 10], [1, 3, 2, 1]),
    ([1, 10], [1, 1]),
    ([3, 3, 3], [-4, 0, 9]),
    ([1, 2, 7, 7], [-5, 3, 2, -1]),
)
"""Weights and values of the frames at which formulas are compared."""


def _where_fixed(weights: Sequence[int], values: Sequence[int], n: int) -> int:
    products = [w * x for w, x in zip(weights, values, strict=True)]
    return abs(max(products) - min(products))


def _where_free(weights: Sequence[int], values: Sequence[int], n: int) -> int:
    others = (n - 1) * (max(weights) - min(weights)) * max(abs(max(values)), abs(min(values)))
    return _where_fixed(weights, values, n) + others


def _sensitivity(
    units: Sequence[Units],
    at: Setting,
    change: Change,
    n: int = 4,
    estimator: Estimator | None = None,
    strata: bool = False,
) -> Fraction:
    """The sensitivity of an estimate from n records, all of which respond."""
    stated = SurveyFacts(tuple(units), fewest=n, most=n, everybody_responds=True, stratum_sizes_fixed=strata)
    return sensitivity(estimator or Estimator(), stated, at, change).value


def _bounds(low: float | Fraction, high: float | Fraction) -> Bounds:
    return Bounds(Fraction(low), Fraction(high))


@cache
def _section_6_5_2() -> OneSample:
    return on_one_sample(simple_random(1, 10), [1, 2])


@cache
def _attacked() -> Vanishing:
    """Two of three records are sampled and counted with geometric noise, epsilon 1; ones are unlikely."""
    return vanishing(_counted(3, 2, 1.0), _unlikely_ones(3), 0)


def _counted(frame: int, sample: int, epsilon: float, delta: float = 0) -> SampledMechanism:
    """A count with geometric noise of a simple random sample; with probability ``delta`` the count itself is told."""
    names = tuple("0" * (sample - ones) + "1" * ones for ones in range(sample + 1))
    rows, outputs = geometric(sample, epsilon), [str(count) for count in range(sample + 1)]
    if delta:
        rows = np.hstack([(1 - delta) * rows, delta * np.eye(sample + 1)])
        outputs += [f"told {count}" for count in range(sample + 1)]
    samples = list(itertools.combinations(range(frame), sample))
    design = {one: Fraction(1, len(samples)) for one in samples}
    return SampledMechanism(("0", "1"), frame, design, FiniteMechanism(names, tuple(outputs), rows))


def _unlikely_ones(records: int) -> Mapping[tuple[str, ...], float]:
    """The beliefs of somebody for whom each record is a one in one case of a thousand, whatever the others are."""
    return {
        bits: math.prod(1e-3 if bit == "1" else 1 - 1e-3 for bit in bits)
        for bits in itertools.product("01", repeat=records)
    }
