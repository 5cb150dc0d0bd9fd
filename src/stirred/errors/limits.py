"""Errors about measures, intervals of measures and graphs of datasets."""

from __future__ import annotations

from stirred.errors.kinds import StirredError


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


def too_many_points(found: int, most: int) -> LimitsError:
    return LimitsError(
        "too-many-points",
        f"A set on {found} outcomes has too many extreme points to list; {most} outcomes are the most.",
        "Ask for lower and upper expectations, which need no list, or merge outcomes.",
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


def not_connected(what: str, components: int) -> LimitsError:
    return LimitsError(
        "not-connected",
        f"{what} fall into {components} components at infinite distance from each other: nothing bounds what the "
        "output tells about which of them holds the data.",
        "Ask about one component at a time; publishing which one it is costs no privacy loss.",
    )


def analysis_does_not_fit(problem: str) -> LimitsError:
    return LimitsError(
        "analysis-does-not-fit",
        f"The parts of the analysis do not fit each other: {problem}.",
        "Give one row for each dataset of the graph to the mechanism, and one column for each to the models.",
    )


def secrets_overlap(first: str, second: str) -> LimitsError:
    return LimitsError(
        "secrets-overlap",
        f"The secrets '{first}' and '{second}' are a pair, and some dataset has both.",
        "Pair secrets that exclude each other; a dataset that has both does not tell them apart.",
    )


def names_collide() -> LimitsError:
    return LimitsError(
        "names-collide",
        "Two different values have the same text, so secrets or attackers named after them would be taken for one.",
        "Give values whose texts differ: 'one' in place of '1' where there is also the number 1.",
    )


def impossible_secret(name: str) -> LimitsError:
    return LimitsError(
        "impossible-secret",
        f"The secret '{name}' has probability 0 for every attacker, so nothing would be promised about it.",
        "Leave it out, or add an attacker who finds it possible.",
    )


def pair_never_compared(first: str, second: str) -> LimitsError:
    return LimitsError(
        "pair-never-compared",
        f"No attacker finds both '{first}' and '{second}' possible, so that pair would promise nothing.",
        "Leave the pair out, or add an attacker who gives both secrets a positive probability.",
    )


def secrets_do_not_divide(attacker: str) -> LimitsError:
    return LimitsError(
        "secrets-do-not-divide",
        f"These secrets do not divide what the attacker '{attacker}' finds possible: some dataset has none of them, "
        "or several.",
        "Ask about secrets of which every possible dataset has exactly one, such as the values of one record.",
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
