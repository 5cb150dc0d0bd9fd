"""What recorded releases cost together, held against a limit.

Guarantees are composed as they are and after conversion to the limit's standard, since neither is always better. A
total that is not *known* to imply the limit does not keep it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from stirred import errors
from stirred.spec import Answer, Budget, Composition, Specification, compose
from stirred.spec.exact import display_down
from stirred.spec.order.implication import texts_in_order


@dataclass(frozen=True)
class Standing:
    """The total of all recorded releases, and how it compares with the limit."""

    entries: int
    counted: int
    withdrawn: int
    """How many entries were withdrawn; they stay counted."""
    total: Composition | None
    """None as long as no release has spent budget."""
    limit: Specification | None
    within: Answer | None
    """Whether the total implies the limit; None where one of them is missing."""
    left: Fraction | float | None
    """What a further release of the limit's own flavor may cost; None where subtracting budgets does not tell."""

    def __str__(self) -> str:
        """What is left, in a sentence."""
        if self.limit is None:
            return "There is no limit: releases of any cost are recorded."
        symbol = self.limit.output_premetric.kind.budget
        if self.within is not None and not self.within:
            return "The total is not known to keep the limit, so no further release can be recorded."
        if self.left is None:
            return (
                "The total keeps the limit. It has other units or another standard than the limit, so how much is left "
                "depends on the next release."
            )
        return f"Left for releases of the limit's own flavor: {symbol} = {display_down(self.left)}."


def held_against(
    limit: Specification, counted: list[Specification], total: Composition
) -> tuple[Answer, Fraction | float | None]:
    """Whether the releases together imply the limit, and how much is left, where subtracting budgets tells it.

    Two ways are tried, since neither is always better: compose and then convert to the limit's standard, or convert
    each release and then compose. The second adds a release of nothing under the limit to the others, which brings all
    of them to its standard.
    """
    answer = total.specification.implies(limit)
    reached = total.specification
    if not answer and limit.output_premetric.kind.composition == "sum":
        nothing = replace(limit, budget=Budget(0), marks=())
        try:
            reached = compose(*on_one_domain([nothing, *counted])).specification
        except errors.SpecificationError:
            return answer, None
        answer = reached.implies(limit) or answer
    same = (reached.input_premetric, reached.output_premetric) == (limit.input_premetric, limit.output_premetric)
    if not answer or not same or limit.budget.is_curve:
        return answer, None
    return answer, limit.budget.number - reached.budget.number if limit.budget.number < math.inf else math.inf


def above_limit(total: Specification, limit: Specification) -> tuple[str, str] | None:
    """Both budgets as text where the total is above the limit and they differ in nothing else but the variables read.

    A limit is about the whole dataset, so that fewer variables alone do not make a budget count for less.
    """

    def others(one: Specification) -> tuple[object, ...]:
        return one.domain.name, one.multiverse, one.input_premetric, one.output_premetric

    if others(total) != others(limit) or total.budget.is_curve or limit.budget.is_curve:
        return None
    if total.budget.number <= limit.budget.number:
        return None
    shown, most = texts_in_order(total.budget, limit.budget)
    return f"{total.output_premetric.kind.budget} = {shown}", most


def together(*specifications: Specification) -> Specification:
    """The guarantee that releases with these guarantees have together, as a ledger composes them.

    >>> from stirred.spec import flavors
    >>> together(flavors.pure("person").at(1), flavors.zcdp("person").at("0.25")).budget.shown()
    '0.72'
    """
    return compose(*on_one_domain(list(specifications))).specification


def on_one_domain(specifications: list[Specification]) -> list[Specification]:
    """The same guarantees, without saying where each starts if mechanisms say it differently.

    A swap starts at the file that it swapped, TopDown at the tables that it measured. In one ledger these are one
    dataset, since it has one name, and a guarantee on a domain is one on the domain that does not say where it starts.
    """
    if len({one.domain.starts for one in specifications}) == 1:
        return specifications
    return [replace(one, domain=replace(one.domain, starts="", words="")) for one in specifications]


def unlike_domains(specifications: list[Specification]) -> str:
    """In what the domains differ, if that is why releases do not compose; else empty."""
    first = specifications[0].domain
    for one in specifications[1:]:
        if one.domain.objects != first.objects or one.domain.datasets != first.datasets:
            return "They are about different sets of datasets."
        if set(one.domain.restricted_by) != set(first.restricted_by):
            said = ["; ".join(sorted(each.restricted_by)) or "nothing" for each in (first, one.domain)]
            return (
                "Their guarantees are about different sets of datasets. What was ruled out beforehand is in one: "
                f"{said[0]}. In another: {said[1]}."
            )
    return ""
