"""The fit of each level beside OSQP, on the same parents and measurements.

The problems are those of a run with one pass and nothing but nonnegativity and the parents' counts to keep: OSQP meets
constraints only within its tolerance, so objectives could not be compared beside other bounds. OSQP gets the parent's
positive cells only, residuals as variables of their own, a tolerance of 1e-4 and one thread, and is timed from setup to
solution, without the time to build its matrices. Its point is projected on the simplices before its objective is taken.
Ours is timed on one thread for all parents of a level, layout of its arrays included. Times are processor time of that
thread, and OSQP follows us chunk by chunk, since others may use the machine. What takes less than a tenth of a second
is done three times, theirs and ours, and the quickest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import osqp
import scipy.sparse as sp

from stirred._progress import shown_by
from stirred.noise import SeededSource
from stirred.topdown.data.constraints import Known
from stirred.topdown.data.counting import count_tables
from stirred.topdown.fitting.level_problem import LevelProblem
from stirred.topdown.fitting.one_level import LevelFit, fit_level
from stirred.topdown.fitting.table_fit import fit_table
from stirred.topdown.measuring import Measurements, measure
from stirred.topdown.plan.fields import TopDownPlan
from topdown import inputs

One = TypeVar("One")

SAMPLE = 25
"""Parents of a chunk that OSQP is given."""

TOLERANCE, TIME_LIMIT = 1e-4, 20.0
NO_WORSE = 1e-6
"""What the gap that we stop at leaves open."""


@dataclass(frozen=True)
class Compared:
    """OSQP on one parent, and its objective beside ours."""

    seconds: float
    stopped: bool
    excess: float
    ours_worse: bool


@dataclass
class Level:
    """What was met at one level: all parents by us, some by OSQP."""

    parents: int = 0
    variables: int = 0
    seconds: float = 0.0
    worst_gap: float = 0.0
    theirs: list[Compared] = field(default_factory=list)


def beside_osqp(name: str, plan_path: Path, folder: Path) -> str:
    """A table with a row for each level."""
    whole = TopDownPlan.from_toml(plan_path)
    counted = count_tables(whole, inputs(whole, folder))
    persons = whole.table("persons").model_copy(update={"zeros": ()})
    plain = whole.model_copy(update={"passes": "one", "tables": (persons,), "invariants": (), "constraints": ()})
    measurements = folder / "measurements"
    measurements.mkdir()
    measure(counted, measurements, SeededSource(1))
    levels: dict[str, dict[str, Level]] = {}
    for kind, plan in (("plain", plain), ("whole", whole)):
        known = Known.of(counted) if plan is whole else Known(plain, counted.spine, ())
        with recorded(sampling=plan is plain) as met, shown_by(met):
            fit_table(known, Measurements(measurements), plan.table("persons"))
        levels[kind] = met.levels
    lines = [
        f"{name}: ours beside OSQP {osqp.__version__}, one thread each.\n",
        "| level | parents | variables a parent | ours a parent | OSQP a parent | ratio | excess of OSQP's objective, "
        "mean and largest | ours worse | our largest gap | ours with all passes and constraints, a parent |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for level, one in levels["plain"].items():
        theirs = one.theirs
        times = np.array([each.seconds for each in theirs])
        seconds, error = times.mean(), times.std() / max(1, len(times) - 1) ** 0.5
        if len(times) == one.parents:
            error = 0.0
        capped = sum(each.stopped for each in theirs)
        finished = np.array([each.excess for each in theirs if not each.stopped])
        excess = f"{finished.mean():.1e}, {finished.max():.1e}" if len(finished) else "none finished"
        ours = one.seconds / one.parents
        lines.append(
            f"| {level} | {one.parents:,} | {one.variables / one.parents:,.0f} | {1e3 * ours:.3f} ms "
            f"| {1e3 * seconds:,.1f}{f' ± {1e3 * error:,.1f}' if error else ''} ms of {len(theirs)}"
            f"{f', {capped} stopped' if capped else ''} "
            f"| {'over ' if capped else ''}{seconds / ours:,.0f} | {excess} "
            f"| {sum(each.ours_worse for each in theirs)} of {len(theirs)} | {one.worst_gap:.1e} "
            f"| {1e3 * levels['whole'][level].seconds / one.parents:.3f} ms |"
        )
    lines.append(
        f"\nOSQP is stopped after {TIME_LIMIT:.0f} s; the excess is that of the others. After ± stands the standard "
        "error of the sampled parents' mean. Ours is worse where a point of OSQP's, finished or stopped, has an "
        "objective that is smaller by more than the gap we stop at."
    )
    return "\n".join(lines)


def quickest(job: Callable[[], One]) -> tuple[One, float]:
    """What a job gives, and its seconds of processor time."""
    times = []
    while not times or (times[0] < 0.1 and len(times) < 3):
        began = time.thread_time()
        found = job()
        times.append(time.thread_time() - began)
    return found, min(times)


# -- ours ------------------------------------------------------------------------------------------------------------


class _Met:
    """Told which level is fitted, and keeps what was met there."""

    def __init__(self) -> None:
        self.levels: dict[str, Level] = {}
        self.here = Level()

    def stage(self, words: str, *_: Any) -> None:
        if words.startswith("fitting"):
            self.here = self.levels.setdefault(words.split("'")[1], Level())


@contextmanager
def recorded(sampling: bool) -> Iterator[_Met]:
    """While this lasts, the driver's fits run on one thread and are timed, and some of their parents are kept."""
    met, generator = _Met(), np.random.default_rng(1)

    def timed(problem: LevelProblem) -> LevelFit:
        fit, seconds = quickest(lambda: fit_level(problem))
        here = met.here
        here.seconds += seconds
        here.worst_gap = max(here.worst_gap, float(fit.gap.max()))
        if sampling:
            here.parents += len(fit.gap)
            here.variables += len(fit.values)
            chosen = np.sort(generator.permutation(len(fit.gap))[:SAMPLE])
            for parent in chosen.tolist():
                only = problem.of_parents(np.array([parent]))
                here.theirs.append(compared(only, fit_level(only)))
        return fit

    fit_level(_tiny())  # compiled kernels come from their cache
    with mock.patch("stirred.topdown.fitting.table_fit.fit_level", timed):
        yield met


def _tiny() -> LevelProblem:
    from stirred.topdown.data.histograms import Histograms
    from stirred.topdown.fitting.level_problem import Measured

    each = Measured(np.arange(2, dtype=np.int32), 1.0, np.array([[4, -3], [1, 9]]))
    return LevelProblem(Histograms.from_dense(np.array([[7, 5]])), np.array([0, 2]), 2, (each,))


# -- OSQP ------------------------------------------------------------------------------------------------------------


def compared(problem: LevelProblem, fit: LevelFit) -> Compared:
    """Give one parent to OSQP."""
    cells, counts = problem.support.cells, problem.support.counts
    width = int(problem.first_child[-1])
    free = problem.parents is None
    if len(cells) == 0:
        return Compared(0.0, False, 0.0, False)
    sums, targets, weights = _queries(problem, cells)
    n, m = len(cells) * width, len(targets)
    each = sp.identity(width, format="csc")
    across = sp.kron(sp.identity(len(cells)), np.ones((1, width)))
    blocks = [
        [sp.kron(sums, each), -sp.identity(m)],
        *([] if free else [[across, None]]),
        [sp.identity(n), None],
    ]
    matrix = sp.bmat(blocks, format="csc")
    fixed = np.concatenate([targets, *([] if free else [counts.astype(float)])])
    lower = np.concatenate([fixed, np.zeros(n)])
    upper = np.concatenate([fixed, np.full(n, np.inf)])
    quadratic = sp.diags(np.concatenate([np.zeros(n), weights]), format="csc")

    def solve() -> Any:
        solver = osqp.OSQP()
        solver.setup(
            quadratic, np.zeros(n + m), matrix, lower, upper,
            eps_abs=TOLERANCE, eps_rel=TOLERANCE, max_iter=1_000_000, time_limit=TIME_LIMIT, verbose=False,
        )  # fmt: skip
        return solver.solve()

    result, seconds = quickest(solve)
    stopped = result.info.status != "solved"

    def objective(table: Any) -> float:
        return float(0.5 * np.sum(weights * (sums @ table - targets.reshape(-1, width)).ravel() ** 2))

    point = np.asarray(result.x[:n]).reshape(-1, width)
    assert bool(np.isfinite(point).all()), result.info.status
    theirs = objective(np.maximum(point, 0.0) if free else _on_simplices(point, counts))
    ours = objective(fit.values.reshape(-1, width))
    worse = ours > theirs + NO_WORSE + 1e-12 * theirs
    return Compared(seconds, stopped, (theirs - ours) / max(ours, 1.0), worse)


def _queries(problem: LevelProblem, cells: Any) -> tuple[Any, Any, Any]:
    """Sums over the groups that occur (a row for each), measured values and weights by row and child."""
    width = int(problem.first_child[-1])
    sums, targets, weights = [], [], []
    for query in problem.measured:
        present, row = np.unique(query.groups[cells], return_inverse=True)
        sums.append(sp.csc_matrix((np.ones(len(cells)), (row, np.arange(len(cells))))))
        targets.append(query.values[:, present].T.astype(float).ravel())
        weights.append(np.tile(np.broadcast_to(query.weight, width), len(present)))
    return sp.vstack(sums, format="csr"), np.concatenate(targets), np.concatenate(weights)


def _on_simplices(table: Any, totals: Any) -> Any:
    """The nearest rows that are nonnegative and add up, by sorting."""
    width = table.shape[1]
    ordered = -np.sort(-table, axis=1)
    thresholds = (np.cumsum(ordered, axis=1) - totals[:, None]) / np.arange(1, width + 1)
    support = np.count_nonzero(ordered > thresholds, axis=1)
    return np.maximum(table - thresholds[np.arange(len(table)), support - 1][:, None], 0.0)
