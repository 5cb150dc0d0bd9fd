"""Audits a program against a plan: does it draw from the law of the plan, and does it keep the stated guarantee?

Two questions are put to it. *The law*: its outputs on a made file are compared with what the mechanism of the plan
must do (``swap_audit``, ``topdown_audit``, ``survey_audit``). *The guarantee*: it is run on worst pairs of inputs
(:meth:`Mechanism.audit_pairs`), where a fair coin decides each time which of the two it gets; how well the coin can be
told from the output bounds its loss from below, and a bound above the stated budget breaks the promise.

The invariant a reader must know: what to look for in the outputs is chosen on one half of the coins and counted on the
other, and each pair has its part of the false-alarm rate, so that looking at many things finds nothing by chance.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from stirred import errors, mechanisms
from stirred._progress import Progress, Silent
from stirred.lab.audit.programs import Columns, CommandProgram, FunctionProgram, Program, callable_program
from stirred.lab.audit.results import FALSE_ALARM, Audit, Result, shares
from stirred.noise import RandomSource, SystemSource
from stirred.releases.mechanism import AuditPair
from stirred.releases.plans import Plan
from stirred.spec.exact import display, display_down

CONFIDENCE = 0.95
"""Of the lower bounds that are told, whether or not something is wrong."""
RUNS_OF_PARTS, RUNS_OF_ONE = 24, 500
"""Runs on each pair: of inputs with many parts, and of inputs with one."""
_FEWEST_RUNS = 2
_CANDIDATES = 24


@dataclass(frozen=True)
class _Audited:
    """What programs of one mechanism read and write."""

    names: Callable[[Any], tuple[str, str]]
    columns: Callable[[Any], Columns]
    allowed: str = "the plan states {letter} {budget} per {unit}"
    """Where the budget of a pair comes from, as a clause."""


def _swap_columns(plan: Any) -> Columns:
    left_out = {"records": plan.drop, **{entry.name: entry.drop for entry in plan.linked}}
    return Columns(left_out, tables=tuple(left_out))


def _measured_columns(plan: Any) -> Columns:
    return Columns(numbers={"measurements": ("value",)}, tables=("measurements",))


_AUDITED: Mapping[str, _Audited] = {
    "swap": _Audited(
        lambda plan: ("records", "records"),
        _swap_columns,
        "the theorem allows {budget} per {unit} in such a stratum at this rate",
    ),
    "topdown": _Audited(lambda plan: (plan.tables[0].name, "measurements"), _measured_columns),
    "survey": _Audited(lambda plan: ("survey", "measurements"), _measured_columns),
}


def audit_plan(
    plan: Plan,
    *,
    program: Program | None = None,
    runs: int | None = None,
    seconds: float | None = None,
    false_alarm: float = FALSE_ALARM,
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
    source: RandomSource | None = None,
) -> Audit:
    """Audit a program against a plan; without a program, this package's own.

    Parameters
    ----------
    plan
        What the program says that it does.
    program
        Takes tables by name and gives tables by name; see :mod:`stirred.lab.audit.programs`.
    runs
        How often the program is run for each question; by default as often as each needs.
    seconds
        About how long the audit may take, in place of a number of runs; half of it is for the law.
    false_alarm
        The probability, at most, of finding something wrong with a program that keeps its promise.
    confidence
        Of the lower bounds that are told; what is wrong is judged by the false-alarm rate instead.
    progress
        Receives the name of each stage when it begins.
    source
        Of the coins that choose between the inputs. Another one than the operating system's is for tests.
    """
    _check_effort(runs, seconds, false_alarm, confidence)
    progress, source = progress or Silent(), source or SystemSource()
    audited = _audited(plan)
    tried = program if program is not None else own_program(plan, source=source)
    parts = shares(false_alarm, [1, 1])
    law, unknown = _law(plan, tried, runs, seconds and seconds / 2, parts[0], progress)
    progress.stage("making worst pairs of inputs")
    pairs = mechanisms.named(plan.mechanism).audit_pairs(plan)
    results, done = [], 0
    for number, (pair, allotted) in enumerate(zip(pairs, shares(parts[1], [1] * len(pairs)), strict=True)):
        told = f"running the program on pair {number + 1} of {len(pairs)}"
        seen, used = _runs_on(pair, tried, runs, seconds and seconds / (2 * len(pairs)), progress, told, source)
        results.append(_judged(pair, seen, allotted, confidence, audited.allowed))
        done += used
    whose = "The program" if program is not None else "The program of stirred"
    return Audit(
        f"{whose}, audited against a plan of the {mechanisms.named(plan.mechanism).title}",
        (*(law.results if law else ()), *results),
        false_alarm,
        (law.runs if law else 0) + done,
        (*(law.about if law else ()), f"It was run {done:,} times on {len(pairs)} worst pairs of inputs."),
        (*(law.limits if law else ()), *unknown, _WHAT_A_BOUND_IS),
    )


def own_program(plan: Plan, source: RandomSource | None = None) -> Program:
    """This package's own program for a plan."""
    _audited(plan)
    made: Program = _module(plan).plan_program(plan, source)
    return made


def command_program(plan: Plan, command: str, seconds: float = 60.0) -> CommandProgram:
    """A command line as a program for a plan: ``{input}`` and ``{output}`` stand for the plan's main tables."""
    audited = _audited(plan)
    return CommandProgram(command, seconds, audited.names(plan), audited.columns(plan))


def python_program(plan: Plan, name: str) -> FunctionProgram:
    """A Python function, ``"module:function"``, as a program for a plan."""
    audited = _audited(plan)
    return callable_program(name, main=audited.names(plan)[1], columns=audited.columns(plan))


_WHAT_A_BOUND_IS = (
    "A lower bound far below the budget is the rule: it says what these runs could show, not how much the program "
    "reveals."
)


def _audited(plan: Plan) -> _Audited:
    if plan.mechanism not in _AUDITED:
        raise errors.not_audited(f"A plan of the mechanism '{plan.mechanism}'", "there is no audit for its law")
    return _AUDITED[plan.mechanism]


def _module(plan: Plan) -> Any:
    """The module that compares programs with the law of the plan's mechanism."""
    return import_module(f"stirred.lab.audit.{plan.mechanism}_audit")


def _check_effort(runs: int | None, seconds: float | None, false_alarm: float, confidence: float) -> None:
    if runs is not None and runs < _FEWEST_RUNS:
        raise errors.audit_question("The number of runs", f"must be at least {_FEWEST_RUNS}")
    if seconds is not None and not seconds > 0:
        raise errors.audit_question("The time", "must be above 0 seconds")
    for what, given in (("The false-alarm rate", false_alarm), ("The confidence", confidence)):
        if not 0 < given < 1:
            raise errors.audit_question(what, "must be between 0 and 1")


# -- the law ---------------------------------------------------------------------------------------------------


def _law(
    plan: Plan, program: Program, runs: int | None, seconds: float | None, false_alarm: float, progress: Progress
) -> tuple[Audit | None, tuple[str, ...]]:
    """The audit of the law; None, and why, where the law of a plan is not known to it."""
    compare = getattr(_module(plan), f"audit_{plan.mechanism}")
    try:
        law: Audit = compare(plan, program, runs=runs, seconds=seconds, false_alarm=false_alarm, progress=progress)
    except errors.StirredError as refusal:
        if refusal.kind != "audit-of-plan":
            raise
        return None, (f"The law itself was not tried. {refusal.problem}",)
    return law, ()


# -- the guarantee -----------------------------------------------------------------------------------------------

Seen = list[tuple[bool, Hashable]]
"""Coins, and what was seen of the part that each decided."""


def _runs_on(
    pair: AuditPair,
    program: Program,
    runs: int | None,
    seconds: float | None,
    progress: Progress,
    told: str,
    source: RandomSource,
) -> tuple[Seen, int]:
    """Run a program on a pair, coins deciding its inputs; what was seen, and how often it was run."""
    wanted = runs or (RUNS_OF_PARTS if pair.parts > 1 else RUNS_OF_ONE)
    seen: Seen = []
    began, done = time.monotonic(), 0
    while done < _FEWEST_RUNS or (done < wanted if seconds is None else time.monotonic() - began < seconds):
        share = done / wanted if seconds is None else (time.monotonic() - began) / seconds
        progress.stage(told, share)
        coins = _coins(pair.parts, source)
        seen += zip(coins, pair.outcomes(program(pair.tables(coins))), strict=True)
        done += 1
    return seen, done


def _coins(count: int, source: RandomSource) -> list[bool]:
    bits = np.unpackbits(np.frombuffer(source.take((count + 7) // 8), dtype=np.uint8))
    return [bool(bit) for bit in bits[:count]]


def _judged(pair: AuditPair, seen: Seen, allotted: float, confidence: float, allowed: str) -> Result:
    """Whether what was seen of a pair breaks its guarantee, and how close to it the program comes."""
    stated = float(pair.specification.budget.number)
    letter = pair.specification.output_premetric.kind.budget
    bound = _bounds(pair, seen)
    certain, told = bound(1 - allotted), bound(confidence)
    unit = pair.specification.input_premetric.unit
    about = f"these runs show {letter} of at least {display_down(told)} (confidence {confidence:g}), and "
    about += allowed.format(letter=letter, budget=display(stated), unit=unit)
    if certain > stated:
        said = f"The guarantee is broken: {letter} is at least {display_down(certain)}, whatever chance did; {about}."
    elif told > stated:
        said = f"In doubt, which more runs would settle: {about}."
    else:
        said = f"Nothing shows that it does not: {about}."
    return Result(
        f"pair-{pair.name}",
        f"Does the guarantee hold where {pair.words}?",
        said,
        certain > stated,
        None,
        allotted,
        {
            "lower_bound": told,
            "confidence": confidence,
            "lower_bound_at_false_alarm": certain,
            "stated": stated,
            "budget": letter,
            "distance": pair.distance,
            "coins": len(seen),
            "looked_at": pair.looked_at,
        },
    )


def _bounds(pair: AuditPair, seen: Seen) -> Callable[[float], float]:
    """The lower bound of the budget at each confidence."""
    kind = pair.specification.output_premetric.kind
    if pair.parts > 1 and kind.pure:
        return lambda confidence: _by_guesses(pair, seen, confidence)
    from stirred.lab.audit.lower_bounds import lower_bounds

    forms = [[outcome for coin, outcome in seen if coin is form] for form in (False, True)]

    def bound(confidence: float) -> float:
        if min(map(len, forms)) < _FEWEST_RUNS:
            return 0.0
        found = lower_bounds(*forms, confidence=confidence, deltas=(), levels=(), distance=pair.distance)
        return float((found.rho if kind.budget_is_rho else found.epsilon).value)

    return bound


def _by_guesses(pair: AuditPair, seen: Seen, confidence: float) -> float:
    """The lower bound of epsilon that guesses of coins show, however the parts of a run depend on each other.

    Given everything else, the odds of a coin are at most exp(distance times epsilon) for anybody who sees the output
    (Steinke, Nasr and Jagielski 2023). Which outcomes are guessed from is chosen on the first half.
    """
    from stirred.lab.audit.lower_bounds import one_run_bound

    half = len(seen) // 2
    learnt, counted = Counter(seen[:half]), Counter(seen[half:])

    def bound(guess: Guess, tally: Tally) -> float:
        right = sum(tally[form, outcome] for outcome, form in guess.items())
        guessed = right + sum(tally[not form, outcome] for outcome, form in guess.items())
        if not guessed:
            return 0.0
        return float(one_run_bound(right, guessed, confidence=confidence, distance=pair.distance).epsilon)

    chosen = max(_candidates(learnt), key=lambda guess: bound(guess, learnt), default={})
    return bound(chosen, counted)


Tally = Counter[tuple[bool, Hashable]]
"""How often each form and outcome were seen together."""
Guess = Mapping[Hashable, bool]
"""Outcomes from which a guess is made, and the form that is guessed."""


def _candidates(learnt: Tally) -> Iterator[Guess]:
    """Ways of guessing, from the few outcomes that tell the two forms apart best to all of them."""
    ratio = {
        outcome: math.log((learnt[True, outcome] + 0.5) / (learnt[False, outcome] + 0.5))
        for outcome in {outcome for _, outcome in learnt}
    }
    ordered = sorted(ratio, key=lambda outcome: -abs(ratio[outcome]))
    for number in sorted({-(-len(ordered) * step // _CANDIDATES) for step in range(1, _CANDIDATES + 1)} - {0}):
        yield {outcome: ratio[outcome] > 0 for outcome in ordered[:number]}
