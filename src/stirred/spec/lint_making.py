"""Lint rules about how a mechanism was made, what its budget covers, and what it is compared with."""

from __future__ import annotations

from stirred.spec import facts
from stirred.spec.lint_rules import comparison, joined, rule, spent
from stirred.spec.specification import BLOCKS, Specification


@rule(
    "parameters-from-this-data",
    "mechanism",
    "The guarantee is about a mechanism that was fixed before the data were seen. A mechanism that was built from them "
    "can copy them into its design: one that always gives the data itself as its constant output has a loss of zero.",
    "section 4.3, the constant mechanism",
    voids=True,
)
def parameters_from_this_data(specification: Specification) -> str:
    """The fact `parameters_from` is 'this data', or `looked_at` is 'values'."""
    if specification.fact.get(facts.PARAMETERS_FROM) == facts.THIS_DATA:
        chosen = f"{_parameters(specification)} were chosen by looking at these data"
    elif specification.fact.get(facts.LOOKED_AT) == facts.VALUES:
        chosen = "Choices in the plan were made by looking at values of these data"
    else:
        return ""
    return f"{chosen}: the guarantee is void as a statement about the whole procedure."


@rule(
    "formats-from-this-data",
    "mechanism",
    "A choice made by looking at the data tells what was seen. These choices tell little and can be listed, so the "
    "guarantee stays: it compares data for which the same would have been chosen, as if what they tell were one more "
    "invariant.",
    "section 4.3, the constant mechanism; section 2.4.3",
)
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


@rule(
    "parameters-unexplained",
    "mechanism",
    "The guarantee is about a mechanism that was fixed before the data were seen. The 2020 Census tuned its mechanism "
    "on 2010 data for that reason.",
    "section 4.3, the constant mechanism",
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


@rule(
    "later-releases-not-covered",
    "release",
    "Losses add up over everything that is released from the same data. A budget of some products bounds what those "
    "reveal, not what all of them together do.",
    "sections 2.5 and 4.4; Proposition 2.5.3",
)
def later_releases_not_covered(specification: Specification) -> str:
    """The fact `end_to_end` is false, or `products_not_covered` names products."""
    left_out = specification.fact.get(facts.PRODUCTS_NOT_COVERED)
    if not left_out and specification.fact.get(facts.END_TO_END) is not False:
        return ""
    covered = f"covers {joined(specification.covers)}" if specification.covers else "does not cover all releases"
    also = f"; not covered: {left_out}" if left_out else "; whatever else is released from the same data is not covered"
    return f"The budget, {spent(specification)}, {covered}{also}."


@rule(
    "marks",
    "release",
    "A mark is a reason why the guarantee does not hold for what was released.",
    "Definition 2.4.3: a mechanism's seed is secret",
    voids=True,
)
def marks(specification: Specification) -> str:
    """The specification carries a mark, such as the one of a seeded source."""
    return f"Marked: {joined(specification.marks)}." if specification.marks else ""


@comparison(
    "different-flavors",
    "all blocks",
    "Numbers on different scales have no order: which of the two is stronger must be asked block by block. Epsilons of "
    "swaps are comparable only under the same invariants.",
    "sections 3.5.2 and 4.3; Definition 2.4.4",
)
def different_flavors(specification: Specification, before: Specification) -> str:
    """Against another specification: the first four blocks differ somewhere, so that the budgets are not comparable."""
    differ = [name.replace("_", " ") for name in BLOCKS[:-1] if getattr(specification, name) != getattr(before, name)]
    if not differ:
        return ""
    return (
        f"{spent(specification)} and {spent(before)} are not comparable as numbers: the two differ in "
        f"{' and '.join(differ)}."
    )
