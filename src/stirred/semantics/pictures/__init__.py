"""Pictures as data, which reports draw: lines, bars, panels, and axes on which curves can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.pictures.curves import (
        belief_picture,
        epsilon_delta_picture,
        gaussian_deltas,
        level_power_picture,
        likely_belief_picture,
        true_record_picture,
    )
    from stirred.semantics.pictures.deployments import deployment_picture
    from stirred.semantics.pictures.readable import NotDrawn, readable_beliefs, readable_deltas, readable_powers
    from stirred.semantics.pictures.shapes import (
        Bar,
        Bars,
        Dot,
        GroupedInterval,
        GroupedIntervals,
        Interval,
        Intervals,
        Line,
        Panel,
        Panels,
        Picture,
        Point,
    )

__all__ = [
    "Bar",
    "Bars",
    "Dot",
    "GroupedInterval",
    "GroupedIntervals",
    "Interval",
    "Intervals",
    "Line",
    "NotDrawn",
    "Panel",
    "Panels",
    "Picture",
    "Point",
    "belief_picture",
    "deployment_picture",
    "epsilon_delta_picture",
    "gaussian_deltas",
    "level_power_picture",
    "likely_belief_picture",
    "readable_beliefs",
    "readable_deltas",
    "readable_powers",
    "true_record_picture",
]

__getattr__, __dir__ = lazy(__name__)
