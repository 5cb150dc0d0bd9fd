"""Expected errors of target areas, such as districts and precincts, from the plan and the list of geounits alone.

The areas are columns of the list, named under ``[[targets]]`` of the plan. The error of an area is that of the best
linear unbiased estimate from all measurements, whatever units it is put together from: its vector is carried up the
tree (:meth:`stirred.margins.areas.Overlap.covariances`). Every area is worked out, and nothing is sampled.

The invariant a reader must know: no count is read, so that all of it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stirred.margins.areas import Areas, Overlap
from stirred.margins.margin_blocks import Array, representatives
from stirred.margins.spine import Spine
from stirred.topdown.counting import read_areas
from stirred.topdown.design import Design
from stirred.topdown.plan import TopDownPlan


@dataclass(frozen=True)
class TargetError:
    """The expected standard error of one query in the areas of one sort: of the largest cell, by area."""

    target: str
    table: str
    query: str
    areas: int
    on_spine: int
    """Areas that are one unit of the spine."""
    on_median: float | None
    """The median over these; None where there are none, or recodes tie too many numbers together."""
    off_median: float | None
    """The median over the other areas."""
    off_largest: float | None
    units_median: float
    """Over the other areas: units that are added or subtracted."""
    units_largest: int
    worst: str
    """The area with the largest error."""


@dataclass(frozen=True, eq=False)
class Target:
    """Areas of one sort, what they have in common with units of the spine, and how many units each takes."""

    areas: Areas
    overlap: Overlap
    distances: Any

    @classmethod
    def of(cls, spine: Spine, areas: Areas) -> Target:
        """The areas on a spine."""
        overlap = Overlap.of(spine, areas.of_leaf, len(areas))
        return cls(areas, overlap, overlap.distances())


def read_targets(plan: TopDownPlan, data: Any = None) -> tuple[Spine, tuple[Target, ...]]:
    """The spine of a plan and its target areas, from the list of geounits: the plan's, or a path or frame."""
    spine, areas = read_areas(plan, data)
    return spine, tuple(Target.of(spine, one) for one in areas)


def area_variances(design: Design, overlap: Overlap) -> Array:
    """By area, the largest variance of an asked group; infinite where nothing tells it, 0 for an area without leaves.

    Variances are worked out for each set of groups that must have the same one, and for a range of areas at a time.
    """
    few, _ = representatives(design.asked, design.split.axes)
    found = np.zeros(overlap.areas)
    for some in overlap.ranges(max(block.size for block in design.split.blocks)):
        matrices = [overlap.covariances(tree, some)[0] for tree in design.trees]
        found[some] = design.split.variances(few, matrices).max(axis=1)
    unknown = np.array([design.unknown(level).any() for level in range(len(design.spine.levels))])
    return np.where(unknown[overlap.deepest()] & (overlap.leaves > 0), math.inf, found)


def target_error(target: Target, table: str, query: str, design: Design | None) -> TargetError:
    """The expected errors of a query in the areas of one sort."""
    distances = target.distances
    on = distances == 1
    spread = None if design is None else np.sqrt(area_variances(design, target.overlap))
    worst = int(np.argmax(distances if spread is None else spread)) if len(on) else -1
    return TargetError(
        target=target.areas.name,
        table=table,
        query=query,
        areas=len(on),
        on_spine=int(on.sum()),
        on_median=_median(spread, on),
        off_median=_median(spread, ~on),
        off_largest=None if spread is None or on.all() else float(spread[~on].max()),
        units_median=float(np.median(distances[~on])) if not on.all() else 1.0,
        units_largest=int(distances.max(initial=0)),
        worst=target.areas.names[worst].as_py() if worst >= 0 else "",
    )


def target_errors(targets: Sequence[Target], table: str, query: str, design: Design | None) -> tuple[TargetError, ...]:
    """The expected errors of a query in the areas of every sort; None stands for a design that is too wide."""
    return tuple(target_error(one, table, query, design) for one in targets)


def _median(spread: Array | None, some: Any) -> float | None:
    """The lower median, so that a number of infinite errors does not hide the others."""
    if spread is None or not some.any():
        return None
    chosen = np.sort(spread[some])
    return float(chosen[(len(chosen) - 1) // 2])
