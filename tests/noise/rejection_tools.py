"""What tests of rejection samplers share: one attempt from given bits, and what all bit strings together must give."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np

from stirred.noise.fixed_point import exp_bounds
from stirred.noise.source import EMPTY, FIRST, ROW, SECOND, STATUS, UNDECIDED, WORD

REJECTED, OPEN_BLOCK, OPEN_ACCEPTANCE = "rejected", "open block", "open acceptance"


def attempt(kernel, words, kind):
    """What one attempt gives: a value, REJECTED, or (which comparison is open, block, x)."""
    out, state = np.full(1, 10**9, dtype=np.int64), np.zeros(6, dtype=np.int64)
    kernel(np.array(words, dtype=kind), out, state)
    if state[STATUS] == UNDECIDED:
        if state[FIRST] < 0:
            return OPEN_BLOCK, None, None
        return OPEN_ACCEPTANCE, int(state[FIRST]), int(state[SECOND])
    if state[ROW] == 1:
        return int(out[0])
    assert state[STATUS] == EMPTY
    assert state[WORD] > 0
    return REJECTED


def certain(exponent, bits, width):
    """True or False where every continuation of V's bits gives V < exp(-exponent), or none does; else None."""
    if exponent == 0:
        return True
    low, high = exp_bounds(exponent, width + 100)
    if (bits + 1) << 100 <= low:
        return True
    return False if bits << 100 >= high else None


class Tally:
    """Counts of bit strings: which settle on x, and which may still become it."""

    def __init__(self):
        self.settled, self.possible, self.strings = Counter(), Counter(), 0

    def add(self, outcome, reachable):
        self.strings += 1
        if isinstance(outcome, int):
            self.settled[outcome] += 1
        elif outcome != REJECTED:
            for x in reachable:
                self.possible[x] += 1

    def encloses(self, chance_of):
        """Whether 2^bits times the chance of an attempt to give x lies between the counts, for every x that occurs."""
        for x in self.settled.keys() | self.possible.keys():
            low, high = chance_of(x)
            assert self.settled[x] <= high * self.strings, x
            assert low * self.strings <= self.settled[x] + self.possible[x], x
        assert self.settled
        assert self.possible


def chances(rate, power, weight_sum, strings_per_block):
    """x -> bounds of exp(-rate |x|^power) / (2^(bits within) x 2 x sum of block weights)."""

    def chance_of(x):
        low, high = exp_bounds(rate * abs(x) ** power, 200)
        sums = weight_sum()
        return Fraction(low, 1 << 200) / sums / strings_per_block, Fraction(high, 1 << 200) / sums / strings_per_block

    return chance_of
