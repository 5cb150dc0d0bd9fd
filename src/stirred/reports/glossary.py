"""Technical words of a report: each is a link to what it means, where it first occurs in a part of the page.

The words and their meanings are data (``glossary.toml``). Keep in mind: only words that the page uses are explained.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from stirred.reports.elements import Markup, element, joined, shown


@dataclass(frozen=True)
class Term:
    """One entry: the words that are looked for, the first of them its name, and the meaning."""

    id: str
    words: tuple[str, ...]
    meaning: str


@cache
def terms() -> tuple[Term, ...]:
    """All entries of the data file, in the order of their names."""
    fields = tomllib.loads((files("stirred.reports") / "glossary.toml").read_text(encoding="utf-8"))
    read = [Term(one["id"], tuple(one["words"]), one["meaning"]) for one in fields["term"]]
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
