"""From one output premetric to another: which bounds follow from which, and by what formula.

Every rule is licensed by a bound that holds for all laws P, Q. Rules whose bound is not linear in the distance apply
where only neighbours are compared. The numbers come from :mod:`stirred.loss`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.loss import conversions
from stirred.loss.curves import GaussianCurve, PowerCurve, approximate_power, pure_power
from stirred.spec.exact import exact
from stirred.spec.premetrics import Budget, OutputPremetric
from stirred.spec.specification import Specification, Step

Number = Fraction | float


@dataclass(frozen=True)
class Rule:
    """A bound on one output premetric by another.

    ``formula(budget, from_parameter, to_parameter)`` is the new budget, or None where the rule says nothing.
    ``neighbours``: the bound is for distance one and does not grow linearly.
    """

    start: str
    end: str
    formula: Callable[[Any, Any, Any], Any]
    source: str
    words: str
    neighbours: bool = False


def _gaussian(curve: Any, formula: Callable[[float], Any]) -> Any:
    return formula(curve.mu) if isinstance(curve, GaussianCurve) else None


def curve_epsilon(curve: Any, delta: Any) -> Any:
    """The smallest epsilon that a trade-off function gives at delta."""
    if isinstance(curve, GaussianCurve):
        return conversions.gaussian_epsilon(curve.mu, float(delta))
    low, high = 0.0, 1.0
    while conversions.power_to_approximate(curve, high) > delta:
        if high > 1e3:
            return math.inf
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if conversions.power_to_approximate(curve, middle) <= delta else (middle, high)
    return high


CLASSICAL = "Bun and Steinke 2016, Proposition 1.3"
PURE_ZCDP = "Bun and Steinke 2016, Proposition 3.3"
RULES = (
    Rule("multiplicative", "normalised-renyi", lambda e, _, __: conversions.pure_to_zcdp(e), PURE_ZCDP,
         "half of epsilon squared"),
    Rule("multiplicative", "approximate", lambda e, _, __: e, "section 2.4.5", "delta only takes away"),
    Rule("multiplicative", "renyi", lambda e, _, order: conversions.pure_to_renyi(e, order), PURE_ZCDP,
         "at most epsilon, and half of alpha epsilon squared", neighbours=True),
    Rule("multiplicative", "renyi", lambda e, _, __: e, "Renyi divergences grow with their order",
         "every order is at most the largest"),
    Rule("multiplicative", "total-variation", lambda e, _, __: conversions.pure_to_total_variation(e),
         "randomised response is the worst case", "the hyperbolic tangent of half of epsilon", neighbours=True),
    Rule("multiplicative", "total-variation", lambda e, _, __: Fraction(e) / 2 if e < math.inf else e,
         "randomised response is the worst case", "at most half of epsilon"),
    Rule("multiplicative", "trade-off", lambda e, _, __: pure_power(float(e)), "Wasserman and Zhou 2010",
         "randomised response is the worst case", neighbours=True),
    Rule("normalised-renyi", "approximate",
         lambda rho, _, delta: conversions.zcdp_to_approximate(rho, delta, "tight") if delta > 0 else None,
         "Canonne, Kamath and Steinke 2020, Proposition 12", "the best order", neighbours=True),
    Rule("normalised-renyi", "renyi", lambda rho, _, order: conversions.zcdp_to_renyi(rho, order),
         "Bun and Steinke 2016, Definition 1.1", "alpha times rho", neighbours=True),
    Rule("normalised-renyi", "total-variation", lambda rho, _, __: conversions.zcdp_to_total_variation(rho),
         "Pinsker's inequality", "the root of half of rho, and at most 1", neighbours=True),
    Rule("normalised-renyi", "total-variation", lambda rho, _, __: math.sqrt(rho / 2),
         "Pinsker's inequality", "the root of half of rho"),
    Rule("renyi", "renyi", lambda e, order, wanted: e if wanted <= order else None,
         "Renyi divergences grow with their order", "a smaller order asks for less"),
    Rule("renyi", "approximate",
         lambda e, order, delta: conversions.renyi_to_approximate(order, e, delta) if delta > 0 else None,
         "Canonne, Kamath and Steinke 2020, Proposition 12", "the tail of the loss", neighbours=True),
    Rule("approximate", "approximate", lambda e, delta, wanted: e if wanted >= delta else None, "section 2.4.5",
         "a larger delta takes away more"),
    Rule("approximate", "multiplicative", lambda e, delta, _: e if delta == 0 else None, "section 2.4.5",
         "delta is zero"),
    Rule("approximate", "total-variation", lambda e, delta, _: conversions.approximate_to_total_variation(e, delta),
         "Kairouz, Oh and Viswanath 2015", "the point of the region nearest to no protection", neighbours=True),
    Rule("approximate", "trade-off", lambda e, delta, _: approximate_power(float(e), float(delta)),
         "Wasserman and Zhou 2010", "the lines of the level-power region", neighbours=True),
    Rule("total-variation", "approximate", lambda t, _, delta: Fraction(0) if t <= delta else None,
         "Definition of total variation", "no event differs by more than delta", neighbours=True),
    Rule("trade-off", "approximate", lambda f, _, delta: curve_epsilon(f, delta),
         "Dong, Roth and Su 2022, Proposition 2.13", "the steepest line above the curve", neighbours=True),
    Rule("trade-off", "normalised-renyi", lambda f, _, __: _gaussian(f, conversions.gaussian_to_zcdp),
         "Bun and Steinke 2016, Proposition 1.6 and Blackwell's theorem (A.6.2)", "half of mu squared",
         neighbours=True),
    Rule("approximate-profile", "approximate", lambda f, _, delta: f.epsilon(float(delta)), "section 2.4.6",
         "the curve at this delta"),
)  # fmt: skip
"""Where several rules lead the same way, the sharper one stands first."""


def convert(a: Specification, to: OutputPremetric) -> tuple[Specification, list[Step]] | None:
    """The guarantee of ``a`` under another output premetric, by the first rule that applies; None if there is none."""
    output = a.output_premetric
    steps: list[Step] = []
    if (output.events, output.partition) != (to.events, to.partition):
        if output.events or output.partition or not output.kind.immune:
            return None
        words = "the second looks at fewer events, which is a way of processing the output"
        steps.append(Step("events", "Proposition 2.5.4", words))
        output = replace(output, events=to.events, partition=to.partition)
        a = replace(a, output_premetric=output)
        if output == to:
            return a, steps
    if a.budget.by_universe:
        return None
    for rule in RULES:
        if (rule.start, rule.end) != (output.name, to.name) or (rule.neighbours and not _neighbours_only(a)):
            continue
        if _lets_copies_differ(a, to) or (rule.start != rule.end and one_way(a)):
            continue
        found = rule.formula(a.budget.value, output.parameter, to.parameter)
        if found is None:
            continue
        reached = replace(a, output_premetric=to, budget=_converted(a, found, rule))
        words = f"{_said(a)} gives {_said(reached)}: {rule.words}"
        return reached, [*steps, Step("conversion", rule.source, words)]
    return None


def _converted(a: Specification, found: Any, rule: Rule) -> Budget:
    value = found if isinstance(found, GaussianCurve | PowerCurve) else exact(found, "A converted budget")
    return Budget(value, varies=a.budget.varies, conversion=f"from {_said(a)}: {rule.words} ({rule.source})")


def _neighbours_only(a: Specification) -> bool:
    """Whether finite distances are 0 and 1 alone."""
    premetric = a.input_premetric
    if premetric.kind == "table":
        return all(d in (0, 1) for _, _, d in premetric.distances) and premetric.scale == 1
    return premetric.scale == 1 and (premetric.kind == "relation" or not premetric.sharpened)


def one_way(a: Specification) -> bool:
    """Whether a divergence of one direction is bounded in one direction only, between some listed datasets."""
    if a.output_premetric.name not in ("renyi", "trade-off"):
        return False
    listed = {(first, second): distance for first, second, distance in a.input_premetric.distances}
    return any(listed.get((second, first)) != distance for (first, second), distance in listed.items())


def _lets_copies_differ(a: Specification, to: OutputPremetric) -> bool:
    """Whether ``a`` allows a delta between datasets at distance 0, such as files in another order, and ``to`` does not.

    At distance 0 the bound is 0, and D_Mult^delta is 0 between laws that differ by delta; no other kind is.
    """
    output, premetric = a.output_premetric, a.input_premetric
    if output.name not in ("approximate", "approximate-profile") or to.name in ("approximate", "approximate-profile"):
        return False
    if output.parameter == 0:
        return False
    if premetric.kind == "table":
        return any(distance == 0 for _, _, distance in premetric.distances)
    return premetric.kind == "records" and not premetric.ordered


def _said(a: Specification) -> str:
    output = a.output_premetric
    said = f"{output.kind.budget} = {a.budget.shown()}"
    return said if output.parameter is None else f"{said} at {output.symbol.partition(' with ')[2]}"


def as_approximate(a: Specification, delta: Any, method: str = "tight") -> Specification:
    """The guarantee of ``a`` as an (epsilon, delta) of neighbours, with the conversion in its budget.

    ``method`` is ``tight`` or, for zCDP, ``classical`` (the formula behind the 2020 Census's published epsilons).

    >>> from stirred.spec import flavors
    >>> overall = flavors.zcdp("person").at("55.371")
    >>> as_approximate(overall, "1e-10", "classical").budget.shown()
    '126.79'
    """
    to = OutputPremetric("approximate", delta)
    near = replace(a, input_premetric=replace(a.input_premetric, sharpened=False)) if _countable(a) else a
    if method == "classical":
        if a.output_premetric.name != "normalised-renyi":
            raise errors.no_rule("the classical conversion", "it is one from rho", "Use the tight conversion.")
        epsilon = conversions.zcdp_to_approximate(a.budget.number, to.at, "classical")
        words = f"classical: {_said(a)} plus 2 root(rho ln 1/delta) ({CLASSICAL})"
        return replace(near, output_premetric=to, budget=Budget(epsilon, varies=a.budget.varies, conversion=words))
    converted = convert(near, to)
    if converted is None:
        reason = f"{a.output_premetric.symbol} gives none at these distances"
        raise errors.no_rule("an epsilon at this delta", reason, "Bring the specification to neighbours first.")
    return converted[0]


def _countable(a: Specification) -> bool:
    return a.input_premetric.kind == "records" and a.input_premetric.scale == 1
