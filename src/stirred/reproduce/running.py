"""Compute the chosen items and put the result together: text for a terminal, JSON, and a page."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from stirred.reproduce.catalogue import Verdict, chosen, documents
from stirred.reproduce.verdicts import Row, row_of, row_of_erratum

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

    >>> from stirred.reproduce.running import reproduce
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
        """All of it, ready for JSON."""
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
        """All of it as JSON."""
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
