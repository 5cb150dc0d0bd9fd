"""Regressions of arrays, swapped by the kernel or by a given permutation, without a release folder."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from stirred.noise import SeededSource
from stirred.swap.estimating.regression import Design, Regression, ReleasedSums
from stirred.swap.law.moments import LawConstants
from stirred.swap.law.permutation import draw
from stirred.tables.groups import Groups


@cache
def _law(sizes, rate):
    return LawConstants.of(np.array(sizes), Fraction(rate))


def fitted(stratum, held, swapped, variables, rate, match=()):
    """A regression of ``variables``, outcome first: ``h0`` is the first column of ``held``, ``s1`` the second of
    ``swapped``; held columns in ``match`` are constant in strata."""
    kinds, t = np.unique(swapped, axis=0, return_inverse=True)
    order = np.lexsort([t.reshape(-1), stratum])
    law = _law(tuple(np.bincount(stratum).tolist()), rate)
    every = np.arange(len(order))
    sums = ReleasedSums.of(law, stratum[order], t.reshape(-1)[order], every, np.ones(len(order), dtype=np.int64))
    at = {sort: [int(name[1:]) for name in variables if name[0] == sort] for sort in "hs"}
    is_swapped = np.array([name[0] == "s" for name in variables])
    moved = np.array([name not in match for name in variables])
    return Regression(sums, Design(tuple(variables), is_swapped, moved, held[order][:, at["h"]], kinds[:, at["s"]]))


def swap(stratum, swapped, rate, seed):
    """The swap values after a swap."""
    groups = Groups(stratum.astype(np.uint32), int(stratum.max()) + 1)
    moves = draw(groups, np.bincount(stratum), Fraction(rate), SeededSource(seed))
    return swapped[moves.apply(np.arange(len(stratum), dtype=np.uint32))]


def naive_interval(fit, reach=1.96):
    """The coefficients and reach of 95% intervals of somebody who takes released rows for the file."""
    as_kept = Design(
        fit.design.labels,
        fit.design.swapped,
        np.zeros_like(fit.design.moved_against),
        fit.design.held_values,
        fit.design.swap_values,
    )
    plain = Regression(fit.sums, as_kept)
    return plain.values, reach * np.sqrt(plain.variances("population", robust=False))


def covered(make, variables, rate, truth, times, seed, *, target="population", robust=False, match=()):
    """How often 95% intervals contain the truth: naive and corrected, for each coefficient; and how often pooled."""
    rng = np.random.default_rng(seed)
    naive, corrected, pooled = [], [], 0
    for run in range(times):
        stratum, held, swapped = make(rng)
        fit = fitted(stratum, held, swap(stratum, swapped, rate, seed * 1_000_000 + run), variables, rate, match)
        about = np.asarray(truth)
        if target == "file":
            about = fitted(stratum, held, swapped, variables, rate, match).naive
        reach = fit.reach(0.95, target) * np.sqrt(fit.variances(target, robust=robust))
        corrected.append(np.abs(fit.values - about) <= reach)
        values, usual = naive_interval(fit)
        naive.append(np.abs(values - about) <= usual)
        pooled += fit.pooled
    return np.mean(naive, axis=0), np.mean(corrected, axis=0), pooled / times


def normal(n, slope=1.0):
    def make(rng):
        x = rng.normal(size=n)
        return np.zeros(n, dtype=np.int64), (1 + slope * x + rng.normal(size=n))[:, None], x[:, None]

    return make


def two_groups(n):
    def make(rng):
        x = (rng.random(n) < 0.3) * 1.0
        return np.zeros(n, dtype=np.int64), (1 + 0.5 * x + rng.normal(size=n))[:, None], x[:, None]

    return make


def proportions(n):
    def make(rng):
        x = (rng.random(n) < 0.3) * 1.0
        return np.zeros(n, dtype=np.int64), (rng.random(n) < 0.1 + 0.5 * x)[:, None] * 1.0, x[:, None]

    return make


def strata(sizes):
    """Outcome, a held predictor and a match variable beside a swapped predictor, in strata that differ."""
    stratum = np.repeat(np.arange(len(sizes)), sizes)

    def make(rng):
        a = rng.normal(size=len(sizes))[stratum]
        x = rng.normal(size=len(stratum)) + a
        h = 0.5 * x + rng.normal(size=len(stratum))
        y = 1 + 0.5 * x - 0.3 * h + 0.2 * a + rng.normal(size=len(stratum))
        return stratum, np.stack([y, h, a], axis=1), x[:, None]

    return make


def swapped_outcome(n):
    def make(rng):
        h = rng.normal(size=(n, 2))
        s = 0.3 * h[:, 0] + rng.normal(size=n)
        y = 1 + 0.5 * h[:, 0] + 0.2 * h[:, 1] + 0.4 * s + rng.normal(size=n)
        return np.zeros(n, dtype=np.int64), h, np.stack([y, s], axis=1)

    return make
