"""Guarantees about surveys, computed with ``stirred.survey``: settings, sampling, weights, attackers; and Table 8.1.

Where the source prints a formula, our sensitivity is compared with that formula at several frames, and the row shows
the formula if they agree everywhere. Where it states what sampling does, samples of very small frames are listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from stirred.lab.sampling.enumerated import SampledMechanism, Vanishing, knows_the_sample, vanishing
from stirred.limits import DatabaseGraph, privacy_loss
from stirred.releases.context import PARAMETERS
from stirred.reproduce.computations import computation
from stirred.reproduce.surveys import geometric
from stirred.semantics.pictures.lines_and_bars import Line, Picture
from stirred.spec.order.finite_mechanisms import FiniteMechanism
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

_CLOSE = 1e-9
_SAMPLE_LEVEL = setting("target sample", "frame")


# -- settings ------------------------------------------------------------------------------------------------


@computation
def settings_of_level(level: str) -> int:
    """How many settings start at a stage, or at any."""
    return sum(level in ("any", one.level) for one in SETTINGS)


@computation
def design_weights(setting: str) -> str:
    """Table 6.2, decided for every setting with this last stage held fixed, where a record may change the design."""
    held = {"target-sample invariance": "target sample", "frame invariance": "frame"}
    through = held.get(setting, "population" if setting == "population invariance" else "")
    facts = SurveyFacts((Units(_bounds(1, 10), _bounds(0, 1)),), fewest=5, most=5)
    (fixed,) = {weights_fixed(facts, one)[0] for one in SETTINGS if one.fixed_through == through}
    return FIXED if fixed else CONSIDERED


@computation
def amplification_at_level(level: str) -> str:
    """Table 6.3, the same in all settings that start at a stage."""
    (printed,) = {printed_amplification(one) for one in SETTINGS if one.level == level}
    return printed


# -- amplification -------------------------------------------------------------------------------------------


@computation
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


@computation
def amplification_is_proportional(epsilon: str, rate: str) -> bool:
    """Whether epsilon' is within a hundredth of n/N epsilon, and below epsilon."""
    share = Fraction(rate)
    after = amplify(simple_random(share.numerator, share.denominator), float(epsilon)).epsilon
    return math.isclose(after, share * Fraction(epsilon), rel_tol=0.01) and after < float(epsilon)


@computation
def loss_of_one(number: int) -> float:
    """The loss of one of the two mechanisms of section 6.5.2, one record in ten sampled."""
    return _section_6_5_2().parts[number - 1].epsilon


@computation
def losses_added_up() -> float:
    """The sum of their losses, which is not the loss of both on one sample."""
    return _section_6_5_2().naive


@computation
def loss_on_one_sample() -> float:
    """The loss of both on one sample."""
    return _section_6_5_2().total.epsilon


@computation
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


@computation
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


@computation
def sampling_is_no_help_against(attacker: str) -> bool:
    """Whether an attacker's beliefs move by nearly the loss on the sample, which is more than the amplified one."""
    found = _attacked()
    moved = found.largest[attacker]
    hidden = found.largest["frame record"] <= found.frame_loss + _CLOSE
    return hidden and found.frame_loss < 0.99 * found.sample_loss < moved <= found.sample_loss + _CLOSE


# -- weights -------------------------------------------------------------------------------------------------


@computation
def weighted_count_sensitivity(formula: str) -> str:
    """The sensitivity of a weighted count, weights fixed, in both readings of a change."""
    bits = _bounds(0, 1)
    agree = all(
        _sensitivity([Units(_bounds(w, w), bits) for w in weights], _SAMPLE_LEVEL, change) == max(weights)
        for weights, _ in _FRAMES
        for change in CHANGES
    )
    return formula if agree else "another formula"


@computation
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


@computation
def strata_lower_sensitivity() -> bool:
    """Whether the sensitivity is smaller with strata than without, the frame held fixed: x = 0, 1 and 10, 12, w = 2."""
    units = Units.listed([2, 2, 2, 2], [0, 1, 10, 12], ["one", "one", "other", "other"])
    with_strata = _sensitivity(units, _SAMPLE_LEVEL, "unit", 2, strata=True)
    return with_strata < _sensitivity(units, _SAMPLE_LEVEL, "unit", 2)


@computation
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


@computation
def equal_weights_change_nothing(records: int, sampled: int) -> bool:
    """Whether with equal weights N/n the weighted mean has the sensitivity R/n of the plain one, here R = 5."""
    weight = Fraction(records, sampled)
    units = [Units(_bounds(weight, weight), _bounds(0, 5))]
    mean = Estimator(target="mean", population=Fraction(records))
    return _sensitivity(units, _SAMPLE_LEVEL, "value", sampled, mean) == Fraction(5, sampled)


# -- imputation ----------------------------------------------------------------------------------------------


@computation
def imputation_grows_linearly(observed: int) -> bool:
    """Whether the sensitivity of a sum of bits grows by equal steps with the number of imputed values.

    They are all imputed by one donor, or all by the mean of what was observed.
    """
    graph = DatabaseGraph.hamming((0, 1), observed)
    data = np.array(graph.datasets)

    def largest(sums: object) -> float:
        found = np.asarray(sums, dtype=float)
        return float(np.max(np.abs(found[:, None] - found[None, :])[graph.distances == 1]))

    for imputed in (data[:, 0], data.mean(axis=1)):
        steps = np.diff([largest(data.sum(axis=1) + many * imputed) for many in range(6)])
        if not (np.allclose(steps, steps[0]) and steps[0] > 0):
            return False
    return True


@computation
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


@computation
def among_the_five_safes(parameter: str) -> str:
    """What a parameter of contextual integrity is among the five safes, as releases print it."""
    return {one.title: one.meaning for one in PARAMETERS}[parameter]


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


def _unlikely_ones(records: int, chance: float = 1e-3) -> Mapping[tuple[str, ...], float]:
    """The beliefs of somebody for whom each record is a one with this probability, whatever the others are."""
    return {
        bits: math.prod(chance if bit == "1" else 1 - chance for bit in bits)
        for bits in itertools.product("01", repeat=records)
    }
