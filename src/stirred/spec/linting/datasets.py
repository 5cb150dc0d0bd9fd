"""Lint rules about domain, multiverse and input premetric: which datasets there could have been, which are compared,
and who is protected against which changes."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from stirred.spec import facts
from stirred.spec.blocks import Multiverse
from stirred.spec.exact import LARGE, near, written
from stirred.spec.invariant import missing, plural
from stirred.spec.linting.rules import (
    fall,
    joined,
    many,
    short,
    shown_at,
    smaller,
    spent,
    spent_at,
)
from stirred.spec.order import finite_flavors
from stirred.spec.order.conversions import KNOWN_UNITS, is_part
from stirred.spec.specification import Specification, taken_as_known

PROCESSED = re.compile(r"(?<!un-)(?<!not )\b(edit|imput|clean|coded\b|coding\b|dedup|top-?cod|clip|sampl|weight)", re.I)
"""Steps between the answers and the file, as they are called where a guarantee starts."""


# -- the domain ------------------------------------------------------------------------------------------------------


def domain_restricted(specification: Specification) -> str:
    """The domain names steps that made it smaller before the guarantee starts, such as clipping or top-coding."""
    steps = specification.domain.restricted_by
    return f"The domain was made smaller before the guarantee starts, by: {joined(steps)}." if steps else ""


def late_start(specification: Specification) -> str:
    """The domain does not say where the guarantee starts, or says that it starts after editing, imputation or another
    step of processing. Domains whose datasets are listed one by one are not asked."""
    domain = specification.domain
    if domain.datasets:
        return ""
    if not domain.starts:
        return "The specification does not say where recording the data ends and the mechanism begins."
    # "The answers, before editing" starts early: what follows the word is still to come.
    if PROCESSED.search(re.split(r"\bbefore\b", domain.starts)[0]):
        return f"The guarantee starts at {domain.starts.rstrip('.')}: what was done until then is not covered."
    return ""


def late_start_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the start was moved and the budget is smaller."""
    now, then = specification.domain.starts, before.domain.starts
    if not (now and then) or now == then or not smaller(specification, before):
        return ""
    return f"{fall(specification, before)} and the start moves from '{then}' to '{now}'."


# -- the multiverse --------------------------------------------------------------------------------------------------


def nothing_can_change(specification: Specification) -> str:
    """The fact `nothing_can_change` is true, or no universe holds two datasets at a finite distance."""
    if specification.fact.get(facts.NOTHING_CAN_CHANGE) is True:
        if specification.fact.get(facts.MECHANISM) == facts.PERMUTATION_SWAPPING:
            return (
                "No stratum has both two held and two swap values: the release is the file itself, and the invariants "
                "reveal it whole."
            )
        return "The invariants leave one dataset only: anyone who knows them knows the data."
    if nearest(specification) == math.inf:
        return "No universe holds two datasets at a finite distance: there is no counterfactual to compare with."
    return ""


def invariants_many(specification: Specification) -> str:
    """The multiverse declares an invariant, even one: a single table can hold millions of counts."""
    held = specification.multiverse.invariants
    if not held:
        return ""
    taken = taken_as_known(specification)
    rest = tuple(one for one in held if one not in taken)
    said = [f"{many(len(rest), 'invariant')} may be published exactly: {joined(rest)}."] if rest else []
    said += [f"Held fixed, taken as known and not protected, though not released: {joined(taken)}."] if taken else []
    return " ".join(said)


def hidden_invariant(specification: Specification) -> str:
    """Distances are infinite between files of different sizes and no declared invariant fixes their size; or a universe
    of listed datasets falls into groups that no finite distance connects."""
    premetric, multiverse = specification.input_premetric, specification.multiverse
    if specification.domain.objects == "distributions":
        return ""  # only what is paired is connected, by design; which distribution it was is no fact about the data
    if hidden := missing(multiverse.invariants, premetric.fixes(), specification.domain.nested):
        counted = plural(premetric.unit) + (f" in a {' or a '.join(premetric.stays_in)}" if premetric.stays_in else "")
        return (
            f"Files with different numbers of {counted} are infinitely far apart, so {hidden[-1]} is held "
            "fixed without being declared."
        )
    if premetric.kind == "records":
        return ""
    for universe in multiverse.universes or (specification.domain.datasets,):
        if premetric.kind == "table" and (parts := _groups(specification, universe)) > 1:
            return (
                f"The universe of {', '.join(universe[:4])}{' ...' if len(universe) > 4 else ''} falls into {parts} "
                "groups that no finite distance connects: which group holds the data may be published."
            )
    return ""


def _groups(specification: Specification, universe: tuple[str, ...]) -> int:
    """The number of connected parts of a universe."""
    part = {name: {name} for name in universe}
    for a, b, _ in specification.input_premetric.distances:
        if a in part and b in part and part[a] is not part[b]:
            part[a] |= part[b]
            for name in part[b]:
                part[name] = part[a]
    return len({id(names) for names in part.values()})


def neighbours_in_empty_universes(specification: Specification) -> str:
    """Only neighbours are compared, something is held fixed, and the nearest datasets of a universe are not known to be
    one apart."""
    premetric, multiverse = specification.input_premetric, specification.multiverse
    if not (multiverse.invariants or multiverse.universes) or premetric.kind == "metric" or premetric.sharpened:
        return ""
    apart = nearest(specification)
    if apart == premetric.scale or (premetric.kind == "table" and apart is not None and apart < math.inf):
        return ""
    how = "that any two share a universe is not known" if apart is None else "no universe holds two of them"
    return f"Only datasets that differ in one {premetric.unit} are compared, and {how}: the guarantee may be empty."


def nearest(specification: Specification) -> Fraction | float | None:
    """The smallest positive distance inside a universe: as stated, or read off a table; None if it is not known."""
    listed = specification.input_premetric.kind == "table" and specification.domain.datasets
    if specification.nearest is not None or not listed or specification.multiverse.invariants:
        return specification.nearest
    return finite_flavors.nearest(specification)


def more_invariants_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the budget is smaller, and something is held fixed that was not before."""
    if not smaller(specification, before):
        return ""
    said = fall(specification, before)
    if specification.multiverse.universes or before.multiverse.universes:
        if not _divided(specification.multiverse, before.multiverse):
            return ""
        return f"{said}, and the listed universes are parts of the earlier ones: fewer datasets are compared."
    nesting = {*specification.domain.nested, *before.domain.nested}
    now, then = specification.flavor.invariants(), before.flavor.invariants()
    added, dropped = missing(then, now, nesting), missing(now, then, nesting)
    if not added:
        return ""
    said += f", and more is held fixed: {joined(added)}."
    return said + (f" No longer held fixed: {joined(dropped)}." if dropped else "")


def _divided(now: Multiverse, then: Multiverse) -> bool:
    """Whether the universes of ``now`` are parts of those of ``then``, and not the same."""
    if now.universes == then.universes or not now.universes:
        return False
    return not then.universes or all(
        any(set(universe) <= set(other) for other in then.universes) for universe in now.universes
    )


def finer_strata_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification of a swap: the budget is smaller, the match variables differ and the largest
    stratum is smaller."""
    match, old_match = specification.fact.get(facts.MATCH), before.fact.get(facts.MATCH)
    size, old_size = specification.number(facts.LARGEST_STRATUM), before.number(facts.LARGEST_STRATUM)
    if match is None or old_match is None or match == old_match or size is None or old_size is None:
        return ""
    if size >= old_size or not smaller(specification, before):
        return ""
    said = (
        f"Strata by {match or 'nothing'} take the place of strata by {old_match or 'nothing'}: the largest has "
        f"{int(size):,} records and not {int(old_size):,}, and {fall(specification, before)}"
    )
    rate, old_rate = specification.number(facts.RATE), before.number(facts.RATE)
    if rate is not None and old_rate is not None and rate < old_rate:
        said += f", although fewer records move (rate {short(rate)}, before {short(old_rate)})"
    return said + "."


HOMES = ("household", "family")
AT_HOME = tuple(("person", home) for home in HOMES)
COUNTED_HOMES = (*HOMES, "housing unit", "dwelling")
USUAL_SIZES = (2, 4, 10)
"""Of groups that bounds are told for, where a larger one is declared to be possible."""


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


def finer_unit_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: the unit is part of the earlier one and the budget is smaller."""
    now, then = specification.input_premetric, before.input_premetric
    if not is_part(now, then) or not smaller(specification, before):
        return ""
    return (
        f"The unit was one {then.unit} and is one {now.unit}, of which one {then.unit} may have many, while "
        f"{fall(specification, before)}."
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


def units_after_imputation(specification: Specification) -> str:
    """The fact `imputed` is true or `records_per_respondent` is above 1, and the unit is not the respondent."""
    unit = specification.input_premetric.unit
    touched = specification.number(facts.RECORDS_PER_RESPONDENT)
    if unit == "respondent" or (specification.fact.get(facts.IMPUTED) is not True and (touched or 1) <= 1):
        return ""
    said = f"The unit is one {unit} of the file after imputation, not one respondent"
    if touched is None or touched <= 1:
        return f"{said}; how many records one respondent's answers enter is not stated."
    said += f", whose answers enter up to {int(touched):,} records"
    if specification.budget.is_curve or not specification.input_premetric.sharpened:
        return f"{said}; the specification says nothing about changes in more than one record."
    return f"{said}: the bound for a respondent is {spent_at(specification, touched)}, not {spent(specification)}."


def nearest_not_one(specification: Specification) -> str:
    """The nearest datasets of a universe are a finite distance above 1 apart."""
    apart = specification.nearest
    if apart is None or not 1 < apart < math.inf or specification.budget.is_curve:
        return ""
    return (
        f"The nearest datasets that agree on all that is held fixed are {near(apart):g} apart. Between them the bound "
        f"is {spent_at(specification, apart)}, not {spent(specification)}."
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


def weaker_distance_than(specification: Specification, before: Specification) -> str:
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
