"""Lint rules about how a mechanism was made, what its budget covers, what it is compared with; and about swapping.

Those about swapping (Algorithm 3.2.1 and Theorem 3.2.4) go by the facts that a swap states. With b the size of the
largest stratum that holds two different records and o = p/(1-p) the odds of the swap rate, epsilon = max(ln(b+1) - ln
o, ln o). It is smallest, ln(b+1)/2, where o squared is b+1. With rates by rule epsilon is the largest over rates, each
with the largest stratum in which it occurs: the facts name the rate and stratum that decide.
"""

from __future__ import annotations

import math
from fractions import Fraction

from stirred.spec import facts
from stirred.spec.exact import display, display_down
from stirred.spec.linting.rules import joined, many, spent
from stirred.spec.specification import BLOCKS, Specification


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
