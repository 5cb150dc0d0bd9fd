"""Randomness, and the exact laws drawn from it. See :mod:`stirred.noise.source` for where the bits come from."""

from stirred.noise.bernoulli import reselect, select
from stirred.noise.permutations import derange_groups, shuffle_groups
from stirred.noise.source import RandomSource, SeededSource, SystemSource

__all__ = [
    "RandomSource",
    "SeededSource",
    "SystemSource",
    "derange_groups",
    "reselect",
    "select",
    "shuffle_groups",
]
