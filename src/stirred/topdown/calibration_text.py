"""What a calibration of a TopDown plan says: the consequence, what each target costs, and what else changes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.margins.spine import Shapes, Spine
from stirred.semantics.budgets_for_targets import greatest_budget, guarantee_changes, notes_of, value_of
from stirred.semantics.targets import Calibration, Change, GuaranteeTarget, PowerTarget, TargetAnswer, worse
from stirred.spec.exact import significant
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.precision import expected_errors
from stirred.topdown.specifying import specify
from stirred.topdown.target_plans import Budget, Divided, guarantee_at, reached_error, spent_on

_MOST_ROWS = 12
"""Rows of other errors that the text has."""


def told(
    plan: TopDownPlan,
    found: TopDownPlan,
    spine: Spine,
    shapes: Shapes,
    divided: Sequence[Divided],
    limits: Sequence[GuaranteeTarget],
    most: Fraction | None,
    given: Budget,
) -> Calibration:
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
        spent = float(spent_on(found, found.table(one.table.name)))
        for target, portion, saved in zip(one.targets, one.best.portions, one.saved, strict=True):
            reached = reached_error(found, spine, shapes, target)
            answers.append(
                TargetAnswer(
                    target.text,
                    reached <= float(target.standard_error),
                    reached_error(plan, spine, shapes, target),
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
        Change("rho spent", float(plan.rho), float(found.rho)),
        *guarantee_changes(before, after),
    )
    errors_before, errors_after = expected_errors(plan, spine), expected_errors(found, spine)
    every = [
        Change(f"error of {one.query} at {one.level}" + (f" in {one.table}" if len(plan.released) > 1 else ""),
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
        (*_answer(plan, found, divided, limits, most, given, all(one.met for one in answers)), *worse(every)),
        tuple(answers),
        (*changes, *moved[:_MOST_ROWS]),
        _paste(found, changed if divided else [one.name for one in found.released], bool(divided)),
        tuple(notes),
        found,
        fields=fields,
    )


def _worsened(change: Change) -> float:
    if not change.before or change.after is None:
        return 0.0
    return change.after / change.before


def _answer(
    plan: TopDownPlan,
    found: TopDownPlan,
    divided: Sequence[Divided],
    limits: Sequence[GuaranteeTarget],
    most: Fraction | None,
    given: Budget,
    met: bool,
) -> list[str]:
    if not divided:
        assert most is not None
        lines = [
            f"rho of {_shown(found.rho)} in place of {_shown(plan.rho)} keeps what is asked of the guarantee, with "
            "the shares of the plan."
        ]
        if any(isinstance(one, PowerTarget) for one in limits):
            own = greatest_budget(lambda budget: guarantee_at(plan, budget), limits, own=True)
            lines.append(
                f"That is for any mechanism with this guarantee; the plan's own Gaussian noise may have rho of "
                f"{_shown(own)}."
            )
        return lines
    bound = sum(one.smallest.bound for one in divided)
    needed = sum(one.needed for one in divided)
    if all(one.best.value == 0 for one in divided):
        return ["Every target is about counts that are published exactly: it needs no budget, and nothing is changed."]
    if given is None:
        lines = [
            f"All targets are kept with rho of {_shown(found.rho)}; the plan has {_shown(plan.rho)}.",
            f"For these targets {_short(needed)} is spent, and no shares can do with less than {_short(bound)}.",
        ]
    elif met:
        lines = [f"With these shares rho of {_shown(found.rho)} keeps all targets."]
    else:
        spent = sum(float(spent_on(found, found.table(one.table.name))) for one in divided)
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


def _table_fields(plan: TopDownPlan, found: TopDownPlan, one: Divided) -> dict[str, Any]:
    table = found.table(one.table.name)
    return {
        "table": table.name,
        "rho": str(table.rho),
        "needed": one.needed,
        "no_shares_need_less_than": one.best.bound,
        "level_shares": {level: str(share) for level, share in table.level_shares.items()},
        "queries": [
            {
                "query": query.name,
                "shares": {level: str(query.share(level)) for level in plan.levels if query.share(level)},
            }
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
