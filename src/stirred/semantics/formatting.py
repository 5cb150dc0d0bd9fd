"""How numbers are shown in sentences: rounded so that what an attacker gains is never understated.

Keep in mind: a :class:`Number` keeps the value beside its text, and the text is at least the value
(but for :data:`SLACK`, which is what searches and floats leave behind).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from stirred.semantics.templates import Number, Numbers
from stirred.spec.exact import display, quoted, significant, written

WIDTH = 110

SLACK = 1e-10

SMALL = 0.01
"""Of an epsilon whose factor three digits would not tell from that of a larger one."""


def listed_numbers(values: Iterable[Fraction], shown: Iterable[str]) -> Numbers:
    """Several numbers with their texts joined to a list."""
    return Numbers(tuple(map(float, values)), listed_plainly(shown))


def powers(values: Iterable[float]) -> Numbers:
    """Powers of tests, rounded up, joined to a list."""
    found = tuple(map(float, values))
    return Numbers(found, listed_plainly(shown_power(one) for one in found))


def power(value: float) -> Number:
    """The power of a test, rounded up."""
    return Number(value, shown_power(value))


def shown_power(power: float) -> str:
    """Three digits, rounded up; more where three would turn it into certainty.

    >>> shown_power(0.69816), shown_power(0.99932), shown_power(1 - 1e-9)
    ('0.699', '0.9994', '1')
    """
    for decimals in (3, 4, 5, 6):
        text = display(max(0.0, power - SLACK), decimals)
        if not text.startswith("1."):
            return text
    return "1"


def listed_plainly(items: Iterable[str]) -> str:
    """Texts joined by commas and "and".

    >>> listed_plainly(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = list(items)
    return f"{', '.join(first)} and {last}" if first else last


def up(value: Fraction | float, decimals: int = 2) -> Number:
    """A number rounded up to some decimals."""
    slack = SLACK * (1 + value) if isinstance(value, float) else 0  # what searches and floats leave behind
    return Number(value, display(max(0, value - slack), decimals))


def typed(value: float) -> Number:
    """A number as a person typed it."""
    return Number(value, f"{value:.12g}")


def stated(value: Fraction | float) -> Number:
    """A stated number: exactly while that is short, else rounded up."""
    text = written(value)
    return Number(value, text if len(text) <= 8 else quoted(value) if value < 1 else display(value))


def plain(value: Fraction | float) -> Number:
    """A number in at most six digits, to the nearest."""
    return Number(value, f"{float(value):g}")


def small(value: float) -> Number:
    """A probability, as it is typed; rounded up to two digits where it is none that people type."""
    text = f"{value:g}"
    if len(text) <= 6 or value == 0:
        return Number(value, text)
    return Number(value, f"{float(Context(2, ROUND_CEILING).create_decimal(Decimal(repr(value)))):g}")


def factor(epsilon: Fraction | float) -> Number:
    """e^epsilon, three digits, rounded up; as a power where it is very large, by what exceeds 1 where it is small."""
    value = math.exp(epsilon) if epsilon < 700 else math.inf
    if 0 < epsilon < SMALL:
        above = math.expm1(epsilon) or Fraction(epsilon) * (1 + Fraction(epsilon))  # where it is too small for a float
        return Number(value, written(1 + Fraction(significant(above, 2))))
    if epsilon > 100:
        return Number(value, f"e^{display(epsilon)}")
    return Number(value, f"{float(Context(3, ROUND_CEILING).create_decimal(Decimal(repr(value)))):,.6g}")


def lowest_factor(epsilon: Fraction | float) -> Number:
    """e^-epsilon, three digits, rounded down."""
    value = math.exp(-epsilon)
    if 0 < epsilon < SMALL:
        return Number(value, written(1 - Fraction(significant(-math.expm1(-epsilon) or Fraction(epsilon), 2))))
    return Number(value, f"{float(Context(3, ROUND_FLOOR).create_decimal(Decimal(repr(value)))):.3g}")


def columns(rows: Sequence[Sequence[str]], *, numbers_right: bool = False) -> str:
    """Rows of texts under one another, the first one a heading; ``numbers_right`` puts columns of numbers to the right.

    >>> print(columns([("level", "units"), ("state", "1"), ("county", "39")], numbers_right=True))
      level   units
      state       1
      county     39
    """
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    right = [numbers_right and all(_is_number(row[at]) for row in rows[1:]) for at in range(len(widths))]
    lines = []
    for row in rows:
        cells = zip(row, widths, right, strict=True)
        lines.append(
            "  " + "  ".join(cell.rjust(width) if flush else cell.ljust(width) for cell, width, flush in cells)
        )
    return "\n".join(line.rstrip() for line in lines)


def _is_number(cell: str) -> bool:
    """Whether a text is a number, or stands for one."""
    return cell[:1].isdigit() or cell in ("-", "unknown")


def bullet(words: str) -> str:
    """One sentence of a list, for the terminal."""
    return textwrap.fill(words, WIDTH, initial_indent="  - ", subsequent_indent="    ")
