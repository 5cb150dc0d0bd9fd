"""What a guarantee means: the power of tests and the change of beliefs, for a record, an attribute or a place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.belief_bounds import (
        AnyPriorBelief as AnyPriorBelief,
        PredictiveBelief as PredictiveBelief,
        PureBelief as PureBelief,
        TrueRecordBelief as TrueRecordBelief,
        highest_posterior as highest_posterior,
        lowest_posterior as lowest_posterior,
    )
    from stirred.semantics.concern_changes import (
        WorstChange as WorstChange,
        concerned_change as concerned_change,
        worst_change as worst_change,
    )
    from stirred.semantics.concerns import (
        Concern as Concern,
        Exposure as Exposure,
        exposure as exposure,
        overview as overview,
        published_exposures as published_exposures,
    )
    from stirred.semantics.explaining import Explanation as Explanation, explain as explain
    from stirred.semantics.sentences.templates import SECTIONS as SECTIONS, Statement as Statement
    from stirred.semantics.testing import (
        Change as Change,
        GroupCurve as GroupCurve,
        allowed_power as allowed_power,
        change_of_record as change_of_record,
        changed_group as changed_group,
        gaussian_curve as gaussian_curve,
        loss_power as loss_power,
        power as power,
        power_bounds as power_bounds,
        replaced_record as replaced_record,
        smallest_change as smallest_change,
    )


_MOVED = {
    "stirred.lab.definitions.beliefs": "Beliefs GaussianBelief",
    "stirred.lab.definitions.searches": "Audit audit audit_kind",
    "stirred.lab.definitions.two_laws": ("Definition RatioTest best_test level_and_power level_power uncertain_power"),
}
__getattr__, __dir__ = lazy(__name__, moved=_MOVED)
