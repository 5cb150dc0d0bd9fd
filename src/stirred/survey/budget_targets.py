"""Which epsilon or rho of a survey plan keeps limits on the power of tests, on beliefs or on epsilon.

The guarantee of a survey plan follows from the plan alone, so nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from stirred import errors
from stirred.semantics.calibration import Calibration
from stirred.semantics.inverse import calibrate_budget
from stirred.semantics.targets import ErrorTarget, GuaranteeTarget, Target
from stirred.spec.specification import Specification
from stirred.survey.plan import SurveyPlan
from stirred.survey.specifying import specify

INSTEAD = (
    "Ask for power, belief, epsilon or rho. How the noise of each query follows from its share is told by stirred "
    "check and stirred advise, and stirred.margins.shares.best_shares divides a budget among queries for stated tables."
)


def calibrate(plan: SurveyPlan, targets: Sequence[Target]) -> Calibration:
    """The greatest budget of the plan that keeps all targets, with the shares of its queries as they are."""
    asked: list[GuaranteeTarget] = []
    for one in targets:
        if isinstance(one, ErrorTarget):
            raise errors.target_not_for(one.text, "the budget of a survey plan", INSTEAD)
        asked.append(one)
    stated = specify(plan)

    def make(budget: Fraction) -> Specification:
        return replace(stated, budget=replace(stated.budget, value=budget), findings=())

    name = "epsilon" if plan.epsilon is not None else "rho"
    found = calibrate_budget(name, make, asked, plan.budget)
    budget = Fraction(str(found.fields["budget"]))
    return replace(
        found,
        of=plan.mechanism,
        paste=f'{name} = "{budget}"',
        plan=plan.model_copy(update={name: budget}),
    )
