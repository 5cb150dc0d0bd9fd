"""Checks of arguments: numbers in their range, and probabilities that sum to one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.errors import kind_of, not_a_distribution, outputs_differ, parameter_out_of_range

Number = float | Fraction
"""What parameters may be given as; they are computed with as floats."""

SUM_TOLERANCE = 1e-9
"""How far from one the probabilities of a distribution may sum, being floats."""


def as_float(name: str, value: Number | str, wanted: str) -> float:
    """One number as a float; a text that writes one passes, anything else is refused."""
    try:
        return float(as_fraction(value) if isinstance(value, str) and "/" in value else value)
    except OverflowError:
        raise parameter_out_of_range(name, "too large for a floating-point number", wanted) from None
    except NOT_A_NUMBER:
        raise parameter_out_of_range(name, kind_of(value), wanted) from None


def as_floats(name: str, values: ArrayLike, wanted: str) -> NDArray[np.float64]:
    """Numbers of any shape as an array of floats; anything else is refused."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise parameter_out_of_range(name, kind_of(values), wanted) from None


def _within(name: str, value: Number, wanted: str, least: float, most: float = math.inf) -> float:
    number = as_float(name, value, wanted)
    if not least <= number <= most:
        raise parameter_out_of_range(name, value, wanted)
    return number


def non_negative(name: str, value: Number) -> float:
    """``value`` as a float, at least 0; infinity passes."""
    return _within(name, value, "a number that is at least 0", 0)


def finite(name: str, value: Number) -> float:
    """``value`` as a float, at least 0 and finite."""
    number = non_negative(name, value)
    if math.isinf(number):
        raise parameter_out_of_range(name, value, "finite")
    return number


def probability(name: str, value: Number) -> float:
    """``value`` as a float between 0 and 1."""
    return _within(name, value, "between 0 and 1", 0, 1)


def whole(name: str, value: Any, wanted: str, least: int = 0, most: float = math.inf) -> int:
    """A whole number in its range; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise parameter_out_of_range(name, value, wanted)
    return int(value)


def probabilities(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """``values`` as an array of floats between 0 and 1, of the same shape."""
    array = as_floats(name, values, "between 0 and 1")
    if not bool(np.all((array >= 0) & (array <= 1))):
        raise parameter_out_of_range(name, "below 0, above 1 or not a number", "between 0 and 1")
    return array


def renyi_order(value: Number) -> float:
    """The order of a Rényi divergence, as a float: at least 1, where 1 and infinity are the limits."""
    return _within("order", value, "at least 1", 1)


def order_above_one(value: Number) -> float:
    """The order of a Rényi divergence that is not the limit at 1."""
    number = renyi_order(value)
    if number == 1:
        raise parameter_out_of_range("order", value, "above 1")
    return number


def distribution(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Probabilities of a finite set of outputs, as an array of floats."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_a_distribution(name, f"it is {kind_of(values)} that does not hold numbers") from None
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
