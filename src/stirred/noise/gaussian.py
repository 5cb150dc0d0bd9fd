"""The discrete Gaussian: P(x) proportional to exp(-x^2 / (2 variance)) on all integers, exactly.

Given uniform random bits the law is the mathematical one, not an approximation: see :mod:`stirred.noise.inversion`
(variances up to 2^20), :mod:`stirred.noise.blocks` (larger ones) and :mod:`stirred.noise.universal` (a variance in each
row) for the arguments and the error budgets. The parameter ``variance`` is that of the formula; the variance of what is
drawn is a little smaller for variances below about 1. Canonne, Kamath and Steinke (2020), The Discrete Gaussian for
Differential Privacy, Theorem 4: noise of this law on an integer query of sensitivity d satisfies rho-zCDP with rho =
d^2 / (2 variance).

Running time is not constant: see :mod:`stirred.noise.feeding`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.noise.blocks import block_table, draw_blocks
from stirred.noise.feeding import counted, in_chunks
from stirred.noise.inversion import cut_table, invert
from stirred.noise.laws import Law
from stirred.noise.scales import Number, Numbers, Range, exact_number, exact_rows
from stirred.noise.source import RandomSource
from stirred.noise.universal import draw_each

LARGEST_VARIANCE = 1 << 80
"""What the error budgets of methods B and U carry: a sigma of 2^40."""

LARGEST_TABLE = 1 << 20
"""Variances up to here have one table of all values, at most 18,600 cuts."""

_WHAT = "The variance of a discrete Gaussian"
_RANGE = Range("greater than 0", limit=LARGEST_VARIANCE)


def discrete_gaussian(variance: Number, size: int, source: RandomSource) -> NDArray[np.int64]:
    """``size`` independent draws with one variance, 0 < variance <= 2^80.

    >>> from stirred.noise import SeededSource
    >>> discrete_gaussian("3/7", 12, SeededSource(1)).tolist()
    [0, -1, 0, 0, 0, 0, -1, 0, 0, -1, 0, -1]
    """
    exact = _RANGE.check(exact_number(variance, _WHAT), _WHAT)
    return _draw(exact, counted(size), source)


def discrete_gaussian_each(variances: Numbers, source: RandomSource) -> NDArray[np.int64]:
    """One independent draw for each variance: a sequence of numbers, or integer arrays (numerators, denominators).

    >>> from stirred.noise import SeededSource
    >>> discrete_gaussian_each([1, "1/3", 10**12], SeededSource(1)).tolist()
    [0, 0, -182792]
    """
    return draw_each(2, exact_rows(variances, _WHAT, _RANGE), _draw, source)


def gaussian_law(variance: Fraction) -> Law:
    """All integers, P(k) proportional to exp(-k^2 / (2 variance))."""
    return Law(2, 1 / (2 * variance), "line")


def _draw(variance: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    out = np.empty(size, dtype=np.int64)
    if size == 0:
        return out
    if variance <= LARGEST_TABLE:
        table = cut_table(gaussian_law(variance))
        in_chunks(size, source, lambda start, stop, own: invert(table, out[start:stop], own))
    else:
        blocks = block_table(variance)
        in_chunks(size, source, lambda start, stop, own: draw_blocks(blocks, out[start:stop], own))
    return out
