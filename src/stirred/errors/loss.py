"""Errors about divergences, curves, conversions and composition."""

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


def unknown_choice(what: str, found: object, known: Sequence[str], most: int | None = None) -> LossError:
    """``most``: how many of the known are named where there may be thousands."""
    if most is not None and len(known) > most:
        named = ", ".join(f"'{name}'" for name in known[:most]) + f" and {len(known) - most:,} more"
    else:
        named = listed(known)
    return LossError("unknown-choice", f"There is no {what} {found!r}.", f"Choose one of {named}.")


def parameter_not_used(measure: str) -> LossError:
    return LossError(
        "parameter-not-used", f"The measure '{measure}' takes no parameter.", "Leave it out, or choose another measure."
    )


def not_a_curve(kind: str, problem: str) -> LossError:
    return LossError("not-a-curve", f"These points are not a {kind}: {problem}.", "Give other points.")


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


def too_many_outputs(found: int, most: int) -> LossError:
    return LossError(
        "too-many-outputs",
        f"The composed pair of distributions would have {found} outputs; {most} are the most.",
        "Compose fewer curves or coarser ones, or compose the privacy-loss distributions of the mechanisms.",
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


def grid_too_fine(points: float, most: int) -> LossError:
    return LossError(
        "grid-too-fine",
        f"A grid of losses this fine has about {points:.2g} points; {most} is the most.",
        "Give a larger step, or leave it out to have one chosen.",
    )
