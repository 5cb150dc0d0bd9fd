"""Compiled kernels for the joint law of two counts: how often an event occurred in runs on one input and on another.

Let K be binomial (n, p) for the input that makes the event likelier and L binomial (m, q) for the other one. The
outcomes at least as telling as what was seen are {K >= cut(L)} with a cut that never falls, so their probability rises
with p and falls with q: everything else rests on that. Whatever is left out, is left out so that this probability comes
out larger.
"""

from __future__ import annotations

import math

import numpy as np

from stirred._compiled import kernel

EPSILON, RHO, POWER = 0, 1, 2
"""What is measured of two coins; see :func:`measure`."""

NO_PROBABILITY = 2.0
"""Given by :func:`largest_rare` where no probability is compatible with what was seen."""

_NO_MORE = 1e-24
"""Masses of outcomes that are not added up any more."""
_START = -55.0
"""The logarithm of the mass from which summing begins."""


@kernel
def measure(kind, parameter, distance, p, q):  # type: ignore[no-untyped-def]
    """How much coins of success p and q tell apart two inputs; it never falls as p rises, and never rises with q.

    EPSILON: the smallest epsilon with p <= e^(d eps) q + delta (1 + e^eps + ... + e^((d-1) eps)), ``parameter`` being
    delta and d the distance; it may be negative. RHO: D_a(p || q) / (a d^2) with ``parameter`` the order a; below 0
    where p < q. POWER: the power of the best test with false-alarm rate ``parameter`` that looks at the coin.
    """
    if kind == EPSILON:
        return _epsilon(parameter, distance, p, q)
    if kind == RHO:
        if p <= q:
            return p - q
        return _divergence(parameter, p, q) / (parameter * distance * distance)
    if q >= parameter:
        return parameter * p / q
    return 1 - (1 - p) * (1 - parameter) / (1 - q)


@kernel
def _epsilon(delta, distance, p, q):  # type: ignore[no-untyped-def]
    if p <= delta:
        return -np.inf
    if q <= 0:
        return np.inf if delta == 0 or distance == 1 else _grouped_epsilon(delta, distance, p, 0.0)
    if delta == 0 or distance == 1:
        return math.log((p - delta) / q) / distance
    return _grouped_epsilon(delta, distance, p, q)


@kernel
def _grouped_epsilon(delta, distance, p, q):  # type: ignore[no-untyped-def]
    low = -50.0
    high = math.log((p - delta) / max(q, 1e-300)) / distance
    for _ in range(60):
        middle = (low + high) / 2
        total, power = 0.0, 1.0
        for _ in range(distance):
            total += power
            power *= math.exp(middle)
        if power * q + delta * total < p:
            low = middle
        else:
            high = middle
    return low


@kernel
def _divergence(order, p, q):  # type: ignore[no-untyped-def]
    """The Rényi divergence of a coin of success p from one of success q, where p > q."""
    if q <= 0:
        return np.inf
    log_ratio, other = math.log(p / q), math.log1p(-q) - (math.log1p(-p) if p < 1 else -np.inf)
    if order == 1:
        return p * log_ratio - ((1 - p) * other if p < 1 else 0.0)
    likely = math.log(p) + (order - 1) * log_ratio
    if p >= 1:
        return likely / (order - 1)
    unlikely = math.log1p(-p) - (order - 1) * other
    return (likely + math.log1p(math.exp(unlikely - likely))) / (order - 1)


@kernel
def measures(kind, parameter, distance, p, q, results):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the measure of each pair of coins."""
    for i in range(len(p)):
        results[i] = measure(kind, parameter, distance, p[i], q[i])


@kernel
def cuts(kind, parameter, distance, seen, low, first, high, results):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the smallest K, for each L, whose plain bound is at least ``seen``.

    ``low`` are lower limits of p for the counts from ``first`` on, ``high`` upper limits of q for the counts L. The cut
    never falls, so one walk through both is enough. Where K would lie below the window, the cut is 0.
    """
    j = 0
    for i in range(len(high)):
        while j < len(low) and measure(kind, parameter, distance, low[j], high[i]) < seen:
            j += 1
        results[i] = first + j if j > 0 else 0


@kernel
def tail(p, q, n, m, start, cut):  # type: ignore[no-untyped-def]
    """P(K >= cut(L)); ``cut`` holds the cuts of ``start`` and what follows: 0 before, and as the last one after."""
    k, mass = _start(n, p)
    j, weight = _start(m, q)
    at_least, total = 0.0, 0.0
    while j >= 0:
        if j < start:
            at_least = 1.0
        else:
            least = cut[min(j - start, len(cut) - 1)]
            while k >= least and k >= 0 and (mass > _NO_MORE or k > n * p):
                at_least += mass
                mass *= k * (1 - p) / ((n - k + 1) * p) if k > 0 else 0.0
                k -= 1
        total += weight * at_least
        if weight < _NO_MORE and j < m * q:
            break
        weight *= j * (1 - q) / ((m - j + 1) * q) if j > 0 else 0.0
        j -= 1
    return min(total, 1.0)


@kernel
def _start(n, p):  # type: ignore[no-untyped-def]
    """The largest outcome of a binomial law whose mass is not negligible, and its mass."""
    if p <= 0:
        return 0, 1.0
    if p >= 1:
        return n, 1.0
    low, high = int(n * p), n + 1
    constant, up, down = math.lgamma(n + 1.0), math.log(p), math.log1p(-p)
    while high - low > 1:
        middle = (low + high) // 2
        if (
            constant - math.lgamma(middle + 1.0) - math.lgamma(n - middle + 1.0) + middle * up + (n - middle) * down
            < _START
        ):
            high = middle
        else:
            low = middle
    return low, math.exp(constant - math.lgamma(low + 1.0) - math.lgamma(n - low + 1.0) + low * up + (n - low) * down)


@kernel
def largest_rare(q, low, high, chance, n, m, start, cut):  # type: ignore[no-untyped-def]
    """The largest p between ``low`` and ``high``, rounded down, at which the tail is at most ``chance``.

    NO_PROBABILITY where it is so even at 1: then no p is compatible with what was seen. The logarithm of the tail is
    nearly straight, so steps go where the line through both ends says, and to the middle where that gains little.
    """
    if high >= 1 and tail(1.0, q, n, m, start, cut) <= chance:
        return NO_PROBABILITY
    high = min(high, 1.0)
    near = 1e-4 * math.sqrt(high * (1 - low) / n) + 1e-15
    below, above, width = -np.inf, np.inf, np.inf
    while high - low > near:
        middle = (low + high) / 2
        if high - low < width / 2 and below > -np.inf and above < np.inf:
            middle = low + (high - low) * below / (below - above)
            middle = min(max(middle, low + near / 4), high - near / 4)
        width = high - low
        excess = math.log(max(tail(middle, q, n, m, start, cut), 1e-300) / chance)
        if excess <= 0:
            low, below = middle, excess
        else:
            high, above = middle, excess
    return low


@kernel
def largest_kept(kind, parameter, distance, promise, q):  # type: ignore[no-untyped-def]
    """The largest p, rounded up, whose measure against q is at most ``promise``."""
    low, high = 0.0, 1.0
    if measure(kind, parameter, distance, high, q) <= promise:
        return high
    while high - low > 1e-12 * high + 1e-18:
        middle = (low + high) / 2
        if measure(kind, parameter, distance, middle, q) <= promise:
            low = middle
        else:
            high = middle
    return high
