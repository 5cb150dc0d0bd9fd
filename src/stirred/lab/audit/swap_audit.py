"""Does a swapping program draw from the law that it states? Runs any program on a made file and looks at the outcomes.

The law is that of Algorithm 3.2.1 (:mod:`stirred.lab.audit.laws`); of plans with rates by rule, merged values or
rounds, that of small strata (:mod:`stirred.lab.audit.small_strata_laws`), and then Algorithm 3.2.1 on a file in which
these are idle. A program is a function from tables to tables, and nothing is assumed about how it works. An audit
that finds nothing proves nothing: faults smaller than those that its last lines name stay unseen.

What is plainly wrong with a run is seen first, and no chance is involved there. A release has the columns of the
plan; every record is there once with what is kept of it; every stratum has the swap values that it had; ids are new;
linked rows stay with their record. Only a release that is whole in this sense shows a permutation, so one that is not
ends an audit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred import errors
from stirred._progress import Progress, Silent
from stirred.lab.audit.p_values import of_bounded_sum, smallest_of
from stirred.lab.audit.programs import Program
from stirred.lab.audit.results import FALSE_ALARM, Audit, Result, judged, require_effort
from stirred.lab.audit.small_strata import MOST_LISTED, ListedFile, make_idle, make_listed
from stirred.lab.audit.small_strata_laws import Laws, listed_answers, listed_limits
from stirred.lab.audit.swap_questions import Effort, SeenRun, SeenRuns, answers, smallest_bias, smallest_rate
from stirred.lab.audit.swap_runs import (
    FEWEST_RECORDS,
    LINKED_ROWS,
    RECORDS,
    Integers,
    LinkedFile,
    MadeFile,
    ReadRun,
    correlated,
    make_file,
    moved_in,
    order_seen,
    rate_that_is_tried,
    read_run,
    whole_numbers,
)
from stirred.noise import RandomSource, SystemSource
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN


@dataclass(frozen=True)
class PlainlySeen:
    """What is plainly wrong with one release: columns, and numbers of rows."""

    missing: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    """Columns that are not there, and that should not be."""
    rows: int | None = None
    """How many there are; None if the columns that tell records apart are not there."""
    unknown_records: int = 0
    unknown_values: int = 0
    missing_records: int = 0
    missing_values: int = 0
    old_ids: int | None = None
    wrong_links: int | None = None
    """None where a release is not whole: then ids and links are not looked at."""


def look(made: MadeFile, released: Mapping[str, pl.DataFrame]) -> tuple[PlainlySeen, SeenRun | None]:
    """Look at what one run gave: what is plainly wrong, and what else it shows if it is whole."""
    main = _table(released, RECORDS)
    missing = frozenset(made.released_columns - set(main.columns))
    added = frozenset(set(main.columns) - made.released_columns)
    if missing - {made.plan.id}:
        return PlainlySeen(missing, added), None
    read = read_run(made, main)
    if missing or added or not read.whole:
        counts = (read.unknown_records, read.unknown_values, read.missing_records, read.missing_values)
        return PlainlySeen(missing, added, read.rows, *counts), None
    linked = [_look_at_linked(made, one, main, _table(released, one.plan.name), read) for one in made.linked]
    ids = _numbers(main, made.plan.id)
    plain = PlainlySeen(
        rows=read.rows,
        old_ids=_among(ids, made.ids) + sum(one.old_ids for one in linked),
        wrong_links=sum(one.wrong for one in linked),
    )
    if plain.wrong_links:
        return plain, None
    moved = moved_in(made, read.giver)
    id_order = None
    if ids is not None and np.any(np.diff(ids) < 0):
        id_order = order_seen(made, read.record[np.argsort(ids, kind="stable")], moved)
    order = order_seen(made, read.record, moved)
    return plain, SeenRun(moved, order, id_order, tuple(one.order for one in linked))


def plain_results(made: MadeFile, seen: Sequence[PlainlySeen]) -> list[Result]:
    """The results of all runs, of which only the last may not be whole."""
    last = seen[-1]
    columns = [f"{errors.listed(sorted(last.missing))} missing"] if last.missing else []
    columns += [f"{errors.listed(sorted(last.added))} not to be released"] if last.added else []
    found = [
        Result.seen(
            "columns",
            "Does a release have the columns of the plan?",
            bool(columns),
            right="It does.",
            wrong=f"It does not: {' and '.join(columns)}.",
        )
    ]
    if last.rows is None:
        return found
    found += [
        Result.seen(
            "rows",
            "Does a release have as many rows as the input?",
            last.rows != made.records,
            right="It does.",
            wrong=f"It does not: {last.rows:,} and not {made.records:,}.",
        ),
        Result.seen(
            "kept-values",
            "Is every record there once, with its match and held values?",
            bool(last.unknown_records or last.missing_records),
            right="Every one is.",
            wrong=_not_kept(
                "They are not",
                (last.missing_records, "records are missing"),
                (last.unknown_records, "rows are of no record, or of one that is there already"),
            ),
        ),
        Result.seen(
            "kept-counts",
            "Does every stratum have the swap values that it had?",
            bool(last.unknown_values or last.missing_values),
            right="Every one does.",
            wrong=_not_kept(
                "They do not",
                (last.missing_values, "swap values are missing"),
                (last.unknown_values, "rows have swap values from elsewhere, or used already"),
            ),
        ),
    ]
    if made.plan.id:
        found.append(
            _counted(
                "ids",
                "Are ids drawn anew?",
                [one.old_ids for one in seen],
                "None of the input is in a release.",
                "They are not: ids of the input survive, in {:,} rows.",
            )
        )
    if made.linked:
        found.append(
            _counted(
                "linked-rows",
                "Do linked rows stay with their record, and do copied columns follow it?",
                [one.wrong_links for one in seen],
                "They do.",
                "They do not: {:,} rows are with another record, or not there.",
            )
        )
    return found


def _not_kept(verdict: str, *counts: tuple[int, str]) -> str:
    return f"{verdict}: {', and '.join(f'{number:,} {words}' for number, words in counts if number)}."


def _counted(name: str, asked: str, by_run: Sequence[int | None], right: str, wrong: str) -> Result:
    """The result of rows that are wrong, counted in all runs whose release was whole."""
    looked = [one for one in by_run if one is not None]
    if not looked:
        return Result.unasked(name, asked, "the release is not whole")
    return Result.seen(name, asked, sum(looked) > 0, right=right, wrong=wrong.format(sum(looked)))


@dataclass(frozen=True)
class _LinkedSeen:
    wrong: int
    old_ids: int = 0
    order: float = 1.0
    """P-value of the order of the rows."""


def _look_at_linked(
    made: MadeFile, linked: LinkedFile, main: pl.DataFrame, frame: pl.DataFrame, read: ReadRun
) -> _LinkedSeen:
    """Count linked rows that are not with their record, or whose copies are not its new values."""
    entry, held_columns = linked.plan, linked.held.columns
    assert made.plan.id is not None  # a plan with linked tables has one
    if not {entry.link, *linked.held.names, *entry.copies} <= set(frame.columns):
        return _LinkedSeen(LINKED_ROWS * made.records)
    ids, links = _as_numbers(main[made.plan.id], frame[entry.link])
    order = np.argsort(ids)
    at = order[np.minimum(np.searchsorted(ids, links, sorter=order), len(ids) - 1)]
    record = read.record[at]
    wrong = ids[at] != links
    row = LINKED_ROWS * record
    if held_columns:
        held = linked.held.read(frame)
        wrong |= held // LINKED_ROWS != made.held[record]
        row += held % LINKED_ROWS
    new = made.swap_digits.write(made.swapped[read.giver[record]])
    for copy, target in entry.copies.items():
        found = _numbers(frame, copy)
        wrong |= True if found is None else found != new[target]
    times = np.bincount(row[~wrong], minlength=LINKED_ROWS * made.records)
    missing = np.count_nonzero(times != 1 if held_columns else times[::LINKED_ROWS] != LINKED_ROWS)
    old = _among(_numbers(frame, entry.id), linked.ids)
    if not held_columns or missing or np.any(wrong):
        return _LinkedSeen(int(missing + np.count_nonzero(wrong)), old)
    rows = linked.row[row]
    up = int(np.count_nonzero(np.diff(rows) > 0)) - (len(rows) - 1) / 2
    return _LinkedSeen(0, old, smallest_of([correlated(rows), of_bounded_sum(up, (len(rows) + 1) / 12)]))


def _table(released: Mapping[str, pl.DataFrame], name: str) -> pl.DataFrame:
    if name not in released:
        raise errors.audit_no_table(name, released)
    return released[name]


def _among(numbers: Integers | None, old: Integers) -> int:
    return 0 if numbers is None else int(np.count_nonzero(np.isin(numbers, old)))


def _as_numbers(ids: pl.Series, links: pl.Series) -> tuple[Integers, Integers]:
    """Ids and links to them as whole numbers; texts are numbered."""
    if ids.dtype.is_integer() and links.dtype.is_integer():
        return ids.cast(pl.Int64).to_numpy(), links.cast(pl.Int64).to_numpy()
    codes = pl.concat([ids.cast(pl.String), links.cast(pl.String)]).rank("dense").cast(pl.Int64).to_numpy()
    return codes[: len(ids)], codes[len(ids) :]


def _numbers(frame: pl.DataFrame, column: str | None) -> Integers | None:
    """A column of whole numbers; None if there is none, or if it holds anything else."""
    if column is None or column not in frame.columns:
        return None
    numbers = whole_numbers(frame[column])
    return None if numbers.null_count() else numbers.to_numpy()


DEFAULT_RECORDS, DEFAULT_RUNS = 1_200_000, 24
"""Enough to find a rate of .05 that is rounded to 13/256, and integers that are biased by 1%."""
FEWEST_RUNS, WANTED_RUNS = 2, 12
"""From so many runs on it can be seen how the number of moved records varies."""
_WITH_LINKED = 400_000
_ONE_STRATUM = (50_000, 480)
"""Records and runs of a plan without match columns: its only stratum is drawn once in a run."""
_LISTED = (120_000, 24)
"""Records and runs of each of the two files of a plan with rates by rule, merged values or rounds."""
_TRIAL = 20_000
"""Records of the first, timed run where the audit has so many seconds."""


def audit_swap(
    plan: SwapPlan,
    program: Program,
    *,
    records: int | None = None,
    runs: int | None = None,
    seconds: float | None = None,
    false_alarm: float = FALSE_ALARM,
    progress: Progress | None = None,
    source: RandomSource | None = None,
) -> Audit:
    """Run a swapping program on a made file, again and again, and compare what it draws with the law of the plan.

    Parameters
    ----------
    plan
        What the program says that it does: the role of each column, and the rate.
    program
        Gets the tables of the made file and gives released ones: ``"records"`` is the main table, linked ones have
        their names. It may raise; nothing is caught.
    records, runs
        The size of the file and how often the program is run; of each of the two files of a plan with rates by rule,
        merged values or rounds. The fewer, the larger the faults that stay unseen.
    seconds
        About how long the program may run in all; file and runs are then as large and many as that allows.
    false_alarm
        The probability of finding something wrong with a program that keeps its promise, at most.
    source
        From which the file is made. Another one than the operating system's is for tests.
    """
    require_effort(None, false_alarm)
    if runs is not None and runs < FEWEST_RUNS:
        raise errors.audit_question("The number of runs", f"must be at least {FEWEST_RUNS}")
    if seconds is not None and not seconds > 0:
        raise errors.audit_question("The number of seconds", "must be above 0")
    source, progress = source or SystemSource(), progress or Silent()
    if plan.rates or plan.coarsen or plan.rounds:
        return _audit_listed(plan, program, records, runs, seconds, false_alarm, progress, source)
    usual = _usual_effort(plan)
    if seconds is not None:
        usual = _affordable(lambda few: make_file(plan, few, source), program, seconds, usual)
    runs = usual[1] if runs is None else runs
    made = make_file(plan, usual[0] if records is None else records, source)
    plain, seen = _seen_in_runs(made, program, runs, progress)
    progress.stage("comparing with the law")
    about = (
        f"It was run {len(plain)} times on a made file of {_described(made)}, to be swapped at a rate of {plan.rate}.",
    )
    results = plain_results(made, plain)
    if len(seen) < len(plain):
        return Audit(_TITLE, tuple(results), false_alarm, len(plain), about, (_NOTHING_ELSE,))
    asked = judged(answers(SeenRuns(made, tuple(seen))), false_alarm)
    limits = _limits(Effort(made.sizes, made.rate, runs), asked)
    return Audit(_TITLE, (*results, *asked), false_alarm, runs, about, limits)


_TITLE = "Does the program draw from the law of its plan?"
_NOTHING_ELSE = "Nothing else was asked, since the first release that is not whole ends the audit."


def _seen_in_runs(
    made: MadeFile, program: Program, runs: int, progress: Progress, done: int = 0
) -> tuple[list[PlainlySeen], list[SeenRun]]:
    """What so many runs show, up to the first release that is not whole; ``done`` runs on another file came before."""
    plain: list[PlainlySeen] = []
    seen: list[SeenRun] = []
    while len(plain) < runs and len(seen) == len(plain):
        _tell(progress, done + len(plain), done + runs)
        at_once, run = look(made, program(dict(made.tables)))
        plain.append(at_once)
        seen += [run] if run is not None else []
    return plain, seen


def _tell(progress: Progress, done: int, runs: int) -> None:
    progress.stage(f"running the program: run {done + 1} of {runs}", done / runs)


def _described(made: MadeFile) -> str:
    strata = f"{len(made.sizes):,} {'strata' if len(made.sizes) > 1 else 'stratum'} of up to {made.sizes.max():,}"
    return f"{made.records:,} records in {strata}"


def _audit_listed(
    plan: SwapPlan,
    program: Program,
    records: int | None,
    runs: int | None,
    seconds: float | None,
    false_alarm: float,
    progress: Progress,
    source: RandomSource,
) -> Audit:
    """The audit of a plan with rates by rule, merged values or rounds: small strata, whose exact laws are listed, and
    then a file in which these features are idle, of which everything is asked that is asked of one rate."""
    rate_that_is_tried(plan)
    if not [name for name in plan.match if plan.coarsen is None or name != plan.coarsen.column]:
        raise errors.audit_of_plan(
            "rates by rule, merged values or rounds and no match column beside them: such a file has no small strata"
        )
    usual = usual_idle = _LISTED
    if seconds is not None:
        usual = _affordable(lambda few: make_listed(plan, few, source), program, seconds / 2, usual)
        usual_idle = _affordable(
            lambda few: make_idle(plan, few, source) or make_listed(plan, few, source), program, seconds / 2, usual_idle
        )
    made = make_listed(plan, usual[0] if records is None else records, source)
    idle = make_idle(plan, usual_idle[0] if records is None else records, source)
    runs, more = (usual[1], usual_idle[1]) if runs is None else (runs, runs)
    results, seen = _small_strata(made, program, runs, progress, more if idle else 0)
    there = [words for name, words in _FEATURES.items() if getattr(plan, name)]
    tried = " and ".join(one for one, _ in there)
    tried = " and ".join(one for one, _ in there)
    about = [
        f"It was run {len(seen)} times on a made file of {made.key.height:,} records in {len(made.sizes):,} small "
        f"strata of {len(made.types)} kinds, whose exact laws are listed. Tried: {tried}."
    ]
    if any(one.wrong for one in results):
        return Audit(_TITLE, tuple(results), false_alarm, len(seen), tuple(about), (_NOTHING_ELSE,))
    laws = Laws(made, runs)
    asked = list(listed_answers(laws, seen))
    plain: list[PlainlySeen] = []
    whole = True
    if idle is not None:
        plain, more_seen = _seen_in_runs(idle, program, more, progress, runs)
        about.append(
            f"It was run {len(plain)} times on a second file of {_described(idle)}, in which these are idle: "
            f"{', '.join(idly.format(rate=idle.rate) for _, idly in there)}."
        )
        results += plain_results(idle, plain)
        whole = len(more_seen) == len(plain)
        asked += answers(SeenRuns(idle, tuple(more_seen))) if whole else []
    progress.stage("comparing with the law")
    results_of_laws = judged(asked, false_alarm)
    limits = [*listed_limits(laws, {one.name: one.allotted for one in results_of_laws})]
    if idle is None:
        limits.append(_NO_IDLE_FILE)
    elif whole:
        limits += [*_limits(Effort(idle.sizes, idle.rate, more), results_of_laws, " in the second file"), _WHERE_IDLE]
    else:
        limits.append("Nothing else was asked of the second file, since the first release that is not whole ends that.")
    return Audit(_TITLE, (*results, *results_of_laws), false_alarm, runs + len(plain), tuple(about), tuple(limits))


def _small_strata(
    made: ListedFile, program: Program, runs: int, progress: Progress, more: int
) -> tuple[list[Result], list[list[tuple[Integers, Integers]]]]:
    """What is plainly seen in the runs on small strata, and what they show by type; ``more`` runs are to follow."""
    wrong = wrong_links = ""
    seen: list[list[tuple[Integers, Integers]]] = []
    while len(seen) < runs and not (wrong or wrong_links):
        _tell(progress, len(seen), runs + more)
        released = program(dict(made.tables))
        if missing := [name for name in made.tables if name not in released]:
            raise errors.audit_no_table(missing[0], released)
        wrong, one = made.read(released[RECORDS])
        wrong_links = "" if wrong else made.wrong_links(released)
        seen.append(one)
    kept = Result.seen(
        "kept",
        "Is every record there once with its match and held values, and has every stratum the swap values that it had?",
        bool(wrong),
        right="They are, in every run.",
        wrong=f"No: {wrong}.",
    )
    if wrong or not made.plan.linked:
        return [kept], seen
    links = Result.seen(
        "linked-in-small-strata",
        "Do linked rows stay with a record like theirs, and do copied columns follow it, whatever rules or rounds do?",
        bool(wrong_links),
        right="They do, in every run.",
        wrong=f"No: {wrong_links}.",
    )
    return [kept, links], seen


_NOT_LISTED = (
    f"Not tried: strata of more than {MOST_LISTED} records in which rules, merged values or rounds do something"
)
_WHERE_IDLE = (
    f"{_NOT_LISTED}, and whether there, too, strata and runs are independent and the order of rows and ids tells "
    "nothing: the second file alone was asked about these."
)
_NO_IDLE_FILE = (
    f"{_NOT_LISTED}, the order of rows and ids, and whether strata and runs are independent: no file could be made in "
    "which all records have one rate and later rounds move nobody. An audit of the same plan with one rate, one round "
    "and nothing merged asks about these."
)


_FEATURES = {
    "rates": ("rates by rule", "all records that can move have the rate {rate:g}"),
    "coarsen": ("merged match values", "no value is to be merged"),
    "rounds": ("later rounds", "later rounds have nobody to swap with"),
}
"""What a plan may have beyond one rate and one round, by its field; and how that is idle in the second file."""


def plan_program(plan: SwapPlan, source: RandomSource | None = None) -> Program:
    """This package's own swapper as a program: what ``stirred release`` draws for the plan."""
    from stirred.swap.drawing import draw

    from_source = source or SystemSource()

    def program(tables: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
        given = {MAIN if name == RECORDS else name: frame for name, frame in tables.items()}
        allow = ("few-change", "many-unchangeable", *_distinct(plan, tables))
        never = {"most_told": 1, "most_recovered": 1, "most_unchangeable": 1, "most_alone": None}
        drawing = plan.model_copy(update={"publish": (), "saturated": False, "allow": allow, **never})
        release = draw(drawing, given, source=from_source)
        return {name: release.frame(MAIN if name == RECORDS else name) for name in tables}

    return program


def _distinct(plan: SwapPlan, tables: Mapping[str, pl.DataFrame]) -> list[str]:
    """Allowances for held columns that identify records, or determine swap values by how few there are: in confidential
    data a check would stop there, in made data they are what is wanted."""
    own = {*plan.match, *plan.swap, *plan.drop, plan.id}
    names = [name for name in tables[RECORDS].columns if name not in own]
    for entry in plan.linked:
        other = {*plan.swap, *entry.copies, *entry.drop, entry.link, entry.id}
        names += [name for name in tables[entry.name].columns if name not in other]
    return [f"{what}:{name}" for what in ("distinct", "determines") for name in names]


# -- how much is tried ---------------------------------------------------------------------------------------


def _usual_effort(plan: SwapPlan) -> tuple[int, int]:
    if not plan.match:
        return _ONE_STRATUM
    return (_WITH_LINKED if plan.linked else DEFAULT_RECORDS), DEFAULT_RUNS


def _affordable(
    make: Callable[[int], MadeFile | ListedFile], program: Program, seconds: float, usual: tuple[int, int]
) -> tuple[int, int]:
    """How many records and runs take so many seconds, from one run on a few: first fewer runs, then smaller files."""
    trial = make(min(_TRIAL, usual[0])).tables
    began = time.monotonic()
    program(trial)
    taken = max(time.monotonic() - began, 1e-3)
    runs = int(min(usual[1], max(WANTED_RUNS, seconds / taken)))
    return int(min(usual[0], max(FEWEST_RECORDS, trial[RECORDS].height * seconds / runs / taken))), runs


def _limits(effort: Effort, asked: Sequence[Result], where: str = "") -> tuple[str, ...]:
    allotted = {one.name: one.allotted for one in asked}
    off, bias = smallest_rate(effort, allotted["rate"]), smallest_bias(effort, allotted["integers"])
    biased = f"integers of a shuffle that fall {100 * bias:.2g}% too often into the lower half"
    return (
        f"With probability .999 this audit finds{where} a rate that is off by {off:.2g} (of {effort.rate:g})"
        + (f", and {biased}." if bias < 1 else "; it is too small to find any bias of integers."),
        "Smaller faults, and seeds that are chosen among more than the square of the number of runs, are beyond any "
        "such audit: they need a proof of the sampler, or a look at the machine that runs it.",
    )
