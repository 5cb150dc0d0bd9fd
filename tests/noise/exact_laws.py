"""Laws on the integers from Decimal arithmetic with 120 digits, which shares nothing with the samplers' own bounds.

Also how tests hold draws against them, and sources that serve chosen bits.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from scipy import stats

from chi_square import FALSE_ALARM, p_value

DIGITS = 120


def decimal(fraction):
    with localcontext() as context:
        context.prec = DIGITS
        return Decimal(fraction.numerator) / Decimal(fraction.denominator)


@cache
def weights(law):
    """{k: weight} for all k whose weight is above 10^-70 of the largest, each from its own exponential."""
    with localcontext() as context:
        context.prec = DIGITS
        rate, gap = decimal(law.rate), decimal(law.gap)
        found = {}
        k = 0
        while (weight := (-rate * k**law.power).exp()) > Decimal("1e-70") and k != law.count:
            found[k] = weight * (2 if law.shape == "folded" and k else 1)
            if law.shape == "line":
                found[-k] = weight
            if law.shape == "halves":
                found[-1 - k] = weight * (-gap).exp()
            k += 1
        return dict(sorted(found.items()))


@cache
def distribution(law):
    """(values, F at these values) as Decimals."""
    with localcontext() as context:
        context.prec = DIGITS
        known = weights(law)
        total = sum(known.values())
        cumulated, sums = Decimal(0), []
        for weight in known.values():
            cumulated += weight
            sums.append(cumulated / total)
        return list(known), sums


def share_between(law, low, high):
    """{k: P(X = k given low <= U < high)} for X = min {k : U < F(k)}; Decimals."""
    with localcontext() as context:
        context.prec = DIGITS
        before, shares = low, {}
        for k, cut in zip(*distribution(law), strict=True):
            until = min(max(cut, low), high)
            if until > before:
                shares[k] = (until - before) / (high - low)
                before = until
        return shares


def fits(drawn, values, chances):
    """Whether draws have the law ``chances`` on ``values``; everything else is one more cell. False alarm below 1e-9.

    Chi-square over cells that expect 200 or more, and for every cell that expects 5 or more the exact binomial tails.
    """
    values = np.asarray(values)
    chances = np.array([float(chance) for chance in chances])
    places = np.searchsorted(values, drawn)
    inside = (places < len(values)) & (values[np.minimum(places, len(values) - 1)] == drawn)
    observed = np.bincount(places[inside], minlength=len(values))
    observed = np.append(observed, np.count_nonzero(~inside))
    chances = np.append(chances, max(0.0, 1 - chances.sum()))
    return counts_fit(observed, chances)


def counts_fit(observed, chances):
    """As :func:`fits`, from counts; cells that expect fewer than 5 are pooled."""
    chances = np.asarray(chances)
    expected = chances * observed.sum()
    if np.count_nonzero(expected >= 200) > 1 and not p_value(observed, chances / chances.sum()) > FALSE_ALARM:
        return False
    few = expected < 5
    cells = np.append(observed[~few], observed[few].sum())
    shares = np.append(chances[~few], min(1.0, chances[few].sum() + 1e-15))
    below = stats.binom.cdf(cells, observed.sum(), shares)
    above = stats.binom.sf(cells - 1, observed.sum(), shares)
    return bool(2 * min(below.min(), above.min()) * len(cells) > 1e-10)


class Patterned:
    """Serves blocks made by ``pattern(number of the block, bytes wanted)``, and random bytes eight at a time."""

    for_release = False

    def __init__(self, pattern, more=None):
        self.pattern, self.more = pattern, more
        self.blocks = 0

    def take(self, count):
        if count == 8 and self.more is not None:
            return self.more.take(8)
        self.blocks += 1
        served = self.pattern(self.blocks - 1, count)
        assert len(served) == count
        return served


class Continued:
    """Serves the same eight bytes again and again: all zeros or all ones, the lowest or the highest continuation."""

    for_release = False

    def __init__(self, ones):
        self.served = (b"\xff" if ones else b"\0") * 8

    def take(self, count):
        assert count == 8, "only undecided draws are continued"
        return self.served


def head_and_rest(bits, head_bits, full_bits):
    """Four 16-bit words whose leading bits are ``bits``, as kernels read them."""
    rest_bits = full_bits - head_bits
    head, rest = bits >> rest_bits, (bits & ((1 << rest_bits) - 1)) << (48 - rest_bits)
    return [head << (16 - head_bits), rest >> 32, (rest >> 16) & 0xFFFF, rest & 0xFFFF]
