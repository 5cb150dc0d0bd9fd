"""The specification that a TopDown release satisfies (Theorem 3.3.1): zCDP, conditioned on what is kept exactly.

The measurements alone satisfy it without any condition. The fit reads the values of the invariants as well, so the
whole two-step procedure is covered only between datasets that agree on them; without one of these conditions no finite
budget would do, since the invariant is released as it is (Proposition 2.4.11).
"""

from __future__ import annotations

from stirred.errors import listed
from stirred.spec import Budget, Domain, InputPremetric, Invariant, Multiverse, OutputPremetric, Specification, lint
from stirred.spec.exact import written
from stirred.spec.invariant import plural
from stirred.spec.specification import NOT_FOR_RELEASE
from stirred.topdown.data.constraints import constrained_names, constraint_words
from stirred.topdown.fitting.relations import relation_words
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.sections import InvariantSection

MECHANISM = "topdown"


def specify(plan: TopDownPlan, for_release: bool = True) -> Specification:
    """The specification of a plan; it does not depend on the data."""
    stated = Specification(
        domain=_domain(plan),
        multiverse=Multiverse(tuple(_invariant(plan, one) for one in plan.invariants)),
        input_premetric=InputPremetric(
            unit=plan.unit,
            words=f"The number of {plural(plan.unit)} in which two files of equal size differ, whatever their order "
            f"(d_HamS at the {plan.unit} level){_others(plan)}",
        ),
        output_premetric=OutputPremetric("normalised-renyi"),
        budget=Budget(plan.rho, conversion=_conversion(plan)),
        nearest=1 if _free_attribute(plan) else None,
        covers=("the measurement files", f"the fitted {listed([table.name for table in plan.released])}"),
        facts=_facts(plan),
        marks=() if for_release else (NOT_FOR_RELEASE,),
    )
    return stated.with_findings(*lint(stated))


def _domain(plan: TopDownPlan) -> Domain:
    zeros = [f"combinations of values of '{table.name}' that cannot occur" for table in plan.tables if table.zeros]
    kept = [f"{constraint_words(one)}, without which a release is refused" for one in plan.constraints]
    kept += [f"{relation_words(one)}, without which a release is refused" for one in plan.relations]
    return Domain(
        plan.dataset or f"files of {plural(plan.unit)}, of no named dataset",
        starts="the tables that were measured, after collection, editing and imputation",
        record=plan.unit,
        restricted_by=(*zeros, *kept),
    )


def _invariant(plan: TopDownPlan, invariant: InvariantSection) -> Invariant:
    table = plan.table(invariant.table)
    place = () if invariant.level == plan.spine.root else (invariant.level,)
    return Invariant(table.unit, by=(*place, *invariant.by))


def _others(plan: TopDownPlan) -> str:
    """What one unit has to do with released tables of other units."""
    others = [table.unit for table in plan.released if table.unit != plan.unit]
    if not others:
        return ""
    return f"; files that differ in one {plan.unit} are taken to differ in at most one {' and one '.join(others)}"


def _conversion(plan: TopDownPlan) -> str:
    spent = [f"{written(plan.spent_on(table))} for {table.name}" for table in plan.released]
    unspent = f"; the shares of {listed(plan.spine.absent)} are not spent" if plan.spine.absent else ""
    given = "; given an earlier release that it repeats, whose own budget comes on top" if plan.earlier else ""
    if plan.measured_by is not None:
        given = f"; as the published variances state it, of noise drawn by {plan.measured_by}, whose guarantee it is: "
        given += "this release reads measurements that are public, and adds no loss"
    return f"sum of rho: {', '.join(spent)}{unspent}; the invariants cost nothing under this multiverse{given}"


def _free_attribute(plan: TopDownPlan) -> bool:
    """Whether one record can change alone: some attribute is in no invariant, constraint, relation or zero."""
    table = next(one for one in plan.released if one.unit == plan.unit)
    named = {base for zero in table.zeros for name in zero for base in table.schema_of.bases(name)}
    named |= set(constrained_names(plan, table))
    return any(one.name not in named and len(one.values) > 1 for one in table.attributes)


def _facts(plan: TopDownPlan) -> tuple[tuple[str, str | int | bool], ...]:
    facts: dict[str, str | int | bool] = {"mechanism": MECHANISM, "row_order": "sorted"}
    facts |= plan.origin()
    if plan.earlier:
        facts["given_earlier_releases"] = len(plan.earlier)
    return tuple(facts.items())
