"""The samplers of Canonne, Kamath and Steinke, as published, in Python's integers and fractions: a readable reference.

C. Canonne, G. Kamath, T. Steinke (2020), The Discrete Gaussian for Differential Privacy, Algorithms 1 to 3. Each
function makes one draw, exactly, for any rational parameter and without any limit. They share nothing with the fast
samplers but the source of bits, and are some thousand times slower; tests hold the one against the other.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from stirred.noise.source import RandomSource


def uniform(bound: int, source: RandomSource) -> int:
    """Uniform on 0, ..., bound - 1: as many bits as the bound has, drawn again until they fall below it."""
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    while True:
        drawn = int.from_bytes(source.take(size), "big") >> (8 * size - bits)
        if drawn < bound:
            return drawn


def coin(p: Fraction, source: RandomSource) -> bool:
    """True with probability p, 0 <= p <= 1."""
    return uniform(p.denominator, source) < p.numerator


def coin_exp(x: Fraction, source: RandomSource) -> bool:
    """Algorithm 1: True with probability exp(-x), x >= 0."""
    while x > 1:
        if not _coin_exp_to_one(Fraction(1), source):
            return False
        x -= 1
    return _coin_exp_to_one(x, source)


def _coin_exp_to_one(x: Fraction, source: RandomSource) -> bool:
    """For 0 <= x <= 1: the first k at which a coin of x / k fails is odd with probability exp(-x)."""
    k = 1
    while coin(x / k, source):
        k += 1
    return k % 2 == 1


def one_discrete_laplace(scale: Fraction, source: RandomSource) -> int:
    """Algorithm 2: P(x) proportional to exp(-|x| / scale), scale = t / s."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = uniform(t, source)
        if not coin_exp(Fraction(u, t), source):
            continue
        v = 0
        while coin_exp(Fraction(1), source):
            v += 1
        y = (u + t * v) // s
        minus = coin(Fraction(1, 2), source)
        if not (minus and y == 0):
            return -y if minus else y


def one_discrete_gaussian(variance: Fraction, source: RandomSource) -> int:
    """Algorithm 3: P(x) proportional to exp(-x^2 / (2 variance))."""
    t = isqrt(int(variance)) + 1  # floor(sigma) + 1
    while True:
        y = one_discrete_laplace(Fraction(t), source)
        if coin_exp((abs(y) - variance / t) ** 2 / (2 * variance), source):
            return y
