"""Finds the rho of a TopDown plan, and the shares of it by level and query, that keep stated errors; says the cost.

Nothing but the plan and the public geography is read. Errors are those of the best linear unbiased estimates from all
measurements (``stirred estimate``), in every unit of a level or, for a *typical* error, as the root mean square over
its units. Shares come from :mod:`stirred.margins.tree_shares`, budgets for limits on the guarantee from
:mod:`stirred.semantics.budgets_for_targets`.

The invariant a reader must know: shares are rounded to fractions that add up to exactly one, rho is rounded up, and the
plan made of them is looked at again with :class:`stirred.topdown.estimating.precision.Design`, which the search for
shares does not use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred._progress import stage
from stirred.margins.margin_blocks import Array, Margin, representatives
from stirred.margins.spine import Shapes, Spine
from stirred.margins.tree_shares import AskedPlace, BestShares, Goal, TreePrecision, TreeShares, as_parts
from stirred.releases.mechanism import Data
from stirred.semantics.budgets_for_targets import (
    greatest_budget,
    guarantee_changes,
    notes_of,
    rounded_down,
    rounded_up,
    value_of,
)
from stirred.semantics.targets import (
    BeforeAfter,
    Calibration,
    ErrorTarget,
    GuaranteeTarget,
    PowerTarget,
    Target,
    TargetAnswer,
    worse,
)
from stirred.spec.exact import significant, written
from stirred.spec.specification import Specification
from stirred.topdown.data.counting import GEOGRAPHY, read_spine
from stirred.topdown.estimating.precision import Design, expected_errors
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.sections import QuerySection, TableSection

Budget = Fraction | Literal["plan"] | None


KEPT = Fraction(1, 20)
"""This part of a table's budget is divided equally among all its measured queries and levels, whatever the targets
say, unless another least share is given."""
OWN = "plan"
"""In place of a number: the plan's own budget."""

_PARTS = (100, 1000, 10_000, 100_000, 1_000_000)
_WORSE = 1.005
"""Shares with few digits may need so many times the budget of those with many."""


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of a plan, on its geography."""

    plan: TopDownPlan
    spine: Spine
    shapes: Shapes
    limits: tuple[GuaranteeTarget, ...]
    """Targets for the guarantee."""
    most: Fraction | None
    """The greatest rho that they allow; None where there are none."""
    given: Budget
    goal: Goal
    least: Fraction | None


@dataclass(frozen=True, eq=False)
class _Divided:
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


def calibrate(
    plan: TopDownPlan,
    targets: Sequence[Target],
    data: Data | None = None,
    *,
    rho: object = None,
    goal: Goal = "worst",
    least: object = None,
) -> Calibration:
    """The smallest rho with shares that keep all targets, or the best shares of a given ``rho`` (``"plan"``: its own).

    ``goal`` says what is best where rho is given: the smallest worst quotient of a variance, times its weight, and its
    limit, or the smallest sum of them. Every query that the plan measures keeps at least ``least`` of its table's
    budget at every level. Only the geography is read, from ``data`` or the plan's path.
    """
    must = "must be a number above 0, or 'plan' for the plan's own budget"
    given: Budget = rho if rho is None or rho == OWN else _positive(rho, "--rho", must)  # type: ignore[assignment]
    floor = None if least is None else _positive(least, "--least", "must be a number between 0 and 1", Fraction(1))
    if goal not in ("worst", "sum"):
        raise errors.unknown_choice("goal", str(goal), ("worst", "sum"))
    asked = [one for one in targets if isinstance(one, ErrorTarget)]
    if given is None:  # then every target must be kept, whatever its weight
        goal, asked = "worst", [replace(one, weight=Fraction(1)) for one in asked]
    limits = tuple(one for one in targets if not isinstance(one, ErrorTarget))
    stage("reading the geography")
    geography = data.get(GEOGRAPHY) if isinstance(data, Mapping) else data
    spine = read_spine(plan, geography)
    most = greatest_budget(lambda budget: _guarantee_at(plan, budget), limits) if limits else None
    question = _Question(plan, spine, Shapes.of(spine), limits, most, given, goal, floor)
    divided: list[_Divided] = []
    for number, table in enumerate(plan.released):
        mine = tuple(one for one in asked if _table_of(plan, one) is table)
        if mine:
            stage(f"dividing the budget of {table.name}", number / len(plan.released))
            divided.append(_divide(question, table, mine))
    found = _enough(question, divided) if divided else _scaled(question)
    stage("looking at the new plan")
    return _calibration(question, found, divided)


# -- reading what is asked ---------------------------------------------------------------------------------------


def _positive(given: object, option: str, must: str, below: Fraction | None = None) -> Fraction:
    try:
        found = as_fraction(given)
    except NOT_A_NUMBER:
        found = Fraction(0)
    if found <= 0 or (below is not None and found >= below):
        raise errors.calibration_option(option, must)
    return found


def _table_of(plan: TopDownPlan, target: ErrorTarget) -> TableSection:
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
    once = len(set(target.by)) == len(target.by)
    fitting = [table for table in released if once and set(target.by) <= set(table.schema_of.names)]
    if not fitting:
        names = [name for table in released for name in table.schema_of.names]
        unknown = next((name for name in target.by if name not in names), target.by[0])
        raise errors.unknown_choice("attribute or recode", unknown, names)
    if not target.by:  # a total fits every table: the first is meant, as everywhere
        return fitting[0]
    if len(fitting) > 1:
        raise errors.bad_target(target.text, "several tables have these attributes; add 'in TABLE' after the level")
    return fitting[0]


# -- shares ------------------------------------------------------------------------------------------------------


def _divide(question: _Question, table: TableSection, targets: tuple[ErrorTarget, ...]) -> _Divided:
    plan, spine, goal = question.plan, question.spine, question.goal
    measured = [(level, query) for level in spine.levels for query in table.queries if table.rho_of(level, query)]
    least = float(KEPT / len(measured) if question.least is None else question.least)
    if len(measured) * least >= 1:
        raise errors.calibration_option(
            "--least",
            f"must be below 1/{len(measured)}: '{table.name}' has so many queries and levels that are measured",
        )

    def problem(some: Sequence[ErrorTarget]) -> TreeShares:
        places = [
            AskedPlace(spine.levels.index(str(one.level)), Margin.of(table.schema_of, one.by), one.typical)
            for one in some
        ]
        candidates = [
            (spine.levels.index(level), _measured_margin(plan, table, level, query)) for level, query in measured
        ]
        fixed = [
            (spine.levels.index(one.level), Margin.of(table.schema_of, one.by))
            for one in plan.invariants
            if one.table == table.name
        ]
        tree = TreePrecision.of(table.name, spine, candidates, places, fixed, question.shapes)
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
    return _Divided(table, targets, best, dict(zip(keys, shares, strict=True)), needed, smallest, tuple(saved))


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


def _enough(question: _Question, divided: Sequence[_Divided]) -> TopDownPlan:
    """The plan with these shares, and with the given budget or the smallest that keeps the targets."""
    plan, given = question.plan, question.given
    if given is None:
        found = plan
        for one in divided:
            if not one.needed:
                continue  # what is asked for is published exactly
            spent = Fraction(one.needed)
            for _ in range(20):
                found = _with_shares(found, one.table, one.shares, rounded_up(spent / _present_part(plan, one.table)))
                if all(
                    _reached_error(question, found, target) <= float(target.standard_error) for target in one.targets
                ):
                    break
                spent *= Fraction(10001, 10000)
        return found
    total = plan.rho if given == OWN else given
    assert isinstance(total, Fraction)
    kept = plan.rho - sum((plan.spent_on(one.table) for one in divided), Fraction(0))
    if total <= kept:
        raise errors.calibration_option(
            "--rho", f"must be above {written(kept)}, which the tables without a target have: {written(total)} is not"
        )
    weights = [one.best.value if question.goal == "worst" else math.sqrt(one.best.value) for one in divided]
    parts = [Fraction(1)] if len(divided) == 1 else _proportions(weights)
    found = plan
    for one, part in zip(divided, parts, strict=True):
        exact = (total - kept) * part / _present_part(plan, one.table)
        found = _with_shares(found, one.table, one.shares, exact)
    return found


def _proportions(weights: Sequence[float]) -> tuple[Fraction, ...]:
    positive = np.maximum(np.array(weights), 1e-9 * max(weights) or 1.0)
    return as_parts(positive / positive.sum(), 10_000)


def _scaled(question: _Question) -> TopDownPlan:
    """The plan with another rho and the same shares."""
    if question.given is not None:
        raise errors.calibration_option("--rho", "divides a budget among queries, so it needs a target for an error")
    assert question.most is not None
    plan = question.plan
    factor = question.most / plan.rho
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    for table, section in zip(plan.tables, fields["tables"], strict=True):
        if table.rho is not None:
            section["rho"] = str(rounded_down(table.rho * factor))
    return TopDownPlan(**fields)


# -- plans with other shares, and their errors -------------------------------------------------------------------


def _with_shares(
    plan: TopDownPlan, table: TableSection, shares: Mapping[tuple[str, str], Fraction], rho: Fraction
) -> TopDownPlan:
    """The plan with these shares of what a table spends; the shares of levels that the spine does not have stay."""
    present = _present_part(plan, table)
    levels = {level: sum((share for key, share in shares.items() if key[0] == level), Fraction(0))
              for level in plan.spine.all_levels}  # fmt: skip
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    section = next(one for one in fields["tables"] if one["name"] == table.name)
    section["rho"] = str(rho)
    section["level_shares"] = {
        level: str(levels[level] * present if level in levels else share)
        for level, share in ((level, table.level_shares.get(level, Fraction(0))) for level in plan.levels)
        if level in levels or share
    }
    for query, of_query in zip(table.queries, section["queries"], strict=True):
        each = {
            level: shares.get((level, query.name), Fraction(0)) / levels[level]
            if level in levels
            else query.share(level)
            for level in plan.levels
        }
        of_query["shares"] = {level: str(share) for level, share in each.items() if share}
    return TopDownPlan(**fields)


def _present_part(plan: TopDownPlan, table: TableSection) -> Fraction:
    """The part of a table's rho that is spent: the shares of the levels that the spine has."""
    return 1 - sum((table.level_shares.get(level, Fraction(0)) for level in plan.spine.absent), Fraction(0))


def _guarantee_at(plan: TopDownPlan, budget: Fraction) -> Specification:
    stated = specify(plan)
    return replace(stated, budget=replace(stated.budget, value=budget), findings=())


def _reached_error(question: _Question, plan: TopDownPlan, target: ErrorTarget) -> float:
    """The standard error that a plan has where a target looks, from the design itself."""
    spine, shapes = question.spine, question.shapes
    table = _table_of(plan, target)
    design = Design.of(plan, spine, table.name, target.by, shapes=shapes)
    level = spine.levels.index(str(target.level))
    if design.unknown(level).any():
        return math.inf
    few, _ = representatives(design.asked, design.split.axes)
    found: Array = design.split.variances(few, [tree.covariances_of(level) for tree in design.trees])
    if target.typical:
        kinds = shapes.everywhere[level]
        many = np.bincount(kinds.of_unit, minlength=len(kinds))
        found = (many @ found / many.sum())[None]
    return math.sqrt(float(found.max()))


def _measured_margin(plan: TopDownPlan, table: TableSection, level: str, query: QuerySection) -> Margin:
    """The margin of a query, such that its precision is rho times A'A: where groups overlap, noise is larger, and the
    margin's rows are smaller by the root of that."""
    margin = Margin.of(table.schema_of, query.by)
    moved = table.moved(query, plan.one_place(level))
    if moved == 2:
        return margin
    schema = table.schema_of
    axis = next(schema.axis_of(name) for name in query.by if schema.overlapping((name,)))
    factors = [factor * math.sqrt(2 / moved) if at == axis and isinstance(factor, np.ndarray) else factor
               for at, factor in enumerate(margin.factors)]  # fmt: skip
    return replace(margin, names=(*margin.names, f"moved by {moved}"), factors=tuple(factors))


# -- what is said ------------------------------------------------------------------------------------------------

_MOST_ROWS = 12
"""Rows of other errors that the text has."""


def _calibration(question: _Question, found: TopDownPlan, divided: Sequence[_Divided]) -> Calibration:
    plan, spine, limits, most, given = question.plan, question.spine, question.limits, question.most, question.given
    changed = [one.table.name for one in divided if one.needed or given is not None]
    if given is None and divided and most is not None and found.rho > most:
        texts = errors.listed([one.text for one in limits])
        raise errors.targets_disagree(
            f"the errors need rho of {_shown(found.rho)}, and {texts} allow at most {_shown(most)}",
            "Raise some limits, drop a target, or divide a given budget: --rho.",
        )
    before, after = specify(plan), specify(found)
    answers = []
    for one in divided:
        spent = float(found.spent_on(found.table(one.table.name)))
        for target, portion, saved in zip(one.targets, one.best.portions, one.saved, strict=True):
            reached = _reached_error(question, found, target)
            answers.append(
                TargetAnswer(
                    target.text,
                    reached <= float(target.standard_error),
                    _reached_error(question, plan, target),
                    reached,
                    float(target.standard_error),
                    {"costs rho": float(portion) * spent, "saved without it": saved * spent},
                )
            )
    for limit in limits:
        value = value_of(limit, after)
        met = value <= float(limit.most)
        answers.append(TargetAnswer(limit.text, met, value_of(limit, before), value, float(limit.most)))
    changes = (
        BeforeAfter("rho spent", float(plan.rho), float(found.rho)),
        *guarantee_changes(before, after),
    )
    errors_before, errors_after = expected_errors(plan, spine), expected_errors(found, spine)
    every = [
        BeforeAfter(f"error of {one.query} at {one.level}" + (f" in {one.table}" if len(plan.released) > 1 else ""),
               one.combined, other.combined)
        for one, other in zip(errors_before, errors_after, strict=True)
    ]  # fmt: skip
    moved = sorted(every, key=_worsened, reverse=True)
    notes = list(notes_of(limits))
    if divided:
        notes.append(
            "Errors are standard errors of a cell in the best unbiased estimates from all measurements (stirred "
            "estimate): in every unit of the level, or for a typical error as the root mean square over its units. "
            "'costs rho' divides rho among the targets: a limit that is 1% wider in variance saves 1% of that number. "
            "'saved without it' is what is saved if the target is dropped. What no target needs keeps a least share: "
            "--least."
        )
    if len(every) > _MOST_ROWS:
        notes.append(
            f"Of {len(every)} errors by query and level the {_MOST_ROWS} that grow most are shown; --json has all. "
            "They are medians over the units, as in stirred check."
        )
    else:
        notes.append("Errors by query and level are medians over the units, as in stirred check.")
    fields: dict[str, Any] = {
        "rho_before": str(plan.rho),
        "rho": str(found.rho),
        "tables": [_table_fields(plan, found, one) for one in divided],
        "expected_errors": [{"what": one.what, "before": one.before, "after": one.after} for one in every],
    }
    if most is not None:
        fields["greatest_rho"] = str(most)
    return Calibration(
        plan.mechanism,
        (*_answer(question, found, divided, all(one.met for one in answers)), *worse(every)),
        tuple(answers),
        (*changes, *moved[:_MOST_ROWS]),
        _paste(found, changed if divided else [one.name for one in found.released], bool(divided)),
        tuple(notes),
        found,
        fields=fields,
    )


def _worsened(change: BeforeAfter) -> float:
    if not change.before or change.after is None:
        return 0.0
    return change.after / change.before


def _answer(question: _Question, found: TopDownPlan, divided: Sequence[_Divided], met: bool) -> list[str]:
    plan, limits, most = question.plan, question.limits, question.most
    if not divided:
        assert most is not None
        lines = [
            f"rho of {_shown(found.rho)} in place of {_shown(plan.rho)} keeps what is asked of the guarantee, with "
            "the shares of the plan."
        ]
        if any(isinstance(one, PowerTarget) for one in limits):
            own = greatest_budget(lambda budget: _guarantee_at(plan, budget), limits, own=True)
            lines.append(
                f"That is for any mechanism with this guarantee; the plan's own Gaussian noise may have rho of "
                f"{_shown(own)}."
            )
        return lines
    bound = sum(one.smallest.bound for one in divided)
    needed = sum(one.needed for one in divided)
    if all(one.best.value == 0 for one in divided):
        return ["Every target is about counts that are published exactly: it needs no budget, and nothing is changed."]
    if question.given is None:
        lines = [
            f"All targets are kept with rho of {_shown(found.rho)}; the plan has {_shown(plan.rho)}.",
            f"For these targets {_short(needed)} is spent, and no shares can do with less than {_short(bound)}.",
        ]
    elif met:
        lines = [f"With these shares rho of {_shown(found.rho)} keeps all targets."]
    else:
        spent = sum(float(found.spent_on(found.table(one.table.name))) for one in divided)
        lines = [f"rho of {_shown(found.rho)} does not keep all targets with these shares."]
        lines.append(
            f"However it is divided it is not enough: the errors need at least {_short(bound)} for the tables that "
            f"they are about, which have {_short(spent)} of it."
            if bound > spent
            else "Weights, or limits on the guarantee, are why: without them all errors that are asked for can be kept."
        )
    if most is not None:
        lines.append(f"What is asked of the guarantee allows rho of at most {_shown(most)}.")
    return lines


def _shown(rho: Fraction) -> str:
    return significant(rho, 6)


def _short(value: float) -> str:
    return f"{value:.4g}"


def _table_fields(plan: TopDownPlan, found: TopDownPlan, one: _Divided) -> dict[str, Any]:
    table = found.table(one.table.name)
    return {
        "table": table.name,
        "rho": str(table.rho),
        "needed": one.needed,
        "no_shares_need_less_than": one.best.bound,
        "level_shares": {level: str(share) for level, share in table.level_shares.items()},
        "queries": [
            {"query": query.name, "shares": {lv: str(query.share(lv)) for lv in plan.levels if query.share(lv)}}
            for query in table.queries
        ],
    }


def _paste(plan: TopDownPlan, names: Sequence[str], shares: bool) -> str:
    """The lines of a plan file that change."""
    lines = []
    for name in names:
        table = plan.table(name)
        lines += [f"# [[tables]] {name}", f'rho = "{table.rho}"']
        if shares:
            lines.append(f"level_shares = {_inline(table.level_shares)}")
            for query in table.queries:
                lines.append(f"# query {query.name}")
                assert isinstance(query.shares, Mapping)
                lines.append(f"shares = {_inline(query.shares)}")
    return "\n".join(lines)


def _inline(shares: Mapping[str, Fraction]) -> str:
    return "{ " + ", ".join(f"{json.dumps(name)} = {json.dumps(str(share))}" for name, share in shares.items()) + " }"
