"""Whether our number agrees with the printed one, to the digits that were printed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

from stirred.reproduce.catalogue import Erratum, Item, Relation, Verdict, errata, items, row_id
from stirred.reproduce.computations import Between, Forms, computations

_SLACK = Fraction(1, 10**9)
"""Of half a printed digit: a number that lies between two printable ones in exact arithmetic must not depend on the
last bit of a double."""

_LOGARITHM = re.compile(r"(?:(\d+) )?ln (\d+(?:\.\d+)?)")
_WRONG = "a statement or formula that is printed wrongly"
_UNCLEAR = "a statement that leaves something open; beside it, how it is read here"
_EXACT = Fraction(1, 10**12)
"""The unit of what is printed as a fraction or a logarithm."""


@dataclass(frozen=True)
class Row:
    """One line of the result: an item or an erratum, our value, and the verdict."""

    id: str
    document: str
    chapter: str
    place: str
    what: str
    published: str
    ours: str
    verdict: Verdict
    relation: Relation | Literal[""] = ""
    """How our number must stand to the printed one; empty where no two numbers are compared."""
    why: str = ""
    """The reason of an erratum, or why something is not computed."""
    tests: tuple[str, ...] = ()
    pictures: tuple[Any, ...] = ()

    @property
    def printed(self) -> str:
        """What is published, in words where it is not simply a rounded number."""
        if self.relation in ("", "rounds to", "equals"):
            return self.published
        return f"{self.published}, cut" if self.relation == "cut to" else f"{self.relation} {self.published}"


def row_of(item: Item) -> Row:
    """Compute an item and compare."""
    if item.cannot or item.missing:
        relation = "" if item.relation == "rounds to" else item.relation
        return _row(item, "", item.expected, item.cannot or f"needs {item.missing}", relation=relation)
    value = computations()[item.computed_by](**item.inputs)
    if item.draws:
        pictures = tuple(value)
        many = f"{len(pictures)} picture{'s' if len(pictures) > 1 else ''}"
        return _row(item, many, "drawn", pictures=pictures, relation="")
    if isinstance(value, str | bool):
        item = replace(item, relation="equals")
    agrees = _holds(item, value, item.published)
    if item.further and not _holds(item, value, item.further, "rounds to"):
        return _row(item, shown(value, item.further), "differs", f"recomputed before as {item.further}")
    if agrees:
        return _row(item, shown(value, item.published), "input" if item.input else "agrees")
    if item.erratum and item.corrected and _holds(item, value, item.corrected):
        known = errata()[f"{item.document}/{item.erratum}"]
        return _row(item, shown(value, item.corrected), _kind(known), known.why, tests=known.tests)
    return _row(item, shown(value, item.published), "differs")


def row_of_erratum(erratum: Erratum) -> Row:
    """An erratum as a line: for a formula, both forms at an example."""
    published, ours, verdict = erratum.printed, erratum.correct, _kind(erratum)
    if erratum.demonstrated_by:
        forms = computations()[erratum.demonstrated_by]()
        assert isinstance(forms, Forms)
        published = f"{published} ({forms.example}: {_plain(forms.printed)})"
        ours = f"{ours} ({_plain(forms.correct)})"
        verdict = verdict if forms.printed != forms.correct else "differs"
    return Row(
        id=row_id(erratum),
        document=erratum.document,
        chapter=erratum.chapter,
        place=erratum.place,
        what=_UNCLEAR if erratum.unclear else _WRONG,
        published=published,
        ours=ours,
        verdict=verdict,
        why=erratum.why,
        tests=erratum.tests,
    )


def holds(relation: str, printed: str, value: Any, tolerance: str = "") -> bool:
    """Whether ``value`` stands to the printed text as ``relation`` says.

    ``tolerance`` is the unit to which the number was printed, where its digits do not say that.

    >>> holds("rounds to", "0.546", 0.545982), holds("rounds to", "0.550", 0.545982)
    (True, False)
    >>> holds("cut to", "162,000", 162754.79, "1000"), holds("rounds to", "35.4%", 0.353862)
    (True, True)
    """
    if isinstance(value, str | bool):
        return printed == _plain(value)
    lower, upper = (value.lower, value.upper) if isinstance(value, Between) else (value, value)
    if printed in ("infinity", "inf"):
        return bool(math.isinf(lower) and lower > 0)
    if math.isinf(lower) or math.isinf(upper) or math.isnan(lower):
        return relation == "at least" and lower > 0
    number, unit = _read(printed)
    unit = Fraction(tolerance) if tolerance else unit
    least, most = Fraction(lower), Fraction(upper)
    if relation == "equals":
        return least == number == most
    if relation == "at least":
        return least >= number
    if relation == "at most":
        return most <= number
    if relation == "more than":
        return least > number
    if relation == "less than":
        return most < number
    if relation == "within":
        return number - unit <= least and most <= number + unit
    if relation == "cut to":
        return number <= least and most < number + unit
    half = unit / 2 * (1 + _SLACK)
    return most - least < unit and least - half <= number <= most + half


def printed_number(name: str) -> float:
    """The number of an item as it is printed, as a number: for tests.

    >>> printed_number("thesis/table-3.2/0.05"), round(printed_number("thesis/proposition-13/strict/multiplicative"), 6)
    (15.43, 2.079442)
    """
    return float(_read(items()[name].published)[0])


def shown(value: Any, like: str) -> str:
    """Our value as text, with two more digits than the printed one.

    >>> shown(15.429449, "15.43"), shown(Between(0.74170, 0.74172), "0.74"), shown(2016, "2,016")
    ('15.4294', '0.7417', '2,016')
    """
    if isinstance(value, str | bool):
        return _plain(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Between):
        low, high = shown(value.lower, like), shown(value.upper, like)
        return low if low == high else f"{low} to {high}"
    if math.isinf(value):
        return "infinity"
    if _LOGARITHM.fullmatch(like):
        return f"{value:.6f}"
    try:
        _, unit = _read(like)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        return _plain(value)
    if "/" in like:
        near = Fraction(value).limit_denominator(10**4)
        return str(near) if abs(near - Fraction(value)) < _EXACT else f"{value:.9f}"
    scale = 100 if like.endswith("%") else 1
    decimals = max(0, 2 - math.floor(math.log10(unit * scale) + 1e-9))
    number = float(value) * scale
    if "e" in like.lower():
        return f"{number:.{len(Decimal(like).as_tuple().digits) + 2}g}"
    return f"{number:,.{decimals}f}{'%' if scale == 100 else ''}"


# -- helpers -------------------------------------------------------------------------------------------------


def _holds(item: Item, value: Any, printed: str, relation: str = "") -> bool:
    return holds(relation or item.relation, printed, value, item.tolerance)


def _kind(erratum: Erratum) -> Verdict:
    return "unclear" if erratum.unclear else "erratum"


def _read(printed: str) -> tuple[Fraction, Fraction]:
    """A printed number, and the unit of its last digit.

    >>> [round(float(number), 6) for number, _ in map(_read, ("35.4%", "ln 36", "2 ln 8"))]
    [0.354, 3.583519, 4.158883]
    """
    text = printed.replace(",", "").strip()
    if logarithm := _LOGARITHM.fullmatch(text):
        return int(logarithm[1] or 1) * Fraction(math.log(float(logarithm[2]))), _EXACT
    percent = Fraction(1, 100) if text.endswith("%") else Fraction(1)
    text = text.removesuffix("%")
    if "/" in text:
        return Fraction(text) * percent, _EXACT
    exponent = Decimal(text).as_tuple().exponent
    assert isinstance(exponent, int)
    return Fraction(Decimal(text)) * percent, Fraction(10) ** exponent * percent


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(item: Item, ours: str, verdict: Verdict, why: str = "", **more: Any) -> Row:
    more.setdefault("relation", item.relation)
    return Row(
        id=item.id,
        document=item.document,
        chapter=item.chapter,
        place=item.place,
        what=item.what,
        published=item.published,
        ours=ours,
        verdict=verdict,
        why=why,
        **more,
    )
