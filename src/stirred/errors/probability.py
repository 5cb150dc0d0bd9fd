"""Errors about noise, divergences, curves, composition, and measures and graphs of datasets.

Messages show scales and probabilities, which are public, and no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stirred.errors.kinds import StirredError, listed


class NoiseError(StirredError):
    """The parameters of the noise define no distribution, or one that the samplers cannot draw exactly."""


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


class LossError(StirredError):
    """A divergence, curve or conversion was asked of numbers that it is not defined for."""


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


class LimitsError(StirredError):
    """A bound on what can be learnt was asked of measures or datasets that it is not defined for."""


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
