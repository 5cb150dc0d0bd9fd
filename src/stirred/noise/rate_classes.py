"""Independent selection where records have different rates, each one of a few exact fractions.

The law. Record i is selected independently with the rate of its class, exactly. Selection over a file is one call of
:func:`stirred.noise.bernoulli.select` for each class, so it costs one draw per selected record. Selection in groups
*given that no group has exactly one selected* tosses a coin for every record of a group, and all of them again while
exactly one came up: only so is the law the conditional one. Coins are those of :mod:`stirred.noise.coins`: decided by
16 bits, else by 64, else by exact arithmetic.

A group is tossed 1/P(not exactly one) times on average, which is two at most for equal rates, and many for a group of
one record of rate near 1 and one of rate near 0 (:func:`stirred.swap.guarantee.kept_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred._compiled import kernel
from stirred.noise.bernoulli import select
from stirred.noise.coins import band_of_fraction, below
from stirred.noise.feeding import BITS, DONE, EMPTY, FIRST, ROW, SECOND, STATUS, UNDECIDED, WORD, State, feed
from stirred.noise.inversion import WIDE, Widths, seen
from stirred.noise.source import RandomSource


def select_by_class(
    classes: NDArray[np.unsignedinteger], rates: Sequence[Fraction], source: RandomSource
) -> NDArray[np.uint32]:
    """Positions of the selected records, class after class; record i has the rate ``rates[classes[i]]``.

    >>> from stirred.noise import SeededSource
    >>> classes = np.repeat(np.arange(2, dtype=np.uint8), 1_000)
    >>> chosen = select_by_class(classes, [Fraction(1, 50), Fraction(1, 2)], SeededSource(1))
    >>> int((chosen < 1_000).sum()), int((chosen >= 1_000).sum())
    (20, 486)
    """
    sizes = np.bincount(classes, minlength=len(rates))
    chosen = []
    for code, rate in enumerate(rates):
        rows = np.empty(int(sizes[code]), dtype=np.uint32)
        _positions(classes, code, rows)
        chosen.append(rows[select(len(rows), rate, source)])
    return np.concatenate(chosen)


def reselect_by_class(
    starts: NDArray[np.int64],
    classes: NDArray[np.unsignedinteger],
    rates: Sequence[Fraction],
    source: RandomSource,
    widths: Widths = WIDE,
) -> NDArray[np.bool_]:
    """Selection in groups with a rate for each record, given that no group has exactly one selected.

    Group ``g`` holds positions ``starts[g]`` to ``starts[g + 1]``. The whole group is selected afresh until the number
    selected is not one; groups of fewer than two records are never selected. Rates lie strictly between 0 and 1, else
    a group might have exactly one selected for ever. Other widths are for tests.
    """
    if not all(0 < rate < 1 for rate in rates):
        raise ValueError("rates of classes lie strictly between 0 and 1")
    chosen = np.zeros(int(starts[-1]), dtype=np.bool_)
    bands = np.array([band_of_fraction(rate) for rate in rates], dtype=np.uint64).reshape(-1, 2)
    surely, possibly = np.ascontiguousarray(bands[:, 0]), np.ascontiguousarray(bands[:, 1])

    def step(words: NDArray[np.uint16], state: State) -> None:
        _reselect_by_class(words, *widths, starts, classes, surely, possibly, chosen, state)

    def finish(state: State, own: RandomSource) -> bool:
        row = int(state[ROW])
        chosen[row] = below(rates[classes[row]], seen(state), widths.full, own)
        state[SECOND] += int(chosen[row])
        return True

    feed(step, finish, source, 2, 1.5, len(chosen))
    return chosen


@kernel
def _positions(classes, wanted, rows):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(len(classes)):
        if classes[i] == wanted:
            rows[at] = i
            at += 1


@kernel
def _reselect_by_class(words, head_bits, full_bits, starts, classes, surely, possibly, chosen, state):  # type: ignore[no-untyped-def]
    """Toss for each record in turn; FIRST is the group, SECOND the number selected in it so far."""
    row = state[ROW]
    word = state[WORD]
    group = state[FIRST]
    count = state[SECOND]
    unseen, unused = np.uint64(16 - head_bits), np.uint64(64 - full_bits)
    unused_first, rest_bits = np.uint64(64 - head_bits), full_bits - head_bits
    last = len(words) - 4
    status = DONE
    while group < len(starts) - 1:
        start, end = starts[group], starts[group + 1]
        if end - start < 2:
            row = end
        if row == end:
            if count == 1:
                row = start
            else:
                group += 1
            count = 0
            continue
        if word > last:
            status = EMPTY
            break
        low, high = surely[classes[row]], possibly[classes[row]]
        head = np.uint64(words[word]) >> unseen
        word += 1
        hit = head < low >> unused_first
        if not hit and head <= high >> unused_first:
            rest = (
                (np.uint64(words[word]) << np.uint64(32))
                | (np.uint64(words[word + 1]) << np.uint64(16))
                | np.uint64(words[word + 2])
            )
            word += 3
            bits = (head << np.uint64(rest_bits)) | (rest >> np.uint64(48 - rest_bits))
            if bits >= low >> unused and bits <= high >> unused:
                state[BITS] = np.int64(bits)
                status = UNDECIDED
                break
            hit = bits < low >> unused
        chosen[row] = hit
        count += hit
        row += 1
    state[ROW] = row
    state[WORD] = word
    state[FIRST] = group
    state[SECOND] = count
    state[STATUS] = status
