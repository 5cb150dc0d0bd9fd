"""What people want of a release or a guarantee, as they type it.

A target, such as ``error of race at tract <= 5`` or ``power at 5% <= 20%``, is one line of plain words with exact
numbers; ``stirred calibrate`` finds parameters that keep it. Reading one needs no plan: which names there are is looked
up by the mechanism that the plan is for.

The invariant a reader must know: every target is an upper limit, and numbers in it are fractions (``5%`` is 1/20).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction

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
