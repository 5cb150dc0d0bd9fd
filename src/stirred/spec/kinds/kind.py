"""The class of a kind of output premetric: the properties it declares, and the methods the rest of stirred calls.

A kind answers as methods, so nothing else compares names of kinds. Whatever a kind does not declare is answered by
"not known", and what needs it is refused: nothing is guessed. A new kind is one module, with a subclass that overrides
what it knows, and one call of :func:`register`; where the declared fields are enough, ``Kind(...)`` itself will do.

Methods get numbers and curves and no blocks, so this part of ``spec`` depends on exact numbers and :mod:`stirred.loss`
alone. ``parameter`` is the parameter of the output premetric, None where the kind has none; a *bound* is the budget at
a distance: epsilon times d, rho times d squared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, PowerCurve, at_most
from stirred.loss.curves.tradeoffs import TradeOff
from stirred.loss.worst_pairs import MEASURES, Measure, Plain, named

Number = Fraction | float
Parameter = Fraction | float | None
Noise = Literal["laplace", "normal"]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """A bound on one output premetric by another, which holds for all laws P, Q; both kinds are given by name.

    ``formula(budget, from_parameter, to_parameter)`` is the new budget, or None where the rule says nothing.
    ``neighbours``: the bound is for distance one and does not grow linearly. ``from_one``: it holds at every
    distance of at least one, where it grows at most linearly, and not at smaller ones.
    """

    start: str
    end: str
    formula: Callable[[Any, Any, Any], Any]
    source: str
    words: str
    neighbours: bool = False
    from_one: bool = False


@dataclass(frozen=True)
class Grouped:
    """The bound for a group of neighbours: budget, parameter, and how they follow from those between neighbours."""

    budget: Any
    parameter: Parameter
    words: str


@dataclass(frozen=True)
class Composed:
    """The budget of several releases together, where budgets are curves."""

    budget: Any
    source: str
    words: str


@dataclass(frozen=True)
class Kind:
    """What is known about a kind of output premetric.

    ``composition``: budgets of fresh releases add up (``sum``), also their parameters (``sum-with-parameter``), or no
    rule is known (None). ``power`` is how a budget grows with the distance: epsilon times d, rho times d squared.
    """

    name: str
    symbol: str
    budget: str
    """The budget's usual letter."""
    words: str
    parameter: str = ""
    """The parameter's usual letter, if there is one."""
    metric: bool = False
    immune: bool = True
    """Processing the output never raises it (Definition 2.5.2)."""
    separates: bool = True
    """Infinite between laws without a common output (the condition of Proposition 2.4.11)."""
    composition: Literal["sum", "sum-with-parameter"] | None = None
    power: Literal[1, 2] = 1
    curve: bool = False
    likelihood: bool = True
    """It speaks about likelihood ratios, as inference does."""
    divergence: Callable[[Any, Any], float] | None = field(default=None, compare=False)
    """The number itself, for two finite distributions, where :mod:`stirred.loss` has no measure of the kind's name; a
    kind with a parameter overrides :meth:`measure`."""

    # -- facts that a subclass declares ----------------------------------------------------------------------

    pure: ClassVar[bool] = False
    """Its bound is one on every log ratio of probabilities, as in pure differential privacy: the same at every delta,
    infinite for Gaussian noise, and what limits of inference follow from."""

    budget_is_rho: ClassVar[bool] = False
    """Its budget is the rho of zero-concentrated differential privacy, which Gaussian noise spends and allocations
    divide."""

    finite_for_gaussians: ClassVar[bool] = False
    """Gaussian laws of one variance are at a finite distance, although their log ratios have no bound."""

    takes_off: ClassVar[bool] = False
    """A probability delta is taken off first, so that laws which differ by no more are at distance 0."""

    same_support: ClassVar[bool] = False
    """Infinite between laws of which the first has an output that the second has not."""

    neighbours_only: ClassVar[bool] = False
    """It bounds neighbours and has no meaning at other distances."""

    mirrored: ClassVar[bool] = False
    """Between the laws (p, 1 - p) and (1 - p, p) it is known, and rises with p from 1/2 to 1."""

    explained: ClassVar[bool] = False
    """What its budget means for tests and beliefs is known, by :meth:`tests`, and explanations may say so."""

    moved_laws: ClassVar[str] = ""
    """Which laws, moved along a line, are as far apart as the line says: a mechanism that spends a whole budget along
    every path. Empty where none is known; a coin has its chances in :meth:`coin`."""

    largest: ClassVar[Number] = math.inf
    """The largest value between any two laws."""

    both_ways: ClassVar[bool] = False
    """D(P, Q) = D(Q, P), although it is no metric."""

    disjoint_is_largest: ClassVar[bool] = False
    """Between laws without a common output it is largest, if not infinite."""

    called: ClassVar[str] = ""
    """The standard as analysts call it."""

    promise: ClassVar[str] = ""
    """What the standard promises, in everyday words."""

    sum_words: ClassVar[str] = "budgets add up"
    """How budgets of several releases are put together, where they add up."""

    registry_variant: ClassVar[str] = "Custom"
    """Its name in the public registry of deployments."""

    weaker: ClassVar[frozenset[str]] = frozenset()
    stronger: ClassVar[frozenset[str]] = frozenset()
    """Names of kinds that ask for less, and for more: a bound on the stronger gives one on the weaker, and not the
    reverse. One of two kinds says it."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """Conversions from this kind, and to this one from kinds that do not know it. Where several lead the same way, the
    sharper one stands first."""

    @property
    def standard(self) -> str:
        """The standard as it is named in a sentence."""
        return self.called or f"the standard '{self.name}'"

    @property
    def symmetric(self) -> bool:
        """Whether D(P, Q) = D(Q, P), so that a bound in one direction is one in both."""
        return self.metric or self.both_ways

    @property
    def largest_if_disjoint(self) -> bool:
        """Whether laws without a common output break every bound that some two laws break."""
        return self.separates or self.disjoint_is_largest

    # -- parameters and budgets ------------------------------------------------------------------------------

    def check_parameter(self, parameter: Number) -> None:
        """Refuse a parameter outside its range."""

    def takes_curve(self, curve: Curve) -> bool:
        """Whether a budget that is a curve is of the right sort: by default a power curve."""
        return not isinstance(curve, EpsilonProfile)

    def simplified(self, parameter: Parameter) -> tuple[Kind, Parameter]:
        """The simplest kind that is the same premetric at this parameter, and its parameter."""
        return self, parameter

    def asks_less(self, parameter: Number, than: Number) -> bool:
        """Whether one parameter makes a weaker standard than another; False also where it is not known."""
        return False

    def asks_less_than(self, other: Kind) -> bool:
        """Whether this kind is declared to be weaker than another."""
        return self.name in other.weaker or other.name in self.stronger

    def is_trivial(self, bound: Any, parameter: Parameter) -> bool:
        """Whether every two laws satisfy a bound."""
        if isinstance(bound, PowerCurve):
            return bool(bound.points[0][1] == 1)
        if isinstance(bound, EpsilonProfile):
            return all(delta == 1 or epsilon == math.inf for delta, epsilon in bound.points)
        return bool(bound == math.inf)

    def attainable(self, bound: Number, parameter: Parameter) -> bool:
        """Whether some two laws are known to be further apart than a finite bound."""
        return False

    def separates_at(self, parameter: Parameter) -> bool:
        """Whether two laws without a common output break every finite bound."""
        return self.separates

    def curve_at_most(self, first: Curve, second: Curve) -> bool | None:
        """Whether one budget lies nowhere above another, both being curves; None where they cannot be compared."""
        return at_most(first, second) if type(first) is type(second) else None

    # -- two laws --------------------------------------------------------------------------------------------

    def measure(self, parameter: Parameter) -> Measure:
        """The divergence of finite distributions, and the search for a mechanism's worst pair; refuses if not known."""
        if self.divergence is not None:
            return Plain(self.divergence)
        if self.name not in MEASURES:
            raise errors.cannot_evaluate(f"the output premetric '{self.name}'")
        return named(self.name, parameter)

    def between(self, p: ArrayLike, q: ArrayLike, parameter: Parameter) -> float:
        """The number D(P, Q) for two finite distributions."""
        return float(self.measure(parameter).between(p, q))

    def between_noise(self, noise: Noise, shift: float, parameter: Parameter) -> float | None:
        """The number between two laws of noise of one scale, ``shift`` scales apart; None where no formula is known."""
        return None

    def keeps_mirrored(self, chance: float, bound: Any, parameter: Parameter, slack: float) -> bool:
        """Whether the laws (p, 1 - p) and (1 - p, p) satisfy a bound, or exceed it by no more than a factor."""
        apart = self.between([chance, 1 - chance], [1 - chance, chance], parameter)
        return bool(apart**self.power <= float(bound) * slack)

    def coin(self, distance: Number) -> float | None:
        """The chance of heads of a coin moved by a distance along a line; None where the moved laws are no coins."""
        return None

    def told(self, bound: Number, parameter: Parameter) -> Number | None:
        """The probability with which a mechanism within this bound may reveal the dataset outright, else saying
        nothing; None where it is not known to be above 0."""
        return None

    def forbids_telling(self, chance: Number, bound: Number, parameter: Parameter) -> bool:
        """Whether revealing the dataset outright with this probability is known to break the bound."""
        return self.same_support and chance > 0

    def loss_curve(self, rows: Array, distances: Array, deltas: Sequence[float]) -> Curve:
        """The smallest curve that the rows of a mechanism satisfy, over pairs at a finite distance."""
        raise errors.cannot_evaluate(f"the output premetric '{self.name}'")

    def largest_curve(self, curves: Sequence[Any], deltas: Sequence[float]) -> Curve:
        """The smallest curve above several of :meth:`loss_curve`."""
        raise errors.cannot_evaluate(f"the output premetric '{self.name}'")

    def within_curve(self, rows: Array, distances: Array, names: Sequence[str], curve: Any) -> tuple[bool, str]:
        """Whether the rows of a mechanism, by name, satisfy a curve, and which rows show it."""
        raise errors.cannot_evaluate(f"the output premetric '{self.name}'")

    # -- several datasets, several releases, other standards -------------------------------------------------

    def grouped(self, budget: Any, parameter: Parameter, size: int) -> Grouped | str | None:
        """The bound between datasets ``size`` neighbours apart, from that between neighbours, where the kind is no
        metric; a text if the rule comes to nothing, None if there is no rule."""
        return None

    def composed_curves(self, curves: Sequence[Any]) -> Composed | None:
        """The budget of several releases whose budgets are curves; None where no rule is known."""
        return None

    def rules_to(self, other: Kind) -> list[Rule]:
        """The conversions to another kind that either of the two declares, this one's first."""
        declared = self.rules if other is self else (*self.rules, *other.rules)
        return [rule for rule in declared if (rule.start, rule.end) == (self.name, other.name)]

    def classical_epsilon(self, budget: Number, delta: Number) -> float | None:
        """Epsilon at a delta by the formula that is called classical; None where there is none."""
        return None

    # -- tests and words -------------------------------------------------------------------------------------

    def tests(self, bound: Number, parameter: Parameter) -> TradeOff | None:
        """The greatest power of tests between laws within a bound; None where it is not known."""
        return None

    def tests_of_curve(self, curve: Any, distance: Number, scale: Number) -> TradeOff | None:
        """The greatest power of tests for a budget that is a curve, where neighbours are ``scale`` apart."""
        return None

    def tests_of_group(self, budget: Any, parameter: Parameter, scale: Number, steps: int) -> TradeOff | None:
        """The greatest power of tests between datasets ``steps`` neighbours apart, where a sharper rule is known."""
        return None

    def least_errors(self, bound: Any, parameter: Parameter) -> float:
        """The smallest sum of the two error probabilities of a test that a bound allows; 1 where none is known."""
        return 1.0

    def allows_words(self, bound: Any) -> str:
        """What a very large bound allows, in words."""
        return "a test that errs less than once in 1,000 times"


KINDS: dict[str, Kind] = {}
"""Every kind that is known, by name."""


def register(kind: Kind) -> Kind:
    """Make a kind of output premetric known by its name. What it declares is not checked."""
    if kind.name in KINDS and KINDS[kind.name] != kind:
        raise errors.bad_block(f"The output premetric '{kind.name}'", "is registered already, with other properties")
    KINDS[kind.name] = kind
    return kind
