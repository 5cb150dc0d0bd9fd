"""What a guarantee means: the power of tests and the change of beliefs, for a record, an attribute or a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.belief_bounds import AnyPriorBelief as AnyPriorBelief
    from stirred.semantics.belief_bounds import PredictiveBelief as PredictiveBelief
    from stirred.semantics.belief_bounds import PureBelief as PureBelief
    from stirred.semantics.belief_bounds import TrueRecordBelief as TrueRecordBelief
    from stirred.semantics.belief_bounds import highest_posterior as highest_posterior
    from stirred.semantics.belief_bounds import lowest_posterior as lowest_posterior
    from stirred.semantics.concern_changes import WorstChange as WorstChange
    from stirred.semantics.concern_changes import concerned_change as concerned_change
    from stirred.semantics.concern_changes import worst_change as worst_change
    from stirred.semantics.concerns import Concern as Concern
    from stirred.semantics.concerns import Exposure as Exposure
    from stirred.semantics.concerns import exposure as exposure
    from stirred.semantics.concerns import overview as overview
    from stirred.semantics.concerns import published_exposures as published_exposures
    from stirred.semantics.explaining import Explanation as Explanation
    from stirred.semantics.explaining import explain as explain
    from stirred.semantics.sentences.templates import SECTIONS as SECTIONS
    from stirred.semantics.sentences.templates import Statement as Statement
    from stirred.semantics.testing import Change as Change
    from stirred.semantics.testing import GroupCurve as GroupCurve
    from stirred.semantics.testing import allowed_power as allowed_power
    from stirred.semantics.testing import change_of_record as change_of_record
    from stirred.semantics.testing import changed_group as changed_group
    from stirred.semantics.testing import gaussian_curve as gaussian_curve
    from stirred.semantics.testing import loss_power as loss_power
    from stirred.semantics.testing import power as power
    from stirred.semantics.testing import power_bounds as power_bounds
    from stirred.semantics.testing import replaced_record as replaced_record
    from stirred.semantics.testing import smallest_change as smallest_change

_MOVED = {
    "stirred.lab.definitions.beliefs": "Beliefs GaussianBelief",
    "stirred.lab.definitions.searches": "Audit audit audit_kind",
    "stirred.lab.definitions.two_laws": ("Definition RatioTest best_test level_and_power level_power uncertain_power"),
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
