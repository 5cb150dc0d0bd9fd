"""Audits a program that measures a survey: is every weighted sum measured once, with the noise that the plan states?

The program is run several times on a small file that the audit makes itself, so the noise of every sum is known: what
was measured minus what is true, in whole multiples of the query's step. By the plan it is independent discrete Laplace
or Gaussian noise, whatever the sum. The noise of each query is compared with its exact law
(:mod:`stirred.lab.audit.noise_audit`). Estimates made from the sums are post-processing and not audited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred._progress import Progress, Silent
from stirred.errors.kinds import capital
from stirred.lab.audit.laws import NoiseLaw, gaussian, laplace
from stirred.lab.audit.noise_audit import LEAST_DRAWS, audit_noise, power
from stirred.lab.audit.p_values import POWER, count_p_value
from stirred.lab.audit.programs import Program, Tables, measurements_of
from stirred.lab.audit.results import FALSE_ALARM, Audit, Result, fewest_runs, require_effort, runs_in_time, shares
from stirred.noise import RandomSource, SystemSource
from stirred.spec.exact import display, near
from stirred.survey.audit_pairs import KEYS, MEASUREMENTS, audit_pairs, cell_labels
from stirred.survey.data import read_records
from stirred.survey.drawing import fill_in
from stirred.survey.measuring import measure, query_noise, query_step, true_sums
from stirred.survey.plan.fields import SurveyPlan

Places = NDArray[np.int64]

MOST_RUNS = 1000
"""More runs are made only if they are asked for."""
MOST_DRAWS = 200_000
"""Of the noise of one query; the first cells of larger ones are looked at."""
_ON_STEP = 1e-6
_ROUNDED = 1e-12
"""A value is a multiple of its step if it is this near to one: programs may write floating-point numbers."""


def audit_survey(
    plan: SurveyPlan,
    program: Program,
    *,
    runs: int | None = None,
    seconds: float | None = None,
    false_alarm: float = FALSE_ALARM,
    progress: Progress | None = None,
) -> Audit:
    """Whether a program measures what a plan says, with the noise that it says.

    Parameters
    ----------
    plan
        The plan that the program claims to follow.
    program
        What is audited, from the plan's file (``survey``) to ``measurements``: query, cell, value. Names are those of
        the plan, cells the values of the query's attributes joined by ``*``, ``all`` for the total.
        :func:`plan_program` gives our own.
    runs
        How often to run it; by default as often as :func:`runs_needed` says, and never fewer than twice.
    seconds
        Stop when so much time has passed.
    false_alarm
        The probability that a program which keeps to the plan is found to be wrong.
    progress
        Told of each run.
    """
    require_effort(runs, false_alarm)
    wanted, progress = runs_needed(plan, false_alarm) if runs is None else runs, progress or Silent()
    seen = Seen(plan, max(1, MOST_DRAWS // wanted))
    for _ in runs_in_time(wanted, seconds, progress):
        seen.add(program(seen.tables))
    groups = seen.groups
    parts = shares(false_alarm, [1.0] * (len(groups) + 2))
    results = (
        _there_once(seen),
        _on_the_lattice(seen),
        *(_noise(seen, at, part) for at, part in enumerate(parts[:-2])),
        _between_queries(seen, parts[-2]),
        _between_runs(seen, parts[-1]),
    )
    word = "epsilon" if plan.noise == "laplace" else "rho"
    about = (
        f"{seen.runs:,} runs on a made file: {len(plan.queries)} queries, {sum(map(len, seen.truth)):,} sums in each.",
        f"The plan states {word} = {display(plan.budget)}.",
    )
    limits = ["Not audited: measured standard errors, models of imputation, and estimates made from the sums."]
    if short := [group.words for group in groups if _chance(group, seen.runs, parts[0]) < POWER]:
        limits.append(f"Too few runs to notice half of the noise for certain: {'; '.join(short)}.")
    return Audit("Audit of measured sums of a survey", results, false_alarm, seen.runs, about, tuple(limits))


def plan_program(plan: SurveyPlan, source: RandomSource | None = None) -> Program:
    """Our own program for a plan: reads the file, imputes and measures, in memory, as a release does."""
    source = source or SystemSource()
    keys = pl.concat(
        pl.DataFrame({"query": [query.name] * len(labels), "cell": labels})
        for query in plan.queries
        for labels in [cell_labels(plan, query)]
    )
    steps = [near(query_step(plan, query)) for query in plan.queries]

    def run(tables: Tables) -> Tables:
        filled, _ = fill_in(read_records(plan, dict(tables)), source)
        sums = measure(filled, source)
        values = [sums[query.name] * step for query, step in zip(plan.queries, steps, strict=True)]
        return {MEASUREMENTS: keys.with_columns(pl.Series("value", np.concatenate(values)))}

    return run


def runs_needed(plan: SurveyPlan, false_alarm: float = FALSE_ALARM) -> int:
    """How many runs notice, with power .999, half of the noise in every query; at most :data:`MOST_RUNS`."""
    groups = _groups(plan)
    part = shares(false_alarm, [1.0] * (len(groups) + 2))[0]
    return fewest_runs(lambda runs: all(_chance(group, runs, part) >= POWER for group in groups), MOST_RUNS)


# -- what is looked at together ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Group:
    """Cells of one query that have the same noise."""

    query: int
    name: str
    words: str
    law: NoiseLaw
    cells: Places


def _groups(plan: SurveyPlan) -> list[Group]:
    found = []
    for at, query in enumerate(plan.queries):
        noise = query_noise(plan, query)
        for number, parameter in enumerate(noise.parameters):
            cells = np.flatnonzero(noise.class_of == number)
            name, words = query.name, f"'{query.name}'"
            law = laplace(parameter) if noise.law == "laplace" else gaussian(parameter)
            if not noise.uniform:
                name, words = f"{name}-{number + 1}", f"{words} in strata of kind {number + 1}, by their weights,"
            found.append(Group(at, name, words, law, cells))
    return found


def _chance(group: Group, runs: int, part: float) -> float:
    """At least the probability that half of the noise is noticed."""
    draws = min(runs * len(group.cells), MOST_DRAWS)
    return 0.0 if draws < LEAST_DRAWS else power(group.law, draws, 0.5, part)


@dataclass(eq=False)
class Seen:
    """What runs have shown: the noise of every sum, and rows that should not be there or are missing."""

    plan: SurveyPlan
    most: int
    """Of each group the cells that are looked at in every run, at most."""
    runs: int = 0
    missing: int = 0
    twice: int = 0
    unknown: int = 0
    off_step: int = 0
    noise: list[list[NDArray[np.int64]]] = field(default_factory=list)
    """By group, run after run."""

    def __post_init__(self) -> None:
        self.groups = _groups(self.plan)
        self.noise = [[] for _ in self.groups]
        self.tables = audit_pairs(self.plan)[0].first
        records = read_records(self.plan, dict(self.tables))
        self.truth = [true_sums(records, query) for query in self.plan.queries]
        self.starts = np.concatenate([[0], np.cumsum([len(one) for one in self.truth])])
        self.steps = np.repeat([near(query_step(self.plan, one)) for one in self.plan.queries], np.diff(self.starts))
        names = [(query.name, label) for query in self.plan.queries for label in cell_labels(self.plan, query)]
        self._index = pl.DataFrame(names, schema=dict.fromkeys(KEYS, pl.String), orient="row").with_row_index("place")

    def add(self, made: Tables) -> None:
        """Add what one run of the program measured."""
        places, values = self._placed(made)
        self.runs += 1
        first = np.unique(places, return_index=True)[1]
        self.twice += len(places) - len(first)
        self.missing += int(self.starts[-1]) - len(first)
        places, values = places[first], values[first]
        multiples = values / self.steps[places]
        whole = np.rint(multiples)
        near_by = np.maximum(_ON_STEP, np.abs(multiples) * _ROUNDED)
        self.off_step += int(np.count_nonzero(np.abs(multiples - whole) > near_by))
        noise = np.zeros(int(self.starts[-1]), dtype=np.int64)
        there = np.zeros(len(noise), dtype=np.bool_)
        there[places] = True
        noise[places] = whole.astype(np.int64) - np.concatenate(self.truth)[places]
        for group, kept in zip(self.groups, self.noise, strict=True):
            at = self.starts[group.query] + group.cells[: self.most]
            kept.append(noise[at][there[at]])

    def _placed(self, made: Tables) -> tuple[Places, NDArray[np.float64]]:
        """The place of each known row, and its value; raises if the output cannot be read."""
        frame = measurements_of(made, KEYS)
        found = frame.join(self._index, on=list(KEYS), how="left", maintain_order="left")["place"]
        known = found.is_not_null().to_numpy()
        self.unknown += int((~known).sum())
        return found.fill_null(0).to_numpy().astype(np.int64)[known], frame["value"].to_numpy()[known]

    def draws(self, group: int) -> NDArray[np.int64]:
        """The noise of a group in all runs, one run after the other."""
        return np.concatenate(self.noise[group])[:MOST_DRAWS] if self.noise[group] else np.zeros(0, dtype=np.int64)


# -- the questions -------------------------------------------------------------------------------------------------


def _there_once(seen: Seen) -> Result:
    said = []
    if seen.twice:
        said.append(f"the budget is spent more than once: {seen.twice:,} rows measure what is measured already")
    if seen.unknown:
        said.append(f"more is measured than the plan counts: {seen.unknown:,} rows are of no cell of the plan")
    if seen.missing:
        said.append(f"which sums are there can betray the data: {seen.missing:,} are missing")
    words = "; ".join(said)
    return Result.seen(
        "there-once", "Is every query measured once, in every cell, and nothing else?", bool(said), right="Yes.",
        wrong=f"{capital(words)}.", missing=seen.missing, twice=seen.twice, unplanned=seen.unknown,
    )  # fmt: skip


def _on_the_lattice(seen: Seen) -> Result:
    return Result.seen(
        "whole-multiples", "Are all values whole multiples of their query's step?", bool(seen.off_step), right="Yes.",
        wrong="Digits between two multiples can betray the sum that noise was added to: "
        f"{seen.off_step:,} values have some. The other questions were asked of rounded values.",
        off_step=seen.off_step,
    )  # fmt: skip


def _noise(seen: Seen, at: int, part: float) -> Result:
    """All questions about the noise of one group of cells, as one."""
    group, draws = seen.groups[at], seen.draws(at)
    name = f"noise-{group.name}"
    asked = f"Has the noise of {group.words} the law of the plan?"
    if len(draws) < LEAST_DRAWS:
        return Result.unasked(name, asked, f"{len(draws):,} values of it were seen, and {LEAST_DRAWS} are needed", part)
    found = audit_noise(draws, group.law, false_alarm=part)
    tested = [one for one in found.results if one.p_value is not None]
    worst = min(tested, key=lambda one: (one.p_value or 0.0) / one.allotted)
    wrong = " ".join(one.said for one in found.wrong)
    variance = float(np.mean(draws.astype(np.float64) ** 2))
    return Result(
        name, asked, wrong or f"Yes, as far as {len(draws):,} values can tell.", not found.passed, worst.p_value,
        worst.allotted, {"values": len(draws), "mean_square": variance, "by": worst.name},
    )  # fmt: skip


def _between_queries(seen: Seen, part: float) -> Result:
    """Signs of noise at the same place of two queries: fair coins if each has noise of its own."""
    asked = "Does every query have noise of its own?"
    kept = [seen.noise[at] for at in range(len(seen.groups))]
    tests, worst, words = 0, 1.0, ""
    for one in range(len(kept)):
        for other in range(one + 1, len(kept)):
            signs = [_signs(first, second) for first, second in zip(kept[one], kept[other], strict=True)]
            product = np.concatenate(signs) if signs else np.zeros(0)
            both, same = int(np.count_nonzero(product)), int(np.count_nonzero(product > 0))
            tests += 1
            if both and (p_value := count_p_value(same, both, 0.5)) < worst:
                worst, words = p_value, f"{seen.groups[one].words} and {seen.groups[other].words}"
    if not tests:
        return Result.unasked("between-queries", asked, "there is one query only", part)
    return Result.tested(
        "between-queries", asked, min(1.0, worst * tests), part, right="Yes, as far as runs can tell.",
        wrong=f"The noise of {words} is related: what one of them hides the other can undo.", worst=words,
    )  # fmt: skip


def _signs(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    both = min(len(first), len(second))
    return np.asarray(np.sign(first[:both]) * np.sign(second[:both]))


def _between_runs(seen: Seen, part: float) -> Result:
    """Signs of the noise of the same cell in pairs of runs."""
    asked = "Is noise drawn afresh in every run?"
    products = [
        _signs(first, second)
        for kept in seen.noise
        for first, second in zip(kept[0::2], kept[1::2], strict=False)
        if len(first) == len(second)
    ]
    product = np.concatenate(products) if products else np.zeros(0)
    both, same = int(np.count_nonzero(product)), int(np.count_nonzero(product > 0))
    if not both:
        return Result.unasked("between-runs", asked, "no noise of two runs could be compared", part)
    return Result.tested(
        "between-runs", asked, count_p_value(same, both, 0.5), part, right="Yes, as far as runs can tell.",
        wrong="Noise is repeated from run to run, so that two releases give it away.", same=same, of=both,
    )  # fmt: skip
