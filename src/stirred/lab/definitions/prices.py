"""Toy models of the price of privacy: chapter 1, section 1.2 of Bailie (2025).

They turn epsilon into money or into a number on another scale, to show what follows if one does.

Keep in mind: the source builds them to criticise them. Epsilon belongs to a mechanism and a population, not to one
person: an identical twin's record tells about somebody who did not respond at all. No price here says what somebody's
privacy is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.loss.argument_checks import Number, as_float, finite

Form = Literal["exact", "linear"]


# -- Ghosh and Roth ------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def expected_utility_bounds(utility: Number, epsilon: Number) -> tuple[float, float]:
    """The least and the greatest expected utility with a person's data, from that without them: equation (1.1).

    For a utility of outputs that is at least 0, epsilon-DP keeps E_M(D) u within e^-epsilon and e^epsilon times
    E_M(D') u.

    >>> expected_utility_bounds(10, 0.1)
    (9.048..., 11.051...)
    """
    v, e = finite("utility", utility), finite("epsilon", epsilon)
    return v * math.exp(-e), _raised(v, e)


@refuses_wrong_arguments
def price(value: Number, epsilon: Number, form: Form = "exact") -> float:
    """The price of one person's data after Ghosh and Roth (2015): (e^epsilon - 1) v or, in linear form, epsilon v.

    v is the expected utility without the data, and (e^epsilon - 1) v the most by which it can change. The linear form
    is close to it for small epsilon only.

    >>> price(100, 0.1), price(100, 0.1, "linear"), price(100, 5, "linear")
    (10.517..., 10.0, 500.0)
    """
    v, e = finite("value", value), finite("epsilon", epsilon)
    if form not in get_args(Form):
        raise errors.unknown_choice("form of the price", form, get_args(Form))
    if form == "linear":
        return v * e
    try:
        return v * math.expm1(e)
    except OverflowError:
        return math.inf if v > 0 else 0.0


# -- the scale of epsilon ------------------------------------------------------------------------------------


@refuses_wrong_arguments
def linear_budget(epsilon: Number) -> float:
    """e^epsilon: the budget on a linear scale, of which epsilon is the logarithm ("log-budget", section 1.2.1).

    From 12 to 19 it rises from 162,755 to 178,482,301 (the source prints 162,000 and 178,000,000).

    >>> linear_budget(12), linear_budget(19)
    (162754.79..., 178482300.96...)
    """
    return _raised(1.0, finite("epsilon", epsilon))


@refuses_wrong_arguments
def in_base(epsilon: Number, base: Number) -> float:
    """The same budget to another base B than e: epsilon_B = epsilon / ln B, so that B^epsilon_B = e^epsilon.

    >>> round(in_base(19, 1.1)), round(in_base(19, 1.01))
    (199, 1909)
    """
    e, b = finite("epsilon", epsilon), as_float("base", base, "above 1 and finite")
    if not 1 < b < math.inf:
        raise errors.parameter_out_of_range("base", base, "above 1 and finite")
    return e / math.log(b)


# -- whether to respond --------------------------------------------------------------------------------------


@refuses_wrong_arguments
@brief
@dataclass(frozen=True)
class ResponseGame:
    """The prisoner's dilemma of differential privacy (section 1.2.2): whether to answer a survey.

    Each of ``people`` gets ``utility`` if all respond. Every person who does not respond multiplies that by e^-epsilon;
    if nobody responds it is 0. Responding costs ``cost``, in privacy and in effort.

    **Erratum.** The source prints the relative payoff of silence as "$50 - $100 x e^-epsilon = $49", which would be
    -$49; it is 50 - 100 (1 - e^-epsilon) = 49. It also holds that silence is best "regardless of the behaviour of other
    individuals". Where everybody else is silent that needs utility e^(-epsilon (people - 1)) < cost, in the example
    from 70 people on.

    >>> game = ResponseGame(people=1000, epsilon=math.log(100 / 99), utility=100, cost=50)
    >>> round(game.gain_of_silence(0), 9), game.payoff(True, 0), game.payoff(False, 999), game.is_dilemma
    (49.0, 50.0, 0.0, True)
    """

    people: int
    epsilon: float
    utility: float
    cost: float

    def __post_init__(self) -> None:
        if isinstance(self.people, bool) or not isinstance(self.people, int) or self.people < 1:
            raise errors.parameter_out_of_range("people", self.people, "a whole number from 1 on")
        for name in ("epsilon", "utility", "cost"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))

    def payoff(self, responds: bool, silent_others: int) -> float:
        """What one person gets if so many of the others do not respond."""
        others = self._others(silent_others)
        if responds:
            return self.utility * math.exp(-self.epsilon * others) - self.cost
        return 0.0 if others == self.people - 1 else self.utility * math.exp(-self.epsilon * (others + 1))

    def gain_of_silence(self, silent_others: int) -> float:
        """What one person gains by not responding: cost - utility e^(-epsilon j) (1 - e^-epsilon) if j others do not
        respond and somebody does; cost - utility e^(-epsilon j) if nobody else does."""
        others = self._others(silent_others)
        lost = 1.0 if others == self.people - 1 else -math.expm1(-self.epsilon)
        return self.cost - self.utility * math.exp(-self.epsilon * others) * lost

    @property
    def silence_dominates(self) -> bool:
        """Whether silence is better whatever others do: its gain is least where all of them respond, or none does."""
        return self.gain_of_silence(0) > 0 and self.gain_of_silence(self.people - 1) > 0

    @property
    def is_dilemma(self) -> bool:
        """Whether silence is best for each, and everybody would be better off if all responded."""
        return self.silence_dominates and self.payoff(True, 0) > self.payoff(False, self.people - 1)

    def _others(self, silent: int) -> int:
        if isinstance(silent, bool) or not isinstance(silent, int) or not 0 <= silent < self.people:
            raise errors.parameter_out_of_range("silent_others", silent, f"a whole number below {self.people}")
        return silent


@refuses_wrong_arguments
def gain_of_silence_under_privacy(utility: Number, privacy: Number, epsilon: Number, burden: Number = 0) -> float:
    """The gain of not responding where the cost in privacy shrinks with epsilon too (footnote 34 of chapter 1).

    A response then costs ``privacy`` (1 - e^-epsilon) and ``burden``, and adds utility (1 - e^-epsilon); the gain of
    silence is burden + (privacy - utility)(1 - e^-epsilon). The dilemma persists where the burden is above (1 -
    e^-epsilon)(utility - privacy).

    **Erratum.** The source prints "($50 - $100) e^-epsilon = -$0.5", which would be -$49.5, and the condition as burden
    above e^-epsilon (utility - privacy).

    >>> round(gain_of_silence_under_privacy(100, 50, math.log(100 / 99)), 9)
    -0.5
    """
    u, p, b = finite("utility", utility), finite("privacy", privacy), finite("burden", burden)
    return b + (p - u) * -math.expm1(-finite("epsilon", epsilon))


def _raised(value: float, epsilon: float) -> float:
    try:
        return value * math.exp(epsilon)
    except OverflowError:
        return math.inf if value > 0 else 0.0
