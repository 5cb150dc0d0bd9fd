"""Exact numbers: budgets and distances are fractions, bounds are shown rounded up, and texts are read back exactly.

A Python float means its shortest decimal (0.05 is 1/20, not the binary number beside it). Infinity is ``math.inf``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction

INFINITE = "infinity"
LARGE = 10**6
"""Bounds beyond this promise nothing, and are shown by their first digits."""
_MOST_DECIMALS = 13
"""Of a part of a sum; one that needs more is written in full."""
DECIMAL_COMMA = re.compile(r"\d+,\d+")
"""A number as it is written in much of the world; here commas separate."""


def exact(value: Any, what: str = "A budget or distance") -> Fraction | float:
    """A non-negative fraction or infinity, from a number or its text.

    >>> exact(0.05), exact("2.63"), exact("1/3"), exact("infinity")
    (Fraction(1, 20), Fraction(263, 100), Fraction(1, 3), inf)
    """
    infinite = value.strip().lower() in (INFINITE, "inf", "∞") if isinstance(value, str) else _is_infinite(value)
    try:
        number = math.inf if infinite else as_fraction(value)
    except NOT_A_NUMBER:
        if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()):
            raise errors.decimal_comma(what, value) from None
        raise errors.bad_number(what, value) from None
    if number < 0:
        raise errors.bad_number(what, value)
    return number


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float | Decimal | np.floating) and bool(value == math.inf)


def near(value: Fraction | float) -> float:
    """The float beside a number; infinite where there is none, since it is as good as that.

    >>> near(Fraction(1, 4)), near(Fraction(10) ** 400)
    (0.25, inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf


def written(value: Fraction | float) -> str:
    """The text of an exact number: a finite decimal where there is one, else a quotient.

    >>> written(Fraction(263, 100)), written(Fraction(1, 3)), written(math.inf)
    ('2.63', '1/3', 'infinity')
    """
    if value == math.inf:
        return INFINITE
    number = Fraction(value)
    rest, twos, fives = number.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    places = max(twos, fives)
    digits = str(number.numerator * 10**places // number.denominator).rjust(places + 1, "0")
    return f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else digits


Exact = Annotated[
    Fraction | float,
    BeforeValidator(exact),
    PlainSerializer(written, return_type=str),
    WithJsonSchema(
        {
            "type": ["string", "number"],
            "description": "An exact non-negative number: a decimal ('2.63'), a quotient ('1/3') or 'infinity'.",
        }
    ),
]
"""A field of a block that holds an exact number; JSON has its text."""


def bound(value: Fraction | float) -> str:
    """A stated budget, or a bound that follows from one, as text: exactly where that is short, else rounded up.

    Everything that shows such a number shows this text, so that one bound has one number.

    >>> bound(exact("1.0003")), bound(exact("2.5")), bound(Fraction(1)), bound(Fraction(1, 3)), bound(2.890371757)
    ('1.0003', '2.5', '1.00', '1/3', '2.90')
    >>> bound(exact("0.000001")), bound(Fraction(1, 3 * 10**6)), bound(exact("55.371") * 99_999**2)
    ('0.000001', '1/3000000', '5.54e11')
    """
    text = written(value)
    if LARGE < value < math.inf:
        return f"{Decimal(significant(value, 3)).normalize():e}".replace("e+", "e")
    if "/" in text or 0 < value < Fraction(1, 100):
        return quoted(value) if len(text) <= 10 else display(value)
    decimals = len(text.partition(".")[2])
    return text if 0 < decimals <= 3 or (decimals and len(text) <= 8) else display(value)


def added(values: Sequence[Fraction | float]) -> str:
    """Several bounds as a sum whose printed parts add up to the text of the whole, or to a number that is said to be
    rounded up to it. A part that cannot be printed exactly is rounded up, to as many decimals as that takes.

    >>> added([exact("1"), exact("0.128")]), added([exact("1"), exact("0.1224591233"), exact("0.125")])
    ('1.00 + 0.128', '1.00 + 0.123 + 0.125 = 1.248, rounded up')
    """
    if math.inf in values:
        return " + ".join(map(bound, values))
    whole, texts = exact(bound(sum(values, Fraction(0)))), [bound(value) for value in values]
    for decimals in range(2, _MOST_DECIMALS):
        shown = [
            text if exact(text) == exact(value) else display(value, decimals)
            for text, value in zip(texts, values, strict=True)
        ]
        found = sum(map(exact, shown), Fraction(0))
        if found <= whole:
            rounded = found < whole and "/" not in written(found)
            return " + ".join(shown) + (f" = {written(found)}, rounded up" if rounded else "")
    return " + ".join(map(written, values))


def display(epsilon: Fraction | float, decimals: int = 2) -> str:
    """An upper bound as text, rounded up: in some decimals, or in two digits where these would show one or none.

    >>> display(12.48496), display(1.1), display(0), display(Fraction(1, 3)), display(math.inf)
    ('12.49', '1.10', '0.00', '0.34', 'infinite')
    >>> display(0.01234), display(0.0012), display(Fraction(1, 3 * 10**6))
    ('0.013', '0.0012', '3.4e-7')
    """
    if 0 < epsilon < Fraction(10, 10**decimals):
        return significant(epsilon, 2)
    return _displayed(epsilon, decimals, math.ceil)


def significant(value: Fraction | float, digits: int, down: bool = False) -> str:
    """A positive number in its first digits, rounded up, or down where it bounds from below.

    >>> significant(0.010005, 3), significant(0.010005, 3, down=True), significant(Fraction(1, 10**9), 3)
    ('0.0101', '0.01', '1e-9')
    """
    number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    if number == 0:
        return "0"
    # The exponent of the first digit; numbers may be too small, or too large, for a float.
    power = len(str(number.numerator)) - len(str(number.denominator)) + 1
    while number < Fraction(10) ** power:
        power -= 1
    step = Fraction(10) ** (power - digits + 1)
    rounded = Decimal(math.floor(number / step) if down else math.ceil(number / step)).scaleb(power - digits + 1)
    plain = rounded.normalize()
    if -5 < plain.adjusted() < 12:
        return f"{plain:f}"
    return f"{plain:e}".replace("e+", "e")


def quoted(value: Fraction | float) -> str:
    """A number as somebody stated it: exactly while that is short, else in six digits, rounded up.

    >>> quoted(Fraction(1, 3)), quoted(exact("0.000001")), quoted(exact("1e-9")), quoted(exact("1e400"))
    ('1/3', '0.000001', '1e-9', '1e400')
    """
    text = written(value)
    if len(text) <= 10 or value == 0:
        return text
    return significant(value, 6)


def display_down(bound: Fraction | float, decimals: int = 2) -> str:
    """A lower bound as text: rounded down, never up.

    >>> display_down(12.48999)
    '12.48'
    """
    return _displayed(bound, decimals, math.floor)


def cases_in_100(probability: float) -> int:
    """A probability as a number of cases in 100, rounded up to whole ones.

    >>> cases_in_100(0.79201), cases_in_100(0.05), cases_in_100(1.0)
    (80, 5, 100)
    """
    return min(100, math.ceil(100 * probability - 1e-7))


def _displayed(value: Fraction | float, decimals: int, rounding: Any) -> str:
    if value in (math.inf, -math.inf):
        return "infinite"
    # A float by the shortest decimal that names it: scaling in binary would turn an exact 1.1 into 1.11.
    number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    return f"{Decimal(rounding(number * 10**decimals)).scaleb(-decimals):.{decimals}f}"


def finite_or_none(value: float | None) -> float | None:
    """A number as JSON holds it where an infinite one is null."""
    return None if value is None or math.isinf(value) else value


def without_infinities(value: Any) -> Any:
    """Nested values as JSON can hold them: an infinite number becomes the word ``infinity``."""
    if isinstance(value, Mapping):
        return {key: without_infinities(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(part) for part in value]
    return "infinity" if isinstance(value, float) and math.isinf(value) else value
