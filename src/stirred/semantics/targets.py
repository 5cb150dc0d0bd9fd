"""Targets that people type, such as a largest error or power, and the parameters that a calibration found for them.

A target, such as ``error of race at tract <= 5`` or ``power at 5% <= 20%``, is one line of plain words with exact
numbers; ``stirred calibrate`` finds parameters that keep it. Reading one needs no plan: which names there are is looked
up by the mechanism that the plan is for.
Every mechanism answers with a :class:`Calibration`: parameters that keep targets, what each target costs, and what else
changes; ``print`` shows it with the consequence first.

Keep in mind: every target is an upper limit, and numbers in it are fractions (``5%`` is 1/20). An answer is only given
where the targets were looked at again with the parameters as they are written, after rounding.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.semantics.sentences.formatting import WIDTH, columns
from stirred.spec.exact import significant, without_infinities

FORM = 1
"""The format version of the JSON of a calibration."""

_BOUNDS = ("epsilon", "rho", "power", "the same at", "belief")
"""How the names of upper bounds begin."""
_MOST_NAMED = 5
"""Errors that a warning names."""

CONFIDENTIAL = "CONFIDENTIAL: computed from the data. Do not publish it."

EXCEPTION = Fraction(1, 100)
"""With this probability a belief may exceed its limit, where a target says nothing else and noise has no bound."""
DELTA = Fraction(1, 10**10)
"""The delta of an epsilon that follows from rho, where a target says nothing else."""

_WORDS = re.compile(r"'[^']*'|\"[^\"]*\"|<=|≤|<|[^\s<≤'\"]+")
_FORMS = (
    "write 'error of QUERY at LEVEL <= NUMBER', 'relative error of QUERY at LEVEL <= 1% for 10000', "
    "'power at 5% <= 20%', 'belief from 1% <= 5%', 'epsilon <= 2' or 'rho <= 1'"
)


@dataclass(frozen=True)
class ErrorTarget:
    """The error of a table stays below a limit: a standard error, or with ``size`` that part of it."""

    text: str
    by: tuple[str, ...]
    limit: Fraction
    level: str | None = None
    table: str | None = None
    size: Fraction | None = None
    typical: bool = False
    """Whether the root mean square over the units of the level counts, not every unit."""
    weight: Fraction = Fraction(1)

    @property
    def standard_error(self) -> Fraction:
        """The limit as a number of records."""
        return self.limit if self.size is None else self.limit * self.size


@dataclass(frozen=True)
class PowerTarget:
    """No test with the false-alarm probability ``false_alarm`` has more than the power ``most``."""

    text: str
    false_alarm: Fraction
    most: Fraction


@dataclass(frozen=True)
class BeliefTarget:
    """A belief of ``prior`` becomes at most ``most``, but for outputs of probability ``exception``."""

    text: str
    prior: Fraction
    most: Fraction
    exception: Fraction = EXCEPTION


@dataclass(frozen=True)
class EpsilonTarget:
    """Epsilon is at most ``most``; where it follows from rho, at this delta."""

    text: str
    most: Fraction
    delta: Fraction | None = None


@dataclass(frozen=True)
class RhoTarget:
    """rho is at most ``most``."""

    text: str
    most: Fraction


GuaranteeTarget = PowerTarget | BeliefTarget | EpsilonTarget | RhoTarget
Target = ErrorTarget | GuaranteeTarget


def read_targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Several targets; at least one, and none twice."""
    given = [texts] if isinstance(texts, str) else list(texts)
    if not given:
        raise errors.no_targets()
    found = tuple(read_target(text) for text in given)
    for number, one in enumerate(found):
        if replace(one, text="") in [replace(other, text="") for other in found[:number]]:
            raise errors.bad_target(one.text, "it is given twice")
    return found


def read_target(text: str) -> Target:
    """A target from its words.

    >>> read_target("error of race at tract <= 5").standard_error
    Fraction(5, 1)
    >>> read_target("typical relative error of 'race * sex' at block group in persons below 1% for 500 weight 2")
    ErrorTarget(text=..., by=('race', 'sex'), limit=Fraction(1, 100), level='block group', table='persons', ...)
    >>> read_target("power at 5% <= 0.2")
    PowerTarget(text='power at 5% <= 0.2', false_alarm=Fraction(1, 20), most=Fraction(1, 5))
    >>> read_target("belief from 1% <= 5% except 1/1000").exception
    Fraction(1, 1000)
    """
    if not isinstance(text, str):
        raise errors.wrong_argument("A target", text, "a text such as 'power at 5% <= 20%'")
    words = _WORDS.findall(text)
    if "".join(words) != re.sub(r"\s+", "", text) and "".join(words).replace(" ", "") != re.sub(r"\s+", "", text):
        raise errors.bad_target(text, "a quotation mark is not closed")
    place, width = _comparison(text, words)
    left, right = words[:place], words[place + width :]
    first = left[0].lower() if left else ""
    more = _after(text, right)
    if not left or not right:
        raise errors.bad_target(text, _FORMS)
    limit = _number(text, right[0])
    if first in ("power", "belief"):
        between = "at" if first == "power" else "from"
        if len(left) != 3 or left[1].lower() != between:
            raise errors.bad_target(text, f"write '{first} {between} 5% <= 20%'")
        return _guarantee(text, first, _number(text, left[2]), limit, more)
    if first == "epsilon":
        delta = (
            _number(text, left[3]) if [one.lower() for one in left[1:3]] == ["at", "delta"] and len(left) == 4 else None
        )
        if len(left) > 1 and delta is None:
            raise errors.bad_target(text, "write 'epsilon <= 2' or 'epsilon <= 2 at delta 1e-10'")
        _only(text, more, "delta")
        delta = more.get("delta", delta)
        if limit <= 0 or (delta is not None and not 0 < delta < 1):
            raise errors.bad_target(text, "epsilon must be above 0, and delta between 0 and 1")
        return EpsilonTarget(text, limit, delta)
    if first == "rho":
        if len(left) > 1:
            raise errors.bad_target(text, "write 'rho <= 1'")
        _only(text, more)
        if limit <= 0:
            raise errors.bad_target(text, "rho must be above 0")
        return RhoTarget(text, limit)
    return _error(text, left, limit, more)


def _comparison(text: str, words: list[str]) -> tuple[int, int]:
    """Where "at most" or its like stands, and how many words it has."""
    for place, word in enumerate(words):
        if word in ("<=", "<", "≤") or word.lower() in ("below", "under"):
            return place, 1
        if word.lower() == "at" and place + 1 < len(words) and words[place + 1].lower() == "most":
            return place, 2
    raise errors.bad_target(text, f"it has no limit ('<='); {_FORMS}")


def _after(text: str, right: list[str]) -> dict[str, Fraction]:
    """What is said after the limit: for, except, at delta, weight, each with a number."""
    found: dict[str, Fraction] = {}
    rest = list(right[1:])
    while rest:
        name = rest.pop(0).lower()
        if name == "at" and rest and rest[0].lower() == "delta":
            name = rest.pop(0).lower()
        if name not in ("for", "except", "delta", "weight") or not rest or name in found:
            raise errors.bad_target(text, f"{name!r} is not understood after the limit; {_FORMS}")
        found[name] = _number(text, rest.pop(0))
    return found


def _only(text: str, more: dict[str, Fraction], *allowed: str) -> None:
    for name in more:
        if name not in allowed:
            raise errors.bad_target(text, f"{name!r} does not belong to this target")


def _guarantee(text: str, kind: str, given: Fraction, limit: Fraction, more: dict[str, Fraction]) -> Target:
    _only(text, more, *(("except",) if kind == "belief" else ()))
    if not 0 < given < limit < 1:
        what = (
            "a blind guess has the power of its false alarms" if kind == "power" else "a belief is at least its prior"
        )
        raise errors.bad_target(text, f"{what}, so the limit must be above {_said(given)} and below 100%")
    if kind == "power":
        return PowerTarget(text, given, limit)
    exception = more.get("except", EXCEPTION)
    if not 0 <= exception < 1:
        raise errors.bad_target(text, "the exception must be a probability below 1")
    return BeliefTarget(text, given, limit, exception)


def _error(text: str, left: list[str], limit: Fraction, more: dict[str, Fraction]) -> ErrorTarget:
    words, typical, relative = list(left), False, False
    while words and words[0].lower() in ("typical", "relative"):
        typical, relative = typical or words[0].lower() == "typical", relative or words[0].lower() == "relative"
        words.pop(0)
    if [one.lower() for one in words[:2]] != ["error", "of"]:
        raise errors.bad_target(text, _FORMS)
    parts: dict[str, list[str]] = {"of": []}
    here = "of"
    for word in words[2:]:
        if word.lower() in ("at", "in") and word.lower() not in parts:
            here = word.lower()
            parts[here] = []
        else:
            parts[here].append(word)
    if any(not found for found in parts.values()):
        raise errors.bad_target(text, _FORMS)
    _only(text, more, "for", "weight")
    if relative != ("for" in more):
        raise errors.bad_target(
            text, "a relative error is one of a stated size: write 'relative error ... <= 1% for 500'"
        )
    if limit <= 0 or more.get("for", 1) <= 0 or more.get("weight", 1) <= 0:
        raise errors.bad_target(text, "limits, sizes and weights must be above 0")
    names = [name.strip() for name in re.split(r"[*,]", " ".join(_bare(one) for one in parts["of"]))]
    if any(not name for name in names):
        raise errors.bad_target(text, "a name between two commas or signs '*' is missing")
    by = () if names == ["total"] else tuple(names)
    return ErrorTarget(
        text,
        by,
        limit,
        _name(parts.get("at")),
        _name(parts.get("in")),
        more.get("for"),
        typical,
        more.get("weight", Fraction(1)),
    )


def _name(words: list[str] | None) -> str | None:
    return None if words is None else " ".join(_bare(word) for word in words)


def _bare(word: str) -> str:
    return word[1:-1] if word[:1] in "'\"" else word


def _number(text: str, word: str) -> Fraction:
    percent = word.endswith("%")
    try:
        found = as_fraction(word[:-1] if percent else word)
    except NOT_A_NUMBER:
        raise errors.bad_target(text, f"{word!r} is not a number") from None
    return found / 100 if percent else found


def _said(value: Fraction) -> str:
    return f"{float(value):.4g}"


# -- what a calibration found -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TargetAnswer:
    """One target: whether it is met, its value before and after, its limit and what it costs."""

    target: str
    met: bool
    before: float | None
    """The value with the plan's own parameters; None where there is none, infinite where nothing limits it."""
    after: float | None
    limit: float
    costs: Mapping[str, float | None] = field(default_factory=dict)
    """What the target costs, by name."""


@dataclass(frozen=True)
class BeforeAfter:
    """A number before and after, as it is shown and as it is."""

    what: str
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Parameters that keep targets. ``print`` shows it as a page of text; ``plan`` is the plan with them."""

    of: str
    """What was calibrated: a mechanism, or the name of a number."""
    answer: tuple[str, ...]
    """The consequence, in sentences."""
    targets: tuple[TargetAnswer, ...]
    changes: tuple[BeforeAfter, ...] = ()
    """What else changes."""
    paste: str = ""
    """Lines for the plan."""
    notes: tuple[str, ...] = ()
    plan: Any = None
    confidential: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The mechanism's own numbers, for JSON."""

    def __repr__(self) -> str:
        met = sum(one.met for one in self.targets)
        said = ", confidential" if self.confidential else ""
        return f"<Calibration of {self.of}{said}: {met} of {len(self.targets)} targets met; print it to read it all>"

    def __str__(self) -> str:
        parts = [CONFIDENTIAL] if self.confidential else []
        parts.append("\n".join(_fill(one) for one in self.answer))
        parts.append("Targets\n" + columns(self._target_rows(), numbers_right=True))
        if self.changes:
            rows = [("what else changes", "before", "after")]
            for one in self.changes:
                rows.append((one.what, _as_what(one.what, one.before), _as_what(one.what, one.after)))
            parts.append(columns(rows, numbers_right=True))
        if self.paste:
            parts.append("For the plan:\n\n" + self.paste.rstrip())
        parts.extend(_fill(one) for one in self.notes)
        return "\n\n".join(parts) + "\n"

    def _target_rows(self) -> list[Sequence[str]]:
        names = list(dict.fromkeys(name for one in self.targets for name in one.costs))
        rows: list[Sequence[str]] = [("target", "limit", "before", "after", "", *names)]
        for one in self.targets:
            costs = [shown(one.costs.get(name)) for name in names]
            met = "met" if one.met else "NOT MET"
            values = (_as_what(one.target, value) for value in (one.before, one.after))
            rows.append((one.target, shown(one.limit), *values, met, *costs))
        return rows

    def to_json(self) -> str:
        """The calibration as JSON; infinity is written as the text "infinity"."""
        fields = {
            "stirred_calibration": FORM,
            "confidential": self.confidential,
            "of": self.of,
            "answer": list(self.answer),
            "all_met": all(one.met for one in self.targets),
            "targets": [
                {
                    "target": one.target,
                    "met": one.met,
                    "limit": one.limit,
                    "before": one.before,
                    "after": one.after,
                    "costs": dict(one.costs),
                }
                for one in self.targets
            ],
            "changes": [{"what": one.what, "before": one.before, "after": one.after} for one in self.changes],
            **self.fields,
            "notes": list(self.notes),
        }
        return json.dumps(without_infinities(fields), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def worse(errors: Sequence[BeforeAfter]) -> tuple[str, ...]:
    """A warning that names the errors that grow by more than a factor of two; none where there are none.

    >>> worse([BeforeAfter("error of age", 2.0, 9.0), BeforeAfter("error of sex", 2.0, 4.0)])
    ('WARNING: more than twice as large as before: error of age (2 before, 9 after).',)
    """
    grown = [one for one in errors if one.before and one.after is not None and one.after > 2 * one.before]
    if not grown:
        return ()
    grown.sort(key=lambda one: one.after / one.before if one.after and one.before else 0, reverse=True)
    named = [f"{one.what} ({shown(one.before)} before, {shown(one.after)} after)" for one in grown[:_MOST_NAMED]]
    more = f"; and {len(grown) - _MOST_NAMED:,} more" if len(grown) > _MOST_NAMED else ""
    return (f"WARNING: more than twice as large as before: {'; '.join(named)}{more}.",)


def shown(value: float | None) -> str:
    """A number with four digits that count.

    >>> shown(0.123456), shown(12345.6), shown(None), shown(float("inf")), shown(0.0)
    ('0.1235', '12,346', '-', 'unknown', '0')
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _as_what(what: str, value: float | None) -> str:
    """A number as it is shown beside its name: bounds of a guarantee are rounded up, as everywhere.

    >>> _as_what("epsilon", 10.7141), _as_what("error of age", 10.7141), _as_what("epsilon", 0.1 + 0.2)
    ('10.72', '10.71', '0.3')
    """
    if value is None or not 0 < value < 10_000 or not what.startswith(_BOUNDS):
        return shown(value)
    return significant(value * (1 - 1e-12), 4)


def _fill(text: str) -> str:
    return textwrap.fill(text, WIDTH)
