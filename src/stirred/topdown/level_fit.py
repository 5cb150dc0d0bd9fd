"""Fit the children of all parents of a level to their measurements, with a certificate for each parent.

The objective, its constraints and the certificate are those of :mod:`stirred.topdown.fit_kernel`. Parents are fitted in
chunks, each chunk in one compiled call on any free thread; measured values are read where they are.

The invariant a reader must know: what is fitted to a parent depends on that parent's histogram, measurements and
constraints alone, never on chunks, threads or its place among the parents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import withheld
from stirred.topdown import fit_kernel, layout
from stirred.topdown.problems import Bounds, Histograms, LevelProblem, kappa, separates

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

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


def fit_level(
    problem: LevelProblem, *, gap: float = 1e-6, most_sweeps: int = 10_000, threads: int = THREADS
) -> LevelFit:
    """Fit all children of a level: nonnegative, adding up to their parents, zero where not allowed, within bounds.

    Roots (a problem without parents) are fitted to their measurements alone. A parent stops when its certificate is at
    most ``gap`` and no bound is broken by more than :data:`VIOLATION`, or after ``most_sweeps``.

    Where no measured query separates all cells the minimum is not unique. Then a ridge of weight :data:`RIDGE` times
    the sum of weights draws each cell to its parent's count times the child's share of the total as measured (by the
    query that measures it best), and the result says so.

    >>> from stirred.topdown.problems import Measured
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
    in_threads(
        lambda first, last: _fit_chunk(problem, support, objective, fit, first, last, gap, most_sweeps), chunks, threads
    )
    return fit


def in_threads(work: Callable[[int, int], None], chunks: Iterable[tuple[int, int]], threads: int) -> None:
    """Do ``work(first, last)`` for each chunk, on several threads; compiled code runs without the interpreter lock."""
    listed = list(chunks)
    if threads < 2 or len(listed) < 2:
        for first, last in listed:
            work(first, last)
        return
    with ThreadPoolExecutor(min(threads, len(listed))) as pool:
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
    starts = support.starts[first : last + 1]
    cells = support.cells[starts[0] : starts[-1]]
    counts = support.counts[starts[0] : starts[-1]]
    first_child = problem.first_child[first : last + 1]
    x_starts = fit.starts[first : last + 1]

    rows, row_starts, row_groups, offsets = _rows(starts, cells, objective.families, problem.cells, first_child)
    residuals = np.empty(int(offsets[-1]))
    for family, query in enumerate(problem.measured):
        layout.gather(query.values, family, row_starts, row_groups, first_child, offsets, -1.0, residuals)
    if fit.ridge:
        within = (row_starts[:, -2] - row_starts[:, 0]) * np.diff(first_child)
        layout.spread(objective.shares, starts, counts, first_child, offsets[:-1] + within, residuals)

    bound_rows, bound_row_starts, bound_groups, bound_offsets = _rows(
        starts, cells, [bound.groups for bound in problem.bounds], problem.cells, first_child
    )
    lower, upper = np.empty(int(bound_offsets[-1])), np.empty(int(bound_offsets[-1]))
    for family, bound in enumerate(problem.bounds):
        place = (family, bound_row_starts, bound_groups, first_child)
        layout.gather(bound.lower, *place, bound_offsets, 1.0, lower)
        layout.gather(bound.upper, *place, bound_offsets, 1.0, upper)

    found = fit_kernel.Certificates(
        fit.gap[first:last], fit.violation[first:last], fit.sweeps[first:last], fit.converged[first:last]
    )
    fit_kernel.fit_parents(
        layout.Parents(starts, cells, counts, first_child, x_starts),
        problem.parents is None,
        fit.values,
        opened_entries(problem, starts, cells, first_child, x_starts),
        fit_kernel.Queries(rows, row_starts, offsets, residuals, objective.weights, objective.separating),
        fit_kernel.Limits(bound_rows, bound_row_starts, bound_offsets, lower, upper, objective.bound_weights),
        fit_kernel.Stopping(gap, VIOLATION, most_sweeps),
        found,
    )
    for family, bound in enumerate(problem.bounds):
        layout.unmet(
            bound.lower, family, bound_row_starts, bound_groups, first_child, found.violations, found.converged
        )


def _bound_weight(bound: Bounds, problem: LevelProblem) -> float:
    """The weight of a bound in the augmented Lagrangian: the larger, the slower sweeps and the faster multipliers.

    Measured: the geometric mean of all weights and of those that tell the bound's groups apart, which is the
    objective's own curvature along the bounded sums, does well from kappa 1 to 600.
    """
    refining = sum(query.typical_weight for query in problem.measured if _refines(query.groups, bound.groups))
    everything = sum(query.typical_weight for query in problem.measured)
    return float(np.sqrt(refining * everything)) or everything


def _refines(fine: NDArray[np.int32], coarse: NDArray[np.int32]) -> bool:
    """Whether every group of ``fine`` lies in one group of ``coarse``, or outside all of them; not if it leaves cells
    out."""
    if fine.min() < 0:
        return False
    of_group = np.empty(int(fine.max()) + 1, dtype=np.int32)
    of_group[fine] = coarse
    return bool(np.array_equal(of_group[fine], coarse))


def _rows(
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    families: list[NDArray[np.int32]],
    all_cells: int,
    first_child: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Rows of the families' groups in each parent of a chunk, and where the parent's block (row, child) begins."""
    groups = np.stack(families) if families else np.empty((0, all_cells), dtype=np.int32)
    rows = np.empty((len(cells), len(families)), dtype=np.int32)
    row_starts = np.zeros((len(starts) - 1, len(families) + 1), dtype=np.int64)
    row_groups = np.empty(len(cells) * len(families), dtype=np.int32)
    layout.lay_out(starts, cells, groups, rows, row_starts, row_groups)
    sizes = (row_starts[:, -1] - row_starts[:, 0]) * np.diff(first_child)
    return rows, row_starts, row_groups, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def opened_entries(
    problem: LevelProblem,
    starts: NDArray[np.int64],
    cells: NDArray[np.int32],
    first_child: NDArray[np.int64],
    x_starts: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which entries (cell, child) of a chunk may be positive; empty where all may."""
    capped = [bound for bound in problem.bounds if bool(np.any(bound.upper[first_child[0] : first_child[-1]] <= 0))]
    if not problem.allowed and not capped:
        return np.empty(0, dtype=np.bool_)
    opened = np.ones(int(x_starts[-1] - x_starts[0]), dtype=np.bool_)
    for mask in problem.allowed:
        layout.close(mask.groups, mask.allowed, starts, cells, first_child, x_starts, opened)
    for bound in capped:
        layout.close_bounded(bound.groups, bound.upper, starts, cells, first_child, x_starts, opened)
    return opened
