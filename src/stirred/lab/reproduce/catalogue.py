"""The list of published numbers, figures and errata, as it stands in ``published/*.toml``.

One file holds one document, or some chapters of it::

    document = "thesis"

    [[group]]
    id = "table-3.2"
    chapter = "3"
    place = "Table 3.2, p. 115"
    what = "epsilon of a swap at rate {rate}"
    computed_by = "swap_epsilon"
    with = { largest_stratum = 264331 }
    rows = [
        { key = "0.01", with = { rate = "0.01" }, published = "17.08", further = "17.0801" },
    ]

A group without ``rows`` is one number itself. Keep in mind: what is published is a string, with the digits that were
printed, and is never changed; a wrong number gets ``erratum`` and ``corrected``.

``computed_by`` and ``demonstrated_by`` name functions of the modules beside this one. Such a function takes the inputs
of its item, as they are written in the list, and returns

* a number (``int``, ``float`` or ``Fraction``),
* :class:`Between`, where only two bounds are known,
* a text or a truth value, for statements, or
* a sequence of pictures, for figures.

An erratum about a formula returns :class:`Forms`: the printed form and the correct one at an example.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

from stirred import errors

Relation = Literal["rounds to", "cut to", "equals", "at least", "at most", "more than", "less than", "within"]
"""How our number must stand to the printed one."""

Verdict = Literal["agrees", "input", "erratum", "unclear", "drawn", "cannot", "not yet", "differs"]
"""``erratum``: the printed number is wrong, for the reason that is given, and the corrected one agrees. ``unclear``: it
need not be wrong, but does not follow from what is published. ``input``: it is not computed, but read and used."""


@dataclass(frozen=True)
class Document:
    """A document whose numbers are computed again."""

    key: str
    title: str
    citation: str
    parts: str = "chapter"
    """What its numbered parts are called."""


@dataclass(frozen=True)
class Erratum:
    """A place where a document is wrong or unclear: what is printed, what is right, why, and the tests of both."""

    id: str
    document: str
    chapter: str
    place: str
    printed: str
    correct: str
    why: str
    tests: tuple[str, ...]
    demonstrated_by: str = ""
    misprint: bool = False
    """Whether nothing can be computed about it: a wrong letter or reference."""
    unclear: bool = False
    """Whether the document is not shown to be wrong: it can be read in several ways, or leaves something out."""


@dataclass(frozen=True)
class Item:
    """One published number, statement or figure, and how it is computed."""

    id: str
    document: str
    chapter: str
    place: str
    what: str
    published: str = ""
    computed_by: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    relation: Relation = "rounds to"
    tolerance: str = ""
    """The unit to which it was printed where its digits do not say that (162,000 for 162,754), or the half-width of
    ``within``."""
    further: str = ""
    """More digits, as recomputed when the list was made; they must agree too."""
    corrected: str = ""
    erratum: str = ""
    cannot: str = ""
    """Why it cannot be computed."""
    missing: str = ""
    """What must be built first."""
    draws: bool = False
    """Whether it is a figure: ``computed_by`` returns pictures."""
    input: bool = False
    """Whether it is not computed but held as it is printed, for other numbers to be computed from it."""

    @property
    def expected(self) -> Verdict:
        """The verdict that this entry of the list stands for."""
        if self.cannot:
            return "cannot"
        if self.missing:
            return "not yet"
        if self.draws:
            return "drawn"
        if self.erratum:
            return "unclear" if errata()[f"{self.document}/{self.erratum}"].unclear else "erratum"
        return "input" if self.input else "agrees"


@cache
def documents() -> Mapping[str, Document]:
    """All documents, by key."""
    listed = _read("documents.toml")["document"]
    return {one["key"]: Document(**one) for one in listed}


@cache
def items() -> Mapping[str, Item]:
    """All items, by id, in the order of the list."""
    found: dict[str, Item] = {}
    for listed in _lists():
        for group in listed.get("group", ()):
            for item in _items_of(listed["document"], group):
                if item.id in found:
                    raise ValueError(f"{item.id} is listed twice")
                found[item.id] = item
    return found


@cache
def errata() -> Mapping[str, Erratum]:
    """All errata, by id."""
    found: dict[str, Erratum] = {}
    for listed in _lists():
        for one in listed.get("erratum", ()):
            name = f"{listed['document']}/{one['id']}"
            if name in found:
                raise ValueError(f"the erratum {name} is listed twice")
            found[name] = Erratum(**{**one, "id": name, "document": listed["document"], "tests": tuple(one["tests"])})
    return found


def chosen(asked: Iterable[str]) -> tuple[list[Item], list[Erratum]]:
    """The items that somebody asks for, and the errata that belong to no number.

    By id, by the beginning of an id, or with ``*``; all where nothing is asked.

    >>> [item.id for item in chosen(["thesis/table-3.2/0.05"])[0]]
    ['thesis/table-3.2/0.05']
    """
    wanted = list(asked)
    told = {f"{item.document}/{item.erratum}" for item in items().values() if item.erratum}
    alone = {row_id(one): one for one in errata().values() if one.id not in told}
    known = [*items(), *alone]
    kept = set() if wanted else set(known)
    for pattern in wanted:
        fitting = [name for name in known if _fits(name, pattern)]
        if not fitting:
            groups = {name.rpartition("/")[0] if name.count("/") > 1 else name for name in known}
            inside = {name.partition("/")[2] for name in groups}
            close = difflib.get_close_matches(pattern, sorted(groups | inside), n=4)
            raise errors.unknown_choice("published item", pattern, close or list(documents()))
        kept.update(fitting)
    return [item for item in items().values() if item.id in kept], [alone[name] for name in alone if name in kept]


def row_id(erratum: Erratum) -> str:
    """The id of the row of an erratum that belongs to no number."""
    return f"{erratum.document}/erratum/{erratum.id.partition('/')[2]}"


def published(name: str) -> str:
    """The number of an item exactly as it is printed, for tests.

    >>> published("thesis/table-3.2/0.05")
    '15.43'
    """
    return items()[name].published


# -- helpers -------------------------------------------------------------------------------------------------


def _fits(name: str, pattern: str) -> bool:
    """Whether an id, or its part after the document, is the pattern, begins with it, or matches its ``*``."""
    inside = name.partition("/")[2]
    return any(one == pattern or one.startswith(f"{pattern}/") or fnmatchcase(one, pattern) for one in (name, inside))


def _items_of(document: str, group: Mapping[str, Any]) -> Iterable[Item]:
    shared = {name: value for name, value in group.items() if name not in ("rows", "with", "id")}
    for row in group.get("rows", ({},)):
        own = {name: value for name, value in row.items() if name not in ("key", "with")}
        given = {**group.get("with", {}), **row.get("with", {})}
        name = f"{document}/{group['id']}" + (f"/{row['key']}" if "key" in row else "")
        values = {**shared, **own}
        unknown = set(values) - {one.name for one in fields(Item)}
        if unknown:
            raise ValueError(f"{name} has the unknown fields {sorted(unknown)}")
        values["what"] = str(values["what"]).format(**given)
        yield Item(**{**values, "id": name, "document": document, "inputs": given})


@cache
def _lists() -> tuple[dict[str, Any], ...]:
    folder = files("stirred.lab.reproduce") / "published"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    lists = [_read(name) for name in names if name != "documents.toml"]
    order = list(documents())
    return tuple(sorted(lists, key=lambda one: order.index(one["document"])))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("stirred.lab.reproduce") / "published" / name).read_text(encoding="utf-8"))


MODULES = (
    "building_blocks",
    "processing",
    "swapping",
    "census",
    "inference",
    "surveys",
    "semantics",
    "slides",
)
"""The modules of this package that define computations."""


@dataclass(frozen=True)
class Between:
    """A number that is known to lie between two bounds."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Forms:
    """What a printed formula and the correct one say about one example."""

    example: str
    printed: float | Fraction | str | bool
    correct: float | Fraction | str | bool


@cache
def computations() -> Mapping[str, Callable[..., Any]]:
    """The functions that the list names, of whichever module has one of this name."""
    named = {item.computed_by for item in items().values()} | {one.demonstrated_by for one in errata().values()}
    modules = [import_module(f"stirred.lab.reproduce.{module}") for module in MODULES]
    found = [(name, vars(module)[name]) for module in modules for name in sorted(named & vars(module).keys())]
    if len(dict(found)) < len(found):
        raise ValueError("two modules have a computation of the same name")
    return dict(found)
