"""The TopDown Algorithm of the 2020 Census, for any geography and any tables.

>>> from stirred import topdown
>>> plan = topdown.preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["state", "county", "town"])
>>> plan.rho
Fraction(3, 4)
"""

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.topdown.checking import TopDownCheck, check
    from stirred.topdown.drawing import TopDownDraw, reopen
    from stirred.topdown.estimating import MeasuredRelease, estimate
    from stirred.topdown.finishing import TopDownRelease
    from stirred.topdown.plan import TopDownPlan
    from stirred.topdown.precision import expected_errors
    from stirred.topdown.presets import preset
    from stirred.topdown.releasing import draw, release
    from stirred.topdown.specifying import specify
    from stirred.topdown.spine_file import make_spine
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
