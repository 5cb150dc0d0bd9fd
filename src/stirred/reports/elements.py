"""Elements of a report as HTML: headings, lists, tables, folded parts. Every text is escaped here, and nowhere else.

Keep in mind: a :class:`Markup` is HTML already; everything else is text, whoever wrote it, and is escaped. So no name
of a stranger's folder can become an element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")
"""Control characters, and those that turn the direction of text round."""


MOST = 8_000
"""Characters of a text that are printed; what is longer is no sentence of ours."""


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def shown(what: str) -> Markup:
    """A text as HTML, cut if it is very long; what is HTML already stays as it is. Characters that nobody sees are
    replaced by a mark."""
    if isinstance(what, Markup):
        return what
    cut = what if len(what) <= MOST else what[:MOST] + "\u2026"
    return Markup(escape(_UNSEEN.sub("\ufffd", cut)))


def element(name: str, *content: str, **attributes: str) -> Markup:
    """One element; ``class_`` stands for the attribute class, and an underscore elsewhere for a hyphen.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{shown(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{''.join(map(shown, content))}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Parts one after another, each on a line of its own."""
    return Markup("\n".join(map(shown, parts)))


def paragraphs(texts: Iterable[str]) -> Markup:
    """A paragraph for each text."""
    return joined(element("p", text) for text in texts if text)


def listing(items: Iterable[str]) -> Markup:
    """A list; empty without items."""
    inside = [element("li", item) for item in items]
    return element("ul", *inside) if inside else Markup("")


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table whose first column names its rows; on narrow screens it scrolls by itself, not the page."""
    titles = [element("th", title or "\u00a0", scope="col") for title in head]
    lines = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", joined(lines)),
    )
    return element("div", whole, class_="wide", role="group", aria_label=caption, tabindex="0")


def folded(title: str, content: str) -> Markup:
    """A part that opens when it is asked for; printed, it is open where the browser prints it so."""
    return element("details", element("summary", title), content) if content else Markup("")


def heading(level: int, words: str, id: str = "") -> Markup:
    """A heading of a level from 1 to 6."""
    return element(f"h{min(level, 6)}", words, **({"id": id} if id else {}))


def section(level: int, title: str, *content: str, id: str = "", class_: str = "") -> Markup:
    """A section with its heading; empty without content."""
    if not any(content):
        return Markup("")
    more = {"class_": class_} if class_ else {}
    return element("section", heading(level, title, id), joined(part for part in content if part), **more)
