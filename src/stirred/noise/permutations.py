"""Uniform permutations and uniform derangements within groups, from unbiased bounded integers.

The laws. :func:`shuffle_groups` draws, independently for each group, a uniformly random permutation of its members;
:func:`derange_groups` a uniformly random permutation *without fixed points*.

Fisher-Yates from the top: the element that goes to position i is uniform among the i + 1 not yet placed. For
derangements the shuffle is abandoned as soon as a position ends with its own element, and starts again from the
arrangement reached: a uniform shuffle of any arrangement is uniform, and permutations are thus drawn until one
without fixed points comes, which is rejection sampling. About 1.72 draws per element are expected. A group of two has
one derangement, which takes no randomness.

Bounded integers are Lemire's: the high half of a 32-bit word times the bound, words whose low half falls below
2^32 mod bound being redrawn. Exactly uniform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.source import RandomSource, words32

_GROUP, _TOP, _WORD = range(3)


@kernel
def _permute(order, starts, avoid_fixed, words, state):  # type: ignore[no-untyped-def]
    """Permute ``order`` within groups until done or out of words; ``state`` says where to go on."""
    low_half = np.uint64(0xFFFFFFFF)
    group = state[_GROUP]
    top = state[_TOP]  # position being filled; -1 means that the group has not begun
    word = state[_WORD]
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
    state[_GROUP] = group
    state[_TOP] = top
    state[_WORD] = word


@kernel
def _positions(starts, order):  # type: ignore[no-untyped-def]
    for group in range(len(starts) - 1):
        for i in range(starts[group + 1] - starts[group]):
            order[starts[group] + i] = i


def _permuted(starts: NDArray[np.int64], source: RandomSource, avoid_fixed: bool) -> NDArray[np.uint32]:
    total = int(starts[-1])
    order = np.empty(total, dtype=np.uint32)
    _positions(starts, order)
    state = np.array([0, -1, 0], dtype=np.int64)
    while True:
        words = words32(source, 2 * total)
        state[_WORD] = 0
        _permute(order, starts, avoid_fixed, words, state)
        if state[_GROUP] == len(starts) - 1:
            return order


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
