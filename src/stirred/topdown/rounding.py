"""Turn the fit of a level into integers that keep every constraint and stay within 1 of it wherever possible.

Cells add up to the parent's counts, closed entries are zero and declared bounds hold, exactly; besides, the sum over
each group of a *chain* of ever finer partitions lies between floor and ceiling of its fitted value. Among all such
integers one is taken that is nearest to the fit in the sum of absolute differences. This is a flow on a tree for each
child (:mod:`stirred.topdown.rounding_kernel`), so it needs groups that are nested, one in another, for bounds and chain
together.

The invariant a reader must know: nothing here is random, and ties are broken by the order of cells and children.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.topdown import compiling, layout, rounding_kernel
from stirred.topdown.level_fit import THREADS, LevelFit, chunks_of, in_threads, opened_entries
from stirred.topdown.nests import Nest, nested
from stirred.topdown.problems import UNBOUNDED, Histograms, LevelProblem, Measured
from stirred.topdown.rounding_kernel import FREED, IMPOSSIBLE, WIDENED

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
    problem: LevelProblem, fit: LevelFit, chain: tuple[NDArray[np.int32], ...], *, threads: int = THREADS
) -> tuple[Histograms, RoundingReport]:
    """Integer histograms of all children, and how each parent fared.

    ``chain`` are nested partitions of the cells, such as all cells, then by one attribute, then by two.

    >>> from stirred.topdown.level_fit import fit_level
    >>> from stirred.topdown.problems import Measured
    >>> each = Measured(np.arange(3, dtype=np.int32), 1.0, np.array([[1, 1, 1], [0, 0, 0]]))
    >>> problem = LevelProblem(Histograms.from_dense(np.array([[2, 2, 2]])), np.array([0, 2]), 3, (each,))
    >>> children, report = round_level(problem, fit_level(problem), (np.zeros(3, dtype=np.int32),))
    >>> children.dense(3).tolist(), report.distance
    ([[1, 2, 2], [1, 0, 0]], array([3.]))
    """
    compiling.wait()
    support = problem.support
    nest = nested(problem.cells, chain, problem.bounds)
    rounded = np.zeros(len(fit.values), dtype=np.int64)
    stages = np.zeros(support.units, dtype=np.int8)
    in_threads(
        lambda first, last: _round_chunk(problem, support, fit, nest, first, last, rounded, stages),
        chunks_of(np.diff(fit.starts)),
        threads,
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
    round_level(problem, fit, (whole,), threads=1)


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
    starts = support.starts[first : last + 1]
    cells = support.cells[starts[0] : starts[-1]]
    counts = support.counts[starts[0] : starts[-1]]
    first_child = problem.first_child[first : last + 1]
    x_starts = fit.starts[first : last + 1]
    units = slice(first_child[0], first_child[-1])
    bounded = int(nest.columns.max(initial=-1)) + 1
    lower = np.zeros((int(first_child[-1] - first_child[0]), bounded), dtype=np.int64)
    upper = np.full_like(lower, UNBOUNDED)
    for bound, places in zip(problem.bounds, nest.places, strict=True):
        present = places >= 0
        at = places[present]
        lower[:, at] = np.maximum(lower[:, at], bound.lower[units][:, present])
        upper[:, at] = np.minimum(upper[:, at], bound.upper[units][:, present])
    rounding_kernel.round_parents(
        layout.Parents(starts, cells, counts, first_child, x_starts),
        problem.parents is None,
        fit.values,
        opened_entries(problem, starts, cells, first_child, x_starts),
        rounding_kernel.Nesting(nest.leaves, nest.above, nest.in_chain, nest.columns, lower, upper),
        rounded,
        stages[first:last],
    )


def _children(problem: LevelProblem, support: Histograms, fit: LevelFit, rounded: NDArray[np.int64]) -> Histograms:
    """The children's positive cells, from entries by parent, cell and child."""
    starts = np.zeros(int(problem.first_child[-1]) + 1, dtype=np.int64)
    layout.count_positive(support.starts, problem.first_child, fit.starts, rounded, starts)
    starts = np.cumsum(starts)
    cells = np.empty(int(starts[-1]), dtype=np.int32)
    counts = np.empty(int(starts[-1]), dtype=np.int64)
    layout.fill_positive(
        support.starts, support.cells, problem.first_child, fit.starts, rounded, starts[:-1].copy(), cells, counts
    )
    return Histograms(starts, cells, counts)
