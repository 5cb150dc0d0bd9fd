"""The five building blocks of a guarantee: to hold, order, compose, weaken, compare and criticise."""

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
from stirred.spec.blocks import Domain, InputPremetric, Multiverse
from stirred.spec.comparison import Comparison, compare
from stirred.spec.conversions import as_approximate
from stirred.spec.finite import FiniteMechanism
from stirred.spec.forms import from_json, to_json
from stirred.spec.invariant import Invariant
from stirred.spec.linting import lint
from stirred.spec.order import implies
from stirred.spec.premetrics import Budget, Kind, OutputPremetric, register
from stirred.spec.specification import Answer, Counterfactual, Finding, Flavor, Later, Specification, Step, bind

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

# Methods of a specification that need modules above its own; see Later.
bind(Later(implies, to_json, from_json))
