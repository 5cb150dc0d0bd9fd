"""Which budget keeps the power of tests, a belief or an epsilon below a limit: the inverse of explanations.

The power of tests at the distance of the nearest datasets is that of :func:`stirred.semantics.testing.allowed_power`,
for every mechanism with the guarantee; where the guarantee is zero-concentrated, also that of Gaussian noise. A belief
of q becomes at most q e^t / (1 - q + q e^t) where the loss is at most t, and the loss exceeds t with a probability
that the same curve bounds (Kifer et al. 2022, theorem 7.4). All of these grow with the budget, so the greatest budget
is found by halving.

Keep in mind: budgets are rounded down to four digits, and looked at again as they are written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from stirred import errors
from stirred.loss import GaussianCurve, TradeOff, ZcdpCurve, tradeoff_to_pbdp_epsilon
from stirred.semantics.belief_bounds import highest_posterior
from stirred.semantics.targets import (
    DELTA,
    BeforeAfter,
    BeliefTarget,
    Calibration,
    EpsilonTarget,
    ErrorTarget,
    GuaranteeTarget,
    PowerTarget,
    RhoTarget,
    Target,
    TargetAnswer,
)
from stirred.semantics.testing import allowed_power
from stirred.spec.blocks import OutputPremetric
from stirred.spec.exact import written
from stirred.spec.loading import load
from stirred.spec.order.conversions import as_approximate, convert
from stirred.spec.specification import Specification

Make = Callable[[Fraction], Specification]

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)
_DIGITS = 4
NUMBERS = ("rho", "epsilon")
"""Numbers that can be calibrated without a plan."""

INSTEAD = "Ask for power, belief, epsilon or rho; errors of tables are calibrated with a plan."


def value_of(target: GuaranteeTarget, specification: Specification, curve: TradeOff | None = None) -> float:
    """What the target limits, under a guarantee; ``curve`` is a power curve to look at in place of what the guarantee
    allows, such as the mechanism's own."""
    if isinstance(target, EpsilonTarget | RhoTarget):
        return _converted(target, specification)
    allowed = allowed_power(specification) if curve is None else curve
    return value_on(target, allowed)  # type: ignore[arg-type]


def value_on(target: PowerTarget | BeliefTarget, curve: TradeOff) -> float:
    """The power at the target's false alarms, or the belief that its prior becomes, on a power curve.

    >>> from stirred.loss import pure_power
    >>> from stirred.semantics.targets import read_target
    >>> round(value_on(read_target("power at 5% <= 20%"), pure_power(1)), 4)
    0.1359
    >>> round(value_on(read_target("belief from 1% <= 5%"), pure_power(1)), 4)
    0.0267
    """
    if isinstance(target, PowerTarget):
        return float(curve.power(float(target.false_alarm)))
    loss = tradeoff_to_pbdp_epsilon(curve, float(target.exception))
    return 1.0 if math.isinf(loss) else float(highest_posterior(float(target.prior), loss))


def greatest_budget(make: Make, targets: Sequence[GuaranteeTarget], own: bool = False) -> Fraction:
    """The greatest budget, rounded down to four digits, with which ``make`` gives a guarantee that keeps all targets.

    ``own`` looks at Gaussian noise in place of everything that the guarantee allows; see :func:`gaussian_of`.
    """

    def missed(budget: Fraction) -> GuaranteeTarget | None:
        stated = make(budget)
        curve = gaussian_of(stated) if own else None
        return next((one for one in targets if not value_of(one, stated, curve) <= float(one.most)), None)

    def kept(budget: Fraction) -> bool:
        return missed(budget) is None

    if (one := missed(_LEAST)) is not None:
        why = "no budget is small enough, however little is spent"
        remedy = "Raise the limit, or allow an exception: 'belief from 1% <= 5% except 1%'."
        raise errors.out_of_reach(one.text, why, remedy)
    low, high = _LEAST, _MOST
    if kept(high):
        return high
    while high / low > 1 + Fraction(1, 10**7):
        middle = Fraction(math.sqrt(float(low) * float(high)))
        low, high = (middle, high) if kept(middle) else (low, middle)
    found = rounded_down(low)
    stated = [one.most for one in targets if isinstance(one, EpsilonTarget | RhoTarget) and one.most > found]
    if stated and kept(min(stated)):  # the limit itself, where it is the budget
        return min(stated)
    return found if kept(found) else rounded_down(found * Fraction(9999, 10000))


def rounded_down(value: Fraction, digits: int = _DIGITS) -> Fraction:
    """The largest decimal with so many digits that is not above a positive number.

    >>> str(rounded_down(Fraction(2, 3))), str(rounded_down(Fraction(12345)))
    ('3333/5000', '12340')
    """
    with_digits = Context(prec=digits, rounding=ROUND_FLOOR)
    found = with_digits.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(found)


def rounded_up(value: Fraction, digits: int = _DIGITS) -> Fraction:
    """The smallest decimal with so many digits that is not below a positive number."""
    below = rounded_down(value, digits)
    if below == value:
        return value
    return rounded_down(below + Fraction(10) ** (Decimal(str(float(below))).adjusted() - digits + 1), digits)


def gaussian_of(specification: Specification) -> GaussianCurve | None:
    """The power where all of rho is spent on Gaussian noise; None where the guarantee is not zero-concentrated."""
    curve = allowed_power(specification)
    return GaussianCurve(math.sqrt(2 * curve.rho)) if isinstance(curve, ZcdpCurve) else None


def require_guarantees(targets: Sequence[Target], what: str) -> list[GuaranteeTarget]:
    """The targets, all of which must be about the guarantee."""
    found: list[GuaranteeTarget] = []
    for one in targets:
        if isinstance(one, ErrorTarget):
            raise errors.target_not_for(one.text, what, INSTEAD)
        found.append(one)
    return found


def calibrate_number(what: str, targets: Sequence[Target]) -> Calibration:
    """The greatest rho or epsilon that keeps targets about the guarantee.

    ``what`` is ``rho`` or ``epsilon``, perhaps with a value, the one in use now, and with other blocks:
    ``rho=2.63,unit=household``.

    >>> from stirred.semantics.targets import read_targets
    >>> calibrate_number("epsilon", read_targets("power at 5% <= 20%")).fields["budget"]
    '693/500'
    """
    name, now, others = _parts(what)
    asked = require_guarantees(targets, f"{name} alone")

    def make(budget: Fraction) -> Specification:
        return load(",".join([f"{name}={written(budget)}", *others]))

    return calibrate_budget(name, make, asked, now)


def calibrate_budget(
    name: str, make: Make, targets: Sequence[GuaranteeTarget], now: Fraction | None, plan: str = ""
) -> Calibration:
    """The greatest budget of guarantees that differ in nothing else; ``now`` is the one in use."""
    found = greatest_budget(make, targets)
    before, after = (None if now is None else make(now)), make(found)
    several = "all targets" if len(targets) > 1 else "the target"
    answer = [f"{name} of at most {written(found)} keeps {several}, whatever the mechanism."]
    fields: dict[str, object] = {
        "number": name,
        "budget": str(found),
        "budget_before": None if now is None else str(now),
    }
    if gaussian_of(after) is not None and any(isinstance(one, PowerTarget | BeliefTarget) for one in targets):
        gaussian = greatest_budget(make, targets, own=True)
        answer.append(f"With Gaussian noise alone, {name} may be up to {written(gaussian)}.")
        fields["budget_with_gaussian_noise"] = str(gaussian)
    if now is not None:
        answer.append(
            f"The {name} in use, {written(now)}, keeps {several} already."
            if now <= found
            else f"The {name} in use is {written(now)}, {float(now / found):.3g} times as much."
        )
    answers = tuple(
        TargetAnswer(
            one.text,
            value_of(one, after) <= float(one.most),
            None if before is None else value_of(one, before),
            value_of(one, after),
            float(one.most),
        )
        for one in targets
    )
    return Calibration(
        plan or name, tuple(answer), answers, guarantee_changes(before, after), notes=notes_of(targets), fields=fields
    )


def guarantee_changes(before: Specification | None, after: Specification | None) -> tuple[BeforeAfter, ...]:
    """Powers, beliefs and epsilon under two guarantees."""
    asked: list[tuple[str, GuaranteeTarget]] = [
        (
            f"power of the best test at {float(level):.0%} false alarms, any mechanism",
            PowerTarget("", level, Fraction(1)),
        )
        for level in (Fraction(1, 100), Fraction(1, 20))
    ]
    asked += [
        (f"belief from {float(prior):.0%} is at most (but for 1% of outputs)", BeliefTarget("", prior, Fraction(1)))
        for prior in (Fraction(1, 100), Fraction(1, 2))
    ]
    rows = [BeforeAfter(words, _maybe(one, before), _maybe(one, after)) for words, one in asked]
    level = PowerTarget("", Fraction(1, 20), Fraction(1))
    gaussian = [None if one is None or (curve := gaussian_of(one)) is None else value_on(level, curve)
                for one in (before, after)]  # fmt: skip
    if any(one is not None for one in gaussian):
        rows.insert(2, BeforeAfter("the same at 5%, Gaussian noise", gaussian[0], gaussian[1]))
    epsilon = EpsilonTarget("", Fraction(1))
    found = [_maybe(epsilon, before), _maybe(epsilon, after)]
    of_rho = any(one is not None for one in gaussian)
    rows.append(BeforeAfter("epsilon at delta 1e-10" if of_rho else "epsilon", found[0], found[1]))
    return tuple(one for one in rows if one.before is not None or one.after is not None)


def notes_of(targets: Sequence[Target]) -> tuple[str, ...]:
    """What a reader must know about the targets that were asked for."""
    found = []
    if any(isinstance(one, BeliefTarget) for one in targets):
        found.append(
            "Beliefs are about two datasets at the smallest distance that the guarantee knows; the limit may be "
            "exceeded with the stated probability over the output, 1% where a target says nothing else."
        )
    if any(isinstance(one, PowerTarget | BeliefTarget) for one in targets):
        found.append(
            "Limits hold for every test between the nearest two datasets that the guarantee compares, and for every "
            "mechanism with the guarantee."
        )
    return tuple(found)


# -- helpers -------------------------------------------------------------------------------------------------------


def _maybe(target: GuaranteeTarget, specification: Specification | None) -> float | None:
    if specification is None:
        return None
    try:
        return value_of(target, specification)
    except errors.StirredError:
        return None


def _converted(target: EpsilonTarget | RhoTarget, specification: Specification) -> float:
    """Epsilon or rho of a guarantee, converted where it is stated otherwise."""
    if isinstance(target, EpsilonTarget):
        pure = _under(specification, OutputPremetric("multiplicative"))
        if pure is not None and target.delta is None:
            return pure
        return float(as_approximate(specification, target.delta or DELTA).budget.number)
    found = _under(specification, OutputPremetric("normalised-renyi"))
    if found is None:
        raise errors.target_not_for(target.text, "a guarantee that has no rho", "Ask for epsilon, power or belief.")
    return found


def _under(specification: Specification, to: OutputPremetric) -> float | None:
    if specification.output_premetric == to:
        return float(specification.budget.number)
    near = replace(specification, input_premetric=replace(specification.input_premetric, sharpened=False))
    found = convert(near, to)
    return None if found is None else float(found.specification.budget.number)


def is_number(what: object) -> bool:
    """Whether a text names a number to be calibrated, and not a plan; a file of that name is ``./rho``.

    >>> is_number("rho=2.63"), is_number("epsilon,delta=1e-6"), is_number("rho.toml")
    (True, True, False)
    """
    return isinstance(what, str) and what.partition("=")[0].partition(",")[0].strip().lower() in NUMBERS


def _parts(what: str) -> tuple[str, Fraction | None, list[str]]:
    """The name of the number, its value if it has one, and what else is typed."""
    first, *others = (part.strip() for part in what.split(","))
    name, _, value = (part.strip() for part in first.partition("="))
    if name.lower() not in NUMBERS:
        raise errors.calibration_option(repr(what), f"must be a plan, or begin with {errors.listed(NUMBERS)}")
    if not value:
        return name.lower(), None, others
    now = load(what).budget.number
    if not isinstance(now, Fraction) or now <= 0:
        raise errors.calibration_option(repr(what), "must have a budget that is above 0 and finite")
    return name.lower(), now, others
