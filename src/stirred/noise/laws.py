"""Laws on the integers, P(k) proportional to exp(-rate |k|^power), and certified bounds of their distribution function.

``power`` is 2 for Gaussian and 1 for geometric laws, and the rate is rational. The shape says which integers there are:

========  ============================================================================================
line      every integer k, weight exp(-rate |k|^power)
halves    k >= 0 with weight exp(-rate k), and -1-k with weight exp(-gap) exp(-rate k); power 1
half      k >= 0; with ``count``, only k < count
folded    k >= 0, and every weight but that of 0 is doubled: the law of the absolute value of *line*
========  ============================================================================================

A value is drawn by inversion: X = min {k : U < F(k)}, U a uniform number known through its first bits, F the
distribution function. :func:`resolve` asks for bits, 64 at a time, until every continuation gives the same X. What is
drawn has the law exactly: no decision rests on anything but integers that enclose F.

Error budget of F to ``width`` bits. Weights come from w_k = w_(k-1) r_k, r_(k+1) = r_k r^2 (r_k constant at power 1),
as a lower and an upper bound each, multiplied in fixed point of ``width + 2 margin`` bits with products rounded apart.
They are listed until the upper bound is below 2^-(width + margin); what is left out is below the geometric series with
the last ratio, and counts in upper bounds only. So 2^width F(k) is known to about 2^-margin, and its floor is known
unless it lies that close to an integer. With ``width`` = ``margin`` = 64 these are 13.3 standard deviations of a
Gaussian.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from stirred.noise.enclosures import exp_bounds
from stirred.noise.source import RandomSource

Shape = Literal["line", "halves", "half", "folded"]


@dataclass(frozen=True)
class Law:
    """One law; see the module for the shapes."""

    power: Literal[1, 2]
    rate: Fraction
    shape: Shape
    gap: Fraction = Fraction(0)
    count: int | None = None


@dataclass(frozen=True)
class Floors:
    """For k = first, first + 1, ...: integers with low <= floor(2^width F(k)) <= high, both non-decreasing in k.

    ``ends`` says that the value after the last listed one is the largest there is, so that its F is 1.
    """

    first: int
    low: list[int]
    high: list[int]
    ends: bool


def _side(law: Law, width: int, margin: int) -> tuple[list[int], list[int], int, int]:
    """Bounds of exp(-rate k^power) for k = 0, 1, ..., an upper bound of the sum of later ones, and the precision."""
    precision = width + 2 * margin
    least = 1 << margin
    ratio_low, ratio_high = exp_bounds(law.rate, precision)
    change_low, change_high = exp_bounds(2 * law.rate, precision)
    lows: list[int] = []
    highs: list[int] = []
    low = high = 1 << precision
    while high >= least and len(lows) != law.count:
        lows.append(low)
        highs.append(high)
        low = low * ratio_low >> precision
        high = -(-high * ratio_high >> precision)
        if law.power == 2:
            ratio_low = ratio_low * change_low >> precision
            ratio_high = -(-ratio_high * change_high >> precision)
    if len(lows) == law.count:
        return lows, highs, 0, precision
    # high bounds the first weight left out and ratio_high every later ratio: high + high ratio + high ratio^2 + ...
    return lows, highs, -(-(high << precision) // ((1 << precision) - ratio_high)), precision


def _weights(law: Law, width: int, margin: int) -> tuple[int, list[int], list[int], int, int]:
    """The first value listed, bounds of all listed weights, and upper bounds of what lies before and behind them."""
    low, high, tail, precision = _side(law, width, margin)
    if law.shape == "line":
        return 1 - len(low), low[:0:-1] + low, high[:0:-1] + high, tail, tail
    if law.shape == "halves":
        gap_low, gap_high = exp_bounds(law.gap, precision)
        left_low = [value * gap_low >> precision for value in low]
        left_high = [-(-value * gap_high >> precision) for value in high]
        return -len(low), left_low[::-1] + low, left_high[::-1] + high, tail, tail
    if law.shape == "folded":
        return 0, [low[0], *(2 * v for v in low[1:])], [high[0], *(2 * v for v in high[1:])], 0, 2 * tail
    return 0, low, high, 0, tail


@lru_cache(maxsize=16)
def floors(law: Law, width: int, margin: int = 64) -> Floors:
    """Bounds of floor(2^width F(k)) for every k whose F is not within about 2^-(width + margin) of 0 or 1."""
    first, low, high, before, behind = _weights(law, width, margin)
    at_most_low, at_most_high = list(accumulate(low)), list(accumulate(high))
    all_low, all_high = at_most_low[-1], at_most_high[-1]
    ends = len(low) == law.count
    lows, highs = [], []
    if before:  # the last value that is not listed has a cut, too
        first -= 1
        lows.append(0)
        highs.append((before << width) // (before + all_low))
    for mass_low, mass_high in zip(at_most_low, at_most_high, strict=True):
        # F = A / (A + B), A the mass up to k and B the mass beyond, rises in A and falls in B.
        beyond_low, beyond_high = all_low - mass_low, all_high - mass_high + behind
        lows.append((mass_low << width) // (mass_low + beyond_high))
        highs.append(((mass_high + before) << width) // (mass_high + before + beyond_low))
    if ends:  # F = 1 at the last value
        lows.pop()
        highs.pop()
    else:  # F < 1 everywhere
        highs = [min(cut, (1 << width) - 1) for cut in highs]
    return Floors(first, lows, highs, ends)


def resolve(law: Law, bits: int, width: int, source: RandomSource) -> int:
    """The value of a draw whose uniform number begins with the ``width`` bits ``bits``, exactly."""
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        known = floors(law, width)
        passed = bisect_left(known.high, bits)  # cuts that are surely at or below the number
        if (known.ends and passed == len(known.low)) or (passed < len(known.low) and bits < known.low[passed]):
            return known.first + passed


def happens(rate: Fraction, bits: int, width: int, source: RandomSource) -> bool:
    """Whether U < exp(-rate) for a uniform number that begins with the ``width`` bits ``bits``, exactly.

    No bits at all (``width`` 0) make a fresh draw.
    """
    if rate == 0:
        return True
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        low, high = exp_bounds(rate, width)
        if bits < low:
            return True
        if bits >= high:
            return False
