"""Divergences of many pairs of rows of one matrix, in loops that stop as soon as a pair cannot be the worst.

The kernels get lists of pairs (``first[k]``, ``second[k]``) and fill one number for each. They are used to find the
worst pair; its divergence is then computed by :mod:`stirred.loss.divergences`.
"""

from __future__ import annotations

import math

import numpy as np

from stirred._compiled import kernel
from stirred.loss.divergences import ROUNDING

OVERFLOW = 690.0
"""Logarithms of ratios above this are left to the plain functions; e^709 is the largest float."""


@kernel
def multiplicative_of_pairs(logs, first, second, result):  # type: ignore[no-untyped-def]
    """The largest |ln p - ln q|, given logarithms; (-inf) - (-inf) is not a number and never the largest."""
    outputs = logs.shape[1]
    whole = outputs - outputs % 4
    for k in range(len(first)):
        p = logs[first[k]]
        q = logs[second[k]]
        a = b = c = d = 0.0  # four maxima at a time, as each waits for its own last comparison
        for i in range(0, whole, 4):
            w = abs(p[i] - q[i])
            x = abs(p[i + 1] - q[i + 1])
            y = abs(p[i + 2] - q[i + 2])
            z = abs(p[i + 3] - q[i + 3])
            a = w if w > a else a
            b = x if x > b else b
            c = y if y > c else c
            d = z if z > d else d
        for i in range(whole, outputs):
            w = abs(p[i] - q[i])
            a = w if w > a else a
        result[k] = max(max(a, b), max(c, d))


@kernel
def largest_of_pairs(logs, first, second, result):  # type: ignore[no-untyped-def]
    """The largest ln p - ln q, one direction: the Rényi divergence of order infinity."""
    outputs = logs.shape[1]
    whole = outputs - outputs % 4
    for k in range(len(first)):
        p = logs[first[k]]
        q = logs[second[k]]
        a = b = c = d = 0.0
        for i in range(0, whole, 4):
            w = p[i] - q[i]
            x = p[i + 1] - q[i + 1]
            y = p[i + 2] - q[i + 2]
            z = p[i + 3] - q[i + 3]
            a = w if w > a else a
            b = x if x > b else b
            c = y if y > c else c
            d = z if z > d else d
        for i in range(whole, outputs):
            w = p[i] - q[i]
            a = w if w > a else a
        result[k] = max(max(a, b), max(c, d))


@kernel
def total_variation_of_pairs(rows, first, second, result):  # type: ignore[no-untyped-def]
    """Half the sum of |p - q|."""
    outputs = rows.shape[1]
    whole = outputs - outputs % 4
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        a = b = c = d = 0.0
        for i in range(0, whole, 4):
            a += abs(p[i] - q[i])
            b += abs(p[i + 1] - q[i + 1])
            c += abs(p[i + 2] - q[i + 2])
            d += abs(p[i + 3] - q[i + 3])
        for i in range(whole, outputs):
            a += abs(p[i] - q[i])
        result[k] = ((a + b) + (c + d)) / 2


@kernel
def _smallest_factor(p, q, delta, enough, factor):  # type: ignore[no-untyped-def]
    """The smallest c >= ``factor`` with P(S) <= c Q(S) + delta for every S, one direction.

    The sum of max(p - c q, 0) is convex and falls with c, a polygon. Newton's steps from below, c = (P(S) - delta)/Q(S)
    with S = {p > c q}, never pass its root and reach it after as many steps as they meet edges: a handful.
    """
    while True:
        mass = 0.0
        other = 0.0
        for i in range(len(p)):
            if p[i] > factor * q[i]:
                mass += p[i]
                other += q[i]
        if mass <= enough:
            return factor
        if other == 0:
            return np.inf
        higher = (mass - delta) / other
        if not higher > factor * (1 + 1e-15):
            return factor
        factor = higher


@kernel
def approximate_of_pairs(rows, first, second, distances, delta, best, result):  # type: ignore[no-untyped-def]
    """D_Mult^delta / distance where it exceeds ``best``, the largest met so far; else 0.

    A pair that is not the worst is passed over after one look at each direction. Not a number: left to the caller.
    """
    enough = delta * (1 + ROUNDING)
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        least = math.exp(min(best * distances[k], OVERFLOW))
        factor = _smallest_factor(q, p, delta, enough, _smallest_factor(p, q, delta, enough, least))
        result[k] = 0.0
        if factor > least and factor > 1 + ROUNDING:
            if np.isinf(factor) or math.log(factor) < OVERFLOW:
                best = math.log(factor) / distances[k]
                result[k] = best
            else:
                result[k] = np.nan


@kernel
def same_of_pairs(rows, first, second, rounding, result):  # type: ignore[no-untyped-def]
    """Whether two rows are the same distribution up to rounding."""
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        result[k] = True
        for i in range(len(p)):
            if abs(p[i] - q[i]) > rounding * max(p[i], q[i]):
                result[k] = False
                break


@kernel
def between_of_pairs(distances, first, second, result):  # type: ignore[no-untyped-def]
    """Whether some third row h lies between: d(i, h) + d(h, j) <= d(i, j), both smaller, for symmetric distances."""
    for k in range(len(first)):
        i = distances[first[k]]
        j = distances[second[k]]
        whole = i[second[k]]
        result[k] = False
        for h in range(len(i)):
            if i[h] + j[h] <= whole and i[h] < whole and j[h] < whole:
                result[k] = True
                break


@kernel
def powers_of_pairs(rows, first, second, levels, powers, at):  # type: ignore[no-untyped-def]
    """Raise ``powers`` to the largest power of any pair at each of the increasing ``levels``; ``at`` says whose."""
    outputs = rows.shape[1]
    ratios = np.empty(outputs)
    for k in range(len(first)):
        p = rows[first[k]]
        q = rows[second[k]]
        power = 0.0
        for i in range(outputs):
            if p[i] > 0:
                ratios[i] = -q[i] / p[i]
            else:
                ratios[i] = -np.inf
                power += q[i]
        order = np.argsort(ratios)
        level = 0.0
        step = 0
        for g in range(len(levels)):
            while step < outputs and (p[order[step]] == 0 or level + p[order[step]] <= levels[g]):
                if p[order[step]] > 0:
                    level += p[order[step]]
                    power += q[order[step]]
                step += 1
            reached = power
            if step < outputs:
                reached += (levels[g] - level) * q[order[step]] / p[order[step]]
            if min(1.0, reached) > powers[g]:
                powers[g] = min(1.0, reached)
                at[g] = k
