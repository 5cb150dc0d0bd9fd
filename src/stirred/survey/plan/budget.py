"""Which epsilon or rho of a survey plan, and which shares of it, keep limits on errors, tests, beliefs or epsilon.

Errors are standard errors of the noise in the best estimates from all queries of one variable, or of weighted counts
(:mod:`stirred.survey.estimating.measured`); shares come from :mod:`stirred.margins.table_shares`. What no target asks
for keeps its own part of the budget, in absolute numbers, and the shares of all follow.

The invariant a reader must know: noise follows from the plan alone, so nothing is read, and the error of sampling,
which comes on top, is not looked at. The plan that is found is looked at again with the noise that it would have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from stirred import errors
from stirred.margins.table_shares import AskedMargin, ShareProblem
from stirred.margins.tree_shares import as_parts
from stirred.releases.mechanism import Data
from stirred.semantics.budgets_for_targets import (
    calibrate_budget,
    greatest_budget,
    guarantee_changes,
    notes_of,
    rounded_up,
    value_of,
)
from stirred.semantics.targets import (
    BeforeAfter,
    Calibration,
    ErrorTarget,
    GuaranteeTarget,
    Target,
    TargetAnswer,
    worse,
)
from stirred.spec.exact import significant
from stirred.spec.specification import Specification
from stirred.survey.estimating.measured import Family
from stirred.survey.measuring import query_noise
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.guarantee import specify
from stirred.survey.plan.sections import QuerySection

_PARTS = 1000
_COUNTS = "weighted counts"


def calibrate(plan: SurveyPlan, targets: Sequence[Target], data: Data | None = None) -> Calibration:
    """The smallest budget with shares that keep all errors; with limits on the guarantee alone, the greatest budget
    with the shares as they are. No ``data`` are read."""
    stated = specify(plan)

    def make(budget: Fraction) -> Specification:
        return replace(stated, budget=replace(stated.budget, value=budget), findings=())

    asked = [one for one in targets if isinstance(one, ErrorTarget)]
    limits = [one for one in targets if not isinstance(one, ErrorTarget)]
    name = "epsilon" if plan.epsilon is not None else "rho"
    if not asked:
        found = calibrate_budget(name, make, limits, plan.budget)
        budget = Fraction(str(found.fields["budget"]))
        return replace(
            found, of=plan.mechanism, paste=f'{name} = "{budget}"', plan=plan.model_copy(update={name: budget})
        )
    for one in asked:
        _require(plan, one)
    better = _smallest(plan, asked, name)
    if limits and better.budget > (most := greatest_budget(make, limits)):
        texts = errors.listed([one.text for one in limits])
        raise errors.targets_disagree(
            f"the errors need {name} of {significant(better.budget, 4)}, and {texts} allow at most "
            f"{significant(most, 4, down=True)}",
            "Raise some limits, or drop a target.",
        )
    return _told(plan, better, asked, limits, name)


def _require(plan: SurveyPlan, target: ErrorTarget) -> None:
    if target.level is not None or target.typical:
        raise errors.bad_target(
            target.text,
            "for a survey write the attributes of a table, as 'error of sex,area <= 500', or of sums of a variable, "
            "as 'error of sex in income <= 1000000'",
        )
    known = list(dict.fromkeys(query.of or _COUNTS for query in plan.queries))
    if (target.table or _COUNTS) not in known:
        raise errors.unknown_choice("measured variable", target.table or _COUNTS, known)
    names = plan.names_of(target.table)
    if unknown := [one for one in target.by if one not in names]:
        raise errors.unknown_choice("attribute or recode", unknown[0], names)


def _error(plan: SurveyPlan, target: ErrorTarget) -> float:
    """The standard error of the noise where a target looks: of the noisiest group."""
    family = Family(plan, target.table, plan.family(target.table), ())
    return math.sqrt(float(np.max(family.noise_variances(target.by, {}))))


# -- shares ------------------------------------------------------------------------------------------------------


def _smallest(plan: SurveyPlan, asked: Sequence[ErrorTarget], name: str) -> SurveyPlan:
    """The plan with the smallest budget that was found for these errors."""
    spent = {query.name: plan.budget * plan.share(query) for query in plan.queries}
    for of in dict.fromkeys(one.table for one in asked):
        spent |= _divided(plan, of, [one for one in asked if one.table == of])
    own = {query.name for one in asked for query in plan.family(one.table)}
    for _ in range(30):
        found = _with_budgets(plan, spent, name)
        if all(_error(found, one) <= float(one.standard_error) for one in asked):
            break
        spent = {key: value * (Fraction(1001, 1000) if key in own else 1) for key, value in spent.items()}
    return found


def _divided(plan: SurveyPlan, of: str | None, asked: Sequence[ErrorTarget]) -> Mapping[str, Fraction]:
    """The budget of each query of a variable."""
    queries = plan.family(of)
    candidates = [(query.by, _whole_variance(plan, query)) for query in queries]
    margins = [AskedMargin(one.by, 1 / float(one.standard_error) ** 2) for one in asked]
    schema = plan.schema_of(plan.names_of(of))
    try:
        problem = ShareProblem.of(schema, candidates, margins, noise=plan.noise, goal="largest", name=of or _COUNTS)
    except errors.StirredError as refusal:
        if refusal.kind != "not-estimable":
            raise
        raise errors.target_not_measured(asked[0].text, of or _COUNTS) from None
    best = problem.best(_PARTS)
    shares = as_parts(np.array([float(one) for one in best.shares]), _PARTS)
    value = problem.value(shares)
    needed = plan.budget * Fraction(value if plan.noise == "gaussian" else math.sqrt(value))
    return {query.name: rounded_up(needed) * share for query, share in zip(queries, shares, strict=True)}


def _whole_variance(plan: SurveyPlan, query: QuerySection) -> float:
    """The variance of the noisiest cell if the query had the whole budget."""
    share = float(plan.share(query))
    found = float(query_noise(plan, query).variances.max())
    return found * share if plan.noise == "gaussian" else found * share**2


def _with_budgets(plan: SurveyPlan, spent: Mapping[str, Fraction], name: str) -> SurveyPlan:
    """The plan in which each query has this budget, and standard errors and imputations what they had."""
    others = [*((one, one.errors) for one in plan.publish), *((one, one.share) for one in plan.imputation)]
    total = sum(spent.values(), Fraction(0)) + sum((plan.budget * share for _, share in others), Fraction(0))
    fields = plan.model_dump(mode="json", exclude_defaults=True)
    fields[name] = str(total)
    for query, section in zip(plan.queries, fields["queries"], strict=True):
        section["share"] = str(spent[query.name] / total)
    for published, section in zip(plan.publish, fields.get("publish", ()), strict=True):
        if published.errors:
            section["errors"] = str(plan.budget * published.errors / total)
    for imputed, section in zip(plan.imputation, fields.get("imputation", ()), strict=True):
        if imputed.share:
            section["share"] = str(plan.budget * imputed.share / total)
    return SurveyPlan(**fields)


# -- what is told ------------------------------------------------------------------------------------------------


def _told(
    plan: SurveyPlan, found: SurveyPlan, asked: Sequence[ErrorTarget], limits: Sequence[GuaranteeTarget], name: str
) -> Calibration:
    before, after = specify(plan), specify(found)
    answers = [_answer(one.text, one.standard_error, _error(plan, one), _error(found, one)) for one in asked]
    answers += [_answer(one.text, one.most, value_of(one, before), value_of(one, after)) for one in limits]
    queries = [
        BeforeAfter(f"error of {query.name} as measured", _measured(plan, query), _measured(found, other))
        for query, other in zip(plan.queries, found.queries, strict=True)
    ]
    lines = [f'{name} = "{found.budget}"']
    for query in found.queries:
        lines += [f"# query {query.name}", f'share = "{query.share}"']
    parts = [*((one.name, one.errors) for one in found.publish), *((one.of, one.share) for one in found.imputation)]
    lines += [f"# {part}: its share is now {share}" for part, share in parts if share]
    notes = (
        *notes_of(limits),
        "Errors are standard errors of the noise in the best estimates from all queries of one variable; the error of "
        "sampling comes on top. Queries of other variables keep what they had.",
    )
    return Calibration(
        plan.mechanism,
        (
            f"All targets are kept with {name} of {significant(found.budget, 6)}; the plan has "
            f"{significant(plan.budget, 6)}.",
            *worse(queries),
        ),
        tuple(answers),
        (*guarantee_changes(before, after), *queries),
        "\n".join(lines),
        notes,
        found,
        fields={
            "number": name,
            "budget": str(found.budget),
            "budget_before": str(plan.budget),
            "shares": {query.name: str(query.share) for query in found.queries},
        },
    )


def _answer(text: str, most: Fraction, before: float, after: float) -> TargetAnswer:
    return TargetAnswer(text, after <= float(most), before, after, float(most))


def _measured(plan: SurveyPlan, query: QuerySection) -> float:
    return math.sqrt(float(query_noise(plan, query).variances.max()))
