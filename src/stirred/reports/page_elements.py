"""Elements of a report as HTML: headings, lists, tables, folded parts, technical words, figures.

Every text is escaped here, and nowhere else: a :class:`Markup` is HTML already; everything else is text, whoever wrote
it. So no name of a stranger's folder can become an element.

A technical word is a link to what it means, where it first occurs in a part of the page. Words and meanings are data
(``glossary.toml``); only words that the page uses are explained.

A picture is SVG inside the page, with a title and a description that can be read aloud. It is one image to who cannot
see it (``role="img"``), so all parts of it lose roles and labels of their own; ids are made unique, and nothing in it
refers to another file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape

from stirred._progress import stage
from stirred._sentences import read_sentences
from stirred.reports.figure_style import caption_of
from stirred.semantics.pictures.shapes import AnyPicture

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


@dataclass(frozen=True)
class Term:
    """One entry: the words that are looked for, the first of them its name, and the meaning."""

    id: str
    words: tuple[str, ...]
    meaning: str


@cache
def terms() -> tuple[Term, ...]:
    """All entries of the data file, in the order of their names."""
    read = [Term(one["id"], tuple(one["words"]), one["meaning"]) for one in read_sentences("glossary")["term"]]
    return tuple(sorted(read, key=lambda one: one.words[0].lower()))


@cache
def _pattern() -> tuple[re.Pattern[str], dict[str, Term]]:
    by_word = {word.lower(): term for term in terms() for word in term.words}
    longest = sorted(by_word, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})(?![\w-])", re.IGNORECASE), by_word


@dataclass
class Glossary:
    """The words that one page has used so far."""

    used: set[str] = field(default_factory=set)
    _here: set[str] = field(default_factory=set)

    def new_part(self) -> None:
        """A part begins: each word is marked again where it first occurs in it."""
        self._here = set()

    def mark(self, text: str) -> Markup:
        """A text as HTML, with links on technical words that this part has not had yet."""
        pattern, by_word = _pattern()
        parts, at = [], 0
        for found in pattern.finditer(text):
            term = by_word[found[1].lower()]
            if term.id in self._here:
                continue
            self._here.add(term.id)
            self.used.add(term.id)
            link = element("a", found[1], class_="term", href=f"#word-{term.id}", title=term.meaning)
            parts += [shown(text[at : found.start()]), link]
            at = found.end()
        return Markup("".join([*parts, shown(text[at:])]))

    def listed(self) -> Markup:
        """What the words of the page mean."""
        used = [term for term in terms() if term.id in self.used]
        entries = [
            joined([element("dt", term.words[0], id=f"word-{term.id}"), element("dd", term.meaning)]) for term in used
        ]
        return element("dl", joined(entries)) if entries else Markup("")


WIDTH = 400
"""Of the drawing without its axes: narrow, so that its letters can be read on a phone."""

_drawing_process = 0
"""The process that drew first. What draws has threads of its own and would wait for ever in a fork of that process, so
pages that are made there have their pictures in words."""
_TAG = re.compile(r"<[^<>]*>")
_LABELS = re.compile(r'\s(?:role|aria-[a-z]+)="[^"]*"')
_ID = re.compile(r'(\sid="|url\(#|href="#)')


@dataclass
class Figures:
    """The figures of one page, numbered in their order; without ``drawing`` they have no drawing, only words."""

    drawing: bool = True
    drawn: int = 0

    def figure(self, picture: AnyPicture, about: str) -> Markup:
        """A figure with its caption; ``about`` names the guarantee, where the picture does not itself."""
        about = picture.guarantee or about
        self.drawn += 1
        number = self.drawn
        stage(f"drawing figure {number}")
        drawing = inline(self._drawn(picture), f"figure-{number}", picture.title, described(picture, about))
        named = f"Figure {number}. {picture.title} {_sentence(about)}"
        words = paragraphs([named, _sentence(picture.subtitle), *caption_of(picture)])
        return element("figure", element("div", drawing, class_="drawing"), element("figcaption", words))

    def _drawn(self, picture: AnyPicture) -> str:
        global _drawing_process
        _drawing_process = _drawing_process or os.getpid()
        if not self.drawing or _drawing_process != os.getpid():
            return "<svg></svg>"
        from altair.utils.schemapi import debug_mode  # no page without pictures waits for it

        from stirred.reports.figures import bare

        with debug_mode(False):  # pictures are ours, and checking each against the schema takes longer than drawing it
            return bare(picture, WIDTH)


def described(picture: AnyPicture, about: str) -> str:
    """What a picture shows, in words."""
    parts = [_sentence(about), _sentence(picture.subtitle), *map(_sentence, caption_of(picture))]
    return " ".join(part for part in parts if part)


def inline(drawing: str, id: str, title: str, description: str) -> Markup:
    """A drawing of vl-convert as one image of a page."""
    body = _TAG.sub(lambda tag: _ID.sub(rf"\g<1>{id}-", _LABELS.sub("", tag[0])), drawing[drawing.index("<svg") :])
    opened, _, rest = body.partition(">")
    size = re.search(r'viewBox="[^"]*"', opened)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="{id}-title {id}-desc"'
    said = f'<title id="{id}-title">{shown(title)}</title><desc id="{id}-desc">{shown(description)}</desc>'
    return Markup(f"{head}{f' {size[0]}' if size else ''}>{said}{rest}")


def _sentence(words: str) -> str:
    return words if not words or words.endswith((".", "?", "!")) else f"{words}."
