"""The referee of ``estimates``: what intervals cover, by the exact law of the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from mpmath import mp, mpf
from referee_harness import Case, claim

from stirred.estimates.error_laws import ErrorLaw, Term, exact_half_width, normal_half_widths, reach

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)


def law(parameter: float) -> tuple[np.ndarray, np.ndarray]:
    """A discrete Gaussian in extended precision; what is left out weighs less than 1e-40."""
    furthest = 2 + math.ceil(14 * math.sqrt(parameter))
    values = np.arange(-furthest, furthest + 1)
    weights = np.exp(-(values.astype(np.longdouble) ** 2) / (2 * np.longdouble(parameter)))
    return values, weights / weights.sum()


@claim("estimates", cases=1200)
def exact_intervals(case: Case) -> None:
    """The shortest symmetric interval that covers often enough."""
    parameter, terms = case.size("parameter", 0.001, 60), case.whole("terms", 1, 5)
    confidence = case.pick("confidence", CONFIDENCES)
    chances = np.ones(1, dtype=np.longdouble)
    for _ in range(terms):
        chances = np.convolve(chances, law(parameter)[1])
    middle = len(chances) // 2
    found = reach(parameter, terms, confidence)
    assert found is not None

    def covered(half: int) -> float:
        return float(chances[max(0, middle - half) : middle + half + 1].sum())

    # stirred asks for 1e-12 more than the confidence, so that its own rounding never makes an interval too short.
    case.at_most(confidence, covered(found), "what the interval covers")
    if found:
        case.at_most(covered(found - 1), confidence, "what a shorter one covers", absolute=2e-12)


@claim("estimates", cases=800)
def normal_intervals(case: Case) -> None:
    """Estimates by several measurements weighted by their precision: a normal interval covers no less than it says."""
    count = case.whole("measurements", 1, 3)
    parameters = [case.size(f"parameter {k}", 0.01, 12) for k in range(count)]
    confidence = case.pick("confidence", CONFIDENCES)
    precision = 1 / np.array(parameters)
    weights, error = precision / precision.sum(), math.sqrt(1 / precision.sum())
    half = float(normal_half_widths(np.array([error]), confidence)[0])
    errors, chances = _weighted(parameters, weights)
    # An error on the edge of the interval is inside, whatever the rounding of weights.
    covered = float(chances[np.abs(errors) <= half + 1e-9].sum())
    case.at_most(confidence, covered, "what the interval covers")


def _weighted(parameters: Sequence[float], weights: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """All values of a weighted sum of discrete Gaussians, and their probabilities."""
    errors, chances = np.zeros(1), np.ones(1, dtype=np.longdouble)
    for parameter, weight in zip(parameters, weights, strict=True):
        values, single = law(parameter)
        some = single > 1e-25
        errors = np.add.outer(errors, weight * values[some]).ravel()
        chances = np.multiply.outer(chances, single[some]).ravel()
    return errors, chances


@claim("estimates", cases=500)
def listed_laws(case: Case) -> None:
    """The listed law of a weighted sum is certified: never more than enumeration says, and hardly less."""
    count = case.whole("terms", 1, 3)
    parameters = [case.size(f"parameter {k}", 0.05, 6) for k in range(count)]
    weights = [case.size(f"weight {k}", 0.02, 1) for k in range(count)]
    confidence = case.pick("confidence", CONFIDENCES)
    listed = ErrorLaw.of([Term(weight, parameter) for weight, parameter in zip(weights, parameters, strict=True)])
    errors, chances = _weighted(parameters, weights)
    half = exact_half_width(listed, confidence)
    assert half is not None
    covered = float(chances[np.abs(errors) <= half + 1e-9].sum())
    case.at_most(confidence, covered, "what the interval covers")
    case.at_most(listed.within(half), covered, "what the law says that it covers", absolute=1e-12)


@claim("estimates", cases=600)
def standard_errors_of_noise(case: Case) -> None:
    """The variance of a discrete Gaussian is below its parameter, and next to it from 1 on: intervals rest on that."""
    parameter = case.size("parameter", 0.05, 30)
    with mp.workdps(30):
        s, top = mpf(parameter), 3 + math.ceil(13 * math.sqrt(parameter))
        weights = [mp.exp(-(mpf(k) ** 2) / (2 * s)) for k in range(top)]
        variance = 2 * mp.fsum(k * k * w for k, w in enumerate(weights)) / (2 * mp.fsum(weights) - 1)
    values, chances = law(parameter)
    case.same(float((chances * values**2).sum()), variance, "the law used here", relative=1e-12)
    case.at_most(variance, parameter, "the variance and the parameter", relative=1e-15)
    if parameter >= 1:
        case.at_most(parameter * (1 - 1 / 4_000_000), variance, "from 1 on, but one part in four million")
    half = exact_half_width(ErrorLaw.of([Term(1, parameter)]), 0.9)
    case.holds(half == max(0.5, float(reach(parameter, 1, 0.9) or 0)), "a single measurement has its exact interval")


CLAIMS = (exact_intervals, normal_intervals, listed_laws, standard_errors_of_noise)
