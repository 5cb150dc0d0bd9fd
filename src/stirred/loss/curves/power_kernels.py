"""Compiled kernels for the greatest power of a test under a Rényi divergence, attained by two coins.

A test of level x and power p turns any two laws into two coins, of success x and p, and by the data-processing
inequality bounds on divergences hold between the coins (Theorem 6.3 of Kifer et al. 2022; Balle et al. 2020). The coins
are themselves a mechanism, so the largest power that the bounds allow is attained. Let x <= p, b = 1 - p, y = 1 - x,
L = ln p/x, M = ln y/b, t = alpha - 1 and K = ln (p e^(tL) + b e^(-tM)), so that D_alpha(p||x) = K/t. Exchanging coins
and their sides takes level and power to type II error and one minus the level. Below the level at which power and level
sum to one D_alpha(p||x) is the larger of the two directions, above it the smaller; so it alone is needed: below with x
given (*rising* to p), above with p given (*falling* to x, which there is the type II error).

Every order gives a valid bound, whatever the search for the best one does. K is a sum of non-negative terms under a
log1p, so that its relative rounding error is a small multiple of 1 + tL units in the last place. What is returned
breaks the constraint by more than that: it lies on the safe side of the supremum, p above it, x below it.
"""

from __future__ import annotations

import math

import numpy as np

from stirred._compiled import kernel

TINY = 1e-300
"""Levels below this one are given the power of this one."""

_UNIT = 2.0**-52
_ENTROPY = tuple((-1.0) ** k / (k * (k - 1)) for k in range(20, 1, -1))  # (1+s) ln(1+s) - s = s^2 (1/2 - s/6 + ...)
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(15, 1, -1))  # e^u - 1 - u = u^2 (1/2 + u/6 + ...)
_STEPS = 100
_ROUNDS = 30


@kernel
def _entropy(s, log):  # type: ignore[no-untyped-def]
    """(1 + s) ln(1 + s) - s, given ln(1 + s)."""
    if abs(s) > 0.1:
        return max(0.0, (1 + s) * log - s)
    series = 0.0
    for coefficient in _ENTROPY:
        series = series * s + coefficient
    return s * s * series


@kernel
def _beyond(u):  # type: ignore[no-untyped-def]
    """e^u - 1 - u."""
    if abs(u) > 0.5:
        return math.expm1(u) - u
    series = 0.0
    for coefficient in _EXPONENTIAL:
        series = series * u + coefficient
    return u * u * series


@kernel
def _ratios(x, d, b):  # type: ignore[no-untyped-def]
    """(L, M, Kullback-Leibler divergence) of coins of success x + d = 1 - b and x."""
    y = 1 - x
    s = d / x
    ratio = math.log1p(s)
    other = -math.log1p(-d / y) if d < 0.5 * y else math.log(y / b)
    return ratio, other, x * _entropy(s, ratio) + y * _entropy(-d / y, -other)


@kernel
def _at(t, x, p, d, b):  # type: ignore[no-untyped-def]
    """(D, its derivative by ln p at a fixed x, by -ln x at a fixed p, relative rounding error of D), D = K/t."""
    ratio, other, divergence = _ratios(x, d, b)
    y = 1 - x
    if t == 0:
        return divergence, p * (ratio + other), d / y, 100 * _UNIT
    u, w = t * ratio, t * other
    if u > 500:  # e^u leaves the range of floats
        log = math.log(p)
        k = max(log + u + math.log1p(b / p * math.exp(-u - w)), 1e-300)
        up, down = math.exp(log + u - k), math.exp(-w - k)
        return k / t, (1 + t) / t * (up - p * down), up - b * x / y * down, _UNIT * (100 + 20 * (u - log) / k)
    k = math.log1p(t * divergence + p * _beyond(u) + b * _beyond(-w))
    up, down = math.expm1(u), math.expm1(-w)
    scale = math.exp(-k)
    by_power = (1 + t) / t * p * scale * (up - down)
    by_level = scale * (d / y + p * up - b * x / y * down)
    return k / t, by_power, by_level, _UNIT * (100 + 20 * u)


@kernel
def _best_order(t, x, p, d, b):  # type: ignore[no-untyped-def]
    """The t >= 0 at which D_(1+t) / (1 + t) is largest, searched from t.

    Its slope has the sign of G(t) = ln K' + ln t + ln(t+1) - ln K - ln(2t+1). Near 0, G is t (V - 2 KL) / (2 KL) with V
    the variance of the log likelihood ratio; where that is not positive the largest value is the limit at 0. Newton
    steps in ln t, bracketed.
    """
    ratio, other, divergence = _ratios(x, d, b)
    if p * b * (ratio + other) ** 2 <= 2 * divergence:
        return 0.0
    low, high = 0.0, np.inf
    t = max(t, 1e-8)
    for _ in range(_STEPS):
        u, w = t * ratio, t * other
        if u > 500:
            share = b / p * math.exp(-w - u)
            tilted = 1 / (1 + share)
            k = math.log(p) + u + math.log1p(share)
            first = tilted * (ratio - share * other)
        else:
            total = t * divergence + p * _beyond(u) + b * _beyond(-w)
            tilted = p * math.exp(u) / (1 + total)
            k = math.log1p(total)
            first = (divergence + p * ratio * math.expm1(u) - b * other * math.expm1(-w)) / (1 + total)
        excess = math.log(first * t * (t + 1) / (k * (2 * t + 1))) if k > 0 and first > 0 else 1.0
        if excess > 0:
            low = t
        else:
            high = t
        second = tilted * (1 - tilted) * (ratio + other) ** 2
        slope = t * (second / first + 1 / t + 1 / (t + 1) - first / k - 2 / (2 * t + 1)) if k > 0 and first > 0 else 0.0
        step = -excess / slope if slope < 0 else (1.0 if excess > 0 else -1.0)
        new = t * math.exp(min(2.0, max(-2.0, step)))
        if not low < new < high:
            new = math.sqrt(low * high) if low > 0 and high < np.inf else (t * 4 if low > 0 else t / 4)
        if abs(new - t) <= 1e-7 * t:
            return new
        t = new
    return t


@kernel
def _coins(v, given, rest, falling):  # type: ignore[no-untyped-def]
    """(x, p, p - x, 1 - p) with ln p/x = v, where x is given, or if falling p and what it leaves."""
    if falling:
        return given * math.exp(-v), given, -given * math.expm1(-v), rest
    d = given * math.expm1(v)
    return given, given + d, d, 1 - (given + d)


@kernel
def _binding(t, bound, given, rest, falling, v):  # type: ignore[no-untyped-def]
    """The v = ln p/x at which D_(1+t)(p||x) is ``bound``, searched from v.

    Newton steps on the root of D, which is nearly linear, since D begins as a square; bracketed, as D increases. K is
    at least ln p + tv, which bounds v.
    """
    log = math.log(given)
    if falling:
        high = 700 + log if t == 0 else min(700 + log, bound - log / t)
    else:
        high = min(-log, (t * bound - log) / (1 + t))
    low, root = 0.0, math.sqrt(bound)
    for _ in range(_STEPS):
        if not low < v < high:
            v = (low + high) / 2
        x, p, d, b = _coins(v, given, rest, falling)
        if b <= 0:
            high = v
            continue
        value, by_power, by_level, _ = _at(t, x, p, d, b)
        if value >= bound:
            high = v
        else:
            low = v
        slope = by_level if falling else by_power
        step = (root - math.sqrt(value)) * 2 * math.sqrt(value) / slope if slope > 0 and value > 0 else np.inf
        v += step
        if abs(step) <= 1e-15 * v or high - low <= 1e-15 * high:
            break
    return v


@kernel
def _outside(t, bound, given, rest, falling, v):  # type: ignore[no-untyped-def]
    """The other coin for v, moved until D_(1+t)(p||x) exceeds ``bound`` by more than its rounding error."""
    room = 1e-15
    for _ in range(_STEPS):
        x, p, _, b = _coins(v, given, rest, falling)
        if x < TINY:
            return 0.0
        if b <= 0:
            return 1.0
        value, by_power, by_level, error = _at(t, x, p, p - x, b)
        if value * (1 - error) >= bound:
            return x if falling else p
        slope = by_level if falling else by_power
        short = (bound * (1 + 2 * error) - value) / slope if slope > 0 else 0.0
        v += max(0.0, short) + room * v
        room *= 2
    return 0.0 if falling else 1.0


@kernel
def zcdp(given, rest, falling, rho, results, orders):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the other coins for rho-zCDP, safely rounded, and ``orders`` with the t they came from.

    The order at which the constraint binds and the coin are found in turn; as the coin is stationary in the order, the
    error is squared in each round. The first order is that of the limit of small levels, where ln 1/x = rho alpha^2 and
    ln 1/p = rho t^2.
    """
    for i in range(len(given)):
        log = -math.log(given[i])
        t = math.sqrt(log / rho) if falling else max(0.0, math.sqrt(log / rho) - 1)
        v = rho * (2 * t + 1)
        if not falling:
            v = min(v, math.log1p(math.sqrt(2 * rho * (1 - given[i]) / given[i])))
        for _ in range(_ROUNDS):
            v = _binding(t, (1 + t) * rho, given[i], rest[i], falling, v)
            x, p, d, b = _coins(v, given[i], rest[i], falling)
            if x < TINY or b <= 0:
                break
            old, t = t, _best_order(t, x, p, d, b)
            if abs(t - old) <= 1e-6 * t:
                break
        v = _binding(t, (1 + t) * rho, given[i], rest[i], falling, v)
        results[i] = _outside(t, (1 + t) * rho, given[i], rest[i], falling, v)
        orders[i] = t


@kernel
def renyi(given, rest, falling, t, bound, results):  # type: ignore[no-untyped-def]
    """Fill ``results`` with the other coins for one divergence D_(1+t) <= ``bound``, safely rounded."""
    for i in range(len(given)):
        v = math.log1p(math.sqrt(2 * bound / (1 + t) * (1 - given[i]) / given[i]))
        v = _binding(t, bound, given[i], rest[i], falling, v)
        results[i] = _outside(t, bound, given[i], rest[i], falling, v)


@kernel
def balanced(t, bound):  # type: ignore[no-untyped-def]
    """The level at which level and power sum to one under D_(1+t) <= ``bound``, about: 1 / (1 + e^v)."""
    low, high = 0.0, 700.0
    for _ in range(_STEPS):
        v = (low + high) / 2
        x = 1 / (1 + math.exp(v))
        value, _, _, _ = _at(t, x, 1 / (1 + math.exp(-v)), math.tanh(v / 2), x)
        if value >= bound:
            high = v
        else:
            low = v
    return 1 / (1 + math.exp(high))
