"""Expected standard errors of a plan's queries before anything is measured: each alone, and all combined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stirred import errors
from stirred.margins.spine import Shapes, Spine
from stirred.topdown.design import Design
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.target_areas import Target, TargetError, target_errors


@dataclass(frozen=True)
class ExpectedError:
    """The standard error of one cell of a query in one unit of a level."""

    table: str
    level: str
    query: str
    cells: int
    rho: str
    measured: float
    """As the query is measured by itself."""
    combined: float | None
    """Of the best linear unbiased estimate from all queries of all levels and the invariants: the median over units
    of the largest cell. None where recodes tie too many numbers together."""


def expected_errors(plan: TopDownPlan, spine: Spine) -> tuple[ExpectedError, ...]:
    """The expected error of every query at every level; needs no data."""
    return errors_with_targets(plan, spine, ())[0]


def errors_with_targets(
    plan: TopDownPlan, spine: Spine, targets: Sequence[Target]
) -> tuple[tuple[ExpectedError, ...], tuple[TargetError, ...]]:
    """The expected error of every query at every level, and in target areas of every sort; needs no data."""
    shapes = Shapes.of(spine)
    at_levels: list[ExpectedError] = []
    in_targets: list[TargetError] = []
    for table in plan.released:
        fixed = [number for number, one in enumerate(plan.invariants) if one.table == table.name]
        combined: dict[str, list[float]] = {}
        for query in table.queries:  # one design at a time: those of a nation take gigabytes
            design: Design | None = None
            try:
                design = Design.of(plan, spine, table.name, query.by, None, fixed, shapes)
            except errors.StirredError as refusal:
                if refusal.kind != "estimate-too-wide":
                    raise
            else:
                combined[query.name] = [math.sqrt(variance) for variance in design.typical_variances()]
            in_targets += target_errors(targets, table.name, query.name, design)
        for number, level in enumerate(spine.levels):
            for query in table.queries:
                rho = table.rho_of(level, query)
                variance = table.variance_of(level, query, plan.one_place(level))
                at_levels.append(
                    ExpectedError(
                        table.name,
                        level,
                        query.name,
                        table.schema_of.number_of_groups(query.by),
                        str(rho),
                        math.inf if variance is None else math.sqrt(variance),
                        combined[query.name][number] if query.name in combined else None,
                    )
                )
    return tuple(at_levels), tuple(in_targets)
