"""Pictures as data, which reports draw: lines, bars, panels, and axes on which curves can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.semantics.pictures.curves import belief_picture as belief_picture
    from stirred.semantics.pictures.curves import epsilon_delta_picture as epsilon_delta_picture
    from stirred.semantics.pictures.curves import gaussian_deltas as gaussian_deltas
    from stirred.semantics.pictures.curves import level_power_picture as level_power_picture
    from stirred.semantics.pictures.curves import likely_belief_picture as likely_belief_picture
    from stirred.semantics.pictures.curves import true_record_picture as true_record_picture
    from stirred.semantics.pictures.deployments import deployment_picture as deployment_picture
    from stirred.semantics.pictures.readable import NotDrawn as NotDrawn
    from stirred.semantics.pictures.readable import readable_beliefs as readable_beliefs
    from stirred.semantics.pictures.readable import readable_deltas as readable_deltas
    from stirred.semantics.pictures.readable import readable_powers as readable_powers
    from stirred.semantics.pictures.shapes import Bar as Bar
    from stirred.semantics.pictures.shapes import Bars as Bars
    from stirred.semantics.pictures.shapes import Dot as Dot
    from stirred.semantics.pictures.shapes import GroupedInterval as GroupedInterval
    from stirred.semantics.pictures.shapes import GroupedIntervals as GroupedIntervals
    from stirred.semantics.pictures.shapes import Interval as Interval
    from stirred.semantics.pictures.shapes import Intervals as Intervals
    from stirred.semantics.pictures.shapes import Line as Line
    from stirred.semantics.pictures.shapes import Panel as Panel
    from stirred.semantics.pictures.shapes import Panels as Panels
    from stirred.semantics.pictures.shapes import Picture as Picture
    from stirred.semantics.pictures.shapes import Point as Point

__getattr__, __dir__ = lazy(__name__)
