"""Guarantees side by side: the five blocks as questions, what follows from each, and whether they can be ranked.

Consequences are read off one explanation for each guarantee, at the nearest two datasets of its own universes. They may
be set beside each other although the guarantees cannot be ranked: which changes are meant is a row of the table.

Keep in mind: a smaller number in a row of consequences is not a stronger guarantee. Only implication decides that, and
the verdict says so.
"""

from __future__ import annotations

import itertools
import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief, html_table
from stirred.loss import PowerCurve, TradeOff
from stirred.semantics.explained_numbers import LEVELS, Setting, setting
from stirred.semantics.pictures.readable import NotDrawn, readable_powers
from stirred.semantics.pictures.shapes import Picture
from stirred.semantics.sentences.formatting import WIDTH, guarantees_line
from stirred.semantics.sentences.summary import (
    TOGETHER,
    alone,
    in_classes,
    power_together,
    told_of_hundred,
    whose,
)
from stirred.spec.exact import significant
from stirred.spec.invariant import plural
from stirred.spec.order.block_by_block import (
    EQUAL,
    FIRST,
    NEITHER,
    SECOND,
    Comparison,
    PairVerdict,
    Row,
    compare,
    wrapped_line,
)
from stirred.spec.specification import Specification

FORMAT_VERSION = 2
"""Version of the JSON format of guarantees side by side. In version 1 the second question was what is given away."""

PRIOR, EXCEPT = 0.01, 0.05
"""The belief before a release that is asked about, and the probability of exceptions where a standard has them."""

NOT_KNOWN = "not known"
FOLLOWS = "What follows: of 100 such changes at most so many are noticed, and a belief rises at most so far."
HELD, WHOSE, HOW_MUCH = "What is held fixed?", "Whose record?", "How much?"
QUESTIONS = ("Which data?", HELD, WHOSE, "How strict?", HOW_MUCH)

Cells = tuple[str, ...]
"""A row of a table."""


@dataclass(frozen=True)
class Answers:
    """One question and the answer of each guarantee, in their order."""

    question: str
    answers: tuple[str, ...]
    alone: str = ""
    """Of two guarantees: which is stricter on this row, all other rows being equal."""


@brief
@dataclass(frozen=True)
class SideBySide:
    """What :func:`side_by_side` found. Prints as a table; ``_repr_html_`` for notebooks; ``to_json`` as data."""

    comparison: Comparison
    settings: tuple[Setting, ...]
    questions: tuple[Answers, ...]
    consequences: tuple[Answers, ...]
    rankings: tuple[str, ...]
    """For each pair whether the two can be ranked, with one reason."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the guarantees."""
        return self.comparison.names

    @property
    def verdicts(self) -> tuple[PairVerdict, ...]:
        """The verdict for each pair, with both arguments."""
        return self.comparison.verdicts

    @property
    def rows(self) -> tuple[Row, ...]:
        """The five blocks as the formal comparison has them."""
        return self.comparison.rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What to keep in mind about these guarantees."""
        return self.comparison.notes

    def picture(self) -> Picture | None:
        """The greatest power of a test at each level, a line for each guarantee; None where none can be shown."""
        found = self.drawn()
        return None if isinstance(found, NotDrawn) else found

    def drawn(self) -> Picture | NotDrawn:
        """The picture, or the sentence that says why there is none."""
        curves: dict[str, TradeOff | tuple[PowerCurve, PowerCurve]] = {}
        for name, given in zip(self.names, self.settings, strict=True):
            if given.own is not None:
                curves[f"{name}: the swap itself"] = given.own.worst
            elif given.exact is not None:
                curves[f"{name}: its own noise"] = given.exact.power_curve()
            elif given.readable is not None:
                curves[f"{name}: any method"] = given.readable
        said = "Each line is about its own guarantee and the change that it names; lines do not rank unlike guarantees."
        if not curves:
            return NotDrawn("level-and-power", "No picture: a bound on tests is known of none of these guarantees.")
        line = guarantees_line(self.names, [given.specification for given in self.settings])
        worlds = "the data, and the nearest data that differ"
        return readable_powers(curves, worlds=worlds, caption=said, guarantee=line)

    def tables(self, names: Sequence[str] = ()) -> tuple[list[Cells], list[Cells]]:
        """The questions, and what follows, each as rows of texts, the first one the heading; ``names`` are those of the
        guarantees, if they are called otherwise."""
        two, head = len(self.names) == 2, ("", *(names or self.names))
        asked = [(one.question, *one.answers, *([one.alone] if two else [])) for one in self.questions]
        follows = [(one.question, *one.answers) for one in self.consequences]
        return [(*head, *(["on this row alone"] if two else [])), *asked], [head, *follows]

    def __str__(self) -> str:
        asked, follows = self.tables()
        parts = [_table(asked), f"{FOLLOWS}\n\n{_table(follows)}"]
        parts += [textwrap.fill(f"Can these be ranked? {one}", WIDTH) for one in self.rankings]
        parts += [textwrap.fill(one, WIDTH) for one in self.comparison.notes]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        asked, follows = (html_table(head, [(row, False) for row in rows]) for head, *rows in self.tables())
        said = "".join(f"<p><b>Can these be ranked?</b> {escape(one)}</p>" for one in self.rankings)
        notes = "".join(f"<p>{escape(one)}</p>" for one in self.comparison.notes)
        return f"{said}{asked}<p>{escape(FOLLOWS)}</p>{follows}{notes}"

    def to_fields(self) -> dict[str, Any]:
        """All of it as a dictionary that JSON can hold; the formal comparison has its own fields."""
        rows = {"questions": self.questions, "consequences": self.consequences}
        told = {
            name: [{"question": one.question, "answers": list(one.answers), "alone": one.alone} for one in listed]
            for name, listed in rows.items()
        }
        classes = [in_classes(given) for given in self.settings]
        formal = json.loads(self.comparison.to_json()) | {"stirred_comparison": FORMAT_VERSION}
        return {**formal, **told, "classes": classes, "rankings": list(self.rankings)}

    def to_json(self) -> str:
        """The comparison as JSON text."""
        return json.dumps(self.to_fields(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@refuses_wrong_arguments
def side_by_side(*specifications: Specification, levels: Iterable[float] = LEVELS, prior: float = PRIOR) -> SideBySide:
    """Put guarantees side by side with what follows from them.

    >>> from stirred.spec import flavors
    >>> found = side_by_side(flavors.pure("person").at(1), flavors.pure("person").at(2))
    >>> print(found.rankings[0])
    Yes: specification 1 promises more than specification 2.
    """
    if not 0 < prior < 1:
        raise errors.parameter_out_of_range("prior", prior, "above 0 and below 1")
    comparison = compare(*specifications)
    settings = tuple(setting(one, levels=tuple(levels)) for one in specifications)
    questions = tuple(_questions(comparison, settings))
    pairs = zip(comparison.verdicts, itertools.combinations(specifications, 2), strict=True)
    rankings = tuple(_ranking(verdict) + _covered(verdict, *pair) for verdict, pair in pairs)
    return SideBySide(comparison, settings, questions, tuple(_consequences(settings, prior)), rankings)


# -- the five blocks as questions ----------------------------------------------------------------------------


def _questions(comparison: Comparison, settings: Sequence[Setting]) -> Iterator[Answers]:
    for question, row, told in zip(QUESTIONS, comparison.rows, (_data, _given, _whose, _strict, _much), strict=True):
        answers = tuple(told(one) for one in settings)
        yield Answers(question, answers, _on_this_row(question, row, answers, comparison.names, settings))


def five_questions(given: Setting) -> list[tuple[str, str]]:
    """The five blocks of one guarantee as questions with their answers."""
    answers = (told(given) for told in (_data, _given, _whose, _strict, _much))
    return list(zip(QUESTIONS, answers, strict=True))


def _on_this_row(
    question: str, row: Row, answers: Sequence[str], names: Sequence[str], settings: Sequence[Setting]
) -> str:
    """Which of two guarantees is stricter on a row; nothing where there are more than two."""
    if len(settings) != 2:
        return ""
    first, second = (one.specification.output_premetric for one in settings)
    if question == HOW_MUCH and first != second:
        return "not on one scale"
    verdict = row.verdicts[0]
    if question == WHOSE and verdict == EQUAL and answers[0] != answers[1]:
        return "same distance, other changes"
    stricter = {FIRST: names[0], SECOND: names[1]}.get(verdict)
    if stricter:
        return f"{stricter} is stricter"
    return {EQUAL: "equal", NEITHER: "neither is stricter"}.get(verdict, NOT_KNOWN)


def _data(given: Setting) -> str:
    domain = given.specification.domain
    return f"{domain.name}, from {domain.starts}" if domain.starts else domain.name


def _given(given: Setting) -> str:
    told = in_classes(given)
    published, assumed = ("; ".join(told[name]) for name in ("published", "assumed"))
    said = [f"published exactly: {published}"] if published else []
    said += [f"{'A' if said else 'a'}ssumed known, or held fixed in the comparison: {assumed}"] if assumed else []
    return ". ".join(said) or "nothing"


def _whose(given: Setting) -> str:
    return f"{whose(given)}{given.change.words}"


def _strict(given: Setting) -> str:
    kind = given.specification.output_premetric.kind
    return f"{kind.promise} ({kind.standard})" if kind.promise else kind.standard


def _much(given: Setting) -> str:
    return f"{given.specification.output_premetric.kind.budget} = {given.specification.budget.shown()}"


# -- what follows --------------------------------------------------------------------------------------------


def _consequences(settings: Sequence[Setting], prior: float) -> Iterator[Answers]:
    for level in settings[0].levels:
        alarms = _alarms(level)
        in_use = tuple(_in_use(one, level) for one in settings)
        if set(in_use) != {NOT_KNOWN}:
            yield Answers(f"method in use, {alarms}", in_use)
        yield Answers(f"any method, {alarms}", tuple(_allowed(one, level) for one in settings))
    units = "units" if len({_unit(one) for one in settings}) > 1 else _unit(settings[0])
    for count in TOGETHER:
        question = f"{count} {units} together, {_alarms(settings[0].level)}"
        yield Answers(question, tuple(_together(one, count) for one in settings))
    yield Answers(
        f"any method, belief from {_percent(prior)}% before",
        tuple(_belief(one, prior) for one in settings),
    )


def _alarms(level: float) -> str:
    return f"{100 * level:.12g} false alarm{'' if level == 0.01 else 's'} in 100"


def _unit(given: Setting) -> str:
    return plural(given.specification.input_premetric.unit)


def _in_use(given: Setting, level: float) -> str:
    if given.own is not None:
        return told_of_hundred(float(given.own.worst.power(level))).shown
    if given.exact is not None:
        return told_of_hundred(given.exact.power(level).upper).shown
    return f"{told_of_hundred(float(given.gaussian.power(level))).shown} if Gaussian" if given.gaussian else NOT_KNOWN


def _allowed(given: Setting, level: float) -> str:
    return NOT_KNOWN if given.curve is None else told_of_hundred(float(given.curve.power(level))).shown


def _together(given: Setting, count: int) -> str:
    if given.curve is None or given.specification.input_premetric.kind != "records":
        return NOT_KNOWN
    power = power_together(given, count)
    return told_of_hundred(alone(given) if power is None else power).shown


def _belief(given: Setting, prior: float) -> str:
    """The largest belief after the release, from the odds that the guarantee allows."""
    if given.readable is None:
        return NOT_KNOWN
    pure = given.specification.output_premetric.kind.pure
    epsilon = (
        float(given.specification.budget_at(given.change.distance)) if pure else given.bounded(given.readable, EXCEPT)
    )
    after = 1.0 if epsilon > 700 else 1 / (1 + (1 - prior) / prior * math.exp(-epsilon))
    shown = "nearly certainty" if after > 0.99 else f"{_percent(after)}%"
    return shown if pure else f"{shown}, but for {_percent(EXCEPT)} outcomes in 100"


def _percent(value: float) -> str:
    """A probability in percent, rounded up to two digits."""
    return significant(100 * value * (1 - 1e-12), 2)


# -- ranking -------------------------------------------------------------------------------------------------


def _ranking(verdict: PairVerdict) -> str:
    first, second = verdict.first, verdict.second
    if verdict.stronger == EQUAL:
        return f"Yes: {first} and {second} promise the same."
    if verdict.stronger in (FIRST, SECOND):
        more, less = (first, second) if verdict.stronger == FIRST else (second, first)
        return f"Yes: {more} promises more than {less}."
    if verdict.stronger == NEITHER:
        why = verdict.forth.steps[-1].words.replace("the first", first).replace("the second", second)
        return f"No: {first} and {second} each promise something that the other does not. For one, {why}."
    unknown = verdict.forth if verdict.forth.verdict != "no" else verdict.back
    here, there = (first, second) if unknown is verdict.forth else (second, first)
    why = unknown.steps[-1].words.replace("the first", here).replace("the second", there)
    return f"Not known for {first} and {second}: {why}."


def _covered(verdict: PairVerdict, first: Specification, second: Specification) -> str:
    """What two that are ranked are about, if they state it otherwise: a promise about less is not a stronger one."""
    ranked = verdict.stronger in (EQUAL, FIRST, SECOND)
    if not ranked or not (first.covers and second.covers) or first.covers == second.covers:
        return ""
    named = ((verdict.first, first), (verdict.second, second))
    said = "; ".join(f"{name} covers {', '.join(one.covers)}" for name, one in named)
    return f" They are not about the same releases: {said}."


# -- text ----------------------------------------------------------------------------------------------------


def _table(table: Sequence[Cells]) -> str:
    """A table of wrapped columns; an empty line parts rows of several lines."""
    head, *rows = table
    first = max(22, *(len(row[0]) + 2 for row in rows))
    width = max(16, (WIDTH - first) // (len(head) - 1) - 2)
    lines = [wrapped_line(head, first, width), "-" * min(WIDTH, first + (width + 2) * (len(head) - 1))]
    for row in rows:
        line = wrapped_line(row, first, width)
        if "\n" in line and len(lines) > 2 and lines[-1]:
            lines.append("")
        lines += [line, ""] if "\n" in line else [line]
    return "\n".join(lines).rstrip()
