"""Draw docs/rooms.svg, the picture of docs/architecture.md, from the layers of import-linter in pyproject.toml.

    python scripts/rooms_picture.py          # a test asks for it where the layers have changed

Each row may import from the rows below it, and rooms of one row that stand apart never import each other. A box says
what the room is for, in the words of its own docstring, and what stands in it: folders, and files where they are few.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "stirred"
PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, GAP, LINE, PAD = 960, 10, 15, 8
MOST = 16
"""Entries of a folder that are still read at a glance."""


def layers() -> list[list[str]]:
    """The rooms of each layer, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (rows,) = (one["layers"] for one in contracts if one["type"] == "layers")
    return [[room.strip() for room in row.split("|")] for row in rows]


def purpose(room: str) -> str:
    """The first sentence of a room's docstring."""
    path = SOURCE / room / "__init__.py"
    text = ast.get_docstring(ast.parse((path if path.exists() else SOURCE / f"{room}.py").read_text(encoding="utf-8")))
    return " ".join(str(text).split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def entries(room: str) -> list[str]:
    """The folders of a room, and its files too where that is a short list."""
    folders = {path.parent.name for path in (SOURCE / room).glob("*/__init__.py")}
    files = {path.stem for path in (SOURCE / room).glob("*.py")} - {"__init__"}
    return sorted(folders | files if len(folders | files) <= MOST else folders)


def lines_of(room: str, width: float) -> list[tuple[str, str]]:
    """What is written into the box of a room, and in which style: its name, its purpose, its entries."""
    signs = int((width - 2 * PAD) / 6.9)
    if room.startswith("_"):
        return [(room, "name")]
    purposes = textwrap.wrap(purpose(room).replace("`", ""), signs, max_lines=4, placeholder=" ...")
    inside = textwrap.wrap(" ".join(entries(room)), signs, max_lines=5, placeholder=" ...")
    return [(room, "name"), *((line, "what") for line in purposes), *((line, "in") for line in inside)]


def picture() -> str:
    """The drawing."""
    drawn, top = [], float(GAP)
    for row in layers():
        parts = [1 if room.startswith("_") else 2 for room in row]
        widths = [(WIDTH - GAP * (len(row) + 1)) * part / sum(parts) for part in parts]
        boxes = [lines_of(room, width) for room, width in zip(row, widths, strict=True)]
        height = LINE * max(map(len, boxes)) + 2 * PAD
        left = float(GAP)
        for lines, width in zip(boxes, widths, strict=True):
            apart = ' class="apart"' if row == ["lab"] else ""
            drawn.append(
                f'<rect{apart} x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4"/>'
            )
            for below, (line, kind) in enumerate(lines):
                at = top + PAD + LINE * (below + 0.8)
                drawn.append(f'<text x="{left + PAD:.0f}" y="{at:.0f}" class="{kind}">{escape(line)}</text>')
            left += width + GAP
        top += height + GAP
    style = (
        "rect{fill:#f6f6f6;stroke:#888}.apart{fill:#fff;stroke-dasharray:5 4}text{font:12px sans-serif;fill:#222}"
        ".name{font-weight:bold;fill:#0072b2}.in{fill:#666;font-style:italic}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" role="img">'
    title = "<title>The rooms of the source: each row may import from the rows below it.</title>"
    ground = f'<path fill="#fff" d="M0 0H{WIDTH}V{top:.0f}H0z"/>'
    return "\n".join([head, title, f"<style>{style}</style>", ground, *drawn, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
