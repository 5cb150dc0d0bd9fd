"""The class of a rule of the lint, and helpers that put findings into words.

A rule is a function that looks at a specification, or at one beside an earlier one, and says what it sees; the empty
text means nothing. Its docstring says when it gives a finding and is printed in the documentation; why that matters,
and where it is shown, is in ``sentences/findings.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from stirred.errors.kinds import capital
from stirred.loss.curves.power_curves import GaussianCurve, at_most
from stirred.spec.exact import bound, near, written
from stirred.spec.invariant import plural
from stirred.spec.specification import Specification

Alone = Callable[[Specification], str]
Against = Callable[[Specification, Specification], str]

BLOCKS = ("domain", "multiverse", "input premetric", "output premetric", "budget", "mechanism", "release", "all blocks")


@dataclass(frozen=True)
class Rule:
    """One rule of the lint: functions that look at a specification, alone or against an earlier one, and what their
    findings mean.

    ``voids``: what it sees leaves no guarantee, or one that is not known to hold; such findings come first.
    """

    id: str
    block: str
    why: str
    source: str
    voids: bool = False
    alone: Alone | None = None
    against: Against | None = None

    def sees(self, specification: Specification, before: Specification | None = None) -> str:
        """The findings about a specification, as sentences; empty if there are none."""
        said = [self.alone(specification)] if self.alone else []
        if self.against and before is not None:
            said.append(self.against(specification, before))
        return " ".join(capital(words) for words in said if words)

    @property
    def when(self) -> str:
        """When the rule gives a finding, in words."""
        looks = (self.alone, self.against)
        return " ".join(" ".join((look.__doc__ or "").split()) for look in looks if look)


# -- words -----------------------------------------------------------------------------------------------------------


def joined(items: Iterable[object], most: int = 4) -> str:
    """The first items of a list, and how many more there are.

    >>> joined(["a", "b", "c"], most=2)
    'a; b; and 1 more'
    """
    texts = [str(item) for item in items]
    rest = len(texts) - most
    return "; ".join(texts if rest <= 0 else [*texts[:most], f"and {rest:,} more"])


def many(number: int, noun: str) -> str:
    """A number and its noun, in the plural where needed.

    >>> many(1, "record"), many(12000, "record")
    ('1 record', '12,000 records')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def short(number: Fraction | float) -> str:
    """An exact number as it is written if that is short, else to three digits."""
    text = written(number)
    return text if len(text) <= 8 else f"{near(number):.3g}"


def letter(specification: Specification) -> str:
    """The budget's usual name: epsilon, rho."""
    return specification.output_premetric.kind.budget


def spent(specification: Specification) -> str:
    """The budget with its letter and parameter."""
    output = specification.output_premetric
    said = f"{letter(specification)} = {specification.budget.shown()}"
    return said if output.parameter is None else f"{said} at {output.kind.parameter} = {short(output.parameter)}"


def spent_at(specification: Specification, distance: Fraction | float | int) -> str:
    """The budget between datasets so far apart; empty where a curve gives none."""
    if specification.budget.is_curve:
        return ""
    return f"{letter(specification)} = {shown_at(specification, distance)}"


def shown_at(specification: Specification, distance: Fraction | float | int) -> str:
    """The number of the budget between datasets so far apart, by thousands."""
    text = bound(specification.budget_at(distance))
    return f"{Decimal(text):,}" if re.fullmatch(r"\d{4,}[\d.]*", text) else text


# -- numbers ---------------------------------------------------------------------------------------------------------


def smaller(specification: Specification, before: Specification) -> bool:
    """Whether the budget is a smaller one than before, in the same letter or as a curve of the same kind."""
    budget, earlier = specification.budget, before.budget
    if letter(specification) != letter(before) or budget.is_curve != earlier.is_curve:
        return False
    if budget.is_curve:
        return budget.value != earlier.value and at_most(budget.value, earlier.value)
    return budget.number < earlier.number


def fall(specification: Specification, before: Specification) -> str:
    """A clause that says by how much the budget is smaller."""
    budget, earlier = specification.budget, before.budget
    if isinstance(budget.value, GaussianCurve) and isinstance(earlier.value, GaussianCurve):
        return f"mu falls from {earlier.value.mu:g} to {budget.value.mu:g}"
    return f"{letter(specification)} falls from {earlier.shown()} to {budget.shown()}"
