"""What every number about distributions must satisfy before it is used: ranges, and probabilities that sum to one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.errors import not_a_distribution, outputs_differ, parameter_out_of_range

Number = float | Fraction
"""What parameters may be given as; they are computed with as floats."""

SUM_TOLERANCE = 1e-9
"""How far from one the probabilities of a distribution may sum, being floats."""


def non_negative(name: str, value: Number) -> float:
    """``value`` as a float, at least 0; infinity passes."""
    number = float(value)
    if not number >= 0:
        raise parameter_out_of_range(name, value, "a number that is at least 0")
    return number


def finite(name: str, value: Number) -> float:
    """``value`` as a float, at least 0 and finite."""
    number = non_negative(name, value)
    if math.isinf(number):
        raise parameter_out_of_range(name, value, "finite")
    return number


def probability(name: str, value: Number) -> float:
    """``value`` as a float between 0 and 1."""
    number = float(value)
    if not 0 <= number <= 1:
        raise parameter_out_of_range(name, value, "between 0 and 1")
    return number


def renyi_order(value: Number) -> float:
    """The order of a Rényi divergence, as a float: at least 1, where 1 and infinity are the limits."""
    number = float(value)
    if not number >= 1:
        raise parameter_out_of_range("order", value, "at least 1")
    return number


def distribution(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Probabilities of a finite set of outputs, as an array of floats."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise not_a_distribution(name, "it is not a list of probabilities")
    require_probabilities(name, array)
    return array


def require_probabilities(name: str, array: NDArray[np.float64]) -> None:
    """Refuse unless the last axis holds probabilities that sum to one."""
    if not bool(np.all(array >= 0)):
        raise not_a_distribution(name, "a probability is negative or not a number")
    if not bool(np.all(np.abs(array.sum(axis=-1) - 1) <= SUM_TOLERANCE)):
        raise not_a_distribution(name, "the probabilities do not sum to 1")


def distributions(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two distributions on the same outputs."""
    first, second = distribution("The first distribution", p), distribution("The second distribution", q)
    if len(first) != len(second):
        raise outputs_differ(len(first), len(second))
    return first, second
