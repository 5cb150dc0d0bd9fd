"""Plans of TopDown with other shares, and the errors that they have: what a calibration changes and looks at again.

The invariant a reader must know: a plan is only made of fractions that add up to exactly one, and its errors come from
:class:`stirred.topdown.design.Design`, which the search for shares does not use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from stirred import errors
from stirred.margins.margin_blocks import Array, Margin, representatives
from stirred.margins.spine import Shapes, Spine
from stirred.margins.tree_shares import BestShares
from stirred.semantics.budgets_for_targets import rounded_up
from stirred.semantics.targets import ErrorTarget
from stirred.spec.specification import Specification
from stirred.topdown.design import Design
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import QuerySection, TableSection
from stirred.topdown.specifying import specify

Budget = Fraction | Literal["plan"] | None


@dataclass(frozen=True, eq=False)
class Divided:
    """The shares that were found for one table, as fractions."""

    table: TableSection
    targets: tuple[ErrorTarget, ...]
    best: BestShares
    shares: Mapping[tuple[str, str], Fraction]
    """By level and query the share of what the table spends; they add up to one."""
    needed: float
    """The smallest budget with which these fractions keep all targets."""
    smallest: BestShares
    """The shares that need the smallest budget; those of ``best`` where neither weights nor a sum were asked for."""
    saved: tuple[float, ...]
    """For each target the part of the budget that is saved if it is dropped."""


def table_of(plan: TopDownPlan, target: ErrorTarget) -> TableSection:
    """The table that a target is about: the one it names, or the only one that has its attributes."""
    if target.level is None:
        levels = errors.listed(plan.spine.all_levels)
        raise errors.bad_target(target.text, f"it must name a level of the geography: {levels}")
    if target.level not in plan.spine.all_levels:
        raise errors.unknown_choice("level", target.level, plan.spine.all_levels)
    released = plan.released
    if target.table is not None:
        if target.table not in [table.name for table in released]:
            raise errors.unknown_choice("table", target.table, [table.name for table in released])
        released = (plan.table(target.table),)
    fitting = [table for table in released if _has(table, target.by)]
    if not fitting:
        names = [name for table in released for name in _names(table)]
        unknown = next((name for name in target.by if name not in names), target.by[0])
        raise errors.unknown_choice("attribute or recode", unknown, names)
    if not target.by:  # a total fits every table: the first is meant, as everywhere
        return fitting[0]
    if len(fitting) > 1:
        raise errors.bad_target(target.text, "several tables have these attributes; add 'in TABLE' after the level")
    return fitting[0]


def _has(table: TableSection, by: Sequence[str]) -> bool:
    names = _names(table)
    return all(name in names for name in by) and len(set(by)) == len(by)


def _names(table: TableSection) -> list[str]:
    return [*(one.name for one in table.attributes), *(one.name for one in table.recodes)]


def with_shares(
    plan: TopDownPlan, table: TableSection, shares: Mapping[tuple[str, str], Fraction], rho: Fraction
) -> TopDownPlan:
    """The plan with these shares of what a table spends; the shares of levels that the spine does not have stay."""
    present = present_part(plan, table)
    levels = {level: sum((share for key, share in shares.items() if key[0] == level), Fraction(0))
              for level in plan.spine.all_levels}  # fmt: skip
    fields = fields_of(plan)
    section = next(one for one in fields["tables"] if one["name"] == table.name)
    section["rho"] = str(rho)
    section["level_shares"] = {
        level: str(levels[level] * present if level in levels else share)
        for level, share in ((level, table.level_shares.get(level, Fraction(0))) for level in plan.levels)
        if level in levels or share
    }
    for query, written_ in zip(table.queries, section["queries"], strict=True):
        written_["shares"] = {level: str(share) for level, share in _query_shares(plan, query, shares, levels) if share}
    return TopDownPlan(**fields)


def _query_shares(
    plan: TopDownPlan,
    query: QuerySection,
    shares: Mapping[tuple[str, str], Fraction],
    levels: Mapping[str, Fraction],
) -> list[tuple[str, Fraction]]:
    return [
        (level, shares.get((level, query.name), Fraction(0)) / levels[level] if level in levels else query.share(level))
        for level in plan.levels
    ]


def fields_of(plan: TopDownPlan) -> dict[str, Any]:
    return plan.model_dump(mode="json", exclude_defaults=True)


def present_part(plan: TopDownPlan, table: TableSection) -> Fraction:
    """The part of a table's rho that is spent: the shares of the levels that the spine has."""
    return 1 - sum((table.level_shares.get(level, Fraction(0)) for level in plan.spine.absent), Fraction(0))


def spent_on(plan: TopDownPlan, table: TableSection) -> Fraction:
    return (table.rho or Fraction(0)) * present_part(plan, table)


def whole_rho(plan: TopDownPlan, table: TableSection, spent: Fraction) -> Fraction:
    """A rho with four digits of which at least so much is spent."""
    return rounded_up(spent / present_part(plan, table))


def guarantee_at(plan: TopDownPlan, budget: Fraction) -> Specification:
    stated = specify(plan)
    return replace(stated, budget=replace(stated.budget, value=budget), findings=())


def reached_error(plan: TopDownPlan, spine: Spine, shapes: Shapes, target: ErrorTarget) -> float:
    """The standard error that a plan has where a target looks, from the design itself."""
    table = table_of(plan, target)
    fixed = [number for number, one in enumerate(plan.invariants) if one.table == table.name]
    design = Design.of(plan, spine, table.name, target.by, None, fixed, shapes)
    level = spine.levels.index(level_of(target))
    if design.unknown(level).any():
        return math.inf
    few, _ = representatives(design.asked, design.split.axes)
    found: Array = design.split.variances(few, [tree.covariances_of(level) for tree in design.trees])
    if target.typical:
        kinds = shapes.everywhere[level]
        many = np.bincount(kinds.of_unit, minlength=len(kinds))
        found = (many @ found / many.sum())[None]
    return math.sqrt(float(found.max()))


def margin_of(table: TableSection, by: Sequence[str]) -> Margin:
    return Margin.of(table.schema_of, by)


def measured_margin(plan: TopDownPlan, table: TableSection, level: str, query: QuerySection) -> Margin:
    """The margin of a query, such that its precision is rho times A'A: where groups overlap, noise is larger, and the
    margin's rows are smaller by the root of that."""
    margin = margin_of(table, query.by)
    moved = table.moved(query, plan.one_place(level))
    if moved == 2:
        return margin
    schema = table.schema_of
    axis = next(schema.axis_of(name) for name in query.by if schema.overlapping((name,)))
    factors = [factor * math.sqrt(2 / moved) if at == axis and isinstance(factor, np.ndarray) else factor
               for at, factor in enumerate(margin.factors)]  # fmt: skip
    return replace(margin, names=(*margin.names, f"moved by {moved}"), factors=tuple(factors))


def level_of(target: ErrorTarget) -> str:
    assert target.level is not None
    return target.level
