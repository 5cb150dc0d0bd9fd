"""What can be wrong with numbers about distributions: divergences, curves and conversions."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import StirredError, listed


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


def unknown_choice(what: str, found: object, known: Sequence[str]) -> LossError:
    return LossError("unknown-choice", f"There is no {what} {found!r}.", f"Choose one of {listed(known)}.")


def parameter_not_used(measure: str) -> LossError:
    return LossError(
        "parameter-not-used", f"The measure '{measure}' takes no parameter.", "Leave it out, or choose another measure."
    )


def not_a_curve(kind: str, problem: str) -> LossError:
    return LossError("not-a-curve", f"These points are not a {kind}: {problem}.", "Mend the points.")


def curves_not_comparable(first: str, second: str) -> LossError:
    return LossError(
        "curves-not-comparable",
        f"A {first} and a {second} have no common order.",
        "Compare power curves with power curves and epsilon profiles with epsilon profiles.",
    )


def distances_do_not_fit(problem: str) -> LossError:
    return LossError(
        "distances-do-not-fit",
        f"The distances do not fit the distributions: {problem}.",
        "Give a square matrix with one row for each distribution, infinity where a pair is not constrained.",
    )
