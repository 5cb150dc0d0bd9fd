"""Audits a program that measures for TopDown: is everything measured once, with the noise that the plan states?

The program is run several times on small data that the audit makes itself (:mod:`stirred.lab.audit.topdown_runs`), so
the noise of every value is known: what was measured minus what is true. By the plan it is independent discrete Gaussian
noise of variance 1/rho for a query that has rho of the budget, whatever the count. P-values are exact or too large
(:mod:`stirred.lab.audit.p_values`). The fit is post-processing and not audited.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred._progress import Progress, Silent
from stirred.errors.kinds import capital
from stirred.lab.audit.laws import gaussian
from stirred.lab.audit.p_values import (
    POWER,
    count_p_value,
    fit_p_value,
    log_spread,
    mean_p_value,
    smallest_factor,
    smallest_of,
    spread_power,
    total_rate_at_least,
    unequal_p_values,
)
from stirred.lab.audit.programs import Program, Tables
from stirred.lab.audit.results import FALSE_ALARM, Audit, Result, fewest_runs, require_effort, runs_in_time, shares
from stirred.lab.audit.topdown_runs import Agreement, Group, MadeData, Seen, make_data
from stirred.noise import RandomSource, SystemSource
from stirred.topdown.audit_pairs import MEASUREMENTS
from stirred.topdown.data.counting import GEOGRAPHY, count_tables
from stirred.topdown.measuring import draw_parts, entries
from stirred.topdown.plan.fields import TopDownPlan

Array = NDArray[np.float64]
MOST_RUNS = 1000
"""More runs are made only if they are asked for."""
_TWICE = 2.0
_NAMED = 3
_NOTHING = "no value of a planned query was seen"
_NO_TWO = "no two values with noise could be compared"
_BY_A_SHIFT = "If the noise itself is shifted to one side (see above), that alone can explain it."
"""Noise that is above zero more often than below has signs that agree, though it is drawn afresh."""
_QUESTIONS = ("spread", "budget", "fit", "mean", "by-count", "runs", "places", "queries", "whole-runs")


def audit_topdown(
    plan: TopDownPlan,
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
        What is audited, from the plan's tables by name and ``geography`` to ``measurements``: table, level, geounit,
        query, cell, value. Names are those of the plan, cells and geounits those of TopDown's measurement files:
        values joined by ``*``, ``all`` for the total. ``table`` may be left out where the plan releases one.
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
    made, progress = make_data(plan), progress or Silent()
    wanted = _runs_needed(plan, made.groups(), false_alarm) if runs is None else runs
    seen = Seen(made)
    for _ in runs_in_time(wanted, seconds, progress):
        seen.add(program(made.tables))
    parts = dict(zip(_QUESTIONS, shares(false_alarm, [1.0] * len(_QUESTIONS)), strict=True))
    fit = _fit(seen, parts["fit"])
    results = (
        _there_once(seen),
        _whole(seen),
        _spread(seen, parts["spread"], other_law=fit.wrong),
        _budget(seen, plan, parts["budget"]),
        fit,
        _mean(seen, parts["mean"]),
        _by_count(seen, parts["by-count"]),
        _afresh("runs", "Is noise drawn afresh in every run?", _agreements(seen, [seen.runs_agree]), parts["runs"]),
        _afresh("places", "Is it drawn afresh for every place and cell?",
                _agreements(seen, [seen.units_agree, seen.cells_agree]), parts["places"]),
        _afresh("queries", "Is it drawn afresh for every query and level?", _between_queries(seen), parts["queries"]),
        _whole_runs(seen, parts["whole-runs"]),
    )  # fmt: skip
    values = sum(group.truth.size for group in made.groups())
    about = (
        f"{seen.runs:,} runs on made data: {len(made.groups())} queries and levels, {values:,} values in each run.",
        f"The plan states rho = {float(plan.rho):.6g}.",
    )
    limits = _limits(seen, plan, false_alarm)
    return Audit("Audit of measurements for TopDown", results, false_alarm, seen.runs, about, limits)


def plan_program(plan: TopDownPlan, source: RandomSource | None = None) -> Program:
    """Our own program for a plan: counts the tables and measures them, in memory, as a release does."""
    source = source or SystemSource()
    known: list[pl.DataFrame] = []  # a list of places, and the names of all values for it: the same in every run

    def run(tables: Tables) -> Tables:
        counted = count_tables(plan, dict(tables))
        found = entries(plan, counted.spine)
        if not known or not known[0].equals(tables[GEOGRAPHY]):
            made = MadeData(plan, tables, counted)
            known[:] = [tables[GEOGRAPHY], pl.concat([made.keys(one) for one in found])]
        values = np.concatenate([part for _, _, part in draw_parts(counted, found, source)])
        return {MEASUREMENTS: known[1].with_columns(pl.Series("value", values))}

    return run


def runs_needed(plan: TopDownPlan, false_alarm: float = FALSE_ALARM) -> int:
    """How many runs notice, with power .999, all of what :func:`powers` lists that :data:`MOST_RUNS` can notice."""
    return _runs_needed(plan, make_data(plan).groups(), false_alarm)


def powers(plan: TopDownPlan, runs: int, false_alarm: float = FALSE_ALARM) -> dict[str, float]:
    """At least the probability of noticing, by what is wrong.

    For every query at every level: it is measured twice and the mean is released, so half the variance. For every
    table and level: the budget is divided among the other levels only, so they have too little noise.
    """
    return _powers(plan, make_data(plan).groups(), runs, false_alarm)


def _runs_needed(plan: TopDownPlan, groups: Sequence[Group], false_alarm: float) -> int:
    def noticed(runs: int) -> set[str]:
        return {words for words, chance in _powers(plan, groups, runs, false_alarm).items() if chance >= POWER}

    possible = noticed(MOST_RUNS)
    return fewest_runs(lambda runs: possible <= noticed(runs), MOST_RUNS)


def _powers(plan: TopDownPlan, groups: Sequence[Group], runs: int, false_alarm: float) -> dict[str, float]:
    part, rows = false_alarm / len(_QUESTIONS), _rows(groups)
    betas, counts = _betas(groups), np.array([float(group.truth.size) * runs for group in groups])
    found = {}
    for at, group in enumerate(groups):
        name = f"{group.words} averaged over two measurements"
        found[name] = _power((betas[at],), (counts[at],), _TWICE, part, len(rows))
    for table in plan.released:
        levels = {level: table.level_shares[level] for level in plan.spine.all_levels}
        for forgotten, share in levels.items():
            others = {_level_words(table.name, level) for level in levels if level != forgotten}
            if others:
                found[f"level '{forgotten}' of {table.name} forgotten"] = max(
                    _power(tuple(betas[at]), tuple(counts[at]), float(1 / (1 - share)), part, len(rows))
                    for words, at in rows
                    if words in others
                )
    return found


# -- the questions -------------------------------------------------------------------------------------------


def _there_once(seen: Seen) -> Result:
    unplanned = Counter(
        {(one.entry.table, one.entry.level, one.entry.query): one.truth.size * seen.runs for one in seen.groups
         if not one.planned}
    ) + seen.unknown  # fmt: skip
    said = []
    if seen.rows_twice:
        said.append(f"the budget is spent more than once: {seen.rows_twice:,} rows measure what is measured already")
    if unplanned:
        (table, level, query), _ = unplanned.most_common(1)[0]
        said.append(
            f"more is measured than the plan counts: {unplanned.total():,} rows, such as '{query}' of {table} at level "
            f"'{level}'"
        )
    if seen.rows_missing:
        said.append(
            f"which values are there can betray the data: {seen.rows_missing:,} are missing, such as some of "
            f"{seen.first_missing}"
        )
    words = "; ".join(said)
    return Result.seen(
        "there-once", "Is every query measured once, in every place and cell, and nothing else?", bool(said),
        right="Yes.", wrong=f"{capital(words)}.", missing=seen.rows_missing, twice=seen.rows_twice,
        unplanned=unplanned.total(),
    )  # fmt: skip


def _whole(seen: Seen) -> Result:
    return Result.seen(
        "whole-numbers", "Are all values whole numbers?", bool(seen.fractional), right="Yes.",
        wrong="Digits after the point can betray the count that noise was added to: "
        f"{seen.fractional:,} values have some. The other questions were asked of rounded values.",
        fractional=seen.fractional,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Totals:
    """Draws of the plan's groups: rates, numbers, sums of squares and sums."""

    betas: Array
    counts: Array
    squares: Array
    sums: Array


def _totals(seen: Seen) -> _Totals:
    number = len(seen.planned)
    both = [one.reshape(-1, 2)[:number].sum(axis=1) for one in (seen.counts, seen.squares, seen.sums)]
    return _Totals(_betas(seen.planned), *both)


def _none_planned(seen: Seen) -> bool:
    return not seen.counts[: 2 * len(seen.planned)].any()


def _betas(groups: Sequence[Group]) -> Array:
    return np.array([float(1 / Fraction(group.entry.variance)) / 2 for group in groups])


def _level_words(table: str, level: str) -> str:
    return f"all queries of {table} at level '{level}'"


def _rows(groups: Sequence[Group]) -> list[tuple[str, list[int]]]:
    """Sets of groups whose noise is looked at together: each alone, by level, by query, by table, and all."""
    found: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        entry = group.entry
        for words in (
            group.words, _level_words(entry.table, entry.level), f"'{entry.query}' of {entry.table} at all levels",
            f"all queries of {entry.table}", "all queries",
        ):  # fmt: skip
            found.setdefault(words, []).append(at)
    return list(found.items())


def _row_bounds(totals: _Totals, rows: Sequence[tuple[str, list[int]]]) -> tuple[Array, Array, Array]:
    """By row, logarithms of bounds for too little and too much noise, and the factor of rates that fits best."""
    inside = np.zeros((len(rows), len(totals.betas)))
    for line, (_, members) in zip(inside, rows, strict=True):
        line[members] = 1
    betas = np.broadcast_to(totals.betas, inside.shape)
    return log_spread("gaussian", betas, inside * totals.counts, inside * totals.squares)


def _spread(seen: Seen, part: float, other_law: bool) -> Result:
    asked = "Does every query have as much noise as the plan says?"
    if _none_planned(seen):
        return Result.unasked("spread", asked, _NOTHING, part)
    rows = _rows(seen.planned)
    smaller, larger, factors = _row_bounds(_totals(seen), rows)
    logs = np.minimum(smaller, larger)
    worst = int(np.argmin(logs))
    words, share = rows[worst][0], 1 / float(factors[worst])
    if smaller[worst] < larger[worst]:
        wrong = f"Too little noise, a privacy fault: the variance is about {share:.3g} of the plan's for {words}."
    else:
        privacy = (
            "Whether privacy suffers depends on the law, which is not the stated one"
            if other_law
            else "Privacy does not suffer, as far as runs can tell"
        )
        wrong = (
            f"More noise than stated: stated errors are too small. {privacy}. The variance is about {share:.4g} times "
            f"the plan's for {words}."
        )
    return Result.tested(
        "spread", asked, min(1.0, 2 * math.exp(logs[worst]) * len(rows)),
        part, right="Yes, as far as runs can tell.", wrong=wrong, worst=words, variance_ratio=share,
    )  # fmt: skip


def _budget(seen: Seen, plan: TopDownPlan, part: float) -> Result:
    """Every measurement that was seen costs 1/variance = 2 beta, also those that the plan does not have."""
    asked = "Is no more than the stated budget spent?"
    if not seen.counts.any():
        return Result.unasked("budget", asked, "no value whose true count is known was seen", part)
    counts = np.concatenate([seen.counts.reshape(-1, 2).sum(axis=1), seen.again_counts])
    squares = np.concatenate([seen.squares.reshape(-1, 2).sum(axis=1), seen.again_squares])
    spent, stated = 2 * total_rate_at_least("gaussian", counts, squares, part), float(plan.rho)
    uncounted = f", not counting {seen.unknown.total():,} rows whose true counts are not known" if seen.unknown else ""
    return Result(
        "budget", asked,
        f"More is spent than stated: rho is at least {spent:.4g}, and {stated:.6g} is stated{uncounted}."
        if spent > stated
        else f"Yes, as far as runs can tell: rho is at least {spent:.4g}, and {stated:.6g} is stated{uncounted}.",
        spent > stated, None, part, {"rho_at_least": spent, "rho_stated": stated},
    )  # fmt: skip


def _fit(seen: Seen, part: float) -> Result:
    asked = "Is the noise discrete Gaussian?"
    if _none_planned(seen):
        return Result.unasked("fit", asked, _NOTHING, part)
    p_values = [
        fit_p_value(cells, law.chances(edges))
        for cells, law, edges in zip(seen.cells, seen.laws, seen.edges, strict=True)
    ]
    worst = int(np.argmin(p_values))
    return Result.tested(
        "fit", asked, smallest_of(p_values), part,
        right="Yes, as far as runs can tell.",
        wrong=f"The noise has another law, for which the stated rho is not proved, where its variance should be "
        f"{seen.laws[worst].parameter}.",
        variance=float(seen.laws[worst].parameter),
    )  # fmt: skip


def _mean(seen: Seen, part: float) -> Result:
    asked = "Is the noise zero on average?"
    if _none_planned(seen):
        return Result.unasked("mean", asked, _NOTHING, part)
    totals = _totals(seen)
    used = np.flatnonzero(totals.counts)
    p_values = [mean_p_value("gaussian", totals.betas[at], int(totals.counts[at]), totals.sums[at]) for at in used]
    together = float(np.sum(totals.sums * np.sqrt(2 * totals.betas)))  # in standard deviations
    p_values.append(mean_p_value("gaussian", 0.5, int(totals.counts.sum()), together))
    worst = int(np.argmin(p_values))
    words = seen.planned[used[worst]].words if worst < len(used) else "all queries together"
    return Result.tested(
        "mean", asked, smallest_of(p_values), part,
        right="Yes, as far as runs can tell.", wrong=f"Counts are shifted to one side: {words}.", worst=words,
    )  # fmt: skip


def _by_count(seen: Seen, part: float) -> Result:
    """Noise in cells that hold nothing beside that in cells that hold something: its size, and the signs of each."""
    asked = "Is the noise the same whatever the count?"
    if _none_planned(seen):
        return Result.unasked("by-count", asked, _NOTHING, part)
    number = len(seen.planned)
    counts, squares = seen.counts.reshape(-1, 2)[:number], seen.squares.reshape(-1, 2)[:number]
    p_values = unequal_p_values("gaussian", np.repeat(_betas(seen.planned)[:, None], 2, axis=1), counts, squares)
    found = [
        (float(p_value), f"cells that hold nothing have another variance of noise than others, {group.words}")
        for p_value, group in zip(p_values, seen.planned, strict=True)
    ]
    for of_class, where in enumerate(("nothing", "something")):
        positive, nonzero = (int(one.reshape(-1, 2)[:number, of_class].sum()) for one in (seen.positive, seen.nonzero))
        words = f"in cells that hold {where} noise is above zero {positive:,} times in {nonzero:,}"
        found.append((count_p_value(positive, nonzero, 0.5), words))
    p_value, words = min(found)
    return Result.tested(
        "by-count", asked, min(1.0, p_value * len(found)), part,
        right="Yes, as far as runs can tell.", wrong=f"The noise itself tells about the count: {words}.",
    )  # fmt: skip


def _agreements(seen: Seen, agreements: Sequence[Agreement]) -> list[tuple[float, str]]:
    """By query and level and all together, how signs agree; nothing where no two values with noise were there."""
    number, found = len(seen.planned), []
    for agreement in agreements:
        same, both = agreement.same[:number], agreement.both[:number]
        found += [(count_p_value(int(a), int(b), 0.5), group.words) for a, b, group in
                  zip(same, both, seen.planned, strict=True)]  # fmt: skip
        found.append((count_p_value(int(same.sum()), int(both.sum()), 0.5), "all queries together"))
    return found if any(one.both[:number].any() for one in agreements) else []


def _between_queries(seen: Seen) -> list[tuple[float, str]]:
    """How signs of noise agree between any two queries: p-values, with words for the pair."""
    found = []
    for one in range(len(seen.planned)):
        for other in range(one):
            both = int(seen.both[one, other])
            same = (both + int(seen.difference[one, other])) // 2
            found.append((count_p_value(same, both, 0.5), f"{seen.planned[one].words} and {seen.planned[other].words}"))
    return [(1.0, ""), *found] if np.tril(seen.both, -1).any() else []


def _afresh(name: str, asked: str, found: Sequence[tuple[float, str]], part: float) -> Result:
    """Whether signs agree too often or too rarely, by p-values and words of what was compared."""
    if not found:
        return Result.unasked(name, asked, _NO_TWO, part)
    p_value, words = min(found)
    return Result.tested(
        name, asked, min(1.0, p_value * len(found)), part, right="Yes, as far as runs can tell.",
        wrong=f"Noise may be used again, and the difference of two values is then free of it: signs of noise agree too "
        f"often or too rarely for {words}. {_BY_A_SHIFT}",
        worst=words,
    )  # fmt: skip


def _whole_runs(seen: Seen, part: float) -> Result:
    """Two runs with the same noise everywhere: of independent runs, each value agrees with the coincidence rate."""
    log_chance = sum(group.truth.size * gaussian(group.entry.variance).log_coincidence for group in seen.planned)
    bound = min(1.0, math.exp(min(0.0, 2 * math.log(seen.runs) - math.log(2) + log_chance)))
    first, second = seen.repeated or (0, 0)
    asked = "Does no run repeat the noise of another?"
    if seen.whole_runs < 2:
        return Result.unasked("whole-runs", asked, "no two runs have all values of the plan", part)
    return Result.tested(
        "whole-runs", asked, 1.0 if seen.repeated is None else bound, part,
        right="None does.",
        wrong="The difference of two releases is free of noise, since the seed was used again or there is hardly any "
        f"noise (see above): run {second + 1} repeats run {first + 1}.",
    )  # fmt: skip


def _limits(seen: Seen, plan: TopDownPlan, false_alarm: float) -> tuple[str, ...]:
    totals, tests, part = _totals(seen), len(_rows(seen.planned)), false_alarm / len(_QUESTIONS)
    weakest = int(np.argmin(totals.counts))
    everywhere, there = (
        _noticed_share(tuple(totals.betas[members]), tuple(totals.counts[members]), part, tests)
        for members in (slice(None), slice(weakest, weakest + 1))
    )
    missed = [words for words, chance in _powers(plan, seen.planned, seen.runs, false_alarm).items() if chance < POWER]
    more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return (
        f"Caught with probability {POWER} or more, had it been so: a variance of noise that is too small by "
        f"{everywhere:.2g}% everywhere, or by {there:.2g}% in the query with the fewest values "
        f"({seen.planned[weakest].words}).",
        f"Not caught with that probability: {', '.join(missed[:_NAMED])}{more}. More runs would do it."
        if missed
        else "Also any level of a table that the division of its budget forgets, and any query that is measured twice.",
        "Smaller errors, such as those of a law computed in floating-point numbers, can be seen by no audit that looks "
        "at values only: they are for a proof of the sampler. The program was run on made data, and is taken to treat "
        "other data alike.",
    )


# Audits of one plan with one number of runs ask for the same numbers again and again.
@lru_cache(maxsize=4096)
def _power(betas: tuple[float, ...], counts: tuple[float, ...], factor: float, part: float, tests: int) -> float:
    return spread_power("gaussian", np.array(betas), np.array(counts), factor, part, tests)


@lru_cache(maxsize=64)
def _noticed_share(betas: tuple[float, ...], counts: tuple[float, ...], part: float, tests: int) -> float:
    """By how many percent too small a variance must be to be noticed with power .999."""
    used = np.array(counts) > 0
    if not used.any():
        return 100.0
    return 100 * (1 - 1 / smallest_factor("gaussian", np.array(betas)[used], np.array(counts)[used], part, tests))
