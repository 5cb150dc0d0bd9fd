"""What sampling buys: the privacy loss, for records of a frame, of a mechanism that is run on a secret sample of it.

The theorem behind every formula here. Let a record of the frame be in the sample with probability p, and let samples
with it and without it be paired so that they differ in k records. Given that the record is in the sample the output
has law m1 (or m1', where the record has another value), else m0. If the mechanism is epsilon-DP on the sample, then
m1 <= e^epsilon m1', and m1 <= e^(k epsilon) m0 along the pairing. On the frame the laws are (1-p) m0 + p m1 and
(1-p) m0 + p m1', and their ratio is largest at m1 = e^(k epsilon) m0 and m1' = e^((k-1) epsilon) m0:

    epsilon' = log (1 - p + p e^(k epsilon)) - log (1 - p + p e^((k-1) epsilon))

For k = 1 this is Theorem 6.4.1, log(1 + p (e^epsilon - 1)), and delta' = p delta (Balle, Barthe and Gaboardi 2018). For
k > 1, as in clusters, a count with geometric noise attains it; with a delta only (epsilon, p delta) is claimed, which
holds for any sampling by the convexity of the hockey-stick divergence.

With replacement, change the draws from the old to the new frame one after the other. Each step changes the law of one
draw, which takes the record with probability p, so it costs log(1 + p (e^epsilon - 1)) and p delta; m steps add up as
for groups, to epsilon' = m log(1 + p (e^epsilon - 1)) and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).

Keep in mind: the result is about **records of the frame**. A record that is known to be in the sample has the loss of
the mechanism on the sample (:mod:`stirred.survey.attackers`), and mechanisms that share a sample must be composed
*before* they are amplified (:func:`on_one_sample`). Results are floats, to the nearest; what is shown is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred._shown import brief
from stirred.loss.argument_checks import Number, as_floats, finite, probability
from stirred.spec.exact import significant
from stirred.survey.selections import Selection, UnitClass

Array = NDArray[np.float64]

Relation = Literal["independent", "same sample", "rotation", "overlap control", "shared frame"]

_DEPENDENT = {
    "same sample": (
        "one sample",
        "a record that is in the sample of one is in that of the others too, so they have to be composed first and "
        "amplified then (section 6.5.2); on_one_sample does that",
    ),
    "rotation": (
        "rotating samples",
        "who was in one wave is likelier, or certain, to be in the next, and no theorem is known for seeds that depend "
        "on each other (section 6.5.2)",
    ),
    "overlap control": (
        "samples of controlled overlap",
        "who was selected for one survey is less likely selected for the other, and no theorem is known for seeds that "
        "depend on each other (section 6.5.2)",
    ),
    "shared frame": (
        "samples from frames that were made together",
        "whether a unit is in one frame tells whether it is in the other, and no theorem is known for seeds that "
        "depend on each other (section 6.5.2)",
    ),
}
RELATIONS = ("independent", *_DEPENDENT)


@dataclass(frozen=True)
class Amplified:
    """A guarantee on the sample, and what it is for the records of the frame."""

    selection: Selection
    sample_epsilon: float
    sample_delta: float
    epsilon: float
    delta: float

    def __str__(self) -> str:
        # What is given is rounded down and what follows up, so that the sentence is true as it stands.
        def said(epsilon: float, delta: float, down: bool) -> str:
            shown = f"epsilon {significant(epsilon, 6, down)}"
            return f"{shown}, delta {significant(delta, 6, down)}" if delta else shown

        return (
            f"{said(self.sample_epsilon, self.sample_delta, True)} on the sample is "
            f"{said(self.epsilon, self.delta, False)} on the "
            f"frame, {self.selection.neighbours} one record ({self.selection.source})"
        )


# -- one mechanism -------------------------------------------------------------------------------------------


@says_what_it_takes
def amplify(selection: Selection, epsilon: Number, delta: Number = 0) -> Amplified:
    """The guarantee, for the records of the frame, of a mechanism that is (epsilon, delta)-DP on the sample.

    >>> from stirred.survey.selections import simple_random
    >>> print(amplify(simple_random(10, 100), 1))
    epsilon 1 on the sample is epsilon 0.158566 on the frame, replace one record (Theorem 6.4.1; Balle, Barthe and \
Gaboardi 2018, Theorem 9)
    """
    e, d = finite("epsilon", epsilon), probability("delta", delta)
    _require_theorem(selection)
    if selection.draws:
        return Amplified(selection, e, d, *_of_draws(selection, e, d))
    if d and not selection.changes_one:
        return Amplified(selection, e, d, e, float(selection.largest) * d)
    largest = max(unit_epsilon(one, e) for one in selection.classes)
    return Amplified(selection, e, d, largest, float(selection.largest) * d)


@says_what_it_takes
def before_sampling(selection: Selection, epsilon: Number, delta: Number = 0) -> Amplified:
    """The largest guarantee on the sample that is (epsilon, delta) on the frame: the inverse of :func:`amplify`.

    Amplified, the epsilon found gives at most the one asked for, also as floats.

    >>> from stirred.survey.selections import simple_random
    >>> round(before_sampling(simple_random(10, 100), 1).sample_epsilon, 6)
    2.900477
    """
    e, d = finite("epsilon", epsilon), probability("delta", delta)
    _require_theorem(selection)
    if d and not selection.changes_one:
        return amplify(selection, e, min(1.0, d / float(selection.largest)))
    times = max(1, selection.draws)
    found = min(_class_before(one, e / times) for one in selection.classes)
    while found > 0 and amplify(selection, found).epsilon > e:
        found = math.nextafter(found * (1 - 2**-52), 0)
    if selection.draws:
        after = amplify(selection, found).epsilon
        share = math.expm1(found) / math.expm1(after) if after else 1 / (times * float(selection.largest))
        return amplify(selection, found, min(1.0, d * share))
    return amplify(selection, found, min(1.0, d / float(selection.largest)))


# -- several mechanisms --------------------------------------------------------------------------------------


@brief
@dataclass(frozen=True)
class OneSample:
    """Several mechanisms on one sample: what they lose together, and the sum that is not it.

    ``parts`` are the mechanisms each by itself, ``naive`` the sum of their amplified losses (too small), and ``total``
    the amplified loss of all of them together.
    """

    parts: tuple[Amplified, ...]
    naive: float
    total: Amplified

    @property
    def gap(self) -> float:
        """By how much the sum is too small: never below 0."""
        return max(0.0, self.total.epsilon - self.naive)


@says_what_it_takes
def on_one_sample(selection: Selection, epsilons: Sequence[Number], deltas: Sequence[Number] = ()) -> OneSample:
    """The loss of several mechanisms that are run on the same sample: first composed, then amplified.

    >>> from stirred.survey.selections import simple_random
    >>> both = on_one_sample(simple_random(10, 100), [1, 2])  # section 6.5.2
    >>> [round(one.epsilon, 2) for one in both.parts], round(both.naive, 2), round(both.total.epsilon, 2)
    ([0.16, 0.49], 0.65, 1.07)
    """
    losses = [finite("epsilon", one) for one in epsilons]
    chances = [probability("delta", one) for one in deltas] or [0.0] * len(losses)
    if not losses:
        raise errors.nothing_to_compose("mechanism")
    if len(chances) != len(losses):
        raise errors.parameter_out_of_range(
            "The number of deltas", len(chances), f"{len(losses)}, one for each epsilon"
        )
    parts = tuple(amplify(selection, e, d) for e, d in zip(losses, chances, strict=True))
    total = amplify(selection, math.fsum(losses), min(1.0, math.fsum(chances)))
    return OneSample(parts, math.fsum(one.epsilon for one in parts), total)


@says_what_it_takes
def on_several_samples(parts: Sequence[Amplified], relation: Relation) -> tuple[float, float]:
    """(epsilon, delta) of mechanisms on samples of their own: the sums, where the samples are independent.

    ``relation`` must be said. Samples that depend on each other (rotation, overlap control, frames made together) are
    refused: there is no theorem. The sum of the losses *on the samples* always holds.
    """
    if relation not in RELATIONS:
        raise errors.unknown_choice("relation between samples", relation, RELATIONS)
    if relation != "independent":
        raise errors.samples_depend(*_DEPENDENT[relation])
    if not parts:
        raise errors.nothing_to_compose("mechanism")
    if len({one.selection.neighbours for one in parts}) > 1:
        raise errors.samples_depend(
            "samples whose guarantees are about different neighbours",
            "one replaces a record, the other adds or removes",
        )
    return math.fsum(one.epsilon for one in parts), min(1.0, math.fsum(one.delta for one in parts))


@brief
@dataclass(frozen=True, eq=False)
class SharedSampleCurves:
    """Figure 6.1: two mechanisms, each of loss epsilon, on one sample.

    ``naive`` is the sum of the amplified losses (red in the figure) and ``total`` the loss of both (blue). ``printed``
    is the formula in the caption, log(1 + f (e^epsilon - 1)), which lacks a factor of 2 in the exponent: it is the loss
    of one mechanism only.
    """

    epsilons: Array
    naive: Array
    printed: Array
    total: Array


@says_what_it_takes
def shared_sample_curves(selection: Selection, epsilons: ArrayLike) -> SharedSampleCurves:
    """The curves of Figure 6.1 at these epsilons (the figure has a tenth of the records sampled)."""
    asked = np.atleast_1d(as_floats("The epsilons", epsilons, "numbers that are at least 0"))
    both = [on_one_sample(selection, [float(one)] * 2) for one in asked]
    return SharedSampleCurves(
        asked,
        np.array([one.naive for one in both]),
        np.array([one.parts[0].epsilon for one in both]),
        np.array([one.total.epsilon for one in both]),
    )


# -- formulas ------------------------------------------------------------------------------------------------


def _require_theorem(selection: Selection) -> None:
    if selection.reason:
        raise errors.no_amplification(selection.design, selection.reason)


def unit_epsilon(units: UnitClass, epsilon: float) -> float:
    """epsilon' for units of one class, by the formula of the module; in forms that lose no digits, small or large."""
    p, k = float(units.probability), units.changed
    if p == 1:
        return epsilon
    if epsilon <= 1:
        return -math.log1p(p * math.expm1(-epsilon) / ((1 - p) * math.exp(-k * epsilon) + p))
    above, below = (math.log(p + (1 - p) * math.exp(-times * epsilon)) for times in (k, k - 1))
    return epsilon + above - below


def _of_draws(selection: Selection, epsilon: float, delta: float) -> tuple[float, float]:
    after = selection.draws * unit_epsilon(selection.classes[0], epsilon)
    if delta == 0:
        return after, 0.0
    if epsilon == 0:
        return 0.0, min(1.0, selection.draws * float(selection.largest) * delta)
    try:
        return after, min(1.0, delta * math.expm1(after) / math.expm1(epsilon))
    except OverflowError:
        return after, 1.0


def _class_before(units: UnitClass, epsilon: float) -> float:
    """The inverse of :func:`unit_epsilon`."""
    p, k = float(units.probability), units.changed
    if epsilon == 0 or p == 1:
        return epsilon
    if k == 1:
        return math.log1p(math.expm1(epsilon) / p) if epsilon < 30 else epsilon + math.log((1 - math.exp(-epsilon)) / p)
    low, high = epsilon, epsilon + math.log(1 / p)  # the formula lies between log(1 + p (e^x - 1)) and x
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if unit_epsilon(units, middle) <= epsilon else (low, middle)
    return low
