"""What is publicly known of deployments: each fact with its source and how it was checked, and what is not stated.

An account answers eleven questions about one deployment: who, when, what was released, and the five building blocks in
everyday words. A fact was *checked* in a source that is named, or is *as the registry's record tells*, or its source
could not be reached. A deployment whose account leaves a building block open has no specification: it cannot be
explained or compared, and what is missing is named.

Keep in mind: a budget means nothing apart from its standard, its unit and its period. ``Account.panel`` holds these
three, and budgets of different panels never share an axis (:func:`one_axis`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stirred import errors
from stirred._display import brief
from stirred.errors.kinds import capital, listed
from stirred.spec.known_deployments.names import close, meant, tables

CHECKED, RECORD, UNREACHED = "checked", "record", "unreached"
MARKS = {
    CHECKED: "checked in source [{}]",
    RECORD: "as the registry's record tells [{}]",
    UNREACHED: "as the registry's record tells [{}]; its own source could not be reached",
}
"""How a fact was checked, in words; the number is that of the source."""

QUESTIONS = {
    "organisation": "Who?",
    "released": "When?",
    "product": "What was released?",
    "model": "Who sees the data?",
    "domain": "Which data?",
    "fixed": "What is held fixed?",
    "unit": "Whose record?",
    "neighbours": "Told apart from what?",
    "standard": "How strict?",
    "budget": "How much?",
    "period": "For what?",
}
"""The questions of an account, in order."""

BLOCKS = {
    "domain": "which data could have been there",
    "fixed": "what was published or used as it is",
    "unit": "whose record is protected",
    "neighbours": "whether a record is replaced, or added and removed",
    "standard": "the standard",
    "budget": "the budget",
    "period": "what the budget covers",
}
"""What a guarantee needs: without one of these no specification is made."""

STANDARDS = {
    "pure": ("pure differential privacy", ("epsilon",)),
    "epsilon-delta": ("(epsilon, delta)-differential privacy", ("epsilon", "delta")),
    "zcdp": ("zero-concentrated differential privacy", ("rho",)),
    "per-record zcdp": ("per-record zero-concentrated differential privacy", ("rho",)),
}
"""Standards by name: in words, and the numbers of their budget."""


@dataclass(frozen=True)
class Erratum:
    """Where a source is wrong, ambiguous, or differs from another: both values, and why."""

    id: str
    printed: str
    correct: str
    explanation: str


@dataclass(frozen=True)
class KnownFact:
    """One answer of an account: what it says, how it was checked, and the number of its source, counted from 1."""

    says: str
    mark: str
    source: int

    @property
    def how(self) -> str:
        """How it was checked, in words."""
        return MARKS[self.mark].format(self.source)


@brief
@dataclass(frozen=True)
class Account:
    """What is publicly known of one deployment.

    >>> mobility = account("google-mobility-2020")
    >>> mobility.facts["unit"].says, mobility.budget, mobility.not_stated
    ('user-day', 'epsilon = 2.64', ('fixed',))
    >>> mobility.missing
    'what was published or used as it is'
    """

    name: str
    title: str
    year: int
    facts: Mapping[str, KnownFact]
    """By the names of :data:`QUESTIONS`; what is not stated is left out."""
    not_stated: tuple[str, ...]
    numbers: Mapping[str, str]
    """The budget: ``epsilon``, ``delta`` or ``rho``, each as exact text."""
    sources: tuple[str, ...]
    notes: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    """What the budget was spent on, and how much of it, as exact text."""
    complete: bool = False
    """Whether every building block is stated, so that there is a specification."""

    @property
    def budget(self) -> str:
        """The numbers of the budget in words, or nothing."""
        return ", ".join(f"{name} = {value}" for name, value in self.numbers.items())

    @property
    def panel(self) -> tuple[str, str, str] | None:
        """Standard (with its delta), unit and period: what two budgets must share to stand on one axis. None where one
        is not stated."""
        if not self.numbers or any(name in self.not_stated for name in ("standard", "unit", "period")):
            return None
        standard, unit, period = (self.facts[name].says for name in ("standard", "unit", "period"))
        delta = f", delta = {self.numbers['delta']}" if "delta" in self.numbers else ""
        return standard + delta, unit, period

    @property
    def missing(self) -> str:
        """The building blocks that are not stated, in words; nothing if all are."""
        return "; ".join(words for name, words in BLOCKS.items() if name in self.not_stated)

    @property
    def typed(self) -> str:
        """What is stated of the budget, as it can be typed by hand; nothing if that is not enough."""
        standard = self.facts.get("standard")
        if standard is None or standard.says not in ("pure", "epsilon-delta", "zcdp") or not self.numbers:
            return ""
        unit = self.facts.get("unit")
        numbers = ",".join(f"{name}={value}" for name, value in self.numbers.items())
        return f"{numbers},unit={unit.says}" if unit is not None and "," not in unit.says else numbers

    def guarantee(self) -> str:
        """Budget and period in a few words, as far as they are stated."""
        if not self.numbers:
            return "not stated"
        period = self.facts.get("period")
        return f"{self.budget}, {period.says}" if period else self.budget

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "year": self.year,
            "complete": self.complete,
            "facts": {
                name: {"says": fact.says, "checked": fact.mark, "source": fact.source}
                for name, fact in self.facts.items()
            },
            "budget": dict(self.numbers),
            "parts": [{"what": what, "budget": budget} for what, budget in self.parts],
            "not_stated": list(self.not_stated),
            "errata": [vars(erratum) for erratum in self.errata],
            "notes": list(self.notes),
            "sources": list(self.sources),
        }

    def rows(self) -> list[tuple[str, str]]:
        """The answers as pairs of a question and a text, then what is not stated, errata, notes and sources."""
        found = []
        for name, question in QUESTIONS.items():
            fact = self.facts.get(name)
            says = "" if fact is None else STANDARDS[fact.says][0] if name == "standard" else fact.says
            found.append((question, "not stated" if fact is None else f"{says} ({fact.how})"))
        if self.missing:
            sentence = f"{self.missing}. So there is no specification, and it cannot be explained or compared."
            found.append(("Not stated:", sentence))
        found += [("Sources differ:", f"{e.printed} / {e.correct}. {e.explanation}") for e in self.errata]
        found += [("Note:", note) for note in self.notes]
        found += [("Part:", f"{what}: {budget}") for what, budget in self.parts]
        return found + [(f"[{number}] source:", source) for number, source in enumerate(self.sources, 1)]

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.title}", *(f"{head:22}{text}" for head, text in self.rows())])


def account(name: str) -> Account:
    """The account of a deployment, by its name or an alias."""
    found = find_account(name)
    if found is None:
        raise errors.unknown_deployment(name, close(name))
    return found


def find_account(name: str) -> Account | None:
    """The account of the deployment that a name means, or None; hypothetical swaps have none."""
    return accounts().get(meant(name) or "")


@cache
def accounts() -> Mapping[str, Account]:
    """All accounts by name, sorted by organisation, year and name."""
    found = [_account(fields) for fields in tables().deployments.values() if "account" in fields]
    found.sort(key=lambda one: (one.facts["organisation"].says.lower(), one.year, one.name))
    return {one.name: one for one in found}


def one_axis(first: Account, second: Account) -> str:
    """Why the budgets of two deployments cannot stand on one axis; nothing if they can.

    >>> one_axis(account("google-symptoms-2020"), account("wikimedia-pageviews-2023"))
    "The standards differ ('pure' and 'zcdp'); the units differ ('user-day' and 'device-day')."
    >>> one_axis(account("google-symptoms-2020"), account("google-mobility-2020"))
    ''
    """
    for one in (first, second):
        if one.panel is None:
            parts = [name for name in ("standard", "unit", "budget", "period") if name in one.not_stated]
            return f"Of '{one.name}' {listed(parts)} {'is' if len(parts) == 1 else 'are'} not stated."
    assert first.panel is not None and second.panel is not None
    named = zip(("standards", "units", "periods"), first.panel, second.panel, strict=True)
    differ = [f"the {what} differ ('{a}' and '{b}')" for what, a, b in named if a != b]
    said = "; ".join(differ)
    return f"{capital(said)}." if said else ""


# -- reading -------------------------------------------------------------------------------------------------


def _account(fields: Mapping[str, Any]) -> Account:
    given = fields["account"]
    sources = tuple(fields["sources"])
    checked = given.get("checked", {})
    otherwise = RECORD if given.get("reached", True) else UNREACHED
    numbers = dict(given.get("budget", {}))
    facts = {}
    for name in QUESTIONS:
        if name not in given:
            continue
        says = ", ".join(f"{key} = {value}" for key, value in numbers.items()) if name == "budget" else given[name]
        at = checked.get(name)
        facts[name] = KnownFact(says, CHECKED, at) if at else KnownFact(says, otherwise, record_of(sources))
    return Account(
        fields["name"],
        fields["title"],
        given["year"],
        facts,
        tuple(name for name in QUESTIONS if name in given.get("not_stated", ())),
        numbers,
        sources,
        tuple(fields.get("notes", ())),
        tuple(Erratum(**one) for one in fields.get("errata", ())),
        tuple((part["what"], part["budget"]) for part in fields.get("parts", ())),
        "specification" in fields,
    )


def record_of(sources: Sequence[str]) -> int:
    """The number of the registry's record among the sources, counted from 1; 0 if it is not there."""
    return next((at for at, source in enumerate(sources, 1) if "deployments registry, " in source.lower()), 0)
