"""The guarantee of a survey plan, as its five blocks; it follows from the plan alone.

The multiverse compares only datasets that agree on the stages that are held fixed (Definitions 6.3.1 to 6.3.3), and in
the reading ``value`` also on which units there are and on what stands in the frame. The guarantee is about records of
the stage at which the release starts, and about no other stage.
"""

from __future__ import annotations

from stirred.releases.folder.documents import allowed_findings
from stirred.spec import Domain, Invariant, OutputPremetric, Specification, facts, flavors, lint
from stirred.spec.exact import written
from stirred.spec.specification import NOT_FOR_RELEASE
from stirred.survey.measuring import weights_may_move
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.problems import SEVERAL_ROWS
from stirred.survey.plan.settings import DATASETS, HELD, SAME_UNITS

REFUSED = "refusing files that do not fit the plan (a number outside its bounds, a value that is not listed)"
"""The same words for all plans, so that releases of one survey with different plans can be added up."""


def specify(plan: SurveyPlan, for_release: bool = True) -> Specification:
    """The specification of a plan; it does not depend on the data."""
    pure = plan.noise == "laplace"
    output = OutputPremetric("multiplicative" if pure else "normalised-renyi")
    flavor = flavors.flavor(output, plan.unit, domain=_domain(plan), invariants=_held(plan))
    stated = flavor.at(
        plan.budget,
        conversion=_conversion(plan),
        nearest=1,
        covers=("the measured sums and standard errors, and every estimate made from them",),
        facts=_facts(plan),
        marks=() if for_release else (NOT_FOR_RELEASE,),
    )
    return stated.with_findings(*lint(stated), *allowed_findings(plan.allow))


def _domain(plan: SurveyPlan) -> Domain:
    row = "one row of the file" if _rows_are_units(plan) else f"if each row is one whole {plan.unit}"
    return Domain(
        plan.dataset or f"{DATASETS[plan.starts].format(survey='a survey')}, of no named dataset",
        starts=f"the {plan.starts}",
        record=f"{plan.unit}, {row}: {plan.pipeline.protects}",
        restricted_by=(REFUSED,),
    )


def _held(plan: SurveyPlan) -> list[Invariant]:
    kept = [HELD[stage.name] for stage in plan.pipeline.held_fixed]
    if plan.change == "value":
        kept.append(SAME_UNITS)
    return kept


def _conversion(plan: SurveyPlan) -> str:
    budget = "epsilon" if plan.noise == "laplace" else "rho"
    parts = [f"{written(plan.budget * plan.share(one))} for {one.name}" for one in plan.queries]
    parts += [
        f"{written(one.errors * plan.budget)} for standard errors of {one.name}" for one in plan.publish if one.errors
    ]
    parts += [f"{written(one.share * plan.budget)} for imputing {one.of}" for one in plan.imputation]
    why = weights_may_move(plan)
    weights = f"; the noise covers that one record may change all weights ({why})" if why else ""
    return f"sum of {budget}: {', '.join(parts)}{weights}"


def _rows_are_units(plan: SurveyPlan) -> bool:
    """Whether the plan states that each row is one whole unit, and allows no column that shows otherwise."""
    return plan.row is not None and not any(name.startswith(SEVERAL_ROWS) for name in plan.allow)


def _facts(plan: SurveyPlan) -> tuple[tuple[str, str | int | bool], ...]:
    found: dict[str, str | int | bool] = {facts.MECHANISM: plan.mechanism, facts.ROW_ORDER: "sorted"}
    if _rows_are_units(plan):
        found[facts.ROW] = str(plan.row)
    if _held(plan):
        found[facts.HELD_NOT_RELEASED] = True
    found |= plan.origin()
    if plan.starts in ("edited and imputed data", "weights"):
        found[facts.IMPUTED] = True
    return tuple(found.items())
