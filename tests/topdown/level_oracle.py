"""Random level problems that a true table solves, and what other solvers make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import piqp
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds as Box
from scipy.optimize import LinearConstraint, milp

from stirred.topdown.data.histograms import Histograms
from stirred.topdown.fitting.level_problem import UNBOUNDED, Allowed, Bounds, LevelProblem, Measured
from stirred.topdown.fitting.one_level import LevelFit
from strategies import Draws

Rng = np.random.Generator | Draws


def roots(cells, units, measured, allowed=(), bounds=()):
    """The problem of units that have nothing above them to add up to."""
    return LevelProblem(None, np.arange(units + 1, dtype=np.int64), cells, measured, allowed, bounds)


@dataclass(frozen=True)
class Case:
    """A problem, the children's true tables, and a chain that is nested with the problem's bounds."""

    problem: LevelProblem
    truth: NDArray[np.int64]
    chain: tuple[NDArray[np.int32], ...]


def coarsened(rng: Rng, groups: NDArray[np.int32], wanted: int) -> NDArray[np.int32]:
    """Some groups put together, at random."""
    count = int(groups.max()) + 1
    wanted = min(wanted, count)
    joined = rng.permutation(np.concatenate([np.arange(wanted), rng.integers(wanted, size=count - wanted)]))
    return joined.astype(np.int32)[groups]


def sums(table: NDArray[Any], groups: NDArray[np.int32]) -> NDArray[np.int64]:
    """Sums of rows over groups; group -1 is left out."""
    member = groups[:, None] == np.arange(int(groups.max(initial=-1)) + 1)
    return np.asarray(table @ member.astype(np.int64))


def random_case(
    rng: Rng,
    *,
    parents: int = 3,
    cells: int = 8,
    most_children: int = 5,
    scale: float = 3.0,
    noise: float = 2.0,
    masked: bool = False,
    bounded: bool = False,
    detailed: bool = True,
    as_roots: bool = False,
    uneven: bool = False,
    partial: bool = False,
) -> Case:
    """A case that is feasible by construction: a table is drawn first, and masks and bounds are true of it.

    With ``uneven`` weights every child has its own, and a query that is coarser may have none in some.
    """
    sizes = np.ones(parents, dtype=np.int64) if as_roots else rng.integers(1, most_children + 1, size=parents)
    first_child = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    units = int(first_child[-1])
    truth = rng.poisson(scale * rng.gamma(0.4, 2.0, size=(units, cells))).astype(np.int64)
    each = np.arange(cells, dtype=np.int32)
    fine = coarsened(rng, each, max(2, cells // 2))
    middle = coarsened(rng, fine, max(2, cells // 4))
    whole = np.zeros(cells, dtype=np.int32)
    families = [whole, coarsened(rng, each, 3), coarsened(rng, each, 2), fine] + ([each] if detailed else [])
    if partial:  # sums over groups that leave cells out, and overlap those of another such query
        families += [(coarsened(rng, each, 2) - 1).astype(np.int32), (coarsened(rng, each, 3) - 1).astype(np.int32)]
        families = [groups for groups in families if groups.max() >= 0]
    measured = []
    for groups in families:
        weight = float(rng.uniform(0.2, 2.0))
        true = sums(truth, groups)
        values = true + np.rint(noise * rng.normal(scale=weight**-0.5, size=true.shape)).astype(np.int64)
        weights = weight * rng.uniform(0.2, 2.0, size=units) if uneven else weight
        if uneven and len(groups) > values.shape[1] > 1:
            weights = np.where(rng.random(units) < 0.2, 0.0, weights)
            weights[0] = weight
        measured.append(Measured(groups, weights, values.astype(np.int32)))
    allowed: list[Allowed] = []
    if masked:
        for groups in (fine, coarsened(rng, each, 4)):
            allowed.append(Allowed(groups, (sums(truth, groups) > 0) | (rng.random((units, groups.max() + 1)) < 0.5)))
    bounds: list[Bounds] = []
    if bounded:
        total = sums(truth, whole)
        bounds.append(Bounds(whole, total, total))
        partial = np.where(middle == 0, -1, middle - 1).astype(np.int32)
        if partial.max() >= 0:
            true = sums(truth, partial)
            upper = np.where(rng.random(true.shape) < 0.5, true + rng.integers(0, 3, true.shape), UNBOUNDED)
            bounds.append(Bounds(partial, np.maximum(true - rng.integers(0, 3, true.shape), 0), upper))
    if as_roots:
        problem = roots(cells, units, tuple(measured), tuple(allowed), tuple(bounds))
    else:
        table = np.add.reduceat(truth, first_child[:-1], axis=0)
        problem = LevelProblem(
            Histograms.from_dense(table), first_child, cells, tuple(measured), tuple(allowed), tuple(bounds)
        )
    return Case(problem, truth, (whole, middle, fine))


@dataclass(frozen=True)
class Quadratic:
    """One parent as matrices: minimise |R x - y|^2 / 2 with A x = b, low <= G x <= high, 0 <= x <= most."""

    root: sp.csc_matrix
    target: NDArray[np.float64]
    sums: sp.csc_matrix
    totals: NDArray[np.float64]
    bounded: sp.csc_matrix
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    most: NDArray[np.float64]

    def objective(self, x: NDArray[np.float64]) -> float:
        return 0.5 * float(np.sum((self.root @ x - self.target) ** 2))


def quadratic(problem: LevelProblem, parent: int) -> Quadratic:
    """The matrices of one parent, written down from the definitions. Variables: cells, then children."""
    support = problem.support
    span = slice(support.starts[parent], support.starts[parent + 1])
    cells, counts = support.cells[span], support.counts[span]
    units = np.arange(problem.first_child[parent], problem.first_child[parent + 1])
    width = len(units)
    eye = sp.identity(width, format="csr")
    root, target = [], []
    for query in problem.measured:
        for group in range(query.values.shape[1]):
            row = (query.groups[cells] == group).astype(float)[None, :]
            scale = np.sqrt(np.broadcast_to(query.weight, len(query.values))[units])
            root.append(sp.kron(sp.csr_matrix(row), eye.multiply(scale[None, :])))
            target.append(scale * query.values[units, group])
    rows, low, high = [sp.csr_matrix((0, len(cells) * width))], [np.zeros(0)], [np.zeros(0)]
    for bound in problem.bounds:
        for group in range(bound.lower.shape[1]):
            row = (bound.groups[cells] == group).astype(float)[None, :]
            rows.append(sp.kron(sp.csr_matrix(row), eye))
            low.append(bound.lower[units, group])
            high.append(bound.upper[units, group])
    most = np.full((len(cells), width), 1e9)
    for mask in problem.allowed:
        most[~mask.allowed[units][:, mask.groups[cells]].T] = 0
    free = problem.parents is None
    adding = sp.kron(sp.identity(len(cells)), np.ones((1, width)), format="csc")
    return Quadratic(
        sp.vstack(root, format="csc"),
        np.concatenate(target),
        adding[:0] if free else adding,
        counts[:0].astype(float) if free else counts.astype(float),
        sp.vstack(rows, format="csc"),
        np.concatenate(low).astype(float),
        np.concatenate(high).astype(float),
        most.ravel(),
    )


def by_piqp(q: Quadratic) -> NDArray[np.float64]:
    """The minimum, by an interior-point method. Only entries that may be positive are variables."""
    variable = q.most > 0
    x = np.zeros(len(variable))
    if not variable.any():
        return x
    root, adding, bounded = q.root[:, variable], q.sums[:, variable], q.bounded[:, variable]
    fixed = q.low == q.high
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.settings.max_iter = 500
    count = int(variable.sum())
    solver.setup(
        (root.T @ root).tocsc(),
        -(root.T @ q.target),
        sp.vstack([adding, bounded[fixed]], format="csc"),
        np.concatenate([q.totals, q.low[fixed]]),
        bounded[~fixed].tocsc(),
        q.low[~fixed],
        np.where(q.high[~fixed] >= UNBOUNDED, np.inf, q.high[~fixed]),
        np.zeros(count),
        np.full(count, np.inf),
    )
    status = solver.solve()
    assert status == piqp.PIQP_SOLVED, status
    x[variable] = solver.result.x
    return x


def values_of(fit: LevelFit, parent: int) -> NDArray[np.float64]:
    """The fitted values of one parent, in the order of the matrices' variables."""
    return fit.values[fit.starts[parent] : fit.starts[parent + 1]]


def least_distance(
    problem: LevelProblem, fit: LevelFit, parent: int, chain: tuple[NDArray[np.int32], ...]
) -> float | None:
    """The least L1 distance of integers within floor and ceiling to the fit, by branch and bound, or None."""
    q = quadratic(problem, parent)
    x = values_of(fit, parent)
    if len(x) == 0:
        return 0.0
    x = np.where(np.abs(x - np.rint(x)) < 1e-6, np.rint(x), x)
    support = problem.support
    cells = support.cells[support.starts[parent] : support.starts[parent + 1]]
    width = int(problem.first_child[parent + 1] - problem.first_child[parent])
    rows = [sp.csr_matrix((0, len(x)))]
    for groups in chain:
        for group in range(int(groups.max()) + 1):
            row = sp.csr_matrix((groups[cells] == group).astype(float)[None, :])
            rows.append(sp.kron(row, sp.identity(width), format="csr"))
    nested = sp.vstack([*rows, q.bounded], format="csr")
    low = np.concatenate([np.zeros(nested.shape[0] - len(q.low)), q.low])
    high = np.concatenate([np.full(nested.shape[0] - len(q.low), float(UNBOUNDED)), q.high])
    inside = np.clip(nested @ x, low, high)
    inside = np.where(np.abs(inside - np.rint(inside)) < 1e-6, np.rint(inside), inside)
    floor = np.floor(x)
    constraints = [LinearConstraint(nested, np.floor(inside) - nested @ floor, np.ceil(inside) - nested @ floor)]
    if q.sums.shape[0]:
        constraints.append(LinearConstraint(q.sums, q.totals - q.sums @ floor, q.totals - q.sums @ floor))
    result = milp(
        1 - 2 * (x - floor), integrality=np.ones(len(x)), bounds=Box(0, np.ceil(x) - floor), constraints=constraints
    )
    if result.x is None:
        return None
    return float(np.abs(floor + np.rint(result.x) - x).sum())
