"""What sampling gains in privacy loss for records of a frame, and whether it may be claimed at all.

The formulas assume that a random draw with known probabilities is part of the mechanism and stays secret. Sections
6.4.2 and 6.5.1 say where that fails: mechanisms that start at the sample, response that nobody controls, frames of
unknown coverage, attackers who know who was interviewed, and guarantees about records of the sample. One such reason is
enough for no. The invariant: **what is not stated is not taken for granted**; a fact left unknown counts against.

:func:`may_claim` is where this is decided. :func:`claimable` asks it for a setting whose survey has every fact in its
favour: what is not claimable then is claimable for no survey.

The theorem behind every formula for a mechanism that is run on a secret sample of a frame: let a record of the frame be
in the sample with probability p, and let samples with it and without it be paired so that they differ in k records.
Given that the record is in the sample the output has law m1 (or m1', where the record has another value), else m0. If
the mechanism is epsilon-DP on the sample, then m1 <= e^epsilon m1', and m1 <= e^(k epsilon) m0 along the pairing. On
the frame the laws are (1-p) m0 + p m1 and (1-p) m0 + p m1', and their ratio is largest at m1 = e^(k epsilon) m0 and m1'
= e^((k-1) epsilon) m0:

    epsilon' = log (1 - p + p e^(k epsilon)) - log (1 - p + p e^((k-1) epsilon))

For k = 1 this is Theorem 6.4.1, log(1 + p (e^epsilon - 1)), and delta' = p delta (Balle, Barthe and Gaboardi 2018). For
k > 1, as in clusters, a count with geometric noise attains it; with a delta only (epsilon, p delta) is claimed, which
holds for any sampling by the convexity of the hockey-stick divergence.

With replacement, change the draws from the old to the new frame one after the other. Each step changes the law of one
draw, which takes the record with probability p, so it costs log(1 + p (e^epsilon - 1)) and p delta; m steps add up as
for groups, to epsilon' = m log(1 + p (e^epsilon - 1)) and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).

Keep in mind: the result is about **records of the frame**. A record that is known to be in the sample has the loss of
the mechanism on the sample (section 6.5.1), and mechanisms that share a sample must be
composed *before* they are amplified (:func:`on_one_sample`). Results are floats, to the nearest; what is shown is
rounded up.

In Rényi divergences a mechanism on the sample is given by its curve, a function from orders to divergences (order * rho
for rho-zCDP). With the laws m0, m1, m1' above, four bounds on exp((alpha - 1) D_alpha) are used:

* any sampling with fixed probabilities: 1 - p + p e^((alpha-1) D(alpha)), by joint convexity;
* simple random sampling, and whatever else changes one record: Wang, Balle and Kasiviswanathan 2019, Theorem 9;
* Poisson sampling, record removed: the binomial sum of (1-p)^(alpha-j) p^j e^((j-1) D(j)), which expands
  ((1-p) m0 + p m1)^alpha, and is exact for Gaussian noise (Mironov, Talwar and Zhang 2019, section 3.3);
* Poisson sampling, record added: the same sum with its terms from j = 3 on times 3 (Zhu and Wang 2019, Theorem 5).

The last three are for whole orders; between them (alpha - 1) D_alpha is convex, so that chords bound it (Wang et al.,
Corollary 10). Keep in mind: **zCDP is not amplified**. A record that is in the sample with probability p > 0 leaves, at
high orders, D_alpha >= D_alpha(m1, m0) - alpha/(alpha-1) log(1/p), and of D_alpha / alpha the limit is that without
sampling: rho' = rho. At each single order there is a gain, and the curve is what can be converted to (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.loss.argument_checks import Number, as_floats, finite, probability, renyi_order
from stirred.loss.conversions import renyi_to_approximate, zcdp_to_approximate
from stirred.spec.exact import significant
from stirred.survey.design.selections import Selection, UnitClass, simple_random
from stirred.survey.plan.settings import TABLE_6_3, Setting

Step = Literal["frame construction", "sampling", "response"]
STEPS = ("frame construction", "sampling", "response")

Start = Literal["population", "frame", "target sample", "responding sample"]
STARTS = ("population", "frame", "target sample", "responding sample")

Response = Literal["complete", "drawn by the custodian", "uncontrolled"]
RESPONSES = ("complete", "drawn by the custodian", "uncontrolled")

_PRINTED: dict[str, Step] = {"FR": "frame construction", "S": "sampling", "NR": "response"}
_INSIDE = {start: frozenset(_PRINTED[source] for source in sources) for start, sources in TABLE_6_3.items()}
"""Table 6.3: the steps that are part of a mechanism by where it starts."""


@dataclass(frozen=True)
class SamplingFacts:
    """What decides whether amplification may be claimed.

    ``starts`` is the dataset that the mechanism takes as its input. ``selection`` is the design of the step that is
    asked about, None if it has not been stated. ``membership_secret`` says that nobody outside can learn who is in the
    sample: not from neighbours, from the respondents themselves, nor from a published file. ``protects`` says whose
    record the claim is about. ``every_output_counted``: all that is published from the sample is in the loss.
    ``population_changes_one``, for mechanisms that start at the population: whatever happens while the frame is built,
    changing one record of the population changes at most one record of the frame.
    """

    starts: Start
    selection: Selection | None = None
    response: Response = "uncontrolled"
    membership_secret: bool = False
    protects: Literal["frame record", "sample record"] = "frame record"
    every_output_counted: bool = False
    population_changes_one: bool = False

    def __post_init__(self) -> None:
        for what, found, known in (
            ("start", self.starts, STARTS),
            ("kind of response", self.response, RESPONSES),
            ("record", self.protects, ("frame record", "sample record")),
        ):
            if found not in known:
                raise errors.unknown_choice(what, found, known)


@dataclass(frozen=True)
class Claim:
    """Whether amplification by a step may be claimed; ``reasons`` against it, or what it rests on."""

    step: Step
    claimable: bool
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.claimable

    def __str__(self) -> str:
        said = "may be claimed" if self.claimable else "may not be claimed"
        joined = "; ".join(self.reasons)
        return f"Amplification by {self.step} {said}: {joined}."


@refuses_wrong_arguments
def may_claim(facts: SamplingFacts, step: Step = "sampling") -> Claim:
    """Whether amplification by a step of the survey may be claimed, with every reason against it.

    >>> facts = SamplingFacts("responding sample", membership_secret=True, every_output_counted=True)
    >>> print(may_claim(facts, "response"))
    Amplification by response may not be claimed: the mechanism starts at the responding sample, so that response is \
not part of it (Table 6.3); response probabilities are unknown and not under control, and an error in modelling them \
makes the claim false (section 6.4.2).
    """
    if step not in STEPS:
        raise errors.unknown_choice("step", step, STEPS)
    against = tuple(_against(facts, step))
    if against:
        return Claim(step, False, against)
    assert facts.selection is not None
    return Claim(step, True, (str(facts.selection), *facts.selection.conditions))


def claimable(setting: Setting) -> tuple[bool, str]:
    """Whether a gain from chance inside the mechanism may be claimed in this setting at all, and why (Table 6.3).

    Only sampling is a step whose chances are known, so only it is asked about, with every fact in its favour. Whether
    a given survey and its design gain anything is for :func:`may_claim` to say.
    """
    inside = _INSIDE[setting.level]
    if may_claim(_favourable(setting.level)):
        others = "nonresponse" + (" and building the frame" if "frame construction" in inside else "")
        return True, (
            f"From sampling, if the design amplifies; never from {others}, whose chances are not known. Lost against "
            "anyone who knows that a unit is in the sample, or who asks about any sampled record (section 6.5.1)."
        )
    if inside:
        return False, (
            "Sampling is over before the mechanism starts. Nonresponse could amplify in theory, but its chances are "
            "not known, and an error in their model would make the claim false (section 6.4.2)."
        )
    return False, "No step of the mechanism selects records: sampling and nonresponse are over before it starts."


def _favourable(start: str) -> SamplingFacts:
    """A survey with everything in favour of a claim but where its mechanism starts."""
    return SamplingFacts(
        start,  # type: ignore[arg-type]
        simple_random(1, 2),
        response="complete",
        membership_secret=True,
        every_output_counted=True,
        population_changes_one=True,
    )


def _against(facts: SamplingFacts, step: Step) -> list[str]:
    found = []
    if step not in _INSIDE[facts.starts]:
        found.append(f"the mechanism starts at the {facts.starts}, so that {step} is not part of it (Table 6.3)")
    if step == "frame construction":
        found.append(
            "the probabilities of being in the frame are unknown, and with coverage well above 90% there would be "
            "little to gain (section 6.4.2)"
        )
    elif facts.starts == "population" and not facts.population_changes_one:
        found.append(
            "the mechanism starts at the population, so that making the frame is part of it, and nobody knows how many "
            "records of the frame change with one of the population (section 6.6 advises against this level)"
        )
    if facts.response == "uncontrolled" and step != "frame construction":
        found.append(
            "response probabilities are unknown and not under control, and an error in modelling them makes the claim "
            "false (section 6.4.2)"
            if step == "response"
            else "who responds is not under control: response is then part of the mechanism after sampling, and nobody "
            "knows its loss on the sample (section 6.4.2)"
        )
    if step == "response" and facts.response == "complete":
        found.append("everyone responds, so that there is nothing to amplify by")
    if step != "frame construction" and step in _INSIDE[facts.starts]:
        if facts.selection is None:
            found.append("the design, with its probabilities, has not been stated")
        elif facts.selection.reason:
            found.append(facts.selection.reason)
    if not facts.membership_secret:
        found.append(
            "an attacker may know that someone is in the sample (the nosy neighbour), and for her the loss is that on "
            "the sample (section 6.5.1)"
        )
    if facts.protects == "sample record":
        found.append(
            "the claim is about a record of the sample (the journalist), and for it the loss is that on the sample "
            "(section 6.5.1)"
        )
    if not facts.every_output_counted:
        found.append(
            "not everything that is published from this sample is counted: outputs of one sample have to be composed "
            "before they are amplified (section 6.5.2)"
        )
    return found


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


@refuses_wrong_arguments
def amplify(selection: Selection, epsilon: Number, delta: Number = 0) -> Amplified:
    """The guarantee, for the records of the frame, of a mechanism that is (epsilon, delta)-DP on the sample.

    >>> from stirred.survey.design.selections import simple_random
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


@refuses_wrong_arguments
def before_sampling(selection: Selection, epsilon: Number, delta: Number = 0) -> Amplified:
    """The largest guarantee on the sample that is (epsilon, delta) on the frame: the inverse of :func:`amplify`.

    Amplified, the epsilon found gives at most the one asked for, also as floats.

    >>> from stirred.survey.design.selections import simple_random
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


@refuses_wrong_arguments
def on_one_sample(selection: Selection, epsilons: Sequence[Number], deltas: Sequence[Number] = ()) -> OneSample:
    """The loss of several mechanisms that are run on the same sample: first composed, then amplified.

    >>> from stirred.survey.design.selections import simple_random
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


@refuses_wrong_arguments
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


@refuses_wrong_arguments
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


RenyiCurve = Callable[[float], float]
"""From an order above 1, or infinity, to the divergence that the mechanism has at most on neighbouring samples."""

ORDERS = (*(1 + k / 10 for k in range(1, 10)), *range(2, 64), *range(64, 513, 16))
"""Orders that are tried for a conversion; the best of them counts."""


@refuses_wrong_arguments
def amplify_renyi(selection: Selection, curve: RenyiCurve, order: Number) -> float:
    """The Rényi divergence of an order, for the records of the frame, of a mechanism with this curve on the sample.

    >>> from stirred.survey.design.selections import simple_random
    >>> amplify_renyi(simple_random(1, 100), lambda order: order * 0.1, 2) < 0.01  # 0.2 on the sample
    True
    """
    alpha = renyi_order(order)
    if selection.reason:
        raise errors.no_amplification(selection.design, selection.reason)
    if selection.draws:
        raise errors.no_amplification(
            selection.design, "bounds in Renyi divergences are known for draws with replacement, but not built here"
        )
    if alpha == 1 or math.isinf(alpha):
        divergence = finite("The divergence", curve(alpha))
        if alpha == 1:
            return float(selection.largest) * divergence  # convexity
        return max(unit_epsilon(one, divergence) for one in selection.classes)
    return max(_of_class(selection, one, curve, alpha) for one in selection.classes)


@refuses_wrong_arguments
def sampled_gaussian(selection: Selection, variance: Number, order: int) -> float:
    """The Rényi divergence of a whole order of Gaussian noise on a count or sum of a Poisson sample: exact.

    ``variance`` is that of the noise where one record changes the answer by at most 1. Mironov, Talwar and Zhang 2019,
    section 3.3: of the two directions, removing a record is the worse.
    """
    v, alpha = finite("The variance", variance), renyi_order(order)
    if selection.neighbours != "add or remove" or v == 0 or alpha != int(alpha) or alpha < 2:
        raise errors.parameter_out_of_range(
            "The question", "about another design, variance 0, or an order that is not whole",
            "about Poisson sampling, a variance above 0 and a whole order from 2 on",
        )  # fmt: skip
    return max(_log_binomial(one, lambda k: k / (2 * v), int(alpha), 1) / (alpha - 1) for one in selection.classes)


@refuses_wrong_arguments
def amplify_zcdp(selection: Selection, rho: Number, delta: Number) -> float:
    """Epsilon at ``delta``, for the records of the frame, of a mechanism that is rho-zCDP on the sample.

    The result is (epsilon, delta) and not a rho: sampling leaves rho as it is. The smaller of two ways: amplified at
    single orders and then converted; or converted at delta/p and then amplified.
    """
    r, d = finite("rho", rho), probability("delta", delta)
    if d == 0:
        raise errors.no_amplification(
            selection.design, "rho-zCDP promises nothing at delta 0, on the sample or the frame"
        )

    def curve(order: float) -> float:
        return r * order

    if selection.reason or selection.draws:
        amplify_renyi(selection, curve, 2)  # refuses
    share = min(1.0, d / float(selection.largest))
    converted = amplify(selection, zcdp_to_approximate(r, share, "tight"), share).epsilon
    orders = (renyi_to_approximate(order, amplify_renyi(selection, curve, order), d) for order in ORDERS)
    return min(converted, *orders)


# -- bounds --------------------------------------------------------------------------------------------------


def _of_class(selection: Selection, units: UnitClass, curve: RenyiCurve, order: float) -> float:
    p = float(units.probability)
    if p == 1:
        return curve(order)
    convex = _log_mixed(p, (order - 1) * curve(order))
    if units.changed > 1:
        return convex / (order - 1)
    whole = _poisson if selection.neighbours == "add or remove" else _without_replacement
    low = math.floor(order)
    if low == order:
        return min(convex, whole(units, curve, low)) / (order - 1)
    share = order - low
    below = min(_log_mixed(p, (low - 1) * curve(low)), whole(units, curve, low)) if low > 1 else 0.0
    above = min(_log_mixed(p, low * curve(low + 1)), whole(units, curve, low + 1))
    return min(convex, (1 - share) * below + share * above) / (order - 1)


def _poisson(units: UnitClass, curve: RenyiCurve, order: int) -> float:
    """(alpha - 1) D_alpha for the worse of a record removed (exact sum) and added (Zhu and Wang, or convexity)."""
    removed = _log_binomial(units, curve, order, 1)
    added = min(_log_binomial(units, curve, order, 3), _log_mixed(float(units.probability), (order - 1) * curve(order)))
    return max(removed, added)


def _log_binomial(units: UnitClass, curve: RenyiCurve, order: int, factor: int) -> float:
    """log of the sum over j of C(alpha, j) (1-p)^(alpha-j) p^j e^((j-1) D(j)), terms from j = 3 on times ``factor``.

    The coefficients sum to 1, so what exceeds 1 is a sum of terms with e^((j-1) D(j)) - 1, which keeps its digits.
    """
    p = float(units.probability)
    if p == 1:
        return (order - 1) * curve(order)
    logs = []
    for j in range(2, order + 1):
        above_one = _log_minus_one((j - 1) * curve(j) + (math.log(factor) if j > 2 else 0.0))
        logs.append(math.log(math.comb(order, j)) + (order - j) * math.log1p(-p) + j * math.log(p) + above_one)
    return _log_one_plus(logs)


def _without_replacement(units: UnitClass, curve: RenyiCurve, order: int) -> float:
    """(alpha - 1) times Theorem 9 of Wang, Balle and Kasiviswanathan 2019."""
    log_p, log_pure = math.log(float(units.probability)), _log_minus_one(curve(math.inf))

    def term(j: int, log_size: float) -> float:
        return j * log_p + math.log(math.comb(order, j)) + log_size

    def capped(j: int) -> float:
        """log of e^((j-1) D(j)) min(2, (e^D(inf) - 1)^j)."""
        return (j - 1) * curve(j) + min(math.log(2), j * log_pure)

    second = min(math.log(4) + _log_minus_one(curve(2)), capped(2))
    return _log_one_plus([term(2, second), *(term(j, capped(j)) for j in range(3, order + 1))])


def _log_mixed(p: float, exponent: float) -> float:
    """log(1 - p + p e^exponent)."""
    if exponent < 30:
        return math.log1p(p * math.expm1(exponent))
    return exponent + math.log(p + (1 - p) * math.exp(-exponent))


def _log_minus_one(exponent: float) -> float:
    """log(e^exponent - 1)."""
    if exponent == 0:
        return -math.inf
    return math.log(math.expm1(exponent)) if exponent < 30 else exponent + math.log1p(-math.exp(-exponent))


def _log_one_plus(logs: list[float]) -> float:
    """log of 1 and the exponentials of ``logs``, accurate where these are small; what is infinite stays so."""
    largest = max(logs)
    if math.isinf(largest):
        return max(0.0, largest)
    total = math.fsum(math.exp(one - largest) for one in logs)
    if largest < 30:
        return math.log1p(math.exp(largest) * total)
    return largest + math.log(total + math.exp(-largest))
