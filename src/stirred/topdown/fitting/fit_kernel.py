"""Constrained least squares for the parents of a chunk, compiled: block coordinate descent with exact projections.

For one parent, children k and positive cells j with counts P[j], and queries q whose groups do not overlap and which
have a weight w[q, k] in each child:

    f(X) = 1/2 sum_q sum_(groups g of q) sum_k w[q, k] (sum_(j in g) X[j, k] - Y[q, g, k])^2,
    X >= 0,   sum_k X[j, k] = P[j],   X[j, k] = 0 where closed.

As a function of one row X[j, :] this is 1/2 sum_k h[k] (X[j, k] - t[k])^2 plus a constant with h[k] = sum_q w[q, k], so
the exact minimiser is the projection of t = X[j, :] - gradient/h on a simplex, in the metric of h. (For a cell that is
in no group of some query it is a bound from above that touches f at X, so that f falls all the same.) Sweeps visit the
cells in a fresh random order each, which is no detail: with any fixed order hundreds of times more sweeps do not
suffice.

Bounds lower <= sum_(j in g) X[j, k] <= upper enter as an augmented Lagrangian: a query of weight c whose residual is
e = v - clip(v, lower, upper) with v = sum + multiplier, and every few sweeps multiplier <- e.

The invariant a reader must know: f is strongly convex with modulus mu[k] in child k, the weight of the queries that
separate all cells, so with g the gradient and z[j] = projection of x[j] - g[j]/mu in the metric of mu,

    f(X) - min f <= - sum_j ( <g[j], z[j] - x[j]> + 1/2 sum_k mu[k] (z[j, k] - x[j, k])^2 ),

and the same holds for the augmented Lagrangian, whose minimum less c/2 |multiplier|^2 is a lower bound of the
constrained minimum (any feasible point has |e| <= |multiplier|).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import helper, kernel, part
from stirred.tables.groups import mixed
from stirred.topdown.fitting.level_problem import clipped, indices, reals

CLOSED = -1e300
"""Where a closed entry stands before a projection: below any threshold. Finite, since infinities breed NaNs."""

START, SWEEP, CERTIFY = range(3)
"""What a pass over the cells is for."""

UPDATE_EVERY = 3
"""Sweeps between updates of the multipliers."""

STALLED_AFTER = 1000
"""Sweeps from which on bounds are given up if twice as many hardly changed what breaks them."""

AFRESH_EVERY = 100
"""Sweeps after which residuals are summed afresh, against drift."""


class Queries(NamedTuple):
    """The terms of f: what was measured in the children of a chunk's parents.

    Cell j of the chunk is in row ``rows[j, q]``, none if that is -1, of its parent's block of ``residuals``, a table
    (row, child) from ``offsets[parent]`` on, which come in as minus the measured values Y. Query q has the weight
    ``weights[q, unit]`` in a unit, or ``weights[q, 0]`` in all units if that is the only column, and separates all
    cells if ``separating[q]``.
    """

    rows: NDArray[np.int32]
    row_starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    residuals: NDArray[np.float64]
    weights: NDArray[np.float64]
    separating: NDArray[np.bool_]


class Limits(NamedTuple):
    """Bounds of sums over groups of cells: ``lower`` and ``upper`` lie as the residuals do, row -1 has none.

    ``weights`` are those in the augmented Lagrangian, the c of each bound.
    """

    rows: NDArray[np.int32]
    row_starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    weights: NDArray[np.float64]


class Stopping(NamedTuple):
    """When a parent is done: its certificate and what breaks a bound are this small, or after so many sweeps."""

    gap: float
    violation: float
    most_sweeps: int


class Certificates(NamedTuple):
    """What is written for each parent: how far above the minimum, by how much a bound is broken, sweeps, success."""

    gaps: NDArray[np.float64]
    violations: NDArray[np.float64]
    sweeps: NDArray[np.int32]
    converged: NDArray[np.bool_]


@kernel
def _key(cells, counts, width):  # type: ignore[no-untyped-def]
    """What seeds the orders of a parent's sweeps: its histogram, so nothing depends on its place among parents."""
    state = np.uint64(width)
    for j in range(len(cells)):
        state = mixed(state + np.uint64(0x9E3779B97F4A7C15) + np.uint64(cells[j]))
        state = mixed(state + np.uint64(counts[j]))
    return state


@kernel
def _shuffle(order, state):  # type: ignore[no-untyped-def]
    """A fresh permutation. The remainder's bias, below 2^-40, does not matter: no privacy rests on this order."""
    for i in range(len(order) - 1, 0, -1):
        state = state + np.uint64(0x9E3779B97F4A7C15)
        other = np.int64(mixed(state) % np.uint64(i + 1))
        order[i], order[other] = order[other], order[i]
    return state


@kernel
def _project(target, metric, total, threshold, free, out):  # type: ignore[no-untyped-def]
    """Project on {out >= 0, sum = total} (``free``: on out >= 0), by Newton's method on the threshold; returns it.

    The distance is sum (out - target)^2 / metric, with the metric's largest entry 1: what exceeds the threshold times
    the metric is left. The sum of that is convex and falling in the threshold: from any start with something above it
    Newton's method lands at or below the root, and then climbs to it in finitely many steps.
    """
    width = len(target)
    if free:
        for k in range(width):
            out[k] = target[k] if target[k] > 0.0 else 0.0
        return 0.0
    before = -1  # how many exceeded the threshold before; 0 at a start from below everything
    while True:
        count = 0
        above = 0.0
        falling = 0.0
        for k in range(width):
            if target[k] > threshold * metric[k]:
                above += target[k]
                falling += metric[k]
                count += 1
        if count == 0:  # the start was above everything, or everything is closed
            if before >= 0:
                break
            before = 0
            threshold = 0.5 * CLOSED
            continue
        following = (above - total) / falling
        # Rounding could add and drop an entry at the threshold for ever: once climbing, never step back.
        if count == before or (before > 0 and following <= threshold):
            break
        before = count
        threshold = following
    for k in range(width):
        out[k] = target[k] - threshold * metric[k] if target[k] > threshold * metric[k] else 0.0
    return threshold


@helper
def _invert(curvature, more, inverse, metric):  # type: ignore[no-untyped-def]
    """One over the curvature of each child, and the same as a part of the largest of them, which is returned."""
    largest = 0.0
    for k in range(len(curvature)):
        inverse[k] = 1.0 / (curvature[k] + more)
        if inverse[k] > largest:
            largest = inverse[k]
    for k in range(len(curvature)):
        metric[k] = inverse[k] / largest
    return largest


@helper
def _gradient(  # type: ignore[no-untyped-def]
    j, starting, separating, rows, weights, residuals, bound_rows, bound_weights, pushed, lower, upper, g
):
    """The gradient in row j; returns what bounds add to its curvature. To start, of the queries that separate all cells
    alone."""
    width = len(g)
    curvature = 0.0
    for k in range(width):
        g[k] = 0.0
    for q in range(len(weights)):
        if starting and not separating[q]:
            continue
        i = rows[j, q]
        if i < 0:
            continue
        weight = weights[q]
        row = residuals[i]
        for k in range(width):
            g[k] += weight[k] * row[k]
    if starting:
        return curvature
    for b in range(len(bound_weights)):
        i = bound_rows[j, b]
        if i < 0:
            continue
        weight = bound_weights[b]
        curvature += weight
        row, low, high = pushed[i], lower[i], upper[i]
        for k in range(width):
            g[k] += weight * (row[k] - clipped(row[k], low[k], high[k]))
    return curvature


@helper
def _add(j, change, rows, residuals, bound_rows, pushed):  # type: ignore[no-untyped-def]
    """Add a change of row j to the sums it belongs to."""
    width = len(change)
    for q in range(rows.shape[1]):
        if rows[j, q] >= 0:
            row = residuals[rows[j, q]]
            for k in range(width):
                row[k] += change[k]
    for b in range(bound_rows.shape[1]):
        if bound_rows[j, b] >= 0:
            row = pushed[bound_rows[j, b]]
            for k in range(width):
                row[k] += change[k]


@helper
def _violation(pushed, multipliers, lower, upper):  # type: ignore[no-untyped-def]
    """By how much a bound is broken at most."""
    worst = 0.0
    for i in range(pushed.shape[0]):
        for k in range(pushed.shape[1]):
            s = pushed[i, k] - multipliers[i, k]
            if lower[i, k] - s > worst:
                worst = lower[i, k] - s
            if s - upper[i, k] > worst:
                worst = s - upper[i, k]
    return worst


@helper
def _update(pushed, multipliers, lower, upper):  # type: ignore[no-untyped-def]
    """The multipliers' step: multiplier <- v - clip(v)."""
    for i in range(pushed.shape[0]):
        for k in range(pushed.shape[1]):
            v = pushed[i, k]
            e = v - clipped(v, lower[i, k], upper[i, k])
            pushed[i, k] += e - multipliers[i, k]
            multipliers[i, k] = e


@part
def _pass(  # type: ignore[no-untyped-def]
    kind, order, x, counts, free, opened, masked, separating, thresholds, rows, weights, residuals,
    bound_rows, bound_weights, pushed, lower, upper, work,
):  # fmt: skip
    """Visit every cell once, to start, to sweep or to certify; returns the certificate."""
    width = x.shape[1]
    g, target, z, curvature, moduli, inverse, metric = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    gap = 0.0
    most = _invert(curvature if kind == SWEEP else moduli, 0.0, inverse, metric)
    ratio = most / _highest(curvature) if kind == CERTIFY else 1.0
    added = 0.0
    for j in order:
        more = _gradient(
            j, kind == START, separating, rows, weights, residuals,
            bound_rows, bound_weights, pushed, lower, upper, g,
        )  # fmt: skip
        if kind == SWEEP and more != added:
            _invert(curvature, more, inverse, metric)
            added = more
        threshold = thresholds[j] * ratio
        row = x[j]
        for k in range(width):
            target[k] = row[k] - inverse[k] * g[k]
        if masked:
            for k in range(width):
                if not opened[j, k]:
                    target[k] = CLOSED
        threshold = _project(target, metric, counts[j], threshold, free, z)
        if kind == CERTIFY:
            for k in range(width):
                step = z[k] - row[k]
                gap -= step * (g[k] + 0.5 * moduli[k] * step)
            continue
        thresholds[j] = threshold
        for k in range(width):
            step = z[k] - row[k]
            row[k] = z[k]
            z[k] = step
        _add(j, z, rows, residuals, bound_rows, pushed)
    return gap if gap > 0.0 else 0.0


@helper
def _highest(curvature):  # type: ignore[no-untyped-def]
    """The largest of one over the curvatures."""
    least = curvature[0]
    for k in range(len(curvature)):
        if curvature[k] < least:
            least = curvature[k]
    return 1.0 / least


@helper
def _weigh(given, first, separating, weights, curvature, moduli):  # type: ignore[no-untyped-def]
    """The weights in the children of one parent, and their sums over all and over separating queries."""
    for q in range(weights.shape[0]):
        for k in range(weights.shape[1]):
            weight = given[q, first + k] if given.shape[1] > 1 else given[q, 0]
            weights[q, k] = weight
            curvature[k] += weight
            if separating[q]:
                moduli[k] += weight


@helper
def _largest(table):  # type: ignore[no-untyped-def]
    """The largest absolute value."""
    most = 0.0
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            if abs(table[i, k]) > most:
                most = abs(table[i, k])
    return most


@helper
def _copy(table, out):  # type: ignore[no-untyped-def]
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[i, k] = table[i, k]


@helper
def _block(flat, at, height, width):  # type: ignore[no-untyped-def]
    """The table (row, child) that begins at ``at``."""
    return flat[at : at + height * width].reshape(height, width)


@helper
def _some_row_closed(opened):  # type: ignore[no-untyped-def]
    """Whether some cell may be positive in no child, though its count is."""
    for j in range(opened.shape[0]):
        closed = True
        for k in range(opened.shape[1]):
            if opened[j, k]:
                closed = False
        if closed:
            return True
    return False


@helper
def _slack(pushed, multipliers, lower, upper, bound_rows, bound_weights):  # type: ignore[no-untyped-def]
    """By how much the augmented objective less c/2 |multiplier|^2 may be below the objective itself."""
    row_weights = reals(1, pushed.shape[0])[0]
    for j in range(bound_rows.shape[0]):
        for b in range(bound_rows.shape[1]):
            if bound_rows[j, b] >= 0:
                row_weights[bound_rows[j, b]] = bound_weights[b]
    slack = 0.0
    for i in range(pushed.shape[0]):
        for k in range(pushed.shape[1]):
            e = pushed[i, k] - clipped(pushed[i, k], lower[i, k], upper[i, k])
            slack += 0.5 * row_weights[i] * (multipliers[i, k] * multipliers[i, k] - e * e)
    return slack if slack > 0.0 else 0.0


@helper
def _next_check(done, gap, checked, gap_there, gap_wanted):  # type: ignore[no-untyped-def]
    """When to certify again: when the gap should be small enough, going by how it fell since it was checked before."""
    if not gap < gap_there or gap_there == np.inf:
        return done + (done // 4 if done > 8 else 2)
    left = (done - checked) * np.log(gap / gap_wanted) / np.log(gap_there / gap)
    return done + np.int64(clipped(left, 1.0, 0.5 * done)) + 1


@kernel
def fit_parents(parents, free, values, opened, queries, limits, stopping, found):  # type: ignore[no-untyped-def]
    """Minimise f for every parent of a chunk, writing X to ``values``; ``free``: for roots, with nothing to add up to.

    ``parents`` is a :class:`stirred.topdown.fitting.level_problem.Parents`, ``found`` the :class:`Certificates`.
    ``opened`` tells which entries may be positive, and is empty where all may. Positions are relative to the chunk,
    except in ``values``, where those of a parent begin at ``parents.x_starts``.
    """
    masked = len(opened) > 0
    starts, first_child, x_starts = parents.starts, parents.first_child, parents.x_starts
    number, bound_weights = queries.weights.shape[0], limits.weights
    for parent in range(len(starts) - 1):
        a = starts[parent] - starts[0]
        b = starts[parent + 1] - starts[0]
        n = b - a
        width = first_child[parent + 1] - first_child[parent]
        counts = parents.counts[a:b]
        x = _block(values, x_starts[parent], n, width)
        mask = opened[:0].reshape(0, width)
        if masked:
            at = x_starts[parent] - x_starts[0]
            mask = opened[at : at + n * width].reshape(n, width)
        rows, bound_rows = queries.rows[a:b], limits.rows[a:b]
        height = queries.row_starts[parent, number] - queries.row_starts[parent, 0]
        r = _block(queries.residuals, queries.offsets[parent], height, width)
        measured = reals(height, width)
        _copy(r, measured)
        height = limits.row_starts[parent, len(bound_weights)] - limits.row_starts[parent, 0]
        low = _block(limits.lower, limits.offsets[parent], height, width)
        high = _block(limits.upper, limits.offsets[parent], height, width)
        pushed = reals(height, width)
        multipliers = reals(height, width)
        work = reals(7, width)
        weights = reals(number, width)
        _weigh(queries.weights, first_child[parent], queries.separating, weights, work[3], work[4])
        thresholds = reals(1, n)[0]
        order = indices(n)
        for j in range(n):
            thresholds[j] = 0.5 * CLOSED
            order[j] = j
        state = _key(parents.cells[a:b], counts, width)

        kind = np.int64(START)
        gap = np.inf
        violation = np.inf
        done = np.int64(0)  # sweeps
        check = np.int64(2)
        checked, gap_there = np.int64(0), np.inf
        limit = np.int64(stopping.most_sweeps)
        mark, worst, worst_before = np.int64(STALLED_AFTER), 0.0, np.inf
        while n > 0:
            gap = _pass(
                kind, order, x, counts, free, mask, masked, queries.separating, thresholds,
                rows, weights, r, bound_rows, bound_weights, pushed, low, high, work,
            )  # fmt: skip
            if kind == CERTIFY:
                gap += _slack(pushed, multipliers, low, high, bound_rows, bound_weights)
                if gap <= stopping.gap or done >= limit:
                    break
                check = _next_check(done, gap, checked, gap_there, stopping.gap)
                checked, gap_there = done, gap
            elif kind == SWEEP:
                done += 1
            elif width == 1 and not free:  # nothing to choose
                limit = np.int64(0)
            elif _largest(r) < 1e-6:  # no noise
                check = np.int64(0)
            violation = _violation(pushed, multipliers, low, high)
            if violation > worst:
                worst = violation
            if done == mark:
                if worst > stopping.violation and worst > 0.99 * worst_before:
                    limit = done
                mark, worst, worst_before = 2 * done, 0.0, worst
            if done >= limit or (kind != CERTIFY and done >= check and violation <= stopping.violation):
                kind = np.int64(CERTIFY)
                continue
            kind = np.int64(SWEEP)
            if height > 0 and done > 0 and done % UPDATE_EVERY == 0:
                _update(pushed, multipliers, low, high)
            if done % AFRESH_EVERY == AFRESH_EVERY - 1:
                _copy(measured, r)
                _copy(multipliers, pushed)
                for j in range(n):
                    _add(j, x[j], rows, r, bound_rows, pushed)
            state = _shuffle(order, state)
        if n == 0:
            gap, violation = 0.0, 0.0
        found.gaps[parent] = gap
        found.violations[parent] = violation
        found.sweeps[parent] = done
        found.converged[parent] = gap <= stopping.gap and violation <= stopping.violation
        if masked and not free and _some_row_closed(mask):
            found.converged[parent] = False
