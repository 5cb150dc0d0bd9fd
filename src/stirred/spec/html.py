"""Tables and pages as HTML, for notebooks: plain, every text escaped, no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:2px 10px;"
_MARKED = _CELL + "background:#fff3c4;"


def table(head: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]) -> str:
    """A table of texts; a row that is marked stands out."""
    titles = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in head)
    lines = [
        "<tr>" + "".join(f'<td style="{_MARKED if marked else _CELL}">{escape(cell)}</td>' for cell in cells) + "</tr>"
        for cells, marked in rows
    ]
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def page(title: str, body: str) -> str:
    """A complete HTML document that needs no other file."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f'<body style="font-family:sans-serif"><h1>{escape(title)}</h1>\n{body}\n</body></html>\n'
    )
