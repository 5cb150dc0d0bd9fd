"""Fits the children of all parents of a level to their measurements, and rounds them to integers, with a certificate.

The objective, its constraints and the certificate are those of :mod:`stirred.topdown.fitting.fit_kernel`. Parents are
fitted in chunks, each chunk in one compiled call on any free thread; measured values are read where they are.

Rounding keeps every constraint and stays within 1 of the fit wherever possible. Cells add up to the parent's counts,
closed entries are zero and declared bounds hold, exactly; besides, the sum over each group of a *chain* of ever finer
partitions lies between floor and ceiling of its fitted value. Among all such integers one is taken that is nearest to
the fit in the sum of absolute differences. This is a flow on a tree for each child
(:mod:`stirred.topdown.fitting.rounding_kernel`), so it needs groups that are nested, one in another, for bounds and
chain together.

The invariant a reader must know: what is fitted to a parent depends on that parent's histogram, measurements and
constraints alone, never on chunks, threads or its place among the parents. Nothing here is random, and ties are broken
by the order of cells and children.

The kernels of fit and rounding take most of the time that compiling takes on the first run on a machine, and one
process compiles one at a time. So the command line has that of rounding compiled in a process of its own, while the
data are read; in a Python program kernels are compiled when they are needed.
"""

from __future__ import annotations

import os
import subprocess  # nosec B404 # runs this Python on a fixed program, see below
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import said_to_compile
from stirred._display import withheld
from stirred._threads import thread_count, thread_pool
from stirred.margins.schema import refines
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.fitting import fit_kernel, level_problem, rounding_kernel
from stirred.topdown.fitting.level_problem import (
    UNBOUNDED,
    Bounds,
    LevelProblem,
    Measured,
    Nest,
    kappa,
    nested,
    separates,
)
from stirred.topdown.fitting.rounding_kernel import FREED, IMPOSSIBLE, WIDENED

VIOLATION = 1e-4
"""By how many persons a fit may break a bound; rounding keeps it exactly."""

RIDGE = 1e-3
"""Weight, relative to the sum of all, that draws to the parent's own pattern where no query separates all cells."""

CHUNK_ENTRIES = 1 << 22
"""Residuals and variables that a chunk holds at a time; one parent may need more."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class LevelFit:
    """Real-valued histograms of the children, with what is certified about them.

    The values of parent p are ``values[starts[p]:starts[p + 1]]``: a row for each of its positive cells (for each cell
    of a root), a column for each child. ``gap`` bounds how far the objective is above its minimum; ``violation`` is the
    most by which a bound is broken. ``ridge`` is the weight of the ridge, 0 if there is none.
    """

    values: NDArray[np.float64]
    starts: NDArray[np.int64]
    gap: NDArray[np.float64]
    violation: NDArray[np.float64]
    sweeps: NDArray[np.int32]
    converged: NDArray[np.bool_]
    kappa: float
    ridge: float


def fit_level(problem: LevelProblem, *, gap: float = 1e-6, most_sweeps: int = 10_000) -> LevelFit:
    """Fit all children of a level: nonnegative, adding up to their parents, zero where not allowed, within bounds.

    Roots (a problem without parents) are fitted to their measurements alone. A parent stops when its certificate is at
    most ``gap`` and no bound is broken by more than :data:`VIOLATION`, or after ``most_sweeps``.

    Where no measured query separates all cells the minimum is not unique. Then a ridge of weight :data:`RIDGE` times
    the sum of weights draws each cell to its parent's count times the child's share of the total as measured (by the
    query that measures it best), and the result says so.

    >>> from stirred.topdown.fitting.level_problem import Measured
    >>> each = Measured(np.arange(2, dtype=np.int32), 1.0, np.array([[4, -3], [1, 9]]))
    >>> problem = LevelProblem(Histograms.from_dense(np.array([[7, 5]])), np.array([0, 2]), 2, (each,))
    >>> fit_level(problem).values.reshape(2, 2)  # a row for each cell
    array([[5., 2.],
           [0., 5.]])
    """
    if not gap > 0:
        raise errors.parameter_out_of_range("gap", gap, "above 0")
    if most_sweeps < 1:
        raise errors.parameter_out_of_range("most_sweeps", most_sweeps, "1 or more")
    support = problem.support
    sizes = np.diff(support.starts) * np.diff(problem.first_child)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    condition = kappa(problem.measured)
    ridge = 0.0 if np.isfinite(condition) else RIDGE * sum(query.typical_weight for query in problem.measured)
    fit = LevelFit(
        np.zeros(int(starts[-1])),
        starts,
        np.zeros(support.units),
        np.zeros(support.units),
        np.zeros(support.units, dtype=np.int32),
        np.ones(support.units, dtype=np.bool_),
        condition,
        ridge,
    )
    objective = _objective(problem, ridge)
    chunks = chunks_of(sizes * (1 + len(problem.measured) + len(problem.bounds)))
    in_threads(lambda first, last: _fit_chunk(problem, support, objective, fit, first, last, gap, most_sweeps), chunks)
    return fit


def _chunk(problem: LevelProblem, support: Histograms, fit: LevelFit, first: int, last: int) -> level_problem.Parents:
    """The part of a problem that is about the parents from ``first`` up to ``last``."""
    starts = support.starts[first : last + 1]
    held = slice(starts[0], starts[-1])
    edges = slice(first, last + 1)
    return level_problem.Parents(
        starts, support.cells[held], support.counts[held], problem.first_child[edges], fit.starts[edges]
    )


def in_threads(work: Callable[[int, int], None], chunks: Iterable[tuple[int, int]]) -> None:
    """Do ``work(first, last)`` for each chunk, on several threads; compiled code runs without the interpreter lock."""
    listed = list(chunks)
    if len(listed) < 2 or thread_count() < 2:
        for first, last in listed:
            work(first, last)
        return
    with thread_pool(len(listed)) as pool:
        for done in [pool.submit(work, first, last) for first, last in listed]:
            done.result()


def chunks_of(costs: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of parents of bounded cost, whatever the number of threads."""
    most = max(1, min(CHUNK_ENTRIES, int(costs.sum()) // 16))
    first, held = 0, 0
    for parent, cost in enumerate(costs.tolist()):
        if parent > first and held + cost > most:
            yield first, parent
            first, held = parent, 0
        held += cost
    if first < len(costs):
        yield first, len(costs)


@dataclass(frozen=True, eq=False, repr=False)
class _Objective:
    """What all parents have in common: the queries' groups and weights, with the ridge as one more query."""

    families: list[NDArray[np.int32]]
    weights: NDArray[np.float64]
    """A row for each query; a column for each unit, or one for all."""
    separating: NDArray[np.bool_]
    bound_weights: NDArray[np.float64]
    shares: NDArray[np.float64]


def _objective(problem: LevelProblem, ridge: float) -> _Objective:
    families = [query.groups for query in problem.measured]
    weights = [np.atleast_1d(np.asarray(query.weight, dtype=np.float64)) for query in problem.measured]
    if ridge:
        families.append(np.arange(problem.cells, dtype=np.int32))
        weights.append(np.array([ridge]))
    return _Objective(
        families,
        np.ascontiguousarray(np.stack(np.broadcast_arrays(*weights))),
        np.array([separates(groups) for groups in families]),
        np.array([_bound_weight(bound, problem) for bound in problem.bounds], dtype=np.float64),
        _shares(problem) if ridge else np.zeros(0),
    )


def _shares(problem: LevelProblem) -> NDArray[np.float64]:
    """Each child's share of its parent's total, by the query that measures totals with the smallest variance.

    A root has no parent: its share is its own total, spread evenly over the cells. Queries that leave cells out tell no
    total; where there are no others, shares are even.
    """
    whole = [query for query in problem.measured if query.groups.min() >= 0]
    totals: NDArray[np.float64] = np.zeros(int(problem.first_child[-1]))
    if whole:
        best = min(whole, key=lambda query: query.values.shape[1] / query.typical_weight)
        totals = np.maximum(best.values.sum(axis=1, dtype=np.float64), 0.0)
    if problem.parents is None:
        return totals / problem.cells
    widths = np.diff(problem.first_child)
    sums = np.repeat(np.add.reduceat(totals, problem.first_child[:-1]), widths)
    even = 1.0 / np.repeat(widths, widths)
    return np.asarray(np.where(sums > 0, totals / np.maximum(sums, 1.0), even))


def _fit_chunk(
    problem: LevelProblem,
    support: Histograms,
    objective: _Objective,
    fit: LevelFit,
    first: int,
    last: int,
    gap: float,
    most_sweeps: int,
) -> None:
    """Fit the parents from ``first`` up to ``last``, writing into ``fit``."""
    parents = _chunk(problem, support, fit, first, last)
    first_child = parents.first_child
    rows, row_starts, row_groups, offsets = _rows(parents, objective.families, problem.cells)
    residuals = np.empty(int(offsets[-1]))
    for family, query in enumerate(problem.measured):
        level_problem.gather(query.values, family, row_starts, row_groups, first_child, offsets, -1.0, residuals)
    if fit.ridge:
        within = (row_starts[:, -2] - row_starts[:, 0]) * np.diff(first_child)
        level_problem.spread(
            objective.shares, parents.starts, parents.counts, first_child, offsets[:-1] + within, residuals
        )

    families = [bound.groups for bound in problem.bounds]
    bound_rows, bound_row_starts, bound_groups, bound_offsets = _rows(parents, families, problem.cells)
    lower, upper = np.empty(int(bound_offsets[-1])), np.empty(int(bound_offsets[-1]))
    for family, bound in enumerate(problem.bounds):
        place = (family, bound_row_starts, bound_groups, first_child)
        level_problem.gather(bound.lower, *place, bound_offsets, 1.0, lower)
        level_problem.gather(bound.upper, *place, bound_offsets, 1.0, upper)

    found = fit_kernel.Certificates(
        fit.gap[first:last], fit.violation[first:last], fit.sweeps[first:last], fit.converged[first:last]
    )
    fit_kernel.fit_parents(
        parents,
        problem.parents is None,
        fit.values,
        opened_entries(problem, parents),
        fit_kernel.Queries(rows, row_starts, offsets, residuals, objective.weights, objective.separating),
        fit_kernel.Limits(bound_rows, bound_row_starts, bound_offsets, lower, upper, objective.bound_weights),
        fit_kernel.Stopping(gap, VIOLATION, most_sweeps),
        found,
    )
    for family, bound in enumerate(problem.bounds):
        level_problem.unmet(
            bound.lower, family, bound_row_starts, bound_groups, first_child, found.violations, found.converged
        )


def _bound_weight(bound: Bounds, problem: LevelProblem) -> float:
    """The weight of a bound in the augmented Lagrangian: the larger, the slower sweeps and the faster multipliers.

    Measured: the geometric mean of all weights and of those that tell the bound's groups apart, which is the
    objective's own curvature along the bounded sums, does well from kappa 1 to 600.
    """
    refining = sum(query.typical_weight for query in problem.measured if refines(query.groups, bound.groups))
    everything = sum(query.typical_weight for query in problem.measured)
    return float(np.sqrt(refining * everything)) or everything


def _rows(
    parents: level_problem.Parents, families: list[NDArray[np.int32]], all_cells: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Rows of the families' groups in each parent of a chunk, and where the parent's block (row, child) begins."""
    starts, cells = parents.starts, parents.cells
    groups = np.stack(families) if families else np.empty((0, all_cells), dtype=np.int32)
    rows = np.empty((len(cells), len(families)), dtype=np.int32)
    row_starts = np.zeros((len(starts) - 1, len(families) + 1), dtype=np.int64)
    row_groups = np.empty(len(cells) * len(families), dtype=np.int32)
    level_problem.lay_out(starts, cells, groups, rows, row_starts, row_groups)
    sizes = (row_starts[:, -1] - row_starts[:, 0]) * np.diff(parents.first_child)
    return rows, row_starts, row_groups, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def opened_entries(problem: LevelProblem, parents: level_problem.Parents) -> NDArray[np.bool_]:
    """Which entries (cell, child) of a chunk may be positive; empty where all may."""
    units = slice(parents.first_child[0], parents.first_child[-1])
    masks = [(mask.groups, mask.allowed[units]) for mask in problem.allowed]
    masks += [(bound.groups, some) for bound in problem.bounds if not (some := bound.upper[units] > 0).all()]
    opened = np.ones(int(parents.x_starts[-1] - parents.x_starts[0]) if masks else 0, dtype=np.bool_)
    for groups, allowed in masks:
        level_problem.close(groups, allowed, *parents, opened)
    return opened


_FOLDER = Path(__file__).parent
_PROGRAM = "from stirred.topdown.fitting.one_level import compile_kernel; compile_kernel()"
_process: subprocess.Popen[bytes] | None = None


def start_compiling() -> None:
    """Begin to compile, unless the compiled kernel is in numba's cache beside the source, or cannot be put there."""
    global _process
    cache = _FOLDER / "__pycache__"
    elsewhere = "NUMBA_CACHE_DIR" in os.environ or not os.access(_FOLDER, os.W_OK)
    if _process is not None or elsewhere or any(cache.glob("rounding_kernel.round_parents-*.nbi")):
        return
    try:
        _process = subprocess.Popen(  # nosec B603 # no shell, and no argument from outside
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except OSError:  # the kernel is then compiled when it is needed
        return


def wait_for_compiled() -> None:
    """Wait until the kernel is in the cache, if it is being compiled. Where that failed, it is compiled here."""
    if _process is not None and _process.poll() is None:
        with said_to_compile():
            _process.wait()


REASONS = {
    WIDENED: "no integers between floor and ceiling keep the constraints; 1 further off",
    FREED: "no integers within 1 of floor and ceiling keep the constraints; the nearest that do",
    IMPOSSIBLE: "no integers keep the constraints",
}


@dataclass(frozen=True, eq=False, repr=False)
class RoundingReport:
    """How each parent was rounded: ``stages[parent]`` is 0 where within floor and ceiling, else one of ``REASONS``.

    ``distance`` is the sum of absolute differences between integers and fit, for each parent.
    """

    stages: NDArray[np.int8]
    distance: NDArray[np.float64]

    @property
    def infeasible(self) -> NDArray[np.int64]:
        """Parents with no integers that keep the constraints; their children are left empty."""
        return np.flatnonzero(self.stages == IMPOSSIBLE).astype(np.int64)

    @property
    def fallbacks(self) -> tuple[tuple[int, str], ...]:
        """Every parent that was not rounded between floor and ceiling, and why."""
        return tuple((int(parent), REASONS[int(self.stages[parent])]) for parent in np.flatnonzero(self.stages))


def round_level(
    problem: LevelProblem, fit: LevelFit, chain: tuple[NDArray[np.int32], ...]
) -> tuple[Histograms, RoundingReport]:
    """Integer histograms of all children, and how each parent fared.

    ``chain`` are nested partitions of the cells, such as all cells, then by one attribute, then by two.

    >>> from stirred.topdown.fitting.one_level import fit_level
    >>> from stirred.topdown.fitting.level_problem import Measured
    >>> each = Measured(np.arange(3, dtype=np.int32), 1.0, np.array([[1, 1, 1], [0, 0, 0]]))
    >>> problem = LevelProblem(Histograms.from_dense(np.array([[2, 2, 2]])), np.array([0, 2]), 3, (each,))
    >>> children, report = round_level(problem, fit_level(problem), (np.zeros(3, dtype=np.int32),))
    >>> children.dense(3).tolist(), report.distance
    ([[1, 2, 2], [1, 0, 0]], array([3.]))
    """
    wait_for_compiled()
    support = problem.support
    nest = nested(problem.cells, chain, problem.bounds)
    rounded = np.zeros(len(fit.values), dtype=np.int64)
    stages = np.zeros(support.units, dtype=np.int8)
    in_threads(
        lambda first, last: _round_chunk(problem, support, fit, nest, first, last, rounded, stages),
        chunks_of(np.diff(fit.starts)),
    )
    sizes = np.diff(fit.starts)
    # Added one by one: what reduceat makes of a parent depends, to a bit, on what comes after it.
    distance = np.bincount(np.repeat(np.arange(len(sizes)), sizes), np.abs(rounded - fit.values), len(sizes))
    report = RoundingReport(stages, distance.astype(np.float64))
    return _children(problem, support, fit, rounded), report


def compile_kernel() -> None:
    """Round one child of one parent, so that the kernel is compiled and its compiled form is in the cache."""
    each = Measured(np.zeros(1, dtype=np.int32), 1.0, np.array([[1]]))
    problem = LevelProblem(Histograms.from_dense(np.array([[1]])), np.array([0, 1]), 1, (each,))
    none, whole = np.zeros(1), np.zeros(1, dtype=np.int32)
    fit = LevelFit(np.ones(1), np.array([0, 1]), none, none, whole, np.ones(1, dtype=np.bool_), 1.0, 0.0)
    round_level(problem, fit, (whole,))


def _round_chunk(
    problem: LevelProblem,
    support: Histograms,
    fit: LevelFit,
    nest: Nest,
    first: int,
    last: int,
    rounded: NDArray[np.int64],
    stages: NDArray[np.int8],
) -> None:
    """Round the parents from ``first`` up to ``last``."""
    parents = _chunk(problem, support, fit, first, last)
    units = slice(int(parents.first_child[0]), int(parents.first_child[-1]))
    bounded = int(nest.columns.max(initial=-1)) + 1
    lower = np.zeros((units.stop - units.start, bounded), dtype=np.int64)
    upper = np.full_like(lower, UNBOUNDED)
    for bound, places in zip(problem.bounds, nest.places, strict=True):
        present = places >= 0
        at = places[present]
        lower[:, at] = np.maximum(lower[:, at], bound.lower[units][:, present])
        upper[:, at] = np.minimum(upper[:, at], bound.upper[units][:, present])
    rounding_kernel.round_parents(
        parents,
        problem.parents is None,
        fit.values,
        opened_entries(problem, parents),
        rounding_kernel.Nesting(nest.leaves, nest.above, nest.in_chain, nest.columns, lower, upper),
        rounded,
        stages[first:last],
    )


def _children(problem: LevelProblem, support: Histograms, fit: LevelFit, rounded: NDArray[np.int64]) -> Histograms:
    """The children's positive cells, from entries by parent, cell and child."""
    entries = np.flatnonzero(rounded)
    parent = np.searchsorted(fit.starts, entries, side="right") - 1
    row, column = np.divmod(entries - fit.starts[parent], np.diff(problem.first_child)[parent])
    child = problem.first_child[parent] + column
    order = np.argsort(child, kind="stable")  # the cells of each child are in their order already
    starts = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=int(problem.first_child[-1])))])
    cells = support.cells[support.starts[parent] + row]
    return Histograms(starts.astype(np.int64), cells[order], rounded[entries][order])
