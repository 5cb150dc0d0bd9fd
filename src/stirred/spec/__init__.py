"""Specifications, the five building blocks of a guarantee: order, compose, convert, compare and lint them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.spec import flavors
    from stirred.spec.algebra import (
        Composition,
        change_unit,
        compose,
        may_publish_budget,
        may_publish_invariants,
        per_respondent,
        post_process,
        retabulate,
    )
    from stirred.spec.blocks import Budget, Domain, InputPremetric, Multiverse, OutputPremetric
    from stirred.spec.invariant import Invariant
    from stirred.spec.kinds import Kind, register
    from stirred.spec.linting.findings import lint
    from stirred.spec.order.block_by_block import Comparison, compare
    from stirred.spec.order.conversions import as_approximate
    from stirred.spec.order.finite_mechanisms import FiniteMechanism
    from stirred.spec.specification import Answer, Counterfactual, Finding, Flavor, Specification, Step

__all__ = [
    "Answer",
    "Budget",
    "Comparison",
    "Composition",
    "Counterfactual",
    "Domain",
    "Finding",
    "FiniteMechanism",
    "Flavor",
    "InputPremetric",
    "Invariant",
    "Kind",
    "Multiverse",
    "OutputPremetric",
    "Specification",
    "Step",
    "as_approximate",
    "change_unit",
    "compare",
    "compose",
    "flavors",
    "lint",
    "may_publish_budget",
    "may_publish_invariants",
    "per_respondent",
    "post_process",
    "register",
    "retabulate",
]

_MOVED = {
    "stirred.lab.definitions.continuous_mechanisms": "ContinuousLaw ContinuousMechanism LossBounds NoiseLaw",
    "stirred.lab.definitions.multiverses": (
        "coarsens comparable completed is_complete laplace_scales least_budgets transferred"
    ),
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
