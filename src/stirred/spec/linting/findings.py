"""Findings about a guarantee: how the first four blocks, and the making of the mechanism, affect the budget.

Section 4.3 is a guide to smaller budgets without more noise: restrict the domain, hold more fixed, protect smaller
units, measure by a weaker standard, look at fewer events, let the data choose the mechanism. Each way is a rule here,
and so are the errors that section 3 warns of. A rule says what it sees in *this* specification; it never says that a
smaller number is better.
"""

from __future__ import annotations

from functools import cache

from stirred._calls import refuses_wrong_arguments
from stirred._sentences import read_sentences
from stirred.spec.linting import budgets, datasets
from stirred.spec.linting.rules import BLOCKS, Rule
from stirred.spec.specification import Finding, Specification

__all__ = ["Rule", "lint", "rules", "table"]

MODULES = (datasets, budgets)
"""Where the functions of rules are: ``late_start`` looks at one specification, ``late_start_than`` also at an earlier
one, for the rule ``late-start``."""


@refuses_wrong_arguments
def lint(specification: Specification, *, before: Specification | None = None) -> tuple[Finding, ...]:
    """Findings about a specification; with ``before``, also about how it differs from an earlier or a rival one.

    Findings that leave no guarantee come first, then in the order of the blocks; one for each rule at most.

    >>> from stirred.spec import flavors
    >>> found = lint(flavors.edge_level().at(1), before=flavors.node_level().at(3))
    >>> [finding.id for finding in found]
    ['late-start', 'finer-unit', 'different-flavors']
    >>> print(found[-1].words)
    Epsilon = 1.00 and epsilon = 3.00 are not comparable as numbers: the two differ in input premetric.
    """
    found = ((rule, rule.sees(specification, before)) for rule in rules())
    return tuple(Finding(rule.id, words, rule.why, rule.source) for rule, words in found if words)


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, in the order in which they are asked."""
    looks = {name: look for module in MODULES for name, look in vars(module).items()}
    found = [
        Rule(id, **fields, alone=looks.get(name), against=looks.get(f"{name}_than"))
        for id, fields in read_sentences("findings").items()
        for name in [id.replace("-", "_")]
    ]
    return tuple(sorted(found, key=lambda rule: (not rule.voids, BLOCKS.index(rule.block))))


def table() -> str:
    """The rules as a table in Markdown, for the documentation."""
    head = ("finding", "block", "when", "why it matters", "source")
    rows = [(f"`{rule.id}`", rule.block, rule.when, rule.why, rule.source) for rule in rules()]
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
