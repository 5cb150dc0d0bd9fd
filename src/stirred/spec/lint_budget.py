"""Lint rules about the budget."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec.algebra import may_publish_budget
from stirred.spec.exact import near
from stirred.spec.lint_domain import nothing_can_change
from stirred.spec.lint_rules import many, rule, short, spent
from stirred.spec.specification import Specification

SURE = 1e-3
"""A best test with a smaller sum of errors is called certain."""


@rule(
    "vacuous-budget",
    "budget",
    "An epsilon is a logarithm. If a budget lets the best test be all but certain which of two datasets is the true "
    "one, what sets them apart is as good as published: a very large budget is an invariant in practice.",
    "section 3.5.2; section 2.4.6",
)
def vacuous_budget(specification: Specification) -> str:
    """The budget is infinite; or it allows a test between the nearest datasets of a universe (or between datasets one
    apart, where the nearest are not known) whose two errors sum to less than 1/1000. That is an epsilon above 7.6
    there; a rho, with Gaussian noise, above 21.66."""
    budget = specification.budget
    if budget.value == math.inf:
        return f"{spent(specification)}: any mechanism meets it, also one that publishes the data."
    output = specification.output_premetric
    if output.kind.takes_off and output.parameter is not None and output.parameter >= 1:
        return f"delta = {output.parameter}: any mechanism meets it, also one that publishes the data."
    apart = specification.nearest
    if apart == math.inf:
        return ""
    distance = Fraction(1) if apart is None else Fraction(apart)
    if _errors(specification, distance) >= SURE:
        return ""
    allowed = specification.output_premetric.kind.allows_words(_bound(specification, distance))
    return f"Between datasets {near(distance):g} apart, {spent(specification)} allows {allowed}."


def _bound(specification: Specification, distance: Fraction) -> Any:
    """The budget at a distance; a curve as it is."""
    budget = specification.budget
    return budget.value if budget.is_curve else specification.budget_at(distance)


def _errors(specification: Specification, distance: Fraction) -> float:
    """The smallest sum of the two errors of a test that the budget allows at this distance; 1 where none is known."""
    output = specification.output_premetric
    return output.kind.least_errors(_bound(specification, distance), output.parameter)


@rule(
    "zero-budget-no-noise",
    "budget",
    "A mechanism that always gives the same output has a loss of zero, and so has one whose constant output was copied "
    "from the data. A zero says that nothing more is learnt only if the output was fixed before the data were seen.",
    "section 4.3, the constant mechanism; Proposition 2.4.12",
)
def zero_budget_no_noise(specification: Specification) -> str:
    """The budget is 0, without a delta, and the universes leave something that could change."""
    budget, output = specification.budget, specification.output_premetric
    delta = output.parameter if output.kind.takes_off else None
    zero = budget.value == 0 or (isinstance(budget.value, GaussianCurve) and budget.value.mu == 0)
    if not zero or delta or nothing_can_change(specification):
        return ""
    return (
        f"{spent(specification)} is met only by a mechanism whose output does not depend on the data, beyond "
        "what the universes hold fixed."
    )


@rule(
    "realised-not-policy",
    "budget",
    "A specification holds for every universe, and what a custodian decides is the whole function from universes to "
    "budgets. The number belongs to the data at hand; with other data it would have been another one.",
    "section 2.4.1; Corollary A.2.2",
)
def realised_not_policy(specification: Specification) -> str:
    """The budget is given by a formula of the invariants."""
    varies = specification.budget.varies
    return (
        f"{spent(specification)} holds for these data. Other data may have another number: it is {varies}."
        if varies
        else ""
    )


@rule(
    "universe-dependent-budget",
    "budget",
    "Data in a universe with a larger budget are protected less, and the one number that is quoted does not say whose "
    "they are.",
    "sections 2.4.1 and 2.4.6",
)
def universe_dependent_budget(specification: Specification) -> str:
    """Budgets are listed for each universe, and differ."""
    listed = specification.budget.by_universe
    if len(set(listed)) < 2:
        return ""
    lowest, highest = short(min(listed)), short(max(listed))
    return f"Budgets of the {many(len(listed), 'universe')} range from {lowest} to {highest}."


@rule(
    "budget-of-overlapping-universes",
    "budget",
    "Which budgets apply to the data tells them from datasets that they are compared with. The whole list of universes "
    "and budgets may be published; which of them apply may not.",
    "Corollary A.2.2",
)
def budget_of_overlapping_universes(specification: Specification) -> str:
    """Universes overlap and have different budgets, so that the realised budget depends on more than the universe."""
    budget, universes = specification.budget, specification.multiverse.universes
    if budget.varies and universes and not budget.by_universe:
        overlap = any(set(a) & set(b) for a, b in itertools.combinations(universes, 2))
        return "Universes overlap, and the budget of each is not listed." if overlap else ""
    answer = may_publish_budget(specification)
    return "" if answer else f"{answer.steps[-1].words}."


@rule(
    "conversion-unnamed",
    "budget",
    "An epsilon at a delta usually comes from another budget by a formula, and formulas differ: from rho = 2.63 the "
    "classical one gives 18.20 at delta = 1e-10, a tighter one 17.44.",
    "section 3.3; Bun and Steinke 2016, Proposition 1.3",
)
def conversion_unnamed(specification: Specification) -> str:
    """The standard has a delta above 0, and the budget does not say how its epsilon was computed."""
    output = specification.output_premetric
    if not output.kind.takes_off or not output.parameter or specification.budget.conversion:
        return ""
    return f"How {spent(specification)} was computed is not stated."
