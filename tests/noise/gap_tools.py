"""Exact cuts of the geometric law, for the tests of gaps."""

from __future__ import annotations

from functools import cache

from stirred.noise.selection import gap_table


def reach_of(rate):
    """K, the number of cuts in a table; a gap of K stands for "K or more"."""
    return len(gap_table(rate).cuts)


@cache
def exact_cuts(rate, count):
    """F(0), ..., F(count - 1), each from its own power."""
    return [1 - (1 - rate) ** (k + 1) for k in range(count)]


class Untouchable:
    """A source that must not be asked."""

    for_release = True

    def take(self, count):
        raise AssertionError("randomness was drawn where none is needed")
