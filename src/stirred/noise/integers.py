"""Uniform integers below a bound, exactly.

Lemire's method: a random word w of W bits times the bound n has a high part floor(w n / 2^W), which is drawn, and a low
part; words whose low part is below 2^W mod n are drawn again, and exactly floor(2^W / n) words are left for each value.
So no error is spent. W is 32 for bounds up to 2^32 and 64 for those up to 2^63; other widths are for tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.noise.feeding import DONE, EMPTY, ROW, STATUS, WORD, State, counted, feed, in_chunks
from stirred.noise.fixed_point import multiply
from stirred.noise.source import RandomSource

_WHAT = "The bound of uniform integers"
_WANTED = "a whole number from 1 to 2^63"
LARGEST_BOUND = 1 << 63


def uniform_integers(bound: int | NDArray[np.integer], size: int, source: RandomSource) -> NDArray[np.int64]:
    """``size`` independent integers, uniform on 0, ..., bound - 1; one bound, or one for each row.

    >>> from stirred.noise import SeededSource
    >>> uniform_integers(6, 10, SeededSource(1)).tolist()
    [0, 3, 2, 4, 0, 0, 5, 0, 0, 1]
    """
    rows = counted(size)
    bounds = _bounds(bound, rows)
    out = np.empty(rows, dtype=np.int64)
    word_bits = 32 if not len(bounds) or int(bounds.max()) <= 1 << 32 else 64

    def fill(start: int, stop: int, own: RandomSource) -> None:
        draw_below(bounds if len(bounds) == 1 else bounds[start:stop], word_bits, out[start:stop], own)

    in_chunks(rows, source, fill)
    return out


def _bounds(bound: Any, rows: int) -> NDArray[np.uint64]:
    if isinstance(bound, np.ndarray) and bound.ndim:
        if bound.ndim != 1 or bound.dtype.kind not in "iu":
            raise errors.noise_rows(_WHAT, "is not a one-dimensional array of integers")
        if len(bound) != rows:
            raise errors.noise_rows(_WHAT, f"is given for {len(bound)} rows, not for {rows}")
        wrong = (bound < 1) | (bound > np.uint64(LARGEST_BOUND)) if bound.dtype.kind == "u" else bound < 1
        if np.any(wrong):
            row = int(np.argmax(wrong))
            raise errors.noise_out_of_range(f"{_WHAT} of row {row}", int(bound[row]), _WANTED)
        return np.ascontiguousarray(bound, dtype=np.uint64)
    if isinstance(bound, bool) or not isinstance(bound, int | np.integer):
        raise errors.noise_not_a_number(_WHAT, bound)
    if not 1 <= bound <= LARGEST_BOUND:
        raise errors.noise_out_of_range(_WHAT, int(bound), _WANTED)
    return np.array([bound], dtype=np.uint64)


def draw_below(bounds: NDArray[np.uint64], word_bits: int, out: NDArray[np.int64], source: RandomSource) -> None:
    """Fill ``out``; a bound for each row or one for all, none above 2^word_bits."""
    word_bytes = 8 if word_bits > 32 else 4

    def step(words: NDArray[Any], state: State) -> None:
        _below(words, 8 * word_bytes - word_bits, word_bits, bounds, out, state)

    def finish(state: State, own: RandomSource) -> bool:
        raise AssertionError("no draw is undecided")

    feed(step, finish, source, word_bytes, 1.01, len(out))


@kernel
def _below(words, unseen, word_bits, bounds, out, state):  # type: ignore[no-untyped-def]
    row = state[ROW]
    word = state[WORD]
    each = 1 if len(bounds) == len(out) else 0
    aside = np.uint64(64 - word_bits)
    most = ~np.uint64(0) >> aside  # 2^W - 1
    while row < len(out) and word < len(words):
        bound = bounds[row * each]
        high, low = multiply(np.uint64(words[word]) >> np.uint64(unseen) << aside, bound)
        low = low >> aside
        word += 1
        if low < bound and low < (most % bound + np.uint64(1)) % bound:
            continue
        out[row] = high
        row += 1
    state[ROW] = row
    state[WORD] = word
    state[STATUS] = DONE if row == len(out) else EMPTY
