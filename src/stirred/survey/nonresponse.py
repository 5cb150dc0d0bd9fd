"""What is said of weighted sums where not everybody answered: who is missing in them, and what adjusts for it.

With design weights w = 1 / (probability of selection), the weighted sum over those who answered is too small by the
weights of those who did not. Keep in mind: these words follow from the plan alone, and nothing is read from the file.
"""

from __future__ import annotations

from stirred.spec.invariant import plural
from stirred.survey.plan import SurveyPlan


def answered_only(plan: SurveyPlan, adjustable: bool = True) -> str:
    """The remark on counts and totals that are not adjusted; empty where the plan says that nobody is missing. Without
    ``adjustable`` it does not say what adjusts them, since not every question can be adjusted."""
    final = plan.weights is not None and plan.weights.kind == "final"
    if plan.sample.everybody_responds or (final and not plan.calibrations):
        return ""
    weighed = "every record counted once" if plan.weights is None else "with the weights of the file"
    said = (
        f"Counts and totals are sums over those who answered, {weighed}: {plural(plan.unit)} who did not answer are "
        "missing unless the weights allow for them."
    )
    if plan.calibrations and adjustable:
        first, *others = (one.name for one in plan.calibrations)
        choice = f" (or {', '.join(others)})" if others else ""
        said += f" stirred estimate --calibration {first}{choice} adjusts to the public totals."
    return said
