"""Specifications, the five building blocks of a guarantee: order, compose, convert, compare and lint them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.spec import flavors as flavors
    from stirred.spec.algebra import (
        Composition as Composition,
        change_unit as change_unit,
        compose as compose,
        may_publish_budget as may_publish_budget,
        may_publish_invariants as may_publish_invariants,
        per_respondent as per_respondent,
        post_process as post_process,
        retabulate as retabulate,
    )
    from stirred.spec.blocks import (
        Budget as Budget,
        Domain as Domain,
        InputPremetric as InputPremetric,
        Multiverse as Multiverse,
        OutputPremetric as OutputPremetric,
    )
    from stirred.spec.invariant import Invariant as Invariant
    from stirred.spec.kinds import Kind as Kind, register as register
    from stirred.spec.linting.findings import lint as lint
    from stirred.spec.order.block_by_block import Comparison as Comparison, compare as compare
    from stirred.spec.order.conversions import as_approximate as as_approximate
    from stirred.spec.order.finite_mechanisms import FiniteMechanism as FiniteMechanism
    from stirred.spec.specification import (
        Answer as Answer,
        Counterfactual as Counterfactual,
        Finding as Finding,
        Flavor as Flavor,
        Specification as Specification,
        Step as Step,
    )


_MOVED = {
    "stirred.lab.definitions.continuous_mechanisms": "ContinuousLaw ContinuousMechanism LossBounds NoiseLaw",
    "stirred.lab.definitions.multiverses": (
        "coarsens comparable completed is_complete laplace_scales least_budgets transferred"
    ),
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
