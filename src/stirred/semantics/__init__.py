"""What a guarantee means: what a test or a belief can gain, for everyone, per attribute, per place."""

from stirred.semantics.belief_bounds import (
    AnyPriorBelief,
    PredictiveBelief,
    PureBelief,
    TrueRecordBelief,
    highest_posterior,
    lowest_posterior,
)
from stirred.semantics.beliefs import Beliefs, GaussianBelief
from stirred.semantics.concerns import Concern, Exposure, concerned_change, exposure, overview, published_exposures
from stirred.semantics.counterfactuals import Change, change_of_record, changed_group, replaced_record, smallest_change
from stirred.semantics.definition_searches import audit, audit_kind
from stirred.semantics.definitions import Audit, Definition, level_power
from stirred.semantics.explaining import Explanation, explain
from stirred.semantics.likelihood import RatioTest, best_test, level_and_power, uncertain_power
from stirred.semantics.templates import SECTIONS, Statement
from stirred.semantics.testing import GroupCurve, allowed_power, gaussian_curve, loss_power, power, power_bounds

__all__ = [
    "SECTIONS",
    "AnyPriorBelief",
    "Audit",
    "Beliefs",
    "Change",
    "Concern",
    "Definition",
    "Explanation",
    "Exposure",
    "GaussianBelief",
    "GroupCurve",
    "PredictiveBelief",
    "PureBelief",
    "RatioTest",
    "Statement",
    "TrueRecordBelief",
    "allowed_power",
    "audit",
    "audit_kind",
    "best_test",
    "change_of_record",
    "changed_group",
    "concerned_change",
    "explain",
    "exposure",
    "gaussian_curve",
    "highest_posterior",
    "level_and_power",
    "level_power",
    "loss_power",
    "lowest_posterior",
    "overview",
    "power",
    "power_bounds",
    "published_exposures",
    "replaced_record",
    "smallest_change",
    "uncertain_power",
]
