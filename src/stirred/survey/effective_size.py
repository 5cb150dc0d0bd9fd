"""What unequal weights cost: the effective sample size and the design effect of Kish (1965).

Weights w_1, ..., w_n have the effective sample size (sum w)^2 / sum w^2, and the design effect n sum w^2 / (sum w)^2.
They say how an estimated mean would fare if values had nothing to do with weights; strata and clusters are not in them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction

_MOST_BITS = 10_000
"""Bits of a common denominator of weights, beyond which exact sums are refused."""


def effective_sample_size(weights: Iterable[Any]) -> Fraction:
    """How many units with equal weights would do as well: (sum of weights)^2 / sum of squared weights, exactly.

    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size(["0.5", 1, 1.5])
    (Fraction(4, 1), Fraction(18, 7))
    """
    _, total, squares = _sums(weights)
    return Fraction(total * total, squares)


def design_effect(weights: Iterable[Any]) -> Fraction:
    """By what factor unequal weights raise the variance: the number of units over the effective sample size.

    >>> design_effect([1, 3])
    Fraction(5, 4)
    """
    number, total, squares = _sums(weights)
    return Fraction(number * squares, total * total)


def effective_size_of_multiples(weights: NDArray[np.int64]) -> Fraction:
    """The effective sample size of many weights that are whole numbers of one unit, whatever the unit.

    >>> effective_size_of_multiples(np.array([1, 2, 3]))
    Fraction(18, 7)
    """
    if not len(weights) or int(weights.min()) <= 0:
        return effective_sample_size(weights.tolist())  # refuses them
    largest = int(weights.max())
    if largest * largest * len(weights) < 1 << 62:
        return Fraction(int(weights.sum()) ** 2, int(np.dot(weights, weights)))
    distinct, times = np.unique(weights, return_counts=True)
    pairs = list(zip(distinct.tolist(), times.tolist(), strict=True))
    return Fraction(sum(one * many for one, many in pairs) ** 2, sum(one * one * many for one, many in pairs))


def _sums(weights: Iterable[Any]) -> tuple[int, int, int]:
    """The number of weights, and their sum and sum of squares as whole numbers of a common unit."""
    try:
        times = Counter(weights)
        numbers = {as_fraction(weight): 0 for weight in times}
    except NOT_A_NUMBER:
        raise errors.weights_do_not_fit("A weight is missing or not a number", "Give positive numbers") from None
    if not numbers:
        raise errors.weights_do_not_fit("There are no weights", "Give the weight of each sampled unit") from None
    if min(numbers) <= 0:
        raise errors.weights_do_not_fit(
            "A weight is 0 or negative", "Leave out units that are not in the sample; design weights are positive"
        )
    for weight, count in times.items():
        numbers[as_fraction(weight)] += count  # 1 and "1" are one weight
    unit = 1
    for one in numbers:
        unit = math.lcm(unit, one.denominator)
        if unit.bit_length() > _MOST_BITS:
            raise errors.weights_do_not_fit(
                f"The {len(numbers):,} different weights have no common denominator of less than {_MOST_BITS:,} bits",
                "Round them to so many decimals",
            )
    whole = [(int(number * unit), count) for number, count in numbers.items()]
    return (
        sum(count for _, count in whole),
        sum(number * count for number, count in whole),
        sum(number * number * count for number, count in whole),
    )
