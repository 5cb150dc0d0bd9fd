"""Refuses survey plans whose parts do not fit together, and imputation that nobody has bounded, before data are read.

For each kind of imputing and editing it is said what one record can change, and whose record is meant. Section 7.6 (Das
et al. 2022): where a file is completed from parameters that were estimated without noise, one record may change all m
imputed values, and the sensitivity of what follows grows with m. Where the imputed values of a row depend on that row
and on parameters alone, and the parameters cost epsilon1, an analysis under epsilon2 of the completed file costs
epsilon1 + epsilon2 together. Hot deck copies other rows and has no such parameters: it is refused.

The proof of the sum: given the parameters, complete both files of a pair with the same random numbers in all rows that
are equal. The completed files then differ in one row, so that the law of the analysis changes by a factor of at most
exp(epsilon2), whatever the parameters are; these cost epsilon1 by themselves. The same holds for rho of zCDP, since a
mixture of pairs diverges no more than the worst of them. The invariant of this module: **what nobody has proved is
refused**, and numbers of records are public bounds, never counted in the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._fractions import NOT_A_NUMBER, as_fraction
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

Growth = Literal["none", "by share", "by number", "unknown"]
"""How the sensitivity of an analysis that starts before imputation grows: not at all, by m / n observed, by m."""


@dataclass(frozen=True)
class ImputationKind:
    """One kind of imputation or editing, in plain words."""

    name: str
    does: str
    """What stands in the place of a missing or wrong value."""
    row_wise: bool
    """Given its parameters, what is written into a row depends on that row and on no other."""
    growth: Growth
    before: str
    """What one record can change if the guarantee starts before imputation."""
    after: str
    """Whose record a guarantee speaks of that starts after imputation."""
    proved: str
    """What is known, and from where."""
    open: str = ""
    """What nobody has proved, or what is not offered here."""

    def __str__(self) -> str:
        said = [f"{self.name}: {self.does}", f"  starting before: {self.before}", f"  starting after:  {self.after}"]
        return "\n".join(
            [*said, f"  known:           {self.proved}", *([f"  open:            {self.open}"] * bool(self.open))]
        )


_OWN_RECORD = "the respondent's own record, and nothing else of this respondent stands in the file"
_LINEAR = "the respondent's own value and every imputed value may change: the sensitivity is 1 + m times as large"
_PARTS = (
    "one completed record. A respondent whose answers the parameters were estimated from has a part in up to m imputed "
    "records besides, and is protected less than that"
)
_LARGE = "the worst case is linear in the number of imputed values (section 7.6; Das et al. 2022)"

KINDS = (
    ImputationKind(
        "given parameters",
        "a value drawn or computed from the row itself and from parameters that were public before the survey",
        True,
        "none",
        "one record, as without imputation: the sensitivity does not change",
        _OWN_RECORD,
        "section 7.6 with epsilon1 = 0: the total is epsilon2",
    ),
    ImputationKind(
        "private parameters",
        "a value drawn from the row itself and from parameters that were estimated with noise, under epsilon1",
        True,
        "none",
        "one record, given the parameters: the sensitivity of the analysis does not change, and the total is "
        "epsilon1 + epsilon2",
        "the respondent's own record for the analysis; for the parameters the share epsilon1 counts besides",
        "the total is epsilon1 + epsilon2 (section 7.6; Das et al. 2022); also for rho of zCDP",
        "how much the noise of the parameters biases an estimate: it depends on the data",
    ),
    ImputationKind(
        "multiple",
        "several independent draws for every missing value, all from the same private parameters; the analysis "
        "averages the completed files",
        True,
        "none",
        "one record, given the parameters: the average of its contributions lies between the same bounds as one of "
        "them, so that the sensitivity does not change with the number of draws",
        "the respondent's own record for the analysis; for the parameters the share epsilon1 counts besides",
        "the total is epsilon1 + epsilon2, as for one draw: a row with several draws is still one row",
        "the variance between the completed files is a number about the data. It is not published: it would need a "
        "share of its own. It would also miss the noise of the parameters, which all draws share, and no rule for "
        "adding that is known here. Draws from parameters without noise count as the kind that estimated them",
    ),
    ImputationKind(
        "mean",
        "the mean of the observed values",
        True,
        "by share",
        "the mean moves by at most 1/n of the range, n being the number of observed values, and m imputed values move "
        "with it: the sensitivity of a total is 1 + m/n times as large",
        _PARTS,
        "1 + m/n for a total is computed here and attained; other analyses may be as bad as 1 + m. " + _LARGE,
    ),
    ImputationKind(
        "conditional frequencies",
        "a value drawn from the frequencies among observed records of the same group, which have no noise",
        True,
        "by number",
        _LINEAR + ", since with the same random numbers all draws of a group may change together",
        _PARTS,
        _LARGE,
        "a smaller loss for large groups; add noise to the frequencies instead ('private parameters')",
    ),
    ImputationKind(
        "linear regression",
        "the prediction of a regression on the observed records, with or without a drawn residual; its coefficients "
        "have no noise",
        True,
        "by number",
        _LINEAR + ": one record far from all others decides the slope",
        _PARTS,
        _LARGE,
        "a smaller sensitivity from public bounds on leverage; add noise to the sums that the coefficients are "
        "computed from instead ('private parameters')",
    ),
    ImputationKind(
        "hot deck",
        "the answer of a donor, another respondent who is alike",
        False,
        "by number",
        _LINEAR + ", since one donor may serve all of them, and may change who the donors of others are",
        "one completed record, a 'post-imputation person': a donor whose answers were copied m times stands in m + 1 "
        "records, and has the protection of m + 1 records at once",
        _LARGE + "; the sum epsilon1 + epsilon2 does not hold",
        "any total that does not grow with m: refused here",
    ),
    ImputationKind(
        "editing by record",
        "another value by a published rule that looks at this record only, such as an age that does not fit a date of "
        "birth",
        True,
        "none",
        "one record, as without editing: the sensitivity does not change",
        _OWN_RECORD,
        "a function of one record changes one record; the same proof as for given parameters",
        "editing by hand: a mechanism is a program that can be written down (section 7.2.2)",
    ),
    ImputationKind(
        "editing across records",
        "another value because of other records: outliers among all answers, duplicates, totals that must agree",
        False,
        "unknown",
        "one record may decide which others are edited; how many is not known",
        "one edited record; how many of them a respondent has a part in is not known",
        "nothing: the source says only that steps before the start matter (section 7.2.2)",
        "any bound: refused here",
    ),
)
"""Every kind that is told of, the safe ones first."""

_BY_NAME = {kind.name: kind for kind in KINDS}


@refuses_wrong_arguments
def imputation_kind(name: str) -> ImputationKind:
    """What is known about one kind of imputation or editing.

    >>> print(imputation_kind("mean").before)
    the mean moves by at most 1/n of the range, n being the number of observed values, and m imputed values move with \
it: the sensitivity of a total is 1 + m/n times as large
    """
    if name not in _BY_NAME:
        raise errors.unknown_imputation(tuple(_BY_NAME))
    return _BY_NAME[name]


@refuses_wrong_arguments
def sensitivity_before_imputation(name: str, missing: int, observed: int | None = None, width: Any = 1) -> Fraction:
    """How much one record can change an unweighted total of the completed file, if the guarantee starts before.

    A record may change its values, and may turn from observed to missing or back. For a weighted total give the largest
    weight times the range as ``width``.

    Parameters
    ----------
    missing
        The most records with a missing value, in any file that is compared: a public bound.
    observed
        The fewest records with an observed value, a public bound; needed for mean imputation only.
    width
        How far apart two values of the variable can be.

    >>> str(sensitivity_before_imputation("mean", missing=50, observed=10))
    '6'
    >>> str(sensitivity_before_imputation("hot deck", missing=50))
    '51'
    """
    kind = imputation_kind(name)
    _whole(missing, "The number of missing values", 0)
    by = _number(width, "The range of the variable", zero=True)
    if kind.growth == "none":
        return by
    if kind.growth == "by number":
        return by * (1 + missing)
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "how many records one record changes is not known")
    if observed is None:
        raise errors.survey_bounds_missing("the fewest observed values that there can be")
    _whole(observed, "The number of observed values", 1)
    return by * (1 + Fraction(missing, observed))


@refuses_wrong_arguments
def records_touched(name: str, missing: int, copies: int | None = None) -> int:
    """In how many records of the completed file one respondent may have a part, their own included.

    A guarantee that starts after imputation holds for one such record. For a respondent, multiply epsilon by this
    number and rho by its square (:func:`stirred.spec.per_respondent`; Proposition 2.4.15). Private parameters are not
    counted here: their share is added.

    Parameters
    ----------
    missing
        The most records with an imputed value: a public bound.
    copies
        For hot deck: at most so many records are filled from one respondent, and who gives to whom is held fixed.

    >>> records_touched("hot deck", missing=50), records_touched("hot deck", missing=50, copies=1)
    (51, 2)
    """
    kind = imputation_kind(name)
    _whole(missing, "The number of missing values", 0)
    if copies is not None:
        _whole(copies, "The number of copies of one respondent", 0)
        if kind.name != "hot deck":
            raise errors.imputation_number("The number of copies", "left out, except for hot deck")
    if kind.growth == "none":
        return 1
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "how many records one respondent has a part in is not known")
    return 1 + (missing if copies is None else min(copies, missing))


@refuses_wrong_arguments
def loss_with_imputation(name: str, analysis: Any, parameters: Any = 0) -> Fraction:
    """The total loss of imputing and analysing, for a guarantee that starts before imputation.

    Both are epsilon of pure differential privacy, or both are rho of zero-concentrated differential privacy. The total
    covers publishing the parameters as well as the analysis. Hot deck is refused, and so is every kind whose parameters
    were estimated from the file without noise.

    >>> str(loss_with_imputation("private parameters", analysis="0.75", parameters="0.25"))
    '1'
    """
    kind = imputation_kind(name)
    if kind.name == "hot deck":
        raise errors.hot_deck_refused()
    if kind.growth == "unknown":
        raise errors.imputation_depends(kind.name, "what is written into a row depends on other rows")
    if kind.growth != "none":
        raise errors.imputation_depends(
            kind.name, "its parameters are estimated from the file without noise, so that one record may change them"
        )
    first = _number(parameters, "The loss of the parameters", zero=True)
    second = _number(analysis, "The loss of the analysis")
    private = kind.name in ("private parameters", "multiple")
    if private != (first > 0):
        wanted = "above 0: they are estimated from the file" if private else "0: nothing is estimated from the file"
        raise errors.imputation_number("The loss of the parameters", wanted)
    return first + second


def _whole(value: Any, what: str, least: int) -> None:
    if type(value) is not int or value < least:
        raise errors.imputation_number(what, f"a whole number, at least {least}")


def _number(value: Any, what: str, zero: bool = False) -> Fraction:
    try:
        found = as_fraction(value)
    except NOT_A_NUMBER:
        found = Fraction(-1)
    if found < 0 or (found == 0 and not zero):
        raise errors.imputation_number(what, "a number, at least 0" if zero else "a number above 0")
    return found


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
        raise errors.unit_is_not_the_row(plan.unit, plan.row)
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
        cells = plan.schema_of(margin.by).number_of_groups(margin.by)
        if len(margin.totals) != cells:
            raise errors.survey_plan(f"{what} by {', '.join(margin.by)}", f"must state {cells:,} totals")
        if any(total <= 0 for total in margin.totals):
            raise errors.survey_plan(what, "must have positive totals")
        sums.add(sum(margin.totals, Fraction(0)))
    if len(sums) > 1:
        raise errors.survey_plan(what, "must have margins whose totals add up to the same number")
    names = tuple(dict.fromkeys(name for margin in calibration.margins for name in margin.by))
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
    needed: list[tuple[str | None, tuple[str, ...]]] = []
    if wanted.kind in ("total", "mean", "ratio"):
        needed += [(plan.variable(str(wanted.of)).name, wanted.by)]
        needed += [(plan.variable(wanted.over).name, wanted.by)] if wanted.over else []
    if wanted.kind in ("count", "mean"):
        needed += [(None, wanted.by)]
    if wanted.kind in ("proportion", "quantiles"):
        plan.attribute(str(wanted.of))
        needed += [(None, (*wanted.by, str(wanted.of)))]
    if wanted.kind == "quantiles":
        _require_probabilities(plan, wanted)
    names: tuple[str, ...] = ()
    if wanted.calibration is not None:
        calibration = next((one for one in plan.calibrations if one.name == wanted.calibration), None)
        if calibration is None:
            raise errors.unknown_choice("calibration", wanted.calibration, [one.name for one in plan.calibrations])
        if wanted.kind == "quantiles" or wanted.errors:
            raise errors.survey_plan(what, "cannot be calibrated and be of quantiles or have measured standard errors")
        names = tuple(dict.fromkeys(name for margin in calibration.margins for name in margin.by))
    for of, by in needed:
        together = tuple(dict.fromkeys((*by, *names)))
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
