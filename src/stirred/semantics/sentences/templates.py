"""The sentences of explanations: each with its id, its formula and its source, and with places for facts.

The sentences themselves are in ``explanations.toml``. A fact that is a number comes with the text that shows it,
rounded the safe way, so that each number of a sentence can be traced: the formula says how it was computed.
``guidance`` lists the items of the reading guide (G1 to G26 of docs/semantics.md) that a sentence carries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from stirred._display import brief
from stirred._sentences import read_sentences

VERSION = 1
"""Format version of the data file."""

SECTIONS = {
    "summary": "In short",
    "noticed": "How many exchanged pairs would be noticed",
    "compares": "What is compared",
    "protects": "Who is protected",
    "exposed": "What is not protected",
    "tests": "What a test can find out",
    "beliefs": "What can be believed",
    "delta": "How to read epsilon and delta",
    "groups": "Households and other groups",
    "concerns": "One attribute, one place",
    "careful": "How to read all this",
}
"""The sections in their order, with their headings."""


class Number(NamedTuple):
    """A number of a sentence, and how it is shown there."""

    value: Fraction | float
    shown: str


class Numbers(NamedTuple):
    """Several numbers of a sentence, and how they are shown there."""

    values: tuple[float, ...]
    shown: str


Fact = Number | Numbers | str


@dataclass(frozen=True)
class Template:
    """A sentence with places for facts."""

    id: str
    words: str
    source: str
    formula: str = ""
    """How the numbers come about; empty for sentences without numbers."""
    guidance: tuple[int, ...] = ()
    of_distributions: str | None = None
    """The words where distributions are compared, if they are others; empty where the sentence is then not said."""

    def said(self, facts: Mapping[str, Fact]) -> Statement:
        """The sentence with its facts."""
        return Statement(self.id, self.words.format(**_texts(facts)), self.source, self.formula, self.guidance, facts)


@brief
@dataclass(frozen=True)
class Statement:
    """A sentence with its facts, and where it comes from."""

    id: str
    words: str
    source: str
    formula: str
    guidance: tuple[int, ...]
    facts: Mapping[str, Fact]

    @property
    def section(self) -> str:
        """The section of the sentence: the part of its id before the dot."""
        return self.id.partition(".")[0]

    def to_fields(self) -> dict[str, Any]:
        """The sentence with its facts as a dictionary that JSON can hold; infinite numbers are text."""
        facts = {name: _field(fact) for name, fact in self.facts.items()}
        return {
            "id": self.id,
            "section": self.section,
            "words": self.words,
            "formula": self.formula,
            "source": self.source,
            "guidance": [f"G{number}" for number in self.guidance],
            "facts": facts,
        }


@dataclass
class Sources:
    """Sources in the order in which they are first named, numbered from 1."""

    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, source: str) -> int:
        """The number of a source."""
        return self._numbers.setdefault(source, len(self._numbers) + 1)

    def listed(self) -> list[tuple[int, str]]:
        """All sources with their numbers."""
        return [(number, source) for source, number in self._numbers.items()]


def say(name: str, /, **facts: Fact) -> Statement:
    """The sentence of this id with its facts.

    >>> say("tests.ideal").words
    'Power equal to the false-alarm probability is the ideal: the test does no better than a blind guess.'
    """
    return templates()[name].said(facts)


def of_distributions(statement: Statement) -> Statement | None:
    """The sentence in the words for distributions of datasets; None where it has no meaning there."""
    words = templates()[statement.id].of_distributions
    if words == "":
        return None
    formula = statement.formula.replace("dataset", "distribution")
    said = statement.words if words is None else words.format(**_texts(statement.facts))
    return replace(statement, words=said, formula=formula)


def _texts(facts: Mapping[str, Fact]) -> dict[str, str]:
    return {name: fact if isinstance(fact, str) else fact.shown for name, fact in facts.items()}


def _field(fact: Fact) -> Any:
    if isinstance(fact, str):
        return fact
    if isinstance(fact, Numbers):
        return {"values": list(fact.values), "shown": fact.shown}
    value = float(fact.value)
    return {"value": value if math.isfinite(value) else str(value), "shown": fact.shown}


@cache
def templates(name: str = "explanations") -> Mapping[str, Template]:
    """Every sentence of a data file by its id."""
    fields = read_sentences(name)
    assert fields["stirred_sentences"] == VERSION
    read = [Template(**{**one, "guidance": tuple(one.get("guidance", ()))}) for one in fields["sentence"]]
    return {one.id: one for one in read}
