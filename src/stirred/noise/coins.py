"""Coins and randomised response, exactly: Bernoulli variables with probability p, or exp(-x), for rational p and x.

The law of a coin: P(True) = p, or exp(-x), exactly. A uniform number U is compared with the probability bit by bit,
which needs 16 bits unless they agree with the probability's own, then 48 more, then exact arithmetic.

Error budget: every probability is a pair of 64-bit integers with this meaning for the first 64 bits w of U. w < surely
implies U < probability, w > possibly implies U >= probability, and in between the draw is undecided and settled by
:func:`stirred.noise.inversion.happens`, or by comparing with the fraction. A fraction p has surely = floor(2^64 p) =
possibly, and possibly one less where 2^64 p is whole and positive; 0 and 1 become (0, 0) and (2^64 - 1, 2^64 - 1), one
draw in 2^64 being undecided. A single x has surely = possibly = floor(2^64 exp(-x)), certified. An x for each row has
the band of :mod:`stirred.noise.fixed_point`, about 1,000 wide: its exponent is the leading 64 bits of x, less than 3
units of 2^-57 too small.

The law of randomised response, independently for each value v among k categories: P(v) = 1 - p and P(u) = p / (k - 1)
for each u other than v, exactly. With two categories the value is flipped with probability p. (Some texts replace by
any of the k, the value itself included: that is this law with p (k - 1) / k in place of p.) For p <= 1 - 1/k it
satisfies epsilon-differential privacy for a value with exp(epsilon) = (1 - p)(k - 1) / p. Whether a value is replaced
is a coin, by which one of the others a uniform integer of :mod:`stirred.noise.uniform`; every value takes both draws,
whatever the first one says.

:func:`stirred.noise.select` draws the positions of the rows that come up True, and is faster for small p.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.noise.fixed_point import (
    divide,
    exp_floor,
    exp_steps,
    exponent_of,
    leading_zeros,
    probability_band,
    quotient_of,
)
from stirred.noise.inversion import WIDE, Widths, happens, leave, longer, seen
from stirred.noise.scales import CodedRows, Number, Numbers, Range, Rows, exact_rows
from stirred.noise.source import (
    BITS,
    DONE,
    ROW,
    UNDECIDED,
    WORD,
    RandomSource,
    State,
    counted,
    feed,
    in_chunks,
)
from stirred.noise.uniform import LARGEST_BOUND, uniform_integers

_PROBABILITY = Range("The probability", "from 0 to 1", zero=True, most=1)
_EXPONENT = Range("The exponent", "0 or greater", zero=True)
_LARGEST = 2**64 - 1
_FULL = np.uint64(_LARGEST)

Bands = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""(surely, possibly), for each row or one for all."""


def bernoulli(p: Number | Numbers, size: int, source: RandomSource) -> NDArray[np.bool_]:
    """``size`` independent coins, True with probability ``p``: one number, or one for each row.

    >>> from stirred.noise import SeededSource
    >>> int(bernoulli("1/3", 9_000, SeededSource(1)).sum())
    2910
    """
    return _coins(p, size, source, _PROBABILITY, band_of_fraction, _pair_bands, below)


def bernoulli_exp(x: Number | Numbers, size: int, source: RandomSource) -> NDArray[np.bool_]:
    """``size`` independent coins, True with probability exp(-``x``), x >= 0: one number, or one for each row.

    >>> from stirred.noise import SeededSource
    >>> int(bernoulli_exp(1, 9_000, SeededSource(1)).sum())
    3230
    """
    return _coins(x, size, source, _EXPONENT, _band_of_exp, _pair_bands_exp, happens)


def randomised_response(values: NDArray[Any], p: Number, source: RandomSource, *, categories: int = 2) -> NDArray[Any]:
    """``values``, whole numbers below ``categories`` or booleans, each replaced by another one with probability ``p``.

    >>> from stirred.noise import SeededSource
    >>> randomised_response(np.array([0, 1, 2, 2, 1, 0]), "1/2", SeededSource(3), categories=3).tolist()
    [2, 2, 1, 1, 1, 0]
    """
    known = np.asarray(values)
    if isinstance(categories, bool) or not isinstance(categories, int | np.integer):
        raise errors.noise_not_a_number("The number of categories", categories)
    if not 2 <= categories <= LARGEST_BOUND:
        raise errors.noise_out_of_range("The number of categories", int(categories), "from 2 to 2^63")
    if known.ndim != 1 or known.dtype.kind not in "iub" or (known.dtype.kind == "b" and categories != 2):
        raise errors.response_values(int(categories))
    if len(known) and (int(known.min()) < 0 or int(known.max()) >= categories):
        raise errors.response_values(int(categories))
    replaced = bernoulli(p, len(known), source)
    if categories == 2:
        return np.asarray(known ^ replaced.astype(known.dtype))
    # Among the others in increasing order: those from the value itself on are one further.
    other = uniform_integers(int(categories) - 1, len(known), source)
    other += other >= known
    return np.where(replaced, other, known).astype(known.dtype)


def _coins(
    values: Any,
    size: int,
    source: RandomSource,
    allowed: Range,
    band: Callable[[Fraction], tuple[int, int]],
    kernel_of_pairs: Callable[..., None],
    settle: Callable[[Fraction, int, int, RandomSource], bool],
) -> NDArray[np.bool_]:
    rows = counted(size)
    given: Rows
    if isinstance(values, str) or not hasattr(values, "__len__"):
        given = CodedRows([allowed.exact(values)], np.zeros(1, dtype=np.int64))
    else:
        given = exact_rows(values, allowed)
        if len(given) != rows:
            raise errors.noise_rows(allowed.what, f"is given for {len(given)} rows, not for {rows}")
    out = np.empty(rows, dtype=np.bool_)
    bands = as_arrays(map(band, given.distinct) if isinstance(given, CodedRows) else ())

    def fill(start: int, stop: int, own: RandomSource) -> None:
        if isinstance(given, CodedRows):
            codes = given.codes if len(given) == 1 else given.codes[start:stop]
            surely, possibly = bands[0][codes], bands[1][codes]
        else:
            surely, possibly = np.empty((2, stop - start), dtype=np.uint64)
            kernel_of_pairs(given.numerators[start:stop], given.denominators[start:stop], exp_steps(), surely, possibly)

        def exact(row: int) -> Fraction:
            return given.exact(0 if len(given) == 1 else start + row)

        toss((surely, possibly), out[start:stop], exact, settle, own)

    in_chunks(rows, source, fill)
    return out


def toss(
    bands: Bands,
    out: NDArray[np.bool_],
    exact: Callable[[int], Fraction],
    settle: Callable[[Fraction, int, int, RandomSource], bool],
    source: RandomSource,
    widths: Widths = WIDE,
) -> None:
    """Fill ``out``; a band for each row or one for all. Other widths are for tests."""

    def step(words: NDArray[np.uint16], state: State) -> None:
        _toss(words, *widths, *bands, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        out[state[ROW]] = settle(exact(int(state[ROW])), seen(state), widths.full, own)
        return True

    feed(step, finish, source, 2, 1.01, len(out))


@kernel
def coin(words, at, head_bits, full_bits, surely, possibly):  # type: ignore[no-untyped-def]
    """(1, 0, or -1 where it is undecided; the bits seen then; where the next draw begins) of the coin at ``at``."""
    head = np.uint64(words[at]) >> np.uint64(16 - head_bits)
    unused = np.uint64(64 - head_bits)
    if head < surely >> unused:
        return 1, np.uint64(0), at + 1
    if head > possibly >> unused:
        return 0, np.uint64(0), at + 1
    bits = longer(words, at, head_bits, full_bits)
    unused = np.uint64(64 - full_bits)
    if bits < surely >> unused:
        return 1, bits, at + 4
    return (0 if bits > possibly >> unused else -1), bits, at + 4


@kernel
def _toss(words, head_bits, full_bits, surely, possibly, out, state):  # type: ignore[no-untyped-def]
    row = state[ROW]
    word = state[WORD]
    each = 1 if len(surely) == len(out) else 0
    last = len(words) - 4
    status = DONE
    while row < len(out) and word <= last:
        side, bits, word = coin(words, word, head_bits, full_bits, surely[row * each], possibly[row * each])
        if side < 0:
            state[BITS] = np.int64(bits)
            status = UNDECIDED
            break
        out[row] = side == 1
        row += 1
    leave(state, row, word, status, len(out))


# -- bands ---------------------------------------------------------------------------------------------------


def as_arrays(bands: Iterable[tuple[int, int]]) -> Bands:
    """The bands of several probabilities as two arrays, for kernels."""
    both = np.array(list(bands), dtype=np.uint64).reshape(-1, 2)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def band_of_fraction(p: Fraction) -> tuple[int, int]:
    """(surely, possibly) of the probability ``p``."""
    if p == 1:
        return _LARGEST, _LARGEST
    quotient, remainder = divmod(p.numerator << 64, p.denominator)
    return quotient, quotient - (remainder == 0 and quotient > 0)


def _band_of_exp(x: Fraction) -> tuple[int, int]:
    if x == 0:
        return _LARGEST, _LARGEST
    floor = exp_floor(x, 64) if x < 64 else 0
    return floor, floor


@kernel
def _pair_bands(numerators, denominators, steps, surely, possibly):  # type: ignore[no-untyped-def]
    for i in range(len(numerators)):
        if numerators[i] == denominators[i]:
            surely[i] = possibly[i] = _FULL
            continue
        divisor = np.uint64(denominators[i])
        zeros = np.uint64(leading_zeros(divisor))
        quotient, remainder = divide(np.uint64(numerators[i]) << zeros, np.uint64(0), divisor << zeros)
        surely[i] = quotient
        possibly[i] = quotient - np.uint64(remainder == 0 and quotient > 0)


@kernel
def _pair_bands_exp(numerators, denominators, steps, surely, possibly):  # type: ignore[no-untyped-def]
    for i in range(len(numerators)):
        if numerators[i] == 0:
            surely[i] = possibly[i] = _FULL
            continue
        mantissa, shift = quotient_of(np.uint64(numerators[i]), np.uint64(denominators[i]))
        exponent = exponent_of(np.uint64(0), np.uint64(1), 0, mantissa, shift)
        surely[i], possibly[i] = probability_band(exponent, steps)


def below(p: Fraction, bits: int, width: int, source: RandomSource) -> bool:
    """Whether U < p for a uniform number that begins with the ``width`` bits ``bits``."""
    while True:
        bits = (bits << 64) | int.from_bytes(source.take(8), "big")
        width += 64
        scaled = p * (1 << width)
        if bits + 1 <= scaled:
            return True
        if bits >= scaled:
            return False
