"""Integers that provably enclose exp(-x), to as many bits as asked for.

Everything that a sampler decides rests on these bounds: low <= 2^bits exp(-x) <= high, for rational x >= 0. Only
integers are used and every rounding has a direction, so that the bounds are theorems, not estimates.

Error budget, in units of 2^-P with P = ``bits`` + h + 16. The argument is halved h times, until y = x / 2^h < 1/256,
and cut to a multiple of the unit, which moves exp(-y) down by at most 1. A term of the series for exp(-y) is at most 2
too small (floor of a product, floor of a quotient, an earlier error divided by 256), the terms left out are below 2, so
a sum of N terms is off by at most 2N + 2 either way. Squaring h times rounds down the one bound and up the other and
at most doubles their distance each time; 16 bits more than h bits are then dropped.
"""

from __future__ import annotations

from fractions import Fraction


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """(low, high) with low <= 2^bits exp(-x) <= high, x >= 0; they differ by at most 2.

    >>> exp_bounds(Fraction(1), 16)
    (24109, 24110)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:  # exp(-x) < 2^-bits
        return 0, 1
    halvings = int(x).bit_length() + 8
    precision = bits + halvings + 16
    argument = (x.numerator << precision) // (x.denominator << halvings)
    total, term, terms = 0, 1 << precision, 0
    while term:
        total += -term if terms & 1 else term
        terms += 1
        term = (term * argument >> precision) // terms
    low = max(total - 2 * terms - 3, 0)
    high = min(total + 2 * terms + 2, 1 << precision)
    for _ in range(halvings):
        low = low * low >> precision
        high = -(-high * high >> precision)
    dropped = precision - bits
    return low >> dropped, -(-high >> dropped)


def exp_floor(x: Fraction, bits: int) -> int:
    """floor(2^bits exp(-x)) for x > 0, certified: the precision grows until both bounds agree.

    It does so in the end, since exp(-x) is irrational.

    >>> exp_floor(Fraction(1), 16)
    24109
    """
    more = 32
    while True:
        low, high = exp_bounds(x, bits + more)
        if low >> more == high >> more:
            return low >> more
        more *= 2
