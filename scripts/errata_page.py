"""Write the lists of docs/errata.md from docs/reproduced-rows.json; ``make reproduced`` does it.

What stands above the marked line is written by hand and kept.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
MARK = "<!-- The lists below are written by make reproduced; do not edit them. -->\n"


def lists() -> str:
    """The errata of each document, in the order of its pages."""
    found = json.loads((DOCS / "reproduced-rows.json").read_text(encoding="utf-8"))
    lines = []
    for document, title in found["documents"].items():
        rows = [row for row in found["rows"] if row["document"] == document and row["verdict"] == "erratum"]
        if rows:
            lines += ["", f"## The {document.replace('-', ' ')}", "", f"{title}. {len(rows)} errata."]
            lines += ["", "| where | printed | right | why |", "|---|---|---|---|"]
            lines += ["| " + " | ".join(map(cell, texts(row))) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def texts(row: dict[str, str]) -> tuple[str, str, str, str]:
    """Where, as printed, as it should be, and why; a number is told with what it is."""
    about = "" if row["what"].startswith("a statement") else f"{row['what']}: "
    return row["place"], about + row["published"], row["ours"], row["why"]


def cell(text: str) -> str:
    """Text that stands in a table of Markdown as it is."""
    return re.sub(r"([|<*_\[\]])", r"\\\1", text)


def page() -> str:
    """The whole page: what is written by hand, and the lists."""
    written = (DOCS / "errata.md").read_text(encoding="utf-8").partition(MARK)[0]
    return written + MARK + lists()


if __name__ == "__main__":
    (DOCS / "errata.md").write_text(page(), encoding="utf-8")
