"""From one output premetric to another: which bounds follow from which, and by what formula.

Every rule is licensed by a bound that holds for all laws P, Q, and is declared by one of the two kinds that it is about
(:attr:`stirred.spec.kinds.Kind.rules`). Rules whose bound is not linear in the distance apply where only neighbours are
compared, or where no two datasets are closer than one. The numbers come from :mod:`stirred.loss`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stirred import errors
from stirred.loss.curves.power_curves import Curve
from stirred.spec.exact import exact
from stirred.spec.kinds import Rule
from stirred.spec.premetrics import Budget, OutputPremetric
from stirred.spec.specification import Specification, Step

CLASSICAL = "Bun and Steinke 2016, Proposition 1.3"


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
    for rule in output.kind.rules_to(to.kind):
        if rule.neighbours and not _neighbours_only(a):
            continue
        if rule.from_one and not _at_least_one(a):
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
    value = found if isinstance(found, Curve) else exact(found, "A converted budget")
    return Budget(value, varies=a.budget.varies, conversion=f"from {_said(a)}: {rule.words} ({rule.source})")


def _neighbours_only(a: Specification) -> bool:
    """Whether finite distances are 0 and 1 alone."""
    premetric = a.input_premetric
    if premetric.kind == "table":
        return all(d in (0, 1) for _, _, d in premetric.distances) and premetric.scale == 1
    return premetric.scale == 1 and (premetric.kind == "relation" or not premetric.sharpened)


def _at_least_one(a: Specification) -> bool:
    """Whether no distance lies between 0 and 1."""
    premetric = a.input_premetric
    if premetric.kind == "table":
        return all(d == 0 or d * premetric.scale >= 1 for _, _, d in premetric.distances)
    return premetric.kind in ("records", "relation") and premetric.scale >= 1


def one_way(a: Specification) -> bool:
    """Whether a divergence of one direction is bounded in one direction only, between some listed datasets."""
    if a.output_premetric.kind.symmetric:
        return False
    listed = {(first, second): distance for first, second, distance in a.input_premetric.distances}
    return any(listed.get((second, first)) != distance for (first, second), distance in listed.items())


def _lets_copies_differ(a: Specification, to: OutputPremetric) -> bool:
    """Whether ``a`` allows a delta between datasets at distance 0, such as files in another order, and ``to`` does not.

    At distance 0 the bound is 0, and D_Mult^delta is 0 between laws that differ by delta.
    """
    output, premetric = a.output_premetric, a.input_premetric
    if not output.kind.takes_off or to.kind.takes_off:
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
        epsilon = None if a.budget.is_curve else a.output_premetric.kind.classical_epsilon(a.budget.number, to.at)
        if epsilon is None:
            raise errors.no_rule("the classical conversion", "it is one from rho", "Use the tight conversion.")
        words = f"classical: {_said(a)} plus 2 root(rho ln 1/delta) ({CLASSICAL})"
        return replace(near, output_premetric=to, budget=Budget(epsilon, varies=a.budget.varies, conversion=words))
    converted = convert(near, to)
    if converted is None:
        reason = f"{a.output_premetric.symbol} gives none at these distances"
        raise errors.no_rule("an epsilon at this delta", reason, "Bring the specification to neighbours first.")
    return converted[0]


def _countable(a: Specification) -> bool:
    return a.input_premetric.kind == "records" and a.input_premetric.scale == 1
