"""Numbers about distances between measures: appendix C of the thesis, and the paper that it comes from."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred.limits import (
    Density,
    MeasureInterval,
    continuity_radius,
    density_distances,
    density_ratio_distance,
    distorting_function,
    mixture,
    multiplicative_distance,
    odds_ratio_distance,
)
from stirred.reproduce.computations import Forms, computation

Array = NDArray[np.float64]
Measures = Literal["multiplicative", "density-ratio", "odds-ratio", "linear-vacuous"]

_UNIFORM = np.full(10, 0.1)
_MASSES: dict[str, Array] = {
    # Remark C.4.3
    "half": np.array([0.5, 0.5]),
    "seven tenths": np.array([0.7, 0.3]),
    "uniform": _UNIFORM,
    "a fifth": np.array([1 / 5, *[8 / 90] * 9]),
    "three tenths": np.array([3 / 10, *[7 / 90] * 9]),
    # (C.7)
    "any measure": np.array([1.0, 3.0]),
    "twice it": np.array([2.0, 6.0]),
    # Proposition 13
    "a third": np.array([1 / 3, 2 / 3]),
    "two thirds": np.array([2 / 3, 1 / 3]),
    "P": np.array([9 / 10, *[1 / 80] * 8]),
    "Q": np.array([1 / 5, *[1 / 10] * 8]),
    # The second case after Proposition 9
    "with an outcome": np.array([0.75, 0.25]),
    "without it": np.array([1.0, 0.0]),
}
"""The measures of appendix C, by the names that the list uses."""


@computation
def measure_distance(distance: Measures, first: str, second: str) -> float:
    """A distance between two measures of appendix C."""
    return float(distorting_function(distance)(_MASSES[first], _MASSES[second]))


@computation
def mixture_distance(distance: Measures, first: str, second: str, third: str, bound: Literal["", "mean"] = "") -> float:
    """The distance of the middle of two measures from the first; or the mean of their distances, of (C.9)."""
    found = mixture(distance, _MASSES[first], _MASSES[second], _MASSES[third])
    return found.mean if bound else found.distance


@computation
def density_distance(distance: Literal["multiplicative", "density-ratio"]) -> float:
    """Between the two densities on [-1, 1] of Proposition 13, one of which vanishes where the other does not."""
    first = Density.linear((-1, 0, 1), ((2 / 3, 2 / 3), (2 / 3, 0)))
    second = Density.linear((-1, 0, 1), ((0, 2 / 3), (2 / 3, 2 / 3)))
    found = density_distances(first, second)
    return (found.density_ratio if distance == "density-ratio" else found.multiplicative).lower


@computation
def mixture_is_farther(distance: Measures, first: str, second: str, third: str) -> bool:
    """Whether the middle of two measures is farther from the first than they are on average: no convexity."""
    return not mixture(distance, _MASSES[first], _MASSES[second], _MASSES[third]).convex


@computation
def mixture_is_no_farther_than_the_farthest(distance: Measures) -> bool:
    """Quasi-convexity on the measures of Remark C.4.3, at many weights."""
    p, q, r = (_MASSES[name] for name in ("uniform", "a fifth", "three tenths"))
    return all(mixture(distance, p, q, r, float(weight)).quasi_convex for weight in np.linspace(0, 1, 101))


@computation
def distances_bound_each_other(first: str, second: str) -> bool:
    """Proposition 13: D_MULT < d_DR <= 2 D_MULT."""
    p, q = _MASSES[first], _MASSES[second]
    return bool(multiplicative_distance(p, q) < density_ratio_distance(p, q) <= 2 * multiplicative_distance(p, q))


@computation
def near_masses_are_near_measures(epsilon: float) -> bool:
    """Proposition 9: masses that each change by less than the radius, all up, all down or one by one."""
    first = _MASSES["P"]
    step = continuity_radius(first, epsilon) * (1 - 1e-9)
    changes = np.vstack([np.ones(9), -np.ones(9), np.eye(9), -np.eye(9)])
    return bool(np.all(multiplicative_distance(first, first + step * changes) < epsilon))


@computation
def distance_jumps(root: Literal["sum outside", "sum inside"]) -> bool:
    """The first case after Proposition 9: whether measures nearer than delta are more than ln 2 apart, at many delta.

    The thesis puts the second mass at ceil(sqrt(4/delta) + 1), the paper at ceil(sqrt(4/delta + 1)).
    """
    for delta in (0.9, 0.5, 0.1, 0.01):
        at = math.ceil(math.sqrt(4 / delta) + 1 if root == "sum outside" else math.sqrt(4 / delta + 1))
        first = np.arange(1.0, at + 10) ** -2
        second = first.copy()
        second[[0, at - 1]] += [-delta / 4, delta / 4]
        if not np.max(np.abs(first - second)) < delta or not multiplicative_distance(first, second) > math.log(2):
            return False
    return True


@computation
def base_measure_does_not_matter() -> bool:
    """Proposition 7: densities with respect to any measure give the same d_DR."""
    p, q, base = _MASSES["P"], _MASSES["Q"], np.linspace(0.5, 4, 9)
    return math.isclose(float(density_ratio_distance(p / base, q / base)), float(density_ratio_distance(p, q)))


@computation
def distance_of_events(distance: Literal["multiplicative", "density-ratio"]) -> bool:
    """Propositions 10 and 12: the forms by events and by single outcomes agree, over all events of nine outcomes."""
    events = (np.arange(1, 2**9)[:, None] >> np.arange(9)) & 1
    logs = np.log(events @ _MASSES["P"]) - np.log(events @ _MASSES["Q"])
    by_events = logs.max() - logs.min() if distance == "density-ratio" else np.abs(logs).max()
    return math.isclose(float(by_events), measure_distance(distance, "P", "Q"))


@computation
def triangle_holds(distance: Literal["multiplicative", "density-ratio"]) -> bool:
    """Lemmas C.3.3 and C.3.4 on the three measures of Remark C.4.3, in every order."""
    for a, b, c in permutations(("uniform", "a fifth", "three tenths")):
        direct, back = measure_distance(distance, a, b), measure_distance(distance, b, a)
        round_about = measure_distance(distance, a, c) + measure_distance(distance, c, b)
        if not math.isclose(direct, back) or direct > round_about + 1e-12:
            return False
    return True


@computation
def densities_bound_measures() -> bool:
    """Proposition 14: a class of densities between a g and b g is the interval from a tau to b tau."""
    base, tau = np.array([0.5, 1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    classes = MeasureInterval.of_densities(0.5 * tau / base, 2 * tau / base, base), MeasureInterval(tau / 2, 2 * tau)
    tried = np.stack([tau * np.array(factors) for factors in ((0.5, 2, 1), (0.49, 1, 1), (1, 2.01, 1))])
    said = [one.contains(tried).tolist() for one in classes]
    return all(one == [True, False, False] for one in said)


@computation
def products_add_up() -> bool:
    """Proposition 11 on two pairs of appendix C."""
    (p, q), (r, s) = (_MASSES["P"], _MASSES["Q"]), (_MASSES["a third"], _MASSES["two thirds"])
    joint = multiplicative_distance(np.outer(p, r).ravel(), np.outer(q, s).ravel())
    return bool(joint <= multiplicative_distance(p, q) + multiplicative_distance(r, s) + 1e-12)


@computation
def odds_ratio_is_the_density_ratio(first: str, second: str) -> bool:
    """Corollary C.5.5: d_DR = -ln(1 - d_COR)."""
    p, q = _MASSES[first], _MASSES[second]
    return math.isclose(float(density_ratio_distance(p, q)), -math.log1p(-float(odds_ratio_distance(p, q))))


# -- errata -------------------------------------------------------------------------------------------------


@computation
def odds_ratio_of_different_supports() -> Forms:
    """Remark 5.8.7: the last branch of d_COR."""
    return Forms(
        "d_COR of (3/4, 1/4) and (1, 0)",
        "not defined",
        measure_distance("odds-ratio", "with an outcome", "without it"),
    )


@computation
def density_ratio_of_measures() -> Forms:
    """Proposition 13 for measures: d_DR <= D_MULT fails, d_DR <= 2 D_MULT holds."""
    p, q = _MASSES["a third"], _MASSES["two thirds"]
    apart, ratio = float(multiplicative_distance(p, q)), float(density_ratio_distance(p, q))
    return Forms("(1/3, 2/3) and (2/3, 1/3): is it so?", ratio <= apart, ratio <= 2 * apart)


@computation
def mass_of_q() -> Forms:
    """Proposition 13: Q(x) = 1/10 at x = 1, ..., 10 where there are nine outcomes and Q(1) = 1/5."""
    return Forms("Q(1) + ... + Q(9)", 9 * Fraction(1, 10), Fraction(1, 5) + 8 * Fraction(1, 10))


@computation
def last_line_of_the_triangle() -> Forms:
    """Lemma C.3.3: D(mu, nu) + D(tau, nu) on the right makes it true of itself."""
    mu, nu, tau = (_MASSES[name] for name in ("uniform", "a fifth", "three tenths"))
    wrong = float(multiplicative_distance(mu, nu) + multiplicative_distance(tau, nu))
    right = float(multiplicative_distance(mu, tau) + multiplicative_distance(tau, nu))
    return Forms("three measures of Remark C.4.3", wrong, right)


@computation
def mass_of_an_event_under_the_sup_norm() -> Forms:
    """Proof of Proposition 9: nu_2(S) <= nu_1(S) + delta for a set S of two outcomes."""
    delta, larger = Fraction(1, 10), Fraction(9, 100)
    return Forms(
        "S of two outcomes, each 0.09 larger, delta 0.1: is it so?", 2 * larger <= delta, 2 * larger <= 2 * delta
    )
