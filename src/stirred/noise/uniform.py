"""Uniform integers below a bound, and uniform permutations and derangements within groups, exactly.

Lemire's method: a random word w of W bits times the bound n has a high part floor(w n / 2^W), which is drawn, and a low
part; words whose low part is below 2^W mod n are drawn again, and exactly floor(2^W / n) words are left for each value.
So no error is spent. W is 32 for bounds up to 2^32 and 64 for those up to 2^63; other widths are for tests.

:func:`shuffle_groups` draws, independently for each group, a uniformly random permutation of its members;
:func:`derange_groups` a uniformly random permutation *without fixed points*. Fisher-Yates from the top: the element
that goes to position i is uniform among the i + 1 not yet placed, by words of 32 bits. For derangements the shuffle is
abandoned as soon as a position ends with its own element, and starts again from the arrangement reached: a uniform
shuffle of any arrangement is uniform, and permutations are thus drawn until one without fixed points comes, which is
rejection sampling. About 1.72 draws per element are expected. A group of two has one derangement, which takes no
randomness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._compiled import kernel
from stirred.noise.fixed_point import multiply
from stirred.noise.source import (
    DONE,
    EMPTY,
    FIRST,
    ROW,
    STATUS,
    WORD,
    RandomSource,
    State,
    block_of_words,
    counted,
    feed,
    in_chunks,
)

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


def shuffle_groups(starts: NDArray[np.int64], source: RandomSource) -> NDArray[np.uint32]:
    """Independent uniform permutations: the element of group g placed at its i-th position, as an offset in g.

    Group ``g`` holds positions ``starts[g]`` to ``starts[g + 1]``; at most 2^32 - 1 in all.

    >>> from stirred.noise import SeededSource
    >>> sorted(shuffle_groups(np.array([0, 5]), SeededSource(3)).tolist())
    [0, 1, 2, 3, 4]
    """
    return _permuted(starts, source, False)


def derange_groups(starts: NDArray[np.int64], source: RandomSource) -> NDArray[np.uint32]:
    """Independent uniform derangements, in the form of :func:`shuffle_groups`. No group may have one member.

    >>> from stirred.noise import SeededSource
    >>> derange_groups(np.array([0, 2, 4]), SeededSource(3)).tolist()
    [1, 0, 1, 0]
    """
    if bool(np.any(np.diff(starts) == 1)):
        raise ValueError("a group of one has no derangement")
    return _permuted(starts, source, True)


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


@kernel
def _permute(order, starts, avoid_fixed, words, state):  # type: ignore[no-untyped-def]
    """Permute ``order`` within groups until done or out of words; ROW is the group, FIRST the position to be filled."""
    low_half = np.uint64(0xFFFFFFFF)
    group = state[ROW]
    top = state[FIRST]  # -1 means that the group has not begun
    word = state[WORD]
    while group < len(starts) - 1:
        start = starts[group]
        size = starts[group + 1] - start
        if size < 2:
            group += 1
            continue
        if avoid_fixed and size == 2:
            order[start] = 1
            order[start + 1] = 0
            group += 1
            continue
        if top < 0:
            top = size - 1
        while top > 0:
            bound = np.uint64(top + 1)
            if word == len(words):
                break
            product = np.uint64(words[word]) * bound
            word += 1
            low = product & low_half
            if low < bound:
                threshold = (np.uint64(1 << 32) - bound) % bound
                if low < threshold:
                    continue
            other = np.int64(product >> np.uint64(32))
            kept = order[start + top]
            placed = order[start + other]
            order[start + top] = placed
            order[start + other] = kept
            if avoid_fixed and placed == top:
                top = size - 1
            else:
                top -= 1
                if top == 0 and avoid_fixed and order[start] == 0:
                    top = size - 1
        if top > 0:
            break
        group += 1
        top = -1
    state[ROW] = group
    state[FIRST] = top
    state[WORD] = word


@kernel
def _positions(starts, order):  # type: ignore[no-untyped-def]
    for group in range(len(starts) - 1):
        for i in range(starts[group + 1] - starts[group]):
            order[starts[group] + i] = i


def _permuted(starts: NDArray[np.int64], source: RandomSource, avoid_fixed: bool) -> NDArray[np.uint32]:
    total = int(starts[-1])
    order = np.empty(total, dtype=np.uint32)
    _positions(starts, order)
    state = np.zeros(6, dtype=np.int64)
    state[FIRST] = -1
    while True:
        words = block_of_words(source, 4, 2 * total)
        state[WORD] = 0
        _permute(order, starts, avoid_fixed, words, state)
        if state[ROW] == len(starts) - 1:
            return order
