"""The TopDown Algorithm of the 2020 Census, for any geography and any tables.

>>> from stirred import topdown
>>> plan = topdown.preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["state", "county", "town"])
>>> plan.rho
Fraction(3, 4)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.topdown.checking.plan_check import TopDownCheck as TopDownCheck, check as check
    from stirred.topdown.data.spine_file import make_spine as make_spine
    from stirred.topdown.drawing import (
        TopDownDraw as TopDownDraw,
        TopDownRelease as TopDownRelease,
        draw as draw,
        release as release,
        reopen as reopen,
    )
    from stirred.topdown.estimating.precision import expected_errors as expected_errors
    from stirred.topdown.estimating.questions import MeasuredRelease as MeasuredRelease, estimate as estimate
    from stirred.topdown.plan.fields import TopDownPlan as TopDownPlan
    from stirred.topdown.plan.guarantee import specify as specify
    from stirred.topdown.plan.presets import preset as preset
    from stirred.topdown.verifying import tabulate as tabulate, verify as verify

__getattr__, __dir__ = lazy(__name__)
