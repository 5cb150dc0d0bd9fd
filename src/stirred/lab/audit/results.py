"""What an audit found: one :class:`Result` for each question that was asked, and an :class:`Audit` of all of them.

The false-alarm rate of an audit is the probability that it finds something wrong with a program that keeps its promise.
It is divided among the questions, so that asking more of them does not raise it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stirred import errors
from stirred._progress import Progress

FALSE_ALARM = 1e-6
"""Of a whole audit, unless another one is asked for."""
_LISTED = ("name", "asked", "said", "wrong", "could_be_asked", "p_value", "allotted", "numbers")
"""What JSON has of a result."""


@dataclass(frozen=True)
class Result:
    """One question, and what the runs say to it.

    ``name`` is short and stable (``selected-by-stratum``); ``asked`` is the question in plain words; ``said`` one
    sentence that begins with the consequence. ``p_value`` is None where something is plainly seen, such as a missing
    row: no chance is involved. ``allotted`` is this question's part of the audit's false-alarm rate. A question
    ``could_be_asked`` unless there was too little to look at; then ``said`` tells why, and it is not wrong.
    """

    name: str
    asked: str
    said: str
    wrong: bool
    p_value: float | None = None
    allotted: float = 0.0
    numbers: Mapping[str, Any] = field(default_factory=dict)
    could_be_asked: bool = True

    @classmethod
    def tested(
        cls, name: str, asked: str, p_value: float, allotted: float, *, right: str, wrong: str, **numbers: Any
    ) -> Result:
        """The result of a test: wrong if its p-value is below what was allotted to it."""
        failed = p_value < allotted
        return cls(name, asked, wrong if failed else right, failed, p_value, allotted, numbers)

    @classmethod
    def seen(cls, name: str, asked: str, found: bool, *, right: str, wrong: str, **numbers: Any) -> Result:
        """The result of something that is plainly seen or not; ``found`` says that it is wrong."""
        return cls(name, asked, wrong if found else right, found, None, 0.0, numbers)

    @classmethod
    def unasked(cls, name: str, asked: str, why: str, allotted: float = 0.0, **numbers: Any) -> Result:
        """A question that was not asked, since there was too little to look at: ``why`` is a clause that says so."""
        return cls(name, asked, f"Could not be asked: {why}.", False, None, allotted, numbers, could_be_asked=False)


@dataclass(frozen=True)
class Audit:
    """All questions of one audit; ``print`` shows it as a page of text."""

    title: str
    results: tuple[Result, ...]
    false_alarm: float
    runs: int
    about: tuple[str, ...] = ()
    """Lines before the results: what was run, on what."""
    limits: tuple[str, ...] = ()
    """Lines after them: what this audit cannot see."""
    if_wrong: str = "BROKEN: {wrong} of {asked} questions show that the promise is not kept{more}."
    """The headline where something was found; ``{wrong}`` and ``{asked}`` are numbers of questions, ``{more}`` says how
    many could not be asked."""
    if_nothing: str = "Nothing wrong was found in {asked} questions{more}. That is no proof that nothing is."
    """The headline where nothing was found."""
    on_false_alarms: str = "False alarms: at most {rate:g} of audits of a program that keeps its promise."

    @property
    def wrong(self) -> tuple[Result, ...]:
        """What was found to be wrong."""
        return tuple(one for one in self.results if one.wrong)

    @property
    def unasked(self) -> tuple[Result, ...]:
        """What could not be asked, since there was too little to look at."""
        return tuple(one for one in self.results if not one.could_be_asked)

    @property
    def passed(self) -> bool:
        """Whether nothing was found. That is no proof that nothing is wrong."""
        return not self.wrong

    def __str__(self) -> str:
        lines = [self.title, *self.about, ""]
        asked = len(self.results) - len(self.unasked)
        more = f"; {len(self.unasked)} could not be asked" if self.unasked else ""
        headline = self.if_wrong if self.wrong else self.if_nothing
        lines.append(headline.format(wrong=len(self.wrong), asked=asked, more=more))
        for one in sorted(self.results, key=lambda result: not result.wrong):
            chance = "" if one.p_value is None else f" (p = {one.p_value:.2g}, judged at {one.allotted:.2g})"
            lines.append(f"{_mark(one):<6} {one.asked} {one.said}{chance}")
        lines.append("")
        lines.append(self.on_false_alarms.format(rate=self.false_alarm))
        if any(one.p_value is not None for one in self.results):
            lines.append("A question is WRONG where p is below the number it is judged at.")
        return "\n".join([*lines, *self.limits])

    def to_json(self) -> str:
        """The audit as JSON."""
        return json.dumps(
            {
                "stirred_audit": 1,
                "title": self.title,
                "about": list(self.about),
                "passed": self.passed,
                "could_not_be_asked": len(self.unasked),
                "false_alarm": self.false_alarm,
                "runs": self.runs,
                "results": [
                    {"judged_at" if name == "allotted" else name: getattr(one, name) for name in _LISTED}
                    for one in self.results
                ],
                "limits": list(self.limits),
            },
            indent=2,
        )


def _mark(one: Result) -> str:
    if not one.could_be_asked:
        return "-"
    return "WRONG" if one.wrong else "ok"


@dataclass(frozen=True)
class Answer:
    """The answer to one question, before a part of the false-alarm rate is allotted to it."""

    name: str
    asked: str
    p_value: float | None
    """None where something is plainly seen: then it is wrong where words for that are all there are."""
    right: str = ""
    wrong: str = ""
    weight: float = 1.0
    """Its part of the false-alarm rate, beside those of the other questions."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    unasked: str = ""
    """Why it could not be asked, where there was too little to look at."""

    def result(self, allotted: float) -> Result:
        """What it says with this part of the false-alarm rate."""
        if self.unasked:
            return Result.unasked(self.name, self.asked, self.unasked, allotted, **self.numbers)
        if self.p_value is None:
            return Result.seen(
                self.name, self.asked, not self.right, right=self.right, wrong=self.wrong, **self.numbers
            )
        return Result.tested(
            self.name, self.asked, self.p_value, allotted, right=self.right, wrong=self.wrong, **self.numbers
        )


def judged(answers: Sequence[Answer], false_alarm: float) -> list[Result]:
    """The results of all questions, among which the false-alarm rate is divided by their weights."""
    parts = shares(false_alarm, [one.weight for one in answers])
    return [one.result(part) for one, part in zip(answers, parts, strict=True)]


def require_effort(runs: int | None, false_alarm: float) -> None:
    """Raise unless an audit of a law is asked for a false-alarm rate and a number of runs that it can have."""
    if not 0 < false_alarm < 1:
        raise errors.audit_question("The false-alarm rate", "must be between 0 and 1")
    if runs is not None and runs < 2:
        raise errors.audit_question("The number of runs", "must be 2 or more: repeated noise shows from the second on")


def runs_in_time(wanted: int, seconds: float | None, progress: Progress) -> Iterator[int]:
    """The numbers of the runs, each told to ``progress``; after two of them no more once the time has passed."""
    began = time.monotonic()
    for number in range(wanted):
        if seconds is not None and number >= 2 and time.monotonic() - began > seconds:
            return
        passed = 0.0 if not seconds else min(1.0, (time.monotonic() - began) / seconds)
        progress.stage(f"run {number + 1} of {wanted}", max(number / wanted, passed) if number else 0.0)
        yield number


def shares(false_alarm: float, weights: Sequence[float]) -> list[float]:
    """The parts of a false-alarm rate, in proportion to these weights (Bonferroni: whatever the dependence)."""
    return [false_alarm * weight / sum(weights) for weight in weights]


def fewest_runs(enough: Callable[[int], bool], most: int) -> int:
    """The fewest runs, from 2 to ``most``, that are enough, where more of them never are less so.

    >>> fewest_runs(lambda runs: runs >= 13, 100), fewest_runs(lambda runs: False, 100)
    (13, 100)
    """
    low, high = 1, 2
    while high < most and not enough(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
