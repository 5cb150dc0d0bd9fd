"""Errors about questions: to specifications and deployments, to noise, curves and bounds, to estimates.

Messages show scales, probabilities and names, which are public, and no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stirred.errors.kinds import (
    DataError,
    LimitsError,
    LossError,
    NoiseError,
    OutputError,
    SpecificationError,
    StirredError,
    few,
    listed,
)


def bad_number(what: str, value: Any) -> SpecificationError:
    return SpecificationError(
        "bad-number",
        f"{what} cannot be {value!r}.",
        "Give a number from 0 on, a quotient such as '1/3', or 'infinity'.",
    )


def decimal_comma(what: str, value: str) -> SpecificationError:
    whole, _, decimals = value.strip().partition(",")
    point = f"{whole}.{decimals}"
    thousands = f", or {whole}{decimals} if thousands were meant" if len(decimals) == 3 and whole != "0" else ""
    return SpecificationError(
        "decimal-comma",
        f"{what} cannot be '{value}', with a comma.",
        f"Decimals follow a point: write {point}{thousands}.",
    )


def bad_block(what: str, must: str) -> SpecificationError:
    return SpecificationError("bad-block", f"{what} {must}.", "Correct this block of the specification.")


def strange_datasets(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "strange-datasets",
        f"The universes or distances speak of {listed(names)}, which the domain does not have.",
        "A mechanism, its domain and its distances must be about the same datasets (Remark 2.4.7).",
    )


def cannot_evaluate(what: str) -> SpecificationError:
    return SpecificationError(
        "cannot-evaluate",
        f"Cannot evaluate {what}: only its name is known.",
        "List the datasets and their distances (InputPremetric.measured, InputPremetric.related).",
    )


def not_a_specification(reason: str, plan: object = None) -> SpecificationError:
    """``plan``: the path of a plan that was given in place of a specification."""
    if plan is not None:
        return SpecificationError(
            "not-a-specification",
            "This is a plan, not a specification.",
            f"stirred report {plan} explains it; or write its specification to a file first: stirred check {plan} "
            "--specification FILE",
        )
    return SpecificationError(
        "not-a-specification",
        f"This is not a specification: {reason}.",
        "docs/specification.schema.json describes the format (stirred docs specification.schema).",
    )


def not_an_allocation(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-an-allocation",
        f"This file does not divide a budget among levels and queries: {reason}.",
        "docs/semantics.md shows the format (stirred docs semantics).",
    )


def allocation_unit(unit: str, units: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "allocation-unit",
        f"The specification protects a {unit}; the allocation divides budgets of {listed(units)}.",
        "Give the specification of one of those, or use the same name of the unit in both.",
    )


def bad_concern(must: str) -> SpecificationError:
    return SpecificationError("bad-concern", f"A concern {must}.", "Write for instance 'cenrace + block within tract'.")


def no_rule(what: str, reason: str, remedy: str) -> SpecificationError:
    return SpecificationError("no-rule", f"No rule is known for {what}: {reason}.", remedy)


def not_listed() -> SpecificationError:
    return SpecificationError(
        "not-listed",
        "The datasets of this flavor, their distances or their universes are not listed.",
        "Name small datasets to evaluate it on (stirred.spec.order.finite_flavors.explicit), or list them in its "
        "blocks.",
    )


def not_a_mechanism(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-a-mechanism",
        f"This is not a mechanism: {reason}.",
        "Give each dataset, once, the probabilities of all outputs: at least 0, with sum 1.",
    )


def different_datasets(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "different-datasets",
        f"Only one of the two is about {listed(names)}.",
        "A mechanism and the flavor that it is compared with must be about the same datasets (Remark 2.4.7).",
    )


def not_a_partition() -> SpecificationError:
    return SpecificationError(
        "not-a-partition",
        "These groups of outputs are not a partition of the mechanism's outputs.",
        "Put every output into one group, and into one only.",
    )


def deployment_without_guarantee(name: str, missing: str, typed: str) -> SpecificationError:
    said = f"'stirred deployments {name}' shows them, with their sources."
    if typed:
        said += f" To see what the stated budget alone would mean, type '{typed}'; the rest is then your assumption."
    return SpecificationError(
        "deployment-without-guarantee",
        f"No specification follows from the facts that were found about '{name}'. Not stated in them: {missing}.",
        said,
    )


def unknown_deployment(name: str, close: Sequence[str]) -> SpecificationError:
    remedy = f"Did you mean {listed(close, 'or')}? " if close else ""
    return SpecificationError(
        "unknown-deployment",
        f"There is no deployment '{name}'.",
        remedy + "'stirred deployments' lists all.",
    )


def not_a_registry_record(reason: str) -> SpecificationError:
    return SpecificationError(
        "not-a-registry-record",
        f"This is not a record of the deployments registry: {reason}.",
        "A record is YAML with url_slug, status, tier and deployment.",
    )


def registry_field(place: str, must: str) -> SpecificationError:
    return SpecificationError(
        "registry-field",
        f"'{place}' of the registry record {must}.",
        "Correct the field; the registry's schema says what each may be.",
    )


def registry_without_guarantee(reason: str) -> SpecificationError:
    return SpecificationError(
        "registry-without-guarantee",
        f"No specification follows from this registry record: {reason}.",
        "Complete its dp_variant and privacy_loss, or write the specification by hand.",
    )


def registry_details_missing(names: Sequence[str]) -> SpecificationError:
    return SpecificationError(
        "registry-details-missing",
        f"A registry record needs {listed(names)}, which the specification does not contain.",
        "Give them: on the command line as " + ", ".join(f"--{name}" for name in names) + ".",
    )


def not_for_registry(what: str, reason: str) -> SpecificationError:
    return SpecificationError(
        "not-for-registry", f"{what} is not for the registry: {reason}.", "The registry lists what was released."
    )


def nothing_to_load(text: str, close: Sequence[str]) -> SpecificationError:
    remedy = f"Did you mean {listed(close, 'or')}? " if close else ""
    return SpecificationError(
        "nothing-to-load",
        f"'{text}' names no specification.",
        remedy
        + "Accepted are the name of a known deployment, a specification.json, a release folder, a registry record "
        "(.yaml), or blocks typed by hand such as 'rho=2.63' or 'epsilon=1,delta=1e-6,unit=household,unbounded'.",
    )


def bad_shorthand(text: str, reason: str) -> SpecificationError:
    return SpecificationError(
        "bad-shorthand",
        f"'{text}' cannot be read as a specification: {reason}.",
        "Write rho=R, epsilon=E, epsilon=E,delta=D, epsilon=E,alpha=A or mu=M, then if wished unit=NAME, bounded or "
        "unbounded, ordered or unordered, separated by commas.",
    )


def noise_not_a_number(what: str, found: Any) -> NoiseError:
    return NoiseError(
        "noise-not-a-number",
        f"{what} cannot be {_shown(found)}.",
        "Give a finite number: a fraction, an integer, a decimal, a text such as '1/3', or a float, "
        "which means its shortest decimal.",
    )


def noise_out_of_range(what: str, found: Any, wanted: str) -> NoiseError:
    return NoiseError("noise-out-of-range", f"{what} is {_shown(found)}.", f"It must be {wanted}.")


def noise_too_wide(what: str, found: Any, limit: str) -> NoiseError:
    return NoiseError(
        "noise-too-wide",
        f"{what} is {_shown(found)}, and the exact samplers go up to {limit}.",
        "Use larger units, or draw one value at a time from stirred.lab.definitions.reference_sampler, which has "
        "no limit.",
    )


def noise_rows(what: str, problem: str) -> NoiseError:
    return NoiseError(
        "noise-rows",
        f"{what} {problem}.",
        "Give one number for each row: a sequence of fractions, or a pair of integer arrays "
        "(numerators, denominators) of equal length.",
    )


def noise_size(found: Any) -> NoiseError:
    return NoiseError("noise-size", f"The number of draws cannot be {_shown(found)}.", "Give a whole number from 0 on.")


def response_values(categories: int) -> NoiseError:
    return NoiseError(
        "response-values",
        f"The values to randomise are not all whole numbers from 0 to {categories - 1}.",
        "Give one-dimensional integers or booleans; number the categories from 0, and say how many there are "
        "with categories=.",
    )


def _shown(found: Any) -> str:
    """Short enough for a sentence; a fraction as a quotient."""
    text = str(found) if type(found).__name__ == "Fraction" else repr(found)
    return text if len(text) <= 60 else f"{text[:40]}... ({len(text)} characters)"


def not_a_distribution(name: str, problem: str) -> LossError:
    return LossError(
        "not-a-distribution",
        f"{name} is not a probability distribution: {problem}.",
        "Give probabilities that are at least 0 and sum to 1.",
    )


def outputs_differ(first: int, second: int) -> LossError:
    return LossError(
        "outputs-differ",
        f"One distribution has {first} outputs, the other {second}.",
        "List the same outputs in the same order for both, with probability 0 where one cannot occur.",
    )


def parameter_out_of_range(name: str, found: object, wanted: str) -> LossError:
    return LossError("parameter-out-of-range", f"{name} is {found}.", f"It must be {wanted}.")


def unknown_choice(what: str, found: object, known: Sequence[str], most: int | None = None) -> LossError:
    """``most``: how many of the known are named where there may be thousands."""
    if most is not None and len(known) > most:
        named = ", ".join(f"'{name}'" for name in known[:most]) + f" and {len(known) - most:,} more"
    else:
        named = listed(known)
    return LossError("unknown-choice", f"There is no {what} {found!r}.", f"Choose one of {named}.")


def not_a_curve(kind: str, problem: str) -> LossError:
    return LossError("not-a-curve", f"These points are not a {kind}: {problem}.", "Give other points.")


def distances_do_not_fit(problem: str) -> LossError:
    return LossError(
        "distances-do-not-fit",
        f"The distances do not fit the distributions: {problem}.",
        "Give a square matrix with one row for each distribution, infinity where a pair is not constrained.",
    )


def nothing_to_compose(what: str) -> LossError:
    return LossError(
        "nothing-to-compose",
        f"There is no {what} to compose.",
        "Give at least one.",
    )


def curves_do_not_compose(problem: str) -> LossError:
    return LossError(
        "curves-do-not-compose",
        f"There is no rule for composing these trade-off curves: {problem}.",
        "Compose curves of one type, or compose the privacy-loss distributions of the mechanisms.",
    )


def filter_exceeded(what: str, limit: object, spent: object, cost: object, left: object) -> LossError:
    return LossError(
        "filter-exceeded",
        f"The filter allows a total {what} of {limit}; {spent} is spent and {cost} was asked for.",
        f"Ask for at most {left}, or stop here: what was released so far stays within the limit.",
    )


def shares_do_not_add_up(name: str, where: str, total: object) -> LossError:
    return LossError(
        "shares-do-not-add-up",
        f"The shares of {where} in allocation '{name}' add up to {total}.",
        "They must be exact fractions that add up to exactly 1.",
    )


def not_a_measure(name: str, problem: str) -> LimitsError:
    return LimitsError(
        "not-a-measure",
        f"{name} is not a measure: {problem}.",
        "Give masses or densities that are at least 0; they need not sum to 1.",
    )


def measures_differ(first: object, second: object) -> LimitsError:
    return LimitsError(
        "measures-differ",
        f"One measure is given on {first} outcomes, the other on {second}.",
        "List the same outcomes in the same order for both, with mass 0 where one cannot occur.",
    )


def not_a_density(name: str, problem: str) -> LimitsError:
    return LimitsError(
        "not-a-density",
        f"{name} is not a density that can be compared: {problem}.",
        "Give increasing breaks, and a function that is finite, at least 0 and monotone between them.",
    )


def empty_interval(problem: str) -> LimitsError:
    return LimitsError(
        "empty-interval",
        f"No measure lies between these bounds: {problem}.",
        "Give a lower measure that is nowhere above the upper one; for probabilities their totals must enclose 1.",
    )


def impossible_condition(what: str) -> LimitsError:
    return LimitsError(
        "impossible-condition",
        f"{what} may have probability 0, so conditional probabilities given it are not bounded.",
        "Condition on an event whose lower probability is positive.",
    )


def not_a_graph(problem: str) -> LimitsError:
    return LimitsError(
        "not-a-graph",
        f"These are not the distances of datasets: {problem}.",
        "List each dataset once, with edges between listed datasets or a symmetric matrix of distances.",
    )


def not_in_graph(what: str) -> LimitsError:
    return LimitsError(
        "not-in-graph", f"The graph of datasets does not hold {what}.", "Ask about datasets that it lists."
    )


def analysis_does_not_fit(problem: str) -> LimitsError:
    return LimitsError(
        "analysis-does-not-fit",
        f"The parts of the analysis do not fit each other: {problem}.",
        "Give one row for each dataset of the graph to the mechanism, and one column for each to the models.",
    )


def pair_never_compared(first: str, second: str) -> LimitsError:
    return LimitsError(
        "pair-never-compared",
        f"No attacker finds both '{first}' and '{second}' possible, so that pair would promise nothing.",
        "Leave the pair out, or add an attacker who gives both secrets a positive probability.",
    )


def not_a_prior(problem: str) -> LimitsError:
    return LimitsError(
        "not-a-prior",
        f"This is not a prior that can be used: {problem}.",
        "Give a density that is at least 0 and integrates to 1, with a break at each narrow peak, or a list of values "
        "with probabilities that sum to 1. Without a proper prior there is no bound on the posterior (Assumption "
        "5.6.1).",
    )


def posterior_needs(what: str, needed: str) -> LimitsError:
    return LimitsError(
        "posterior-needs",
        f"{what} is not possible with what is known about this prior and this model.",
        f"Give {needed}; or ask for draws where there is no density or probability, and for sums and integrals where "
        "there is no sampler.",
    )


def impossible_output() -> LimitsError:
    return LimitsError(
        "impossible-output",
        "The output has probability 0 under this prior, model and noise, so that there is no posterior.",
        "Check the output: noise on whole numbers gives whole numbers; and that some data of the model have an answer "
        "from which the noise reaches it.",
    )


def too_few_accepted(accepted: int, proposals: int, size: int) -> LimitsError:
    return LimitsError(
        "too-few-accepted",
        f"Of {proposals:,} proposals {accepted:,} were accepted, and {size:,} draws were asked for.",
        "Ask for fewer draws or allow more proposals (most=); or use sums and integrals in place of draws.",
    )


def not_measurements(path: Path, reason: str) -> OutputError:
    return OutputError(
        "not-measurements",
        f"{path} does not hold the measurements of a TopDown release: {reason}.",
        "Name the folder of a release, or the measurements folder in it.",
    )


def measurements_do_not_fit(what: str, reason: str) -> OutputError:
    return OutputError(
        "measurements-do-not-fit",
        f"The measurements do not fit {what}: {reason}.",
        "Use the plan and the list of geounits of the same release.",
    )


def estimate_question(what: str, must: str, page: str = "estimates") -> StirredError:
    return StirredError(
        "estimate-question",
        f"{what} {must}.",
        f"Change that and ask again; docs/{page}.md has examples (stirred docs {page}).",
    )


def share_of_one(column: str) -> StirredError:
    return StirredError(
        "estimate-question",
        f"The share of '{column}' is 1 everywhere, since --where leaves one value of it.",
        f"Leave the condition on '{column}' out: the share of each of its values is then given.",
    )


def unknown_geounit(level: str, name: str) -> StirredError:
    return StirredError(
        "unknown-geounit",
        f"The level '{level}' has no unit '{name}'.",
        "Use a name from the release's list of geounits, as text, leading zeros included.",
    )


def not_estimable(table: str, what: str) -> StirredError:
    return StirredError(
        "not-estimable",
        f"No measurement of '{table}' determines {what}.",
        "Ask for columns, or for a level of the geography, that the plan measures or that sums of its queries give.",
    )


def estimate_too_wide(table: str, size: int, most: int) -> StirredError:
    return StirredError(
        "estimate-too-wide",
        f"The recodes of '{table}' make {size:,} numbers depend on each other; at most {most:,} can be solved for.",
        "Use a plan with fewer or coarser recodes, or measure fewer margins by them.",
    )


def invariants_disagree(level: str, units: int, named: Sequence[str]) -> DataError:
    return DataError(
        "invariants-disagree",
        f"In {units:,} units of level '{level}' ({few(named, units)}) the values given for invariants contradict each "
        "other.",
        "Give the values that were published, in the order of the units.",
    )


def denominators_near_zero(clear: float) -> StirredError:
    return StirredError(
        "denominators-near-zero",
        f"None of the asked shares or ratios can be estimated: the counts to divide by are less than {clear:g} "
        "standard errors above zero.",
        "Ask for larger places or coarser groups, or for differences in place of ratios.",
    )


def swap_mixes_too_much() -> StirredError:
    return StirredError(
        "swap-mixes-too-much",
        "The swap mixed these values so much that none of the asked numbers can be told better than from the counts "
        "that it keeps.",
        "Ask for fewer or coarser groups. stirred tabulate counts exactly by match and swap variables, and by match "
        "and held variables.",
    )


def estimates_of_rounds(columns: Sequence[str]) -> StirredError:
    return StirredError(
        "estimates-of-rounds",
        f"No regression with {listed(columns)} is offered: these values were exchanged in several rounds, and the "
        "formulas for one round would be biased.",
        "Ask for counts, shares or comparisons by these columns, or regress on columns that only the first round "
        "swapped, such as the larger areas.",
    )


def regression_not_valid(what: str, why: str, instead: str) -> StirredError:
    return StirredError("regression-not-valid", f"{what} {why}.", instead)


def regression_not_determined() -> StirredError:
    return StirredError(
        "regression-not-determined",
        "The corrected sums of products do not determine the coefficients: with what the swap mixed, the predictors "
        "could follow from each other.",
        "Leave out swapped or held predictors, or merge categories. Regressions among match and held variables, or "
        "among match and swap variables, need no correction.",
    )
