"""A specification: the five building blocks of one guarantee (Definitions 2.4.1-2.4.5), in a first plain form.

A mechanism T satisfies the specification (X, D, d_X, D_Pr, eps) if D_Pr(P_x, P_x') <= eps d_X(x, x') for all datasets
x, x' that lie together in one universe of the multiverse D. The number is meaningless without the other four blocks,
so they travel together. ``findings`` are doubts that belong to the guarantee and are printed with it.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

FORM = 1
"""Version of the JSON form."""

NOT_FOR_RELEASE = "not for release: drawn from a seeded source, which can be repeated"


@dataclass(frozen=True)
class Domain:
    """X: which datasets there could have been, and where in the data's life they stand."""

    words: str


@dataclass(frozen=True)
class Multiverse:
    """D: datasets are compared only within a universe, here those that share the values of ``invariants``."""

    words: str
    invariants: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputPremetric:
    """d_X: how far apart two datasets are, in protection units.

    ``nearest`` is the smallest positive finite distance within a universe; a statement about one counterfactual must
    use the budget at its distance. None where a universe holds a single dataset.
    """

    words: str
    unit: str
    nearest: int | None


@dataclass(frozen=True)
class OutputPremetric:
    """D_Pr: how different two laws of the output are."""

    name: str
    words: str


@dataclass(frozen=True)
class Budget:
    """The Lipschitz constant, rounded up in print; ``conversion`` says what it was computed by."""

    value: float
    conversion: str


@dataclass(frozen=True)
class Finding:
    """A doubt about the guarantee: a stable id, and the sentence."""

    id: str
    words: str


@dataclass(frozen=True)
class Specification:
    """One guarantee, all five blocks of it."""

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    findings: tuple[Finding, ...] = ()
    marks: tuple[str, ...] = field(default=())

    def to_json(self) -> str:
        fields: dict[str, Any] = {"stirred_specification": FORM, **asdict(self)}
        if math.isinf(self.budget.value):
            fields["budget"]["value"] = "infinity"
        return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        blocks = [
            ("domain", self.domain.words),
            ("multiverse", self.multiverse.words),
            ("input premetric", self.input_premetric.words),
            ("output premetric", self.output_premetric.words),
            ("budget", f"{display(self.budget.value)} ({self.budget.conversion})"),
            *(("mark", mark) for mark in self.marks),
            *(("finding", f"{finding.id}: {finding.words}") for finding in self.findings),
        ]
        return "\n".join(f"{name + ':':18}{words}" for name, words in blocks)


def display(epsilon: float, decimals: int = 2) -> str:
    """A guarantee as it is shown: rounded up, never down.

    >>> display(12.48496), display(1.1), display(0.0), display(math.inf)
    ('12.49', '1.10', '0.00', 'infinite')
    """
    return _displayed(epsilon, decimals, ROUND_CEILING)


def display_down(bound: float, decimals: int = 2) -> str:
    """A lower bound as it is shown: rounded down, never up.

    >>> display_down(12.48999)
    '12.48'
    """
    return _displayed(bound, decimals, ROUND_FLOOR)


def _displayed(value: float, decimals: int, rounding: str) -> str:
    if math.isinf(value):
        return "infinite"
    # The shortest decimal that names the float: scaling in binary would turn an exact 1.1 into 1.11.
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), rounding=rounding))
