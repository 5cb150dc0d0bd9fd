"""Rényi divergences of all orders between two distributions, and the supremum that defines D_NoR.

For P whose support lies in that of Q let L = ln p/q and K(x) = ln E_P e^(xL). Then D_alpha(P||Q) = K(x)/x with x =
alpha - 1, and its limit at x = 0 is the Kullback-Leibler divergence KL.

How K is computed. With t = p/q - 1 and E(u) = e^u - 1 - u, e^K(x) = 1 + x KL + E_P[E(xL)] and KL = E_Q[(1+t) ln(1+t)
- t]: sums of non-negative terms, and small terms are taken from their series. So divergences of nearly equal
distributions are good to the last digits, and those of equal ones are 0.

How the supremum of F(x) = K(x) / (x (x + 1)) over x > 0 is found. F may have several maxima. But K is convex with
K(0) = 0, so between two orders it lies below its chord, and F below the largest value of chord / (x (x + 1)), which has
a closed form; beyond x, F is below D_infinity / (x + 1). Intervals whose bound does not exceed the best value found by
more than the tolerance are dropped, the others divided. Near a maximum the bound is off by the square of the width, so
that a hundred orders settle it. Only curves that are flat over a long stretch (Gaussians) can use up the orders
allowed; they are then settled less well, though every value found on the stretch is the supremum to many digits.

How pairs are ruled out. The sum of p^alpha q^(1-alpha) over outputs is, for all pairs of rows of a matrix, the product
of the matrix of p^alpha with the transpose of that of q^(1-alpha). Both are divided by powers of the output's usual
size first, which cancel, so that they rarely leave the range of floats; where they do, nothing is known and the bounds
are those of order infinity.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel

Array = NDArray[np.float64]

TOLERANCE = 1e-10
"""How far below its supremum D_NoR may be, relatively, where the orders allowed suffice."""

MOST_TERMS = 10_000_000
"""How many terms of sums may be added up for one pair of distributions and one direction."""

_ENTROPY = tuple((-1.0) ** k / (k * (k - 1)) for k in range(16, 1, -1))  # (1+t) ln(1+t) - t = t^2 (1/2 - t/6 + ...)
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(10, 1, -1))  # e^u - 1 - u = u^2 (1/2 + u/6 + ...)
_GRID = tuple(float(x) for x in np.geomspace(1e-2, 1e3, 11))  # where the search for the supremum begins
BOUND_ORDERS = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Orders, less one, at which the supremum of D_NoR is bounded for many pairs at once."""

_NONE = -1


@kernel
def _prepare(p, q, weights, ratios):  # type: ignore[no-untyped-def]
    """Fill ``weights`` with p and ``ratios`` with ln p/q where p > 0: (how many, largest ratio, KL).

    Outputs of P that Q cannot give are told by a count of -1.
    """
    count = 0
    largest = 0.0
    divergence = 0.0
    for i in range(len(p)):
        if p[i] == 0:
            divergence += q[i]
            continue
        if q[i] == 0:
            return _NONE, np.inf, np.inf
        t = (p[i] - q[i]) / q[i]
        if abs(t) < 0.5:
            ratio = math.log1p(t)
        elif 1e-300 < t + 1 < 1e300:
            ratio = math.log(p[i] / q[i])
        else:
            ratio = math.log(p[i]) - math.log(q[i])
        if abs(t) < 0.05:
            series = 0.0
            for coefficient in _ENTROPY:
                series = series * t + coefficient
            divergence += q[i] * t * t * series
        else:
            divergence += max(0.0, p[i] * ratio - (p[i] - q[i]))
        weights[count] = p[i]
        ratios[count] = ratio
        largest = max(largest, ratio)
        count += 1
    return count, largest, min(divergence, largest)


@kernel
def _at(x, weights, ratios, count, largest, divergence):  # type: ignore[no-untyped-def]
    """D_alpha at alpha = x + 1 of what :func:`_prepare` prepared."""
    if x == 0:
        return divergence
    if np.isinf(x) or largest == 0:
        return largest
    total = 0.0
    if x * largest > 700:  # e^u leaves the range of floats
        for i in range(count):
            total += weights[i] * math.exp(x * (ratios[i] - largest))
        return min(largest, largest + math.log(total) / x)
    for i in range(count):
        u = x * ratios[i]
        if abs(u) > 0.1:
            total += weights[i] * (math.expm1(u) - u)
        else:
            series = 0.0
            for coefficient in _EXPONENTIAL:
                series = series * u + coefficient
            total += weights[i] * u * u * series
    return min(largest, math.log1p(x * divergence + total) / x)


@kernel
def renyi(p, q, x):  # type: ignore[no-untyped-def]
    """D_alpha(P||Q) at alpha = x + 1, for x from 0 to infinity."""
    weights = np.empty(len(p))
    ratios = np.empty(len(p))
    count, largest, divergence = _prepare(p, q, weights, ratios)
    if count == _NONE:
        return np.inf
    return _at(x, weights, ratios, count, largest, divergence)


@kernel
def chord_bound(low, high, at_low, at_high):  # type: ignore[no-untyped-def]
    """The largest value of F between two orders by the chord of K(x) = x D(x), given D at both.

    With slope s and value -k at x = 0 (k >= 0, as K is convex), chord / (x (x + 1)) increases up to x = (k + sqrt(k^2 +
    s k)) / s and decreases from there.
    """
    slope = (high * at_high - low * at_low) / (high - low)
    if low == 0 or slope <= 0:
        return at_high / (low + 1)
    below = max(0.0, low * (slope - at_low))
    peak = min(high, max(low, (below + math.sqrt(below * below + slope * below)) / slope))
    return (slope - below / peak) / (peak + 1)


@kernel
def _supremum_one_way(p, q, best, most):  # type: ignore[no-untyped-def]
    """The larger of ``best`` and the supremum of D_alpha(P||Q) / alpha, from about ``most`` orders at most."""
    weights = np.empty(len(p))
    ratios = np.empty(len(p))
    count, largest, divergence = _prepare(p, q, weights, ratios)
    if count == _NONE:
        return np.inf
    # K(x) >= ln p + xL for every output, and ln p > -745; at x = 1490/L that makes F at least L^2 / 10,000.
    best = max(best, divergence, largest * largest / 1e4)
    if largest <= best:
        return best
    low = np.empty(len(_GRID) + 1)
    high = np.empty(len(_GRID) + 1)
    at_low = np.empty(len(_GRID) + 1)
    at_high = np.empty(len(_GRID) + 1)
    x = 0.0
    at_x = divergence
    intervals = 0
    for k in range(len(_GRID) + 1):
        beyond = largest / best - 1  # from here on F is below the best
        if x >= beyond:
            break
        low[k] = x
        at_low[k] = at_x
        x = min(_GRID[k], beyond) if k < len(_GRID) else beyond
        at_x = _at(x, weights, ratios, count, largest, divergence)
        best = max(best, at_x / (x + 1))
        high[k] = x
        at_high[k] = at_x
        intervals += 1
    evaluated = 0
    while intervals > 0 and evaluated < most:
        left = 0
        for k in range(intervals):  # F is the square of D_NoR: its tolerance is twice as wide
            if chord_bound(low[k], high[k], at_low[k], at_high[k]) > best * (1 + 2 * TOLERANCE):
                low[left] = low[k]
                high[left] = high[k]
                at_low[left] = at_low[k]
                at_high[left] = at_high[k]
                left += 1
        intervals = 2 * left
        next_low = np.empty(intervals)
        next_high = np.empty(intervals)
        next_at_low = np.empty(intervals)
        next_at_high = np.empty(intervals)
        for k in range(left):
            x = math.sqrt(low[k] * high[k]) if low[k] > 0 else high[k] / 16
            at_x = _at(x, weights, ratios, count, largest, divergence)
            best = max(best, at_x / (x + 1))
            next_low[2 * k] = low[k]
            next_high[2 * k] = x
            next_at_low[2 * k] = at_low[k]
            next_at_high[2 * k] = at_x
            next_low[2 * k + 1] = x
            next_high[2 * k + 1] = high[k]
            next_at_low[2 * k + 1] = at_x
            next_at_high[2 * k + 1] = at_high[k]
        evaluated += left
        low, high, at_low, at_high = next_low, next_high, next_at_low, next_at_high
    return best


@kernel
def supremum(p, q, best, most):  # type: ignore[no-untyped-def]
    """The larger of ``best`` and the square of D_NoR(P, Q), from about ``most`` orders a direction at most."""
    return _supremum_one_way(q, p, _supremum_one_way(p, q, best, most), most)


# -- over many pairs -----------------------------------------------------------------------------------------


@kernel
def renyi_of_pairs(rows, first, second, x, result):  # type: ignore[no-untyped-def]
    """Fill ``result`` with D_alpha of every ordered pair of rows."""
    for k in range(len(first)):
        result[k] = renyi(rows[first[k]], rows[second[k]], x)


@kernel
def suprema_of_pairs(rows, first, second, distances, best, most, result):  # type: ignore[no-untyped-def]
    """Fill ``result`` with D_NoR / distance where it exceeds ``best``, the largest met so far; else with 0."""
    for k in range(len(first)):
        squared = (best * distances[k]) ** 2
        found = supremum(rows[first[k]], rows[second[k]], squared, most)
        result[k] = 0.0
        if found > squared:
            best = math.sqrt(found) / distances[k]
            result[k] = best


@kernel
def bounds_of_pairs(x, values, errors, largest, lower, upper):  # type: ignore[no-untyped-def]
    """Widen ``lower`` and ``upper`` to bounds of the supremum of F, from D at orders x, x[0] = 0, each with an error.

    ``values[k]`` are those of the k-th pair, not finite where nothing is known; ``largest`` bounds D at every order.
    """
    for k in range(len(lower)):
        at_low = 0.0
        for g in range(len(x)):
            known = np.isfinite(values[k, g])
            at_high = largest[k]
            if known:
                at_high = min(at_high, values[k, g] + errors[g])
                lower[k] = max(lower[k], (values[k, g] - errors[g]) / (x[g] + 1))
            if g > 0:
                # Bounds need not be convex where values are only bounds: the chord is then replaced by its end.
                bound = at_high / (x[g - 1] + 1)
                if known and at_low <= at_high:
                    bound = min(bound, chord_bound(x[g - 1], x[g], at_low, at_high))
                upper[k] = max(upper[k], bound)
            at_low = at_high
        upper[k] = max(upper[k], largest[k] / (x[len(x) - 1] + 1))


def all_renyi(rows: Array, logs: Array, x: float) -> tuple[Array, float]:
    """D_alpha, alpha = x + 1, of every ordered pair of rows, and how far off it may be; not finite where not known.

    Whether one row can give an output that the other cannot is for the caller to know.
    """
    precision = float(np.finfo(np.float64).eps)
    possible = np.isfinite(logs)
    with np.errstate(all="ignore"):
        if x == 0:
            finite = np.where(possible, logs, 0.0)
            own = np.einsum("ij,ij->i", rows, finite)
            size = max(1.0, float(np.max(np.abs(finite))))
            return own[:, None] - rows @ finite.T, 4 * precision * rows.shape[1] * size
        top = np.max(logs, axis=0)
        middle = (top + np.min(np.where(possible, logs, top), axis=0)) / 2
        middle[~np.isfinite(middle)] = 0.0  # an output that nobody gives
        finite = np.where(possible, logs - middle, 0.0)
        powers = np.where(possible, np.exp((x + 1) * finite), 0.0)
        others = np.where(possible, np.exp(middle - x * finite), 0.0)
        return np.log(powers @ others.T) / x, 4 * precision * (rows.shape[1] + 1500) / x


def impossible_pairs(rows: Array) -> NDArray[np.bool_]:
    """For every ordered pair, whether the first row can give an output that the second cannot."""
    possible = rows > 0
    if bool(np.all(possible)):
        return np.zeros((len(rows), len(rows)), dtype=np.bool_)
    return np.asarray(possible.astype(np.float32) @ (~possible).astype(np.float32).T > 0)


def bound_normalised_renyi(
    rows: Array, logs: Array, first: NDArray[np.int64], second: NDArray[np.int64], largest: Array
) -> tuple[Array, Array]:
    """Bounds of D_NoR from below and above for pairs of rows with equal supports, ``largest`` being their D_Mult."""
    lower, upper = np.zeros(len(first)), np.zeros(len(first))
    forth, back = np.empty((len(first), len(BOUND_ORDERS))), np.empty((len(first), len(BOUND_ORDERS)))
    errors = np.empty(len(BOUND_ORDERS))
    for g, x in enumerate(BOUND_ORDERS):
        values, errors[g] = all_renyi(rows, logs, float(x))
        forth[:, g], back[:, g] = values[first, second], values[second, first]
    for values in (forth, back):
        bounds_of_pairs(BOUND_ORDERS, values, errors, largest, lower, upper)
    return np.sqrt(np.maximum(lower, 0)), np.minimum(np.sqrt(upper), largest / math.sqrt(2))
