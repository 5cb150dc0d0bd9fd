"""Lint rules about the standard (the output premetric) and the budget, what the budget covers, and how it was chosen.

Those about swapping (Algorithm 3.2.1 and Theorem 3.2.4) go by the facts that a swap states. With b the size of the
largest stratum that holds two different records and o = p/(1-p) the odds of the swap rate, epsilon = max(ln(b+1) - ln
o, ln o). It is smallest, ln(b+1)/2, where o squared is b+1. With rates by rule epsilon is the largest over rates, each
with the largest stratum in which it occurs: the facts name the rate and stratum that decide.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import facts
from stirred.spec.algebra import may_publish_budget
from stirred.spec.blocks import OutputPremetric
from stirred.spec.exact import display, display_down, near
from stirred.spec.linting.datasets import nothing_can_change
from stirred.spec.linting.rules import fall, joined, letter, many, short, smaller, spent
from stirred.spec.specification import BLOCKS, Specification

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


def parameters_from_this_data(specification: Specification) -> str:
    """The fact `parameters_from` is 'this data', or `looked_at` is 'values'."""
    if specification.fact.get(facts.PARAMETERS_FROM) == facts.THIS_DATA:
        chosen = f"{_parameters(specification)} were chosen by looking at these data"
    elif specification.fact.get(facts.LOOKED_AT) == facts.VALUES:
        chosen = "Choices in the plan were made by looking at values of these data"
    else:
        return ""
    return f"{chosen}: the guarantee is void as a statement about the whole procedure."


def formats_from_this_data(specification: Specification) -> str:
    """The fact `looked_at` is 'types and formats', and `parameters_from` is not 'this data'."""
    fact = specification.fact
    if fact.get(facts.LOOKED_AT) != facts.TYPES_AND_FORMATS or fact.get(facts.PARAMETERS_FROM) == facts.THIS_DATA:
        return ""
    return (
        "Types and formats were chosen by looking at these data: which columns are numbers, how missing cells are "
        "written and which columns have some. The guarantee holds given these choices, among data for which they "
        "would have been the same; what they tell is not protected."
    )


def parameters_unexplained(specification: Specification) -> str:
    """A mechanism is named, and the fact `parameters_from` is not stated."""
    if facts.MECHANISM not in specification.fact or specification.fact.get(facts.PARAMETERS_FROM):
        return ""
    return (
        f"{_parameters(specification)}: where they came from is not stated. If they were tuned on these data the "
        "guarantee is void."
    )


def _parameters(specification: Specification) -> str:
    """What was chosen, as far as it is stated."""
    mechanism = specification.fact.get(facts.MECHANISM, "the mechanism")
    if mechanism != facts.PERMUTATION_SWAPPING:
        return f"The parameters of {mechanism}"
    if facts.RATES in specification.fact:
        return "The rules for swap rates and the variables"
    rate = specification.fact.get(facts.RATE)
    return "The swap rate and variables" if rate is None else f"The swap rate {rate} and the variables"


def later_releases_not_covered(specification: Specification) -> str:
    """The fact `end_to_end` is false, or `products_not_covered` names products."""
    left_out = specification.fact.get(facts.PRODUCTS_NOT_COVERED)
    if not left_out and specification.fact.get(facts.END_TO_END) is not False:
        return ""
    covered = f"covers {joined(specification.covers)}" if specification.covers else "does not cover all releases"
    also = f"; not covered: {left_out}" if left_out else "; whatever else is released from the same data is not covered"
    return f"The budget, {spent(specification)}, {covered}{also}."


def marks(specification: Specification) -> str:
    """The specification carries a mark, such as the one of a seeded source."""
    return f"Marked: {joined(specification.marks)}." if specification.marks else ""


def different_flavors_than(specification: Specification, before: Specification) -> str:
    """Against another specification: the first four blocks differ somewhere, so that the budgets are not comparable."""
    differ = [name.replace("_", " ") for name in BLOCKS[:-1] if getattr(specification, name) != getattr(before, name)]
    if not differ:
        return ""
    return (
        f"{spent(specification)} and {spent(before)} are not comparable as numbers: the two differ in "
        f"{' and '.join(differ)}."
    )


def _swap(specification: Specification) -> tuple[Fraction, int] | None:
    """Rate and largest stratum of a permutation swap in which something can change; by rule those that decide."""
    if specification.fact.get(facts.MECHANISM) != facts.PERMUTATION_SWAPPING:
        return None
    by_rule = facts.RATE not in specification.fact and facts.RATES in specification.fact
    rate = specification.number(facts.DECIDING_RATE if by_rule else facts.RATE)
    largest = specification.number(facts.DECIDING_STRATUM if by_rule else facts.LARGEST_STRATUM)
    return None if rate is None or not largest else (rate, int(largest))


def rate_zero_or_one(specification: Specification) -> str:
    """A swap has rate 0 or 1 and a stratum with two different records."""
    stated = _swap(specification)
    return f"At rate {stated[0]} no finite epsilon holds." if stated and stated[0] in (0, 1) else ""


def rate_above_best(specification: Specification) -> str:
    """A swap has a rate above that of the smallest epsilon, and below 1."""
    stated = _swap(specification)
    if not stated or stated[0] >= 1:
        return ""
    rate, largest = stated
    odds = rate / (1 - rate)
    if odds**2 <= largest + 1:
        return ""
    root = math.sqrt(largest + 1)
    lower = (largest + 1) / (odds + largest + 1)
    return (
        f"The rate {rate} lies above {root / (root + 1):.4g}, the one with the smallest epsilon for a largest stratum "
        f"of {largest:,} records: a rate of {float(lower):.4g} gives the same epsilon and distorts less."
    )


def unattainable_epsilon(specification: Specification) -> str:
    """A swap claims, for records replaced in files of equal size, an epsilon below the smallest that any rate has."""
    stated = specification.number(facts.LARGEST_STRATUM)
    premetric = specification.input_premetric
    theorem = (
        specification.fact.get(facts.MECHANISM) == facts.PERMUTATION_SWAPPING
        and specification.output_premetric.kind.pure
        and (premetric.kind, premetric.bounded, premetric.scale) == ("records", True, 1)
    )
    if not theorem or not stated:
        return ""
    smallest = math.log(int(stated) + 1) / 2
    if specification.budget.number >= smallest * (1 - 1e-12):
        return ""
    return (
        f"{spent(specification)} is claimed; with a largest stratum of {int(stated):,} no rate gives less than "
        f"{display_down(smallest)}."
    )


def capped_or_pairwise_swaps(specification: Specification) -> str:
    """The fact `cap_on_swaps` names a limit or `pairwise` is true, and the budget is a finite one on ratios of
    probabilities: epsilon without delta, or rho."""
    if not specification.output_premetric.kind.same_support or specification.budget.number == math.inf:
        return ""
    cap = specification.number(facts.CAP_ON_SWAPS)
    seen = [] if cap is None else [f"at most {many(int(cap), 'swap')} can be made"]
    seen += ["records are swapped in separate pairs only"] * (specification.fact.get(facts.PAIRWISE) is True)
    if not seen:
        return ""
    return f"{' and '.join(seen)}, and yet {spent(specification)} is claimed."


def few_change(specification: Specification) -> str:
    """The fact `changed_share` is below a quarter of the rate (by rule or in several rounds: of `selected_share`), or
    `unchangeable_share` above a quarter."""
    rate = specification.number(facts.SELECTED_SHARE) or specification.number(facts.RATE)
    changed = specification.number(facts.CHANGED_SHARE)
    fixed = specification.number(facts.UNCHANGEABLE_SHARE)
    if rate is None or changed is None or fixed is None or (4 * changed >= rate and 4 * fixed <= 1):
        return ""
    return (
        f"{display(100 * changed)}% of the records are expected to end with other swap values, at a rate of "
        f"{display(100 * rate)}%, and {display(100 * fixed)}% never can."
    )


def strata_of_duplicates(specification: Specification) -> str:
    """The fact `strata_of_duplicates` is above 0."""
    found = specification.number(facts.STRATA_OF_DUPLICATES)
    if not found:
        return ""
    strata = "1 stratum holds" if found == 1 else f"{int(found):,} strata hold"
    return f"{strata} nothing but records that are alike: the invariants reveal them whole."


def alone_by_match_and_swap(specification: Specification) -> str:
    """The fact `alone_by_match_and_swap` is above 0."""
    found = specification.number(facts.ALONE)
    if not found:
        return ""
    by = ", ".join(str(specification.fact[name]) for name in (facts.MATCH, facts.SWAP) if specification.fact.get(name))
    return (
        f"{many(int(found), specification.input_premetric.unit)} {'stands' if found == 1 else 'stand'} alone in the "
        f"counts by {by}, which are published exactly."
    )


def uniques(specification: Specification) -> str:
    """The fact `uniques` is above 0."""
    found = specification.number(facts.UNIQUES)
    if not found:
        return ""
    records = specification.number(facts.RECORDS)
    share = f", {display(100 * found / records, 1)}% of {int(records):,}," if records else ""
    have = "has" if found == 1 else "have"
    return (
        f"{many(int(found), specification.input_premetric.unit)}{share} {have} values that no other has, in a table "
        "that is published exactly."
    )
