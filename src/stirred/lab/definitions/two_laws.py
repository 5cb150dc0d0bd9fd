"""Two finite laws: the most powerful test between them, and definitions of privacy as questions about them.

*Tests.* The test of Neyman and Pearson looks at the log likelihood ratio T = ln P/Q of the output, P the law under the
null hypothesis: it rejects below a threshold, never above it, and with some probability on it (Kifer et al. 2022,
section 4). Only with that coin can it have every false-alarm probability.

Keep in mind: laws given as fractions make fractions. Ties are then exact; with floats, outputs whose ratios differ by
rounding alone may be taken for different.

*Definitions at fixed parameters.* A definition is whatever somebody proposes to ask of the laws P and Q that a
mechanism's output has on two neighbouring datasets: a predicate, or a number with a budget. Those of Kifer et al.
(2022) are here as constructors. The searches for mechanisms that break a proposal are in
:mod:`stirred.lab.definitions.searches`.

Keep in mind: rounding is never taken for a violation. Laws *break* a definition only if they fail it and still fail it
after being brought nearer to each other by a part of ``tolerance``; in a definition that may be mixed and processed
freely that step can only help them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.loss import divergences
from stirred.loss.argument_checks import (
    SUM_TOLERANCE,
    Number,
    distributions,
    finite,
    non_negative,
    probabilities,
    probability,
    renyi_order,
)
from stirred.loss.curves.power_curves import EpsilonProfile, PowerCurve
from stirred.loss.curves.tradeoffs import TradeOff
from stirred.loss.divergences import power_curve
from stirred.spec.blocks import Budget, OutputPremetric
from stirred.spec.order.finite_mechanisms import FiniteMechanism, divergence

Probability = Fraction | float


@brief
@dataclass(frozen=True)
class RatioTest:
    """Reject where P/Q is below ``threshold``; where it equals the threshold, with probability ``on_threshold``.

    ``threshold`` is the ratio itself, 0 for outputs that only Q gives and infinite for those that only P gives; its
    logarithm is the value of the privacy loss.
    """

    threshold: Probability
    on_threshold: Probability
    level: Probability
    power: Probability

    @property
    def loss(self) -> float:
        """The threshold as a privacy loss, ln P/Q."""
        return -math.inf if self.threshold == 0 else math.log(self.threshold)


@refuses_wrong_arguments
def best_test(null: Sequence[Any], alternative: Sequence[Any], level: Any) -> RatioTest:
    """The most powerful test of ``null`` against ``alternative`` with exactly this false-alarm probability.

    >>> best_test([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], Fraction(1, 8))
    RatioTest(threshold=Fraction(1, 3), on_threshold=Fraction(1, 2), level=Fraction(1, 8), power=Fraction(3, 8))
    """
    groups = _by_ratio(null, alternative)
    if not 0 <= level <= 1:
        raise errors.parameter_out_of_range("level", level, "between 0 and 1")
    spent: Probability = 0 * groups[0][1]
    power: Probability = spent
    for ratio, p, q in groups:
        if p > 0 and spent + p >= level:
            share = (level - spent) / p
            return RatioTest(ratio, share, level, power + share * q)
        spent, power = spent + p, power + q
    return RatioTest(groups[-1][0], 0 * power + 1, level, min(power, 0 * power + 1))  # sums of floats fall short of 1


@refuses_wrong_arguments
def level_and_power(
    null: Sequence[Any], alternative: Sequence[Any], threshold: Any, on_threshold: Any
) -> tuple[Probability, Probability]:
    """False-alarm probability and power of the test with a threshold on P/Q, from the distributions of the loss:

        level = c P(L12 <= t) + (1 - c) P(L12 < t),  power = c P(L21 >= -t) + (1 - c) P(L21 > -t).

    >>> level_and_power([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], Fraction(1, 3), 1)
    (Fraction(1, 4), Fraction(3, 4))
    """
    groups = _by_ratio(null, alternative)
    below = [(p, q) for ratio, p, q in groups if ratio < threshold]
    on = [(p, q) for ratio, p, q in groups if ratio == threshold]
    level = sum(p for p, _ in below) + on_threshold * sum(p for p, _ in on)
    power = sum(q for _, q in below) + on_threshold * sum(q for _, q in on)
    return level, power


@refuses_wrong_arguments
def uncertain_power(
    mechanism: FiniteMechanism, weights: Mapping[str, Any], null: Mapping[str, str], alternative: Mapping[str, str]
) -> PowerCurve:
    """The power of an attacker who knows the rest of the data only up to a distribution (Theorem 6.5).

    ``weights`` has a probability for each possible rest; ``null`` and ``alternative`` name, for each rest, the dataset
    of ``mechanism`` that it makes with the target's one or other record. What the attacker sees is then drawn from a
    mixture. For definitions that are convex and survive post-processing the curve is nowhere above that of an attacker
    who knows the rest: uncertainty does not help.

    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> answers = randomised_response("1/4", respondents=2)
    >>> half = {"0": Fraction(1, 2), "1": Fraction(1, 2)}  # the second respondent's answer, unknown
    >>> uncertain_power(answers, half, {"0": "00", "1": "01"}, {"0": "10", "1": "11"}).power(0.25).item()
    0.75
    """
    if not weights or any(not w >= 0 for w in weights.values()) or abs(sum(weights.values()) - 1) > SUM_TOLERANCE:
        raise errors.not_a_distribution("The attacker's belief about the rest", "it is negative or does not sum to 1")
    if set(weights) - set(null) or set(weights) - set(alternative):
        raise errors.not_a_mechanism("some rest of the data has no dataset under a hypothesis")
    strange = {worlds[rest] for worlds in (null, alternative) for rest in weights} - set(mechanism.datasets)
    if strange:
        raise errors.strange_datasets(sorted(strange))
    place = {name: row for row, name in enumerate(mechanism.datasets)}
    shares = np.array([float(weight) for weight in weights.values()])
    first, second = (
        shares @ mechanism.rows[[place[worlds[rest]] for rest in weights]] for worlds in (null, alternative)
    )
    points = power_curve(first / first.sum(), second / second.sum())
    return PowerCurve(tuple(map(tuple, points[np.append(np.diff(points[:, 0]) > 0, True)].tolist())))


def _by_ratio(null: Sequence[Any], alternative: Sequence[Any]) -> list[tuple[Probability, Probability, Probability]]:
    """(ratio, P, Q) of the outputs with each value of P/Q, smallest ratio first."""
    if len(null) != len(alternative) or len(null) == 0:
        raise errors.outputs_differ(len(null), len(alternative))
    for name, law in (("The null hypothesis", null), ("The alternative", alternative)):
        if any(not p >= 0 for p in law) or abs(sum(law) - 1) > SUM_TOLERANCE:
            raise errors.not_a_distribution(name, "it is negative or does not sum to 1")
    groups: dict[Probability, tuple[Probability, Probability]] = {}
    for p, q in zip(null, alternative, strict=True):
        if p == 0 and q == 0:
            continue
        ratio = p / q if q else math.inf
        before = groups.get(ratio, (0 * p, 0 * q))
        groups[ratio] = (before[0] + p, before[1] + q)
    return [(ratio, *groups[ratio]) for ratio in sorted(groups)]


Array = NDArray[np.float64]

ROUNDING = 1e-12
"""A cost above the budget by a smaller part counts as within it, as everywhere in this package."""

ASKED = ("transparency", "composition", "interpretation", "bayesian")
"""What no search can find out, and only the proposer can answer."""


@brief
@dataclass(frozen=True, eq=False)
class Definition:
    """A definition of privacy at fixed parameters.

    Either ``holds(p, q)`` says whether two laws satisfy it, or ``cost(p, q)`` is a number and ``budget`` the most that
    is allowed; a cost without a budget is audited for all budgets at once. Laws are arrays of probabilities of the same
    outputs, without those that neither can give. Neighbours have no order, so both orders are asked, unless
    ``symmetric`` is false. ``hints`` are numbers worth trying as probabilities or likelihood ratios, such as delta and
    e^epsilon; ``declared`` are the proposer's answers to :data:`ASKED`. ``tolerance``, how much nearer laws must still
    fail, is more than the error with which the definition is computed, and far less than e^-epsilon.

    >>> bounded = Definition("no output twice as likely", lambda p, q: bool(np.all(p <= 2 * q)))
    >>> bounded.satisfied([0.6, 0.4], [0.4, 0.6]), bounded.satisfied([0.8, 0.2], [0.2, 0.8])
    (True, False)
    """

    name: str
    holds: Callable[[Array, Array], bool] | None = None
    cost: Callable[[Array, Array], float] | None = None
    budget: float | None = None
    symmetric: bool = True
    hints: tuple[float, ...] = ()
    declared: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        if (self.holds is None) == (self.cost is None) or not callable(self.holds or self.cost):
            raise self._must("be either a predicate of two laws or a cost of them")
        if self.budget is not None:
            if self.cost is None:
                raise self._must("have a cost that its budget bounds")
            object.__setattr__(self, "budget", non_negative("budget", self.budget))
        if not 0 < self.tolerance <= 0.01:
            raise errors.parameter_out_of_range("tolerance", self.tolerance, "above 0 and at most 0.01")
        object.__setattr__(self, "hints", tuple(non_negative("A hint", hint) for hint in self.hints))
        for question in self.declared:
            if question not in ASKED:
                raise errors.unknown_choice("question to a proposer", question, ASKED)

    def _must(self, words: str) -> errors.StirredError:
        return errors.SpecificationError(
            "bad-definition", f"The definition '{self.name}' must {words}.", "Change it so that it does."
        )

    # -- what it says of laws --------------------------------------------------------------------------------

    @property
    def bounded(self) -> bool:
        """Whether every mechanism either satisfies the definition or not, without a budget being named."""
        return self.holds is not None or self.budget is not None

    def satisfied(self, p: ArrayLike, q: ArrayLike) -> bool:
        """Whether two laws satisfy the definition, in both orders if it is symmetric."""
        return self.passes(np.stack(distributions(p, q)))

    def passes(self, laws: Array) -> bool:
        """Whether a mechanism, two laws as rows, satisfies the definition; that they are laws is not checked."""
        if self.budget is not None:
            return self.price(laws) <= self.budget * (1 + ROUNDING)
        return all(self._holds(*order) for order in self._orders(laws))

    def breaks(self, laws: Array) -> bool:
        """Whether two laws fail the definition, and not by rounding alone."""
        apart, last = laws[::-1] - laws, 1e-15 * laws.max(axis=0)  # the last digit of a probability is rounding too
        nearer = laws + self.tolerance * apart + np.clip(apart / 4, -last, last)
        return not self.passes(laws) and not self.passes(nearer)

    def price(self, laws: Array) -> float:
        """The cost of a mechanism: the larger one of both orders, if the definition is symmetric."""
        return max(self._cost(*order) for order in self._orders(laws))

    def judged(self, laws: Array) -> str:
        """The laws as text, and whether they satisfy the definition."""
        said = f"laws {told(laws)} {'hold' if self.passes(laws) else 'do not hold'}"
        return said if self.budget is None else f"{said}: {self.price(laws):.7g}, allowed {self.budget:.7g}"

    def at(self, *mechanisms: Array) -> Definition | None:
        """The definition if all mechanisms hold, else None. Without a budget: with the smallest that lets them hold."""
        if self.bounded:
            return self if all(self.passes(laws) for laws in mechanisms) else None
        most = max(self.price(laws) for laws in mechanisms)
        return replace(self, budget=most) if 1e-9 < most < math.inf else None  # beside 0 all is rounding

    def _orders(self, laws: Array) -> list[Array]:
        possible = laws[:, laws.any(axis=0)]  # a copy, since a definition may well change what it is given
        return [possible, possible[::-1].copy()] if self.symmetric else [possible]

    def _holds(self, p: Array, q: Array) -> bool:
        if self.holds is None:
            raise self._must("have a budget to hold its cost against")
        answer = self._asked(self.holds, p, q)
        if not isinstance(answer, bool | np.bool_):
            raise self._must(f"answer True or False, and answered {answer!r} on {p.tolist()} and {q.tolist()}")
        return bool(answer)

    def _cost(self, p: Array, q: Array) -> float:
        if self.cost is None:
            raise self._must("have a cost to be asked for it")
        answer = self._asked(self.cost, p, q)
        if not isinstance(answer, int | float | np.integer | np.floating) or math.isnan(answer):
            raise self._must(f"cost a number, and cost {answer!r} on {p.tolist()} and {q.tolist()}")
        return float(answer)

    def _asked(self, question: Callable[[Array, Array], Any], p: Array, q: Array) -> Any:
        try:
            with np.errstate(all="ignore"):
                return question(p, q)
        except errors.StirredError:
            raise
        except Exception as error:
            laws = f"{p.tolist()} and {q.tolist()}"
            raise self._must(f"answer for any two laws, and raised {error!r} on {laws}") from error

    # -- those of the paper ----------------------------------------------------------------------------------

    @classmethod
    def pure(cls, epsilon: Number) -> Definition:
        """No event is likelier by a factor above e^epsilon (Definition 4.8)."""
        e = finite("epsilon", epsilon)
        known = _known("epsilons add up, fully adaptively", "odds change by a factor of at most e^epsilon", "7.1")
        return cls(f"pure ({e:g})", None, divergences.multiplicative, e, hints=_ratio(e), declared=known)

    @classmethod
    def approximate(cls, epsilon: Number, delta: Number) -> Definition:
        """P(S) <= e^epsilon Q(S) + delta for every event S, at one point (epsilon, delta) (Definition 5.1)."""
        e, d = finite("epsilon", epsilon), probability("delta", delta)
        known = _known("epsilons and deltas add up, adaptively", "delta bounds the chance of an infinite loss")
        cost = partial(divergences.hockey_stick, epsilon=e)
        return cls(f"approximate ({e:g}, {d:g})", None, cost, d, hints=(*_ratio(e), d), declared=known)

    @classmethod
    def probabilistic(cls, epsilon: Number, delta: Number) -> Definition:
        """The loss ln p/q of an output drawn from P exceeds epsilon with probability at most delta (section 5.2).

        What one would like to promise; but processing the output can raise that probability (Example 4.9).
        """
        e, d = finite("epsilon", epsilon), probability("delta", delta)

        def cost(p: Array, q: Array) -> float:
            return math.fsum(p[(p > 0) & (np.log(p) - np.log(q) > e * (1 + ROUNDING))])

        known = _known("", "the loss exceeds epsilon with probability at most delta")
        return cls(f"probabilistic ({e:g}, {d:g})", None, cost, d, hints=(*_ratio(e), d), declared=known)

    @classmethod
    def pbdp(cls, epsilon: Number, delta: Number) -> Definition:
        """No test with false alarm e^-epsilon delta has a power above delta: one point of pbdp (Definition 5.5)."""
        e, d = finite("epsilon", epsilon), probability("delta", delta)
        if d == 0:
            raise errors.parameter_out_of_range("delta", delta, "above 0 (Remark 5.6)")
        level = math.exp(-e) * d

        def cost(p: Array, q: Array) -> float:
            return float(np.interp(level, *divergences.power_curve(p, q).T))

        known = _known("", "no analysis changes odds by more than e^epsilon, but with probability at most delta", "7.4")
        return cls(f"pbdp ({e:g}, {d:g})", None, cost, d, hints=(*_ratio(e), d, level), declared=known)

    @classmethod
    def renyi(cls, order: Number, epsilon: Number) -> Definition:
        """The Renyi divergence of one order is at most epsilon (Definition 5.14)."""
        alpha, e = renyi_order(order), finite("epsilon", epsilon)
        known = _known("epsilons of one order add up, fully adaptively", "", "7.3 and 7.5")
        cost = partial(divergences.renyi, order=alpha)
        return cls(f"Renyi ({alpha:g}, {e:g})", None, cost, e, hints=_ratio(e), declared=known)

    @classmethod
    def zcdp(cls, rho: Number) -> Definition:
        """The Renyi divergence of every order alpha > 1 is at most alpha rho (Definition 5.15)."""
        r = finite("rho", rho)
        known = _known("rhos add up, fully adaptively", "", "7.3 and 7.5")

        def cost(p: Array, q: Array) -> float:
            return divergences.normalised_renyi(p, q) ** 2

        return cls(f"zCDP ({r:g})", None, cost, r, hints=_ratio(math.sqrt(r)), declared=known)

    @classmethod
    def tradeoff(cls, curve: TradeOff) -> Definition:
        """No test has more power than the curve at its false-alarm probability (f-DP, Definition 5.9).

        The cost is the largest power as a part of what is allowed: at a vertex, since both are concave.
        """

        def cost(p: Array, q: Array) -> float:
            levels, powers = divergences.power_curve(p, q).T
            return float(np.max(np.where(powers > 0, powers / np.asarray(curve.power(levels)), 0.0)))

        known = _known(
            "by products of trade-off functions, adaptively", "the largest power at each false-alarm probability", "7.4"
        )
        return cls("trade-off function", None, cost, 1.0, hints=(float(curve.power(0.0)),), declared=known)

    @classmethod
    def total_variation(cls, t: Number) -> Definition:
        """No event is likelier by more than t."""
        most = probability("t", t)
        known = _known("t's add up", "the most by which the power of a test exceeds its false-alarm probability")
        return cls(f"TV ({most:g})", None, divergences.total_variation, most, hints=(most,), declared=known)

    @classmethod
    def by_premetric(cls, output: OutputPremetric, budget: Any = None) -> Definition:
        """The definition that an output premetric, also a registered one, makes for neighbours at distance 1.

        ``budget`` is as in a specification (rho for zCDP, a curve where the output premetric is one); without it the
        premetric is audited for all budgets.

        >>> Definition.by_premetric(OutputPremetric("total-variation"), 0.5).satisfied([0.75, 0.25], [0.25, 0.75])
        True
        """
        if output.events or output.partition:
            raise errors.cannot_evaluate("events of outputs that an audit makes up as it goes")
        if budget is None and output.kind.curve:
            raise errors.cannot_evaluate(f"the output premetric '{output.name}' without a budget, which is a curve")
        given = budget if isinstance(budget, Budget) or budget is None else Budget(budget)
        if given is not None and given.is_curve != output.kind.curve:
            raise errors.bad_block(f"The budget of {output.symbol}", "is a curve where the output premetric is")
        if given is not None and isinstance(given.value, EpsilonProfile):
            points = given.value.points

            def holds(p: Array, q: Array) -> bool:
                return all(divergences.approximate(p, q, d) <= e * (1 + ROUNDING) for d, e in points)

            return cls(output.symbol, holds, hints=tuple(d for d, _ in points))
        if given is not None and given.is_curve:
            return replace(cls.tradeoff(given.value), name=output.symbol)

        def cost(p: Array, q: Array) -> float:
            return divergence(output, p, q) ** output.kind.power

        most = None if given is None else float(given.number)
        hints = () if most is None else (*_ratio(most), most)
        hints = hints if output.parameter is None else (*hints, float(output.at))
        rules = {None: "", "sum": "budgets add up", "sum-with-parameter": "budgets and parameters add up"}
        known = _known(rules[output.kind.composition])
        return cls(output.symbol, None, cost, most, hints=hints, declared=known)


def _known(composition: str, interpretation: str = "", theorem: str = "") -> dict[str, str]:
    """What the literature answers to :data:`ASKED`; theorems are those of Kifer et al. (2022)."""
    bayesian = f"Theorem {theorem}" if theorem else ""
    known = {"composition": composition, "interpretation": interpretation, "bayesian": bayesian}
    return {"transparency": "the mechanism may be public"} | {name: words for name, words in known.items() if words}


def _ratio(epsilon: float) -> tuple[float, ...]:
    return (math.exp(epsilon),) if epsilon < 100 else ()


def told(laws: Array) -> str:
    """Laws as text, with simple fractions."""
    return " and ".join(f"({', '.join(map(short, law))})" for law in laws)


def short(number: float | Array) -> str:
    """A simple fraction where the number is one, else seven digits."""
    value = float(number)
    simple = Fraction(value if math.isfinite(value) else 0).limit_denominator(1000)
    return str(simple) if abs(simple - value) <= 1e-12 * min(abs(value), 1) else f"{value:.7g}"


# -- levels and powers ---------------------------------------------------------------------------------------


def coin(level: float, power: float) -> Array:
    """The mechanism that says yes with probability ``level`` on one dataset and ``power`` on the other, else no."""
    return np.array([[level, 1 - level], [power, 1 - power]], dtype=np.float64)


@refuses_wrong_arguments
def level_power(definition: Definition, levels: ArrayLike) -> Array:
    """The greatest power at each false-alarm probability over coins that satisfy the definition; NaN where none does.

    A test of a mechanism's output is a coin. So, if processing does no harm, no test of any mechanism that holds has
    more power at this level; if mixing does none either, g is concave (Theorem 6.4 of Kifer et al. 2022), and bounds
    also the tests of those who are unsure about everybody else's records (Theorem 6.5). Searched from above on a grid,
    then by halving: missed is only what holds between two powers of the grid that do not.

    >>> level_power(Definition.pure(1), [0.01, 0.05]).round(6).tolist()
    [0.027183, 0.135914]
    """
    asked = probabilities("level", levels)
    return np.reshape([_greatest(definition, float(level)) for level in asked.ravel()], asked.shape)


def _greatest(definition: Definition, level: float) -> float:
    rising = np.geomspace(max(level, 1e-9), 1, 9)
    near = [hint for hint in definition.hints if level < hint < 1]
    grid = np.unique(np.concatenate([np.linspace(level, 1, 17), np.clip(rising, level, 1), near]))[::-1]
    first = next((place for place, power in enumerate(grid) if definition.passes(coin(level, float(power)))), None)
    if first is None:
        return math.nan
    low, high = float(grid[first]), float(grid[max(0, first - 1)])
    while high > low * (1 + 1e-13) + 1e-18:
        middle = (low + high) / 2
        low, high = (middle, high) if definition.passes(coin(level, middle)) else (low, middle)
    return low


def edge(definition: Definition, laws: Array) -> Array | None:
    """The furthest laws that satisfy the definition on the line from their mean through ``laws`` and beyond."""
    away = laws - (mean := laws.mean(axis=0))
    # How far one can go; laws that differ by rounding alone have no direction.
    ratios = np.divide(mean, np.abs(away[0]), out=np.full(len(mean), math.inf), where=away[0] != 0)
    far = float(np.min(ratios))
    if not definition.bounded or far > 1e5 or not definition.passes(np.stack([mean, mean])):
        return None
    low, middle, high = 0.0, far, far
    while high - low > 1e-6 * high + 1e-12:
        low, high = (middle, high) if definition.passes(np.maximum(mean + middle * away, 0)) else (low, middle)
        middle = (low + high) / 2
    return np.asarray(np.maximum(mean + low * away, 0))
