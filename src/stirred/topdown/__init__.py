"""The TopDown Algorithm of the 2020 Census, for any geography and any tables.

>>> from stirred import topdown
>>> plan = topdown.preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["state", "county", "town"])
>>> plan.rho
Fraction(3, 4)
"""

from stirred.topdown.checking import TopDownCheck, check
from stirred.topdown.drawing import Drawn, draw, reopen
from stirred.topdown.finishing import TopDownRelease, fit, release
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.precision import expected_errors
from stirred.topdown.presets import preset
from stirred.topdown.recipient import tabulate, verify
from stirred.topdown.specify import specify

__all__ = [
    "Drawn",
    "TopDownCheck",
    "TopDownPlan",
    "TopDownRelease",
    "check",
    "draw",
    "expected_errors",
    "fit",
    "preset",
    "release",
    "reopen",
    "specify",
    "tabulate",
    "verify",
]
