"""How numbers are shown in sentences: rounded so that what an attacker gains is never understated.

One rule for each sort of number, used by sentences, tables and data alike, so that one bound has one number:

* a budget, or a bound that follows from it, exactly where that is short, else rounded up to two decimals;
* the factor of an epsilon in three digits, from the epsilon as it is shown, rounded up;
* a probability in three digits, rounded up (what an attacker can reach at most) or down (at least); beside a prior or a
  false-alarm probability that it hardly differs from, by two digits of the difference.

Keep in mind: a :class:`Number` keeps the value beside its text, and the text is at least the value (but for
:data:`SLACK`, which is what searches and floats leave behind).

Also the one line that names a guarantee: whose record, which budget of which standard, and how many counts stay exact.
Every figure carries it, so that no number is seen without the guarantee that it is of. The five blocks in full are in
:meth:`stirred.spec.Specification.blocks`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from itertools import repeat

from stirred.errors import listed_plainly
from stirred.semantics.sentences.templates import Number, Numbers
from stirred.spec.exact import LARGE, bound, cases_in_100, display, display_down, exact, significant, written
from stirred.spec.specification import Specification, taken_as_known

WIDTH = 110

SLACK = 1e-10

SMALL = 0.01
"""Of an epsilon whose factor three digits would not tell from that of a larger one."""

SMALL_PROBABILITY = 0.1
"""Below this a probability is shown by its first digits, not by its first decimals: these are the same above it."""

NEAR = (Fraction(1, 10**9), Fraction(1, 100))
"""Differences of at most the second part of a start are shown by their own digits; floats have none of those
below the first part, which is then shown in their place."""

ROUNDING = 1e-12
"""The part of a probability that floats leave behind."""

SURELY = 1e-12
"""Smaller probabilities of missing a change are not told apart: floats know powers no better."""

LARGEST_FACTOR = 100
"""Of a larger epsilon the factor is shown as a power of e."""


def listed_numbers(values: Iterable[Fraction | float], shown: Iterable[str]) -> Numbers:
    """Several numbers with their texts joined to a list."""
    return Numbers(tuple(map(float, values)), listed_plainly(shown))


def powers(values: Iterable[float], levels: Iterable[float] = ()) -> Numbers:
    """Powers of tests, rounded up, joined to a list; ``levels`` are their false-alarm probabilities."""
    found = tuple(map(float, values))
    return listed_numbers(found, map(shown_up, found, [*levels] or repeat(0.0)))


def lower_bounds(values: Iterable[float], starts: Iterable[float]) -> Numbers:
    """Probabilities that are bounds from below, or attained: rounded down, joined to a list."""
    found = tuple(map(float, values))
    return listed_numbers(found, map(shown_down, found, map(float, starts)))


def power(value: float, level: float = 0.0) -> Number:
    """The power of a test, rounded up."""
    return Number(value, shown_up(value, level))


def misses(values: Iterable[float]) -> Numbers:
    """Probabilities of missing a change, rounded down, joined to a list."""
    found = tuple(map(float, values))
    return listed_numbers(found, map(_shown_miss, found))


def _shown_miss(value: float) -> str:
    if 0 < value < SURELY:
        return f"less than {SURELY:g}".replace("e-0", "e-")
    return significant(value * (1 - 1e-3), 2, down=True) if value else "0"  # floats leave four digits of the smallest


def shown_up(value: float, start: float = 0.0) -> str:
    """A probability in three digits, rounded up; near the ``start``, a prior or a false-alarm probability, by two
    digits of the difference, and near 1 by more digits than three.

    >>> shown_up(0.01001), shown_up(0.01001, 0.01), shown_up(1.4e-9), shown_up(0.2719), shown_up(0.0)
    ('0.0101', '0.01001', '1.4e-9', '0.272', '0')
    >>> shown_up(0.69816), shown_up(0.99932), shown_up(1 - 1e-8), shown_up(1 - 1e-12)
    ('0.699', '0.9994', '0.99999999', '1')
    """
    if value <= 0:
        return "0"
    base, more = exact(start), exact(value) - exact(start)
    if 0 < more < NEAR[1] * base:
        return _beside(base, significant(max(more, NEAR[0] * base), 2))
    if value < SMALL_PROBABILITY:
        return significant(value * (1 - ROUNDING), 3)
    for decimals in range(3, 10):
        text = display(value - SLACK, decimals)
        if not text.startswith("1."):
            return text
    return "1"


def shown_down(value: float, start: float = 0.0) -> str:
    """A probability as in :func:`shown_up`, rounded down.

    >>> shown_down(0.999999), shown_down(4.54e-7), shown_down(1.0), shown_down(0.0999, 0.1)
    ('0.999', '4.54e-7', '1', '0.0999')
    """
    if value <= 0:
        return "0"
    base, more = exact(start), exact(value) - exact(start)
    if 0 < -more < NEAR[1] * base:
        return _beside(base, significant(max(-more, NEAR[0] * base), 2), -1)
    if NEAR[0] * base < more < NEAR[1] * base:
        return _beside(base, significant(more, 2, down=True))
    if value < SMALL_PROBABILITY:
        return significant(value * (1 + ROUNDING), 3, down=True)
    return "1" if value > 1 - SLACK else display_down(value + SLACK, 3)


def _beside(start: Fraction | float, apart: str, sign: int = 1) -> str:
    return written(start + sign * exact(apart))


def up(value: Fraction | float, decimals: int | None = None) -> Number:
    """A budget, or a bound that follows from it: exactly where that is short, else rounded up to two decimals.
    ``decimals`` asks for so many."""
    number = exact(value)
    if decimals is None and (isinstance(value, Fraction) or len(written(number)) <= 8 or value > LARGE):
        return Number(value, bound(number))
    slack = SLACK * value if isinstance(value, float) and value < math.inf else 0  # what searches leave behind
    return Number(value, display(max(0, value - slack), 2 if decimals is None else decimals))


def of_hundred(value: float) -> Number:
    """A probability as a number of cases in 100, rounded up to whole ones.

    >>> of_hundred(0.79201).shown, of_hundred(0.05).shown, of_hundred(1.0).shown
    ('80', '5', '100')
    """
    return Number(value, str(cases_in_100(value)))


def about_of_hundred(value: float) -> Number:
    """A probability that is known roughly, as a number of cases in 100, to the nearest.

    >>> about_of_hundred(0.0604).shown, about_of_hundred(0.999).shown, about_of_hundred(0.001).shown
    ('6', '100', 'fewer than 1')
    """
    return Number(value, str(round(100 * value)) if value >= 0.005 else "fewer than 1")


def typed(value: float) -> Number:
    """A number as a person typed it."""
    return Number(value, f"{value:.12g}")


def all_typed(values: Iterable[float]) -> Numbers:
    """Numbers as a person typed them, joined to a list."""
    found = tuple(map(float, values))
    return listed_numbers(found, map("{:.12g}".format, found))


def whole(value: int) -> Number:
    """A whole number, in groups of three digits."""
    return Number(value, f"{value:,}")


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
    """e^epsilon, three digits, rounded up, from the epsilon that is shown; as a power where it is very large, by what
    exceeds 1 where it is small.

    >>> factor(1.0003).shown, factor(2.8903717578961645).shown, factor(20.0).shown, factor(745.0).shown
    ('2.72', '18.2', '4.86e8', 'e^745.00')
    >>> factor(0.001).shown, factor(1e-9).shown
    ('1.0011', '1.0000000011')
    """
    value = math.exp(epsilon) if epsilon < 700 else math.inf
    shown = up(epsilon).shown
    if epsilon > LARGEST_FACTOR:
        return Number(value, f"e^{shown}")
    if 0 < epsilon < SMALL:
        return Number(value, written(1 + Fraction(significant(_exp(shown) - 1, 2))))
    found = Decimal(significant(_exp(shown), 3))
    return Number(value, f"{found:,}" if found < 10**6 else f"{found.normalize():e}".replace("e+", "e"))


def lowest_factor(epsilon: Fraction | float) -> Number:
    """e^-epsilon, three digits, rounded down, from the epsilon that is shown."""
    value, shown = math.exp(-epsilon), up(epsilon).shown
    if epsilon > LARGEST_FACTOR:
        return Number(value, f"e^-{shown}")
    if 0 < epsilon < SMALL:
        return Number(value, written(1 - Fraction(significant(1 - 1 / _exp(shown), 2))))
    return Number(value, significant(1 / _exp(shown), 3, down=True))


def _exp(shown: str) -> Fraction:
    """e to the power of a number that is shown, to forty digits, rounded up."""
    number = Fraction(shown)
    with localcontext(Context(prec=60)):
        found = (Decimal(number.numerator) / Decimal(number.denominator)).exp()
    with localcontext(Context(prec=40, rounding=ROUND_CEILING)):
        return Fraction(+found) if number else Fraction(1)


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
    return textwrap.fill(words, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False)


def guarantee_line(specification: Specification) -> str:
    """The guarantee in one line.

    >>> from stirred.spec.loading import load
    >>> print(guarantee_line(load("epsilon=1,delta=1e-6,unit=household")))
    Guarantee: epsilon = 1.00 with delta = 1e-6 per household replaced, (epsilon, delta)-differential privacy; no \
table of counts held fixed
    >>> print(guarantee_line(load("topdown-2020-pl")))
    Guarantee topdown-2020-pl: rho = 2.63 per person that differs, zero-concentrated differential privacy; 3 tables of \
counts held fixed
    """
    name = specification.name
    head = f"Guarantee {name}" if name and "=" not in name else "Guarantee"
    return (
        f"{head}: {budget_line(specification)}, {specification.output_premetric.kind.standard}; {_fixed(specification)}"
    )


def guarantees_line(names: Sequence[str], specifications: Sequence[Specification]) -> str:
    """Several guarantees, each with its name and budget.

    >>> from stirred.spec.loading import load
    >>> guarantees_line(["first", "epsilon=1"], [load("rho=1/2"), load("epsilon=1")])
    'Guarantees: first (rho = 0.5 per person replaced); epsilon=1 (epsilon = 1.00 per person replaced)'
    """
    told = (f"{name} ({budget_line(one)})" for name, one in zip(names, specifications, strict=True))
    return f"Guarantees: {'; '.join(told)}"


def budget_line(specification: Specification) -> str:
    """The budget with its parameter, and the change that it is for.

    >>> from stirred.spec.loading import load
    >>> budget_line(load("epsilon=1,unbounded"))
    'epsilon = 1.00 per person added or removed'
    """
    output, budget, premetric = specification.output_premetric, specification.budget, specification.input_premetric
    kind = output.kind
    amount = budget.shown() if budget.is_curve else f"{kind.budget} = {budget.shown()}"
    if output.parameter is not None:
        amount += f" with {kind.parameter} = {display(output.parameter, 4)}"
    if premetric.kind != "records" or specification.domain.objects != "datasets":
        return f"{amount} per unit of distance"
    if specification.multiverse.invariants or specification.multiverse.universes:
        change = "that differs"  # one alone may not be able to be replaced
    else:
        change = "replaced" if premetric.bounded else "added or removed"
    return f"{amount} per {premetric.unit} {change} {specification.condition}".rstrip()


def _fixed(specification: Specification) -> str:
    multiverse = specification.multiverse
    if multiverse.universes:
        return f"{len(multiverse.universes)} listed groups of datasets, each by itself"
    taken = taken_as_known(specification)
    many = len(multiverse.invariants) - len(taken)
    said = [f"{many} table{'s' * (many != 1)} of counts held fixed"] if many else []
    said += [f"held fixed, though not released: {'; '.join(map(str, taken))}"] if taken else []
    return "; ".join(said) or "no table of counts held fixed"
