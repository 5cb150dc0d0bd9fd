"""Lint rules about the input premetric: who is protected, and against which changes."""

from __future__ import annotations

import math
import re

from stirred.spec import facts
from stirred.spec.distances import KNOWN_UNITS, is_part
from stirred.spec.exact import LARGE, near, written
from stirred.spec.invariant import plural
from stirred.spec.lint_rules import also_before, comparison, fall, number, rule, shown_at, smaller, spent, spent_at
from stirred.spec.specification import Specification

HOMES = ("household", "family")
AT_HOME = tuple(("person", home) for home in HOMES)
COUNTED_HOMES = (*HOMES, "housing unit", "dwelling")
USUAL_SIZES = (2, 4, 10)
"""Of groups that bounds are told for, where a larger one is declared to be possible."""


@rule(
    "finer-unit",
    "input premetric",
    "The finer the unit, the smaller is the budget of the same noise. A holder of many units is protected that many "
    "times less: epsilon is multiplied by their number, rho by its square.",
    "section 4.3, third way; Proposition 2.4.15",
)
def finer_unit(specification: Specification) -> str:
    """The unit is declared to be part of a coarser one, or is an event, a message, a day of a user, a transaction, an
    edge, an employee or an establishment. Persons in households are the rule `household-not-covered`."""
    premetric = specification.input_premetric
    declared = [(u, most) for u, most in premetric.within if (premetric.unit, u) not in AT_HOME]
    if declared:
        return " ".join(_coarser(specification, unit, most) for unit, most in declared)
    known = [coarse for fine, coarse in KNOWN_UNITS if fine == premetric.unit and (fine, coarse) not in AT_HOME]
    return _coarser(specification, " or one ".join(known), None) if known else ""


def _coarser(specification: Specification, unit: str, most: int | None) -> str:
    """What the guarantee of the finer unit is for a coarser one."""
    fine = specification.input_premetric.unit
    said = f"The unit is one {fine} and not one {unit}"
    if most is None:
        return f"{said}; at most how many {plural(fine)} one {unit} has is not stated."
    said += f", which has up to {most:,} {plural(fine)}"
    if specification.budget.is_curve or not specification.input_premetric.sharpened:
        return f"{said}; the specification says nothing about changes in more than one {fine}."
    if specification.budget.number == math.inf:
        return f"{said}."
    return f"{said}; {_together(specification, most)}."


def _together(specification: Specification, most: int) -> str:
    """The bounds for small groups first, since the largest possible one may be far from any that exists."""
    fine, huge = plural(specification.input_premetric.unit), specification.budget_at(most) > LARGE
    sizes = [size for size in USUAL_SIZES if size < most]
    first, *rest = sizes if sizes and huge else [*sizes, most]
    said = [f"{first:,} {fine} have the bound {spent_at(specification, first)}"]
    said += [f"{size:,} have {shown_at(specification, size)}" for size in rest]
    together = (
        f"together {' and '.join([', '.join(said[:-1]), said[-1]] if rest else said)}, not {spent(specification)}"
    )
    return together + (
        f"; for {most:,} it is beyond {LARGE:,}, which promises next to nothing" if sizes and huge else ""
    )


@also_before("finer-unit")
def finer_unit_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the unit is part of the earlier one and the budget is smaller."""
    now, then = specification.input_premetric, before.input_premetric
    if not is_part(now, then) or not smaller(specification, before):
        return ""
    return (
        f"The unit was one {then.unit} and is one {now.unit}, of which one {then.unit} may have many, while "
        f"{fall(specification, before)}."
    )


@rule(
    "household-not-covered",
    "input premetric",
    "What a household's members have in common, such as where they live and what they are to one another, changes for "
    "all of them at once. Protection of each person is weaker for the household by up to its size.",
    "section 4.3, third way; Proposition 2.4.15",
)
def household_not_covered(specification: Specification) -> str:
    """The unit is a person and there are households or families: named among the coarser units, counted by an
    invariant (also as housing units or dwellings), or by the fact `households`."""
    premetric = specification.input_premetric
    if premetric.unit != "person" or premetric.kind != "records":
        return ""
    declared = {unit: most for unit, most in premetric.within if unit in HOMES}
    if declared:
        return " ".join(_coarser(specification, unit, most) for unit, most in declared.items())
    counted = [str(i) for i in specification.multiverse.invariants if i.counts in COUNTED_HOMES]
    if counted:
        return (
            f"The unit is one person, yet homes are in the data ({counted[0]}); at most how many persons live in one "
            "is not stated."
        )
    return _coarser(specification, "household", None) if specification.fact.get(facts.HOUSEHOLDS) is True else ""


@rule(
    "units-after-imputation",
    "input premetric",
    "A respondent whose answers were used to fill in others changes several records at once, and is protected only as "
    "well as that many records are together: epsilon is multiplied by their number r, rho by r squared.",
    "sections 2.4.4 and 3.4.4; Proposition 2.4.15",
)
def units_after_imputation(specification: Specification) -> str:
    """The fact `imputed` is true or `records_per_respondent` is above 1, and the unit is not the respondent."""
    unit = specification.input_premetric.unit
    touched = number(specification, facts.RECORDS_PER_RESPONDENT)
    if unit == "respondent" or (specification.fact.get(facts.IMPUTED) is not True and (touched or 1) <= 1):
        return ""
    said = f"The unit is one {unit} of the file after imputation, not one respondent"
    if touched is None or touched <= 1:
        return f"{said}; how many records one respondent's answers enter is not stated."
    said += f", whose answers enter up to {int(touched):,} records"
    if specification.budget.is_curve or not specification.input_premetric.sharpened:
        return f"{said}; the specification says nothing about changes in more than one record."
    return f"{said}: the bound for a respondent is {spent_at(specification, touched)}, not {spent(specification)}."


@rule(
    "nearest-not-one",
    "input premetric",
    "What a test or a belief can gain depends on the budget at the distance of the counterfactual. Here none is at "
    "distance one, so the printed number by itself bounds no pair of datasets.",
    "Equation 2.3; Lemma B.3.4 for swapping",
)
def nearest_not_one(specification: Specification) -> str:
    """The nearest datasets of a universe are a finite distance above 1 apart."""
    apart = specification.nearest
    if apart is None or not 1 < apart < math.inf or specification.budget.is_curve:
        return ""
    return (
        f"The nearest datasets that agree on all that is held fixed are {near(apart):g} apart. Between them the bound "
        f"is {spent_at(specification, apart)}, not {spent(specification)}."
    )


@rule(
    "row-order-published",
    "input premetric",
    "Where a row stands can say whose it is. Distances that ignore the order protect against that only if the release "
    "has none; distances that count it do not protect it at all.",
    "Appendix A.4; Lemma B.3.3",
)
def row_order_published(specification: Specification) -> str:
    """The fact `row_order` is 'as in the input'; or distances depend on the order of records, and neither the fact
    `order_means` nor a start at the respondents or their devices says what a position means."""
    premetric = specification.input_premetric
    if specification.fact.get(facts.ROW_ORDER) == facts.AS_IN_THE_INPUT:
        said = "Released rows stand in the order of the confidential file"
        return f"{said}, and distances ignore that order." if not premetric.ordered else f"{said}."
    known = facts.ORDER_MEANS in specification.fact or re.search("respondent|device", specification.domain.starts)
    if premetric.kind != "records" or not premetric.ordered or known:
        return ""
    return (
        f"Files are {premetric.unit} by {premetric.unit} in order, so that two with the same "
        f"{plural(premetric.unit)} in another order count as different; nothing says what a position means."
    )


@comparison(
    "weaker-distance",
    "input premetric",
    "Distances that are larger, or infinite, allow the same mechanism a smaller number.",
    "Proposition 2.4.15; Appendix A.4",
)
def weaker_distance(specification: Specification, before: Specification) -> str:
    """Against an earlier specification in the same unit: the budget is smaller, and distances depend on the order,
    leave out files of other sizes or those in which a unit changes a coarser one, stop at neighbours or have a larger
    scale, which they did not before."""
    now, then = specification.input_premetric, before.input_premetric
    if (now.kind, now.unit) != (then.kind, then.unit) or not smaller(specification, before):
        return ""
    changes = []
    if now.kind == "records":
        changes += ["files in another order are now apart"] * (now.ordered > then.ordered)
        changes += ["files of different sizes are no longer compared"] * (now.bounded > then.bounded)
        changes += [
            f"files in which a {now.unit} changes its {coarse} are no longer compared"
            for coarse in now.stays_in
            if coarse not in then.stays_in
        ]
        # Along paths a metric adds up, so neighbours say as much, unless the paths lead out of the universe.
        kept = specification.output_premetric.kind.metric and specification.multiverse == before.multiverse
        free = not (specification.multiverse.invariants or specification.multiverse.universes)
        changes += ["only neighbours are compared"] * (then.sharpened > now.sharpened and not (kept and free))
    if now.scale > then.scale:
        changes.append(f"distances are {written(now.scale / then.scale)} times what they were")
    return f"{' and '.join(changes)}, while {fall(specification, before)}." if changes else ""
