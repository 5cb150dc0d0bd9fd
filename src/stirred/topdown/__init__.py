"""The TopDown Algorithm of the 2020 Census, for any geography and any tables.

>>> from stirred import topdown
>>> plan = topdown.preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["state", "county", "town"])
>>> plan.rho
Fraction(3, 4)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.topdown.checking.plan_check import TopDownCheck, check
    from stirred.topdown.data.spine_file import make_spine
    from stirred.topdown.drawing import TopDownDraw, TopDownRelease, draw, release, reopen
    from stirred.topdown.estimating.precision import expected_errors
    from stirred.topdown.estimating.questions import MeasuredRelease, estimate
    from stirred.topdown.plan.fields import TopDownPlan
    from stirred.topdown.plan.guarantee import specify
    from stirred.topdown.plan.presets import preset
    from stirred.topdown.verifying import tabulate, verify

__all__ = [
    "MeasuredRelease",
    "TopDownCheck",
    "TopDownDraw",
    "TopDownPlan",
    "TopDownRelease",
    "check",
    "draw",
    "estimate",
    "expected_errors",
    "make_spine",
    "preset",
    "release",
    "reopen",
    "specify",
    "tabulate",
    "verify",
]

__getattr__, __dir__ = lazy(__name__)
