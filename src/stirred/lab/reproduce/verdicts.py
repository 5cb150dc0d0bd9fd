"""Computes published numbers again and says whether ours agree with the printed ones, to the digits that were printed.

The result is text for a terminal, JSON, and the page ``docs/reproduced.md`` with the file
``docs/reproduced-rows.json``. Run ``make reproduced`` after a change; a test compares.
"""

from __future__ import annotations

import json
import math
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from stirred.errors.kinds import capital
from stirred.lab.reproduce.catalogue import (
    Between,
    Erratum,
    Forms,
    Item,
    Relation,
    Verdict,
    chosen,
    computations,
    documents,
    errata,
    row_id,
)

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
    """The line of an item: our number, computed, and whether it agrees with the printed one."""
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
    what, tests = _UNCLEAR if erratum.unclear else _WRONG, erratum.tests
    more = {"id": row_id(erratum), "what": what, "published": published, "relation": "", "tests": tests}
    return _row(erratum, ours, verdict, erratum.why, **more)


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


def _row(one: Item | Erratum, ours: str, verdict: Verdict, why: str = "", **more: Any) -> Row:
    """A line about an item or an erratum, with its own words where there are no others."""
    for name in ("id", "document", "chapter", "place", "what", "published", "relation"):
        more.setdefault(name, getattr(one, name, None))
    return Row(ours=ours, verdict=verdict, why=why, **more)


WORDS: dict[Verdict, str] = {
    "agrees": "agrees",
    "input": "an input, held as printed",
    "erratum": "agrees after an erratum",
    "unclear": "unclear in the source",
    "drawn": "drawn again",
    "cannot": "cannot be computed",
    "not yet": "not yet",
    "differs": "DIFFERS",
}
"""What each verdict is called."""

_FORMAT = 1
_WIDTHS = {"id": 40, "published": 15, "ours": 15, "verdict": 25}


@dataclass(frozen=True)
class Reproduction:
    """Published numbers beside those that were computed, with a verdict each.

    >>> from stirred.lab.reproduce.verdicts import reproduce
    >>> reproduce(["thesis/table-3.2/0.05"]).rows[0].verdict
    'agrees'
    """

    rows: tuple[Row, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many rows have each verdict."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in WORDS if found[verdict]}

    @property
    def holds(self) -> bool:
        """Whether no row differs."""
        return all(row.verdict != "differs" for row in self.rows)

    def text(self) -> str:
        """One line for each row, by document and chapter, and how many have each verdict."""
        lines: list[str] = []
        for (document, chapter), rows in groupby(self.rows, lambda row: (row.document, row.chapter)):
            known = documents()[document]
            lines += ["", f"{known.title}, {chapter_words(chapter, known.parts)}"]
            for row in rows:
                lines += _lines(row)
        return "\n".join([*lines, "", summary(self.counts), ""]).lstrip("\n")

    def to_fields(self) -> dict[str, Any]:
        """All rows with their verdicts, as a dictionary that JSON can hold."""
        head = ("id", "document", "chapter", "place", "what")
        names = (*head, "published", "relation", "ours", "verdict", "why", "tests")
        return {
            "stirred_reproduction": _FORMAT,
            "title": "Published numbers, figures and errata, computed again: all rows",
            "documents": {key: one.citation for key, one in documents().items()},
            "counts": self.counts,
            "rows": [{name: getattr(row, name) for name in names} for row in self.rows],
        }

    def to_json(self) -> str:
        """All rows with their verdicts, as JSON text."""
        return json.dumps(self.to_fields(), indent=1, ensure_ascii=False) + "\n"

    @property
    def pictures(self) -> tuple[Any, ...]:
        """The figures, to be saved."""
        return tuple(picture for row in self.rows for picture in row.pictures)


def reproduce(asked: Iterable[str] = (), progress: Callable[[int, int, str], None] | None = None) -> Reproduction:
    """Compute published numbers again: all of them, or those whose ids begin with what is asked.

    ``progress`` is called before each with how many are done, how many there are, and the id.
    """
    selected, alone = chosen(asked)
    rows = []
    for done, item in enumerate(selected):
        if progress is not None:
            progress(done, len(selected), item.id)
        rows.append(row_of(item))
    rows += [row_of_erratum(one) for one in alone]
    order = list(documents())
    return Reproduction(tuple(sorted(rows, key=lambda row: (order.index(row.document), chapter_order(row.chapter)))))


def chapter_order(chapter: str) -> tuple[int, float, str]:
    """Where a chapter, or a section of a paper, stands: numbers by value, then appendices by letter.

    >>> sorted(["A", "section 10", "2", "B"], key=chapter_order)
    ['2', 'section 10', 'A', 'B']
    """
    number = chapter.removeprefix("section ")
    return (0, float(number), "") if number.replace(".", "", 1).isdigit() else (1, 0.0, chapter)


def chapter_words(chapter: str, parts: str = "chapter") -> str:
    """A chapter in words; ``parts`` is what the document's numbered parts are called.

    >>> chapter_words("3"), chapter_words("3", "section"), chapter_words("B")
    ('chapter 3', 'section 3', 'appendix B')
    """
    if len(chapter) == 1 and chapter.isalpha():
        return f"appendix {chapter}"
    return f"{parts} {chapter}" if chapter.isdigit() else chapter


def summary(counts: dict[Verdict, int]) -> str:
    """How many rows have each verdict, in one line."""
    total = sum(counts.values())
    each = "; ".join(f"{number} {WORDS[verdict]}" for verdict, number in counts.items())
    return f"{total} published item{'' if total == 1 else 's'}: {each}."


# -- helpers -------------------------------------------------------------------------------------------------


def _lines(row: Row) -> list[str]:
    shown = row.id.partition("/")[2]
    ours, published = row.ours or "-", row.printed or "-"
    long = len(published) > _WIDTHS["published"] or len(ours) > _WIDTHS["ours"]
    told = [f"published: {published}", f"ours: {ours}"] if long else []
    numbers = ("below", "below") if long else (published, ours)
    first = (
        f"  {shown:<{_WIDTHS['id']}} {numbers[0]:>{_WIDTHS['published']}} {numbers[1]:>{_WIDTHS['ours']}}  "
        f"{WORDS[row.verdict]:<{_WIDTHS['verdict']}} {row.place}: {row.what}"
    )
    if row.why:
        told.append(row.why)
    wrapped = [textwrap.fill(one, 110, initial_indent=" " * 6, subsequent_indent=" " * 8) for one in told]
    return [first, *wrapped]


_HEAD = """# Every published number, computed again

This page is written by `make reproduced` from the list in `tests/golden/published` and from what the software computes;
do not edit it. `stirred reproduce` prints the same on a terminal, `stirred reproduce --json` as JSON, and
`stirred reproduce --figures DIR` draws the figures.

* **agrees**: our number rounds to the printed one at the digits that were printed, or stands to it as the text says.
* **agrees after an erratum**: the printed number or formula is wrong; the corrected one agrees. The reason follows.
* **unclear in the source**: what is printed is not shown to be wrong, but can be read in several ways, leaves something
  out, or comes from a number that is not published. How it is read here follows.
* **an input, held as printed**: not computed, but read from the document, and used to compute other numbers.
* **drawn again**: a figure that prints no numbers.
* **cannot be computed**: with the reason. **not yet**: with what is missing.
"""


def page(result: Reproduction) -> str:
    """The page ``docs/reproduced.md``: every row, by document and chapter."""
    parts = [_HEAD, summary(result.counts) + "\n"]
    for document, of_document in groupby(result.rows, lambda row: row.document):
        known = documents()[document]
        parts.append(f"## {known.title}\n\n{known.citation}\n")
        for chapter, rows in groupby(of_document, lambda row: row.chapter):
            parts.append(f"### {capital(chapter_words(chapter, known.parts))}\n")
            parts.append("\n".join(_table(list(rows))) + "\n")
    return "\n".join(parts)


def write(folder: Path) -> None:
    """Compute everything and write both files."""
    result = reproduce()
    (folder / "reproduced.md").write_text(page(result), encoding="utf-8")
    (folder / "reproduced-rows.json").write_text(result.to_json(), encoding="utf-8")


# -- helpers -------------------------------------------------------------------------------------------------


def _table(rows: list[Row]) -> list[str]:
    lines = ["| item | where | what | published | ours | verdict |", "|---|---|---|---|---|---|"]
    for row in rows:
        verdict = WORDS[row.verdict] + (f": {row.why}" if row.why else "")
        cells = (row.place, row.what, row.printed or "–", row.ours or "–", verdict)
        lines.append(f"| `{row.id.partition('/')[2]}` | " + " | ".join(map(_literal, cells)) + " |")
    return lines


def _literal(text: str) -> str:
    """Text in which Markdown finds nothing to format: d_* and p_x*(t) have no italics.

    >>> print(_literal("|d_*| < 2"))
    \\|d\\_\\*\\| \\< 2
    """
    return re.sub(r"([|*_<\\])", r"\\\1", text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
