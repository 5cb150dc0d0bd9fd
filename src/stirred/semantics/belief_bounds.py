"""How much an attacker's belief about one person can gain from her record: section 7 of Kifer et al. (2022).

Each bound is about the posterior-to-posterior ratio of :mod:`stirred.lab.definitions.beliefs`: ``delta(epsilon)``
bounds the probability that it exceeds e^epsilon, ``epsilon(delta)`` is the smallest epsilon at which that probability
is at most delta. ``conditions`` says what must be true for the theorem to be used, ``output`` over what the probability
is taken, ``given`` the same in one word and ``strict`` whether the ratio is above e^epsilon or at least.

Keep in mind: numbers of different theorems are about different events and must not be ranked. That
of theorem 7.3 is smaller than that of 7.4 or 7.5 since it averages over what the target's record may be; it is no
stronger promise to the person whose record is true (.0491 against .6795 at rho = 2.63 and epsilon = 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred.loss import (
    GaussianCurve,
    PowerCurve,
    RenyiCurve,
    TradeOff,
    ZcdpCurve,
    renyi_orders_to_pbdp_delta,
    renyi_orders_to_pbdp_epsilon,
    tradeoff_to_pbdp_delta,
    tradeoff_to_pbdp_epsilon,
    zcdp_to_pbdp_delta,
    zcdp_to_pbdp_epsilon,
)
from stirred.loss.argument_checks import Number, non_negative, probabilities, probability, renyi_order

Array = NDArray[np.float64]
Given = Literal["every", "predictive", "record"]

SOURCE = "Kifer et al. 2022, theorem"
ONE_UNIT = (
    "The definition holds between all datasets that differ in the target's record alone and that the prior allows "
    "(stirred.lab.definitions.beliefs.Beliefs.worlds_stay_inside); with invariants it often does not."
)
CORRECT = "The attacker's prior is correct: the data were drawn from it."
KNOWN_REST = "The attacker knows every record but the target's."


# -- pure DP -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PureBelief:
    """Theorem 7.1: under epsilon-DP the ratio lies between e^-epsilon and e^epsilon, for every prior and every output.

    The gold standard that the posterior is compared with is that of a resampled record. ``default_record`` compares
    with a fixed record put in its place, which costs a factor of two in the exponent (footnote 13).

    >>> bound = PureBelief(1)
    >>> bound.delta(0.5), bound.delta(1), bound.epsilon(0.01), bound.default_record().epsilon(0.01)
    (1.0, 0.0, 1.0, 2.0)
    """

    budget: float
    counterfactual: Literal["resampled", "default"] = "resampled"

    given: ClassVar[Given] = "every"
    strict: ClassVar[bool] = True
    output: ClassVar[str] = "There is none: the bound holds at every output."

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", non_negative("epsilon", self.budget))
        if self.counterfactual not in ("resampled", "default"):
            raise errors.unknown_choice("counterfactual", self.counterfactual, ("resampled", "default"))

    @property
    def theorem(self) -> str:
        """The theorem's number in the paper."""
        return f"{SOURCE} 7.1" if self.counterfactual == "resampled" else f"{SOURCE} 7.1, footnote 13"

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be true for the theorem to apply, as sentences."""
        default = "So it does for the datasets with the default record in the target's place."
        return (ONE_UNIT,) if self.counterfactual == "resampled" else (ONE_UNIT, default)

    @property
    def definition(self) -> str:
        """The definition of privacy that the bound starts from, in words."""
        return f"epsilon-DP with epsilon = {self.budget:g}"

    @property
    def limit(self) -> float:
        """The epsilon that no ratio exceeds."""
        return self.budget if self.counterfactual == "resampled" else 2 * self.budget

    def default_record(self) -> PureBelief:
        """The same promise against the world in which a fixed record takes the place of the target's."""
        return PureBelief(self.budget, "default")

    def delta(self, epsilon: Number) -> float:
        """0 from the limit on, 1 below it: nothing is said there."""
        return 0.0 if non_negative("epsilon", epsilon) >= self.limit else 1.0

    def epsilon(self, delta: Number) -> float:
        """The limit, at every delta below 1."""
        return self.limit if probability("delta", delta) < 1 else 0.0


# -- zCDP and Renyi DP ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Concentrated:
    """rho-zCDP, or Renyi divergences of at most ``divergence`` at orders above 1 as pairs (order, divergence)."""

    rho: float | None = None
    points: tuple[tuple[float, float], ...] = ()

    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        points = tuple(_point(order, divergence) for order, divergence in self.points)
        object.__setattr__(self, "points", points)
        if (self.rho is None) != bool(points):
            raise errors.parameter_out_of_range("The guarantee", "not told once", "either rho or pairs of Renyi DP")
        if self.rho is not None:
            object.__setattr__(self, "rho", non_negative("rho", self.rho))

    @property
    def definition(self) -> str:
        if self.rho is not None:
            return f"rho-zCDP with rho = {self.rho:g}"
        said = ", ".join(f"{divergence:g} at order {order:g}" for order, divergence in self.points)
        return f"Renyi DP with a divergence of at most {said}"

    @property
    def _reveals_nothing(self) -> bool:
        """A divergence of 0 at any order means equal laws, and then every ratio is 1."""
        return self.rho == 0 or any(divergence == 0 for _, divergence in self.points)


@dataclass(frozen=True)
class PredictiveBelief(_Concentrated):
    """Theorem 7.3: the rest known, the ratio of any record, the output drawn as the attacker expects it.

    From a divergence of at most g at order a: e^(-a epsilon + (a - 1) g). From rho-zCDP, at the best order (epsilon +
    rho) / (2 rho): e^(-(epsilon + rho)^2 / (4 rho)) for epsilon > rho. And always e^-epsilon, Markov's inequality,
    since the ratio is 1 on average.

    >>> bound = PredictiveBelief(2.63)  # the 2020 redistricting data
    >>> bound.delta(3), bound.delta(1), bound.epsilon(1e-10)
    (0.049143..., 0.367879..., 12.933802...)
    """

    given: ClassVar[Given] = "predictive"
    theorem: ClassVar[str] = f"{SOURCE} 7.3"
    conditions: ClassVar[tuple[str, ...]] = (ONE_UNIT, KNOWN_REST, CORRECT)
    output: ClassVar[str] = (
        "The output of the prior predictive law: the target's record is drawn from the attacker's prior, not the true "
        "one, and the mechanism is run with it."
    )

    def delta(self, epsilon: Number) -> float:
        """A bound on the probability that the ratio is at least e^epsilon."""
        e = non_negative("epsilon", epsilon)
        if e == 0 or self._reveals_nothing:
            return 1.0 if e == 0 else 0.0
        if self.rho is not None:
            return math.exp(-(e + self.rho) * ((e + self.rho) / (4 * self.rho)) if e > self.rho else -e)
        return min(math.exp(-e), *(math.exp(min(0.0, _predictive_log(order, g, e))) for order, g in self.points))

    def epsilon(self, delta: Number) -> float:
        """The epsilon that the log ratio reaches with probability at most ``delta``."""
        d = probability("delta", delta)
        if d == 1 or self._reveals_nothing:
            return 0.0
        if d == 0:
            return min((g for order, g in self.points if math.isinf(order)), default=math.inf)
        needed = -math.log(d)
        if self.rho is not None:
            return 2 * math.sqrt(self.rho * needed) - self.rho if needed > self.rho else needed
        return min(needed, *(_predictive_epsilon(order, g, needed) for order, g in self.points))


@dataclass(frozen=True)
class AnyPriorBelief(_Concentrated):
    """Theorem 7.5: any correct prior, however uncertain about the rest; the ratio of the true record.

    From a divergence of at most g at order a: e^((a - 1)(g - epsilon)). From rho-zCDP, at the same best order as in
    theorem 7.3: e^(-(epsilon - rho)^2 / (4 rho)) for epsilon > rho, else 1. These are the deltas of pbdp by Markov's
    inequality. :class:`TrueRecordBelief` of :class:`stirred.loss.ZcdpCurve` or :class:`stirred.loss.RenyiCurve` is
    never larger and holds under the same conditions.

    >>> AnyPriorBelief(2.63).delta(5), AnyPriorBelief(points=((3, 1.0),)).delta(2)
    (0.586298..., 0.135335...)
    """

    given: ClassVar[Given] = "record"
    theorem: ClassVar[str] = f"{SOURCE} 7.5"
    conditions: ClassVar[tuple[str, ...]] = (ONE_UNIT, CORRECT)
    output: ClassVar[str] = (
        "The output given the true record: the rest is drawn from the attacker's prior given that record, and the "
        "mechanism is run with both."
    )

    def delta(self, epsilon: Number) -> float:
        """A bound on the probability that the ratio is at least e^epsilon."""
        e = non_negative("epsilon", epsilon)
        if self._reveals_nothing:
            return 1.0 if e == 0 else 0.0
        if self.rho is not None:
            return zcdp_to_pbdp_delta(self.rho, e)
        return renyi_orders_to_pbdp_delta(self.points, e)

    def epsilon(self, delta: Number) -> float:
        """The epsilon that the log ratio reaches with probability at most ``delta``."""
        if self.rho is not None:
            return zcdp_to_pbdp_epsilon(self.rho, delta)
        return renyi_orders_to_pbdp_epsilon(self.points, delta)


# -- trade-off functions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrueRecordBelief:
    """Theorem 7.4: the ratio of the true record under f-DP, which is the pbdp curve of f.

    The theorem is stated for an attacker who knows the rest. It needs no such condition: given the true record r, the
    laws of the output in the two worlds are mixtures, with the same weights, of the laws of neighbours, and a concave
    power curve that bounds all of them bounds their mixtures (the argument of theorem 6.5). So it holds for every
    correct prior, as theorem 7.5 does.

    Epsilon is infinite for delta up to 1 - f(0), the power of a test of level 0: with that probability the output may
    tell the record for certain.

    >>> bound = TrueRecordBelief(GaussianCurve(math.sqrt(2 * 2.63)))  # the 2020 redistricting data
    >>> round(bound.delta(3), 8), round(bound.epsilon(1e-10), 6)
    (0.67945661, 17.517001)
    """

    curve: TradeOff

    given: ClassVar[Given] = "record"
    strict: ClassVar[bool] = True
    theorem: ClassVar[str] = f"{SOURCE} 7.4"
    conditions: ClassVar[tuple[str, ...]] = (
        ONE_UNIT,
        "The trade-off function bounds tests between such datasets in both directions.",
        CORRECT,
    )
    output: ClassVar[str] = (
        "The output given the true record; where the rest is known, over the randomness of the mechanism alone."
    )

    def __post_init__(self) -> None:
        if not isinstance(self.curve, PowerCurve | GaussianCurve | RenyiCurve | ZcdpCurve):
            raise errors.not_a_curve("trade-off function", "give a curve of stirred.loss")

    @property
    def definition(self) -> str:
        """The definition of privacy that the bound starts from, in words."""
        match self.curve:
            case GaussianCurve(mu):
                return f"Gaussian DP with mu = {mu:g}"
            case ZcdpCurve(rho):
                return f"the trade-off function of rho-zCDP with rho = {rho:g}"
            case RenyiCurve():
                return "the trade-off function of Renyi DP"
        return "f-DP with a trade-off function that has vertices"

    def delta(self, epsilon: Number) -> float:
        """A bound on the probability that the ratio is at least e^epsilon."""
        return tradeoff_to_pbdp_delta(self.curve, epsilon)

    def epsilon(self, delta: Number) -> float:
        """The epsilon that the log ratio reaches with probability at most ``delta``."""
        return tradeoff_to_pbdp_epsilon(self.curve, delta)


BeliefBound = PureBelief | PredictiveBelief | TrueRecordBelief | AnyPriorBelief


# -- single posteriors under pure DP -------------------------------------------------------------------------


@refuses_wrong_arguments
def highest_posterior(prior: ArrayLike, epsilon: Number) -> Array:
    """The largest posterior of a record under epsilon-DP: q e^epsilon / (1 - q + q e^epsilon); of the shape of prior.

    ``prior`` is what the attacker believes where the record is not used: with the rest known his prior, else his
    counterfactual posterior. With the rest known the odds of r against all others are multiplied by P(w | r) / P(w |
    not r), which is at most e^epsilon, as the denominator is an average over neighbours. In general let u and v be what
    one rest of the data adds to P(r, w) and P(not r, w). To the counterfactual P(r, w) it adds at least h(u, v) = u (u
    + v) / (u + v e^epsilon). As h is convex and homogeneous, h of the sums is at most the sum, which is the claim.

    >>> highest_posterior([0.01, 0.5], 1).round(6).tolist()
    [0.026724, 0.731059]
    """
    e = non_negative("epsilon", epsilon)
    q = probabilities("The prior", prior)
    return np.where(q == 0, 0.0, q / np.where(q == 0, 1.0, q + (1 - q) * math.exp(-e)))


@refuses_wrong_arguments
def lowest_posterior(prior: ArrayLike, epsilon: Number) -> Array:
    """The smallest posterior of a record under epsilon-DP: q e^-epsilon / (1 - q + q e^-epsilon).

    The rest of the probability is at its highest there: one minus :func:`highest_posterior` of 1 - q.

    >>> lowest_posterior([0.01, 0.5], 1).round(6).tolist()
    [0.003702, 0.268941]
    """
    e = non_negative("epsilon", epsilon)
    q = probabilities("The prior", prior)
    least = q * math.exp(-e)
    return np.where(q == 1, 1.0, least / np.where(q == 1, 1.0, 1 - q + least))


# -- helpers -------------------------------------------------------------------------------------------------


def _point(order: Number, divergence: Number) -> tuple[float, float]:
    alpha = renyi_order(order)
    if alpha == 1:
        raise errors.parameter_out_of_range("order", order, "above 1")
    return alpha, non_negative("divergence", divergence)


def _predictive_log(order: float, divergence: float, epsilon: float) -> float:
    """ln of the bound of one order."""
    if math.isinf(divergence):
        return math.inf
    if math.isinf(order):
        # Under pure DP the ratio stays below e^epsilon, since it is an average in which the record itself takes part.
        return -math.inf if epsilon >= divergence else math.inf
    return -epsilon * order + divergence * (order - 1)


def _predictive_epsilon(order: float, divergence: float, needed: float) -> float:
    """The epsilon at which ln of the bound of one order is -needed."""
    if math.isinf(order) or math.isinf(divergence):
        return divergence
    return (divergence * (order - 1) + needed) / order
