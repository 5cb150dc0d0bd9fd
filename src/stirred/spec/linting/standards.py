"""Lint rules about the output premetric (the standard by which laws of the output are compared) and the budget."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import facts
from stirred.spec.algebra import may_publish_budget
from stirred.spec.blocks import OutputPremetric
from stirred.spec.exact import display, near
from stirred.spec.linting.datasets import nothing_can_change
from stirred.spec.linting.rules import fall, letter, many, short, smaller, spent
from stirred.spec.specification import Specification

LARGE_DELTA = Fraction(1, 100_000)
"""Above it a delta is called large where the number of records is not known."""
EXPECTED = Fraction(1, 10)
"""Above it, delta times the number of records is too many records to publish whole."""


def weaker_standard(specification: Specification) -> str:
    """A delta, or a budget of total variation, is so large that publishing each record whole with that probability is
    expected to publish a tenth of a record or more (fact `records`); where that cannot be told, it is above
    1/100,000."""
    output, budget = specification.output_premetric, specification.budget
    delta = None if budget.is_curve else output.kind.told(budget.number, output.parameter)
    if not delta:
        return ""
    name = output.kind.parameter or letter(specification)
    records = specification.number(facts.RECORDS)
    premetric = specification.input_premetric
    if records is None or premetric.kind != "records" or premetric.scale < 1:
        if delta <= LARGE_DELTA:
            return ""
        return (
            f"What happens with a probability of {name} = {short(delta)} is not limited at all: publishing a record "
            "whole, for example."
        )
    if delta * records < EXPECTED:
        return ""
    return (
        f"With {name} = {short(delta)}, publishing each of {int(records):,} records whole with that probability meets "
        f"the specification, and publishes {display(delta * records)} of them on average."
    )


def weaker_standard_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: its standard asked for more, and the budget is smaller or in another letter."""
    now, then = specification.output_premetric, before.output_premetric
    if not _asks_less(now, then):
        return ""
    said = f"The standard was {then.symbol} and is {now.symbol}, which asks for less"
    if letter(specification) != letter(before):
        return f"{said}: {spent(before)} and {spent(specification)} are different scales."
    return f"{said}, while {fall(specification, before)}." if smaller(specification, before) else ""


def _asks_less(now: OutputPremetric, then: OutputPremetric) -> bool:
    """Whether a standard is known to ask for less than another."""
    now, then = now.simplified, then.simplified
    if now.kind != then.kind:
        return now.kind.asks_less_than(then.kind)
    if now.parameter is None or then.parameter is None:
        return False
    return now.kind.asks_less(now.parameter, then.parameter)


def no_events(specification: Specification) -> str:
    """The standard tells no two outputs apart."""
    if len(specification.output_premetric.partition) == 1:
        return "No two outputs are told apart, so that nothing is asked of the mechanism."
    return ""


def fewer_events(specification: Specification) -> str:
    """The standard looks at some events of the output only, or does not tell some outputs apart."""
    output = specification.output_premetric
    if output.events:
        return f"Of the output, only these events are looked at: {output.events}."
    groups, outputs = len(output.partition), sum(map(len, output.partition))
    if groups > 1:
        return f"{f'{outputs:,} outputs' if outputs > groups else 'Outputs'} are told apart as {groups:,} groups only."
    return ""


def not_likelihood_based(specification: Specification) -> str:
    """The kind of output premetric is declared not to speak about likelihood ratios (a Wasserstein distance)."""
    output, kind = specification.output_premetric, specification.output_premetric.kind
    words = (output.words or kind.words).rstrip(".")
    return "" if kind.likelihood else f"The standard, {kind.symbol}, does not bound ratios of probabilities: {words}."


def standard_does_not_compose(specification: Specification) -> str:
    """No rule for the budgets of several releases is declared for the kind of output premetric, and the budget is not a
    Gaussian curve, which has one."""
    kind = specification.output_premetric.kind
    if kind.composition is not None or isinstance(specification.budget.value, GaussianCurve):
        return ""
    return f"How budgets of {kind.symbol} add up over several releases is not known here."


def not_post_processing_immune(specification: Specification) -> str:
    """Processing the output can raise the kind of output premetric, by its declaration."""
    kind = specification.output_premetric.kind
    if kind.immune:
        return ""
    return f"Processing the output can raise {kind.symbol}: {spent(specification)} is about the raw output alone."


SURE = 1e-3
"""A best test with a smaller sum of errors is called certain."""


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
    bound = budget.value if budget.is_curve else specification.budget_at(distance)
    if output.kind.least_errors(bound, output.parameter) >= SURE:
        return ""
    allowed = output.kind.allows_words(bound)
    return f"Between datasets {near(distance):g} apart, {spent(specification)} allows {allowed}."


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


def realised_not_policy(specification: Specification) -> str:
    """The budget is given by a formula of the invariants."""
    varies = specification.budget.varies
    return (
        f"{spent(specification)} holds for these data. Other data may have another number: it is {varies}."
        if varies
        else ""
    )


def universe_dependent_budget(specification: Specification) -> str:
    """Budgets are listed for each universe, and differ."""
    listed = specification.budget.by_universe
    if len(set(listed)) < 2:
        return ""
    lowest, highest = short(min(listed)), short(max(listed))
    return f"Budgets of the {many(len(listed), 'universe')} range from {lowest} to {highest}."


def budget_of_overlapping_universes(specification: Specification) -> str:
    """Universes overlap and have different budgets, so that the realised budget depends on more than the universe."""
    budget, universes = specification.budget, specification.multiverse.universes
    if budget.varies and universes and not budget.by_universe:
        overlap = any(set(a) & set(b) for a, b in itertools.combinations(universes, 2))
        return "Universes overlap, and the budget of each is not listed." if overlap else ""
    answer = may_publish_budget(specification)
    return "" if answer else f"{answer.steps[-1].words}."


def conversion_unnamed(specification: Specification) -> str:
    """The standard has a delta above 0, and the budget does not say how its epsilon was computed."""
    output = specification.output_premetric
    if not output.kind.takes_off or not output.parameter or specification.budget.conversion:
        return ""
    return f"How {spent(specification)} was computed is not stated."
