"""Two or more specifications side by side, block by block, and which of them is stronger (section 3.5.2).

Blocks are judged one at a time, the others being equal; the whole only by implication. Budgets are numbers of a flavor:
where the flavors differ they are shown and not ranked.
"""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief, html_table
from stirred.loss import PowerCurve, pure_power
from stirred.spec.exact import cases_in_100
from stirred.spec.invariant import missing
from stirred.spec.order.conversions import Stop, bring
from stirred.spec.order.implication import convertible
from stirred.spec.order.swap_trade_off import as_trade_off
from stirred.spec.specification import BLOCKS, Answer, Specification

EQUAL, FIRST, SECOND, NEITHER, UNKNOWN = "equal", "first stronger", "second stronger", "incomparable", "not known"
_WIDTH = 110


@brief
@dataclass(frozen=True)
class Row:
    """One block of every specification, and how these blocks compare."""

    block: str
    words: tuple[str, ...]
    differs: bool
    verdicts: tuple[str, ...]
    """For each pair in the order (1, 2), (1, 3), ..., (2, 3), ..."""


@brief
@dataclass(frozen=True)
class PairVerdict:
    """Which of two specifications is stronger, all five blocks together."""

    first: str
    second: str
    stronger: str
    words: str
    forth: Answer = field(repr=False)
    back: Answer = field(repr=False)


@brief
@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found. Prints as a table; ``_repr_html_`` for notebooks; ``to_json`` as data."""

    names: tuple[str, ...]
    rows: tuple[Row, ...]
    verdicts: tuple[PairVerdict, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([_text_table(self), *(_said(verdict) for verdict in self.verdicts), *map(_filled, self.notes)])

    def to_json(self) -> str:
        """The comparison as JSON text."""
        return json.dumps({"stirred_comparison": 1, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    def _repr_html_(self) -> str:
        pairs = [f"{a} / {b}" for a, b in itertools.combinations(self.names, 2)]
        rows = [((row.block, *row.words, *row.verdicts), row.differs) for row in self.rows]
        verdicts: list[tuple[Sequence[str], bool]] = [
            ((f"{v.first} and {v.second}", v.words), v.stronger == NEITHER) for v in self.verdicts
        ]
        notes: list[tuple[Sequence[str], bool]] = [(("note", note), False) for note in self.notes]
        return html_table(("block", *self.names, *pairs), rows) + html_table(("together", ""), [*verdicts, *notes])


@refuses_wrong_arguments
def compare(*specifications: Specification) -> Comparison:
    """Put specifications side by side.

    >>> from stirred.spec import flavors
    >>> found = compare(flavors.pure("person").at(1), flavors.pure("person").at(2))
    >>> found.verdicts[0].stronger
    'first stronger'
    """
    if len(specifications) < 2:
        raise errors.no_rule("a comparison of one", "there is nothing to compare it with", "Name two specifications.")
    names = _names(specifications)
    pairs = list(itertools.combinations(range(len(specifications)), 2))
    rows = []
    for number, block in enumerate(BLOCKS):
        words = tuple(one.blocks()[number][1] for one in specifications)
        verdicts = tuple(_judged(block, specifications[i], specifications[j]) for i, j in pairs)
        rows.append(Row(block.replace("_", " "), words, any(v != EQUAL for v in verdicts), verdicts))
    together = tuple(_together(names[i], names[j], specifications[i], specifications[j]) for i, j in pairs)
    return Comparison(names, tuple(rows), together, tuple(_notes(specifications)))


def _names(specifications: Sequence[Specification]) -> tuple[str, ...]:
    given = [one.name or f"specification {number}" for number, one in enumerate(specifications, 1)]
    return tuple(name if given.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(given, 1))


def _judged(block: str, a: Specification, b: Specification) -> str:
    """One block of two specifications, the others being equal."""
    if block == "domain":
        return _ranked(a.domain.is_part_of(b.domain), b.domain.is_part_of(a.domain), UNKNOWN)
    if block == "multiverse":
        if a.multiverse.universes or b.multiverse.universes:
            return EQUAL if a.multiverse == b.multiverse else UNKNOWN
        nesting = {*a.domain.nested, *b.domain.nested}
        fewer = not missing(b.multiverse.invariants, a.multiverse.invariants, nesting)
        return _ranked(fewer, not missing(a.multiverse.invariants, b.multiverse.invariants, nesting), NEITHER)
    if block == "input_premetric":
        return _ranked(_free(a, b), _free(b, a), UNKNOWN)
    if block == "output_premetric":
        return _ranked(convertible(a, b), convertible(b, a), UNKNOWN)
    if a.flavor != b.flavor or a.budget.is_curve or b.budget.is_curve:
        return EQUAL if a.budget.value == b.budget.value and a.flavor == b.flavor else NEITHER
    return _ranked(a.budget.number <= b.budget.number, b.budget.number <= a.budget.number, NEITHER)


def _free(a: Specification, b: Specification) -> bool:
    """Whether the change from one input premetric to the other costs nothing."""
    try:
        return bool(bring(a, b.input_premetric, b.flavor.invariants()).specification.budget.value == a.budget.value)
    except Stop:
        return False


def _ranked(forth: bool, back: bool, neither: str) -> str:
    if forth and back:
        return EQUAL
    return FIRST if forth else SECOND if back else neither


def _together(first: str, second: str, a: Specification, b: Specification) -> PairVerdict:
    a, b = replace(a, marks=()), replace(b, marks=())
    forth, back = a.implies(b), b.implies(a)
    stronger = _ranked(bool(forth), bool(back), NEITHER if forth.verdict == back.verdict == "no" else UNKNOWN)
    # The last step of each argument; an argument calls where it starts the first.
    last = (
        f"With {first} as the first and {second} as the second, {forth.steps[-1].words}. "
        f"With {second} as the first and {first} as the second, {back.steps[-1].words}."
    )
    words = {
        EQUAL: "the two promise the same",
        FIRST: f"{first} is the stronger: it implies {second}",
        SECOND: f"{second} is the stronger: it implies {first}",
        NEITHER: f"incomparable: neither implies the other. {last}",
        UNKNOWN: f"not known to be ordered. {last}",
    }
    return PairVerdict(first, second, stronger, words[stronger], forth, back)


def _notes(specifications: Sequence[Specification]) -> list[str]:
    notes = []
    if len({one.flavor for one in specifications}) > 1:
        said = "The flavors differ, so the budgets are not on one scale: a smaller number is not a better protection."
        if len({one.multiverse.invariants for one in specifications}) > 1:
            said += " In particular more invariants make for a smaller number and protect less."
        notes.append(said)
    for name, one in zip(_names(specifications), specifications, strict=True):
        if one.nearest not in (None, 1) and not one.budget.is_curve:
            notes.append(f"{name}: {one.nearest_words()}.")
        exchanged = as_trade_off(one)
        if exchanged is not None and isinstance(exchanged.budget.value, PowerCurve):
            most = cases_in_100(float(exchanged.budget.value.power(0.05)))
            allowed = cases_in_100(float(pure_power(2 * float(one.budget.number)).power(0.05)))
            notes.append(
                f"{name}: by its own trade-off function at most {most} of 100 exchanged pairs would be "
                "noticed, at 5 false alarms in 100, whichever sizes strata have up to the largest; epsilon alone "
                f"allows {allowed}."
            )
    return notes


def _text_table(found: Comparison) -> str:
    """A table of wrapped columns; a block that differs is starred."""
    titles = ("", *found.names, *([] if len(found.names) > 2 else ["verdict"]))
    first = 20
    width = max(16, (_WIDTH - first) // (len(titles) - 1) - 2)
    lines = [wrapped_line(titles, first, width), "-" * min(_WIDTH, first + (width + 2) * (len(titles) - 1))]
    for row in found.rows:
        mark = "* " if row.differs else "  "
        cells = (mark + row.block, *row.words, *([] if len(found.names) > 2 else row.verdicts))
        lines += [wrapped_line(cells, first, width), ""]
    return "\n".join([*lines, "* differs", ""])


def wrapped_line(cells: Sequence[str], first: int, width: int) -> str:
    """A row of a text table, each cell wrapped in its column; the first column has a width of its own."""
    wrapped = [textwrap.wrap(cell, first - 2 if i == 0 else width) or [""] for i, cell in enumerate(cells)]
    rows = itertools.zip_longest(*wrapped, fillvalue="")
    return "\n".join(
        "".join(text.ljust(first if i == 0 else width + 2) for i, text in enumerate(row)).rstrip() for row in rows
    )


def _said(verdict: PairVerdict) -> str:
    return _filled(f"{verdict.first} and {verdict.second}: {verdict.words}") + "\n"


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH)
