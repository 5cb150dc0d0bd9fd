"""Arithmetic of kernels against Python's integers, and the written error bounds against exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from stirred.noise.fixed_point import (
    EXPONENT_SLACK,
    divide,
    exp_bounds,
    exp_steps,
    exponent_of,
    leading_zeros,
    mantissa_of,
    multiply,
    probability_band,
    quotient_of,
)

EDGES = [0, 1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
RANDOM = [int(n) for n in np.random.default_rng(1).integers(0, 2**64, 300, dtype=np.uint64)]
MIXED = [n >> (7 * i % 64) for i, n in enumerate(RANDOM)]


def test_products_have_128_bits():
    for a in EDGES + MIXED:
        for b in EDGES + MIXED[:20]:
            high, low = multiply(np.uint64(a), np.uint64(b))
            assert (int(high) << 64) + int(low) == a * b


def test_zeros_before_the_first_bit_are_counted():
    for bit in range(64):
        for value in (1 << bit, (1 << (bit + 1)) - 1):
            assert leading_zeros(np.uint64(value)) == 63 - bit


def test_quotients_of_128_bits_and_their_remainders_are_exact():
    divisors = [n | 2**63 for n in EDGES + RANDOM]
    for i, divisor in enumerate(divisors):
        for high in (0, 1, divisor - 1, divisor // 2, RANDOM[i % 300] % divisor):
            for low in (0, 2**64 - 1, RANDOM[-1 - i % 300]):
                quotient, remainder = divide(np.uint64(high), np.uint64(low), np.uint64(divisor))
                assert divmod((high << 64) + low, divisor) == (int(quotient), int(remainder))


def test_mantissas_are_the_leading_64_bits_of_a_quotient_cut_off():
    numbers = [n for n in EDGES + MIXED if 0 < n < 2**63]
    for i, top in enumerate(numbers):
        for bottom in (numbers[-i], numbers[i // 2], top, 1, 2**63 - 1):
            found, shift = quotient_of(np.uint64(top), np.uint64(bottom))
            exact = Fraction(top, bottom)
            assert (int(found), int(shift)) == mantissa_of(exact)
            assert 2**63 <= found < 2**64
            assert int(found) == math.floor(exact * Fraction(2) ** int(shift))


@pytest.mark.parametrize(
    "rate", [Fraction(1, 3**200), Fraction(3**200), Fraction(2**500 - 1, 2**500)], ids=lambda _: ""
)
def test_mantissas_of_numbers_of_any_size(rate):
    mantissa, shift = mantissa_of(rate)
    assert 2**63 <= mantissa <= rate * Fraction(2) ** shift < mantissa + 1 <= 2**64


RATES = [Fraction(1, 2 * v) for v in (1, 3, 10**4, 10**12, 2**60 - 1, 2**80)] + [Fraction(177339451520, 214437516707)]
RATES += [Fraction(7, 3), Fraction(64), Fraction(65), Fraction(10**20)]


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_an_exponent_is_never_above_the_true_one_and_below_it_by_less_than_the_slack(rate):
    mantissa, shift = mantissa_of(rate)
    for y in [0, 1, 2, 3, *MIXED, *(n * n for n in MIXED)]:
        cut = max(0, y.bit_length() - 64)
        if rate * 2 ** (57 + cut) > 4 and cut:
            continue  # outside what callers keep
        found = int(exponent_of(np.uint64(y >> 64), np.uint64(y % 2**64), cut, np.uint64(mantissa), shift))
        true = y * rate * 2**57
        if found == 2**64 - 1:
            assert true >= 64 * 2**57
        else:
            assert found <= true < found + EXPONENT_SLACK


def exponents():
    special = [0, 1, 2**50, 2**51 - 1, 2**51, 2**57 - 1, 2**57, 44 * 2**57, 45 * 2**57 - 1, 45 * 2**57, 2**64 - 1]
    return special + [n >> (6 + i % 30) for i, n in enumerate(RANDOM)] + [n >> 1 for n in RANDOM[:20]]


def test_the_band_of_a_probability_holds_for_every_exponent_within_the_slack():
    widest = 0
    for exponent in exponents():
        surely, possibly = map(int, probability_band(np.uint64(exponent), exp_steps()))
        largest = exp_bounds(Fraction(exponent, 2**57), 140)[1]
        least = exp_bounds(Fraction(exponent + EXPONENT_SLACK, 2**57), 140)[0]
        assert surely << 76 <= least, exponent  # w < surely: (w + 1) 2^-64 <= exp(-true)
        assert (possibly + 1) << 76 >= largest, exponent  # w > possibly: w 2^-64 >= exp(-true)
        assert surely <= possibly
        widest = max(widest, possibly - surely)
    assert widest < 1100


def test_the_estimate_inside_the_band_is_as_good_as_its_bound_says():
    """5 units of 2^-64 on either side, without the slack of the exponent."""
    worst = 0
    for exponent in exponents():
        _, possibly = map(int, probability_band(np.uint64(exponent), exp_steps()))
        if possibly in (0, 2**64 - 1):
            continue
        low, high = exp_bounds(Fraction(exponent, 2**57), 140)
        estimate = possibly - 5
        worst = max(worst, abs((estimate << 76) - low), abs((estimate << 76) - high))
    assert worst < 5 << 76
