"""Write the researcher's tutorial as a Jupyter notebook: the page tutorial-research.md of docs/ as an .ipynb beside it.

The page is the only source: its text becomes cells of text, each block of Python a cell of code, and the block that
shows what was printed its output. A test compares the notebook with the page and runs its cells.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "tutorial-research.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.S | re.M)


def cells(page: str) -> list[dict[str, Any]]:
    """The cells of a page, in its order."""
    found: list[dict[str, Any]] = []
    at = 0
    for block in BLOCK.finditer(page):
        language, inside = block.groups()
        if language == "sh":  # commands for a terminal are part of the text
            continue
        _add_text(found, page[at : block.start()])
        at = block.end()
        if language == "python":
            found.append({"cell_type": "code", "metadata": {}, "source": _lines(inside.rstrip("\n"))})
            found[-1] |= {"execution_count": None, "outputs": []}
        elif language == "text" and found and found[-1]["cell_type"] == "code":
            found[-1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": _lines(inside)}]
        else:
            raise ValueError(f"a notebook has no place for this block of {language}: {inside[:60]!r}")
    _add_text(found, page[at:])
    return [{"id": f"cell-{number:02}", **cell} for number, cell in enumerate(found, 1)]


def notebook(page: str) -> str:
    """The notebook as the text of its file."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells(page), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _add_text(found: list[dict[str, Any]], text: str) -> None:
    if text.strip():
        found.append({"cell_type": "markdown", "metadata": {}, "source": _lines(text.strip())})


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
