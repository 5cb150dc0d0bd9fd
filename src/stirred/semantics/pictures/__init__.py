"""Pictures as data, which reports draw: lines, bars, panels, and axes on which curves can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.pictures.curves import (
        belief_picture as belief_picture,
        epsilon_delta_picture as epsilon_delta_picture,
        gaussian_deltas as gaussian_deltas,
        level_power_picture as level_power_picture,
        likely_belief_picture as likely_belief_picture,
        true_record_picture as true_record_picture,
    )
    from stirred.semantics.pictures.deployments import deployment_picture as deployment_picture
    from stirred.semantics.pictures.readable import (
        NotDrawn as NotDrawn,
        readable_beliefs as readable_beliefs,
        readable_deltas as readable_deltas,
        readable_powers as readable_powers,
    )
    from stirred.semantics.pictures.shapes import (
        Bar as Bar,
        Bars as Bars,
        Dot as Dot,
        GroupedInterval as GroupedInterval,
        GroupedIntervals as GroupedIntervals,
        Interval as Interval,
        Intervals as Intervals,
        Line as Line,
        Panel as Panel,
        Panels as Panels,
        Picture as Picture,
        Point as Point,
    )

__getattr__, __dir__ = lazy(__name__)
