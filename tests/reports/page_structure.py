"""Reads an HTML page and says what is wrong with its structure; used by tests of reports."""

from __future__ import annotations

import re
from html.parser import HTMLParser

INLINE = {"a", "b", "sup", "span", "code"}
VOID = {"meta", "br", "hr", "link", "img", "input"}
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "nav", "section", "div", "p", "ul", "ol", "li", "dl"),
    *("dt", "dd", "h1", "h2", "h3", "h4", "h5", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure"),
    *("figcaption", "details", "summary", "pre", "code", "span", "a", "b", "sup"),
    *("svg", "desc", "g", "path", "rect", "line", "text", "tspan", "defs", "clippath", "circle"),
}


class Structure(HTMLParser):
    """The elements of a page, and the faults that were found while reading it."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.counts: dict[str, int] = {}
        self.words: list[str] = []
        self.attributes: dict[str, str] = {}
        self._svg: dict[str, str] | None = None
        self._table: list[str] = []
        self.feed(page)
        self.close()
        if self.open:
            self.faults.append(f"never closed: {self.open}")
        self._after()

    @property
    def text(self) -> str:
        """All words of the page, without the styles."""
        return " ".join("".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.words += [] if tag in INLINE else [" "]
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag == "html":
            self.attributes = given
        if tag not in ALLOWED:
            self.faults.append(f"<{tag}> has no place in a report")
        for name, value in given.items():
            if name.startswith("on"):
                self.faults.append(f"<{tag} {name}=...>")
            if name in ("src", "srcset", "data", "action", "xlink:href", "style" if tag != "text" else ""):
                self.faults.append(f"<{tag} {name}={value!r}>")
            if name == "href" and not value.startswith("#"):
                self.faults.append(f"<{tag} href={value!r}>")
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given.get("href", ""))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "svg":
            self._svg = given
            if given.get("role") != "img" or not given.get("aria-labelledby"):
                self.faults.append("a drawing that nobody can read aloud")
        if tag == "table":
            self._table = []
        if tag in ("caption", "thead", "th"):
            self._table.append(tag + given.get("scope", ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.words += [] if tag in INLINE else [" "]
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
            return
        self.open.pop()
        if tag == "table" and not {"caption", "thead", "thcol", "throw"} <= {*self._table}:
            self.faults.append(f"a table without headings: {self._table}")

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:40]!r}")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"a declaration: {data[:40]!r}")

    def _after(self) -> None:
        if self.headings.count(1) != 1 or self.headings[0] != 1:
            self.faults.append(f"headings {self.headings}")
        steps = zip(self.headings, self.headings[1:], strict=False)
        self.faults += [f"h{later} after h{before}" for before, later in steps if later > before + 1]
        self.faults += [f"id {one!r} twice" for one in {*self.ids} if self.ids.count(one) > 1]
        self.faults += [f"{one} leads nowhere" for one in {*self.links} if one[1:] not in self.ids]
        if self.attributes.get("lang") != "en":
            self.faults.append("no language")
