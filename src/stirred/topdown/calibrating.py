"""Which rho, and which shares of it by level and query, keep stated errors of TopDown.

Nothing but the plan and the public geography is read. Errors are those of the best linear unbiased estimates from all
measurements (``stirred estimate``), in every unit of a level or, for a *typical* error, as the root mean square over
its units. Shares come from :mod:`stirred.margins.tree_shares`, budgets for limits on the guarantee from
:mod:`stirred.semantics.budgets_for_targets`.

The invariant a reader must know: shares are rounded to fractions that add up to exactly one, rho is rounded up, and the
plan made of them is looked at again with :class:`stirred.topdown.design.Design`, which the search does not use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.margins.spine import Shapes, Spine
from stirred.margins.tree_shares import AskedPlace, BestShares, Goal, TreePrecision, TreeShares, as_parts
from stirred.releases.mechanism import Data
from stirred.releases.progress import Progress, Silent
from stirred.semantics.budgets_for_targets import greatest_budget, rounded_down
from stirred.semantics.targets import Calibration, ErrorTarget, Target
from stirred.spec.exact import written
from stirred.topdown.calibration_text import told
from stirred.topdown.counting import GEOGRAPHY, read_spine
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TableSection
from stirred.topdown.target_plans import (
    Budget,
    Divided,
    fields_of,
    guarantee_at,
    level_of,
    margin_of,
    measured_margin,
    present_part,
    reached_error,
    spent_on,
    table_of,
    whole_rho,
    with_shares,
)

KEPT = Fraction(1, 20)
"""This part of a table's budget is divided equally among all its measured queries and levels, whatever the targets
say, unless another least share is given."""
OWN = "plan"
"""In place of a number: the plan's own budget."""

_PARTS = (100, 1000, 10_000, 100_000, 1_000_000)
_WORSE = 1.005
"""Shares with few digits may need so many times the budget of those with many."""


def calibrate(
    plan: TopDownPlan,
    targets: Sequence[Target],
    data: Data | None = None,
    *,
    rho: object = None,
    goal: Goal = "worst",
    least: object = None,
    progress: Progress | None = None,
) -> Calibration:
    """The smallest rho with shares that keep all targets, or the best shares of a given ``rho`` (``"plan"``: its own).

    ``goal`` says what is best where rho is given: the smallest worst quotient of a variance, times its weight, and its
    limit, or the smallest sum of them. Every query that the plan measures keeps at least ``least`` of its table's
    budget at every level. Only the geography is read, from ``data`` or the plan's path.
    """
    progress = progress or Silent()
    given, floor = _budget(rho), _least(least)
    if goal not in ("worst", "sum"):
        raise errors.unknown_choice("goal", str(goal), ("worst", "sum"))
    asked = [one for one in targets if isinstance(one, ErrorTarget)]
    if given is None:  # then every target must be kept, whatever its weight
        goal, asked = "worst", [replace(one, weight=Fraction(1)) for one in asked]
    limits = [one for one in targets if not isinstance(one, ErrorTarget)]
    progress.stage("reading the geography")
    geography = data.get(GEOGRAPHY) if isinstance(data, Mapping) else data
    spine = read_spine(plan, geography)
    shapes = Shapes.of(spine)
    most = greatest_budget(lambda budget: guarantee_at(plan, budget), limits) if limits else None
    divided: list[Divided] = []
    for number, table in enumerate(plan.released):
        mine = tuple(one for one in asked if table_of(plan, one) is table)
        if mine:
            progress.stage(f"dividing the budget of {table.name}", number / len(plan.released))
            divided.append(_divide(plan, spine, shapes, table, mine, goal, floor))
    found = _enough(plan, spine, shapes, divided, given, goal) if divided else _scaled(plan, most, given)
    progress.stage("looking at the new plan")
    return told(plan, found, spine, shapes, divided, limits, most, given)


# -- reading what is asked ---------------------------------------------------------------------------------------


def _budget(given: object) -> Budget:
    if given is None or given == OWN:
        return given  # type: ignore[return-value]
    try:
        found = as_fraction(given)
    except NOT_A_NUMBER:
        found = Fraction(0)
    if found <= 0:
        raise errors.calibration_option("--rho", "must be a number above 0, or 'plan' for the plan's own budget")
    return found


def _least(given: object) -> Fraction | None:
    if given is None:
        return None
    try:
        found = as_fraction(given)
    except NOT_A_NUMBER:
        found = Fraction(0)
    if not 0 < found < 1:
        raise errors.calibration_option("--least", "must be a number between 0 and 1")
    return found


# -- shares ------------------------------------------------------------------------------------------------------


def _divide(
    plan: TopDownPlan,
    spine: Spine,
    shapes: Shapes,
    table: TableSection,
    targets: tuple[ErrorTarget, ...],
    goal: Goal,
    floor: Fraction | None,
) -> Divided:
    measured = [(level, query) for level in spine.levels for query in table.queries if table.rho_of(level, query)]
    least = float(KEPT / len(measured) if floor is None else floor)
    if len(measured) * least >= 1:
        raise errors.calibration_option(
            "--least",
            f"must be below 1/{len(measured)}: '{table.name}' has so many queries and levels that are measured",
        )

    def problem(some: Sequence[ErrorTarget]) -> TreeShares:
        places = [AskedPlace(spine.levels.index(level_of(one)), margin_of(table, one.by), one.typical) for one in some]
        candidates = [
            (spine.levels.index(level), measured_margin(plan, table, level, query)) for level, query in measured
        ]
        fixed = [
            (spine.levels.index(one.level), margin_of(table, one.by))
            for one in plan.invariants
            if one.table == table.name
        ]
        tree = TreePrecision.of(table.name, spine, candidates, places, fixed, shapes)
        for one, open_ in zip(some, tree.undetermined, strict=True):
            if open_:
                raise errors.target_not_measured(one.text, table.name)
        limits = np.array([float(one.standard_error) ** 2 for one in some])
        return TreeShares(tree, limits, np.array([float(one.weight) for one in some]), least, goal)

    whole = problem(targets)
    best = whole.best()
    alike = goal == "worst" and len({one.weight for one in targets}) == 1
    smallest = best if alike else replace(whole, goal="worst", importance=np.ones(len(targets))).best()
    saved = []
    for number in range(len(targets)):
        others = targets[:number] + targets[number + 1 :]
        without = problem(others).best(best.shares).value if others else 0.0
        saved.append(max(0.0, 1 - without / best.value) if best.value else 0.0)
    keys = [(level, query.name) for level, query in measured]
    shares, needed = _written(whole, best, keys)
    return Divided(table, targets, best, dict(zip(keys, shares, strict=True)), needed, smallest, tuple(saved))


def _written(problem: TreeShares, best: BestShares, keys: Sequence[tuple[str, str]]) -> tuple[list[Fraction], float]:
    """Fractions near the best shares that add up to one, by level and then by query; and the budget they need."""
    levels = list(dict.fromkeys(level for level, _ in keys))
    places = [[at for at, key in enumerate(keys) if key[0] == level] for level in levels]
    for parts in _PARTS:
        if parts < 2 * len(keys):
            continue
        tops = as_parts(np.array([best.shares[some].sum() for some in places]), parts)
        found = [Fraction(0)] * len(keys)
        for top, some in zip(tops, places, strict=True):
            for at, share in zip(some, as_parts(best.shares[some], parts), strict=True):
                found[at] = top * share
        as_numbers = np.array([float(one) for one in found])
        value = problem.value(as_numbers)
        if value <= _WORSE * best.value or parts == _PARTS[-1]:
            break
    return found, float(problem.quotients(as_numbers).max())


def _enough(
    plan: TopDownPlan,
    spine: Spine,
    shapes: Shapes,
    divided: Sequence[Divided],
    given: Budget,
    goal: Goal,
) -> TopDownPlan:
    """The plan with these shares, and with the given budget or the smallest that keeps the targets."""
    if given is None:
        found = plan
        for one in divided:
            if not one.needed:
                continue  # what is asked for is published exactly
            spent = Fraction(one.needed)
            for _ in range(20):
                found = with_shares(found, one.table, one.shares, whole_rho(plan, one.table, spent))
                if all(
                    reached_error(found, spine, shapes, target) <= float(target.standard_error)
                    for target in one.targets
                ):
                    break
                spent *= Fraction(10001, 10000)
        return found
    total = plan.rho if given == OWN else given
    assert isinstance(total, Fraction)
    kept = plan.rho - sum((spent_on(plan, one.table) for one in divided), Fraction(0))
    if total <= kept:
        raise errors.calibration_option(
            "--rho", f"must be above {written(kept)}, which the tables without a target have: {written(total)} is not"
        )
    weights = [one.best.value if goal == "worst" else math.sqrt(one.best.value) for one in divided]
    parts = [Fraction(1)] if len(divided) == 1 else _proportions(weights)
    found = plan
    for one, part in zip(divided, parts, strict=True):
        exact = (total - kept) * part / present_part(plan, one.table)
        found = with_shares(found, one.table, one.shares, exact)
    return found


def _proportions(weights: Sequence[float]) -> tuple[Fraction, ...]:
    positive = np.maximum(np.array(weights), 1e-9 * max(weights) or 1.0)
    return as_parts(positive / positive.sum(), 10_000)


def _scaled(plan: TopDownPlan, most: Fraction | None, given: Budget) -> TopDownPlan:
    """The plan with another rho and the same shares."""
    if given is not None:
        raise errors.calibration_option("--rho", "divides a budget among queries, so it needs a target for an error")
    assert most is not None
    factor = most / plan.rho
    fields = fields_of(plan)
    for table, section in zip(plan.tables, fields["tables"], strict=True):
        if table.rho is not None:
            section["rho"] = str(rounded_down(table.rho * factor))
    return TopDownPlan(**fields)
