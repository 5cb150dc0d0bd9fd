"""Read an exact number from a number or a text: a float means its shortest decimal, 0.05 is 1/20."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

NOT_A_NUMBER = (ValueError, TypeError, InvalidOperation, ZeroDivisionError, OverflowError)
"""What :func:`as_fraction` raises; callers turn it into a refusal in their own words."""

_MOST_DIGITS = 1_000
"""Digits of a numerator, a denominator, or before or after the point, beyond which a written number is refused."""


def as_fraction(value: Any) -> Fraction:
    """A finite number as a fraction, from a number or its text; anything else raises one of NOT_A_NUMBER.

    >>> as_fraction(0.05), as_fraction("1/3"), as_fraction(np.float32(0.5)), as_fraction("1e-3")
    (Fraction(1, 20), Fraction(1, 3), Fraction(1, 2), Fraction(1, 1000))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | np.bool_):
        raise TypeError
    if isinstance(value, int | np.integer):
        return Fraction(int(value))
    if isinstance(value, float | np.floating):
        return Fraction(repr(float(value)))
    if isinstance(value, Decimal):
        value = str(value)
    if not isinstance(value, str):
        raise TypeError
    if len(value) > 2 * _MOST_DIGITS + 10 or max(map(len, value.split("/"))) > _MOST_DIGITS + 10:
        raise ValueError  # nobody means it, and everything computed from it would be as long
    if "e" in value.lower() and abs(Decimal(value.strip()).adjusted()) > _MOST_DIGITS:
        raise ValueError  # written out it would fill the memory
    return Fraction(value.strip())
