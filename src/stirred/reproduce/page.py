"""The page ``docs/reproduced.md`` and the file ``docs/reproduced-rows.json``, written from the result.

Run ``make reproduced`` after a change; a test compares.
"""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path

from stirred.reproduce.catalogue import documents
from stirred.reproduce.running import WORDS, Reproduction, chapter_words, reproduce, summary
from stirred.reproduce.verdicts import Row

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
    """The page as Markdown."""
    parts = [_HEAD, summary(result.counts) + "\n"]
    for document, of_document in groupby(result.rows, lambda row: row.document):
        known = documents()[document]
        parts.append(f"## {known.title}\n\n{known.citation}\n")
        for chapter, rows in groupby(of_document, lambda row: row.chapter):
            parts.append(f"### {_capital(chapter_words(chapter, known.parts))}\n")
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


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    write(Path(sys.argv[1]))
