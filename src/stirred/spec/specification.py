"""A specification: the five building blocks of one guarantee (Definitions 2.4.1-2.4.5), also as JSON.

A mechanism T satisfies (X, D, d_X, D_Pr, eps) if D_Pr(P_x, P_x') <= eps d_X(x, x') for all datasets x, x' that lie
together in one universe of the multiverse D. A *flavor* is the first four blocks. The number is meaningless without
them, so they are kept together. ``findings`` are what lint says about the guarantee; they are printed with it.

What a guarantee holds fixed is published exactly, or only assumed known (:func:`held`). Both are the same to the
mathematics: datasets that differ in it are not compared, and publishing it would cost nothing (Propositions 2.4.11 and
A.3.3). They are not the same to a reader: a count that was published is known to everybody, one that only limits which
datasets are compared need not be. Keep in mind: what is not known to be published is in the second class.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stirred import _bounded_reading, errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief, html_table
from stirred._lazy import later
from stirred.errors.kinds import capital
from stirred.spec import facts
from stirred.spec.blocks import Budget, Domain, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.exact import Exact, bound, exact, near
from stirred.spec.invariant import Invariant, merged, missing

NOT_FOR_RELEASE = "not for release: drawn from a seeded source, which can be repeated"

_implication = later("stirred.spec.order.implication")
"""The one place where this module reaches upwards: the order of specifications is built on them."""

Fact = str | int | bool
BLOCKS = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")


@brief
@dataclass(frozen=True)
class Finding:
    """A finding of the lint about the guarantee: a stable id, and the sentence."""

    id: str
    words: str
    why: str = ""
    source: str = ""


@refuses_wrong_arguments
@dataclass(frozen=True, repr=False)
class Flavor:
    """The first four blocks of a guarantee: what is protected, where, in which units and by which standard."""

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    nearest: Exact | None = field(default=None, compare=False)
    """The smallest positive finite distance inside the universes; infinite if every universe holds a single dataset;
    None if it is not known. A statement about one counterfactual uses the budget at its distance."""

    def __post_init__(self) -> None:
        _check_flavor(self)

    def __repr__(self) -> str:
        return f"<Flavor: {_scope(self)}>"

    def _repr_html_(self) -> str:
        blocks = [(block.replace("_", " "), str(getattr(self, block))) for block in BLOCKS[:-1]]
        return html_table(("block", "flavor"), [(row, False) for row in blocks])

    def at(self, budget: Any, conversion: str = "", **more: Any) -> Specification:
        """This flavor with a budget: a specification."""
        if not isinstance(budget, Budget):
            budget = Budget(budget, conversion=conversion)
        blocks = {block.name: getattr(self, block.name) for block in fields(self)}
        return Specification(**(blocks | {"budget": budget} | more))

    def invariants(self) -> tuple[Invariant, ...]:
        """The declared invariants and those that the premetric hides: bounded distances fix the number of records
        (Proposition A.3.3)."""
        return (*self.multiverse.invariants, *self.input_premetric.fixes())


@refuses_wrong_arguments
@dataclass(frozen=True, repr=False)
class Specification:
    """One guarantee, with all five building blocks.

    Parameters
    ----------
    domain
        Which datasets could have been the data.
    multiverse
        What is held fixed: only datasets that agree on it are compared.
    input_premetric
        How far apart two datasets are, in which unit.
    output_premetric
        How different two laws of the output are: the standard.
    budget
        How much the law of the output may change per unit of distance.
    nearest, name, covers, facts, findings, marks
        The smallest distance between two different datasets of one universe; a name; what was released; what is known
        about its making; what :func:`stirred.lint` found; marks such as "not for release".

    Examples
    --------
    >>> import stirred
    >>> stirred.flavors.pure("household").at("1/2").budget.number
    Fraction(1, 2)
    """

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    nearest: Exact | None = field(default=None, compare=False)
    """See :class:`Flavor`."""
    name: str = field(default="", compare=False)
    covers: tuple[str, ...] = field(default=(), compare=False)
    """What was released under it."""
    facts: tuple[tuple[str, Fact], ...] = field(default=(), compare=False)
    """What is known about the mechanism and its making, for :func:`stirred.spec.lint`."""
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    marks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_flavor(self)
        kind, budget = self.output_premetric.kind, self.budget
        if budget.is_curve != kind.curve:
            needs = "needs a curve for its budget" if kind.curve else "has a number for its budget"
            raise errors.bad_block(f"The output premetric '{kind.name}'", needs)
        if kind.curve and not kind.takes_curve(budget.value):
            raise errors.bad_block(f"The output premetric '{kind.name}'", "has another kind of curve")
        if budget.by_universe and len(budget.by_universe) != len(self.multiverse.universes):
            raise errors.bad_block("A budget by universe", "has one number for each listed universe")

    @property
    def flavor(self) -> Flavor:
        """The first four blocks: all but the budget."""
        return Flavor(*(getattr(self, block.name) for block in fields(Flavor)))

    @property
    def fact(self) -> Mapping[str, Fact]:
        """The facts by name."""
        return dict(self.facts)

    def number(self, fact: str) -> Fraction | None:
        """A fact that is a number; None where it is not stated, or stated as infinite."""
        stated = self.fact.get(fact)
        found = math.inf if stated is None else exact(stated, f"The fact '{fact}'")
        return None if found == math.inf else Fraction(found)

    @property
    def condition(self) -> str:
        """What must be true of the file for the guarantee to be one about its unit; empty if nothing is left open.

        A survey plan that does not state its row may have read a file of persons and speak of households, of which one
        then changes several records.

        >>> from stirred.spec import flavors
        >>> flavors.pure("household").at(1, facts=(("mechanism", "survey"),)).condition
        'if each row is one whole household'
        """
        told = self.fact
        row = told.get(facts.ROW, facts.NOT_STATED if told.get(facts.MECHANISM) == facts.SURVEY else "")
        return f"if each row is one whole {self.input_premetric.unit}" if row == facts.NOT_STATED else ""

    def budget_at(self, distance: Any) -> Fraction | float:
        """The bound between two datasets at a distance: epsilon times d, rho times d squared."""
        apart = exact(distance, "A distance")
        if math.inf in (apart, self.budget.number):
            return math.inf  # 0 times infinity is infinity (Remark 2.4.6)
        return self.budget.number * (apart if self.output_premetric.kind.power == 1 else apart * apart)

    def counterfactual(self, first: Any, second: Any) -> Counterfactual:
        """What the guarantee says about two datasets: names in a finite domain, else sequences of records."""
        inside = self.multiverse.holds(first, second)
        distance = self.input_premetric.distance(first, second)
        if not inside or distance == math.inf:
            return Counterfactual(False if distance == math.inf else inside, distance, None)
        bound = None if self.budget.is_curve else self.budget_at(distance)
        return Counterfactual(True, distance, bound)

    def implies(self, other: Specification) -> Answer:
        """Whether every mechanism that satisfies this specification satisfies the other (M(A) is part of M(B))."""
        return _implication.implies(self, other)  # type: ignore[no-any-return]

    def with_findings(self, *findings: Finding) -> Specification:
        """The same with findings added, one per id."""
        known = {finding.id for finding in self.findings}
        return replace(self, findings=(*self.findings, *(f for f in findings if f.id not in known)))

    def to_json(self) -> str:
        """The specification as JSON text; :meth:`from_json` reads it back."""
        fields = {KEY: FORMAT_VERSION} | _adapter().dump_python(self, mode="json")
        if not self.input_premetric.stays_in:
            del fields["input_premetric"]["stays_in"]  # version 0.1 does not know the field
        return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Specification:
        """Read a specification from JSON text, or say what is wrong with it."""
        try:
            fields = _bounded_reading.parse_json(text)
        except _bounded_reading.Unacceptable as problem:
            raise errors.not_a_specification(str(problem)) from None
        if not isinstance(fields, dict) or KEY not in fields:
            raise errors.not_a_specification(f"the field '{KEY}' with the format version is missing")
        return from_fields(fields)

    def blocks(self) -> list[tuple[str, str]]:
        """The five blocks in words, in order."""
        budget = f"{self.output_premetric.kind.budget} = {self.budget}"
        said = [str(getattr(self, block)) for block in BLOCKS[:-1]] + [budget]
        said[BLOCKS.index("input_premetric")] += f", {self.condition}" if self.condition else ""
        return list(zip((block.replace("_", " ") for block in BLOCKS), said, strict=True))

    def __str__(self) -> str:
        rows = [
            *([("name", self.name)] if self.name else []),
            *self.blocks(),
            ("nearest", self.nearest_words()),
            *([("covers", "; ".join(self.covers))] if self.covers else []),
            *(("mark", mark) for mark in self.marks),
            *(("finding", f"{finding.id}: {finding.words}") for finding in self.findings),
        ]
        return "\n".join(f"{name + ':':18}{words}" for name, words in rows)

    def nearest_words(self) -> str:
        """How far the nearest counterfactual is, and what the budget is there."""
        objects = self.domain.objects
        if self.nearest is None:
            return f"how far apart the nearest {objects} of a universe are is not known"
        if self.nearest == math.inf:
            return f"no universe holds two {objects}: there is no counterfactual, and nothing is protected"
        said = f"the nearest {objects} of a universe are {_plain(self.nearest)} apart"
        if self.budget.is_curve or self.nearest == 1:
            return said
        return f"{said}, where {self.output_premetric.kind.budget} is {bound(self.budget_at(self.nearest))}"

    def __repr__(self) -> str:
        """One line; ``print`` shows the blocks."""
        name = f" {self.name!r}" if self.name else ""
        return f"<Specification{name}: {self.output_premetric.kind.budget} = {self.budget.shown()}, {_scope(self)}>"

    def _repr_html_(self) -> str:
        """The five blocks as a table, then what goes with them."""
        rows: list[tuple[Sequence[str], bool]] = [(block, False) for block in self.blocks()]
        rows.append((("nearest", self.nearest_words()), False))
        rows += [(("mark", mark), True) for mark in self.marks]
        rows += [((f"finding {finding.id}", finding.words), True) for finding in self.findings]
        return html_table(("block", self.name or "specification"), rows)


@dataclass(frozen=True)
class Counterfactual:
    """Two datasets under a specification.

    ``inside`` says whether one universe holds both at a finite distance (None: it cannot be decided from the records);
    only then does the guarantee say anything, namely ``bound`` (None for a curve, which bounds neighbours as it is).
    """

    inside: bool | None
    distance: Fraction | float
    bound: Fraction | float | None


@dataclass(frozen=True)
class Step:
    """One step of an argument: the rule, where it comes from, and what it did here."""

    rule: str
    source: str
    words: str

    def __str__(self) -> str:
        return f"{self.words} [{self.source}]"


@brief
@dataclass(frozen=True)
class Answer:
    """Yes, no or unknown, with the argument."""

    verdict: str
    steps: tuple[Step, ...]

    @classmethod
    def by(cls, verdict: str, rule: str, source: str, words: str) -> Answer:
        """An answer whose argument has one step."""
        return cls(verdict, (Step(rule, source, words),))

    def __bool__(self) -> bool:
        """Only a yes is true: a guarantee that is not known to hold does not."""
        return self.verdict == "yes"

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"  {number}. {step}" for number, step in enumerate(self.steps, 1))])


def _plain(distance: Fraction | float) -> str:
    return f"{near(distance):g}"


def _scope(blocks: Flavor | Specification) -> str:
    """Unit, output premetric, domain and number of invariants, on one line."""
    held = len(blocks.multiverse.invariants)
    fixed = f"{held} invariant{'s' * (held != 1)}" if held else "nothing held fixed"
    return (
        f"unit '{blocks.input_premetric.unit}', standard '{blocks.output_premetric.name}', "
        f"domain '{blocks.domain.name}', {fixed}"
    )


def _check_flavor(blocks: Flavor | Specification) -> None:
    """Refuse blocks that do not belong together."""
    domain, multiverse = blocks.domain, blocks.multiverse
    premetric, output = blocks.input_premetric, blocks.output_premetric
    named = {name for universe in multiverse.universes for name in universe}
    named |= {name for a, b, _ in premetric.distances for name in (a, b)}
    if named - set(domain.datasets):
        raise errors.strange_datasets(sorted(named - set(domain.datasets)))
    neighbours_only = premetric.kind in ("relation", "table") or not premetric.sharpened
    if output.kind.neighbours_only and not neighbours_only:
        raise errors.bad_block(capital(output.kind.standard), "bounds neighbours and nothing further: use neighbours")
    if blocks.nearest is not None:
        object.__setattr__(blocks, "nearest", exact(blocks.nearest, "The nearest distance"))
    elif domain.free and not multiverse.invariants and not multiverse.universes and premetric.kind == "records":
        object.__setattr__(blocks, "nearest", premetric.scale)


PARTED = "; "
"""What stands between invariants in a fact that names some of them."""


@dataclass(frozen=True)
class Held:
    """What is held fixed, by what is known of it; neither class says twice what the other implies."""

    published: tuple[Invariant, ...]
    """Invariants of something that was, or would be, released: its readers know them as they are."""
    assumed: tuple[Invariant, ...]
    """What limits the comparison only: units that stay where they are, the number of records, what a survey takes as
    known, and the invariants of a guarantee of which no release is known."""


def held(specification: Specification) -> Held:
    """The two classes of what is held fixed.

    >>> from stirred.spec.loading import load
    >>> both = held(load("das-2020-overall"))
    >>> [str(one) for one in both.published][:1], [str(one) for one in both.assumed]
    (['the number of persons by state'], ['the number of persons by household'])
    """
    taken, nesting = taken_as_known(specification), specification.domain.nested
    released = bool(specification.covers or facts.MECHANISM in specification.fact)
    invariants = specification.multiverse.invariants
    published = tuple(one for one in invariants if released and one not in taken)
    rest = (*(one for one in invariants if one not in published), *specification.input_premetric.fixes())
    return Held(published, merged(missing(published, rest, nesting), nesting))


def taken_as_known(specification: Specification) -> tuple[Invariant, ...]:
    """The invariants of the multiverse that are stated to be taken as known only."""
    said, invariants = specification.fact.get(facts.HELD_NOT_RELEASED), specification.multiverse.invariants
    if isinstance(said, str):
        return tuple(one for one in invariants if str(one) in said.split(PARTED))
    return invariants if said else ()


def taken_fact(invariants: Iterable[Invariant], taken: Iterable[Invariant]) -> dict[str, Fact]:
    """The fact that some invariants of a multiverse are taken as known: none of them, all, or those named."""
    everything, some = tuple(invariants), set(taken)
    named = [str(one) for one in everything if one in some]
    if not named:
        return {}
    return {facts.HELD_NOT_RELEASED: True if len(named) == len(everything) else PARTED.join(named)}


KEY = "stirred_specification"
FORMAT_VERSION = 2
"""Version of the JSON format. Version 1 had words only and was never released."""

MOST_ENTRIES = 1_000
"""How many entries a list of a specification may have: invariants, findings, variables."""
MOST_LISTED = {"datasets": 200, "distances": 200 * 199, "variables": 100_000, "by": 100_000}
"""The same for the datasets of a finite domain, among which shortest paths are looked for, and their distances; and for
names of variables, of which a wide file has thousands."""
MOST_TEXT = 20_000
"""How many characters a text of a specification may have,"""
MOST_WORDS = 2_000_000
"""and how many a sentence or a fact, which may name all variables of a wide file."""

for _class in (Domain, Invariant, Multiverse, InputPremetric, OutputPremetric, Budget, Finding, Specification):
    _class.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[union-attr]


@cache
def _adapter() -> TypeAdapter[Specification]:
    return TypeAdapter(Specification)


def from_fields(fields: dict[str, Any]) -> Specification:
    """Read a specification from JSON that has been parsed."""
    version = fields.get(KEY)
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise errors.SpecificationError(
            "specification-version",
            f"The specification has format version {version!r}; this version of stirred reads format version "
            f"{FORMAT_VERSION}.",
            "Write it again with this version, or read it with the version that wrote it.",
        )
    _require_modest(fields, "")
    if (place := _bounded_reading.where_controls(fields)) is not None:
        raise errors.not_a_specification(f"'{place}' has line breaks or control characters")
    try:
        return _adapter().validate_python({name: value for name, value in fields.items() if name != KEY})
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise errors.not_a_specification(f"'{place}': {first['msg']}") from None


def _require_modest(value: Any, name: str) -> None:
    """Raise if a list or a text is longer than any that is meant: work on some grows with the square of their length.

    How deep ``value`` is nested was bounded when it was parsed.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            _require_modest(inner, str(key))
    elif isinstance(value, list | tuple):
        most = MOST_LISTED.get(name, MOST_ENTRIES)
        if len(value) > most:
            raise errors.not_a_specification(f"'{name}' has {len(value):,} entries, and at most {most:,} are read")
        for inner in value:
            _require_modest(inner, "")
    elif isinstance(value, str):
        most = MOST_WORDS if name in ("words", "conversion", "") else MOST_TEXT
        if len(value) > most:
            raise errors.not_a_specification(f"'{name}' has a text of more than {most:,} characters")


def schema() -> dict[str, Any]:
    """The JSON schema of this format, as published in ``docs/specification.schema.json``."""
    described = _adapter().json_schema(mode="serialization")
    properties = {KEY: {"const": FORMAT_VERSION, "description": "Version of this format."}} | described["properties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "A specification of a privacy guarantee",
        "description": described["description"].splitlines()[0],
        "properties": properties,
        "required": [KEY, *described["required"]],
    }
