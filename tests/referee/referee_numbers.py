"""Independent answers that several rooms' referees share: laws on few outputs, in exact fractions or with mpmath.

Nothing here calls stirred. Laws are lists of fractions with a power of two below, so that the floats that stirred is
given are the same numbers and sum to one: what is compared is stirred's arithmetic and not the rounding of its input.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf

mp.dps = 40

Law = list[Fraction]

BITS = 36
"""Probabilities are multiples of 2^-36."""


def dyadic(weights: Sequence[float], bits: int = BITS) -> Law:
    """The law with about these weights whose probabilities are multiples of 2^-bits; zeros stay zeros."""
    total = float(sum(weights))
    parts = [max(1, round(weight / total * 2**bits)) if weight > 0 else 0 for weight in weights]
    largest = max(range(len(parts)), key=parts.__getitem__)
    parts[largest] += 2**bits - sum(parts)
    return [Fraction(part, 2**bits) for part in parts]


def random_laws(random: np.random.Generator, rows: int, outputs: int) -> list[Law]:
    """Laws of several characters: spread, concentrated, nearly alike, extreme, with zeros."""
    character = int(random.integers(6))
    if character == 0:
        weights = random.dirichlet(np.ones(outputs), rows)
    elif character == 1:
        weights = random.dirichlet(np.full(outputs, 0.2), rows) + 1e-9
    elif character == 2:
        size = 10.0 ** random.uniform(-6, 0)
        weights = random.dirichlet(np.ones(outputs)) * np.exp(size * random.normal(0, 1, (rows, outputs)))
    elif character == 3:
        weights = np.exp(random.uniform(-12, 0, (rows, outputs)))
    elif character == 4:
        weights = random.dirichlet(np.ones(outputs), rows) * random.integers(0, 2, (rows, outputs))
        weights[weights.sum(axis=1) == 0] = 1
    else:
        # Randomised response, and what a random rule makes of it: the extreme pairs of pure differential privacy.
        epsilon = random.uniform(0.01, 6)
        rule = random.dirichlet(np.full(outputs, 0.5), 2) + 1e-9
        coins = 1 / (1 + np.exp(epsilon * np.where(np.arange(rows) % 2, 1, -1)))
        weights = coins[:, None] * rule[0] + (1 - coins[:, None]) * rule[1]
    return [dyadic(row) for row in weights]


def random_pair(random: np.random.Generator, outputs: int, zeros: bool = True) -> tuple[Law, Law]:
    while True:
        p, q = random_laws(random, 2, outputs)
        if zeros or all((a > 0) == (b > 0) for a, b in zip(p, q, strict=True)):
            return p, q


def floats(law: Sequence[Fraction]) -> list[float]:
    return [float(value) for value in law]


def number(value: Fraction | float | int) -> mpf:
    exact = Fraction(value)
    return mpf(exact.numerator) / exact.denominator


# -- divergences ---------------------------------------------------------------------------------------------


def multiplicative(p: Law, q: Law) -> mpf:
    worst = mpf(0)
    for a, b in zip(p, q, strict=True):
        if (a > 0) != (b > 0):
            return mp.inf
        if a > 0:
            worst = max(worst, abs(mp.log(number(a / b))))
    return worst


def variation(p: Law, q: Law) -> Fraction:
    """Over all events."""
    return sum((max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def excess(p: Law, q: Law, epsilon: float | mpf) -> mpf:
    """The hockey-stick divergence: the smallest delta at epsilon, from P to Q."""
    odds = mp.exp(mpf(epsilon))
    return mp.fsum(max(number(a) - odds * number(b), mpf(0)) for a, b in zip(p, q, strict=True))


def smallest_epsilon(p: Law, q: Law, delta: Fraction) -> mpf:
    """The smallest epsilon of (epsilon, delta)-DP, both ways, over all events, one by one."""
    worst = mpf(0)
    for event in itertools.product((0, 1), repeat=len(p)):
        for first, second in ((p, q), (q, p)):
            here = sum((a for a, inside in zip(first, event, strict=True) if inside), Fraction(0))
            there = sum((b for b, inside in zip(second, event, strict=True) if inside), Fraction(0))
            if here <= delta:
                continue
            if there == 0:
                return mp.inf
            worst = max(worst, mp.log(number((here - delta) / there)))
    return worst


def renyi(p: Law, q: Law, order: float) -> mpf:
    """D_order(P||Q), with enough digits that orders next to 1 keep some thirty."""
    with mp.workdps(80):
        pairs = [(number(a), number(b)) for a, b in zip(p, q, strict=True) if a > 0]
        if math.isinf(order):
            return mp.inf if any(b == 0 for _, b in pairs) else max(mp.log(a / b) for a, b in pairs)
        if any(b == 0 for _, b in pairs):
            return mp.inf
        if order == 1:
            return mp.fsum(a * mp.log(a / b) for a, b in pairs)
        alpha = mpf(order)
        return mp.log(mp.fsum(a**alpha * b ** (1 - alpha) for a, b in pairs)) / (alpha - 1)


SCALED_ORDERS = np.concatenate([[0.0], np.geomspace(1e-5, 1e4, 160)])
"""Less one, in units of one over the largest loss, at which suprema over orders are looked for."""


def renyi_over_order(p: Law, q: Law, x: np.ndarray) -> np.ndarray:
    """D_(1+x) / (1+x) in extended precision, for laws with the same support; terms of one sign, so small ones are kept.

    With u = ln p/q and K the Kullback-Leibler divergence sum p u = sum p (e^-u - 1 + u), as sum p e^-u = 1:
    sum p e^(x u) - 1 = sum p (e^(x u) - 1 - x u) + x K.
    """
    first = np.array([float(a) for a in p if a > 0], dtype=np.longdouble)
    second = np.array([float(b) for b in q if b > 0], dtype=np.longdouble)
    u = np.log1p((first - second) / second)
    divergence = np.sum(first * _above_line(-u))
    xs = x.astype(np.longdouble)[:, None]
    top = np.maximum(np.max(xs * u, axis=1), 0)
    far = np.log(np.sum(first * np.exp(xs * u - top[:, None]), axis=1)) + top
    near = np.log1p(np.sum(first * _above_line(np.minimum(xs * u, 2)), axis=1) + x * divergence)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.where(top > 1, far, near) / x / (1 + x)
    return np.asarray(np.where(x == 0, divergence, result))


def _above_line(x: np.ndarray) -> np.ndarray:
    """e^x - 1 - x, by its series where x is small."""
    return np.where(np.abs(x) < 0.1, _curved(np.where(np.abs(x) < 0.1, x, 0)), np.expm1(x) - x)


def _curved(x: np.ndarray) -> np.ndarray:
    """e^x - 1 - x for small x, by its series."""
    term, total = x * x / 2, np.zeros_like(x)
    for k in range(3, 22):
        total, term = total + term, term * x / k
    return total


def rho(p: Law, q: Law) -> tuple[float, float]:
    """A lower and an upper estimate of the rho of zCDP: the best order of a grid, and that after a search around it."""
    if any((a > 0) != (b > 0) for a, b in zip(p, q, strict=True)):
        return math.inf, math.inf
    largest = float(multiplicative(p, q))
    if largest == 0:
        return 0.0, 0.0
    orders, best = SCALED_ORDERS / largest, 0.0
    for first, second in ((p, q), (q, p)):
        values = renyi_over_order(first, second, orders)
        top = int(np.argmax(values))
        low, high = orders[max(top - 1, 0)], orders[min(top + 1, len(orders) - 1)]
        closer = renyi_over_order(first, second, np.linspace(low, high, 100))
        best = max(best, float(values[top]), float(np.max(closer)))
    return best, best * (1 + 1e-4)


# -- tests ---------------------------------------------------------------------------------------------------


def power(p: Law, q: Law, level: Fraction) -> Fraction:
    """The greatest power of a test of P against Q, by duality: the least over slopes k of k level + sum (q - k p)_+."""
    slopes = {Fraction(0)} | {b / a for a, b in zip(p, q, strict=True) if a > 0}
    # An infinite slope: what only Q can give.
    best = Fraction(1)
    for slope in slopes:
        rest = sum((max(b - slope * a, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))
        best = min(best, slope * level + rest)
    return best


def product(p: Law, q: Law, r: Law, s: Law) -> tuple[Law, Law]:
    """P x R and Q x S."""
    return [a * b for a in p for b in r], [a * b for a in q for b in s]


def coins(low: float | mpf, high: float | mpf) -> tuple[list[mpf], list[mpf]]:
    return [mpf(high), 1 - mpf(high)], [mpf(low), 1 - mpf(low)]


def renyi_of_coins(a: mpf, b: mpf, order: float) -> mpf:
    """D_order between the coins a and b; 1 is the limit."""
    alpha = mpf(order)
    if order == 1:
        return a * mp.log(a / b) + (1 - a) * mp.log((1 - a) / (1 - b))
    return mp.log(a**alpha * b ** (1 - alpha) + (1 - a) ** alpha * (1 - b) ** (1 - alpha)) / (alpha - 1)


def normal(x: mpf) -> mpf:
    """The distribution function, exact in both tails."""
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gaussian_delta(mu: float | mpf, epsilon: float | mpf) -> mpf:
    m, e = mpf(mu), mpf(epsilon)
    with mp.workdps(50):
        return normal(m / 2 - e / m) - mp.exp(e) * normal(-m / 2 - e / m)
