"""Refuses survey plans whose parts do not fit together, before any data are read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred import errors
from stirred.survey.plan.imputation_kinds import loss_with_imputation
from stirred.survey.plan.sections import (
    COUNT,
    AttributeSection,
    CalibrationSection,
    ImputationSection,
    PublishSection,
    VariableSection,
)
from stirred.survey.plan.settings import Pipeline

if TYPE_CHECKING:
    from stirred.survey.plan.fields import SurveyPlan

ALLOWED = ("fewer-selected", "weights-population")
"""Stops without a column that a plan may allow."""
SEVERAL_ROWS = "several-rows:"
"""How the name of a stop begins that says that a column shows several rows of one unit; the column follows."""
MOST_DECIMALS = 12
"""Digits after the point that the step of a lattice may have."""
MOST_CELLS = 1 << 22
"""Cells that one query may have."""
MOST_STEPS = 1 << 50
"""Steps from 0 that values and weights may be, so that means can be written to a thousandth of a step."""


def require_sound(plan: SurveyPlan) -> None:
    """Raise unless the parts of a plan fit together."""
    if (plan.epsilon is None) == (plan.rho is None):
        raise errors.survey_plan("Exactly one of epsilon and rho", "must be stated")
    if plan.budget <= 0:
        raise errors.survey_plan("The budget", "must be above 0")
    _unit(plan)
    Pipeline(plan.starts, plan.holds_fixed)
    _names(plan)
    _weights(plan)
    for variable in plan.variables:
        _variable(variable)
    for attribute in plan.attributes:
        _attribute(plan, attribute)
    plan.schema_of(())  # recodes are looked at with their attributes below
    for recode in plan.recodes:
        plan.schema_of([recode.name])
    _design(plan)
    if plan.sample.most is not None and plan.sample.fewest > plan.sample.most:
        raise errors.survey_plan("The fewest records of a sample", "can be at most as many as the most")
    for imputation in plan.imputation:
        _imputation(plan, imputation)
    _queries(plan)
    for calibration in plan.calibrations:
        _calibration(plan, calibration)
    for wanted in plan.publish:
        _published(plan, wanted)
    _unlike("table to publish", [one.name for one in plan.publish])
    _shares(plan)


def covers(plan: SurveyPlan, of: str | None, names: Iterable[str]) -> bool:
    """Whether some query of a family tells apart all groups by these attributes or recodes."""
    wanted = list(names)
    coarser = {one.name: one.of for one in plan.recodes}
    return any(all(name in query.by or coarser.get(name) in query.by for name in wanted) for query in plan.family(of))


def _unit(plan: SurveyPlan) -> None:
    if plan.row is not None and plan.row.strip().lower() != plan.unit.strip().lower():
        raise errors.PlanError(
            "unit-is-not-the-row",
            f"The plan protects one {plan.unit}, and a row of its file is one {plan.row}. The noise is for one row: a "
            "unit of nine rows would lose 9 times the stated epsilon, or 81 times the stated rho.",
            f'Make a file with one row for each {plan.unit}, or protect what a row is (unit = "{plan.row}"). Several '
            "rows for one unit are not supported yet.",
        )
    for name in plan.allow:
        if name not in ALLOWED and not name.startswith(SEVERAL_ROWS):
            known = f"{SEVERAL_ROWS}COLUMN, {' and '.join(ALLOWED)}"
            raise errors.survey_plan(f"The stop '{name}' in allow", f"must be one that can be allowed: {known}")


def _unlike(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise errors.survey_plan(f"Each {what}", "must have a name of its own")


def _names(plan: SurveyPlan) -> None:
    names = [one.name for part in (plan.attributes, plan.recodes, plan.variables) for one in part]
    _unlike("attribute, recode and variable", names)
    for name in names:
        if not name or name == COUNT:
            raise errors.survey_plan("An attribute, recode or variable", f"must have a name, other than '{COUNT}'")


def _on_lattice(what: str, step: Fraction, **numbers: Fraction | None) -> None:
    if step <= 0 or (step * 10**MOST_DECIMALS).denominator != 1:
        raise errors.survey_plan(
            f"The step of {what}",
            f"must be a positive decimal number with at most {MOST_DECIMALS} digits after the point",
        )
    for name, number in numbers.items():
        if number is not None and (number / step).denominator != 1:
            raise errors.survey_plan(f"The {name} of {what}", f"must be a whole multiple of its step, {step}")


def _weights(plan: SurveyPlan) -> None:
    weights = plan.weights
    if weights is None:
        return
    _on_lattice("the weights", weights.step)
    if weights.upper / weights.step >= MOST_STEPS:
        raise errors.survey_plan(
            "The upper bound of the weights", "must be fewer than 2^50 steps: state a coarser step"
        )
    _ = plan.weight_rule  # refuses bounds, steps and centres that do not fit together
    if weights.kind == "final" and weights.outside != "cut" and plan.starts != "weights":
        raise errors.weights_unbounded()


def _variable(variable: VariableSection) -> None:
    what = f"the variable '{variable.name}'"
    if variable.lower > variable.upper:
        raise errors.survey_plan(f"The lower bound of {what}", "must be at most the upper one")
    _on_lattice(what, variable.step, lower=variable.lower, upper=variable.upper, missing=variable.missing)
    if max(abs(variable.lower), abs(variable.upper)) / variable.step >= MOST_STEPS:
        raise errors.survey_plan(f"The bounds of {what}", "must be fewer than 2^50 steps from 0: state a coarser step")
    if variable.missing is not None and not variable.lower <= variable.missing <= variable.upper:
        raise errors.survey_plan(f"What an empty cell of {what} counts as", "must lie between its bounds")


def _attribute(plan: SurveyPlan, attribute: AttributeSection) -> None:
    what = f"The attribute '{attribute.name}'"
    if attribute.variable is None:
        if attribute.cuts or not attribute.values or len(set(attribute.values)) < len(attribute.values):
            raise errors.survey_plan(what, "must list each of its values once, or name a variable and its cuts")
        if attribute.missing is not None and attribute.missing not in attribute.values:
            raise errors.survey_plan(f"What an empty cell of '{attribute.name}' counts as", "must be one of its values")
        return
    if attribute.values or attribute.column or attribute.missing is not None or attribute.in_frame:
        raise errors.survey_plan(what, "is made from a variable, so it can only have cuts")
    variable = plan.variable(attribute.variable)
    cuts = list(attribute.cuts)
    if len(cuts) < 3 or cuts != sorted(set(cuts)) or (cuts[0], cuts[-1]) != (variable.lower, variable.upper):
        raise errors.survey_plan(
            f"The cuts of '{attribute.name}'",
            f"must ascend from the lower to the upper bound of '{variable.name}', with at least one between",
        )


def _design(plan: SurveyPlan) -> None:
    design = plan.design
    if design.selection == "independent":
        if design.strata is not None or design.sizes or design.selected is not None or design.population is not None:
            raise errors.survey_plan(
                "A design that selects each unit independently",
                "has no fixed numbers: leave strata, sizes, selected and population out of [design]",
            )
        return
    if design.strata is None:
        if design.sizes:
            raise errors.survey_plan("The sizes of strata", "need the attribute whose values are the strata")
        _fpc("the sample", design.selected, design.population)
        return
    if design.strata in [one.name for one in plan.recodes] or plan.attribute(design.strata).variable is not None:
        raise errors.survey_plan("The strata", "must be the values of an attribute that the file has as a column")
    if design.selected is not None or design.population is not None:
        raise errors.survey_plan("With strata, the numbers of selected units", "must be stated for each under sizes")
    if design.strata in [one.of for one in plan.imputation]:
        raise errors.survey_plan("The strata", "cannot be imputed: the design knows the stratum of every record")
    values = plan.attribute(design.strata).values
    if set(design.sizes) != set(values):
        raise errors.survey_plan("The sizes of strata", f"must be stated for every value of '{design.strata}'")
    for name, stratum in design.sizes.items():
        _fpc(f"the stratum '{name}'", stratum.selected, stratum.population)
        if stratum.selected < 2 and design.single == "refuse":
            raise errors.survey_plan(
                f"The stratum '{name}'",
                'must have at least two selected primary units, or the plan must say single = "certain"',
            )
        weights = plan.weights
        if stratum.lower is None and stratum.upper is None:
            continue
        if weights is None:
            raise errors.survey_plan(f"The bounds of weights in the stratum '{name}'", "need a column of weights")
        low, high = stratum.lower or weights.lower, stratum.upper or weights.upper
        _on_lattice(f"the weights in the stratum '{name}'", weights.step, lower=low, upper=high)
        if not weights.lower <= low <= high <= weights.upper:
            raise errors.survey_plan(f"The bounds of weights in the stratum '{name}'", "must lie within those of all")
        if weights.shrink:
            raise errors.survey_plan("Weights that are shrunk", "cannot have bounds for single strata")


def _fpc(what: str, selected: int | None, population: int | None) -> None:
    if selected is not None and population is not None and selected > population:
        raise errors.sample_too_large(selected, population, f"primary units of {what}")
    if selected is None and population is not None:
        raise errors.survey_plan(f"The number of selected primary units of {what}", "must be stated")


def _imputation(plan: SurveyPlan, imputation: ImputationSection) -> None:
    if imputation.kind not in ("frequencies", "linear"):
        loss_with_imputation(imputation.kind, plan.budget)  # refuses it, with the reason
    if plan.starts in ("edited and imputed data", "weights"):
        raise errors.survey_plan(
            "A release with imputation", f"cannot start at the {plan.starts}: imputation is earlier"
        )
    if imputation.share <= 0:
        raise errors.survey_plan(f"The imputation of '{imputation.of}'", "must have a share of the budget")
    if imputation.kind == "frequencies":
        target = plan.attribute(imputation.of)
        if target.name != imputation.of or target.variable is not None or target.missing is not None:
            raise errors.survey_plan(
                f"The imputation of '{imputation.of}' by frequencies",
                "is for an attribute of its own column without a value for empty cells",
            )
        for name in imputation.given:
            plan.attribute(name)
    else:
        if plan.variable(imputation.of).missing is not None:
            raise errors.survey_plan(
                f"The variable '{imputation.of}'", "is imputed, so it can have no value for empty cells"
            )
        if len(imputation.given) != 1:
            raise errors.survey_plan(f"The imputation of '{imputation.of}' by a line", "must be given one variable")
        plan.variable(imputation.given[0])
    imputed = [one.of for one in plan.imputation]
    _unlike("imputed attribute or variable", imputed)
    for name in imputation.given:
        source = plan.attribute(name) if imputation.kind == "frequencies" else plan.variable(name)
        behind = {source.name, getattr(source, "variable", None)}
        if behind & set(imputed):
            raise errors.survey_plan(f"What '{imputation.of}' is predicted from", "cannot itself be imputed")


def _queries(plan: SurveyPlan) -> None:
    if not plan.queries:
        raise errors.survey_plan("At least one query", "must be listed")
    _unlike("query", [one.name for one in plan.queries])
    for query in plan.queries:
        if query.of is not None:
            plan.variable(query.of)
        _unlike(f"attribute of the query '{query.name}'", [plan.attribute(name).name for name in query.by])
        cells = math.prod(len(plan.schema_of([name]).values(name)) for name in query.by)
        if cells > MOST_CELLS:
            raise errors.survey_plan(
                f"The query '{query.name}'", f"can have at most {MOST_CELLS:,} cells, not {cells:,}"
            )


def _calibration(plan: SurveyPlan, calibration: CalibrationSection) -> None:
    what = f"The calibration '{calibration.name}'"
    _unlike("calibration", [one.name for one in plan.calibrations])
    if not calibration.margins or (calibration.method == "post-stratified") > (len(calibration.margins) == 1):
        raise errors.survey_plan(what, "must have margins, and exactly one if it post-stratifies")
    sums = set()
    for margin in calibration.margins:
        cells = plan.number_of_cells(margin.by)
        if len(margin.totals) != cells:
            raise errors.survey_plan(f"{what} by {', '.join(margin.by)}", f"must state {cells:,} totals")
        if any(total <= 0 for total in margin.totals):
            raise errors.survey_plan(what, "must have positive totals")
        sums.add(sum(margin.totals, Fraction(0)))
    if len(sums) > 1:
        raise errors.survey_plan(what, "must have margins whose totals add up to the same number")
    names = calibration.names
    _unlike(f"attribute of the margins of '{calibration.name}'", [plan.attribute(name).name for name in names])
    if not covers(plan, None, names):
        raise errors.survey_plan(what, f"needs weighted counts by {', '.join(names)}: add such a query")


def _published(plan: SurveyPlan, wanted: PublishSection) -> None:
    what = f"The table '{wanted.name}'"
    wants_of = wanted.kind != "count"
    if wants_of != (wanted.of is not None) or (wanted.kind == "ratio") != (wanted.over is not None):
        raise errors.survey_plan(
            what, "must say of what it is ('of'; none for counts), and a ratio also over what ('over')"
        )
    if not 0 < wanted.confidence < 1:
        raise errors.survey_plan(f"The confidence of '{wanted.name}'", "must lie between 0 and 1")
    design = plan.design
    if wanted.errors and design.selection != "independent" and design.strata is None and design.selected is None:
        raise errors.survey_plan(
            f"The standard errors of '{wanted.name}'",
            "need the number of selected primary units: [design] selected, or sizes for every stratum; or the "
            'statement that each is selected independently: selection = "independent"',
        )
    if (wanted.kind == "quantiles") != bool(wanted.probabilities):
        raise errors.survey_plan(what, "must list probabilities if it is of quantiles, and else none")
    families: list[str | None] = [plan.variable(name).name for name in (wanted.summed, wanted.over) if name]
    if wanted.kind not in ("total", "ratio"):
        families.append(None)
    if wanted.kind in ("proportion", "quantiles"):
        plan.attribute(str(wanted.of))
    if wanted.kind == "quantiles":
        _require_probabilities(plan, wanted)
    names: tuple[str, ...] = ()
    if wanted.calibration is not None:
        names = plan.calibration(wanted.calibration).names
        if wanted.kind == "quantiles" or wanted.errors:
            raise errors.survey_plan(what, "cannot be calibrated and be of quantiles or have measured standard errors")
    for of in families:
        together = tuple(dict.fromkeys((*wanted.cells, *names)))
        if not covers(plan, of, together):
            measured = f"sums of '{of}'" if of else "weighted counts"
            at = f" by {', '.join(together)}" if together else ""
            raise errors.survey_plan(what, f"needs {measured}{at}: add a query by these, or by finer ones")


def _require_probabilities(plan: SurveyPlan, wanted: PublishSection) -> None:
    if plan.attribute(str(wanted.of)).variable is None or wanted.of in [one.name for one in plan.recodes]:
        raise errors.survey_plan(f"The table '{wanted.name}'", "must be of an attribute that cuts a variable")
    if any(not 0 < one < 1 for one in wanted.probabilities):
        raise errors.survey_plan(f"The probabilities of '{wanted.name}'", "must lie between 0 and 1")
    if wanted.errors:
        raise errors.survey_plan(
            f"The table '{wanted.name}'", "cannot have measured standard errors: quantiles have none"
        )


def _shares(plan: SurveyPlan) -> None:
    shares = [plan.share(one) for one in plan.queries]
    shares += [plan.share(one) for one in plan.publish] + [plan.share(one) for one in plan.imputation]
    if any(plan.share(one) <= 0 for one in plan.queries):
        raise errors.survey_plan("Every query", "must have a positive share of the budget")
    if (total := sum(shares, Fraction(0))) != 1:
        raise errors.survey_plan(
            "The shares of queries, of standard errors and of imputations", f"must add up to exactly 1, not to {total}"
        )
