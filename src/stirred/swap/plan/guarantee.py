"""Specifies the guarantee that a swap satisfies (Theorem 3.2.4), in its five parts, with its findings.

Epsilon depends on the rates and on the strata alone, so a typed size of the largest stratum gives the whole
specification of a plan whose data are not read. Keep in mind: it is then the guarantee of data with such a stratum;
whether the data have one, the release says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred.errors import listed
from stirred.releases.folder.documents import allowed_findings
from stirred.spec import Budget, Domain, InputPremetric, Invariant, Multiverse, OutputPremetric, Specification, lint
from stirred.spec.specification import NOT_FOR_RELEASE
from stirred.swap.checking.movement import Movement
from stirred.swap.checking.movement import words as movement_words
from stirred.swap.data.counting import RatesByStratum, Strata, one_rate
from stirred.swap.data.dataset import constant_columns, merged_name, stratum_columns
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan


def specify(
    plan: SwapPlan,
    held: Sequence[str],
    linked: Mapping[str, Sequence[str]],
    strata: Strata,
    movement: Movement | None,
    for_release: bool = True,
    rates: RatesByStratum | None = None,
    alone: int | None = None,
) -> Specification:
    """The specification of this plan on data with these strata; ``linked`` has each linked table's held columns.

    ``movement`` is None for releases of versions before 0.4, which did not state how many records change. ``rates`` are
    those of a plan with rates by rule. ``alone`` is the number of counts by match and swap variables that are of one
    record; None for releases of versions before 0.7, which did not state it.
    """
    changeable = bool(strata.changeable.any())
    stated = Specification(
        domain=_domain(plan, held, linked),
        multiverse=_multiverse(plan, held, linked),
        input_premetric=InputPremetric(
            unit=plan.unit,
            words=f"The number of {plan.records} in which two files of equal size differ, whatever the order of rows "
            f"(half the multiset difference, d_HamS at the resolution of the {plan.unit}). "
            + (
                "Within a universe no two different files are one record apart; the nearest are two apart, so a "
                "statement about one counterfactual uses twice the budget."
                if changeable
                else "Here no other file shares the invariants: there is no counterfactual, and nothing is protected."
            ),
        ),
        output_premetric=OutputPremetric("multiplicative"),
        budget=_budget(plan, strata, movement, rates),
        nearest=2 if changeable else math.inf,
        covers=("the released records, and every table of them",),
        facts=_facts(plan, strata, movement, rates, alone),
        marks=() if for_release else (NOT_FOR_RELEASE,),
    )
    return stated.with_findings(*lint(stated), *allowed_findings(plan.allow))


def epsilon_of(plan: SwapPlan, strata: Strata, rates: RatesByStratum | None) -> float:
    """The epsilon of the plan on data with these strata."""
    if rates is not None:
        return rates.epsilon(strata)
    return epsilon(strata.largest, one_rate(plan))


def _budget(plan: SwapPlan, strata: Strata, movement: Movement | None, rates: RatesByStratum | None) -> Budget:
    if rates is None:
        varies = "a function of the largest stratum with two different records, which the invariants determine"
        said = (
            f"Theorem 3.2.4{_for_the_first(plan)} at swap rate {plan.rate}, largest stratum with two different records "
            f"b = {strata.largest:,}"
        )
    else:
        varies = "a function of the strata and of the rates in them, which the invariants determine"
        said = (
            f"the theorem for rates by rule{_for_the_first(plan)}, stratum by stratum; the first rate that fits "
            f"counts: {plan.rate_words}"
        )
        if strata.changeable.any():
            rate, size = _deciding(strata, rates)
            said += f". Epsilon is decided by the rate {rate} in a stratum of b = {size:,} records"
    at = "At this rate" if rates is None and not plan.rounds else "At these rates"
    return Budget(
        epsilon_of(plan, strata, rates),
        varies=varies,
        conversion=said
        + ("; a" if rates is None else "; it is a")
        + " function of the invariants, so that publishing it costs nothing (Corollary A.2.2)"
        + _later(plan)
        + (f". {at} {movement_words(movement)}; epsilon does not depend on that" if movement else ""),
    )


def _for_the_first(plan: SwapPlan) -> str:
    return f" for the first of {len(plan.rounds) + 1} rounds" if plan.rounds else ""


def _later(plan: SwapPlan) -> str:
    if not plan.rounds:
        return ""
    return (
        f". The guarantee is that of the first round alone. Later rounds swap {_later_words(plan)}; each works on what "
        "the round before gave and looks at nothing else, so it adds nothing to epsilon (post-processing), and only "
        "what the last round gave is published"
    )


def _later_words(plan: SwapPlan) -> str:
    return "; then ".join(later.words for later in plan.rounds)


def _deciding(strata: Strata, rates: RatesByStratum) -> tuple[Fraction, int]:
    """The rate that decides epsilon, and the size of the stratum in which it does."""
    epsilons = rates.epsilons(strata)
    rule = max(range(len(epsilons)), key=lambda one: epsilons[one])
    return rates.rates[rule], rates.largest(strata.changeable)[rule]


def _facts(
    plan: SwapPlan, strata: Strata, movement: Movement | None, rates: RatesByStratum | None, alone: int | None
) -> tuple[tuple[str, str | int | bool], ...]:
    facts: dict[str, str | int | bool] = {"mechanism": "permutation-swapping"}
    if rates is None:
        facts |= {"rate": str(plan.rate), "largest_stratum": strata.largest}
    else:
        facts |= {"rates": plan.rate_words, "selected_share": f"{float(rates.mean):.3g}"}
        facts |= {"largest_stratum": strata.largest_changeable}
        if strata.changeable.any():
            rate, size = _deciding(strata, rates)
            facts |= {"deciding_rate": str(rate), "deciding_stratum": size}
    if plan.rounds:
        facts |= {"rounds": len(plan.rounds) + 1, "later_rounds": _later_words(plan)}
        if movement is not None:
            facts["selected_share"] = f"{float(movement.rate):.3g}"
    facts |= {
        "match": ", ".join(stratum_columns(plan)),
        "swap": ", ".join(plan.swap),
        "nothing_can_change": not bool(strata.changeable.any()),
    }
    if movement is not None:
        facts["changed_share"] = movement.changed_text
        facts["unchangeable_share"] = movement.unchangeable_text
    if alone is not None:
        facts["alone_by_match_and_swap"] = alone
    facts |= plan.origin()
    return tuple(facts.items())


def _domain(plan: SwapPlan, held: Sequence[str], linked: Mapping[str, Sequence[str]]) -> Domain:
    variables = [*plan.match, *plan.swap, *held]
    words = f"All files of {plan.records} with the variables {listed(variables)}."
    if linked:
        unit = "row of the main table" if plan.unit == "record" else plan.unit
        words += f" A record is a {unit} together with its rows in {listed(linked)}."
    return Domain(
        plan.dataset or f"files of {plan.records}, of no named dataset",
        variables=(*variables, *_linked_columns(linked)),
        starts="the file that was swapped, after collection, editing and imputation",
        record=plan.unit,
        free=True,
        words=words
        + " The guarantee starts at the file that was swapped: collection, editing and imputation came before it and "
        "are not covered; a respondent who touches several records is several units.",
    )


def _linked_columns(linked: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the linked tables and of their columns, as variables of the record."""
    return [name for table, columns in linked.items() for name in (table, *(f"{table}.{c}" for c in columns))]


def _multiverse(plan: SwapPlan, held: Sequence[str], linked: Mapping[str, Sequence[str]]) -> Multiverse:
    whole = f", each with all of its rows in {listed(linked)}" if linked else ""
    fixed = [*plan.match, *held]
    first = f"the number of {plan.records}" + (f" by {listed(fixed)}" if fixed else "") + whole
    strata = stratum_columns(plan)
    second = f"the number of {plan.records} by {listed([*strata, *plan.swap])}"
    return Multiverse(
        (
            Invariant(plan.unit, by=(*fixed, *_linked_columns(linked)), words=first),
            Invariant(plan.unit, by=(*strata, *plan.swap), words=second),
        ),
        words=f"Two files are compared only if they agree exactly on (1) {first}, and (2) {second}. These counts are "
        "published as they are; nothing is promised about what they reveal." + _merging(plan),
    )


def _merging(plan: SwapPlan) -> str:
    if plan.coarsen is None:
        return ""
    others = constant_columns(plan)
    within = f", separately for each {listed(others)}" if others else ""
    return (
        f" '{merged_name(plan)}' follows from the plan and from counts of match values: {plan.coarsen.words}{within}. "
        f"'{plan.coarsen.column}' itself is held, so its own counts by {listed(plan.swap)} are not kept."
    )


def specify_typed(plan: SwapPlan, largest: int) -> Specification:
    """The specification of a plan on data whose largest stratum with two different records has ``largest`` records."""
    if isinstance(largest, bool) or not isinstance(largest, int) or not 2 <= largest < 1 << 40:
        raise errors.report_option("--largest-stratum", "must be a whole number from 2 on")
    if plan.rates:
        raise errors.report_option(
            "--largest-stratum", "does not say enough for a plan with rates by rule: epsilon depends on every stratum"
        )
    if plan.hold == "rest" or any(table.hold == "rest" for table in plan.linked):
        raise errors.report_option(
            "--largest-stratum", "needs a plan that names its held columns: hold = 'rest' names them by the file"
        )
    linked = {table.name: tuple(table.hold) for table in plan.linked}
    strata = Strata(np.array([largest]), np.array([True]), np.array([True]))
    return specify(plan, tuple(plan.hold), linked, strata, None)
