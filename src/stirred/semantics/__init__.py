"""What a guarantee means: the power of tests and the change of beliefs, for a record, an attribute or a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.belief_bounds import (
        AnyPriorBelief,
        PredictiveBelief,
        PureBelief,
        TrueRecordBelief,
        highest_posterior,
        lowest_posterior,
    )
    from stirred.semantics.concern_changes import WorstChange, concerned_change, worst_change
    from stirred.semantics.concerns import Concern, Exposure, exposure, overview, published_exposures
    from stirred.semantics.explaining import Explanation, explain
    from stirred.semantics.sentences.templates import SECTIONS, Statement
    from stirred.semantics.testing import (
        Change,
        GroupCurve,
        allowed_power,
        change_of_record,
        changed_group,
        gaussian_curve,
        loss_power,
        power,
        power_bounds,
        replaced_record,
        smallest_change,
    )

__all__ = [
    "SECTIONS",
    "AnyPriorBelief",
    "Change",
    "Concern",
    "Explanation",
    "Exposure",
    "GroupCurve",
    "PredictiveBelief",
    "PureBelief",
    "Statement",
    "TrueRecordBelief",
    "WorstChange",
    "allowed_power",
    "change_of_record",
    "changed_group",
    "concerned_change",
    "explain",
    "exposure",
    "gaussian_curve",
    "highest_posterior",
    "loss_power",
    "lowest_posterior",
    "overview",
    "power",
    "power_bounds",
    "published_exposures",
    "replaced_record",
    "smallest_change",
    "worst_change",
]

_MOVED = {
    "stirred.lab.definitions.beliefs": "Beliefs GaussianBelief",
    "stirred.lab.definitions.searches": "Audit audit audit_kind",
    "stirred.lab.definitions.two_laws": ("Definition RatioTest best_test level_and_power level_power uncertain_power"),
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
