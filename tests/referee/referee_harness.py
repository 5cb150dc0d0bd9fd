"""What every room's referee is made of: claims, cases drawn from a seed, and messages that let one case be run again.

A *claim* is a function that takes a case, draws parameters, asks stirred, and compares the answer with one that is
found otherwise: by enumeration, in exact fractions, or with mpmath. A *case* is one draw. Its random numbers depend on
the seed, the claim and the case's number only, so that one case can be run alone:

    make referee SEED=5 CASE=loss/renyi:17

Every comparison names its tolerance. A case without any comparison (stirred answered "unknown", say) is not counted; a
claim says how large a share of its cases must be counted, so that it cannot become empty unnoticed.
"""

from __future__ import annotations

import math
import time
import traceback
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SEED = 1880
"""Of the slow suite."""

ROOMS = ("loss", "noise", "spec", "invariants", "semantics", "limits", "swap", "topdown", "estimates")


class Violated(AssertionError):
    """A comparison that does not hold."""


@dataclass
class Case:
    """One draw of a claim's parameters."""

    room: str
    name: str
    seed: int
    number: int
    given: dict[str, Any] = field(default_factory=dict)
    comparisons: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng([self.seed, zlib.crc32(f"{self.room}/{self.name}".encode()), self.number])

    # -- drawing ---------------------------------------------------------------------------------------------

    def say(self, **parameters: Any) -> None:
        """Remember parameters, for the message."""
        self.given.update(parameters)

    def pick(self, name: str, choices: Iterable[Any]) -> Any:
        options = list(choices)
        self.given[name] = options[int(self.random.integers(len(options)))]
        return self.given[name]

    def whole(self, name: str, low: int, high: int) -> int:
        """From ``low`` to ``high``, both included."""
        self.given[name] = int(self.random.integers(low, high + 1))
        return int(self.given[name])

    def size(self, name: str, low: float, high: float) -> float:
        """A positive number, uniform in its logarithm, of four digits, so that it is the same when it is typed in."""
        found = float(f"{math.exp(self.random.uniform(math.log(low), math.log(high))):.4g}")
        self.given[name] = found
        return found

    def share(self, name: str, low: float = 0.0, high: float = 1.0) -> float:
        self.given[name] = round(float(self.random.uniform(low, high)), 6)
        return float(self.given[name])

    # -- comparing -------------------------------------------------------------------------------------------

    def holds(self, condition: Any, what: str) -> None:
        self.comparisons += 1
        if not condition:
            raise Violated(what)

    def at_most(self, small: Any, large: Any, what: str, relative: float = 0.0, absolute: float = 0.0) -> None:
        """``small <= large``, up to a relative and an absolute tolerance."""
        slack = absolute if not math.isfinite(float(large)) else absolute + relative * abs(large)
        self.holds(small <= large + slack, f"{what}: {_shown(small)} is above {_shown(large)}")

    def same(self, found: Any, truth: Any, what: str, relative: float = 0.0, absolute: float = 0.0) -> None:
        if math.isinf(float(truth)) or math.isinf(float(found)):
            self.holds(float(found) == float(truth), f"{what}: {_shown(found)} instead of {_shown(truth)}")
            return
        slack = absolute + relative * abs(truth)
        self.holds(abs(found - truth) <= slack, f"{what}: {_shown(found)} instead of {_shown(truth)}")

    def within(self, low: Any, truth: Any, high: Any, what: str, relative: float = 0.0, absolute: float = 0.0) -> None:
        """A number between its two bounds."""
        self.at_most(low, truth, f"{what}, the lower bound", relative, absolute)
        self.at_most(truth, high, f"{what}, the upper bound", relative, absolute)


@dataclass(frozen=True)
class Claim:
    """What is claimed, and how many cases a whole run draws."""

    room: str
    name: str
    cases: int
    check: Callable[[Case], None]
    counted: float = 1.0
    """The least share of cases in which something is compared."""

    @property
    def key(self) -> str:
        return f"{self.room}/{self.name}"


@dataclass
class Outcome:
    """What came of some cases of a claim: how many compared something, what was violated, and the processor time."""

    room: str
    name: str
    drawn: int = 0
    counted: int = 0
    comparisons: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0


def claim(room: str, cases: int, counted: float = 1.0) -> Callable[[Callable[[Case], None]], Claim]:
    """Makes a claim of a function; its name is the function's."""

    def made(check: Callable[[Case], None]) -> Claim:
        return Claim(room, check.__name__.replace("_", "-"), cases, check, counted)

    return made


def judge(one: Claim, seed: int, numbers: Iterable[int]) -> Outcome:
    """Goes through cases of a claim, on beyond those that fail."""
    outcome = Outcome(one.room, one.name)
    begun = time.process_time()
    for number in numbers:
        case = Case(one.room, one.name, seed, number)
        outcome.drawn += 1
        try:
            one.check(case)
        except Violated as violation:
            outcome.violations.append(_message(case, str(violation)))
        except Exception as error:  # a crash on drawn parameters is a finding too
            place = traceback.extract_tb(error.__traceback__)[-1]
            told = f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}, line {place.lineno})"
            outcome.violations.append(_message(case, told))
            case.comparisons += 1
        outcome.counted += case.comparisons > 0
        outcome.comparisons += case.comparisons
    outcome.seconds = time.process_time() - begun
    return outcome


def _message(case: Case, what: str) -> str:
    drawn = ", ".join(f"{name}={value!r}" for name, value in case.given.items())
    again = f"make referee SEED={case.seed} CASE={case.room}/{case.name}:{case.number}"
    return (
        f"{case.room}/{case.name}, seed {case.seed}, case {case.number}: {what}\n    with {drawn}\n    again: {again}"
    )


def _shown(value: Any) -> str:
    return f"{float(value):.17g}"
