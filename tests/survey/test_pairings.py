"""Pairings of samples against Hall's condition: every set of samples must reach at least as much as it holds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from stirred.survey.design.selections import records_changed


def changed(design, unit):
    """By enumeration of all sets of samples with the unit."""
    taken = {frozenset(s): p for s, p in design.items() if unit in s}
    left = {frozenset(s): p for s, p in design.items() if unit not in s}
    if not taken or not left:
        return 1
    scale = sum(left.values()) / sum(taken.values())
    for most in range(1, 4):
        if all(
            scale * sum(taken[s] for s in some)
            <= sum(p for t, p in left.items() if any(len(s - t) <= most for s in some))
            for size in range(1, len(taken) + 1)
            for some in itertools.combinations(taken, size)
        ):
            return most
    raise AssertionError


def test_pairings_are_those_of_halls_condition():
    rng = np.random.default_rng(41)
    every = list(itertools.combinations(range(6), 3))
    found = set()
    for _ in range(150):
        chosen = rng.choice(len(every), rng.integers(3, 13), replace=False)
        weights = rng.integers(1, 6, len(chosen))
        design = {every[k]: Fraction(int(w), int(weights.sum())) for k, w in zip(chosen, weights, strict=True)}
        unit = int(rng.integers(6))
        assert records_changed(design, unit) == changed(design, unit)
        found.add(changed(design, unit))
    assert found == {1, 2, 3}
