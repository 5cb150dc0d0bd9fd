"""Integers that provably enclose exp(-x), to as many bits as asked for, and fixed-point arithmetic for kernels.

Everything that a sampler decides rests on bounds low <= 2^bits exp(-x) <= high, for rational x >= 0. Only integers are
used and every rounding has a direction, so that the bounds are theorems, not estimates.

Error budget of :func:`exp_bounds`, in units of 2^-P with P = ``bits`` + h + 16. The argument is halved h times, until y
= x / 2^h < 1/256, and cut to a multiple of the unit, which moves exp(-y) down by at most 1. A term of the series for
exp(-y) is at most 2 too small (floor of a product, floor of a quotient, an earlier error divided by 256), the terms
left out are below 2, so a sum of N terms is off by at most 2N + 2 either way. Squaring h times rounds down the one
bound and up the other and at most doubles their distance each time; 16 bits more than h bits are then dropped.

Kernels have products of 128 bits, reciprocals and exp(-x). An exponent E >= 0 is a 64-bit integer in units of 2^-57 (so
E < 128), a probability one in units of 2^-64. A rate R is kept as R = mantissa 2^-shift with a mantissa of 64 bits, cut
off: mantissa <= R 2^shift < mantissa + 1 and 2^63 <= mantissa < 2^64.

Their error budget:

* :func:`exponent_of` computes y R for a whole number y given in 128 bits, of which the lowest ``cut`` are dropped. It
  never exceeds the true value. Below it by less than: 2 units for the mantissa (y R < 2^64 units, relative error
  2^-63), 1 for the last shift, and R 2^(57 + cut) for the dropped bits, which callers keep at 4 or less: together less
  than :data:`EXPONENT_SLACK` = 8 units.
* :func:`probability_band` gives (surely, possibly) for a true exponent between E and E + 8 units: w < surely implies (w
  + 1) 2^-64 <= exp(-true), and w > possibly implies w 2^-64 >= exp(-true). The table holds floor(2^64 exp(-i / 64)), at
  most 1 too small (for i = 0 the largest integer, also 1 too small). With f < 1/64 the rest of E, 1 - exp(-f) comes
  from u_i = f / i by Horner's rule, u_1 (1 - u_2 (1 - ... u_8)): each step loses less than 2 units and passes on 1/64
  of earlier losses, and f^9 / 9! is below 0.01 units, so it is off by less than 2.1. Their product adds 1 for its
  floor. The estimate is therefore off by less than 5 units either way, and 8 units of E are worth at most 8 x 2^7 =
  1024 units of probability.

A draw is thus undecided with a probability of about 2^-54, and settled exactly in Python then.

The high half of a product is put together from four products of 32 bits. The compiler recognises this and emits one
multiplication: 1.85 ns in a chain of dependent products, the same as with a 128-bit intrinsic.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel


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


FRACTION_BITS = 57
EXPONENT_SLACK = 8
ESTIMATE_SLACK = 5
VANISHING = 45
"""exp(-45) < 2^-64."""

_LOW_HALF = np.uint64(0xFFFFFFFF)
_LARGEST = np.uint64(2**64 - 1)
_TERMS = 8


@kernel
def multiply(a, b):  # type: ignore[no-untyped-def]
    """(high, low): the product of two 64-bit numbers in 128 bits."""
    half = np.uint64(32)
    a_low, a_high = a & _LOW_HALF, a >> half
    b_low, b_high = b & _LOW_HALF, b >> half
    low, cross, other = a_low * b_low, a_low * b_high, a_high * b_low
    middle = (low >> half) + (cross & _LOW_HALF) + (other & _LOW_HALF)
    return a_high * b_high + (cross >> half) + (other >> half) + (middle >> half), a * b


@kernel
def leading_zeros(value):  # type: ignore[no-untyped-def]
    """How many of the 64 bits of ``value`` > 0 come before the first one that is set."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> np.uint64(64 - step) == 0:
            zeros += step
            value = value << np.uint64(step)
    return zeros


@kernel
def divide(high, low, divisor):  # type: ignore[no-untyped-def]
    """(quotient, remainder) of high 2^64 + low by ``divisor``, high < divisor and divisor >= 2^63.

    Long division with two digits of 32 bits (Knuth, The Art of Computer Programming 2, 4.3.1, Algorithm D).
    """
    half = np.uint64(32)
    base = np.uint64(1) << half
    top, bottom = divisor >> half, divisor & _LOW_HALF
    quotient = np.uint64(0)
    for digit in (low >> half, low & _LOW_HALF):
        guess = high // top
        left = high - guess * top
        while guess >= base or guess * bottom > ((left << half) | digit):
            guess -= np.uint64(1)
            left += top
            if left >= base:
                break
        high = ((high << half) | digit) - guess * divisor  # modulo 2^64, and the result fits
        quotient = (quotient << half) | guess
    return quotient, high


@kernel
def quotient_of(numerator, denominator):  # type: ignore[no-untyped-def]
    """(mantissa, shift) of numerator / denominator, both positive and below 2^64; see the module."""
    above, below = leading_zeros(numerator), leading_zeros(denominator)
    one, all_but_one = np.uint64(1), np.uint64(63)
    top, bottom = numerator << np.uint64(above), denominator << np.uint64(below)
    if top >= bottom:
        mantissa, _ = divide(top >> one, top << all_but_one, bottom)
        return mantissa, 63 + above - below
    mantissa, _ = divide(top, np.uint64(0), bottom)
    return mantissa, 64 + above - below


def mantissa_of(rate: Fraction) -> tuple[int, int]:
    """(mantissa, shift) of any positive fraction; the shift is negative for rates from 2^64 on."""
    shift = 63 - (rate.numerator.bit_length() - rate.denominator.bit_length())
    mantissa = _scaled(rate, shift)
    if mantissa >= 1 << 64:
        shift -= 1
    elif mantissa < 1 << 63:
        shift += 1
    return _scaled(rate, shift), shift


def _scaled(rate: Fraction, shift: int) -> int:
    """floor(rate 2^shift)"""
    return (rate.numerator << max(shift, 0)) // (rate.denominator << max(-shift, 0))


@kernel
def exponent_of(high, low, cut, mantissa, shift):  # type: ignore[no-untyped-def]
    """y R in units of 2^-57, y = high 2^64 + low without its lowest ``cut`` bits; from 128 on, the largest integer."""
    y = low
    if cut > 0:
        y = (high << np.uint64(64 - cut)) | (low >> np.uint64(cut))
    if y == 0:
        return np.uint64(0)
    dropped = shift - FRACTION_BITS - cut
    if dropped <= 0:  # R 2^cut >= 64, and y >= 1
        return _LARGEST
    high, low = multiply(y, mantissa)
    if dropped >= 64:
        return high >> np.uint64(dropped - 64)
    if high >> np.uint64(dropped) != 0:
        return _LARGEST
    return (high << np.uint64(64 - dropped)) | (low >> np.uint64(dropped))


@kernel
def probability_band(exponent, steps):  # type: ignore[no-untyped-def]
    """(surely, possibly) for exp(-E), E between ``exponent`` and 8 units more; ``steps`` is :func:`exp_steps`."""
    at = exponent >> np.uint64(FRACTION_BITS - 6)
    if at >= np.uint64(len(steps)):
        return np.uint64(0), np.uint64(0)
    rest = (exponent << np.uint64(64 - FRACTION_BITS)) & np.uint64(2**58 - 1)
    missing = rest // np.uint64(_TERMS)
    for term in range(_TERMS - 1, 0, -1):
        part = rest // np.uint64(term)
        product, _ = multiply(part, missing)
        missing = part - product
    product, _ = multiply(steps[at], missing)
    estimate = steps[at] - product
    below = np.uint64(ESTIMATE_SLACK + (EXPONENT_SLACK << (64 - FRACTION_BITS)))
    above = np.uint64(ESTIMATE_SLACK)
    surely = estimate - below if estimate > below else np.uint64(0)
    possibly = estimate + above if estimate < _LARGEST - above else _LARGEST
    return surely, possibly


@cache
def exp_steps() -> NDArray[np.uint64]:
    """floor(2^64 exp(-i / 64)) for i < 64 x 45; 2^64 - 1 in place of 2^64 for i = 0."""
    later = [exp_floor(Fraction(i, 64), 64) for i in range(1, 64 * VANISHING)]
    return np.array([2**64 - 1, *later], dtype=np.uint64)
